#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What many connections cost when the leader's node is killed: the time from the kill until the
first and until the last of them is answered, and the memory per connection of each node.

One JSON line per round (`--out-file`), and a table of medians; the clients are idle connections to
a group of redis. All nodes are stopped while all clients ask; then the leader's node is killed and
the others go on: from there the time counts.
"""
import argparse
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from place import Place  # noqa: E402


def memory_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1])
    return 0


def nodes(group):
    return [r["node_pid"] for r in group.state()["replicas"]]


class Crowd:
    """Connections that all ask at once. To ask takes this program as long as the group needs to go
    on, so all have asked before the moment that counts."""

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
    with h.Group(place, command, port=port, options=["--checkpoint-every", "0"]) as group:
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
        said = group.status(group.leader())
        crowd.close()
        kb = [(b - a) / count for a, b in zip(before, after)]
        return {"connections": count, "first_ms": first * 1000, "last_ms": last * 1000,
                "wrong": wrong, "adopted": said["last_adopted"], "reset": said["last_reset"],
                "leader_kb": kb[leader], "follower_kb": max(k for n, k in enumerate(kb)
                                                            if n != leader)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--connections", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out-file", help="append a JSON line per round")
    options = parser.parse_args()
    limit = max(options.connections) + 1000
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, hard), hard))
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-connections-", dir="/var/tmp"))
    work.chmod(0o755)
    place, good = Place(pathlib.Path(options.out).resolve(), work, "connections"), True
    try:
        h.need("redis-server")
        print("connections  first answer  last answer  leader   follower  adopted  reset  wrong")
        for count in options.connections:
            rounds = [one_round(place, count) for _ in range(options.rounds)]
            if options.out_file:
                with open(options.out_file, "a", encoding="ascii") as out:
                    out.writelines(json.dumps(r) + "\n" for r in rounds)
            middle = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
            print(f"{count:11d}  {middle['first_ms']:9.1f} ms  {middle['last_ms']:8.1f} ms  "
                  f"{middle['leader_kb']:4.1f} kB  {middle['follower_kb']:5.1f} kB  "
                  f"{middle['adopted']:7.0f}  {sum(r['reset'] for r in rounds):5d}  "
                  f"{sum(r['wrong'] for r in rounds):5d}", flush=True)
            good = good and not any(r["wrong"] or r["reset"] for r in rounds)
    except (h.Failure, h.CannotRun, OSError, subprocess.SubprocessError) as failure:
        print(f"broken off: {failure}", file=sys.stderr)
        good = False
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if good else 1


sys.exit(main())
