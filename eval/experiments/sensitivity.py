# SPDX-License-Identifier: Apache-2.0
"""How fast the servers are under other W_timeout and N_clock (CRANE, figures 16 and 17).

Three replicas per server and setting; `--admission classic` for W_timeout (it has no meaning else),
both rules for N_clock. Settings are interleaved with the default, and every rate is divided by the
default's median of the same run.
"""
import functools
import shutil
import statistics
import sys

import _harness as h
import session
import tables
from start import all_kinds, bubbles, one_run, prepared_server

OPTIONS = {"repeats": session.repeats(3), "only": session.ONLY, "quick": session.QUICK}
QUIET = "noted"
# The varied parameters: (parameter, rule, option, default, values).
SWEEPS = (
    ("W_timeout, us", "classic", "--w-timeout", 100, (10, 100, 1000, 10000)),
    ("N_clock, turns", "classic", "--n-clock", 1000, (100, 1000, 10000, 60000)),
    ("N_clock, turns", "grant", "--n-clock", 1024, (16, 128, 1024, 16384)),
)


def measure(x):
    for kind in all_kinds(x.options.only):
        try:
            h.need(*kind.programs)
        except h.CannotRun as cause:
            print(f"left out: {kind.name}: {cause}")
            continue
        work, server = prepared_server(x.place, kind)
        for repeat, (what, rule, option, _, values) in x.rounds(SWEEPS):
            for value in values:
                setting = (3, ["--admission", rule, option, str(value)])
                run = x.attempt(f"{kind.name}, {rule}, {what} {value}", functools.partial(
                    one_run, x.place, server, "swept", setting,
                    server.requests[not x.options.quick]))
                if run:
                    rate = statistics.mean(r["rate"] for r in run["results"])
                    x.add({"key": [kind.name, what, rule, value, repeat], "server": kind.name,
                           "what": what, "rule": rule, "value": value, "rate": rate,
                           "bubbles": bubbles(run["entries"]) or 0.0, "quiet": run["quiet"]})
                    print(f"  . {kind.name}, {rule}, {what} {value}: {rate:.0f}/s",
                          file=sys.stderr)
        shutil.rmtree(work)


def medians(rows, sweep):
    """{server: {value: (rate by the default's, bubbles %)}}"""
    what, rule, _, default, _ = sweep
    mine = [row for row in rows if (row["what"], row["rule"]) == (what, rule)]
    found = {}
    for server, some in tables.grouped(mine, "server").items():
        values = tables.grouped(some, "value")
        if default in values:
            base = statistics.median(r["rate"] for r in values[default])
            found[server] = {value: (statistics.median(r["rate"] for r in of) / base,
                                     statistics.median(r["bubbles"] for r in of))
                             for value, of in sorted(values.items())}
    return found


def text(rows, x):
    parts = []
    for sweep in SWEEPS:
        what, rule, _, default, values = sweep
        head = [f"{what}, {rule}: rate by that of {default}; bubbles", *map(str, values)]
        parts.append(tables.table(head, [
            [server, *(f"{points[v][0]:.2f}; {points[v][1]:.1f} %" if v in points else "-"
                       for v in values)] for server, points in medians(rows, sweep).items()]))
    return ("\n\n".join(parts) + tables.busy_text(rows) + tables.commits_text(rows)
            + tables.missing_text(x.left_out))


def panes(rows, _):
    return [tables.line([{"server": server, sweep[0]: value, "% of the default's": 100 * share}
                         for server, points in medians(rows, sweep).items()
                         for value, (share, _) in points.items()],
                        sweep[0], "% of the default's", "server", f"rate, {sweep[1]}", "x")
            for sweep in SWEEPS]
