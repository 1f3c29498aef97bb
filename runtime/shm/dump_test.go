package shm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/abi"
)

// saved reads a file of tests/testdata/abi-v1, written by write.c there, into aligned memory.
func saved(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "tests", "testdata", "abi-v1", name))
	if err != nil {
		t.Fatal(err)
	}
	return aligned(raw, len(raw))
}

// mark is the same function as in write.c.
func mark(device, place int) uint64 { return uint64(0x100000*(device+1) + place) }

func TestClientSegmentOfVersion1IsStillReadable(t *testing.T) {
	v, err := viewClient(saved(t, "client.bin"))
	if err != nil {
		t.Fatal(err)
	}
	wantHeader := Header{Magic: abi.MagicClient, ABIVersion: 1, Size: 359552, Features: 5, Generation: 7}
	if got := v.Header(); got != wantHeader {
		t.Errorf("header = %+v, want %+v", got, wantHeader)
	}
	wantProcess := ProcessSnapshot{
		PID: 4242, AttachCount: 2, UnnamedAddresses: 3,
		Launches: 64*1000 + 63*64/2, LogDropped: 1,
	}
	if got, err := v.Process(); err != nil || got != wantProcess {
		t.Errorf("process = %+v, %v; want %+v", got, err, wantProcess)
	}
	for i := range 16 {
		want := DeviceSnapshot{
			BusyStreams: uint32(i), Doorbell: uint32(mark(i, 1)), IdleSince: mark(i, 2), BusyUntil: mark(i, 3),
			NextLaunch: mark(i, 4), HeadEstimate: time.Duration(mark(i, 5)), Busy: time.Duration(mark(i, 6)),
			BusySince: mark(i, 7), Held: time.Duration(mark(i, 8)), HeldSince: mark(i, 9), Holds: mark(i, 10),
			Overruns: mark(i, 11), Paced: time.Duration(mark(i, 12)), GraphLaunches: mark(i, 13), MemoryBytes: mark(i, 14),
			MemoryPeakBytes: mark(i, 15), Allocations: mark(i, 16), Frees: mark(i, 17),
			Want: time.Duration(mark(i, 18)), DeviceTime: time.Duration(mark(i, 19)),
		}
		for b := range want.UUID {
			want.UUID[b] = byte(16*i + b + 1)
		}
		got, err := v.Device(i)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("slot %d: %v (-want +got):\n%s", i, err, diff)
		}
	}
	var records []LogRecord
	if lost, err := NewLogReader(v).Read(func(r LogRecord) { records = append(records, r) }); lost != 0 || err != nil {
		t.Errorf("log lost %d, %v", lost, err)
	}
	wantRecords := []LogRecord{
		{TimeNs: 500, Level: abi.LogInfo, Text: "record 0"},
		{TimeNs: 501, Level: abi.LogError, Text: "record 1"},
	}
	if diff := cmp.Diff(wantRecords, records); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	var samples []Sample
	if lost, err := NewSampleReader(v).Read(func(s Sample) { samples = append(samples, s) }); lost != 0 || err != nil {
		t.Errorf("samples lost %d, %v", lost, err)
	}
	var kernels []Kernel
	if lost, err := NewKernelReader(v).Read(func(k Kernel) { kernels = append(kernels, k) }); lost != 0 || err != nil {
		t.Errorf("kernels lost %d, %v", lost, err)
	}
	wantSamples := make([]Sample, 2)
	wantKernels := make([]Kernel, 2)
	for i := range 2 {
		n := uint32(i)
		wantSamples[i] = Sample{
			Kernel: mark(i, 20), Previous: mark(i, 21), DeviceTime: time.Duration(mark(i, 22)), Gap: time.Duration(mark(i, 23)),
			TimeNs: mark(i, 24), Slot: i, Measured: i == 0, HasGap: i == 1, Graph: i == 1,
		}
		wantKernels[i] = Kernel{
			Key: mark(i, 25), ModuleHash: mark(i, 26),
			Grid: [3]uint32{10*n + 1, 10*n + 2, 10*n + 3}, Block: [3]uint32{100*n + 1, 100*n + 2, 100*n + 3},
			DynamicShared: uint32(mark(i, 27)), StaticShared: uint32(mark(i, 28)), Registers: uint32(mark(i, 29)),
			ThreadsMax: uint32(mark(i, 30)), BlocksPerSM: uint32(mark(i, 31)),
			Attributes: i == 0, Graph: i == 1, Cut: i == 1, Name: fmt.Sprintf("kernel_%d", i),
		}
	}
	atStart := &TraceReader{ring: ring{view: v, what: "trace", head: &v.seg.Process.TraceHead, size: abi.Trace}}
	var traces []Trace
	if lost, err := atStart.Read(func(s Trace) { traces = append(traces, s) }); lost != 3 || err != nil {
		t.Errorf("trace lost %d, %v; want the 3 that were dropped", lost, err)
	}
	wantTraces := make([]Trace, 2)
	for i := range wantTraces {
		wantTraces[i] = Trace{
			Kind: abi.TraceLaunch, TimeNs: mark(i, 32), Duration: time.Duration(mark(i, 33)), Kernel: mark(i, 34),
			Guess: time.Duration(mark(i, 35)), Stream: uint32(mark(i, 36)), Slot: i, Peer: i, Measured: i == 0, Graph: i == 0,
		}
	}
	wantTraces[1].Kind, wantTraces[1].Reason, wantTraces[1].Overrun = abi.TraceHold, abi.GateHeldToken, true
	if diff := cmp.Diff(wantTraces, traces); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantSamples, samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantKernels, kernels); diff != "" {
		t.Errorf("kernels (-want +got):\n%s", diff)
	}
}

