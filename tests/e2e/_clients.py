# SPDX-License-Identifier: Apache-2.0
"""Configurations of servers, and load clients, for scenarios, demo and benchmark."""
import contextlib
import re
import socket
import subprocess
import tempfile
import threading
import time

import _installed
from _checks import Failure, wait_until

KEEP_ALIVE_TRIES = 3


def apache_configuration(work, port, extra="", name="apache.conf", files=_installed.FILES):
    """Debian's own configuration on another port, with a directory of test pages."""
    pages = work / "www"
    pages.mkdir(exist_ok=True)
    (pages / "1k.html").write_bytes(b"x" * 1023 + b"\n")
    (pages / "1m.bin").write_bytes(bytes(i * 7 % 251 for i in range(1 << 20)))
    text = _installed.apache(files=files)
    text += (f"\nListen {port}\nServerName crane.test\nDocumentRoot {pages}\n<Directory {pages}>\n"
             f"  Require all granted\n</Directory>\n{extra}\n")
    path = work / name
    path.write_text(text)
    return path


def ab(url, requests, clients, keep_alive=False, seconds=300, one_length=True):
    """ApacheBench: {'failed', 'complete', 'rate', 'p50', 'p99', 'text'}; times in ms. With
    `one_length`, answers of different lengths are failures.

    A server may close a kept connection between two requests (apache2 closes all when its workers
    are busy). ab counts a request under way as failed, so it runs again.
    """
    for _ in range(KEEP_ALIVE_TRIES if keep_alive else 1):
        result = ab_once(url, requests, clients, keep_alive, seconds, one_length)
        match = re.search(r"Connect: 0, Receive: 0, Length: (\d+), Exceptions: 0", result["text"])
        if result["complete"] != requests or not match or int(match[1]) > clients:
            break
    return result


def ab_once(url, requests, clients, keep_alive, seconds, one_length):
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as table:
        command = ["ab", "-q", "-r", "-s", "30", "-n", str(requests), "-c", str(clients),
                   "-e", table.name] + (["-k"] if keep_alive else [])
        command += ([] if one_length else ["-l"]) + [url]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=seconds)
        rows = dict(line.strip().split(",") for line in table.read().splitlines()[1:]
                    if "," in line)

    def number(pattern):
        found = re.search(pattern, done.stdout)
        return float(found[1]) if found else -1.0
    return {"command": " ".join(command[:-1] + [url]), "status": done.returncode,
            "complete": int(number(r"Complete requests:\s+(\d+)")),
            "failed": int(number(r"Failed requests:\s+(\d+)")),
            "not_2xx": int(number(r"Non-2xx responses:\s+(\d+)")),
            "rate": number(r"Requests per second:\s+([\d.]+)"),
            "p50": float(rows.get("50", -1)), "p99": float(rows.get("99", -1)),
            "text": done.stdout}


def ab_good(result, requests):
    return (result["status"] == 0 and result["complete"] == requests and result["failed"] == 0
            and result["not_2xx"] == -1)


