#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Soft barriers without source: PHP processes behind civetweb wait for each other before PHP's
entry, at the same turns on three disturbed replicas; status reports the state of each point."""
import subprocess

import _harness as h
import _matrix as m
import server_php

ENTRY, PAGES = "php_execute_script", 64
TRIES = 5


def points(status):
    return {point["function"]: point for point in status["soft_barriers"]}


def body(scenario):
    kind = server_php.PhpCivetweb
    h.need(*kind.programs)
    if not h.can_contain():
        raise h.CannotRun("needs root and LXC")
    server = kind(m.place_of(scenario, kind), h.free_port())
    # The first point is the profile's.
    options = ["--perturb", "1", "--mode", "parallel", "--soft-barrier", "no_such_function:4:1000"]
    with h.Group(scenario, server.command, port=server.port, record=True, options=options) as group:
        h.wait_until(server.ready, 60, "civetweb answers")
        group.settle(60)
        before = {n: points(status)[ENTRY] for n, status in group.statuses().items()}
        # A process alone fills no round: there are fewer rounds than pages only if some processes
        # met. On a busy machine they may arrive too far apart; then more pages are requested.
        for tries in range(1, TRIES + 1):
            server.load(PAGES)
            group.settle(60)
            now = {n: points(status) for n, status in group.statuses().items()}
            arrivals, rounds = ({n: now[n][ENTRY][what] - before[n][what] for n in now}
                                for what in ("arrivals", "rounds"))
            if any(rounds[n] < arrivals[n] for n in now):
                break
        for n, found in now.items():
            entry, none = found[ENTRY], found["no_such_function"]
            scenario.check(entry["origin"] == "the profile civetweb" and entry["state"] == "found"
                           and
                           arrivals[n] == PAGES * tries,
                           f"replica {n}: every page came to {ENTRY}", repr(entry))
            scenario.check(0 < rounds[n] < arrivals[n], f"replica {n}: processes met there",
                           repr(entry))
            scenario.check(none["state"] == "not found",
                           f"replica {n}: a missing function is reported",
                           repr(none))
        text = subprocess.run([str(scenario.out / "crane-ctl"), "--dir", str(group.home), "status",
                               group.name], stdout=subprocess.PIPE, text=True, timeout=30).stdout
        scenario.check("soft barrier no_such_function (--soft-barrier): not found;" in text,
                       "crane-ctl status reports it", text)
        group.stop()
        scenario.say(scenario.check_equal(group))
        scenario.say(scenario.check_schedule(group))


if __name__ == "__main__":
    h.run_scenario("soft_barriers", body)
