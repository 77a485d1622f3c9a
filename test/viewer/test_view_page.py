# SPDX-License-Identifier: Apache-2.0
"""The pages of `gpuprof view` in a real Chromium: the trace gets to Perfetto, by Perfetto's own
messages, and to nobody else; without a network they say so. Perfetto is stood in for by a page that
the browser finds under its name."""

import contextlib
import hashlib
import html
import json
import re
import shutil
import ssl
import subprocess
import time

import conftest
import pytest

import browser
import trace_viewer
import web_server

pytestmark = pytest.mark.skipif(
    not (trace_viewer.find_chromium() and shutil.which("openssl")),
    reason="not run: no chromium or no openssl; ./scripts/check installs them")

# As ui.perfetto.dev does: deaf at first, then PONG to each PING, then the trace.
STAND_IN = """<!DOCTYPE html><script>
setTimeout(() => addEventListener("message", async (event) => {
  if (event.data === "PING") {
    opener.postMessage("PONG", "*");
    opener.postMessage("PONG", "*");
    return;
  }
  const given = event.data.perfetto;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", given.buffer));
  fetch("/got", {method: "POST", body: JSON.stringify({
    hash: Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join(""),
    title: given.title, fileName: given.fileName, from: event.origin,
    referrer: document.referrer})});
}), 700);
</script>"""


@pytest.fixture
def perfetto(tmp_path):
    """What the stand-in was given, and the options by which the browser finds it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                    "-subj", "/CN=ui.perfetto.dev"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    got = []
    files = {"/": (STAND_IN.encode(), "text/html; charset=utf-8")}
    with web_server.serve(files.get, lambda data: got.append(json.loads(data)), tls) as address:
        place = re.fullmatch(r"https://(.*)/", address)[1]
        yield got, [f"--host-resolver-rules=MAP ui.perfetto.dev:443 {place}",
                    "--ignore-certificate-errors", "--disable-popup-blocking"]


@contextlib.contextmanager
def viewing(collector, folder):
    with conftest.Program([collector, "view", folder], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield process.stdout.readline().strip()
        process.terminate()


def look(address, *options, budget_ms=60000):
    done = trace_viewer.run_chromium(address, "--dump-dom", "--enable-logging=stderr", "--v=0",
                                     *options, budget_ms=budget_ms)
    assert "CONSOLE" not in done.stderr, done.stderr
    return html.unescape(done.stdout)


def test_the_trace_gets_to_perfetto(collector, run_collector, make_gpu, perfetto):
    folder = make_gpu("train", 1, 3)
    trace = run_collector("merge", "-o", "-", folder).stdout.encode()
    got, options = perfetto
    with viewing(collector, folder) as address:
        with trace_viewer.keep_chromium(f"{address}#perfetto", *options):
            deadline = time.monotonic() + 100
            while not got and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.5)  # a second PONG gets nothing
    assert got == [{"hash": hashlib.sha256(trace).hexdigest(), "title": str(folder),
                    "fileName": "gpuprof-trace.json", "from": address.rsplit("/", 2)[0],
                    "referrer": ""}]


def test_without_a_network(collector, make_gpu):
    with viewing(collector, make_gpu("train", 1, 1)) as address:
        page = look(f"{address}#perfetto", "--disable-popup-blocking",
                    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", budget_ms=90000)
    assert "Perfetto did not answer." in page and 'href="trace.json"' in page


def test_a_window_that_the_browser_does_not_open(collector, make_gpu):
    with viewing(collector, make_gpu("train", 1, 1)) as address:
        page = look(f"{address}#perfetto")
    assert "The browser blocked the new window." in page
    assert re.search(r'<button type="button" id="open">', page)


def test_a_click_opens_the_window(collector, make_gpu):
    """The browser blocks no window that opens in the click."""
    with viewing(collector, make_gpu("train", 1, 1)) as address, browser.browser() as chromium:
        chromium.open(address)
        x, y = chromium.run("""(() => {
          const r = document.getElementById("open").getBoundingClientRect();
          return [r.left + 9, r.top + 9]; })()""")
        for kind in ("mousePressed", "mouseReleased"):
            chromium.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                         clickCount=1)
        chromium.wait("document.getElementById('state').textContent.startsWith('Loading')")


def test_the_report(collector, make_gpu):
    """Its own policy and the server's together let its script and its style work."""
    with viewing(collector, make_gpu("train", 1, 3)) as address:
        page = look(f"{address}page.html")
    main = page.partition("<main")[2]
    assert "kernel_number" in main.replace("<wbr>", "") and main.count("<h2") > 3


def test_first_page(collector, make_gpu):
    folder = make_gpu("train", 1, 1)
    with viewing(collector, folder) as address:
        page = look(address)
        assert str(folder) in page and 'href="page.html"' in page
        trace_viewer.run_chromium(address, f"--screenshot={folder}/first.png", height=400)
        assert (folder / "first.png").stat().st_size > 5000
