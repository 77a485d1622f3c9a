# SPDX-License-Identifier: Apache-2.0
"""Calls of the C library that wait: libgpuprof-os.so beside libgpuprof.so, as `run --os` has it."""

import collections
import errno
import functools
import json
import re
import shutil
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

OS_FUNCTION = stream_reader.TYPE_NUMBERS["os_function"]
OS_CALL = stream_reader.TYPE_NUMBERS["os_call"]
FOLDER = conftest.ROOT / "inject" / "host" / "os"
FAIL = {"pause", "pthread_cond_timedwait", "sem_clockwait", "syscall"}  # of the program's
NEAR_NS = 60_000  # by which the program's two looks at the clock may be further apart than ours


@pytest.fixture(scope="session")
def os_library():
    return conftest.built(conftest.BUILD / "libgpuprof-os.so")


@functools.cache
def rows(*kinds):
    """The symbols of os_functions.def."""
    names = "".join(f"#define {kind}(symbol, ...) row symbol\n" for kind in kinds)
    names += '#include "host/os/os_functions.def"\n'
    text = subprocess.run(["gcc", "-E", "-P", f"-I{conftest.ROOT}/inject", "-"], input=names,
                          text=True, stdout=subprocess.PIPE, check=True).stdout
    return set(re.findall(r"row (\w+)", text))


def environment(folder, libraries, **settings):
    path, link = toolchain.tiny()
    settings.setdefault("GPUPROF_OS", "1ms")
    settings.setdefault("LD_LIBRARY_PATH", path)
    env = toolchain.environment(folder, ":".join(map(str, libraries)), **settings)
    return env, link


def recorded(process, tid=None):
    """(name, record) of all OS calls."""
    names = {r.code: r.text.decode() for r in process.of_type(OS_FUNCTION)}
    threads = {r.thread: r.args[0] for r in process.of_type(stream_reader.THREAD)}
    return [(names[r.code], r) for r in process.of_type(OS_CALL)
            if tid is None or threads[r.thread] == tid]


@pytest.mark.parametrize("threshold_ns", [0, 1_000_000])
def test_calls_are_told_from_the_threshold_on(library, os_library, tmp_path, run_verb,
                                              threshold_ns):
    """Each function once: what the program says of its calls, and the recording, are equal."""
    env, link = environment(tmp_path / "out", [library, os_library],
                            GPUPROF_OS=f"{threshold_ns}ns" if threshold_ns else "0")
    program = toolchain.build("os_work.c", *link, "-pthread")
    said = toolchain.run([program, tmp_path], env).stdout.splitlines()
    port = said.pop(0).split()[1]
    log = [(name, *map(int, numbers)) for name, *numbers in map(str.split, said)]
    assert {name for name, *_ in log} == rows("OS", "OS_LOCK", "OS_WAIT") - {"sync"}
    [process] = stream_reader.read_folder(tmp_path / "out")
    calls = recorded(process, process.header.pid)
    first, last = (call.begin for call in process.calls())
    calls = [(name, r) for name, r in calls if first < r.begin < last]
    told, rest = collections.deque(calls), []
    for name, ns, disturbed, error, result in log:
        if ns < threshold_ns - NEAR_NS:
            continue
        if not told or told[0][0] != name or told[0][1].duration > ns:
            is_free = name in rows("OS_LOCK")  # a busy machine: it was dropped before it was wanted
            assert is_free or threshold_ns and (disturbed or ns < threshold_ns + NEAR_NS), \
                (name, ns, told and told[0])
            continue
        r = told.popleft()[1]
        assert r.duration <= ns and bool(r.result) == bool(r.args[3]) == (name in FAIL)
        assert not r.args[3] or r.args[3] == error
        if name.startswith(("__read", "read", "write", "pread", "recv", "send")) and \
                not name.endswith("mmsg"):
            assert r.args[2] == result, (name, r)
        rest.append((name, r))
    assert not told, told
    assert len(rest) >= (len(log) - 9 if threshold_ns == 0 else 50)
    for name, r in rest:
        if name == "open":
            assert r.text.decode() in (str(tmp_path / "fifo"), str(tmp_path / "file"))
        elif name in ("read", "poll", "splice"):
            assert r.text.startswith(b"pipe:[") and r.args[0] > 0
        elif name == "connect":
            assert r.text.decode() == f"127.0.0.1:{port}"
        assert bool(r.args[1]) == name.startswith(("pthread_", "sem_", "syscall", "m")), (name, r)
    assert all(bool(r.stack) == (r.duration >= 1_000_000) for _, r in rest
               if abs(r.duration - 1_000_000) > 1000)
    assert process.counters["os_dropped"] == 0
    costs = {record.text: record.args for record in process.of_type(stream_reader.COST)}
    assert costs[b"os"][0] >= len(rest) - 1  # the first of a thread is part of its start
    check_table(run_verb, tmp_path / "out", recorded(process))


