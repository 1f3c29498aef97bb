package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const profileLong = `Look at and keep what heddled learnt of workloads: how long their kernels take, how long the device
is idle after them, and what they ask of it.

A workload is named by its label, its key or the beginning of its key ("heddle profile ls" shows both);
where it has profiles on several models of device, --device says which. Labels can hold command lines:
root and the administrators' group see them.`

// profileOptions are those that several subcommands have.
type profileOptions struct {
	device string
	asJSON bool
}

func newProfileCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Look at what was learnt of workloads",
		Long:  profileLong,
		Args:  noArgs,
		RunE:  showHelp,
	}
	cmd.AddCommand(
		newProfileLsCmd(a),
		newProfileShowCmd(a),
		newProfileExportCmd(a),
		newProfileImportCmd(a),
		newProfileForgetCmd(a),
	)
	return cmd
}

// workloadCmd fills in what commands on one workload have in common.
func (a *app) workloadCmd(cmd *cobra.Command, o *profileOptions) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeWorkloads(cmd)
	}
	cmd.Flags().StringVar(&o.device, "device", "", "on this `model` of device, or the beginning of its name")
	completeWithNothing(cmd, "device")
	return cmd
}

func oneWorkload(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usagef("give one workload (heddle profile ls lists them)")
	}
	return nil
}

func (a *app) completeWorkloads(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
	var words []string
	a.completionCall(cmd, func(ctx context.Context, conn *api.Conn) error {
		list, err := conn.Profiles(ctx)
		for _, p := range list {
			words = append(words, p.GetWorkload()+"\t"+printable(p.GetLabel()+", "+p.GetDevice()))
		}
		return err
	})
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// findProfile finds the profile that a person means.
func findProfile(list []*heddlev1.Profile, workload, device string) (*heddlev1.Profile, error) {
	matching := func(ok func(*heddlev1.Profile) bool) (found []*heddlev1.Profile) {
		for _, p := range list {
			if strings.HasPrefix(p.GetDevice(), device) && ok(p) {
				found = append(found, p)
			}
		}
		return found
	}
	found := matching(func(p *heddlev1.Profile) bool { return p.GetWorkload() == workload || p.GetLabel() == workload })
	if len(found) == 0 && workload != "" {
		found = matching(func(p *heddlev1.Profile) bool {
			_, digits, _ := strings.Cut(p.GetWorkload(), ":")
			return strings.HasPrefix(p.GetWorkload(), workload) || strings.HasPrefix(digits, workload)
		})
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && device != "":
		return nil, fmt.Errorf("no profile of %s on %s (heddle profile ls lists them)", workload, device)
	case len(found) == 0:
		return nil, fmt.Errorf("no profile of %s (heddle profile ls lists them)", workload)
	}
	several := make([]string, len(found))
	for i, p := range found {
		several[i] = p.GetWorkload() + " on " + p.GetDevice()
	}
	return nil, usagef("%s is not unique, choose by key or --device: %s", workload, strings.Join(several, ", "))
}

// onProfile calls do with the profile that a person means.
func (a *app) onProfile(ctx context.Context, o *profileOptions, workload string, do func(context.Context, *api.Conn, *heddlev1.Profile) error) error {
	return a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		list, err := conn.Profiles(ctx)
		if err != nil {
			return err
		}
		p, err := findProfile(list, workload, o.device)
		if err != nil {
			return err
		}
		return do(ctx, conn, p)
	})
}

func newProfileExportCmd(a *app) *cobra.Command {
	var o profileOptions
	var output string
	cmd := a.workloadCmd(&cobra.Command{
		Use:     "export WORKLOAD [-o FILE]",
		Short:   "Write a profile as a JSON document",
		Long:    "Write a profile as a JSON document, which docs/profiles.md describes and heddle sim plays.",
		Example: "  heddle profile export resnet -o resnet.json",
		Args:    oneWorkload,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onProfile(cmd.Context(), &o, args[0], func(ctx context.Context, conn *api.Conn, p *heddlev1.Profile) error {
				document, err := conn.ExportProfile(ctx, p.GetWorkload(), p.GetDevice())
				if err != nil {
					return err
				}
				if output == "" || output == "-" {
					_, err = a.stdout.Write(document)
					return err
				}
				return os.WriteFile(output, document, 0o600)
			})
		},
	}, &o)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this `file` (default stdout)")
	return cmd
}

const profileImportLong = `Add a JSON document that "heddle profile export" wrote to what is known of its workload, by the
weight of the samples, or replace that.

With --ncu FILE is a table of Nsight Compute (docs/profiles.md has the command), and its figures go to
the kernels of the workload that is named.`

