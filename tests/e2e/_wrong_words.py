# SPDX-License-Identifier: Apache-2.0
"""Wrong uses that need no running group: options, the group's file, secrets, archives and
recordings."""
import os

import _harness as h

NOBODY = 65534


def options(uses):
    """crane-run's options with values that mean nothing here."""
    work = uses.scenario.work
    file = work / "a-file"
    file.write_text("text\n")
    for what, status, words, given in (
            ("200 replicas", 101, ["200", "use 1, 3, 5"], ["-n", "200"]),
            ("a word as number of replicas", 100, ["three is not a number"], ["-n", "three"]),
            ("an IPv6 address with a typing error", 100, ["[2001:db8::zz]", "[2001:db8::7]:8080"],
             ["--publish", "[2001:db8::zz]:8080:80"]),
            ("an IPv6 address without its end", 100, ["[::1:8080:80", "not an IP address"],
             ["--publish", "[::1:8080:80"]),
            ("one port of the server published twice", 100, ["81:80", "published already"],
             ["--publish", "8080:80", "--publish", "81:80"]),
            ("an unknown profile", 100, ["redsi", "redis-server"], ["--profile", "redsi"]),
            ("a misspelt option", 100, ["did you mean --durability"], ["--durabilty", "disk"]),
            ("a misspelt value", 100, ["dsik", "memory"], ["--durability", "dsik"]),
            ("a size of the log that is no power of two", 100, ["100", "128"],
             ["--ring-mb", "100"]),
            ("too long a lag", 100, ["99999", "2000"], ["--lag", "99999"]),
            ("a port for HTTP beyond the last", 100, ["99999", "9100"], ["--http", "99999"]),
            ("a resolver that is no address", 100, ["nonsense", "10.0.0.1"],
             ["--resolver", "nonsense"]),
            ("outbound targets without ports", 100, ["10.0.0.9", "any, none"],
             ["--outbound", "10.0.0.9"]),
            ("more spares than places", 100, ["--spares", "200"], ["--spares", "200"]),
            ("turns recorded to no directory", 100, ["--trace", "--record DIR"], ["--trace"]),
            ("a file as directory of recordings", 108, [str(file), "another"],
             ["--record", str(file)]),
            ("a bound directory that does not exist", 108, ["/no/such", "create it"],
             ["--bind", "/no/such:ro"]),
            ("--data without the directory", 108, ["/no/such", "create it"],
             ["--data", "/no/such"]),
            ("--data with a file", 108, [str(file), "not a directory"], ["--data", str(file)]),
            ("--data with the whole machine", 100, ["whole machine"], ["--data", "/"]),
            ("an even number of hosts", 101, ["2", "name 3, 5"], ["--hosts", "h1,h2"]),
            ("one host named twice", 100, ["h1", "twice"], ["--hosts", "h1,h1,h2"]),
            ("a virtual address without hosts", 100, ["--virtual-ip", "--hosts"],
             ["--virtual-ip", "192.0.2.9/24", "--interface", "lo"])):
        container = True if "--data" in given else None
        uses.run(what, status, words, options=given, container=container)
    uses.run("a file as --dir", 108, [f"{file}/", "--dir"], home=file)
    uses.tool("a name with a slash", 100, ["a/b", "letters"], "crane-run", "--dir", uses.home,
              "--name", "a/b", "--", "sleep", "60")
    uses.use("no program", 100, ["after --", "apache2"], uses.prefix())
    uses.tool("crane-run doctor with a wrong port", 100, ["99999", "65535"], "crane-run", "doctor",
              "--port", "99999")


class GroupFile:
    """A group's file with three replicas on this machine, and its secret."""

    def __init__(self, uses):
        self.uses, self.place = uses, uses.scenario.work / "files"
        self.place.mkdir()
        self.path, self.secret = self.place / "group.toml", self.place / "secret"
        self.port = h.free_port()
        done = h.ctl(uses.scenario, "secret", "new", str(self.secret))
        if done[0] != 0:
            raise h.Failure(f"crane-ctl secret new: {done}")

    def write(self, group="", server="", ports=None, clients=""):
        first = self.port
        lines = ["[group]", f'name = "{self.uses.name}"', f'secret_file = "{self.secret}"',
                 f'state_dir = "{self.place}/state"', group]
        for port in ports or range(first, first + 3):
            lines += ["[[replica]]", 'address = "127.0.0.1"', f"port = {port}"]
        lines += ["[server]", 'command = ["sleep", "60"]', server, "[clients]", clients]
        self.path.write_text("\n".join(lines) + "\n")
        self.path.chmod(0o644)

    def use(self, what, status, words, path=None, replica=0, **more):
        self.uses.tool(what, status, words, "crane-node", "--config", path or self.path,
                       "--replica", replica, **more)


