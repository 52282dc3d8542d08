#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the servers are under other W_timeout and N_clock (CRANE, figures 16 and 17).

Three replicas per server and setting; `--admission classic` for W_timeout (it has no meaning else),
both rules for N_clock. Settings are interleaved with the default, and every rate is divided by the
default's median of the same run. Raw data: <out>/bench/sensitivity.json; plots beside it.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

import servers
from place import Place, machine, pyplot_or_none, save_plot
from runs import CONFIGURATIONS, tried

sys.path.insert(0, str(servers.STORIES))
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402

# What is varied: (parameter, rule, option, default, values).
SWEEPS = (
    ("W_timeout, us", "classic", "--w-timeout", 100, (10, 100, 1000, 10000)),
    ("N_clock, turns", "classic", "--n-clock", 1000, (100, 1000, 10000, 60000)),
    ("N_clock, turns", "grant", "--n-clock", 1024, (16, 128, 1024, 16384)),
)


def sweep(place, kind, options):
    rows = []
    work = m.place_of(place, kind)
    server = kind(work, h.free_port())
    for _ in range(options.repeats):
        for what, rule, option, default, values in SWEEPS:
            for value in values:
                CONFIGURATIONS["swept"] = (3, ["--admission", rule, option, str(value)])
                run = tried(place, server, "swept", server.requests[not options.quick])
                if not run:
                    continue
                rate = statistics.mean(r["rate"] for r in run["results"])
                rows.append({"server": kind.name, "what": what, "rule": rule, "value": value,
                             "default": default, "rate": rate, "entries": run["entries"]})
                print(f"  . {kind.name}, {rule}, {what} {value}: {rate:.0f}/s, "
                      f"{bubbles(run['entries']):.1f} % bubbles", file=sys.stderr)
    shutil.rmtree(work)
    return rows


def bubbles(entries):
    return 100 * entries.get("bubble", 0) / entries["total"] if entries.get("total") else 0.0


def medians(rows, what, rule):
    """{server: {value: (rate of the default's, bubbles %)}}"""
    told = {}
    for row in rows:
        if (row["what"], row["rule"]) == (what, rule):
            told.setdefault(row["server"], {}).setdefault(row["value"], []).append(row)
    found = {}
    for server, values in told.items():
        default = next(iter(values.values()))[0]["default"]
        if default not in values:
            continue
        base = statistics.median(r["rate"] for r in values[default])
        found[server] = {value: (statistics.median(r["rate"] for r in some) / base,
                                 statistics.median(bubbles(r["entries"]) for r in some))
                         for value, some in sorted(values.items())}
    return found


def show(rows):
    for what, rule, _, default, values in SWEEPS:
        print(f"\n{what}, --admission {rule} (rate, of the default {default}'s; % bubbles)")
        print(f"  {'':<32}" + "".join(f"{value:>18}" for value in values))
        for server, points in medians(rows, what, rule).items():
            print(f"  {server:<32}" + "".join(
                f"{points[v][0]:>9.2f} {points[v][1]:>6.1f} %" if v in points else f"{'-':>18}"
                for v in values))


def plot(rows, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    figure, axes = pyplot.subplots(1, len(SWEEPS), figsize=(5 * len(SWEEPS), 4), squeeze=False)
    for axis, (what, rule, *_) in zip(axes[0], SWEEPS):
        for server, points in medians(rows, what, rule).items():
            axis.plot(list(points), [100 * p[0] for p in points.values()], marker="o",
                      label=server)
        axis.set_xscale("log")
        axis.set_xlabel(f"{what} ({rule})")
        axis.set_ylabel("requests/s, % of the default's")
        axis.set_ylim(bottom=0)
    axes[0][-1].legend(fontsize=7)
    save_plot(figure, path, 120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(servers.HERE.parent / "out/release"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="",
                        help="a regular expression: the kinds whose name it finds")
    parser.add_argument("--quick", action="store_true", help="the scenarios' small loads")
    options = parser.parse_args()
    h.end_at_sigterm()
    out, rows = pathlib.Path(options.out).resolve(), []
    about = machine()
    with tempfile.TemporaryDirectory(prefix="crane-sensitivity-", dir="/var/tmp") as work:
        pathlib.Path(work).chmod(0o755)
        place = Place(out, pathlib.Path(work), "sensitivity")
        for kind in servers.all_kinds(options.only):
            try:
                h.need(*kind.programs)
            except h.CannotRun as cause:
                print(f"left out: {kind.name}: {cause}")
                continue
            rows += sweep(place, kind, options)
    show(rows)
    results = out / "bench"
    results.mkdir(parents=True, exist_ok=True)
    (results / "sensitivity.json").write_text(json.dumps({"machine": about, "rows": rows},
                                                         indent=1))
    plot(rows, results / "sensitivity.png")
    return 0 if rows else 1


sys.exit(main())
