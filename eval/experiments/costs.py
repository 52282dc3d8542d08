# SPDX-License-Identifier: Apache-2.0
"""The costs of one request besides time: wake-ups, system calls, copies.

Each server of the matrix starts once natively and once as a group of one replica. A first load
counts context switches of every thread, from /proc, and what the node's status counts. A second one
counts system calls, with perf or, where that is not permitted, with strace; strace slows servers
down, so its load is shorter.
"""
import functools
import shutil
import sys

import _harness as h
import counters
import ground
import session
import tables
import usage
from start import all_kinds, prepared_server, started

OPTIONS = {"only": session.ONLY, "quick": session.QUICK}
PARTS = (("wakeups", "wake-ups"), ("preempted", "preempted"), ("calls", "system calls"),
         ("copies", "copying"))
COLUMNS = {**{f"{part}_{what}": f"{part}: {title}" for part in ("server", "node")
              for what, title in PARTS},
           "own_wakeups": "its own count", "entries": "entries", "bytes_in": "bytes in",
           "bytes_out": "bytes out", "server_ended": "threads ended, server", "node_ended": "node"}


def one_start(x, kind, replicas, tool):
    """The row of one configuration: natively (0 replicas), or a group."""
    h.need(*kind.programs)
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(x.place, kind)
        requests = server.requests[not x.options.quick]
        with started(x.place, server, requests, replicas) as here:
            before, watch = counters.Counts(here), usage.Watch(here.processes())
            served = server.requests_made(requests, server.load(requests))
            _, report = watch.report(here.processes())
            figures = counters.per_request(before, counters.Counts(here), served)
            if tool:
                place = x.place.folder(f"counters{x.place.next_number()}")
                figures.update(counters.calls_per_request(here, server, requests, tool, place))
    shutil.rmtree(work)
    return {"server": kind.name, "configuration": f"n={replicas}" if replicas else "native",
            "figures": figures, "requests": requests, "quiet": report.as_json()}


def measure(x):
    tool, reason = counters.counter()
    x.about["counted_by"] = [tool.name if tool else None, reason]
    for kind in all_kinds(x.options.only):
        for replicas in (0, 1):
            row = x.attempt(f"{kind.name}, {replicas} replicas", functools.partial(
                one_start, x, kind, replicas, tool))
            if row:
                x.add({"key": [kind.name, row["configuration"], 0], **row})
                print(session.run_text(", ".join(x.new[-1]["key"][:2]), [], row["quiet"]),
                      file=sys.stderr)


def how_text(tool, reason):
    """Which tool counted, and why not a better one."""
    if tool is None:
        return f"system calls were not counted: {reason}"
    return f"system calls counted by {tool}" + (f" ({reason})" if reason else "")


def table(rows):
    return tables.table(["per request", *COLUMNS.values()], [
        [f"{row['server']}, {row['configuration']}{tables.mark([row])}",
         *(tables.number(row["figures"].get(key)) for key in COLUMNS)] for row in rows])


def text(rows, x):
    return (f"{table(rows)}\n\n{how_text(*x.about['counted_by'])}" + tables.busy_text(rows)
            + tables.missing_text(x.left_out))
