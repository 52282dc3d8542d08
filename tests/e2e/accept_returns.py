#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: a lost replica returns soon, under any load (`make accept`).
METHOD: redis-benchmark with 8 clients, ab -k -c 8, sysbench with 4 threads and pgbench with 4
clients, each at full load. A follower's node and server are killed every 20 s, while the log grows.
CHECKS: each time, status reports three of three again. Printed: the median and the worst time until
then, and the clients' throughput meanwhile as a share of that before the kill.
"""
import json
import os
import signal
import statistics
import subprocess
import time

import _harness as h
import storm
from server_mariadb import Mariadb

KILLS = 10
EVERY = 20.0             # seconds from one kill to the next
BEFORE = 4.0             # seconds of load before a kill that the load after it is compared with
PATIENCE = 120


class Sysbench(Mariadb):
    name, options = "mariadb", ()

    def __init__(self, scenario, work, _seed):
        self.work, self.port = work, h.free_port()
        self.prepare()
        self.program, program = None, self.program()
        self.program = program
        self.load = ["sysbench", "oltp_read_write", "--mysql-host=127.0.0.1",
                     f"--mysql-port={self.port}", "--mysql-user=root", "--table-size=10000",
                     "--mysql-ignore-errors=1213", "--threads=4", "--time=3600", "run"]


SERVERS = {kind.name: kind for kind in (storm.Redis, storm.Apache, storm.Postgres, Sysbench)}


def is_whole(group):
    answer = group.verdict()[1]
    return answer["verdict"]["health"] == "well" and not answer["verdict"]["notes"]


def committed(group):
    """Entries committed so far, according to the leader."""
    return max((s["commit"] for s in group.statuses().values() if s), default=0)


def lose_one(group):
    """Returns (seconds until three of three, clients' throughput meanwhile as a share of that
    before)."""
    first, began = committed(group), time.monotonic()
    time.sleep(BEFORE)   # the measurement itself
    second, at = committed(group), time.monotonic()
    victim = next(n for n in range(3) if n != group.leader())
    row = group.replica(victim)
    for pid in (row["node_pid"], row["server_pid"]):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # its container ended with its node
    h.wait_until(lambda: not h.alive(row["node_pid"]), 20, "its node has ended")
    h.wait_until(lambda: is_whole(group), PATIENCE, f"three of three: {group.verdict()[1]}")
    back = time.monotonic()
    rate = (committed(group) - second) / (back - at)
    return back - at, rate / max((second - first) / (at - began), 1e-9)


def one_server(scenario, kind, kills):
    h.need(*kind.programs)
    work = scenario.work / kind.name
    work.mkdir()
    work.chmod(0o755)
    server = kind(scenario, work, 1)
    rows = []
    with h.Group(scenario, server.program, port=server.port, options=server.options) as group:
        h.wait_until(lambda: is_whole(group), 120, "three of three")
        began = time.monotonic()
        load = subprocess.Popen(server.load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for n in range(kills):
                # No condition: the load continues until the next kill.
                time.sleep(max(0.0, began + EVERY * (n + 1) - BEFORE - time.monotonic()))
                seconds, share = lose_one(group)
                rows.append((time.monotonic() - began, seconds, share))
                print(f"  {kind.name}: at {rows[-1][0]:.0f} s: back after {seconds:.1f} s, clients "
                      f"had {share:.2f} of before", flush=True)
                scenario.check(load.poll() is None, f"{kind.name}: the load still runs ({n + 1})")
        finally:
            load.terminate()
            load.wait()
        group.remember(group.state())
        statuses = group.settle(90)
        scenario.check(len(statuses) == 3, f"{kind.name}: three of three, equal")
    took = sorted(seconds for _, seconds, _ in rows)
    shares = sorted(share for *_, share in rows)
    scenario.say(f"{kind.name}: {len(rows)} returns, median {statistics.median(took):.1f} s, worst "
                 f"{took[-1]:.1f} s; clients had {statistics.median(shares):.2f} of before, least "
                 f"{shares[0]:.2f}")
    return {"server": kind.name, "rows": rows}


def body(scenario):
    names = scenario.options.servers.split(",") if scenario.options.servers else [*SERVERS]
    path = scenario.out / "bench" / "returns.json"
    path.parent.mkdir(exist_ok=True)
    notes = {"machine": storm.machine(), "servers": []}
    for name in names:
        notes["servers"].append(one_server(scenario, SERVERS[name], scenario.options.kills))
        path.write_text(json.dumps(notes, indent=1) + "\n")
    print(f"raw: {path}")


if __name__ == "__main__":
    h.run_scenario("accept_returns", body,
                   servers={"default": "", "help": f"some of {','.join(SERVERS)}"},
                   kills={"type": int, "default": KILLS, "help": "of each server"})
