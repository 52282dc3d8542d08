#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: replicas stay equal under any other load of the machine (`make accept-perturbed`, hours).
METHOD: servers of the matrix, and some without a profile, start again and again as three replicas
with different delays, pinning and start order. From its beginning on, each start runs beside one of
the loads of _hostile.py. In some starts, replicas are killed under load and recover from a
checkpoint that was taken under load. A server is prepared once: no start changes its files.
CHECKS: no live check finds a difference, all replicas put out the same bytes and took the same
turns, clients notice nothing. Each start is a line of a journal; the logs and recordings of a group
that differed are kept beside it. --table FILE... prints the table of journals.
"""
import contextlib
import copy
import importlib
import json
import pathlib
import shutil
import subprocess
import threading
import time

import _harness as h
import _computing
import _hostile
import _matrix as m
import _unprepared
from checkpoints import control, recover

HERE = pathlib.Path(__file__).resolve().parent
CHUNK = 10           # starts of one server before those of the next
PATIENCE = 180       # s, enough for a busy machine
LEAST = 64           # minimal requests of a load
LOADS = {x.__name__: x for x in _hostile.ALL + _hostile.BY_NAME}
KEPT = ("*.log", "*.json", "*.jsonl", "node.out", "diverged-*")


# --- servers ------------------------------------------------------------------------------------

def unprepared(kind):
    """A server without a profile, in the form of a server of the matrix."""
    class Other(m.Server):
        name, programs = kind.name, kind.programs

        def __init__(self, work, _port):
            self.it = kind(work)
            self.work, self.port, self.command = work, self.it.port, self.it.command
            self.options = getattr(self.it, "options", ())

        def ready(self):
            try:
                return self.it.client(0)[0]
            except (OSError, subprocess.SubprocessError):
                return False

        def load(self, requests):
            for _ in range(max(1, requests // LEAST)):
                wrong = _unprepared.serve(self.it, range(8))
                if wrong:
                    raise h.Failure("; ".join(wrong[:2]))
    return Other


def kinds(words):
    """The servers with one of the words in their names, in the order of the words; else all."""
    found = []
    for file in sorted(HERE.glob("server_*.py")):
        found += importlib.import_module(file.stem).KINDS
    for file in ("ecosystems", "accept_ecosystems", "accept_servers"):
        found += map(unprepared, importlib.import_module(file).KINDS)
    found += map(_computing.sliced, _computing.KINDS + _computing.CROWDED)
    if not words:
        return found
    chosen = []
    for word in words:
        chosen += [k for k in found if k not in chosen
                   and (k.name == word[1:] if word.startswith("=") else word in k.name)]
    return chosen


class Loader(threading.Thread):
    """Repeats the server's load until it must end."""

    def __init__(self, server, requests):
        super().__init__(daemon=True)
        self.server, self.requests = server, requests
        self.ending, self.problems = threading.Event(), []

    def run(self):
        while not self.ending.is_set() and not self.problems:
            try:
                self.server.load(self.requests)
            except (OSError, h.Failure, subprocess.SubprocessError) as problem:
                self.problems.append(f"{type(problem).__name__}: {problem}"[:500])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(300)


# --- one start ----------------------------------------------------------------------------------

