# SPDX-License-Identifier: Apache-2.0
"""Common parts of stories about servers that talk to others: the same program natively, and a proxy
before a web server that keeps its requests."""
import os
import signal
import socket
import subprocess

import _harness as h
import _outside as o
import _takeovers as t

CLIENTS = 8
NEAR = 1000    # entries between any two replicas before a change of the leader
NATIVELY = 8   # requests of each client that are compared with the native program's


class Native:
    """A context manager that runs a program without Crane."""

    def __init__(self, scenario, command, port):
        self.command, self.port = [str(word) for word in command], port
        self.log = scenario.work / f"native-{port}.log"

    def listens(self):
        with socket.socket() as probe:
            if self.process.poll() is not None:
                raise h.Failure(f"{self.command} ended: {h.tail(self.log)}")
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd="/",
                                            stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            h.wait_until(self.listens, 60, f"{self.command[0]} listens")
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_):
        """Ends the program with its forked processes, which may not end with it."""
        self.process.send_signal(signal.SIGTERM)
        ended = os.WEXITED | os.WNOWAIT | os.WNOHANG   # unreaped, its pid still names the group
        try:
            h.wait_until(lambda: os.waitid(os.P_PID, self.process.pid, ended), 20, "it ends")
        except h.Failure:
            pass
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def natively(scenario, command, port, crowd, until=lambda: True):
    """The answers of the native program to clients that end after some requests."""
    with Native(scenario, command, port):
        crowd.start()
        crowd.join()
        if bad := crowd.end():
            raise h.Failure(f"natively: {bad}")
        h.wait_until(until, 60, "all is forwarded natively")
    return crowd.answers


def passes_on(scenario, changes, name, command, *, port, backend, native=None,
              client=o.WebClient, **more):
    """The story of a server that forwards clients' requests to a server outside."""
    def crowd(most):
        return o.Crowd(client(port, number, most, **more) for number in range(CLIENTS))
    first, running = crowd(NATIVELY), crowd(None)
    answers = natively(scenario, native or command, port, first,
                       lambda: backend.has_heard(first.answers))
    heard = backend.take_heard()
    with h.Group(scenario, command, port=port, options=t.RETURNS) as group:
        t.check(scenario, group, [running], *changes, near=NEAR,
                before_stop=lambda: h.wait_until(lambda: backend.has_heard(running.answers), 90,
                                                 "all is forwarded"))
    made = running.answers
    wrong = [f"{path}: {answer}, natively {answers[path]}"[:400]
             for path, answer in made.items() if path in answers and answer != answers[path]]
    scenario.check(not wrong, f"{name}: {len(made)} answers, as natively", "\n".join(wrong[:3]))
    check_heard(scenario, name, backend, made, heard)
    backend.close()


def check_heard(scenario, name, backend, made, natively_heard):
    """Each request arrived once and complete, as the native program forwards it."""
    heard = backend.take_heard()
    scenario.check(set(made) <= set(heard), f"{name}: the server outside received all requests",
                   str(sorted(set(made) - set(heard))[:5]))
    wrong = [f"{path}: {texts}"[:600] for path, texts in heard.items() if len(texts) != 1]
    scenario.check(not wrong, f"{name}: it received no request twice", "\n".join(wrong[:3]))
    wrong = [f"{path}: {texts}, natively {natively_heard[path]}"[:900]
             for path, texts in heard.items() if not backend.is_whole(path, texts[0])
             or texts != natively_heard.get(path, texts)]
    scenario.check(not wrong and not backend.broken, f"{name}: it received the same as natively",
                   "\n".join(map(str, [*wrong[:3], *backend.broken[:3]])))
