package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const profileLsLong = `List what is known of workloads.

KNOWN counts kernels whose time is known, of all that were seen. COVERED is the part of the device
time of late that is theirs. Each launch is measured while STATE is learning.

JSON: {"profiles": [{workload, device, label, kernels, kernels_known, samples, learning,
covered_share, longest_ns, clients, kept, probed}]}`

type profileView struct {
	Workload string     `json:"workload"`
	Device   string     `json:"device"`
	Label    string     `json:"label"`
	Kernels  uint32     `json:"kernels"`
	Known    uint32     `json:"kernels_known"`
	Samples  uint64     `json:"samples"`
	Learning bool       `json:"learning"`
	Covered  float64    `json:"covered_share"`
	Longest  int64      `json:"longest_ns"`
	Clients  uint32     `json:"clients"`
	Kept     *time.Time `json:"kept,omitempty"`
	Probed   bool       `json:"probed"`
}

func viewProfile(p *heddlev1.Profile) profileView {
	v := profileView{
		Workload: p.GetWorkload(), Device: p.GetDevice(), Label: p.GetLabel(), Kernels: p.GetKernels(), Known: p.GetKernelsKnown(),
		Samples: p.GetSamples(), Learning: p.GetLearning(), Covered: p.GetCoveredShare(),
		Longest: p.GetLongest().AsDuration().Nanoseconds(), Clients: p.GetClients(), Probed: p.GetProbed(),
	}
	if p.GetKept() != nil {
		kept := p.GetKept().AsTime()
		v.Kept = &kept
	}
	return v
}

