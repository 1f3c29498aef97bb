package integration

import (
	"strconv"
	"testing"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/tests/node"
)

// long is the device time of a kernel that certainly still runs when the next
// command arrives.
const long = 300 * time.Millisecond

// patient keeps max_hold out of what a test looks at.
const patient = "[class.low]\nmax_hold = \"30s\"\n"

// start brings up a node with a daemon and one client per class.
func start(t *testing.T, opts node.Options, classes ...string) (*node.Node, []*node.Client) {
	t.Helper()
	if opts.Config == "" {
		opts.Config = patient
	}
	n := node.New(t, opts)
	n.StartDaemon()
	clients := make([]*node.Client, len(classes))
	for i, class := range classes {
		clients[i] = n.Client(node.Hints{Priority: class, Name: class + strconv.Itoa(i)}).Open(0)
	}
	return n, clients
}

func TestLowClassWaitsWhileHighClassIsBusy(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")

	high.Do("launch %d", long.Nanoseconds())
	low.Send("launch 1000")
	n.Eventually("the low client is shown as held", func() bool {
		return device(n, low).GetHeld()
	})
	if answer, ok := low.AnswerWithin(20 * time.Millisecond); ok {
		t.Fatalf("the low client launched beside the high one: %s", answer)
	}
	high.Do("sync")
	low.Answer()
	low.Do("sync")
	if got := low.Number("count"); got != 1 {
		t.Errorf("%d kernels ran, want 1", got)
	}
	n.Eventually("a hold is counted", func() bool { return device(n, low).GetHolds() > 0 })
}

func TestHighClassNeverWaitsForLow(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	low.Do("loop 200000 1")
	for range 20 {
		high.Do("launch 1000")
		high.Do("sync")
	}
	low.Do("endloop")
	if d := device(n, high); d.GetHolds() != 0 {
		t.Errorf("the high client was held %d times", d.GetHolds())
	}
}

func TestClientsOfOneClassDoNotHoldEachOther(t *testing.T) {
	n, c := start(t, node.Options{}, "normal", "normal")
	c[0].Do("launch %d", long.Nanoseconds())
	c[1].Do("launch 1000")
	for i, client := range c {
		if d := device(n, client); d.GetHolds() != 0 {
			t.Errorf("client %d was held %d times", i, d.GetHolds())
		}
	}
}

// The end of a preempted client never changes who runs.
func TestEndOfTheHolderFreesTheHeld(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	high.Do("launch %d", (10 * time.Second).Nanoseconds())
	low.Send("launch 1000")
	n.Eventually("the low client is held", func() bool { return device(n, low).GetHeld() })
	high.Kill()
	low.Answer()
	low.Do("sync")
}

func TestMaxHoldOpensAndSaysSo(t *testing.T) {
	n, c := start(t, node.Options{Config: "[class.low]\nmax_hold = \"50ms\"\n"}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	high.Do("launch %d", (2 * time.Second).Nanoseconds())
	low.Do("launch 1000")
	n.Eventually("the overrun is shown", func() bool { return device(n, low).GetOverruns() == 1 })
}

func TestPriorityOfALivingClientCanBeChanged(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	n.SetPriority(low.PID(), 2)
	waitGate(n, low, "open")
	high.Do("launch %d", long.Nanoseconds())
	low.Do("launch 1000")
	if got := device(n, low).GetHolds(); got != 0 {
		t.Errorf("held %d times after it was raised", got)
	}
}

// 6: what follows a held launch on the same thread stays behind it.
func TestGroup06OrderBehindAHeldLaunch(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	high.Do("launch %d", long.Nanoseconds())
	low.Send("launch 1000")
	low.Send("record")
	low.Send("eventsync")
	low.Send("count")
	n.Eventually("the low client is held", func() bool { return device(n, low).GetHeld() })
	high.Do("sync")
	for range 3 {
		low.Answer()
	}
	if got := low.Answer(); got != "ok 1" {
		t.Errorf("the copy behind the launch read %q, want ok 1", got)
	}
}

// 7: two streams of one process that wait for each other survive suspension.
func TestGroup07CrossStreamWaitUnderSuspension(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := c[0], c[1]
	waitGate(n, low, "yielding")
	low.Do("stream")
	low.Do("stream")
	for round := range 10 {
		high.Do("launch 3000000")
		low.Send("use 0")
		low.Send("launch 500000")
		low.Send("record")
		low.Send("use 1")
		low.Send("waitevent")
		low.Send("launch 500000")
		low.Send("ctxsync")
		high.Do("sync")
		for range 7 {
			if answer := low.Answer(); answer[:2] != "ok" {
				t.Fatalf("round %d: %s", round, answer)
			}
		}
	}
	if got := low.Number("count"); got != 20 {
		t.Errorf("%d kernels ran, want 20", got)
	}
}

// 5: with a gate that closes and opens all the time, a capture in each mode
// holds just the user's nodes and stays valid.
func TestGroup05CaptureUnderAClosingGate(t *testing.T) {
	for mode, name := range []string{"global", "thread local", "relaxed"} {
		t.Run(name, func(t *testing.T) {
			n, c := start(t, node.Options{}, "high", "low")
			high, low := c[0], c[1]
			waitGate(n, low, "yielding")
			low.Do("stream")
			high.Do("pace 400000 1 300")
			for range 20 {
				if got := low.Number("capture %d 50000 5", mode); got != 5 {
					t.Fatalf("the captured graph has %d nodes, want 5", got)
				}
			}
			low.Do("graph")
			low.Do("sync")
			if got := low.Number("count"); got != 5 {
				t.Errorf("the graph ran %d kernels, want 5", got)
			}
			high.Do("endloop")
		})
	}
}

// device is the client's first device as heddled lists it.
func device(n *node.Node, c *node.Client) *heddlev1.ClientDevice {
	attached := n.Attached(c.PID())
	if devices := attached.GetDevices(); len(devices) > 0 {
		return devices[0]
	}
	return nil
}

func waitGate(n *node.Node, c *node.Client, gate string) {
	n.Eventually("the gate is shown as "+gate, func() bool { return device(n, c).GetGate() == gate })
}
