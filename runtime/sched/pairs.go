package sched

import "time"

// Pairs remembers who hurt whom: a pair of clients with two strikes does not run side by side
// until Forgive has passed since the last one.
type Pairs struct {
	Forgive time.Duration

	strikes map[[2]ClientID]strikes
}

type strikes struct {
	count   int
	sinceNs uint64
}

const strikesOut = 2

// Strike notes that low slowed high down beyond what was allowed.
func (p *Pairs) Strike(nowNs uint64, low, high ClientID) {
	if p.strikes == nil {
		p.strikes = map[[2]ClientID]strikes{}
	}
	s := p.strikes[[2]ClientID{low, high}]
	if s.count >= strikesOut && nowNs-s.sinceNs >= uint64(p.Forgive) {
		s.count = 0
	}
	p.strikes[[2]ClientID{low, high}] = strikes{s.count + 1, nowNs}
}

// Struck reports whether the two must not run side by side now.
func (p *Pairs) Struck(nowNs uint64, low, high ClientID) bool {
	s := p.strikes[[2]ClientID{low, high}]
	return s.count >= strikesOut && nowNs-min(s.sinceNs, nowNs) < uint64(p.Forgive)
}
