package device

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func h100(tb testing.TB) GPU {
	tb.Helper()
	gpu, ok := Lookup("h100")
	if !ok {
		tb.Fatal("no H100")
	}
	return gpu
}

// whole is a kernel that wants all SMs of an H100.
func whole(time float64) Kernel { return Kernel{Grid: 132, Block: 1024, Time: time} }

func TestBlocksPerSM(t *testing.T) {
	gpu := h100(t)
	tests := []struct {
		name   string
		kernel Kernel
		want   uint32
	}{
		{"threads bound", Kernel{Block: 256}, 8},
		{"a started warp counts whole", Kernel{Block: 993}, 2},
		{"the number of blocks bounds small ones", Kernel{Block: 1}, 32},
		{"registers bound", Kernel{Block: 256, Registers: 64}, 4},
		{"shared memory bounds", Kernel{Block: 256, SharedMemory: 100 << 10}, 2},
		{"a block too large fits nowhere", Kernel{Block: 4096}, 0},
		{"no threads fit nowhere", Kernel{}, 0},
		{"the largest numbers fit nowhere", Kernel{Block: 1<<32 - 1, Registers: 1<<32 - 1, SharedMemory: 1<<32 - 1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := gpu.BlocksFor(tt.kernel); got != tt.want {
				t.Errorf("%d blocks, want %d", got, tt.want)
			}
		})
	}
}

func TestMPSCap(t *testing.T) {
	gpu := GPU{SMs: 82}
	for percent, want := range map[uint32]uint32{0: 82, 1: 2, 50: 40, 99: 80, 100: 82, 200: 82} {
		if got := gpu.MPSCap(percent); got != want {
			t.Errorf("%d %% of 82 SMs is %d, want %d", percent, got, want)
		}
	}
}

