#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The processor time of all processes of an idle group of three apache2."""
import os
import time

import _harness as h

AIM_PERCENT = 1.0   # of one core


def ticks(pids):
    return {pid: h.process_stat(pid)[1] for pid in pids if h.process_stat(pid)}


def body(story):
    h.need("apache2")
    seconds = 30 if story.full else 6
    port = h.free_port()
    conf = h.apache_configuration(story.work, port)
    with h.Group(story, ["apache2", "-f", str(conf)], port=port) as group:
        h.http(port, b"GET /1k.html HTTP/1.0\r\n\r\n")
        group.settle()
        pids = group.processes()
        before, begin = ticks(pids), time.monotonic()
        h.wait_until(lambda: time.monotonic() > begin + seconds, seconds + 5, "the time is over")
        after, took = ticks(group.processes()), time.monotonic() - begin
        per_second = os.sysconf("SC_CLK_TCK")
        used = {pid: (t - before.get(pid, 0)) / per_second for pid, t in after.items()}
        percent = 100 * sum(used.values()) / took
        story.say(f"{len(after)} processes used {sum(used.values()):.2f} s in {took:.1f} s: "
                  f"{percent:.2f} % of one core")
        worst = sorted(used, key=used.get)[-3:]
        names = {p: open(f"/proc/{p}/comm", encoding="utf8").read().strip() for p in worst}
        # The clock of these figures ticks every 10 ms: a short run cannot tell less.
        allowed = max(AIM_PERCENT, 100 * 0.01 * len(after) / took if not story.full else 0)
        story.check(percent < allowed, f"idle: below {AIM_PERCENT} % of one core",
                    f"{percent:.2f} %, most by "
                    + ", ".join(f"{names[p]} {used[p]:.2f} s" for p in worst))


h.tell("idle", body)
