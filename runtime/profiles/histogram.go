package profiles

import "math/bits"

// The buckets of a histogram: eight to an octave, from 256 ns to 2^36 ns (68 s). Shorter times fall
// into the first and longer ones into the last. Device events do not resolve less than the shortest.
const (
	octaveBits   = 3
	firstOctave  = 8
	lastOctave   = 36
	bucketsCount = (lastOctave - firstOctave) << octaveBits
)

// QuantileError bounds the error of [Histogram.Quantile] for times within the buckets, as a part of
// the true value: a bucket is an eighth of its octave's start wide and answers with its middle.
const QuantileError = 1.0 / (2 << octaveBits)

// Histogram counts times in buckets whose width grows with the time. The zero value is empty.
type Histogram struct {
	counts [bucketsCount]uint16
	total  uint32
}

// bucket is the one in which a time falls.
func bucket(ns uint64) int {
	octave := bits.Len64(ns) - 1
	if octave < firstOctave {
		return 0
	}
	if octave >= lastOctave {
		return bucketsCount - 1
	}
	return (octave-firstOctave)<<octaveBits + int(ns>>(octave-octaveBits)&(1<<octaveBits-1))
}

// middle is the time that a bucket stands for.
func middle(b int) uint64 {
	octave := firstOctave + b>>octaveBits
	width := uint64(1) << (octave - octaveBits)
	return 1<<octave + uint64(b&(1<<octaveBits-1))*width + width/2
}

// Add counts a time.
func (h *Histogram) Add(ns uint64) {
	b := bucket(ns)
	if h.total >= memory {
		h.halve()
	}
	h.counts[b]++
	h.total++
}

// halve forgets half of each count, as [Moments] do. A single count of an odd number survives:
// what happens now and then makes the tail.
func (h *Histogram) halve() {
	h.total = 0
	for b := range h.counts {
		h.counts[b] -= h.counts[b] / 2
		h.total += uint32(h.counts[b])
	}
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	var sums [bucketsCount]uint32
	total := uint32(0)
	for b := range sums {
		sums[b] = uint32(h.counts[b]) + uint32(o.counts[b])
		total += sums[b]
	}
	// Both remember no more than memory, so a sum fits and halving once is enough.
	shift := 0
	if total > memory {
		shift = 1
	}
	h.total = 0
	for b := range sums {
		h.counts[b] = uint16(sums[b] >> shift)
		h.total += uint32(h.counts[b])
	}
}

// Quantile returns a time that the given part of the counted ones do not exceed, within
// [QuantileError]; 0 of an empty histogram.
func (h *Histogram) Quantile(part float64) uint64 {
	if h.total == 0 {
		return 0
	}
	rank := uint32(1)
	if want := part * float64(h.total); want > 1 {
		rank = uint32(want)
		if float64(rank) < want {
			rank++
		}
	}
	rank = min(rank, h.total)
	for b, count := range h.counts {
		if uint32(count) >= rank {
			return middle(b)
		}
		rank -= uint32(count)
	}
	return middle(bucketsCount - 1)
}
