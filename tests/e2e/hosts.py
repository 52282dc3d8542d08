#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One crane-node per replica from one group.toml, without crane-run, and crane-ctl.

The "hosts" are three addresses of this machine over the shm fabric: what a node does without
crane-run is the same on every fabric.
"""
import json
import os
import shutil
import signal
import socket

import _harness as h
from addresses import own_addresses
from _hosts import Hosts


def reset(connection):
    """Whether the connection is reset (or closed) within 20 s."""
    connection.settimeout(20)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except OSError:
        return False


def ask(address, port, text, size=None):
    """The bytes that come back: `size` bytes, or all until the other side closes after ours has."""
    with socket.create_connection((address, port), timeout=20) as s:
        s.sendall(text)
        if size is None:
            s.shutdown(socket.SHUT_WR)
        got = b""
        while size is None or len(got) < size:
            part = s.recv(65536)
            if not part:
                break
            got += part
        return got


def incr(address, port):
    answer = ask(address, port, b"INCR counter\r\n")
    return int(answer[1:]) if answer.startswith(b":") else answer


def status_is_right(scenario, group):
    code, text, _ = group.ctl("status", "--wait", "30")
    leader = group.leader()
    scenario.check(code == 0 and f"\nwell, leader {leader}" in text
                   and text.startswith(f"{group.name}: serving, 3 of 3, fault tolerant\n"),
                   "crane-ctl status: well, with the leader", f"{code}: {text}")
    code, text, _ = group.ctl("status", group.name, "-o", "json")
    answer = json.loads(text)
    roles = sorted(r["role"] for r in answer["replicas"])
    scenario.check(code == 0 and roles == ["follower", "follower", "leader"]
                   and answer["leader"] == leader and answer["fabric"] == "shm"
                   and all(r["server_pid"] and r["lag_entries"] >= 0 for r in answer["replicas"]),
                   "crane-ctl status -o json has all replicas", text)
    return leader


def placement_is_right(scenario, group, cpu):
    """The file of host 2 binds all replicas to one processor: it takes effect for its own replica
    and its server."""
    rows = json.loads(group.ctl("status", "-o", "json")[1])["replicas"]
    scenario.check([r["cpus"] for r in rows] == [None, None, str(cpu)] and
                   "CPUS" in group.ctl("status")[1],
                   "crane-ctl status reports which replica is bound", rows)
    bound = [os.sched_getaffinity(rows[2][key]) for key in ("pid", "server_pid")]
    scenario.check(bound == [{cpu}, {cpu}], "node and server of that replica are bound", bound)


def forwarding(scenario):
    port = h.free_port()
    first = min(os.sched_getaffinity(0))
    with Hosts(scenario, h.redis_program(port), port=port, record=True,
               own={2: {"replica": {"cpus": str(first)}}}) as group:
        leader = status_is_right(scenario, group)
        placement_is_right(scenario, group, first)
        # In the leader's loop, clients of its own host and of the others are alike.
        got = [incr(a, port) for a in group.addresses * 3]
        scenario.check(got == list(range(1, 10)), "clients of every host talk to one server", got)
        other = (leader + 1) % 3
        scenario.check("is passed on to " + group.addresses[leader] in group.said(other),
                       "a follower's log names the client it forwards", group.said(other)[-300:])
        blob = os.urandom(4 << 20)
        text = b"*3\r\n$3\r\nSET\r\n$4\r\nblob\r\n$%d\r\n" % len(blob) + blob + b"\r\n"
        scenario.check(ask(group.addresses[other], port, text) == b"+OK\r\n",
                       "4 MiB pass through a follower")
        whole = b"$%d\r\n" % len(blob) + blob + b"\r\n"
        scenario.check(ask(group.addresses[other], port, b"GET blob\r\n", len(whole)) == whole,
                       "the 4 MiB come back unchanged")
        held = socket.create_connection((group.addresses[other], port))
        held.sendall(b"PING\r\n")
        scenario.check(held.recv(16) == b"+PONG\r\n", "a connection is forwarded")
        code, text, error = group.ctl("leader", "transfer")
        scenario.check(code == 0, "crane-ctl leader transfer", text + error)
        following = group.leader(others_than=[leader])
        scenario.check(reset(held),
                       "the new leader resets old connections, also forwarded ones")
        held.close()
        h.wait_until(lambda: group.ctl("status")[0] == 0, 20, "all replicas follow the new leader")
        scenario.check(status_is_right(scenario, group) == following,
                       "crane-ctl knows the new leader")
        scenario.check(incr(group.addresses[leader], port) == 10,
                       "the old leader's host forwards now")
        code, text, error = group.ctl("leader", "transfer", "--to", str(leader))
        scenario.check(code == 0 and group.leader(others_than=[following]) == leader,
                       "crane-ctl leader transfer --to names the next one", text + error)
        code, text, error = group.ctl("leader", "transfer", "--to", str(following))
        scenario.check(code == 0 and group.leader(others_than=[leader]) == following,
                       "the lead is transferred back", text + error)
        code, text, _ = group.ctl("member", "list")
        scenario.check(code == 0 and text.count("voter") == 3, "crane-ctl member list", text)
        code, _, error = group.ctl("member", "promote", str(leader))
        scenario.check(code == 5 and "not a learner" in error,
                       "a change that makes no sense is refused",
                       error)
        group.settle()
        scenario.check_equal(group, "--prefix")
        lead_is_lost(scenario, group, port, following)


def lead_is_lost(scenario, group, port, leader):
    scenario.check(group.stop_one(leader) == 0, "SIGTERM ends one node with status 0")
    rest = [i for i in range(3) if i != leader]
    group.leader(others_than=[leader])
    scenario.check([incr(group.addresses[i], port) for i in rest] == [11, 12],
                   "the others continue without it")
    code, text, _ = group.ctl("status")
    scenario.check(code == 1 and "degraded" in text and "node is gone" in text,
                   "crane-ctl status: degraded", f"{code}: {text}")
    group.start(leader)
    h.wait_until(group.serves, 30, "restarted, it replays its log")
    group.settle()
    scenario.check([incr(group.addresses[i], port) for i in range(3)] == [13, 14, 15],
                   "clients of every host are served again")
    os.kill(group.nodes[rest[0]].pid, signal.SIGSTOP)
    os.kill(group.nodes[rest[1]].pid, signal.SIGSTOP)
    code, text, _ = group.ctl("status")
    scenario.check(code == 2 and "does not answer" in text, "stopped nodes: no leader, status 2",
                   f"{code}: {text}")


def refusing(scenario):
    port = h.free_port()
    with Hosts(scenario, h.redis_program(port), port=port,
               clients={"on_follower": "refuse"}) as group:
        leader = group.leader()
        scenario.check(incr(group.addresses[leader], port) == 1, "refuse: the leader's host serves")
        other = (leader + 1) % 3
        with socket.create_connection((group.addresses[other], port)) as s:
            scenario.check(reset(s), "refuse: a follower's host resets")
        h.wait_until(lambda: f"was refused: replica {leader} leads, at {group.addresses[leader]}:"
                     f"{port}" in group.said(other), 10, "the log names the leader")


def disagreeing(scenario):
    """A replica whose configuration differs from the leader's reports the difference and leaves."""
    port = h.free_port()
    group = Hosts(scenario, h.redis_program(port), port=port)
    odd = group.write("odd.toml", server={"quantum": 7, "env": {"A": "1"}})
    group.start(0)
    group.start(1)
    try:
        h.wait_until(group.serves, 60, "two of three serve")
        group.start(2, config=odd)
        scenario.check(group.wait(2) == 74 and "the server's environment differs" in group.said(2),
                       "a replica whose configuration differs refuses and names the difference",
                       group.said(2)[-400:])
        scenario.check(incr(group.addresses[0], port) == 1, "the others serve")
    finally:
        group.kill_all()


