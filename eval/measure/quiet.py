#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the machine quiet enough to measure on, and was it while something was measured?

Two snapshots of /proc show what used the processors between them: the measured processes, other
ones, the host below a virtual machine (steal). judge() gives a verdict with its reasons. As a
program it looks at the machine once: `quiet.py [--seconds 5]`, exit status 0 or 75.
"""
import argparse
import dataclasses
import os
import pathlib
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")
EXIT_NOT_QUIET = 75   # EX_TEMPFAIL: try again later
KERNEL_THREAD = 0x00200000   # PF_KTHREAD
COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
IDLE = ("idle", "iowait", "steal")
GRAIN = 4  # a limit may be exceeded by so many ticks, because the kernel counts whole ticks
TOLD = 3   # a reason names at most so many processes


@dataclasses.dataclass(frozen=True)
class Limits:
    """Above these the machine is not quiet. Shares are of all processors' time."""
    load: float = 0.35      # load average of a minute, by processor; before the start alone
    steal: float = 0.01
    iowait: float = 0.05    # before the start alone: a measured server may wait for its disk
    others: float = 0.03    # processes that are not measured
    unseen: float = 0.05    # busy time of no process that /proc shows


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    name: str
    ticks: int      # its own, and those of children that it waited for
    started: int
    kernel: bool


@dataclasses.dataclass(frozen=True)
class Snapshot:
    cpu: dict         # ticks of all processors, by COLUMNS
    processors: int
    load: float       # of the last minute
    processes: dict   # by pid
    throttled: int    # times that a processor was slowed down because of heat
    mhz: tuple        # of each processor; empty if the machine does not report it


@dataclasses.dataclass(frozen=True)
class Report:
    quiet: bool
    reasons: tuple
    figures: dict

    def text(self):
        return "quiet" if self.quiet else "not quiet: " + "; ".join(self.reasons)

    def as_json(self):
        return dataclasses.asdict(self)


def parse_process(text):
    """Returns the Process that a text of /proc/PID/stat describes."""
    begin, end = text.index("("), text.rindex(")")
    words = text[end + 2:].split()
    return Process(int(text[:begin]), int(words[1]), text[begin + 1:end],
                   sum(map(int, words[11:15])), int(words[19]),
                   bool(int(words[6]) & KERNEL_THREAD))


def ticks_of(pid, proc=pathlib.Path("/proc")):
    """Returns the ticks of a process and of children that it waited for, or 0 if it is gone."""
    try:
        return parse_process((proc / str(pid) / "stat").read_text()).ticks
    except (OSError, ValueError):
        return 0


def numbers_in(paths):
    found = []
    for path in paths:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    return found


def take(proc=pathlib.Path("/proc"), processors=pathlib.Path("/sys/devices/system/cpu")):
    """Takes a snapshot of this machine, or of a copy of its /proc and /sys."""
    lines = (proc / "stat").read_text().splitlines()
    words = next(line for line in lines if line.startswith("cpu ")).split()[1:]
    processes = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                one = parse_process((entry / "stat").read_text())
            except (OSError, ValueError):
                continue   # it ended meanwhile
            processes[one.pid] = one
    return Snapshot(
        cpu=dict(zip(COLUMNS, map(int, words))),
        processors=sum(line.startswith("cpu") for line in lines) - 1,
        load=float((proc / "loadavg").read_text().split()[0]), processes=processes,
        throttled=sum(numbers_in(processors.glob("cpu*/thermal_throttle/*_throttle_count"))),
        mhz=tuple(n // 1000 for n in numbers_in(
            sorted(processors.glob("cpu*/cpufreq/scaling_cur_freq")))))


def with_descendants(snapshot, roots):
    """Returns those of `roots` that exist in the snapshot, and all their descendants."""
    children = {}
    for one in snapshot.processes.values():
        children.setdefault(one.parent, []).append(one.pid)
    found, queue = set(), [pid for pid in roots if pid in snapshot.processes]
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue += children.get(pid, [])
    return found


