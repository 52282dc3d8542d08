#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run --hosts with --virtual-ip: clients of the address live on while an operator drains,
resumes and replaces the leader, while its node is killed and recovers, and when its host's part of
the group is ended; none is reset, no answer is lost or comes twice, the replicas are equal.

Printed, not asserted: how long the clients waited at a change.
"""
import os
import signal
import statistics

import _harness as h
from _network import Network
from hosts_drain import HOSTS, Apart
from moved import Client, LastWords

KINDS = ("drain", "replace", "kill")


class Changes:
    """What becomes of the leader, each time when all replicas are there."""

    def __init__(self, scenario, group, network, clients):
        self.scenario, self.group, self.network, self.clients = scenario, group, network, clients
        self.gaps = {}

    def go_on(self):
        before = [c.count for c in self.clients]
        h.wait_until(lambda: all(c.count > n + 20 or c.bad for c, n in zip(self.clients, before)),
                     60, "all clients go on")
        if any(c.bad for c in self.clients):
            raise h.Failure("\n".join(c.bad for c in self.clients if c.bad))

    def is_whole(self):
        said = self.group.statuses()
        return len(said) == HOSTS and h.is_near(said, 2000) and not any(
            s["recovery"]["catches_up"] for s in said.values())

    def operate(self, leader, word):
        status, text = self.group.ctl(leader, "replica", word, str(leader))
        self.scenario.check(status == 0, f"replica {word}", f"{status}: {text}")

    def drain(self, leader):
        self.operate(leader, "drain")
        self.go_on()
        self.operate(leader, "resume")

    def replace(self, leader):
        self.operate(leader, "replace")

    def kill(self, leader):
        """Its host recovers it at a checkpoint, which another replica takes for it."""
        os.kill(self.group.status(leader)["pid"], signal.SIGKILL)

    def end(self, leader):
        """crane-run's part on that host, as its init system would."""
        agent = self.group.agent(leader)
        os.kill(agent, signal.SIGTERM)
        h.wait_until(lambda: not h.alive(agent), 30, "the host's agent ends")

    def change(self, kind):
        h.wait_until(self.is_whole, 90, f"all replicas are there before: {kind}")
        self.go_on()
        for client in self.clients:
            client.longest = 0
        leader = self.group.leader()
        getattr(self, kind)(leader)
        following = self.group.leader(others_than=[leader])
        self.go_on()
        h.wait_until(lambda: following in self.network.holders(), 20, "it has the address")
        self.gaps.setdefault(kind, []).extend(c.longest for c in self.clients)


def live_through(scenario, group, network, rounds):
    clients = [Client(network.virtual, group.port, i) for i in range(8)]
    for client in clients:
        client.begin()
    words = LastWords(network.planes[0][0], network.virtual)
    changes = Changes(scenario, group, network, clients)
    for client in clients:
        client.start()
    try:
        for _ in range(rounds):
            for kind in KINDS:
                changes.change(kind)
        changes.change("end")
    finally:
        for client in clients:
            client.ended = True
        for client in clients:
            client.join(60)
    bad, last_words = [c.bad for c in clients if c.bad], words.heard()
    scenario.check(not bad, f"{len(clients)} clients, {rounds} x {', '.join(changes.gaps)}: all "
                   f"live on, {sum(c.count for c in clients)} answers", "\n".join(bad[:8]))
    scenario.check(not last_words, "no client is told that its connection ends",
                   f"{len(last_words)}: {last_words[:1]}")
    for kind, seconds in changes.gaps.items():
        scenario.say(f"{kind}: clients waited {statistics.median(seconds) * 1000:.0f} ms, "
                     f"at most {max(seconds) * 1000:.0f}")


def body(scenario):
    h.need("redis-server", "ip", "iptables", "mount")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    port = h.free_port()
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Network(HOSTS) as network:
        address = network.moving_address()
        with Apart(scenario, network, program, port=port,
                   options=["--virtual-ip", address["virtual_ip"],
                            "--interface", address["interface"]]) as group:
            scenario.check(f"port {port} of {network.virtual} (where the leader is), " in
                           group.said(), "crane-run names the address", group.said())
            h.wait_until(lambda: network.holders() == [group.leader()], 20, "the address is there")
            live_through(scenario, group, network,
                         scenario.options.rounds or (20 if scenario.full else 1))
            said = group.settle(60)
            reset = [s["reset_leader"] for s in said.values()]
            scenario.check(not any(reset), "no connection was reset", repr(reset))
            scenario.check(not any(s["verified"]["alarm"] for s in said.values()),
                           "the replicas are equal", repr(said))
            scenario.check(group.stop() == 0, "Ctrl-C ends the group with status 0", group.said())


if __name__ == "__main__":
    h.tell("moved_run", body, rounds={"type": int, "help": "of each change"})
