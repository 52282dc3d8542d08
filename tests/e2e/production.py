#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crane on a bare Debian 12 under a real systemd, as an operator uses it: the blocks of "From
nothing to a group that lasts" in OPERATING.md are run verbatim, and PostgreSQL's rows survive a
stop of all replicas. Then the cases that only systemd can show: nodes that are killed, nodes that
the group removes, a crane-run that is killed, and what a purge of the package leaves.

A root of Debian is made once, below out/: with --full the whole base system, otherwise the smallest
one that systemd boots.
"""
import json
import pathlib
import re
import shutil

import _debian
import _harness as h
import _packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "runtime/launcher/OPERATING.md"
BACKUPS = ROOT / "runtime/launcher/BACKUPS.md"
SECTION = "From nothing to a group that lasts"
MEMORY = "/etc/crane/web.conf"   # the block of the group with durability memory
UNITS = [f"crane@shop:{number}" for number in range(3)]
ROWS = "psql -Atc 'SELECT item FROM orders' postgresql://shop:choose-one@127.0.0.1/shop"
SERVERS = "pgrep -f ^/usr/lib/postgresql/15/bin/postgres"
GET_CRIU = "get_criu.sh"
INSTALL_SECONDS = 400


def blocks():
    """Returns (commands, lines that the document shows) in order."""
    section = DOCUMENT.read_text().split(f"\n## {SECTION}\n")[1].split("\n## ")[0]
    found = []
    for kind, text in re.findall(r"^```(sh|text)\n(.*?)^```$", section, re.M | re.S):
        if kind == "sh":
            found.append((text, []))
        else:
            found[-1][1].extend(text.splitlines())
    return found


def block_with(words):
    """The number of the block that has these words."""
    return next(i for i, (commands, _) in enumerate(blocks()) if words in commands)


def journal(machine):
    return machine.run("journalctl --no-pager -u 'crane*' | tail -n 60").stdout


def type_block(scenario, machine, number):
    commands, shown = blocks()[number]
    done = machine.run("set -e\n" + commands, INSTALL_SECONDS)
    lines = done.stdout.splitlines()
    good = done.returncode == 0 and all(line in lines for line in shown)
    first = commands.splitlines()[0]
    if not scenario.check(good, f"the document's commands print what it shows: {first} ..."):
        raise h.Failure(f"status {done.returncode}:\n{done.stdout[-3000:]}{journal(machine)}")
    scenario.say("typed")


def show(machine, unit, name):
    return machine.must(f"systemctl show -P {name} {unit}").strip()


def whole(machine, name="shop"):
    """All replicas serve. One that still replays its inputs has no server: it refuses clients."""
    machine.must(f"crane-ctl -q status {name} --wait 90", 120)


def restarted(machine, unit, before):
    """The unit has another main process, and is up."""
    h.wait_until(lambda: show(machine, unit, "MainPID") not in ("0", before)
                 and show(machine, unit, "ActiveState") == "active", 60,
                 f"systemd starts {unit} again")


def get_criu(scenario, machine):
    """Types the block that fetches a CRIU. False: none works on this kernel or in this container,
    which is no fault of the document."""
    done = machine.run("set -e\n" + blocks()[block_with(GET_CRIU)][0], INSTALL_SECONDS)
    if done.returncode != 0 and "no CRIU works on this machine" in done.stdout:
        print(f"SKIPPED: e2e/production: checkpoints: {done.stdout.strip()[-500:]}", flush=True)
        return False
    return scenario.check(done.returncode == 0, "get_criu.sh installs a CRIU", done.stdout[-1000:])


def checkpoints(scenario, machine):
    """After the document's blocks, checkpoints work."""
    whole(machine)
    done = machine.run("crane-ctl checkpoint now shop && crane-ctl checkpoint verify shop", 120)
    scenario.check(done.returncode == 0, "the group takes a checkpoint, and it is good",
                   done.stdout + journal(machine))
    listed = machine.run("crane-ctl checkpoint list -o json shop").stdout
    scenario.check(json.loads(listed)["checkpoints"], "it is listed", listed)


def nodes(scenario, machine):
    whole(machine)
    texts = [show(machine, unit, "StatusText") for unit in UNITS]
    scenario.check(sum("leads" in text for text in texts) == 1
                   and sum("follows replica" in text for text in texts) == 2,
                   "systemd knows which replica leads", str(texts))
    leader = next(unit for unit, text in zip(UNITS, texts) if "leads" in text)
    first = show(machine, leader, "MainPID")
    machine.must(f"kill -9 {first}")
    restarted(machine, leader, first)
    whole(machine)
    scenario.check(show(machine, leader, "NRestarts") == "1",
                   "systemd starts a killed node again")
    h.wait_until(lambda: machine.run(ROWS).returncode == 0, 60, "the group answers")
    scenario.check(machine.must(ROWS) == "book\n", "the row survives the kill of the leader")
    h.wait_until(lambda: len(machine.run(SERVERS).stdout.split()) == len(UNITS), 60,
                 "each node has its server")
    first, servers = show(machine, leader, "MainPID"), set(machine.must(SERVERS).split())
    machine.must(f"systemctl kill -s KILL --kill-whom=all {leader}")
    restarted(machine, leader, first)
    left = servers & set(machine.must(SERVERS).split())
    scenario.check(len(left) == len(UNITS) - 1,
                   "no server survives a kill of every process of its unit",
                   f"{servers} {left}")
    whole(machine)
    log = machine.must("journalctl -o json --output-fields=PRIORITY,MESSAGE -u 'crane@*'")
    levels = set(re.findall(r'"PRIORITY":"(\d)"', log))
    scenario.check({"4", "6"} <= levels <= {"3", "4", "5", "6"},
                   "the journal has the node's levels", str(levels))


