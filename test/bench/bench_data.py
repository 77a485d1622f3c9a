# SPDX-License-Identifier: Apache-2.0
"""bench.py: bytes on disk, and how fast the collector reads and writes them."""

import glob
import os
import re
import shutil
import statistics
import subprocess
import time

from bench_run import (BUILD, COLLECTOR, MIX, WORK, bytes_below, drop_output, measured, not_run,
                       program, quartiles, run, tell)


def bench_bytes():
    encode = program("encode_mix")
    results = [dict(zip(line[0][::2], map(float, line[0][1::2])))
               for line in (run([encode, MIX, "500000"]) for _ in range(3))]
    tell("bytes.encoder", results[0]["bytes"], "B/call", 4, 6)
    tell("encoder.cpu", statistics.median(r["encode"] for r in results), "ns/event")
    tell("encoder.zstd", statistics.median(r["compress"] for r in results), "ns/event")
    calls = int(run([program("replay_mix"), MIX, "8"], True)[0][1])
    tell("bytes.library", drop_output() / calls, "B/call", 4, 6)


def bench_sort():
    """Blocks whose records come out of order, beside one that is in order, in turns."""
    for name, _, ratio, _, _ in run([program("sort_cost"), "300"]):
        if name != "sorted":
            tell(f"encoder.{name}", float(ratio), "x sorted", 1.5)


def bench_gpu():
    """Our share of what the GPU's rows cost: CUPTI is not there."""
    settings = {"GPUPROF_OUT": os.path.join(WORK, "out"), "GPUPROF_BUFFER": "2G",
                "GPUPROF_WAIT": "60s"}
    results = []
    for _ in range(5):
        lines = run([program("gpu_cost"), "1000000"], **settings)
        results.append({line[0]: float(line[1]) for line in lines})
        drop_output()
    for name in ("callback", "seen"):
        values = [r[name] for r in results]
        tell(f"gpu.{name}", statistics.median(values), "ns/call", spread=quartiles(values))
    values = [1e3 / r["parse"] for r in results]
    tell("gpu.parse", statistics.median(values), "M records/s", 10, at_least=True,
         spread=quartiles(values))
    pairs = run([program("encode_mix"), MIX, "500000", "kernels"])[0]
    tell("gpu.bytes", float(pairs[1]), "B/launch+kernel", 8, 10)


def recording(calls):
    folder = os.path.join(WORK, f"recording-{calls}")
    os.makedirs(folder, exist_ok=True)
    stream = os.path.join(folder, "bench.4242.1000-62656e63.gpuprof")
    run([program("encode_mix"), MIX, str(calls), stream])
    return folder


def uftrace_dump():
    """Calls per second of `uftrace dump --chrome`, on a recording of its own."""
    if not shutil.which("uftrace"):
        return None
    data = os.path.join(WORK, "uftrace-dump")
    run(["uftrace", "record", "--no-event", "-d", data, program("call_cost_pg"), "sync", "1",
         "400000", "2"])
    size = bytes_below(data, lambda name: re.fullmatch(r"\d+\.dat", name))
    calls = size / 32  # two records of 16 bytes a call
    rates = []
    for _ in range(3):
        _, cpu, _, code, error = measured(["uftrace", "dump", "--chrome", "-d", data])
        if code:
            raise RuntimeError(error)
        rates.append(calls / cpu)
    shutil.rmtree(data, ignore_errors=True)
    return rates


def writing_alone(size):
    """CPU seconds that it takes to write `size` bytes of nothing into a file where ours goes."""
    block = memoryview(bytes(1 << 20))
    file = os.open(WORK, os.O_TMPFILE | os.O_WRONLY, 0o600)
    begin = time.process_time()
    while size > 0:
        size -= os.write(file, block[:size])
    seconds = time.process_time() - begin
    os.close(file)
    return seconds


def bench_devices():
    """Launches and their kernels, each with an arrow between them: a call, a slice and two ends."""
    calls = 1000000
    for count in (100000, calls):
        folder = os.path.join(WORK, f"gpu-{count}")
        os.makedirs(folder)
        run([os.path.join(BUILD, "make_gpu"), folder, "bench", str(count)])
        commands = {"merge": ["merge", "-o", "-"], "report": ["report"],
                    "kernels": ["report", "--table=cuda_gpu_kern_sum"],
                    "functions": ["report", "--table=functions"]}
        results = {name: [] for name in commands}
        for _ in range(5 if count == calls else 1):
            for name, command in commands.items():
                _, cpu, peak, code, error = measured([COLLECTOR, *command, folder])
                if code != 0:
                    raise RuntimeError(error)
                results[name].append((2 * count / cpu / 1e6, peak / 1024))
        shutil.rmtree(folder)
        for verb, list_of in results.items():
            rates = [rate for rate, _ in list_of]
            if count == calls:
                tell(f"collector.gpu.{verb}", statistics.median(rates), "M events/CPU s",
                     spread=quartiles(rates))
            tell(f"collector.gpu.{verb}.memory.{count}", max(peak for _, peak in list_of),
                 "MiB peak")


