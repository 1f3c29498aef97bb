package sched_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/heddle-project/heddle/runtime/sched"
)

// program always has work for a device that serves launches in the order in which they came. What its
// launches take is seen from outside: from the end of its launch before, whatever was between them.
type program struct {
	kernel  time.Duration
	pause   time.Duration // without work, after every so many launches
	every   int
	open    bool
	queued  int
	done    int
	readyAt time.Duration // it launches nothing before
	lastEnd time.Duration
	busyAt  time.Duration // up to when its busy time was counted
	served  time.Duration // in truth
	seen    sched.Observed
}

const playWindow = 4 * time.Millisecond

// refill launches what a program may, at a time, and returns how much.
func (p *program) refill(now time.Duration) (launched int) {
	for p.open && now >= p.readyAt && (p.queued == 0 || time.Duration(p.queued+1)*p.kernel <= playWindow) {
		if p.queued == 0 {
			p.count(now)
			p.lastEnd = now
		}
		p.queued++
		launched++
	}
	return launched
}

// count counts its busy time: with work, and not kept from launching.
func (p *program) count(now time.Duration) {
	if p.queued > 0 && p.open {
		p.seen.Busy += now - p.busyAt
	}
	p.busyAt = now
}

// finish ends the program's oldest launch.
func (p *program) finish(now time.Duration) {
	p.count(now)
	p.queued--
	p.done++
	p.seen.Service += now - p.lastEnd
	p.lastEnd = now
	if p.every != 0 && p.done%p.every == 0 {
		p.readyAt = now + p.pause
	}
}

// observed is what a daemon sees.
func (p *program) observed(now time.Duration) sched.Observed {
	p.count(now)
	o := p.seen
	o.Backlogged = p.queued > 0 || (!p.open && now >= p.readyAt)
	return o
}

// serial is a device that runs one launch at a time: in the order in which they came, or one program
// for a quantum and then the next.
type serial struct {
	quantum time.Duration // 0 = in order
	order   []int         // whose launches, in order
	turn    int
	left    time.Duration   // of the turn
	rest    []time.Duration // of the launch of each program that was begun
}

// next says which program is served, and for how long at most.
func (d *serial) next(programs []*program) (program int, length time.Duration) {
	if d.quantum == 0 {
		return d.order[0], programs[d.order[0]].kernel
	}
	if d.left == 0 || programs[d.turn].queued == 0 {
		d.left = d.quantum
		for range programs {
			d.turn = (d.turn + 1) % len(programs)
			if programs[d.turn].queued != 0 {
				break
			}
		}
	}
	if d.rest[d.turn] == 0 {
		d.rest[d.turn] = programs[d.turn].kernel
	}
	return d.turn, min(d.rest[d.turn], d.left)
}

// serve gives a program the device, and reports whether its launch is complete.
func (d *serial) serve(program int, length time.Duration) bool {
	if d.quantum == 0 {
		d.order = d.order[1:]
		return true
	}
	d.left -= length
	d.rest[program] -= length
	return d.rest[program] == 0
}

// together plays programs under a policy and returns what part of the time each was served.
func together(policy sched.Policy, clients []sched.Client, programs []*program, shared bool, length time.Duration) []float64 {
	const interval = 2 * time.Millisecond
	d := serial{rest: make([]time.Duration, len(programs))}
	if !shared {
		d.quantum = 2 * time.Millisecond
	}
	devices := map[sched.DeviceID]sched.Device{"gpu": {Shared: shared, Limits: sched.Limits{SMs: 132}}}
	nextPlan, now := time.Duration(0), time.Duration(0)
	for now < length {
		work := false
		for i, p := range programs {
			for range p.refill(now) {
				d.order = append(d.order, i)
			}
			work = work || p.queued != 0
		}
		who, took := 0, 10*time.Microsecond
		if work {
			who, took = d.next(programs)
		}
		for ; nextPlan <= now+took; nextPlan += interval {
			at := max(now, nextPlan)
			for i, p := range programs {
				clients[i].Observed = p.observed(at)
			}
			for _, v := range policy.Plan(sched.View{NowNs: 1e9 + uint64(at), Clients: clients, Devices: devices}) {
				programs[v.Client-1].open = v.Gate&sched.GateClosed == 0
			}
			for i, p := range programs {
				for range p.refill(at) {
					d.order = append(d.order, i)
				}
			}
		}
		now += took
		if work {
			programs[who].served += took
			if d.serve(who, took) {
				programs[who].finish(now)
			}
		}
	}
	shares := make([]float64, len(programs))
	for i, p := range programs {
		shares[i] = float64(p.served) / float64(length)
	}
	return shares
}

