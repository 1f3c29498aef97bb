package nvml

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

var _ gpu.MIG = (*Driver)(nil)

// migCalls are the functions that cutting a device takes. Drivers before R450 have none of them.
var migCalls = []string{
	"nvmlDeviceGetMigMode", "nvmlDeviceSetMigMode", "nvmlDeviceGetGpuInstanceProfileInfo",
	"nvmlDeviceGetGpuInstancePossiblePlacements_v2", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceDestroy",
	"nvmlDeviceGetGpuInstances", "nvmlDeviceGetGpuInstanceById", "nvmlGpuInstanceGetInfo",
	"nvmlGpuInstanceGetComputeInstanceProfileInfo", "nvmlGpuInstanceCreateComputeInstance", "nvmlComputeInstanceDestroy",
	"nvmlGpuInstanceGetComputeInstances", "nvmlGpuInstanceGetComputeInstanceById", "nvmlComputeInstanceGetInfo_v2",
}

// cut finds a device that can be cut; release must follow.
func (d *Driver) cut(device gpu.UUID) (handle nvml.Device, release func(), err error) {
	release, err = d.lock()
	if err != nil {
		return nil, nil, err
	}
	for _, call := range migCalls {
		if !d.has(call) {
			release()
			return nil, nil, errdefs.Errorf(errdefs.Unsupported, "the driver has no %s: it is too old for MIG", call)
		}
	}
	handle, err = d.handle(device)
	if err != nil {
		release()
		return nil, nil, err
	}
	return handle, release, nil
}

// MIGMode implements gpu.MIG.
func (d *Driver) MIGMode(_ context.Context, device gpu.UUID) (gpu.MIGMode, error) {
	handle, release, err := d.cut(device)
	if err != nil {
		return gpu.MIGMode{}, err
	}
	defer release()
	return d.migMode(handle), nil
}

// SetMIGMode implements gpu.MIG. NVML answers twice: whether it was asked well, and what came of it.
func (d *Driver) SetMIGMode(_ context.Context, device gpu.UUID, on bool) (gpu.Activation, error) {
	handle, release, err := d.cut(device)
	if err != nil {
		return 0, err
	}
	defer release()
	mode := nvml.DEVICE_MIG_DISABLE
	if on {
		mode = nvml.DEVICE_MIG_ENABLE
	}
	activation, code := handle.SetMigMode(mode)
	if err := d.wrap("set the MIG mode of "+device.GPUString(), code); err != nil {
		return 0, err
	}
	switch activation {
	case nvml.SUCCESS:
		return gpu.ActivationDone, nil
	case nvml.ERROR_IN_USE:
		return gpu.ActivationInUse, nil
	case nvml.ERROR_RESET_REQUIRED:
		return gpu.ActivationReset, nil
	default:
		return 0, d.wrap("activate the MIG mode of "+device.GPUString(), activation)
	}
}

// eachProfile calls f for the profiles that the device has. NVML numbers what it may be asked for, and
// has newer numbers than the header that this was built with.
func (d *Driver) eachProfile(handle nvml.Device, f func(number int, info *nvml.GpuInstanceProfileInfo) error) error {
	for number := 0; ; number++ {
		info, code := handle.GetGpuInstanceProfileInfo(number)
		switch code {
		case nvml.SUCCESS:
			if err := f(number, &info); err != nil {
				return err
			}
		case nvml.ERROR_NOT_SUPPORTED:
			// This board does not have it.
		case nvml.ERROR_INVALID_ARGUMENT:
			return nil
		default:
			return d.wrap(fmt.Sprintf("read MIG profile %d", number), code)
		}
	}
}

