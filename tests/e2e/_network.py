# SPDX-License-Identifier: Apache-2.0
"""Hosts as network namespaces behind bridges, with links that can be cut and restored."""
import os
import pathlib
import subprocess
import sys

import _harness as h

RELAY = pathlib.Path(__file__).resolve().parent / "_relay.py"


def ip(*words, check=True):
    done = subprocess.run(["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=20)
    if check and done.returncode != 0:
        raise h.CannotRun(f"`ip {' '.join(words)}`: {done.stdout.strip()}")
    return done.stdout


class Network:
    """A bridge with one namespace per host; the context manager removes all at the end.

    With `apart` there is a second bridge for clients: they can still reach a host (its link 1) that
    is cut off from the others (its link 0).

    With `visitors` there is one more namespace for clients (`visit`): their ports are free again a
    second after a connection, so that they can open more than 14,000 in a minute.

    With `delay` (milliseconds, plus or minus milliseconds) the hosts are connected by a switch that
    delays frames (link 0, which cannot be cut then).
    """

    def __init__(self, hosts, apart=False, delay=None, visitors=False):
        self.delay, self.relay = delay, None
        self.tag = f"cr{os.getpid() % 100000}"
        net = os.getpid() % 200 + 20
        self.planes = [(f"{self.tag}{letter}", f"10.{213 + k}.{net}")
                       for k, letter in enumerate("bc" if apart else "b")]
        self.addresses = [f"{self.planes[0][1]}.{i + 1}" for i in range(hosts)]
        self.clients = [f"{self.planes[-1][1]}.{i + 1}" for i in range(hosts)]
        self.virtual = f"{self.planes[0][1]}.100"
        self.names = [f"{self.tag}n{i}" for i in range(hosts)]
        self.visitors = f"{self.tag}v" if visitors else ""

    def port(self, host, plane):
        return f"{self.tag}p{host}{'bc'[plane]}"

    def __enter__(self):
        try:
            for bridge, net in self.planes:
                ip("link", "add", bridge, "type", "bridge")
                ip("addr", "add", net + ".254/24", "dev", bridge)
                ip("link", "set", bridge, "up")
            if self.delay:
                self.start_relay()
            for host, name in enumerate(self.names):
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
                for plane, (bridge, net) in enumerate(self.planes):
                    port = self.port(host, plane)
                    device = f"eth{plane}"
                    if self.relay and plane == 0:
                        ip("link", "set", port, "netns", name, "name", device)
                    else:
                        ip("link", "add", port, "type", "veth", "peer", "name", device, "netns",
                           name)
                        ip("link", "set", port, "master", bridge, "up")
                    ip("-n", name, "addr", "add", f"{net}.{host + 1}/24", "dev", device)
                    ip("-n", name, "link", "set", device, "up")
            if self.visitors:
                self.let_visitors_in()
        except h.CannotRun:
            self.__exit__()
            raise
        return self

    def let_visitors_in(self):
        bridge, net = self.planes[-1]
        ip("netns", "add", self.visitors)
        ip("-n", self.visitors, "link", "set", "lo", "up")
        ip("link", "add", self.visitors, "type", "veth", "peer", "name", "eth0", "netns",
           self.visitors)
        ip("link", "set", self.visitors, "master", bridge, "up")
        ip("-n", self.visitors, "addr", "add", f"{net}.200/24", "dev", "eth0")
        ip("-n", self.visitors, "link", "set", "eth0", "up")
        ip("netns", "exec", self.visitors, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse")

    def start_relay(self):
        names = [self.port(host, 0) for host in range(len(self.names))] + [f"{self.tag}r"]
        delay, jitter = self.delay
        self.relay = subprocess.Popen(
            [sys.executable, str(RELAY), "--delay-ms", str(delay), "--jitter-ms", str(jitter),
             *names], stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise h.CannotRun("no tap devices can be made (/dev/net/tun)")
        ip("link", "set", names[-1], "master", self.planes[0][0], "up")

    def enter(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def visit(self):
        return ["ip", "netns", "exec", self.visitors]

    def moving_address(self):
        """The virtual address for a group's file, under [clients]."""
        return {"virtual_ip": self.virtual + "/24", "interface": "eth0"}

    def holders(self):
        return [i for i, name in enumerate(self.names)
                if f" {self.virtual}/" in ip("-n", name, "-4", "addr", "show", "dev", "eth0")]

    def link(self, host, state, plane=0):
        ip("link", "set", self.port(host, plane), state)

    def silence(self, host, to, on):
        """Loses packets from `host` to `to`; the other direction works."""
        ip("-n", self.names[host], "route", "add" if on else "del", "blackhole",
           self.addresses[to] + "/32", check=False)

    def mend(self):
        for host in range(len(self.names)):
            for plane in range(len(self.planes)):
                self.link(host, "up", plane)
            for to in range(len(self.names)):
                if to != host:
                    self.silence(host, to, False)

    def __exit__(self, *_):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        for host, name in enumerate(self.names):
            for plane in range(len(self.planes)):
                ip("link", "del", self.port(host, plane), check=False)
            ip("netns", "del", name, check=False)
        if self.visitors:
            ip("link", "del", self.visitors, check=False)
            ip("netns", "del", self.visitors, check=False)
        for bridge, _net in self.planes:
            ip("link", "del", bridge, check=False)
