#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With a full file system servers report the same as natively, and keep what they acknowledged.
Each server runs with its clients in one shell on a tmpfs of a few megabytes, natively and under
crane-solo, each in its own mount namespace. The answers to clients and the content of the disk
afterwards must be the same. When there is room again, the server starts, has every write that it
acknowledged, and none that it refused.
In a group the server does not see a full disk (ROOM-4): apache2 takes PUTs while the leader's disk,
or the disk shared by all, is full. No PUT is refused; status reports which replicas wait for room;
another replica leads, or clients wait. When there is room, all continue, have every page, and are
equal.
"""
import os
import pathlib
import re
import shutil
import subprocess
import threading

import _harness as h
import _installed
from _file_systems import told
from dav_race import dav_configuration
from room import fill, node_pids

LIMIT = 150  # seconds for one run
# For groups: bytes of a disk, and the bytes left free on it; bytes of a page.
DISK, ROOM, PAGE = 64 << 20, 2 << 20, 20000
# Each script gets $place, the full file system, and $work, where there is room, as $1 and $2. It
# prints what clients saw. Removing $place/fill makes room.
HEAD = """
place=$1 work=$2
await() { until "$@" >/dev/null 2>&1; do kill -0 $pid || exit 1; done; }
"""
REDIS = HEAD + """
serve() {
  redis-server --port PORT --dir $place --appendonly yes --appendfsync always --save '' \
    --logfile $work/log & pid=$!
  await redis-cli -p PORT ping
}
serve
value=$(head -c 8000 /dev/zero | tr '\\0' x)
for i in $(seq 1 1000); do
  answer=$(redis-cli -p PORT set key$i $value 2>&1)
  [ "$answer" = OK ] || break
  last=$i
done
wait $pid; status=$?
echo "acknowledged $last; $answer; ended $status"
grep -o "Can't recover.*" $work/log
rm $place/fill
serve
echo "kept $(redis-cli -p PORT dbsize); the last has $(redis-cli -p PORT strlen key$last)"
redis-cli -p PORT shutdown nosave
wait $pid; echo "ended $?"
"""
SQLITE = HEAD + """
cd $place
sqlite3 db 'pragma journal_mode=wal; create table t(n integer primary key, v blob)'
for i in $(seq 1 2000); do
  answer=$(sqlite3 db "insert into t values($i, zeroblob(9000))" 2>&1) || break
  last=$i
done
echo "acknowledged $last; $answer"
rm fill
echo "kept $(sqlite3 db 'select max(n) from t'); $(sqlite3 db 'pragma integrity_check')"
"""
NGINX = HEAD + """
cat > $work/conf <<END
daemon off; master_process off; pid $work/pid; error_log $work/log; events {}
http {
  access_log $place/access;
  client_body_temp_path $work/t; proxy_temp_path $work/t; fastcgi_temp_path $work/t;
  uwsgi_temp_path $work/t; scgi_temp_path $work/t;
  server { listen 127.0.0.1:PORT; location / { return 204; } }
}
END
nginx -c $work/conf & pid=$!
await curl -s http://127.0.0.1:PORT/
for i in $(seq 1000 3000); do echo "http://127.0.0.1:PORT/$(printf %0900d $i)"; done > $work/urls
xargs curl -s -w '%{http_code}\\n' < $work/urls | sort | uniq -c
echo "lines $(wc -l < $place/access), bytes $(wc -c < $place/access)"
kill $pid; wait $pid; echo "ended $?"
"""
SHELL = HEAD + """
cd $place
for i in $(seq 1 2000); do
  { head -c 5000 /dev/zero | tr '\\0' $((i % 10)); } 2>/dev/null >> lines || break
  last=$i
