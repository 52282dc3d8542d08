# SPDX-License-Identifier: Apache-2.0
"""A client that asks at a fixed rate, in a process of its own, so that it measures latency and not
throughput: each request has its time, and is late from then on (no coordinated omission)."""
import http.client
import json
import multiprocessing
import os
import pathlib
import signal
import time

import _harness as h


class Redis:
    """INCR on a connection that stays; an answer that is not the next number is an error."""

    def __init__(self, port):
        self.client, self.before = h.Redis(port, 10), None

    def ask(self):
        number = self.client("INCR", "paced")
        if self.before is not None and number != self.before + 1:
            raise ValueError(f"{number} after {self.before}")
        self.before = number


class Http:
    """GET with keep-alive; the server may end a connection when it has announced that."""

    def __init__(self, port, path="/1k.html"):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.path = path

    def ask(self):
        self.connection.request("GET", self.path)
        answer = self.connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")


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
            except (OSError, ValueError, http.client.HTTPException, h.Failure) as failure:
                errors.append(f"{type(failure).__name__}: {failure}")
            samples.append((due, time.monotonic() - due))
            due += 1 / self.rate
        self.file.write_text(json.dumps({"samples": samples, "errors": errors}))
        os._exit(0)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join(20)
        answer = json.loads(self.file.read_text())
        self.samples, self.errors = answer["samples"], answer["errors"]
        self.file.unlink()


def within(samples, windows):
    """Milliseconds of the requests that were due in one of the windows, sorted."""
    return sorted(1000 * took for due, took in samples
                  if any(begin <= due < end for begin, end in windows))
