#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C and C++ file is as clang-format leaves it. Without clang-format the check is skipped."""
import pathlib
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
    bad = []
    for file in files:
        text = pathlib.Path(file).read_text()
        formatted = subprocess.run([tool, "--style=file", file], capture_output=True, text=True)
        if formatted.stdout != text:
            bad.append(f"{file}: `make format` changes it")
    print(*bad, sep="\n", end="\n" if bad else "")
    print("format:", "FAILED" if bad else f"ok ({len(files)} files)")
    return bool(bad)


sys.exit(main())
