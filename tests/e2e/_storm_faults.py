# SPDX-License-Identifier: Apache-2.0
"""The faults of a storm, and its observation of the group meanwhile."""
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import typing

import _harness as h
from _storm_verdict import Said, read
from takeover_run import kill_crane_run, start_again

POLL_SECONDS = 0.02
CTL_SECONDS = 60
STOPS = (0.2, 2, 30)


@dataclasses.dataclass(frozen=True)
class Kind:
    """`losses`: number of replicas that the fault takes at once; 0: none, or a planned action."""
    name: str
    losses: int
    strike: typing.Callable


def supervised(pid):
    """The node's container supervisor, if it has one."""
    return [child for child in h.children(pid) if h.name_of(child) == "crane-container"]


class Faults:
    """`random` chooses all victims, so that a seed reproduces them."""

    def __init__(self, group, random, load):
        self.group, self.random, self.load = group, random, load
        self.timers, self.loads, self.stopped = [], [], set()

    # --- victims ---
    def leader(self):
        """The leader that crane-run knows; a storm does not wait for another one."""
        return (self.group.state() or {}).get("leader") or 0

    def one(self):
        """Returns (number, role) of a victim: the leader as often as a follower."""
        leads, other = self.random.random() < 0.5, self.random.choice((1, 2))
        return ((self.leader(), "the leader's") if leads else
                ((self.leader() + other) % 3, "a follower's"))

    def pids(self, number, what):
        replica = self.group.replica(number)
        node, server = replica["node_pid"], replica["server_pid"]
        return {"node": [node], "server": [server], "both": [node, server],
                "supervisor": supervised(node) if node else []}[what]

    def signal(self, pids, signo):
        for pid in pids:
            if pid and pid > 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signo)

    # --- faults; each returns a description ---
    def kill(self, what):
        number, whose = self.one()
        self.signal(self.pids(number, what), signal.SIGKILL)
        return f"{whose} {what}, replica {number}"

    def two(self):
        spared = self.random.randrange(3)
        pair = [n for n in range(3) if n != spared]
        self.signal([pid for n in pair for pid in self.pids(n, "both")], signal.SIGKILL)
        return f"replicas {pair[0]} and {pair[1]}"

    def all_at_once(self):
        self.signal([pid for n in range(3) for pid in self.pids(n, "both")], signal.SIGKILL)
        return "all replicas"

    def stop(self, what, seconds):
        number, whose = self.one()
        roots = self.pids(number, what)
        pids = h.descendants(roots) if what == "server" else roots
        self.signal(pids, signal.SIGSTOP)
        self.stopped |= set(pids)

        def go_on():
            self.signal(pids, signal.SIGCONT)
            self.stopped -= set(pids)
        timer = threading.Timer(seconds, go_on)
        timer.daemon = True
        timer.start()
        self.timers.append(timer)
        return f"{whose} {what}, replica {number}, for {seconds} s"

    def launcher(self):
        kill_crane_run(self.group)
        start_again(self.group)
        return "crane-run, started again"

    def ctl(self, *words):
        status, text = h.ctl(self.group.scenario, *words, "--dir", str(self.group.home))
        last = (text.strip().splitlines() or [""])[-1]
        return "" if status == 0 else f" (refused: {last[:120]})"

    def transfer(self):
        to = (self.leader() + self.random.choice((1, 2))) % 3
        return f"to replica {to}" + self.ctl("leader", "transfer", self.group.name, "--to",
                                             str(to))

    def drain(self):
        number, whose = self.one()
        return f"{whose}, replica {number}" + \
            self.ctl("replica", "drain", str(number), self.group.name) + \
            self.ctl("replica", "resume", str(number), self.group.name)

    def checkpoint(self):
        number = (self.leader() + self.random.choice((1, 2))) % 3   # the leader takes no checkpoint
        return f"of replica {number}" + self.ctl("checkpoint", "now", self.group.name, "--replica",
                                                 str(number))

    def full_speed(self):
        """Starts a load that runs beside the next faults."""
        seconds = self.random.choice((2, 5, 10))
        self.loads = [load for load in self.loads if load.poll() is None]
        command = ["timeout", str(seconds), *self.load]
        self.loads.append(subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return f"for {seconds} s"

    def end(self):
        """Waits until all stopped processes continue, and ends all loads."""
        for timer in self.timers:
            timer.join()
        for load in self.loads:
            load.terminate()
            load.wait()


def kinds(faults):
    """{name: Kind} of all faults of a storm."""
    rows = [Kind(f"kill {what}", 1, lambda what=what: faults.kill(what))
            for what in ("node", "server", "both", "supervisor")]
    rows += [Kind(f"stop {what} {seconds} s", 1,
                  lambda what=what, seconds=seconds: faults.stop(what, seconds))
             for what in ("node", "server") for seconds in STOPS]
    rows += [Kind("two at once", 2, faults.two), Kind("all at once", 3, faults.all_at_once),
             Kind("crane-run", 0, faults.launcher), Kind("transfer", 0, faults.transfer),
             Kind("drain, resume", 1, faults.drain), Kind("checkpoint", 0, faults.checkpoint),
             Kind("full speed", 0, faults.full_speed)]
    return {row.name: row for row in rows}


class Poller(threading.Thread):
    """Runs `crane-ctl status` again and again, and records its output."""

    def __init__(self, group):
        super().__init__(daemon=True)
        self.group, self.said, self.stopping = group, [], threading.Event()
        self.command = [str(group.scenario.out / "crane-ctl"), "status", group.name, "--dir",
                        str(group.home), "-o", "json"]

    def run(self):
        while not self.stopping.wait(POLL_SECONDS):
            begin = time.monotonic()
            try:
                done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, timeout=CTL_SECONDS, check=False)
                serving, may_lose, text = read(json.loads(done.stdout))
            except (KeyError, ValueError):
                serving, may_lose = False, 0
                text = (done.stderr.strip().splitlines() or ["no answer"])[-1][:160]
            except subprocess.TimeoutExpired:
                serving, may_lose, text = False, 0, f"no answer within {CTL_SECONDS} s"
            self.said.append(Said(begin, time.monotonic(), serving, may_lose, sys.intern(text)))

    def last(self, since=0.0):
        """The last status that began after `since`; None: not yet."""
        said = self.said[-1] if self.said else None
        return said if said and said.begin > since else None

    def end(self):
        self.stopping.set()
        self.join(CTL_SECONDS)


