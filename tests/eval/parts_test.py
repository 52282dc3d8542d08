#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows that earlier parts left, marks of a busy machine, exit statuses (eval/parts.py)."""
import argparse
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import _cases
import parts
import quiet

QUIET = quiet.Report(True, (), {}).as_json()
BUSY = quiet.Report(False, ("load average 5",), {}).as_json()
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
        found = parts.merged([row("a", 0, rate=1), row("a", 1, rate=9), row("b", 0, rate=2)],
                             [row("a", 0, rate=3), row("c", 0, rate=4), row("c", 1, rate=5)])
        self.assertEqual([(r["key"], r["rate"]) for r in found],
                         [(["b", 0], 2), (["a", 0], 3), (["c", 0], 4), (["c", 1], 5)])

    def test_a_part_keeps_earlier_rows_only_if_it_is_told_to(self):
        parts.Part(self.file, False, ABOUT).add(row("a", 0))
        for keep, wanted in ((True, ["a", "b"]), (False, ["b"])):
            part = parts.Part(self.file, keep, ABOUT)
            part.add(row("b", 0))
            self.assertEqual([r["key"][0] for r in part.rows], wanted)

    def test_every_row_is_in_the_file_at_once_with_its_commit(self):
        part = parts.Part(self.file, False, ABOUT)
        part.add({key: value for key, value in row("a").items() if key != "commit"})
        rows = json.loads(self.file.read_text())["rows"]
        self.assertEqual([(r["key"], r["commit"]) for r in rows], [(["a"], "abc")])


class Tried(unittest.TestCase):
    def tried(self, *outcomes):
        make = mock.Mock(side_effect=outcomes)
        with mock.patch("builtins.print"):
            return parts.tried(make, (OSError,), "x")

    def test_what_fails_once_is_made_once_more(self):
        self.assertEqual(self.tried(OSError("reset"), "row"), ("row", ""))

    def test_what_fails_twice_is_left_out_with_the_second_reason(self):
        self.assertEqual(self.tried(OSError("reset"), OSError("gone"), "row"), (None, "gone"))


class Busy(unittest.TestCase):
    def begin(self, report, **more):
        with mock.patch.object(quiet, "wait", return_value=report) as wait, \
                mock.patch("builtins.print"), tempfile.TemporaryDirectory() as out:
            return parts.begin(options(out=out, **more), "x"), wait

    def test_nothing_is_measured_on_a_busy_machine(self):
        part, wait = self.begin(quiet.Report(False, ("load average 5",), {}))
        self.assertIsNone(part)
        wait.assert_called_once_with(7)

    def test_anyway_measures_and_does_not_wait(self):
        part, wait = self.begin(quiet.Report(False, ("load average 5",), {}), anyway=True)
        self.assertFalse(part.about["quiet"]["quiet"])
        wait.assert_called_once_with(0)

    def test_a_quiet_machine_is_measured(self):
        self.assertIsNotNone(self.begin(quiet.Report(True, (), {}))[0])

    def test_rows_of_a_busy_machine_are_marked_and_named(self):
        rows = [row("a"), row("b", 2, report=BUSY)]
        self.assertEqual((parts.mark(rows[:1]), parts.mark(rows)), ("", " (!)"))
        self.assertEqual(parts.busy_text(rows[:1]), "")
        self.assertIn("* b, 2: load average 5", parts.busy_text(rows))

    def test_only_the_first_busy_rows_are_named(self):
        self.assertIn("* and 3 more",
                      parts.busy_text([row(n, report=BUSY) for n in range(8)], most=5))

    def test_the_exit_status_says_what_is_missing_and_what_was_busy(self):
        quiet_row, busy_row = [row("a")], [row("a", report=BUSY)]
        for rows, left_out, anyway, wanted in (
                (quiet_row, {}, False, 0), (busy_row, {}, False, 75), (busy_row, {}, True, 0),
                (quiet_row, {"b": "gone"}, True, 1), ([], {}, True, 1)):
            self.assertEqual(parts.status_of(rows, left_out, options(anyway=anyway)), wanted)


if __name__ == "__main__":
    _cases.tell()
