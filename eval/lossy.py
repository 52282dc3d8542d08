#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tcp group on a network that loses packets, or delays them: answers, elections, reconnections.

One build, three redis replicas in network namespaces (`make eval-lossy`). Packets between the hosts
are dropped at random by nftables, at every host's input; the clients sit in their leader's host, so
that their own connections lose nothing. Per loss: --seconds of --clients that do INCR, one after
the other; --rounds times. With --delay-ms also for --delayed-losses on a network whose switch, one
of our own, delays what goes between the hosts. Counted meanwhile: answers, elections (views),
reconnections (links given up, of all replicas), probes, and the longest pause of any client.
Raw data, with a description of the machine: <out>/lossy/lossy.json; plot beside it.
"""
import argparse
import json
import pathlib
import shutil
import statistics
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
    """One row."""
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
    return {"loss_percent": per_cent, "delay_ms": network.delay[0] if network.delay else 0,
            "answers_per_s": sum(int(t[0]) for t in told) / seconds,
            "longest_pause_s": max(float(t[1]) for t in told),
            "elections": after[0] - before[0], "reconnections": after[1] - before[1],
            "probes": after[2] - before[2]}


COUNTED = ("answers_per_s", "elections", "reconnections", "probes", "longest_pause_s")


def spreads(rows):
    """(loss, delay): what was counted, each as median, least, most."""
    found = {}
    for row in rows:
        found.setdefault((row["loss_percent"], row["delay_ms"]), []).append(row)
    return {key: {what: (statistics.median(r[what] for r in some), min(r[what] for r in some),
                         max(r[what] for r in some)) for what in COUNTED}
            for key, some in found.items()}


def tell(rows):
    """As a table for people, median (least .. most)."""
    print("| delay, ms | loss, % | " + " | ".join(COUNTED) + " |")
    print("| ---: " * (2 + len(COUNTED)) + "|")
    for (loss, delay), row in spreads(rows).items():
        digits = {"longest_pause_s": 2}
        cells = []
        for what in COUNTED:
            middle, least, most = (f"{x:.{digits.get(what, 0)}f}" for x in row[what])
            cells.append(middle if least == most else f"{middle} ({least} .. {most})")
        print(f"| {delay:g} | {loss:g} | " + " | ".join(cells) + " |", flush=True)


def plot(rows, path):
    pyplot = pyplot_or_none()
    if pyplot is None:
        return
    figure, (rate, count) = pyplot.subplots(2, 1, figsize=(6.5, 6), sharex=True)
    found = spreads(rows)
    for delay in sorted({d for _, d in found}):
        losses = sorted(loss for loss, d in found if d == delay)
        name = f"{delay:g} ms of delay" if delay else "no delay"
        for axes, what, marker in ((rate, "answers_per_s", "o"), (count, "elections", "s"),
                                   (count, "reconnections", "^")):
            middle = [found[loss, delay][what][0] for loss in losses]
            below = [found[loss, delay][what][0] - found[loss, delay][what][1] for loss in losses]
            above = [found[loss, delay][what][2] - found[loss, delay][what][0] for loss in losses]
            label = name if axes is rate else f"{what}, {name}"
            axes.errorbar(losses, middle, yerr=[below, above], marker=marker, capsize=3,
                          label=label)
    rate.set_yscale("log")
    rate.set_ylabel("answers/s: median, least, most")
    count.set_ylabel("elections, reconnections")
    count.set_xlabel("packets lost between hosts (%)")
    count.set_ylim(0, max(1, *(found[key][what][2] for key in found
                               for what in ("elections", "reconnections"))) * 1.1)
    rate.legend()
    count.legend()
    figure.tight_layout()
    figure.savefig(path)


def rows_of(place, options, losses, delay):
    """Of one group on one network."""
    rows, port = [], h.free_port()
    with Network(3, delay=delay) as network, \
            Hosts(place, h.redis_program(port, "--protected-mode", "no", "--bind", "0.0.0.0"),
                  port=port, fabric="tcp", addresses=network.addresses,
                  prefix=network.enter) as group:
        print("loss %   answers/s   elections   reconnections   probes   longest pause s"
              + (f"   ({delay[0]:g} +- {delay[1]:g} ms of delay)" if delay else ""))
        for _ in range(options.rounds):
            for loss in losses:
                row = measure(network, group, port, options.clients, options.seconds, loss)
                rows.append(row)
                print(f"{loss:6g} {row['answers_per_s']:11.0f} {row['elections']:11} "
                      f"{row['reconnections']:15} {row['probes']:8} "
                      f"{row['longest_pause_s']:17.2f}", flush=True)
                time.sleep(2)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--losses", type=float, nargs="*", default=[0, 1, 5, 20])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--jitter-ms", type=float, default=0)
    parser.add_argument("--delayed-losses", type=float, nargs="*", default=[0, 1])
    options = parser.parse_args()
    options.out = options.out.resolve()
    results = options.out / "lossy"
    results.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="crane-lossy-", dir="/var/tmp"))
    work.chmod(0o755)
    rows = []
    try:
        place = Place(options.out, work, "lossy")
        rows += rows_of(place, options, options.losses, None)
        if options.delay_ms:
            rows += rows_of(place, options, options.delayed_losses,
                            (options.delay_ms, options.jitter_ms))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    (results / "lossy.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    tell(rows)
    plot(rows, results / "lossy.png")


if __name__ == "__main__":
    main()
