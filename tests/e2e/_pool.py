# SPDX-License-Identifier: Apache-2.0
"""Clients of our own that work at the same time, timed: for servers that have no load tool."""
import threading
import time

import _harness as h


def together(what, work, requests, clients=8):
    """(what, per second, p50 ms, p99 ms) of `work(number, count)` in `clients` threads.

    `work` is a generator that yields when an answer has been checked; what it did since the last
    one is one request. It yields `count` times, and raises when an answer is wrong.
    """
    share = max(requests // clients, 1)
    times, problems = [[] for _ in range(clients)], []
    start = threading.Barrier(clients + 1)

    def client(number):
        start.wait(60)
        try:
            before = time.monotonic()
            for _ in work(number, share):
                now = time.monotonic()
                times[number].append(now - before)
                before = now
        except (OSError, ValueError, IndexError, h.Failure) as problem:
            problems.append(f"client {number}, request {len(times[number])}: "
                            f"{type(problem).__name__}: {problem}")
    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(clients)]
    for t in threads:
        t.start()
    start.wait(60)
    began = time.monotonic()
    for t in threads:
        t.join(max(began + 280 - time.monotonic(), 0))
    seconds = time.monotonic() - began
    if any(t.is_alive() for t in threads):
        problems.append(f"not answered within {seconds:.0f} s")
    if not problems and any(len(t) != share for t in times):
        problems.append(f"{[len(t) for t in times]} answers instead of {share} each")
    if problems:
        raise h.Failure(f"{what}: " + "; ".join(problems[:5]))
    every = sorted(t for mine in times for t in mine)
    return (what, len(every) / seconds, 1000 * every[len(every) // 2],
            1000 * every[len(every) * 99 // 100])
