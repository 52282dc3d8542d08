# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of every server as a table, as CRANE's table 2.

For each KIND of tests/e2e/server_*.py, three replicas under its load, with clients that stay
connected: --count checkpoints on a follower, each timed in its phases by the follower's node; then
kill -9 of a follower's node, --returns times, until it is back and has caught up. redis and apache2
besides under a client that asks at a fixed rate: its latency in quiet windows, in those of
checkpoints and in those of returns.
"""
import contextlib
import functools
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time

import _harness as h
import checkpoints as taking
import session
import tables
from paced import Http, Paced, Redis, within
from start import all_kinds, prepared_server
from tables import percentile, spread

OPTIONS = {"only": session.ONLY, "count": (20, "checkpoints of each (20)"),
           "returns": (4, "returns of each (4: a replica may recover thrice within 30 s)"),
           "no_clients": (False, "no latencies of clients"),
           "dir": ("", "a directory, maybe on another file system, for what the groups keep "
                   "(beside the servers' files, in /var/tmp)")}
# Rates well below the peak of a group of three on two processors.
PACED = {"redis-server": (Redis, 500), "apache2 event": (Http, 200)}
QUIET_SECONDS = 0.5
PHASES = ("noting", "stopping", "dumping", "copying", "waiting", "thawing")
AIM_MS, SLOW_AIM_MS = 150, 500
SLOW = ("mariadb", "clamav")


class Continuous(taking.Worker):
    """The server's load again and again; `problems` are its failures."""

    def __init__(self, server):
        super().__init__(server, [])
        self.rounds, self.ended = 0, threading.Event()

    def run(self):
        while not self.ended.is_set() and not self.problems:
            super().run()
            self.rounds += not self.problems

    def __exit__(self, *_):
        self.ended.set()
        self.join(300)


def checkpoint(group, number):
    """One more checkpoint of replica `number`, as its node reports it, ms and bytes."""
    taking.checkpoint(group, number)
    fields = group.status(number)["checkpoint"]
    found = {name: fields[f"{name}_us"] / 1000 for name in ("prepare", "rest", "held", "pack")}
    found.update({name: us / 1000 for name, us in fields["phases_us"].items()
                  if us is not None})
    name = f"{fields['last']:012}"
    kept = next((group.dir / f"r{number}" / "checkpoints").glob(f"*.{name}"))
    found["bytes"] = sum(p.stat().st_size for p in kept.iterdir())
    files = json.loads((kept / "manifest.json").read_text())["files"]
    found["unpacked_bytes"] = sum(f["unpacked"] for f in files)
    return found


def recover(group, number):
    """Times in ms from kill -9 of the node on; caught_up is None if it did not within a minute."""
    before = group.replica(number)["node_pid"]
    began = time.monotonic()
    group.signal_node(number, 9)
    marks = {}

    def caught_up():
        status = group.status(number)
        if not status or status["pid"] == before or status["server_pid"] is None:
            return None
        if not status["checkpoint"]["return_us"]["running"]:
            return None
        marks.setdefault("back", 1000 * (time.monotonic() - began))
        if "end" not in marks:   # what the group had agreed on when it was back
            marks["end"] = max(s["commit"] for s in group.statuses().values() if s)
        return status if status["applied"] >= marks["end"] else None
    try:
        said = h.wait_until(caught_up, 60, f"replica {number} recovers and catches up")
    except h.Failure:
        said = group.status(number)
        if "back" not in marks or not said:
            raise
        marks["late"] = True
    found = {name: us / 1000 for name, us in said["checkpoint"]["return_us"].items()}
    return {**found, "back": marks["back"],
            "caught_up": None if "late" in marks else 1000 * (time.monotonic() - began)}


@contextlib.contextmanager
def warm_group(place, kind):
    """Yields (group, server, its two followers); at the end all three must be equal."""
    _, server = prepared_server(place, kind)
    try:
        with h.Group(place, server.command, port=server.port, options=server.options) as group:
            h.wait_until(server.ready, 60, f"{kind.name}: it answers")
            server.load(server.requests[0])
            leader = group.leader()
            yield group, server, [n for n in range(group.replicas) if n != leader]
            group.settle(60)
            said = group.statuses()
            if len(said) != group.replicas or any(s["verified"]["alarm"] for s in said.values()):
                raise h.Failure(f"not three equal replicas: {group.brief()}")
    finally:
        shutil.rmtree(server.work)


def under_load(place, kind, options):
    taken, returns = [], []
    with warm_group(place, kind) as (group, server, followers):
        with Continuous(server) as load:
            for _ in range(options.count):
                try:
                    taken.append(checkpoint(group, followers[0]))
                except h.Failure as failure:   # the lead changed on a crowded machine, say
                    load.problems.append(f"after {len(taken)} checkpoints: {failure}")
                    break
        for i in range(options.returns if not load.problems else 0):
            with Continuous(server) as again:
                returns.append(recover(group, followers[i % 2]))
            load.problems += again.problems
    return {"checkpoints": taken, "returns": returns, "problems": load.problems,
            "rounds": load.rounds}


