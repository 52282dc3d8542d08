# SPDX-License-Identifier: Apache-2.0
"""A client that asks at a fixed rate, in a process of its own, so that it measures latency and not
throughput: each request has its time, and is late from then on (no coordinated omission)."""
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import time


class Redis:
    """INCR on a connection that stays; an answer that is not the next number is an error."""

    def __init__(self, port):
        self.socket = connected(port)
        self.before = None

    def ask(self):
        self.socket.sendall(b"*2\r\n$4\r\nINCR\r\n$5\r\npaced\r\n")
        answer = b""
        while not answer.endswith(b"\r\n"):
            answer += received(self.socket)
        number = int(answer[1:])
        if self.before is not None and number != self.before + 1:
            raise ValueError(f"{number} after {self.before}")
        self.before = number


class Http:
    """GET with keep-alive; the server may end a connection when it has announced that."""

    def __init__(self, port, path="/1k.html"):
        self.port, self.path, self.socket = port, path, None

    def ask(self):
        self.socket = self.socket or connected(self.port)
        self.socket.sendall(f"GET {self.path} HTTP/1.1\r\nHost: crane.test\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += received(self.socket)
        head, body = answer.split(b"\r\n\r\n", 1)
        lines = head.lower().split(b"\r\n")
        if b" 200 " not in lines[0]:
            raise ValueError(lines[0].decode())
        length = next(int(line.split(b":")[1]) for line in lines
                      if line.startswith(b"content-length:"))
        while len(body) < length:
            body += received(self.socket)
        if b"connection: close" in lines:
            self.socket.close()
            self.socket = None


def connected(port):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def received(s):
    part = s.recv(65536)
    if not part:
        raise ConnectionError("the server closed the connection")
    return part


class Paced:
    """Runs while the block does; then `samples` is [(when it was due, seconds it took)], both by
    time.monotonic(), and `errors` what was wrong."""

    def __init__(self, client, rate, file):
        self.client, self.rate, self.file = client, rate, pathlib.Path(file)

    def __enter__(self):
        self.process = multiprocessing.get_context("fork").Process(target=self.run)
        self.process.start()
        return self

    def run(self):
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
        samples, errors = [], []
        due = time.monotonic()
        while not ended and not errors:
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            try:
                self.client.ask()
            except (OSError, ValueError) as failure:
                errors.append(f"{type(failure).__name__}: {failure}")
            samples.append((due, time.monotonic() - due))
            due += 1 / self.rate
        self.file.write_text(json.dumps({"samples": samples, "errors": errors}))
        os._exit(0)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join(20)
        said = json.loads(self.file.read_text())
        self.samples, self.errors = said["samples"], said["errors"]
        self.file.unlink()


def within(samples, windows):
    """Milliseconds of the requests that were due in one of the windows, sorted."""
    return sorted(1000 * took for due, took in samples
                  if any(begin <= due < end for begin, end in windows))
