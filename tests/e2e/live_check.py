#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Live checking: equal replicas are verified while they run; one whose output has a wrong byte
is named with connection and bytes, stops with its own status, and the others go on. Also the
leader."""
import re
import subprocess

import _harness as h

DIVERGED = 79   # a node's exit status


def load(port, requests):
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", str(requests), "-c", "8", "-q",
                           "-t", "set,lpush,mset", "-d", "100"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode == 0 and "rror" not in done.stdout, done.stdout


def all_verified(group, numbers):
    """True once each has verified something behind all inputs, and nobody differed."""
    said = group.statuses(numbers)
    return all(s and s["verified"]["index"] > 100 and s["verified"]["verdict"] == "equal"
               and not s["verified"]["alarm"] for s in said.values()) and said


def equal_replicas(story):
    port = h.free_port()
    with h.Group(story, h.redis_program(port), port=port) as group:
        good, text = load(port, 2000)
        story.check(good, "redis-benchmark, three equal replicas", text)
        said = h.wait_until(lambda: all_verified(group, range(3)), 30, "all replicas are verified")
        story.say(f"verified: { {n: s['verified'] for n, s in said.items()} }")
        done = subprocess.run([str(story.out / "crane-ctl"), "--dir", str(group.home), "status",
                               group.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=20)
        story.check("verified: log index " in done.stdout and "alarm" not in done.stdout,
                    "crane-ctl status shows it", done.stdout)

        def hashes():
            return group.status(group.leader())["entries"]["hash"]
        h.wait_until(lambda: group.status(0)["verified"]["age_ms"] > 2500, 30, "two quiet seconds")
        before = hashes()
        h.wait_until(lambda: group.status(0)["verified"]["age_ms"] > 5000, 30, "some more")
        story.check(hashes() == before, "an idle group checks nothing more", str(before))


def make_leader(story, group, number):
    def asked():
        done = subprocess.run([str(story.out / "crane-ctl"), "--dir", str(group.home), "leader",
                               "transfer", group.name, "--to", str(number)], timeout=20,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0
    h.wait_until(asked, 30, f"replica {number} may lead")
    h.wait_until(lambda: group.leader() == number and h.redis_answers(group.port), 30,
                 f"replica {number} leads")


def one_wrong(story, leads):
    """A replica with a flipped byte; `leads`: the leader itself."""
    port = h.free_port()
    wrong = 0 if leads else 2
    with h.Group(story, h.redis_program(port), port=port,
                 options=["--test-only-flip", str(wrong)]) as group:
        what = "the leader" if leads else "a follower"
        if (group.leader() == wrong) != leads:
            make_leader(story, group, wrong if leads else 0)
        load(port, 2000)   # clients of a leader that is fenced are reset
        others = [n for n in range(3) if n != wrong]
        h.wait_until(lambda: wrong not in group.live(), 40, f"{what} with a wrong byte is fenced")
        log = h.tail(group.dir / f"r{wrong}" / "node.log", 40)
        story.check(f"leaves with status {DIVERGED}" in log,
                    f"{what}: status {DIVERGED}", log)
        told = h.tail(group.dir / f"r{others[0]}" / "node.log", 40)
        story.check(f"replica {wrong} diverged from the majority" in told, "the others name it",
                    told)
        # Whoever did not propose the HASH knows what differs: its own evidence and the leader's.
        named = re.search(r"different: connection \d+, output bytes \d+ to \d+", log + told)
        story.check(named, "connection and bytes are named", log + told)
        story.say(named.group(0) if named else "")
        h.wait_until(lambda: h.redis_answers(port), 30, "the others serve")
        good, text = load(port, 500)
        story.check(good, f"{what} is gone, the group goes on", text)


def body(story):
    h.need("redis-server", "redis-benchmark")
    equal_replicas(story)
    one_wrong(story, leads=False)
    one_wrong(story, leads=True)


h.tell("live_check", body)
