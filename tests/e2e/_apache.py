# SPDX-License-Identifier: Apache-2.0
"""apache2 for the scenarios of the matrix: Debian's configuration with a chosen process model."""
import re
import subprocess

import _harness as h
import _installed
import _web


def variables():
    """The variables that apache2ctl sets."""
    text = subprocess.run(["sh", "-c", f". {_installed.APACHE}/envvars; env"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith("APACHE_"))


class Apache(_web.Web):
    mpm = "event"
    version_of = "apache2"
    programs = ("apache2", "ab")
    modules = ()
    listens = 1   # with two, the children take a lock to accept
    more = ""
    # Debian's init script makes these directories; envvars names them.
    native_directories = (("/run/apache2", None), ("/var/lock/apache2", "www-data"),
                          ("/var/log/apache2", None))
    native_users = ("www-data",)

    def prepare(self):
        super().prepare()
        self.environment = variables()
        self.ports = [self.port] + [h.free_port() for _ in range(1, self.listens)]
        _web.make_listing(self.root / "list")
        self.conf = self.work / "apache2.conf"
        self.conf.write_text(_installed.apache(self.mpm, self.modules) + "\n".join((
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
        listing = _web.listing(self.port, "/list/")

        def strong():   # the tag is weak (W/"...") while the file is younger than a second
            tag = _web.get(self.port, "/1k.html")[1].get("etag", "")
            return tag if re.fullmatch(r'"[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"', tag) else None
        tag = h.wait_until(strong, 10, "an ETag of inode, size and time")
        return f"{listing}, ETag {tag}"
