#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of every server as a table (`make eval-checkpoints`), as CRANE's table 2.

For each KIND of tests/e2e/server_*.py, three replicas under its load, with clients that stay
connected: --count checkpoints on a follower, each told in its phases by the follower's node; then
kill -9 of a follower's node, --returns times, until it is back and has caught up. redis and apache2
besides under a client that asks at a fixed rate: its latency in quiet windows, in those of
checkpoints and in those of returns. Printed, and written to <out>/bench/checkpoints.{json,md} and a
plot, after each server; --keep leaves the rows of servers that are not measured now.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from paced import Http, Paced, Redis, percentile, within
from place import Place, machine, pyplot_or_none
from runs import spread
from servers import HERE, STORIES, all_kinds

sys.path.insert(0, str(STORIES))
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402
import checkpoints as scenario  # noqa: E402

# Rates well below the peak of a group of three on two processors.
PACED = {"redis-server": (Redis, 500), "apache2 event": (Http, 200)}
QUIET_SECONDS = 0.5
PHASES = ("noting", "stopping", "dumping", "copying", "waiting", "thawing")
AIM_MS, SLOW_AIM_MS = 150, 500
SLOW = ("mariadb", "clamav")


class Continuous(scenario.Worker):
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
    """What the node of replica `number` says of one more, ms and bytes."""
    scenario.checkpoint(group, number)
    said = group.status(number)["checkpoint"]
    found = {name: said[f"{name}_us"] / 1000 for name in ("prepare", "rest", "held", "pack")}
    found.update({name: us / 1000 for name, us in said["phases_us"].items()
                  if us is not None})
    name = f"{said['last']:012}"
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
        said = group.status(number)
        if not said or said["pid"] == before or said["server_pid"] is None:
            return None
        if not said["checkpoint"]["return_us"]["running"]:
            return None
        marks.setdefault("back", 1000 * (time.monotonic() - began))
        if "end" not in marks:   # what the group had agreed on when it was back
            marks["end"] = max(s["commit"] for s in group.statuses().values() if s)
        return said if said["applied"] >= marks["end"] else None
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


def settled(group):
    group.settle(60)
    said = group.statuses()
    if len(said) != group.replicas or any(s["verified"]["alarm"] for s in said.values()):
        raise h.Failure(f"not three equal replicas: {group.brief()}")


def followers(group):
    leader = group.leader()
    return [n for n in range(group.replicas) if n != leader]


def under_load(place, kind, options):
    server = kind(m.place_of(place, kind), h.free_port())
    try:
        with h.Group(place, server.command, port=server.port, options=server.options) as group:
            h.wait_until(server.ready, 60, f"{kind.name}: it answers")
            server.load(server.requests[0])
            one, other = followers(group)
            taken, returns = [], []
            with Continuous(server) as load:
                for _ in range(options.count):
                    try:
                        taken.append(checkpoint(group, one))
                    except h.Failure as failure:   # the lead changed on a crowded machine, say
                        load.problems.append(f"after {len(taken)} checkpoints: {failure}")
                        break
            for i in range(options.returns if not load.problems else 0):
                with Continuous(server) as again:
                    returns.append(recover(group, (one, other)[i % 2]))
                load.problems += again.problems
            settled(group)
        return {"checkpoints": taken, "returns": returns, "problems": load.problems,
                "rounds": load.rounds}
    finally:
        shutil.rmtree(server.work)


