# SPDX-License-Identifier: Apache-2.0
"""3..105 replicas: computed from the papers' tables, then really run on this machine.

bench-scale (eval/papers) computes the rules of Mu, DARE and APUS and the protocol core on machines
that only their papers describe; bench-shm-group runs the core with as many real processes over
shared memory. Computed lines are drawn thin, measured points thick. Options that are not known here
go to bench-shm-group.
"""
import benches
import tables

PASS_ON = True   # options
# FALCON table 3, us: replicas, FALCON, DARE with 50 % writes, DARE with 10 % writes.
FALCON_TABLE_3 = [(3, 8.2, 8.8, 5.8), (9, 8.8, 12.0, 7.2), (33, 13.0, 32.5, 16.8),
                  (65, 20.3, 64.0, 29.2), (105, 31.6, 102.5, 45.1)]


def measure(x):
    benches.run(x, "bench-scale", [])
    benches.run(x, "bench-shm-group", x.options.rest)


def draw(rows, x):
    scale, group = (benches.data_of(rows, name) for name in ("bench-scale", "bench-shm-group"))

    def computed(axis):
        lines = [c for c in scale["curves"] if c["machine"] == "dare"]
        for rule, style in (("mu", "-"), ("core", ":"), ("dare", "-"), ("apus", "-")):
            axis.plot([c["replicas"] for c in lines], [c[rule] for c in lines], style,
                      linewidth=2.5 if rule == "core" else 1.2, label=f"{rule}, computed")
        ran = [r for r in group or () if r]
        axis.plot([r["replicas"] for r in ran], [r["p50_us"] for r in ran], "ko",
                  label="core, real processes over shm, measured")
        axis.set_title("in memory, 64 B; computed: DARE table 1")

    def beside_falcon(axis):
        for what, colour in (("apus with stores", "C3"), ("dare, 50 % writes, one client", "C2"),
                             ("dare, writes only", "C0"), ("dare, 10 % writes, one client", "C1")):
            mine = sorted({(p["replicas"], p["model_us"]) for p in scale["points"]
                           if p["what"] == what})
            axis.plot(*zip(*mine), color=colour, linewidth=1.2, label=f"{what}, computed")
        for column, name, colour in ((1, "FALCON", "C3"), (2, "DARE, 50 % writes", "C2"),
                                     (3, "DARE, 10 % writes", "C1")):
            axis.plot([row[0] for row in FALCON_TABLE_3], [row[column] for row in FALCON_TABLE_3],
                      "o", color=colour, label=f"FALCON table 3: {name}")
        axis.set_title("beside FALCON table 3")

    def panes(axes):
        computed(axes[0][0])
        beside_falcon(axes[0][1])
        for axis in axes[0]:
            tables.scale(axis, "replicas", "propose to commit, us",
                         [row[0] for row in FALCON_TABLE_3], log="xy")
            axis.legend(fontsize=7)
    tables.plot(x.path(".png"), panes, (1, 2), (11, 4.2))
