#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layering: which folder may include which.

It fails if a file includes a header that the layering forbids or one of a floor above its own, if
headers include each other in a cycle, or if the table in ARCHITECTURE.md differs from this one
(`layering.py --write` writes it there).

"x" allows the headers directly in folder x (its public ones), "x/**" all below it.  A folder may
always include its own files; a subfolder with its own row is a separate folder.
"""
import pathlib
import re
import sys

# folder: (its content, the folders that it may include)
FOLDERS = {
    "hints": ("public C header of hints, patches of hinted servers",
        []),
    "dmt/base": ("ids, Result, assertions, CRC, codec, futex, messages",
        []),
    "dmt/sequence": ("entry and output formats, the shared ring",
        ["dmt/base"]),
    "dmt": ("scheduler, admission, virtual files, connections, terminals, processes",
        ["dmt/**"]),
    "runtime/setup": ("a group before it runs: its file, secret, profile, directories, sockets",
        ["dmt", "dmt/base", "runtime/control"]),
    "runtime/control": ("one schema of the requests at sockets and pipes",
        ["dmt/base"]),
    "runtime/supervise": ("when a replica that ended is started again, and with what, pure",
        ["dmt/base", "runtime/setup"]),
    "runtime/preload": ("libcrane.so",
        ["dmt/**", "hints"]),
    "runtime/launcher": ("what crane-run, crane-ctl and a host's agent share",
        ["runtime/supervise", "runtime/setup", "runtime/control", "checkpoint", "dmt/**",
         "hints"]),
    "runtime/launcher/agent": ("the agent of a host",
        ["runtime/launcher", "runtime/supervise", "runtime/setup", "runtime/control", "checkpoint",
         "dmt/base"]),
    "runtime/launcher/doctor": ("whether a machine can run groups",
        ["runtime/launcher", "runtime/supervise", "runtime/setup", "runtime/control", "checkpoint",
         "dmt/base"]),
    "runtime/launcher/run": ("crane-run",
        ["runtime/launcher", "runtime/launcher/agent", "runtime/launcher/doctor",
         "runtime/supervise", "runtime/setup", "runtime/control", "checkpoint", "dmt/**"]),
    "runtime/launcher/ctl": ("crane-ctl",
        ["runtime/launcher", "runtime/launcher/agent", "runtime/launcher/doctor",
         "runtime/supervise", "runtime/setup", "runtime/control", "checkpoint", "consensus",
         "consensus/fabric", "dmt/base"]),
    "consensus/core": ("the pure protocol",
        ["dmt/base"]),
    "consensus": ("fabrics, store, driver, simulator",
        ["consensus/**", "dmt/base"]),
    "checkpoint": ("containers, their dumps and restores (CRIU), checkpoints as files",
        ["dmt/base", "dmt/sequence"]),
    "proxy/ticks": ("chooses the tick points of a computing thread",
        ["dmt/base", "dmt/sequence"]),
    "proxy/record": ("recordings, their comparison, live checking; crane-diff",
        ["consensus", "dmt/base", "dmt/sequence"]),
    "proxy/replica": ("the decisions of a replica, pure",
        ["proxy/record", "consensus", "runtime/control", "dmt/base", "dmt/sequence"]),
    "proxy/clients": ("clients, batches, grants",
        ["proxy/replica", "proxy/replica/clients", "consensus", "consensus/fabric", "dmt/base",
         "dmt/sequence"]),
    "proxy/sim": ("simulated hosts with clients, on the simulator of consensus; whole replicas",
        ["proxy/clients", "proxy/replica/**", "runtime/supervise", "runtime/setup",
         "runtime/control", "consensus/core", "consensus/sim", "consensus", "dmt/base",
         "dmt/sequence"]),
    "proxy/host/recovery": ("carries out checkpoints, restarts and returns of a replica",
        ["proxy/record", "proxy/replica/**", "proxy/clients", "proxy/host", "consensus",
         "consensus/fabric", "checkpoint", "runtime/setup", "runtime/control", "dmt/**"]),
    "proxy/host": ("a replica's effects: event loop, segment, server, sockets, requests, HTTP",
        ["proxy/record", "proxy/replica/**", "proxy/clients", "proxy/ticks",
         "proxy/host/recovery", "consensus",
         "consensus/fabric", "checkpoint", "runtime/setup", "runtime/control", "dmt/**"]),
    "proxy/node": ("crane-node: assembles the parts",
        ["proxy/record", "proxy/replica/**", "proxy/clients", "proxy/host/**", "consensus",
         "consensus/fabric", "checkpoint", "runtime/setup", "runtime/control", "dmt/**"]),
    "proxy/replay": ("crane-replay",
        ["proxy/record", "proxy/clients", "proxy/host/**", "proxy/node", "consensus",
         "checkpoint", "runtime/setup", "runtime/control", "dmt/**"]),
    "proxy/analysis": ("analysis replicas",
        ["proxy/record", "proxy/replay", "proxy/host/**", "proxy/node", "consensus", "checkpoint",
         "runtime/setup", "runtime/control", "dmt/**"]),
    "eval": ("measurements",
        ["consensus/**", "proxy/**", "dmt/**", "hints"]),
    "tests": ("tests",
        ["**"]),
}
# Rooms of a folder, from the ground up: each may include itself and the rooms before it.  A room
# is a subfolder, or the files of a flat folder that are named in its row.
FLOORS = {
    "runtime/preload": "ground self turn trap signals threads time descriptors sockets terminals"
                       " files processes syscalls attach".split(),
    "dmt": [
        "tuning.h spin_budget.h file_states.h slice_records.h terminal_record.h layout.h"
        " schedule_hash.h text_line.h run_queue.h file_kind.h line_discipline",
        "node_link parking slices timers wait_queues preempt_requests hand_off blocks byte_queue"
        " process_table socket_directories unhooked",
        "watches file_owners signals posix_timers job_control",
        "files connections loopback urgent datagrams outbound inotify controlling_terminals"
        " terminals names message_notices",
        "slots file_kinds.cc processes",
        "admission scheduler stall quiescence stuck restart inodes segment",
    ],
}
MAY = {folder: may for folder, (_, may) in FOLDERS.items()}
# The composition roots: a program's file with main() combines parts that its folder must not know,
# because other folders include that folder.
ROOTS = {
    "proxy/node/main.cc": ["proxy/analysis"],
    "proxy/replay/crane_replay.cc": ["proxy/analysis"],
    "proxy/record/crane_diff.cc": ["runtime/setup"],
}
SUFFIXES = {".h", ".cc", ".c", ".def"}
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def owner(path):
    return max((k for k in MAY if path.startswith(k + "/")), key=len, default=None)


def allowed(file, mine, included):
    folder = included.rsplit("/", 1)[0] if "/" in included else ""
    if folder in ROOTS.get(file, []):
        return True
    return owner(included) == mine or any(
        a == "**" or folder == a or (a.endswith("/**") and (folder + "/").startswith(a[:-2]))
        for a in MAY[mine])


def floor(folder, path):
    """The floor of a file in a folder with floors; None when no row names it."""
    rest = path[len(folder) + 1:]
    names = {rest.split("/")[0], rest.rpartition(".")[0]}
    return next((i for i, room in enumerate(FLOORS[folder]) if names & set(room.split())), None)


def runs_up(file, included):
    """Returns a complaint about the floors of the two files, or None."""
    for folder in FLOORS:
        if not (owner(file) == owner(included) == folder):
            continue
        mine, other = floor(folder, file), floor(folder, included)
        if mine is None or other is None:
            return f"no row of FLOORS names {file if mine is None else included}"
        if other > mine:
            return f"{included} is on a floor above this one"
    return None


def ring(graph):
    """Returns the first cycle of headers found, as a list of paths, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for following in graph.get(node, ()):
            found = visit(following)
            if found:
                return found
        path.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        found = visit(node)
        if found:
            return found
    return None


