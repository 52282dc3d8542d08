#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections survive while the leader's node is killed, its server is killed, it is stopped for
two seconds, and while an operator transfers the lead, or stops, drains or replaces the leader. With
clients from Debian, no request fails and no connection is reset."""
import hashlib
import re
import socket
import subprocess
import threading

import _harness as h
import _takeovers as t
import server_mariadb
import server_nginx
import server_postgresql
from server_tls import make_certificate


class Idle:
    """Connections that send nothing until the end; half of them send something now and then."""

    def __init__(self, port, count):
        self.name, self.port, self.number = f"{count} idle connections", port, count
        self.sockets, self.ends, self.bad = [], threading.Event(), ""
        self.thread = threading.Thread(target=self.talk)

    def ping(self, client):
        client.sendall(b"PING\r\n")
        answer = client.recv(100)
        if answer != b"+PONG\r\n":
            raise h.Failure(f"PING was answered by {answer!r}")

    def talk(self):
        try:
            while not self.ends.wait(0.5):
                for client in self.sockets[::50]:
                    self.ping(client)
        except (OSError, h.Failure) as failure:
            self.bad = repr(failure)

    def start(self):
        for _ in range(self.number):
            self.sockets.append(socket.create_connection(("127.0.0.1", self.port), 30))
        self.thread.start()

    def end(self):
        self.ends.set()
        self.thread.join()
        try:
            for client in self.sockets:
                self.ping(client)
                client.close()
        except (OSError, h.Failure) as failure:
            self.bad = self.bad or repr(failure)
        return self.bad

    def summary(self):
        return self.name


def redis(scenario, kinds, rounds):
    h.need("redis-server", "redis-benchmark")
    port = h.free_port()
    with h.Group(scenario, [*h.redis_program(port), "--maxclients", "4000"], port=port,
                 options=t.RETURNS) as group:
        t.check(scenario, group, [
            Idle(port, 2000 if scenario.full else 200),
            t.Client("redis-benchmark", ["redis-benchmark", "-p", port, "-n", 20000, "-c", 16,
                                         "-t", "set,get,incr,lpush", "--csv", "-r", 1000],
                     lambda text: "rror" not in text and text.count('"') > 8)], kinds, rounds)


def apache(scenario, kinds, rounds):
    h.need("apache2", "ab")
    port = h.free_port()
    # ab counts it as a failure when apache2 closes a connection between two requests. apache2
    # closes idle connections of a process whose workers are all busy: 16 clients kept 25 of them
    # busy.
    conf = h.apache_configuration(scenario.work, port, """MaxKeepAliveRequests 0
