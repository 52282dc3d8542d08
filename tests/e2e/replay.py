#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-replay: histories of redis and apache2 are replayed offline, equal and without waiting. A
changed recording is detected and the change named. A server that uses random numbers differs at the
turn at which it does so.

Quick: short loads; --full: a minute of each server.
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess

import _harness as h

EQUAL, DIFFERENT, ENDS_EARLY, BAD, NOT_HERE, FAILED, USAGE = 0, 1, 2, 3, 4, 5, 100
DATA = 4   # EntryType::kData


def replay(scenario, record, *options):
    """Returns (status, its JSON output or None, text)"""
    done = subprocess.run([str(scenario.out / "crane-replay"), str(record), "-o", "json", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, errors="replace", check=False)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else None
    return done.returncode, answer, (done.stdout + done.stderr).strip()


def check_equal(scenario, what, record, *options):
    status, said, text = replay(scenario, record, *options)
    if scenario.check(status == EQUAL and said["compared"]["bytes"] > 0
                      and said["compared"]["indexes"] > 0, f"{what}: equal", f"{status}: {text}"):
        scenario.say(f"{what}: entries {said['first']} to {said['last']}, {said['compared']}, "
                     f"{said['recorded_s']:.1f} s of the group's time in {said['took_s']:.1f} s")
    return said or {}


# --- files of records ---------------------------------------------------------------------------

def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def records(data):
    """Yields (place, kind, number, body) of each."""
    at = 32
    while at + 24 <= len(data):
        _, size, kind, number = struct.unpack_from("<IIQQ", data, at)
        yield at, kind, number, data[at + 24:at + 24 + size]
        at += 24 + size


def sealed(data, at):
    """Fixes the checksums after a change of the record at `at`, as if it had been recorded like
    that."""
    size = struct.unpack_from("<I", data, at + 4)[0]
    struct.pack_into("<I", data, at, crc32c(data[at + 4:at + 24 + size]))


class Changed:
    """A copy of replica 0's recording with changes, which exists while the with statement runs."""

    def __init__(self, scenario, record, file="replica-0.history"):
        self.place = scenario.work / f"changed-{scenario.next_number()}"
        self.place.mkdir()
        for path in record.glob("replica-0.*"):
            shutil.copy(path, self.place)
        self.path = self.place / file
        self.data = bytearray(self.path.read_bytes())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place)

    def write(self):
        self.path.write_bytes(self.data)


def check_refusals(scenario, record):
    """Recordings that cannot be replayed."""
    last = replay(scenario, record)[1]["last"]
    for options, wanted, words in (
            (("--replica", "7"), BAD, "No such file"),
            (("--to", str(last + 1)), ENDS_EARLY, "ends at"),
            (("--from", "nowhere"), BAD, "not a checkpoint"),
            (("--to", "x"), USAGE, "command line")):
        status, _, text = replay(scenario, record, *options)
        scenario.check(status == wanted and words in text,
                       f"{' '.join(options)} is refused with {wanted}", f"{status}: {text}")
    with Changed(scenario, record) as c:
        at, _, number, _ = list(records(c.data))[-20]
        c.data[at + 40] ^= 1
        c.write()
        status, _, text = replay(scenario, c.place)
        scenario.check(status == BAD and f"damaged after entry {number - 1}" in text,
                       f"a flipped byte of entry {number} is damage behind {number - 1}",
                       f"{status}: {text}")
    with Changed(scenario, record) as c:
        at, _, number, _ = list(records(c.data))[-20]
        del c.data[at + 30:]
        struct.pack_into("<I", c.data, 24, 0)   # its writer was killed
        c.write()
        status, result, text = replay(scenario, c.place)
        scenario.check(status == ENDS_EARLY and result["last"] == number - 1,
                       "a history that was cut off is equal up to its end", f"{status}: {text}")
        status, _, text = replay(scenario, c.place, "--to", str(number - 1))
        scenario.check(status == EQUAL, "it is equal up to one of its entries", f"{status}: {text}")
    with Changed(scenario, record) as c:
        at, _, number, _ = list(records(c.data))[-20]
        size = struct.unpack_from("<I", c.data, at + 4)[0]
        del c.data[at:at + 24 + size]
        c.write()
        status, _, text = replay(scenario, c.place)
        scenario.check(status == BAD and f"entry {number - 1} is followed by" in text,
                       "a history with a gap is refused", f"{status}: {text}")
    with Changed(scenario, record) as c:
        shutil.copy(record / "replica-0.out", c.path)
        status, _, text = replay(scenario, c.place)
        scenario.check(status == BAD and "not a recorded history" in text,
                       "a file that is not a history is refused", f"{status}: {text}")
    with Changed(scenario, record) as c:
        at = 32
        size = struct.unpack_from("<I", c.data, at + 4)[0]
        body = bytes(c.data[at + 24:at + 24 + size])
        digest = re.search(rb'"library_digest":\d*?(\d),', body)
        c.data[at + 24 + digest.start(1)] = ord("1") if digest[1] != b"1" else ord("2")
        sealed(c.data, at)
        c.write()
        status, _, text = replay(scenario, c.place)
        scenario.check(status == NOT_HERE and "another build of libcrane.so" in text,
                       "a recording by another build is refused", f"{status}: {text}")


