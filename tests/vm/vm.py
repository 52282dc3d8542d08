#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a virtual machine with soft-RoCE.

The machine is QEMU without KVM, with Debian's kernel, the root file system of this machine
(read-only), and three RDMA devices rxe1..rxe3 at 10.9.0.1..3.

  tests/vm/vm.py --out OUT [--timeout S] [--memory M] [--disk FILE] [--write DIR] -- COMMAND...

Prints the output of the command and exits with its status.  Exit 77 with `SKIPPED: vm: <why>` if
QEMU or a kernel is not available, 124 at the timeout, 125 if the machine did not start.
The kernel package is unpacked, not installed, into OUT/vm/kernel; virtme-ng is in OUT/vm/venv.
Both are kept for the next run.  The guest shares the directory $CRANE_VM_SHARE (OUT/vm/run-*) with
this machine.

The kernel is booted with clearcpuid=erms: QEMU executes `rep movsb` byte by byte, and a device that
copies in this way tears aligned words, which no RDMA hardware does.
"""
import argparse
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

VIRTME_NG = "1.42"
HERE = pathlib.Path(__file__).resolve().parent
# Modules that are not needed and delay the start.
NOT_NEEDED = "kvm,kvm_amd,kvm_intel,ahci,libahci,sr_mod,cdrom,powernow_k8,acpi_cpufreq,lpc_ich," \
             "i2c_i801,iTCO_wdt,psmouse,pcspkr,i6300esb,mousedev,joydev"


class Unavailable(Exception):
    """The reason why no virtual machine is available."""


def call(command, limit, **more):
    try:
        done = subprocess.run(command, timeout=limit, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False, **more)
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not installed: make deps") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`{shlex.join(map(str, command))}` took more than {limit} s") from None
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["?"])[-1]
        raise Unavailable(f"`{shlex.join(map(str, command))}`: {last}")
    return done.stdout


@contextlib.contextmanager
def only_one(place):
    """Keeps two runs from fetching into the same directory at once."""
    import fcntl
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find_kernel(place):
    """Returns a kernel with soft-RoCE modules: from this machine, else from a package."""
    roots = [pathlib.Path("/"), place / "kernel"]
    for root in roots:
        for image in sorted(root.glob("boot/vmlinuz-*-amd64"), reverse=True):
            release = image.name[len("vmlinuz-"):]
            if (root / "lib/modules" / release / "kernel/drivers/infiniband/sw/rxe").is_dir():
                return image
    fetch_kernel(place)
    for image in (place / "kernel").glob("boot/vmlinuz-*"):
        return image
    raise Unavailable("the kernel package contains no kernel")


def fetch_kernel(place):
    """Fetches and unpacks the package that linux-image-amd64 depends on."""
    depends = call(["apt-cache", "depends", "linux-image-amd64"], 30)
    names = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line]
    if not names:
        raise Unavailable("apt knows no package linux-image-amd64: apt-get update")
    with tempfile.TemporaryDirectory(dir=place) as box:
        os.chmod(box, 0o755)
        call(["apt-get", "-q", "download", names[0]], 300, cwd=box)
        packages = list(pathlib.Path(box).glob("*.deb"))
        call(["dpkg", "-x", str(packages[0]), box + "/kernel"], 300)
        release = names[0][len("linux-image-"):]
        call(["depmod", "-b", box + "/kernel", release], 120)
        shutil.rmtree(place / "kernel", ignore_errors=True)
        os.rename(box + "/kernel", place / "kernel")


def find_vng(place):
    """Returns the directory of virtme-ng's programs."""
    there = shutil.which("vng")
    if there:
        return pathlib.Path(there).parent
    venv = place / "venv"
    if not (venv / "bin/vng").exists():
        shutil.rmtree(venv, ignore_errors=True)
        call([sys.executable, "-m", "venv", str(venv)], 120)
        call([str(venv / "bin/pip"), "-q", "install", "--disable-pip-version-check",
              f"virtme-ng=={VIRTME_NG}"], 300)
    return venv / "bin"


def prepare(out):
    """Fetches what is missing. Returns (vmlinuz, directory of vng)."""
    if not shutil.which("qemu-system-x86_64"):
        raise Unavailable("qemu-system-x86_64 is not installed: make deps")
    place = out / "vm"
    with only_one(place):
        return find_kernel(place), find_vng(place)


def boot(options, share):
    image, tools = prepare(options.out)
    guest = ["bash", str(HERE / "guest.sh"), str(share), str(pathlib.Path.cwd())]
    command = [str(tools / "vng"), "--verbose", "--run", str(image), "--disable-kvm", "--force-9p",
               "--memory", options.memory, "--cpus", "2", "--user", "root",
               "--rwdir", str(share), "--append", "clearcpuid=erms",
               "--append", f"module_blacklist={NOT_NEEDED}"]
    if options.write:
        command += ["--rwdir", str(options.write)]
    if options.disk:
        command += ["--disk", str(options.disk)]
    command += ["--", shlex.join(guest)]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    with open(share / "console", "wb") as console:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env=environment)
        end = time.monotonic() + options.timeout
        try:
            follow(process, share / "output", end)
            process.wait(max(0.1, end - time.monotonic()))
            over = False
        except subprocess.TimeoutExpired:
            over = True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return over


def follow(process, path, end):
    """Prints new content of the file until the machine ends."""
    at = 0
    while True:
        ended = process.poll() is not None
        if path.exists():
            with open(path, "rb") as text:
                text.seek(at)
                new = text.read()
            at += len(new)
            sys.stdout.write(new.decode(errors="replace"))
            sys.stdout.flush()
        if ended:
            return
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired("vm", 0)
        time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=lambda p: pathlib.Path(p).resolve(), default="out/release")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--memory", default="2G")
    parser.add_argument("--disk", help="file that the guest gets as a disk")
    parser.add_argument("--write", help="directory that the guest may write to")
    parser.add_argument("--prepare", action="store_true", help="only fetch what is missing")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        if options.prepare:
            prepare(options.out)
            return 0
        (options.out / "vm").mkdir(parents=True, exist_ok=True)
        share = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=options.out / "vm"))
        try:
            words = options.command[options.command[:1] == ["--"]:]
            (share / "command").write_text(shlex.join(words) + "\n")
            over = boot(options, share)
            if over:
                print(f"vm: the timeout of {options.timeout:.0f} s has passed", flush=True)
                return 124
            status = share / "status"
            if not status.exists():
                tail = (share / "console").read_text(errors="replace").splitlines()[-40:]
                print("vm: the machine ended without a status; its console:\n" + "\n".join(tail))
                return 125
            return int(status.read_text())
        finally:
            shutil.rmtree(share, ignore_errors=True)
    except Unavailable as why:
        print(f"SKIPPED: vm: {why}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
