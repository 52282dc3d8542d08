# SPDX-License-Identifier: Apache-2.0
"""The server matrix as a table: every KIND of tests/e2e/server_*.py.

For each: three runs of three replicas with delays, pinning and start order of their own, whose
outputs and schedules are compared; then its load natively, as a group of one and of three, with
both admission rules, in interleaved repeats. `--readme` puts the table between the marks of
RESULTS.md. A server that is not installed, or does not run, is left out by name: then nothing is
put into RESULTS.md. Nor is it when the machine was not quiet, before the start or beside a row, or
when repeats lie far apart: exit status 75; --anyway writes the table, marked. The comparison and
the measurement may be two runs (--proof; --speed --compared), and either may be made in parts
(--only NAMES --keep): the table names their commits. Every run is a line of servers-runs.jsonl.
"""
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import _file_systems as f
import _harness as h
import _matrix as m
import ground
import quiet
import session
import tables
from server_table import JUDGED, SPREAD_LIMIT, overhead, problems as doubts_of_runs, table
from start import CONFIGURATIONS, all_kinds, prepared_server, repeated
from tables import commits_of, commits_text, missing_text

OPTIONS = {
    "only": session.ONLY, "repeats": session.repeats(5), "quick": session.QUICK,
    "configurations": (",".join(CONFIGURATIONS), "how each server runs in a repeat; the last one "
                       "only counts bubbles"),
    "proof": (False, "compare only, no speed"), "speed": (False, "speed only, no comparison"),
    "file_systems": ("", "in the comparison the replicas are on these file systems, one each: "
                     + ", ".join(f.KINDS)),
    "readme": (False, "put the table into RESULTS.md"),
    "spread": (100 * SPREAD_LIMIT, "(highest - lowest) / median of a row's repeats in percent "
               "above which it is not trusted"),
    "compared": ("", "with --speed: the file servers-compared.json of an earlier --proof")}
RESULTS = session.ROOT / "eval/RESULTS.md"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"


def quiet_wanted(options):
    return "" if options.proof else "required" if options.readme else "awaited"


def result_name(options):
    return "servers-compared" if options.proof else "servers"


# --- the comparison -------------------------------------------------------------------------------

class Judge(session.Place):
    """The part of a scenario that m.one_run() needs; keeps the reports."""

    def __init__(self, out, work):
        super().__init__(out, work, "servers")
        self.passed, self.failures, self.texts = 0, [], []

    def say(self, text_):
        self.texts.append(text_)
        print(f"  . {text_}", file=sys.stderr)

    def check(self, good, what, detail=""):
        self.passed += bool(good)
        if not good:
            self.failures.append(f"{what}: {detail}")
            print(f"  . FAIL {what}: {detail}", file=sys.stderr)
        return bool(good)

    check_equal = h.Scenario.check_equal
    check_schedule = h.Scenario.check_schedule


def compare(x, kind, seed, group_of):
    """The judge of one run. A run that broke (a leader that starved, say) is made once more and
    reported; a difference is not a run that broke."""
    for attempt in range(2):
        with tempfile.TemporaryDirectory(dir=x.work) as place:
            path = pathlib.Path(place)
            path.chmod(0o755)
            judge = Judge(x.out, path)
            judge.full = not x.options.quick
            try:
                m.one_run(judge, kind, seed, group_of)
                return judge
            except (h.Failure, OSError, subprocess.SubprocessError) as failure:
                print(f"broke: {kind.name}, seed {seed}: {str(failure)[:400]}")
                if attempt or judge.failures:
                    judge.failures.append(str(failure))
                    return judge


def proof(x, kind):
    """{'equal': runs, 'of': runs, 'bytes': compared, 'failures': [...]}"""
    kinds = x.options.file_systems   # each replica is on another one
    group_of = functools.partial(f.SpreadGroup, kinds=kinds.split(",")) if kinds else h.Group
    judges = [compare(x, kind, seed, group_of) for seed in m.SEEDS]
    found = [re.search(r"output bytes (\d+)", line) for judge in judges for line in judge.texts]
    return {"equal": sum(not judge.failures for judge in judges), "of": len(m.SEEDS),
            "bytes": sum(int(match[1]) for match in found if match),
            "failures": [failure for judge in judges for failure in judge.failures]}


# --- the measurement ------------------------------------------------------------------------------

def asked(server, options):
    """Requests of one load whose rates are shown."""
    return server.requests[0] if options.quick else server.measured or server.requests[1]


def speed(x, kind, log):
    """Returns (runs, {configuration: [reason]} of those that did not run)."""
    failed = {}
    chosen = {label: CONFIGURATIONS[label] for label in labels(x.options.configurations)}
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(x.place, kind)
        runs = repeated(x.place, server, chosen, asked(server, x.options), x.options.repeats, log,
                        failed)
    shutil.rmtree(work)
    return runs, failed


def labels(names):
    """Returns the labels in the value of --configurations."""
    found = names.split(",")
    unknown = [label for label in found if label not in CONFIGURATIONS]
    if unknown:
        raise h.CannotRun(f"no configuration {unknown[0]!r}: they are "
                          + ", ".join(CONFIGURATIONS))
    return found


def package_version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    version = re.sub(r"^\d+:", "", done.stdout.strip())
    return re.split(r"[-+]", version)[0] if version else ""


