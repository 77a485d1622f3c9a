# SPDX-License-Identifier: Apache-2.0
"""Opens a Chrome trace in a real viewer (catapult's, as Debian ships it for Go) in a real Chromium.

Also a command, which makes a picture:  trace_viewer.py TRACE PICTURE [FROM:TO in ms [HEIGHT]]
"""

import contextlib
import gzip
import html
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import web_server

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "viewer_page.html"
WIDTH, HEIGHT = 1400, 220
# A page's budget is of its own time, which on a busy machine is over before the page is.
BUDGETS_MS = 30000, 120000, 480000
BLANK_BYTES_MAX = 5000
STATIC_FOLDERS = "/usr/share/go-*/src/cmd/trace/static"


def find_static():
    """The folder with the viewer, or None."""
    for folder in sorted(pathlib.Path("/").glob(STATIC_FOLDERS[1:])):
        if (folder / "trace_viewer_full.html").exists():
            return folder
    return None


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def read_trace(path):
    data = pathlib.Path(path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def serve_viewer(trace):
    """Serves the page, the viewer and the trace (bytes)."""
    static = find_static()
    files = {
        "/": (PAGE.read_bytes(), "text/html; charset=utf-8"),
        "/trace.json": (trace, "application/json"),
        "/static/trace_viewer_full.html": ((static / "trace_viewer_full.html").read_bytes(),
                                           "text/html; charset=utf-8"),
        "/static/webcomponents.min.js": ((static / "webcomponents.min.js").read_bytes(),
                                         "text/javascript"),
    }
    return web_server.serve(files.get)


def chromium_command(profile, height=HEIGHT):
    return [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--force-device-scale-factor=1",
            f"--user-data-dir={profile}", f"--window-size={WIDTH},{height}"]


def run_chromium(url, *options, height=HEIGHT, budget_ms=30000, seconds=120):
    with tempfile.TemporaryDirectory(prefix="gpuprof-viewer-") as profile:
        command = [*chromium_command(profile, height), f"--virtual-time-budget={budget_ms}",
                   *options, url]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)


@contextlib.contextmanager
def keep_chromium(url, *options):
    """A browser that shows the page, in real time, until the `with` ends."""
    with tempfile.TemporaryDirectory(prefix="gpuprof-viewer-",
                                     ignore_cleanup_errors=True) as profile:
        with subprocess.Popen([*chromium_command(profile), "--remote-debugging-port=0", *options,
                               url], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as browser:
            try:
                yield browser
            finally:
                os.killpg(browser.pid, signal.SIGKILL)


def open_trace(trace):
    """What the viewer's model holds after loading `trace` (bytes), as viewer_page.html says it."""
    for budget_ms in BUDGETS_MS:
        with serve_viewer(trace) as url:
            result = run_chromium(url, "--dump-dom", budget_ms=budget_ms)
        found = re.search(r'<pre id="model">(.*?)</pre>', result.stdout, re.DOTALL)
        if found:
            return json.loads(html.unescape(found[1]))
    raise RuntimeError(f"the page did not finish: {result.stderr[-2000:]}")


def take_picture(trace, picture, part="", height=HEIGHT):
    for budget_ms in BUDGETS_MS:
        with serve_viewer(trace) as url:
            run_chromium(f"{url}#{part}", f"--screenshot={picture}", height=height,
                         budget_ms=budget_ms)
        if pathlib.Path(picture).stat().st_size > BLANK_BYTES_MAX:
            return


if __name__ == "__main__":
    take_picture(read_trace(sys.argv[1]), *sys.argv[2:])
