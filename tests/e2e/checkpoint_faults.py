#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kill -9 at every named fault point of taking a checkpoint, packing it and recovering from it.

The group serves all the time, has all replicas again afterwards, takes a verified checkpoint, and
leaves nothing behind. The names are those of checkpoint/fault_points.h; a new name that this
scenario does not cover fails it.
"""
import contextlib
import glob
import os
import pathlib
import random
import re
import signal
import string
import threading
import time

import _harness as h
from checkpoints import check_equal, checkpoint, control, listed
from dav_race import dav_configuration

# At each point one process dies: the node (with its server), the server's supervisor (and with it
# the node), or the packer, which the node outlives.
TAKING = ("begin.made", "take.preparing", "take.held", "take.resting", "take.asked", "take.dumped",
          "take.released", "dump.begun", "dump.preparing", "dump.running", "dump.done")
PACKING = ("publish.packing", "publish.part", "publish.packed", "publish.manifest",
           "publish.renamed", "publish.cleaning", "verify.checked", "verify.mark",
           "remove.renamed", "remove.removing")
RETURNING = ("unpack.part", "unpack.unpacked", "return.unpacked", "return.asked",
             "return.running", "restore.mounted", "restore.running", "restore.done")
# This scenario does not ship checkpoints. cut_logs.py cuts logs on disk; tiers.py restarts servers.
ELSEWHERE = ("ship.manifest", "ship.bytes", "ship.verified", "ship.renamed", "truncate.holds",
             "truncate.told", "truncate.covered", "truncate.cut", "truncate.dropping",
             "truncate.dropped", "send.asked", "send.manifest", "send.piece", "fetch.answered",
             "fetch.agreed", "restart.noted", "restart.kept", "restart.renewed",
             "restart.running")
# crane-run gives up a replica that recovers three times in a row without lasting.
RETURNS_MAX = 3
KEPT = 3
# A group refuses to take a requested checkpoint while it takes a scheduled one.
NONE_BY_ITSELF = ["--checkpoint-every", "0"]


def named_in_header():
    """Returns all points except those of a state of files (see machine_files_crash_test.cc)."""
    text = (pathlib.Path(__file__).parents[2] / "checkpoint/fault_points.h").read_text()
    return {name for name in re.findall(r'^    "([a-z.]+)",', text, re.M)
            if not name.startswith("state.")}


def left_by_criu():
    """Directories in /tmp left by a CRIU that has ended: their names contain its process id."""
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    found = []
    for path in [*glob.glob("/tmp/.criu.*.c[r-z]????"), *glob.glob("/tmp/cr-tmpfs.c[r-z]????")]:
        maker = 0
        for digit in path[-4:]:
            maker = maker * 62 + digits.index(digit)
        found += [path] if not h.alive(maker) else []
    return found


class Walk:
    """One group at a time, replaced before crane-run gives up one of its replicas."""

    def __init__(self, scenario):
        self.scenario, self.group, self.load = scenario, None, None
        self.returns = {}

    def begin(self):
        port = h.free_port()
        self.group = h.Group(self.scenario, h.redis_program(port), port=port,
                             options=["--test-only-faults", *NONE_BY_ITSELF])
        self.group.__enter__()
        self.load = h.Load(port, clients=3)
        self.load.__enter__()
        self.returns = {n: 0 for n in range(3)}

    def end(self):
        """Checks the group at its end."""
        self.load.stop()
        problems = self.load.problems()
        self.scenario.check(not problems, "no acknowledged increment is lost",
                            "; ".join(problems[:5]))
        check_equal(self.scenario, self.group, "after the faults")
        self.group.__exit__(None, None, None)
        self.group = None
        self.scenario.check(not left_by_criu(), "a killed CRIU leaves no directories in /tmp",
                            repr(left_by_criu()))

    def follower(self, returns):
        """A follower that can still recover this many times, with its group."""
        if self.group is not None:
            able = [n for n, had in self.returns.items()
                    if had + returns <= RETURNS_MAX and n != self.group.leader()]
            if able:
                return min(able, key=self.returns.get)
            self.end()
        self.begin()
        return self.follower(returns)

    def arm(self, number, place):
        directory = self.group.dir / f"r{number}/faults"
        directory.mkdir(exist_ok=True)
        fault = directory / place
        fault.touch()
        return fault

    def whole(self, number, before, what):
        """Waits until the replica follows, with a node other than `before`, if given."""
        end = max(s["last"] for s in self.group.statuses().values() if s)

        def follows():
            state = self.group.replica(number)
            if state["node_pid"] in (before, None) or not h.alive(state["node_pid"]):
                return None
            status = self.group.status(number)
            return status and status["server_pid"] and status["applied"] >= end
        h.wait_until(follows, 40, f"{what}: replica {number} follows again")

    def judge(self, number, place, fault):
        """The group serves, and keeps a good checkpoint of this replica."""
        group, check = self.group, self.scenario.check
        self.load.progress()
        checkpoint(group, number)
        status, text = control(group, "checkpoint", "verify", group.name)
        check(not fault.exists() and status == 0, f"{place}: a good checkpoint afterwards",
              f"{fault} {fault.exists()}; {status}: {text}")
        own = group.dir / f"r{number}"
        left = [p.name for p in (own / "checkpoints").iterdir()
                if p.name.startswith(".") and p.name != ".lock"]
        left += [p for p in ("restored", "criu") if (own / p).exists()]
        kept = [c for c in listed(group) if c["replica"] == number]
        check(not left and len(kept) <= KEPT, f"{place}: nothing is left of the failed one",
              repr((left, kept)))
        servers = self.servers()
        check(len(servers) == 3, f"{place}: three servers run", repr(servers))

    def servers(self):
        """Pids of all processes that have the server's command line."""
        found, own = [], str(self.group.port)
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = entry.read_text(errors="replace")
                if words.startswith("/usr/bin/redis-server") and own in words:
                    found.append(int(entry.parent.name))
        return found

    def taking(self, place):
        number = self.follower(1)
        checkpoint(self.group, number)   # the checkpoint that it recovers from
        before, fault = self.group.replica(number)["node_pid"], self.arm(number, place)
        control(self.group, "checkpoint", "now", self.group.name, "--replica", str(number))
        self.returns[number] += 1
        self.whole(number, before, place)
        self.judge(number, place, fault)

    def packing(self, place):
        number = self.follower(0)
        before = self.group.replica(number)["node_pid"]
        if place.startswith("remove."):   # removes a checkpoint beyond the limit
            for _ in range(KEPT):
                checkpoint(self.group, number)
        fault = self.arm(number, place)
        status, text = control(self.group, "checkpoint", "now", self.group.name, "--replica",
                               str(number))
        self.scenario.check(status != 0 and "was killed" in text,
                            f"{place}: crane-ctl reports the kill", f"{status} {text}")
        self.judge(number, place, fault)
        self.scenario.check(self.group.replica(number)["node_pid"] == before,
                            f"{place}: the replica continues")

    def returning(self, place):
        number = self.follower(2)
        checkpoint(self.group, number)
        before, fault = self.group.replica(number)["node_pid"], self.arm(number, place)
        self.group.signal_node(number, signal.SIGKILL)
        h.wait_until(lambda: not fault.exists(), 40, f"{place}: the process dies there")
        self.returns[number] += 2
        self.whole(number, before, place)
        self.judge(number, place, fault)

    def orphans(self):
        """The supervisor dies at a random point of CRIU's work: nothing of CRIU's is left,
        either."""
        seed = int(os.environ.get("CRANE_SEED", 0)) or random.SystemRandom().randrange(1, 1 << 31)
        self.scenario.say(f"supervisors are killed at times of CRANE_SEED={seed}")
        random_times = random.Random(seed)
        for _ in range(4):
            number = self.follower(2)
            checkpoint(self.group, number)
            before = self.group.replica(number)["node_pid"]
            self.group.signal_node(number, signal.SIGKILL)
            self.returns[number] += 2

            def restoring():
                node = self.group.replica(number)["node_pid"]
                supervisors = [] if node in (before, None) else [
                    p for p in h.children(node)
                    if h.name_of(p) == "crane-container" and h.children(p)]
                return (node, supervisors[0]) if supervisors else None
            node, supervisor = h.wait_until(restoring, 20, "a server is being restored")
            time.sleep(random_times.random() * 0.08)   # chooses where the kill hits
            with contextlib.suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGKILL)
            self.whole(number, node, "a killed supervisor")
            servers = self.servers()
            self.scenario.check(len(servers) == 3, "a killed supervisor: three servers run",
                                repr(servers))


