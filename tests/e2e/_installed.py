# SPDX-License-Identifier: Apache-2.0
"""Debian's configuration of a server as its package installs it, without later changes.

Modules, sites and snippets that an administrator or another package enabled on this machine must
not affect a test: the configurations below name each module and each file that they load.
"""
import pathlib

import _checks

APACHE = pathlib.Path("/etc/apache2")
# The modules that the package enables, except the process model.
MODULES = ("access_compat", "alias", "auth_basic", "authn_core", "authn_file", "authz_core",
           "authz_host", "authz_user", "autoindex", "deflate", "dir", "env", "filter", "mime",
           "negotiation", "reqtimeout", "setenvif", "status")
ACCESS_LOG = "other-vhosts-access-log"
FILES = ("charset", "localized-error-pages", ACCESS_LOG, "security", "serve-cgi-bin")
NGINX = pathlib.Path("/etc/nginx/nginx.conf")
PHP_MODULES = ("/usr/lib/php/20220829", ("mysqlnd", "opcache", "mysqli"))


def replaced(text, path, *pairs):
    """The `text` of the file `path`, with the first of each pair replaced by the second."""
    for old, new in pairs:
        if old not in text:
            raise _checks.CannotRun(f"{path} has no '{old}'")
        text = text.replace(old, new)
    return text


def modules(kind, names):
    """The existing files of this kind of the modules."""
    paths = [APACHE / "mods-available" / f"{name}.{kind}" for name in sorted(names)]
    if kind == "load":
        missing = [str(path) for path in paths if not path.exists()]
        if missing:
            raise _checks.CannotRun(f"apache2 has no {missing[0]}")
    return [path for path in paths if path.exists()]


def apache(mpm="event", more=(), files=FILES):
    """apache2.conf with a process model, with `more` modules in addition to the package's, and with
    these files of conf-available; without a port or a site."""
    names = {*MODULES, *more, f"mpm_{mpm}"}
    path = APACHE / "apache2.conf"
    loads, settings = (["Include " + str(p) for p in modules(kind, names)]
                       for kind in ("load", "conf"))
    others = [f"Include {APACHE}/conf-available/{name}.conf" for name in files]
    return replaced(path.read_text(), path,
                    ("IncludeOptional mods-enabled/*.load", "\n".join(loads)),
                    ("IncludeOptional mods-enabled/*.conf", "\n".join(settings)),
                    ("IncludeOptional conf-enabled/*.conf", "\n".join(others)),
                    ("IncludeOptional sites-enabled/*.conf", ""),
                    ("Include ports.conf", ""))


def links(folder):
    """{name: target} of a freshly installed apache2."""
    if folder == "mods-enabled":
        kinds = [p for kind in ("load", "conf") for p in modules(kind, (*MODULES, "mpm_event"))]
        return {p.name: p for p in kinds}
    if folder == "conf-enabled":
        return {f"{name}.conf": APACHE / "conf-available" / f"{name}.conf" for name in FILES}
    return {"000-default.conf": APACHE / "sites-available" / "000-default.conf"}


def stock_apache(work):
    """The command that serves the page of a fresh installation: `apache2` if this machine's
    configuration is unchanged, else apache2 with a directory of fresh configuration."""
    folders = {name: links(name) for name in ("mods-enabled", "conf-enabled", "sites-enabled")}
    if all({p.name for p in (APACHE / name).iterdir()} == set(wanted)
           for name, wanted in folders.items()):
        return ["apache2"]
    root = work / "apache2-as-installed"
    if root.exists():
        return ["apache2", "-d", str(root)]
    for name, wanted in folders.items():
        (root / name).mkdir(parents=True)
        for link, target in wanted.items():
            (root / name / link).symlink_to(target)
    for name in ("apache2.conf", "ports.conf", "magic"):
        (root / name).write_bytes((APACHE / name).read_bytes())
    return ["apache2", "-d", str(root)]


def nginx(server, *pairs):
    """nginx.conf with this block as its only site, without modules of other packages and without
    snippets; `pairs`: further replacements."""
    return replaced(NGINX.read_text(), NGINX, ("include /etc/nginx/modules-enabled/*.conf;", ""),
                    ("include /etc/nginx/conf.d/*.conf;", ""), *pairs,
                    ("include /etc/nginx/sites-enabled/*;", server))


def mariadb(work):
    """The option that makes mariadbd and its tools read only this file; it must come first."""
    path = work / "mariadb.cnf"
    path.write_text("[mysqld]\nbasedir = /usr\nbind-address = 127.0.0.1\nexpire_logs_days = 10\n"
                    "character-set-server = utf8mb4\ncollation-server = utf8mb4_general_ci\n")
    return f"--defaults-file={path}"


def php(work):
    """A directory of PHP settings (PHP_INI_SCAN_DIR) with the modules of Debian's packages that
    test pages use."""
    folder, (place, names) = work / "php.d", PHP_MODULES
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        kind = "zend_extension" if name == "opcache" else "extension"
        if pathlib.Path(place, f"{name}.so").exists():
            (folder / f"{number}0-{name}.ini").write_text(f"{kind}={place}/{name}.so\n")
    return folder
