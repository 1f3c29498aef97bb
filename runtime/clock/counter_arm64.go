package clock

// ticks reads the virtual counter, not before earlier instructions are done.
//
//go:noescape
func ticks() uint64

// frequency reads how often the counter counts per second.
//
//go:noescape
func frequency() uint64

// invariant is true: the architecture promises it of the generic timer.
func invariant() bool { return true }
