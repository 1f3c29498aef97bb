package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/api"
	"github.com/heddle-project/heddle/runtime/clients"
	"github.com/heddle-project/heddle/runtime/clock"
	"github.com/heddle-project/heddle/runtime/config"
	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/library"
	"github.com/heddle-project/heddle/runtime/shm"
	"github.com/heddle-project/heddle/runtime/store"
)

// step is one part of starting or stopping.
type step struct {
	name string
	do   func(ctx context.Context) error
}

// startOrder is the order in which things begin. What can refuse comes first,
// so that a heddled that cannot run has touched nothing of one that does: the
// lock on the state stands before every socket.
func (d *Daemon) startOrder() []step {
	return []step{
		{"take sockets from systemd", d.takeActivated},
		{"check the OS kernel", d.checkKernel},
		{"measure the clock", d.measureClock},
		{"open state", d.openStore},
		{"find devices", d.openDriver},
		{"read grants", d.readGrants},
		{"open attach socket", d.openAttach},
		{"open API socket", d.openAPI},
		// Nothing can refuse any more but the disk.
		{"begin a generation", d.beginGeneration},
		{"prepare for clients", d.makeManager},
		// Serving begins when all sockets are there: whoever sees one may use
		// them all.
		{"serve clients", d.serveClients},
		{"serve API", d.serveAPI},
		{"sample", d.startSampling},
		{"tell systemd", d.tellReady},
	}
}

// stopOrder is the order in which things end, whichever of them began.
// Clients are let go before the API ends, so that its last answers are true.
func (d *Daemon) stopOrder() []step {
	return []step{
		{"tell systemd", d.tellStopping},
		{"let clients go", d.stopClients},
		{"end sampling", d.stopSampling},
		{"end API", d.stopAPI},
		{"close sockets", d.closeSockets},
		{"wait for all parts", d.wait},
		{"keep what was learnt", d.saveLibrary},
		{"close driver", d.closeDriver},
		{"close state", d.closeStore},
	}
}

