#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run is killed under load and restarted over the living group. Killed together with all
nodes but one, it leaves waiting clients, and status reports them. Nodes that hold the server's
sockets are stopped while a new crane-run needs them. A group whose processes were all killed
continues. Another command is refused. --stop ends a group without crane-run.
"""
import json
import os
import signal
import subprocess

import _harness as h
from checkpoints import control
from recovers import all_back, from_zero, kill, pids_of


def kill_crane_run(group):
    group.remember(group.state())
    group.process.send_signal(signal.SIGKILL)
    group.process.wait(10)


def start_again(group):
    """Runs the same command; waits until the new crane-run has written its state, serving or
    not."""
    group.launch()
    h.wait_until(lambda: (group.state() or {}).get("pid") == group.process.pid, 20,
                 "the new crane-run reports its state")


def run(group, *words):
    done = subprocess.run([str(group.scenario.out / "crane-run"), *words], cwd="/", text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout.strip()


def living(scenario, group, port):
    before = {n: group.replica(n)["node_pid"] for n in range(3)}
    views = {s["view"] for s in group.statuses().values()}
    with h.Load(port) as load:
        load.progress()
        kill_crane_run(group)
        load.progress()
        status, text = control(group, "status", group.name)
        scenario.check(status == 1 and "no crane-run supervises this group" in text
                       and "--stop" in text,
                       "crane-ctl status reports that no crane-run supervises it", text)
        words = group.command()[1:] + ["--maxmemory", "100mb"]
        status, text = run(group, *words)
        scenario.check(status == 111 and '"--maxmemory" is new' in text and "--stop" in text,
                       "another command is refused, and the difference is named",
                       f"{status}: {text}")
        start_again(group)
        scenario.check({s["view"] for s in group.statuses().values()} == views,
                       "the leader continues to lead: no client notices", group.brief())
        scenario.check({n: group.replica(n)["node_pid"] for n in range(3)} == before,
                       "it took over the running nodes", group.brief())
        victim = next(n for n in range(3) if n != group.leader())
        for what in ("drain", "resume"):
            status, text = control(group, "replica", what, str(victim), group.name)
            scenario.check(status == 0, f"it answers crane-ctl replica {what}", text)
        all_back(group)
        kill(pids_of(group, "node", [victim]))
        all_back(group)
        # One replica is lost while no crane-run supervises.
        kill_crane_run(group)
        kill(pids_of(group, "node", [victim]))
        load.progress()
        start_again(group)
        all_back(group)
        load.progress()
        load.stop()
        scenario.check(not load.problems(), "no acknowledged write lost", load.problems()[:3])
    group.remember(group.state())
    group.settle()


def one_left(scenario, group, port, who):
    """crane-run and two of three nodes are killed: clients wait, and continue when it is back."""
    what = f"{who} alone is left, without crane-run"
    leader = group.leader()
    left = leader if who == "the leader" else (leader + 1) % 3
    client = h.Redis(port, 60)
    before = client("INCR", "one left")
    h.wait_until(lambda: (group.status(left) or {}).get("connections") == 1, 20,
                 "the last replica holds the connection")
    kill_crane_run(group)
    kill(pids_of(group, "node", [n for n in range(3) if n != left]))
    why = (f"replica {left}: no quorum: 1 of 3 replicas answer; clients wait until crane-run is "
           "started again with the same command")

    def told():
        status, text = control(group, "status", group.name)
        return status == 2 and why in text
    h.wait_until(told, 20, f"{what}: status reports that clients wait, and until when: "
                           f"{control(group, 'status', group.name)}")
    status, text = control(group, "status", group.name)
    scenario.check("unsupervised" in text and " ".join(group.program[:2]) in text
                   and "refused" not in text,
                   f"{what}: it names the command, and reports no refusal", text)
    answer = json.loads(control(group, "status", group.name, "-o", "json")[1])
    scenario.check(answer["no_quorum"] == why and answer["supervised"] is False,
                   f"{what}: the JSON reports it, too", answer)
    client.send("INCR", "one left")
    start_again(group)
    scenario.check(client.answer() == before + 1,
                   f"{what}: the waiting client's connection continues")
    client.close()
    all_back(group)
    status, text = control(group, "status", group.name)
    scenario.check(status == 0 and "clients wait" not in text, f"{what}: all is well again", text)
    group.remember(group.state())
    group.settle()


def others_do_not_answer(scenario, group, port):
    """A restarted replica requests the server's port while the nodes that have its socket are
    stopped and have not handed it over. The port cannot be opened again, and the group does not end
    because of that (ADOPT-1)."""
    leader = group.leader()
    lost = (leader + 1) % 3
    nodes = [group.replica(n)["node_pid"] for n in range(3) if n != lost]
    kill_crane_run(group)
    kill(pids_of(group, "node", [lost]))
    with h.stopped(nodes[0]), h.stopped(nodes[1]):
        start_again(group)
        h.wait_until(lambda: group.process.poll() is not None or
                     (group.replica(lost)["server_pid"] or 0) > 0, 60,
                     "crane-run knows that server: the node's request for the port came before")
    all_back(group)
    h.wait_until(lambda: control(group, "leader", "transfer", group.name, "--to",
                                 str(lost))[0] == 0, 30, "that replica leads")
    client = h.Redis(port, 30)   # through the socket that it was handed
    scenario.check(client("PING") == "PONG", "the nodes with the port's socket are stopped while "
                   "another one requests the port: it has it afterwards")
    client.close()
    group.remember(group.state())
    group.settle()


def dead(scenario, group, port):
    """The machine keeps its power, but every process is killed."""
    from_zero(port)
    with h.Load(port) as load:
        load.progress()
        kill_crane_run(group)
        kill(pids_of(group, "node", range(3)))
        # Except those that keep the clients' sockets for the next nodes.
        h.wait_until(lambda: not any(h.alive(pid) for pid in group.known
                                     if h.name_of(pid) != "crane-sockets"), 20,
                     "all processes have ended")
        start_again(group)
        all_back(group)
        load.progress()
        load.stop()
        scenario.check(not load.problems(), "all processes killed: no acknowledged write lost",
                       load.problems()[:3])
    group.remember(group.state())


def body(scenario):
    h.need("redis-server")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        living(scenario, group, port)
        one_left(scenario, group, port, "the leader")
        one_left(scenario, group, port, "a follower")
        others_do_not_answer(scenario, group, port)
        dead(scenario, group, port)
        kill_crane_run(group)
        status, text = run(group, "--stop", "--name", group.name, "--dir", str(group.home))
        scenario.check(status == 0, "crane-run --stop ends a group that no crane-run supervises",
                       f"{status}: {text}")
        h.wait_until(lambda: not group.leftovers() and not os.path.exists(group.dir), 20,
                     f"nothing is left: {group.leftovers()}")
        scenario.check(True, "nothing is left")


if __name__ == "__main__":
    h.run_scenario("takeover_run", body)
