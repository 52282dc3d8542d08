#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a replica recovers, as status reports it: the same processes, a new server on the same files,
or a replay of all inputs."""
import contextlib
import json
import signal
import threading
import time

import _harness as h
from checkpoints import check_equal, recover, control, lead

# CRIU refuses it because of its message queue. Its number is in memory, and in its file after an
# orderly end.
SERVER = """
import ctypes, json, os, signal, socket, sys, time
ctypes.CDLL(None).mq_open(b'/crane-tiers', os.O_CREAT | os.O_RDWR, 0o600, None)
own = '/var/tmp/crane-tiers-number'
number = int(open(own).read()) if os.path.exists(own) else 0
born = (os.getpid(), os.urandom(4).hex(), time.time(),
        os.stat(own).st_mtime if number else 0, os.stat('/var/tmp').st_mtime)
def end(*_): raise SystemExit(0)
signal.signal(signal.SIGTERM, end)
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(8)
try:
    while True:
        c, _ = s.accept()
        if c.recv(100): number += 1
        c.sendall(json.dumps((number, born)).encode())
        c.close()
finally:
    with open(own, 'w') as f: f.write(str(number))
"""


def asked(port):
    """Returns (number, what the server saw at its start), or None."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(h.http(port, b"?", 10))
    return None


def ask(port):
    return h.wait_until(lambda: asked(port), 30, "the server answers")


def recovery(group, number):
    return group.status(number)["recovery"]


def said(group):
    return control(group, "status", group.name)[1]


def not_allowed(scenario):
    """CRIU refuses the server, and no other tier is allowed: a lost replica replays all inputs."""
    port = h.free_port()
    with h.Group(scenario, ["/usr/bin/python3", "-c", SERVER, str(port)], port=port) as group:
        for i in range(5):
            scenario.check(ask(port)[0] == i + 1, f"replay: answer {i + 1}")
        text = said(group)
        scenario.check("recovery: replay, all inputs again: no checkpoint was taken yet" in text,
                       "replay: before any checkpoint was tried", text)
        follower = (group.leader() + 1) % 3
        status, text = control(group, "checkpoint", "now", group.name, "--replica", str(follower))
        scenario.check(status == 5 and "POSIX message queue" in text,
                       "replay: refused, and the queue is named",
                       f"{status}: {text}")
        text = said(group)
        scenario.check("recovery: replay, all inputs again: a file is on no mount of the "
                       "server, like a POSIX message queue" in text,
                       "replay: the tier and its reason", text)
        status, text = control(group, "checkpoint", "now", group.name, "--tier", "restart")
        scenario.check(status == 5 and "--restart-checkpoints" in text,
                       "replay: restarts are refused",
                       f"{status}: {text}")
        back = recover(group, follower)
        scenario.check(back["recovery"]["came_back_by"] == "replay"
                       and back["checkpoint"]["restored_at"] == 0, "replay: it replayed all inputs",
                       json.dumps(back["recovery"]))
        text = said(group)
        scenario.check(f"replica {follower} recovered by running all inputs again" in text,
                       "replay: status reports which replica recovered", text)
        check_equal(scenario, group, "replay")
        lead(group, follower)
        scenario.check(ask(port)[0] == 6, "replay: the recovered replica leads, with all data")
        check_equal(scenario, group, "replay: with it as leader")


def restart(group):
    """Ends and restarts the server of all replicas; returns the entry of the checkpoint, which each
    of them has then."""
    before = max(s["checkpoint"]["last"] for s in group.statuses().values() if s)
    status, text = control(group, "checkpoint", "now", group.name, "--tier", "restart")
    if status != 0:
        raise h.Failure(f"crane-ctl checkpoint now --tier restart: {status}: {text}")

    def entry():
        last = {s["checkpoint"]["last"] if s else 0 for s in group.statuses().values()}
        return len(last) == 1 and max(last) > before and max(last)
    return h.wait_until(entry, 60, "all replicas publish a later checkpoint at the same entry")