def table():
    rows = ["| folder | what lives there | it may include |", "| --- | --- | --- |"]
    for folder, (what, may) in FOLDERS.items():
        allowed_text = ", ".join(f"`{m}`" for m in may) or "nothing of ours"
        rows.append(f"| `{folder}` | {what} | {'everything' if may == ['**'] else allowed_text} |")
    return "\n".join(rows) + "\n"


def quoted(document, write):
    """Returns whether the document contains the table; with `write`, writes it there."""
    text = document.read_text()
    begin = text.index(table().splitlines()[0])
    end = text.index("\n\n", begin) + 1
    if write:
        document.write_text(text[:begin] + table() + text[end:])
    return write or text[begin:end] == table()


def main():
    write = "--write" in sys.argv
    root = pathlib.Path(".")
    bad, graph, files = [], {}, 0
    for top in sorted({k.split("/")[0] for k in MAY}):
        for file in sorted((root / top).rglob("*")):
            rel = file.relative_to(root).as_posix()
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            files += 1
            mine = owner(rel)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                m = INCLUDE.match(line)
                if not m:
                    continue
                if mine == "tests" and (file.parent / m[1]).exists():
                    continue  # programs independent of Crane include their neighbours
                if not (root / m[1]).exists():
                    bad.append(f"{rel}:{number}: no such file from the root: {m[1]}")
                elif not allowed(rel, mine, m[1]):
                    bad.append(f"{rel}:{number}: {mine} may not include {m[1]}")
                elif runs_up(rel, m[1]):
                    bad.append(f"{rel}:{number}: {runs_up(rel, m[1])}")
                if file.suffix == ".h":
                    graph.setdefault(rel, []).append(m[1])
    found = ring(graph)
    if found:
        bad.append("cycle of headers: " + " -> ".join(found))
    if not quoted(root / "ARCHITECTURE.md", write):
        bad.append("ARCHITECTURE.md is not current: python3 tests/lint/layering.py --write")
    print(*bad, sep="\n", end="\n" if bad else "")
    print("layering:", "FAILED" if bad else f"ok ({files} files)")
    return bool(bad)


sys.exit(main())