def latency(place, kind, options):
    """Measures the latency that a client at a fixed rate sees."""
    client, rate = PACED[kind.name]
    windows = {"quiet": [], "checkpoint": [], "return": []}

    def timed(what, action, *words):
        began = time.monotonic()
        action(*words)
        windows[what].append((began, time.monotonic()))
    with warm_group(place, kind) as (group, server, followers), \
            Paced(client(server.port), rate, place.work / "paced.json") as paced:
        time.sleep(1)
        for i in range(options.count):
            timed("quiet", time.sleep, QUIET_SECONDS)
            timed("checkpoint", taking.checkpoint, group, followers[0])
        for i in range(options.returns):
            timed("quiet", time.sleep, QUIET_SECONDS)
            timed("return", recover, group, followers[i % 2])
    found = {"rate": rate, "errors": paced.errors}
    for what, of in windows.items():
        values = within(paced.samples, of)
        found[what] = {"requests": len(values), "p50_ms": percentile(values, 50),
                       "p99_ms": percentile(values, 99), "worst_ms": values[-1] if values else None}
    return found


def column(rows, key, form="{:.0f}"):
    return spread([row[key] for row in rows if row.get(key) is not None], form)


def total(rows, keys):
    return spread([sum(row[key] for key in keys) for row in rows])


def mib(rows, key):
    return f"{statistics.median(row[key] for row in rows) / 2**20:.1f}"


def table(rows):
    head = ["server", "n", "log held", "of it paused", "dump", "files", "packed in", "size, MiB",
            "restore", "back", "caught up"]
    lines = []
    for row in (row for row in rows if row["checkpoints"]):
        taken, returns = row["checkpoints"], row["returns"]
        lines.append([
            row["name"], f"{len(taken)} + {len(returns)}", column(taken, "held"),
            column(taken, "frozen"), total(taken, ("stopping", "dumping")),
            column(taken, "copying"), column(taken, "pack"), mib(taken, "bytes"),
            total(returns, ("copying", "criu")), column(returns, "back"),
            column(returns, "caught_up")])
    return tables.table(head, lines)


def clients_table(rows):
    head = ["client at a fixed rate", "window", "requests", "p50, ms", "p99, ms", "worst",
            "p99 / quiet p99", "errors"]
    lines = []
    for row in (row for row in rows if "latency" in row):
        part = row["latency"]
        for what in ("quiet", "checkpoint", "return"):
            one = part[what]
            if one["requests"]:
                lines.append([f"{row['name']}, {part['rate']}/s", what, one["requests"],
                              f"{one['p50_ms']:.2f}", f"{one['p99_ms']:.2f}",
                              f"{one['worst_ms']:.1f}",
                              f"{one['p99_ms'] / part['quiet']['p99_ms']:.2f}",
                              len(part["errors"])])
    return tables.table(head, lines, 2) if lines else ""


def beyond(rows):
    """Which servers miss an aim, in words."""
    missed = []
    for row in rows:
        aim = SLOW_AIM_MS if row["name"].startswith(SLOW) else AIM_MS
        for values, key, limit in ((row["checkpoints"], "held", aim),
                                   (row["checkpoints"], "copying", 1000),
                                   (row["returns"], "caught_up", 2000)):
            known = [v[key] for v in values if v[key] is not None]
            if known and statistics.median(known) >= limit:
                missed.append(f"{row['name']}: {key}, aim {limit} ms")
            if len(known) < len(values):
                missed.append(f"{row['name']}: did not catch up within 60 s under load, "
                              f"{len(values) - len(known)} of {len(values)} times")
    return missed + [f"{name}: clients: {what}" for name, what in troubles(rows)]


def troubles(rows):
    return [(row["name"], what) for row in rows for what in row["problems"]]


def problems(rows, _):
    return [f"{name}: {what}" for name, what in troubles(rows)]


def text(rows, x):
    missed = beyond(rows)
    return (f"{table(rows)}\n\nms, median (least .. most). Load average "
            f"{x.about['load_at_start']:.1f} at the start.{tables.commits_text(rows)}\n\n"
            f"{clients_table(rows)}\n\n"
            + ("Aims missed by the median: " + "; ".join(missed) if missed else "All aims are met.")
            + tables.missing_text(x.left_out))


def panes(rows, _):
    bars = [{"server": row["name"], "phase": phase, "ms": taken[phase]} for row in rows
            for taken in row["checkpoints"] for phase in (*PHASES, "held")]
    return [tables.bars(bars, "server", "ms", "phase", "a checkpoint, measured")]


def one_server(x, kind):
    h.need(*kind.programs)
    row = {"name": kind.name, "time": time.strftime("%H:%M:%SZ", time.gmtime()),
           "load_average": os.getloadavg()[0], **under_load(x.place, kind, x.options)}
    if kind.name in PACED and not x.options.no_clients:
        row["latency"] = latency(x.place, kind, x.options)
    return row


def measure(x):
    with contextlib.ExitStack() as cleanup:
        if x.options.dir:
            kept = cleanup.enter_context(
                tempfile.TemporaryDirectory(prefix="crane-checkpoints-", dir=x.options.dir))
            (x.work / "groups").symlink_to(kept)
        for kind in all_kinds(x.options.only):
            row = x.attempt(kind.name, functools.partial(one_server, x, kind))
            if row:
                x.add({"key": [kind.name, 0], **row})
                print(f"  . {table([row]).splitlines()[-1]}", file=sys.stderr)
