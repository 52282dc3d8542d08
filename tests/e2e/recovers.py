#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas return whatever ended them: two servers at once, two nodes, all three, one repeatedly
within seconds, without any checkpoint, with only a damaged one, one after the other by a signal.

redis under an INCR load. At the end three of three run and agree, and no acknowledged write is
lost.
"""
import os
import re
import signal

import _harness as h
from checkpoints import checkpoint, control

BACK_SECONDS = 45
AGAIN = 4   # ends in a row: more than crane-run once allowed


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def pids_of(group, what, numbers):
    return [group.replica(n)[f"{what}_pid"] for n in numbers]


def all_back(group, seconds=BACK_SECONDS):
    """Waits until every replica has a node, and a server that has run all log entries."""
    end = max((s["last"] for s in group.statuses().values() if s), default=0)

    def back():
        statuses = group.statuses(range(group.replicas))
        return (group.are_whole() and len(group.live()) == group.replicas
                and all(s and s["applied"] >= end for s in statuses.values()))
    h.wait_until(back, seconds, f"all replicas of {group.name} are back: {group.brief()}")


def from_zero(port):
    """Resets the counter to zero, where a Load starts to count."""
    client = h.Redis(port, 10)
    client("FLUSHALL")
    client.close()


def loaded(scenario, group, port, what, act):
    """act() under load; then all replicas recover, and the clients lost nothing."""
    from_zero(port)
    with h.Load(port) as load:
        load.progress()
        act()
        all_back(group)
        load.progress()
        load.stop()
        problems = load.problems()
    group.remember(group.state())
    scenario.check(not problems, f"{what}: three of three again, no acknowledged write lost",
                   f"{problems[:3]}")
    group.settle()


def two_at_once(scenario, group, port):
    for what in ("server", "node"):
        leader = group.leader()
        follower = next(n for n in range(3) if n != leader)
        pair = [leader, follower]
        loaded(scenario, group, port, f"two {what}s at once, the leader's among them",
               lambda: kill(pids_of(group, what, pair)))
    pair = [n for n in range(3) if n != group.leader()]
    loaded(scenario, group, port, "both followers' nodes at once",
           lambda: kill(pids_of(group, "node", pair)))
    loaded(scenario, group, port, "all nodes at once",
           lambda: kill(pids_of(group, "node", range(3))))


def again_and_again(scenario, group, port):
    victim = next(n for n in range(3) if n != group.leader())

    def act():
        for _ in range(AGAIN):
            before = group.replica(victim)["node_pid"]
            kill([before])
            h.wait_until(lambda: group.replica(victim)["node_pid"] not in (before, None),
                         BACK_SECONDS, f"replica {victim} is restarted")
    loaded(scenario, group, port, f"{AGAIN} ends of one replica in a row", act)
    log = group.log.read_text(errors="replace")
    scenario.check(f"crane-ctl replica resume {victim} starts it at once" in log,
                   "crane-run reports when it restarts it, and how to restart it at once",
                   log[-800:])
    # After one more end it waits: crane-ctl reports that, and starts it.
    kill(pids_of(group, "node", [victim]))
    h.wait_until(lambda: group.replica(victim)["node_pid"] is None, 10, "its end is noticed")
    status, text = control(group, "status", group.name)
    scenario.check(status == 1 and f"replica {victim} recovers in " in text
                   and "killed by SIGKILL" in text, "crane-ctl status reports why and when", text)
    status, text = control(group, "replica", "resume", str(victim), group.name)
    scenario.check(status == 0, "crane-ctl replica resume starts it at once", text)
    all_back(group)


def damage(group):
    """The middle of the pack of every existing checkpoint is lost."""
    packs = [p for p in group.dir.glob("r*/checkpoints/*/*")
             if p.is_file() and p.name != "manifest.json" and p.stat().st_size > 4096]
    for pack in packs:
        with open(pack, "r+b") as f:
            f.seek(pack.stat().st_size // 2)
            f.write(b"\xff" * 64)
    return len(packs)


def behind_under_load(scenario, group, port):
    """There is no checkpoint yet: it begins at the log's beginning, or at one taken for it."""
    if not group.container:
        return
    victim = next(n for n in range(3) if n != group.leader())
    loaded(scenario, group, port, "a server that comes back without a checkpoint",
           lambda: kill(pids_of(group, "server", [victim])))
    log = (group.dir / f"r{victim}" / "node.log").read_text(errors="replace")
    begun = re.findall(r"begins at the checkpoint at entry (\d+)", log)
    there = re.findall(r"(?:caught up|still behind) at entry (\d+)", log)
    scenario.check(there and int(there[-1]) > int(begun[-1] if begun else 0),
                   "it has caught up with the group, not with its checkpoint",
                   f"began after {begun}, caught up at {there}")


def without_checkpoint(scenario):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--checkpoint-every", "0", "--checkpoint-log", "0"]) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        victim = next(n for n in range(3) if n != group.leader())
        loaded(scenario, group, port, "--checkpoint-every 0",
               lambda: kill(pids_of(group, "node", [victim])))
        scenario.check("runs all inputs again" in group.log.read_text(errors="replace"),
                       "it replayed all inputs")
        loaded(scenario, group, port, "--checkpoint-every 0, two nodes at once",
               lambda: kill(pids_of(group, "node", [group.leader(), victim])))
        if not group.container:
            return
        checkpoint(group, victim)
        scenario.check(damage(group) > 0, "the only checkpoint is damaged")
        loaded(scenario, group, port, "a damaged checkpoint only",
               lambda: kill(pids_of(group, "node", [victim])))


def alone_each_time(scenario, group):
    """A signal ends one server, while nothing happens that the replicas could compare: SUP-5."""
    for victim in (0, 1):
        before = group.replica(victim)["server_pid"]
        os.kill(before, signal.SIGSYS)   # redis has no handler for it
        h.wait_until(lambda: victim in group.live()
                     and group.replica(victim)["server_pid"] not in (None, before),
                     BACK_SECONDS, f"replica {victim} has another server")
        all_back(group)
    scenario.check(group.process.poll() is None, "a server that ends alone, ends no group, twice")


def logs_stay(scenario, group):
    """After a loss the logs remain, but none of the servers' data; crane-run reports where."""
    scenario.check(group.stop() == 0, "the group is stopped")
    log = group.log.read_text()
    kinds = {p.name for n in range(3) for p in (group.dir / f"r{n}").iterdir() if not p.is_file()}
    scenario.check(f"its logs and checkpoints stay in {group.dir}" in log
                   and kinds <= {"checkpoints"}
                   and (group.dir / "r0/node.log").is_file(),
                   "only its logs stay", f"{kinds}: {log[-300:]}")


def body(scenario):
    h.need("redis-server")
    without_checkpoint(scenario)
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        behind_under_load(scenario, group, port)
        again_and_again(scenario, group, port)
        two_at_once(scenario, group, port)
        alone_each_time(scenario, group)
        logs_stay(scenario, group)


if __name__ == "__main__":
    h.run_scenario("recovers", body)
