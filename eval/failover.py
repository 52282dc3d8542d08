#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fail-over times beside what they must not cost: false elections and idle processor time.

One build, three redis replicas on this host (`make eval-failover`):
  1. --rounds fresh groups per fault, under an INCR load: the leader's node SIGKILLed, or its node
     and server SIGSTOPped; the time from the fault to the first answer on a new connection
     (tests/e2e/probe.c retries every 100 us), and to the new leader's first answer on a connection
     that was there before; histogram like Mu, Figure 6.
  2. --cuts times the leader's link is cut (network namespaces, fabric tcp), under the same
     load, and mended: from the cut to the first answer of another host.
  3. over shm, then over tcp: --idle seconds without any client: processor time of all processes of
     the group, and how often its nodes are woken; then --busy minutes with 4 busy loops beside an
     idle-to-light group: elections counted, 0 expected; then --bursts minutes with 4 loops that
     come and go, beside a group that uses all the processor time it gets (24 clients of
     redis-benchmark): the same.
The program leaves a part out if its number of rounds, cuts or minutes is 0.
Raw data, with a description of the machine: <out>/failover/failover.json; plot beside it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
import usage  # noqa: E402
from _hosts import Hosts, RoamingCounter, first_answers, served, under_way  # noqa: E402
from _network import Network  # noqa: E402
from place import Place, machine, pyplot_or_none, save_plot  # noqa: E402

FAULTS = {"SIGKILL": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP}
KEPT = ", kept connection"
BUSY_LOOPS = 4
BURSTS = """
import random, time
while True:
    end = time.monotonic() + random.uniform(0.02, 0.6)
    while time.monotonic() < end:
        pass
    time.sleep(random.uniform(0.02, 0.6))
"""
CLIENTS = 4
BENCHMARK_CLIENTS, BENCHMARK_SETS = 24, 20000
REST_SECONDS = 2  # between two cuts


def probe(place, port, signo, pids):
    """Milliseconds without service: of new connections, of one that was there before."""
    done = subprocess.run([str(place.out / "e2e/probe"), "127.0.0.1", str(port), str(int(signo)),
                           *map(str, pids)], stdout=subprocess.PIPE, text=True, timeout=60)
    if done.returncode != 0:
        raise h.Failure(f"probe ended with status {done.returncode}")
    fault, answered, _, kept = map(int, done.stdout.split())
    return (answered - fault) / 1e6, (kept - fault) / 1e6


