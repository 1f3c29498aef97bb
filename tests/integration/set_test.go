package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// heddle runs the command line on a node and returns what it printed.
func heddle(t *testing.T, n *node.Node, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(filepath.Dir(n.Interposer()), "../../bin/heddle"), args...)
	cmd.Env = append(os.Environ(), "HEDDLE_API="+n.APISocket())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("heddle %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
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
