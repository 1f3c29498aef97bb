package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const reserveLong = `Promise device time to a real-time process, take a promise back, or list promises.

heddled accepts when every real-time process of the device meets its deadline, however their work
comes together and whatever the lower classes have on the device then: each client its window, or its
longest kernel as far as that is known. It refuses otherwise, and says what is in the way. With
--max-block launches of lower classes that are predicted longer are held for as long as the promise
lasts. The process is in class realtime meanwhile; it may attach later. A promise ends with its
process. RESPONSE is the time within which all promises of the device can be kept; STATE says when
they cannot any more, because others came. "heddle run --period" reserves for the program it starts.

A program that uses more than its budget is not stopped. Root and the administrators' group may do
this.

JSON: {"reservations": [{pid, device, period_ns, budget_ns, deadline_ns, max_block_ns, response_ns,
at_risk}]}`

const reserveExample = `  heddle reserve --pid 4242 --period 20ms --budget 2ms --deadline 10ms
  heddle reserve --pid 4242 --period 20ms --budget 2ms --max-block 500us
  heddle reserve
  heddle reserve --pid 4242 --release`

// taskFlags say how much device time a process needs, and when.
type taskFlags struct {
	period, budget, deadline, maxBlock time.Duration
}

func (f *taskFlags) add(flags *pflag.FlagSet) {
	flags.DurationVar(&f.period, "period", 0, "real time: work comes at most once in this `time`")
	flags.DurationVar(&f.budget, "budget", 0, "real time: device `time` of the work of one period")
	flags.DurationVar(&f.deadline, "deadline", 0, "real time: the work is done this `time` after its launch (default the period)")
	flags.DurationVar(&f.maxBlock, "max-block", 0, "real time: hold launches of lower classes that are predicted to take longer than this `time`")
}

// check says what is wrong with the flags; changed tells which were given.
func (f *taskFlags) check(changed func(string) bool) error {
	for _, name := range []string{"period", "budget"} {
		if !changed(name) {
			return usagef("a reservation needs --period and --budget")
		}
	}
	for _, flag := range []struct {
		name  string
		value time.Duration
	}{{"period", f.period}, {"budget", f.budget}, {"deadline", f.deadline}, {"max-block", f.maxBlock}} {
		if changed(flag.name) && flag.value <= 0 {
			return usagef("--%s %s: must be more than zero", flag.name, flag.value)
		}
	}
	return nil
}

func (f *taskFlags) any(changed func(string) bool) bool {
	return changed("period") || changed("budget") || changed("deadline") || changed("max-block")
}

func (f *taskFlags) request(pid uint32, device string) *heddlev1.ReserveRequest {
	r := &heddlev1.ReserveRequest{Pid: pid, Device: device, Period: durationpb.New(f.period), Budget: durationpb.New(f.budget)}
	if f.deadline != 0 {
		r.Deadline = durationpb.New(f.deadline)
	}
	if f.maxBlock != 0 {
		r.MaxBlock = durationpb.New(f.maxBlock)
	}
	return r
}

type reserveOptions struct {
	pid     uint32
	device  string
	task    taskFlags
	release bool
	asJSON  bool
}

func (o *reserveOptions) check(changed func(string) bool) error {
	switch {
	case !changed("pid") && (o.task.any(changed) || o.release || changed("device")):
		return usagef("give --pid")
	case o.release && o.task.any(changed):
		return usagef("give --release or a reservation, not both")
	case o.release || !changed("pid"):
		return nil
	}
	return o.task.check(changed)
}

func newReserveCmd(a *app) *cobra.Command {
	var o reserveOptions
	cmd := &cobra.Command{
		Use:               "reserve [--pid PID (--period TIME --budget TIME | --release)]",
		Short:             "Promise device time to a real-time process",
		Long:              reserveLong,
		Example:           reserveExample,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.reserve(cmd.Context(), &o, cmd.Flags().Changed("pid"))
		},
	}
	flags := cmd.Flags()
	flags.Uint32Var(&o.pid, "pid", 0, "the process with this `id`")
	flags.StringVar(&o.device, "device", "", "on this `GPU`: index, UUID or its beginning (default the only one)")
	o.task.add(flags)
	flags.BoolVar(&o.release, "release", false, "take the promise back")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	mustComplete(cmd, "pid", a.completePIDs)
	mustComplete(cmd, "device", a.completeDevices)
	completeWithNothing(cmd, "period", "budget", "deadline", "max-block")
	return cmd
}

