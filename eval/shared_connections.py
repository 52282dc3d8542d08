#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What connections that outlive their leader cost on one host while nothing fails
(`make eval-shared-connections`).

redis and apache2, three replicas over shm, once as always and once with
--test-only-reset-connections, where nodes share no socket and keep no output for others. The two
groups run one after the other, in turn, --repeats times: redis-benchmark with connections that are
kept, with pipelines and with large values, ab with connections that are kept and with one for each
request.
Raw data, with a description of the machine: <out>/shared_connections/shared_connections.json.
"""
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from place import measured, redis_benchmark  # noqa: E402

REDIS = {  # clients, requests, test, more
    "redis, GET": (24, 60000, "get", ()),
    "redis, SET of 10 kB": (24, 20000, "set", ("-d", "10000")),
    "redis, pipelines of 16, SET": (24, 200000, "set", ("-P", "16")),
}
APACHE = {"apache2, kept": (30000, ("-k",)), "apache2, one connection each": (12000, ())}
MODES = {"shared": (), "reset": ("--test-only-reset-connections",)}


def ask_redis(place, options):
    port = h.free_port()
    with h.Group(place, h.redis_program(port), port=port, options=options) as group:
        rates = {load: redis_benchmark(port, clients, requests, test, *more)[0]["rate"]
                 for load, (clients, requests, test, more) in REDIS.items()}
        group.stop()
    return rates


def ask_apache(place, options):
    port, rates = h.free_port(), {}
    work = place.work / f"apache{place.next_number()}"
    work.mkdir()
    work.chmod(0o755)
    conf = h.apache_configuration(work, port, "MaxKeepAliveRequests 0")
    command = ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"]
    with h.Group(place, command, port=port, options=options) as group:
        for load, (requests, more) in APACHE.items():
            done = subprocess.run(["ab", "-q", "-n", str(requests), "-c", "16", *more,
                                   f"http://127.0.0.1:{port}/1k.html"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=120)
            rate = re.search(r"Requests per second: +([\d.]+)", done.stdout)
            if not rate or not re.search(r"Failed requests: +0\n", done.stdout):
                raise h.Failure(f"ab: {done.stdout[-500:]}")
            rates[load] = float(rate[1])
        group.stop()
    return rates


def tell(rows):
    print("| load | with reset, requests/s | shared, requests/s | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for load in (*REDIS, *APACHE):
        rates = {mode: [r["rate"] for r in rows if r["load"] == load and r["mode"] == mode]
                 for mode in MODES}
        ratios = [s / r for s, r in zip(rates["shared"], rates["reset"])]
        cells = [f"{statistics.median(rates[mode]):.0f} ({min(rates[mode]):.0f} to "
                 f"{max(rates[mode]):.0f})" for mode in ("reset", "shared")]
        print(f"| {load} | {cells[0]} | {cells[1]} | {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f}) |")


def ask(place, repeats):
    h.need("redis-server", "redis-benchmark", "apache2", "ab")
    rows = []
    for repeat in range(repeats):
        order = list(MODES.items())
        for server in (ask_redis, ask_apache):
            for mode, words in order if repeat % 2 == 0 else reversed(order):
                rows += [{"load": load, "mode": mode, "repeat": repeat, "rate": rate}
                         for load, rate in server(place, words).items()]
    return rows


if __name__ == "__main__":
    measured("shared_connections", __doc__, ask, tell)
