package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/heddle-project/heddle/runtime/abi"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/store"
	"github.com/heddle-project/heddle/runtime/telemetry"
)

// backend answers the API from what the daemon holds.
type backend struct{ d *Daemon }

// Status implements api.Backend.
func (b *backend) Status(context.Context) (*heddlev1.StatusResponse, error) {
	d := b.d
	return &heddlev1.StatusResponse{
		Version:       d.opt.Version,
		Generation:    d.store.Generation(),
		AbiVersion:    abi.ABIVersion,
		Pid:           uint32(os.Getpid()), // a pid
		Started:       timestamppb.New(d.started),
		DriverVersion: d.versions.Driver,
		NvmlVersion:   d.versions.NVML,
		AttachSocket:  d.attach.Addr().String(),
		Clients:       uint32(d.clients.Count()),   // bounded by configuration
		Devices:       uint32(d.inventory.count()), // few
	}, nil
}

// ListDevices implements api.Backend.
func (b *backend) ListDevices(ctx context.Context) ([]*heddlev1.Device, error) {
	d := b.d
	if err := d.inventory.refresh(ctx, d.driver); err != nil {
		return nil, err
	}
	attached := map[gpu.UUID]uint32{}
	for _, c := range d.clients.List() {
		for _, dev := range c.Devices {
			attached[gpu.UUID(dev.UUID)]++
		}
	}
	var list []*heddlev1.Device
	for _, dev := range d.inventory.all() {
		usage, err := d.driver.Usage(ctx, dev.UUID)
		if errors.Is(err, errdefs.ErrNotFound) {
			continue // it fell off the bus just now; the others are still there
		}
		if err != nil {
			return nil, err
		}
		p := protoDevice(&dev, &usage, attached)
		p.Policy, p.PolicyOrigin = d.policies.of(dev.UUID)
		for i, m := range dev.MIGDevices {
			p.MigDevices[i].Policy, p.MigDevices[i].PolicyOrigin = d.policies.of(m.UUID)
		}
		list = append(list, p)
	}
	return list, nil
}

func protoDevice(dev *gpu.Device, usage *gpu.Usage, attached map[gpu.UUID]uint32) *heddlev1.Device {
	p := &heddlev1.Device{
		Uuid:               dev.UUID.GPUString(),
		Index:              uint32(dev.Index), // small
		Name:               dev.Name,
		MemoryTotalBytes:   dev.MemoryBytes,
		MemoryUsedBytes:    usage.MemoryUsedBytes,
		UtilizationPercent: uint32(max(usage.UtilizationPercent, 0)), // at most 100
		Multiprocessors:    uint32(dev.Multiprocessors),              // small
		PciBusId:           dev.PCIBusID,
		MigMode:            dev.MIG.String(),
		Mps:                slices.ContainsFunc(usage.Processes, func(p gpu.Process) bool { return p.MPS }),
		Clients:            attached[dev.UUID],
		Processes:          uint32(len(usage.Processes)), // small
		ComputeMode:        string(dev.ComputeMode),
	}
	for _, m := range dev.MIGDevices {
		p.Clients += attached[m.UUID]
		p.MigDevices = append(p.MigDevices, &heddlev1.MIGDevice{
			Uuid: m.UUID.MIGString(), Profile: m.Profile, MemoryTotalBytes: m.MemoryBytes,
		})
	}
	return p
}

// ListClients implements api.Backend.
func (b *backend) ListClients(_ context.Context, req *heddlev1.ListClientsRequest) ([]*heddlev1.Client, error) {
	var list []*heddlev1.Client
	for _, c := range b.d.clients.List() {
		if req.GetTenant() != "" && c.Tenant != req.GetTenant() {
			continue
		}
		if len(req.GetIds()) > 0 && !slices.Contains(req.GetIds(), c.ID) {
			continue
		}
		list = append(list, b.protoClient(&c))
	}
	return list, nil
}

