# SPDX-License-Identifier: Apache-2.0
"""Runs one of the bench programs: it prints its own tables, its raw data become a row."""
import json
import shlex
import subprocess
import sys

import _harness as h
import session


def run(x, program, options, in_machine=False):
    """Adds the row; a virtual machine has RDMA devices that this one lacks."""
    file = x.results / f"{program}.raw"
    words = [str(x.out / program), *options, "--json", str(file)]
    if in_machine:
        words = [sys.executable, str(session.ROOT / "tests/vm/vm.py"), "--out", str(x.out),
                 "--timeout", "1200", "--write", str(x.results), "--", "bash", "-c",
                 f"mount -t tmpfs none /dev/shm && exec {shlex.join(words)}"]
    try:
        status = subprocess.run(words, check=False).returncode
        if status == 77:
            raise h.CannotRun(f"{program}: there is no virtual machine here")
        if status != 0:
            raise h.Failure(f"{program} ended with status {status}")
        x.add({"key": [program, 0], "program": program, "data": json.loads(file.read_text())})
    finally:
        file.unlink(missing_ok=True)


def data_of(rows, program):
    return next((row["data"] for row in rows if row["program"] == program), None)
