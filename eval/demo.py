#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: three replicas of stock apache2, then of redis; real clients; the leader is killed
again and again under load, and no client notices.

Ends by itself after about a minute, with a summary; exit status 0 when all went as it should.
--record FILE draws the terminal's output as an SVG picture.
"""
import argparse
import contextlib
import hashlib
import http.client
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE.parent / "tests" / "e2e", HERE / "measure"):
    sys.path.insert(0, str(folder))
import _harness as h  # noqa: E402
from recording import Recording  # noqa: E402
from server_tls import make_certificate  # noqa: E402
from session import Place  # noqa: E402

PORT = 8080
KILLS = 3   # of each group's leader
DOWNLOAD_MB = 128


FIRST = """This starts three replicas of an unmodified server: first Debian's apache2, then redis.
Clients keep asking while the leading replica is killed with kill -9, three times each.
At the end you see that no answer is missing and that all replicas wrote the same bytes."""
NEXT = """   What to try next:
     crane-run -- redis-server redis.conf                        # your own server
     crane-run --data /var/lib/redis -- redis-server redis.conf  # its data last
     crane-ctl status                                            # how many may be lost
     crane-run doctor                                            # what this machine lacks"""


class Summary:
    def __init__(self):
        self.lines, self.good = [], True

    def step(self, text):
        print(f"\n== {text}", flush=True)

    def note(self, good, text):
        self.good = self.good and bool(good)
        self.lines.append(("ok  " if good else "NOT ") + text)


class Client(threading.Thread):
    """Asks again and again on one connection; counts answers, and notes each that is missing."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.wrong = port, [], []
        self.stopping = threading.Event()

    def run(self):
        try:
            self.talk()
        except (OSError, ValueError, IndexError, http.client.HTTPException, h.Failure) as error:
            self.wrong.append(f"{type(error).__name__}: {error}")

    def ask(self, question, is_right):
        opened = time.monotonic()
        got = question()
        self.answers.append((opened, time.monotonic()))
        if not is_right(got):
            self.wrong.append(f"{type(self).__name__} got {str(got)[:200]}")
        return got

    def first_after(self, moment):
        return next((done for opened, done in list(self.answers) if opened > moment), None)

    def end(self):
        self.stopping.set()
        self.join(120)


class KeptAlive(Client):
    """HTTP/1.1, one request after the other on one connection."""

    def talk(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.connect()
        connection.auto_open = 0   # it must never end

        def page():
            connection.request("GET", "/")
            answer = connection.getresponse()
            return answer.status, answer.read()
        while not self.stopping.wait(0.002):
            self.ask(page, lambda got: got[0] == 200 and got[1])


class Pipeline(Client):
    """A hundred INCRs at once, which must give the next hundred numbers."""

    def talk(self):
        client, got = h.Redis(self.port, 20), [0]

        def batch():
            client.socket.sendall(b"INCR pipelined\r\n" * 100)
            return [client.answer() for _ in range(100)]
        while not self.stopping.is_set():
            wanted = list(range(got[-1] + 1, got[-1] + 101))
            got = self.ask(batch, wanted.__eq__)


class Transaction(Client):
    """One MULTI that stays open through all kills; EXEC is its last word."""

    def talk(self):
        client = h.Redis(self.port, 20)
        client("MULTI")
        while not self.stopping.wait(0.05):
            self.ask(lambda: client("INCR", "once"), "QUEUED".__eq__)
        wanted = list(range(1, len(self.answers) + 1))
        self.ask(lambda: client("EXEC"), wanted.__eq__)


class Download(Client):
    """curl over TLS, again and again; its bytes are compared with the file's."""

    def __init__(self, port, certificate, digest):
        super().__init__(port)
        self.digest = digest
        self.command = (f"curl -sS --limit-rate 40M --cacert {certificate} "
                        f"https://localhost:{port}/large.bin | sha256sum")

    def talk(self):
        while not self.stopping.is_set():
            self.ask(lambda: subprocess.run(
                self.command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False).stdout, lambda text: self.digest in text)


