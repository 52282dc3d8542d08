#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crane below a prefix and as Debian packages: the programs find their parts wherever the whole
tree is moved, a group serves, recovers and is stopped, and uninstalling leaves nothing. lintian
finds no error in the packages."""
import os
import pathlib
import re
import signal
import subprocess

import _harness as h
import _packages

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
    versions = {}
    for name in PROGRAMS:
        done = subprocess.run([str(programs / name), "--version"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=20)
        versions[name] = done.returncode, re.match(r"Crane [\d.]+, commit \w+", done.stdout)
    scenario.check(all(status == 0 and text for status, text in versions.values())
                   and len({text[0] for _, text in versions.values()}) == 1,
                   "all programs report the same version", str(versions))


def check_links(scenario, documents):
    """Each link of a document leads to a document that is installed."""
    dead = [f"{page.relative_to(documents)}: {to}" for page in sorted(documents.rglob("*.md"))
            for to in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
            if ":" not in to and not (page.parent / to).exists()]
    scenario.check((documents / "README.md").exists() and not dead,
                   "installed documents link only installed ones", str(dead))


def check_pages(scenario, root):
    """Manual pages and completion, below `root`."""
    all_ = (*PROGRAMS, "crane-backup")
    pages = [(f"man1/{name}.1", ("OPTIONS", "EXIT STATUS")) for name in all_]
    for name, sections in (*pages, ("man5/group.toml.5", ("secret_file", "checkpoint_every_s"))):
        page = root / "share/man" / name
        done = subprocess.run(["man", "--warnings", "-l", str(page)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60,
                              env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80"})
        scenario.check(done.returncode == 0 and not done.stderr
                       and all(word in done.stdout for word in sections),
                       f"man reads {name}, which has {sections}", done.stderr + done.stdout[-300:])
    bash = root / "share/bash-completion/completions"
    zsh = [str(root / f"share/zsh/site-functions/_{name}") for name in all_]
    for command in (["shellcheck", "-s", "bash", *(str(bash / name) for name in all_)],
                    ["zsh", "-n", *zsh]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60)
        scenario.check(done.returncode == 0, f"{command[0]} finds nothing", done.stdout[-3000:])
    for line, offered in (("crane-ctl lea", "leader"), ("crane-ctl leader ", "transfer"),
                          ("crane-run --durability ", "memory disk"),
                          ("crane-run --profile mem", "memcached"),
                          ("crane-backup --verify ", ""),
                          ("crane-run -- redis-server --dur", "")):
        words = line.split(" ")
        typed = line if words[-1] else line + "''"
        script = (f"source {bash / words[0]}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; "
                  f"_{words[0].replace('-', '_')}; echo \"${{COMPREPLY[*]}}\"")
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=20)
        got = " ".join(w for w in done.stdout.split() if not w.startswith("--"))
        scenario.check(got == offered, f"completion of '{line}': {got}", done.stdout)


def check_group_names(scenario, programs, name):
    """The shell completes the name of a running group."""
    page = programs.parent / "share/bash-completion/completions/crane-ctl"
    script = (f"source {page}; COMP_WORDS=(crane-ctl status {name[:-1]}); COMP_CWORD=2; "
              "_crane_ctl; echo \"${COMPREPLY[*]}\"")
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
                          text=True, timeout=20)
    scenario.check(name in done.stdout.split(), "completion knows the group's name", done.stdout)


def check_group(scenario, programs):
    """A group run by the programs in this folder."""
    built, scenario.out = scenario.out, programs
    try:
        port = h.free_port()
        with h.Group(scenario, h.redis_program(port), port=port) as group:
            redis = h.Redis(port, 30)
            redis("SET", "key", "kept")
            status, text = h.ctl(scenario, "status", group.name, "--dir", str(group.home))
            scenario.check(status == 0 and group.name in text, "crane-ctl sees the group", text)
            check_group_names(scenario, programs, group.name)
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
    check_pages(scenario, moved)
    check_links(scenario, moved / "share/doc/crane")
    check_group(scenario, moved / "bin")
    for script in ("lib/ocf/resource.d/crane/crane", "lib/crane/crane-entry", "bin/crane-backup"):
        scenario.check(os.access(moved / script, os.X_OK), f"{script} is installed")
    install(scenario, moved, "uninstall")
    scenario.check(files_below(moved) == ["bin/of-another"], "uninstall leaves nothing of Crane",
                   str(files_below(moved)))


def without_debhelper(scenario):
    done = subprocess.run([str(ROOT / "runtime/packaging/make_deb.sh"), "--check"], timeout=20,
                          env={"PATH": "/nowhere"}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    scenario.check(done.returncode == 3 and done.stdout.count("\n") == 1
                   and "apt-get install debhelper" in done.stdout,
                   "without debhelper, make deb names the package", done.stdout)


def packages(scenario):
    h.need("lintian")
    place, unpacked = _packages.make(scenario), scenario.work / "unpacked"
    if place is None:
        return
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
    h.need("redis-server", "man", "shellcheck", "zsh")
    below_a_prefix(scenario)
    without_debhelper(scenario)
    packages(scenario)


h.run_scenario("installed", body)
