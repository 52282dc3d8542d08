#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables and curves of latency, of runs of latency-load that were made up here; what is asked at
which rate (eval/experiments/latency.py)."""
import argparse
import json
import pathlib
import subprocess
import unittest
from unittest import mock

import _cases
import quiet

latency = _cases.experiment("latency")

QUIET = quiet.Report(True, (), {}).as_json()
OPTIONS = argparse.Namespace(connections=16, warm=2.0, seconds=10.0, peak_seconds=4.0, repeats=1,
                             only="")


def run(p50=100.0, held=True, late=0, due=10000, **more):
    return {"held": held, "late": late, "due": due, "answered_in_time": due - 5000 * (not held),
            "rate": 2500.0, "seconds": 10.0, "connections": 16,
            "latency": {"p50_us": p50, "p99_us": 2000.0, "p999_us": 3000.0, "max_us": 4000.0,
                        "bins": []}, **more}


def row(label="native", at_native=None, at_own=None, server="redis-server", **more):
    return {"key": [server, label, 0], "server": server, "configuration": label,
            "maximum": 5000.0, latency.AT_NATIVE: at_native or run(),
            latency.AT_OWN: at_own or run(), "quiet": QUIET, "commit": "abc", **more}


def line_of(text, start):
    return next(line for line in text.splitlines() if line.startswith(f"| {start}"))


class Cells(unittest.TestCase):
    def test_a_percentile_is_in_milliseconds(self):
        self.assertEqual(latency.cell([run(p50=123.4)], 0.5, "p50_us"), "0.123")

    def test_repeats_are_shown_as_median_and_spread(self):
        self.assertEqual(latency.cell([run(100.0), run(300.0), run(200.0)], 0.5, "p50_us"),
                         "0.200 (0.100 .. 0.300)")

    def test_a_rate_that_one_repeat_did_not_hold_has_no_latency(self):
        self.assertEqual(latency.cell([run(), run(held=False)], 0.5, "p50_us"), "-")

    def test_late_sends_mark_the_percentiles_that_they_may_have_made(self):
        late = [run(late=20)]   # 0.2 %
        marked = [latency.cell(late, above, field).startswith("≤")
                  for _, above, field in latency.PERCENTILES]
        self.assertEqual(marked, [False, False, True, True])

    def test_without_late_sends_the_maximum_is_not_marked(self):
        self.assertEqual(latency.cell([run()], 0.0, "max_us"), "4.000")


class Table(unittest.TestCase):
    def test_each_table_shows_its_own_rate(self):
        rows = [row(at_native=run(100.0), at_own=run(700.0))]
        for what, wanted in ((latency.AT_NATIVE, "0.100"), (latency.AT_OWN, "0.700")):
            cells = line_of(latency.table(rows, what), "redis-server, native").split(" | ")
            self.assertEqual(cells[1:4], ["5000", "2500", wanted])

    def test_a_rate_that_was_not_held_is_named_below(self):
        text = latency.table([row("n=3", at_native=run(held=False))], latency.AT_NATIVE)
        self.assertIn("* redis-server, n=3: the rate of 2500/s was not held: 5000 of 10000", text)
        self.assertIn("| - | - | - | - |", line_of(text, "redis-server, n=3"))

    def test_configurations_come_in_one_order(self):
        found = latency.group_rows([row("n=3"), row("native"), row("n=1")])
        self.assertEqual(list(found["redis-server"]), ["native", "n=1", "n=3"])

    def test_a_busy_row_is_marked(self):
        busy = quiet.Report(False, ("load average 5",), {}).as_json()
        text = latency.text([row(quiet=busy)], mock.Mock(left_out={"nginx, n=3": "gone"}))
        self.assertIn("| redis-server, native (!) |", text)
        self.assertIn("not measured: nginx, n=3: gone", text)


class Curve(unittest.TestCase):
    def test_bins_of_all_runs_are_put_together(self):
        def bins(*some):
            return run(latency={"bins": [list(one) for one in some]})
        points = latency.curve([bins((100.0, 90), (900.0, 5)), bins((200.0, 4), (900.0, 1))])
        self.assertEqual([ms for _, ms in points], [0.1, 0.2, 0.9])
        # None, 90 and 94 of 100 are below the bin.
        self.assertEqual([round(100 - 100 / x) for x, _ in points], [0, 90, 94])


class Rates(unittest.TestCase):
    """latency-load's options for a server whose maximum is 8000/s natively and 3000/s here."""

    def asked(self, label, native):
        rates, peaks = [], {"native": 8000.0, "n=1": 3000.0}

        def ask(_place, _server, _protocol, rate, _options, _seconds):
            rates.append(rate)
            return {"answered_rate": peaks[label], "rate": rate}
        kind = mock.Mock(programs=(), native_directories=(), native_users=())
        kind.name = "redis-server"
        with mock.patch.object(latency, "ask", ask), mock.patch.object(latency, "usage") as usage, \
                mock.patch.object(latency, "started"), \
                mock.patch.object(latency.shutil, "rmtree"), \
                mock.patch.object(latency, "prepared_server", return_value=("", mock.MagicMock())):
            usage.Watch.return_value.report.return_value = (1.0, quiet.Report(True, (), {}))
            found = latency.one_start(mock.MagicMock(), kind, label, native, OPTIONS)
        return rates, found

    def test_natively_both_rates_are_half_of_the_maximum(self):
        rates, found = self.asked("native", None)
        self.assertEqual(rates, [0, 4000.0])
        self.assertEqual(found[latency.AT_NATIVE], found[latency.AT_OWN])

    def test_a_replica_is_asked_at_half_of_both_maxima(self):
        rates, found = self.asked("n=1", 8000.0)
        self.assertEqual(rates, [0, 4000.0, 1500.0])
        self.assertEqual((found[latency.AT_NATIVE]["rate"], found[latency.AT_OWN]["rate"]),
                         (4000.0, 1500.0))

    def test_without_the_native_maximum_no_replica_is_measured(self):
        self.assertRaisesRegex(latency.h.Failure, "not known", self.asked, "n=1", None)

    def test_a_client_that_fails_is_a_failure(self):
        done = subprocess.CompletedProcess([], 1, "", "no answer")
        place = mock.Mock(out=pathlib.Path("/out"))
        with mock.patch.object(latency, "ahead", return_value=[]), \
                mock.patch.object(latency.subprocess, "run", return_value=done):
            self.assertRaisesRegex(latency.h.Failure, "no answer", latency.ask, place,
                                   mock.Mock(port=1), "redis", 5.0, OPTIONS, 10.0)

    def test_the_client_is_told_rate_window_and_warm_up(self):
        done = subprocess.CompletedProcess([], 0, json.dumps({"held": True}), "")
        place = mock.Mock(out=pathlib.Path("/out"))
        with mock.patch.object(latency, "ahead", return_value=["chrt"]), \
                mock.patch.object(latency.subprocess, "run", return_value=done) as called:
            latency.ask(place, mock.Mock(port=7), "redis", 2500.0, OPTIONS, 10.0)
        words = called.call_args.args[0]
        self.assertEqual(words[:2], ["chrt", "/out/latency-load"])
        given = dict(zip(words[2::2], words[3::2]))
        self.assertEqual((given["--rate"], given["--seconds"], given["--warm-seconds"]),
                         ("2500.0", "10.0", "2.0"))


if __name__ == "__main__":
    _cases.tell()