def used_between(before, after):
    """Returns the ticks that each process of the second snapshot used since the first one. The
    time of an ended process counts for the ancestor that waited for it, but only the part after
    the first snapshot."""
    used = {}
    for pid, one in after.processes.items():
        old = before.processes.get(pid)
        used[pid] = one.ticks - (old.ticks if old and old.started == one.started else 0)
    for pid, old in before.processes.items():
        new = after.processes.get(pid)
        if new and new.started == old.started:
            continue
        above = old.parent
        while above and above not in after.processes:
            above = before.processes[above].parent if above in before.processes else 0
        if above:
            used[above] -= old.ticks
    return {pid: max(ticks, 0) for pid, ticks in used.items()}


def time_between(before, after, roots):
    """Returns ({use: ticks}, ticks of all processors, [(ticks, process that is not measured)])."""
    moved = {column: after.cpu[column] - before.cpu[column] for column in COLUMNS
             if column in after.cpu}
    total = sum(moved.values())
    measured = with_descendants(before, roots) | with_descendants(after, roots)
    ours = others = kernel = 0
    named = []
    for pid, used in used_between(before, after).items():
        one = after.processes[pid]
        if pid in measured:
            ours += used
        elif one.kernel:
            kernel += used
        else:
            others += used
            named.append((used, one))
    busy = total - sum(moved.get(column, 0) for column in IDLE)
    ticks = {"steal": moved.get("steal", 0), "iowait": moved.get("iowait", 0), "measured": ours,
             "others": others, "kernel": kernel,
             "unseen": max(busy - ours - others - kernel, 0)}
    named.sort(key=lambda pair: (-pair[0], pair[1].pid))
    return ticks, total, named


def percent(share):
    return f"{100 * share:.1f} %"


def judge(before, after, roots=(), limits=Limits(), running=True, hidden=0):
    """Returns a Report of the time between two snapshots. `roots` and their descendants are the
    measured processes. If `running`, a measurement was under way, so load and iowait may be its
    own. `hidden` is the ticks of measured processes whose time no ancestor inherited."""
    ticks, total, named = time_between(before, after, roots)
    hidden = min(max(hidden, 0), ticks["unseen"])
    ticks["measured"], ticks["unseen"] = ticks["measured"] + hidden, ticks["unseen"] - hidden
    if total <= 0:
        return Report(False, ("/proc/stat does not move, so there is no verdict",), {})
    reasons = []

    def check(what, key, limit, detail=""):
        if ticks[key] > limit * total + GRAIN:
            reasons.append(f"{what} {percent(ticks[key] / total)} of all processors' time "
                           f"(limit {percent(limit)}){detail}")

    load = after.load / max(after.processors, 1)
    if not running and load > limits.load:
        reasons.append(f"load average {after.load:.2f} on {after.processors} processors "
                       f"(limit {limits.load * after.processors:.2f})")
    check("the host took (steal)", "steal", limits.steal)
    if not running:
        check("waiting for disks (iowait)", "iowait", limits.iowait)
    check("other processes used", "others", limits.others, ": " + ", ".join(
        f"{one.name} ({one.pid}) {used / TICK:.2f} s" for used, one in named[:TOLD]))
    check("processes that /proc does not show used", "unseen", limits.unseen)
    throttled = after.throttled - before.throttled
    if throttled > 0:
        reasons.append(f"heat slowed processors down {throttled} times")
    figures = {**{what: round(used / total, 4) for what, used in ticks.items()},
               "load": after.load, "throttled": throttled, "mhz": list(after.mhz)}
    return Report(not reasons, tuple(reasons), figures)


def wait(seconds, window=5, limits=Limits(), look=take, pause=time.sleep, say=print):
    """Measures windows of time until one is quiet or `seconds` are over. Returns its Report."""
    before, left, shown = look(), seconds, False
    while True:
        pause(window)
        after = look()
        report = judge(before, after, {os.getpid()}, limits, running=False)
        left -= window
        if report.quiet or left <= 0:
            return report
        if not shown:
            say(f"the machine is {report.text()}\nwaiting up to {left} s more for it to be quiet")
            shown = True
        before = after


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=5, help="how long to look (default 5)")
    options = parser.parse_args()
    report = wait(0, options.seconds)
    print(report.text())
    print(", ".join(f"{what} {value}" for what, value in report.figures.items()))
    return 0 if report.quiet else EXIT_NOT_QUIET


if __name__ == "__main__":
    sys.exit(main())
