# SPDX-License-Identifier: Apache-2.0
"""The page of proxy/host/http with answers for states that a real group cannot be brought to at
once. The answers have the fields of the JSON Schema that the build makes."""
import copy
import http.server
import json
import math
import re
import threading

import _harness as h

FOLDER = h.ROOT / "proxy/host/http"
NOW_MS = 1_790_000_000_000
LONG = ("CRIU cannot dump this server: it has a device open that no checkpoint can contain "
        "(/dev/infiniband/uverbs0), and it shares memory with a process outside its container")


def readiness(**more):
    return {"runs": True, "starts": False, "takes_clients": False, "recovers": False,
            "needs_checkpoint": False, "acceptor_only": False, "paced": False, "no_room": False,
            "late": False, "lag_ms": 0, "progress": None, "why_not": None, **more}


def replays(done, of, per_s, left_ms):
    return readiness(recovers=True, late=True, lag_ms=9_400, progress={
        "done": done, "of": of, "per_s": per_s, "left_ms": left_ms})


def verdict(health, text, notes=()):
    return {"health": health, "serving": text.startswith("serving"), "text": text,
            "notes": list(notes)}


def member(replica, **more):
    return {"replica": replica, "member": "voter", "incarnation": 1, "connected": True,
            "needs_checkpoint": False, **more}


def peer(replica, **more):
    return {**member(replica), "streaming": True, "silent": False, "was_there": True,
            "readiness": readiness(), "applied": 48_211, "last": 48_213, "lag_entries": 2,
            "lag_ms": 0, "host": {"commit": PARTS["build"]["commit"],
                                  "begun_unix_s": NOW_MS // 1000 - 7_200 * (1 + replica),
                                  "disk_bytes": 100_000_000_000,
                                  "disk_free_bytes": 70_000_000_000 - replica}, **more}


PARTS = {
    "last_election": {"view": 3, "cause": "suspicion", "took_us": 41_800, "age_ms": 5_400_000},
    "detection": {"score": 1500, "suspect_at": 200, "trust_at": 600, "full": 1500,
                  "misses_needed": 5, "period_us": 100_000},
    "verified": {"index": 48_150, "verdict": "equal", "entries_since": 61, "age_ms": 1_200,
                 "alarm": "", "differ": False},
    "commit_latency": {"count": 924, "mean_us": 14, "p50_us": 20, "p99_us": 100},
    "store_latency": {"count": 924, "mean_us": 310, "p50_us": 200, "p99_us": 1_000},
    "checkpoint": {
        "busy": False, "failed": 0, "gave_up": 0, "held_us": 255_258, "last": 44_100,
        "log_covered": 44_100, "log_first": 31_007, "none_because": "", "pack_us": 3_895_856,
        "phases_us": {"dumping": 164_346}, "prepare_us": 328_547, "rest_us": 21_539,
        "restored_at": 0, "return_us": {"criu": 0}, "taken": 4, "under_way": 0, "why_not": ""},
    "recovery": {"tier": "criu", "entry": 44_100, "why": "", "refused": "", "came_back_by": "",
                 "catches_up": False, "progress": None},
    "upgrade": {"state": "none", "entry": 0, "why": "", "command": '["redis-server"]',
                "files": 0},
    "build": {"commit": "e43b8645e4a6", "versions": "wire 3, log 2, schedule 8, checkpoint 2",
              "segment": 26, "libcrane": "a2312e3fbd720dab"},
    "unsupported": {"datagrams": 0, "udp_ports": 0, "sandboxes": 0},
}
PLAIN = {
    "version": 1, "t": "status", "group": "shop", "fabric": "tcp", "durability": "disk",
    "operations": [], "supervised": True,
    "pid": 24_832, "server_pid": 25_025, "view": 3, "changing_members": False,
    "needs_checkpoint": False, "catching_up": False, "last": 48_213, "commit": 48_213,
    "durable": 48_213, "applied": 48_213, "clock": 932_164, "schedule_hash": "bf60c2b33b0dfa4b",
    "settled": False, "outputs_bytes": 319_150, "outputs_digest": "e89d5b627072bd99",
    "entries": {"data": 40_551, "connect": 1_184}, "entries_total": 48_213, "inputs": 41_915,
    "ports": [], "links_lost": 0, "probes": 0, "placement": "roams", "unhooked_calls": 0,
    "unhooked": [], "spins": False, "preempted": 0, "slices": 730, "tick_points": 2,
    "soft_barriers": [], "connections": 12, "outbound": [], "accepted": 1_184, "refused": 0,
    "reset_slow": 0, "reset_leader": 0, "keeps_connections": True, "adopted": 6,
    "last_adopted": 2, "last_reset": 0, "bytes_in": 22_530_114, "bytes_out": 31_915_220,
    "forwarded": 0, "waited_ms": 1_468, "leader_changes": 3, "lag_ms": 0, "spooled_bytes": 0,
    "wakeups": 10_731, "divergences": 0, "may_lose": 1, "no_quorum": None, "no_room": None,
    "not_serving": None, "server_exit": None, "server_end": None, "server_refused": None,
    "device": None, "fence": None, "log_pages": None, "cpus": None, "numa_node": None,
    "standing_still": None, "unsliced": None}


