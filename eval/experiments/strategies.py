# SPDX-License-Identifier: Apache-2.0
"""Commit rules of Mu, DARE and APUS beside the raw operations of the fabric and the real core.

bench-strategies (eval/bench) interleaves all rows in one run. --verbs runs it over RDMA, in a
virtual machine with three soft-RoCE devices. Options that are not known here go to it.
"""
import benches
import tables

OPTIONS = {"verbs": (False, "over RDMA, in a virtual machine")}
PASS_ON = True   # options
# Blocks are short, because a virtual machine on a shared host has slow moments.
IN_MACHINE = ["--fabric", "verbs", "--blocks", "60", "--ops", "50"]


def result_name(options):
    return "strategies_verbs" if options.verbs else "strategies"


def measure(x):
    more = IN_MACHINE if x.options.verbs else []
    benches.run(x, "bench-strategies", [*more, *x.options.rest], x.options.verbs)


def percentiles(data, name, percent):
    """Of each run, ns."""
    return [tables.percentile(sorted(samples), percent) for samples in data["samples_ns"][name]]


def text(rows, _):
    """us: the middle run, the lowest and the highest; x: of the base in the same run."""
    data = benches.data_of(rows, "bench-strategies")
    base = "device-two" if data["fabric"] == "verbs" else "two-writes"
    lines = []
    for name in data["rows"]:
        found = [percentiles(data, name, percent) for percent in (50, 99)]
        shares = [[a / b for a, b in zip(mine, percentiles(data, base, percent))]
                  for mine, percent in zip(found, (50, 99))]
        lines.append([name, *(tables.spread([ns / 1e3 for ns in mine], "{:.2f}") for mine in found),
                      *(tables.spread(mine, "{:.2f}") for mine in shares),
                      ", ".join(f"{a / 1e3:.2f}/{b / 1e3:.2f}" for a, b in zip(*found))])
    batches = [[batch, *(f"{r['per_second'] / 1e3:.1f} ({r['median_ns'] / 1e3:.2f})" for r in some)]
               for batch, some in tables.grouped(data["throughput"], "batch").items()]
    return "\n\n".join([
        f"fabric {data['fabric']}, {data['replicas']} replicas, {data['payload_bytes']} B payload, "
        f"{data['wire_bytes']} B on the wire, {len(data['ping_pong_ns'])} runs of "
        f"{len(data['samples_ns'][base][0])} operations; us",
        tables.table(["", "median", "99th percentile", f"x median of {base}", "x 99th",
                      "every run: median/99th"], lines, text_last=True),
        "ping-pong of a cache line between two processes, one way, ns: "
        + tables.spread(data["ping_pong_ns"]),
        tables.table(["core, 64 B operations, batch", *(
            f"{n} outstanding: thousands/s (median us)"
            for n in tables.grouped(data["throughput"], "outstanding"))], batches)])


def latencies(axis, data):
    names = data["rows"]
    for at, name in enumerate(names):
        runs = data["samples_ns"][name]
        for run, samples in enumerate(map(sorted, runs)):
            place = at + 0.12 * (run - len(runs) / 2)
            low, middle, high = (tables.percentile(samples, p) for p in (1, 50, 99))
            axis.plot([place, place], [low, high], color="C0", linewidth=1)
            axis.plot(place, middle, "o", color="C0", markersize=3)
    tables.scale(axis, None, "ns: median, 1st to 99th percentile, each run", log="y")
    axis.set_xticks(range(len(names)), names, rotation=30)
    axis.set_title(f"{data['fabric']}, {data['replicas']} replicas, 64 B, measured")


def throughput(axis, data):
    for outstanding, rows in tables.grouped(data["throughput"], "outstanding").items():
        axis.plot([r["per_second"] / 1e3 for r in rows], [r["median_ns"] / 1e3 for r in rows],
                  "o-", markersize=3, label=f"{outstanding} outstanding")
    tables.scale(axis, "thousand operations/s", "median us of an entry", log="xy")
    axis.set_title(f"core over {data['fabric']}, batches 1..128 (cf. Mu figure 7), measured")
    axis.legend(fontsize=7)


def draw(rows, x):
    data = benches.data_of(rows, "bench-strategies")

    def panes(axes):
        latencies(axes[0][0], data)
        throughput(axes[0][1], data)
    tables.plot(x.path(".png"), panes, (1, 2), (11, 4.2))
