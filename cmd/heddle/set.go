package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const setLong = `Change the priority, the weight or the objective of a living client or of a tenant, or undo that.

A client keeps the change until it ends. A tenant keeps it across restarts of heddled, for the
clients it has now and those that come. --reset undoes all that was set for the one or the other:
what heddled's configuration grants and the client asked for counts again. What was set for a client
stands above what was set for its tenant. Root and the administrators' group may do this.

An objective (--slo) is what a client accepts of those that share its device: a slowdown of its
kernels such as 2%, a latency such as 20ms (the mean time of a request with work on the device), or
none. Lower classes get as much as it allows.

JSON: {"clients": n, "changes": [{what, before, after}]}; for a tenant "before" is absent, and a
--reset of a tenant has no changes to tell: its clients may differ.`

const setExample = `  heddle set --pid 4242 --priority low
  heddle set --client 7 --weight 300
  heddle set --tenant research --priority normal --weight 50
  heddle set --pid 4242 --slo 2%
  heddle set --tenant research --reset`

type setOptions struct {
	client uint64
	pid    uint32
	tenant string
	class  classFlag
	weight weightFlag
	slo    sloFlag
	reset  bool
	asJSON bool
}

// check says what is wrong with the flags of one command line.
func (o *setOptions) check(targets int) error {
	changes := o.class.set || o.weight.set || o.slo.set
	switch {
	case targets != 1:
		return usagef("give one of --client, --pid and --tenant")
	case o.reset && changes:
		return usagef("give --reset or new values, not both")
	case !o.reset && !changes:
		return usagef("nothing to change: give --priority, --weight, --slo or several, or --reset")
	}
	return nil
}

func newSetCmd(a *app) *cobra.Command {
	var o setOptions
	cmd := &cobra.Command{
		Use:               "set (--client ID | --pid PID | --tenant NAME) ([--priority CLASS] [--weight N] [--slo OBJECTIVE] | --reset)",
		Short:             "Change the priority, weight or objective of a client or tenant",
		Long:              setLong,
		Example:           setExample,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			targets := 0
			for _, name := range []string{"client", "pid", "tenant"} {
				if cmd.Flags().Changed(name) {
					targets++
				}
			}
			if err := o.check(targets); err != nil {
				return err
			}
			if cmd.Flags().Changed("tenant") {
				return a.setTenant(cmd.Context(), &o)
			}
			return a.setClient(cmd.Context(), &o, cmd.Flags().Changed("pid"))
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.client, "client", 0, "the client with this `id` (heddle ps)")
	flags.Uint32Var(&o.pid, "pid", 0, "the client with this process `id`")
	flags.StringVar(&o.tenant, "tenant", "", "all clients of the tenant of this `name`, present and future")
	flags.BoolVar(&o.reset, "reset", false, "undo what was set: back to the configuration and the client's own wish")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	addShareFlags(cmd, &o.class, &o.weight)
	flags.Var(&o.slo, "slo", "what it accepts of others: a slowdown such as 2%, a latency such as 20ms, or none")
	completeWithNothing(cmd, "slo")
	mustComplete(cmd, "client", a.completeClients)
	mustComplete(cmd, "pid", a.completePIDs)
	mustComplete(cmd, "tenant", a.completeTenants)
	return cmd
}

// change is one value that a command has set.
type change struct {
	What   string `json:"what"`
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
}

func (c change) String() string {
	switch c.Before {
	case "":
		return c.What + " " + c.After
	case c.After:
		return c.What + " " + c.After + " as before"
	default:
		return c.What + " " + c.Before + " -> " + c.After
	}
}

// report prints what a command has set, for people or for scripts.
func (a *app) report(subject string, clients int, changes []change, asJSON bool) error {
	if asJSON {
		return a.printJSON(map[string]any{"clients": clients, "changes": changes})
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	if len(changes) == 0 {
		words = []string{"as configured"}
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\n", printable(subject), strings.Join(words, ", "))
	return err
}

func (a *app) setClient(ctx context.Context, o *setOptions, byPID bool) error {
	request := &heddlev1.SetClientRequest{
		Target:   &heddlev1.SetClientRequest_Id{Id: o.client},
		Priority: o.class.value(), Weight: o.weight.value(), Slo: o.slo.value(), Reset_: o.reset,
	}
	if byPID {
		request.Target = &heddlev1.SetClientRequest_Pid{Pid: o.pid}
	}
	var before, after *heddlev1.Client
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		list, err := conn.Clients(ctx, nil)
		if err != nil {
			return err
		}
		if before = findClient(list, o, byPID); before == nil {
			if byPID {
				return fmt.Errorf("no client with pid %d (heddle ps lists them)", o.pid)
			}
			return fmt.Errorf("no client %d (heddle ps lists them)", o.client)
		}
		after, err = conn.SetClient(ctx, request)
		return err
	})
	if err != nil {
		return err
	}
	var changes []change
	if o.class.set || o.reset {
		changes = append(changes, change{"priority", className(before.GetPriority()), className(after.GetPriority())})
	}
	if o.weight.set || o.reset {
		changes = append(changes, change{"weight", formatWeight(before.GetWeight()), formatWeight(after.GetWeight())})
	}
	if o.slo.set || o.reset && before.GetSlo() != after.GetSlo() {
		changes = append(changes, change{"slo", sloName(before.GetSlo()), sloName(after.GetSlo())})
	}
	return a.report(clientTitle(after), 1, changes, o.asJSON)
}

func (a *app) setTenant(ctx context.Context, o *setOptions) error {
	if o.tenant == "" {
		return usagef("--tenant: the name is empty")
	}
	var clients int
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) (err error) {
		clients, err = conn.SetTenant(ctx, &heddlev1.SetTenantRequest{
			Tenant: o.tenant, Priority: o.class.value(), Weight: o.weight.value(), Slo: o.slo.value(), Reset_: o.reset,
		})
		return err
	})
	if err != nil {
		return err
	}
	changes := []change{}
	if o.class.set {
		changes = append(changes, change{What: "priority", After: className(o.class.number)})
	}
	if o.weight.set {
		changes = append(changes, change{What: "weight", After: formatWeight(o.weight.number)})
	}
	if o.slo.set {
		changes = append(changes, change{What: "slo", After: o.slo.text})
	}
	now := plural(clients, "client") + " now"
	if clients == 0 {
		now = "no clients yet" // so that a slip in the name is seen
	}
	return a.report(fmt.Sprintf("tenant %s (%s)", o.tenant, now), clients, changes, o.asJSON)
}

func findClient(clients []*heddlev1.Client, o *setOptions, byPID bool) *heddlev1.Client {
	for _, c := range clients {
		if byPID && c.GetPid() == o.pid && o.pid != 0 || !byPID && c.GetId() == o.client {
			return c
		}
	}
	return nil
}

// clientTitle names a client so that a person recognises it.
func clientTitle(c *heddlev1.Client) string {
	view := clientView{Name: c.GetName(), Program: c.GetProgram(), Command: c.GetCommand()}
	title := fmt.Sprintf("client %d", c.GetId())
	if c.GetPid() != 0 {
		title += fmt.Sprintf(", pid %d", c.GetPid())
	}
	if name := workloadName(&view); name != unknown {
		title += ", " + name
	}
	return title
}

func formatWeight(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
