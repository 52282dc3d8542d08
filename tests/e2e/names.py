#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replicated server resolves names, and connects by name, over IPv4 and IPv6. The leader's
resolver is a DNS server of the test. All replicas get the same answers, also when the leader is
killed during a query, when the DNS server is gone, and with --outbound none. A replay sends no
query."""
import os
import signal
import socket
import socketserver
import struct
import subprocess
import threading

import _harness as h

ADDRESSES = {"four.test": ["127.0.0.1"], "six.test": ["::1"],
             "both.test": ["192.0.2.77", "2001:db8::77"], "slow.test": ["192.0.2.78"]}

SERVER = r"""
import socket, sys
l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(("0.0.0.0", int(sys.argv[1])))
l.listen(16)

def answer(words):
    if words[0] == "resolve":
        found = socket.getaddrinfo(words[1], 80, 0, socket.SOCK_STREAM)
        return " ".join(a[4][0] for a in found)
    if words[0] == "entry":
        return socket.gethostbyname(words[1])
    source = (words[3], int(words[4])) if words[3:] else None
    s = socket.create_connection((words[1], int(words[2])), source_address=source)
    if source and s.getsockname()[:2] != source:
        return f"getsockname {s.getsockname()}"
    return s.makefile().readline().strip()

while True:
    c, _ = l.accept()
    line = c.makefile().readline()
    try:
        text = answer(line.split())
    except OSError as error:
        text = f"error {type(error).__name__} {error.errno}"
    c.sendall((text + "\n").encode())
    c.close()
"""


class Dns:
    """Answers A and AAAA of ADDRESSES; answers "slow.test" only when the test releases it."""

    def __init__(self):
        self.heard, self.goes_on = [], threading.Event()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                data, server = self.request
                outer.answer(data, server, self.client_address)

        self.server = socketserver.ThreadingUDPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, data, server, client):
        at, labels = 12, []
        while data[at]:
            labels.append(data[at + 1:at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, kind = ".".join(labels), struct.unpack(">H", data[at + 1:at + 3])[0]
        self.heard.append(name)
        if name == "slow.test" and not self.goes_on.wait(60):
            return
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        ips = [ip for ip in ADDRESSES.get(name, [])
               if (":" in ip) == (family == socket.AF_INET6)]
        code = 0 if name in ADDRESSES else 3
        reply = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(ips), 0, 0) + data[12:at + 5]
        for ip in ips:
            packed = socket.inet_pton(family, ip)
            reply += struct.pack(">HHHIH", 0xc00c, kind, 1, 0, len(packed)) + packed
        server.sendto(reply, client)

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Peer:
    """Answers each client with the address it comes from."""

    def __init__(self, family, ip):
        self.ip, self.socket = ip, socket.socket(family)
        self.socket.bind((ip, 0))
        self.socket.listen(16)
        self.port = self.socket.getsockname()[1]
        self.came = []  # from these addresses and ports
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, address = self.socket.accept()
            self.came.append(address[:2])
            client.sendall(f"from {address[0]}\n".encode())
            client.close()


def ask(port, line):
    with socket.create_connection(("127.0.0.1", port), timeout=90) as c:
        c.sendall((line + "\n").encode())
        return c.makefile().readline().strip()


def group_of(scenario, dns_port, record=False, options=()):
    path, port = scenario.work / "names_server.py", h.free_port()
    path.write_text(SERVER)
    return h.Group(scenario, ["python3", str(path), str(port)], port=port, record=record,
                   options=["--resolver", f"127.0.0.1:{dns_port}", *options]), port


def looks_up(scenario):
    dns = Dns()
    four, six = Peer(socket.AF_INET, "127.0.0.1"), Peer(socket.AF_INET6, "::1")
    group, port = group_of(scenario, dns.port, record=True)
    with group:
        wanted = {"resolve both.test": {"192.0.2.77", "2001:db8::77"},
                  "entry both.test": {"192.0.2.77"}, "resolve 10.0.0.1": {"10.0.0.1"},
                  "entry localhost": {"127.0.0.1"},
                  "resolve no.test": {"error", "gaierror", str(socket.EAI_NONAME)}}
        for line, words in wanted.items():
            got = ask(port, line)
            scenario.check(set(got.split()) == words, f"{line}: {got}", got)
        scenario.check("localhost" not in dns.heard and "10.0.0.1" not in dns.heard,
                       "names that need no resolver are not queried", str(dns.heard))
        for line, answer in ((f"connect four.test {four.port}", "from 127.0.0.1"),
                             (f"connect six.test {six.port}", "from ::1"),
                             (f"connect ::1 {six.port}", "from ::1")):
            got = ask(port, line)
            scenario.check(got == answer, f"{line}: {got}", got)
        scenario.check((len(four.came), len(six.came)) == (1, 2),
                       "each peer got the expected connections",
                       f"{four.came} {six.came}")
        for peer, ip in ((four, "127.0.0.3"), (six, "::1")):
            source = (ip, h.free_port())
            got = ask(port, f"connect {peer.ip} {peer.port} {ip} {source[1]}")
            scenario.check(got == f"from {ip}" and peer.came[-1] == source,
                           f"bound to {ip} and a port, it comes from there", f"{got} {peer.came}")
        dns.end()
        got = ask(port, "resolve gone.test")
        scenario.check(got == f"error gaierror {socket.EAI_AGAIN}",
                       f"a DNS server that is gone: {got}", got)
        group.settle()
        group.stop()
    scenario.check_equal(group)
    scenario.check_schedule(group)
    heard = len(dns.heard)
    done = subprocess.run([str(scenario.out / "crane-replay"), str(group.record)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    scenario.check(done.returncode == 0, "a replay is equal", done.stdout)
    scenario.check(len(dns.heard) == heard, "the replay has sent no query")


def leader_is_lost(scenario):
    dns = Dns()
    group, port = group_of(scenario, dns.port)
    with group:
        got = []
        client = threading.Thread(target=lambda: got.append(ask(port, "resolve slow.test")))
        client.start()
        h.wait_until(lambda: "slow.test" in dns.heard, 30, "the leader sends the query")
        dns.heard.clear()
        pid = group.replica(group.leader())["node_pid"]
        os.kill(pid, signal.SIGKILL)
        h.wait_until(lambda: "slow.test" in dns.heard, 60, "the next leader sends the query again")
        dns.goes_on.set()
        client.join(60)
        scenario.check(got == ["192.0.2.78"], "the client has its answer, by the next leader",
                       str(got))
        h.wait_until(group.are_whole, 60, "all replicas are ready")
        group.settle()
        group.stop()
    dns.end()


def is_refused(scenario):
    dns = Dns()
    group, port = group_of(scenario, dns.port, options=["--outbound", "none"])
    with group:
        got = ask(port, "resolve four.test")
        scenario.check(got == f"error gaierror {socket.EAI_FAIL}", f"--outbound none: {got}", got)
        scenario.check(not dns.heard, "no query is sent", str(dns.heard))
        group.stop()
    dns.end()


def body(scenario):
    h.need("python3")
    looks_up(scenario)
    leader_is_lost(scenario)
    is_refused(scenario)


h.run_scenario("names", body)
