#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients reach a server at the addresses at which it listens, and at no others: loopback stays
closed to the network, IPv4 and IPv6 are separated as the server requests, --publish ADDRESS opens
more addresses, and a server that changes its addresses is followed, also across the loss of a
leader and an upgrade."""
import errno
import signal
import socket
import subprocess

import _harness as h

SERVER = r'''
import select, socket, sys
listeners = []
for word in sys.argv[2:]:
    address, _, how = word.partition("=")
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if how == "v6only":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if how == "lo":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    s.bind((address, int(sys.argv[1])))
    s.listen(16)
    listeners.append((s, word))
while True:
    for s in select.select([s for s, _ in listeners], [], [])[0]:
        c, _ = s.accept()
        c.sendall(dict((s, w) for s, w in listeners)[s].encode())
        c.close()
'''

# Binds those of the addresses that it can, and reports the results to clients at loopback.
CHOOSY = r'''
import errno, socket, sys
said, kept = [], []
for address in sys.argv[2:]:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind((address, int(sys.argv[1])))
        s.listen(16)
        kept.append(s)
        said.append("bound")
    except OSError as error:
        said.append(errno.errorcode[error.errno])
while True:
    c, _ = kept[0].accept()
    c.sendall(" ".join(said).encode())
    c.close()
'''


def own_addresses():
    """One of this machine's network addresses of each family, or None."""
    output = subprocess.run(["ip", "-o", "addr", "show", "scope", "global"], text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    words = [line.split() for line in output.splitlines()]
    found = {}
    for line in words:
        found.setdefault(line[2], line[3].split("/")[0])
    return found.get("inet"), found.get("inet6")


def says(address, port):
    """The answer of the server at this address; "refused" if nothing listens there."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(20)
        error = client.connect_ex((address, port))
        if error:
            return "refused" if error == errno.ECONNREFUSED else errno.errorcode[error]
        return client.recv(100).decode()


def check(scenario, port, what, expected):
    for address, answer in expected.items():
        if address is None:
            continue
        said = says(address, port)
        scenario.check(said == answer, f"{what}: {address}: {answer}", said)


def group_of(scenario, port, places, options=(), ours=None):
    program = ["python3", "-c", SERVER, str(port), *places]
    return h.Group(scenario, program, port=ours or port, options=options)


def loopback(scenario, four, six):
    port = h.free_port()
    expected = {"127.0.0.1": "127.0.0.1", "::1": "::1", four: "refused", six: "refused"}
    with group_of(scenario, port, ["127.0.0.1", "::1"]) as group:
        h.wait_until(lambda: says("::1", port) == "::1", 20, "the second address is open")
        check(scenario, port, "loopback alone", expected)
        log = group.log.read_text()
        scenario.check(f"listening on port {port} of 127.0.0.1 only" in log and
                       f"listening on port {port} of ::1 only" in log,
                       "crane-run reports at which addresses it listens", log)
        lost = group.leader()
        group.signal_node(lost, signal.SIGKILL)
        h.wait_until(lambda: group.leader() not in (None, lost), 30, "another replica leads")
        h.wait_until(lambda: says("::1", port) == "::1", 30, "it serves")
        check(scenario, port, "loopback, another leader", expected)
        group.settle()


def families(scenario, four, six):
    for places, expected in (
            (["::=v6only"], {"127.0.0.1": "refused", "::1": "::=v6only", four: "refused",
                             six: "::=v6only"}),
            (["::"], {"127.0.0.1": "::", "::1": "::", four: "::", six: "::"}),
            (["0.0.0.0"], {"127.0.0.1": "0.0.0.0", "::1": "refused", four: "0.0.0.0"}),
            (["0.0.0.0=lo"], {"127.0.0.1": "0.0.0.0=lo", four: "refused"}),
            (["::1"], {"::1": "::1", "127.0.0.1": "refused", six: "refused"})):
        port = h.free_port()
        with group_of(scenario, port, places):
            check(scenario, port, places[0], expected)


def published(scenario, four, six):
    port, ours = h.free_port(), h.free_port()
    for option, expected in ((f"{ours}:{port}", {"127.0.0.1": "127.0.0.1", four: "refused"}),
                             (f"0.0.0.0:{ours}:{port}", {"127.0.0.1": "127.0.0.1",
                                                         four: "127.0.0.1", "::1": "refused"}),
                             (f"[::]:{ours}:{port}", {"127.0.0.1": "127.0.0.1",
                                                      six: "127.0.0.1"})):
        with group_of(scenario, port, ["127.0.0.1"], ["--publish", option], ours):
            check(scenario, ours, f"--publish {option}", expected)


def foreign(scenario, four):
    """Before any client connects, the server gets its machine's results of binding addresses."""
    port = h.free_port()
    places = ["127.0.0.1", "203.0.113.7", "2001:db8::7", four]
    answer = "bound EADDRNOTAVAIL EADDRNOTAVAIL bound"
    with h.Group(scenario, ["python3", "-c", CHOOSY, str(port), *places], port=port) as group:
        check(scenario, port, "foreign addresses", {"127.0.0.1": answer})
        group.settle()


def changed(scenario, four):
    """redis moves between loopback and all addresses; an upgrade moves it back."""
    port = h.free_port()
    program = ["redis-server", "--port", str(port), "--save", "", "--protected-mode", "no"]
    with h.Group(scenario, [*program, "--bind", "127.0.0.1"], port=port) as group:
        client = h.Redis(port, 20)
        for bind, open_to_all in (("127.0.0.1", False), ("0.0.0.0", True), ("127.0.0.1", False)):
            scenario.check(client("CONFIG", "SET", "bind", bind) == "OK", f"redis binds {bind}")
            h.wait_until(lambda: reached(four, port) == open_to_all, 30,
                         f"bound to {bind}: reached from outside: {open_to_all}")
            h.wait_until(lambda: reached("127.0.0.1", port), 30, "redis is reached by loopback")
            scenario.check(True, f"redis at {bind}: open to all: {open_to_all}")
        client.close()
        for bind, open_to_all in (("0.0.0.0", True), ("127.0.0.1", False)):
            rc, output = h.ctl(scenario, "--dir", str(group.home), "upgrade", group.name, "--yes",
                               "--", *program, "--bind", bind)
            scenario.check(rc == 0, f"an upgrade to a server bound to {bind}", output)
            h.wait_until(lambda: reached(four, port) == open_to_all, 30,
                         f"upgraded, {bind}: reached from outside: {open_to_all}")
            scenario.check(reached("127.0.0.1", port), f"upgraded, {bind}: reached by loopback")
        group.settle()


def reached(address, port):
    try:
        client = h.Redis(port, 5, address)
        try:
            return client("PING") == "PONG"
        finally:
            client.close()
    except OSError:
        return False


def body(scenario):
    h.need("redis-server", "ip", "python3")
    four, six = own_addresses()
    if four is None:
        raise h.CannotRun("this machine has no address on a network")
    loopback(scenario, four, six)
    families(scenario, four, six)
    published(scenario, four, six)
    foreign(scenario, four)
    changed(scenario, four)


if __name__ == "__main__":
    h.run_scenario("addresses", body)
