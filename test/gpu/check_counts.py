# SPDX-License-Identifier: Apache-2.0
"""Programs that make a known number of calls: counts, correlation, times, graphs, a kill."""

import bisect
import collections
import functools
import glob
import json
import os
import shutil
import signal
import sys

import gpu_dump
from gpu_table import (COLLECTOR, FAILED, HERE, NOT_RUN, OK, ROOT, Failure, bare_environment,
                       find_torch, kill_when, not_run, recording_environment, row, run, tail)

SYNC_EVERY = 1000
KILL_SECONDS = 2
KILL_SYNC_EVERY = 10
LATE_MS_MAX = 1500  # twice the flush interval, and half a second for the rest
CTYPES = (sys.executable, str(HERE / "ctypes_work.py"))


def installed_cupti():
    """Every libcupti that the search of libgpuprof.so may have had no reason to look at."""
    folders = {p for p in sys.path if p.endswith("-packages")}
    python = find_torch()[0]
    home = os.path.dirname(os.path.dirname(python)) if python else "/opt/conda"
    folders.update(glob.glob(f"{home}/lib/python3*/site-packages"))
    patterns = [f"{p}/nvidia/{part}/lib/libcupti.so.1*" for p in folders
                for part in ("cuda_cupti", "cu*")]
    patterns += ["/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1*",
                 "/usr/local/cuda*/lib64/libcupti.so.1*",
                 "/usr/lib/*-linux-gnu/libcupti.so.1*", f"{home}/lib/libcupti.so.1*"]
    found = {os.path.realpath(p) for pattern in patterns for p in glob.glob(pattern)}
    return sorted(found, reverse=True)


def expected_of(stdout):
    """What the program says that it did."""
    return {k: int(v) for k, v in (line.split() for line in stdout.splitlines())}


def find_rows(name, command, folder):
    """Row "GPU rows": where they come from. The setting with which they come, or None."""
    process, texts = None, []
    for cupti in ("", *installed_cupti()):
        settings = {"GPUPROF_CUPTI": cupti} if cupti else {}
        out = folder / str(len(texts))
        done = run([*command, "10", "10"], recording_environment(out, **settings))
        if done.status:
            raise Failure(f"status {done.status}: {tail(done.stderr)}")
        process = gpu_dump.read_one(out)
        if process.has_gpu_rows():
            said = f" (with GPUPROF_CUPTI={cupti}, else {texts[0]})" if cupti else ""
            row(name, OK, process.gpu_rows + said)
            return settings
        texts.append(process.gpu_rows)
        if "no libcupti" not in process.gpu_rows:
            break
    row(name, NOT_RUN if "no libcupti" in texts[0] and len(texts) == 1 else FAILED, texts[0])
    return None


def check_calls(name, process, expected):
    """The host's side; which names the calls carry depends on who saw them."""
    seen = {kind: len(process.of(kind)) for kind in ("launch", "graph_launch", "copy", "set")}
    wanted = {kind: expected[kind] for kind in seen}
    seen["captured"] = len(process.of("launch", captured=True))
    wanted["captured"] = expected["captured"]
    names = collections.Counter("runtime" if c.name.lstrip("_").startswith("cuda") else "driver"
                                for c in process.calls if c.kind in wanted)
    who = " and ".join(f"the {n}'s" for n in sorted(names))
    row(name, seen == wanted and len(names) == 1,
        f"{'all equal' if seen == wanted else 'made ' + str(wanted) + ', recorded'} {seen}; "
        f"names are {who}")


def split(work, graph):
    return [w for w in work if bool(w.graph) == graph]


def check_work(name, process, expected):
    """The device's side, of what was launched directly."""
    counts, extra = {}, {}
    for kind, calls in (("kernel", "launch"), ("copy", "copy"), ("set", "set")):
        own = {c.correlation for c in process.of(calls)}
        records = [process.owner(w.correlation) for w in split(process.done(kind), False)]
        counts[kind] = sum(c in own for c in records)
        if len(records) > counts[kind]:
            extra[kind] = len(records) - counts[kind]
    wanted = {kind: expected[calls] for kind, calls in (("kernel", "launch"), ("copy", "copy"),
                                                        ("set", "set"))}
    more = f"; beside them, of no such call: {extra}" if extra else ""
    row(name, counts == wanted and "kernel" not in extra,
        f"{'all equal' if counts == wanted else 'made ' + str(wanted) + ', recorded'} {counts}"
        f"{more}")


