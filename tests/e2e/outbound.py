#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replicated nginx forwards requests to a server that runs without Crane. The leader is hit by
faults repeatedly: no request fails, that server gets each request once, and the replicas' outputs
are equal. A replay of the history is equal, too, and connects to nothing. --outbound refuses
destinations that it does not name."""
import http.client
import http.server
import itertools
import json
import os
import signal
import socket
import subprocess
import threading

import _harness as h
import _outside as o
from _takeovers import hand_over, kill_node

CLIENTS = 8


class Backend(o.HttpBackend):
    def __init__(self):
        super().__init__(http.server.ThreadingHTTPServer, ("127.0.0.1", 0), o.answer_to)
        self.port = self.server.server_address[1]


class Client(threading.Thread):
    """Sends requests on one connection until it is stopped; every answer must be the right one."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number, self.sent, self.bad, self.ended = port, number, [], [], False

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            while not self.ended:
                path = f"/{self.number}/{len(self.sent)}"
                body = path.encode() * (1 + len(self.sent) % 300)
                self.sent.append((path, body))
                connection.request("POST", path, body)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status != 200 or text != o.answer_to(path):
                    self.bad.append(f"{path}: status {answer.status}, {len(text)} bytes")
        except (OSError, http.client.HTTPException) as error:
            self.bad.append(f"{self.sent[-1][0]}: {error!r}")


def nginx(scenario, port, backend):
    return o.nginx_before(f"127.0.0.1:{backend}", scenario.work, f"nginx-{port}", port)


def kill_server(_, group):
    group.signal_server(group.leader(), signal.SIGKILL)


def stop_node(_, group):
    pid = group.replica(group.leader())["node_pid"]
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(2, lambda: h.alive(pid) and os.kill(pid, signal.SIGCONT)).start()


FAULTS = (kill_node, hand_over, kill_server, stop_node)