func newProfileLsCmd(a *app) *cobra.Command {
	var asJSON, noTrunc bool
	cmd := &cobra.Command{
		Use:               "ls",
		Short:             "List what is known of workloads",
		Long:              profileLsLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			views := []profileView{}
			err := a.call(cmd.Context(), func(ctx context.Context, conn *api.Conn) error {
				list, err := conn.Profiles(ctx)
				for _, p := range list {
					views = append(views, viewProfile(p))
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(map[string]any{"profiles": views})
			case len(views) == 0:
				_, err = fmt.Fprintln(a.stdout, "no profiles (they are learnt while programs run)")
				return err
			}
			return profilesTable(views).write(a.stdout, a.width(noTrunc), a.palette())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&noTrunc, "no-trunc", false, "show everything, however wide")
	return cmd
}

// shortKey is enough of a workload's key to tell it from others.
func shortKey(key string) string {
	const keep = 8
	kind, digits, ok := strings.Cut(key, ":")
	if !ok || len(digits) <= keep {
		return key
	}
	return kind + ":" + digits[:keep]
}

func profilesTable(views []profileView) *table {
	t := &table{columns: []column{
		{title: "WORKLOAD"}, {title: "GPU"}, {title: "KNOWN", right: true}, {title: "COVERED", right: true},
		{title: "SAMPLES", right: true, drop: 3}, {title: "LONGEST", right: true, drop: 2}, {title: "CLIENTS", right: true, drop: 4},
		{title: "STATE", drop: 5}, {title: "PROBED", drop: 1}, {title: "LABEL"},
	}}
	for _, v := range views {
		state, probed := "known", "no"
		if v.Learning {
			state = "learning"
		}
		if v.Probed {
			probed = "yes"
		}
		t.add(
			cell{text: printable(shortKey(v.Workload))}, cell{text: printable(v.Device)},
			cell{text: fmt.Sprintf("%d/%d", v.Known, v.Kernels)}, cell{text: formatShare(v.Covered)},
			cell{text: strconv.FormatUint(v.Samples, 10)}, cell{text: formatTime(v.Longest)},
			cell{text: strconv.FormatUint(uint64(v.Clients), 10)}, cell{text: state}, cell{text: probed},
			cell{text: orUnknown(printable(v.Label))},
		)
	}
	return t
}

// formatTime shows nanoseconds with three figures that count.
func formatTime(ns int64) string {
	d := time.Duration(ns)
	switch {
	case ns == 0:
		return unknown
	case d < 100*time.Microsecond:
		return d.Round(10 * time.Nanosecond).String()
	case d < 100*time.Millisecond:
		return d.Round(time.Microsecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}

const profileShowLong = `Show the kernels of a workload, those first on which most device time was spent of late.

TIME is the mean and its spread, as a part of it; PREDICTED what the next launch is taken to need; GAP
the idle time that is predicted to follow, where it can be. BOUND and DRAM (part of the bandwidth) are
guessed where a "?" stands, until figures of Nsight Compute are imported. A "*" behind SAMPLES: only
measured beside others so far.

JSON: {"profile", "kernels": [{key, name, graph, grid, block, share, samples, changes, known, alone,
mean_ns, deviation_ns, min_ns, p90_ns, predicted_ns, gap_ns, sm_need, waves, bound, dram, guessed}],
"sensitivity": {channel: [4 slowdowns]}}`

type kernelView struct {
	Key       string   `json:"key"`
	Name      string   `json:"name"`
	Graph     bool     `json:"graph"`
	Grid      []uint32 `json:"grid"`
	Block     []uint32 `json:"block"`
	Share     float64  `json:"share"`
	Samples   uint64   `json:"samples"`
	Changes   uint32   `json:"changes"`
	Known     bool     `json:"known"`
	Alone     bool     `json:"alone"`
	Mean      int64    `json:"mean_ns"`
	Deviation int64    `json:"deviation_ns"`
	Min       int64    `json:"min_ns"`
	P90       int64    `json:"p90_ns"`
	Predicted int64    `json:"predicted_ns"`
	Gap       int64    `json:"gap_ns"`
	SMNeed    uint32   `json:"sm_need"`
	Waves     uint32   `json:"waves"`
	Bound     string   `json:"bound"`
	DRAM      float64  `json:"dram"`
	Guessed   bool     `json:"guessed"`
}

func viewKernel(k *heddlev1.ProfileKernel) kernelView {
	return kernelView{
		Key: fmt.Sprintf("%#016x", k.GetKey()), Name: k.GetName(), Graph: k.GetGraph(), Grid: k.GetGrid(), Block: k.GetBlock(),
		Share: k.GetShare(), Samples: k.GetSamples(), Changes: k.GetChanges(), Known: k.GetKnown(), Alone: k.GetAlone(),
		Mean: k.GetMean().AsDuration().Nanoseconds(), Deviation: k.GetDeviation().AsDuration().Nanoseconds(),
		Min: k.GetMin().AsDuration().Nanoseconds(), P90: k.GetP90().AsDuration().Nanoseconds(),
		Predicted: k.GetPredicted().AsDuration().Nanoseconds(), Gap: k.GetGap().AsDuration().Nanoseconds(),
		SMNeed: k.GetSmNeed(), Waves: k.GetWaves(), Bound: k.GetBound(), DRAM: k.GetDram(), Guessed: k.GetGuessed(),
	}
}

func newProfileShowCmd(a *app) *cobra.Command {
	var o profileOptions
	var noTrunc bool
	cmd := a.workloadCmd(&cobra.Command{
		Use:     "show WORKLOAD",
		Short:   "Show the kernels of a workload",
		Long:    profileShowLong,
		Example: "  heddle profile show resnet --device 'NVIDIA H100'",
		Args:    oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			var res *heddlev1.GetProfileResponse
			err := a.onProfile(cmd.Context(), &o, args[0], func(ctx context.Context, conn *api.Conn, p *heddlev1.Profile) (err error) {
				if res, err = conn.Profile(ctx, p.GetWorkload(), p.GetDevice()); err == nil {
					res.Profile = p // with its clients, and when it was kept
				}
				return err
			})
			if err != nil {
				return err
			}
			return a.showProfile(res, o.asJSON, noTrunc)
		},
	}, &o)
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&noTrunc, "no-trunc", false, "show everything, however wide")
	return cmd
}

func (a *app) showProfile(res *heddlev1.GetProfileResponse, asJSON, noTrunc bool) error {
	kernels := []kernelView{}
	for _, k := range res.GetKernels() {
		kernels = append(kernels, viewKernel(k))
	}
	p := viewProfile(res.GetProfile())
	sensitivity := map[string][]float64{}
	for _, row := range res.GetSensitivity() {
		sensitivity[strings.ToLower(row.GetChannel())] = row.GetSlowdown()
	}
	if asJSON {
		return a.printJSON(map[string]any{"profile": p, "kernels": kernels, "sensitivity": sensitivity})
	}
	state := "known"
	if p.Learning {
		state = "learning"
	}
	fmt.Fprintf(a.stdout, "%s on %s\n%s, %s\n", printable(cmp.Or(p.Label, p.Workload)), printable(p.Device), printable(p.Workload), state)
	for _, row := range res.GetSensitivity() {
		fmt.Fprintf(a.stdout, "beside a hog of %-6s", printable(row.GetChannel()))
		for i, slowdown := range row.GetSlowdown() {
			fmt.Fprintf(a.stdout, "  %d%% %.2fx", (i+1)*25, slowdown)
		}
		fmt.Fprintln(a.stdout)
	}
	fmt.Fprintln(a.stdout)
	return kernelsTable(kernels).write(a.stdout, a.width(noTrunc), a.palette())
}

func kernelsTable(views []kernelView) *table {
	t := &table{columns: []column{
		{title: "SHARE", right: true}, {title: "TIME", right: true}, {title: "PREDICTED", right: true}, {title: "GAP", right: true, drop: 3},
		{title: "SAMPLES", right: true}, {title: "SMS", right: true, drop: 2}, {title: "BOUND", drop: 4}, {title: "DRAM", right: true, drop: 5},
		{title: "GRID", drop: 1}, {title: "BLOCK", drop: 1}, {title: "KERNEL"},
	}}
	for i := range views {
		v := &views[i]
		spread := ""
		if v.Mean != 0 {
			spread = fmt.Sprintf(" ±%.0f%%", 100*float64(v.Deviation)/float64(v.Mean))
		}
		guessed, beside, sms := "", "", unknown
		if v.Guessed {
			guessed = "?"
		}
		if !v.Alone {
			beside = "*"
		}
		if v.SMNeed != 0 {
			sms = strconv.FormatUint(uint64(v.SMNeed), 10)
		}
		name := orUnknown(printable(v.Name))
		if v.Graph {
			name = "graph: " + name
		}
		t.add(
			cell{text: formatShare(v.Share)}, cell{text: formatTime(v.Mean) + spread}, cell{text: formatTime(v.Predicted)},
			cell{text: formatTime(v.Gap)}, cell{text: strconv.FormatUint(v.Samples, 10) + beside}, cell{text: sms},
			cell{text: v.Bound + guessed}, cell{text: fmt.Sprintf("%.0f%%%s", v.DRAM*100, guessed)},
			cell{text: dimensions(v.Grid)}, cell{text: dimensions(v.Block)}, cell{text: name},
		)
	}
	return t
}

func dimensions(sides []uint32) string {
	words := make([]string, len(sides))
	for i, n := range sides {
		words[i] = strconv.FormatUint(uint64(n), 10)
	}
	return strings.Join(words, "x")
}
