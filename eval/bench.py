#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Native server vs a group of one vs a group of three, from one run (`make bench`).

Per server and configuration: requests/s, latency at the 50th and 99th percentile, processor time
per request of one replica (server and node). Then bubbles as a share of consensus entries for the
two admission rules, and the cost of a turn. Repeats are interleaved, so that a slow minute of the
machine hits all configurations; printed are median and (lowest .. highest). Raw data, with a
description of the machine: <out>/bench/bench.json; every run, with the verdict of quiet.py on the
machine, is a line of bench-runs.jsonl; a plot beside it if matplotlib is installed.
A server that is not installed is left out, by name.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402
import quiet  # noqa: E402
from place import Place, machine, pyplot_or_none, redis_benchmark, save_plot  # noqa: E402
from runs import (CONFIGURATIONS, RawLog, bubble_share, median_of, repeated,  # noqa: E402
                  spread)

CLIENTS = 16


class Apache(m.Server):
    name = "apache static 1 KB, keep-alive"
    programs = ("apache2", "ab")

    def prepare(self):
        self.conf = h.apache_configuration(self.work, self.port)
        run = self.work / "native"
        run.mkdir()
        self.environment = {
            "APACHE_RUN_USER": "www-data", "APACHE_RUN_GROUP": "www-data",
            "APACHE_PID_FILE": str(run / "pid"), "APACHE_RUN_DIR": str(run),
            "APACHE_LOCK_DIR": str(run), "APACHE_LOG_DIR": str(run), "LANG": "C"}

    def program(self):
        return ["apache2", "-f", str(self.conf)]

    def native_program(self):
        return [*self.program(), "-D", "FOREGROUND"]

    def load(self, requests):
        """[(what, requests per second, p50 ms, p99 ms)]"""
        result = h.ab(f"http://127.0.0.1:{self.port}/1k.html", requests, CLIENTS, True)
        if not h.ab_good(result, requests):
            raise h.Failure(result["text"])
        return [("GET 1 KB", result["rate"], result["p50"], result["p99"])]


class Redis(m.Server):
    name = "redis set/get"
    programs = ("redis-server", "redis-benchmark")

    def program(self):
        return h.redis_program(self.port)

    def load(self, requests):
        rows = redis_benchmark(self.port, CLIENTS, requests, "set,get")
        return [(row["test"], row["rate"], row["p50_ms"], row["p99_ms"]) for row in rows]


def print_server(name, runs):
    print(f"\n{name}, {CLIENTS} clients, {len({r['repeat'] for r in runs})} repeats: "
          "median (lowest .. highest)")
    print(f"  {'':<10}{'':<14}{'requests/s':>26}{'of native':>10}{'p50 ms':>24}{'p99 ms':>24}")
    whats = list(dict.fromkeys(r["what"] for run in runs for r in run["results"]))
    for what in whats:
        native = median_of(runs, "native", what, "rate")
        for label in CONFIGURATIONS:
            rates = median_of(runs, label, what, "rate")
            if not rates:
                continue
            share = f"{statistics.median(rates) / statistics.median(native):.2f}" if native else "-"
            print(f"  {what:<10}{label:<14}{spread(rates):>26}{share:>10}"
                  f"{spread(median_of(runs, label, what, 'p50_ms'), '{:.3f}'):>24}"
                  f"{spread(median_of(runs, label, what, 'p99_ms'), '{:.3f}'):>24}")
    print("  processor time per request, us, one replica (server and node):")
    for label in CONFIGURATIONS:
        used = [r["cpu_us_per_request_replica"] for r in runs if r["configuration"] == label]
        if used:
            print(f"    {label:<14}{spread(used, '{:.1f}'):>26}")


def print_quiet(all_runs):
    """What speaks against the figures; the last line of them, so that it is not overlooked."""
    loud = [r for r in all_runs if not r["quiet"]["quiet"]]
    if loud:
        print(f"\nnot to be trusted: the machine was not quiet in {len(loud)} of {len(all_runs)} "
              f"runs, first: {'; '.join(loud[0]['quiet']['reasons'])}")


