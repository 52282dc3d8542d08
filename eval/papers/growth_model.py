# SPDX-License-Identifier: Apache-2.0
"""The gain from more processors, computed from measured terms (eval/experiments/growth.py).

TEXT states the model. One thread at a time has the turn; the node is one thread. In parallel mode
the time outside of the turn runs on any processor; in serial mode it needs the turn, too. Entries
that the node admits, with the turn, count as the node's time alone.
"""
import dataclasses
import math

import tables

SERIAL, PARALLEL = "serial", "parallel"
# How the turn goes to another thread, by the name of bench-turn's case. In serial mode the threads
# share one processor and sleep.
HAND_OVERS = {
    PARALLEL: {"spins": "2 threads on 2 cores, every turn, spin",
               "sleeps, same core": "2 threads on 1 core, every turn",
               "sleeps, other core": "2 threads on 2 cores, every turn"},
    SERIAL: {"sleeps, same core": "2 threads on 1 core, every turn"},
}
ONE_TURN = "1 thread"
CORES = (1, 2, 4, 8, 16, 32)


@dataclasses.dataclass(frozen=True)
class Terms:
    """The measured processor time of one request, in microseconds."""
    mode: str
    inside_us: float     # the server's, in libcrane.so: with the turn
    outside_us: float    # the server's, everywhere else
    node_us: float
    hand_overs: float    # wake-ups of the server's threads
    native_us: float     # of the native server, everything
    sampled: bool = True   # inside_us is by samples, else by turns: a lower bound

    def all_us(self):
        return self.inside_us + self.outside_us + self.node_us

    def turn_us(self, hand_over_us):
        """How long a request keeps the turn from others."""
        alone = self.outside_us if self.mode == SERIAL else 0
        return self.inside_us + alone + self.hand_overs * hand_over_us


def split(server_us, share, turns, turn_ns):
    """Returns (inside, outside) of the server's time: by the share of its samples in libcrane.so,
    or, when there are none (None), by bench-turn's time of a turn: then inside is a lower bound."""
    inside = server_us * share if share is not None else min(server_us, turns * turn_ns / 1000)
    return inside, server_us - inside


def limits(terms, hand_over_us, cores):
    """{what limits: requests/s}"""
    turn = terms.turn_us(hand_over_us)
    return {"processors": cores * 1e6 / terms.all_us(), "the turn": 1e6 / turn,
            "the node": 1e6 / terms.node_us}


def rate(terms, hand_over_us, cores):
    """Returns (requests/s, the limiting part)."""
    found = limits(terms, hand_over_us, cores)
    least = min(found, key=found.get)
    return found[least], least


def native_rate(terms, cores):
    """Returns the rate of a native server that scales perfectly with its processors."""
    return cores * 1e6 / terms.native_us


def cores_until(terms, hand_over_us, what):
    """The first number of processors with which `what`, the turn or the node, limits the rate."""
    most = limits(terms, hand_over_us, 1)[what]
    return max(1, math.ceil(most * terms.all_us() / 1e6 - 1e-9))


def first_limit(terms, hand_over_us):
    """Returns the limit that more processors do not raise: that of the turn, or of the node."""
    found = limits(terms, hand_over_us, 1)
    del found["processors"]
    return min(found, key=found.get)


def hand_over_costs(bench, mode):
    """{how: us} of bench-turn's JSON."""
    by_case = {row["case"]: row["ns"] for row in bench}
    return {how: by_case[case] / 1000 for how, case in HAND_OVERS[mode].items()}


def table(models, measured_cores):
    """`models`: [(server, Terms, {how: us}, measured requests/s)]; those were measured with that
    many processors, beside the clients."""
    head = ["computed, requests/s", "the next thread", *(f"{c} core{'s' * (c > 1)}" for c in CORES),
            f"measured here, {measured_cores} cores with the clients",
            "the turn limits from, cores", "the node limits from, cores", "the first limit"]
    lines, known = [], set()
    for server, terms, costs, measured in models:
        if server not in known:
            lines.append([f"{server}, native, at most", "-",
                          *(f"{native_rate(terms, c):.0f}" for c in CORES), *"----"])
            known.add(server)
        lines += [[f"{server}, {terms.mode}", f"{how}, {us:.2f} us",
                   *(f"{rate(terms, us, c)[0]:.0f}" for c in CORES), f"{measured:.0f}",
                   cores_until(terms, us, "the turn"), cores_until(terms, us, "the node"),
                   first_limit(terms, us)] for how, us in costs.items()]
    return tables.table(head, lines, 2, text_last=True)


def terms_table(models):
    return tables.table(
        ["measured, per request", "inside of the turn, us", "outside, us", "node, us",
         "hand-overs", "native, us", "inside is by"],
        [[f"{server}, {t.mode}",
          *(f"{value:.2f}" for value in (t.inside_us, t.outside_us, t.node_us, t.hand_overs,
                                         t.native_us)),
          "samples" if t.sampled else "turns"] for server, t, *_ in models], text_last=True)


TEXT = """**Computed, not measured**, from the terms above, of {} threads and {} clients:

    turn = inside (+ outside in serial mode) + hand-overs * time of one
    rate = min(cores / (inside + outside + node), 1 / turn, 1 / node)

The terms are processor time per request. Inside is the part of the server's samples (perf) in
libcrane.so, or turns times bench-turn's "1 thread" where perf has too few. Hand-overs are the
wake-ups of the server's threads. The time of a hand-over is bench-turn's, for a next thread that
spins and for one that sleeps, on the same core or on an idle other one. All hand-overs of a row
cost the same; a real server has some of each kind. The clients' processors and what cores lose to
each other's caches are not in it. The time outside has what the kernel needs for threads that
sleep, also in rows whose next thread spins. A native server loses nothing to more cores here."""


def panes(models):
    rows = [{"server": server, "cores": c, "requests/s": rate(terms, us, c)[0],
             "how": f"{terms.mode}, next thread {how}"}
            for server, terms, costs, _ in models for how, us in costs.items() for c in CORES]
    rows += [{"server": server, "cores": c, "requests/s": native_rate(terms, c),
              "how": "native, at most"} for server, terms, *_ in models for c in CORES]
    return [tables.line(some, "cores", "requests/s", "how", f"{server}: computed", "xy")
            for server, some in tables.grouped(rows, "server").items()]
