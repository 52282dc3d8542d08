#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-diff from a user's view: statuses, texts, JSON. The recordings are written here from the
format's description alone, which tests the description too."""
import json
import struct
import subprocess

import _harness as h


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(kind, number, body):
    rest = struct.pack("<IQQ", len(body), kind, number) + body
    return struct.pack("<I", crc32c(rest)) + rest


def recording(replica, answers, end=1):
    start = b"CRANEOUT" + struct.pack("<III", 1, replica, 0)
    data = start + struct.pack("<III", crc32c(start), end, 0)
    for conn, answer in answers.items():
        data += record(1, conn, struct.pack("<H", 80) + b"10.0.0.9:1234")
        data += record(2, conn, answer) + record(3, conn, b"closed")
    return data


def schedule(replica, points, rest=None, end=1):
    start = b"CRANESCH" + struct.pack("<III", 1, replica, 0)
    data = start + struct.pack("<III", crc32c(start), end, 0)
    data += record(1, points[0][0], b"".join(struct.pack("<QQQ", *p) for p in points))
    return data + (record(2, rest[0], struct.pack("<QQQ", *rest)) if rest else b"")


def schedules(scenario, diff):
    """crane-diff --schedule: equal, the first differing log index, and no verdict."""
    points = [(n, 100 * n, 0xABC000 + n) for n in range(2, 50)]
    rest = (49, 4999, 0x777)
    home = scenario.work / "schedules"
    home.mkdir()
    paths = [home / f"replica-{n}.schedule" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_bytes(schedule(n, points, rest))
    status, text = diff("--schedule", home)
    scenario.check(status == 0 and "schedule equal: 3 recordings, 48 log indexes compared, 2 to 49 "
                   "and at rest after it" in text, "equal schedules: exit 0", text)
    other = points[:30] + [(n, c + 7, h ^ 1) for n, c, h in points[30:]]
    paths[1].write_bytes(schedule(1, other, rest))
    status, text = diff("--schedule", home)
    scenario.check(status == 1 and "first difference at log index 32\n" in text
                   and "replica-1.schedule: clock 3207, hash 0000000000abc021" in text
                   and "replica-2.schedule: clock 3200, hash 0000000000abc020" in text
                   and "equal before: log index 31, clock 3100" in text,
                   "another schedule: exit 1, log index and both sides' clock and hash", text)
    status, text = diff("--schedule", "-o", "json", home)
    found = json.loads(text)
    scenario.check(status == 1 and found["verdict"] == "different"
                   and found["difference"]["sides"][1]["clock"] == 3207, "the same as JSON", text)
    names = record(4, 0, b"none\0pthread_mutex_lock\0read\0")
    maps = record(5, 0, b"400000-402000 r-xp 00001000 fd:00 12  /usr/sbin/server\n")

    def turns(late):
        return record(3, 3001, b"".join(struct.pack("<QQQIHH", 0, 0xbeef, 0x400010,
                                                    2 if n == late else 1, 4, 1)
                                        for n in range(3001, 3300)))
    for n, path in enumerate(paths):
        path.write_bytes(schedule(n, other if n == 1 else points) + names + maps
                         + turns(3150 if n == 1 else 0))
    status, text = diff("--schedule", home)
    scenario.check(status == 1 and "first different turn: 3150\n" in text
                   and "replica-0.schedule: thread 4 of process 1: pthread_mutex_lock = 0, "
                   "object beef, called from /usr/sbin/server+0x1010" in text
                   and "replica-1.schedule: thread 4 of process 1: read = 0" in text
                   and "turn 3149, equal: thread 4" in text,
                   "with turns: the first different one, thread, operation, object, caller", text)
    status, text = diff("--schedule", "-o", "json", home)
    scenario.check(json.loads(text)["turn"]["number"] == 3150, "the same as JSON", text)

    paths[1].write_bytes(schedule(1, points[:30], end=0))
    status, text = diff("--schedule", home)
    scenario.check(status == 2 and "schedule unknown: " in text and "ends early" in text
                   and "equal:" not in text,
                   "a schedule that ends early: exit 2, unknown, not equal",
                   text)
    status, text = diff("--schedule", "--prefix", home)
    scenario.check(status == 0 and "30 log indexes" in text, "with --prefix: exit 0", text)
    status, text = diff("--schedule", scenario.work)
    scenario.check(status == 2 and "replica-*.schedule" in text, "no schedule there: exit 2", text)


def body(scenario):
    def diff(*words):
        done = subprocess.run([str(scenario.out / "crane-diff"), *map(str, words)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        return done.returncode, done.stdout
    page = b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 03:00:00 GMT\r\n\r\nhello"
    paths = [scenario.work / f"replica-{n}.out" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_bytes(recording(n, {5: page, 9: b"+OK\r\n" * 10000}))
    status, text = diff(scenario.work)
    scenario.check(status == 0 and text.startswith("equal: 3 recordings, 2 connections"),
                   "equal recordings: exit 0", text)

    paths[2].write_bytes(recording(2, {5: page.replace(b"03:00:00", b"03:00:01"),
                                       9: b"+OK\r\n" * 10000}))
    status, text = diff(scenario.work)
    at = page.index(b"03:00:00") + 7
    scenario.check(status == 1 and f"connection 5 (port 80, client 10.0.0.9:1234): first "
                   "difference "
                   f"at byte {at}" in text and ">30" in text and ">31" in text,
                   "another second in a Date header: exit 1, connection, offset and both bytes",
                   text)
    status, text = diff("-o", "json", *paths)
    found = json.loads(text)
    first = found["differences"][0]
    scenario.check(status == 1 and not found["equal"] and first["offset"] == at
                   and first["connection"] == 5 and "03:00:01" in first["right_text"]
                   and bytes.fromhex(first["left_hex"]).endswith(b"hello"), "the same as JSON",
                   text)

    whole = recording(1, {5: page, 9: b"+OK\r\n" * 10000}, end=0)
    paths[2].unlink()
    paths[1].write_bytes(whole[:-2000])
    status, text = diff(scenario.work)
    scenario.check(status == 1 and "ends early" in text and "--prefix" in text,
                   "a killed replica: exit 1, and the option that helps is named", text)
    status, text = diff("--prefix", scenario.work)
    scenario.check(status == 0 and "cut short" in text, "with --prefix: exit 0", text)

    paths[1].write_bytes(whole[:200] + b"?" + whole[201:])
    for words, expected, cause in (([scenario.work], 2, "damaged"),
                                   ([scenario.work / "absent", paths[0]], 2, "No such"),
                                   ([paths[0]], 2, "one recording"),
                                   ([scenario.work / ".."], 2, "replica-*.out"),
                                   ([], 100, "recordings is required"),
                                   (["--nonsense", *paths], 100, "--nonsense")):
        status, text = diff(*words)
        scenario.check(status == expected and cause in text and text.startswith("crane-diff: "),
                       f"cannot read: exit {expected}, says {cause}", f"exit {status}: {text}")
    schedules(scenario, diff)


h.run_scenario("crane_diff", body)
