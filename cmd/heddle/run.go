package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// nameBytesMax leaves room for the NUL that closes the 64 bytes of the attach message.
const nameBytesMax = 63

const runLong = `Start a program with the interposer in front of the CUDA driver.

The program replaces heddle: its exit code, signals and terminal are its own. LD_PRELOAD and
LD_LIBRARY_PATH get the interposer in front and keep what was there. Without heddled the program
runs unscheduled, with a warning, and attaches as soon as heddled comes; --require refuses instead.

With --gang NAME:N the program is one of N ranks of a job, on one device or on several. No launch of
a rank passes before N ranks of that name have opened a device, and when one has to wait or ends,
all wait. Ranks belong together if user, tenant, NAME and N are the same.

Priority and weight are wishes inside what the administrator granted: a program can lower its own
class, never raise it above its grant.

With --period and --budget heddled promises the program device time, as "heddle reserve" does, or the
program is not started.

Exit codes: that of the program; 126 it could not be executed, 127 it was not found, 1 the
interposer is missing, 2 wrong use, 3 heddled is not reachable and --require was given.`

const runExample = `  heddle run -- python3 serve.py
  heddle run --priority high --name resnet -- ./serve --port 8000
  heddle run --priority idle --device 1 -- ./train
  heddle run --period 20ms --budget 2ms --deadline 10ms -- ./control
  heddle run --gang train:2 -- ./rank 0 & heddle run --gang train:2 -- ./rank 1`

type runOptions struct {
	class   classFlag
	weight  weightFlag
	gang    gangFlag
	name    string
	devices []string
	require bool
	task    taskFlags
	timed   bool // the task was given
}

func newRunCmd(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run [flags] -- COMMAND [ARG...]",
		Short:   "Start a program under the interposer",
		Long:    runLong,
		Example: runExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no command given (heddle run [flags] -- COMMAND [ARG...])")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.timed = o.task.any(cmd.Flags().Changed); o.timed {
				if err := o.task.check(cmd.Flags().Changed); err != nil {
					return err
				}
			}
			return a.run(cmd.Context(), &o, args)
		},
		// After "--" the shell's own completion of files and commands is the best there is.
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the command's flags are the command's
	addShareFlags(cmd, &o.class, &o.weight)
	flags.StringVarP(&o.name, "name", "n", "", "`name` of the workload in heddle ps, at most 63 bytes")
	flags.Var(&o.gang, "gang", "the program is one of N ranks of a job, which run together or not at all")
	flags.StringSliceVarP(&o.devices, "device", "d", nil, "`device` to use: index or UUID (sets CUDA_VISIBLE_DEVICES); may be repeated")
	flags.BoolVar(&o.require, "require", false, "refuse to start when heddled is not reachable")
	o.task.add(flags)
	completeWithNothing(cmd, "name", "gang", "period", "budget", "deadline", "max-block")
	mustComplete(cmd, "device", a.completeDevices)
	return cmd
}

func (a *app) run(ctx context.Context, o *runOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	interposer, err := a.findInterposer()
	if err != nil {
		return err
	}
	program, err := findProgram(args[0], a.searchPath())
	if err != nil {
		return err
	}
	node, err := a.askNode(ctx, o)
	if err != nil {
		return err
	}
	for _, warning := range a.runWarnings(program) {
		if o.require {
			return errors.New(warning)
		}
		a.warn("run", warning)
	}
	env, err := o.environment(a.environ, interposer, node, a.socketSet)
	if err != nil {
		return err
	}
	if o.timed {
		if err := a.reserveForRun(ctx, &o.task, o.devices); err != nil {
			return err
		}
	}
	return execProgram(program, args, env)
}

func (o *runOptions) check() error {
	if len(o.name) > nameBytesMax {
		return usagef("--name: longer than %d bytes", nameBytesMax)
	}
	if strings.ContainsFunc(o.name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return usagef("--name %s: has characters that do not print", strconv.Quote(o.name))
	}
	for _, device := range o.devices {
		if err := checkDeviceSyntax(device); err != nil {
			return usagef("--device %s: %w", device, err)
		}
	}
	return nil
}

func (a *app) warn(command, text string) {
	fmt.Fprintf(a.stderr, "heddle %s: warning: %s\n", command, printable(text))
}

// runWarnings are reasons why the program will not be scheduled, or not even find a driver, though
// all is in place.
func (a *app) runWarnings(program string) []string {
	var warnings []string
	if a.getenv("HEDDLE_DISABLE") == "1" {
		warnings = append(warnings, "HEDDLE_DISABLE=1 is set; the program runs unscheduled")
	}
	if driver := a.getenv("HEDDLE_REAL_LIBCUDA"); driver != "" {
		if problem := libraryProblem(driver); problem != "" {
			warnings = append(warnings, "HEDDLE_REAL_LIBCUDA="+driver+": "+problem+"; the program finds no driver until that is corrected or unset")
		}
	}
	if isPrivileged(program, os.Geteuid()) {
		warnings = append(warnings, program+" has rights of its own (setuid, setgid or capabilities); the loader ignores the interposer in it")
	}
	return warnings
}

// environment is the program's: the caller's, with the interposer in front and the wishes in it.
func (o *runOptions) environment(env []string, interposer string, n node, socketChosen bool) ([]string, error) {
	env = interpose(env, interposer)
	if o.class.set {
		env = setEnv(env, "HEDDLE_PRIORITY", strconv.FormatUint(uint64(o.class.number), 10))
	}
	if o.weight.set {
		env = setEnv(env, "HEDDLE_WEIGHT", o.weight.String())
	}
	if o.name != "" {
		env = setEnv(env, "HEDDLE_NAME", o.name)
	}
	if o.gang.name != "" {
		env = setEnv(env, "HEDDLE_GANG", o.gang.String())
	}
	if n.answered && n.attachSocket != "" {
		// The daemon that answers here is the one to attach to, unless the caller knows better.
		if _, set := lookupEnv(env, "HEDDLE_SOCKET"); !set || socketChosen {
			env = setEnv(env, "HEDDLE_SOCKET", n.attachSocket)
		}
	}
	return o.visibleDevices(env, n)
}

// visibleDevices narrows what the program sees. UUIDs mean the same to everybody; an index means
// NVML's only when CUDA is told to count in that order.
func (o *runOptions) visibleDevices(env []string, n node) ([]string, error) {
	if len(o.devices) == 0 {
		return env, nil
	}
	visible := make([]string, 0, len(o.devices))
	for _, device := range o.devices {
		if n.answered {
			uuid, err := resolveDevice(n.devices, device)
			if err != nil {
				return nil, err
			}
			device = uuid
		}
		visible = append(visible, device)
	}
	if !n.answered {
		env = setEnv(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	}
	return setEnv(env, "CUDA_VISIBLE_DEVICES", strings.Join(visible, ",")), nil
}
