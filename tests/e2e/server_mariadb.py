#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MariaDB of the matrix: sysbench's oltp_read_only and oltp_read_write on InnoDB."""
import hashlib
import re
import signal
import subprocess

import _harness as h
import _installed
import _matrix as m

ROWS = 10000   # of sysbench's one table
TABLE = "sbtest.sbtest1"


class Mariadb(m.Server):
    name = "mariadb"
    version_of = "mariadb-server"
    programs = ("mariadbd", "mariadb-install-db", "mariadb", "sysbench")
    requests = (160, 2400)
    measured = 4000
    native_users = ("mysql",)

    def prepare(self):
        """A fresh data directory, filled before the group starts."""
        self.data, self.socket = self.work / "data", self.work / "mariadb.sock"
        self.settings = _installed.mariadb(self.work)
        m.natively(["mariadb-install-db", self.settings, "--user=mysql", "--skip-test-db",
                    "--auth-root-authentication-method=normal", f"--datadir={self.data}"])
        m.natively(["chown", "mysql:mysql", self.work])
        with open(self.work / "first.log", "wb") as log:
            first = subprocess.Popen(self.native_program(), stdout=log, stderr=log)
        try:
            h.wait_until(self.ready, 60, "mariadbd answers")
            self.fill()
        finally:
            first.send_signal(signal.SIGTERM)
            first.wait(60)

    def fill(self):
        """sysbench's table."""
        self.ask("create database sbtest")
        self.sysbench("oltp_read_write", "prepare")

    def program(self):
        return ["mariadbd", self.settings, f"--datadir={self.data}", f"--port={self.port}",
                f"--socket={self.socket}", f"--pid-file={self.work}/mariadb.pid"]

    def native_program(self):
        return ["/usr/sbin/mariadbd", *self.program()[1:], "--user=mysql"]

    def ask(self, query):
        """One line per row, with tabs between the fields."""
        return m.natively(["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", self.port, "-u",
                           "root", "-N", "-B", "-e", query], seconds=60).strip()

    def ready(self):
        try:
            return self.ask("select 1") == "1"
        except (h.Failure, subprocess.TimeoutExpired):
            return False

    def sysbench(self, test, command, *words):
        return m.natively(["sysbench", test, "--mysql-host=127.0.0.1",
                           f"--mysql-port={self.port}", "--mysql-user=root",
                           f"--table-size={ROWS}", "--rand-seed=7",
                           "--mysql-ignore-errors=1213", *words, command],
                          seconds=280)

    def load(self, requests):
        rows = [self.transactions("oltp_read_only", requests),
                self.transactions("oltp_read_write", requests)]
        held = self.ask(f"select count(*) from {TABLE}; check table {TABLE} extended")
        if held != f"{ROWS}\nsbtest.sbtest1\tcheck\tstatus\tOK":
            raise h.Failure(f"after {2 * requests} transactions the table contains {held!r}")
        return rows

    def transactions(self, test, requests):
        """Any error except a deadlock (1213) ends sysbench; after a deadlock it restarts the
        transaction."""
        output = self.sysbench(test, "run", f"--threads={m.CLIENTS}", f"--events={requests}",
                               "--time=0", "--histogram=on")
        done = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", output)
        if not done or int(done[1]) != requests:
            raise h.Failure(f"sysbench {test}: {output[-1500:]}")
        took = []   # by buckets of its histogram
        for bucket, count in re.findall(r"^ *([\d.]+) \|\**\s+(\d+)$", output, re.M):
            took += [float(bucket)] * int(count)
        return (test, float(done[2]), took[len(took) // 2], took[len(took) * 99 // 100])

    def state(self):
        """Includes values that only differ between runs: times, thread numbers, randomness."""
        rows = self.ask(f"checksum table {TABLE}; "
                        "select now(6), uuid(), rand(), connection_id(), sysdate(6); "
                        "show engine innodb status; show processlist; show global status")
        digest = hashlib.sha256(rows.encode()).hexdigest()[:16]
        first = rows.splitlines()[0].replace("\t", " checksum ")
        return f"{first}, all: SHA-256 {digest}"


KINDS = (Mariadb,)

if __name__ == "__main__":
    h.run_scenario("server_mariadb", lambda scenario: m.prove(scenario, KINDS))
