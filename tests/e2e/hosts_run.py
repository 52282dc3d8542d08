#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run --hosts h1,h2,h3 -- redis-server: hosts are network namespaces, which the remote shell
enters. A group is started and serves, loses its leader's node, and is stopped. crane-run is killed,
or loses a connection, and the group continues. A group recovers from its hosts' disks. Its server
ends on its own. Errors of hosts are reported with their names.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import _harness as h
from _builds import with_other_versions
from _network import Network
from _remote import Remote, first_on, gone

HOSTS = 3


def program(port):
    return h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")


def secret_is_kept(scenario, group, secret):
    """No other user can read the secret in files, command lines or environments."""
    modes = group.files()
    scenario.check(len([p for p, _ in modes if p.endswith("/secret")]) == HOSTS
                   and all(m & 0o077 == 0 for _, m in modes),
                   "files on the hosts are readable by their owner only", modes)
    shown = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                if secret in pathlib.Path(f"/proc/{pid}/{name}").read_bytes():
                    shown.append(f"{pid}/{name}")
            except OSError:
                pass
    scenario.check(not shown, "the secret is in no command line and no environment", shown)


def serve_and_lose(scenario, network):
    port = h.free_port()
    secret = scenario.work / "secret"
    secret.write_text("53ec2e7" * 8 + "\n")
    secret.chmod(0o600)
    # Without a container there is no checkpoint: a lost replica replays its log.
    with Remote(scenario, network, program(port), port=port, container=False,
                options=["--secret-file", str(secret)]) as group:
        got = [group.incr(i % HOSTS) for i in range(2 * HOSTS)]
        scenario.check(got == list(range(1, 2 * HOSTS + 1)),
                       "clients of every host talk to one server", got)
        secret_is_kept(scenario, group, secret.read_bytes().strip())
        status, text = group.run(timeout=90)
        scenario.check(status == 111 and network.names[0] + ": " in text and "--stop" in text,
                       "a second group of the same name is refused (111), which names the hosts",
                       text)
        leader = group.leader()
        name = network.names[leader]
        pid = group.status(leader)["pid"]
        os.kill(pid, signal.SIGKILL)
        rest = [i for i in range(HOSTS) if i != leader]
        got = [group.incr(i) for i in rest]
        scenario.check(got == [2 * HOSTS + 1, 2 * HOSTS + 2], "the others continue after a SIGKILL",
                       got)
        h.wait_until(lambda: f"replica {leader} on {name}: its node killed by SIGKILL"
                     in group.said(), 30, "crane-run reports the replica, the host and the cause")

        def is_back():
            said = group.status(leader)
            return said and said["pid"] != pid and said["server_pid"] and said["role"] == "follower"
        h.wait_until(is_back, 30, "it replays its log")
        got = [group.incr(i) for i in range(HOSTS)]
        scenario.check(got == [2 * HOSTS + n for n in (3, 4, 5)],
                       "clients of every host are served again", got)
        scenario.check(group.stop() == 0 and "interrupted, stopping" in group.said(),
                       "Ctrl-C ends it with status 0", group.said())
        doubled = [line for line in group.said().splitlines()
                   if len(re.findall(r"\d{4}-\d\d-\d\dT", line)) > 1]
        scenario.check(not doubled, "each line has one time", doubled)
        gone(scenario, group, "all is gone")


def crane_run_is_killed(scenario, network):
    """The remote shell is `ip netns exec`: HOST and words, without a shell in between."""
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port, rsh="ip netns exec") as group:
        scenario.check(group.incr(0) == 1, "the group serves")
        group.process.kill()
        group.process.wait()
        pids = [group.status(i)["pid"] for i in range(HOSTS)]
        got = [group.incr(i) for i in range(HOSTS)]
        scenario.check(got == [2, 3, 4], "crane-run is killed: the group continues", got)
        leader = group.leader()
        os.kill(group.status(leader)["pid"], signal.SIGKILL)
        got = group.incr((leader + 1) % HOSTS)
        scenario.check(got == 5, "the group survives the loss of its leader", got)
        status, text = group.run("--stop")
        scenario.check(status == 0 and text.count(": stopped") >= 1, "--stop ends it", text)
        scenario.check(not any(h.alive(pid) for pid in pids), "the nodes have ended")
        gone(scenario, group, "and all is gone", [leader])
        status, text = group.run("--stop")
        scenario.check(status == 0 and text.count("no replica of") == HOSTS,
                       "--stop of a group that does not run reports that", text)


def recovers_from_disk(scenario, network):
    port = h.free_port()
    secret = scenario.work / "lasting"
    secret.write_text("1a57" * 16)
    secret.chmod(0o600)
    group = Remote(scenario, network, program(port), port=port,
                   options=["--durability", "disk", "--secret-file", str(secret)])
    for expected in (1, 2):
        group.log.unlink(missing_ok=True)
        with group:
            scenario.check(group.incr(0) == expected, f"durability disk: {expected} is counted")
            scenario.check(group.stop() == 0, "durability disk: the group is stopped", group.said())
        lasts = re.compile(r"/(r\d|member-\d|store|files|lock)$")
        left = [p for p in group.leftovers() if not lasts.search(p)]
        scenario.check(not left, "only durable files remain on the hosts", left)