def passes_on(scenario, kills):
    """Without kills it is recorded: a replica that recovers starts its recordings again."""
    backend, port = Backend(), h.free_port()
    program = nginx(scenario, port, backend.port)
    with h.Group(scenario, program, port=port, record=kills == 0) as group:
        clients = [Client(port, number) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for fault in range(kills):
            asked = sum(len(c.sent) for c in clients)
            h.wait_until(lambda: sum(len(c.sent) for c in clients) > asked + 400, 60,
                         "requests are forwarded")
            h.wait_until(group.are_whole, 60, "all replicas are ready")
            FAULTS[fault % len(FAULTS)](scenario, group)
        asked = sum(len(c.sent) for c in clients)
        h.wait_until(lambda: sum(len(c.sent) for c in clients) > asked + 400, 60,
                     "requests are forwarded at the end")
        for client in clients:
            client.ended = True
        for client in clients:
            client.join(60)
        sent = {path: body for c in clients for path, body in c.sent}
        bad = [text for c in clients for text in c.bad]
        scenario.check(not bad, f"{len(sent)} requests, {kills} kills: none failed", "\n".join(bad))
        twice = backend.heard_twice()
        scenario.check(not twice, "the other server got no request twice", str(twice[:10]))
        scenario.check({p: b[0] for p, b in backend.heard.items()} == sent,
                       "it got all of each request")
        h.wait_until(group.are_whole, 60, "all replicas are ready at the end")
        statuses = group.settle()
        address = f"127.0.0.1:{backend.port}"
        for number, status in statuses.items():
            targets = {o["address"]: o for o in status["outbound"]}
            scenario.check(address in targets and targets[address]["allowed"],
                           f"replica {number} names {address}", str(status["outbound"]))
        scenario.say(f"adopted {[s['adopted'] for s in statuses.values()]}, reset "
                     f"{[s['reset_leader'] for s in statuses.values()]}, the other server saw "
                     f"{backend.connections} connections")
        group.stop()
    if kills == 0:
        scenario.check_equal(group)
        scenario.check_schedule(group)
        is_replayed(scenario, group, backend)


def view(group):
    return max((s["view"] for s in group.statuses().values() if s), default=0)


def client_of_one_reign(group, port, numbers):
    """A client that has sent 200 requests. On a busy machine the lead may move by itself, which
    resets the client: then another one tries."""
    while True:
        began, client = view(group), Client(port, next(numbers))
        client.start()
        h.wait_until(lambda: len(client.sent) > 200 or client.bad, 60, "requests are forwarded")
        if not client.bad or view(group) == began:
            return client
        client.ended = True
        client.join(60)


def is_reset(scenario):
    """As on several hosts: the old leader's connections are reset on all replicas, and new ones are
    opened. nginx must not retry, so that clients see the reset."""
    backend, port = Backend(), h.free_port()
    program = nginx(scenario, port, backend.port)
    with h.Group(scenario, program, port=port, options=["--test-only-reset-connections"]) as group:
        numbers = itertools.count()
        for number in range(3):
            client = client_of_one_reign(group, port, numbers)
            scenario.check(not client.bad, f"reign {number}: requests are forwarded",
                           "\n".join(client.bad))
            if number < 2:
                group.signal_node(group.leader(), signal.SIGKILL)
                h.wait_until(lambda: client.bad, 30, "the client is reset")
                h.wait_until(group.are_whole, 60, "all replicas are ready")
            client.ended = True
            client.join(60)
        twice = backend.heard_twice()
        scenario.check(not twice, "resets: the other server got no request twice", str(twice[:10]))
        group.settle()
        group.stop()


def is_replayed(scenario, group, backend):
    before = backend.connections
    done = subprocess.run([str(scenario.out / "crane-replay"), str(group.record)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    scenario.check(done.returncode == 0, "a replay is equal", done.stdout)
    scenario.check(backend.connections == before, "the replay has opened no connection")


def is_refused(scenario):
    backend, port = Backend(), h.free_port()
    program = nginx(scenario, port, backend.port)
    with h.Group(scenario, program, port=port, options=["--outbound", "10.1.2.3:80"]) as group:
        done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x",
                               f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE, text=True,
                              timeout=60)
        scenario.check(done.stdout == "502" and backend.connections == 0,
                       "--outbound refuses destinations that it does not name", done.stdout)
        status, text = h.ctl(scenario, "status", group.name, "--dir", str(group.home), "-o",
                             "json")
        outbound = [r["outbound"] for r in json.loads(text)["replicas"]]
        scenario.check(status == 0 and all(o and not o[0]["allowed"] for o in outbound),
                       "status reports it", text)
        log = (group.dir / f"r{group.leader()}" / "node.log").read_text()
        scenario.check(f"--outbound 127.0.0.1:{backend.port} allows it" in log,
                       "the log names the option that allows it", log[-2000:])
        group.stop()


# Connects from ports that it chooses: from one at its start, and from one for each client.
CHOOSES = r'''
import socket, sys
port, backend, first, later = map(int, sys.argv[1:])

def ask(source):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", source))
            s.connect(("127.0.0.1", backend))
            return f"{s.getsockname()[1]} {s.recv(100).decode()}"
        except OSError as error:
            return repr(error)

said = ask(first)
l = socket.create_server(("127.0.0.1", port))
while True:
    c, _ = l.accept()
    c.sendall(f"{said} {ask(later)}".encode())
    c.close()
'''


def comes_from(scenario):
    """If a server binds a port before it connects, it and its peer see that port."""
    outside = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, peer = outside.accept()
            except OSError:
                return   # closed below
            with connection:
                connection.sendall(str(peer[1]).encode())
    threading.Thread(target=serve, daemon=True).start()
    port, first, later = (h.free_port() for _ in range(3))
    program = ["python3", "-c", CHOOSES, str(port), str(outside.getsockname()[1]), str(first),
               str(later)]
    with h.Group(scenario, program, port=port):
        with socket.create_connection(("127.0.0.1", port), 30) as client, client.makefile() as f:
            text = f.read()
    outside.shutdown(socket.SHUT_RDWR)
    outside.close()
    scenario.check(text == f"{first} {first} {later} {later}",
                   "a connection comes from the port that the server bound", text)


def body(scenario):
    h.need("nginx", "curl")
    passes_on(scenario, 0)
    passes_on(scenario, 20 if scenario.full else 4)
    is_reset(scenario)
    is_refused(scenario)
    comes_from(scenario)


h.run_scenario("outbound", body)
