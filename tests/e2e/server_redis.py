#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redis-server of the matrix."""
import re
import subprocess

import _harness as h
import _matrix as m


class Redis(m.Server):
    name = "redis-server"
    version_of = "redis-server"
    programs = ("redis-server", "redis-benchmark")
    requests = (2000, 40000)
    measured = 100000

    def program(self):
        return h.redis_program(self.port)

    def ready(self):
        return h.redis_answers(self.port)

    def load(self, requests):
        done = subprocess.run(["redis-benchmark", "-p", str(self.port), "-n", str(requests), "-c",
                               str(m.CLIENTS), "-t", "set,get,lpush,zadd", "-r", "1000", "--csv"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=280)
        rows = re.findall(r'^"(\w+)","([\d.]+)","[\d.]+","[\d.]+","([\d.]+)","[\d.]+","([\d.]+)"',
                          done.stdout, re.M)
        if done.returncode != 0 or len(rows) != 4:
            raise h.Failure(f"redis-benchmark ended with status {done.returncode}: {done.stdout}")
        return [(what, *map(float, numbers)) for what, *numbers in rows]

    def state(self):
        client = h.Redis(self.port, 20)
        text = f"{client('DBSIZE')} keys, DEBUG DIGEST {client('DEBUG', 'DIGEST')}"
        client.close()
        return text


class RedisThreads(Redis):
    """Its main thread waits for the others in loops without calls: tests the stall rule."""
    name = "redis-server, io-threads"
    requests = (400, 4000)
    measured = 4000

    def program(self):
        return [*super().program(), "--io-threads", "4", "--io-threads-do-reads", "yes"]


class RedisDurable(Redis):
    """Every write is synced to disk before it is answered; no other thread waits for fdatasync."""
    name = "redis-server, appendfsync always"
    requests = (400, 4000)
    measured = 30000
    options = ("--detach", "fsync")

    def prepare(self):
        (self.work / "data").mkdir()

    def program(self):
        return [*super().program(), "--appendonly", "yes", "--appendfsync", "always",
                "--dir", str(self.work / "data")]


KINDS = (Redis, RedisThreads, RedisDurable)

if __name__ == "__main__":
    h.run_scenario("server_redis", lambda scenario: m.prove(scenario, KINDS))
