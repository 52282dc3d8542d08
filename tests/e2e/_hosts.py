# SPDX-License-Identifier: Apache-2.0
"""A group of nodes without crane-run, one per "host", from one group.toml."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import _harness as h

START_SECONDS = 180
STOP_SECONDS = 30


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if not isinstance(value, dict) else \
        "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"


class RoamingCounter(h.Counter):
    """A Counter that tries the hosts in turn."""

    def __init__(self, group, name):
        super().__init__(group.port, name, 0.4)
        self.group, self.tries = group, 0

    def connect(self):
        self.tries += 1
        addresses = self.group.addresses
        return h.Redis(self.port, self.timeout, addresses[self.tries % len(addresses)])


def served(clients, each=20):
    before = [c.answers for c in clients]
    h.wait_until(lambda: all(c.answers >= b + each or c.problems for c, b in zip(clients, before)),
                 30, "every client is served")


@contextlib.contextmanager
def under_way(clients):
    """Starts the clients, waits until all are served, and stops them at the end."""
    for c in clients:
        c.start()
    try:
        served(clients)
        yield
    finally:
        for c in clients:
            c.stopping.set()
        for c in clients:
            c.join(20)


def first_answers(group, since, addresses):
    """Milliseconds from `since` to the first answer on a new connection, per address."""
    probes = [subprocess.Popen([str(group.scenario.out / "e2e/probe"), a, str(group.port), "0"],
                               stdout=subprocess.PIPE, text=True) for a in addresses]
    gaps = []
    for probe, address in zip(probes, addresses):
        text = probe.communicate(timeout=60)[0]
        if probe.returncode != 0:
            raise h.Failure(f"no answer at {address} after the leader was cut off")
        gaps.append((int(text.split()[1]) - since) / 1e6)
    return gaps


class Hosts:
    """One crane-node per replica, or per number in `started`; the others start later. `prefix(i)`
    goes before host i's commands."""

    def __init__(self, scenario, program, *, addresses=None, fabric="shm", port=None, group=None,
                 server=None, clients=None, hooks=None, replica=None, prefix=lambda i: [],
                 record=False, started=None, own=None):
        self.scenario, self.port, self.prefix = scenario, port, prefix
        self.name = f"{scenario.name}-{os.getpid()}-{scenario.next_number()}"
        self.home = scenario.work / self.name
        self.home.mkdir()
        self.home.chmod(0o755)
        self.addresses = addresses or [f"127.0.0.{i + 1}" for i in range(3)]
        self.state = self.home / "state"
        self.record = self.home / "record" if record else None
        self.secret = self.home / "secret"
        self.ctl("secret", "new", str(self.secret))
        self.sections = {
            "group": {"name": self.name, "secret_file": str(self.secret), "fabric": fabric,
                      "state_dir": str(self.state), **(group or {})},
            "server": {"command": list(program), "container": h.can_contain(),
                       **({"record": str(self.record)} if record else {}), **(server or {})},
            "clients": {"listen": "clients", **(clients or {})}, "hooks": hooks or {}}
        self.replicas = [{"address": a, **({} if fabric == "shm" else {"port": 7100}),
                          **(replica(i) if replica else {})}
                         for i, a in enumerate(self.addresses)]
        self.started = list(range(len(self.addresses)) if started is None else started)
        self.nodes = [None] * len(self.addresses)
        self.begins = [0] * len(self.addresses)  # where the last run begins in each node's log
        self.config = self.write("group.toml")
        self.own = {i: self.write(f"group{i}.toml", **changes)
                    for i, changes in (own or {}).items()}  # hosts with a different file

    def write(self, name, **changes):
        """Writes a file of the group. `changes`: section={key: value}; changes of `replica` apply
        to all replicas."""
        lines = []
        for section, keys in self.sections.items():
            lines.append(f"[{section}]")
            lines += [f"{k} = {toml(v)}" for k, v in {**keys, **changes.get(section, {})}.items()]
        for replica in self.replicas:
            lines += ["[[replica]]"] + [f"{k} = {toml(v)}" for k, v in
                                        {**replica, **changes.get("replica", {})}.items()]
        path = self.home / name
        path.write_text("\n".join(lines) + "\n")
        return path

    # --- nodes ---------------------------------------------------------------------------------
    def start(self, number, *more, config=None):
        self.begins[number] = len(self.said(number))
        log = open(self.log(number), "ab")
        self.nodes[number] = subprocess.Popen(
            self.prefix(number) + [str(self.scenario.out / "crane-node"), "--config",
                                   str(config or self.own.get(number, self.config)),
                                   "--replica", str(number), *more],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True)
        log.close()

    def log(self, number):
        return self.home / f"node{number}.log"

    def said(self, number):
        return self.log(number).read_text(errors="replace") if self.log(number).exists() else ""

    def __enter__(self):
        for i in self.started:
            self.start(i)
        try:
            h.wait_until(self.serves, START_SECONDS, f"group {self.name} serves")
        except h.Failure:
            self.explain()
            self.kill_all()
            raise
        return self

    def alive(self, number):
        return self.nodes[number] is not None and self.nodes[number].poll() is None

    def live(self):
        return [i for i in range(len(self.nodes)) if self.alive(i)]

    def serves(self):
        """One node leads, and every live node has opened the server's port."""
        live = self.live()
        if len(live) * 2 <= len(self.started):
            raise h.Failure("a majority of the nodes has ended")
        statuses = [self.status(i) for i in live]
        return all(s and s["server_pid"] for s in statuses) \
            and sum(s["role"] == "leader" for s in statuses) == 1 \
            and all(" is port " in self.said(i)[self.begins[i]:] for i in live)

    def status(self, number):
        return h.Group.status(self, number)

    @property
    def dir(self):
        return self.state / self.name

    def processes(self):
        servers = [s["server_pid"] for s in self.statuses().values()
                   if s and s["server_pid"]]
        return h.descendants([n.pid for n in self.nodes] + servers)

    statuses = h.Group.statuses
    settle = h.Group.settle
    brief = h.Group.brief
    diff = h.Group.diff
    asked = h.Group.asked
    problems_of = h.Group.problems_of

    def leader(self, others_than=()):
        def found():
            known = [(s["view"], i) for i, s in self.statuses().items()
                     if s and s["role"] == "leader" and i not in others_than]
            return [max(known)[1]] if known else None
        return h.wait_until(found, 30, f"{self.name} has a leader")[0]

    def lead(self, number, seconds=30):
        """Transfers the lead until the replica has it: a replica that lags does not take it."""
        def leads():
            if self.leader() == number:
                return True
            self.ctl("leader", "transfer", self.name, "--to", str(number))
            return False
        h.wait_until(leads, seconds, f"replica {number} leads")

    def stop_one(self, number, signo=signal.SIGTERM):
        self.nodes[number].send_signal(signo)
        return self.wait(number)

    def wait(self, number):
        try:
            return self.nodes[number].wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise h.Failure(f"node {number} of {self.name} did not end") from None

    # --- the operator's tool -------------------------------------------------------------------
    def ctl(self, *words, number=None):
        """Returns (status, standard output, standard error) of crane-ctl."""
        before = [] if number is None else self.prefix(number)
        done = subprocess.run(before + [str(self.scenario.out / "crane-ctl"), "--dir",
                                        str(self.state), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60)
        return done.returncode, done.stdout, done.stderr

    # --- the end -------------------------------------------------------------------------------
    def leftovers(self):
        mounts = pathlib.Path("/proc/mounts").read_text()
        return [m for m in mounts.split() if f"/{self.name}/" in m + "/"]

    def kill_all(self):
        for node in filter(None, self.nodes):
            node.send_signal(signal.SIGCONT)
            node.terminate()
        for node in filter(None, self.nodes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.wait(10)
            if node.poll() is None:
                node.kill()
                node.wait()
        shutil.rmtree(f"/dev/shm/crane.{self.name}", ignore_errors=True)

    def explain(self):
        for i in range(len(self.nodes)):
            print(f"--- node {i}\n{h.tail(self.log(i), 20)}")
            for name in ("server.log",):
                text = h.tail(self.dir / f"r{i}" / name, 10)
                if text.strip() and not text.startswith("("):
                    print(f"--- r{i}/{name}\n{text}")
        print(f"--- status: {self.brief()}", flush=True)

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.explain()
        self.kill_all()
        if kind is None:
            h.wait_until(lambda: not self.leftovers(), 10, f"the mounts of {self.name} are gone")
        return False