def beginning_anew(scenario):
    port = h.free_port()
    with Hosts(scenario, h.redis_program(port), port=port) as group:
        scenario.check(incr(group.addresses[0], port) == 1, "a first group counts")
        for i in range(3):
            group.stop_one(i)
        for i in range(3):
            group.start(i, "--force-new-group")
        h.wait_until(group.serves, 60, "the new group serves")
        scenario.check(incr(group.addresses[1], port) == 1, "--force-new-group restarts")


def left_in_memory(scenario):
    """All nodes were stopped and their state is removed, but the log in memory is not: it is
    replayed, unless the group is to be a new one."""
    port, between = h.free_port(), h.free_port()
    with Hosts(scenario, h.redis_program(port), port=port, fabric="tcp",
               replica=lambda i: {"port": between}) as group:
        scenario.check(incr(group.addresses[0], port) == 1, "a group counts")
        for i in range(3):
            group.stop_one(i)
        shutil.rmtree(group.state)
        for i in range(3):
            group.start(i)
        h.wait_until(group.serves, 60, "the group serves again")
        scenario.check(incr(group.addresses[2], port) == 2, "a log left in memory is replayed")
        for i in range(3):
            group.nodes[i].kill()
            group.wait(i)
            group.start(i, "--force-new-group")
        h.wait_until(group.serves, 60, "the new group serves")
        scenario.check(incr(group.addresses[1], port) == 1,
                       "--force-new-group starts with an empty log")