def check_correlation(name, process):
    """Each kernel belongs to one launch call, each launch call has one kernel."""
    calls = collections.Counter(c.correlation for c in process.of("launch"))
    kernels = collections.Counter(process.owner(w.correlation)
                                  for w in split(process.done("kernel"), False))
    orphans = sum(n for c, n in kernels.items() if calls[c] != 1)
    barren = sum(n for c, n in calls.items() if kernels[c] != 1)
    row(name, bool(kernels) and not orphans and not barren,
        f"{sum(kernels.values())} kernels: {orphans} not of exactly one launch call; "
        f"{sum(calls.values())} calls: {barren} without exactly one kernel")


def check_times(name, process):
    """Launch begins before kernel, kernel ends before the call that waited for it returns."""
    launches = {c.correlation: c for c in process.of("launch")}
    waits = {}
    for call in process.of("sync"):
        waits.setdefault(call.thread, []).append(call)
    begins = {thread: [c.begin for c in calls] for thread, calls in waits.items()}
    early, late, unwaited = [], [], 0
    for kernel in split(process.done("kernel"), False):
        call = launches.get(process.owner(kernel.correlation))
        if not call:
            continue
        early.append(call.begin - kernel.begin)
        at = bisect.bisect_left(begins.get(call.thread, []), call.end)
        if at < len(waits.get(call.thread, ())):
            late.append(kernel.end - waits[call.thread][at].end)
        else:
            unwaited += 1
    if not early or not late:
        row(name, FAILED, "no kernel has both its launch call and a call that waited for it")
        return
    allowed = process.tolerance()
    over = sum(ns > allowed for ns in early + late)
    row(name, over == 0 and unwaited == 0,
        f"{len(early)} kernels, tolerance {allowed} ns: {over} times beyond it, worst begin "
        f"{max(early)} ns before its launch call's, worst end {max(late)} ns after the waiting "
        f"call's (negative: the right way round){f'; {unwaited} unwaited' if unwaited else ''}")


def check_graph_nodes(name, process, expected):
    launches = {c.correlation for c in process.of("graph_launch")}
    wanted = {"kernel": expected["captured"], "copy": expected["graph_copy"],
              "set": expected["graph_set"]}
    wrong, strangers = collections.Counter(), 0
    for kind, count in wanted.items():
        found = collections.Counter(process.owner(w.correlation)
                                    for w in split(process.done(kind), True))
        strangers += sum(n for c, n in found.items() if c not in launches)
        wrong[kind] = sum(found[c] != count for c in launches)
    row(name, len(launches) == expected["graph_launch"] and not +wrong and not strangers,
        f"{len(launches)} launches of {wanted} nodes; launches with another number: "
        f"{dict(+wrong) or 'none'}; nodes of no launch: {strangers}")


def check_graph_whole(name, process, expected):
    launches = collections.Counter(c.correlation for c in process.of("graph_launch"))
    graphs = collections.Counter(process.owner(w.correlation) for w in process.done("graph"))
    nodes = sum(len(split(process.done(kind), True)) for kind in ("kernel", "copy", "set"))
    plain = len(split(process.done("kernel"), False))
    row(name, graphs == launches and len(launches) == expected["graph_launch"] and not nodes
        and plain == expected["launch"],
        f"{sum(graphs.values())} graph records of {len(launches)} launches, {nodes} node records, "
        f"{plain} kernels outside graphs")


def record_once(command, folder, launches, settings, rows_wanted=True):
    """(process, what the program says it did); the output must be the bare run's."""
    arguments = [*command, str(launches), str(SYNC_EVERY)]
    bare = run(arguments, bare_environment())
    done = run(arguments, recording_environment(folder, **settings))
    if (done.status, done.stdout) != (bare.status, bare.stdout) or done.status:
        raise Failure(f"status {done.status}, bare {bare.status}; output {tail(done.stdout)!r}, "
                      f"bare {tail(bare.stdout)!r}; {tail(done.stderr)}")
    process = gpu_dump.read_one(folder)
    lost = gpu_dump.losses(folder)
    if lost:
        raise Failure(f"losses: {lost}")
    if rows_wanted and not process.has_gpu_rows():
        raise Failure(f"GPU rows {process.gpu_rows}")
    return process, expected_of(done.stdout)


