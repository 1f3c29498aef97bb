package profiles

import "math/bits"

// The table in which a client finds what is published of its kernels. The numbers are those of the
// contract; a test holds them together.
const (
	tableEntries = 2048
	tableProbes  = 16
	tableShift   = 53
)

// fold folds a word into a hash, every bit of it into every bit.
func fold(hash, word uint64) uint64 {
	hash = (hash ^ word) * 0x9e3779b97f4a7c15
	hash = (hash ^ hash>>32) * 0xd6e8feb86659fd93
	return hash ^ hash>>32
}

// NameKey is the part of a key that is the same for all launches of one function.
func NameKey(name string) uint64 {
	hash := uint64(len(name))
	for i := range len(name) {
		hash = fold(hash, uint64(name[i]))
	}
	return hash
}

// LaunchKey is the key of a launch; never 0. name is that of [NameKey]. Keys are kept on disk, so
// this must not change, and the interposer computes the same in heddle/profile.h.
func LaunchKey(name uint64, grid, block [3]uint32, dynamicShared uint32) uint64 {
	hash := fold(name, uint64(grid[1])<<32|uint64(grid[0]))
	hash = fold(hash, uint64(block[0])<<32|uint64(grid[2]))
	hash = fold(hash, uint64(block[2])<<32|uint64(block[1]))
	hash = fold(hash, uint64(dynamicShared))
	return max(hash, 1)
}

// PairKey is the key of a kernel that comes after another; never 0.
func PairKey(previous, kernel uint64) uint64 {
	return max(fold(fold(1, previous), kernel), 1)
}

// product multiplies the sides of a grid or block and saturates: a client may claim anything.
func product(sides [3]uint32) uint64 {
	high, low := bits.Mul64(uint64(sides[0])*uint64(sides[1]), uint64(sides[2]))
	if high != 0 {
		return 1<<64 - 1
	}
	return low
}
