#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a follower under load; a killed replica recovers from one, and then leads.

Quick: redis with clients that never disconnect, and one server of each kind of process tree.
--full: every server of the matrix, 20 checkpoints each, with a table of times (CRANE, table 2).
CRANE_KIND selects servers.
"""
import contextlib
import datetime
import importlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import threading

import _harness as h
import _matrix as m
from _pages import Pages
from dav_race import dav_configuration

QUICK = ("redis-server", "apache2 event", "apache2 prefork", "postgresql")
STORIES = ("redis", "apache", "memcached", "nginx", "postgresql", "mariadb", "slapd", "clamd",
           "gerbera", "civetweb", "engine", "php", "tls")


def control(group, *words):
    """(status, output) of crane-ctl. On a busy machine the lead moves by itself: when a command
    for a follower (`--replica N`) meets the leader there, the lead moves on."""
    for tries in range(10):
        done = subprocess.run([str(group.scenario.out / "crane-ctl"), "--dir", str(group.home),
                               *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=200, check=False)
        if done.returncode == 0 or "is the leader, or does not follow" not in done.stdout:
            break
        lead(group, (int(words[words.index("--replica") + 1]) + 1 + tries % 2) % 3)
    return done.returncode, done.stdout.strip()


def checkpoint(group, number):
    """Times in ms of a checkpoint that replica `number` takes now."""
    status, text = control(group, "checkpoint", "now", group.name, "--replica", str(number))
    if status != 0:
        raise h.Failure(f"crane-ctl checkpoint now: {status}: {text}")
    fields = group.status(number)["checkpoint"]
    return {what: fields[f"{what}_us"] / 1000 for what in ("rest", "held", "pack")}


def recover(group, number, seconds=30):
    """Kills the node of a replica, and with it its server; waits until it is back and has caught
    up."""
    before = group.replica(number)["node_pid"]
    end = max(s["last"] for s in group.statuses().values() if s)
    group.signal_node(number, signal.SIGKILL)

    def is_back():
        state = group.replica(number)
        if state["node_pid"] in (before, None) or not h.alive(state["node_pid"]):
            return None
        status = group.status(number)
        return status if status and status["applied"] >= end and status["server_pid"] else None
    return h.wait_until(is_back, seconds, f"replica {number} recovers and catches up")


def lead(group, number):
    def leads():
        if group.leader() == number:
            return True
        control(group, "leader", "transfer", group.name, "--to", str(number))
        return False
    h.wait_until(leads, 30, f"replica {number} leads")


class Worker(threading.Thread):
    """The server's load, once, in parallel to the caller."""

    def __init__(self, server, problems):
        super().__init__(daemon=True)
        self.server, self.problems = server, problems

    def run(self):
        try:
            self.server.load(self.server.requests[0])
        except (OSError, h.Failure, subprocess.SubprocessError) as failure:
            self.problems.append(str(failure)[:600])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join(120)


def check_equal(scenario, group, what, alarmed=False):
    said = h.at_rest(group)
    scenario.check(len(said) == 3, f"{what}: three replicas live", repr(group.brief()))
    same = {(s["clock"], s["schedule_hash"]) for s in said.values()}
    scenario.check(len(same) == 1, f"{what}: schedules are equal", repr(group.brief()))
    if not alarmed:
        scenario.check(not any(s["verified"]["alarm"] for s in said.values()), f"{what}: no alarm",
                       repr({n: s["verified"] for n, s in said.items()}))


