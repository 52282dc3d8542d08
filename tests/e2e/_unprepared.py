# SPDX-License-Identifier: Apache-2.0
"""Servers without a profile: eight clients, a kill of the leader's node, eight more.

A class per server: name, programs (what must be installed), __init__(work) writes what it needs
below `work` and sets port and command, client(number) returns (served, what it got instead).
"""
import concurrent.futures
import os
import signal
import subprocess

import _harness as h


def run(*words, **options):
    return subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          timeout=60, **options)


def serve(server, numbers):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [text for good, text in pool.map(server.client, numbers) if not good]


def check(scenario, server):
    with h.Group(scenario, server.command, port=server.port, record=True) as group:
        bad = serve(server, range(8))
        scenario.check(not bad, f"{server.name}: 8 clients are served", "\n".join(bad[:3]))
        leader = group.leader()
        os.kill(group.replica(leader)["node_pid"], signal.SIGKILL)
        h.wait_until(lambda: group.leader() != leader, 30, "another replica leads")
        bad = serve(server, range(8, 16))
        scenario.check(not bad, f"{server.name}: 8 more after a kill of the leader's node",
                       "\n".join(bad[:3]))
        h.wait_until(lambda: group.live() == [0, 1, 2], 60, "the killed one is back")
        group.settle()
    # Of the two that ran all the time: the third lacks what was put out before its checkpoint.
    status, text = group.diff(recordings=[n for n in range(3) if n != leader])
    scenario.check(status == 0, f"{server.name}: the outputs are equal", text)


def check_all(scenario, kinds):
    if not h.can_contain():
        raise h.CannotRun("these servers start as root, in containers")
    for kind in kinds:
        h.need(*kind.programs)
        work = scenario.work / kind.name
        work.mkdir()
        work.chmod(0o755)
        check(scenario, kind(work))
