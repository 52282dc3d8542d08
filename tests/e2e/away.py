#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Catch-up: a replica of redis is away while the others take in more than twice what a ring holds.

It comes back with its store, and then as another machine with nothing; both times it fetches what
it missed from a peer's store, runs its server up to date, and can lead. Printed, not asserted: how
fast the others served without it, while it fetched, and after.
"""
import itertools
import shutil
import signal
import time

import _harness as h
from _hosts import Hosts

RING_MB = 16
VALUE = b"v" * 200_000
NUMBERS = itertools.count()


def fill(group, leader, megabytes):
    """Sets so many megabytes in values, and gives megabytes/s."""
    client = h.Redis(group.port, 30, group.addresses[leader])
    try:
        begin = time.monotonic()
        for _ in range(megabytes * 1_000_000 // len(VALUE)):
            n = next(NUMBERS)
            if client("SET", f"key:{n % 50}", b"%d:" % n + VALUE) != "OK":
                raise h.Failure("SET was not answered with OK")
        return megabytes / (time.monotonic() - begin)
    finally:
        client.close()


def has_all(group, number, end):
    status = group.status(number)
    return status is not None and status["applied"] >= end and not status["needs_checkpoint"]


def digest_of(group, leader):
    client = h.Redis(group.port, 30, group.addresses[leader])
    try:
        return client("DEBUG", "DIGEST")
    finally:
        client.close()


def away(story, group, megabytes, lost):
    leader = group.leader()
    victim = (leader + 1) % 3
    group.stop_one(victim, signal.SIGKILL)
    h.wait_until(lambda: not [m for m in group.leftovers() if f"/r{victim}/" in m + "/"], 20,
                 "the killed node's server is gone")
    if lost:
        shutil.rmtree(f"/dev/shm/crane.{group.name}/r{victim}")
        shutil.rmtree(group.dir / "store" / f"r{victim}")
    without = fill(group, leader, megabytes)
    end = group.status(leader)["last"]
    group.start(victim)
    during = fill(group, leader, megabytes // 4)
    h.wait_until(lambda: has_all(group, victim, end), 60,
                 f"replica {victim} has what it missed: {group.brief()}")
    after = fill(group, leader, megabytes // 4)
    group.settle(60)
    what = "with nothing" if lost else "with its store"
    story.say(f"away for {megabytes} MB (ring {RING_MB} MB), back {what}: the others took "
              f"{without:.0f} MB/s without it, {during:.0f} when it came, {after:.0f} after")
    story.check(True, f"back {what}, it has every byte, and its outputs are those of the others")
    digest = digest_of(group, leader)

    def transferred():
        return group.ctl("leader", "transfer", group.name, "--to", str(victim))[0] == 0
    h.wait_until(transferred, 30, f"replica {victim} may lead")
    h.wait_until(lambda: group.leader() == victim, 30, f"replica {victim} leads")
    mine = digest_of(group, victim)
    story.check(mine == digest, f"back {what}, it leads, with the same data", f"{mine} {digest}")


def body(story):
    h.need("redis-server")
    port = h.free_port()
    megabytes = 200 if story.full else 40
    with Hosts(story, h.redis_program(port), port=port, fabric=story.options.fabric,
               group={"durability": "disk", "ring_mb": RING_MB}) as group:
        fill(group, group.leader(), 2)
        away(story, group, megabytes, lost=False)
        away(story, group, megabytes, lost=True)


h.tell("away", body, fabric={"default": "tcp", "choices": ["tcp", "shm"]})
