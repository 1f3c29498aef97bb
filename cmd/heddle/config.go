package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/config"
)

const configDumpLong = `Print the configuration that the running heddled uses, as TOML with every default filled in.

--origins prints where each value came from instead: default, file:LINE, env:NAME or flag:NAME.

JSON: {path, toml, values: [{key, value, origin}]}`

const configCheckLong = `Check a configuration file as heddled would at its start, without heddled. Every problem is
printed, one in a line, with its place. Without FILE the file that heddled would read is checked.`

func newConfigCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or check the configuration of heddled",
		Args:  noArgs,
		RunE:  showHelp,
	}
	cmd.AddCommand(newConfigDumpCmd(a), newConfigCheckCmd(a))
	return cmd
}

type originView struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func newConfigDumpCmd(a *app) *cobra.Command {
	var asJSON, origins bool
	cmd := &cobra.Command{
		Use:               "dump",
		Short:             "Print the configuration in force",
		Long:              configDumpLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && origins {
				return usagef("give --origins or --json, not both")
			}
			var got *heddlev1.GetConfigResponse
			err := a.call(cmd.Context(), func(ctx context.Context, conn *api.Conn) (err error) {
				got, err = conn.Config(ctx)
				return err
			})
			if err != nil {
				return err
			}
			values := make([]originView, 0, len(got.GetOrigins()))
			for _, o := range got.GetOrigins() {
				values = append(values, originView{o.GetKey(), o.GetValue(), o.GetOrigin()})
			}
			switch {
			case asJSON:
				return a.printJSON(map[string]any{"path": got.GetPath(), "toml": got.GetToml(), "values": values})
			case origins:
				return originsTable(values).write(a.stdout, a.width(false), a.palette())
			}
			path := got.GetPath()
			if path == "" {
				path = "no file, built-in defaults"
			}
			_, err = fmt.Fprintf(a.stdout, "# %s\n%s", printable(path), got.GetToml())
			return err
		},
	}
	cmd.Flags().BoolVar(&origins, "origins", false, "print where each value came from")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func originsTable(values []originView) *table {
	t := &table{columns: []column{{title: "KEY"}, {title: "ORIGIN"}, {title: "VALUE"}}}
	for _, v := range values {
		t.add(cell{text: printable(v.Key)}, cell{text: printable(v.Origin)}, cell{text: printable(v.Value)})
	}
	return t
}

func newConfigCheckCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration file",
		Long:  configCheckLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one file at a time (see %s --help)", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			source := config.Source{System: config.System{EffectiveUID: os.Geteuid(), Environ: a.environ}}
			if len(args) == 1 {
				source.File = args[0]
			}
			return a.checkConfig(source)
		},
	}
}

func (a *app) checkConfig(source config.Source) error {
	loaded, err := config.Load(source)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			fmt.Fprintln(a.stderr, printable(p.Error()))
		}
		return errReported
	case err != nil:
		return err
	case loaded.File == "":
		_, err = fmt.Fprintln(a.stdout, "no file, built-in defaults: ok")
	default:
		_, err = fmt.Fprintf(a.stdout, "%s: ok\n", loaded.File)
	}
	return err
}
