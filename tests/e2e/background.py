#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A group whose crane-run has no terminal. --detach returns when the server listens, and a failed
start ends as in the foreground. crane-ctl logs prints each line once, also while the leader
changes; attach leaves the group running; stop reports the exit status. nohup keeps a group,
SIGHUP ends one. A stopped crane-run is reported as unsupervised everywhere. A replica keeps the
last 64 MiB of its server's output."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import _harness as h
from _monitoring import ask, free_ports
from takeover_run import kill_crane_run

TALKS = """
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("the server listens", flush=True)
while True:
    c, _ = s.accept()
    try:
        word = c.recv(100).decode().strip()
        if word:
            print("heard", word + ".", flush=True)
        for _ in range(100 if word == "fill" else 0):
            print((99 * "x" + "\\n") * 10000, end="", flush=True)
        c.sendall(b"ok\\n")
    except OSError:
        pass
    c.close()
"""
FAILS = 'import sys; print("the configuration is wrong", flush=True); sys.exit(3)'
WAITS = "import time; time.sleep(600)"
SHOWN_SECONDS = 30
REFUSED, SYSTEM = 5, 116


def talks(port):
    return [sys.executable, "-c", TALKS, str(port)]


def tell_server(port, word):
    """One connection, also over a change of the leader, so the server hears the word once."""
    with socket.create_connection(("127.0.0.1", port), 60) as s:
        s.settimeout(60)
        s.sendall(word.encode() + b"\n")
        if s.recv(10) != b"ok\n":
            raise h.Failure(f"the server did not answer {word}")


