#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A group shows no more to the rest of its machine than the server shows natively: where it
listens, what another user can read, write or connect to, the users and capabilities of its
processes, and the environment that the server sees."""
import json
import os
import pathlib
import re
import signal
import socket
import stat
import struct
import subprocess
import sys

import _harness as h

STRANGER = 54321   # a user with no files and no groups

# A server that reports its environment.
PROBE = r'''
import json, os, socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(16)
umask = os.umask(0)
os.umask(umask)
said = {"environment": dict(os.environ), "umask": umask, "directory": os.getcwd(),
        "users": os.getresuid(), "groups": [os.getresgid(), sorted(os.getgroups())],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "descriptors": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1]}
while True:
    c, _ = s.accept()
    c.sendall(json.dumps(said).encode())
    c.close()
'''


def nginx_configuration(work, port):
    conf = work / "nginx.conf"
    conf.write_text(
        f"pid {work}/nginx.pid; error_log {work}/error.log; worker_processes 2;\n"
        "events { worker_connections 64; }\n"
        f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; return 200 ok; }} }}\n")
    return conf


def servers(work):
    """Returns (name, port, command under crane-run, what a native start adds)."""
    ports = [h.free_port() for _ in range(3)]
    conf = nginx_configuration(work, ports[2])
    return [("redis-server", ports[0], h.redis_program(ports[0]), []),
            ("memcached", ports[1], ["memcached", "-u", "nobody", "-p", str(ports[1]), "-l",
                                     "127.0.0.1", "-U", "0"], []),
            ("nginx", ports[2], ["nginx", "-c", str(conf)], ["-g", "daemon off;"])]


# --- observations -------------------------------------------------------------------------------

def listening(pids):
    """{(protocol, address, port)} of these processes' sockets that other processes can reach."""
    found = set()
    for protocol in ("tcp", "udp"):
        output = subprocess.run(["ss", f"-ln{protocol[0]}pH"], text=True, check=True,
                                stdout=subprocess.PIPE).stdout
        for line in output.splitlines():
            owners = {int(pid) for pid in re.findall(r"pid=(\d+)", line)}
            if owners & set(pids):
                address, _, port = line.split()[3].rpartition(":")
                found.add((protocol, address, int(port)))
    return found


def abstract_sockets(pids):
    """Names of unix sockets to which any user may connect, because no file's mode protects them."""
    output = subprocess.run(["ss", "-lxpH"], text=True, check=True, stdout=subprocess.PIPE).stdout
    lines = [line for line in output.splitlines()
             if {int(pid) for pid in re.findall(r"pid=(\d+)", line)} & set(pids)]
    return sorted(line.split()[4] for line in lines
                  if line.split()[1] == "LISTEN" and line.split()[4].startswith("@"))


def identity(pid):
    """The users, groups and capabilities of a process, from /proc; None if it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    fields = dict(re.findall(r"^(\w+):[ \t]*(.*)$", text, re.M))
    return {"users": fields["Uid"].split(), "groups": fields["Gid"].split(),
            "others": sorted(fields["Groups"].split()), "umask": fields.get("Umask"),
            "new": int(fields["NoNewPrivs"]),
            **{name: int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd",
                                                        "CapAmb")}}


def identities(root, name):
    """Returns the identities of the server's processes below `root`, the main one first."""
    pids = [pid for pid in h.descendants([root]) if h.name_of(pid) == name]
    return [found for found in (identity(pid) for pid in sorted(pids)) if found]


def as_stranger(look, things):
    """Returns [look(thing), ...] joined, computed by a user without rights."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        os.setgroups([])
        os.setresgid(STRANGER, STRANGER, STRANGER)
        os.setresuid(STRANGER, STRANGER, STRANGER)
        with os.fdopen(here, "w") as out:
            json.dump([found for thing in things for found in look(thing)], out)
        os._exit(0)   # pylint: disable=protected-access
    os.close(here)
    with os.fdopen(there) as said:
        found = json.load(said)
    os.waitpid(child, 0)
    return found


def answered(name):
    """Returns [name] if an abstract socket of a container's monitor answers a request for its
    state."""
    get_state = struct.pack("iiP", 3, 0, 0)
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        try:
            s.connect("\0" + name[1:])
            s.sendall(get_state)
            reply = s.recv(100)   # its first word is the state, or minus an errno
            return [name] if len(reply) < 4 or struct.unpack_from("i", reply)[0] >= 0 else []
        except ConnectionError:
            return []


def reached(top):
    """Returns [(path, access)]: what this process can do with the files below, by access(2)."""
    found = []
    for directory, names, files in os.walk(top, followlinks=False):
        if os.access(directory, os.W_OK):
            found.append((directory, "makes files"))
        for name in names + files:
            path = os.path.join(directory, name)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if stat.S_ISSOCK(mode):
                found += [(path, "connects")] if os.access(path, os.W_OK) else []
            elif stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
                found += [(path, what) for what, how in (("reads", os.R_OK), ("writes", os.W_OK))
                          if os.access(path, how)]
    return found


def as_root(names):
    return [found for name in names for found in answered(name)]


def says(port):
    """The probe's answer; None if it does not listen yet."""
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as s, s.makefile() as f:
            return json.loads(f.read())
    except (OSError, ValueError):
        return None


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Native:
    """The server without Crane."""

    def __init__(self, command, ready):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd="/",
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.ready = ready

    def __enter__(self):
        h.wait_until(self.ready, 30, "the native server serves")
        return self.process.pid

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


