package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// A rule names a program by its path; whoever mounts another program there, in
// a mount namespace of his own, gets nothing by it.
func TestARuleForAnExecutableIsNotForItsForgery(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, "--mount", "sh", "-c", "mount --bind /bin/sh /bin/sh").Run() != nil {
		t.Skip("needs the right to make mount namespaces and to mount there")
	}
	n := node.New(t, node.Options{Config: "[[rule]]\nexecutable = \"/**/build/test/heddle-test-c*\"\ntenant = \"trusted\"\n"})
	n.StartDaemon()
	honest := n.Client(node.Hints{Name: "honest"}).Open(0)
	client, err := os.Readlink("/proc/" + strconv.Itoa(honest.PID()) + "/exe")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.WriteFile(copied, program, 0o755); err != nil {
		t.Fatal(err)
	}
	forged := n.Client(node.Hints{Name: "forged", Wrapper: []string{
		unshare, "--mount", "sh", "-c", `mount --bind "$0" "$1" && exec "$1"`, copied,
	}}).Open(0)

	if got := n.Attached(honest.PID()).GetTenant(); got != "trusted" {
		t.Errorf("the program that the rule names is of tenant %q", got)
	}
	if got := n.Attached(forged.PID()).GetTenant(); got == "trusted" {
		t.Error("a program mounted over it is taken for it")
	}
	if got := strings.Count(n.Log(), "executable="+client+" "); got != 2 {
		t.Errorf("%d clients ran from %s, want both: the forgery did not come about\n%s", got, client, n.Log())
	}
}
