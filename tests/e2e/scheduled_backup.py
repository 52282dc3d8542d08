#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-backup on a running group: it makes backups, proves by a restore that they are complete,
and rotates them. Whatever fails (a damaged file, a command, a full disk, a second run, a stopped
group), no older backup is lost, and the metrics report it. A kept backup restores the group."""
import contextlib
import datetime
import fcntl
import os
import re
import shlex
import shutil
import subprocess

import _data as d
import _harness as h
import _matrix as m
import backup as b

SCRIPT = h.ROOT / "runtime/packaging/backup/crane-backup"
UNVERIFIED, UNSENT, UNMADE, BUSY, USAGE, NO_ROOM = 9, 10, 11, 75, 100, 109
FAR = 10 ** 9   # MiB: more than any disk has
SMALL = "64k"   # less than any backup needs
# Cuts the file that the real program has written.
CUTS = """#!/bin/sh
{program} "$@" || exit $?
[ "$1" != backup ] || truncate -s -1000 "$2"
"""


class ScheduledRedis(d.Redis):
    name = "redis, scheduled backups"


class Backups:
    """The script, its settings and what it keeps."""

    def __init__(self, scenario, group):
        self.scenario, self.group = scenario, group
        self.place, self.textfiles = scenario.work / "backups", scenario.work / "textfiles"
        self.config = scenario.work / "backup.conf"
        self.textfiles.mkdir()

    def run(self, *words, programs=None, **settings):
        """(status, output) of the script; `programs`: a directory that replaces programs."""
        given = {"DIRECTORY": self.place, "TEXTFILES": self.textfiles, "MIN_FREE_MB": 0,
                 "KEEP_DAILY": 3, **settings}
        self.config.write_text("".join(f"{name}={shlex.quote(str(value))}\n"
                                       for name, value in given.items()))
        places = [*([programs] if programs else []), self.scenario.out, os.environ["PATH"]]
        done = subprocess.run([str(SCRIPT), "--config", str(self.config),
                               *map(str, words or [self.group.name])],
                              env={**os.environ, "PATH": ":".join(map(str, places))},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=180, check=False)
        return done.returncode, done.stdout

    def kept(self):
        """{name: bytes} of the backups, oldest first."""
        return {path.name: path.read_bytes() for path in sorted(self.place.glob("*Z.crane"))}

    def unsent(self):
        return self.place / f"{self.group.name}.unsent.crane"

    def metric(self, name):
        text = (self.textfiles / f"crane_backup_{self.group.name}.prom").read_text()
        found = re.search(rf'^crane_backup_{name}{{group="{self.group.name}"}} (\d+)$', text, re.M)
        return int(found[1]) if found else None

    def refused(self, what, status, words, *command, kept=True, **settings):
        """The run ends with this status; the backups are as before, and nothing else is there."""
        before, success = self.kept(), self.metric("last_success_timestamp_seconds")
        got, said = self.run(*command, **settings)
        self.scenario.check(got == status and all(word in said for word in words),
                            f"{what}: ends with {status}", f"{got}: {said}")
        self.scenario.check(self.kept() == before, f"{what}: all older backups are there",
                            str(list(self.kept())))
        if kept:
            self.scenario.check(self.metric("last_exit_status") == status
                                and self.metric("last_success_timestamp_seconds") == success,
                                f"{what}: the metrics report it")
        self.check_clean(what)

    def check_clean(self, what):
        """No part of a run is left in the directory."""
        allowed = {f".{self.group.name}.lock", f".{self.group.name}.metrics", self.unsent().name}
        left = {path.name for path in self.place.iterdir()} - allowed - set(self.kept())
        self.scenario.check(not left, f"{what}: no part of a run is left", str(left))


def makes(scenario, backups):
    status, said = backups.run()
    kept = backups.kept()
    scenario.check(status == 0 and "verified: yes" in said and len(kept) == 1,
                   "a backup is made and verified beside the running group", f"{status}: {said}")
    if not kept:
        raise h.Failure("there is no backup to continue with")
    name = next(iter(kept))
    scenario.check(re.fullmatch(rf"{re.escape(backups.group.name)}-\d{{8}}T\d{{6}}Z\.crane", name)
                   and (backups.place / name).stat().st_mode & 0o777 == 0o600,
                   "its name has the time, and it is its owner's alone", name)
    scenario.check(backups.metric("last_exit_status") == 0
                   and backups.metric("bytes") == len(kept[name])
                   and backups.metric("restored_bytes") > 0 and backups.metric("kept") == 1
                   and backups.metric("last_success_timestamp_seconds") > 0, "metrics are written")
    prom = backups.textfiles / f"crane_backup_{backups.group.name}.prom"
    scenario.check(prom.stat().st_mode & 0o777 == 0o644, "the node exporter may read them")
    backups.check_clean("a backup")


def rotates(scenario, backups):
    """Two backups of each of five earlier days: the newest of two of these days stay."""
    newest = next(iter(backups.kept().values()))
    today = datetime.datetime.now(datetime.timezone.utc)
    names = {}
    for days in range(1, 6):
        for hour in ("01", "02"):
            day = (today - datetime.timedelta(days=days)).strftime("%Y%m%d")
            names[days, hour] = f"{backups.group.name}-{day}T{hour}0000Z.crane"
            (backups.place / names[days, hour]).write_bytes(newest)
    status, said = backups.run()
    kept = list(backups.kept())
    scenario.check(status == 0 and kept[:-1] == [names[2, "02"], names[1, "02"]],
                   "the newest backup of each of three days is kept", f"{status}: {said}\n{kept}")
    status, said = backups.run(KEEP_DAILY=0, KEEP_LAST=2)
    scenario.check(status == 0 and list(backups.kept())[0] == kept[-1]
                   and len(backups.kept()) == 2,
                   "KEEP_LAST keeps the newest ones", f"{said}\n{list(backups.kept())}")


def damaged(scenario, backups):
    programs = scenario.work / "cuts"
    programs.mkdir()
    (programs / "crane-ctl").write_text(CUTS.format(program=scenario.out / "crane-ctl"))
    (programs / "crane-ctl").chmod(0o755)
    backups.refused("a truncated backup", UNVERIFIED, ["not verified"], programs=programs)
    place = scenario.work / "fetched"
    place.mkdir()
    good = place / "good.crane"
    good.write_bytes(list(backups.kept().values())[-1])
    status, said = backups.run("--verify", good)
    scenario.check(status == 0 and "can be restored" in said, "--verify accepts a good file", said)
    short = place / "short.crane"
    short.write_bytes(good.read_bytes()[:-1000])
    status, said = backups.run("--verify", short)
    scenario.check(status == UNVERIFIED and str(short) in said, "--verify refuses a truncated file",
                   f"{status}: {said}")
    scenario.check(sorted(place.iterdir()) == [good, short], "--verify leaves nothing")


def sends(scenario, backups):
    backups.refused("a command that fails", UNSENT, ["COMMAND ended with 3"],
                    COMMAND="cat > /dev/null; exit 3")
    backups.refused("a part of its pipe that fails", UNSENT, ["COMMAND ended with"],
                    COMMAND="false | cat > /dev/null")
    unsent = backups.unsent()
    scenario.check(unsent.exists() and unsent.stat().st_mode & 0o777 == 0o600,
                   "the backup that was not sent stays, its owner's alone")
    place = scenario.work / "sent"
    place.mkdir()
    before = list(backups.kept())
    status, said = backups.run(COMMAND=f'cat > "{place}/$CRANE_FILE"', KEEP_LAST=3)
    sent = {path.name: path.read_bytes() for path in place.iterdir()}
    new = {name: bytes_ for name, bytes_ in backups.kept().items() if name not in before}
    scenario.check(status == 0 and len(new) == 1 and sent == new and not unsent.exists(),
                   "the command gets the file that is kept", f"{status}: {said}\n{list(sent)}")


def dumps(scenario, backups):
    """The server's own dump program in place of crane-ctl."""
    own = {"SOURCE": "seq 5", "CHECK": "grep 5", "TEXTFILES": scenario.work / "none"}
    backups.refused("a source that fails", UNMADE, ["SOURCE ended with"], SOURCE="false | seq 5")
    backups.refused("a damaged dump", UNVERIFIED, ["CHECK ended with"], SOURCE="seq 4",
                    CHECK="grep 5")
    place = scenario.work / "dumps"
    status, said = backups.run(DIRECTORY=place, **own)
    made = list(place.glob("*Z.crane"))
    scenario.check(status == 0 and "verified: yes" in said and len(made) == 1
                   and made[0].read_text() == "1\n2\n3\n4\n5\n"
                   and made[0].stat().st_mode & 0o777 == 0o600, "a dump is kept, its owner's alone",
                   f"{status}: {said}")
    status, said = backups.run(DIRECTORY=place, **{**own, "CHECK": ""})
    scenario.check(status == 0 and "verified: no" in said, "without CHECK it is not verified", said)


