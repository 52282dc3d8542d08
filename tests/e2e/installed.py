#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crane below a prefix and as Debian packages: the programs find their parts wherever the whole is
moved to, a group serves, recovers and is stopped, and nothing is left when Crane is taken away.
lintian finds no error in the packages."""
import os
import pathlib
import re
import signal
import subprocess

import _harness as h

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("crane-run", "crane-ctl", "crane-node", "crane-diff", "crane-replay")


def install(scenario, prefix, action="install"):
    done = subprocess.run(
        [str(ROOT / "runtime/packaging/install.sh"), action, str(scenario.out)],
        env={**os.environ, "PREFIX": str(prefix), "DESTDIR": ""},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    if done.returncode != 0:
        raise h.Failure(f"{action}: status {done.returncode}: {done.stdout}")


def files_below(place):
    return sorted(str(p.relative_to(place)) for p in place.rglob("*") if not p.is_dir())


def check_versions(scenario, programs):
    said = {}
    for name in PROGRAMS:
        done = subprocess.run([str(programs / name), "--version"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=20)
        said[name] = done.returncode, re.match(r"Crane [\d.]+, commit \w+", done.stdout)
    scenario.check(all(status == 0 and text for status, text in said.values())
                   and len({text[0] for _, text in said.values()}) == 1,
                   "all programs say the same version", str(said))


def check_group(scenario, programs):
    """A group of the programs that lie there."""
    built, scenario.out = scenario.out, programs
    try:
        port = h.free_port()
        with h.Group(scenario, h.redis_program(port), port=port) as group:
            redis = h.Redis(port, 30)
            redis("SET", "key", "kept")
            status, text = h.ctl(scenario, "status", group.name, "--dir", str(group.home))
            scenario.check(status == 0 and group.name in text, "crane-ctl sees the group", text)
            group.signal_node(group.leader(), signal.SIGKILL)
            h.wait_until(group.are_whole, 60, "the replica that was killed is back")
            scenario.check(redis("GET", "key") == b"kept", "the group serves, and recovers")
            redis.close()
            group.settle()
    finally:
        scenario.out = built


def below_a_prefix(scenario):
    first, moved = scenario.work / "first", scenario.work / "moved"
    install(scenario, first)
    (first / "bin/of-another").write_text("")
    first.rename(moved)
    check_versions(scenario, moved / "bin")
    check_group(scenario, moved / "bin")
    install(scenario, moved, "uninstall")
    scenario.check(files_below(moved) == ["bin/of-another"], "uninstall leaves nothing of Crane",
                   str(files_below(moved)))


def packages(scenario):
    h.need("dpkg-buildpackage", "dh", "lintian")
    done = subprocess.run([str(ROOT / "runtime/packaging/make_deb.sh"), str(scenario.out)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if not scenario.check(done.returncode == 0, "the packages are made", done.stdout[-3000:]):
        return
    place, unpacked = scenario.out / "deb", scenario.work / "unpacked"
    for package in place.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(unpacked)], check=True, timeout=60)
    check_versions(scenario, unpacked / "usr/bin")
    check_group(scenario, unpacked / "usr/bin")
    scenario.check((unpacked / "usr/share/doc/crane/runtime/launcher/OPERATING.md").exists(),
                   "crane-doc has the operator's documents", str(files_below(unpacked))[-2000:])
    done = subprocess.run(["lintian", "--fail-on", "error", *map(str, place.glob("*.changes"))],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    scenario.check(done.returncode == 0, "lintian finds no error", done.stdout[-3000:])


def body(scenario):
    h.need("redis-server")
    below_a_prefix(scenario)
    packages(scenario)


h.tell("installed", body)
