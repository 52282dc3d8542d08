#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An operator's tools: a running node refuses malformed requests of every kind, generated from the
schema that crane-ctl prints; for a mistyped command crane-ctl suggests one; answers match the
schema of status."""
import copy
import json
import signal
import socket
import sys

import _harness as h

LISTENS = """
import socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    c, _ = s.accept()
    c.sendall(b"hello\\n")
    c.close()
"""


def ask(path, request):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(10)
        s.connect(str(path))
        s.send(request)
        return s.recv(1 << 20)


def good_value(field):
    return {"true or false": True, "number": field.get("least", 0),
            "text": (field.get("one_of") or ["x"])[0], "list": []}[field["type"]]


def wrong_values(field):
    """Pairs of a value that the field does not accept and the kind of the error."""
    others = {"true or false": True, "number": 7, "text": "7", "list": []}
    for kind, value in others.items():
        if kind != field["type"]:
            yield value, "wrong_type"
    yield {"a": {"b": 1}}, "wrong_type"
    yield 1.5, "wrong_type"
    if field["type"] == "number":
        yield -1, "out_of_range"
        if "most" in field:
            yield field["most"] + 1, "out_of_range"
            yield 4294967297, "out_of_range"
            yield 1e300, "wrong_type"
    if field.get("one_of"):
        yield "no such word", "out_of_range"


def malformed(channel):
    """Requests as bytes, each with the error kind that the answer must have."""
    key = channel["verb"]
    for verb in channel["verbs"]:
        whole = {key: verb["name"]}
        whole.update({f["name"]: good_value(f) for f in verb["fields"] if f["required"]})
        yield json.dumps({**whole, "version": 2}).encode(), "version"
        yield json.dumps({**whole, "nothing": 1}).encode(), "unknown_field"
        for field in verb["fields"]:
            if field["required"]:
                less = copy.copy(whole)
                del less[field["name"]]
                yield json.dumps(less).encode(), "missing_field"
            for value, error in wrong_values(field):
                yield json.dumps({**whole, field["name"]: value}).encode(), error
    yield b"{", "not_json"
    yield b'{"do":"\xff\xfe"}', "not_json"
    yield b"[]", "not_an_object"
    yield b"{}", "missing_field"
    yield b'{"do":7}', "wrong_type"
    yield b'{"do":"stauts"}', "unknown_verb"
    yield b"[" * 3000, "too_deep"
    yield b'{"do":"' + b"x" * 8000 + b'"}', "too_large"


def refuse_malformed(scenario, group):
    status, text = h.ctl(scenario, "schema", "-o", "json")
    scenario.check(status == 0, "crane-ctl schema", text[-300:])
    schema = json.loads(text)
    channel = next(c for c in schema["channels"] if c["name"] == "node")
    pids = [group.status(i)["pid"] for i in range(3)]
    bad, count = [], 0
    for number in range(3):
        path = group.dir / f"r{number}/control.sock"
        for request, error in malformed(channel):
            answer = json.loads(ask(path, request) or b"null")
            count += 1
            good = answer and answer.get("ok") is False and answer["error"] == error \
                and answer["version"] == schema["version"] and answer["message"] \
                and answer["error"] in schema["errors"]
            if not good:
                bad.append((number, request[:80], error, answer))
    scenario.check(not bad and count > 100, f"{count} malformed requests are refused by kind",
                   str(bad[:5]))
    scenario.check([group.status(i)["pid"] for i in range(3)] == pids, "every node lives")
    for request in (b'{"do":"checkpoint","replica":"x"}', b'{"do":"checkpoint","tier":7}',
                    b'{"do":"transfer","to":4294967297}'):
        answer = json.loads(ask(group.dir / "r0/control.sock", request))
        print(request.decode(), "->", answer["message"])


TYPES = {"true or false": lambda v: isinstance(v, bool), "text": lambda v: isinstance(v, str),
         "number": lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0,
         "list of texts": lambda v: all(isinstance(x, str) for x in v),
         "list of pairs of numbers": lambda v: all(len(x) == 2 for x in v),
         "object of numbers": lambda v: all(x is None or TYPES["number"](x) for x in v.values())}


def unlike(value, fields, place):
    """The differences between `value` and the table."""
    if not isinstance(value, dict):
        return [f"{place} is no object"]
    bad = [f"{place}.{name} is in no table" for name in value
           if name not in {f["name"] for f in fields}]
    for f in fields:
        name, at = f["name"], f"{place}.{f['name']}"
        if name not in value:
            bad += [] if f["presence"] == "sometimes" else [at + " is missing"]
        elif value[name] is None:
            bad += [at + " is null"] if f["presence"] == "always" else []
        elif f["type"] == "object":
            bad += unlike(value[name], f["fields"], at)
        elif f["type"] == "list of objects":
            for one in value[name]:
                bad += unlike(one, f["fields"], at)
        elif not TYPES[f["type"]](value[name]):
            bad.append(f"{at} is no {f['type']}: {value[name]!r}")
    return bad


def as_the_schema_says(scenario, group, what):
    """Every answer has the fields that `crane-ctl schema status` lists, and no others."""
    tables = {d["name"]: d["fields"] for d in
              json.loads(h.ctl(scenario, "schema", "status", "-o", "json")[1])["documents"]}
    bad = []
    for n in range(3):
        status = group.status(n)
        bad += unlike(status, tables["node"], f"node {n}") if status else []
    all_of_it = json.loads(h.ctl(scenario, "--dir", str(group.home), "status", group.name,
                               "-o", "json")[1])
    rows, all_of_it["replicas"] = all_of_it["replicas"], []
    bad += unlike(all_of_it, tables["group"], "group")
    own = next(f["fields"] for f in tables["group"] if f["name"] == "replicas")
    names = {f["name"] for f in own}
    for row in rows:
        bad += unlike({k: v for k, v in row.items() if k in names}, own, "row")
        rest = {k: v for k, v in row.items() if k not in names}
        if row["state"] == "ok":
            bad += unlike({**rest, "replica": row["replica"]}, tables["node"], "row")
    members = h.ctl(scenario, "--dir", str(group.home), "member", "list", group.name, "-o",
                    "json")[1]
    bad += unlike(json.loads(members), tables["members"], "members")
    bad += unlike(group.state(), tables["state"], "state.json")
    events = json.loads(h.ctl(scenario, "--dir", str(group.home), "events", group.name, "-o",
                              "json")[1])
    bad += unlike(events, tables["events"], "events")
    version = json.loads(h.ctl(scenario, "schema", "-o", "json")[1])["version"]
    scenario.check(not bad and all_of_it["version"] == version,
                   f"{what}: answers match "
                   "the schema", str(bad[:8]))
    return all_of_it, rows


def status_has_a_schema(scenario, group):
    as_the_schema_says(scenario, group, "well")
    victim = next(n for n in range(3) if n != group.leader())
    with h.stopped(group.replica(victim)["node_pid"]):
        _, rows = as_the_schema_says(scenario, group, "a node stopped")
        scenario.check(rows[victim]["state"] == "does not answer",
                       "status reports the stopped node", rows[victim])


def what_happened(scenario, group):
    """Each replica begins and knows the leader; a killed replica is reported missing, and
    returns."""
    def told():
        text = h.ctl(scenario, "--dir", str(group.home), "events", group.name, "-o", "json")[1]
        return [(e["replica"], e["event"]) for e in json.loads(text)["events"]]
    old = group.leader()
    h.wait_until(lambda: {(n, "begins") for n in range(3)} | {(old, "leads")} <= set(told()), 20,
                 "crane-ctl events: all replicas begin, one leads")
    group.signal_node(old, signal.SIGKILL)
    new = h.wait_until(lambda: [n for n, what in told() if what == "leads" and n != old], 30,
                       "crane-ctl events: another replica leads")[0]
    h.wait_until(lambda: told().count((old, "begins")) == 2, 60,
                 "crane-ctl events: the lost replica begins again")
    scenario.check((new, "replica is gone") in told() or (new, "replica is there") in told(),
                   "crane-ctl events: the leader reports the others", str(told()))
    last = h.ctl(scenario, "--dir", str(group.home), "events", group.name, "--last", "2")[1]
    scenario.check(len(last.splitlines()) == 3, "crane-ctl events --last 2", last)


def work_now(scenario, group):
    status, text = h.ctl(scenario, "--dir", str(group.home), "top", group.name, "--once", "-o",
                         "json")
    rows = json.loads(text) if status == 0 else []
    scenario.check([r["replica"] for r in rows] == [0, 1, 2]
                   and all(r["node_cpu_percent"] >= 0 for r in rows),
                   "crane-ctl top: all replicas", text)


def typos(scenario):
    for words, says in ((["stauts"], "unknown command 'stauts'; did you mean 'status'?"),
                        (["leader", "tranfser"], "did you mean 'transfer'?"),
                        ([], "a command is missing: "), (["member"], "member what: list")):
        status, text = h.ctl(scenario, *words)
        scenario.check(status == 100 and says in text, f"{words}: {says}", f"{status}: {text}")


def body(scenario):
    typos(scenario)
    port = h.free_port()
    with h.Group(scenario, [sys.executable, "-c", LISTENS, str(port)], port=port,
                 container=False) as group:
        refuse_malformed(scenario, group)
        status_has_a_schema(scenario, group)
        work_now(scenario, group)
        what_happened(scenario, group)


h.run_scenario("control", body)
