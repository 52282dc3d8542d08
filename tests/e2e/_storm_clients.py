# SPDX-License-Identifier: Apache-2.0
"""Clients of a storm: each knows its right answers and records how long it waited.

No fault may cost an answer: the end of a connection is as wrong as a wrong answer.
"""
import contextlib
import hashlib
import http.client
import ssl
import threading
import time

import _data
import _harness as h
import _outside as o
import _pages
from _storm_verdict import Wait

ANSWER_SECONDS = 180   # after a longer wait an answer is missing
NOTED_SECONDS = 0.005  # shorter waits are only counted
REST_SECONDS = 0.004   # between two requests
CHUNK = 1 << 16        # bytes of a download that are read at once
UPLOAD_LINES = 5000    # 10 to 40 kB


class Noted:
    """Records the requests of one client."""

    def __init__(self, name):
        self.client = name
        self.waits, self.wrong, self.done, self.asked = [], [], 0, None

    @contextlib.contextmanager
    def question(self):
        """The context of one request and its answer."""
        self.asked = asked = time.monotonic()
        try:
            yield
        except Exception as error:
            self.note(asked)
            self.wrong.append((time.monotonic(), f"{self.client}: {type(error).__name__}: {error}"))
            raise
        else:
            self.done += 1
            self.note(asked)
        finally:
            self.asked = None

    def note(self, asked):
        now = time.monotonic()
        if now - asked > NOTED_SECONDS:
            self.waits.append(Wait(self.client, asked, now))

    def all_waits(self):
        """All waits, including one that still lasts."""
        asked = self.asked
        return list(self.waits) + ([Wait(self.client, asked, None)] if asked else [])


class Asking(Noted, threading.Thread):
    """Sends one request after the other; subclasses define the connection and the request."""
    rest = REST_SECONDS

    def __init__(self, name):
        Noted.__init__(self, name)
        threading.Thread.__init__(self, daemon=True)
        self.stopping = threading.Event()

    def open(self):
        return contextlib.nullcontext()

    def ask(self, connection):
        raise NotImplementedError

    def run(self):
        while not self.stopping.is_set():
            try:
                with self.open() as connection:
                    while not self.stopping.is_set():
                        self.ask(connection)
                        self.stopping.wait(self.rest)
            except (OSError, http.client.HTTPException, ValueError, h.Failure):
                self.stopping.wait(0.05)   # question() has recorded the failure

    def right(self, good, what):
        if not good:
            raise h.Failure(what)

    def verify(self):
        """A list of problems with the server's data at the end."""
        return []


# --- redis --------------------------------------------------------------------------------------

class Counting(Noted, h.Counter):
    """Sends INCR for its own key."""

    def __init__(self, port, number):
        h.Counter.__init__(self, port, f"storm{number}", ANSWER_SECONDS)
        Noted.__init__(self, f"counter {number}")

    def connect(self):
        client = super().connect()

        def ask(*words):
            with self.question():
                answer = client(*words)
            self.stopping.wait(REST_SECONDS)
            return answer
        ask.close = client.close
        return ask

    def verify(self):
        with contextlib.closing(h.Redis(self.port, ANSWER_SECONDS)) as client:
            return h.Counter.verify(self, client)


class Pipelining(Asking):
    """A hundred INCRs at once give the next hundred numbers."""
    batch = 100

    def __init__(self, port):
        super().__init__("pipeline")
        self.port, self.number = port, 0

    def open(self):
        client = h.Redis(self.port, ANSWER_SECONDS)
        self.number = int(client("GET", "pipelined") or 0)
        return contextlib.closing(client)

    def ask(self, connection):
        with self.question():
            connection.socket.sendall(b"INCR pipelined\r\n" * self.batch)
            got = [connection.answer() for _ in range(self.batch)]
            wanted = list(range(self.number + 1, self.number + self.batch + 1))
            self.number = got[-1]
            self.right(got == wanted, f"numbers {got[0]} to {got[-1]}, wanted {wanted[0]} on")


