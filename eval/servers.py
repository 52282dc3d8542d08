#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server matrix as a table (`make eval-servers`): every KIND of tests/e2e/server_*.py.

For each: three runs of three replicas with delays, pinning and start order of their own, whose
outputs and schedules are compared; then its load natively, as a group of one and of three, with
both admission rules, in interleaved repeats. Printed, and written to <out>/bench/servers.{json,md}
and a plot; `--readme` puts the table between the marks of RESULTS.md. A server that is not
installed, or does not run, is left out by name: then nothing is put into RESULTS.md. The comparison
and the measurement may be two runs (--proof; --speed --compared): then the table says of which
commits they are.
"""
import argparse
import functools
import importlib.util
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STORIES = HERE.parent / "tests" / "e2e"
sys.path.insert(0, str(STORIES))
import _file_systems as f  # noqa: E402
import _harness as h  # noqa: E402
import _matrix as m  # noqa: E402
from place import Place, machine, pyplot_or_none  # noqa: E402
from runs import CONFIGURATIONS, bubble_share, median_of, repeated  # noqa: E402

BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"


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


def speed(place, kind, options):
    work = m.place_of(place, kind)
    server = kind(work, h.free_port())
    runs = repeated(place, server, CONFIGURATIONS, server.requests[not options.quick],
                    options.repeats)
    shutil.rmtree(work)
    return runs


def package_version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    version = re.sub(r"^\d+:", "", done.stdout.strip())
    return re.split(r"[-+]", version)[0] if version else ""


def ratio(runs, label, what):
    native, ours = median_of(runs, "native", what, "rate"), median_of(runs, label, what, "rate")
    return statistics.median(ours) / statistics.median(native) if native and ours else None


def overhead(runs, label):
    """Mean over its kinds of request of (native rate / ours - 1), in percent; None = not run."""
    whats = dict.fromkeys(r["what"] for run in runs for r in run["results"])
    ratios = [ratio(runs, label, what) for what in whats]
    return 100 * statistics.mean(1 / r - 1 for r in ratios) if ratios and all(ratios) else None


def percent(value):
    return "-" if value is None else f"{value:.0f} %"


def share(runs, label):
    found = bubble_share(runs, label)
    return f"{statistics.median(found):.1f}" if found else "-"


def table(rows):
    lines = ["| server | 3 perturbed runs of 3 | load natively | overhead, 1 replica | 3 | "
             "bubbles, % grant / classic | limits |",
             "| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    for row in rows:
        runs, told = row["runs"], row["proof"]
        whats = dict.fromkeys(r["what"] for run in runs for r in run["results"])
        native = ", ".join(f"{what} {statistics.median(rates):.0f}/s" for what in whats
                           if (rates := median_of(runs, "native", what, "rate")))
        equal = (f"equal, {told['bytes']} bytes" if told["equal"] == told["of"]
                 else f"**{told['equal']} of {told['of']} equal**")
        lines.append(f"| {row['name']} {row['version']} | {equal} | {native} | "
                     f"{percent(overhead(runs, 'n=1'))} | {percent(overhead(runs, 'n=3'))} | "
                     f"{share(runs, 'n=3')} / {share(runs, 'n=3 classic')} | {row['limits']} |")
    means = [overhead(row["runs"], "n=1") for row in rows]
    if means and None not in means:
        lines.append(f"\nMean overhead of one replica over the {len(means)} rows: "
                     f"{statistics.mean(means):.0f} %.")
    return "\n".join(lines)


def said_of(about, earlier):
    text = f"\n\nMeasured at commit {about['commit']}"
    return text + (f", compared at {earlier['machine']['commit']}." if earlier else ".")


def plot(rows, path):
    pyplot = pyplot_or_none()
    if not pyplot:
        return
    figure, axis = pyplot.subplots(figsize=(1.2 + 0.9 * len(rows), 4.2))
    for offset, label in ((-0.2, "n=1"), (0.2, "n=3")):
        values = [100 / (1 + (overhead(row["runs"], label) or 0) / 100) for row in rows]
        axis.bar([i + offset for i in range(len(rows))], values, 0.4, label=label)
    axis.axhline(100, color="grey", linewidth=0.8)
    axis.set_xticks(range(len(rows)), [row["name"] for row in rows], rotation=30, ha="right")
    axis.set_ylabel("requests/s, % of native (measured)")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")


def into_readme(text):
    path = HERE / "RESULTS.md"
    old = path.read_text()
    begin, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    path.write_text(f"{old[:begin]}\n{text}\n{old[end:]}")


def groups_of(options):
    """Groups of the comparison: with --file-systems each replica lies on another one."""
    kinds = options.file_systems
    return functools.partial(f.SpreadGroup, kinds=kinds.split(",")) if kinds else h.Group


def measure(out, work, options, compared, save):
    """Rows and what could not be measured; save() gets the rows so far, after each one."""
    rows, left_out = [], []
    for kind in all_kinds(options.only):
        try:
            h.need(*kind.programs)
            told = (compared.get(kind.name) if options.speed
                    else proof(out, work, kind, not options.quick, groups_of(options)))
            runs = [] if options.proof else speed(Place(out, work, "servers"), kind, options)
        except (h.CannotRun, h.Failure, OSError, subprocess.SubprocessError) as cause:
            print(f"left out: {kind.name}: {str(cause)[:400]}")
            left_out.append(kind.name)
            continue
        rows.append({"name": kind.name, "version": package_version(kind.version_of),
                     "limits": kind.differs, "runs": runs, "proof": told or
                     {"equal": 0, "of": 0, "bytes": 0, "failures": []}})
        save(rows)
    return rows, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=str(HERE.parent / "out/release"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="",
                        help="a regular expression: the kinds whose name it finds")
    parser.add_argument("--quick", action="store_true", help="the scenarios' small loads")
    parser.add_argument("--proof", action="store_true", help="compare only, no speed")
    parser.add_argument("--file-systems", metavar="KIND,...", default="",
                        help="in the comparison the replicas lie on these file systems, one each: "
                        + ", ".join(f.KINDS))
    parser.add_argument("--speed", action="store_true", help="speed only, no comparison")
    parser.add_argument("--readme", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--compared", type=pathlib.Path, metavar="FILE",
                        help="with --speed: the comparison of an earlier --proof, in "
                        "<out>/bench/servers-compared.json")
    options = parser.parse_args()
    h.end_at_sigterm()
    out = pathlib.Path(options.out).resolve()
    about = machine()
    earlier = json.loads(options.compared.read_text()) if options.compared else None
    compared = {row["name"]: row["proof"] for row in earlier["rows"]} if earlier else {}
    results = out / "bench"
    results.mkdir(parents=True, exist_ok=True)
    name = "servers-compared" if options.proof else "servers"

    def save(rows):
        (results / f"{name}.json").write_text(json.dumps({"machine": about, "rows": rows},
                                                         indent=1))

    with tempfile.TemporaryDirectory(prefix="crane-servers-", dir="/var/tmp") as work:
        path = pathlib.Path(work)
        path.chmod(0o755)
        rows, left_out = measure(out, path, options, compared, save)
    text = table(rows) + said_of(about, earlier)
    print(f"{about['processor']}, {about['processors']} processors, {about['memory_mib']} MiB, "
          f"Linux {about['kernel']}; {m.CLIENTS} clients; clients, replicas and load share them\n\n"
          f"{text}")
    (results / f"{name}.md").write_text(text + "\n")
    if not options.proof:
        plot(rows, results / "servers.png")
    if options.readme and not left_out and not options.only:
        into_readme(text)
    return 0 if rows and not left_out and not any(r["proof"]["failures"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