class Majority(threading.Thread):
    """Records when a majority can serve: two nodes that live and are not stopped, one of them with
    a server that lives and is not stopped."""

    def __init__(self, group):
        super().__init__(daemon=True)
        self.group, self.changes, self.stopping = group, [], threading.Event()

    def runs(self, pid):
        stat = h.process_stat(pid) if pid and pid > 0 else None
        return stat is not None and stat[2] not in "ZXTt"

    def is_there(self):
        replicas = (self.group.state() or {}).get("replicas", [])
        nodes = [r for r in replicas if self.runs(r["node_pid"])]
        return len(nodes) >= 2 and any(self.runs(r["server_pid"]) for r in nodes)

    def run(self):
        while not self.stopping.wait(POLL_SECONDS):
            there = self.is_there()
            if not self.changes or self.changes[-1][1] != there:
                self.changes.append((time.monotonic(), there))

    def back(self, since, until):
        """The time after `since` when a majority was back; `since` if it was not seen to go
        before `until`; None: not seen."""
        gone = next((when for when, there in self.changes if when > since and not there), None)
        if gone is None or gone > until:
            return since
        return next((when for when, there in self.changes if when > gone and there), None)

    def end(self):
        self.stopping.set()
        self.join(10)


def troubles(group):
    """Lines of the nodes' logs that no fault excuses: replicas differ."""
    found = []
    for number in range(group.replicas):
        path = pathlib.Path(group.dir / f"r{number}" / "node.log")
        with contextlib.suppress(OSError):
            found += [f"r{number}: {line}" for line in path.read_text(errors="replace").splitlines()
                      if "diverged" in line]
    return found
