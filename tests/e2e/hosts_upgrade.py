#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crane is upgraded on several hosts, one after the other, and then the server, under load.

crane-run --hosts over network namespaces, each host with its own state directory. The builds differ
in bytes and commit, and have equal versions. Clients connect to any host; at a hand-over their
connections may end, and no acknowledged write is lost. Then a build with another schedule version
takes over a group with its log on disk.
"""
import _builds as b
import _harness as h
import hand_over
from _hosts import RoamingCounter, under_way, served
from _network import Network
from hosts_drain import HOSTS, Apart, run


def builds(group):
    """{replica: (commit, digest of its server's libcrane.so)}"""
    found = {n: s["build"] for n, s in group.statuses().items() if s}
    return {n: (one["commit"], one["libcrane"]) for n, one in found.items()}


def roll(scenario, group, clients, commit):
    """The leader last, because it hands over."""
    for number in sorted(range(HOSTS), key=lambda n: n == group.leader()):
        run(scenario, group, f"host {number} is drained", number, "replica", "drain", str(number),
            says=[f"replica {number} is drained"])
        served(clients)
        run(scenario, group, f"host {number} is resumed", number, "replica", "resume", str(number),
            says=[f"replica {number} is back"])
        h.wait_until(lambda n=number: builds(group).get(n, ("",))[0] == commit, 30,
                     f"host {number} runs the new build")
        served(clients)


def upgrade_server(scenario, group, clients):
    """Requested at the leader; the same files are on all hosts."""
    for words, status, says in ((["/bin/sleep", "1000"], 8, "rolled back"),
                                (group.program + ["--maxmemory", "20mb"], 0, "upgraded")):
        run(scenario, group, f"crane-ctl upgrade: {says}", group.leader(), "upgrade", group.name,
            "--yes", "--seconds", "4", "--", *words, status=status, says=[says])
        served(clients)
    limit = group.asked(lambda client: client("CONFIG", "GET", "maxmemory")[1])
    scenario.check(limit == b"20971520", "the new limit is in force", limit)


def check_writes(scenario, group, clients, what):
    problems = group.problems_of(clients)
    scenario.check(not problems, f"{what}: no acknowledged write of "
                   f"{sum(c.answers for c in clients)} is lost", "; ".join(problems[:3]))
    statuses = h.at_rest(group, count=HOSTS)
    same = {(s["outputs_digest"], s["schedule_hash"]) for s in statuses.values()}
    scenario.check(len(same) == 1 and not any(s["verified"]["alarm"] for s in statuses.values()),
                   f"{what}: the replicas are equal", group.brief())
    scenario.check(group.stop() == 0, f"{what}: the group is stopped", group.said()[-500:])


def another_schedule(scenario, network, program, port):
    place = b.installed(scenario, "next")
    secret = scenario.work / "secret"
    h.ctl(scenario, "secret", "new", secret)
    with Apart(scenario, network, program, port=port, out=place,
               options=["--durability", "disk", "--secret-file", str(secret)]) as group:
        clients = [RoamingCounter(group, n) for n in range(4)]
        with under_way(clients):
            hand_over.put(scenario.out / "next-schedule", place, *hand_over.OF_SCHEDULE)
            run(scenario, group, "another schedule: the group is handed over", group.leader(),
                "upgrade", group.name, "--yes", says=["this build runs here: 1 of 1"])
            served(clients)
            h.wait_until(lambda: hand_over.all_are(group, hand_over.NEXT), 30,
                         "all have the next schedule")
        check_writes(scenario, group, clients, "another schedule")


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("network namespaces and containers need root and LXC")
    h.need("redis-server")
    port = h.free_port()
    place = b.installed(scenario, "place")
    program = ["redis-server", "--port", str(port), "--protected-mode", "no", "--bind", "0.0.0.0",
               "--dir", "/var/tmp", "--save", "3600 1"]
    with Network(HOSTS) as network, \
            Apart(scenario, network, program, port=port, out=place) as group:
        clients = [RoamingCounter(group, n) for n in range(4)]
        with under_way(clients):
            commit = b.upgrade(place)
            roll(scenario, group, clients, commit)
            scenario.check({c for c, _ in builds(group).values()} == {commit},
                           "all hosts run the new build", repr(builds(group)))
            upgrade_server(scenario, group, clients)
        check_writes(scenario, group, clients, "upgraded")
    with Network(HOSTS) as network:
        another_schedule(scenario, network, program, port)


if __name__ == "__main__":
    h.run_scenario("hosts_upgrade", body)