def check_table(run_verb, folder, calls):
    """The report's table is the sums of the records."""
    rows_of = collections.defaultdict(list)
    for name, r in calls:
        rows_of[name, r.text.decode() if r.text else None].append(r)
    report = json.loads(run_verb("report", "--table=os", "--format=json", folder).stdout)
    assert {(row["function"], row["peer"]) for row in report["os"]} == set(rows_of)
    for row in report["os"]:
        its = rows_of[row["function"], row["peer"]]
        assert row["calls"] == len(its) and row["bytes"] == sum(r.args[2] for r in its)
        assert row["failed"] == sum(bool(r.args[3]) for r in its)
        sum_ns = sum(r.duration for r in its)  # which anchors correct
        assert row["total_ns"] == pytest.approx(sum_ns, rel=1e-4, abs=1000)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_a_sanitizer_says_no_more(library, os_library, tmp_path, kind):
    """It hooks the same functions: each is still told of, and it finds what it finds without us."""
    env, link = environment(tmp_path / "out", [library, os_library], GPUPROF_OS="0",
                            ASAN_OPTIONS="verify_asan_link_order=0", TSAN_OPTIONS="exitcode=3")
    program = toolchain.build("os_work.c", *link, "-pthread", f"-fsanitize={kind}")
    bare = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
    summaries = []
    for name, its in ("without", bare), ("with", env):
        (tmp_path / name).mkdir()
        done = toolchain.run([program, tmp_path / name], its, status=3 if kind == "thread" else 0)
        summaries.append(re.findall(r"SUMMARY: (.*)", done.stderr))
    assert summaries[0] == summaries[1]
    [process] = stream_reader.read_folder(tmp_path / "out")
    told = {name for name, _ in recorded(process, process.header.pid)}
    assert len(rows("OS", "OS_LOCK", "OS_WAIT") - {"sync"} - told) <= 9  # a free lock is not


def test_free_locks_and_short_reads_leave_nothing(library, os_library, tmp_path):
    env, link = environment(tmp_path / "out", [library, os_library], GPUPROF_OS="100us")
    toolchain.run([toolchain.build("os_work.c", *link, "-pthread"), tmp_path, "free"], env)
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert len(process.of_type(OS_CALL)) <= 20  # a busy machine: a read may be interrupted
    assert not [name for name, _ in recorded(process) if "mutex" in name]


