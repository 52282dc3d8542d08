#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are redis' answers linearizable while its replicas are killed, stopped and cut off?

Three hosts in network namespaces, redis over tcp. linear-client uses registers, counters and lists
through all hosts and records every call and answer. Meanwhile faults drawn from a printed seed hit
the group. At the end linear-check looks for an order that explains all answers (tests/linear).
Operations without an answer stay open. Epochs are fresh groups, alternating between durability
memory, disk (only there do replicas recover that are killed one after the other), disk with a
virtual address, where connections move to the next leader, and one host, where nodes share
connections. Except in the last two kinds, hosts can be cut off from each other while clients still
reach them.

  linear.py [--full | --ops N --leader-changes N --faults N] [--seed N]
  linear.py --broken serve-before-commit|no-fence|amnesiac   must find a violation
"""
import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import _broken
import _harness as h
from _hosts import Hosts
from _network import Network

HOSTS = 3
CLIENTS = 24
TIMEOUT_MS = 700
# The most answers of one epoch; fewer with disk, because a killed replica replays its log.
EPOCH = {"memory": 120000, "disk": 25000, "moved": 25000, "shared": 120000}
BROKEN_EPOCHS = 6


class Client:
    """linear-client, and its last report."""

    def __init__(self, scenario, port, addresses, history, seed, closing):
        command = [str(scenario.out / "linear-client"), "--port", str(port), "--history",
                   str(history), "--clients", str(CLIENTS), "--timeout-ms", str(TIMEOUT_MS),
                   "--seed", str(seed), "--closing-seconds", str(closing)]
        for address in addresses:
            command += ["--address", address]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.answered = self.open = self.refused = self.odd = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.answered, self.open, self.refused, self.odd = map(int, line.split())

    def finish(self, seconds):
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.reader.join(5)
        return status


class OneHost(h.Group):
    """A group of crane-run's, and its network: there is no link that could be cut."""
    clients, planes = ("127.0.0.1",), ()
    node_pid = h.Group.running_pid

    def kill_node(self, host):
        pid = self.node_pid(host)
        self.signal_node(host, signal.SIGKILL)
        h.wait_until(lambda: self.replica(host)["node_pid"] != pid, 60,
                     "crane-run has noticed the exit")

    def start_again(self, host):
        """crane-run restarts it."""

    def ctl(self, *words):
        return h.ctl(self.scenario, *words, "--dir", str(self.home))

    def count_reigns(self):
        return len(self.reigns())

    def mend(self):
        pass


class SomeHosts(Hosts):
    """Nodes without crane-run."""
    start_again = Hosts.start

    def node_pid(self, host):
        return self.nodes[host].pid

    def kill_node(self, host):
        self.nodes[host].send_signal(signal.SIGKILL)
        self.nodes[host].wait()
        mark = f"/{self.name}/r{host}"
        h.wait_until(lambda: not [m for m in self.leftovers() if mark in m], 20,
                     f"the server of replica {host} is gone")

    def count_reigns(self):
        views = set()
        for host in range(HOSTS):
            for line in self.said(host).splitlines():
                if " leader in view " in line:
                    views.add(line.split(" leader in view ")[1].split(",")[0])
        return len(views)


