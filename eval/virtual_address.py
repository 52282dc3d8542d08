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
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from _hosts import Hosts  # noqa: E402
from _network import Network  # noqa: E402
from place import measured, redis_benchmark  # noqa: E402

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


def ask(place, repeats):
    port = h.free_port()
    with Network(3, visitors=True) as network, \
            Hosts(place, h.redis_program(port, "--protected-mode", "no"), port=port, fabric="tcp",
                  addresses=network.addresses,
                  clients={"listen": "any", **network.moving_address()},
                  prefix=network.enter) as group:
        h.wait_until(lambda: network.holders() == [group.leader()], 20, "the address is there")
        return measure(group, network, port, repeats)


if __name__ == "__main__":
    measured("virtual_address", __doc__, ask, tell)
