# SPDX-License-Identifier: Apache-2.0
"""The buffers of the injected library under ThreadSanitizer, AddressSanitizer and UBSan."""

import collections
import os
import shutil
import subprocess

import conftest
import pytest
import sanitized
import stream_reader
import toolchain

pytestmark = pytest.mark.timeout(600)  # it builds, or waits for another test that does

# Read here: for a test, the environment is clean.
STRESS_SECONDS = float(os.environ.get("GPUPROF_TEST_STRESS_SECONDS", "2"))


def archives(kind):
    """Of inject/ and formats/, with that sanitizer and with assertions.

    What meets CUDA or hooks the process cannot be in a program with a sanitizer of its own: there
    are doubles of that, and libc stands before the library's dlsym and _exit.
    """
    names = ("pic/libinject.a", "pic/libformats.a")
    folder = sanitized.make(kind, *names)
    return ["-lc", *(folder / name for name in names)]


@pytest.fixture(name="stress", scope="module")
def fixture_stress(tmp_path_factory):
    made = {}

    def build(kind, name="stress", flags=()):
        if (kind, name) in made:
            return made[kind, name]
        target = tmp_path_factory.mktemp("stress") / f"{name}-{kind.partition(',')[0]}"
        subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={kind}",
                        "-fno-sanitize-recover=all", "-D_GNU_SOURCE",
                        f"-I{conftest.ROOT}/inject", f"-I{conftest.ROOT}/formats",
                        *(toolchain.SOURCES / f"{part}.c" for part in
                          (name, "stress_calls", "stress_finish")), *archives(kind), "-o", target,
                        "-pthread", "-l:libzstd.a", *flags], check=True)
        made[kind, name] = target
        return target
    return build


def environment(tmp_path, **settings):
    return {"GPUPROF_OUT": str(tmp_path / "out"), "GPUPROF_WAIT": "60s",
            "GPUPROF_LIVE": str(tmp_path), "GPUPROF_CHUNK": "16K", "GPUPROF_EXIT_WAIT": "60s",
            "GPUPROF_GAPS": "on",
            **settings}


def build_buffers(target, kind, source):
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={kind}",
                    "-fno-sanitize-recover=all", "-D_GNU_SOURCE", f"-I{conftest.ROOT}/inject",
                    f"-I{conftest.ROOT}/formats", toolchain.SOURCES / source,
                    conftest.source("inject", "gpu_buffers.c"),
                    conftest.source("inject", "pages.c"), "-o", target, "-pthread"],
                   check=True)


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("version, megabytes, lead, refuses", [
    (22, 4, 40, False), (130000, 4, 1000, True),
    *(pytest.param(version, 64, 16, False, marks=pytest.mark.long) for version in (22, 130000))])
