package clients

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/shm"
)

// pen is a Learner that notes what it hears.
type pen struct {
	mu      sync.Mutex
	samples map[uint64][]shm.Sample // by client
	kernels map[uint64][]shm.Kernel
	devices map[uint64][]LessonDevice // of the last lesson
	rates   map[uint64]uint64
	left    map[uint64]int
	advice  Advice
}

func newPen() *pen {
	return &pen{
		samples: map[uint64][]shm.Sample{}, kernels: map[uint64][]shm.Kernel{},
		devices: map[uint64][]LessonDevice{}, left: map[uint64]int{}, rates: map[uint64]uint64{},
	}
}

func (p *pen) Learn(l *Lesson) Advice {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples[l.Client] = append(p.samples[l.Client], l.Samples...)
	p.kernels[l.Client] = append(p.kernels[l.Client], l.Kernels...)
	p.devices[l.Client], p.rates[l.Client] = l.Devices, l.Rate
	return p.advice
}

func (p *pen) Leave(client uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[client]++
}

// when reports whether the pen's notes are of some kind, under its lock.
func (p *pen) when(ok func() bool) func() bool {
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return ok()
	}
}

// tell writes a sample as the interposer does.
func (p *program) tell(kernel uint64, device time.Duration) {
	n := p.seg.Process.SamplesHead
	r := &p.seg.Samples[n%abi.Samples]
	atomic.StoreUint64(&r.Kernel, kernel)
	atomic.StoreUint64(&r.DeviceNs, uint64(device))
	atomic.StoreUint32(&r.Flags, abi.SampleMeasured)
	atomic.StoreUint64(&p.seg.Process.SamplesHead, n+1)
	atomic.StoreUint64(&r.Sequence, n+1)
}

func (p *program) tellKernel(key uint64) {
	n := p.seg.Process.KernelsHead
	r := &p.seg.Kernels[n%abi.Kernels]
	atomic.StoreUint64(&r.Key, key)
	atomic.StoreUint64(&p.seg.Process.KernelsHead, n+1)
	atomic.StoreUint64(&r.Sequence, n+1)
}

func TestALearnerHearsWhatClientsTellAndIsHeard(t *testing.T) {
	learner := newPen()
	learner.advice = Advice{MeasureEvery: 7, Fresh: true, Profile: []shm.ProfileEntry{{Key: 1 << 60, Estimate: 5}}}
	s := serve(t, func(o *Options) { o.Learner = learner })
	a := attach(t, s.path, hello("a"))
	a.open(0, gpu0)
	a.tellKernel(1 << 60)
	a.tell(1<<60, 30*time.Microsecond)
	eventually(t, "the learner hears of a launch and a kernel", learner.when(func() bool {
		samples, kernels := learner.samples[a.welcome.ClientID], learner.kernels[a.welcome.ClientID]
		return len(samples) == 1 && samples[0].DeviceTime == 30*time.Microsecond && len(kernels) == 1 && kernels[0].Key == 1<<60
	}))
	eventually(t, "the client is told", func() bool {
		entry := &a.verdict.Profile[(1<<60)>>abi.ProfileShift]
		return atomic.LoadUint32(&a.verdict.Process.MeasureEvery) == 7 && a.gate(0)&abi.GateMeasure != 0 &&
			atomic.LoadUint64(&entry.Key) == 1<<60 && atomic.LoadUint64(&entry.EstimateNs) == 5
	})
	learner.when(func() bool { learner.advice = Advice{Fresh: true}; return true })()
	a.tell(1<<60, time.Microsecond)
	eventually(t, "the client's table is emptied", func() bool {
		return a.gate(0)&abi.GateMeasure == 0 && atomic.LoadUint64(&a.verdict.Profile[(1<<60)>>abi.ProfileShift].Key) == 0
	})
	_ = a.conn.Close()
	eventually(t, "the learner is told that the client left", learner.when(func() bool {
		return learner.left[a.welcome.ClientID] == 1
	}))
}

func TestALearnerKnowsWhoUsedTheDeviceAtTheSameTime(t *testing.T) {
	learner := newPen()
	s := serve(t, func(o *Options) { o.Learner = learner })
	a, b := attach(t, s.path, hello("a")), attach(t, s.path, hello("b"))
	a.open(0, gpu0)
	last := func(of *program) (d LessonDevice) {
		if devices := learner.devices[of.welcome.ClientID]; len(devices) == 1 {
			d = devices[0]
		}
		return d
	}
	eventually(t, "a is alone", learner.when(func() bool { return last(a).Alone && !last(a).Shared && last(a).UUID == gpu0 }))
	b.open(0, gpu0)
	atomic.StoreUint32(&b.seg.Devices[0].BusyStreams, 1)
	eventually(t, "b works beside a", learner.when(func() bool {
		return !last(a).Alone && last(a).Shared && !last(b).Shared
	}))
	atomic.StoreUint32(&b.seg.Devices[0].BusyStreams, 0)
	eventually(t, "b stops", learner.when(func() bool { return !last(a).Shared }))
}

