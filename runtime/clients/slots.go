package clients

import (
	"math/bits"

	"github.com/heddle-project/heddle/runtime/shm"
)

// slots are numbered places, of which the lowest free one is given away first.
type slots struct{ shm.Peers }

// Free returns a place that is not taken.
func (s *slots) Free() (int, bool) {
	for i, word := range s.Peers {
		if word != ^uint64(0) {
			return i*64 + bits.TrailingZeros64(^word), true
		}
	}
	return 0, false
}

// Remove frees place n.
func (s *slots) Remove(n int) { s.Peers[n/64] &^= 1 << (n % 64) }
