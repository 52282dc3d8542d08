# SPDX-License-Identifier: Apache-2.0
"""Long runs under load with checkpoints and faults all the time.

Redis (INCR) and apache2 (PUT and GET of pages), one after the other or --together, three replicas
each; a checkpoint every --checkpoint-every seconds, a fault every --fault-every seconds: a node, a
server, a supervisor or a packer killed, a replica stopped for a while, the lead handed over.  At
the end no acknowledged write may be lost, schedules of all replicas must be equal, and none may
ever have differed.  Every second the rate, the errors, and what is held in memory and on disk are
noted.
"""
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import threading
import time

import _harness as h
import session
import tables
from _clients import problems_of
from _pages import ANSWER_SECONDS, CLIENTS, REST_SECONDS, Pages
from _storm_faults import Faults, kinds
from dav_race import dav_configuration

OPTIONS = {"minutes": (60.0, "of each server"), "checkpoint_every": (20, "seconds"),
           "fault_every": (30.0, "seconds"), "only": ("", "redis or apache2"),
           "seed": (0, "of the faults (default: at random)"),
           "rest": (REST_SECONDS, "seconds between an answer and the next request"),
           "together": (False, "both at the same time")}
PROGRAMS = ("redis-server", "apache2")
WHOLE_SECONDS = 60     # until all replicas follow again after a fault


class PacedCounter(h.Counter):
    """One that rests between two requests."""

    def __init__(self, port, name, rest):
        super().__init__(port, name, ANSWER_SECONDS)
        self.rest = rest

    def connect(self):
        client = super().connect()

        def ask(*words):
            time.sleep(self.rest)
            return client(*words)
        ask.close = client.close
        return ask


class Counters(Pages):
    def __init__(self, port, _seed, rest):
        super().__init__(port, 0, rest)
        self.clients = [PacedCounter(port, n, rest) for n in range(CLIENTS)]
        self.port = port

    def problems(self):
        with contextlib.closing(h.Redis(self.port, 10)) as client:
            return problems_of(self.clients, client)


# --- what is noted ------------------------------------------------------------------------------

