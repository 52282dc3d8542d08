#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memcapable, with the same verdicts as for a native memcached; concurrent set/get/incr, then stats
and a dump of all keys, equal on all replicas."""
import os
import random
import re
import shutil
import socket
import subprocess
import threading

import _harness as h


def load(port, number, count, problems):
    """One client: sets, reads back, increments; checks every answer."""
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


def command(port):
    return ["memcached", "-p", str(port), "-l", "127.0.0.1", "-U", "0", "-t", "4"]


def capable(port):
    """{case: verdict} of libmemcached's test suite against the server at `port`."""
    suite = shutil.which("memccapable") or shutil.which("memcapable")
    done = subprocess.run([suite, "-h", "127.0.0.1", "-p", str(port)], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    verdicts = dict(re.findall(r"^(\S.*?)\s+\[\s*(\w+)\s*\]", done.stdout, re.M))
    return verdicts | {"exit status": done.returncode}


def answers(port):
    try:
        return ask_until(port, b"version\r\n", b"\r\n").startswith(b"VERSION")
    except OSError:
        return False


def natively():
    """memcapable's verdicts on the same server without Crane."""
    port = h.free_port()
    user = ["-u", "memcache"] if os.geteuid() == 0 else []
    with subprocess.Popen([*command(port), *user], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        try:
            h.wait_until(lambda: answers(port), 20, "memcached answers natively")
            return capable(port)
        finally:
            server.terminate()


def body(scenario):
    h.need("memcached", "memccapable" if shutil.which("memccapable") else "memcapable")
    port, clients = h.free_port(), 8
    count = 2000 if scenario.full else 150
    native = natively()
    scenario.check(list(native.values()).count("pass") > 20, "memcapable runs natively",
                   repr(native))
    with h.Group(scenario, command(port), port=port, record=True) as group:
        said = capable(port)
        scenario.check(said == native,
                       f"memcapable: {len(said) - 1} cases, each the same as natively",
                       repr({case: (native.get(case), said.get(case)) for case in native | said
                             if native.get(case) != said.get(case)}))
        bad = [case for case, verdict in said.items() if verdict == "fail"]
        scenario.check(said["exit status"] == 0 and not bad, "memcapable: no case fails", repr(bad))
        ask_until(port, b"flush_all\r\n", b"\r\n")
        ask_until(port, b"set shared 0 0 1\r\n0\r\n", b"\r\n")
        problems = []
        threads = [threading.Thread(target=load, args=(port, n, count, problems))
                   for n in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        scenario.check(not problems,
                       f"{clients} clients, {4 * count} requests each, every answer is "
                       "right", "; ".join(problems[:5]))
        shared = ask_until(port, b"get shared\r\n", b"END\r\n").split(b"\r\n")[1]
        scenario.check(shared.strip() == b"%d" % (clients * count), "no increment is lost",
                       repr(shared))
        stats = ask_until(port, b"stats\r\n", b"END\r\n")
        dump = ask_until(port, b"lru_crawler metadump all\r\n", b"END\r\n")
        scenario.say(f"stats: {stats.count(b'STAT')} counters; dump: {dump.count(b'key=')} keys")
        scenario.check(stats.count(b"STAT") > 20 and dump.count(b"key=") > clients,
                       "stats and the dump are answered", repr(stats[:200] + dump[:200]))
        group.settle()
        group.check_calm()
        group.stop()
        text = scenario.check_equal(group, what="all replicas answered the same, stats and dump "
                                             "included")
        scenario.say(f"crane-diff: {text}")


h.run_scenario("memcached", body)
