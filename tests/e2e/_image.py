# SPDX-License-Identifier: Apache-2.0
"""The container image, built by buildah in a separate store, and a group in a container of it."""
import pathlib
import subprocess

import _harness as h
import _packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = "debian:bookworm-slim"
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


class Store:
    """Images and containers below the scenario's directory."""

    def __init__(self, scenario):
        self.place = scenario.work / "images"

    def buildah(self, *words, seconds=300):
        """Returns (status, output)."""
        done = subprocess.run(["buildah", "--root", str(self.place / "root"), "--runroot",
                               str(self.place / "run"), "--storage-driver", "vfs",
                               *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=seconds)
        return done.returncode, done.stdout

    def must(self, *words):
        status, output = self.buildah(*words)
        if status != 0:
            raise h.Failure(f"buildah {words[0]}: {output[-2000:]}")
        return output

    def base(self, work):
        """Debian's slim image, or an image from debootstrap if no registry can be reached."""
        status, _said = self.buildah("pull", "-q", "--retry", "0", BASE, seconds=60)
        if status == 0:
            return BASE
        h.need("debootstrap")
        root = work / "debian"
        done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(root)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=400)
        if done.returncode != 0:
            raise h.CannotRun(f"neither {BASE} nor debootstrap: {done.stdout[-300:]}")
        container = self.must("from", "scratch").split()[-1]
        self.must("add", "-q", container, root, "/")
        self.must("commit", "-q", container, "base")
        self.must("rm", container)
        return "localhost/base"

    def build(self, name, file, context, base=None):
        more = [] if base is None else ["--build-arg", f"BASE={base}"]
        self.must("build", "--isolation", "chroot", "--network", "host", "--layers=false", *more,
                  "-t", name, "-f", file, context)

    def run(self, image, *words):
        container = self.must("from", "--security-opt", "seccomp=unconfined", image).split()[-1]
        return self.buildah("run", "--isolation", "chroot", "--network", "host", "--user", USER,
                            container, "--", *words)

    def remove(self):
        self.buildah("rm", "--all")
        self.buildah("rmi", "--all", "--force")


def image(scenario):
    h.need("buildah")
    packages = _packages.make(scenario)
    if packages is None:
        return
    store = Store(scenario)
    try:
        store.build("crane", ROOT / "runtime/packaging/fleet/Containerfile", packages,
                    store.base(scenario.work))
        layer = scenario.work / "layer"
        layer.mkdir()
        (layer / "Containerfile").write_text(
            "FROM localhost/crane\nRUN apt-get update && "
            "apt-get install -y --no-install-recommends redis-server redis-tools\n")
        store.build("crane-redis", layer / "Containerfile", layer)
        status, text = store.run("localhost/crane-redis", "crane-run", "doctor")
        scenario.check("this machine can run groups" in text, "the doctor in the container",
                       f"{status}: {text}")
        script = GROUP.format(port=h.free_port())
        status, text = store.run("localhost/crane-redis", "/usr/lib/crane/crane-entry", "sh", "-c",
                                 script)
        scenario.check(status == 0 and "OK\nkept\n" in text, "a group in a container serves",
                       f"{status}: {text}")
    finally:
        store.remove()
