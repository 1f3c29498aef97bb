package shm

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// writeSample is the interposer's side: claim a number, fill the record, complete it.
func writeSample(seg *abi.ClientSegment, edit func(*abi.SampleRecord)) {
	n := atomic.AddUint64(&seg.Process.SamplesHead, 1) - 1
	r := &seg.Samples[n%abi.Samples]
	*r = abi.SampleRecord{Kernel: n + 1, DeviceNs: n * 10, TimeNs: n * 100}
	if edit != nil {
		edit(r)
	}
	atomic.StoreUint64(&r.Sequence, n+1)
}

func writeKernel(seg *abi.ClientSegment, name string, edit func(*abi.KernelRecord)) {
	n := atomic.AddUint64(&seg.Process.KernelsHead, 1) - 1
	r := &seg.Kernels[n%abi.Kernels]
	*r = abi.KernelRecord{Key: n + 1}
	r.Length = uint32(copy(r.Name[:], name))
	if edit != nil {
		edit(r)
	}
	atomic.StoreUint64(&r.Sequence, n+1)
}

func TestSamplesAreReadOnceAndLossesCounted(t *testing.T) {
	seg, v := newSegment()
	r := NewSampleReader(v)
	for _, tt := range []struct{ write, lost int }{{3, 0}, {abi.Samples, 0}, {abi.Samples + 9, 9}, {0, 0}} {
		for range tt.write {
			writeSample(seg, nil)
		}
		var got []Sample
		lost, err := r.Read(func(s Sample) { got = append(got, s) })
		if err != nil || lost != uint64(tt.lost) || len(got) != tt.write-tt.lost {
			t.Errorf("after %d writes: %d samples, lost %d, %v", tt.write, len(got), lost, err)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Kernel != got[i-1].Kernel+1 {
				t.Errorf("kernel %d after %d", got[i].Kernel, got[i-1].Kernel)
			}
		}
	}
}

