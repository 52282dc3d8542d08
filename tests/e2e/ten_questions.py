#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: each question of the table at the head of OPERATING.md is answered by its one command.
METHOD: the questions and the commands are read from the document, and run for a group of redis
whose data and log last, with a place for a fourth replica; a follower is lost meanwhile, and both
followers are stopped.
CHECKS: each answer has the fact: the directory that has the data, the leader's number, yes or no
about this host, a cause of slowness or "not slow", the progress of a recovery, an event with its
time, what is to be done for a new host and for an upgrade, a file with the data, the port that
clients reach. A question without a check, or a check without a question, fails.
"""
import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import threading

import _harness as h

DOCUMENT = h.ROOT / "runtime/launcher/OPERATING.md"
ROW = re.compile(r"^\| ([A-Z][^|]+\?) \| `([^`]+)` \|", re.M)
NO_GROUP_NEEDED = "systemctl"   # of a unit of crane-backup; this machine may have no systemd
ENTRIES = 60000
PATIENCE = 90


def questions():
    """{question: command} of the document's first table."""
    return dict(ROW.findall(DOCUMENT.read_text().split("\n## ")[0]))


class Asked:
    """The group, and the document's commands for it."""

    def __init__(self, scenario, group, data):
        self.scenario, self.group, self.data = scenario, group, data
        self.commands = questions()
        self.checked = set()

    def words(self, question, *more):
        """The command with this group's name and a directory of this scenario."""
        self.checked.add(question)
        program, *words = self.commands[question].split()
        named = [self.group.name if word == "shop" else
                 word.replace("/backup/", f"{self.scenario.work}/").replace("shop", "kept")
                 for word in words]
        return [str(self.scenario.out / program), *named, *more]

    def ask(self, question, *more, seconds=PATIENCE):
        """Returns (status, text)."""
        done = subprocess.run(self.words(question, *more), stdout=subprocess.PIPE, cwd="/",
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              timeout=seconds, check=False)
        return done.returncode, done.stdout

    def check(self, question, good, text):
        self.scenario.check(good, f"{question} `{self.commands[question]}`", text[-1500:])


def data_is_here(a):
    question = "Where is my data?"
    text = a.ask(question)[1]
    row = next((line for line in text.splitlines() if a.group.name in line.split()), "")
    place = pathlib.Path(row.split()[-1] if row else "")
    copy = place / "base" / str(a.data).lstrip("/")
    a.check(question, place == a.group.dir and copy.is_dir() and f"log, {a.data}" in row, text)


def leader_is(a):
    question = "Which replica leads?"
    status, text = a.ask(question)
    said = re.match(r".*\n[^\n]*\bleader (\d+),", text)
    a.check(question, status == 0 and said and int(said[1]) == a.group.leader(), text)


def reboot(a):
    question = "May I reboot this host?"
    text = a.ask(question)[1]
    said = re.search(r"^reboot of this host: (yes|no): (.+)$", text, re.M)
    a.check(question, said and said[1] == "no" and "3 of 3 replicas run on it" in said[2], text)


def slowness(a):
    """Without load, and when a majority's servers do not run."""
    question = "Why is it slow?"
    text = a.ask(question, "--once")[1]
    a.check(question, re.search(rf"^{a.group.name}: (not slow|slow): \S.*$", text, re.M), text)
    servers = [r["server_pid"] for r in a.group.state()["replicas"]
               if r["server_pid"] and r["replica"] != a.group.leader()]
    with contextlib.ExitStack() as stack:
        client = socket.create_connection(("127.0.0.1", a.group.port), 60)
        stack.callback(client.close)
        for pid in servers:
            stack.enter_context(h.stopped(pid))
        client.sendall(b"PING\r\n" * 100)

        def is_named():
            said = a.ask(question, "--once")[1]
            return "slow: clients wait for the followers' servers" in said and said
        text = h.wait_until(is_named, PATIENCE, "top names the followers")
    a.check(question, True, text)
    h.wait_until(a.group.are_whole, PATIENCE, "the followers run again")


