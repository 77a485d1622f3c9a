# SPDX-License-Identifier: Apache-2.0
"""make torture: process lives that end at random moments, and files that are cut anywhere. Every
call that arrived at the simulated CUDA is in the recording or counted there as lost."""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import gzip
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))

import conftest
import csv_tables
import toolchain

HERE = pathlib.Path(__file__).resolve().parent
COLLECTOR = conftest.BUILD / "gpuprof-collector"
LIBRARY = conftest.BUILD / "libgpuprof.so"
OS_LIBRARY = conftest.BUILD / "libgpuprof-os.so"
CUPTI = conftest.BUILD / "sim" / "libcupti.so.12"
TIMEOUT = 100  # seconds, on a machine that has much else to do
PASSING = 5  # threads of one life that may be between the count of a passed call and CUDA
BATCH = 40  # lives whose recordings are read together
BARE = 4  # of so many lives one is lived without gpuprof, too

# mode: (what it is, exit status, lives in the short form, in the long one)
LIVES = {
    "kill": ("SIGKILL", -signal.SIGKILL, 120, 7000),
    "segv": ("SIGSEGV", -signal.SIGSEGV, 60, 3500),
    "abort": ("abort()", -signal.SIGABRT, 60, 3500),
    "_exit": ("_exit() beside calling threads", 3, 60, 3500),
    "exit": ("exit() beside calling threads", 3, 60, 3500),
    "quick_exit": ("quick_exit() beside calling threads", 3, 60, 3500),
    "raise": ("SIGTERM to itself beside calling threads", -signal.SIGTERM, 60, 3500),
    "oom": ("no memory any more, then SIGKILL", -signal.SIGKILL, 60, 2500),
    "signals": ("a signal every 0.3 ms", 3, 60, 3500),
    "threads": ("threads that end at once", 3, 60, 2200),
    "forks": ("fork in one thread, others call", 3, 60, 2500),
    "callback": ("fork in a callback of CUPTI's", 3, 60, 2000),
    "dlclose": ("a library that calls, loaded and unloaded", 3, 60, 3500),
    "bomb": ("1000 children, 50 at a time", 3, 1, 50),
    "operators": ("fork in an operator of PyTorch's, others call", 3, 60, 2500),
    "tensors": ("SIGKILL, blocks of PyTorch's under its lock", -signal.SIGKILL, 60, 2500),
    "libraries": ("SIGKILL, calls of a library that calls CUDA", -signal.SIGKILL, 60, 2500),
    "flight": ("SIGKILL beside dumps of a flight recorder", -signal.SIGKILL, 60, 2500),
    "control": ("SIGKILL beside a storm of control files", -signal.SIGKILL, 10, 200),
    "device": ("SIGKILL and forks beside readings of NVML", -signal.SIGKILL, 10, 200),
    "governor": ("SIGKILL while --overhead-max passes calls by", -signal.SIGKILL, 10, 200),
    "modules": ("SIGKILL, modules of kernels that come and go", -signal.SIGKILL, 60, 2500),
    "ctrl_c": ("Ctrl-C of a terminal, caught or not", -signal.SIGINT, 40, 2500),
    "setuid": ("setuid beside calling threads", 3, 40, 2500),
    "patcher": ("SIGKILL and forks, a library that patches the driver", -signal.SIGKILL, 40, 2500),
    "handler_stack": ("SIGKILL, a handler that calls on a small stack", -signal.SIGKILL, 40, 2500),
    "folder": ("the data folder removed or renamed meanwhile", 3, 40, 2500),
    "silences": ("SIGKILL, silences, and descriptors taken away", -signal.SIGKILL, 40, 2500),
    "notes": ("SIGTERM to itself without a live file", -signal.SIGTERM, 40, 2500),
    "killers": ("killed by two others, which ask first", 3, 40, 2500),
    "graphs": ("SIGKILL, graphs recorded as a whole", -signal.SIGKILL, 40, 2500),
    "waits": ("SIGKILL and forks, each call that waits recorded", -signal.SIGKILL, 40, 2500),
    "samples": ("SIGKILL and forks, samples of the CPU", -signal.SIGKILL, 40, 2500),
}
# What the recordings of a mode must have: else it was no attack.
HAVE = {"silences": "\nsilence begin=", "notes": '"said=', "graphs": '"gpu_graphs=whole"',
        "waits": "\nos_call begin=", "samples": "\nsample begin="}
