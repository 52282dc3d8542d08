# SPDX-License-Identifier: Apache-2.0
"""Builds of Crane with one rule taken out, to show that a scenario notices."""
import os
import shutil
import subprocess

import _harness as h

# What is replaced, exactly once, in a copy of the sources: (file, text, instead).
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
            raise h.Failure(f"cannot break the build: {name} holds {before.count(text)} times "
                            f"{text.strip()!r}; _broken.py must follow the source")
        if write:
            file.write_text(before.replace(text, instead))


def check_rules():
    """A Failure when a rule is not where it was."""
    for rule in RULES:
        replace(h.ROOT, rule, write=False)


def build(scenario, rule):
    """A directory with crane-node without that rule, and the other programs as they are."""
    source, out = scenario.work / "source", scenario.work / "broken"
    source.mkdir()
    out.mkdir()
    for entry in h.ROOT.iterdir():
        if entry.name in NOT_SOURCES or entry.name.startswith("."):
            continue
        (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, source / entry.name)
    # What was built already is newer than the sources, but for the changed ones.
    for part in ("obj", "lib"):
        if (scenario.out / part).is_dir():
            shutil.copytree(scenario.out / part, out / part,
                            ignore=shutil.ignore_patterns("tests", "eval", "libsim*", "libeval*"))
    if (scenario.out / "flags").exists():
        shutil.copy2(scenario.out / "flags", out / "flags")
    replace(source, rule)
    # Not what the make that runs this scenario was told; the variant is in the environment.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")}
    # It is built to fail, not to be fast or looked at: this saves a third of the time.
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"OUT={out}", "opt_release=-O1 -g0",
                           str(out / "crane-node")], cwd=source, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1200,
                          env=environment)
    if done.returncode != 0:
        raise h.Failure(f"the broken build does not build:\n{done.stdout[-3000:]}")
    for program in PROGRAMS:
        os.symlink(scenario.out / program, out / program)
    shutil.rmtree(source)
    return out
