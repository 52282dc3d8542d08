#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crane-run doctor and crane-ctl doctor run on this machine as it is, and where root, LXC, CRIU, a
privilege, memory, a directory or a port is missing. They report what that costs and how to mend it,
end with the matching status, answer as the schema requires, and leave nothing behind."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess

import _harness as h

WELL, LIMITED, MISSING, USAGE = 0, 1, 2, 100
NO_SUCH_GROUP, NO_PROGRAM = 3, 102
NOBODY = 65534


class Doctor:
    """The output of `crane-run doctor -o json`."""

    def __init__(self, scenario, *words, before=(), **environment):
        command = [*before, str(scenario.out / "crane-run"), "doctor", "-o", "json", *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120,
                              env={**os.environ, **environment})
        self.status, self.text = done.returncode, done.stdout + done.stderr
        try:
            self.json = json.loads(done.stdout)
        except ValueError:
            self.json = {"findings": [], "headline": "", "verdict": ""}
        self.findings = {f["area"]: f for f in self.json["findings"]}

    def verdict(self, area):
        return self.findings.get(area, {}).get("verdict")

    def says(self, area, verdict, seen, costs="", mend=""):
        """Whether the finding contains these words."""
        f = self.findings.get(area, {})
        return f.get("verdict") == verdict and seen in (f["seen"] or "") \
            and costs in (f["costs"] or "") and mend in (f["mend"] or "")


def in_mounts(*lines):
    """Returns the words that run a command in a new mount namespace, after these shell lines."""
    script = "\n".join(["set -e", *lines, 'exec "$@"'])
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]


def library_of_lxc():
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                   "/usr/lib"):
        for found in pathlib.Path(folder).glob("liblxc.so.1"):
            return str(found.resolve())
    return None


def left(place):
    """Returns the remains of a doctor in a directory, and mounts of its container."""
    mounts = pathlib.Path("/proc/mounts").read_text()
    return [str(p) for p in pathlib.Path(place).glob(".crane-doctor-*")] \
        + [line for line in mounts.splitlines() if ".crane-doctor-" in line]


def as_the_schema_says(scenario, answer, what):
    documents = json.loads(h.ctl(scenario, "schema", "status", "-o", "json")[1])["documents"]
    fields = next(d for d in documents if d["name"] == "doctor")["fields"]
    names = {f["name"] for f in fields}
    inner = {f["name"] for f in next(f for f in fields if f["name"] == "findings")["fields"]}
    scenario.check(set(answer) == names and answer["findings"]
                   and all(set(f) == inner for f in answer["findings"]),
                   f"{what}: JSON has the fields of the schema", str(answer)[:400])
    scenario.check(all((f["costs"] is None) == (f["verdict"] == "ok") for f in answer["findings"]),
                   f"{what}: each finding that is not ok states its cost", str(answer))


def here(scenario, place):
    doctor = Doctor(scenario, "--dir", str(place))
    scenario.check(doctor.status in (WELL, LIMITED)
                   and doctor.json["headline"].startswith("this machine can run groups"),
                   "this machine can run groups", doctor.text)
    as_the_schema_says(scenario, doctor.json, "crane-run doctor")
    median = doctor.findings["disk"]["measures"]["fsync_median_us"]
    scenario.check(isinstance(median, int) and median > 0, "fsync was measured", str(median))
    if h.can_contain():
        scenario.check(doctor.verdict("container") == "ok", "a container was started", doctor.text)
        scenario.check(doctor.verdict("checkpoints") == "ok"
                       or "no CRIU" in doctor.findings["checkpoints"]["seen"],
                       "CRIU, if installed, dumped and restored a process", doctor.text)
    scenario.check(not left(place), "nothing is left", str(left(place)))
    done = subprocess.run([str(scenario.out / "crane-run"), "doctor", "--dir", str(place)],
                          stdout=subprocess.PIPE, text=True, timeout=120)
    lines = done.stdout.splitlines()
    scenario.check(done.returncode == doctor.status and len(lines) > 10
                   and lines[0].startswith("this machine can run groups"),
                   "as a table: the verdict is first, the status is the same", done.stdout)


