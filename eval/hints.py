#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What soft barriers bring PHP servers (`make eval-hints`; CRANE, figure 15).

Apache and civetweb with a PHP page of about 70 ms at 8 clients: natively, then with one replica in
both modes, without hints and with the one before PHP's entry, which `crane-run --soft-barrier` sets
up in the unmodified server. Settings are interleaved; overheads are of medians of the same run.
Raw data: <out>/bench/hints.json; table and plot beside it.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

from place import Place, machine, pyplot_or_none, save_plot
from runs import CONFIGURATIONS, median_of, repeated, spread
from servers import HERE, STORIES

sys.path.insert(0, str(STORIES))
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402
import _web  # noqa: E402
import server_php as php  # noqa: E402

ENTRY = "php_execute_script"
OFF, ON = ["--soft-barrier", f"{ENTRY}:1:0"], ["--soft-barrier", f"{ENTRY}:{m.CLIENTS}:5000"]
SETTINGS = {f"{mode}, {name}": (mode, hint) for mode in ("serial", "parallel")
            for name, hint in (("no hints", OFF), ("hints", ON))}
KINDS = (php.PhpCgi, php.ModPhp, php.PhpCivetweb)
PAGE = "page"


def page_only(kind, rounds):
    class Page(kind):
        requests = (_web.AB_LEAST, 200)

        def load(self, requests):
            self.pages = ((f"page.php?n={rounds}", 1.0, False),)
            rows = _web.Web.load(self, max(requests, _web.AB_LEAST))
            return [(PAGE, *row[1:]) for row in rows]
    return Page


def measure(place, kind, options):
    page = page_only(kind, php.FULL // 10 if options.quick else php.FULL)
    work = m.place_of(place, kind)
    server = page(work, h.free_port())
    runs = repeated(place, server, ("native", *SETTINGS), page.requests[not options.quick],
                    options.repeats)
    shutil.rmtree(work)
    return runs


def overhead(runs, label):
    """Percent of the native time per request; None: not measured."""
    native, ours = median_of(runs, "native", PAGE, "rate"), median_of(runs, label, PAGE, "rate")
    if not native or not ours:
        return None
    return 100 * (statistics.median(native) / statistics.median(ours) - 1)


def table(rows):
    lines = ["| server | setting | pages/s: median (least .. most) | p50, ms | overhead |",
             "| --- | --- | ---: | ---: | ---: |"]
    for name, runs in rows.items():
        for label in ("native", *SETTINGS):
            over = overhead(runs, label)
            shown = "-" if over is None or label == "native" else f"{over:.0f} %"
            lines.append(f"| {name} | {label} | "
                         f"{spread(median_of(runs, label, PAGE, 'rate'), '{:.1f}')} | "
                         f"{spread(median_of(runs, label, PAGE, 'p50_ms'))} | {shown} |")
    return "\n".join(lines)


def plot(rows, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    figure, axis = pyplot.subplots(figsize=(2 + 2.4 * len(rows), 4.2))
    width = 0.8 / len(SETTINGS)
    for n, label in enumerate(SETTINGS):
        values = [overhead(runs, label) or 0 for runs in rows.values()]
        axis.bar([i + (n - 1.5) * width for i in range(len(rows))], values, width, label=label)
    axis.axhline(0, color="grey", linewidth=0.8)
    axis.set_xticks(range(len(rows)), list(rows))
    axis.set_ylabel("overhead, % of native (measured)")
    axis.legend()
    save_plot(figure, path, 120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--only", default="", help="the kinds whose name holds this")
    parser.add_argument("--quick", action="store_true", help="few requests of a tenth of the page")
    options = parser.parse_args()
    for label, (mode, hint) in SETTINGS.items():
        CONFIGURATIONS[label] = (options.replicas, ["--mode", mode, *hint])
    h.end_at_sigterm()
    out, rows = pathlib.Path(options.out).resolve(), {}
    about = machine()
    with tempfile.TemporaryDirectory(prefix="crane-hints-", dir="/var/tmp") as work:
        pathlib.Path(work).chmod(0o755)
        place = Place(out, pathlib.Path(work), "hints")
        for kind in (kind for kind in KINDS if options.only in kind.name):
            try:
                h.need(*kind.programs)
                rows[kind.name] = measure(place, kind, options)
            except (h.CannotRun, h.Failure, OSError) as cause:
                print(f"left out: {kind.name}: {str(cause)[:400]}")
    text = table(rows)
    print(f"{about['processor']}, {about['processors']} processors, Linux {about['kernel']}; "
          f"{m.CLIENTS} clients, {options.replicas} replicas, commit {about['commit']}\n\n{text}")
    results = out / "bench"
    results.mkdir(parents=True, exist_ok=True)
    (results / "hints.json").write_text(json.dumps(
        {"machine": about, "replicas": options.replicas, "servers": rows}, indent=1))
    (results / "hints.md").write_text(text + "\n")
    plot(rows, results / "hints.png")
    return 0 if len(rows) == len([k for k in KINDS if options.only in k.name]) else 1


if __name__ == "__main__":
    sys.exit(main())
