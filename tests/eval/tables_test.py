#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Medians, spreads and the text of the server table, of runs that were made up here; when
eval/experiments/servers.py writes it (eval/measure/server_table.py, start.py)."""
import argparse
import contextlib
import importlib
import inspect
import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import _cases
import quiet
import server_table as tables
import session
import start

servers = _cases.experiment("servers")

QUIET = quiet.Report(True, (), {})
BUSY = quiet.Report(False, ("load average 5",), {})


def run(label, repeat, rates, report=QUIET, cpu=10.0):
    return {"server": "s", "configuration": label, "repeat": repeat, "cpu_us_per_request": cpu,
            "results": [{"what": what, "rate": rate} for what, rate in rates.items()],
            "entries": {"total": 200, "bubble": 5}, "quiet": report.as_json()}


def all_runs(natives, ours, **more):
    """Returns runs of one kind of request, with the same rates for one and three replicas."""
    return [run(label, n, {"GET": rate}, **more)
            for label, rates in (("native", natives), ("n=1", ours), ("n=3", ours))
            for n, rate in enumerate(rates)]


def row(measured, **more):
    return {"name": "redis", "version": "7", "limits": "", "runs": measured, "problems": [],
            "proof": {"equal": 3, "of": 3, "bytes": 77, "failures": []}, **more}


class Spread(unittest.TestCase):
    def test_it_is_of_the_median(self):
        self.assertAlmostEqual(tables.relative_spread([90, 100, 130, 95, 105]), 0.4)

    def test_one_value_and_none_have_no_spread(self):
        self.assertEqual((tables.relative_spread([5]), tables.relative_spread([])), (0, 0))

    def test_a_ratio_is_of_the_two_runs_of_one_repeat(self):
        slow_minute = all_runs([100, 50, 100], [80, 40, 80])
        self.assertEqual(tables.ratios(slow_minute, "n=1", "GET"), [0.8, 0.8, 0.8])

    def test_a_repeat_that_lacks_one_of_both_has_no_ratio(self):
        lacking = [r for r in all_runs([100, 50, 100], [80, 30, 80])
                   if (r["configuration"], r["repeat"]) != ("n=1", 1)]
        self.assertEqual(tables.ratios(lacking, "n=1", "GET"), [0.8, 0.8])

    def test_overhead_is_the_median_over_repeats_of_the_mean_over_requests(self):
        both = [run(label, n, {"GET": get, "SET": put}) for n, ours in enumerate((50, 25, 20))
                for label, get, put in (("native", 100, 100), ("n=1", ours, 100))]
        self.assertEqual([round(o) for o in tables.overheads(both, "n=1")], [50, 150, 200])
        self.assertEqual(tables.overhead(both, "n=1"), 150)
        self.assertIsNone(tables.overhead(both, "n=3"))

    def test_a_repeat_that_lacks_a_kind_of_request_has_no_overhead(self):
        lacking = [run(label, n, rates) for n, rates in
                   enumerate(({"GET": 50, "SET": 50}, {"GET": 50})) for label in ("native", "n=1")]
        self.assertEqual(tables.overheads(lacking, "n=1"), [0])


class Problems(unittest.TestCase):
    def test_repeats_that_lie_together_on_a_quiet_machine_have_none(self):
        self.assertEqual(tables.problems(all_runs([100, 101, 99], [80, 81, 82]), 3), [])

    def test_a_wide_spread_is_told_with_its_configuration(self):
        found = tables.problems(all_runs([100, 130, 100], [80, 80, 80]), 3)
        self.assertEqual(len(found), 1)
        self.assertIn("native, GET: spread 30 % of the median (limit 25 %): 100 (100 .. 130)/s",
                      found[0])
        self.assertEqual(tables.problems(all_runs([100, 130, 100], [80] * 3), 3, 0.3), [])

    def test_classic_admission_is_not_judged(self):
        more = [run("n=3 classic", n, {"GET": rate}, BUSY) for n, rate in enumerate((1, 9, 5))]
        self.assertEqual(tables.problems(all_runs([100] * 3, [80] * 3) + more, 3), [])

    def test_repeats_that_did_not_run_are_told(self):
        found = tables.problems(all_runs([100] * 5, [80] * 3), 5)
        self.assertEqual(found, ["n=1: 3 of 5 repeats ran", "n=3: 3 of 5 repeats ran"])

    def test_a_busy_machine_is_told(self):
        measured = all_runs([100] * 2, [80] * 2)
        measured[1]["quiet"] = BUSY.as_json()
        self.assertEqual(tables.problems(measured, 2), [
            "native: not quiet in 1 of 2 repeats, first in 2: load average 5"])


def line_of(one):
    return tables.table([one]).splitlines()[2]


class Text(unittest.TestCase):
    def test_a_row_has_medians_spreads_ratios_and_processor_time(self):
        text = line_of(row(all_runs([100, 120, 110], [50, 60, 44])))
        self.assertEqual(text, "| redis 7 | equal, 77 bytes | GET 110/s ±9 % | "
                         "GET 0.50 (0.40 .. 0.50) | 100 (100 .. 150) % | 100 (100 .. 150) % | "
                         "10 (10 .. 10) / 10 (10 .. 10) / 10 (10 .. 10) | 2.5 / - |  |")

    def test_each_line_has_as_many_cells_as_the_head(self):
        lines = tables.table([row(all_runs([100], [50]))]).splitlines()[:3]
        self.assertEqual(len({line.count("|") for line in lines}), 1, lines)

    def test_a_row_that_cannot_be_trusted_is_marked_and_explained(self):
        text = tables.table([row(all_runs([100], [50]), problems=["a", "b", "c", "d", "e"])])
        self.assertIn("| redis 7 **(!)** |", text)
        self.assertIn("* redis: a; b; c; and 2 more", text)
        self.assertNotIn("(!)", tables.table([row(all_runs([100], [50]))]))

    def test_what_was_not_measured_is_a_dash(self):
        nothing = row([], proof={"equal": 0, "of": 0, "bytes": 0, "failures": []})
        self.assertEqual(line_of(nothing), "| redis 7 | - | - | - | - | - | - / - / - | "
                         "- / - |  |")

    def test_classic_admission_that_did_not_run_is_named_below_the_table(self):
        self.assertTrue(servers.is_judged("redis, io-threads, n=3"))
        self.assertFalse(servers.is_judged("redis, io-threads, n=3 classic"))
        text = tables.table([row(all_runs([100], [50]), not_measured={"r, n=3 classic": "late"})])
        self.assertTrue(text.endswith("\n\nnot measured: r, n=3 classic: late"), text)

    def test_rows_that_are_missing_are_named_with_the_reason(self):
        self.assertEqual(tables.missing_text({"apache2 event, native": "no /run/apache2"}),
                         "\nnot measured: apache2 event, native: no /run/apache2")


class Repeats(unittest.TestCase):
    def repeated(self, tried, **more):
        with mock.patch.object(start, "one_run", tried), contextlib.redirect_stderr(io.StringIO()):
            return start.repeated(None, argparse.Namespace(name="s"),
                                  {"native": (0, []), "n=1": (1, [])}, 1, 2, **more)

    def test_native_and_crane_take_turns(self):
        made = self.repeated(lambda _place, _server, label, *_: run(label, 0, {"GET": 1}))
        self.assertEqual([(r["configuration"], r["repeat"]) for r in made],
                         [("native", 0), ("n=1", 0), ("native", 1), ("n=1", 1)])

    def test_each_run_is_a_line_with_what_it_was_measured_on(self):
        about = {"time": "t", "commit": "c", "kernel": "k", "processor": "p", "processors": 2}
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "runs.jsonl"
            path.write_text('{"earlier": 1}\n')
            self.repeated(lambda _place, _server, label, *_: run(label, 0, {"GET": 1}),
                          log=session.RawLog(path, about))
            lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0], {"earlier": 1})
        self.assertEqual({key: lines[4][key] for key in about}, about)
        self.assertEqual(lines[4]["quiet"]["quiet"], True)

    def test_what_cannot_run_is_kept_with_its_reason(self):
        def broken(*_):
            raise start.h.Failure("no /run/apache2")
        failed = {}
        with mock.patch.object(start, "one_run", broken), \
                contextlib.redirect_stdout(io.StringIO()):
            made = start.repeated(None, argparse.Namespace(name="s"), {"native": (0, [])}, 1, 1,
                                  None, failed)
        self.assertEqual((made, failed), ([], {"native": ["no /run/apache2"]}))
        self.assertEqual(servers.failures("apache2", failed, 5),
                         {"apache2, native": "1 of 5 repeats failed: no /run/apache2"})


def of_kinds(*names):
    """A matrix of these rows."""
    kinds = [argparse.Namespace(name=name) for name in names]
    return mock.patch.object(servers, "all_kinds", lambda _only: iter(kinds))


class Writing(unittest.TestCase):
    def put(self, rows, left_out=(), anyway=False, kinds=("redis",)):
        options = argparse.Namespace(anyway=anyway)
        output = io.StringIO()
        with mock.patch.object(servers, "into_results") as written, \
                of_kinds(*kinds), contextlib.redirect_stdout(output):
            status = servers.put_away("text", rows, dict(left_out), options)
        return status, written.called, output.getvalue()

    def test_a_table_that_can_be_trusted_is_written(self):
        self.assertEqual(self.put([row([])]), (0, True, ""))

    def test_a_busy_machine_before_the_start_refuses(self):
        options = argparse.Namespace(proof=False, repeats=0, spread=25)
        found = servers.doubts([], BUSY, options)
        status, written, output = self.put([row([], problems=found)])
        self.assertEqual((status, written), (75, False))
        self.assertIn("before the start: not quiet: load average 5", output)
        self.assertIn("--anyway", output)

    def test_a_row_that_cannot_be_trusted_refuses(self):
        status, written, output = self.put([row([]), row([], problems=["n=1, GET: spread 60 %"])])
        self.assertEqual((status, written), (75, False))
        self.assertIn("redis: n=1, GET: spread 60 %", output)

    def test_anyway_writes_it(self):
        self.assertEqual(self.put([row([], problems=["x"])], anyway=True)[:2], (0, True))

    def test_a_missing_row_refuses_by_name_also_with_anyway(self):
        status, written, output = self.put([row([])], {"apache2 event": "no ab"}, anyway=True)
        self.assertEqual((status, written), (1, False))
        self.assertIn("not measured: apache2 event: no ab", output)
        status, written, output = self.put([row([])], kinds=("nginx", "redis"), anyway=True)
        self.assertEqual((status, written), (1, False))
        self.assertIn("not measured: nginx: not in this part", output)


class Parts(unittest.TestCase):
    """A long table is measured in parts of minutes."""

    def test_rows_of_earlier_parts_stay_and_new_ones_take_their_place(self):
        with of_kinds("apache2", "nginx", "redis"):
            found = servers.in_order(session.merged(
                [{"name": name, "at": 1, "key": [name, 0]} for name in ("redis", "nginx")],
                [{"name": name, "at": 2, "key": [name, 0]} for name in ("redis", "apache2")]))
        self.assertEqual([(each["name"], each["at"]) for each in found],
                         [("apache2", 2), ("nginx", 1), ("redis", 2)])

    def test_rows_of_no_part_are_missing(self):
        with of_kinds("apache2", "redis"):
            self.assertEqual(servers.not_there([{"name": "redis"}]),
                             {"apache2": "not in this part"})

    def test_a_comparison_that_came_later_is_told_with_the_row(self):
        rows = servers.with_proof([{"name": "redis", "proof": 1}, {"name": "nginx", "proof": 2}],
                                  [{"name": "redis", "proof": 3}])
        self.assertEqual([row["proof"] for row in rows], [3, 2])
        self.assertEqual(servers.said_of([{"commit": "b"}, {"commit": "a"}],
                                         [{"commit": "c"}]),
                         "\n\nMeasured at commit a, b. Compared at commit c.")

    def test_earlier_rows_are_read_with_keep_alone(self):
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / "servers.json"
            self.assertEqual(session.earlier_rows(file, True), [])
            file.write_text('{"rows": [1]}')
            self.assertEqual(session.earlier_rows(file, True), [1])
            self.assertEqual(session.earlier_rows(file, False), [])


class Loads(unittest.TestCase):
    def test_a_measured_load_is_longer_than_a_scenarios_but_for_quick(self):
        server = argparse.Namespace(requests=(10, 100), measured=1000)
        self.assertEqual([servers.asked(server, argparse.Namespace(quick=quick))
                          for quick in (False, True)], [1000, 10])
        server.measured = 0
        self.assertEqual([servers.asked(server, argparse.Namespace(quick=quick))
                          for quick in (False, True)], [100, 10])

    def test_configurations_are_those_that_there_are(self):
        self.assertEqual(servers.labels("native,n=3 classic"), ["native", "n=3 classic"])
        with self.assertRaisesRegex(start.h.CannotRun, "no configuration 'n=2': they "
                                    "are native, n=1"):
            servers.labels("native,n=2")

    def test_a_row_without_a_judged_configuration_is_not_trusted(self):
        runs_of_two = [run(label, 0, {"GET": 1}) for label in ("native", "n=1")]
        self.assertEqual(tables.problems(runs_of_two, 1), ["n=3: 0 of 1 repeats ran"])


class RequestsMade(unittest.TestCase):
    """Figures per request divide by what the load really asked."""

    def test_a_web_load_asks_less_often_for_large_pages(self):
        web = object.__new__(importlib.import_module("_web").Web)
        self.assertEqual(web.requests_made(10000, [()] * 4), 10000 + 40000 + 1000 + 1500)
        self.assertEqual(web.requests_made(400, [()] * 4), 400 + 1600 + 64 + 64)

    def test_a_small_load_is_warmed_by_no_smaller_one_than_servers_need(self):
        self.assertEqual([start.warm_requests(n) for n in (40000, 240, 64, 20)],
                         [4000, 64, 64, 20])

    def test_every_server_of_the_matrix_says_it(self):
        """clamd once had a method of the same name, for something else."""
        kinds = list(servers.all_kinds(""))
        self.assertGreater(len(kinds), 20)
        for kind in kinds:
            words = list(inspect.signature(kind.requests_made).parameters)
            self.assertEqual(words, ["self", "requests", "rows"], kind.name)


if __name__ == "__main__":
    _cases.tell()