func (b *backend) protoClient(c *clients.Info) *heddlev1.Client {
	p := &heddlev1.Client{
		Id:                c.ID,
		Pid:               uint32(c.PID), // a pid
		Uid:               uint32(c.UID), // a uid
		User:              c.User,
		Container:         c.Container,
		Tenant:            c.Tenant,
		Name:              c.Name,
		Program:           c.Program,
		Command:           c.Command,
		Priority:          uint32(c.Priority), // 0 to 9
		Weight:            uint32(c.Weight),   // at most 10000
		State:             heddlev1.ClientState_CLIENT_STATE_ATTACHED,
		Reason:            reason(c),
		Attached:          timestamppb.New(c.Attached),
		InterposerVersion: c.Build,
		Launches:          c.Launches,
		UnnamedAddresses:  c.Unnamed,
		Gang:              c.Gang,
		GangSize:          uint32(c.GangSize), // at most abi.GangMax
		GangRanks:         uint32(c.Ranks),    // bounded by configuration
	}
	if o := c.Objective; o.Set {
		p.Slo = config.Objective{Slowdown: o.Slowdown, Latency: o.Latency}.String()
	}
	switch {
	case c.Evicted != "":
		p.State = heddlev1.ClientState_CLIENT_STATE_EVICTED
	case len(c.Devices) == 0:
		p.State = heddlev1.ClientState_CLIENT_STATE_WAITING
	}
	// Counters are of this moment, shares and rates of the last interval.
	rates, _ := b.d.rater.Of(c.ID)
	p.LaunchesPerSecond = rates.LaunchesPerSecond
	for i := range c.Devices {
		p.Devices = append(p.Devices, b.protoClientDevice(&c.Devices[i], &rates))
		b.addKnown(p.Devices[i], c.ID, c.Devices[i].UUID)
	}
	return p
}

// reason is what a person should know about a client beyond its numbers. A
// hint above the grant is cut, which its owner would otherwise never learn.
func reason(c *clients.Info) string {
	switch {
	case c.Evicted != "":
		return c.Evicted
	case c.Asked != abi.HintNone:
		return fmt.Sprintf("asked for %s, granted %s", config.ClassName(c.Asked), config.ClassName(c.Priority))
	default:
		return ""
	}
}

func (b *backend) protoClientDevice(dev *clients.DeviceInfo, rates *telemetry.Rates) *heddlev1.ClientDevice {
	p := &heddlev1.ClientDevice{
		Uuid:            b.d.inventory.name(gpu.UUID(dev.UUID)),
		Gate:            gateText(dev.Gate),
		Busy:            dev.Busy,
		Held:            dev.Held,
		MemoryBytes:     dev.MemoryBytes,
		MemoryPeakBytes: dev.MemoryPeak,
		Holds:           dev.Holds,
		Overruns:        dev.Overruns,
	}
	if r := &rates.Devices[dev.Slot]; r.Bound {
		p.HeldShare = r.HeldShare
		if r.BusyShare >= 0 {
			p.BusyShare = &r.BusyShare
		}
	}
	return p
}

// gateText is a gate word in one expression for people.
func gateText(gate uint32) string {
	switch {
	case gate&abi.GateClosed != 0:
		return "closed"
	case gate&abi.GateYield != 0:
		return "yielding"
	case gate&abi.GatePublish != 0:
		return "yielded to"
	default:
		return "open"
	}
}

// SetClient implements api.Backend.
func (b *backend) SetClient(ctx context.Context, req *heddlev1.SetClientRequest) (*heddlev1.Client, error) {
	o, err := overrideOf(req.Priority, req.Weight, req.Slo, req.GetReset_())
	if err != nil {
		return nil, err
	}
	id, err := b.target(req)
	if err != nil {
		return nil, err
	}
	// First to disk: what a client sees must not be forgotten by a crash.
	if err := b.d.admission.setClient(b.d.store, id, o); err != nil {
		return nil, err
	}
	changed := b.d.clients.Regrant(ctx, func(c *clients.Info) bool { return c.ID == id })
	if len(changed) == 0 { // what was kept for it is dropped later
		return nil, errdefs.Errorf(errdefs.NotFound, "client %d has just left", id)
	}
	info := &changed[0]
	b.d.log.Info("client set", "client", id, "priority", info.Priority, "weight", info.Weight, "reset", o.IsZero())
	return b.protoClient(info), nil
}

