# SPDX-License-Identifier: Apache-2.0
"""Clients of apache2 that PUT pages, read them back, and know the allowed contents of each page."""
import collections
import http.client
import random
import threading
import time

import _harness as h

CLIENTS = 4
PAGES = 40             # pages of each writer
ANSWER_SECONDS = 5.0
REST_SECONDS = 0.002   # default pause of a client between two requests


class Writer(threading.Thread):
    """PUTs numbered contents to its own pages of apache2 and reads them back."""
    lines, seconds = 50, ANSWER_SECONDS   # lines of a page; limit for an answer

    def __init__(self, port, number, seed, rest):
        super().__init__(daemon=True)
        self.port, self.name, self.rest = port, number, rest
        self.random = random.Random(seed)
        self.stopping = threading.Event()
        self.allowed = collections.defaultdict(lambda: {0})   # page: allowed contents
        self.answers = self.reconnects = self.sent = 0
        self.problems = []

    def run(self):
        while not self.stopping.is_set() and not self.problems:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds)
            try:
                while not self.stopping.is_set() and not self.problems:
                    self.one(connection)
                    self.answers += 1
                    time.sleep(self.rest)
            except (OSError, http.client.HTTPException):
                self.reconnects += 1
                self.stopping.wait(0.005)
            finally:
                connection.close()

    def one(self, connection):
        page = self.random.randrange(PAGES)
        if self.random.random() < 0.5:
            self.put(connection, page)
        else:
            self.get(connection, page)

    def put(self, connection, page):
        self.sent += 1
        mine = self.sent
        self.allowed[page].add(mine)   # from now on, even without an answer
        connection.request("PUT", f"/dav/{self.name}-{page}", body=b"%d\n" % mine * self.lines)
        answer = connection.getresponse()
        answer.read()
        if answer.status in (201, 204):
            self.allowed[page] = {mine}
        else:
            self.problems.append(f"PUT of page {page}: {answer.status}")

    def get(self, connection, page):
        connection.request("GET", f"/dav/{self.name}-{page}")
        answer = connection.getresponse()
        text = answer.read()
        held = 0 if answer.status == 404 else int(text.split()[0])
        if answer.status not in (200, 404) or held not in self.allowed[page]:
            self.problems.append(f"page {self.name}-{page}: {answer.status}, holds {held}, may "
                                 f"hold {sorted(self.allowed[page])}")
        elif held:
            # An interrupted write before this one is done, or will never be.
            self.allowed[page] = {m for m in self.allowed[page] if m >= held}

    def verify(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for page in range(PAGES):
            self.get(connection, page)
        connection.close()
        return self.problems


class Pages:
    """Several Writers, in the role of h.Load."""

    def __init__(self, port, seed, rest=REST_SECONDS):
        self.clients = [Writer(port, n, seed + n, rest) for n in range(CLIENTS)]

    def __enter__(self):
        for c in self.clients:
            c.start()
        return self

    def progress(self, each, seconds=60):
        """Waits until every client has `each` more answers."""
        before = [c.answers for c in self.clients]
        h.wait_until(lambda: all(c.answers >= b + each or c.problems
                                 for c, b in zip(self.clients, before)), seconds,
                     "every client continues")

    def stop(self):
        for c in self.clients:
            c.stopping.set()
        for c in self.clients:
            c.join(20)

    def problems(self):
        return [p for c in self.clients for p in c.verify()]

    def __exit__(self, *_):
        self.stop()
