# SPDX-License-Identifier: Apache-2.0
"""Servers that compute for one client while others send requests: small programs and servers of the
matrix, with the requests that start a long computation, stop it, or ask for little."""
import shutil
import socket
import subprocess
import threading

import _harness as h
import _matrix as m
import _web
import server_mariadb
import server_postgresql

PERL = r"""use strict; use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 16,
                              ReuseAddr => 1) or die $!;
$SIG{CHLD} = 'IGNORE';
sub compute { my ($n, $i) = ($_[0], 0); 1 while $i++ < $n; return $i }
while (my $c = $s->accept) {
  if (fork) { close $c; next }
  while (my $line = <$c>) {
    my ($what, $n) = split ' ', $line;
    my $answer = $what eq 'compute' ? compute($n) : 'pong';
    if ($what eq 'alarm') {
      eval { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; $answer = compute($n) };
      $answer = 'stopped' if $@ eq "alarm\n";
    }
    print $c "$answer\n"; $c->flush;
  }
  exit 0;
}
"""
PYTHON = """import os, signal, socket, sys
class Stop(Exception): pass
def stop(*_): raise Stop
def compute(n):
    i = 0
    while i < n:
        i += 1
    return i
def alarm(n):
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(1)
    try:
        return compute(n)
    except Stop:
        return "stopped"
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    client, _ = listener.accept()
    if os.fork():
        client.close()
        continue
    lines = client.makefile("rw")
    for line in lines:
        what, _, n = line.partition(" ")
        answer = {"compute": compute, "alarm": alarm}.get(what, lambda n: "pong")(int(n or 0))
        print(answer, file=lines, flush=True)
    os._exit(0)
"""
PAGE = """<?php
set_time_limit((int)($_GET['limit'] ?? 0));
$i = 0;
while ($i < (int)($_GET['n'] ?? 0)) ++$i;
echo "result $i\\n";
"""
SECONDS = 100


def line(port, text):
    """Sends one line and returns the answer."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as s:
        s.sendall(text.encode() + b"\n")
        answer = s.makefile().readline()
    if not answer:
        raise h.Failure(f"no answer to {text!r}")
    return answer.strip()


class Lines:
    """One of the programs above, or computing_server."""
    programs, options, environment = (), (), {}
    short, long = 0, 0      # rounds of a computation that ends, and of one that is stopped
    stops = ("alarm",)      # the ways to stop a long computation

    def __init__(self, work, out):
        self.work, self.out, self.port = work, out, h.free_port()
        self.command = self.program()

    def script(self, interpreter, name, text):
        (self.work / name).write_text(text)
        return [interpreter, str(self.work / name), str(self.port)]

    def ready(self):
        return True

    def compute(self):
        """Computes for some seconds."""
        return line(self.port, f"compute {self.short}")

    def light(self):
        return line(self.port, "ping") == "pong"

    def stopped(self, how):
        """True when the long computation ended by `how`."""
        return line(self.port, f"{how} {self.long}").startswith("stopped")


class C(Lines):
    """Loops in C: one calls nothing, one calls functions of the program."""
    short, long = 500_000_000, 20_000_000_000
    stops = ("real 300", "prof 300", "limit")

    def program(self):
        shutil.copy(self.out / "e2e/computing_server", self.work)
        return [str(self.work / "computing_server"), str(self.port)]

    def compute(self):
        reply = line(self.port, f"real 0 {self.short}")
        return (reply, line(self.port, f"loop {self.short}"),
                line(self.port, f"calls {self.short // 20}"))


class Crowd(C):
    """Two of the loops at once, and clients that repeatedly ask for little meanwhile."""
    short, stops, clients = 400_000_000, (), 8

    def compute(self):
        over, said = threading.Event(), {}

        def heavy(text):
            said[text] = line(self.port, text)

        def light():
            while not over.is_set():
                said["light"] = line(self.port, "calls 2000")
        loops = [threading.Thread(target=heavy, args=(text,))
                 for text in (f"loop {self.short}", f"calls {self.short // 20}")]
        others = [threading.Thread(target=light) for _ in range(self.clients)]
        for thread in (*loops, *others):
            thread.start()
        for thread in loops:
            thread.join()
        over.set()
        for thread in others:
            thread.join()
        return said


class Perl(Lines):
    programs, short, long = ("perl",), 10_000_000, 2_000_000_000

    def program(self):
        return self.script("/usr/bin/perl", "server.pl", PERL)


class Python(Lines):
    programs, short, long = ("python3",), 10_000_000, 2_000_000_000

    def program(self):
        return self.script("/usr/bin/python3", "server.py", PYTHON)


class Php(Lines):
    """PHP's own web server with workers, and the time limit of a page."""
    programs, short, long = ("php",), 50_000_000, 20_000_000_000
    stops = ("limit",)

    def program(self):
        root = self.work / "root"
        root.mkdir()
        (root / "page.php").write_text(PAGE)
        return ["/usr/bin/env", "PHP_CLI_SERVER_WORKERS=4", "/usr/bin/php", "-S",
                f"127.0.0.1:{self.port}", "-t", str(root)]

    def compute(self):
        return _web.get(self.port, f"/page.php?n={self.short}")[2].decode()

    def light(self):
        return _web.get(self.port, "/page.php?n=1")[2].decode() == "result 1\n"

    def stopped(self, how):
        status, _, body = _web.get(self.port, f"/page.php?{how}=1&n={self.long}")
        return status == 500 and b"result" not in body