def check_changes(scenario, record, old, new):
    """A changed input and a changed output: both are named."""
    with Changed(scenario, record) as c:
        found = [(at, number, body.index(old)) for at, kind, number, body in records(c.data)
                 if kind == 2 and body[28] == DATA and old in body]
        at, number, offset = found[0]
        c.data[at + 24 + offset:at + 24 + offset + len(old)] = new
        sealed(c.data, at)
        c.write()
        status, result, text = replay(scenario, c.place)
        index = result["difference"]["index"] if result and result["difference"] else 0
        scenario.check(status == DIFFERENT and number <= index <= number + 2,
                       f"a changed input, entry {number}, causes a difference after it",
                       f"{status}: {text}")
    with Changed(scenario, record, "replica-0.out") as c:
        at, _, conn, body = [r for r in records(c.data) if r[1] == 2 and len(r[3]) > 4][-1]
        c.data[at + 24 + 3] ^= 1
        sealed(c.data, at)
        c.write()
        status, result, text = replay(scenario, c.place)
        scenario.check(status == DIFFERENT and f"connection {conn} " in result["difference"]["text"]
                       and "byte" in result["difference"]["text"],
                       f"a changed output of connection {conn} is named", f"{status}: {text}")


def check_bisect(scenario, record, old, new):
    """A planted first different turn: the read of an input of another length."""
    place = scenario.work / "other"
    with Changed(scenario, record) as c:
        for at, kind, number, body in records(c.data):
            if kind == 2 and body[28] == DATA and old in body:
                break
        body = bytes(body).replace(old, new)
        c.data[at:at + 24 + len(body) + len(old) - len(new)] = \
            bytes(c.data[at:at + 24]) + body
        struct.pack_into("<I", c.data, at + 4, len(body))
        sealed(c.data, at)
        c.write()
        replay(scenario, c.place, "--record", str(place), "--to", str(number + 5))
    both = [str(record / "replica-0.schedule"), str(place / "replica-0.schedule")]
    done = subprocess.run([str(scenario.out / "crane-replay"), "bisect", *both],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                          check=False)
    turns = [re.search(rf"{re.escape(path)}: thread .*?: (\w+) = (\d+)", done.stdout)
             for path in both]
    scenario.check(done.returncode == DIFFERENT and "first different turn: " in done.stdout
                   and all(turns) and turns[0][1] == turns[1][1] == "read"
                   and int(turns[1][2]) - int(turns[0][2]) == len(new) - len(old),
                   "bisect names the read of the planted input, on both sides",
                   f"{done.returncode}: {done.stdout}")
    same = subprocess.run([str(scenario.out / "crane-replay"), "bisect", both[0],
                           str(record / "replica-1.schedule")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    scenario.check(same.returncode == EQUAL and "schedule equal" in same.stdout,
                   "bisect of two equal replicas reports that they are equal", same.stdout)


COMPUTE = "local x = 0; for i = 1, 20000000 do x = x + i % 7 end; return x"
COMPUTATIONS = 20   # until one is sliced, for a busy machine


# --- servers ------------------------------------------------------------------------------------

def take_checkpoint(scenario, group, port):
    """Takes a checkpoint, recorded with the group, and adds entries after it; returns its name, or
    None if there is no CRIU."""
    client = h.Redis(port, 60)
    client("INCR", "before")
    done = subprocess.run([str(scenario.out / "crane-ctl"), "--dir", str(group.home), "checkpoint",
                           "now", group.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=200, check=False)
    for _ in range(20):
        client("INCR", "behind")
    client.close()
    group.settle()
    if done.returncode != 0:
        scenario.say(f"no checkpoint here: {done.stdout.strip()}")
        return None
    return next((group.record / "checkpoints").glob("0*")).name


def redis(scenario):
    port, idle = h.free_port(), 20 if scenario.full else 4
    with h.Group(scenario, h.redis_program(port), port=port, record=True) as group:
        subprocess.run(["redis-benchmark", "-p", str(port), "-n",
                        "60000" if scenario.full else "3000",
                        "-c", "16", "-t", "set,get,incr,lpush,zadd", "-r", "1000", "-q"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=280,
                       check=True)
        client = h.Redis(port, 60)
        # The first shows where the next ones can be sliced, as soon as the group has agreed on a
        # point. All replays below run through the slices.
        for _ in range(COMPUTATIONS):
            client("EVAL", COMPUTE, "0")
            sliced = min(s["slices"] for s in group.statuses().values()) > 0
            if sliced:
                break
        scenario.check(sliced, "redis: a script was sliced on all replicas")
        client("SET", "planted", "original")
        client("GET", "planted")
        client("BLPOP", "nothing", str(idle))   # no client pushes: the group is idle
        client("GET", "planted")
        client.close()
        group.settle()
        group.check_calm()
        checkpoint = take_checkpoint(scenario, group, port)
        group.stop()
    said = {}
    for number in range(3):
        said = check_equal(scenario, f"redis, replica {number}", group.record, "--replica",
                           str(number))
    scenario.check(0 < said.get("took_s", 0) < said["recorded_s"],
                   f"{idle} s without a request are skipped", repr(said))
    scenario.check(said["at_rest"] and said["compared"]["digests"] > 0,
                   "the end and the digests of the log are compared, too", repr(said))
    half = said["last"] // 2
    part = check_equal(scenario, f"redis up to entry {half}", group.record, "--to", str(half))
    scenario.check(part.get("last") == half, f"nothing after entry {half} is run", repr(part))
    if checkpoint:
        part = check_equal(scenario, f"redis from the checkpoint {checkpoint}", group.record,
                           "--from", checkpoint, "--replica", "0")
        scenario.check(part.get("first", 0) > 1 and part.get("at_rest"),
                       "no entry before the checkpoint is run", repr(part))
    check_refusals(scenario, group.record)
    check_bisect(scenario, group.record, b"$8\r\noriginal", b"$10\r\nmodified!!")
    check_changes(scenario, group.record, b"original", b"modified")


def apache(scenario):
    h.need("apache2", "ab")
    port = h.free_port()
    conf = h.apache_configuration(scenario.work, port)
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port, record=True) as group:
        for keep_alive in (False, True):
            requests = 20000 if scenario.full else 1000
            result = h.ab(f"http://127.0.0.1:{port}/1k.html", requests, 16, keep_alive)
            scenario.check(h.ab_good(result, requests), f"ab: {requests} requests, 0 failed",
                           result["text"])
            h.ab(f"http://127.0.0.1:{port}/1m.bin", 20, 4, keep_alive)
        group.settle()
        group.check_calm()
        group.stop()
    check_equal(scenario, "apache2", group.record)
    check_tools(scenario, group.record)


def check_tools(scenario, record):
    if shutil.which("gdb"):
        commands = scenario.work / "commands.gdb"
        commands.write_text("set pagination off\nset breakpoint pending on\nset confirm off\n"
                            "tbreak epoll_create1\ncontinue\nbt 4\ncontinue\n")
        status, result, text = replay(scenario, record, "--gdb-commands", str(commands))
        stopped = re.search(r"Temporary breakpoint 1\S*, (0x\w+ in )?epoll_create1 \(", text)
        scenario.check(stopped and "SIGINT" in text,
                       "gdb stops the server at the breakpoint, and at the history's end", text)
        scenario.check('"verdict": "equal"' in text and status == EQUAL,
                       "a debugged server does the same", f"{status}: {result}")
    else:
        scenario.say("no gdb on this machine")
    if shutil.which("perf"):
        data = scenario.work / "perf.data"
        status, _, text = replay(scenario, record, "--perf", str(data))
        scenario.check(status == EQUAL and data.stat().st_size > 0, "perf records a replay",
                       f"{status}: {text}")
    else:
        scenario.say("no perf on this machine")


# --- unrepeatable programs ----------------------------------------------------------------------

def ask(port, what):
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.sendall(what.encode() + b"\n")
        s.shutdown(socket.SHUT_WR)
        while s.recv(4096):
            pass


def check_nothing_left(scenario):
    left = [str(p) for place, name in (("/dev/shm", "crane..re*"), ("/run/crane", ".re*"))
            for p in h.pathlib.Path(place).glob(name)]
    scenario.check(not left, "nothing is left of the replays", repr(left))


def dice(scenario):
    """A server that branches on the processor's random numbers: the turn after the first number
    that differs is named."""
    if os.uname().machine != "x86_64":
        return
    home = scenario.work / "programs"
    home.mkdir()
    for name in ("racy_server", "locked_order"):
        shutil.copy(scenario.out / "e2e" / name, home)
    port = h.free_port()
    with h.Group(scenario, [str(home / "racy_server"), str(port), str(home)], port=port,
                 record=True,
                 replicas=1, options=["--trace", "--bind", f"{home}:/mnt"]) as group:
        ask(port, "locked_order")
        for _ in range(64):   # the probability that all are equal again is 2^-64
            ask(port, "dice")
        group.settle()
        group.stop()
    status, said, text = replay(scenario, group.record)
    check_nothing_left(scenario)   # now: the next replay may empty the same place
    scenario.check(status == DIFFERENT and said["turn"] is not None and said["turn"]["number"] > 0,
                   "the first different turn is named", f"{status}: {text}")
    turn = said["turn"] if said and said["turn"] else {"here": "", "recorded": ""}
    scenario.check({"sched_yield", "pthread_mutex_lock"} ==
                   {re.search(r": (\w+) =", turn[side])[1] for side in ("here", "recorded")
                    if re.search(r": (\w+) =", turn[side])}
                   and all("throw_dice" in turn[side] for side in ("here", "recorded")),
                   "it is the turn after the random number, on both sides", repr(turn))
    return group.record


def planted_race(scenario):
    if not shutil.which("valgrind"):
        scenario.say("no valgrind on this machine")
        return
    program = scenario.work / "planted_race"
    shutil.copy(scenario.out / "e2e" / "planted_race", program)
    port = h.free_port()
    with h.Group(scenario, [str(program), str(port)], port=port, record=True) as group:
        for _ in range(5):
            ask(port, "anything")
        group.settle()
        group.stop()
    for tool, names in (("helgrind", {"planted"}), ("memcheck", set())):
        log = scenario.work / f"{tool}.log"
        status, result, text = replay(scenario, group.record, "--valgrind", tool, "--log", str(log))
        found = set(re.findall(r'inside data symbol "(\w+)"', log.read_text()))
        scenario.check(found == names and bool(result and result["reports"]) == bool(names),
                       f"{tool} finds {', '.join(names) or 'nothing'}, and nothing else",
                       f"{found}: {text}\n{log.read_text()[-2000:]}")
        scenario.check(status == EQUAL, f"in {tool} the server does the same",
                       f"{status}: {text}")


def body(scenario):
    h.need("redis-server", "redis-benchmark")
    redis(scenario)
    apache(scenario)
    dice(scenario)
    planted_race(scenario)
    check_nothing_left(scenario)


h.run_scenario("replay", body)
