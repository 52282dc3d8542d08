# SPDX-License-Identifier: Apache-2.0
"""Light clients beside a long computation, and what time slices cost a computation that is alone.

Beside: eight clients that ask for 1 ms of work each, again and again, while one request computes
for ten seconds; natively, with a computation in one piece (--slice 0) and in time slices, one
replica and three. Alone: servers of the slices scenario, one replica in slices and one with
--slice 0 at the same time, asked in turns for the same work.
"""
import contextlib
import statistics
import subprocess
import threading
import time

import _computing as c
import _harness as h
import _web
import tables
from start import running

OPTIONS = {"repeats": (5, "of the computation with clients beside it (default 5)"),
           "pairs": (9, "of the computation that is alone (default 9); 0 leaves it out"),
           "quick": (False, "a long computation of a second"),
           "names": ([""], "only the computations that have one of these in their name")}
CLIENTS = 8
LIGHT = "calls 45000"               # about 1 ms natively
HEAVY = "loop 6000000000"           # about 10 s
ALONE = ("loop 600000000", "calls 45000000")
PIECE = ("--slice", "0")
VARIANTS = {"natively": (0, ()), "one replica, in one piece": (1, PIECE),
            "one replica, in slices": (1, ()), "three replicas, in one piece": (3, PIECE),
            "three replicas, in slices": (3, ())}


def asked(server):
    return server.compute()


def benchmark(server):
    subprocess.run(["redis-benchmark", "-p", str(server.port), "-n", "30000", "-c", "16", "-q",
                    "-t", "set,get"], stdout=subprocess.DEVNULL, check=True)


WORK = {   # name: (kind, what it is asked)
    "C, a loop without a call": (c.C, lambda s: c.line(s.port, "loop 1000000000")),
    "C, a loop of calls": (c.C, lambda s: c.line(s.port, "calls 50000000")),
    "perl": (c.Perl, asked),
    "Python": (c.Python, asked),
    "PHP": (c.Php, asked),
    "PHP, pages of 5 ms": (c.Php, lambda s: [_web.get(s.port, "/page.php?n=300000")
                                             for _ in range(200)]),
    "redis, a script": (c.Redis, asked),
    "redis, redis-benchmark": (c.Redis, benchmark),
    "PostgreSQL, PL/pgSQL": (c.Postgres, asked),
    "PostgreSQL, pgbench": (c.Postgres, lambda s: s.server.bench("-S", "-t", "3000")),
    "MariaDB, benchmark()": (c.Mariadb, asked),
}


def timed(ask, *words):
    """Milliseconds."""
    began = time.monotonic()
    ask(*words)
    return (time.monotonic() - began) * 1000


def beside(port, computation):
    """Returns (ms that the computation took, ms of each light request that began meanwhile)"""
    heavy, took, over = [], [], threading.Event()

    def ask():
        while not over.is_set():
            took.append(timed(c.line, port, LIGHT))

    def compute():
        heavy.append(timed(c.line, port, computation))
        over.set()
    threads = [threading.Thread(target=compute)]
    threads += [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heavy[0], sorted(took)


def with_clients(x, replicas, options):
    server = c.C(work=x.place.folder(f"c{x.place.next_number()}"), out=x.out)
    with running(x.place, server.command, server.port, replicas, options) as here:
        for text in (*ALONE, ALONE[0]):   # to learn by
            c.line(server.port, text)
        alone = {text: [timed(c.line, server.port, text) for _ in range(3)] for text in ALONE}
        heavy, light = beside(server.port, ALONE[0] if x.options.quick else HEAVY)
        here.stop()
    return {"alone_ms": alone, "heavy_ms": heavy, "light_ms": light}


def pairs_of(x, kind, ask):
    """Returns [(ms in slices, in one piece)]"""
    servers = []
    with contextlib.ExitStack() as groups:
        for options in ((), PIECE):
            server = kind(work=x.place.folder(f"alone{x.place.next_number()}"), out=x.out)
            groups.enter_context(running(x.place, server.command, server.port, 1,
                                         (*server.options, *options)))
            h.wait_until(server.ready, 60, "it answers")
            for _ in range(3):   # to learn by
                ask(server)
            servers.append(server)
        took = []
        for i in range(x.options.pairs):
            pair = [0.0, 0.0]
            for which in (0, 1) if i % 2 == 0 else (1, 0):
                pair[which] = timed(ask, servers[which])
            took.append(pair)
    return took


def measure(x):
    for repeat, variant in x.rounds(VARIANTS):
        x.add({"key": ["beside", variant, repeat], "variant": variant,
               **with_clients(x, *VARIANTS[variant])})
    for name, (kind, ask) in WORK.items() if x.options.pairs else ():
        if any(part in name for part in x.options.names):
            x.add({"key": ["alone", name, 0], "work": name, "pairs": pairs_of(x, kind, ask)})


def text(rows, _):
    def middle(values, form="{:.1f}"):
        return form.format(statistics.median(values))
    lines = [[name, *(middle([tables.percentile(r["light_ms"], p) for r in some])
                      for p in (50, 99)),
              middle([len(r["light_ms"]) / r["heavy_ms"] * 1000 for r in some], "{:.0f}"),
              middle([r["heavy_ms"] / 1000 for r in some]),
              *(middle([ms for r in some for ms in r["alone_ms"][of]], "{:.0f}") for of in ALONE)]
             for name, some in tables.grouped([r for r in rows if "variant" in r],
                                              "variant").items()]
    costs = []
    for row in (r for r in rows if "work" in r):
        percents = sorted((a / b - 1) * 100 for a, b in row["pairs"])
        costs.append([row["work"], *(middle([p[n] / 1000 for p in row["pairs"]], "{:.3f}")
                                     for n in (0, 1)),
                      middle(percents, "{:+.1f}"), f"{percents[0]:+.1f} to {percents[-1]:+.1f}"])
    return "\n\n".join([
        tables.table(["", "light, p50 ms", "p99 ms", "answers/s", "computation, s",
                      "loop alone, ms", "calls alone, ms"], lines),
        tables.table(["", "in slices, s", "in one piece, s", "cost, %",
                      "spread of the ratios, %"], costs)])