def test_gpu_buffers(tmp_path, kind, version, megabytes, lead, refuses):
    """Threads fill CUPTI's buffers while one parses; a buffer is never two owners' at a time."""
    target = tmp_path / "buffers"
    build_buffers(target, kind, "buffers_stress.c")
    done = subprocess.run([target, str(version), str(megabytes), str(lead), "8", "3000"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr[:5000]
    filled, taken, refused = map(int, done.stdout.split())
    assert filled == taken and filled + refused == 8 * 3000
    assert (refused > 0) == refuses


@pytest.mark.parametrize("megabytes, fill_us, rounds, most", [
    (4, 40_000, 1, 128), (4, 10_000, 2, 64), (128, 0, 3, 520),
    pytest.param(4096, 0, 2, 16400, marks=pytest.mark.long)])
def test_gpu_buffers_take_what_they_may(tmp_path, megabytes, fill_us, rounds, most):
    """Where the parser is held up, all of the memory holds records, however small its buffers."""
    target = tmp_path / "buffers"
    build_buffers(target, "undefined", "buffers_fit.c")
    done = subprocess.run([target, str(megabytes), str(fill_us), str(rounds)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr[:5000]
    sums = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(sums) == rounds
    assert all(bytes_sum == megabytes << 20 and count <= most for bytes_sum, count in sums), sums


@pytest.mark.parametrize("kind", [
    pytest.param("thread", marks=pytest.mark.long), "address,undefined"])
def test_stress_over_budget(stress, tmp_path, kind):
    """Threads time calls and pass calls by, while the writer reads and counts them."""
    passed = 0
    for count in (20000, 50000):  # a machine that is busy may end the first before a step is taken
        out = tmp_path / str(count)
        done = subprocess.run([stress(kind), "8", str(count)], capture_output=True, text=True,
                              check=False,
                              env={"GPUPROF_OUT": str(out), "GPUPROF_LIVE": str(tmp_path),
                                   "GPUPROF_SEAL": "10ms", "GPUPROF_WAIT": "60s",
                                   "STRESS_PAUSE_US": "5000", "GPUPROF_OVERHEAD_MAX": "0.0001%",
                                   "TSAN_OPTIONS": "exitcode=66"})
        assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
        [process] = stream_reader.read_folder(out)
        passed = process.counters["passed_by"]
        calls = process.of_type(stream_reader.CALL)
        assert not process.losses and len(calls) + passed == int(done.stdout)
        if passed:
            break
    assert passed > 0 and process.of_type(stream_reader.STEP_DOWN)
    assert any(c.weight > 1 for c in calls)


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
def test_tensors(stress, tmp_path, kind):
    """What an allocator tells, true or not, beside forks and libraries that go: all is there."""
    done = subprocess.run([stress(kind, "stress_tensors"), "8", "20000"], capture_output=True,
                          text=True, check=False,
                          env=environment(tmp_path, TSAN_OPTIONS="exitcode=66"))
    assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses
    numbers = stream_reader.TYPE_NUMBERS
    assert [len(process.of_type(numbers[name])) for name in ("tensor", "tensor_oom")] == \
        list(map(int, done.stdout.split()))


@pytest.mark.parametrize("kind", [
    pytest.param("thread", marks=pytest.mark.long), "address,undefined"])
@pytest.mark.parametrize("settings", [{}, *(pytest.param(more, marks=pytest.mark.long) for more in (
    {"SIMNVML_SLOW_MS": "3"}, {"SIMNVML_LOST": "9"},
    {"SIMNVML_FAIL": "nvmlDeviceGetFieldValues=hang"}))])
def test_devices(stress, tmp_path, kind, settings):
    """NVML's counters are read while threads come and go, processes fork, recording stops and goes
    on, and to the end. A child's threads are more than a sanitizer of threads follows."""
    calls = "0" if kind == "thread" or "SIMNVML_FAIL" in settings else "20"
    done = subprocess.run([stress(kind, "stress_device"), "900", calls], capture_output=True,
                          text=True, check=False,
                          env=environment(tmp_path, GPUPROF_DEVICE="1", GPUPROF_SEAL="10ms",
                                          GPUPROF_DEVICE_PERIOD="20ms",
                                          LD_LIBRARY_PATH=str(toolchain.SIM),
                                          SIMCUDA_DEVICES="2", TSAN_OPTIONS="exitcode=66",
                                          ASAN_OPTIONS="detect_leaks=0", **settings))
    assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
    process = max(stream_reader.read_folder(tmp_path / "out"), key=lambda p: len(p.records))
    assert not process.losses and len(process.calls()) <= int(done.stdout)
    power = process.of_type(stream_reader.DEVICE_POWER)
    assert {r.args[0] for r in power} == (set() if "SIMNVML_FAIL" in settings else {1, 2})


def test_askers(stress, tmp_path):
    """Threads ask for less to be recorded and take it back, while others call; see asked.c."""
    done = subprocess.run([stress("thread", "asked"), "race", "60"], capture_output=True, text=True,
                          check=False, env=environment(tmp_path, TSAN_OPTIONS="exitcode=66"))
    assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
    assert len(done.stdout.splitlines()) == 60


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
def test_inside_what_is_left_out(stress, tmp_path, kind):
    """Calls that are left out, and left by longjmp, or end on another thread."""
    done = subprocess.run([stress(kind, "asked"), "inner"], capture_output=True, text=True,
                          check=False, env=environment(tmp_path, TSAN_OPTIONS="exitcode=66"))
    assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
    assert done.stdout.splitlines() == [f"{number} 1" for number in range(1, 22)]


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("part, needs", [
    ("stack", ["signals", "pages", "ticks"]),
    ("modules", ["program_file", "cfi", "futex", "signals", "pages", "ticks"]),
    ("status", ["futex", "leader", "proc", "signals"])])
def test_units(tmp_path, kind, part, needs):
    """Those of the unit tests that have threads."""
    units = conftest.ROOT / "test" / "unit"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={kind}",
                    "-fno-sanitize-recover=all", "-D_GNU_SOURCE", f"-I{units}",
                    f"-I{conftest.ROOT}/inject", f"-I{conftest.ROOT}/formats",
                    units / f"test_{part}.c", units / "append_double.c",
                    *(conftest.source("inject", f"{name}.c") for name in [part, *needs]),
                    "-o", tmp_path / part, "-lcmocka", "-pthread"], check=True)
    # Its others have one thread, and far more modules than a sanitizer of threads is quick with.
    only = ["in_parallel"] if (part, kind) == ("modules", "thread") else []
    done = subprocess.run([tmp_path / part, *only], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[:5000]
    assert "in_parallel" in done.stdout + done.stderr or part != "modules"


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("buffer", ["1M", "64M"])
def test_stress(stress, tmp_path, kind, buffer):
    done = subprocess.run([stress(kind), "8", "4000"], capture_output=True, text=True, check=False,
                          env=environment(tmp_path, GPUPROF_BUFFER=buffer, GPUPROF_SEAL="10ms",
                                          GPUPROF_OS="0", TSAN_OPTIONS="exitcode=66"))
    assert done.returncode == 3, done.stderr[:5000]
    assert done.stderr == ""
    [process] = stream_reader.read_folder(tmp_path / "out")
    calls, waited = map(int, done.stdout.split())
    losses = process.losses
    lost = losses.pop("os_dropped", 0)  # who may hold a lock of the program's waits for no room
    assert not losses and (not lost or buffer == "1M")
    assert len(process.calls()) == calls
    found = process.of_type(stream_reader.TYPE_NUMBERS["os_call"])
    assert len(found) + lost == waited > 1000
    depths = collections.Counter()
    for record in process.records:  # a range that is over before anybody's first call is not there
        depths[record.thread, "pushed"] += record.type == stream_reader.PUSH
        depths[record.thread, "popped"] += record.type == stream_reader.POP
    assert sum(depths.values()) > 2000
    assert all(depths[t, "pushed"] == depths[t, "popped"] for t, _ in list(depths))


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
@pytest.mark.parametrize("unwinder", ["libunwind", "own-first"])
def test_stacks_stress(stress, run_collector, tmp_path, kind, unwinder):
    program = tmp_path / "stress"
    shutil.copy(stress(kind), program)
    ours = toolchain.need_unwinder()
    for path in (ours, ours.with_name("libgpuprof-lzma.so")):
        shutil.copy(path, tmp_path)  # it is looked for beside the object that is gpuprof
    plugin = toolchain.build("stress_plugin.cc", "-O1", "-shared", "-fPIC", compiler="g++")
    shutil.copy(plugin, tmp_path / "copy.so")
    # The loader's lock, under which it writes and we read a path, is not known to the sanitizer.
    (tmp_path / "known").write_text("race:write_path\n")
    calls = run_for_long(
        run_collector, tmp_path, [program, "10", str(STRESS_SECONDS), plugin, tmp_path / "copy.so"],
        GPUPROF_UNWINDER=unwinder,
        TSAN_OPTIONS=f"exitcode=66:suppressions={tmp_path}/known:print_suppressions=0")
    assert {stack[-1].partition("+")[0] for stack in calls} == {plugin.name, "copy.so"}


def run_for_long(run_collector, tmp_path, command, **settings):
    """Calls by their stacks, the outermost frame first, of a program that prints their number."""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          timeout=60 + 2 * STRESS_SECONDS,
                          env=environment(tmp_path, **{"GPUPROF_BACKTRACE_THRESHOLD": "0",
                                                     **settings}))
    assert done.returncode == 3 and done.stderr == "", done.stderr[:5000]
    # By the collector, since minutes make more records than can be read here.
    folded = run_collector("flame", "--weight=calls", "--symbols=none", "out", timeout=300)
    assert folded.returncode == 0 and folded.stderr == ""  # nothing lost, none without a stack
    calls = collections.Counter()
    for line in folded.stdout.splitlines():
        frames, _, count = line.rpartition(" ")
        calls[tuple(frames.split(";")[1:-1])] += int(count)
    assert calls.total() == int(done.stdout) > 20  # on a machine that is busy
    return calls


@pytest.mark.parametrize("kind", ["thread", "address,undefined"])
def test_python_stacks_stress(stress, run_collector, tmp_path, kind):
    """The interpreter itself is not built for a sanitizer: what we read of it is."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "python3-embed"],
                           capture_output=True, text=True, check=True).stdout.split()
    calls = run_for_long(
        run_collector, tmp_path,
        [stress(kind, "stress_python", flags), toolchain.SOURCES / "stress_python.py",
         str(STRESS_SECONDS)], TSAN_OPTIONS="exitcode=66", ASAN_OPTIONS="detect_leaks=0",
        # A launch has its stack taken when it begins, as always; one that lingers when it ends, and
        # before that by our own thread.
        GPUPROF_BACKTRACE="launch", GPUPROF_BACKTRACE_THRESHOLD="500ms")
    python = [[frame for frame in stack if ".py:" in frame] for stack in calls]
    assert all(python)
    names = {frames[-1].partition(" ")[0] for frames in python}
    assert {"leaf", "generated.<locals>.<genexpr>", "work", "made_17", "linger"} <= names


@pytest.mark.parametrize("kind", ["address,undefined", "thread"])
def test_builds_say_nothing(tmp_path, kind):
    """Of overflows that only the sanitizers' own code seems to make, and of fences: these files."""
    files = ["obj/formats/block.c.o", "pic/inject/python/python_places.c.o"]
    done = subprocess.run(["make", "-s", f"SANITIZE={kind}", f"BUILD={tmp_path}",
                           *(f"{tmp_path}/{file}" for file in files)], cwd=conftest.ROOT,
                          check=True, capture_output=True, text=True)
    assert done.stdout + done.stderr == ""
