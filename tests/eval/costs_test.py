#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wake-ups and system calls, of what /proc, perf and strace print (eval/measure/counters.py)."""
import unittest

import _cases
import counters as costs
import quiet

STATUS = "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n"
PERF = """# started on Mon

145,,raw_syscalls:sys_enter,1089080,100.00,,
7,,syscalls:sys_enter_read,1089080,100.00,,
5,,syscalls:sys_enter_sendto,1089080,100.00,,
<not counted>,,syscalls:sys_enter_write,0,100.00,,
"""
STRACE = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           2        30         4 read
 30.00    0.000300           1        20           sendto
 10.00    0.000100           1        10        10 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           1        60        14 total
"""


def row(told=True, report=quiet.Report(True, (), {})):
    part = {"wakeups": 1.5, "preempted": 0.25, "threads_ended": 2}
    found = {"server": {**part, "calls": 12, "copies": 4}, "node": part,
             "told": {"wakeups": 0.75, "bytes_in": 66.2, "bytes_out": 1024, "entries_total": 1}}
    return {"server": "redis", "configuration": "n=1", "quiet": report.as_json(),
            "costs": found if told else {"server": part}}


class Switches(unittest.TestCase):
    def test_both_kinds_are_read(self):
        self.assertEqual(costs.switches_in(STATUS.format(12, 3)), (12, 3))

    def test_a_new_thread_counts_whole_and_an_ended_one_is_told(self):
        before = {(1, "1"): (10, 1), (1, "2"): (50, 5)}
        after = {(1, "1"): (17, 2), (1, "3"): (4, 0), (2, "2"): (1, 1)}
        self.assertEqual(costs.switches_between(before, after), (12, 2, 1))


class Calls(unittest.TestCase):
    def test_perf_tells_all_calls_and_those_that_copy(self):
        self.assertEqual(costs.perf_counts(PERF), (145, 12))

    def test_perf_that_counts_nothing_is_no_zero(self):
        self.assertIsNone(costs.perf_counts("<not supported>,,raw_syscalls:sys_enter,0,,,\n"))

    def test_strace_tells_the_same(self):
        self.assertEqual(costs.strace_counts(STRACE), (60, 50))
        self.assertIsNone(costs.strace_counts("strace: ptrace: Operation not permitted\n"))


class Table(unittest.TestCase):
    def test_each_line_has_as_many_cells_as_the_head(self):
        lines = costs.table([row(), row(told=False)]).splitlines()
        self.assertEqual({line.count("|") for line in lines}, {len(costs.HEAD) + 1}, lines)

    def test_a_row_shows_server_node_and_what_the_status_says(self):
        self.assertEqual(costs.cells_of(row()), [
            "redis, n=1", "1.50", "0.25", "12.00", "4.00", "1.50", "0.25", "-", "-", "0.75",
            "1.00", "66.20 / 1024", "4"])

    def test_what_counted_is_said_and_which_rows_were_disturbed(self):
        busy = row(report=quiet.Report(False, ("load average 5",), {}))
        self.assertEqual(costs.how_text("strace", "perf is not installed", [row(), busy]),
                         "system calls counted by strace (perf is not installed)\n"
                         "busy machine: redis, n=1: load average 5")
        self.assertIn("not counted: neither", costs.how_text(None, "neither", []))


if __name__ == "__main__":
    _cases.tell()
