#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one experiment: `eval/run.py NAME [--out OUT] [options]`; without a name it lists all.

An experiment is a module of eval/experiments or eval/papers. It declares

  __doc__          what is measured, and how
  OPTIONS          {name: (default, help)}, besides those of eval/measure/session.py
  PROGRAMS         what must be installed
  QUIET            "required": nothing is measured on a busy machine; "awaited": it is waited for;
                   "noted": the report is printed
  measure(x)       measures; x.add(row) for each row, x is a Session
  text(rows, x)    the table (optional where a program prints its own)
  panes(rows, x)   the panes of the figure (optional)
  PASS_ON          True: options that are not known here are x.options.rest
  problems(rows, x)  lines that make the exit status 1 (optional)
  status(rows, x)  an exit status, beside that of missing rows (optional)
  quiet_wanted(options), result_name(options)  QUIET and NAME where they depend on options

or, if it judges instead of measuring, scenario(x) with OPTIONS of argparse, as in tests/e2e. Rows,
table and figure are <out>/bench/NAME.{json,md,png}. An experiment may be made in parts: --keep
leaves the rows that an earlier part measured. Exit status: 1 when something is missing or wrong,
75 when the machine was busy, 77 when a program is not installed.
"""
import argparse
import importlib.util
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = (HERE / "experiments", HERE / "papers")
for folder in (HERE.parent / "tests" / "e2e", HERE / "papers", HERE / "measure"):
    sys.path.insert(0, str(folder))
import _harness as h  # noqa: E402
import quiet  # noqa: E402
import session  # noqa: E402
import tables  # noqa: E402


def experiments():
    """{name: file} of all."""
    return {path.stem.replace("_", "-"): path for folder in FOLDERS
            for path in sorted(folder.glob("*.py")) if "def measure(" in path.read_text()
            or "def scenario(" in path.read_text()}


def load(name):
    """The module; it is no part of sys.path, where scenarios have the same names."""
    path = experiments()[name.replace("_", "-")]
    spec = importlib.util.spec_from_file_location(f"experiment_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parse(module, name, words):
    parser = argparse.ArgumentParser(prog=f"run.py {name}", description=module.__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    session.add_options(parser, {**session.OPTIONS, **getattr(module, "OPTIONS", {})})
    if not getattr(module, "PASS_ON", False):
        return parser.parse_args(words)
    options, rest = parser.parse_known_args(words)
    options.rest = rest
    return options


def quiet_wanted(module, options):
    return (module.quiet_wanted(options) if hasattr(module, "quiet_wanted")
            else getattr(module, "QUIET", ""))


def conduct(module, x):
    """Measures, prints and keeps; the exit status."""
    wanted = quiet_wanted(module, x.options)
    if wanted and not x.look_at_machine(wanted):
        return quiet.EXIT_NOT_QUIET
    print(session.machine_text(x.about), flush=True)
    broken = ""
    try:
        h.need(*getattr(module, "PROGRAMS", ()))
        module.measure(x)
    except session.CAUSES as failure:
        if isinstance(failure, h.CannotRun) and not x.rows:
            print(f"{x.name}: {failure}", file=sys.stderr)
            return 77
        broken = f"broken off: {failure}"
    return report(module, x, broken)


def report(module, x, broken=""):
    may_be_busy = x.options.anyway or quiet_wanted(module, x.options) != "required"
    status = session.status_of(x.rows, x.left_out, may_be_busy)
    wrong = getattr(module, "problems", lambda *_: [])(x.rows, x) + ([broken] if broken else [])
    if x.rows:
        if hasattr(module, "text"):
            text = module.text(x.rows, x)
            print(f"\n{text}")
            x.path(".md").write_text(text + "\n")
        print(f"\nraw data: {x.file}")
        if hasattr(module, "panes") and (panes := module.panes(x.rows, x)):
            tables.figure(x.path(".png"), panes)
        status = max(status, module.status(x.rows, x) if hasattr(module, "status") else 0)
    for line in wrong:
        print(f"PROBLEM {line}", file=sys.stderr)
    return 1 if wrong else status


def main():
    names = experiments()
    if len(sys.argv) < 2 or sys.argv[1].replace("_", "-") not in names:
        print(__doc__.splitlines()[0])
        for name in names:
            print(f"  {name:<20}{(load(name).__doc__ or '').splitlines()[0]}")
        return 0 if len(sys.argv) < 2 else 2
    name = sys.argv.pop(1).replace("-", "_")
    module = load(name)
    if hasattr(module, "scenario"):
        return h.run_scenario(name, module.scenario, **module.OPTIONS)
    options = parse(module, name, sys.argv[1:])
    h.end_at_sigterm()
    with tempfile.TemporaryDirectory(prefix="crane-", dir="/var/tmp") as work:
        pathlib.Path(work).chmod(0o755)
        named = module.result_name(options) if hasattr(module, "result_name") else name
        return conduct(module, session.Session(named, options, pathlib.Path(work)))


if __name__ == "__main__":
    sys.exit(main())
