# SPDX-License-Identifier: Apache-2.0
"""Stories of servers outside that fail: one refuses, one resets in the middle, one never answers,
one accepts no more. A server that reports each errno, and haproxy, answer as they do natively."""
import contextlib
import socket
import struct

import _harness as h
import _outside as o
import _stories as s
import _takeovers as t

KINDS = ("refuses", "resets", "hangs", "is full")
# A thread for each client. It makes the calls of the kind that the client names, and answers with
# their results.
TALKER = """import errno, select, socket, socketserver, struct, sys
PORTS = dict(zip(("refuses", "resets", "hangs", "is full"), map(int, sys.argv[2:])))

def told(call, *words):
    try:
        return repr(call(*words))
    except OSError as error:
        name = errno.errorcode.get(error.errno, repr(error))
        return "timeout" if isinstance(error, TimeoutError) and not error.errno else name

def connected(kind):
    s = socket.socket()
    return s, told(s.connect, ("127.0.0.1", PORTS[kind]))

def refuses():
    s, said = connected("refuses")
    s.setblocking(False)
    later = [told(s.connect, ("127.0.0.1", PORTS["refuses"]))]
    select.select([], [s], [])
    later.append(errno.errorcode.get(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))
    return s, [said, told(s.send, b"x"), *later]

def resets():
    s, said = connected("resets")
    heard = [told(s.recv, 4), told(s.send, b"go on")]
    return s, [said, *heard, told(s.recv, 4), told(s.recv, 4), told(s.send, b"x"),
               told(s.getpeername)]

def hangs():
    s, said = connected("hangs")
    said = [said, told(s.send, b"anybody?")]
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 100000))
    said.append(told(s.recv, 4))
    s.settimeout(0.1)
    return s, [*said, told(s.recv, 4), told(s.shutdown, socket.SHUT_WR), told(s.recv, 4)]

def is_full():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 100000))
    said = [told(s.connect, ("127.0.0.1", PORTS["is full"]))]
    s.close()
    s = socket.socket()
    s.settimeout(0.1)
    return s, [*said, told(s.connect, ("127.0.0.1", PORTS["is full"])),
               s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), told(s.getpeername)]

class Talk(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            s, said = globals()[line.decode().strip().replace(" ", "_")]()
            s.close()
            self.wfile.write((repr(said) + "\\n").encode())

class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address = True, True

Server(("127.0.0.1", int(sys.argv[1])), Talk).serve_forever()
"""
HAPROXY = """defaults
  mode http
  retries 0
  timeout connect 200ms
  timeout client 90s
  timeout server 200ms
frontend in
  bind 127.0.0.1:{port}
  use_backend %[path,field(2,/)]
"""


class Resetting(o.Outside):
    """Sends half of an answer, and a reset when the client requests the rest."""

    def serve(self, heard, said, connection):
        said.write(b"half")
        connection.recv(1000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


class Hanging(o.Outside):
    """Reads and never answers."""

    def serve(self, heard, said, connection):
        while connection.recv(1000):
            pass
        connection.recv(1)


@contextlib.contextmanager
def failing():
    """The ports of all KINDS."""
    with contextlib.ExitStack() as stack:
        refusing = stack.enter_context(socket.socket())
        refusing.bind(("127.0.0.1", 0))   # it does not listen
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        stack.enter_context(socket.create_connection(full.getsockname()))
        resetting, hanging = Resetting(), Hanging()
        stack.callback(resetting.close)
        stack.callback(hanging.close)
        yield (refusing.getsockname()[1], resetting.port, hanging.port, full.getsockname()[1])


class Talking(o.Client):
    """Requests one kind after the other."""

    def __init__(self, port, number, most):
        super().__init__(number, most)
        self.port = port

    def open(self):
        client = socket.create_connection(("127.0.0.1", self.port), o.SECONDS)
        client.settimeout(o.SECONDS)
        return client

    def ask(self, connection, count):
        kind = KINDS[(self.number + count) % len(KINDS)]
        connection.sendall(f"{kind}\n".encode())
        text = b""
        while not text.endswith(b"\n"):
            part = connection.recv(1000)
            if not part:
                raise h.Failure(f"{kind}: the connection has ended after {text!r}")
            text += part
        return (kind, count), text


class Failing(o.WebClient):
    """Gets haproxy's own answer instead of the server's. Then haproxy closes the connection."""

    def __init__(self, *words):
        super().__init__(*words, keeps=False)

    def request(self, connection, path):
        count = int(path.split("/")[2])
        connection.request("GET", f"/{(self.number + count) % len(KINDS)}")

    def is_right(self, path, status, text):
        return status >= 500

    def ask(self, connection, count):
        _, answer = super().ask(connection, count)
        return (KINDS[(self.number + count) % len(KINDS)], count), answer


def by_kind(answers):
    """The different answers of each kind."""
    return {kind: sorted({repr(a) for (of, _), a in answers.items() if of == kind})
            for kind in KINDS}


def fails(scenario, changes, name, command, port, client):
    """Runs once with recordings, and once while the leader changes."""
    def crowd(most):
        return o.Crowd(client(port, number, most) for number in range(s.CLIENTS))
    natively = by_kind(s.natively(scenario, command, port, crowd(len(KINDS))))
    for kind, said in natively.items():
        scenario.say(f"{name}: {kind}: natively {' or '.join(said)[:300]}")
    once, running = crowd(2 * len(KINDS)), crowd(None)
    with h.Group(scenario, command, port=port, record=True) as group:
        once.start()
        once.join()
        bad = once.end()
        scenario.check(not bad, f"{name}: {once.summary()}", bad)
        group.settle()
        group.stop()
    scenario.check_equal(group, what=f"{name}: the outputs of all replicas are equal")
    scenario.check_schedule(group, what=f"{name}: and their schedules")
    with h.Group(scenario, command, port=port) as group:
        t.check(scenario, group, [running], *changes, near=s.NEAR)
    for what, done in (("", once), (", while the leader changes", running)):
        said = by_kind(done.answers)
        scenario.check(said == natively, f"{name}: the same as natively{what}",
                       f"{said}, natively {natively}")


def errors_by_name(scenario, changes):
    h.need("python3")
    script, port = scenario.work / "talker.py", h.free_port()
    script.write_text(TALKER)
    with failing() as ports:
        fails(scenario, changes, "errors", ["/usr/bin/python3", str(script), str(port),
                                            *map(str, ports)], port, Talking)


def errors_of_haproxy(scenario, changes):
    h.need("haproxy")
    conf, port = scenario.work / "failing.cfg", h.free_port()
    with failing() as ports:
        backends = "".join(f"backend {n}\n  server one 127.0.0.1:{p}\n"
                           for n, p in enumerate(ports))
        conf.write_text(HAPROXY.format(port=port) + backends)
        fails(scenario, changes, "haproxy's errors", ["haproxy", "-db", "-f", str(conf)], port,
              Failing)
