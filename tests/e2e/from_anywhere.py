#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-ctl from a machine without a replica: hosts and the operator's are network namespaces.

Nodes without crane-run: status, top, events, members, versions, the transfer of the lead, a drain
and a signal over links, by --hosts, --config and CRANE_CONTEXT; another secret, another order of
hosts, commands that need a host's files; strangers that send garbage or nothing; a node that is
stopped, cut off, or killed between a request and its answer. Then crane-run --hosts: crane-ctl
shows all hosts on the machine that ran it, also after crane-run was killed; its files are private
and disappear.
"""
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import threading

import _harness as h
from _hosts import Hosts
from _network import Network
from hosts_drain import Apart

HOSTS = 3
STRANGERS = 40
LOOKS = 10
HANDSHAKE_END = 80   # a bit more than the bytes that end a handshake; a request has more


class Operator:
    """crane-ctl in the operator's namespace."""

    def __init__(self, scenario, group):
        self.scenario, self.group = scenario, group
        self.hosts = ["--hosts", ",".join(f"{a}:7100" for a in group.addresses),
                      "--secret-file", str(group.secret)]
        self.config = ["--config", str(group.config)]

    def run(self, *words, env=None, timeout=60):
        done = subprocess.run(
            [*self.group.network.visit(), str(self.scenario.out / "crane-ctl"), *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
            env={**os.environ, **(env or {})}, check=False)
        return done.returncode, done.stdout, done.stderr

    def ctl(self, *words):
        return self.run(*self.config, *words)

    def status(self, *options):
        code, out, err = self.run(*(options or self.config), "status", self.group.name, "-o",
                                  "json")
        if not out:
            raise h.Failure(f"status: {code}: {err}")
        return code, json.loads(out)

    def states(self, *options):
        return [r["state"] for r in self.status(*options)[1]["replicas"]]


def is_whole(group, summary):
    """Whether each row is the node's own full answer."""
    rows = summary["replicas"]
    return len(rows) == HOSTS and all(
        r["state"] == "ok" and r["pid"] == group.status(i)["pid"] for i, r in enumerate(rows))


def sees_all(scenario, group, operator):
    for what, options in (("--hosts", operator.hosts), ("--config", operator.config)):
        def well(options=options):
            code, summary = operator.status(*options)
            return summary if code == 0 else None
        summary = h.wait_until(well, 30, f"{what}: the group is well")
        scenario.check(is_whole(group, summary) and summary["may_lose"] == 1,
                       f"{what}: status has every node's own answer", summary)
    code, out, err = operator.run("status", "--wait", "30",
                                  env={"CRANE_CONTEXT": str(group.config)})
    scenario.check(code == 0 and f"{group.name}: serving, 3 of 3, fault tolerant" in out,
                   "CRANE_CONTEXT: status needs no option", f"{code}: {out}{err}")
    code, out, err = operator.ctl("top", "--once", "-o", "json")
    rows = json.loads(out)
    scenario.check(code == 0 and [r["replica"] for r in rows] == [0, 1, 2]
                   and all(r["node_cpu_percent"] is None for r in rows),
                   "top has all replicas; their processor time is not known here",
                   f"{code}: {out}{err}")
    code, out, err = operator.ctl("events", "-o", "json")
    events = json.loads(out)["events"]
    scenario.check(code == 0 and {e["replica"] for e in events} == {0, 1, 2}
                   and [e["unix_ms"] for e in events] == sorted(e["unix_ms"] for e in events),
                   "events has those of all replicas, in order", f"{code}: {out}{err}")
    code, out, err = operator.ctl("events", "--last", "2", "-o", "json")
    scenario.check(code == 0 and json.loads(out)["events"] == events[-2:], "events --last 2", out)
    code, out, err = operator.ctl("member", "list", "-o", "json")
    scenario.check(code == 0 and len(json.loads(out)["members"]) == HOSTS, "member list", out)
    code, out, err = operator.ctl("versions", "-o", "json")
    scenario.check(code == 0 and len(json.loads(out)["replicas"]) == HOSTS, "versions", out)


def changes(scenario, group, operator):
    to = (group.leader() + 1) % HOSTS
    code, out, err = operator.ctl("leader", "transfer", "--to", str(to))
    scenario.check(code == 0 and f"replica {to} leads" in out and group.leader() == to,
                   "leader transfer moves the lead", f"{code}: {out}{err}")
    code, out, err = operator.run(*operator.hosts, "leader", "transfer", group.name)
    scenario.check(code == 0 and group.leader() != to, "leader transfer by --hosts",
                   f"{code}: {out}{err}")
    code, out, err = operator.ctl("signal", "HUP")
    scenario.check(code == 0 and "will reach every replica" in out, "signal",
                   f"{code}: {out}{err}")
    number = group.leader()
    code, out, err = operator.ctl("replica", "drain", str(number))
    scenario.check(code == 0 and "the lead is handed over" in out
                   and f"replica {number} is drained; crane-ctl replica resume {number} on its host"
                   in out, "the leader's replica is drained", f"{code}: {out}{err}")
    scenario.check(group.wait(number) == 0, "its node has ended with status 0")
    code, summary = operator.status()
    scenario.check(code == 1 and summary["replicas"][number]["state"] == "drained"
                   and "2 of 3" in summary["verdict"]["text"],
                   "status: its host has no node, and one more loss stops the group", summary)
    code, out, err = operator.ctl("replica", "drain", str((number + 1) % HOSTS))
    scenario.check(code == 5 and "is needed" in err, "a needed replica is not drained", err)
    code, out, err = operator.ctl("replica", "resume", str(number))
    scenario.check(code == 100 and "runs only on the host of the replica: crane-ctl replica resume"
                   in err, "resume is for its host", f"{code}: {err}")
    group.start(number)
    h.wait_until(group.serves, 60, "its node is started again")
    h.wait_until(lambda: operator.status()[0] == 0, 30, "the group is well again")


def refusals(scenario, group, operator):
    other = scenario.work / "another-secret"
    group.ctl("secret", "new", str(other))
    words = [*operator.hosts[:2], "--secret-file", str(other)]
    code, summary = operator.status(*words)
    scenario.check(code == 2 and [r["state"] for r in summary["replicas"]]
                   == ["another secret"] * HOSTS, "another secret: status says so, 2", summary)
    code, out, err = operator.run(*words, "leader", "transfer", group.name)
    scenario.check(code == 2 and err, "another secret: no transfer", f"{code}: {out}{err}")
    backwards = ["--hosts", ",".join(reversed(operator.hosts[1].split(","))), *operator.hosts[2:]]
    states = operator.states(*backwards)
    scenario.check(states == ["another replica", "ok", "another replica"],
                   "another order of hosts: status says so", states)
    for words, status, says in (
            (["--config", str(group.config), "backup", "x.crane"], 100, "runs only on the host"),
            (["--config", str(group.config), "stop"], 100, "without --hosts and --config"),
            (["--config", str(group.config), "replica", "drain", "9"], 5, "is not a member"),
            (["--config", str(group.config), "member", "add", "9"], 5, "refused"),
            (["--config", str(group.config), "checkpoint", "now"], 5, "no checkpoint"),
            (["--config", str(group.config), "member", "replace", "0", "9"], 5, "refused"),
            (["--config", str(group.config), "status", "nobody"], 3, "no such group: nobody"),
            (["--config", str(group.config) + ".none", "status"], 118, "cannot read"),
            ([*operator.hosts, "status"], 100, "--hosts does not name it"),
            (operator.hosts[:2] + ["status", group.name], 100, "--secret-file"),
            (["--hosts", "a,b", "--secret-file", str(group.secret), "status", "x"], 101, "odd")):
        code, out, err = operator.run(*words)
        scenario.check(code == status and says in err, f"refused: {says}", f"{code}: {out}{err}")
    code, out, err = operator.run("logs", env={"CRANE_CONTEXT": str(group.config)})
    scenario.check(code == 100 and "without CRANE_CONTEXT" in err, "refused: CRANE_CONTEXT", err)


def connect(address):
    stranger = socket.create_connection((address, 7100), 5)
    stranger.setblocking(False)
    return stranger


def strangers(scenario, group, operator):
    """They are on the hosts' network, without the secret."""
    before = group.incr()
    with contextlib.ExitStack() as all_of_them:
        for turn in range(LOOKS):
            for address in group.addresses:
                for i in range(STRANGERS // LOOKS):
                    stranger = all_of_them.enter_context(connect(address))
                    with contextlib.suppress(OSError):
                        stranger.send([b"", b"GET / HTTP/1.0\r\n\r\n", os.urandom(3000),
                                       b"\x16\x03\x01" + os.urandom(500)][i % 4] or b"\x16")
            code, summary = operator.status()
            if not is_whole(group, summary):
                raise h.Failure(f"look {turn}: {code}: {summary}")
        scenario.check(group.incr() == before + 1, "strangers: operators and clients are served")
    scenario.check(operator.status()[0] == 0, "and no replica was lost")


def losses(scenario, group, operator):
    leader = group.leader()
    number = next(i for i in range(HOSTS) if i != leader)
    group.network.link(number, "down")
    try:
        def cut():
            code, summary = operator.status()
            row = summary["replicas"][number]
            return [code, summary] if row["state"] == "unreachable" and code == 1 else None
        code, summary = h.wait_until(cut, 30, "a host whose network is cut is unreachable")
        scenario.check("2 of 3" in summary["verdict"]["text"], "and counts as lost",
                       summary["verdict"])
        code, out, err = operator.ctl("events")
        scenario.check(code == 1 and f"replica {number} cannot be reached from here" in err
                       and out, "events: of the others, and a message", f"{code}: {err}")
    finally:
        group.network.link(number, "up")
    h.wait_until(lambda: operator.status()[0] == 0, 60, "it is back")
    node = group.nodes[number]
    node.send_signal(signal.SIGSTOP)
    try:
        h.wait_until(lambda: operator.states()[number] == "does not answer", 30,
                     "a stopped node does not answer")
    finally:
        node.send_signal(signal.SIGCONT)
    h.wait_until(lambda: operator.status()[0] == 0, 60, "it continues")


def dies_before_its_answer(scenario, group, operator):
    leader = group.leader()

    def die():
        group.nodes[leader].kill()
        group.nodes[leader].wait()
    with Between(group, leader, die) as between:
        places = [*group.addresses]
        places[leader] = between.place
        code, out, err = operator.run("--hosts", ",".join(places), *operator.hosts[2:], "leader",
                                      "transfer", group.name)
    scenario.check(code == 2 and f"replica {leader} ended before it answered, and may have" in err,
                   "the leader is killed when it has the request: a message and a status",
                   f"{code}: {out}{err}")

    def others_lead():
        code, summary = operator.status()
        return code == 1 and summary["leader"] not in (None, leader) \
            and summary["replicas"][leader]["state"] == "node is gone"
    h.wait_until(others_lead, 30, "status follows the lead, and names the lost node")


class Between:
    """Relays the links to a node. The first link (status) is let through. Of the second one the
    operator's request reaches the node, and `act` runs before any byte of the answer comes back."""

    def __init__(self, group, number, act):
        self.there, self.act = (group.addresses[number], 7100), act
        address = group.addresses[number].rsplit(".", 1)[0] + ".254"  # the bridge
        self.listener = socket.create_server((address, 0))
        self.place = f"{address}:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run)

    def run(self):
        for acts in (False, True):
            with contextlib.suppress(OSError):
                near, _ = self.listener.accept()
                with near, socket.create_connection(self.there, 10) as far:
                    self.relay(near, far, acts)

    def relay(self, near, far, acts):
        sent, heard = 0, False   # bytes of the operator, since the node's part of the handshake
        while ready := select.select([near, far], [], [], 10)[0]:
            for one in ready:
                data = one.recv(65536)
                if not data:
                    return
                (far if one is near else near).sendall(data)
                sent, heard = (sent + len(data), heard) if one is near else (0, True)
            if acts and heard and sent > HANDSHAKE_END:
                return self.act()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(30)
        self.listener.close()


class Group(Hosts):
    def __init__(self, scenario, network, port):
        self.network = network
        super().__init__(scenario, h.redis_program(port, "--protected-mode", "no", "--bind",
                                                   "0.0.0.0"), fabric="tcp", port=port,
                         prefix=network.enter, addresses=network.addresses,
                         server={"container": False})

    def incr(self):
        client = h.Redis(self.port, 10, self.addresses[self.leader()])
        try:
            return client("INCR", "counter")
        finally:
            client.close()


def nodes(scenario, network):
    with Group(scenario, network, h.free_port()) as group:
        operator = Operator(scenario, group)
        sees_all(scenario, group, operator)
        changes(scenario, group, operator)
        refusals(scenario, group, operator)
        strangers(scenario, group, operator)
        losses(scenario, group, operator)
        dies_before_its_answer(scenario, group, operator)


class Elsewhere(Apart):
    """The machine of crane-run has no files of the replicas."""

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        shutil.rmtree(self.state / self.name)

    def status(self, number):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            try:
                s.connect(str(self.own(number) / self.name / f"r{number}" / "control.sock"))
                s.send(b'{"do":"status"}')
                return json.loads(s.recv(1 << 18))
            except (OSError, ValueError):
                return None

    def here(self, *words):
        """Returns (status, text) of crane-ctl on the machine of crane-run."""
        done = subprocess.run([str(self.out / "crane-ctl"), "--dir", str(self.state), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout

    def contexts(self):
        return sorted((self.state / ".contexts").glob("*"))


def all_are_shown(scenario, group, what, ask):
    def shown():
        code, text = ask("status", group.name, "-o", "json")
        summary = json.loads(text)
        return summary if code == 0 and is_whole(group, summary) else None
    scenario.check(bool(h.wait_until(shown, 30, what)), what)


def on_crane_runs_machine(scenario, network):
    port = h.free_port()
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Elsewhere(scenario, network, program, port=port, container=False) as group:
        all_are_shown(scenario, group, "crane-run's machine shows all hosts", group.here)
        code, text = group.here("list")
        scenario.check(code == 0 and group.name in text, "list has the group", text)
        files = group.contexts()
        modes = [stat.S_IMODE(f.stat().st_mode) for f in [*files, files[0].parent]]
        scenario.check(modes == [0o600, 0o600, 0o700], "its files are private", modes)
        to = (group.leader() + 1) % HOSTS
        code, text = group.here("leader", "transfer", "--to", str(to))
        scenario.check(code == 0 and group.leader() == to, "it transfers the lead", text)
        number = (to + 1) % HOSTS
        code, text = group.here("replica", "drain", str(number))
        scenario.check(code == 0 and "on its host brings it back" in text, "it drains a replica",
                       text)
        code, text = group.here("replica", "resume", str(number))
        scenario.check(code == 5 and "replica resume runs only on the host" in text,
                       "resume is for the replica's host", text)
        code, text = group.here("stop", group.name)
        scenario.check(code == 5 and "stop its crane-run --hosts" in text, "so is stop", text)
        code, text = group.ctl(number, "replica", "resume", str(number))
        scenario.check(code == 0, "it is resumed there", text)
        # A machine that has crane-run and a replica.
        shutil.copytree(files[0].parent, group.own(0) / ".contexts")
        all_are_shown(scenario, group, "a host that ran crane-run shows all hosts",
                      lambda *words: group.ctl(0, *words))
        shutil.rmtree(group.own(0) / ".contexts")
        group.process.kill()
        group.process.wait()
        all_are_shown(scenario, group, "crane-run is killed: all hosts are still shown", group.here)
        with group.apart():
            status, text = group.run("--stop")
        scenario.check(status == 0 and not group.contexts(),
                       "--stop ends the group and removes the context", text)
        code, text = group.here("status", group.name)
        scenario.check(code == 3, "then there is no such group", text)


def ends_in_order(scenario, network):
    port = h.free_port()
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Elsewhere(scenario, network, program, port=port, container=False) as group:
        scenario.check(len(group.contexts()) == 2, "the context is there while the group runs")
        scenario.check(group.stop() == 0 and not group.contexts(),
                       "Ctrl-C removes the context", group.said())


def body(scenario):
    h.need("redis-server", "ip", "mount")
    if os.geteuid() != 0:
        raise h.CannotRun("namespaces need root")
    with Network(HOSTS, visitors=True) as network:
        nodes(scenario, network)
        on_crane_runs_machine(scenario, network)
        ends_in_order(scenario, network)


if __name__ == "__main__":
    h.run_scenario("from_anywhere", body)
