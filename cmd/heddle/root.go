package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-project/heddle/runtime/config"
)

const rootLong = `Heddle shares one GPU among many programs without slowing down the ones that matter.

    heddle run --priority high -- ./serve      start a program under the interposer
    heddle ps --watch                          who runs, who is held
    heddle set --pid 4242 --priority low       change a living client
    heddle doctor                              check this node, step by step

Exit codes: 0 done, 1 it did not work, 2 wrong use, 3 heddled is not reachable.
"heddle run" ends with the exit code of the program it started; 126 and 127 mean, as in a
shell, that the program could not be executed or was not found.`

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:               "heddle",
		Short:             "Share one GPU among many programs",
		Long:              rootLong,
		Args:              noArgs,
		RunE:              showHelp,
		SilenceErrors:     true, // execute prints them, in one line
		SilenceUsage:      true,
		DisableAutoGenTag: true, // generated pages must not change with the day
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)

	flags := root.PersistentFlags()
	flags.StringVar(&a.socket, "socket", "", "`path` of the API socket of heddled (env HEDDLE_API; default "+defaultAPISocket+")")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long to wait for an answer of heddled")
	flags.BoolVar(&a.noColor, "no-color", false, "never colour the output (env NO_COLOR)")
	completeWithNothing(root, "timeout")

	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.settle() }
	root.AddCommand(
		newRunCmd(a),
		newPsCmd(a),
		newGPUsCmd(a),
		newSetCmd(a),
		newPolicyCmd(a),
		newReserveCmd(a),
		newProbeCmd(a),
		newProfileCmd(a),
		newStatusCmd(a),
		newTraceCmd(a),
		newDoctorCmd(a),
		newDemoCmd(a),
		newSimCmd(a),
		newConfigCmd(a),
		newVersionCmd(a),
		newDocsCmd(),
	)
	root.SetHelpCommand(newHelpCmd())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			refuseArgs(cmd)
		}
	}
	return root
}

// settle fills in the global settings that come from the environment and checks them.
func (a *app) settle() error {
	a.socketSet = a.socket != ""
	if !a.socketSet {
		a.socket = a.getenv("HEDDLE_API")
	}
	if a.socket == "" {
		a.socket = a.usualSocket()
	}
	if a.timeout <= 0 {
		return usagef("--timeout %s: must be more than zero", a.timeout)
	}
	return nil
}

// usualSocket is where heddled listens when nobody says otherwise: the node's, or without one the
// user's own, where a heddled started without root puts it.
func (a *app) usualSocket() string {
	if _, err := os.Stat(defaultAPISocket); errors.Is(err, os.ErrNotExist) {
		own := config.Default(config.System{EffectiveUID: os.Geteuid(), Environ: a.environ}).APISocket
		if _, err := os.Stat(own); own != "" && err == nil {
			return own
		}
	}
	return defaultAPISocket
}

// flagError words the parser's complaints as one line that names the flag as it was meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	see := fmt.Sprintf("(see %s --help)", cmd.CommandPath())
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if near := nearestFlag(cmd, name); near != "" {
			return usagef("unknown flag %s, did you mean --%s?", dashed(name), near)
		}
		return usagef("unknown flag %s %s", dashed(name), see)
	case errors.As(err, &missing):
		return usagef("--%s needs a value %s", missing.GetFlag().Name, see)
	case errors.As(err, &invalid):
		return usagef("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), plainCause(invalid.GetFlag(), invalid.Unwrap()))
	default:
		return usagef("%w %s", err, see)
	}
}

// dashed writes a flag the way it was typed: one letter has one dash.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// plainCause says what a value should have been, where the parser only says that it is not.
func plainCause(f *pflag.Flag, err error) error {
	switch f.Value.Type() {
	case "duration":
		return errors.New("not a duration such as 500ms or 2s")
	case "bool":
		return errors.New("not true or false")
	case "uint32", "uint64", "uintSlice":
		return errors.New("not a number in range")
	default:
		return err
	}
}

func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return nearest(name, names)
}
