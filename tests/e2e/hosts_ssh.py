#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run --hosts h1,h2,h3 -- redis-server over real ssh: hosts are network namespaces, each with
an sshd that accepts only our key. A group loses its leader's node and is stopped with Ctrl-C.
crane-run is killed, or a connection breaks, and the group continues. Hosts that refuse the login
are reported by name.

The hosts differ, as real hosts do: one has a banner, one a shell that prints text and stays in
between, one another environment.
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess

import _harness as h
from _network import Network
from _remote import Remote, gone

HOSTS = 3
PORT = 2222
SSHD = "/usr/sbin/sshd"  # sshd requires its own absolute path
PRIVILEGE = pathlib.Path("/run/sshd")  # built into Debian's sshd, made by its init script

DIFFERENT = ["Banner {work}/banner",
             "ForceCommand echo the profile talks; eval \"$SSH_ORIGINAL_COMMAND\"; exit $?",
             "SetEnv TZ=Asia/Tokyo LC_ALL=tr_TR.UTF-8 CRANE_STRANGER=1"]

SERVER = """ListenAddress {address}:{port}
HostKey {work}/host{number}
AuthorizedKeysFile {work}/authorized{number}
PidFile none
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM {pam}
{different}
"""

CLIENT = """Host {name}
  HostName {address}
  HostKeyAlias {name}
Host *
  Port {port}
  User root
  IdentityFile {work}/key
  IdentitiesOnly yes
  IdentityAgent none
  StrictHostKeyChecking yes
  UserKnownHostsFile {work}/known
  GlobalKnownHostsFile /dev/null
"""


def root_is_locked():
    """In this case sshd refuses every login as root, unless it uses PAM."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/etc/shadow").read_text().splitlines():
            if line.startswith("root:"):
                return line.split(":")[1].startswith("!")
    return False


class Sshds:
    """An sshd in each namespace of a network; `ssh` finds them because PATH leads to one with our
    file."""

    def __init__(self, scenario, network):
        self.network, self.work = network, scenario.work / "ssh"
        self.work.mkdir(mode=0o755)
        self.config = self.work / "config"
        self.servers, self.made = [], False
        self.path = os.environ["PATH"]

    def key(self, name):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.work / name)],
                       check=True, timeout=20)
        return (self.work / f"{name}.pub").read_text()

    def __enter__(self):
        ours = self.key("key")
        (self.work / "banner").write_text("Authorised use only: No such file or directory\n")
        names, addresses = self.network.names, self.network.addresses
        self.config.write_text("".join(
            CLIENT.split("Host *")[0].format(name=n, address=a) for n, a in zip(names, addresses))
            + "Host *" + CLIENT.split("Host *")[1].format(port=PORT, work=self.work))
        self.known = self.work / "known"
        self.known.write_text("".join(f"{n} {self.key(f'host{i}')}" for i, n in enumerate(names)))
        for i in range(HOSTS):
            self.authorized(i).write_text(ours)
        programs = self.work / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.config} "$@"\n')
        (programs / "ssh").chmod(0o755)
        os.environ["PATH"] = f"{programs}:{self.path}"
        if not PRIVILEGE.exists():
            PRIVILEGE.mkdir(mode=0o755)
            self.made = True
        try:
            for i in range(HOSTS):
                self.serve(i)
        except h.Failure:
            self.__exit__()
            raise
        return self

    def authorized(self, number):
        return self.work / f"authorized{number}"

    def serve(self, number):
        address = self.network.addresses[number]
        path = self.work / f"sshd{number}"
        path.write_text(SERVER.format(
            address=address, port=PORT, work=self.work, number=number,
            pam="yes" if root_is_locked() else "no",
            different=DIFFERENT[number].format(work=self.work)))
        with open(self.work / f"sshd{number}.log", "wb") as log:
            server = subprocess.Popen(self.network.enter(number) + [SSHD, "-D", "-e", "-f",
                                                                    str(path)],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        self.servers[number:number + 1] = [server]

        def listens():
            if server.poll() is not None:
                raise h.Failure("sshd ended: " + h.tail(self.work / f"sshd{number}.log"))
            with contextlib.suppress(OSError):
                socket.create_connection((address, PORT), 1).close()
                return True
        h.wait_until(listens, 20, f"sshd of host {number} listens")

    def silence(self, number):
        self.servers[number].terminate()
        self.servers[number].wait(10)

    def inside(self, number):
        """Returns (pid, name) of the processes on a host, without the listening sshd."""
        found = []
        pids = subprocess.run(["ip", "netns", "pids", self.network.names[number]],
                              stdout=subprocess.PIPE, text=True, timeout=20).stdout.split()
        for pid in map(int, pids):
            with contextlib.suppress(OSError):
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
                if pid != self.servers[number].pid:
                    found.append((pid, name))
        return found

    def sessions(self, number):
        return [pid for pid, name in self.inside(number) if name == "sshd"]

    def shells(self):
        """The processes of ssh to these hosts, started by crane-run or left by it."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"ssh") and str(self.config).encode() in words:
                    found.append(int(pid))
        return found

    def empty(self, scenario, group, what, logs_of=()):
        gone(scenario, group, what, logs_of)
        try:
            h.wait_until(lambda: not self.shells() and not any(map(self.inside, range(HOSTS))),
                         15, "")
        except h.Failure:
            scenario.check(False, f"{what}: hosts are empty",
                           [self.shells()] + [self.inside(i) for i in range(HOSTS)])

    def __exit__(self, *_):
        os.environ["PATH"] = self.path
        for server in self.servers:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10)
        for number in range(len(self.servers)):
            for pid, _name in self.inside(number):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        if self.made:
            with contextlib.suppress(OSError):
                PRIVILEGE.rmdir()


