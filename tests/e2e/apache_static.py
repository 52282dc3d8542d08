#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stock apache serves static files to ab; every replica writes the same bytes, Date included."""
import _harness as h


def run_ab(scenario, port, page, requests, keep_alive):
    result = h.ab(f"http://127.0.0.1:{port}/{page}", requests, 16, keep_alive)
    scenario.say(f"{result['command']}: {result['rate']:.0f} requests/s, "
                 f"p50 {result['p50']:.2f} ms, "
                 f"p99 {result['p99']:.2f} ms")
    scenario.check(h.ab_good(result, requests),
                   f"ab {page}{' -k' if keep_alive else ''}: {requests} requests, 0 failed",
                   result["text"])


def body(scenario):
    h.need("apache2", "ab")
    small, large = (20000, 500) if scenario.full else (2000, 60)
    port = h.free_port()
    conf = h.apache_configuration(scenario.work, port)
    scenario.say(f"three replicas of apache2 on port {port}, outputs recorded")
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port, record=True) as group:
        answer = h.http(port, b"GET /1k.html HTTP/1.0\r\n\r\n")
        scenario.check(b"200 OK" in answer and b"\nDate: " in answer,
                       "a page is served, with a Date header", repr(answer[:200]))
        for keep_alive in (False, True):
            run_ab(scenario, port, "1k.html", small, keep_alive)
            run_ab(scenario, port, "1m.bin", large, keep_alive)
        seen = group.settle()
        group.check_calm()
        scenario.check(len(seen) == 3, "three replicas live", repr(group.brief()))
        scenario.check(all(s["unhooked_calls"] == 0 for s in seen.values()), "no unhooked calls",
                       repr({n: s["unhooked"] for n, s in seen.items()}))
        group.stop()
        text = scenario.check_equal(group)
        scenario.say(f"crane-diff: {text}")
        text = scenario.check_schedule(group)
        scenario.say(f"crane-diff --schedule: {text}")
    if not scenario.full:
        return
    # Recordings would take 120 GB, so the digests over all output are compared instead.
    scenario.say("1 MB files, all requests, compared by digest")
    with h.Group(scenario, ["apache2", "-f", str(conf)], port=port) as group:
        for keep_alive in (False, True):
            run_ab(scenario, port, "1m.bin", 20000, keep_alive)
        seen = group.settle()
        group.check_calm()
        scenario.check(len({s["outputs_digest"] for s in seen.values()}) == 1 and len(seen) == 3,
                       f"digests over {next(iter(seen.values()))['outputs_bytes']} bytes are equal",
                       repr(group.brief()))


h.run_scenario("apache_static", body)
