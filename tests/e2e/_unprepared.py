# SPDX-License-Identifier: Apache-2.0
"""Servers without a profile: eight clients, a kill of the leader's node, eight more.

A class per server: name; programs (which must be installed); __init__(work) writes its files below
`work` and sets port and command; client(number) returns (served, the wrong answer). If it has
options, crane-run gets them.
"""
import concurrent.futures
import hashlib
import os
import signal
import subprocess
import threading

import _harness as h

WSGI = """import hashlib


def application(environ, start_response):
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{path} {hashlib.sha256(path.encode()).hexdigest()}".encode()]
"""


def run(*words, **options):
    return subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          timeout=60, **options)


def fetch(port, number):
    """The answer of an HTTP server to a client with its own path."""
    return run("curl", "-sS", "--max-time", 30, f"http://127.0.0.1:{port}/page{number}").stdout


def talk(port, said, last):
    """The answer to a dialogue with nc, up to the line that contains `last`."""
    with subprocess.Popen(["nc", "127.0.0.1", str(port)], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, errors="replace") as client:
        limit = threading.Timer(30, client.kill)
        limit.start()
        client.stdin.write(said)
        client.stdin.flush()
        heard = ""
        for line in client.stdout:
            heard += line
            if last in line:
                break
        limit.cancel()
        client.kill()
        return heard


class Hashing:
    """A web server that answers with the path and its SHA-256."""

    def __init__(self, work):
        self.work, self.port = work, h.free_port()
        self.prepare()

    def client(self, number):
        text, path = fetch(self.port, number), f"/page{number}"
        return text == f"{path} {hashlib.sha256(path.encode()).hexdigest()}", \
            f"{number}: {text[-300:]}"


class Files:
    """A web server for the files below `pages`, which have several sizes."""

    def __init__(self, work):
        self.work, self.port, self.pages = work, h.free_port(), work / "pages"
        self.pages.mkdir()
        for number in range(16):
            (self.pages / f"page{number}").write_text(self.page(number))
        self.prepare()

    @staticmethod
    def page(number):
        return f"line of page {number}\n" * (1 + 700 * number)

    def client(self, number):
        text = fetch(self.port, number)
        return text == self.page(number), f"{number}: {len(text)} bytes, {text[-300:]}"


def serve(server, numbers):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [text for good, text in pool.map(server.client, numbers) if not good]


def served(scenario, group, server, numbers, what):
    bad = serve(server, numbers)
    if not scenario.check(not bad, f"{server.name}: 8 {what}", "\n".join(bad[:3])):
        group.explain()


def check(scenario, server):
    with h.Group(scenario, server.command, port=server.port, record=True,
                 options=getattr(server, "options", ())) as group:
        served(scenario, group, server, range(8), "clients are served")
        group.settle()  # clients would wait for a next leader that still starts
        leader = group.leader()
        os.kill(group.replica(leader)["node_pid"], signal.SIGKILL)
        h.wait_until(lambda: group.leader() != leader, 30, "another replica leads")
        served(scenario, group, server, range(8, 16), "more after a kill of the leader's node")
        h.wait_until(lambda: group.live() == [0, 1, 2], 60, "the killed one is back")
        group.settle()
    # Compare the two that ran all the time: the third lacks outputs from before its checkpoint.
    status, text = group.diff(recordings=[n for n in range(3) if n != leader])
    scenario.check(status == 0, f"{server.name}: the outputs are equal", text)


def check_all(scenario, kinds):
    if not h.can_contain():
        raise h.CannotRun("these servers start as root, in containers")
    missing = []
    for kind in kinds:
        try:
            h.need(*kind.programs)
        except h.CannotRun as cause:
            missing.append(str(cause))
            continue
        work = scenario.work / kind.name
        work.mkdir()
        work.chmod(0o755)
        try:
            check(scenario, kind(work))
        except h.Failure as failure:  # run the others, too
            scenario.check(False, f"{kind.name}: {failure}")
    if missing:
        raise h.CannotRun("; ".join(missing))


def tell(name, kinds):
    def body(scenario):
        only = scenario.options.only
        check_all(scenario, [k for k in kinds if not only or k.name in only])

    h.run_scenario(name, body, only={"nargs": "*", "choices": [k.name for k in kinds],
                                     "help": "these servers, not all"})
