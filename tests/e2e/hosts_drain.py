#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-ctl replica drain, resume and replace of a group over several hosts.

crane-run --hosts over network namespaces, each host with its own state directory, as machines have.
The leader is drained on its host and hands over, and the others continue; another replica is needed
and cannot be drained. crane-run does not restart the drained replica; resumed, it recovers from a
checkpoint that it fetches. It is replaced in its own place; a resume that cannot succeed leaves it
drained; a group with a drained replica is stopped. Then the same for nodes without crane-run, which
no process restarts. A follower's host exports the server's data.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

import _harness as h
from _hosts import Hosts
from _network import Network
from _remote import Remote, first_on, gone

HOSTS = 3
RING_MB = 16
VALUE = 400_000   # bytes; a payload is at most a sixteenth of a ring
END_SECONDS = 20
CTL_SECONDS = 120   # crane-ctl itself waits for 90 s
TRIES = 5


class Apart(Remote):
    """Each host sees its own directory at the path where crane-run expects the group's files; the
    outside sees the replicas' directories through links."""

    def __init__(self, scenario, network, program, **options):
        super().__init__(scenario, network, program, **options)
        (self.state / self.name).mkdir()
        for i in range(HOSTS):
            self.own(i).mkdir()
            self.own(i).chmod(0o755)
            (self.state / self.name / f"r{i}").symlink_to(self.own(i) / self.name / f"r{i}")

    def own(self, number):
        return self.scenario.work / f"host{number}-{self.name}"

    def mount(self, number):
        return f"mount --bind {self.own(number)} {self.state}"

    def ctl(self, number, *words):
        """Returns (status, text) of crane-ctl on a host."""
        command = " ".join([str(self.out / "crane-ctl"), "--dir", str(self.state), *words])
        done = subprocess.run([*self.network.enter(number), "sh", "-c",
                               f"{self.mount(number)}; exec {command}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=CTL_SECONDS, check=False)
        return done.returncode, done.stdout.strip()

    def agent(self, number):
        return int((self.own(number) / self.name / f"h{number}/pid").read_text())

    def processes_of(self, number):
        status = self.status(number)
        return [status["pid"], status["server_pid"]]

    def put(self, host, megabytes):
        """Sends this many megabytes through the log."""
        client = h.Redis(self.port, 20, self.network.addresses[host])
        for i in range(int(megabytes * 1_000_000 / VALUE)):
            client("SET", f"big:{i % 4}", os.urandom(VALUE // 2).hex())
        client.close()

    @contextlib.contextmanager
    def apart(self):
        """While the block runs, the remote shell's commands see their host's directory."""
        with contextlib.ExitStack() as hosts:
            for i, name in enumerate(self.network.names):
                hosts.enter_context(first_on(self.scenario, name, self.mount(i)))
            yield

    def __enter__(self):
        with self.apart():
            return super().__enter__()

    def __exit__(self, *why):
        done = super().__exit__(*why)
        for i in range(HOSTS):
            shutil.rmtree(self.own(i), ignore_errors=True)
        return done


def run(scenario, group, what, host, *words, status=0, says=()):
    got, text = group.ctl(host, *words)
    scenario.check(got == status and all(s in text for s in says), what, f"{got}: {text}")
    return text


def others(group, number):
    return [i for i in range(HOSTS) if i != number]


def drain_leader(scenario, group):
    """The messages on each host; returns the number of the drained replica."""
    number = group.leader()
    near, far = others(group, number)
    pids, agent = group.processes_of(number), group.agent(number)
    run(scenario, group, "on another host: refused", near, "replica", "drain", str(number),
        status=5,
        says=[f"replica {number} is on another host; run this there"])
    run(scenario, group, "a running replica needs no resume", number, "replica", "resume",
        str(number),
        says=[f"replica {number} runs"])
    expected = group.incr(near) + 1
    run(scenario, group, "the leader is drained", number, "replica", "drain", str(number),
        says=["the lead is handed over", f"replica {number} is drained; crane-ctl replica resume"])
    scenario.check(not any(h.alive(p) for p in pids), "its node and server have ended")
    got = [group.incr(near), group.incr(far)]
    # A request whose answer was late was sent twice.
    scenario.check(got[0] >= expected and got[1] > got[0], "the others continue, nothing is lost",
                   got)
    name = group.network.names[number]
    h.wait_until(lambda: f"replica {number} on {name} is drained" in group.said(), 20,
                 "crane-run reports it")
    scenario.check("is lost" not in group.said(), "it is not reported as lost", group.said())
    run(scenario, group, "a drained replica can be drained again", number, "replica", "drain",
        str(number),
        says=["is drained; crane-ctl replica resume"])
    run(scenario, group, "status on its host", number, "status", status=1, says=[": drained: "])
    leader = group.leader()
    run(scenario, group, "status on the leader's host: two of three are left", leader, "status",
        status=1, says=["serving, 2 of 3: ONE MORE LOSS STOPS IT",
                        f"replica {number} is drained"])
    other = next(i for i in (near, far) if i != leader)
    run(scenario, group, "a follower's host knows that it is drained", other, "status", status=1,
        says=[f"replica {number} is drained"])
    run(scenario, group, "a replica that is needed is not drained", other, "replica", "drain",
        str(other),
        status=5, says=[f"replica {other} is needed", ";"])
    text = run(scenario, group, "nor is the leader, which is needed", leader, "replica", "drain",
               str(leader), status=5, says=[f"replica {leader} is needed", ";"])
    scenario.check("handed over" not in text and group.leader() == leader,
                   "it keeps the lead: the refusal moves nothing", f"{text} {group.brief()}")
    scenario.check(h.alive(agent) and len(group.live()) == 2, "its agent waits", group.brief())
    return number


def wrong_uses(scenario, group, number):
    near = others(group, number)[0]
    for words, host, status, says in (
            (["replica", "drain", "9"], near, 5, "replica 9 is not a member; see crane-ctl"),
            (["replica", "resume", "9"], near, 5, "replica 9 is not a member; see crane-ctl"),
            (["replica", "resume", str(number)], near, 5, "is on another host; run this there"),
            (["replica", "replace", str(number)], near, 5, "is on another host; run this there"),
            (["replica", "drain", "x"], near, 100, "--help"),
            (["replica", "drain", "0", "no-such-group"], near, 3, "no such group"),
            (["restore", str(near)], near, 5, "only crane-run on one host")):
        run(scenario, group, f"crane-ctl {' '.join(words[:2])}, wrong: {says}", host, *words,
            status=status, says=[says])


def recovers(scenario, group, number):
    """The log entries that it has are no longer enough: it fetches a checkpoint."""
    near = others(group, number)[0]
    group.put(near, 1.3 * RING_MB)
    expected = group.incr(near) + 1
    text = run(scenario, group, "it is resumed", number, "replica", "resume", str(number),
               says=[f"replica {number} is started", f"replica {number} is back, from the check"])
    log = (group.own(number) / group.name / f"r{number}/node.log").read_text()
    scenario.check("fetched the checkpoint at entry" in log, "it fetched another's checkpoint",
                   text)
    h.wait_until(lambda: f"replica {number} on {group.network.names[number]} is brought back"
                 in group.said(), 20, "crane-run reports it")
    run(scenario, group, "no replica is drained any more", group.leader(), "status", status=0)
    scenario.check(group.incr(number) >= expected, "clients of its host are served")
    run(scenario, group, "drained again, as a follower", number, "replica", "drain", str(number))
    run(scenario, group, "it is back from its own checkpoint", number, "replica", "resume",
        str(number),
        says=["is back, from the checkpoint"])


def replaced(scenario, group, number):
    def members():
        return {m["replica"]: (m["member"], m["incarnation"])
                for m in group.status(group.leader())["members"]}
    before = members()
    run(scenario, group, "replaced in its own place", number, "replica", "replace", str(number),
        says=[f"replica {number} is back, from the checkpoint at entry"])
    after = members()
    scenario.check(after[number][0] == "voter" and after[number][1] != before[number][1],
                   "it is another incarnation, and votes", f"{before} {after}")


def in_vain(scenario, group, number):
    """A file that it needs is missing: it stays drained, and recovers when the file is back."""
    run(scenario, group, "drained once more", number, "replica", "drain", str(number))
    secret = group.own(number) / group.name / f"h{number}/secret"
    secret.rename(secret.with_suffix(".away"))
    run(scenario, group, "the resume fails", number, "replica", "resume", str(number), status=5,
        says=[f"replica {number} did not recover: its node ended with status 119", "; see"])
    h.wait_until(lambda: "did not recover, and is drained as before" in group.said(), 20,
                 "crane-run reports why")
    run(scenario, group, "it is drained as before", number, "status", status=1, says=["drained"])
    secret.with_suffix(".away").rename(secret)
    run(scenario, group, "it recovers when the file is back", number, "replica", "resume",
        str(number), says=[f"replica {number} is back"])


def agents(scenario, network):
    port = h.free_port()
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Apart(scenario, network, program, port=port,
               options=["--ring-mb", str(RING_MB), "--checkpoint-every", "0",
                        "--checkpoint-log", "0"]) as group:
        number = drain_leader(scenario, group)
        wrong_uses(scenario, group, number)
        recovers(scenario, group, number)
        replaced(scenario, group, number)
        in_vain(scenario, group, number)
        group.settle(60)
        same = {(s["outputs_digest"], s["outputs_bytes"]) for s in group.statuses().values()}
        scenario.check(len(same) == 1 and len(group.live()) == HOSTS, "the replicas are equal",
                       group.brief())
        number = next(i for i in range(HOSTS) if i != group.leader())
        run(scenario, group, "one is drained", number, "replica", "drain", str(number))
        agent = group.agent(number)
        scenario.check(group.stop() == 0 and "may still run" not in group.said(),
                       "Ctrl-C ends the group with status 0", group.said())
        h.wait_until(lambda: not h.alive(agent), END_SECONDS, "its agent ends as well")
        nothing_is_left(scenario, group)


def nothing_is_left(scenario, group):
    left = [str(p) for i in range(HOSTS) for p in group.own(i).glob("*/*")]
    scenario.check(not left, "nothing is left on the hosts", left)
    shutil.rmtree(group.state / group.name)
    gone(scenario, group, "nothing is left elsewhere")


def majority_is_lost(scenario, network):
    """A drained replica does not count as available when another one is lost permanently."""
    port = h.free_port()
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Apart(scenario, network, program, port=port, container=False) as group:
        drained, lost = others(group, group.leader())
        run(scenario, group, "one is drained", drained, "replica", "drain", str(drained))
        agent = group.agent(drained)
        # Its node does not start again.
        (group.own(lost) / group.name / f"h{lost}/secret").unlink()
        os.kill(group.status(lost)["pid"], signal.SIGKILL)
        scenario.check(group.wait() == 115 and "1 of 3 replicas are left" in group.said(),
                       "another one is lost: status 115", group.said())
        log = re.search(r"its log there: (\S+)", group.said())
        scenario.check(log and pathlib.Path(log[1]).exists(), "the log that it names is there",
                       group.said())
        h.wait_until(lambda: not h.alive(agent), END_SECONDS, "the agent that waits ends")


def without_crane_run(scenario, network):
    """The agent needs no crane-run; a drained replica needs no checkpoint while the logs hold all
    entries."""
    port = h.free_port()
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Apart(scenario, network, program, port=port, container=False) as group:
        group.process.kill()
        group.process.wait()
        number = group.leader()
        near = others(group, number)[0]
        run(scenario, group, "crane-run is gone: the leader is drained", number, "replica", "drain",
            str(number), says=["the lead is handed over"])
        got = group.incr(near)
        scenario.check(got >= 1, "the others go on", got)
        run(scenario, group, "and recovers without a checkpoint", number, "replica", "resume",
            str(number), says=[f"replica {number} is back, after it ran all inputs"])
        scenario.check(group.incr(number) > got, "clients of its host are served")
        if group.leader() == number:
            number = near
        run(scenario, group, "one is drained", number, "replica", "drain", str(number))
        with group.apart():
            status, text = group.run("--stop")
        scenario.check(status == 0 and text.count(": stopped") == HOSTS,
                       "--stop ends it, and the agent that waits", text)
        nothing_is_left(scenario, group)


def exported(scenario, network):
    """One replica per host: a follower exports its server's data, and asks the leader's host."""
    port, data = h.free_port(), scenario.work / "exported"
    data.mkdir()
    data.chmod(0o777)
    (data / "notes.txt").write_text("of the machine")
    secret = scenario.work / "secret-of-exported"
    secret.write_text("1a57" * 16)
    secret.chmod(0o600)
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0",
                              "--dir", str(data), "--appendonly", "yes")
    with Apart(scenario, network, program, port=port,
               options=["--durability", "disk", "--secret-file", str(secret), "--data", str(data),
                        "--checkpoint-every", "0", "--checkpoint-log", "0"]) as group:
        leader = group.leader()
        near = others(group, leader)[0]
        group.put(near, 1)
        group.settle(60)
        file = scenario.work / "exported.tar.zst"
        run(scenario, group, "no follower on the leader's host: refused", leader, "data", "export",
            str(file), status=5, says=["run this on a follower's host"])
        run(scenario, group, "no such replica", near, "checkpoint", "now", "--replica", "9",
            status=5, says=["replica 9 is not a member"])
        text = run(scenario, group, "a follower's host exports the data", near, "data", "export",
                   str(file), says=[f"replica {near} requests a checkpoint", f"by replica {near}"])
        held = subprocess.run(["tar", "--zstd", "-tf", str(file)], stdout=subprocess.PIPE,
                              text=True, check=False).stdout
        scenario.check("exported/notes.txt" in held and "appendonly" in held,
                       "the file has the machine's and the server's files", f"{text}\n{held}")
        scratch = scenario.work / "check"
        run(scenario, group, "crane-backup's SOURCE and CHECK for several hosts", near, "data",
            "export", "-", group.name, "|", str(group.out / "crane-ctl"), "--dir", str(scratch),
            "data", "import", "-", "check", says=["imported"])
        run(scenario, group, "a backup, which crane-run on one machine restores: refused", near,
            "backup", str(scenario.work / "no.crane"), status=5,
            says=["crane-run --hosts", "a follower's host: crane-ctl data export FILE"])
        run(scenario, group, "a follower's host can request a checkpoint, too", near, "checkpoint",
            "now", "--replica", str(near), says=[f"replica {near} requests a checkpoint",
                                                 "published"])
        scenario.check(group.incr(leader) >= 1, "the clients are served")
        leader_is_lost(scenario, group)


def leader_is_lost(scenario, group):
    """The leader stops, and has not read the request of a follower's host: the next leader gets
    it, or the follower refuses it because it leads itself."""
    for _ in range(TRIES):
        leader = group.leader()
        near = others(group, leader)[0]
        with h.stopped(group.status(leader)["pid"]):
            status, text = group.ctl(near, "checkpoint", "now", "--replica", str(near))
        # Otherwise the next leader was elected before the request was made.
        if f"from the leader, replica {leader}" in text:
            break
        h.wait_until(lambda: h.is_whole({n: group.status(n) for n in range(HOSTS)}), 60,
                     "all replicas run again")
    scenario.check(f"from the leader, replica {leader}" in text
                   and (status == 0 and "published" in text
                        or status == 5 and "now this replica leads" in text),
                   "a request outlives the leader that did not read it", f"{status}: {text}")


def by_themselves(scenario, network):
    """No process starts these nodes: drain ends one in order, and reports how it recovers."""
    port = h.free_port()
    with Hosts(scenario, h.redis_program(port), fabric="tcp", port=port, prefix=network.enter,
               addresses=network.addresses) as group:
        number = group.leader()
        code, out, err = group.ctl("replica", "drain", str(number), group.name)
        scenario.check(code == 0 and "start its node to bring it back" in out,
                       "a node without crane-run is drained", f"{code}: {out}{err}")
        scenario.check(group.wait(number) == 0, "its node ends with status 0")
        code, out, err = group.ctl("replica", "resume", str(number), group.name)
        scenario.check(code == 5 and "no program on this machine starts its node; start" in err,
                       "no crane-run can start it: refused", f"{code}: {out}{err}")
        code, out, err = group.ctl("replica", "replace", str(number), group.name)
        scenario.check(code == 5 and "--forget-log" in err, "replace is refused, too",
                       f"{code}: {out}{err}")
        group.start(number)
        h.wait_until(group.serves, 60, "its node is started: it is back")
        code, out, err = group.ctl("replica", "resume", str(number), group.name)
        scenario.check(code == 0 and f"replica {number} runs" in out,
                       "a running replica needs no resume", f"{code}: {out}{err}")


def body(scenario):
    h.need("redis-server", "ip", "mount")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    with Network(HOSTS) as network:
        agents(scenario, network)
        majority_is_lost(scenario, network)
        without_crane_run(scenario, network)
        exported(scenario, network)
        by_themselves(scenario, network)


if __name__ == "__main__":
    h.run_scenario("hosts_drain", body)
