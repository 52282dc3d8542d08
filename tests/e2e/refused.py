#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: if the kernel of one machine refuses its server something, the group does not answer with
that refusal (rule 17).
METHOD: three replicas of refused_server.c, in containers. The control group of one replica has no
room for another thread or process, and a client requests one: first with a follower, then with the
leader.
CHECKS: the client gets a positive answer, on its existing connection. That replica stops, reports
why, and returns. All are equal, and no live check found a difference.
"""
import pathlib
import socket

import _harness as h

ROOT = pathlib.Path("/sys/fs/cgroup")
WORDS = {"thread": "the kernel refused a thread", "process": "the kernel refused to fork"}


def leave_no_room(group, number):
    """Returns False if this machine's containers have no limit of processes."""
    # LXC appends a number to the name while a previous group of that name still exists.
    found = [place for top in (ROOT / "pids", ROOT)
             for place in top.glob(f"lxc.payload.crane.{group.name}.r{number}*/pids.max")]
    for place in found:
        place.write_text("1")   # less than the current number: processes that end make no room
    return bool(found)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.file = self.socket.makefile("rw")

    def ask(self, word):
        print(word, file=self.file, flush=True)
        return self.file.readline().strip()

    def close(self):
        self.file.close()
        self.socket.close()


def refuse(scenario, group, client, number, word, who):
    what = f"a {word} of the {who}"
    node = group.replica(number)["node_pid"]
    if not leave_no_room(group, number):
        raise h.CannotRun("containers have no limit of processes here")
    scenario.check((said := client.ask(word)) == word, f"{what}: the client sees no refusal",
                   said)
    log = group.dir / f"r{number}" / "node.log"
    h.wait_until(lambda: WORDS[word] in h.tail(log), 30,
                 f"{what}: it reports why it stops")
    h.wait_until(lambda: group.replica(number)["node_pid"] not in (None, node)
                 and group.are_whole(), 60, f"{what}: the replica is back")
    scenario.check(client.ask(word) == word, f"{what}: all replicas serve")
    alarms = [s["verified"]["alarm"] for s in h.at_rest(group).values()]
    scenario.check(not any(alarms), f"{what}: no live check found a difference", repr(alarms))


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    port = h.free_port()
    with h.Group(scenario, [str(scenario.out / "e2e/refused_server"), str(port)],
                 port=port) as group:
        client = Client(port)
        for word in WORDS:
            scenario.check(client.ask(word) == word, f"a {word} is made")
            refuse(scenario, group, client, (group.leader() + 1) % 3, word, "follower")
            refuse(scenario, group, client, group.leader(), word, "leader")
        client.close()


h.run_scenario("refused", body)
