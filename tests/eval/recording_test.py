#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The picture of a terminal (eval/measure/recording.py)."""
import contextlib
import io
import re
import unittest
import xml.etree.ElementTree as xml

import _cases
import recording


def picture(*lines):
    """Returns (the rows of text, all of the SVG)"""
    with contextlib.redirect_stdout(io.StringIO()), recording.Recording("make demo") as kept:
        for line in lines:
            print(line)
    svg = kept.svg("a <title>")
    return [row.text for row in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")], svg


class Picture(unittest.TestCase):
    def test_it_has_the_command_and_every_line_that_is_not_empty(self):
        rows, _ = picture("one <&> two", "", "   three")
        self.assertEqual(rows, ["$ make demo", "one <&> two", "   three"])

    def test_a_long_line_is_broken(self):
        rows, _ = picture("x" * (recording.COLUMNS + 5))
        self.assertEqual([len(row) for row in rows[1:]], [recording.COLUMNS, 5])

    def test_without_animation_all_lines_are_seen(self):
        _, svg = picture("one")
        hidden = re.findall(r'<set attributeName="visibility" to="hidden" begin="([^"]+)"', svg)
        self.assertEqual(hidden, [f"{recording.POSTER}s"] * 2)
        self.assertNotIn('visibility="hidden"', svg)

    def test_the_moment_of_the_kill_is_marked(self):
        _, svg = picture("   replica 1 leads: kill -9 7", "   replica 0 leads now")
        self.assertRegex(svg, r'class="dies"[^>]*>   replica 1')
        self.assertRegex(svg, r'class="good"[^>]*>   replica 0')

    def test_standard_output_is_back_afterwards(self):
        before = recording.sys.stdout
        picture("one")
        self.assertIs(recording.sys.stdout, before)


if __name__ == "__main__":
    _cases.tell()
