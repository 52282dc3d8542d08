# SPDX-License-Identifier: Apache-2.0
"""Crane's Debian packages of this build."""
import subprocess

import _harness as h


def make(scenario):
    """Makes the packages and checks the result. Returns their directory, or None."""
    h.need("dpkg-buildpackage", "dh")
    done = subprocess.run([str(h.ROOT / "runtime/packaging/make_deb.sh"), str(scenario.out)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    good = scenario.check(done.returncode == 0, "the packages are made", done.stdout[-3000:])
    return scenario.out / "deb" if good else None
