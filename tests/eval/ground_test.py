#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A native server's needs are created, and only these are removed (eval/measure/ground.py)."""
import pathlib
import tempfile
import unittest
from unittest import mock

import _cases
import ground


class Ground(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root, self.said = pathlib.Path(place.name), []

    def prepared(self, *paths, users=()):
        return ground.prepared([(str(path), None) for path in paths], users, self.said.append)

    def test_a_missing_directory_is_there_meanwhile_and_gone_afterwards(self):
        wanted = self.root / "run" / "apache2"
        with self.prepared(wanted):
            (wanted / "apache2.pid").write_text("7")
        self.assertEqual(list(self.root.iterdir()), [])
        self.assertIn(str(self.root / "run"), self.said[0])

    def test_a_directory_that_was_there_stays_with_what_it_holds(self):
        (self.root / "run").mkdir()
        (self.root / "run" / "other").write_text("")
        with self.prepared(self.root / "run", self.root / "run" / "apache2"):
            pass
        self.assertEqual([p.name for p in (self.root / "run").iterdir()], ["other"])

    def test_nothing_is_said_when_nothing_is_made(self):
        with self.prepared(self.root):
            pass
        self.assertEqual(self.said, [])

    def test_a_link_to_a_directory_that_is_missing_is_followed(self):
        (self.root / "lock").symlink_to(self.root / "run" / "lock")
        with self.prepared(self.root / "lock" / "apache2"):
            self.assertTrue((self.root / "run" / "lock" / "apache2").is_dir())
        self.assertEqual([p.name for p in self.root.iterdir()], ["lock"])

    def test_all_is_removed_when_the_measurement_breaks(self):
        with self.assertRaises(KeyError), self.prepared(self.root / "a", self.root / "b"):
            raise KeyError
        self.assertEqual(list(self.root.iterdir()), [])

    def test_what_cannot_be_made_is_named_and_what_was_made_is_gone(self):
        (self.root / "file").write_text("")
        with self.assertRaisesRegex(ground.CannotRun, "file/apache2 is missing and cannot"):
            with self.prepared(self.root / "a", self.root / "file" / "apache2"):
                self.fail("it was entered")
        self.assertEqual([p.name for p in self.root.iterdir()], ["file"])

    def test_a_missing_user_is_added_and_deleted_again(self):
        with mock.patch.object(ground, "run_tool") as tool, \
                mock.patch.object(ground, "has_user", lambda name: name == "there"):
            with self.prepared(users=("there", "absent")):
                self.assertEqual([call.args[0] for call in tool.mock_calls], ["useradd"])
            self.assertEqual(tool.mock_calls[1:], [mock.call("userdel", "absent")])
        self.assertIn("user absent", self.said[0])


if __name__ == "__main__":
    _cases.tell()
