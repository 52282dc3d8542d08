#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server matrix as a table (`make eval-servers`): every KIND of tests/e2e/server_*.py.

For each: three runs of three replicas with delays, pinning and start order of their own, whose
outputs and schedules are compared; then its load natively, as a group of one and of three, with
both admission rules, in interleaved repeats. Printed, and written to <out>/bench/servers.{json,md}
and a plot; `--readme` puts the table between the marks of RESULTS.md. A server that is not
installed, or does not run, is left out by name: then nothing is put into RESULTS.md. Nor is it when
the machine was not quiet, before the start or beside a row, or when repeats lie far apart: exit
status 75; --anyway writes the table, marked. The comparison and the measurement may be two runs
(--proof; --speed --compared), and either may be made in parts (--only NAMES --keep): the table
says of which commits they are. --costs counts wake-ups, system calls and copies per request
instead. Every run is a line of <out>/bench/servers-runs.jsonl.
"""
import argparse
import functools
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STORIES = HERE.parent / "tests" / "e2e"
sys.path.insert(0, str(STORIES))
import _file_systems as f  # noqa: E402
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402
import costs  # noqa: E402
import ground  # noqa: E402
import quiet  # noqa: E402
from parts import add_options, commits_of, commits_text, earlier_rows  # noqa: E402
from place import Place, machine, pyplot_or_none, save_plot  # noqa: E402
from runs import CONFIGURATIONS, RawLog, repeated  # noqa: E402
from tables import JUDGED, SPREAD_LIMIT, missing_text, overhead, problems, table  # noqa: E402

CAUSES = (h.CannotRun, h.Failure, OSError, subprocess.SubprocessError)
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
PLOTTED_MOST = 200   # percent; a bar that is cut off there has its value above it


def all_kinds(only):
    for path in sorted(STORIES.glob("server_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from (kind for kind in module.KINDS if re.search(only, kind.name))


class Judge(Place):
    """What m.one_run() needs of a scenario; keeps what it said."""

    def __init__(self, out, work):
        super().__init__(out, work, "servers")
        self.passed, self.failures, self.texts = 0, [], []

    def say(self, text):
        self.texts.append(text)
        print(f"  . {text}", file=sys.stderr)

    def check(self, good, what, detail=""):
        self.passed += bool(good)
        if not good:
            self.failures.append(f"{what}: {detail}")
            print(f"  . FAIL {what}: {detail}", file=sys.stderr)
        return bool(good)

    check_equal = h.Scenario.check_equal
    check_schedule = h.Scenario.check_schedule


def compare(out, work, kind, seed, full, group_of=h.Group):
    """The judge of one run. A run that broke (a leader that starved, say) is made once more and
    said; a difference is not a run that broke."""
    for attempt in range(2):
        with tempfile.TemporaryDirectory(dir=work) as place:
            path = pathlib.Path(place)
            path.chmod(0o755)
            judge = Judge(out, path)
            judge.full = full
            try:
                m.one_run(judge, kind, seed, group_of)
                return judge
            except (h.Failure, OSError, subprocess.SubprocessError) as failure:
                print(f"broke: {kind.name}, seed {seed}: {str(failure)[:400]}")
                if attempt or judge.failures:
                    judge.failures.append(str(failure))
                    return judge


def proof(out, work, kind, full, group_of=h.Group):
    """{'equal': runs, 'of': runs, 'bytes': compared, 'failures': [...]}"""
    equal, bytes_compared, failures = 0, 0, []
    for seed in m.SEEDS:
        judge = compare(out, work, kind, seed, full, group_of)
        failures += judge.failures
        equal += not judge.failures
        found = [re.search(r"output bytes (\d+)", text) for text in judge.texts]
        bytes_compared += sum(int(match[1]) for match in found if match)
    return {"equal": equal, "of": len(m.SEEDS), "bytes": bytes_compared, "failures": failures}


def prepared_server(place, kind):
    work = m.place_of(place, kind)
    return work, kind(work, h.free_port())


def asked(server, options):
    """Requests of one load whose rates are told."""
    return server.requests[0] if options.quick else server.measured or server.requests[1]


def speed(place, kind, options, log):
    """(runs, {configuration: [reason]} of those that did not run)."""
    failed = {}
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(place, kind)
        runs = repeated(place, server, options.configurations, asked(server, options),
                        options.repeats, log, failed)
    shutil.rmtree(work)
    return runs, failed


def costs_row(place, kind, options, counter):
    with ground.prepared(kind.native_directories, kind.native_users):
        work, server = prepared_server(place, kind)
        rows = costs.costs_of(place, server, server.requests[not options.quick], counter)
    shutil.rmtree(work)
    return rows


def package_version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    version = re.sub(r"^\d+:", "", done.stdout.strip())
    return re.split(r"[-+]", version)[0] if version else ""


def said_of(rows, earlier):
    compared = f" Compared at commit {commits_of(earlier['rows'])}." if earlier else ""
    return commits_text(rows) + compared


def in_order(earlier, rows):
    """These rows and those of earlier parts that are not among them, in the matrix' order."""
    found = {row["name"]: row for row in earlier + rows}
    return [found[kind.name] for kind in all_kinds("") if kind.name in found]


