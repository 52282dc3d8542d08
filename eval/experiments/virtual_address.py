# SPDX-License-Identifier: Apache-2.0
"""The cost of a virtual address while nothing fails.

One group of redis over tcp, three hosts in network namespaces. redis-benchmark asks it at the
virtual address, whose connections can move to another host, and at the leader's own address, whose
connections cannot: the same server, network and log. The two are asked in turn, --repeats times.
"""
import _harness as h
import session
import tables
from _hosts import Hosts
from _network import Network
from start import redis_benchmark

OPTIONS = {"repeats": session.repeats(5)}
PROGRAMS = ("redis-server", "redis-benchmark")
LOADS = {  # clients, requests, tests, more
    "kept, GET": (24, 60000, "get", ()),
    "kept, SET of 3 bytes": (24, 60000, "set", ()),
    "kept, SET of 10 kB": (24, 20000, "set", ("-d", "10000")),
    "pipelines of 16, SET": (24, 200000, "set", ("-P", "16")),
    "one connection per GET": (24, 8000, "get", ("-k", "0")),
}


def measure(x):
    port = h.free_port()
    with Network(3, visitors=True) as network, \
            Hosts(x.place, h.redis_program(port, "--protected-mode", "no"), port=port, fabric="tcp",
                  addresses=network.addresses,
                  clients={"listen": "any", **network.moving_address()},
                  prefix=network.enter) as group:
        h.wait_until(lambda: network.holders() == [group.leader()], 20, "the address is there")
        addresses = {"own": network.addresses[group.leader()], "virtual": network.virtual}
        for repeat, load, address in x.rounds(LOADS, addresses):
            clients, requests, tests, more = LOADS[load]
            row, = redis_benchmark(port, clients, requests, tests, *more,
                                   address=addresses[address], prefix=network.visit())
            x.add({"key": [load, address, repeat], "load": load, "address": address,
                   "repeat": repeat, **row})


def text(rows, _):
    return tables.comparison(rows, "load", "address", "own")
