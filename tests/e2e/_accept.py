#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every scenario in its full size (`make accept`, almost an hour)."""
import argparse
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=str(HERE.parent.parent / "out/release"))
    parser.add_argument("names", nargs="*", help="only scenarios with one of these in their name")
    options = parser.parse_args()
    passed = failed = 0
    for scenario in sorted(HERE.glob("[a-z]*.py")):
        if options.names and not any(n in scenario.stem for n in options.names):
            continue
        print(f"=== {scenario.stem}", flush=True)
        begin = time.monotonic()
        done = subprocess.Popen([sys.executable, str(scenario), "--out", options.out, "--full"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace")
        last = ""
        for line in done.stdout:
            print("  " + line, end="", flush=True)
            last = line if line.strip() else last
        totals = re.match(r"(\d+) passed, (\d+) failed", last)
        status = done.wait()
        passed += int(totals[1]) if totals else 0
        failed += max(int(totals[2]) if totals else 0, int(status not in (0, 77)))
        print(f"=== {scenario.stem}: {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