OUTPUT_CALLS = (50000, 500000, 5000000)  # the middle one is timed


def output_of(ending, calls, folder, processors):
    """What `measured` says of one output, and its size."""
    verb = {"sqlite": "export", "csv": "export", "jsonl": "export",
            "report": "report"}.get(ending, "merge")
    path = os.path.join(WORK, f"out.{calls}.{ending}")
    to = ["--format=json"] if verb == "report" else ["-o", path]
    done = measured([COLLECTOR, verb, f"-j{processors}", folder, *to])
    if done[3]:
        raise RuntimeError(done[4])
    size = 0
    if verb != "report":
        size = os.path.getsize(path)
        os.unlink(path)
    return done, size


def bench_outputs():
    """The same launches and kernels in each form: CPU and wall, on one processor and on two, and
    the memory at 1, 10 and 100 times as many."""
    folders = {}
    for calls in OUTPUT_CALLS:
        folders[calls] = os.path.join(WORK, f"outputs-{calls}")
        os.makedirs(folders[calls])
        run([os.path.join(BUILD, "make_gpu"), folders[calls], "bench", str(calls)])
    calls, json_size = OUTPUT_CALLS[1], None
    for ending in ("json", "json.gz", "json.zst", "pftrace", "sqlite", "csv", "jsonl", "report"):
        for processors in (1, 2):
            name = f"outputs.{ending}.j{processors}"
            runs = [output_of(ending, calls, folders[calls], processors) for _ in range(5)]
            size = runs[0][1]
            rates = [2 * calls / done[0] / 1e6 for done, _ in runs]
            cpu = statistics.median(done[1] for done, _ in runs)
            tell(f"{name}.wall", statistics.median(rates), "M events/s", spread=quartiles(rates))
            tell(f"{name}.cpu", 2 * calls / cpu / 1e6, "M events/CPU s")
            if size:
                tell(f"{name}.MB", size / cpu / 1e6, "MB/CPU s")
            tell(f"{name}.memory", max(done[2] for done, _ in runs) / 1024, "MiB peak")
        json_size = json_size or size
        if size:
            tell(f"outputs.{ending}.size", size / json_size, "x JSON")
        for count, folder in folders.items():
            if count != calls:
                done, _ = output_of(ending, count, folder, 1)
                tell(f"outputs.{ending}.j1.memory.{count}", done[2] / 1024, "MiB peak")
    for folder in folders.values():
        shutil.rmtree(folder)


def bench_ranks():
    """A folder of eight ranks that record at the same time: what -j2 makes of it."""
    calls, ranks = 100000, 8
    folder, out = os.path.join(WORK, "ranks"), os.path.join(WORK, "of-ranks")
    os.makedirs(folder)
    run([os.path.join(BUILD, "make_gpu"), folder, "bench", str(calls), str(ranks)])
    for name, command in (("per-rank", ["merge", "--per-rank", "-o", out]),
                          ("csv", ["export", "-o", out + ".csv"]),
                          ("csv.gz", ["export", "-o", out + ".csv.gz"]),
                          ("kernels", ["report", "--table=cuda_gpu_kern_sum"]),
                          ("report", ["report"]), ("json", ["merge", "-o", out + ".json"])):
        runs = {"j1": [], "j2": []}
        for _ in range(5):
            for jobs, list_of in runs.items():
                seconds, _, _, code, error = measured([COLLECTOR, *command, f"-{jobs}", folder])
                if code:
                    raise RuntimeError(error)
                list_of.append(seconds)
                shutil.rmtree(out, ignore_errors=True)
                for path in glob.glob(out + ".*"):
                    os.unlink(path)
        for jobs, list_of in runs.items():
            rates = [2 * ranks * calls / seconds / 1e6 for seconds in list_of]
            tell(f"ranks.{name}.{jobs}.wall", statistics.median(rates), "M events/s",
                 spread=quartiles(rates))
        tell(f"ranks.{name}.speedup", statistics.median(runs["j1"]) / statistics.median(runs["j2"]),
             "x", *([] if name == "json" else [1.8]), at_least=True)
    shutil.rmtree(folder)


