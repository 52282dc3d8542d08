# SPDX-License-Identifier: Apache-2.0
"""Conditions with deadlines: how everything here waits."""
import time


class Failure(Exception):
    """Something a scenario needs did not happen."""


class CannotRun(Exception):
    """This machine lacks something; the scenario is skipped by name."""


def wait_until(condition, seconds, what):
    """The first true value of condition(); a Failure that says `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.005)  # poll
