# SPDX-License-Identifier: Apache-2.0
"""Servers with a lasting data directory (--data), and clients that remember acknowledged writes.

A kind defines its data directory (`data`), how a client adds a unique id (`client`), and how all
ids are read back (`held`).  LastingGroup starts, stops and kills a group with one such server.
"""
import collections
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import _harness as h
import _ldap as ldap
import _matrix as m
import server_mariadb
import server_postgresql
import server_slapd

KEY = "ids"


class Redis(m.Server):
    """Append-only file, configured as by an operator; each answer follows its write."""
    name = "redis, AOF"
    programs = ("redis-server",)

    def prepare(self):
        self.data = self.work / "data"
        self.data.mkdir()
        (self.data / "notes.txt").write_text("was here before\n")
        (self.work / "redis.conf").write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.data}\nappendonly yes\n"
            "appendfsync everysec\nsave \"\"\n")

    def program(self):
        return ["redis-server", str(self.work / "redis.conf")]

    def ready(self):
        return h.redis_answers(self.port)

    def client(self):
        client = h.Redis(self.port, 5)
        return (lambda name: isinstance(client("RPUSH", KEY, name), int)), client.close

    def held(self):
        client = h.Redis(self.port, 30)
        try:
            return [name.decode() for name in client("LRANGE", KEY, "0", "-1")]
        finally:
            client.close()


class Slapd(server_slapd.Slapd):
    name = "slapd"

    def prepare(self):
        super().prepare()
        self.data = self.work / "data"

    def client(self):
        client = ldap.Ldap(self.port, 10)
        if client.bind(*server_slapd.ADMIN) != ldap.SUCCESS:
            raise OSError("slapd refuses the administrator")

        def push(name):
            entry = server_slapd.person(name, "x@example.org")
            return client.add(f"uid={name},{server_slapd.PEOPLE}", entry) == ldap.SUCCESS

        def close():
            client.stream.close()
            client.socket.close()
        return push, close

    def held(self):
        with ldap.Ldap(self.port, 30) as client:
            code, found = client.search(server_slapd.PEOPLE, "mail", "x@example.org", ("uid",))
            if code != ldap.SUCCESS:
                raise h.Failure(f"slapd's search ended with {code}")
        return [entry["uid"][0] for entry in found.values()]


class Lines:
    """A command-line client that answers each line of input."""

    def __init__(self, command):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        bufsize=1)

    def ask(self, query, answer):
        try:
            self.process.stdin.write(query + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError) as gone:
            raise ConnectionError("the client has ended") from gone
        line = self.process.stdout.readline()
        if not line:
            raise ConnectionError("the client has ended")
        return line.strip() == answer

    def close(self):
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):  # it may not have read everything
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Postgres(server_postgresql.Postgres):
    name = "postgresql"

    def fill(self):
        super().fill()
        self.ask("create table ids (id text primary key)")

    def client(self):
        lines = Lines(["psql", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-XAtq", "-v",
                       "ON_ERROR_STOP=1", "postgres"])
        return (lambda name: lines.ask(f"insert into ids values ('{name}') returning id;", name),
                lines.close)

    def held(self):
        return self.ask("select id from ids").split()


class Mariadb(server_mariadb.Mariadb):
    name = "mariadb"

    def fill(self):
        self.ask("create database d; create table d.ids (id varchar(60) primary key)")

    def client(self):
        lines = Lines(["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", self.port, "-u", "root",
                       "-N", "-B", "-n", "d"])
        return (lambda name: lines.ask(f"insert into ids values ('{name}') returning id;", name),
                lines.close)

    def held(self):
        return self.ask("select id from d.ids").split()


class Pusher(threading.Thread):
    """Adds unique ids, each once, and remembers the acknowledged ones."""

    def __init__(self, server, name):
        super().__init__(daemon=True)
        self.server, self.name_ = server, name
        self.sent, self.acknowledged = [], []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            try:
                push, close = self.server.client()
            except (OSError, h.Failure):
                self.stopping.wait(0.02)
                continue
            try:
                while not self.stopping.is_set():
                    mine = f"{self.name_}-{len(self.sent)}"
                    self.sent.append(mine)
                    if push(mine):
                        self.acknowledged.append(mine)
            except (OSError, h.Failure, IndexError):
                pass   # not acknowledged, never sent again
            finally:
                close()