func (d *Daemon) start(ctx context.Context) error {
	for _, s := range d.startOrder() {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// stop goes on after an error: each step lets go of something of its own.
func (d *Daemon) stop(ctx context.Context) error {
	var errs []error
	for _, s := range d.stopOrder() {
		if err := s.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

func (d *Daemon) takeActivated(context.Context) (err error) {
	d.activated, err = activated()
	return err
}

// calibration is how long the counter is measured, where it must be: right to a
// few parts per million, and too short for anybody to notice at a start.
const calibration = 20 * time.Millisecond

func (d *Daemon) measureClock(ctx context.Context) (err error) {
	d.clock, err = clock.Calibrate(ctx, calibration)
	return err
}

func (d *Daemon) openStore(context.Context) (err error) {
	if err := makeDir(d.cfg.StateDir, stateDirMode); err != nil {
		return fmt.Errorf("%w (state_dir says where)", err)
	}
	d.store, err = store.Open(d.cfg.StateDir)
	if errors.Is(err, errdefs.ErrBusy) {
		return fmt.Errorf("%w: stop it, or give this one a state_dir and sockets of its own", err)
	}
	if errors.Is(err, errdefs.ErrCorrupt) {
		return fmt.Errorf("%w: move the file away to begin anew; what was set with heddle set is lost then", err)
	}
	return d.wantsRoom(err)
}

func (d *Daemon) beginGeneration(context.Context) error { return d.wantsRoom(d.store.Begin()) }

// wantsRoom adds to the error of a full disk which one it is.
func (d *Daemon) wantsRoom(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: make room in %s (state_dir says where)", err, d.cfg.StateDir)
	}
	return err
}

func (d *Daemon) openDriver(ctx context.Context) (err error) {
	driver, err := d.opt.OpenDriver(d.cfg.NVMLLibrary)
	if err != nil {
		return err // not kept: a nil pointer in an interface is not nil
	}
	d.driver = driver
	if d.versions, err = d.driver.Versions(ctx); err != nil {
		return err
	}
	return d.inventory.refresh(ctx, d.driver)
}

func (d *Daemon) readGrants(context.Context) (err error) {
	if err := d.ids.refill(d.store); err != nil {
		return d.wantsRoom(err)
	}
	d.admission, err = newAdmission(d.cfg, ownUID(), d.store)
	return err
}

func (d *Daemon) makeManager(context.Context) error {
	d.library = library.New(library.Options{Store: d.store, Log: d.log, Now: time.Now})
	set, err := d.store.Policies()
	if err != nil {
		return err
	}
	d.policies = newPolicies(d.cfg, &d.inventory, set)
	d.planner = newPlanner(d.cfg, &d.inventory, d.policies, d.library)
	d.reservations, err = newReservations(d.store, d.log, d.planner.blockingOn)
	if err != nil {
		return err
	}
	d.planner.maxBlock = d.reservations.maxBlock
	d.admission.realtime = d.reservations.of
	var teacher clients.Learner // a nil pointer in an interface is not nil
	if d.cfg.Scheduling.Measure != 0 {
		d.learner = &learner{
			sparse: uint32(d.cfg.Scheduling.Measure), inventory: &d.inventory, policies: d.policies, library: d.library,
			asked: map[uint64]uint32{}, heard: map[uint64]int{},
		}
		teacher = d.learner
	}
	secret := d.store.Secret()
	fail := uint32(abi.FailOpen)
	if d.cfg.Scheduling.Fail == config.FailClosed {
		fail = abi.FailClosed
	}
	d.clients = clients.New(clients.Options{
		Log: d.log, Admission: d.admission, Planner: d.planner, Learner: teacher, Generation: d.store.Generation(),
		Secret: secret[:], NextID: d.nextID, Clock: shm.ClockParams(d.clock.Params()), Now: d.clock.Now, FailMode: fail,
		Max: d.cfg.Clients.Max, MaxPerUser: d.cfg.Clients.MaxPerUser,
		HandshakeTimeout: d.cfg.Clients.HandshakeTimeout,
	})
	return nil
}

func (d *Daemon) openAttach(context.Context) (err error) {
	if d.attach = d.activated[activationAttach]; d.attach != nil {
		return nil
	}
	d.attach, err = listen(filepath.Join(d.cfg.AttachDir, config.AttachSocket))
	return err
}

func (d *Daemon) openAPI(context.Context) (err error) {
	if d.control = d.activated[activationAPI]; d.control != nil {
		return nil
	}
	d.control, err = listen(d.cfg.APISocket)
	return err
}

func (d *Daemon) serveClients(ctx context.Context) error {
	ctx, d.stopAttach = context.WithCancel(ctx)
	d.group.Go(func() error {
		defer close(d.attachDone)
		return d.clients.Run(ctx, d.attach)
	})
	return nil
}

func (d *Daemon) serveAPI(context.Context) error {
	d.api = api.NewServer(&backend{d}, api.Options{
		Log:     d.log,
		Admin:   api.Administrators(ownUID(), d.cfg.AdminGroup),
		Metrics: d.metricsHandler(),
	})
	d.group.Go(func() error { return d.api.Serve(d.control) })
	return nil
}

func (d *Daemon) startSampling(ctx context.Context) error {
	ctx, d.stopRest = context.WithCancel(ctx)
	d.group.Go(func() error { return d.sample(ctx) })
	d.group.Go(func() error {
		return d.notify.watchdog(ctx, func() { d.clients.Count() })
	})
	return nil
}

func (d *Daemon) tellReady(context.Context) error {
	d.log.Info("heddled is ready", "version", d.opt.Version, "generation", d.store.Generation(),
		"api_socket", d.control.Addr().String(), "attach_socket", d.attach.Addr().String(),
		"driver", d.versions.Driver, "devices", d.inventory.count())
	d.notify.ready()
	return nil
}

func (d *Daemon) tellStopping(context.Context) error {
	d.notify.stopping()
	return nil
}

func (d *Daemon) stopClients(context.Context) error {
	if d.stopAttach == nil {
		return nil
	}
	d.stopAttach()
	select {
	case <-d.attachDone:
		return nil
	case <-time.After(stopPatience):
		return errdefs.Errorf(errdefs.Busy, "clients still attached after %v", stopPatience)
	}
}

// stopPatience is how long a stop waits for each of its slower steps.
const stopPatience = 3 * time.Second

func (d *Daemon) stopSampling(context.Context) error {
	if d.stopRest != nil {
		d.stopRest()
	}
	return nil
}

func (d *Daemon) stopAPI(ctx context.Context) error {
	if d.api == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	err := d.api.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		// Anybody may have sent half a request: that is no failure of ours.
		d.log.Warn("requests were cut off", "after", stopPatience)
		return nil
	}
	return err
}

// closeSockets closes what never came to serve; serving closes its own.
func (d *Daemon) closeSockets(context.Context) error {
	if d.attach != nil {
		_ = d.attach.Close()
	}
	if d.control != nil {
		_ = d.control.Close()
	}
	for _, l := range d.activated {
		_ = l.Close()
	}
	return nil
}

// wait is bounded too: what the OS kernel holds up must not keep heddled from
// saving what it knows.
func (d *Daemon) wait(context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- d.group.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(stopPatience):
		return errdefs.Errorf(errdefs.Busy, "not ended after %v", stopPatience)
	}
}

func (d *Daemon) saveLibrary(context.Context) error {
	if d.library == nil {
		return nil
	}
	return d.library.Save()
}

func (d *Daemon) closeDriver(context.Context) error {
	if d.driver == nil {
		return nil
	}
	return d.driver.Close()
}

func (d *Daemon) closeStore(context.Context) error {
	if d.store == nil {
		return nil
	}
	return d.store.Close()
}
