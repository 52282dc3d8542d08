# SPDX-License-Identifier: Apache-2.0
"""Counts wake-ups, system calls, copies and processor time of a server and its node."""
import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess

import _harness as h
import usage
from start import LEAST

# System calls that copy bytes between a process and the kernel.
COPIES = ("read", "readv", "pread64", "preadv", "recvfrom", "recvmsg", "recvmmsg", "write",
          "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "sendmmsg")
ALL_CALLS = "raw_syscalls:sys_enter"
EVENTS = ",".join([ALL_CALLS, *(f"syscalls:sys_enter_{name}" for name in COPIES)])
READY_SECONDS, ATTEMPTS = 20, 10
SHORTER = {"perf": 4, "strace": 20}   # the second load is the first one divided by this


# --- context switches -----------------------------------------------------------------------------

def switches_in(text):
    """Returns (voluntary, involuntary) of the text of a thread's /proc status."""
    found = dict(re.findall(r"^(\w*voluntary_ctxt_switches):\s+(\d+)$", text, re.M))
    return (int(found.get("voluntary_ctxt_switches", 0)),
            int(found.get("nonvoluntary_ctxt_switches", 0)))


def switches_of(pids):
    """{(pid, thread): (voluntary, involuntary)}"""
    found = {}
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):
                found[pid, task.parent.name] = switches_in(task.read_text())
    return found


def switches_between(before, after):
    """Returns (voluntary, involuntary, threads that ended and took their last ones along)."""
    sums = [sum(after[task][kind] - before.get(task, (0, 0))[kind] for task in after)
            for kind in (0, 1)]
    return (*sums, sum(task not in after for task in before))


# --- system calls ---------------------------------------------------------------------------------

def events_in(text):
    """{event: count} of `perf stat -x,`; without events that it could not count."""
    rows = [line.split(",") for line in text.splitlines()]
    return {row[2]: int(row[0]) for row in rows if len(row) > 2 and row[0].isdigit()}


def perf_counts(text):
    """Returns (system calls, those that copy), or None: nothing was counted."""
    counts = events_in(text)
    if ALL_CALLS not in counts:
        return None
    return counts[ALL_CALLS], sum(counts.values()) - counts[ALL_CALLS]


def strace_counts(text):
    """Returns the calls that `strace -c` counted."""
    calls = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 5 and words[3].isdigit():
            calls[words[-1]] = int(words[3])
    total = calls.pop("total", None)
    return None if total is None else (total, sum(calls.get(name, 0) for name in COPIES))


class Counter:
    """Counts system calls of processes, their threads and children, while it is entered. `find`
    lists the processes; one that ends before the tool has it makes the tool give up, so it is
    started again with a new list."""

    def __init__(self, find, work):
        self.find, self.output, self.work = find, work / "counted", work

    def __enter__(self):
        for _ in range(ATTEMPTS):
            self.pids = [pid for pid in self.find() if h.alive(pid)]
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                if h.wait_until(self.state, READY_SECONDS, f"{self.name} counts") == "counts":
                    return self
            except BaseException:
                self.end()
                raise
        raise h.Failure(f"{self.name} ended with status {self.process.returncode}, "
                        f"{ATTEMPTS} times, before it counted")

    def state(self):
        if self.process.poll() is not None:
            return "ended"
        return "counts" if self.counting() else None

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __exit__(self, *_):
        self.end()
        text = self.output.read_text() if self.output.exists() else ""
        self.found = self.counts(text)


class Perf(Counter):
    name, events, counts = "perf", EVENTS, staticmethod(perf_counts)

    def command(self):
        """perf begins when a pipe says so, and answers through another one."""
        names = self.work / "control", self.work / "answer"
        for name in names:
            name.unlink(missing_ok=True)
            os.mkfifo(name)
        self.ends = [open(os.open(name, os.O_RDWR | os.O_NONBLOCK), "r+b", buffering=0)
                     for name in names]
        self.ends[0].write(b"enable\n")
        return ["perf", "stat", "-x,", "-e", self.events, "-D", "-1", "--control",
                f"fifo:{names[0]},{names[1]}", "-o", str(self.output), "-p",
                ",".join(map(str, self.pids))]

    def counting(self):
        return bool(select.select([self.ends[1]], [], [], 0)[0])

    def end(self):
        super().end()
        for end in self.ends:
            end.close()