def program(port):
    return h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")


def whole_lines(text):
    """No line of ssh's output splits a message."""
    return all(re.match(r"(\d{4}-\S+ )?crane-run: ", line) for line in text.splitlines())


def serve_and_lose(scenario, network, sshds):
    port = h.free_port()
    # Without a container there is no checkpoint: a lost replica replays its log.
    with Remote(scenario, network, program(port), port=port, rsh="", container=False) as group:
        got = [group.incr(i) for i in range(HOSTS)]
        scenario.check(got == [1, 2, 3], "ssh: clients of every host talk to one server", got)
        leader = group.leader()
        os.kill(group.status(leader)["pid"], signal.SIGKILL)
        got = [group.incr(i) for i in range(HOSTS) if i != leader]
        scenario.check(got == [4, 5], "the others continue after a SIGKILL of the leader's node",
                       got)
        h.wait_until(lambda: f"replica {leader} on {network.names[leader]}: its node killed by "
                     "SIGKILL" in group.said(), 30, "crane-run reports replica, host and cause")
        h.wait_until(lambda: (group.status(leader) or {}).get("server_pid"), 30, "it is back")
        os.killpg(group.process.pid, signal.SIGINT)  # as a terminal does
        scenario.check(group.wait() == 0 and whole_lines(group.said()),
                       "Ctrl-C ends it with status 0",
                       group.said())
        sshds.empty(scenario, group, "nothing is left")


def crane_run_is_killed(scenario, network, sshds):
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port,
                rsh=f"ssh -F '{sshds.config}'") as group:
        scenario.check(group.incr(0) == 1 and len(sshds.shells()) == HOSTS, "--rsh 'ssh -F FILE'")
        group.process.kill()
        group.process.wait()
        h.wait_until(lambda: not sshds.shells() and not any(map(sshds.sessions, range(HOSTS))), 20,
                     "no ssh waits for the group")
        got = [group.incr(i) for i in range(HOSTS)]
        scenario.check(got == [2, 3, 4],
                       "crane-run is killed: its connections end, the group continues",
                       got)
        status, text = group.run("--stop")
        scenario.check(status == 0 and any(f"{n}: stopped" in text for n in network.names),
                       "--stop ends it", text)
        sshds.empty(scenario, group, "and all is gone")


def connection_is_lost(scenario, network, sshds):
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port, rsh="") as group:
        scenario.check(group.incr(0) == 1, "the group serves")
        far = (group.leader() + 1) % HOSTS
        name, pid = network.names[far], group.status(far)["pid"]
        for session in sshds.sessions(far):
            os.kill(session, signal.SIGKILL)
        h.wait_until(lambda: f"the connection to the host is lost: {name}: Connection to"
                     in group.said(), 30, "crane-run notices the lost connection")
        scenario.check(group.incr(far) == 2 and h.alive(pid), "its replica continues")
        scenario.check(group.stop(signal.SIGTERM) == 120 and
                       f"replicas may still run: {name}" in group.said(),
                       "replicas that could not be stopped are named (120)", group.said())
        status, text = group.run("--stop")
        # The hosts share files: the first agent may stop all replicas.
        scenario.check(status == 0 and any(f"{n}: stopped" in text for n in network.names)
                       and not h.alive(pid), "--stop ends it", text)
        sshds.empty(scenario, group, "all is gone after --stop")


def wrong_hosts(scenario, network, sshds):
    names, last = network.names, HOSTS - 1
    group = Remote(scenario, network, program(h.free_port()), rsh="")
    listed = list(group.hosts)

    def use(what, status, words, *more, hosts=None, rsh=""):
        group.hosts, group.rsh = hosts or listed, rsh
        got, text = group.run(*more, timeout=120)
        scenario.check(got == status and all(w in text for w in words) and "; " in text
                       and whole_lines(text), f"{what}: status {status}", f"{got}: {text!r}")
        sshds.empty(scenario, group, f"{what}: nothing is left")

    cannot = f"cannot reach the host: {names[last]}: "
    use("a name that ssh does not know", 120, ["nowhere.invalid", "resolve hostname"],
        hosts=listed[:last] + [f"nowhere.invalid={network.addresses[last]}"])
    key = sshds.authorized(last).read_text()
    sshds.authorized(last).write_text("")
    use("a host that does not accept our key", 120, [cannot, "Permission denied (publickey)"])
    sshds.authorized(last).write_text(key)
    known = sshds.known.read_text()
    sshds.known.write_text("".join(known.splitlines(True)[:last]))
    use("a host whose key we do not know", 120, [cannot, "Host key verification failed"])
    sshds.known.write_text(known)
    sshds.silence(last)
    use("a host without sshd", 120, [cannot, "Connection refused"])
    sshds.serve(last)
    use("a missing configuration file of ssh", 120, [cannot, "/nowhere/config"],
        rsh="ssh -F /nowhere/config")
    use("no such remote shell", 102, ["cannot start the remote shell: no-such-shell"],
        rsh="no-such-shell -x")
    use("hosts without Crane", 121, [f"no Crane of this version: {n}" for n in names],
        "--remote-path", "/nowhere/crane-run")


def body(scenario):
    h.need("redis-server", "ip", "ssh", "ssh-keygen")
    if not os.access(SSHD, os.X_OK):
        raise h.CannotRun("sshd is not installed (make deps)")
    if os.geteuid() != 0:
        raise h.CannotRun("namespaces need root")
    with Network(HOSTS) as network, Sshds(scenario, network) as sshds:
        wrong_hosts(scenario, network, sshds)
        serve_and_lose(scenario, network, sshds)
        crane_run_is_killed(scenario, network, sshds)
        connection_is_lost(scenario, network, sshds)


h.run_scenario("hosts_ssh", body)
