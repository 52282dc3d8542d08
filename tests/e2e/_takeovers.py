# SPDX-License-Identifier: Apache-2.0
"""Clients that run while a group's leader changes again and again, and must not notice."""
import os
import random
import signal
import subprocess
import threading

import _harness as h

# Unplanned events for the leader.
FAULTS = ("kill the leader's node", "kill the leader's server", "stop the leader for 2 s")
# Actions of an operator.
PLANNED = ("hand the lead over", "end the leader's node", "drain the leader",
           "replace the leader in its place")
# A replica that ends repeatedly starts again at once, not after a minute.
RETURNS = ("--test-only-return-ms", "1")
# With two busy processors, a replica may take minutes to come back beside its clients.
PATIENCE = 300


class Changes:
    """Changes the leader, each time when all replicas vote and clients are connected. Clients with
    a count must have made progress since the last change."""

    def __init__(self, scenario, group, kinds, rounds, clients=(), near=30000):
        self.scenario, self.group, self.kinds, self.rounds = scenario, group, kinds, rounds
        # A replica that is further behind delays its request for the lead.
        self.near = near
        self.done = dict.fromkeys(kinds, 0)
        self.counts = {client: 0 for client in clients if hasattr(client, "count")}

    def are_whole(self):
        statuses = self.group.statuses(range(3))
        # A replica that is catching up does not seek the lead within a stop of two seconds.
        return (h.is_near(statuses, self.near)
                and not any(s["recovery"]["catches_up"] for s in statuses.values())
                and any(s["connections"] for s in statuses.values())
                and all(c.bad or c.count() > before for c, before in self.counts.items()))

    def ctl(self, *words):
        status, text = h.ctl(self.scenario, *words, "--dir", str(self.group.home))
        return status == 0, text

    def change(self, kind):
        leader = self.group.leader()
        pid = self.group.replica(leader)["node_pid"]
        if kind == "kill the leader's node":
            os.kill(pid, signal.SIGKILL)
        elif kind == "kill the leader's server":
            self.group.signal_server(leader, signal.SIGKILL)
        elif kind == "stop the leader for 2 s":
            os.kill(pid, signal.SIGSTOP)
            threading.Timer(2, lambda: h.alive(pid) and os.kill(pid, signal.SIGCONT)).start()
        elif kind == "hand the lead over":
            others = [n for n in range(3) if n != leader]
            h.wait_until(lambda: self.ctl("leader", "transfer", self.group.name, "--to",
                                          str(random.choice(others)))[0],
                         60, "the lead is handed over")
        elif kind == "end the leader's node":
            os.kill(pid, signal.SIGTERM)
        elif kind == "drain the leader":
            good, text = self.ctl("replica", "drain", str(leader), self.group.name)
            self.scenario.check(good, "the leader is drained", text)
            good, text = self.ctl("replica", "resume", str(leader), self.group.name)
            self.scenario.check(good, "and resumed", text)
        else:
            good, text = self.ctl("replica", "replace", str(leader), self.group.name)
            self.scenario.check(good, "the leader is replaced in its place", text)
        self.wait_for_another(leader, kind)

    def wait_for_another(self, leader, kind):
        def another_leads():
            statuses = self.group.statuses(range(3))
            return any(s and s["role"] == "leader" and n != leader for n, s in statuses.items())
        try:
            h.wait_until(another_leads, 60, f"another replica leads after: {kind}")
        except h.Failure as failure:
            raise h.Failure(f"{failure}: replica {leader} led; {self.group.reigns()[-6:]}; "
                            f"{self.group.brief()}") from None
        self.done[kind] += 1
        self.counts = {client: client.count() for client in self.counts}

    def run(self):
        for _ in range(self.rounds):
            for kind in self.kinds:
                h.wait_until(self.are_whole, PATIENCE, f"all replicas are ready before: {kind}")
                self.change(kind)
        h.wait_until(self.are_whole, PATIENCE, "all replicas are ready at the end")


class Client:
    """Runs one of Debian's clients again and again until it must end; `good` checks its output."""

    def __init__(self, name, command, good, pause=2):
        self.name, self.command, self.good = name, [str(word) for word in command], good
        self.pause = pause   # so that a recovering replica can catch up
        self.runs, self.bad, self.ends = 0, "", threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ends.is_set() and not self.bad:
            done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, text=True, errors="replace", cwd="/")
            self.runs += 1
            if done.returncode != 0 or not self.good(done.stdout):
                self.bad = f"status {done.returncode}: {done.stdout[-2000:]}"
            self.ends.wait(self.pause)

    def start(self):
        self.thread.start()

    def end(self):
        """Ends the client and returns its problem, or ''."""
        self.ends.set()
        self.thread.join()
        return self.bad or ("" if self.runs else "it never ran")

    def summary(self):
        return f"{self.name}: {self.runs} runs"


def kill_node(_, group):
    group.signal_node(group.leader(), signal.SIGKILL)


def hand_over(scenario, group):
    """Transfers the lead to a replica that began at a checkpoint with open connections."""
    to = (group.leader() + 1) % 3
    before = group.replica(to)["node_pid"]
    status, text = h.ctl(scenario, "checkpoint", "now", group.name, "--dir", str(group.home))
    scenario.check(status == 0, "a checkpoint is taken", text)
    group.signal_node(to, signal.SIGKILL)

    def is_back():
        statuses = group.statuses(range(3))[to]
        return group.replica(to)["node_pid"] != before and statuses and statuses["server_pid"]
    h.wait_until(is_back, 60, "the replica has recovered")
    scenario.say(f"came back by {group.status(to)['recovery']['came_back_by']}")
    h.wait_until(lambda: group.are_near(2000), 60, "the replica has caught up")
    status, text = h.ctl(scenario, "leader", "transfer", group.name, "--dir", str(group.home),
                         "--to", str(to))
    scenario.check(status == 0, "the lead is handed over", text)


def are_equal(scenario, group, said):
    """`said`: the statuses of all replicas after they had settled."""
    reset = [s["reset_leader"] for s in said.values()]
    scenario.check(not any(reset), f"{group.name}: no connection was reset", repr(reset))
    scenario.check(not any(s["verified"]["alarm"] for s in said.values()),
                   f"{group.name}: the replicas are equal", repr(said))


def check(scenario, group, clients, kinds, rounds, before_stop=lambda: None, near=30000):
    """Checks that `clients` survive `rounds` of each kind of change and the replicas stay equal."""
    changes = Changes(scenario, group, kinds, rounds, clients, near)
    for client in clients:
        client.start()
    try:
        changes.run()
    finally:
        wrong = {client: client.end() for client in clients}
    for client, what in wrong.items():
        scenario.check(not what, f"{client.summary()}, nothing noticed", what)
    before_stop()
    statuses = group.settle()
    adopted, reset = ([s[key] for s in statuses.values()] for key in ("adopted", "reset_leader"))
    scenario.say(f"{group.name}: {changes.done}; since their last start the replicas have adopted "
                 f"{adopted}, reset {reset}")
    are_equal(scenario, group, statuses)
    group.stop()
