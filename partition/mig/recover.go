package mig

import (
	"context"
	"errors"
	"slices"

	"github.com/heddle-project/heddle/runtime/gpu"
)

// Recover ends what the executor before this one left: a device that is as wanted is published, every
// other one goes back to what it was. After a start of the machine nothing is left of any instance. An
// error speaks of the devices that are quarantined now, and of those that could not be looked at, which
// stay as they are for the next call.
func (e *Executor) Recover(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []error
	for device, s := range e.devices {
		if !s.last.Phase.ended() {
			all = append(all, e.recover(ctx, device, s))
		}
	}
	return errors.Join(append(all, e.compact())...)
}

func (e *Executor) recover(ctx context.Context, device gpu.UUID, s *state) error {
	e.transaction = record{Transaction: s.last.Transaction, Boot: s.last.Boot, Device: device.String()}
	if s.last.Boot != e.opt.Boot {
		r := e.transaction
		r.Phase, r.Reason = undone, "the machine was started again"
		return e.log(device, r)
	}
	now, err := e.opt.MIG.GPUInstances(ctx, device)
	if err != nil {
		return err
	}
	if s.last.Phase != undoing && e.whole(device, now, s.last.Want) {
		return e.finish(ctx, device, s.last.Want, committed)
	}
	before := slices.Clone(s.ours)
	if err := e.backward(ctx, device, before); err != nil {
		r := e.transaction
		r.Phase, r.Reason, r.Ours = quarantined, "recovering transaction: "+err.Error(), before
		return errors.Join(err, e.log(device, r))
	}
	return nil
}

// whole reports whether our instances are those, each with a compute instance.
func (e *Executor) whole(device gpu.UUID, now []gpu.GPUInstance, want []place) bool {
	missing := slices.Clone(want)
	for i := range now {
		if !e.isOurs(device, &now[i]) {
			continue
		}
		at := slices.Index(missing, ownedOf(&now[i]).place)
		if at < 0 || len(now[i].Compute) == 0 {
			return false
		}
		missing = slices.Delete(missing, at, at+1)
	}
	return len(missing) == 0
}

// compact leaves one record for each device, once nothing is open. Instances of another boot are gone.
func (e *Executor) compact() error {
	var last []record
	for device, s := range e.devices {
		if !s.last.Phase.ended() {
			return nil
		}
		if s.last.Boot == e.opt.Boot {
			r := s.last
			r.Device, r.Ours, r.Want, r.Step = device.String(), s.ours, nil, nil
			last = append(last, r)
		}
	}
	slices.SortFunc(last, func(a, b record) int { return int(a.Transaction) - int(b.Transaction) })
	return e.journal.shorten(last)
}
