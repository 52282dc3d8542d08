#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the symbols of libcrane.so.

It exports exactly the table's rows (and the public hints).  It needs no function that allocates,
throws or buffers: every import is listed in tests/lint/symbols_allowed.txt.

A function that has a row in runtime/preload/ground/interposed.def must be reached through
crane::real, never by its name.  usage: symbols.py TABLE LIBRARY
"""
import pathlib
import re
import subprocess
import sys

TOOLCHAIN = {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable",
             "_ITM_registerTMCloneTable", "__stack_chk_fail"}


def nm(library, which):
    out = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in out.stdout.splitlines()}


def hints():
    header = pathlib.Path("hints/crane.h")
    return set(re.findall(r"\b(crane_\w+)\s*\(", header.read_text())) if header.exists() else set()


def main():
    *tables, library = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    rows = set(re.findall(r"^INTERPOSE[A-Z_]*\(\s*\w+\s*,\s*(\w+)",
                          "".join(pathlib.Path(t).read_text() for t in tables), re.M))
    listed = re.sub(r"#.*", "", (here / "symbols_allowed.txt").read_text()).split()
    exported, imported = nm(library, "--defined-only"), nm(library, "--undefined-only")
    bad = [f"exported but not in the table: {s}" for s in sorted(exported - rows - hints())]
    bad += [f"in the table but not exported: {s}" for s in sorted(rows - exported)]
    bad += [f"imports {s}, which is not on the allow-list"
            for s in sorted(imported - TOOLCHAIN - set(listed))]
    bad += [f"allow-list names {s} twice" for s in sorted({s for s in listed
                                                         if listed.count(s) > 1})]
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    bad += [f"links {lib}" for lib in re.findall(r"NEEDED.*\[(.*?)\]", dynamic.stdout)
            if not lib.startswith("libc.so")]
    print(*bad, sep="\n", end="\n" if bad else "")
    print("symbols:", "FAILED" if bad else f"ok ({len(rows)} functions)")
    return bool(bad)


sys.exit(main())
