# SPDX-License-Identifier: Apache-2.0
"""Pods made of namespaces, as by an engine: a separate network, host name and shared memory, the
manifest's user without capabilities, and a fixed address (a Service) for each pod, which leads to
the pod's present address."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

import _harness as h
from _network import Network, ip

FLEET = pathlib.Path(__file__).resolve().parents[2] / "runtime/packaging/fleet"
ENTRY = FLEET / "crane-entry"
# The environment of a pod: names of Services, its own host name, and memory that ends with it.
POD = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /run
mount --bind "$1" /etc/hosts
hostname "$2"
user=$3
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --bounding-set=-all "$@"
"""
MANIFEST = (FLEET / "kubernetes/base/statefulset.yaml").read_text()
USER = re.search(r"runAsUser: (\d+)", MANIFEST).group(1)


class Pods:
    """Three pods of one group; `template` is its file without replicas."""

    def __init__(self, scenario, name, template, port):
        self.scenario, self.name, self.port = scenario, name, port
        self.home = scenario.work / name
        self.home.mkdir()
        os.chown(self.home, int(USER), int(USER))
        self.network = Network(3)
        self.services = [f"10.96.{os.getpid() % 200 + 20}.{i + 1}" for i in range(3)]
        self.addresses = list(self.network.addresses)
        self.hosts = self.home / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.template = self.home / "group.toml"
        self.template.write_text(template)
        self.secret = self.home / "secret"  # as an engine mounts it: the pod's group may read it
        h.ctl(scenario, "secret", "new", str(self.secret))
        os.chown(self.secret, 0, int(USER))
        self.secret.chmod(0o440)
        self.state = self.home / "state"
        self.pods = [None] * 3

    def __enter__(self):
        self.network.__enter__()
        try:
            for pod in range(3):
                self.inside(pod, "ip", "route", "add", "10.96.0.0/16", "dev", "eth0")
                for other in range(3):
                    self.translate(pod, other, "-A")
        except h.Failure as cause:
            self.network.__exit__()
            raise h.CannotRun(str(cause)) from None
        return self

    def inside(self, pod, *words):
        done = subprocess.run(self.network.enter(pod) + list(words), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30)
        if done.returncode != 0:
            raise h.Failure(f"in pod {pod}: `{' '.join(words)}`: {done.stdout.strip()}")
        return done.stdout

    def translate(self, pod, other, action):
        """Does what kube-proxy does for a Service of one pod."""
        self.inside(pod, "iptables", "-w", "-t", "nat", action, "OUTPUT", "-d",
                    self.services[other], "-p", "tcp", "-j", "DNAT", "--to-destination",
                    self.addresses[other])

    def name_services(self):
        """Makes the names of the Services known."""
        with open(self.hosts, "a") as hosts:
            for i, address in enumerate(self.services):
                hosts.write(f"{address} {self.name}-replica-{i}\n")

    def file(self, pod):
        """The file that the entry script made in the pod."""
        first = h.children(self.pods[pod].pid)[0]
        return pathlib.Path(f"/proc/{first}/root/run/crane/group.toml").read_text()

    def log(self, pod):
        return self.home / f"pod-{pod}.log"

    def start(self, pod):
        with open(self.log(pod), "ab") as log:
            self.pods[pod] = subprocess.Popen(
                self.network.enter(pod) + ["unshare", "--mount", "--uts", "--pid", "--fork",
                                           "--mount-proc", "sh", "-c", POD, "pod",
                                           str(self.hosts), f"{self.name}-{pod}", USER, str(ENTRY)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env={"PATH": f"{self.scenario.out}:{os.environ['PATH']}:/usr/sbin:/sbin",
                     "CRANE_TEMPLATE": str(self.template), "CRANE_REPLICAS": "3",
                     "CRANE_SECRET": str(self.secret), "CRANE_ADDRESS": f"{self.name}-replica-%d"})

    def kill(self, pod):
        """Kills the pod's first process, which ends its process namespace."""
        for first in h.children(self.pods[pod].pid):
            os.kill(first, signal.SIGKILL)
        self.pods[pod].kill()
        self.pods[pod].wait()

    def lose(self, pod):
        """Kills the pod with all of its memory, and starts it again at another address."""
        self.kill(pod)
        for other in range(3):
            self.translate(other, pod, "-D")
        old = self.addresses[pod]
        self.addresses[pod] = old.rsplit(".", 1)[0] + f".{pod + 51}"
        ip("-n", self.network.names[pod], "addr", "del", old + "/24", "dev", "eth0")
        ip("-n", self.network.names[pod], "addr", "add", self.addresses[pod] + "/24", "dev", "eth0")
        self.inside(pod, "ip", "route", "replace", "10.96.0.0/16", "dev", "eth0")
        for other in range(3):
            self.translate(other, pod, "-A")
        self.start(pod)

    def ask(self, pod, path):
        """The status of the pod's probe; 0: it does not answer."""
        done = subprocess.run(self.network.enter(pod) + ["curl", "-s", "-o", "/dev/null", "-w",
                                                         "%{http_code}", "--max-time", "5",
                                                         f"http://127.0.0.1:9100{path}"],
                              stdout=subprocess.PIPE, text=True, timeout=30)
        return int(done.stdout or 0)

    def leader(self):
        found = [i for i in range(3) if self.ask(i, "/leader") == 200]
        return found[0] if len(found) == 1 else None

    def redis(self, pod, to, *words):
        """The answer to redis-cli in that pod from another pod's Service."""
        return self.inside(pod, "redis-cli", "-h", self.services[to], "-p", str(self.port),
                           *words).strip()

    def takes(self, past, *words):
        """The answer of the pod after `past` to its neighbour; None: no answer."""
        with contextlib.suppress(h.Failure):
            return self.redis((past + 2) % 3, (past + 1) % 3, *words)

    def explain(self):
        for i in range(3):
            print(f"--- pod {i}\n{h.tail(self.log(i), 20)}\n"
                  f"{h.tail(self.state / self.name / f'r{i}' / 'node.log', 20)}", flush=True)

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.explain()
        for pod, process in enumerate(self.pods):
            if process:
                self.kill(pod)
        self.network.__exit__()
        return False
