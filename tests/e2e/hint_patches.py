#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hint patches apply to Debian's source packages, where they can be fetched."""
import pathlib
import re
import shutil
import subprocess

import _harness as h

HINTS = pathlib.Path(__file__).resolve().parents[2] / "hints"
# Source package, name of its orig tarball, folder for crane.h, a file that must compile.
PACKAGES = (("apache2", "include", None), ("civetweb", "src", "src/civetweb.c"))


def sources(work):
    """apt's options for the distribution's source packages alone, separate from the machine's
    own."""
    lists, parts = work / "lists", work / "parts"
    (lists / "partial").mkdir(parents=True)
    parts.mkdir()
    found = False
    for place in pathlib.Path("/etc/apt").rglob("*.sources"):
        text = re.sub(r"^Types:.*$", "Types: deb-src", place.read_text(), flags=re.M)
        (parts / place.name).write_text(text)
        found = True
    for place in pathlib.Path("/etc/apt").rglob("*.list"):
        lines = re.findall(r"^deb\s.*$", place.read_text(), re.M)
        text = "".join("deb-src" + line[3:] + "\n" for line in lines)
        (parts / place.name).write_text(text)
        found = found or bool(lines)
    if not found:
        raise h.CannotRun("apt has no sources")
    options = [f"Dir::State::lists={lists}", "Dir::Etc::sourcelist=/dev/null",
               f"Dir::Etc::sourceparts={parts}", "Acquire::http::Timeout=10", "Acquire::Retries=0"]
    return [word for o in options for word in ("-o", o)]


def apt(options, *words, cwd):
    return subprocess.run(["apt-get", *options, *words], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120)


def fetch(options, package, work):
    """The unpacked upstream source; None if no version can be fetched."""
    place = work / package
    place.mkdir()
    shown = subprocess.run(["apt-cache", *options, "showsrc", package], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, timeout=60).stdout
    for version in re.findall(r"^Version: (\S+)", shown, re.M):
        apt(options, "--download-only", "source", f"{package}={version}", cwd=place)
        for tarball in place.glob("*.orig.tar.*z"):
            subprocess.run(["tar", "xf", tarball.name], cwd=place, check=True, timeout=60)
            return next(d for d in place.iterdir() if d.is_dir())
    return None


def body(scenario):
    if shutil.which("apt-get") is None or shutil.which("patch") is None:
        raise h.CannotRun("needs apt-get and patch")
    options = sources(scenario.work)
    if apt(options, "update", cwd=scenario.work).returncode != 0:
        raise h.CannotRun("the source packages cannot be listed: no network?")
    tried = 0
    for package, place, file in PACKAGES:
        tree = fetch(options, package, scenario.work)
        if tree is None:
            scenario.say(f"{package}: its source cannot be fetched: left out")
            continue
        tried += 1
        shutil.copy(HINTS / "crane.h", tree / place)
        patch = (HINTS / f"patches/{package}.patch").open()
        done = subprocess.run(["patch", "-p1", "--fuzz=0"], cwd=tree, stdin=patch, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        scenario.check(done.returncode == 0, f"the patch applies to {tree.name}", done.stdout)
        if file:
            done = subprocess.run(["gcc", "-fsyntax-only", "-w", "-Iinclude", "-Isrc", "-DNO_SSL",
                                   file], cwd=tree, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60)
            scenario.check(done.returncode == 0, f"{file} compiles with its hints", done.stdout)
    if tried == 0:
        raise h.CannotRun("no source package can be fetched")


if __name__ == "__main__":
    h.run_scenario("hint_patches", body)
