#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replicated nginx forwards requests to a server behind a unix socket of the host, in a directory
given with --bind. Without faults no request fails, and a replay is equal. When the leader is killed
or hands over, each client loses at most the request in progress, and that server gets no request
twice. A socket error is the same on all replicas. Data that a process of the host writes to a FIFO
in the directory reaches all replicas, also after a kill of the leader's node."""
import errno
import http.client
import os
import socket
import socketserver
import subprocess
import threading

import _harness as h
import _outside as o
from _takeovers import hand_over, kill_node

CLIENTS = 4
SEEN = "/srv/crane-backend"   # where the server sees the directory

# A server that answers a path with the result of use(path).
SERVER = r"""
import socket, sys

def use(path):
    BODY

l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(("0.0.0.0", int(sys.argv[1])))
l.listen(16)
while True:
    c, _ = l.accept()
    try:
        text = use(c.makefile().readline().strip())
    except OSError as error:
        text = f"errno {error.errno}"
    c.sendall((text + "\n").encode())
    c.close()
"""
ASKER = SERVER.replace("BODY", r"""with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b"GET /a HTTP/1.0\r\n\r\n")
        return s.makefile().readline().strip() + " from " + s.getpeername()""")
READER = SERVER.replace("BODY", r"""with open(path) as fifo:
        return "read " + fifo.read().strip()""")


class Backend(o.HttpBackend):
    def __init__(self, path):
        super().__init__(socketserver.ThreadingUnixStreamServer, str(path),
                         lambda asked: asked.encode() * 200)
        self.path = path


class Client(threading.Thread):
    """Sends requests on one connection until it is stopped. A lost request is a 502, or a truncated
    answer if nginx had begun to forward it."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number, self.sent, self.lost, self.ended = port, number, 0, [], False
        self.wrong = []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            while not self.ended:
                self.ask(connection, f"/{self.number}/{self.sent}")
                self.sent += 1
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(f"{self.number}/{self.sent}: {error!r}")

    def ask(self, connection, path):
        connection.request("POST", path, b"x" * (1 + self.sent % 300))
        answer = connection.getresponse()
        try:
            text = answer.read()
        except http.client.IncompleteRead:
            self.lost.append(path)
            connection.close()
            return
        if answer.status == 502:
            self.lost.append(path)
        elif answer.status != 200 or text != path.encode() * 200:
            self.wrong.append(f"{path}: status {answer.status}, {len(text)} bytes")


def directory(scenario):
    place = scenario.work / f"host-{scenario.next_number()}"
    place.mkdir()
    return place


def nginx(scenario, port):
    return o.nginx_before(f"unix:{SEEN}/backend.sock", scenario.work, f"nginx-{port}", port)


FAULTS = (kill_node, hand_over)


def passes_on(scenario, faults):
    """Without faults it is recorded: a replica that recovers starts its recordings again."""
    place, port = directory(scenario), h.free_port()
    backend = Backend(place / "backend.sock")
    with h.Group(scenario, nginx(scenario, port), port=port, record=faults == 0,
                 options=["--bind", f"{place}:{SEEN}:ro"]) as group:
        clients = [Client(port, number) for number in range(CLIENTS)]
        for client in clients:
            client.start()

        def go_on(what):
            before = [c.sent - len(c.lost) for c in clients]
            h.wait_until(lambda: any(c.wrong for c in clients) or
                         all(c.sent - len(c.lost) > b + 100 for c, b in zip(clients, before)), 60,
                         what)
        go_on("requests are forwarded")
        for fault in range(faults):
            h.wait_until(group.are_whole, 60, "all replicas are ready")
            FAULTS[fault % len(FAULTS)](scenario, group)
            go_on("requests are forwarded after a change of the leader")
        for client in clients:
            client.ended = True
        for client in clients:
            client.join(60)
        wrong = [text for c in clients for text in c.wrong]
        scenario.check(not wrong, f"{sum(c.sent for c in clients)} requests, {faults} changes: "
                       "all were answered", "\n".join(wrong))
        lost = {c.number: c.lost for c in clients}
        # On a busy machine a starved leader hands over, too.
        changes = max(faults, len(group.reigns()) - 1)
        scenario.check(all(len(paths) <= changes for paths in lost.values()),
                       "each client lost at most one request at a change", f"{changes}: {lost}")
        twice = backend.heard_twice()
        scenario.check(not twice, "the other server got no request twice", str(twice[:10]))
        h.wait_until(group.are_whole, 60, "all replicas are ready at the end")
        said = group.settle()
        for number, status in said.items():
            told = {o["address"] for o in status["outbound"]}
            scenario.check(told == {f"{SEEN}/backend.sock"}, f"replica {number} names the socket",
                           str(status["outbound"]))
        scenario.say(f"lost {lost}, reset {[s['reset_leader'] for s in said.values()]}, the other "
                     f"server saw {backend.connections} connections")
        group.stop()
    backend.close()
    if faults == 0:
        scenario.check_equal(group)
        scenario.check_schedule(group)
        before = backend.connections
        done = subprocess.run([str(scenario.out / "crane-replay"), str(group.record)], timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        scenario.check(done.returncode == 0, "a replay is equal", done.stdout)
        scenario.check(backend.connections == before, "the replay has opened no connection")


def ask(port, path):
    with socket.create_connection(("127.0.0.1", port), timeout=90) as c:
        c.sendall((path + "\n").encode())
        return c.makefile().readline().strip()


def same_errors(scenario, outbound, wanted):
    place, port = directory(scenario), h.free_port()
    backend, silent = Backend(place / "backend.sock"), socket.socket(socket.AF_UNIX)
    silent.bind(str(place / "silent.sock"))
    os.symlink(backend.path, place / "link.sock")
    asker = scenario.work / "asker.py"
    asker.write_text(ASKER)
    with h.Group(scenario, ["python3", str(asker), str(port)], port=port, record=True,
                 options=["--bind", f"{place}:{SEEN}:ro", "--outbound", outbound]) as group:
        for name, answer in wanted.items():
            got = ask(port, f"{SEEN}/{name}")
            scenario.check(got == answer, f"--outbound {outbound}, {name}: {got}", got)
        group.settle()
        group.stop()
    scenario.check_equal(group)
    silent.close()
    backend.close()


def write(fifo, text):
    """Opens the FIFO after the leader's node has: until then it has no reader."""
    with open(fifo, "w") as writer:
        writer.write(text)


