"""The steps, in order. Each takes the machine, the arguments and the seconds left, and returns what it saw."""

import json
import os
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import node
from report import Failure, Skip

# A step that would begin with less than this is skipped.
LEAST_SECONDS = 5
HERE = os.path.dirname(os.path.abspath(__file__))


def machine(m, _args, _left):
    """What this machine is. Nothing here can fail; what is not known is absent."""
    facts = {
        "system": "%s %s" % (platform.system(), platform.release()),
        "architecture": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": first(r"model name\s*:\s*(.+)", read("/proc/cpuinfo")),
        "memory": first(r"MemTotal:\s*(.+)", read("/proc/meminfo")),
        "driver": first(r"(NVRM version:.+)", read("/proc/driver/nvidia/version")),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
    }
    facts = {key: value for key, value in facts.items() if value not in ("", None)}
    facts["settings"] = settings(m)
    return facts


SETTINGS = (
    "index,name,uuid,driver_version,persistence_mode,compute_mode,mig.mode.current,power.limit,"
    "clocks.max.sm,ecc.mode.current"
)


def settings(m):
    """The device's settings as the vendor's tool tells them, to be compared at the end."""
    if m.gpu == "soft" or not shutil.which("nvidia-smi"):
        return []
    code, out, _ = node.run(
        ["nvidia-smi", "--query-gpu=" + SETTINGS, "--format=csv,noheader"], dict(os.environ), 20
    )
    if code != 0:
        return []
    names = SETTINGS.split(",")
    return [dict(zip(names, [v.strip() for v in line.split(",")])) for line in out.splitlines() if line.strip()]


def start(m, _args, _left):
    before = time.monotonic()
    status = m.start()
    status["ready_ms"] = round(1000 * (time.monotonic() - before))
    m.settings_before = settings(m)
    return status


def doctor(m, _args, left):
    code, out, err = m.heddle("doctor", "--json", timeout=min(left, 30))
    try:
        seen = json.loads(out)
    except ValueError:
        raise Failure("doctor: exit %d, no JSON: %s" % (code, node.last_line(err)))
    if code != 0:
        raise Failure("doctor: exit %d" % code, seen)
    return seen


def inventory(m, _args, left):
    code, out, err = m.heddle("gpus", "--json", timeout=min(left, 20))
    if code != 0:
        raise Failure("gpus: exit %d: %s" % (code, node.last_line(err)))
    seen = json.loads(out)
    devices = seen if isinstance(seen, list) else seen.get("devices", [])
    if not devices:
        raise Failure("gpus: no device", seen)
    return {"devices": devices}


def names(m, _args, left):
    """Asks for every name through the interposer, and counts the answers that are not its own exports."""
    code, out, err = m.heddle(
        "run", "--name", "names", "--", sys.executable, "-B", os.path.join(HERE, "names_client.py"),
        os.path.join(m.top, "interpose", "symbols.txt"), timeout=min(left, 60),
    )
    if code != 0:
        raise Failure("names: exit %d: %s" % (code, node.last_line(err)))
    seen = json.loads(out)
    if seen["answered"] == 0:
        raise Failure("the driver answered no name at all", seen)
    return seen


def launch_cost(m, _args, left):
    """Three kinds of caller in turns, so that a clock that drifts hits all of them."""
    probe = m.tool("heddle-launch-cost")
    folders = [os.path.dirname(m.interposer()), m.environment().get("LD_LIBRARY_PATH", "")]
    through = {"LD_LIBRARY_PATH": ":".join(folder for folder in folders if folder)}
    rounds = "60"
    kinds = {
        "bare": [probe, rounds],
        "trampoline": [probe, rounds],
        "attached": [m.tool("heddle"), "run", "--require", "--name", "launch-cost", "--", probe, rounds],
    }
    costs = {kind: [] for kind in kinds}
    for _ in range(5):
        for kind, command in kinds.items():
            env = m.environment()
            if kind == "trampoline":
                env.update(through, HEDDLE_DISABLE="1")
            code, out, err = node.run(command, env, min(left, 30))
            if code != 0:
                raise Failure("%s: exit %d: %s" % (kind, code, node.last_line(err)), costs)
            costs[kind].append(json.loads(out))
    rows = {
        kind: {
            "min_ns": min(run["min_ns"] for run in runs),
            "median_ns": statistics.median(run["median_ns"] for run in runs),
        }
        for kind, runs in costs.items()
    }
    return {
        "ns_per_launch": rows,
        "attached_minus_bare_median_ns": round(rows["attached"]["median_ns"] - rows["bare"]["median_ns"], 1),
        "attached_minus_bare_min_ns": round(rows["attached"]["min_ns"] - rows["bare"]["min_ns"], 1),
    }


def play_demo(m, left):
    code, out, err = m.heddle("demo", "--gpu", m.gpu, "--json", timeout=min(left, 150))
    try:
        return code, json.loads(out), node.last_line(err)
    except ValueError:
        raise Failure("demo: exit %d, no JSON: %s" % (code, node.last_line(err)))


