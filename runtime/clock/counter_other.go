//go:build !amd64 && !arm64

package clock

func ticks() uint64 { return 0 }

func frequency() uint64 { return 0 }

func invariant() bool { return false }