def reads_fifo(scenario):
    place, port = directory(scenario), h.free_port()
    fifo = place / "fifo"
    os.mkfifo(fifo)
    reader = scenario.work / "reader.py"
    reader.write_text(READER)
    with h.Group(scenario, ["python3", str(reader), str(port)], port=port,
                 options=["--bind", f"{place}:{SEEN}:ro"]) as group:
        for number in range(3):
            h.wait_until(group.are_whole, 60, "all replicas are ready")
            secret = f"secret {number} " * (1 + 2000 * number)
            writer = threading.Thread(target=write, args=(fifo, secret), daemon=True)
            writer.start()
            got = ask(port, f"{SEEN}/fifo")
            scenario.check(got == f"read {secret.strip()}",
                           f"{len(secret)} bytes of a FIFO are read", got[:200])
            writer.join(30)
            if number == 0:
                kill_node(scenario, group)
        got = ask(port, f"{SEEN}/none")
        scenario.check(got == f"errno {errno.ENOENT}", f"a missing FIFO: {got}")
        h.wait_until(group.are_whole, 60, "all replicas are ready")
        statuses = h.at_rest(group)
        scenario.check(len({s["outputs_digest"] for s in statuses.values()}) == 1 and
                       not any(s["verified"]["alarm"] for s in statuses.values()),
                       "the replicas are equal", str(statuses)[:1000])
        group.stop()


def body(scenario):
    h.need("nginx", "python3")
    reads_fifo(scenario)
    passes_on(scenario, 0)
    passes_on(scenario, 10 if scenario.full else 3)
    same_errors(scenario, "any", {
        "none.sock": f"errno {errno.ENOENT}", "silent.sock": f"errno {errno.ECONNREFUSED}",
        "link.sock": f"errno {errno.EACCES}",
        "backend.sock": f"HTTP/1.1 200 OK from {SEEN}/backend.sock"})
    same_errors(scenario, "none", {"none.sock": f"errno {errno.ECONNREFUSED}",
                                   "backend.sock": f"errno {errno.ECONNREFUSED}"})


h.run_scenario("unix_backend", body)