@contextlib.contextmanager
def small_disk(scenario):
    place = scenario.work / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def no_room(scenario, backups):
    backups.refused("less room than MIN_FREE_MB", NO_ROOM, ["no room", "MIN_FREE_MB"],
                    MIN_FREE_MB=FAR)
    with small_disk(scenario) as small:
        backups.refused("no room for the restored files", NO_ROOM, ["no room", str(small)],
                        SCRATCH=small)
        scenario.check(not list(small.iterdir()), "nothing is left of the restore")
        status, said = backups.run(DIRECTORY=small)
        scenario.check(status == NO_ROOM, "a full disk", f"{status}: {said}")
        left = {path.name for path in small.iterdir()}
        scenario.check(not any(name.endswith((".crane", ".new")) for name in left),
                       "a full disk: no file is left", str(left))


def refuses(scenario, backups):
    with open(backups.place / f".{backups.group.name}.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        backups.refused("a second run", BUSY, ["another crane-backup"], kept=False)
    for settings, word in (({"KEEP_DAILY": "x"}, "KEEP_DAILY=x"), ({"VERIFY": 1}, "VERIFY=1"),
                           ({"DIRECTORY": "here"}, "DIRECTORY"),
                           ({"KEEP_DAILY": 0, "KEEP_LAST": 0}, "COMMAND")):
        backups.refused(f"the setting {settings}", USAGE, [word], kept=False, **settings)
    backups.refused("two groups", USAGE, ["one group at a time"], "one", "two", kept=False)


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    h.need("redis-server", "unshare", "flock", "truncate")
    server = ScheduledRedis(m.place_of(scenario, ScheduledRedis), h.free_port())
    last = b.Lasting(scenario, server, disk=True)
    try:
        last.start()
        backups = Backups(scenario, last.group)
        with d.Pushers(server, b.CLIENTS, 0) as pushers:
            pushers.wait(b.ANSWERS)
            makes(scenario, backups)
            rotates(scenario, backups)
            damaged(scenario, backups)
            sends(scenario, backups)
            dumps(scenario, backups)
            no_room(scenario, backups)
            refuses(scenario, backups)
            pushers.wait(b.ANSWERS)   # clients continue
            before = pushers.acknowledged()
            status, said = backups.run()
            scenario.check(status == 0, "after all that, a backup", f"{status}: {said}")
        last.stop()
        status, said = b.control(scenario, "backup", scenario.work / "none", last.group.name,
                                 home=last.group.home)
        scenario.check(status != 0, "a stopped group has no backup", said)
        newest = list(backups.kept())[-1]
        shutil.rmtree(last.dir)
        backups.refused("a group that is not there", 3, [last.group.name])
        status, said = b.control(scenario, "restore", backups.place / newest, home=last.group.home)
        scenario.check(status == 0, "a kept backup restores the group", f"{status}: {said}")
        b.goes_on(scenario, last, pushers, before, "restored from a scheduled backup")
    finally:
        b.Lasting.end_all()


if __name__ == "__main__":
    h.run_scenario("scheduled_backup", body)
