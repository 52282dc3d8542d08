#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replicated servers that talk to outside servers: proxies, a replicating redis, PHP with a
database, a mail relay, a group in front of another group. Eight clients send requests while the
leader is killed, stopped for two seconds, and transfers the lead. No request fails; the outside
server gets each request once, byte for byte as the same program sends it natively; the replicas are
equal. Failing outside servers cause the same errors as natively."""
import _apache
import _installed
import _harness as h
import _outside as o
import _stories_data as d
import _stories_errors as e
import _stories_mail as mail
import _takeovers as t
from _stories import passes_on
from server_tls import make_certificate

KINDS = (*t.FAULTS, "hand the lead over")
HAPROXY = """global
  nbthread 2
defaults
  mode {mode}
  timeout connect 30s
  timeout client 90s
  timeout server 90s
frontend in
  bind 127.0.0.1:{port}
  default_backend out
backend out
  server one 127.0.0.1:{backend}
"""


def haproxy(scenario, changes, mode):
    h.need("haproxy")
    backend, port = o.Web(), h.free_port()
    conf = scenario.work / f"haproxy-{mode}.cfg"
    conf.write_text(HAPROXY.format(mode=mode, port=port, backend=backend.port))
    passes_on(scenario, changes, f"haproxy-{mode}", ["haproxy", "-db", "-f", str(conf)], port=port,
              backend=backend)


def haproxy_tcp(scenario, changes):
    haproxy(scenario, changes, "tcp")


def haproxy_http(scenario, changes):
    haproxy(scenario, changes, "http")


def apache(scenario, changes):
    """mod_proxy, whose pool keeps connections to the outside server."""
    h.need("apache2")
    backend, port = o.Web(), h.free_port()
    work = scenario.work / "apache"
    work.mkdir()
    conf = work / "apache2.conf"
    conf.write_text(_installed.apache("event", ("proxy", "proxy_http")) + f"""
Listen 127.0.0.1:{port}
PidFile {work}/apache2.pid
ErrorLog {work}/error.log
ServerName crane.test
MaxKeepAliveRequests 0
KeepAliveTimeout 90
ProxyPass / http://127.0.0.1:{backend.port}/ keepalive=On
""")
    command = ["apache2", "-f", str(conf)]
    variables = {**_apache.variables(), "APACHE_RUN_DIR": work, "APACHE_LOCK_DIR": work}
    envvars = [f"{name}={value}" for name, value in variables.items()]
    passes_on(scenario, changes, "apache", command, port=port, backend=backend,
              native=["env", *envvars, *command, "-DFOREGROUND"])


SQUID = """http_port 127.0.0.1:{port}
pid_filename {work}/squid.pid
access_log none
cache_log {work}/cache.log
cache deny all
coredump_dir {work}
visible_hostname crane.test
shutdown_lifetime 1 seconds
pinger_enable off
http_access allow all
"""


def squid(scenario, changes):
    h.need("squid")
    backend, port = o.Web(), h.free_port()
    work = scenario.work / "squid"
    work.mkdir()
    work.chmod(0o777)   # it writes as the user proxy
    conf = work / "squid.conf"
    conf.write_text(SQUID.format(port=port, work=work))
    passes_on(scenario, changes, "squid", ["/usr/sbin/squid", "--foreground", "-f", str(conf)],
              port=port, backend=backend, prefix=f"http://127.0.0.1:{backend.port}")


TINYPROXY = """Listen 127.0.0.1
Port {port}
LogFile "{work}/tinyproxy.log"
LogLevel Warning
MaxClients 100
Timeout 90
DisableViaHeader Yes
"""


def tinyproxy(scenario, changes):
    """A thread, a connection in and a connection out for each request."""
    h.need("tinyproxy")
    backend, port = o.Web(), h.free_port()
    work = scenario.work / "tinyproxy"
    work.mkdir()
    conf = work / "tinyproxy.conf"
    conf.write_text(TINYPROXY.format(port=port, work=work))
    passes_on(scenario, changes, "tinyproxy", ["/usr/bin/tinyproxy", "-d", "-c", str(conf)],
              port=port, backend=backend, prefix=f"http://127.0.0.1:{backend.port}", keeps=False)


STUNNEL = """foreground = yes
pid =
[in]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{backend}
key = {key}
cert = {certificate}
"""


def stunnel(scenario, changes):
    """Terminates TLS; a thread for each client."""
    h.need("stunnel4", "openssl")
    backend, port = o.Web(), h.free_port()
    work = scenario.work / "stunnel"
    work.mkdir()
    key, certificate = make_certificate(work)
    conf = work / "stunnel.conf"
    conf.write_text(STUNNEL.format(port=port, backend=backend.port, key=key,
                                   certificate=certificate))
    passes_on(scenario, changes, "stunnel", ["stunnel4", str(conf)], port=port, backend=backend,
              certificate=certificate)


STORIES = {f.__name__: f for f in (
    haproxy_tcp, haproxy_http, apache, squid, tinyproxy, stunnel, d.replicas_of_redis, d.php,
    mail.postfix, d.haproxy_before_redis, d.nginx_before_apache, d.web_and_database,
    e.errors_by_name, e.errors_of_haproxy)}


def changes_of(scenario, number):
    """In a quick run two kinds per story, different ones in the next story."""
    if scenario.full or scenario.options.kinds:
        return scenario.options.kinds or KINDS, scenario.options.rounds or 5
    return [KINDS[(2 * number + i) % len(KINDS)] for i in range(2)], scenario.options.rounds or 1


def body(scenario):
    missing = []
    for number, (name, story) in enumerate(STORIES.items()):
        if name not in (scenario.options.servers or STORIES):
            continue
        try:
            story(scenario, changes_of(scenario, number))
            scenario.say(f"{name} is over")
        except h.CannotRun as cause:
            missing.append(str(cause))
        except h.Failure as failure:   # the other stories still run
            scenario.check(False, name, str(failure))
    if missing:
        raise h.CannotRun("; ".join(missing))


if __name__ == "__main__":
    h.run_scenario("stories", body,
                   kinds={"nargs": "*", "choices": KINDS, "help": "only these changes"},
                   servers={"nargs": "*", "choices": sorted(STORIES), "help": "only these servers"},
                   rounds={"type": int, "help": "of each change"})
