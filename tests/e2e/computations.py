#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CGI programs compute without the turn, on all replicas from the same turns on; also when the
leader, which decides when, is killed while some of them compute.
"""
import signal
import threading

import _apache
import _harness as h
import _matrix as m
import _web

CLIENTS = 6
SCRIPT = """#!/bin/sh
echo "Content-Type: text/plain"
echo
awk 'BEGIN { for (i = 0; i < 300000; ++i) x = (x * 31 + i) % 65521; print "result", x }'
"""


class Computing(_apache.Apache):
    name = "apache2, CGI that computes"
    modules = ("cgid",)

    def prepare(self):
        scripts = self.work / "cgi"
        scripts.mkdir()
        (scripts / "compute").write_text(SCRIPT)
        (scripts / "compute").chmod(0o755)
        self.more = (f"ScriptSock {self.work}/cgisock\nScriptAlias /cgi/ {scripts}/\n"
                     f"<Directory {scripts}>\nRequire all granted\n</Directory>\n")
        super().prepare()

    def ask(self):
        status, _, body = _web.get(self.port, "/cgi/compute")
        return status, body.decode()


class Load:
    """Clients that send requests repeatedly; requests that a fault cuts off are not counted."""

    def __init__(self, server):
        self.server, self.right = server, server.ask()
        self.answers, self.wrong, self.stopping = 0, [], threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def run(self):
        while not self.stopping.is_set():
            try:
                answer = self.server.ask()
            except (OSError, h.Failure):
                continue
            with self.lock:
                self.answers += 1
                if answer != self.right:
                    self.wrong.append(answer)

    def more(self, count):
        before = self.answers
        h.wait_until(lambda: self.answers >= before + count, 60, f"{count} more answers")

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)


def obeyed(group, numbers):
    return [(group.status(n) or {}).get("preempted", 0) for n in numbers]


def body(scenario):
    h.need(*Computing.programs, "awk")
    if not h.can_contain():
        raise h.CannotRun("needs root and LXC")
    server = Computing(m.place_of(scenario, Computing), h.free_port())
    with h.Group(scenario, server.command, port=server.port, record=True,
                 options=["--perturb", "1"]) as group:
        h.wait_until(server.ready, 60, "apache2 answers")
        scenario.check(server.ask()[1].startswith("result "), "a program of CGI computes",
                       repr(server.ask()))
        with Load(server) as load:
            load.more(30)
            killed = group.leader()
            group.signal_node(killed, signal.SIGKILL)
            load.more(30)
        live = [n for n in range(3) if n != killed]
        statuses = group.settle(60, numbers=live)
        scenario.check(len(statuses) == 2, "two replicas survive", repr(group.brief()))
        counts = obeyed(group, live)
        scenario.check(min(counts) > 0, "computations left the schedule", repr(counts))
        scenario.check(not load.wrong, f"{load.answers} answers are right", repr(load.wrong[:2]))
        scenario.say(f"{load.answers} answers; computations that left: {counts}")
        group.stop()
        scenario.say(scenario.check_equal(group, recordings=live))
        scenario.say(scenario.check_schedule(group, recordings=live))


h.run_scenario("computations", body)