TALKATIVE = ("oom", "governor", "control", "device", "folder")  # they may say what they lack
CUT = {".gpuprof": "stream file cut at any byte", ".live": "live file cut at any byte",
       "both": "both of them cut"}
CUTS = (300, 3000)  # files that are cut, each way
COLLECTORS_END = "the collector ended while it works"
COLLECTORS = (10, 300)  # killed processes whose collectors are killed, see KILLS
KILLS = 5  # of one and the same recording
VERBS = (["merge", "-o", "trace.json"], ["recover"], ["report"], ["merge", "-o", "trace.json.gz"],
         ["flame", "-o", "flame.svg"], ["dump"])
STOP = threading.Event()  # no further lives: the table is to be written


class Row:
    """One line of the table."""

    NUMBERS = ("count", "processes", "made", "recovered", "lost", "unexplained", "failures",
               "bare_failures")

    def __init__(self):
        self.count = self.processes = self.made = self.recovered = self.lost = 0
        self.unexplained = self.failures = self.bare_failures = 0
        self.notes = []

    def add(self, other):
        for name in self.NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.notes += other.notes


Tools = collections.namedtuple("Tools", ["lives", "work", "plugin", "environment"])


def programs():
    flags = toolchain.runtime(12)
    source = HERE / "torture_work.c"
    return Tools(toolchain.build(HERE / "torture_lives.c"), toolchain.build(source, *flags),
                 toolchain.build(source, *flags, "-DPLUGIN", "-shared", "-fPIC"),
                 {"TORTURE_CUPTI": CUPTI, "TORTURE_TORCH": toolchain.pytorch(),
                  "TORTURE_CUBLAS": cublas(), "TORTURE_PATCHER": patcher()})


def cublas():
    """The double of a library; what it calls CUDA for is in the log, too."""
    return toolchain.build("cublas_double.c", "-shared", "-fPIC", *toolchain.runtime(12),
                           "-Wl,-soname,libcublas.so.12")


def patcher():
    helper = toolchain.build("patcher.c", "-DHELPER", "-shared", "-fPIC")
    return toolchain.build("patcher.c", "-DMODULE", "-shared", "-fPIC", "-Wl,--no-as-needed",
                           *toolchain.DRIVER, str(helper))


def arrived(paths):
    """symbol -> calls of the program that came to the runtime, by these logs."""
    counts = collections.Counter()
    for path in paths:
        data = path.read_bytes().translate(None, b"\0")
        counts.update(re.findall(rb"^\d+\t\d+\tR\t0\t([^\t\n]+)\t", data, re.MULTILINE))
    del counts[b"cudaStreamCreateWithFlags"]  # which nobody asks the time of: it has no record
    return collections.Counter({name.decode(): n for name, n in counts.items()})


