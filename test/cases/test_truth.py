# SPDX-License-Identifier: Apache-2.0
"""Every way of reaching CUDA: what gpuprof recorded is what the simulated CUDA really did."""

import json
import os
import shutil
import subprocess

import pytest
import stream_reader
import toolchain
import truth

STREAMS = {"legacy": (), "per-thread": ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)}
WORK = ["basic", "graph", "fail", "threads", "8", "300"]


@pytest.fixture(name="compare")
def fixture_compare(library, tmp_path):
    """Runs a command and compares its processes with their logs; the processes."""
    def compare(command, hidden="", nested=False, preload=None, status=3, stderr="", calls=1,
                **settings):
        log, out = tmp_path / "log", tmp_path / "out"
        log.mkdir()
        env = toolchain.environment(out, preload or library, SIMCUDA_LOG=log,
                                    SIMCUDA_TIMELINE="off",
                                    GPUPROF_NESTED="1" if nested else "0", **settings)
        done = toolchain.run(command, env, status=status)
        assert done.stderr == stderr
        processes = stream_reader.read_folder(out)
        logs = {int(p.name.partition(".")[0]): p for p in log.iterdir()}
        assert {p.header.pid for p in processes} == set(logs), "a process is missing"
        count, left = 0, set()
        for process in processes:
            found = truth.compare(process, logs[process.header.pid], hidden, nested)
            count, left = count + found[0], left | found[1]
            assert not process.losses and process.counters["stale"] == 0
            assert process.end_reason == 1 and process.torn_bytes == 0
            assert not os.path.exists(process.header.live_path)
        assert count >= calls, f"only {count} calls were compared"
        assert not left, f"arguments that the log does not have: {sorted(left)}"
        return processes, done
    return compare


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("major", [12, 13])
def test_linked_runtime(compare, major, streams):
    program = toolchain.build("runtime_work.c", *toolchain.runtime(major), *STREAMS[streams])
    compare([program, *WORK], calls=2000)


def test_names_of_listed_kernels(library, run_collector, tmp_path):
    """And of those whose handle another module's kernel had: as the driver names each."""
    program = toolchain.build("module_names.c", *toolchain.DRIVER)
    done = toolchain.run([program], toolchain.environment(tmp_path / "out", library), status=3)
    trace = json.loads(run_collector("merge", tmp_path / "out").stdout)
    launches = [e for e in trace["traceEvents"] if e["name"] == "cuLaunchKernel"]
    assert [e["args"]["kernel"] for e in launches] == done.stdout.split()
    assert len(launches) == 5


def test_arguments(compare):
    """Arguments that the log does not have, as the program's source says them."""
    program = toolchain.build("runtime_work.c", *toolchain.runtime(13))
    [process], _ = compare([program, *WORK], nested=True, calls=4000)
    calls = process.calls()
    inner = {c.symbol: c.args for c in calls if c.flags & stream_reader.NESTED}
    outer = {c.symbol: c.args for c in calls if not c.flags & stream_reader.NESTED}
    for label in ("dst", "src", "bytes", "kind"):
        assert inner["cuMemcpy2DAsync_v2"][label] == outer["cudaMemcpy2DAsync"][label]
    for args in (inner["cuMemPrefetchAsync_v2"], outer["cudaMemPrefetchAsync"]):
        assert (args["device"], args["flags"]) == (1, 0)
    waits = [c for c in calls if c.symbol.endswith("StreamWaitEvent")]
    assert waits and all(w.args["flags"] == 0 for w in waits)


@pytest.mark.parametrize("way", ["linked", "static", "dlsym"])
def test_nested(compare, way):
    """Driver calls inside runtime calls: each once, and marked."""
    flags = {"linked": toolchain.runtime(13), "static": toolchain.STATIC,
             "dlsym": (*toolchain.runtime(12)[:1], '-DVIA_DLSYM="libcudart.so.12"')}[way]
    program = toolchain.build("runtime_work.c", *flags)
    [process], _ = compare([program, *WORK], nested=True, calls=4000 if way != "static" else 2000,
                           hidden="R" if way == "static" else "")
    nested = [c for c in process.calls() if c.flags & stream_reader.NESTED]
    assert bool(nested) == (way != "static") and all(c.domain == "driver" for c in nested)


