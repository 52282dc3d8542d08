#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CRANE's micro-benchmark (7.2): a PUT and a GET of one URL at once, each replica perturbed.

Whether the GET sees the new page depends on the schedule: all replicas must see the same. With
admission by arrival (a test-only switch) they do not, so the test can fail.
"""
import threading

import _harness as h

DAV = """
<IfModule !mod_dav.c>
  LoadModule dav_module /usr/lib/apache2/modules/mod_dav.so
</IfModule>
<IfModule !mod_dav_fs.c>
  LoadModule dav_fs_module /usr/lib/apache2/modules/mod_dav_fs.so
</IfModule>
DavLockDB {work}/davlock/db
Alias /dav {work}/dav
<Directory {work}/dav>
  Dav On
  Require all granted
</Directory>
"""


def dav_configuration(work, port, **more):
    """Configuration of an apache2 that accepts PUTs below /dav; its directories are in `work`."""
    for name in ("dav", "davlock"):
        (work / name).mkdir()
        (work / name).chmod(0o777)
    return h.apache_configuration(work, port, DAV.format(work=work), **more)


def rounds(scenario, port, count):
    """The answer to each GET: 'new', 'absent', or the answer itself."""
    seen = []
    for number in range(count):
        page = b"round %d\n" % number * 20
        put = (b"PUT /dav/%d HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (number, len(page))) + page
        answers = {}
        together = threading.Barrier(2)

        def ask(name, request):
            together.wait()
            try:
                answers[name] = h.http(port, request, 30)
            except OSError as error:
                answers[name] = str(error).encode()
        threads = [threading.Thread(target=ask, args=("put", put)),
                   threading.Thread(target=ask,
                                    args=("get", b"GET /dav/%d HTTP/1.0\r\n\r\n" % number))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        get = answers["get"]
        seen.append("new" if b" 200 " in get[:20] and page in get else
                    "absent" if b" 404 " in get[:20] else repr(get[:60]))
        if number < 3 and b" 201 " not in answers["put"][:20]:
            scenario.say(f"PUT answered {answers['put'][:100]!r}")
    return seen


def tally(seen):
    return ", ".join(f"{seen.count(s)} {s}" for s in sorted(set(seen)))


def group_for(scenario, conf, port, admission, seed):
    return h.Group(scenario, ["apache2", "-f", str(conf)], port=port, record=True,
                   options=["--perturb", str(seed), "--admission", admission])


def body(scenario):
    h.need("apache2")
    if not h.can_contain():
        raise h.CannotRun("each replica needs its own file system: root and LXC")
    count = 100 if scenario.full else 12
    port = h.free_port()
    conf = dav_configuration(scenario.work, port)
    seed = scenario.options.seed
    scenario.say(f"{count} rounds, perturbed by seed {seed}")
    with group_for(scenario, conf, port, "grant", seed) as group:
        seen = rounds(scenario, port, count)
        scenario.say(f"GET saw: {tally(seen)}")
        scenario.check(all(s in ("new", "absent") or "200 OK" in s for s in seen), "every GET was "
                       "answered", tally(seen))
        group.settle()
        group.stop()
        text = scenario.check_equal(group, what=f"{count} rounds: all replicas answered the same")
        scenario.say(f"crane-diff: {text}")
    scenario.say("the same with admission by arrival")
    group = group_for(scenario, conf, port, "arrival", seed)
    try:
        group.start()
        seen = rounds(scenario, port, count)
        scenario.say(f"GET saw: {tally(seen)}")
        group.stop()
        # The live check may stop a replica before one of its answers differs: its schedule already
        # does.
        reports = [group.diff("--prefix"), group.diff("--schedule", "--prefix")]
        scenario.check(any(status == 1 for status, _ in reports), "by arrival the replicas diverge",
                       "\n".join(f"crane-diff: exit {status}\n{text}" for status, text in reports))
        for status, text in reports:
            scenario.say(f"crane-diff: exit {status}: {text.splitlines()[-1]}")
    finally:
        group.kill_all()


if __name__ == "__main__":
    h.run_scenario("dav_race", body, seed={"type": int, "default": 20260101})
