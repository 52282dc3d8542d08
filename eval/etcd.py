#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three Crane replicas of redis beside three nodes of etcd on this machine (`make eval-etcd`).

Like with like: N clients, each with one request under way, put 64 bytes under one key, over TCP on
the loopback, to the leader of three; the answer comes when a majority has the put. Crane: SET by
redis-benchmark to redis-server under crane-node, replicas over the fabric of --fabric. etcd: KV.Put
by h2load over gRPC. Both load programs are compiled ones. Beside them the same redis-server alone,
which bounds what any way of replicating it could reach here.

  memory   Crane with durability "memory"    etcd with its data on tmpfs; redis stores nothing
  disk     Crane with durability "disk"      etcd with its data on the same disk; redis with its
                                             log there, synced before each answer

Repeats are interleaved. Counted besides, in a run of its own: fdatasync and fsync calls of all
replicas per put, by perf, and by etcd's own counters. Raw data: <out>/bench/etcd.json. What cannot
run is left out, by name, with the reason.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from _hosts import Hosts  # noqa: E402
from place import Native, Place, redis_benchmark  # noqa: E402

BYTES = 64
KEY = b"key:__rand_int__"  # redis-benchmark's own
SYNCS = ("fdatasync", "fsync")


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

    def __init__(self, place, medium):
        data = tempfile.mkdtemp(prefix="alone-", dir=place.work)
        stored = ["--dir", data, "--appendonly", "yes", "--appendfsync", "always"]
        port = h.free_port()
        super().__init__(h.redis_program(port, *(stored if medium == "disk" else [])), port, {})

    def put(self, clients, requests):
        return set_by_benchmark("127.0.0.1", self.port, clients, requests)

    def own_syncs(self):
        return None


class Crane:
    """redis-server under three crane-nodes."""

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

    def own_syncs(self):
        return None


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
        # gRPC says errors in trailers, which h2load does not show: ask etcd what it did.
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
        """What the nodes count themselves: of the log and of the store."""
        total = 0
        for client in self.clients:
            with urllib.request.urlopen(f"{client}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            for name in ("etcd_disk_wal_fsync_duration_seconds_count",
                         "etcd_disk_backend_commit_duration_seconds_count"):
                total += sum(float(x) for x in re.findall(rf"^{name} ([\d.e+]+)$", text, re.M))
        return total


def syncs_counted(processes, what):
    """(result of what(), sync calls of `processes` meanwhile or None)."""
    if not shutil.which("perf"):
        return what(), None
    with tempfile.NamedTemporaryFile("r", suffix=".perf") as report:
        # The counter runs while `cat` waits for its input to end.
        counter = subprocess.Popen(
            ["perf", "stat", "-x", ",", "-o", report.name, "-e",
             ",".join(f"syscalls:sys_enter_{s}" for s in SYNCS), "-p",
             ",".join(map(str, processes)), "--", "cat"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            result = what()
        finally:
            counter.stdin.close()
            counter.wait(30)
        rows = [line.split(",") for line in report.read().splitlines() if "sys_enter_" in line]
    counts = [int(r[0]) for r in rows if r[0].isdigit()]
    return result, sum(counts) if len(counts) == len(SYNCS) else None


def measure(system, clients, requests):
    system.put(clients, max(100, requests // 10))
    result = system.put(clients, requests)
    # A second time: counting makes every system call of the machine slower.
    before = system.own_syncs()
    _, syncs = syncs_counted(system.processes(), lambda: system.put(clients, requests))
    result["syncs_per_put"] = None if syncs is None else syncs / requests
    if before is not None:
        result["own_syncs_per_put"] = (system.own_syncs() - before) / requests
    return result


def spread(values, form):
    known = [v for v in values if v is not None]
    if not known:
        return "not counted"
    low, middle, high = (form.format(f(known)) for f in (min, statistics.median, max))
    return f"{middle} ({low} .. {high})"


def print_table(rows, clients_list):
    print(f"\n{'':<14}{'clients':>8}{'puts/s':>28}{'p50 ms':>26}{'p99 ms':>26}"
          f"{'syncs/put, all replicas':>26}")
    for medium in ("memory", "disk"):
        for clients in clients_list:
            middle = {}
            for name in ("crane", "etcd", "alone"):
                mine = [r for r in rows if (r["system"], r["medium"], r["clients"])
                        == (name, medium, clients)]
                if not mine:
                    continue
                middle[name] = statistics.median(r["rate"] for r in mine)
                print(f"{name + ' ' + medium:<14}{clients:>8}"
                      f"{spread([r['rate'] for r in mine], '{:.0f}'):>28}"
                      f"{spread([r['p50_ms'] for r in mine], '{:.3f}'):>26}"
                      f"{spread([r['p99_ms'] for r in mine], '{:.3f}'):>26}"
                      f"{spread([r['syncs_per_put'] for r in mine], '{:.2f}'):>26}")
            for name in ("crane", "alone"):
                if name in middle and "etcd" in middle:
                    print(f"{'':<22}{name} / etcd: {middle[name] / middle['etcd']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--fabric", default="tcp", choices=["tcp", "shm", "verbs"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--media", default="memory,disk")
    parser.add_argument("--clients", default="1,24")
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    clients_list = [int(c) for c in options.clients.split(",")]
    absent = [p for p in ("etcd", "etcdctl", "h2load", "redis-server", "redis-benchmark")
              if not shutil.which(p)]
    if absent:
        print(f"cannot compare: not installed: {', '.join(absent)} (etcd-server, etcd-client, "
              "nghttp2-client, redis)")
        return 77
    print(f"{os.cpu_count()} processors; clients and all replicas share them; load "
          f"{os.getloadavg()[0]:.1f}; fabric {options.fabric}; {options.requests} puts of {BYTES} B"
          " per row and repeat")
    rows, gone = [], set()
    with tempfile.TemporaryDirectory(prefix="crane-etcd-", dir="/var/tmp") as work:
        os.chmod(work, 0o755)
        place = Place(out, pathlib.Path(work), "etcd")
        for repeat in range(options.repeats):
            for medium in options.media.split(","):
                for name, make in (("crane", lambda m: Crane(place, options.fabric, m)),
                                   ("etcd", lambda m: Etcd(place, m)),
                                   ("alone", lambda m: Alone(place, m))):
                    if (name, medium) in gone:
                        continue
                    try:
                        with make(medium) as system:
                            for clients in clients_list:
                                rows.append({"system": name, "medium": medium, "repeat": repeat,
                                             "clients": clients,
                                             **measure(system, clients, options.requests)})
                    except (h.Failure, OSError, subprocess.SubprocessError, KeyError) as why:
                        print(f"left out: {name}, {medium}: {str(why)[:500]}")
                        gone.add((name, medium))
    print_table(rows, clients_list)
    (out / "bench").mkdir(parents=True, exist_ok=True)
    (out / "bench/etcd.json").write_text(json.dumps({"fabric": options.fabric,
                                                     "requests": options.requests, "rows": rows},
                                                    indent=1))
    return 0 if rows else 1


sys.exit(main())
