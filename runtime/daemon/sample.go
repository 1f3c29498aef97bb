package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/store"
	"github.com/heddle-project/heddle/runtime/telemetry"
)

// forgetEvery is how often overrides of clients that never came back are
// dropped. The first time is that long after the start: clients of the heddled
// before have reconnected by then.
const forgetEvery = time.Minute

// saveEvery is how much of what was learnt a crash may cost.
const saveEvery = 30 * time.Second

// sampler holds what is reused from second to second.
type sampler struct {
	d       *Daemon
	sample  clients.Sample
	reading telemetry.Reading
	records []clients.Record
	shares  map[shareKey]float64
	last    time.Time
}

type shareKey struct {
	device gpu.UUID
	pid    int
}

func newSampler(d *Daemon) *sampler {
	return &sampler{d: d, shares: map[shareKey]float64{}, last: time.Now()}
}

// sample reads all clients once in every interval, until ctx ends.
func (d *Daemon) sample(ctx context.Context) error {
	s := newSampler(d)
	ticker := time.NewTicker(d.opt.SampleEvery)
	defer ticker.Stop()
	forget := time.NewTicker(forgetEvery)
	defer forget.Stop()
	save := time.NewTicker(saveEvery)
	defer save.Stop()
	count := -1
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-forget.C:
			d.forgetOverrides()
		case <-save.C:
			if err := d.library.Save(); err != nil {
				d.log.Warn("keep profiles", "error", err)
			}
		case now := <-ticker.C:
			s.round(ctx, now)
			d.reservations.sweep()
			if n := d.clients.Count(); n != count {
				count = n
				d.notify.status(fmt.Sprintf("%d clients on %d devices", n, d.inventory.count()))
			}
		}
	}
}

func (s *sampler) round(ctx context.Context, now time.Time) {
	s.askDriver(ctx)
	s.d.rater.Begin()
	s.records = s.records[:0]
	ticks := s.d.clock.Now()
	s.d.clients.Each(&s.sample,
		func(sample *clients.Sample) {
			s.fill(sample, ticks)
			s.d.rater.Observe(now, &s.reading)
		},
		// Logging can block, so it waits until the clients' lock is free.
		func(r clients.Record) { s.records = append(s.records, r) })
	s.d.rater.End()
	s.last = now
	for _, r := range s.records {
		s.d.log.Log(ctx, level(r.Level), "interposer says", "client", r.Client, "pid", r.PID, "tenant", r.Tenant,
			"name", r.Name, "text", r.Text)
	}
}

// level is the slog level of a record of an interposer.
func level(l uint32) slog.Level {
	switch l {
	case abi.LogDebug:
		return slog.LevelDebug
	case abi.LogInfo:
		return slog.LevelInfo
	case abi.LogWarn:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

// askDriver fetches the shares of processes that do not publish theirs, for
// the devices that have clients.
func (s *sampler) askDriver(ctx context.Context) {
	clear(s.shares)
	if s.d.clients.Count() == 0 {
		return
	}
	shared := map[gpu.UUID]bool{}
	defer func() { s.d.inventory.setShared(shared) }()
	for _, dev := range s.d.inventory.all() {
		if usage, err := s.d.driver.Usage(ctx, dev.UUID); err == nil {
			shared[dev.UUID] = slices.ContainsFunc(usage.Processes, func(p gpu.Process) bool { return p.MPS })
		}
		shares, err := s.d.driver.ProcessShares(ctx, dev.UUID, s.last)
		if err != nil {
			continue // a share is unknown then, and shown so
		}
		for _, p := range shares {
			s.shares[shareKey{dev.UUID, p.PID}] = p.Share
		}
	}
}

// fill turns what a client published into a reading.
func (s *sampler) fill(sample *clients.Sample, ticks uint64) {
	r := &s.reading
	r.Client, r.Launches, r.Unnamed = sample.ID, sample.Process.Launches, sample.Process.UnnamedAddresses
	for i := range r.Devices {
		if !sample.Bound[i] {
			r.Devices[i] = telemetry.DeviceReading{}
			continue
		}
		dev := &sample.Devices[i]
		share, ok := s.shares[shareKey{gpu.UUID(sample.UUIDs[i]), sample.PID}]
		if !ok {
			share = -1
		}
		r.Devices[i] = telemetry.DeviceReading{
			Bound:       true,
			Published:   sample.Publish[i],
			BusyTime:    dev.BusySpan(ticks),
			HeldTime:    dev.HeldSpan(ticks),
			MemoryBytes: dev.MemoryBytes,
			MemoryPeak:  dev.MemoryPeakBytes,
			Holds:       dev.Holds,
			Overruns:    dev.Overruns,
			Share:       share,
		}
	}
}

// forgetOverrides drops what was set for clients that are gone.
func (d *Daemon) forgetOverrides() {
	living := map[uint64]bool{}
	for _, c := range d.clients.List() {
		if c.Evicted == "" {
			living[c.ID] = true
		}
	}
	for _, id := range d.admission.forget(living) {
		if err := d.store.SetClient(id, store.Override{}); err != nil {
			d.log.Warn("forget override", "client", id, "error", err)
		}
	}
}
