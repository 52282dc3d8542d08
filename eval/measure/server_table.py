# SPDX-License-Identifier: Apache-2.0
"""The table of the server matrix as text, and what in it cannot be trusted.

Repeats take native server and group in turn: ratios are of the two runs of one repeat, and the
table shows their median and (lowest .. highest).
"""
import statistics

import tables
from start import bubbles, median_of
from tables import missing_text, spread

SPREAD_LIMIT = 0.25   # (highest - lowest) / median of a row's rates
JUDGED = ("native", "n=1", "n=3")   # classic admission is measured only for its bubbles


def relative_spread(values):
    """Returns (highest - lowest) / median; 0 for fewer than two."""
    middle = statistics.median(values) if values else 0
    return (max(values) - min(values)) / middle if middle and len(values) > 1 else 0.0


def whats_of(runs):
    return list(dict.fromkeys(r["what"] for run in runs for r in run["results"]))


def rates_by_repeat(runs, label, what):
    return {run["repeat"]: r["rate"] for run in runs if run["configuration"] == label
            for r in run["results"] if r["what"] == what}


def ratios(runs, label, what):
    """Our rate / the native one, of every repeat that has both."""
    native, ours = (rates_by_repeat(runs, l, what) for l in ("native", label))
    return [ours[n] / native[n] for n in sorted(native) if native[n] and n in ours]


def overheads(runs, label):
    """Returns for every repeat the mean of (native rate / ours - 1) over its kinds of request, in
    percent."""
    whats, found = whats_of(runs), []
    for repeat in sorted({run["repeat"] for run in runs}):
        mine = [run for run in runs if run["repeat"] == repeat]
        each = [ratio for what in whats for ratio in ratios(mine, label, what)]
        if each and len(each) == len(whats) and all(each):
            found.append(100 * statistics.mean(1 / ratio - 1 for ratio in each))
    return found


def overhead(runs, label):
    """The median of overheads(), or None: it was not measured."""
    found = overheads(runs, label)
    return statistics.median(found) if found else None


def problems(runs, repeats, limit=SPREAD_LIMIT):
    """Why a row's figures cannot be trusted, a line each: empty when they can."""
    found = []
    for label in JUDGED:
        mine = [run for run in runs if run["configuration"] == label]
        if len(mine) < repeats:
            found.append(f"{label}: {len(mine)} of {repeats} repeats ran")
        for what in whats_of(mine):
            rates = median_of(mine, label, what, "rate")
            wide = relative_spread(rates)
            if wide > limit:
                found.append(f"{label}, {what}: spread {100 * wide:.0f} % of the median "
                             f"(limit {100 * limit:.0f} %): {spread(rates)}/s")
        loud = [run for run in mine if not run["quiet"]["quiet"]]
        if loud:
            found.append(f"{label}: not quiet in {len(loud)} of {len(mine)} repeats, first in "
                         f"{loud[0]['repeat'] + 1}: " + "; ".join(loud[0]["quiet"]["reasons"]))
    return found


def percents(values):
    return f"{spread(values)} %" if values else "-"


def native_text(runs):
    cells = []
    for what in whats_of(runs):
        rates = median_of(runs, "native", what, "rate")
        if rates:
            cells.append(f"{what} {statistics.median(rates):.0f}/s "
                         f"±{100 * relative_spread(rates) / 2:.0f} %")
    return ", ".join(cells) or "-"


def ratio_text(runs, label):
    cells = [f"{what} {spread(found, '{:.2f}')}" for what in whats_of(runs)
             if (found := ratios(runs, label, what))]
    return ", ".join(cells) or "-"


def cpu_text(runs):
    """Processor time per request of all replicas: native / n=1 / n=3."""
    return " / ".join(spread([run["cpu_us_per_request"] for run in runs
                              if run["configuration"] == label]) for label in JUDGED)


def bubble_text(runs, label):
    found = [bubbles(run["entries"]) for run in runs if run["configuration"] == label]
    found = [share for share in found if share is not None]
    return f"{statistics.median(found):.1f}" if found else "-"


def shortened(reasons, most=3):
    more = len(reasons) - most
    return "; ".join(reasons[:most]) + (f"; and {more} more" if more > 0 else "")


HEAD = ("server", "3 perturbed runs of 3", "natively, median ± half the spread",
        "1 replica, rate / native", "overhead, 1 replica", "3",
        "processor time per request, us: native / 1 / 3", "bubbles, % grant / classic", "limits")


def cells(row):
    runs, found = row["runs"], row["proof"]
    if not found["of"]:
        equal = "-"
    elif found["equal"] == found["of"]:
        equal = f"equal, {found['bytes']} bytes"
    else:
        equal = f"**{found['equal']} of {found['of']} equal**"
    mark = " **(!)**" if row.get("problems") else ""
    return [f"{row['name']} {row['version']}{mark}", equal, native_text(runs),
            ratio_text(runs, "n=1"), percents(overheads(runs, "n=1")),
            percents(overheads(runs, "n=3")), cpu_text(runs),
            f"{bubble_text(runs, 'n=3')} / {bubble_text(runs, 'n=3 classic')}", row["limits"]]


def table(rows):
    lines = [tables.table(HEAD, map(cells, rows), 2, text_last=True)]
    means = [overhead(row["runs"], "n=1") for row in rows]
    if means and None not in means:
        lines.append(f"\nMean overhead of one replica over the {len(means)} rows: "
                     f"{statistics.mean(means):.0f} %.")
    marked = [f"* {row['name']}: {shortened(row['problems'])}" for row in rows
              if row.get("problems")]
    if marked:
        lines += ["\nNot to be trusted, (!):", "", *marked]
    lost = {name: reason for row in rows for name, reason in row.get("not_measured", {}).items()}
    return "\n".join(lines) + ("\n" + missing_text(lost) if lost else "")
