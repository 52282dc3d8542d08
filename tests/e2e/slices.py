#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time slices: one long computation does not stop the server, and it can be stopped.

Each server computes for one client while other clients send requests. The first computation may run
in one piece: it shows where the next ones are sliced. Then a light request is answered repeatedly
during a computation. Events that natively end a long computation (a timer, a limit, another
session) end it under Crane, at the same place on all replicas: their outputs and schedules are
equal.
"""
import _computing as c
import _harness as h

LIGHT = 3   # answers during one computation: natively hundreds; without slices at most one
TRIES = 10  # computations, for a machine on which the light requests get little processor time


def answers_beside(server, first):
    """The most answers during one computation; raises h.Failure if that gave another result."""
    most = 0
    for _ in range(TRIES):
        computed, answers = c.run_beside(server.compute, server.light)
        if computed != first:
            raise h.Failure(f"computed {first!r} first, then {computed!r}")
        most = max(most, answers)
        if most >= LIGHT:
            break
    return most


def prove(scenario, kind):
    h.need(*kind.programs)
    name = kind.__name__
    work = scenario.work / name
    work.mkdir()
    work.chmod(0o755)
    server = kind(work=work, out=scenario.out)
    with h.Group(scenario, server.command, port=server.port, record=True,
                 options=server.options) as group:
        h.wait_until(server.ready, 60, f"{name} answers")
        first = server.compute()
        answers = answers_beside(server, first)
        scenario.check(answers >= LIGHT, f"{name}: others are answered while one computes",
                       f"{answers} answers")
        for how in server.stops:
            scenario.check(c.stops(server, how), f"{name}: {how} ends a computation")
        group.settle(120)
    c.check_histories(scenario, group, name)


def body(scenario):
    wanted = scenario.options.only
    for kind in c.KINDS:
        if not wanted or kind.__name__.lower() in wanted.split(","):
            prove(scenario, kind)


if __name__ == "__main__":
    h.run_scenario("slices", body, only={"default": "", "help": "servers, e.g. perl,redis"})
