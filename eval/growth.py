#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the cost of a request grows with threads and clients (`make eval-growth`).

memcached (-t) and the matching engine (--workers), natively and as one and three replicas in serial
and in parallel mode: turns, wake-ups, processor time, entries and bytes of the log per request. One
row of points varies the threads at 16 clients, one the clients at 4 threads (--grid: all pairs).
From the point that both share, and from bench-turn, growth_model.py computes what more processors
would give. Printed, and written to <out>/bench/growth.{json,md}, growth-costs.png (measured) and
growth-model.png (computed). In parts: --only, --threads, --clients, with --keep.
"""
import argparse
import functools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import costs
import ground
import growth_model as model
import parts
import quiet
import usage
from place import Place, pyplot_or_none, save_plot
from runs import started
from servers import CAUSES, STORIES
from tables import missing_text

sys.path.insert(0, str(STORIES))
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402
import server_engine  # noqa: E402
import server_memcached  # noqa: E402

THREADS, CLIENTS = (1, 2, 4, 8, 16, 32), (1, 4, 16, 64, 256)
BASE = (4, 16)   # threads and clients of the other sweep, and of the model
# Label: (replicas, mode)
CONFIGURATIONS = {"native": (0, None), "serial, n=1": (1, "serial"),
                  "parallel, n=1": (1, "parallel"), "serial, n=3": (3, "serial"),
                  "parallel, n=3": (3, "parallel")}
HEADER_BYTES = 72   # of an entry in the log (consensus/core/log.h)
FILLED = 1000       # keys that latency-load writes before its requests
LIBRARY, LEAST_SAMPLES = "libcrane.so", 100


class Memcached(server_memcached.Memcached):
    """Loaded by one thread that keeps all clients busy, so that 256 of them cost no more."""

    def load(self, requests):
        done = subprocess.run(
            [str(self.out / "latency-load"), "--protocol", "memcached", "--port", str(self.port),
             "--connections", str(self.clients), "--rate", "0", "--seconds", "120",
             "--warm-seconds", "0", "--requests", str(requests)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=180, check=False)
        if done.returncode != 0:
            raise h.Failure(f"latency-load ended with {done.returncode}: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        self.counted = said["answered"] + FILLED
        return [("get/set 90:10", said["answered_rate"], said["latency"]["p50_us"] / 1000,
                 said["latency"]["p99_us"] / 1000)]

    def requests_made(self, requests, rows):
        return self.counted


KINDS = {"memcached": (Memcached, "-t"), "matching engine": (server_engine.Engine, "--workers")}


def kind_of(name, threads, clients):
    """A class of the matrix that has so many threads and is asked by so many clients."""
    base, option = KINDS[name]
    return type(base.__name__, (base,), {"name": name, "more": (option, str(threads)),
                                         "clients": clients})


# --- measuring ------------------------------------------------------------------------------------

class Counts:
    """What is counted of a server and its node, at one moment."""

    def __init__(self, running):
        number = running.leader() if isinstance(running, h.Group) else 0
        self.parts = costs.parts_of(running, number)
        self.switches = {part: costs.switches_of(pids) for part, pids in self.parts.items()}
        # A server that a control group counts is counted to the nanosecond; the node is not.
        self.seconds = {part: usage.seconds_of(pids) if part == "node" else usage.cpu_seconds(pids)
                        for part, pids in self.parts.items()}
        self.status = (running.status(number) or {}) if isinstance(running, h.Group) else {}


def per_request(before, after, served):
    """{what: figure of one request} between two Counts; of the leader's replica alone."""
    found = {}
    for part in after.parts:
        woken, _, _ = costs.switches_between(before.switches[part], after.switches[part])
        found[f"{part}_wakeups"] = woken / served
        found[f"{part}_us"] = (after.seconds[part] - before.seconds[part]) * 1e6 / served
    if after.status:
        moved = {key: after.status[key] - before.status[key]
                 for key in ("clock", "entries_total", "bytes_in")}
        found["turns"] = moved["clock"] / served
        found["entries"] = moved["entries_total"] / served
        found["log_bytes"] = (moved["bytes_in"] + HEADER_BYTES * moved["entries_total"]) / served
    return found


