#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CRIU that dumps the server but cannot restore it, as in a container whose /proc/sys is
read-only, or whose restored servers die. A lost replica of a lasting group fails twice at the
newest checkpoint, then runs all inputs of its log, and the group is whole again: on several hosts,
and for crane-run. When CRIU works again, the next checkpoint is used."""
import contextlib
import os
import re
import signal

import _harness as h
from _hosts import Hosts

KEY = "ids"
CRIU = """#!/bin/sh
if [ "$1" = restore ] && [ -e {refuses} ]; then
  echo "Error (criu/sysctl.c:258): Can't open sysctl kernel/hostname: Read-only file system" >&2
  exit 1
fi
if [ "$1" = restore ] && [ -e {kills} ]; then
  {criu} "$@" || exit
  while [ "$1" != --work-dir ]; do shift; done
  kill -9 "$(cat "$2/pid")"
  exit 0
fi
exec {criu} "$@"
"""


def use_criu(scenario):
    """CRANE_CRIU names a program that follows broken()."""
    program = scenario.work / "criu"
    program.write_text(CRIU.format(criu=scenario.out / "criu/criu",
                                   **{how: scenario.work / how for how in ("refuses", "kills")}))
    program.chmod(0o755)
    os.environ["CRANE_CRIU"] = str(program)


@contextlib.contextmanager
def broken(scenario, how):
    """CRIU refuses to restore, or kills what it has restored, while the block runs."""
    file = scenario.work / how
    file.touch()
    yield
    file.unlink()


def ctl(group, *words):
    place = group.state if isinstance(group, Hosts) else group.home
    return h.ctl(group.scenario, "--dir", str(place), *words, group.name)


def push(group, values):
    leader = group.addresses[group.leader()]
    with contextlib.closing(h.Redis(group.port, 20, leader)) as client:
        for value in values:
            client("RPUSH", KEY, str(value))


def held(group):
    return [int(value) for value in group.asked(lambda client: client("LRANGE", KEY, "0", "-1"))]


def recovered(group, number):
    """The status of a replica that has run all entries, with a server."""
    status = group.status(number)
    end = max(s["commit"] for s in group.statuses().values() if s)
    return status if status and status["server_pid"] and status["applied"] >= end else None


def judge(scenario, group, number, what, checkpoint):
    said = h.wait_until(lambda: recovered(group, number), 60, f"{what}: the replica recovers")
    at = said["checkpoint"]["restored_at"]
    scenario.check((at > 0) == checkpoint, f"{what}: it recovers "
                   + ("from a checkpoint" if checkpoint else "by running all inputs again"), at)
    good = f"{group.name}: serving, 3 of 3, fault tolerant"
    h.wait_until(lambda: good in ctl(group, "status")[1].splitlines(), 30,
                 f"{what}: the group is whole")


def take(group, number):
    def taken():
        taken.said = ctl(group, "checkpoint", "now", "--replica", str(number))
        return taken.said[0] == 0
    taken.said = ""
    h.wait_until(taken, 60, "a checkpoint is taken")


def hosts(scenario, how, reason):
    port = h.free_port()
    with Hosts(scenario, h.redis_program(port), port=port, fabric="tcp",
               group={"durability": "disk"}) as group:
        push(group, range(50))
        number = next(i for i in range(3) if i != group.leader())
        take(group, number)
        push(group, range(50, 60))
        with broken(scenario, how):
            ends = []
            group.stop_one(number, signal.SIGKILL)
            while len(ends) < 4:
                group.start(number)
                h.wait_until(lambda: group.nodes[number].poll() is not None
                             or recovered(group, number), 60, "the node ends, or its server runs")
                if group.nodes[number].poll() is None:
                    break
                ends.append(group.nodes[number].poll())
            scenario.check(len(ends) == 2, f"hosts, {how}: the node fails at the checkpoint twice",
                           f"{ends}\n{group.said(number)[-2000:]}")
            judge(scenario, group, number, f"hosts, {how}", checkpoint=False)
            scenario.check(re.search(reason, group.said(number)), "its message has the reason",
                           group.said(number)[-2000:])
        take(group, number)
        group.stop_one(number, signal.SIGKILL)
        group.start(number)
        judge(scenario, group, number, "hosts, with a CRIU that works", checkpoint=True)
        scenario.check(held(group) == list(range(60)), "hosts: no value is lost", held(group))


def one_machine(scenario, how):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--durability", "disk"]) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        push(group, range(50))
        number = next(i for i in range(3) if i != group.leader())
        take(group, number)
        push(group, range(50, 60))
        with broken(scenario, how):
            before = group.replica(number)["node_pid"]
            group.signal_node(number, signal.SIGKILL)
            h.wait_until(lambda: group.replica(number)["node_pid"] not in (before, None), 20,
                         "another node begins")
            judge(scenario, group, number, f"crane-run, {how}", checkpoint=False)
        scenario.check(held(group) == list(range(60)), "crane-run: no value is lost", held(group))


def body(scenario):
    h.need("redis-server")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    if not (scenario.out / "criu/criu").exists():
        raise h.CannotRun("there is no CRIU here")
    use_criu(scenario)
    hosts(scenario, "refuses", "kernel/hostname: Read-only file system")
    hosts(scenario, "kills", "on this replica only|the restored server has ended")
    for how in ("refuses", "kills"):
        one_machine(scenario, how)


h.run_scenario("unrestored", body)