@pytest.mark.parametrize("way", ["exact", "alias"])
@pytest.mark.parametrize("streams", STREAMS)
def test_static_runtime(compare, streams, way):
    """Its symbols cannot be hooked: what it asks the driver for is what is seen."""
    program = toolchain.build("runtime_work.c", *toolchain.STATIC, *STREAMS[streams])
    settings = {"SIMCUDA_GETPROC": "alias"} if way == "alias" else {}
    [process], _ = compare([program, *WORK], hidden="R", calls=2000, **settings)
    assert {c.domain for c in process.calls()} == {"driver"}


@pytest.mark.parametrize("way", ["linked", "dlsym", "getproc"])
@pytest.mark.parametrize("streams", STREAMS)
def test_driver(compare, way, streams):
    flags = {"linked": toolchain.DRIVER, "dlsym": ("-DVIA_DLSYM",),
             "getproc": ("-DVIA_GETPROC",)}[way]
    program = toolchain.build("driver_work.c", *flags, *STREAMS[streams])
    compare([program], calls=60)


@pytest.mark.parametrize("major", [12, 13])
def test_runtime_by_dlsym(compare, major):
    program = toolchain.build("runtime_work.c", toolchain.runtime(major)[0],
                              f'-DVIA_DLSYM="libcudart.so.{major}"')
    compare([program, *WORK], calls=2000)


@pytest.mark.parametrize("way", ["linked", "static", "dlsym", "plugin"])
def test_streams_gone_from_a_capture(compare, way):
    """What is done on a new stream with the handle of such a one is not captured."""
    if way == "plugin":
        command = [toolchain.build("plugin_host.c"), plugin(13)]
    elif way == "dlsym":
        command = [toolchain.build("runtime_work.c", toolchain.runtime(12)[0],
                                   '-DVIA_DLSYM="libcudart.so.12"')]
    else:
        flags = toolchain.STATIC if way == "static" else toolchain.runtime(12)
        command = [toolchain.build("runtime_work.c", *flags)]
    [process], done = compare([*command, "gone"], calls=40,
                              hidden="R" if way == "static" else "")
    assert "another handle" not in done.stdout
    captured = [bool(c.flags & stream_reader.CAPTURED) for c in process.calls()]
    assert captured.count(True) > 10 and captured.count(False) > 10


@pytest.mark.parametrize("way", ["linked", "dlsym", "getproc"])
def test_streams_gone_from_a_capture_of_the_driver(compare, way):
    flags = {"linked": toolchain.DRIVER, "dlsym": ("-DVIA_DLSYM",), "getproc": ("-DVIA_GETPROC",)}
    program = toolchain.build("driver_work.c", *flags[way])
    [process], done = compare([program, "gone"], calls=60)
    assert "another handle" not in done.stdout
    sets = [c for c in process.calls() if c.symbol.startswith("cuMemsetD8Async")]
    assert [(c.args["bytes"], c.flags & stream_reader.CAPTURED) for c in sets] == [
        (100, stream_reader.CAPTURED), (200, 0)] * 3


def plugin(major, *flags):
    return toolchain.build("runtime_work.c", *toolchain.runtime(major), "-DPLUGIN", "-shared",
                           "-fPIC", *flags)


@pytest.mark.parametrize("majors", [(12,), (13,), (12, 13), (13, 12)])
def test_plugins(compare, majors):
    """As Python opens its extensions; two majors at once, whose functions have other arguments."""
    host = toolchain.build("plugin_host.c")
    plugins = ",".join(str(plugin(major)) for major in majors)
    [process], done = compare([host, plugins, *WORK], calls=2000 * len(majors))
    batches = [c for c in process.calls() if c.symbol == "cudaMemcpyBatchAsync"]
    prefetches = [c for c in process.calls() if c.symbol == "cudaMemPrefetchAsync"]
    assert len(batches) == len(prefetches) == len(majors)
    for batch, prefetch in zip(batches, prefetches):
        assert batch.args["count"] == 3 and batch.args["bytes"] == 175 and batch.result == 0
        assert prefetch.args["device"] == 1 and prefetch.args["bytes"] == 8192
    assert "errno 0" not in done.stdout


