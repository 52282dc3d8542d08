# SPDX-License-Identifier: Apache-2.0
"""Stories of servers that write data to a server outside, or read them there: a redis that
replicates a master, PHP pages that write to a MariaDB, and one group that uses another."""
import _harness as h
import _installed
import _outside as o
import _stories as s
import _takeovers as t
import server_mariadb


class Connections(list):
    def close(self):
        for connection in self:
            connection.close()


class Counting(o.Client):
    """Counts in a redis: the count shows whether it received each request once."""

    def __init__(self, number, *ports):
        super().__init__(number)
        self.ports = ports

    def open(self):
        return Connections(h.Redis(port, o.SECONDS) for port in self.ports)

    def ask(self, connection, count):
        count += 1
        self.ask_each(count, f"{count}-".encode() * (1 + count % 500), *connection)
        return count, None

    def ask_each(self, count, text, redis):
        counted = redis("INCR", f"key{self.number}"), redis("APPEND", f"all{self.number}", text)
        last = redis("GETRANGE", f"all{self.number}", counted[1] - len(text), -1)
        if counted[0] != count or last != text:
            raise h.Failure(f"redis counted {counted}")


class Replicated(Counting):
    """Counts on the master outside, and reads each number from the replicated group."""

    def ask_each(self, count, text, master, group):
        key, value = f"key{self.number}", f"value{self.number}"
        counted = master("INCR", key)
        master("SET", value, text)
        if counted != count or master("WAIT", 1, 0) != 1:
            raise h.Failure(f"the master counted {counted}")
        if group("GET", key) != str(count).encode() or group("GET", value) != text:
            raise h.Failure(f"the group has another value at {count}")


def replicas_of_redis(scenario, changes):
    """The master sees one replica with a connection that never breaks."""
    h.need("redis-server")
    master, port = h.free_port(), h.free_port()
    work = scenario.work / "master"
    work.mkdir()
    with s.Native(scenario, [*h.redis_program(master), "--dir", work], master):
        ask = h.Redis(master, o.SECONDS)
        for number in range(200):
            ask("SET", f"before{number}", b"x" * number * 37)
        command = [*h.redis_program(port), "--replicaof", "127.0.0.1", str(master)]
        with h.Group(scenario, command, port=port, options=t.RETURNS) as group:
            # A synchronization begins with the first tick of a one-second timer.
            h.wait_until(lambda: "master_link_status:up" in info(port), 60, "the group replicates")
            t.check(scenario, group, [o.Crowd(Replicated(number, master, port)
                                              for number in range(s.CLIENTS))], *changes,
                    near=s.NEAR,
                    before_stop=lambda: is_the_same(scenario, ask, port))
        ask.close()


def info(port):
    client = h.Redis(port, o.SECONDS)
    try:
        return client("INFO", "replication").decode()
    finally:
        client.close()


def is_the_same(scenario, master, port):
    group = h.Redis(port, o.SECONDS)
    master("WAIT", 1, 0)
    ours, theirs = group("DEBUG", "DIGEST"), master("DEBUG", "DIGEST")
    scenario.check(ours == theirs, "redis: the group has the same data as the master",
                   f"{ours}, {theirs}")
    words = master("INFO", "stats").decode().split()
    scenario.check("sync_full:1" in words and "sync_partial_ok:0" in words,
                   "redis: its connection to the master never broke",
                   str([w for w in words if w.startswith("sync_")]))
    group.close()


PAGE = """<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$path = $_SERVER['REQUEST_URI'];
$kept = explode('/', $path)[1] % 2 ? 'p:' : '';
$database = new mysqli($kept . '127.0.0.1', 'root', '', 'story', {database});
$insert = $database->prepare('insert into heard values (?, ?)');
$body = file_get_contents('php://input');
$insert->bind_param('ss', $path, $body);
$insert->execute();
$count = $database->prepare('select count(*), sum(length(body)) from heard where path = ?');
$count->bind_param('s', $path);
$count->execute();
[$rows, $bytes] = $count->get_result()->fetch_row();
header('X-Rows: ' . $rows . ' ' . ($bytes == strlen($body)));
header('Content-Type: text/plain');
echo str_repeat($path, 1 + strlen($path) * 7919 % 400);
"""


class Database(server_mariadb.Mariadb):
    """Its table contains the requests that it received."""
    broken = ()

    def fill(self):
        self.ask("create database story; "
                 "create table story.heard (path varchar(64), body longtext)")

    def take_heard(self):
        heard = {}
        for row in self.ask("select * from story.heard").splitlines():
            path, text = row.split("\t")
            heard.setdefault(path, []).append(text.encode())
        self.ask("truncate table story.heard")
        return heard

    def has_heard(self, _):
        return True   # each answer comes after its commit

    def is_whole(self, path, text):
        return text == o.body_of(path)

    def close(self):
        pass