class Strace(Counter):
    name, counts = "strace", staticmethod(strace_counts)

    def command(self):
        return ["strace", "-c", "-f", "-o", str(self.output),
                *(word for pid in self.pids for word in ("-p", str(pid)))]

    def counting(self):
        return all(re.search(r"^TracerPid:\s+[1-9]", text, re.M)
                   for pid in self.pids for text in statuses_of(pid))


def statuses_of(pid):
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):
            yield task.read_text()


def counter():
    """Returns (Perf or Strace, reason) for the tool that can count system calls here, or (None,
    reason)."""
    reasons = []
    for kind, command in ((Perf, ["perf", "stat", "-x,", "-e", EVENTS, "--", "true"]),
                          (Strace, ["strace", "-c", "-f", "true"])):
        if not shutil.which(command[0]):
            reasons.append(f"{command[0]} is not installed")
            continue
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode == 0 and kind.counts(done.stderr):
            return kind, "; ".join(reasons)
        reasons.append(f"{command[0]} cannot count here: {done.stderr.strip()[:200]}")
    return None, "; ".join(reasons)


# --- a server and its node ------------------------------------------------------------------------

# The counters of the node's status: the name there and the name here.
STATUS = {"clock": "turns", "entries_total": "entries", "wakeups": "own_wakeups",
          "bytes_in": "bytes_in", "bytes_out": "bytes_out"}
HEADER_BYTES = 72   # of an entry in the log (consensus/core/log.h)


def parts_of(here, number=0):
    """{part: its processes}: server and node are counted apart, of that replica."""
    if not isinstance(here, h.Group):
        return {"server": here.processes()}
    replica = here.replica(number)
    server = h.descendants([replica["server_pid"]])
    return {"server": server,
            "node": [pid for pid in h.descendants([replica["node_pid"]]) if pid not in server]}


class Counts:
    """The counters of a server and its node, of the leader's replica, at one moment."""

    def __init__(self, here):
        number = here.leader() if isinstance(here, h.Group) else 0
        self.parts = parts_of(here, number)
        self.switches = {part: switches_of(pids) for part, pids in self.parts.items()}
        # A server that a control group counts is counted to the nanosecond; the node is not.
        self.seconds = {part: usage.seconds_of(pids) if part == "node" else usage.cpu_seconds(pids)
                        for part, pids in self.parts.items()}
        self.status = (here.status(number) or {}) if isinstance(here, h.Group) else {}


def per_request(before, after, served):
    """{what: figure of one request} between two Counts."""
    found = {}
    for part in after.parts:
        woken, forced, ended = switches_between(before.switches[part], after.switches[part])
        found[f"{part}_wakeups"], found[f"{part}_preempted"] = woken / served, forced / served
        found[f"{part}_ended"] = ended   # threads, in all
        found[f"{part}_us"] = (after.seconds[part] - before.seconds[part]) * 1e6 / served
    found.update({here: (after.status[there] - before.status[there]) / served
                  for there, here in STATUS.items() if there in after.status})
    if "entries" in found:
        found["log_bytes"] = found["bytes_in"] + HEADER_BYTES * found["entries"]
    return found


def calls_per_request(here, server, requests, kind, work):
    """{part_calls, part_copies} of one more load, by Perf or Strace."""
    requests = max(requests // SHORTER[kind.name], min(requests, LEAST))
    with contextlib.ExitStack() as stack:
        tools = {}
        for part in parts_of(here):
            (work / part).mkdir(parents=True)
            tools[part] = stack.enter_context(
                kind(lambda part=part: parts_of(here)[part], work / part))
        served = server.requests_made(requests, server.load(requests))
    return {f"{part}_{what}": count / served for part, tool in tools.items() if tool.found
            for what, count in zip(("calls", "copies"), tool.found)}
