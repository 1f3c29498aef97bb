// Package nvml is the gpu.Driver over libnvidia-ml.so.1, opened at run time.
// It is the only cgo in heddled.
package nvml

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

// LibraryName is what is opened when no path is given; the loader searches it.
const LibraryName = "libnvidia-ml.so.1"

// Error is an NVML code with the operation that returned it.
type Error struct {
	Operation string
	Code      nvml.Return
	Text      string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (NVML %d)", e.Operation, e.Text, e.Code) }

// Is maps the code to a kind of errdefs.
func (e *Error) Is(target error) bool { return e.kind().Err() == target }

func (e *Error) kind() errdefs.Kind {
	switch e.Code {
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_GPU_IS_LOST:
		return errdefs.NotFound
	case nvml.ERROR_INVALID_ARGUMENT:
		return errdefs.Invalid
	case nvml.ERROR_NO_PERMISSION:
		return errdefs.PermissionDenied
	case nvml.ERROR_IN_USE:
		return errdefs.Busy
	case nvml.ERROR_INSUFFICIENT_RESOURCES:
		return errdefs.Exhausted
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_DEPRECATED:
		return errdefs.Unsupported
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED,
		nvml.ERROR_TIMEOUT, nvml.ERROR_LIB_RM_VERSION_MISMATCH, nvml.ERROR_RESET_REQUIRED:
		return errdefs.Unavailable
	default:
		return errdefs.Unknown
	}
}

// Driver is an initialized NVML.
type Driver struct {
	// NVML is thread-safe by itself; the lock is for Close against the rest.
	mu     sync.RWMutex
	lib    nvml.Interface
	closed bool
}

var _ gpu.Driver = (*Driver)(nil)

// Open opens the library at path, or by its name if path is empty, and
// initializes it.
func Open(path string) (*Driver, error) {
	name := path
	var options []nvml.LibraryOption
	if path == "" {
		name = LibraryName
	} else {
		options = append(options, nvml.WithLibraryPath(path))
	}
	lib := nvml.New(options...)
	switch code := lib.Init(); code {
	case nvml.SUCCESS:
		return &Driver{lib: lib}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errdefs.Errorf(errdefs.Unavailable,
			"open NVML: %s cannot be loaded: is an NVIDIA driver installed? (nvml_library names another path)", name)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, errdefs.Errorf(errdefs.Unavailable,
			"initialize NVML: the nvidia OS kernel module is not loaded: is there a GPU? try nvidia-smi")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return nil, errdefs.Errorf(errdefs.Unavailable,
			"initialize NVML: %s and the loaded nvidia OS kernel module are of different versions: reboot or reload the module", name)
	default:
		return nil, &Error{Operation: "initialize " + name, Code: code, Text: code.String()}
	}
}

// lock keeps the library open for one call; release must follow.
func (d *Driver) lock() (release func(), err error) {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return nil, errdefs.Errorf(errdefs.Unavailable, "NVML is closed")
	}
	return d.mu.RUnlock, nil
}

// Close shuts NVML down; a second call does nothing.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return d.wrap("shut NVML down", d.lib.Shutdown())
}

func (d *Driver) wrap(operation string, code nvml.Return) error {
	if code == nvml.SUCCESS {
		return nil
	}
	text := "error"
	if d.has("nvmlErrorString") {
		text = strings.ToLower(code.Error())
	}
	return &Error{Operation: operation, Code: code, Text: text}
}

// has reports whether the library exports a function. Calling one that it does
// not export would end the process, and old drivers lack new functions.
func (d *Driver) has(symbol string) bool { return d.lib.Extensions().LookupSymbol(symbol) == nil }

// hasOne is has for a function of several versions.
func (d *Driver) hasOne(symbols ...string) bool {
	return slices.ContainsFunc(symbols, d.has)
}

// Versions implements gpu.Driver.
func (d *Driver) Versions(context.Context) (gpu.Versions, error) {
	release, err := d.lock()
	if err != nil {
		return gpu.Versions{}, err
	}
	defer release()
	var v gpu.Versions
	var code nvml.Return
	if v.Driver, code = d.lib.SystemGetDriverVersion(); code != nvml.SUCCESS {
		return v, d.wrap("read driver version", code)
	}
	if v.NVML, code = d.lib.SystemGetNVMLVersion(); code != nvml.SUCCESS {
		return v, d.wrap("read NVML version", code)
	}
	if d.has("nvmlSystemGetCudaDriverVersion") {
		if n, code := d.lib.SystemGetCudaDriverVersion(); code == nvml.SUCCESS {
			v.CUDA = fmt.Sprintf("%d.%d", n/1000, n%1000/10)
		}
	}
	return v, nil
}