def recorded(*paths):
    """(exit code of the report, symbol -> calls, what is missing or passed by, calls that had not
    returned)"""
    counts, lost, opened = collections.Counter(), collections.Counter(), 0
    if not paths:
        return 0, counts, lost, opened
    done = subprocess.run([COLLECTOR, "report", "--format=csv", "--keep-live",
                           "--table=functions,cuda_gpu_graph_sum,losses", *paths], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    tables = csv_tables.tables(done.stdout)
    for row in tables.get("functions", ()):
        if row["domain"] == "runtime":
            counts[row["function"]] += int(row["calls"])
    graphs = sum(int(row["instances"]) for row in tables.get("cuda_gpu_graph_sum", ()))
    for row in tables.get("losses", ()):
        if row["kind"] != "note":
            lost[row["name"]] += int(row["count"])
        elif row["name"] == "open_calls":
            opened = int(row["count"])
        elif row["name"] == "passed_by":
            lost["passed_by"] = int(row["count"])
    if lost["passed_by"]:  # what is recorded stands for others, too
        done = subprocess.run([COLLECTOR, "report", "--format=json", "--keep-live", *paths],
                              check=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT)
        counts = collections.Counter({
            f["function"]: f.get("estimated_from", f["calls"])
            for f in json.loads(done.stdout)["functions"] if f["domain"] == "runtime"})
    unseen = counts["cudaGraphLaunch"] - graphs - lost["gpu_missing"] - opened
    if unseen > 0:  # nobody made such calls
        counts["graphs that are neither recorded nor missing"] = unseen
    return done.returncode, counts, lost, opened


def compare(row, made, found, lost, opened):
    """Adds calls to `row`; what is neither recorded nor counted is unexplained."""
    counted = lost["dropped"] + lost["unrecorded"] + lost["write_lost"]
    missing = sum((made - found).values())
    beyond = sum((found - made).values())
    passed = min(missing, lost["passed_by"])
    missing -= passed
    beyond += max(0, lost["passed_by"] - passed - PASSING)
    row.made += sum(made.values())
    row.recovered += sum(found.values()) + passed
    row.lost += min(missing, counted)
    row.unexplained += max(0, missing - counted) + max(0, beyond - opened)


def compare_each(row, out, logs):
    """Process by process, so that one's open calls do not hide what another lost."""
    of_pid = collections.defaultdict(lambda: ([], []))
    for path in logs:
        of_pid[path.name.split(".")[0]][0].append(path)
    for path in out:
        of_pid[path.name.rsplit("-", 1)[0].split(".")[-2]][1].append(path)
    for pid, (its_logs, its_files) in of_pid.items():
        part = Row()
        made = arrived(its_logs)
        code, found, lost, opened = recorded(*its_files)
        compare(part, made, found, lost, opened)
        part.unexplained += bool(code)
        if part.unexplained:
            part.notes.append(f"pid {pid}: report {code}, made {made}, found {found}, lost {lost}, "
                              f"open {opened}")
        row.add(part)


def settings(mode, folder, tools):
    """The environment of lives that are recorded in `folder`."""
    log, live = folder / "log", folder / "live"
    log.mkdir(), live.mkdir()
    env = toolchain.environment(folder / "out", LIBRARY, SIMCUDA_LOG=log, SIMCUDA_TIMELINE="off",
                                GPUPROF_LIVE=live, GPUPROF_SEAL="10ms", **tools.environment)
    env["TORTURE_PRELOAD"] = env.pop("LD_PRELOAD")
    env["GPUPROF_EXIT_WAIT"] = "30s"  # a machine with much else to do is no hang
    if mode == "flight":
        env.update(GPUPROF_FLIGHT="30s", GPUPROF_DUMP_LIMIT="1000000")
    if mode == "governor":
        env["GPUPROF_OVERHEAD_MAX"] = "0.0001%"
    if mode == "device":  # whose calls last, so that what ends meets one
        env.update(GPUPROF_DEVICE="1", GPUPROF_DEVICE_PERIOD="20ms", SIMNVML_SLOW_MS="5",
                   SIMNVML_LOG=str(folder / "nvml"))
        (folder / "nvml").mkdir()
    if mode == "silences":
        env["GPUPROF_SILENCE"] = "100us"
    if mode == "notes":
        env["GPUPROF_LIVE"] = str(folder / "nowhere")
    if mode == "handler_stack":  # for which there is no room
        env["GPUPROF_BACKTRACE_THRESHOLD"] = "0"
    if mode == "graphs":
        env["GPUPROF_GRAPHS"] = "whole"
    if mode == "waits":
        env.update(GPUPROF_OS="0", GPUPROF_OS_BACKTRACE="0")
        env["TORTURE_PRELOAD"] += f":{OS_LIBRARY}"
    if mode == "samples":
        env["GPUPROF_SAMPLE"] = "1000"
    if mode in ("callback", "device", "graphs", "killers"):
        env.update(GPUPROF_GPU="on", GPUPROF_CUPTI=str(CUPTI))
    if mode == "operators":
        env["GPUPROF_PYTORCH"] = "shapes"
    return env


def live_on(mode, seed, count, tools, env):
    """What ended otherwise than it should: lines of the seed, how it ended, and its words."""
    done = subprocess.run(
        [tools.lives, str(LIVES[mode][1]), str(TIMEOUT), str(seed), str(count), tools.work, mode,
         tools.plugin], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if mode in TALKATIVE:
        lines = [line for line in lines
                 if not line.split(" ", 1)[1].startswith(f"{LIVES[mode][1]} gpuprof: ")]
    return lines + ([f"the lives' program: {done.returncode}"] if done.returncode else [])


def has_records(paths, what):
    dumps = (subprocess.run([COLLECTOR, "dump", path], check=False, stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=TIMEOUT).stdout for path in paths)
    return any(what.encode() in dump for dump in dumps)


@contextlib.contextmanager
def control_storm(out, seed):
    """Control files of all kinds, as fast as they come; nothing in them turns recording off."""
    any_of, over = random.Random(seed), threading.Event()

    def text():
        whats = ["status", "watch", "start", "dump", "dump step 0000000000000003",
                 "start time 0000000000000001", "start step ffffffffffffffff"]
        lines = [f"{any_of.getrandbits(64):016x} all {any_of.choice(whats)}\n"
                 for _ in range(any_of.choice([0, 1, 3, 32, 33]))]
        whole = f"gpuprof-control 1\n{''.join(lines)}end\n"
        return any_of.choice([whole, whole, whole[:any_of.randrange(len(whole))], whole * 40])

    def storm():
        fresh = out / "fresh"
        while not over.wait(any_of.uniform(0, 0.02)):
            if not out.exists():
                continue
            kind = any_of.choice(["text"] * 8 + ["fifo", "link", "gone", "in place"])
            fresh.unlink(missing_ok=True)
            if kind == "in place":  # as nobody does who knows better
                (out / "control").unlink(missing_ok=True)
                (out / "control").write_text(text(), encoding="ascii")
            elif kind == "gone":
                (out / "control").unlink(missing_ok=True)
            else:
                if kind == "fifo":
                    os.mkfifo(fresh)
                elif kind == "link":
                    fresh.symlink_to("/proc/self/mem")
                else:
                    fresh.write_text(text(), encoding="ascii")
                    fresh.chmod(0o600)
                fresh.rename(out / "control")

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def lives(mode, seed, count, tools, base):
    row = Row()
    if STOP.is_set():
        return row
    row.count = count
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{mode}-{seed}-", dir=base))
    env = settings(mode, folder, tools)
    with control_storm(folder / "out", seed) if mode == "control" else contextlib.nullcontext():
        failed = live_on(mode, seed, count, tools, env)
    row.failures = len(failed)
    row.notes = [f"{mode} {line}" for line in failed]
    if mode == "device" and not list((folder / "nvml").iterdir()):
        row.failures += 1
        row.notes.append(f"{mode} {seed}: nothing was read")
    logs = list((folder / "log").iterdir())
    out = list((folder / "out").rglob("*.gpuprof"))
    if mode in HAVE and not has_records(out, HAVE[mode]):
        row.failures += 1
        row.notes.append(f"{mode} {seed}: no recording has {HAVE[mode]}")
    row.processes = len(logs)
    removed = [log for log in logs
               if (folder / "out" / f"{log.name.split('.')[0]}.removed").exists()]
    gone = arrived(removed).total()  # by the program's own hand
    row.made, row.lost, logs = gone, gone, [log for log in logs if log not in removed]
    made = arrived(logs)
    code, found, lost, opened = recorded(*out)
    if code == 0 and made == found and not lost:
        row.made += sum(made.values())
        row.recovered += sum(found.values())
    else:
        compare_each(row, out, logs)
    if not row.unexplained:
        shutil.rmtree(folder)
    return row


def bare(mode, seed, count, tools):
    row = Row()
    if not STOP.is_set():
        env = toolchain.environment(None, SIMCUDA_TIMELINE="off", **tools.environment)
        row.bare_failures = len(live_on(mode, seed, count, tools, env))
    return row


def is_trace(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        return bool(json.load(file)["traceEvents"])


def killed_collectors(seed, tools, base):
    """A recording of a killed process, and collectors that are ended while they read it, move its
    live file and make it whole."""
    row = Row()
    if STOP.is_set():
        return row
    any_of = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"collector-{seed}-", dir=base))
    env = settings("kill", folder, tools)
    live_on("kill", seed, 1, tools, env)
    logs = list((folder / "log").iterdir())
    if not list((folder / "out").glob("*.gpuprof")):
        shutil.rmtree(folder)
        return row
    (folder / "tmp").mkdir()
    env["TMPDIR"] = str(folder / "tmp")
    for _ in range(KILLS):
        verb, number = any_of.choice(VERBS), any_of.choice([signal.SIGKILL, signal.SIGTERM,
                                                            signal.SIGINT])
        with subprocess.Popen([COLLECTOR, verb[0], "out", *verb[1:]], cwd=folder, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(any_of.uniform(0, 0.02))
            process.send_signal(number)
            status = process.wait(TIMEOUT)
        row.count += status == -number
        traces = list(folder.glob("trace.json")) + list(folder.glob("trace.json.gz"))
        whole = all(is_trace(path) for path in traces)
        if status not in (0, -number) or not whole or list((folder / "tmp").iterdir()):
            row.failures += 1
            row.notes.append(f"collector {seed}: {verb} {number}: status {status}, {traces} "
                             f"{whole}, {list((folder / 'tmp').iterdir())}")
    row.processes = len(logs)
    compare_each(row, list((folder / "out").glob("*.gpuprof")), logs)
    if not row.unexplained and not row.failures:
        shutil.rmtree(folder)
    return row


def killed_pairs(tools, base, count, seed):
    """Folders of killed processes, with stream and live file side by side, and what they made."""
    pairs = []
    while len(pairs) < count:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cut-", dir=base))
        env = settings("kill", folder, tools)
        env.update(GPUPROF_CHUNK="16K", GPUPROF_BUFFER="1M")
        seed += 1
        live_on("kill", seed, 1, tools, env)
        streams = list((folder / "out").glob("*.gpuprof"))
        lives_left = list((folder / "live").iterdir())
        if streams and lives_left:
            shutil.move(lives_left[0], streams[0].with_suffix(".live"))
            pairs.append((streams[0], arrived((folder / "log").iterdir())))
    return pairs


def cut(pair, which, at, base):
    """The collector reads what is left, says what is missing, and invents nothing."""
    stream, made = pair
    row = Row()
    if STOP.is_set():
        return row
    row.count = 1
    folder = pathlib.Path(tempfile.mkdtemp(prefix="one-cut-", dir=base))
    for path in (stream, stream.with_suffix(".live")):
        data = path.read_bytes()
        if which in (path.suffix, "both"):
            data = data[:int(at * len(data))]
            at = at * 7 % 1
        (folder / path.name).write_bytes(data)
    code, found, lost, opened = recorded(folder / stream.name)
    missing, beyond = sum((made - found).values()), sum((found - made).values())
    row.made, row.recovered = sum(made.values()), sum(found.values())
    row.lost = missing
    said = bool(lost) or code != 0
    row.failures = code not in (0, 2, 3)  # 2, 3: not even the header is left
    row.unexplained = (missing if not said else 0) + max(0, beyond - opened)
    if row.failures or row.unexplained:
        row.notes.append(f"cut {which} {at}: code {code}, missing {missing}, beyond {beyond}, "
                         f"lost {lost}, open {opened}")
    shutil.rmtree(folder)
    return row


def work(pool, jobs):
    row = Row()
    for done in concurrent.futures.as_completed([pool.submit(*job) for job in jobs]):
        row.add(done.result())
    return row


def table(rows, how, seed):
    machine = f"{os.cpu_count()} cores, {os.uname().machine}, Linux"
    total = sum(row.processes for _, row in rows)
    lines = [
        "# What was done to it, and what it withstood", "",
        f"Made by `make torture` on {datetime.date.today().isoformat()} ({machine}); {how}, seed "
        f"{seed}. Process lives in all: {total}.", "",
        "Process lives: processes that called CUDA, children of forks included, by their logs of "
        "the simulated CUDA, which survive. Events made: calls that",
        "arrived there. Recovered: what `gpuprof report` finds (calls that had begun and not yet "
        "arrived are among them; also those that were passed by, which it counts). Lost: missing, "
        "and counted",
        "or said to be missing by the recording. Unexplained: neither; must be 0. Failures: ends, "
        "messages or hangs that the program does not have without",
        "gpuprof; must be 0. Of the bare program: the same, of a few of the same lives without "
        "gpuprof.", "",
        "| fault | times | process lives | events made | recovered | lost | unexplained | failures "
        "| of the bare program |", "|---|---|---|---|---|---|---|---|---|"]
    for name, row in rows:
        lines.append(f"| {name} | " + " | ".join(str(getattr(row, n)) for n in row.NUMBERS) + " |")
    return "\n".join(lines) + "\n"


def batches(mode, count, any_seed):
    """(first seed, how many) of each."""
    size = 1 if mode == "bomb" else BATCH
    return [(any_seed.randrange(1 << 31), min(size, count - i)) for i in range(0, count, size)]


def faults(options, pool, tools, base):
    """(name, row) of one fault after another."""
    any_seed = random.Random(options.seed)

    def times(short, long):
        return long if options.long else max(1, round(short * options.factor))

    def done(name, jobs):
        """The seeds are the same whatever else is done."""
        if not options.only or name in options.only:
            yield name, work(pool, jobs)
    for mode, (name, _, short, long) in LIVES.items():
        many = batches(mode, times(short, long), any_seed)
        yield from done(name, [(lives, mode, *batch, tools, base) for batch in many] + [
            (bare, mode, seed, max(1, count // BARE), tools)
            for seed, count in many if mode != "bomb" or seed % BARE == 0])
    yield from done(COLLECTORS_END, [
        (killed_collectors, any_seed.randrange(1 << 31), tools, base)
        for _ in range(times(*COLLECTORS))])
    pairs = killed_pairs(tools, base, 4, options.seed)
    for which, name in CUT.items():
        yield from done(name, [(cut, any_seed.choice(pairs), which, any_seed.random(), base)
                               for _ in range(times(*CUTS))])


def begin():
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=float, default=1, help="so many times the short form")
    parser.add_argument("--long", action="store_true", help="the long form: 100,000 process lives")
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--output", default="-")
    parser.add_argument("--only", action="append", metavar="FAULT",
                        help="this row alone; those that OUTPUT has of others stay")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    signal.signal(signal.SIGTERM, lambda *_: STOP.set())
    memory = pathlib.Path("/dev/shm")
    there = memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30
    return options, pathlib.Path(tempfile.mkdtemp(prefix="gpuprof-torture-",
                                                  dir=memory if there else None))


def rows_of(path):
    """name -> Row of a table that was made before."""
    rows = {}
    found = re.findall(r"^\| ([^|]+) \| ([0-9 |]+) \|$", path.read_text(), re.MULTILINE)
    for name, numbers in found:
        rows[name] = Row()
        for key, number in zip(Row.NUMBERS, numbers.split("|")):
            setattr(rows[name], key, int(number))
    return rows


def main():
    options, base = begin()
    tools, output = programs(), pathlib.Path(options.output)
    form = "the long form" if options.long else f"{options.factor:g} of the short form's lives"
    rows = rows_of(output) if options.only and output.exists() else {}
    names = [*(name for name, *_ in LIVES.values()), COLLECTORS_END, *CUT.values()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, row in faults(options, pool, tools, base):
            rows[name] = row
            print(f"{time.strftime('%H:%M:%S')} {name}: {row.count} times, {row.processes} "
                  f"processes, {row.unexplained} unexplained, {row.failures} failures",
                  file=sys.stderr, flush=True)
            for note in row.notes[:20]:
                print(note, file=sys.stderr, flush=True)
            whole = not STOP.is_set() and set(names) == set(rows)
            text = table([(n, rows[n]) for n in names if n in rows],
                         form if whole else f"a part of {form}, ended early", options.seed)
            if options.output != "-":
                output.write_text(text, encoding="ascii")
            if STOP.is_set():
                break
    if options.output == "-":
        print(text, end="")
    bad = sum(row.unexplained + max(0, row.failures - BARE * row.bare_failures)
              for row in rows.values())
    if not bad:
        shutil.rmtree(base)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
