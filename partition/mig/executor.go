package mig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddle-project/heddle/partition"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// Options are what an Executor is made of.
type Options struct {
	MIG     gpu.MIG
	Journal string // path of the file, in a folder of heddled's own
	Boot    string // the OS kernel's boot id
	// Drain asks the holder of an instance to give it up, and returns when it has, or why not.
	Drain func(ctx context.Context, device gpu.UUID, holder string) error
	// Publish tells the world how a device is cut now, before a transaction counts as done.
	Publish func(ctx context.Context, device gpu.UUID, instances []gpu.GPUInstance) error
	// point is where a test lets the process die.
	point func(where string)
	// Patience is for how long a device that is in use is asked again; 0 = it is asked once.
	Patience time.Duration
}

// Executor changes how devices are cut. Its methods may be called from several goroutines; transactions
// of one device, and those that write the journal, wait for each other.
type Executor struct {
	opt Options

	mu          sync.Mutex
	journal     *journal
	next        uint64
	devices     map[gpu.UUID]*state
	transaction record // that runs now
}

// state is what is known of a device from the journal.
type state struct {
	last record  // of its last transaction
	ours []owned // after it, or before it, if it has not ended
	made []place // that it intended to create
}

// Open reads the journal. What has not ended is left for [Executor.Recover].
func Open(opt Options) (*Executor, error) {
	j, records, err := openJournal(opt.Journal)
	if err != nil {
		return nil, err
	}
	e := &Executor{opt: opt, journal: j, devices: map[gpu.UUID]*state{}}
	for i := range records {
		if err := e.replay(&records[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("read journal %s: %w", opt.Journal, err), j.close())
		}
	}
	return e, nil
}

// Close closes the journal.
func (e *Executor) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.journal.close()
}

// replay brings what is known up to a record. Instances of another boot are gone.
func (e *Executor) replay(r *record) error {
	device, err := gpu.ParseUUID(r.Device)
	if err != nil {
		return errdefs.Errorf(errdefs.Corrupt, "transaction %d: %w", r.Transaction, err)
	}
	e.next = max(e.next, r.Transaction)
	s := e.devices[device]
	if s == nil {
		s = &state{}
		e.devices[device] = s
	}
	switch {
	case r.Phase == begun:
		s.ours, s.made = r.Ours, nil
	case r.Phase == intended && r.Step != nil:
		s.made = append(s.made, *r.Step)
	case r.Phase.ended():
		s.ours, s.made = r.Ours, nil
	}
	if r.Phase == begun || s.last.Transaction != r.Transaction {
		s.last = *r
	} else {
		s.last.Phase, s.last.Reason = r.Phase, r.Reason
	}
	return nil
}

// Quarantined says why nothing is done to a device, empty if it is.
func (e *Executor) Quarantined(device gpu.UUID) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.devices[device]; s != nil && s.last.Phase == quarantined && s.last.Boot == e.opt.Boot {
		return s.last.Reason
	}
	return ""
}

// Instances lists what is on a device, with the foreign ones marked. Holders are not known here.
func (e *Executor) Instances(ctx context.Context, device gpu.UUID) ([]partition.Present, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, err := e.opt.MIG.GPUInstances(ctx, device)
	if err != nil {
		return nil, err
	}
	list := make([]partition.Present, len(now))
	for i := range now {
		list[i] = partition.Present{
			Instance: partition.Instance{Profile: now[i].Profile, Start: now[i].Placement.Start},
			ID:       now[i].ID, Foreign: !e.isOurs(device, &now[i]),
		}
	}
	return list, nil
}

// isOurs reports whether the journal knows an instance: the one that is there now, and not another that
// was given its number.
func (e *Executor) isOurs(device gpu.UUID, in *gpu.GPUInstance) bool {
	s := e.devices[device]
	if s == nil || s.last.Boot != e.opt.Boot {
		return false
	}
	here := ownedOf(in)
	if slices.Contains(s.made, here.place) && !s.last.Phase.ended() {
		return true
	}
	return slices.ContainsFunc(s.ours, func(o owned) bool {
		// Without a compute instance nothing tells it from another: it is ours while a transaction runs.
		same := slices.Equal(o.Compute, here.Compute) || len(here.Compute) == 0 && !s.last.Phase.ended()
		return o.place == here.place && o.ID == here.ID && same
	})
}

