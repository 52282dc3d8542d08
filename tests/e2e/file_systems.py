#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicas on different file systems behave the same: ext4 with blocks of 1 KB, ext4 with 4 KB, and
xfs, btrfs or tmpfs. redis with an append-only file, apache2 and slapd, each under clients; their
answers and schedules are equal."""
import _file_systems as f
import _harness as h
import _matrix as m
from server_apache import KINDS as APACHE
from server_redis import RedisDurable
from server_slapd import Slapd

SERVERS = (RedisDurable, APACHE[0], Slapd)


def one_server(scenario, kind, kinds):
    server = kind(m.place_of(scenario, kind), h.free_port())
    with f.SpreadGroup(scenario, server.command, kinds=kinds, port=server.port, record=True,
                       options=server.options) as group:
        h.wait_until(server.ready, 60, f"{kind.name} answers")
        for row in server.load(server.requests[scenario.full]):
            scenario.say(f"{kind.name}: {row[0]} {row[1]:.0f}/s")
        scenario.say(f"{kind.name}: {server.state()}")
        statuses = group.settle(120)
        scenario.check(len(statuses) == 3, f"{kind.name}: three replicas live", repr(group.brief()))
        group.stop()
        text = scenario.check_equal(group, what=f"{kind.name}: every byte is equal")
        scenario.say(f"{kind.name}: {text}")
        text = scenario.check_schedule(group,
                                       what=f"{kind.name}: schedule equal at every log index")
        scenario.say(f"{kind.name}: {text}")


def body(scenario):
    kinds = f.three(scenario)
    scenario.say(f"the replicas are on {', '.join(kinds)}")
    for kind in SERVERS:
        try:
            h.need(*kind.programs)
        except h.CannotRun as cause:
            scenario.say(f"left out: {kind.name}: {cause}")
            continue
        one_server(scenario, kind, kinds)


h.run_scenario("file_systems", body)
