# SPDX-License-Identifier: Apache-2.0
"""Static checks of the manifests for Kubernetes, and of the scripts around them with a kubectl and
a podman that only record what they are asked."""
import json
import os
import re
import subprocess

import _harness as h
from _pods import FLEET

VERSIONS = ("1.29", "1.32")  # of Kubernetes
KUSTOMIZED = ("base", "privileged", "rdma", "production")
POD_NAME = "statefulset.kubernetes.io/pod-name"
FABRIC, CLIENTS, HTTP = 7100, 6379, 9100
# Kinds of other projects, which Kubernetes' schemas do not contain.
FOREIGN = "monitoring.coreos.com/"
TO_JSON = "import json, sys, yaml; json.dump([x for x in yaml.safe_load_all(sys.stdin) if x], " \
          "sys.stdout)"


def run(*words, seconds=120, **more):
    """(status, output)."""
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=seconds, **more)
    return done.returncode, done.stdout


def validator(scenario):
    """kubernetes-validate, which includes the schemas; from PyPI, in the build tree."""
    place = scenario.out / "kubernetes-validate"
    program = place / "bin/kubernetes-validate"
    if not program.exists():
        run("python3", "-m", "venv", place)
        status, said = run(place / "bin/pip", "install", "-q", "kubernetes-validate", seconds=100)
        if status != 0:
            raise h.CannotRun(f"kubernetes-validate cannot be installed: {said.splitlines()[-1:]}")
    return program


def rendered(scenario, name):
    """The file with the objects of Kubernetes itself, and the text of all objects; or None."""
    status, said = run("kubectl", "kustomize", FLEET / "kubernetes" / name)
    if not scenario.check(status == 0, f"kustomize accepts {name}", said):
        return None
    path = scenario.work / f"{name}.yaml"
    path.write_text("---\n".join(one for one in said.split("---\n") if FOREIGN not in one))
    return path, said


