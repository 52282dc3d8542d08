#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sshd, which sandboxes itself for each client: clients are served, and the group goes on."""
import subprocess

import _harness as h

SSHD = "/usr/sbin/sshd"
CONFIGURATION = """Port {port}
ListenAddress 0.0.0.0
HostKey {work}/host
AuthorizedKeysFile {work}/user.pub
PidFile none
UsePAM no
PasswordAuthentication no
StrictModes no
PermitRootLogin yes
"""


def make_keys(scenario):
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                        str(scenario.work / name)], check=True, timeout=30)


def log_in(scenario, port):
    """The status and output of a command that a client runs."""
    done = subprocess.run(["ssh", "-F", "none", "-o", "StrictHostKeyChecking=no",
                           "-o", "LogLevel=ERROR",
                           "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-i",
                           str(scenario.work / "user"), "-p", str(port), "root@127.0.0.1",
                           "echo through sshd"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60)
    return done.returncode, done.stdout


def body(scenario):
    h.need("sshd", "ssh", "ssh-keygen")
    if not h.can_contain():
        raise h.CannotRun("clients log in as root, and sshd's directory is in the container")
    make_keys(scenario)
    port = h.free_port()
    configuration = scenario.work / "sshd_config"
    configuration.write_text(CONFIGURATION.format(port=port, work=scenario.work))
    start = f"mkdir -p /run/sshd && exec {SSHD} -D -e -f {configuration}"
    with h.Group(scenario, ["/bin/sh", "-c", start], port=port) as group:
        for client in range(3):
            status, said = log_in(scenario, port)
            scenario.check(status == 0 and "through sshd" in said, f"client {client} is served",
                           f"{status}: {said}")
        scenario.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))


h.tell("sshd", body)
