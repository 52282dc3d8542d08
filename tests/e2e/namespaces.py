#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three hosts as network namespaces behind a bridge, redis over tcp. The leader's link is cut and
mended, under an INCR load; the others continue, the virtual address moves, the hook runs, the old
leader follows again, outputs stay equal.

Printed, not asserted: the time from the cut to the first answer on a new connection to another
host, and to the virtual address.
"""
import statistics
import time

import _harness as h
from _hosts import Hosts, RoamingCounter, first_answers, served, under_way
from _network import Network

HOSTS = 3


def cut_and_mend(scenario, group, network):
    """Milliseconds without service for clients of another host, and of the virtual address."""
    leader = group.leader()
    network.link(leader, "down")
    gaps = first_answers(group, time.monotonic_ns(),
                         [group.addresses[(leader + 1) % HOSTS], network.virtual])
    following = group.leader(others_than=[leader])
    network.link(leader, "up")

    def mended():
        status = group.status(leader)
        return status is not None and status["role"] == "follower" and status["leader"] == following
    h.wait_until(mended, 30, f"the old leader, replica {leader}, follows {following}")
    h.wait_until(lambda: network.holders() == [following], 10,
                 f"replica {following} alone has the virtual address")
    h.wait_until(lambda: f"{leader} follower {following}" in group.hook.read_text(), 10,
                 "the hook of the old leader's host was called with the new leader")
    return gaps


def body(scenario):
    h.need("redis-server", "ip")
    rounds = scenario.options.rounds or (20 if scenario.full else 2)
    port = h.free_port()
    hook = scenario.work / "hook"
    notes = scenario.work / "told"
    notes.touch()
    hook.write_text(f'#!/bin/sh\necho "$CRANE_REPLICA $CRANE_ROLE $CRANE_LEADER" >> {notes}\n')
    hook.chmod(0o755)
    with Network(HOSTS) as network, \
            Hosts(scenario, h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0"),
                  port=port, fabric="tcp",
                  addresses=network.addresses, record=True, hooks={"role_change": str(hook)},
                  clients={"listen": "any", **network.moving_address()},
                  prefix=network.enter) as group:
        group.hook = notes
        clients = [RoamingCounter(group, i) for i in range(4)]
        gaps = []
        with under_way(clients):
            for _ in range(rounds):
                gaps.append(cut_and_mend(scenario, group, network))
                served(clients)
        problems = group.problems_of(clients)
        scenario.say(f"{rounds} cuts of the leader, {sum(c.answers for c in clients)} answers")
        for place, ms in zip(("another host", "the virtual address"), zip(*gaps)):
            scenario.say(f"without service at {place}: median {statistics.median(ms):.1f} ms, "
                         f"worst "
                         f"{max(ms):.1f} ms")
        scenario.check(not problems, f"{rounds} x the leader cut off: no acknowledged write lost, "
                       "the address moved", "; ".join(problems[:3]))
        group.settle()
        scenario.check_equal(group, "--prefix")


h.run_scenario("namespaces", body, rounds={"type": int, "default": 0})
