#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node's page in a headless Chromium. Each state of a group, with answers that this scenario
serves itself, then a real group: healthy, a follower's page, drained, unsupervised, one replica
lost, not serving. Each state is checked for accessibility and has pictures: light, dark, and 400
px wide. With --keep the pictures remain.
"""
import json
import signal
import subprocess

import _accessibility
import _harness as h
from _browser import Browser
from _monitoring import ask, free_ports
from _page_states import STATES, Canned, ended, problems_of, replaying, replays, status
from checkpoints import control
from recovers import all_back
from takeover_run import kill_crane_run, start_again

# (name, width, dark)
VIEWS = (("light", 1180, False), ("dark", 1180, True), ("narrow", 400, False))
LEAST_WIDTH = 320    # to which WCAG expects a page to shrink
SHOWN = "document.title.includes(': ') && !document.title.startsWith('no answer')"
# The problem that the checker must report for each planted fault.
FAULTS = (
    ("document.documentElement.removeAttribute('lang')", "html has no lang"),
    ("document.querySelector('thead th').removeAttribute('scope')", "th without scope"),
    ("document.querySelector('tbody th').scope = ''", "a row without a header"),
    ("document.querySelector('.grid h2').outerHTML = '<h4>Clients</h4>'", "level 4 follows"),
    ("document.querySelector('dt').style.color = '#999'", "contrast"),
    ("document.querySelector('#pause').textContent = ''", "a control without a name"),
    ("document.querySelector('#said').outerHTML = '<h1>well</h1>'", "no live region"),
    ("document.querySelector('.wide').removeAttribute('tabindex')", "that no key reaches"),
    ("document.querySelector('dd').style.minWidth = '900px'", "scrolls sideways"),
    ("document.querySelector('main').append(document.createElement('img'))", "a picture without"),
)


def shown(browser, url, width=1180, dark=False):
    """Opens the page, and waits until it shows a state."""
    browser.resize(width)
    browser.prefer(dark=dark)
    browser.open("about:blank")
    browser.open(url, SHOWN)


def views(scenario, browser, name, show):
    """Checks and pictures of one state; show(width, dark) opens its page."""
    pairs, problems = {}, []
    for view, width, dark in VIEWS:
        show(width, dark)
        found, contrasts = _accessibility.checked(browser)
        problems += [f"{view}: {p}" for p in found + _accessibility.by_keyboard(browser)]
        pairs.update({f"{view}: {pair}": ratio for pair, ratio in contrasts.items()})
        file = scenario.work / f"page-{name}-{view}.png"
        browser.picture(file)
        if file.stat().st_size < 20_000:
            problems.append(f"{view}: an empty picture")
    browser.resize(LEAST_WIDTH)
    found, _ = _accessibility.checked(browser)
    problems += [f"{LEAST_WIDTH} px: {p}" for p in found]
    scenario.check(not problems, f"{name}: accessible in light and dark, and when narrow",
                   "\n  ".join(problems[:10]))
    return pairs


def text_of(browser, selector="body"):
    return browser.ask(f"document.querySelector({json.dumps(selector)}).innerText")


def kind_of(browser):
    return browser.ask("document.querySelector('#verdict').className")


def check_calm(scenario, browser, own, what):
    """The page had no error, and asked only its own node."""
    foreign = [url for url in browser.requested if not url.startswith((own, "data:", "about:"))]
    scenario.check(not browser.errors and not foreign,
                   f"{what}: no error, and nothing is loaded from elsewhere",
                   f"{browser.errors[:3]} {foreign[:3]}")
    browser.errors.clear()
    browser.requested.clear()


# --- canned answers

def states(scenario, browser, server):
    pairs = {}
    for name, (make, kind, words) in STATES.items():
        server.state = make()
        odd = problems_of(server.state, scenario.out)
        scenario.check(not odd, f"{name}: the answer is one of a node", "; ".join(odd[:5]))
        pairs.update(views(scenario, browser, name,
                           lambda width, dark: shown(browser, server.url, width, dark)))
        text, title = text_of(browser), browser.ask("document.title")
        missing = [word for word in words if word not in text]
        scenario.check(kind_of(browser) == kind and not missing
                       and title.startswith(server.state["verdict"]["health"]),
                       f"{name}: the verdict and the table say so in words",
                       f"{kind_of(browser)}, title {title}, without {missing}")
    least = sorted(pairs.items(), key=lambda pair: pair[1])[:3]
    scenario.say(f"{len(pairs)} pairs of colours, the least contrasts: {least}")
    check_calm(scenario, browser, server.url, "canned answers")


def updates(scenario, browser, server):
    """The page changes in place."""
    server.state = status()
    shown(browser, server.url)
    browser.ask("document.querySelectorAll('#replicas a')[1].focus()")
    server.state = replaying()
    browser.wait("document.querySelector('[role=progressbar]') !== null")
    scenario.check(browser.ask("document.activeElement.textContent") == "replica 1"
                   and browser.ask("document.querySelector('#said').ariaLive") == "polite",
                   "an update keeps the focus, and a new verdict is announced")
    bar = browser.ask("""(() => {
      const bar = document.querySelector("[role=progressbar]");
      return [bar.ariaLabel, bar.ariaValueNow, bar.ariaValueText, bar.firstChild.style.width];
    })()""")
    scenario.check(bar == ["replica 2 recovers", "51", "51 %, 3 s left", "51%"],
                   "a bar has its percentage and the time left", str(bar))
    further = json.loads(json.dumps(replaying()).replace("12,400", "18,200"))
    further["peers"][1]["readiness"] = replays(18_200, 24_272, 4_000, 1_500)
    server.state = further
    browser.wait("document.querySelector('[role=progressbar]').ariaValueNow === '74'")
    scenario.check(browser.ask("document.querySelector('#said').ariaLive") == "off",
                   "a step of a number is not announced")
    server.state = ended()
    server.state["readiness"].update(runs=True, why_not="<i id=planted>tag</i>")
    browser.wait("document.body.innerText.includes('<i id=planted>')")
    scenario.check(browser.ask("document.querySelector('#planted') === null"),
                   "text of an answer is shown as text")
    for name in ("Paused: resume updates", "Pause updates"):
        browser.ask("document.querySelector('#pause').focus()")
        browser.press(" ")
        scenario.check(text_of(browser, "#pause") == name, f"a key leads to: {name}")
    server.state = status()
    browser.wait("document.querySelector('#verdict').className === 'good'")


def silent(scenario, browser, server):
    server.state = status()
    shown(browser, server.url)
    server.state = None
    browser.wait("document.title.startsWith('no answer')")

    def show(width, dark):
        browser.resize(width)
        browser.prefer(dark=dark)
    views(scenario, browser, "no-answer", show)
    links = browser.ask("[...document.querySelectorAll('#why a')].map(a => a.textContent)")
    scenario.check(kind_of(browser) == "bad" and links == ["replica 1", "replica 2"]
                   and "ready to lead" in text_of(browser, "#replicas"),
                   "a node that does not answer: the page links to the others", str(links))
    browser.errors.clear()


def faults_are_found(scenario, browser, server):
    server.state = status()
    for script, words in FAULTS:
        shown(browser, server.url, width=400)
        browser.ask(f"{{ {script}; }}; 0")
        found, _ = _accessibility.checked(browser)
        scenario.check(any(words in one for one in found), f"the checks find: {words}", str(found))


def canned(scenario, browser):
    with Canned() as server:
        states(scenario, browser, server)
        updates(scenario, browser, server)
        silent(scenario, browser, server)
        faults_are_found(scenario, browser, server)


# --- a real group

def samples(port):
    return len(json.loads(ask(port, "/history")[1])["samples"]["unix_ms"])


def waits(browser, kind, words, where="body"):
    """Waits until the page has a verdict of this kind, and the words at this place."""
    browser.wait(f"document.querySelector('#verdict')?.className === '{kind}' && "
                 f"document.querySelector('{where}').innerText.includes({json.dumps(words)})", 60)


def pictures(scenario, browser, name, port, kind, words, where="body"):
    def show(width, dark):
        shown(browser, f"http://127.0.0.1:{port}/", width, dark)
        waits(browser, kind, words, where)
    views(scenario, browser, "real-" + name, show)
    scenario.check(True, f"real group, {name}: {words}")


def well(scenario, browser, group, first):
    leader = group.leader()
    other, serving = (leader + 1) % 3, "serving, 3 of 3, fault tolerant"
    pictures(scenario, browser, "healthy", first + leader, "good", serving, "#text")
    curves = browser.ask("[...document.querySelectorAll('.curve')].map(c => c.getAttribute('d'))")
    scenario.check(len(curves) == 7 and sum("L" in c for c in curves) >= 4,
                   "its plots have curves", f"{len(curves)}: {curves}")
    browser.wait("[...document.querySelectorAll('#replicas tr')].map(r => "
                 "r.innerText.match(/serves the clients|ready to lead/)?.[0]).sort().join() === "
                 "'ready to lead,ready to lead,serves the clients'", 60)
    # On a busy machine the lead may move by itself.
    h.wait_until(lambda: "serves the clients" in text_of(
        browser, f"#replicas tr:nth-child({group.leader() + 1})"), 60,
        "the table's leader is the group's")
    scenario.check(True, "its table has all replicas")
    facts = text_of(browser, "#own")
    scenario.check("free of" in facts and "runs for" in facts and "version" in facts,
                   "free space, version and running time are shown", facts)
    browser.wait("document.querySelector('#nodes').innerText.split('free of').length === 4", 60)
    scenario.check(True, "free space of each replica's node is shown")
    check_calm(scenario, browser, f"http://127.0.0.1:{first + leader}/", "a leader's page")
    pictures(scenario, browser, "follower", first + other, "good", serving, "#text")

    def links_to_leader():
        leader = group.leader()
        shown(browser, f"http://127.0.0.1:{first + (leader + 1) % 3}/")
        return browser.ask("document.querySelector('#seen a')?.href") \
            == f"http://127.0.0.1:{first + leader}/"
    h.wait_until(links_to_leader, 60, "a follower's page links to the leader")
    scenario.check(True, "a follower's page shows the group's verdict and links to the leader")


def is_drained(scenario, browser, group, first):
    leader = group.leader()
    victim = str((leader + 1) % 3)
    said, text = control(group, "replica", "drain", victim, group.name)
    scenario.check(said == 0, "a follower is drained", text)
    pictures(scenario, browser, "drained", first + leader, "warn",
             "drained: waits for crane-ctl replica resume", "#replicas")
    other = next(n for n in range(3) if n not in (leader, int(victim)))
    shown(browser, f"http://127.0.0.1:{first + other}/")
    waits(browser, "warn", "drained: waits for crane-ctl replica resume", "#replicas")
    scenario.check("is drained" in text_of(browser, "#verdict"),
                   "a follower's page says that it is drained, too", text_of(browser, "#verdict"))
    # A node that begins now learns it from the others.
    before = group.status(other)["pid"]
    group.signal_node(other, signal.SIGKILL)
    h.wait_until(lambda: (group.status(other) or {"pid": before})["pid"] != before, 60,
                 "the follower's node begins again")
    shown(browser, f"http://127.0.0.1:{first + other}/")
    waits(browser, "warn", "drained: waits for crane-ctl replica resume", "#replicas")
    scenario.check(f"replica {victim}, drained" in text_of(browser, "#events"),
                   "the events say so, with their times", text_of(browser, "#events"))
    said, text = control(group, "replica", "resume", victim, group.name)
    scenario.check(said == 0, "and resumed", text)
    all_back(group)


def without_crane_run(scenario, browser, group, first):
    """Lost replicas do not return until there is a crane-run again."""
    leader = group.leader()
    port = first + leader
    kill_crane_run(group)
    pictures(scenario, browser, "unsupervised", port, "warn", "no crane-run restarts it",
             "#replicas")
    group.signal_node((leader + 1) % 3, signal.SIGKILL)
    pictures(scenario, browser, "one-lost", port, "warn", "lost", "#replicas")
    group.signal_node((leader + 2) % 3, signal.SIGKILL)
    pictures(scenario, browser, "not-serving", port, "bad", "NOT SERVING", "#verdict")
    start_again(group)
    all_back(group)
    shown(browser, f"http://127.0.0.1:{first + group.leader()}/")
    waits(browser, "good", "serving, 3 of 3, fault tolerant")
    scenario.check(True, "with crane-run the group is well again")
    group.remember(group.state())


def real(scenario, browser):
    h.need("redis-server", "redis-benchmark")
    port, first = h.free_port(), free_ports(3)
    with h.Group(scenario, h.redis_program(port), port=port,
                 options=["--http", str(first)]) as group:
        load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-c", "4", "-n", "100000000",
                                 "-q", "-t", "set"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            h.wait_until(lambda: samples(first + group.leader()) >= 3, 60, "some samples exist")
            well(scenario, browser, group, first)
        finally:
            load.terminate()
            load.wait()
        is_drained(scenario, browser, group, first)
        without_crane_run(scenario, browser, group, first)


def body(scenario):
    for part in (canned, real):
        with Browser() as browser:
            part(scenario, browser)


if __name__ == "__main__":
    h.run_scenario("page", body)
