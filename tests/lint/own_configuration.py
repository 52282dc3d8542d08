#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The configuration of this machine influences no test.

An administrator enables features in certain folders of a server's configuration.  Only
tests/e2e/_installed.py names these folders, in order to leave them out.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = {"tests/e2e/_installed.py", "tests/lint/own_configuration.py"}
ENABLED = re.compile(r"\b(?:mods|conf|sites|modules)-enabled\b|/(?:conf|mariadb\.conf)\.d\b"
                     r"|/etc/mysql\b")


def main():
    bad, files = [], 0
    for folder in ("tests", "eval"):
        for path in sorted([*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.sh")]):
            rel = path.relative_to(ROOT).as_posix()
            if rel in ALLOWED:
                continue
            files += 1
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = ENABLED.search(line)
                if found:
                    bad.append(f"{rel}:{number}: {found[0]}: use that of _installed.py")
    print(*bad, sep="\n", end="\n" if bad else "")
    print("own_configuration:", f"FAILED ({len(bad)})" if bad else f"ok ({files} files)")
    return bool(bad)


sys.exit(main())