class Watched(h.Group):
    """A group that keeps its logs and recordings if something is wrong with it."""

    def __init__(self, scenario, server, seed, kept):
        super().__init__(scenario, server.command, port=server.port, record=True,
                         options=[*server.options, "--perturb", str(seed), "--trace"])
        self.kept, self.told = kept, False

    def explain(self):
        if not self.told:
            self.told = True
            self.keep()
        super().explain()

    def keep(self):
        self.kept.mkdir(parents=True, exist_ok=True)
        (self.kept / "statuses.json").write_text(
            json.dumps(self.statuses(range(self.replicas)), indent=1))
        shutil.copy(self.log, self.kept)
        for place in [self.dir, *self.dir.glob("r[0-9]")]:
            for pattern in KEPT:
                for file in place.glob(pattern):
                    to = self.kept / file.relative_to(self.dir)
                    to.parent.mkdir(exist_ok=True)
                    copying = shutil.copytree if file.is_dir() else shutil.copy
                    with contextlib.suppress(OSError, shutil.Error):
                        copying(file, to)

    def clear(self):
        """Removes its recordings, or moves them to the kept files with crane-diff's output."""
        if self.told:
            for words in ((), ("--schedule",)):
                with contextlib.suppress(subprocess.SubprocessError):
                    (self.kept / f"diff{''.join(words)}.txt").write_text(self.diff(*words)[1])
            shutil.move(self.record, self.kept / "record")
        shutil.rmtree(self.record, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.log.unlink(missing_ok=True)


def judge(group, problems):
    """Raises h.Failure if the replicas differ."""
    if problems:
        raise h.Failure(f"clients: {problems[0]}")
    statuses = h.at_rest(group, PATIENCE)
    alarms = {n: s["verified"]["alarm"] for n, s in statuses.items() if s["verified"]["alarm"]}
    if alarms:
        raise h.Failure(f"live check: {alarms}")
    for what in ("schedule_hash", "clock", "outputs_digest"):
        if len({s[what] for s in statuses.values()}) != 1:
            raise h.Failure(f"{what} differs: {group.brief()}")


def lose(group, number, row):
    """Takes a checkpoint and kills a replica, which must recover from a checkpoint."""
    for _ in range(3):   # a checkpoint under way refuses the next one
        status, text = control(group, "checkpoint", "now", group.name)
        if status == 0:
            break
    else:
        raise h.Failure(f"crane-ctl checkpoint now: {status}: {text}")
    said = recover(group, number, PATIENCE)
    row["recoveries"] += 1
    row["restored"] += said["checkpoint"]["restored_at"] > 0


def run(group, server, losses, row, stack):
    """Loads and judges the started group; closing `stack` ends the hostile load."""
    requests = max(server.requests[0] // server.share, LEAST)
    h.wait_until(server.ready, PATIENCE, "it answers")
    row["ready_s"] = round(time.monotonic() - group.began, 1)
    load = Loader(server, requests)
    if losses:
        with load:
            for number in losses:
                lose(group, number, row)
    else:
        server.load(requests)
    stack.close()
    server.state()
    judge(group, load.problems)


def start(scenario, server, seed, hostile, losses):
    """Makes one start and returns its line of the journal."""
    row = {"server": server.name, "seed": seed, "beside": hostile.__name__, "recoveries": 0,
           "restored": 0, "why": ""}
    kept = scenario.journal.parent / "kept" / f"{server.name.replace(' ', '-')}-{seed}"
    began = time.monotonic()
    group = Watched(scenario, server, seed, kept)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(hostile(group.name))
            with group:
                run(group, server, losses, row, stack)
    except (h.Failure, OSError, subprocess.SubprocessError, ValueError) as problem:
        row["why"] = f"{type(problem).__name__}: {problem}"[:2000]
        group.explain()
    finally:
        group.clear()
    row["seconds"] = round(time.monotonic() - began, 1)
    return row


# --- all of them --------------------------------------------------------------------------------

class Hunt:
    """A server that starts in chunks; each chunk continues the seeds of the last one."""

    def __init__(self, scenario, kind):
        self.scenario, self.kind = scenario, kind
        self.server, self.starts, self.recoveries, self.differed = None, 0, 0, 0

    def prepare(self):
        h.need(*self.kind.programs)
        self.server = self.kind(m.place_of(self.scenario, self.kind), h.free_port())
        self.server.share = self.scenario.options.share

    def losses(self, seed):
        """The replicas that are lost in this start; by default, every fifth start loses some."""
        options = self.scenario.options
        if not options.every or self.starts % options.every:
            return []
        return [(seed + n) % 3 for n in range(options.losses)]

    def once(self):
        options = self.scenario.options
        seed = options.seed + self.starts
        loads = [LOADS[name] for name in options.beside] or _hostile.ALL
        hostile = loads[self.starts % len(loads)]
        row = start(self.scenario, copy.copy(self.server), seed, hostile, self.losses(seed))
        row["build"] = self.scenario.build
        with self.scenario.journal.open("a") as journal:
            journal.write(json.dumps(row) + "\n")
        self.starts += 1
        self.recoveries += row["recoveries"]
        self.differed += bool(row["why"])
        if row["why"]:
            self.scenario.say(f"{self.kind.name}, seed {seed}, {hostile.__name__}: {row['why']}")

    def tell(self):
        self.scenario.check(not self.differed, f"{self.kind.name}: {self.starts} starts and "
                            f"{self.recoveries} recoveries, {self.differed} differ")


def prepared(scenario):
    """The servers that this machine can run."""
    for kind in kinds(scenario.options.kinds):
        hunt = Hunt(scenario, kind)
        try:
            hunt.prepare()
            yield hunt
        except h.CannotRun as why:
            scenario.say(f"{kind.name} is left out: {why}")
        except h.Failure as why:
            scenario.check(False, f"{kind.name} is prepared", str(why))


def body(scenario):
    options = scenario.options
    if options.table:
        print(table(options.table))
        return
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    scenario.journal = pathlib.Path(options.journal or scenario.out / "perturbed" / "journal.jsonl")
    scenario.journal.parent.mkdir(parents=True, exist_ok=True)
    scenario.build = h.tail(scenario.out / "commit")
    end = time.monotonic() + 60 * options.minutes
    hunts, chunk = [], prepared(scenario)   # prepares each before its first chunk
    while chunk:
        for hunt in chunk:
            if hunt not in hunts:
                hunts.append(hunt)
            for _ in range(min(CHUNK, options.starts - hunt.starts)):
                if time.monotonic() < end:
                    hunt.once()
        chunk = [x for x in hunts if x.starts < options.starts and time.monotonic() < end]
    for hunt in hunts:
        hunt.tell()


# --- the table ----------------------------------------------------------------------------------

def told(rows, what):
    """Yields (name, starts, recoveries, differed, seconds) per value of a journal key, and for
    all."""
    for name in [*dict.fromkeys(r[what] for r in rows), None]:
        some = [r for r in rows if name in (None, r[what])]
        yield (name or "all", len(some), sum(r["recoveries"] for r in some),
               sum(bool(r["why"]) for r in some), sum(r["seconds"] for r in some) / len(some))


def table(paths):
    rows = [json.loads(line) for path in paths for line in pathlib.Path(path).open()]
    lines = []
    for what in ("server", "beside"):
        lines += [f"| {what} | starts | recoveries | differed | s for one |",
                  "| --- | ---: | ---: | ---: | ---: |"]
        lines += ["| {} | {} | {} | {} | {:.1f} |".format(*row) for row in told(rows, what)]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    h.run_scenario(
        "perturbed", body,
        kinds={"nargs": "*", "help": "only servers with one of these in the name, or =NAME"},
        beside={"nargs": "*", "default": [], "choices": list(LOADS),
                "help": "only these loads of _hostile.py"},
        starts={"type": int, "default": 50, "help": "starts of each server"},
        every={"type": int, "default": 5, "help": "every n-th start loses replicas; 0: none"},
        losses={"type": int, "default": 2, "help": "replicas that are lost in such a start"},
        share={"type": int, "default": 4, "help": "the matrix's quick load, divided by this"},
        minutes={"type": float, "default": 24 * 60, "help": "no start begins later"},
        seed={"type": int, "default": 1, "help": "the first seed"},
        journal={"default": "", "help": "a line for each start; differing groups are beside it"},
        table={"nargs": "*", "help": "only print the table of these journals"})
