# SPDX-License-Identifier: Apache-2.0
"""Medians with their spread, tables in Markdown, marks of a busy machine, figures."""
import statistics


def spread(values, form="{:.0f}"):
    """Median (lowest .. highest)."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    low, high = form.format(min(values)), form.format(max(values))
    return f"{form.format(statistics.median(values))} ({low} .. {high})"


def value_or_spread(values, form="{:.0f}"):
    alone = len(values) == 1 and values[0] is not None
    return form.format(values[0]) if alone else spread(values, form)


def number(value):
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def percentile(values, percent):
    """Returns a percentile of sorted values, or None without values."""
    return values[min(len(values) - 1, int(len(values) * percent / 100))] if values else None


def table(head, rows, texts=1, text_last=False):
    """Returns a table in Markdown. The first `texts` columns are text, and the last one if
    `text_last`; the others are figures."""
    sides = ["---"] * texts + ["---:"] * (len(head) - texts)
    if text_last:
        sides[-1] = "---"
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (head, sides, *rows))


def grouped(rows, *columns):
    """{values of the columns: rows}, in the order in which they appear."""
    found = {}
    for row in rows:
        key = tuple(row[column] for column in columns)
        found.setdefault(key if len(columns) > 1 else key[0], []).append(row)
    return found


def ratios(rows, base, figure="rate"):
    """Each row's figure by that of the base row of the same repeat."""
    of_base = {row["repeat"]: row[figure] for row in base}
    return [row[figure] / of_base[row["repeat"]] for row in rows if of_base.get(row["repeat"])]


def summary(rows, by, columns, texts=1):
    """Medians with their spread: `by` is {column: title}, `columns` {figure: (title, form)}."""
    lines = [[*(key if len(by) > 1 else (key,)),
              *(value_or_spread([row.get(name) for row in some], form)
                for name, (_, form) in columns.items())]
             for key, some in grouped(rows, *by).items()]
    return table([*by.values(), *(title for title, _ in columns.values())], lines, texts)


def comparison(rows, load, setting, base):
    """Rate and latency of each load under each setting, beside the setting `base`."""
    lines = []
    for name, of_load in grouped(rows, load).items():
        settings = grouped(of_load, setting)
        for label, some in settings.items():
            lines.append([name, f"{label}{mark(some)}",
                          value_or_spread([row["rate"] for row in some]),
                          value_or_spread(ratios(some, settings.get(base, [])), "{:.2f}"),
                          *(value_or_spread([row.get(key) for row in some], "{:.2f}")
                            for key in ("p50_ms", "p99_ms"))])
    return table([load, setting, "requests/s", f"of {base}", "p50, ms", "p99, ms"], lines, 2)


def mark(rows):
    """Behind the name of what these rows describe: not all of them had the machine alone."""
    return "" if all(row["quiet"]["quiet"] for row in rows if "quiet" in row) else " (!)"


def busy_text(rows, most=5):
    """Below a table: which rows were measured on a busy machine, and the reason."""
    busy = [row for row in rows if "quiet" in row and not row["quiet"]["quiet"]]
    if not busy:
        return ""
    lines = [f"* {', '.join(map(str, row['key']))}: {'; '.join(row['quiet']['reasons'])}"
             for row in busy[:most]]
    if len(busy) > most:
        lines.append(f"* and {len(busy) - most} more")
    return ("\n\n**Measured on a busy machine**, (!): these figures cannot be trusted.\n\n"
            + "\n".join(lines))


def commits_of(rows):
    return ", ".join(sorted({row["commit"] for row in rows}))


def commits_text(rows):
    return f"\n\nMeasured at commit {commits_of(rows)}."


def missing_text(left_out):
    """Rows that are not in the table: {name: reason}."""
    return "".join(f"\nnot measured: {name}: {reason}" for name, reason in left_out.items())


# --- figures --------------------------------------------------------------------------------------

def figure(path, panes, columns=4):
    """`panes` are made by line(), bars() and histogram(); four stand in a row."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no plot: matplotlib is absent (python3-matplotlib)")
        return
    columns = min(columns, len(panes))
    lines = -(-len(panes) // columns)
    made, axes = pyplot.subplots(lines, columns, figsize=(4.6 * columns, 3.8 * lines),
                                 squeeze=False)
    for axis, pane in zip(axes.flat, panes):
        pane(axis)
    made.tight_layout()
    made.savefig(path, dpi=110)
    print(f"plot: {path}")


def label(axis, x, y, title, log=""):
    if "x" in log:
        axis.set_xscale("log")
    if "y" in log:
        axis.set_yscale("log")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize=9)
    axis.grid(color="0.9")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7)


def line(rows, x, y, by, title="", log="", mark="o"):
    """A line for each value of `by`: medians of y over x, with the least and the most."""
    def draw(axis):
        for name, some in grouped([r for r in rows if r.get(y) is not None], by).items():
            points = sorted((at, sorted(r[y] for r in mine))
                            for at, mine in grouped(some, x).items())
            middle = [statistics.median(values) for _, values in points]
            reach = [[m - v[0] for m, (_, v) in zip(middle, points)],
                     [v[-1] - m for m, (_, v) in zip(middle, points)]]
            axis.errorbar([at for at, _ in points], middle, reach if any(map(any, reach)) else None,
                          marker=mark, markersize=3, capsize=2, linewidth=1, label=str(name))
        label(axis, x, y, title, log)
    return draw


def bars(rows, x, y, by, title="", log=""):
    """A group of bars for each value of x: medians of y."""
    def draw(axis):
        names, series = list(grouped(rows, x)), grouped(rows, by)
        for n, (name, some) in enumerate(series.items()):
            of = grouped([r for r in some if r.get(y) is not None], x)
            heights = [statistics.median(r[y] for r in of[at]) if at in of else 0 for at in names]
            axis.bar([i + 0.8 * (n + 0.5) / len(series) - 0.4 for i in range(len(names))], heights,
                     0.8 / len(series), label=str(name))
        axis.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=7)
        label(axis, None, y, title, log)
    return draw


def histogram(values, x, title):
    def draw(axis):
        axis.hist(values, bins=40)
        axis.axvline(statistics.median(values), color="red", linewidth=1)
        label(axis, x, "count", title)
    return draw