def latency(place, kind, options):
    """What a client at a fixed rate sees."""
    client, rate = PACED[kind.name]
    server = kind(m.place_of(place, kind), h.free_port())
    windows = {"quiet": [], "checkpoint": [], "return": []}

    def timed(what, action):
        began = time.monotonic()
        action()
        windows[what].append((began, time.monotonic()))
    try:
        with h.Group(place, server.command, port=server.port, options=server.options) as group:
            h.wait_until(server.ready, 60, f"{kind.name}: it answers")
            server.load(server.requests[0])
            one, other = followers(group)
            with Paced(client(server.port), rate, place.work / "paced.json") as paced:
                time.sleep(1)
                for i in range(options.count):
                    timed("quiet", lambda: time.sleep(QUIET_SECONDS))
                    timed("checkpoint", lambda: scenario.checkpoint(group, one))
                for i in range(options.returns):
                    timed("quiet", lambda: time.sleep(QUIET_SECONDS))
                    timed("return", lambda: recover(group, (one, other)[i % 2]))
            settled(group)
    finally:
        shutil.rmtree(server.work)
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
    lines = ["| server | n | log held | of it paused | dump | files | packed in | size, MiB | "
             "restore | back | caught up |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        taken, returns = row["checkpoints"], row["returns"]
        if not taken:
            continue
        lines.append(
            f"| {row['name']} | {len(taken)} + {len(returns)} | "
            f"{column(taken, 'held')} | {column(taken, 'frozen')} | "
            f"{total(taken, ('stopping', 'dumping'))} | {column(taken, 'copying')} | "
            f"{column(taken, 'pack')} | {mib(taken, 'bytes')} | "
            f"{total(returns, ('copying', 'criu')) if returns else '-'} | "
            f"{column(returns, 'back')} | {column(returns, 'caught_up')} |")
    return "\n".join(lines)


def clients_table(rows):
    lines = ["| client at a fixed rate | window | requests | p50, ms | p99, ms | worst | "
             "p99 / quiet p99 | errors |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        said = row.get("latency")
        for what in ("quiet", "checkpoint", "return") if said else ():
            one = said[what]
            if not one["requests"]:
                continue
            ratio = one["p99_ms"] / said["quiet"]["p99_ms"]
            lines.append(f"| {row['name']}, {said['rate']}/s | {what} | {one['requests']} | "
                         f"{one['p50_ms']:.2f} | {one['p99_ms']:.2f} | {one['worst_ms']:.1f} | "
                         f"{ratio:.2f} | {len(said['errors'])} |")
    return "\n".join(lines) if len(lines) > 2 else ""


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
        missed += [f"{row['name']}: clients: {problem}" for problem in row["problems"]]
    return missed


def text_of(rows, about):
    busy = f"load average {about['load_at_start']:.1f} at the start"
    missed = beyond(rows)
    return (f"{table(rows)}\n\nms, median (least .. most). Measured at commit {about['commit']}, "
            f"{busy}.\n\n{clients_table(rows)}\n\n"
            + ("Aims missed by the median: " + "; ".join(missed) if missed else "All aims are met.")
            + "\n")


def plot(rows, path):
    pyplot = pyplot_or_none()
    rows = [row for row in rows if row["checkpoints"]]
    if not pyplot or not rows:
        return
    figure, axis = pyplot.subplots(figsize=(1.6 + 0.6 * len(rows), 4.4))
    below = [0.0] * len(rows)
    for phase in PHASES:
        values = [statistics.median(c[phase] for c in row["checkpoints"]) for row in rows]
        axis.bar(range(len(rows)), values, 0.7, bottom=below, label=phase)
        below = [b + v for b, v in zip(below, values)]
    axis.plot(range(len(rows)), [statistics.median(c["held"] for c in row["checkpoints"])
                                 for row in rows], "k_", markersize=14, label="log held")
    axis.axhline(AIM_MS, color="grey", linewidth=0.8)
    axis.set_xticks(range(len(rows)), [row["name"] for row in rows], rotation=40, ha="right")
    axis.set_ylabel("ms, medians (measured)")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def one_server(place, kind, options):
    row = {"name": kind.name, "time": time.strftime("%H:%M:%SZ", time.gmtime()),
           "load_average": os.getloadavg()[0], **under_load(place, kind, options)}
    if kind.name in PACED and not options.no_clients:
        row["latency"] = latency(place, kind, options)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--only", default="",
                        help="a regular expression: the kinds whose name it finds")
    parser.add_argument("--count", type=int, default=20, help="checkpoints of each (20)")
    parser.add_argument("--returns", type=int, default=4,
                        help="returns of each (4: a replica may recover thrice within 30 s)")
    parser.add_argument("--no-clients", action="store_true", help="no latencies of clients")
    parser.add_argument("--dir", help="a directory, maybe on another file system, for what the "
                        "groups keep (beside the servers' files, in /var/tmp)")
    parser.add_argument("--keep", action="store_true",
                        help="the rows of earlier runs stay where nothing is measured now")
    options = parser.parse_args()
    h.end_at_sigterm()
    out = pathlib.Path(options.out).resolve()
    results = out / "bench"
    results.mkdir(parents=True, exist_ok=True)
    file, about = results / "checkpoints.json", machine()
    rows = json.loads(file.read_text())["rows"] if options.keep and file.exists() else []
    left_out = []
    with contextlib.ExitStack() as cleanup:
        work = cleanup.enter_context(
            tempfile.TemporaryDirectory(prefix="crane-checkpoints-", dir="/var/tmp"))
        path = pathlib.Path(work)
        path.chmod(0o755)
        if options.dir:
            kept = cleanup.enter_context(
                tempfile.TemporaryDirectory(prefix="crane-checkpoints-", dir=options.dir))
            (path / "groups").symlink_to(kept)
        for kind in all_kinds(options.only):
            try:
                h.need(*kind.programs)
                row = one_server(Place(out, path, "checkpoints"), kind, options)
            except (h.CannotRun, h.Failure, OSError, subprocess.SubprocessError) as cause:
                print(f"left out: {kind.name}: {str(cause)[:400]}")
                left_out.append(kind.name)
                continue
            rows = [r for r in rows if r["name"] != row["name"]] + [row]
            file.write_text(json.dumps({"machine": about, "rows": rows}, indent=1))
            print(f"  . {table([row]).splitlines()[-1]}", file=sys.stderr)
    text = text_of(rows, about)
    print(f"{about['processor']}, {about['processors']} processors, Linux {about['kernel']}; "
          f"clients, replicas and load share them\n\n{text}")
    (results / "checkpoints.md").write_text(text)
    plot(rows, results / "checkpoints.png")
    return 0 if rows and not left_out and not any(row["problems"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
