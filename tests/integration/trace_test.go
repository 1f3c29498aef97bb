package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// traceDocument is what a viewer of Chrome trace events reads.
type traceDocument struct {
	Events []traceEvent      `json:"traceEvents"`
	Notes  map[string]string `json:"otherData"`
}

type traceEvent struct {
	Phase string         `json:"ph"`
	PID   uint64         `json:"pid"`
	TID   int            `json:"tid"`
	TS    float64        `json:"ts"`
	Dur   float64        `json:"dur"`
	Cat   string         `json:"cat"`
	Name  string         `json:"name"`
	Args  map[string]any `json:"args"`
}

// record records a timeline with the command line, and checks what every timeline must be.
func record(t *testing.T, n *node.Node, args ...string) traceDocument {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.json")
	heddle(t, n, append([]string{"trace", "record", "-o", path}, args...)...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d traceDocument
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	type track struct {
		pid uint64
		tid int
	}
	named := map[track]bool{}
	end := map[track]float64{}
	for _, e := range d.Events {
		at := track{e.PID, e.TID}
		switch {
		case e.Phase == "M":
			named[at] = named[at] || e.Name == "thread_name"
		case !named[at] || e.Name == "":
			t.Fatalf("without a name: %+v", e)
		case e.TS < end[at]-0.0005: // a sum in binary fractions
			t.Fatalf("before %v, the end of what is on its track: %+v", end[at], e)
		default:
			end[at] = e.TS + e.Dur
		}
	}
	if got := d.Notes["missing_events"]; got != "0" {
		t.Errorf("%s events are missing", got)
	}
	return d
}

// of are the slices of one kind of one client.
func (d *traceDocument) of(client uint64, category string) []traceEvent {
	var list []traceEvent
	for _, e := range d.Events {
		if e.PID == client && e.Phase == "X" && e.Cat == category {
			list = append(list, e)
		}
	}
	return list
}

// A service of a high class works and pauses, a training job of a low class works all the time: the
// timeline shows the launches of both, why and for whom the low one waited, and the pauses.
func TestATimelineShowsWhoWaitsForWhom(t *testing.T) {
	n, c := start(t, node.Options{}, "high", "low")
	high, low := n.Attached(c[0].PID()).GetId(), n.Attached(c[1].PID()).GetId()
	waitGate(n, c[1], "yielding")
	c[0].Do("pace 400000 4 3000")
	c[1].Do("loop 200000 2")
	d := record(t, n, "--duration", "1500ms")
	for name, id := range map[string]uint64{"high": high, "low": low} {
		launches, ran := d.of(id, "launch"), d.of(id, "device")
		if len(launches) < 50 || len(ran) < 50 {
			t.Errorf("%s launched %d times, and %d of them ran", name, len(launches), len(ran))
		}
		measured := 0
		for _, e := range ran {
			if e.Name != "tick" {
				t.Fatalf("what ran is called %q", e.Name)
			}
			if e.Args["measured"] == true {
				measured++
			}
		}
		if measured == 0 {
			t.Errorf("%s: nothing was measured", name)
		}
	}
	holder := fmt.Sprintf("high0, client %d", high)
	holds := 0
	for _, e := range d.of(low, "held") {
		if e.Name == "held: peer" && e.Args["holder"] == holder && e.Args["kernel"] == "tick" && e.Dur > 0 {
			holds++
		}
	}
	if holds == 0 {
		t.Errorf("the low client waited for nobody: %v", d.of(low, "held"))
	}
	if held := d.of(high, "held"); len(held) != 0 {
		t.Errorf("the high client waited: %v", held[0])
	}
	pauses := 0
	for _, e := range d.of(high, "idle") {
		if e.Dur > 2500 { // µs, of 3000 that it sleeps
			pauses++
		}
	}
	if pauses < 20 {
		t.Errorf("%d pauses of the high client", pauses)
	}
	n.Eventually("pauses are predicted", func() bool {
		d := record(t, n, "--duration", "500ms", "--client", strconv.FormatUint(high, 10))
		if low := d.of(low, "launch"); len(low) != 0 {
			t.Fatal("the other client is in it, too")
		}
		return len(d.of(high, "predicted")) > 0
	})
}

// Nothing is told any more when nobody looks, and who comes meanwhile is seen.
func TestATimelineTakesInWhoComesAndEnds(t *testing.T) {
	n, c := start(t, node.Options{}, "normal")
	c[0].Do("loop 100000 1")
	path := filepath.Join(t.TempDir(), "t.json")
	cmd := heddleCommand(n, "trace", "record", "-o", path)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.Eventually("the recording has begun", func() bool { return strings.Contains(n.Log(), "trace begins") })
	late := n.Client(node.Hints{Priority: "normal", Name: "late"}).Open(0)
	for range 100 {
		late.Do("launch 1000")
		late.Do("sync")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	data, err := os.ReadFile(path)
	if err != nil || !json.Valid(data) {
		t.Fatalf("%v: %q", err, data)
	}
	if !strings.Contains(string(data), `"name":"late, client`) || !strings.Contains(said.String(), "2 clients") {
		t.Errorf("the late client is not in it: %s", said.String())
	}
	n.Eventually("heddled has ended it", func() bool { return strings.Contains(n.Log(), "trace ended") })
	n.Eventually("the gate is open", func() bool { return device(n, late).GetGate() == "open" })
}
