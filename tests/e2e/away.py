#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Catch-up: a replica of redis is away while the others write more than twice the size of a ring.

It recovers first with its store, then as a new machine with nothing. Both times it fetches the
missing entries from a peer's store, brings its server up to date, and can lead. Printed, not
asserted: how fast the others served without it, while it fetched, and afterwards.
"""
import contextlib
import itertools
import shutil
import signal
import time

import _harness as h
from _hosts import Hosts

RING_MB = 16
VALUE = b"v" * 200_000
NUMBERS = itertools.count()


class Filler:
    """Sets values at the current leader, as clients do: on a busy machine the leader may change."""

    def __init__(self, group):
        self.group, self.client = group, None

    def __call__(self, megabytes):
        """Sets this many megabytes in values; returns megabytes/s."""
        begin = time.monotonic()
        for _ in range(megabytes * 1_000_000 // len(VALUE)):
            n = next(NUMBERS)
            h.wait_until(lambda n=n: self.set(n), 60, "a SET is answered")
        return megabytes / (time.monotonic() - begin)

    def set(self, n):
        """Idempotent: the request is sent again if the answer is lost."""
        try:
            if self.client is None:
                self.client = h.Redis(self.group.port, 30,
                                      self.group.addresses[self.group.leader()])
            answer = self.client("SET", f"key:{n % 50}", b"%d:" % n + VALUE)
        except OSError:
            self.close()
            return False
        if answer != "OK":
            raise h.Failure(f"SET was answered with {answer}")
        return True

    def close(self):
        if self.client is not None:
            self.client.close()
        self.client = None


def has_all(group, number, end):
    status = group.status(number)
    return status is not None and status["applied"] >= end and not status["needs_checkpoint"]


def digest_at_leader(group):
    return group.asked(lambda client: client("DEBUG", "DIGEST"))


def away(scenario, group, fill, megabytes, lost):
    victim = (group.leader() + 1) % 3
    group.stop_one(victim, signal.SIGKILL)
    h.wait_until(lambda: not [m for m in group.leftovers() if f"/r{victim}/" in m + "/"], 20,
                 "the killed node's server is gone")
    if lost:
        shutil.rmtree(f"/dev/shm/crane.{group.name}/r{victim}")
        shutil.rmtree(group.dir / "store" / f"r{victim}")
    without = fill(megabytes)
    end = max(s["last"] for s in group.statuses().values() if s)
    group.start(victim)
    during = fill(megabytes // 4)
    h.wait_until(lambda: has_all(group, victim, end), 60,
                 f"replica {victim} has the missing entries: {group.brief()}")
    after = fill(megabytes // 4)
    group.settle(60)
    what = "with nothing" if lost else "with its store"
    scenario.say(f"away for {megabytes} MB (ring {RING_MB} MB), back {what}: the others took "
                 f"{without:.0f} MB/s without it, {during:.0f} when it came, {after:.0f} after")
    scenario.check(True, f"back {what}, it has every byte, and its outputs equal the others'")
    digest = digest_at_leader(group)
    group.lead(victim)
    mine = digest_at_leader(group)
    scenario.check(mine == digest, f"back {what}, it leads, with the same data", f"{mine} {digest}")


def body(scenario):
    h.need("redis-server")
    port = h.free_port()
    megabytes = 200 if scenario.full else 40
    with Hosts(scenario, h.redis_program(port), port=port, fabric=scenario.options.fabric,
               group={"durability": "disk", "ring_mb": RING_MB}) as group:
        with contextlib.closing(Filler(group)) as fill:
            fill(2)
            away(scenario, group, fill, megabytes, lost=False)
            away(scenario, group, fill, megabytes, lost=True)


h.run_scenario("away", body, fabric={"default": "tcp", "choices": ["tcp", "shm"]})
