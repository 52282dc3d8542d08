#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The matching engine of the matrix (eval/engine): an application that answers in microseconds.

engine-load checks every answer, each trade at both ends, and finally the books.
"""
import re
import shutil
import subprocess

import _harness as h
import _matrix as m


class Engine(m.Server):
    name = "matching engine"
    requests = (4000, 80000)
    clients = m.CLIENTS
    more = ()   # of the command line

    def prepare(self):
        # Next to the data, because not every directory is visible in a container.
        shutil.copy(self.out / "engine", self.work)
        self.books = ""

    def program(self):
        return [str(self.work / "engine"), "--port", str(self.port), "--symbols", "8",
                *self.more]

    def load(self, requests):
        done = subprocess.run([str(self.out / "engine-load"), "--port", str(self.port),
                               "--clients", str(self.clients), "--requests", str(requests)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=280)
        rows = re.findall(r"^(\w+) (\d+) (\d+)/s p50 ([\d.]+) us p99 ([\d.]+) us$", done.stdout,
                          re.M)
        books = re.search(r"^trades (\d+)\nbooks (\w+)$", done.stdout, re.M)
        if done.returncode != 0 or len(rows) != 3 or not books or books[1] == "0":
            raise h.Failure(f"engine-load ended with status {done.returncode}: {done.stdout}")
        self.books = f"{books[1]} trades, books {books[2]}"
        self.counted = sum(int(count) for _, count, *_ in rows)
        return [(what, float(rate), float(p50) / 1000, float(p99) / 1000)
                for what, _, rate, p50, p99 in rows]

    def requests_made(self, requests, rows):
        return self.counted

    def state(self):
        return self.books


KINDS = (Engine,)

if __name__ == "__main__":
    h.run_scenario("server_engine", lambda scenario: m.prove(scenario, KINDS))