def pages(scenario, name):
    """PHP that writes to a database: (port, command, the database)."""
    h.need("php", *Database.programs)
    work = scenario.work / name
    work.mkdir()
    work.chmod(0o755)
    (work / "database").mkdir()
    port, database = h.free_port(), Database(work / "database", h.free_port())
    page = work / "page.php"
    page.write_text(PAGE.replace("{database}", str(database.port)))
    command = ["/usr/bin/env", "PHP_CLI_SERVER_WORKERS=4",
               f"PHP_INI_SCAN_DIR={_installed.php(work)}", "/usr/bin/php", "-S",
               f"127.0.0.1:{port}", str(page)]
    return port, command, database


def php(scenario, changes):
    """The pages of every second client keep their connection to the database."""
    port, command, database = pages(scenario, "php")
    with s.Native(scenario, database.native_program(), database.port):
        s.passes_on(scenario, changes, "php", command, port=port, backend=database, keeps=False)


HAPROXY = """defaults
  mode tcp
  timeout connect 60s
  timeout client 600s
  timeout server 600s
listen redis
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{other}
"""


class Fetching(o.WebClient):
    """Gets pages: one of a megabyte among many small ones."""

    def __init__(self, port, number, pages):
        super().__init__(port, number)
        self.pages = [(name, (pages / name).read_bytes()) for name in ("1k.html", "1m.bin")]

    def page(self, path):
        return self.pages[int(path.split("/")[2]) % 32 == 1]

    def request(self, connection, path):
        connection.request("GET", f"/{self.page(path)[0]}?{path}")

    def is_right(self, path, status, text):
        return status == 200 and text == self.page(path)[1]


def two(scenario, changes, name, front, front_port, back, back_port, crowd,
        begins=lambda: None, ends=lambda: None):
    """A group that uses another group; the leader of each changes in turn. Both groups serve when
    `begins` and `ends` are called."""
    kinds, rounds = changes
    with h.Group(scenario, back, port=back_port, options=t.RETURNS) as inner, \
            h.Group(scenario, front, port=front_port, options=t.RETURNS) as outer:
        begins()
        both = [t.Changes(scenario, group, kinds, 1, [crowd], s.NEAR) for group in (outer, inner)]
        crowd.start()
        try:
            for _ in range(rounds):
                for turn in both:
                    turn.run()
        finally:
            bad = crowd.end()
        scenario.check(not bad, f"{name}: {crowd.summary()}, nothing noticed", bad)
        ends()
        for group, turn in zip((outer, inner), both):
            statuses = group.settle()
            adopted = [status["adopted"] for status in statuses.values()]
            scenario.say(f"{group.name}: {turn.done}, adopted {adopted}")
            t.are_equal(scenario, group, statuses)
            group.stop()


def haproxy_before_redis(scenario, changes):
    h.need("haproxy", "redis-server")
    port, other = h.free_port(), h.free_port()
    conf = scenario.work / "two-haproxy.cfg"
    conf.write_text(HAPROXY.format(port=port, other=other))
    two(scenario, changes, "haproxy before redis", ["haproxy", "-db", "-f", str(conf)], port,
        h.redis_program(other), other, o.Crowd(Counting(n, port) for n in range(s.CLIENTS)))


def nginx_before_apache(scenario, changes):
    h.need("nginx", "apache2")
    port, other = h.free_port(), h.free_port()
    apache = h.apache_configuration(scenario.work, other,
                                    "MaxKeepAliveRequests 0\nKeepAliveTimeout 300")
    front = o.nginx_before(f"127.0.0.1:{other}", scenario.work, "two-nginx", f"127.0.0.1:{port}",
                           "keepalive_requests 100000000;")
    two(scenario, changes, "nginx before apache", front, port,
        ["/usr/sbin/apache2", "-f", str(apache), "-DFOREGROUND"], other,
        o.Crowd(Fetching(port, n, scenario.work / "www") for n in range(s.CLIENTS)))


def web_and_database(scenario, changes):
    """A web tier and its database, each a group: every page is in the table exactly once."""
    port, command, database = pages(scenario, "web")
    crowd = o.Crowd(o.WebClient(port, number, keeps=False) for number in range(s.CLIENTS))
    for client in crowd.clients:
        client.pause = 1  # six servers on this machine: otherwise a database never catches up
    two(scenario, changes, "a web tier and its database", command, port, database.command,
        database.port, crowd,
        begins=lambda: h.wait_until(database.ready, 60, "the database answers"),
        ends=lambda: s.check_heard(scenario, "a web tier and its database", database,
                                   crowd.answers, {}))