class Fresh(Asking):
    """Opens a connection for each request: new connections are served."""

    def __init__(self, port):
        super().__init__("new connection")
        self.port = port

    def ask(self, _):
        with self.question(), contextlib.closing(h.Redis(self.port, ANSWER_SECONDS)) as client:
            self.right(client("PING") == "PONG", "PING was not answered by PONG")


class Pair:
    """Two connections: one receives what the other sends."""

    def __init__(self, port):
        self.hears, self.says = (h.Redis(port, ANSWER_SECONDS) for _ in range(2))

    def close(self):
        self.hears.close()
        self.says.close()


class Subscriber(Asking):
    """Receives every published message once, in order."""

    def __init__(self, port):
        super().__init__("subscriber")
        self.port, self.number = port, 0

    def open(self):
        pair = Pair(self.port)
        pair.hears("SUBSCRIBE", "storm")
        return contextlib.closing(pair)

    def ask(self, connection):
        self.number += 1
        with self.question():
            heard_by = connection.says("PUBLISH", "storm", self.number)
            reply = connection.hears.answer()
            self.right(heard_by == 1 and reply == [b"message", b"storm", b"%d" % self.number],
                       f"message {self.number}: {heard_by} received it; {reply}")


class BlockedPop(Asking):
    """Waits in BLPOP for the push of another connection, usually also when a fault comes."""
    blocked = 0.2

    def __init__(self, port):
        super().__init__("blocked pop")
        self.port, self.number = port, 0

    def open(self):
        return contextlib.closing(Pair(self.port))

    def ask(self, connection):
        self.number += 1
        name = f"{self.number}".encode()
        connection.hears.send("BLPOP", "storm:list", 0)
        self.stopping.wait(self.blocked)
        with self.question():
            length = connection.says("RPUSH", "storm:list", name)
            got = connection.hears.answer()
            self.right(length == 1 and got == [b"storm:list", name],
                       f"push {self.number}: length {length}, popped {got}")


# --- HTTP ---------------------------------------------------------------------------------------

class Kept(Asking):
    """Keeps one connection; its end, even between two requests, is a missing answer."""

    def __init__(self, port, number, path, body):
        super().__init__(f"kept connection {number}")
        self.port, self.path, self.body = port, path, body

    def open(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        connection.connect()
        connection.auto_open = 0
        return contextlib.closing(connection)

    def ask(self, connection):
        with self.question():
            connection.request("GET", self.path)
            answer = connection.getresponse()
            text = answer.read()
            self.right(answer.status == 200 and text == self.body,
                       f"status {answer.status}, {len(text)} bytes of {len(self.body)}")


class Download(Asking):
    """Downloads a large file over TLS in parts, with pauses, and compares all bytes."""
    pace = 0.004   # pause between parts

    def __init__(self, port, certificate, path, digest):
        super().__init__("download")
        self.port, self.path, self.digest = port, path, digest
        self.trust = ssl.create_default_context(cafile=certificate)
        self.trust.check_hostname = False   # the certificate names localhost

    def open(self):
        return contextlib.closing(http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=ANSWER_SECONDS, context=self.trust))

    def ask(self, connection):
        with self.question():
            connection.request("GET", self.path)
            answer = connection.getresponse()
        digest, part = hashlib.sha256(), b"-"
        while part and not self.stopping.is_set():
            with self.question():
                part = answer.read(CHUNK)
            digest.update(part)
            self.stopping.wait(self.pace)
        if self.stopping.is_set():
            connection.close()
            return
        with self.question():
            self.right(digest.hexdigest() == self.digest, "the downloaded file differs")


class Uploading(Noted, _pages.Writer):
    """PUTs pages, and knows their allowed contents."""
    lines = UPLOAD_LINES

    def __init__(self, port, number, seed):
        _pages.Writer.__init__(self, port, number, seed, REST_SECONDS)
        Noted.__init__(self, f"upload {number}")

    seconds = ANSWER_SECONDS

    def one(self, connection):
        with self.question():
            super().one(connection)

    def verify(self):
        return _pages.Writer.verify(self)


