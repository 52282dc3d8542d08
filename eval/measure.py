#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one measurement by its name, as `make eval-NAME` does: measure.py NAME --out OUT ARGUMENT...

NAME is eval/NAME.py (of SCRIPTS), or a row of COMMANDS. `--list` prints the names.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIGURES = ["{python}", "eval/figures.py", "{out}/bench"]
# name: its commands. `...` stands for the arguments.
COMMANDS = {
    "data": [["{python}", "eval/data_rounds.py", "--out", "{out}", ...]],
    "storm": [["{python}", "tests/e2e/storm.py", "--out", "{out}", "--full", ...]],
    "slices": [["{python}", "eval/slices.py", "--out", "{out}", ...],
               ["{python}", "eval/slices_cost.py", "--out", "{out}"]],
    "strategies": [["{out}/bench-strategies", "--json", "{out}/bench/strategies.json", ...],
                   FIGURES],
    # Blocks are short, because a virtual machine on a shared host has slow moments.
    "verbs": [["{python}", "tests/vm/vm.py", "--out", "{out}", "--timeout", "1200",
               "--write", "{out}/bench", "--", "bash", "-c",
               'mount -t tmpfs none /dev/shm && exec "$@"', "bash", "{out}/bench-strategies",
               "--fabric", "verbs", "--blocks", "60", "--ops", "50",
               "--json", "{out}/bench/strategies_verbs.json", ...], FIGURES],
    "scale": [["{out}/bench-scale", "--json", "{out}/bench/scale.json"],
              ["{out}/bench-shm-group", "--json", "{out}/bench/shm_group.json", ...], FIGURES],
}
# The other files of eval are parts of these.
SCRIPTS = ["bench", "checkpoints", "etcd", "failover", "growth", "hints", "latency", "lossy",
           "outbound", "sensitivity", "servers", "shared-connections", "soak", "suites",
           "virtual-address"]
SKIPPED = 77  # the exit status of what cannot run here


def python_with_plots():
    """The plots want matplotlib, which Debian installs for its own python."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import matplotlib"],
                          stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return sys.executable


def commands_of(name):
    script = f"eval/{name.replace('-', '_')}.py"
    return COMMANDS.get(name) or [["{python}", script, "--out", "{out}", ...]]


def main():
    if sys.argv[1:] == ["--list"]:
        print(*sorted([*COMMANDS, *SCRIPTS]))
        return 0
    if len(sys.argv) < 4 or sys.argv[1] not in [*COMMANDS, *SCRIPTS] or sys.argv[2] != "--out":
        print(__doc__, file=sys.stderr)
        return 2
    name, out, arguments = sys.argv[1], pathlib.Path(sys.argv[3]).resolve(), sys.argv[4:]
    (out / "bench").mkdir(parents=True, exist_ok=True)
    python = python_with_plots()
    for command in commands_of(name):
        words = []
        for word in command:
            words += arguments if word is ... else [word.format(out=out, python=python)]
        status = subprocess.run(words, cwd=ROOT).returncode
        if status not in (0, SKIPPED):
            return status
    return 0


sys.exit(main())