done
echo "wrote $last; there are $(wc -c < lines)"
seq 1 1000000 > more; echo "seq $?"
cp lines copy; echo "cp $?"
sort lines -o sorted; echo "sort $?"
echo few > $work/few
curl -s -o few file://$work/few; echo "curl $?"
python3 -c 'f = open("of_python", "w"); f.write("x" * 5000); f.close()'; echo "python $?"
perl -e 'open(F, ">of_perl"); print F "x" x 5000; close(F) or die "$!\\n"'; echo "perl $?"
awk 'BEGIN { print "x" > "of_awk"; exit close("of_awk") != 0 }'; echo "awk $?"
"""
POSTGRESQL = HEAD + """
ask() { psql -h $work -p PORT -U u -d postgres -Atqc "$1" 2>&1; }
serve() {
  BIN/postgres -D $place/data -k $work -p PORT -c listen_addresses= 2>> $work/log & pid=$!
  await ask 'select 1'
}
serve
ask 'create table t(n int primary key, v bytea)'
ask 'alter table t alter v set storage external'
for i in $(seq 1 300); do
  answer=$(ask "insert into t values($i, decode(repeat('00', 60000), 'hex'))") || break
  last=$i
done
echo "$answer" | sed 's/"base[^"]*"/a file/; s/"pg_wal[^"]*"/a file/; s/wrote only.*//' | head -1
rm $place/fill
[ "$(ask 'select max(n) from t')" = $last ] || echo "lost: $last"
ask "insert into t values(1000, '')"
kill -INT $pid; wait $pid; echo "ended $?"
serve
[ "$(ask 'select max(n) from t where n < 1000')" = $last ] || echo "lost: $last"
[ $(ask 'select count(*) from t') = $((last + 1)) ] && echo "all are there"
kill -INT $pid; wait $pid; echo "ended $?"
"""
# InnoDB's logs have their full size from the start, so that only tables find no room.
MARIADB = HEAD + """
ask() { mariadb --no-defaults -S $work/socket -u root -N -B -e "$1" d 2>&1; }
serve() {
  mariadbd SETTINGS --datadir=$place/data --socket=$work/socket --skip-networking SMALL \
    --pid-file=$work/pid --log-error=$work/log --user=mysql & pid=$!
  await mariadb-admin --no-defaults -S $work/socket -u root ping
}
serve
mariadb --no-defaults -S $work/socket -u root -e 'create database d'
ask 'create table t(n int primary key, v varchar(8000))'
for i in $(seq 1 1000); do
  answer=$(ask "insert into t values($i, repeat('x', 6000))") || break
  last=$i
done
echo "acknowledged $last; $(echo "$answer" | grep ERROR)"
rm $place/fill
ask "insert into t values(10000, '')" > $work/said; echo "goes on $?"
kill $pid 2> $work/said; wait $pid; echo "ended $?"
serve
echo "kept $(ask 'select count(*) from t where n < 10000'), of $(ask 'select count(*) from t')"
ask 'check table t extended'
kill $pid; wait $pid; echo "ended $?"
"""
# PUTs of files for which there is no room; the access log has none, either.
APACHE_DAV = HEAD + """
. /etc/apache2/envvars
APACHE_RUN_DIR=$work APACHE_LOCK_DIR=$work APACHE_LOG_DIR=$work APACHE_PID_FILE=$work/pid
url=http://127.0.0.1:PORT
mkdir -m 777 $place/dav $work/davlock
apache2 -C "Define port PORT" -C "Define place $place" -C "Define work $work" -f CONF \
  -D FOREGROUND & pid=$!
await curl -s $url/
head -c 20000 /dev/zero | tr '\\0' x > $work/page
for i in $(seq 1 200); do
  answer=$(curl -s -T $work/page -o $work/said -w '%{http_code}' $url/dav/$i)
  [ $answer = 201 ] || break
  last=$i
done
echo "acknowledged $last; $answer"
ls $place/dav | wc -l
curl -s -o $work/said -w '%{http_code} %{size_download}\\n' $url/dav/$last
rm $place/fill
curl -s -T $work/page -o $work/said -w '%{http_code}\\n' $url/dav/more
cd $place/dav; for i in *; do cmp $i $work/page; done; ls | wc -l
kill $pid; wait $pid; echo "ended $?"
"""

DAV = """
LoadModule dav_module /usr/lib/apache2/modules/mod_dav.so
LoadModule dav_fs_module /usr/lib/apache2/modules/mod_dav_fs.so
DavLockDB ${work}/davlock/db
Alias /dav ${place}/dav
CustomLog ${place}/access common
<Directory ${place}/dav>
  Dav On
  Require all granted
