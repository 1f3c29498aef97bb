"""Run under the interposer: asks the driver for every listed name, in several versions and with each flag, and tells
how many answers are the interposer's own exports. The others reach the program unscheduled."""

import ctypes
import json
import sys

VERSIONS = (11000, 11030, 12000, 12080, 13000)
FLAGS = (0, 1, 2)  # default, legacy stream, per-thread default stream


class Where(ctypes.Structure):
    """What dladdr says about an address."""

    _fields_ = [
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p),
    ]


def main(path):
    with open(path, encoding="utf-8") as f:
        words = [line.split() for line in f if line.strip() and not line.startswith("#")]
    names = sorted({w[0] for w in words if w[0].startswith("cu")})
    driver = ctypes.CDLL("libcuda.so.1")
    libc = ctypes.CDLL(None)
    libc.dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(Where)]
    ask = driver.cuGetProcAddress_v2
    ask.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int),
    ]
    result = driver.cuInit(0)
    if result != 0:
        raise SystemExit("cuInit answered %d" % result)
    ours = where(libc, ctypes.cast(ask, ctypes.c_void_p))
    asked = answered = 0
    unnamed = {}
    # The driver is asked for base names; a listed name with a suffix is what some version of one resolves to.
    for name in names:
        for version in VERSIONS:
            for flag in FLAGS:
                address, status = ctypes.c_void_p(), ctypes.c_int()
                asked += 1
                if ask(name.encode(), ctypes.byref(address), version, flag, ctypes.byref(status)) != 0 or not address:
                    continue
                answered += 1
                if where(libc, address) != ours:
                    unnamed.setdefault(name, []).append("%d/%d" % (version, flag))
    json.dump(
        {
            "library": ours, "names": len(names), "asked": asked, "answered": answered,
            "unnamed_answers": sum(len(v) for v in unnamed.values()), "unnamed": unnamed,
        },
        sys.stdout,
    )


def where(libc, address):
    info = Where()
    if libc.dladdr(address, ctypes.byref(info)) == 0 or info.file is None:
        return None
    return info.file.decode(errors="replace")


if __name__ == "__main__":
    main(sys.argv[1])
