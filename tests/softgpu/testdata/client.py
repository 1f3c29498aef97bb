"""A CUDA client for the tests of the Go handle: plain ctypes on the libcuda.so.1 that the loader finds.

usage: client.py BYTES LAUNCHES

Allocates BYTES on device 0, launches an empty kernel LAUNCHES times, prints one line with the code of
each step (0 is success), and keeps what it has until its standard input closes.
"""

import ctypes
import sys

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing()
{
    ret;
}
\0"""


def main():
    size, launches = int(sys.argv[1]), int(sys.argv[2])
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer, module, kernel = (ctypes.c_void_p() for _ in range(4))
    codes = [
        cuda.cuInit(0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        cuda.cuCtxSetCurrent(context),
        cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)),
        cuda.cuModuleLoadData(ctypes.byref(module), PTX),
        cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"nothing"),
    ]
    none = ctypes.c_void_p(0)
    codes += [cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, none, none, none) for _ in range(launches)]
    codes.append(cuda.cuCtxSynchronize())
    print(*codes, flush=True)
    sys.stdin.read()


main()