</Directory>
"""


class Place:
    """The full file system of one run."""

    def __init__(self, scenario, name, kilobytes, room, user=None, before=":"):
        self.work = scenario.work / name
        self.work.mkdir()
        self.work.chmod(0o777)
        self.place = self.work / "place"
        self.place.mkdir()
        self.kilobytes, self.room, self.user, self.before = kilobytes, room, user, before

    def command(self, runner, script):
        words = ["sh", str(script), str(self.place), str(self.work)]
        if self.user:
            words = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}",
                     "--clear-groups", *words]
        mount = f"""set -e
mount -t tmpfs -o size={self.kilobytes}k,mode=777 none {self.place}
{self.before.format(place=self.place, work=self.work)}
free=$(df -k --output=avail {self.place} | tail -1)
head -c $(((free - {self.room}) * 1024)) /dev/zero > {self.place}/fill
exec "$@" """
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                "--propagation", "private", "sh", "-c", mount, "sh", *runner, *words]


def run(place, runner, script):
    """Runs a script; returns its output with its status, and its standard error."""
    done = subprocess.run(place.command(runner, script), capture_output=True, text=True,
                          errors="replace", timeout=LIMIT, check=False, stdin=subprocess.DEVNULL)
    return f"{done.stdout}status {done.returncode}\n", done.stderr


def compare(scenario, name, text, kilobytes, room, **more):
    script = scenario.work / f"{name}.sh"
    script.write_text(text.replace("PORT", str(h.free_port())))
    script.chmod(0o644)
    solo = [str(scenario.out / "crane-solo")]
    runs = {"natively": [], "serial": [*solo, "--"], "perturbed": [*solo, "--perturb", "7", "--"]}
    said = {}
    for mode, runner in runs.items():
        said[mode], errors = run(Place(scenario, f"{name}-{mode}", kilobytes, room, **more), runner,
                                 script)
        scenario.check(said[mode] == said["natively"], f"{name}, {mode}: same as natively",
                       f"{said['natively']}---\n{said[mode]}{errors[-2000:]}")
    for line in said["natively"].splitlines():
        scenario.say(f"    {line}")
    numbers = dict(re.findall(r"^(acknowledged|kept) (\d+)", said["natively"], re.M))
    scenario.check(len(set(numbers.values())) <= 1, f"{name}: nothing acknowledged is lost",
                   said["natively"])


def postgresql(scenario):
    bins = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not bins or not shutil.which("psql"):
        raise h.CannotRun("postgresql is not installed (make deps)")
    folder = bins[-1].parent
    become = "setpriv --reuid=postgres --regid=postgres --clear-groups"
    compare(scenario, "postgresql", POSTGRESQL.replace("BIN", str(folder)), 48 << 10, 6 << 10,
            user="postgres",
            # Its log is elsewhere: without room for the log it panics, and never behaves as
            # natively.
            before=f"{become} {folder}/initdb -D {{place}}/data -X {{work}}/wal -U u -A trust"
                   " --wal-segsize=1 >/dev/null")


SMALL = ("--innodb-log-file-size=4M --innodb-data-file-path=ibdata1:5M:autoextend"
         " --innodb-temp-data-file-path=ibtmp1:3M:autoextend --innodb-buffer-pool-size=8M"
         " --aria-log-file-size=8M --innodb-autoextend-increment=1")


def mariadb(scenario):
    h.need("mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin")
    settings = _installed.mariadb(scenario.work)
    text = MARIADB.replace("SETTINGS", settings).replace("SMALL", SMALL)
    compare(scenario, "mariadb", text, 96 << 10, 6 << 10,
            before=f"mariadb-install-db {settings} {SMALL} --user=mysql --skip-test-db"
                   " --auth-root-authentication-method=normal --datadir={place}/data >/dev/null")


def apache(scenario):
    h.need("apache2")
    conf = h.apache_configuration(scenario.work, "${port}", DAV)
    compare(scenario, "apache", APACHE_DAV.replace("CONF", str(conf)), 4 << 10, 1 << 10)


class SmallDisks(h.Group):
    """A group whose directory is on one tmpfs, or with one tmpfs for each replica."""

    def __init__(self, *arguments, shared, **more):
        super().__init__(*arguments, **more)
        self.disks = [self.home] if shared else [self.dir / f"r{n}" for n in range(3)]
        self.mounted = []

    def launch(self):
        for disk in self.disks:
            disk.mkdir(parents=True, exist_ok=True)
            why = told(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "none", disk])
            if why:
                raise h.CannotRun(f"no separate file system: {why}")
            self.mounted.append(disk)
        super().launch()

    def leftovers(self):
        while self.mounted and not told(["umount", self.mounted[-1]]):
            self.mounted.pop()
        return super().leftovers()

    def kill_all(self):
        super().kill_all()
        for disk in self.mounted:
            told(["umount", "--lazy", disk])


class Putter(threading.Thread):
    """PUTs of one page after another, each answered before the next."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.stopping = port, [], threading.Event()

    def run(self):
        while not self.stopping.is_set():
            put = b"PUT /dav/%d HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (len(self.answers), PAGE)
            try:
                answer = h.http(self.port, put + b"x" * PAGE, 120)
            except OSError as error:
                answer = str(error).encode()
            self.answers.append(answer.split(b"\r\n")[0])


