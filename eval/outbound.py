#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a server that asks another one costs, against the same server without Crane
(`make eval-outbound`).

nginx passes requests on to an nginx outside of the group, once with a pool of connections that it
keeps and once with a connection for each request. The front runs natively, as a group of one and
as a group of three over shm, in turn, --repeats times; ab asks with connections that are kept.
Raw data, with a description of the machine: <out>/outbound/outbound.json.
"""
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from _outside import nginx_before, nginx_of  # noqa: E402
from place import Native, measured  # noqa: E402

CLIENTS = 16
POOLS = {"kept": f"keepalive {CLIENTS};", "one each": ""}
LOADS = {  # page, how nginx connects, requests
    "1 KB, kept": ("1k", "kept", 20000),
    "100 KB, kept": ("100k", "kept", 4000),
    "1 KB, one connection each": ("1k", "one each", 8000),
}
KEPT = "keepalive_requests 100000000;"


def group_of(replicas):
    return lambda place, command, port: h.Group(place, command, port=port, replicas=replicas)


FRONTS = {"native": lambda _, command, port: Native(command, port, {}),
          "n=1": group_of(1), "n=3": group_of(3)}


def backend_in(work, port):
    for name, size in (("1k", 1024), ("100k", 100 * 1024)):
        (work / name).write_bytes(b"x" * size)
    pages = f"{KEPT} server {{ listen 127.0.0.1:{port}; root {work}; }}"
    return Native(nginx_of(work, "backend", pages, workers=1), port, {})


def rounds(place, work, backend, repeats):
    for repeat in range(repeats):
        fronts = list(FRONTS.items())
        for name, front in fronts if repeat % 2 == 0 else reversed(fronts):
            for load, (page, pool, requests) in LOADS.items():
                port = h.free_port()
                command = nginx_before(f"127.0.0.1:{backend.port}", work, "front",
                                       f"127.0.0.1:{port}", KEPT, POOLS[pool])
                with front(place, command, port) as running:
                    said = h.ab(f"http://127.0.0.1:{port}/{page}", requests, CLIENTS, True)
                    if not h.ab_good(said, requests):
                        raise h.Failure(f"{name}, {load}: {said['text'][-500:]}")
                    if name != "native":
                        running.stop()
                yield {"load": load, "front": name, "repeat": repeat,
                       **{key: said[key] for key in ("rate", "p50", "p99")}}


def ask(place, repeats):
    h.need("nginx", "ab")
    work = place.work / "outbound"
    work.mkdir()
    work.chmod(0o755)
    with backend_in(work, h.free_port()) as backend:
        return list(rounds(place, work, backend, repeats))


def tell(rows):
    print("| nginx before nginx, 16 clients | front | requests/s | of native | p50, ms | p99, ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for load in LOADS:
        of = {front: [r for r in rows if (r["load"], r["front"]) == (load, front)]
              for front in FRONTS}
        for front, mine in of.items():
            rates = [r["rate"] for r in mine]
            shares = [r["rate"] / n["rate"] for r, n in zip(mine, of["native"])]
            middle = [statistics.median(r[key] for r in mine) for key in ("p50", "p99")]
            print(f"| {load} | {front} | {statistics.median(rates):.0f} ({min(rates):.0f} to "
                  f"{max(rates):.0f}) | {statistics.median(shares):.2f} | {middle[0]:.2f} | "
                  f"{middle[1]:.2f} |")


if __name__ == "__main__":
    measured("outbound", __doc__, ask, tell)
