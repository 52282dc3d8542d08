#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Members are added and removed under load: redis over tcp, three members of five places. Two are
added (first as learners, promoted when they have caught up), then a follower is removed, then the
leader: 3, 5, 4, 3 members. No acknowledged id is lost. Connections break only when the leader is
removed, each once. At the end the members' outputs, including DEBUG DIGEST, are equal.

Printed, not asserted: throughput, and its worst 100 ms. --plot FILE draws it (DARE, Figure 9a).

An added replica's server runs all inputs since the group's start: the others' logs (128 MiB each),
or with --durability disk their stores, must still hold them.
"""
import collections
import os
import pathlib
import re
import signal
import time

import _harness as h
from _hosts import Hosts
from _pushers import BUCKET_SECONDS, Pushers

PLACES = 5
LEFT_GROUP = 71   # a node's exit status


def roles(group):
    """{replica: its role} as the leader reports it, once no change is in progress."""
    status = group.status(group.leader())
    if not status or status["role"] != "leader" or status["changing_members"]:
        return None
    return {m["replica"]: m["member"] for m in status["members"]}


class Change:
    """One command of the operator, when it began and when the group had carried it out."""

    def __init__(self, name, begin, end):
        self.name, self.begin, self.end = name, begin, end


class Scenario:
    def __init__(self, scenario, group, load, hold):
        self.scenario, self.group, self.load, self.hold = scenario, group, load, hold
        self.changes = []
        self.first_view = group.status(group.leader())["view"]   # before there is load
        self.elections = 0   # that the scenario did not cause

    def ask(self, *words):
        """crane-ctl member ..., repeated while the group is busy with the previous request."""
        results = []

        def done():
            code, text, error = self.group.ctl("member", *words, self.group.name)
            results[:] = [f"{code}: {text}{error}"]
            if code not in (0, 5):
                raise h.Failure(f"crane-ctl member {' '.join(words)}: {results[0]}")
            return code == 0
        try:
            h.wait_until(done, 60, "")
        except h.Failure:
            raise h.Failure(f"crane-ctl member {' '.join(words)}: {results[0]}") from None

    def is_as(self, expected):
        return h.wait_until(lambda: roles(self.group) == expected, 60,
                            f"the members are {expected}")

    def change(self, name, *words, expected, number=None):
        begin = time.monotonic()
        self.ask(*words)
        if words[0] == "add":
            self.group.start(number)
            self.ask("promote", str(number))
        self.is_as(expected)
        self.load.progress()
        self.changes.append(Change(name, begin, time.monotonic()))

    def caught_up(self, number):
        """An added replica may lead only when its server has run what the others' have run."""
        end = self.group.status(self.group.leader())["applied"]

        def done():
            status = self.group.status(number)
            return status is not None and status["applied"] >= end
        h.wait_until(done, 120, f"replica {number} has run the earlier inputs")

    def pause(self):
        """Undisturbed service between two changes, visible in the plot."""
        end = time.monotonic() + self.hold
        self.load.progress()
        h.wait_until(lambda: time.monotonic() >= end, self.hold + 10, "time passes")

    def tell(self):
        group, scenario = self.group, self.scenario
        voters = {i: "voter" for i in range(3)}
        self.pause()
        for number in (3, 4):
            voters[number] = "voter"
            self.change(f"add {number}", "add", str(number), expected=voters, number=number)
            self.caught_up(number)
            self.pause()
        scenario.check(self.is_as(voters), "3 -> 5 members under load")
        leader = group.leader()
        other = max(i for i in range(3) if i != leader)
        del voters[other]
        self.change(f"remove {other}", "remove", str(other), expected=voters)
        self.pause()
        scenario.check(self.is_as(voters), "5 -> 4 members, a follower removed under load")
        leader = group.leader()
        del voters[leader]
        self.change(f"remove {leader}, which leads", "remove", str(leader), expected=voters)
        self.pause()
        self.elections = group.status(group.leader())["view"] - self.first_view - 1
        scenario.check(self.is_as(voters) and group.leader() in voters,
                       "4 -> 3 members, the leader removed under load")
        return sorted(voters)


