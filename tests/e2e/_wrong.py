# SPDX-License-Identifier: Apache-2.0
"""Wrong uses of Crane's programs: how one is run, and what is checked of each.

A use has its exit status, a message with the object, the cause and what to do, and no leftovers: no
process, mount, control group or shared memory of it, and no file except the logs that its message
names. If a group runs beside it, that group's processes are unchanged.
"""
import os
import pathlib
import re
import shutil
import subprocess

import _harness as h

TIMEOUT = 60
ENDING_SECONDS = 10
MARK = "CRANE_WRONG_USE"
# It removes states of the machine's files that no group uses; it belongs to no group and may take
# long (checkpoint/machine_files.cc).
CLEANER = "crane-old-files"
# What a group that ended because of its server or machine leaves to be read.
LOGS = re.compile(r"/(r\d+(/[a-z_]+\.(log|out|jsonl?))?|runtime\.log|exit_status|[a-z]+\.json)$")


def marked(mark):
    """The living processes that inherited this mark."""
    found, wanted = [], f"{MARK}={mark}".encode()
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (place / "environ").read_bytes().split(b"\0") \
                    and h.alive(int(place.name)) and h.name_of(place.name) != CLEANER:
                found.append(int(place.name))
        except OSError:
            continue
    return found


def files_below(place):
    return {str(path) for path in place.rglob("*")}


def control_groups(name):
    return [f"{place}/{one}" for place, below, _ in os.walk("/sys/fs/cgroup")
            for one in below if f".crane.{name}." in one + "."]


class Uses:
    def __init__(self, scenario):
        self.scenario, self.rows = scenario, []
        self.container = h.can_contain()
        self.home = scenario.work / "groups"
        self.home.mkdir()
        self.tools = scenario.out
        self.name = f"wrong-{os.getpid()}"
        self.living = None   # the Group beside which the uses run

    def prefix(self, home=None, options=(), container=None):
        contained = self.container if container is None else container
        return [str(self.tools / "crane-run"), "--dir", str(home or self.home), "--name",
                self.name, *([] if contained else ["--no-container"]), *options]

    def run(self, what, status, words, command=None, before=None, options=None, user=None,
            home=None, container=None, logs=False):
        """One use of crane-run."""
        line = (before or []) + self.prefix(home, options or [], container)
        self.use(what, status, words, line + ["--"] + (command or ["sleep", "60"]), user=user,
                 logs=logs)

    def ctl(self, what, status, words, *line, home=None, **more):
        """One use of crane-ctl."""
        self.use(what, status, words,
                 [str(self.tools / "crane-ctl"), "--dir", str(home or self.home), *map(str, line)],
                 **more)

    def tool(self, what, status, words, program, *line, **more):
        self.use(what, status, words, [str(self.tools / program), *map(str, line)], **more)

    def use(self, what, status, words, line, user=None, logs=False):
        """Runs the line and records (what, status, message). `logs`: it leaves logs, which its
        message names."""
        words = [words] if isinstance(words, str) else words
        mark = f"{os.getpid()}.{len(self.rows)}"
        more = {"user": user, "group": user, "extra_groups": []} if user else {}
        before, pids = self.everything(), self.pids()
        try:
            done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                                  stdin=subprocess.DEVNULL, timeout=TIMEOUT, text=True,
                                  errors="replace", env={**os.environ, MARK: mark}, check=False,
                                  **more)
            got, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            got, text = None, (late.stdout or b"").decode(errors="replace")
        said = re.findall(r"^(?:\d{4}-\S+ )?crane-[a-z]+: (.*)", text, re.M)
        message = next((s for s in reversed(said) if ";" in s), said[-1] if said else text[-200:])
        self.rows.append((what, got, message))
        good = got == status and all(w in text for w in words) and ";" in message
        left = self.left(mark, before, logs, text)
        if pids != self.pids():
            left.append(f"another process of {self.living.name}: {pids} {self.pids()}")
        self.scenario.check(good and not left, f"{what}: status {status}, says {', '.join(words)}, "
                            "leaves nothing", f"status {got}: {text[-800:]} left: {left}")
        if logs:
            shutil.rmtree(self.home / self.name, ignore_errors=True)

    def shared(self):
        return {str(p) for p in pathlib.Path("/dev/shm").glob(f"crane.{self.name}*")}

    def pids(self):
        """The processes of the group beside which the uses run."""
        state = self.living.state() if self.living else None
        return state and [(r["node_pid"], r["server_pid"]) for r in state["replicas"]]

    def everything(self):
        """The files, mounts, control groups and shared memory of this scenario."""
        mounts = pathlib.Path("/proc/mounts").read_text()
        return {*files_below(self.scenario.work), *self.shared(), *control_groups(self.name),
                *(f"mount {m}" for m in re.findall(r"^\S+ (\S+)", mounts, re.M)
                  if m.startswith(f"{self.home}/{self.name}/"))}

    def left(self, mark, before, logs, text):
        """What a use left behind; waits for processes that are ending."""
        base = f"{self.home}/{self.name}"
        ours = str(self.living.dir) if self.living else None

        def expected(thing):
            if logs and base in text and (thing == base or LOGS.fullmatch(thing[len(base):])):
                return True
            return ours is not None and thing.startswith(ours)   # a group that runs writes there

        def remains():
            found = [f"process {pid} {h.name_of(pid)} {h.process_stat(pid)}"
                     for pid in marked(mark)]
            return found + [x for x in sorted(self.everything() - before) if not expected(x)]
        try:
            h.wait_until(lambda: not remains(), ENDING_SECONDS, "")
        except h.Failure:
            return remains()
        return []

    def table(self):
        print("\n| wrong use | exit status | message |\n| --- | ---: | --- |")
        for what, status, message in self.rows:
            print(f"| {what} | {status} | {message.replace('|', '/')} |")
        print(flush=True)
        # A use that is only looked at by a dry run is not another one.
        distinct = {re.sub(r" ?--dry-run:? ?", "", what) for what, _, _ in self.rows}
        self.scenario.check(len(distinct) >= 60, "at least 60 distinct wrong uses",
                            str(len(distinct)))
