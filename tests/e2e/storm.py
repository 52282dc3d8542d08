#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Storms of faults: the next fault comes as soon as status calls it survivable, and sometimes
earlier, while clients that know the right answers keep sending requests.

GOAL: one more fault, while the last one is being repaired, delays no client by more than a moment,
and status knows beforehand whether it will.
METHOD: a seed chooses kinds, victims and moments. The seed is printed; `--seed n` repeats them.
Three replicas each of redis, apache2, PostgreSQL with durability disk, and nginx before an outside
server. A poller runs `crane-ctl status` all the time.
CHECKS: no wrong or missing answer; three of three at the end, equal, without an alarm. --full: no
client waits longer than a second if status had called the fault survivable, and otherwise no longer
than two seconds after a majority returns; status never reports `serving` to a client that has
waited for 300 ms. `make test` prints these waits without judging them.
"""
import contextlib
import dataclasses
import hashlib
import json
import pathlib
import random
import sys
import time

import _harness as h
import _outside as o
import _storm_clients as c
import _storm_verdict as v
from _storm_faults import Faults, Majority, Poller, kinds, troubles
from dav_race import dav_configuration
from recovers import all_back
from server_postgresql import directory
from server_tls import make_certificate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "eval/measure"))
from session import machine  # noqa: E402

# The part that `make test` runs. Extend it for each further rule that the product keeps.
CORE_SERVERS = ("redis", "apache2")
CORE_KINDS = ("kill node", "kill server", "kill both", "stop node 0.2 s", "transfer", "checkpoint")
CORE_FAULTS = 12         # for each server
CORE_EARLY = 0.0
MINUTES = 30             # for each server, --full
EARLY = 0.2              # the share of faults that do not wait for status
EARLY_SECONDS = 1.0      # after the previous fault, at most
NOTICED_SECONDS = 0.3    # earlier status output does not know the last fault
LOST_WITHIN = 0.5        # a majority that a fault removed is gone by then
KEPT_SECONDS = 0.1       # shorter waits are not kept in the raw data
PATIENCE = 180           # until status calls the next fault survivable, and clients are answered
DOWNLOAD_MB = 32
TOLD = 4                 # of each kind of trouble, as text


# --- servers ------------------------------------------------------------------------------------

class Redis:
    name, options, programs = "redis", (), ("redis-server", "redis-benchmark")

    def __init__(self, scenario, _work, _seed):
        self.port = h.free_port()
        self.program = h.redis_program(self.port)
        self.load = ["redis-benchmark", "-p", str(self.port), "-c", "8", "-n", "100000000", "-r",
                     "50000", "-d", "256", "-t", "set", "-q"]

    def clients(self):
        return [*(c.Counting(self.port, n) for n in range(2)), c.Pipelining(self.port),
                c.Fresh(self.port), c.Subscriber(self.port), c.BlockedPop(self.port)]


def large_file(pages):
    """Creates it; returns its digest."""
    line, digest = bytes(i * 7 % 251 for i in range(1 << 20)), hashlib.sha256()
    with open(pages / "large.bin", "wb") as out:
        for i in range(DOWNLOAD_MB):
            out.write(line[i:] + line[:i])
            digest.update(line[i:] + line[:i])
    return digest.hexdigest()


class Apache:
    name, programs = "apache2", ("apache2", "ab", "openssl")

    def __init__(self, scenario, work, seed):
        self.port, self.tls, self.seed = h.free_port(), h.free_port(), seed
        key, self.certificate = make_certificate(work)
        conf = dav_configuration(work, 80)
        conf.write_text(conf.read_text() + (
            "LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\nMaxKeepAliveRequests 0\n"
            "Listen 443\n<VirtualHost *:443>\nSSLEngine on\n"
            f"SSLCertificateFile {self.certificate}\nSSLCertificateKeyFile {key}\n"
            "</VirtualHost>\n"))
        self.pages = work / "www"
        self.digest = large_file(self.pages)
        self.program = ["/usr/sbin/apache2", "-f", str(conf), "-DFOREGROUND"]
        self.options = ("--publish", f"{self.port}:80", "--publish", f"{self.tls}:443")
        self.load = ["ab", "-q", "-r", "-k", "-s", "120", "-c", "8", "-n", "100000000",
                     f"http://127.0.0.1:{self.port}/1k.html"]

    def clients(self):
        body = (self.pages / "1k.html").read_bytes()
        return [*(c.Kept(self.port, n, "/1k.html", body) for n in range(3)),
                c.Download(self.tls, self.certificate, "/large.bin", self.digest),
                *(c.Uploading(self.port, n, self.seed + n) for n in range(2))]


class Postgres:
    name, options = "postgresql", ("--durability", "disk")
    programs = ("psql", "setpriv")

    def __init__(self, scenario, work, _seed):
        self.server = c.Postgres(work, h.free_port())
        self.port, self.program = self.server.port, self.server.program()
        self.load = [f"{directory()}/pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-U",
                     "postgres", "-n", "-c", "4", "-T", "3600", "postgres"]

    def clients(self):
        return [c.Transactions(self.server, n) for n in range(3)]


class Nginx:
    name, options, programs = "nginx", (), ("nginx", "ab")

    def __init__(self, scenario, work, _seed):
        self.outside, self.port = c.Backend(), h.free_port()
        self.program = o.nginx_before(f"127.0.0.1:{self.outside.port}", work, "storm",
                                      f"127.0.0.1:{self.port}",
                                      "keepalive_requests 100000000; keepalive_timeout 600s;")
        self.load = ["ab", "-q", "-r", "-k", "-s", "120", "-c", "8", "-n", "100000000",
                     f"http://127.0.0.1:{self.port}/load"]

    def clients(self):
        return [c.Proxied(self.port, n) for n in range(4)]

    def verify(self):
        """The outside server got each request once, complete."""
        heard = self.outside.take_heard()
        heard.pop("/load", None)
        twice = [path for path, times in heard.items() if times != 1]
        return ([f"received twice: {twice[:5]}"] if twice else []) + \
            [f"cut off: {broken[:80]!r}" for broken in self.outside.broken[:3]]


SERVERS = {kind.name: kind for kind in (Redis, Apache, Postgres, Nginx)}


# --- a storm ------------------------------------------------------------------------------------

class Storm:
    """The storm of one server."""

    def __init__(self, scenario, group, server, random_, early):
        self.scenario, self.group, self.server = scenario, group, server
        self.random, self.early = random_, early
        self.faults, self.done = Faults(group, random_, server.load), []
        self.crowd = c.Crowd(server.clients())
        self.poller, self.majority = Poller(group), Majority(group)
        self.began = time.monotonic()

    def since(self, moment):
        return moment - self.began

    def survivable(self, losses):
        """The status output that called this many losses survivable."""
        def says():
            last = self.poller.last(self.done[-1].at + NOTICED_SECONDS if self.done else 0)
            return last if last and last.serving and last.may_lose >= max(losses, 1) else None
        try:
            said = h.wait_until(says, PATIENCE, f"status reports that {self.group.name} can lose a "
                                                "replica again")
        except h.Failure as failure:
            raise h.Failure(f"{failure}; status: {self.last_words()}") from None
        if self.done and self.done[-1].whole is None:
            self.done[-1].whole = said.end
        return said

    def last_words(self):
        last = self.poller.last()
        return last.text if last else "no status output"

    def one(self, kind):
        """The next fault, of this kind."""
        early, pause = self.random.random() < self.early, self.random.uniform(0, EARLY_SECONDS)
        if early and self.done:
            time.sleep(pause)   # no condition: the moment is the fault
            last = self.poller.last(self.done[-1].at + NOTICED_SECONDS)
        else:
            last = self.survivable(1)  # two at once wait for status, too, and are not survivable
        good = bool(last and last.serving and last.may_lose >= kind.losses)
        fault = v.Fault(kind.name, "", time.monotonic(), good, last.text if last else "unknown")
        self.done.append(fault)
        fault.what = kind.strike()
        if state := self.group.state():
            self.group.remember(state)
        print(f"  {len(self.done):4} {self.since(fault.at):7.1f} s  {kind.name}: {fault.what}"
              f"{'' if good else '; status had not called it survivable'} [{fault.text}]",
              flush=True)

    def blow(self, names, count, seconds):
        """Faults of these kinds until there are this many, or the time is over."""
        known = kinds(self.faults)
        self.crowd.start()
        self.crowd.progress(60, f"{self.server.name}: every client is served")
        self.poller.start()
        self.majority.start()
        while len(self.done) < count and self.since(time.monotonic()) < seconds:
            self.one(known[self.random.choice(names)])

    def calm_down(self):
        """Waits until all is as before the first fault."""
        self.faults.end()
        self.survivable(1)
        self.crowd.progress(PATIENCE, f"{self.server.name}: every client is answered again")
        all_back(self.group, PATIENCE)

    def end(self):
        """Afterwards the poller's and the clients' notes are complete."""
        end = time.monotonic()
        self.faults.end()
        for one in (self.poller, self.majority):
            if one.is_alive():
                one.end()
        waits = self.crowd.waits()
        for fault, following in zip(self.done, [*self.done[1:], None]):
            fault.majority = self.majority.back(
                fault.at, min(fault.at + LOST_WITHIN, following.at if following else end))
        return waits, end


def told(rows):
    return "; ".join(str(row) for row in rows[:TOLD]) + (f" and {len(rows) - TOLD} more"
                                                         if len(rows) > TOLD else "")


def in_words(storm, fault):
    limit = "no majority was seen again" if fault.allowed is None else f"{fault.allowed:.1f} s"
    return (f"{storm.since(fault.at):.1f} s, {fault.kind} ({fault.what}): {fault.client} waited "
            f"{fault.wait:.2f} s, allowed {limit}; status before: {fault.text}")


def tell(scenario, storm, waits, end):
    """Prints and, with --full, judges waits and status; returns the storm's notes for the raw
    data."""
    name = storm.server.name
    slow = v.judge(storm.done, waits, end)
    lies = v.contradictions(storm.poller.said, waits, end)
    for row in v.table(storm.done):
        print("  " + row)
    for fault in slow[:TOLD]:
        print("  slow: " + in_words(storm, fault))
    for wait, said in lies[:TOLD]:
        print(f"  status reported `{said.text}` {said.begin - wait.asked:.2f} s into a wait of "
              f"{wait.until(end) - wait.asked:.2f} s of {wait.client}, at "
              f"{storm.since(wait.asked):.1f} s")
    answers = sum(client.done for client in storm.crowd.clients)
    scenario.say(f"{name}: {len(storm.done)} faults, {answers} answers, longest wait "
                 f"{max((f.wait for f in storm.done), default=0):.2f} s, "
                 f"{len(slow)} longer than allowed; {len(storm.poller.said)} looks at status, "
                 f"{len(lies)} contradictions")
    if scenario.full:
        scenario.check(not slow, f"{name}: no client waited longer than the fault allows",
                       told([in_words(storm, fault) for fault in slow]))
        scenario.check(not lies, f"{name}: status never called a group serving while its client "
                       "waited", f"{len(lies)} times")
    return {"faults": [dataclasses.asdict(f) | {
                "at": storm.since(f.at),
                "whole": None if f.whole is None else f.whole - f.at,
                "majority": None if f.majority is None else f.majority - f.at}
            for f in storm.done],
            "answers": answers, "looks": len(storm.poller.said), "contradictions": len(lies),
            "waits": [[w.client, storm.since(w.asked), w.until(end) - w.asked] for w in waits
                      if w.until(end) - w.asked > KEPT_SECONDS]}


def equal(scenario, storm):
    """Clients have stopped: compares what they and the replicas know at the end."""
    group, name = storm.group, storm.server.name
    problems = storm.crowd.verify() + getattr(storm.server, "verify", list)()
    scenario.check(not problems, f"{name}: the server has all acknowledged data", told(problems))
    statuses = group.settle(60)
    alarms = [s["verified"]["alarm"] for s in statuses.values() if s["verified"]["alarm"]]
    scenario.check(len(statuses) == 3 and not alarms, f"{name}: three of three, equal, no alarm",
                   f"{sorted(statuses)}: {alarms}")
    found = troubles(group)
    scenario.check(not found, f"{name}: no replica ever differed", told(found))


def one_server(scenario, kind, seed, names, count, seconds, early):
    h.need(*kind.programs)
    work = scenario.work / kind.name
    work.mkdir()
    work.chmod(0o755)
    # A text, so that servers with one seed differ, each the same in every run.
    server = kind(scenario, work, seed)
    with h.Group(scenario, server.program, port=server.port, options=server.options) as group:
        storm = Storm(scenario, group, server, random.Random(f"{seed} {kind.name}"), early)
        broke, ended = "", None
        try:
            storm.blow(names, count, seconds)
            storm.calm_down()
        except h.Failure as failure:
            broke = str(failure)
            group.explain()
        except (SystemExit, KeyboardInterrupt) as told_to:   # what was seen so far is printed
            broke, ended = "interrupted", told_to
        waits, end = storm.end()
        storm.crowd.stop(5 if broke else 60)
        scenario.check(not broke, f"{kind.name}: three of three after {len(storm.done)} faults, "
                       "clients served", broke)
        wrong = [f"at {storm.since(at):.1f} s {what}" for at, what in storm.crowd.wrong()]
        scenario.check(not wrong, f"{kind.name}: no wrong or missing answer",
                       f"{len(wrong)}: {told(wrong)}")
        notes = tell(scenario, storm, waits, end)
        if ended:
            raise ended
        if broke:
            group.kill_all()
        else:
            equal(scenario, storm)
    return {"server": kind.name, "seed": seed, "broke": broke, "wrong": wrong, **notes}


def chosen(options, name, core, every, full):
    """The names that an option lists, separated by commas; otherwise those of this test size."""
    given = getattr(options, name)
    names = given.split(",") if given else [*(every if full else core)]
    unknown = [n for n in names if n not in every]
    if unknown:
        raise h.Failure(f"--{name}: {unknown[0]} is not among {', '.join(every)}")
    return names


def body(scenario):
    """Storms of faults, chosen by a seed."""
    options, full = scenario.options, scenario.full
    seed = options.seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {seed}", flush=True)
    servers = chosen(options, "servers", CORE_SERVERS, SERVERS, full)
    names = chosen(options, "kinds", CORE_KINDS, kinds(Faults(None, None, None)), full)
    count = options.faults or (1 << 30 if full else CORE_FAULTS)
    seconds = options.minutes * 60 if full else 1 << 30
    early = (EARLY if full else CORE_EARLY) if options.early is None else options.early
    path = scenario.out / "bench" / "storm.json"
    path.parent.mkdir(exist_ok=True)
    notes = {"machine": machine(), "seed": seed, "early": early, "kinds": names, "servers": []}
    for name in servers:
        try:
            notes["servers"].append(one_server(scenario, SERVERS[name], seed, names, count,
                                               seconds, early))
        except h.CannotRun as cause:
            print(f"SKIPPED: e2e/storm: {name}: {cause}")
        path.write_text(json.dumps(notes, indent=1) + "\n")
    print(f"raw: {path}; repeat by --seed {seed}")


if __name__ == "__main__":
    h.run_scenario(
        "storm", body, seed={"type": int, "default": 0, "help": "from an earlier run"},
        servers={"default": "", "help": f"some of {','.join(SERVERS)}"},
        kinds={"default": "", "help": "of faults, separated by commas"},
        faults={"type": int, "default": 0, "help": "for each server"},
        minutes={"type": float, "default": MINUTES, "help": "for each server, with --full"},
        early={"type": float, "default": None,
               "help": "the share of faults that do not wait for status"})