def with_proof(rows, compared):
    """Rows beside what a later comparison found of them."""
    return [{**row, "proof": compared.get(row["name"], row["proof"])} for row in rows]


def not_there(rows):
    """{name: reason} of the matrix' rows that neither this part nor an earlier one has."""
    names = {row["name"] for row in rows}
    return {kind.name: "not in this part" for kind in all_kinds("") if kind.name not in names}


def plot(rows, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    figure, axis = pyplot.subplots(figsize=(1.5 + 0.55 * len(rows), 4.2))
    for offset, label in ((-0.2, "n=1"), (0.2, "n=3")):
        values = [100 / (1 + (overhead(row["runs"], label) or 0) / 100) for row in rows]
        axis.bar([i + offset for i in range(len(rows))], values, 0.4, label=label)
        for i, value in enumerate(values):
            if value > PLOTTED_MOST:
                axis.text(i + offset, PLOTTED_MOST, f"{value:.0f}", ha="center", va="bottom")
    axis.set_ylim(0, PLOTTED_MOST)
    axis.set_xlim(-0.6, len(rows) - 0.4)
    axis.axhline(100, color="grey", linewidth=0.8)
    axis.set_xticks(range(len(rows)), [row["name"] for row in rows], rotation=30, ha="right")
    axis.set_ylabel("requests/s, % of native (measured)")
    axis.legend()
    save_plot(figure, path, 120)


def into_readme(text):
    path = HERE / "RESULTS.md"
    old = path.read_text()
    begin, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    path.write_text(f"{old[:begin]}\n{text}\n{old[end:]}")


def groups_of(options):
    """Groups of the comparison: with --file-systems each replica lies on another one."""
    kinds = options.file_systems
    return functools.partial(f.SpreadGroup, kinds=kinds.split(",")) if kinds else h.Group


def failures(name, failed, repeats):
    """{row and configuration: how often, and the last reason}"""
    return {f"{name}, {label}": f"{len(reasons)} of {repeats} repeats failed: "
            + (reasons[-1].splitlines() or ["?"])[0][:200] for label, reasons in failed.items()}


def is_judged(name):
    """Of a name of failures(): without that configuration the row is missing."""
    return name.rsplit(", ", 1)[1] in JUDGED


def doubts(runs, start, options):
    """All that speaks against a row's figures: of the machine before the start, and of the runs."""
    if options.proof:
        return []
    before = [] if start.quiet else [f"before the start: {start.text()}"]
    return before + problems(runs, options.repeats, options.spread / 100)


def measure(out, work, options, compared, start, save, log):
    """Rows, and {what could not be measured: reason}; save() gets the rows so far."""
    rows, left_out = [], {}
    for kind in all_kinds(options.only):
        failed, runs = {}, []
        try:
            h.need(*kind.programs)
            told = (compared.get(kind.name) if options.speed
                    else proof(out, work, kind, not options.quick, groups_of(options)))
            if not options.proof:
                runs, failed = speed(Place(out, work, "servers"), kind, options, log)
        except CAUSES as cause:
            print(f"left out: {kind.name}: {str(cause)[:400]}")
            left_out[kind.name] = str(cause)[:200]
            continue
        lost = failures(kind.name, failed, options.repeats)
        left_out.update({name: lost.pop(name) for name in list(lost) if is_judged(name)})
        found = doubts(runs, start, options)
        if not options.proof:
            print("\n  ".join([f"{kind.name}: " + ("not to be trusted:" if found else
                                                   "quiet, and repeats lie together"), *found]))
        rows.append({"name": kind.name, "version": package_version(kind.version_of),
                     "limits": kind.differs, "runs": runs, "problems": found,
                     "commit": log.about["commit"],
                     "not_measured": lost, "proof": told or
                     {"equal": 0, "of": 0, "bytes": 0, "failures": []}})
        save(rows)
    return rows, left_out


def count_costs(out, work, options, about):
    """`--costs`: prints the table; exit status 1 when a row is missing."""
    counter, reason = costs.counter()
    rows, left_out = [], {}
    log = RawLog(out / "bench" / "servers-costs.jsonl", about)
    for kind in all_kinds(options.only):
        try:
            h.need(*kind.programs)
            found = costs_row(Place(out, work, "servers"), kind, options, counter)
        except CAUSES as cause:
            print(f"left out: {kind.name}: {str(cause)[:400]}")
            left_out[kind.name] = str(cause)[:200]
            continue
        for row in found:
            log.write(row)
            print(f"  . {row['server']}, {row['configuration']}; the machine: "
                  f"{quiet.Report(**row['quiet']).text()}", file=sys.stderr)
        rows += found
    text = f"{costs.table(rows)}\n\n{costs.how_text(counter, reason, rows)}{missing_text(left_out)}"
    print(text)
    (out / "bench" / "servers-costs.md").write_text(text + "\n")
    return 0 if rows and not left_out else 1


def unsteady(rows):
    return [f"{row['name']}: {reason}" for row in rows for reason in row["problems"]]


def refusal(reasons):
    shown = reasons[:8] + ([f"and {len(reasons) - 8} more"] if len(reasons) > 8 else [])
    return ("RESULTS.md is not written: these figures cannot be trusted.\n  "
            + "\n  ".join(shown)
            + "\nStop what else runs on this machine, or take another one, and start again; "
            "--anyway writes the table, marked as measured on a busy machine.")


def put_away(text, rows, left_out, options):
    """Writes the table into RESULTS.md if nothing speaks against it; the exit status."""
    missing, reasons = {**not_there(rows), **left_out}, unsteady(rows)
    if missing:
        print("RESULTS.md is not written: the table has not all rows" + missing_text(missing))
        return 1
    if reasons and not options.anyway:
        print(refusal(reasons))
        return quiet.EXIT_NOT_QUIET
    into_readme(text)
    return 0


def labels(text):
    """Of --configurations."""
    found = text.split(",")
    unknown = [label for label in found if label not in CONFIGURATIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no configuration {unknown[0]!r}: they are "
                                         + ", ".join(CONFIGURATIONS))
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--configurations", type=labels, default=list(CONFIGURATIONS),
                        metavar="LABEL,...", help="how each server runs in a repeat (default: "
                        f"{','.join(CONFIGURATIONS)}; the last one only counts bubbles)")
    parser.add_argument("--quick", action="store_true", help="the scenarios' small loads")
    parser.add_argument("--proof", action="store_true", help="compare only, no speed")
    parser.add_argument("--file-systems", metavar="KIND,...", default="",
                        help="in the comparison the replicas lie on these file systems, one each: "
                        + ", ".join(f.KINDS))
    parser.add_argument("--speed", action="store_true", help="speed only, no comparison")
    parser.add_argument("--costs", action="store_true",
                        help="only count wake-ups, system calls and copies per request")
    parser.add_argument("--readme", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--spread", type=float, default=100 * SPREAD_LIMIT, metavar="PERCENT",
                        help="(highest - lowest) / median of a row's repeats above which it is "
                        f"not trusted (default {100 * SPREAD_LIMIT:.0f})")
    parser.add_argument("--compared", type=pathlib.Path, metavar="FILE",
                        help="with --speed: the comparison of an earlier --proof, in "
                        "<out>/bench/servers-compared.json")
    return parser.parse_args()


