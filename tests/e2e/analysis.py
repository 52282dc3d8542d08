#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run --analysis: one more replica, whose server runs in valgrind while the group serves. The
replica finds a planted race under load. It can neither be promoted nor lead, whatever an operator
requests or whichever replica dies. If killed, it restarts. An operator can remove it. It reports
what it can no longer keep.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading

import _harness as h
from checkpoints import control

PLACE = 3  # of the analysis replica: after the voters


class ControlClient(threading.Thread):
    """Sends requests to the group's server repeatedly, whichever replica leads; counts answers."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.over = port, 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):  # leaves processor time to other processes
            with contextlib.suppress(OSError), \
                    socket.create_connection(("127.0.0.1", self.port), 5) as s:
                s.settimeout(5)
                s.sendall(b"anything\n")
                s.shutdown(socket.SHUT_WR)
                got = b""
                while part := s.recv(4096):
                    got += part
                self.answers += got.endswith(b"\n")

    def progress(self, count=5):
        goal = self.answers + count
        h.wait_until(lambda: self.answers >= goal, 60, f"{count} more answers")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def start(scenario, program, port, tool, *options):
    place = scenario.work / f"analysis-{scenario.next_number()}"
    group = h.Group(scenario, program, port=port,
                    options=["--analysis", tool, "--analysis-dir", str(place), *options])
    return group, place


def analysis(group):
    status = group.status(PLACE)
    return status.get("analysis") if status else None


def log(group):
    return group.log.read_text(errors="replace")


def engine(group):
    """The crane-replay of the analysis replica, or None."""
    node = group.replica(PLACE)["node_pid"]
    return next((p for p in h.children(node) if h.name_of(p) == "crane-replay"), None) \
        if node else None


def idle_file(pid):
    """cpu.idle of the control group of this process; None if there is none."""
    with contextlib.suppress(OSError):
        for line in open(f"/proc/{pid}/cgroup").read().splitlines():
            _, controllers, path = line.split(":", 2)
            root = "/sys/fs/cgroup/cpu" if "cpu" in controllers.split(",") else "/sys/fs/cgroup"
            file = pathlib.Path(root + path) / "cpu.idle"
            if path != "/" and controllers in ("", "cpu", "cpu,cpuacct") and file.exists():
                return file
    return None


def containers(pid):
    """cpu.idle of the containers of this process."""
    files = {idle_file(p) for p in h.descendants([pid])} - {None}
    return [f for f in files if f.parent.name.startswith("lxc.payload.")]


def is_behind(pid):
    with contextlib.suppress(OSError):
        return any(file.read_text() == "1\n" for file in containers(pid))
    return False


def until(group, condition, seconds, what):
    """Like wait_until(); meanwhile the processes in valgrind get their share of a busy machine."""
    def hurried():
        pid = engine(group)
        for p in h.descendants([pid]) if pid else []:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, p, 0)
        for file in containers(pid) if pid else []:
            with contextlib.suppress(OSError):
                file.write_text("0")
        return condition()
    return h.wait_until(hurried, seconds, what)


def is_member(group):
    status = group.status(group.leader())
    return bool(status) and any(m["replica"] == PLACE and m["member"] == "analysis"
                                for m in status["members"])


def check_found(scenario, group, place, load):
    before = load.answers
    pid = h.wait_until(lambda: engine(group), 60, "its server is started")
    scenario.check(os.getpriority(os.PRIO_PROCESS, pid) == 19
                   and "1000" in open(f"/proc/{pid}/oom_score_adj").read(),
                   "its server has the lowest priority, and is killed first for memory")
    if pathlib.Path("/sys/fs/cgroup/cpu/cpu.idle").exists():  # older kernels have none there
        h.wait_until(lambda: is_behind(pid), 120, "its container has idle priority")
        scenario.check(True, "its server gets only processor time that no other process wants")
    until(group, lambda: "helgrind finding 1: " in log(group), 150, "helgrind finds the race")
    load.progress()
    found = re.findall(r"analysis replica 3: helgrind finding \d+: (.*?); report: ", log(group))
    scenario.check(all(f.startswith("Possible data race during ") and " at work (" in f
                       for f in found), "one line names the race and its place", repr(found))
    scenario.check(len(set(found)) == len(found), "each finding is reported once", repr(found))
    report = place / "report.txt"
    until(group, lambda: "inside data symbol" in report.read_text(), 60,
          "the report names the data")
    names = set(re.findall(r'inside data symbol "(\w+)"', report.read_text()))
    scenario.check(names == {"planted"}, "the planted race is the only finding", repr(names))
    scenario.check(report.stat().st_mode & 0o77 == 0, "only its owner can read the report")
    node_log = (group.dir / f"r{PLACE}" / "node.log").read_text()
    scenario.check("helgrind finding 1: " in node_log, "node.log has it too", node_log[-600:])
    scenario.say(f"{load.answers - before} answers until the race was found")


def check_follows(scenario, group, load):
    """The analysis replica does the same as the group, up to the entry it has reached."""
    until(group, lambda: (analysis(group) or {}).get("digests_equal", 0) >= 3, 150,
          "its digests are compared with the group's")
    load.progress()
    said = analysis(group)
    scenario.check(said["differs"] is None, "its server does the same as the group's", repr(said))
    scenario.check(said["entry"] > 0 and said["got"] >= said["entry"], "it reports its position",
                   repr(said))
    status, text = control(group, "status", group.name)
    scenario.check(status == 0 and "well" in text
                   and re.search(r"analysis by replica 3: helgrind, entry \d+ of \d+, \d+ behind",
                                 text) and "Possible data race" in text and "report: " in text
                   and "digests equal to the group's" in text,
                   "crane-ctl status reports it, and the group is well", f"{status}: {text}")
    voters = group.statuses(range(3))
    scenario.check(all(s["verified"]["alarm"] == "" for s in voters.values()), "no alarm")


def check_refused(scenario, group):
    for what, words, says in (
            ("promote", ("member", "promote", "3", group.name), "never votes"),
            ("transfer", ("leader", "transfer", group.name, "--to", "3"), "never leads"),
            ("drain", ("replica", "drain", "3", group.name), "is an analysis replica"),
            ("replace", ("replica", "replace", "3", group.name), "is an analysis replica"),
            ("member replace", ("member", "replace", "1", "3", group.name), "never votes"),
            ("add", ("member", "add", "3", group.name), "the replica is already a member")):
        status, text = control(group, *words)
        scenario.check(status == 5 and says in text, f"{what} is refused with the reason",
                       f"{status}: {text}")
    scenario.check(is_member(group), "it is still an analysis replica")


def check_killed(scenario, group, load):
    """Its processes are killed, one after the other; the group does not notice."""
    leader = group.leader()
    pid = engine(group)
    for what, victim in (("crane-replay", pid), ("its node", None)):
        node = group.replica(PLACE)["node_pid"]
        os.kill(victim or node, signal.SIGKILL)

        def began_again():
            now = group.replica(PLACE)["node_pid"]
            return (now and now != node and engine(group)
                    and (analysis(group) or {}).get("entry"))
        until(group, began_again, 90, f"it restarts after {what} was killed")
        load.progress()
        scenario.check(group.leader() == leader and group.live()[:3] == [0, 1, 2],
                       f"{what} is killed: it restarts, and the group is unchanged")
    until(group, lambda: (analysis(group) or {}).get("findings", 0) > 0, 150,
          "it finds the race again")
    scenario.check("of 3 replicas" not in log(group), "the group does not count it as a replica")


def check_paused(scenario, group, load):
    """While it is stopped, it delays no other replica."""
    node = group.replica(PLACE)["node_pid"]
    with h.stopped(node):
        load.progress(20)
    h.wait_until(lambda: analysis(group), 20, "it continues")
    scenario.check(group.replica(PLACE)["node_pid"] == node, "stopped for a while, it continues")


def check_leader_killed(scenario, group, load):
    """If the leader is killed, the analysis replica cannot replace it: it waits until two of the
    three voters serve again."""
    old, node = group.leader(), group.replica(PLACE)["node_pid"]
    with h.stopped(node):
        group.signal_node(old, signal.SIGKILL)
        h.wait_until(lambda: group.state()["leader"] not in (None, old), 30, "another one leads")
        load.progress()
    scenario.check(group.leader() in {0, 1, 2} - {old} and is_member(group)
                   and group.replica(PLACE)["role"] == "analysis",
                   "the leader is killed: a voter leads, the analysis replica is unchanged",
                   repr(group.state()["replicas"]))
    before = h.wait_until(lambda: analysis(group), 20, "it continues")["got"]
    load.progress()
    h.wait_until(lambda: analysis(group)["got"] > before, 30, "it gets the new leader's entries")


def check_killed_again_and_again(scenario, group, load):
    """It restarts each time, after a pause that grows; no other replica waits for it."""
    for _ in range(3):
        node = h.wait_until(lambda: max(group.replica(PLACE)["node_pid"] or 0, 0), 30, "it runs")
        os.kill(node, signal.SIGKILL)
        h.wait_until(lambda: (group.replica(PLACE)["node_pid"] or 0) not in (0, None, node), 30,
                     "it restarts")
        load.progress()
    until(group, lambda: (analysis(group) or {}).get("findings", 0) > 0, 150,
          "it finds the race again")
    scenario.check("is started again in" in log(group) and "is gone: " not in log(group),
                   "killed repeatedly, it restarts after a pause, and the group continues",
                   log(group)[-1500:])


def planted_race(scenario):
    program = scenario.work / "planted_race"
    shutil.copy(scenario.out / "e2e" / "planted_race", program)
    port = h.free_port()
    group, place = start(scenario, [str(program), str(port)], port, "helgrind")
    with group, ControlClient(port) as load:
        check_found(scenario, group, place, load)
        check_follows(scenario, group, load)
        check_refused(scenario, group)
        check_paused(scenario, group, load)
        check_killed(scenario, group, load)
        check_leader_killed(scenario, group, load)
        check_killed_again_and_again(scenario, group, load)
        load.over.set()
        load.join()
        group.stop()
    check_left(scenario, place, {"report.txt"})


def check_left(scenario, place, files):
    left = {p.name for p in place.iterdir()} if place.exists() else set()
    scenario.check(left == files, f"its files after the end: {', '.join(files) or 'nothing'}",
                   repr(left))


def fill_spool(group, client, pieces=350):
    """Writes in pieces. If it wrote faster than the analysis replica fetches, the entries would
    leave the others' logs before that replica has them, and it would report that instead."""
    for i in range(pieces):
        client("SET", f"big:{i % 4}", "x" * 400_000)
        if i % 8 == 7:  # 3.2 MB in logs of 16 MB
            end = group.status(group.leader())["last"]
            h.wait_until(lambda end=end: analysis(group)["got"] >= end
                         or "are not analysed: " in log(group), 60, "it has what was written")


