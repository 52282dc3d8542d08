#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: a leader whose server is stalled hands over, and no other leader does (LAG-1; `make
accept`).
METHOD: with redis and apache2, the leader's server is stopped, then runs for 5 ms in every 100;
with redis alone, the group runs beside two busy loops that come and go, bursts of clients and
checkpoints.
CHECKS: no client waits longer than 300 ms in the first two parts; the leader stays the same in the
third.
"""
import os
import signal
import subprocess
import threading
import time

import _harness as h
import storm

STOPS = 10
STOP_SECONDS = 3.0
DUTY_SECONDS, RUNS, STANDS = 20.0, 0.005, 0.095
LIMIT = 0.3
MINUTES = 30.0


class Stopped:
    """While the block runs, the leader's server is stopped, or runs only a fraction of the time."""

    def __init__(self, group, runs=0.0):
        server = group.replica(group.leader())["server_pid"]
        self.pids, self.runs, self.ends = h.descendants([server]), runs, threading.Event()
        self.thread = threading.Thread(target=self.cycle, daemon=True)

    def signal(self, signo):
        for pid in self.pids:
            if h.alive(pid):
                os.kill(pid, signo)

    def cycle(self):
        while not self.ends.is_set():
            self.signal(signal.SIGSTOP)
            self.ends.wait(STANDS)
            if self.runs:
                self.signal(signal.SIGCONT)
                time.sleep(self.runs)   # no condition: the fault

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        self.signal(signal.SIGCONT)


def longest(crowd, since):
    """The longest wait, after `since`, of requests answered since then or still waiting."""
    now = time.monotonic()
    return max((w.until(now) - max(w.asked, since) for w in crowd.waits() if w.until(now) > since),
               default=0.0)


def stands(scenario, kind):
    work = scenario.work / kind.name
    work.mkdir()
    work.chmod(0o755)
    server = kind(scenario, work, 1)
    with h.Group(scenario, server.program, port=server.port, options=server.options) as group:
        crowd = storm.c.Crowd([c for c in server.clients()
                               if type(c).__name__ in ("Counting", "Kept", "Pipelining")])
        crowd.start()
        crowd.progress(60, "every client is served")
        waits = []
        for runs, count, seconds in ((0.0, STOPS, STOP_SECONDS), (RUNS, 3, DUTY_SECONDS)):
            for _ in range(count):
                h.wait_until(group.may_lose_one, 120, "the group can lose a replica")
                crowd.progress(60, "every client is served")
                began = time.monotonic()
                with Stopped(group, runs):
                    time.sleep(seconds)   # no condition: the fault
                waits.append(longest(crowd, began))
            what = "stopped" if not runs else "runs 5 ms of each 100"
            scenario.say(f"{kind.name}, the leader's server {what}: clients waited "
                         f"{', '.join(f'{w * 1000:.0f}' for w in waits)} ms")
            scenario.check(max(waits) <= LIMIT, f"{kind.name}, {what}: no client waited longer "
                           "than 300 ms", f"{max(waits) * 1000:.0f} ms")
            waits = []
        crowd.stop()
        scenario.check(not crowd.wrong(), f"{kind.name}: no wrong answer", crowd.wrong()[:3])
        group.remember(group.state())
        group.settle(60)


def loops(seconds):
    return [subprocess.Popen(["timeout", str(seconds), "sh", "-c", "while :; do :; done"])
            for _ in range(2)]


def stays(scenario, minutes):
    server = storm.Redis(scenario, scenario.work, 1)
    with h.Group(scenario, server.program, port=server.port, options=server.options) as group:
        h.wait_until(group.may_lose_one, 60, "the group can lose a replica")
        crowd = storm.c.Crowd([c for c in server.clients() if type(c).__name__ == "Counting"])
        crowd.start()
        reigns, leader, end = group.reigns(), group.leader(), time.monotonic() + 60 * minutes
        begun, turn = [], 0
        while time.monotonic() < end:
            begun = [p for p in begun if p.poll() is None]
            begun += loops(20) if turn % 4 == 0 else []
            begun.append(subprocess.Popen(["timeout", "4", *server.load],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            if turn % 2:
                h.ctl(scenario, "checkpoint", "now", group.name, "--dir", str(group.home))
            time.sleep(10)   # no condition: the load
            turn += 1
        for process in begun:
            process.wait(60)
        crowd.stop()
        scenario.check(group.leader() == leader and group.reigns() == reigns,
                       f"{minutes:.0f} minutes of busy loops, bursts and checkpoints: the leader "
                       "is the same", f"{reigns} {group.reigns()}")
        scenario.say(f"longest wait in these {minutes:.0f} minutes: "
                     f"{longest(crowd, 0) * 1000:.0f} ms")
        group.remember(group.state())
        group.settle(60)


def body(scenario):
    h.need(*storm.Redis.programs, *storm.Apache.programs)
    minutes = scenario.options.minutes
    for kind in (storm.Redis, storm.Apache):
        stands(scenario, kind)
    if minutes:
        stays(scenario, minutes)


if __name__ == "__main__":
    h.run_scenario("accept_lead", body, minutes={"type": float, "default": MINUTES,
                                                 "help": "during which the leader must not change"})
