#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A storm's cost for its clients, and the errors of status, computed from notes alone
(tests/e2e/_storm_verdict.py)."""
import sys
import unittest

import _cases

sys.path.insert(0, str(_cases.ROOT / "tests" / "e2e"))
import _storm_verdict as v  # noqa: E402

END = 100.0


def fault(at, survivable=True, majority=None):
    return v.Fault("kill node", "replica 0", at, survivable, majority=majority)


def wait(asked, answered, client="one"):
    return v.Wait(client, asked, answered)


def said(begin, serving=True, end=None):
    return v.Said(begin, begin + 0.01 if end is None else end, serving, 1, "well")


def slow(faults, *waits):
    return [f.at for f in v.judge(faults, list(waits), END)]


class Cost(unittest.TestCase):
    def test_a_wait_is_counted_from_the_fault_on(self):
        faults = [fault(10)]
        self.assertEqual(slow(faults, wait(9.5, 10.9)), [])
        self.assertAlmostEqual(faults[0].wait, 0.9)

    def test_a_survivable_fault_may_cost_a_second(self):
        self.assertEqual(slow([fault(10)], wait(10.1, 11.2)), [10])

    def test_the_client_that_waited_longest_is_named(self):
        faults = [fault(10)]
        v.judge(faults, [wait(10, 10.2), wait(10, 10.4, "other")], END)
        self.assertEqual(faults[0].client, "other")

    def test_a_wait_that_lasts_is_counted_to_the_end(self):
        self.assertEqual(slow([fault(10)], wait(10.1, None)), [10])

    def test_an_early_fault_takes_over_the_wait_of_the_one_before(self):
        faults = [fault(10), fault(10.5, survivable=False, majority=10.6)]
        self.assertEqual(slow(faults, wait(10.1, 12.4)), [])
        self.assertAlmostEqual(faults[0].wait, 0.4)
        self.assertAlmostEqual(faults[1].wait, 1.9)

    def test_a_wait_over_a_survivable_fault_is_charged_to_both(self):
        self.assertEqual(slow([fault(10), fault(12)], wait(10.1, 13.5)), [10, 12])

    def test_what_is_asked_behind_the_next_fault_is_not_this_ones(self):
        self.assertEqual(slow([fault(10), fault(20)], wait(20.1, 25), wait(30, 40)), [20])

    def test_an_unsurvivable_fault_ends_two_seconds_behind_the_majority(self):
        self.assertEqual(slow([fault(10, False, majority=15)], wait(10, 16.9)), [])
        self.assertEqual(slow([fault(10, False, majority=15)], wait(10, 17.1)), [10])

    def test_nothing_is_promised_as_long_as_no_majority_is_back(self):
        self.assertEqual(slow([fault(10, False)], wait(10, 90)), [])


class Honesty(unittest.TestCase):
    def lies(self, samples, *waits):
        return [(w.asked, s.begin) for w, s in v.contradictions(samples, list(waits), END)]

    def test_serving_beside_a_client_that_waits_is_a_contradiction(self):
        self.assertEqual(self.lies([said(10.1), said(10.4), said(10.5)], wait(10, 11)),
                         [(10, 10.4)])

    def test_one_look_alone_may_be_a_moment_early(self):
        self.assertEqual(self.lies([said(10.1), said(10.4)], wait(10, 11)), [])
        self.assertEqual(self.lies([said(10.4), said(10.5, serving=False), said(10.6)],
                                   wait(10, 11)), [])

    def test_a_look_that_began_within_the_first_300_ms_is_none(self):
        self.assertEqual(self.lies([said(10.2), said(10.4)], wait(10, 11)), [])

    def test_a_look_that_ended_behind_the_answer_is_none(self):
        self.assertEqual(self.lies([said(10.8), said(10.9, end=11.1)], wait(10, 11)), [])

    def test_not_serving_is_the_truth(self):
        self.assertEqual(self.lies([said(10.5, serving=False)], wait(10, 11)), [])

    def test_a_client_that_still_waits_counts(self):
        self.assertEqual(self.lies([said(50), said(51)], wait(10, None)), [(10, 50)])


class Read(unittest.TestCase):
    def test_the_verdict_is_what_counts(self):
        verdict = {"serving": True, "text": "serving, 3 of 3, fault tolerant"}
        self.assertEqual(v.read({"verdict": verdict, "may_lose": 1}),
                         (True, 1, "serving, 3 of 3, fault tolerant"))

    def test_how_many_may_be_lost_may_be_unknown(self):
        verdict = {"serving": False, "text": "NOT SERVING: no leader"}
        self.assertEqual(v.read({"verdict": verdict, "may_lose": None})[:2], (False, 0))

    def test_what_is_no_status_is_none(self):
        with self.assertRaises(KeyError):
            v.read({"error": "no such group"})


class Table(unittest.TestCase):
    def test_survivable_faults_and_others_stand_apart(self):
        good, bad = fault(10), fault(20, False)
        good.wait, bad.wait = 0.25, 4
        row = v.table([good, bad])[-1]
        self.assertEqual(row.split(), ["kill", "node", "1", "250", "250", "|", "1", "4000", "4000"])


if __name__ == "__main__":
    _cases.tell()
