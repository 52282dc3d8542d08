#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The processor time of all processes of an idle group of three apache2, and the priorities with
which they wait: idle nodes keep the priority that is lent to a starving loop
(consensus/fabric/urgency.h), servers are SCHED_BATCH (proxy/host/placement.h)."""
import os
import time

import _harness as h

AIM_PERCENT = 1.0   # of one core


def ticks(pids):
    return {pid: h.process_stat(pid)[1] for pid in pids if h.process_stat(pid)}


def used_in(group, seconds):
    """Returns ({pid: seconds of processor time}, length of the interval)."""
    before, begin = ticks(group.processes()), time.monotonic()
    h.wait_until(lambda: time.monotonic() > begin + seconds, seconds + 5, "the time is over")
    after, took = ticks(group.processes()), time.monotonic() - begin
    per_second = os.sysconf("SC_CLK_TCK")
    return {pid: (t - before.get(pid, 0)) / per_second for pid, t in after.items()}, took


def policy(pid):
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


def priorities(scenario, group):
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        scenario.say("no privilege for real-time priorities: not checked")
        return
    nodes = [group.status(i)["pid"] for i in range(3)]
    h.wait_until(lambda: all(policy(pid) == os.SCHED_RR for pid in nodes), 30,
                 "idle nodes have a real-time priority")
    firsts = [group.status(i)["server_pid"] for i in range(3)]
    servers = [*firsts, *h.descendants(firsts)]
    odd = [pid for pid in servers if policy(pid) != os.SCHED_BATCH]
    scenario.check(servers and not odd,
                   "idle nodes have a real-time priority, servers are SCHED_BATCH",
                   f"{[(p, policy(p)) for p in odd]} of {servers}")


def alone(scenario, seconds):
    """A single replica, which has no other replica to contact."""
    port = h.free_port()
    work = scenario.work / "alone"
    work.mkdir()
    work.chmod(0o755)
    conf = h.apache_configuration(work, port)
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port, replicas=1) as group:
        h.http(port, b"GET /1k.html HTTP/1.0\r\n\r\n")
        group.settle()
        used, took = used_in(group, seconds)
        scenario.check(sum(used.values()) < took / 10, "one replica: idle as well",
                       f"{sum(used.values()):.2f} s in {took:.1f} s")


def body(scenario):
    h.need("apache2")
    seconds = 30 if scenario.full else 6
    port = h.free_port()
    conf = h.apache_configuration(scenario.work, port)
    # Scheduled checkpoints, every second: none while clients do nothing.
    every = ["--checkpoint-every", "1"] if h.can_contain() else []
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port, options=every) as group:
        h.http(port, b"GET /1k.html HTTP/1.0\r\n\r\n")

        def taken():
            return sum(s["checkpoint"]["taken"] for s in group.statuses().values() if s)
        able = every and not group.status(0)["checkpoint"]["none_because"]
        if able:
            h.wait_until(taken, 60, "the request's checkpoint is taken")
        group.settle()
        first = taken()
        used, took = used_in(group, seconds)
        if taken() != first:   # the first was taken before the connection ended: one more was due
            first = taken()
            used, took = used_in(group, seconds)
        if able:
            scenario.check(taken() == first <= 2, f"no checkpoint in {took:.0f} idle seconds",
                           str((first, taken())))
        percent = 100 * sum(used.values()) / took
        scenario.say(f"{len(used)} processes used {sum(used.values()):.2f} s in {took:.1f} s: "
                     f"{percent:.2f} % of one core")
        worst = sorted(used, key=used.get)[-3:]
        names = {p: open(f"/proc/{p}/comm", encoding="utf8").read().strip() for p in worst}
        # These figures come from a clock of 10 ms: a short run cannot measure less.
        allowed = max(AIM_PERCENT, 100 * 0.01 * len(used) / took if not scenario.full else 0)
        scenario.check(percent < allowed, f"idle: below {AIM_PERCENT} % of one core",
                       f"{percent:.2f} %, most by "
                       + ", ".join(f"{names[p]} {used[p]:.2f} s" for p in worst))
        priorities(scenario, group)
    alone(scenario, seconds)


h.run_scenario("idle", body)
