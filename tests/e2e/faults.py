#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills and stops replicas of redis under an INCR load: no lost acknowledged write, no divergence.

Printed, not asserted: the time from the fault to the first new answer. If the leader is hit, it is
an answer on a connection opened after the fault; if a follower is hit, an answer to a request sent
after it.
"""
import contextlib
import os
import signal
import statistics
import time

import _harness as h


class Round:
    """One fault in a running group under load."""

    def __init__(self, scenario, group, load):
        self.scenario, self.group, self.load = scenario, group, load
        self.killed = None   # the replica that may have recorded less

    def fault_at(self, act, leader=True):
        since = time.monotonic()
        self.load.mark(since, fresh=leader)
        act()
        return since


def kill_leader_node(r):
    r.killed = r.group.leader()
    return r.fault_at(lambda: r.group.signal_node(r.killed, signal.SIGKILL))


def kill_leader_server(r):
    r.killed = r.group.leader()
    return r.fault_at(lambda: r.group.signal_server(r.killed, signal.SIGKILL))


def kill_follower(r):
    leader = r.group.leader()
    r.killed = next(n for n in r.group.live() if n != leader)
    return r.fault_at(lambda: r.group.signal_node(r.killed, signal.SIGKILL), leader=False)


def pause(r, number, seconds, leader):
    """SIGSTOP to a node and its server's processes; SIGCONT after `seconds` of service."""
    replica = r.group.replica(number)
    pids = [replica["node_pid"]] + h.descendants([replica["server_pid"]])

    def stop():
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    since = r.fault_at(stop, leader)
    try:
        r.load.first_answer(since)
        h.wait_until(lambda: time.monotonic() > since + seconds, seconds + 5, "the pause is over")
    finally:
        for pid in reversed(pids):
            with contextlib.suppress(ProcessLookupError):  # the next leader has killed this one
                os.kill(pid, signal.SIGCONT)
    return since


def stop_follower(r):
    leader = r.group.leader()
    return pause(r, next(n for n in r.group.live() if n != leader), 5, False)


def stop_leader(r):
    leader = r.killed = r.group.leader()  # the next leader kills it, to take its clients over
    view = (r.group.status(leader) or {}).get("view", 0)
    since = pause(r, leader, 2, True)

    def stepped_down():
        status = r.group.status(leader)
        return status is None or (status["role"] != "leader" and status["view"] > view)
    h.wait_until(stepped_down, 20, f"the old leader, replica {leader}, steps down")
    return since


FAULTS = {
    "SIGKILL leader's node": (kill_leader_node, True),
    "SIGKILL leader's server": (kill_leader_server, True),
    "SIGKILL a follower's node": (kill_follower, True),
    "SIGSTOP a follower, 5 s": (stop_follower, False),
    "SIGSTOP the leader, 2 s": (stop_leader, True),
}


def one_round(scenario, name, fault, kills):
    """Returns the seconds without service; the caller checks the rest of what is returned."""
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port, record=True) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        with h.Load(port) as load:
            r = Round(scenario, group, load)
            since = fault(r)
            gap = load.first_answer(since)
            load.progress()
            load.stop()
            answers, problems = load.answers(), load.problems()
        live = [n for n in range(3) if n != r.killed]
        statuses = group.settle(numbers=live if kills else None)
        whole = len(statuses) == len(live)
        group.stop()
        status, text = group.diff("--prefix")
        survivors = group.diff(recordings=live)[0] if whole else 0
    good = not problems and status == 0 and survivors == 0
    return gap, good and (whole or not kills), answers, \
        f"{problems[:3]} crane-diff --prefix: {status}, of the survivors: {survivors}\n{text}"


def body(scenario):
    h.need("redis-server")
    count = scenario.options.rounds or (20 if scenario.full else 1)
    for name, (fault, kills) in FAULTS.items():
        if scenario.options.only and scenario.options.only not in name:
            continue
        gaps, answers, bad = [], 0, []
        for number in range(count):
            try:
                gap, good, answered, detail = one_round(scenario, name, fault, kills)
            except h.Failure as failure:
                bad.append(f"round {number}: {failure}")
                continue
            gaps.append(gap * 1000)
            answers += answered
            if not good:
                bad.append(f"round {number}: {detail}")
        if gaps:
            scenario.say(f"{name}: {len(gaps)} rounds, {answers} answers; without service: median "
                         f"{statistics.median(gaps):.1f} ms, worst {max(gaps):.1f} ms")
        scenario.check(not bad,
                       f"{name}: {count} rounds, no acknowledged write lost, outputs equal",
                       "\n".join(bad[:5]))


h.run_scenario("faults", body, rounds={"type": int, "default": 0},
               only={"default": "", "help": "only faults whose name contains this"})
