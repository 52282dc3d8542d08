#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas are replaced, drained and rolled back under a counting load (redis INCR).

First the log's ring is overrun, so that no replica can begin without a checkpoint. All three
replicas are replaced one after another, using one spare place. Then a replica that was stopped
until its entries had left the ring recovers automatically. Then the operator's commands, including
wrong uses.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess

import _harness as h
from checkpoints import check_equal, control, lead, listed

RING_MB = 16
VALUE = 400_000   # bytes; a payload is at most a sixteenth of a ring


def overrun(group, laps=1.3):
    """Writes so much through the log that the ring holds no earlier entries."""
    client = h.Redis(group.port, 20)
    before = group.status(group.leader())["last"]
    for i in range(int(laps * RING_MB * 1_000_000 / VALUE)):
        client("SET", f"big:{i % 4}", "x" * VALUE)
    client.close()
    return before


def run(scenario, group, what, *words, status=0, says=()):
    got, text = control(group, *words)
    scenario.check(got == status and all(s in text for s in says), what, f"{got}: {text}")
    return text


def roles(group):
    status = group.status(group.leader())
    return {m["replica"]: m["member"] for m in status["members"]} if status else None


def replace_all(scenario, group, load):
    """0 by 3, 1 by 0, 2 by 1: a place is reused when its replica has left."""
    begin = overrun(group)
    first = {r["node_pid"] for r in group.state()["replicas"]} - {None}
    first |= {r["server_pid"] for r in group.state()["replicas"]} - {None}
    for old, new in ((0, 3), (1, 0), (2, 1)):
        text = run(scenario, group, f"replica {new} replaces replica {old}", "member", "replace",
                   str(old), str(new), group.name,
                   says=[f"replica {new} has replaced replica {old}"])
        at = group.status(new)["checkpoint"]["restored_at"]
        scenario.check(at > begin, f"replica {new} began at a checkpoint", f"{at}: {text}")
        load.progress()
        overrun(group)
    scenario.check(roles(group) == {0: "voter", 1: "voter", 3: "voter"}, "three voters",
                   repr(roles(group)))
    h.wait_until(lambda: not any(h.alive(pid) for pid in first), 20, "the old processes are gone")
    scenario.check(True, "the old nodes and servers are gone")


def lag(scenario, group, load, number):
    """A follower is paused until the entries that it needs have left the ring."""
    before = group.replica(number)["node_pid"]
    group.signal_node(number, signal.SIGSTOP)
    overrun(group, 4)   # it still has what was written to it before it was given up
    load.progress()
    group.signal_node(number, signal.SIGCONT)

    def is_back():
        state = group.replica(number)
        status = group.status(number) if state["node_pid"] not in (before, None) else None
        return status and status["server_pid"] and status["checkpoint"]["restored_at"] > 0
    h.wait_until(is_back, 30, f"replica {number} recovers automatically")
    log = group.log.read_text(errors="replace")
    scenario.check("have left the logs of the others" in log, "crane-run reports why", log[-800:])


def drain(scenario, group, load, number):
    lead(group, number)
    who = str(number)
    pids = [group.replica(number)[p] for p in ("node_pid", "server_pid")]
    run(scenario, group, "the leader is drained", "replica", "drain", who, group.name,
        says=["the lead is handed over", f"replica {who} is drained"])
    scenario.check(not any(h.alive(p) for p in pids), "its node and server have ended")
    run(scenario, group, "a drained replica can be drained again", "replica", "drain", who,
        group.name)
    text = run(scenario, group, "status shows the drained replica", "status", group.name, status=1,
               says=["drained"])
    scenario.check("does not answer" not in text, "it is not reported as missing", text)
    other = next(n for n in group.live() if n != group.leader())
    run(scenario, group, "a replica that is needed is not drained", "replica", "drain", str(other),
        group.name,
        status=5, says=[f"replica {other} is needed", ";"])
    asked_again(scenario, group, number)
    overrun(group)
    load.progress()
    run(scenario, group, "it is resumed", "replica", "resume", who, group.name,
        says=[f"replica {who} is back, from the checkpoint at entry"])
    run(scenario, group, "a running replica needs no resume", "replica", "resume", who, group.name,
        says=["runs"])
    load.progress()