def test_plugin_beside_linked_runtime(compare):
    """The program is linked with one major, its plugin with the other."""
    host = toolchain.build("plugin_host.c", "-Wl,--no-as-needed", *toolchain.runtime(12))
    compare([host, plugin(13), *WORK], calls=2000)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("way", ["linked", "static", "dlsym", "driver"])
@pytest.mark.parametrize("kind", ["dlsym", "PLAIN"])
def test_beside_another_hook(compare, library, order, way, kind):
    """A second preload that hooks cudaMalloc and cuMemAlloc itself, and dlsym or not."""
    flags = ["-DPLAIN"] if kind == "PLAIN" else []
    other = toolchain.build("other_hook.c", "-shared", "-fPIC", *flags)
    preload = f"{other}:{library}" if order == "before" else f"{library}:{other}"
    if way == "driver":
        program = toolchain.build("driver_work.c", *toolchain.DRIVER)
    else:
        flags = {"linked": toolchain.runtime(12), "static": toolchain.STATIC,
                 "dlsym": (toolchain.runtime(13)[0], '-DVIA_DLSYM="libcudart.so.13"')}[way]
        program = toolchain.build("runtime_work.c", *flags)
    _, done = compare([program, *(WORK if way != "driver" else ())], preload=preload, calls=60,
                      hidden="R" if way == "static" else "")
    seen = int(done.stdout.rpartition("other hook: ")[2].split()[0])
    if way in ("linked", "driver"):
        assert seen > 0, "the other hook was pushed aside"


@pytest.mark.parametrize("way", ["own", "default", "next"])
@pytest.mark.parametrize("kind", ["patcher", "caller"])
def test_beside_a_patcher(compare, library, way, kind):
    """Who changes the driver's code gets the driver's functions, as without us; who calls what it
    finds in the same way gets ours. "next" is looked for by a preload that comes before us."""
    program = toolchain.build("patcher.c", *toolchain.runtime(12), *toolchain.DRIVER)
    helper = toolchain.build("patcher.c", "-DHELPER", "-shared", "-fPIC")
    module = toolchain.build("patcher.c", "-DMODULE", "-shared", "-fPIC", "-Wl,--no-as-needed",
                             *toolchain.DRIVER,
                             *(["-DCALLER"] if kind == "caller" else [str(helper)]))
    before = [module] if way == "next" else []
    plain = toolchain.run([program, module, way],
                          toolchain.environment(None, LD_PRELOAD=":".join(map(str, before))))
    # Each of the 50 rounds allocates and frees through the driver, directly and below the runtime.
    assert plain.stdout.splitlines()[-1] == f"{200 if kind == 'patcher' else 0} events"
    assert plain.stdout.count("is in libcuda.so.1") == 2
    [process], done = compare([program, module, way], status=0, calls=201,
                              preload=":".join(map(str, [*before, library])))
    if kind == "caller":
        assert done.stdout == plain.stdout.replace("libcuda.so.1", "libgpuprof.so")
        assert len(process.calls()) == 203
    else:
        assert done.stdout == plain.stdout and len(process.calls()) == 201


@pytest.mark.parametrize("order", ["before", "after"])
def test_second_runtime_beside_another_hook(compare, library, order):
    """What a plugin asks of its own libcudart by the other preload's dlsym is called there."""
    other = toolchain.build("other_hook.c", "-shared", "-fPIC")
    host = toolchain.build("plugin_host.c", "-Wl,--no-as-needed", *toolchain.runtime(12))
    second = toolchain.build("runtime_work.c", toolchain.runtime(13)[0], "-DPLUGIN", "-shared",
                             "-fPIC", '-DVIA_DLSYM="libcudart.so.13"')
    preload = f"{other}:{library}" if order == "before" else f"{library}:{other}"
    [process], done = compare([host, second, *WORK], preload=preload, calls=2000)
    [batch] = [c for c in process.calls() if c.symbol == "cudaMemcpyBatchAsync"]
    assert batch.args["count"] == 3 and batch.args["bytes"] == 175 and batch.result == 0
    assert "errno 0" not in done.stdout