def status(own=0, leader=0, peers=None, said=None, **more):
    """A node's status; `peers`: those of the two others, by default well."""
    peers = peers or [peer(i) for i in range(3) if i != own]
    leads = own == leader
    for one in peers:
        if one["replica"] == leader and "readiness" in one:
            one["readiness"]["takes_clients"] = True
        if not leads:   # only a leader knows these
            for key in ("last", "lag_entries", "lag_ms"):
                one.pop(key, None)
    shared = member(0)
    members = [member(own)] + [{k: p[k] for k in shared} for p in peers]
    return {**copy.deepcopy(PLAIN), **copy.deepcopy(PARTS), "replica": own,
            "replicas": len(members), "leader": leader, "peers": peers,
            "members": sorted(members, key=lambda m: m["replica"]),
            "peers_connected": sum(p["connected"] for p in peers),
            "role": "leader" if leads else "follower", "takes_clients": leads,
            "readiness": readiness(takes_clients=leads),
            "verdict": said or verdict("well", "serving, 3 of 3, fault tolerant"), **more}


def away(replica, **more):
    one = peer(replica, connected=False, streaming=False, **more)
    del one["readiness"], one["applied"], one["host"]
    return one


ONE_MORE = "serving, 2 of 3: ONE MORE LOSS STOPS IT; "
ALARM = "replica 2 differs from the majority at log index 47,980"
STEPS = [
    {"operation": "checkpoint", "replica": 1, "step": "copies the server's memory",
     "done": 12_400_000, "of": 100_000_000, "unit": "bytes", "per_s": 73_000_000,
     "left_ms": 1_200},
    {"operation": "backup", "replica": 2, "step": "reads the log", "done": 4_711, "of": 5_180,
     "unit": "entries", "per_s": 0, "left_ms": None},
    {"operation": "hand over", "replica": 0, "step": "waits for replica 1", "done": 31, "of": 0,
     "unit": "entries", "per_s": 0, "left_ms": None}]


def lost(**more):
    note = "replica 2 is gone"
    return status(peers=[peer(1), away(2, **more)], may_lose=0,
                  said=verdict("degraded", ONE_MORE + note, [note]))


def mixed():
    other = peer(1)
    other["host"] = {**other["host"], "commit": "0a1b2c3d4e5f", "disk_free_bytes": 2_000_000_000}
    return status(peers=[other, peer(2)])


def replaying():
    note = "replica 2 replays, 12,400 of 24,272 entries, 3 s left"
    return status(peers=[peer(1), peer(2, lag_ms=9_400, lag_entries=11_872, applied=36_341,
                                       readiness=replays(12_400, 24_272, 4_000, 3_000))],
                  said=verdict("degraded", "serving, 3 of 3, but not yet fault tolerant: " + note,
                               [note]), may_lose=0)


def drained():
    note = "replica 2 is drained"
    return status(peers=[peer(1), away(2, drained=True)], may_lose=0,
                  said=verdict("degraded", ONE_MORE + note, [note]))


def no_quorum():
    why = ("no quorum: 1 of 3 replicas answer; clients wait until crane-run has brought the "
           "others back")
    return status(peers=[away(1, drained=False), away(2, drained=True)], may_lose=0,
                  no_quorum=why, role="candidate", leader=None, takes_clients=False,
                  readiness=readiness(why_not=None),
                  said=verdict("no leader", "NOT SERVING: no quorum",
                               ["replica 1 is gone", "replica 2 is drained"]))


def replays_alone():
    text = "not serving: replaying, 5 of 24,272 entries, 4 min left"
    return status(may_lose=0, takes_clients=False, readiness=replays(5, 24_272, 101, 240_000),
                  lag_ms=9_400, applied=23_946,
                  peers=[peer(1, readiness=replays(3, 24_272, 90, None)),
                         peer(2, readiness=readiness(runs=False, acceptor_only=True, progress={
                             "done": 0, "of": 0, "per_s": 0, "left_ms": None}))],
                  said=verdict("not serving", text, [
                      "replica 0 replays, 5 of 24,272 entries, 4 min left",
                      "replica 1 replays, 3 of 24,272 entries",
                      "replica 2 votes without a server: it waits for a checkpoint to begin at"]))


