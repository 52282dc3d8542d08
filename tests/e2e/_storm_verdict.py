# SPDX-License-Identifier: Apache-2.0
"""Judges a storm's records, without a group: the cost of each fault, and wrong statuses.

All times are seconds of one monotonic clock.
"""
import bisect
import collections
import dataclasses
import statistics

SERVED_WITHIN = 1.0       # limit after a fault that status called survivable
AFTER_MAJORITY = 2.0      # limit after the majority is back, for other faults
WAITS_WITHIN = 0.3        # limit for a client's wait while status reports that the group serves


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """A client's request; `answered` is None while it waits."""
    client: str
    asked: float
    answered: float | None

    def until(self, end):
        return end if self.answered is None else self.answered


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """A status; it looked at the group between `begin` and `end`."""
    begin: float
    end: float
    serving: bool
    may_lose: int
    text: str


@dataclasses.dataclass
class Fault:
    """`survivable`: according to the status just before. `majority`: the time when a majority of
    replicas could serve again, None: not seen. `whole`: when status called the group whole."""
    kind: str
    what: str
    at: float
    survivable: bool
    text: str = ""
    majority: float | None = None
    whole: float | None = None
    wait: float = 0.0
    client: str = ""
    allowed: float | None = None


def read(summary):
    """Returns (serving, number of replicas that may be lost, text) of `crane-ctl status -o
    json`."""
    verdict = summary["verdict"]
    return verdict["serving"], summary["may_lose"] or 0, verdict["text"]


class Waits:
    """All waits, sorted by their ends."""

    def __init__(self, waits, end):
        self.end = end
        self.all = sorted(waits, key=lambda wait: wait.until(end))
        self.ends = [wait.until(end) for wait in self.all]
        self.longest = max((w.until(end) - w.asked for w in self.all), default=0.0)

    def asked_before(self, begin, until):
        """The waits for requests that were sent before `until` and answered after `begin`."""
        first = bisect.bisect_right(self.ends, begin)
        last = bisect.bisect_right(self.ends, until + self.longest)
        return [wait for wait in self.all[first:last] if wait.asked < until]


def cost(fault, following, waits):
    """Returns (longest wait that this fault caused, its client). When a wait lasts into a following
    fault that is not survivable, that fault has caused the rest of it. Requests after the following
    fault do not count."""
    limit = following.at if following and not following.survivable else waits.end
    longest, client = 0.0, ""
    for wait in waits.asked_before(fault.at, following.at if following else waits.end):
        over = min(wait.until(waits.end), limit) - max(wait.asked, fault.at)
        if over > longest:
            longest, client = over, wait.client
    return longest, client


def allowed(fault):
    """The longest wait that this fault may cause; None: no limit."""
    if fault.survivable:
        return SERVED_WITHIN
    return None if fault.majority is None else fault.majority - fault.at + AFTER_MAJORITY


def judge(faults, waits, end):
    """Sets the cost of each fault; returns the faults that cost more than allowed."""
    waits = Waits(waits, end)
    for fault, following in zip(faults, [*faults[1:], None]):
        fault.wait, fault.client = cost(fault, following, waits)
        fault.allowed = allowed(fault)
    return [f for f in faults if f.allowed is not None and f.wait > f.allowed]


def contradictions(said, waits, end):
    """Returns [(wait, status meanwhile)]: status called the group serving twice in a row, although
    a client had waited for longer than WAITS_WITHIN before the first status, and waited until after
    the second one. A single status may be a moment too early at the end of an outage."""
    found = []
    for wait in waits:
        over = wait.until(end)
        if over - wait.asked <= WAITS_WITHIN:
            continue
        looks = [s for s in said if s.begin >= wait.asked + WAITS_WITHIN and s.end <= over]
        liar = next((one for one, following in zip(looks, looks[1:])
                     if one.serving and following.serving), None)
        if liar:
            found.append((wait, liar))
    return found


def table(faults):
    """Rows of text: waits in ms by kind, for survivable faults and for others."""
    kinds = collections.defaultdict(lambda: ([], []))
    for fault in faults:
        kinds[fault.kind][not fault.survivable].append(fault.wait * 1000)

    def cells(waits):
        return (f"{len(waits):4} {statistics.median(waits):9.0f} {max(waits):9.0f}" if waits
                else f"{0:4} {'-':>9} {'-':>9}")
    rows = [f"{'':20} {'survivable by status':^24} | {'not':^24}",
            f"{'fault':20} {'n':>4} {'median ms':>9} {'worst ms':>9} | {'n':>4} {'median ms':>9} "
            f"{'worst ms':>9}"]
    return rows + [f"{kind:20} {cells(good)} | {cells(bad)}"
                   for kind, (good, bad) in sorted(kinds.items())]
