package integration

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// heddle runs the command line on a node and returns what it printed.
func heddle(t *testing.T, n *node.Node, args ...string) string {
	t.Helper()
	cmd := heddleCommand(n, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("heddle %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// heddleAs is heddle as another user sees it. He may not enter the folders of
// the build, so he gets a copy in the node's own folder.
func heddleAs(t *testing.T, n *node.Node, uid uint32, args ...string) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(filepath.Dir(n.Interposer()), "../../bin/heddle"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.Dir(), "heddle")
	if err := errors.Join(os.WriteFile(path, program, 0o755), os.Chmod(n.Dir(), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HEDDLE_API=" + n.APISocket()}
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("heddle %s as uid %d: %v", strings.Join(args, " "), uid, err)
	}
	return string(out)
}

// Arguments can be passwords: another user's programs are listed without.
func TestPsHidesTheArgumentsOfOtherUsersPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	n, _ := start(t, node.Options{})
	const secret = "--password=open-sesame"
	n.Client(node.Hints{Wrapper: []string{"sh", "-c", `exec "$0" ` + secret}}).Open(0)
	if got := heddle(t, n, "ps"); !strings.Contains(got, secret) {
		t.Errorf("root does not see the whole command line:\n%s", got)
	}
	for _, args := range [][]string{{"ps"}, {"ps", "--json"}, {"ps", "--no-trunc"}} {
		got := heddleAs(t, n, 65534, args...)
		// The OS kernel keeps fifteen letters of a name.
		if strings.Contains(got, secret) || !strings.Contains(got, "heddle-test-cli") {
			t.Errorf("heddle %v as another user:\n%s", args, got)
		}
	}
}

func heddleCommand(n *node.Node, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(filepath.Dir(n.Interposer()), "../../bin/heddle"), args...)
	cmd.Env = append(os.Environ(), "HEDDLE_API="+n.APISocket())
	return cmd
}

// listed is a client as heddle ps shows it.
type listed struct {
	Class  string `json:"class"`
	Weight int    `json:"weight"`
	Tenant string `json:"tenant"`
}

func ps(t *testing.T, n *node.Node) listed {
	t.Helper()
	var list struct {
		Clients []listed `json:"clients"`
	}
	if err := json.Unmarshal([]byte(heddle(t, n, "ps", "--json")), &list); err != nil || len(list.Clients) != 1 {
		t.Fatalf("heddle ps lists %+v: %v", list.Clients, err)
	}
	return list.Clients[0]
}

// What is set and undone again stays undone, for the clients that live and
// over a restart of heddled.
func TestSetAndResetAreSeenByPs(t *testing.T) {
	n, c := start(t, node.Options{}, "low")
	configured := ps(t, n)
	if configured.Class != "low" {
		t.Fatalf("at first: %+v", configured)
	}
	tenant := configured.Tenant
	set := func(want listed, args ...string) {
		t.Helper()
		heddle(t, n, append([]string{"set"}, args...)...)
		want.Tenant = tenant
		if got := ps(t, n); got != want {
			t.Errorf("after heddle set %s: %+v, want %+v", strings.Join(args, " "), got, want)
		}
	}
	client := []string{"--pid", strconv.Itoa(c[0].PID())}
	set(listed{Class: "low", Weight: 30}, "--tenant", tenant, "--weight", "30")
	set(listed{Class: "high", Weight: 30}, append(client, "--priority", "high")...)
	set(listed{Class: "high", Weight: configured.Weight}, "--tenant", tenant, "--reset")
	set(configured, append(client, "--reset")...)

	n.KillDaemon()
	n.StartDaemon()
	n.Eventually("the client is back", func() bool { return n.Attached(c[0].PID()) != nil })
	if got := ps(t, n); got != configured {
		t.Errorf("after a restart: %+v, want %+v", got, configured)
	}
}
