#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Live checking: equal replicas are verified while they run. A replica whose output has a wrong
byte is named with connection and bytes and stops with its own status, and the others continue; also
if it is the leader. If schedules differ, the first different turn is named, with thread, operation
and caller. After an alarm that no majority settles, later entries are compared again."""
import pathlib
import re
import shutil
import socket
import subprocess

import _harness as h

DIVERGED = 79   # a node's exit status


def load(port, requests):
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", str(requests), "-c", "8", "-q",
                           "-t", "set,lpush,mset", "-d", "100"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode == 0 and "rror" not in done.stdout, done.stdout


def all_verified(group, numbers):
    """True once each replica has verified something after all inputs, and none differed."""
    statuses = group.statuses(numbers)
    return all(s and s["verified"]["index"] > 100 and s["verified"]["verdict"] == "equal"
               and not s["verified"]["alarm"] for s in statuses.values()) and statuses


def equal_replicas(scenario):
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        good, text = load(port, 2000)
        scenario.check(good, "redis-benchmark, three equal replicas", text)
        said = h.wait_until(lambda: all_verified(group, range(3)), 30, "all replicas are verified")
        scenario.say(f"verified: { {n: s['verified'] for n, s in said.items()} }")
        done = subprocess.run([str(scenario.out / "crane-ctl"), "--dir", str(group.home), "status",
                               group.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=20)
        scenario.check("verified: log index " in done.stdout and "alarm" not in done.stdout,
                       "crane-ctl status reports what is verified", done.stdout)

        def hashes():
            return group.status(group.leader())["entries"]["hash"]
        h.wait_until(lambda: group.status(0)["verified"]["age_ms"] > 2500, 30, "two quiet seconds")
        before = hashes()
        h.wait_until(lambda: group.status(0)["verified"]["age_ms"] > 5000, 30, "some more")
        scenario.check(hashes() == before, "an idle group sends no more checks", str(before))


def make_leader(scenario, group, number, answers=h.redis_answers):
    def asked():
        done = subprocess.run([str(scenario.out / "crane-ctl"), "--dir", str(group.home), "leader",
                               "transfer", group.name, "--to", str(number)], timeout=20,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0
    h.wait_until(asked, 30, f"replica {number} may lead")
    h.wait_until(lambda: group.leader() == number and answers(group.port), 30,
                 f"replica {number} leads")


def one_wrong(scenario, leads):
    """A replica with a flipped byte; `leads`: the leader itself."""
    port = h.free_port()
    wrong = 0 if leads else 2
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--test-only-flip", str(wrong)]) as group:
        what = "the leader" if leads else "a follower"
        if (group.leader() == wrong) != leads:
            make_leader(scenario, group, wrong if leads else 0)
        load(port, 2000)   # clients of a leader that is fenced are reset
        others = [n for n in range(3) if n != wrong]
        h.wait_until(lambda: wrong not in group.live(), 40, f"{what} with a wrong byte is fenced")
        log = h.tail(group.dir / f"r{wrong}" / "node.log", 40)
        scenario.check(f"leaves with status {DIVERGED}" in log,
                       f"{what}: status {DIVERGED}", log)
        tail = h.tail(group.dir / f"r{others[0]}" / "node.log", 40)
        scenario.check(f"replica {wrong} diverged from the majority" in tail, "the others name it",
                       tail)
        # A replica that did not propose the HASH knows what differs: it has its own and the
        # leader's evidence.
        named = re.search(r"different: connection \d+, output bytes \d+ to \d+", log + tail)
        scenario.check(named, "connection and bytes are named", log + tail)
        scenario.say(named.group(0) if named else "")
        # The byte was changed without the server's knowledge.
        scenario.check("no turn is different" in log + tail, "no turn is blamed", log + tail)
        h.wait_until(lambda: h.redis_answers(port), 30, "the others serve")
        good, text = load(port, 500)
        scenario.check(good, f"{what} is gone, the group continues", text)


def ask(port, what):
    with socket.create_connection(("127.0.0.1", port), 20) as s, s.makefile("rwb") as f:
        f.write(what + b"\n")
        f.flush()
        return f.readline()


def first_turn(scenario):
    """Schedules that differ, with equal outputs: the message names the first different turn."""
    if "rdrand" not in pathlib.Path("/proc/cpuinfo").read_text():
        scenario.say("no rdrand on this machine: no natural difference between replicas")
        return
    port = h.free_port()
    shutil.copy(scenario.out / "e2e/racy_server", scenario.work)   # where every container sees it
    program = [str(scenario.work / "racy_server"), str(port), str(scenario.work)]
    with h.Group(scenario, program, port=port) as group:
        for _ in range(15):  # one throw in four is equal on all three; otherwise two are a majority
            before = max(s["last"] for s in group.statuses().values() if s)
            ask(port, b"dice")
            h.wait_until(lambda at=before: group.alarm() or group.verified(at), 30,
                         "a verdict about the dice")
            if group.alarm():
                break
        h.wait_until(lambda: len(group.live()) == 2, 30, "one of two kinds of replicas is fenced")
        logs = {n: h.tail(group.dir / f"r{n}" / "node.log", 60) for n in range(3)}
        told = [(n, re.search(r"between log index \d+ and (\d+); different: the schedule at log "
                              r"index \d+ .*; first different turn: (\d+), (.*) on this replica, "
                              r"(.*) on replica (\d)", log)) for n, log in logs.items()]
        told = [(n, found) for n, found in told if found]
        if not scenario.check(told, "the first different turn is named", "\n".join(logs.values())):
            return
        number, (at, turn, here, there, other) = told[0][0], told[0][1].groups()
        scenario.say(f"turn {turn}, replica {number}: {here}; replica {other}: {there}")
        kinds = [next((k for k in ("sched_yield", "pthread_mutex_lock") if f": {k} = " in side), "")
                 for side in (here, there)]
        scenario.check(all(kinds) and kinds[0] != kinds[1], "thread and operation of both sides",
                       f"{here}; {there}")
        scenario.check(re.search(r"called from /\S+/racy_server\+0x[0-9a-f]+ \(throw_dice\+0x",
                                 here),
                       "the calling function is named", here)
        kept = [str(group.dir / f"r{n}" / f"diverged-{at}") for n in (number, other)]
        done = subprocess.run([str(scenario.out / "crane-diff"), "--schedule", *kept], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        scenario.check(done.returncode == 1 and f"first different turn: {turn}\n" in done.stdout,
                       "crane-diff finds the same turn in the kept files", done.stdout)


def after_an_alarm(scenario):
    """No two replicas answer alike: an alarm without majority. Later entries are compared again,
    and a wrong byte in them is found."""
    if "rdrand" not in pathlib.Path("/proc/cpuinfo").read_text():
        scenario.say("no rdrand on this machine: no natural difference between replicas")
        return
    port = h.free_port()
    shutil.copy(scenario.out / "e2e/racy_server", scenario.work)
    program = [str(scenario.work / "racy_server"), str(port), str(scenario.work)]
    wrong = 2
    with h.Group(scenario, program, port=port, options=["--test-only-flip", str(wrong)]) as group:
        if group.leader() == wrong:
            make_leader(scenario, group, 0, lambda at: ask(at, b"bytes"))
        ask(port, b"number")
        h.wait_until(group.alarm, 30, "the difference is found")
        scenario.check(len(group.live()) == 3, "no majority: no replica is fenced",
                       repr(group.brief()))

        def fresh():
            status = group.status(group.leader())
            return status and re.search(r"compared again from log index (\d+)",
                                        status["verified"]["alarm"])
        base = int(h.wait_until(fresh, 30, "later entries are compared again")[1])
        ask(port, b"bytes")
        h.wait_until(lambda: group.verified(base), 30, "later entries are verified")
        verified = group.status(group.leader())["verified"]
        scenario.check(verified["verdict"] == "equal" and "equal up to" in verified["alarm"]
                       and "none has a majority" in verified["alarm"],
                       "status reports the alarm and what is verified since", repr(verified))
        scenario.say(verified["alarm"])
        for _ in range(8):
            ask(port, b"bytes")
        h.wait_until(lambda: wrong not in group.live(), 40, "the wrong byte's replica is fenced")
        log = h.tail(group.dir / f"r{wrong}" / "node.log", 40)
        scenario.check(f"leaves with status {DIVERGED}" in log, f"its status is {DIVERGED}", log)
        scenario.check(re.search(r"replica 2 diverged from the majority .*different: "
                                 r"connection \d+",
                                 log), "the message names the place", log)
        scenario.check(ask(port, b"bytes").startswith(b"xxx"), "the group continues")


def body(scenario):
    h.need("redis-server", "redis-benchmark")
    equal_replicas(scenario)
    one_wrong(scenario, leads=False)
    one_wrong(scenario, leads=True)
    first_turn(scenario)
    after_an_alarm(scenario)


h.run_scenario("live_check", body)
