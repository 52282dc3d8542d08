# SPDX-License-Identifier: Apache-2.0
"""Three Crane replicas of redis beside three nodes of etcd on this machine.

Like with like: N clients, each with one request under way, put 64 bytes under one key, over TCP on
the loopback, to the leader of three; the answer comes when a majority has the put. Crane: SET by
redis-benchmark to redis-server under crane-node, replicas over the fabric of --fabric. etcd: KV.Put
by h2load over gRPC. Both load programs are compiled ones. Beside them the same redis-server alone,
which bounds what any way of replicating it could reach here.

  memory   Crane with durability "memory"    etcd with its data on tmpfs; redis stores nothing
  disk     Crane with durability "disk"      etcd with its data on the same disk; redis with its
                                             log there, synced before each answer

Repeats are interleaved. Counted besides, in a run of its own: fdatasync and fsync calls of all
replicas per put, by perf, and by etcd's own counters. Parts that cannot run are left
out, with the reason.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import urllib.request

import _harness as h
import counters
import session
import tables
from _hosts import Hosts
from start import Native, redis_benchmark

OPTIONS = {"repeats": session.repeats(5), "requests": (5000, "puts of a row and repeat"),
           "fabric": ("tcp", "of Crane's replicas: tcp, shm or verbs"),
           "media": ("memory,disk", "where puts are kept"), "clients": ([1, 24], "at once")}
PROGRAMS = ("etcd", "etcdctl", "h2load", "redis-server", "redis-benchmark")
BYTES = 64
KEY = b"key:__rand_int__"  # redis-benchmark's own


def run(words, limit=300, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=limit, **more)
    if done.returncode != 0:
        raise h.Failure(f"{words[0]} ended with status {done.returncode}: {done.stdout[-800:]}")
    return done.stdout


def set_by_benchmark(address, port, clients, requests):
    row, = redis_benchmark(port, clients, requests, "set", "-d", str(BYTES), address=address)
    return {k: row[k] for k in ("rate", "p50_ms", "p99_ms")}


class Alone(Native):
    """redis-server, not replicated."""

    own_syncs = None   # it does not count them itself

    def __init__(self, place, medium):
        data = tempfile.mkdtemp(prefix="alone-", dir=place.work)
        stored = ["--dir", data, "--appendonly", "yes", "--appendfsync", "always"]
        port = h.free_port()
        super().__init__(h.redis_program(port, *(stored if medium == "disk" else [])), port, {})

    def put(self, clients, requests):
        return set_by_benchmark("127.0.0.1", self.port, clients, requests)


class Crane:
    """redis-server under three crane-nodes."""

    own_syncs = None

    def __init__(self, place, fabric, medium):
        self.port = h.free_port()
        base = h.free_port()
        durability = "memory" if medium == "memory" else "disk"
        group = {"durability": durability}  # stores below place.work
        if fabric == "shm" and durability == "memory":
            group = {}
        self.hosts = Hosts(place, h.redis_program(self.port), port=self.port, fabric=fabric,
                           group=group, replica=lambda i: {} if fabric == "shm"
                           else {"port": base + i})

    def __enter__(self):
        self.hosts.__enter__()
        self.address = self.hosts.addresses[self.hosts.leader()]
        return self

    def __exit__(self, *why):
        return self.hosts.__exit__(*why)

    def processes(self):
        return h.descendants([n.pid for n in self.hosts.nodes])

    def put(self, clients, requests):
        return set_by_benchmark(self.address, self.port, clients, requests)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def put_request():
    """etcdserverpb.PutRequest {key = 1, value = 2} in a gRPC frame."""
    value = b"x" * BYTES
    body = b"\x0a" + varint(len(KEY)) + KEY + b"\x12" + varint(len(value)) + value
    return b"\0" + struct.pack(">I", len(body)) + body


class Etcd:
    """Three nodes of etcd."""

    def __init__(self, place, medium):
        parent = "/dev/shm" if medium == "memory" else str(place.work)
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="crane-etcd-", dir=parent))
        ports = [h.free_port() for _ in range(6)]
        self.clients = [f"http://127.0.0.1:{p}" for p in ports[:3]]
        self.peers = [f"http://127.0.0.1:{p}" for p in ports[3:]]
        self.body = self.data / "put"
        self.body.write_bytes(put_request())
        self.nodes, self.puts = [], 0

    def __enter__(self):
        cluster = ",".join(f"n{i}={p}" for i, p in enumerate(self.peers))
        for i, (client, peer) in enumerate(zip(self.clients, self.peers)):
            with open(self.data / f"n{i}.log", "wb") as log:
                self.nodes.append(subprocess.Popen(
                    ["etcd", "--name", f"n{i}", "--data-dir", str(self.data / f"n{i}"),
                     "--listen-client-urls", client, "--advertise-client-urls", client,
                     "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                     "--initial-cluster", cluster, "--initial-cluster-state", "new",
                     "--logger", "zap", "--log-level", "warn"],
                    stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True))
        try:
            self.leader = h.wait_until(self.find_leader, 60, "etcd has a leader")
        except BaseException:
            self.__exit__()
            raise
        return self

    def ctl(self, *words):
        return run(["etcdctl", "--endpoints", ",".join(self.clients), *words], 30,
                   env={**os.environ, "ETCDCTL_API": "3"})

    def find_leader(self):
        for i, node in enumerate(self.nodes):
            if node.poll() is not None:
                raise h.Failure(f"etcd n{i} ended: {h.tail(self.data / f'n{i}.log', 5)}")
        try:
            rows = json.loads(self.ctl("endpoint", "status", "-w", "json"))
        except (h.Failure, ValueError):
            return None
        leads = [r["Endpoint"] for r in rows
                 if r["Status"]["leader"] == r["Status"]["header"]["member_id"]]
        return leads[0] if len(rows) == 3 and leads else None

    def __exit__(self, *_):
        for node in self.nodes:
            node.terminate()
        for node in self.nodes:
            try:
                node.wait(10)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
        shutil.rmtree(self.data, ignore_errors=True)

    def processes(self):
        return [n.pid for n in self.nodes]

    def put(self, clients, requests):
        log = self.data / "requests.log"
        log.unlink(missing_ok=True)
        text = run(["h2load", "-c", str(clients), "-m", "1", "-n", str(requests), "-d",
                    str(self.body), "-H", "content-type: application/grpc", "-H", "te: trailers",
                    "--log-file", str(log), f"{self.leader}/etcdserverpb.KV/Put"])
        self.puts += requests
        # gRPC reports errors in trailers, which h2load does not show: ask etcd what it did.
        found = json.loads(self.ctl("get", KEY.decode(), "-w", "json"))["kvs"][0]
        if found["version"] != self.puts or len(base64.b64decode(found["value"])) != BYTES:
            raise h.Failure(f"etcd did {found['version']} puts of {self.puts}")
        times = sorted(int(line.split("\t")[2]) for line in log.read_text().splitlines())
        rate = re.search(r"finished in [^,]*, ([\d.]+) req/s", text)
        if len(times) != requests or not rate:
            raise h.Failure(f"h2load: {text[-500:]}")
        return {"rate": float(rate[1]), "p50_ms": times[len(times) // 2] / 1e3,
                "p99_ms": times[int(0.99 * (len(times) - 1))] / 1e3}

    def own_syncs(self):
        """Returns the nodes' own counts, of the log and of the store."""
        total = 0
        for client in self.clients:
            with urllib.request.urlopen(f"{client}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            for name in ("etcd_disk_wal_fsync_duration_seconds_count",
                         "etcd_disk_backend_commit_duration_seconds_count"):
                total += sum(float(x) for x in re.findall(rf"^{name} ([\d.e+]+)$", text, re.M))
        return total


