#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-ctl status reports whether the server serves, how many replicas the group can lose, and
which unsupported calls the server made; `member list` agrees with it; crane-ctl ends when a
transfer of the lead is complete."""
import json
import re
import signal
import socket
import sys
import threading

import _harness as h

WELL, NOT_SERVING = 0, 6

# Does what its client requests: connects and sends elsewhere, closes its port, or accepts no other
# client until the client sends more.
SERVER = """
import socket, sys
def listener():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", int(sys.argv[1])))
    s.listen(1)
    return s
s = listener()
while True:
    c, _ = s.accept()
    word = c.recv(64).decode()
    if word == "elsewhere":
        for _ in range(3):
            with socket.socket() as out:
                out.connect_ex(("203.0.113.9", 80))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.sendto(b"x", ("203.0.113.9", 53))
    if word == "close":
        s.close()
    if word in ("close", "hold"):
        c.sendall(b"done")
        c.recv(64)
    if word == "close":
        s = listener()
    c.sendall(b"done")
    c.close()
"""


def say(port, word):
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.sendall(word.encode())
    if client.recv(16) != b"done":
        raise h.Failure(f"no answer to {word}")
    return client


def ctl(scenario, group, *words):
    return h.ctl(scenario, "--dir", str(group.home), *words)


def summary(scenario, group):
    status, text = ctl(scenario, group, "status", group.name, "-o", "json")
    return status, json.loads(text)


def wait_for(scenario, group, status):
    h.wait_until(lambda: summary(scenario, group)[0] == status, 30, f"status exits with {status}")
    return summary(scenario, group)[1], ctl(scenario, group, "status", group.name)[1]


def not_serving(scenario, group, word, why):
    with say(group.port, word) as client:
        waiting = [socket.create_connection(("127.0.0.1", group.port), timeout=30)
                   for _ in range(4 if word == "hold" else 0)]
        told, text = wait_for(scenario, group, NOT_SERVING)
        scenario.check(told["health"] == "not serving" and why in (told["not_serving"] or "")
                       and "not serving: " + why in text, f"{word}: not serving: {why}", text)
        client.sendall(b"go on")
        scenario.check(client.recv(16) == b"done", f"{word}: the server continues")
        for one in waiting:
            one.sendall(b"nothing")
            scenario.check(one.recv(16) == b"done", "a client that waited is served")
            one.close()
    told, text = wait_for(scenario, group, WELL)
    scenario.check(told["not_serving"] is None and "not serving" not in text, f"{word}: well again")


def counts(scenario, group):
    say(group.port, "elsewhere").close()
    group.settle()
    told, text = wait_for(scenario, group, WELL)
    expected = {"datagrams": 1, "udp_ports": 0, "sandboxes": 0}
    scenario.check(all(r["unsupported"] == expected for r in told["replicas"]),
                   "each replica counts dropped datagrams", str(told["replicas"][0]["unsupported"]))
    scenario.check("unsupported: 1 datagrams to others dropped" in text,
                   "crane-ctl status reports it", text)
    refused = [{"address": "203.0.113.9:80", "connections": 3, "allowed": False}]
    scenario.check(all(r["outbound"] == refused for r in told["replicas"]),
                   "each replica counts connections to others",
                   str(told["replicas"][0]["outbound"]))


def members_agree(scenario, group):
    group.settle()
    answer = json.loads(ctl(scenario, group, "member", "list", group.name, "-o", "json")[1])
    applied = [group.status(n)["applied"] for n in range(3)]
    scenario.check([m["applied"] for m in answer["members"]] == applied,
                   "member list has the indexes of status", f"{answer['members']} {applied}")


def transfers(scenario, group):
    for _ in range(5):
        before = group.leader()
        to = (before + 1) % 3
        status, text = ctl(scenario, group, "leader", "transfer", group.name, "--to", str(to))
        now = summary(scenario, group)[1]["leader"]
        scenario.check(status == 0 and now == to and f"replica {to} leads" in text,
                       f"replica {to} leads when the transfer is over", f"{status} {now} {text}")
        wait_for(scenario, group, WELL)
    status, text = ctl(scenario, group, "leader", "transfer", group.name, "--no-wait")
    scenario.check(status == 0 and not re.search(r"replica \d+ leads\n", text),
                   "--no-wait does not wait", text)


def transfers_to_a_late_one(scenario, group):
    """The replica is stopped when it is to lead, so that another one leads, which gets the request
    again."""
    h.wait_until(group.are_whole, 30, "all replicas are ready")
    group.settle()
    before = group.leader()
    to = (before + 1) % 3
    view = group.status(before)["view"]
    results = []
    asking = threading.Thread(target=lambda: results.extend(
        ctl(scenario, group, "leader", "transfer", group.name, "--to", str(to))))
    group.signal_node(to, signal.SIGSTOP)
    asking.start()
    others = [n for n in range(3) if n != to]
    h.wait_until(lambda: any(s["role"] == "leader" and s["view"] > view
                             for s in group.statuses(others).values()), 20, "another one leads")
    group.signal_node(to, signal.SIGCONT)
    asking.join(60)
    scenario.check(results and results[0] == 0 and group.status(to)["role"] == "leader",
                   "a replica that was late leads in the end", repr(results))


def may_lose(scenario, group):
    wait_for(scenario, group, WELL)
    answer, text = wait_for(scenario, group, WELL)
    scenario.check(answer["may_lose"] == 1 and "3 of 3, fault tolerant" in text,
                   "the group can lose a replica", text)
    status, output = ctl(scenario, group, "replica", "drain", str((group.leader() + 1) % 3),
                         group.name)
    scenario.check(status == 0, "one replica is drained", output)
    h.wait_until(lambda: summary(scenario, group)[1]["may_lose"] == 0, 30,
                 "the group can lose no replica")
    text = ctl(scenario, group, "status", group.name)[1]
    scenario.check("2 of 3: ONE MORE LOSS STOPS IT" in text,
                   "status: the group can lose no replica", text)


# It computes for a long time, then waits forever.
WORKER = """
import threading
sum(range(3_000_000))
threading.Event().wait()
"""


class Worker(h.Group):
    """It does not listen."""

    def listens(self, state):
        return True


def worker(scenario):
    with Worker(scenario, [sys.executable, "-c", WORKER], container=False) as group:
        answer, text = wait_for(scenario, group, WELL)
        scenario.check(answer["may_lose"] == 1 and "serving, 3 of 3" in text,
                       "a worker that listens nowhere serves", text)


def body(scenario):
    worker(scenario)
    port = h.free_port()
    with h.Group(scenario, [sys.executable, "-c", SERVER, str(port)], port=port,
                 container=False, options=["--outbound", "none"]) as group:
        counts(scenario, group)
        not_serving(scenario, group, "close", "the server listens on no port")
        not_serving(scenario, group, "hold", "the server has taken no client from the full backlog")
        members_agree(scenario, group)
        transfers(scenario, group)
        transfers_to_a_late_one(scenario, group)
        may_lose(scenario, group)


h.run_scenario("serving", body)