def words(scenario, place):
    """Mistyped command lines, and programs that are called doctor."""
    run = str(scenario.out / "crane-run")
    for line, status, part in (("doctor --port 0", USAGE, "is not a port"),
                               ("doctor --prot 80", USAGE, "did you mean --port?"),
                               ("doctor apache2", USAGE, "apache2"),
                               ("-- doctor", NO_PROGRAM, "doctor: there is no such program")):
        done = subprocess.run([run, *line.split()], stdout=subprocess.PIPE, text=True, cwd=place,
                              stderr=subprocess.STDOUT, timeout=60)
        scenario.check(done.returncode == status and part in done.stdout,
                       f"crane-run {line}: {status}", f"{done.returncode}: {done.stdout}")


def ports(scenario, place):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        number, free = taken.getsockname()[1], h.free_port()
        doctor = Doctor(scenario, "--dir", str(place), "--port", str(number), "--port", str(free))
    scenario.check(doctor.status == MISSING and doctor.verdict(f"port {free}") == "ok"
                   and doctor.says(f"port {number}", "missing", "Address already in use",
                                   "clients", "stop its owner"),
                   "a taken port: 2, and a free one is suggested", doctor.text)


def without_directory(scenario):
    doctor = Doctor(scenario, "--dir", "/proc/none/of/these")
    scenario.check(doctor.status == MISSING and "cannot run a group" in doctor.json["headline"]
                   and doctor.says("directory", "missing", "/proc/none", "no group", "--dir"),
                   "a directory that cannot be made: 2", doctor.text)


def alone(scenario, place):
    """crane-run without the rest of Crane."""
    shutil.copy(scenario.out / "crane-run", place)
    done = subprocess.run([str(place / "crane-run"), "doctor", "--dir", str(place)],
                          stdout=subprocess.PIPE, text=True, timeout=120)
    scenario.check(done.returncode == MISSING
                   and done.stdout.startswith("this machine cannot run a group; 1 thing is missing")
                   and "crane-node" in done.stdout, "without crane-node: 2", done.stdout)


def as_nobody(scenario, place):
    place = place / "nobodys"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    doctor = Doctor(scenario, "--dir", str(place), before=user)
    scenario.check(doctor.status == LIMITED
                   and doctor.says("privileges", "limited", "no root", "--no-container", "root")
                   and doctor.says("container", "limited", "no root privilege", "--no-container")
                   and doctor.says("checkpoints", "limited", "", "runs all inputs again"),
                   "another user: 1, only --no-container and no checkpoints", doctor.text)
    scenario.check(not left(place), "nothing is left of that user", str(left(place)))


def without_parts(scenario, place):
    """Each missing part is simulated in a mount namespace or by a variable."""
    library = library_of_lxc()
    doctor = Doctor(scenario, "--dir", str(place),
                    before=in_mounts(f"mount --bind /dev/null {shlex.quote(library)}"))
    scenario.check(doctor.status == LIMITED
                   and doctor.says("container", "limited", "LXC is not installed",
                                   "--no-container", "install liblxc1 and liblxc-common"),
                   "without LXC: 1", doctor.text)
    for program, said in (("/none", "CRANE_CRIU"), ("/bin/false", "")):
        doctor = Doctor(scenario, "--dir", str(place), CRANE_CRIU=program)
        scenario.check(doctor.status == LIMITED and doctor.verdict("container") == "ok"
                       and doctor.says("checkpoints", "limited", said, "runs all inputs again",
                                       "get_criu.sh"),
                       f"CRIU is {program}: 1, and containers work", doctor.text)
    doctor = Doctor(scenario, "--dir", str(place),
                    before=["setpriv", "--bounding-set=-sys_admin"])
    scenario.check(doctor.status == MISSING
                   and doctor.says("privileges", "missing", "CAP_SYS_ADMIN", "no groups of root",
                                   "another user")
                   and doctor.says("container", "limited", "no container starts", "--no-container"),
                   "root without CAP_SYS_ADMIN: 2", doctor.text)
    for megabytes, status, verdict in ((64, MISSING, "missing"), (300, MISSING, "missing")):
        doctor = Doctor(scenario, "--dir", str(place),
                        before=in_mounts(f"mount -t tmpfs -o size={megabytes}m none /dev/shm"))
        scenario.check(doctor.status == status
                       and doctor.says("shared memory", verdict, f"{megabytes} MiB free",
                                       "no such group", "--ring-mb"),
                       f"{megabytes} MiB of shared memory: {status}", doctor.text)
    doctor = Doctor(scenario, "--dir", "/mnt/full",
                    before=in_mounts("mount -t tmpfs -o size=4m none /mnt", "mkdir /mnt/full"))
    scenario.check(doctor.status == MISSING and doctor.says("directory", "missing", "4 MiB free"),
                   "a full file system: 2", doctor.text)
    scenario.check(not left(place), "nothing is left of these", str(left(place)))


