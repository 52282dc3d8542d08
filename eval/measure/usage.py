# SPDX-License-Identifier: Apache-2.0
"""Processor time of the measured processes, those that ended meanwhile included.

The time of a child becomes its parent's if that one waits for it. Under Crane, and for a server
that ignores SIGCHLD, the kernel takes ended children away, and no process inherits their time. A
control group has it: that of the replica's container, or one that a native server is started in.
So a process in a control group other than ours is counted by that group.
"""
import contextlib
import itertools
import os
import pathlib

import quiet


def control_group(pid, root=pathlib.Path("/")):
    """The file that has the processor time of a process' control group, or None."""
    try:
        lines = (root / f"proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None
    unified = None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            return root / "sys/fs/cgroup" / controllers / path.lstrip("/") / "cpuacct.usage"
        if not controllers:
            unified = root / "sys/fs/cgroup" / path.lstrip("/") / "cpu.stat"
    return unified


def seconds_in(path):
    """Returns the seconds in a file cpuacct.usage (version 1, ns) or cpu.stat (version 2, us), or
    None if it cannot be read."""
    try:
        words = path.read_text().split()
        if path.name == "cpuacct.usage":
            return int(words[0]) / 1e9
        return int(words[words.index("usage_usec") + 1]) / 1e6
    except (OSError, ValueError):
        return None


NUMBERS = itertools.count()


def make_group(beside=None):
    """A control group for a native server, or None: this needs root, and control groups."""
    beside = beside or control_group(os.getpid())
    if not beside:
        return None
    group = beside.parent / f"crane-native-{os.getpid()}-{next(NUMBERS)}"
    try:
        group.mkdir()
    except OSError:
        return None
    return group


def enter_group(group):
    """Moves a child into its control group before it becomes the server. Without a group, /proc
    supplies its time."""
    if group:
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text("0")


def signal_group(group, signo):
    """Sends a signal to every process in the control group."""
    if group:
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signo)


def remove_group(group):
    """True: it is gone. Not while a process is in it."""
    if group:
        try:
            group.rmdir()
        except OSError:
            return False
    return True


def cpu_seconds(pids, own=None, root=pathlib.Path("/")):
    """Returns the time of the control groups of `pids`. A process in the control group of `own` is
    counted by itself."""
    ours = control_group(own or os.getpid(), root)
    groups, ticks = {}, 0
    for pid in pids:
        group = control_group(pid, root)
        if group and group != ours and group not in groups:
            groups[group] = seconds_in(group)
        if not group or group == ours or groups[group] is None:
            ticks += quiet.ticks_of(pid, root / "proc")
    return sum(seconds or 0 for seconds in groups.values()) + ticks / quiet.TICK


def seconds_of(pids, proc=pathlib.Path("/proc")):
    """Returns the time of all living threads of `pids`, to the nanosecond."""
    total = 0
    for pid in pids:
        for task in (proc / str(pid) / "task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError):
                total += int(task.read_text().split()[0])
    return total / 1e9


class Watch:
    """Counts, since it was created, the use of measured processes and of the other ones."""

    def __init__(self, pids):
        self.seconds, self.ticks = cpu_seconds(pids), sum(map(quiet.ticks_of, pids))
        self.before = quiet.take()

    def report(self, pids):
        """Returns (processor time in seconds, Report). This process and what it started are
        measured, too: it is the load's parent."""
        after = quiet.take()
        used = cpu_seconds(pids) - self.seconds
        hidden = used * quiet.TICK - (sum(map(quiet.ticks_of, pids)) - self.ticks)
        return used, quiet.judge(self.before, after, {os.getpid(), *pids}, hidden=hidden)
