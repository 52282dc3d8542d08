# SPDX-License-Identifier: Apache-2.0
"""The gain of PHP servers from soft barriers (CRANE, figure 15).

Apache and civetweb with a PHP page of about 70 ms at 8 clients: natively, then with one replica in
both modes, without hints and with the one before PHP's entry, which `crane-run --soft-barrier` sets
up in the unmodified server. Settings are interleaved; rates are divided by the native one of the
same repeat.
"""
import functools

import _matrix as m
import _web
import server_php as php
import session
import tables
from start import flat, prepared_server, repeated

OPTIONS = {"repeats": session.repeats(5), "replicas": (1, "replicas of a group"),
           "only": session.ONLY, "quick": (False, "few requests of a tenth of the page")}
QUIET = "noted"
ENTRY = "php_execute_script"
HINTS = {"no hints": f"{ENTRY}:1:0", "hints": f"{ENTRY}:{m.CLIENTS}:5000"}
KINDS = (php.PhpCgi, php.ModPhp, php.PhpCivetweb)


def settings(replicas):
    return {"native": (0, []), **{
        f"{mode}, {name}": (replicas, ["--mode", mode, "--soft-barrier", hint])
        for mode in ("serial", "parallel") for name, hint in HINTS.items()}}


def page_only(kind, rounds):
    class Page(kind):
        requests = (_web.AB_LEAST, 200)

        def load(self, requests):
            self.pages = ((f"page.php?n={rounds}", 1.0, False),)
            rows = _web.Web.load(self, max(requests, _web.AB_LEAST))
            return [("page", *row[1:]) for row in rows]
    return Page


def runs_of(x, kind):
    m.h.need(*kind.programs)
    quick = x.options.quick
    page = page_only(kind, php.FULL // 10 if quick else php.FULL)
    _, server = prepared_server(x.place, page)
    return repeated(x.place, server, settings(x.options.replicas), page.requests[not quick],
                    x.options.repeats)


def measure(x):
    for kind in (kind for kind in KINDS if x.options.only in kind.name):
        for run in x.attempt(kind.name, functools.partial(runs_of, x, kind)) or ():
            x.add({"key": [kind.name, run["configuration"], run["repeat"]], **run})


def text(rows, x):
    return (tables.comparison(flat(rows), "load", "configuration", "native")
            + tables.busy_text(rows) + tables.commits_text(rows)
            + tables.missing_text(x.left_out))


def panes(rows, _):
    runs = flat(rows)
    native = tables.grouped([row for row in runs if row["configuration"] == "native"], "load")
    over = [{**row, "overhead, %": 100 * (1 / share - 1)} for row in runs
            if row["configuration"] != "native"
            for share in tables.ratios([row], native.get(row["load"], []))]
    return [tables.bars(over, "load", "overhead, %", "configuration", "of native, measured")]