def plot(path, load, changes):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no plot: matplotlib is absent (python3-matplotlib)")
        return
    counts, begin = load.buckets()
    figure, axes = pyplot.subplots(figsize=(9, 3.6))
    axes.plot([i * BUCKET_SECONDS for i in range(len(counts))],
              [n / BUCKET_SECONDS / 1000 for n in counts], lw=1, color="tab:blue")
    top = max(counts) / BUCKET_SECONDS / 1000
    for i, c in enumerate(changes):
        axes.axvspan(c.begin - begin, c.end - begin, color="tab:orange", alpha=0.25, lw=0)
        axes.axvline(c.begin - begin, color="tab:red", lw=0.8, ls="--")
        axes.text(c.begin - begin, top * (1.06 + 0.09 * (i % 2)), " " + c.name, fontsize=8)
    axes.set_ylim(0, top * 1.28)
    axes.set_xlim(0, len(counts) * BUCKET_SECONDS)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("1000 RPUSH/s, per 100 ms")
    axes.set_title("redis, members 3 - 5 - 4 - 3 (shaded: until the change was done)", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def tell_figures(scenario, load, changes):
    counts, begin = load.buckets()
    seconds = len(counts) * BUCKET_SECONDS
    scenario.say(f"{len(load.pushers)} clients, {len(load.answers)} answers in {seconds:.1f} s: "
                 f"{sum(counts) / seconds:.0f}/s; worst 100 ms: {min(counts)} answers")
    for c in changes:
        first = max(0, int((c.begin - begin) / BUCKET_SECONDS))
        during = counts[first:int((c.end - begin) / BUCKET_SECONDS) + 1]
        scenario.say(f"{c.name}: done after {(c.end - c.begin) * 1000:.0f} ms; worst 100 ms of it: "
                     f"{min(during, default=0)} answers")


def check_breaks(scenario, load, change, elections):
    """Connections lead to the leader: they break when it is removed, each once. On a busy machine
    the group may also elect another leader, and connections break then, too. That is printed; it
    fails only the full scenario, which has the machine to itself."""
    served = collections.Counter(b.client for b in load.breaks if b.served)
    if elections == 0 or scenario.full:
        others = [b for b in load.breaks if not change.begin <= b.at <= change.end]
        scenario.check(elections == 0 and not others,
                       "connections broke only while the leader was removed",
                       f"{elections} unplanned elections, {others[:3]}")
        scenario.check(max(served.values(), default=0) <= 1, "each connection broke once",
                       served.most_common(3))
    scenario.say(f"{len(served)} of {len(load.pushers)} clients lost a connection, "
                 f"{sum(not b.served for b in load.breaks)} attempts to connect failed; the lead "
                 f"changed {elections} times unplanned (load average {os.getloadavg()[0]:.1f})")


def verify(scenario, group, load, members):
    wrong = group.asked(load.verify, 120)
    acknowledged = sum(len(p.acknowledged) for p in load.pushers)
    scenario.check(not wrong, f"{acknowledged} acknowledged ids exactly once, others at most once",
                   "; ".join(wrong[:3]))
    digest = group.asked(lambda client: client("DEBUG", "DIGEST"), 120)
    scenario.check(re.fullmatch(r"[0-9a-f]{40}", digest), "the group answers DEBUG DIGEST", digest)
    group.settle(60, members)
    # SIGINT: a node first carries out what is committed.
    ends = [group.stop_one(i, signal.SIGINT) for i in range(PLACES)]
    expected = [0 if i in members else LEFT_GROUP for i in range(PLACES)]
    scenario.check(ends == expected, "members end with status 0, removed ones with 71", ends)
    scenario.check_equal(group, recordings=members,
                         what="the members' outputs, including DEBUG DIGEST, are equal")


def body(scenario):
    h.need("redis-server")
    options = scenario.options
    hold = options.hold if options.hold is not None else 3 if scenario.full else 0.3
    count = options.clients or (32 if scenario.full else 12)
    port, links = h.free_port(), h.free_port()
    addresses = [f"127.0.0.{i + 1}" for i in range(PLACES)]
    with Hosts(scenario, h.redis_program(port), port=port, fabric=options.fabric, record=True,
               addresses=addresses, started=range(3),
               group={"members": 3, "durability": options.durability},
               replica=(lambda i: {"port": links}) if options.fabric != "shm" else None) as group:
        load = Pushers(port, addresses[:3], count)
        telling = Scenario(scenario, group, load, hold)
        load.start()
        try:
            load.progress()
            members = telling.tell()
        finally:
            load.stop()
        check_breaks(scenario, load, telling.changes[-1], telling.elections)
        tell_figures(scenario, load, telling.changes)
        where = options.plot or (scenario.out / "bench/grow.png" if scenario.full else None)
        if where:
            pathlib.Path(where).parent.mkdir(parents=True, exist_ok=True)
            plot(where, load, telling.changes)
        verify(scenario, group, load, members)


if __name__ == "__main__":
    h.run_scenario("grow", body, hold={"type": float, "default": None}, plot={"default": ""},
                   clients={"type": int, "default": 0},
                   durability={"default": "memory", "choices": ["memory", "disk"]},
                   fabric={"default": "tcp", "choices": ["tcp", "shm"]})
