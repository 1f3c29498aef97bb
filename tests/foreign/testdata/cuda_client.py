"""A CUDA client of somebody else's making: cuda-bindings on whatever libcuda.so.1 the loader finds.

Prints one JSON object with what it saw; an unexpected answer of the driver ends it with an error. With
--hold it keeps its context and memory until its standard input closes.
"""

import ctypes
import json
import sys

from cuda.bindings import driver

KERNEL = sys.argv[1]  # path of the PTX
COUNT = 4096
HELD_BYTES = 64 << 20


def check(answer):
    """Returns the values of a driver call, or fails with the name of its error."""
    code, *values = answer
    if code != driver.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"driver answered {code.name}")
    return values[0] if len(values) == 1 else values


def attribute(device, name):
    return check(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, "CU_DEVICE_ATTRIBUTE_" + name), device))


def round_trip(stream):
    """Copies bytes to the device, on the device, and back, in order on one stream."""
    sent = bytes(i * 7 % 251 for i in range(COUNT))
    back = bytearray(COUNT)
    buffer = (ctypes.c_char * COUNT).from_buffer(back)
    first = check(driver.cuMemAlloc(COUNT))
    second = check(driver.cuMemAlloc(COUNT))
    check(driver.cuMemcpyHtoDAsync(first, sent, COUNT, stream))
    check(driver.cuMemcpyDtoDAsync(second, first, COUNT, stream))
    check(driver.cuMemcpyDtoHAsync(ctypes.addressof(buffer), second, COUNT, stream))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuMemFree(first))
    check(driver.cuMemFree(second))
    return bytes(back) == sent


def saxpy(stream):
    """Launches y = a x + y from the given PTX and compares every element."""
    with open(KERNEL, "rb") as file:
        module = check(driver.cuModuleLoadData(file.read() + b"\0"))
    function = check(driver.cuModuleGetFunction(module, b"saxpy"))

    host = (ctypes.c_float * COUNT)
    x, y, result = host(*range(COUNT)), host(*([0.5] * COUNT)), host()
    size = ctypes.sizeof(x)
    dx, dy = check(driver.cuMemAlloc(size)), check(driver.cuMemAlloc(size))
    check(driver.cuMemcpyHtoD(dx, ctypes.addressof(x), size))
    check(driver.cuMemcpyHtoD(dy, ctypes.addressof(y), size))

    started, ended = check(driver.cuEventCreate(0)), check(driver.cuEventCreate(0))
    check(driver.cuEventRecord(started, stream))
    arguments = (
        (int(dy), int(dx), 2.0, COUNT),
        (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float, ctypes.c_uint64),
    )
    check(driver.cuLaunchKernel(function, (COUNT + 255) // 256, 1, 1, 256, 1, 1, 0, stream, arguments, 0))
    check(driver.cuEventRecord(ended, stream))
    check(driver.cuEventSynchronize(ended))
    elapsed = check(driver.cuEventElapsedTime(started, ended))

    check(driver.cuMemcpyDtoH(ctypes.addressof(result), dy, size))
    for event in (started, ended):
        check(driver.cuEventDestroy(event))
    check(driver.cuMemFree(dx))
    check(driver.cuMemFree(dy))
    check(driver.cuModuleUnload(module))
    wrong = sum(result[i] != 2.0 * i + 0.5 for i in range(COUNT))
    return wrong, elapsed


def graph_launches(stream):
    """Captures one launch of y = x + y, replays it three times, and returns what every element of y is."""
    with open(KERNEL, "rb") as file:
        module = check(driver.cuModuleLoadData(file.read() + b"\0"))
    function = check(driver.cuModuleGetFunction(module, b"saxpy"))
    size = COUNT * ctypes.sizeof(ctypes.c_float)
    x, y = check(driver.cuMemAlloc(size)), check(driver.cuMemAlloc(size))
    one = 0x3F800000  # 1.0 as bits
    check(driver.cuMemsetD32(x, one, COUNT))
    check(driver.cuMemsetD32(y, 0, COUNT))

    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    arguments = ((int(y), int(x), 1.0, COUNT), (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float, ctypes.c_uint64))
    check(driver.cuLaunchKernel(function, COUNT // 256, 1, 1, 256, 1, 1, 0, stream, arguments, 0))
    graph = check(driver.cuStreamEndCapture(stream))
    executable = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(3):
        check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))

    result = (ctypes.c_float * COUNT)()
    check(driver.cuMemcpyDtoH(ctypes.addressof(result), y, size))
    check(driver.cuGraphExecDestroy(executable))
    check(driver.cuGraphDestroy(graph))
    check(driver.cuMemFree(x))
    check(driver.cuMemFree(y))
    check(driver.cuModuleUnload(module))
    counts = set(result)
    return counts.pop() if len(counts) == 1 else -1


def missing_entries():
    """Entries that this client knows and the driver does not have."""
    from cuda.bindings._internal import driver as internal

    return sorted(name.lstrip("_") for name, address in internal._inspect_function_pointers().items() if not address)


def mapped_libraries():
    """The files named libcuda that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line}
    return sorted(paths)


def main():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    free, total = check(driver.cuMemGetInfo())

    wrong, elapsed_ms = saxpy(stream)
    report = {
        "driver_version": check(driver.cuDriverGetVersion()),
        "devices": check(driver.cuDeviceGetCount()),
        "name": check(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode(),
        "capability": [attribute(device, "COMPUTE_CAPABILITY_MAJOR"), attribute(device, "COMPUTE_CAPABILITY_MINOR")],
        "sms": attribute(device, "MULTIPROCESSOR_COUNT"),
        "total_bytes": total,
        "free_bytes": free,
        "device_bytes": check(driver.cuDeviceTotalMem(device)),
        "round_trip": round_trip(stream),
        "wrong_elements": wrong,
        "elapsed_ms": elapsed_ms,
        "graph_launches": graph_launches(stream),
        "missing": missing_entries(),
        "libraries": mapped_libraries(),
    }

    if "--hold" in sys.argv:
        held = check(driver.cuMemAlloc(HELD_BYTES))
        report["held_bytes"] = HELD_BYTES
        print(json.dumps(report), flush=True)
        sys.stdin.read()
        check(driver.cuMemFree(held))
    else:
        print(json.dumps(report))
    check(driver.cuStreamDestroy(stream))
    check(driver.cuDevicePrimaryCtxRelease(device))


main()
