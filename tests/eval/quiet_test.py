#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdict on a machine, of files that look like its /proc (eval/measure/quiet.py)."""
import pathlib
import tempfile
import unittest

import _cases
import quiet

HARNESS, SERVER, MAKE, EDITOR, KTHREAD = 100, 101, 200, 300, 400
IDLE_SECOND = 2 * quiet.TICK    # two processors


def process(pid, parent, name, own=0, waited=0, started=1, flags=0):
    fields = ["S", parent, 0, 0, 0, 0, flags, 0, 0, 0, 0, own, 0, waited, 0, 20, 0, 1, 0, started]
    return f"{pid} ({name}) {' '.join(map(str, fields))} 0 0\n"


def snapshot(*processes, idle=0, load="0.00", throttled=None, **cpu):
    """Returns take() of files with these processes; `idle` and `cpu` are ticks since boot."""
    with tempfile.TemporaryDirectory() as place:
        proc, processors = pathlib.Path(place) / "proc", pathlib.Path(place) / "cpu"
        proc.mkdir()
        ticks = {**dict.fromkeys(quiet.COLUMNS, 0), "idle": idle, **cpu}
        words = " ".join(str(ticks[column]) for column in quiet.COLUMNS)
        (proc / "stat").write_text(f"cpu  {words} 0 0\ncpu0 0\ncpu1 0\nintr 5\n")
        (proc / "loadavg").write_text(f"{load} 0.00 0.00 1/90 7\n")
        (proc / "self").mkdir()
        for text in processes:
            (proc / text.split()[0]).mkdir()
            (proc / text.split()[0] / "stat").write_text(text)
        if throttled is not None:
            heat = processors / "cpu0" / "thermal_throttle"
            heat.mkdir(parents=True)
            (heat / "core_throttle_count").write_text(f"{throttled}\n")
        return quiet.take(proc, processors)


def verdict(before, after, running=True):
    return quiet.judge(before, after, {HARNESS}, running=running)