def tell(rows, left_out, about, options, earlier, results):
    """Prints the table, keeps it, puts it into RESULTS.md if that is wanted; the exit status."""
    text = table(rows) + said_of(rows, earlier)
    if unsteady(rows):
        text += "\n\n**Measured on a busy machine, or with repeats far apart**: see (!)."
    print(f"{about['processor']}, {about['processors']} processors, {about['memory_mib']} MiB, "
          f"Linux {about['kernel']}; {m.CLIENTS} clients; clients, replicas and load share them\n\n"
          f"{text}{missing_text(left_out)}")
    name = "servers-compared" if options.proof else "servers"
    (results / f"{name}.md").write_text(text + missing_text(left_out) + "\n")
    if not options.proof:
        plot(rows, results / "servers.png")
    if not rows or left_out or any(row["proof"]["failures"] for row in rows):
        status = 1
    else:
        status = 0
    if options.readme:
        status = max(status, put_away(text, rows, left_out, options))
    return status


def main():
    options = arguments()
    h.end_at_sigterm()
    out = pathlib.Path(options.out).resolve()
    about = machine()
    earlier = json.loads(options.compared.read_text()) if options.compared else None
    compared = {row["name"]: row["proof"] for row in earlier["rows"]} if earlier else {}
    results = out / "bench"
    results.mkdir(parents=True, exist_ok=True)
    name = "servers-compared" if options.proof else "servers"
    start = quiet.Report(True, (), {}) if options.proof else quiet.wait(options.wait)
    print(f"before the start the machine is {start.text()}", flush=True)
    about["quiet"] = start.as_json()
    if options.readme and not start.quiet and not options.anyway:
        print(f"nothing is measured: the machine was not quiet for {options.wait} s\n"
              + refusal([start.text()]))
        return quiet.EXIT_NOT_QUIET

    file = results / f"{name}.json"
    kept = earlier_rows(file, options.keep)

    def save(rows):
        file.write_text(json.dumps({"machine": about, "rows": in_order(kept, rows)}, indent=1))

    with tempfile.TemporaryDirectory(prefix="crane-servers-", dir="/var/tmp") as work:
        path = pathlib.Path(work)
        path.chmod(0o755)
        if options.costs:
            return count_costs(out, path, options, about)
        rows, left_out = measure(out, path, options, compared, start, save,
                                 RawLog(results / "servers-runs.jsonl", about))
    rows = with_proof(in_order(kept, rows), compared)
    return tell(rows, left_out, about, options, earlier, results)


if __name__ == "__main__":
    sys.exit(main())
