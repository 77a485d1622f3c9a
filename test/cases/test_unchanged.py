# SPDX-License-Identifier: Apache-2.0
"""A program cannot tell whether it is profiled; and what the library shows of itself."""

import re
import shutil
import subprocess

import conftest
import pytest
import toolchain

FORMATS = conftest.ROOT / "formats"
COMPILERS = ["gcc", "clang"]
LEVELS = ["-O0", "-O2"]


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_exports(library):
    """The table's names, libc's, the ways in, gpuprof.h's, libc10's, ASan's and TSan's."""
    wanted = {"dlsym", "dlvsym", "dlclose", "_exit", "_Exit", "InitializeInjection",
              "InitializeInjectionNvtx2", "__asan_default_options", "__tsan_default_options",
              "abort", "__assert_fail", "__assert_perror_fail", "raise", "kill", "killpg",
              "sigqueue", "tgkill", "pthread_kill", "sigaction", "signal", "sigwait", "sigwaitinfo",
              "sigtimedwait", "signalfd", "sigpending"}
    wanted |= {f"gpuprof_{name}" for name in ("range_push", "range_pop", "mark", "step", "start",
                                              "stop", "dump", "os_v1")}
    names = """
#define API(id, symbol, ...) symbol
#define DISPATCH(symbol, ...) symbol
#define HOOK(symbol, domain, ...) symbol
#define LIBRARY(symbol, ...) symbol
#include "api/api.def"
"""
    wanted |= set(subprocess.run(["gcc", "-E", "-P", f"-I{FORMATS}", "-"], input=names, text=True,
                                 stdout=subprocess.PIPE, check=True).stdout.split())
    wanted |= {f"_ZN3c10{name}NS_6DeviceE" for name in (
        "27reportMemoryUsageToProfilerEPvlmm", "27reportMemoryUsageToProfilerEPvlll",
        "27reportOutOfMemoryToProfilerElmm", "27reportOutOfMemoryToProfilerElll")}
    assert len(wanted) > 400
    lines = tool("nm", "-D", "--defined-only", library).splitlines()
    exported = {line.split()[-1].partition("@")[0] for line in lines}
    assert exported == wanted, exported ^ wanted
    assert all(line.split()[1] == "T" for line in lines)


def test_dynamic_section(library):
    dynamic = tool("readelf", "-dW", library)
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "NODELETE" in dynamic and "STATIC_TLS" in dynamic
    segments = tool("readelf", "-lW", library)
    [stack] = [line for line in segments.splitlines() if "GNU_STACK" in line]
    assert " RWE " not in stack and " RW " in stack
    [tls] = [line.split() for line in segments.splitlines() if line.split()[:1] == ["TLS"]]
    # About half of what glibc keeps for what dlopen brings, as for CUDA_INJECTION64_PATH.
    assert int(tls[5], 16) <= 848
    assert "GLIBC_PRIVATE" not in tool("nm", "-D", library)


# Of pthreads(7), and what glibc has beside: what it calls may end a thread of the program's.
CANCELLATION = set("""accept accept4 aio_suspend clock_nanosleep close connect creat epoll_pwait
    epoll_wait fallocate fdatasync fsync getrandom lockf msgrcv msgsnd msync nanosleep open open64
    openat openat64 pause poll ppoll pread pread64 preadv pselect pthread_cond_timedwait
    pthread_cond_wait pthread_join pthread_testcancel pwrite pwrite64 pwritev read readv recv
    recvfrom recvmsg select sem_timedwait sem_wait send sendmsg sendto sigpause sigsuspend
    sigtimedwait sigwait sigwaitinfo sleep splice sync_file_range system tcdrain tee usleep wait
    wait3 wait4 waitid waitpid write writev fopen fclose fread fwrite fprintf fputs dprintf
    opendir readdir""".split())


def test_it_cancels_no_thread(library, tmp_path):
    """A call of CUDA's is no place where a thread is cancelled: nor is what we do in it."""
    names = tool("nm", "-D", "--undefined-only", library).split()
    assert not CANCELLATION & {name.partition("@")[0] for name in names}
    program = toolchain.build("cancelled.c", *toolchain.runtime(12), "-pthread")
    for settings in {"GPUPROF_GPU": "on"}, {"GPUPROF_GPU": "on", "GPUPROF_SAMPLE": "1000",
                                            "GPUPROF_BACKTRACE_THRESHOLD": "0"}:
        plain, profiled = both(program, library, tmp_path, **settings)
        same(plain, profiled)
        assert plain.stdout == "4 of 4, 4 destroyed\n"


