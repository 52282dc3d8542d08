#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The messages to a service manager: three nodes and a crane-run are started as systemd starts
units of Type=notify, with a socket of the test in its place. Each reports that it is ready, what it
does, each change of the leader, that it is alive, and that it ends; the server sees nothing of
this. systemd finds the units well formed."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import _harness as h
from _hosts import Hosts

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCHDOG_US = 2000000


class Manager:
    """One service's socket, and the messages that arrived there."""

    def __init__(self, place, name):
        self.path = str(place / f"notify-{name}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.heard = []

    def words(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.heard += self.socket.recv(4096).decode().splitlines()
        return self.heard

    def waits_for(self, *texts):
        """Waits for a line with all of the texts."""
        h.wait_until(lambda: any(all(t in line for t in texts) for line in self.words()), 60,
                     f"the manager gets {texts}: {self.heard}")

    def command(self):
        return ["/usr/bin/env", f"NOTIFY_SOCKET={self.path}", f"WATCHDOG_USEC={WATCHDOG_US}"]


def nodes(scenario):
    managers = [Manager(scenario.work, number) for number in range(3)]
    with Hosts(scenario, h.redis_program(port := h.free_port()), port=port, fabric="shm",
               prefix=lambda number: managers[number].command()) as group:
        leader = group.leader()
        for number, manager in enumerate(managers):
            manager.waits_for("READY=1")
            manager.waits_for("STATUS=", f"replica {number} of 3",
                              "leads" if number == leader else f"follows replica {leader}")
            manager.waits_for("WATCHDOG=1")
        scenario.check(True,
                       "each node reports that it is ready, what it does, and that it is alive")
        server = group.status(leader)["server_pid"]
        variables = pathlib.Path(f"/proc/{server}/environ").read_bytes()
        scenario.check(b"NOTIFY_SOCKET" not in variables and b"WATCHDOG" not in variables,
                       "the server is not a service", str(variables))
        group.nodes[leader].send_signal(signal.SIGTERM)
        managers[leader].waits_for("STOPPING=1")
        h.wait_until(lambda: group.leader() != leader, 30, "another replica leads")
        managers[group.leader()].waits_for("STATUS=", "leads")
        scenario.check(True, "a new leader reports it, and a node that ends, too")


def crane_run(scenario):
    manager = Manager(scenario.work, "run")
    port = h.free_port()
    os.environ["NOTIFY_SOCKET"] = manager.path
    try:
        with h.Group(scenario, h.redis_program(port), port=port) as group:
            manager.waits_for("READY=1")
            manager.waits_for("STATUS=", "3 of 3 replicas run", f"replica {group.leader()} leads")
            group.signal_node(group.leader(), signal.SIGKILL)
            manager.waits_for("STATUS=", "2 of 3 replicas run")
            h.wait_until(group.are_whole, 60, "the replica that was killed is back")
            server = group.replica(group.leader())["server_pid"]
            variables = pathlib.Path(f"/proc/{server}/environ").read_bytes()
            scenario.check(b"NOTIFY_SOCKET" not in variables, "crane-run's server is not a service")
            group.stop()
            manager.waits_for("STOPPING=1")
        scenario.check(manager.words().count("READY=1") == 1,
                       "crane-run is ready once, then reports "
                       "how many replicas run", str(manager.heard))
    finally:
        del os.environ["NOTIFY_SOCKET"]


def well_formed(scenario):
    if not shutil.which("systemd-analyze"):
        print("SKIPPED: e2e/units: systemd-analyze is missing: the units are not checked")
        return
    place = scenario.work / "installed"
    subprocess.run([str(ROOT / "runtime/packaging/install.sh"), "install", str(scenario.out)],
                   env={**os.environ, "PREFIX": str(place), "DESTDIR": ""}, check=True, timeout=60)
    for template in ("crane@.service", "crane-run@.service", "crane-backup@.service",
                     "crane-backup@.timer"):
        unit = place / template.replace("@", "@shop")
        unit.write_text((place / "lib/systemd/system" / template).read_text())
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = [line for line in done.stdout.splitlines() if "shop" in line]
        scenario.check(done.returncode == 0 and not lines, f"systemd accepts {template}",
                       done.stdout)


def body(scenario):
    h.need("redis-server")
    well_formed(scenario)
    nodes(scenario)
    crane_run(scenario)


h.run_scenario("units", body)