def dumped(scenario, machine):
    """The settings that the document shows for a group of crane-node."""
    shown = re.search(r"^SOURCE='pg_dump.*\nCHECK=.*\n", BACKUPS.read_text(), re.M)[0]
    (machine.root / "etc/crane/backup/shop.conf").write_text(shown)
    done = machine.run("systemctl start crane-backup@shop.service", 120)
    kept = machine.run("zcat /var/backups/crane/shop/shop-*.crane").stdout
    scenario.check(done.returncode == 0 and "CREATE TABLE public.orders" in kept,
                   "the document's settings make a backup of this group", done.stdout + kept[-300:]
                   + machine.run("journalctl -o cat -u crane-backup@shop").stdout)
    machine.must("rm -r /var/backups/crane /etc/crane/backup/shop.conf")


def removed(scenario, machine):
    """systemd does not undo the group's decision."""
    whole(machine)
    texts = [show(machine, unit, "StatusText") for unit in UNITS]
    number = next(i for i, text in enumerate(texts) if "follows" in text)
    machine.must(f"crane-ctl member remove {number} shop")
    h.wait_until(lambda: show(machine, UNITS[number], "ActiveState") == "failed", 60,
                 "the node that was removed ends")
    scenario.check(show(machine, UNITS[number], "ExecMainStatus") == "71"
                   and show(machine, UNITS[number], "MainPID") == "0",
                   "a node that the group removed is not restarted",
                   machine.run(f"systemctl status {UNITS[number]}").stdout)


def running(machine):
    """Processes of groups, and containers."""
    return machine.run("pgrep 'crane|postgres' | while read pid; do"
                       " ps -o pid=,ppid=,stat=,args= -p $pid; cat /proc/$pid/cgroup; done; "
                       "find /sys/fs/cgroup -name 'lxc.*.crane.*'").stdout


def stopped(scenario, machine):
    machine.must("systemctl stop 'crane@shop:*'")
    states = [show(machine, unit, "ActiveState") for unit in UNITS]
    left = running(machine)
    scenario.check("active" not in states and not left, "nothing runs after systemctl stop",
                   f"{states} {left}")


def backed_up(scenario, machine):
    """The unit of crane-backup makes a backup of the group web, and its timer waits for the next
    day."""
    unit = "crane-backup@web"
    done = machine.run(f"systemctl start {unit}.service", 120)
    said = machine.run(f"journalctl -o cat -u {unit}").stdout
    made = machine.run("stat -c '%a %n' /var/backups/crane/web/web-*.crane").stdout
    scenario.check(done.returncode == 0 and "verified: yes" in said and made.startswith("600 ")
                   and len(made.splitlines()) == 1, "systemd makes a backup, which is verified",
                   done.stdout + said + made)
    machine.must(f"systemctl enable --now {unit}.timer")
    waits = show(machine, f"{unit}.timer", "NextElapseUSecRealtime")
    scenario.check(waits not in ("", "0"), "the timer makes the next one", waits)
    machine.must(f"systemctl disable --now {unit}.timer; rm -r /var/backups/crane")


def crane_run(scenario, machine, has_criu):
    """A group on this machine alone: its replicas survive when crane-run is killed."""
    unit = "crane-run@web"
    type_block(scenario, machine, block_with(MEMORY))
    whole(machine, "web")
    scenario.check("3 of 3 replicas run" in show(machine, unit, "StatusText"),
                   "crane-run is up when its replicas are", show(machine, unit, "StatusText"))
    if has_criu:
        backed_up(scenario, machine)
    first, servers = show(machine, unit, "MainPID"), machine.must(SERVERS)
    machine.must(f"systemctl kill -s KILL --kill-whom=main {unit}")
    restarted(machine, unit, first)
    whole(machine, "web")
    scenario.check(machine.must(SERVERS) == servers,
                   "the next crane-run takes over the running replicas",
                   machine.run(f"journalctl -u {unit} | tail -n 20").stdout)
    log = machine.must(f"journalctl -o cat -u {unit}")
    scenario.check(not re.search(r"^\d{4}-\S+ crane|cannot", log, re.M),
                   "its messages contain no time, and report no problem", log)
    machine.must(f"systemctl stop {unit}", 120)
    left = running(machine)
    scenario.check(show(machine, unit, "Result") == "success" and not left,
                   "systemctl stop ends the group of crane-run in order",
                   left + machine.run(f"journalctl -u {unit} | tail -n 20").stdout)


def purged(scenario, machine):
    type_block(scenario, machine, -1)
    left = machine.must("find / /run /dev/shm -xdev -iname '*crane*' -not -path '/root/*' "
                        "-not -path '/var/lib/crane/*'; ls /var/lib/crane")
    scenario.check(set(left.split()) == {"/etc/crane", "/var/lib/crane", "shop", "web"},
                   "a purge leaves the groups' data, and nothing else", left)


def body(scenario):
    _debian.need_archive()
    place = _packages.make(scenario)
    if place is None:
        return
    with _debian.Machine(scenario) as machine:
        shutil.copy(next(place.glob("crane_*.deb")), machine.root / "root")
        scenario.say("the machine has booted")
        has_criu = False
        for number, (commands, _) in enumerate(blocks()[:-1]):
            if GET_CRIU in commands:
                has_criu = get_criu(scenario, machine)
            elif MEMORY not in commands:   # crane_run() types that one
                type_block(scenario, machine, number)
        if has_criu:
            checkpoints(scenario, machine)
        nodes(scenario, machine)
        dumped(scenario, machine)
        removed(scenario, machine)
        stopped(scenario, machine)
        crane_run(scenario, machine, has_criu)
        scenario.say("units tried")
        purged(scenario, machine)


h.run_scenario("production", body)
