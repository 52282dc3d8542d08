#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Racy programs: one result in serial mode, whatever the perturbation; in parallel mode the results
differ, and comparing outputs and schedule hashes detects it.
Each program of tests/interpose/racy runs under crane-solo: in serial mode with a different seed of
perturbation each time (output and schedule hash must equal the first run's, byte for byte), then in
parallel mode. Quick: 3 runs each; --full: 1000 serial runs in total. Parallel mode's differences
are counted, because the suite proves nothing if most programs show none. Then again in serial mode
with time slices of 50 us forced on it, of thousands of ticks and of a few: one result whatever the
seed, and the turns at the ends of slices are part of it. Ends with `N passed, N failed`: a program
passes if its serial runs agree, and once more if its sliced runs do; all parallel runs together
count as one. A program in which no slice ends is named and not counted.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import _points

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FULL_RUNS = 1000
QUICK_SERIAL, QUICK_PARALLEL, FULL_PARALLEL = 3, 4, 20
QUICK_SLICED, FULL_SLICED = 2, 20
SLICE_US = 50
# Weights in picoseconds: of calls, of loops, of innermost loops; the last is for --full.
WEIGHTS = {"long": (10_000, 10_000, 10_000), "short": (20_000_000, 20_000_000, 0),
           "mixed": (20_000_000, 20_000_000, 100_000)}
PATIENCE = 16  # maximum of parallel runs until one differs


def run(out, program, mode, seed):
    """Returns (status, output, schedule, how many slices ended)"""
    command = [str(out / "crane-solo"), "--hash", *mode, "--perturb", str(seed), "--",
               str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    schedule = re.search(r"^schedule .*$", done.stderr, re.M)
    slices = re.search(r"^slices (\d+)", done.stderr, re.M)
    return (done.returncode, done.stdout, schedule[0] if schedule else done.stderr,
            int(slices[1]) if slices else 0)


def serial(out, program, runs, mode=()):
    """Returns (an error text, or None; how many slices ended in each run)"""
    first = None
    for seed in range(1, runs + 1):
        result = run(out, program, mode, seed)
        if result[0] != 0:
            return f"seed {seed}: exit status {result[0]}\n{result[1]}{result[2]}", 0
        first = first or result
        if result != first:
            return f"seed {seed} differs from seed 1, {mode}:\n{first}\n{result}", 0
    return None, first[3]


def sliced(out, program, full):
    """Returns (an error text, or None; how many slices ended in a run of each kind)"""
    counts = {}
    with tempfile.TemporaryDirectory() as directory:
        for kind, weights in WEIGHTS.items():
            if kind == "mixed" and not full:
                continue
            path = pathlib.Path(directory) / kind
            _points.write_points(program, path, *weights)
            wrong, counts[kind] = serial(out, program, FULL_SLICED if full else QUICK_SLICED,
                                         ["--slices", f"{SLICE_US}:{path}"])
            if wrong:
                return f"slices, {kind}: {wrong}\n{path.read_text()}", counts
    return None, counts


def parallel(out, program, runs):
    """Returns (number of further runs, number whose output differs from the first's, number of
    these with another schedule hash)"""
    def once(seed):
        result = run(out, program, ["--parallel"], seed)
        if result[0] != 0:   # the suite does not count crashes as differences
            raise SystemExit(f"{program.name}, parallel, seed {seed}: exit status {result[0]}\n"
                             f"{result[1]}{result[2]}\n0 passed, 1 failed")
        return result
    first, others, different = once(1), 0, []
    while others < runs - 1 or (not different and others < PATIENCE):
        others += 1
        result = once(others + 1)
        different += [result] if result[1] != first[1] else []
    return others, len(different), sum(r[2] != first[2] for r in different)


def prove_unsliced(out, programs, options):
    """Returns (passed, failed)"""
    runs = -(-FULL_RUNS // len(programs)) if options.full else QUICK_SERIAL
    passed = failed = differ = others = differences = by_schedule = 0
    for program in programs:
        wrong, _ = serial(out, program, runs)
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
        print("most programs show no difference in parallel mode: the suite proves nothing")
    passed, failed = passed + teeth, failed + (not teeth and not options.names)
    return passed, failed


def prove_sliced(out, programs, full):
    """Whether each program's runs with slices agree; a program without a slice is not counted."""
    for program in programs:
        wrong, counts = sliced(out, program, full)
        ended = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"{program.name}: {'DIFFERS in' if wrong else 'equal in'} slices: {ended}",
              flush=True)
        if wrong:
            print(wrong)
        elif not all(counts.values()):
            print(f"{program.name}: not counted, no slice ends in it")
            continue
        yield not wrong


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
    passed, failed = prove_unsliced(out, programs, options)
    for good in prove_sliced(out, programs, options.full):
        passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
