package sched

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGangsWithoutTurns(t *testing.T) {
	for _, test := range []struct {
		name  string
		seats []Seat
		want  []bool
	}{
		{"nobody", nil, []bool{}},
		{"without gangs the policies decide", []Seat{
			{Client: 1, Device: "a", Closed: true}, {Client: 2, Device: "a"},
		}, []bool{true, false}},
		{"a complete gang that nobody closed is open", []Seat{
			{Client: 1, Device: "a", Gang: 1, Complete: true}, {Client: 2, Device: "b", Gang: 1, Complete: true},
		}, []bool{false, false}},
		{"a gang with a missing rank is closed, its neighbours are not", []Seat{
			{Client: 1, Device: "a", Gang: 1, Backlogged: true}, {Client: 2, Device: "b", Gang: 1}, {Client: 3, Device: "a"},
		}, []bool{true, true, false}},
		{"a rank that has to wait closes the others, on whatever device", []Seat{
			{Client: 1, Device: "a", Gang: 1, Complete: true, Closed: true},
			{Client: 2, Device: "b", Gang: 1, Complete: true},
			{Client: 3, Device: "c", Gang: 1, Complete: true},
			{Client: 4, Device: "a"},
		}, []bool{true, true, true, false}},
		{"one rank that uses two devices is a gang over two devices", []Seat{
			{Client: 1, Device: "a", Gang: 1, Complete: true, Closed: true}, {Client: 1, Device: "b", Gang: 1, Complete: true},
		}, []bool{true, true}},
		{"the gangs of a device are looked at one by one", []Seat{
			{Client: 1, Device: "a", Gang: 1, Complete: true}, {Client: 2, Device: "a", Gang: 2},
		}, []bool{false, true}},
		{"a turn that a gang cannot use is lent to one that waits for it", []Seat{
			{Client: 1, Device: "a", Gang: 1, Backlogged: true},
			{Client: 5, Device: "a", Closed: true, Backlogged: true},
			{Client: 4, Device: "a", Closed: true, Backlogged: true},
			{Client: 3, Device: "a", Closed: true},
		}, []bool{true, true, false, true}},
		{"no turn is lent where somebody works", []Seat{
			{Client: 1, Device: "a", Gang: 1, Backlogged: true},
			{Client: 4, Device: "a", Closed: true, Backlogged: true},
			{Client: 5, Device: "a", Backlogged: true},
		}, []bool{true, true, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &Gangs{}
			if diff := cmp.Diff(test.want, g.Plan(1, test.seats)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each of two gangs has the turn on one of two devices: one after the other they run on both.
func TestTwoGangsThatHoldATurnEach(t *testing.T) {
	settings := DefaultSettings()
	g := &Gangs{}
	seats := []Seat{
		{Client: 1, Device: "a", Gang: 1}, {Client: 2, Device: "a", Gang: 2, Closed: true},
		{Client: 3, Device: "b", Gang: 1, Closed: true}, {Client: 4, Device: "b", Gang: 2},
	}
	for i := range seats {
		seats[i].Complete, seats[i].Backlogged = true, true
		seats[i].Turn = Turn("timeslice", settings)
	}
	ran := map[GangID]int{}
	const turns, step = 40, 10 * time.Millisecond
	for now := uint64(1); now < uint64(turns*settings.Quantum); now += uint64(step) {
		closed := g.Plan(now, seats)
		if closed[0] != closed[2] || closed[1] != closed[3] {
			t.Fatalf("a gang runs by half: %v", closed)
		}
		if !closed[0] && !closed[1] {
			t.Fatalf("both gangs run at %d ns", now)
		}
		for i := range 2 {
			if !closed[i] {
				ran[seats[i].Gang]++
			}
		}
	}
	share := turns * int(settings.Quantum/step) / 2
	for _, id := range []GangID{1, 2} {
		if ran[id] < share-share/10 || ran[id] > share+share/10 {
			t.Errorf("gang %d ran for %d steps of %d, want about half", id, ran[id], 2*share)
		}
	}
}

// Where a policy weighs what clients had, a gang cannot help itself to more.
func TestGangTakesNoTurnWhereNoneAreGiven(t *testing.T) {
	g := &Gangs{}
	seats := []Seat{
		{Client: 1, Device: "a", Class: 7, Gang: 1, Complete: true, Closed: true, Backlogged: true},
		{Client: 2, Device: "b", Class: 7, Gang: 1, Complete: true, Backlogged: true},
		{Client: 3, Device: "a", Class: 7, Backlogged: true},
	}
	for _, turn := range []string{"heddle", "timeslice"} {
		seats[1].Turn = Turn(turn, DefaultSettings())
		for now := range uint64(1000) {
			if diff := cmp.Diff([]bool{true, true, false}, g.Plan(now*1e7+1, seats)); diff != "" {
				t.Fatalf("with %s on the other device:\n%s", turn, diff)
			}
		}
	}
}

// The rank that is missing may have died in the gang's own turn.
func TestTurnEndsWithTheGang(t *testing.T) {
	g := &Gangs{}
	turn := Turn("timeslice", DefaultSettings())
	seats := []Seat{
		{Client: 1, Device: "a", Gang: 1, Complete: true, Backlogged: true, Closed: true, Turn: turn},
		{Client: 2, Device: "b", Gang: 1, Complete: true, Backlogged: true, Turn: turn},
		{Client: 3, Device: "a", Backlogged: true, Turn: turn},
	}
	g.Plan(1, seats)
	if diff := cmp.Diff([]bool{false, false, true}, g.Plan(2, seats)); diff != "" {
		t.Fatalf("the gang has no turn:\n%s", diff)
	}
	left := []Seat{{Client: 1, Device: "a", Gang: 1, Backlogged: true, Closed: true}, seats[2]}
	if diff := cmp.Diff([]bool{true, false}, g.Plan(3, left)); diff != "" {
		t.Errorf("a gang without its second rank:\n%s", diff)
	}
	for i := range seats {
		seats[i].Backlogged = i == 2
	}
	seats[0].Complete, seats[1].Complete = true, true
	if diff := cmp.Diff([]bool{true, true, false}, g.Plan(4, seats)); diff != "" {
		t.Errorf("a complete gang without work, beside a client with work:\n%s", diff)
	}
}

// world is a random set of clients, all of which always have work, on devices whose policies give
// turns one by one and not at the same time.
type world struct {
	devices  []DeviceID
	policies map[DeviceID]Policy
	offset   map[DeviceID]uint64
	seats    []Seat
	service  map[ClientID]time.Duration
}

func newWorld(r *rand.Rand, policy string) *world {
	settings := DefaultSettings()
	w := &world{policies: map[DeviceID]Policy{}, offset: map[DeviceID]uint64{}, service: map[ClientID]time.Duration{}}
	for i := range 2 + r.IntN(4) {
		d := DeviceID(rune('a' + i))
		w.devices = append(w.devices, d)
		w.policies[d], _ = NewPolicy(policy, settings)
		w.offset[d] = uint64(r.Int64N(int64(settings.Quantum)))
	}
	id := ClientID(0)
	add := func(d DeviceID, gang GangID) {
		id++
		w.seats = append(w.seats, Seat{
			Turn: Turn(policy, settings), Client: id, Device: d, Gang: gang, Complete: gang != 0, Backlogged: true, Class: r.IntN(Classes),
		})
	}
	for gang := range 1 + r.IntN(4) {
		first := r.IntN(len(w.devices))
		for i := range 1 + r.IntN(len(w.devices)) {
			add(w.devices[(first+i)%len(w.devices)], GangID(gang+1))
		}
	}
	for range r.IntN(5) {
		add(w.devices[r.IntN(len(w.devices))], 0)
	}
	r.Shuffle(len(w.seats), func(i, j int) { w.seats[i], w.seats[j] = w.seats[j], w.seats[i] })
	return w
}

// turns lets the policies of all devices decide.
func (w *world) turns(nowNs uint64) {
	closed := map[ClientID]bool{}
	for _, d := range w.devices {
		view := View{NowNs: nowNs + w.offset[d]}
		for _, s := range w.seats {
			if s.Device == d {
				view.Clients = append(view.Clients, Client{ID: s.Client, Device: d, Class: s.Class, Weight: 100, Observed: Observed{Backlogged: s.Backlogged, Service: w.service[s.Client]}})
			}
		}
		if len(view.Clients) == 0 {
			continue
		}
		for _, v := range w.policies[d].Plan(view) {
			closed[v.Client] = v.Gate&GateClosed != 0
		}
	}
	for i := range w.seats {
		w.seats[i].Closed = closed[w.seats[i].Client]
	}
}

func (w *world) String() string {
	text := ""
	for i := range w.seats {
		text += fmt.Sprintf("%s on %s; ", entity(&w.seats[i]), w.seats[i].Device)
	}
	return text
}

// entity is what shares a device: a gang, or a client of no gang.
func entity(s *Seat) string {
	if s.Gang != 0 {
		return fmt.Sprintf("gang %d", s.Gang)
	}
	return fmt.Sprintf("client %d", s.Client)
}

// serve lets those that are open share their devices for a step.
func (w *world) serve(step time.Duration, closed []bool) {
	open := map[DeviceID]time.Duration{}
	for i := range w.seats {
		if !closed[i] {
			open[w.seats[i].Device]++
		}
	}
	for i := range w.seats {
		if s := &w.seats[i]; !closed[i] {
			w.service[s.Client] += step / open[s.Device]
		}
	}
}

// check holds what must hold of every plan, and returns who runs; alone says that turns are exclusive.
func (w *world) check(t *testing.T, closed []bool, alone bool) map[string]bool {
	t.Helper()
	runs := map[string]bool{}
	onDevice := map[DeviceID]string{}
	for i := range w.seats {
		s := &w.seats[i]
		e := entity(s)
		if was, seen := runs[e]; seen && was == closed[i] {
			t.Fatalf("%s runs by half: %+v, closed %v", e, w.seats, closed)
		}
		runs[e] = !closed[i]
		if closed[i] {
			continue
		}
		if other := onDevice[s.Device]; alone && other != "" && other != e {
			t.Fatalf("%s and %s run on %s at the same time: %+v, closed %v", e, other, s.Device, w.seats, closed)
		}
		onDevice[s.Device] = e
	}
	return runs
}

func TestGangsNeverRunByHalfAndNobodyStarves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	settings := DefaultSettings()
	for world := range 12 {
		w := newWorld(r, "timeslice")
		g := &Gangs{}
		ran := map[string]int{}
		const quanta = 120
		step := uint64(settings.Quantum / 10)
		for now := uint64(1); now < quanta*uint64(settings.Quantum); now += step {
			w.turns(now)
			for e, runs := range w.check(t, g.Plan(now, w.seats), true) {
				if runs {
					ran[e]++
				}
			}
		}
		least := 10 * quanta / len(w.seats) / 3
		for i := range w.seats {
			if e := entity(&w.seats[i]); ran[e] < least {
				t.Errorf("world %d: %s ran for %d steps of %d, want %d: %v of %s", world, e, ran[e], 10*quanta, least, ran, w)
			}
		}
	}
}

// Where policies go by device time, gangs and the others let each other go by that alone.
func TestGangsGoOnWherePoliciesWeighDeviceTime(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	settings := DefaultSettings()
	for _, policy := range []string{"heddle", "fair"} {
		for world := range 8 {
			w := newWorld(r, policy)
			for i := range w.seats {
				w.seats[i].Class = 7 // of several classes the most urgent would have it all
			}
			g := &Gangs{}
			ran := map[string]int{}
			const steps = 1000
			for now := range uint64(steps) {
				nowNs := 1 + now*uint64(settings.Interval)
				w.turns(nowNs)
				closed := g.Plan(nowNs, w.seats)
				for e, runs := range w.check(t, closed, false) {
					if runs {
						ran[e]++
					}
				}
				w.serve(settings.Interval, closed)
			}
			least := steps / len(w.seats) / 4
			for e, n := range ran {
				if n < least {
					t.Errorf("%s, world %d: %s ran for %d steps of %d, want %d: %v of %s", policy, world, e, n, steps, least, ran, w)
				}
			}
		}
	}
}

// Whatever the policies say and whoever comes and goes, a gang never runs by half, one without all its
// ranks not at all, and a policy that closes nobody is changed in nothing else.
func TestGangsOnRandomPlans(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, policy := range PolicyNames() {
		g, again := &Gangs{}, &Gangs{}
		now := uint64(0)
		for range 1500 {
			now += uint64(r.Int64N(int64(10 * time.Millisecond)))
			closing := r.IntN(3) // of ten
			var seats []Seat
			complete := r.Uint32()
			for id := range ClientID(1 + r.IntN(12)) {
				s := Seat{
					Client: id + 1, Device: DeviceID(rune('a' + r.IntN(4))), Class: r.IntN(Classes), Gang: GangID(r.IntN(4)),
					Closed: r.IntN(10) < closing, Backlogged: r.IntN(2) == 0, Turn: Turn(policy, DefaultSettings()),
				}
				s.Complete = complete>>s.Gang&1 != 0
				seats = append(seats, s)
			}
			closed := g.Plan(now, seats)
			if diff := cmp.Diff(closed, again.Plan(now, seats)); diff != "" {
				t.Fatalf("the same plans gave other answers:\n%s", diff)
			}
			open := map[GangID]bool{}
			for i := range seats {
				s := &seats[i]
				was, seen := open[s.Gang]
				switch {
				case s.Gang == 0:
				case seen && was == closed[i]:
					t.Fatalf("gang %d runs by half: %+v, closed %v", s.Gang, seats, closed)
				case !s.Complete && !closed[i]:
					t.Fatalf("gang %d is open and not complete: %+v, closed %v", s.Gang, seats, closed)
				default:
					open[s.Gang] = !closed[i]
				}
			}
		}
	}
}
