#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP endpoints of nodes: health for load balancers, metrics for Prometheus, the status, a
page. HAProxy in front follows the lead. HTTP-1: without users no request changes the state of the
group; http_access.py has the users."""
import json
import signal
import socket
import subprocess

import _harness as h
from _hosts import Hosts
from _monitoring import Prometheus, ask, bound, free_ports, promtool, rules_hold, said

PATHS = ("/", "/metrics", "/health", "/leader", "/replica", "/readiness", "/liveness", "/status",
         "/history")
HAPROXY = """defaults
  mode tcp
  timeout connect 2s
  timeout client 60s
  timeout server 60s
listen shop
  bind 127.0.0.1:{front}
  option httpchk GET /leader
  http-check expect status 200
  default-server inter 100ms fall 1 rise 1 on-marked-down shutdown-sessions
"""


def who(first, path, replicas=(0, 1, 2)):
    return [i for i in replicas if said(first + i, path) == 200]


def health(scenario, group, first):
    leader = group.leader()
    h.wait_until(lambda: who(first, "/leader") == [leader], 10, "/leader: the leader alone")
    others = [i for i in range(3) if i != leader]
    h.wait_until(lambda: who(first, "/replica?lag=1s") == others, 10, "/replica: the followers")
    scenario.check(who(first, "/readiness") == [0, 1, 2] == who(first, "/health")
                   and who(first, "/liveness") == [0, 1, 2], "all are ready, well and alive")
    _, text, _ = ask(first + others[0], "/leader")
    answer = json.loads(text)
    scenario.check(answer["leader"] == leader and answer["reason"] == "this replica is a follower"
                   and answer["replica"] == others[0], "a follower names the leader", text)


def is_exposition(scenario, first):
    for i in range(3):
        status, text, headers = ask(first + i, "/metrics")
        good, why = promtool("check", "metrics", text=text)
        scenario.check(status == 200 and good and not why
                       and headers["Content-Type"].startswith("text/plain; version=0.0.4"),
                       f"promtool check metrics: replica {i}", why)


def status_is_the_same(scenario, group, first):
    _, text, _ = ask(first, "/status")
    asked, by_socket = json.loads(text), group.status(0)
    scenario.check(asked.keys() == by_socket.keys() and asked["pid"] == by_socket["pid"],
                   "/status is the control socket's answer", text[:500])


def raw(port, data):
    """The answer to bytes that are no proper request; b"": the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
        s.sendall(data)
        try:
            return s.recv(65536)
        except ConnectionResetError:
            return b""


def odd_requests(scenario, first):
    scenario.check(ask(first, "/nothing")[0] == 404, "an unknown path: 404")
    scenario.check(ask(first, "/replica?lag=soon")[0] == 400, "an invalid lag: 400")
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        scenario.check(ask(first, "/status", method=method)[0] in (405, 501), f"{method}: refused")
    for method in ("HEAD", "OPTIONS"):
        scenario.check(ask(first, "/liveness", method=method)[0] == 200, f"{method}: as GET")
    many = b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 20000 + b"\r\n\r\n"
    scenario.check(b" 200 " not in raw(first, many)[:20], "endless headers: refused")
    scenario.check(b" 200 " not in raw(first, b"\x16\x03\x01" + bytes(300) + b"\r\n\r\n")[:20],
                   "no HTTP at all: refused")
    scenario.check(said(first, "/liveness") == 200, "the node continues")


def fails_over(scenario, group, first):
    old = group.leader()
    h.wait_until(lambda: who(first, "/readiness") == [0, 1, 2], 30, "all are ready")
    group.signal_node(old, signal.SIGKILL)
    rest = [i for i in range(3) if i != old]
    new = h.wait_until(lambda: [i for i in rest if said(first + i, "/leader") == 200], 30,
                       "another replica answers /leader")
    scenario.check(True, f"replica {old} was killed, replica {new[0]} answers /leader")
    h.wait_until(lambda: who(first, "/readiness") == [0, 1, 2], 60,
                 "the lost replica is ready again")


def one_host(scenario):
    port, first = h.free_port(), free_ports(3)
    options = ["--http", str(first), "--checkpoint-every", "1"]
    with h.Group(scenario, h.redis_program(port), port=port, options=options,
                 record=True) as group:
        client = h.Redis(port, 20)
        client("SET", "key", "value")
        health(scenario, group, first)
        for path in PATHS:
            code = ask(first + group.leader(), path)[0]
            good = (200, 503) if path == "/replica" else (200,)
            scenario.check(code in good, f"{path}: answered", str(code))
        is_exposition(scenario, first)
        status_is_the_same(scenario, group, first)
        odd_requests(scenario, first)
        client.close()
        fails_over(scenario, group, first)
        scenario.check(h.Redis(port, 20)("GET", "key") == b"value", "redis serves")
        group.settle()
    scenario.check_equal(group, "--prefix")