class Verdict(unittest.TestCase):
    def only_reason(self, report, *words):
        self.assertFalse(report.quiet)
        self.assertEqual(len(report.reasons), 1, report.reasons)
        for word in words:
            self.assertIn(word, report.reasons[0])

    def test_a_machine_that_does_nothing_is_quiet(self):
        report = verdict(snapshot(), snapshot(idle=10 * IDLE_SECOND), running=False)
        self.assertEqual((report.quiet, report.text()), (True, "quiet"))

    def test_a_second_snapshot_that_does_not_move_is_not_quiet(self):
        self.only_reason(verdict(snapshot(), snapshot()), "does not move")

    def test_time_that_the_host_takes_is_a_reason(self):
        self.only_reason(verdict(snapshot(), snapshot(idle=1900, steal=100)),
                         "steal) 5.0 %", "limit 1.0 %")

    def test_waiting_for_disks_is_a_reason_before_the_start_alone(self):
        before, after = snapshot(), snapshot(idle=1800, iowait=200)
        self.only_reason(verdict(before, after, running=False), "iowait) 10.0 %")
        self.assertTrue(verdict(before, after).quiet)

    def test_the_load_average_is_a_reason_before_the_start_alone(self):
        before, after = snapshot(), snapshot(idle=2000, load="1.50")
        self.only_reason(verdict(before, after, running=False), "1.50 on 2 processors", "0.70")
        self.assertTrue(verdict(before, after).quiet)
        self.assertTrue(verdict(before, snapshot(idle=2000, load="0.69"), running=False).quiet)

    def test_another_process_is_named_with_its_time(self):
        before = snapshot(process(EDITOR, 1, "vi"), process(MAKE, 1, "a (b) c"))
        after = snapshot(process(EDITOR, 1, "vi", own=10), process(MAKE, 1, "a (b) c", own=300),
                         idle=1690, user=310)
        self.only_reason(verdict(before, after), "other processes used 15.5 %",
                         f"a (b) c ({MAKE}) {300 / quiet.TICK:.2f} s, vi ({EDITOR})")

    def test_measured_processes_and_those_below_them_do_not_count(self):
        before = snapshot(process(HARNESS, 1, "python3"))
        after = snapshot(process(HARNESS, 1, "python3", own=100, waited=200),
                         process(SERVER, HARNESS, "redis", own=700), process(102, SERVER, "io"),
                         idle=1000, user=1000)
        report = verdict(before, after)
        self.assertTrue(report.quiet, report.reasons)
        self.assertEqual(report.figures["measured"], 0.5)

    def test_a_compiler_that_came_and_went_is_its_makes(self):
        before = snapshot(process(MAKE, 1, "make"))
        after = snapshot(process(MAKE, 1, "make", waited=500), idle=1500, user=500)
        self.only_reason(verdict(before, after), "25.0 %", f"make ({MAKE})")

    def test_what_an_ended_process_had_used_before_is_not_counted(self):
        before = snapshot(process(MAKE, 1, "make"), process(201, MAKE, "sh"),
                          process(202, 201, "cc1plus", own=990))
        after = snapshot(process(MAKE, 1, "make", waited=1000), idle=1990, user=10)
        report = verdict(before, after)
        self.assertTrue(report.quiet, report.reasons)
        self.assertEqual(report.figures["others"], 0.005)

    def test_a_pid_that_is_used_again_is_another_process(self):
        before = snapshot(process(EDITOR, 1, "vi", own=900, started=1))
        after = snapshot(process(EDITOR, 1, "cc1plus", own=800, started=2), idle=1200, user=800)
        self.only_reason(verdict(before, after), "40.0 %", "cc1plus")

    def test_threads_of_the_kernel_are_not_other_processes(self):
        kernel = {"flags": quiet.KERNEL_THREAD}
        before = snapshot(process(KTHREAD, 2, "ksoftirqd/0", **kernel))
        after = snapshot(process(KTHREAD, 2, "ksoftirqd/0", own=400, **kernel), idle=1600,
                         softirq=400)
        report = verdict(before, after)
        self.assertTrue(report.quiet, report.reasons)
        self.assertEqual(report.figures["kernel"], 0.2)

    def test_time_that_no_process_used_is_a_reason(self):
        self.only_reason(verdict(snapshot(), snapshot(idle=1600, system=400)),
                         "/proc does not show", "20.0 %")

    def test_measured_processes_that_ended_hide_no_others(self):
        after = snapshot(idle=1600, system=400)
        report = quiet.judge(snapshot(), after, {HARNESS}, hidden=350)
        self.assertTrue(report.quiet, report.reasons)
        self.assertEqual((report.figures["measured"], report.figures["unseen"]), (0.175, 0.025))
        self.only_reason(quiet.judge(snapshot(), after, {HARNESS}, hidden=-100), "20.0 %")

    def test_a_few_ticks_of_a_short_run_say_nothing(self):
        before = snapshot(process(EDITOR, 1, "vi"))
        short = snapshot(process(EDITOR, 1, "vi", own=quiet.GRAIN), idle=16, user=quiet.GRAIN)
        self.assertTrue(verdict(before, short).quiet)
        more = snapshot(process(EDITOR, 1, "vi", own=quiet.GRAIN + 1), idle=16,
                        user=quiet.GRAIN + 1)
        self.only_reason(verdict(before, more), "other processes")

    def test_heat_is_a_reason(self):
        before, after = snapshot(throttled=7), snapshot(throttled=9, idle=2000)
        self.only_reason(verdict(before, after), "heat", "2 times")
        self.assertTrue(verdict(after, snapshot(throttled=9, idle=4000)).quiet)


class Waiting(unittest.TestCase):
    def wait(self, seconds, snapshots):
        said, pauses, looks = [], [], iter(snapshots)
        report = quiet.wait(seconds, window=5, look=lambda: next(looks), pause=pauses.append,
                            say=said.append)
        return report, said, len(pauses)

    def test_it_ends_with_the_first_quiet_window(self):
        loads = [snapshot(idle=n * 2000, load=load) for n, load in
                 enumerate(("3.00", "2.00", "1.00", "0.50", "9.00"))]
        report, said, windows = self.wait(60, loads)
        self.assertEqual((report.quiet, windows), (True, 3))
        self.assertEqual(len(said), 1)
        self.assertIn("waiting up to 55 s", said[0])

    def test_it_gives_up_when_the_time_is_over(self):
        loads = [snapshot(idle=n * 2000, load="3.00") for n in range(9)]
        report, _, windows = self.wait(20, loads)
        self.assertEqual((report.quiet, windows), (False, 4))

    def test_a_quiet_machine_is_looked_at_once(self):
        report, said, windows = self.wait(60, [snapshot(), snapshot(idle=2000)])
        self.assertEqual((report.quiet, said, windows), (True, [], 1))


if __name__ == "__main__":
    _cases.tell()
