#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: three replicas of stock apache2, real clients, the leader killed under load.

Ends by itself after about half a minute, with a summary; exit status 0 when all went as it should.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402

PORT = 8080
LOAD_SECONDS = 8


class Place:
    name = "demo"

    def __init__(self, out, work):
        self.out, self.work = out, work

    def next_number(self):
        return 1


class Summary:
    def __init__(self):
        self.lines, self.good = [], True

    def step(self, text):
        print(f"\n== {text}", flush=True)

    def note(self, good, text):
        self.good = self.good and bool(good)
        self.lines.append(("ok  " if good else "NOT ") + text)


class Probe(threading.Thread):
    """One client that asks for the page again and again, and notes when it was answered."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.errors = port, [], 0
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            opened = time.monotonic()
            try:
                answer = h.http(self.port, b"GET / HTTP/1.0\r\n\r\n", 2)
                if answer.startswith(b"HTTP/1.1 200"):
                    self.answers.append((opened, time.monotonic()))
                    continue
            except OSError:
                pass
            self.errors += 1
            self.stopping.wait(0.001)

    def first_after(self, moment):
        return next((done for opened, done in list(self.answers) if opened > moment), None)


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
    print("\n".join("   " + line for line in page.splitlines()[:8]))
    summary.note(page.startswith("HTTP/1.1 200"), "curl got the page of stock apache2")


def show_load(summary, port):
    summary.step("a load: ab -n 3000 -c 16")
    result = h.ab(f"http://127.0.0.1:{port}/", 3000, 16)
    print(f"   {result['complete']} answered, {result['failed']} failed, {result['rate']:.0f} "
          f"requests/s, 99 % within {result['p99']:.1f} ms")
    summary.note(h.ab_good(result, 3000), "ab: 3000 requests, 0 failed")


def kill_under_load(summary, group, port):
    """Returns the number of the killed replica."""
    summary.step(f"the leader dies under load (ab for {LOAD_SECONDS} s and a probing client)")
    probe = Probe(port)
    probe.start()
    load = subprocess.Popen(["ab", "-q", "-r", "-s", "5", "-t", str(LOAD_SECONDS), "-n", "10000000",
                             "-c", "16", f"http://127.0.0.1:{port}/"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        h.wait_until(lambda: len(probe.answers) > 100, 20, "the probing client is served")
        leader = group.leader()
        killed = group.replica(leader)
        print(f"   replica {leader} leads: kill -9 {killed['node_pid']} (its node) "
              f"{killed['server_pid']} (its apache2)")
        moment = time.monotonic()
        for pid in (killed["node_pid"], killed["server_pid"]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass   # its container fell with the node
        h.wait_until(lambda: probe.first_after(moment), 20, "somebody serves again")
        gap = (probe.first_after(moment) - moment) * 1000
        now = group.leader()
        print(f"   replica {now} leads now; first new request answered {gap:.1f} ms after the kill")
        text, _ = load.communicate(timeout=LOAD_SECONDS + 60)
    finally:
        load.kill()
        probe.stopping.set()
        probe.join(10)
    complete = re.search(r"Complete requests:\s+(\d+)", text)
    failed = re.search(r"Failed requests:\s+(\d+)", text)
    after = sum(1 for opened, _ in probe.answers if opened > moment)
    print(f"   ab: {complete[1] if complete else '?'} requests, {failed[1] if failed else '?'} "
          f"failed; probe: {after} answers after the kill, {probe.errors} requests cut off by it")
    summary.note(complete and now != leader and after > 50,
                 f"replica {leader} was killed, replica {now} took over: {gap:.1f} ms without "
                 "service")
    return leader


def compare(summary, group, killed, replicas):
    summary.step("did the survivors stay equal? crane-diff of all they ever wrote")
    survivors = [n for n in range(replicas) if n != killed]
    said = group.settle(numbers=survivors)
    group.stop()
    status, text = group.diff(recordings=survivors)
    print("   " + text.replace("\n", "\n   "))
    amount = next(iter(said.values()))["outputs_bytes"]
    summary.note(status == 0, f"the survivors' outputs are identical, Date headers included "
                              f"({amount} bytes)")
    status, text = group.diff("--prefix")
    print("   with what the dead one had written: " + text.splitlines()[-1])
    summary.note(status == 0, "what the dead replica had written is a beginning of the same")


def run(out, work, summary):
    port = PORT if free(PORT) else h.free_port()
    group = h.Group(Place(out, work), ["apache2"], port=port, record=True, name="demo",
                    options=["--publish", f"{port}:80"])
    summary.step(f"crane-run -n 3 --publish {port}:80 --record ... -- apache2")
    with group:
        print("\n".join("   " + line for line in h.tail(group.log).splitlines()
                        if "crane-run:" in line))
        summary.note(True, f"three replicas of stock apache2, one address: port {port}")
        show_page(summary, port)
        show_load(summary, port)
        killed = kill_under_load(summary, group, port)
        compare(summary, group, killed, group.replicas)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    options = parser.parse_args()
    if not h.can_contain():
        print("demo: containers need root and the package lxc; run `make demo` as root "
              "(or see `crane-run --no-container`)", file=sys.stderr)
        return 2
    began, summary = time.monotonic(), Summary()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-demo-", dir="/var/tmp"))
    work.chmod(0o755)
    try:
        h.need("apache2", "ab", "curl")
        run(pathlib.Path(options.out).resolve(), work, summary)
        summary.note(True, "stopped; no process, mount or shared memory is left")
    except (h.Failure, h.CannotRun, OSError, subprocess.SubprocessError) as failure:
        summary.note(False, f"the demo broke off: {failure}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"\n== summary, after {time.monotonic() - began:.0f} s")
    for line in summary.lines:
        print("   " + line)
    print("   Three copies of one server acted as one; killing the one in charge cost the pause "
          "above.\n   Next: README.md, `make test`, `make bench`." if summary.good
          else "   Something is wrong here: run `make test`; what messages mean is in "
               "runtime/launcher/README.md.")
    return 0 if summary.good else 1


sys.exit(main())
