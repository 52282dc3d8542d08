#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memcached of the matrix: its own load tool, and our clients that check every answer."""
import random
import re
import socket
import subprocess

import _harness as h
import _matrix as m

MEMCASLAPS = 4   # of its requests per request of our own clients, which are slower


class Client:
    """One connection that speaks the text protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __call__(self, text, lines=1):
        self.socket.sendall(text)
        return [self.file.readline() for _ in range(lines)]

    def until(self, text, last):
        self.socket.sendall(text)
        lines = []
        while not lines or lines[-1] not in (last, b""):
            lines.append(self.file.readline())
        return lines

    def close(self):
        self.file.close()
        self.socket.close()


def work(port, number, count, timer):
    """Set, get, increment an own counter, increment the shared counter, in turn; checks each
    answer."""
    rng = random.Random(number)
    client = Client(port)
    for i in range(count):
        with timer():
            if i % 4 == 0:
                value = bytes(rng.choices(b"abcdef", k=rng.randrange(1, 300)))
                key = b"k:%d:%d" % (number, rng.randrange(50))
                got = client(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
                wanted = [b"STORED\r\n"]
            elif i % 4 == 1:
                got = client(b"get %s\r\n" % key, 3)
                wanted = [b"VALUE %s 0 %d\r\n" % (key, len(value)), value + b"\r\n", b"END\r\n"]
            elif i % 4 == 2:
                got, wanted = client(b"incr own:%d 1\r\n" % number), [b"%d\r\n" % (i // 4 + 1)]
            else:
                got = client(b"incr shared 1\r\n")
                wanted = got if re.fullmatch(rb"[1-9][0-9]*\r\n", got[0]) else ["a number"]
        if got != wanted:
            return [f"{got} instead of {wanted}"]
    client.close()
    return []


def percentiles(text, wanted):
    """Returns ms from memcaslap's histogram, whose count k is for 2^(k-1) to 2^k microseconds."""
    rows = re.findall(r"^ +(\d+):((?: +\d+)+)$", text[text.index("Total Statistics"):], re.M)
    counts = [(int(first) + i, int(count)) for first, numbers in rows
              for i, count in enumerate(numbers.split())]
    every = sum(count for _, count in counts)
    for part in wanted:
        left = part * every
        for k, count in counts:
            if left <= count:
                break
            left -= count
        yield 2 ** (k - 1) * (1 + left / count) / 1000


class Memcached(m.Server):
    name = "memcached"
    version_of = "memcached"
    programs = ("memcached", "memcaslap")
    requests = (4000, 80000)
    measured = 40000
    native_users = ("memcache",)
    more = ()   # of the command line

    def program(self):
        # /etc/memcached.conf on another port; its user is set by the profile.
        return ["memcached", "-m", "64", "-p", str(self.port), "-l", "127.0.0.1",
                *self.more]

    def native_program(self):
        return [*self.program(), "-u", "memcache"]

    def ready(self):
        try:
            client = Client(self.port)
            answer = client(b"version\r\n")[0]
            client.close()
            return answer.startswith(b"VERSION ")
        except OSError:
            return False

    def memcaslap(self, requests):
        """Nine gets per set, 64 bytes, a tenth of the values compared."""
        done = subprocess.run(["memcaslap", "-s", f"127.0.0.1:{self.port}", "-T", "1", "-c",
                               str(m.CLIENTS), "-x", str(requests), "-X", "64", "-v", "0.1", "-S",
                               "1s"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=280)
        numbers = dict(re.findall(r"^(\w+): (\d+)$", done.stdout, re.M))
        rate = re.search(r"TPS: (\d+)", done.stdout)
        bad = {k: numbers.get(k, "?") for k in ("get_misses", "verify_misses", "verify_failed")
               if numbers.get(k) != "0"}
        if done.returncode != 0 or not rate or bad:
            raise h.Failure(f"memcaslap ended with status {done.returncode}, {bad}: {done.stdout}")
        return ("get/set 90:10", float(rate[1]), *percentiles(done.stdout, (0.5, 0.99)))

    def load(self, requests):
        client = Client(self.port)
        client(b"flush_all\r\n")
        for name in [b"shared", *(b"own:%d" % n for n in range(m.CLIENTS))]:
            if client(b"set %s 0 0 1\r\n0\r\n" % name) != [b"STORED\r\n"]:
                raise h.Failure(f"{name} is not stored")
        rows = m.parallel(lambda *given: work(self.port, *given), requests, "set, get, incr")
        shared, wanted = client(b"get shared\r\n", 3)[1].strip(), requests // m.CLIENTS // 4
        client.close()
        if shared != b"%d" % (wanted * m.CLIENTS):
            raise h.Failure(f"shared counter: {shared} instead of {wanted * m.CLIENTS}")
        return [*rows, self.memcaslap(MEMCASLAPS * requests)]

    def requests_made(self, requests, rows):
        return requests + MEMCASLAPS * requests

    def state(self):
        client = Client(self.port)
        stats = client.until(b"stats\r\n", b"END\r\n")
        keys = client.until(b"lru_crawler metadump all\r\n", b"END\r\n")
        client.close()
        return f"{len(stats) - 1} counters, {len(keys) - 1} keys"


KINDS = (Memcached,)

if __name__ == "__main__":
    h.run_scenario("server_memcached", lambda scenario: m.prove(scenario, KINDS))