def group_file(uses):
    file = GroupFile(uses)
    for what, words, changes in (
            ("a misspelt key", [":5", "durabilty", "did you mean durability?"],
             {"group": 'durabilty = "disk"'}),
            ("a misspelt value of the group's file", [":5", "dsik", "memory, disk"],
             {"group": 'durability = "dsik"'}),
            ("a line without =", [":5", "correct that line"], {"group": "durability disk"}),
            ("a misspelt key of the server", ["[server] dtaa", "did you mean data?"],
             {"server": 'dtaa = ["/srv"]'}),
            ("data that need a log on disk", ["[server] data", 'durability = "disk"'],
             {"server": 'data = ["/srv"]'}),
            ("two replicas at one port", ["[[replica]] 2", "that of replica 1", "its own port"],
             {"ports": [file.port, file.port + 1, file.port + 1]}),
            ("an even number of replicas in the file", ["2", "odd"],
             {"ports": [file.port, file.port + 1]}),
            ("a virtual address that is a host's own", ["virtual_ip", "no host has"],
             {"clients": 'virtual_ip = "127.0.0.1/8"\ninterface = "lo"'})):
        file.write(**changes)
        file.use(what, 118, words)
    file.write()
    file.use("a replica that the file does not have", 118, ["7", "0 to 2"], replica=7)
    file.use("a group's file that does not exist", 118, ["/no/such", "--config"], path="/no/such")
    file.use("a directory as group's file", 118, [str(file.place), "Is a directory", "--config"],
             path=file.place)
    secrets(file)


def secrets(file):
    file.secret.chmod(0o644)
    file.use("a secret that others may read", 119, [str(file.secret), "0644", "chmod 600"])
    file.secret.chmod(0o600)
    file.uses.tool("a second secret in one file", 119, [str(file.secret), "exists", "remove it"],
                   "crane-ctl", "secret", "new", file.secret)
    file.secret.write_text("short\n")
    file.use("a secret that is too short", 119, ["32", "crane-ctl secret new"])
    file.secret.unlink()
    file.use("no secret", 119, [str(file.secret), "crane-ctl secret new"])
    file.uses.tool("a secret in no directory", 119, ["/no/such", "another path"],
                   "crane-ctl", "secret", "new", "/no/such/secret")


def without_group(uses):
    """crane-ctl on a machine, or in a directory, without groups."""
    empty = uses.scenario.work / "empty"
    empty.mkdir()
    file = empty / "no-archive"
    file.write_text("text\n" * 200)
    uses.ctl("status without any group", 3, [str(empty), "--dir"], "status", home=empty)
    uses.ctl("status of an unknown group", 3, ["shpo", "crane-ctl list"], "status", "shpo")
    uses.ctl("stop of an unknown group", 3, ["shpo", "crane-ctl list"], "stop", "shpo")
    uses.ctl("a misspelt command", 100, ["statsu", "did you mean 'status'?"], "statsu")
    uses.ctl("a command without its second word", 100, ["what", "transfer"], "leader")
    uses.ctl("restore of a file that does not exist", 108, ["/no/such", "name a file"], "restore",
             "/no/such")
    uses.ctl("restore of a file that is no backup", 5, [str(file), "crane-ctl backup"], "restore",
             file)
    uses.ctl("import of a file that is no export", 5, [str(file), "crane-ctl data export"], "data",
             "import", file, "other")


def recordings(uses):
    work = uses.scenario.work
    empty, file = work / "no-recording", work / "no-recording" / "text"
    empty.mkdir()
    file.write_text("text\n" * 100)
    (empty / "other").write_text("other\n" * 100)
    for program, status in (("crane-diff", 2), ("crane-replay", 3)):
        uses.tool(f"{program} without a recording", 100, ["--help"], program)
        uses.tool(f"{program} of a recording that does not exist", status,
                  ["/no/such", "No such file", "--record"], program, "/no/such")
        uses.tool(f"{program} of a directory without recordings", status,
                  [str(empty), "--record"], program, empty)
    uses.tool("crane-diff of one file", 2, [str(file), "at least two"], "crane-diff", file)
    uses.tool("crane-replay of a file that is no history", 3,
              [str(file), "not a directory", "--record"], "crane-replay", file)
    uses.tool("crane-diff of files that are no recordings", 2, [str(file), "--record"],
              "crane-diff", file, empty / "other")


def unprivileged(uses):
    """As a user who may neither read the group's file nor write to --dir."""
    file = uses.scenario.work / "files" / "group.toml"
    file.chmod(0o600)
    uses.tool("a group's file that this user may not read", 118,
              [str(file), "Permission denied"], "crane-node", "--config", file, "--replica", "0",
              user=NOBODY)
    closed = uses.scenario.work / "closed"
    closed.mkdir(mode=0o700)
    uses.run("a directory that this user may not write", 108, [f"{closed}/", "--dir"], user=NOBODY,
             home=closed, container=False)
    os.rmdir(closed)