func TestALearnerKnowsWhoseKernelsRunBesideOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		high, low, third int // classes
		corun            bool
		want             map[string]bool // whose may
	}{
		"one yields to the other":               {high: 2, low: 7, third: -1},
		"and may run beside it":                 {high: 2, low: 7, third: -1, corun: true, want: map[string]bool{"high": true, "low": true}},
		"nobody yields":                         {high: 5, low: 5, third: -1, want: map[string]bool{"high": true, "low": true}},
		"two of a class below one":              {high: 2, low: 7, third: 7, want: map[string]bool{"low": true, "third": true}},
		"two of a class, and one that they let": {high: 7, low: 7, third: 2, want: map[string]bool{"high": true, "low": true}},
	} {
		t.Run(name, func(t *testing.T) {
			learner := newPen()
			s := serve(t, func(o *Options) { o.Learner = learner })
			s.policy.corun = tt.corun
			programs := map[string]*program{}
			for name, class := range map[string]int{"high": tt.high, "low": tt.low, "third": tt.third} {
				if class < 0 {
					continue
				}
				s.policy.grants[name] = Grant{Tenant: "t", Priority: class, MaxPriority: class, MaxWeight: 100, Weight: 100}
				programs[name] = attach(t, s.path, hello(name))
				programs[name].open(0, gpu0)
				atomic.StoreUint32(&programs[name].seg.Devices[0].BusyStreams, 1)
			}
			eventually(t, "what they do together is known", learner.when(func() bool {
				for name, p := range programs {
					devices := learner.devices[p.welcome.ClientID]
					if len(devices) != 1 || !devices[0].Shared || devices[0].Together != tt.want[name] {
						return false
					}
				}
				return true
			}))
		})
	}
}

func TestALearnerKnowsHowFastAClientLaunches(t *testing.T) {
	learner := newPen()
	s := serve(t, func(o *Options) { o.Learner = learner })
	a := attach(t, s.path, hello("a"))
	a.open(0, gpu0)
	id := a.welcome.ClientID
	launches := uint64(0)
	eventually(t, "it launches", func() bool {
		launches += 1000 // whatever time has passed
		atomic.StoreUint64(&a.seg.Threads[3].Launches, launches)
		return learner.when(func() bool { return learner.rates[id] > 1000 })()
	})
	fastest := uint64(0)
	learner.when(func() bool { fastest = learner.rates[id]; return true })()
	eventually(t, "it stops, which is believed little by little", learner.when(func() bool { return learner.rates[id] < fastest*9/10 }))
	atomic.StoreUint64(&a.seg.Threads[3].Launches, 0)
	eventually(t, "its count begins anew", learner.when(func() bool { return learner.rates[id] < fastest/2 }))
}

func TestACorruptSampleEndsItsWriter(t *testing.T) {
	s := serve(t, func(o *Options) { o.Learner = newPen() })
	liar, honest := attach(t, s.path, hello("liar")), attach(t, s.path, hello("honest"))
	liar.open(0, gpu0)
	honest.open(0, gpu0)
	liar.tell(0, 1) // no key
	eventually(t, "the liar is evicted", func() bool { return s.evicted("liar") != "" })
	if s.evicted("honest") != "" {
		t.Error("the honest client, too")
	}
}

func TestAFloodOfSamplesLeavesTheOthersTheirTurn(t *testing.T) {
	learner := newPen()
	s := serve(t, func(o *Options) { o.Learner = learner })
	var floods []*program
	for range learnMost/abi.Samples + 4 {
		p := attach(t, s.path, hello("flood"))
		p.open(0, gpu0)
		floods = append(floods, p)
	}
	quiet := attach(t, s.path, hello("quiet"))
	quiet.open(0, gpu0)
	quiet.tell(9, 1)
	eventually(t, "the last is heard while all others write as fast as they can", func() bool {
		for _, p := range floods {
			for range abi.Samples {
				p.tell(5, 1)
			}
		}
		return learner.when(func() bool { return len(learner.samples[quiet.welcome.ClientID]) == 1 })()
	})
}
