package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const probeLong = `Measure how much a program suffers from others that run beside it on a GPU.

Starts the program, waits until heddled knows its kernels, and runs hogs beside it, one after the
other: each takes a quarter, half, three quarters and all of one channel of the device. What comes
out is how much longer the program's kernels took, and it is kept in the profile of the workload:
policies that let kernels run side by side then know whom it would hurt.

The program must go on by itself for as long as that takes, some two minutes. Kernels of two
processes run side by side only under MPS, and nobody else may be on the device; its policy is
"priority" meanwhile and is put back at the end, after Ctrl-C too. Root and the administrators' group
may do this.

JSON: {"client", "device", "seconds", "channels": [{channel, kept, slowdown: [4], skipped}]}; slowdown
is for a quarter, half, three quarters and all of the channel, 1 is none.`

const probeExample = `  heddle probe --name resnet -- ./serve --selftest
  heddle probe --device 0 --seconds 5 --channel dram --channel l2 -- ./train`

// probeChannels are the hogs, and whether a policy uses what they show.
func probeChannels() []struct {
	name string
	kept bool
} {
	return []struct {
		name string
		kept bool
	}{
		{"dram", true}, {"l2", true}, {"issue", true}, {"fma", true}, {"fp64", true}, {"tensor", true},
		{"l1", false}, {"blocks", false},
	}
}

const probeLevels = 4

type probeOptions struct {
	name     string
	device   string
	channels []string
	seconds  float64
	learn    time.Duration
	asJSON   bool
}

func newProbeCmd(a *app) *cobra.Command {
	o := probeOptions{}
	cmd := &cobra.Command{
		Use:     "probe [flags] -- COMMAND [ARG...]",
		Short:   "Measure how much a program suffers from others beside it",
		Long:    probeLong,
		Example: probeExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no command given (heddle probe [flags] -- COMMAND [ARG...])")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.probe(cmd.Context(), &o, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVarP(&o.name, "name", "n", "", "`name` of the workload, under which its profile is kept")
	flags.StringVarP(&o.device, "device", "d", "", "on this `GPU`: index, UUID or its beginning (default the only one)")
	flags.StringSliceVar(&o.channels, "channel", nil, "only these `channels`: dram, l2, issue, fma, fp64, tensor, l1, blocks (default all)")
	flags.Float64Var(&o.seconds, "seconds", 2, "measure this many `seconds` beside each hog")
	flags.DurationVar(&o.learn, "learn", time.Minute, "how long the program's kernels may take to be known")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON; progress goes to stderr")
	completeWithNothing(cmd, "name", "seconds", "learn")
	mustComplete(cmd, "device", a.completeDevices)
	mustComplete(cmd, "channel", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, c := range probeChannels() {
			names = append(names, c.name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	})
	return cmd
}

func (o *probeOptions) check() error {
	if o.seconds < 0.1 || o.seconds > 600 {
		return usagef("--seconds %v: not between 0.1 and 600", o.seconds)
	}
	if o.learn <= 0 {
		return usagef("--learn %s: must be more than zero", o.learn)
	}
	for _, want := range o.channels {
		known := false
		for _, c := range probeChannels() {
			known = known || c.name == want
		}
		if !known {
			return usagef("--channel: no channel is called %q", want)
		}
	}
	run := runOptions{name: o.name}
	return run.check()
}

func (o *probeOptions) wants(channel string) bool {
	return len(o.channels) == 0 || slices.Contains(o.channels, channel)
}

// probeRow is what one channel's hogs did.
type probeRow struct {
	Channel  string    `json:"channel"`
	Kept     bool      `json:"kept"` // in the workload's profile
	Slowdown []float64 `json:"slowdown,omitempty"`
	Skipped  string    `json:"skipped,omitempty"` // why
}

func (a *app) probe(ctx context.Context, o *probeOptions, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p, err := a.prepareProbe(ctx, o, args)
	if err != nil {
		return err
	}
	defer p.conn.Close()
	restore, err := p.setPolicy(ctx)
	if err != nil {
		return a.explain(err, a.timeout)
	}
	defer restore()
	rows, err := p.measure(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; nothing was kept")
	case err != nil:
		return err
	}
	if o.asJSON {
		return a.printJSON(map[string]any{"client": p.client, "device": p.device, "seconds": o.seconds, "channels": rows})
	}
	return probeTable(rows).write(a.stdout, a.width(false), a.palette())
}

// keep sends what policies use to heddled.
func (p *probe) keep(ctx context.Context, rows []probeRow) error {
	req := &heddlev1.SetSensitivityRequest{Client: p.client, Device: p.device}
	for _, r := range rows {
		if r.Kept && r.Skipped == "" {
			req.Channels = append(req.Channels, &heddlev1.ChannelSensitivity{Channel: r.Channel, Slowdown: r.Slowdown})
		}
	}
	if len(req.GetChannels()) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.app.timeout)
	defer cancel()
	return p.conn.SetSensitivity(ctx, req)
}

func probeTable(rows []probeRow) *table {
	t := &table{columns: []column{
		{title: "CHANNEL"}, {title: "25%", right: true}, {title: "50%", right: true}, {title: "75%", right: true},
		{title: "100%", right: true}, {title: "NOTE"},
	}}
	for _, r := range rows {
		cells := []cell{{text: r.Channel}}
		for i := range probeLevels {
			text := unknown
			if i < len(r.Slowdown) {
				text = fmt.Sprintf("%.2fx", r.Slowdown[i])
			}
			cells = append(cells, cell{text: text})
		}
		note := ""
		switch {
		case r.Skipped != "":
			note = r.Skipped
		case !r.Kept:
			note = "not used by policies"
		}
		t.add(append(cells, cell{text: printable(note)})...)
	}
	return t
}

// priorityPolicy is that under which two clients of one class run as the device lets them.
const priorityPolicy = "priority"

// setPolicy lets the device's clients run side by side, and returns what puts its policy back.
func (p *probe) setPolicy(ctx context.Context) (restore func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, p.app.timeout)
	defer cancel()
	if _, err := p.conn.SetPolicy(ctx, &heddlev1.SetPolicyRequest{Devices: []string{p.device}, Policy: priorityPolicy}); err != nil {
		return nil, err
	}
	after := context.WithoutCancel(ctx) // after Ctrl-C, too
	return func() {
		ctx, cancel := context.WithTimeout(after, p.app.timeout)
		defer cancel()
		back := &heddlev1.SetPolicyRequest{Devices: []string{p.device}, Policy: p.policy}
		if p.policyOrigin != policySetOrigin {
			back.Policy, back.Reset_ = "", true
		}
		if _, err := p.conn.SetPolicy(ctx, back); err != nil {
			p.app.warn("probe", fmt.Sprintf("the device keeps the policy %s: %v (heddle policy %s --device %s)",
				priorityPolicy, err, p.policy, p.device))
		}
	}, nil
}