func newProfileImportCmd(a *app) *cobra.Command {
	var o profileOptions
	var replace bool
	var ncu string
	cmd := &cobra.Command{
		Use:   "import (FILE | - | --ncu FILE WORKLOAD)",
		Short: "Add a profile, or figures of Nsight Compute",
		Long:  profileImportLong,
		Example: `  heddle profile import resnet.json
  heddle profile import --ncu figures.csv resnet`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("ncu"):
				return oneWorkload(cmd, args)
			case len(args) != 1:
				return usagef("give one file, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case ncu != "" && replace:
				return usagef("give --ncu or --replace, not both")
			case ncu == "" && o.device != "":
				return usagef("--device: a document names its own device")
			case ncu != "":
				return a.importFigures(cmd.Context(), &o, ncu, args[0])
			}
			return a.importDocument(cmd.Context(), &o, args[0], replace)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if ncu != "" && len(args) == 0 {
				return a.completeWorkloads(cmd)
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&replace, "replace", false, "forget what was known before")
	flags.StringVar(&ncu, "ncu", "", "take figures from this `file`, a CSV table of Nsight Compute")
	flags.StringVar(&o.device, "device", "", "with --ncu: on this `model` of device, or the beginning of its name")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON: {\"profile\", \"found\", \"missing\"}")
	completeWithNothing(cmd, "device")
	return cmd
}

func (a *app) readDocument(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(name)
}

func (a *app) importDocument(ctx context.Context, o *profileOptions, file string, replace bool) error {
	document, err := a.readDocument(file)
	if err != nil {
		return err
	}
	var res *heddlev1.ImportProfileResponse
	err = a.call(ctx, func(ctx context.Context, conn *api.Conn) (err error) {
		head := &heddlev1.ImportProfileRequest{Kind: heddlev1.ImportProfileRequest_KIND_PROFILE, Replace: replace}
		res, err = conn.ImportProfile(ctx, head, document)
		return err
	})
	if err != nil {
		return err
	}
	return a.reportImport(res, o.asJSON, "")
}

func (a *app) importFigures(ctx context.Context, o *profileOptions, file, workload string) error {
	table, err := a.readDocument(file)
	if err != nil {
		return err
	}
	var res *heddlev1.ImportProfileResponse
	err = a.onProfile(ctx, o, workload, func(ctx context.Context, conn *api.Conn, p *heddlev1.Profile) (err error) {
		res, err = conn.ImportProfile(ctx, &heddlev1.ImportProfileRequest{
			Kind: heddlev1.ImportProfileRequest_KIND_NSIGHT, Workload: p.GetWorkload(), Device: p.GetDevice(),
		}, table)
		return err
	})
	if err != nil {
		return err
	}
	return a.reportImport(res, o.asJSON, fmt.Sprintf(", %s got figures", plural(int(res.GetFound()), "kernel")))
}

func (a *app) reportImport(res *heddlev1.ImportProfileResponse, asJSON bool, more string) error {
	p := viewProfile(res.GetProfile())
	if asJSON {
		missing := res.GetMissing()
		if missing == nil {
			missing = []string{}
		}
		return a.printJSON(map[string]any{"profile": p, "found": res.GetFound(), "missing": missing})
	}
	if n := len(res.GetMissing()); n > 0 {
		a.warn("profile import", fmt.Sprintf("the profile lacks %s of the table, %s first; names must be mangled", plural(n, "kernel"), res.GetMissing()[0]))
	}
	_, err := fmt.Fprintf(a.stdout, "%s on %s: %s%s\n", printable(cmp.Or(p.Label, p.Workload)), printable(p.Device), plural(int(p.Kernels), "kernel"), more)
	return err
}

func newProfileForgetCmd(a *app) *cobra.Command {
	var o profileOptions
	var all bool
	cmd := a.workloadCmd(&cobra.Command{
		Use:   "forget (WORKLOAD | --all)",
		Short: "Forget what was learnt of a workload",
		Long:  "Forget what was learnt of a workload. Its clients that are attached begin to learn anew.",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return usagef("give a workload or --all, not both")
			}
			if all {
				return nil
			}
			return oneWorkload(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			forgotten := []profileView{}
			forget := func(ctx context.Context, conn *api.Conn, p *heddlev1.Profile) error {
				err := conn.ForgetProfile(ctx, p.GetWorkload(), p.GetDevice())
				if err == nil {
					forgotten = append(forgotten, viewProfile(p))
				}
				return err
			}
			var err error
			if all {
				err = a.call(cmd.Context(), func(ctx context.Context, conn *api.Conn) error {
					list, err := conn.Profiles(ctx)
					for _, p := range list {
						if err == nil && strings.HasPrefix(p.GetDevice(), o.device) {
							err = forget(ctx, conn, p)
						}
					}
					return err
				})
			} else {
				err = a.onProfile(cmd.Context(), &o, args[0], forget)
			}
			if err != nil {
				return err
			}
			if o.asJSON {
				return a.printJSON(map[string]any{"forgotten": forgotten})
			}
			_, err = fmt.Fprintf(a.stdout, "%s forgotten\n", plural(len(forgotten), "profile"))
			return err
		},
	}, &o)
	cmd.Flags().BoolVar(&all, "all", false, "all profiles, or all of --device")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON: {\"forgotten\": [profiles]}")
	return cmd
}
