# SPDX-License-Identifier: Apache-2.0
"""One measured run of a server: natively or as a group; and how medians of such runs are told.

Servers are those of the matrix (tests/e2e/_matrix.py), or look like them.
"""
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
import quiet  # noqa: E402
import usage  # noqa: E402
from place import Native  # noqa: E402

LEAST = 64   # requests of a load
# Label: (replicas, options of crane-run); replicas 0 is the server without Crane.
CONFIGURATIONS = {
    "native": (0, []),
    "n=1": (1, []),
    "n=3": (3, []),
    "n=3 classic": (3, ["--admission", "classic"]),
}


def warm_requests(requests):
    """Of the load before the measured one: a tenth, but enough that every client of every server
    asks something."""
    return max(requests // 10, min(requests, LEAST))


class RawLog:
    """Every measured run as a line of JSON with what it was measured on; earlier lines stay."""

    def __init__(self, path, about):
        self.path = path
        self.about = {key: about[key] for key in ("time", "commit", "kernel", "processor",
                                                  "processors")}

    def write(self, run):
        with open(self.path, "a", encoding="utf8") as log:
            log.write(json.dumps({**self.about, **run}) + "\n")


@contextlib.contextmanager
def as_it_was(directory):
    """What the server writes there is undone: natively it has no layer of its own."""
    kept = f"{directory}.kept"
    subprocess.run(["cp", "-a", "--reflink=auto", str(directory), kept], check=True)
    try:
        yield
    finally:
        shutil.rmtree(directory)
        os.rename(kept, directory)


@contextlib.contextmanager
def started(place, server, requests, replicas, options=()):
    """The server, natively (0 replicas) or as a group, after its first load."""
    if replicas == 0:
        running = Native(server.native, server.port, server.environment, server.native_address())
    else:
        running = h.Group(place, server.command, replicas=replicas, port=server.port,
                          options=[*server.options, "--checkpoint-every", "0", *options])
    with as_it_was(server.work) if replicas == 0 else contextlib.nullcontext(), running:
        h.wait_until(server.ready, 60, f"{server.name} answers")
        server.load(warm_requests(requests))
        yield running


def one_run(place, server, label, requests):
    """A dictionary of what one start of one configuration gave."""
    replicas, options = CONFIGURATIONS[label]
    with started(place, server, requests, replicas, options) as running:
        entries_before = entries_of(running)
        watch, begin = usage.Watch(running.processes()), time.monotonic()
        results = server.load(requests)
        took = time.monotonic() - begin
        used, report = watch.report(running.processes())
        entries = {k: v - entries_before.get(k, 0) for k, v in entries_of(running).items()}
    served = server.requests_made(requests, results)
    return {"server": server.name, "configuration": label, "seconds": took,
            "results": [dict(zip(("what", "rate", "p50_ms", "p99_ms"), r)) for r in results],
            "cpu_us_per_request": used * 1e6 / served,
            "cpu_us_per_request_replica": used * 1e6 / served / max(replicas, 1),
            "entries": entries, "quiet": report.as_json()}


def entries_of(running):
    """Counts of committed entries by type, as the leader's node tells them."""
    if not isinstance(running, h.Group):
        return {}
    status = running.status(running.leader()) or {}
    return {**status.get("entries", {}), "total": status.get("entries_total", 0)}


def spread(values, form="{:.0f}"):
    if not values:
        return "-"
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(statistics.median(values))} ({low} .. {high})"


def median_of(runs, label, what, key):
    found = [r[key] for run in runs if run["configuration"] == label for r in run["results"]
             if r["what"] == what]
    return found


def bubble_share(runs, label):
    shares = []
    for run in runs:
        entries = {k.lower(): v for k, v in run["entries"].items()}
        if run["configuration"] == label and entries.get("total"):
            shares.append(100 * entries.get("bubble", 0) / entries["total"])
    return shares


def tried(place, server, label, requests, failed=None):
    """one_run(), once more if it fails; every failure is shown, none is measured. `failed` gets
    {label: [reason of the second one]}."""
    for _ in range(2):
        try:
            return one_run(place, server, label, requests)
        except (h.Failure, h.CannotRun, OSError, subprocess.SubprocessError) as failure:
            reason = str(failure)
            print(f"left out: {server.name}, {label}: {reason[:1500]}")
    if failed is not None:
        failed.setdefault(label, []).append(reason)
    return None


def repeated(place, server, labels, requests, repeats, log=None, failed=None):
    """Runs of all labels that could be made, one of each in every repeat: natively and with
    Crane in turn. `log` is a RawLog; `failed` gets {label: [reason]} of those that could not."""
    runs = []
    for repeat in range(repeats):
        for label in labels:
            run = tried(place, server, label, requests, failed)
            if not run:
                continue
            runs.append({**run, "repeat": repeat})
            if log:
                log.write(runs[-1])
            print(f"  . {server.name}, {label}: " + ", ".join(
                f"{r['what']} {r['rate']:.{1 if r['rate'] < 100 else 0}f}/s"
                for r in run["results"])
                + f"; the machine: {quiet.Report(**run['quiet']).text()}", file=sys.stderr)
    return runs