class Epoch:
    """One group from its start to its end, under load and faults."""

    def __init__(self, scenario, network, group, kind, seed, broken):
        self.scenario, self.network = scenario, network
        self.group, self.kind = group, kind
        self.broken = broken
        self.random = random.Random(seed)
        # A broken build may get stuck; this scenario does not look for that.
        self.patience = 4 if broken else 90
        self.faults = []          # (monotonic ns, what)
        self.transfers = 0
        self.client = None

    # --- the parts of faults ---------------------------------------------------------------------
    def fault(self, what):
        self.faults.append((time.monotonic_ns(), what))

    def hold(self, seconds):
        end = time.monotonic() + seconds
        h.wait_until(lambda: time.monotonic() > end, seconds + 5, "the time is over")

    def answers(self, more):
        before = self.client.answered
        h.wait_until(lambda: self.client.answered >= before + more
                     or self.client.process.poll() is not None, self.patience,
                     f"{more} more answers for the clients")

    def pids(self, host):
        status = self.group.status(host)
        server = status["server_pid"] if status else None
        return [self.group.node_pid(host)] + (h.descendants([server]) if server else [])

    def leader(self):
        def somebody():
            statuses = self.group.statuses().values()
            return any(s and s["role"] == "leader" for s in statuses)
        h.wait_until(somebody, self.patience, f"{self.group.name} has a leader")
        return self.group.leader()

    def follower(self):
        leader = self.leader()
        return self.random.choice([i for i in range(HOSTS) if i != leader])

    def others(self, host):
        return [i for i in range(HOSTS) if i != host]

    def while_long(self, longest=2.0):
        """Usually shorter than the second after which a silent link is closed."""
        self.hold(self.random.choice([self.random.uniform(0.1, 0.9),
                                      self.random.uniform(0.9, longest)]))

    @contextlib.contextmanager
    def stopped(self, host):
        pids = self.pids(host)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def cut(self, host, planes=(0,)):
        for plane in planes:
            self.network.link(host, "down", plane)
        try:
            yield
        finally:
            for plane in planes:
                self.network.link(host, "up", plane)

    def kill(self, host, forget=()):
        """SIGKILL; `forget` names what the replica loses, too: its memory, its store."""
        self.group.kill_node(host)
        if "memory" in forget:
            shutil.rmtree(f"/dev/shm/crane.{self.group.name}/consensus-{host}")
        if "store" in forget:
            shutil.rmtree(self.group.dir / f"store/r{host}")

    def whole(self):
        """All replicas run, follow one leader and have run everything requested before."""
        def good():
            statuses = self.group.statuses(range(HOSTS))
            if not h.is_whole(statuses):
                return False
            said = statuses.values()
            roles = sorted(s["role"] for s in said)
            return roles == ["follower", "follower", "leader"] \
                and len({s["view"] for s in said}) == 1 \
                and all(s["applied"] >= end for s in said)
        end = max((s["last"] for s in self.group.statuses().values() if s), default=0)
        h.wait_until(good, self.patience,
                     "all replicas follow one leader, and all earlier entries are applied")

    # --- the faults ------------------------------------------------------------------------------
    def stop_leader(self):
        leader = self.leader()
        self.fault("SIGSTOP leader")
        with self.stopped(leader):
            self.while_long()

    def stop_follower(self):
        host = self.follower()
        self.fault("SIGSTOP follower")
        with self.stopped(host):
            self.while_long()

    def cut_leader_from_peers(self):
        leader = self.leader()
        self.fault("cut leader, its clients stay")
        with self.cut(leader):
            self.while_long(2.5)

    def cut_leader(self):
        leader = self.leader()
        self.fault("cut leader")
        with self.cut(leader, range(len(self.network.planes))):
            self.while_long(2.5)

    def cut_follower(self):
        host = self.follower()
        self.fault("cut follower")
        with self.cut(host):
            self.while_long()

    def silence(self):
        """Loses what one host sends to another, and nothing else."""
        host = self.random.randrange(HOSTS)
        to = self.random.choice(self.others(host))
        self.fault("cut in one direction")
        self.network.silence(host, to, True)
        try:
            self.while_long()
        finally:
            self.network.silence(host, to, False)

    def transfer(self):
        """Not a fault, but a leader change."""
        to = self.follower()
        self.transfers += 1
        self.group.ctl("leader", "transfer", self.group.name, "--to", str(to))

    def kill_leader(self):
        leader = self.leader()
        self.fault("SIGKILL leader")
        self.kill(leader)
        self.group.start_again(leader)

    def kill_follower(self):
        host = self.follower()
        self.fault("SIGKILL follower")
        self.kill(host)
        self.answers(300)
        self.group.start_again(host)

    def kill_without_memory(self):
        self.whole()
        leader = self.leader()
        self.fault("SIGKILL leader, memory lost")
        self.kill(leader, ["memory"])
        self.group.start_again(leader)
        self.whole()

    def kill_all(self):
        self.fault("SIGKILL all")
        for host in range(HOSTS):
            self.group.nodes[host].send_signal(signal.SIGKILL)
        for host in range(HOSTS):
            self.kill(host)
        for host in range(HOSTS):
            self.group.start_again(host)

    def forgetful_follower(self):
        """One follower misses entries; the other, which has them, loses memory and store; only
        these two are left. The one that lost its state must not vote."""
        self.whole()
        leader = self.leader()
        misses, forgets = self.random.sample(self.others(leader), 2)
        self.fault("cut follower")
        with self.cut(misses):
            self.answers(500)
            self.fault("SIGKILL follower, all lost")
            self.network.link(leader, "down", 0)
            self.kill(forgets, ["memory", "store"])
        try:
            self.group.start_again(forgets)
            self.fault("cut leader, its clients stay")
            self.hold(3.0 if self.broken else 2.0)
        finally:
            self.network.link(leader, "up", 0)
        self.whole()

    REPERTOIRE = {
        "memory": [stop_leader, stop_follower, cut_leader_from_peers, cut_leader, transfer,
                   cut_follower, silence, stop_leader, transfer],
        "disk": [kill_leader, kill_follower, stop_leader, kill_without_memory, transfer,
                 forgetful_follower, cut_leader_from_peers, kill_all, transfer],
        "moved": [kill_leader, stop_leader, transfer, cut_leader, kill_follower, silence,
                  kill_leader, cut_follower, transfer],
        "shared": [kill_leader, stop_leader, transfer, kill_follower, stop_follower, kill_leader,
                   stop_leader, transfer],
    }
    TARGETED = {
        "serve-before-commit": [cut_leader_from_peers, cut_leader, cut_leader_from_peers],
        "no-fence": [stop_leader, stop_leader, stop_leader],
        "amnesiac": [forgetful_follower],
    }

    # --- the whole -------------------------------------------------------------------------------
    def run(self, plan, most):
        """Runs the plan, then lets the clients continue to `most` answers."""
        self.answers(500)
        for act in plan:
            act(self)
            self.answers(self.random.choice([0, 100, 300]))
        self.network.mend()
        self.whole()
        h.wait_until(lambda: self.client.answered >= most, 3 * self.patience, f"{most} answers")

    def leader_changes(self):
        return max(self.group.count_reigns() - 1, 0)


