#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of every kind: half-closed, reset, slow, large, many; the replicas stay equal."""
import os
import resource
import shutil
import socket
import struct
import subprocess

import _harness as h


def half_close(port):
    """Sends its request and FIN; must still get the whole answer."""
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(b"GET /1k.html HTTP/1.0\r\n\r\n")
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while True:
            part = s.recv(65536)
            if not part:
                return answer
            answer += part


def reset(port, request):
    """Sends (part of) a request and breaks the connection with RST."""
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.sendall(request)
    s.close()


def slow(port, path, pieces):
    """Reads in small steps, with a small window; returns how many bytes came."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", port))
        s.settimeout(20)
        s.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path)
        got = 0
        while True:
            part = s.recv(pieces)
            if not part:
                return got
            got += len(part)


def resident_mib(pid):
    text = open(f"/proc/{pid}/status", encoding="utf8").read()
    return int(text[text.index("VmRSS:"):].split()[1]) >> 10


def never_reading(scenario, group, port):
    """Clients that request a lot and read nothing must not make the node grow."""
    before = resident_mib(group.replica(group.leader())["node_pid"])
    clients = []
    for _ in range(20):
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.sendall(b"GET /1m.bin HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        clients.append(s)
    answer = h.http(port, b"GET /1k.html HTTP/1.0\r\n\r\n", 20)
    after = resident_mib(group.replica(group.leader())["node_pid"])
    for s in clients:
        s.close()
    scenario.check(b"200 OK" in answer, "others are served meanwhile", repr(answer[:100]))
    scenario.check(after - before < 120, "20 clients that read nothing, 400 MB asked for: the node "
                   f"does not grow ({before} to {after} MiB)")


def many(scenario, port, count):
    """Holds `count` connections open at once, then uses each."""
    clients, served = [], 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        for _ in range(count):
            clients.append(socket.create_connection(("127.0.0.1", port), 20))
        for s in clients:
            s.settimeout(20)
            s.sendall(b"PING\r\n")
        for s in clients:
            served += s.recv(64) == b"+PONG\r\n"
    finally:
        for s in clients:
            s.close()
    scenario.check(served == count, f"{count} connections at once", f"{served} were served")


def apache_part(scenario):
    port = h.free_port()
    extra = "\n".join((
        "<IfModule !mod_dav.c>\n  LoadModule dav_module /usr/lib/apache2/modules/mod_dav.so",
        "  LoadModule dav_fs_module /usr/lib/apache2/modules/mod_dav_fs.so\n</IfModule>",
        f"DavLockDB {scenario.work}/davlock/db\nAlias /dav {scenario.work}/dav",
        f"<Directory {scenario.work}/dav>\n  Dav On\n  Require all granted\n</Directory>"))
    conf = h.apache_configuration(scenario.work, port, extra)
    for name in ("dav", "davlock"):
        (scenario.work / name).mkdir()
        (scenario.work / name).chmod(0o777)
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port, record=True) as group:
        answer = half_close(port)
        scenario.check(answer.endswith(b"x" * 100 + b"\n"), "half-closed: the whole answer comes",
                       repr(answer[:200]))
        for request in (b"", b"GET /1k", b"GET /1m.bin HTTP/1.0\r\n\r\n"):
            for _ in range(5):
                reset(port, request)
        scenario.check(b"200 OK" in half_close(port), "15 clients reset: the server continues")
        got = slow(port, b"/1m.bin", 16384)
        scenario.check(got > 1 << 20, "a slow reader gets all of 1 MB", f"{got} bytes")
        if group.container:
            page = os.urandom(10 << 20)
            answer = h.http(port, b"PUT /dav/large HTTP/1.0\r\nContent-Length: %d\r\n\r\n"
                            % len(page) + page, 60)
            scenario.check(b" 201 " in answer[:20], "a body of 10 MB is taken", repr(answer[:100]))
            back = h.http(port, b"GET /dav/large HTTP/1.0\r\n\r\n", 60)
            scenario.check(back.endswith(page), "the body comes back unchanged",
                           f"{len(back)} bytes")
        never_reading(scenario, group, port)
        group.settle()
        group.check_calm()
        group.stop()
        scenario.say("crane-diff: " + str(scenario.check_equal(group,
                                                               what="apache: outputs equal")))


def redis_part(scenario):
    port, count = h.free_port(), 3000 if scenario.full else 500
    with h.Group(scenario, h.redis_program(port, "--maxclients", "6000"), port=port,
                 record=True) as group:
        many(scenario, port, count)
        group.settle()
        group.check_calm()
        group.stop()
        scenario.say("crane-diff: " + str(scenario.check_equal(group, what="redis: outputs equal")))


def full_disk(scenario):
    """The recordings' file system is full: recording stops, the service does not."""
    small = scenario.work / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=9m", "none", str(small)]).returncode != 0:
        scenario.say("no small file system can be made on this machine: the full disk is left out")
        return
    try:
        port = h.free_port()
        group = h.Group(scenario, h.redis_program(port), port=port, record=True)
        group.record = small
        with group:
            client, big = h.Redis(port, 20), b"v" * 200000
            client("SET", "k", big)
            for _ in range(60):
                story_bytes = client("GET", "k")
            scenario.check(story_bytes == big and client("PING") == "PONG",
                           "a full disk under the recordings: the service continues")
            client.close()
            group.settle()
            group.check_calm()
            group.stop()
            status, text = group.diff()
            scenario.check(status == 1 and "recording stopped" in text, "crane-diff reports it",
                           f"exit {status}: {text[-500:]}")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


def body(scenario):
    if shutil.which("apache2", path=os.environ["PATH"] + ":/usr/sbin"):
        apache_part(scenario)
    else:
        print("SKIPPED: e2e/clients: apache2 is not installed")
    h.need("redis-server")
    redis_part(scenario)
    full_disk(scenario)


h.run_scenario("clients", body)