// Apply carries out a plan that was made from what [Executor.Instances] lists. It returns nil if the
// device is as wanted. Else it is as it was, or quarantined, and the error says which and why.
func (e *Executor) Apply(ctx context.Context, device gpu.UUID, plan *partition.Plan) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.devices[device]; s != nil && s.last.Boot == e.opt.Boot {
		switch {
		case s.last.Phase == quarantined:
			return errdefs.Errorf(errdefs.Unavailable, "%s is quarantined: %s", device.GPUString(), s.last.Reason)
		case !s.last.Phase.ended():
			return errdefs.Errorf(errdefs.Busy, "transaction %d of %s has to be recovered first", s.last.Transaction, device.GPUString())
		}
	}
	before, err := e.observe(ctx, device)
	if err != nil {
		return err
	}
	want, err := target(before, plan)
	if err != nil {
		return err
	}
	e.next++
	e.transaction = record{Transaction: e.next, Boot: e.opt.Boot, Device: device.String()}
	begin := e.transaction
	begin.Phase, begin.Ours, begin.Want = begun, before, want
	if err := e.log(device, begin); err != nil {
		return err
	}
	err = e.forward(ctx, device, plan)
	if err == nil {
		err = e.finish(ctx, device, want, committed)
	}
	if err == nil {
		return nil
	}
	return e.undo(context.WithoutCancel(ctx), device, before, err)
}

// observe lists the instances of ours.
func (e *Executor) observe(ctx context.Context, device gpu.UUID) ([]owned, error) {
	now, err := e.opt.MIG.GPUInstances(ctx, device)
	if err != nil {
		return nil, err
	}
	var ours []owned
	for i := range now {
		if e.isOurs(device, &now[i]) {
			ours = append(ours, ownedOf(&now[i]))
		}
	}
	return ours, nil
}

// target is what ours will be after a plan. A plan that destroys what is not there, or not ours, was made
// of something else.
func target(before []owned, plan *partition.Plan) ([]place, error) {
	var want []place
	for _, o := range before {
		want = append(want, o.place)
	}
	for _, step := range plan.Steps {
		at := place{step.Instance.Profile, step.Instance.Start}
		switch step.Op {
		case partition.Drain:
		case partition.Destroy:
			i := slices.IndexFunc(before, func(o owned) bool { return o.place == at && o.ID == step.ID })
			if i < 0 {
				return nil, errdefs.Errorf(errdefs.Invalid, "the plan destroys GPU instance %d at slice %d, which is not ours or not there", step.ID, at.Start)
			}
			want = slices.Delete(want, slices.Index(want, at), slices.Index(want, at)+1)
		case partition.Create:
			want = append(want, at)
		}
	}
	return want, nil
}

// log writes a record and remembers it.
func (e *Executor) log(device gpu.UUID, r record) error {
	e.pass("before the record " + string(r.Phase))
	if err := e.journal.write(&r); err != nil {
		return err
	}
	e.pass("after the record " + string(r.Phase))
	if e.devices[device] == nil {
		e.devices[device] = &state{}
	}
	return e.replay(&r)
}

func (e *Executor) pass(where string) {
	if e.opt.point != nil {
		e.opt.point(where)
	}
}

