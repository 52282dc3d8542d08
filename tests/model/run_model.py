#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks takeover.pml and connections.pml with spin: each holds, and each mutant is caught.

Prints the result of each search and ends with `N passed, N failed`.  Exit: 0 all as expected, 1
not, 77 if spin or a C compiler is not installed.  A failed check prints how to see its trail.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TAKEOVER, CONNECTIONS = HERE / "takeover.pml", HERE / "connections.pml"
MEGABYTES = 800  # per search
SECONDS = 240  # per search
# Complete searches of takeover.pml: views and slots.  The second one stores hashes instead of its
# 11 million states.
PROTOCOL = [((3, 3), []), ((4, 2), ["-DHC4"])]
# For connections.pml: views and bytes.
LIVES_ON = (3, 3)
RULES = ["NO_KILL", "ANY_VIEW", "CONSUME_EARLY", "DROP_AT_ONCE", "TAKEN_ONE_OFF", "PUT_ONE_OFF"]
# Must be violated: the removed rule, and the (views, slots) needed to detect that.  WITNESS removes
# no rule: it shows that the last view commits after an entry of the first view.
MUTANTS = [
    ("WITNESS", (4, 2)),
    ("SKIP_FENCE", (3, 2)),
    ("SCAN_BEFORE_FENCE", (3, 2)),
    ("REUSE_KEY", (3, 2)),
    ("FORGET_PROMISE", (3, 2)),
    ("KEEP_OWN_LOG", (3, 2)),
    ("ADOPT_LONGEST", (3, 2)),
    ("RESTAMP", (3, 3)),
    ("REWRITE", (3, 2)),
    ("SKIP_CRC", (3, 2)),
    ("COUNT_MINORITY", (3, 2)),
    ("COUNT_GAP", (3, 2)),
    ("COUNT_OLD_VIEWS", (4, 2)),
]


def search(model, defines, flags, folder):
    """Runs one search. Returns (violated, whole, states, text)."""
    subprocess.run(["spin", "-a", *defines, str(model)], cwd=folder, check=True, timeout=SECONDS,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    subprocess.run(["cc", "-O2", "-w", "-DSAFETY", f"-DMEMLIM={MEGABYTES}", *flags, "-o", "pan",
                    "pan.c"], cwd=folder, check=True, timeout=SECONDS,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text = subprocess.run(["./pan", "-E", "-m10000", "-w24"], cwd=folder, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode() + "\ntimed out"
    states = re.search(r"(\d+) states, stored", text)
    errors = re.search(r"errors: (\d+)", text)
    violated = "assertion violated" in text
    whole = bool(errors and errors[1] == "0") and not re.search(
        r"not completed|too small|timed out|out of memory|memory limit", text)
    return violated, whole, int(states[1]) if states else 0, text


def check(name, size, flags, mutant, model=TAKEOVER):
    what = "SLOTS" if model == TAKEOVER else "BYTES"
    defines = [f"-DVIEWS={size[0]}", f"-D{what}={size[1]}"] + ([f"-D{name}"] if mutant else [])
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crane-model-") as folder:
        try:
            violated, whole, states, text = search(model, defines, flags, folder)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            violated, whole, states, text = False, False, 0, f"{e}\n{(e.stdout or b'').decode()}"
    good = violated if mutant else whole and not violated
    found = "violated" if violated else "holds" if whole else "not complete"
    print(f"  {name:<18} {size[0]} views, {size[1]} {what.lower()}: {found:<9} {states:>9} states "
          f"({time.monotonic() - begin:.1f} s)", flush=True)
    if not good:
        print(text[-3000:])
        print(f"FAILED {name}; its trail: spin -a {' '.join(defines)} {model.name} && cc -DSAFETY "
              f"-o pan pan.c && ./pan -E -m10000; spin -t -p -g {' '.join(defines)} {model.name}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these mutants, `protocol` or `connections`")
    names = parser.parse_args().names
    for tool, package in (("spin", "spin"), ("cc", "a C compiler")):
        if not shutil.which(tool):
            print(f"SKIPPED: model: {package} is not installed")
            return 77
    results = [check("protocol", size, flags, False) for size, flags in PROTOCOL
               if not names or "protocol" in names]
    results += [check(name, size, [], True) for name, size in MUTANTS
                if not names or name in names]
    if not names or "connections" in names:
        results.append(check("connections", LIVES_ON, [], False, CONNECTIONS))
    results += [check(name, LIVES_ON, [], True, CONNECTIONS) for name in RULES
                if not names or name in names]
    failed = results.count(False)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
