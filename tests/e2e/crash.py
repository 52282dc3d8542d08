#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An input crashes the server on all replicas: crane-run reports that the server caused it, names
its log, and ends with the server's own status. If the fault is below a call that libcrane.so
answers, it names the place in libcrane.so, and runtime.log remains next to the log."""
import pathlib
import re
import signal
import socket
import sys

import _harness as h

CRASHES = """
import ctypes, socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    c, _ = s.accept()
    word = c.recv(100)
    if word == b"crash":
        ctypes.string_at(0)
    if word == b"call":
        ctypes.CDLL(None).pthread_mutex_lock(8)
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


def crash_by(scenario, word, what):
    """crane-run's output for a server that crashes when a client sends this word."""
    port = h.free_port()
    group = h.Group(scenario, [sys.executable, "-c", CRASHES, str(port)], port=port)
    group.start()
    try:
        scenario.check(say(port, b"hello") == b"fine", f"{what}: it serves")
        scenario.check(say(port, word) == b"", f"{what}: its connection is closed")
        status = group.process.wait(60)
        log = h.tail(group.log)
        scenario.check(status == STATUS, f"{what}: crane-run ends with the server's {STATUS}",
                       str(status))
        scenario.check("the server crashed at the same place on all replicas" in log
                       and "SIGSEGV" in log and "server.log" in log,
                       f"{what}: crane-run reports what happened, and names the log", log)
        return log
    finally:
        group.kill_all()


def body(scenario):
    log = crash_by(scenario, b"crash", "in its own code")
    scenario.check("inside libcrane.so" not in log, "libcrane.so is not mentioned", log)
    log = crash_by(scenario, b"call", "below a call")
    place = re.search(r"inside libcrane\.so: signal 11 for address 0x0+[0-9a-f]{2}, at \+0x", log)
    scenario.check(place is not None, "its place in libcrane.so is named", log)
    home = pathlib.Path(re.search(r"its log: (\S+)/server\.log", log)[1])
    runtime = home / "runtime.log"
    scenario.check(runtime.is_file() and not runtime.is_symlink()
                   and "fault inside libcrane.so" in runtime.read_text(),
                   "runtime.log remains next to server.log", str(list(home.iterdir())))


if __name__ == "__main__":
    h.run_scenario("crash", body)
