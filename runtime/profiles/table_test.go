package profiles

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/shm"
)

func describe(p *Profile, key uint64, blocks uint32) {
	p.Describe(Description{Key: key, Name: "k", Shape: Shape{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{128, 1, 1}, BlocksPerSM: 1}})
}

func TestTheTableTellsWhatIsUsefulFirst(t *testing.T) {
	p := New(ID{"w", "d"})
	describe(p, 1, 200)
	describe(p, 2, 20)
	for range 100 {
		p.Observe(took(1, 50*us))
		p.Observe(took(2, 200*us))
	}
	p.Observe(took(3, us))          // seen once: a prediction, not to be run beside others
	p.Describe(Description{Key: 4}) // only described
	gap := func(previous, kernel uint64, g time.Duration) {
		for range 10 {
			p.Observe(Sample{Kernel: kernel, Previous: previous, Gap: g, HasGap: true})
		}
	}
	gap(1, 2, 500*us)
	gap(2, 1, 300*us)
	gap(1, 1, 700*us) // so that kernel 1 alone says nothing, and its pairs do
	entries, left := p.Table(h100, sched.Bound{SMs: 20, DRAM: 0.5})
	want := []Entry{
		{Key: 2, Estimate: 200 * us, Gap: 500 * us, CoRun: true, Steady: true, SMNeed: 20},
		{Key: PairKey(1, 1), Gap: 700 * us},
		{Key: 1, Estimate: 50 * us, Steady: true, SMNeed: 200},
		{Key: PairKey(2, 1), Gap: 300 * us},
		{Key: 3, Estimate: us},
	}
	if diff := cmp.Diff(want, entries); diff != "" || left != 0 {
		t.Errorf("%d left\n%s", left, diff)
	}
	if entries, _ := p.Table(h100, sched.Bound{}); len(entries) != len(want) || entries[0].CoRun {
		t.Errorf("with nobody to run beside: %+v", entries)
	}
	if entries, _ := p.Table(h100, sched.Bound{SMs: 20, DRAM: 0.4}); entries[0].CoRun {
		t.Error("a kernel of unknown class may run beside one that needs the memory")
	}
}

// reader is the client's side: the table as it is filled, and heddle_profile_find.
type reader [tableEntries]uint64

func (r *reader) write(key uint64) bool {
	for i := range tableProbes {
		if at := (int(key>>tableShift) + i) % tableEntries; r[at] == 0 {
			r[at] = key
			return true
		}
	}
	return false
}

func (r *reader) find(key uint64) bool {
	for i := range tableProbes {
		switch r[(int(key>>tableShift)+i)%tableEntries] {
		case 0:
			return false
		case key:
			return true
		}
	}
	return false
}

// crowdedProfile has many kernels and pairs, some of them with the same first places.
func crowdedProfile(r *rand.Rand) *Profile {
	p := New(ID{"w", "d"})
	for range 1 + r.IntN(kernelsMax) {
		key := max(1, r.Uint64())
		if r.IntN(4) == 0 {
			key |= 0x7fd << tableShift // round the end
		}
		for range 5 {
			p.Observe(took(key, time.Duration(1+r.IntN(1000))*us))
		}
		previous := r.Uint64()
		for range 5 * r.IntN(3) {
			p.Observe(Sample{Kernel: key, Previous: previous, Gap: 300 * us, HasGap: true})
			p.Observe(Sample{Kernel: key, Previous: previous + 1, Gap: 900 * us, HasGap: true})
		}
	}
	return p
}

