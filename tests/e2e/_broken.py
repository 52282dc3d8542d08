# SPDX-License-Identifier: Apache-2.0
"""Builds Crane without one rule, to show that a scenario notices."""
import json
import os
import shlex
import subprocess

import _harness as h

# Replacements, each exactly once, in a copy of the sources: (file, text, instead).
RULES = {
    "serve-before-commit": [(
        "consensus/driver/open.cc",
        "  c.log_id = o.log_id;\n",
        "  c.log_id = o.log_id;\n  c.test_only_mutant = core::Mutant::kMinorityCommit;\n")],
    "no-fence": [(
        "consensus/fabric/tcp.cc",
        "revoke_writes(ReplicaId id) noexcept { own()->live_key[value(id)] = 0; }",
        "revoke_writes(ReplicaId) noexcept {}")],
    "amnesiac": [(
        "consensus/driver/open.cc",
        "const Marks marks{was_member(o), was_restored(o), ",
        "const Marks marks{false, was_restored(o), ")],
}
PROGRAMS = ["crane-run", "crane-ctl", "libcrane.so", "linear-client", "linear-check"]


def replaced(name, text, instead):
    """Returns the source of a file without the rule."""
    before = (h.ROOT / name).read_text()
    if before.count(text) != 1:
        raise h.Failure(f"cannot break the build: {name} holds {before.count(text)} times "
                        f"{text.strip()!r}; _broken.py must follow the source")
    return before.replace(text, instead)


def check_rules():
    """Raises a Failure if the source of a rule has changed."""
    for changes in RULES.values():
        for change in changes:
            replaced(*change)


def run(scenario, command):
    """Runs one command of the build in its tree."""
    done = subprocess.run(command, shell=True, cwd=scenario.out, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600)
    if done.returncode != 0:
        raise h.Failure(f"the broken build does not build:\n{done.stdout[-3000:]}")
    return done.stdout


def compile_changed(scenario, name, text, instead, folder):
    """Compiles a changed file with the command of the build, and returns the object."""
    commands = json.loads((scenario.out / "compile_commands.json").read_text())
    source, original = folder / name.replace("/", "_"), str(h.ROOT / name)
    source.write_text(replaced(name, text, instead))
    command = next(c["command"] for c in commands if c["file"] == original and
                   "CRANE_PRELOAD" not in c["command"])
    words = shlex.split(command)
    words[words.index("-o") + 1] = f"{source}.o"
    words[words.index(original)] = str(source)
    run(scenario, shlex.join(words))
    return f"{source}.o"


def build(scenario, rule):
    """Returns a directory with a crane-node without that rule, and the other programs unchanged.

    The changed objects come before the libraries, which then give nothing for these files."""
    out = scenario.work / "broken"
    out.mkdir()
    objects = [compile_changed(scenario, *change, out) for change in RULES[rule]]
    link = run(scenario, "ninja -t commands crane-node").splitlines()[-1]
    where = " -o crane-node "
    if link.count(where) != 1:
        raise h.Failure(f"the command that links crane-node is another one: {link}")
    ours = f" {shlex.join(objects)} -o {shlex.quote(str(out / 'crane-node'))} "
    run(scenario, link.replace(where, ours))
    for program in PROGRAMS:
        os.symlink(scenario.out / program, out / program)
    return out
