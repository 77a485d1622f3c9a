# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a window, driven over a pipe as its own developer tools drive it.

Also a command, which makes a picture of a page:
  browser.py PAGE PICTURE [WIDTH HEIGHT [dark|light [SCRIPT]]]
"""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

import trace_viewer

SECONDS_MAX = 100  # until the browser must have answered
TO_BROWSER, FROM_BROWSER = 3, 4


class Browser:
    """One page of one browser. What it has told unasked lies in `events`."""

    def __init__(self, profile):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        command = [trace_viewer.find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                   "--disable-background-networking", "--force-device-scale-factor=1",
                   "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]

        def place_ends():
            ends = os.dup(to_read), os.dup(to_write)
            os.dup2(ends[0], TO_BROWSER)
            os.dup2(ends[1], FROM_BROWSER)

        self.program = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=place_ends, start_new_session=True,
            pass_fds=(TO_BROWSER, FROM_BROWSER))
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.events, self.rest, self.session = itertools.count(1), [], b"", None
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target,
                                flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def receive(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            data = data[os.write(self.write_end, data):]
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page, which may be a promise."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, url, until="document.readyState === 'complete'"):
        failure = self.ask("Page.navigate", url=url).get("errorText")
        if failure:
            raise OSError(f"{url}: {failure}")
        self.wait(f"location.href === {json.dumps(url)} && {until}")

    def wait(self, condition):
        deadline = time.monotonic() + SECONDS_MAX
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(condition)
            time.sleep(.01)

    def look_like(self, width=1280, height=900, scheme="light", media="screen"):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", media=media,
                 features=[{"name": "prefers-color-scheme", "value": scheme},
                           {"name": "prefers-reduced-motion", "value": "reduce"}])

    def press(self, *keys):
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                text = {"Enter": "\r"}.get(key, "") if kind == "keyDown" else ""
                code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38,
                        "ArrowRight": 39, "ArrowDown": 40}[key]
                self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text,
                         windowsVirtualKeyCode=code)

    def picture(self, path):
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shot = self.ask("Page.captureScreenshot", format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """What was said on the console, by the page or by the browser."""
        return [event for event in self.events
                if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown",
                                           "Log.entryAdded")]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def end(self):
        os.close(self.write_end)  # without anybody to talk to, it ends
        os.close(self.read_end)
        try:
            self.program.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.program.pid, 9)
            self.program.wait()


@contextlib.contextmanager
def browser():
    with tempfile.TemporaryDirectory(prefix="gpuprof-browser-",
                                     ignore_cleanup_errors=True) as profile:
        found = Browser(profile)
        try:
            yield found
        finally:
            found.end()


DRAWN = "(document.documentElement || {dataset: {}}).dataset.drawn === 'all'"

if __name__ == "__main__":
    PAGE, PICTURE, WIDTH, HEIGHT, SCHEME, SCRIPT = [
        *sys.argv[1:], *("", "", "1280", "900", "light", "0")[len(sys.argv) - 1:]]
    with browser() as B:
        B.look_like(int(WIDTH), int(HEIGHT), SCHEME)
        try:
            B.open(pathlib.Path(PAGE).resolve().as_uri(), DRAWN)
        except OSError as reason:
            sys.exit(f"browser.py: {reason}")
        B.run(SCRIPT)
        B.picture(PICTURE)
        for event in B.complaints():
            print(event)
