#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that crashes by an input, on all replicas: crane-run says that it was the server's
doing, names its log, and ends with the server's own status."""
import signal
import socket
import sys

import _harness as h

CRASHES = """
import ctypes, socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    c, _ = s.accept()
    if c.recv(100) == b"crash":
        ctypes.string_at(0)
    c.sendall(b"fine")
    c.close()
"""
STATUS = 128 + signal.SIGSEGV


def say(port, word):
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(word)
        try:
            return client.recv(100)
        except ConnectionResetError:
            return b""


def body(scenario):
    port = h.free_port()
    group = h.Group(scenario, [sys.executable, "-c", CRASHES, str(port)], port=port)
    group.start()
    try:
        scenario.check(say(port, b"hello") == b"fine", "it serves")
        scenario.check(say(port, b"crash") == b"", "its client sees the connection's end")
        status = group.process.wait(60)
        said = h.tail(group.log)
        scenario.check(status == STATUS, f"crane-run ends with the server's status, {STATUS}",
                       str(status))
        scenario.check("the server crashed by itself, at one place on all replicas" in said
                       and "SIGSEGV" in said and "server.log" in said,
                       "it says what happened, and names the log", said)
    finally:
        group.kill_all()


if __name__ == "__main__":
    h.tell("crash", body)
