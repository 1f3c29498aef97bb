package shm

import (
	"sync/atomic"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Sample is what a client saw of one launch of a kernel.
type Sample struct {
	Kernel     uint64 // key
	Previous   uint64 // key of the launch before it on the same device, 0 = none
	TimeNs     uint64 // when the launch was made
	DeviceTime time.Duration
	Gap        time.Duration // idle time between the kernel's end and the next launch
	Slot       int           // of the device
	Measured   bool          // DeviceTime is valid
	HasGap     bool          // Gap is valid
	Graph      bool          // the launch of a whole graph
}

// SampleReader follows the ring of samples of one client.
type SampleReader struct{ ring }

// NewSampleReader begins with the oldest sample that is still in the ring.
func NewSampleReader(v ClientView) *SampleReader {
	return &SampleReader{ring{view: v, what: "samples", head: &v.seg.Process.SamplesHead, size: abi.Samples}}
}

// Read calls f for every new sample, oldest first, and returns how many were lost. One call looks
// at no more samples than the ring holds, however fast the client writes.
func (r *SampleReader) Read(f func(Sample)) (lost uint64, err error) {
	return r.read(func(n uint64) (recordState, error) {
		sample, state, err := r.sample(n)
		if err == nil && state == recordComplete {
			f(sample)
		}
		return state, err
	})
}

func (r *SampleReader) sample(n uint64) (Sample, recordState, error) {
	shared := &r.view.seg.Samples[n%abi.Samples]
	if state := stateOf(n, &shared.Sequence); state != recordComplete {
		return Sample{}, state, nil
	}
	s := Sample{
		Kernel:     atomic.LoadUint64(&shared.Kernel),
		Previous:   atomic.LoadUint64(&shared.Previous),
		TimeNs:     atomic.LoadUint64(&shared.TimeNs),
		DeviceTime: duration(atomic.LoadUint64(&shared.DeviceNs)),
		Gap:        duration(atomic.LoadUint64(&shared.GapNs)),
	}
	slot := atomic.LoadUint32(&shared.DeviceSlot)
	flags := atomic.LoadUint32(&shared.Flags)
	if state := r.copied(n); state != recordComplete {
		return Sample{}, state, nil
	}
	if slot >= abi.DevicesMax {
		return Sample{}, 0, errdefs.Errorf(errdefs.Corrupt, "sample %d: device slot %d, there are %d", n, slot, abi.DevicesMax)
	}
	if s.Kernel == 0 || s.DeviceTime < 0 || s.Gap < 0 {
		return Sample{}, 0, errdefs.Errorf(errdefs.Corrupt, "sample %d: kernel %#x took %d ns, then %d ns idle", n, s.Kernel, s.DeviceTime, s.Gap)
	}
	s.Slot = int(slot)
	s.Measured = flags&abi.SampleMeasured != 0
	s.HasGap = flags&abi.SampleGap != 0
	s.Graph = flags&abi.SampleGraph != 0
	return s, recordComplete, nil
}
