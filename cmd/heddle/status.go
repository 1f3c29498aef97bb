package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const statusLong = `Show the running heddled. Exit code 3 when it is not reachable, so that scripts can ask with it.

JSON: {version, generation, abi_version, pid, started, driver_version, nvml_version, api_socket,
attach_socket, clients, devices}`

type statusView struct {
	Version       string     `json:"version"`
	Generation    uint64     `json:"generation"`
	ABIVersion    uint32     `json:"abi_version"`
	PID           uint32     `json:"pid"`
	Started       *time.Time `json:"started,omitempty"`
	DriverVersion string     `json:"driver_version,omitempty"`
	NVMLVersion   string     `json:"nvml_version,omitempty"`
	APISocket     string     `json:"api_socket"`
	AttachSocket  string     `json:"attach_socket"`
	Clients       uint32     `json:"clients"`
	Devices       uint32     `json:"devices"`
}

func newStatusCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "status",
		Short:             "Show the running heddled",
		Long:              statusLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var view statusView
			err := a.call(cmd.Context(), func(ctx context.Context, conn *api.Conn) error {
				status, err := conn.Status(ctx)
				view = a.viewStatus(status)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(view)
			}
			return a.printStatus(&view, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) viewStatus(s *heddlev1.StatusResponse) statusView {
	view := statusView{
		Version: s.GetVersion(), Generation: s.GetGeneration(), ABIVersion: s.GetAbiVersion(),
		PID: s.GetPid(), DriverVersion: s.GetDriverVersion(), NVMLVersion: s.GetNvmlVersion(),
		APISocket: a.socket, AttachSocket: s.GetAttachSocket(),
		Clients: s.GetClients(), Devices: s.GetDevices(),
	}
	if s.GetStarted() != nil {
		started := s.GetStarted().AsTime()
		view.Started = &started
	}
	return view
}

func (a *app) printStatus(v *statusView, now time.Time) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, orUnknown(printable(value))) }
	up := unknown
	if v.Started != nil {
		up = formatAge(now.Sub(*v.Started))
	}
	line("heddled", fmt.Sprintf("%s, pid %d, up %s", v.Version, v.PID, up))
	line("generation", fmt.Sprintf("%d (starts on this node)", v.Generation))
	line("abi", fmt.Sprint(v.ABIVersion))
	line("driver", v.DriverVersion)
	line("nvml", v.NVMLVersion)
	line("api socket", v.APISocket)
	line("attach socket", v.AttachSocket)
	line("devices", fmt.Sprint(v.Devices))
	line("clients", fmt.Sprint(v.Clients))
	return w.Flush()
}
