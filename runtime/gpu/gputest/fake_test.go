package gputest

import (
	"testing"

	"github.com/heddle-project/heddle/runtime/gpu"
)

func TestFakeIsADriver(t *testing.T) {
	Suite(t, func(*testing.T) gpu.Driver {
		f := New(H100(0), H100(1))
		f.SetProcessShares(H100(0).UUID, []gpu.ProcessShare{{PID: 1, Share: 0.5}})
		return f
	})
}
