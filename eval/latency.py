#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency at a fixed rate (`make eval-latency`): native server, one replica, three.

For redis, memcached and nginx, in each repeat: the native server's maximum in a closed loop; then
each configuration in an open loop (eval/latency) at half of that rate, and at half of its own
maximum. A latency counts from the time at which the request had to be sent. Where the rate was not
held there is a `-` and the reason; a figure that the client's own delays may have made greater has
a `≤`. Printed, and written to <out>/bench/latency.{json,md,png}. In parts: --only, with --keep.
"""
import argparse
import functools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import ground
import parts
import quiet
import usage
from place import Place, pyplot_or_none, save_plot
from runs import spread, started
from servers import CAUSES, STORIES, all_kinds, prepared_server
from tables import missing_text

sys.path.insert(0, str(STORIES))
import _harness as h  # noqa: E402

PROTOCOLS = {"redis-server": "redis", "memcached": "memcached", "nginx": "http"}
REPLICAS = {"native": 0, "n=1": 1, "n=3": 3}
SHARE = 0.5   # of a maximum
# The client shares the processors with what it measures; behind the server it would send late.
AHEAD = ["chrt", "--fifo", "1"]
AT_NATIVE, AT_OWN = "half of the native maximum", "half of each configuration's own maximum"
# Name, the part of all latencies that may be greater, field of latency-load.
PERCENTILES = (("p50", 0.5, "p50_us"), ("p99", 0.01, "p99_us"), ("p99.9", 0.001, "p999_us"),
               ("max", 0.0, "max_us"))


# --- measuring ------------------------------------------------------------------------------------

@functools.cache
def ahead():
    """AHEAD, if this user may: a fallback is said."""
    try:
        subprocess.run([*AHEAD, "true"], check=True, stderr=subprocess.DEVNULL)
        return AHEAD
    except (OSError, subprocess.SubprocessError):
        print(f"the client has no priority: {' '.join(AHEAD)} is not permitted")
        return []


def ask(place, server, protocol, rate, options, seconds):
    """What latency-load says."""
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
    shutil.rmtree(place.work / kind.name, ignore_errors=True)   # of one that failed
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(place, kind)
        with started(place, server, server.requests[0], REPLICAS[label]) as running:
            watch = usage.Watch(running.processes())
            peak = ask(place, server, protocol, 0, options, options.peak_seconds)["answered_rate"]
            at_native = ask(place, server, protocol, SHARE * (native_maximum or peak), options,
                            options.seconds)
            at_own = at_native if native_maximum is None else ask(
                place, server, protocol, SHARE * peak, options, options.seconds)
            _, report = watch.report(running.processes())
    shutil.rmtree(work)
    return {"server": kind.name, "configuration": label, "maximum": peak,
            AT_NATIVE: at_native, AT_OWN: at_own, "quiet": report.as_json()}


def measure(place, options, part):
    """{what could not be measured: reason}; the part gets the rows."""
    left_out = {}
    for kind in all_kinds(options.only):
        if kind.name not in PROTOCOLS:
            continue
        for repeat in range(options.repeats):
            native = None
            for label in REPLICAS:
                row, reason = parts.tried(functools.partial(
                    one_start, place, kind, label, native, options), CAUSES,
                    f"{kind.name}, {label}")
                if not row:
                    left_out[f"{kind.name}, {label}"] = reason
                    continue
                native = native or row["maximum"]
                part.add({"key": [kind.name, label, repeat], "repeat": repeat, **row})
                print(f"  . {kind.name}, {label}: maximum {row['maximum']:.0f}/s; the machine: "
                      f"{quiet.Report(**row['quiet']).text()}", file=sys.stderr)
    return left_out


# --- tables ---------------------------------------------------------------------------------------

def late_share(run):
    return run["late"] / run["due"] if run["due"] else 0.0


def cell(runs, part_above, field):
    """Milliseconds of one percentile: median (lowest .. highest) of the runs; `-`: not held."""
    if not all(run["held"] for run in runs):
        return "-"
    values = [run["latency"][field] / 1000 for run in runs]
    text = f"{values[0]:.3f}" if len(values) == 1 else spread(values, "{:.3f}")
    # As many late sends as latencies above it, or more: they may be what is above it.
    return ("≤ " if any(late_share(run) > part_above for run in runs) else "") + text


def group_rows(rows):
    """{server: {configuration: its rows}}, in the order of REPLICAS."""
    found = {}
    for row in rows:
        found.setdefault(row["server"], {}).setdefault(row["configuration"], []).append(row)
    return {server: {label: some[label] for label in REPLICAS if label in some}
            for server, some in found.items()}


def whole(values):
    return f"{values[0]:.0f}" if len(values) == 1 else spread(values)


def table(rows, what):
    """The table of one rate: AT_NATIVE or AT_OWN."""
    lines = ["| server | maximum/s | rate/s | p50, ms | p99 | p99.9 | max | sent late, % |",
             "| --- " + "| ---: " * 7 + "|"]
    reasons = []
    for server, labels in group_rows(rows).items():
        for label, some in labels.items():
            runs = [row[what] for row in some]
            cells = [cell(runs, above, field) for _, above, field in PERCENTILES]
            lines.append(
                f"| {server}, {label}{parts.mark(some)} | {whole([r['maximum'] for r in some])} | "
                f"{whole([run['rate'] for run in runs])} | {' | '.join(cells)} | "
                f"{100 * max(map(late_share, runs)):.2f} |")
            reasons += [f"* {server}, {label}: the rate of {run['rate']:.0f}/s was not held: "
                        f"{run['answered_in_time']} of {run['due']} requests were answered in time"
                        for run in runs if not run["held"]]
    return "\n".join([f"At {what}:", "", *lines, *([""] + reasons if reasons else [])])


def text_of(rows, left_out):
    seconds = sorted({row[AT_NATIVE]["seconds"] for row in rows})
    connections = sorted({row[AT_NATIVE]["connections"] for row in rows})
    return (f"{table(rows, AT_NATIVE)}\n\n{table(rows, AT_OWN)}\n\n"
            "Latency from the time at which the schedule sends a request, "
            f"{'/'.join(map(str, connections))} connections, "
            f"{'/'.join(f'{s:g}' for s in seconds)} s after a warm-up. `-`: the rate was not held; "
            "`≤`: more requests were sent late (above 1 ms, by the client) than may lie above this "
            "percentile." + parts.busy_text(rows) + parts.commits_text(rows)
            + missing_text(left_out))


# --- plot -----------------------------------------------------------------------------------------

def curve(runs):
    """[(1 / part of the requests above, ms)] of all runs' bins put together."""
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


