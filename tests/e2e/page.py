#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node's page in a headless Chromium, light and dark: a healthy group, a follower, and a group
that has lost a replica. With --keep the pictures remain."""
import json
import re
import signal
import subprocess

import _harness as h
from _monitoring import ask, free_ports, said

SIZE = "1180,1250"


def chromium(scenario, port, *more):
    """Standard output of a browser that has shown the page for several updates."""
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={scenario.work / 'browser'}", f"--window-size={SIZE}",
         "--virtual-time-budget=6000", *more, f"http://127.0.0.1:{port}/"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != 0:
        raise h.Failure(f"chromium: {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def samples(port):
    return len(json.loads(ask(port, "/history")[1])["samples"]["unix_ms"])


def look(scenario, port):
    """Returns (verdict's class, its text, the rest of the page) in the browser."""
    dom = chromium(scenario, port, "--dump-dom")
    found = re.search(r'<section id="verdict" class="(\w+)"[^>]*><b>(.*?)</b><p>(.*?)</p>', dom,
                      re.S)
    if not found:
        raise h.Failure(f"no verdict in {dom[:2000]}")
    return found.group(1), found.group(2), dom


def well(scenario, group, first):
    leader = group.leader()
    kind, text, dom = look(scenario, first + leader)
    scenario.check((kind, text) == ("good", "serving, 3 of 3, fault tolerant"),
                   "the leader's page: serving, 3 of 3, fault tolerant", f"{kind}: {text}")
    curves = re.findall(r'<path d="(M[^"]+)"', dom)
    scenario.check(len(curves) == 7 and sum("L" in c for c in curves) >= 4,
                   "its plots have curves", f"{len(curves)}: {curves}")
    rows = re.findall(r"<tr>.*?</tr>", dom.split('id="replicas"')[1].split("</table>")[0], re.S)
    scenario.check(len(rows) == 4 and all("connected" in r for r in rows[1:])
                   and sum("leader" in r for r in rows[1:]) == 1, "its table has all replicas",
                   str(rows))
    scenario.check(not re.search(r'(src|href)="https?://(?!127\.0\.0\.1)', dom),
                   "it loads nothing from other hosts")
    other = (leader + 1) % 3
    kind, text, dom = look(scenario, first + other)
    scenario.check((kind, text) == ("good", "serving, 3 of 3, fault tolerant")
                   and f'href="http://127.0.0.1:{first + leader}/"' in dom,
                   "a follower's page shows the leader's verdict and links to it",
                   f"{kind}: {text}")


def pictures(scenario, group, first):
    for name, more in (("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])):
        file = scenario.work / f"page-{name}.png"
        chromium(scenario, first + group.leader(), f"--screenshot={file}", *more)
        scenario.check(file.exists() and file.stat().st_size > 20_000, f"a picture: {name}")
    light, dark = ((scenario.work / f"page-{n}.png").read_bytes() for n in ("light", "dark"))
    scenario.check(light != dark, "light and dark differ")


def one_is_lost(scenario, group, first):
    leader = group.leader()
    victim = (leader + 1) % 3
    group.signal_node(victim, signal.SIGKILL)
    h.wait_until(lambda: said(first + victim, "/readiness") == 200, 60, "the lost replica is back")
    kind, text, _ = look(scenario, first + group.leader())
    scenario.check(text.startswith("serving, "), "the page continues after a loss",
                   f"{kind}: {text}")


def body(scenario):
    h.need("redis-server", "redis-benchmark", "chromium")
    port, first = h.free_port(), free_ports(3)
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--http", str(first)]) as group:
        load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-c", "4", "-n", "100000000",
                                 "-q", "-t", "set"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            h.wait_until(lambda: samples(first + group.leader()) >= 3, 60, "some samples exist")
            well(scenario, group, first)
            pictures(scenario, group, first)
            one_is_lost(scenario, group, first)
        finally:
            load.terminate()
            load.wait()


h.run_scenario("page", body)
