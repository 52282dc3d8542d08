#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slices end at the same branches, however late a counter's interrupts come.
GOAL    With a simulated branch counter a program is interrupted at the same instructions in every
run, also in code generated at run time, and does not see the single steps.
METHOD  tests/interpose/branch_slices.c runs under crane-solo --slices US:counter: undisturbed, then
with seeds, each of which changes the delays of the interrupts and the pauses of the turns; once
more while all threads are repeatedly notified that they were restored.
CHECKS  Exit status; output, schedule hash and number of slices are the same in all runs. The
handler of interrupts has no conditional jump before its first call, which reads the counter, and
none after its last call (BRANCH-2: a real counter would count it).
"""
import argparse
import pathlib
import re
import subprocess
import sys

SLICE_US, SEEDS, SECONDS = 50, 20, 60


def run(out, options):
    """Returns (status, output, slices, schedule)"""
    command = [out / "crane-solo", "--hash", "--slices", f"{SLICE_US}:counter", *options, "--",
               out / "interpose" / "branch_slices"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS,
                          stdin=subprocess.DEVNULL)
    found = re.findall(r"^(?:slices \d+|schedule .*)", done.stderr, re.M)
    return (done.returncode, done.stdout, *found), done.stderr


def jumps_outside(library):
    """Conditional jumps of the interrupt handler before its first call and after its last call."""
    names = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    name = re.search(r"\S*branches\S*on_interrupt\S*", names)[0]
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", library],
                          capture_output=True, text=True, check=True).stdout
    code = re.findall(r"^ +[0-9a-f]+:\t(\S+)", text, re.M)
    calls = [at for at, what in enumerate(code) if what == "call"]
    return [what for what in code[:calls[0]] + code[calls[-1]:] if re.match("j(?!mp)", what)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out/release", type=pathlib.Path)
    parser.add_argument("--seeds", default=SEEDS, type=int)
    options = parser.parse_args()
    out = options.out.resolve()
    wanted, errors = run(out, [])
    print(*wanted)
    passed = failed = 0
    if jumps := jumps_outside(out / "libcrane.so"):
        print(f"FAIL the interrupt handler has jumps that are counted: {jumps}")
        failed += 1
    if wanted[0] != 0 or int(re.search(r"slices (\d+)", errors)[1]) < 20:
        print(f"FAIL undisturbed: {errors}")
        failed += 1
    for seed in range(1, options.seeds + 1):
        got, errors = run(out, ["--perturb", str(seed)])
        if got == wanted:
            passed += 1
            continue
        failed += 1
        print(f"FAIL seed {seed}: {got}\n{errors}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