def full():
    place = "/var/lib/crane/shop: the disk is full; free some space there"
    return status(may_lose=0, no_room=place, said=verdict(
        "not serving", "NOT SERVING: inputs wait: replica 0, which leads, has no room for them",
        ["replica 0 has no room"]), readiness=readiness(no_room=True, takes_clients=True),
        checkpoint={**PARTS["checkpoint"], "failed": 2, "why_not": "No space left on device"})


def differ():
    return status(said=verdict("degraded", "serving, 3 of 3, BUT THE REPLICAS DIFFER, fault "
                                           "tolerant", ["the replicas differ: " + ALARM]),
                  divergences=1, verified={**PARTS["verified"], "verdict": "different",
                                           "alarm": ALARM, "differ": True})


def starting():
    return status(peers=[away(1, was_there=False), peer(2, readiness=readiness(
        runs=False, starts=True))], leader=None, may_lose=0, takes_clients=False,
        readiness=readiness(runs=False, starts=True), server_pid=None, last_election=None,
        commit_latency=None, said=verdict("starting", "starting: waits for replicas 0, 1, 2", [
            "replica 0 starts its server", "replica 1 has not started yet",
            "replica 2 starts its server"]))


def ended():
    why = "the server has ended with status 1; crane-ctl upgrade or a new group starts another"
    return status(may_lose=0, not_serving=why, server_pid=None, server_exit=1,
                  server_end="exited", readiness=readiness(runs=False, why_not=why),
                  said=verdict("not serving", "NOT SERVING: the server of replica 0 has ended",
                               ["replica 0 has no server: it ended"]))


def large():
    """Long names and texts, seven replicas of all kinds."""
    peers = [peer(1, lag_ms=5_666, lag_entries=123_405, readiness=readiness(
                 late=True, lag_ms=5_666)),
             peer(2, silent=True), peer(3, member="learner", readiness=readiness()),
             peer(4, needs_checkpoint=True), peer(5, member="analysis"), peer(6, streaming=False)]
    notes = ["replica 1 is 5,666 ms behind", "replica 2 does not answer",
             "replica 3 lost its memory, and does not vote yet",
             "replica 4 lacks entries that left the log", "replica 6 does not get the log yet"]
    return status(peers=peers, group="shop-of-the-north-" + "long" * 14, may_lose=0,
                  said=verdict("degraded", "serving, 4 of 6, but not yet fault tolerant: "
                               + "; ".join(notes), notes),
                  last=9_148_213_004, commit=9_148_213_004, applied=9_148_213_004,
                  recovery={**PARTS["recovery"], "tier": "replay", "why": LONG},
                  checkpoint={**PARTS["checkpoint"], "none_because": LONG, "taken": 0})


# name: (status, the verdict's class, words that the table or the page has to show)
STATES = {
    "healthy": (status, "good", ["ready to lead", "serves the clients", "What happened",
                                 "no checkpoint: at log index 43,000"]),
    "mixed": (mixed, "good", ["0a1b2c3d4e5f, another build than here, runs for 4 h",
                              "2 GB free of 100 GB, nearly full"]),
    "follower": (lambda: status(own=1), "good", ["led by replica 0", "this page"]),
    "one-lost": (lambda: lost(drained=False), "warn", ["lost", "ONE MORE LOSS STOPS IT"]),
    "one-gone": (lost, "warn", ["gone: lost or drained", "ONE MORE LOSS STOPS IT"]),
    "replaying": (replaying, "warn", ["51 %, 3 s left", "12,400 of 24,272 entries"]),
    "drained": (drained, "warn", ["drained: waits for crane-ctl replica resume"]),
    "unsupervised": (lambda: status(said=verdict("degraded", "serving, 3 of 3, fault tolerant"),
                                    supervised=False),
                     "warn", ["unsupervised: no crane-run restarts it"]),
    "no-quorum": (no_quorum, "bad", ["NOT SERVING: no quorum", "clients wait until crane-run"]),
    "operations": (lambda: status(operations=STEPS), "good",
                   ["checkpoint of replica 1", "12 %, 1 s left", "90 %, time left not known"]),
    "replays-alone": (replays_alone, "bad", ["0 %, 4 min left", "votes without a server"]),
    "disk-full": (full, "bad", ["no room: a disk or memory is full", "the disk is full"]),
    "differ": (differ, "bad", ["BUT THE REPLICAS DIFFER", ALARM]),
    "starting": (starting, "warn", ["not started yet", "starts its server"]),
    "server-ended": (ended, "bad", ["replica 0: the server has ended with status 1"]),
    "large": (large, "warn", ["does not answer", "needs a checkpoint", "analyses"]),
}


