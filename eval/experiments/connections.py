# SPDX-License-Identifier: Apache-2.0
"""The cost of many connections when the leader's node is killed.

The time from the kill until the first and until the last of them is answered, and the memory per
connection of each node. The clients are idle connections to a group of redis. All nodes are stopped
while all clients ask; then the leader's node is killed and the others continue: the time counts
from there.
"""
import os
import pathlib
import resource
import select
import signal
import socket
import time

import _harness as h
import session
import tables
from start import running

OPTIONS = {"repeats": session.repeats(5), "counts": ([100, 1000, 10000], "of connections")}
PROGRAMS = ("redis-server",)


def memory_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1])
    return 0


def nodes(group):
    return [r["node_pid"] for r in group.state()["replicas"]]


class Crowd:
    """Connections that all ask at once. To ask takes this program as long as the group needs to
    continue, so all have asked before the moment that counts."""

    def __init__(self, port, count):
        self.clients = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(count)]
        self.poller = select.epoll()
        self.by_number = {c.fileno(): c for c in self.clients}
        for number in self.by_number:
            self.poller.register(number, select.EPOLLIN | select.EPOLLET)

    def ask(self):
        for client in self.clients:
            client.sendall(b"PING\r\n")

    def answers(self, moment):
        """Seconds from `moment` to the first and the last answer; how many were wrong."""
        first = last = None
        wrong, waiting = 0, len(self.clients)
        while waiting:
            ready = self.poller.poll(30)
            if not ready:
                return first, last, wrong + waiting
            last = time.monotonic() - moment
            first = first or last
            waiting -= len(ready)
            for number, _ in ready:
                try:
                    wrong += self.by_number[number].recv(100) != b"+PONG\r\n"
                except OSError:
                    wrong += 1
        return first, last, wrong

    def close(self):
        self.poller.close()
        for client in self.clients:
            client.close()


def one_round(place, count):
    port = h.free_port()
    command = [*h.redis_program(port), "--maxclients", str(count + 100), "--tcp-backlog", "1024"]
    with running(place, command, port, 3, ["--checkpoint-every", "0"]) as group:
        before = [memory_kb(pid) for pid in nodes(group)]
        crowd = Crowd(port, count)
        crowd.ask()
        crowd.answers(time.monotonic())
        group.settle()
        after = [memory_kb(pid) for pid in nodes(group)]
        leader = group.leader()
        lead, *others = sorted(nodes(group), key=lambda pid: pid != nodes(group)[leader])
        for pid in (*others, lead):
            os.kill(pid, signal.SIGSTOP)
        crowd.ask()
        moment = time.monotonic()
        os.kill(lead, signal.SIGKILL)
        for pid in others:
            os.kill(pid, signal.SIGCONT)
        first, last, wrong = crowd.answers(moment)
        status = group.status(group.leader())
        crowd.close()
    kb = [(b - a) / count for a, b in zip(before, after)]
    return {"connections": count, "first_ms": first * 1000, "last_ms": last * 1000,
            "wrong": wrong, "adopted": status["last_adopted"], "reset": status["last_reset"],
            "leader_kb": kb.pop(leader), "follower_kb": max(kb)}


def measure(x):
    limit = max(x.options.counts) + 1000
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, hard), hard))
    for repeat, count in x.rounds(x.options.counts):
        x.add({"key": [count, repeat], **one_round(x.place, count)})


def text(rows, _):
    form = "{:.1f}"
    return tables.summary(rows, {"connections": "connections"}, {
        "first_ms": ("first answer, ms", form), "last_ms": ("last answer, ms", form),
        "leader_kb": ("leader, kB each", form), "follower_kb": ("follower, kB each", form),
        "adopted": ("adopted", form), "reset": ("reset", form), "wrong": ("wrong", form)}, 0)


def problems(rows, _):
    return [f"{row['connections']} connections: {row['reset']} reset, {row['wrong']} wrong answers"
            for row in rows if row["wrong"] or row["reset"]]
