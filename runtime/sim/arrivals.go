package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Poisson returns arrivals at random times, rate per second on average, whether or not the service
// keeps up.
func Poisson(rate float64) func(seed uint64) Arrivals {
	return func(seed uint64) Arrivals {
		return &poisson{rand.New(rand.NewPCG(seed, 0x706f6973736f6e)), 1e9 / rate}
	}
}

type poisson struct {
	random *rand.Rand
	meanNs float64
}

func (p *poisson) Next(came, _ uint64) uint64 {
	return came + uint64(math.Round(p.random.ExpFloat64()*p.meanNs))
}

// Closed returns arrivals of a client that asks again so long after each answer.
func Closed(think time.Duration) func(seed uint64) Arrivals {
	return func(uint64) Arrivals { return closed(think) }
}

type closed time.Duration

func (c closed) Next(_, done uint64) uint64 { return done + uint64(c) }

// Gaps returns arrivals with the given times between them, over and over, from a place that
// depends on the seed.
func Gaps(gaps []time.Duration) func(seed uint64) Arrivals {
	return func(seed uint64) Arrivals {
		return &recorded{gaps, int(seed % uint64(len(gaps)))}
	}
}

type recorded struct {
	gaps []time.Duration
	at   int
}

func (r *recorded) Next(came, _ uint64) uint64 {
	gap := r.gaps[r.at]
	r.at = (r.at + 1) % len(r.gaps)
	return came + uint64(gap)
}
