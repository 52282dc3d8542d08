# SPDX-License-Identifier: Apache-2.0
"""Fail-over times beside what they must not cost: false elections and idle processor time.

Three redis replicas on this host:
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
A part is left out if its number of rounds, cuts or minutes is 0.
"""
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

import _harness as h
import tables
import usage
from _hosts import Hosts, RoamingCounter, first_answers, served, under_way
from _network import Network

OPTIONS = {"rounds": (200, "of each fault"), "cuts": (200, "of the leader's link, over tcp"),
           "busy": (10.0, "minutes of full processor load"),
           "fabrics": ("shm,tcp", "of the busy and idle runs"),
           "idle": (30.0, "seconds without clients"),
           "bursts": (2.0, "minutes of loops that come and go")}
PROGRAMS = ("redis-server", "redis-benchmark")
FAULTS = {"SIGKILL": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP}
BUSY_LOOPS, BUSY = 4, "while True: pass"
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


def one_fault(place, fault):
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
                wrong = load.problems()
            finally:
                if fault == "SIGSTOP":
                    for pid in pids:
                        with contextlib.suppress(ProcessLookupError):  # the new leader ends them
                            os.kill(pid, signal.SIGCONT)
        if wrong:
            raise h.Failure(f"{fault}: {wrong[:3]}")
    return gaps


def cut_off(place, rounds):
    """Milliseconds without service at another host after the leader's link was cut."""
    port = h.free_port()
    with Network(3) as network, \
            Hosts(place, h.redis_program(port, "--protected-mode", "no"), port=port, fabric="tcp",
                  addresses=network.addresses, prefix=network.enter) as group, \
            counting(group, CLIENTS) as clients:
        for _ in range(rounds):
            leader = group.leader()
            network.link(leader, "down")
            yield from first_answers(group, time.monotonic_ns(),
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


@contextlib.contextmanager
def counting(group, count):
    clients = [RoamingCounter(group, i) for i in range(count)]
    with under_way(clients):
        yield clients
    wrong = group.problems_of(clients)
    if wrong:
        raise h.Failure(f"{wrong[:3]}")


def at_rest(group, seconds):
    """Measures an idle group: its processor time, and how often its nodes are woken."""
    pids, before, begin = group.processes(), group.statuses(), time.monotonic()
    used = -usage.seconds_of(pids)
    time.sleep(seconds)
    used += usage.seconds_of(pids)
    after, took = group.statuses(), time.monotonic() - begin
    woken = {said["role"]: [] for said in after.values()}
    for n, said in after.items():
        woken[said["role"]].append((said["wakeups"] - before[n]["wakeups"]) / took)
    return {"idle_cpu_percent": 100 * used / took, "idle_seconds": took,
            "wakeups_per_second": woken}


def views(group):
    return max(said["view"] for said in group.statuses().values() if said)


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
    return (h.Group(place, program, port=port) if fabric == "shm"
            else Hosts(place, program, port=port, fabric=fabric))


def light_load(group, end):
    """Returns (answers, broken runs)"""
    with counting(group, 1) as clients:
        time.sleep(max(end - time.monotonic(), 0))
    return clients[0].answers, 0


def full_load(group, end):
    answers, broken = 0, 0
    while time.monotonic() < end:
        words = ["redis-benchmark", "-h", group.addresses[group.leader()], "-p", str(group.port),
                 "-t", "set", "-c", str(BENCHMARK_CLIENTS), "-n", str(BENCHMARK_SETS), "--csv"]
        try:
            good = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=120).returncode == 0
        except subprocess.TimeoutExpired:  # it may spin for ever when it was reset
            good = False
        answers, broken = answers + BENCHMARK_SETS * good, broken + (not good)
    return answers, broken


# Name: (what the loops do, the load beside them).
LOOPS = {"busy loops": (BUSY, light_load), "loops that come and go": (BURSTS, full_load)}


def among_loops(place, fabric, part, minutes, idle_seconds=0):
    code, load = LOOPS[part]
    with steady_group(place, fabric) as group:
        group.settle()
        found = at_rest(group, idle_seconds) if idle_seconds else {}
        before, answers, broken = views(group), 0, 0
        if minutes:
            with loops_of(code):
                answers, broken = load(group, time.monotonic() + 60 * minutes)
        return {"part": part, "minutes": minutes, **found, "answers": answers,
                "broken_runs": broken, "elections": views(group) - before}


def measure(x):
    o = x.options
    for repeat in range(o.rounds):
        for fault in FAULTS:
            new, kept = one_fault(x.place, fault)
            x.add({"key": [fault, repeat], "fault": fault, "ms": new})
            x.add({"key": [fault, "kept", repeat], "fault": f"{fault}, kept connection",
                   "ms": kept})
    for repeat, gap in enumerate(cut_off(x.place, o.cuts) if o.cuts else ()):
        x.add({"key": ["cut", repeat], "fault": "cut off (tcp)", "ms": gap})
    for fabric in filter(None, o.fabrics.split(",")):
        for part, minutes, idle in zip(LOOPS, (o.busy, o.bursts), (o.idle, 0)):
            if minutes or idle:
                x.add({"key": [part, fabric, 0], "fabric": fabric,
                       **among_loops(x.place, fabric, part, minutes, idle)})


def gaps_of(rows):
    """{fault: sorted milliseconds}"""
    return {fault: sorted(r["ms"] for r in some) for fault, some in
            tables.grouped([r for r in rows if "fault" in r], "fault").items()}


def text(rows, _):
    gaps = [[fault, len(ms), f"{statistics.median(ms):.2f}",
             *(f"{tables.percentile(ms, p):.2f}" for p in (90, 99)), f"{ms[-1]:.2f}"]
            for fault, ms in gaps_of(rows).items()]
    steady = [r for r in rows if "part" in r]
    idle = [[r["fabric"], f"{r['idle_cpu_percent']:.2f} %", f"{r['idle_seconds']:.0f}",
             ", ".join(f"{role} {rate:.0f}" for role, rates
                       in sorted(r["wakeups_per_second"].items()) for rate in rates)]
            for r in steady if "idle_seconds" in r]
    busy = [[f"{r['fabric']}: {BUSY_LOOPS} {r['part']} on {os.cpu_count()} cores",
             f"{r['minutes']:g}", r["elections"], r["answers"], r["broken_runs"]]
            for r in steady if r["minutes"]]
    return "\n\n".join([
        tables.table(["fault to first answer, ms", "rounds", "median", "p90", "p99", "worst"],
                     gaps),
        tables.table(["idle", "of one core", "seconds", "woken a second"], idle),
        tables.table(["busy", "minutes", "elections", "answers", "broken runs"], busy)])


def panes(rows, _):
    return [tables.histogram(ms, "fault to first answer, ms",
                             f"{fault}: median {statistics.median(ms):.2f} ms, n = {len(ms)}")
            for fault, ms in gaps_of(rows).items()]


def problems(rows, _):
    return [f"{row['fabric']}, {row['part']}: {row['elections']} elections"
            for row in rows if row.get("elections")]
