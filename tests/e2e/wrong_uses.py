#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: a wrong use of Crane says what is wrong and what to do, and leaves nothing to tidy up.
METHOD: at least 60 distinct wrong uses of crane-run, crane-node, crane-ctl, crane-diff and
crane-replay: without a group, beside a group that runs, and of a group that has ended.
CHECKS: the exit status (the table of messages.h), a message with the object, the cause and the
remedy, and that no process, file, mount, lock or shared memory stays (_wrong.py).
"""
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

import _harness as h
import _wrong_groups
import _wrong_words
from _wrong import TIMEOUT, Uses

EMPTY = "int main(void) { return 0; }\n"
# As Go builds without cgo: the loader runs it, and loads no library with it.
NO_LIBC = """
void _start(void) { __asm__ volatile("syscall" : : "a"(60), "D"(0)); }
"""


def compiled(scenario, name, source, *options):
    """None if this machine cannot compile it."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    file, program = scenario.work / f"{name}.c", scenario.work / name
    file.write_text(source)
    if not compiler or subprocess.run([compiler, *options, str(file), "-o", str(program)],
                                      capture_output=True).returncode != 0:
        return None
    return program


def in_new_mounts(script):
    """A command prefix that runs `script` in new mounts, then the rest of the command."""
    return ["unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh"]


def taken_port(uses):
    with socket.socket() as owner:
        owner.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = h.free_port()
        owner.bind(("0.0.0.0", port))
        owner.listen()
        uses.run("published port taken", 105, str(port), options=["--publish", f"{port}:80"])
        if shutil.which("redis-server"):
            uses.run("the server's port taken", 105, str(port),
                     ["redis-server", "--port", str(port), "--save", ""], logs=True)


def http_and_server(uses):
    """A replica would answer HTTP at a port that clients use for the server."""
    port = h.free_port()
    if port > 65000:
        return
    for what, words in (("published", ["--publish", f"{port + 1}:80"]), ("the server's", [])):
        says = [f"127.0.0.1:{port + 1}", words[0] if words else f"-p {port + 1}", "replica 1"]
        for more in ([], ["--dry-run"]):
            uses.run(" ".join([f"--http with a {what} port", *more]), 100, says,
                     ["sleep", "60", "-p", str(port + 1)], options=["--http", str(port), *words,
                                                                    *more])


def branch_counter(uses):
    """Refused together with other options, and on a machine without a counter."""
    for options, says in ((["--slice", "0"], "--slice 0"), (["--mode", "parallel"], "parallel"),
                          (["--admission", "classic"], "classic"), (["--spins"], "--spins"),
                          (["--detach", "computation"], "--detach")):
        uses.run(f"a branch counter with {' '.join(options)}", 126, says,
                 options=["--branch-counter", *options])
    if not pathlib.Path("/sys/bus/event_source/devices/cpu").exists():
        uses.run("a branch counter where the machine has none", 126, ["perf_event_open", "leave"],
                 options=["--branch-counter"])


def without_root(uses):
    """Runs wrong uses as an unprivileged user, with copies of the programs that it may read."""
    there = uses.scenario.work / "bin"
    there.mkdir()
    for name in ("crane-run", "crane-node", "libcrane.so"):
        shutil.copy2(uses.tools / name, there / name)
    home = uses.scenario.work / "nobody"
    home.mkdir()
    os.chown(home, 65534, 65534)
    uses.tools, saved = there, uses.tools
    uses.run("containers without root", 106, "root", user=65534, home=home, container=True)
    _wrong_words.unprivileged(uses)
    uses.tools = saved


def other_version(uses):
    """A segment that another version of Crane left behind."""
    name = uses.name
    for place in (pathlib.Path("/dev/shm") / f"crane.{name}", uses.home / name):
        segment = place / "r0" / "segment"
        segment.parent.mkdir(parents=True, exist_ok=True)
        segment.write_bytes(struct.pack("<QII", 0x4352414E45, 99, 0) + bytes(4096))
    try:
        uses.run("shared memory of another version", 110, ["version 99", "remove"])
    finally:
        shutil.rmtree(f"/dev/shm/crane.{name}", ignore_errors=True)
        shutil.rmtree(uses.home / name, ignore_errors=True)


