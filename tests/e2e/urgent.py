#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: urgent data of real clients reaches the server with its mark, and survives the loss of the
leader.
METHOD: three replicas of urgent_server.c. Clients send and receive urgent bytes. The leader is
killed when a byte and its mark are in the log but no thread has read them; in another case it is
stopped first, so that they are only in the socket.
CHECKS: the server's report of each byte: urgent, its place, SIGURG; the mark of the bytes that it
sends back; equal outputs and schedules of all replicas, and of a replay. On three hosts, with a
virtual address, the same when the leader is killed.
"""
import fcntl
import os
import signal
import select
import socket
import struct
import subprocess

import _harness as h
import _takeovers as t
from _hosts import Hosts
from _network import Network

SIOCATMARK = 0x8905
SECONDS = 60


class Client:
    def __init__(self, port, address="127.0.0.1"):
        self.socket = socket.create_connection((address, port), SECONDS)
        self.heard = b""
        self.ask(b"hi", b"read hi")   # the socket has an owner from now on

    def say(self, text, *flags):
        self.socket.send(text, *flags)

    def hear(self, *lines):
        """Reads the next lines; a failure names what came instead."""
        want = b"".join(line + b"\n" for line in lines)
        while len(self.heard) < len(want):
            part = self.socket.recv(1000)
            if not part:
                break
            self.heard += part
        got, self.heard = self.heard[:len(want)], self.heard[len(want):]
        if got != want:
            raise h.Failure(f"the server sent {got + self.heard!r}, not {want!r}")

    def ask(self, text, *lines):
        self.say(text)
        self.hear(*lines)

    def is_at_mark(self):
        return struct.unpack("i", fcntl.ioctl(self.socket, SIOCATMARK, b"\0" * 4))[0] == 1


def send_all_kinds(client):
    """An urgent byte alone, one after other bytes, and one before other bytes."""
    client.say(b"1", socket.MSG_OOB)
    client.hear(b"signal", b"urgent 1")
    client.ask(b"x", b"mark", b"read x")
    client.say(b"ab2", socket.MSG_OOB)
    client.hear(b"signal", b"urgent 2", b"read ab")
    client.ask(b"cd", b"mark", b"read cd")


def is_rung(client):
    """The server sends "ding" and an urgent byte."""
    client.say(b"ring")
    select.select([], [], [client.socket], SECONDS)
    urgent = client.socket.recv(1, socket.MSG_OOB)
    text = client.socket.recv(100)
    at_mark = client.is_at_mark()
    client.ask(b"y", b"read y")
    return (urgent, text, at_mark) == (b"!", b"ding", True)


def hold(client, control):
    """An urgent byte that is in the log, and that no thread reads."""
    client.ask(b"hold", b"held")
    client.say(b"ab3", socket.MSG_OOB)
    client.say(b"cd")

    def is_there():
        control.say(b"look")
        answer = control.socket.recv(100)
        return answer == b"there 2\n"
    h.wait_until(is_there, SECONDS, "the server has the bytes before the mark")


def let_go(client, control):
    control.ask(b"go", b"gone")
    client.hear(b"signal", b"urgent 3", b"read ab", b"mark", b"read cd")


def kill_leader(group):
    leader = group.leader()
    os.kill(group.replica(leader)["node_pid"], signal.SIGKILL)
    h.wait_until(lambda: any(s and s["role"] == "leader" and n != leader
                             for n, s in group.statuses(range(3)).items()), SECONDS,
                 "another replica leads")


def on_one_host(scenario):
    port = h.free_port()
    program = [str(scenario.out / "e2e/urgent_server"), str(port)]
    # A replica that recovers replays all inputs, and records them.
    options = [*t.RETURNS, "--checkpoint-every", "0", "--checkpoint-log", "0"]
    with h.Group(scenario, program, port=port, options=options, record=True) as group:
        client, control = Client(port), Client(port)
        send_all_kinds(client)
        scenario.check(is_rung(client), "the client gets the server's urgent byte")

        hold(client, control)
        kill_leader(group)
        let_go(client, control)
        send_all_kinds(client)
        scenario.check(is_rung(client), "after a kill urgent bytes pass in both directions")

        h.wait_until(group.are_whole, 120, "all replicas are back")
        h.at_rest(group)
        leader = group.leader()
        os.kill(group.replica(leader)["node_pid"], signal.SIGSTOP)
        client.say(b"e4", socket.MSG_OOB)
        client.say(b"f")
        os.kill(group.replica(leader)["node_pid"], signal.SIGKILL)
        client.hear(b"signal", b"urgent 4", b"read e", b"mark", b"read f")
        scenario.check(True, "bytes that only the socket had keep their mark, too")
        scenario.check(is_rung(client), "urgent bytes pass back")
        h.wait_until(group.are_whole, 120, "all replicas are back")
        h.at_rest(group)
    scenario.check_equal(group)
    scenario.check_schedule(group)
    done = subprocess.run([str(scenario.out / "crane-replay"), str(group.record)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, errors="replace", check=False)
    scenario.check(done.returncode == 0, "a replay is equal", done.stdout)


def on_three_hosts(scenario):
    h.need("ip", "iptables")
    port = h.free_port()
    program = [str(scenario.out / "e2e/urgent_server"), str(port)]
    with Network(3) as network, \
            Hosts(scenario, program, port=port, fabric="tcp", addresses=network.addresses,
                  clients={"listen": "any", **network.moving_address()},
                  prefix=network.enter) as group:
        h.wait_until(lambda: network.holders() == [group.leader()], 20, "the address is there")
        client, control = (Client(port, network.virtual) for _ in range(2))
        send_all_kinds(client)
        hold(client, control)
        leader = group.leader()
        group.stop_one(leader, signal.SIGKILL)
        group.leader(others_than=[leader])
        let_go(client, control)
        send_all_kinds(client)
        scenario.check(is_rung(client), "clients of a virtual address keep their marks, too")
        group.start(leader)
        t.are_equal(scenario, group, group.settle())


def body(scenario):
    on_one_host(scenario)
    on_three_hosts(scenario)


h.run_scenario("urgent", body)
