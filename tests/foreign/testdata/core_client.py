"""A client of cuda.core, the higher-level Python library over the driver: stream-ordered memory pools,
pinned memory, events with timing, and a kernel launched with the extended launch call and by a captured graph that owns its arguments.

Prints one JSON object with what it saw.
"""

import ctypes
import json
import sys

from cuda.core import Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

KERNEL = sys.argv[1]  # path of the PTX
COUNT = 4096
GRAPH_LAUNCHES = 3
SIZE = COUNT * ctypes.sizeof(ctypes.c_float)


def floats(buffer):
    """Host memory as an array."""
    return (ctypes.c_float * COUNT).from_address(int(buffer.handle))


def main():
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    with open(KERNEL, "rb") as file:
        kernel = ObjectCode.from_ptx(file.read()).get_kernel("saxpy")

    pinned = LegacyPinnedMemoryResource()
    host_x, host_y = pinned.allocate(SIZE), pinned.allocate(SIZE)
    floats(host_x)[:] = range(COUNT)
    floats(host_y)[:] = [0.5] * COUNT
    x, y = device.allocate(SIZE, stream=stream), device.allocate(SIZE, stream=stream)
    x.copy_from(host_x, stream=stream)
    y.copy_from(host_y, stream=stream)

    config = LaunchConfig(grid=(COUNT + 255) // 256, block=256)
    arguments = (y, x, ctypes.c_float(2.0), ctypes.c_uint64(COUNT))
    started = stream.record(options=EventOptions(timing_enabled=True))
    launch(stream, config, kernel, *arguments)
    ended = stream.record(options=EventOptions(timing_enabled=True))
    ended.sync()

    builder = device.create_graph_builder().begin_building()
    launch(builder, config, kernel, *arguments)
    graph = builder.end_building().complete()
    for _ in range(GRAPH_LAUNCHES):
        graph.launch(stream)

    y.copy_to(host_y, stream=stream)
    stream.sync()
    rounds = 1 + GRAPH_LAUNCHES
    report = {
        "name": device.name,
        "uuid": device.uuid,
        "sms": device.properties.multiprocessor_count,
        "wrong_elements": sum(value != rounds * 2.0 * i + 0.5 for i, value in enumerate(floats(host_y))),
        "elapsed_ms": ended - started,
    }
    x.close(stream)
    y.close(stream)
    stream.sync()
    print(json.dumps(report))


main()
