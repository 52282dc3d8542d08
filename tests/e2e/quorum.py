#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replica without a majority serves no client, and reports it: its clients are reset, those of a
follower's host too; the kernel refuses new ones; node.log and crane-ctl name the reason. All of
this ends when the majority is back. Two of three nodes are killed, and two of three hosts are cut
off.
"""
import contextlib
import signal
import socket
import threading
import time

import _harness as h
from _hosts import Hosts
from _network import Network
from hosts import ask, reset

SAID = "no quorum: 1 of 3 replicas answer; clients are refused"


def refused(address, port):
    try:
        socket.create_connection((address, port), timeout=5).close()
        return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def served(address, port):
    with contextlib.suppress(OSError):
        return ask(address, port, b"PING\r\n") == b"+PONG\r\n"
    return False


def told(group, number):
    status = group.status(number)
    return status is not None and status["no_quorum"] == SAID


def refuses(scenario, group, number, clients, what, since):
    """Its `clients` are reset, the next ones are refused, and the reason is reported."""
    resets = [reset(c) for c in clients]
    took = 1000 * (time.monotonic() - since)
    scenario.check(all(resets), f"{what}: its clients are reset", resets)
    scenario.say(f"{what}: the last of {len(clients)} clients was reset after {took:.0f} ms")
    h.wait_until(lambda: told(group, number), 20, "status names the reason")
    scenario.check(SAID in group.said(number), f"{what}: node.log names the reason")
    scenario.check(refused(group.addresses[number], group.port),
                   f"{what}: new clients are refused by the kernel")


class Asking(threading.Thread):
    """A client that sends requests continuously, until it is cut off."""

    def __init__(self, address, port):
        super().__init__(daemon=True)
        self.address, self.port = address, port
        self.answers, self.over = 0, False

    def run(self):
        with contextlib.suppress(OSError), \
                socket.create_connection((self.address, self.port), 20) as client:
            while not self.over:
                client.sendall(b"PING\r\n")
                if client.recv(16) == b"":
                    return
                self.answers += 1

    def wait_for(self, answers):
        h.wait_until(lambda: self.answers >= answers, 20, "answers flow")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join(30)


def nodes_are_killed(scenario):
    port = h.free_port()
    with Hosts(scenario, h.redis_program(port), port=port,
               group={"durability": "disk"}) as group:
        for last in ("the leader", "a follower"):
            leader = group.leader()
            left = leader if last == "the leader" else (leader + 1) % 3
            with contextlib.ExitStack() as stack:
                clients = []
                for _ in range(3):
                    c = stack.enter_context(
                        socket.create_connection((group.addresses[left], port), 20))
                    c.sendall(b"PING\r\n")
                    scenario.check(c.recv(16) == b"+PONG\r\n", f"served by {last}'s host")
                    clients.append(c)
                gone = [i for i in range(3) if i != left]
                since = time.monotonic()
                for i in gone:
                    group.nodes[i].send_signal(signal.SIGKILL)
                refuses(scenario, group, left, clients, f"{last} is the last of three nodes", since)
            code, text, _ = group.ctl("status", group.name)
            scenario.check(code != 0 and SAID in text, "crane-ctl status reports it",
                           f"{code}: {text}")
            for i in gone:
                group.wait(i)
                h.wait_until(lambda i=i: not [m for m in group.leftovers() if f"/r{i}/" in m + "/"],
                             20, "the killed node's server is gone")
            for i in gone:
                group.start(i)
            h.wait_until(lambda: group.serves(), 40, "the group serves again")
            h.wait_until(lambda: served(group.addresses[left], port), 20,
                         f"{last}'s host accepts clients again")
            scenario.check(not told(group, left), "no message about a missing quorum remains")


def hosts_are_cut_off(scenario):
    port = h.free_port()
    with Network(3, apart=True) as network, \
            Hosts(scenario, h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0"),
                  port=port, fabric="tcp", addresses=network.addresses, prefix=network.enter,
                  replica=lambda i: {"clients": network.clients[i]}) as group:
        group.addresses = network.clients  # the addresses of its clients from now on
        leader = group.leader()
        h.wait_until(lambda: served(network.clients[leader], port), 20, "the leader's host serves")
        for busy in (True, False):  # idle last: a cut makes the network lossy
            leader = group.leader()
            what = f"{'a busy' if busy else 'an idle'} leader is cut off"
            h.wait_until(lambda: served(network.clients[leader], port), 40, "its host serves")
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(socket.create_connection(
                    (network.clients[leader], port), 20)) for _ in range(3)]
                if busy:
                    stack.enter_context(Asking(network.clients[leader], port)).wait_for(200)
                since = time.monotonic()
                network.link(leader, "down")
                refuses(scenario, group, leader, clients, what, since)
            network.mend()
            h.wait_until(lambda: served(network.clients[leader], port), 40,
                         f"{what}: its host takes clients again")
            scenario.check("clients are accepted again" in group.said(leader),
                           "node.log says that, too")


def body(scenario):
    h.need("redis-server")
    nodes_are_killed(scenario)
    hosts_are_cut_off(scenario)


h.run_scenario("quorum", body)
