# SPDX-License-Identifier: Apache-2.0
"""What a storm's notes say, without a group: what each fault cost, and where status was wrong.

All times are seconds of one monotonic clock.
"""
import bisect
import collections
import dataclasses
import statistics

SERVED_WITHIN = 1.0       # after a fault that status called survivable
AFTER_MAJORITY = 2.0      # after the majority is back, else
WAITS_WITHIN = 0.3        # of a client while status says that the group serves


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """A client's question; `answered` is None while it waits."""
    client: str
    asked: float
    answered: float | None

    def until(self, end):
        return end if self.answered is None else self.answered


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """What status said; it looked at the group between `begin` and `end`."""
    begin: float
    end: float
    serving: bool
    may_lose: int
    text: str


@dataclasses.dataclass
class Fault:
    """`survivable`: status said so just before. `majority`: when a majority of replicas could serve
    again, None: not seen. `whole`: when status called the group whole again."""
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
    """(does it serve, how many replicas may be lost, in words) of `crane-ctl status -o json`."""
    verdict = summary["verdict"]
    return verdict["serving"], summary["may_lose"] or 0, verdict["text"]


class Waits:
    """All waits, by when they ended."""

    def __init__(self, waits, end):
        self.end = end
        self.all = sorted(waits, key=lambda wait: wait.until(end))
        self.ends = [wait.until(end) for wait in self.all]
        self.longest = max((w.until(end) - w.asked for w in self.all), default=0.0)

    def asked_before(self, begin, until):
        """Those that were asked before `until` and answered after `begin`."""
        first = bisect.bisect_right(self.ends, begin)
        last = bisect.bisect_right(self.ends, until + self.longest)
        return [wait for wait in self.all[first:last] if wait.asked < until]


def cost(fault, following, waits):
    """(longest wait that this fault caused, its client). One that lasts into an early fault is
    that one's from there on; what is asked behind the next fault is not this one's."""
    limit = following.at if following and not following.survivable else waits.end
    longest, client = 0.0, ""
    for wait in waits.asked_before(fault.at, following.at if following else waits.end):
        over = min(wait.until(waits.end), limit) - max(wait.asked, fault.at)
        if over > longest:
            longest, client = over, wait.client
    return longest, client


def allowed(fault):
    """How long a client may wait for this fault; None: nothing is promised."""
    if fault.survivable:
        return SERVED_WITHIN
    return None if fault.majority is None else fault.majority - fault.at + AFTER_MAJORITY


def judge(faults, waits, end):
    """Fills in what each fault cost; returns those that cost more than allowed."""
    waits = Waits(waits, end)
    for fault, following in zip(faults, [*faults[1:], None]):
        fault.wait, fault.client = cost(fault, following, waits)
        fault.allowed = allowed(fault)
    return [f for f in faults if f.allowed is not None and f.wait > f.allowed]


def contradictions(said, waits, end):
    """[(wait, what status said meanwhile)]: it called the group serving, at two looks behind each
    other, although a client had waited for longer than WAITS_WITHIN, from before the first look
    until after the second one was answered: where an outage ends one look may be a moment early."""
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
    """Rows for people: waits in ms by kind, of survivable faults and of others."""
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