def redis(scenario):
    """A server that takes other turns in valgrind: reported, but without an alarm."""
    port = h.free_port()
    group, place = start(scenario, h.redis_program(port), port, "memcheck", "--ring-mb", "16",
                         "--analysis-spool-mb", "64")
    with group:
        client = h.Redis(port, 60)
        for i in range(2000):
            client("INCR", f"key:{i % 10}")
        until(group, lambda: (analysis(group) or {}).get("entry", 0) > 100, 180,
              "redis runs in memcheck")
        group.settle(numbers=range(3))
        group.check_calm()
        said = analysis(group)
        scenario.say(f"redis in memcheck: {json.dumps(said)}")
        alarms = [s["verified"]["alarm"] for s in group.statuses(range(3)).values()]
        scenario.check(said["ended"] == "" and alarms == [""] * 3,
                       "redis continues to run, and there is no alarm", repr((said, alarms)))
        # More than the replica may keep: it reports this, and the group continues.
        with h.stopped(engine(group)):  # a replica that keeps reading never fills it
            fill_spool(group, client)
            h.wait_until(lambda: "are not analysed: " in log(group), 60,
                         "the spool's limit is said")
        scenario.check(re.search(r"entries after \d+ are not analysed: .* 64 MB .*"
                                 r"--analysis-spool-mb", log(group)),
                       "with the limit and its option",
                       log(group)[-800:])
        scenario.check(client("INCR",
                              "key:0") == 201 and analysis(group)["spooled_bytes"] <= 64 << 20,
                       "the group continues, and nothing more is kept")
        group.check_calm()
        # A replica that is added again would need entries that have left the logs.
        status, text = control(group, "member", "remove", "3", group.name)
        scenario.check(status == 0, "an operator removes it", f"{status}: {text}")
        h.wait_until(lambda: group.replica(PLACE)["node_pid"] is None, 30, "its node has ended")
        status, text = control(group, "member", "add", "3", group.name)
        h.wait_until(lambda: "cannot begin at a checkpoint" in log(group), 60, "too late, and why")
        h.wait_until(lambda: not is_member(group), 30, "it is no member")
        scenario.check(re.search(r"analysis replica 3 is gone: .*the others' log begins ",
                                 log(group)), "added too late, it is refused with the reason",
                       log(group)[-800:])
        scenario.check(client("INCR", "key:0") == 202, "the group continues")
        client.close()
        group.stop()
    scenario.check("replica-3.history" not in {p.name for p in place.iterdir()} if place.exists()
                   else True, "no clients' bytes remain on disk")


def wrong_uses(scenario):
    def run(*words):
        done = subprocess.run([str(scenario.out / "crane-run"), *words, "--", "/bin/true"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout.strip()
    status, text = run("--analysis", "valgrind")
    scenario.check(status == 100 and "--analysis" in text, "an unknown tool is refused", text)
    other = scenario.work / "open"
    other.mkdir()
    other.chmod(0o755)
    status, text = run("--analysis", "helgrind", "--analysis-dir", str(other), "--no-container",
                       "--name", f"wrong-{os.getpid()}", "--dir", str(scenario.work))
    scenario.check(status == 108 and "other users can access it" in text,
                   "a directory that others can read is refused", f"{status}: {text}")


def body(scenario):
    h.need("valgrind", "redis-server")
    wrong_uses(scenario)
    planted_race(scenario)
    redis(scenario)


h.run_scenario("analysis", body)