func TestACompletionIsHandedOutOnce(t *testing.T) {
	d := New(h100(t))
	s := d.AddStream(d.AddContext(Own), 0, NonBlocking)
	d.Mark(s, 7)
	if next, ok := d.Next(); !ok || next != 0 {
		t.Errorf("next is %d, %t: a mark at an empty stream's head is done at once", next, ok)
	}
	if diff := cmp.Diff([]Completion{{Tag: 7}}, d.Advance(0)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if again := d.Advance(10); len(again) > 0 {
		t.Errorf("again: %v", again)
	}
	if next, ok := d.Next(); ok {
		t.Errorf("an idle device has an event at %d", next)
	}
}

func TestStateBetweenEvents(t *testing.T) {
	d := New(h100(t))
	s := d.AddStream(d.AddContext(Own), 0, NonBlocking)
	up := d.AddStream(0, 0, NonBlocking)
	p := d.Kernel(s, 1, Kernel{Grid: 100, Block: 1024, Time: 1000})
	d.Copy(up, 2, HostToDevice, 55*500)
	d.Advance(400)
	if d.BusySMs() != 50 || !d.Copying(HostToDevice) || d.Done(p) || d.Pending(s) != 1 || d.Idle() {
		t.Errorf("%d SMs busy, copying %t, done %t, %d pending, idle %t",
			d.BusySMs(), d.Copying(HostToDevice), d.Done(p), d.Pending(s), d.Idle())
	}
	if diff := cmp.Diff(Usage{Busy: 400, SM: 400 * 50, Copy: [queues]int64{400}}, d.Usage()); diff != "" {
		t.Errorf("usage at 400 (-want +got):\n%s", diff)
	}
	d.Advance(5000)
	if d.BusySMs() != 0 || d.Copying(HostToDevice) || !d.Done(p) || d.Pending(s) != 0 || !d.Idle() {
		t.Error("something is left at 5000")
	}
	want := Usage{Busy: 1000, SM: 1000 * 50, Copy: [queues]int64{500}, Kernels: 1}
	if diff := cmp.Diff(want, d.Usage()); diff != "" {
		t.Errorf("usage at 5000 (-want +got):\n%s", diff)
	}
}

func TestADeadClientLeavesNothingBehind(t *testing.T) {
	d := New(h100(t))
	dying, other := d.AddContext(100), d.AddContext(100)
	theirs := d.AddStream(dying, 0, NonBlocking)
	copies := d.AddStream(dying, 0, NonBlocking)
	ours := d.AddStream(other, 0, NonBlocking)
	ourCopies := d.AddStream(other, 0, NonBlocking)
	d.Kernel(theirs, 1, whole(1e6))
	last := d.Kernel(theirs, 2, whole(1e6))
	d.Copy(copies, 3, HostToDevice, 55e6)
	d.Copy(ourCopies, 4, HostToDevice, 55e3)
	d.Wait(ours, 5, last)
	d.Kernel(ours, 6, whole(1000))
	if done := d.Advance(500); len(done) > 0 {
		t.Fatalf("early: %v", done)
	}
	d.RemoveContext(dying)
	d.RemoveContext(dying)
	var got []Completion
	for next, ok := d.Next(); ok; next, ok = d.Next() {
		got = append(got, d.Advance(next)...)
	}
	want := []Completion{
		{Tag: 5, Start: 500, End: 500}, // when the head was looked at and let through
		{Tag: 6, Start: 500, End: 1500},
		{Tag: 4, Start: 500, End: 1500},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("completions (-want +got):\n%s", diff)
	}
	if !d.Idle() || !d.Done(last) {
		t.Error("work of the dead is left")
	}
}

func TestADeadClientGivesItsTurnUp(t *testing.T) {
	d := New(h100(t))
	dying, other := d.AddContext(Own), d.AddContext(Own)
	d.Kernel(d.AddStream(dying, 0, NonBlocking), 1, whole(1e9))
	d.Kernel(d.AddStream(other, 0, NonBlocking), 2, whole(1000))
	d.Advance(500)
	d.RemoveContext(dying)
	got := append([]Completion{}, d.Advance(1e7)...)
	if diff := cmp.Diff([]Completion{{Tag: 2, Start: 100_500, End: 101_500}}, got); diff != "" {
		t.Errorf("completions (-want +got):\n%s", diff)
	}
	if n := d.Usage().Switches; n != 1 {
		t.Errorf("%d switches, want 1", n)
	}
}

// closedLoop keeps `depth` kernels in each of n streams.
type closedLoop struct {
	d       *Device
	streams []Stream
}

func newClosedLoop(tb testing.TB, n, depth int, percent int) *closedLoop {
	tb.Helper()
	l := &closedLoop{d: New(h100(tb))}
	for i := range n {
		l.streams = append(l.streams, l.d.AddStream(l.d.AddContext(percent), int32(i%2), NonBlocking))
		for range depth {
			l.submit(i)
		}
	}
	return l
}

func (l *closedLoop) submit(i int) {
	l.d.Kernel(l.streams[i], uint64(i), Kernel{Grid: 400, Block: 512, Registers: 32, Time: 10_000 + 777*float64(i), DRAM: 0.4})
}

// run lets n kernels end, each of which is followed by another.
func (l *closedLoop) run(n int) {
	for n > 0 {
		next, ok := l.d.Next()
		if !ok {
			return
		}
		for _, c := range l.d.Advance(next) {
			l.submit(int(c.Tag))
			n--
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, percent := range []int{Own, 100, 40} {
		l := newClosedLoop(t, 4, 8, percent)
		l.run(1000)
		if n := testing.AllocsPerRun(10, func() { l.run(1000) }); n != 0 {
			t.Errorf("percentage %d: %v allocations in 1000 kernels", percent, n)
		}
	}
}

func BenchmarkKernels(b *testing.B) {
	for _, bb := range []struct {
		name    string
		streams int
		percent int
	}{{"one stream", 1, Own}, {"two under MPS", 2, 100}, {"two taking turns", 2, Own}, {"eight under MPS", 8, 100}} {
		b.Run(bb.name, func(b *testing.B) {
			l := newClosedLoop(b, bb.streams, 4, bb.percent)
			b.ReportAllocs()
			b.ResetTimer()
			l.run(b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "kernels/s")
		})
	}
}
