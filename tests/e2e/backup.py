#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports from a running group and imports elsewhere: `crane-ctl data export` and `import` (the
server's files at one log index), `backup` and `restore` (the group, with the log after its
checkpoint). Clients continue meanwhile. Damaged files and names already in use are refused, and
leave nothing."""
import collections
import json
import re
import subprocess

import _data as d
import _harness as h
import _matrix as m

CLIENTS = 3
ANSWERS = 40   # per client, before the export or backup
BACKUPS = 3    # of one group, after one checkpoint
PLACE = re.compile(r"at log index (\d+) \(checkpoint at (\d+), (\d+) entries of log\)")
LOG_HEAD = 96  # bytes; consensus/store/tail_format.h


def control(scenario, *words, home=None):
    """crane-ctl's status and all its output."""
    where = ["--dir", str(home)] if home else []
    done = subprocess.run([str(scenario.out / "crane-ctl"), *where, *map(str, words)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout.strip()


def old_file(data):
    """A file that was in the machine's directory before, and that the server does not write."""
    return data / "notes.txt"


def check_ids(scenario, server, before, after, what):
    """All ids acknowledged before are there once, and none that was never sent."""
    counted = collections.Counter(server.held())
    lost = [name for name in before if counted[name] == 0]
    twice = [name for name, times in counted.items() if times > 1]
    unknown = [name for name in counted if name not in after]
    scenario.check(not lost and not twice and not unknown,
                   f"{server.name}: {what}: {len(before)} acknowledged before, {len(counted)} "
                   "there",
                   f"lost {lost[:5]}, twice {twice[:5]}, unknown {unknown[:5]}")


def in_order(scenario, server, pushers, what):
    """Each client's ids are there up to one, and none after it: they are from one place of the
    log."""
    held = set(server.held())
    for one in pushers.all:
        mine = [name in held for name in one.sent]
        first = mine.index(False) if False in mine else len(mine)
        scenario.check(not any(mine[first:]),
                       f"{server.name}: {what}: no id is there after a missing one, client "
                       f"{one.name_}", str(mine))


class Lasting(d.LastingGroup):
    """No group outlives a scenario that failed."""
    all: "list[Lasting]" = []

    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        Lasting.all.append(self)

    @staticmethod
    def end_all():
        for one in Lasting.all:
            if one.group.process and one.group.process.poll() is None:
                one.group.kill_all()


class Imported(Lasting):
    """A group that begins with the files imported under its name."""

    def __init__(self, scenario, server, name, home):
        super().__init__(scenario, server, disk=False)
        self.group.name, self.group.home = name, home
        self.group.dir = home / name
        self.group.log = scenario.work / f"{name}.log"


def refused(scenario, file, status, words, what, *command, home):
    before = sorted(home.iterdir()) if home.exists() else []
    got, output = control(scenario, *command, file, *(["other"] if command[0] == "data" else []),
                          home=home)
    scenario.check(got == status and all(word in output for word in words),
                   f"{what}: refused", f"{got}: {output}")
    after = sorted(home.iterdir()) if home.exists() else []
    scenario.check(before == after, f"{what}: nothing is left", f"{after}")


def damaged_copies(scenario, file):
    """Returns three copies of `file`: two are cut short, one of them before its head's end, and one
    has a changed byte."""
    bytes_ = file.read_bytes()
    short, changed = scenario.work / "short.tar.zst", scenario.work / "changed.tar.zst"
    stub = scenario.work / "stub.tar.zst"
    stub.write_bytes(bytes_[:100])
    short.write_bytes(bytes_[:len(bytes_) * 2 // 3])
    middle = len(bytes_) // 2
    changed.write_bytes(bytes_[:middle] + bytes([bytes_[middle] ^ 255]) + bytes_[middle + 1:])
    return short, stub, changed


def begins_with(scenario, copy, pushers, before):
    """An imported group has all that was acknowledged before the export, and continues."""
    after = {name for one in pushers.all for name in one.sent}
    copy.start()
    check_ids(scenario, copy.server, before, after, "the imported group")
    in_order(scenario, copy.server, pushers, "the imported group")
    with d.Pushers(copy.server, CLIENTS, 1) as more:
        more.wait(5)
    copy.stop()


def database(scenario, kind):
    """A server that recovers from its own log, as after a kill."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    living = Lasting(scenario, server, disk=False)
    living.start()
    name, home = living.group.name, living.group.home
    file, copied = server.work / "data.tar.zst", f"copy-{name}"
    with d.Pushers(server, CLIENTS, 0) as pushers:
        pushers.wait(ANSWERS)
        before = pushers.acknowledged()
        status, output = control(scenario, "data", "export", file, name, home=home)
        scenario.check(status == 0, f"{server.name}: data export, under load", output)
        pushers.wait(ANSWERS)
    living.stop()
    status, output = control(scenario, "data", "import", file, copied, home=home)
    scenario.check(status == 0, f"{server.name}: data import", output)
    begins_with(scenario, Imported(scenario, server, copied, home), pushers, before)


def export_and_import(scenario, kind):
    server = kind(m.place_of(scenario, kind), h.free_port())
    living = Lasting(scenario, server, disk=False)
    living.start()
    name, home = living.group.name, living.group.home
    file, unpacked = server.work / "data.tar.zst", server.work / "unpacked"
    copied = f"copy-{living.group.name}"
    with d.Pushers(server, CLIENTS, 0) as pushers:
        pushers.wait(ANSWERS)
        before = pushers.acknowledged()
        status, text = control(scenario, "data", "export", file, name, home=home)
        scenario.check(status == 0 and "at log index" in text, "data export, under load", text)
        pushers.wait(ANSWERS)   # clients continue
        status, text = control(scenario, "data", "export", file, name, home=home)
        scenario.check(status == 108 and "exists already" in text,
                       "an existing file is not replaced", f"{status}: {text}")
        status, text = control(scenario, "data", "export", unpacked, name, "--unpacked", home=home)
        scenario.check(status == 0, "data export --unpacked", text)
    living.acknowledged += pushers.acknowledged()
    living.check("after the exports")
    through_pipes(scenario, living)
    backup = server.work / "memory.backup"
    status, text = control(scenario, "backup", backup, name, home=home)
    scenario.check(status == 0, "backup, durability memory", text)
    living.stop()
    status, text = control(scenario, "data", "export", scenario.work / "no", name, home=home)
    scenario.check(status == 2 and "cp -a" in text, "of a stopped group", f"{status}: {text}")
    scenario.check((file.stat().st_mode & 0o777) == 0o600, "the file is its owner's alone")
    about = json.loads((unpacked / "crane-export.json").read_text())
    scenario.check(about["group"] == name and about["index"] > 0
                   and about["data"] == [str(server.data)], "the manifest", str(about))
    old = old_file(server.data)
    scenario.check((unpacked / str(server.data)[1:] / old.name).read_bytes() == old.read_bytes(),
                   "the directory has the server's files")

    status, text = control(scenario, "data", "import", file, copied, home=home)
    scenario.check(status == 0 and "at log index" in text, "data import", text)
    status, text = control(scenario, "data", "import", file, copied, home=home)
    scenario.check(status == 111 and copied in text, "an existing group is refused",
                   f"{status}: {text}")
    for bad in damaged_copies(scenario, file):
        refused(scenario, bad, 5, [f"{bad} is damaged"], f"{bad.name}", "data", "import", home=home)
    h.shutil.rmtree(server.data)   # as on a machine that never had it
    begins_with(scenario, Imported(scenario, server, copied, home), pushers, before)

    h.shutil.rmtree(living.dir)
    status, text = control(scenario, "restore", backup, home=home)
    scenario.check(status == 0 and "begins with the files" in text, "restore, durability memory",
                   text)
    goes_on(scenario, living, pushers, living.acknowledged, "restored in memory")


def verified(scenario, last, file):
    """restore --verify tells good files from bad ones beside the running group, and leaves
    nothing."""
    short, stub, changed_ = damaged_copies(scenario, file)
    before = sorted(file.parent.iterdir()), sorted(last.dir.iterdir())
    status, text = control(scenario, "restore", "--verify", file)
    scenario.check(status == 0 and re.search(r"can be restored; it has [1-9]\d+ bytes", text),
                   "restore --verify of a good file", text)
    for bad in (short, stub, changed_):
        status, text = control(scenario, "restore", "--verify", bad)
        size = bad.stat().st_size
        place = f"early at byte {size}" if bad != changed_ else " byte "
        scenario.check(status == 5 and f"{bad} is damaged" in text and place in text,
                       f"restore --verify of {bad.name}", f"{status}: {text}")
    status, text = control(scenario, "restore", "1", "--verify")
    scenario.check(status == 100 and "--verify is for files" in text, "--verify of a replica", text)
    after = sorted(file.parent.iterdir()), sorted(last.dir.iterdir())
    scenario.check(before == after, "restore --verify leaves nothing", f"{before} {after}")


def goes_on(scenario, last, pushers, before, what):
    """After a restore: all that was acknowledged before the backup, in order, on equal replicas."""
    after = {name for one in pushers.all for name in one.sent}
    last.start()
    check_ids(scenario, last.server, before, after, what)
    in_order(scenario, last.server, pushers, what)
    last.acknowledged = []
    with d.Pushers(last.server, CLIENTS, what.replace(" ", "-")) as more:
        more.wait(ANSWERS)
    last.acknowledged = more.acknowledged()
    last.check(f"{what}: it continues")
    last.check_same_answers(what)
    last.stop()


def back_up_and_restore(scenario, kind):
    """Durability disk: the server continues at the log index, or begins with its files."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    last = Lasting(scenario, server, disk=True)
    last.start()
    name, home = last.group.name, last.group.home
    file = scenario.work / "group.backup"
    with d.Pushers(server, CLIENTS, 0) as pushers:
        pushers.wait(ANSWERS)
        before = pushers.acknowledged()
        status, text = control(scenario, "backup", file, name, home=home)
        scenario.check(status == 0 and "checkpoint verified" in text, "backup, under load", text)
        pushers.wait(ANSWERS)
    status, text = control(scenario, "restore", file, home=home)
    scenario.check(status == 111 and name in text, "restore beside the living group is refused",
                   f"{status}: {text}")
    verified(scenario, last, file)
    last.stop()
    scenario.check((file.stat().st_mode & 0o777) == 0o600, "the backup is its owner's alone")
    h.shutil.rmtree(last.dir)
    for bad in damaged_copies(scenario, file):
        refused(scenario, bad, 5, [f"{bad} is damaged"], f"restore {bad.name}", "restore",
                home=home)
    elsewhere = scenario.work / "elsewhere"
    status, text = control(scenario, "restore", file, home=elsewhere)
    scenario.check(status == 0 and f"crane-run --dir {elsewhere} " in text
                   and f"--dir {home} " not in text,
                   "a restore elsewhere prints the command with the new --dir", text)
    h.shutil.rmtree(elsewhere)
    status, text = control(scenario, "restore", file, home=home)
    scenario.check(status == 0 and "continues from there" in text, "restore", text)
    goes_on(scenario, last, pushers, before, "restored")
    scenario.check(not list(last.dir.glob("restored-*")),
                   "each replica took its place in the restored group once (RESTORED-1)")
    last.start()
    last.check("restored, stopped and started")
    last.stop()

    h.shutil.rmtree(last.dir)
    status, text = control(scenario, "restore", file, "--tier", "restart", home=home)
    scenario.check(status == 0 and "begins with the files" in text, "restore --tier restart", text)
    goes_on(scenario, last, pushers, before, "restored files")


def back_up(scenario, last, file):
    """Checkpoint and last entry of a backup just made, as crane-ctl reports them."""
    status, output = control(scenario, "backup", file, last.group.name, home=last.group.home)
    place = PLACE.search(output)
    scenario.check(status == 0 and place is not None, f"backup with a log: {file.name}", output)
    end, checkpoint, entries = map(int, place.groups())
    scenario.check(end == checkpoint + entries, "its log begins right after its checkpoint", output)
    return checkpoint, end


def changed(file, name, change):
    """Writes a copy of an archive with other bytes, but correct checksums of zstd."""
    bytes_ = bytearray(subprocess.run(["zstd", "-dcq", file], stdout=subprocess.PIPE,
                                      check=True).stdout)
    change(bytes_)
    path = file.with_name(name)
    subprocess.run(["zstd", "-qfo", path], input=bytes_, check=True)
    return path


def damage_log(bytes_):
    bytes_[bytes_.index(b"CRNTAIL1") + LOG_HEAD + 100] ^= 1


def other_version(bytes_):
    at = bytes_.index(b'"log": ')
    bytes_[at:at + 8] = b'"log": 9'


def move_away(last, home):
    """Moves the group's files away, so that a restore begins as on another machine."""
    h.shutil.rmtree(f"/dev/shm/crane.{last.group.name}", ignore_errors=True)
    if last.dir.exists():
        last.dir.rename(last.dir.with_name(f"away-{last.dir.parent.name}-{last.group.name}"))
    home.mkdir(exist_ok=True)
    last.group.home, last.group.dir = home, home / last.group.name


def backups_under_load(scenario, last):
    """Backups after one checkpoint, while clients are served: each has all that was
    acknowledged."""
    made, places = [], []
    with d.Pushers(last.server, CLIENTS, 0) as pushers:
        pushers.wait(ANSWERS)
        status, output = control(scenario, "checkpoint", "now", last.group.name,
                                 home=last.group.home)
        scenario.check(status == 0, "a checkpoint", output)
        for number in range(BACKUPS):
            pushers.wait(ANSWERS)
            file = scenario.work / f"log-{number}.backup"
            before = pushers.acknowledged()
            places.append(back_up(scenario, last, file))
            made.append((file, before))
        pushers.wait(ANSWERS)
    scenario.check(len({checkpoint for checkpoint, _ in places}) == 1,
                   "a backup uses an existing checkpoint and takes none", str(places))
    ends = [end for _, end in places]
    scenario.check(ends == sorted(set(ends)), "each backup reaches further", str(places))
    return made, pushers


def log_is_refused(scenario, last, file):
    """A damaged log, and one of another version, are refused; the server's files can still be
    restored."""
    home = last.group.home
    bad = changed(file, "damaged-log.backup", damage_log)
    refused(scenario, bad, 5, [str(bad)], "a backup whose log is damaged", "restore", home=home)
    other = changed(file, "other-version.backup", other_version)
    refused(scenario, other, 5, [str(other), "log version 9", "--tier restart"],
            "a backup whose log is of another version", "restore", home=home)
    status, output = control(scenario, "restore", other, "--tier", "restart", home=home)
    scenario.check(status == 0 and re.search(r"\(entries \d+ to \d+\) is left out", output),
                   "restore --tier restart says which entries are left out", output)
    h.shutil.rmtree(last.dir)


def damaged_when_it_begins(scenario, last, file):
    """Damage between restore and the first start: a replica names the file, and no replica
    begins."""
    status, output = control(scenario, "restore", file, home=last.group.home)
    scenario.check(status == 0, "restore", output)
    log = last.dir / "restored-0"
    bytes_ = bytearray(log.read_bytes())
    bytes_[LOG_HEAD + 100] ^= 1
    log.write_bytes(bytes_)
    begun = subprocess.run(last.group.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=120, check=False)
    logs = "".join(h.tail(last.dir / f"r{n}" / "node.log") for n in range(last.group.replicas))
    named = f"{log}: the log of the backup cannot be used" in logs
    scenario.check(begun.returncode != 0 and named, "a log that was damaged after the restore",
                   f"{begun.stdout}\n{logs}")
    h.shutil.rmtree(last.dir)


def log_behind_the_checkpoint(scenario, kind):
    """All that was answered after the checkpoint and before a backup is there on another
    machine."""
    server = kind(m.place_of(scenario, kind), h.free_port())
    last = Lasting(scenario, server, disk=True)
    last.start()
    made, pushers = backups_under_load(scenario, last)
    last.kill_everything()
    for number, (file, before) in enumerate(made):
        move_away(last, scenario.work / f"machine-{number}")
        if number == 0:
            log_is_refused(scenario, last, file)
            damaged_when_it_begins(scenario, last, file)
        status, output = control(scenario, "restore", file, home=last.group.home)
        scenario.check(status == 0 and PLACE.search(output), f"restore of {file.name}", output)
        goes_on(scenario, last, pushers, before, f"restored with its log {number}")
        scenario.check(not list(last.dir.glob("restored-*")),
                       "each replica took the log into its store once (RESTORED-1)")


def through_pipes(scenario, living):
    """Standard output and input; a full disk; an import killed halfway."""
    name, home, ctl = living.group.name, living.group.home, str(scenario.out / "crane-ctl")
    file, piped = living.server.work / "piped.tar.zst", f"piped-{name}"
    with open(file, "wb") as out:
        done = subprocess.run([ctl, "--dir", str(home), "data", "export", "-", name], stdout=out,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    scenario.check(done.returncode == 0, "data export to a pipe", done.stderr)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([ctl, "--dir", str(home), "data", "export", "-", name], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    scenario.check(done.returncode == 109 and "No space left" in done.stderr,
                   "data export to a full disk", f"{done.returncode}: {done.stderr}")

    command = [ctl, "--dir", str(home), "data", "import", "-", piped]
    bytes_ = file.read_bytes()
    with subprocess.Popen(command, stdin=subprocess.PIPE) as half:
        half.stdin.write(bytes_[:len(bytes_) // 2])
        half.stdin.flush()
        h.wait_until(lambda: list(home.glob(f".{piped}.new-*")), 20, "the import has begun")
        half.kill()
    scenario.check(not (home / piped).exists(), "a killed import is no group")
    with open(file, "rb") as whole:
        done = subprocess.run(command, stdin=whole, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    scenario.check(done.returncode == 0 and not list(home.glob(f".{piped}.new-*")),
                   "the import runs again, and leaves nothing of the killed one", done.stdout)
    data = living.server.data
    held = (home / piped / "base" / str(data)[1:] / old_file(data).name).read_bytes()
    scenario.check(held == old_file(data).read_bytes(), "files imported through a pipe are there")


class DiskRedis(d.Redis):
    name = "redis, disk"


class LogRedis(d.Redis):
    name = "redis, log"


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("containers need root and LXC")
    h.need("redis-server", "zstd")
    try:
        export_and_import(scenario, d.Redis)
        back_up_and_restore(scenario, DiskRedis)
        log_behind_the_checkpoint(scenario, LogRedis)
        database(scenario, d.Postgres)
    except h.CannotRun as missing:
        scenario.say(str(missing))
    finally:
        Lasting.end_all()


if __name__ == "__main__":
    h.run_scenario("backup", body)
