"""Yield points from Python: wait between two steps while more urgent work wants the GPU.

    from yield_points import yield_point, wanted

    for batch in batches:
        train_step(batch)
        yield_point()

Needs nothing but Python. Where Heddle is not there, yield_point() returns at once and wanted() is
False. See docs/yield-points.md; C programs include <heddle/yield.h>.
"""

import ctypes
import os

_LONG = 2**64 - 1  # nanoseconds: as long as the program's class allows
_known = {}


def _find(name, result, *arguments):
    """The function of the process with this name, or None. One that was found is not looked up again."""
    if name in _known:
        return _known[name]
    # What is loaded for everybody, where a preloaded Heddle is; then the driver's place.
    for library, mode in ((None, ctypes.DEFAULT_MODE), ("libcuda.so.1", os.RTLD_NOLOAD)):
        try:
            function = getattr(ctypes.CDLL(library, mode=mode), name)
        except (OSError, AttributeError):
            continue
        function.restype = result
        function.argtypes = arguments
        _known[name] = function
        return function
    return None


def present():
    """Whether this process runs under Heddle, as far as it is loaded yet."""
    return _find("heddle_yield_v1", ctypes.c_uint64, ctypes.c_uint64) is not None


def yield_point(timeout=None):
    """Waits while a program of a higher class wants the device of the current context, at most for
    timeout seconds. Returns the seconds that it waited. Other threads of the program run on."""
    function = _find("heddle_yield_v1", ctypes.c_uint64, ctypes.c_uint64)
    if function is None:
        return 0.0
    nanoseconds = _LONG if timeout is None else max(0, min(int(timeout * 1e9), _LONG))
    return function(nanoseconds) / 1e9


def wanted():
    """Whether a program of a higher class wants the device now."""
    function = _find("heddle_wanted_v1", ctypes.c_int)
    return function is not None and function() != 0


if __name__ == "__main__":
    print("this process runs under Heddle" if present() else "this process runs without Heddle")
