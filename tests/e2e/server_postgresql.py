#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL of the matrix: pgbench's TPC-B and its reads, and clients that connect for one
query."""
import glob
import hashlib
import os
import re
import subprocess

import _harness as h
import _matrix as m

ACCOUNTS = 100000   # of pgbench's scale 1
SELECTS = 10        # per TPC-B transaction, so that both take the same time


def directory():
    """Where Debian keeps the programs of its PostgreSQL."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found or not os.path.exists(f"{found[-1]}/pgbench"):
        raise h.CannotRun("postgresql is not installed (make deps)")
    return found[-1]


class Postgres(m.Server):
    name = "postgresql"
    version_of = "postgresql-15"
    programs = ("psql", "setpriv")
    native_directories = (("/run/postgresql", "postgres"),)
    native_users = ("postgres",)
    requests = (240, 2400)

    def prepare(self):
        """A fresh cluster, filled before the group starts."""
        self.home, self.data = directory(), self.work / "data"
        m.natively(["chown", "postgres:postgres", self.work])
        self.as_owner("initdb", "-D", self.data, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                      "--no-sync")
        with open(self.data / "postgresql.conf", "a", encoding="ascii") as settings:
            settings.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n")
        self.as_owner("pg_ctl", "-D", self.data, "-w", "-l", self.work / "first.log", "start")
        try:
            self.fill()
        finally:
            self.as_owner("pg_ctl", "-D", self.data, "-w", "stop")

    def fill(self):
        """pgbench's tables."""
        self.bench("-i", "-s", "1", "-q")

    def as_owner(self, tool, *words):
        return m.natively(["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups",
                           f"{self.home}/{tool}", *words], cwd="/")

    def program(self):
        return [f"{self.home}/postgres", "-D", str(self.data)]

    def native_program(self):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups",
                *self.program()]

    def bench(self, *words):
        return m.natively([f"{self.home}/pgbench", "-h", "127.0.0.1", "-p", self.port, "-U",
                           "postgres", *words, "postgres"], seconds=280)

    def ask(self, *queries):
        """One line per row, with bars between the fields."""
        words = [word for query in queries for word in ("-c", query)]
        return m.natively(["psql", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-XAtq",
                           *words, "postgres"], seconds=60).strip()

    def ready(self):
        try:
            return self.ask("select 1") == "1"
        except (h.Failure, subprocess.TimeoutExpired):
            return False

    def load(self, requests):
        before = int(self.ask("select count(*) from pgbench_history"))
        rows = [self.transactions("TPC-B", requests),
                self.transactions("select", SELECTS * requests, "-S"),
                self.transactions("select, reconnecting", self.fewer(requests), "-S", "-C")]
        done = before + requests // m.CLIENTS * m.CLIENTS
        sums = self.ask("select count(*) from pgbench_history",
                        "select sum(abalance) = (select sum(delta) from pgbench_history),"
                        "(select sum(bbalance) from pgbench_branches)"
                        " = (select sum(tbalance) from pgbench_tellers)"
                        " from pgbench_accounts")
        if sums != f"{done}\nt|t":
            raise h.Failure(f"after {done} transactions the tables contain {sums!r}")
        return rows

    def requests_made(self, requests, rows):
        return requests + SELECTS * requests + self.fewer(requests)

    def fewer(self, requests):
        """Returns the number of new connections; pgbench needs at least one for each client."""
        return max(requests // 4, m.CLIENTS)

    def transactions(self, what, requests, *words):
        logs = self.work / "transactions"
        logs.mkdir(exist_ok=True)
        share = requests // m.CLIENTS
        output = self.bench("-c", m.CLIENTS, "-j", "1", "-t", share, "-n", "--random-seed=7", "-l",
                            f"--log-prefix={logs}/log", *words)
        done = re.search(r"actually processed: (\d+)/(\d+)", output)
        failed = re.search(r"failed transactions: (\d+)", output)
        if not done or done[1] != done[2] or not failed or failed[1] != "0":
            raise h.Failure(f"pgbench {what}: {output[-1500:]}")
        took = []
        for log in logs.iterdir():
            took += [int(line.split()[2]) / 1000 for line in log.read_text().splitlines()]
        h.shutil.rmtree(logs)
        took.sort()
        rate = re.search(r"^tps = ([\d.]+)", output, re.M)
        return (what, float(rate[1]), took[len(took) // 2], took[len(took) * 99 // 100])

    def state(self):
        """Includes values that only differ between runs: times, process and other numbers,
        randomness."""
        rows = self.ask(
            "select count(*), md5(string_agg(h::text, ',' order by mtime, aid, delta))"
            " from pgbench_history h",
            "select md5(string_agg(a::text, ',' order by aid)) from pgbench_accounts a",
            "select now(), pg_backend_pid(), pg_current_wal_insert_lsn(), txid_current(),"
            " gen_random_uuid(), random(), pg_postmaster_start_time(), clock_timestamp()",
            "select pid, backend_start, backend_type from pg_stat_activity order by 1")
        digest = hashlib.sha256(rows.encode()).hexdigest()[:16]
        return f"{rows.splitlines()[0].replace('|', ' transactions, MD5 ')}, all: SHA-256 {digest}"


KINDS = (Postgres,)

if __name__ == "__main__":
    h.run_scenario("server_postgresql", lambda scenario: m.prove(scenario, KINDS))
