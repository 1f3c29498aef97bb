package device

import "math/bits"

// bitset is a set of small numbers that is walked in order.
type bitset []uint64

func (b *bitset) grow(n int) {
	for len(*b)*64 < n {
		*b = append(*b, 0)
	}
}

func (b bitset) add(i Stream)    { b[i/64] |= 1 << (i % 64) }
func (b bitset) remove(i Stream) { b[i/64] &^= 1 << (i % 64) }

// from returns the smallest member that is not below i, or none.
func (b bitset) from(i Stream) Stream {
	for w := int(i / 64); w < len(b); w++ {
		word := b[w]
		if w == int(i/64) {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return Stream(w*64 + bits.TrailingZeros64(word))
		}
	}
	return none
}
