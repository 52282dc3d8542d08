# SPDX-License-Identifier: Apache-2.0
"""How the cost of a request grows with threads and clients.

memcached (-t) and the matching engine (--workers), natively and as one and three replicas in serial
and in parallel mode: turns, wake-ups, processor time, entries and bytes of the log per request. One
row of points varies the threads at 16 clients, one the clients at 4 threads (--grid: all pairs).
From the point that both share, and from bench-turn, eval/papers/growth_model.py computes what more
processors would give: growth-costs.png is measured, growth-model.png is computed.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import _harness as h
import counters
import ground
import growth_model as model
import server_engine
import server_memcached
import session
import tables
import usage
from start import bench_turn, prepared_server, started

THREADS, CLIENTS = (1, 2, 4, 8, 16, 32), (1, 4, 16, 64, 256)
OPTIONS = {"only": session.ONLY, "repeats": session.repeats(1),
           "requests": (20000, "of each point (20000)"),
           "threads": (list(THREADS), "of the server"), "clients": (list(CLIENTS), "at once"),
           "grid": (False, "all pairs of threads and clients"),
           "turns": (1_000_000, "of bench-turn")}
QUIET = "required"
BASE = (4, 16)   # threads and clients of the other sweep, and of the model
# Label: (replicas, mode)
CONFIGURATIONS = {"native": (0, None), "serial, n=1": (1, "serial"),
                  "parallel, n=1": (1, "parallel"), "serial, n=3": (3, "serial"),
                  "parallel, n=3": (3, "parallel")}
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
        answer = json.loads(done.stdout)
        self.counted = answer["answered"] + FILLED
        return [("get/set 90:10", answer["answered_rate"], answer["latency"]["p50_us"] / 1000,
                 answer["latency"]["p99_us"] / 1000)]

    def requests_made(self, requests, rows):
        return self.counted


KINDS = {"memcached": (Memcached, "-t"), "matching engine": (server_engine.Engine, "--workers")}


def kind_of(name, threads, clients):
    """A class of the matrix that has so many threads and is asked by so many clients."""
    base, option = KINDS[name]
    return type(base.__name__, (base,), {"name": name, "more": (option, str(threads)),
                                         "clients": clients})


# --- measuring ------------------------------------------------------------------------------------

def share_in(text, name=LIBRARY):
    """Returns the part of the samples of `perf report -F sample,dso -t,` that are in that library,
    or None if there are too few samples."""
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
    pids, data = counters.parts_of(running)["server"], work / "perf.data"
    perf = subprocess.Popen(["perf", "record", "-q", "-F", "4999", "-o", str(data), "-p",
                             ",".join(map(str, pids))], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        server.load(requests)
    finally:
        perf.terminate()
        perf.wait(30)
    done = subprocess.run(["perf", "report", "-i", str(data), "--stdio", "--sort", "dso", "-F",
                           "sample,dso", "-t,"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return share_in(done.stdout)


def one_point(place, name, label, threads, clients, options):
    """The row of one start."""
    replicas, mode = CONFIGURATIONS[label]
    kind = kind_of(name, threads, clients)
    requests = max(options.requests, 80 * clients)   # the first load has a tenth, of all kinds
    with ground.prepared(kind.native_directories, kind.native_users, say=lambda _: None):
        work, server = prepared_server(place, kind)
        flags = ["--mode", mode] if mode else []
        with started(place, server, requests, replicas, flags) as here:
            before, watch = counters.Counts(here), usage.Watch(here.processes())
            rows = server.load(requests)
            served = server.requests_made(requests, rows)
            _, report = watch.report(here.processes())
            figures = counters.per_request(before, counters.Counts(here), served)
            if (threads, clients) == BASE and replicas == 1:
                figures["inside_share"] = share_with_turn(here, server, requests, work)
    shutil.rmtree(work)
    return {"server": name, "configuration": label, "threads": threads, "clients": clients,
            "requests": served, "rate": sum(rate for _, rate, *_ in rows), "figures": figures,
            "quiet": report.as_json()}


def points(options):
    """Returns [(threads, clients)]: a cross through BASE, or all pairs."""
    if options.grid:
        return [(t, c) for t in options.threads for c in options.clients]
    return list(dict.fromkeys([(t, BASE[1]) for t in options.threads]
                              + [(BASE[0], c) for c in options.clients]))


def measure(x):
    x.about["bench_turn"] = bench_turn(x.out, x.options.turns, "--repeats", "3")
    for name in [name for name in KINDS if re.search(x.options.only, name)]:
        for threads, clients in points(x.options):
            for label in CONFIGURATIONS:
                for repeat in range(x.options.repeats):
                    key = [name, label, threads, clients, repeat]
                    row = x.attempt(", ".join(map(str, key)), functools.partial(
                        one_point, x.place, name, label, threads, clients, x.options))
                    if row:
                        x.add({"key": key, **row})
                        print(session.run_text(f"{name}, {label}, {threads} threads, {clients} "
                                               "clients", [("all", row["rate"])], row["quiet"]),
                              file=sys.stderr)


# --- tables ---------------------------------------------------------------------------------------

COLUMNS = (("turns", "turns"), ("server_wakeups", "wake-ups, server"),
           ("node_wakeups", "node"), ("server_us", "processor time, server, us"),
           ("node_us", "node, us"), ("entries", "entries"), ("log_bytes", "bytes of the log"))


def medians(rows):
    """Returns [(server, configuration, threads, clients, its rows, {figure: median})], in the order
    of CONFIGURATIONS at each point."""
    found = {}
    for row in rows:
        point = (row["server"], row["threads"], row["clients"],
                 list(CONFIGURATIONS).index(row["configuration"]))
        found.setdefault(point, []).append(row)
    results = []
    for (server, threads, clients, number), some in sorted(found.items()):
        figures = {"rate": statistics.median(row["rate"] for row in some)}
        for key in {key for row in some for key in row["figures"]}:
            values = [row["figures"][key] for row in some if row["figures"].get(key) is not None]
            figures[key] = statistics.median(values) if values else None
        results.append((server, list(CONFIGURATIONS)[number], threads, clients, some, figures))
    return results


def table(rows):
    return tables.table(
        ["per request", "threads", "clients", "rate/s", *(title for _, title in COLUMNS)],
        [[f"{server}, {label}{tables.mark(some)}", threads, clients, f"{figures['rate']:.0f}",
          *(tables.number(figures.get(key)) for key, _ in COLUMNS)]
         for server, label, threads, clients, some, figures in medians(rows)])


def models_of(rows, bench):
    """Returns [(server, Terms, {how: us}, measured rate)] at BASE; needs the native server's
    figures."""
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


def text(rows, x):
    models = models_of(rows, x.about["bench_turn"])
    found = table(rows)
    if models:
        found += (f"\n\n{model.terms_table(models)}\n\n{model.TEXT.format(*BASE)}\n\n"
                  f"{model.table(models, os.cpu_count())}")
    return (found + tables.busy_text(rows) + tables.commits_text(rows)
            + tables.missing_text(x.left_out))


def panes(rows, x):
    """Measured; then what growth_model computes."""
    points = [{**row, **row["figures"]} for row in rows]
    found = []
    for server, some in tables.grouped(points, "server").items():
        for varied, other, fixed in (("threads", "clients", BASE[1]),
                                     ("clients", "threads", BASE[0])):
            of = [row for row in some if row[other] == fixed]
            found += [tables.line(of, varied, figure, "configuration",
                                  f"{server}, {fixed} {other}, measured", "x")
                      for figure in ("turns", "server_wakeups", "server_us", "node_us",
                                     "log_bytes", "rate")]
    return found + model.panes(models_of(rows, x.about["bench_turn"]))
