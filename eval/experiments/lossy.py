# SPDX-License-Identifier: Apache-2.0
"""A tcp group on a network that loses packets, or delays them: answers, elections, reconnections.

Three redis replicas in network namespaces. Packets between the hosts are dropped at random by
nftables, at every host's input; the clients sit in their leader's host, so that their own
connections lose nothing. Per loss: --seconds of --clients that do INCR, one after the other;
--repeats times. With --delay-ms also for --delayed-losses on a network whose switch, one of our
own, delays what goes between the hosts. Counted meanwhile: answers, elections (views),
reconnections (links given up, of all replicas), probes, and the longest pause of any client.
"""
import subprocess
import sys
import time

import _harness as h
import session
import tables
from _hosts import Hosts
from _network import Network

OPTIONS = {"losses": ([0.0, 1.0, 5.0, 20.0], "percent of the packets"),
           "seconds": (10, "of each measurement"), "clients": (6, "of the group"),
           "repeats": session.repeats(1), "delay_ms": (0.0, "between the hosts, besides"),
           "jitter_ms": (0.0, "of the delay"), "delayed_losses": ([0.0, 1.0], "with a delay")}
COUNTED = ("answers_per_s", "elections", "reconnections", "probes", "longest_pause_s")
CLIENT = """
import socket, sys, time
address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end, answers, longest, connection = time.monotonic() + seconds, 0, 0.0, None
last = time.monotonic()
while time.monotonic() < end:
    try:
        if connection is None:
            connection = socket.create_connection((address, port), timeout=5)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"INCR lossy\\r\\n")
        if not connection.recv(64):
            raise OSError("ended")
        answers += 1
    except OSError:
        if connection is not None:
            connection.close()
        connection = None
        time.sleep(0.01)
        continue
    now = time.monotonic()
    longest, last = max(longest, now - last), now
print(answers, max(longest, time.monotonic() - last))
"""


def lose(network, per_cent):
    for host in range(3):
        rules = "flush ruleset\n"
        if per_cent:
            rules += (f"table ip lossy {{ chain input {{ type filter hook input priority 0;\n"
                      f"ip saddr {{ {', '.join(network.addresses)} }} iifname eth0 "
                      f"numgen random mod 1000 < {int(per_cent * 10)} drop\n}}\n}}\n")
        done = subprocess.run(network.enter(host) + ["nft", "-f", "-"], input=rules, text=True,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise h.CannotRun(f"nft: {done.stderr.strip()}")


def sums(group):
    statuses = [s for s in map(group.status, range(3)) if s]
    return (max(s["view"] for s in statuses), sum(s["links_lost"] for s in statuses),
            sum(s["probes"] for s in statuses))


def one_row(network, group, options, per_cent):
    leader = group.leader()
    lose(network, per_cent)
    before = sums(group)
    clients = [subprocess.Popen(
        network.enter(leader) + [sys.executable, "-c", CLIENT, network.addresses[leader],
                                 str(group.port), str(options.seconds)],
        stdout=subprocess.PIPE, text=True) for _ in range(options.clients)]
    found = [c.communicate(timeout=options.seconds + 60)[0].split() for c in clients]
    after = sums(group)
    lose(network, 0)
    return {"loss_percent": per_cent, "delay_ms": network.delay[0] if network.delay else 0,
            "answers_per_s": sum(int(answers) for answers, _ in found) / options.seconds,
            "longest_pause_s": max(float(pause) for _, pause in found),
            **{what: b - a for what, a, b in zip(COUNTED[1:4], before, after)}}


def measure(x):
    o, port = x.options, h.free_port()
    networks = [(o.losses, None)]
    if o.delay_ms:
        networks.append((o.delayed_losses, (o.delay_ms, o.jitter_ms)))
    for losses, delay in networks:
        with Network(3, delay=delay) as network, \
                Hosts(x.place, h.redis_program(port, "--protected-mode", "no", "--bind",
                                               "0.0.0.0"), port=port, fabric="tcp",
                      addresses=network.addresses, prefix=network.enter) as group:
            for repeat in range(o.repeats):
                for loss in losses:
                    row = one_row(network, group, o, loss)
                    x.add({"key": [row["delay_ms"], loss, repeat], **row})
                    print("  . " + ", ".join(f"{k} {v:g}" for k, v in row.items()),
                          file=sys.stderr)
                    time.sleep(2)


def text(rows, _):
    return tables.summary(rows, {"delay_ms": "delay, ms", "loss_percent": "loss, %"}, {
        what: (what, "{:.2f}" if what == COUNTED[-1] else "{:.0f}") for what in COUNTED}, 0)


def panes(rows, _):
    return [tables.line(rows, "loss_percent", what, "delay_ms", log="y" if n == 0 else "")
            for n, what in enumerate(COUNTED[:3])]
