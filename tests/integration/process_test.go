package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// 10: a fork before cuInit is a client of its own.
func TestGroup10ForkBeforeInit(t *testing.T) {
	n, _ := start(t, node.Options{})
	c := n.Client(node.Hints{Priority: "low", Name: "forked"})
	c.Do("fork")
	c.Open(0)
	c.Do("launch 1000 10")
	c.Do("sync")
	if got := c.Number("count"); got != 10 {
		t.Errorf("%d kernels ran, want 10", got)
	}
	clients := n.Clients()
	if len(clients) != 1 || int(clients[0].GetPid()) == c.PID() {
		t.Errorf("want the child alone as client, have %v", clients)
	}
	if code := c.Exit(7); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
}

// 10: a fork after cuInit leaves the parent's registration alone, whatever the
// driver says to the child.
func TestGroup10ForkAfterInit(t *testing.T) {
	n, c := start(t, node.Options{}, "low")
	parent := c[0]
	id := n.Attached(parent.PID()).GetId()
	parent.Do("fork")
	parent.Send("init")
	parent.Answer()
	parent.Send("launch 1000")
	parent.Answer()
	if got := n.Attached(parent.PID()); got.GetId() != id {
		t.Errorf("the parent became %v", got)
	}
}

// 10: exec is a new process image and registers once.
func TestGroup10Exec(t *testing.T) {
	n, _ := start(t, node.Options{})
	c := n.Client(node.Hints{Priority: "low", Name: "execed", Wrapper: []string{"/bin/sh", "-c", `exec "$0"`}}).Open(0)
	c.Do("launch 1000")
	c.Do("sync")
	if clients := n.Clients(); len(clients) != 1 {
		t.Errorf("%d clients, want 1", len(clients))
	}
}

// 10: two hundred processes starting at once all attach, and all leave.
func TestGroup10TwoHundredProcessesAtOnce(t *testing.T) {
	n := node.New(t, node.Options{Profile: "null"})
	n.StartDaemon()
	clients := make([]*node.Client, 200)
	for i := range clients {
		clients[i] = n.Client(node.Hints{Priority: "normal", Name: fmt.Sprintf("c%d", i)})
		clients[i].Send("init")
	}
	for _, c := range clients {
		if answer := c.Answer(); answer != "ok" {
			t.Fatalf("cuInit: %s", answer)
		}
	}
	n.Eventually("all are attached", func() bool { return len(n.Clients()) == len(clients) })
	for _, c := range clients {
		c.Kill()
	}
	n.Eventually("all are gone", func() bool { return len(n.Clients()) == 0 })
}

// 10: two clients that both believe to be pid 1 are told apart.
func TestGroup10TwoPIDNamespacesWithTheSamePID(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, "-p", "-f", "true").Run() != nil {
		t.Skip("needs the right to make PID namespaces")
	}
	n, _ := start(t, node.Options{})
	for i := range 2 {
		c := n.Client(node.Hints{Priority: "low", Name: fmt.Sprintf("ns%d", i),
			Wrapper: []string{unshare, "-p", "-f", "--kill-child"}})
		c.Open(0)
		c.Do("launch 1000")
		c.Do("sync")
	}
	clients := n.Clients()
	if len(clients) != 2 || clients[0].GetPid() == clients[1].GetPid() || clients[0].GetPid() <= 1 {
		t.Fatalf("want two clients with pids of heddled's namespace, have %v", clients)
	}
}

// 3: the interposer is the one that answers, and a disabled one is only a
// trampoline that nobody sees.
func TestDisabledInterposerIsNotAttached(t *testing.T) {
	n, _ := start(t, node.Options{})
	c := n.Client(node.Hints{Priority: "low", Env: []string{"HEDDLE_DISABLE=1"}}).Open(0)
	c.Do("launch 1000 10")
	if got := c.Number("count"); got != 10 {
		t.Errorf("%d kernels ran, want 10", got)
	}
	if clients := n.Clients(); len(clients) != 0 {
		t.Errorf("a disabled interposer attached: %v", clients)
	}
}

// 14: the library is replaced by rename while clients have it mapped.
func TestGroup14LibraryReplacedByRenameWhileMapped(t *testing.T) {
	n, _ := start(t, node.Options{})
	dir := t.TempDir()
	lib := dir + "/libcuda.so.1"
	install := func() {
		content, err := os.ReadFile(n.Interposer())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(lib+".new", content, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(lib+".new", lib); err != nil {
			t.Fatal(err)
		}
	}
	env := func() []string {
		e := []string{"LD_PRELOAD=" + lib}
		for _, v := range n.ClientEnv(node.Hints{}) {
			if path, ok := strings.CutPrefix(v, "LD_LIBRARY_PATH="); ok {
				e = append(e, "LD_LIBRARY_PATH="+dir+path[strings.IndexByte(path, ':'):])
			}
		}
		return e
	}
	install()
	old := n.Client(node.Hints{Priority: "low", Env: env()}).Open(0)
	install()
	fresh := n.Client(node.Hints{Priority: "low", Env: env()}).Open(0)
	for _, c := range []*node.Client{old, fresh} {
		c.Do("launch 1000 5")
		if got := c.Number("count"); got != 5 {
			t.Errorf("%d kernels ran, want 5", got)
		}
		if n.Attached(c.PID()) == nil {
			t.Error("not attached")
		}
	}
}
