#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redis over the verbs fabric, three replicas with an RDMA device each. redis-benchmark completes,
DEBUG DIGEST and outputs are equal, and the group survives the SIGKILL of the leader's node, with
different fences on the hosts, one with its log on huge pages and one without. An invalid fence is
refused, and so are required huge pages that are unavailable. Then the same with a group that
crane-run --hosts starts: its clients survive the SIGKILL, and Ctrl-C leaves nothing.

Needs three devices with the addresses CRANE_RDMA_ADDRESSES (default 10.9.0.1,10.9.0.2,10.9.0.3, as
tests/vm makes them); skipped elsewhere. In the virtual machine: tests/run.py --only vm.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import _harness as h
from _hosts import Hosts, RoamingCounter, served, under_way
from _network import Network, ip
from _remote import Remote, gone

TESTS = "set,get,incr,lpush"
# PR_SET_THP_DISABLE, then the command.
WITHOUT_HUGE_PAGES = "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); " \
                     "os.execvp(sys.argv[1], sys.argv[1:])"


def addresses():
    wanted = os.environ.get("CRANE_RDMA_ADDRESSES", "10.9.0.1,10.9.0.2,10.9.0.3").split(",")
    gids = " ".join(p.read_text().strip() for p in
                    pathlib.Path("/sys/class/infiniband").glob("*/ports/1/gids/1"))
    for address in wanted:
        a, b, c, d = map(int, address.split("."))
        if f"ffff:{a:02x}{b:02x}:{c:02x}{d:02x}" not in gids:
            raise h.CannotRun(f"no RDMA device has the address {address}")
    return wanted


def ask(group, *words):
    client = h.Redis(group.port, 20, group.addresses[group.leader()])
    try:
        return client(*words)
    finally:
        client.close()


def incr(group):
    return ask(group, "INCR", "counter")


def fences(scenario, group):
    """Hosts revoke permissions in different ways, have different pages, and report both."""
    answer = json.loads(group.ctl("status", "-o", "json")[1])["replicas"]
    got = [(r.get("device"), r.get("fence")) for r in answer]
    wanted = [("rxe1", "deregister"), ("rxe2", "deregister"), ("rxe3", "reset")]
    scenario.check(got == wanted, "crane-ctl status reports device and fence of each replica", got)
    pages = [r.get("log_pages") for r in answer]
    scenario.check(pages[1:] == ["2 MiB", "4 KiB"],
                   "crane-ctl status reports the pages of each log", pages)
    scenario.say(f"pages of the logs: {pages}")
    text = group.ctl("status")[1]
    scenario.check("FENCE" in text and "reset" in text, "its table shows the fences", text)
    scenario.check("PAGES" in text and "2 MiB" in text, "its table shows the pages", text)
    before, old = incr(group), group.leader()
    code, _, error = group.ctl("leader", "transfer")
    scenario.check(code == 0, "leadership moves across both fences", error)
    group.leader(others_than=[old])
    after = h.wait_until(lambda: attempt(group), 60, "the group serves again")
    scenario.check(after == before + 1, "the group continues", f"{before}, {after}")


def no_fence(scenario, group, number):
    """A node refuses access flags as the fence on a device that is not listed."""
    flags = {"fence": "flags", "fence_flags_devices": ["mlx5"]}
    group.start(number, config=group.write("flags.toml", group=flags))
    status, log = group.wait(number), group.said(number)[group.begins[number]:]
    scenario.say(next((line for line in log.splitlines() if "access flags" in line), log))
    scenario.check(status == 78 and "fence_flags_devices" in log and f"rxe{number + 1}" in log and
                   'use fence = "deregister"' in log,
                   "status 78: access flags as the fence, on a device that is not listed",
                   f"{status}: {log}")


def no_huge_pages(scenario, group, number):
    """A node that requires huge pages and cannot get them ends."""
    group.prefix = lambda i: ["python3", "-c", WITHOUT_HUGE_PAGES]
    group.start(number, config=group.write("pages.toml", group={"huge_pages": "require"}))
    status, log = group.wait(number), group.said(number)[group.begins[number]:]
    scenario.say(next((line for line in log.splitlines() if "huge pages" in line), log))
    scenario.check(status == 78 and "log memory is not on huge pages" in log and
                   'use huge_pages = "auto"' in log,
                   "status 78: huge pages are required and unavailable", f"{status}: {log}")


