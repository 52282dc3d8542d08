#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failures outside the nodes cost no client. Every node is killed, at once and one after the other,
with crane-run and without: connections wait, and continue. crane-run is stopped while the lead
moves around; a node runs out of descriptors: clients are served, and no loop spins. When the group
has ended no client waits any more.
"""
import contextlib
import itertools
import os
import re
import resource
import signal
import socket
import threading

import _harness as h
import _takeovers as t
from recovers import all_back, kill, pids_of
from takeover_run import kill_crane_run, run, start_again

CLIENTS = 6
NUMBERS = itertools.count()
TRANSFERS = 150   # a socket to crane-run holds about 200 messages


class Kept(threading.Thread):
    """A client with one connection, which is never reopened."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.bad = port, 0, ""
        self.ends = threading.Event()

    def run(self):
        try:
            self.open()
            while not self.ends.is_set():
                self.ask()
                self.answers += 1
                self.ends.wait(0.002)
        except (OSError, h.Failure, ValueError, IndexError) as failure:
            self.bad = f"{type(failure).__name__} after {self.answers} answers: {failure}"


class Counts(Kept):
    """INCR of redis: each number once."""

    def open(self):
        self.redis = h.Redis(self.port, 120)
        self.key = f"kept {next(NUMBERS)}"

    def ask(self):
        number = self.redis("INCR", self.key)
        if number != self.answers + 1:
            raise h.Failure(f"{number} after {self.answers}")


class Fetches(Kept):
    """A page of apache, by kept-alive requests."""

    def open(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), 120)
        self.file = self.socket.makefile("rb")

    def ask(self):
        self.socket.sendall(b"GET /1k.html HTTP/1.1\r\nHost: crane.test\r\n\r\n")
        status, length = self.file.readline(), 0
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = self.file.read(length)
        if not status.startswith(b"HTTP/1.1 200") or body != b"x" * 1023 + b"\n":
            raise h.Failure(f"{status!r} with {len(body)} bytes")


class Clients:
    def __init__(self, kind, port):
        self.all = [kind(port) for _ in range(CLIENTS)]

    def __enter__(self):
        for client in self.all:
            client.start()
        self.progress(20)
        return self

    def bad(self):
        return [c.bad for c in self.all if c.bad]

    def progress(self, each=20, seconds=90):
        """Waits until every client has this many more answers, or one has stopped."""
        goals = [c.answers + each for c in self.all]
        h.wait_until(lambda: self.bad() or all(c.answers >= g for c, g in zip(self.all, goals)),
                     seconds, f"every client is answered: {[c.answers for c in self.all]}")

    def __exit__(self, *_):
        for client in self.all:
            client.ends.set()
        for client in self.all:
            client.join(60)


def keepers(group):
    """Processes that hold client sockets for its nodes, whose command lines they have."""
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit()
            and h.name_of(pid) == "crane-sockets" and h.alive(int(pid))
            and f"/{group.name}/" in words_of(pid)]


def words_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as words:
        return words.read()
    return ""


def waiting_keepers(group):
    """Keepers whose node is gone: they have closed all descriptors except clients' sockets."""
    return [pid for pid in keepers(group) if not os.path.exists(f"/proc/{pid}/fd/2")]


# --- all nodes ----------------------------------------------------------------------------------

def all_at_once(group, clients):
    group.remember(group.state())
    kill(pids_of(group, "node", range(3)))
    all_back(group)
    clients.progress()


def one_after_the_other(group, clients):
    group.remember(group.state())
    for victim in [group.leader(), *[n for n in range(3) if n != group.leader()]]:
        pid = group.replica(victim)["node_pid"]
        kill([pid])
        h.wait_until(lambda: not h.alive(pid), 20, f"replica {victim} has ended")
    all_back(group)
    clients.progress()


def with_crane_run(group, clients):
    kill_crane_run(group)
    kill(pids_of(group, "node", range(3)))
    h.wait_until(lambda: not any(h.alive(pid) for pid in group.known
                                 if h.name_of(pid) == "crane-node"), 20, "all nodes have ended")
    start_again(group)
    all_back(group)
    clients.progress()


def lost(scenario, group, kind, name):
    for fault in (all_at_once, one_after_the_other, with_crane_run):
        what = f"{name}, {fault.__name__.replace('_', ' ')}"
        with Clients(kind, group.port) as clients:
            fault(group, clients)
            scenario.check(not clients.bad(), f"{what}: every connection continued",
                           clients.bad()[:3])
        group.remember(group.state())
        group.settle()


def killed_keeper(scenario, group):
    """A keeper is killed, then its node: the replacement keeper has the sockets."""
    with Clients(Counts, group.port) as clients:
        leader = group.leader()
        node = group.replica(leader)["node_pid"]
        its = [pid for pid in h.children(node) if h.name_of(pid) == "crane-sockets"]
        kill(its)
        h.wait_until(lambda: [pid for pid in h.children(node) if h.name_of(pid) == "crane-sockets"
                              and pid not in its], 20, "the keeper was replaced")
        kill([node])
        clients.progress()
        scenario.check(not clients.bad(), "its keeper is killed, then the leader's node: "
                       "every connection continued", clients.bad()[:3])
    all_back(group)
    group.remember(group.state())


# --- the end ------------------------------------------------------------------------------------

