#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of processes and control groups, of files that look like theirs
(eval/measure/usage.py)."""
import pathlib
import tempfile
import unittest
from unittest import mock

import _cases
import quiet
import usage

OWN, SERVER, CHILD, NODE = 10, 20, 21, 30


class Usage(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)

    def process(self, pid, groups, own=0, waited=0):
        folder = self.root / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "cgroup").write_text(groups)
        times = f"{own} 0 {waited} 0"
        (folder / "stat").write_text(f"{pid} (x) S 1 0 0 0 0 0 0 0 0 0 {times} 20 0 1 0 5\n")

    def group(self, name, text):
        file = self.root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def seconds(self, *pids):
        return usage.cpu_seconds(pids, OWN, self.root)

    def test_a_container_is_counted_by_its_control_group_once(self):
        self.process(OWN, "2:cpuacct:/\n0::/\n")
        self.process(SERVER, "2:cpuacct:/payload\n0::/payload\n", own=7)
        self.process(CHILD, "2:cpuacct:/payload\n0::/payload\n", own=9)
        self.process(NODE, "2:cpuacct:/\n0::/\n", own=2 * quiet.TICK)
        self.group("cpuacct/payload/cpuacct.usage", "1500000000\n")
        self.assertEqual(self.seconds(SERVER, CHILD, NODE), 3.5)

    def test_version_2_is_read_too(self):
        self.process(OWN, "0::/session\n")
        self.process(SERVER, "0::/payload\n", own=7)
        self.group("payload/cpu.stat", "usage_usec 2500000\nuser_usec 5\n")
        self.assertEqual(self.seconds(SERVER), 2.5)

    def test_controllers_that_are_mounted_together_have_one_folder(self):
        self.process(OWN, "2:cpu,cpuacct:/\n")
        self.process(SERVER, "2:cpu,cpuacct:/payload\n")
        self.group("cpu,cpuacct/payload/cpuacct.usage", "500000000\n")
        self.assertEqual(self.seconds(SERVER), 0.5)

    def test_a_native_server_has_the_time_of_children_that_it_waited_for(self):
        self.process(OWN, "0::/session\n")
        self.process(SERVER, "0::/session\n", own=quiet.TICK, waited=3 * quiet.TICK)
        self.group("session/cpu.stat", "usage_usec 99000000\n")
        self.assertEqual(self.seconds(SERVER), 4)

    def test_a_control_group_that_cannot_be_read_leaves_its_processes(self):
        self.process(OWN, "0::/\n")
        self.process(SERVER, "0::/payload\n", own=quiet.TICK)
        self.process(CHILD, "0::/payload\n", own=quiet.TICK)
        self.assertEqual(self.seconds(SERVER, CHILD), 2)

    def test_a_native_server_gets_a_control_group_beside_ours(self):
        self.group("ours/cpu.stat", "usage_usec 5\n")
        made = [usage.make_group(self.root / "sys/fs/cgroup/ours/cpu.stat") for _ in range(2)]
        self.assertEqual([group.parent.name for group in made], ["ours", "ours"])
        self.assertNotEqual(*made)
        usage.enter_group(made[0])
        self.assertEqual((made[0] / "cgroup.procs").read_text(), "0")
        self.assertFalse(usage.remove_group(made[0]))
        self.assertTrue(usage.remove_group(made[1]))
        self.assertFalse(made[1].exists())

    def test_what_is_left_in_the_control_group_of_a_server_is_ended(self):
        self.group("ours/cgroup.procs", "12\n13\n")
        with mock.patch.object(usage.os, "kill", side_effect=[ProcessLookupError, None]) as kill:
            usage.signal_group(self.root / "sys/fs/cgroup/ours", 15)
            usage.signal_group(None, 15)
        self.assertEqual([call.args for call in kill.mock_calls], [(12, 15), (13, 15)])

    def test_without_control_groups_there_is_none(self):
        none = usage.make_group(self.root / "absent/cpu.stat")
        with mock.patch.object(usage, "control_group", lambda _: None):
            self.assertIsNone(usage.make_group())
        usage.enter_group(none)
        self.assertEqual((none, usage.remove_group(none)), (None, True))

    def test_time_of_threads_is_read_to_the_nanosecond(self):
        for task, text in (("7", "1500000000 3 9\n"), ("8", "250000001 1 2\n"), ("9", "")):
            folder = self.root / "7/task" / task
            folder.mkdir(parents=True)
            (folder / "schedstat").write_text(text) if text else None
        self.assertEqual(usage.seconds_of([7, 99], self.root), 1.750000001)

    def test_a_process_that_is_gone_counts_nothing(self):
        self.process(OWN, "0::/\n")
        self.assertEqual(self.seconds(99), 0)


if __name__ == "__main__":
    _cases.tell()
