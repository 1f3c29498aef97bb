package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// newSegment is a client segment in ordinary, aligned Go memory, where the race detector sees it.
func newSegment() (*abi.ClientSegment, ClientView) {
	data := aligned(nil, abi.SizeofClientSegment)
	seg := view[abi.ClientSegment](data)
	writeHeader(&seg.Header, abi.MagicClient, len(data), 0)
	v, err := viewClient(data)
	if err != nil {
		panic(err)
	}
	return seg, v
}

// aligned returns size bytes that begin with content, at an address that words may have.
func aligned(content []byte, size int) []byte {
	words := make([]uint64, (size+7)/8)
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:size]
	copy(data, content)
	return data
}

func TestDeviceReadsEveryWord(t *testing.T) {
	seg, v := newSegment()
	d := &seg.Devices[5]
	d.BusyStreams, d.Doorbell = 1, 2
	d.IdleSinceNs, d.BusyUntilNs, d.NextLaunchNs, d.HeadEstimateNs = 3, 4, 5, 6
	d.BusyNs, d.BusySinceNs, d.HeldNs, d.HeldSinceNs = 7, 8, 9, 10
	d.Holds, d.Overruns, d.PacedNs, d.GraphLaunches = 11, 12, 13, 14
	d.MemoryBytes, d.MemoryPeakBytes, d.Allocations, d.Frees = 15, 16, 17, 18
	d.WantNs, d.DeviceNs = 19, 20
	for i := range d.UUID {
		d.UUID[i] = byte(100 + i)
	}
	got, err := v.Device(5)
	if err != nil {
		t.Fatal(err)
	}
	want := DeviceSnapshot{
		UUID:        d.UUID,
		BusyStreams: 1, Doorbell: 2, IdleSince: 3, BusyUntil: 4, NextLaunch: 5, HeadEstimate: 6,
		Busy: 7, BusySince: 8, Held: 9, HeldSince: 10, Holds: 11, Overruns: 12, Paced: 13, GraphLaunches: 14,
		MemoryBytes: 15, MemoryPeakBytes: 16, Allocations: 17, Frees: 18, Want: 19, DeviceTime: 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	if !got.Used() {
		t.Error("a slot with a UUID counts as unused")
	}
	if other, err := v.Device(4); err != nil || other.Used() {
		t.Errorf("slot 4 = %+v, %v; want an unused one", other, err)
	}
}

func TestProcessSumsTheThreads(t *testing.T) {
	seg, v := newSegment()
	seg.Process.PID, seg.Process.AttachCount = 42, 2
	seg.Process.UnnamedAddresses, seg.Process.LogDropped = 3, 5
	for i := range seg.Threads {
		seg.Threads[i].Launches = uint64(i)
	}
	got, err := v.Process()
	want := ProcessSnapshot{PID: 42, AttachCount: 2, UnnamedAddresses: 3, Launches: 63 * 64 / 2, LogDropped: 5}
	if err != nil || got != want {
		t.Errorf("Process = %+v, %v; want %+v", got, err, want)
	}
}

func TestValuesThatNoHonestClientWritesAreCorrupt(t *testing.T) {
	tests := []struct {
		name string
		edit func(*abi.ClientSegment)
	}{
		{"more streams than can exist", func(s *abi.ClientSegment) { s.Devices[0].BusyStreams = 1 << 31 }},
		{"more memory than a device can have", func(s *abi.ClientSegment) { s.Devices[0].MemoryBytes = 1 << 60 }},
		{"an absurd peak of memory", func(s *abi.ClientSegment) { s.Devices[0].MemoryPeakBytes = 1 << 63 }},
		{"centuries of work", func(s *abi.ClientSegment) { s.Devices[0].BusyNs = 1 << 63 }},
		{"centuries of waiting", func(s *abi.ClientSegment) { s.Devices[0].HeldNs = 1 << 63 }},
		{"a kernel of centuries", func(s *abi.ClientSegment) { s.Devices[0].HeadEstimateNs = 1 << 63 }},
		{"a wish of centuries", func(s *abi.ClientSegment) { s.Devices[0].WantNs = 1 << 63 }},
		{"centuries of device time", func(s *abi.ClientSegment) { s.Devices[0].DeviceNs = 1 << 63 }},
		{"a magic that changed", func(s *abi.ClientSegment) { s.Header.Magic = 0 }},
		{"a size that changed", func(s *abi.ClientSegment) { s.Header.Size = 1 }},
		{"a version that changed", func(s *abi.ClientSegment) { s.Header.ABIVersion = 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seg, v := newSegment()
			tt.edit(seg)
			got, err := v.Device(0)
			if k := errdefs.KindOf(err); k != errdefs.Corrupt && k != errdefs.Unsupported {
				t.Errorf("Device = %+v, %v; want an error that ends the client", got, err)
			}
			if got != (DeviceSnapshot{}) {
				t.Errorf("an error came with a value: %+v", got)
			}
		})
	}
}

func TestDeviceRefusesSlotsThatAreNot(t *testing.T) {
	_, v := newSegment()
	for _, slot := range []int{-1, abi.DevicesMax} {
		if _, err := v.Device(slot); !errors.Is(err, errdefs.ErrInvalid) {
			t.Errorf("slot %d: %v", slot, err)
		}
	}
}

func TestSpansCountThePresentOne(t *testing.T) {
	tests := []struct {
		name  string
		ended time.Duration
		since uint64
		now   uint64
		want  time.Duration
	}{
		{"nothing going on", 100, 0, 5000, 100},
		{"since a while", 100, 4000, 5000, 1100},
		{"since now", 100, 5000, 5000, 100},
		{"a start in the future counts as not yet", 100, 6000, 5000, 100},
		{"a start centuries ago cannot be true", 100, 1, 1<<64 - 1, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := DeviceSnapshot{Busy: tt.ended, BusySince: tt.since, Held: tt.ended, HeldSince: tt.since}
			if got := s.BusySpan(tt.now); got != tt.want {
				t.Errorf("BusySpan = %v, want %v", got, tt.want)
			}
			if got := s.HeldSpan(tt.now); got != tt.want {
				t.Errorf("HeldSpan = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	_, v := newSegment()
	r := NewLogReader(v)
	ignore := func(LogRecord) {}
	samples := NewSampleReader(v)
	kernels := NewKernelReader(v)
	allocs := testing.AllocsPerRun(100, func() {
		for slot := range abi.DevicesMax {
			if _, err := v.Device(slot); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := v.Process(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(ignore); err != nil {
			t.Fatal(err)
		}
		if _, err := samples.Read(func(Sample) {}); err != nil {
			t.Fatal(err)
		}
		if _, err := kernels.Read(func(Kernel) {}); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per look at a client, want 0", allocs)
	}
}

func TestPublishAllocatesNothing(t *testing.T) {
	verdict, err := NewVerdict(1, ClockParams{}, abi.FailOpen)
	if err != nil {
		t.Fatal(err)
	}
	defer verdict.Close()
	d := DeviceVerdict{Gate: abi.GateYield | abi.GateWindow, Priority: 7, Window: time.Millisecond}
	allocs := testing.AllocsPerRun(100, func() {
		d.Gate ^= abi.GateYield
		if err := verdict.Publish(3, &d); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per verdict, want 0", allocs)
	}
}

func TestPublishWritesWhatTheClientReads(t *testing.T) {
	clock := ClockParams{Source: abi.ClockCounter, Shift: 30, Mult: 31, BaseTicks: 32, BaseNs: 33}
	verdict, err := NewVerdict(9, clock, abi.FailClosed)
	if err != nil {
		t.Fatal(err)
	}
	defer verdict.Close()
	seg := verdict.seg
	if seg.Header.Magic != abi.MagicVerdict || seg.Header.Size != abi.SizeofVerdictSegment || seg.Header.Generation != 9 {
		t.Errorf("header = %+v", seg.Header)
	}
	p := seg.Process
	if p.FailMode != abi.FailClosed || p.ClockSource != 1 || p.ClockShift != 30 || p.ClockMult != 31 || p.ClockBaseTicks != 32 || p.ClockBaseNs != 33 {
		t.Errorf("process = %+v", p)
	}
	d := DeviceVerdict{
		Gate: abi.GateYield | abi.GateWindow, Priority: 7, Weight: 200,
		Window: 1, Estimate: 2, Quiet: 3, MaxHold: 4, MarginPPM: 5, SMSharePPM: 6, MemoryQuota: 7,
		CoRunBound: 8, MinGap: 9, MaxBlock: 10, Token: 11, StreamPriority: -1, TimeSharePPM: 12, KeepPPM: 13,
	}
	d.Yields.Add(0)
	d.Yields.Add(255)
	d.CoRun.Add(64)
	if verdict.Bound(2) {
		t.Error("a slot is bound before its first verdict")
	}
	if err := verdict.Publish(2, &d); err != nil {
		t.Fatal(err)
	}
	if err := verdict.Publish(0, &DeviceVerdict{Gate: abi.GatePublish}); err != nil {
		t.Fatal(err)
	}
	want := abi.VerdictDevice{
		Gate: d.Gate, Generation: 1, Priority: 7, Weight: 200, WindowNs: 1, EstimateNs: 2, QuietNs: 3, MaxHoldNs: 4,
		MarginPpm: 5, SMSharePpm: 6, MemoryQuotaBytes: 7,
		Yields: [4]uint64{1, 0, 0, 1 << 63}, Corun: [4]uint64{0, 1, 0, 0},
		CorunNs: 8, MinGapNs: 9, MaxBlockNs: 10, TokenNs: 11, StreamPriority: -1, TimeSharePpm: 12, KeepPpm: 13,
	}
	if seg.Devices[2] != want {
		t.Errorf("slot 2 = %+v, want %+v", seg.Devices[2], want)
	}
	if want := uint32(abi.GateYield | abi.GateWindow | abi.GatePublish); seg.Process.Gate != want {
		t.Errorf("process gate = %#x, want %#x", seg.Process.Gate, want)
	}
	if !d.Yields.Has(255) || d.Yields.Has(254) || !verdict.Bound(2) {
		t.Error("sets or bindings do not remember")
	}
}

func TestPublishRefusesNonsense(t *testing.T) {
	verdict, err := NewVerdict(1, ClockParams{}, abi.FailOpen)
	if err != nil {
		t.Fatal(err)
	}
	defer verdict.Close()
	tests := []struct {
		name string
		slot int
		d    DeviceVerdict
	}{
		{"a slot before the first", -1, DeviceVerdict{}},
		{"a slot after the last", abi.DevicesMax, DeviceVerdict{}},
		{"a gate bit that nobody knows", 0, DeviceVerdict{Gate: 1 << 20}},
		{"a class beyond the last", 0, DeviceVerdict{Priority: 10}},
		{"a negative window", 0, DeviceVerdict{Window: -1}},
		{"a negative hold", 0, DeviceVerdict{MaxHold: -1}},
		{"a negative bound beside others", 0, DeviceVerdict{CoRunBound: -1}},
		{"a negative gap", 0, DeviceVerdict{MinGap: -1}},
		{"a negative longest launch", 0, DeviceVerdict{MaxBlock: -1}},
		{"a token for less than no time", 0, DeviceVerdict{Token: -1}},
		{"a stream priority above the greatest", 0, DeviceVerdict{StreamPriority: 2}},
		{"a stream priority below the least", 0, DeviceVerdict{StreamPriority: -2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := verdict.Publish(tt.slot, &tt.d); !errors.Is(err, errdefs.ErrInvalid) {
				t.Errorf("Publish = %v, want invalid", err)
			}
			if verdict.seg.Process.Gate != 0 {
				t.Error("a refused verdict reached the client")
			}
		})
	}
}

func FuzzHostileSegment(f *testing.F) {
	seg, _ := newSegment()
	whole := unsafe.Slice((*byte)(unsafe.Pointer(seg)), abi.SizeofClientSegment)
	f.Add(whole[:200])
	f.Add(whole[:64])
	f.Add([]byte{})
	f.Add(binary.NativeEndian.AppendUint32(nil, abi.MagicArena))
	seg.Process.LogHead = 1 << 63
	f.Add(whole[:300])
	f.Fuzz(func(t *testing.T, raw []byte) {
		// Without a header that passes, nothing behind it would be looked at: put one in front
		// for every other input.
		data := aligned(raw, abi.SizeofClientSegment)
		if len(raw)%2 == 0 {
			writeHeader(&view[abi.ClientSegment](data).Header, abi.MagicClient, len(data), 0)
		}
		v, err := viewClient(data)
		if err != nil {
			requireKind(t, err)
			return
		}
		for slot := -1; slot <= abi.DevicesMax; slot++ {
			s, err := v.Device(slot)
			if err != nil {
				requireKind(t, err)
				if s != (DeviceSnapshot{}) {
					t.Fatalf("slot %d: error %v and value %+v", slot, err, s)
				}
				continue
			}
			if s.BusySpan(1<<62) < s.Busy || s.MemoryBytes > memoryMax {
				t.Fatalf("slot %d: nonsense passed: %+v", slot, s)
			}
		}
		if p, err := v.Process(); err != nil {
			requireKind(t, err)
			if p != (ProcessSnapshot{}) {
				t.Fatalf("error %v and value %+v", err, p)
			}
		}
		r := NewLogReader(v)
		records := 0
		for range 3 {
			if _, err := r.Read(func(LogRecord) { records++ }); err != nil {
				requireKind(t, err)
			}
		}
		if records > 3*abi.LogRecords {
			t.Fatalf("%d records from a ring of %d", records, abi.LogRecords)
		}
		if _, err := NewSampleReader(v).Read(func(Sample) {}); err != nil {
			requireKind(t, err)
		}
		if _, err := NewKernelReader(v).Read(func(Kernel) {}); err != nil {
			requireKind(t, err)
		}
	})
}

func requireKind(t *testing.T, err error) {
	t.Helper()
	if k := errdefs.KindOf(err); k != errdefs.Corrupt && k != errdefs.Unsupported && k != errdefs.Invalid {
		t.Fatalf("error without a kind that ends the client: %v", fmt.Sprint(err))
	}
}