func TestVerdictSegmentOfVersion1IsWhatPublishWrites(t *testing.T) {
	old := view[abi.VerdictSegment](saved(t, "verdict.bin"))
	verdict, err := NewVerdict(7, ClockParams{Source: abi.ClockCounter, Shift: 32, Mult: 11, BaseTicks: 12, BaseNs: 13}, abi.FailClosed)
	if err != nil {
		t.Fatal(err)
	}
	defer verdict.Close()
	for i := range 16 {
		d := DeviceVerdict{
			Gate: abi.GateYield | abi.GateWindow, Priority: uint32(i % 10), Weight: uint32(mark(i, 1)),
			Window: time.Duration(mark(i, 2)), Estimate: time.Duration(mark(i, 3)), Quiet: time.Duration(mark(i, 4)),
			MaxHold: time.Duration(mark(i, 5)), MarginPPM: uint32(mark(i, 6)), SMSharePPM: uint32(mark(i, 7)),
			MemoryQuota: mark(i, 8),
			CoRunBound:  time.Duration(mark(i, 17)), MinGap: time.Duration(mark(i, 18)),
			MaxBlock: time.Duration(mark(i, 19)), Token: time.Duration(mark(i, 20)), StreamPriority: int32(1 - 2*(i%2)),
			TimeSharePPM: uint32(mark(i, 21)), KeepPPM: uint32(mark(i, 22)),
		}
		for w := range d.Yields {
			d.Yields[w], d.CoRun[w] = mark(i, 9+w), mark(i, 13+w)
		}
		for range i + 1 { // the saved generation is the slot's number + 1
			if err := verdict.Publish(i, &d); err != nil {
				t.Fatal(err)
			}
		}
	}
	verdict.PublishMeasure(14, 1)
	var entries []ProfileEntry
	for i := range 3 { // which want the same place, the last two of the table and round its end
		entries = append(entries, ProfileEntry{
			Key: (abi.ProfileEntries-2)<<abi.ProfileShift | uint64(i+1), Estimate: time.Duration(mark(i, 21)),
			Gap: time.Duration(mark(i, 22)), CoRun: i == 0, SMNeed: uint32(i),
		})
	}
	if dropped, err := verdict.PublishProfile(entries); dropped != 0 || err != nil {
		t.Errorf("PublishProfile dropped %d, %v", dropped, err)
	}
	old.Header.Features = 0 // this writer uses none
	if diff := cmp.Diff(*old, *verdict.seg); diff != "" {
		t.Errorf("verdict (-saved +written):\n%s", diff)
	}
}

func TestArenaSegmentOfVersion1IsStillReadable(t *testing.T) {
	data := saved(t, "arena.bin")
	a := &Arena{seg: view[abi.ArenaSegment](data)}
	if err := readHeader(&a.seg.Header).check(abi.MagicArena, len(data), abi.SizeofArenaSegment); err != nil {
		t.Error(err)
	}
	if got, want := a.Sleepers(), (Peers{mark(0, 1), mark(1, 1), mark(2, 1), mark(3, 1)}); got != want {
		t.Errorf("sleepers = %v, want %v", got, want)
	}
	if a.seg.TokenHolder != 5 || a.seg.TokenExpiryNs != 6 {
		t.Errorf("token = %d until %d", a.seg.TokenHolder, a.seg.TokenExpiryNs)
	}
	for i := range a.seg.Heads {
		if got, want := a.seg.Heads[i], mark(i, 2); got != want {
			t.Errorf("head of member %d = %d, want %d", i, got, want)
		}
	}
}