def both(program, library, folder, *arguments, **settings):
    """(plain, profiled) results of a program."""
    plain = toolchain.environment(folder, **settings)
    profiled = toolchain.environment(folder / "out", library, **settings)
    command = [program, *arguments]
    return (toolchain.run(command, plain, status=None, cwd=folder),
            toolchain.run(command, profiled, status=None, cwd=folder))


def same(plain, profiled):
    assert profiled.stdout == plain.stdout
    assert profiled.stderr == plain.stderr
    assert profiled.returncode == plain.returncode


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("way", ["12", "13", "static"])
def test_output(library, tmp_path, compiler, level, way):
    """Results, errno after each call, status."""
    flags = toolchain.STATIC if way == "static" else toolchain.runtime(int(way))
    program = toolchain.build("runtime_work.c", *flags, level, compiler=compiler)
    plain, profiled = both(program, library, tmp_path, "basic", "graph", "fail",
                           SIMCUDA_TIMELINE="off")
    same(plain, profiled)
    assert plain.returncode == 3 and plain.stdout.count("errno 12345") > 200
    assert list((tmp_path / "out").glob("*.gpuprof"))


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """librunpath.so, whose RUNPATH leads to a folder that nobody else looks into."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    only = toolchain.build("lookups.c", "-DONLY_THERE", "-shared", "-fPIC")
    shutil.copy(only, hidden / "libonly_there.so")
    runpath = toolchain.build("lookups.c", "-DLIBRARY", "-shared", "-fPIC",
                              "-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/hidden")
    shutil.copy(runpath, tmp_path / "librunpath.so")
    return tmp_path


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("cuda", ["without", "linked"])
def test_lookups(library, folder, compiler, level, cuda):
    flags = ()
    if cuda == "linked":
        flags = ("-DWITH_CUDA", *toolchain.runtime(12), *toolchain.DRIVER)
    program = toolchain.build("lookups.c", *flags, level, compiler=compiler)
    plain, profiled = both(program, library, folder, folder)
    if cuda == "linked":  # what a linked program finds may be a hook, which stands for it
        plain.stdout = re.sub(r": libcud(a|art)[.\w]*,", ": hooked,", plain.stdout)
        profiled.stdout = re.sub(r": libcud(a|art)[.\w]*,", ": hooked,", profiled.stdout)
    # dlerror() names the object that asked. Where it asks for all objects, and only our own export
    # would have been found, it names us: the one difference that is left, in a text for people.
    for done in (plain, profiled):
        done.stdout = re.sub(r"^((?:library: )?(?:default|program's) cu\w+: nothing), .*: undef",
                             r"\1, OBJECT: undef", done.stdout, flags=re.MULTILINE)
    assert "RUNPATH: libonly_there.so, no error" in plain.stdout
    same(plain, profiled)
    if cuda == "without":
        assert "default cudaMalloc: nothing" in profiled.stdout
        assert not (folder / "out").exists()


@pytest.mark.parametrize("order", ["before", "after"])
def test_lookups_beside_another_hook(library, folder, order):
    """What another preload has brought is found, and nothing else, even if it hooks dlsym, too."""
    other = toolchain.build("other_hook.c", "-shared", "-fPIC")
    program = toolchain.build("lookups.c")
    both_ways = f"{other}:{library}" if order == "before" else f"{library}:{other}"
    found = []
    for preload in (other, both_ways):
        env = toolchain.environment(folder / "out", LD_PRELOAD=preload)
        done = toolchain.run([program, folder], env, status=None, cwd=folder)
        found.append(re.findall(r"^((?:library: )?(?:default|program's|next) cu\w+): (nothing)?",
                                done.stdout, re.MULTILINE))
    assert found[0] == found[1] and ("default cudaMalloc", "") in found[0]


@pytest.mark.parametrize("hide", ["nothing", "libcuda", "libcudart"])
def test_missing_cuda(library, tmp_path, hide):
    """A runtime without a driver, a program without a runtime: the same errors as ever."""
    sim = tmp_path / "sim"
    sim.mkdir()
    for path in toolchain.SIM.glob("*.so*"):
        if not path.name.startswith(hide + "."):
            (sim / path.name).symlink_to(path.resolve())
    program = toolchain.build("runtime_work.c", *toolchain.runtime(12), "-Wl,-z,now")
    plain, profiled = both(program, library, tmp_path, "fail", LD_LIBRARY_PATH=sim,
                           SIMCUDA_TIMELINE="off")
    same(plain, profiled)
    assert (plain.returncode == 127) == (hide == "libcudart")
