#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crane is upgraded under load: its files are replaced, then every replica is drained and resumed.

The builds differ in bytes and commit, and have equal versions. On one host no client loses its
connection; then crane-run is replaced as well, and takes over the group.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import _builds as b
import _harness as h
from checkpoints import check_equal, control, lead, recover


class Placed(h.Group):
    """A group of programs from a separate directory."""

    def __init__(self, scenario, place, *args, **options):
        super().__init__(scenario, *args, **options)
        self.place = place

    def command(self):
        words = super().command()
        return [str(self.place / "crane-run")] + words[1:]


def run(scenario, group, what, *words, status=0, says=()):
    got, text = control(group, *words)
    scenario.check(got == status and all(s in text for s in says), what, f"{got}: {text}")
    return text


def builds(group):
    """{replica: (commit, digest of its server's libcrane.so)}"""
    found = {n: s["build"] for n, s in group.statuses().items() if s}
    return {n: (one["commit"], one["libcrane"]) for n, one in found.items()}


def roll(scenario, group, load, commit):
    """Every replica in turn, the leader last, because it hands over."""
    order = sorted(range(3), key=lambda n: n == group.leader())
    for number in order:
        run(scenario, group, f"replica {number} is drained", "replica", "drain", str(number),
            group.name, says=[f"replica {number} is drained"])
        run(scenario, group, f"replica {number} is resumed", "replica", "resume", str(number),
            group.name, says=[f"replica {number} is back"])
        h.wait_until(lambda n=number: builds(group).get(n, ("",))[0] == commit, 20,
                     f"replica {number} runs the new build")
        load.progress()
        if number == order[0]:   # both directions: a new leader with old followers
            lead(group, number)
            load.progress()
            text = run(scenario, group, "versions name both builds", "versions", group.name,
                       says=[commit, "replica by replica"])
            scenario.check(text.count(commit) == 2, "one replica, and crane-ctl itself, are new",
                           text)
        scenario.check(not group.alarm(), f"live checking agrees, with replica {number} upgraded",
                       group.brief())


def replace_crane_run(scenario, group, load):
    group.remember(group.state())
    group.process.send_signal(signal.SIGKILL)
    group.process.wait(10)
    group.start()
    load.progress()


def servers_take_the_library(scenario, group, first):
    """A server restored from a checkpoint has that checkpoint's libcrane.so; a restart ends
    this."""
    run(scenario, group, "the server of every replica is restarted", "checkpoint", "now",
        group.name, "--tier", "restart")
    h.wait_until(lambda: h.redis_answers(group.port), 30, "redis answers again")
    h.wait_until(lambda: len(builds(group)) == 3 and {one[1] for one in builds(group).values()}
                 .isdisjoint({first}), 20, "every server has the new libcrane.so")
    scenario.check(len(set(builds(group).values())) == 1, "all replicas have the new libcrane.so",
                   repr(builds(group)))
    check_equal(scenario, group, "with the new libcrane.so")


def one_host(scenario):
    port = h.free_port()
    place = b.installed(scenario, "place")
    program = ["redis-server", "--port", str(port), "--dir", "/var/tmp", "--save", "3600 1",
               "--appendonly", "no"]
    with Placed(scenario, place, program, port=port, options=["--restart-checkpoints"]) as group:
        first = builds(group)[0]
        # A client that gives up early would count as a lost connection.
        with h.Load(port, timeout=10, fresh_timeout=10) as load:
            run(scenario, group, "the old build takes a checkpoint", "checkpoint", "now",
                group.name)
            commit = b.upgrade(place)
            scenario.out, before = place, scenario.out   # crane-ctl is the new one, too
            scenario.check(commit != first[0], "the builds differ", commit)
            roll(scenario, group, load, commit)
            replace_crane_run(scenario, group, load)
            load.stop()
            problems = load.problems()
            scenario.check(not problems, f"no acknowledged write of {load.answers()} is lost",
                           "; ".join(problems[:5]))
            broken = sum(c.reconnects for c in load.clients)
            scenario.check(broken == 0, "no client lost its connection", str(broken))
        check_equal(scenario, group, "upgraded")
        servers_take_the_library(scenario, group, first[1])
        scenario.out = before


def log_on_disk(scenario):
    """A stopped group continues with its log under another build."""
    port = h.free_port()
    place = b.installed(scenario, "disk")
    with Placed(scenario, place, h.redis_program(port), port=port,
                options=["--durability", "disk"]) as group:
        client = h.Redis(port, 20)
        client("SET", "kept", "7")
        client.close()
        first = builds(group)[0]
        scenario.check(group.stop() == 0, "a group with its log on disk is stopped")
        b.upgrade(place)
        group.start()
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        client = h.Redis(port, 20)
        scenario.check(client("GET", "kept") == b"7" and first not in builds(group).values(),
                       "another build replays its log", repr(builds(group)))
        client.close()