def allowed(scenario):
    """CRIU refuses the server: it is ended, and restarts from its files, in the same way on all
    replicas."""
    port = h.free_port()
    with h.Group(scenario, ["/usr/bin/python3", "-c", SERVER, str(port)], port=port,
                 options=["--restart-checkpoints"]) as group:
        born = [ask(port)[1] for _ in range(5)][-1]
        entry = restart(group)
        number, again = ask(port)
        scenario.check(number == 6, "restart: its data in memory was in its files", repr(number))
        scenario.check(again[0] == born[0] and again[1] != born[1] and again[2] > born[2],
                       "restart: same pids, other random numbers, time continues",
                       f"{born} {again}")
        scenario.check(abs(again[2] - time.time()) < 600, "restart: its clock is right",
                       repr(again))
        text = said(group)
        scenario.check(f"recovery: restart, a new server on the files as at entry {entry}" in text,
                       "restart: the tier", text)
        check_equal(scenario, group, "restart")
        follower = (group.leader() + 1) % 3
        back = recover(group, follower)
        scenario.check(back["recovery"]["came_back_by"] == "restart"
                       and back["checkpoint"]["restored_at"] == entry,
                       "restart: it recovered on its files", json.dumps(back["recovery"]))
        text = said(group)
        scenario.check(f"replica {follower} recovered from the checkpoint at entry {entry}, with a "
                       "new server on its files" in text,
                       "restart: status reports which replica recovered",
                       text)
        check_equal(scenario, group, "restart: after the return")
        lead(group, follower)
        scenario.check(ask(port) == [7, again],
                       "restart: the recovered replica leads, its server was "
                       "started like the others'", repr(again))
        entry = restart(group)
        number, again = ask(port)
        scenario.check(number == 8, "restart: again, with it as leader")
        scenario.check(abs(again[2] - time.time()) < 600, "restart: its clock is right, too",
                       repr(again))
        check_equal(scenario, group, "restart: again")


def by_the_clock(scenario):
    """If CRIU refuses and clients sent requests, it restarts at the --restart-every interval."""
    port = h.free_port()
    with h.Group(scenario, ["/usr/bin/python3", "-c", SERVER, str(port)], port=port,
                 options=["--restart-checkpoints", "--restart-every", "1",
                          "--checkpoint-every", "1"]) as group:
        def restarted():
            ask(port)
            return all(s and s["checkpoint"]["last"] and s["recovery"]["tier"] == "restart"
                       for s in group.statuses().values())
        h.wait_until(restarted, 60, "all replicas keep the files of a restart")
        number = ask(port)[0]
        scenario.check(ask(port)[0] == number + 1, "by the clock: it continues with its number")
        check_equal(scenario, group, "by the clock")


TOLD = "the server ends, and another one takes its place"


def lose_leader_in_a_restart(group):
    """Kills the leader's node when its server is to end, and waits until it is back."""
    leader = group.leader()
    before, log = group.replica(leader)["node_pid"], group.dir / f"r{leader}/node.log"
    told, asking = log.read_text().count(TOLD), []

    def is_told():
        """Requests again while a replica refuses because it still packs the previous checkpoint."""
        if log.read_text().count(TOLD) > told:
            return True
        if not asking or not asking[-1].is_alive():
            asking.append(threading.Thread(target=control, daemon=True, args=(
                group, "checkpoint", "now", group.name, "--tier", "restart")))
            asking[-1].start()
        return False
    h.wait_until(is_told, 60, "the server is requested to end")
    group.signal_node(leader, signal.SIGKILL)
    asking[-1].join(60)

    def back():
        state, mine = group.replica(leader), group.status(leader)
        return state["node_pid"] not in (before, None) and mine and mine["server_pid"]
    h.wait_until(back, 60, "the killed leader is back")


def leader_lost(scenario):
    """The leader's node dies during a restart: the next leader finishes it."""
    port = h.free_port()
    with h.Group(scenario, ["/usr/bin/python3", "-c", SERVER, str(port)], port=port,
                 options=["--restart-checkpoints"]) as group:
        ask(port)
        restart(group)
        number, born = ask(port)
        for turn in (1, 2):
            lose_leader_in_a_restart(group)
            later, again = ask(port)
            scenario.check(later > number and again[1] != born[1],
                           f"leader lost, {turn}: another server, which has the number",
                           f"{number} {born}, {later} {again}")
            number, born = later, again
            check_equal(scenario, group, f"leader lost, {turn}")


