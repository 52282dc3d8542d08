# SPDX-License-Identifier: Apache-2.0
"""Latency at a fixed rate: native server, one replica, three.

For redis, memcached and nginx, in each repeat: the native server's maximum in a closed loop; then
each configuration in an open loop (eval/latency) at half of that rate, and at half of its own
maximum. A latency counts from the time at which the request had to be sent. Where the rate was not
held there is a `-` and the reason; a figure that the client's own delays may have made greater has
a `≤`.
"""
import functools
import json
import shutil
import statistics
import subprocess
import sys

import _harness as h
import ground
import session
import tables
import usage
from start import all_kinds, prepared_server, started
from tables import value_or_spread

OPTIONS = {"only": session.ONLY, "repeats": session.repeats(3),
           "seconds": (10.0, "of each open loop (default 10)"),
           "peak_seconds": (4.0, "of each closed loop"),
           "warm": (2.0, "seconds before each, not measured"), "connections": (16, "of the client")}
QUIET = "required"
PROTOCOLS = {"redis-server": "redis", "memcached": "memcached", "nginx": "http"}
REPLICAS = {"native": 0, "n=1": 1, "n=3": 3}
SHARE = 0.5   # of a maximum
# The client shares the processors with what it measures; behind the server it would send late.
AHEAD = ["chrt", "--fifo", "1"]
AT_NATIVE, AT_OWN = "half of the native maximum", "half of each configuration's own maximum"
# Name, the part of all latencies that may be greater, field of latency-load.
PERCENTILES = (("p50", 0.5, "p50_us"), ("p99", 0.01, "p99_us"), ("p99.9", 0.001, "p999_us"),
               ("max", 0.0, "max_us"))


@functools.cache
def ahead():
    """AHEAD, if this user may; else the program says that it is not."""
    try:
        subprocess.run([*AHEAD, "true"], check=True, stderr=subprocess.DEVNULL)
        return AHEAD
    except (OSError, subprocess.SubprocessError):
        print(f"the client has no priority: {' '.join(AHEAD)} is not permitted")
        return []


def ask(place, server, protocol, rate, options, seconds):
    """Runs latency-load and returns its report."""
    words = [*ahead(), str(place.out / "latency-load"), "--protocol", protocol,
             "--port", str(server.port), "--connections", str(options.connections),
             "--rate", f"{rate:.1f}", "--seconds", str(seconds),
             "--warm-seconds", str(options.warm), "--path", "/1k.html"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60 + 2 * (seconds + options.warm), check=False)
    if done.returncode != 0:
        raise h.Failure(f"latency-load ended with status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def one_start(place, kind, label, native_maximum, options):
    """The row of one configuration; `native_maximum` is None of the native server itself."""
    protocol = PROTOCOLS[kind.name]
    h.need(*kind.programs)
    if label != "native" and native_maximum is None:
        raise h.Failure("the native maximum is not known")
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(place, kind)
        with started(place, server, server.requests[0], REPLICAS[label]) as here:
            watch = usage.Watch(here.processes())
            peak = ask(place, server, protocol, 0, options, options.peak_seconds)["answered_rate"]
            at_native = ask(place, server, protocol, SHARE * (native_maximum or peak), options,
                            options.seconds)
            at_own = at_native if native_maximum is None else ask(
                place, server, protocol, SHARE * peak, options, options.seconds)
            _, report = watch.report(here.processes())
    shutil.rmtree(work)
    return {"server": kind.name, "configuration": label, "maximum": peak,
            AT_NATIVE: at_native, AT_OWN: at_own, "quiet": report.as_json()}


def measure(x):
    for kind in (kind for kind in all_kinds(x.options.only) if kind.name in PROTOCOLS):
        for repeat in range(x.options.repeats):
            native = None
            for label in REPLICAS:
                name = f"{kind.name}, {label}"
                row = x.attempt(name, functools.partial(one_start, x.place, kind, label, native,
                                                        x.options))
                if row:
                    native = native or row["maximum"]
                    x.add({"key": [kind.name, label, repeat], "repeat": repeat, **row})
                    print(session.run_text(name, [("maximum", row["maximum"])], row["quiet"]),
                          file=sys.stderr)


def late_share(run):
    return run["late"] / run["due"] if run["due"] else 0.0


def cell(runs, part_above, field):
    """Milliseconds of one percentile: median (lowest .. highest) of the runs; `-`: not held."""
    if not all(run["held"] for run in runs):
        return "-"
    text_ = value_or_spread([run["latency"][field] / 1000 for run in runs], "{:.3f}")
    # As many late sends as latencies above it, or more: they may be what is above it.
    return ("≤ " if any(late_share(run) > part_above for run in runs) else "") + text_


def group_rows(rows):
    """{server: {configuration: its rows}}, in the order of REPLICAS."""
    return {server: {label: some for label in REPLICAS
                     if (some := tables.grouped(of, "configuration").get(label))}
            for server, of in tables.grouped(rows, "server").items()}


def table(rows, what):
    """The table of one rate: AT_NATIVE or AT_OWN."""
    lines, reasons = [], []
    for server, labels in group_rows(rows).items():
        for label, some in labels.items():
            runs = [row[what] for row in some]
            lines.append([f"{server}, {label}{tables.mark(some)}",
                          value_or_spread([r["maximum"] for r in some]),
                          value_or_spread([run["rate"] for run in runs]),
                          *(cell(runs, above, field) for _, above, field in PERCENTILES),
                          f"{100 * max(map(late_share, runs)):.2f}"])
            reasons += [f"* {server}, {label}: the rate of {run['rate']:.0f}/s was not held: "
                        f"{run['answered_in_time']} of {run['due']} requests were answered in time"
                        for run in runs if not run["held"]]
    head = ["server", "maximum/s", "rate/s", "p50, ms", "p99", "p99.9", "max", "sent late, %"]
    return "\n".join([f"At {what}:", "", tables.table(head, lines),
                      *([""] + reasons if reasons else [])])


def text(rows, x):
    seconds = sorted({row[AT_NATIVE]["seconds"] for row in rows})
    connections = sorted({row[AT_NATIVE]["connections"] for row in rows})
    return (f"{table(rows, AT_NATIVE)}\n\n{table(rows, AT_OWN)}\n\n"
            "Latency from the time at which the schedule sends a request, "
            f"{'/'.join(map(str, connections))} connections, "
            f"{'/'.join(f'{s:g}' for s in seconds)} s after a warm-up. `-`: the rate was not held; "
            "`≤`: more requests were sent late (above 1 ms, by the client) than may lie above this "
            "percentile." + tables.busy_text(rows) + tables.commits_text(rows)
            + tables.missing_text(x.left_out))


def curve(runs):
    """Returns [(1 / part of the requests above, ms)] of all runs' bins put together."""
    bins = {}
    for run in runs:
        for upper, count in run["latency"]["bins"]:
            bins[upper] = bins.get(upper, 0) + count
    total, seen, points = sum(bins.values()), 0, []
    for upper in sorted(bins):
        # The last value of all has none above it: it stands where half of one would.
        points.append((total / max(total - seen, 0.5), upper / 1000))
        seen += bins[upper]
    return points


def panes(rows, _):
    found = []
    for server, labels in group_rows(rows).items():
        for what in (AT_NATIVE, AT_OWN):
            points = [{"1 / requests above": above, "ms": ms, "how": label + tables.mark(some)}
                      for label, some in labels.items() if all(r[what]["held"] for r in some)
                      for above, ms in curve([row[what] for row in some])]
            found.append(tables.line(points, "1 / requests above", "ms", "how",
                                     f"{server}, {what}", "xy", ""))
    return found
