package daemon

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/store"
)

// Reserve implements api.Backend. The process need not be attached yet; once it is, it is in the most
// urgent class for as long as the promise holds.
func (b *backend) Reserve(ctx context.Context, req *heddlev1.ReserveRequest) (*heddlev1.Reservation, error) {
	d := b.d
	if req.GetPid() == 0 || req.GetPid() > pidMax {
		return nil, errdefs.Errorf(errdefs.Invalid, "no process has the number %d", req.GetPid())
	}
	pid := int(req.GetPid())
	if req.GetRelease() {
		if err := d.reservations.release(pid); err != nil {
			return nil, err
		}
		d.log.Info("reservation released", "pid", pid)
		b.regrant(ctx, pid)
		return nil, nil //nolint:nilnil // there is none any more
	}
	device, err := b.reserved(ctx, req.GetDevice())
	if err != nil {
		return nil, err
	}
	want := store.Reservation{
		PID: pid, Device: device, Period: req.GetPeriod().AsDuration(), Budget: req.GetBudget().AsDuration(),
		Deadline: req.GetDeadline().AsDuration(), MaxBlock: req.GetMaxBlock().AsDuration(),
	}
	if req.GetDeadline() == nil {
		want.Deadline = want.Period
	}
	if req.GetMaxBlock() != nil && (want.MaxBlock < time.Microsecond || want.MaxBlock > time.Hour) {
		return nil, errdefs.Errorf(errdefs.Invalid, "max_block %v is not between 1us and 1h", want.MaxBlock)
	}
	made, err := d.reservations.reserve(want)
	if err != nil {
		return nil, err
	}
	d.log.Info("device time reserved", "pid", pid, "device", device, "period", want.Period, "budget", want.Budget,
		"deadline", want.Deadline, "response", made.Response)
	b.regrant(ctx, pid)
	return protoReservation(&made), nil
}

// pidMax is the largest pid that the OS kernel can be told to give.
const pidMax = 1 << 22

// reserved finds the device that is meant: by its UUID, or the only one there is.
func (b *backend) reserved(ctx context.Context, name string) (string, error) {
	d := b.d
	if err := d.inventory.refresh(ctx, d.driver); err != nil {
		return "", err
	}
	var names []string
	if name != "" {
		names = append(names, name)
	}
	uuids, err := d.inventory.named(names)
	switch {
	case err != nil:
		return "", err
	case len(uuids) == 0:
		return "", errdefs.Errorf(errdefs.NotFound, "there is no device on this node")
	case len(uuids) > 1:
		return "", errdefs.Errorf(errdefs.Invalid, "%d devices could be meant: name one", len(uuids))
	}
	return uuids[0].GPUString(), nil
}

// regrant brings the clients of a process in line with its reservation.
func (b *backend) regrant(ctx context.Context, pid int) {
	b.d.clients.Regrant(ctx, func(c *clients.Info) bool { return c.PID == pid })
	b.d.clients.Replan()
}

// Reservations implements api.Backend.
func (b *backend) Reservations(context.Context) ([]*heddlev1.Reservation, error) {
	var list []*heddlev1.Reservation
	for _, r := range b.d.reservations.list() {
		p := protoReservation(&r)
		if uuid, err := gpu.ParseUUID(r.Device); err == nil {
			p.Device = b.d.inventory.name(uuid)
		}
		list = append(list, p)
	}
	return list, nil
}

func protoReservation(r *reservation) *heddlev1.Reservation {
	p := &heddlev1.Reservation{
		Pid: uint32(r.PID), Device: r.Device, Period: durationpb.New(r.Period), Budget: durationpb.New(r.Budget), // a pid
		Deadline: durationpb.New(r.Deadline), Response: durationpb.New(r.Response), AtRisk: r.AtRisk,
	}
	if r.MaxBlock != 0 {
		p.MaxBlock = durationpb.New(r.MaxBlock)
	}
	return p
}
