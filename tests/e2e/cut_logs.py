#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs on disk are cut below checkpoints of a majority, and a group recovers from them.

Three nodes without crane-run, durability disk, redis in containers, clients that push unique ids.
When all stores have been cut, all nodes are killed at once; then again, and the replicas' memory is
removed. Every acknowledged id is there exactly once. A replica without its own checkpoints fetches
another one's. If no replica has any, it votes without a server, has a checkpoint taken, and begins
there.
Then nodes are killed at each named fault point of cutting a log.
"""
import pathlib
import re
import shutil
import signal

import _harness as h
from _hosts import Hosts
from checkpoints import check_equal
from durable import Pusher, held

CLIENTS = 3
FILLER = 64 << 10          # bytes of a value; a store is cut at segments of a megabyte at least
FILLERS = 24


def places():
    text = (pathlib.Path(__file__).parents[2] / "checkpoint/fault_points.h").read_text()
    return re.findall(r'^    "(truncate\.[a-z]+)",', text, re.M)


class Pushing:
    """Clients that push while the block runs; their results are added to `sent` and `told`."""

    def __init__(self, group, name, sent, told):
        self.pushers = [Pusher(group, f"{name}.{i}") for i in range(CLIENTS)]
        self.sent, self.told = sent, told

    def __enter__(self):
        for p in self.pushers:
            p.start()
        self.more()
        return self

    def more(self, count=20):
        before = [len(p.acknowledged) for p in self.pushers]
        h.wait_until(lambda: all(len(p.acknowledged) >= b + count
                                 for p, b in zip(self.pushers, before)), 60, "clients are served")

    def __exit__(self, *_):
        for p in self.pushers:
            p.stopping.set()
        for p in self.pushers:
            p.join(20)
            self.sent |= set(p.sent)
            self.told |= set(p.acknowledged)


def fill(group):
    """Makes the log longer by more than a megabyte; a leader change may lose some of it."""
    client = h.Redis(group.port, 30, group.addresses[group.leader()])
    try:
        for n in range(FILLERS):
            client("SET", f"filler{n % 4}", "x" * FILLER)
    except OSError:
        pass
    finally:
        client.close()


def checkpoint(group, number, unless=lambda: False):
    """Takes a checkpoint at a follower; repeats it if the group has just changed its leader."""
    def taken():
        if unless():
            return True
        if group.leader() == number:
            other = next(i for i in group.live() if i != number)
            group.ctl("leader", "transfer", group.name, "--to", str(other))
            return False
        status, out, err = group.ctl("checkpoint", "now", group.name, "--replica", str(number))
        taken.said = f"{status}: {out}{err}"
        return status == 0
    taken.said = ""
    try:
        h.wait_until(taken, 60, f"replica {number} takes a checkpoint")
    except h.Failure as failure:
        raise h.Failure(f"{failure}: {taken.said}") from None


def firsts(group):
    return [s["checkpoint"]["log_first"] if s else 0 for s in group.statuses().values()]


def cut_all(group, pushing):
    """Waits until every store begins later than it does now."""
    before = firsts(group)
    for _ in range(6):
        covered = max(s["checkpoint"]["log_covered"] for s in group.statuses().values() if s)
        fill(group)
        for number in range(3):
            checkpoint(group, number)

        def told():
            pushing.more(1)
            return all(s and s["checkpoint"]["log_covered"] > covered
                       for s in group.statuses().values())
        h.wait_until(told, 60, "all replicas know what checkpoints cover")
        now = firsts(group)
        if all(n > b for n, b in zip(now, before)):
            return now
    raise h.Failure(f"stores are not cut: {before} {now}")


def judge(scenario, group, sent, told, what):
    found = held(group)
    lost = [i for i in told if found[i] != 1]
    wrong = [i for i, n in found.items() if n != 1 or i not in sent]
    scenario.check(not lost and not wrong, f"{what}: {len(told)} acknowledged ids exactly once",
                   f"lost {sorted(lost)[:5]}, twice or never sent {wrong[:5]}")
    check_equal(scenario, group, what)


def begin_again(group):
    h.wait_until(lambda: not group.leftovers(), 30, "the servers of the killed nodes are gone")
    for i in range(len(group.nodes)):
        if not group.alive(i):
            group.start(i)
    h.wait_until(group.serves, 90, f"{group.name} serves again")


def kill_everything(scenario, group, sent, told, forget):
    what = "all killed, memory gone" if forget else "all killed"
    with Pushing(group, what, sent, told) as pushing:
        now = cut_all(group, pushing)
        scenario.say(f"stores begin at {now}")
        pushing.more()
        for node in group.nodes:
            node.send_signal(signal.SIGKILL)
        for node in group.nodes:
            node.wait()
    if forget:
        shutil.rmtree(f"/dev/shm/crane.{group.name}")
    begin_again(group)
    scenario.check(all(s["checkpoint"]["restored_at"] > 0 for s in group.statuses().values()),
                   f"{what}: each recovered from a checkpoint", repr(group.brief()))
    judge(scenario, group, sent, told, what)


def without_checkpoints(scenario, group, sent, told):
    """A replica whose checkpoints are gone fetches another's; if no replica has any, the leader has
    one taken."""
    number = next(i for i in range(3) if i != group.leader())
    own = group.dir / f"r{number}/checkpoints"
    group.stop_one(number, signal.SIGKILL)
    shutil.rmtree(own)
    begin_again(group)
    judge(scenario, group, sent, told, "without checkpoints of its own")
    group.stop_one(number, signal.SIGKILL)
    h.wait_until(lambda: not group.leftovers() or group.live(), 30, "its server is gone")
    for place in group.dir.glob("r*/checkpoints"):
        shutil.rmtree(place)
    with Pushing(group, "no checkpoint anywhere", sent, told) as pushing:
        begin_again(group)
        pushing.more()
    log = group.said(number)[group.begins[number]:]
    restored = group.status(number)["checkpoint"]["restored_at"]
    scenario.check(all(words in log for words in ("it votes, and restarts at the first checkpoint",
                                                  "this replica begins again"))
                   and restored > 0, "without any checkpoint it votes, and has one taken",
                   f"{restored} {log}")
    judge(scenario, group, sent, told, "without any checkpoint")


def at_every_place(scenario, group, sent, told):
    for n, place in enumerate(places()):
        number = n % 3
        fault = group.dir / f"r{number}/faults" / place
        with Pushing(group, place, sent, told) as pushing:
            fault.parent.mkdir(exist_ok=True)
            fault.touch()
            node = group.nodes[number]
            for _ in range(8):
                if node.poll() is not None:
                    break
                fill(group)
                for i in range(3):
                    checkpoint(group, i, unless=lambda: node.poll() is not None)
                pushing.more(5)
            scenario.check(node.poll() == -signal.SIGKILL and not fault.exists(),
                           f"{place}: the node dies there", f"{node.poll()} {fault.exists()}")
            pushing.more()
            begin_again(group)
        judge(scenario, group, sent, told, place)


def body(scenario):
    h.need("redis-server")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    port = h.free_port()
    sent, told = set(), set()
    with Hosts(scenario, h.redis_program(port), port=port, fabric="tcp",
               group={"durability": "disk", "checkpoint_every_s": 0, "checkpoint_log_mb": 0,
                      "test_only_faults": True}) as group:
        for forget in (False, True):
            kill_everything(scenario, group, sent, told, forget)
        without_checkpoints(scenario, group, sent, told)
        at_every_place(scenario, group, sent, told)


if __name__ == "__main__":
    h.run_scenario("cut_logs", body)
