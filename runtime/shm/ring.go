package shm

import (
	"sync/atomic"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// ring follows one ring of numbered records in a client's segment. The client overwrites the oldest
// when nobody reads, so that writing never blocks it; what was missed is counted.
type ring struct {
	view    ClientView
	what    string  // for errors
	head    *uint64 // records ever written, in shared memory
	size    uint64  // places
	next    uint64  // number of the next record to read
	stalled bool    // record next was claimed but not complete at the last look
}

type recordState int

const (
	recordComplete recordState = iota
	recordUnfinished
	recordOverwritten
)

// read calls take for every new record, oldest first, and returns how many were lost. One call
// looks at no more records than the ring holds, however fast the client writes. take tells whether
// record n was there; it delivers what it took by itself.
func (r *ring) read(take func(n uint64) (recordState, error)) (lost uint64, err error) {
	if err := r.view.Check(); err != nil {
		return 0, err
	}
	head := atomic.LoadUint64(r.head)
	if head < r.next {
		return 0, errdefs.Errorf(errdefs.Corrupt, "%s head went back from %d to %d", r.what, r.next, head)
	}
	if head-r.next > r.size {
		lost = head - r.next - r.size
		r.next = head - r.size
		r.stalled = false
	}
	for r.next != head {
		state, err := take(r.next)
		if err != nil {
			return lost, err
		}
		switch {
		case state == recordComplete:
		case state == recordUnfinished && !r.stalled:
			// Its writer is in the middle of it, or died there: one more look decides.
			r.stalled = true
			return lost, nil
		default:
			lost++
		}
		r.stalled = false
		r.next++
	}
	return lost, nil
}

// stateOf tells by its sequence word whether record n can be copied.
func stateOf(n uint64, sequence *uint64) recordState {
	switch s := atomic.LoadUint64(sequence); {
	case s < n+1:
		return recordUnfinished
	case s > n+1:
		return recordOverwritten
	default:
		return recordComplete
	}
}

// copied tells whether what was copied is record n. A writer that laps the reader begins by claiming
// a number, so the head read after the copy tells whether the copied bytes can be a later record's.
func (r *ring) copied(n uint64) recordState {
	if atomic.LoadUint64(r.head) > n+r.size {
		return recordOverwritten
	}
	return recordComplete
}
