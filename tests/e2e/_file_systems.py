# SPDX-License-Identifier: Apache-2.0
"""Groups with replicas on different file systems: servers must not see the differences."""
import contextlib
import os
import shutil
import subprocess

import _harness as h

IMAGE_BYTES = 1 << 30   # sparse
MAKERS = {
    "ext4-1k": ("mkfs.ext4", "-q", "-F", "-b", "1024"),
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "ext2": ("mkfs.ext2", "-q", "-F", "-b", "2048"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
KINDS = ("ext4-1k", "ext4", "xfs", "btrfs", "tmpfs")


def told(command):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False,
                          stderr=subprocess.STDOUT, env={**os.environ, "PATH": path})
    return "" if done.returncode == 0 else done.stdout.strip() or f"exit {done.returncode}"


def mount(kind, place, image):
    """'', or the reason why this machine cannot mount this kind."""
    if kind == "tmpfs":
        return told(["mount", "-t", "tmpfs", "-o", f"size={IMAGE_BYTES}", "tmpfs", place])
    if not shutil.which(MAKERS[kind][0], path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        return f"{MAKERS[kind][0]} is not installed"
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    return told([*MAKERS[kind], image]) or told(["mount", "-o", "loop", image, place])


def mountable(work):
    """Returns ([kinds that this machine can mount], [(kind, why not)])."""
    place, good, bad = work / "tried", [], []
    place.mkdir()
    for kind in KINDS:
        why = mount(kind, place, work / "tried.img")
        if why:
            bad.append((kind, why.splitlines()[-1]))
        else:
            good.append(kind)
            told(["umount", place])
    with contextlib.suppress(FileNotFoundError):
        (work / "tried.img").unlink()
    place.rmdir()
    return good, bad


class SpreadGroup(h.Group):
    """Replica i has its own file system of kind kinds[i]."""

    def __init__(self, *arguments, kinds, **more):
        super().__init__(*arguments, replicas=len(kinds), **more)
        self.kinds = kinds
        self.mounted = []

    def start(self):
        self.home.mkdir(exist_ok=True)
        self.home.chmod(0o755)
        for number, kind in enumerate(self.kinds):
            place = self.dir / f"r{number}"
            place.mkdir(parents=True)
            image = self.scenario.work / f"{self.name}-{number}.img"
            why = mount(kind, place, image)
            if why:
                self.unmount()
                raise h.Failure(f"{kind} cannot be mounted: {why}")
            self.mounted.append((place, image))
        super().start()

    def unmount(self):
        for place, image in self.mounted:
            if told(["umount", place]):
                told(["umount", "--lazy", place])
            with contextlib.suppress(FileNotFoundError):
                image.unlink()
        self.mounted = []
        shutil.rmtree(self.dir, ignore_errors=True)

    def stop(self):
        status = super().stop()
        self.unmount()
        return status

    def kill_all(self):
        super().kill_all()
        self.unmount()


def three(scenario):
    """The file systems of three replicas; reports the kinds that this machine lacks."""
    if not h.can_contain():
        raise h.CannotRun("mounting file systems needs root, and containers")
    good, bad = mountable(scenario.work)
    for kind, why in bad:
        scenario.say(f"left out: {kind}: {why}")
    if "ext4-1k" not in good or len(good) < 3:
        raise h.CannotRun("this machine mounts too few file systems: "
                          + "; ".join(f"{kind}: {why}" for kind, why in bad))
    # Small blocks, usual blocks, and the most different of the others.
    return ["ext4-1k", "ext4", next(k for k in ("xfs", "btrfs", "tmpfs") if k in good)]