def other_versions(scenario):
    """A crane-run with other versions does not continue the group."""
    port = h.free_port()
    place = b.installed(scenario, "other")
    with Placed(scenario, place, h.redis_program(port), port=port) as group:
        group.remember(group.state())
        b.with_other_versions(place)
        group.process.send_signal(signal.SIGKILL)
        group.process.wait(10)
        group.home.chmod(0o755)
        status, text = launch(group)
        scenario.check(status == 111 and "another build of Crane started it (wire 3, log" in text
                       and "--stop" in text,
                       "other versions: refused (111), and the versions are named",
                       f"{status}: {text}")
        b.exchange(place / "crane-run", b"\0wirf\0", b"\0wire\0")
        group.start()


def launch(group):
    done = subprocess.run(group.command(), cwd="/", text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout.strip()


# --- the server's own package and configuration --------------------------------------------------

# No client must get this message: clients are admitted when a server has listened for 2 s.
LISTENS = """
import socket, sys, time
s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(8)
s.settimeout(0.5)
try:
    c, _ = s.accept(); c.sendall(b'-ERR let in too early'); time.sleep(9)
except OSError:
    sys.exit(3)
"""


def ask(group, *words):
    """An answer of the server; waits until it gives one."""
    def answered():
        client = h.Redis(group.port, 10)
        try:
            return [client(*words)]
        finally:
            client.close()
    return h.wait_until(lambda: quietly(answered), 60, f"redis answers {words}")[0]


def quietly(function):
    try:
        return function()
    except OSError:
        return None


def configuration(scenario, port, name, *lines):
    path = scenario.work / name
    path.write_text("\n".join([f"port {port}", "dir /var/tmp", "save 3600 1", *lines]) + "\n")
    path.chmod(0o644)
    return str(path)


def program(scenario, name, old=b"", new=b""):
    """Another build of redis-server."""
    path = scenario.work / name
    data = pathlib.Path(os.path.realpath(shutil.which("redis-server"))).read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new) + b"patched")
    path.chmod(0o755)
    return str(path)


def upgrade(scenario, group, load, what, *words, status=0, says=(), options=()):
    run(scenario, group, what, "upgrade", group.name, "--yes", *options, "--", *words,
        status=status, says=says)
    load.progress()
    group.remember(group.state())


def maxmemory(group):
    return ask(group, "CONFIG", "GET", "maxmemory")[1]


def lose_and_lead(scenario, group, load, what=""):
    """A replica is lost, recovers and leads; then the load ends."""
    follower = (group.leader() + 1) % 3
    recover(group, follower)
    load.progress()
    lead(group, follower)
    load.progress()
    load.stop()
    problems = load.problems()
    scenario.check(not problems, f"{what}no acknowledged write of {load.answers()} is lost",
                   "; ".join(problems[:5]))


def of_the_server(scenario):
    """A configuration and a program; then several that do not start, each for another reason."""
    port = h.free_port()
    first = configuration(scenario, port, "first.conf", "maxmemory 10mb")
    second = configuration(scenario, port, "second.conf", "maxmemory 20mb")
    broken = configuration(scenario, port, "broken.conf", "nonsense yes")
    patched = program(scenario, "redis-patched")
    unlinked = program(scenario, "redis-unlinked", b"libssl.so.3\0", b"libsxl.so.3\0")
    with h.Group(scenario, ["redis-server", first], port=port) as group:
        with h.Load(port, timeout=20) as load:
            scenario.check(maxmemory(group) == b"10485760", "before", repr(maxmemory(group)))
            upgrade(scenario, group, load, "another configuration", "redis-server", second,
                    says=["is taken, while clients continue", "upgraded: clients are let in",
                          f"upgrade of {group.name}, steps 3 and 4 of 4, the new servers start "
                          "and listen: "])
            scenario.check(maxmemory(group) == b"20971520", "it is in force")
            text = run(scenario, group, "another program", "-q", "upgrade", group.name, "--yes",
                       "--", patched, second, says=["upgraded: "])
            scenario.check("steps 3" not in text, "-q: no line says how far it is", text)
            load.progress()
            group.remember(group.state())
            scenario.check(f"executable:{patched}".encode() in ask(group, "INFO", "server"),
                           "the new program runs")
            for what, words, more, why in (
                    ("a configuration with a mistake", [patched, broken], [], "ended by itself"),
                    ("a program that lacks a library", [unlinked, second], [],
                     "could not be executed"),
                    ("a program that listens, and ends", ["/usr/bin/python3", "-c", LISTENS,
                                                          str(port)], [], "ended by itself"),
                    ("a program that never listens", ["/bin/sleep", "1000"], ["--seconds", "2"],
                     "did not listen within 2 s")):
                upgrade(scenario, group, load, f"{what}: rolled back (8)", *words, options=more,
                        status=8, says=["rolled back", why])
                scenario.check(maxmemory(group) == b"20971520" and
                               f"executable:{patched}".encode() in ask(group, "INFO", "server"),
                               f"{what}: the old server is back")
                # A replica that was late for the trial may have restarted.
                h.wait_until(lambda: len(group.live()) == 3, 60, f"{what}: three replicas")
                scenario.check(not group.alarm(), f"{what}: three replicas, no alarm",
                               group.brief())
            run(scenario, group, "no command line: means Crane itself, refused", "upgrade",
                group.name, status=5, says=["nothing has to end at once"])
            run(scenario, group, "without --yes: refused", "upgrade", group.name, "--",
                "redis-server", status=5, says=["--yes"])
            run(scenario, group, "no such program: refused", "upgrade", group.name, "--yes", "--",
                "/no/such/program", status=102, says=["/no/such/program"])
            lose_and_lead(scenario, group, load)
        check_equal(scenario, group, "upgraded server")


