# SPDX-License-Identifier: Apache-2.0
"""Wrong uses beside a group that runs and whose data last, and of the same group when it has
ended."""
import os
import pathlib
import shutil
import subprocess

import _harness as h
from _wrong_words import NOBODY


def at_once(uses):
    """Two starts of one name at the same time: one runs, the other is refused."""
    port = h.free_port()
    line = uses.prefix(options=["--detach"])
    lines = [line + ["--"] + h.redis_program(p) for p in (port, port + 1)]
    both = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             cwd="/", stdin=subprocess.DEVNULL) for one in lines]
    texts = [one.communicate(timeout=h.START_SECONDS)[0] for one in both]
    ended = sorted(one.returncode for one in both)
    refused = next((t for one, t in zip(both, texts) if one.returncode != 0), "")
    stopped = h.ctl(uses.scenario, "--dir", str(uses.home), "stop", uses.name)
    uses.scenario.check(ended == [0, 111] and uses.name in refused and "--name" in refused
                        and stopped[0] == 0 and not uses.shared()
                        and not (uses.home / uses.name).exists(),
                        "two starts of one name at once: one runs, the other has status 111",
                        f"{ended} {texts} {stopped}")
    uses.rows.append(("two starts of one name at once", 111, refused.strip()))


def members(uses, group):
    name = group.name
    uses.ctl("transfer to a replica that does not exist", 5, ["replica 7", "member list"],
             "leader", "transfer", name, "--to", 7)
    uses.ctl("drain of a replica that does not exist", 5, ["replica 7", "member list"], "replica",
             "drain", 7, name)
    uses.ctl("a member for which there is no place", 5, ["0 to 2", "--spares"], "member", "add", 5,
             name)
    uses.ctl("a member number that is no number", 100, ["two", "--help"], "member", "add", "two",
             name)
    uses.ctl("logs of a replica that does not exist", 5, ["replica 7", "crane-ctl status"], "logs",
             name, "--replica", 7)
    uses.ctl("a signal that no server handles", 100, ["FOO", "HUP"], "signal", "FOO", name)
    uses.ctl("an upgrade to a program that does not exist", 102, ["no-such-server", "install"],
             "upgrade", name, "--yes", "--", "no-such-server")
    uses.ctl("verification of a checkpoint that does not exist", 3, ["checkpoint list"],
             "checkpoint", "verify", name, "3.99")
    uses.ctl("verification of a word", 100, ["abc", "VIEW.INDEX"], "checkpoint", "verify", name,
             "abc")
    if os.geteuid() == 0:
        for word in ("status", "stop"):
            uses.ctl(f"{word} as another user", 4, [str(uses.home), "run it as the user"], word,
                     name, user=NOBODY)


def archives(uses, group):
    name, place = group.name, uses.scenario.work / "archives"
    place.mkdir()
    whole, cut, other = place / "whole.crane", place / "cut.crane", uses.scenario.work / "elsewhere"
    other.mkdir()
    status, text = h.ctl(uses.scenario, "--dir", str(uses.home), "backup", str(whole), name)
    if status != 0:
        print(f"SKIPPED: e2e/wrong_uses: backups: {text.strip()[-300:]}", flush=True)
        return None
    cut.write_bytes(whole.read_bytes()[:whole.stat().st_size // 2])
    uses.ctl("a backup over an existing file", 108, [str(whole), "another file"], "backup", whole,
             name)
    uses.ctl("an export over an existing file", 108, [str(whole), "another file"], "data",
             "export", whole, name)
    uses.ctl("a backup to a directory that does not exist", 108, ["/no/such", "exists"], "backup",
             "/no/such/file", name)
    uses.ctl("restore into a living group", 111, [name, "nothing was changed"], "restore", whole)
    uses.ctl("import into a living group", 111, [name, "nothing was changed"], "data", "import",
             whole, name)
    return whole, cut, other


def elsewhere(uses, whole, cut, other):
    """In an empty directory, after the group's end."""
    uses.ctl("restore of a truncated backup", 5, [str(cut), "damaged", "another copy"], "restore",
             cut, home=other)
    uses.ctl("import of a backup", 5, [str(whole), "data export"], "data", "import", whole, "new",
             home=other)


def last_ones(uses, group):
    """A drain of one more replica than the group can lose."""
    number = next(n for n in range(3) if n != group.leader())
    status, text = h.ctl(uses.scenario, "--dir", str(uses.home), "replica", "drain", str(number),
                         group.name)
    if status != 0:
        raise h.Failure(f"drain: {status}: {text}")
    h.wait_until(lambda: number not in group.live(), 30, "crane-run knows it")
    other = 3 - number - group.leader()
    for what, one in (("follower", other), ("leader", group.leader())):
        uses.ctl(f"a drain of the last {what}", 5, [f"replica {one} is needed", "bring another"],
                 "replica", "drain", one, group.name)


def other_commands(uses, group, data):
    """The group has ended; its data last."""
    name, home = group.name, group.dir
    kept = {str(p): p.lstat().st_mtime_ns for p in home.rglob("*") if p.is_file()}
    ended = (home / "exit_status").read_text()

    def start(what, status, words, program, *more):
        uses.use(what, status, words, [str(uses.tools / "crane-run"), "--dir", str(uses.home),
                                       "--name", name, "--data", str(data), *more, "--", *program])
    start("another command for a lasting group", 194, [str(home), f"crane-ctl upgrade {name}"],
          h.redis_program(group.port + 1), "--durability", "disk")
    start("another durability for a lasting group", 100, [str(home), "--durability disk"],
          group.program)
    start("another number of replicas for a lasting group", 100, [str(home), "as many as before"],
          group.program, "--durability", "disk", "-n", "5")
    uses.ctl("stop of a group that has ended", 5, [name, "exit status"], "stop", name)
    uses.ctl("transfer in a group that has ended", 2, [name, "crane-ctl status"], "leader",
             "transfer", name)
    uses.ctl("an export of a group that has ended", 2, [name, "start it"], "data", "export",
             "/no/such.tar", name)
    now = {str(p): p.lstat().st_mtime_ns for p in home.rglob("*") if p.is_file()}
    scenario = uses.scenario
    scenario.check(now == kept and (home / "exit_status").read_text() == ended,
                   "refused starts change no file of the group, its logs included",
                   str(set(kept.items()) ^ set(now.items())))
    shutil.rmtree(home)


def beside_a_group(uses):
    if not shutil.which("redis-server"):
        return
    at_once(uses)
    data = uses.scenario.work / "lasting"
    data.mkdir()
    port = h.free_port()
    lasts = ["--data", str(data), "--durability", "disk"] if uses.container else []
    with h.Group(uses.scenario, h.redis_program(port), port=port, name=uses.name,
                 options=lasts) as group:
        h.wait_until(group.are_whole, 60, "the group is whole")
        uses.living = group
        uses.run("a second group of the same name", 111, [uses.name, "--name"])
        members(uses, group)
        made = archives(uses, group) if lasts else None
        last_ones(uses, group)
        uses.living = None
    if lasts:
        other_commands(uses, group, data)
    if made:
        elsewhere(uses, *made)
    left = pathlib.Path(uses.home).glob("*")
    uses.scenario.check(not list(left), "no group's directory is left")