def judge(scenario, history, faults, number):
    """{name: words} of linear-check's output; its windows are printed."""
    path = scenario.work / f"faults{number}"
    path.write_text("".join(f"{at} {what}\n" for at, what in faults))
    done = subprocess.run([str(scenario.out / "linear-check"), str(history), "--faults", str(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    verdicts, under_way = {}, []
    for line in done.stdout.splitlines():
        name, *words = line.split(" ", 3)
        if name == "fault":
            under_way.append((words[2], int(words[1])))
        elif name in ("answered", "open", "refused", "keys", "steps", "verdict", "violations",
                      "violation_after"):
            verdicts[name] = line.split()[1:]
        else:
            print("  " + line)
    if "verdict" not in verdicts:
        raise h.Failure(f"linear-check ended with status {done.returncode}:\n{done.stdout[-2000:]}")
    return verdicts, under_way


def second_opinion(scenario, history):
    """Porcupine's verdict; None if it could not be built."""
    porcupine = scenario.tools / "linear-porcupine"
    if not porcupine.exists():
        return None
    done = subprocess.run([str(porcupine), str(history)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1200)
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    if "verdict" not in answers:
        raise h.Failure(f"linear-porcupine ended with status {done.returncode}:\n"
                        f"{done.stdout[-2000:]}")
    return answers["verdict"]


def keep(scenario, history):
    place = scenario.out / "linear"
    place.mkdir(exist_ok=True)
    kept = place / f"{scenario.name}-{os.getpid()}-{history.name}"
    shutil.copy(history, kept)
    scenario.say(f"the history is kept: {kept}")


class Sums:
    def __init__(self):
        self.answered = self.open = self.refused = self.odd = self.keys = self.steps = 0
        self.changes = self.transfers = self.epochs = 0
        self.faults = collections.Counter()
        self.in_flight = collections.defaultdict(list)
        self.verdicts = collections.Counter()
        self.opinions = collections.Counter()
        self.by_kind = collections.Counter()

    def add(self, epoch, said, under_way):
        self.epochs += 1
        self.answered += int(said["answered"][0])
        self.by_kind[epoch.kind] += int(said["answered"][0])
        self.open += int(said["open"][0])
        self.refused += int(said["refused"][0])
        self.keys += sum(map(int, said["keys"]))
        self.steps += int(said["steps"][0])
        self.odd += epoch.client.odd
        self.changes += epoch.leader_changes()
        self.transfers += epoch.transfers
        self.verdicts[said["verdict"][0]] += 1
        if said["porcupine"]:
            self.opinions[said["porcupine"]] += 1
        for what, count in under_way:
            self.faults[what] += 1
            self.in_flight[what].append(count)

    def hit(self):
        """Faults that met operations in flight."""
        return sum(n > 0 for counts in self.in_flight.values() for n in counts)

    def table(self):
        rows = [("epochs", f"{self.epochs} ({', '.join(sorted(self.by_kind))})"),
                ("operations answered", f"{self.answered} ("
                 + ", ".join(f"{k} {n}" for k, n in sorted(self.by_kind.items())) + ")"),
                ("open / refused of these", f"{self.open} / {self.refused}"),
                ("keys", str(self.keys)),
                ("leader changes", f"{self.changes} (requested: {self.transfers})"),
                ("faults, with operations in flight", f"{sum(self.faults.values())}, {self.hit()}")]
        rows += [(f"  {what}", f"{n}, in flight {min(self.in_flight[what])} to "
                  f"{max(self.in_flight[what])}") for what, n in sorted(self.faults.items())]
        for judge_, verdicts in (("linear-check", self.verdicts), ("Porcupine", self.opinions)):
            rows.append((f"verdicts of {judge_}",
                         ", ".join(f"{n} {v}" for v, n in verdicts.items()) or "not built"))
        for name, value in rows:
            print(f"  {name:<36} {value}")


@contextlib.contextmanager
def places(scenario, kind, port):
    """Yields (network, group, the addresses that clients use) of an epoch."""
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    if kind == "shared":
        with OneHost(scenario, program, port=port) as group:
            yield group, group, group.clients
        return
    moves = kind == "moved"
    with Network(HOSTS, apart=not moves) as network, \
            SomeHosts(scenario, program, port=port, fabric="tcp", addresses=network.addresses,
                      group={"durability": "memory" if kind == "memory" else "disk"},
                      clients={"listen": "any", **(network.moving_address() if moves else {})},
                      prefix=network.enter) as group:
        yield network, group, [network.virtual] if moves else network.clients


def one_epoch(scenario, number, kind, plan, most, sums, broken=False):
    """The verdict, and any other problem."""
    port, seed = h.free_port(), scenario.seed + number
    history = scenario.work / f"history{scenario.next_number()}"
    problem = ""
    with places(scenario, kind, port) as (network, group, addresses):
        epoch = Epoch(scenario, network, group, kind, seed, broken)
        client = epoch.client = Client(scenario, port, addresses, history, seed,
                                       closing=5 if broken else 60)
        try:
            epoch.run(plan, most)
        except h.Failure as failure:
            problem = str(failure)
            if not broken:
                group.explain()
        finally:
            network.mend()
            status = client.finish(90)
        if status != 0 and not problem:
            problem = "the closing reads were not answered"
        verdicts, under_way = judge(scenario, history, epoch.faults, number)
        verdicts["porcupine"] = second_opinion(scenario, history)
        sums.add(epoch, verdicts, under_way)
    scenario.say(f"epoch {number}, {kind}: {' '.join(verdicts['answered'])} answers, "
                 f"{' '.join(verdicts['open'])} open, {len(under_way)} faults, "
                 f"{epoch.leader_changes()} leader changes: {verdicts['verdict'][0]}"
                 + (f"; {problem}" if problem else ""))
    if (verdicts["verdict"][0] != "ok" or verdicts["porcupine"] not in ("ok", None)) and not broken:
        keep(scenario, history)
    if not scenario.options.keep:
        history.unlink()
    return verdicts, problem


def plan_of(kind, random_):
    plan = list(Epoch.REPERTOIRE[kind])
    random_.shuffle(plan)
    return plan


def good_build(scenario, ops, changes, faults, long):
    """Runs fresh groups until there is enough of everything."""
    sums, problems, number = Sums(), [], 0
    kinds = list(Epoch.REPERTOIRE)
    while (number < len(kinds) or sums.answered < ops or sums.changes < changes
           or sums.hit() < faults):
        kind = kinds[number % len(kinds)]
        most = EPOCH[kind] if long else ops * 7 // 10 if number == 0 else 2000
        plan = plan_of(kind, random.Random(scenario.seed + number))
        said, problem = one_epoch(scenario, number, kind, plan, most, sums)
        problems += [problem] if problem else []
        number += 1
        if said["verdict"][0] != "ok" or said["porcupine"] not in ("ok", None) or len(problems) > 2:
            break
    sums.table()
    scenario.check(not problems, "the group continued after every fault", "; ".join(problems))
    scenario.check(sums.odd == 0, "every answer was of the right kind", f"{sums.odd} were not")
    scenario.check(sums.verdicts["ok"] == sums.epochs, f"linearizable: {sums.answered} answers, "
                   f"{sums.changes} leader changes, {sums.hit()} faults with operations in flight",
                   f"{dict(sums.verdicts)}, seed {scenario.seed}")
    if sums.opinions:
        scenario.check(sums.opinions["ok"] == sums.epochs, "Porcupine says the same",
                       f"{dict(sums.opinions)}, seed {scenario.seed}")
    scenario.check(sums.answered >= ops and sums.changes >= changes and sums.hit() >= faults,
                   f"at least {ops} answers, {changes} leader changes, {faults} faults", "")


def broken_build(scenario, rule):
    """A build without that rule must be caught."""
    whole, scenario.out = scenario.out, _broken.build(scenario, rule)
    scenario.say(f"built without a rule: {rule}")
    kind = "disk" if rule == "amnesiac" else "memory"
    sums, answers, faults, found = Sums(), 0, 0, None
    for number in range(BROKEN_EPOCHS):
        verdicts, _ = one_epoch(scenario, number, kind, Epoch.TARGETED[rule], 1000, sums, True)
        if "violation_after" in verdicts:
            if verdicts["porcupine"]:
                scenario.check(verdicts["porcupine"] == "violation", f"Porcupine sees it: {rule}",
                               verdicts["porcupine"])
            found = (answers + int(verdicts["violation_after"][0]),
                     faults + int(verdicts["violation_after"][1]))
            break
        answers, faults = sums.answered, sum(sums.faults.values())
    sums.table()
    scenario.check(found, f"the build without the rule {rule} is caught"
                   + (f", after {found[0]} answers and {found[1]} faults" if found else ""),
                   f"no violation in {BROKEN_EPOCHS} epochs, seed {scenario.seed}")
    shutil.rmtree(scenario.out)
    scenario.out = whole


def body(scenario):
    h.need("redis-server", "ip")
    if os.geteuid() != 0:
        raise h.CannotRun("network namespaces need root")
    o = scenario.options
    scenario.seed = o.seed or random.randrange(1, 1 << 31)
    scenario.say(f"seed {scenario.seed}")
    _broken.check_rules()
    scenario.tools = scenario.out
    if not (scenario.tools / "linear-porcupine").exists():
        print("SKIPPED: e2e/linear: Porcupine: make linear-porcupine needs Go and its module")
    if o.broken:
        return broken_build(scenario, o.broken)
    good_build(scenario, ops=o.ops or (1000000 if scenario.full else 20000),
               changes=o.leader_changes or (100 if scenario.full else 4),
               faults=o.faults or (30 if scenario.full else 8), long=scenario.full or o.ops > 0)
    for rule in _broken.RULES if scenario.full else ["no-fence"] if not o.ops else []:
        broken_build(scenario, rule)


h.run_scenario("linear", body, seed={"type": int, "default": 0}, ops={"type": int, "default": 0},
               faults={"type": int, "default": 0}, broken={"choices": sorted(_broken.RULES)},
               **{"leader-changes": {"type": int, "default": 0}})
