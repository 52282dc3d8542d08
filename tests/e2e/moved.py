#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three hosts as network namespaces, redis over tcp with a virtual address. The leader's node is
killed, stopped for two seconds, and stopped cleanly; its link is cut and mended; the lead is
transferred; finally a fourth host replaces the leader. Clients of the address keep their
connections: none is reset, no answer is lost or comes twice, the replicas are equal.

Printed, not asserted: how long the clients waited at a change.
"""
import ctypes
import signal
import socket
import statistics
import struct
import threading
import time

import _harness as h
import _takeovers as t
from _hosts import Hosts
from _network import Network

HOSTS = 3
KINDS = ("transfer", "kill", "cut", "stop", "end")


class Client(threading.Thread):
    """Counts on one connection, and now and then requests a long answer. Each answer must be the
    next number, or complete."""

    def __init__(self, address, port, number):
        super().__init__(daemon=True)
        self.socket = socket.create_connection((address, port), 30)
        self.socket.settimeout(60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.key, self.count, self.bad, self.ended, self.longest = f"k{number}", 0, "", False, 0
        self.file = self.socket.makefile("rb")
        self.long = bytes([65 + number % 26]) * 200000

    def ask(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        began = time.monotonic()
        self.socket.sendall(b"".join(parts))
        line = self.file.readline()
        answer = self.file.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line[:-2]
        self.longest = max(self.longest, time.monotonic() - began)
        return answer

    def step(self):
        self.count += 1
        answer = self.ask("INCR", self.key)
        if answer != b":%d" % self.count:
            raise h.Failure(f"{self.key}: INCR {self.count} was answered by {answer!r}")
        if self.count % 50 == 1 and self.ask("GET", "long" + self.key) != self.long:
            raise h.Failure(f"{self.key}: a long answer is not complete")

    def begin(self):
        if self.ask("SET", "long" + self.key, self.long) != b"+OK":
            raise h.Failure(f"{self.key}: SET failed")

    def run(self):
        try:
            while not self.ended:
                self.step()
        except (OSError, ValueError, h.Failure) as failure:
            self.bad = f"{self.key} after {self.count}: {failure!r}"


class LastWords:
    """Counts packets from the address that end a connection: a FIN or an RST."""

    def __init__(self, bridge, address):
        there = int.from_bytes(socket.inet_aton(address), "big")
        steps = [(0x28, 0, 0, 12), (0x15, 0, 8, 0x0800),  # IPv4
                 (0x30, 0, 0, 23), (0x15, 0, 6, 6),  # TCP
                 (0x20, 0, 0, 26), (0x15, 0, 4, there),
                 (0xb1, 0, 0, 14), (0x50, 0, 0, 14 + 13), (0x45, 0, 1, 0x05),  # its flags
                 (0x06, 0, 0, 200), (0x06, 0, 0, 0)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *s) for s in steps))
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.SOL_SOCKET, 26,  # SO_ATTACH_FILTER
                               struct.pack("HL", len(steps), ctypes.addressof(code)))
        self.socket.bind((bridge, 0x0003))

    def heard(self):
        frames = []
        try:
            while True:
                frames.append(self.socket.recv(200))
        except BlockingIOError:
            return frames


class Changes:
    """The changes that happen to the leader."""

    def __init__(self, scenario, group, network, clients):
        self.scenario, self.group, self.network, self.clients = scenario, group, network, clients
        self.gaps, self.last = {}, 0

    def goes_on(self):
        before = [c.count for c in self.clients]
        h.wait_until(lambda: all(c.count > n + 20 or c.bad for c, n in zip(self.clients, before)),
                     60, "all clients continue")
        if any(c.bad for c in self.clients):
            raise h.Failure("\n".join(c.bad for c in self.clients if c.bad))

    def is_whole(self):
        seen = self.group.statuses()
        return (len(seen) == HOSTS and h.is_whole(seen)
                and not any(s["recovery"]["catches_up"] for s in seen.values())
                and len({s["view"] for s in seen.values()}) == 1
                and sorted(s["role"] for s in seen.values()) == ["follower", "follower", "leader"])

    def has_it_alone(self, leader):
        h.wait_until(lambda: self.network.holders() == [leader], 20,
                     f"replica {leader} alone has the virtual address")

    def kill(self, leader):
        self.group.stop_one(leader, signal.SIGKILL)
        self.group.leader(others_than=[leader])
        self.goes_on()
        self.group.start(leader)

    def cut(self, leader):
        self.network.link(leader, "down")
        following = self.group.leader(others_than=[leader])
        self.goes_on()
        self.network.link(leader, "up")
        self.has_it_alone(following)

    def stop(self, leader):
        node = self.group.nodes[leader]
        node.send_signal(signal.SIGSTOP)
        threading.Timer(2, node.send_signal, (signal.SIGCONT,)).start()
        following = self.group.leader(others_than=[leader])
        self.goes_on()
        self.has_it_alone(following)

    def end(self, leader):
        status = self.group.stop_one(leader)
        if status != 0:
            raise h.Failure(f"the leader's node ended with status {status}")
        self.group.leader(others_than=[leader])
        self.goes_on()
        self.group.start(leader)

    def transfer(self, leader):
        self.group.lead((leader + 1) % HOSTS)

    def replace(self, leader):
        self.group.start(HOSTS)
        code, text, error = self.group.ctl("member", "replace", str(leader), str(HOSTS))
        if code != 0:
            raise h.Failure(f"member replace: {text}{error}")
        self.group.wait(leader)

    def change(self, kind):
        # A client's kernel answers one challenge of a new leader in half a second (RFC 5961).
        h.wait_until(lambda: time.monotonic() > self.last + 1, 60, "the clients answer again")
        h.wait_until(self.is_whole, 60, "all replicas are ready")
        self.goes_on()
        for client in self.clients:
            client.longest = 0
        getattr(self, kind)(self.group.leader())
        self.goes_on()
        self.last = time.monotonic()
        self.gaps.setdefault(kind, []).extend(c.longest for c in self.clients)


def judge(scenario, changes, rounds, words, idle=()):
    """Checks the clients, which have ended, and the capture."""
    clients, last_words = changes.clients, words.heard()
    bad = [c.bad for c in (*clients, *idle) if c.bad]
    scenario.check(not bad, f"{len(clients)} clients and {len(idle)} idle ones, {rounds} x "
                   f"{', '.join(changes.gaps)}: all still connected, "
                   f"{sum(c.count for c in clients)} "
                   "answers", "\n".join(bad[:10]))
    scenario.check(not last_words, "no client's connection is ended",
                   f"{len(last_words)}: {last_words[:1]}")
    for kind, seconds in changes.gaps.items():
        scenario.say(f"{kind}: clients waited {statistics.median(seconds) * 1000:.0f} ms, "
                     f"at most {max(seconds) * 1000:.0f}")


def change_all(changes, rounds, kinds, last):
    """Changes the leader under the clients, which then end."""
    for client in changes.clients:
        client.start()
    try:
        for _ in range(rounds):
            for kind in kinds:
                changes.change(kind)
        changes.change(last)
    finally:
        for client in changes.clients:
            client.ended = True
        for client in changes.clients:
            client.join(60)


def body(scenario):
    h.need("redis-server", "ip", "iptables")
    rounds = scenario.options.rounds or (20 if scenario.full else 2)
    number = 200 if scenario.full else 40
    port = h.free_port()
    with Network(HOSTS + 1) as network, \
            Hosts(scenario, h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0"),
                  port=port, fabric="tcp", addresses=network.addresses, group={"members": HOSTS},
                  started=range(HOSTS),
                  clients={"listen": "any", **network.moving_address()},
                  prefix=network.enter) as group:
        h.wait_until(lambda: network.holders() == [group.leader()], 20, "the address is there")
        clients = [Client(network.virtual, port, i) for i in range(8)]
        idle = [Client(network.virtual, port, 100 + i) for i in range(number)]
        for client in clients + idle:
            client.begin()
        words = LastWords(network.planes[0][0], network.virtual)
        changes = Changes(scenario, group, network, clients)
        change_all(changes, rounds, scenario.options.kinds or KINDS, "replace")
        for client in idle:
            try:
                client.step()
            except (OSError, ValueError, h.Failure) as failure:
                client.bad = f"idle {client.key}: {failure!r}"
        if any(c.bad for c in clients + idle):
            group.explain()
        judge(scenario, changes, rounds, words, idle)
        for client in idle[:3]:
            client.ask("QUIT")
        h.wait_until(words.heard, 20, "the capture sees a connection's end")
        t.are_equal(scenario, group, group.settle())


if __name__ == "__main__":
    h.run_scenario("moved", body, rounds={"type": int, "default": 0},
                   kinds={"nargs": "*", "choices": KINDS, "help": "only these changes"})
