#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows that earlier parts left, marks of a busy machine, exit statuses (eval/measure/session.py,
tables.py)."""
import argparse
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import _cases
import quiet
import session
import tables

QUIET = quiet.Report(True, (), {}).as_json()
BUSY_REPORT = quiet.Report(False, ("load average 5",), {})
BUSY = BUSY_REPORT.as_json()
ABOUT = {"commit": "abc"}


def row(*key, report=QUIET, **more):
    return {"key": list(key), "quiet": report, "commit": "abc", **more}


def options(**more):
    return argparse.Namespace(**{"anyway": False, "wait": 7, "keep": False, "out": "", **more})


class Rows(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.file = pathlib.Path(place.name) / "x.json"

    def test_new_repeats_take_the_place_of_all_earlier_ones_of_their_point(self):
        found = session.merged([row("a", 0, rate=1), row("a", 1, rate=9), row("b", 0, rate=2)],
                             [row("a", 0, rate=3), row("c", 0, rate=4), row("c", 1, rate=5)])
        self.assertEqual([(r["key"], r["rate"]) for r in found],
                         [(["b", 0], 2), (["a", 0], 3), (["c", 0], 4), (["c", 1], 5)])

    def test_a_part_keeps_earlier_rows_only_if_it_is_told_to(self):
        session.Rows(self.file, False, ABOUT).add(row("a", 0))
        for keep, wanted in ((True, ["a", "b"]), (False, ["b"])):
            part = session.Rows(self.file, keep, ABOUT)
            part.add(row("b", 0))
            self.assertEqual([r["key"][0] for r in part.rows], wanted)

    def test_every_row_is_in_the_file_at_once_with_its_commit(self):
        part = session.Rows(self.file, False, ABOUT)
        part.add({key: value for key, value in row("a").items() if key != "commit"})
        rows = json.loads(self.file.read_text())["rows"]
        self.assertEqual([(r["key"], r["commit"]) for r in rows], [(["a"], "abc")])


class Rounds(unittest.TestCase):
    def test_the_last_axis_goes_backwards_in_every_second_repeat(self):
        x = argparse.Namespace(options=argparse.Namespace(repeats=2))
        self.assertEqual(list(session.Session.rounds(x, "ab", "12")), [
            (0, "a", "1"), (0, "a", "2"), (0, "b", "1"), (0, "b", "2"),
            (1, "a", "2"), (1, "a", "1"), (1, "b", "2"), (1, "b", "1")])


class Comparison(unittest.TestCase):
    def test_rates_are_divided_by_the_base_of_the_same_repeat(self):
        rows = [{"load": "GET", "front": front, "repeat": n, "rate": rate, "p50_ms": 1}
                for front, rates in (("native", (100, 200)), ("n=1", (50, 80)))
                for n, rate in enumerate(rates)]
        self.assertEqual(tables.comparison(rows, "load", "front", "native").splitlines()[-1],
                         "| GET | n=1 | 65 (50 .. 80) | 0.45 (0.40 .. 0.50) | "
                         "1.00 (1.00 .. 1.00) | - |")


class Experiments(unittest.TestCase):
    def test_every_experiment_declares_what_the_driver_needs(self):
        for name in _cases.run.experiments():
            module = _cases.experiment(name)
            self.assertTrue(module.__doc__, name)
            self.assertTrue(hasattr(module, "measure") or hasattr(module, "scenario"), name)
            if hasattr(module, "measure"):
                self.assertTrue(hasattr(module, "text") or hasattr(module, "panes"), name)
                _cases.run.parse(module, name, [])

    def test_a_busy_machine_ends_an_experiment_that_needs_a_quiet_one(self):
        x = mock.Mock()
        x.look_at_machine.return_value = False
        module = mock.Mock(spec=["QUIET", "measure"], QUIET="required")
        self.assertEqual(_cases.run.conduct(module, x), 75)
        module.measure.assert_not_called()


class Tried(unittest.TestCase):
    def tried(self, *outcomes):
        make = mock.Mock(side_effect=outcomes)
        with mock.patch("builtins.print"):
            return session.tried(make, (OSError,), "x")

    def test_what_fails_once_is_made_once_more(self):
        self.assertEqual(self.tried(OSError("reset"), "row"), ("row", ""))

    def test_what_fails_twice_is_left_out_with_the_second_reason(self):
        self.assertEqual(self.tried(OSError("reset"), OSError("gone"), "row"), (None, "gone"))


class Busy(unittest.TestCase):
    def begin(self, report, wanted="required", **more):
        with mock.patch.object(quiet, "wait", return_value=report) as wait, \
                mock.patch("builtins.print"), tempfile.TemporaryDirectory() as out:
            x = session.Session("x", options(out=out, **more), pathlib.Path(out))
            return x.look_at_machine(wanted), x, wait

    def test_nothing_is_measured_on_a_busy_machine(self):
        may, _, wait = self.begin(quiet.Report(False, ("load average 5",), {}))
        self.assertFalse(may)
        wait.assert_called_once_with(7)

    def test_anyway_measures_and_does_not_wait(self):
        may, x, wait = self.begin(quiet.Report(False, ("load average 5",), {}), anyway=True)
        self.assertTrue(may)
        self.assertFalse(x.about["quiet"]["quiet"])
        wait.assert_called_once_with(0)

    def test_a_quiet_machine_is_measured(self):
        self.assertTrue(self.begin(quiet.Report(True, (), {}))[0])

    def test_what_only_waits_or_notes_measures_on_a_busy_machine(self):
        for wanted, seconds in (("awaited", 7), ("noted", 0)):
            may, x, wait = self.begin(BUSY_REPORT, wanted)
            self.assertEqual((may, x.start), (True, BUSY_REPORT))
            wait.assert_called_once_with(seconds)

    def test_rows_of_a_busy_machine_are_marked_and_named(self):
        rows = [row("a"), row("b", 2, report=BUSY)]
        self.assertEqual((tables.mark(rows[:1]), tables.mark(rows)), ("", " (!)"))
        self.assertEqual(tables.busy_text(rows[:1]), "")
        self.assertIn("* b, 2: load average 5", tables.busy_text(rows))

    def test_only_the_first_busy_rows_are_named(self):
        self.assertIn("* and 3 more",
                      tables.busy_text([row(n, report=BUSY) for n in range(8)], most=5))

    def test_the_exit_status_says_what_is_missing_and_what_was_busy(self):
        quiet_row, busy_row = [row("a")], [row("a", report=BUSY)]
        for rows, left_out, anyway, wanted in (
                (quiet_row, {}, False, 0), (busy_row, {}, False, 75), (busy_row, {}, True, 0),
                (quiet_row, {"b": "gone"}, True, 1), ([], {}, True, 1)):
            self.assertEqual(session.status_of(rows, left_out, anyway), wanted)


if __name__ == "__main__":
    _cases.tell()
