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
	wantHeader := Header{Magic: abi.MagicClient, ABIVersion: 1, Size: 15488, Features: 5, Generation: 7}
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
	old.Header.Features = 0 // this writer uses none
	if got, want := fmt.Sprintf("%+v", *verdict.seg), fmt.Sprintf("%+v", *old); got != want {
		t.Errorf("written:\n%s\nsaved:\n%s", got, want)
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
}