def demo(m, _args, left):
    """
    The product's own promise, with the product's own words and exit code. The software GPU plays device time on
    this machine's processors, so that a neighbour's burst of work can break it there: one more try, and both are
    reported. A real device gets none.
    """
    before = time.monotonic()
    code, seen, said = play_demo(m, left)
    took = time.monotonic() - before
    if code != 0 and m.gpu == "soft" and left - took > took + LEAST_SECONDS:
        first = {"said": said, "result": seen}
        code, seen, said = play_demo(m, left - took)
        seen["earlier_try"] = first
    if code != 0:
        raise Failure("demo: exit %d: %s" % (code, said), seen)
    return seen


def torch(m, _args, left):
    if m.gpu == "soft":
        raise Skip("the software GPU has no kernels of PyTorch's")
    python = shutil.which("python3") or sys.executable
    code, _, _ = node.run([python, "-c", "import torch; assert torch.cuda.is_available()"], dict(os.environ), 60)
    if code != 0:
        raise Skip("python3 has no torch with CUDA here")
    code, out, err = m.heddle(
        "run", "--require", "--priority", "high", "--name", "torch", "--", python, "-B",
        os.path.join(HERE, "torch_client.py"), timeout=min(left, 90),
    )
    if code != 0:
        raise Failure("torch: exit %d: %s" % (code, node.last_line(err)))
    return json.loads(node.last_line(out))


def workload(m, name):
    return os.path.join(m.top, "tests", "play", "workloads", name)


def kills(m, args, left):
    """Kills clients at random points, and looks whether heddled lets go of them and whether a neighbour notices."""
    count, seed = args.kills, random.randrange(1 << 32)
    dice = random.Random(seed)
    end = time.monotonic() + left - 15
    # It plays until it is asked to end, then checks its results and reports.
    neighbour = player(m, "neighbour", "high", "small-inference.csv",
                       ["--mode", "infer", "--arrivals", "poisson:50", "--duration", "600", "--json"])
    vanished, killed, late = [], 0, []
    try:
        wait_for(lambda: any(c.get("name") == "neighbour" for c in m.clients()), 20, "neighbour does not attach")
        while killed < count and time.monotonic() < end:
            victim = player(m, "victim", "low", "small-training.csv", ["--mode", "train", "--duration", "60"])
            try:
                # Half of them once they run, half at any moment of their start.
                if killed % 2 == 0:
                    wait_for(lambda: any(c.get("pid") == victim.pid for c in m.clients()), 20,
                             "victim %d does not attach" % killed)
                time.sleep(dice.uniform(0, 0.15))
            finally:
                victim.send_signal(signal.SIGKILL)
                begin = time.monotonic()
                victim.communicate()
            wait_for(lambda: all(c.get("pid") != victim.pid for c in m.clients()), 5,
                     "heddled still lists pid %d, killed 5 s ago (seed %d)" % (victim.pid, seed))
            took = 1000 * (time.monotonic() - begin)
            vanished.append(took)
            if took > 100:
                late.append(round(took))
            killed += 1
        if neighbour.poll() is not None:
            raise Failure("the neighbour ended with %d while others were killed" % neighbour.returncode)
    finally:
        code, said = end_player(neighbour)
    data = {
        "killed": killed,
        "seed": seed,
        "gone_ms_p50": round(statistics.median(vanished), 2) if vanished else None,
        "gone_ms_max": round(max(vanished), 2) if vanished else None,
        "later_than_100_ms": late,
        "neighbour_exit": code,
        "neighbour": json.loads(said) if code == 0 else node.last_line(said),
    }
    if code != 0:
        raise Failure("the neighbour ended with %d" % code, data)
    if killed < count:
        raise Failure("only %d of %d clients were killed in the time left" % (killed, count), data)
    # The neighbour ended a moment ago: as for the others, heddled hears of it after we do.
    try:
        wait_for(lambda: not m.clients(), 5, "clients are listed 5 s after all have ended")
    except Failure as failure:
        raise Failure(str(failure), {**data, "clients": m.clients()}) from failure
    return data


def player(m, name, priority, table, more):
    return subprocess.Popen(
        [m.tool("heddle"), "run", "--require", "--priority", priority, "--name", name, "--", m.tool("heddle-play"),
         "--table", workload(m, table), *more],
        env=m.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )


def end_player(process):
    """Asks a player to end, makes sure that it does, and returns its exit code and what it printed."""
    process.send_signal(signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    return process.returncode, said


def wait_for(condition, seconds, complaint):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(complaint)
        time.sleep(0.001)


def unchanged(m, _args, _left):
    before, after = getattr(m, "settings_before", []), settings(m)
    if not before and not after:
        raise Skip("no nvidia-smi to compare settings with")
    if before != after:
        raise Failure("settings of the device changed", {"before": before, "after": after})
    return {"settings": after}


def first(pattern, text):
    found = re.search(pattern, text)
    return found.group(1).strip() if found else ""


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


STEPS = {
    "machine": machine,
    "start": start,
    "doctor": doctor,
    "inventory": inventory,
    "names": names,
    "launch cost": launch_cost,
    "kills": kills,
    "torch": torch,
    "demo": demo,
    "settings": unchanged,
}
ORDER = tuple(STEPS)