def test_second_runtime_asked_by_a_helper(compare):
    """As ctypes does: one object asks for a function, another calls it."""
    helper = toolchain.build("stubs.c", "-DHELPER", "-shared", "-fPIC")
    host = toolchain.build("plugin_host.c", "-Wl,--no-as-needed", *toolchain.runtime(12))
    second = toolchain.build("runtime_work.c", toolchain.runtime(13)[0], "-DPLUGIN", "-shared",
                             "-fPIC", '-DVIA_DLSYM="libcudart.so.13"', "-DVIA_HELPER", str(helper),
                             f"-Wl,-rpath,{toolchain.OUT}")
    [process], done = compare([host, second, *WORK], calls=2000)
    [batch] = [c for c in process.calls() if c.symbol == "cudaMemcpyBatchAsync"]
    assert batch.args["count"] == 3 and batch.args["bytes"] == 175 and batch.result == 0
    assert "errno 0" not in done.stdout


class Stubs:
    """Of a framework that carries stubs of CUDA's functions: the command that makes its calls.

    apart: a library of stubs, and a plugin that is linked with it; one: both in one object, whose
    own calls are not bound to itself; linked, linked one: the same, with a program that is linked
    with it; program: all in the program, which exports them or not."""

    SHAPES = ["apart", "one", "linked", "linked one", "program", "exporting program"]
    LIBRARY = ("-shared", "-fPIC")

    def __init__(self, level):
        self.level = level

    def build(self, *flags):
        return str(toolchain.build("stubs.c", self.level, *flags))

    def link(self, *flags):
        """Flags to link with what those make."""
        made = self.build(*flags)
        return "-Wl,--no-as-needed,--allow-shlib-undefined", made, f"-Wl,-rpath,{toolchain.OUT}"

    def helper(self):
        return self.link("-DHELPER", *self.LIBRARY)

    def library(self):
        """That of the stubs alone."""
        return self.build("-DSTUBS", *self.LIBRARY, *self.helper())

    def command(self, shape, *host_flags):
        helper = self.helper()
        if shape.endswith("program"):
            export = ("-rdynamic",) if shape.startswith("exporting") else ()
            return [self.build("-DSTUBS", "-DPLUGIN", "-DMAIN", *export, *helper)]
        one = ("-DPLUGIN",) if shape.endswith("one") else ()
        stubs = self.link("-DSTUBS", *one, *self.LIBRARY, *helper)
        rest = () if one else ("-DPLUGIN",)
        if shape.startswith("linked"):
            return [self.build("-DMAIN", *rest, *stubs)]
        host = toolchain.build("plugin_host.c", *host_flags)
        return [host, self.build(*rest, *self.LIBRARY, *stubs) if rest else stubs[1]]


@pytest.mark.parametrize("shape", Stubs.SHAPES)
@pytest.mark.parametrize("way, level", [("open", "-O1"), ("open", "-O2"), ("getproc", "-O1"),
                                        ("helper", "-O1"), ("next", "-O1"), ("all", "-O1")])
def test_stubs(compare, shape, way, level):
    """What defines CUDA's names, and finds our hook where it looks for the real function."""
    compare([*Stubs(level).command(shape), "driver", "runtime"], calls=12, STUBS_WAY=way)


@pytest.mark.parametrize("shape", ["apart", "one"])
@pytest.mark.parametrize("way", ["open", "all"])
def test_stubs_for_all(compare, shape, way):
    """The same, brought by a plugin that was opened with RTLD_GLOBAL."""
    compare([*Stubs("-O1").command(shape, "-DGLOBAL"), "runtime", "driver"], calls=12,
            STUBS_WAY=way)


@pytest.mark.parametrize("shape", ["apart", "one"])
@pytest.mark.parametrize("what", ["driver", "runtime"])
def test_stubs_give_way(library, tmp_path, shape, what):
    """Stubs that found nothing are called no more, once CUDA's own library is there."""
    real = [toolchain.SIM / "libcuda.so.1", toolchain.SIM / "libcudart.so.12"]
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=tmp_path,
                                SIMCUDA_TIMELINE="off")
    done = toolchain.run([*Stubs("-O1").command(shape), what, *real, "count", what], env, status=3)
    assert done.stdout == f"{what}: 303\n{what}: 0\nstubs: 0\n" and not done.stderr
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert [c.result for c in process.calls()] == [303] * (what == "runtime") + [0] * 6


