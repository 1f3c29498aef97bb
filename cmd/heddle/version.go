package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
)

const versionLong = `Print the version of heddle, and of heddled if it answers.

JSON: {heddle, go, platform, heddled}; "heddled" is absent when it is not reachable.`

// versionProbeLimit keeps the command quick where there is no daemon.
const versionProbeLimit = 500 * time.Millisecond

type versionView struct {
	Heddle   string `json:"heddle"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Heddled  string `json:"heddled,omitempty"`
}

func newVersionCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print versions",
		Long:              versionLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view := versionView{
				Heddle: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			}
			// Without a daemon there is one version less to print, and that is no failure.
			_ = a.callWithin(cmd.Context(), min(a.timeout, versionProbeLimit), func(ctx context.Context, conn *api.Conn) error {
				status, err := conn.Status(ctx)
				view.Heddled = status.GetVersion()
				return err
			})
			if asJSON {
				return a.printJSON(view)
			}
			fmt.Fprintf(a.stdout, "heddle %s (%s, %s)\n", view.Heddle, view.Go, view.Platform)
			if view.Heddled != "" {
				fmt.Fprintf(a.stdout, "heddled %s\n", printable(view.Heddled))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// released is set by the linker for a release.
var released string

// buildVersion is the release, or what the Go tool knows of the checkout; heddled says the same of
// itself.
func buildVersion() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
