#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers without a profile that do much work besides their clients' requests, for `make accept`:
squid (its own pages, and a refusal), rabbitmq-server (Erlang, with its port mapper and many
processes at the start), and servers in Go: caddy, nats-server, prometheus, etcd. Each serves eight
clients, loses the leader's node, and serves eight more."""
import json
import shutil

import _harness as h
from _unprepared import Files, run, talk, tell

SQUID = """http_port 127.0.0.1:{port}
visible_hostname cache.example.test
pid_filename {work}/run/squid.pid
access_log none
cache_log {work}/run/cache.log
cache_store_log none
coredump_dir {work}/run
cache deny all
pinger_enable off
icon_directory /usr/share/squid/icons
http_access deny all
"""
RABBITMQ = """listeners.tcp.local = 127.0.0.1:{port}
"""
CADDY = """{{
	admin off
}}
http://127.0.0.1:{port} {{
	root * {pages}
	file_server
}}
"""


class Squid:
    name, programs = "squid", ("squid", "curl")

    def __init__(self, work):
        self.port = h.free_port()
        (work / "run").mkdir()
        shutil.chown(work / "run", "proxy", "proxy")
        configuration = work / "squid.conf"
        configuration.write_text(SQUID.format(port=self.port, work=work))
        self.command = ["/usr/sbin/squid", "--foreground", "-f", str(configuration)]

    def client(self, number):
        place = f"http://host{number}.example.test/page{number}"
        done = run("curl", "-sS", "-i", "--max-time", 30, "-x", f"127.0.0.1:{self.port}", place)
        return done.stdout.startswith("HTTP/1.1 403 Forbidden\n") and \
            "\nX-Squid-Error: ERR_ACCESS_DENIED 0\n" in done.stdout and \
            f'<a href="{place}">{place}</a>' in done.stdout, f"{number}: {done.stdout[-300:]}"


class Rabbitmq:
    name, programs = "rabbitmq", ("rabbitmq-server", "amqp-publish", "amqp-get")

    def __init__(self, work):
        self.port, mapper, others = h.free_port(), h.free_port(), h.free_port()
        configuration = work / "rabbitmq.conf"
        configuration.write_text(RABBITMQ.format(port=self.port))
        home = work / "home"
        home.mkdir()
        settings = {"HOME": home, "RABBITMQ_NODENAME": "node@localhost",
                    "RABBITMQ_CONFIG_FILE": configuration, "RABBITMQ_MNESIA_BASE": home / "data",
                    "RABBITMQ_LOG_BASE": home / "log", "RABBITMQ_PID_FILE": home / "pid",
                    "RABBITMQ_ENABLED_PLUGINS_FILE": home / "plugins",
                    "RABBITMQ_DIST_PORT": others, "ERL_EPMD_PORT": mapper}
        self.options = ["--publish", f"{self.port}:{self.port}"]
        self.command = ["/usr/bin/env", *(f"{k}={v}" for k, v in settings.items()),
                        "/usr/lib/rabbitmq/bin/rabbitmq-server"]

    def client(self, number):
        place = ("--url", f"amqp://guest:guest@127.0.0.1:{self.port}")
        queue, words = f"queue{number}", f"words of {number}"
        made = run("amqp-declare-queue", *place, "-q", queue)
        put = run("amqp-publish", *place, "-r", queue, "-b", words)
        got = run("amqp-get", *place, "-q", queue)
        empty = run("amqp-get", *place, "-q", queue)
        return made.stdout == f"{queue}\n" and put.returncode == 0 and got.stdout == words \
            and empty.returncode == 2, \
            f"{number}: {made.stdout[-300:]} {put.stdout[-300:]} {got.stdout[-300:]}"


class Caddy(Files):
    name, programs = "caddy", ("caddy", "curl")

    def prepare(self):
        configuration = self.work / "Caddyfile"
        configuration.write_text(CADDY.format(port=self.port, pages=self.pages))
        self.command = ["/usr/bin/caddy", "run", "--config", str(configuration)]


class Nats:
    name, programs = "nats-server", ("nats-server", "nc")

    def __init__(self, _):
        self.port = h.free_port()
        self.command = ["/usr/sbin/nats-server", "-a", "127.0.0.1", "-p", str(self.port)]

    def client(self, number):
        words = f"words of {number}"
        heard = talk(self.port, 'CONNECT {"verbose":false}\r\n' f"SUB place.{number} 7\r\n"
                     f"PUB place.{number} {len(words)}\r\n{words}\r\nPING\r\n", "PONG")
        first, _, rest = heard.partition("\n")
        return first.startswith("INFO {") and \
            rest == f"MSG place.{number} 7 {len(words)}\n{words}\nPONG\n", \
            f"{number}: {heard[-600:]}"


class Prometheus:
    name, programs = "prometheus", ("prometheus", "curl")

    def __init__(self, work):
        self.port = h.free_port()
        configuration = work / "prometheus.yml"
        configuration.write_text("global:\n  scrape_interval: 10s\n")
        self.command = ["/usr/bin/prometheus", f"--config.file={configuration}",
                        f"--storage.tsdb.path={work}/data",
                        f"--web.listen-address=127.0.0.1:{self.port}"]

    def client(self, number):
        done = run("curl", "-sS", "--max-time", 30, "-G", "--data-urlencode",
                   f"query={number} * vector({number}) + 0.5", "-d", "time=1000",
                   f"http://127.0.0.1:{self.port}/api/v1/query")
        wanted = {"status": "success", "data": {"resultType": "vector", "result": [
            {"metric": {}, "value": [1000, f"{number * number}.5"]}]}}
        return done.stdout.startswith("{") and json.loads(done.stdout) == wanted, \
            f"{number}: {done.stdout[-300:]}"


class Etcd:
    name, programs = "etcd", ("etcd", "etcdctl")

    def __init__(self, work):
        self.port = h.free_port()
        clients, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{h.free_port()}"
        self.options = ["--publish", f"{self.port}:{self.port}"]
        self.command = ["/usr/bin/etcd", "--name", "one", "--data-dir", str(work / "data"),
                        "--listen-client-urls", clients, "--advertise-client-urls", clients,
                        "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                        "--initial-cluster", f"one={peers}"]

    def client(self, number):
        call = ("env", "ETCDCTL_API=3", "etcdctl", "--endpoints", f"127.0.0.1:{self.port}",
                "--command-timeout", "30s")
        put = run(*call, "put", f"key{number}", f"value {number}")
        got = run(*call, "get", f"key{number}")
        return put.stdout == "OK\n" and got.stdout == f"key{number}\nvalue {number}\n", \
            f"{number}: {put.stdout[-300:]} {got.stdout[-300:]}"


KINDS = (Squid, Rabbitmq, Caddy, Nats, Prometheus, Etcd)

if __name__ == "__main__":
    tell("accept_servers", KINDS)
