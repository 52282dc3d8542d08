#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format changes no C or C++ file.  Without clang-format 14 the check is skipped."""
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ["checkpoint", "consensus", "dmt", "eval", "hints", "proxy", "runtime",
           "tests"]
WANTED = "14."


def main():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = tool and subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    if not version or f"version {WANTED}" not in version:
        print("SKIPPED: lint/format: clang-format 14 is not installed")
        return 0
    files = [str(f) for folder in FOLDERS for f in sorted(pathlib.Path(folder).rglob("*"))
             if f.suffix in {".h", ".cc", ".c"}]
    # All files in one run: starting the tool takes longer than checking a file.
    done = subprocess.run([tool, "--style=file", "--dry-run", "-Werror", *files],
                          capture_output=True, text=True)
    found = sorted(set(re.findall(r"^(.+?):\d+:\d+: (?:error|warning): code should be", done.stderr,
                                  re.M)))
    if done.returncode and not found:
        found = [done.stderr.strip()]
    bad = [f"{file}: `make format` changes it" for file in found]
    print(*bad, sep="\n", end="\n" if bad else "")
    print("format:", "FAILED" if bad else f"ok ({len(files)} files)")
    return bool(bad)


sys.exit(main())
