#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log of an idle server does not grow without limit: a redis whose timers write 200 entries a
second, and which has no clients, takes scheduled checkpoints, and a lost replica recovers from
there. --checkpoint-log 1 replaces 64, so that minutes replace hours."""
import signal
import time

import _harness as h

TIMERS = 200


def body(scenario):
    h.need("redis-server")
    if not h.can_contain():
        raise h.CannotRun("checkpoints need containers")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port, "--hz", str(TIMERS), "--dynamic-hz", "no"),
                 port=port,
                 options=["--checkpoint-log", "1", "--checkpoint-every", "2"]) as group:
        h.wait_until(lambda: h.redis_answers(port), 20, "redis answers")
        none = group.status(0)["checkpoint"]["none_because"]
        if none:
            raise h.CannotRun(f"no checkpoints here: {none}")

        def taken():
            return sum(s["checkpoint"]["taken"] for s in group.statuses().values() if s)

        def asked():
            status = group.status(group.leader())
            return status["entries"]["checkpoint"] if status else 0
        h.wait_until(lambda: asked() >= 1, 20, "a client's request is checkpointed")
        begin = asked()
        h.wait_until(lambda: asked() >= begin + 2, 50,
                     "an idle server's log is cut without a request")
        scenario.check(True, "an idle server's log is cut repeatedly without a request")
        h.wait_until(lambda: taken() >= 1, 60, "a checkpoint of the idle server is kept")
        follower = (group.leader() + 1) % 3
        before = group.replica(follower)["node_pid"]
        end = max(s["last"] for s in group.statuses().values() if s)
        since = time.monotonic()
        group.signal_node(follower, signal.SIGKILL)

        def is_back():
            pid = group.replica(follower)["node_pid"]
            status = group.status(follower) if pid not in (before, None) and h.alive(pid) else None
            return status if status and status["applied"] >= end and status["server_pid"] else None
        said = h.wait_until(is_back, 30, "the lost replica recovers")
        place = said["checkpoint"]["restored_at"]
        again = end - place
        scenario.say(f"{end} entries; it recovered in {time.monotonic() - since:.1f} s from entry "
                     f"{place}, {again} behind")
        scenario.check(place > 0, "it recovers from a checkpoint",
                       f"{again} of {end} entries behind")


h.run_scenario("idle_log", body)
