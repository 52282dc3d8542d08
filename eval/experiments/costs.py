# SPDX-License-Identifier: Apache-2.0
"""What one request costs besides time: wake-ups, system calls, copies.

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
from start import all_kinds, prepared_server

OPTIONS = {"only": session.ONLY, "quick": session.QUICK}


def rows_of(x, kind, counter):
    h.need(*kind.programs)
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(x.place, kind)
        rows = counters.costs_of(x.place, server, server.requests[not x.options.quick], counter)
    shutil.rmtree(work)
    return rows


def measure(x):
    counter, reason = counters.counter()
    x.about["counted_by"] = [counter.name if counter else None, reason]
    for kind in all_kinds(x.options.only):
        for row in x.attempt(kind.name, functools.partial(rows_of, x, kind, counter)) or ():
            x.add({"key": [kind.name, row["configuration"], 0], **row})
            print(session.run_text(", ".join(x.new[-1]["key"][:2]), [], row["quiet"]),
                  file=sys.stderr)


def text(rows, x):
    return (f"{counters.table(rows)}\n\n{counters.how_text(*x.about['counted_by'], rows)}"
            + tables.missing_text(x.left_out))
