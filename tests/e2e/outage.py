#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server must not notice an outage of the group: apache2 closes kept-alive connections after
some idle seconds, and the group is out of service for longer. Requests sent before or during the
outage are answered on the same connections, whatever caused it: no majority, all nodes stopped, or
the leader lost while the others are stopped.
"""
import select
import signal
import socket
import time

import _harness as h

CLIENTS = 8
REQUEST = b"GET /1k.html HTTP/1.1\r\nHost: crane.test\r\n\r\n"


class Kept:
    """A kept-alive connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)

    def ask(self):
        self.socket.sendall(REQUEST)

    def answer(self):
        """An error text about the answer, or nothing."""
        got = b""
        try:
            while b"\r\n\r\n" not in got or len(got.partition(b"\r\n\r\n")[2]) < 1024:
                part = self.socket.recv(65536)
                if not part:
                    return f"closed after {len(got)} bytes"
                got += part
        except OSError as error:
            return f"{type(error).__name__} behind {len(got)} bytes"
        good = got.startswith(b"HTTP/1.1 200 ") and got.endswith(b"x\n")
        return "" if good else repr(got[:200])

    def is_quiet(self):
        """Neither bytes nor an end has arrived."""
        return not select.select([self.socket], [], [], 0)[0]

    def close(self):
        self.socket.close()


def outage(scenario, group, port, what, seconds, begin, end):
    """`begin` stops the group; `end` lets it continue `seconds` later."""
    clients = [Kept(port) for _ in range(CLIENTS)]
    try:
        for client in clients:
            client.ask()
        wrong = [w for w in (client.answer() for client in clients) if w]
        scenario.check(not wrong, f"{what}: answered before", wrong)
        begin()
        began = time.monotonic()
        for client in clients[:CLIENTS // 2]:
            client.ask()
        time.sleep(seconds - 0.5)
        for client in clients[CLIENTS // 2:]:
            client.ask()
        quiet = sum(client.is_quiet() for client in clients)
        scenario.check(quiet == CLIENTS, f"{what}: an outage",
                       f"{CLIENTS - quiet} received something")
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        end()
        wrong = [w for w in (client.answer() for client in clients) if w]
        scenario.check(not wrong, f"{what}: {CLIENTS} requests of {seconds:.0f} s without service "
                       "are answered on their connections", wrong)
        for client in clients:
            client.ask()
        wrong = [w for w in (client.answer() for client in clients) if w]
        scenario.check(not wrong, f"{what}: the next requests are answered", wrong)
    finally:
        for client in clients:
            client.close()
    h.wait_until(lambda: group.are_near(1000), 60, "all replicas are back")


def body(scenario):
    port = h.free_port()
    idle, seconds = (5, 20.0) if scenario.full else (2, 4.0)
    conf = h.apache_configuration(scenario.work, port, f"KeepAliveTimeout {idle}\n"
                                  "MaxKeepAliveRequests 0\n")
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port) as group:

        def signal_all(numbers, signo):
            for number in numbers:
                group.signal_node(number, signo)

        def stop(numbers):
            signal_all(numbers, signal.SIGSTOP)
            for number in numbers:
                pid = group.running_pid(number)
                h.wait_until(lambda pid=pid: h.process_stat(pid)[2] == "T", 10, "it is stopped")

        def followers():
            return [n for n in range(3) if n != leader]

        # Stopped followers still form a majority, because the leader writes directly into their
        # memory.
        def lose_majority():
            group.process.send_signal(signal.SIGSTOP)   # otherwise crane-run restarts them
            signal_all(followers(), signal.SIGKILL)
            h.wait_until(lambda: (group.status(leader) or {}).get("no_quorum"), 10,
                         "the leader has noticed")
        leader = group.leader()
        outage(scenario, group, port, "no majority", seconds, lose_majority,
               lambda: group.process.send_signal(signal.SIGCONT))
        leader = group.leader()
        outage(scenario, group, port, "all nodes stopped", seconds,
               lambda: stop(range(3)),
               lambda: signal_all(range(3), signal.SIGCONT))
        leader = group.leader()

        def lose_leader():
            stop(followers())
            pid = group.running_pid(leader)
            group.signal_node(leader, signal.SIGKILL)
            h.wait_until(lambda: not h.alive(pid), 10, "the leader is gone")
        outage(scenario, group, port, "the leader lost", seconds, lose_leader,
               lambda: signal_all(followers(), signal.SIGCONT))
        h.wait_until(lambda: len(group.live()) == 3, 60, "three of three")
        scenario.check(not group.alarm(), "the replicas are equal")


h.run_scenario("outage", body)