def command_lines(scenario):
    """All programs print their version, and give a wrong command line the same status."""
    for name in ("crane-run", "crane-ctl", "crane-node", "crane-diff", "crane-replay"):
        for word, wanted in (("--version", 0), ("--no-such-option", 100)):
            done = subprocess.run([scenario.out / name, word], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
            fine = wanted != 0 or done.stdout.startswith("Crane ")
            scenario.check(done.returncode == wanted and fine, f"{name} {word}: status {wanted}",
                           f"{done.returncode}: {done.stdout[-300:]}")


def dry_runs(scenario, uses):
    """Everything is checked, nothing is made."""
    home = scenario.work / "dry"
    done = subprocess.run([str(scenario.out / "crane-run"), "--dry-run", "--dir", str(home),
                           "--no-container", "--http", str(h.free_port()), "--", "sleep", "60"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT)
    scenario.check(done.returncode == 0 and "nothing was started or written" in done.stdout
                   and f"{home}/sleep, removed at the end" in done.stdout and not home.exists(),
                   "--dry-run reports what would be done, and makes nothing", done.stdout)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        for option in (["--publish", f"{port}:80"], ["--http", str(port)]):
            uses.run(f"--dry-run: {option[0]} with a taken port", 105, str(port),
                     options=["--dry-run", *option])
    uses.run("--dry-run: no such program", 102, "no-such-server", ["no-such-server"],
             options=["--dry-run"])
    uses.run("--dry-run --stop", 100, "--help", options=["--dry-run", "--stop"])


def data_in_use(scenario, uses):
    """A native server still runs on the directory; a process that only reads it does no harm."""
    data = scenario.work / "data"
    data.mkdir()
    file = data / "pages"
    file.write_text("1")
    options = ["--data", str(data), "--dry-run"]
    with open(file, "r+b"):   # by this process
        says = [str(data), f"process {os.getpid()} ", f"{file} open for writing", "stop it"]
        uses.run("--data that another process writes", 193, says, options=options[:2])
        uses.run("--dry-run: --data that another process writes", 193, says, options=options)
        namesake = scenario.work / "namesake"
        (namesake / "data").mkdir(parents=True)
        if shutil.which("unshare"):
            done = subprocess.run(in_new_mounts(f"mount --bind {namesake}/data {data}")
                                  + [str(scenario.out / "crane-run"), "--dir", str(uses.home),
                                     *options, "--", "sleep", "60"], cwd="/", text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=TIMEOUT)
            scenario.check(done.returncode == 0,
                           "another directory at the same path, in other mounts, is not in use",
                           f"{done.returncode}: {done.stdout}")
    with open(file, "rb"):
        done = subprocess.run([str(scenario.out / "crane-run"), "--dir", str(uses.home), *options,
                               "--", "sleep", "60"], stdout=subprocess.PIPE, cwd="/", text=True,
                              stderr=subprocess.STDOUT, timeout=TIMEOUT)
    scenario.check(done.returncode == 0, "a process that only reads the data is no obstacle",
                   f"{done.returncode}: {done.stdout}")


def body(scenario):
    uses = Uses(scenario)
    command_lines(scenario)
    uses.run("no such program", 102, "no-such-server", ["no-such-server"])
    plain = scenario.work / "not-executable"
    plain.write_text("#!/bin/sh\n")
    uses.run("a program that may not be executed", 103, "not executable", [str(plain)])
    uses.run("a directory as program", 103, ["it is a directory", "name the program"],
             [str(scenario.work)])
    program = compiled(scenario, "static", EMPTY, "-static")
    if program:
        uses.run("a static program", 104, "static", [str(program)])
        uses.run("a script that executes a static program", 126, "statically linked",
                 ["/bin/sh", "-c", f"{program}; exit 126"], logs=True)
    sanitized = compiled(scenario, "sanitized", EMPTY, "-fsanitize=address")
    if sanitized:
        uses.run("a program that AddressSanitizer instruments", 114,
                 ["ASAN_OPTIONS=verify_asan_link_order=0"], [str(sanitized)], logs=True)
    bare = compiled(scenario, "bare", NO_LIBC, "-nostdlib", "-pie", "-fPIE",
                    "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2")
    if bare:
        uses.run("a program without libc", 104, "without libc", [str(bare)])
    uses.run("a server that goes to the background", 125, "run it in the foreground",
             [sys.executable, "-c", h.BACKGROUND], logs=True)
    for count in ("2", "0", "-1"):
        uses.run(f"{count} replicas", 101, "odd", options=["-n", count])
    uses.run("an invalid port", 100, "8080:80", options=["--publish", "nonsense"])
    uses.run("a directory that all replicas would write to", 100, ["--data /srv", "/srv:ro"],
             options=["--bind", "/srv"])
    uses.run("an unknown option", 100, "--help", options=["--no-such-option"])
    uses.run("a dead directory", 108, "/proc/nothing", home="/proc/nothing")
    _wrong_words.options(uses)
    _wrong_words.group_file(uses)
    _wrong_words.without_group(uses)
    _wrong_words.recordings(uses)
    branch_counter(uses)
    http_and_server(uses)
    taken_port(uses)
    dry_runs(scenario, uses)
    if uses.container:
        data_in_use(scenario, uses)
    if os.geteuid() == 0:
        without_root(uses)
        full = scenario.work / "full"
        full.mkdir()
        if shutil.which("unshare"):
            uses.run("a full disk", 109, "free", home=full, before=in_new_mounts(
                f"mount -t tmpfs -o size=64k none {full}"))
            library = next(iter(pathlib.Path("/usr/lib").glob("*/liblxc.so.1")), None)
            if library:
                uses.run("no LXC", 107, "install", container=True, before=in_new_mounts(
                    f"mount --bind /dev/null {library.resolve()}"))
    other_version(uses)
    _wrong_groups.beside_a_group(uses)
    uses.table()


h.run_scenario("wrong_uses", body)
