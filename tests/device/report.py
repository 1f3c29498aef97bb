"""Collects what the steps found, and writes it as JSON for programs and Markdown for people."""

import json
import os
import time
import traceback

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Failure(Exception):
    """A step that did not hold. data is what was seen until then."""

    def __init__(self, text, data=None):
        super().__init__(text)
        self.data = data


class Skip(Exception):
    """A step that cannot be tried here, with the reason."""


class Report:
    def __init__(self, gpu, folder):
        self.gpu = gpu
        self.folder = folder
        self.started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.clock = time.monotonic()
        self.steps = []

    def run(self, name, step):
        """Runs one step. Whatever it raises is the step's result: the other steps are still worth their time."""
        start = time.monotonic()
        verdict, reason, data = PASSED, "", None
        try:
            data = step()
        except Skip as err:
            verdict, reason = SKIPPED, str(err)
        except Failure as err:
            verdict, reason, data = FAILED, str(err), err.data
        except Exception as err:  # a fault of this script, or a program that answers nonsense
            verdict, reason = FAILED, "%s: %s" % (type(err).__name__, err)
            data = {"traceback": traceback.format_exc().splitlines()}
        self.add(name, verdict, reason, data, time.monotonic() - start)

    def add(self, name, verdict, reason="", data=None, seconds=0.0):
        self.steps.append(
            {"name": name, "verdict": verdict, "reason": reason, "seconds": round(seconds, 1), "data": data}
        )
        # The words that the tests' report collects: ok and skip.
        word = {PASSED: "ok", FAILED: "FAIL", SKIPPED: "skip"}[verdict]
        print("%-4s %s%s" % (word, name, ": " + reason if reason else " (%.1f s)" % seconds), flush=True)

    def passed(self):
        return all(step["verdict"] != FAILED for step in self.steps)

    def write(self):
        os.makedirs(self.folder, exist_ok=True)
        whole = {
            "gpu": self.gpu,
            "started": self.started,
            "seconds": round(time.monotonic() - self.clock, 1),
            "verdict": PASSED if self.passed() else FAILED,
            "steps": self.steps,
        }
        with open(os.path.join(self.folder, "report.json"), "w", encoding="utf-8") as out:
            json.dump(whole, out, indent=2)
            out.write("\n")
        with open(os.path.join(self.folder, "report.md"), "w", encoding="utf-8") as out:
            out.write(markdown(whole))
        print("report: %s/report.md and report.json" % self.folder)


def markdown(whole):
    lines = [
        "# Heddle on a %s GPU: %s" % ("software" if whole["gpu"] == "soft" else "real", whole["verdict"]),
        "",
        "Started %s, took %.0f s." % (whole["started"], whole["seconds"]),
        "",
        "| step | verdict | seconds | |",
        "|---|---|---|---|",
    ]
    for step in whole["steps"]:
        reason = step["reason"].replace("|", "\\|").replace("\n", " ")
        lines.append("| %s | %s | %.1f | %s |" % (step["name"], step["verdict"], step["seconds"], reason))
    for step in whole["steps"]:
        if step["data"]:
            lines += ["", "## " + step["name"], ""] + section(step["data"])
    return "\n".join(lines) + "\n"


def section(data):
    """Flat values as one table, rows of equal shape as another each, the rest as JSON; what is empty is left out."""
    if is_rows(data):
        return table(data)
    data = data if isinstance(data, dict) else {"value": data}
    alike = [key for key, value in data.items() if isinstance(value, dict) and is_row(value)]
    alike = [key for key in alike if sum(data[key].keys() == data[other].keys() for other in alike) > 1]
    flat, lines = [], []
    for key, value in data.items():
        if key in alike or value in ([], {}, None):
            continue
        if is_rows(value):
            lines += ["", "%s:" % key, ""] + table(value)
        elif isinstance(value, dict) and is_rows(list(value.values())):
            lines += ["", "%s:" % key, ""] + table([{"": name, **row} for name, row in value.items()])
        elif isinstance(value, (dict, list)):
            lines += ["", "%s:" % key, "", "```json", json.dumps(value, indent=1), "```"]
        else:
            flat.append((key, value))
    head = ["| | |", "|---|---|"] + ["| %s | %s |" % (key, cell(value)) for key, value in flat] if flat else []
    if alike:
        head += [""] + table([{"": key, **data[key]} for key in alike])
    return head + lines


def is_row(value):
    return bool(value) and not any(isinstance(v, (dict, list)) for v in value.values())


def is_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def table(rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(cell(row.get(key, "")) for key in columns) + " |")
    return lines


def cell(value):
    if isinstance(value, float):
        value = "%.4g" % value
    elif isinstance(value, (dict, list)):
        value = json.dumps(value)
    return str(value).replace("|", "\\|").replace("\n", " ")
