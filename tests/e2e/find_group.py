#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-ctl finds the groups of this machine without --dir."""
import json

import _harness as h

NO_SUCH_GROUP = 3


def listed(scenario):
    status, text = h.ctl(scenario, "list", "-o", "json")
    return {row["group"]: row for row in json.loads(text)} if status == 0 else {}


def body(scenario):
    h.need("redis-server")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        group.settle()
        row = listed(scenario).get(group.name, {})
        scenario.check(row.get("directory") == str(group.home / group.name)
                       and row.get("state") == "well" and row.get("answering") == 3,
                       "crane-ctl list shows the group, its state and its place", str(row))
        status, text = h.ctl(scenario, "status", group.name)
        scenario.check(status == 0 and group.name in text, "status finds it", f"{status}: {text}")
        status, text = h.ctl(scenario, "member", "list", group.name)
        scenario.check(status == 0 and "voter" in text, "member list finds it", f"{status}: {text}")
        status, text = h.ctl(scenario, "status", "no-such-group")
        scenario.check(status == NO_SUCH_GROUP and "/run/crane" in text
                       and "crane-ctl list" in text,
                       "for an unknown group it reports where it looked", f"{status}: {text}")
        status, text = h.ctl(scenario, "--dir", str(scenario.work / "elsewhere"), "status",
                             group.name)
        scenario.check(status == NO_SUCH_GROUP and "elsewhere" in text,
                       "with --dir it looks only there", f"{status}: {text}")
        (scenario.work / "places" / ".replay0" / "r0").mkdir(parents=True)
        status, text = h.ctl(scenario, "--dir", str(scenario.work / "places"), "list")
        scenario.check(".replay0" not in text, "the place of a replay is not a group",
                       f"{status}: {text}")
        group.stop()
    status, text = h.ctl(scenario, "status", group.name)
    scenario.check(status == NO_SUCH_GROUP, "a group that has ended is no longer found",
                   f"{status}: {text}")


if __name__ == "__main__":
    h.run_scenario("find_group", body)
