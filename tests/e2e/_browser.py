# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that a scenario steers: DevTools messages over a pipe, no other package."""
import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import _harness as h

ANSWER_SECONDS = 60
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu",
           "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe"]


class Browser:
    """One Chromium with one tab. As a context manager, ends it and removes its profile."""

    def __init__(self):
        h.need("chromium")
        # Chromium expects requests at descriptor 3 and writes answers to 4.
        requests, self.requests = self.pipe()
        self.answers, answers = self.pipe()

        def place():
            os.dup2(requests, 3)
            os.dup2(answers, 4)
        self.home = tempfile.mkdtemp(prefix="crane-browser-")
        self.process = subprocess.Popen(
            ["chromium", *OPTIONS, f"--user-data-dir={self.home}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=place, close_fds=False)
        os.close(requests)
        os.close(answers)
        self.number, self.read, self.session = 0, b"", None
        self.errors, self.requested = [], []   # of the pages so far
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.do("Target.attachToTarget", targetId=target,
                               flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    @staticmethod
    def pipe():
        """A pipe whose descriptors are none of those that Chromium expects."""
        ends = os.pipe()
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends]
        for fd in ends:
            os.close(fd)
        return moved

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(h.Failure, OSError):
            self.session = None
            self.do("Browser.close")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for fd in (self.requests, self.answers):
            os.close(fd)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self):
        """The next message of Chromium."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self.read:
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.answers], [], [], left)[0]:
                raise h.Failure(f"chromium: no answer within {ANSWER_SECONDS} s")
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise h.Failure("chromium ended")
            self.read += got
        text, self.read = self.read.split(b"\0", 1)
        return json.loads(text)

    def do(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.requests, json.dumps(request).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") != self.number:
                self.note(got.get("method"), got.get("params", {}))
            elif "error" in got:
                raise h.Failure(f"chromium: {method}: {got['error']['message']}")
            else:
                return got["result"]

    def note(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["source"] == "security":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])

    # --- a page

    def resize(self, width, height=900):
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height,
                deviceScaleFactor=1, mobile=False)

    def prefer(self, dark=False, calm=True):
        """Sets the user's preferences: colours, and reduced motion."""
        self.do("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}])

    def open(self, url, until="document.readyState === 'complete'"):
        """Opens the page; waits until the expression is true there."""
        self.do("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && ({until})")

    def ask(self, script):
        """The value of a JavaScript expression in the page."""
        got = self.do("Runtime.evaluate", expression=script, returnByValue=True,
                      awaitPromise=True)
        if "exceptionDetails" in got:
            raise h.Failure(f"{script[:200]}: {got['result'].get('description')}")
        return got["result"].get("value")

    def wait(self, script, seconds=30):
        def holds():
            try:
                return self.ask(script)
            except h.Failure as failure:
                if "context" in str(failure):   # of the page before, while another one is loaded
                    return False
                raise
        return h.wait_until(holds, seconds, f"the page: {script}")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                    windowsVirtualKeyCode={"Tab": 9, "Enter": 13, " ": 32}[key])

    def picture(self, file):
        """The whole page as a PNG file; resizes the window to it."""
        width, height = self.ask("[innerWidth, document.documentElement.scrollHeight]")
        self.resize(width, height)
        shot = self.do("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))