// Two that fill the device get alike of it, however long their kernels are: if both are on the device
// at once, a kernel of 20 us waits for one of a millisecond each time, and both seem to have had the
// whole time.
func TestKernelsOfAnyLengthShareFairly(t *testing.T) {
	us := time.Microsecond
	tests := []struct {
		kernels []time.Duration
		weights []int
		within  float64
	}{
		{[]time.Duration{100 * us, 100 * us}, []int{100, 100}, 0.02},
		{[]time.Duration{1000 * us, 20 * us}, []int{100, 100}, 0.02},
		// What is left on the device when a turn ends is charged to the next, and of a kernel of 3 ms it
		// is more than of others.
		{[]time.Duration{30 * us, 300 * us, 3000 * us}, []int{100, 100, 100}, 0.09},
		{[]time.Duration{100 * us, 100 * us, 100 * us}, []int{100, 200, 400}, 0.03},
		{[]time.Duration{1000 * us, 30 * us, 200 * us}, []int{100, 200, 400}, 0.03},
	}
	for _, tt := range tests {
		for _, on := range []struct {
			policy string
			shared bool
		}{{"heddle", false}, {"heddle", true}, {"fair", false}, {"fair", true}} {
			t.Run(fmt.Sprint(tt.kernels, tt.weights, on), func(t *testing.T) {
				policy, err := sched.NewPolicy(on.policy, sched.DefaultSettings())
				if err != nil {
					t.Fatal(err)
				}
				clients := same(len(tt.kernels), 100)
				var programs []*program
				total := 0
				for i, k := range tt.kernels {
					clients[i].Weight = tt.weights[i]
					total += tt.weights[i]
					clients[i].Demand = sched.Demand{Known: true, PeakSMs: 132}
					programs = append(programs, &program{kernel: k})
				}
				sum := 0.0
				shares := together(policy, clients, programs, on.shared, 10*time.Second)
				for i, got := range shares {
					sum += got
					want := float64(tt.weights[i]) / float64(total)
					if math.Abs(got-want) > tt.within*want {
						t.Errorf("client %d got %.4f of the device, want %.4f within %.0f %%", i+1, got, want, tt.within*100)
					}
				}
				if sum < 0.99 {
					t.Errorf("the device was at work for %.3f of the time", sum)
				}
			})
		}
	}
}

// A service has no work between its requests: it finds its gate open, beside whomever it comes.
func TestAServiceTakesNoTurns(t *testing.T) {
	for _, name := range []string{"heddle", "fair"} {
		policy, err := sched.NewPolicy(name, sched.DefaultSettings())
		if err != nil {
			t.Fatal(err)
		}
		clients := same(2, 100)
		closed := 0
		for plan := range 5000 {
			clients[0].Observed.Backlogged = true
			clients[0].Observed.Service += time.Millisecond
			clients[0].Observed.Busy += time.Millisecond
			if clients[1].Observed.Backlogged = plan%4 == 0; clients[1].Observed.Backlogged {
				clients[1].Observed.Service += time.Millisecond / 2
				clients[1].Observed.Busy += time.Millisecond / 2
			}
			for _, v := range policy.Plan(sched.View{NowNs: uint64(plan) * 2e6, Clients: clients}) {
				if v.Client == 2 && v.Gate&sched.GateClosed != 0 {
					closed++
				}
			}
		}
		if closed != 0 {
			t.Errorf("%s: a service with work in one plan of four was closed in %d of 5000", name, closed)
		}
	}
}

// Whoever has the turn and was stopped must not keep it from others.
func TestATurnThatIsNotUsedGoesOn(t *testing.T) {
	policy := sched.NewHeddle(sched.DefaultSettings())
	clients := same(2, 100)
	open := [2]int{}
	for plan := range 1000 {
		for i := range clients {
			clients[i].Observed.Backlogged = true
		}
		for _, v := range policy.Plan(sched.View{NowNs: uint64(plan) * 2e6, Clients: clients}) {
			if v.Gate&sched.GateClosed == 0 {
				open[v.Client-1]++
				if v.Client == 2 || plan < 200 { // from then on the first does nothing
					clients[v.Client-1].Observed.Service += time.Millisecond
					clients[v.Client-1].Observed.Busy += time.Millisecond
				}
			}
		}
	}
	if open[1] < 800 {
		t.Errorf("beside one that was stopped the other was open in %d plans of 1000", open[1])
	}
}

// Nobody makes others' launches free by saying that it has been busy for an age, or pays less itself.
func TestAnImpossibleBusyTimeChangesNoShare(t *testing.T) {
	policy := sched.NewHeddle(sched.DefaultSettings())
	clients := same(2, 100)
	open := [2]int{}
	for plan := range 2000 {
		for i := range clients {
			clients[i].Observed.Backlogged = true
		}
		clients[0].Observed.Busy += time.Duration(plan%3) * time.Hour
		for _, v := range policy.Plan(sched.View{NowNs: 1e9 + uint64(plan)*2e6, Clients: clients}) {
			if v.Gate&sched.GateClosed == 0 {
				open[v.Client-1]++
				clients[v.Client-1].Observed.Service += 2 * time.Millisecond
				clients[1].Observed.Busy += 2 * time.Millisecond * time.Duration(v.Client-1)
			}
		}
	}
	if part := float64(open[0]) / float64(open[0]+open[1]); part > 0.55 {
		t.Errorf("the liar has %.3f of the turns", part)
	}
}
