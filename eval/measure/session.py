# SPDX-License-Identifier: Apache-2.0
"""One run of an experiment: its options, the place where it works, its rows and its exit status.

A row is a dictionary. Its `key` is a list that names it among all rows and ends with the number of
its repeat; `quiet`, if it has one, is the machine's report while it was measured. Every row is on
disk as soon as it is measured. With --keep the rows of earlier runs stay; a new repeat replaces all
earlier ones of the same point.
"""
import json
import os
import pathlib
import platform
import subprocess
import time

import _harness as h
import quiet

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAUSES = (h.CannotRun, h.Failure, OSError, subprocess.SubprocessError)
# Options of all experiments, {name: (default, help)}; a default of False is a switch.
OPTIONS = {
    "out": (str(ROOT / "out/release"), "where the programs are, and where bench/ is written"),
    "keep": (False, "rows of earlier runs that are not measured now stay in the table"),
    "anyway": (False, "also measure on a busy machine; rows that were are marked"),
    "wait": (120, "seconds to wait for a quiet machine before the start (default 120)")}
# Options that many experiments declare.
ONLY = ("", "a regular expression: only what its name matches")
QUICK = (False, "a small load")


def repeats(count):
    return (count, f"repeats, all settings interleaved in each (default {count})")


def add_options(parser, declared):
    for name, (default, text) in declared.items():
        how = ({"action": "store_true"} if default is False else
               {"nargs": "*", "type": type(default[0])} if isinstance(default, list) else
               {"type": type(default)})
        parser.add_argument("--" + name.replace("_", "-"), default=default, help=text, **how)


class Place:
    """What Group and its kind need to know of a scenario."""

    full = False

    # Names are short: paths of sockets below `work` may have 107 bytes.
    def __init__(self, out, work, name="eval"):
        self.name, self.out, self.work, self.numbers = name, out, work, 0

    def next_number(self):
        self.numbers += 1
        return self.numbers

    def folder(self, name):
        """A new directory that every user may enter."""
        path = self.work / name
        path.mkdir()
        path.chmod(0o755)
        return path


class Rows:
    """The rows of a file: those of this run and, with --keep, of earlier ones."""

    def __init__(self, file, keep, about=None):
        self.file, self.about = file, about or machine()
        self.earlier = earlier_rows(file, keep)
        self.new = []

    @property
    def rows(self):
        return merged(self.earlier, self.new)

    def add(self, row):
        """Kept at once: a run that is broken off leaves what it measured."""
        self.new.append({**row, "commit": self.about["commit"]})
        self.save()

    def save(self):
        self.file.write_text(json.dumps({"machine": self.about, "rows": self.rows}, indent=1))


class Session(Rows):
    """The argument of an experiment's measure()."""

    def __init__(self, name, options, work):
        self.name, self.options = name, options
        self.out = pathlib.Path(options.out).resolve()
        self.results = self.out / "bench"
        self.results.mkdir(parents=True, exist_ok=True)
        super().__init__(self.results / f"{name}.json", options.keep)
        self.place, self.work = Place(self.out, work), work
        self.left_out = {}   # {what could not be measured: reason}
        self.start = quiet.Report(True, (), {})

    def look_at_machine(self, wanted):
        """False: the machine is busy, and nothing may be measured."""
        patient = wanted != "noted" and not self.options.anyway
        self.start = quiet.wait(self.options.wait if patient else 0)
        self.about["quiet"] = self.start.as_json()
        print(f"before the start the machine is {self.start.text()}", flush=True)
        if wanted == "required" and patient and not self.start.quiet:
            print(f"nothing is measured: the machine was not quiet for {self.options.wait} s; "
                  "--anyway measures, and marks the rows")
            return False
        return True

    def rounds(self, *axes):
        """Yields (repeat, a value of each axis): every second repeat takes the last axis backwards,
        so that no setting is always the first."""
        def pairs(left, backwards):
            if not left:
                yield ()
                return
            values = list(left[0])
            for value in reversed(values) if backwards and len(left) == 1 else values:
                yield from ((value, *rest) for rest in pairs(left[1:], backwards))
        for repeat in range(self.options.repeats):
            yield from ((repeat, *values) for values in pairs(axes, repeat % 2 == 1))

    def attempt(self, name, make):
        """Returns the result of make(), or None after two failures, which it notes."""
        found, reason = tried(make, CAUSES, name)
        if found is None:
            self.left_out[name] = reason
        return found

    def path(self, ending):
        return self.results / f"{self.name}{ending}"


def point_of(row):
    return tuple(row["key"][:-1])


def merged(earlier, new):
    """No repeat of an earlier run stands beside a new one of the same point."""
    points = {point_of(row) for row in new}
    return [row for row in earlier if point_of(row) not in points] + new


def earlier_rows(file, keep):
    """Returns the rows that earlier runs left in a file, if `keep`."""
    return json.loads(file.read_text())["rows"] if keep and file.exists() else []


def tried(make, causes, name):
    """Calls make(), and once more if it fails. Returns (its result, "") or (None, the second
    reason). Every failure is shown, none is measured."""
    for _ in range(2):
        try:
            return make(), ""
        except causes as cause:
            reason = str(cause)
            print(f"left out: {name}: {reason[:600]}")
    return None, reason[:200]


def status_of(rows, left_out, anyway):
    """The exit status: 1 something is missing, 75 a row was measured on a busy machine."""
    if not rows or left_out:
        return 1
    busy = any(not row["quiet"]["quiet"] for row in rows if "quiet" in row)
    return quiet.EXIT_NOT_QUIET if busy and not anyway else 0


class RawLog:
    """Every measured run as a line of JSON with what it was measured on; earlier lines stay."""

    def __init__(self, path, about):
        self.path = path
        self.about = {key: about[key] for key in ("time", "commit", "kernel", "processor",
                                                  "processors")}

    def write(self, run):
        with open(self.path, "a", encoding="utf8") as log:
            log.write(json.dumps({**self.about, **run}) + "\n")


def run_text(name, rates, report):
    """A line about one measured run: {what: rate}, and how quiet the machine was."""
    text = ", ".join(f"{what} {rate:.{1 if rate < 100 else 0}f}/s" for what, rate in rates)
    return f"  . {name}: {text}; the machine: {quiet.Report(**report).text()}"


def commit():
    """Returns the commit of the sources, with a mark if they were changed."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], text=True, check=False,
                          cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() or "unknown"


def machine():
    """Describes the machine on which the figures are measured."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines
                     if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return {"processor": model, "processors": os.cpu_count(), "memory_mib": memory,
            "kernel": platform.release(), "load_at_start": os.getloadavg()[0],
            "commit": commit(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def machine_text(about):
    return (f"{about['processor']}, {about['processors']} processors, {about['memory_mib']} MiB, "
            f"Linux {about['kernel']}; clients, replicas and load share them")
