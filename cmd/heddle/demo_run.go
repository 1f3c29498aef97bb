package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// demoMeasure is what one run showed; a part that did not play is zero.
type demoMeasure struct {
	P50Ms    float64 `json:"p50_ms"`
	P99Ms    float64 `json:"p99_ms"`
	TrainItS float64 `json:"train_it_s"`
}

// demoResult is what the demo found.
type demoResult struct {
	Alone    demoMeasure `json:"alone"`
	Naive    demoMeasure `json:"naive"`
	Heddle   demoMeasure `json:"heddle"`
	Requests int         `json:"requests"` // measured in each run
	Duration float64     `json:"duration_s"`
	GPU      string      `json:"gpu"`
	HP       string      `json:"hp"`
	LP       string      `json:"lp"`
	Arrivals string      `json:"arrivals"`
	Held     bool        `json:"held"` // the promise
	Problems []string    `json:"problems"`
}

// demoRun is one demo in its folder.
type demoRun struct {
	app     *app
	options *demoOptions
	parts   *demoParts
	dir     string
	view    *demoView
}

// demoRole says what a player does; its name is what heddle ps calls the client.
type demoRole struct {
	name     string
	mode     string
	priority int
}

var (
	demoService  = demoRole{name: "service", mode: "infer", priority: 2}
	demoTraining = demoRole{name: "training", mode: "train", priority: 7}
)

// Played before measuring, so that both are in full swing.
const demoWarmup = time.Second

func (d *demoRun) run(ctx context.Context) (*demoResult, error) {
	r := &demoResult{
		Duration: d.options.duration.Seconds(),
		HP:       d.parts.hp, LP: d.parts.lp, Arrivals: d.options.arrivals,
	}
	// Tried on nothing, so that the view can say what to expect.
	preferred, err := prefer(func() error { return nil })
	if err != nil {
		return nil, err
	}
	d.view.begin(d.options, preferred && d.parts.softgpu != "")
	defer d.view.end()

	service, err := d.phase(ctx, "service alone", d.bare, demoService)
	if err != nil {
		return nil, err
	}
	training, err := d.phase(ctx, "training alone", d.bare, demoTraining)
	if err != nil {
		return nil, err
	}
	r.Alone = measure(service[0], training[0])
	r.Requests, r.GPU = service[0].Requests, service[0].Device

	naive, err := d.phase(ctx, "shared without Heddle", d.bare, demoService, demoTraining)
	if err != nil {
		return nil, err
	}
	r.Naive = measure(naive[0], naive[1])

	if r.Heddle, err = d.underHeddle(ctx); err != nil {
		return nil, err
	}
	r.Problems = r.broken()
	r.Held = len(r.Problems) == 0
	return r, nil
}

// underHeddle plays both once more, with a heddled of our own.
func (d *demoRun) underHeddle(ctx context.Context) (m demoMeasure, err error) {
	daemon, err := d.startDaemon(ctx)
	if err != nil {
		return m, err
	}
	defer daemon.stop()
	stopWatching := d.view.watch(ctx, daemon)
	defer stopWatching()
	both, err := d.phase(ctx, "shared with Heddle", daemon.environment, demoService, demoTraining)
	if err != nil {
		return m, err
	}
	return measure(both[0], both[1]), nil
}

func measure(service, training playReport) demoMeasure {
	return demoMeasure{P50Ms: service.P50Ms, P99Ms: service.P99Ms, TrainItS: training.ItS}
}

// bare is the environment of a client that has no Heddle in it.
func (d *demoRun) bare(demoRole) []string {
	env := d.app.environ
	for _, name := range []string{"HEDDLE_SOCKET", "HEDDLE_API", "HEDDLE_PRIORITY", "HEDDLE_WEIGHT", "HEDDLE_NAME", "HEDDLE_GANG", "HEDDLE_DISABLE"} {
		env = dropEnv(env, name)
	}
	if d.parts.softgpu == "" {
		return env
	}
	path, _ := lookupEnv(env, "LD_LIBRARY_PATH")
	env = setEnv(env, "LD_LIBRARY_PATH", prepend(d.parts.softgpu, path, func(r rune) bool { return r == ':' || r == ';' }))
	env = setEnv(env, "SOFTGPU_STATE", filepath.Join(d.dir, "softgpu.state"))
	env = setEnv(env, "SOFTGPU_PROFILE", "real-like")
	return setEnv(env, "SOFTGPU_GPUS", d.options.model)
}

// phase plays the roles together, all from the same moment on, and returns their reports.
func (d *demoRun) phase(ctx context.Context, title string, environment func(demoRole) []string, roles ...demoRole) ([]playReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var players []*player
	defer func() {
		for _, p := range players {
			p.close()
		}
	}()
	for _, role := range roles {
		p, err := d.startPlayer(title, role, environment(role))
		if err != nil {
			return nil, err
		}
		players = append(players, p)
	}
	if err := startTogether(ctx, players); err != nil {
		return nil, err
	}
	stopView := d.view.phase(ctx, title, demoWarmup+d.options.duration, players)
	defer stopView()
	reports := make([]playReport, len(players))
	var faults []error
	for i, p := range players {
		report, err := p.report(ctx, demoWarmup+d.options.duration)
		reports[i] = report
		faults = append(faults, err)
	}
	return reports, errors.Join(faults...)
}

func (d *demoRun) startPlayer(title string, role demoRole, env []string) (*player, error) {
	table := d.parts.hp
	if role == demoTraining {
		table = d.parts.lp
	}
	argv := []string{
		d.parts.play, "--table", table, "--mode", role.mode, "--json",
		"--duration", seconds(d.options.duration), "--warmup", seconds(demoWarmup),
	}
	if role == demoService {
		arrivals := d.options.arrivals
		if _, err := os.Stat(arrivals); err == nil {
			if arrivals, err = filepath.Abs(arrivals); err != nil {
				return nil, fmt.Errorf("arrivals: %w", err)
			}
		}
		argv = append(argv, "--arrivals", arrivals)
	}
	name := strings.ReplaceAll(title, " ", "-") + "-" + role.name
	if d.parts.softgpu == "" {
		return startPlayer(d.dir, name, role, env, argv)
	}
	var p *player
	_, err := prefer(func() (err error) {
		p, err = startPlayer(d.dir, name, role, env, argv)
		return err
	})
	return p, err
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}