def http(port, request, seconds=10):
    """Sends raw bytes and returns the whole answer, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), seconds) as s:
        s.settimeout(seconds)
        s.sendall(request)
        parts = []
        while True:
            part = s.recv(65536)
            if not part:
                return b"".join(parts)
            parts.append(part)


class Redis:
    """One connection to a redis server; raises OSError when it breaks."""

    def __init__(self, port, seconds=2.0, address="127.0.0.1"):
        self.socket = socket.create_connection((address, port), seconds)
        self.socket.settimeout(seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __call__(self, *words):
        self.send(*words)
        return self.answer()

    def send(self, *words):
        message = b"*%d\r\n" % len(words)
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            message += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(message)

    def line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def fill(self):
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server closed the connection")
        self.buffer += part

    def answer(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise Failure(f"redis: {rest.decode()}")
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            while len(self.buffer) < size + 2:
                self.fill()
            text, self.buffer = self.buffer[:size], self.buffer[size + 2:]
            return text
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        raise ConnectionError(f"not redis: {line!r}")

    def close(self):
        self.socket.close()


def redis_program(port, *more):
    return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--enable-debug-command", "yes", *more]


def redis_answers(port):
    try:
        client = Redis(port, 1.0)
        try:
            return client("PING") == "PONG"
        finally:
            client.close()
    except (OSError, Failure):
        return False


class Counter(threading.Thread):
    """A client that counts with INCR on its own key, reconnects, and checks every answer.

    An answer must be one larger than the last, plus at most one for every interrupted request
    whose execution was not seen yet. Otherwise an acknowledged write was lost or done twice. With
    `one_shot` every request opens a new connection.
    """

    def __init__(self, port, name, timeout, one_shot=False):
        super().__init__(daemon=True)
        self.port, self.key, self.timeout = port, f"counter:{name}", timeout
        self.one_shot = one_shot
        self.acknowledged = self.broken_off = self.answers = self.reconnects = 0
        self.problems = []
        self.stopping = threading.Event()
        # The first answer to a request sent after `since`, or on a connection opened after it.
        self.first_after = self.since = None
        self.fresh = True

    def run(self):
        while not self.stopping.is_set():
            try:
                opened = time.monotonic()
                client = self.connect()
            except OSError:
                self.stopping.wait(0.001)
                continue
            try:
                self.count(client, opened)
            except (OSError, ConnectionError):
                self.reconnects += 1
            except Failure as failure:
                self.problems.append(str(failure))
                return
            finally:
                client.close()

    def connect(self):
        return Redis(self.port, self.timeout)

    def count(self, client, opened):
        while not self.stopping.is_set():
            self.broken_off += 1   # until the answer arrives
            sent = time.monotonic()
            value = client("INCR", self.key)
            now = time.monotonic()
            self.broken_off -= 1
            extra = value - self.acknowledged - 1
            if not 0 <= extra <= self.broken_off:
                self.problems.append(f"{self.key}: {value} after {self.acknowledged}, with "
                                     f"{self.broken_off} requests broken off")
            self.broken_off -= min(max(extra, 0), self.broken_off)
            self.acknowledged = value
            self.answers += 1
            since = self.since
            if since is not None and self.first_after is None and \
                    (opened if self.fresh else sent) > since:
                self.first_after = now
            if self.one_shot:
                return

    def mark(self, since, fresh):
        self.fresh, self.first_after, self.since = fresh, None, since

    def verify(self, client):
        """After stop: the server holds all acknowledged writes, and nothing that was not sent."""
        held = int(client("GET", self.key) or 0)
        if self.acknowledged <= held <= self.acknowledged + self.broken_off:
            return self.problems
        return self.problems + [f"{self.key}: the server holds {held}, acknowledged "
                                f"{self.acknowledged}, broken off {self.broken_off}"]


def problems_of(counters, client):
    return [p for c in counters for p in c.verify(client)]


class Load:
    """Several Counters that keep their connections, and one that opens a new one per request."""

    def __init__(self, port, clients=8, timeout=0.4, fresh_timeout=0.05):
        self.port = port
        self.clients = [Counter(port, n, timeout) for n in range(clients)]
        self.clients.append(Counter(port, "fresh", fresh_timeout, one_shot=True))

    def __enter__(self):
        for c in self.clients:
            c.start()
        wait_until(lambda: all(c.answers > 20 for c in self.clients), 20, "every client is served")
        return self

    def mark(self, since, fresh=True):
        for c in self.clients:
            c.mark(since, fresh)

    def first_answer(self, since, seconds=30):
        """Seconds from `since` to the first answer that counts (see mark)."""
        wait_until(lambda: any(c.first_after for c in self.clients), seconds,
                   "a client is served again")
        return min(c.first_after for c in self.clients if c.first_after) - since

    def progress(self, each=20, seconds=30):
        """Waits until every client has `each` more answers."""
        before = [c.answers for c in self.clients]
        wait_until(lambda: all(c.answers >= b + each or c.problems for c, b in
                               zip(self.clients, before)), seconds, "every client continues")

    def stop(self):
        for c in self.clients:
            c.stopping.set()
        for c in self.clients:
            c.join(20)

    def answers(self):
        return sum(c.answers for c in self.clients)

    def problems(self):
        with contextlib.closing(Redis(self.port, 10)) as client:
            return problems_of(self.clients, client)

    def __exit__(self, *_):
        self.stop()
