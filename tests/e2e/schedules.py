#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The schedules of fixed programs equal those recorded for this schedule version.

Replicas of two builds run in one group when their schedule versions are equal
(dmt/base/versions.h): each program must then take the same turns with the same results. If a hash
differs, raise versions::kSchedule and record again with --write.
"""
import concurrent.futures
import re
import subprocess

import _harness as h

PROGRAMS = h.ROOT / "tests/interpose"
RECORD = PROGRAMS / "schedules.txt"
# They run programs of the machine, whose schedules depend on Debian's versions.
NOT_OURS = {"posix/pty_script_records_a_command"}


def version_of(scenario):
    output = subprocess.run([str(scenario.out / "crane-run"), "--version"], text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    return int(re.search(r"\bschedule (\d+),", output)[1])


def hash_of(scenario, name):
    """"<turns> <hash>" of one run in serial mode; None if it did not run to its end."""
    words = [str(scenario.out / "crane-solo"), "--hash", "--",
             str(scenario.out / "interpose" / name)]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/",
                          stderr=subprocess.PIPE, text=True, errors="replace",
                          env={"PATH": "/usr/bin:/bin", "LANG": "C"}) as process:
        try:
            errors = process.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            process.terminate()
            return None
    found = re.findall(r"^schedule (\d+ [0-9a-f]{16})$", errors, re.M)
    return found[-1] if found and not found[-1].startswith("0 ") else None   # it was not built


def hashes_of(scenario, names):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(lambda name: hash_of(scenario, name), names)))


def recorded():
    """Returns (version, {program: "<turns> <hash>"})"""
    lines = RECORD.read_text().splitlines()
    rows = (line.split(" ", 1) for line in lines[1:] if line)
    return int(lines[0].removeprefix("schedule version ")), dict(rows)


def names():
    return sorted(f"{folder}/{source.stem}" for folder in ("traps", "posix")
                  for source in (PROGRAMS / folder).glob("*.c")
                  if f"{folder}/{source.stem}" not in NOT_OURS)


def write(scenario, version):
    """Records again; refused if known programs took other turns under the same number."""
    now = hashes_of(scenario, names())
    before = recorded() if RECORD.exists() else (0, {})
    changed = [n for n, one in before[1].items() if n in now and now[n] != one]
    unknown = [n for n, one in now.items() if one is None]
    if not scenario.check(not unknown, "all programs ended", ", ".join(unknown)):
        return
    if scenario.check(not changed or version > before[0],
                      "the number is raised when schedules change",
                      f"{len(changed)} changed, {changed[:5]}: raise versions::kSchedule first"):
        rows = "".join(f"{name} {one}\n" for name, one in now.items())
        RECORD.write_text(f"schedule version {version}\n{rows}")


def body(scenario):
    version = version_of(scenario)
    if scenario.options.write:
        return write(scenario, version)
    number, known = recorded()
    scenario.check(number == version, f"schedules were recorded for version {version}",
                   f"{RECORD.name} has {number}: tests/e2e/schedules.py --write")
    now = hashes_of(scenario, list(known))
    differ = [f"{name}: {now[name]}, recorded {one}" for name, one in known.items()
              if now[name] != one]
    scenario.check(len(known) > 100 and not differ,
                   f"{len(known)} programs take the turns that were recorded",
                   f"{len(differ)} differ: raise versions::kSchedule (dmt/base/versions.h), then "
                   "tests/e2e/schedules.py --write\n" + "\n".join(differ[:5]))
    return None


if __name__ == "__main__":
    h.run_scenario("schedules", body, write={"action": "store_true", "help": "record them again"})
