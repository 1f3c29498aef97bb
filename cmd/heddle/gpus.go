package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/heddle-project/heddle/runtime/api"
)

const gpusLong = `Show the GPUs of this node as heddled sees them.

UTIL is NVML's utilisation: the part of the last sample period in which any kernel ran. It does not
say how much of the device was used. PROCS counts every process on the device, CLIENTS those that
are attached to heddled.

JSON: {"devices": [{uuid, index, name, memory_total_bytes, memory_used_bytes, utilization_percent,
multiprocessors, pci_bus_id, mig_mode, mig_devices: [{uuid, profile, memory_total_bytes}], mps,
clients, processes, compute_mode}]}`

func newGPUsCmd(a *app) *cobra.Command {
	var asJSON, noTrunc bool
	cmd := &cobra.Command{
		Use:               "gpus",
		Aliases:           []string{"devices"},
		Short:             "List the GPUs of this node",
		Long:              gpusLong,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var views []deviceView
			err := a.call(cmd.Context(), func(ctx context.Context, conn *api.Conn) error {
				devices, err := conn.Devices(ctx)
				views = viewDevices(devices)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"devices": views})
			}
			if len(views) == 0 {
				fmt.Fprintln(a.stdout, "no GPUs")
				return nil
			}
			return gpusTable(views).write(a.stdout, a.width(noTrunc), a.palette())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&noTrunc, "no-trunc", false, "show everything, however wide")
	return cmd
}

func gpusTable(views []deviceView) *table {
	t := &table{columns: []column{
		{title: "GPU", right: true},
		{title: "NAME"},
		{title: "MEMORY", right: true},
		{title: "UTIL", right: true},
		{title: "SMS", right: true, drop: 3},
		{title: "CLIENTS", right: true},
		{title: "PROCS", right: true, drop: 4},
		{title: "MIG", drop: 6},
		{title: "MPS", drop: 5},
		{title: "MODE", drop: 2},
		{title: "PCI", drop: 1},
		{title: "UUID"},
	}}
	for _, d := range views {
		mps := "no"
		if d.MPS {
			mps = "yes"
		}
		t.add(
			cell{text: strconv.FormatUint(uint64(d.Index), 10)},
			cell{text: printable(d.Name)},
			cell{text: formatBytes(d.MemoryUsedBytes) + "/" + formatBytes(d.MemoryTotalBytes)},
			cell{text: fmt.Sprintf("%d%%", d.UtilizationPercent)},
			cell{text: strconv.FormatUint(uint64(d.Multiprocessors), 10)},
			cell{text: strconv.FormatUint(uint64(d.Clients), 10)},
			cell{text: strconv.FormatUint(uint64(d.Processes), 10)},
			cell{text: orUnknown(printable(d.MIGMode))},
			cell{text: mps},
			cell{text: orUnknown(printable(d.ComputeMode))},
			cell{text: orUnknown(printable(d.PCIBusID))},
			cell{text: printable(d.UUID)},
		)
		for _, m := range d.MIGDevices {
			t.add(
				cell{text: strconv.FormatUint(uint64(d.Index), 10)},
				cell{text: printable(m.Profile)},
				cell{text: formatBytes(m.MemoryTotalBytes)},
				cell{text: unknown}, cell{text: unknown}, cell{text: unknown}, cell{text: unknown},
				cell{text: "device"}, cell{text: unknown}, cell{text: unknown}, cell{text: unknown},
				cell{text: printable(m.UUID)},
			)
		}
	}
	return t
}