def is_back(group, number, before, what):
    """A node other than the one with pid `before` runs, from a checkpoint."""
    def there():
        status = group.status(number)
        return status and status["pid"] != before and status["server_pid"] \
            and status["checkpoint"]["restored_at"] > 0 and status["role"] == "follower"
    h.wait_until(there, 60, what)


def recovers_from_another(scenario, group, ctl, lost):
    """A lost replica without its own checkpoints recovers from another replica's."""
    def run(*words):
        return subprocess.run([*ctl, *words], capture_output=True, timeout=60, check=False)

    def taken():
        leader = group.leader()
        if leader == lost:
            run("leader", "transfer", group.name)
            return False
        giver = next(i for i in range(HOSTS) if i not in (lost, leader))
        return run("checkpoint", "now", group.name, "--replica", str(giver)).returncode == 0
    h.wait_until(taken, 60, "another follower takes a checkpoint")
    shutil.rmtree(group.state / group.name / f"r{lost}/checkpoints")
    before = group.status(lost)["pid"]
    expected = group.incr((lost + 1) % HOSTS) + 1
    os.kill(before, signal.SIGKILL)
    is_back(group, lost, before, "it recovers from another's checkpoint")
    scenario.check(group.incr((lost + 1) % HOSTS) == expected, "nothing is lost")


def recovers_from_checkpoint(scenario, network):
    """A replica whose node was killed recovers on its host, from its files there."""
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port) as group:
        for i in range(50):
            group.incr(i % HOSTS)
        ctl = [str(scenario.out / "crane-ctl"), "--dir", str(group.state)]

        def giver():
            """A follower that has taken a checkpoint; the lead may have moved there meanwhile."""
            number = (group.leader() + 1) % HOSTS
            done = subprocess.run([*ctl, "checkpoint", "now", group.name, "--replica", str(number)],
                                  capture_output=True, text=True, timeout=60, check=False)
            return [number] if done.returncode == 0 else None
        far = h.wait_until(giver, 60, "a follower takes a checkpoint")[0]
        other = (far + 1) % HOSTS
        for turn in range(2):
            before = group.status(far)["pid"]
            expected = group.incr(other) + 1
            os.kill(before, signal.SIGKILL)
            got = group.incr(other)
            scenario.check(got == expected, "its node is killed: the others continue", got)
            is_back(group, far, before, "it recovers from its checkpoint")
            scenario.check("its node killed by SIGKILL" in group.said(),
                           "crane-run reports it", group.said())
            if turn == 0:
                def leads():   # it does not become a candidate before it has caught up
                    subprocess.run([*ctl, "leader", "transfer", group.name, "--to", str(far)],
                                   capture_output=True, timeout=60, check=False)
                    return group.leader() == far
                h.wait_until(leads, 30, "the recovered replica leads")
                scenario.check(group.incr(far) == expected + 1, "it serves clients")
        recovers_from_another(scenario, group, ctl, far)
        group.settle(60)
        same = {(s["outputs_digest"], s["outputs_bytes"]) for s in group.statuses().values()}
        scenario.check(len(same) == 1 and len(group.live()) == HOSTS, "the replicas are equal",
                       group.brief())
        scenario.check(group.stop() == 0, "Ctrl-C ends it with status 0", group.said())
        gone(scenario, group, "and all is gone")


def connection_is_lost(scenario, network):
    """The remote shell to a follower's host dies, as when the network to crane-run is cut."""
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port) as group:
        scenario.check(group.incr(0) == 1, "the group serves")
        far = (group.leader() + 1) % HOSTS
        pid = group.status(far)["pid"]
        os.kill(group.shell_of(far), signal.SIGKILL)
        h.wait_until(lambda: f"the connection to the host is lost: {network.names[far]}"
                     in group.said(), 30, "crane-run notices the lost connection")
        scenario.check(group.incr(far) == 2 and h.alive(pid), "its replica continues")
        scenario.check(group.stop(signal.SIGTERM) == 120 and "--stop" in group.said()
                       and f"replicas may still run: {network.names[far]}" in group.said(),
                       "replicas that could not be stopped are named (120)", group.said())
        scenario.check(h.alive(pid), "the node still runs")
        # The hosts of this scenario share files: the first agent may stop all replicas.
        status, text = group.run("--stop")
        scenario.check(status == 0 and text.count(": stopped") >= 1, "--stop ends it", text)
        gone(scenario, group, "and all is gone after --stop")


def server_ends(scenario, network):
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port) as group:
        client = h.Redis(port, 10, network.addresses[0])
        try:
            client("SHUTDOWN", "NOSAVE")
        except OSError:
            pass
        scenario.check(group.wait() == 0 and "the server ended with status 0" in group.said(),
                       "the server's own end ends the group with its status", group.said())
        gone(scenario, group, "and all is gone after the server's end")


