#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long runs under load with checkpoints and faults all the time (`make eval-soak`).

Redis (INCR) and apache2 (PUT and GET of pages), one after the other or --together, three replicas
each; a checkpoint every --checkpoint-every seconds, a fault every --fault-every seconds: a node, a
server, a supervisor or a packer killed, a replica stopped for a while, the lead handed over.  At
the end no acknowledged write may be lost, schedules of all replicas must be equal, and none may
ever have differed.  Every second the rate, the errors, and what is held in memory and on disk are
noted.  Raw data: <out>/soak/soak.json, the plot beside it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from _clients import problems_of  # noqa: E402
from _pages import ANSWER_SECONDS, CLIENTS, REST_SECONDS, Pages  # noqa: E402
from dav_race import dav_configuration  # noqa: E402
from place import Place, machine, pyplot_or_none, save_plot  # noqa: E402

SERVERS = ("redis", "apache2")
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
    """Of processes, what only they have: shared memory is counted as such."""
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

class Faults:
    """What happens to a group; each returns what it did, empty: there was nothing to do it to."""

    def __init__(self, group, seed):
        self.group, self.random = group, random.Random(seed)
        self.all = [self.node, self.leader, self.server, self.supervisor, self.stop, self.packer,
                    self.transfer]

    def one(self):
        while not (done := self.random.choice(self.all)()):
            pass
        return done

    def any_replica(self):
        return self.random.randrange(3)

    def node(self):
        number = self.any_replica()
        self.group.signal_node(number, signal.SIGKILL)
        return f"node of replica {number} killed"

    def leader(self):
        number = self.group.leader()
        self.group.signal_node(number, signal.SIGKILL)
        return f"node of the leader, replica {number}, killed"

    def server(self):
        number = self.any_replica()
        self.group.signal_server(number, signal.SIGKILL)
        return f"server of replica {number} killed"

    def supervisor(self):
        number = self.any_replica()
        supervisors = [p for p in h.children(self.group.replica(number)["node_pid"])
                       if h.name_of(p) == "crane-container"]
        for pid in supervisors:
            os.kill(pid, signal.SIGKILL)
        return f"supervisor of replica {number} killed" if supervisors else ""

    def packer(self):
        """The next one that there is, within a while."""
        with contextlib.suppress(h.Failure):
            pid = h.wait_until(self.a_packer, 10, "")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return "packer killed"
        return ""

    def a_packer(self):
        for number in range(3):
            for pid in h.children(self.group.replica(number)["node_pid"]):
                if h.name_of(pid) == "crane-ckpt":
                    return pid
        return None

    def stop(self):
        number = self.any_replica()
        server = self.group.replica(number)["server_pid"]
        pids = [self.group.running_pid(number), *h.descendants([server])]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(self.random.uniform(0.2, 3))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return f"replica {number} stopped for a while"

    def transfer(self):
        to = (self.group.leader() + self.random.choice((1, 2))) % 3
        subprocess.run([str(self.group.scenario.out / "crane-ctl"), "--dir", str(self.group.home),
                        "leader", "transfer", self.group.name, "--to", str(to)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                       check=False)
        return f"lead offered to replica {to}"


def whole(group):
    """Until three replicas follow one another closely; how long that took."""
    begin = time.monotonic()
    end = max(s["commit"] for s in group.statuses().values() if s)

    def all_there():
        said = group.statuses()
        return len(said) == 3 and all(s and s["server_pid"] and s["applied"] >= end
                                      for s in said.values())
    h.wait_until(all_there, WHOLE_SECONDS, "all replicas follow again")
    return time.monotonic() - begin


def equal(group):
    """What is wrong with the replicas when all stand at one entry."""
    said = h.at_rest(group, 60)
    wrong = []
    if len({(s["clock"], s["schedule_hash"]) for s in said.values()}) != 1:
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


def one_soak(place, name, port, program, load, options):
    with h.Group(place, program, port=port,
                 options=["--checkpoint-every", str(options.checkpoint_every)]) as group:
        with load(port, options.seed, options.rest) as clients:
            h.wait_until(lambda: all(c.answers > 5 for c in clients.clients), 30, "all are served")
            notes, faults, done = Notes(group, clients), Faults(group, options.seed), []
            notes.start()
            h.wait_until(lambda: any(said["checkpoint"]["taken"] for said in
                                     group.statuses().values() if said),
                         60 + options.checkpoint_every, "the first checkpoint")
            end = options.minutes * 60
            while notes.now() < end:
                due = notes.now() + options.fault_every
                at, what = notes.now(), faults.one()
                took = whole(group)
                done.append({"at": at, "what": what, "whole_after_s": took})
                print(f"  {name} {at:7.1f} s: {what}; whole after {took:.1f} s", flush=True)
                while notes.now() < min(due, end) and notes.is_alive():
                    time.sleep(0.2)
            notes.stopping.set()
            notes.join(30)
            clients.stop()
            problems = clients.problems() + equal(group)
        answers = sum(c.answers for c in clients.clients)
    return {"server": name, "seconds": end, "seed": options.seed, "rest": options.rest,
            "load_average": os.getloadavg()[0], "answers": answers,
            "faults": done, "rows": notes.rows, "problems": problems,
            "reconnects": sum(c.reconnects for c in clients.clients)}


def plot(path, runs):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    figure, panes = pyplot.subplots(3, len(runs), figsize=(6.5 * len(runs), 7), sharex="col",
                                    squeeze=False)
    for column, run in enumerate(runs):
        at = [r["at"] / 60 for r in run["rows"]]
        rate, memory, disk = (row[column] for row in panes)
        rate.plot(at, [r["answers"] for r in run["rows"]], linewidth=0.7, color="#3465a4")
        rate.set_title(f"{run['server']}: {run['answers']} answers, {len(run['faults'])} faults, "
                       f"{len(run['problems'])} problems", fontsize=9)
        rate.set_ylabel("answers in a second")
        memory.plot(at, [r["resident_mb"] for r in run["rows"]], label="processes")
        memory.plot(at, [r["shm_mb"] for r in run["rows"]], label="shared memory")
        memory.set_ylabel("memory, MB")
        memory.legend(fontsize=7)
        disk.plot(at, [r["disk_mb"] for r in run["rows"]], color="#4e9a06")
        disk.set_ylabel("disk, MB")
        disk.set_xlabel("minutes (red: a fault)")
        for pane in (rate, memory, disk):
            pane.set_ylim(bottom=0)
            for fault in run["faults"]:
                pane.axvline(fault["at"] / 60, color="#cc0000", linewidth=0.4)
    save_plot(figure, path, 130)


def one_after_the_other(options, out, results):
    runs, about = [], machine()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-soak-", dir="/var/tmp"))
    work.chmod(0o755)
    try:
        place = Place(out, work, "soak")
        for name, port, program, load in servers(place):
            if options.only not in ("", name):
                continue
            runs.append(one_soak(place, name, port, program, load, options))
            tell(runs[-1])
            (results / "soak.json").write_text(json.dumps({"machine": about, "runs": runs}))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return runs


def together(options, results):
    """Each server by a program of its own."""
    apart = {name: results / name for name in SERVERS}
    same = [word for word in sys.argv[1:] if word != "--together"]
    begun = [subprocess.Popen([sys.executable, __file__, *same, "--only", name, "--results",
                               str(directory)]) for name, directory in apart.items()]
    try:
        for process in begun:
            process.wait()
    finally:
        for process in begun:
            process.terminate()
            process.wait()
    found = [json.loads((directory / "soak.json").read_text()) for directory in apart.values()]
    (results / "soak.json").write_text(json.dumps(
        {"machine": found[0]["machine"], "runs": [run for one in found for run in one["runs"]]}))
    return [run for one in found for run in one["runs"]]


def tell(run):
    rows = run["rows"]
    half = len(rows) // 2
    taken = sum(max(b["checkpoints"]["taken"] - a["checkpoints"]["taken"], 0)
                for a, b in zip(rows, rows[1:]))
    print(f"{run['server']}: {run['seconds'] / 60:.0f} minutes, seed {run['seed']}: "
          f"{run['answers']} answers, {run['reconnects']} reconnections, {taken} checkpoints, "
          f"{len(run['faults'])} faults, all whole within "
          f"{max(f['whole_after_s'] for f in run['faults']):.1f} s")
    for what in ("resident_mb", "shm_mb", "disk_mb"):
        print(f"  {what}: most of the first half {max(r[what] for r in rows[:half]):.0f}, "
              f"of the second {max(r[what] for r in rows[half:]):.0f}")
    for problem in run["problems"]:
        print(f"  PROBLEM {problem[:600]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out/release")
    parser.add_argument("--minutes", type=float, default=60, help="of each server")
    parser.add_argument("--checkpoint-every", type=int, default=20, help="seconds")
    parser.add_argument("--fault-every", type=float, default=30, help="seconds")
    parser.add_argument("--only", default="", help="redis or apache2")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31))
    parser.add_argument("--rest", type=float, default=REST_SECONDS,
                        help=f"seconds between an answer and the next request ({REST_SECONDS})")
    parser.add_argument("--together", action="store_true", help="both at the same time")
    parser.add_argument("--results", help="directory for raw data and plot (<out>/soak)")
    options = parser.parse_args()
    h.need("redis-server", "apache2")
    h.end_at_sigterm()
    out = pathlib.Path(options.out).resolve()
    results = pathlib.Path(options.results or out / "soak").resolve()
    results.mkdir(parents=True, exist_ok=True)
    runs = (together(options, results) if options.together
            else one_after_the_other(options, out, results))
    print(f"raw: {results}/soak.json")
    plot(results / "soak.png", runs)
    return 1 if any(run["problems"] for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
