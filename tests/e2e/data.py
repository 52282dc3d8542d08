#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server's data lasts (--data): all that was acknowledged is there after an orderly stop, after
everything is killed, and after a replica's directory is lost. The machine's own directory is never
written, and later changes to it are never mixed in.

redis with its append-only file, durability memory, then disk; slapd, durability memory.
"""
import signal
import subprocess

import _data as d
import _harness as h
import _matrix as m

CLIENTS = 3
ANSWERS = 40   # per client, before a stop or a fault


def serve(last, round_, answers=ANSWERS):
    with d.Pushers(last.server, CLIENTS, round_) as pushers:
        pushers.wait(answers)
    last.acknowledged += pushers.acknowledged()


def equal_on_all(scenario, last, what):
    digests = [d.digest_of(d.left_by(last.dir, i, last.server.data)) for i in range(3)]
    scenario.check(len(set(digests)) == 1,
                   f"{last.server.name}: {what}: all replicas left equal files", str(digests))


def says(scenario, last, words, what):
    log = last.log()
    scenario.check(all(word in log for word in words), what, f"not {words} in:\n{log[-3000:]}")


def in_memory(scenario, kind):
    """Durability memory: the next start begins with the data that the servers left at an orderly
    stop."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    machines = d.digest_of(server.data)
    last = d.LastingGroup(scenario, server, disk=False)
    last.start()
    serve(last, 0)
    last.stop()
    equal_on_all(scenario, last, "after an orderly stop")
    scenario.check(d.digest_of(server.data) == machines,
                   f"{server.name}: the machine's own directory was not written")

    (server.data / "changed-later").write_text("by another program")
    d.forget(last.dir, 1)
    last.start()
    says(scenario, last, ["has changed since", "replica 1 has none", "left it at log index"],
         f"{server.name}: a change of the machine's directory, and a loss, are reported")
    last.check("stopped, one replica's directory removed, started")
    serve(last, 1)

    # One replica falls behind: the others' data is taken.
    last.group.signal_server((last.group.leader() + 1) % 3, signal.SIGKILL)
    serve(last, 2)
    last.stop()
    last.start()
    last.check("one replica was killed before the stop")
    scenario.check(all(not (d.left_by(last.dir, i, server.data)).exists() for i in range(3)),
                   f"{server.name}: the data left by the others is now the start of all")
    last.stop()
    equal_on_all(scenario, last, "after the next stop")
    left = d.left_by(last.dir, 0, server.data)
    scenario.check(not (left / "changed-later").exists(),
                   f"{server.name}: the later change of the machine's directory was not mixed in")
    leader_hangs(scenario, last)


def leader_hangs(scenario, last):
    """The leader's node is stopped when the group is: the next leader ends the servers."""
    last.start()
    serve(last, 3)
    last.group.signal_node(last.group.leader(), signal.SIGSTOP)
    last.stop()   # it kills that node as well
    scenario.check("did not end within" not in last.log(),
                   f"{last.server.name}: the next leader ended the servers", last.log()[-2000:])
    last.start()
    last.check("the leader hung when the group was stopped")
    last.stop()


def killed_in_memory(scenario, kind):
    """kill -9 of everything, durability memory: all data that the most advanced server wrote is
    there."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    last = d.LastingGroup(scenario, server, disk=False)
    last.start()
    serve(last, 0)
    last.group.settle(30)   # all servers have written all answered requests
    last.kill_everything()
    last.start()
    says(scenario, last, ["did not stop cleanly", "--durability disk"],
         f"{server.name}: possible losses are reported")
    last.check("everything killed, durability memory")
    last.stop()


def another_command(scenario, last):
    """The log was written by one command line; the way to another one is named."""
    done = subprocess.run([*last.group.command(), "--another-word"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, cwd="/")
    way = f"crane-ctl upgrade {last.group.name} -- "
    scenario.check(done.returncode == 194 and "was written by another command" in done.stdout
                   and way in done.stdout, f"{last.server.name}: another command line: status 194",
                   f"{done.returncode}: {done.stdout}")


def on_disk(scenario, kind):
    """Durability disk, one option: everything acknowledged is there after any kind of failure."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    last = d.LastingGroup(scenario, server, disk=True)
    last.start()
    serve(last, 0)
    last.stop()
    another_command(scenario, last)
    last.start()
    last.check("durability disk: stopped, started")

    with d.Pushers(server, CLIENTS, 1) as pushers:
        pushers.wait(ANSWERS)
        last.kill_everything()   # in the middle of their requests
    last.acknowledged += pushers.acknowledged()
    last.start()
    last.check("durability disk: everything killed, started")
    last.check_same_answers("everything killed, started")
    serve(last, 2)
    last.stop()

    d.forget(last.dir, 2)
    last.start()
    last.check("durability disk: one replica's directory removed, started")
    serve(last, 3)
    last.check("durability disk: it continues")
    last.stop()


class OtherRedis(d.Redis):
    name = "redis, killed"


class DiskRedis(d.Redis):
    name = "redis, disk"


def written_elsewhere(scenario):
    """A server that writes where data does not last: reported at its first file, and at the end."""
    port = h.free_port()
    program = h.redis_program(port, "--dir", "/opt", "--dbfilename", "crane-test.rdb")
    with h.Group(scenario, program, port=port) as group:
        client = h.Redis(port, 10)
        client("SET", "a", "b")
        client("SAVE")
        client.close()
        h.wait_until(lambda: "which is gone when the group ends; to keep it: --data /opt"
                     in group.log.read_text(), 10, "the first file is reported")
    log = group.log.read_text()
    scenario.check("gone with the group: 1 file" in log and "/opt" in log.split("gone with")[-1],
                   "lost files are reported at the end", log[-1500:])
    scenario.check(log.count("is gone when the group ends") == 1,
                   "the first file is reported once")


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    h.need("redis-server")
    written_elsewhere(scenario)
    in_memory(scenario, d.Redis)
    killed_in_memory(scenario, OtherRedis)
    on_disk(scenario, DiskRedis)
    try:
        h.need("slapd")
    except h.CannotRun as missing:
        return scenario.say(str(missing))
    in_memory(scenario, d.Slapd)


if __name__ == "__main__":
    h.run_scenario("data", body)