def ends(scenario, group, how):
    """Clients wait for a group that ends: they are reset, and nothing is left."""
    client = h.Redis(group.port, 60)
    client("PING")
    group.remember(group.state())
    if how == "crane-run stops":
        group.process.send_signal(signal.SIGSTOP)   # it starts no node meanwhile
    else:
        kill_crane_run(group)
    kill(pids_of(group, "node", range(3)))
    h.wait_until(lambda: waiting_keepers(group), 20, f"{how}: a keeper has the client's socket")
    if how == "crane-run stops":
        group.process.send_signal(signal.SIGTERM)
        group.process.send_signal(signal.SIGCONT)
        group.process.wait(60)
    else:
        status, text = run(group, "--stop", "--name", group.name, "--dir", str(group.home))
        scenario.check(status == 0 and "are reset" in text, f"{how}: --stop reports it", text)
    try:
        client.answer()
        saw = "an answer"
    except OSError as error:
        saw = type(error).__name__
    scenario.check(saw == "ConnectionResetError", f"{how}: a waiting client is reset", saw)
    h.wait_until(lambda: not keepers(group), 20, f"{how}: no keeper is left")
    client.close()


# --- failures outside the nodes -----------------------------------------------------------------

def role_of(group, number):
    return (group.status(number) or {}).get("role")


def leading(group):
    """Returns the leader by the nodes' reports, because the stopped crane-run sees no change."""
    return next((n for n in range(3) if role_of(group, n) == "leader"), None)


def has_handed_over(group, before):
    """Requests it as long as the request is refused or has no effect."""
    now = leading(group)
    if now == before:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(20)
            s.connect(str(group.dir / f"r{before}" / "control.sock"))
            s.send(b'{"do":"transfer"}')
            s.recv(4096)
    return now not in (None, before)


def stopped_crane_run(scenario, group):
    """Ctrl-Z of crane-run: the nodes' messages to it wait, and it reads all of them later."""
    with Clients(Counts, group.port) as clients:
        with h.stopped(group.process.pid):
            for _ in range(TRANSFERS):
                before = h.wait_until(lambda: [n for n in [leading(group)] if n is not None], 30,
                                      "a replica leads")[0]
                h.wait_until(lambda: has_handed_over(group, before), 30, "another one leads")
                clients.progress(2)
            answers = [role_of(group, n) for n in range(3)]
            scenario.check(sorted(map(str, answers)) == ["follower", "follower", "leader"],
                           f"crane-run stopped, {TRANSFERS} transfers: no node waits for crane-run",
                           answers)
            clients.progress()
        h.wait_until(lambda: group.state()["leader"] == leading(group), 20,
                     "crane-run learns which replica leads")
        scenario.check(not clients.bad(), "crane-run stopped: every client is served",
                       clients.bad()[:3])
    group.remember(group.state())


def open_of(pid):
    return {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}


def without_descriptors(scenario, group):
    """The leader's node can open no descriptor: it waits for one, and others continue meanwhile."""
    leader = group.leader()
    node = group.replica(leader)["node_pid"]
    log = group.dir / f"r{leader}" / "node.log"

    def said():
        return len(re.findall("cannot accept at port", log.read_text(errors="replace")))
    for others in (0, 1):
        h.wait_until(lambda: group.status(leader)["connections"] == 0, 20, "no client is left")
        kept = [h.Redis(group.port, 60) for _ in range(others)]
        for client in kept:
            client("PING")
        before, had = said(), resource.prlimit(node, resource.RLIMIT_NOFILE)
        least = next(n for n in range(1 << 20) if n not in open_of(node))
        resource.prlimit(node, resource.RLIMIT_NOFILE, (least, had[1]))
        new = h.Redis(group.port, 60)
        new.send("PING")
        h.wait_until(lambda: said() > before, 20, "the node reports that it has no descriptor")
        busy = h.process_stat(node)[1]
        for client in kept:
            for _ in range(300):
                client("PING")
        for _ in range(300):   # the group continues meanwhile
            group.status((leader + 1) % 3)
        busy = h.process_stat(node)[1] - busy
        scenario.check(said() == before + 1,
                       f"no descriptor, {others} clients: it is reported once", said() - before)
        scenario.say(f"no descriptor, {others} clients: the node used {busy} ticks meanwhile")
        resource.prlimit(node, resource.RLIMIT_NOFILE, had)
        scenario.check(new.answer() == "PONG",
                       f"no descriptor, {others} clients: the one that waited is served after all")
        for client in [new, *kept]:
            client.close()


def redis(scenario, act, *options):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=[*t.RETURNS, *options]) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        act(group)


def apache(scenario, act):
    port = h.free_port()
    conf = h.apache_configuration(scenario.work, port,
                                  "MaxKeepAliveRequests 0\nKeepAliveTimeout 300")
    with h.Group(scenario, ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"], port=port,
                 options=t.RETURNS) as group:
        act(group)


def body(scenario):
    h.need("redis-server", "apache2")

    def by_hand(group):
        ends(scenario, group, "--stop, where nothing runs")
        start_again(group)
    parts = {
        "redis": lambda: redis(scenario, lambda group: lost(scenario, group, Counts, "redis")),
        "disk": lambda: redis(scenario, lambda group: lost(scenario, group, Counts, "log on disk"),
                              "--durability", "disk"),
        "stopped": lambda: redis(scenario, lambda group: stopped_crane_run(scenario, group)),
        "descriptors": lambda: redis(scenario, lambda group: without_descriptors(scenario, group)),
        "keeper": lambda: redis(scenario, lambda group: killed_keeper(scenario, group)),
        "end": lambda: redis(scenario, lambda group: ends(scenario, group, "crane-run stops")),
        "stop": lambda: redis(scenario, by_hand),
        "apache": lambda: apache(scenario, lambda group: lost(scenario, group, Fetches, "apache")),
    }
    for name in scenario.options.only or parts:
        parts[name]()


if __name__ == "__main__":
    h.run_scenario("lost_group", body, only={"nargs": "*", "help": "only these parts"})
