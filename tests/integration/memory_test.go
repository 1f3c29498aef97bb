package integration

import (
	"strconv"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// 11: what heddled shows is what was allocated, and a failed allocation or the
// free of an unknown pointer changes nothing.
func TestGroup11MemoryIsCounted(t *testing.T) {
	const mib = 1 << 20
	n, c := start(t, node.Options{}, "normal")
	low := c[0]
	const base = 8 // the client's own counter
	memory(n, low, base)
	block := low.Number("alloc %d", 64*mib)
	low.Do("alloc %d", 32*mib)
	memory(n, low, base+96*mib)
	low.Do("free %d", block)
	memory(n, low, base+32*mib)

	low.Send("alloc %d", uint64(1)<<50)
	if answer := low.Answer(); answer != "cuda 2" {
		t.Errorf("an impossible allocation answered %q, want out of memory", answer)
	}
	low.Send("freeptr %d", 12345)
	if answer := low.Answer(); answer != "cuda 1" {
		t.Errorf("the free of an unknown pointer answered %q, want the driver's own invalid value", answer)
	}
	memory(n, low, base+32*mib)
}

// 11: two processes race for the last bytes: the driver decides, the counts
// follow.
func TestGroup11TwoProcessesRaceForTheLastBytes(t *testing.T) {
	n, c := start(t, node.Options{}, "normal", "normal")
	free := c[0].Number("info")
	bytes := free/2 + 1<<20
	for _, client := range c {
		client.Send("alloc %d", bytes)
	}
	won := 0
	for _, client := range c {
		want := uint64(0)
		if client.Answer() == "ok 0" {
			won++
			want = bytes
		}
		n.Eventually("the count is "+strconv.FormatUint(want, 10)+" and the rest", func() bool {
			return device(n, client).GetMemoryBytes() < 1<<20 == (want == 0)
		})
	}
	if won != 1 {
		t.Errorf("%d of 2 got the last bytes, want 1", won)
	}
}

// 15: a device is known by its UUID, whatever number the program gives it.
func TestGroup15VisibleDevicesReordered(t *testing.T) {
	n := node.New(t, node.Options{GPUs: "2xH100"})
	n.StartDaemon()
	plain := n.Client(node.Hints{Priority: "normal"}).Open(1)
	swapped := n.Client(node.Hints{Priority: "normal", Env: []string{"CUDA_VISIBLE_DEVICES=1,0"}}).Open(0)
	if a, b := plain.Do("uuid 1")[0], swapped.Do("uuid 0")[0]; a != b {
		t.Fatalf("device 1 is %s, reordered device 0 is %s", a, b)
	}
	if a, b := device(n, plain).GetUuid(), device(n, swapped).GetUuid(); a == "" || a != b {
		t.Errorf("heddled takes them for different devices: %q and %q", a, b)
	}
	other := n.Client(node.Hints{Priority: "normal"}).Open(0)
	if a, b := device(n, plain).GetUuid(), device(n, other).GetUuid(); a == b {
		t.Errorf("heddled takes two devices for one: %q", a)
	}
}

func memory(n *node.Node, c *node.Client, want uint64) {
	n.Eventually("the memory shown is "+strconv.FormatUint(want, 10), func() bool {
		return device(n, c).GetMemoryBytes() == want
	})
}
