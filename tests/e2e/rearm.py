#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcrane.so restores the state that CRIU does not.
tests/interpose/restored.c runs under crane-solo and checks, in all its threads and processes, that
its system calls are trapped, RDTSC faults and the vDSO is Crane's. At quiescence the real CRIU
dumps it, and it continues to its end; then it is restored from the dump. Output and schedule hash
of the restored run equal those of a run that was never dumped. If the processes are not notified of
the restore, the program must detect that; otherwise this test would prove nothing.

CRIU is CRANE_CRIU, or OUT/criu/criu; without it this scenario is skipped."""
import argparse
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 60


def criu_program(out):
    given = os.environ.get("CRANE_CRIU")
    path = pathlib.Path(given) if given else out / "criu/criu"
    if not os.access(path, os.X_OK):
        print(f"{path} is not there: no CRIU")
        sys.exit(77)
    if os.geteuid() != 0:
        print("CRIU needs root")
        sys.exit(77)
    return path


def schedule(text):
    found = re.search(r"^schedule .*$", text, re.M)
    return found[0] if found else text[-2000:]


class Case:
    def __init__(self, out, criu, work, mode, index):
        self.out, self.criu, self.work, self.mode = out, criu, work, mode
        self.name = f"{'parallel' if mode else 'serial'}, saved after entry {index}"
        self.index = index
        self.printed, self.images = work / "stdout", work / "images"
        self.images.mkdir()
        self.program = [str(out / "interpose/restored"), "looks"]

    def solo(self, *options, program=()):
        """A crane-solo whose program's output is a plain file, as CRIU requires."""
        with open(self.printed, "a") as printed, open(self.work / "stderr", "w") as errors:
            return subprocess.Popen(
                [str(self.out / "crane-solo"), "--hash", *self.mode, *options, "--", *program],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=errors, cwd=self.work)

    def end(self, solo):
        """Returns (status, the program's output, schedule)"""
        try:
            status = solo.wait(LIMIT)
        except subprocess.TimeoutExpired:
            solo.terminate()
            solo.wait(20)
            status = "timed out"
        return status, self.printed.read_text(), schedule((self.work / "stderr").read_text())

    def run_criu(self, *arguments):
        done = subprocess.run([str(self.criu), *arguments, "-D", str(self.images), "-v4",
                               "--network-lock", "skip"], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=LIMIT, check=False)
        if done.returncode != 0:
            log = (self.images / arguments[2]).read_text(errors="replace").splitlines()
            raise RuntimeError(f"criu {arguments[0]}: exit status {done.returncode}\n"
                               + "\n".join([line for line in log if "Error" in line] or log[-15:]))

    def asked(self, fifo, solo):
        """crane-solo's message when it holds the replica."""
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        text, deadline = b"", time.monotonic() + LIMIT
        while not text.endswith(b"\n"):
            if solo.poll() is not None or time.monotonic() > deadline:
                solo.kill()
                raise RuntimeError(f"it never became quiescent after entry {self.index}")
            select.select([reader], [], [], 0.05)
            try:
                text += os.read(reader, 4096)
            except BlockingIOError:
                pass
        os.close(reader)
        return text.decode().split()

    def save(self):
        """Runs, is saved and continues; returns its result."""
        fifos = [self.work / f"dump.{end}" for end in ("ask", "answer")]
        for fifo in fifos:
            os.mkfifo(fifo)
        solo = self.solo("--dump", f"{self.index}:{self.work / 'dump'}", program=self.program)
        pid, directory = self.asked(fifos[0], solo)
        self.run_criu("dump", "-o", "dump.log", "-t", pid, "--leave-running")
        self.directory = pathlib.Path(directory)
        subprocess.run(["cp", "-a", "--sparse=always", directory, str(self.work / "directory")],
                       check=True)
        shutil.copy2(self.printed, self.work / "printed")
        with open(fifos[1], "w") as answer:
            answer.write("+")
        return self.end(solo)

    def restore(self, *options):
        if self.directory.exists():
            shutil.rmtree(self.directory)
        subprocess.run(["cp", "-a", "--sparse=always", str(self.work / "directory"),
                        str(self.directory)], check=True)
        # The same file, with its length at that time.
        self.printed.write_bytes((self.work / "printed").read_bytes())
        log = self.images / "restore.log"
        command = (f"exec {self.criu} restore -o {log} -D {self.images} -v4 --network-lock skip")
        solo = self.solo("--resume", f"{self.directory}:{command}", *options)
        result = self.end(solo)
        if self.directory.exists():
            shutil.rmtree(self.directory)
        return result

    def check(self):
        """An error text, or None."""
        wanted = self.end(self.solo(program=self.program))
        if wanted[0] != 0 or "EXIT-SUCCESS" not in wanted[1]:
            return f"never saved: {wanted}"
        self.printed.unlink()
        saved = self.save()
        if saved != wanted:
            return f"saved, and left running: {saved}, not {wanted}"
        restored = self.restore()
        if restored[1:] != wanted[1:]:
            return f"restored: {restored}, not {wanted}"
        untold = self.restore("--unannounced")
        if "restored.c" not in untold[1] or "failed" not in untold[1]:
            return f"restored without notification: {untold}: this test would miss a failure"
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    out = pathlib.Path(parser.parse_args().out).resolve()
    criu = criu_program(out)
    failed = passed = 0
    for mode, index in (([], 4), ([], 8), ([], 14), (["--parallel"], 4), (["--parallel"], 9)):
        with tempfile.TemporaryDirectory(prefix="crane-rearm.", dir="/tmp") as work:
            case = Case(out, criu, pathlib.Path(work), mode, index)
            begin = time.monotonic()
            try:
                wrong = case.check()
            except RuntimeError as error:
                wrong = str(error)
            print(f"{case.name}: {wrong or 'restored run is equal'}"
                  f" ({time.monotonic() - begin:.1f} s)", flush=True)
            passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
