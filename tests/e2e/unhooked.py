#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that bypass libc are detected: status names them, --strict ends the group."""
import re
import socket
import subprocess

import _harness as h

UNHOOKED = 122
CALLS = {"futex": "scheduled", "io_uring_setup": "refused"}


def ctl(scenario, group):
    done = subprocess.run([str(scenario.out / "crane-ctl"), "--dir", str(group.home), "status",
                           group.name], stdout=subprocess.PIPE, text=True, timeout=30)
    return done.stdout


def no_calls(scenario):
    """redis has none: status reports 0, and strict mode accepts it."""
    h.need("redis-server")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port, options=["--strict"]) as group:
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        client = h.Redis(port, 20)
        for i in range(50):
            client("SET", f"k{i}", "v")
        client.close()
        group.settle()
        counts = {n: s and s["unhooked_calls"] for n, s in group.statuses().items()}
        scenario.check(set(counts.values()) == {0}, "redis: no unhooked calls in JSON",
                       repr(counts))
        text = ctl(scenario, group)
        scenario.check("unhooked calls: 0\n" in text, "crane-ctl status reports it", text)


def program(scenario, port):
    return [str(scenario.out / "e2e/inline_server"), str(port)]


def ask(port, lines):
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        answers = client.makefile("rb")
        said = [answers.readline().decode()]
        for line in lines:
            client.sendall(line)
            said.append(answers.readline().decode())
        return said


def named(scenario):
    """Counted, by name and object, on every replica; the group serves, and outputs are equal."""
    port = h.free_port()
    with h.Group(scenario, program(scenario, port), port=port, record=True,
                 options=["--perturb", "3"]) as group:
        for i in range(5):
            reply = ask(port, [b"one\n", b"three\n"])
            scenario.check(reply == ["ring: no\n", "4\n", "6\n"], f"answers of client {i}",
                           repr(reply))
        group.settle()
        for n, status in group.statuses().items():
            calls = {u["call"]: u["outcome"] for u in status["unhooked"]
                     if u["object"].endswith("/inline_server") and u["count"] > 0}
            scenario.check(calls == CALLS, f"replica {n} names {sorted(CALLS)}",
                           repr(status["unhooked"]))
            total = sum(u["count"] for u in status["unhooked"])
            scenario.check(status["unhooked_calls"] == total, f"replica {n} counts them all",
                           f"{status['unhooked_calls']}, not {total}")
        text = ctl(scenario, group)
        for call in CALLS:
            scenario.check(re.search(rf"^  {call} at \S+/inline_server\+0x[0-9a-f]+: ", text, re.M),
                           f"crane-ctl status names {call}", text)
        group.stop()
        scenario.check_equal(group)


def strict(scenario):
    """The group ends before it serves, and names the call and the program."""
    port = h.free_port()
    home = scenario.work / "groups"
    home.mkdir(exist_ok=True)
    mine = [str(scenario.out / "crane-run"), "--dir", str(home), "--name", "strict", "--strict"]
    mine += [] if h.can_contain() else ["--no-container"]
    done = subprocess.run([*mine, "--", *program(scenario, port)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=90, cwd="/",
                          stdin=subprocess.DEVNULL)
    scenario.check(done.returncode == UNHOOKED, f"--strict: status {UNHOOKED}",
                   f"{done.returncode}: {done.stdout}")
    scenario.check(re.search(r"io_uring_setup at \S+/inline_server\+0x", done.stdout),
                   "--strict: the message names call and object", done.stdout)


def body(scenario):
    no_calls(scenario)
    named(scenario)
    strict(scenario)


if __name__ == "__main__":
    h.run_scenario("unhooked", body)
