#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcrane.so accesses the segment only with the turn (DMT-L1, dmt/base/thread_safety.h).

clang's thread-safety analysis checks this: `world` is guarded by the turn, a Turn holds it, and
code that reads without it calls `without_turn()`.  Without clang 14 the check is skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

CHECKS = ["-std=c++20", "-fsyntax-only", "-I.", "-D_GNU_SOURCE", "-Wno-everything",
          "-Werror=thread-safety"]
AT_ONCE = 8  # files per run of the compiler


def check(files):
    done = subprocess.run(["clang++-14", *CHECKS, *files], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode != 0 else ""


def main():
    if shutil.which("clang++-14") is None:
        print("SKIPPED: lint/thread_safety: clang++-14 is not installed")
        return 0
    files = sorted(map(str, pathlib.Path("runtime/preload").rglob("*.cc")))
    parts = [files[i:i + AT_ONCE] for i in range(0, len(files), AT_ONCE)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = "".join(pool.map(check, parts))
    print(wrong, end="")
    print(f"thread_safety: {'FAILED' if wrong else 'ok'} ({len(files)} files)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