class Pushers:
    """Several pushers; their names contain the round."""

    def __init__(self, server, count, round_):
        self.all = [Pusher(server, f"r{round_}c{i}") for i in range(count)]

    def __enter__(self):
        for one in self.all:
            one.start()
        return self

    def wait(self, answers, seconds=60):
        before = [len(one.acknowledged) for one in self.all]
        h.wait_until(lambda: all(len(one.acknowledged) >= b + answers
                                 for one, b in zip(self.all, before)), seconds,
                     "every client is served")

    def __exit__(self, *_):
        for one in self.all:
            one.stopping.set()
        for one in self.all:
            one.join(30)

    def acknowledged(self):
        return [name for one in self.all for name in one.acknowledged]


class LastingGroup:
    """A group that is repeatedly started, stopped and killed over the same directory."""

    def __init__(self, scenario, server, *, disk, options=()):
        self.scenario, self.server, self.disk = scenario, server, disk
        self.acknowledged = []
        words = ["--data", str(server.data), *options]
        if disk:
            words += ["--durability", "disk"]
        self.group = h.Group(scenario, server.command, port=server.port,
                             options=[*server.options, *words])

    @property
    def dir(self):
        return self.group.dir

    def start(self):
        self.group.start()
        # If the last crane-run was killed, its nodes still serve.
        h.wait_until(lambda: (self.group.state() or {}).get("pid") == self.group.process.pid, 90,
                     "the new crane-run supervises the group")
        h.wait_until(self.server.ready, 90, f"{self.server.name} answers")

    def log(self):
        return self.group.log.read_text(errors="replace")

    def stop(self):
        status = self.group.stop()
        if status != 0:
            self.group.explain()
            raise h.Failure(f"crane-run ended with {status}")
        try:
            h.wait_until(lambda: not self.group.leftovers(), 20, "nothing of the group is left")
        except h.Failure:
            self.group.explain()
            raise h.Failure(f"left behind: {self.group.leftovers()}") from None

    def kill_everything(self):
        """Kills crane-run, nodes, supervisors and servers, as a loss of power would."""
        self.group.remember(self.group.state())
        pids = [self.group.process.pid, *self.group.processes()]
        for _ in range(2):   # the second round finds processes that started meanwhile
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            pids = [pid for pid in self.group.known if h.alive(pid)]
        self.group.process.wait(20)
        h.wait_until(lambda: not any(h.alive(pid) for pid in self.group.known), 20,
                     "all processes of the group are gone")

    def check(self, what, lost_after=None):
        """Checks that every acknowledged id is there exactly once."""
        counted = collections.Counter(self.server.held())
        lost = [name for name in self.acknowledged if counted[name] == 0]
        twice = [name for name, times in counted.items() if times > 1]
        self.scenario.check(not lost and not twice,
                            f"{self.server.name}: {what}: {len(self.acknowledged)} acknowledged, "
                            f"none lost, none twice",
                            f"lost {lost[:5]} ({len(lost)}), twice {twice[:5]}"
                            f"\n{self.log()[-2000:]}")
        return not lost and not twice

    def check_same_answers(self, what):
        """Checks that the replicas are equal; the live check has compared their outputs."""
        statuses = self.group.settle(60)
        if not self.scenario.check(len(statuses) == self.group.replicas
                                   and not any(s["verified"]["alarm"] for s in statuses.values()),
                                   f"{self.server.name}: {what}: replicas are equal"):
            self.group.explain()


def digest_of(directory):
    """A digest of the names, kinds, owners, modes and bytes in the directory."""
    found = hashlib.sha256()
    for path in sorted(pathlib.Path(directory).rglob("*")):
        info = path.lstat()
        found.update(f"{path.relative_to(directory)} {info.st_mode:o} {info.st_uid} {info.st_gid}\n"
                     .encode())
        if path.is_file() and not path.is_symlink():
            found.update(path.read_bytes())
    return found.hexdigest()


def left_by(dir_, replica, data):
    """The files that a replica's server has left."""
    return pathlib.Path(f"{dir_}/r{replica}/left{data}")


def forget(dir_, replica):
    """Removes everything that the replica kept, as an operator or a broken disk would."""
    for path in (f"r{replica}", f"store/r{replica}"):
        shutil.rmtree(pathlib.Path(dir_) / path, ignore_errors=True)