def share_in(text, name=LIBRARY):
    """Of `perf report -F sample,dso -t,`: the part of the samples in that library; None: there are
    too few to tell."""
    rows = [(int(count), pathlib.Path(dso).name)
            for count, dso in re.findall(r"^\s*(\d+)\s*,\s*(\S+)", text, re.M)]
    total = sum(count for count, _ in rows)
    if total < LEAST_SAMPLES:
        return None
    return sum(count for count, dso in rows if dso == name) / total


def share_with_turn(running, server, requests, work):
    """The part of the server's processor time in libcrane.so during one more load; None: perf is
    absent or sees nothing."""
    if not isinstance(running, h.Group) or not shutil.which("perf"):
        return None
    pids, data = costs.parts_of(running)["server"], work / "perf.data"
    perf = subprocess.Popen(["perf", "record", "-q", "-F", "4999", "-o", str(data), "-p",
                             ",".join(map(str, pids))], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        server.load(requests)
    finally:
        perf.terminate()
        perf.wait(30)
    told = subprocess.run(["perf", "report", "-i", str(data), "--stdio", "--sort", "dso", "-F",
                           "sample,dso", "-t,"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return share_in(told.stdout)


def one_point(place, name, label, threads, clients, options):
    """The row of one start."""
    replicas, mode = CONFIGURATIONS[label]
    kind = kind_of(name, threads, clients)
    shutil.rmtree(place.work / name.replace(" ", "-"), ignore_errors=True)   # of one that failed
    requests = max(options.requests, 80 * clients)   # the first load has a tenth, of all kinds
    with ground.prepared(kind.native_directories, kind.native_users, say=lambda _: None):
        work = m.place_of(place, kind)
        server = kind(work, h.free_port())
        flags = ["--mode", mode] if mode else []
        with started(place, server, requests, replicas, flags) as running:
            before, watch = Counts(running), usage.Watch(running.processes())
            rows = server.load(requests)
            served = server.requests_made(requests, rows)
            _, report = watch.report(running.processes())
            figures = per_request(before, Counts(running), served)
            if (threads, clients) == BASE and replicas == 1:
                figures["inside_share"] = share_with_turn(running, server, requests, work)
    shutil.rmtree(work)
    return {"server": name, "configuration": label, "threads": threads, "clients": clients,
            "requests": served, "rate": sum(rate for _, rate, *_ in rows), "figures": figures,
            "quiet": report.as_json()}


def points(options):
    """[(threads, clients)]: a cross through BASE, or all pairs."""
    if options.grid:
        return [(t, c) for t in options.threads for c in options.clients]
    return list(dict.fromkeys([(t, BASE[1]) for t in options.threads]
                              + [(BASE[0], c) for c in options.clients]))


def measure(place, options, part):
    left_out = {}
    for name in [name for name in KINDS if re.search(options.only, name)]:
        for threads, clients in points(options):
            for label in CONFIGURATIONS:
                for repeat in range(options.repeats):
                    key = [name, label, threads, clients, repeat]
                    began, text = time.monotonic(), ", ".join(map(str, key))
                    row, reason = parts.tried(functools.partial(
                        one_point, place, name, label, threads, clients, options), CAUSES, text)
                    if not row:
                        left_out[text] = reason
                        continue
                    part.add({"key": key, **row})
                    print(f"  . {name}, {label}, {threads} threads, {clients} clients: "
                          f"{row['rate']:.0f}/s, {time.monotonic() - began:.1f} s",
                          file=sys.stderr)
    return left_out


def bench_turn(out, turns):
    """bench-turn's rows of the cases that the model needs."""
    done = subprocess.run([str(out / "bench-turn"), "--json", "--turns", str(turns), "--repeats",
                           "3"], stdout=subprocess.PIPE, text=True, timeout=500, check=True)
    return json.loads(done.stdout)


# --- tables ---------------------------------------------------------------------------------------

COLUMNS = (("turns", "turns"), ("server_wakeups", "wake-ups, server"),
           ("node_wakeups", "node"), ("server_us", "processor time, server, us"),
           ("node_us", "node, us"), ("entries", "entries"), ("log_bytes", "bytes of the log"))


def medians(rows):
    """[(server, configuration, threads, clients, its rows, {figure: median})], in the order of
    CONFIGURATIONS at each point."""
    found = {}
    for row in rows:
        point = (row["server"], row["threads"], row["clients"],
                 list(CONFIGURATIONS).index(row["configuration"]))
        found.setdefault(point, []).append(row)
    told = []
    for (server, threads, clients, number), some in sorted(found.items()):
        figures = {"rate": statistics.median(row["rate"] for row in some)}
        for key in {key for row in some for key in row["figures"]}:
            values = [row["figures"][key] for row in some if row["figures"].get(key) is not None]
            figures[key] = statistics.median(values) if values else None
        told.append((server, list(CONFIGURATIONS)[number], threads, clients, some, figures))
    return told


def table(rows):
    head = ["per request", "threads", "clients", "rate/s", *(title for _, title in COLUMNS)]
    lines = [f"| {' | '.join(head)} |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    for server, label, threads, clients, some, figures in medians(rows):
        cells = [costs.number(figures.get(key)) for key, _ in COLUMNS]
        lines.append(f"| {server}, {label}{parts.mark(some)} | {threads} | {clients} | "
                     f"{figures['rate']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def models_of(rows, bench):
    """[(server, Terms, {how: us}, measured rate)] at BASE; needs the native server's figures."""
    at_base = {(server, label): figures for server, label, threads, clients, _, figures
               in medians(rows) if (threads, clients) == BASE}
    turn_ns = next(row["ns"] for row in bench if row["case"] == model.ONE_TURN)
    found = []
    for server in KINDS:
        native = at_base.get((server, "native"))
        for mode in (model.SERIAL, model.PARALLEL):
            figures = at_base.get((server, f"{mode}, n=1"))
            if not native or not figures:
                continue
            inside, outside = model.split(figures["server_us"], figures.get("inside_share"),
                                          figures["turns"], turn_ns)
            terms = model.Terms(mode, inside, outside, figures["node_us"],
                                figures["server_wakeups"], native["server_us"],
                                figures.get("inside_share") is not None)
            found.append((server, terms, model.hand_over_costs(bench, mode), figures["rate"]))
    return found


MODEL_TEXT = """**Computed, not measured**, from the terms above, of {} threads and {} clients:

    turn = inside (+ outside in serial mode) + hand-overs * time of one
    rate = min(cores / (inside + outside + node), 1 / turn, 1 / node)

The terms are processor time per request. Inside is the part of the server's samples (perf) in
libcrane.so, or turns times bench-turn's "1 thread" where perf has too few. Hand-overs are the
wake-ups of the server's threads. The time of a hand-over is bench-turn's, for a next thread that
spins and for one that sleeps, on the same core or on an idle other one. All hand-overs of a row
cost the same; a real server has some of each kind. The clients' processors and what cores lose to
each other's caches are not in it. The time outside has what the kernel needs for threads that
sleep, also in rows whose next thread spins. A native server loses nothing to more cores here."""


def text_of(rows, models, left_out):
    text = table(rows)
    if models:
        text += (f"\n\n{model.terms_table(models)}\n\n{MODEL_TEXT.format(*BASE)}\n\n"
                 f"{model.table(models, os.cpu_count())}")
    return text + parts.busy_text(rows) + parts.commits_text(rows) + missing_text(left_out)


# --- plots ----------------------------------------------------------------------------------------

PLOTTED = (("turns", "turns / request"), ("server_wakeups", "server's wake-ups / request"),
           ("server_us", "server's processor time, us / request"),
           ("node_us", "node's processor time, us / request"),
           ("log_bytes", "bytes of the log / request"), ("rate", "requests/s"))
STYLES = {"native": "k-", "serial, n=1": "C0-", "parallel, n=1": "C1-", "serial, n=3": "C0--",
          "parallel, n=3": "C1--"}


MODEL_STYLES = {("serial", "sleeps, same core"): "C0-", ("parallel", "spins"): "C1-",
                ("parallel", "sleeps, same core"): "C1--",
                ("parallel", "sleeps, other core"): "C1:"}


def draw(axis, told, server, figure, varied):
    """Lines of one figure over threads (varied 0) or clients (1), the other one as in BASE."""
    for label, style in STYLES.items():
        line = sorted((at[varied], figures[figure])
                      for name, of, *at, _, figures in told
                      if (name, of) == (server, label) and at[1 - varied] == BASE[1 - varied]
                      and figures.get(figure) is not None)
        if line:
            axis.plot(*zip(*line), style, marker="o", markersize=3, label=label)
    axis.set_xscale("log", base=2)
    ticks = (THREADS, CLIENTS)[varied]
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_ylim(0, 1.08 * axis.get_ylim()[1])
    axis.grid(color="0.9")
    axis.set_xlabel(("server threads", "clients")[varied])


def plot_costs(rows, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    told = medians(rows)
    lines = [(server, varied) for server in dict.fromkeys(point[0] for point in told)
             for varied in (0, 1)]
    figure, axes = pyplot.subplots(len(lines), len(PLOTTED), squeeze=False,
                                   figsize=(3.2 * len(PLOTTED), 2.9 * len(lines)))
    for (server, varied), line in zip(lines, axes):
        other = f"{BASE[1]} clients" if varied == 0 else f"{BASE[0]} threads"
        for axis, (key, label) in zip(line, PLOTTED):
            draw(axis, told, server, key, varied)
            axis.set_ylabel(label, fontsize=8)
            axis.set_title(f"{server}, {other}, measured{parts.mark(rows)}", fontsize=8)
    axes[0][-1].legend(fontsize=7, handlelength=3)
    save_plot(figure, path, 100)


def plot_model(models, rows, path):
    pyplot = pyplot_or_none()
    if not pyplot or not models:
        return
    told = [server for server in KINDS if any(server == name for name, *_ in models)]
    figure, axes = pyplot.subplots(1, len(told), figsize=(5.4 * len(told), 4.4), squeeze=False)
    for server, axis in zip(told, axes[0]):
        mine = [(terms, hand_overs) for name, terms, hand_overs, _ in models if name == server]
        axis.plot(model.CORES, [model.native_rate(mine[0][0], c) for c in model.CORES], "k:",
                  label="native, at most")
        for terms, hand_overs in mine:
            for how, us in hand_overs.items():
                axis.plot(model.CORES, [model.rate(terms, us, c)[0] for c in model.CORES],
                          MODEL_STYLES[terms.mode, how], label=f"{terms.mode}, next thread {how}")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(model.CORES, [str(c) for c in model.CORES])
        axis.grid(color="0.9")
        axis.set_xlabel("processors of the server and its node")
        axis.set_ylabel("requests/s, computed")
        axis.set_title(f"{server}, one replica, {BASE[0]} threads: computed{parts.mark(rows)}",
                       fontsize=9)
        axis.legend(fontsize=8)
    save_plot(figure, path, 110)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts.add_options(parser)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--requests", type=int, default=20000, help="of each point (20000)")
    parser.add_argument("--threads", type=int, nargs="*", default=list(THREADS))
    parser.add_argument("--clients", type=int, nargs="*", default=list(CLIENTS))
    parser.add_argument("--grid", action="store_true", help="all pairs of threads and clients")
    parser.add_argument("--turns", type=int, default=1_000_000, help="of bench-turn")
    return parser.parse_args()


def main():
    options = arguments()
    h.end_at_sigterm()
    part = parts.begin(options, "growth")
    if not part:
        return quiet.EXIT_NOT_QUIET
    out = pathlib.Path(options.out).resolve()
    bench = bench_turn(out, options.turns)
    part.about["bench_turn"] = bench
    with tempfile.TemporaryDirectory(prefix="crane-growth-", dir="/var/tmp") as work:
        pathlib.Path(work).chmod(0o755)
        left_out = measure(Place(out, pathlib.Path(work), "growth"), options, part)
    if part.rows:
        models = models_of(part.rows, bench)
        text = text_of(part.rows, models, left_out)
        print(f"\n{text}")
        part.file.with_suffix(".md").write_text(text + "\n")
        plot_costs(part.rows, part.file.with_name("growth-costs.png"))
        plot_model(models, part.rows, part.file.with_name("growth-model.png"))
    return parts.status_of(part.rows, left_out, options)


if __name__ == "__main__":
    sys.exit(main())