def free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("0.0.0.0", port))
            return True
        except OSError:
            return False


def show_page(summary, port):
    summary.step(f"a client: curl -i http://127.0.0.1:{port}/")
    page = subprocess.run(["curl", "-sS", "-i", f"http://127.0.0.1:{port}/"], timeout=20,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace").stdout
    print("\n".join("   " + line for line in page.splitlines()[:3]))
    summary.note(page.startswith("HTTP/1.1 200"), "curl got the page of stock apache2")


def show_load(summary, port):
    summary.step("a load: ab -n 3000 -c 16")
    result = h.ab(f"http://127.0.0.1:{port}/", 3000, 16)
    print(f"   {result['complete']} answered, {result['failed']} failed, {result['rate']:.0f} "
          f"requests/s, 99 % within {result['p99']:.1f} ms")
    summary.note(h.ab_good(result, 3000), "ab: 3000 requests, 0 failed")


class Survival:
    """What lived through the kills, over all groups of the demo."""

    def __init__(self):
        self.kills = self.connections = self.answers = self.failed = 0

    def kill_leader(self, group, probe):
        h.wait_until(group.may_lose_one, 60, "crane-ctl status says that one may be lost")
        leader = group.leader()
        killed = group.replica(leader)
        print(f"   replica {leader} leads: kill -9 {killed['node_pid']} (its node) "
              f"{killed['server_pid']} (its server)")
        moment = time.monotonic()
        for pid in (killed["node_pid"], killed["server_pid"]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass   # its container fell with the node
        h.wait_until(lambda: probe.first_after(moment) or probe.wrong, 20, "clients are served")
        gap = ((probe.first_after(moment) or moment) - moment) * 1000
        h.wait_until(lambda: group.leader() != leader, 20, "another replica leads")
        now = group.leader()
        adopted = (group.status(now) or {}).get("last_adopted", 0)
        print(f"   replica {now} leads now, with {adopted} connections of the old leader; next "
              f"answer {gap:.1f} ms after the kill")
        self.kills += 1
        self.connections += adopted

    def live_through(self, summary, group, clients, what):
        for client in clients:
            client.start()
        probe = clients[0]
        try:
            h.wait_until(lambda: len(probe.answers) > 20, 20, "the first client is served")
            for _ in range(KILLS):
                self.kill_leader(group, probe)
        finally:
            for client in clients:
                client.end()
        wrong = [w for client in clients for w in client.wrong]
        answers = sum(len(client.answers) for client in clients)
        print(f"   {what}: {answers} answers, {len(wrong)} wrong or missing",
              *wrong[:3], sep="\n   ")
        self.answers += answers
        self.failed += len(wrong)
        summary.note(not wrong, f"{what}: {answers} answers through {KILLS} kills of the leader, "
                                f"{len(wrong)} failed")


def page_of(work):
    """A large file below the server's root, a certificate; its digest."""
    key, certificate = make_certificate(work)
    line = bytes(i * 7 % 251 for i in range(1 << 20))
    digest = hashlib.sha256()
    (work / "www").mkdir(exist_ok=True)
    with open(work / "www" / "large.bin", "wb") as out:
        for i in range(DOWNLOAD_MB):
            out.write(line[i:] + line[:i])
            digest.update(line[i:] + line[:i])
    return key, certificate, digest.hexdigest()


def compare(summary, group):
    summary.step("did the replicas stay equal? crane-diff of all they ever wrote")
    said = group.settle()
    amount = max(s["outputs_bytes"] for s in said.values())
    alarms = [s["verified"]["alarm"] for s in said.values() if s["verified"]["alarm"]]
    checked = max(s["verified"]["index"] for s in said.values())
    group.stop()
    # One that was killed has recorded less.
    status, text = group.diff("--prefix")
    print("   " + text.splitlines()[-1])
    summary.note(status == 0, f"what they wrote to clients is identical, Date headers included "
                              f"({amount} bytes)")
    summary.note(not alarms and checked, "they compare themselves while they run: equal up to log "
                                         f"index {checked}" if not alarms else alarms[0])


def show_apache(out, work, summary, survival):
    port = PORT if free(PORT) else h.free_port()
    tls = h.free_port()
    key, certificate, digest = page_of(work)
    conf = h.apache_configuration(
        work, 80, "LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\n"
        f"Listen 443\nMaxKeepAliveRequests 0\n<VirtualHost *:443>\nSSLEngine on\n"
        f"SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n</VirtualHost>")
    (work / "www" / "index.html").write_text("It works!\n")
    command = ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"]
    group = h.Group(Place(out, work, "demo"), command, port=port, record=True, name="demo",
                    options=["--publish", f"{port}:80", "--publish", f"{tls}:443"])
    summary.step(f"crane-run -n 3 --publish {port}:80 --publish {tls}:443 --record ... -- apache2")
    with group:
        print("\n".join("   " + line[line.index("crane-run:"):]   # without the time
                        for line in h.tail(group.log).splitlines() if "crane-run:" in line))
        summary.note(True, f"three replicas of stock apache2, one address: port {port}")
        show_page(summary, port)
        show_load(summary, port)
        summary.step(f"the leader dies {KILLS} times: clients that keep their connections, "
                     f"a download of {DOWNLOAD_MB} MB over TLS")
        clients = [KeptAlive(port) for _ in range(8)]
        clients.append(Download(tls, certificate, digest))
        survival.live_through(summary, group, clients, "apache2")
        compare(summary, group)


def show_redis(out, work, summary, survival):
    port = h.free_port()
    group = h.Group(Place(out, work, "demo"), h.redis_program(port), port=port, name="demo-redis")
    summary.step("crane-run -n 3 -- redis-server")
    with group:
        summary.step(f"the leader dies {KILLS} times: a pipeline, and one transaction over all")
        clients = [Pipeline(port), Transaction(port)]
        survival.live_through(summary, group, clients, "redis")


def run(out, work, summary):
    survival = Survival()
    show_apache(out, work, summary, survival)
    show_redis(out, work, summary, survival)
    return survival


def demonstrate(out):
    """Exit status 0: everything went as it should."""
    print(FIRST, flush=True)
    began, summary = time.monotonic(), Summary()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-demo-", dir="/var/tmp"))
    work.chmod(0o755)
    try:
        h.need("apache2", "ab", "curl", "openssl", "redis-server")
        survival = run(out, work, summary)
        summary.note(True, "stopped; no process, mount or shared memory is left")
    except (h.Failure, h.CannotRun, OSError, subprocess.SubprocessError) as failure:
        summary.note(False, f"the demo broke off: {failure}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"\n== summary, after {time.monotonic() - began:.0f} s")
    for line in summary.lines:
        print("   " + line)
    if not summary.good:
        print("   Something is wrong here: run `make test`; what messages mean is in "
              "runtime/launcher/REFERENCE.md.")
        return 1
    print(f"   Three copies of one server acted as one: {survival.connections} connections lived "
          f"through {survival.kills} kills of the\n   leader; {survival.answers} answers, "
          f"{survival.failed} failed requests.")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE.svg",
                        help="draw the output as a picture of a terminal")
    options = parser.parse_args()
    if not h.can_contain():
        print("demo: containers need root and the package lxc; run `make demo` as root "
              "(or see `crane-run --no-container`)", file=sys.stderr)
        return 2
    recording = Recording("make demo") if options.record else contextlib.nullcontext()
    with recording:
        status = demonstrate(pathlib.Path(options.out).resolve())
    if options.record:
        # The picture ends here; the lines below appear only on the terminal.
        options.record.write_text(recording.svg("make demo: three replicas of apache2 and redis"))
    if status == 0:
        print(f"\n{NEXT}")
    return status


sys.exit(main())