// policySetOrigin is the origin of a policy that heddle policy set.
const policySetOrigin = "set"

// prepareProbe finds all that is needed before anything is started or changed.
func (a *app) prepareProbe(ctx context.Context, o *probeOptions, args []string) (*probe, error) {
	p := &probe{app: a, options: o, args: args}
	var err error
	if p.interposer, err = a.findInterposer(); err != nil {
		return nil, err
	}
	if p.hog, err = findHog(p.interposer); err != nil {
		return nil, err
	}
	if p.program, err = findProgram(args[0], a.searchPath()); err != nil {
		return nil, err
	}
	if p.node, err = a.askNode(ctx, &runOptions{require: true, devices: []string{"0"}}); err != nil {
		return nil, err
	}
	switch {
	case o.device != "":
		if p.device, err = resolveDevice(p.node.devices, o.device); err != nil {
			return nil, usagef("--device: %w", err)
		}
	case len(p.node.devices) != 1:
		return nil, usagef("%d devices could be meant: name one with --device", len(p.node.devices))
	default:
		p.device = p.node.devices[0].GetUuid()
	}
	for _, d := range p.node.devices {
		if d.GetUuid() != p.device {
			continue
		}
		p.policy, p.policyOrigin = d.GetPolicy(), d.GetPolicyOrigin()
		if d.GetClients() != 0 {
			return nil, fmt.Errorf("%d clients are on the device; nobody else may be there (heddle ps)", d.GetClients())
		}
	}
	p.conn = api.NewConn(a.socket)
	return p, nil
}