def has_pages(port, count):
    page = b"\r\n\r\n" + b"x" * PAGE
    return all(h.http(port, b"GET /dav/%d HTTP/1.0\r\n\r\n" % n, 60).endswith(page)
               for n in range(0, count, 7))


def in_a_group(scenario, shared):
    what = "one full disk for all" if shared else "the leader's disk is full"
    work, port = scenario.work / f"group-{shared}", h.free_port()
    work.mkdir(mode=0o755)
    program = ["apache2", "-f", str(dav_configuration(work, port))]
    group = SmallDisks(scenario, program, port=port, shared=shared)
    with group:
        leads, putter = group.leader(), Putter(port)
        nodes = node_pids(group)
        full = fill(group.disks[0 if shared else leads], (3 if shared else 1) * ROOM)
        putter.start()
        h.wait_until(lambda: (group.status(leads) or {}).get("no_room"), 60,
                     f"{what}: it waits for room")
        if shared:
            h.wait_until(lambda: all(s and s["no_room"] for s in group.statuses().values()), 60,
                         f"{what}: all wait for room")
        else:
            done = len(putter.answers)
            h.wait_until(lambda: len(putter.answers) > done + 20, 60, f"{what}: clients are served")
            scenario.check(group.leader() != leads, f"{what}: another replica leads")
        status, text = h.ctl(scenario, "--dir", str(group.home), "status", group.name)
        scenario.check("waits for room on a disk" in text and status, f"{what}: status reports it",
                       f"{status}: {text}")
        full.unlink()
        done = len(putter.answers)
        h.wait_until(lambda: len(putter.answers) > done + 20, 60, f"{what}: it continues")
        putter.stopping.set()
        putter.join(120)
        refused = [a for a in putter.answers if b" 201 " not in a]
        scenario.check(not refused, f"{what}: no PUT of {len(putter.answers)} is refused",
                       str(refused[:3]))
        group.settle(60)
        scenario.check(not group.alarm() and node_pids(group) == nodes,
                       f"{what}: all replicas are equal, and no process ended", str(group.brief()))
        scenario.check(has_pages(port, len(putter.answers)), f"{what}: the pages are there")


def groups(scenario):
    h.need("apache2")
    if not h.can_contain():
        raise h.CannotRun("a disk for each replica needs containers")
    for shared in (False, True):
        in_a_group(scenario, shared)


def body(scenario):
    h.need("redis-server", "redis-cli", "nginx", "curl", "sqlite3", "unshare", "setpriv")
    if os.geteuid() != 0:
        raise h.CannotRun("mounts need root")
    compare(scenario, "shell", SHELL, 4 << 10, 2 << 10)
    compare(scenario, "sqlite", SQLITE, 4 << 10, 2 << 10)
    compare(scenario, "redis", REDIS, 4 << 10, 2 << 10)
    compare(scenario, "nginx", NGINX, 4 << 10, 1 << 10)
    for one in (apache, mariadb, postgresql, groups):
        try:
            one(scenario)
        except h.CannotRun as missing:
            scenario.say(f"{one.__name__}: {missing}")


if __name__ == "__main__":
    h.run_scenario("full_disk", body)
