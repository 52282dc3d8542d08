#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A build of Crane with another schedule version takes over a group: `crane-ctl upgrade`.

All replicas' servers end at one entry of the log, and nodes of the new build begin with the files
that the servers left. The new build is the same source with the next number
(runtime/packaging/cmake/NextSchedule.cmake)."""
import contextlib
import json
import os
import re
import shutil
import threading

import _builds as b
import _harness as h
from checkpoints import check_equal, control, lead
from upgrade import Placed, ask, builds, lose_and_lead, run

OF_SCHEDULE = ("crane-run", "crane-node", "crane-ctl")   # programs that contain the number
VERSIONS = (h.ROOT / "dmt/base/versions.h").read_text()
THIS = re.search(r"kSchedule = (\d+);", VERSIONS)[1]
NEXT = str(int(THIS) + 1)


def schedules(group):
    """{replica: its build's version of the schedule}"""
    found = {n: s["build"]["versions"] for n, s in group.statuses().items() if s}
    return {n: text.split("schedule ")[1].split(",")[0] for n, text in found.items()}


def put(source, place, *names):
    """As an installer does: atomically, and running programs keep the old file."""
    for name in names:
        shutil.copy2(source / name, place / (name + ".fresh"))
        os.rename(place / (name + ".fresh"), place / name)


@contextlib.contextmanager
def other_crane_ctl(scenario, place):
    """Uses the crane-ctl of the new build."""
    scenario.out, before = place, scenario.out
    try:
        yield before
    finally:
        scenario.out = before


def redis(port):
    return ["redis-server", "--port", str(port), "--dir", "/var/tmp", "--save", "3600 1",
            "--appendonly", "no"]


def all_are(group, number):
    told = schedules(group)
    return len(told) == 3 and set(told.values()) == {number}


def refusals(scenario, group, place, new):
    """The new build's messages where it cannot, or need not, take over."""
    run(scenario, group, "equal versions: refused, with the way to continue", "upgrade", group.name,
        "--yes", status=5, says=["nothing has to end at once", "resume N"])
    put(new, place, "crane-ctl")
    with other_crane_ctl(scenario, place):
        run(scenario, group, "before it is installed: refused", "upgrade", group.name, "--yes",
            status=5, says=["would start again with its old build"])
        put(new, place, *OF_SCHEDULE)
        b.exchange(place / "crane-ctl", b"\0wire\0", b"\0wirf\0")
        run(scenario, group, "another wire version: refused", "upgrade", group.name, "--yes",
            status=5, says=["other versions: wirf", "stop the group"])
        put(new, place, "crane-ctl")
        run(scenario, group, "without --yes: refused", "upgrade", group.name, status=5,
            says=[f"schedule {THIS}", f"schedule {NEXT}", "its clients are disconnected", "--yes"])
    scenario.check(all_are(group, THIS), "nothing has ended", repr(schedules(group)))


def one_host(scenario, new, options):
    """Upgrades under load, then with a lost replica, another leader, and another crane-run."""
    port = h.free_port()
    what = " ".join(options) or "memory"
    place = b.installed(scenario, f"place-{len(what)}")
    with Placed(scenario, place, redis(port), port=port, options=options) as group:
        with h.Load(port, timeout=30) as load:
            if not options:
                refusals(scenario, group, place, new)
            put(new, place, *OF_SCHEDULE)
            b.exchange(place / "libcrane.so", b"GCC: (", b"CCG: (")
            before = builds(group)[0]
            load.progress()
            with other_crane_ctl(scenario, place):
                run(scenario, group, f"{what}: the group is handed over", "upgrade", group.name,
                    "--yes", says=["from wire", "ends at entry", "this build runs here: 3 of 3"])
            scenario.check(all_are(group, NEXT), f"{what}: the schedule is the next one",
                           repr(schedules(group)))
            scenario.check(before[1] not in {one[1] for one in builds(group).values()},
                           f"{what}: every server has the new libcrane.so", repr(builds(group)))
            group.remember(group.state())
            load.progress()
            lose_and_lead(scenario, group, load, f"{what}: ")
        check_equal(scenario, group, f"{what}: handed over")
        if not options:
            return
        ask(group, "SET", "kept", "7")
        scenario.check(group.stop() == 0, f"{what}: it is stopped")
        group.start()
        scenario.check(ask(group, "GET", "kept") == b"7" and all_are(group, NEXT),
                       f"{what}: its log continues with the new build", repr(schedules(group)))


def one_away(scenario, new):
    """A replica that was drained meanwhile begins where the others did."""
    port = h.free_port()
    place = b.installed(scenario, "away")
    with Placed(scenario, place, redis(port), port=port, options=["--durability", "disk"]) as group:
        ask(group, "SET", "kept", "7")
        away = (group.leader() + 1) % 3
        run(scenario, group, "one replica is drained", "replica", "drain", str(away), group.name)
        put(new, place, *OF_SCHEDULE)
        with other_crane_ctl(scenario, place):
            run(scenario, group, "the other two are handed over", "upgrade", group.name, "--yes",
                says=["this build runs here: 2 of 2"])
        run(scenario, group, "the third is back", "replica", "resume", str(away), group.name)
        h.wait_until(lambda: all_are(group, NEXT), 30, "all have the next schedule")
        scenario.check(ask(group, "GET", "kept") == b"7", "one away: its data is there")
        lead(group, away)
        scenario.check(ask(group, "GET", "kept") == b"7",
                       "one away: its data is there when it leads")
        check_equal(scenario, group, "one away")


def attempts(group):
    """How often each replica was started without success."""
    files = [group.dir / f"r{n}" / "returning.json" for n in range(3)]
    return [json.loads(one.read_text())["attempts"] for one in files if one.exists()]


def does_not_come_up(scenario, old, new):
    """The server's program was replaced as well: no node begins, and crane-run keeps trying. When
    the old files are restored, the old build continues where its servers ended."""
    port = h.free_port()
    place = b.installed(scenario, "broken")
    server = scenario.work / "redis-server"
    shutil.copy2(shutil.which("redis-server"), server)
    with Placed(scenario, place, [str(server), *redis(port)[1:]], port=port) as group:
        with h.Load(port, timeout=60) as load:
            load.progress()
            put(new, place, *OF_SCHEDULE)
            patched = scenario.work / "patched"
            patched.write_bytes(server.read_bytes() + b"patched")
            patched.chmod(0o755)
            os.rename(patched, server)
            results = []
            with other_crane_ctl(scenario, place):
                asking = threading.Thread(target=lambda: results.append(
                    control(group, "upgrade", group.name, "--yes")))
                asking.start()
                # One more than makes crane-run give up a group whose replicas fail without a
                # hand-over.
                h.wait_until(lambda: len(attempts(group)) == 3 and min(attempts(group)) > 5, 60,
                             "each replica has failed six times")
                shutil.copy2(shutil.which("redis-server"), patched)
                os.rename(patched, server)
                put(old, place, *OF_SCHEDULE)
                asking.join(150)
            scenario.check(results and results[0][0] == 5 and "started again with the old build" in
                           results[0][1], "a group that cannot begin is told of", repr(results))
            h.wait_until(lambda: all_are(group, THIS), 90, "the old build is back")
            group.remember(group.state())
            load.progress()
            load.stop()
            scenario.check(not load.problems(), "a group that could not begin: no write is lost",
                           load.problems()[:3])
        check_equal(scenario, group, "with the old build again")


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("checkpoints need root and LXC")
    h.need("redis-server")
    old, new = scenario.out, scenario.out / "next-schedule"
    one_host(scenario, new, [])
    one_host(scenario, new, ["--durability", "disk"])
    one_away(scenario, new)
    does_not_come_up(scenario, old, new)


if __name__ == "__main__":
    h.run_scenario("hand_over", body)
