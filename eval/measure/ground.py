# SPDX-License-Identifier: Apache-2.0
"""The directories and users that a server needs before it can run natively.

Debian makes them when an init system starts the server. A fresh machine, or a container, has
never done that: apache2 then ends at once, for want of /run/apache2. Only what is missing is
made, and only that is removed.
"""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess

from _checks import CannotRun


def has_user(name):
    try:
        pwd.getpwnam(name)
        return True
    except KeyError:
        return False


def run_tool(*words):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env={**os.environ, "PATH": path})
    except OSError as error:
        raise CannotRun(f"{words[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise CannotRun(f"{' '.join(words)}: {done.stdout.strip()}")


def make_directory(path, owner):
    """The topmost directory that was made, or None: it was there. /var/lock may be a link to a
    directory that is missing, too."""
    real = pathlib.Path(os.path.realpath(path))
    missing = [p for p in (real, *real.parents) if not p.exists()]
    if not missing:
        return None
    real.mkdir(parents=True)
    if owner:
        shutil.chown(real, owner)
    return missing[-1]


@contextlib.contextmanager
def prepared(directories, users=(), say=print):
    """Makes what is missing of `users` and of [(path, owner or None for root)]; removes it at
    the end."""
    added, made = [], []
    try:
        for name in users:
            if not has_user(name):
                run_tool("useradd", "--system", "--user-group", "--no-create-home", "--shell",
                         "/usr/sbin/nologin", name)
                added.append(name)
        for path, owner in directories:
            try:
                top = make_directory(path, owner)
            except (OSError, LookupError) as error:
                raise CannotRun(f"{path} is missing and cannot be made: {error}; "
                                "run as root, or make it") from None
            if top:
                made.append(top)
        if made or added:
            say("made for the native server, until it has run: "
                + ", ".join([*map(str, made), *(f"user {name}" for name in added)]))
        yield
    finally:
        for top in reversed(made):
            shutil.rmtree(top, ignore_errors=True)
        for name in added:
            with contextlib.suppress(CannotRun):
                run_tool("userdel", name)
