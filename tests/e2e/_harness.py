# SPDX-License-Identifier: Apache-2.0
"""The base of every scenario: groups of replicas, servers, clients, conditions with deadlines.

A scenario is a program. It prints its steps, PASS or FAIL lines, and `N passed, N failed` at the
end. Its exit status is 0, 1, or 77 if it cannot run on this machine. Scenarios do not sleep:
wait_until() polls a condition with a deadline. At the end of a scenario all of its processes and
files are removed; with --keep the directory stays.
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
import socket
import subprocess
import sys
import tempfile
import time
import traceback

from _checks import CannotRun, Failure, wait_until
from _clients import (Counter, Load, Redis, ab, ab_good, apache_configuration, http, problems_of,
                      redis_answers, redis_program)

__all__ = ["CannotRun", "Counter", "Failure", "Group", "Load", "Redis", "Scenario", "ab", "ab_good",
           "alive", "apache_configuration", "can_contain", "descendants", "free_port", "http",
           "need", "process_stat", "redis_answers", "redis_program", "run_scenario", "stopped",
           "tail", "wait_until"]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
START_SECONDS = 180   # the first start on a machine saves the state of its files
STOP_SECONDS = 30
# The steps of a daemon at its start.
BACKGROUND = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
time.sleep(600)
"""


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            raise CannotRun(f"{program} is not installed (make deps)")


def tail(path, lines=25):
    try:
        return "\n".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"({error})"


def free_port(first=20000, end=32000):
    """A free port; by default below the range of outgoing connections."""
    while True:
        port = random.randrange(first, end)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def can_contain():
    if os.geteuid() != 0:
        return False
    return any(pathlib.Path(d).glob("liblxc.so.1") for d in ("/usr/lib/x86_64-linux-gnu",
                                                              "/usr/lib/aarch64-linux-gnu",
                                                              "/usr/lib64", "/usr/lib"))


# --- processes ----------------------------------------------------------------------------------

def process_stat(pid):
    """Returns (parent, user ticks + system ticks, state) of a process, or None."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    words = text[text.rindex(")") + 2:].split()
    return int(words[1]), int(words[11]) + int(words[12]), words[0]


def descendants(roots):
    """The processes `roots` and all their descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = process_stat(entry)
            if stat:
                children.setdefault(stat[0], []).append(int(entry))
    found, queue = [], [r for r in roots if r and r > 0 and process_stat(r)]
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.append(pid)
            queue += children.get(pid, [])
    return found


def children(pid):
    """The children of all threads of the process, without grandchildren."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(word) for word in task.read_text().split()]
    return found


def name_of(pid):
    """The name of a process; None: it is gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def alive(pid):
    stat = process_stat(pid)
    return stat is not None and stat[2] not in "ZX"