@pytest.mark.parametrize("shape", ["apart", "one", "program", "program that asks all"])
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("kind", ["dlsym", "PLAIN"])
def test_stubs_beside_another_hook(compare, library, tmp_path, shape, order, kind):
    """A quota's preload is called as without us; what it forwards to may be a stub."""
    flags = ["-DPLAIN"] if kind == "PLAIN" else []
    other = toolchain.build("other_hook.c", "-shared", "-fPIC", *flags)
    shape, _, asks = shape.partition(" that ")
    what = ["driver"] if asks else ["driver", "runtime"]
    command = [*Stubs("-O1").command(shape, "-DGLOBAL"), *what]
    way = "all" if asks else "open"
    plain = toolchain.run(command, toolchain.environment(
        tmp_path, LD_PRELOAD=other, STUBS_WAY=way, SIMCUDA_TIMELINE="off"), status=3)
    preload = f"{other}:{library}" if order == "before" else f"{library}:{other}"
    _, done = compare(command, preload=preload, calls=6 * len(what), STUBS_WAY=way)
    assert done.stdout == plain.stdout
    seen = int(done.stdout.rpartition("other hook: ")[2])
    assert seen == (6 if shape != "program" else 3 if asks or kind == "dlsym" else 0)


@pytest.mark.parametrize("host", ["opened", "linked"])
def test_stubs_find_themselves(compare, library, host):
    """A stub that finds itself looks elsewhere, by way of another preload's dlsym, too."""
    other = toolchain.build("other_hook.c", "-shared", "-fPIC")
    command = Stubs("-O1").command("linked" if host == "linked" else "apart", "-DGLOBAL")
    _, done = compare([*command, "runtime", "driver"], preload=f"{other}:{library}", calls=12,
                      STUBS_WAY="next")
    assert "runtime: 0\ndriver: 0\n" in done.stdout


@pytest.mark.parametrize("kind", [(), ("-DPLAIN",)])
@pytest.mark.parametrize("way", ["open", "all"])
def test_stubs_asked_by_name(compare, library, kind, way):
    """Who asks a library of stubs gets its stubs, which lead to another preload's hook."""
    stubs = Stubs("-O1")
    other = toolchain.build("other_hook.c", "-shared", "-fPIC", *kind)
    compare([*stubs.command("linked"), "asked", stubs.library()], preload=f"{other}:{library}",
            calls=2, STUBS_WAY=way)


@pytest.mark.parametrize("how", [(), ("-DGLOBAL",)])
@pytest.mark.parametrize("bound", [(), ("-Wl,-Bsymbolic",)])
@pytest.mark.parametrize("way", ["open", "next"])
@pytest.mark.parametrize("linked", ["host", "plugin"])
def test_stubs_of_two(compare, how, bound, way, linked):
    """A program, or a plugin, linked with stubs; the plugin carries its own, calls nothing else."""
    stubs = Stubs("-O1")
    library = stubs.link("-DSTUBS", *Stubs.LIBRARY, *stubs.helper())
    host = toolchain.build("plugin_host.c", *how, *(library if linked == "host" else ()))
    plugin = stubs.build("-DSTUBS", "-DPLUGIN", *bound, *Stubs.LIBRARY, *stubs.helper(),
                         *(library if linked == "plugin" else ()))
    compare([host, plugin, "runtime", "driver"], calls=12, STUBS_WAY=way)


def test_runtime_with_a_hash_in_its_name(library, tmp_path):
    """As Python wheels carry it: CUDA's own library none the less."""
    name = "libcudart-d0da41ae.so.12"
    tiny = toolchain.build("tiny_cudart.c", "-shared", "-fPIC", "-fexceptions",
                           f"-Wl,-soname,{name}")
    (tmp_path / name).symlink_to(tiny)
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=tmp_path,
                                STUBS_RUNTIME=name)
    toolchain.run([*Stubs("-O1").command("program"), "runtime"], env, status=3)
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert [c.symbol for c in process.calls()] == ["cudaMalloc", "cudaFree"] * 3


