#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hard resets of a whole machine: one guest runs three replicas of redis with durability disk.

The replicas' stores are on a virtio disk. Each round kills the machine while clients push unique
ids, and starts it again.

  tests/vm/resets.py --out OUT [--rounds N] [--no-sync]

After each start every acknowledged id must be in the list exactly once, and every other id at most
once. Acknowledgements are recorded outside the guest. With --no-sync the nodes' fsync and
fdatasync do nothing (a preloaded library). Then acknowledged ids must be lost: otherwise the resets
would not show that the syncs are necessary.
Exit status: 0 as expected, 1 not, 77 skipped.

  tests/vm/resets.py --guest DIRECTORY   runs inside the guest
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import _harness as h  # noqa: E402

ACKS = 80          # least acknowledged ids in a round before its reset
ROUND_SECONDS = 300
PORT = 7777
ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
NO_SYNC = """
int fsync(int fd) { (void)fd; return 0; }
int fdatasync(int fd) { (void)fd; return 0; }
"""


# --- in the guest -------------------------------------------------------------------------------

def group_file(disk, share):
    secret = disk / "secret"
    if not secret.exists():
        secret.write_bytes(os.urandom(48))
        secret.chmod(0o600)
        os.sync()
    program = json.dumps(h.redis_program(PORT, "--protected-mode", "no"))
    text = f"""[group]
name = "resets"
secret_file = "{secret}"
fabric = "tcp"
durability = "disk"
state_dir = "{disk}/state"
[server]
command = {program}
container = false
[clients]
listen = "clients"
""" + "".join(f'[[replica]]\naddress = "{a}"\nport = 7100\n' for a in ADDRESSES)
    path = share / "group.toml"
    path.write_text(text)
    return path


def connect():
    for address in ADDRESSES:
        try:
            client = h.Redis(PORT, 20, address)
            if client("PING") == "PONG":
                return client
        except (OSError, h.Failure):
            pass
    return None


def push(name, acknowledged):
    """Pushes unique ids until the machine is gone, and records each id that was answered."""
    n = 0
    while True:
        client = connect()
        try:
            while client:
                n += 1
                client("RPUSH", "ids", f"{name}:{n}")
                os.write(acknowledged, f"{name}:{n}\n".encode())
        except (OSError, ConnectionError, h.Failure):
            pass


