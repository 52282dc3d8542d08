# SPDX-License-Identifier: Apache-2.0
"""The container image, made by make_image.sh in a separate store; a group in a container of it
without privileges, and one with checkpoints in a privileged container whose root is an overlay."""
import os
import subprocess

import _harness as h
import _packages

MAKE_IMAGE = h.ROOT / "runtime/packaging/fleet/make_image.sh"
USER = "7100:7100"
# Runs crane-run inside the container; prints the answers and ends with 0.
GROUP = """crane-run -n 3 --no-container --name image -- redis-server --port {port} --save '' &
run=$!
until crane-ctl status image > /tmp/status 2>&1; do kill -0 $run || exit 1; sleep 0.2; done
answers=$(redis-cli -p {port} SET key kept; redis-cli -p {port} GET key)
kill $run
wait $run
status=$?
echo "$answers"
exit $status
"""
# Does what an engine does for a privileged container: an overlay of the image becomes the root of
# a mount namespace. $1: the image; $2: a directory for volumes.
ENGINE = """set -e
mount --make-rprivate /
mkdir -p "$2/upper" "$2/work" "$2/merged" "$2/state" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/merged"
touch "$2/hosts"
volumes=$2
cd "$2/merged"
mkdir -p crane-root .engine
mount --bind "$volumes/state" var/lib/crane
mount --bind "$volumes/root" crane-root
mount --bind "$volumes/hosts" etc/hosts
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs tmpfs run
ip link set lo up
pivot_root . .engine
cd /
umount -l /.engine
shift 2
exec /usr/lib/crane/crane-entry "$@"
"""
CHECKPOINT = """stat -f -c 'root: %T' /
crane-run -n 3 --durability disk --name image -- redis-server --port 7379 --save '' &
run=$!
until crane-ctl status image > /tmp/status 2>&1; do kill -0 $run || exit 1; sleep 0.2; done
redis-cli -p 7379 SET key kept
crane-ctl checkpoint now image
status=$?
redis-cli -p 7379 GET key
kill $run
wait $run
exit $status
"""
STORAGE = """[storage]
driver = "vfs"
graphroot = "{place}/root"
runroot = "{place}/run"
"""


class Store:
    """Images and containers below the scenario's directory."""

    def __init__(self, scenario):
        self.place = scenario.work / "images"
        self.place.mkdir()
        file = self.place / "storage.conf"
        file.write_text(STORAGE.format(place=self.place))
        self.environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(file)}

    def run(self, *words, seconds=300, **more):
        """Returns (status, output)."""
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=seconds,
                              env={**self.environment, **more})
        return done.returncode, done.stdout

    def in_container(self, image, *words):
        status, said = self.run("buildah", "from", "--pull-never", "--security-opt",
                                "seccomp=unconfined", image)
        if status != 0:
            raise h.Failure(f"buildah from {image}: {said}")
        return self.run("buildah", "run", "--isolation", "chroot", "--network", "host", "--user",
                        USER, said.split()[-1], "--", *words)

    def remove(self):
        self.run("buildah", "rm", "--all")
        self.run("buildah", "rmi", "--all", "--force")


def image(scenario):
    h.need("buildah", "debootstrap")
    if _packages.make(scenario) is None:
        return
    store = Store(scenario)
    try:
        status, text = store.run(MAKE_IMAGE, scenario.out, seconds=900, IMAGE="crane-redis",
                                 CRIU="1", EXTRA="redis-server redis-tools",
                                 BASE="debootstrap")
        if not scenario.check(status == 0, "make_image.sh makes the image of Debian's packages",
                              text[-2000:]):
            return
        status, text = store.in_container("localhost/crane-redis", "crane-run", "doctor")
        scenario.check("this machine can run groups" in text, "the doctor in the container",
                       f"{status}: {text}")
        script = GROUP.format(port=h.free_port())
        status, text = store.in_container("localhost/crane-redis", "/usr/lib/crane/crane-entry",
                                          "sh", "-c", script)
        scenario.check(status == 0 and "OK\nkept\n" in text, "a group in a container serves",
                       f"{status}: {text}")
        checkpoints(scenario, store)
    finally:
        store.remove()


def checkpoints(scenario, store):
    """crane-entry with CRANE_ROOT leaves the overlay, from which CRIU could save no program."""
    _status, said = store.run("buildah", "from", "--pull-never", "localhost/crane-redis")
    _status, root = store.run("buildah", "mount", said.split()[-1])
    volumes = scenario.work / "volumes"
    volumes.mkdir()
    status, text = store.run(
        "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", ENGINE,
        "engine", root.strip(), volumes, "sh", "-c", CHECKPOINT, CRANE_ROOT="/crane-root")
    scenario.check(status == 0 and "root: overlayfs" not in text and "published" in text
                   and "OK\n" in text and "\nkept\n" in text,
                   "in a privileged container a server can be saved", f"{status}: {text}")
