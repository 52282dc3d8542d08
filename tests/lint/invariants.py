#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of invariants are unique and cited; rules that comments cite exist in a design record."""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Defined, but not yet cited by an assertion or test.  Remove an entry with its first citation; a
# stale entry fails.
UNCITED = set(pathlib.Path(__file__).with_name("invariants_uncited.txt").read_text().split())

DEFINITION = re.compile(rf"\b(?:INVARIANT|CONTRACT)\s+([A-Z][A-Z0-9]*-[A-Z]{{0,2}}\d+)\b")
OLD_FORM = re.compile(r"\b(?:INVARIANT|CONTRACT)\s+([A-Z]{1,2}\d+)\b")
CITED = re.compile(r"(?<![\w/.-])([A-Z][A-Z0-9]*-[A-Z]{0,2}\d+)(?![\w.-]*\w)")
RANGE = re.compile(r"(?<![\w/.-])([A-Z][A-Z0-9]*-[A-Z]{0,2})(\d+)\.\.[A-Z]{0,2}(\d+)")
RULE = re.compile(r"(?<![\w./-])([CDUL]\d{1,2}[a-c]?)(?![\w-])")
NUMBERED = re.compile(r"\brules? (\d+)(?:(?:, (\d+))*,? and (\d+))?\b")
# The designs with the rules that comments cite.
RECORDS = ("consensus/DESIGN.md", "dmt/DESIGN.md")
NO_RULE = {"C11"}  # the C standard


def comments(name, text):
    """Yields (line number, comment or tags) of a source file."""
    mark = "#" if name.endswith(".py") else "//"
    for number, line in enumerate(text.split("\n"), 1):
        at = line.find(mark)
        tags = "".join(re.findall(r"\[[A-Z][\w, =-]*\]", line)) if "/tests/" in "/" + name else ""
        if at >= 0 or tags:
            yield number, (line[at:] if at >= 0 else "") + " " + tags


def asserts(line):
    """Returns whether a line of a header has code, which checks or implements the invariant."""
    return bool(line.split("//")[0].strip())


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h",
                             "*.cc", "*.c", "*.def"],
                            cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in sorted(set(listed.stdout.split())) if (ROOT / name).exists()]
    rules, numbered = set(), set()
    for record in RECORDS:
        text = (ROOT / record).read_text()
        rules |= set(re.findall(r"^\*\*([A-Z]\d+b?)\.\*\*", text, re.M))
        numbered |= set(re.findall(r"^\*\*Rule (\d+)\.\*\*", text, re.M))
    defined, cited = collections.defaultdict(list), collections.defaultdict(set)
    checked, bad = set(), []
    for name in names:
        source = (ROOT / name).read_text(errors="replace")
        lines = source.split("\n")
        for number, text in comments(name, source):
            where = f"{name}:{number}"
            here = DEFINITION.findall(text)
            for one in here:
                defined[one].append(where)
            bad += [f"{where}: {one} has no area in its name" for one in OLD_FORM.findall(text)]
            names_here = CITED.findall(text) + [f"{area}{n}" for area, first, last in
                                                RANGE.findall(text)
                                                for n in range(int(first), int(last) + 1)]
            code = name.endswith((".cc", ".c")) or asserts(lines[number - 1])
            for one in names_here:
                if one not in here:
                    cited[one].add(name)
                    checked.update([one] if code else [])
            bad += [f"{where}: there is no rule {one}" for one in RULE.findall(text)
                    if one not in NO_RULE and re.sub("[ac]$|(?<=U3)b$", "", one) not in rules]
            bad += [f"{where}: there is no rule {one}" for found in NUMBERED.findall(text)
                    for one in found if one and one not in numbered]
    bad += [f"{name}: defined at {' and at '.join(places)}"
            for name, places in sorted(defined.items()) if len(places) > 1]
    areas = {name.split("-")[0] for name in defined}
    for name in sorted(set(cited) - set(defined)):
        if name.split("-")[0] in areas:
            bad.append(f"{sorted(cited[name])[0]}: cites {name}, which is not defined")
    lonely = set(defined) - checked
    bad += [f"{defined[name][0]}: no assertion and no test cites {name}"
            for name in sorted(lonely - UNCITED)]
    bad += [f"invariants_uncited.txt: {name} is cited now, or removed" for name in
            sorted(UNCITED - lonely)]
    print(*bad, sep="\n", end="\n" if bad else "")
    print("invariants:", "FAILED" if bad else f"ok ({len(defined)} names)")
    return bool(bad)


sys.exit(main())
