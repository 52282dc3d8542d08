#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test and ends with one line: `N passed, N failed`.

Kinds. Tests with real processes and time limits run one by one: unit tests, the virtual machine,
interposition, end to end. Tests that only compute fill the processors meanwhile, at the lowest
priority: lints, the tests of eval, the model, the simulator's test. `--long` runs the sanitizer
build, its tests, the fuzz targets, the virtual machine and the longest scenarios.
  lint       tests/lint/*.py                                     each counts one
  unit       out/<variant>/test-<area>, Catch2                   each TEST_CASE counts one
  eval       tests/eval/*_test.py, the pure parts of measuring programs: each case counts one
  model      tests/model/run_model.py, spin on a model of the takeover: each check counts one
  sanitized  unit tests of a sanitizer build (--sanitized, --areas), few seeds
  vm         out/<variant>/test-verbs, Catch2, in a virtual machine with soft-RoCE (tests/vm/vm.py):
             each TEST_CASE counts one; tests/e2e/rdma.py in another; a small bench-strategies in a
             third: all commit rules commit over RDMA
  fuzz       tests/fuzz/<format>_fuzz.cc: seeds and a few thousand mutations, with the sanitizer
             build if there is one (`make fuzz` runs them with libFuzzer)
  interpose  tests/interpose/<name>.c, a foreign program under Crane;
             tests/interpose/{traps,posix}/*.c, small programs with one behaviour each, a line per
             area, each counts one
  e2e        tests/e2e/<scenario>.py --out OUT: exit 0 passed, 77 skipped; a scenario that checks
             several things may end with its own line `N passed, N failed`; accept_*.py only runs
             in `make accept`
A test that cannot run here prints `SKIPPED: <name>: <why>`; it is counted as skipped by that name.
Every failure is printed with the command that replays it.

Interposition programs: lines of the program's first comment steer the run (steering.py):
  // solo: <options of crane-solo>   default: none; one replica without consensus
  // run: <options of crane-run>     instead of crane-solo
  // args: <arguments>
  // exit: <status>                  default: 0
  // native: no                      the program only makes sense under Crane
  // says: <regular expression>      small programs: matches between 1 and 20 lines of the log
A program runs twice under Crane. Status and standard output must be equal both times, and equal to
<name>.expect if there is one, else (without `// native: no`) to those of the native run.
Small programs run natively, then four times under Crane: in serial and parallel mode (the latter
not with `// parallel: no`), each undisturbed and perturbed.  Status and output must equal the
native run's, and the schedule hashes of one mode must be equal.
"""
import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

import steering

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASE = re.compile(r'<TestCase name="([^"]*)"|<OverallResult success="(true|false)"')
TOTALS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$")
SKIPPED = re.compile(r"^SKIPPED: (.*)$", re.M)
TAIL_LINES = 60
TELLING, TELLING_LINES = re.compile(r"^FAIL |\[(error|critical)\]"), 12
BUILD_SECONDS = 1800
E2E_SECONDS = 900   # limit for one scenario; most take 5 to 60, linear builds a program
SAID_MOST = 20  # most lines of the log that `says` may match
NATIVE_ATTEMPTS = 3
BESIDE = 2          # programs without time limits that run at the same time
FILLERS_WAIT = 4    # factor for a filler's time limit, as it may wait for a processor
LANE = threading.local()
COMPUTES, ALONE = {"sim"}, {"fabric"}  # areas of unit tests
REPORT_MARK = "=== report of Catch2"
# Scenarios that `make test` leaves to `make test-long`, because they take longest; shorter ones
# check the same rules in small.
LONG = set("""analysis backup branch_slices checkpoint_faults checkpoints connections cut_logs
              endless files_hold fleet full_disk hand_over hosts_run hosts_upgrade idle_log
              installed linear monitoring moved outbound page production racy racy_live recovers
              scheduled_backup shipped sliced_programs slices sshd stories storm upgrade""".split())
# Without the idle group's: processor time means nothing on an emulated machine.
VM_SCENARIOS = ["rdma"]
VM_CASES = [",".join(f"[{tag}]~[idle]" for tag in ("fence", "fabric", "driver", "strategies"))]


class Tally:
    """Counts results, and prints failures as they happen."""

    def __init__(self):
        self.passed, self.failures, self.skips = 0, [], []
        self.lock = threading.RLock()  # held while the result of one program is reported

    def fail(self, name, replay, text=""):
        self.failures.append((name, replay))
        print(f"FAILED {name}\n  replay: {replay}", flush=True)
        lines = text.splitlines()
        # Failures and errors of nodes come first, wherever they are in the text.
        for line in [line for line in lines if TELLING.search(line)][:TELLING_LINES]:
            print(f"  ! {line}")
        for line in lines[-TAIL_LINES:]:
            print(f"  | {line}")
        sys.stdout.flush()

    def skip(self, what):
        self.skips.append(what)

    def done(self, name, passed, failed, seconds):
        state = f"{passed} passed" + (f", {failed} FAILED" if failed else "")
        print(f"  {name:<32} {state} ({seconds:.1f} s)", flush=True)


def be_filler():
    """Gives this process and its children a processor only when no other process wants it."""
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write("19")  # otherwise its session gets a normal share of the processors


def fills():
    return getattr(LANE, "fills", False)


def set_lane(filler):
    LANE.fills = filler


def run(command, limit, env=None):
    """Returns (status or None on time-out, output). Kills the whole process group at the end."""
    limit *= FILLERS_WAIT if fills() else 1
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=be_filler if fills() else None,
                                   env={**os.environ, **(env or {})})
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            process.terminate()  # Catch2 names the running test
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        return status, out.read()


def describe(status):
    if status is None:
        return "timed out"
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


class Runner:
    def __init__(self, options):
        self.options, self.tally = options, Tally()
        self.out = pathlib.Path(options.out)
        self.wrap = ["setarch", "-R"] if options.variant == "tsan" else []

    # --- lints ---------------------------------------------------------------------------------
    def lint(self):
        self.beside(self.lints())

    def beside(self, programs):
        """Runs programs, given as arguments of simple(), a few at a time."""
        with concurrent.futures.ThreadPoolExecutor(BESIDE, initializer=set_lane,
                                                   initargs=(fills(),)) as pool:
            for done in [pool.submit(self.simple, *program) for program in programs]:
                done.result()

    def everything(self):
        """Tests with real processes and time limits run one by one. Tests that only compute fill
        the processors meanwhile, which shortens the whole run."""
        with concurrent.futures.ThreadPoolExecutor(1, initializer=set_lane,
                                                   initargs=(True,)) as pool:
            fillers = pool.submit(self.fillers)
            self.timed_units()
            self.interpose()
            self.scenarios(lambda name: name not in LONG)
            fillers.result()

    def fillers(self):
        self.beside([*self.lints(), *self.eval_tests(), self.MODEL])
        for area in sorted(self.areas() & COMPUTES):
            self.catch2(area)

    def long(self):
        """What everything() leaves out."""
        if self.options.build_sanitized:
            status, text = run(["sh", "-c", self.options.build_sanitized], BUILD_SECONDS)
            if status != 0:
                self.tally.fail(f"sanitized ({describe(status)})", self.options.build_sanitized,
                                text)
        self.sanitized()
        self.fuzz()
        self.scenarios(lambda name: name in LONG)
        self.vm()

    def lints(self):
        library, programs = self.out / "libcrane.so", []
        for script in sorted((ROOT / "tests/lint").glob("*.py")):
            command = ["python3", str(script.relative_to(ROOT))]
            if script.stem == "symbols":
                if not (ROOT / "runtime/preload/ground/interposed.def").exists():
                    continue
                command += ["runtime/preload/ground/interposed.def",
                            "runtime/preload/ground/interposed_hosts.def",
                            "runtime/preload/ground/interposed_terminals.def",
                            "runtime/preload/ground/interposed_machine.def", str(library)]
            programs.append((f"lint/{script.stem}", command, 300))
        return programs

    def simple(self, name, command, limit, env=None):
        """Runs one program that passes or fails as a whole, or prints its own totals last."""
        if not self.wanted(name):
            return
        begin = time.monotonic()
        status, text = run(command, limit, env)
        skips = SKIPPED.findall(text)
        with self.tally.lock:
            self.tell(name, command, status, text, skips, begin)

    def tell(self, name, command, status, text, skips, begin):
        totals = TOTALS.search(text.rstrip())
        passed, failed = int(status in (0, 77) and not skips), int(status not in (0, 77))
        if totals:
            passed, failed = int(totals[1]), max(int(totals[2]), failed)
        elif status == 77:
            passed, skips = 0, skips or [f"{name}: {(text.strip().splitlines() or ['?'])[-1]}"]
        for what in skips:
            self.tally.skip(what)
        self.tally.passed += passed
        for _ in range(failed):
            self.tally.fail(f"{name} ({describe(status)})", shlex.join(command), text)
            text = ""
        self.tally.done(name, passed, failed, time.monotonic() - begin)

    # --- Python ---------------------------------------------------------------------------------
    def eval(self):
        self.beside(self.eval_tests())

    def eval_tests(self):
        return [(f"eval/{path.stem}", ["python3", str(path.relative_to(ROOT))], 60)
                for path in sorted((ROOT / "tests/eval").glob("*_test.py"))]

    MODEL = ("model", ["python3", "tests/model/run_model.py"], 300)

    def model(self):
        self.simple(*self.MODEL)

    # --- Catch2 --------------------------------------------------------------------------------
    def areas(self):
        areas = {p.parent.name for p in (ROOT / "tests/unit").glob("*/*.cc")}
        areas |= {a for a in ("sim", "fabric", "regress")
                  if any(p.name != "crane_sim.cc" for p in (ROOT / "tests" / a).glob("*.cc"))}
        return areas

    def unit(self):
        areas = self.areas()
        # Tests that only compute run beside the others; those in ALONE run without any other.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            computes = [pool.submit(self.catch2, area) for area in sorted(areas & COMPUTES)]
            for area in sorted(areas - COMPUTES - ALONE):
                self.catch2(area)
            for done in computes:
                done.result()
        for area in sorted(areas & ALONE):
            self.catch2(area)

    def timed_units(self):
        for area in sorted(self.areas() - COMPUTES):
            self.catch2(area)

    def sanitized(self):
        """The unit tests of a sanitizer build, with few seeds because it is slow."""
        if not self.options.sanitized:
            return
        out = pathlib.Path(self.options.sanitized)
        for area in self.options.areas.split():
            self.catch2(area, out, f"sanitized/test-{area}", quick=True)

    def catch2(self, area, out=None, name=None, quick=False):
        out, name = out or self.out, name or f"test-{area}"
        program = out / f"test-{area}"
        if not self.wanted(name):
            return
        if not program.exists():
            self.tally.fail(f"{name}: not built", f"make OUT={out} test-{area}")
            return
        begin = time.monotonic()
        env = {"CRANE_TEST_QUICK": "1"} if quick or self.options.quick else {}
        with tempfile.NamedTemporaryFile("r", suffix=".xml", errors="replace") as report:
            command = self.wrap + [str(program)]
            status, text = run(command + ["-r", "xml", "-o", report.name],
                               self.options.unit_timeout, env)
            xml = report.read()
        steered = ["env", *(f"{k}={v}" for k, v in env.items())] if env else []
        with self.tally.lock:
            self.cases(name, steered + command, status, text, xml, begin)

    def cases(self, name, command, status, text, xml, begin):
        """Counts the cases of a Catch2 report."""
        results, current = [], None
        for m in CASE.finditer(xml):
            if m[1] is not None:
                if current:
                    results.append((current, False))
                current = unescape(m[1])
            elif current:
                results.append((current, m[2] == "true"))
                current = None
        if current:
            results.append((current, False))
        failed = [case for case, good in results if not good]
        skips = SKIPPED.findall(text)
        for what in skips:
            self.tally.skip(what)
        passed = max(0, len(results) - len(failed) - len(skips))
        self.tally.passed += passed
        for case in failed:
            pattern = re.sub(r"([,\[\]\\*])", r"\\\1", case)
            self.tally.fail(f"{name}: {case}", shlex.join(command + [pattern]),
                            text + failure_text(xml, case))
        if status != 0 and not failed:
            failed = [name]
            self.tally.fail(f"{name}: {describe(status)}", shlex.join(command), text + xml[-2000:])
        self.tally.done(name, passed, len(failed), time.monotonic() - begin)

    # --- virtual machine -----------------------------------------------------------------------
    def vm(self):
        """Tests that need RDMA devices: test-verbs in one guest, each scenario in another, and a
        small benchmark of the commit rules."""
        self.vm_cases()
        self.vm_programs()

    def vm_programs(self):
        for scenario in VM_SCENARIOS:
            # The scenario's files need tmpfs, because the guest's root file system is read-only.
            script = f"mount -t tmpfs none /var/tmp && mount -t tmpfs none /dev/shm && " \
                     f"python3 tests/e2e/{scenario}.py --out {shlex.quote(str(self.out.resolve()))}"
            self.simple(f"vm/{scenario}", ["python3", "tests/vm/vm.py", "--out", str(self.out),
                                           "--timeout", "400", "--", "bash", "-c", script], 800)

        bench = self.out / "bench-strategies"
        script = f"mount -t tmpfs none /dev/shm && {shlex.quote(str(bench.resolve()))} " \
                 "--fabric verbs --runs 1 --blocks 1 --ops 5"
        self.simple("vm/bench-strategies", ["python3", "tests/vm/vm.py", "--out", str(self.out),
                                            "--timeout", "200", "--", "bash", "-c", script], 600)

    def vm_cases(self):
        name, program = "vm/test-verbs", self.out / "test-verbs"
        if not self.wanted(name):
            return
        if not program.exists():
            self.tally.fail(f"{name}: not built", f"make OUT={self.out} test-verbs")
            return
        begin, limit = time.monotonic(), self.options.vm_timeout
        command = ["python3", "tests/vm/vm.py", "--out", str(self.out), "--timeout", str(limit),
                   "--", str(program.resolve()), *VM_CASES]
        inside = shlex.join(command[command.index("--") + 1:])
        script = f"timeout -s TERM {limit - 60} {inside} -r xml -o /tmp/report; status=$?; " \
                 f"echo; echo {REPORT_MARK}; cat /tmp/report; exit $status"
        status, text = run(command[:command.index("--") + 1] + ["bash", "-c", script], limit + 400)
        text, _, xml = text.partition(REPORT_MARK)
        if status == 77:
            self.simple(name, ["bash", "-c", f"echo {shlex.quote(text.strip())}; exit 77"], 10)
            return
        for line in text.splitlines():  # measurements that belong to the result
            if line.startswith("  "):
                print(f"  {line}")
        self.cases(name, command, status, text, xml, begin)

    def fuzz(self):
        self.beside(self.fuzz_targets())

    def fuzz_targets(self):
        programs = []
        out = pathlib.Path(self.options.sanitized or self.out)
        for source in sorted((ROOT / "tests/fuzz").glob("*_fuzz.cc")):
            name = "fuzz-" + source.stem.removesuffix("_fuzz").replace("_", "-")
            if not self.wanted(name):
                continue
            if not (out / name).exists():
                self.tally.fail(f"{name}: not built", f"make OUT={self.out} fuzzers")
                continue
            programs.append((name, [str(out / name), "--runs", "5000"], 120))
        return programs

    # --- interposition programs ----------------------------------------------------------------
    def interpose(self):
        for source in sorted((ROOT / "tests/interpose").glob("*.c*")):
            if source.suffix in (".c", ".cc") and not source.name.startswith("crane_"):
                self.stranger(source)
        for folder in ("traps", "posix"):
            sources = sorted((ROOT / "tests/interpose" / folder).glob("*.c*"))
            print(f"  interpose/{folder}: {len(sources)} programs, a behaviour each", flush=True)
            for area, members in itertools.groupby(sources, lambda p: p.stem.split("_")[0]):
                self.small_ones(f"interpose/{folder}/{area}", folder, list(members))

    def small_ones(self, area, folder, sources):
        sources = [s for s in sources if self.wanted(f"interpose/{folder}/{s.stem}")]
        if not sources:
            return
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            verdicts = list(pool.map(lambda s: self.small_one(folder, s), sources))
        failed = [v for v in verdicts if v]
        for name, command, text in failed:
            self.tally.fail(name, shlex.join(command), text)
        self.tally.passed += len(sources) - len(failed)
        self.tally.done(area, len(sources) - len(failed), len(failed), time.monotonic() - begin)

    def small_one(self, folder, source):
        """None, or (name, command, problem)."""
        name, program = f"interpose/{folder}/{source.stem}", self.out / "interpose" / folder
        program, solo = program / source.stem, self.out / "crane-solo"
        say = steering.words_of(source)
        if not program.exists() or not solo.exists():
            return name, ["make", f"OUT={self.out}", "all"], "not built\n"
        wanted, text = int(say.get("exit", "0")), None
        if say.get("native") != "no":
            # A native run depends on the machine: a signal may come before the call that it should
            # interrupt.  It is enough that the native result is possible.
            for _ in range(NATIVE_ATTEMPTS):
                status, text, errors = self.standard_output([str(program)])
                status = 128 - status if status is not None and status < 0 else status
                if status == wanted:
                    break
            if status != wanted:
                return f"{name}, natively ({describe(status)})", [str(program)], text + errors
        for mode in [[], ["--parallel"]][:1 if say.get("parallel") == "no" else 2]:
            hashes = []
            for disturbance in ([], ["--perturb", "7"]):
                command = [str(solo), "--hash", *mode, *disturbance, "--", str(program)]
                status, got, errors = self.standard_output(command)
                text = got if text is None else text
                hashes += re.findall(r"^schedule .*$", errors, re.M)
                times = len(re.findall(f"^crane: .*{say.get('says', '')}", errors, re.M))
                if "says" in say and not 1 <= times <= SAID_MOST:
                    return f"{name}: {times} lines of the log match `says`", command, errors
                if status != wanted or got != text:
                    return (f"{name} ({describe(status)}, wanted {wanted})", command,
                            f"--- standard output\n{got}--- wanted\n{text}"
                            f"--- standard error\n{errors}")
            if len(set(hashes)) != 1:
                return f"{name}: schedules differ", command, "\n".join(hashes) + "\n"
        return None

    def stranger(self, source):
        name, program = f"interpose/{source.stem}", self.out / "interpose" / source.stem
        if not self.wanted(name):
            return
        say = steering.words_of(source)
        words = [str(program)] + shlex.split(say.get("args", ""))
        runner = self.out / ("crane-run" if "run" in say else "crane-solo")
        steer = shlex.split(say.get("run", say.get("solo", "")))
        command = [str(runner), *steer, "--", *words]
        if not program.exists() or not runner.exists():
            self.tally.fail(f"{name}: not built", f"make OUT={self.out} all")
            return
        begin, expected = time.monotonic(), source.with_suffix(".expect")
        wanted = (int(say.get("exit", "0")), expected.read_text() if expected.exists() else None)
        if wanted[1] is None and say.get("native") != "no":
            wanted = (wanted[0], self.standard_output(words)[1])
        runs = [self.standard_output(command) for _ in range(2)]
        for got in runs:
            if got[0] != wanted[0] or got[1] != (runs[0][1] if wanted[1] is None else wanted[1]):
                self.tally.fail(f"{name} ({describe(got[0])}, wanted {wanted[0]})",
                                shlex.join(command),
                                f"--- standard output\n{got[1]}--- wanted\n{wanted[1]}"
                                f"--- standard error\n{got[2]}")
                self.tally.done(name, 0, 1, time.monotonic() - begin)
                return
        self.tally.passed += 1
        self.tally.done(name, 1, 0, time.monotonic() - begin)

    def standard_output(self, command):
        with tempfile.TemporaryFile("w+", errors="replace") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT,
                                       stdin=subprocess.DEVNULL, text=True, errors="replace",
                                       start_new_session=True)
            try:
                text, _ = process.communicate(timeout=60)
                status = process.returncode
            except subprocess.TimeoutExpired:
                process.terminate()
                status = None
                try:
                    text, _ = process.communicate(timeout=5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    text, _ = process.communicate()
            errors.seek(0)
            return status, text, errors.read()

    # --- scenarios -------------------------------------------------------------------------------
    def e2e(self):
        self.scenarios(lambda name: True)

    def scenarios(self, belongs):
        for scenario in sorted((ROOT / "tests/e2e").glob("[!_]*.py")):
            name = scenario.stem
            if name in VM_SCENARIOS or name.startswith("accept_") or not belongs(name):
                continue
            self.simple(f"e2e/{name}", ["python3", str(scenario.relative_to(ROOT)),
                                        "--out", str(self.out)], E2E_SECONDS)

    def wanted(self, name):
        return not self.options.names or any(n in name for n in self.options.names)

    def finish(self):
        for what in self.tally.skips:
            print(f"SKIPPED {what}")
        if self.tally.failures:
            print("\nfailed:")
            for name, replay in self.tally.failures:
                print(f"  {name}\n    {replay}")
        skipped = f", {len(self.tally.skips)} skipped" if self.tally.skips else ""
        print(f"{self.tally.passed} passed, {len(self.tally.failures)} failed{skipped}")
        return 1 if self.tally.failures else 0


def unescape(text):
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, char)
    return text


