#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rounds of what may happen to a group whose data last (`make eval-data`).

redis (append-only file), postgresql, mariadb and slapd, three replicas each, `--data` and
`--durability disk`. Each of 8 clients adds ids of its own and remembers which were acknowledged.
In each round one of four things happens while they do: a stop in order; a kill -9 of everything; a
stop and the loss of one replica's directory; a kill -9 of crane-run alone.  The group is started
again, and every id that was ever acknowledged must be there, once, and the replicas be equal.
Printed, and in <out>/data_rounds.json: per server and event rounds, acknowledged ids, lost ids,
seconds from the start until the server answered.
"""
import json
import pathlib
import random
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _data as d  # noqa: E402
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402

KINDS = {"redis": d.Redis, "slapd": d.Slapd, "postgresql": d.Postgres, "mariadb": d.Mariadb}
CLIENTS = 8
ANSWERS = 25   # per client, before something happens


def stop_in_order(last):
    last.stop()


def kill_everything(last):
    last.kill_everything()


def lose_directory(last):
    last.stop()
    d.forget(last.dir, random.randrange(3))


def kill_crane_run(last):
    """Nobody else: what becomes of the nodes is theirs."""
    last.group.remember(last.group.state())
    last.group.process.send_signal(signal.SIGKILL)
    last.group.process.wait(20)


EVENTS = {"stopped": stop_in_order, "all killed": kill_everything,
          "a directory lost": lose_directory, "crane-run killed": kill_crane_run}


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


def rounds_of(scenario, kind, rounds, events):
    server = kind(m.place_of(scenario, kind), h.free_port())
    last = d.LastingGroup(scenario, server, disk=True)
    rows, number = {}, 0
    last.start()
    for event in events:
        took, bad = [], 0
        for _ in range(rounds):
            number += 1
            seconds, well = one_round(last, event, number)
            took.append(seconds)
            bad += not well
        rows[event] = {"rounds": rounds, "acknowledged": len(last.acknowledged), "bad": bad,
                       "median_s": round(statistics.median(took), 2),
                       "worst_s": round(max(took), 2)}
        print(f"{kind.name}: {event}: {rows[event]}", flush=True)
    last.stop()
    return rows


def body(scenario):
    options = scenario.options
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    found = {}
    for name in options.servers.split(","):
        found[name] = rounds_of(scenario, KINDS[name], options.rounds, options.events.split(","))
        path = scenario.out / "data_rounds.json"
        path.write_text(json.dumps(found, indent=1) + "\n")
    print("| server | event | rounds | acknowledged by then | rounds with a loss "
          "| median s | worst s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name, rows in found.items():
        for event, r in rows.items():
            print(f"| {name} | {event} | {r['rounds']} | {r['acknowledged']} | {r['bad']} | "
                  f"{r['median_s']} | {r['worst_s']} |")


if __name__ == "__main__":
    h.tell("data_rounds", body,
           rounds={"type": int, "default": 20, "help": "of each event (default 20)"},
           servers={"default": ",".join(KINDS), "help": "some of " + ", ".join(KINDS)},
           events={"default": ",".join(EVENTS), "help": "some of " + ", ".join(EVENTS)})
