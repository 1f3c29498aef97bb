package foreign

import (
	"testing"

	"github.com/heddle-project/heddle/tests/node"
	"github.com/heddle-project/heddle/tests/softgpu"
)

// TestCUDABindingsUnderHeddled lets the client run attached: it computes the same, heddled lists it with what it
// holds, and forgets it when it is killed.
func TestCUDABindingsUnderHeddled(t *testing.T) {
	build, err := softgpu.FindBuild()
	if err != nil {
		t.Skip(err)
	}
	n := node.New(t, node.Options{GPUs: "H100,A30"})
	n.StartDaemon()
	env := n.ClientEnv(node.Hints{Priority: "high", Name: "foreign"})
	h := hold(t, clientCommand(t, build, env, "--hold"))
	checkReport(t, &h.seen)

	client := n.Attached(h.pid)
	if client.GetName() != "foreign" {
		t.Errorf("heddled lists the client as %q", client.GetName())
	}
	n.Eventually("heddled sees the client's launches", func() bool {
		for _, c := range n.Clients() {
			if int(c.GetPid()) == h.pid && c.GetLaunches() > 0 {
				return true
			}
		}
		return false
	})
	h.kill()
	n.Eventually("heddled forgets the killed client", func() bool { return len(n.Clients()) == 0 })
}