def test_exports(os_library):
    lines = subprocess.run(["nm", "-D", "--defined-only", os_library], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    exported = {line.split()[-1] for line in lines}
    wanted = rows("OS", "OS_LOCK", "OS_WAIT", "OS_SIGNAL")
    assert exported == wanted and len(wanted) > 100, exported ^ wanted
    dynamic = subprocess.run(["readelf", "-dW", os_library], check=True, text=True,
                             capture_output=True).stdout
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert "TEXTREL" not in dynamic and "NODELETE" in dynamic and "STATIC_TLS" in dynamic


@pytest.mark.parametrize("threshold, sample", [("0", "off"), ("100us", "off"), ("60s", "off"),
                                               ("0", "1000")])
def test_a_program_sees_nothing_of_it(library, os_library, tmp_path, threshold, sample):
    """Cancelled, interrupted, in handlers, after vfork: as without us, also where each call before
    the first one of CUDA has its stack taken."""
    env, link = environment(tmp_path / "out", [library, os_library], GPUPROF_OS=threshold,
                            GPUPROF_SAMPLE=sample, GPUPROF_OS_BACKTRACE="0")
    program = toolchain.build("os_same.cc", *link, "-pthread", "-O2", "-D_FORTIFY_SOURCE=2",
                              compiler="g++")
    transcripts = []
    for name in "without", "with":
        (tmp_path / name).mkdir()
        if name == "without":
            bare = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
        transcripts.append(toolchain.run([program, tmp_path / name],
                                         env if name == "with" else bare))
    without, with_us = transcripts
    assert with_us.stdout == without.stdout and "storm: 0 wrong" in without.stdout
    for run_env in bare, env:
        done = toolchain.run([program, ".", "overflow"], run_env, status=-6)
        assert "buffer overflow detected" in done.stderr
    if sample != "off":  # children of forks record, too
        return
    [process] = stream_reader.read_folder(tmp_path / "out")
    cancelled = [name for name, r in recorded(process) if r.args[3] == errno.ECANCELED]
    wanted = ["read", "poll", "select", "sleep", "pause", "open", "sem_wait", "pthread_join",
              "pthread_cond_wait", "pause", "read"] if threshold != "60s" else []
    if threshold == "0":
        wanted += ["sem_wait"]  # it was due, and did not wait; as a pause may have been
    elif wanted:
        wanted = set(wanted)
        cancelled = set(cancelled)
    assert sorted(cancelled) == sorted(wanted)
    assert not process.losses


CALLERS = {"libnone.so": [], "librunpath.so": ["-Wl,--enable-new-dtags,-rpath,$ORIGIN/two"],
           "librpath.so": ["-Wl,--disable-new-dtags,-rpath,$ORIGIN/two"],
           "libelsewhere.so": ["-Wl,--enable-new-dtags,-rpath,$ORIGIN/one"]}


@pytest.mark.parametrize("link,callers,seen", [
    # What is recorded: of the program four (not $ORIGIN, not NULL), of a library likewise, with
    # RUNPATH only what is given with its folder, with RPATH nothing, nor of those loaded after it.
    ("--enable-new-dtags,-rpath,$ORIGIN/nowhere", ["libnone.so", "librunpath.so"], 1 + 4 + 1),
    ("--disable-new-dtags,-rpath,$ORIGIN/one", ["libnone.so", "librunpath.so", "librpath.so"],
     4 + 4 + 1 + 0),
    ("--disable-new-dtags,-rpath,$ORIGIN/two", ["librpath.so", "libnone.so", "libelsewhere.so"],
     4 + 0 + 0),
])
def test_dlopen_finds_what_its_caller_would(library, os_library, tmp_path, link, callers, seen):
    """By RUNPATH, RPATH, $ORIGIN, in its namespace, and so what is found finds what it needs."""
    def make(name, *flags):
        subprocess.run(["gcc", "-w", "-D_GNU_SOURCE", f"-I{toolchain.SIM_INCLUDE}",
                        toolchain.SOURCES / "load_paths.c", "-o", tmp_path / name, *flags],
                       check=True)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        make(f"{folder}/libplain.so", "-shared", "-fPIC", "-DFOUND=plain",
             "-Wl,-soname,libplain.so")
        make(f"{folder}/libneeds.so", "-shared", "-fPIC", "-DFOUND=needs", "-DNEEDED=plain",
             f"-L{tmp_path}/one", "-lplain")
    for name in callers:
        make(name, "-shared", "-fPIC", *CALLERS[name])
    env, cudart = environment(tmp_path / "out", [library, os_library], GPUPROF_OS="0")
    make("program", "-DPROGRAM", *cudart, f"-Wl,{link}")
    bare = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
    without, with_us = (toolchain.run(["./program", *callers], its, cwd=tmp_path).stdout
                        for its in (bare, env))
    assert with_us == without
    assert "/one/" in without and "/two/" in without
    [process] = stream_reader.read_folder(tmp_path / "out")
    program = len(callers)  # which opens the callers, too; dlmopen is not hooked
    told = [r for name, r in recorded(process) if name == "dlopen"]
    assert len(told) == program - ("libelsewhere.so" in callers) + seen, (told, without)
    assert {r.text.decode() for r in told if r.result < 0} <= {"libz-not-there.so", "libplain.so",
                                                              "libneeds.so", "./one/libneeds.so"}


def life(folder, libraries, *arguments):
    """A program with a library whose constructor comes before ours; its processes."""
    early = toolchain.build("os_early.c", "-shared", "-fPIC")
    env, link = environment(folder, libraries)
    program = toolchain.build("os_life.c", str(early), f"-Wl,-rpath,{early.parent}", *link,
                              "-pthread")
    done = toolchain.run([program, *arguments], env)
    assert done.stdout == "0 wrong\n" and not done.stderr
    return stream_reader.read_folder(folder)


def test_what_was_before_comes_first_and_workers_record(library, os_library, tmp_path):
    """The waits of each thread before it takes part, in its own block; and those of a worker."""
    process, worker = sorted(life(tmp_path / "out", [library, os_library], "cuda"),
                             key=lambda p: -len(p.calls()))
    sleeps = {}
    for name, record in recorded(process):
        if name == "usleep":
            sleeps.setdefault(record.thread, []).append(record.duration // 1_000_000)
    assert sorted(map(len, sleeps.values())) == [1, 4]
    main, other = sorted(sleeps.values(), key=len, reverse=True)
    assert all(ms <= took for ms, took in zip((3, 4, 5, 7), main)) and other[0] >= 6
    assert {"pthread_join", "wait"} <= {name for name, _ in recorded(process)}
    assert not worker.calls() and not worker.losses and not process.losses
    assert len([name for name, _ in recorded(worker) if name == "usleep"]) == 30


def test_what_uses_no_cuda_leaves_nothing(library, os_library, tmp_path):
    assert not life(tmp_path / "out", [library, os_library])
    assert not (tmp_path / "out").exists()


def test_alone_it_lets_all_through(os_library, tmp_path):
    assert not life(tmp_path / "out", [os_library], "cuda")


def test_run_preloads_it_only_for_os(run_collector, library, os_library, monkeypatch):
    for name in ("LD_PRELOAD", "GPUPROF_OS"):
        monkeypatch.delenv(name, raising=False)

    def preloaded(*words, **settings):
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        return run_collector("run", "--quiet", *words, "printenv", "LD_PRELOAD").stdout.strip()
    assert preloaded() == preloaded("--os=off") == str(library)
    both = f"{library}:{os_library}"
    assert preloaded("--os") == preloaded("--os=2ms") == preloaded(GPUPROF_OS="0") == both
    assert preloaded(LD_PRELOAD=both) == both
    assert preloaded("--os", LD_PRELOAD="libm.so.6") == f"{both}:libm.so.6"


VARIADIC = ("open", "open64", "openat", "openat64", "fcntl", "fcntl64", "ioctl", "syscall")


def test_prototypes_are_the_headers(tmp_path):
    """Of all that the headers declare as it is: not of fortified twins, and of what is variadic."""
    includes = re.findall(r"#include <.*", (FOLDER / "os_wrappers.c").read_text())
    skipped = {name for name in rows("OS") if name.startswith("__")} | {*VARIADIC, "sync"}
    source = tmp_path / "prototypes.cc"
    source.write_text("\n".join(includes) + """
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#define IS(symbol, returns, params) returns (*is_##symbol) params = symbol;
#define OS(symbol, class, fails, returns, params, ...) IS_##symbol(symbol, returns, params)
#define OS_LOCK(symbol, class, try_symbol, params, ...) IS(symbol, int, params)
#define OS_WAIT(symbol, params, ...) IS(symbol, int, params)
#define OS_SIGNAL(symbol) IS(symbol, int, (pthread_cond_t *))
#define OS_REAL(symbol, params) IS(symbol, int, params)
""" + "\n".join(f"#define IS_{name}(symbol, returns, params) "
                + ("" if name in skipped else "IS(symbol, returns, params)")
                for name in rows("OS")) + '\n#include "host/os/os_functions.def"\n')
    subprocess.run(["g++", "-fsyntax-only", "-Wall", "-Werror", "-D_GNU_SOURCE",
                    f"-I{conftest.ROOT}/inject", source], check=True)


@pytest.mark.parametrize("unwinder", ["libunwind", "own-first"])
def test_nothing_is_allocated_in_an_allocators_calls(library, os_library, tmp_path, unwinder):
    """It holds its lock when it maps memory, and when it has waited for that lock."""
    env, link = environment(tmp_path / "out", [library, os_library], GPUPROF_OS="0",
                            GPUPROF_OS_BACKTRACE="0", GPUPROF_UNWINDER=unwinder)
    program = toolchain.build("os_malloc.c", *link, "-pthread", "-O1", "-fno-builtin")
    assert toolchain.run([program], env).stdout == "done\n"
    [process] = stream_reader.read_folder(tmp_path / "out")
    maps = [r for name, r in recorded(process) if name == "mmap"]
    assert len(maps) > 30 and not process.losses


@pytest.mark.long
def test_strace_sees_the_same(library, os_library, tmp_path):
    """A second witness: to each call that lasted a system call of the main thread, in their order.
    strace makes each call of ours longer by its own stops, never shorter."""
    strace = shutil.which("strace") or pytest.skip("strace is not installed")
    env, link = environment(tmp_path / "out", [library, os_library])
    program = toolchain.build("os_work.c", *link, "-pthread")
    preload = env.pop("LD_PRELOAD")
    toolchain.run([strace, "-f", "-T", "-o", tmp_path / "log", "-E", f"LD_PRELOAD={preload}",
                   program, tmp_path], env)
    [process] = stream_reader.read_folder(tmp_path / "out")
    last = r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\(| resumed).*<(\d+\.\d+)>$"
    lines = re.findall(last, (tmp_path / "log").read_text(), re.MULTILINE)
    seen = [(name, float(s) * 1e9) for pid, name, s in lines
            if int(pid) == process.header.pid and float(s) >= 0.002]
    told = [(name, r.duration) for name, r in recorded(process, process.header.pid)
            if r.duration >= 2_000_000]
    at = found = 0
    for _, duration in told:  # between two of them may be what our own code or the loader waits for
        near = [i for i in range(at, min(at + 6, len(seen)))
                if duration - 2e6 < seen[i][1] < duration + 1e5]
        found += bool(near)
        at = near[0] + 1 if near else at
    assert len(told) >= 50 and found >= 0.9 * len(told), (found, seen, told)
