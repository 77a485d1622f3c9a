# SPDX-License-Identifier: Apache-2.0
"""make torture: process lives that end at random moments, and files that are cut anywhere. Every
call that arrived at the simulated CUDA is in the recording or counted there as lost."""

import argparse
import collections
import concurrent.futures
import csv
import datetime
import io
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))

import conftest
import toolchain

HERE = pathlib.Path(__file__).resolve().parent
COLLECTOR = conftest.BUILD / "gpuprof-collector"
LIBRARY = conftest.BUILD / "libgpuprof.so"
TIMEOUT = 40

# mode: (what it is, exit status, lives in the short form)
LIVES = {
    "kill": ("SIGKILL", -signal.SIGKILL, 120),
    "segv": ("SIGSEGV", -signal.SIGSEGV, 60),
    "abort": ("abort()", -signal.SIGABRT, 60),
    "_exit": ("_exit() beside calling threads", 3, 60),
    "exit": ("exit() beside calling threads", 3, 60),
    "quick_exit": ("quick_exit() beside calling threads", 3, 60),
    "signals": ("a signal every 0.3 ms", 3, 60),
    "threads": ("threads that end at once", 3, 60),
    "forks": ("fork in one thread, others call", 3, 60),
    "dlclose": ("a library that calls, loaded and unloaded", 3, 60),
    "bomb": ("1000 children, 50 at a time", 3, 1),
}
CUTS = 300  # in the short form


