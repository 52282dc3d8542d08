#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replica that returns finds its files under other inode numbers, and the schedules stay equal.
The server is apache2, because its ETags show the inode numbers it sees. First, the group is on
another file system than the server's files, where an overlay may assign inode numbers to
directories freely. Then the files are copies by the time a replica returns, as on another host:
they are in a directory bound into the containers, which is exchanged while one replica is drained.
Finally, processes of a server meet at a FIFO, at a named semaphore and in a mapped file, and still
meet when some processes are older than the checkpoint and others are not.

Files that other programs create in this machine's /tmp are not the server's (FILES-1).
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile

import _apache
import _harness as h
import _matrix as m
from checkpoints import check_equal, checkpoint, recover, control, lead


class Apache(_apache.Apache):
    name = "apache2 event"


class Bound(Apache):
    """Its pages are in a separate directory."""
    name = "apache2 event, pages bound"

    def prepare(self):
        super().prepare()
        self.options = ("--bind", f"{self.root}:ro")


@contextlib.contextmanager
def other_file_system():
    with tempfile.TemporaryDirectory(prefix="crane-other-", dir="/var/tmp") as place:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "crane-test", place], check=True,
                       timeout=20)
        try:
            yield place
        finally:
            subprocess.run(["umount", place], check=True, timeout=20)


def loaded_and_led(scenario, group, server, follower, before, what):
    """`before` is the server's state(), which has an ETag: inode, size and time of a page."""
    server.load(server.requests[0])
    check_equal(scenario, group, what)
    lead(group, follower)
    after = server.state()
    scenario.check(after == before, f"{what}: clients see the same numbers", f"{before}; {after}")
    check_equal(scenario, group, f"{what}, after it has led")


def over_two(scenario):
    with other_file_system() as place:
        server = Apache(m.place_of(scenario, Apache), h.free_port())
        (scenario.work / "groups").symlink_to(place)
        try:
            with h.Group(scenario, server.command, port=server.port,
                         options=server.options) as group:
                h.wait_until(server.ready, 60, "the server answers")
                before = server.state()
                follower = (group.leader() + 1) % 3
                checkpoint(group, follower)
                recover(group, follower)
                loaded_and_led(scenario, group, server, follower, before,
                               "a replica on another file system")
        finally:
            (scenario.work / "groups").unlink()


def exchange(directory):
    """Replaces the directory by a copy with equal files, each with another inode number."""
    old = directory.with_name(directory.name + ".old")
    os.rename(directory, old)
    shutil.copytree(old, directory, copy_function=shutil.copy2, symlinks=True)
    shutil.copystat(old, directory)
    of = {p.relative_to(old): p.stat().st_ino for p in old.rglob("*")}
    same = [str(p) for p, number in of.items() if (directory / p).stat().st_ino == number]
    if same:
        raise h.Failure(f"copies have the numbers of the originals: {same}")


def exchanged(scenario):
    server = Bound(m.place_of(scenario, Bound), h.free_port())
    with h.Group(scenario, server.command, port=server.port, options=server.options) as group:
        h.wait_until(server.ready, 60, "the server answers")
        before = server.state()
        server.load(server.requests[0])
        follower = (group.leader() + 1) % 3
        checkpoint(group, follower)
        for word in ("drain", "resume"):
            status, text = control(group, "replica", word, str(follower), group.name)
            scenario.check(status == 0, f"replica {word}", text)
            if word == "drain":
                exchange(server.root)
        loaded_and_led(scenario, group, server, follower, before,
                       "a replica that returned to copies of its files")


LISTS = '''
import os, socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    c, _ = s.accept()
    c.sendall(" ".join(sorted(os.listdir("/t" + "mp"))).encode() + b"\\n")
    c.close()
'''


def of_nobody_else(scenario):
    with tempfile.NamedTemporaryFile(prefix="crane-other-", dir="/tmp") as other:
        name = os.path.basename(other.name)
        for words, seen in (((), False), ((other.name,), True)):
            port = h.free_port()
            program = [sys.executable, "-c", LISTS, str(port), *words]
            with h.Group(scenario, program, port=port) as group:
                with socket.create_connection(("127.0.0.1", port), 20) as client:
                    parts = client.makefile().readline().split()
                scenario.check((name in parts) == seen and (seen or not parts),
                               "the server sees " + ("files that its command line names"
                                                     if seen else "a /tmp of its own"), str(parts))
                check_equal(scenario, group, "after the listing")


def meeting(scenario):
    port, place = h.free_port(), scenario.work / "meeting"
    place.mkdir()

    def met():
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(b"meet\n" * 3)
            answers = client.makefile("rb")
            return [answers.readline().decode().split()[0] for _ in range(3)]
    program = [str(scenario.out / "e2e/meeting_server"), str(port), str(place)]
    with h.Group(scenario, program, port=port) as group:
        scenario.check(met() == ["met"] * 3, "processes meet")
        follower = (group.leader() + 1) % 3
        checkpoint(group, follower)
        recover(group, follower)
        scenario.check(met() == ["met"] * 3, "they meet after a replica returned")
        check_equal(scenario, group, "a new process meets an older one")
        lead(group, follower)
        scenario.check(met() == ["met"] * 3, "they meet when the returned replica leads")
        check_equal(scenario, group, "after it has led")


def body(scenario):
    h.need(*Apache.programs, "mount")
    for part in (over_two, exchanged, of_nobody_else, meeting):
        part(scenario)


if __name__ == "__main__":
    h.run_scenario("other-files", body)