def asked_again(scenario, group, number):
    """crane-ctl repeats its request while a node is busy: the node is a fake leader's, with the
    status of the real one, in a separate directory."""
    leader = group.leader()
    status = json.dumps(group.status(leader)).encode()
    home = scenario.work / "asked" / group.name
    for n in (leader, number):
        (home / f"r{n}").mkdir(parents=True)
    (home / f"r{number}" / "drained").touch()
    (home / "state.json").touch()
    answers = [b'{"ok":false,"error":"busy","message":"not now"}'] * 3
    answers += [b'{"ok":false,"error":"failed","message":"never"}']
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as node:
        node.bind(str(home / f"r{leader}" / "control.sock"))
        node.listen(8)
        node.settimeout(20)
        words = [str(scenario.out / "crane-ctl"), "--dir", str(home.parent), "replica", "resume",
                 str(number), group.name]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as asking:
            while answers and asking.poll() is None:
                asker, _ = node.accept()
                with asker:
                    asked = json.loads(asker.recv(4096))["do"]
                    asker.send(answers.pop(0) if asked == "bring_back" else status)
            text = asking.communicate(timeout=20)[0]
    scenario.check(asking.returncode == 5 and not answers and "never" in text,
                   "a busy node gets the request again", f"{asking.returncode}: {text}")


def restore(scenario, group, load, number):
    """Rolled back to a named checkpoint other than the newest; then replaced in its own place."""
    who = str(number)
    for _ in range(2):
        run(scenario, group, "a checkpoint", "checkpoint", "now", group.name)
        load.progress()
    kept = sorted({(c["index"], c["name"]) for c in listed(group)})
    index, name = kept[-2]
    run(scenario, group, f"rolled back to {name}", "restore", who, group.name, name,
        says=[f"replica {who} is back, from the checkpoint at entry {index}"])
    load.progress()
    run(scenario, group, "restored from the newest", "restore", who, group.name,
        says=[f"replica {who} is back, from the checkpoint at entry"])
    at = group.status(number)["checkpoint"]["restored_at"]
    scenario.check(at >= kept[-1][0], "the newest checkpoint is newer", f"{at} {kept}")
    before = {m["replica"]: m["incarnation"] for m in group.status(group.leader())["members"]}
    run(scenario, group, "replaced in its own place", "replica", "replace", who, group.name,
        says=[f"replica {who} is back, from the checkpoint at entry"])
    after = {m["replica"]: m["incarnation"] for m in group.status(group.leader())["members"]}
    scenario.check(before[number] != after[number] and roles(group)[number] == "voter",
                   "it is another incarnation, and votes", f"{before} {after}")
    load.progress()
    return name


def wrong_uses(scenario, group, name):
    """Returns (words, exit status, message)"""
    g = group.name
    spare = next(n for n in range(4) if n not in roles(group))
    member = group.leader()
    damaged = next(c for c in listed(group) if c["name"] == name)
    rows = [
        (["replica", "drain", "nine", g], 100, "--help"),
        (["replica", "drain"], 100, "--help"),
        (["replica"], 100, "--help"),
        (["replica", "drain", "0", "no-such-group"], 3, "no such group"),
        (["replica", "drain", str(spare), g], 5, "is not a member"),
        (["replica", "resume", str(spare), g], 5, "is not a member"),
        (["replica", "replace", "9", g], 5, "is not a member"),
        (["restore", str(spare), g], 5, "is not a member"),
        (["restore", str(member), g, "nonsense"], 100, "not a checkpoint's name"),
        (["restore", str(member), g, "1.999999"], 3, "no such checkpoint"),
        (["restore", "0", "no-such-group"], 3, "no such group"),
        (["member", "replace", "0", "0", g], 100, "replica replace 0"),
        (["member", "replace", str(member), "7", g], 5, "no slot"),
        (["member", "replace", "7", str(spare), g], 5, "is not a member"),
        (["member", "add", str(member), g], 5, "the replica is already a member"),
    ]
    for words, status, says in rows:
        run(scenario, group, f"crane-ctl {' '.join(w for w in words if w != g)}: {status}", *words,
            status=status, says=[says])
    for c in (c for c in listed(group) if c["name"] == name):
        os.truncate(pathlib.Path(c["path"]) / "images.pack", 100)
    run(scenario, group, "a damaged checkpoint is refused before anything ends", "restore",
        str(damaged["replica"]), g, name, status=5, says=["damaged", "images.pack"])


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--spares", "1", "--ring-mb", str(RING_MB)]) as group:
        with h.Load(port) as load:
            replace_all(scenario, group, load)
            follower = next(n for n in group.live() if n != group.leader())
            lag(scenario, group, load, follower)
            drain(scenario, group, load, follower)
            name = restore(scenario, group, load,
                           next(n for n in group.live() if n != group.leader()))
            wrong_uses(scenario, group, name)
            load.progress()
            load.stop()
            problems = load.problems()
            scenario.check(not problems, f"no acknowledged increment of {load.answers()} is lost",
                           "; ".join(problems[:5]))
        check_equal(scenario, group, "replaced")


if __name__ == "__main__":
    h.run_scenario("replaced", body)
