#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every word that steers a test is at the place where its reader looks for it, and only there.

A word that its reader does not see is silently ignored, and the test then runs in a wrong way.
The words are those of tests/steering.py, files that belong to a program by their name, and the
tags of test cases by which tests/run.py selects.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))
import steering  # noqa: E402

LIKE = 0.8   # similarity from which a word of the head counts as a typo of a table word
NAMES = "|".join(steering.WORDS)
ANYWHERE = re.compile(rf"(?<![\w-])({NAMES})\s*:(?:\s|$)", re.I)
BY_HAND = {".load"}   # measurements, which print and assert nothing
FIRST = re.compile(r"//\s*([A-Za-z]+)\s*:")
COMMENT = re.compile(r"//.*|/\*.*?(?:\*/|$)|^\s*\*.*")
CASE_TAGS = re.compile(r'\bTEST_CASE(?:_METHOD)?\((?:[^"()]*,\s*)?(?:"[^"]*"\s*)+,'
                       r'\s*"((?:\[[^"]*\])+)"')


def programs():
    for pattern in ("interpose/**/*.c", "interpose/**/*.cc", "interpose/**/*.h", "e2e/*.c",
                    "unit/*/*.c", "unit/*/*.h"):
        yield from sorted(TESTS.glob(pattern))


def is_read(word, folder, name):
    """Returns whether a reader looks for the word in this file."""
    if name.endswith(".h") or folder not in steering.WORDS[word][0]:
        return False
    # Libraries and runners of the programs are only built; crane_*.cc have rules of their own.
    return not name.startswith("crane_") or (word == "build" and name.endswith(".c"))


def wrong_word(word, value, folder, name):
    if not is_read(word, folder, name):
        return "is not read in this file"
    if not re.fullmatch(steering.WORDS[word][1], value):
        return f"has the value `{value}`, which its reader does not accept"
    return ""


def check_program(folder, name, text):
    """Returns the mistakes, with line numbers."""
    bad, seen, head = [], set(), len(steering.head_of(text))
    for number, line in enumerate(text.splitlines(), 1):
        found = steering.LINE.match(line) if number <= head else None
        if found:
            wrong = wrong_word(*found.groups(), folder, name)
            if found[1] in seen:
                wrong = "occurs twice"
            seen.add(found[1])
            bad += [f"{number}: `{found[1]}:` {wrong}"] if wrong else []
            continue
        for comment in COMMENT.findall(line):
            bad += [f"{number}: `{word}:` is not read here: it needs its own line "
                    f"`// {word.lower()}: value` in the head" for word in ANYWHERE.findall(comment)]
        first = FIRST.match(line) if number <= head else None
        like = first and difflib.get_close_matches(first[1].lower(), steering.WORDS, 1, LIKE)
        if like and first[1].lower() not in steering.WORDS:
            bad.append(f"{number}: `{first[1]}:` is unknown; did you mean `{like[0]}:`?")
    return bad


def check_programs():
    bad, count = [], 0
    for path in programs():
        count += 1
        folder = path.parent.relative_to(TESTS).as_posix()
        rel = path.relative_to(ROOT)
        bad += [f"{rel}:{what}" for what in check_program(folder, path.name, path.read_text())]
    return bad, count


def check_companions():
    """Checks files that belong to a program of tests/interpose by name or by reference."""
    folder, bad = TESTS / "interpose", []
    named = "\n".join(steering.words_of(p).get("solo", "") for p in folder.glob("*.c*"))
    for path in sorted(folder.rglob("*.expect")):
        if path.parent != folder or path.name.startswith("crane_") or \
                not any(path.with_suffix(kind).exists() for kind in (".c", ".cc")):
            bad.append(f"{path.relative_to(ROOT)}: no program is compared with it")
    for path in sorted(folder.rglob("*.script")):
        if str(path.relative_to(ROOT)) not in named:
            bad.append(f"{path.relative_to(ROOT)}: no `solo:` names it")
    return bad


def tags_in(paths):
    return [tag for path in paths for tags in CASE_TAGS.findall(path.read_text())
            for tag in re.findall(r"\[([^\]]*)\]", tags)]


def check_tags():
    """Checks tags that hide a test case or excuse its failure, and tags that run.py selects."""
    bad = [f"{path.relative_to(ROOT)}: the tag [{tag}] hides a test case or excuses its failure"
           for path in sorted(TESTS.rglob("*.cc")) for tag in tags_in([path])
           if tag.startswith((".", "!")) and tag not in BY_HAND]
    chosen = re.search(r"^VM_CASES = (.*)$", (TESTS / "run.py").read_text(), re.M)
    wanted = re.findall(r"\[([a-z]+)\]", chosen[1]) + \
        re.findall(r'"([a-z]+)"', chosen[1].partition(" for ")[2])
    there = set(tags_in([*(TESTS / "verbs").glob("*.cc"), *(TESTS / "fabric").glob("*.cc"),
                         *(TESTS / "unit").glob("*/*.cc")]))
    return bad + [f"tests/run.py: VM_CASES selects [{tag}], which no test case has"
                  for tag in wanted if tag not in there]


def check_readers():
    """Checks that run.py, the build and the formatter know the words."""
    about = (TESTS / "run.py").read_text().split('"""')[1]
    bad = [f"tests/run.py: its docstring does not explain `{word}:`" for word in steering.WORDS
           if word != "build" and f"// {word}: " not in about]
    if "s|^// build: ||p" not in (TESTS / "build_stranger.sh").read_text():
        bad.append("tests/build_stranger.sh: it does not read `// build: ` as "
                   "tests/steering.py does")
    # `make format` would wrap such a line, or join it to the paragraph before.
    pragma = re.search(r"^CommentPragmas: '\^ \((.*)\): '$", (ROOT / ".clang-format").read_text(),
                       re.M)
    if not pragma or set(pragma[1].split("|")) != set(steering.WORDS):
        bad.append(f".clang-format: CommentPragmas: '^ ({NAMES}): '")
    return bad


def main():
    bad, count = check_programs()
    bad += check_companions() + check_tags() + check_readers()
    print(*bad, sep="\n", end="\n" if bad else "")
    print("test_words:", f"FAILED ({len(bad)})" if bad else f"ok ({count} files)")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