KeepAliveTimeout 60
ThreadsPerChild 64
MinSpareThreads 64
MaxSpareThreads 256
MaxRequestWorkers 256""")
    with h.Group(scenario, ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"],
                 port=port, options=t.RETURNS) as group:
        url = f"http://127.0.0.1:{port}/1k.html"

        def good(text):
            return re.search(r"Failed requests: +0\n", text)
        t.check(scenario, group, [
            t.Client("ab -k", ["ab", "-q", "-k", "-n", 4000, "-c", 8, url], good),
            t.Client("ab", ["ab", "-q", "-n", 2000, "-c", 8, url], good)], kinds, rounds)


class Messages:
    """One publisher and some subscribers of MQTT, each with one connection that is opened once."""
    TOPIC, SUBSCRIBERS = "numbers", 8

    def __init__(self, port):
        self.port, self.published, self.bad = port, 0, ""
        self.ends, self.thread = threading.Event(), threading.Thread(target=self.publish)

    def client(self, program, *words, **pipes):
        # With -d it prints when it connects; without, it would reconnect silently.
        command = ["stdbuf", "-oL", program, "-h", "127.0.0.1", "-p", str(self.port), "-t",
                   self.TOPIC, "-q", "2", "-k", "600", "-d", *words]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, **pipes)

    def start(self):
        self.subscribers = [self.client("mosquitto_sub", "-F", "got %p")
                            for _ in range(self.SUBSCRIBERS)]
        self.said = [[] for _ in self.subscribers]
        readers = [threading.Thread(target=self.listen, args=pair, daemon=True)
                   for pair in zip(self.subscribers, self.said)]
        for reader in readers:
            reader.start()
        h.wait_until(lambda: all(any("SUBACK" in line for line in said) for said in self.said), 30,
                     "all have subscribed")
        self.publisher = self.client("mosquitto_pub", "-l", stdin=subprocess.PIPE)
        self.published_said = []
        threading.Thread(target=self.listen, args=(self.publisher, self.published_said),
                         daemon=True).start()
        self.thread.start()

    def listen(self, process, lines):
        for line in process.stdout:
            lines.append(line.rstrip("\n"))

    def publish(self):
        while not self.ends.wait(0.02):
            self.published += 1
            self.publisher.stdin.write(f"{self.published}\n")
            self.publisher.stdin.flush()

    def got(self, said):
        return [int(line[4:]) for line in said if line.startswith("got ")]

    def count(self):
        return min(len(self.got(said)) for said in self.said)

    def end(self):
        self.ends.set()
        self.thread.join()
        try:
            h.wait_until(lambda: self.count() >= self.published, 60,
                         "all subscribers have received all messages")
        except h.Failure as failure:
            self.bad = str(failure)
        for process in [self.publisher, *self.subscribers]:
            process.terminate()
            process.wait()
        for said in self.said:
            if self.got(said) != list(range(1, self.published + 1)):
                self.bad = f"of {self.published} messages a subscriber got {self.got(said)[-20:]}"
        connected = [sum("sending CONNECT" in line for line in said)
                     for said in [self.published_said, *self.said]]
        if connected != [1] * len(connected):
            self.bad = self.bad or f"the clients have connected {connected} times"
        return self.bad

    def summary(self):
        return f"{self.SUBSCRIBERS} subscribers of MQTT: {self.published} messages each"


def mosquitto(scenario, kinds, rounds):
    h.need("mosquitto", "mosquitto_pub", "mosquitto_sub")
    port = h.free_port()
    configuration = scenario.work / "mosquitto.conf"
    configuration.write_text(f"listener {port}\nallow_anonymous true\nset_tcp_nodelay true\n")
    with h.Group(scenario, ["/usr/sbin/mosquitto", "-c", str(configuration)], port=port,
                 options=t.RETURNS) as group:
        t.check(scenario, group, [Messages(port)], kinds, rounds)


class Nginx(server_nginx.Nginx):
    """nginx over TLS, with HTTP/2."""

    def prepare(self):
        key, self.certificate = make_certificate(self.work)
        self.more = (f"listen {self.port + 1} ssl http2; ssl_certificate {self.certificate}; "
                     f"ssl_certificate_key {key}; keepalive_requests 100000000; ")
        super().prepare()


    def write(self, name, megabytes):
        """Writes a page of this many different megabytes; returns its checksum."""
        line = b"".join(bytes([i * 11 % 251]) for i in range(1 << 20))
        digest = hashlib.sha256()
        with open(self.root / name, "wb") as out:
            for i in range(megabytes):
                out.write(line[i:] + line[:i])
                digest.update(line[i:] + line[:i])
        return digest.hexdigest()


def serve_nginx(scenario, kinds, rounds, megabytes, others=lambda tls, plain: ()):
    """`others`: clients of its two addresses in parallel to a download over TLS."""
    h.need("nginx", "h2load", "wrk", "curl", "openssl")
    port = h.free_port()
    work = scenario.work / f"nginx{megabytes}"
    work.mkdir()
    server = Nginx(work, port)
    checksum = server.write("big.bin", megabytes)
    tls, plain = f"https://localhost:{port + 1}", f"http://127.0.0.1:{port}"
    fetch = f"curl -sS --cacert {server.certificate} {tls}/big.bin | sha256sum"
    clients = [t.Client(f"a download of {megabytes} MB over TLS", ["sh", "-c", fetch],
                        lambda text: checksum in text), *others(tls, plain)]
    with h.Group(scenario, server.command, port=port, options=t.RETURNS) as group:
        t.check(scenario, group, clients, kinds, rounds)


def nginx(scenario, kinds, rounds):
    serve_nginx(scenario, kinds, rounds, 64, lambda tls, plain: (
        t.Client("h2load", ["h2load", "-n", 4000, "-c", 4, "-m", 4, f"{tls}/1k.html"],
                 lambda text: " 0 failed, 0 errored, 0 timeout" in text),
        t.Client("wrk", ["wrk", "-t", 1, "-c", 4, "-d", 3, "--timeout", "20s", f"{plain}/1k.html"],
                 lambda text: "Requests/sec" in text and "rrors" not in text)))


def download(scenario, kinds, rounds):
    """Runs alone, because each replica that returns recomputes all of it."""
    serve_nginx(scenario, kinds, rounds, 1024)


def postgresql(scenario, kinds, rounds):
    h.need(*server_postgresql.Postgres.programs)
    work = scenario.work / "postgresql"
    work.mkdir()
    server = server_postgresql.Postgres(work, h.free_port())
    bench = [f"{server.home}/pgbench", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "-n"]
    with h.Group(scenario, server.command, port=server.port, options=t.RETURNS) as group:
        h.wait_until(server.ready, 60, "postgresql answers")
        t.check(scenario, group, [
            t.Client("pgbench", [*bench, "-c", 4, "-T", 3, "postgres"],
                     lambda text: "number of failed transactions: 0 " in text),
            t.Client("pgbench, long transactions",
                     ["psql", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "-XAtq", "-c",
                      "begin; select count(*) from pgbench_accounts; select pg_sleep(1); "
                      "select count(*) from pgbench_accounts; commit", "postgres"],
                     lambda text: text.split() == ["100000"] * 2)], kinds, rounds)


def mariadb(scenario, kinds, rounds):
    h.need(*server_mariadb.Mariadb.programs)
    work = scenario.work / "mariadb"
    work.mkdir()
    server = server_mariadb.Mariadb(work, h.free_port())
    with h.Group(scenario, server.command, port=server.port, options=t.RETURNS) as group:
        h.wait_until(server.ready, 60, "mariadb answers")
        t.check(scenario, group, [
            t.Client("sysbench oltp_read_write",
                     ["sysbench", "oltp_read_write", "--mysql-host=127.0.0.1",
                      f"--mysql-port={server.port}", "--mysql-user=root", "--table-size=10000",
                      "--threads=4", "--time=3", "--mysql-ignore-errors=1213", "run"],
                     lambda text: "FATAL" not in text and "transactions:" in text)], kinds, rounds)


SERVERS = {f.__name__: f
           for f in (redis, apache, nginx, download, postgresql, mariadb, mosquitto)}


def body(scenario):
    options = scenario.options
    usual = [name for name in SERVERS if scenario.full or name != "download"]
    for server in [SERVERS[name] for name in options.servers or usual]:
        all_kinds = scenario.full or server is redis
        kinds = options.kinds or t.FAULTS + (t.PLANNED if all_kinds else t.PLANNED[:1])
        server(scenario, kinds, options.rounds or (20 if scenario.full else 1))


if __name__ == "__main__":
    h.run_scenario(
        "connections", body,
        servers={"nargs": "*", "choices": sorted(SERVERS), "help": "only these servers"},
        kinds={"nargs": "*", "choices": t.FAULTS + t.PLANNED, "help": "only these changes"},
        rounds={"type": int, "help": "of each change"})