def majority_is_lost(scenario, network):
    port = h.free_port()
    with Remote(scenario, network, program(port), port=port) as group:
        before = [group.status(i)["pid"] for i in (0, 1)]
        expected = group.incr(2) + 1

        def lose():
            for i in (0, 1):
                os.kill(group.status(i)["pid"], signal.SIGKILL)
        lose()
        h.wait_until(lambda: all((s := group.status(i)) and s["pid"] != pid and s["server_pid"]
                                 for i, pid in enumerate(before)), 60, "two of three are back")
        scenario.check(group.incr(0) == expected, "two of three are lost: the group continues")
        for i in (0, 1):   # their nodes do not start again
            (group.state / group.name / f"h{i}/secret").unlink()
        lose()
        scenario.check(group.wait() == 115 and "1 of 3 replicas are left" in group.said(),
                       "a lost majority ends it with status 115", group.said())
        gone(scenario, group, "the last one is stopped", [0, 1, 2])


def wrong_uses(scenario, network):
    names = network.names
    good = Remote(scenario, network, program(h.free_port()))
    listed = list(good.hosts)

    def use(what, status, words, *more, hosts=None, server=None, logs=()):
        good.hosts = hosts or listed
        got, text = good.run(*more, program=server, timeout=120)
        scenario.check(got == status and all(w in text for w in words) and "; " in text,
                       f"{what}: status {status}", f"{got}: {text}")
        gone(scenario, good, f"{what}: nothing is left" + (" but logs" if logs else ""), logs)

    use("two hosts", 101, ["odd"], hosts=listed[:2])
    use("one host", 101, ["odd"], hosts=listed[:1])
    use("a host named twice", 100, ["twice", names[0]], hosts=listed[:2] + listed[:1])
    use("two hosts with one address", 100, ["same address", names[2]],
        hosts=listed[:2] + [f"{names[2]}={network.addresses[0]}"])
    use("an invalid address", 100, ["not an IP address"], hosts=listed[:2] + [names[2] + "=x"])
    use("an unknown host name", 120, ["nowhere.invalid", "=ADDRESS"],
        hosts=listed[:2] + ["nowhere.invalid"])
    use("disk without a secret", 100, ["--secret-file"], "--durability", "disk")
    use("-n that differs", 101, ["-n"], "-n", "5")
    use("a host that cannot be reached", 120, ["cannot reach the host: gone", "No route to host"],
        hosts=listed[:2] + [f"gone={network.addresses[2]}"])
    use("no such server", 102, [
        f"{n}: cannot run the program: no-such-server" for n in names], server=["no-such-server"])
    secret = scenario.work / "open-secret"
    secret.write_text("0" * 64)
    secret.chmod(0o644)
    use("a secret that others may read", 119, ["others may read", "chmod 600"],
        "--secret-file", str(secret))
    with first_on(scenario, names[2], f"mount -t tmpfs none {scenario.out}"):
        use("a host without Crane", 121, [f"no Crane of this version: {names[2]}", "install"])
    other = scenario.work / "other"
    other.mkdir()
    for part in ("crane-run", "crane-node", "libcrane.so"):
        shutil.copy2(scenario.out / part, other / part)
    with_other_versions(other)
    with first_on(scenario, names[1], f"mount --bind {other} {scenario.out}"):
        use("another version of Crane", 121, [f"another version of Crane: {names[1]}", "install"])
    server = shutil.which("redis-server")
    shutil.copy2(server, other / "redis-server")
    with open(other / "redis-server", "ab") as copy:
        copy.write(b"another build")
    with first_on(scenario, names[2],
                  f"mount --bind {other}/redis-server {os.path.realpath(server)}"):
        use("another build of the server", 121, [f"the server differs: {names[2]}", names[0]])
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    shutil.copy2(libc, other / "libc")
    with open(other / "libc", "ab") as copy:
        copy.write(b"another build")
    with first_on(scenario, names[1], f"mount --bind {other}/libc {libc}"):
        use("another build of a library", 121, [
            f"the server differs: {names[1]}", "libc.so.6 is another build than on", names[0]])
    use("a server that goes to the background", 125, ["run it in the foreground"],
        server=[sys.executable, "-c", h.BACKGROUND], logs=[0, 1, 2])


def body(scenario):
    h.need("redis-server", "ip", "mount")
    if os.geteuid() != 0:
        raise h.CannotRun("namespaces need root")
    with Network(HOSTS) as network:
        wrong_uses(scenario, network)
        serve_and_lose(scenario, network)
        crane_run_is_killed(scenario, network)
        recovers_from_disk(scenario, network)
        if h.can_contain():
            recovers_from_checkpoint(scenario, network)
        connection_is_lost(scenario, network)
        server_ends(scenario, network)
        majority_is_lost(scenario, network)


h.run_scenario("hosts_run", body)
