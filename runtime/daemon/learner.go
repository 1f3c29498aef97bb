package daemon

import (
	"sync"

	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/shm"
)

// learner hands what clients tell to the library, and what it knows to the clients. It is used by one
// goroutine.
type learner struct {
	sparse    uint32
	inventory *inventory
	policies  *policies
	library   *library.Library
	heard     map[uint64]int // by client: launches that it told, up to introduction

	mu    sync.Mutex
	asked map[uint64]uint32 // by client: one launch in so many, as somebody asked for
}

// ask has one launch in every of a client measured where it is known, 0 = as otherwise.
func (l *learner) ask(client uint64, every uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[client] = every; every == 0 {
		delete(l.asked, client)
	}
}

// watchedMore is how many times more launches are measured of a client that others yield to: from
// them follows how much the others may do.
const watchedMore = 10

// introduction is how many launches a client tells, as one that others yield to does, before less is
// asked of it: it may do more or less now under the name of what is known, and once others are on its
// devices that is harder to tell.
const introduction = 256

// measuredMost is how many launches of a client are measured in a second, about, however fast it
// launches. A measured one costs microseconds, and so many tell enough.
const measuredMost = 1000

// measureSparsest bounds what a client's own count of its launches leads to.
const measureSparsest = 1_000_000

var _ clients.Learner = (*learner)(nil)

// Learn implements clients.Learner. A client on several devices has one table for all of them: where
// they are of different models, what is known of the first counts.
func (l *learner) Learn(lesson *clients.Lesson) clients.Advice {
	var (
		advice clients.Advice
		tables [][]profiles.Entry
	)
	l.heard[lesson.Client] = min(l.heard[lesson.Client]+len(lesson.Samples), introduction)
	for i := range lesson.Devices {
		d := &lesson.Devices[i]
		model, ok := l.inventory.model(gpu.UUID(d.UUID))
		if policy, _ := l.policies.of(gpu.UUID(d.UUID)); !ok || policy == (sched.None{}).Name() {
			continue // plugged in just now, or nobody asks
		}
		a := l.library.Learn(library.Reader{Client: lesson.Client, Device: string(d.UUID[:])}, &library.Lesson{
			Workload: library.Workload{
				Identity: profiles.Identity{
					Tenant: lesson.Tenant, Name: lesson.Name,
					Command: lesson.Identity.Command, Executable: lesson.Identity.Executable,
				},
				Model: model.name, Device: profiles.Device{SMs: model.multiprocessors},
			},
			Descriptions: descriptions(lesson.Kernels),
			Samples:      l.samples(lesson.Samples, d),
			Sparse:       l.every(lesson.Client, lesson.Rate, d),
			Beside:       sched.Bound(d.Beside),
		})
		if advice.MeasureEvery == 0 || a.MeasureEvery != 0 && a.MeasureEvery < advice.MeasureEvery {
			advice.MeasureEvery = a.MeasureEvery
		}
		advice.Fresh = advice.Fresh || a.Fresh
		tables = append(tables, a.Table)
	}
	if advice.Fresh {
		advice.Profile = entries(tables)
	}
	return advice
}

// every is how many launches of a known workload there shall be to one that is measured on a device.
func (l *learner) every(client, rate uint64, d *clients.LessonDevice) uint32 {
	l.mu.Lock()
	asked := l.asked[client]
	l.mu.Unlock()
	least := uint32(min(rate/measuredMost, measureSparsest))
	switch {
	case asked != 0:
		return asked
	case d.Watched, l.heard[client] < introduction:
		return max(1, l.sparse/watchedMore, least)
	case d.Alone:
		// Nobody needs to know more of it now, and its launches take the fast path meanwhile.
		return 0
	default:
		return max(l.sparse, least)
	}
}

// Leave implements clients.Learner.
func (l *learner) Leave(client uint64) {
	l.ask(client, 0)
	delete(l.heard, client)
	l.library.Leave(client)
}

func descriptions(kernels []shm.Kernel) []profiles.Description {
	list := make([]profiles.Description, len(kernels))
	for i := range kernels {
		k := &kernels[i]
		list[i] = profiles.Description{
			Key: k.Key, Name: k.Name, Module: k.ModuleHash, Graph: k.Graph,
			Shape: profiles.Shape{
				Grid: k.Grid, Block: k.Block, DynamicShared: k.DynamicShared, StaticShared: k.StaticShared,
				Registers: k.Registers, ThreadsMax: k.ThreadsMax, BlocksPerSM: k.BlocksPerSM,
			},
		}
	}
	return list
}

// samples are those of one device.
func (l *learner) samples(all []shm.Sample, d *clients.LessonDevice) []profiles.Sample {
	var list []profiles.Sample
	_, shared := l.inventory.sharing(gpu.UUID(d.UUID))
	for i := range all {
		s := &all[i]
		if s.Slot != d.Slot {
			continue
		}
		list = append(list, profiles.Sample{
			Kernel: s.Kernel, Previous: s.Previous, DeviceTime: s.DeviceTime, Gap: s.Gap,
			Measured: s.Measured, HasGap: s.HasGap, Graph: s.Graph,
			Shared: d.Shared, Together: d.Together && shared,
		})
	}
	return list
}

// entries joins tables. Of a key that stands in several the first counts.
func entries(tables [][]profiles.Entry) []shm.ProfileEntry {
	var joined []shm.ProfileEntry
	seen := map[uint64]struct{}{}
	for _, table := range tables {
		for _, e := range table {
			if _, ok := seen[e.Key]; ok {
				continue
			}
			if len(tables) > 1 {
				seen[e.Key] = struct{}{}
			}
			joined = append(joined, shm.ProfileEntry(e))
		}
	}
	return joined
}