class Redis(Lines):
    """A script that another client kills, once redis reads other clients."""
    programs, short, long = ("redis-server",), 20_000_000, 20_000_000_000
    stops = ("SCRIPT KILL",)

    def program(self):
        return [*h.redis_program(self.port), "--busy-reply-threshold", "200"]

    def ready(self):
        return h.redis_answers(self.port)

    def script_of(self, rounds):
        client = h.Redis(self.port, SECONDS)
        try:
            return str(client("EVAL", f"local i = 0 while i < {rounds} do i = i + 1 end return i",
                              "0"))
        except (OSError, h.Failure) as refused:
            return str(refused)
        finally:
            client.close()

    def compute(self):
        return self.script_of(self.short)

    def light(self):
        client = h.Redis(self.port, SECONDS)
        try:
            client("PING")
        except h.Failure:
            pass    # "BUSY Redis is busy running a script": an answer
        client.close()
        return True

    def stopped(self, how):
        results = []
        thread = threading.Thread(target=lambda: results.append(self.script_of(self.long)))
        thread.start()

        def killed():
            client = h.Redis(self.port, SECONDS)
            try:
                return "OK" in str(client(*how.split()))
            except h.Failure:
                return False    # redis does not consider itself busy yet
            finally:
                client.close()
        h.wait_until(killed, SECONDS, "the script is killed")
        thread.join(SECONDS)
        return "killed" in results[0].lower()


class Database:
    """A server of the matrix, with its own client."""
    options, environment = (), {}

    def __init__(self, work, out):
        kind = self.kind
        kind.out = out
        self.server = kind(work, h.free_port())
        self.port, self.command = self.server.port, self.server.command
        self.options = kind.options

    def ready(self):
        return self.server.ready()

    def light(self):
        return self.server.ask("select 1") == "1"

    def refused(self, *queries):
        """Returns the answer, or the message of a query that fails."""
        try:
            return self.server.ask(*queries)
        except h.Failure as failure:
            return str(failure)

    def while_it_runs(self, act):
        """Returns the result of the long query while `act` is done in another session."""
        said = []
        thread = threading.Thread(target=lambda: said.append(self.refused(self.query(self.long))))
        thread.start()
        h.wait_until(act, SECONDS, "it is ended from another session")
        thread.join(SECONDS)
        return said[0]


class Postgres(Database):
    kind = server_postgresql.Postgres
    programs = kind.programs
    short, long = 20_000_000, 2_000_000_000
    stops = ("statement_timeout", "pg_cancel_backend")

    def query(self, rounds):
        return (f"do $$ declare i bigint := 0; begin while i < {rounds} loop i := i + 1; "
                "end loop; end $$")

    def compute(self):
        return self.server.ask(self.query(self.short))

    def stopped(self, how):
        if how == "statement_timeout":
            error = self.refused("set statement_timeout = '1s'", self.query(self.long))
            return "canceling statement due to statement timeout" in error
        cancel = ("select count(pg_cancel_backend(pid)) from pg_stat_activity where query like "
                  "'do $$%' and pid <> pg_backend_pid()")
        return ("canceling statement due to user request" in
                self.while_it_runs(lambda: self.server.ask(cancel) == "1"))


class Mariadb(Database):
    kind = server_mariadb.Mariadb
    programs = kind.programs
    short, long = 20_000_000, 20_000_000_000
    stops = ("KILL QUERY",)

    def query(self, rounds):
        return f"select benchmark({rounds}, sqrt(2.5) * 1.5)"

    def compute(self):
        return self.server.ask(self.query(self.short))

    def stopped(self, how):
        find = "select id from information_schema.processlist where info like 'select benchmark%'"

        def killed():
            number = self.server.ask(find)
            return bool(number) and self.server.ask(f"{how} {number}") == ""
        return self.while_it_runs(killed) == "0"   # as natively


KINDS = (C, Perl, Python, Php, Redis, Postgres, Mariadb)
CROWDED = (Crowd,)   # loads with computations that nothing stops


def check_histories(scenario, group, name):
    """After the group has stopped: its replicas' recordings are equal and can be replayed."""
    scenario.check_equal(group, what=f"{name}: outputs of all replicas are equal")
    scenario.check_schedule(group, what=f"{name}: schedules of all replicas are equal")
    again = subprocess.run([str(scenario.out / "crane-replay"), str(group.record)],
                           capture_output=True, text=True, timeout=300, check=False,
                           stdin=subprocess.DEVNULL)
    scenario.check(again.returncode == 0, f"{name}: its history runs again, slices and all",
                   f"{again.returncode}: {again.stdout[-2000:]}{again.stderr[-2000:]}")


def stops(server, how):
    """Whether `how` ends a long computation; the first computation may run without slices."""
    return any(server.stopped(how) for _ in range(3))


def run_beside(work, light):
    """Returns (the result of work(), the number of light() answers meanwhile)"""
    said, answers = [], 0
    thread = threading.Thread(target=lambda: said.append(work()))
    thread.start()
    while thread.is_alive():
        try:
            answers += bool(light())
        except (OSError, h.Failure, subprocess.TimeoutExpired):
            pass
    thread.join()
    return said[0], answers


def sliced(kind):
    """A server of the matrix whose load is a computation of this kind."""
    class Sliced(m.Server):
        name, programs = f"slices, {kind.__name__}", kind.programs

        def __init__(self, work, _port):
            self.it, self.first = kind(work=work, out=self.out), None
            self.work, self.port = work, self.it.port
            self.command, self.options = self.it.command, self.it.options

        def ready(self):
            return self.it.ready()

        def load(self, requests):
            computed, answers = run_beside(self.it.compute, self.it.light)
            self.first = self.first or computed
            if computed != self.first:
                raise h.Failure(f"computed {self.first!r} first, then {computed!r}")
            for how in self.it.stops:
                if not stops(self.it, how):
                    raise h.Failure(f"{how} did not end a computation; {answers} answers before")
    return Sliced
