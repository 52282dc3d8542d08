#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sshd, which sandboxes itself for each client: 50 logins with commands over three replicas, every
third at a terminal, with a kill of the leader in between. The outputs are equal, and a returned
replica stays equal for `ls -i /`."""
import concurrent.futures
import os
import signal
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


def ssh(scenario, port, options, command, given):
    return subprocess.run(["ssh", "-F", "none", "-o", "StrictHostKeyChecking=no",
                           "-o", "LogLevel=ERROR",
                           "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-i",
                           str(scenario.work / "user"), "-p", str(port), *options,
                           "root@127.0.0.1", command],
                          input=given, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=120)


def log_in(scenario, port, client):
    """Status and output of a client's command, which reads /etc and its own input."""
    if client % 3 == 2:
        return log_in_at_terminal(scenario, port, client)
    done = ssh(scenario, port, [], f"echo through sshd {client}; ls -ia /etc | head -3; cat",
               f"input of {client}")
    good = f"through sshd {client}" in done.stdout and f"input of {client}" in done.stdout
    return done.returncode == 0 and good, f"{client}: {done.returncode}: {done.stdout}"


def log_in_at_terminal(scenario, port, client):
    """Logs in at a pseudo-terminal: its name and modes, and a line that is edited while it
    arrives."""
    done = ssh(scenario, port, ["-tt"], "tty; stty -a; read line; echo \"it was: $line\"",
               f"type {client}x\x7f\n")
    good = "/dev/pts/" in done.stdout and "icanon" in done.stdout
    good = good and f"it was: type {client}\n" in done.stdout.replace("\r", "")
    return done.returncode == 0 and good, f"{client}: {done.returncode}: {done.stdout}"


def log_in_many(scenario, port, clients):
    """The errors of all logins."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda c: log_in(scenario, port, c), clients))
    return [text for good, text in results if not good]


def body(scenario):
    h.need("sshd", "ssh", "ssh-keygen")
    if not h.can_contain():
        raise h.CannotRun("clients log in as root, and sshd's directory is in the container")
    make_keys(scenario)
    port = h.free_port()
    configuration = scenario.work / "sshd_config"
    configuration.write_text(CONFIGURATION.format(port=port, work=scenario.work))
    command = [SSHD, "-D", "-e", "-f", str(configuration)]
    with h.Group(scenario, command, port=port, record=True) as group:
        scenario.check(not (bad := log_in_many(scenario, port, range(25))),
                       "25 clients are served, 8 at once", "\n".join(bad[:3]))
        leader = group.leader()
        os.kill(group.replica(leader)["node_pid"], signal.SIGKILL)
        h.wait_until(lambda: group.leader() != leader, 30, "another replica leads")
        scenario.check(not (bad := log_in_many(scenario, port, range(25, 50))),
                       "25 more are served after a kill of the leader's node", "\n".join(bad[:3]))
        h.wait_until(lambda: group.live() == [0, 1, 2], 60, "the killed replica is back")
        scenario.check(not (bad := log_in_many(scenario, port, range(50, 54))),
                       "the returned replica serves like the others", "\n".join(bad[:3]))
        scenario.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))
        group.settle()
    # Compares the two replicas that ran all the time: the third lacks output from before its
    # checkpoint.
    status, text = group.diff(recordings=[n for n in range(3) if n != leader])
    scenario.check(status == 0, "the outputs are equal", text)


h.run_scenario("sshd", body)