// Profiles implements gpu.MIG.
func (d *Driver) Profiles(_ context.Context, device gpu.UUID) ([]gpu.Profile, error) {
	handle, release, err := d.cut(device)
	if err != nil {
		return nil, err
	}
	defer release()
	var list []gpu.Profile
	err = d.eachProfile(handle, func(number int, info *nvml.GpuInstanceProfileInfo) error {
		p := gpu.Profile{
			ID: int(info.Id), Name: d.profileName(handle, number, info), ComputeSlices: int(info.SliceCount),
			MemoryBytes: info.MemorySizeMB << 20, Multiprocessors: int(info.MultiprocessorCount), InstancesMax: int(info.InstanceCount),
			Engines: gpu.Engines{
				Copy: int(info.CopyEngineCount), Decode: int(info.DecoderCount), Encode: int(info.EncoderCount),
				JPEG: int(info.JpegCount), OFA: int(info.OfaCount),
			},
		}
		places, code := handle.GetGpuInstancePossiblePlacements(info)
		if code != nvml.SUCCESS {
			return d.wrap("read the placements of "+p.Name, code)
		}
		for _, place := range places {
			p.MemorySlices = int(place.Size)
			p.Starts = append(p.Starts, int(place.Start))
		}
		slices.Sort(p.Starts)
		list = append(list, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errdefs.Errorf(errdefs.Unsupported, "%s cannot be cut: no MIG profiles", device.GPUString())
	}
	return list, nil
}

// profileName is what the driver calls a profile, "1g.10gb+me", where it says so.
func (d *Driver) profileName(handle nvml.Device, number int, info *nvml.GpuInstanceProfileInfo) string {
	if d.has("nvmlDeviceGetGpuInstanceProfileInfoV") {
		if named, code := handle.GetGpuInstanceProfileInfoV(number).V2(); code == nvml.SUCCESS {
			if name := strings.TrimPrefix(cString(named.Name[:]), "MIG "); name != "" {
				return name
			}
		}
	}
	return fmt.Sprintf("%dg.%dgb", info.SliceCount, (info.MemorySizeMB+1023)>>10)
}

// cString is NVML's NUL-ended array as text.
func cString[T ~int8 | ~uint8](raw []T) string {
	var b strings.Builder
	for _, c := range raw {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// GPUInstances implements gpu.MIG. It asks by profile: a list of MIG devices would leave out those
// without a compute instance.
func (d *Driver) GPUInstances(_ context.Context, device gpu.UUID) ([]gpu.GPUInstance, error) {
	handle, release, err := d.cut(device)
	if err != nil {
		return nil, err
	}
	defer release()
	var list []gpu.GPUInstance
	err = d.eachProfile(handle, func(_ int, info *nvml.GpuInstanceProfileInfo) error {
		found, code := handle.GetGpuInstances(info)
		if code != nvml.SUCCESS {
			return d.wrap("list GPU instances of "+device.GPUString(), code)
		}
		for _, gi := range found {
			in, err := d.instance(gi)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(list, func(other gpu.GPUInstance) bool { return other.ID == in.ID }) {
				list = append(list, in)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b gpu.GPUInstance) int { return a.Placement.Start - b.Placement.Start })
	return list, nil
}

// instance reads a GPU instance and what is on it.
func (d *Driver) instance(gi nvml.GpuInstance) (gpu.GPUInstance, error) {
	info, code := gi.GetInfo()
	if code != nvml.SUCCESS {
		return gpu.GPUInstance{}, d.wrap("read a GPU instance", code)
	}
	in := gpu.GPUInstance{
		ID: int(info.Id), Profile: int(info.ProfileId), Placement: gpu.Placement{Start: int(info.Placement.Start), Size: int(info.Placement.Size)},
	}
	err := d.eachComputeProfile(gi, func(profile *nvml.ComputeInstanceProfileInfo) error {
		found, code := gi.GetComputeInstances(profile)
		if code != nvml.SUCCESS {
			return d.wrap(fmt.Sprintf("list compute instances of GPU instance %d", in.ID), code)
		}
		for _, ci := range found {
			c, err := d.computeInstance(ci)
			if err != nil {
				return err
			}
			in.Compute = append(in.Compute, c)
		}
		return nil
	})
	slices.SortFunc(in.Compute, func(a, b gpu.ComputeInstance) int { return a.ID - b.ID })
	return in, err
}

func (d *Driver) eachComputeProfile(gi nvml.GpuInstance, f func(*nvml.ComputeInstanceProfileInfo) error) error {
	for number := 0; ; number++ {
		info, code := gi.GetComputeInstanceProfileInfo(number, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		switch code {
		case nvml.SUCCESS:
			if err := f(&info); err != nil {
				return err
			}
		case nvml.ERROR_NOT_SUPPORTED:
			// This GPU instance does not have it.
		case nvml.ERROR_INVALID_ARGUMENT:
			return nil
		default:
			return d.wrap(fmt.Sprintf("read compute instance profile %d", number), code)
		}
	}
}

func (d *Driver) computeInstance(ci nvml.ComputeInstance) (gpu.ComputeInstance, error) {
	info, code := ci.GetInfo()
	if code != nvml.SUCCESS {
		return gpu.ComputeInstance{}, d.wrap("read a compute instance", code)
	}
	c := gpu.ComputeInstance{ID: int(info.Id), Profile: int(info.ProfileId)}
	name, code := info.Device.GetUUID()
	if code != nvml.SUCCESS {
		return c, d.wrap(fmt.Sprintf("read the UUID of compute instance %d", c.ID), code)
	}
	var err error
	c.UUID, err = gpu.ParseUUID(name)
	return c, err
}

// CreateGPUInstance implements gpu.MIG.
func (d *Driver) CreateGPUInstance(_ context.Context, device gpu.UUID, profile int, at gpu.Placement) (gpu.GPUInstance, error) {
	handle, release, err := d.cut(device)
	if err != nil {
		return gpu.GPUInstance{}, err
	}
	defer release()
	var made nvml.GpuInstance
	err = d.eachProfile(handle, func(number int, info *nvml.GpuInstanceProfileInfo) error {
		if int(info.Id) != profile || made != nil {
			return nil
		}
		var code nvml.Return
		place := nvml.GpuInstancePlacement{Start: uint32(at.Start), Size: uint32(at.Size)} //nolint:gosec // NVML refuses what is out of bounds
		made, code = handle.CreateGpuInstanceWithPlacement(info, &place)
		return d.wrap(fmt.Sprintf("create GPU instance %s at %s on %s", d.profileName(handle, number, info), at, device.GPUString()), code)
	})
	if err != nil {
		return gpu.GPUInstance{}, err
	}
	if made == nil {
		return gpu.GPUInstance{}, errdefs.Errorf(errdefs.Invalid, "%s has no MIG profile %d", device.GPUString(), profile)
	}
	return d.instance(made)
}

// find finds a GPU instance by its number.
func (d *Driver) find(handle nvml.Device, device gpu.UUID, id int) (nvml.GpuInstance, error) {
	gi, code := handle.GetGpuInstanceById(id)
	return gi, d.wrap(fmt.Sprintf("find GPU instance %d on %s", id, device.GPUString()), code)
}

// DestroyGPUInstance implements gpu.MIG.
func (d *Driver) DestroyGPUInstance(_ context.Context, device gpu.UUID, id int) error {
	handle, release, err := d.cut(device)
	if err != nil {
		return err
	}
	defer release()
	gi, err := d.find(handle, device, id)
	if err != nil {
		return err
	}
	return d.wrap(fmt.Sprintf("destroy GPU instance %d on %s", id, device.GPUString()), gi.Destroy())
}

// CreateComputeInstance implements gpu.MIG.
func (d *Driver) CreateComputeInstance(_ context.Context, device gpu.UUID, instance int) (gpu.ComputeInstance, error) {
	handle, release, err := d.cut(device)
	if err != nil {
		return gpu.ComputeInstance{}, err
	}
	defer release()
	gi, err := d.find(handle, device, instance)
	if err != nil {
		return gpu.ComputeInstance{}, err
	}
	var whole *nvml.ComputeInstanceProfileInfo
	if err := d.eachComputeProfile(gi, func(info *nvml.ComputeInstanceProfileInfo) error {
		if whole == nil || info.SliceCount > whole.SliceCount {
			whole = info
		}
		return nil
	}); err != nil {
		return gpu.ComputeInstance{}, err
	}
	if whole == nil {
		return gpu.ComputeInstance{}, errdefs.Errorf(errdefs.Unsupported, "GPU instance %d has no compute instance profiles", instance)
	}
	ci, code := gi.CreateComputeInstance(whole)
	if code != nvml.SUCCESS {
		return gpu.ComputeInstance{}, d.wrap(fmt.Sprintf("create a compute instance on GPU instance %d of %s", instance, device.GPUString()), code)
	}
	return d.computeInstance(ci)
}

// DestroyComputeInstance implements gpu.MIG.
func (d *Driver) DestroyComputeInstance(_ context.Context, device gpu.UUID, instance, id int) error {
	handle, release, err := d.cut(device)
	if err != nil {
		return err
	}
	defer release()
	gi, err := d.find(handle, device, instance)
	if err != nil {
		return err
	}
	ci, code := gi.GetComputeInstanceById(id)
	if code != nvml.SUCCESS {
		return d.wrap(fmt.Sprintf("find compute instance %d of GPU instance %d", id, instance), code)
	}
	return d.wrap(fmt.Sprintf("destroy compute instance %d of GPU instance %d on %s", id, instance, device.GPUString()), ci.Destroy())
}
