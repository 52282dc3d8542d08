#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a virtual address costs while nothing fails (`make eval-virtual-address`).

One group of redis over tcp, three hosts in network namespaces. redis-benchmark asks it at the
virtual address, whose connections can move to another host, and at the leader's own address, whose
connections cannot: the same server, network and log. The two are asked in turn, --repeats times,
with connections that are kept, with pipelines, with large values, and with a connection for each
request.
Raw data, with a description of the machine: <out>/virtual_address/virtual_address.json.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from _hosts import Hosts  # noqa: E402
from _network import Network  # noqa: E402
from place import Place, machine, redis_benchmark  # noqa: E402

LOADS = {  # clients, requests, tests, more
    "kept, GET": (24, 60000, "get", ()),
    "kept, SET of 3 bytes": (24, 60000, "set", ()),
    "kept, SET of 10 kB": (24, 20000, "set", ("-d", "10000")),
    "pipelines of 16, SET": (24, 200000, "set", ("-P", "16")),
    "one connection per GET": (24, 8000, "get", ("-k", "0")),
}


def measure(group, network, port, repeats):
    addresses = {"virtual": network.virtual, "own": network.addresses[group.leader()]}
    rows = []
    for repeat in range(repeats):
        order = list(addresses.items())
        for load, (clients, requests, tests, more) in LOADS.items():
            for name, address in order if repeat % 2 == 0 else reversed(order):
                row = redis_benchmark(port, clients, requests, tests, *more, address=address,
                                      prefix=network.visit())[0]
                rows.append({"load": load, "address": name, "repeat": repeat, **row})
    return rows


def tell(rows):
    print("| load | own address, requests/s | virtual address, requests/s | ratio "
          "| p99 own, virtual, ms |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for load in LOADS:
        rates, p99 = {}, {}
        for name in ("own", "virtual"):
            mine = [r for r in rows if r["load"] == load and r["address"] == name]
            rates[name] = [r["rate"] for r in mine]
            p99[name] = statistics.median(r["p99_ms"] for r in mine)
        ratios = [b / a for a, b in zip(rates["own"], rates["virtual"])]
        cells = [f"{statistics.median(v):.0f} ({min(v):.0f} to {max(v):.0f})"
                 for v in rates.values()]
        print(f"| {load} | {cells[0]} | {cells[1]} | {statistics.median(ratios):.2f} "
              f"| {p99['own']:.2f}, {p99['virtual']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="out/release")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    out = pathlib.Path(options.out).resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-virtual-", dir="/var/tmp"))
    try:
        port = h.free_port()
        with Network(3, visitors=True) as network, \
                Hosts(Place(out, work, "virtual_address"),
                      h.redis_program(port, "--protected-mode", "no"), port=port, fabric="tcp",
                      addresses=network.addresses,
                      clients={"listen": "any", **network.moving_address()},
                      prefix=network.enter) as group:
            h.wait_until(lambda: network.holders() == [group.leader()], 20, "the address is there")
            about = machine()
            rows = measure(group, network, port, options.repeats)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    results = out / "virtual_address"
    results.mkdir(exist_ok=True)
    (results / "virtual_address.json").write_text(
        json.dumps({"machine": about, "rows": rows}, indent=1))
    tell(rows)


if __name__ == "__main__":
    try:
        main()
    except (h.Failure, h.CannotRun) as failure:
        sys.exit(f"virtual_address: {failure}")
