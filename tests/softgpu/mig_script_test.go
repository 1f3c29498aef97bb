package softgpu

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Profile ids of boards with seven slices, and a field of go-nvml's.
const (
	profile7g, profile4g, profile3g, profile2g, profile1g = 0, 5, 9, 14, 19

	fieldResetless = 184
)

// A script of calls as a client makes them, and what they answered.
type script struct {
	device nvml.Device
	lines  []string
}

func (s *script) say(what string, ret nvml.Return, more ...any) {
	s.lines = append(s.lines, strings.TrimSpace(fmt.Sprintln(append([]any{what + ":", nvml.ErrorString(ret)}, more...)...)))
}

// partition is what the child process does: one of the tasks below on the first GPU.
func partition(library, task string) ([]string, error) {
	lib := nvml.New(nvml.WithLibraryPath(library))
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("init: %w", ret)
	}
	device, ret := lib.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("device: %w", ret)
	}
	s := &script{device: device}
	switch task {
	case "cycle":
		s.cycle()
	case "tour":
		s.tour(lib)
	case "mode":
		s.mode()
	case "symbol":
		if lib.Extensions().LookupSymbol("nvmlDeviceSetMigMode") != nil {
			s.lines = append(s.lines, "missing")
		}
	}
	if ret := lib.Shutdown(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("shutdown: %w", ret)
	}
	return s.lines, nil
}

func (s *script) mode() {
	values := []nvml.FieldValue{{FieldId: fieldResetless}}
	ret := s.device.GetFieldValues(values)
	s.say("resetless", ret, values[0].Value[0])
	activation, ret := s.device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	s.lines = append(s.lines, fmt.Sprintf("enable: %v, activation %v", ret, activation))
	current, pending, ret := s.device.GetMigMode()
	s.say("mode", ret, current, pending)
}

func (s *script) profile(id int) nvml.GpuInstanceProfileInfo {
	for number := 0; ; number++ {
		info, ret := s.device.GetGpuInstanceProfileInfo(number)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			return nvml.GpuInstanceProfileInfo{}
		}
		if ret == nvml.SUCCESS && int(info.Id) == id {
			return info
		}
	}
}

func (s *script) create(id, start, size int) nvml.GpuInstance {
	info := s.profile(id)
	gi, ret := s.device.CreateGpuInstanceWithPlacement(&info, &nvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(size)})
	s.say(fmt.Sprintf("create %d at %d", id, start), ret)
	return gi
}

// cycle makes and destroys one MIG device, as a partitioner does.
func (s *script) cycle() {
	gi := s.create(profile3g, 4, 4)
	if gi == nil {
		return
	}
	info, ret := gi.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_3_SLICE, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	s.say("compute profile", ret, info.Id, info.MultiprocessorCount)
	ci, ret := gi.CreateComputeInstance(&info)
	s.say("create compute", ret)
	if ret == nvml.SUCCESS {
		s.say("destroy compute", ci.Destroy())
	}
	s.say("destroy", gi.Destroy())
}

// tour looks at everything that one MIG device has to show.
func (s *script) tour(lib nvml.Interface) {
	s.create(profile4g, 4, 4)
	s.create(profile3g, 4, 2)
	gi := s.create(profile3g, 4, 4)
	s.create(profile7g, 0, 8)
	info := s.profile(profile1g)
	room, ret := s.device.GetGpuInstanceRemainingCapacity(&info)
	s.say("room for 1g", ret, room)
	made, ret := gi.GetInfo()
	s.say("instance", ret, made.Id, made.ProfileId, made.Placement)
	profile, ret := gi.GetComputeInstanceProfileInfoV(nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, 0).V3()
	s.say("compute profile", ret, chars(profile.Name[:]), profile.MultiprocessorCount)
	full, _ := gi.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_3_SLICE, 0)
	ci, ret := gi.CreateComputeInstance(&full)
	s.say("create compute", ret)
	cin, ret := ci.GetInfo()
	s.say("compute", ret, cin.Id, cin.ProfileId, cin.Placement)
	uuid, ret := cin.Device.GetUUID()
	s.say("uuid", ret, uuid[:4], len(uuid))
	mig, ret := s.device.GetMigDeviceHandleByIndex(0)
	s.say("mig device", ret)
	is, ret := mig.IsMigDeviceHandle()
	s.say("is", ret, is)
	gid, _ := mig.GetGpuInstanceId()
	cid, ret := mig.GetComputeInstanceId()
	s.say("ids", ret, gid, cid)
	attributes, ret := mig.GetAttributes()
	s.say("attributes", ret, attributes.MultiprocessorCount, attributes.GpuInstanceSliceCount, attributes.MemorySizeMB)
	memory, ret := mig.GetMemoryInfo()
	s.say("memory", ret, memory.Total>>20, memory.Used)
	name, ret := mig.GetName()
	s.say("name", ret, name)
	_, ret = s.device.GetMigDeviceHandleByIndex(1)
	s.say("the next", ret)
	list, ret := s.device.GetGpuInstances(&nvml.GpuInstanceProfileInfo{Id: profile3g, InstanceCount: 2})
	s.say("list", ret, len(list))
	found, ret := gi.GetComputeInstances(&full)
	s.say("list computes", ret, len(found))
	s.say("destroy", gi.Destroy())
	s.say("destroy compute", ci.Destroy())
	s.say("destroy", gi.Destroy())
	s.say("destroy again", gi.Destroy())
	_, ret = s.device.GetGpuInstanceById(1)
	s.say("by id", ret)
	_, ret = lib.DeviceGetHandleByUUID(uuid)
	s.say("by uuid", ret)
}
