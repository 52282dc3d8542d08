#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A port that another process uses on the host: a group that needs it does not start, and a server
that opens it later gets bind's error on all replicas. A port that no --publish names belongs to the
server alone."""
import contextlib
import errno
import os
import signal
import socket
import sys

import _harness as h

PORT_TAKEN = 105
FIRST_CHOSEN = 32768
TRANSFERS = 150
# Like FTP in passive mode: a separate port for each client, announced on another connection.
CHOOSES = """
import socket, sys
control = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    client, _ = control.accept()
    with socket.socket() as data, client:
        data.bind(("0.0.0.0", 0))
        data.listen(1)
        client.sendall(str(data.getsockname()[1]).encode())
        client.close()
        peer, _ = data.accept()
        peer.sendall(b"done")
        peer.close()
"""
NGINX = """daemon off;
error_log {work}/error.log;
pid {work}/nginx.pid;
events {{}}
http {{
  access_log off;
  server {{ listen {port}; listen {taken}; location / {{ return 200 served; }} }}
}}
"""


def at_start(scenario, taken):
    group = h.Group(scenario, h.redis_program(taken), port=taken)
    try:
        group.start()
        scenario.check(False, "a group whose port is taken does not start")
    except h.Failure:
        status = group.process.wait(30)
        log = h.tail(group.log)
        scenario.check(status == PORT_TAKEN, f"at the start: status {PORT_TAKEN}", str(status))
        scenario.check(f"cannot listen on port: {taken}" in log or f"port {taken}" in log,
                       "crane-run names the port", log)
    finally:
        group.kill_all()


def refused(client, port):
    """Whether the server reports that it cannot open the port."""
    try:
        client("CONFIG", "SET", "port", str(port))
    except h.Failure as answer:
        return "Unable to listen" in str(answer)
    return False


def is_closed(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def serves(port):
    h.wait_until(lambda: h.redis_answers(port), 30, f"redis answers on port {port}")


def check_taken(scenario, port, taken, when):
    """As natively: an error, the old port continues to work, and a free port can be opened."""
    client = h.Redis(port, 20)
    scenario.check(refused(client, taken), f"{when}: redis gives the error of a taken port")
    scenario.check(client("CONFIG", "GET", "port")[1] == str(port).encode(),
                   f"{when}: it keeps its port")
    serves(port)
    free = h.free_port()
    client("CONFIG", "SET", "port", str(free))
    serves(free)
    scenario.check(True, f"{when}: a free port is served")
    h.wait_until(lambda: is_closed(port), 20, f"{when}: the port that the server left is closed")
    client("CONFIG", "SET", "port", str(port))
    client.close()
    serves(port)


def later(scenario, taken):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        serves(port)
        check_taken(scenario, port, taken, "all replicas")
        group.settle()
        scenario.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))
        lost = group.leader()
        group.signal_node(lost, signal.SIGKILL)
        h.wait_until(lambda: group.leader() != lost, 30, "another replica leads")
        serves(port)
        check_taken(scenario, port, taken, "another leader")
        group.settle()


def alone(scenario, taken):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port, replicas=1) as group:
        serves(port)
        check_taken(scenario, port, taken, "one replica")


def one_of_two(scenario, taken):
    """Another port serves: the taken port is reported once, and the group continues."""
    port = h.free_port()
    conf = scenario.work / "nginx.conf"
    conf.write_text(NGINX.format(port=port, taken=taken, work=scenario.work))
    with h.Group(scenario, ["nginx", "-c", str(conf)], port=port) as group:
        scenario.check(h.http(port, b"GET / HTTP/1.0\r\n\r\n").endswith(b"served"),
                       "one of two ports is taken: the other serves")
        times = group.log.read_text().count(f"cannot listen on port: {taken}")
        scenario.check(times == 1, "the taken port is reported once", h.tail(group.log))


def not_published(scenario, taken):
    """The server can open a port that no --publish names, even if a process on the machine uses
    it."""
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--publish", str(port)]) as group:
        client = h.Redis(port, 20)
        scenario.check(client("CONFIG", "SET", "port", str(taken)) == "OK",
                       "not published: redis opens the port though it is taken on the machine")
        h.wait_until(lambda: f"port {taken}, which no --publish names" in group.log.read_text(),
                     20, "the group reports that clients do not reach it")
        scenario.check(True, "the group reports that clients do not reach it")
        client("CONFIG", "SET", "port", str(port))
        client.close()
        serves(port)
        group.settle()
        scenario.check([p["port"] for p in group.state()["listening"]] == [port],
                       "only the published port is open")


def chosen(scenario):
    """The kernel chooses the server's ports (FTP's for data): they are free on the machine as well,
    open when the server announces them, and few in all."""
    with contextlib.ExitStack() as owners:
        for number in range(FIRST_CHOSEN, FIRST_CHOSEN + 4):
            owner = owners.enter_context(socket.socket())
            with contextlib.suppress(OSError):   # another process has it
                owner.bind(("0.0.0.0", number))
                owner.listen(1)
        port = h.free_port()
        with h.Group(scenario, [sys.executable, "-c", CHOOSES, str(port)], port=port) as group:
            transfer(port, transfer(port))
            for _ in range(TRANSFERS):
                if transfer(port, transfer(port)) != "done":
                    scenario.check(False,
                                   "a port that the server chose is open once it announces it")
            scenario.check(True, "a port that the server chose is open once it announces it")
            held = len(os.listdir(f"/proc/{group.process.pid}/fd"))
            scenario.check(held < TRANSFERS, f"{TRANSFERS} such ports leave few descriptors",
                           str(held))
            group.settle()


def transfer(port, to=None):
    """The server's answer at the port, or at the port that it announced."""
    with socket.create_connection(("127.0.0.1", int(to or port)), 20) as client:
        return client.makefile().read()


def body(scenario):
    h.need("redis-server", "nginx")
    with socket.socket() as owner:
        owner.bind(("0.0.0.0", h.free_port()))
        owner.listen(16)
        taken = owner.getsockname()[1]
        later(scenario, taken)
        alone(scenario, taken)
        at_start(scenario, taken)
        one_of_two(scenario, taken)
        not_published(scenario, taken)
    chosen(scenario)


h.run_scenario("taken_port", body)
