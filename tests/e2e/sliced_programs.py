#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/interpose behave the same when time slices end everywhere in them.
GOAL    A program that takes a turn at the end of a slice, wherever it computes (in a handler, in a
child of fork or vfork, on another stack, before a longjmp, holding a robust mutex), gives the same
result as without slices.
METHOD  Each program of tests/interpose, traps/ and posix/ runs under crane-solo with slices of 50
us at the points that _points.py finds in it, with weights so high that slices end after a few calls
and turns of outer loops (--full: and after three passages of any point). It runs undisturbed and
perturbed. --kind steps: slices that end after 2000 instructions, each of which is single-stepped,
as a branch counter does near the end of a slice.
CHECKS  Exit status and output are those of .expect, or of a run without slices; output, schedule
hash and number of slices do not depend on the perturbation. SKIPPED and ANY_OUTPUT name the
programs for which one of these cannot hold, with the reason.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

import _points

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests"))
import steering  # noqa: E402  pylint: disable=wrong-import-position

SLICE_US, STEPS_US, SEED, SECONDS, AT_ONCE = 50, 5, 7, 120, 2
STUCK = 90  # seconds; crane-solo's limit without a turn
# Weights in picoseconds: of calls, of loops, of innermost loops.
WEIGHTS = {"usual": (20_000_000, 20_000_000, 50_000), "full": (20_000_000, 20_000_000, 20_000_000)}
SKIPPED = {
    "branch_slices": "it sets its own slices (branch_slices.py)",
    "restored": "the entry of each slice restores what the program removes",
    "stray_thread": "it computes until a thread outside of the schedule has written",
    "tsc_beside_strays": "it looks for jumps at its RDTSC, and there is none before a point's",
    "tsc_in_threads": "the same",
}
ANY_OUTPUT = {
    "file_numbers": "it prints virtual times, which the slices' entries advance",
    "host_values": "it prints virtual time and random numbers of a thread",
    "preinit": "it prints virtual time",
    "soft_barrier_points_off": "it prints the order of its threads, which slices change",
    "thread_memory_after_its_end": "it prints which addresses its threads got, one after another",
    "tsc_takes_turns": "it prints a number of turns",
    "virtual_random": "it prints virtual times and the order of its threads",
}
# They pass many bytes or rounds one by one: not run with slices of three passages.
TOO_LONG = {"cond_waiter_is_not_starved", "file_rules", "io_pipe", "io_sendfile",
            "pipe_holds_more_than_it_has_room_for", "pipe_small_writes_stay_whole",
            "tcp_between_processes"}


def run(command):
    """Returns (status or None, output, errors); all processes are gone afterwards."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT,
                                   stdin=subprocess.DEVNULL, text=True, errors="replace",
                                   start_new_session=True)
        try:
            text, status = process.communicate(timeout=SECONDS)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, status = process.communicate()[0], None
        errors.seek(0)
        return status, text, errors.read()


def programs(out, names):
    """Yields (source, program)"""
    for folder in (".", "traps", "posix"):
        for source in sorted((ROOT / "tests/interpose" / folder).glob("*.c*")):
            is_one = source.suffix in (".c", ".cc") and not source.name.startswith("crane_")
            if is_one and (not names or any(n in source.stem for n in names)):
                yield source, out / "interpose" / folder / source.stem


def wanted_of(source, solo, tail):
    """Returns (status, output or None) without slices"""
    expect = source.with_suffix(".expect")
    status = int(steering.words_of(source).get("exit", "0"))
    if source.stem in ANY_OUTPUT:
        return status, None
    return status, expect.read_text() if expect.exists() else run([*solo, "--", *tail])[1]


def examine(out, source, program, kind):
    """Returns (an error text or "", how many slices ended)"""
    say = steering.words_of(source)
    solo = [str(out / "crane-solo"), "--hash", *shlex.split(say.get("solo", ""))]
    tail = [str(program), *shlex.split(say.get("args", ""))]
    status, output = wanted_of(source, solo, tail)
    seen = []
    with tempfile.NamedTemporaryFile("w", prefix="points.") as points:
        how = f"{STEPS_US}:steps"
        if kind != "steps":
            _points.write_points(program, pathlib.Path(points.name), *WEIGHTS[kind])
            how = f"{SLICE_US}:{points.name}"
        for disturbance in ([], ["--perturb", str(SEED)]):
            command = [*solo, "--slices", how, *disturbance, "--", *tail]
            got = run(command)
            if kind == "steps" and got[0] in (None, STUCK):
                return "", 0  # too long for single steps
            slices = re.search(r"^slices (\d+)", got[2], re.M)
            schedule = re.search(r"^schedule .*$", got[2], re.M)
            seen.append((got[1], slices and int(slices[1]), schedule and schedule[0]))
            if got[0] != status or (output is not None and got[1] != output) or not slices:
                errors = "\n".join(line for line in got[2].splitlines() if "no tick point" not in
                                   line)
                return (f"{shlex.join(command)}: status {got[0]}, wanted {status}\n"
                        f"--- output\n{got[1]}--- wanted\n{output}--- errors\n{errors}\n", 0)
    if seen[0] != seen[1]:
        return f"differs when it is perturbed:\n{seen[0]}\n{seen[1]}\n", 0
    return "", seen[0][1]


def examine_library(out):
    """An error text, or "": a library that is loaded again is sliced again."""
    counts = []
    with tempfile.NamedTemporaryFile("w", prefix="points.") as points:
        _points.write_points(out / "interpose/crane_slices_library", pathlib.Path(points.name),
                             *WEIGHTS["usual"])
        for times in (1, 3):
            command = [str(out / "crane-solo"), "--slices", f"{SLICE_US}:{points.name}", "--",
                       str(out / "interpose/slices_of_library"), str(times)]
            status, text, errors = run(command)
            slices = re.search(r"^slices (\d+)", errors, re.M)
            if status != 0 or not slices or int(slices[1]) == 0:
                return f"{shlex.join(command)}: status {status}\n{text}{errors}"
            counts.append(int(slices[1]))
    if counts[1] < 2 * counts[0]:
        return f"{counts[0]} slices ended in one computation, {counts[1]} in three"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out/release", type=pathlib.Path)
    parser.add_argument("--full", action="store_true", help="slices of three passages too")
    parser.add_argument("--kind", choices=[*WEIGHTS, "steps"], help="this weighting alone")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    out = options.out.resolve()
    kinds = [options.kind] if options.kind else list(WEIGHTS) if options.full else ["usual"]
    jobs = [(source, program, kind) for kind in kinds
            for source, program in programs(out, options.names)
            if source.stem not in SKIPPED and "run" not in steering.words_of(source)
            and (kind == "usual" or source.stem not in TOO_LONG)]
    passed, failed, slices, without = 0, [], 0, []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = pool.map(lambda job: examine(out, *job), jobs)
        for (source, _, kind), (wrong, count) in zip(jobs, results):
            if wrong:
                failed.append(source.stem)
                print(f"FAIL {source.stem}, {kind}: {wrong}", flush=True)
            elif count == 0:
                without.append(source.stem)
            else:
                passed, slices = passed + 1, slices + count
    if not options.names or "slices_of_library" in options.names:
        wrong = examine_library(out)
        passed += not wrong
        if wrong:
            failed.append("slices_of_library")
            print(f"FAIL a library that is loaded again: {wrong}")
    print(f"{slices} slices ended; seed {SEED}")
    print(f"not counted, no slice ends in them: {' '.join(without) or 'none'}")
    for name, why in SKIPPED.items():
        print(f"left out: {name}: {why}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
