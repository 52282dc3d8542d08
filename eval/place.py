# SPDX-License-Identifier: Apache-2.0
"""What measuring programs share: where they run, what they ran on, how they plot."""
import os
import platform
import time


class Place:
    """What Group and its kind need to know of a story."""

    def __init__(self, out, work, name="bench"):
        self.name, self.out, self.work, self.numbers = name, out, work, 0

    def next_number(self):
        self.numbers += 1
        return self.numbers


def machine():
    try:
        model = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo",
                     encoding="utf8") if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return {"processor": model, "processors": os.cpu_count(), "memory_mib": memory,
            "kernel": platform.release(), "load_at_start": os.getloadavg()[0],
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def pyplot_or_none():
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
        return pyplot
    except ImportError:
        print("no plot: matplotlib is absent (python3-matplotlib)")
        return None
