#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may use HTTP: TLS, users, roles, limits.
GOAL    HTTP-1: only an operator's request changes the state; other machines neither read without a
        user nor take the places of this machine; renewed files are used, wrong ones never.
METHOD  redis behind nodes that answer by TLS at all addresses. Clients are curl, openssl s_client
        and python's ssl: of this machine, and of two others (namespaces behind a bridge).
CHECKS  statuses of each role, TLS versions, a transfer by POST, renewal while a client goes on,
        wrong files at the start and afterwards, a flood, slow requests, passwords tried in a row.
"""
import http.client
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys

import _harness as h
from _hosts import Hosts
from _monitoring import free_ports
from _network import Network

PUBLIC = ("/liveness", "/health", "/leader", "/replica", "/readiness")
READ = ("/", "/metrics", "/status", "/history")
JSON = ("-H", "Content-Type: application/json")
MANY = 100   # connections of the flood: more than one network has places
FLOOD = """
import socket, sys
held = []
for _ in range(int(sys.argv[3])):
    s = socket.socket()
    s.connect((sys.argv[1], int(sys.argv[2])))
    held.append(s)
print("connected", flush=True)
sys.stdin.read()
"""


def openssl(*words, text=""):
    return subprocess.run(["openssl", *words], input=text, capture_output=True, text=True,
                          timeout=60)


class Files:
    """The certificate, its key and the users in one directory."""

    def __init__(self, scenario, addresses):
        self.home = scenario.work / "http"
        self.home.mkdir()
        self.addresses = addresses
        self.certificate, self.key = self.home / "http.crt", self.home / "http.key"
        self.users = self.home / "users"
        self.lines = {}
        self.make("http")

    def make(self, name):
        names = ",".join(f"IP:{a}" for a in self.addresses)
        done = openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                       "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
                       f"subjectAltName={names}", "-keyout", str(self.home / f"{name}.key"),
                       "-out", str(self.home / f"{name}.crt"))
        if done.returncode != 0:
            raise h.Failure(done.stderr)
        return self.home / f"{name}.crt", self.home / f"{name}.key"

    def write(self, text=None):
        """Replaces the file of users as an editor does."""
        fresh = self.home / "users.new"
        fresh.write_text("".join(f"{name}:{rest}\n" for name, rest in self.lines.items())
                         if text is None else text)
        fresh.chmod(0o600)
        fresh.rename(self.users)

    def add(self, name, role, password):
        made = openssl("passwd", "-6", "-stdin", text=password).stdout.strip()
        self.lines[name] = f"{role}:{made}"

    def options(self):
        return ["--http-users", str(self.users), "--http-certificate", str(self.certificate),
                "--http-key", str(self.key)]


class Client:
    """curl, from this machine or from the namespace of `prefix`."""

    def __init__(self, files, address, first, prefix=(), scheme="https"):
        self.files, self.address, self.first = files, address, first
        self.prefix, self.scheme = list(prefix), scheme

    def __call__(self, path, *words, replica=0):
        """(status, body); status 0: no answer."""
        url = f"{self.scheme}://{self.address}:{self.first + replica}{path}"
        done = subprocess.run(
            [*self.prefix, "curl", "-s", "--cacert", str(self.files.certificate), "--max-time",
             "20", "-w", "\n%{http_code}", *words, url], capture_output=True, text=True, timeout=60)
        body, _, status = done.stdout.rpartition("\n")
        return int(status or 0), body

    def status(self, path, *words, replica=0):
        return self(path, *words, replica=replica)[0]

    def control(self, request, *words, replica=0):
        return self("/control", *JSON, "-d", json.dumps(request), *words, replica=replica)


def metric(client, name):
    found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", client("/metrics", *user("ada"))[1], re.M)
    return float(found[1]) if found else None


def user(name, password=None):
    return "-u", f"{name}:{password or name + '-word'}"


# --- before the start --------------------------------------------------------------------------

def refused_at_start(scenario, files, address):
    """Wrong options and files, by crane-run, its dry run, and a node with a group's file."""
    at, other = f"{address}:9100", files.make("other")
    users, certificate = files.options()[:2], files.options()[2:]
    bad = {"mode": ("bob:read:$6$s$" + "x" * 86, 0o644), "role": ("# x\nbob:opertor:$6$x$y", 0o600),
           "hash": ("bob:read:secret", 0o600)}
    for name, (text, mode) in bad.items():
        (files.home / name).write_text(text + "\n")
        (files.home / name).chmod(mode)
    open_key = files.home / "open.key"
    shutil.copy(files.key, open_key)
    open_key.chmod(0o644)
    uses = [
        (100, [], ["other machines reach it", "--http-users", "--http-open"]),
        (100, users, ["unencrypted", "--http-certificate and --http-key"]),
        (100, certificate, ["no users are named"]),
        (100, [*users, *certificate[:2]], ["needs --http-key"]),
        (195, [*certificate[:2], "--http-key", str(other[1]), *users],
         ["other.key", "name the key"]),
        (195, [*certificate[:2], "--http-key", str(open_key), *users],
         ["(mode 0644)", "chmod 600"]),
        (195, [*users, "--http-certificate", "/none.crt", *certificate[2:]], ["/none.crt"]),
        (195, ["--http-users", str(files.home / "mode"), *certificate], ["others may read it"]),
        (195, ["--http-users", str(files.home / "role"), *certificate],
         ["role:2: ", "did you mean operator?"]),
        (195, ["--http-users", str(files.home / "hash"), *certificate],
         ["hash:1: ", "openssl passwd -6"]),
        (195, ["--http-users", "/none", *certificate], ["/none: No such file"])]
    for status, options, words in uses:
        for more in ([], ["--dry-run"]):
            done = subprocess.run(
                [str(scenario.out / "crane-run"), "--dir", str(scenario.work / "refused"), "--name",
                 "refused", "--no-container", "--http", at, *options, *more, "--", "sleep", "60"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                text=True, timeout=60)
            scenario.check(done.returncode == status and all(w in done.stdout for w in words),
                           f"{' '.join([words[0], *more])}: refused with {status}",
                           f"{done.returncode}: {done.stdout}")
    hosts = Hosts(scenario, ["sleep", "60"], addresses=["127.0.0.1"],
                  replica=lambda i: {"http": at})
    for status, words, http_keys in (
            (118, "open = true", {}),
            (195, "openssl passwd -6", {"users": str(files.home / "hash"),
                                        "certificate": str(files.certificate),
                                        "key": str(files.key)})):
        hosts.sections["http"] = http_keys
        hosts.start(0, config=hosts.write("wrong.toml"))
        got = hosts.nodes[0].wait(60)
        scenario.check(got == status and words in hosts.said(0),
                       f"a group's file: refused with {status}", f"{got}: {hosts.said(0)}")


# --- TLS and roles -----------------------------------------------------------------------------

def versions(scenario, address, first):
    for version, good in (("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
        done = openssl("s_client", "-connect", f"{address}:{first}", version, "-cipher",
                       "DEFAULT@SECLEVEL=0", text="")
        made = "Cipher is (NONE)" not in done.stdout and "Cipher is" in done.stdout
        scenario.check(made == good, f"openssl s_client {version}: {'a' if good else 'no'} session",
                       done.stdout[-500:] + done.stderr[-500:])


def roles(scenario, near, far):
    plain = Client(near.files, near.address, near.first, scheme="http")
    scenario.check(plain.status("/liveness") == 0, "without TLS: no answer")
    for client, where in ((near, "this machine"), (far, "another machine")):
        good = [client.status(p) for p in PUBLIC]
        scenario.check(all(s in (200, 503) for s in good), f"{where}: checks need no user",
                       str(good))
        for words, want in (((), 401), (user("nobody"), 401), (user("ada", "wrong"), 401),
                            (user("ada"), 200), (user("prom"), 200),
                            (("-H", "Authorization: Bearer prom.prom-word"), 200),
                            (("-H", "Authorization: Bearer prom-word"), 401)):
            got = [client.status(p, *words) for p in READ]
            scenario.check(got == [want] * len(READ), f"{where}: {words or 'no user'}: {want}",
                           str(got))
    _, text = far("/status", "-i")
    scenario.check("WWW-Authenticate: Basic" in text and "a user is required" in text,
                   "401 asks for a user", text)


def control(scenario, group, far):
    """POST /control: who may, and that the answers are those of the control socket."""
    leader = group.leader()
    follower = next(i for i in range(3) if i != leader)
    transfer = {"do": "transfer", "to": follower}
    for words, want in (((), 401), (user("prom"), 403), (user("ada", "wrong"), 401)):
        status, text = far.control(transfer, *words, replica=leader)
        scenario.check(status == want, f"POST /control, {words or 'no user'}: {want}", text)
    refused = [
        (415, ["-H", "Content-Type: text/plain"], {"do": "status"}),
        (403, ["-H", "Origin: https://evil.example"], {"do": "status"}),
        (403, [], {"do": "supervise"}),
        (403, [], {"do": "hand_over", "to": "x"}),
        (400, [], {"do": "nothing"}),
        (413, [], {"do": "x" * 70000})]
    for want, words, request in refused:
        status, text = far("/control", *(words if "Content-Type: text/plain" in words else
                                         [*JSON, *words]), "-d", json.dumps(request), *user("ada"))
        scenario.check(status == want, f"POST /control, {request['do'][:10]} {words}: {want}", text)
    scenario.check(far.status("/liveness", "-H", "X: " + "y" * 9000) == 431, "a large head: 431")
    scenario.check(group.leader() == leader, "no refused request moved the lead")
    status, text = far.control(transfer, *user("ada"), replica=follower)
    socket_says = asked(group.dir / f"r{follower}/control.sock", transfer)
    scenario.check(status == 409 and json.loads(text) == socket_says,
                   "a follower's answer is that of its control socket", text)
    _, text = far.control({"do": "status"}, *user("ada"), replica=leader)
    scenario.check(json.loads(text).keys() == group.status(leader).keys(),
                   "so is the status", text[:300])

    def moved():
        return far.control(transfer, *user("ada"), replica=group.leader())[0] == 200 and \
            group.leader() == follower
    h.wait_until(moved, 60, "an operator transfers the lead by POST")
    log = (group.dir / f"r{leader}/node.log").read_text()
    scenario.check("the operator ada (" in log and "sent transfer by HTTP: accepted" in log,
                   "an operator transfers the lead by POST, and node.log names the operator")


def asked(path, request):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(20)
        s.connect(str(path))
        s.send(json.dumps(request).encode())
        return json.loads(s.recv(1 << 20))


# --- files that change -------------------------------------------------------------------------

class Steady:
    """A client that keeps one TLS connection and asks again and again."""

    def __init__(self, files, address, port):
        trust = ssl.create_default_context(cafile=str(files.certificate))
        self.connection = http.client.HTTPSConnection(address, port, timeout=20, context=trust)
        self.connection.connect()
        self.socket = self.connection.sock

    def ask(self):
        self.connection.request("GET", "/liveness")
        answer = self.connection.getresponse()
        answer.read()
        return answer.status == 200 and self.connection.sock is self.socket


def certificate_at(address, port):
    return ssl.get_server_certificate((address, port), timeout=20)


def renewal(scenario, group, files, address, first):
    log = group.dir / "r0/node.log"
    steady, old = Steady(files, address, first), files.certificate.read_text()
    fresh = files.make("fresh")

    def goes_on(condition):
        return lambda: steady.ask() and condition()
    shutil.copy(fresh[1], files.key)   # the other half does not come
    h.wait_until(goes_on(lambda: "cannot use the key of HTTP" in log.read_text()), 30,
                 "a key that does not match is reported")
    scenario.check(certificate_at(address, first) == old, "and the old pair stays in use")
    shutil.copy(fresh[0], files.certificate)
    h.wait_until(goes_on(lambda: certificate_at(address, first) == fresh[0].read_text()), 30,
                 "the new pair is used once it is whole")
    scenario.check(steady.ask(), "a client goes on in its connection meanwhile")
    said = log.read_text().count("cannot use the key of HTTP")
    scenario.check(said == 1, "the wrong pair is reported once", str(said))


def users_change(scenario, group, files, near):
    log = group.dir / "r0/node.log"
    files.add("eve", "read", "eve-word")
    files.write()
    h.wait_until(lambda: near.status("/status", *user("eve")) == 200, 30, "a new user may read")
    files.write("ada:operator:$6$short\n")
    h.wait_until(lambda: f"{files.users}:1: ada: its hash is not whole" in log.read_text(), 30,
                 "a wrong line is reported")
    scenario.check([near.status("/status", *user(name)) for name in ("ada", "eve")] == [200, 200],
                   "a wrong line: reported with its number, and the users stay as before")
    del files.lines["eve"]
    files.write()
    h.wait_until(lambda: near.status("/status", *user("eve")) == 401, 30, "a removed user is out")
    scenario.check(near.status("/status", *user("ada")) == 200, "users are read again on a change")


# --- limits ------------------------------------------------------------------------------------

def flood(scenario, near, far, third):
    before = metric(near, "crane_http_connections_refused_total")
    holder = subprocess.Popen(
        [*far.prefix, sys.executable, "-c", FLOOD, far.address, str(far.first), str(MANY)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        holder.stdout.readline()
        for client, where in ((near, "this machine"), (third, "a third machine")):
            scenario.check(client.status("/metrics", *user("prom")) == 200,
                           f"a flood from one machine: {where} is answered")
        h.wait_until(lambda: metric(near, "crane_http_connections_refused_total") - before
                     >= MANY - 16 - 2, 30, "the excess is closed and counted")
        # Their time ends, although they are still there.
        h.wait_until(lambda: far.status("/metrics", *user("prom")) == 200, 60,
                     "the flooding machine itself gets a place again")
        scenario.check(holder.poll() is None, "connections without a request lose their places")
    finally:
        holder.stdin.close()
        holder.wait(20)


def slow(scenario, near):
    """A request that comes byte by byte, before the handshake and in it."""
    before = metric(near, "crane_http_connections_timed_out_total")
    trust = ssl.create_default_context(cafile=str(near.files.certificate))
    with socket.create_connection((near.address, near.first), timeout=60) as plain, \
            trust.wrap_socket(plain, server_hostname=near.address) as s:
        s.settimeout(0.2)
        closed = []

        def one_byte():
            try:
                s.sendall(b"G")
                closed.extend([True] if s.recv(1) == b"" else [])
            except TimeoutError:
                pass
            except OSError:
                closed.append(True)
            return closed
        h.wait_until(one_byte, 60, "a request byte by byte is cut off")
    scenario.check(metric(near, "crane_http_connections_timed_out_total") > before,
                   "a slow request is cut off and counted")


def guesses(scenario, group, near, far):
    """Passwords tried in a row: limited, counted, logged, and users who are known go on."""
    before = metric(near, "crane_http_logins_failed_total")
    scenario.check(far.status("/status", *user("ada")) == 200, "ada is known")
    # In one connection of one curl, so that they come faster than the limit.
    last, text = far("/status?[1-80]", "-o", "/dev/null", *user("ada", "guess"))
    seen = {last, *map(int, text.split())}
    scenario.check(429 in seen and seen <= {401, 429}, "too many passwords: 429", str(seen))
    scenario.check(far.status("/status", *user("ada")) == 200
                   and near.status("/status", *user("prom", "guess")) == 401,
                   "users who are known, and this machine, are not kept out")
    scenario.check(metric(near, "crane_http_logins_failed_total") > before
                   and "HTTP: a wrong name or password from" in
                   (group.dir / "r0/node.log").read_text(), "failed logins are counted and logged")


# --- groups ------------------------------------------------------------------------------------

def with_users(scenario, network, files, address):
    port, first = h.free_port(), free_ports(3)
    options = ["--http", f"0.0.0.0:{first}", *files.options()]
    near = Client(files, "127.0.0.1", first)
    far = Client(files, address, first, network.enter(0))
    third = Client(files, address, first, network.visit())
    with h.Group(scenario, h.redis_program(port), port=port, options=options) as group:
        versions(scenario, "127.0.0.1", first)
        roles(scenario, near, far)
        control(scenario, group, far)
        guesses(scenario, group, near, far)
        flood(scenario, near, far, third)
        slow(scenario, near)
        users_change(scenario, group, files, near)
        renewal(scenario, group, files, "127.0.0.1", first)
        scenario.check(h.redis_answers(port), "redis serves")


def wrong_later(scenario, files):
    """A node that starts again with wrong files serves its clients, but not HTTP, until the files
    are right."""
    port, first = h.free_port(), free_ports(3)
    near = Client(files, "127.0.0.1", first)
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--http", str(first), *files.options()]) as group:
        follower = next(i for i in range(3) if i != group.leader())
        h.wait_until(lambda: near.status("/liveness", replica=follower) == 200, 30, "HTTP answers")
        files.write("wrong\n")
        group.signal_node(follower, signal.SIGKILL)
        log = group.dir / f"r{follower}/node.log"
        h.wait_until(lambda: "until then HTTP is not answered" in log.read_text(), 60,
                     "a node that starts with wrong users reports them")
        scenario.check(near.status("/liveness", replica=follower) == 0, "it never answers openly")
        files.write()
        h.wait_until(lambda: near.status("/liveness", replica=follower) == 200, 60,
                     "it answers once the users are right")
        scenario.check(True, "wrong users after a start: no HTTP until they are right")


def open_to_all(scenario, network, files, address):
    port, first = h.free_port(), free_ports(1)
    far = Client(files, address, first, network.enter(0), scheme="http")
    with h.Group(scenario, h.redis_program(port), port=port, replicas=1,
                 options=["--http", f"{address}:{first}", "--http-open"]):
        got = [far.status(p) for p in READ]
        scenario.check(got == [200] * len(READ), "--http-open: everyone reads", str(got))
        status, text = far.control({"do": "transfer"})
        scenario.check(status == 403 and "no file of users" in text,
                       "--http-open: no one sends requests", text)


def body(scenario):
    h.need("redis-server", "curl", "openssl", "ip")
    with Network(1, visitors=True) as network:
        address = f"{network.planes[0][1]}.254"
        files = Files(scenario, ["127.0.0.1", address])
        files.add("ada", "operator", "ada-word")
        files.add("prom", "read", "prom-word")
        files.write()
        refused_at_start(scenario, files, address)
        with_users(scenario, network, files, address)
        wrong_later(scenario, files)
        open_to_all(scenario, network, files, address)


h.run_scenario("http_access", body)