def guarded(name, check, *arguments):
    """What keeps a row from being judged is that row's failure."""
    try:
        return check(*arguments)
    except Failure as failure:
        row(name, FAILED, failure)
    return None


def check_program(label, command, folder, launches):
    """All rows of one program; the settings with which its GPU rows come, or None."""
    def host_only():
        process, expected = record_once(command, folder / "host", launches,
                                        {"GPUPROF_GPU": "off"}, rows_wanted=False)
        check_calls(f"{label}: calls, without CUPTI", process, expected)

    def nodes(settings):
        process, expected = record_once(command, folder / "nodes", launches, settings)
        check_calls(f"{label}: calls, with CUPTI", process, expected)
        check_work(f"{label}: device records", process, expected)
        check_correlation(f"{label}: correlation", process)
        check_times(f"{label}: times", process)
        check_graph_nodes(f"{label}: graph nodes", process, expected)

    def whole(settings):
        process, expected = record_once(command, folder / "whole", launches // 10,
                                        {**settings, "GPUPROF_GRAPHS": "whole"})
        check_graph_whole(f"{label}: whole graphs", process, expected)

    def flight(settings):
        """The end of the program is the dump, which has all that fits."""
        process, expected = record_once(command, folder / "flight", launches // 10,
                                        {**settings, "GPUPROF_FLIGHT": "5min,1G"})
        check_calls(f"{label}: flight recorder, calls", process, expected)
        check_work(f"{label}: flight recorder, device records", process, expected)

    def waits(settings):
        """Those of the driver and of CUPTI among them: nothing is missing, and nothing hangs."""
        process, expected = record_once(command, folder / "waits", launches // 10,
                                        {**settings, "GPUPROF_OS": "0"})
        check_calls(f"{label}: with --os, calls", process, expected)
        check_work(f"{label}: with --os, device records", process, expected)
        row(f"{label}: calls that wait", sum(process.waits.values()) > 0,
            f"{sum(process.waits.values())} of {len(process.waits)} functions")

    guarded(f"{label}: calls, without CUPTI", host_only)
    settings = guarded(f"{label}: GPU rows", find_rows, f"{label}: GPU rows", command,
                       folder / "rows")
    if settings is None:
        not_run(f"{label}: device records, correlation, times, graphs", "no GPU rows")
    else:
        guarded(f"{label}: device records", nodes, settings)
        guarded(f"{label}: whole graphs", whole, settings)
        guarded(f"{label}: flight recorder", flight, settings)
        guarded(f"{label}: with --os", waits, settings)
        guarded(f"{label}: flight recorder, SIGKILL", check_kill,
                f"{label}: flight recorder, SIGKILL", command, folder / "flight-kill",
                {**settings, "GPUPROF_FLIGHT": "5min,1G"})
        guarded(f"{label}: abort", check_abort, f"{label}: abort", command, folder / "abort",
                settings)
        guarded(f"{label}: top, stop, start", check_control, f"{label}: top, stop, start", command,
                folder / "control", settings)
    guarded(f"{label}: SIGKILL", check_kill, f"{label}: SIGKILL", command, folder / "kill",
            settings)
    return settings


def check_ctypes(folder, launches):
    """(command, settings) if its GPU rows come, else None."""
    settings = check_program("ctypes", CTYPES, folder / "ctypes", launches)
    return (CTYPES, settings) if settings is not None else None


def check_built(folder, launches):
    """The same of nvcc's programs: of the one with a shared cudart."""
    programs, reason = build_programs(folder)
    best = None
    for cudart in ("shared", "static"):
        label = f"{cudart} cudart"
        if cudart not in programs:
            not_run(label, reason)
            continue
        command = (str(programs[cudart]),)
        settings = check_program(label, command, folder / cudart, launches)
        if settings is not None and cudart == "shared":
            best = (command, settings)
    return best


def check_kill(name, command, folder, settings):
    env = recording_environment(folder,
                                **({"GPUPROF_GPU": "off"} if settings is None else settings))
    if not kill_when([*command, "for-ever", str(KILL_SYNC_EVERY)], env, "running", KILL_SECONDS):
        raise Failure("the program ended before it was killed")
    judge_kill(name, folder, settings is not None)


