#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redis-benchmark against three replicas; then DEBUG DIGEST through the group is the same on all:
every replica answers it, and the recorded answers are compared."""
import re
import subprocess

import _harness as h

TESTS = "set,get,incr,lpush,lpop,sadd,zadd,mset"


def body(scenario):
    h.need("redis-server", "redis-benchmark")
    count = 100000 if scenario.full else 5000
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port, record=True) as group:
        done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", str(count), "-c", "16",
                               "-t", TESTS, "--csv", "-r", "1000"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=280)
        rows = re.findall(r'^"([^"]+)","([\d.]+)"', done.stdout, re.M)
        for name, rate in rows:
            scenario.say(f"{name:<40} {float(rate):9.0f} requests/s")
        scenario.check(done.returncode == 0 and len(rows) >= 8, f"redis-benchmark -n {count} -c 16",
                       done.stdout)
        client = h.Redis(port, 20)
        digest, keys = client("DEBUG", "DIGEST"), client("DBSIZE")
        client.close()
        scenario.say(f"DEBUG DIGEST {digest} over {keys} keys")
        scenario.check(re.fullmatch(r"[0-9a-f]{40}", digest) and digest != "0" * 40 and keys > 0,
                       "the group answers DEBUG DIGEST", digest)
        statuses = group.settle()
        group.check_calm()
        scenario.check(len(statuses) == 3, "three replicas live", repr(group.brief()))
        group.stop()
        text = scenario.check_equal(group, what="all replicas answered every request and DEBUG "
                                             "DIGEST the same")
        scenario.say(f"crane-diff: {text}")
        text = scenario.check_schedule(group)
        scenario.say(f"crane-diff --schedule: {text}")
        holders = [n for n in range(3) if digest.encode() in
                   (group.record / f"replica-{n}.out").read_bytes()]
        scenario.check(holders == [0, 1, 2], "each recording holds the digest", repr(holders))


h.run_scenario("redis", body)