def failure_text(xml, case):
    """The report's part about one case: failed expressions and messages, without the mark-up."""
    begin = unescape(xml).find(f'<TestCase name="{case}"')
    part = unescape(xml)[begin:].split("</TestCase>")[0] if begin >= 0 else ""
    mark_up = re.compile(r"\s*</?(?:Section|OverallResult|TestCase|Original|Expanded|Expression"
                         r"|Info|Failure)\b[^>]*>\s*$")
    kept = [line.strip() for line in part.splitlines() if line.strip() and not mark_up.match(line)]
    return "\n".join(kept[-30:]) + "\n"


def main():
    # In the background of a shell or under nohup, all programs would ignore these signals.
    for ignored in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="out/release")
    parser.add_argument("--variant", default="release")
    parser.add_argument("--full", action="store_true", help="everything (the default)")
    parser.add_argument("--long", action="store_true",
                        help="only the long tests that --full leaves out")
    parser.add_argument("--quick", action="store_true", help="lints and unit tests, few seeds")
    parser.add_argument("--only", choices=["lint", "eval", "unit", "model", "sanitized", "fuzz",
                                           "vm", "interpose", "e2e"])
    parser.add_argument("--sanitized", default="", help="build tree of a sanitizer variant")
    parser.add_argument("--build-sanitized", default="", help="the command that builds it")
    parser.add_argument("--areas", default="", help="its unit tests to run")
    parser.add_argument("--unit-timeout", type=int, default=600)
    parser.add_argument("--vm-timeout", type=int, default=540)
    parser.add_argument("names", nargs="*", help="only tests with one of these in their name")
    options = parser.parse_args()
    runner = Runner(options)
    kinds = (["lint", "eval", "unit"] if options.quick else
             ["long"] if options.long else ["everything"])
    for kind in [options.only] if options.only else kinds:
        getattr(runner, kind)()
    return runner.finish()


sys.exit(main())
