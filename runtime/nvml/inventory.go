package nvml

import (
	"context"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/heddle-project/heddle/runtime/gpu"
)

// Devices implements gpu.Driver.
func (d *Driver) Devices(context.Context) ([]gpu.Device, error) {
	release, err := d.lock()
	if err != nil {
		return nil, err
	}
	defer release()
	count, code := d.lib.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, d.wrap("count devices", code)
	}
	var devices []gpu.Device
	for i := range count {
		handle, code := d.lib.DeviceGetHandleByIndex(i)
		if code == nvml.ERROR_GPU_IS_LOST || code == nvml.ERROR_NO_PERMISSION {
			continue // one device that fell off the bus must not hide the others
		}
		if code != nvml.SUCCESS {
			return nil, d.wrap(fmt.Sprintf("open device %d", i), code)
		}
		device, err := d.device(i, handle)
		if err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func (d *Driver) device(index int, handle nvml.Device) (gpu.Device, error) {
	dev := gpu.Device{Index: index}
	text, code := handle.GetUUID()
	if code != nvml.SUCCESS {
		return dev, d.wrap(fmt.Sprintf("read UUID of device %d", index), code)
	}
	var err error
	if dev.UUID, err = gpu.ParseUUID(text); err != nil {
		return dev, fmt.Errorf("read UUID of device %d: %w", index, err)
	}
	if dev.Name, code = handle.GetName(); code != nvml.SUCCESS {
		return dev, d.wrap("read name of "+text, code)
	}
	memory, code := handle.GetMemoryInfo()
	if code != nvml.SUCCESS {
		return dev, d.wrap("read memory of "+text, code)
	}
	dev.MemoryBytes = memory.Total
	pci, code := handle.GetPciInfo()
	if code != nvml.SUCCESS {
		return dev, d.wrap("read PCI address of "+text, code)
	}
	dev.PCIBusID = cString(pci.BusId[:])
	dev.Multiprocessors = d.multiprocessors(handle)
	dev.ComputeMode = d.computeMode(handle)
	dev.MIG = d.migMode(handle)
	if dev.MIG.Current {
		dev.MIGDevices = d.migDevices(handle)
	}
	return dev, nil
}

// multiprocessors divides the cores by what one multiprocessor of the
// architecture has; NVML does not tell their number for a whole GPU.
func (d *Driver) multiprocessors(handle nvml.Device) int {
	if !d.has("nvmlDeviceGetNumGpuCores") || !d.has("nvmlDeviceGetCudaComputeCapability") {
		return 0
	}
	cores, code := handle.GetNumGpuCores()
	if code != nvml.SUCCESS {
		return 0
	}
	major, minor, code := handle.GetCudaComputeCapability()
	if code != nvml.SUCCESS {
		return 0
	}
	return cores / coresPerMultiprocessor(major, minor)
}

func coresPerMultiprocessor(major, minor int) int {
	switch {
	case major == 7, major == 6 && minor == 0, major == 8 && minor == 0:
		return 64
	default:
		return 128
	}
}

func (d *Driver) computeMode(handle nvml.Device) gpu.ComputeMode {
	if !d.has("nvmlDeviceGetComputeMode") {
		return gpu.ComputeUnknown
	}
	mode, code := handle.GetComputeMode()
	switch {
	case code != nvml.SUCCESS:
		return gpu.ComputeUnknown
	case mode == nvml.COMPUTEMODE_DEFAULT:
		return gpu.ComputeDefault
	case mode == nvml.COMPUTEMODE_PROHIBITED:
		return gpu.ComputeProhibited
	case mode == nvml.COMPUTEMODE_EXCLUSIVE_PROCESS:
		return gpu.ComputeExclusiveProcess
	default:
		return gpu.ComputeUnknown
	}
}

func (d *Driver) migMode(handle nvml.Device) gpu.MIGMode {
	if !d.has("nvmlDeviceGetMigMode") {
		return gpu.MIGMode{}
	}
	current, pending, code := handle.GetMigMode()
	if code != nvml.SUCCESS {
		return gpu.MIGMode{}
	}
	return gpu.MIGMode{
		Supported: true,
		Current:   current == nvml.DEVICE_MIG_ENABLE,
		Pending:   pending == nvml.DEVICE_MIG_ENABLE,
	}
}

// migDevices lists what the device is cut into. A place without an instance is
// not an error; a MIG device that vanishes meanwhile is left out.
func (d *Driver) migDevices(handle nvml.Device) []gpu.MIGDevice {
	if !d.has("nvmlDeviceGetMaxMigDeviceCount") || !d.has("nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil
	}
	count, code := handle.GetMaxMigDeviceCount()
	if code != nvml.SUCCESS {
		return nil
	}
	var list []gpu.MIGDevice
	for i := range count {
		mig, code := handle.GetMigDeviceHandleByIndex(i)
		if code != nvml.SUCCESS {
			continue
		}
		text, code := mig.GetUUID()
		if code != nvml.SUCCESS {
			continue
		}
		uuid, err := gpu.ParseUUID(text)
		if err != nil {
			continue // before R470 a MIG device had a compound name
		}
		m := gpu.MIGDevice{UUID: uuid}
		if name, code := mig.GetName(); code == nvml.SUCCESS {
			m.Profile = profileOf(name)
		}
		if memory, code := mig.GetMemoryInfo(); code == nvml.SUCCESS {
			m.MemoryBytes = memory.Total
		}
		list = append(list, m)
	}
	return list
}

// profileOf takes "1g.10gb" out of "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
func profileOf(name string) string {
	_, profile, ok := strings.Cut(name, " MIG ")
	if !ok {
		return ""
	}
	return profile
}
