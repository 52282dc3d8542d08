#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that no compiler checks: sizes, dead code, leftovers, words.

tidy_ratchet.txt lists what exceeded a limit when the rule was introduced ("<what> <where> <size>").
An entry may shrink but not grow, and there are no new entries.  `tidy.py --write-ratchet` rewrites
that file.
"""
import pathlib
import re
import sys

MAX_COLUMNS, MAX_FUNCTION, MAX_TEST_FUNCTION, MAX_FILE = 100, 60, 70, 600
FOLDERS = ["checkpoint", "consensus", "dmt", "eval", "hints", "proxy", "runtime",
           "tests"]
C_LIKE = {".h", ".cc", ".c", ".def"}
SCRIPTS = {".py", ".sh", ".cmake"}
CMAKE = "CMakeLists.txt"
HERE = pathlib.Path(__file__).parent
RATCHET = HERE / "tidy_ratchet.txt"

# A statement in a comment. Examples in header comments are indented by three or more spaces, and
# prose has more than two words before its first bracket.
COMMENTED_OUT = re.compile(
    r"^\s*//\s{0,2}(?=\S)(?:(?:[\w:<>*&\[\].,]+\s+){0,2}[\w:<>*&\[\].-]+\s*(?:=|\()[^'`]*;"
    r"|(?:if|for|while|switch)\s*\(.*\)\s*\{|\}"
    r"|#\s*(?:include|define|if|endif)\b.*|return\b[^.]*;)\s*$")
LEFTOVER = [
    (re.compile(r"^\s*#\s*if\s+0\b"), "#if 0"),
    (re.compile(r"std::c(?:out|err)\b"), "std::cout or std::cerr (use fmt or spdlog)"),
    (re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"), "an unfinished mark"),
    (re.compile(r"/home/\w"), "a path of one machine"),
]
# DESIGN's glossary is the vocabulary; other projects use these words for the same things.
BANNED = re.compile(r"\b(?:interProStart|interProEnd|turnCount|FUO|old_end|paxos_op_queue|"
                    r"time_bubble_cnt|slaves?|whitelist|blacklist)\b")
THROWS = re.compile(r"std::istreambuf_iterator<|son::parse\((?:in|file|stream)[,)]")
SLEEP = re.compile(r"\b(?:sleep_for|usleep|nanosleep|sleep)\s*\(")
TYPE = re.compile(r"^\s*(?:namespace|class|struct|enum|union|extern|typedef|export)\b|=\s*\{?$|^}")


def functions(lines):
    """Yields (first line, length) per function, by layout: `}` ends what began at its column."""
    for column in (0, 2):
        opened = None
        for number, line in enumerate(lines, 1):
            indent = len(line) - len(line.lstrip())
            text = line.strip()
            if not text or indent != column or text[0] in "#/":
                continue
            if re.match(r"^\}(?:;|\s*//.*|\);?)?$", text) and opened:
                yield opened, number - opened + 1
                opened = None
            elif re.match(r"^(?:public|private|protected|case\b.*|default)\s*:", text):
                continue
            elif re.match(r"[A-Za-z_~\[]", text) and not text.endswith(";"):
                table = text.endswith("] = {")
                opened = None if table or TYPE.match(text) else (opened or number)
            elif text.endswith(";"):
                opened = None


def check_file(rel, lines, report):
    code = rel.endswith(tuple(C_LIKE))
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        report(f"{rel}:1", "no SPDX line")
    in_test = rel.startswith("tests/") and not rel.startswith(("tests/interpose/", "tests/lint/"))
    for number, line in enumerate(lines, 1):
        where = f"{rel}:{number}"
        if len(line) > MAX_COLUMNS and not rel.endswith(".def"):  # a table's row is one line
            report(where, f"{len(line)} columns")
        if line != line.rstrip():
            report(where, "trailing blank")
        if not rel.startswith("tests/lint/"):
            for pattern, name in LEFTOVER:
                if pattern.search(line):
                    report(where, name)
            m = BANNED.search(line)
            if m:
                report(where, f"the word {m[0]} (see the glossary)")
        if code and COMMENTED_OUT.match(line):
            report(where, "a commented-out statement")
        if code and not rel.startswith("tests/") and THROWS.search(line):
            report(where, "it throws if a read fails (dmt/base/read_text.h)")
        if rel.endswith(".h") and re.match(r"\s*using\s+namespace\b", line):
            report(where, "using namespace in a header")
        if rel.endswith(".cc") and in_test and SLEEP.search(line) and "// poll" not in line:
            report(where, "a sleep in a test; poll a condition and mark the pause `// poll`")


def sizes(rel, lines):
    if len(lines) > MAX_FILE:
        yield f"file {rel}", len(lines), MAX_FILE
    if rel.endswith((".cc", ".h", ".c")):
        seen = {}
        limit = MAX_TEST_FUNCTION if rel.startswith("tests/") else MAX_FUNCTION
        for first, length in functions(lines):
            if length > limit:
                name = re.search(r"([\w:~]+)\s*\(", " ".join(lines[first - 1:first + 2]))
                key = f"function {rel}:{name[1] if name else first}"
                seen[key] = max(length, seen.get(key, 0))
        for key, length in seen.items():
            yield key, length, limit


def read_ratchet():
    rows = {}
    if RATCHET.exists():
        for line in RATCHET.read_text().splitlines():
            if line and not line.startswith("#"):
                key, size = line.rsplit(" ", 1)
                rows[key] = int(size)
    return rows


def main():
    root, bad, big, files = HERE.parent.parent, [], {}, 0
    ratchet = read_ratchet()
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in C_LIKE | SCRIPTS and file.name != CMAKE or not file.is_file():
                continue
            files += 1
            rel, lines = file.relative_to(root).as_posix(), file.read_text().splitlines()
            check_file(rel, lines, lambda where, what: bad.append(f"{where}: {what}"))
            for key, size, limit in sizes(rel, lines):
                big[key] = size
                if size > ratchet.get(key, limit):
                    bad.append(f"{key}: {size} lines, the limit is {ratchet.get(key, limit)}")
    if "--write-ratchet" in sys.argv:
        head = "# Sizes above the limits that tidy.py tolerates; they may only shrink.\n"
        RATCHET.write_text(head + "".join(f"{k} {v}\n" for k, v in sorted(big.items())))
        return 0
    bad += [f"tidy_ratchet.txt: {k} is {big.get(k, 'below the limit')} now, lower its entry of {v}"
            for k, v in ratchet.items() if big.get(k, 0) < v]
    print(*bad, sep="\n", end="\n" if bad else "")
    print("tidy:", f"FAILED ({len(bad)})" if bad else f"ok ({files} files)")
    return bool(bad)


sys.exit(main())
