#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: what the kernel of one machine refuses its server is no answer of the group's (rule 17).
METHOD: three replicas of refused_server.c, in containers. The control group of one of them is left
no room for another thread or process, and a client asks for one: of a follower, then of the leader.
CHECKS: the client is told that it was made, on the connection that it has; that replica stops
itself, says why, and is back; all are equal, and no live check found a difference.
"""
import pathlib
import socket

import _harness as h

ROOT = pathlib.Path("/sys/fs/cgroup")
WORDS = {"thread": "the kernel refused a thread", "process": "the kernel refused to fork"}


def leave_no_room(group, number):
    """False: this machine's containers have no limit of processes."""
    # LXC numbers a group whose forerunner of the name is not gone yet.
    found = [place for top in (ROOT / "pids", ROOT)
             for place in top.glob(f"lxc.payload.crane.{group.name}.r{number}*/pids.max")]
    for place in found:
        place.write_text("1")   # below what there is: whatever ends meanwhile makes no room
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
    scenario.check((said := client.ask(word)) == word, f"{what}: the client is told of none",
                   said)
    log = group.dir / f"r{number}" / "node.log"
    h.wait_until(lambda: WORDS[word] in h.tail(log), 30,
                 f"{what}: it says why it stops")
    h.wait_until(lambda: group.replica(number)["node_pid"] not in (None, node)
                 and group.are_whole(), 60, f"{what}: it is back")
    scenario.check(client.ask(word) == word, f"{what}: all serve")
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


h.tell("refused", body)
