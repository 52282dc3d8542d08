# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of eval: the path of eval, and a main program that ends with its totals."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "eval"))
import run  # noqa: E402  # it makes the folders of eval and tests/e2e known


def experiment(name):
    """The module of one of eval/experiments."""
    return run.load(name)


def tell():
    """Runs the cases of the calling program; each counts one."""
    ended = unittest.main(exit=False, verbosity=1).result
    failed = len({str(case) for case, _ in ended.failures + ended.errors})
    print(f"{ended.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not ended.testsRun else 0)
