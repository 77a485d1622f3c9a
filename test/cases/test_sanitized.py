# SPDX-License-Identifier: Apache-2.0
"""The buffers of the injected library under ThreadSanitizer, AddressSanitizer and UBSan."""

import collections
import os
import shutil
import struct
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

# The parts that meet CUDA or hook the process cannot be in a program with a sanitizer of its own.
LEFT_OUT = {"dlsym_filter", "getproc", "hooks", "kernel_hooks", "finish", "unload",
            "stream_hooks", "compress_stored"}


def sources():
    inject = [p for p in sorted((conftest.ROOT / "inject").glob("*.c")) if p.stem not in LEFT_OUT
              and not p.stem.startswith(("gpu", "cupti"))]
    formats = [conftest.ROOT / "formats" / f"{name}.c" for name in
               "api block block_encode column cost crc32c record settings stream zframe".split()]
    return inject + formats


@pytest.fixture(name="stress", scope="module")
def fixture_stress(tmp_path_factory):
    made = {}

    def build(kind):
        if kind in made:
            return made[kind]
        made[kind] = target = tmp_path_factory.mktemp("stress") / f"stress-{kind.partition(',')[0]}"
        subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={kind}",
                        "-fno-sanitize-recover=all", "-D_GNU_SOURCE",
                        '-DGPUPROF_RELEASE="test"', f"-I{conftest.ROOT}/inject",
                        f"-I{conftest.ROOT}/formats", toolchain.SOURCES / "stress.c",
                        toolchain.SOURCES / "stress_finish.c", *sources(), "-o", target,
                        "-pthread", "-l:libzstd.a"], check=True)
        return target
    return build


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("version, megabytes, lead, refuses", [
    (22, 4, 40, False), (22, 64, 16, False), (130000, 4, 1000, True), (130000, 64, 16, False)])
def test_gpu_buffers(tmp_path, kind, version, megabytes, lead, refuses):
    """Threads fill CUPTI's buffers while one parses; a buffer is never two owners' at a time."""
    target = tmp_path / "buffers"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={kind}",
                    "-fno-sanitize-recover=all", "-D_GNU_SOURCE", f"-I{conftest.ROOT}/inject",
                    f"-I{conftest.ROOT}/formats", toolchain.SOURCES / "buffers_stress.c",
                    conftest.ROOT / "inject" / "gpu_buffers.c", "-o", target, "-pthread"],
                   check=True)
    done = subprocess.run([target, str(version), str(megabytes), str(lead), "8", "3000"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr[:5000]
    filled, taken, refused = map(int, done.stdout.split())
    assert filled == taken and filled + refused == 8 * 3000
    assert (refused > 0) == refuses


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
def test_stress_over_budget(stress, tmp_path, kind):
    """Threads time calls and pass calls by, while the writer reads and counts them."""
    done = subprocess.run([stress(kind), "8", "20000"], capture_output=True, text=True, check=False,
                          env={"GPUPROF_OUT": str(tmp_path / "out"), "GPUPROF_LIVE": str(tmp_path),
                               "GPUPROF_SEAL": "10ms", "GPUPROF_WAIT": "60s",
                               "STRESS_PAUSE_US": "5000",
                               "GPUPROF_OVERHEAD_MAX": "0.0001%", "TSAN_OPTIONS": "exitcode=66"})
    assert done.returncode == 3, done.stderr[:5000]
    assert all("--overhead-max" in line for line in done.stderr.splitlines()), done.stderr[:5000]
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses and process.of_type(stream_reader.STEP_DOWN)
    passed = process.counters["passed_by"]
    calls = process.of_type(stream_reader.CALL)
    assert len(calls) + passed == int(done.stdout) and passed > 0
    assert any(c.weight > 1 for c in calls)


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("buffer", ["1M", "64M"])
def test_stress(stress, tmp_path, kind, buffer):
    done = subprocess.run([stress(kind), "8", "4000"], capture_output=True, text=True, check=False,
                          env={"GPUPROF_OUT": str(tmp_path / "out"), "GPUPROF_BUFFER": buffer,
                               "GPUPROF_LIVE": str(tmp_path), "GPUPROF_CHUNK": "16K",
                               "GPUPROF_SEAL": "10ms", "GPUPROF_WAIT": "60s",
                               "TSAN_OPTIONS": "exitcode=66"})
    assert done.returncode == 3, done.stderr[:5000]
    assert done.stderr == ""
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses
    assert len(process.calls()) == int(done.stdout)
    depths = collections.Counter()
    for record in process.records:  # a range that is over before anybody's first call is not there
        depths[record.thread, "pushed"] += record.type == stream_reader.PUSH
        depths[record.thread, "popped"] += record.type == stream_reader.POP
    assert sum(depths.values()) > 2000
    assert all(depths[t, "pushed"] == depths[t, "popped"] for t, _ in list(depths))


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("unwinder", ["libunwind", "own"])
def test_stacks_stress(stress, tmp_path, kind, unwinder):
    """GPUPROF_TEST_STRESS_SECONDS says for how long."""
    program = tmp_path / "stress"
    shutil.copy(stress(kind), program)
    ours = [conftest.BUILD / f"libgpuprof-{name}.so" for name in ("unwind", "lzma")]
    if unwinder == "libunwind":
        if not ours[0].exists():
            pytest.skip("not run: no libgpuprof-unwind.so (libunwind-dev, patchelf)")
        for path in ours:  # it is looked for beside the object that is gpuprof
            shutil.copy(path, tmp_path)
    plugin = toolchain.build("stress_plugin.cc", "-O1", "-shared", "-fPIC", compiler="g++")
    shutil.copy(plugin, tmp_path / "copy.so")
    seconds = float(os.environ.get("GPUPROF_TEST_STRESS_SECONDS", "2"))
    # The loader's lock, under which it writes and we read a path, is not known to the sanitizer.
    (tmp_path / "known").write_text("race:write_path\n")
    done = subprocess.run([program, "10", str(seconds), plugin, tmp_path / "copy.so"],
                          capture_output=True, text=True, check=False, timeout=60 + 2 * seconds,
                          env={"GPUPROF_OUT": str(tmp_path / "out"), "GPUPROF_WAIT": "60s",
                               "GPUPROF_LIVE": str(tmp_path), "GPUPROF_CHUNK": "16K",
                               "GPUPROF_UNWINDER": unwinder, "GPUPROF_BACKTRACE_THRESHOLD": "0",
                               "GPUPROF_EXIT_WAIT": "60s",
                               "TSAN_OPTIONS": f"exitcode=66:suppressions={tmp_path}/known:"
                                               "print_suppressions=0"})
    assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses
    check_stacks(process, int(done.stdout), {str(plugin), str(tmp_path / "copy.so")})


def check_stacks(process, count, plugins):
    """As many calls; each has a stack, which begins in the plugin."""
    calls = [r.stack for r in process.of_type(stream_reader.CALL)]
    assert len(calls) == count > 1000 and all(calls)
    paths = {r.args[0]: r.text.decode().partition(" ")[2] for r in
             process.of_type(stream_reader.MODULE)}
    stacks = {r.args[0]: struct.unpack_from("<Q", r.text)[0]
              for r in process.of_type(stream_reader.STACK)}
    assert {paths[stacks[number] >> 40 & 0xFFFFF] for number in set(calls)} == plugins
