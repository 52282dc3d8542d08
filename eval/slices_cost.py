#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What time slices cost a computation that is alone: servers of the slices scenario, one replica
in slices and one with --slice 0 at the same time, asked in turns for the same work.

Writes slices_cost.json, with every time, and prints a table of medians.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import _computing as c  # noqa: E402
import _harness as h  # noqa: E402
import _web  # noqa: E402

PIECE = ("--slice", "0")


def benchmark(server):
    subprocess.run(["redis-benchmark", "-p", str(server.port), "-n", "30000", "-c", "16", "-q",
                    "-t", "set,get"], stdout=subprocess.DEVNULL, check=True)


WORK = {   # name: (kind, what it is asked)
    "C, a loop without a call": (c.C, lambda s: c.line(s.port, "loop 1000000000")),
    "C, a loop of calls": (c.C, lambda s: c.line(s.port, "calls 50000000")),
    "perl": (c.Perl, lambda s: s.compute()),
    "Python": (c.Python, lambda s: s.compute()),
    "PHP": (c.Php, lambda s: s.compute()),
    "PHP, pages of 5 ms": (c.Php, lambda s: [_web.get(s.port, "/page.php?n=300000")
                                             for _ in range(200)]),
    "redis, a script": (c.Redis, lambda s: s.compute()),
    "redis, redis-benchmark": (c.Redis, benchmark),
    "PostgreSQL, PL/pgSQL": (c.Postgres, lambda s: s.compute()),
    "PostgreSQL, pgbench": (c.Postgres, lambda s: s.server.bench("-S", "-t", "3000")),
    "MariaDB, benchmark()": (c.Mariadb, lambda s: s.compute()),
}


def measure(options, kind, ask, runs):
    """[(seconds in slices, in one piece)]"""
    scenario, groups = h.Scenario("eval-slices-cost", options), []
    try:
        servers = []
        for name, more in (("slices", ()), ("piece", PIECE)):
            work = scenario.work / name
            work.mkdir()
            work.chmod(0o755)
            servers.append(kind(work=work, out=scenario.out))
            groups.append(h.Group(scenario, servers[-1].command, port=servers[-1].port, replicas=1,
                                  options=(*servers[-1].options, *more)))
            groups[-1].start()
            h.wait_until(servers[-1].ready, 60, "it answers")
            for _ in range(3):   # to learn by
                ask(servers[-1])
        took = []
        for i in range(runs):
            pair = [0.0, 0.0]
            for which in (0, 1) if i % 2 == 0 else (1, 0):
                began = time.monotonic()
                ask(servers[which])
                pair[which] = time.monotonic() - began
            took.append(pair)
        return took
    finally:
        for group in groups:
            group.stop()
        shutil.rmtree(scenario.work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=str(ROOT / "out/release"))
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.full = False
    results = {}
    print("| | in slices, s | in one piece, s | cost, % | spread of the ratios, % |\n"
          "| --- | ---: | ---: | ---: | ---: |")
    for name, (kind, ask) in WORK.items():
        if options.names and not any(n in name for n in options.names):
            continue
        took = results[name] = measure(options, kind, ask, options.runs)
        ratios = sorted((a / b - 1) * 100 for a, b in took)
        print(f"| {name} | {statistics.median(a for a, _ in took):.3f} | "
              f"{statistics.median(b for _, b in took):.3f} | {statistics.median(ratios):+.1f} | "
              f"{ratios[0]:+.1f} to {ratios[-1]:+.1f} |", flush=True)
    place = pathlib.Path(options.out) / "bench"
    place.mkdir(exist_ok=True)
    (place / "slices_cost.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
