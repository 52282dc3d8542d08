# SPDX-License-Identifier: Apache-2.0
"""What more processors would give, computed from measured terms (eval/growth.py).

A request takes processor time inside of the turn, processor time of the server outside of it, and
processor time of the node. One thread at a time has the turn; the node is one thread. In parallel
mode the time outside runs on any processor; in serial mode it needs the turn, too. A thread that
hands the turn to another one makes the turn stand for the time of a hand-over, which differs for
a next thread that spins and for one that sleeps. So

    turn  = inside (+ outside in serial mode) + hand-overs * time of one
    rate  = min(processors / (inside + outside + node), 1 / turn, 1 / node)

It has neither the clients nor what processors lose to each other's caches, and it counts entries
that the node admits, with the turn, as the node's time alone. All hand-overs cost the same in it; a
real server has some of each kind.
"""
import dataclasses
import math

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
    """Of one request, microseconds of processor time, measured."""
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
    """(inside, outside) of the server's time: by the share of its samples in libcrane.so, or, when
    there are none (None), by what bench-turn says of a turn alone: then inside is a lower bound."""
    inside = server_us * share if share is not None else min(server_us, turns * turn_ns / 1000)
    return inside, server_us - inside


def limits(terms, hand_over_us, cores):
    """{what limits: requests/s}"""
    turn = terms.turn_us(hand_over_us)
    return {"processors": cores * 1e6 / terms.all_us(), "the turn": 1e6 / turn,
            "the node": 1e6 / terms.node_us}


def rate(terms, hand_over_us, cores):
    """(requests/s, what limits them)"""
    found = limits(terms, hand_over_us, cores)
    least = min(found, key=found.get)
    return found[least], least


def native_rate(terms, cores):
    """Of a native server that loses nothing to more processors."""
    return cores * 1e6 / terms.native_us


def cores_until(terms, hand_over_us, what):
    """The first number of processors with which `what`, the turn or the node, limits the rate."""
    most = limits(terms, hand_over_us, 1)[what]
    return max(1, math.ceil(most * terms.all_us() / 1e6 - 1e-9))


def first_limit(terms, hand_over_us):
    """What more processors do not help against: the turn, or the node."""
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
    lines = [f"| {' | '.join(head)} |",
             "| --- | --- " + "| ---: " * (len(CORES) + 3) + "| --- |"]
    told = set()
    for server, terms, costs, measured in models:
        if server not in told:
            cells = [f"{native_rate(terms, c):.0f}" for c in CORES]
            lines.append(f"| {server}, native, at most | - | {' | '.join(cells)} "
                         "| - | - | - | - |")
            told.add(server)
        for how, us in costs.items():
            cells = [f"{rate(terms, us, c)[0]:.0f}" for c in CORES]
            lines.append(f"| {server}, {terms.mode} | {how}, {us:.2f} us | {' | '.join(cells)} | "
                         f"{measured:.0f} | {cores_until(terms, us, 'the turn')} | "
                         f"{cores_until(terms, us, 'the node')} | {first_limit(terms, us)} |")
    return "\n".join(lines)


def terms_table(models):
    lines = ["| measured, per request | inside of the turn, us | outside, us | node, us | "
             "hand-overs | native, us | inside is by |", "| --- " + "| ---: " * 5 + "| --- |"]
    for server, t, *_ in models:
        cells = [f"{value:.2f}" for value in (t.inside_us, t.outside_us, t.node_us, t.hand_overs,
                                              t.native_us)]
        lines.append(f"| {server}, {t.mode} | {' | '.join(cells)} | "
                     f"{'samples' if t.sampled else 'turns'} |")
    return "\n".join(lines)
