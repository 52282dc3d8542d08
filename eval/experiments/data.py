# SPDX-License-Identifier: Apache-2.0
"""Rounds of what may happen to a group whose data last.

redis (append-only file), postgresql, mariadb and slapd, three replicas each, `--data` and
`--durability disk`. Each of 8 clients adds ids of its own and remembers which were acknowledged.
In each round one of four things happens while they do: an orderly stop; a kill -9 of everything; a
stop and the loss of one replica's directory; a kill -9 of crane-run alone.  The group is started
again, and every id that was ever acknowledged must be there, once, and the replicas be equal.
"""
import json
import random
import signal
import statistics
import time

import _data as d
import _harness as h
import _matrix as m
import tables

KINDS = {"redis": d.Redis, "slapd": d.Slapd, "postgresql": d.Postgres, "mariadb": d.Mariadb}
CLIENTS = 8
ANSWERS = 25   # per client, before something happens


def lose_directory(last):
    last.stop()
    d.forget(last.dir, random.randrange(3))


def kill_crane_run(last):
    """Only crane-run: what becomes of the nodes is theirs."""
    last.group.remember(last.group.state())
    last.group.process.send_signal(signal.SIGKILL)
    last.group.process.wait(20)


EVENTS = {"stopped": lambda last: last.stop(), "all killed": lambda last: last.kill_everything(),
          "a directory lost": lose_directory, "crane-run killed": kill_crane_run}
OPTIONS = {"rounds": {"type": int, "default": 20, "help": "of each event (default 20)"},
           "servers": {"default": ",".join(KINDS), "help": "some of " + ", ".join(KINDS)},
           "events": {"default": ",".join(EVENTS), "help": "some of " + ", ".join(EVENTS)}}


def one_round(last, event, number):
    with d.Pushers(last.server, CLIENTS, number) as pushers:
        pushers.wait(ANSWERS, 180)
        EVENTS[event](last)
    last.acknowledged += pushers.acknowledged()
    began = time.monotonic()
    last.start()
    took = time.monotonic() - began
    well = last.check(f"round {number}, {event}")
    last.check_same_answers(f"round {number}, {event}")
    return took, well


def rounds_of(scenario, name, rounds, events):
    """A row of each event."""
    kind = KINDS[name]
    server = kind(m.place_of(scenario, kind), h.free_port())
    last = d.LastingGroup(scenario, server, disk=True)
    number = 0
    last.start()
    for event in events:
        took, bad = [], 0
        for _ in range(rounds):
            number += 1
            seconds, well = one_round(last, event, number)
            took.append(seconds)
            bad += not well
        yield {"server": name, "event": event, "rounds": rounds,
               "acknowledged by then": len(last.acknowledged), "rounds with a loss": bad,
               "median s": round(statistics.median(took), 2), "worst s": round(max(took), 2)}
    last.stop()


def scenario(x):
    """Rounds of stops, kills and losses over groups whose data last."""
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    found, results = [], x.out / "bench"
    results.mkdir(exist_ok=True)
    for name in x.options.servers.split(","):
        for row in rounds_of(x, name, x.options.rounds, x.options.events.split(",")):
            print(row, flush=True)
            found.append(row)
            (results / "data.json").write_text(json.dumps(found, indent=1) + "\n")
    print(tables.table(list(found[0]), [list(row.values()) for row in found], 2))
