#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts per request, samples of perf, points and tables of growing servers, of figures that were
made up here (eval/experiments/growth.py)."""
import argparse
import unittest
from unittest import mock

import _cases
import quiet

growth = _cases.experiment("growth")

QUIET = quiet.Report(True, (), {}).as_json()
PERF = """# To display the perf.data header info, please use --header/--header-only options.
#
# Samples: 1K of event 'cpu-clock:ppp'
#
#      Samples,Shared Object
 600        ,[kernel.kallsyms]
 300        ,libcrane.so
 75         ,memcached
 25         ,/usr/lib/libc.so.6


#
# (Tip: If you have debuginfo enabled, try: perf report -s sym,srcline)
"""
BENCH = [{"case": "1 thread", "ns": 25.0},
         {"case": "2 threads on 1 core, every turn", "ns": 5000.0},
         {"case": "2 threads on 2 cores, every turn", "ns": 40000.0},
         {"case": "2 threads on 2 cores, every turn, spin", "ns": 500.0}]


def counts(clock, entries, woken, seconds, bytes_in=0):
    one = mock.Mock(parts={"server": [1], "node": [2]},
                    switches={"server": {(1, "1"): (woken, 5)}, "node": {(2, "2"): (2 * woken, 0)}},
                    seconds={"server": seconds, "node": 2 * seconds},
                    status={"clock": clock, "entries_total": entries, "bytes_in": bytes_in})
    return one


def row(label="parallel, n=1", threads=4, clients=16, repeat=0, server="memcached", rate=1000.0,
        report=QUIET, **figures):
    return {"key": [server, label, threads, clients, repeat], "server": server,
            "configuration": label, "threads": threads, "clients": clients, "rate": rate,
            "figures": {"server_us": 20.0, **figures}, "quiet": report, "commit": "abc"}


class PerRequest(unittest.TestCase):
    def test_everything_is_divided_by_the_requests(self):
        found = growth.counters.per_request(counts(1000, 10, 40, 1.0, 500),
                                   counts(5000, 110, 140, 1.5, 2500), 100)
        self.assertEqual((found["turns"], found["entries"], found["server_wakeups"],
                          found["node_wakeups"]), (40, 1, 1, 2))
        self.assertAlmostEqual(found["server_us"], 5000)
        self.assertAlmostEqual(found["node_us"], 10000)
        self.assertEqual(found["log_bytes"], 20 + growth.counters.HEADER_BYTES)

    def test_a_native_server_has_no_turns(self):
        before, after = counts(0, 0, 0, 0), counts(0, 0, 7, 1)
        before.status = after.status = {}
        self.assertNotIn("turns", growth.counters.per_request(before, after, 1))


class Samples(unittest.TestCase):
    def test_the_part_in_the_library(self):
        self.assertAlmostEqual(growth.share_in(PERF), 0.3)

    def test_a_library_is_known_by_its_name_in_any_folder(self):
        self.assertAlmostEqual(growth.share_in(PERF, "libc.so.6"), 0.025)

    def test_too_few_samples_tell_nothing(self):
        self.assertIsNone(growth.share_in(""))
        self.assertIsNone(growth.share_in(" 60     ,libcrane.so\n 39     ,memcached\n"))


class Points(unittest.TestCase):
    def points(self, threads, clients, grid=False):
        return growth.points(argparse.Namespace(threads=threads, clients=clients, grid=grid))

    def test_a_cross_has_its_middle_once(self):
        self.assertEqual(self.points([1, 4], [16, 64]), [(1, 16), (4, 16), (4, 64)])

    def test_a_grid_has_all_pairs(self):
        self.assertEqual(len(self.points([1, 2], [1, 4, 16], grid=True)), 6)

    def test_threads_go_into_the_command_line_and_clients_into_the_load(self):
        for name, words in (("memcached", ("-t", "8")), ("matching engine", ("--workers", "8"))):
            kind = growth.kind_of(name, 8, 64)
            self.assertEqual((kind.more, kind.clients, kind.name), (words, 64, name))


class Table(unittest.TestCase):
    def test_repeats_become_their_median(self):
        rows = [row(repeat=n, rate=rate, turns=turns)
                for n, (rate, turns) in enumerate(((900, 40), (1000, 44), (5000, 41)))]
        (_, label, threads, clients, some, figures), = growth.medians(rows)
        self.assertEqual((label, threads, clients, len(some)), ("parallel, n=1", 4, 16, 3))
        self.assertEqual((figures["rate"], figures["turns"]), (1000, 41))

    def test_a_figure_that_was_not_measured_is_a_dash(self):
        line = growth.table([row("native")]).splitlines()[-1]
        self.assertEqual(line.count("| - "), 6)

    def test_points_are_ordered_by_threads_clients_and_configuration(self):
        rows = [row("parallel, n=3", 4), row("native", 16), row("native", 4), row("native", 4, 4)]
        points = [(threads, clients, label)
                  for _, label, threads, clients, *_ in growth.medians(rows)]
        self.assertEqual(points, [(4, 4, "native"), (4, 16, "native"), (4, 16, "parallel, n=3"),
                                  (16, 16, "native")])

    def test_the_text_says_what_is_computed_and_what_is_missing(self):
        rows = [row("native"), row(turns=40, node_us=10.0, server_wakeups=2.0, inside_share=0.25)]
        text = growth.text(rows, mock.Mock(about={"bench_turn": BENCH},
                                           left_out={"memcached, 32": "gone"}))
        self.assertIn("**Computed, not measured**", text)
        self.assertIn("not measured: memcached, 32: gone", text)


class Models(unittest.TestCase):
    FIGURES = {"turns": 40, "node_us": 10.0, "server_wakeups": 2.0}

    def test_terms_come_from_the_middle_of_the_cross(self):
        rows = [row("native", server_us=8.0), row(**self.FIGURES, inside_share=0.25),
                row(threads=32, **{**self.FIGURES, "node_us": 99.0})]
        (server, terms, costs, rate), = growth.models_of(rows, BENCH)
        self.assertEqual((server, terms.mode, rate), ("memcached", "parallel", 1000))
        self.assertEqual((terms.inside_us, terms.outside_us, terms.node_us, terms.hand_overs,
                          terms.native_us, terms.sampled), (5.0, 15.0, 10.0, 2.0, 8.0, True))
        self.assertEqual(costs["spins"], 0.5)

    def test_without_samples_a_turn_costs_what_bench_turn_says(self):
        rows = [row("native"), row(**self.FIGURES, inside_share=None)]
        (_, terms, *_), = growth.models_of(rows, BENCH)
        self.assertAlmostEqual(terms.inside_us, 1.0)
        self.assertFalse(terms.sampled)

    def test_without_the_native_server_there_is_no_model(self):
        self.assertEqual(growth.models_of([row(**self.FIGURES)], BENCH), [])


if __name__ == "__main__":
    _cases.tell()
