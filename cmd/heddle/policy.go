package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/config"
)

const policyLong = `Show how the clients of each GPU share it, or change that.

Without a name, prints the policy of each device and where it comes from: the default, a line of
heddled's configuration, or an earlier "heddle policy". With one, the devices change over at once,
running clients included, and keep the policy across restarts of heddled, until --reset. Root and
the administrators' group may change it. A GPU that is cut by MIG stands for its MIG devices.

"heddle sim" compares the policies without a GPU.

JSON: {"devices": [{uuid, device, name, policy, policy_origin}]}`

const policyExample = `  heddle policy
  heddle policy timeslice --device 0
  heddle policy --reset`

// policyView is the policy of one device or MIG device.
type policyView struct {
	UUID   string `json:"uuid"`
	Device string `json:"device"` // index, or index/profile
	Name   string `json:"name"`
	Policy string `json:"policy"`
	Origin string `json:"policy_origin"`
}

type policyOptions struct {
	devices []string
	reset   bool
	asJSON  bool
}

func newPolicyCmd(a *app) *cobra.Command {
	var o policyOptions
	cmd := &cobra.Command{
		Use:     "policy [NAME] [--device GPU]... [--reset]",
		Short:   "Show or change how the clients of a GPU share it",
		Long:    policyLong,
		Example: policyExample,
		Args:    atMostOnePolicy,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return config.Policies(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.reset && len(args) > 0 {
				return usagef("give a policy or --reset, not both")
			}
			return a.policy(cmd.Context(), &o, strings.Join(args, ""))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.devices, "device", nil, "only this `GPU`: index, UUID or its beginning (default all)")
	flags.BoolVar(&o.reset, "reset", false, "undo what was set: back to the configuration")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	mustComplete(cmd, "device", a.completeDevices)
	return cmd
}

func atMostOnePolicy(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return usagef("give one policy, not %d", len(args))
	case len(args) == 1 && !slices.Contains(config.Policies(), args[0]):
		return usagef("no policy is called %q; there are %s", args[0], strings.Join(config.Policies(), ", "))
	}
	return nil
}

func (a *app) policy(ctx context.Context, o *policyOptions, name string) error {
	views := []policyView{}
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		devices, err := conn.Devices(ctx)
		if err != nil {
			return err
		}
		var wanted []string
		for _, d := range o.devices {
			uuid, err := resolveDevice(devices, d)
			if err != nil {
				return usagef("--device: %w", err)
			}
			wanted = append(wanted, uuid)
		}
		if name != "" || o.reset {
			if _, err := conn.SetPolicy(ctx, &heddlev1.SetPolicyRequest{Devices: wanted, Policy: name, Reset_: o.reset}); err != nil {
				return err
			}
			if devices, err = conn.Devices(ctx); err != nil {
				return err
			}
		}
		views = viewPolicies(devices, wanted)
		return nil
	})
	if err != nil {
		return err
	}
	if o.asJSON {
		return a.printJSON(map[string]any{"devices": views})
	}
	return policyTable(views).write(a.stdout, a.width(false), a.palette())
}

// viewPolicies are those of the devices that are wanted, none = all, and of their MIG devices.
func viewPolicies(devices []*heddlev1.Device, wanted []string) []policyView {
	views := []policyView{}
	names := nameDevices(devices)
	for _, d := range devices {
		whole := len(wanted) == 0 || slices.Contains(wanted, d.GetUuid())
		if whole {
			views = append(views, policyView{
				d.GetUuid(), strconv.FormatUint(uint64(d.GetIndex()), 10), d.GetName(), d.GetPolicy(), d.GetPolicyOrigin(),
			})
		}
		for _, m := range d.GetMigDevices() {
			if whole || slices.Contains(wanted, m.GetUuid()) {
				views = append(views, policyView{
					m.GetUuid(), names[m.GetUuid()], d.GetName() + " MIG " + m.GetProfile(), m.GetPolicy(), m.GetPolicyOrigin(),
				})
			}
		}
	}
	return views
}

func policyTable(views []policyView) *table {
	t := &table{columns: []column{
		{title: "GPU"}, {title: "NAME", drop: 2}, {title: "POLICY"}, {title: "FROM"}, {title: "UUID", drop: 1},
	}}
	for _, v := range views {
		t.add(
			cell{text: printable(v.Device)}, cell{text: printable(v.Name)}, cell{text: orUnknown(printable(v.Policy))},
			cell{text: orUnknown(printable(v.Origin))}, cell{text: printable(v.UUID)},
		)
	}
	return t
}