def one_kind(scenario, kind, count):
    """`count` checkpoints under load, a return from the last one, then the returned replica
    leads."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    what = kind.name
    with h.Group(scenario, server.command, port=server.port, options=server.options) as group:
        h.wait_until(server.ready, 60, f"{what}: it answers")
        follower = (group.leader() + 1) % 3
        problems, times = [], []
        for _ in range(count):
            with Worker(server, problems):
                times.append(checkpoint(group, follower))
        scenario.check(not problems, f"{what}: clients do not notice checkpoints",
                       "; ".join(problems))
        check_equal(scenario, group, f"{what}: after {count} checkpoints")
        said = recover(group, follower)
        scenario.check(said["checkpoint"]["restored_at"] > 0, f"{what}: it came from a checkpoint",
                       repr(said["checkpoint"]))
        server.load(server.requests[0])
        check_equal(scenario, group, f"{what}: after the return")
        lead(group, follower)
        server.load(server.requests[0])
        check_equal(scenario, group, f"{what}: with the returned replica as leader")
        held = server.state()
        if held:
            scenario.say(f"{what}: {held}")
    for part in ("rest", "held", "pack"):
        all_of = [t[part] for t in times]
        scenario.say(f"{what}: {part} {statistics.median(all_of):.0f} ms "
                     f"({min(all_of):.0f} .. {max(all_of):.0f}) of {count}")
    h.shutil.rmtree(server.work)


def listed(group):
    status, text = control(group, "checkpoint", "list", group.name, "-o", "json")
    if status != 0:
        raise h.Failure(f"crane-ctl checkpoint list: {status}: {text}")
    return json.loads(text)["checkpoints"]


def flip(file):
    with open(file, "r+b") as f:
        f.seek(file.stat().st_size // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 1]))


def look_at_files(scenario, group, number):
    """crane-ctl lists and verifies the only checkpoint; if a file is damaged, it names the file."""
    one, at = listed(group), group.status(number)["checkpoint"]["last"]
    scenario.check([(c["replica"], c["index"], c["verified"], c["damage"]) for c in one]
                   == [(number, at, True, None)] and one[0]["bytes"] > 0, "listed as verified",
                   repr(one))
    status, text = control(group, "checkpoint", "verify", group.name)
    scenario.check(status == 0 and one[0]["name"] in text, "verification succeeds",
                   f"{status}: {text}")
    file = pathlib.Path(one[0]["path"]) / "images.pack"
    flip(file)
    status, text = control(group, "checkpoint", "verify", group.name, f"{one[0]['view']}.{at}")
    scenario.check(status == 5 and str(file) in text, "damage is found, and its file named",
                   f"{status}: {text}")
    scenario.check(not listed(group)[0]["verified"], "its mark as verified is gone")
    flip(file)
    status, text = control(group, "checkpoint", "verify", group.name)
    scenario.check(status == 0 and listed(group)[0]["verified"], "mended", f"{status}: {text}")
    status, text = control(group, "checkpoint", "verify", group.name, "1.999999")
    scenario.check(status == 3 and "no such checkpoint" in text, "an unknown name is refused",
                   f"{status}: {text}")
    text = control(group, "status", group.name)[1]
    scenario.check(f"checkpoint: entry {at} by replica {number}, held for " in text,
                   "status reports it", text)


def counting(scenario):
    """Acknowledged increments survive a return and the time during which the returned replica
    leads. Returns a copy of a checkpoint, for drill()."""
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        with h.Load(port) as load:
            follower = (group.leader() + 1) % 3
            checkpoint(group, follower)
            load.progress()
            look_at_files(scenario, group, follower)
            at = recover(group, follower)["checkpoint"]["restored_at"]
            load.progress()
            text = control(group, "status", group.name)[1]
            scenario.check(f"replica {follower} recovered from the checkpoint at entry {at}"
                           in text,
                           "status reports which replica recovered", text)
            log = group.dir / f"r{follower}/node.log"
            h.wait_until(lambda: "caught up at entry" in log.read_text(), 30,
                         "the recovered replica may lead")
            lead(group, follower)
            load.progress()
            load.stop()
            problems = load.problems()
            scenario.check(not problems, "no acknowledged increment is lost",
                           "; ".join(problems[:5]))
        check_equal(scenario, group, "counting clients")
        there = listed(group)
    scenario.check(listed(group) == there and there, "listed when the group has ended", repr(there))
    newest = pathlib.Path(max(there, key=lambda c: c["index"])["path"])
    return pathlib.Path(shutil.copytree(newest, scenario.work / "younger" / newest.name))


def drill(scenario, younger):
    """A wrong bit in one replica's output: it is fenced, recovers, and is equal again. Its
    checkpoints after the last verified entry (the scenario plants one) are removed."""
    port = h.free_port()
    flipped = 2
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--test-only-flip", str(flipped)]) as group:
        first = group.replica(flipped)["node_pid"]
        takes = next(n for n in (0, 1) if n != group.leader())
        checkpoint(group, takes)
        kept = group.dir / f"r{flipped}/checkpoints" / younger.name
        shutil.copytree(younger, kept)

        def ask(*words):   # with its own connection: the flipped replica may lead
            with contextlib.suppress(OSError):
                client = h.Redis(port, 5)
                try:
                    return client(*words)
                finally:
                    client.close()
        ask("SET", "long", "x" * 5000)
        for _ in range(10):   # more than the node of the flipped replica tolerates
            ask("GET", "long")

        def is_back():
            ask("INCR", "more")
            state = group.replica(flipped)
            said = group.status(flipped) if state["node_pid"] not in (first, None) else None
            return said and said["checkpoint"]["restored_at"] > 0 and said["verified"]["index"] > \
                said["checkpoint"]["restored_at"]
        h.wait_until(is_back, 60, "the fenced replica recovers and is verified")
        alarms = (group.dir / f"r{flipped}" / "node.log").read_text()
        scenario.check(f"replica {flipped} diverged from the majority" in alarms,
                       "the wrong replica was found", alarms[-2000:])
        scenario.check(f"checkpoint {kept.name} is younger than the last verified entry" in alarms
                       and not kept.exists(), "its checkpoint after the last verified entry is "
                       "gone", alarms[-2000:])
        found_within_a_period(scenario, flipped, alarms)
        check_equal(scenario, group, "drill", alarmed=True)


def found_within_a_period(scenario, flipped, log):
    """The cut that found it is the first one behind the wrong bit: the last cut at which all were
    equal was before."""
    wrong = re.search(r"^(\S+) .* after entry (\d+) is wrong", log, re.M)
    alarm = re.search(rf"^(\S+) .*replica {flipped} diverged from the majority between "
                      r"log index (\d+) and (\d+)", log, re.M)
    if not wrong or not alarm:
        return scenario.check(False, "the log contains the wrong bit and the alarm", log[-2000:])
    at, (before, cut) = int(wrong[2]), (int(alarm[2]), int(alarm[3]))
    when = [datetime.datetime.fromisoformat(found[1]) for found in (wrong, alarm)]
    scenario.say(f"a wrong bit after entry {at}, found by the cut at {cut} (the one before: "
                 f"{before}), {(when[1] - when[0]).total_seconds() * 1000:.0f} ms later")
    scenario.check(before <= at <= cut, "drill: found by the first cut after it",
                   f"{before} {at} {cut}")


def beside_another(scenario):
    """Requested while the same replica takes one: crane-ctl repeats the request until it is
    taken."""
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        follower, said = (group.leader() + 1) % 3, []
        asking = [threading.Thread(target=lambda: said.append(control(
            group, "checkpoint", "now", group.name, "--replica", str(follower))))
            for _ in range(3)]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        scenario.check([status for status, _ in said] == [0] * 3 and
                       group.status(follower)["checkpoint"]["taken"] == 3,
                       "three at once: each is taken", repr(said))


def pages(scenario):
    """For files that are continually replaced, a restored server sees the attributes it saw
    before."""
    port = h.free_port()
    conf = dav_configuration(scenario.work, port)
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port) as group:
        with Pages(port, 1) as load:
            load.progress(200)
            follower = (group.leader() + 1) % 3
            checkpoint(group, follower)
            load.progress(50)
            recover(group, follower)
            load.progress(200)
            load.stop()
            problems = load.problems()
            scenario.check(not problems, "pages: no acknowledged page is lost",
                           "; ".join(problems[:5]))
        check_equal(scenario, group, "pages")


def by_themselves(scenario):
    """Followers take turns by the clock, or when the log has grown; a single replica takes them if
    the option requests it."""
    for options, replicas in ((["--checkpoint-every", "1"], 3),
                              (["--checkpoint-every", "0", "--checkpoint-log", "1"], 3),
                              (["--checkpoint-every", "1"], 1)):
        port = h.free_port()
        what = " ".join(options) + f", {replicas} replicas"
        with h.Group(scenario, h.redis_program(port), port=port, replicas=replicas,
                     options=options) as group:
            client = h.Redis(port, 30)
            always_led = set(range(replicas)) if replicas > 1 else set()

            def all_took():
                client("SET", "k", "x" * 100_000)
                statuses = group.statuses()
                led = {n for n, s in statuses.items() if s and s["role"] == "leader"}
                always_led.intersection_update(led)  # a busy machine may change the leader
                return all(statuses[n] and statuses[n]["checkpoint"]["taken"] > 0
                           for n in range(replicas) if replicas == 1 or n not in led) and statuses
            said = h.wait_until(all_took, 60, f"{what}: checkpoints of all followers")
            client.close()
            scenario.check(all(not said[n]["checkpoint"]["taken"] for n in always_led),
                           f"{what}: by followers only",
                           repr({n: s["checkpoint"] for n, s in said.items()}))
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port, container=False) as group:
        text = control(group, "status", group.name)[1]
        scenario.check("checkpoint: none are taken: the server runs without a container" in text,
                       "status reports why there are none", text)


def lost_early(scenario):
    """A replica that is lost before the first checkpoint does not wait for one, and one is
    taken."""
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        follower = (group.leader() + 1) % 3
        said = recover(group, follower)
        scenario.check(said["checkpoint"]["restored_at"] == 0,
                       "lost early: it ran all inputs", repr(said["checkpoint"]))
        h.wait_until(lambda: any(s and s["checkpoint"]["taken"] for s in group.statuses().values()),
                     60, "lost early: a checkpoint for the next one")
        check_equal(scenario, group, "lost early")


STAT_SERVER = """
import os, socket, sys
own = '/var/tmp/crane-stat-own'
with open(own, 'w') as f: f.write('mine')
kept = open(own + '-gone', 'w'); os.unlink(own + '-gone')
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(8)
while True:
    c, _ = s.accept()
    c.recv(100)
    all = [os.stat(p) for p in ('/etc/passwd', own, '/run', '/dev/shm')] + [os.fstat(kept.fileno())]
    c.sendall(repr([(t.st_ino, t.st_dev, t.st_mtime_ns) for t in all]).encode())
    c.close()
