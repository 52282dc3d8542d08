# SPDX-License-Identifier: Apache-2.0
"""Native server, a group of one and a group of three: apache2 and redis (`make bench`).

Per server and configuration: requests/s, latency at the 50th and 99th percentile, processor time
per request of one replica (server and node). Then bubbles as a share of consensus entries for the
two admission rules, and the cost of a turn. A server that is not installed is left out, by name.
"""
import _harness as h
import _matrix as m
import session
import tables
from start import CONFIGURATIONS, bench_turn, bubbles, flat, redis_benchmark, repeated

OPTIONS = {"repeats": session.repeats(5), "requests": (50000, "of each load (default 50000)"),
           "quick": (False, "1 repeat, 5000 requests"), "only": session.ONLY}
QUIET = "noted"
CLIENTS = 16


class Apache(m.Server):
    name = "apache static 1 KB, keep-alive"
    programs = ("apache2", "ab")

    def prepare(self):
        self.conf = h.apache_configuration(self.work, self.port)
        run = self.work / "native"
        run.mkdir()
        self.environment = {
            "APACHE_RUN_USER": "www-data", "APACHE_RUN_GROUP": "www-data",
            "APACHE_PID_FILE": str(run / "pid"), "APACHE_RUN_DIR": str(run),
            "APACHE_LOCK_DIR": str(run), "APACHE_LOG_DIR": str(run), "LANG": "C"}

    def program(self):
        return ["apache2", "-f", str(self.conf)]

    def native_program(self):
        return [*self.program(), "-D", "FOREGROUND"]

    def load(self, requests):
        result = h.ab(f"http://127.0.0.1:{self.port}/1k.html", requests, CLIENTS, True)
        if not h.ab_good(result, requests):
            raise h.Failure(result["text"])
        return [("GET 1 KB", result["rate"], result["p50"], result["p99"])]


class Redis(m.Server):
    name = "redis set/get"
    programs = ("redis-server", "redis-benchmark")

    def program(self):
        return h.redis_program(self.port)

    def load(self, requests):
        rows = redis_benchmark(self.port, CLIENTS, requests, "set,get")
        return [(row["test"], row["rate"], row["p50_ms"], row["p99_ms"]) for row in rows]


def measure(x):
    quick, requests = x.options.quick, 5000 if x.options.quick else x.options.requests
    log = session.RawLog(x.path("-runs.jsonl"), x.about)
    for kind in (kind for kind in (Apache, Redis) if x.options.only in kind.name):
        try:
            h.need(*kind.programs)
        except h.CannotRun as reason:
            print(f"left out: {kind.name}: {reason}")
            continue
        server = kind(x.place.folder(kind.__name__), h.free_port())
        for run in repeated(x.place, server, CONFIGURATIONS, requests,
                            1 if quick else x.options.repeats, log):
            x.add({"key": [kind.name, run["configuration"], run["repeat"]], **run})
    if (x.out / "bench-turn").exists():
        x.about["turns"] = bench_turn(x.out, 2_000_000 if quick else 10_000_000)
    else:
        print("cost of a turn: bench-turn is not built (make bench)")
    x.save()


def text(rows, x):
    used = [[name, label, tables.spread([r["cpu_us_per_request_replica"] for r in some], "{:.1f}"),
             tables.spread([bubbles(r["entries"]) for r in some], "{:.2f}")]
            for (name, label), some in tables.grouped(rows, "server", "configuration").items()]
    turns = [[row["case"], f"{row['ns']:.1f} ({row['low']:.1f} .. {row['high']:.1f})"]
             for row in x.about.get("turns") or ()]
    return "\n\n".join([
        tables.comparison(flat(rows), "load", "configuration", "native"),
        tables.table(["server", "configuration", "processor time per request, one replica, us",
                      "bubbles, % of entries"], used, 2),
        tables.table(["cost of a turn", "ns"], turns)]) + tables.busy_text(rows)


def panes(rows, _):
    return [tables.bars(flat(rows), "load", "rate", "configuration", "requests/s, measured")]
