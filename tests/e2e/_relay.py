#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A switch that delays frames: one tap device for each name; frames keep their order.

    _relay.py --delay-ms 20 --jitter-ms 10 NAME..

Each frame leaves after the delay plus or minus at most the jitter, but not before earlier frames of
the same path. The switch prints "ready" when the devices exist. They may then be moved to other
network namespaces, and disappear when it ends.
"""
import argparse
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME_MAX = 65536


def tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


class Switch:
    def __init__(self, ports, delay_s, jitter_s, seed):
        self.ports, self.delay_s, self.jitter_s = ports, delay_s, jitter_s
        self.random, self.order = random.Random(seed), itertools.count()
        self.where = {}  # address: port
        self.last = {}  # (from, to): when its last frame leaves
        self.waiting = []

    def take(self, port, now):
        while True:
            try:
                frame = os.read(port, FRAME_MAX)
            except BlockingIOError:
                return
            to, sender = frame[:6], frame[6:12]
            self.where[sender] = port
            known = self.where.get(to) if not to[0] & 1 else None
            for other in [known] if known else [p for p in self.ports if p != port]:
                self.put(port, other, frame, now)

    def put(self, port, to, frame, now):
        at = now + self.delay_s + self.random.uniform(-self.jitter_s, self.jitter_s)
        at = self.last[port, to] = max(at, self.last.get((port, to), 0))
        heapq.heappush(self.waiting, (at, next(self.order), to, frame))

    def give(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            _, _, to, frame = heapq.heappop(self.waiting)
            try:
                os.write(to, frame)
            except OSError:
                pass  # the device is down or its queue is full: the frame is lost, as on a wire

    def run(self):
        poll = select.poll()
        for port in self.ports:
            poll.register(port, select.POLLIN)
        while True:
            wait = None
            if self.waiting:
                wait = max(0, 1000 * (self.waiting[0][0] - time.monotonic()))
            for port, _ in poll.poll(wait):
                self.take(port, time.monotonic())
            self.give(time.monotonic())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delay-ms", type=float, required=True)
    parser.add_argument("--jitter-ms", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    switch = Switch([tap(name) for name in options.names], options.delay_ms / 1000,
                    options.jitter_ms / 1000, options.seed)
    print("ready", flush=True)
    switch.run()


if __name__ == "__main__":
    main()
