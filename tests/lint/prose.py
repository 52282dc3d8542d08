#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents and headers avoid certain words; documents keep their size limits and valid links."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Documents that are not clean yet.  Remove an entry once its document is clean; a stale one fails.
TOO_LONG = set()
UNCLEAN_WORDS = set()

LIMITS = {"README.md": 120, "ARCHITECTURE.md": 250}
WORDS = re.compile(r"(?:^|[.!?:]\s+|[*|]\s+|\n\n)Who\s"
                   r"|\b(?:[Ss]uch\s+a\s+one|[Nn]obody|[Ee]verybody)\b")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PATH = re.compile(r"`([a-z_]+(?:/[\w.]+)+\.(?:h|cc|py|md|def))`")


def exists(document, target):
    return (document.parent / target).exists()


def comments(text):
    """Returns the comments of a header, one per line."""
    return "\n".join(line.partition("//")[2].strip() for line in text.split("\n"))


def main():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                             "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in sorted(set(listed.stdout.split())) if (ROOT / name).exists()]
    bad, long, words = [], set(), set()
    for name in names:
        document = ROOT / name
        text = document.read_text()
        if name in LIMITS and len(text.splitlines()) > LIMITS[name]:
            long.add(name)
        if WORDS.search(text):
            words.add(name)
        bad += [f"{name}: the target of the link {to} does not exist" for to in LINK.findall(text)
                if ":" not in to and not exists(document, to)]
        if name != "CHANGELOG.md":
            bad += [f"{name}: {to} does not exist" for to in PATH.findall(text)
                    if not (ROOT / to).exists() and not exists(document, to)]
    headers = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                              "*.h"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in sorted(set(headers.stdout.split())):
        if (ROOT / name).exists() and WORDS.search(comments((ROOT / name).read_text())):
            words.add(name)
    bad += [f"{name}: longer than {LIMITS[name]} lines" for name in sorted(long - TOO_LONG)]
    bad += [f"{name}: a word that the prose avoids" for name in sorted(words - UNCLEAN_WORDS)]
    bad += [f"{name}: is clean now, remove it from the list in prose.py"
            for name in sorted((TOO_LONG - long) | (UNCLEAN_WORDS - words))]
    print(*bad, sep="\n", end="\n" if bad else "")
    print("prose:", "FAILED" if bad else f"ok ({len(names)} documents)")
    return bool(bad)


sys.exit(main())
