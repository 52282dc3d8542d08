#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eleven servers without a profile, for `make accept`: lighttpd and python3 -m http.server (one
loop; a thread per client), uwsgi, puma and php -S (processes that fork from a master), webrick
(Ruby threads), an Erlang server (an Erlang process per client), beanstalkd and ngircd (one loop for
all clients), exim4 (a process per client, which executes another per message), ZooKeeper (Java
threads that hand requests to each other).
Each serves eight clients, loses the leader's node, and serves eight more."""
import hashlib
import re
import shutil

import _harness as h
from _unprepared import WSGI, Files, Hashing, run, talk, tell

LIGHTTPD = """server.document-root = "{pages}"
server.bind = "127.0.0.1"
server.port = {port}
"""
WEBRICK = """require 'webrick'
require 'digest'
server = WEBrick::HTTPServer.new(BindAddress: '127.0.0.1', Port: ARGV[0].to_i)
server.mount_proc('/') do |request, response|
  response.body = "#{request.path} #{Digest::SHA256.hexdigest(request.path)}"
end
server.start
"""
PUMA = """require 'digest'
run(lambda do |environment|
  path = environment['PATH_INFO']
  [200, { 'Content-Type' => 'text/plain' }, ["#{path} #{Digest::SHA256.hexdigest(path)}"]]
end)
"""
PHP = """<?php
$path = $_SERVER['REQUEST_URI'];
echo $path, ' ', hash('sha256', $path);
"""
ERLANG = """main([Port]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port),
        [binary, {ip, {127, 0, 0, 1}}, {packet, line}, {active, false}, {reuseaddr, true}]),
    accept(Listener).

accept(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Server = spawn(fun() -> receive go -> serve(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Server),
    Server ! go,
    accept(Listener).

serve(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Line} ->
            Digits = [io_lib:format("~2.16.0b", [Byte]) || <<Byte>> <= erlang:md5(Line)],
            ok = gen_tcp:send(Socket, [Digits, "\\n"]),
            serve(Socket);
        {error, closed} -> ok
    end.
"""
NGIRCD = """[Global]
Name = irc.example.test
Info = a server
Listen = 127.0.0.1
Ports = {port}
ServerUID = root
ServerGID = root
[Limits]
MaxConnectionsIP = 0
[Options]
DNS = no
Ident = no
PAM = no
"""
# exim delivers as its own user, because it drops root when its configuration is not Debian's. Every
# message is delivered: a bounce message has a boundary that depends on an address, and the kernel
# randomises the addresses of a setuid program such as exim4 at each start.
EXIM = """primary_hostname = mail.example.test
domainlist ours = example.test
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
spool_directory = {work}/spool
log_file_path = {work}/log/%slog
pid_file_path = {work}/spool/pid
host_lookup =
rfc1413_query_timeout = 0s
deliver_drop_privilege
acl_smtp_rcpt = recipient
acl_smtp_data = accept
begin acl
recipient:
  accept domains = +ours
  deny message = not a domain of ours
begin routers
all:
  driver = accept
  domains = +ours
  local_parts = lsearch;{work}/users
  transport = file
begin transports
file:
  driver = appendfile
  file = {work}/mail/$local_part_data
  user = Debian-exim
"""
ZOOKEEPER = """tickTime=2000
dataDir={work}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
"""
KAZOO = """import sys
from kazoo.client import KazooClient
port, number = sys.argv[1:]
client = KazooClient(hosts=f"127.0.0.1:{port}", timeout=30)
client.start(30)
client.ensure_path(f"/place{number}")
for turn in range(4):
    client.set(f"/place{number}", f"value {turn} of {number}".encode())
print(client.create(f"/place{number}/node", b"", sequence=True),
      client.get(f"/place{number}")[0].decode())
client.stop()
"""


class Lighttpd(Files):
    name, programs = "lighttpd", ("lighttpd", "curl")

    def prepare(self):
        configuration = self.work / "lighttpd.conf"
        configuration.write_text(LIGHTTPD.format(pages=self.pages, port=self.port))
        self.command = ["/usr/sbin/lighttpd", "-D", "-f", str(configuration)]


class HttpServer(Files):
    name, programs = "http.server", ("/usr/bin/python3.11", "curl")

    def prepare(self):
        self.command = ["/usr/bin/python3.11", "-m", "http.server", "--bind", "127.0.0.1",
                        "--directory", str(self.pages), str(self.port)]


class Uwsgi(Hashing):
    name, programs = "uwsgi", ("uwsgi_python3", "curl")

    def prepare(self):
        script = self.work / "pages.py"
        script.write_text(WSGI)
        self.command = ["/usr/bin/uwsgi_python3", "--http-socket", f"127.0.0.1:{self.port}",
                        "--master", "--processes", "2", "--threads", "4", "--wsgi-file",
                        str(script)]


class Beanstalkd:
    name, programs = "beanstalkd", ("beanstalkd", "nc")

    def __init__(self, _):
        self.port = h.free_port()
        self.command = ["/usr/bin/beanstalkd", "-l", "127.0.0.1", "-p", str(self.port)]

    def client(self, number):
        job = f"job of client {number}"
        heard = talk(self.port, f"use tube{number}\r\nput 0 0 60 {len(job)}\r\n{job}\r\n"
                     f"watch tube{number}\r\nignore default\r\nreserve\r\n", "job of")
        wanted = rf"USING tube{number}\nINSERTED (\d+)\nWATCHING 2\nWATCHING 1\n" \
            rf"RESERVED \1 {len(job)}\n{job}\n"
        return re.fullmatch(wanted, heard), f"{number}: {heard[-300:]}"


