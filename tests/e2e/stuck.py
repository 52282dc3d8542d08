#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose threads wait for each other forever: its status and node.log report which thread
waits for what, on all replicas. While it waits for its first client, nothing is reported."""
import socket

import _harness as h


def why(group, number):
    return (group.status(number) or {}).get("not_serving") or ""


def body(scenario):
    server = scenario.out / "e2e/deadlock_server"
    port = h.free_port()
    with h.Group(scenario, [str(server), str(port)], port=port) as group:
        group.leader()
        h.wait_until(lambda: all(s and s["applied"] > 0 for s in group.statuses().values()), 30,
                     "the server runs")
        scenario.check(all("go on" not in why(group, n) for n in range(3)),
                       "a server that waits for a client is not stuck")
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.settimeout(20)
            scenario.check(client.recv(6) == b"hello\n", "the client is served")
            h.wait_until(lambda: all("go on" in why(group, n) for n in range(3)), 30,
                         "each replica reports that no thread can continue")
        text = why(group, 0)
        scenario.check("waits in pthread_mutex_lock" in text and "called at 0x" in text,
                       "the status names a thread, its call and its place", text)
        logs = [(group.dir / f"r{n}" / "node.log").read_text() for n in range(3)]
        lines = [[l for l in log.splitlines() if "can go on: thread" in l] for log in logs]
        scenario.check(all(len(l) == 2 for l in lines), "node.log names both threads, once",
                       "\n".join(map(str, lines)))
        scenario.say(text)


h.run_scenario("stuck", body)