# The points at which a node dies, in this order; checkpoint/fault_points.h documents the files that
# exist at each.
PLACES = ("restart.noted", "restart.kept", "restart.renewed", "restart.running")


def die_in_a_restart(group, number, place):
    """A replica's node is killed at a named point of the next restart; waits until it is back."""
    directory = group.dir / f"r{number}/faults"
    directory.mkdir(exist_ok=True)
    fault, before = directory / place, group.replica(number)["node_pid"]
    fault.touch()
    asking = threading.Thread(target=control, daemon=True, args=(
        group, "checkpoint", "now", group.name, "--tier", "restart"))
    asking.start()
    h.wait_until(lambda: not fault.exists(), 60, f"{place}: replica {number} dies at this point")
    asking.join(60)

    def back():
        state, statuses = group.replica(number), group.statuses()
        return state["node_pid"] not in (before, None) and statuses.get(number) \
            and statuses[number]["server_pid"] \
            and statuses[number]["applied"] >= max(s["commit"] for s in statuses.values() if s)
    h.wait_until(back, 60, f"{place}: replica {number} is back")


def killed_at_its_places(scenario):
    """A node dies at each named point of a restart, first a follower's, then the leader's: the
    group serves, with another server that has the number, and nothing is left of the broken
    restart."""
    for place in PLACES:
        port = h.free_port()
        with h.Group(scenario, ["/usr/bin/python3", "-c", SERVER, str(port)], port=port,
                     options=["--restart-checkpoints", "--test-only-faults"]) as group:
            ask(port)
            restart(group)
            number, born = ask(port)
            for who in ("follower", "leader"):
                victim = group.leader() if who == "leader" else (group.leader() + 1) % 3
                die_in_a_restart(group, victim, place)
                later, again = ask(port)
                scenario.check(later > number and again[1] != born[1],
                               f"{place}, {who}: another server, which has the number",
                               f"{number} {born}, {later} {again}")
                check_equal(scenario, group, f"{place}, {who}")
                lead(group, victim)
                scenario.check(ask(port)[1] == again,
                               f"{place}, {who}: the recovered replica leads, its "
                               "server was started like the others'", repr(again))
                number, born = ask(port)
            restart(group)
            left = [str(p) for n in range(3) for p in (group.dir / f"r{n}").glob("kept-*")]
            left += [str(p) for n in range(3) for p in (group.dir / f"r{n}/checkpoints").iterdir()
                     if p.name.startswith(".") and p.name != ".lock"]
            scenario.check(not left, f"{place}: nothing is left of the broken restart", repr(left))


def is_cut_off(client):
    try:
        return not client("PING")
    except OSError:
        return True


def redis(scenario):
    """Clients of redis reconnect; the data that it saved at its end is there."""
    port = h.free_port()
    program = ["redis-server", "--port", str(port), "--dir", "/var/tmp", "--save", "3600 1",
               "--appendonly", "no"]
    with h.Group(scenario, program, port=port, options=["--restart-checkpoints"]) as group:
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        client = h.Redis(port, 20)
        for i in range(50):
            client("INCR", "kept")
        entry = restart(group)
        scenario.check(is_cut_off(client), "redis: its clients are disconnected")
        client.close()
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers again")
        client = h.Redis(port, 20)
        scenario.check(client("INCR", "kept") == 51, "redis: the saved data is there")
        follower = (group.leader() + 1) % 3
        back = recover(group, follower)
        scenario.check(back["checkpoint"]["restored_at"] == entry, "redis: it recovered from there",
                       json.dumps(back["checkpoint"]))
        scenario.check(client("INCR", "kept") == 52, "redis: its client did not notice")
        check_equal(scenario, group, "redis: after the return")
        client.close()
        lead(group, follower)
        h.wait_until(lambda: h.redis_answers(port), 30,
                     "redis answers when the returned replica leads")
        client = h.Redis(port, 20)
        scenario.check(client("INCR", "kept") == 53, "redis: the recovered replica leads")
        client.close()
        check_equal(scenario, group, "redis: with it as leader")


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    not_allowed(scenario)
    allowed(scenario)
    by_the_clock(scenario)
    leader_lost(scenario)
    killed_at_its_places(scenario)
    h.need("redis-server")
    redis(scenario)


if __name__ == "__main__":
    h.run_scenario("tiers", body)