def killed(scenario, place):
    """A doctor that is killed during its trial."""
    process = subprocess.Popen([str(scenario.out / "crane-run"), "doctor", "--dir", str(place)],
                               stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    h.wait_until(lambda: process.poll() is not None
                 or list(place.glob(".crane-doctor-*/r0/rootfs")), 60, "a container is made")
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    h.wait_until(lambda: not left(place), 60, "a killed doctor leaves nothing")
    scenario.check(True, "a killed doctor leaves nothing")


def of_a_group(scenario):
    h.need("redis-server")
    port = h.free_port()
    with h.Group(scenario, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        group.settle()
        status, text = h.ctl(scenario, "doctor", group.name, "-o", "json")
        answer = json.loads(text)
        verdicts = {f["area"]: f["verdict"] for f in answer["findings"]}
        scenario.check(status in (WELL, LIMITED) and answer["subject"] == group.name
                       and answer["headline"].startswith(f"{group.name} can run here"),
                       "crane-ctl doctor: the group can run here", f"{status}: {text}")
        scenario.check(all(verdicts.get(area) == "ok" for area in
                           ("group", "unhooked calls", f"port {port}", "directory")),
                       "it knows the group's health, calls, port and directory", text)
        scenario.check("lasting data" not in verdicts,
                       "for a group whose data does not last no disk is judged",
                       text)
        as_the_schema_says(scenario, answer, "crane-ctl doctor")
        group.stop()
    status, text = h.ctl(scenario, "doctor", group.name)
    scenario.check(status == NO_SUCH_GROUP, "for an unknown group: 3", f"{status}: {text}")


def of_a_group_without_criu(scenario):
    """The doctor names the way to a CRIU first, and status says that there are no checkpoints."""
    port = h.free_port()
    os.environ["CRANE_CRIU"] = "/none"
    try:
        with h.Group(scenario, h.redis_program(port), port=port) as group:
            group.settle()
            h.ctl(scenario, "checkpoint", "now", group.name, "--dir", str(group.home))
            text = h.ctl(scenario, "status", group.name, "--dir", str(group.home))[1]
            scenario.check("checkpoint: none are taken: CRANE_CRIU" in text,
                           "status says why there are no checkpoints", text)
            notes = group.verdict()[1]["verdict"]["notes"]
            scenario.check(any(n.startswith("no checkpoints are taken: CRANE_CRIU") for n in notes),
                           "so does a note of the verdict", str(notes))
            text = h.ctl(scenario, "doctor", group.name, "--dir", str(group.home), "-o", "json")[1]
            found = next(f for f in json.loads(text)["findings"] if f["area"] == "recovery")
            scenario.check(found["verdict"] == "limited" and "get_criu.sh" in found["mend"]
                           and "--restart-checkpoints" not in found["mend"],
                           "crane-ctl doctor names get_criu.sh", str(found))
            group.stop()
    finally:
        del os.environ["CRANE_CRIU"]


def body(scenario):
    place = scenario.work / "place"
    place.mkdir()
    here(scenario, place)
    words(scenario, place)
    ports(scenario, place)
    without_directory(scenario)
    alone(scenario, place)
    if h.can_contain():
        h.need("setpriv", "unshare")
        as_nobody(scenario, place)
        without_parts(scenario, place)
        killed(scenario, place)
    of_a_group(scenario)
    if h.can_contain():
        of_a_group_without_criu(scenario)


if __name__ == "__main__":
    h.run_scenario("doctor", body)
