package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/sched"
	"github.com/heddle-project/heddle/runtime/store"
	"github.com/heddle-project/heddle/runtime/wire"
)

// reservations are the promises made to real-time processes: so much device time in each period, done
// by a deadline. A promise holds for a process until it ends, over restarts of heddled.
type reservations struct {
	store    *store.Store
	log      *slog.Logger
	blocking func(device gpu.UUID, maxBlock time.Duration, reserved func(pid int) bool) blocking

	mu   sync.Mutex
	held map[int]*reservation // by pid

	// What planners ask for, under a lock of its own: they must not wait for the disk.
	boundsMu sync.Mutex
	bounds   map[gpu.UUID]time.Duration
}

// reservation is one promise.
type reservation struct {
	store.Reservation
	Response time.Duration // within which all of the device's promises can be kept
	AtRisk   string        // why it cannot be kept at present; empty = it can
}

// blocking is what can be in the way of real-time work on a device when it comes.
type blocking struct {
	Time time.Duration
	// Unbounded says why no time can be given.
	Unbounded string
}

func newReservations(s *store.Store, log *slog.Logger, block func(gpu.UUID, time.Duration, func(int) bool) blocking) (*reservations, error) {
	kept, err := s.Reservations()
	if err != nil {
		return nil, err
	}
	r := &reservations{store: s, log: log, blocking: block, held: map[int]*reservation{}}
	for _, k := range kept {
		r.held[k.PID] = &reservation{Reservation: k}
	}
	r.sweep()
	r.rebound()
	return r, nil
}

// reserve makes a promise, or says why it cannot be kept. One made to the process before is replaced.
func (r *reservations) reserve(want store.Reservation) (reservation, error) {
	var err error
	if want.Started, err = processStart(want.PID); err != nil {
		return reservation{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	response, err := r.admit(want.Device, &want)
	switch {
	case errors.Is(err, sched.ErrTask):
		return reservation{}, errdefs.Errorf(errdefs.Invalid, "%w", err)
	case err != nil:
		return reservation{}, errdefs.Errorf(errdefs.Exhausted, "%w", err)
	}
	// First to disk: a promise must not be forgotten by a crash.
	if err := r.store.KeepReservation(want); err != nil {
		return reservation{}, err
	}
	made := &reservation{Reservation: want, Response: response}
	r.held[want.PID] = made
	r.rebound()
	return *made, nil
}

// admit asks whether the promises of a device can be kept, with one more if more is not nil.
func (r *reservations) admit(device string, more *store.Reservation) (time.Duration, error) {
	uuid, err := gpu.ParseUUID(device)
	if err != nil {
		return 0, err
	}
	var tasks []sched.Task
	add := func(k *store.Reservation) {
		tasks = append(tasks, sched.Task{Client: sched.ClientID(k.PID), Period: k.Period, Budget: k.Budget, Deadline: k.Deadline}) // a pid
	}
	longest := time.Duration(0) // 0 = nobody bounds it
	bound := func(k *store.Reservation) {
		if k.MaxBlock != 0 && (longest == 0 || k.MaxBlock < longest) {
			longest = k.MaxBlock
		}
	}
	for pid, k := range r.held {
		if k.Device == device && (more == nil || pid != more.PID) {
			add(&k.Reservation)
			bound(&k.Reservation)
		}
	}
	if more != nil {
		add(more)
		bound(more)
	}
	b := r.blocking(uuid, longest, func(pid int) bool {
		return r.held[pid] != nil || more != nil && pid == more.PID
	})
	if b.Unbounded != "" {
		return 0, errors.New(b.Unbounded)
	}
	return sched.Admit(tasks, b.Time)
}

// release takes a promise back.
func (r *reservations) release(pid int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[pid] == nil {
		return errdefs.Errorf(errdefs.NotFound, "process %d has no reservation", pid)
	}
	return r.drop(pid)
}

func (r *reservations) drop(pid int) error {
	delete(r.held, pid)
	r.rebound()
	return r.store.DropReservation(pid)
}

// sweep drops the promises of processes that ended, and looks whether the others can still be kept:
// clients of lower classes come and learn longer kernels.
func (r *reservations) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, k := range r.held {
		if started, err := processStart(pid); err == nil && started == k.Started {
			continue
		}
		if err := r.drop(pid); err != nil {
			r.log.Warn("drop reservation", "pid", pid, "error", err)
		}
	}
	for pid, k := range r.held {
		response, err := r.admit(k.Device, nil)
		why := ""
		if err != nil {
			why = err.Error()
		}
		if (why == "") != (k.AtRisk == "") {
			r.log.Warn("reservation", "pid", pid, "kept", why == "", "reason", why)
		}
		k.Response, k.AtRisk = response, why
	}
}

// of says whether a process has a promise, on any device.
func (r *reservations) of(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return pid != 0 && r.held[pid] != nil
}

// maxBlock is the shortest bound on launches of lower classes that the promises of a device asked for,
// 0 = none did.
func (r *reservations) maxBlock(device wire.UUID) time.Duration {
	r.boundsMu.Lock()
	defer r.boundsMu.Unlock()
	return r.bounds[gpu.UUID(device)]
}

// rebound works out the bounds anew, after promises were made or dropped.
func (r *reservations) rebound() {
	bounds := map[gpu.UUID]time.Duration{}
	for _, k := range r.held {
		uuid, err := gpu.ParseUUID(k.Device)
		if err != nil || k.MaxBlock == 0 {
			continue
		}
		if shortest := bounds[uuid]; shortest == 0 || k.MaxBlock < shortest {
			bounds[uuid] = k.MaxBlock
		}
	}
	r.boundsMu.Lock()
	defer r.boundsMu.Unlock()
	r.bounds = bounds
}

// list returns all promises by pid.
func (r *reservations) list() []reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []reservation
	for _, k := range r.held {
		list = append(list, *k)
	}
	slices.SortFunc(list, func(a, b reservation) int { return a.PID - b.PID })
	return list
}

// blockingOn adds up what each client of a lower class may have on the device: its window, or its
// longest kernel if that is longer. Of kernels that nobody measured it is the class's estimate.
func (p *planner) blockingOn(uuid gpu.UUID, maxBlock time.Duration, reserved func(pid int) bool) blocking {
	name, _ := p.policies.of(uuid)
	if !slices.Contains([]string{"heddle", "priority", "fikit"}, name) {
		return blocking{Unbounded: "under the policy " + name + " nobody waits for real-time clients"}
	}
	p.mu.Lock()
	members := slices.Clone(p.members[wire.UUID(uuid)])
	p.mu.Unlock()
	var b blocking
	for i := range members {
		m := &members[i]
		if m.Class == 0 {
			if !reserved(m.PID) {
				b.Unbounded = fmt.Sprintf("client %d is in class realtime without a reservation", m.Client)
			}
			continue
		}
		b.Time += p.inTheWay(uuid, m, maxBlock)
	}
	return b
}

func (p *planner) inTheWay(uuid gpu.UUID, m *clients.Member, maxBlock time.Duration) time.Duration {
	class := p.settings.Classes[min(m.Class, sched.Classes-1)]
	longest := p.library.Known(library.Reader{Client: m.Client, Device: string(uuid[:])}).Demand.Longest
	if longest == 0 {
		longest = class.Estimate
	}
	for _, bound := range []time.Duration{maxBlock, class.MaxBlock} {
		if bound != 0 {
			longest = min(longest, bound)
		}
	}
	return max(class.Window, longest)
}
