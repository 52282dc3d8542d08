# SPDX-License-Identifier: Apache-2.0
"""Conditions with deadlines, which all scenarios use to wait."""
import time


class Failure(Exception):
    """Something that a scenario needs did not happen."""


class CannotRun(Exception):
    """This machine lacks something; the runner reports the scenario as skipped."""


def wait_until(condition, seconds, what):
    """Returns the first true value of condition(); raises a Failure with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.005)  # poll