class Syncs(counters.Perf):
    """Counts sync calls of all replicas."""

    events = ",".join(f"syscalls:sys_enter_{name}" for name in ("fdatasync", "fsync"))

    @staticmethod
    def counts(text_):
        found = counters.events_in(text_)
        return sum(found.values()) if len(found) == 2 else None


def syncs_counted(x, system, clients, requests):
    """Per put; None: perf cannot count them here."""
    if not shutil.which("perf"):
        system.put(clients, requests)
        return None
    with Syncs(system.processes, x.work) as counter:
        system.put(clients, requests)
    return None if counter.found is None else counter.found / requests


def one_row(x, system, clients):
    requests = x.options.requests
    system.put(clients, max(100, requests // 10))
    result = system.put(clients, requests)
    # A second time: counting makes every system call of the machine slower.
    before = system.own_syncs and system.own_syncs()
    result["syncs_per_put"] = syncs_counted(x, system, clients, requests)
    if system.own_syncs:
        result["own_syncs_per_put"] = (system.own_syncs() - before) / requests
    return result


def measure(x):
    systems = {"Crane": lambda m: Crane(x.place, x.options.fabric, m),
               "etcd": lambda m: Etcd(x.place, m), "redis alone": lambda m: Alone(x.place, m)}
    for repeat, medium, name in x.rounds(x.options.media.split(","), systems):
        label = f"{name}, {medium}"
        if label in x.left_out:
            continue
        try:
            with systems[name](medium) as system:
                for clients in x.options.clients:
                    x.add({"key": [label, clients, repeat], "system": label, "repeat": repeat,
                           "load": f"{medium}, {clients} clients",
                           **one_row(x, system, clients)})
        except (*session.CAUSES, KeyError) as why:
            print(f"left out: {label}: {str(why)[:500]}")
            x.left_out[label] = str(why)[:200]


def text(rows, x):
    lines = []
    for load, of_load in tables.grouped(rows, "load").items():
        systems = tables.grouped(of_load, "system")
        etcd = next((some for name, some in systems.items() if name.startswith("etcd")), [])
        lines += [[load, name, *(tables.spread([r[key] for r in some], form) for key, form in
                                 (("rate", "{:.0f}"), ("p50_ms", "{:.3f}"), ("p99_ms", "{:.3f}"),
                                  ("syncs_per_put", "{:.2f}"))),
                   tables.spread(tables.ratios(some, etcd), "{:.2f}")]
                  for name, some in systems.items()]
    return tables.table(["puts of 64 B", "system", "puts/s", "p50, ms", "p99, ms",
                         "syncs per put, all replicas", "of etcd"],
                        lines, 2) + tables.missing_text(x.left_out)