class Process:
    """A process that is no child of this one, as Group uses a Popen."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        if not h.alive(self.pid):
            self.returncode = -1   # unknown
        return self.returncode

    def wait(self, seconds):
        try:
            return h.wait_until(self.poll, seconds, f"process {self.pid} ends")
        except h.Failure:
            raise subprocess.TimeoutExpired("crane-run", seconds) from None

    def send_signal(self, signo):
        os.kill(self.pid, signo)


class Detached(h.Group):
    """A group of crane-run --detach; `process` is its crane-run in the background."""

    def __init__(self, scenario, program, **more):
        super().__init__(scenario, program, options=["--detach"], **more)
        self.status_of_start, self.told = None, ""

    def launch(self):
        self.home.mkdir(exist_ok=True)
        self.home.chmod(0o755)
        done = subprocess.run(self.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd="/", stdin=subprocess.DEVNULL, check=False,
                              timeout=h.START_SECONDS)
        self.status_of_start, self.told = done.returncode, done.stdout
        self.log.write_text(done.stdout)
        if done.returncode != 0:
            raise h.Failure(f"crane-run --detach: status {done.returncode}:\n{done.stdout}")
        self.process = Process(self.state()["pid"])


def ctl(group, *words):
    return h.ctl(group.scenario, "--dir", str(group.home), *words)


class Follower:
    """A crane-ctl that follows the output of a group."""

    def __init__(self, group, *words):
        self.path = group.scenario.work / f"follower-{group.scenario.next_number()}"
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen(
                [str(group.scenario.out / "crane-ctl"), "--dir", str(group.home), *words,
                 group.name], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def text(self):
        return self.path.read_text(errors="replace")

    def shows(self, *parts):
        h.wait_until(lambda: all(part in self.text() for part in parts), 60,
                     f"crane-ctl shows {parts}: {self.text()[-500:]}")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10)


# --- start and output ---------------------------------------------------------------------------

def is_in_the_background(scenario, group, port):
    tell_server(port, "first")   # without any wait
    told = group.told
    scenario.check(all(part in told for part in
                       (f"group {group.name} runs in the background", str(group.dir),
                        f"{group.dir}/runtime.log", f"crane-ctl status {group.name}",
                        f"crane-ctl logs -f {group.name}", f"crane-ctl stop {group.name}")),
                   "--detach returns when the server answers, and names directory, log, commands",
                   told)
    pid = group.process.pid
    ends = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)]
    scenario.check(ends == ["/dev/null", "/dev/null", f"{group.dir}/runtime.log"]
                   and os.getsid(pid) == pid,
                   "its crane-run has a session of its own, and runtime.log", str(ends))


def shows_logs(scenario, group, port):
    tell_server(port, "second")
    for replica in range(3):
        h.wait_until(lambda r=replica: "heard second." in
                     ctl(group, "logs", group.name, "--replica", str(r))[1], 20,
                     f"crane-ctl logs --replica {replica} has the server's output")
    status, text = ctl(group, "logs", group.name)
    scenario.check(status == 0 and "all replicas run" in text
                   and all(text.count(f"heard {word}.") == 1 for word in ("first", "second")),
                   "crane-ctl logs: messages of crane-run, and each line of the server once", text)
    status, text = ctl(group, "logs", group.name, "--replica", "7")
    scenario.check(status == REFUSED and "replica 7" in text, "a replica that is not there", text)


def follows(scenario, group, port):
    with Follower(group, "logs", "-f") as follower:
        follower.shows("heard second.")
        old = group.leader()
        tell_server(port, "third")
        follower.shows("heard third.")
        group.signal_node(old, signal.SIGKILL)
        tell_server(port, "fourth")
        follower.shows("heard fourth.", f"replica {old}")
        h.wait_until(group.are_whole, 60, "the lost replica is back")
        tell_server(port, "fifth")
        follower.shows("heard fifth.")
        words = ("first", "second", "third", "fourth", "fifth")
        counts = [follower.text().count(f"heard {word}.") for word in words]
        scenario.check(counts == [1] * 5, "logs -f: each line once, while the leader changes and "
                       "the lost replica comes back", follower.text())
        scenario.check(follower.interrupt() == -signal.SIGINT, "Ctrl-C ends logs -f")


def attaches(scenario, group, port):
    with Follower(group, "attach") as follower:
        follower.shows("attached")
        tell_server(port, "sixth")
        follower.shows("heard sixth.")
        status = follower.interrupt()
        scenario.check(status == 0 and "the group continues" in follower.text()
                       and "heard fifth." not in follower.text() and h.alive(group.process.pid),
                       "attach shows new output; Ctrl-C leaves the group running",
                       f"{status}: {follower.text()}")


def stops(scenario, group):
    with Follower(group, "attach") as attached, Follower(group, "logs", "-f") as follower:
        attached.shows("attached")
        follower.shows("heard sixth.")
        group.remember(group.state())
        status, text = ctl(group, "stop", group.name)
        scenario.check(status == 0 and f"stopped {group.name}" in text and "exit status 0" in text
                       and not (group.dir / "lock").exists()
                       and not h.alive(group.process.pid),
                       "crane-ctl stop returns when crane-run has ended, with its exit status",
                       f"{status}: {text}")
        for one, what in ((attached, "attach"), (follower, "logs -f")):
            status = one.process.wait(30)
            scenario.check(status == 0 and "the group ended" in one.text()
                           and "exit status 0" in one.text(),
                           f"{what} ends with the group", f"{status}: {one.text()[-400:]}")
    status, text = ctl(group, "stop", group.name)
    # The logs remain, because a replica was lost.
    scenario.check(status == REFUSED and "does not run" in text, "a group that has ended",
                   f"{status}: {text}")


def in_the_background(scenario):
    port = h.free_port()
    group = Detached(scenario, talks(port), port=port, container=False)
    with Follower(group, "status", "--wait", "60") as waiting:
        waiting.shows(f"no group {group.name} yet")
        with group:
            is_in_the_background(scenario, group, port)
            status = waiting.process.wait(60)
            scenario.check(status == 0 and "serving, 3 of 3, fault tolerant" in waiting.text(),
                           "status --wait: the group that was not there is well", waiting.text())
            shows_logs(scenario, group, port)
            follows(scenario, group, port)
            attaches(scenario, group, port)
            stops(scenario, group)


# --- failed starts ------------------------------------------------------------------------------

def command(scenario, name, program, *options):
    home = scenario.work / "failing"
    home.mkdir(exist_ok=True)
    return [str(scenario.out / "crane-run"), "--name", name, "--dir", str(home), "--no-container",
            *options, "--", *program]


def start(line):
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd="/", stdin=subprocess.DEVNULL, timeout=h.START_SECONDS, check=False)
    return done.returncode, done.stdout


def fails(scenario):
    """Each wrong start, in the background and in the foreground."""
    with socket.create_server(("127.0.0.1", 0)) as owner:
        port = owner.getsockname()[1]
        for what, program, options, wanted, says in (
                ("a taken port", talks(port), ["--publish", str(port)], 105, str(port)),
                ("a missing program", ["no-such-program"], [], 102, "no-such-program"),
                ("an even number", talks(port), ["-n", "2"], 101, "odd"),
                ("a server that fails", [sys.executable, "-c", FAILS], [], 3,
                 "the configuration is wrong")):
            name = f"fails-{os.getpid()}"
            front = start(command(scenario, name, program, *options))
            back = start(command(scenario, name, program, *options, "--detach"))
            scenario.check(front[0] == back[0] == wanted and says in front[1] and says in back[1],
                           f"{what}: status {wanted} and the message, also in the background",
                           f"foreground {front}; background {back}")
    home = str(scenario.work / "failing")
    status, text = h.ctl(scenario, "--dir", home, "list", "-o", "json")
    rows = json.loads(text) if status == 0 else []
    scenario.check(len(rows) == 1 and rows[0]["state"] == "stopped"
                   and "exit status 3" in rows[0].get("ended", ""),
                   "crane-ctl list shows how the failed group ended", text)
    status, text = h.ctl(scenario, "--dir", home, "logs")
    scenario.check(status == 0 and "the configuration is wrong" in text,
                   "crane-ctl logs shows the output of a server that failed", text)
    shutil.rmtree(home)


def state_of(scenario, name):
    try:
        return json.loads((scenario.work / "failing" / name / "state.json").read_text())
    except (OSError, ValueError):
        return {}


def ends_while_it_waits(scenario, what, end, wanted, says):
    """A server that does not listen keeps --detach waiting; `end` gets its process and the pid of
    its crane-run."""
    name = f"waits-{os.getpid()}-{scenario.next_number()}"
    first = subprocess.Popen(command(scenario, name, [sys.executable, "-c", WAITS], "--detach"),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
                             stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        h.wait_until(lambda: state_of(scenario, name).get("ready"), h.START_SECONDS,
                     "all replicas run")
        scenario.check(first.poll() is None, f"{what}: --detach waits until the server listens")
        end(first, state_of(scenario, name)["pid"])
        text = first.communicate(timeout=60)[0]
        scenario.check(first.returncode == wanted and says in text,
                       f"{what}: status {wanted}, says {says!r}", f"{first.returncode}: {text}")
    finally:
        if first.poll() is None:
            first.kill()
        start([str(scenario.out / "crane-run"), "--stop", "--name", name, "--dir",
               str(scenario.work / "failing")])
    left = [str(p) for p in pathlib.Path("/dev/shm").glob(f"crane.{name}*")]
    scenario.check(not left, f"{what}: nothing is left", str(left))


def interrupted_starts(scenario):
    ends_while_it_waits(scenario, "Ctrl-C",
                        lambda first, run_pid: first.send_signal(signal.SIGINT), 0, "interrupted")
    ends_while_it_waits(scenario, "a killed crane-run",
                        lambda first, run_pid: os.kill(run_pid, signal.SIGKILL), SYSTEM,
                        "did not start in the background")


# --- the end of the terminal --------------------------------------------------------------------

class Nohup(h.Group):
    def command(self):
        return ["nohup", *super().command()]


def terminal_ends(scenario):
    port = h.free_port()
    with Nohup(scenario, talks(port), port=port, container=False) as group:
        group.process.send_signal(signal.SIGHUP)
        tell_server(port, "still")
        h.wait_until(lambda: "heard still." in group.log.read_text(errors="replace"), 20,
                     "the output continues")
        scenario.check(group.process.poll() is None and "stopping" not in group.log.read_text(),
                       "nohup: the group survives SIGHUP", h.tail(group.log))
    with h.Group(scenario, talks(port), port=port, container=False) as group:
        group.process.send_signal(signal.SIGHUP)
        group.process.wait(h.STOP_SECONDS)
        log = h.tail(group.dir / "runtime.log")
        scenario.check("SIGHUP" in log and "--detach" in log and "nohup" in log,
                       "a closed terminal ends the group; runtime.log says why and what keeps it",
                       log)
        shutil.rmtree(group.dir, ignore_errors=True)


# --- a stopped crane-run ------------------------------------------------------------------------

def metric(port):
    lines = ask(port, "/metrics")[1].splitlines()
    line = next((line for line in lines if line.startswith("crane_supervised{")), "")
    return line.rsplit(" ", 1)[-1]


def shown_as(group, first, supervised):
    """Whether status, JSON and metrics of all replicas agree about crane-run."""
    _, text = ctl(group, "status", group.name)
    _, said = group.verdict()
    return (("unsupervised:" not in text) == supervised
            and said.get("supervised", True) == supervised
            and all(s and s["supervised"] == supervised for s in group.statuses(range(3)).values())
            and all(metric(first + n) == str(int(supervised)) for n in range(3)))


def stopped_crane_run(scenario):
    port, first = h.free_port(), free_ports(3)
    with h.Group(scenario, talks(port), port=port, container=False,
                 options=["--http", str(first)]) as group:
        h.wait_until(lambda: shown_as(group, first, True), 30, "crane-run supervises")
        tell_server(port, "first")   # it listens, so it needs nothing of crane-run
        pid = group.process.pid
        with h.stopped(pid):
            h.wait_until(lambda: shown_as(group, first, False), SHOWN_SECONDS,
                         "a stopped crane-run is shown as unsupervised")
            status, text = ctl(group, "status", group.name)
            scenario.check(status == 1 and f"kill -CONT {pid}" in text,
                           "status: degraded, and what lets crane-run continue", text)
            tell_server(port, "meanwhile")
        h.wait_until(lambda: shown_as(group, first, True), SHOWN_SECONDS,
                     "a crane-run that continues supervises again")
        scenario.check(True, "status, JSON and metrics show a stopped crane-run")
        kill_crane_run(group)
        h.wait_until(lambda: shown_as(group, first, False), SHOWN_SECONDS,
                     "a killed crane-run is shown as unsupervised")
        status, text = ctl(group, "stop", group.name)
        scenario.check(status == REFUSED and "crane-run --stop" in text,
                       "stop without a crane-run names what ends the nodes", f"{status}: {text}")
        group.launch()
        h.wait_until(group.is_ready, 30, "the next crane-run takes over")
        h.wait_until(lambda: shown_as(group, first, True), SHOWN_SECONDS, "and supervises")
        os.kill(group.process.pid, signal.SIGSTOP)
        stopping = subprocess.Popen([str(scenario.out / "crane-ctl"), "--dir", str(group.home),
                                     "stop", group.name], stdout=subprocess.PIPE, text=True)
        group.process.wait(h.STOP_SECONDS)
        text = stopping.communicate(timeout=30)[0]
        scenario.check(stopping.returncode == 0 and "exit status" in text,
                       "stop ends a group whose crane-run is stopped", text)


# --- bounded logs

def keeps_the_end(scenario):
    """The server writes 100 MB: a replica keeps the last 64 MiB at their places, and readers
    continue and hear what is gone."""
    port = h.free_port()
    with Detached(scenario, talks(port), port=port) as group, \
            Follower(group, "logs", "-f") as reads:
        reads.shows("the server listens")
        tell_server(port, "fill")
        logs = [(group.dir / f"r{n}/server.log") for n in range(3)]

        def bounded():
            tell_server(port, "more")   # so that the nodes look
            found = [log.stat() for log in logs]
            return all(s.st_size > 100_000_000 and s.st_blocks * 512 <= 80 << 20 for s in found)
        h.wait_until(bounded, 60, "each server.log is bounded")
        tell_server(port, "after")
        reads.shows("heard after.")
        scenario.check(reads.text().count("heard fill.") == 1, "crane-ctl logs -f continues")
        text = ctl(group, "logs", group.name, "--replica", "1")[1]
        scenario.check(text.count("heard after.") == 1 and "before this are no longer kept]" in text
                       and "the server listens" not in text and text.count("x") > 64_000_000,
                       "the last 64 MiB stay, and crane-ctl logs says what is gone",
                       f"{text[:300]} .. {text[-300:]}")


def stopped_by_crane_run(scenario):
    """crane-run --stop ends a group as crane-ctl stop does."""
    port = h.free_port()
    with h.Group(scenario, talks(port), port=port, container=False) as group:
        line = [str(scenario.out / "crane-run"), "--stop", "--name", group.name, "--dir",
                str(group.home)]
        os.kill(group.process.pid, signal.SIGSTOP)
        status, text = start(line)
        scenario.check(status == 0 and f"stopped {group.name}" in text
                       and not h.alive(group.process.pid),
                       "crane-run --stop ends a group whose crane-run is stopped",
                       f"{status}: {text}")
        status, text = start(line)
        scenario.check(status == 0 and f"no group {group.name} runs" in text,
                       "crane-run --stop of a group that has ended", f"{status}: {text}")


def body(scenario):
    # nohup, and a shell's `&`, start this with signals ignored, which children would inherit.
    for signo in (signal.SIGHUP, signal.SIGINT):
        signal.signal(signo, signal.SIG_DFL)
    h.need("nohup")
    in_the_background(scenario)
    fails(scenario)
    interrupted_starts(scenario)
    terminal_ends(scenario)
    stopped_crane_run(scenario)
    keeps_the_end(scenario)
    stopped_by_crane_run(scenario)


if __name__ == "__main__":
    h.run_scenario("background", body)
