# SPDX-License-Identifier: Apache-2.0
"""Loads that run beside a group, each a context manager with the group's name. They begin before
the group, so that they affect its start and the containers of replicas that come back."""
import contextlib
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading

CHANGED = [pathlib.Path(f"{place}/crane-perturbed-{os.getpid()}") for place in
           ("/etc", "/var/lib", "/var/tmp")]
ROOT = pathlib.Path("/sys/fs/cgroup")
EVERY = 0.02         # s between two looks at the control groups
ROOM = 8 << 20       # bytes that a container may take before its memory is reclaimed
SHARE_US = 10000     # microseconds of each 100 ms


class Limits(threading.Thread):
    """Calls squeeze(control group) for each container again and again."""

    def __init__(self, group, controller, squeeze, release):
        super().__init__(daemon=True)
        self.pattern = f"lxc.payload.crane.{group}.r*"
        self.controller, self.squeeze, self.release = controller, squeeze, release
        self.ending = threading.Event()

    def places(self):
        """The containers' control groups, with one hierarchy per controller or one for all."""
        return [*(ROOT / self.controller).glob(self.pattern), *ROOT.glob(self.pattern)]

    def run(self):
        while not self.ending.wait(EVERY):
            for place in self.places():
                self.squeeze(place)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()
        for place in self.places():
            self.release(place)


def put(place, name, text):
    """Writes a setting if it exists: the container may be gone, or the kernel use another name."""
    with contextlib.suppress(OSError):
        if (place / name).exists():
            (place / name).write_text(f"{text}\n")


def number_in(place, name):
    with contextlib.suppress(OSError, ValueError):
        return int((place / name).read_text())
    return None


@contextlib.contextmanager
def beside(script):
    """Runs a shell's loop inside the context."""
    done = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        os.killpg(done.pid, signal.SIGKILL)
        done.wait()


@contextlib.contextmanager
def quiet(_group):
    yield


@contextlib.contextmanager
def busy(_group):
    """One busy process per processor."""
    with beside("for i in $(seq $(nproc)); do (while :; do :; done) & done; wait"):
        yield


@contextlib.contextmanager
def quota(group):
    """The servers run for a tenth of the time, and are stopped in between."""
    def squeeze(place):
        put(place, "cpu.cfs_quota_us", SHARE_US)
        put(place, "cpu.max", f"{SHARE_US} 100000")

    def release(place):
        put(place, "cpu.cfs_quota_us", -1)
        put(place, "cpu.max", "max 100000")
    with Limits(group, "cpu", squeeze, release):
        yield


@contextlib.contextmanager
def memory(group):
    """Takes file pages from the containers as soon as they are read, as on a machine with full
    memory. No container is refused memory, because the kernel would kill a process."""
    def squeeze(place):
        put(place, "memory.force_empty", 0)
        holds = number_in(place, "memory.current")
        if holds is not None:
            put(place, "memory.high", holds + ROOM)

    def release(place):
        put(place, "memory.high", "max")
    with Limits(group, "memory", squeeze, release):
        yield


@contextlib.contextmanager
def moved(group):
    """Moves each container's threads to other processors all the time, independently."""
    draw = random.Random(group)
    all_of_them = sorted(os.sched_getaffinity(0))

    def squeeze(place):
        put(place, "cpuset.cpus", draw.choice([*all_of_them, ",".join(map(str, all_of_them))]))

    def release(place):
        put(place, "cpuset.cpus", ",".join(map(str, all_of_them)))
    with Limits(group, "cpuset", squeeze, release):
        yield


@contextlib.contextmanager
def files(_group):
    """Creates, changes and removes files that the servers do not own. None is below /usr: a start
    would link all of it again, which is slow and is tested elsewhere (files_hold.py)."""
    for place in CHANGED:
        place.mkdir(exist_ok=True)
    loop = "; ".join(f"cd {place}; date > a; mv a b; cp b c; rm c" for place in CHANGED)
    try:
        with beside(f"while :; do {loop}; done"):
            yield
    finally:
        for place in CHANGED:
            shutil.rmtree(place)


class Upgrades(threading.Thread):
    """Runs one step of apt after the other, and finishes the last one."""
    AGAIN = ("libc6", "libssl3", "zlib1g", "libpcre2-8-0", "libslf4j-java")
    ANOTHER = "libjs-jquery-cookie"

    def __init__(self):
        super().__init__(daemon=True)
        self.ending = threading.Event()

    def run(self):
        steps = [("install", "--reinstall", name) for name in self.AGAIN]
        steps += [("install", self.ANOTHER), ("remove", self.ANOTHER)]
        for step in itertools.cycle(steps):
            if self.ending.is_set():
                return
            subprocess.run(["apt-get", "-qq", "-y", *step], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


@contextlib.contextmanager
def packages(_group):
    """Reinstalls libraries that the servers use, and installs and removes another package: the
    machine's files change as in an unattended upgrade."""
    upgrades = Upgrades()
    upgrades.start()
    try:
        yield
    finally:
        upgrades.ending.set()
        upgrades.join()


ALL = (quiet, busy, quota, memory, files, moved)
BY_NAME = (packages,)  # changes the machine: only on request
