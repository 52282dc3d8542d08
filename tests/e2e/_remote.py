# SPDX-License-Identifier: Apache-2.0
"""crane-run --hosts over a remote shell that enters network namespaces."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess

import _harness as h
from _hosts import Hosts

START_SECONDS = 180
STOP_SECONDS = 60

# A remote shell like ssh: HOST, then words that a shell of that host joins.  A file with the host's
# name beside it runs first, in the host's mounts.  Killing the remote shell does not kill the
# processes that it started there.
RSH = """#!/bin/sh
host=$1; shift
here=$(dirname "$0")
[ "$host" != gone ] || { echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255; }
[ ! -f "$here/$host" ] || first=". $here/$host;"
ip netns exec "$host" sh -c "$first exec $*"
"""


class Remote:
    """crane-run --hosts and its group; the context manager removes all of it at the end."""

    def __init__(self, scenario, network, program, *, port=None, options=(), rsh=None, hosts=None,
                 container=None, record=False, out=None):
        self.scenario, self.network = scenario, network
        self.program, self.port = list(program), port
        self.name = f"{scenario.name}-{os.getpid()}-{scenario.next_number()}"
        self.state = scenario.work / f"state-{self.name}"
        self.state.mkdir()
        self.state.chmod(0o755)
        self.hosts = hosts or [f"{n}={a}" for n, a in zip(network.names, network.addresses)]
        self.out = out or scenario.out
        self.container = h.can_contain() if container is None else container
        self.record = scenario.work / f"record-{self.name}" if record else None
        self.options = list(options) + (["--record", str(self.record)] if record else [])
        self.rsh = str(remote_shell(scenario)) if rsh is None else rsh  # "": crane-run's default
        self.log = scenario.work / f"{self.name}.log"
        self.process = None

    def command(self, *more, program=None):
        words = [str(self.out / "crane-run"), "--hosts", ",".join(self.hosts), "--name",
                 self.name, "--dir", str(self.state)] + (["--rsh", self.rsh] if self.rsh else [])
        if not self.container:
            words.append("--no-container")
        return words + self.options + list(more) + ["--"] + (program or self.program)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd="/",
                                            stdin=subprocess.DEVNULL, start_new_session=True)

    def said(self):
        return self.log.read_text(errors="replace")

    def serves(self):
        if self.process.poll() is not None:
            raise h.Failure(f"crane-run ended with status {self.process.returncode}: {self.said()}")
        return all(w in self.said() for w in (" leads (view ", "all replicas run",
                                              f"listening on port {self.port} of "))

    def run(self, *more, program=None, timeout=STOP_SECONDS):
        """Returns (status, output) of another crane-run for the same hosts."""
        done = subprocess.run(self.command(*more, program=program), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", timeout=timeout, cwd="/")
        return done.returncode, done.stdout

    def wait(self):
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise h.Failure(f"crane-run of {self.name} did not end: {self.said()}") from None

    def stop(self, signo=signal.SIGINT):
        self.process.send_signal(signo)
        return self.wait()

    def status(self, number):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(5)
            try:
                s.connect(str(self.state / self.name / f"r{number}" / "control.sock"))
                s.send(b'{"do":"status"}')
                return json.loads(s.recv(65536))
            except (OSError, ValueError):
                return None

    @property
    def addresses(self):
        return self.network.addresses

    def live(self):
        return [n for n in range(len(self.hosts)) if self.status(n)]

    statuses = h.Group.statuses
    settle = h.Group.settle
    brief = h.Group.brief
    diff = h.Group.diff
    leader = Hosts.leader
    asked = h.Group.asked
    problems_of = h.Group.problems_of

    def incr(self, host, seconds=30):
        """Sends INCR through a host until it answers."""
        def answered():
            try:
                client = h.Redis(self.port, 2.0, self.network.addresses[host])
                try:
                    return client("INCR", "counter")
                finally:
                    client.close()
            except OSError:
                return None
        return h.wait_until(answered, seconds, f"host {host} of {self.name} serves")

    def processes(self):
        """Processes that name the group or its directory, and the agents of these programs."""
        found, agent = [], f"{self.out}/crane-run\0--host-agent\0".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                if self.name.encode() in words or words == agent:
                    found.append(int(pid))
        return found

    def shell_of(self, host):
        """The process of the remote shell to a host."""
        words = self.network.names[host].encode() + b"\0"
        for pid in filter(str.isdigit, os.listdir("/proc")):
            above = h.process_stat(pid)
            with contextlib.suppress(OSError):
                if above and above[0] == self.process.pid \
                        and words in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
        raise h.Failure(f"{self.name} has no remote shell to host {host}")

    def leftovers(self, logs_of=()):
        """Remains that should be gone at the end; the logs of `logs_of` stay."""
        left = [f"process {pid}" for pid in self.processes()]
        here = self.state / self.name
        if here.exists():
            kept = {f"r{n}" for n in logs_of} | {"lock"}
            left += [str(p) for p in here.iterdir() if p.name not in kept or not logs_of]
        left += [str(p) for p in pathlib.Path("/dev/shm").glob(f"crane.{self.name}*")]
        left += [m for m in pathlib.Path("/proc/mounts").read_text().split()
                 if f"/{self.name}/" in m + "/"]
        return left

    def files(self):
        """Returns (path, mode) of the group's directories and of all files that crane-run put on
        hosts."""
        here = self.state / self.name
        paths = [here] + [p for d in here.glob("h*") for p in [d, *d.iterdir()]]
        return [(str(p.relative_to(self.state)), stat.S_IMODE(p.stat().st_mode)) for p in paths]

    def __enter__(self):
        self.start()
        try:
            h.wait_until(self.serves, START_SECONDS, f"{self.name} serves")
        except h.Failure:
            self.__exit__(h.Failure, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            print(f"--- crane-run of {self.name}:\n{h.tail(self.log)}")
            for path in sorted((self.state / self.name).glob("r*/node.log")):
                print(f"--- {path.parent.name}/node.log\n{h.tail(path, 12)}", flush=True)
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(f"/dev/shm/crane.{self.name}", ignore_errors=True)
        return False


def gone(scenario, group, what, logs_of=()):
    try:
        h.wait_until(lambda: not group.leftovers(logs_of), 15, "")
        left = []
    except h.Failure:
        left = group.leftovers(logs_of)
    scenario.check(not left, what, left)


def remote_shell(scenario):
    place = scenario.work / "rsh"
    place.mkdir(exist_ok=True)
    rsh = place / "rsh"
    if not rsh.exists():
        rsh.write_text(RSH)
        rsh.chmod(0o755)
    return rsh


@contextlib.contextmanager
def first_on(scenario, host, script):
    """Runs `script` on `host` before each command there."""
    path = remote_shell(scenario).parent / host
    path.write_text(script + "\n")
    try:
        yield
    finally:
        path.unlink()
