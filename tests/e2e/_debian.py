# SPDX-License-Identifier: Apache-2.0
"""A bare Debian 12 with systemd as process 1, in an LXC container.

Its network is empty. Packages come from Debian's archive through a proxy in this process, which
listens inside the container's network and keeps every package below out/ for the next run.
debootstrap makes the root directory once; each machine begins with a copy of it.
"""
import contextlib
import ctypes
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import _harness as h

SUITE = "bookworm"
# procps: pgrep shows whether processes are left.
SMALL = ["--variant=minbase", "--include=systemd-sysv,dbus,procps"]
PROXY_PORT = 3142
# Of namespaces for pids, UTS and IPC. The kernel finds the namespace by the process that writes.
NAMESPACE_SETTINGS = ["proc/sys/kernel/" + name for name in
                      ("ns_last_pid", "sem_next_id", "msg_next_id", "shm_next_id", "hostname",
                       "domainname")]
CLONE_NEWNET = 0x40000000
BOOT_SECONDS = 60


def sources():
    """{suite: address} of Debian's main archive by http, from this machine's apt."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                           "Created-By: Packages", "Component: main"], stdout=subprocess.PIPE,
                          text=True, timeout=60, check=False)
    found = dict(reversed(line.rsplit(" ", 1)) for line in done.stdout.splitlines())
    return {suite: address for suite, address in found.items()
            if suite.startswith(SUITE) and address.startswith("http://")}


def hosts():
    return {urllib.parse.urlsplit(address).hostname for address in sources().values()}


class Packages(http.server.BaseHTTPRequestHandler):
    """Forwards requests to the archive, and keeps packages, which never change."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):   # pylint: disable=invalid-name
        where = urllib.parse.urlsplit(self.path)
        if where.hostname not in self.server.hosts:
            return self.send_error(403, f"only {self.server.hosts} are reached from here")
        kept = self.server.kept / pathlib.PurePosixPath(where.path).name
        if kept.suffix == ".deb" and kept.exists():
            return self.answer(kept.read_bytes())
        try:
            with urllib.request.urlopen(self.path, timeout=60) as found:
                body = found.read()
        except urllib.error.HTTPError as error:
            return self.send_error(error.code)
        except OSError as error:
            return self.send_error(502, str(error))
        if kept.suffix == ".deb":
            part = kept.with_suffix(f".{threading.get_ident()}")
            part.write_bytes(body)
            part.rename(kept)
        return self.answer(body)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def listening_in(network):
    """A listening socket in another network namespace, made by a thread that enters it."""
    made = []

    def enter():
        descriptor = os.open(network, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) == 0:
                made.append(socket.create_server(("127.0.0.1", PROXY_PORT)))
        finally:
            os.close(descriptor)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if not made:
        raise h.Failure(f"no socket in the network {network}")
    return made[0]


@contextlib.contextmanager
def proxy(kept, listener):
    kept.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(listener.getsockname(), Packages,
                                             bind_and_activate=False)
    server.socket.close()
    server.socket, server.kept, server.daemon_threads = listener, kept, True
    server.hosts = hosts()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def need_archive():
    """Skips the scenario if packages are not available."""
    if os.geteuid() != 0:
        raise h.CannotRun("a machine with systemd needs root")
    h.need("debootstrap", "lxc-start")
    if "cgroup2" not in pathlib.Path("/proc/filesystems").read_text():
        raise h.CannotRun("systemd needs control groups of version 2, and this kernel has none")
    archive = sources().get(SUITE)
    if archive is None:
        raise h.CannotRun(f"this machine's apt has no http source of {SUITE}")
    try:
        with urllib.request.urlopen(f"{archive}dists/{SUITE}/InRelease", timeout=15) as found:
            found.read(1)
    except OSError as error:
        raise h.CannotRun(f"{archive} cannot be reached: {error}") from None


