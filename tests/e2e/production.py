#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bare Debian 12 with systemd: Crane's package is installed there by apt."""
import shutil

import _debian
import _harness as h


def body(scenario):
    packages = sorted((scenario.out / "deb").glob("crane_*.deb"))
    _debian.need_archive()
    with _debian.Machine(scenario) as machine:
        scenario.say("booted")
        shutil.copy(packages[-1], machine.root / "root")
        scenario.say(machine.must("systemctl --failed; apt-get update 2>&1 | tail -3", 120))
        scenario.say(machine.must("apt install -y ./crane_*.deb 2>&1 | tail -40", 500))
        scenario.say(machine.run("systemctl --failed; crane-run doctor").stdout)


h.tell("production", body)
