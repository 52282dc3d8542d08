#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Durability disk: all replicas of redis are killed at once, repeatedly, under RPUSH of unique ids.
Every acknowledged id is in the list exactly once afterwards, every other id at most once.

In every second round the memory of the replicas is removed as well, as by a reboot. Printed, not
asserted: how long it took until the group served again, with its log replayed from the beginning.
"""
import collections
import shutil
import signal
import threading
import time

import _harness as h
from _hosts import Hosts

CLIENTS = 4
ANSWERS = 60   # per client and round, before the replicas are killed
KEY = "ids"


class Pusher(threading.Thread):
    """Pushes ids that no other pusher pushes, each once, and remembers which were acknowledged."""

    def __init__(self, group, name):
        super().__init__(daemon=True)
        self.group, self.name_, self.port = group, name, group.port
        self.sent, self.acknowledged = [], []
        self.stopping = threading.Event()

    def run(self):
        n = 0
        while not self.stopping.is_set():
            address = self.group.addresses[n % len(self.group.addresses)]
            n += 1
            try:
                client = h.Redis(self.port, 5, address)
            except OSError:
                self.stopping.wait(0.002)
                continue
            try:
                while not self.stopping.is_set():
                    mine = f"{self.name_}:{len(self.sent)}"
                    self.sent.append(mine)
                    if isinstance(client("RPUSH", KEY, mine), int):
                        self.acknowledged.append(mine)
            except (OSError, ConnectionError, h.Failure):
                pass   # not acknowledged, never sent again
            finally:
                client.close()


def held(group):
    return collections.Counter(
        i.decode() for i in group.asked(lambda client: client("LRANGE", KEY, "0", "-1")))


def one_round(scenario, group, number, forget):
    pushers = [Pusher(group, f"{number}.{i}") for i in range(CLIENTS)]
    for p in pushers:
        p.start()
    h.wait_until(lambda: all(len(p.acknowledged) >= ANSWERS for p in pushers), 60,
                 "every client is served")
    for node in group.nodes:
        node.send_signal(signal.SIGKILL)
    for node in group.nodes:
        node.wait()
    for p in pushers:
        p.stopping.set()
    for p in pushers:
        p.join(20)
    h.wait_until(lambda: not group.leftovers(), 20, "the servers of the killed nodes are gone")
    if forget:
        shutil.rmtree(f"/dev/shm/crane.{group.name}")
    begin = time.monotonic()
    for i in range(len(group.nodes)):
        group.start(i)
    h.wait_until(group.serves, 60, f"{group.name} serves again")
    return pushers, time.monotonic() - begin


def body(scenario):
    h.need("redis-server")
    rounds = scenario.options.rounds or (50 if scenario.full else 2)
    port = h.free_port()
    sent, acknowledged, again = set(), set(), []
    with Hosts(scenario, h.redis_program(port), port=port, fabric=scenario.options.fabric,
               group={"durability": "disk"}) as group:
        bad = ""
        for number in range(rounds):
            pushers, took = one_round(scenario, group, number, forget=number % 2 == 1)
            again.append(took)
            for p in pushers:
                sent |= set(p.sent)
                acknowledged |= set(p.acknowledged)
            found = held(group)
            lost = [i for i in acknowledged if found[i] != 1]
            twice = [i for i, n in found.items() if n != 1 or i not in sent]
            if lost or twice:
                bad = f"round {number}: lost {sorted(lost)[:5]}, twice or never sent {twice[:5]}"
                break
        group.settle()
        scenario.say(f"{rounds} rounds, {len(acknowledged)} ids acknowledged, {len(sent)} sent; "
                     f"served again after {min(again):.2f} to {max(again):.2f} s")
        scenario.check(not bad, f"{rounds} x all replicas killed: acknowledged ids exactly once, "
                       "others at most once", bad)


if __name__ == "__main__":
    h.run_scenario("durable", body, rounds={"type": int, "default": 0},
                   fabric={"default": "tcp", "choices": ["tcp", "shm"]})
