package daemon

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/heddle-project/heddle/runtime/abi"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/wire"
)

// RecordTrace implements api.Backend.
func (b *backend) RecordTrace(ctx context.Context, req *heddlev1.RecordTraceRequest, send func(*heddlev1.RecordTraceResponse) error) error {
	filter, err := b.traceFilter(req)
	if err != nil {
		return err
	}
	if req.Duration != nil {
		d := req.GetDuration().AsDuration()
		if d <= 0 {
			return errdefs.Errorf(errdefs.Invalid, "a trace of %s", d)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	first := &heddlev1.RecordTraceResponse{Start: &heddlev1.TraceStart{
		Time: timestamppb.Now(), ClockNs: b.d.clock.Now(), Version: b.d.opt.Version,
	}}
	if err := send(first); err != nil {
		return err
	}
	b.d.log.Info("trace begins", "clients", len(req.GetClients()), "devices", len(req.GetDevices()))
	begun := time.Now()
	scribe := &scribe{backend: b, devices: map[wire.UUID]uint32{}}
	err = b.d.clients.Trace(ctx, filter, func(t *clients.Trace) error { return send(scribe.write(t)) })
	b.d.log.Info("trace ended", "after", time.Since(begun).Round(time.Millisecond), "events", scribe.events, "missing", scribe.missing)
	return err
}

func (b *backend) traceFilter(req *heddlev1.RecordTraceRequest) (clients.TraceFilter, error) {
	filter := clients.TraceFilter{Clients: req.GetClients()}
	for _, id := range req.GetClients() {
		if _, err := b.living(func(c *clients.Info) bool { return c.ID == id }, "no client %d is attached", id); err != nil {
			return filter, err
		}
	}
	if len(req.GetDevices()) == 0 {
		return filter, nil
	}
	named, err := b.d.inventory.named(req.GetDevices())
	for _, uuid := range named {
		filter.Devices = append(filter.Devices, wire.UUID(uuid))
	}
	return filter, err
}

// scribe puts what clients tell into the words of the API.
type scribe struct {
	backend *backend
	devices map[wire.UUID]uint32 // numbers of those that were told
	events  int
	missing uint64
}

func (s *scribe) write(t *clients.Trace) *heddlev1.RecordTraceResponse {
	res := &heddlev1.RecordTraceResponse{Events: make([]*heddlev1.TraceEvent, len(t.Events))}
	for i := range t.Clients {
		res.Clients = append(res.Clients, s.backend.protoClient(&t.Clients[i]))
	}
	for i := range t.Kernels {
		res.Kernels = append(res.Kernels, protoKernel(&t.Kernels[i]))
	}
	events := make([]heddlev1.TraceEvent, len(t.Events)) // one allocation for many small ones
	for i := range t.Events {
		e := &t.Events[i]
		number, known := s.devices[e.Device]
		if !known {
			number = uint32(len(s.devices)) // few
			s.devices[e.Device] = number
			res.Devices = append(res.Devices, s.backend.d.inventory.traced(gpu.UUID(e.Device), number))
		}
		writeEvent(&events[i], e, number)
		res.Events[i] = &events[i]
	}
	for _, l := range t.Losses {
		res.Losses = append(res.Losses, &heddlev1.TraceLoss{Client: l.Client, Overwritten: l.Overwritten, Dropped: l.Dropped, Impossible: l.Impossible})
		s.missing += l.Overwritten + l.Dropped + l.Impossible
	}
	s.events += len(t.Events)
	return res
}

func protoKernel(k *clients.TraceKernel) *heddlev1.TraceKernel {
	return &heddlev1.TraceKernel{
		Client: k.Client, Key: k.Key, Name: k.Name, Grid: k.Grid[:], Block: k.Block[:],
		SharedBytes: k.DynamicShared, Graph: k.Graph,
	}
}

func writeEvent(to *heddlev1.TraceEvent, e *clients.TraceEvent, device uint32) {
	to.Kind = heddlev1.TraceKind(e.Kind) // one of four, with the same numbers
	to.Client, to.Device, to.Holder = e.Client, device, e.Holder
	to.TimeNs, to.DurationNs, to.PredictedNs = e.TimeNs, uint64(e.Duration), uint64(e.Guess)
	to.Kernel, to.Overrun, to.Measured, to.Graph = e.Kernel, e.Overrun, e.Measured, e.Graph
	to.YieldPoint = e.Yield
	if e.Stream != shm.NoStream {
		to.Stream = &e.Stream
	}
	if e.Kind == abi.TraceHold {
		to.Reason = traceReason(e.Reason)
	}
}

func traceReason(result uint32) heddlev1.TraceReason {
	switch result {
	case abi.GateHeldClosed:
		return heddlev1.TraceReason_TRACE_REASON_CLOSED
	case abi.GateHeldWindow:
		return heddlev1.TraceReason_TRACE_REASON_WINDOW
	case abi.GateHeldPeer:
		return heddlev1.TraceReason_TRACE_REASON_PEER
	case abi.GateHeldToken:
		return heddlev1.TraceReason_TRACE_REASON_TOKEN
	case abi.GateHeldLong:
		return heddlev1.TraceReason_TRACE_REASON_LONG
	default:
		return heddlev1.TraceReason_TRACE_REASON_UNSPECIFIED
	}
}

// traced describes a device by a number.
func (v *inventory) traced(uuid gpu.UUID, number uint32) *heddlev1.TraceDevice {
	d := &heddlev1.TraceDevice{Uuid: v.name(uuid), Number: number}
	v.mu.Lock()
	defer v.mu.Unlock()
	d.Name = v.models[uuid].name
	for i := range v.devices {
		of := &v.devices[i]
		if of.UUID == uuid {
			d.Index = uint32(of.Index) // small
		}
		for _, m := range of.MIGDevices {
			if m.UUID == uuid {
				d.Index = uint32(of.Index) // small
			}
		}
	}
	return d
}
