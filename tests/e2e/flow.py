#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flow control (proxy/replica/role/flow_control.h): while both followers are slow, the leader's
clients wait for the faster one; with --lag 0 they do not. While both are stopped, clients are
served, also when the log since the newest checkpoint fills the ring, because no checkpoint can be
taken (KEEP-1)."""
import contextlib
import os
import signal
import subprocess
import threading
import time

import _harness as h

ON_SECONDS, OFF_SECONDS = 0.005, 0.2   # duty cycle of a slow server
AHEAD = 2000   # entries; a limit of 50 ms never lets a follower lag this much for long


class Slow(threading.Thread):
    """Stops a process most of the time."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.ended = pid, threading.Event()

    def run(self):
        while not self.ended.is_set():
            os.kill(self.pid, signal.SIGSTOP)
            time.sleep(OFF_SECONDS)
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(ON_SECONDS)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def waited(group):
    return sum(s["waited_ms"] for s in group.statuses().values() if s)


def ahead(group):
    """How many entries the leader's server is ahead of the faster follower's."""
    seen = group.statuses()
    leader = group.leader()
    return seen[leader]["applied"] - max(s["applied"] for n, s in seen.items() if n != leader)


def loaded(scenario, lag, enough):
    """Load with two slow followers until `enough` returns true; the group ends equal."""
    port, what = h.free_port(), f"--lag {lag}"
    options = ["--lag", str(lag), "--checkpoint-every", "0"]   # CRIU fails on stopped processes
    with h.Group(scenario, h.redis_program(port), port=port, record=True, options=options) as group:
        leader = group.leader()
        pids = [group.status(n)["server_pid"] for n in range(3) if n != leader]
        with contextlib.ExitStack() as stack:
            for pid in pids:
                stack.enter_context(Slow(pid))
            load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-l", "-t", "set", "-n",
                                     "20000", "-c", "16", "-q"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            try:
                found = h.wait_until(lambda: enough(group), 60, f"{what}: a leader ahead")
            finally:
                load.kill()
                load.wait()
        group.settle(60)
        group.check_calm()
        group.stop()
        scenario.check_equal(group, what=f"{what}: outputs are equal")
        scenario.check_schedule(group, what=f"{what}: schedules are equal")
        return found


def stopped(scenario):
    """More than the ring holds is written while no follower's server runs."""
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port, options=["--ring-mb", "16"]) as group:
        h.wait_until(group.may_lose_one, 60, "the group can lose a replica")
        leader = group.leader()
        log = group.dir / f"r{leader}/node.log"
        pids = [pid for n in range(3) if n != leader
                for pid in h.descendants([group.status(n)["server_pid"]])]
        with contextlib.ExitStack() as stack:
            for pid in pids:
                stack.enter_context(h.stopped(pid))
            client = h.Redis(port, 60)
            written = 0
            while "not kept whole any more" not in log.read_text(errors="replace"):
                client("SET", f"filler {written % 4}", "x" * 100_000)
                written += 1
                if written > 2000:
                    raise h.Failure("the log is kept, although no checkpoint can be taken")
            for n in range(300):   # more than the ring holds
                client("SET", f"filler {n % 4}", "x" * 100_000)
            scenario.check(written > 50, "both followers' servers are stopped: clients are served "
                           f"when the kept log is full, after {written} writes")
            client.close()
        group.remember(group.state())
        group.settle(60)


def body(scenario):
    h.need("redis-server", "redis-benchmark")
    ms = loaded(scenario, 50, waited)
    scenario.check(ms > 0, "--lag 50: clients wait for two slow followers")
    entries, ms = loaded(scenario, 0, lambda group: ahead(group) > AHEAD and
                         (ahead(group), waited(group)))
    scenario.check(ms == 0, f"--lag 0: the leader was ahead by {entries} entries, no client waited",
                   f"{ms} ms")
    if h.can_contain():
        stopped(scenario)


h.run_scenario("flow", body)
