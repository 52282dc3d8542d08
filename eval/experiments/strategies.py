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
    """Returns the percentile of each run, in ns."""
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


def panes(rows, _):
    data = benches.data_of(rows, "bench-strategies")
    medians = [{"row": name, "run": run, "ns": ns} for name in data["rows"]
               for run, ns in enumerate(percentiles(data, name, 50))]
    return [tables.bars(medians, "row", "ns", "run", f"{data['fabric']}, medians, measured", "y"),
            tables.line(data["throughput"], "per_second", "median_ns", "outstanding",
                        "core, batches 1..128 (cf. Mu figure 7), measured", "xy")]
