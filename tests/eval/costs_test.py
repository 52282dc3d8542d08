#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wake-ups and system calls, of what /proc, perf and strace print (eval/measure/counters.py,
eval/experiments/costs.py)."""
import unittest
from unittest import mock

import _cases
import counters
import quiet

costs = _cases.experiment("costs")

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


def row(with_node=True, report=quiet.Report(True, (), {})):
    found = {"server_wakeups": 1.5, "server_preempted": 0.25, "server_ended": 2}
    if with_node:
        found.update({"server_calls": 12.0, "server_copies": 4.0, "node_wakeups": 1.5,
                      "node_preempted": 0.25, "node_ended": 2, "own_wakeups": 0.75,
                      "entries": 1.0, "bytes_in": 66.2, "bytes_out": 1024.0})
    return {"key": ["redis", "n=1", 0], "server": "redis", "configuration": "n=1",
            "quiet": report.as_json(), "figures": found}


class Switches(unittest.TestCase):
    def test_both_kinds_are_read(self):
        self.assertEqual(counters.switches_in(STATUS.format(12, 3)), (12, 3))

    def test_a_new_thread_counts_whole_and_an_ended_one_is_told(self):
        before = {(1, "1"): (10, 1), (1, "2"): (50, 5)}
        after = {(1, "1"): (17, 2), (1, "3"): (4, 0), (2, "2"): (1, 1)}
        self.assertEqual(counters.switches_between(before, after), (12, 2, 1))


class Calls(unittest.TestCase):
    def test_perf_tells_all_calls_and_those_that_copy(self):
        self.assertEqual(counters.perf_counts(PERF), (145, 12))

    def test_perf_that_counts_nothing_is_no_zero(self):
        self.assertIsNone(counters.perf_counts("<not supported>,,raw_syscalls:sys_enter,0,,,\n"))

    def test_strace_tells_the_same(self):
        self.assertEqual(counters.strace_counts(STRACE), (60, 50))
        self.assertIsNone(counters.strace_counts("strace: ptrace: Operation not permitted\n"))


class Table(unittest.TestCase):
    def test_each_line_has_as_many_cells_as_the_head(self):
        lines = costs.table([row(), row(with_node=False)]).splitlines()
        self.assertEqual({line.count("|") for line in lines}, {len(costs.COLUMNS) + 2}, lines)

    def test_a_row_shows_server_node_and_what_the_status_counts(self):
        self.assertEqual(costs.table([row()]).splitlines()[-1],
                         "| redis, n=1 | 1.50 | 0.25 | 12.00 | 4.00 | 1.50 | 0.25 | - | - | 0.75 "
                         "| 1.00 | 66.20 | 1024 | 2 | 2 |")

    def test_the_tool_is_named_and_which_rows_were_disturbed(self):
        busy = row(report=quiet.Report(False, ("load average 5",), {}))
        x = mock.Mock(about={"counted_by": ["strace", "perf is not installed"]}, left_out={})
        text = costs.text([row(), busy], x)
        self.assertIn("system calls counted by strace (perf is not installed)", text)
        self.assertIn("* redis, n=1, 0: load average 5", text)
        self.assertIn("| redis, n=1 (!) |", text)
        self.assertIn("not counted: neither", costs.how_text(None, "neither"))


if __name__ == "__main__":
    _cases.tell()
