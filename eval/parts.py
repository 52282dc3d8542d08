# SPDX-License-Identifier: Apache-2.0
"""What programs share that measure in parts of minutes: a look at the machine before each part,
rows that earlier parts left, and what marks a row.

A row is a dictionary with `key`, a list that names it among all rows and ends with the number of
its repeat, and `quiet`, the machine's report while it was measured. One new repeat takes the place
of all earlier ones of the same point.
"""
import json
import pathlib

import quiet
from place import machine

HERE = pathlib.Path(__file__).resolve().parent


def add_options(parser):
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--only", default="",
                        help="a regular expression: the servers whose name it finds")
    parser.add_argument("--keep", action="store_true",
                        help="rows of earlier parts that are not measured now stay in the table")
    parser.add_argument("--anyway", action="store_true",
                        help="also when the machine is busy; rows that were are marked")
    parser.add_argument("--wait", type=int, default=120, metavar="SECONDS",
                        help="how long to wait for a quiet machine before the start (default 120)")


def point_of(row):
    return tuple(row["key"][:-1])


def merged(earlier, new):
    """No repeat of an earlier part stands beside a new one of the same point."""
    points = {point_of(row) for row in new}
    return [row for row in earlier if point_of(row) not in points] + new


def earlier_rows(file, keep):
    """What earlier parts left in a file, if it is to stay."""
    return json.loads(file.read_text())["rows"] if keep and file.exists() else []


class Part:
    """The rows of a file, those of this part and, with --keep, of earlier ones."""

    def __init__(self, file, keep, about=None):
        self.file, self.about = file, about or machine()
        self.earlier = earlier_rows(file, keep)
        self.new = []

    @property
    def rows(self):
        return merged(self.earlier, self.new)

    def add(self, row):
        """Kept at once: a part that is broken off leaves what it measured."""
        self.new.append({**row, "commit": self.about["commit"]})
        self.file.write_text(json.dumps({"machine": self.about, "rows": self.rows}))


def begin(options, name):
    """The Part, or None: the machine is busy, and nothing may be measured."""
    start = quiet.wait(0 if options.anyway else options.wait)
    print(f"before the start the machine is {start.text()}", flush=True)
    if not start.quiet and not options.anyway:
        print(f"nothing is measured: the machine was not quiet for {options.wait} s; "
              "--anyway measures, and marks the rows")
        return None
    results = pathlib.Path(options.out).resolve() / "bench"
    results.mkdir(parents=True, exist_ok=True)
    part = Part(results / f"{name}.json", options.keep)
    part.about["quiet"] = start.as_json()
    return part


def tried(make, causes, name):
    """(what make() gave, ""), once more if it fails; (None, the second reason). Every failure is
    shown, none is measured."""
    for _ in range(2):
        try:
            return make(), ""
        except causes as cause:
            reason = str(cause)
            print(f"left out: {name}: {reason[:600]}")
    return None, reason[:200]


def mark(rows):
    """Behind the name of what these rows tell: not all of them had the machine alone."""
    return "" if all(row["quiet"]["quiet"] for row in rows) else " (!)"


def busy_text(rows, most=5):
    """Below a table: which rows were measured on a busy machine, and the reason."""
    busy = [row for row in rows if not row["quiet"]["quiet"]]
    if not busy:
        return ""
    lines = [f"* {', '.join(map(str, row['key']))}: {'; '.join(row['quiet']['reasons'])}"
             for row in busy[:most]]
    if len(busy) > most:
        lines.append(f"* and {len(busy) - most} more")
    return ("\n\n**Measured on a busy machine**, (!): these figures cannot be trusted.\n\n"
            + "\n".join(lines))


def commits_of(rows):
    return ", ".join(sorted({row["commit"] for row in rows}))


def commits_text(rows):
    return f"\n\nMeasured at commit {commits_of(rows)}."


def status_of(rows, left_out, options):
    """The exit status: 1 something is missing, 75 a row was measured on a busy machine."""
    if not rows or left_out:
        return 1
    busy = any(not row["quiet"]["quiet"] for row in rows)
    return quiet.EXIT_NOT_QUIET if busy and not options.anyway else 0
