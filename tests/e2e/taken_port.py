#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A port that is taken on the host: a group does not start with it, and a server that opens it
later gets bind's error on all replicas."""
import signal
import socket

import _harness as h

PORT_TAKEN = 105


def at_start(scenario, taken):
    group = h.Group(scenario, h.redis_program(taken), port=taken)
    try:
        group.start()
        scenario.check(False, "a group whose port is taken does not start")
    except h.Failure:
        status = group.process.wait(30)
        said = h.tail(group.log)
        scenario.check(status == PORT_TAKEN, f"at the start: status {PORT_TAKEN}", str(status))
        scenario.check(f"cannot listen on port: {taken}" in said or f"port {taken}" in said,
                       "it names the port", said)
    finally:
        group.kill_all()


def refused(client, port):
    """Whether the server says that it cannot have the port."""
    try:
        client("CONFIG", "SET", "port", str(port))
    except h.Failure as answer:
        return "Unable to listen" in str(answer)
    return False


def serves(port):
    h.wait_until(lambda: h.redis_answers(port), 30, f"redis answers on port {port}")


def check_taken(scenario, port, taken, when):
    """As natively: an error, the old port goes on, and a free port can be had."""
    client = h.Redis(port, 20)
    scenario.check(refused(client, taken), f"{when}: redis gives the error of a taken port")
    scenario.check(client("CONFIG", "GET", "port")[1] == str(port).encode(),
                   f"{when}: it keeps its port")
    serves(port)
    free = h.free_port()
    client("CONFIG", "SET", "port", str(free))
    serves(free)
    scenario.check(True, f"{when}: a free port is served")
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


def body(scenario):
    h.need("redis-server")
    with socket.socket() as owner:
        owner.bind(("0.0.0.0", h.free_port()))
        owner.listen(16)
        taken = owner.getsockname()[1]
        later(scenario, taken)
        alone(scenario, taken)
        at_start(scenario, taken)


h.tell("taken_port", body)
