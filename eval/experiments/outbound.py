# SPDX-License-Identifier: Apache-2.0
"""The cost of a server that sends requests to another one, against the same server without Crane.

nginx passes requests on to an nginx outside of the group, once with a pool of connections that it
keeps and once with a connection for each request. The front runs natively, as a group of one and
as a group of three over shm, in turn, --repeats times; ab asks with connections that are kept.
"""
import _harness as h
import session
import tables
from _outside import nginx_before, nginx_of
from start import Native, ab, running

OPTIONS = {"repeats": session.repeats(5)}
PROGRAMS = ("nginx", "ab")
CLIENTS = 16
POOLS = {"kept": f"keepalive {CLIENTS};", "one each": ""}
LOADS = {  # page, how nginx connects, requests
    "1 KB, kept": ("1k", "kept", 20000),
    "100 KB, kept": ("100k", "kept", 4000),
    "1 KB, one connection each": ("1k", "one each", 8000),
}
FRONTS = {"native": 0, "n=1": 1, "n=3": 3}
KEPT = "keepalive_requests 100000000;"


def backend_in(work, port):
    for name, size in (("1k", 1024), ("100k", 100 * 1024)):
        (work / name).write_bytes(b"x" * size)
    pages = f"{KEPT} server {{ listen 127.0.0.1:{port}; root {work}; }}"
    return Native(nginx_of(work, "backend", pages, workers=1), port)


def measure(x):
    work = x.place.folder("outbound")
    with backend_in(work, h.free_port()) as backend:
        for repeat, load, front in x.rounds(LOADS, FRONTS):
            page, pool, requests = LOADS[load]
            port = h.free_port()
            command = nginx_before(f"127.0.0.1:{backend.port}", work, "front",
                                   f"127.0.0.1:{port}", KEPT, POOLS[pool])
            with running(x.place, command, port, FRONTS[front]) as here:
                row = ab(port, page, requests, CLIENTS)
                here.stop()
            x.add({"key": [load, front, repeat], "load": load, "front": front,
                   "repeat": repeat, **row})


def text(rows, _):
    return tables.comparison(rows, "load", "front", "native")
