package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-project/heddle/tests/node"
)

// rank starts a rank of a gang that has not opened a device yet.
func rank(n *node.Node, gang string, number int) *node.Client {
	return n.Client(node.Hints{
		Priority: "normal", Name: fmt.Sprintf("%s-%d", strings.ReplaceAll(gang, ":", "-"), number), Env: []string{"HEDDLE_GANG=" + gang},
	})
}

func TestGangRunsWithAllItsRanksOrNotAtAll(t *testing.T) {
	n, _ := start(t, node.Options{GPUs: "2xH100"})
	first := rank(n, "job:2", 0).Open(0)
	waitGate(n, first, "closed")
	first.Send("launch 1000")
	n.Eventually("the first rank is shown as held for its gang", func() bool {
		c := n.Attached(first.PID())
		return device(n, first).GetHeld() && c.GetGang() == "job" && c.GetGangSize() == 2 && c.GetGangRanks() == 1
	})
	if answer, ok := first.AnswerWithin(20 * time.Millisecond); ok {
		t.Fatalf("half a gang launched: %s", answer)
	}
	second := rank(n, "job:2", 1).Open(1)
	first.Answer()
	second.Do("launch 1000")

	second.Kill()
	waitGate(n, first, "closed")
	first.Send("launch 1000")
	if answer, ok := first.AnswerWithin(20 * time.Millisecond); ok {
		t.Fatalf("what a rank left behind launched: %s", answer)
	}
	rank(n, "job:2", 1).Open(1)
	first.Answer()
	first.Do("sync")
	if got := first.Number("count"); got != 2 {
		t.Errorf("%d kernels of the first rank ran, want 2", got)
	}
	if log := n.Log(); !strings.Contains(log, "gang has lost a rank") {
		t.Error("the log does not tell of the lost rank")
	}
}

// A new heddled knows nothing of gangs until their ranks are back, and then the same.
func TestGangFindsTogetherUnderANewDaemon(t *testing.T) {
	n, _ := start(t, node.Options{GPUs: "2xH100"})
	ranks := []*node.Client{rank(n, "job:2", 0).Open(0), rank(n, "job:2", 1).Open(1)}
	complete := func() bool {
		return n.Attached(ranks[0].PID()).GetGangRanks() == 2 && device(n, ranks[0]).GetGate() == "open" &&
			device(n, ranks[1]).GetGate() == "open"
	}
	n.Eventually("the gang is complete", complete)
	n.KillDaemon()
	for _, c := range ranks {
		c.Do("launch 1000") // the last verdict stands
	}
	n.StartDaemon()
	n.Eventually("the gang is complete again", complete)
	ranks[1].Kill()
	waitGate(n, ranks[0], "closed")
}

// Two gangs over two devices, each of which decides for itself: still whoever looks sees each gang open
// on both or on none, under exclusive turns one at a time, and both go on.
func TestTwoGangsOverTwoDevices(t *testing.T) {
	for _, policy := range []string{"timeslice", "heddle"} {
		t.Run(policy, func(t *testing.T) {
			twoGangs(t, policy, policy == "timeslice")
		})
	}
}

func twoGangs(t *testing.T, policy string, exclusive bool) {
	n, _ := start(t, node.Options{
		GPUs: "2xH100", Config: "[scheduling]\npolicy = \"" + policy + "\"\nquantum = \"20ms\"\n",
	})
	var clients []*node.Client
	for _, gang := range []string{"red", "blue"} {
		for i := range 2 {
			clients = append(clients, rank(n, gang+":2", i).Open(i))
		}
	}
	for _, c := range clients {
		n.Eventually("the gang is complete", func() bool { return n.Attached(c.PID()).GetGangRanks() == 2 })
	}
	for _, c := range clients {
		c.Do("loop 500000 1")
	}
	looks, both := 0, 0
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); looks++ {
		open := openRanks(n)
		if open["red"]%2 != 0 || open["blue"]%2 != 0 {
			t.Fatalf("a gang runs by half: %v", open)
		}
		if open["red"] != 0 && open["blue"] != 0 {
			both++
		}
	}
	if exclusive && both > looks/5 {
		t.Errorf("both gangs were open at %d of %d looks", both, looks)
	}
	for i, c := range clients {
		if got := c.Number("endloop"); got < 50 {
			t.Errorf("rank %d launched %d times in 1.5 s, of 3000 if it were alone", i, got)
		}
	}
}

// openRanks counts, of each gang, the devices on which ranks of it are not closed.
func openRanks(n *node.Node) map[string]int {
	open := map[string]int{}
	for _, c := range n.Clients() {
		for _, d := range c.GetDevices() {
			if d.GetGate() != "closed" {
				open[c.GetGang()]++
			}
		}
	}
	return open
}

// Under the default policy, which lets nobody get ahead of those who have work.
func TestGangThatIsNotCompleteIsInNobodysWay(t *testing.T) {
	n, clients := start(t, node.Options{}, "normal", "normal")
	lonely := rank(n, "job:2", 0).Open(0)
	waitGate(n, lonely, "closed")
	lonely.Send("launch 1000")
	n.Eventually("the rank waits", func() bool { return device(n, lonely).GetHeld() })
	for _, c := range clients {
		c.Do("loop 500000 1")
	}
	n.Eventually("both others have launched two hundred times", func() bool {
		return clients[0].Number("looped") >= 200 && clients[1].Number("looped") >= 200
	})
	for _, c := range clients {
		c.Do("endloop")
	}
}

// A gang and a client of none take turns on the device that they share; neither starves.
func TestGangBesideAnotherClient(t *testing.T) {
	n, _ := start(t, node.Options{
		GPUs: "2xH100", Config: "[scheduling]\npolicy = \"timeslice\"\nquantum = \"20ms\"\n",
	})
	single := n.Client(node.Hints{Priority: "normal", Name: "single"}).Open(0)
	all := []*node.Client{single, rank(n, "job:2", 0).Open(0), rank(n, "job:2", 1).Open(1)}
	for _, c := range all {
		c.Do("loop 500000 1")
	}
	n.Eventually("all have launched a hundred times", func() bool {
		for _, c := range all {
			if c.Number("looped") < 100 {
				return false
			}
		}
		return true
	})
	for _, c := range all {
		c.Do("endloop")
	}
}
