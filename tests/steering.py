# SPDX-License-Identifier: Apache-2.0
"""The words in a test program's head that say how it is built and run.

A word stands alone in a line `// word: value` among the comment lines that begin the file.
tests/run.py and tests/build_stranger.sh (`build`) read it there; tests/lint/test_words.py fails
where one stands in any other place.
"""
import re

LARGE, SMALL = {"interpose"}, {"interpose/traps", "interpose/posix"}
# word: (folders below tests/ in which it is read, the values that it may have)
WORDS = {
    "build": (LARGE | SMALL | {"interpose/racy", "e2e"}, r"-.*"),
    "solo": (LARGE, r"-.*"),
    "run": (LARGE, r"-.*"),
    "args": (LARGE, r".+"),
    "exit": (LARGE | SMALL, r"\d+"),
    "native": (LARGE | SMALL, r"no"),
    "parallel": (SMALL, r"no"),
    "says": (SMALL, r".+"),
}
LINE = re.compile(rf"// ({'|'.join(WORDS)}): *(.*?) *$")


def head_of(text):
    """The comment lines that begin a program."""
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
    return lines[:end]


def words_of(source):
    """{word: value} of a program."""
    return dict(found.groups() for found in map(LINE.match, head_of(source.read_text())) if found)
