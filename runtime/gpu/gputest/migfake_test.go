package gputest_test

import (
	"testing"

	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/gpu/gputest"
)

func TestFakePassesTheMIGSuite(t *testing.T) {
	device := gpu.UUID{1}
	one := gpu.Profile{
		ID: 19, Name: "1g.10gb", ComputeSlices: 1, MemorySlices: 1, MemoryBytes: 10 << 30, Multiprocessors: 16, InstancesMax: 7,
		Starts: []int{0, 1, 2, 3, 4, 5, 6},
	}
	whole := gpu.Profile{ID: 0, Name: "7g.80gb", ComputeSlices: 7, MemorySlices: 8, MemoryBytes: 80 << 30, Multiprocessors: 132, InstancesMax: 1, Starts: []int{0}}
	m := gputest.NewMIG([]gpu.Profile{whole, one}, device)
	gputest.MIGSuite(t, m, device)
}
