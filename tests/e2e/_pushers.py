# SPDX-License-Identifier: Apache-2.0
"""Many connections that push unique ids, from one thread. Records the time of every answer and
error, so that throughput can be plotted, and remembers every acknowledged id."""
import collections
import errno
import selectors
import socket
import threading
import time

import _harness as h

ANSWER_SECONDS = 2.0    # limit for an answer before a connection is given up
RETRY_SECONDS = 0.002
BUCKET_SECONDS = 0.1

# `served`: whether the connection had an answer before it broke.  `via`: its target address.
Break = collections.namedtuple("Break", "at client via served why")


class Pusher:
    """A client with one connection at a time that RPUSHes its own ids to its own list."""

    def __init__(self, name, address):
        self.key, self.address = f"ids:{name}", address
        self.sent = 0               # ids 0 .. sent-1 were sent, each once
        self.acknowledged = []
        self.socket, self.since, self.text, self.served = None, 0.0, b"", False
        self.retry_at = 0.0

    def request(self):
        mine = f"{self.sent}".encode()
        self.sent += 1
        return b"*3\r\n$5\r\nRPUSH\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (
            len(self.key), self.key.encode(), len(mine), mine)

    def verify(self, client):
        """A list of problems with the server's list."""
        held = [int(i) for i in client("LRANGE", self.key, "0", "-1")]
        lost = set(self.acknowledged) - set(held)
        strange = [i for i in held if i >= self.sent]
        wrong = []
        if lost:
            wrong.append(f"{self.key}: {len(lost)} acknowledged ids lost: {sorted(lost)[:5]}")
        if strange or len(set(held)) != len(held):
            wrong.append(f"{self.key}: ids twice, or never sent: {strange[:5]}")
        return wrong


class Pushers(threading.Thread):
    """`addresses`: targets of the clients, in turn; a client with an error tries the next one."""

    def __init__(self, port, addresses, count):
        super().__init__(daemon=True)
        self.port, self.addresses = port, list(addresses)
        self.pushers = [Pusher(i, addresses[i % len(addresses)]) for i in range(count)]
        self.answers, self.breaks, self.problems = [], [], []
        self.stopping = threading.Event()
        self.selector = selectors.DefaultSelector()

    # --- one connection --------------------------------------------------------------------
    def connect(self, p, now):
        p.socket = socket.socket()
        p.socket.setblocking(False)
        p.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        p.text, p.served, p.since = b"", False, now
        failed = p.socket.connect_ex((p.address, self.port))
        if failed not in (0, errno.EINPROGRESS):
            return self.broke(p, now, errno.errorcode[failed])
        self.selector.register(p.socket, selectors.EVENT_WRITE, p)

    def broke(self, p, now, why):
        self.breaks.append(Break(now, p.key, p.address, p.served, why))
        try:
            self.selector.unregister(p.socket)
        except KeyError:
            pass
        p.socket.close()
        p.socket, p.retry_at = None, now + RETRY_SECONDS
        others = [a for a in self.addresses if a != p.address]
        p.address = others[(self.addresses.index(p.address) if p.address in self.addresses else 0)
                           % len(others)] if others else p.address

    def send(self, p, now):
        p.since = now
        p.socket.send(p.request())      # a small request always fits

    def ready(self, p, mask, now):
        try:
            if mask & selectors.EVENT_WRITE:
                failed = p.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failed:
                    return self.broke(p, now, errno.errorcode[failed])
                self.selector.modify(p.socket, selectors.EVENT_READ, p)
                return self.send(p, now)
            part = p.socket.recv(4096)
        except OSError as error:
            return self.broke(p, now, errno.errorcode.get(error.errno, str(error)))
        if not part:
            return self.broke(p, now, "closed")
        p.text += part
        if not p.text.endswith(b"\r\n"):
            return None
        if not p.text.startswith(b":"):
            self.problems.append(f"{p.key}: answer {p.text[:80]!r}")
        p.acknowledged.append(p.sent - 1)
        p.text, p.served = b"", True
        self.answers.append(now)
        try:
            return self.send(p, now)
        except OSError as error:
            return self.broke(p, now, errno.errorcode.get(error.errno, str(error)))

    # --- all of them -----------------------------------------------------------------------
    def run(self):
        while not self.stopping.is_set():
            for key, mask in self.selector.select(0.002):
                self.ready(key.data, mask, time.monotonic())
            now = time.monotonic()
            for p in self.pushers:
                if p.socket is None:
                    if now >= p.retry_at:
                        self.connect(p, now)
                elif now - p.since > ANSWER_SECONDS:
                    self.broke(p, now, "no answer")
        for p in self.pushers:
            if p.socket is not None:
                p.socket.close()

    def progress(self, each=20, seconds=60):
        """Waits until every client has `each` more answers."""
        before = [len(p.acknowledged) for p in self.pushers]
        h.wait_until(lambda: all(len(p.acknowledged) >= b + each
                                 for p, b in zip(self.pushers, before)),
                     seconds, "every client continues")

    def stop(self):
        self.stopping.set()
        self.join(20)

    def verify(self, client):
        """A list of problems with the answers and with the server's lists."""
        return self.problems + [w for p in self.pushers for w in p.verify(client)]

    def buckets(self):
        """Answers per BUCKET_SECONDS, without the incomplete first and last buckets, and the time
        at which the first one begins."""
        answers = list(self.answers)
        if not answers:
            return answers, 0.0
        begin = answers[0] + BUCKET_SECONDS
        counts = collections.Counter(int((at - begin) // BUCKET_SECONDS) for at in answers)
        whole = int((answers[-1] - begin) // BUCKET_SECONDS)
        return [counts[i] for i in range(whole)], begin
