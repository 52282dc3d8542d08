#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what bench-scale, bench-shm-group and bench-strategies left as JSON in one folder.

  figures.py FOLDER    scale.json shm_group.json -> scale.png
                       strategies.json strategies_verbs.json -> a .png of the same name each
A file that is not there is left out, by name. Computed lines are drawn thin, measured points thick.
"""
import json
import pathlib
import sys

from place import pyplot_or_none, save_plot

# FALCON table 3, us: replicas, FALCON, DARE with 50 % writes, DARE with 10 % writes.
FALCON_TABLE_3 = [(3, 8.2, 8.8, 5.8), (9, 8.8, 12.0, 7.2), (33, 13.0, 32.5, 16.8),
                  (65, 20.3, 64.0, 29.2), (105, 31.6, 102.5, 45.1)]


def load(folder, name):
    path = folder / name
    if not path.exists():
        print(f"left out: {name} is not in {folder}")
        return None
    return json.loads(path.read_text())


def draw_scale(pyplot, scale, group, path):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    lines = [c for c in scale["curves"] if c["machine"] == "dare"]
    sizes = [c["replicas"] for c in lines]
    for rule, style in (("mu", "-"), ("core", ":"), ("dare", "-"), ("apus", "-")):
        left.plot(sizes, [c[rule] for c in lines], style, linewidth=2.5 if rule == "core" else 1.2,
                  label=f"{rule}, computed")
    if group:
        rows = [r for r in group if r]
        left.plot([r["replicas"] for r in rows], [r["p50_us"] for r in rows], "ko",
                  label="core, real processes over shm, measured")
    left.set_title("in memory, 64 B; computed: DARE table 1")
    points = scale["points"]
    for what, colour in (("apus with stores", "C3"), ("dare, 50 % writes, one client", "C2"),
                         ("dare, writes only", "C0"), ("dare, 10 % writes, one client", "C1")):
        mine = sorted({(p["replicas"], p["model_us"]) for p in points if p["what"] == what})
        right.plot(*zip(*mine), color=colour, linewidth=1.2, label=f"{what}, computed")
    sizes = [row[0] for row in FALCON_TABLE_3]
    for column, name, colour in ((1, "FALCON", "C3"), (2, "DARE, 50 % writes", "C2"),
                                 (3, "DARE, 10 % writes", "C1")):
        right.plot(sizes, [row[column] for row in FALCON_TABLE_3], "o", color=colour,
                   label=f"FALCON table 3: {name}")
    right.set_title("beside FALCON table 3")
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(sizes, [str(s) for s in sizes])
        axis.minorticks_off()
        axis.set_xlabel("replicas")
        axis.set_ylabel("propose to commit, us")
        axis.legend(fontsize=7)
    save_plot(figure, path, 120)


def draw_strategies(pyplot, data, path):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    order = ["device-one", "device-two", "device-sge", "one-write", "two-writes", "mu", "core",
             "dare", "apus woken", "apus spin", "validated"]
    names = [n for n in order if n in data["samples_ns"]]
    for at, name in enumerate(names):
        for run, samples in enumerate(data["samples_ns"][name]):
            ordered = sorted(samples)
            low, middle, high = (ordered[int(p * (len(ordered) - 1))] for p in (.01, .5, .99))
            place = at + 0.12 * (run - len(data["samples_ns"][name]) / 2)
            left.plot([place, place], [low, high], color="C0", linewidth=1)
            left.plot(place, middle, "o", color="C0", markersize=3)
    left.set_xticks(range(len(names)), names, rotation=30)
    left.set_yscale("log")
    left.set_ylabel("ns: median, 1st to 99th percentile, each run")
    left.set_title(f"{data['fabric']}, {data['replicas']} replicas, 64 B, measured")
    for outstanding in sorted({r["outstanding"] for r in data["throughput"]}):
        rows = [r for r in data["throughput"] if r["outstanding"] == outstanding]
        right.plot([r["per_second"] / 1e3 for r in rows], [r["median_ns"] / 1e3 for r in rows],
                   "o-", markersize=3, label=f"{outstanding} outstanding")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("thousand operations/s")
    right.set_ylabel("median us of an entry")
    right.set_title(f"core over {data['fabric']}, batches 1..128 (cf. Mu figure 7), measured")
    right.legend(fontsize=7)
    save_plot(figure, path, 120)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    pyplot = pyplot_or_none()
    if not pyplot:
        return 0
    scale, group = load(folder, "scale.json"), load(folder, "shm_group.json")
    if scale:
        draw_scale(pyplot, scale, group, folder / "scale.png")
    for name in ("strategies", "strategies_verbs"):
        strategies = load(folder, name + ".json")
        if strategies:
            draw_strategies(pyplot, strategies, folder / (name + ".png"))
    return 0


sys.exit(main())
