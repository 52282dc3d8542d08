#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections live on while the leader's node is killed, its server is killed, it is stopped for
two seconds, and the lead is handed over: for clients that Debian has, no request fails, no
connection is reset, and the replicas' outputs are equal."""
import os
import random
import signal
import subprocess
import threading
import time

import _harness as h
from _clients import apache_configuration

FAULTS = ("kill the leader's node", "kill the leader's server", "stop the leader for 2 s",
          "hand the lead over")


class Faults:
    """Hurts the leader again and again, each time when all replicas are there."""

    def __init__(self, scenario, group, kinds, rounds):
        self.scenario, self.group, self.kinds, self.rounds = scenario, group, kinds, rounds
        self.done = []

    def whole(self):
        said = self.group.statuses(range(3))
        if not all(s and s["server_pid"] for s in said.values()):
            return False
        applied = [s["applied"] for s in said.values()]
        return max(applied) - min(applied) < 20000 and any(s["connections"] for s in said.values())

    def hurt(self, kind):
        leader = self.group.leader()
        before = self.group.status(leader)["view"]
        if kind == FAULTS[0]:
            self.group.signal_node(leader, signal.SIGKILL)
        elif kind == FAULTS[1]:
            self.group.signal_server(leader, signal.SIGKILL)
        elif kind == FAULTS[2]:
            pid = self.group.replica(leader)["node_pid"]
            os.kill(pid, signal.SIGSTOP)
            threading.Timer(2, lambda: h.alive(pid) and os.kill(pid, signal.SIGCONT)).start()
        else:
            to = random.choice([n for n in range(3) if n != leader])
            status, text = h.ctl(self.scenario, "leader", "transfer", self.group.name, "--dir",
                                 str(self.group.home), "--to", str(to))
            self.scenario.check(status == 0, "the lead is handed over", text)

        def another_leads():
            said = [s for s in self.group.statuses(range(3)).values() if s]
            return any(s["role"] == "leader" and s["view"] > before for s in said)
        h.wait_until(another_leads, 30, f"another replica leads after: {kind}")
        self.done.append(kind)

    def run(self):
        for _ in range(self.rounds):
            for kind in self.kinds:
                h.wait_until(self.whole, 60, "all replicas are there")
                self.hurt(kind)
        h.wait_until(self.whole, 60, "all replicas are there at the end")


class Client:
    """One of Debian's clients, which runs until it is told to end or has done its work."""

    def __init__(self, name, command, good, again=False):
        self.name, self.command, self.good, self.again = name, command, good, again
        self.runs, self.bad, self.ended = 0, [], False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended:
            done = subprocess.run([str(word) for word in self.command], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
            self.runs += 1
            if done.returncode != 0 or not self.good(done.stdout):
                self.bad.append(f"status {done.returncode}: {done.stdout[-600:]}")
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()


def check(scenario, group, clients, rounds):
    faults = Faults(scenario, group, FAULTS, rounds)
    for client in clients:
        client.__enter__()
    try:
        faults.run()
    finally:
        for client in clients:
            client.__exit__()
    counts = {k: faults.done.count(k) for k in FAULTS}
    scenario.say(f"{group.name}: {counts}")
    for client in clients:
        scenario.check(client.runs > 0 and not client.bad,
                       f"{client.name}: {client.runs} runs, none noticed", "\n".join(client.bad))
    said = group.settle()
    scenario.say(f"adopted {[s['adopted'] for s in said.values()]}, "
                 f"reset {[s['reset_leader'] for s in said.values()]}")
    group.stop()


def redis(scenario, rounds):
    h.need("redis-server", "redis-benchmark")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        check(scenario, group, [
            Client("redis-benchmark", ["redis-benchmark", "-p", port, "-n", 20000, "-c", 16, "-t",
                                       "set,get,incr,lpush", "--csv", "-r", 1000],
                   lambda text: "rror" not in text and text.count('"') > 8)], rounds)


def apache(scenario, rounds):
    h.need("apache2", "ab")
    port = h.free_port()
    conf = apache_configuration(scenario.work, port)
    with h.Group(scenario, ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"],
                 port=port) as group:
        url = f"http://127.0.0.1:{port}/"
        good = lambda text: "Failed requests:        0" in text
        check(scenario, group, [
            Client("ab -k", ["ab", "-q", "-k", "-n", 5000, "-c", 8, url], good),
            Client("ab", ["ab", "-q", "-n", 3000, "-c", 8, url], good)], rounds)


def body(scenario):
    rounds = 20 if scenario.full else 1
    redis(scenario, rounds)
    apache(scenario, rounds)


h.tell("connections", body)
