#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Full memory and full disks: refused at the start, waited for later.

crane-run in mount namespaces whose /dev/shm has 300 MB. That is too little for a group with logs of
the usual size, which is refused with a message that names the need and the remedy. It is enough for
small logs; then a file fills the rest under the load of counting clients. The same with the disk of
a group with durability disk. No process ends meanwhile, and clients wait; when there is room they
are answered, and each number comes once.
"""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading

import _harness as h
from _file_systems import told
from doctor import in_mounts

NO_ROOM = 109
MEGABYTE = 1 << 20


class Writer(threading.Thread):
    """Large values, so that logs grow."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.stopping = port, 0, threading.Event()

    def run(self):
        while not self.stopping.is_set():
            with contextlib.suppress(OSError):
                client = h.Redis(self.port, 120)
                while not self.stopping.is_set():
                    client("SET", f"large{self.answers % 4}", "x" * 100_000)
                    self.answers += 1


def fill(directory, left):
    """Fills the file system there to `left` bytes; other files there may still grow."""
    path = pathlib.Path(directory) / "another"
    with open(path, "wb") as file, contextlib.suppress(OSError):
        size = 0
        while True:
            room = os.statvfs(directory)
            more = room.f_bavail * room.f_frsize - left
            if more <= 0:
                return path
            os.posix_fallocate(file.fileno(), size, max(more // 2, 4096))
            size += max(more // 2, 4096)
    return path


def node_pids(group):
    return [r["node_pid"] for r in group.state()["replicas"]]


def server_pids(group):
    return [r["server_pid"] for r in group.state()["replicas"]]


class SmallMemory(h.Group):
    """A group in a new mount namespace, where /dev/shm has this many megabytes."""

    def __init__(self, scenario, program, megabytes, **more):
        super().__init__(scenario, program, **more)
        self.megabytes = megabytes

    def command(self):
        mount = f"mount -t tmpfs -o size={self.megabytes}m none /dev/shm"
        return in_mounts(mount) + super().command()

    @property
    def memory(self):
        return f"/proc/{self.process.pid}/root/dev/shm"


def refused(scenario):
    for words in ((), ("--dry-run",)):
        group = SmallMemory(scenario, ["/bin/sleep", "60"], 300, options=words)
        done = subprocess.run(group.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60, cwd="/")
        text = done.stdout
        scenario.check(done.returncode == NO_ROOM and "/dev/shm" in text and "300 MiB free" in text
                       and "576 MiB needed" in text and "remount,size=" in text
                       and "--ring-mb" in text and not group.dir.exists(),
                       " ".join(["300 MB of shared memory are too little:", *words,
                                 f"status {done.returncode}"]), text)


def waits(scenario, group, directory, left, what, rounds):
    """Fills `directory` until inputs wait, and makes room again."""
    counters = [h.Counter(group.port, f"{what}.{i}", 120) for i in range(4)]
    writer = Writer(group.port)
    for client in counters:
        client.start()
    for number in range(rounds):
        before = [c.answers for c in counters]
        h.wait_until(lambda: all(c.answers > b + 100 for c, b in zip(counters, before)), 60,
                     "clients are served")
        nodes, servers = node_pids(group), server_pids(group)
        path = fill(directory, left)
        if number == 0:
            writer.start()   # from now on logs grow fast

        def full():
            return all(s and s["no_room"] for s in [group.status(group.leader())])
        h.wait_until(full, 120, f"{what}: the leader reports that there is no room")
        status, text = h.ctl(scenario, "status", group.name, "--dir", str(group.home))
        scenario.check("NOT SERVING: inputs wait" in text and "no room: " in text,
                       f"{what}: crane-ctl reports it ({status})", text)
        at_rest = [c.answers for c in counters]
        path.unlink()
        h.wait_until(lambda: all(c.answers > b + 100 for c, b in zip(counters, at_rest)), 60,
                     "clients are served again")
        scenario.check(node_pids(group) == nodes and server_pids(group) == servers,
                       f"{what}: no process ended",
                       f"{nodes} {servers}, now {node_pids(group)} {server_pids(group)}")
        h.wait_until(lambda: not any(s and s["no_room"] for s in group.statuses().values()), 60,
                     f"{what}: all replicas report room")
    for client in [*counters, writer]:
        client.stopping.set()
    for client in [*counters, writer]:
        client.join(130)
    scenario.check(not any(c.reconnects for c in counters), f"{what}: no connection was lost",
                   str([c.reconnects for c in counters]))
    wrong = [p for c in counters for p in c.problems] + group.problems_of(counters)
    scenario.check(not wrong, f"{what}: each number once "
                   f"({sum(c.answers for c in counters)} answers)", "; ".join(wrong[:3]))


def memory(scenario):
    port = h.free_port()
    with SmallMemory(scenario, h.redis_program(port), 300, port=port,
                     options=["--ring-mb", "32"]) as group:
        waits(scenario, group, group.memory, 1 * MEGABYTE, "shared memory", 1)
        group.settle()


@contextlib.contextmanager
def small_disk(scenario, megabytes):
    """A file system on a disk: durability disk refuses memory."""
    path, image = (scenario.work / f"disk-{megabytes}{ending}" for ending in ("", ".img"))
    path.mkdir()
    with open(image, "wb") as file:
        file.truncate(megabytes * MEGABYTE)
    for words in (["mkfs.ext4", "-q", "-F", "-m", "0", image],
                  ["mount", "-o", "loop", image, path]):
        why = told(words)
        if why:
            raise h.CannotRun(f"no separate file system: {why}")
    path.chmod(0o755)
    try:
        yield path
    finally:
        told(["umount", "-l", path])


def disk(scenario):
    port = h.free_port()
    with small_disk(scenario, 1024) as path:
        group = h.Group(scenario, h.redis_program(port), port=port,
                        options=["--durability", "disk"])
        group.home = path
        group.dir = path / group.name
        with group:
            waits(scenario, group, path, 48 * MEGABYTE, "disk", 2)
            # Acknowledged writes survive when all processes are killed while they wait.
            client = h.Redis(port, 60)
            last = client("INCR", "last")
            full = fill(path, 48 * MEGABYTE)
            for number in range(3):
                group.signal_node(number, signal.SIGKILL)
            full.unlink()
            h.wait_until(lambda: len(group.live()) == 3, 120, "all replicas are back")
            scenario.check(group.asked(lambda c: c("INCR", "last"), 120) == last + 1,
                           "disk: acknowledged writes survive the kill of all")


def service(scenario):
    """The copy of --data does not fit: under a service manager crane-run waits for room, because
    systemd would give up after a few attempts. Without one, it ends."""
    port, data = h.free_port(), scenario.work / "data"
    data.mkdir()
    (data / "large").write_bytes(os.urandom(60 * MEGABYTE))
    with small_disk(scenario, 400) as path, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        group = h.Group(scenario, h.redis_program(port), port=port, options=["--data", str(data)])
        group.home = path
        group.dir = path / group.name
        full = fill(path, 30 * MEGABYTE)
        group.launch()
        status, log = group.process.wait(60), group.log.read_text()
        scenario.check(status == NO_ROOM and "cannot copy the content of --data" in log,
                       "no room for a copy of --data: status 109", f"{status}: {log}")
        manager.bind(str(scenario.work / "notify"))
        os.environ["NOTIFY_SOCKET"] = str(scenario.work / "notify")
        try:
            group.launch()
            h.wait_until(lambda: group.log.read_text().count("tries again every 2 s") > 1, 60,
                         "crane-run waits for room")
            scenario.check(group.process.poll() is None, "as a service, crane-run waits for room",
                           group.log.read_text())
            scenario.check("begins with its content" not in group.log.read_text(),
                           "it does not say that the group has a copy", group.log.read_text())
            full.unlink()
            h.wait_until(group.is_ready, 60, "the group starts when there is room")
            scenario.check(group.log.read_text().count("begins with its content") == 1,
                           "it says once that the group has a copy", group.log.read_text())
            scenario.check(group.stop() == 0, "it starts when there is room",
                           group.log.read_text())
        finally:
            del os.environ["NOTIFY_SOCKET"]
            if group.process.poll() is None:
                group.kill_all()


def body(scenario):
    h.need("redis-server", "unshare")
    if os.geteuid() != 0:
        raise h.CannotRun("mounts need root")
    refused(scenario)
    memory(scenario)
    disk(scenario)
    if h.can_contain():
        service(scenario)


if __name__ == "__main__":
    h.run_scenario("room", body)
