#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-ctl finds the groups of this machine without being told their directory."""
import json

import _harness as h

NO_SUCH_GROUP = 3


def listed(story):
    status, text = h.ctl(story, "list", "-o", "json")
    return {row["group"]: row for row in json.loads(text)} if status == 0 else {}


def body(story):
    h.need("redis-server")
    port = h.free_port()
    with h.Group(story, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        group.settle()
        row = listed(story).get(group.name, {})
        story.check(row.get("directory") == str(group.home / group.name)
                    and row.get("state") == "well" and row.get("answering") == 3,
                    "crane-ctl list shows it, how it is, and where", str(row))
        status, text = h.ctl(story, "status", group.name)
        story.check(status == 0 and group.name in text, "status finds it", f"{status}: {text}")
        status, text = h.ctl(story, "member", "list", group.name)
        story.check(status == 0 and "voter" in text, "member list finds it", f"{status}: {text}")
        status, text = h.ctl(story, "status", "no-such-group")
        story.check(status == NO_SUCH_GROUP and "/run/crane" in text and "crane-ctl list" in text,
                    "of one that is nowhere it says where it looked", f"{status}: {text}")
        status, text = h.ctl(story, "--dir", str(story.work / "elsewhere"), "status", group.name)
        story.check(status == NO_SUCH_GROUP and "elsewhere" in text, "--dir: only there",
                    f"{status}: {text}")
        group.stop()
    status, text = h.ctl(story, "status", group.name)
    story.check(status == NO_SUCH_GROUP, "one that has ended is found no more",
                f"{status}: {text}")


if __name__ == "__main__":
    h.tell("find_group", body)
