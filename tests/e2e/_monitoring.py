# SPDX-License-Identifier: Apache-2.0
"""Tools that watch groups: HTTP requests to nodes, and Debian's Prometheus."""
import contextlib
import json
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import _harness as h

MONITORING = h.ROOT / "runtime/packaging/monitoring"
ALERTS = MONITORING / "crane-alerts.yml"
RULE_TESTS = h.ROOT / "tests/monitoring"
# Where the metrics in the rules come from.
METRICS = ("proxy/host/http/metrics.cc", "runtime/packaging/backup/crane-backup")
OF_THE_MACHINE = {"CraneDiskFilling", "CraneNoCheckpoints"}


def ask(port, path, address="127.0.0.1", method="GET"):
    """Returns (status, text, headers); status None: no answer."""
    request = urllib.request.Request(f"http://{address}:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode(), answer.headers
    except OSError as error:
        return None, str(error), {}


def said(port, path):
    return ask(port, path)[0]


def free_ports(count):
    """The first of `count` free ports in a row."""
    while True:
        first = h.free_port()
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(bound(port))
                return first
            except OSError:
                continue


@contextlib.contextmanager
def bound(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port))
        yield s


def promtool(*words, text=""):
    done = subprocess.run(["promtool", *words], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode == 0, done.stdout


class Prometheus:
    """Polls `targets` (addresses with ports) once a second, with the rules that Crane ships."""

    def __init__(self, scenario, targets):
        self.port, self.home = h.free_port(), scenario.work / "prometheus"
        self.home.mkdir()
        self.log = self.home / "log"
        (self.home / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "crane", "static_configs": [{"targets": targets}]}],
            "rule_files": [str(ALERTS)]}))

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.home / 'prometheus.yml'}",
                 f"--storage.tsdb.path={self.home / 'data'}",
                 f"--web.listen-address=127.0.0.1:{self.port}"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        h.wait_until(lambda: said(self.port, "/-/ready") == 200, 60, "Prometheus is ready")
        return self

    def query(self, expression):
        """{labels as a sorted tuple: value} of the expression's present value."""
        _, text, _ = ask(self.port, "/api/v1/query?" +
                         urllib.parse.urlencode({"query": expression}))
        answer = json.loads(text)
        if answer["status"] != "success":
            raise h.Failure(f"{expression}: {text}")
        return {tuple(sorted(one["metric"].items())): float(one["value"][1])
                for one in answer["data"]["result"]}

    def value(self, expression):
        """The one value, or None."""
        values = list(self.query(expression).values())
        return values[0] if len(values) == 1 else None

    def alerts(self, state="firing|pending"):
        """Alerts about the group; this machine's full disk or lack of a CRIU is not its fault."""
        found = self.query(f'ALERTS{{alertstate=~"{state}"}}')
        return {dict(labels)["alertname"] for labels in found} - OF_THE_MACHINE

    def __exit__(self, kind, error, trace):
        if kind is not None:
            with contextlib.suppress(OSError, ValueError, h.Failure):
                print(f"--- alerts\n{self.query('ALERTS')}", flush=True)
            print(f"--- prometheus\n{h.tail(self.log)}", flush=True)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return False


def names_hold(scenario):
    """The rules use only metrics that exist, and each alert occurs in a test."""
    rules = "".join(re.findall(r"^ +expr: (.*?)^ +(?:for|labels):", ALERTS.read_text(),
                               re.M | re.S))
    used = set(re.findall(r"\b(?:crane|process)_[a-z_]+", rules))
    there = "".join((h.ROOT / path).read_text() for path in METRICS)
    unknown = sorted(name for name in used if not re.search(rf"\b{name}\b", there))
    scenario.check(used and not unknown, "the alert rules use metrics that exist", str(unknown))
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    tests = "".join(path.read_text() for path in sorted(RULE_TESTS.glob("*_test.yml")))
    untested = [name for name in alerts if name not in tests]
    scenario.check(alerts and not untested, "each alert occurs in a test", str(untested))


def rules_hold(scenario):
    good, text = promtool("check", "rules", str(ALERTS))
    scenario.check(good, "promtool check rules: the alert rules", text)
    for path in sorted(RULE_TESTS.glob("*_test.yml")):
        good, text = promtool("test", "rules", str(path))
        scenario.check(good, f"promtool test rules: alerts fire where they must, and only there: "
                       f"{path.name}", text)
    names_hold(scenario)
