"""Runs the steps of the device check in order and writes the report. Standard library only."""

import argparse
import os
import signal
import sys
import time

import node
import report
import steps


def parse(argv):
    parser = argparse.ArgumentParser(prog="tests/device/run", description="Try Heddle on this machine's GPU.")
    parser.add_argument("--out", default=os.path.join("build", "device"), help="folder of the report")
    parser.add_argument("--gpu", choices=("real", "soft"), default="real", help="soft: the software GPU")
    parser.add_argument("--budget", type=float, default=280.0, help="seconds in all; later steps are skipped")
    parser.add_argument("--kills", type=int, default=50, help="how many clients are killed")
    parser.add_argument("--only", default="", help="comma-separated steps: " + ", ".join(steps.ORDER))
    args = parser.parse_args(argv)
    only = [name for name in args.only.split(",") if name]
    unknown = sorted(set(only) - set(steps.ORDER))
    if unknown:
        parser.error("unknown step " + ", ".join(unknown))
    args.only = only or list(steps.ORDER)
    return args


def main(argv):
    args = parse(argv)
    # A timeout of the caller's must not leave a daemon behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = node.Machine(node.root(), args.gpu)
    missing = machine.missing()
    if missing:
        print("skip: " + missing, file=sys.stderr)
        return 77
    result = report.Report(args.gpu, args.out)
    deadline = time.monotonic() + args.budget
    with machine:
        for name in steps.ORDER:
            if name not in args.only:
                continue
            left = deadline - time.monotonic()
            if left < steps.LEAST_SECONDS:
                result.add(name, report.SKIPPED, "no time left of %d s" % args.budget)
                continue
            result.run(name, lambda step=steps.STEPS[name], left=left: step(machine, args, left))
        result.run("left behind", machine.stop)
    result.write()
    return 0 if result.passed() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