@contextlib.contextmanager
def stopped(pid):
    """Stops a process inside the context."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# --- a group ------------------------------------------------------------------------------------

def at_rest(group, seconds=30, count=3):
    """Statuses of `count` replicas at the same entry. Timers of an idle server still run, so
    statuses that are read one after the other may differ."""
    def at_one_entry():
        statuses = group.statuses()
        still = len(statuses) == count and all(s and s["settled"] for s in statuses.values())
        return statuses if still and len({s["applied"] for s in statuses.values()}) == 1 else None
    group.settle(max(60, seconds))
    return wait_until(at_one_entry, seconds, f"the replicas of {group.name} rest at one entry")


def is_whole(statuses):
    """All replicas run and vote. A replica that came back without its memory votes when it has
    caught up; until then the group may not survive the loss of another one."""
    return all(s and s["server_pid"] and all(m["member"] == "voter" for m in s["members"])
               for s in statuses.values())


def is_near(statuses, entries):
    """All replicas are ready, and any two are less than `entries` entries apart."""
    if not is_whole(statuses):
        return False
    applied = [s["applied"] for s in statuses.values()]
    return max(applied) - min(applied) < entries


class Group:
    """crane-run and its group. As a context manager, stops it and checks that nothing is left."""

    def __init__(self, scenario, program, *, replicas=3, port=None, options=(), record=False,
                 container=None, name=None):
        self.scenario, self.program = scenario, list(program)
        self.replicas, self.port = replicas, port
        self.options = list(options)
        self.container = can_contain() if container is None else container
        self.name = name or f"{scenario.name}-{os.getpid()}-{scenario.next_number()}"
        self.home = scenario.work / "groups"
        self.dir = self.home / self.name
        self.record = scenario.work / f"record-{self.name}" if record else None
        self.log = scenario.work / f"{self.name}.log"
        self.process, self.known = None, set()
        self.reigns_at_start = 0

    def command(self):
        words = [str(self.scenario.out / "crane-run"), "-n", str(self.replicas), "--name",
                 self.name,
                 "--dir", str(self.home)]
        if self.record:
            words += ["--record", str(self.record)]
        if not self.container:
            words += ["--no-container"]
        return words + self.options + ["--"] + self.program

    def __enter__(self):
        self.start()
        return self

    def launch(self):
        self.home.mkdir(exist_ok=True)
        self.home.chmod(0o755)
        self.began = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd="/",
                                            stdin=subprocess.DEVNULL, start_new_session=True)

    def start(self):
        self.launch()
        try:
            wait_until(self.is_ready, START_SECONDS, f"group {self.name} serves")
        except BaseException:   # also SystemExit: no group outlives its scenario
            self.explain()
            self.kill_all()
            raise
        self.reigns_at_start = len(self.reigns())

    def is_ready(self):
        if self.process.poll() is not None:
            raise Failure(f"crane-run ended with status {self.process.returncode}:\n"
                          + tail(self.log))
        state = self.state()
        if not state or not state.get("ready") or state.get("leader") is None:
            return False
        if state["pid"] != self.process.pid:
            return False   # the state is from the previous crane-run, which was killed
        self.remember(state)
        return self.listens(state)

    def listens(self, state):
        listening = [p["published"] for p in state["listening"]]
        return self.port in listening if self.port else bool(listening)

    def state(self):
        try:
            return json.loads((self.dir / "state.json").read_text())
        except (OSError, ValueError):
            return None

    def remember(self, state):
        for r in state["replicas"]:
            self.known |= {r["node_pid"], r["server_pid"]} - {None}
        self.known |= set(descendants(list(self.known) + [self.process.pid]))

    def replica(self, number):
        state = self.state()
        if not state:
            raise Failure(f"group {self.name} has no state file")
        return state["replicas"][number]

    def live(self):
        state = self.state() or {"replicas": []}
        return [r["replica"] for r in state["replicas"] if r["role"] != "dead"
                and r["node_pid"] and alive(r["node_pid"])]

    def leader(self):
        """Waits for a living leader and returns its number."""
        def found():
            state = self.state()
            if not state or state["leader"] is None:
                return None
            pid = state["replicas"][state["leader"]]["node_pid"]
            return [state["leader"]] if pid and alive(pid) else None
        return wait_until(found, 20, f"group {self.name} has a leader")[0]

    @property
    def addresses(self):
        """The addresses that serve each replica's clients."""
        return ["127.0.0.1"] * self.replicas

    def asked(self, questions, seconds=60):
        """The result of questions(client) with the leader's server. It runs again if the lead
        changed meanwhile, so it must not change the server."""
        def answer():
            try:
                client = Redis(self.port, 30, self.addresses[self.leader()])
            except OSError:
                return None
            try:
                return [questions(client)]
            except OSError:
                return None
            finally:
                client.close()
        return wait_until(answer, seconds, f"{self.name} answers whole questions")[0]

    def problems_of(self, counters):
        """The problems of stopped Counters, compared with the leader's server."""
        return self.asked(lambda client: problems_of(counters, client))

    def status(self, number):
        """The status of a node, or None."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            try:
                s.connect(str(self.dir / f"r{number}" / "control.sock"))
                s.send(b'{"do":"status"}')
                return json.loads(s.recv(65536))
            except (OSError, ValueError):
                return None

    def statuses(self, numbers=None):
        return {n: self.status(n) for n in (self.live() if numbers is None else numbers)}

    def alarm(self):
        """Live checking found a difference: a live replica reports it, or one has left."""
        return (len(self.live()) < self.replicas
                or any(s and s["verified"]["alarm"] for s in self.statuses().values()))

    def verified(self, index):
        """All replicas have been compared beyond this log index."""
        statuses = self.statuses(range(self.replicas))
        return all(s and s["verified"]["index"] > index for s in statuses.values())

    def settle(self, seconds=30, numbers=None):
        """Waits until the live replicas have applied all entries that the log had at the call."""
        end = max((s["last"] for s in self.statuses(numbers).values() if s), default=0)
        same = {"digests": None, "times": 0}

        def done():
            all_said = self.statuses(numbers)
            if not all_said or any(s is None or s["applied"] < end for s in all_said.values()):
                return False
            digests = {(s["outputs_digest"], s["outputs_bytes"]) for s in all_said.values()}
            same["times"] = same["times"] + 1 if digests == same["digests"] else 0
            same["digests"] = digests
            return all_said if len(digests) == 1 and same["times"] >= 10 else False
        try:
            return wait_until(done, seconds, f"the replicas of {self.name} agree on their outputs")
        except Failure as failure:
            raise Failure(f"{failure}: {self.brief()}") from None

    def are_whole(self):
        return is_whole(self.statuses(range(self.replicas)))

    def are_near(self, entries):
        return is_near(self.statuses(range(self.replicas)), entries)

    def verdict(self):
        """Returns (exit status, crane-ctl status -o json)."""
        status, text = ctl(self.scenario, "--dir", str(self.home), "status", self.name, "-o",
                           "json")
        return status, json.loads(text)

    def may_lose_one(self):
        """crane-ctl status reports that all is well and that a loss now is survived at once."""
        status, answer = self.verdict()
        return status == 0 and answer["health"] == "well" and (answer["may_lose"] or 0) >= 1

    def brief(self):
        kept = ("role", "view", "last", "commit", "applied", "clock", "schedule_hash",
                "outputs_bytes", "outputs_digest", "connections")
        return {n: s and {k: s.get(k) for k in kept} for n, s in self.statuses().items()}

    def reigns(self):
        """The lines of crane-run's log that name a new leader."""
        return [line for line in self.log.read_text(errors="replace").splitlines()
                if "crane-run: replica" in line and " leads" in line]

    def elections(self):
        """Each replica's last election and its failure detection."""
        return str({n: s and (s.get("last_election"), s.get("detection"))
                    for n, s in self.statuses().items()})

    def check_calm(self):
        """Checks that the lead never changed, in a scenario that harms no replica.

        Changes before the group served do not count: replicas that are still opening their memory
        may suspect each other, and no client is connected yet.  Voluntary hand-overs do not count
        either: on a busy machine the leader's server may lag, and no connection is cut.
        """
        reigns = self.reigns()
        handed = sum(log.read_text(errors="replace").count("the lead goes ")
                     for log in self.dir.glob("r*/node.log"))
        # A hand-over may have been one of the changes before the group served.
        said = "" if len(reigns) <= self.reigns_at_start + handed else self.elections()
        self.scenario.check(not said, "the lead never changed", "; ".join([*reigns, said]))

    def processes(self):
        """All processes of the group, including crane-run and the containers' monitors."""
        state = self.state() or {"replicas": []}
        roots = [self.process.pid]
        for r in state["replicas"]:
            roots += [pid for pid in (r["node_pid"], r["server_pid"]) if pid]
            above = process_stat(r["server_pid"]) if r["server_pid"] else None
            if above and above[0] > 1:
                roots.append(above[0])
        return descendants(roots)

    def running_pid(self, number, of="node_pid"):
        """The pid of a replica's node or server; waits for the next one if it has ended."""
        def running():
            pid = self.replica(number)[of]
            return pid if pid and alive(pid) else None
        return wait_until(running, 60, f"{self.name}: replica {number} has its {of}")

    def signal_node(self, number, signo):
        os.kill(self.running_pid(number), signo)

    def signal_server(self, number, signo):
        os.kill(self.running_pid(number, "server_pid"), signo)

    def stop(self):
        """Stops the group as an operator does and returns crane-run's status."""
        if self.process.poll() is None:
            state = self.state()
            if state:
                self.remember(state)
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.explain()
            raise Failure(f"crane-run of {self.name} did not stop within {STOP_SECONDS} s") \
                from None

    def leftovers(self):
        """Remains that stop() should remove: processes, mounts, shared memory, control groups."""
        left = [f"process {pid}" for pid in self.known if alive(pid)]
        mounts = pathlib.Path("/proc/mounts").read_text()
        left += [f"mount {m}" for m in re.findall(r"^\S+ (\S+)", mounts, re.M)
                 if f"/{self.name}/" in m + "/"]
        left += [str(p) for p in pathlib.Path("/dev/shm").glob(f"crane.{self.name}*")]
        groups = [p for pattern in ("*.crane.*", "*/*.crane.*", "crane.*", "*/crane.*")
                  for p in pathlib.Path("/sys/fs/cgroup").glob(pattern)]
        ours = {f"crane.background.{pid}" for pid in self.known}
        left += [str(p) for p in groups if f".crane.{self.name}." in p.name or p.name in ours]
        return left

    def kill_all(self):
        """Kills the group of a failed scenario."""
        state = self.state()
        if state:
            self.remember(state)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        for pid in list(self.known) + [self.process.pid]:
            if alive(pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        for left in pathlib.Path("/dev/shm").glob(f"crane.{self.name}*"):
            shutil.rmtree(left, ignore_errors=True)

    def explain(self):
        print(f"--- crane-run of {self.name}: {' '.join(self.command())}\n{tail(self.log)}")
        for n in range(self.replicas):
            for name in ("node.log", "node.out", "server.log"):
                text = tail(self.dir / f"r{n}" / name, 12)
                if text.strip() and not text.startswith("("):
                    print(f"--- r{n}/{name}\n{text}")
        print(f"--- status: {self.brief()}", flush=True)

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.explain()
            self.kill_all()
            return False
        status = self.stop()
        try:
            wait_until(lambda: not self.leftovers(), 10, "")
        except Failure:
            self.explain()
            raise Failure(f"{self.name}, whose crane-run ended with status {status}, left behind: "
                          f"{self.leftovers()}") from None
        return False

    def diff(self, *options, recordings=None):
        """Returns (status, text) of crane-diff over the group's recordings."""
        suffix = "schedule" if "--schedule" in options else "out"
        paths = [str(self.record / f"replica-{n}.{suffix}") for n in recordings] if recordings \
            else [str(self.record)]
        done = subprocess.run([str(self.scenario.out / "crane-diff"), *options, *paths],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=300)
        return done.returncode, done.stdout.strip()


def ctl(scenario, *words):
    """Returns (status, text) of crane-ctl."""
    done = subprocess.run([str(scenario.out / "crane-ctl"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


# --- a scenario ---------------------------------------------------------------------------------

class Scenario:
    """Counts checks and owns the working directory."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.out = pathlib.Path(options.out).resolve()
        self.full = options.full
        self.passed = self.failed = self.numbers = 0
        self.began = time.monotonic()
        # On the root file system, so that every container sees its own copy of it.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"crane-{name}-", dir="/var/tmp"))
        self.work.chmod(0o755)

    def next_number(self):
        self.numbers += 1
        return self.numbers

    def say(self, text):
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    def check(self, good, what, detail=""):
        self.passed += bool(good)
        self.failed += not good
        print(f"{'PASS' if good else 'FAIL'} {what}" + (f": {detail}" if detail and not good
                                                        else ""), flush=True)
        return bool(good)

    def check_equal(self, group, *options, recordings=None, what=None):
        status, text = group.diff(*options, recordings=recordings)
        return self.check(status == 0, what or f"{group.name}: outputs of all replicas are equal",
                          f"crane-diff: exit {status}\n{text}") and text

    def check_schedule(self, group, *options, recordings=None, what=None):
        """Checks that clock and schedule hash are equal at every index that all admitted."""
        status, text = group.diff("--schedule", *options, recordings=recordings)
        return self.check(status == 0 and "schedule equal: " in text,
                          what or f"{group.name}: schedules of all replicas are equal",
                          f"crane-diff --schedule: exit {status}\n{text}") and text


def end_at_sigterm():
    """A scenario that gets SIGTERM ends its groups, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def run_scenario(name, body, **more):
    """Runs a scenario's body(scenario), prints totals and ends the process."""
    parser = argparse.ArgumentParser(description=body.__doc__ or name)
    parser.add_argument("--out", default=str(ROOT / "out/release"), help="directory of crane-run")
    parser.add_argument("--full", action="store_true", help="the full size, not the quick one")
    parser.add_argument("--keep", action="store_true", help="leave the working directory")
    for option, settings in more.items():
        parser.add_argument(f"--{option}", **settings)
    options = parser.parse_args()
    scenario = Scenario(name, options)
    end_at_sigterm()
    skipped = None
    try:
        if not (scenario.out / "crane-run").exists():
            raise Failure(f"{scenario.out}/crane-run is not built (make programs)")
        body(scenario)
    except CannotRun as cause:
        skipped = str(cause)
    except Exception as failure:  # the last lines name any failure
        scenario.check(False, f"{name}: {type(failure).__name__}", str(failure))
        if not isinstance(failure, Failure):
            traceback.print_exc()
    finally:
        if options.keep:
            print(f"kept: {scenario.work}")
        else:
            shutil.rmtree(scenario.work, ignore_errors=True)
    if skipped:
        print(f"SKIPPED: e2e/{name}: {skipped}")
        if scenario.failed == 0 and scenario.passed == 0:
            sys.exit(77)
    print(f"{scenario.passed} passed, {scenario.failed} failed")
    sys.exit(1 if scenario.failed else 0)
