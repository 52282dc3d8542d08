# SPDX-License-Identifier: Apache-2.0
"""Starts a server natively or as a group, warms it up, and measures one load of it.

Servers are those of the matrix (tests/e2e/_matrix.py), or look like them.
"""
import contextlib
import csv
import functools
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import _harness as h
import _matrix as m
import usage
from session import CAUSES, ROOT, run_text, tried

LEAST = 64   # requests of a load
# Label: (replicas, options of crane-run); replicas 0 is the server without Crane.
CONFIGURATIONS = {
    "native": (0, []),
    "n=1": (1, []),
    "n=3": (3, []),
    "n=3 classic": (3, ["--admission", "classic"]),
}


def all_kinds(only=""):
    """The servers of the matrix: every KIND of tests/e2e/server_*.py."""
    for path in sorted((ROOT / "tests/e2e").glob("server_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from (kind for kind in module.KINDS if re.search(only, kind.name))


def prepared_server(place, kind):
    """Returns (its directory, the server); a directory that a failed start left is removed
    first."""
    left = place.work / kind.name.replace(" ", "-").replace("/", "-")
    shutil.rmtree(left, ignore_errors=True)
    work = m.place_of(place, kind)
    return work, kind(work, h.free_port())


def warm_requests(requests):
    """Returns the number of requests before the measured ones: a tenth, but enough that every
    client of every server sends one."""
    return max(requests // 10, min(requests, LEAST))


class Native:
    """The server alone, in the same role as a Group; in a control group of its own, where one can
    be made, so that its processor time has that of all that it started."""

    replicas = 1

    def __init__(self, command, port, environment=None, address="127.0.0.1"):
        self.command, self.port, self.environment = command, port, environment or {}
        self.address = address

    def __enter__(self):
        self.group = usage.make_group()
        try:
            self.process = subprocess.Popen(
                self.command, env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=lambda: usage.enter_group(self.group))
        except OSError:
            usage.remove_group(self.group)
            raise
        try:
            h.wait_until(self.answers, 20, f"{self.command[0]} listens natively on {self.port}")
        except BaseException:   # also when the program must end: no server outlives it
            self.__exit__()
            raise
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise h.Failure(f"{self.command[0]} ended with status {self.process.returncode}")
        try:
            socket.create_connection((self.address, self.port), 1).close()
            return True
        except OSError:
            return False

    def processes(self):
        return h.descendants([self.process.pid])

    def stop(self):
        """A Group has it; __exit__ ends this server."""

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for signo in (signal.SIGTERM, signal.SIGKILL):   # php-fpm outlives the script of both
            usage.signal_group(self.group, signo)
            with contextlib.suppress(h.Failure):
                h.wait_until(lambda: usage.remove_group(self.group), 10, "")
                break


def running(place, command, port, replicas, options=(), environment=None, address="127.0.0.1"):
    """A Native (0 replicas) or a Group, to be entered."""
    if replicas == 0:
        return Native(command, port, environment, address)
    return h.Group(place, command, port=port, replicas=replicas, options=options)


@contextlib.contextmanager
def as_it_was(directory):
    """Undoes the server's writes to a directory: a native server has no overlay."""
    kept = f"{directory}.kept"
    subprocess.run(["cp", "-a", "--reflink=auto", str(directory), kept], check=True)
    try:
        yield
    finally:
        shutil.rmtree(directory)
        os.rename(kept, directory)


@contextlib.contextmanager
def started(place, server, requests, replicas, options=()):
    """The server, natively (0 replicas) or as a group, after its first load."""
    native = replicas == 0
    here = running(place, server.native if native else server.command, server.port, replicas,
                   [*server.options, "--checkpoint-every", "0", *options], server.environment,
                   server.native_address())
    with as_it_was(server.work) if native else contextlib.nullcontext(), here:
        h.wait_until(server.ready, 60, f"{server.name} answers")
        server.load(warm_requests(requests))
        yield here


def one_run(place, server, label, configuration, requests):
    """A dictionary of what one start of one configuration gave."""
    replicas, options = configuration
    with started(place, server, requests, replicas, options) as here:
        entries_before = entries_of(here)
        watch, begin = usage.Watch(here.processes()), time.monotonic()
        results = server.load(requests)
        took = time.monotonic() - begin
        used, report = watch.report(here.processes())
        entries = {k: v - entries_before.get(k, 0) for k, v in entries_of(here).items()}
    served = server.requests_made(requests, results)
    return {"server": server.name, "configuration": label, "seconds": took,
            "results": [dict(zip(("what", "rate", "p50_ms", "p99_ms"), r)) for r in results],
            "cpu_us_per_request": used * 1e6 / served,
            "cpu_us_per_request_replica": used * 1e6 / served / max(replicas, 1),
            "entries": entries, "quiet": report.as_json()}


def entries_of(here):
    """Counts of committed entries by type, as the leader's node reports them."""
    if not isinstance(here, h.Group):
        return {}
    status = here.status(here.leader()) or {}
    return {**status.get("entries", {}), "total": status.get("entries_total", 0)}


def bubbles(entries):
    """Percent of the entries; None: there are none."""
    counts = {kind.lower(): count for kind, count in entries.items()}
    return 100 * counts.get("bubble", 0) / counts["total"] if counts.get("total") else None


def median_of(runs, label, what, key):
    """That figure of every run of a configuration."""
    return [r[key] for run in runs if run["configuration"] == label for r in run["results"]
            if r["what"] == what]


def repeated(place, server, configurations, requests, repeats, log=None, failed=None):
    """The runs that could be made, one of each configuration in every repeat: natively and with
    Crane in turn. `log` is a RawLog; `failed` gets {label: [reason]} of those that could not."""
    runs = []
    for repeat in range(repeats):
        for label, configuration in configurations.items():
            run, reason = tried(functools.partial(one_run, place, server, label, configuration,
                                                  requests), CAUSES, f"{server.name}, {label}")
            if not run:
                if failed is not None:
                    failed.setdefault(label, []).append(reason)
                continue
            runs.append({**run, "repeat": repeat})
            if log:
                log.write(runs[-1])
            print(run_text(f"{server.name}, {label}", [(r["what"], r["rate"])
                                                       for r in run["results"]], run["quiet"]),
                  file=sys.stderr)
    return runs


def flat(runs):
    """Runs as rows of one kind of request each."""
    return [{**run, "load": f"{run['server']}: {r['what']}", **r}
            for run in runs for r in run["results"]]


def bench_turn(out, turns, *more):
    """bench-turn's rows: what a turn costs."""
    done = subprocess.run([str(out / "bench-turn"), "--json", "--turns", str(turns), *more],
                          stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    return json.loads(done.stdout)


# --- loads ----------------------------------------------------------------------------------------

def redis_benchmark(port, clients, requests, tests, *more, address="127.0.0.1", prefix=()):
    """Returns [{test, rate, p50_ms, p99_ms}], a row for each of `tests`."""
    done = subprocess.run([*prefix, "redis-benchmark", "-h", address, "-p", str(port),
                           "-n", str(requests), "-c", str(clients), "-t", tests, "--csv", *more],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    rows = list(csv.DictReader(io.StringIO(done.stdout[done.stdout.find('"test"'):])))
    if done.returncode != 0 or len(rows) < len(tests.split(",")):
        raise h.Failure(f"redis-benchmark ended with status {done.returncode}: "
                        f"{done.stdout[-500:]}")
    return [{"test": row["test"], "rate": float(row["rps"]),
             "p50_ms": float(row["p50_latency_ms"]), "p99_ms": float(row["p99_latency_ms"])}
            for row in rows]


def ab(port, page, requests, clients, kept=True):
    """{rate, p50_ms, p99_ms}"""
    found = h.ab(f"http://127.0.0.1:{port}/{page}", requests, clients, kept)
    if not h.ab_good(found, requests):
        raise h.Failure(f"ab, {page}: {found['text'][-500:]}")
    return {"rate": found["rate"], "p50_ms": found["p50"], "p99_ms": found["p99"]}