func (a *app) reserve(ctx context.Context, o *reserveOptions, change bool) error {
	views := []reservationView{}
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		if !change {
			list, err := conn.Reservations(ctx)
			for _, r := range list {
				views = append(views, viewReservation(r))
			}
			return err
		}
		request := &heddlev1.ReserveRequest{Pid: o.pid, Release: true}
		if !o.release {
			device, err := a.reservedDevice(ctx, conn, o.device)
			if err != nil {
				return err
			}
			request = o.task.request(o.pid, device)
		}
		made, err := conn.Reserve(ctx, request)
		if made != nil {
			views = append(views, viewReservation(made))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case o.asJSON:
		return a.printJSON(map[string]any{"reservations": views})
	case o.release:
		_, err = fmt.Fprintf(a.stdout, "process %d: released\n", o.pid)
		return err
	case len(views) == 0:
		_, err = fmt.Fprintln(a.stdout, "no reservations")
		return err
	}
	return reservationTable(views).write(a.stdout, a.width(false), a.palette())
}

func (a *app) reservedDevice(ctx context.Context, conn *api.Conn, device string) (string, error) {
	if device == "" {
		return "", nil
	}
	devices, err := conn.Devices(ctx)
	if err != nil {
		return "", err
	}
	uuid, err := resolveDevice(devices, device)
	if err != nil {
		return "", usagef("--device: %w", err)
	}
	return uuid, nil
}

// reserveForRun reserves for the program that is about to replace this process.
func (a *app) reserveForRun(ctx context.Context, task *taskFlags, devices []string) error {
	if len(devices) > 1 {
		return usagef("--period: give one --device")
	}
	return a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		device := ""
		if len(devices) == 1 {
			var err error
			if device, err = a.reservedDevice(ctx, conn, devices[0]); err != nil {
				return err
			}
		}
		_, err := conn.Reserve(ctx, task.request(uint32(os.Getpid()), device)) // a pid
		return err
	})
}

type reservationView struct {
	PID      uint32 `json:"pid"`
	Device   string `json:"device"`
	Period   int64  `json:"period_ns"`
	Budget   int64  `json:"budget_ns"`
	Deadline int64  `json:"deadline_ns"`
	MaxBlock int64  `json:"max_block_ns,omitempty"`
	Response int64  `json:"response_ns"`
	AtRisk   string `json:"at_risk,omitempty"`
}

func viewReservation(r *heddlev1.Reservation) reservationView {
	return reservationView{
		r.GetPid(), r.GetDevice(), r.GetPeriod().AsDuration().Nanoseconds(), r.GetBudget().AsDuration().Nanoseconds(),
		r.GetDeadline().AsDuration().Nanoseconds(), r.GetMaxBlock().AsDuration().Nanoseconds(),
		r.GetResponse().AsDuration().Nanoseconds(), r.GetAtRisk(),
	}
}

func reservationTable(views []reservationView) *table {
	t := &table{columns: []column{
		{title: "PID", right: true}, {title: "PERIOD", right: true}, {title: "BUDGET", right: true},
		{title: "DEADLINE", right: true}, {title: "RESPONSE", right: true}, {title: "MAX BLOCK", right: true},
		{title: "STATE"}, {title: "GPU", drop: 1},
	}}
	duration := func(ns int64) cell { return cell{text: time.Duration(ns).String()} }
	for _, v := range views {
		state := "kept"
		if v.AtRisk != "" {
			state = "at risk: " + v.AtRisk
		}
		block := cell{text: unknown}
		if v.MaxBlock != 0 {
			block = duration(v.MaxBlock)
		}
		t.add(cell{text: strconv.FormatUint(uint64(v.PID), 10)}, duration(v.Period), duration(v.Budget),
			duration(v.Deadline), duration(v.Response), block, cell{text: printable(state)}, cell{text: printable(v.Device)})
	}
	return t
}
