# SPDX-License-Identifier: Apache-2.0
"""Much at once: nothing lost, nothing doubled; and a recording without a compressor."""

import collections
import os
import pathlib
import shutil
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

THREADS, LAUNCHES = 8, 1_000_000


def counted(log):
    """symbol -> calls of the outermost layer, from a log in counts mode."""
    counts = collections.Counter()
    text = pathlib.Path(log).read_bytes().translate(None, b"\0").decode()
    for line in text.splitlines():
        kind, _, _, depth, symbol, _, digits = line.split("\t")
        if kind == "C" and depth == "0":
            counts[symbol] += int(digits)
    return counts


def test_eight_million_launches(library, tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    log.mkdir()
    program = toolchain.build("runtime_work.c", *toolchain.runtime(12), "-O2")
    env = toolchain.environment(out, library, SIMCUDA_LOG=log, SIMCUDA_LOG_MODE="counts",
                                SIMCUDA_TIMELINE="off", GPUPROF_WAIT="60s")
    done = toolchain.run([program, "launches", THREADS, LAUNCHES], env, status=3)
    assert done.stderr == ""
    [stream], [counts] = out.glob("*.gpuprof"), log.iterdir()
    truth = counted(counts)
    assert truth["cudaLaunchKernel"] == THREADS * LAUNCHES
    subprocess.run(["zstd", "-tq", stream], check=True)
    found, functions, counters, named = stream_reader.count_calls(stream)
    assert named == THREADS + 1
    symbols = collections.Counter()
    threads = collections.Counter()
    for (thread, code), count in found.items():
        symbols[functions[code].symbol] += count
        threads[thread] += count if functions[code].symbol == "cudaLaunchKernel" else 0
    assert symbols["cudaLaunchKernel"] == truth["cudaLaunchKernel"]
    assert symbols["cudaDeviceSynchronize"] == truth["cudaDeviceSynchronize"] == 1
    assert sorted(n for n in threads.values() if n) == [LAUNCHES] * THREADS
    assert not any(counters.get(name) for name in stream_reader.LOSSES), counters
    assert stream.stat().st_size < 8 * THREADS * LAUNCHES


@pytest.mark.parametrize("on_full", ["wait", "drop"])
def test_small_buffer(library, run_collector, tmp_path, on_full):
    """The least of buffers: what does not fit is counted, and nothing else is missing."""
    log, out = tmp_path / "log", tmp_path / "out"
    log.mkdir()
    program = toolchain.build("runtime_work.c", *toolchain.runtime(12), "-O2")
    env = toolchain.environment(out, library, SIMCUDA_LOG=log, SIMCUDA_LOG_MODE="counts",
                                SIMCUDA_TIMELINE="off", GPUPROF_BUFFER="1M", GPUPROF_CHUNK="16K",
                                GPUPROF_ON_FULL=on_full, GPUPROF_WAIT="60s")
    done = toolchain.run([program, "launches", "8", "40000"], env, status=3)
    [stream], [counts] = out.glob("*.gpuprof"), log.iterdir()
    found, functions, counters, named = stream_reader.count_calls(stream)
    recorded = sum(n for (_, code), n in found.items() if functions[code].domain == "runtime")
    truth = counted(counts)
    total = truth["cudaLaunchKernel"] + truth["cudaDeviceSynchronize"]
    dropped = counters.get("dropped", 0)
    assert total == 320001
    # A thread's own record may be among what was dropped.
    assert recorded + dropped == total + (THREADS + 1 - named)
    said = "note       the buffer was full"
    assert not done.stderr and (said in run_collector("report", out).stdout) == bool(dropped)
    if on_full == "wait":
        assert dropped == 0 and counters.get("waits", 0) > 0


def test_waiting_thread_holds_no_name_lock(library, tmp_path):
    """A thread that waits for room to write a name does not make others wait who register one."""
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=folder,
                                GPUPROF_BUFFER="1M", GPUPROF_CHUNK="16K", GPUPROF_WAIT="30s",
                                GPUPROF_LIVE=tmp_path)
    done = toolchain.run([toolchain.build("frozen.c", *link)], env, status=None)
    if done.returncode == 9:
        pytest.skip(toolchain.NO_TRACING)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "waits after some: 1, defined at once: 1\n"
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses and process.counters["waits"] > 0
    names = {r.args[0] for r in process.of_type(stream_reader.NAME)}
    launched = [c.args["kernel"] for c in process.calls() if "kernel" in c.args]
    assert len(launched) > 50 and names == set(launched)