@pytest.mark.parametrize("kind", [(), ("-DIN_ALL",), ("-DBY_TABLE",), ("-Wl,-Bsymbolic",)])
def test_driver_that_finds_us(library, tmp_path, kind):
    """A stand-in for the driver looks for its own functions, and finds ours: it has fewer."""
    driver = toolchain.build("stand_in.c", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", *kind)
    program = toolchain.build("stand_in.c", "-DASKS")
    (tmp_path / "libcuda.so.1").symlink_to(driver)
    plain, done = (toolchain.run([program], toolchain.environment(
        tmp_path / "out", preload, LD_LIBRARY_PATH=tmp_path), status=3)
        for preload in (None, library))
    assert done.stdout == plain.stdout and "302" not in plain.stdout and not done.stderr
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert [c.symbol for c in process.calls()] == [
        "cuCtxSynchronize", "cuCtxSynchronize", "cuMemAlloc_v2", "cuMemAlloc_v2",
        "cuCtxSynchronize", "cuMemAlloc_v2"]


@pytest.mark.parametrize("way", ["linked", "static"])
def test_fork_after_use(compare, way):
    """The child's calls fail, as they do without us, and are in a file of its own."""
    flags = toolchain.runtime(13) if way == "linked" else toolchain.STATIC
    program = toolchain.build("runtime_work.c", *flags)
    processes, done = compare([program, "fork"], hidden="R" if way == "static" else "", calls=3)
    assert "child 0\n" in done.stdout
    first, second = sorted(processes, key=lambda p: p.header.monotonic_zero)
    parent, child = (first, second) if second.header.parent_pid == first.header.pid else \
        (second, first)
    assert child.header.parent_pid == parent.header.pid
    assert {c.result for c in child.calls()} == {3}  # cudaErrorInitializationError, and CUDA's


def look_ups(log):
    lines = [line for thread in truth.read_log(log) for line in thread]
    return sorted((line.args["name"], line.args["version"], line.args["flags"], line.result)
                  for line in lines if line.symbol.startswith("cuGetProcAddress"))


@pytest.mark.parametrize("way", ["exact", "alias"])
def test_all_look_ups_are_answered(library, tmp_path, way):
    """A static runtime asks for 440 functions: each answer is as it would be without us."""
    program = toolchain.build("runtime_work.c", *toolchain.STATIC)
    answers = []
    for preload in (None, library):
        log = tmp_path / ("with" if preload else "without")
        log.mkdir()
        settings = {"SIMCUDA_GETPROC": "alias"} if way == "alias" else {}
        env = toolchain.environment(tmp_path / "out", preload, SIMCUDA_LOG=log,
                                    SIMCUDA_TIMELINE="off", **settings)
        toolchain.run([program, "variants"], env, status=3)
        [path] = log.iterdir()
        answers.append(look_ups(path))
    assert answers[0] == answers[1] and len(answers[0]) >= 440


def test_failure_injection(compare):
    program = toolchain.build("runtime_work.c", *toolchain.runtime(13))
    [process], _ = compare([program, *WORK], calls=2000,
                           SIMCUDA_FAIL="cudaMalloc:2=2,cudaLaunchKernel:5=719,cuMemcpyHtoD:1=700")
    results = {c.result for c in process.calls()}
    assert results >= {2, 719}


NVCC = shutil.which("nvcc")


@pytest.mark.skipif(not NVCC, reason="not run: no nvcc in PATH (of NVIDIA's CUDA toolkit)")
@pytest.mark.parametrize("streams", ["legacy", "per-thread"])
@pytest.mark.parametrize("way", ["shared", "static"])
def test_real_nvcc(compare, tmp_path, streams, way):
    """A program as nvcc makes it, on the simulated runtime (or linked with the static archive)."""
    program = tmp_path / "kernels"
    source = toolchain.SOURCES / "kernels.cu"
    command = [NVCC, "-arch=compute_80", source, "-o", program, f"--default-stream={streams}",
               "-cudart", "shared" if way == "shared" else "none"]
    if way == "static":
        command += [toolchain.SIM / "libcudart_static.a", "-lpthread", "-ldl"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [process], _ = compare([program], hidden="R" if way == "static" else "", calls=20)
    kernels = {c.kernel for c in process.calls() if c.kernel}
    assert kernels == {"_Z5scalePffi", "_Z7reverseIiEvPT_i", "_Z7reverseIdEvPT_i"}
