# SPDX-License-Identifier: Apache-2.0
"""Programs whose calls go past every hook: the driver itself brings us in."""

import collections
import signal

import conftest
import pytest
import stream_reader
import toolchain
import truth

WORK = ["basic", "graph", "fail", "threads", "4", "100"]


def plugin(major):
    return toolchain.build("runtime_work.c", *toolchain.runtime(major), "-DPLUGIN", "-shared",
                           "-fPIC")


@pytest.mark.parametrize("major", [12, 13])
def test_deepbind(library, tmp_path, major):
    """With RTLD_DEEPBIND no hook sees anything; CUPTI's callbacks show all calls."""
    program = toolchain.build("plugin_host.c", "-DDEEP")
    log = tmp_path / "log"
    log.mkdir()
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on", SIMCUDA_LOG=log)
    done = toolchain.run([program, plugin(major), *WORK], env, status=3)
    bare = toolchain.run([program, plugin(major), *WORK], toolchain.environment(None), status=3)
    assert done.stdout == bare.stdout
    [process] = stream_reader.read_folder(tmp_path / "out")
    [path] = log.iterdir()
    made = collections.Counter(line.symbol for thread in truth.read_log(path) for line in thread
                               if line.depth == 0 and not truth.UNRECORDED.fullmatch(line.symbol))
    seen = collections.Counter(c.symbol for c in process.calls())
    if major == 12:  # libcupti 12.4 has no callback for what came with 12.8
        del made["cudaMemcpyBatchAsync"]
    assert sum(made.values()) > 400 and seen == made
    kernels = sum(r.type == list(stream_reader.TYPE_NAMES.values()).index("kernel") + 1
                  for r in process.records)
    assert kernels > 300


def test_queries_past_the_hooks_leave_nothing(library, tmp_path):
    program = toolchain.build("plugin_host.c", "-DDEEP")
    queries = toolchain.build("queries.c", *toolchain.runtime(13), "-Dmain=run", "-shared", "-fPIC")
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on")
    toolchain.run([program, queries], env, status=None)
    assert not (tmp_path / "out").exists()


def driver_loads_us(library, folder, **settings):
    """The environment of a program that `gpuprof run` started, and that then lost LD_PRELOAD."""
    values = toolchain.environment(folder, library, GPUPROF_GPU="on", CUDA_INJECTION64_PATH=library,
                                   NVTX_INJECTION64_PATH=library, **settings)
    del values["LD_PRELOAD"]
    return values


@pytest.mark.parametrize("way", ["12", "13", "static"])
@pytest.mark.parametrize("threshold", ["off", "0"])
def test_without_the_preload(library, tmp_path, way, threshold):
    """The driver alone loads us, behind libc: callbacks show every call, as a call of the driver's
    if it has begun by then, or if the libcupti has none for it in a static runtime."""
    flags = toolchain.STATIC if way == "static" else toolchain.runtime(int(way))
    program = toolchain.build("runtime_work.c", *flags)
    log = tmp_path / "log"
    log.mkdir()
    env = driver_loads_us(library, tmp_path / "out", SIMCUDA_LOG=log,
                          GPUPROF_BACKTRACE_THRESHOLD=threshold)
    done = toolchain.run([program, *WORK], env, status=3)
    bare = toolchain.run([program, *WORK], toolchain.environment(None), status=3)
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    [process] = stream_reader.read_folder(tmp_path / "out")
    [path] = log.iterdir()
    made = collections.Counter(line.symbol for thread in truth.read_log(path) for line in thread
                               if line.depth == 0 and not truth.UNRECORDED.fullmatch(line.symbol))
    seen = collections.Counter(c.symbol.removesuffix("_v2") if c.symbol.startswith("cuda")
                               else c.symbol for c in process.calls())
    if way == "12":  # libcupti 12.4 has no callback for what came with 12.8
        del made["cudaMemcpyBatchAsync"]
    assert sum(made.values()) > 400 and sum(seen.values()) == sum(made.values())
    late = set(made - seen) - ({"__cudaLaunchKernel"} if way == "static" else set())
    assert len(late) <= 1 and all(name.startswith("cu") and not name.startswith("cuda")
                                  for name in seen - made)


def test_without_the_preload_and_cupti(library, tmp_path):
    """Nothing can be recorded then; the program runs, and one line says why."""
    program = toolchain.build("runtime_work.c", *toolchain.runtime(13))
    env = driver_loads_us(library, tmp_path / "out", GPUPROF_CUPTI="/nonesuch")
    done = toolchain.run([program, *WORK], env, status=3)
    bare = toolchain.run([program, *WORK], toolchain.environment(None), status=3)
    assert done.stdout == bare.stdout and not (tmp_path / "out").exists()
    assert done.stderr.startswith("gpuprof: nothing is recorded: libgpuprof.so is not preloaded, "
                                  "and CUPTI gives no records: no usable libcupti: /nonesuch: ")
    assert done.stderr.count("\n") == 1


def test_somebody_elses_injection_is_kept(library, tmp_path):
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on",
                                CUDA_INJECTION64_PATH="/somebody/else.so")
    done = toolchain.run(["sh", "-c", "echo $CUDA_INJECTION64_PATH"], env)
    assert done.stdout == "/somebody/else.so\n"
    env.pop("CUDA_INJECTION64_PATH")
    assert toolchain.run(["sh", "-c", "echo $CUDA_INJECTION64_PATH"], env).stdout == f"{library}\n"


def test_capture_range_without_the_preload(library, tmp_path):
    """The process is asked to end by our own signal, which goes past libc's and our own hooks."""
    program = toolchain.build("windows_work.c", *toolchain.runtime(13),
                              f"-I{conftest.ROOT / 'inject/range'}", "-DNVTX")
    env = driver_loads_us(library, tmp_path / "out", GPUPROF_CAPTURE_RANGE="nvtx:serve",
                          GPUPROF_CAPTURE_RANGE_END="exit")
    toolchain.run([program, "1", "<serve", "2", ">", "3", "z5000"], env, status=-signal.SIGTERM)