def leader_lost(scenario):
    """The leader's node is killed during the trial of the new server: the next leader decides."""
    port = h.free_port()
    first = configuration(scenario, port, "lost.conf", "maxmemory 10mb")
    with h.Group(scenario, ["redis-server", first], port=port) as group:
        with h.Load(port, timeout=20) as load:
            leader = group.leader()
            results = []
            words = ["upgrade", group.name, "--yes", "--seconds", "4", "--", "/bin/sleep", "1000"]
            asking = threading.Thread(target=lambda: results.append(control(group, *words)))
            asking.start()
            h.wait_until(lambda: (group.status(leader) or {}).get("upgrade", {}).get("state")
                         == "trial", 60, "the new server is on trial")
            group.signal_node(leader, signal.SIGKILL)
            asking.join(120)
            scenario.check(results and results[0][0] == 8 and "did not listen" in results[0][1],
                           "leader lost on trial: rolled back", repr(results))
            load.progress()
            h.wait_until(lambda: len(group.live()) == 3 and group.are_whole(), 60,
                         "the killed replica is back")
            load.stop()
            scenario.check(not load.problems(), "leader lost on trial: no write is lost",
                           load.problems()[:3])
        check_equal(scenario, group, "leader lost on trial")


def with_data(scenario):
    """The group's data lasts; after a stop, it is started with the new command line."""
    port = h.free_port()
    data = scenario.work / "data"
    data.mkdir(mode=0o755)
    first, second = (configuration(scenario, port, f"data{i}.conf", f"dir {data}") for i in (1, 2))
    with h.Group(scenario, ["redis-server", first], port=port,
                 options=["--data", str(data)]) as group:
        ask(group, "SET", "kept", "7")
        run(scenario, group, "a group whose data lasts", "upgrade", group.name, "--yes", "--",
            "redis-server", second, says=["upgraded: clients are let in"])
        scenario.check(ask(group, "GET", "kept") == b"7", "its data is there")
        ask(group, "SET", "later", "8")
        scenario.check(group.stop() == 0, "the group is stopped")
        group.program = ["redis-server", second]
        group.start()
        scenario.check(ask(group, "GET", "later") == b"8", "the new command line starts it")


def with_log_on_disk(scenario):
    """The log determines which server runs, whatever command started the group."""
    port = h.free_port()
    first = configuration(scenario, port, "disk1.conf", "maxmemory 10mb")
    second = configuration(scenario, port, "disk2.conf", "maxmemory 20mb")
    with h.Group(scenario, ["redis-server", first], port=port,
                 options=["--durability", "disk"]) as group:
        ask(group, "SET", "kept", "7")
        run(scenario, group, "a group whose log lasts", "upgrade", group.name, "--yes", "--",
            "redis-server", second, says=["upgraded: clients are let in"])
        ask(group, "SET", "later", "8")
        scenario.check(group.stop() == 0, "the group is stopped")
        group.start()
        scenario.check([ask(group, "GET", "kept"), ask(group, "GET", "later"), maxmemory(group)]
                       == [b"7", b"8", b"20971520"],
                       "started by the same command, it continues with the upgraded server")


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    h.need("redis-server")
    one_host(scenario)
    log_on_disk(scenario)
    other_versions(scenario)
    of_the_server(scenario)
    leader_lost(scenario)
    with_data(scenario)
    with_log_on_disk(scenario)


if __name__ == "__main__":
    h.run_scenario("upgrade", body)