class Backend(o.Web):
    """The server behind an nginx; counts its requests, for hours."""

    def hears(self, about, request):
        with self.lock:
            self.heard[about] = self.heard.get(about, 0) + 1
            if not request.endswith(o.body_of(about)) and not about.startswith("/load"):
                self.broken.append(request)


class Proxied(Asking):
    """Sends requests that nginx forwards to the server behind it, which must receive each once."""

    def __init__(self, port, number):
        super().__init__(f"proxied {number}")
        self.inner, self.number = o.WebClient(port, number), 0

    def open(self):
        return contextlib.closing(self.inner.open())

    def ask(self, connection):
        with self.question():
            self.inner.ask(connection, self.number)
        self.number += 1


# --- PostgreSQL ---------------------------------------------------------------------------------

class Transactions(Asking):
    """Transactions that stay open for a while; only committed ones are in the table."""
    inserts = 4

    def __init__(self, server, number):
        super().__init__(f"transactions {number}")
        self.server, self.number, self.begun = server, number, 0
        self.acknowledged, self.uncertain = [], []

    def open(self):
        return contextlib.closing(self.server.lines())

    def ask(self, connection):
        self.begun += 1
        names = [f"t{self.number}-{self.begun}-{n}" for n in range(self.inserts)]
        self.say(connection, "begin; select 'begun';", "begun")
        for name in names:
            self.say(connection, f"insert into ids values ('{name}') returning id;", name)
            self.stopping.wait(0.02)
        self.uncertain.append(names)
        self.say(connection, "commit; select 'done';", "done")
        self.acknowledged.append(self.uncertain.pop())

    def say(self, connection, query, answer):
        with self.question():
            self.right(connection.ask(query, answer), f"{query}: another answer")

    def verify(self):
        held = set(self.server.held())
        mine = {name for name in held if name.startswith(f"t{self.number}-")}
        lost = [name for names in self.acknowledged for name in names if name not in held]
        whole = {name for names in self.acknowledged + self.uncertain for name in names}
        half = [names for names in self.uncertain if 0 < len(mine & set(names)) < self.inserts]
        return ([f"{self.client}: lost {lost[:5]}"] if lost else []) + \
            ([f"{self.client}: never committed: {sorted(mine - whole)[:5]}"] if mine - whole else []
             ) + ([f"{self.client}: in part: {half[:3]}"] if half else [])


class Postgres(_data.Postgres):
    """Answers each line of SQL with one line."""

    def lines(self):
        return _data.Lines(["psql", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-XAtq",
                            "-v", "ON_ERROR_STOP=1", "postgres"])


class Crowd:
    """All clients of a storm."""

    def __init__(self, clients):
        self.clients = list(clients)

    def start(self):
        for client in self.clients:
            client.start()

    def progress(self, seconds, what):
        """Waits until each client has an answer to a request that it sent after this call, or has
        given up, which counts as a failure elsewhere."""
        before = [(client, client.done + 2) for client in self.clients]

        def behind():
            return [c.client for c, least in before if c.is_alive() and c.done < least]
        try:
            h.wait_until(lambda: not behind(), seconds, what)
        except h.Failure as failure:
            raise h.Failure(f"{failure}; not: {', '.join(behind())}") from None

    def stop(self, seconds=30):
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join(seconds)

    def waits(self):
        return [wait for client in self.clients for wait in client.all_waits()]

    def wrong(self):
        """Returns [(when, what)]; a client with a list of problems gives up at the first one."""
        errors = [one for client in self.clients for one in client.wrong]
        now = time.monotonic()
        return sorted(errors + [(now, f"{client.client}: {problem}") for client in self.clients
                                for problem in getattr(client, "problems", [])])

    def verify(self):
        return [problem for client in self.clients for problem in client.verify()]