def print_bubbles(all_runs):
    print("\nbubbles, % of consensus entries under load:")
    for name in dict.fromkeys(r["server"] for r in all_runs):
        runs = [r for r in all_runs if r["server"] == name]
        print(f"  {name:<34}grant {spread(bubble_share(runs, 'n=3'), '{:.2f}'):<26}"
              f"classic {spread(bubble_share(runs, 'n=3 classic'), '{:.2f}')}")


def turn_cost(out, quick):
    program = out / "bench-turn"
    if not program.exists():
        print("\ncost of a turn: bench-turn is not built (make bench)")
        return None
    done = subprocess.run([str(program), "--json", "--turns", str(2_000_000 if quick else
                                                                  10_000_000)],
                          stdout=subprocess.PIPE, text=True, timeout=600)
    rows = json.loads(done.stdout)
    print("\ncost of a turn, ns:")
    for row in rows:
        print(f"  {row['case']:<42}{row['ns']:>10.1f} ({row['low']:.1f} .. {row['high']:.1f})")
    return rows


def plot(runs, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    pairs = list(dict.fromkeys((r["server"], x["what"]) for r in runs for x in r["results"]))
    figure, axes = pyplot.subplots(1, len(pairs), figsize=(4 * len(pairs), 3.6), squeeze=False)
    for axis, (server, what) in zip(axes[0], pairs):
        mine = [r for r in runs if r["server"] == server]
        rates = {c: median_of(mine, c, what, "rate") for c in CONFIGURATIONS}
        shown = {c: v for c, v in rates.items() if v}
        middle = [statistics.median(v) for v in shown.values()]
        axis.bar(list(shown), middle, yerr=[
            [m - min(v) for m, v in zip(middle, shown.values())],
            [max(v) - m for m, v in zip(middle, shown.values())]], capsize=4)
        axis.set_title(f"{server.split()[0]}: {what}")
        axis.set_ylabel("requests/s (measured)")
        axis.tick_params(axis="x", rotation=20)
    save_plot(figure, path, 120)


def measure(place, options, requests, log):
    runs = []
    for kind in (Apache, Redis):
        missing = [p for p in kind.programs if not shutil.which(p, path=os.environ["PATH"]
                                                                + ":/usr/sbin")]
        if options.only and options.only not in kind.name:
            continue
        if missing:
            print(f"left out: {kind.name}: {', '.join(missing)} is not installed")
            continue
        (place.work / kind.__name__).mkdir()
        (place.work / kind.__name__).chmod(0o755)
        server = kind(place.work / kind.__name__, h.free_port())
        mine = repeated(place, server, CONFIGURATIONS, requests, options.repeats, log)
        if mine:
            print_server(kind.name, mine)
        runs += mine
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--requests", type=int, default=50000)
    parser.add_argument("--quick", action="store_true", help="1 repeat, 5000 requests")
    parser.add_argument("--only", default="", help="the server whose name holds this")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.requests = 1, 5000
    h.end_at_sigterm()
    out = pathlib.Path(options.out).resolve()
    about = machine()
    print(f"{about['processor']}, {about['processors']} processors, {about['memory_mib']} MiB, "
          f"Linux {about['kernel']}; clients, replicas and load share them")
    print(f"before the start the machine is {quiet.wait(0).text()}", flush=True)
    results = out / "bench"
    results.mkdir(parents=True, exist_ok=True)
    log = RawLog(results / "bench-runs.jsonl", about)
    with tempfile.TemporaryDirectory(prefix="crane-bench-", dir="/var/tmp") as work:
        os.chmod(work, 0o755)
        runs = measure(Place(out, pathlib.Path(work)), options, options.requests, log)
    print_bubbles(runs)
    turns = turn_cost(out, options.quick)
    (results / "bench.json").write_text(json.dumps({"machine": about, "requests": options.requests,
                                                    "runs": runs, "turns": turns}, indent=1))
    print(f"raw data: {results / 'bench.json'}")
    plot(runs, results / "throughput.png")
    print_quiet(runs)
    return 0 if runs else 1


sys.exit(main())
