#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the special builds of scenarios.

The source text that they remove exists (tests/e2e/_broken.py), and the build with the next version
of the schedule compiles every file that reads the table of versions
(runtime/packaging/cmake/NextSchedule.cmake).
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import _broken  # noqa: E402
import _harness as h  # noqa: E402


NEXT = ROOT / "runtime/packaging/cmake/NextSchedule.cmake"
TABLE = re.compile(r"\bkAgreedVersions\b")


def next_schedule():
    """The files that are in one of the list and the source, and not in the other."""
    listed = set(re.findall(r"\b[\w/]+\.cc\b", NEXT.read_text()))
    looks = {file.relative_to(ROOT).as_posix() for folder in ("runtime", "proxy/node", "proxy/host")
             for file in (ROOT / folder).rglob("*.cc") if TABLE.search(file.read_text())}
    return sorted(listed ^ looks)


def main():
    wrong = [f"{file}: {NEXT.name} and the uses of kAgreedVersions differ"
             for file in next_schedule()]
    try:
        _broken.check_rules()
    except h.Failure as moved:
        wrong.append(str(moved))
    if wrong:
        print(*wrong, "broken_builds: FAILED", sep="\n")
        return True
    print(f"broken_builds: ok ({len(_broken.RULES)} rules)")
    return False


sys.exit(main())
