#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source text that scenarios remove for broken builds exists (tests/e2e/_broken.py)."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import _broken  # noqa: E402
import _harness as h  # noqa: E402


def main():
    try:
        _broken.check_rules()
    except h.Failure as moved:
        print(moved)
        print("broken_builds: FAILED")
        return True
    print(f"broken_builds: ok ({len(_broken.RULES)} rules)")
    return False


sys.exit(main())
