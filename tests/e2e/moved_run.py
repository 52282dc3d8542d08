#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run --hosts with --virtual-ip: clients of the address keep their connections while an
operator drains, resumes and replaces the leader, while its node is killed and recovers, and when
its host's part of the group is ended. None is reset, no answer is lost or comes twice, the replicas
are equal.

Printed, not asserted: how long the clients waited at a change.
"""
import os
import signal

import _harness as h
import _takeovers as t
from _network import Network
from hosts_drain import HOSTS, Apart
from moved import Changes, Client, LastWords, change_all, judge

KINDS = ("drain", "replace", "kill")


class Operated(Changes):
    """The changes that happen to the leader if crane-run's agents start the nodes."""

    def operate(self, leader, word):
        status, text = self.group.ctl(leader, "replica", word, str(leader))
        self.scenario.check(status == 0, f"replica {word}", f"{status}: {text}")

    def drain(self, leader):
        self.operate(leader, "drain")
        self.goes_on()
        self.operate(leader, "resume")

    def replace(self, leader):
        self.operate(leader, "replace")

    def kill(self, leader):
        """Kills the leader. Its host recovers it from a checkpoint that another replica takes."""
        os.kill(self.group.status(leader)["pid"], signal.SIGKILL)
        self.group.leader(others_than=[leader])

    def end(self, leader):
        """Ends crane-run's part on that host, as its init system would."""
        agent = self.group.agent(leader)
        os.kill(agent, signal.SIGTERM)
        h.wait_until(lambda: not h.alive(agent), 30, "the host's agent ends")
        self.has_it_alone(self.group.leader(others_than=[leader]))


def body(scenario):
    h.need("redis-server", "ip", "iptables", "mount")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    rounds = scenario.options.rounds or (20 if scenario.full else 1)
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
            clients = [Client(network.virtual, port, i) for i in range(8)]
            for client in clients:
                client.begin()
            words = LastWords(network.planes[0][0], network.virtual)
            changes = Operated(scenario, group, network, clients)
            change_all(changes, rounds, KINDS, "end")
            judge(scenario, changes, rounds, words)
            t.are_equal(scenario, group, group.settle(60))
            scenario.check(group.stop() == 0, "Ctrl-C ends the group with status 0", group.said())


if __name__ == "__main__":
    h.run_scenario("moved_run", body, rounds={"type": int, "help": "for each change"})