def bench_questions():
    """CPU time of a first report, which keeps what it found, over one that does not; and of what is
    asked next, over the first: the report again, tables of all, tables of a hundredth of it."""
    calls, ranks = 500000, 4
    folder = os.path.join(WORK, "questions")
    os.makedirs(folder)
    run([os.path.join(BUILD, "make_gpu"), folder, "bench", str(calls), str(ranks)])
    kinds = {"without": ["--no-index"], "report": [], "again": [],
             "table": ["--table=idle,findings,cuda_gpu_kern_sum"],
             "piece": ["--table=cuda_gpu_kern_sum,functions", "--from=1", "--to=1.025"],
             "window": ["--from=1", "--to=1.025"],
             "window.idle": ["--table=idle", "--from=1", "--to=1.025"],
             "window.json": ["--format=json", "--from=1", "--to=1.025"]}
    cpu = {kind: [] for kind in kinds}
    for _ in range(5):
        for kept in glob.glob(os.path.join(folder, ".gpuprof-*")):
            os.remove(kept)
        for kind, words in kinds.items():
            _, seconds, _, code, error = measured([COLLECTOR, "report", "-j1", *words, folder])
            if code:
                raise RuntimeError(error)
            cpu[kind].append(seconds)
    first = statistics.median(cpu["report"])
    tell("questions.report", 2 * calls * ranks / first / 1e6, "M events/CPU s")
    tell("questions.kept", first / statistics.median(cpu["without"]), "x --no-index")
    tell("questions.again", statistics.median(cpu["again"]) / first, "x report", 0.15)
    tell("questions.table", statistics.median(cpu["table"]) / first, "x report", 0.15)
    for kind in ("piece", "window", "window.idle", "window.json"):
        tell(f"questions.{kind}", statistics.median(cpu[kind]) / first, "x report", 0.05)
    shutil.rmtree(folder)


def bench_collector():
    calls = 2000000
    folder = recording(calls)
    out = os.path.join(WORK, "trace.json")
    rates, sizes, floors = {"-": [], out: []}, [], []
    for _ in range(9):
        for target, list_of in rates.items():
            seconds, cpu, _, code, error = measured([COLLECTOR, "merge", folder, "-o", target])
            if code != 0:
                not_run("collector.merge", f"exit code {code}: {error}")
                return
            list_of.append((calls / cpu, calls / seconds))
            if target == out:
                size = os.path.getsize(out)
                os.unlink(out)
                sizes.append(size / seconds / 1e6)
                floors.append(calls / writing_alone(size))
    cpu = [r[0] for r in rates["-"]]
    tell("collector.null", statistics.median(cpu) / 1e6, "M calls/CPU s", 5, at_least=True,
         spread=[x / 1e6 for x in quartiles(cpu)])
    cpu = [r[0] for r in rates[out]]
    tell("collector.tmpfs", statistics.median(cpu) / 1e6, "M calls/CPU s", 5, at_least=True,
         spread=[x / 1e6 for x in quartiles(cpu)])
    tell("collector.tmpfs.floor", statistics.median(floors) / 1e6, "M calls/CPU s",
         spread=[x / 1e6 for x in quartiles(floors)])
    tell("collector.tmpfs.MB", statistics.median(sizes), "MB/s of JSON")
    peer = uftrace_dump()
    if peer:
        tell("peer.uftrace.dump", statistics.median(peer) / 1e6, "M calls/CPU s",
             spread=[x / 1e6 for x in quartiles(peer)])
    else:
        not_run("peer.uftrace.dump", "uftrace is not installed")
    shutil.rmtree(folder)
    for count in (30000, 300000, 3000000):
        folder = recording(count)
        peak = measured([COLLECTOR, "merge", folder, "-o", "-"])[2]
        tell(f"collector.memory.{count}", peak / 1024, "MiB peak")
        shutil.rmtree(folder)


def code_of(binary):
    """Where the code of an ELF file begins, and its size, in hexadecimal digits."""
    sections = subprocess.run(["readelf", "-SW", binary], check=True, capture_output=True,
                              text=True).stdout
    return re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sections).groups()


def bench_stacks():
    """100,000 different stacks of 30 frames all over the code of 50 modules with DWARF: copies of
    the collector."""
    stacks, modules = 100000, 50
    folder = os.path.join(WORK, "stacks")
    os.makedirs(folder)
    for number in range(modules):
        shutil.copy(COLLECTOR, os.path.join(WORK, f"module.{number}"))
    subprocess.run([os.path.join(BUILD, "make_stacks"), folder, "bench", str(stacks), str(modules),
                    os.path.join(WORK, "module"), *code_of(COLLECTOR)], check=True)
    for name, command in (("flame.symbols", ["flame", "-o", os.path.join(WORK, "x.folded")]),
                          ("flame.symbols.none", ["flame", "--symbols=none", "-o", os.devnull])):
        runs = [measured([COLLECTOR, *command, folder]) for _ in range(3)]
        if any(run[3] for run in runs):
            not_run(name, runs[0][4])
            continue
        tell(name, statistics.median(run[0] for run in runs), "s for 100,000 stacks",
             20 if name == "flame.symbols" else None, spread=quartiles([run[0] for run in runs]))
        tell(f"{name}.memory", max(run[2] for run in runs) / 1024, "MiB peak")