// forward does the steps of a plan.
func (e *Executor) forward(ctx context.Context, device gpu.UUID, plan *partition.Plan) error {
	for _, step := range plan.Steps {
		var err error
		switch step.Op {
		case partition.Drain:
			if e.opt.Drain == nil {
				return errdefs.Errorf(errdefs.Busy, "%s holds a GPU instance, and nobody drains it", step.Holder)
			}
			err = e.opt.Drain(ctx, device, step.Holder)
		case partition.Destroy:
			err = e.destroy(ctx, device, step.ID)
		case partition.Create:
			err = e.create(ctx, device, place{step.Instance.Profile, step.Instance.Start})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// intend says what is about to be done.
func (e *Executor) intend(device gpu.UUID, create *place) error {
	r := e.transaction
	r.Phase, r.Step = intended, create
	return e.log(device, r)
}

func (e *Executor) create(ctx context.Context, device gpu.UUID, at place) error {
	profiles, err := e.opt.MIG.Profiles(ctx, device)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(profiles, func(p gpu.Profile) bool { return p.ID == at.Profile })
	if i < 0 {
		return errdefs.Errorf(errdefs.Invalid, "%s has no MIG profile %d", device.GPUString(), at.Profile)
	}
	if err := e.intend(device, &at); err != nil {
		return err
	}
	in, err := e.opt.MIG.CreateGPUInstance(ctx, device, at.Profile, gpu.Placement{Start: at.Start, Size: profiles[i].MemorySlices})
	if err != nil {
		return err
	}
	_, err = e.opt.MIG.CreateComputeInstance(ctx, device, in.ID)
	return err
}

// destroy takes a GPU instance away with what is on it. What is gone already is gone.
func (e *Executor) destroy(ctx context.Context, device gpu.UUID, id int) error {
	if err := e.intend(device, nil); err != nil {
		return err
	}
	now, err := e.opt.MIG.GPUInstances(ctx, device)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(now, func(in gpu.GPUInstance) bool { return in.ID == id })
	if at < 0 {
		return nil
	}
	for _, ci := range now[at].Compute {
		if err := e.patiently(ctx, func() error { return e.opt.MIG.DestroyComputeInstance(ctx, device, id, ci.ID) }); err != nil {
			return err
		}
	}
	return e.patiently(ctx, func() error { return e.opt.MIG.DestroyGPUInstance(ctx, device, id) })
}

// The pauses between two tries.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// patiently tries again what fails because somebody uses the device: monitors and programs that end hold
// it for a moment.
func (e *Executor) patiently(ctx context.Context, try func() error) error {
	pause, left := firstPause, e.opt.Patience
	for {
		err := try()
		switch {
		case errors.Is(err, errdefs.ErrNotFound):
			return nil
		case !errors.Is(err, errdefs.ErrBusy) || left <= 0:
			return err
		}
		pause = min(pause, left)
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
		left -= pause
		pause = min(2*pause, longPause)
	}
}

// finish checks that ours is what is wanted, publishes it, and ends the transaction.
func (e *Executor) finish(ctx context.Context, device gpu.UUID, want []place, as phase) error {
	now, err := e.opt.MIG.GPUInstances(ctx, device)
	if err != nil {
		return err
	}
	r := e.transaction
	r.Phase = as
	missing := slices.Clone(want)
	for i := range now {
		if !e.isOurs(device, &now[i]) {
			continue
		}
		here := ownedOf(&now[i])
		at := slices.Index(missing, here.place)
		if at < 0 || len(here.Compute) == 0 {
			return errdefs.Errorf(errdefs.Unavailable, "GPU instance %d at slice %d is there and should not be, or has no compute instance", here.ID, here.Start)
		}
		missing = slices.Delete(missing, at, at+1)
		r.Ours = append(r.Ours, here)
	}
	if len(missing) != 0 {
		return errdefs.Errorf(errdefs.Unavailable, "no GPU instance is at slice %d, where one was made", missing[0].Start)
	}
	if e.opt.Publish != nil {
		if err := e.opt.Publish(ctx, device, now); err != nil {
			return fmt.Errorf("publish how %s is cut: %w", device.GPUString(), err)
		}
	}
	return e.log(device, r)
}

// undo takes a device back to what it was, or leaves it alone from then on.
func (e *Executor) undo(ctx context.Context, device gpu.UUID, before []owned, cause error) error {
	r := e.transaction
	r.Phase, r.Reason = undoing, cause.Error()
	err := e.log(device, r)
	if err == nil {
		err = e.backward(ctx, device, before)
	}
	if err == nil {
		return cause
	}
	r.Phase, r.Reason = quarantined, fmt.Sprintf("%v; and undoing it: %v", cause, err)
	r.Ours = before // whatever of it is there stays ours
	return errors.Join(errdefs.Errorf(errdefs.Unavailable, "%s is quarantined: %s", device.GPUString(), r.Reason), e.log(device, r))
}

// backward destroys what of ours was not there before, and makes again what was.
func (e *Executor) backward(ctx context.Context, device gpu.UUID, before []owned) error {
	now, err := e.opt.MIG.GPUInstances(ctx, device)
	if err != nil {
		return err
	}
	missing := make([]place, len(before))
	for i := range before {
		missing[i] = before[i].place
	}
	want := slices.Clone(missing)
	for i := range now {
		if !e.isOurs(device, &now[i]) {
			continue
		}
		here := ownedOf(&now[i])
		if at := slices.Index(missing, here.place); at >= 0 && len(here.Compute) != 0 {
			missing = slices.Delete(missing, at, at+1)
			continue
		}
		if err := e.destroy(ctx, device, here.ID); err != nil {
			return err
		}
	}
	for _, at := range missing {
		if err := e.create(ctx, device, at); err != nil {
			return err
		}
	}
	return e.finish(ctx, device, want, undone)
}
