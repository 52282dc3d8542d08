# SPDX-License-Identifier: Apache-2.0
"""apache2 as the scenarios of the matrix run it: Debian's configuration, another process model."""
import pathlib
import re
import subprocess

import _harness as h
import _web

ETC = pathlib.Path("/etc/apache2")


def replaced(text, old, new):
    if old not in text:
        raise h.CannotRun(f"{ETC}/apache2.conf has no '{old}'")
    return text.replace(old, new)


def configuration(mpm, modules=()):
    """Debian's apache2.conf with another process model and more modules, nothing enabled."""
    includes = []
    for kind in ("load", "conf"):
        enabled = {p.name for p in (ETC / "mods-enabled").glob(f"*.{kind}")
                   if not p.name.startswith("mpm_")}
        wanted = {f"{name}.{kind}" for name in (*modules, f"mpm_{mpm}")}
        includes += [f"Include {ETC}/mods-available/{name}" for name in sorted(enabled | wanted)
                     if (ETC / "mods-available" / name).exists()]
    text = (ETC / "apache2.conf").read_text()
    text = replaced(text, "IncludeOptional mods-enabled/*.load", "\n".join(includes))
    text = replaced(text, "IncludeOptional mods-enabled/*.conf", "")
    text = replaced(text, "IncludeOptional sites-enabled/*.conf", "")
    return replaced(text, "Include ports.conf", "")


def variables():
    """What apache2ctl puts into the environment."""
    text = subprocess.run(["sh", "-c", f". {ETC}/envvars; env"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith("APACHE_"))


class Apache(_web.Web):
    mpm = "event"
    version_of = "apache2"
    programs = ("apache2", "ab")
    modules = ()
    listens = 1   # two make the children agree by a lock who accepts
    more = ""
    # As Debian's init script makes them; envvars says so.
    native_directories = (("/run/apache2", None), ("/var/lock/apache2", "www-data"),
                          ("/var/log/apache2", None))
    native_users = ("www-data",)

    def prepare(self):
        super().prepare()
        self.environment = variables()
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

        def strong():   # apache2 calls one weak (W/"...") whose file is younger than a second
            tag = _web.get(self.port, "/1k.html")[1].get("etag", "")
            return tag if re.fullmatch(r'"[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"', tag) else None
        tag = h.wait_until(strong, 10, "an ETag of inode, size and time")
        return f"{said}, ETag {tag}"