// Usage implements gpu.Driver.
func (d *Driver) Usage(_ context.Context, uuid gpu.UUID) (gpu.Usage, error) {
	release, err := d.lock()
	if err != nil {
		return gpu.Usage{}, err
	}
	defer release()
	handle, err := d.handle(uuid)
	if err != nil {
		return gpu.Usage{}, err
	}
	u := gpu.Usage{UtilizationPercent: -1}
	memory, code := handle.GetMemoryInfo()
	if code != nvml.SUCCESS {
		return u, d.wrap("read memory of "+uuid.GPUString(), code)
	}
	u.MemoryUsedBytes = memory.Used
	if rates, code := handle.GetUtilizationRates(); code == nvml.SUCCESS {
		u.UtilizationPercent = int(rates.Gpu)
	}
	u.Processes = d.processes(handle)
	return u, nil
}

func (d *Driver) handle(uuid gpu.UUID) (nvml.Device, error) {
	handle, code := d.lib.DeviceGetHandleByUUID(uuid.GPUString())
	// An unknown UUID is an invalid argument to some drivers.
	if code == nvml.ERROR_INVALID_ARGUMENT {
		code = nvml.ERROR_NOT_FOUND
	}
	return handle, d.wrap("find "+uuid.GPUString(), code)
}

// processes lists who has a context. Where the library cannot tell, nobody is
// listed: the list is for people.
func (d *Driver) processes(handle nvml.Device) []gpu.Process {
	var list []gpu.Process
	add := func(infos []nvml.ProcessInfo, code nvml.Return, mps bool) {
		if code != nvml.SUCCESS {
			return
		}
		for _, info := range infos {
			p := gpu.Process{PID: int(info.Pid), MPS: mps}
			// All ones = not known, as in some containers.
			if info.UsedGpuMemory != ^uint64(0) {
				p.MemoryBytes = info.UsedGpuMemory
			}
			list = append(list, p)
		}
	}
	if d.hasOne("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3") {
		infos, code := handle.GetComputeRunningProcesses()
		add(infos, code, false)
	}
	if d.hasOne("nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v3") {
		infos, code := handle.GetMPSComputeRunningProcesses()
		add(infos, code, true)
	}
	return list
}

// ProcessShares implements gpu.Driver.
func (d *Driver) ProcessShares(_ context.Context, uuid gpu.UUID, since time.Time) ([]gpu.ProcessShare, error) {
	release, err := d.lock()
	if err != nil {
		return nil, err
	}
	defer release()
	handle, err := d.handle(uuid)
	if err != nil {
		return nil, err
	}
	if !d.has("nvmlDeviceGetProcessUtilization") {
		return nil, errdefs.Errorf(errdefs.Unsupported, "process shares of %s: not in this driver", uuid.GPUString())
	}
	stamp := uint64(0)
	if since.After(time.Unix(0, 0)) {
		stamp = uint64(since.UnixMicro()) // after 1970
	}
	samples, code := processUtilization(handle, stamp)
	if code == nvml.ERROR_NOT_FOUND || code == nvml.ERROR_INSUFFICIENT_SIZE {
		return nil, nil // no sample since then, or too many came just now; the next round sees them
	}
	if err := d.wrap("read process shares of "+uuid.GPUString(), code); err != nil {
		return nil, err
	}
	return meanShares(samples), nil
}

// processUtilization keeps a mistake of go-nvml from ending the daemon. It asks for the number of
// samples, makes room, and asks again; if processes came in between, the library answers with an
// error and a number beyond the room, and go-nvml slices by that number all the same.
func processUtilization(handle processUtilizer, since uint64) (samples []nvml.ProcessUtilizationSample, code nvml.Return) {
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case runtime.Error:
			samples, code = nil, nvml.ERROR_INSUFFICIENT_SIZE
		default:
			panic(fault)
		}
	}()
	return handle.GetProcessUtilization(since)
}

// processUtilizer is the one call of a device that needs care.
type processUtilizer interface {
	GetProcessUtilization(since uint64) ([]nvml.ProcessUtilizationSample, nvml.Return)
}

// meanShares averages the samples of each process. The library can leave the
// tail of the list zeroed.
func meanShares(samples []nvml.ProcessUtilizationSample) []gpu.ProcessShare {
	sum, count := map[uint32]float64{}, map[uint32]float64{}
	var order []uint32
	for _, s := range samples {
		if s.Pid == 0 {
			continue
		}
		if count[s.Pid] == 0 {
			order = append(order, s.Pid)
		}
		sum[s.Pid] += float64(min(s.SmUtil, 100)) / 100
		count[s.Pid]++
	}
	shares := make([]gpu.ProcessShare, len(order))
	for i, pid := range order {
		shares[i] = gpu.ProcessShare{PID: int(pid), Share: sum[pid] / count[pid]}
	}
	return shares
}