def bare_root(scenario, cache):
    """The root directory from debootstrap; another scenario may be making it at the same time."""
    root = cache / f"{SUITE}-{'whole' if scenario.full else 'small'}"
    if root.exists():
        return root
    made = root.with_suffix(f".{os.getpid()}")
    scenario.say("debootstrap")
    with proxy(cache / "packages", socket.create_server(("127.0.0.1", 0))) as address:
        done = subprocess.run(["debootstrap", *([] if scenario.full else SMALL), SUITE, str(made),
                               sources()[SUITE]],
                              env={**os.environ, "http_proxy": address}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=480)
    if done.returncode != 0:
        shutil.rmtree(made, ignore_errors=True)
        raise h.CannotRun(f"debootstrap: status {done.returncode}: {done.stdout[-500:]}")
    with contextlib.suppress(OSError):
        made.rename(root)
    shutil.rmtree(made, ignore_errors=True)
    return root


class Machine:
    """A context manager that boots the machine and removes it at the end."""

    def __init__(self, scenario):
        self.scenario, self.cache = scenario, scenario.out / "debian"
        self.name = f"crane-debian-{os.getpid()}"
        self.place = scenario.work / "machine"
        self.root = self.place / "root"
        self.running = contextlib.ExitStack()

    def lxc(self, tool, *words, **more):
        return subprocess.run([f"lxc-{tool}", "-n", self.name, "-P", str(self.place), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, check=False,
                              **{"timeout": 60, **more})

    def configuration(self):
        """Kernel settings are read-only in the machine, and it cannot load modules. CRIU needs the
        device /dev/net/tun, and the settings of namespaces; outside of a container both are there.
        It also sets the clocks of time namespaces, which needs sys_time."""
        binds = "\n".join(f"lxc.mount.entry = /{path} {path} none bind,optional 0 0"
                          for path in NAMESPACE_SETTINGS)
        return f"""lxc.uts.name = bare
lxc.rootfs.path = dir:{self.root}
lxc.init.cmd = /lib/systemd/systemd
lxc.net.0.type = empty
lxc.mount.auto = proc:mixed sys:mixed
lxc.mount.entry = cgroup2 sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec 0 0
lxc.autodev = 1
lxc.mount.entry = /dev/net/tun dev/net/tun none bind,create=file,optional 0 0
{binds}
lxc.pty.max = 64
lxc.cap.drop = mac_admin mac_override sys_module
lxc.signal.halt = SIGRTMIN+4
"""

    def prepare(self):
        root = bare_root(self.scenario, self.cache)
        self.place.mkdir()
        subprocess.run(["cp", "-a", str(root), str(self.root)], check=True, timeout=120)
        (self.root / "etc/apt/sources.list").write_text(
            "".join(f"deb {address} {suite} main\n" for suite, address in sources().items()))
        (self.root / "etc/apt/apt.conf.d/90proxy").write_text(
            f'Acquire::http::Proxy "http://127.0.0.1:{PROXY_PORT}";\n')
        (self.root / "etc/hostname").write_text("bare\n")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost bare\n::1 localhost\n")
        (self.place / "config").write_text(self.configuration())

    def __enter__(self):
        self.prepare()
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)
            self.boot()
            pid = self.lxc("info", "-p", "-H").stdout.strip()
            undo.enter_context(proxy(self.cache / "packages",
                                     listening_in(f"/proc/{pid}/ns/net")))
            self.running = undo.pop_all()
        return self

    def boot(self):
        done = self.lxc("start", "-f", str(self.place / "config"), "-l", "INFO",
                        "-o", str(self.place / "log"), "-L", str(self.place / "console"))
        if done.returncode != 0:
            raise h.CannotRun(f"LXC starts no container here: {done.stdout[-500:]}"
                              f"{h.tail(self.place / 'log')}")
        h.wait_until(lambda: self.run("systemctl is-system-running").stdout.strip()
                     in ("running", "degraded"), BOOT_SECONDS, "the machine has booted")

    def run(self, script, seconds=60):
        """Runs the script in a root shell of the machine."""
        return self.lxc("attach", "--clear-env", "--", "/bin/bash", "-c",
                        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "
                        "HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8; cd /root; "
                        + script, timeout=seconds)

    def must(self, script, seconds=60):
        done = self.run(script, seconds)
        if done.returncode != 0:
            raise h.Failure(f"{script}: status {done.returncode}:\n{done.stdout[-3000:]}")
        return done.stdout

    def stop(self):
        self.lxc("stop", "-k")
        shutil.rmtree(self.root, ignore_errors=True)

    def __exit__(self, kind, error, trace):
        self.running.close()
        return False
