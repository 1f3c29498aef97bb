// Package daemon puts heddled together: it builds every part, owns every
// goroutine, and starts and stops them in the order written down in order.go.
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-project/heddle/runtime/api"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/clock"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/gpu"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/nvml"
	"github.com/heddle-project/heddle/runtime/store"
	"github.com/heddle-project/heddle/runtime/telemetry"
)

// Options are what a Daemon is made of.
type Options struct {
	Config  *config.Loaded
	Version string
	Log     *slog.Logger
	// OpenDriver finds the devices; nil = NVML.
	OpenDriver func(library string) (gpu.Driver, error)
	// SampleEvery is the interval of all rates; 0 = a second.
	SampleEvery time.Duration
}

// Daemon is heddled. It is used once: New, then Run.
type Daemon struct {
	opt     Options
	cfg     *config.Config
	log     *slog.Logger
	started time.Time
	notify  notifier

	// In the order in which they are made.
	activated map[string]*net.UnixListener
	clock     clock.Clock
	store     *store.Store
	driver    gpu.Driver
	versions  gpu.Versions
	admission *admission
	attach    *net.UnixListener
	control   *net.UnixListener
	library   *library.Library
	policies  *policies
	planner   *planner
	learner   *learner // nil = nothing is learnt

	reservations *reservations
	clients      *clients.Manager
	rater        *telemetry.Rater
	api          *api.Server

	inventory inventory
	ids       idBlock

	group      *errgroup.Group
	stopAttach context.CancelFunc // lets go of the clients
	stopRest   context.CancelFunc // ends sampling and the watchdog
	attachDone chan struct{}
}

// New returns a Daemon that holds nothing yet.
func New(opt Options) *Daemon {
	if opt.OpenDriver == nil {
		opt.OpenDriver = func(library string) (gpu.Driver, error) { return nvml.Open(library) }
	}
	if opt.SampleEvery == 0 {
		opt.SampleEvery = time.Second
	}
	return &Daemon{
		opt: opt, cfg: &opt.Config.Config, log: opt.Log, rater: telemetry.NewRater(),
		notify: notifier{log: opt.Log}, attachDone: make(chan struct{}),
	}
}

// Run starts everything, serves until ctx ends or a part fails, and stops
// everything. An error of a start names the step, what went wrong and where.
func (d *Daemon) Run(ctx context.Context) (err error) {
	d.started = time.Now()
	// The parts stop when their turn comes, not all at once when ctx ends.
	group, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	d.group = group
	defer func() { err = errors.Join(err, d.stop(context.WithoutCancel(ctx))) }()
	if err := d.start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		d.log.Info("heddled stops", "reason", "asked to")
	case <-failed.Done():
		d.log.Error("heddled stops", "reason", "a part failed")
	}
	return nil
}

// idBlock hands out client ids, and takes them from the store by the block, so
// that an attach rarely waits for the disk.
type idBlock struct {
	mu         sync.Mutex
	next, last uint64
}

const idBlockSize = 1024

func (d *Daemon) nextID() (uint64, error) {
	b := &d.ids
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == b.last {
		if err := b.refill(d.store); err != nil {
			return 0, err
		}
	}
	b.next++
	return b.next - 1, nil
}

// refill must be called with the lock held, or before anybody attaches.
func (b *idBlock) refill(s *store.Store) error {
	first, err := s.ReserveIDs(idBlockSize)
	if err != nil {
		return err
	}
	b.next, b.last = first, first+idBlockSize
	return nil
}

// ownUID is the uid that administers beside root.
func ownUID() int { return os.Geteuid() }
