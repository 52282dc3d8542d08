#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints are transferred between hosts: a replica that has none fetches one, and recovers.

Three nodes without crane-run over tcp, each with its own directories; redis under an INCR load
whose acknowledged values are recorded. A host loses all its data and restarts. So does one whose
node is killed while it fetches, and one whose sender is killed. A replica that was paused until its
missing entries had left the others' logs fetches a checkpoint while it runs. If a replica needs a
checkpoint and none exists, it has one taken. Then the same with logs on disk that were cut. Each
recovered replica leads, and no acknowledged write is lost.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import time

import _harness as h
from _hosts import Hosts, RoamingCounter, served, under_way
from checkpoints import check_equal
from cut_logs import checkpoint, cut_all, Pushing
from durable import held

RING_MB = 16
VALUE = 400_000        # bytes; a payload is at most a sixteenth of a ring
CLIENTS = 4
LATER_VIEWS = 15       # more than the views of a group whose logs were cut


class Apart(Hosts):
    """Each host has its own directories; the replicas' are linked where tools look for them."""

    def __init__(self, scenario, program, **options):
        own = {i: {"group": {"state_dir": str(scenario.work / f"host{i}")}} for i in range(3)}
        super().__init__(scenario, program, fabric="tcp", own=own, **options)
        self.dir.mkdir(parents=True)
        for i in range(3):
            (self.dir / f"r{i}").symlink_to(self.own_dir(i) / f"r{i}")

    def own_dir(self, number):
        return self.scenario.work / f"host{number}" / self.name

    def checkpoints(self, number):
        return self.own_dir(number) / f"r{number}/checkpoints"

    def wipe(self, number):
        """Removes all data of the group from a host, as when its machine is replaced."""
        h.wait_until(lambda: not self.leftovers_of(number), 30, "its server is gone")

        def gone():   # cleaning up after the server may remove some of it meanwhile
            shutil.rmtree(self.own_dir(number), ignore_errors=True)
            return not self.own_dir(number).exists()
        h.wait_until(gone, 30, "its directories are gone")
        for part in ("r", "consensus-"):
            shutil.rmtree(f"/dev/shm/crane.{self.name}/{part}{number}", ignore_errors=True)

    def leftovers_of(self, number):
        return [m for m in self.mounts() if f"/host{number}/" in m]

    def mounts(self):
        return [m for m in open("/proc/mounts", encoding="utf-8").read().split()
                if f"/{self.name}/" in m + "/"]

    def news(self, number):
        """The output of its node since its last start."""
        return self.said(number)[self.begins[number]:]

    def kill(self, number):
        self.stop_one(number, signal.SIGKILL)

    def fault(self, number, place):
        path = self.own_dir(number) / f"r{number}/faults" / place
        path.parent.mkdir(exist_ok=True)
        path.touch()
        return path

    def fresh(self, number):
        """A client of the leader's host, or of the given host."""
        return h.Redis(self.port, 30, self.addresses[number])


