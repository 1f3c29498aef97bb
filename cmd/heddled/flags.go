package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/heddle-project/heddle/runtime/config"
)

// options are what the command line says.
type options struct {
	file     string
	check    bool
	version  bool
	settings []config.Flag
}

// errHelp says that the help was asked for, and printed.
var errHelp = errors.New("help")

// settingFlags are the flags that set a key of the configuration.
func settingFlags() []struct{ name, key, usage string } {
	return []struct{ name, key, usage string }{
		{"api-socket", "api_socket", "`path` of the control API's socket"},
		{"attach-dir", "attach_dir", "`directory` of the socket that programs attach to"},
		{"state-dir", "state_dir", "`directory` of what survives a restart"},
		{"nvml-library", "nvml_library", "`path` of libnvidia-ml.so.1"},
		{"log-level", "log.level", "`level`: debug, info, warn or error"},
		{"log-format", "log.format", "`format`: text or json"},
	}
}

func parseFlags(args []string, stdout io.Writer) (*options, error) {
	opt := &options{}
	set := flag.NewFlagSet("heddled", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&opt.file, "config", "", "`file` to read the configuration from")
	set.BoolVar(&opt.check, "check", false, "check the configuration and exit")
	set.BoolVar(&opt.version, "version", false, "print the version and exit")
	for _, f := range settingFlags() {
		set.Func(f.name, f.usage, func(value string) error {
			opt.settings = append(opt.settings, config.Flag{Name: f.name, Key: f.key, Value: value})
			return nil
		})
	}
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "Usage: heddled [flags]")
		set.SetOutput(stdout)
		set.PrintDefaults()
		return nil, errHelp
	case err != nil:
		return nil, fmt.Errorf("%w (heddled --help lists the flags)", err)
	case set.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q (heddled --help lists the flags)", set.Arg(0))
	}
	return opt, nil
}

// released is set by the linker for a release.
var released string

// version is the release, or what the Go tool knows of the checkout.
func version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}