def run_benchmark(scenario, group, count):
    """redis-benchmark, repeated if the lead changed meanwhile."""
    for _ in range(3):
        leader = group.leader()
        view = group.status(leader)["view"]
        done = subprocess.run(["redis-benchmark", "-h", group.addresses[leader], "-p",
                               str(group.port), "-n", str(count), "-c", "4", "-t", TESTS, "--csv"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=240)
        if done.returncode == 0 or group.status(group.leader())["view"] == view:
            break
        scenario.say("the lead changed under redis-benchmark: running it again")
    return done


def benchmark(scenario, group, count):
    """redis-benchmark, then DEBUG DIGEST, whose answer is among the outputs compared."""
    done = run_benchmark(scenario, group, count)
    rows = re.findall(r'^"([^"]+)","([\d.]+)"', done.stdout, re.M)
    for name, rate in rows:
        scenario.say(f"{name:<40} {float(rate):9.0f} requests/s")
    scenario.check(done.returncode == 0 and len(rows) >= 4, f"redis-benchmark -n {count} -c 4",
                   done.stdout)
    digest = group.asked(lambda client: client("DEBUG", "DIGEST"))
    scenario.check(re.fullmatch(r"[0-9a-f]{40}", digest), "the group answers DEBUG DIGEST", digest)
    group.settle()
    scenario.check_equal(group, "--prefix", what="digest and outputs of all replicas are equal")


def lose_leader(scenario, group):
    """SIGKILL of the leader's node under load; returns its number."""
    clients = [RoamingCounter(group, i) for i in range(2)]
    with under_way(clients):
        leader = group.leader()
        os.kill(group.status(leader)["pid"], signal.SIGKILL)
        group.leader(others_than=[leader])
        served(clients)
    problems = group.problems_of(clients)
    scenario.check(not problems, "crane-run: the leader's SIGKILL under load: clients are served "
                   "again, no acknowledged write is lost", "; ".join(problems[:3]))
    return leader


def stripped(scenario):
    """Crane's programs without symbols, because each agent reads them all to compute their
    digest."""
    place = scenario.work / "bin"
    place.mkdir()
    for part in ("crane-run", "crane-node", "libcrane.so"):
        subprocess.run(["strip", "-o", str(place / part), str(scenario.out / part)], check=True,
                       timeout=60)
    return place


def started_by_crane_run(scenario, hosts):
    """Hosts are namespaces with the devices' addresses, because every host listens on the server's
    port; the devices are the guest's."""
    port = h.free_port()
    with Network(len(hosts)) as network, contextlib.ExitStack() as stack:
        for name, address in zip(network.names, hosts):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
        group = Remote(scenario, network, program,
                       port=port,
                       hosts=[f"{n}={a}" for n, a in zip(network.names, hosts)],
                       options=["--fabric", "verbs"], container=False, record=True,
                       out=stripped(scenario))
        stack.enter_context(group)
        benchmark(scenario, group, 20000 if scenario.full else 300)
        devices = [(s["device"], s["fabric"]) for s in group.statuses().values()]
        scenario.check(devices == [(f"rxe{i + 1}", "verbs") for i in range(3)],
                       "crane-run --hosts --fabric verbs: each replica uses its device", devices)
        leader = lose_leader(scenario, group)
        rest = [i for i in range(3) if i != leader]
        group.settle(numbers=rest)
        scenario.check_equal(group, "--prefix", recordings=rest)
        h.wait_until(lambda: "its node killed by SIGKILL" in group.said(), 30, "crane-run notices")
        scenario.check(group.stop() == 0, "Ctrl-C ends it with status 0", group.said())
        gone(scenario, group, "nothing is left except a log of the killed replica", [leader])


def devices_are_tested(scenario):
    """crane-run doctor finds the devices, and no write passes the fence on any of them."""
    done = subprocess.run([str(scenario.out / "crane-run"), "doctor", "-o", "json", "--dir",
                           str(scenario.work)], stdout=subprocess.PIPE, text=True, timeout=120)
    answer = json.loads(done.stdout)
    found = next(f for f in answer["findings"] if f["area"] == "RDMA")
    scenario.check(found["verdict"] == "ok" and found["measures"]["devices"] == 3
                   and found["seen"].count("fence tested, 0 of ") == 3,
                   "crane-run doctor tests the fence of three devices", str(answer))
    scenario.say(f"{answer['headline']}: {found['seen']}")


def body(scenario):
    h.need("redis-server", "redis-benchmark", "ip", "strip")
    hosts = addresses()
    devices_are_tested(scenario)
    port = h.free_port()
    own = {1: {"group": {"huge_pages": "require"}},
           2: {"group": {"huge_pages": "never", "fence": "reset"}}}
    # A guest without control groups has no containers.
    program = h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0")
    with Hosts(scenario, program, port=port, fabric="verbs", addresses=hosts, record=True,
               server={"container": False}, own=own) as group:
        benchmark(scenario, group, 20000 if scenario.full else 1000)
        fences(scenario, group)
        leader, before = group.leader(), incr(group)
        group.nodes[leader].send_signal(signal.SIGKILL)
        since = time.monotonic()
        group.leader(others_than=[leader])
        after = h.wait_until(lambda: attempt(group), 60, "the group serves again")
        scenario.say(f"served again {1000 * (time.monotonic() - since):.0f} ms after the SIGKILL")
        scenario.check(after == before + 1, "the leader's SIGKILL loses nothing",
                       f"{before}, {after}")
        group.nodes[leader].wait()
        rest = [i for i in range(3) if i != leader]
        group.settle(numbers=rest)
        scenario.check_equal(group, "--prefix", recordings=rest)
        no_fence(scenario, group, leader)
        no_huge_pages(scenario, group, leader)
    started_by_crane_run(scenario, hosts)


def attempt(group):
    try:
        return incr(group)
    except (OSError, ConnectionError):
        return None


h.run_scenario("rdma", body)
