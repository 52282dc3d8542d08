#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Racy programs: one result in serial mode, whatever the perturbation; in parallel mode they
differ, and comparing outputs and schedule hashes notices it.

Each program of tests/interpose/racy runs under crane-solo: in serial mode with a different seed of
perturbation each time (output and schedule hash must be the first run's, byte for byte), then in
parallel mode.  Quick: 3 runs each; --full: 1000 serial runs in total.  Parallel mode's differences
are counted: the suite is worth nothing when most programs show none.  Ends with `N passed,
N failed`: a program passes when its serial runs agree, and the parallel runs of all count one.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FULL_RUNS = 1000
QUICK_SERIAL, QUICK_PARALLEL, FULL_PARALLEL = 3, 4, 20
PATIENCE = 16  # parallel runs at most until one differs


def run(out, program, mode, seed):
    """(status, output, schedule)"""
    command = [str(out / "crane-solo"), "--hash", *mode, "--perturb", str(seed), "--",
               str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    schedule = re.search(r"^schedule .*$", done.stderr, re.M)
    return done.returncode, done.stdout, schedule[0] if schedule else done.stderr


def serial(out, program, runs):
    """What is wrong, or None."""
    first = None
    for seed in range(1, runs + 1):
        result = run(out, program, [], seed)
        if result[0] != 0:
            return f"seed {seed}: exit status {result[0]}\n{result[1]}{result[2]}"
        first = first or result
        if result != first:
            return f"seed {seed} differs from seed 1:\n{first}\n{result}"
    return None


def parallel(out, program, runs):
    """(further runs, those whose output differs from the first's, of these with another schedule
    hash)"""
    def once(seed):
        result = run(out, program, ["--parallel"], seed)
        if result[0] != 0:   # a crash is no difference that the suite is after
            raise SystemExit(f"{program.name}, parallel, seed {seed}: exit status {result[0]}\n"
                             f"{result[1]}{result[2]}\n0 passed, 1 failed")
        return result
    first, others, different = once(1), 0, []
    while others < runs - 1 or (not different and others < PATIENCE):
        others += 1
        result = once(others + 1)
        different += [result] if result[1] != first[1] else []
    return others, len(different), sum(r[2] != first[2] for r in different)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out/release", type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    out = options.out.resolve()
    programs = [out / "interpose/racy" / p.stem
                for p in sorted((ROOT / "tests/interpose/racy").glob("*.c"))
                if not options.names or any(n in p.stem for n in options.names)]
    runs = -(-FULL_RUNS // len(programs)) if options.full else QUICK_SERIAL
    passed = failed = differ = others = differences = by_schedule = 0
    for program in programs:
        wrong = serial(out, program, runs)
        further, count, schedules = parallel(
            out, program, FULL_PARALLEL if options.full else QUICK_PARALLEL)
        differ += count > 0
        others += further
        differences += count
        by_schedule += schedules
        print(f"{program.name}: serial {runs} runs {'DIFFER' if wrong else 'equal'}, "
              f"parallel {count} of {further} differ from the first "
              f"({schedules} in the schedule too)", flush=True)
        if wrong:
            print(wrong)
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"serial: {runs * len(programs)} perturbed runs of {len(programs)} programs, "
          f"{failed} programs diverged; parallel: {differ} programs diverged in {differences} of "
          f"{others} runs by their output, {by_schedule} of these by the schedule hash too")
    teeth = 2 * differ > len(programs)
    if not teeth and not options.names:
        print("most programs show no difference in parallel mode: the suite has no teeth")
    passed, failed = passed + teeth, failed + (not teeth and not options.names)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
