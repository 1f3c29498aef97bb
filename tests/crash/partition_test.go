package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/partition"
	"github.com/heddle-project/heddle/partition/mig"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/nvml"
	"github.com/heddle-project/heddle/tests/softgpu"
)

// cutter is what a process of its own does to a device that is cut with MIG: it recovers it, and then, if
// it is to, carries a random plan out. It says on its output what it finds and does.
type cutter struct {
	Library string
	Journal string
	Device  string
	Boot    string
	Seed    uint64
	Recover bool
}

const cutterVariable = "HEDDLE_CRASH_CUTTER"

// TestCutter is that process. It is no test by itself.
func TestCutter(t *testing.T) {
	text := os.Getenv(cutterVariable)
	if text == "" {
		t.Skip("it is a part of another test")
	}
	var c cutter
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	c.run(t)
}

func (c *cutter) run(t *testing.T) {
	t.Helper()
	driver, err := nvml.Open(c.Library)
	if err != nil {
		t.Fatal(err)
	}
	device, err := gpu.ParseUUID(c.Device)
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := driver.Profiles(t.Context(), device)
	if err != nil {
		t.Fatal(err)
	}
	board, err := partition.NewBoard(profiles)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mig.Open(mig.Options{MIG: driver, Journal: c.Journal, Boot: c.Boot})
	if err != nil {
		t.Fatal(err)
	}
	if c.Recover {
		if err := e.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now, err := e.Instances(t.Context(), device)
	if err != nil {
		t.Fatal(err)
	}
	var ours partition.Layout
	for _, p := range now {
		if !p.Foreign {
			ours = append(ours, p.Instance)
		}
	}
	fmt.Printf("ours: %s\n", board.String(ours.Sorted()))
	if c.Recover {
		return
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	names := []string{"1g.10gb", "1g.10gb+me", "2g.20gb", "1g.20gb", "3g.40gb"}
	for {
		var wanted []int
		for range rng.IntN(4) {
			p, err := board.Named(names[rng.IntN(len(names))])
			if err != nil {
				t.Fatal(err)
			}
			wanted = append(wanted, p.ID)
		}
		l, err := board.Arrange(now, wanted, nil)
		if err != nil {
			continue // there is no room for these
		}
		plan, err := board.Diff(now, l)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("want: %s\n", board.String(l))
		if err := e.Apply(t.Context(), device, plan); err != nil {
			t.Fatal(err)
		}
		fmt.Println("done")
		return
	}
}

// cutting is the state of the test around the processes.
type cutting struct {
	t    *testing.T
	node *softgpu.Node
	c    cutter
}

// start starts a process.
func (x *cutting) start(c cutter) (*exec.Cmd, *bufio.Scanner) {
	x.t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		x.t.Fatal(err)
	}
	cmd := exec.CommandContext(x.t.Context(), os.Args[0], "-test.run=^TestCutter$") // this test itself
	// The race detector lets a process linger for a second at its end.
	cmd.Env = append(append(os.Environ(), x.node.Env()...), cutterVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// line waits for a line that begins with the word, and returns the rest.
func (x *cutting) line(lines *bufio.Scanner, word string) (rest string, ok bool) {
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), word); ok {
			return rest, true
		}
		if strings.Contains(lines.Text(), "FAIL") || strings.Contains(lines.Text(), "_test.go") {
			x.t.Errorf("the process says: %s", lines.Text())
		}
	}
	return "", false
}

// foreign are the instances that the test itself made, on both devices.
func (x *cutting) foreign(serials []uint64) (found []softgpu.GPUInstance, all int) {
	x.t.Helper()
	for device := range 2 {
		m, err := x.node.MIG(x.t.Context(), device)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, in := range m.Instances {
			if slices.Contains(serials, in.Serial) {
				found = append(found, in)
			}
		}
		all += len(m.Instances)
	}
	return found, all
}

// A process that cuts a device is killed at random points, and the next one recovers it: the device is as
// it was or as it was wanted, by the software GPU's own judgement nothing is where it may not be,
// nothing leaked, and neither foreign instances nor the other device have changed.
func TestCutsKilledAtRandomPoints(t *testing.T) {
	rng := random(t)
	n, err := softgpu.New(t.Context(), t.TempDir(), softgpu.Options{GPUs: []string{"H100", "H100"}})
	if err != nil {
		t.Skipf("no software GPU: %v", err)
	}
	t.Cleanup(func() { _ = n.Close() })
	for device, at := range []softgpu.Placed{{Profile: 19, Start: 3}, {Profile: 14, Start: 2}} {
		if err := n.SetMIG(t.Context(), device, true); err != nil {
			t.Fatal(err)
		}
		if _, err := n.CreateMIG(t.Context(), device, at, false); err != nil {
			t.Fatal(err)
		}
	}
	x := &cutting{t: t, node: n, c: cutter{
		Library: filepath.Join(n.Build().Libraries, "libnvidia-ml.so.1"), Journal: filepath.Join(t.TempDir(), "journal"), Device: n.GPUs()[0].UUID, Boot: "one",
	}}
	var serials []uint64
	for device := range 2 {
		m, err := n.MIG(t.Context(), device)
		if err != nil {
			t.Fatal(err)
		}
		serials = append(serials, m.Instances[0].Serial)
	}
	foreign, _ := x.foreign(serials)
	longest := 4 * time.Millisecond // a transaction, at first; then what they take
	killed, undone := 0, 0
	for i := range 2 * kills(t) {
		c := x.c
		c.Seed = rng.Uint64()
		cmd, lines := x.start(c)
		before, _ := x.line(lines, "ours: ")
		want, ok := x.line(lines, "want: ")
		if !ok {
			t.Fatalf("transaction %d: it has no plan", i)
		}
		begin := time.Now()
		if rng.IntN(4) != 0 {
			<-time.After(time.Duration(rng.Int64N(int64(longest))))
			_ = cmd.Process.Kill()
		}
		if _, done := x.line(lines, "done"); done {
			longest = (3*longest + time.Since(begin)) / 4
		} else {
			killed++
		}
		_ = cmd.Wait()

		c.Recover = true
		cmd, lines = x.start(c)
		after, ok := x.line(lines, "ours: ")
		if err := cmd.Wait(); err != nil || !ok || after != before && after != want {
			t.Fatalf("transaction %d, from %q to %q: recovered to %q, %v", i, before, want, after, err)
		}
		if after == before && before != want {
			undone++
		}
		if err := n.CheckMIG(t.Context()); err != nil {
			t.Fatalf("transaction %d, from %q to %q: %v", i, before, want, err)
		}
		still, all := x.foreign(serials)
		if diff := cmp.Diff(foreign, still); diff != "" {
			t.Fatalf("transaction %d: foreign instances changed: %s", i, diff)
		}
		ours := 0
		if after != "nothing" {
			ours = 1 + strings.Count(after, ", ")
		}
		if all != ours+len(foreign) {
			t.Fatalf("transaction %d: %d instances are there, %q are ours and %d foreign", i, all, after, len(foreign))
		}
	}
	t.Logf("%d killed, %d undone, a transaction takes %v", killed, undone, longest)
	if killed == 0 {
		t.Error("no process was killed in time")
	}
}
