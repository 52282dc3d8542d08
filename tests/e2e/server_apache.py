#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apache2 of the matrix: Debian's configuration under each of its process models."""
import pathlib
import re

import _harness as h
import _matrix as m
import _web

MODULES = "/usr/lib/apache2/modules"


def replaced(text, old, new):
    if old not in text:
        raise h.CannotRun(f"/etc/apache2/apache2.conf has no '{old}'")
    return text.replace(old, new)


def configuration(mpm, modules=()):
    """Debian's apache2.conf with another process model and more modules, nothing enabled."""
    etc = pathlib.Path("/etc/apache2")
    includes = []
    for kind in ("load", "conf"):
        enabled = {p.name for p in (etc / "mods-enabled").glob(f"*.{kind}")
                   if not p.name.startswith("mpm_")}
        wanted = {f"{name}.{kind}" for name in (*modules, f"mpm_{mpm}")}
        includes += [f"Include {etc}/mods-available/{name}" for name in sorted(enabled | wanted)
                     if (etc / "mods-available" / name).exists()]
    text = (etc / "apache2.conf").read_text()
    text = replaced(text, "IncludeOptional mods-enabled/*.load", "\n".join(includes))
    text = replaced(text, "IncludeOptional mods-enabled/*.conf", "")
    text = replaced(text, "IncludeOptional sites-enabled/*.conf", "")
    return replaced(text, "Include ports.conf", "")


class Apache(_web.Web):
    mpm = "event"
    version_of = "apache2"
    programs = ("apache2", "ab")
    modules = ()
    listens = 1   # two make the children agree by a lock who accepts
    more = ""

    def prepare(self):
        super().prepare()
        self.ports = [self.port] + [h.free_port() for _ in range(1, self.listens)]
        _web.make_listing(self.root / "list")
        self.conf = self.work / "apache2.conf"
        self.conf.write_text(configuration(self.mpm, self.modules) + "\n".join((
            *(f"Listen {port}" for port in self.ports), f"PidFile {self.work}/apache2.pid",
            f"ErrorLog {self.work}/error.log", "ServerName crane.test",
            f"CustomLog {self.work}/access.log combined",
            f"DocumentRoot {self.root}", "FileETag INode MTime Size", f"<Directory {self.root}>",
            "Require all granted", "Options +Indexes", "IndexOptions FancyIndexing",
            "</Directory>", self.more, "")))

    def program(self):
        return ["apache2", "-f", str(self.conf)]

    def native_program(self):
        return self.program() + ["-D", "FOREGROUND"]

    def load(self, requests):
        rows = super().load(requests)
        for port in self.ports[1:]:
            _web.get(port, "/1k.html")
        return rows

    def state(self):
        said = _web.listing(self.port, "/list/")
        tag = _web.get(self.port, "/1k.html")[1].get("etag", "")
        if not re.fullmatch(r'"[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"', tag):
            raise h.Failure(f"no ETag of inode, size and time: {tag!r}")
        return f"{said}, ETag {tag}"


class Event(Apache):
    name = "apache2 event"


class Worker(Apache):
    name = "apache2 worker"
    mpm = "worker"
    listens = 2


class Prefork(Apache):
    name = "apache2 prefork"
    mpm = "prefork"
    listens = 2


KINDS = (Event, Worker, Prefork)

if __name__ == "__main__":
    h.tell("server_apache", lambda story: m.prove(story, KINDS))
