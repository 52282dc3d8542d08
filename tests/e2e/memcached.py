#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memcapable, concurrent set/get/incr, then stats and a dump of all keys, equal on all replicas."""
import random
import shutil
import socket
import subprocess
import threading

import _harness as h


def load(port, number, count, problems):
    """One client: sets, gets back, increments; every answer is checked."""
    rng = random.Random(number)
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as s, s.makefile("rwb") as f:
            def ask(text, lines=1):
                f.write(text)
                f.flush()
                return [f.readline() for _ in range(lines)]
            ask(b"set n:%d 0 0 1\r\n0\r\n" % number)
            for i in range(count):
                value = bytes(rng.choices(b"abcdef", k=rng.randrange(1, 300)))
                key = b"k:%d:%d" % (number, rng.randrange(50))
                if ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)) != [b"STORED\r\n"]:
                    problems.append(f"set {key}")
                got = ask(b"get %s\r\n" % key, 3)
                if got[1:] != [value + b"\r\n", b"END\r\n"]:
                    problems.append(f"get {key}: {got}")
                if ask(b"incr n:%d 1\r\n" % number) != [b"%d\r\n" % (i + 1)]:
                    problems.append(f"incr {number}: not {i + 1}")
                ask(b"incr shared 1\r\n")
    except OSError as error:
        problems.append(f"client {number}: {error}")


def ask_until(port, text, end):
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.sendall(text)
        data = b""
        while not data.endswith(end):
            part = s.recv(65536)
            if not part:
                break
            data += part
        return data


def body(story):
    h.need("memcached")
    port, clients = h.free_port(), 8
    count = 2000 if story.full else 150
    program = ["memcached", "-p", str(port), "-l", "127.0.0.1", "-U", "0", "-t", "4"]
    with h.Group(story, program, port=port, record=True) as group:
        capable = shutil.which("memccapable") or shutil.which("memcapable")
        if capable:
            done = subprocess.run([capable, "-h", "127.0.0.1", "-p", str(port)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            story.check(done.returncode == 0 and "fail" not in done.stdout.lower(),
                        f"memcapable: {done.stdout.count('pass')} cases",
                        "\n".join(s for s in done.stdout.splitlines() if "[pass]" not in s))
        else:
            story.say("memcapable is absent: libmemcached-tools")
        ask_until(port, b"flush_all\r\n", b"\r\n")
        ask_until(port, b"set shared 0 0 1\r\n0\r\n", b"\r\n")
        problems = []
        threads = [threading.Thread(target=load, args=(port, n, count, problems))
                   for n in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        story.check(not problems, f"{clients} clients, {4 * count} requests each, every answer is "
                    "right", "; ".join(problems[:5]))
        shared = ask_until(port, b"get shared\r\n", b"END\r\n").split(b"\r\n")[1]
        story.check(shared.strip() == b"%d" % (clients * count), "no increment is lost",
                    repr(shared))
        stats = ask_until(port, b"stats\r\n", b"END\r\n")
        dump = ask_until(port, b"lru_crawler metadump all\r\n", b"END\r\n")
        story.say(f"stats: {stats.count(b'STAT')} counters; dump: {dump.count(b'key=')} keys")
        story.check(stats.count(b"STAT") > 20 and dump.count(b"key=") > clients,
                    "stats and the dump are answered", repr(stats[:200] + dump[:200]))
        group.settle()
        group.check_calm()
        group.stop()
        text = story.check_equal(group, what="all replicas answered the same, stats and dump "
                                             "included")
        story.say(f"crane-diff: {text}")


h.tell("memcached", body)
