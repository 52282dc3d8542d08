#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crane is upgraded under load: its files are replaced, then every replica is drained and resumed.

The builds differ in bytes and commit, and have equal versions. On one host no client loses its
connection; then crane-run is replaced as well, and takes the group over.
"""
import signal
import subprocess

import _builds as b
import _harness as h
from checkpoints import check_equal, control, lead


class Placed(h.Group):
    """A group of programs that lie in a directory of their own."""

    def __init__(self, scenario, place, *args, **options):
        super().__init__(scenario, *args, **options)
        self.place = place

    def command(self):
        words = super().command()
        return [str(self.place / "crane-run")] + words[1:]


def run(scenario, group, what, *words, status=0, says=()):
    got, text = control(group, *words)
    scenario.check(got == status and all(s in text for s in says), what, f"{got}: {text}")
    return text


def builds(group):
    """{replica: (commit, digest of its server's libcrane.so)}"""
    said = {n: s["build"] for n, s in group.statuses().items() if s}
    return {n: (one["commit"], one["libcrane"]) for n, one in said.items()}


def roll(scenario, group, load, commit):
    """Every replica in turn, the leader last: it hands over."""
    order = sorted(range(3), key=lambda n: n == group.leader())
    for number in order:
        run(scenario, group, f"replica {number} is drained", "replica", "drain", str(number),
            group.name, says=[f"replica {number} is drained"])
        run(scenario, group, f"replica {number} is resumed", "replica", "resume", str(number),
            group.name, says=[f"replica {number} is back"])
        h.wait_until(lambda n=number: builds(group).get(n, ("",))[0] == commit, 20,
                     f"replica {number} is of the new build")
        load.progress()
        if number == order[0]:   # both directions: a new leader with old followers
            lead(group, number)
            load.progress()
            text = run(scenario, group, "versions name both builds", "versions", group.name,
                       says=[commit, "replica by replica"])
            scenario.check(text.count(commit) == 2, "one replica, and crane-ctl itself, are new",
                           text)
        scenario.check(not group.alarm(), f"live checking agrees, with replica {number} upgraded",
                       group.brief())


def replace_crane_run(scenario, group, load):
    group.remember(group.state())
    group.process.send_signal(signal.SIGKILL)
    group.process.wait(10)
    group.start()
    h.wait_until(lambda: (group.state() or {}).get("pid") == group.process.pid, 20,
                 "the new crane-run tells its state")
    load.progress()


def servers_take_the_library(scenario, group, first):
    """A server that came from a checkpoint has the libcrane.so of that: a restart ends it."""
    run(scenario, group, "the server of every replica is started again", "checkpoint", "now",
        group.name, "--tier", "restart")
    h.wait_until(lambda: h.redis_answers(group.port), 30, "redis answers again")
    h.wait_until(lambda: len(builds(group)) == 3 and {one[1] for one in builds(group).values()}
                 .isdisjoint({first}), 20, "every server has the new libcrane.so")
    scenario.check(len(set(builds(group).values())) == 1, "all replicas have the new libcrane.so",
                   repr(builds(group)))
    check_equal(scenario, group, "with the new libcrane.so")


def one_host(scenario):
    port = h.free_port()
    place = b.installed(scenario, "place")
    program = ["redis-server", "--port", str(port), "--dir", "/var/tmp", "--save", "3600 1",
               "--appendonly", "no"]
    with Placed(scenario, place, program, port=port, options=["--restart-checkpoints"]) as group:
        first = builds(group)[0]
        with h.Load(port, timeout=10) as load:
            run(scenario, group, "the old build takes a checkpoint", "checkpoint", "now",
                group.name)
            commit = b.upgrade(place)
            scenario.out, before = place, scenario.out   # crane-ctl is the new one, too
            scenario.check(commit != first[0], "the builds differ", commit)
            roll(scenario, group, load, commit)
            replace_crane_run(scenario, group, load)
            load.stop()
            problems = load.problems()
            scenario.check(not problems, f"no acknowledged write of {load.answers()} is lost",
                           "; ".join(problems[:5]))
            broken = sum(c.reconnects for c in load.clients)
            scenario.check(broken == 0, "no client lost its connection", str(broken))
        check_equal(scenario, group, "upgraded")
        servers_take_the_library(scenario, group, first[1])
        scenario.out = before


def log_on_disk(scenario):
    """A stopped group goes on with its log under another build."""
    port = h.free_port()
    place = b.installed(scenario, "disk")
    with Placed(scenario, place, h.redis_program(port), port=port,
                options=["--durability", "disk"]) as group:
        client = h.Redis(port, 20)
        client("SET", "kept", "7")
        client.close()
        first = builds(group)[0]
        scenario.check(group.stop() == 0, "a group with its log on disk is stopped")
        b.upgrade(place)
        group.start()
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        client = h.Redis(port, 20)
        scenario.check(client("GET", "kept") == b"7" and first not in builds(group).values(),
                       "its log is run again by another build", repr(builds(group)))
        client.close()


def other_versions(scenario):
    """A crane-run whose versions differ does not go on with the group."""
    port = h.free_port()
    place = b.installed(scenario, "other")
    with Placed(scenario, place, h.redis_program(port), port=port) as group:
        group.remember(group.state())
        b.with_other_versions(place)
        group.process.send_signal(signal.SIGKILL)
        group.process.wait(10)
        group.home.chmod(0o755)
        status, text = launch(group)
        scenario.check(status == 111 and "another build of Crane started it (wire 1, log" in text
                       and "--stop" in text, "other versions: refused (111), and says which",
                       f"{status}: {text}")
        b.exchange(place / "crane-run", b"\0wirf\0", b"\0wire\0")
        group.start()


def launch(group):
    done = subprocess.run(group.command(), cwd="/", text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout.strip()


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    h.need("redis-server")
    one_host(scenario)
    log_on_disk(scenario)
    other_versions(scenario)


if __name__ == "__main__":
    h.tell("upgrade", body)