def recovery(a):
    """A replica is lost, and its server is stopped while it runs the inputs again."""
    question = "How far is the recovery?"
    port = a.group.port
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        answers = threading.Thread(target=lambda: drained(client, ENTRIES))
        answers.start()
        for number in range(ENTRIES):
            client.sendall(b"SET key%d value\r\n" % number)
        answers.join(PATIENCE)
    a.group.settle()
    number = next(n for n in range(3) if n != a.group.leader())
    old = a.group.running_pid(number, "server_pid")
    a.group.signal_node(number, signal.SIGKILL)
    wanted = re.compile(rf"replica {number} replays, [\d,]+ of [\d,]+ entries")
    watch = subprocess.Popen(a.words(question), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL, text=True, cwd="/")
    stopped = h.wait_until(lambda: next((r["server_pid"] for r in a.group.state()["replicas"]
                                         if r["replica"] == number and r["server_pid"]
                                         and r["server_pid"] != old), None), PATIENCE,
                           "the next server runs")
    said = ""
    with h.stopped(stopped), timer(watch.kill):
        for line in watch.stdout:
            said = line
            if wanted.search(line):
                break
    watch.kill()
    watch.wait(10)
    a.check(question, wanted.search(said), said)
    h.wait_until(a.group.are_whole, PATIENCE, "the replica is back")


@contextlib.contextmanager
def timer(action):
    """Does this if the context lasts too long."""
    late = threading.Timer(PATIENCE, action)
    late.start()
    try:
        yield
    finally:
        late.cancel()


def drained(client, answers):
    left = answers * len(b"+OK\r\n")
    while left > 0 and (got := client.recv(65536)):
        left -= len(got)


def last_night(a):
    question = "What happened last night?"
    status, text = a.ask(question)
    a.check(question, status == 0 and re.search(r"^ *\d{4}-\d\d-\d\d.\d\d:\d\d:\d\d.* leads ", text,
                                                re.M), text)


def add_host(a):
    question = "How do I add a host?"
    status, text = a.ask(question)
    a.check(question, status == 0 and "3" in text, text)

    def member():
        listed = json.loads(h.ctl(a.scenario, "member", "list", a.group.name, "-o", "json")[1])
        return any(m["replica"] == 3 for m in listed["members"])
    h.wait_until(member, PATIENCE, "replica 3 is a member")


def upgrade(a):
    question = "How do I upgrade?"
    before = a.group.state()["replicas"]
    text = a.ask(question)[1]
    pids = [r["server_pid"] for r in before]
    a.check(question, "crane-ctl replica drain N" in text
            and "another command line after --" in text
            and [r["server_pid"] for r in a.group.state()["replicas"]][:3] == pids[:3], text)


def data_out(a):
    question = "How do I get my data out?"
    status, text = a.ask(question)
    file = a.scenario.work / "kept.tar.zst"
    listed = subprocess.run(["tar", "--zstd", "-tf", str(file)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=60, check=False).stdout
    a.check(question, status == 0 and f"{a.data}/mine".lstrip("/") in listed, text + listed[-500:])


def checkpoint_is_shown(a):
    """A long operation is in the status of the replica that carries it out, while it lasts."""
    number = next(n for n in range(3) if n != a.group.leader())
    taking = subprocess.Popen([str(a.scenario.out / "crane-ctl"), "checkpoint", "now",
                               a.group.name, "--replica", str(number)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    seen = []
    while taking.poll() is None:
        seen += (a.group.status(number) or {}).get("operations", [])
    text = taking.communicate()[0]
    a.scenario.check(taking.returncode == 0 and any(
        one["operation"] == "checkpoint" and one["replica"] == number
        and 0 <= one["done"] <= one["of"] and one["of"] > 0 and one["unit"] == "bytes"
        for one in seen), "status shows how far a checkpoint is", f"{seen[-3:]} {text[-500:]}")
    h.wait_until(lambda: not a.group.status(number)["operations"], PATIENCE, "it shows no more")


def may_connect(a):
    question = "Which clients may connect?"
    text = a.ask(question)[1]
    a.check(question, re.search(rf"port {a.group.port}\b.*this group listens there", text), text)


def body(scenario):
    h.need("redis-server", "tar", "zstd")
    if not h.can_contain():
        raise h.CannotRun("lasting data need root and LXC")
    data = scenario.work / "data"
    data.mkdir()
    (data / "mine").write_text("kept\n")
    port = h.free_port()
    options = ["--data", str(data), "--durability", "disk", "--spares", "1",
               "--checkpoint-every", "0", "--checkpoint-log", "0"]
    with h.Group(scenario, h.redis_program(port), port=port, options=options) as group:
        h.wait_until(group.are_whole, PATIENCE, "the group is whole")
        a = Asked(scenario, group, data)
        for answered in (data_is_here, leader_is, reboot, slowness, recovery, last_night,
                         may_connect, checkpoint_is_shown, data_out, upgrade, add_host):
            answered(a)
        left = {q for q, command in a.commands.items()
                if q not in a.checked and not command.startswith(NO_GROUP_NEEDED)}
        scenario.check(len(a.checked) >= 10 and not left,
                       "the document's first table has ten questions, and each is checked",
                       str(left))


if __name__ == "__main__":
    h.run_scenario("ten_questions", body)
