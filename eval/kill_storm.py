#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills at random (`make eval-storm`): nodes, servers, supervisors, crane-run, also two at a time.

Three replicas of redis under an INCR load.  After each kill all three must run again and follow one
another, whatever was killed; in the end no acknowledged write may be lost, the replicas must agree,
and no replica may have been given up.  The seed is printed; --seed repeats the choices.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from place import Place, machine  # noqa: E402
from recovers import all_back  # noqa: E402
from takeover_run import kill_crane_run, start_again  # noqa: E402

KINDS = ("node", "server", "supervisor", "crane-run")
BACK_SECONDS = 90


class Storm:
    def __init__(self, group, seed):
        self.group, self.random = group, random.Random(seed)

    def victims(self):
        """One or two: (kind, replica)."""
        count = 2 if self.random.random() < 0.35 else 1
        return [(self.random.choice(KINDS), self.random.randrange(3)) for _ in range(count)]

    def pids(self, kind, number):
        replica = self.group.replica(number)
        if kind == "supervisor":
            return [p for p in h.children(replica["node_pid"]) if h.name_of(p) == "crane-container"]
        return [replica[f"{kind}_pid"]]

    def strike(self):
        """What was killed, for people."""
        chosen = self.victims()
        pids = [pid for kind, number in chosen if kind != "crane-run"
                for pid in self.pids(kind, number) if (pid or 0) > 0]
        launcher = any(kind == "crane-run" for kind, _ in chosen)
        if launcher:
            kill_crane_run(self.group)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if launcher:
            start_again(self.group)
        return " and ".join(kind if kind == "crane-run" else f"{kind} of replica {number}"
                            for kind, number in chosen)


def storm(place, options):
    port = h.free_port()
    done = []
    with h.Group(place, h.redis_program(port), port=port,
                 options=["--checkpoint-every", str(options.checkpoint_every)]) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        with h.Load(port, clients=4, timeout=2.0) as load:
            kills, begin = Storm(group, options.seed), time.monotonic()
            for number in range(options.kills):
                at = time.monotonic()
                what = kills.strike()
                all_back(group, BACK_SECONDS)
                load.progress(5, BACK_SECONDS)
                group.remember(group.state())
                took = time.monotonic() - at
                done.append({"at_s": at - begin, "what": what, "whole_after_s": took})
                print(f"  {number + 1:3} {at - begin:6.1f} s: {what}; whole after {took:.1f} s",
                      flush=True)
                due = begin + (number + 1) * options.minutes * 60 / options.kills
                h.wait_until(lambda due=due: time.monotonic() >= due, options.minutes * 60 + 60, "")
            load.stop()
            problems = load.problems()
            answers = load.answers()
        group.settle(60)
    return {"seed": options.seed, "machine": machine(), "kills": done, "answers": answers,
            "problems": problems,
            "worst_s": max((k["whole_after_s"] for k in done), default=0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="out/release")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    h.end_at_sigterm()
    out = pathlib.Path(options.out).resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-storm-", dir="/var/tmp"))
    work.chmod(0o755)
    try:
        result = storm(Place(out, work, "storm"), options)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    (out / "storm").mkdir(exist_ok=True)
    (out / "storm" / "storm.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(result['kills'])} kills, {result['answers']} answers, whole after at most "
          f"{result['worst_s']:.1f} s, {len(result['problems'])} problems {result['problems'][:3]}")
    sys.exit(1 if result["problems"] else 0)


main()
