# SPDX-License-Identifier: Apache-2.0
"""Builds of Crane with one rule taken out, to show that a story notices."""
import os
import shutil
import subprocess

import _harness as h

# What is replaced, exactly once, in a copy of the sources: (file, text, instead).
RULES = {
    "serve-before-commit": [(
        "consensus/node/open.cc",
        "  c.log_id = o.log_id;\n",
        "  c.log_id = o.log_id;\n  c.test_only_mutant = core::Mutant::kMinorityCommit;\n")],
    "no-fence": [(
        "consensus/fabric/tcp.cc",
        "revoke_writes(ReplicaId id) noexcept { memory_.drop_key(id); }",
        "revoke_writes(ReplicaId) noexcept {}")],
    "amnesiac": [(
        "consensus/node/open.cc",
        "open_disk(o, config, std::move(fabric).value(), was_member(o))",
        "open_disk(o, config, std::move(fabric).value(), false)")],
}
FOLDERS = ["checkpoint", "consensus", "dmt", "eval", "proxy", "runtime", "tests", "Makefile"]
PROGRAMS = ["crane-run", "crane-ctl", "libcrane.so", "linear-client", "linear-check"]


def replace(source, rule):
    for name, text, instead in RULES[rule]:
        file = source / name
        before = file.read_text()
        if before.count(text) != 1:
            raise h.Failure(f"cannot break the build: {name} holds {before.count(text)} times "
                            f"{text.strip()!r}; _broken.py must follow the source")
        file.write_text(before.replace(text, instead))


def build(story, rule):
    """A directory with crane-node without that rule, and the other programs as they are."""
    source, out = story.work / "source", story.work / "broken"
    source.mkdir()
    out.mkdir()
    for folder in FOLDERS:
        if (h.ROOT / folder).is_dir():
            shutil.copytree(h.ROOT / folder, source / folder)
        else:
            shutil.copy2(h.ROOT / folder, source / folder)
    # What was built already is newer than the sources, but for the changed ones.
    for part in ("obj", "lib"):
        if (story.out / part).is_dir():
            shutil.copytree(story.out / part, out / part,
                            ignore=shutil.ignore_patterns("tests", "eval", "libsim*", "libeval*"))
    if (story.out / "flags").exists():
        shutil.copy2(story.out / "flags", out / "flags")
    replace(source, rule)
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"OUT={out}",
                           str(out / "crane-node")], cwd=source, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1200)
    if done.returncode != 0:
        raise h.Failure(f"the broken build does not build:\n{done.stdout[-3000:]}")
    for program in PROGRAMS:
        os.symlink(story.out / program, out / program)
    shutil.rmtree(source)
    return out
