#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tcp group on a network that loses packets: answers, elections, reconnections.

One build, three redis replicas in network namespaces (`make eval-lossy`). Packets between the hosts
are dropped at random by nftables, at every host's input; the clients sit in their leader's host, so
that their own connections lose nothing. Per loss: --seconds of --clients that do INCR, one after
the other. Counted meanwhile: answers, elections (views), reconnections (links given up, of all
replicas), probes, and the longest pause of any client.
Raw data, with a description of the machine: <out>/lossy/lossy.json; plot beside it.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "e2e"))
import _harness as h  # noqa: E402
from _hosts import Hosts  # noqa: E402
from _network import Network  # noqa: E402
from place import Place, machine, pyplot_or_none  # noqa: E402

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
    statuses = [group.status(i) for i in range(3)]
    return (max(s["view"] for s in statuses if s),
            sum(s["links_lost"] for s in statuses if s), sum(s["probes"] for s in statuses if s))


def measure(network, group, port, clients, seconds, per_cent):
    leader = group.leader()
    lose(network, per_cent)
    before = sums(group)
    running = [subprocess.Popen(
        network.enter(leader) + [sys.executable, "-c", CLIENT, network.addresses[leader],
                                 str(port), str(seconds)],
        stdout=subprocess.PIPE, text=True) for _ in range(clients)]
    told = [r.communicate(timeout=seconds + 60)[0].split() for r in running]
    after = sums(group)
    lose(network, 0)
    return {"loss_percent": per_cent, "answers_per_s": sum(int(t[0]) for t in told) / seconds,
            "longest_pause_s": max(float(t[1]) for t in told),
            "elections": after[0] - before[0], "reconnections": after[1] - before[1],
            "probes": after[2] - before[2]}


def plot(rows, path):
    pyplot = pyplot_or_none()
    if pyplot is None:
        return
    figure, rate = pyplot.subplots(figsize=(6, 3.5))
    losses = [r["loss_percent"] for r in rows]
    rate.plot(losses, [r["answers_per_s"] for r in rows], marker="o", label="answers/s")
    rate.set_yscale("log")
    rate.set_xlabel("packets lost between hosts (%)")
    rate.set_ylabel("answers/s")
    count = rate.twinx()
    count.plot(losses, [r["elections"] for r in rows], marker="s", color="C1", label="elections")
    count.plot(losses, [r["reconnections"] for r in rows], marker="^", color="C2",
               label="reconnections")
    count.set_ylabel("elections, reconnections")
    figure.legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--losses", type=float, nargs="*", default=[0, 1, 5, 20])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    options.out = options.out.resolve()
    results = options.out / "lossy"
    results.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-lossy-", dir="/var/tmp"))
    work.chmod(0o755)
    rows = []
    try:
        place = Place(options.out, work, "lossy")
        port = h.free_port()
        with Network(3) as network, \
                Hosts(place, h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0"),
                      port=port, fabric="tcp", addresses=network.addresses,
                      prefix=network.enter) as group:
            print("loss %   answers/s   elections   reconnections   probes   longest pause s")
            for _ in range(options.rounds):
                for loss in options.losses:
                    row = measure(network, group, port, options.clients, options.seconds, loss)
                    rows.append(row)
                    print(f"{loss:6g} {row['answers_per_s']:11.0f} {row['elections']:11} "
                          f"{row['reconnections']:15} {row['probes']:8} "
                          f"{row['longest_pause_s']:17.2f}", flush=True)
                    time.sleep(2)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    (results / "lossy.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    plot(rows, results / "lossy.png")


if __name__ == "__main__":
    main()
