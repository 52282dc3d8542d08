#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents, comments and messages avoid certain words, and what they cite exists.

Checked are documents, comments of sources, docstrings, and the string literals of the product.
Documents also keep their size limits and valid links.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Files or folders (ending in a slash) that are not clean yet.  Remove an entry once it is clean: a
# stale entry fails.  Add none.
TOO_LONG = set()
UNCLEAN_WORDS = set()
UNCLEAN_CITATIONS = set()

LIMITS = {"README.md": 120, "ARCHITECTURE.md": 250}
WORDS = re.compile(r"(?:^|[.!?:;]\s+|[*|]\s+|\n\n)Who\s|\b(?:[Ss]uch\s+a\s+one|[Nn]obody"
                   r"|[Ss]omebody|[Ee]verybody|[Ww]hoever|[Aa]new|[Ss]tands\s+still|[Hh]ush)\b")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
SECTION = re.compile(r"\bDESIGN(?:\.md)?\s+sections?\s+\d+")
CITED = re.compile(r"(?<![\w./<>*{}$~@-])((?:[\w.-]+/)*[A-Za-z_][\w.-]*\.(?:h|cc|py|md|def))"
                   r"(?![\w*{(-]|\.\w|\]\()")
# Headers of the kernel and of libc, and an example in which CRANE is the place of this tree.
FOREIGN = re.compile(r"(?:include|linux|net|sys|CRANE)/")

TOKEN = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)'
                   r'|R"(?P<mark>[^\s()\\]*)\((?P<raw>.*?)\)(?P=mark)"'
                   r"""|"(?P<string>(?:\\.|[^"\\\n])*)"|(?<![\w])'(?:\\.|[^'\\\n])+'""", re.S)
HASH = re.compile(r"(?:^|\s)#+\s+(.*)")
C_LIKE = (".h", ".cc", ".c", ".def")
SCRIPTS = (".sh", ".cmake", "CMakeLists.txt", "Makefile")


def listed(*patterns):
    found = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                            *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in sorted(set(found.stdout.split())) if (ROOT / name).exists()]


class Lines:
    """Text that keeps the line numbers of the file that it comes from."""

    def __init__(self, count):
        self.lines = [""] * (count + 1)

    def add(self, number, text):
        for offset, line in enumerate(text.split("\n")):
            old = self.lines[number + offset - 1]
            self.lines[number + offset - 1] = f"{old} {line}".strip()

    def text(self):
        return "\n".join(self.lines)


def parts_of_c(source):
    """Returns the comments and the messages of a C or C++ source; a lone word is no message."""
    comments, messages = Lines(source.count("\n") + 1), Lines(source.count("\n") + 1)
    end = 0   # of the literal before
    for found in TOKEN.finditer(source):
        number = source.count("\n", 0, found.start()) + 1
        if found["comment"]:
            comments.add(number, re.sub(r"^[ \t]*(?://+|/\*+|\*+/?)[ \t]?|\*/", "", found[0],
                                        flags=re.M))
        text = found["raw"] or found["string"]
        if text and (" " in text or not source[end:found.start()].strip()):
            messages.add(number, text)
        end = found.end() if text else end
    return comments.text(), messages.text()


def comments_of_python(source):
    """Returns the comments and docstrings."""
    comments, before = Lines(source.count("\n") + 1), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0], token.string.lstrip("#! "))
        elif token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT,
                                                          tokenize.DEDENT):
            comments.add(token.start[0], token.string.strip("\"'rf"))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return comments.text()


def prose_of(name, source):
    """Returns (text whose citations are checked, text that is checked for words only)."""
    if name.endswith(C_LIKE):
        comments, messages = parts_of_c(source)
        return comments, "" if name.startswith("tests/") else messages
    if name.endswith(SCRIPTS):
        return "\n".join((HASH.search(line) or ("", ""))[1] for line in source.split("\n")), ""
    return (comments_of_python(source) if name.endswith(".py") else source), ""


def words_in(name, text):
    return [f"{name}:{text.count(chr(10), 0, found.end() - 1) + 1}: "
            f"the prose avoids '{' '.join(found[0].split())}'" for found in WORDS.finditer(text)]


def is_there(name, cited, bases):
    if FOREIGN.match(cited):
        return True
    if "/" not in cited:
        return cited in bases
    return (ROOT / cited).exists() or ((ROOT / name).parent / cited).exists()


def citations_in(name, text, bases):
    """Returns the citations of files and sections that do not exist."""
    bad = [(found.start(), " ".join(found[0].split())) for found in SECTION.finditer(text)]
    bad += [(found.start(), found[1]) for found in CITED.finditer(text)
            if not is_there(name, found[1], bases)]
    return [f"{name}:{text.count(chr(10), 0, at) + 1}: {what} does not exist" for at, what in bad]


def documents():
    """Returns what is wrong with links and sizes of documents, and those that are too long."""
    bad, long = [], set()
    for name in listed("*.md"):
        text = (ROOT / name).read_text()
        if name in LIMITS and len(text.splitlines()) > LIMITS[name]:
            long.add(name)
        bad += [f"{name}: the target of the link {to} does not exist" for to in LINK.findall(text)
                if ":" not in to and not ((ROOT / name).parent / to).exists()]
    return bad, long


def unlisted(found, unclean):
    """Returns what is not excused by the list, and the entries of the list that excuse nothing."""
    names = {one.partition(":")[0] for one in found}

    def excuses(entry, name):
        return name == entry or (entry.endswith("/") and name.startswith(entry))

    return [one for one in found
            if not any(excuses(entry, one.partition(":")[0]) for entry in unclean)] + \
        [f"{entry}: is clean now, remove it from the list in prose.py" for entry in sorted(unclean)
         if not any(excuses(entry, name) for name in names)]


def main():
    names = listed("*.md", "*.py", *(f"*{kind}" for kind in C_LIKE + SCRIPTS))
    bases = {pathlib.PurePath(name).name for name in names}
    bad, long = documents()
    words, citations = [], []
    for name in names:
        prose, messages = prose_of(name, (ROOT / name).read_text(errors="replace"))
        words += words_in(name, prose) + words_in(name, messages)
        if name != "CHANGELOG.md":
            citations += citations_in(name, prose, bases)
    bad += unlisted(words, UNCLEAN_WORDS) + unlisted(citations, UNCLEAN_CITATIONS)
    bad += unlisted([f"{name}: longer than {LIMITS[name]} lines" for name in sorted(long)],
                    TOO_LONG)
    print(*bad, sep="\n", end="\n" if bad else "")
    print("prose:", "FAILED" if bad else f"ok ({len(names)} files)")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
