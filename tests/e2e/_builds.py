# SPDX-License-Identifier: Apache-2.0
"""Copies of the programs that look like another build: other bytes, equal or other versions."""
import os
import re
import shutil
import subprocess

PARTS = ("crane-run", "crane-node", "crane-ctl", "libcrane.so")


def commit_of(program):
    output = subprocess.run([str(program), "--version"], text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    return re.search(r"\bcommit ([^,\s]+)", output)[1]


def exchange(path, old, new):
    """Replaces the file atomically, as an installer does; running programs keep the old file."""
    assert len(old) == len(new)
    data = path.read_bytes()
    assert old in data, f"{path} does not contain {old}"
    fresh = path.with_name(path.name + ".fresh")
    fresh.write_bytes(data.replace(old, new))
    fresh.chmod(path.stat().st_mode)
    os.rename(fresh, path)


def installed(scenario, name):
    """Copies the programs, as they were built, to a new directory."""
    place = scenario.work / name
    place.mkdir()
    place.chmod(0o755)
    for part in PARTS:
        shutil.copy2(scenario.out / part, place / part)
    for beside in ("criu", "criu_shim.so"):   # for checkpoints
        if (scenario.out / beside).exists():
            (place / beside).symlink_to(scenario.out / beside)
    return place


def upgrade(place):
    """Replaces the programs there with another commit and a libcrane.so with other bytes."""
    for part in ("crane-run", "crane-node", "crane-ctl"):
        commit = commit_of(place / part).encode()
        exchange(place / part, commit, b"f" * len(commit))
    exchange(place / "libcrane.so", b"GCC: (", b"CCG: (")   # of .comment
    return commit_of(place / "crane-node")


def with_other_versions(place):
    """Renames the wire version of crane-run; its number cannot be found in the binary."""
    exchange(place / "crane-run", b"\0wire\0", b"\0wirf\0")