def test_killed_while_waiting(library, tmp_path):
    """The calls that a thread is in, when it waits for room in a full buffer, outlive a kill."""
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=folder,
                                GPUPROF_BUFFER="1M", GPUPROF_CHUNK="16K", GPUPROF_WAIT="30s",
                                GPUPROF_LIVE=tmp_path)
    done = toolchain.run([toolchain.build("frozen.c", *link), "killed"], env, status=None)
    if done.returncode == 9:
        pytest.skip(toolchain.NO_TRACING)
    assert done.returncode == -9
    [process] = stream_reader.read_folder(tmp_path / "out")
    calls = process.calls()
    opened = [c for c in calls if c.flags & stream_reader.OPEN]
    assert [(c.symbol, c.args["stream"]) for c in opened] == [("cudaStreamSynchronize", 0x77)]
    sizes = [c.args["bytes"] for c in calls if c.tid == opened[0].tid and c.symbol == "cudaMemset"]
    assert sizes == list(range(1, len(sizes) + 1)) and len(sizes) > 10000
    assert process.counters["waits"] > 0 and not process.losses


@pytest.fixture(name="stored", scope="module")
def fixture_stored():
    """The library as a cross build has it for which there is no libzstd.a: but for one object it is
    made of those that there are."""
    folder = conftest.BUILD / "stored"
    shutil.copytree(conftest.BUILD / "pic", folder / "pic", dirs_exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "MAKE"))}
    done = subprocess.run(["make", "-s", f"BUILD={folder}", "ZSTD_USED=", "lib"], check=False,
                          cwd=conftest.ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done
    symbols = subprocess.run(["nm", folder / "libgpuprof.so"], check=True, capture_output=True,
                             text=True).stdout
    assert "zframe_write" in symbols and "ZSTD" not in symbols
    return folder / "libgpuprof.so"


def test_without_compressor(stored, tmp_path):
    """Frames of raw blocks, which `zstd -t` accepts too."""
    out, log = tmp_path / "out", tmp_path / "log"
    log.mkdir()
    program = toolchain.build("runtime_work.c", *toolchain.runtime(12))
    env = toolchain.environment(out, stored, SIMCUDA_LOG=log, SIMCUDA_TIMELINE="off")
    done = toolchain.run([program, "basic", "threads", "8", "2000"], env, status=3)
    assert done.stderr == ""
    [stream] = out.glob("*.gpuprof")
    subprocess.run(["zstd", "-tq", stream], check=True)
    process = stream_reader.read_stream(stream)
    assert len(process.calls()) > 16000 and not process.losses
    assert all(b.stored_bytes > b.payload_bytes for b in process.blocks)


@pytest.mark.parametrize("level", ["1", "5", "9"])
def test_levels(library, tmp_path, level):
    """Each level compresses, in the memory that was set aside for it."""
    out = tmp_path / "out"
    program = toolchain.build("runtime_work.c", *toolchain.runtime(12), "-O2")
    env = toolchain.environment(out, library, SIMCUDA_TIMELINE="off", GPUPROF_LEVEL=level)
    done = toolchain.run([program, "launches", "4", "60000"], env, status=3)
    assert done.stderr == ""
    [stream] = out.glob("*.gpuprof")
    subprocess.run(["zstd", "-tq", stream], check=True)
    process = stream_reader.read_stream(stream)
    assert len(process.calls()) > 240000 and not process.losses
    assert max(b.payload_bytes for b in process.blocks) > 1 << 15
    assert any(key == "library" and "libcudart.so.12" in path for key, path in process.metas)
    assert all(b.stored_bytes < b.payload_bytes for b in process.blocks)
