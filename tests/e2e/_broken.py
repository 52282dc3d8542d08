# SPDX-License-Identifier: Apache-2.0
"""Builds Crane without one rule, to show that a scenario notices."""
import os
import shutil
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
        "revoke_writes(ReplicaId id) noexcept { memory_.drop_key(id); }",
        "revoke_writes(ReplicaId) noexcept {}")],
    "amnesiac": [(
        "consensus/driver/open.cc",
        "const Marks marks{was_member(o), was_restored(o), ",
        "const Marks marks{false, was_restored(o), ")],
}
NOT_SOURCES = ["out"]
PROGRAMS = ["crane-run", "crane-ctl", "libcrane.so", "linear-client", "linear-check"]


def replace(source, rule, write=True):
    for name, text, instead in RULES[rule]:
        file = source / name
        before = file.read_text()
        if before.count(text) != 1:
            raise h.Failure(f"cannot break the build: {name} contains {before.count(text)} times "
                            f"{text.strip()!r}; _broken.py must follow the source")
        if write:
            file.write_text(before.replace(text, instead))


def check_rules():
    """Raises a Failure if the source of a rule has changed."""
    for rule in RULES:
        replace(h.ROOT, rule, write=False)


def build(scenario, rule):
    """Returns a directory with a crane-node without that rule, and the other programs unchanged."""
    source, out = scenario.work / "source", scenario.work / "broken"
    source.mkdir()
    out.mkdir()
    for entry in h.ROOT.iterdir():
        if entry.name in NOT_SOURCES or entry.name.startswith("."):
            continue
        (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, source / entry.name)
    # Existing objects are newer than all sources but the changed ones.
    for part in ("obj", "lib"):
        if (scenario.out / part).is_dir():
            shutil.copytree(scenario.out / part, out / part,
                            ignore=shutil.ignore_patterns("tests", "eval", "libsim*", "libeval*"))
    if (scenario.out / "flags").exists():
        shutil.copy2(scenario.out / "flags", out / "flags")
    replace(source, rule)
    # Without the flags of the make that runs this scenario; the variant is in the environment.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")}
    # The build needs neither speed nor debug information: this saves a third of the time.
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"OUT={out}", "opt_release=-O1 -g0",
                           str(out / "crane-node")], cwd=source, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1200,
                          env=environment)
    if done.returncode != 0:
        raise h.Failure(f"the broken version does not build:\n{done.stdout[-3000:]}")
    for program in PROGRAMS:
        os.symlink(scenario.out / program, out / program)
    shutil.rmtree(source)
    return out
