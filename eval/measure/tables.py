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
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def percentile(values, percent):
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * percent / 100))] if values else None


def table(head, rows, texts=1, text_last=False):
    """In Markdown; the first `texts` columns are text, the others are figures, maybe without the
    last one."""
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

def plot(path, draw, shape=(1, 1), size=(6, 4), dpi=120, **more):
    """draw(axes), an array of that shape; the figure is saved at `path`."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no plot: matplotlib is absent (python3-matplotlib)")
        return
    figure, axes = pyplot.subplots(*shape, figsize=size, squeeze=False, **more)
    draw(axes)
    figure.tight_layout()
    figure.savefig(path, dpi=dpi)
    print(f"plot: {path}")


def bars(axis, names, series, label, rotation=0):
    """Groups of bars: {name of the series: values}."""
    width = 0.8 / len(series)
    for n, (name, values) in enumerate(series.items()):
        places = [i + (n - (len(series) - 1) / 2) * width for i in range(len(names))]
        axis.bar(places, [value or 0 for value in values], width, label=name)
    axis.set_xticks(range(len(names)), names, rotation=rotation,
                    ha="right" if rotation else "center")
    axis.set_ylabel(label)
    axis.legend(fontsize=8)


def scale(axis, x=None, y=None, ticks=None, labels=None, log="", base=10):
    """Labels of both axes; those named in `log` are logarithmic."""
    if "x" in log:
        axis.set_xscale("log", base=base)
    if "y" in log:
        axis.set_yscale("log")
    if ticks is not None:
        axis.set_xticks(ticks, labels or [str(tick) for tick in ticks])
        axis.minorticks_off()
    axis.set_xlabel(x)
    axis.set_ylabel(y)
