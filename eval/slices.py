#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Light clients beside a long computation: eight that ask for 1 ms of work each, again and again,
while one request computes for ten seconds; natively, with a computation in one piece (--slice 0),
and in time slices, one replica and three. Also what slices cost a computation that is alone.

Writes slices.json, with every latency, and prints the table of RESULTS.md.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import _computing as c  # noqa: E402
import _harness as h  # noqa: E402

CLIENTS = 8
LIGHT = "calls 45000"               # about 1 ms natively
HEAVY = "loop 6000000000"           # about 10 s
ALONE = ("loop 600000000", "calls 45000000")
PIECE = ("--slice", "0")
VARIANTS = (("natively", 0, ()), ("one replica, in one piece", 1, PIECE),
            ("one replica, in slices", 1, ()), ("three replicas, in one piece", 3, PIECE),
            ("three replicas, in slices", 3, ()))


def timed(port, text):
    began = time.monotonic()
    c.line(port, text)
    return (time.monotonic() - began) * 1000


def beside(port):
    """(ms that the computation took, ms of each light request that began meanwhile)"""
    heavy, took, over = [], [], threading.Event()

    def ask():
        while not over.is_set():
            took.append(timed(port, LIGHT))

    def compute():
        heavy.append(timed(port, HEAVY))
        over.set()
    threads = [threading.Thread(target=compute)]
    threads += [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heavy[0], sorted(took)


def measure(port):
    for text in (*ALONE, HEAVY.replace("6000000000", "600000000")):   # to learn by
        c.line(port, text)
    alone = {text: [timed(port, text) for _ in range(3)] for text in ALONE}
    heavy, took = beside(port)
    return {"alone_ms": alone, "heavy_ms": heavy, "light_ms": took}


def one(scenario, replicas, options):
    server = c.C(work=scenario.work, out=scenario.out)
    if replicas == 0:
        process = subprocess.Popen(server.command)
        try:
            h.wait_until(lambda: can_connect(server), 10, "the server listens")
            return measure(server.port)
        finally:
            process.kill()
            process.wait()
    with h.Group(scenario, server.command, port=server.port, replicas=replicas,
                 options=options) as group:
        result = measure(server.port)
        group.stop()
    return result


def can_connect(server):
    try:
        return server.light()
    except OSError:
        return False


def row(name, runs):
    def middle(values):
        return sorted(values)[len(values) // 2]

    def part(run, percent):
        return run["light_ms"][min(len(run["light_ms"]) - 1, len(run["light_ms"]) * percent // 100)]
    cells = [f"{middle([part(r, p) for r in runs]):.1f}" for p in (50, 99)]
    cells.append(f"{middle([len(r['light_ms']) / r['heavy_ms'] * 1000 for r in runs]):.0f}")
    cells.append(f"{middle([r['heavy_ms'] for r in runs]) / 1000:.1f}")
    cells += [f"{middle([t for r in runs for t in r['alone_ms'][text]]):.0f}" for text in ALONE]
    return f"| {name} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=str(ROOT / "out/release"))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.full = False
    results = {name: [] for name, _, _ in VARIANTS}
    for _ in range(options.runs):
        for name, replicas, more in VARIANTS:
            scenario = h.Scenario("eval-slices", options)
            try:
                results[name].append(one(scenario, replicas, more))
            finally:
                shutil.rmtree(scenario.work, ignore_errors=True)
            print(row(name, results[name][-1:]), flush=True)
    place = pathlib.Path(options.out) / "bench"
    place.mkdir(exist_ok=True)
    (place / "slices.json").write_text(json.dumps(results))
    print("\n| | light, p50 ms | p99 ms | answers/s | computation, s | loop alone, ms | "
          "calls alone, ms |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, _, _ in VARIANTS:
        print(row(name, results[name]))


if __name__ == "__main__":
    main()
