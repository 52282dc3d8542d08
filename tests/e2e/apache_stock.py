#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`crane-run -- apache2` with Debian's configuration: it starts, serves, stops and leaves
nothing."""
import json
import os
import re
import signal
import subprocess

import _harness as h
import _installed


def body(scenario):
    h.need("apache2", "curl")
    if not h.can_contain():
        raise h.CannotRun("the stock configuration needs root and LXC")
    port = h.free_port()
    with h.Group(scenario, _installed.stock_apache(scenario.work), port=port,
                 options=["--publish", f"{port}:80"]) as group:
        words = {"starting 3 replicas", f"listening on port {port}", "leads"}
        h.wait_until(lambda: all(w in h.tail(group.log) for w in words), 20,
                     f"crane-run reports: {words}")
        page = subprocess.run(["curl", "-sS", "-i", f"http://127.0.0.1:{port}/"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=20).stdout
        scenario.check("200 OK" in page and re.search(r"^Server: Apache", page, re.M),
                       "curl gets the page", page[:400])
        statuses = group.settle()
        scenario.check(len(statuses) == 3, "three replicas agree", json.dumps(group.brief()))
        group.remember(group.state())
        pids = len(group.known)
        status = group.stop()
        scenario.say(f"stopped with status {status}; {pids} processes were known")
        scenario.check(status in (0, 143), "crane-run ends with the server's status", str(status))
        h.wait_until(lambda: not group.leftovers(), 10, "nothing is left")
        scenario.check(not group.leftovers(), "no process, mount or shared memory is left",
                       repr(group.leftovers()))
        scenario.check(not os.path.exists(group.dir / "state.json"), "the group's files are gone")
    killed_launcher(scenario)


def killed_launcher(scenario):
    """crane-run itself is killed: clients are still served, and --stop leaves nothing."""
    port = h.free_port()
    group = h.Group(scenario, _installed.stock_apache(scenario.work), port=port,
                    options=["--publish", f"{port}:80"])
    group.start()
    try:
        group.remember(group.state())
        os.kill(group.process.pid, signal.SIGKILL)
        group.process.wait(10)
        scenario.check(h.http(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 "),
                       "kill -9 of crane-run: clients are still served")
        done = subprocess.run([str(scenario.out / "crane-run"), "--stop", "--name", group.name,
                               "--dir", str(group.home)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=60, check=False)
        h.wait_until(lambda: not any(h.alive(pid) for pid in group.known), 20,
                     "all processes of a killed crane-run's group end")
        scenario.check(done.returncode == 0, "crane-run --stop leaves no process", done.stdout)
    finally:
        group.kill_all()


h.run_scenario("apache_stock", body)