def taken(scenario):
    """A node runs without the address while another process has it, and binds it once it is
    free."""
    port, first = h.free_port(), free_ports(1)
    with bound(first) as holder:
        holder.listen()
        with h.Group(scenario, h.redis_program(port), port=port, replicas=1,
                     options=["--http", str(first)]) as group:
            log = group.dir / "r0/node.log"
            h.wait_until(lambda: "HTTP is not answered yet" in log.read_text(), 20,
                         "a taken address is reported")
            scenario.check(h.redis_answers(port)
                           and "cannot answer HTTP" in group.log.read_text(),
                           "a taken address: the group serves without it, and reports it")
            holder.close()
            h.wait_until(lambda: said(first, "/leader") == 200, 20,
                         "the address is bound once free")
    scenario.check(True, "a taken address is bound once it is free")


class Load:
    """redis-benchmark, until end() is called."""

    def __init__(self, port):
        self.port = port

    def __enter__(self):
        self.process = subprocess.Popen(
            ["redis-benchmark", "-p", str(self.port), "-c", "8", "-n", "100000000", "-q", "-t",
             "set"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __exit__(self, kind, error, trace):
        self.process.terminate()
        self.process.wait()
        return False


def metrics_of(prometheus, leader):
    def there():
        return prometheus.value("sum(up)") == 3 and prometheus.value("sum(crane_is_leader)") == 1 \
            and prometheus.query("crane_is_leader == 1")
    found = h.wait_until(there, 30, "Prometheus has all three replicas")
    return dict(list(found)[0])["replica"] == str(leader)


def watched(scenario):
    """Prometheus sees load, fail-over and a loss. The loss is permanent, because the nodes run
    without crane-run."""
    port, http = h.free_port(), h.free_port()
    addresses = [f"127.0.0.{i + 1}" for i in range(3)]
    places = [f"{a}:{http}" for a in addresses]
    with Hosts(scenario, h.redis_program(port), addresses=addresses, port=port,
               replica=lambda i: {"http": places[i]}) as hosts, \
            Prometheus(scenario, places) as prometheus:
        old = hosts.leader()
        scenario.check(metrics_of(prometheus, old), "Prometheus sees the leader")
        # The rules may have been evaluated before the leader was scraped for the first time.
        h.wait_until(lambda: not prometheus.alerts(), 30, "rules know all three replicas")
        with Load(port):
            h.wait_until(lambda: (prometheus.value(
                "max(rate(crane_proposals_committed_total[5s]))") or 0) > 100, 30,
                "Prometheus sees the load")
        # A server that is late for a moment is reported at once; an alert comes only if it stays
        # late.
        alerts = prometheus.alerts("firing")
        scenario.check(not alerts, "Prometheus sees the load, and no alert", str(alerts))
        reigns = prometheus.value("max(crane_leader_changes_total)")
        hosts.nodes[old].kill()
        hosts.wait(old)
        h.wait_until(lambda: (prometheus.value("max(crane_leader_changes_total)") or 0) > reigns,
                     30, "Prometheus sees the fail-over")
        h.wait_until(lambda: prometheus.value("max(crane_losses_tolerated)") == 0, 30,
                     "Prometheus sees that the group can lose no replica")
        h.wait_until(lambda: "CraneOneLossStopsIt" in prometheus.alerts(), 30,
                     "the alert for this is pending")
        scenario.check(True, "Prometheus sees the fail-over, and alerts: one loss from stopping")


def behind_haproxy(scenario):
    """Debian's HAProxy checks /leader of three hosts, which refuse clients unless they lead."""
    h.need("haproxy")
    front, http = h.free_port(), h.free_port()
    addresses = [f"127.0.0.{i + 1}" for i in range(3)]
    port, between = h.free_port(), h.free_port()
    hosts = Hosts(scenario, h.redis_program(port), addresses=addresses, port=port, fabric="tcp",
                  group={"durability": "disk"}, clients={"on_follower": "refuse"},
                  replica=lambda i: {"http": f"{addresses[i]}:{http}", "port": between})
    conf = scenario.work / "haproxy.cfg"
    conf.write_text(HAPROXY.format(front=front) + "".join(
        f"  server host{i} {a}:{port} check port {http}\n" for i, a in enumerate(addresses)))
    with hosts:
        balancer = subprocess.Popen(["haproxy", "-q", "-db", "-f", str(conf)],
                                    stdin=subprocess.DEVNULL)
        try:
            def answers():
                try:
                    client = h.Redis(front, 2)
                    try:
                        return client("INCR", "n")
                    finally:
                        client.close()
                except (OSError, h.Failure):
                    return None
            h.wait_until(answers, 30, "redis answers through HAProxy")
            for _ in range(3):
                old = hosts.leader()
                hosts.nodes[old].kill()
                hosts.wait(old)
                h.wait_until(answers, 30, "redis answers through HAProxy after the leader's loss")
                scenario.check(hosts.leader(others_than=[old]) != old,
                               f"replica {old} was killed: HAProxy goes to the next leader")
                hosts.start(old)
                h.wait_until(hosts.serves, 60, "the lost replica is back")
            count = h.wait_until(answers, 10, "an answer comes")
            scenario.check(count >= 5, "the counter continues", str(count))
        finally:
            balancer.terminate()
            balancer.wait()


def body(scenario):
    h.need("redis-server", "redis-benchmark", "promtool", "prometheus")
    rules_hold(scenario)
    one_host(scenario)
    taken(scenario)
    watched(scenario)
    behind_haproxy(scenario)


h.run_scenario("monitoring", body)