def guest(share):
    disk = pathlib.Path("/tmp/disk")
    disk.mkdir()
    device = next(pathlib.Path("/dev").glob("vd[a-z]"))
    subprocess.run(["mount", "-o", "noatime", str(device), str(disk)], check=True)
    subprocess.run("mount -t tmpfs none /dev/shm", shell=True, check=True)
    order = json.loads((share / "order").read_text())
    config = group_file(disk, share)
    (disk / "state").mkdir(exist_ok=True)
    environment = {**os.environ, **({"LD_PRELOAD": str(share / "nosync.so")}
                                    if order["no_sync"] else {})}
    for i in range(3):
        log = open(share / f"node{i}.log", "ab")
        subprocess.Popen([order["node"], "--config", str(config), "--replica", str(i)],
                         env=environment, stdout=log, stderr=log, cwd="/")
    client = h.wait_until(connect, 90, "the group serves")
    found = collections.Counter(i.decode() for i in client("LRANGE", "ids", "0", "-1"))
    (share / "found.new").write_text(json.dumps(found))
    os.rename(share / "found.new", share / "found")
    fd = os.open(share / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for k in range(3):
        threading.Thread(target=push, args=(f"{order['round']}.{k}", fd), daemon=True).start()
    threading.Event().wait()


# --- outside ------------------------------------------------------------------------------------

def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def one_round(options, share, number):
    """Returns the list after the start; kills the machine once enough ids were acknowledged."""
    (share / "found").unlink(missing_ok=True)
    before = len(lines(share / "acknowledged"))
    (share / "order").write_text(json.dumps({
        "round": number, "no_sync": options.no_sync, "node": str(options.out / "crane-node")}))
    command = ["python3", str(HERE / "vm.py"), "--out", str(options.out), "--timeout",
               str(ROUND_SECONDS), "--disk", str(share / "disk"), "--write", str(share), "--",
               "python3", str(HERE / "resets.py"), "--guest", str(share)]
    console = open(share / "console", "wb")
    process = subprocess.Popen(command, stdout=console, stderr=console, start_new_session=True,
                               cwd=ROOT)

    def enough():
        if process.poll() is not None:
            raise h.Failure(f"the machine ended without a reset:\n{h.tail(share / 'console', 40)}")
        return (share / "found").exists() and \
            len(lines(share / "acknowledged")) >= before + ACKS
    try:
        try:
            h.wait_until(enough, ROUND_SECONDS, "clients are served in the guest")
        except h.Failure:
            if options.no_sync:
                raise
            for log in [share / "console", *sorted(share.glob("node*.log"))]:
                print(f"--- {log.name}\n{h.tail(log, 15)}")
            raise
        h.wait_until(lambda moment=time.monotonic() + random.uniform(0, 0.4):
                     time.monotonic() > moment, 5, "")
    finally:
        for pid in reversed(h.descendants([process.pid])):  # SIGKILL stops QEMU at once
            os.kill(pid, signal.SIGKILL)
        process.wait()
        console.close()
    return collections.Counter(json.loads((share / "found").read_text()))


def rounds(options, share):
    """Returns (lost ids, ids that occur twice) of all rounds."""
    lost, twice = set(), set()
    for number in range(options.rounds + 1):   # the last start only checks the round before it
        known = set(lines(share / "acknowledged"))
        try:
            found = one_round(options, share, number)
        except h.Failure:
            gone = [p for p in share.glob("node*.log")
                    if "the store is not whole" in p.read_text(errors="replace")]
            if not options.no_sync or len(gone) < 2:
                raise
            print(f"  start {number}: {len(known)} acknowledged; the stores of {len(gone)} "
                  "replicas are not whole, so no replica serves: all lost", flush=True)
            return known, twice
        lost |= {i for i in known if found[i] == 0}
        twice |= {i for i, n in found.items() if n > 1}
        print(f"  start {number}: {len(known)} acknowledged, {sum(found.values())} held, "
              f"{len(lost)} lost, {len(twice)} twice", flush=True)
        if lost and options.no_sync:
            break
    return lost, twice


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=lambda p: pathlib.Path(p).resolve(),
                        default=ROOT / "out/release")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-sync", action="store_true")
    parser.add_argument("--guest", type=pathlib.Path)
    options = parser.parse_args()
    if options.guest:
        guest(options.guest)
        return 0
    ready = subprocess.run(["python3", str(HERE / "vm.py"), "--out", str(options.out), "--prepare"],
                           check=False, stdout=subprocess.PIPE, text=True)
    if ready.returncode != 0:
        print(ready.stdout, end="")
        return ready.returncode
    share = pathlib.Path(tempfile.mkdtemp(prefix="resets-", dir=options.out / "vm"))
    try:
        with open(share / "disk", "wb") as disk:
            disk.truncate(1 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(share / "disk")], check=True)
        (share / "nosync.c").write_text(NO_SYNC)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(share / "nosync.so"),
                        str(share / "nosync.c")], check=True)
        lost, twice = rounds(options, share)
    finally:
        shutil.rmtree(share, ignore_errors=True)
    good = bool(lost) if options.no_sync else not lost and not twice
    print(f"{'PASS' if good else 'FAIL'} {'' if options.no_sync else options.rounds} hard resets"
          f"{' without syncs' if options.no_sync else ''}: {len(lost)} acknowledged ids lost, "
          f"{len(twice)} twice {sorted(lost)[:5]}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
