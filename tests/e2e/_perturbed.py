#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: replicas stay equal whatever the machine does beside them (`make accept-perturbed`, hours).
METHOD: each server of the matrix is started again and again as three replicas with delays, pinning
and start order of their own, in turn on a quiet machine, with both processors taken, with the
servers held to a tenth of a processor, with little memory, and while files that they do not own
change. Then replicas recover under load, each from a checkpoint that was taken under load.
CHECKS: no live check finds a difference, all replicas put out the same bytes and took the same
turns. A table by server, and what differed with its seed.
"""
import contextlib
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import _harness as h
import _matrix as m
from checkpoints import control, recover

HERE = pathlib.Path(__file__).resolve().parent
CHANGED = pathlib.Path(f"/usr/local/lib/crane-perturbed-{os.getpid()}")
CPU = pathlib.Path("/sys/fs/cgroup/cpu")


@contextlib.contextmanager
def beside(script):
    """A shell's loop, which ends with us."""
    done = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        os.killpg(done.pid, signal.SIGKILL)
        done.wait()


@contextlib.contextmanager
def quiet(_group):
    yield


@contextlib.contextmanager
def busy(_group):
    with beside("for i in $(seq $(nproc)); do (while :; do :; done) & done; wait"):
        yield


@contextlib.contextmanager
def quota(group):
    """The servers' containers get 10 ms of 100; of a cgroup2 machine likewise."""
    found = [*CPU.glob(f"lxc.payload.crane.{group.name}.r*"),
             *pathlib.Path("/sys/fs/cgroup").glob(f"lxc.payload.crane.{group.name}.r*")]
    for place in found:
        for name, text in (("cpu.cfs_quota_us", "10000"), ("cpu.max", "10000 100000")):
            if (place / name).exists():
                (place / name).write_text(text)
    yield


@contextlib.contextmanager
def memory(_group):
    """All but 1 GiB of what is free is taken, and touched again and again."""
    eater = ("free = int(next(l for l in open('/proc/meminfo') if l.startswith('MemAvail')).split()"
             "[1]) - 1048576\n"
             "taken = bytearray(max(free, 0) * 1024)\n"
             "while True:\n"
             "    for i in range(0, len(taken), 4096): taken[i] ^= 1\n")
    with beside(f"exec {sys.executable} -c \"{eater}\""):
        yield


@contextlib.contextmanager
def files(_group):
    CHANGED.mkdir(exist_ok=True)
    try:
        with beside(f"cd {CHANGED}; while :; do date > a; mv a b; cp b c; rm c; done"):
            yield
    finally:
        h.shutil.rmtree(CHANGED)


HOSTILE = (quiet, busy, quota, memory, files)


class Loader(threading.Thread):
    """The server's load again and again, until it is told to end."""

    def __init__(self, server, requests):
        super().__init__(daemon=True)
        self.server, self.requests = server, requests
        self.ending, self.problems = threading.Event(), []

    def run(self):
        while not self.ending.is_set():
            try:
                self.server.load(self.requests)
            except (OSError, h.Failure, h.CannotRun) as problem:
                self.problems.append(str(problem)[:200])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(300)


def differs(group):
    """Why the replicas are not equal; empty: they are."""
    if group.alarm():
        return f"alarm: {group.brief()}"
    said = group.settle(180)
    if len(said) != 3:
        return f"{len(said)} live"
    return "" if len({s["schedule_hash"] for s in h.at_rest(group).values()}) == 1 else \
        f"schedules: {group.brief()}"


def start(scenario, kind, seed, hostile, recoveries):
    """(why it differed or "", recoveries that were made)."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    made = 0
    try:
        options = [*server.options, "--perturb", str(seed)]
        with h.Group(scenario, server.command, port=server.port, options=options) as group, \
                hostile(group):
            h.wait_until(server.ready, 180, "it answers")
            server.load(server.requests[0])
            load = Loader(server, server.requests[0])
            with load if recoveries else contextlib.nullcontext():
                for number in range(recoveries):
                    control(group, "checkpoint", "now", group.name)
                    recover(group, number % 3)
                    made += 1
            return differs(group) or "; ".join(load.problems[:3]), made
    except h.Failure as problem:
        return str(problem)[:500], made
    finally:
        h.shutil.rmtree(server.work, ignore_errors=True)


def hunt(scenario, kind):
    row = {"server": kind.name, "starts": 0, "recoveries": 0, "differed": []}
    for number in range(scenario.options.starts):
        hostile = HOSTILE[number % len(HOSTILE)]
        every = max(1, scenario.options.starts // max(1, scenario.options.recoveries))
        recoveries = 1 if number % every == 0 else 0
        seed = scenario.options.seed + number
        why, made = start(scenario, kind, seed, hostile, recoveries)
        row["starts"] += 1
        row["recoveries"] += made
        if why:
            row["differed"].append({"seed": seed, "beside": hostile.__name__, "why": why})
            scenario.say(f"{kind.name}, seed {seed}, {hostile.__name__}: {why}")
    scenario.check(not row["differed"], f"{kind.name}: {row['starts']} starts and "
                   f"{row['recoveries']} recoveries, {len(row['differed'])} differ")
    return row


def kinds():
    found = []
    for file in sorted(HERE.glob("server_*.py")):
        found += importlib.import_module(file.stem).KINDS
    return found


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    wanted = scenario.options.kinds
    rows = []
    for kind in kinds():
        if wanted and not any(word in kind.name for word in wanted):
            continue
        try:
            h.need(*kind.programs)
            rows.append(hunt(scenario, kind))
        except h.CannotRun as why:
            scenario.say(f"{kind.name} is left out: {why}")
        (scenario.out / "perturbed.json").write_text(json.dumps(rows, indent=1) + "\n")


h.tell("perturbed", body,
       kinds={"nargs": "*", "help": "only servers whose name holds one of these"},
       starts={"type": int, "default": 50, "help": "of each server"},
       recoveries={"type": int, "default": 20, "help": "of each server"},
       seed={"type": int, "default": 1, "help": "the first one"})
