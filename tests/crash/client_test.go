package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/heddle-project/heddle/tests/node"
)

func kills(t *testing.T) int {
	t.Helper()
	return number(t, "HEDDLE_CRASH_KILLS", 50)
}

func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(number(t, "HEDDLE_CRASH_SEED", int(time.Now().UnixNano()&0x7fffffff)))
	t.Logf("HEDDLE_CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a positive number", name, text)
	}
	return n
}

// 8: clients are killed at random points of their lives, while a high and a
// low client work on: both go on, heddled goes on, nothing is left.
func TestGroup08ClientsKilledAtRandomPoints(t *testing.T) {
	rng := random(t)
	n := node.New(t, node.Options{})
	n.StartDaemon()
	high := n.Client(node.Hints{Priority: "high", Name: "bystander-high"}).Open(0)
	low := n.Client(node.Hints{Priority: "low", Name: "bystander-low"}).Open(0)
	high.Do("pace 300000 2 2000")
	low.Do("loop 100000 4")

	classes := []string{"realtime", "high", "normal", "low", "idle"}
	scripts := [][]string{
		{"init"},
		{"init", "device 0"},
		{"init", "device 0", "loop 50000 1"},
		{"init", "device 0", "loop 400000 64"},
		{"init", "device 0", "stream", "capture 0 1000 50", "graph", "graph", "sync", "loop 1000 1"},
		{"init", "device 0", "alloc 1048576", "launch 5000000 20", "alloc 4096", "free 0", "ctxsync"},
		{"init", "device 0", "loop 20000 2", "fork", "init", "launch 1000"},
	}
	for i := range kills(t) {
		victim := n.Client(node.Hints{Priority: classes[rng.IntN(len(classes))], Name: "victim"})
		for _, command := range scripts[rng.IntN(len(scripts))] {
			victim.Send("%s", command)
		}
		<-time.After(time.Duration(rng.IntN(60_000)) * time.Microsecond)
		victim.Kill()
		if i%10 != 9 {
			continue
		}
		for _, bystander := range []*node.Client{high, low} {
			before := bystander.Number("looped")
			n.Eventually("the bystanders go on", func() bool { return bystander.Number("looped") > before })
		}
	}
	n.Eventually("only the bystanders are clients", func() bool { return len(n.Clients()) == 2 })
	for _, bystander := range []*node.Client{high, low} {
		launched := bystander.Number("endloop")
		bystander.Do("sync")
		if ran := bystander.Number("count"); ran != launched {
			t.Errorf("%d launches, %d kernels ran", launched, ran)
		}
	}
	high.Kill()
	low.Kill()
	n.Eventually("no client is left", func() bool { return len(n.Clients()) == 0 })
	n.StopDaemon()
	if left := n.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The daemon is killed at random points, its clients work on and come back.
func TestDaemonKilledAtRandomPoints(t *testing.T) {
	rng := random(t)
	n := node.New(t, node.Options{})
	n.StartDaemon()
	high := n.Client(node.Hints{Priority: "high", Name: "high"}).Open(0)
	low := n.Client(node.Hints{Priority: "low", Name: "low"}).Open(0)
	high.Do("pace 300000 2 2000")
	low.Do("loop 100000 4")
	for range max(1, kills(t)/10) {
		n.StartAgain(time.Duration(rng.IntN(300_000)) * time.Microsecond)
		n.Eventually("both are attached again", func() bool {
			return n.Attached(high.PID()) != nil && n.Attached(low.PID()) != nil
		})
	}
	for _, c := range []*node.Client{high, low} {
		launched := c.Number("endloop")
		c.Do("sync")
		if ran := c.Number("count"); ran != launched {
			t.Errorf("%d launches, %d kernels ran", launched, ran)
		}
	}
}