def put(group, megabytes):
    """Writes this much through the log; as much of it as fits in four values remains."""
    client = group.fresh(group.leader())
    for i in range(int(megabytes * 1_000_000 / VALUE)):
        client("SET", f"big:{i % 4}", os.urandom(VALUE // 2).hex())
    client.close()


def overrun(group):
    put(group, 1.3 * RING_MB)


def is_back(group, number):
    """It runs, from a checkpoint, has caught up, and votes."""
    status = group.status(number) if group.alive(number) else None
    if not status or status["server_pid"] is None or status["checkpoint"]["restored_at"] == 0:
        return False
    leader = group.status(group.leader())
    roles = {m["replica"]: m["member"] for m in leader["members"]} if leader else {}
    return roles.get(number) == "voter" and status["applied"] + 1000 >= leader["commit"]


def recovers(scenario, group, number, what):
    begin = time.monotonic()
    h.wait_until(lambda: is_back(group, number), 120, f"{what}: replica {number} is back")
    scenario.check(True, f"{what}: replica {number} is back and votes")
    scenario.say(f"{what}: back after {time.monotonic() - begin:.1f} s")


def fetched(said):
    """Returns (entry, replica, megabytes, milliseconds) of each checkpoint that a node reports as
    fetched."""
    return [(int(e), int(r), float(m), int(t)) for e, r, m, t in re.findall(
        r"fetched the checkpoint at entry (\d+) from replica (\d+): ([\d.]+) MB in (\d+) ms",
        said)]


def leads(scenario, group, number, clients, what):
    group.lead(number, 60)
    served(clients)
    scenario.check(True, f"{what}: the recovered replica leads, and serves")


def others(group):
    leader = group.leader()
    return leader, [i for i in range(3) if i != leader]


def wiped(scenario, group, clients):
    _, (giver, lost) = others(group)
    checkpoint(group, giver)
    group.kill(lost)
    group.wipe(lost)
    served(clients)
    group.start(lost)
    recovers(scenario, group, lost, "all gone")
    got = fetched(group.news(lost))
    scenario.check(len(got) == 1 and got[0][1] == giver,
                   "all gone: it fetched one, and reports the sender", group.news(lost)[-2000:])
    scenario.say(f"all gone: {got}")
    scenario.check(f"to replica {lost}: " in group.said(giver) and "gave checkpoint" in
                   group.said(giver), "all gone: the sender reports it", group.said(giver)[-2000:])
    h.wait_until(lambda: served(clients) or True, 30, "clients continue")
    leads(scenario, group, lost, clients, "all gone")


def parts(group, number):
    place = group.checkpoints(number)
    return [p for p in place.iterdir() if p.name.startswith(".ship-")] if place.exists() else []


def arrived(group, number):
    """Bytes of a partial checkpoint."""
    return sum(f.stat().st_size for p in parts(group, number) for f in p.glob("*.pack"))


def break_off(scenario, group, receiver_dies, what):
    """The sender's process dies after the first piece; before the next attempt one of the two nodes
    is killed. Returns the replica that began with nothing; None: the other was faster."""
    leader, (giver, lost) = others(group)
    checkpoint(group, giver)
    shutil.rmtree(group.checkpoints(leader), ignore_errors=True)   # no other replica has any
    group.kill(lost)
    group.wipe(lost)
    fault = group.fault(giver, "send.piece")
    group.start(lost)
    h.wait_until(lambda: not fault.exists(), 60, f"{what}: the sender's process dies")
    h.wait_until(lambda: arrived(group, lost) > 0 or fetched(group.news(lost)), 30,
                 f"{what}: some bytes have arrived")
    victim = lost if receiver_dies else giver
    group.kill(victim)
    found = arrived(group, lost) > 0
    if found:
        scenario.check("fetching the checkpoint" in group.news(lost), f"{what}: a part has arrived",
                       group.news(lost)[-2000:])
    group.start(victim)
    recovers(scenario, group, lost, what)
    return lost if found else None


def interrupted(scenario, group, clients, receiver_dies):
    """The transfer breaks after its first piece; then the receiver, or the sender, is killed."""
    what = "receiver killed" if receiver_dies else "sender killed"
    for _ in range(5):
        lost = break_off(scenario, group, receiver_dies, what)
        h.wait_until(group.serves, 60, f"{what}: all serve")
        served(clients)
        if lost is not None:
            break
    else:
        raise h.Failure(f"{what}: the transfer was never broken off")
    scenario.check(" MB were already here" in group.news(lost),
                   f"{what}: it goes on where it stopped",
                   group.news(lost)[-2000:])
    scenario.check(not parts(group, lost), f"{what}: no partial checkpoint is left")


def far_behind(scenario, group, clients):
    """While it runs, its missing entries leave the others' logs, and no replica has a checkpoint
    after them."""
    _, (_, lost) = others(group)
    node = group.nodes[lost]
    before = len(group.said(lost))
    os.kill(node.pid, signal.SIGSTOP)
    for _ in range(4):   # it still has what was written to it before it was given up
        overrun(group)
    served(clients)
    os.kill(node.pid, signal.SIGCONT)
    h.wait_until(lambda: "this replica begins again" in group.said(lost)[before:], 60,
                 "it restarts automatically")
    log = group.said(lost)[before:]
    scenario.check("have left the logs of the others" in log and len(fetched(log)) == 1,
                   "far behind: it fetches one while it runs, and restarts", log[-2000:])
    recovers(scenario, group, lost, "far behind")
    leads(scenario, group, lost, clients, "far behind")


def nobody_has_any(scenario, group, clients):
    """All checkpoints are gone, the rings were overrun, and a host begins with nothing."""
    _, (_, lost) = others(group)
    group.kill(lost)
    group.wipe(lost)
    overrun(group)
    for i in group.live():
        shutil.rmtree(group.checkpoints(i), ignore_errors=True)
    group.start(lost)
    recovers(scenario, group, lost, "no checkpoint anywhere")
    scenario.check(any(f"replica {lost} " in group.said(i) and "takes a checkpoint" in group.said(i)
                       for i in group.live()), "no checkpoint anywhere: the leader had one taken",
                   repr({i: group.said(i)[-800:] for i in group.live()}))
    scenario.check("as a replica that lost its memory" in group.said(lost),
                   "no replica has a checkpoint: it does not begin as a new one",
                   group.said(lost)[-2000:])
    served(clients)


def newest(group, number):
    return max((p for p in group.checkpoints(number).iterdir() if not p.name.startswith(".")),
               key=lambda p: p.name)


def keep_one(scenario, group):
    """Another group's checkpoint, for on_disk(): of the same program, and of a later view and
    entry."""
    for _ in range(LATER_VIEWS):
        group.lead(others(group)[1][0], 60)
    taker = others(group)[1][0]
    checkpoint(group, taker)
    one = newest(group, taker)
    h.wait_until((one / "verified").exists, 30, "the checkpoint was verified")
    return pathlib.Path(shutil.copytree(one, scenario.work / "foreign" / one.name))


def in_memory(scenario):
    """Returns a checkpoint of the group, which the caller keeps."""
    port = h.free_port()
    with Apart(scenario, h.redis_program(port), port=port,
               group={"checkpoint_every_s": 0, "checkpoint_log_mb": 0, "ring_mb": RING_MB,
                      "test_only_faults": True}) as group:
        clients = [RoamingCounter(group, f"c{i}") for i in range(CLIENTS)]
        with under_way(clients):
            put(group, 4)
            wiped(scenario, group, clients)
            for receiver_dies in (True, False):
                interrupted(scenario, group, clients, receiver_dies)
            far_behind(scenario, group, clients)
            nobody_has_any(scenario, group, clients)
        problems = group.problems_of(clients)
        scenario.check(not problems, f"no acknowledged increment of "
                       f"{sum(c.answers for c in clients)} is lost", "; ".join(problems[:5]))
        check_equal(scenario, group, "in memory")
        return keep_one(scenario, group)


def on_disk(scenario, foreign):
    """Stores that were cut: a host that lost its store begins at another's checkpoint. It takes
    none of another group, which the others have as well."""
    port = h.free_port()
    sent, told = set(), set()
    with Apart(scenario, h.redis_program(port), port=port,
               group={"checkpoint_every_s": 0, "checkpoint_log_mb": 0, "durability": "disk",
                      "test_only_faults": True}) as group:
        with Pushing(group, "before", sent, told) as pushing:
            cut_all(group, pushing)
        _, (_, lost) = others(group)
        for number in set(range(3)) - {lost}:
            if newest(group, number).name >= foreign.name:
                raise h.Failure(f"{foreign} is not the newest")
            shutil.copytree(foreign, group.checkpoints(number) / foreign.name)
        for name in ("all gone", "checkpoints gone", "nobody has any"):
            with Pushing(group, name, sent, told):
                group.kill(lost)
                if name == "all gone":
                    group.wipe(lost)
                else:
                    h.wait_until(lambda: not group.leftovers_of(lost), 30, "its server is gone")
                    for i in range(3) if name == "nobody has any" else [lost]:
                        shutil.rmtree(group.checkpoints(i), ignore_errors=True)
                group.start(lost)
                recovers(scenario, group, lost, f"on disk, {name}")
            scenario.check(fetched(group.news(lost)) != [], f"on disk, {name}: it fetched one",
                           group.news(lost)[-2000:])
            scenario.check(not (group.checkpoints(lost) / foreign.name).exists(),
                           f"on disk, {name}: and none of another group")
        scenario.check(any(f"replica {lost} needs a checkpoint" in group.said(i)
                           for i in group.live()),
                       "on disk, no checkpoint anywhere: the leader had one taken")
        found = held(group)
        wrong = [i for i in told if found[i] != 1]
        scenario.check(not wrong, f"on disk: {len(told)} acknowledged ids exactly once", wrong[:5])
        check_equal(scenario, group, "on disk")


def body(scenario):
    h.need("redis-server")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    with contextlib.ExitStack() as at_end:
        at_end.callback(lambda: [shutil.rmtree(scenario.work / f"host{i}", ignore_errors=True)
                                 for i in range(3)])
        on_disk(scenario, in_memory(scenario))


if __name__ == "__main__":
    h.run_scenario("shipped", body)