"""


def same_names(scenario):
    """The inode numbers and times that the server has seen are the same after a return."""
    port = h.free_port()
    program = ["/usr/bin/python3", "-c", STAT_SERVER, str(port)]
    with h.Group(scenario, program, port=port) as group:
        before = h.http(port, b"?", 10)
        follower = (group.leader() + 1) % 3
        checkpoint(group, follower)
        recover(group, follower)
        lead(group, follower)
        after = h.wait_until(lambda: asked(port), 20, "the returned replica answers")
        scenario.check(before == after, "files have the names and times they had",
                       f"{before!r} {after!r}")
        check_equal(scenario, group, "names")


def asked(port):
    with contextlib.suppress(OSError):
        return h.http(port, b"?", 10)


def kinds():
    found = []
    for name in STORIES:
        found += importlib.import_module(f"server_{name}").KINDS
    return found


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    drill(scenario, counting(scenario))
    same_names(scenario)
    by_themselves(scenario)
    lost_early(scenario)
    beside_another(scenario)
    h.need("apache2")
    pages(scenario)
    chosen = os.environ.get("CRANE_KIND", "")
    for kind in kinds():
        named = chosen in kind.name if chosen else scenario.full or kind.name in QUICK
        if not named:
            continue
        h.need(*kind.programs)
        one_kind(scenario, kind, 20 if scenario.full else 3)


if __name__ == "__main__":
    h.run_scenario("checkpoints", body)
