#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deployment of groups on a fleet: the scripts are clean; the manifests match the schema of
Kubernetes; the entry script makes the same group.toml in each pod, and a pod that loses its memory
and its address comes back; the OCF agent passes ocf-tester. With --full the image is built, and
serves."""
import os
import pathlib
import re
import shutil
import textwrap

import _harness as h
from _hosts import Hosts
from _image import image
from _manifests import image_commands, manifests, pod_commands, run
from _pods import ENTRY, FLEET, Pods

ROOT = pathlib.Path(__file__).resolve().parents[2]


def part(name, body, *arguments):
    """Runs a part; if its tool is missing, the part is skipped by name, and the others run."""
    try:
        body(*arguments)
    except h.CannotRun as cause:
        print(f"SKIPPED: e2e/fleet: {name}: {cause}", flush=True)


def scripts(scenario):
    h.need("shellcheck")
    for script in (FLEET / "crane-entry", FLEET / "ocf/crane", FLEET / "make_image.sh",
                   FLEET / "kubernetes/crane-pods",
                   ROOT / "runtime/packaging/backup/crane-backup"):
        status, said = run("shellcheck", script)
        scenario.check(status == 0, f"shellcheck finds nothing in {script.name}", said)


# --- Kubernetes ---------------------------------------------------------------------------------

def in_manifest(name, key):
    """The text in a manifest below `key: |`."""
    text = (FLEET / "kubernetes" / name).read_text()
    block = re.search(rf"^( *){re.escape(key)}: \|\n((?:\1 +.*\n|\n)+)", text, re.M).group(2)
    return textwrap.dedent(block)


def groups_files(scenario):
    """crane-node reads the files in the manifests: only the secret is missing."""
    for name, key in (("base/config.yaml", "group.toml"), ("rdma/group.yaml", "shop.toml"),
                      ("privileged/kustomization.yaml", "group.toml")):
        text = in_manifest(name, key)
        if "[[replica]]" not in text:
            text += "".join(f'[[replica]]\naddress = "10.0.0.{i}"\nport = 7100\n'
                            for i in (1, 2, 3))
        file = scenario.work / "from-manifest.toml"
        file.write_text(text)
        status, output = run(scenario.out / "crane-node", "--config", file, "--replica", "0")
        scenario.check(status == 119 and "/secret" in output,
                       f"crane-node accepts the group's file of {name}", f"{status}: {output}")


def proxy(scenario):
    h.need("haproxy")
    path = scenario.work / "haproxy.cfg"
    path.write_text(in_manifest("base/leader.yaml", "haproxy.cfg"))
    status, output = run("haproxy", "-c", "-f", path)
    scenario.check(status == 0, "haproxy accepts the leader's configuration", output)


# --- the entry script ---------------------------------------------------------------------------

def entry_refuses(scenario):
    template = scenario.work / "template.toml"
    template.write_text("[group]\n")
    good = {"CRANE_TEMPLATE": str(template), "CRANE_REPLICAS": "3", "CRANE_REPLICA": "0",
            "CRANE_ADDRESS": "localhost%d.invalid", "CRANE_WAIT_S": "0",
            "CRANE_FILE": str(scenario.work / "never.toml")}
    for change, status, word in (
            ({"CRANE_REPLICAS": ""}, 100, "CRANE_REPLICAS"),
            ({"CRANE_REPLICA": "three"}, 100, "CRANE_REPLICA"),
            ({"CRANE_REPLICA": "3"}, 100, "replicas 0 to 2"),
            ({"CRANE_ADDRESS": "shop"}, 100, "CRANE_ADDRESS"),
            ({"CRANE_ADDRESS": "shop-%d-%s"}, 100, "CRANE_ADDRESS"),
            ({"CRANE_TEMPLATE": "/nowhere"}, 118, "/nowhere"),
            ({"CRANE_FILE": "/proc/nowhere/file"}, 118, "CRANE_FILE"),
            ({}, 120, "localhost0.invalid")):
        found, output = run(ENTRY, env={"PATH": os.environ["PATH"], **good, **change})
        scenario.check(found == status and word in output, f"the entry script refuses {change}",
                       f"{found}: {output}")
    found, output = run(ENTRY, "echo", "a program", env={"PATH": os.environ["PATH"]})
    scenario.check((found, output) == (0, "a program\n"), "it runs a named program")


def pods(scenario):
    if os.geteuid() != 0:
        raise h.CannotRun("namespaces need root")
    h.need("redis-server", "redis-cli", "iptables", "unshare", "setpriv", "curl")
    name, port = f"fleet{os.getpid() % 100000}", 6379
    template = in_manifest("base/config.yaml", "group.toml").replace('"shop"', f'"{name}"').replace(
        '"/var/lib/crane"', f'"{scenario.work / name / "state"}"')
    with Pods(scenario, name, template, port) as group:
        group.start(0)
        h.wait_until(lambda: "waiting for the address" in h.tail(group.log(0)), 20,
                     "the entry script waits for the Services")
        group.name_services()
        for pod in (1, 2):
            group.start(pod)
        h.wait_until(lambda: [group.ask(p, "/readiness?lag=1s") for p in range(3)] == [200] * 3,
                     60, "all pods are ready")
        scenario.check("is never cut" in h.tail(group.log(0)), "a pod of base reports that its log "
                       "grows", h.tail(group.log(0)))
        pods_serve(scenario, group)
        for who in ("a follower", "the leader"):
            leader = group.leader()
            lost = leader if who == "the leader" else (leader + 1) % 3
            group.lose(lost)
            h.wait_until(lambda lost=lost: group.leader() not in (None, lost), 60,
                         "a pod that was not lost leads")
            h.wait_until(lambda lost=lost, who=who: group.takes(lost, "SET", who, "lost"), 30,
                         "the others serve")
            h.wait_until(lambda lost=lost: group.ask(lost, "/readiness?lag=1s") == 200, 60,
                         f"{who} is back")
            h.wait_until(lambda at=(lost + 2) % 3: group.takes(at, "GET", "key") == "kept", 30,
                         "it serves")
            scenario.check(True, f"{who}, lost with memory and address, is back")
        lead(scenario, group, lost)


def pods_serve(scenario, group):
    group.redis(0, 1, "SET", "key", "kept")
    heard = [group.redis(0, to, "GET", "key") for to in range(3)]
    scenario.check(heard == ["kept"] * 3, "each pod serves at its Service", str(heard))
    made = [group.file(pod) for pod in range(3)]
    wanted = [f'address = "{a}"' for a in group.services]
    scenario.check(len(set(made)) == 1 and re.findall(r"address = .*", made[0]) == wanted,
                   "the entry script makes the same file in all pods", made[0])


def lead(scenario, group, number):
    """A replica that came back has the data written while it was away: it leads, and its own server
    answers."""
    def leads():
        run(scenario.out / "crane-ctl", "--dir", group.state, "leader", "transfer", group.name,
            "--to", number)
        return group.leader() == number
    h.wait_until(leads, 60, f"replica {number} leads")
    heard = [group.redis(number, number, "GET", who) for who in ("key", "a follower", "the leader")]
    scenario.check(heard == ["kept", "lost", "lost"], "it has all acknowledged data", str(heard))


# --- Pacemaker ----------------------------------------------------------------------------------

class Agent:
    """The installed agent, for replica 0 of a group."""

    def __init__(self, scenario, group):
        self.prefix = scenario.work / "prefix"
        status, said = run(ROOT / "runtime/packaging/install.sh", "install", scenario.out,
                           env={**os.environ, "PREFIX": str(self.prefix), "DESTDIR": ""})
        if status != 0:
            raise h.Failure(f"install: {said}")
        self.path = self.prefix / "lib/ocf/resource.d/crane/crane"
        self.parameters = {"group": group.name, "config": str(group.config),
                           "state_dir": str(group.state), "log": str(group.home / "agent.log"),
                           "nodes": f"{os.uname().nodename} beta gamma"}
        self.environment = {**os.environ, "OCF_ROOT": "/usr/lib/ocf",
                            "HA_RSCTMP": str(group.home / "rsctmp"),
                            "HA_LOGFILE": str(group.home / "ha.log"), "HA_logfile": "",
                            "OCF_RESOURCE_INSTANCE": "crane"}

    def does(self, action, changes=None, **meta):
        more = {f"OCF_RESKEY_{k}": v for k, v in {**self.parameters, **(changes or {})}.items()}
        meta = {"promoted_max": "1", "master_max": "1", **meta}
        more |= {f"OCF_RESKEY_CRM_meta_{k}": v for k, v in meta.items()}
        return run(self.path, action, env={**self.environment, **more})

    def tested(self):
        words = [w for k, v in self.parameters.items() for w in ("-o", f"{k}={v}")]
        return run("ocf-tester", "-n", "crane", *words, self.path, env=self.environment)


def pacemaker(scenario):
    h.need("ocf-tester", "xmllint", "redis-server")
    with Hosts(scenario, h.redis_program(port := h.free_port()), port=port, started=(1, 2),
               group={"durability": "disk"}, server={"container": False}) as group:
        agent = Agent(scenario, group)
        try:
            status, output = agent.tested()
            scenario.check(status == 0 and "passed all tests" in output, "ocf-tester finds nothing",
                           output)
            agent_moves_the_lead(scenario, group, agent)
            agent_refuses(scenario, agent)
        finally:
            status, output = agent.does("stop")
        scenario.check(status == 0 and agent.does("monitor")[0] == 7, "the agent stops", output)
        shutil.rmtree(agent.prefix)


def agent_moves_the_lead(scenario, group, agent):
    scenario.check(agent.does("start")[0] == 0 and agent.does("monitor")[0] == 0,
                   "a replica that starts follows")
    status, output = agent.does("promote", timeout="30000")
    scenario.check(status == 0 and agent.does("monitor")[0] == 8, "promoted, it leads", output)
    scenario.check(agent.does("monitor", promoted_max="0", master_max="0")[0] == 0,
                   "a leader is healthy if the clone is not promotable")
    status, output = agent.does("notify", notify_type="pre", notify_operation="promote",
                                notify_promote_uname=" gamma ")
    scenario.check(status == 0 and group.leader() == 2 and agent.does("monitor")[0] == 0,
                   "before another node is promoted the leader transfers the lead to it", output)
    pid = next((group.home / "rsctmp").glob("*.pid")).read_text().strip()
    os.kill(int(pid), 9)
    h.wait_until(lambda: agent.does("monitor")[0] == 7, 20, "a node that was killed is not running")
    scenario.check(agent.does("start")[0] == 0, "the agent starts it again")


def agent_refuses(scenario, agent):
    for change, status, word in (
            ({"group": "a/b"}, 6, "not a name of a group"), ({"nodes": "alpha"}, 6, "set nodes"),
            ({"programs": "/nowhere"}, 5, "is missing"),
            ({"config": "/nowhere"}, 5, "does not exist")):
        found, output = agent.does("start", change)
        scenario.check(found == status and word in output, f"the agent refuses {change}",
                       f"{found}: {output}")
    broken = agent.prefix / "broken.toml"
    broken.write_text("[group]\n")
    agent.does("stop")
    found, output = agent.does("start", {"config": str(broken), "nodes": "", "replica": "0"})
    scenario.check(found == 6 and "ended with 118" in output, "the agent reports the node's error",
                   f"{found}: {output}")


def body(scenario):
    part("scripts", scripts, scenario)
    part("manifests", manifests, scenario)
    pod_commands(scenario)
    image_commands(scenario)
    part("group files", groups_files, scenario)
    part("leader's proxy", proxy, scenario)
    entry_refuses(scenario)
    part("pods", pods, scenario)
    part("ocf agent", pacemaker, scenario)
    if scenario.full:
        part("image", image, scenario)


h.run_scenario("fleet", body)