def killed_servers(scenario):
    """A server of several processes is killed at a random point of a dump: its replica does not
    wait for CRIU, which may wait for processes that it traces."""
    seed = int(os.environ.get("CRANE_SEED", 0)) or random.SystemRandom().randrange(1, 1 << 31)
    scenario.say(f"servers are killed at times of CRANE_SEED={seed}")
    random_times = random.Random(seed)
    port = h.free_port()
    conf = dav_configuration(scenario.work, port)
    for _ in range(5):
        with h.Group(scenario, ["apache2", "-f", str(conf)], port=port,
                     options=NONE_BY_ITSELF) as group:
            checkpoint(group, (group.leader() + 1) % 3)
            for turn in range(4):
                number = [n for n in range(3) if n != group.leader()][turn % 2]
                before = group.replica(number)["node_pid"]
                asking = threading.Thread(target=control, daemon=True, args=(
                    group, "checkpoint", "now", group.name, "--replica", str(number)))
                asking.start()
                time.sleep(random_times.uniform(0.05, 0.25))   # chooses where the kill hits
                group.signal_server(number, signal.SIGKILL)

                def back(number=number, before=before):
                    state, status = group.replica(number), group.status(number)
                    return state["node_pid"] not in (before, None) and status \
                        and status["server_pid"]
                h.wait_until(back, 40, f"replica {number} is back")   # CRIU's limit is 60 s
                asking.join(60)
    scenario.check(True, "20 servers killed in dumps: all are back")


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    known = set(TAKING + PACKING + RETURNING + ELSEWHERE)
    scenario.check(named_in_header() == known, "every named place is covered",
                   repr(named_in_header() ^ known))
    walk = Walk(scenario)
    try:
        for places, way in ((TAKING, walk.taking), (PACKING, walk.packing),
                            (RETURNING, walk.returning)):
            for place in places:
                way(place)
        walk.orphans()
        walk.end()
        h.need("apache2")
        killed_servers(scenario)
    finally:
        if walk.group is not None:
            walk.group.explain()
            walk.group.kill_all()


if __name__ == "__main__":
    h.run_scenario("checkpoint_faults", body)