def failures(name, failed, repeats):
    """{row and configuration: how often, and the last reason}"""
    return {f"{name}, {label}": f"{len(reasons)} of {repeats} repeats failed: "
            + (reasons[-1].splitlines() or ["?"])[0][:200] for label, reasons in failed.items()}


def is_judged(name):
    """Whether the row of a name of failures() is missing without that configuration."""
    return name.rsplit(", ", 1)[1] in JUDGED


def doubts(runs, start, options):
    """All that speaks against a row's figures: of the machine before the start, and of the runs."""
    if options.proof:
        return []
    before = [] if start.quiet else [f"before the start: {start.text()}"]
    return before + doubts_of_runs(runs, options.repeats, options.spread / 100)


def one_row(x, kind, compared, log):
    o, failed, runs = x.options, {}, []
    found = (compared.get(kind.name) if o.speed else proof(x, kind))
    if not o.proof:
        runs, failed = speed(x, kind, log)
    lost = failures(kind.name, failed, o.repeats)
    x.left_out.update({name: lost.pop(name) for name in list(lost) if is_judged(name)})
    wrong = doubts(runs, x.start, o)
    if not o.proof:
        print("\n  ".join([f"{kind.name}: " + ("not to be trusted:" if wrong else
                                               "quiet, and repeats lie together"), *wrong]))
    return {"name": kind.name, "version": package_version(kind.version_of),
            "limits": kind.differs, "runs": runs, "problems": wrong, "not_measured": lost,
            "proof": found or {"equal": 0, "of": 0, "bytes": 0, "failures": []}}


def measure(x):
    log = session.RawLog(x.results / "servers-runs.jsonl", x.about)
    compared = {row["name"]: row["proof"] for row in compared_rows(x.options)}
    labels(x.options.configurations)   # a wrong one ends the program before anything is measured
    for kind in all_kinds(x.options.only):
        try:
            h.need(*kind.programs)
            row = one_row(x, kind, compared, log)
        except session.CAUSES as cause:
            print(f"left out: {kind.name}: {str(cause)[:400]}")
            x.left_out[kind.name] = str(cause)[:200]
            continue
        x.add({"key": [kind.name, 0], **row})


# --- the table ------------------------------------------------------------------------------------

def compared_rows(options):
    if not options.compared:
        return []
    return json.loads(pathlib.Path(options.compared).read_text())["rows"]


def said_of(rows, compared):
    later = f" Compared at commit {commits_of(compared)}." if compared else ""
    return commits_text(rows) + later


def in_order(rows):
    """Returns the rows in the order of the matrix."""
    found = {row["name"]: row for row in rows}
    return [found[kind.name] for kind in all_kinds("") if kind.name in found]


def with_proof(rows, compared):
    """Rows beside what a later comparison found of them."""
    found = {row["name"]: row["proof"] for row in compared}
    return [{**row, "proof": found.get(row["name"], row["proof"])} for row in rows]


def not_there(rows):
    """{name: reason} of the matrix' rows that neither this part nor an earlier one has."""
    names = {row["name"] for row in rows}
    return {kind.name: "not in this part" for kind in all_kinds("") if kind.name not in names}


def unsteady(rows):
    return [f"{row['name']}: {reason}" for row in rows for reason in row["problems"]]


def matrix_text(rows, options):
    compared = compared_rows(options)
    rows = with_proof(in_order(rows), compared)
    found = table(rows) + said_of(rows, compared)
    if unsteady(rows):
        found += "\n\n**Measured on a busy machine, or with repeats far apart**: see (!)."
    return found


def text(rows, x):
    return matrix_text(rows, x.options) + missing_text(x.left_out)


def refusal(reasons):
    shown = reasons[:8] + ([f"and {len(reasons) - 8} more"] if len(reasons) > 8 else [])
    return ("RESULTS.md is not written: these figures cannot be trusted.\n  "
            + "\n  ".join(shown)
            + "\nStop what else runs on this machine, or take another one, and start again; "
            "--anyway writes the table, marked as measured on a busy machine.")


def into_results(found):
    old = RESULTS.read_text()
    begin, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    RESULTS.write_text(f"{old[:begin]}\n{found}\n{old[end:]}")


def put_away(found, rows, left_out, options):
    """Writes the table into RESULTS.md if nothing speaks against it; the exit status."""
    missing, reasons = {**not_there(rows), **left_out}, unsteady(rows)
    if missing:
        print("RESULTS.md is not written: the table has not all rows" + missing_text(missing))
        return 1
    if reasons and not options.anyway:
        print(refusal(reasons))
        return quiet.EXIT_NOT_QUIET
    into_results(found)
    return 0


def status(rows, x):
    """Beside what is missing: of --readme."""
    if not x.options.readme:
        return 0
    return put_away(matrix_text(rows, x.options), in_order(rows), x.left_out, x.options)


def problems(rows, _):
    return [f"{row['name']}: {failure}" for row in rows for failure in row["proof"]["failures"]]


def panes(rows, x):
    if x.options.proof:
        return []
    bars = [{"server": row["name"], "replicas": label, "% of native": 100 / (1 + over / 100)}
            for row in in_order(rows) for label in ("n=1", "n=3")
            if (over := overhead(row["runs"], label)) is not None]
    return [tables.bars(bars, "server", "% of native", "replicas", "requests/s, measured")]