class Row:
    """One line of the table."""

    def __init__(self):
        self.count = self.made = self.recovered = self.lost = self.unexplained = 0
        self.failures, self.bare_failures, self.notes = 0, 0, []

    def add(self, other):
        for name in ("count", "made", "recovered", "lost", "unexplained", "failures",
                     "bare_failures"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.notes += other.notes


def programs():
    flags = toolchain.runtime(12)
    source = HERE / "torture_work.c"
    return (toolchain.build(source, *flags),
            toolchain.build(source, *flags, "-DPLUGIN", "-shared", "-fPIC"))


def arrived(folder):
    """symbol -> calls of the program that came to the runtime, in all processes of a life."""
    counts = collections.Counter()
    for path in folder.iterdir():
        for line in path.read_bytes().replace(b"\0", b"").splitlines():
            fields = line.split(b"\t")
            if len(fields) > 5 and fields[2] == b"R" and fields[3] == b"0":
                counts[fields[4].decode()] += 1
    return counts


def recorded(*paths):
    """(exit code of the report, symbol -> calls, what is missing, calls that had not returned)"""
    done = subprocess.run([COLLECTOR, "report", "--format=csv", "--keep-live", *paths], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    counts, lost, opened = collections.Counter(), collections.Counter(), 0
    for row in csv.DictReader(io.StringIO(done.stdout)):
        if row["kind"] == "function" and row["domain"] == "runtime":
            counts[row["function"]] += int(row["calls"])
        elif row["kind"] in ("loss", "damage"):
            lost[row["function"]] += int(row["count"])
        elif row["function"] == "open_calls":
            opened = int(row["count"])
    return done.returncode, counts, lost, opened


def run(command, env):
    """The exit status, "hang", or how it was told."""
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            _, stderr = process.communicate(timeout=TIMEOUT)
            return process.returncode, stderr.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "hang", ""


def compare(row, made, found, lost, opened):
    """Adds the calls of a life to `row`; what is neither recorded nor counted is unexplained."""
    counted = lost["dropped"] + lost["unrecorded"] + lost["write_lost"]
    missing = sum((made - found).values())
    beyond = sum((found - made).values())
    row.made += sum(made.values())
    row.recovered += sum(found.values())
    row.lost += min(missing, counted)
    row.unexplained += max(0, missing - counted) + max(0, beyond - opened)
    return max(0, missing - counted) + max(0, beyond - opened)


def life(mode, seed, tools, base):
    row = Row()
    row.count = 1
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{mode}-{seed}-", dir=base))
    log, live = folder / "log", folder / "live"
    log.mkdir(), live.mkdir()
    env = toolchain.environment(folder / "out", LIBRARY, SIMCUDA_LOG=log, SIMCUDA_TIMELINE="off",
                                GPUPROF_LIVE=live, GPUPROF_SEAL="10ms")
    status, stderr = run([*tools[:1], mode, tools[1], str(seed)], env)
    if status != LIVES[mode][1] or stderr:
        row.failures = 1
        row.notes.append(f"{mode} {seed}: status {status} {stderr.strip()[:200]}")
    made = arrived(log)
    if list((folder / "out").glob("*.gpuprof")):  # else it ended before anything was made
        code, found, lost, opened = recorded(folder / "out")
    else:
        code, found, lost, opened = 0, collections.Counter(), collections.Counter(), 0
    if code or compare(row, made, found, lost, opened):
        row.unexplained += bool(code)
        row.notes.append(f"{mode} {seed}: report {code}, made {made}, found {found}, lost {lost}, "
                         f"open {opened}")
    else:
        shutil.rmtree(folder)
    return row


def bare(mode, seed, tools):
    env = toolchain.environment(None, SIMCUDA_TIMELINE="off")
    row = Row()
    row.bare_failures = run([*tools[:1], mode, tools[1], str(seed)], env)[0] != LIVES[mode][1]
    return row


def killed_pairs(tools, base, count, seed):
    """Folders of killed processes, with stream and live file side by side, and what they made."""
    pairs = []
    while len(pairs) < count:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cut-", dir=base))
        log, live = folder / "log", folder / "live"
        log.mkdir(), live.mkdir()
        env = toolchain.environment(folder / "out", LIBRARY, SIMCUDA_LOG=log, GPUPROF_LIVE=live,
                                    SIMCUDA_TIMELINE="off", GPUPROF_SEAL="10ms",
                                    GPUPROF_CHUNK="16K", GPUPROF_BUFFER="1M")
        seed += 1
        run([*tools[:1], "kill", tools[1], str(seed)], env)
        streams = list((folder / "out").glob("*.gpuprof")) if (folder / "out").exists() else []
        if streams and list(live.iterdir()):
            shutil.move(next(live.iterdir()), streams[0].with_suffix(".live"))
            pairs.append((streams[0], arrived(log)))
    return pairs


def cut(pair, which, at, base):
    """The collector reads what is left, says what is missing, and invents nothing."""
    stream, made = pair
    row = Row()
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


def table(rows, factor, seed):
    machine = f"{os.cpu_count()} cores, {os.uname().machine}, Linux"
    lines = [
        "# What was done to it, and what it withstood", "",
        f"Made by `make torture` on {datetime.date.today().isoformat()} ({machine}); "
        f"{factor:g} of the short form's lives, seed {seed}.", "",
        "Events made: calls that arrived at the simulated CUDA, by its own log, which survives. "
        "Recovered: what `gpuprof report`",
        "finds (calls that had begun and not yet arrived are among them). Lost: missing, and "
        "counted or said to be missing by the recording.",
        "Unexplained: neither; must be 0. Failures: ends, messages or hangs that the program does "
        "not have without gpuprof; must be 0.", "",
        "| fault | times | events made | recovered | lost | unexplained | failures | of the bare "
        "program |", "|---|---|---|---|---|---|---|---|"]
    for name, row in rows:
        lines.append(f"| {name} | {row.count} | {row.made} | {row.recovered} | {row.lost} | "
                     f"{row.unexplained} | {row.failures} | {row.bare_failures} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=float, default=1, help="so many times the short form")
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--output", default="-")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    tools, base = programs(), pathlib.Path(tempfile.mkdtemp(prefix="gpuprof-torture-"))
    any_seed = random.Random(options.seed)
    rows, notes = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for mode, (name, _, count) in LIVES.items():
            seeds = [any_seed.randrange(1 << 31) for _ in range(max(1, round(count *
                                                                            options.factor)))]
            row = work(pool, [(life, mode, seed, tools, base) for seed in seeds])
            row.add(work(pool, [(bare, mode, seed, tools) for seed in
                                seeds[:max(1, len(seeds) // 4)]]))
            rows.append((name, row))
            notes += row.notes
            print(f"{name}: {row.count} lives, {row.unexplained} unexplained, {row.failures} "
                  "failures", file=sys.stderr, flush=True)
        pairs = killed_pairs(tools, base, 4, options.seed)
        for which, name in ((".gpuprof", "stream file cut at any byte"),
                            (".live", "live file cut at any byte"),
                            ("both", "both of them cut")):
            row = work(pool, [(cut, any_seed.choice(pairs), which, any_seed.random(), base)
                              for _ in range(round(CUTS * options.factor))])
            rows.append((name, row))
            notes += row.notes
    text = table(rows, options.factor, options.seed)
    for note in notes[:20]:
        print(note, file=sys.stderr)
    if options.output == "-":
        print(text, end="")
    else:
        pathlib.Path(options.output).write_text(text, encoding="ascii")
    bad = sum(row.unexplained + max(0, row.failures - 4 * row.bare_failures) for _, row in rows)
    if not bad:
        shutil.rmtree(base)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
