# SPDX-License-Identifier: Apache-2.0
"""The cost of connections that outlive their leader, on one host while nothing fails.

redis and apache2, three replicas over shm, once as always and once with
--test-only-reset-connections, where nodes share no socket and keep no output for others. The two
groups run one after the other, in turn, --repeats times.
"""
import _harness as h
import session
import tables
from start import ab, redis_benchmark, running

OPTIONS = {"repeats": session.repeats(5)}
PROGRAMS = ("redis-server", "redis-benchmark", "apache2", "ab")
REDIS = {  # clients, requests, test, more
    "redis, GET": (24, 60000, "get", ()),
    "redis, SET of 10 kB": (24, 20000, "set", ("-d", "10000")),
    "redis, pipelines of 16, SET": (24, 200000, "set", ("-P", "16")),
}
APACHE = {"apache2, kept": (30000, True), "apache2, one connection each": (12000, False)}
MODES = {"reset": ("--test-only-reset-connections",), "shared": ()}


def redis(place, options):
    port = h.free_port()
    with running(place, h.redis_program(port), port, 3, options) as group:
        for load, (clients, requests, test, more) in REDIS.items():
            yield load, redis_benchmark(port, clients, requests, test, *more)[0]
        group.stop()


def apache(place, options):
    port = h.free_port()
    conf = h.apache_configuration(place.folder(f"apache{place.next_number()}"), port,
                                  "MaxKeepAliveRequests 0")
    command = ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"]
    with running(place, command, port, 3, options) as group:
        for load, (requests, kept) in APACHE.items():
            yield load, ab(port, "1k.html", requests, 16, kept)
        group.stop()


def measure(x):
    for repeat, server, mode in x.rounds((redis, apache), MODES):
        for load, row in server(x.place, MODES[mode]):
            x.add({"key": [load, mode, repeat], "load": load, "connections": mode,
                   "repeat": repeat, **row})


def text(rows, _):
    return tables.comparison(rows, "load", "connections", "reset")
