package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const psLong = `Show the programs attached to heddled, one line for each device that they use.

    ID      heddled's number of the client, for heddle set
    SLO     what the program accepts of others, if that is set for it (heddle set --slo)
    BUSY    part of the last interval in which the program had work on the device
    HELD    part of the last interval in which it waited at the gate
    MEMORY  what the program has allocated on the device now
    GATE    open        launches pass
            yielding    launches pass while no program of a higher class is busy
            yielded-to  others wait while this one is busy
            held        waits at the gate now
            closed      held by heddled itself
            waiting for gang 2/4
                        held until all ranks of its job are there; 2 of 4 are
            no-device   has not opened a device yet
            evicted     refused for a malformed segment or message; COMMAND says which

A terminal shows what fits, and no column that knows nothing; --no-trunc, a pipe and a file get
every column.

COMMAND is the whole command line of one's own programs, and for root of all. Of other users'
programs it is the short name, because arguments can be passwords.

JSON: {"clients": [{id, pid, uid, user, container, tenant, name, program, command, gang,
gang_size, gang_ranks, priority, class, weight, slo, state, reason, attached, launches_per_second, launches, unnamed_addresses,
interposer_version, devices: [{uuid, device, busy_share, held_share, memory_bytes,
memory_peak_bytes, holds, overruns, gate, busy, held}]}]}. Shares are parts of one. With --watch
there is one object in each line.`

type psOptions struct {
	watch    bool
	interval time.Duration
	asJSON   bool
	noTrunc  bool
	tenant   string
}

func newPsCmd(a *app) *cobra.Command {
	var o psOptions
	cmd := &cobra.Command{
		Use:               "ps",
		Short:             "Show who uses the GPUs and who is held",
		Long:              psLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.interval < minInterval || o.interval > maxInterval {
				return usagef("--interval %s: must be from %s to %s", o.interval, minInterval, maxInterval)
			}
			if o.watch {
				return a.watchClients(cmd.Context(), &o)
			}
			return a.listClients(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.watch, "watch", "w", false, "show the list again and again until interrupted")
	flags.DurationVar(&o.interval, "interval", time.Second, "time between two lists of --watch")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	flags.BoolVar(&o.noTrunc, "no-trunc", false, "show everything, however wide")
	flags.StringVar(&o.tenant, "tenant", "", "only the clients of the tenant of this `name`")
	completeWithNothing(cmd, "interval")
	mustComplete(cmd, "tenant", a.completeTenants)
	return cmd
}

func (a *app) listClients(ctx context.Context, o *psOptions) error {
	var views []clientView
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		devices, err := conn.Devices(ctx)
		if err != nil {
			return err
		}
		clients, err := conn.Clients(ctx, &heddlev1.ListClientsRequest{Tenant: o.tenant})
		views = viewClients(clients, nameDevices(devices))
		return err
	})
	if err != nil {
		return err
	}
	if o.asJSON {
		return a.printJSON(map[string]any{"clients": views})
	}
	if len(views) == 0 {
		fmt.Fprintln(a.stdout, noClients(o.tenant))
		return nil
	}
	return clientsTable(views).write(a.stdout, a.width(o.noTrunc), a.palette())
}

func noClients(tenant string) string {
	if tenant != "" {
		return fmt.Sprintf("no clients of tenant %s", printable(tenant))
	}
	return "no clients (start one with: heddle run -- COMMAND)"
}

func clientsTable(views []clientView) *table {
	t := &table{columns: []column{
		{title: "ID", right: true},
		{title: "PID", right: true, drop: 10},
		{title: "USER", drop: 8},
		{title: "CONTAINER", drop: 4},
		{title: "TENANT", drop: 3},
		{title: "GPU"},
		{title: "CLASS"},
		{title: "WEIGHT", right: true, drop: 1},
		{title: "SLO", right: true, drop: 1},
		{title: "LAUNCH/S", right: true, drop: 7},
		{title: "BUSY", right: true, drop: 9},
		{title: "HELD", right: true},
		{title: "MEMORY", right: true, drop: 6},
		{title: "GATE"},
		{title: "GANG", drop: 5},
		{title: "NAME", drop: 11},
		{title: "COMMAND", drop: 2},
	}}
	for i := range views {
		c := &views[i]
		if len(c.Devices) == 0 {
			t.add(clientRow(c, nil)...)
		}
		for d := range c.Devices {
			t.add(clientRow(c, &c.Devices[d])...)
		}
	}
	return t
}

func clientRow(c *clientView, d *clientDeviceView) []cell {
	device, rate, busy, held, memory := unknown, unknown, unknown, unknown, unknown
	if d != nil {
		device = d.Device
		if device == "" {
			device = shortUUID(d.UUID)
		}
		rate = formatRate(c.LaunchesPerSecond)
		if d.BusyShare != nil {
			busy = formatShare(*d.BusyShare)
		}
		held, memory = formatShare(d.HeldShare), formatBytes(d.MemoryBytes)
	}
	pid := unknown
	if c.PID != 0 {
		pid = strconv.FormatUint(uint64(c.PID), 10)
	}
	user := c.User
	if user == "" {
		user = strconv.FormatUint(uint64(c.UID), 10)
	}
	return []cell{
		{text: strconv.FormatUint(c.ID, 10)},
		{text: pid},
		{text: printable(user)},
		{text: orUnknown(printable(c.Container))},
		{text: orUnknown(printable(c.Tenant))},
		{text: printable(device)},
		{text: c.Class},
		{text: strconv.FormatUint(uint64(c.Weight), 10)},
		{text: orUnknown(printable(c.SLO))},
		{text: rate},
		{text: busy},
		{text: held},
		{text: memory},
		gateCell(c, d),
		{text: orUnknown(printable(c.Gang))},
		{text: workloadName(c)},
		{text: commandText(c)},
	}
}

// gateCell is the one word about a client that a person looks for first.
func gateCell(c *clientView, d *clientDeviceView) cell {
	switch {
	case c.State == "evicted":
		return cell{"evicted", toneBad}
	case d == nil:
		return cell{"no-device", toneDim}
	case c.GangRanks < c.GangSize:
		return cell{fmt.Sprintf("waiting for gang %d/%d", c.GangRanks, c.GangSize), toneWarn}
	case d.Held:
		return cell{"held", toneWarn}
	}
	gate := printable(d.Gate)
	switch gate {
	case "closed":
		return cell{gate, toneBad}
	case "open", "yielded-to":
		return cell{gate, toneGood}
	default:
		return cell{orUnknown(gate), tonePlain}
	}
}

// workloadName is the name that the program was given, else that of its executable.
func workloadName(c *clientView) string {
	name := c.Name
	if name == "" {
		name = c.Program
		if program, _, _ := strings.Cut(c.Command, " "); program != "" {
			name = filepath.Base(program)
		}
	}
	return orUnknown(printable(name))
}

func commandText(c *clientView) string {
	text := orUnknown(printable(cmp.Or(c.Command, c.Program)))
	if c.Reason != "" {
		return "(" + printable(c.Reason) + ") " + text
	}
	return text
}