def replacing(scenario):
    """crane-ctl member replace, of a follower and of the leader, each by a newly started
    replica."""
    port, places = h.free_port(), 5
    with Hosts(scenario, h.redis_program(port), port=port, group={"members": 3}, started=range(3),
               addresses=[f"127.0.0.{i + 1}" for i in range(places)]) as group:
        code, _, error = group.ctl("member", "replace", "1", "1")
        scenario.check(code == 100 and "itself" in error, "no replica replaces itself", error)
        code, _, error = group.ctl("member", "replace", "4", "3")
        scenario.check(code == 5 and "not a member" in error, "only a member is replaced", error)
        counted, voters = 0, {0, 1, 2}
        for fresh, leads in ((3, False), (4, True)):
            leader = group.leader()
            old = leader if leads else min(voters - {leader})
            group.start(fresh)
            code, text, error = group.ctl("member", "replace", str(old), str(fresh))
            scenario.check(code == 0 and f"replica {fresh} has replaced replica {old}" in text,
                           f"replica {fresh} replaces "
                           f"the {'leader' if leads else 'follower'} {old}",
                           f"{code}: {text}{error}")
            scenario.check(group.wait(old) == 71, "the replaced replica's node ends with status 71")
            voters = voters - {old} | {fresh}
            answer = json.loads(group.ctl("member", "list", "-o", "json")[1])
            scenario.check({m["replica"] for m in answer["members"] if m["member"] == "voter"}
                           == voters,
                           "the others and the new replica vote", answer)
            code, text, _ = group.ctl("status")
            scenario.check(code == 0,
                           "crane-ctl status does not count the replaced replica as missing", text)
            address = group.addresses[group.leader(others_than=[old])]
            counted += 1
            scenario.check(incr(address, port) == counted, "the group continues", counted)
        code, text, _ = group.ctl("member", "replace", str(old), str(fresh))
        scenario.check(code == 0, "a completed replacement is not repeated", text)
        old = min(voters - {group.leader(others_than=sorted(set(range(5)) - voters))})
        code, text, error = group.ctl("member", "remove", str(old), group.name)
        scenario.check(code == 0 and group.wait(old) == 71, "a follower is removed",
                       f"{code}: {text}{error}")
        h.wait_until(lambda: "serving, 2 of 2: ONE MORE LOSS STOPS IT" in group.ctl("status")[1],
                     30, "two members are left")
        code, text, _ = group.ctl("status")
        scenario.check(code == 1, "crane-ctl status ends with 1: one more loss stops the group",
                       f"{code}: {text}")


def refusals(scenario):
    """Errors found before a node starts, with exit status and message."""
    group = Hosts(scenario, h.redis_program(h.free_port()))

    def node(status, words, config, number=0, lines=1):
        group.log(number).unlink(missing_ok=True)
        group.start(number, config=config)
        got = group.wait(number)
        log = group.said(number)
        scenario.check(got == status and all(w in log for w in words)
                       and log.count("\n") == lines,
                       f"status {status}: {', '.join(words)}", f"{got}: {log}")

    node(118, ["cannot read the group's file"], group.home / "none.toml")
    node(118, ["bad.toml:", "fabric", "pigeon"],
         group.write("bad.toml", group={"fabric": "pigeon"}))
    node(118, ["fence.toml:", "fence", "RDMA", "leave it out"],
         group.write("fence.toml", group={"fabric": "tcp", "fence": "reset"}))
    for key, value in (("cpus", "0,1023"), ("cpu", 1023), ("numa_node", 1023)):
        group.replicas[0][key] = value
        node(118, [f"[[replica]] 0 {key}: 1023", "; name another"], group.write("place.toml"))
        del group.replicas[0][key]
    node(75, ["virtual address", "there is no such interface"],
         group.write("virtual.toml", clients={"listen": "any", "virtual_ip": "10.99.99.99/24",
                                              "interface": "crane-none"}), lines=2)
    node(118, ["virtual_ip", "address of a replica's host itself"],
         group.write("own.toml", clients={"listen": "any", "virtual_ip": "127.0.0.1/8",
                                          "interface": "lo"}))
    own = own_addresses()[0]
    if own is not None:
        node(75, ["cannot use the virtual address", own, "an address of this host itself"],
             group.write("own.toml", clients={"listen": "any", "virtual_ip": f"{own}/24",
                                              "interface": "lo"}), lines=2)
    node(102, ["no such program"], group.write("p.toml", server={"command": ["no-such-server"]}))
    group.secret.chmod(0o644)
    node(119, ["others may read", "chmod 600"], group.config)
    group.secret.chmod(0o600)
    group.secret.write_text("short")
    node(119, ["5 bytes", "crane-ctl secret new"], group.config)
    code, _, error = group.ctl("secret", "new", str(group.secret))
    scenario.check(code == 119 and "exists" in error, "a secret file is not replaced", error)
    code, _, error = group.ctl("status", "nobody")
    scenario.check(code == 3 and "no such group" in error, "crane-ctl: no such group", error)
    code, _, error = group.ctl("status", "-o", "xml")
    scenario.check(code == 100, "crane-ctl: wrong command line", error)
    group.kill_all()


def body(scenario):
    h.need("redis-server")
    refusals(scenario)
    forwarding(scenario)
    refusing(scenario)
    replacing(scenario)
    disagreeing(scenario)
    beginning_anew(scenario)
    left_in_memory(scenario)


if __name__ == "__main__":
    h.run_scenario("hosts", body)
