#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gain from more processors, computed from invented terms
(eval/papers/growth_model.py)."""
import unittest

import _cases
import growth_model as model

PARALLEL = model.Terms("parallel", inside_us=4.0, outside_us=12.0, node_us=4.0, hand_overs=2.0,
                       native_us=10.0)
SERIAL = model.Terms("serial", inside_us=4.0, outside_us=12.0, node_us=4.0, hand_overs=2.0,
                     native_us=10.0)


class Rate(unittest.TestCase):
    def test_few_processors_share_all_the_work(self):
        self.assertEqual(model.rate(PARALLEL, 0.5, 1), (50_000, "processors"))
        self.assertEqual(model.rate(PARALLEL, 0.5, 2), (100_000, "processors"))

    def test_many_processors_wait_for_the_turn_and_its_hand_overs(self):
        self.assertEqual(model.rate(PARALLEL, 0.5, 16), (200_000, "the turn"))
        self.assertEqual(model.rate(PARALLEL, 8.0, 16), (50_000, "the turn"))

    def test_in_serial_mode_time_outside_needs_the_turn_too(self):
        self.assertEqual(model.rate(SERIAL, 0.0, 16), (62_500, "the turn"))

    def test_the_node_is_one_thread(self):
        slow = model.Terms("parallel", 1.0, 1.0, 20.0, 0.0, 10.0)
        self.assertEqual(model.rate(slow, 0.0, 16), (50_000, "the node"))

    def test_more_processors_never_take_away(self):
        for terms in (PARALLEL, SERIAL):
            rates = [model.rate(terms, 0.5, c)[0] for c in model.CORES]
            self.assertEqual(rates, sorted(rates))

    def test_a_native_server_grows_with_its_processors(self):
        self.assertEqual(model.native_rate(PARALLEL, 8), 800_000)


class Limit(unittest.TestCase):
    def test_the_turn_limits_from_all_time_over_its_time(self):
        self.assertEqual(model.cores_until(PARALLEL, 0.5, "the turn"), 4)   # 20 / 5
        self.assertEqual(model.cores_until(PARALLEL, 0.0, "the turn"), 5)
        self.assertEqual(model.cores_until(PARALLEL, 0.6, "the turn"), 4)   # 20 / 5.2, upwards
        self.assertEqual(model.cores_until(PARALLEL, 0.5, "the node"), 5)

    def test_a_turn_that_takes_longer_than_all_work_limits_one_processor(self):
        self.assertEqual(model.cores_until(PARALLEL, 40.0, "the turn"), 1)

    def test_at_that_number_the_turn_limits_and_one_fewer_it_does_not(self):
        cores = model.cores_until(PARALLEL, 0.6, "the turn")
        self.assertEqual(model.rate(PARALLEL, 0.6, cores)[1], "the turn")
        self.assertEqual(model.rate(PARALLEL, 0.6, cores - 1)[1], "processors")

    def test_the_first_limit_is_the_longer_of_turn_and_node(self):
        self.assertEqual(model.first_limit(PARALLEL, 0.5), "the turn")
        long_node = model.Terms("parallel", 1.0, 1.0, 20.0, 0.0, 10.0)
        self.assertEqual(model.first_limit(long_node, 0.0), "the node")


class Terms(unittest.TestCase):
    def test_time_is_split_by_samples(self):
        self.assertEqual(model.split(20.0, 0.25, 40, 25.0), (5.0, 15.0))

    def test_or_by_turns_and_never_beyond_all_of_it(self):
        self.assertEqual(model.split(20.0, None, 40, 25.0), (1.0, 19.0))
        self.assertEqual(model.split(20.0, None, 4000, 25.0), (20.0, 0.0))

    def test_hand_overs_come_from_the_cases_of_their_mode(self):
        bench = [{"case": case, "ns": 1000.0 * n}
                 for n, case in enumerate(model.HAND_OVERS["parallel"].values(), 1)]
        self.assertEqual(model.hand_over_costs(bench, "parallel"),
                         {"spins": 1.0, "sleeps, same core": 2.0, "sleeps, other core": 3.0})
        self.assertEqual(model.hand_over_costs(bench, "serial"), {"sleeps, same core": 2.0})


class Table(unittest.TestCase):
    def test_a_row_has_its_rates_limits_and_what_was_measured(self):
        text = model.table([("memcached", PARALLEL, {"spins": 0.5}, 61_000.0)], 2)
        native, ours = text.splitlines()[2:]
        self.assertIn("memcached, native, at most | - | 100000 | 200000", native)
        self.assertEqual(ours, "| memcached, parallel | spins, 0.50 us | 50000 | 100000 | 200000 | "
                         "200000 | 200000 | 200000 | 61000 | 4 | 5 | the turn |")

    def test_the_terms_say_where_the_time_inside_is_from(self):
        guessed = model.Terms("parallel", 1.0, 1.0, 1.0, 1.0, 1.0, sampled=False)
        lines = model.terms_table([("m", PARALLEL, {}, 1.0), ("m", guessed, {}, 1.0)]).splitlines()
        self.assertTrue(lines[2].endswith("| samples |"))
        self.assertTrue(lines[3].endswith("| turns |"))

    def test_the_native_server_stands_there_once(self):
        text = model.table([("m", SERIAL, {"sleeps, same core": 5.0}, 1.0),
                            ("m", PARALLEL, {"spins": 0.5}, 1.0)], 2)
        self.assertEqual(text.count("native"), 1)


if __name__ == "__main__":
    _cases.tell()
