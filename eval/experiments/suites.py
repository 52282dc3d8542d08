# SPDX-License-Identifier: Apache-2.0
"""Debian's packaged test suite of MariaDB against an installed mariadbd.

The suite's own driver runs its tests against a running server (mysql-test-run --extern), natively
and against three perturbed replicas: each test has the same verdict, and the replicas have written
the same bytes. What fails natively, too, is listed. Quick: some of its main tests, --full: more.
The other packaged suite, memcapable, is part of tests/e2e/memcached.py; the servers' other
packages have none that runs against an installed server.
"""
import os
import pathlib
import re
import shutil
import subprocess

import _harness as h
import _matrix as m
from server_mariadb import Mariadb
from start import Native

OPTIONS = {}
SUITE = pathlib.Path("/usr/share/mysql/mysql-test")
# The options with which mysql-test-run starts its own server, as far as answers depend on them.
SERVER_OPTIONS = ("--character-set-server=latin1", "--collation-server=latin1_swedish_ci",
                  "--default-storage-engine=myisam", "--local-infile",
                  "--log-bin-trust-function-creators=1", "--use-stat-tables=preferably",
                  "--key-buffer-size=1M", "--sort-buffer-size=256K", "--max-heap-table-size=1M")
QUICK = ("bigint", "bool", "case", "compare", "count_distinct", "distinct", "func_if", "func_in",
         "func_like", "func_op", "func_set", "having", "limit", "null", "replace")
# Of these many fail natively, too: they want more of the driver's own options, or its directory.
FULL = QUICK + ("cast", "func_math", "func_str", "func_time", "group_by", "join", "order_by",
                "select", "subselect", "type_varchar", "union", "alias", "create", "delete",
                "insert", "sp", "trigger", "update", "view")
TEST_SECONDS = 300


class Tested(Mariadb):
    """mariadbd with what the suite wants to find: its databases and its procedure."""

    name = "mariadb suite"
    programs = ("mariadbd", "mariadb-install-db", "mariadb", "perl")

    def sysbench(self, *_, **__):
        """No table of sysbench's; prepare() calls this while the first server runs."""
        self.ask("drop database sbtest; create database test; create database mtr; "
                 "create procedure mtr.add_suppression(pattern varchar(255)) do 0")

    def program(self):
        return [*super().program(), *SERVER_OPTIONS]


def verdicts(server, tests, where):
    """{test: pass, fail or skipped}, by the suite's driver; each begins with nothing that an
    earlier one left."""
    where.mkdir()
    found = {}
    for test in tests:
        try:
            server.ask("drop database if exists test")
        except h.Failure:
            pass   # its tables are gone; a file that a test wrote there keeps the directory
        server.ask("create database if not exists test")
        command = ["perl", "mysql-test-run.pl", "--extern", "host=127.0.0.1", "--extern",
                   f"port={server.port}", "--extern", "user=root", "--extern", "protocol=tcp",
                   f"--vardir={where}/var", "--retry=1", "--nocheck-testcases", "--nowarnings",
                   f"main.{test}"]
        done = subprocess.run(command, cwd=SUITE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=TEST_SECONDS,
                              env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
        (where / test).write_text(done.stdout)
        match = re.search(rf"^main\.{test}(?: '[^']*')?\s+(?:w\d+ )?\[ (\w+) \]", done.stdout, re.M)
        if not match:
            raise h.Failure(f"mysql-test-run {test} ended with status {done.returncode}: "
                            f"{done.stdout[-2000:]}")
        found[test] = match[1]
    return found


def scenario(x):
    """Debian's packaged suite of MariaDB, natively and under Crane."""
    h.need(*Tested.programs)
    if not (SUITE / "mysql-test-run.pl").exists():
        raise h.CannotRun("the suite is not installed: apt-get install mariadb-test")
    tests = FULL if x.full else QUICK
    # The same fresh data for both: tests leave things behind.
    plain = Tested(m.place_of(x, Tested), h.free_port())
    with Native(plain.native, plain.port, plain.environment):
        h.wait_until(plain.ready, 60, "mariadbd answers")
        native = verdicts(plain, tests, x.work / "native")
    shutil.rmtree(plain.work)
    x.say(f"natively: {tally(native)}")
    server = Tested(m.place_of(x, Tested), h.free_port())
    with h.Group(x, server.command, port=server.port, record=True,
                 options=[*server.options, "--perturb", "1"]) as group:
        h.wait_until(server.ready, 60, "the group answers")
        crane = verdicts(server, tests, x.work / "crane")
        x.say(f"under Crane: {tally(crane)}")
        group.settle(120)
        group.check_calm()
        group.stop()
        text = x.check_equal(group, what="every byte of three perturbed replicas is equal")
        x.say(f"crane-diff: {text}")
    for test in tests:
        mine, theirs = crane.get(test, "not run"), native.get(test, "not run")
        x.check(mine == theirs, f"main.{test}: {mine}", f"natively: {theirs}")
    x.check(list(native.values()).count("pass") > len(tests) // 2, "most pass natively",
            tally(native))
    failing = [t for t, verdict in native.items() if verdict != "pass"]
    x.say(f"not passing natively, too: {', '.join(failing) or 'none'}")


def tally(found):
    return ", ".join(f"{list(found.values()).count(v)} {v}" for v in sorted(set(found.values())))
