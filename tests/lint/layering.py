#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes what the layering forbids, or headers include each other in a ring.

"x" allows the headers directly in folder x (its public ones), "x/**" all below it.  A folder may
always include its own files; a subfolder with its own row is a folder of its own.
"""
import pathlib
import re
import sys

MAY = {
    "hints": [],
    "dmt/base": [],
    "dmt/sequence": ["dmt/base"],
    "dmt": ["dmt/**"],
    "runtime/setup": ["dmt", "dmt/base"],
    "runtime/control": ["dmt/base"],
    "runtime/preload": ["dmt/**", "hints"],
    "runtime/launcher": ["runtime/setup", "runtime/control", "checkpoint", "dmt/**", "hints"],
    "runtime/launcher/agent": ["runtime/launcher", "runtime/setup", "runtime/control", "checkpoint",
                               "dmt/base"],
    "runtime/launcher/run": ["runtime/launcher", "runtime/launcher/agent", "runtime/setup",
                             "runtime/control", "checkpoint", "dmt/**"],
    "runtime/launcher/ctl": ["runtime/launcher", "runtime/launcher/agent", "runtime/setup",
                             "runtime/control", "checkpoint", "dmt/base"],
    "consensus/core": ["dmt/base"],
    "consensus": ["consensus/**", "dmt/base"],
    "checkpoint": ["dmt/base", "dmt/sequence"],
    "proxy": ["consensus", "dmt/base", "dmt/sequence"],
    "proxy/node": ["proxy", "consensus", "consensus/fabric", "checkpoint", "runtime/setup",
                   "runtime/control",
                   "dmt/**"],
    "eval": ["consensus/**", "proxy/**", "dmt/**", "hints"],
    "tests": ["**"],
}
SUFFIXES = {".h", ".cc", ".c", ".def"}
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def owner(path):
    return max((k for k in MAY if path.startswith(k + "/")), key=len, default=None)


def allowed(mine, included):
    folder = included.rsplit("/", 1)[0] if "/" in included else ""
    return owner(included) == mine or any(
        a == "**" or folder == a or (a.endswith("/**") and (folder + "/").startswith(a[:-2]))
        for a in MAY[mine])


def ring(graph):
    """The first ring of headers found, as a list of paths, or None."""
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


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
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
                    continue  # programs that know nothing of Crane include their neighbours
                if not (root / m[1]).exists():
                    bad.append(f"{rel}:{number}: no such file from the root: {m[1]}")
                elif not allowed(mine, m[1]):
                    bad.append(f"{rel}:{number}: {mine} may not include {m[1]}")
                if file.suffix == ".h":
                    graph.setdefault(rel, []).append(m[1])
    found = ring(graph)
    if found:
        bad.append("ring of headers: " + " -> ".join(found))
    print(*bad, sep="\n", end="\n" if bad else "")
    print("layering:", "FAILED" if bad else f"ok ({files} files)")
    return bool(bad)


sys.exit(main())
