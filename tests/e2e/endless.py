#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An endless computation of an unknown program does not stop the server.
Its thread takes no turn at which it could get a tick point. So all replicas restart from before it,
from the newest checkpoint or by replaying all inputs, and run it in time slices. Other clients are
answered, the computation's client keeps waiting on its connection, and a replica lost meanwhile
returns. The same holds for a server that waits in a loop before it serves.
"""
import shutil
import signal
import socket

import _computing as c
import _harness as h
from checkpoints import checkpoint

SECONDS = 240


class Waiting:
    """A client whose request is answered when another client sends "free"."""
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self.lines = self.socket.makefile()
        self.socket.sendall(b"ping\n")
        if self.lines.readline() != "pong\n":
            raise h.Failure("the server does not answer")
        self.socket.sendall(b"wait\n")

    def answer(self):
        return self.lines.readline().strip()


def answers(port):
    try:
        return c.line(port, "ping") == "pong"
    except OSError:
        return False


def program(scenario, name):
    work = scenario.work / name
    work.mkdir()
    work.chmod(0o755)
    shutil.copy(scenario.out / "e2e/computing_server", work)
    return str(work / "computing_server")


def computes_on(scenario, name, replicas=3, before=None, meanwhile=None):
    """A request that waits for another one."""
    port = h.free_port()
    with h.Group(scenario, [program(scenario, name), str(port)], port=port, replicas=replicas,
                 record=True, options=("--checkpoint-every", "86400")) as group:
        if before:
            before(group)
        waiting = Waiting(port)
        if meanwhile:
            meanwhile(group)
        h.wait_until(lambda: answers(port), SECONDS, f"{name}: other clients are answered")
        scenario.check(c.line(port, "free") == "pong", f"{name}: other clients are answered")
        if replicas > 1:   # a single replica keeps no client when its node ends
            scenario.check(waiting.answer() == "freed", f"{name}: its client gets its answer")
        group.settle(120)
        points = [s["tick_points"] for s in group.statuses().values()]
        scenario.check(min(points) > 0, f"{name}: a tick point counts", str(points))
        scenario.check(replicas == 1 or not group.alarm(), f"{name}: all replicas agree")
    if replicas == 1 or before:   # a recording ends where its replica restarts from a checkpoint
        return
    c.check_histories(scenario, group, name)


def spins_first(scenario):
    port = h.free_port()
    with h.Group(scenario, [program(scenario, "spins"), str(port), "spins"], port=port) as group:
        scenario.check(answers(port), "spins: a server that first waits in a loop serves")
        group.settle(60)


def follower(group):
    leader = group.leader()
    return next(n for n in group.live() if n != leader)


def kill_follower(group):
    group.signal_node(follower(group), signal.SIGKILL)


def kill_leader(group):
    group.signal_node(group.leader(), signal.SIGKILL)


def body(scenario):
    computes_on(scenario, "three")
    computes_on(scenario, "lost", meanwhile=kill_follower)
    computes_on(scenario, "led", before=lambda group: checkpoint(group, follower(group)),
                meanwhile=kill_leader)
    computes_on(scenario, "alone", replicas=1)
    spins_first(scenario)


if __name__ == "__main__":
    h.run_scenario("endless", body)