def check_abort(name, command, folder, settings):
    """It aborts when it has waited for all that it launched: nothing is missing."""
    done = run([*command, "2000", "1000", "0", "abort"], recording_environment(folder, **settings))
    lost = gpu_dump.losses(folder)
    process = max(gpu_dump.read(folder), key=lambda p: len(p.calls))
    launches, kernels = process.of("launch"), process.done("kernel")
    own = {process.owner(k.correlation) for k in kernels}
    missing = sum(c.correlation not in own for c in launches)
    row(name, done.status == -signal.SIGABRT and len(launches) >= 2000 and not missing and not lost,
        f"status {done.status}; {len(launches)} launches and {len(kernels)} kernels read back; "
        f"launches without a kernel: {missing}; losses: {lost or 'none'}")


def check_control(name, command, folder, settings):
    """A running program is looked at, stopped and started; of no kernel a launch outside of the
    pause is missing. The device's records come back a moment before calls do."""
    said = {}

    def meanwhile():
        for words in (["top", "--once", "--format=json"], ["ctl", "stop"], ["ctl", "start"]):
            done = run([COLLECTOR, words[0], folder, *words[1:]], bare_environment())
            said[words[-1]] = done
    env = recording_environment(folder, **settings)
    if not kill_when([*command, "for-ever", str(KILL_SYNC_EVERY)], env, "running", KILL_SECONDS,
                     meanwhile):
        raise Failure("the program ended before it was killed")
    wrong = [f"{word}: {tail(done.stdout + done.stderr)}" for word, done in said.items()
             if done.status]
    if wrong:
        raise Failure("; ".join(wrong))
    [look] = json.loads(said["--format=json"].stdout)["processes"]
    process = max(gpu_dump.read(folder), key=lambda p: len(p.calls))
    own = sorted(process.of("launch"), key=lambda call: call.correlation)
    paused = max(zip(own, own[1:]), key=lambda two: two[1].begin - two[0].begin)
    orphans = {process.owner(k.correlation) for k in split(process.done("kernel"), False)}
    orphans = sum(not paused[0].correlation < number < paused[1].correlation
                  for number in orphans.difference(call.correlation for call in own))
    row(name, bool(look["launches_per_second"]) and 0 < (look["gpu_busy_share"] or 0) <= 1
        and ": stopped" in said["stop"].stdout and ": recording" in said["start"].stdout
        and not orphans,
        f"top: {look['launches_per_second']} launches/s, busy {look['gpu_busy_share']}, "
        f"{look['memory_bytes']} bytes held; after stop and start {orphans} kernels of "
        f"{len(process.done('kernel'))} are of no launch")


def judge_kill(name, folder, rows_wanted, file_count=1):
    """Nothing is lost but what the device did in the last moments, which CUPTI still had."""
    lost = gpu_dump.losses(folder)
    files = len(gpu_dump.files(folder))
    process = max(gpu_dump.read(folder), key=lambda p: len(p.calls))
    launches, kernels = process.of("launch"), process.done("kernel")
    own = {process.owner(k.correlation) for k in kernels}
    end = max((c.end for c in process.calls), default=0)
    missing = [c for c in launches if c.correlation not in own] if rows_wanted else []
    oldest_ms = (end - missing[0].begin) // 1000000 if missing else 0
    row(name, set(lost) <= {"gpu_missing"} and bool(launches) and oldest_ms <= LATE_MS_MAX
        and files == file_count and (bool(kernels) or not rows_wanted),
        f"{len(launches)} launches and {len(kernels)} kernels read back from {files} file(s); "
        f"launches without a kernel: {len(missing)}, the oldest {oldest_ms} ms before the end "
        f"(at most {LATE_MS_MAX} wanted); losses: {lost or 'none'}")


@functools.lru_cache(maxsize=None)
def build_programs(folder):
    """(cudart -> program, why one is not there)."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        return {}, "no nvcc on this machine"
    programs, reason = {}, ""
    for cudart in ("shared", "static"):
        target = folder / f"acceptance-{cudart}"
        for arch in (["-arch=native"], []):  # the latter needs a driver as new as nvcc
            done = run([nvcc, *arch, "-cudart", cudart, "-o", target,
                        ROOT / "test" / "gpu" / "acceptance.cu"], bare_environment())
            if done.status == 0:
                programs[cudart] = target
                break
            reason = f"nvcc: {tail(done.stdout + done.stderr)}"
    return programs, reason
