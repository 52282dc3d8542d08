#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Racy programs as servers of a group of three: whenever parallel mode's replicas differ, the live
check catches it; when they do not, there is no alarm.

A small server (racy_server.c) runs the programs of tests/interpose/racy, one per request, and
answers with their output. Each round uses a new group: first a deterministic program, then a racy
one (in serial mode: all), then the deterministic one again, after which a verdict must come.
Afterwards crane-diff, without the live check, compares what the replicas did by their recordings. A
round whose replicas answered differently without an alarm is missed; an alarm without any
difference of outputs or schedules is false; so is one that names the wrong replica.

Quick: a round for each program, and one in serial mode; --full: 20 of each.
"""
import json
import random
import re
import shutil
import socket
import subprocess

import _harness as h

DIVERGED = 79     # a node's exit status
SAME = "locked_order"
VERDICT_SECONDS = 15
QUICK_ROUNDS, FULL_ROUNDS = 1, 20   # of each program
COUNTS = ("rounds", "differed", "caught", "fenced", "without a majority", "missed",
          "other schedules", "equal", "no verdict", "false alarms", "wrong names", "turns named",
          "wrong turns")


def racy_programs():
    return sorted(p.stem for p in (h.ROOT / "tests/interpose/racy").glob("*.c"))


def place_programs(scenario):
    """Copies the programs to where every container sees them."""
    home = scenario.work / "programs"
    home.mkdir()
    for name in racy_programs():
        shutil.copy(scenario.out / "interpose/racy" / name, home)
    for name in (SAME, "racy_server"):
        shutil.copy(scenario.out / "e2e" / name, home)
    return home


def ask(port, what):
    """The answer, or None if the leader left because of it."""
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as s:
            s.sendall(what.encode() + b"\n")
            answer = b""
            while part := s.recv(4096):
                answer += part
            return answer.decode() if answer.endswith(b"\n") else None
    except OSError:
        return None


class Round:
    """One group, and its outcome."""

    def __init__(self, scenario, home, mode, seed, programs):
        self.scenario, self.mode, self.seed, self.programs = scenario, mode, seed, programs
        self.port = h.free_port()
        self.asked, self.alarms, self.turns, self.fenced, self.silent = [], [], [], None, False
        self.group = h.Group(scenario, [str(home / "racy_server"), str(self.port), str(home)],
                             port=self.port, record=True,
                             options=["--mode", mode, "--perturb", str(seed)])

    def run(self):
        with self.group as group:
            self.ask(SAME)
            for name in self.programs:
                if group.alarm():
                    break
                self.ask(name)
            if not group.alarm():
                before = max(s["last"] for s in group.statuses().values() if s)
                self.ask(SAME)
                try:
                    h.wait_until(lambda: group.alarm() or group.verified(before), VERDICT_SECONDS,
                                 "")
                except h.Failure:
                    self.silent = True
            self.read_logs()
            group.stop()
        self.judge()

    def ask(self, name):
        answer = ask(self.port, name)
        self.asked.append(name)
        if answer is not None and f"{name}: status 0\n" not in answer:
            raise h.Failure(f"seed {self.seed}, {self.mode}: {name} answers {answer!r}")
        if answer is None:   # there must be a reason
            h.wait_until(self.group.alarm, 20,
                         f"seed {self.seed}: a reason why {name} got no answer")

    def read_logs(self):
        """Which replica the live check named, which left, and which turn was reported as the
        first."""
        logs = {n: h.tail(self.group.dir / f"r{n}" / "node.log", 400)
                for n in range(self.group.replicas)}
        everything = "\n".join(logs.values())
        alarm = re.compile(r"(replica \d+ diverged from the majority(?: in its \w+ \(.*?\))?|"
                           r"the replicas differ, none has a majority) between")
        self.alarms = sorted(set(alarm.findall(everything)))
        named = re.search(r"replica (\d+) diverged", everything)
        if named:
            number = int(named[1])
            h.wait_until(lambda: number not in self.group.live(), 20, f"replica {number} leaves")
            log = h.tail(self.group.dir / f"r{number}" / "node.log")
            if f"leaves with status {DIVERGED}" not in log:
                raise h.Failure(f"replica {number} left with another status than {DIVERGED}: {log}")
            self.fenced = number
        elif len(self.group.live()) < self.group.replicas:
            raise h.Failure(f"seed {self.seed}: a replica left without being named:\n{everything}")
        for number, log in logs.items():
            self.compare_turns(number, log)

    def compare_turns(self, number, log):
        """Whether the first turn that a replica reports is the one crane-diff finds in both kept
        files."""
        turn = re.search(r"between log index \d+ and (\d+).* first different turn: (\d+), .* here, "
                         r".* on replica (\d)", log)
        if not turn:
            return
        kept = [self.group.dir / f"r{n}" / f"diverged-{turn[1]}" / f"replica-{n}.schedule"
                for n in (number, int(turn[3]))]
        h.wait_until(lambda: all(k.exists() for k in kept), 10, f"both have kept turns: {kept}")
        done = subprocess.run([str(self.scenario.out / "crane-diff"), "--schedule", "-o", "json",
                               *map(str, kept)], stdout=subprocess.PIPE, text=True, timeout=60)
        found = json.loads(done.stdout)["turn"]
        self.turns.append((int(turn[2]), found and found["number"]))

    def judge(self):
        """Judges by each replica's output and schedule in its recording."""
        self.outputs = self.differ([])
        self.schedules = self.differ(["--schedule"])

    def differ(self, options, recordings=None):
        status, text = self.group.diff("--prefix", *options, recordings=recordings)
        if status not in (0, 1):
            raise h.Failure(f"crane-diff {options}: exit {status}: {text}")
        return status == 1

    def wrong_name(self):
        """Whether the fenced replica was equal to the rest."""
        others = [n for n in range(self.group.replicas) if n != self.fenced]
        return self.fenced is not None and not all(
            self.differ([], [n, self.fenced]) or self.differ(["--schedule"], [n, self.fenced])
            for n in others)

    def count(self, counts):
        alarm = bool(self.alarms)
        missed = self.outputs and not alarm
        false = alarm and not self.outputs and not self.schedules
        counts["rounds"] += 1
        counts["differed"] += self.outputs
        counts["caught"] += self.outputs and alarm
        counts["missed"] += missed
        counts["other schedules"] += alarm and self.schedules and not self.outputs
        counts["false alarms"] += false
        counts["equal"] += not alarm and not self.outputs
        counts["fenced"] += self.fenced is not None
        counts["without a majority"] += alarm and self.fenced is None
        counts["wrong names"] += self.wrong_name()
        counts["no verdict"] += self.silent
        counts["turns named"] += bool(self.turns)
        counts["wrong turns"] += any(told != found for told, found in self.turns)
        said = "; ".join(self.alarms) or "no alarm"
        turn = f", first different turn {self.turns[0][0]}" if self.turns else ""
        what = self.programs[0] if len(self.programs) == 1 else f"{len(self.programs)} programs"
        self.scenario.say(f"{self.mode}, seed {self.seed}, {what}: {said}{turn}; outputs "
                          f"{'differ' if self.outputs else 'equal'}, schedules "
                          f"{'differ' if self.schedules else 'equal'}"
                          + (" MISSED" if missed else "") + (" FALSE ALARM" if false else ""))


