package sim

import (
	"fmt"
	"time"

	"github.com/heddle-project/heddle/runtime/sim/device"
)

// blockThreads is the block size of every kernel. Its grid is what fills the SMs that it asks for,
// so any size would do.
const blockThreads = 256

// gpu is the device with one stream per program.
type gpu struct {
	model   device.GPU
	dev     *device.Device
	shared  bool
	streams []device.Stream
	perSM   uint64
}

func newGPU(name string, shared bool) (*gpu, error) {
	model, ok := device.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("no GPU model is named %q", name)
	}
	return &gpu{
		model: model, dev: device.New(model), shared: shared,
		perSM: uint64(max(1, model.BlocksFor(device.Kernel{Block: blockThreads}))),
	}, nil
}

func (g *gpu) sms() int { return int(g.model.SMs) }

// addClient makes a context with one stream, for a program whose streams have this priority.
func (g *gpu) addClient(priority int32) int {
	percent := device.Own
	if g.shared {
		percent = 100
	}
	// Of two priorities of the driver the smaller number goes first.
	g.streams = append(g.streams, g.dev.AddStream(g.dev.AddContext(percent), -priority, device.NonBlocking))
	return len(g.streams) - 1
}

func (g *gpu) submit(stream int, k *Kernel, timeNs uint64) {
	g.dev.Kernel(g.streams[stream], uint64(stream), device.Kernel{
		Grid: uint64(k.SMs) * g.perSM, Block: blockThreads, Time: float64(timeNs), DRAM: k.DRAM,
	})
}

// next returns the time of the device's next event, if there is one.
func (g *gpu) next() (uint64, bool) {
	at, ok := g.dev.Next()
	return uint64(max(0, at)), ok
}

// advance moves the device to a time and hands out what ended.
func (g *gpu) advance(to uint64, done func(stream int, start, end uint64)) {
	for _, c := range g.dev.Advance(int64(to)) {
		done(int(c.Tag), uint64(c.Start), uint64(c.End))
	}
}

// smTime is the time for which SMs were held, summed over the SMs.
func (g *gpu) smTime() time.Duration { return time.Duration(g.dev.Usage().SM) }