class Objects:
    """The objects of one kustomization."""

    def __init__(self, program, text):
        done = subprocess.run([str(program.parent / "python"), "-c", TO_JSON], input=text,
                              stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        self.all = json.loads(done.stdout)
        self.group = next(one for one in self.all if one["kind"] in ("StatefulSet", "DaemonSet"))
        self.template = self.group["spec"]["template"]
        self.labels = self.template["metadata"]["labels"]
        self.container = self.template["spec"]["containers"][0]
        self.ports = {one["name"]: one["containerPort"] for one in self.container["ports"]}

    def of(self, kind):
        return [one for one in self.all if one["kind"] == kind]

    def takes(self, selector):
        """The selector's labels are labels of the replicas' pods."""
        wanted = selector["matchLabels"]
        return bool(wanted) and wanted.items() <= self.labels.items()


def check_disruption(scenario, name, objects):
    budgets = objects.of("PodDisruptionBudget")
    scenario.check(len(budgets) == 1 and objects.takes(budgets[0]["spec"]["selector"])
                   and budgets[0]["spec"]["maxUnavailable"] == 1,
                   f"{name}: the budget selects the pods, and one may be away", str(budgets))


def check_services(scenario, name, objects):
    """Each Service forwards to ports of the pods that it selects."""
    services = [one["spec"] for one in objects.of("Service")
                if one["spec"]["selector"].get("app") == "shop"]
    wrong, of_one = [], set()
    for one in services:
        selector = dict(one["selector"])
        of_one.add(selector.pop(POD_NAME, None))
        if not (objects.takes({"matchLabels": selector})
                and {p["port"] for p in one["ports"]} <= set(objects.ports.values())):
            wrong.append(one)
    scenario.check(services and not wrong, f"{name}: Services lead to the pods", str(wrong))
    if objects.group["kind"] == "StatefulSet":
        number = objects.group["spec"]["replicas"]
        variables = {one["name"]: one.get("value") for one in objects.container["env"]}
        scenario.check(of_one - {None} == {f"shop-{i}" for i in range(number)}
                       and variables["CRANE_REPLICAS"] == str(number),
                       f"{name}: a Service for each of {number} replicas", str(of_one))


def allowed(rules, way, port):
    """The peers ("from" or "to") that the rules let through at a port; None in it: all of them."""
    found = []
    for rule in rules:
        if any(one["port"] == port for one in rule["ports"]):
            found += rule.get(way) or [None]
    return found


def is_own(peer, objects):
    return peer is not None and "podSelector" in peer and objects.takes(peer["podSelector"])


def check_network(scenario, name, objects):
    """The policy lets replicas reach each other, clients reach the server, and only replicas reach
    the fabric."""
    policies = objects.of("NetworkPolicy")
    if objects.template["spec"].get("hostNetwork"):
        scenario.check(not policies, f"{name}: no policy pretends to close the host's network")
        return
    spec = policies[0]["spec"]
    came = {port: allowed(spec["ingress"], "from", port)
            for port in (FABRIC, CLIENTS, HTTP)}
    scenario.check(objects.takes(spec["podSelector"]) and came[FABRIC]
                   and all(is_own(peer, objects) for peer in came[FABRIC]),
                   f"{name}: replicas, and only they, reach the fabric's port", str(came[FABRIC]))
    scenario.check(None in came[CLIENTS] or any(is_own(p, objects) for p in came[CLIENTS]),
                   f"{name}: followers may forward clients", str(came[CLIENTS]))
    leader = {"podSelector": {"matchLabels": {"app": "shop-leader"}}}
    scenario.check(leader in came[HTTP] and (None in came[CLIENTS] or leader in came[CLIENTS]),
                   f"{name}: HAProxy reaches health and server", str(came))
    if "Egress" in spec["policyTypes"]:
        went = {port: allowed(spec["egress"], "to", port)
                for port in (FABRIC, CLIENTS, 53)}
        scenario.check(all(any(is_own(p, objects) for p in went[port])
                           for port in (FABRIC, CLIENTS)) and went[53],
                       f"{name}: replicas reach each other and the name server", str(went))


def check_ports(scenario, name, objects):
    scenario.check(objects.ports == {"replicas": FABRIC, "clients": CLIENTS, "http": HTTP},
                   f"{name}: the pod's ports", str(objects.ports))
    for monitor in objects.of("PodMonitor"):
        points = monitor["spec"]["podMetricsEndpoints"]
        scenario.check(objects.takes(monitor["spec"]["selector"])
                       and all(one["port"] in objects.ports and one["path"] == "/metrics"
                               for one in points),
                       f"{name}: the monitor polls the pods", str(points))


def check_storage(scenario, name, objects):
    """The log is on a volume that outlives the pod; without checkpoints, a comment says what is
    lost."""
    mounts = {one["mountPath"]: one["name"] for one in objects.container["volumeMounts"]}
    templates = objects.group["spec"].get("volumeClaimTemplates", [])
    claims = {one["metadata"]["name"] for one in templates}
    claims |= {one["name"] for one in objects.template["spec"]["volumes"] if "hostPath" in one}
    scenario.check(mounts["/var/lib/crane"] in claims, f"{name}: the log is on a lasting volume",
                   f"{mounts} {claims}")
    text = next(value for one in objects.of("ConfigMap") if one["metadata"]["name"] == "shop"
                for value in one["data"].values())
    if "container = false" in text:
        scenario.check("NEVER CUT" in text, f"{name}: the manifest reports that its log grows")


def manifests(scenario):
    h.need("kubectl")
    program = validator(scenario)
    for name in KUSTOMIZED:
        made = rendered(scenario, name)
        if made is None:
            continue
        path, text = made
        for version in VERSIONS:
            status, said = run(program, "--strict", "-k", version, path)
            scenario.check(status == 0, f"{name} matches Kubernetes' schema {version}", said)
        objects = Objects(program, text)
        for check in (check_disruption, check_services, check_network, check_ports, check_storage):
            check(scenario, name, objects)
        if name == "production":
            scenario.check(objects.of("PodMonitor")
                           and objects.group["spec"]["minReadySeconds"] > 0,
                           "production has all components")
    wrong = scenario.work / "wrong.yaml"
    wrong.write_text((scenario.work / "base.yaml").read_text().replace("serviceName", "service"))
    scenario.check(run(program, "--strict", wrong)[0] != 0, "a wrong key is refused")


# --- crane-pods, make_image.sh --------------------------------------------------------------------

# Three ready pods, of which replica 1 leads; a claim that is deleted gets another identity. The pod
# ENDING was evicted, and is ready until its kubelet reports otherwise.
KUBECTL = """#!/bin/sh
echo "$*" >> "$LOG"
words=$*
case "${words#-n db }" in
  'get statefulset'*) echo 3 ;;
  'get pod shop-'"${AWAY:-none}"' '*) echo False ;;
  'get pod shop-'"${ENDING:-none}"' '*deletionTimestamp*) echo 2026-01-01T00:00:00ZTrue ;;
  'get pod '*) echo True ;;
  'get pvc '*) if grep -q 'delete pvc' "$LOG"; then echo new; else echo old; fi ;;
  *'crane-ctl status'*) echo '{ "health": "well", "leader": 1 }' ;;
esac
"""
# No registry has an image if REFUSED is set.
PODMAN = """#!/bin/sh
echo "$*" >> "$LOG"
[ "$1" != pull ] || [ -z "${REFUSED:-}" ] || { echo 'no such host' >&2; exit 125; }
"""
DEBOOTSTRAP = """#!/bin/sh
echo "debootstrap $*" >> "$LOG"
echo 'E: no mirror'
exit 7
"""


class Recorded:
    """A directory with a program that records its arguments."""

    def __init__(self, scenario, name, text):
        self.place = scenario.work / f"recorded-{name}"
        self.place.mkdir()
        (self.place / name).write_text(text)
        (self.place / name).chmod(0o755)
        self.log = self.place / "log"

    def run(self, *words, **environment):
        """(status, output, recorded lines)."""
        self.log.write_text("")
        status, said = run(*words, env={"PATH": f"{self.place}:{os.environ['PATH']}",
                                        "LOG": str(self.log), **environment})
        return status, said, self.log.read_text().splitlines()


def pod_commands(scenario):
    kubectl = Recorded(scenario, "kubectl", KUBECTL)
    program = FLEET / "kubernetes/crane-pods"
    status, said, lines = kubectl.run(program, "leader")
    scenario.check((status, said) == (0, "1\n"), "crane-pods finds the leader", said)
    status, said, lines = kubectl.run(program, "replace", "1")
    order = [next((at for at, line in enumerate(lines) if word in line), None)
             for word in ("crane-ctl leader transfer shop", "delete pvc state-shop-1",
                          "delete pod shop-1", "wait --for=condition=Ready pod/shop-1")]
    scenario.check(status == 0 and None not in order and order == sorted(order),
                   "replace moves the lead, then gives the replica a new volume and pod",
                   f"{said}{lines}")
    for what in ("AWAY", "ENDING"):
        status, said, lines = kubectl.run(program, "replace", "0", **{what: "2"})
        scenario.check(status == 1 and "replica 2 is not ready" in said
                       and not any(" delete " in f" {line}" for line in lines),
                       f"replace deletes nothing while another replica is {what.lower()}",
                       f"{said}{lines}")
    server = ["/opt/new/server", "--port", "1"]
    status, said, lines = kubectl.run(program, "-n", "db", "upgrade", *server)
    asked = "-n db exec shop-1 -c crane -- crane-ctl upgrade shop --yes -- " + " ".join(server)
    scenario.check(status == 0 and lines[-1] == asked, "upgrade asks the leader", f"{said}{lines}")
    status, said, lines = kubectl.run(program, "roll", "crane:2")
    scenario.check(status == 0 and "set image statefulset/shop crane=crane:2" in lines,
                   "roll sets the image", f"{said}{lines}")
    for words in ([], ["leader", "1"], ["replace"], ["replace", "x"], ["replace", "3"],
                  ["upgrade"]):
        status, said, lines = kubectl.run(program, *words)
        scenario.check(status == 100 and not any("delete" in line for line in lines),
                       f"crane-pods refuses {words}", f"{status}: {said}")


def image_commands(scenario):
    podman = Recorded(scenario, "podman", PODMAN)
    built = scenario.work / "built"
    (built / "deb").mkdir(parents=True)
    program = FLEET / "make_image.sh"
    status, said, lines = podman.run(program, built)
    scenario.check(status == 3 and "make deb" in said and not lines,
                   "no image without packages", said)
    control = scenario.work / "package/DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text("Package: crane\nVersion: 1.2\nArchitecture: amd64\n"
                                     "Maintainer: x <x@crane.invalid>\nDescription: x\n")
    run("dpkg-deb", "--build", control.parent, built / "deb/crane_1.2_amd64.deb")
    status, said, lines = podman.run(program, built, CRIU="1")
    scenario.check(status == 0 and len(lines) == 2 and "-t crane:1.2 " in lines[1]
                   and "--build-arg CRIU=1" in lines[1] and lines[1].endswith(f" {built}/deb")
                   and "BASE=debian:bookworm-slim" in lines[1],
                   "the image has the package's version, and CRIU on request", f"{said}{lines}")
    status, said, lines = podman.run(program, built, BASE="mine:1")
    scenario.check(status == 0 and len(lines) == 1 and "BASE=mine:1" in lines[0],
                   "a named base is not pulled", f"{said}{lines}")
    (podman.place / "debootstrap").write_text(DEBOOTSTRAP)
    (podman.place / "debootstrap").chmod(0o755)
    status, said, lines = podman.run(program, built, REFUSED="1")
    as_root = os.geteuid() == 0
    scenario.check(status == (7 if as_root else 3) and "no such host" in said
                   and ("E: no mirror" in said and lines[1].startswith("debootstrap ") if as_root
                        else "as root" in said)
                   and [one.name for one in built.iterdir()] == ["deb"],
                   "without a registry the base is made by debootstrap, and its error is shown",
                   f"{status}: {said}{lines}")
    tools = scenario.work / "no-tools"
    tools.mkdir()
    for name in ("sh", "realpath", "dirname"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    status, said = run(program, "--check", env={"PATH": str(tools)})
    scenario.check(status == 3 and "apt-get install buildah" in said,
                   "without podman and buildah, a message names what to install", said)