func TestAReaderFindsEveryEntryOfATable(t *testing.T) {
	r := newRand(t)
	most, lost := 0, 0
	for range 30 {
		p := crowdedProfile(r)
		entries, left := p.Table(h100, sched.Bound{SMs: 50, DRAM: 1})
		var table reader
		for _, e := range entries {
			if e.Key == 0 || e.Estimate < 0 || e.Gap < 0 || !table.write(e.Key) {
				t.Fatalf("entry %+v finds no place", e)
			}
		}
		for _, e := range entries {
			if !table.find(e.Key) {
				t.Fatalf("entry %+v is not found", e)
			}
		}
		most, lost = max(most, len(entries)), lost+left

		v, err := shm.NewVerdict(1, shm.ClockParams{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		published := make([]shm.ProfileEntry, len(entries))
		for i, e := range entries {
			published[i] = shm.ProfileEntry(e)
		}
		if dropped, err := v.PublishProfile(published); dropped != 0 || err != nil {
			t.Errorf("%d entries dropped, %v", dropped, err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if most < 500 || lost == 0 {
		t.Errorf("at most %d entries, %d left: the generator misses what matters", most, lost)
	}
}

func TestDemandIsWeightedByTime(t *testing.T) {
	figures := func(p *Profile, key uint64, dram, l2, issue, fp64, hit float64) {
		f := &p.Kernel(key).Figures
		f.Set(DRAM, dram)
		f.Set(L2, l2)
		f.Set(Issue, issue)
		f.Set(FP64, fp64)
		f.Set(L2Hit, hit)
	}
	run := func(p *Profile, key uint64, n int, length time.Duration) {
		for range n {
			p.Observe(took(key, length))
		}
	}
	tests := []struct {
		name  string
		learn func(p *Profile)
		want  sched.Demand
	}{
		{"nothing is known", func(*Profile) {}, sched.Demand{}},
		{"described, never measured", func(p *Profile) { describe(p, 1, 5) }, sched.Demand{}},
		{"one kernel", func(p *Profile) {
			describe(p, 1, 40)
			run(p, 1, 10, 50*us)
		}, sched.Demand{Known: true, PeakSMs: 40, DRAM: 0.5, Longest: 50 * us}},
		{"three quarters of the time in a small kernel", func(p *Profile) {
			describe(p, 1, 10)
			describe(p, 2, 100)
			run(p, 1, 30, 10*us)
			run(p, 2, 1, 90*us)
		}, sched.Demand{Known: true, PeakSMs: 10, DRAM: 0.5, Longest: 90 * us}},
		{"less than that", func(p *Profile) {
			describe(p, 1, 10)
			describe(p, 2, 100)
			run(p, 1, 10, 10*us)
			run(p, 2, 5, 90*us)
		}, sched.Demand{Known: true, PeakSMs: 100, DRAM: 0.5, Longest: 90 * us}},
		{"nobody said what it needs: it may need all", func(p *Profile) { run(p, 1, 10, 50*us) },
			sched.Demand{Known: true, PeakSMs: 132, DRAM: 0.5, Longest: 50 * us}},
		{"most of the time in a kernel seen once", func(p *Profile) {
			run(p, 1, 10, 10*us)
			run(p, 2, 1, 500*us)
		}, sched.Demand{PeakSMs: 132, DRAM: 0.5, Longest: 500 * us}},
		{"measured with figures", func(p *Profile) {
			describe(p, 1, 40)
			describe(p, 2, 264)
			run(p, 1, 10, 50*us)
			run(p, 2, 10, 150*us)
			figures(p, 1, 0.8, 0.4, 0.2, 0, 0.5)
			figures(p, 2, 0.4, 0, 0.6, 0.4, 0.9)
		}, sched.Demand{Known: true, PeakSMs: 264, DRAM: 0.5, Longest: 150 * us, Vector: sched.Vector{
			Known: true, SMs: 264, Threads: 128, L2Hit: 0.8,
			Use: [sched.Channels]float64{0.5, 0.1, 0.5, 0, 0.3, 0},
		}}},
		{"figures of a small part of the time", func(p *Profile) {
			describe(p, 1, 40)
			describe(p, 2, 40)
			run(p, 1, 10, 50*us)
			run(p, 2, 10, 150*us)
			figures(p, 1, 0.9, 0.4, 0.2, 0, 0.5)
		}, sched.Demand{Known: true, PeakSMs: 40, DRAM: 0.6, Longest: 150 * us}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(ID{"w", "d"})
			tt.learn(p)
			if diff := cmp.Diff(tt.want, p.Demand(h100), rounded); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheSlowdownIsWithinItsBounds(t *testing.T) {
	r := newRand(t)
	const clients = 400
	right, bounds := 0, 0.0
	for range clients {
		truth := 1 + r.Float64()
		var s Slowdown
		for range 200 {
			expected := time.Duration(1+r.IntN(100)) * us
			s.Add(steadyTime(r, time.Duration(truth*float64(expected)), 0.1), Outcome{Expected: expected})
		}
		ratio, plusMinus, ok := s.Estimate()
		if !ok {
			t.Fatal("no estimate")
		}
		truth *= 1.00501 // the mean of a log-normal time is above its middle
		if ratio-plusMinus <= truth && truth <= ratio+plusMinus {
			right++
		}
		bounds += plusMinus / clients
	}
	if right < clients*88/100 || bounds > 0.1 {
		t.Errorf("%d of %d within bounds of %.3f", right, clients, bounds)
	}
}

func TestTheSlowdownSaysWhenItKnowsNothing(t *testing.T) {
	var s Slowdown
	for range slowdownLeast - 1 {
		s.Add(120*us, Outcome{Expected: 100 * us})
	}
	s.Add(time.Second, Outcome{}) // of which nothing was expected
	s.Add(-1, Outcome{Expected: 1})
	if _, _, ok := s.Estimate(); ok {
		t.Error("an estimate from too few launches")
	}
	s.Add(120*us, Outcome{Expected: 100 * us, Error: 0.05})
	ratio, plusMinus, ok := s.Estimate()
	if !ok || !near(ratio, 1.2) || !near(plusMinus, slowdownSure*1.2*0.01) {
		t.Errorf("%g +- %g, %t", ratio, plusMinus, ok)
	}
	s.Restart()
	if _, _, ok := s.Estimate(); ok || s.Measured != 600*us || s.Expected != 500*us {
		t.Errorf("after a restart: %+v", s)
	}
}

func TestOnlyAPunctualKernelIsSteady(t *testing.T) {
	p := New(ID{"w", "d"})
	for i := range time.Duration(40) {
		p.Observe(took(1, 100*us+i%2*us))
		p.Observe(took(2, 100*us+i%2*100*us))
	}
	entries, _ := p.Table(Device{}, sched.Bound{})
	steady := map[uint64]bool{}
	for _, e := range entries {
		steady[e.Key] = e.Steady
	}
	if !steady[1] || steady[2] {
		t.Errorf("steady: %v, want the first only", steady)
	}
}
