package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// The views are what --json prints and what the tables are made of. Their field names are a
// promise to scripts: units are in the names, shares are parts of one, and a member that is not
// known is absent.

type clientView struct {
	ID                uint64             `json:"id"`
	PID               uint32             `json:"pid,omitempty"`
	UID               uint32             `json:"uid"`
	User              string             `json:"user,omitempty"`
	Container         string             `json:"container,omitempty"`
	Tenant            string             `json:"tenant,omitempty"`
	Name              string             `json:"name,omitempty"`
	Program           string             `json:"program,omitempty"`
	Command           string             `json:"command,omitempty"`
	Gang              string             `json:"gang,omitempty"`
	GangSize          uint32             `json:"gang_size,omitempty"`
	GangRanks         uint32             `json:"gang_ranks,omitempty"`
	Priority          uint32             `json:"priority"`
	Class             string             `json:"class"`
	Weight            uint32             `json:"weight"`
	SLO               string             `json:"slo,omitempty"` // its own
	State             string             `json:"state"`
	Reason            string             `json:"reason,omitempty"`
	Attached          *time.Time         `json:"attached,omitempty"`
	LaunchesPerSecond float64            `json:"launches_per_second"`
	Launches          uint64             `json:"launches"`
	UnnamedAddresses  uint64             `json:"unnamed_addresses"`
	Interposer        string             `json:"interposer_version,omitempty"`
	Devices           []clientDeviceView `json:"devices"`
}

type clientDeviceView struct {
	UUID            string   `json:"uuid"`
	Device          string   `json:"device,omitempty"` // index, or index/profile for a MIG device
	BusyShare       *float64 `json:"busy_share,omitempty"`
	HeldShare       float64  `json:"held_share"`
	MemoryBytes     uint64   `json:"memory_bytes"`
	MemoryPeakBytes uint64   `json:"memory_peak_bytes"`
	Holds           uint64   `json:"holds"`
	Overruns        uint64   `json:"overruns"`
	Gate            string   `json:"gate"`
	Busy            bool     `json:"busy"`
	Held            bool     `json:"held"`
}

type deviceView struct {
	UUID               string    `json:"uuid"`
	Index              uint32    `json:"index"`
	Name               string    `json:"name"`
	MemoryTotalBytes   uint64    `json:"memory_total_bytes"`
	MemoryUsedBytes    uint64    `json:"memory_used_bytes"`
	UtilizationPercent uint32    `json:"utilization_percent"`
	Multiprocessors    uint32    `json:"multiprocessors"`
	PCIBusID           string    `json:"pci_bus_id"`
	MIGMode            string    `json:"mig_mode"`
	MIGDevices         []migView `json:"mig_devices"`
	MPS                bool      `json:"mps"`
	Clients            uint32    `json:"clients"`
	Processes          uint32    `json:"processes"`
	ComputeMode        string    `json:"compute_mode"`
}

type migView struct {
	UUID             string `json:"uuid"`
	Profile          string `json:"profile"`
	MemoryTotalBytes uint64 `json:"memory_total_bytes"`
}

func clientState(s heddlev1.ClientState) string {
	switch s {
	case heddlev1.ClientState_CLIENT_STATE_ATTACHED:
		return "attached"
	case heddlev1.ClientState_CLIENT_STATE_WAITING:
		return "waiting"
	case heddlev1.ClientState_CLIENT_STATE_EVICTED:
		return "evicted"
	case heddlev1.ClientState_CLIENT_STATE_UNSPECIFIED:
	}
	return "unknown"
}

// viewClients makes the views of a list, most urgent class first and then in order of attaching,
// so that a line keeps its place while others come and go.
func viewClients(clients []*heddlev1.Client, names deviceNames) []clientView {
	views := make([]clientView, 0, len(clients))
	for _, c := range clients {
		views = append(views, viewClient(c, names))
	}
	slices.SortStableFunc(views, func(a, b clientView) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
	})
	return views
}

func viewClient(c *heddlev1.Client, names deviceNames) clientView {
	view := clientView{
		ID: c.GetId(), PID: c.GetPid(), UID: c.GetUid(), User: c.GetUser(),
		Container: c.GetContainer(), Tenant: c.GetTenant(), Name: c.GetName(),
		Program: c.GetProgram(), Command: c.GetCommand(),
		Gang: c.GetGang(), GangSize: c.GetGangSize(), GangRanks: c.GetGangRanks(),
		Priority: c.GetPriority(), Class: className(c.GetPriority()), Weight: c.GetWeight(), SLO: c.GetSlo(),
		State: clientState(c.GetState()), Reason: c.GetReason(),
		LaunchesPerSecond: c.GetLaunchesPerSecond(), Launches: c.GetLaunches(),
		UnnamedAddresses: c.GetUnnamedAddresses(), Interposer: c.GetInterposerVersion(),
		Devices: make([]clientDeviceView, 0, len(c.GetDevices())),
	}
	if c.GetAttached() != nil {
		attached := c.GetAttached().AsTime()
		view.Attached = &attached
	}
	for _, d := range c.GetDevices() {
		view.Devices = append(view.Devices, clientDeviceView{
			UUID: d.GetUuid(), Device: names[d.GetUuid()],
			BusyShare: d.BusyShare, HeldShare: d.GetHeldShare(),
			MemoryBytes: d.GetMemoryBytes(), MemoryPeakBytes: d.GetMemoryPeakBytes(),
			Holds: d.GetHolds(), Overruns: d.GetOverruns(),
			Gate: strings.ReplaceAll(d.GetGate(), " ", "-"), Busy: d.GetBusy(), Held: d.GetHeld(),
		})
	}
	return view
}

func viewDevices(devices []*heddlev1.Device) []deviceView {
	views := make([]deviceView, 0, len(devices))
	for _, d := range devices {
		view := deviceView{
			UUID: d.GetUuid(), Index: d.GetIndex(), Name: d.GetName(),
			MemoryTotalBytes: d.GetMemoryTotalBytes(), MemoryUsedBytes: d.GetMemoryUsedBytes(),
			UtilizationPercent: d.GetUtilizationPercent(), Multiprocessors: d.GetMultiprocessors(),
			PCIBusID: d.GetPciBusId(), MIGMode: d.GetMigMode(), MIGDevices: []migView{},
			MPS: d.GetMps(), Clients: d.GetClients(), Processes: d.GetProcesses(),
			ComputeMode: d.GetComputeMode(),
		}
		for _, m := range d.GetMigDevices() {
			view.MIGDevices = append(view.MIGDevices, migView{m.GetUuid(), m.GetProfile(), m.GetMemoryTotalBytes()})
		}
		views = append(views, view)
	}
	slices.SortStableFunc(views, func(a, b deviceView) int { return cmp.Compare(a.Index, b.Index) })
	return views
}
