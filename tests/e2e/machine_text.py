#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GOAL: everything that a server reads about its process and its machine below /proc and /sys is
the same on every replica. A difference of one digit in a mount number changed which method a Java
virtual machine compiled next, and so the schedule.
METHOD: a server reads each file of /proc, including its own process', and those of /sys that change
while a machine runs. It prints a digest of each file, and the target of each link.
CHECKS: the lines of all replicas are the same, except for the few files that are documented to
differ.
"""
import os
import shutil

import _harness as h

SERVER = r"""
import hashlib, os, socket, sys

# Files whose reads never end or have effects, and files of other processes.
LEFT_OUT = ("/proc/kcore", "/proc/kmsg", "/proc/kpage", "/proc/sysrq-trigger", "/proc/acpi",
            "/proc/irq", "/proc/self/task", "/proc/thread-self", "/proc/self/pagemap",
            "/proc/self/mem", "/proc/self/clear_refs")
PLACES = ("/proc/self", "/proc", "/sys/devices/system", "/sys/kernel/mm", "/sys/kernel/slab",
          "/sys/class/net/lo/statistics", "/sys/fs/cgroup", "/sys/fs/ext4")

def digest(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            text = b""
            while len(text) < 1 << 20:
                got = os.read(fd, 1 << 16)
                if not got:
                    break
                text += got
        finally:
            os.close(fd)
        return hashlib.sha256(text).hexdigest()[:16] + " %d bytes" % len(text)
    except OSError as error:
        return os.strerror(error.errno)

def look(place):
    for directory, inner, files in os.walk(place):
        inner[:] = [name for name in sorted(inner) if not name.isdigit()
                    and not os.path.join(directory, name).startswith(LEFT_OUT)]
        for name in sorted(files):
            path = os.path.join(directory, name)
            if path.startswith(LEFT_OUT):
                continue
            print(path, "->", os.readlink(path)) if os.path.islink(path) \
                else print(path, digest(path))

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
for place in PLACES:
    look(place)
print("end", flush=True)
while True:
    client, _ = listener.accept()
    client.close()
"""
# The target of the replica's standard output: its own file.
OWN = ("/proc/self/fd/1 ", "/proc/self/fd/2 ")


def lines_of(group, number):
    text = (group.dir / f"r{number}" / "server.log").read_text(errors="replace")
    return text.splitlines() if text.endswith("end\n") else None


def body(scenario):
    if not h.can_contain():
        raise h.CannotRun("without a container a replica reads the machine's own files")
    script = scenario.work / "reads.py"
    script.write_text(SERVER)
    port = h.free_port()
    with h.Group(scenario, [shutil.which("python3", path="/usr/bin"), str(script), str(port)],
                 port=port) as group:
        h.wait_until(lambda: all(lines_of(group, n) for n in range(3)), 120, "all has been read")
        read = [lines_of(group, n) for n in range(3)]
    scenario.check(len(read[0]) > 500 and any("/proc/self/mountinfo" in x for x in read[0]),
                   f"{len(read[0])} files are read")
    differ = [row for row in zip(*read) if len(set(row)) > 1 and not row[0].startswith(OWN)]
    scenario.check(not differ and len({len(x) for x in read}) == 1,
                   "the replicas read the same", "\n".join(os.linesep.join(x) for x in differ[:10]))


if __name__ == "__main__":
    h.run_scenario("machine_text", body)