def differs(value, schema, where="status"):
    """Where a value is not of the schema, as far as Crane's schemas go."""
    if "anyOf" in schema:
        one = next(s for s in schema["anyOf"] if s.get("type") != "null")
        return [] if value is None else differs(value, one, where)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
             "null": type(None)}
    allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if type(value) not in [kinds[name] for name in allowed]:
        return [f"{where}: {value!r}"]
    if isinstance(value, list):
        return [p for one in value for p in differs(one, schema.get("items", {}), where)]
    fields = schema.get("properties")
    if not isinstance(value, dict) or fields is None:
        return []
    found = [f"{where}: {name} is missing" for name in schema["required"] if name not in value]
    for name, inner in value.items():
        if name in fields:
            found += differs(inner, fields[name], f"{where}.{name}")
        else:
            found.append(f"{where}: no such field: {name}")
    return found


def problems_of(state, out):
    """Where a state is no answer of a node."""
    schema = json.loads((out / "pages/answers.schema.json").read_text())
    return differs(state, schema["$defs"]["node"])


EVENTS = [("begins", "pid 24832"), ("server runs", "pid 25025"),
          ("leads", "in view 3: suspicion, took 41.8 ms; 2 connections were kept, 0 were reset"),
          ("replica is gone", "replica 2, drained"), ("replica is there", "replica 2"),
          ("no checkpoint", "at log index 43,000: " + LONG),
          ("checkpoint", "at log index 44100; the server was held for 255.3 ms")]


def events(state):
    return [{"unix_ms": NOW_MS - 3_600_000 * (len(EVENTS) - i), "replica": state["replica"],
             "event": name, "text": text} for i, (name, text) in enumerate(EVENTS)]


def history(pages, state, samples=300):
    def wave(scale, period, phase=0.0):
        return [round(scale * (1.2 + math.sin(i / period + phase)), 1) for i in range(samples)]
    leads = state["role"] == "leader"
    none = [None] * samples
    checkpoint = {"index": state["checkpoint"]["last"], "age_s": 1_260, "bytes": 41_300_112}
    return {"replica": state["replica"], "period_ms": 2_000, "pages": pages,
            "checkpoint": checkpoint if state["checkpoint"]["taken"] else None,
            "events": [] if state["last_election"] is None else events(state),
            "samples": {
                "unix_ms": [NOW_MS - 2_000 * (samples - i) for i in range(samples)],
                "inputs_per_s": wave(2_100, 17), "received_bytes_per_s": wave(91_000, 23),
                "sent_bytes_per_s": wave(190_000, 23, 0.7),
                "commit_p50_us": [20 if leads else None] * samples,
                "commit_p99_us": wave(60, 9) if leads else none,
                "connections": [12 + i // 60 for i in range(samples)],
                "lag_ms": wave(4, 5), "leads": [leads] * samples}}


def metrics(state, free=61_000_000_000):
    labels = f'group="{state["group"]}",replica="{state["replica"]}"'
    rows = [f'crane_build_info{{{labels},version="1.4.0, commit {state["build"]["commit"]}"}} 1',
            f"process_start_time_seconds{{{labels}}} {NOW_MS / 1000 - 93_000}"]
    for holds, path, size, left in (("state", "/var/lib/crane/shop", 100_000_000_000, free),
                                    ("memory", "/dev/shm/crane.shop", 8_000_000_000, 6.2e9)):
        place = f'{labels},holds="{holds}",path="{path}"'
        rows += [f"crane_filesystem_size_bytes{{{place}}} {size}",
                 f"crane_filesystem_free_bytes{{{place}}} {left:.0f}"]
    return "\n".join(rows) + "\n"


def policy():
    """The Content-Security-Policy that a node sends."""
    source = (FOLDER / "http_service.cc").read_text()
    text = source.split("kPolicy =", 1)[1].split(";\n", 1)[0]
    return "".join(re.findall(r'"([^"]*)"', text))


class Canned:
    """Serves the page and one state; `state` None: the node does not answer."""

    def __init__(self):
        self.state, self.requests = status(), []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, handler):
        state = self.state
        self.requests.append(handler.path)
        if state is None and handler.path != "/":
            handler.close_connection = True   # without an answer
            return
        pages = [f"127.0.0.1:{self.port + i}" for i in range(state["replicas"])] if state else []
        body = {"/": lambda: (FOLDER / "page.html").read_text(),
                "/status": lambda: json.dumps(state),
                "/history": lambda: json.dumps(history(pages, state)),
                "/metrics": lambda: metrics(state, 4e9 if state["no_room"] else 6.1e10),
                }.get(handler.path, str)()
        handler.send_response(200 if body else 404)
        kind = {"/": "text/html", "/metrics": "text/plain"}.get(handler.path, "application/json")
        handler.send_header("Content-Type", kind + "; charset=utf-8")
        handler.send_header("Content-Security-Policy", policy())
        handler.end_headers()
        handler.wfile.write(body.encode())