// overrideOf is what a request asks to set; nothing, if it is to undo what was
// set before.
func overrideOf(priority, weight *uint32, slo *string, reset bool) (store.Override, error) {
	o := store.Override{Priority: priority, Weight: weight}
	if slo != nil {
		objective, err := config.ParseObjective(*slo)
		if err != nil {
			return o, errdefs.Errorf(errdefs.Invalid, "slo %q: %w", *slo, err)
		}
		text := objective.String()
		o.SLO = &text
	}
	switch {
	case reset && !o.IsZero():
		return o, errdefs.Errorf(errdefs.Invalid, "a reset with a priority, a weight or an objective")
	case !reset && o.IsZero():
		return o, errdefs.Errorf(errdefs.Invalid, "neither a priority nor a weight nor an objective nor a reset is given")
	}
	if p := priority; p != nil && *p >= abi.ClassesMax {
		return o, errdefs.Errorf(errdefs.Invalid, "priority %d is not between 0 and %d", *p, abi.ClassesMax-1)
	}
	if w := weight; w != nil && (*w < 1 || *w > config.WeightMax) {
		return o, errdefs.Errorf(errdefs.Invalid, "weight %d is not between 1 and %d", *w, config.WeightMax)
	}
	return o, nil
}

// target finds the id of the client that a request means.
func (b *backend) target(req *heddlev1.SetClientRequest) (uint64, error) {
	switch t := req.GetTarget().(type) {
	case *heddlev1.SetClientRequest_Id:
		return b.living(func(c *clients.Info) bool { return c.ID == t.Id }, "no client %d is attached", t.Id)
	case *heddlev1.SetClientRequest_Pid:
		if t.Pid == 0 {
			return 0, errdefs.Errorf(errdefs.Invalid, "pid 0 is no client")
		}
		return b.living(func(c *clients.Info) bool { return c.PID == int(t.Pid) }, "no client with pid %d is attached", t.Pid)
	default:
		return 0, errdefs.Errorf(errdefs.Invalid, "neither an id nor a pid is given")
	}
}

// living finds an attached client, or says that there is none.
func (b *backend) living(match func(*clients.Info) bool, format string, args ...any) (uint64, error) {
	for _, c := range b.d.clients.List() {
		if c.Evicted == "" && match(&c) {
			return c.ID, nil
		}
	}
	return 0, errdefs.Errorf(errdefs.NotFound, format, args...)
}

// SetTenant implements api.Backend.
func (b *backend) SetTenant(ctx context.Context, req *heddlev1.SetTenantRequest) (uint32, error) {
	o, err := overrideOf(req.Priority, req.Weight, req.Slo, req.GetReset_())
	if err != nil {
		return 0, err
	}
	if req.GetTenant() == "" {
		return 0, errdefs.Errorf(errdefs.Invalid, "no tenant is given")
	}
	if err := b.d.admission.setTenant(b.d.store, req.GetTenant(), o); err != nil {
		return 0, err
	}
	changed := b.d.clients.Regrant(ctx, func(c *clients.Info) bool { return c.Tenant == req.GetTenant() })
	b.d.log.Info("tenant set", "tenant", req.GetTenant(), "clients", len(changed), "reset", o.IsZero())
	return uint32(len(changed)), nil // bounded by configuration
}

// Config implements api.Backend.
func (b *backend) Config(context.Context) (*heddlev1.GetConfigResponse, error) {
	loaded := b.d.opt.Config
	res := &heddlev1.GetConfigResponse{Toml: loaded.TOML(), Path: loaded.File}
	for _, o := range loaded.Origins() {
		res.Origins = append(res.Origins, &heddlev1.ConfigOrigin{Key: o.Key, Value: o.Value, Origin: o.Origin})
	}
	return res, nil
}