class Webrick(Hashing):
    name, programs = "webrick", ("ruby", "curl")

    def prepare(self):
        script = self.work / "server.rb"
        script.write_text(WEBRICK)
        self.command = ["/usr/bin/ruby", str(script), str(self.port)]


class Puma(Hashing):
    name, programs = "puma", ("puma", "curl")

    def prepare(self):
        script = self.work / "config.ru"
        script.write_text(PUMA)
        self.command = ["/usr/bin/puma", "-w", "2", "-t", "4:4", "-b",
                        f"tcp://127.0.0.1:{self.port}", str(script)]


class Php(Hashing):
    name, programs = "php", ("php", "curl")

    def prepare(self):
        script = self.work / "router.php"
        script.write_text(PHP)
        self.command = ["/usr/bin/env", "PHP_CLI_SERVER_WORKERS=4", "/usr/bin/php", "-S",
                        f"127.0.0.1:{self.port}", str(script)]


class Erlang:
    name, programs = "erlang", ("escript", "nc")

    def __init__(self, work):
        self.port = h.free_port()
        script = work / "server.escript"
        script.write_text("#!/usr/bin/env escript\n" + ERLANG)
        self.command = ["/usr/bin/escript", str(script), str(self.port)]

    def client(self, number):
        line = f"line of client {number}\n"
        heard = talk(self.port, line, "")
        return heard == hashlib.md5(line.encode()).hexdigest() + "\n", f"{number}: {heard[-300:]}"


class Ngircd:
    name, programs = "ngircd", ("ngircd", "nc")

    def __init__(self, work):
        self.port = h.free_port()
        configuration = work / "ngircd.conf"
        configuration.write_text(NGIRCD.format(port=self.port))
        self.command = ["/usr/sbin/ngircd", "-n", "-f", str(configuration)]

    def client(self, number):
        nick, words = f"nick{number}", f"words of {number}"
        heard = talk(self.port, f"NICK {nick}\r\nUSER user 0 * :name\r\nJOIN #place{number}\r\n"
                     f"PRIVMSG {nick} :{words}\r\nQUIT :goes\r\n", "ERROR")
        said = f":{nick}!~user@127.0.0.1"
        wanted = (f":irc.example.test 001 {nick} :Welcome to the Internet Relay Network "
                  f"{nick}!~user@127.0.0.1\n", f"{said} JOIN :#place{number}\n",
                  f":irc.example.test 353 {nick} = #place{number} :@{nick}\n",
                  f"{said} PRIVMSG {nick} :{words}\n", "ERROR :")
        return all(line in heard for line in wanted), f"{number}: {heard[-600:]}"


class Exim:
    name, programs = "exim4", ("exim4", "swaks")

    def __init__(self, work):
        self.port = h.free_port()
        for name in ("spool", "log", "mail"):
            (work / name).mkdir()
            shutil.chown(work / name, "Debian-exim", "Debian-exim")
        users = [f"user{number}" for number in range(16)]
        (work / "users").write_text("".join(f"{user}: {user}\n" for user in users))
        configuration = work / "exim.conf"
        configuration.write_text(EXIM.format(port=self.port, work=work))
        self.command = ["/usr/sbin/exim4", "-bdf", "-C", str(configuration)]

    def client(self, number):
        send = ("swaks", "--server", f"127.0.0.1:{self.port}", "--helo", f"host{number}.test",
                "--from", f"from{number}@example.test", "--to")
        put = run(*send, f"user{number}@example.test", "--body", f"text {number}\n" * 20)
        refused = run(*send, "user@elsewhere.test")
        return put.returncode == 0 and re.search(r"^<-  250 OK id=\S+$", put.stdout, re.M) \
            and "<** 550 not a domain of ours" in refused.stdout, \
            f"{number}: {put.stdout[-600:]} {refused.stdout[-300:]}"


class ZooKeeper:
    name = "zookeeper"
    programs = ("java", "/usr/share/zookeeper/bin/zkServer.sh", "/usr/bin/python3.11")

    def __init__(self, work):
        self.port = h.free_port()
        configuration = work / "zoo.cfg"
        configuration.write_text(ZOOKEEPER.format(port=self.port, work=work))
        self.script = work / "client.py"
        self.script.write_text(KAZOO)
        jars = ":".join(f"/usr/share/java/{name}.jar" for name in
                        ("zookeeper", "slf4j-api", "slf4j-simple"))
        self.command = ["/usr/bin/java", "-Dorg.slf4j.simpleLogger.logFile=System.out", "-cp", jars,
                        "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(configuration)]

    def client(self, number):
        heard = run("/usr/bin/python3.11", self.script, self.port, number).stdout
        return re.fullmatch(rf"/place{number}/node\d{{10}} value 3 of {number}\n", heard), \
            f"{number}: {heard[-300:]}"


KINDS = (Lighttpd, HttpServer, Uwsgi, Beanstalkd, Webrick, Puma, Php, Erlang, Ngircd, Exim,
         ZooKeeper)

if __name__ == "__main__":
    tell("accept_ecosystems", KINDS)
