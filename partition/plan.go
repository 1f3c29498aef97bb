package partition

import (
	"slices"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// Present is an instance that is on a device now.
type Present struct {
	Instance
	ID      int    // of the GPU instance
	Foreign bool   // not ours: it is planned around and never touched
	Holder  string // who uses it, empty = it is idle
	Movable bool   // its holder can be drained and started again elsewhere
}

// held reports whether an instance must stay.
func (p *Present) held() bool { return p.Foreign || p.Holder != "" && !p.Movable }

// Op is what a step does.
type Op int

// The steps of a plan.
const (
	Drain   Op = iota // the holder gives the instance up
	Destroy           // compute instances, then the GPU instance
	Create            // the GPU instance, then its compute instance
)

func (o Op) String() string { return [...]string{"drain", "destroy", "create"}[o] }

// Step is one change of a device.
type Step struct {
	Op       Op
	Instance Instance
	ID       int    // of the GPU instance; 0 where it is made
	Holder   string // of a Drain
}

// Plan takes a device from what is on it to another layout. Its steps are legal in their order, whatever
// prefix of them has been carried out.
type Plan struct {
	Steps []Step
	Kept  []Present // instances that are in both layouts stay what they are
}

// Cost is what a plan disturbs: first the drained, then the destroyed, then the created.
type Cost struct{ Drains, Destroys, Creates int }

// Less orders costs: who disturbs nobody comes first.
func (c Cost) Less(o Cost) bool {
	switch {
	case c.Drains != o.Drains:
		return c.Drains < o.Drains
	case c.Destroys != o.Destroys:
		return c.Destroys < o.Destroys
	default:
		return c.Creates < o.Creates
	}
}

// Cost counts the steps.
func (p *Plan) Cost() (c Cost) {
	for _, s := range p.Steps {
		switch s.Op {
		case Drain:
			c.Drains++
		case Destroy:
			c.Destroys++
		case Create:
			c.Creates++
		}
	}
	return c
}

// Diff plans the way from what is on a device to a layout of our own instances; foreign ones stay and
// are not part of it. Only the difference is changed. The error says which instance is in the way and
// who holds it (Busy), or why the layout cannot be.
func (b *Board) Diff(now []Present, want Layout) (*Plan, error) {
	all := slices.Clone(want)
	for _, p := range now {
		if p.Foreign {
			all = append(all, p.Instance)
		}
	}
	if err := b.Check(all); err != nil {
		return nil, err
	}
	plan := &Plan{}
	missing := slices.Clone(want)
	var drains, destroys []Step
	for _, p := range now {
		if p.Foreign {
			continue
		}
		if at := slices.Index(missing, p.Instance); at >= 0 {
			missing = slices.Delete(missing, at, at+1)
			plan.Kept = append(plan.Kept, p)
			continue
		}
		if p.held() {
			return nil, errdefs.Errorf(errdefs.Busy, "%s is held by %s", b.String(Layout{p.Instance}), p.Holder)
		}
		if p.Holder != "" {
			drains = append(drains, Step{Drain, p.Instance, p.ID, p.Holder})
		}
		destroys = append(destroys, Step{Op: Destroy, Instance: p.Instance, ID: p.ID})
	}
	plan.Steps = append(drains, destroys...)
	for i := range b.profiles { // the most constrained first
		for _, in := range missing {
			if in.Profile == b.profiles[i].ID {
				plan.Steps = append(plan.Steps, Step{Op: Create, Instance: in})
			}
		}
	}
	return plan, nil
}

// Arrange finds places for instances of these profiles, by number, beside what is foreign: so that the
// plan from what is there costs least, and of those so that the fewest fragments are left.
func (b *Board) Arrange(now []Present, profiles []int, w Weights) (Layout, error) {
	s := search{board: b, weights: w}
	var r room
	for i := range now {
		if !now[i].Foreign {
			s.ours = append(s.ours, now[i])
			continue
		}
		p, err := b.Profile(now[i].Profile)
		if err != nil {
			return nil, err
		}
		r.take(p, now[i].Start)
	}
	for _, id := range profiles {
		if _, err := b.Profile(id); err != nil {
			return nil, err
		}
	}
	s.wanted = slices.Clone(profiles)
	slices.SortStableFunc(s.wanted, func(x, y int) int { return b.rank(x) - b.rank(y) })
	s.try(r, nil, 0)
	if !s.found && len(profiles) == 0 {
		return nil, s.busy
	}
	if !s.found {
		return nil, errdefs.Errorf(errdefs.Exhausted, "no layout has %s%s", b.multiset(profiles), s.blocked())
	}
	return s.best.Sorted(), nil
}

// rank is the place of a profile in the board's order.
func (b *Board) rank(id int) int {
	for i := range b.profiles {
		if b.profiles[i].ID == id {
			return i
		}
	}
	return len(b.profiles)
}

// search goes through all places of the wanted instances, of which a board has few.
type search struct {
	board   *Board
	weights Weights
	ours    []Present
	wanted  []int // profiles, the most constrained first

	found     bool
	best      Layout
	cost      Cost
	fragments float64
	busy      error // what was in the way of a layout that could be
}

func (s *search) try(r room, l Layout, next int) {
	if next == len(s.wanted) {
		s.judge(&r, l)
		return
	}
	p, err := s.board.Profile(s.wanted[next])
	if err != nil {
		return
	}
	from := 0
	if next > 0 && s.wanted[next-1] == s.wanted[next] {
		from = l[len(l)-1].Start + 1 // instances of one profile are alike
	}
	for _, start := range p.Starts {
		if start < from || !s.board.fits(&r, p, start) {
			continue
		}
		taken := r
		taken.take(p, start)
		s.try(taken, append(slices.Clip(l), Instance{p.ID, start}), next+1)
	}
}

func (s *search) judge(r *room, l Layout) {
	plan, err := s.board.Diff(s.ours, l)
	if err != nil {
		s.busy = err
		return
	}
	cost, fragments := plan.Cost(), s.board.fragments(r, s.weights)
	if !s.found || cost.Less(s.cost) || cost == s.cost && fragments < s.fragments {
		s.found, s.best, s.cost, s.fragments = true, l, cost, fragments
	}
}

func (s *search) blocked() string {
	if s.busy == nil {
		return ""
	}
	return ": " + s.busy.Error()
}

// multiset is like "2 x 3g.40gb, 1g.10gb".
func (b *Board) multiset(profiles []int) string {
	text := ""
	for i := range b.profiles {
		n := 0
		for _, id := range profiles {
			if id == b.profiles[i].ID {
				n++
			}
		}
		if n == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		if n > 1 {
			text += numbers([]int{n}) + " x "
		}
		text += b.profiles[i].Name
	}
	return text
}
