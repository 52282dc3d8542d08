# SPDX-License-Identifier: Apache-2.0
"""The server matrix: the description of each server, and the proof that its replicas are equal.

A file server_<name>.py describes one server program: a class per variant (worker model, TLS,
threads), listed in KINDS. Each variant is a scenario, and a row of the table of
`make eval-servers`; both use the same configuration and load.
"""
import contextlib
import os
import pathlib
import subprocess
import threading
import time

import _harness as h

CLIENTS = 8   # concurrent, for every load of the matrix
SEEDS = (1, 2, 3)
# Servers without system calls that bypass libcrane.so; for others these calls are printed.
HOOKED = ("redis", "apache", "memcached", "nginx", "gerbera")


class Server:
    """One variant of a server. A subclass sets the differences; `load` checks every answer."""
    name = ""            # unique name in the table
    version_of = ""      # Debian package with the version for the table
    programs = ()        # programs that must be installed
    options = ()         # options of crane-run, in addition to the profile

    requests = (200, 4000)   # one load in a scenario: quick, --full
    measured = 0   # requests of the measured load, a second or more per kind natively; 0: --full
    needs_container = True
    differs = ""         # outputs that may differ, and why; "" = none
    out = None           # directory of the test programs; place_of() sets it
    # Directories that a native start needs from an init system: ((directory, owner or None), ...)
    native_directories = ()
    native_users = ()    # users of a native start; the package makes them

    def __init__(self, work, port):
        """Writes configuration and data below `work`; every replica gets a copy of it."""
        self.work, self.port = work, port
        self.environment = {}      # for the native server
        self.prepare()
        self.command = self.program()
        self.native = self.native_program()

    def prepare(self):
        pass

    def program(self):
        """The command under crane-run, as a user types it."""
        raise NotImplementedError

    def native_program(self):
        """The same server without Crane, in the foreground."""
        return self.program()

    def native_address(self):
        """The address at which the native server listens."""
        return "127.0.0.1"

    def ready(self):
        """True when the server answers; an open port is not enough."""
        return True

    def load(self, requests):
        """Returns [(what, per second, p50 ms, p99 ms)]; raises h.Failure if an answer is wrong."""
        raise NotImplementedError

    def requests_made(self, requests, rows):
        """The number of requests of all kinds in the load(requests) that returned these rows."""
        return requests * len(rows)

    def state(self):
        """The server's data, read through the group at the end so that they are compared, too."""
        return ""


def natively(command, text="", seconds=120, **more):
    """Runs one of a server's own tools before the group starts, and returns its output."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    done = subprocess.run(list(map(str, command)), input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=seconds,
                          env={**os.environ, "PATH": path}, check=False, **more)
    if done.returncode != 0:
        raise h.Failure(f"{command[0]} ended with status {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def unpacked(package, file):
    """The path of a file from a package that is not installed."""
    done = subprocess.run([str(h.ROOT / "tests/fetch_package.sh"), package, file,
                           str(h.ROOT / "out" / package)], timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise h.CannotRun(done.stdout.strip())
    return pathlib.Path(done.stdout.strip())


def parallel(client, requests, what):
    """The load row of CLIENTS threads that run client(number, share of the requests, timer).

    `timer()` is a context manager around one request; a client returns a list of problems.
    """
    took, wrong = [], []

    @contextlib.contextmanager
    def timer():
        began = time.monotonic()
        yield
        took.append((time.monotonic() - began) * 1000)

    def one(number):
        try:
            wrong.extend(client(number, requests // CLIENTS, timer))
        except (OSError, h.Failure) as failure:
            wrong.append(f"client {number}: {type(failure).__name__}: {failure}")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(CLIENTS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong or not took:
        raise h.Failure("; ".join(wrong[:5]) or f"{what}: no request was sent")
    took.sort()
    return [(what, len(took) / (time.monotonic() - began), took[len(took) // 2],
             took[len(took) * 99 // 100])]


def place_of(scenario, kind):
    work = scenario.work / kind.name.replace(" ", "-").replace("/", "-")
    work.mkdir()
    work.chmod(0o755)
    kind.out = scenario.out
    return work


def check_hooked(scenario, kind, what, statuses):
    """Checks or prints the system calls that bypassed libcrane.so."""
    made = max((s for s in statuses.values() if s), key=lambda s: s["unhooked_calls"] or 0)
    names = ", ".join(f"{u['call']} at {u['object']}+{u['offset']} ({u['outcome']}, {u['count']})"
                      for u in made["unhooked"])
    text = f"{made['unhooked_calls']} unhooked calls" + (f": {names}" if names else "")
    if kind.name.startswith(HOOKED):
        scenario.check(made["unhooked_calls"] == 0, f"{what}: no unhooked calls", text)
    else:
        scenario.say(f"{what}: {text}")


def one_run(scenario, kind, seed, group_of=h.Group):
    """Runs three replicas with different delays, pinning and start order; outputs must be equal."""
    server = kind(place_of(scenario, kind), h.free_port())
    what = f"{kind.name}, seed {seed}"
    with group_of(scenario, server.command, port=server.port, record=True,
                  options=[*server.options, "--perturb", str(seed)]) as group:
        h.wait_until(server.ready, 60, f"{what}: it answers")
        for row in server.load(server.requests[scenario.full]):
            scenario.say(f"{what}: {row[0]} {row[1]:.0f}/s, p50 {row[2]:.2f} ms, "
                         f"p99 {row[3]:.2f} ms")
        held = server.state()
        if held:
            scenario.say(f"{what}: {held}")
        statuses = group.settle(120)
        scenario.check(len(statuses) == 3, f"{what}: three replicas live", repr(group.brief()))
        check_hooked(scenario, kind, what, statuses)
        group.check_calm()
        group.stop()
        text = scenario.check_equal(group, what=f"{what}: every byte is equal")
        scenario.say(f"{what}: {text}")
        text = scenario.check_schedule(group, what=f"{what}: schedule equal at every log index")
        scenario.say(f"{what}: {text}")
    h.shutil.rmtree(server.work)


def prove(scenario, kinds, seeds=None):
    """The body of a server's scenario: each variant with one seed, with --full three seeds."""
    h.need(*sorted({p for kind in kinds for p in kind.programs}))
    chosen = os.environ.get("CRANE_KIND", "")
    for kind in kinds:
        if chosen not in kind.name:
            continue
        if kind.needs_container and not h.can_contain():
            scenario.say(f"{kind.name} needs root and LXC: left out")
            continue
        for seed in seeds or (SEEDS if scenario.full else SEEDS[:1]):
            one_run(scenario, kind, seed)
