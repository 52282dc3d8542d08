#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: a replica whose log does not reach back to a point at which a server can begin is still an
acceptor (VOTES-1).
METHOD: redis, a ring of 16 MB, and more than 16 MB of writes: without a container, with checkpoints
taken only on demand, and on hosts over tcp. Both followers' nodes are killed at once.
CHECKS: the group continues with their votes; status reports that they have no server. Where
checkpoints are possible, they restart from one, one replica after the other. If the last server is
lost, status reports what is lost, and the one command that continues without it.
"""
import os
import signal

import _harness as h
import _takeovers as t
from _hosts import Hosts
from recovers import all_back, kill, pids_of

RING = ("--ring-mb", "16")
VALUE = "x" * 100_000
VALUES = 250                 # more than the ring holds
WORDS = "votes without a server"


def overwrite(port, host="127.0.0.1"):
    """Writes more than the ring holds."""
    client = h.Redis(port, 60, host)
    for n in range(VALUES):
        client("SET", f"filler {n % 4}", VALUE)
    client.close()


def followers(group):
    return [n for n in range(3) if n != group.leader()]


def only_vote(group, numbers):
    statuses = group.statuses(range(3))
    return all(statuses.get(n) and statuses[n]["readiness"]["acceptor_only"] for n in numbers)


def lose_both(scenario, group, load):
    """Kills both followers' nodes at once; the group continues with the entries they
    acknowledged."""
    pair = followers(group)
    kill(pids_of(group, "node", pair))
    load.progress()
    return pair


def without_container(scenario):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=[*t.RETURNS, *RING, "--no-container"]) as group:
        overwrite(port)
        with h.Load(port) as load:
            load.progress()
            pair = lose_both(scenario, group, load)
            h.wait_until(lambda: only_vote(group, pair), 60,
                         f"both followers are acceptors only: {group.brief()}")
            h.wait_until(lambda: group.verdict()[1]["verdict"]["serving"], 60, "it serves")
            answer = group.verdict()[1]
            text, notes = answer["verdict"]["text"], str(answer["verdict"]["notes"])
            scenario.check(answer["may_lose"] == 0 and notes.count(WORDS) == 2,
                           "status: the group serves, and two replicas have no server",
                           f"{text} {notes}")
            kill(pids_of(group, "node", pair[:1]))  # its acknowledged entries are still there
            load.progress()
            h.wait_until(lambda: only_vote(group, pair), 60, "the killed acceptor votes again")
            load.progress()
            load.stop()
            problems = load.problems()
        scenario.check(not problems, "no acknowledged write is lost", problems[:3])
        kill(pids_of(group, "node", [group.leader()]))

        def lost():
            return "the servers' state is lost" in group.verdict()[1]["verdict"]["text"]
        h.wait_until(lost, 60, f"status says that all is lost: {group.verdict()[1]['verdict']}")
        text = group.verdict()[1]["verdict"]["text"]
        scenario.check("--force-new-group" in text,
                       "status names the command that continues without it", text)


def server_ends(scenario):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=[*t.RETURNS, *RING, "--no-container"]) as group:
        overwrite(port)
        pair = followers(group)
        kill(pids_of(group, "node", pair))
        h.wait_until(lambda: only_vote(group, pair), 60,
                     f"both followers are acceptors only: {group.brief()}")
        h.wait_until(lambda: group.verdict()[1]["verdict"]["serving"], 60, "it serves")
        client = h.Redis(port, 60)
        client.send("SHUTDOWN", "NOSAVE")
        status = group.process.wait(60)
        log = group.log.read_text(errors="replace")
        scenario.check(status == 0 and "did not end" not in log and
                       log.count("votes, but has no server") == 2,
                       "the server ends: no replica without one is waited for", f"{status}: {log}")


def with_checkpoints(scenario):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=[*t.RETURNS, *RING, "--checkpoint-every", "0",
                          "--checkpoint-log", "0"]) as group:
        overwrite(port)
        with h.Load(port) as load:
            load.progress()
            lose_both(scenario, group, load)
            all_back(group, 90)
            load.progress()
            load.stop()
            scenario.check(not load.problems(),
                           "both restart from a checkpoint of the leader's server",
                           load.problems()[:3])
        logs = [(group.dir / f"r{n}/node.log").read_text(errors="replace") for n in range(3)]
        scenario.check(sum("it votes, and restarts" in log for log in logs) == 2,
                       "meanwhile both voted without a server")
        h.wait_until(group.may_lose_one, 60, "the group can lose a replica again")
        group.remember(group.state())
        group.settle()


def on_hosts(scenario):
    port = h.free_port()
    with Hosts(scenario, h.redis_program(port), port=port, fabric="tcp",
               group={"ring_mb": 16, "checkpoint_every_s": 0, "checkpoint_log_mb": 0}) as group:
        leader = group.leader()
        overwrite(port, group.addresses[leader])
        pair = [n for n in range(3) if n != leader]
        for number in pair:
            group.nodes[number].send_signal(signal.SIGKILL)
        for number in pair:
            group.nodes[number].wait()
            group.start(number)
        h.wait_until(lambda: all(s and s["checkpoint"]["restored_at"] > 0 and s["server_pid"]
                                 for n, s in group.statuses().items() if n in pair),
                     120, "both restart from a checkpoint that they fetch")
        logs = [group.said(n)[group.begins[n]:] for n in pair]
        scenario.check(all("it votes, and restarts" in text for text in logs),
                       "on hosts: both voted without a server", logs)
        client = h.Redis(port, 60, group.addresses[leader])
        got = client("GET", "filler 0")
        scenario.check(got == VALUE.encode(), "on hosts: the values are there", repr(got)[:200])
        client.close()


def body(scenario):
    h.need("redis-server")
    parts = {"without": without_container, "end": server_ends}
    if h.can_contain():
        parts |= {"checkpoints": with_checkpoints, "hosts": on_hosts}
    for name in scenario.options.only or parts:
        parts[name](scenario)


if __name__ == "__main__":
    h.run_scenario("acceptors", body, only={"nargs": "*", "help": "only these parts"})
