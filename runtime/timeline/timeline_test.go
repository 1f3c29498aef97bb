package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// document is what a viewer reads.
type document struct {
	Unit   string            `json:"displayTimeUnit"`
	Events []event           `json:"traceEvents"`
	Notes  map[string]string `json:"otherData"`
}

type event struct {
	Phase string         `json:"ph"`
	PID   uint64         `json:"pid"`
	TID   int            `json:"tid"`
	TS    float64        `json:"ts"`
	Dur   float64        `json:"dur"`
	Cat   string         `json:"cat"`
	Name  string         `json:"name"`
	Scope string         `json:"s"`
	Args  map[string]any `json:"args"`
}

var options = Options{Tool: "heddle test", Class: func(p uint32) string { return fmt.Sprint("class ", p) }}

func render(t *testing.T, messages ...*heddlev1.RecordTraceResponse) (document, Summary) {
	t.Helper()
	var b strings.Builder
	w := NewWriter(&b, options)
	for _, m := range messages {
		if err := w.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal([]byte(b.String()), &d); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	check(t, &d)
	return d, w.Summary()
}

// check holds a document against what its format demands.
func check(t *testing.T, d *document) {
	t.Helper()
	type track struct {
		pid uint64
		tid int
	}
	processes, named, owners := map[uint64]bool{}, map[track]bool{}, map[int]uint64{}
	end := map[track]float64{}
	if d.Unit != "ns" {
		t.Errorf("unit %q", d.Unit)
	}
	for _, e := range d.Events {
		at := track{e.PID, e.TID}
		switch {
		case e.Phase == "M" && e.Name == "process_name":
			processes[e.PID] = e.Args["name"] != ""
		case e.Phase == "M" && e.Name == "thread_name":
			named[at] = e.Args["name"] != ""
			if owner, taken := owners[e.TID]; taken || e.TID == 0 {
				t.Errorf("track %d is of process %d, too: %+v", e.TID, owner, e)
			}
			owners[e.TID] = e.PID
		case e.Phase == "M":
		case e.Phase == "X" || e.Phase == "i":
			if !processes[e.PID] || !named[at] || e.Name == "" {
				t.Errorf("%+v on something without a name", e)
			}
			// Half a nanosecond: sums of what JSON holds in binary fractions.
			if e.TS < end[at]-0.0005 || e.Dur < 0 {
				t.Errorf("%+v begins before %v on its track", e, end[at])
			}
			end[at] = e.TS + e.Dur
		default:
			t.Errorf("phase %q: %+v", e.Phase, e)
		}
	}
}

// slices are those of a track, by its name, as "name@from+length".
func (d *document) slices(track string) []string {
	tracks := map[string]string{}
	var out []string
	for _, e := range d.Events {
		key := fmt.Sprint(e.PID, " ", e.TID)
		if e.Name == "thread_name" {
			tracks[key], _ = e.Args["name"].(string)
		}
		if e.Phase == "X" && tracks[key] == track {
			out = append(out, fmt.Sprintf("%s@%g+%g", e.Name, e.TS, e.Dur))
		}
	}
	return out
}

func (d *document) find(t *testing.T, name string) event {
	t.Helper()
	for _, e := range d.Events {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no event %q in %+v", name, d.Events)
	return event{}
}

const begin = 1_000_000_000_000

func hello() *heddlev1.RecordTraceResponse {
	return &heddlev1.RecordTraceResponse{
		Start: &heddlev1.TraceStart{ClockNs: begin, Time: timestamppb.New(time.Unix(7, 0)), Version: "test"},
		Clients: []*heddlev1.Client{
			{Id: 3, Pid: 4242, Name: "serve \"it\"", Priority: 2}, {Id: 4, Pid: 7, Command: "/bin/train --all", Priority: 7},
		},
		Devices: []*heddlev1.TraceDevice{
			{Uuid: "GPU-1", Number: 0, Index: 5, Name: "H100"}, {Uuid: "MIG-1", Number: 1, Index: 6, Name: "H100 MIG 1g.10gb"},
		},
		Kernels: []*heddlev1.TraceKernel{
			{Client: 3, Key: 10, Name: "gemm<\u00e9>", Grid: []uint32{1, 2, 3}, Block: []uint32{64, 1, 1}, SharedBytes: 9},
			{Client: 3, Key: 11, Name: "relu", Graph: true},
		},
	}
}

// of makes a message of events of client 3; times are in µs from the beginning.
func of(events ...*heddlev1.TraceEvent) *heddlev1.RecordTraceResponse {
	for _, e := range events {
		if e.Client == 0 {
			e.Client = 3
		}
		e.TimeNs = begin + e.TimeNs*1000
		e.DurationNs *= 1000
		e.PredictedNs *= 1000
	}
	return &heddlev1.RecordTraceResponse{Events: events}
}

func launch(at, took uint64, stream uint32, predicted uint64, measured bool) *heddlev1.TraceEvent {
	return &heddlev1.TraceEvent{
		Kind: heddlev1.TraceKind_TRACE_KIND_LAUNCH, TimeNs: at, DurationNs: took, Stream: &stream, PredictedNs: predicted, Kernel: 10, Measured: measured,
	}
}

func ran(at, took uint64, stream uint32) *heddlev1.TraceEvent {
	return &heddlev1.TraceEvent{Kind: heddlev1.TraceKind_TRACE_KIND_DEVICE, TimeNs: at, DurationNs: took, Stream: &stream, Kernel: 10}
}

func gapped(at, took, predicted uint64) *heddlev1.TraceEvent {
	return &heddlev1.TraceEvent{Kind: heddlev1.TraceKind_TRACE_KIND_GAP, TimeNs: at, DurationNs: took, PredictedNs: predicted, Kernel: 10}
}

func TestATimelineNamesWhatItShows(t *testing.T) {
	d, s := render(t, hello(), of(
		launch(10, 2, 1, 0, false),
		&heddlev1.TraceEvent{
			Kind: heddlev1.TraceKind_TRACE_KIND_HOLD, Client: 4, Device: 1, TimeNs: 20, DurationNs: 30, PredictedNs: 4, Kernel: 10,
			Reason: heddlev1.TraceReason_TRACE_REASON_PEER, Holder: 3, Overrun: true,
		},
		&heddlev1.TraceEvent{Kind: heddlev1.TraceKind_TRACE_KIND_LAUNCH, TimeNs: 30, DurationNs: 2, Kernel: 11, Graph: true},
		&heddlev1.TraceEvent{
			Kind: heddlev1.TraceKind_TRACE_KIND_HOLD, Client: 4, TimeNs: 60, DurationNs: 3, YieldPoint: true,
			Reason: heddlev1.TraceReason_TRACE_REASON_CLOSED,
		},
		&heddlev1.TraceEvent{Kind: 77, TimeNs: 40}, // of a later version
	))
	want := map[string][]string{
		"GPU 5 launches": {"gemm<\u00e9>@10+2", "graph of relu@30+2"}, "GPU 6 MIG 1g.10gb held": {"held: peer@20+30"},
	}
	for track, slices := range want {
		if diff := cmp.Diff(slices, d.slices(track)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", track, diff)
		}
	}
	hold := d.find(t, "held: peer")
	if hold.PID != 4 || hold.Args["holder"] != `serve "it", client 3` || hold.Args["ended_by_max_hold"] != true || hold.Args["at_yield_point"] != false ||
		hold.Args["predicted_us"] != 4.0 || hold.Args["kernel"] != "kernel 000000000000000a" {
		t.Errorf("%+v", hold)
	}
	if yield := d.find(t, "held: closed"); yield.Args["at_yield_point"] != true || yield.Args["kernel"] != nil {
		t.Errorf("%+v", yield)
	}
	if gemm := d.find(t, "gemm<\u00e9>"); gemm.PID != 3 || gemm.Args["grid"] != "1 x 2 x 3" || gemm.Args["stream"] != 1.0 {
		t.Errorf("%+v", gemm)
	}
	var names []any
	for _, e := range d.Events {
		if e.Name == "process_name" {
			names = append(names, e.Args["name"])
		}
	}
	if diff := cmp.Diff([]any{`serve "it", client 3, pid 4242, class 2`, "/bin/train, client 4, pid 7, class 7"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Clients != 2 || s.Launches != 2 || s.Holds != 2 || s.Missing != 0 || d.Notes["begun"] != "1970-01-01T00:00:07Z" {
		t.Errorf("%+v, %v", s, d.Notes)
	}
}

func TestLaunchesRunWhenTheyCanHave(t *testing.T) {
	tests := []struct {
		name   string
		events []*heddlev1.TraceEvent
		want   []string
	}{
		{"one after the other", []*heddlev1.TraceEvent{launch(0, 2, 1, 10, false), launch(3, 2, 1, 10, false), launch(50, 2, 1, 5, false), gapped(90, 1, 0)},
			[]string{"0+10", "10+10", "50+5"}},
		{"measured for as long as that was", []*heddlev1.TraceEvent{launch(0, 2, 1, 10, true), launch(3, 2, 1, 10, false), ran(0, 20, 1), gapped(90, 1, 0)},
			[]string{"0+20", "20+10"}},
		{"ended when the device was idle", []*heddlev1.TraceEvent{launch(0, 2, 1, 10, false), launch(3, 2, 1, 10, false), launch(5, 2, 1, 10, false), gapped(24, 1, 0)},
			[]string{"0+4", "4+10", "14+10"}},
		{"never before they were made", []*heddlev1.TraceEvent{launch(0, 2, 1, 10, false), launch(20, 2, 1, 30, false), gapped(40, 1, 0)},
			[]string{"0+10", "20+20"}},
		{"as the last measured one where nothing is predicted", []*heddlev1.TraceEvent{launch(0, 2, 1, 0, true), ran(0, 7, 1), launch(20, 2, 1, 0, false), gapped(90, 1, 0)},
			[]string{"0+7", "20+7"}},
		{"not at all where nothing is known", []*heddlev1.TraceEvent{launch(0, 2, 1, 0, false), launch(20, 2, 1, 0, true), gapped(90, 1, 0)}, nil},
		{"as predicted where the measuring never came", []*heddlev1.TraceEvent{launch(0, 2, 1, 9, true), gapped(90, 1, 0)}, []string{"0+9"}},
		{"in the order of time, whoever tells first", []*heddlev1.TraceEvent{launch(5, 2, 1, 4, false), launch(0, 1, 1, 4, false), gapped(90, 1, 0)},
			[]string{"0+4", "5+4"}},
		{"cut at the end", []*heddlev1.TraceEvent{launch(0, 2, 1, 100, false)}, []string{"0+2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, _ := render(t, hello(), of(tt.events...))
			got := d.slices("GPU 5 device, stream 1")
			for i := range got {
				_, got[i], _ = strings.Cut(got[i], "@")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGapsStandBesideTheirPredictions(t *testing.T) {
	d, s := render(t, hello(), of(gapped(10, 20, 0), gapped(40, 10, 15), gapped(52, 30, 5), gapped(100, 1, 1<<40)))
	if diff := cmp.Diff([]string{"idle@10+20", "idle@40+10", "idle@52+30", "idle@100+1"}, d.slices("GPU 5 idle")); diff != "" {
		t.Errorf("real (-want +got):\n%s", diff)
	}
	// One that is longer than what happened takes the next one's place, which is drawn below.
	if diff := cmp.Diff([]string{"predicted@40+15", "predicted@52+5", "predicted@100+1.000001e+06"}, d.slices("GPU 5 idle, predicted")); diff != "" {
		t.Errorf("predicted (-want +got):\n%s", diff)
	}
	if s.Gaps != 4 {
		t.Errorf("%+v", s)
	}
}

func TestWhatOverlapsIsDrawnOnFurtherLanes(t *testing.T) {
	d, s := render(t, hello(), of(launch(0, 10, 1, 0, false), launch(5, 10, 2, 0, false), launch(12, 1, 1, 0, false)))
	lanes := map[int]int{}
	for _, e := range d.Events {
		if e.Phase == "X" {
			lanes[e.TID]++
		}
	}
	if len(lanes) != 2 || s.Missing != 0 {
		t.Errorf("lanes %v, %+v", lanes, s)
	}
	var crowd []*heddlev1.TraceEvent
	for i := range uint64(lanesMax + 3) {
		crowd = append(crowd, launch(i, 1000, 1, 0, false))
	}
	if _, s := render(t, hello(), of(crowd...)); s.Missing != 3 {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsMissingIsShown(t *testing.T) {
	d, s := render(t, hello(), of(launch(10, 5, 1, 0, false), &heddlev1.TraceEvent{Client: 99}),
		&heddlev1.RecordTraceResponse{Losses: []*heddlev1.TraceLoss{{Client: 3, Overwritten: 4, Dropped: 5, Impossible: 6}, {Client: 99, Dropped: 1}}})
	mark := d.find(t, "15 events missing")
	if mark.Phase != "i" || mark.TS != 15 || mark.Args["dropped"] != 5.0 || s.Missing != 17 || d.Notes["missing_events"] != "17" {
		t.Errorf("%+v, %+v, %v", mark, s, d.Notes)
	}
}

func TestWhatBeganBeforeTheTimelineIsCut(t *testing.T) {
	early := &heddlev1.TraceEvent{Kind: heddlev1.TraceKind_TRACE_KIND_HOLD, Client: 3, TimeNs: begin - 5000, DurationNs: 7000}
	d, _ := render(t, hello(), &heddlev1.RecordTraceResponse{Events: []*heddlev1.TraceEvent{early}})
	if diff := cmp.Diff([]string{"held: other@0+2"}, d.slices("GPU 5 held")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A stream that is never seen idle is drawn all the same, in bounded memory.
func TestAStreamThatIsNeverIdleIsDrawn(t *testing.T) {
	w := NewWriter(io.Discard, options)
	if err := w.Add(hello()); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3 * queueMax) {
		if err := w.Add(of(launch(i*10, 2, 1, 9, false))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.clients[3].streams[streamKey{0, 1}].launches); n > queueMax {
		t.Errorf("%d launches wait", n)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAWriterSaysThatItCannotWrite(t *testing.T) {
	w := NewWriter(full{}, options)
	if err := w.Add(hello()); err != nil {
		t.Fatal(err) // not yet: it is buffered
	}
	if err := w.Close(); err == nil {
		t.Error("no error")
	}
}

func TestAnEmptyTimelineIsADocument(t *testing.T) {
	if d, s := render(t); len(d.Events) != 0 || s != (Summary{}) {
		t.Errorf("%+v, %+v", d, s)
	}
}

func FuzzTimeline(f *testing.F) {
	f.Add(uint64(5), uint64(7), uint64(9), uint32(1), uint32(3), "a\"\x00")
	f.Add(uint64(1<<62), uint64(1<<62), uint64(1<<63), uint32(4), uint32(0), "")
	f.Fuzz(func(t *testing.T, at, took, predicted uint64, kind, stream uint32, name string) {
		// What heddled lets through: times that have been.
		at, took = at%(1<<50), took%(1<<50)
		var events []*heddlev1.TraceEvent
		for i := range uint64(20) {
			events = append(events, &heddlev1.TraceEvent{
				Kind: heddlev1.TraceKind((kind + uint32(i)*stream) % 6), Client: 3, Device: kind % 3, TimeNs: at + i*took%7777, DurationNs: took >> (i % 50),
				PredictedNs: predicted, Kernel: at % 3, Stream: &stream, Reason: heddlev1.TraceReason(kind % 9), Measured: at%2 == 0, Holder: uint64(kind),
			})
		}
		m := hello()
		m.Clients[0].Name, m.Kernels[0].Name = strings.ToValidUTF8(name, "?"), strings.ToValidUTF8(name, "?")
		m.Start.ClockNs = at
		render(t, m, &heddlev1.RecordTraceResponse{Events: events})
	})
}