def plot(rows, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    servers = group_rows(rows)
    figure, axes = pyplot.subplots(2, len(servers), figsize=(4.6 * len(servers), 7.6),
                                   squeeze=False, sharey="col")
    ticks = [1, 2, 10, 100, 1000, 10000, 100000]
    for column, (server, labels) in enumerate(servers.items()):
        for axis, what in zip(axes[:, column], (AT_NATIVE, AT_OWN)):
            for colour, (label, some) in enumerate(labels.items()):
                runs = [row[what] for row in some]
                rate = statistics.median(run["rate"] for run in runs)
                name = f"{label}, {rate:.0f}/s{parts.mark(some)}"
                if all(run["held"] for run in runs):
                    axis.step(*zip(*curve(runs)), where="post", color=f"C{colour}", label=name)
                else:
                    axis.plot([], [], ":", color=f"C{colour}", label=f"{name}: not held")
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xticks(ticks, ["0", "50", "90", "99", "99.9", "99.99", "99.999"])
            axis.minorticks_off()
            axis.grid(color="0.9")
            axis.set_title(f"{server}\nat {what}", fontsize=9)
            axis.set_xlabel("percentile of the requests, %")
            axis.set_ylabel("latency, ms")
            axis.legend(fontsize=8)
    save_plot(figure, path, 110)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts.add_options(parser)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="of each open loop (default 10)")
    parser.add_argument("--peak-seconds", type=float, default=4, help="of each closed loop")
    parser.add_argument("--warm", type=float, default=2, help="seconds before each, not measured")
    parser.add_argument("--connections", type=int, default=16)
    return parser.parse_args()


def main():
    options = arguments()
    h.end_at_sigterm()
    part = parts.begin(options, "latency")
    if not part:
        return quiet.EXIT_NOT_QUIET
    out = pathlib.Path(options.out).resolve()
    with tempfile.TemporaryDirectory(prefix="crane-latency-", dir="/var/tmp") as work:
        pathlib.Path(work).chmod(0o755)
        left_out = measure(Place(out, pathlib.Path(work), "latency"), options, part)
    if part.rows:
        text = text_of(part.rows, left_out)
        print(f"\n{text}")
        part.file.with_suffix(".md").write_text(text + "\n")
        plot(part.rows, part.file.with_suffix(".png"))
    return parts.status_of(part.rows, left_out, options)


if __name__ == "__main__":
    sys.exit(main())
