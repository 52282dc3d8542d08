#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When more clients connect at once than the backlog holds, the rest wait in the kernel's queue; no
connection is reset."""
import resource
import selectors
import socket
import time

import _harness as h
import _installed

BURSTS, CLIENTS, SECONDS = 3, 1500, 120


def burst(port):
    """How many of CLIENTS, connecting at once, get a whole answer; and what the others got."""
    answers, wrong, waiting = 0, {}, selectors.DefaultSelector()
    for _ in range(CLIENTS):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        waiting.register(client, selectors.EVENT_WRITE, bytearray())
    until = time.monotonic() + SECONDS
    while waiting.get_map() and time.monotonic() < until:
        for key, event in waiting.select(1):
            client, said = key.fileobj, key.data
            try:
                if event & selectors.EVENT_WRITE:
                    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    waiting.modify(client, selectors.EVENT_READ, said)
                    continue
                part = client.recv(65536)
            except OSError as error:
                part, said[:] = b"", str(error).encode()
            said += part
            if part:
                continue
            if said.startswith(b"HTTP/1.1 200"):
                answers += 1
            else:
                wrong[bytes(said[:40])] = wrong.get(bytes(said[:40]), 0) + 1
            waiting.unregister(client)
            client.close()
    for key in list(waiting.get_map().values()):
        key.fileobj.close()
        wrong[b"no answer"] = wrong.get(b"no answer", 0) + 1
    return answers, wrong


def body(scenario):
    h.need("apache2")
    if not h.can_contain():
        raise h.CannotRun("the stock configuration needs root and LXC")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CLIENTS + 200:
        raise h.CannotRun(f"{CLIENTS} clients need more than {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CLIENTS + 200), hard))
    port = h.free_port()
    with h.Group(scenario, _installed.stock_apache(scenario.work), port=port,
                 options=["--publish", f"{port}:80"]) as group:
        for number in range(BURSTS):
            answers, wrong = burst(port)
            scenario.check(answers == CLIENTS, f"burst {number}: {CLIENTS} clients are answered",
                           f"{answers}; {wrong}")
        refused = {n: s and s.get("refused") for n, s in group.statuses().items()}
        scenario.say(f"refused by the server's queue: {refused}")
        group.settle()
        scenario.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))


h.run_scenario("backlog", body)