def resident_mb(pids):
    """Returns the private memory of the processes; shared memory is counted separately."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
            found = re.search(r"RssAnon:\s+(\d+)", text)
            total += int(found.group(1)) if found else 0
    return total / 1024


def disk_mb(path):
    total = 0
    for place, directories, files in os.walk(path, onerror=lambda _: None):
        directories[:] = [d for d in directories if d != "rootfs"]
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total / 1e6


class Notes(threading.Thread):
    """A row every second."""

    def __init__(self, group, load):
        super().__init__(daemon=True)
        self.group, self.load, self.rows = group, load, []
        self.begin = time.monotonic()
        self.stopping = threading.Event()

    def now(self):
        return time.monotonic() - self.begin

    def run(self):
        before = 0
        while not self.stopping.wait(1):
            answers = sum(c.answers for c in self.load.clients)
            said = [s["checkpoint"] for s in self.group.statuses().values() if s]
            self.rows.append({
                "at": self.now(), "answers": answers - before,
                "reconnects": sum(c.reconnects for c in self.load.clients),
                "resident_mb": resident_mb(self.group.processes()),
                "shm_mb": disk_mb(f"/dev/shm/crane.{self.group.name}"),
                "disk_mb": disk_mb(self.group.dir),
                "checkpoints": {"taken": sum(c["taken"] for c in said),
                                "failed": sum(c["failed"] for c in said)}})
            before = answers


# --- faults -------------------------------------------------------------------------------------

STORMS = ("kill node", "kill server", "kill supervisor", "stop node 0.2 s", "stop node 2 s",
          "transfer")


def kill_packer(group):
    """The next one that there is, within a while; empty: there is none."""
    def a_packer():
        return next((pid for number in range(3)
                     for pid in h.children(group.replica(number)["node_pid"])
                     if h.name_of(pid) == "crane-ckpt"), None)
    with contextlib.suppress(h.Failure):
        pid = h.wait_until(a_packer, 10, "")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return "killed"
    return ""


def one_fault(faults):
    """Causes one random fault; returns its description."""
    all_kinds = {name: kind.strike for name, kind in kinds(faults).items() if name in STORMS}
    all_kinds["packer"] = lambda: kill_packer(faults.group)
    done = ""
    while not done:
        name = faults.random.choice(list(all_kinds))
        done = all_kinds[name]()
    return f"{name}: {done}"


def whole(group):
    """Waits until three replicas follow one another closely; returns how long that took."""
    begin = time.monotonic()
    end = max(s["commit"] for s in group.statuses().values() if s)

    def all_there():
        statuses = group.statuses()
        return len(statuses) == 3 and all(s and s["server_pid"] and s["applied"] >= end
                                          for s in statuses.values())
    h.wait_until(all_there, WHOLE_SECONDS, "all replicas follow again")
    return time.monotonic() - begin


def equal(group):
    """Waits until all replicas are at one entry; returns the differences between them."""
    statuses = h.at_rest(group, 60)
    wrong = []
    if len({(s["clock"], s["schedule_hash"]) for s in statuses.values()}) != 1:
        wrong.append(f"schedules differ: {group.brief()}")
    for number in range(3):
        log = (group.dir / f"r{number}" / "node.log").read_text(errors="replace")
        wrong += [f"r{number}: {line}" for line in log.splitlines() if "diverged" in line]
    return wrong


# --- a run --------------------------------------------------------------------------------------

def servers(place):
    port = h.free_port()
    yield "redis", port, h.redis_program(port), Counters
    port = h.free_port()
    # Without its access log, which grows as long as it serves.
    conf = dav_configuration(place.work, port, files=())
    yield "apache2", port, ["apache2", "-f", str(conf)], Pages


def one_soak(place, name, port, program, load, options, seed):
    with h.Group(place, program, port=port,
                 options=["--checkpoint-every", str(options.checkpoint_every)]) as group:
        with load(port, seed, options.rest) as clients:
            h.wait_until(lambda: all(c.answers > 5 for c in clients.clients), 30, "all are served")
            notes, faults, done = Notes(group, clients), Faults(group, random.Random(seed), []), []
            notes.start()
            h.wait_until(lambda: any(said["checkpoint"]["taken"] for said in
                                     group.statuses().values() if said),
                         60 + options.checkpoint_every, "the first checkpoint")
            end = options.minutes * 60
            while notes.now() < end:
                due = notes.now() + options.fault_every
                at, what = notes.now(), one_fault(faults)
                took = whole(group)
                done.append({"at": at, "what": what, "whole_after_s": took})
                print(f"  {name} {at:7.1f} s: {what}; whole after {took:.1f} s", flush=True)
                while notes.now() < min(due, end) and notes.is_alive():
                    time.sleep(0.2)
            faults.end()
            notes.stopping.set()
            notes.join(30)
            clients.stop()
            problems = clients.problems() + equal(group)
        answers = sum(c.answers for c in clients.clients)
    return {"server": name, "seconds": end, "seed": seed, "rest": options.rest,
            "load_average": os.getloadavg()[0], "answers": answers,
            "faults": done, "rows": notes.rows, "problems": problems,
            "reconnects": sum(c.reconnects for c in clients.clients)}


def measure(x):
    """Each server in a process of its own: together they do not wait for one interpreter."""
    o, begun = x.options, []
    seed = o.seed or random.SystemRandom().randrange(1, 1 << 31)
    try:
        for number, (name, *rest) in enumerate(servers(x.place)):
            if o.only not in ("", name):
                continue
            file, place = x.work / f"{name}.json", session.Place(x.out, x.work, name)
            place.numbers = 100 * number   # the groups' ports and names are their own
            begun.append((name, file, multiprocessing.get_context("fork").Process(
                target=lambda f=file, p=place, words=(name, *rest): f.write_text(json.dumps(
                    one_soak(p, *words, o, seed))))))
            begun[-1][-1].start()
            if not o.together:
                begun[-1][-1].join()
        for name, file, process in begun:
            process.join()
            if process.exitcode != 0:
                raise h.Failure(f"{name}: the process of its soak ended with {process.exitcode}")
            x.add({"key": [name, 0], **json.loads(file.read_text())})
    finally:
        for _, _, process in begun:
            process.terminate()
            process.join()


def text(rows, _):
    lines = []
    for run in rows:
        of, half = run["rows"], len(run["rows"]) // 2
        taken = sum(max(b["checkpoints"]["taken"] - a["checkpoints"]["taken"], 0)
                    for a, b in zip(of, of[1:]))
        lines.append([f"{run['server']}, seed {run['seed']}", f"{run['seconds'] / 60:.1f}",
                      run["answers"], run["reconnects"], taken, len(run["faults"]),
                      f"{max(f['whole_after_s'] for f in run['faults']):.1f}",
                      *(f"{max(r[what] for r in of[:half]):.0f} / "
                        f"{max(r[what] for r in of[half:]):.0f}"
                        for what in ("resident_mb", "shm_mb", "disk_mb")), len(run["problems"])])
    return tables.table(["server", "minutes", "answers", "reconnections", "checkpoints", "faults",
                         "all whole within, s", "resident, MB: most of both halves",
                         "shared memory", "disk", "problems"], lines)


def problems(rows, _):
    return [f"{run['server']}: {problem[:600]}" for run in rows for problem in run["problems"]]


def panes(runs, _):
    rows = [{**row, "server": run["server"], "minutes": row["at"] / 60}
            for run in runs for row in run["rows"]]
    return [tables.line(rows, "minutes", what, "server", mark="")
            for what in ("answers", "resident_mb", "shm_mb", "disk_mb")]