def one_round(place, fault):
    port = h.free_port()
    with h.Group(place, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        with h.Load(port, CLIENTS) as load:
            leader = group.replica(group.leader())
            pids = [leader["node_pid"]]
            if fault == "SIGSTOP":
                pids += h.descendants([leader["server_pid"]])
            gaps = probe(place, port, FAULTS[fault], pids)
            try:
                load.progress()
                load.stop()
                problems = load.problems()
            finally:
                if fault == "SIGSTOP":
                    for pid in pids:
                        with contextlib.suppress(ProcessLookupError):  # the new leader ends them
                            os.kill(pid, signal.SIGCONT)
        if problems:
            raise h.Failure(f"{fault}: {problems[:3]}")
    return gaps


def fail_over(place, rounds):
    """{fault: [milliseconds]}, the faults interleaved."""
    gaps = {fault + kept: [] for fault in FAULTS for kept in ("", KEPT)} if rounds else {}
    for _ in range(rounds):
        for fault in FAULTS:
            for kept, gap in zip(("", KEPT), one_round(place, fault)):
                gaps[fault + kept].append(gap)
    return gaps


def cut_off(place, rounds):
    """Milliseconds without service at another host after the leader's link was cut."""
    port = h.free_port()
    gaps = []
    with Network(3) as network, \
            Hosts(place, h.redis_program(port, "--protected-mode", "no"), port=port, fabric="tcp",
                  addresses=network.addresses, prefix=network.enter) as group, \
            counting(group, CLIENTS) as clients:
        for _ in range(rounds):
            leader = group.leader()
            network.link(leader, "down")
            gaps += first_answers(group, time.monotonic_ns(),
                                  [group.addresses[(leader + 1) % 3]])
            following = group.leader(others_than=[leader])
            network.link(leader, "up")

            def mended(old=leader, new=following):
                said = group.status(old)
                return said is not None and said["role"] == "follower" and said["leader"] == new
            h.wait_until(mended, 30, f"the old leader, replica {leader}, follows {following}")
            served(clients)
            # One fault at a time: the kernel asks again on the mended links up to a second later.
            time.sleep(REST_SECONDS)
    return gaps


@contextlib.contextmanager
def counting(group, count):
    clients = [RoamingCounter(group, i) for i in range(count)]
    with under_way(clients):
        yield clients
    problems = group.problems_of(clients)
    if problems:
        raise h.Failure(f"{problems[:3]}")


def at_rest(group, seconds):
    """What the group does for itself: processor time, and how often its nodes are woken."""
    pids, before, begin = group.processes(), group.statuses(), time.monotonic()
    used = -usage.seconds_of(pids)
    h.wait_until(lambda: time.monotonic() > begin + seconds, seconds + 5, "the time is over")
    used += usage.seconds_of(pids)
    after, took = group.statuses(), time.monotonic() - begin
    woken = {said["role"]: [] for said in after.values()}
    for n, said in after.items():
        woken[said["role"]].append((said["wakeups"] - before[n]["wakeups"]) / took)
    return {"idle_cpu_percent": 100 * used / took, "idle_seconds": took,
            "wakeups_per_second": woken}


def views(group):
    return [said["view"] for said in group.statuses().values() if said]


@contextlib.contextmanager
def loops_of(code):
    loops = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def steady_group(place, fabric):
    port = h.free_port()
    program = h.redis_program(port)
    if fabric != "shm":
        return Hosts(place, program, port=port, fabric=fabric)
    return h.Group(place, program, port=port)


def busy_and_idle(place, fabric, minutes, idle_seconds):
    with steady_group(place, fabric) as group:
        group.settle()
        found = at_rest(group, idle_seconds)
        before, answers = views(group), 0
        if minutes:
            with loops_of("while True: pass"), counting(group, 1) as clients:
                end = time.monotonic() + 60 * minutes
                h.wait_until(lambda: time.monotonic() > end, 60 * minutes + 5, "the time is over")
            answers = clients[0].answers
        return {**found, "busy_minutes": minutes, "elections": max(views(group)) - max(before),
                "views_before": before, "views_after": views(group), "answers": answers}


def among_bursts(place, fabric, minutes):
    """Answers, and the elections meanwhile."""
    answers, broken = 0, 0
    with steady_group(place, fabric) as group:
        group.settle()
        before = views(group)
        with loops_of(BURSTS):
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                words = ["redis-benchmark", "-h", group.addresses[group.leader()], "-p",
                         str(group.port), "-t", "set", "-c", str(BENCHMARK_CLIENTS), "-n",
                         str(BENCHMARK_SETS), "--csv"]
                try:
                    good = subprocess.run(words, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL, timeout=120).returncode == 0
                except subprocess.TimeoutExpired:  # it may spin for ever when it was reset
                    good = False
                answers, broken = answers + BENCHMARK_SETS * good, broken + (not good)
        return {"minutes": minutes, "answers": answers, "broken_runs": broken,
                "elections": max(views(group)) - max(before)}


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def plot(path, gaps):
    pyplot = pyplot_or_none()
    if not pyplot or not gaps:
        return
    figure, panes = pyplot.subplots(1, len(gaps), figsize=(4.5 * len(gaps), 3), squeeze=False)
    for pane, (fault, values) in zip(panes[0], gaps.items()):
        pane.hist(values, bins=40, color="#3465a4")
        pane.axvline(statistics.median(values), color="#cc0000", linewidth=1)
        pane.set_title(f"{fault}: median {statistics.median(values):.2f} ms, "
                       f"n = {len(values)}", fontsize=9)
        pane.set_xlabel("fault to first answer, ms")
        pane.set_ylabel("rounds")
    save_plot(figure, path, 130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out/release")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=200, help="of the leader's link, over tcp")
    parser.add_argument("--busy", type=float, default=10, help="minutes of full processor load")
    parser.add_argument("--fabrics", default="shm,tcp", help="of the busy and idle runs")
    parser.add_argument("--idle", type=float, default=30, help="seconds without clients")
    parser.add_argument("--bursts", type=float, default=2, help="minutes of loops that come and go")
    options = parser.parse_args()
    h.need("redis-server", "redis-benchmark")
    about = machine()
    out = pathlib.Path(options.out).resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-failover-", dir="/var/tmp"))
    work.chmod(0o755)
    place = Place(out, work, "failover")
    try:
        gaps = fail_over(place, options.rounds)
        if options.cuts:
            gaps["cut off (tcp)"] = cut_off(place, options.cuts)
        steady = {fabric: busy_and_idle(place, fabric, options.busy, options.idle)
                  for fabric in options.fabrics.split(",") if fabric}
        bursts = {fabric: among_bursts(place, fabric, options.bursts)
                  for fabric in options.fabrics.split(",") if fabric and options.bursts}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for fault, values in gaps.items():
        print(f"{fault}: {len(values)} rounds: median {statistics.median(values):.2f} ms, "
              f"p90 {percentile(values, 0.9):.2f}, p99 {percentile(values, 0.99):.2f}, "
              f"worst {max(values):.2f}")
    for fabric, found in steady.items():
        if found["busy_minutes"]:
            print(f"{fabric}: {found['busy_minutes']:g} minutes of {BUSY_LOOPS} busy loops on "
                  f"{os.cpu_count()} cores: {found['elections']} elections, "
                  f"{found['answers']} answers")
        print(f"{fabric}: idle: {found['idle_cpu_percent']:.2f} % of one core in "
              f"{found['idle_seconds']:.0f} s, woken a second: "
              + ", ".join(f"{role} {rate:.0f}" for role, rates
                          in sorted(found["wakeups_per_second"].items()) for rate in rates))
    for fabric, found in bursts.items():
        print(f"{fabric}: {found['minutes']:g} minutes of {BUSY_LOOPS} loops that come and go: "
              f"{found['elections']} elections, {found['answers']} answers to "
              f"{BENCHMARK_CLIENTS} clients, {found['broken_runs']} broken runs")
    results = out / "failover"
    results.mkdir(parents=True, exist_ok=True)
    raw = {"machine": about, "rounds_ms": gaps, "steady": steady, "bursts": bursts}
    (results / "failover.json").write_text(json.dumps(raw, indent=1))
    print(f"raw: {results}/failover.json")
    plot(results / "failover.png", gaps)
    return 1 if any(found["elections"] for found in [*steady.values(), *bursts.values()]) else 0


if __name__ == "__main__":
    sys.exit(main())
