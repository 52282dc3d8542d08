# SPDX-License-Identifier: Apache-2.0
"""What measuring programs share: where they run, what they ran on, how they plot; a server without
Crane, and the load of redis-benchmark."""
import argparse
import contextlib
import csv
import io
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
import usage  # noqa: E402


class Place:
    """What Group and its kind need to know of a scenario."""

    def __init__(self, out, work, name="bench"):
        self.name, self.out, self.work, self.numbers = name, out, work, 0

    def next_number(self):
        self.numbers += 1
        return self.numbers


class Native:
    """The server alone, in the same role as a Group; in a control group of its own, where one can
    be made, so that its processor time has that of all that it started."""

    replicas = 1

    def __init__(self, command, port, environment, address="127.0.0.1"):
        self.command, self.port, self.environment = command, port, environment
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
        except BaseException:   # also when the program is told to end: no server outlives it
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


def redis_benchmark(port, clients, requests, tests, *more, address="127.0.0.1", prefix=()):
    """[{test, rate, p50_ms, p99_ms}], a row for each of `tests`."""
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


def measured(name, about, measure, tell):
    """The main program of a measurement: measure(place, repeats) gives rows, which are kept with a
    description of the machine (<out>/<name>/<name>.json) and told."""
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="out/release")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-", dir="/var/tmp"))
    work.chmod(0o755)
    described = machine()
    try:
        rows = measure(Place(out, work, name), options.repeats)
    except (h.Failure, h.CannotRun) as failure:
        sys.exit(f"{name}: {failure}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    results = out / name
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(
        json.dumps({"machine": described, "rows": rows}, indent=1))
    tell(rows)


def commit():
    """Of the sources, with a mark when they are changed."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], text=True, check=False,
                          cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return done.stdout.strip() or "unknown"


def machine():
    """What the figures are of."""
    try:
        model = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo",
                     encoding="utf8") if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return {"processor": model, "processors": os.cpu_count(), "memory_mib": memory,
            "kernel": platform.release(), "load_at_start": os.getloadavg()[0],
            "commit": commit(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def pyplot_or_none():
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
        return pyplot
    except ImportError:
        print("no plot: matplotlib is absent (python3-matplotlib)")
        return None


def save_plot(figure, path, dpi):
    figure.tight_layout()
    figure.savefig(path, dpi=dpi)
    print(f"plot: {path}")