def body(scenario):
    home = place_programs(scenario)
    names = racy_programs()
    if not h.can_contain():
        names.remove("toctou_file")   # all replicas would use one directory
    seed = scenario.options.seed
    rng = random.Random(seed)
    rng.shuffle(names)
    scenario.say(f"{len(names)} racy programs, seed {seed}")
    counts = dict.fromkeys(COUNTS, 0)
    rounds = FULL_ROUNDS if scenario.full else QUICK_ROUNDS
    for n, name in enumerate(names * rounds):
        one = Round(scenario, home, "parallel", seed + n, [name])
        one.run()
        one.count(counts)
    serial = dict.fromkeys(COUNTS, 0)
    for n in range(rounds):
        one = Round(scenario, home, "serial", seed + n, names)
        one.run()
        one.count(serial)
    for mode, found in (("parallel", counts), ("serial", serial)):
        scenario.say(f"{mode}: " + ", ".join(f"{found[k]} {k}" for k in COUNTS))
    scenario.check(counts["differed"] > 0, "parallel mode: replicas differ")
    scenario.check(counts["missed"] == 0, "every difference of outputs is caught", repr(counts))
    scenario.check(counts["no verdict"] + serial["no verdict"] == 0, "each round has its verdict")
    scenario.check(counts["false alarms"] + counts["wrong names"] == 0,
                   "no alarm without a difference, and the name is right", repr(counts))
    scenario.check(counts["wrong turns"] == 0,
                   "the first turn reported is the one that crane-diff finds",
                   repr(counts))
    scenario.check(serial["equal"] == serial["rounds"],
                   f"serial mode: {serial['rounds']} rounds of all programs, all equal, no alarm",
                   repr(serial))


h.run_scenario("racy_live", body, seed={"type": int, "default": 20260201})