func TestSampleFlagsSayWhatIsValid(t *testing.T) {
	tests := []struct {
		name  string
		flags uint32
		want  Sample
	}{
		{"none", 0, Sample{}},
		{"measured", abi.SampleMeasured, Sample{Measured: true}},
		{"a gap", abi.SampleGap, Sample{HasGap: true}},
		{"a graph", abi.SampleGraph, Sample{Graph: true}},
		{"flags of a later version are passed over", ^uint32(7) | abi.SampleGap, Sample{HasGap: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seg, v := newSegment()
			writeSample(seg, func(r *abi.SampleRecord) {
				r.Flags, r.DeviceSlot, r.Previous, r.DeviceNs, r.GapNs = tt.flags, 3, 77, 5, 6
			})
			want := tt.want
			want.Kernel, want.Previous, want.DeviceTime, want.Gap, want.Slot = 1, 77, 5, 6, 3
			_, err := NewSampleReader(v).Read(func(got Sample) {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("sample (-want +got):\n%s", diff)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKernelNamesArePrintableWhateverWasWritten(t *testing.T) {
	seg, v := newSegment()
	writeKernel(seg, "sgemm<128>\x1b[2J\n", nil)
	writeKernel(seg, strings.Repeat("x", abi.KernelName), func(r *abi.KernelRecord) { r.Flags = abi.KernelCut })
	var got []Kernel
	if lost, err := NewKernelReader(v).Read(func(k Kernel) { got = append(got, k) }); lost != 0 || err != nil {
		t.Fatalf("lost %d, %v", lost, err)
	}
	want := []Kernel{{Key: 1, Name: "sgemm<128>\uFFFD[2J"}, {Key: 2, Name: strings.Repeat("x", abi.KernelName), Cut: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kernels (-want +got):\n%s", diff)
	}
}

func TestSamplesAndKernelsOfALiarAreCorrupt(t *testing.T) {
	sample := func(edit func(*abi.SampleRecord)) func(*abi.ClientSegment) {
		return func(seg *abi.ClientSegment) { writeSample(seg, edit) }
	}
	kernel := func(edit func(*abi.KernelRecord)) func(*abi.ClientSegment) {
		return func(seg *abi.ClientSegment) { writeKernel(seg, "x", edit) }
	}
	tests := []struct {
		name  string
		write func(*abi.ClientSegment)
	}{
		{"a sample of no kernel", sample(func(r *abi.SampleRecord) { r.Kernel = 0 })},
		{"a sample of centuries", sample(func(r *abi.SampleRecord) { r.DeviceNs = 1 << 63 })},
		{"a gap of centuries", sample(func(r *abi.SampleRecord) { r.GapNs = 1 << 63 })},
		{"a sample of a device slot that is none", sample(func(r *abi.SampleRecord) { r.DeviceSlot = abi.DevicesMax })},
		{"a kernel without a key", kernel(func(r *abi.KernelRecord) { r.Key = 0 })},
		{"a name longer than its place", kernel(func(r *abi.KernelRecord) { r.Length = abi.KernelName + 1 })},
		{"a header that changed", func(seg *abi.ClientSegment) { seg.Header.Size++ }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			seg, v := newSegment()
			tt.write(seg)
			_, errSamples := NewSampleReader(v).Read(func(s Sample) { t.Errorf("delivered %+v", s) })
			_, errKernels := NewKernelReader(v).Read(func(k Kernel) { t.Errorf("delivered %+v", k) })
			if err := errors.Join(errSamples, errKernels); !errors.Is(err, errdefs.ErrCorrupt) {
				t.Errorf("error = %v", err)
			}
		})
	}
	t.Run("heads that go back", func(t *testing.T) {
		seg, v := newSegment()
		writeSample(seg, nil)
		writeKernel(seg, "x", nil)
		samples, kernels := NewSampleReader(v), NewKernelReader(v)
		read := func() (error, error) {
			_, a := samples.Read(func(Sample) {})
			_, b := kernels.Read(func(Kernel) {})
			return a, b
		}
		if a, b := read(); a != nil || b != nil {
			t.Fatal(a, b)
		}
		seg.Process.SamplesHead, seg.Process.KernelsHead = 0, 0
		if a, b := read(); !errors.Is(a, errdefs.ErrCorrupt) || !errors.Is(b, errdefs.ErrCorrupt) {
			t.Errorf("samples: %v, kernels: %v", a, b)
		}
	})
}

// TestSamplesAreNeverTornByAWriterThatLapsTheReader lets every word of a record be a function of its
// number. The stores are atomic so that the race detector can judge the reader.
func TestSamplesAreNeverTornByAWriterThatLapsTheReader(t *testing.T) {
	const records = 50_000
	seg, v := newSegment()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range uint64(records) {
			r := &seg.Samples[n%abi.Samples]
			atomic.StoreUint64(&seg.Process.SamplesHead, n+1)
			atomic.StoreUint64(&r.Sequence, 0)
			atomic.StoreUint64(&r.Kernel, n+1)
			atomic.StoreUint64(&r.DeviceNs, n+2)
			atomic.StoreUint64(&r.GapNs, n+3)
			atomic.StoreUint64(&r.Sequence, n+1)
		}
	}()
	r := NewSampleReader(v)
	got, lost := uint64(0), uint64(0)
	look := func() {
		missed, err := r.Read(func(s Sample) {
			got++
			if s.DeviceTime != time.Duration(s.Kernel+1) || s.Gap != time.Duration(s.Kernel+2) {
				t.Errorf("torn: %+v", s)
			}
		})
		if err != nil {
			t.Error(err)
		}
		lost += missed
	}
	for running := true; running && !t.Failed(); {
		select {
		case <-done:
			running = false
		default:
			look()
		}
	}
	<-done
	look()
	look()
	if got+lost != records {
		t.Errorf("read %d and lost %d of %d", got, lost, records)
	}
}

func FuzzSampleAndKernelRings(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint32(5), uint64(7), []byte("kernel"))
	f.Add(uint64(1<<63), uint64(0), uint32(200), uint64(1<<63), []byte{0xff, 0x1b})
	f.Add(uint64(300), uint64(45), uint32(176), uint64(1), []byte(strings.Repeat("x", 200)))
	f.Fuzz(func(t *testing.T, head, sequence uint64, small uint32, wide uint64, name []byte) {
		seg, v := newSegment()
		seg.Process.SamplesHead, seg.Process.KernelsHead = head, head
		for i := range seg.Samples {
			s, k := &seg.Samples[i], &seg.Kernels[i]
			s.Sequence, k.Sequence = sequence+uint64(i), sequence+uint64(i)
			s.Kernel, s.DeviceNs, s.GapNs, s.DeviceSlot, s.Flags = wide, wide>>1, wide, small, small
			k.Key, k.Length, k.Flags = wide, small, small
			copy(k.Name[:], name)
		}
		samples, kernels := NewSampleReader(v), NewKernelReader(v)
		for range 2 {
			n := 0
			_, errSamples := samples.Read(func(s Sample) {
				n++
				if s.Kernel == 0 || s.DeviceTime < 0 || s.Gap < 0 || s.Slot < 0 || s.Slot >= abi.DevicesMax {
					t.Fatalf("nonsense passed: %+v", s)
				}
			})
			_, errKernels := kernels.Read(func(k Kernel) {
				n++
				if k.Key == 0 || !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, unicode.IsControl) {
					t.Fatalf("nonsense passed: %+v", k)
				}
			})
			for _, err := range []error{errSamples, errKernels} {
				if err != nil {
					requireKind(t, err)
				}
			}
			if n > abi.Samples+abi.Kernels {
				t.Fatalf("%d records from rings of %d and %d", n, abi.Samples, abi.Kernels)
			}
		}
	})
}
