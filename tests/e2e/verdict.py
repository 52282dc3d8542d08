#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: status is truthful: VERDICT-1, VERDICT-2 on running groups.
METHOD: crane-ctl status runs repeatedly next to a client, while the leader is killed as soon as
status reports that the group can lose a replica; then all processes of a group with its log on disk
are killed.
CHECKS: no status reports `serving` while the client has waited for 300 ms and still waits; pages
and crane-ctl have one verdict; a replay is reported with entries done, entries to go and time left.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time

import _harness as h
from _monitoring import ask, free_ports

KILLS = 3
WAITS = 0.3
REPLAY = re.compile(r"not serving: replaying, [\d,]+ of [\d,]+ entries(, .* left)?$")


class Client(threading.Thread):
    """Counts, one request after another; reconnects when it must."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.asked_at = port, 0, None
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            self.asked_at = self.asked_at or time.monotonic()
            try:
                client = h.Redis(self.port, 60)
                while not self.stopping.is_set():
                    self.asked_at = self.asked_at or time.monotonic()
                    client("INCR", "n")
                    self.asked_at = None
                    self.answers += 1
                    self.stopping.wait(0.002)
                client.close()
            except (OSError, h.Failure, ValueError):
                self.stopping.wait(0.01)

    def end(self):
        self.stopping.set()
        self.join(70)


class Watcher(threading.Thread):
    """Runs crane-ctl, and notes each `serving` while the client waits."""

    def __init__(self, group, client):
        super().__init__(daemon=True)
        self.group, self.client = group, client
        self.texts, self.lies, self.polls = [], [], 0
        self.doubted = None   # the request that was waiting despite `serving` at the last look
        self.stopping = threading.Event()

    def look(self):
        began, waits = time.monotonic(), self.client.asked_at
        answer = self.group.verdict()[1]
        self.polls += 1
        text = answer["verdict"]["text"]
        if not self.texts or self.texts[-1] != text:
            self.texts.append(text)
        # The same request waited before the status call and after its answer.
        waited = waits is not None and began - waits > WAITS and self.client.asked_at == waits
        # At the end of an outage the verdict may be slightly earlier than the answer; at the next
        # look the same request has been answered.
        contradicts = waits if waited and answer["verdict"]["serving"] else None
        if contradicts is not None and contradicts == self.doubted:
            self.lies.append(f"{text}: the client had waited {began - waits:.2f} s")
        self.doubted = contradicts

    def run(self):
        while not self.stopping.wait(0.02):
            try:
                self.look()
            except ValueError:
                continue   # the group is absent for a moment

    def end(self):
        self.stopping.set()
        self.join(30)


def kill(group, replica):
    row = group.replica(replica)
    for pid in (row["node_pid"], row["server_pid"]):
        with contextlib.suppress(ProcessLookupError, TypeError):   # its container ended with it
            os.kill(pid, signal.SIGKILL)


def killed_leaders(scenario):
    port, first = h.free_port(), free_ports(3)
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--http", str(first)]) as group:
        def verdicts():
            pages = [json.loads(ask(first + i, "/status")[1]) for i in range(3)]
            return {seen["verdict"]["text"] for seen in [*pages, group.verdict()[1]]}
        h.wait_until(group.may_lose_one, 60, "the group can lose a replica")
        h.wait_until(lambda: verdicts() == {"serving, 3 of 3, fault tolerant"}, 60,
                     "every page and crane-ctl have one verdict")
        client = Client(port)
        watcher = Watcher(group, client)
        client.start()
        watcher.start()
        for _ in range(KILLS):
            h.wait_until(group.may_lose_one, 90, "the group can lose a replica")
            answers = client.answers
            kill(group, group.leader())
            h.wait_until(lambda: client.answers > answers + 20, 60, "the client is served again")
        h.wait_until(lambda: watcher.polls > 20, 60, "status was called often")
        watcher.end()
        client.end()
        scenario.check(not watcher.lies,
                       f"{watcher.polls} verdicts during {KILLS} losses: none was serving while "
                       "the client waited", "; ".join(watcher.lies[:5]))
        said = [text for text in watcher.texts if not text.startswith("serving, 3 of 3, fault tol")]
        scenario.check(said, "losses appear in the verdict", str(watcher.texts[:20]))
        print("   " + "\n   ".join(watcher.texts), flush=True)


def all_are_lost(scenario):
    port = h.free_port()
    group = h.Group(scenario, h.redis_program(port), port=port, name="replays",
                    options=["--durability", "disk", "--checkpoint-every", "0",
                             "--checkpoint-log", "0"])
    with group:
        h.wait_until(group.may_lose_one, 60, "the group can lose a replica")
        subprocess.run(["redis-benchmark", "-p", str(port), "-c", "8", "-n", "60000", "-q", "-t",
                        "set"], stdout=subprocess.DEVNULL, check=True, timeout=120)
        client = Client(port)
        watcher = Watcher(group, client)
        for replica in range(3):
            kill(group, replica)
        client.start()
        watcher.start()
        h.wait_until(lambda: client.answers > 0, 120, "the group serves again")
        h.wait_until(group.may_lose_one, 90, "the group can lose a replica again")
        watcher.end()
        client.end()
        print("   " + "\n   ".join(watcher.texts[:40]), flush=True)
        scenario.check(not watcher.lies, "a lost group does not serve while the client waits",
                       "; ".join(watcher.lies[:5]))
        scenario.check(any(REPLAY.match(text) for text in watcher.texts),
                       "the replay is reported, with entries and time left",
                       str(watcher.texts[:40]))


def body(scenario):
    h.need("redis-server", "redis-benchmark")
    killed_leaders(scenario)
    all_are_lost(scenario)


h.run_scenario("verdict", body)