# --- comparisons --------------------------------------------------------------------------------

def wider(native, ours):
    """Names of the attributes in which `ours` exceeds `native`."""
    found = [key for key in ("users", "groups", "others", "umask") if native[key] != ours[key]]
    found += ["NoNewPrivs"] if native["new"] > ours["new"] else []
    return found + [key for key in native if key.startswith("Cap") and ours[key] & ~native[key]]


def compare_identities(scenario, name, native, group):
    for number in range(group.replicas):
        ours = identities(group.running_pid(number, "server_pid"), name)
        scenario.check(len(ours) == len(native), f"{name}: replica {number} has its processes",
                       f"{len(ours)} instead of {len(native)}")
        for i, (one, other) in enumerate(zip(native, ours)):
            scenario.check(not wider(one, other), f"{name}: replica {number}, process {i}: user, "
                           "groups, capabilities are no more than natively",
                           f"{wider(one, other)}: {one} natively, {other}")


def compare_files(scenario, name, group):
    places = [str(group.home), *map(str, pathlib.Path("/dev/shm").glob(f"crane.{group.name}*")),
              *map(str, pathlib.Path("/run").glob("crane*"))]
    found = as_stranger(reached, places)
    scenario.check(not found, f"{name}: another user can read, write or reach nothing of the group",
                   "; ".join(f"{path}: {what}" for path, what in found[:20]))


def compare_server(scenario, name, port, program, more, container=None):
    def is_whole(root):
        return answers(port) and len(identities(root, name)) == wanted
    wanted = 3 if name == "nginx" else 1
    with Native(program + more, lambda: answers(port)) as pid:
        h.wait_until(lambda: is_whole(pid), 30, f"{name} has its processes")
        places = listening(h.descendants([pid]))
        native = identities(pid, name)
    with h.Group(scenario, program, port=port, container=container) as group:
        for number in range(group.replicas):
            root = group.running_pid(number, "server_pid")
            h.wait_until(lambda root=root: len(identities(root, name)) == wanted, 30,
                         f"{name} has its processes on each replica")
        pids = group.processes()
        seen = listening(pids)
        scenario.check(seen == places, f"{name}: it listens at the same places as natively",
                       f"{sorted(places)} natively, {sorted(seen)}")
        names = abstract_sockets(pids)
        scenario.check(not group.container or len(as_root(names)) == group.replicas,
                       f"{name}: monitors of containers answer root", names)
        said = as_stranger(answered, names)
        scenario.check(not said, f"{name}: no abstract socket answers another user", said)
        compare_identities(scenario, name, native, group)
        compare_files(scenario, name, group)


def difference(native, ours):
    if not isinstance(native, dict):
        return f"{native} natively, {ours}"
    keys = sorted(key for key in native.keys() | ours.keys() if native.get(key) != ours.get(key))
    return "; ".join(f"{key}: {native.get(key)} natively, {ours.get(key)}" for key in keys)


def compare_probe(scenario, container):
    port = h.free_port()
    program = [sys.executable, "-c", PROBE, str(port)]
    with Native(program, lambda: says(port) is not None):
        native = says(port)
    with h.Group(scenario, program, port=port, container=container):
        ours = says(port)
    where = "container" if container else "no container"
    for key, value in native.items():
        scenario.check(ours[key] == value, f"{where}: the server's {key} is the same as natively",
                       difference(value, ours[key]))


def body(scenario):
    h.need("redis-server", "memcached", "nginx", "ss")
    if os.geteuid() != 0:
        raise h.CannotRun("only root sees other processes' identities")
    kinds = (True, False) if h.can_contain() else (False,)
    for container in kinds:
        compare_probe(scenario, container)
    os.environ["container"] = "another"   # as if the whole machine were one
    compare_probe(scenario, kinds[0])
    del os.environ["container"]
    for one in servers(scenario.work):
        compare_server(scenario, *one, container=kinds[0])
    if len(kinds) > 1:
        compare_server(scenario, *servers(scenario.work)[0], container=False)


if __name__ == "__main__":
    h.run_scenario("outside", body)
