package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/heddle-project/heddle/tests/node"
)

// 9: heddled killed and restarted under load: nobody aborts, everybody is
// back, the gate's policy is kept.
func TestGroup09DaemonKilledAndRestartedUnderLoad(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	high.Do("pace 500000 4 500")
	low.Do("loop 200000 8")

	for range 3 {
		before := looped(low)
		n.KillDaemon()
		n.Eventually("the low client goes on without a daemon", func() bool { return looped(low) > before+20 })
		n.StartDaemon()
		if !node.Wait(5*time.Second, func() bool {
			return n.Attached(high.PID()) != nil && n.Attached(low.PID()) != nil
		}) {
			t.Fatalf("not re-attached\n%s", n.Log())
		}
		waitGate(n, low, "yielding")
	}
	high.Do("endloop")
	launched := low.Number("endloop")
	low.Do("sync")
	if ran := low.Number("count"); ran != launched {
		t.Errorf("%d launches, %d kernels ran", launched, ran)
	}
}

// 9: a frozen daemon is as good as none for those that run.
func TestGroup09DaemonFrozenUnderLoad(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	high.Do("pace 500000 4 500")
	low.Do("loop 200000 8")
	n.FreezeDaemon()
	before := looped(low)
	n.Eventually("the low client goes on beside a frozen daemon", func() bool { return looped(low) > before+20 })
	n.SignalDaemon(syscall.SIGCONT)
	n.Eventually("heddled sees both again", func() bool {
		return n.Attached(high.PID()) != nil && n.Attached(low.PID()) != nil
	})
	high.Do("endloop")
	low.Do("endloop")
}

// 9: the holder dies while there is no daemon to tell: the held client notices
// by itself.
func TestGroup09HolderDiesWithoutADaemon(t *testing.T) {
	n, c := start(t, node.Options{Config: "[class.low]\nmax_hold = \"100s\"\n"}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	high.Do("launch %d", (100 * time.Second).Nanoseconds())
	n.KillDaemon()
	low.Send("launch 1000")
	if answer, ok := low.AnswerWithin(100 * time.Millisecond); ok {
		t.Fatalf("without a daemon the last verdict was forgotten: %s", answer)
	}
	high.Kill()
	low.Answer()
}

func TestClientStartedBeforeTheDaemonAttachesLater(t *testing.T) {
	n := node.New(t, node.Options{})
	c := n.Client(node.Hints{Priority: "low", Name: "early"}).Open(0)
	c.Do("launch 1000")
	c.Do("sync")
	n.StartDaemon()
	n.Eventually("the early client is attached", func() bool { return n.Attached(c.PID()) != nil })
}

func TestDaemonStopsOnSIGTERMWithLivingClients(t *testing.T) {
	n, c := start(t, node.Options{}, "low")
	n.StopDaemon()
	c[0].Do("launch 1000")
	c[0].Do("sync")
	if left := n.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestIdentityAndOverridesSurviveARestart(t *testing.T) {
	n, c := start(t, node.Options{}, "low")
	id := n.Attached(c[0].PID()).GetId()
	n.SetPriority(c[0].PID(), 9)
	n.KillDaemon()
	n.StartDaemon()
	n.Eventually("the client is back", func() bool { return n.Attached(c[0].PID()) != nil })
	back := n.Attached(c[0].PID())
	if back.GetId() != id {
		t.Errorf("id %d became %d", id, back.GetId())
	}
	if back.GetPriority() != 9 {
		t.Errorf("priority = %d, want 9", back.GetPriority())
	}
}

func looped(c *node.Client) uint64 { return c.Number("looped") }
