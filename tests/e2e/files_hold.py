#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: a group reads one state of its machine's files (FILES-2), whatever is installed meanwhile.
METHOD: redis as a package installs it (a program below /usr, settings in /etc). Both are replaced
as dpkg does it, while the group runs. Then lost replicas recover, by their log and by CRIU, and the
group is upgraded, with a program that starts and with one that does not.
CHECKS: a recovered replica has the old program and settings and agrees; status reports newer ones;
after crane-ctl upgrade every server has the new ones; a program that does not start is rolled back
to the previous state; a stop and a start of a lasting group change nothing.
"""
import contextlib
import os
import pathlib
import shutil

import _harness as h
from checkpoints import checkpoint, control, recover

PLACE = pathlib.Path(f"/usr/local/lib/crane-test-{os.getpid()}")
SETTINGS = pathlib.Path(f"/etc/crane-test-{os.getpid()}.conf")
PROGRAM = PLACE / "redis-server"


def replace(path, data):
    """As dpkg does it: the old file keeps its content and loses its name."""
    fresh = path.with_name(path.name + ".dpkg-new")
    fresh.write_bytes(data)
    fresh.chmod(0o755)
    fresh.rename(path)


@contextlib.contextmanager
def installed(port):
    PLACE.mkdir()
    try:
        shutil.copy(shutil.which("redis-server", path="/usr/bin"), PROGRAM)
        configure(port, 1001)
        yield
    finally:
        shutil.rmtree(PLACE)
        SETTINGS.unlink(missing_ok=True)


def configure(port, clients):
    replace(SETTINGS, f"port {port}\nbind 127.0.0.1\nsave \"\"\nmaxclients {clients}\n".encode())


def another_build():
    replace(PROGRAM, PROGRAM.read_bytes() + b"another build")


def programs(group):
    """The size of the program that each replica's server runs."""
    return {n: os.stat(f"/proc/{s['server_pid']}/exe").st_size
            for n, s in group.statuses().items()
            if s and s["server_pid"] and os.path.exists(f"/proc/{s['server_pid']}/exe")}


def clients_of(port):
    return h.Redis(port, 20)("CONFIG", "GET", "maxclients")[1]


def set_some(port, first, count):
    client = h.Redis(port, 20)
    for number in range(first, first + count):
        client("SET", f"key{number}", f"value{number}")


def is_whole(scenario, group, what, size):
    group.settle()
    # crane-run may still record the process of a server that has just begun again.
    h.wait_until(lambda: len(programs(group)) == 3, 60, "every replica's server is known")
    sizes = programs(group)
    scenario.check(set(sizes.values()) == {size} and not group.alarm(), what,
                   f"{sizes}, wanted {size}; {group.brief()}")


def holds(scenario):
    port = h.free_port()
    with installed(port):
        before = PROGRAM.stat().st_size
        program = [str(PROGRAM), str(SETTINGS)]
        with h.Group(scenario, program, port=port, options=["--checkpoint-every", "3600"]) as group:
            set_some(port, 0, 20)
            status, text = control(group, "status", group.name)
            scenario.check("files:" not in text, "status is silent while no file is newer", text)
            another_build()
            configure(port, 2002)
            after = PROGRAM.stat().st_size
            status, text = control(group, "status", group.name)
            scenario.check(f"crane-ctl upgrade {group.name} switches to them" in text,
                           "status says that newer files are there", text)
            recover(group, 1 - min(group.leader(), 1))
            set_some(port, 20, 20)
            is_whole(scenario, group, "a replica that replayed its log has the old program",
                     before)
            checkpoint(group, (group.leader() + 1) % 3)
            for number in range(3):
                recover(group, number)
            set_some(port, 40, 20)
            is_whole(scenario, group,
                     "replicas that recovered from a checkpoint have the old program", before)
            scenario.check(clients_of(port) == b"1001", "they have the old settings")

            status, text = control(group, "upgrade", group.name, "--yes")
            scenario.check(status == 0 and str(PROGRAM) in text and str(SETTINGS) in text,
                           "an upgrade uses the new files, and names them", text)
            set_some(port, 60, 20)
            is_whole(scenario, group, "after the upgrade every server is of the new build", after)
            scenario.check(clients_of(port) == b"2002", "every server reads the new settings")
            recover(group, (group.leader() + 1) % 3)
            is_whole(scenario, group, "a recovered replica changes from the old to the new files",
                     after)
            status, text = control(group, "upgrade", group.name, "--yes")
            scenario.check(status == 5 and "nothing has to end" in text,
                           "an upgrade to the current files is refused", text)

            replace(PROGRAM, pathlib.Path(shutil.which("false")).read_bytes())
            status, text = control(group, "upgrade", group.name, "--yes", "--seconds", "5")
            scenario.check(status == 8, "a program that does not start is rolled back", text)
            is_whole(scenario, group, "the previous program runs", after)
            recover(group, (group.leader() + 1) % 3)
            is_whole(scenario, group, "the previous program runs also after a replay of the log",
                     after)


def lasts(scenario):
    """A lasting group, stopped and started."""
    port = h.free_port()
    with installed(port):
        before = PROGRAM.stat().st_size
        data = scenario.work / "data"
        data.mkdir()
        group = h.Group(scenario, [str(PROGRAM), str(SETTINGS), "--dir", str(data)], port=port,
                        options=["--data", str(data), "--durability", "disk"])
        with group:
            set_some(port, 0, 5)
        another_build()
        group.start()
        with contextlib.ExitStack() as end:
            end.push(group.__exit__)
            is_whole(scenario, group, "a group that was stopped continues with its files", before)
            log = group.log.read_text(errors="replace")
            scenario.check("continues with this machine's programs and /etc as they were" in log,
                           "and crane-run says so", log)


def body(scenario):
    h.need("redis-server")
    if not h.can_contain():
        raise h.CannotRun("without a container the machine's files are read as they are")
    holds(scenario)
    lasts(scenario)


h.run_scenario("files_hold", body)
