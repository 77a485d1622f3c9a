# SPDX-License-Identifier: Apache-2.0
"""What the device did: CUPTI's records as they were, each once, tied to the calls that made them."""

import functools
import pathlib
import signal

import cupti_client as cupti
import gpu_truth
import pytest
import stream_reader
import toolchain
import truth

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")
CONNECTED = ("auto", "cupti")
WORK = ("work", "graph", "launches", "sync")


@functools.lru_cache(maxsize=None)
def plain_output(command):
    return toolchain.run(command, toolchain.environment(None), status=None)


@functools.lru_cache(maxsize=None)
def callback_names(version):
    """(domain, id) -> symbol of a function that has callbacks in that version."""
    lines = cupti.bare(toolchain.SIM / cupti.VERSIONS[version][0])["name"]
    return {(int(d), int(i)): n.rpartition("_v")[0] if d == "2" else n
            for d, i, n in (line.split(" ") for line in lines)}


def gpu_work(major=13, static=False):
    return cupti.build(major, static=static, source="gpu_work.c")


class Run:
    """One process under gpuprof on the simulated CUDA and CUPTI."""

    def __init__(self, done, process, log, version):
        self.done, self.process, self.log, self.version = done, process, log, version
        self.lines = gpu_truth.read_log(log)
        self.status = process.meta.get("gpu_rows") if process else None

    def of(self, what):
        return [line for line in self.lines if line.layer == "P" and line.what == what]

    def kinds(self, **options):
        return gpu_truth.compare_rows(self.process, self.lines, **options)

    def called_back(self):
        """Names of the functions whose callbacks are on; the time at which the last of them came."""
        enabled = [line for line in self.of("cuptiEnableCallback") if line.result == 0]
        names = {callback_names(self.version)[line.values["domain"], line.values["cbid"]]
                 for line in enabled}
        return names, enabled[-1].begin if enabled else None

    def seen(self, static, front):
        """Does gpuprof see a line of the log? The hooks see what is not static; callbacks, once
        they are on, see what this version of CUPTI has."""
        names, since = self.called_back()

        def sees(line):
            if not static or front == "hooks":
                return not static or line.layer == "D"
            is_called_back = line.symbol in names or f"{line.symbol}_v2" in names
            return line.layer == "D" or bool(since) and line.begin > since and is_called_back
        return sees

    def pairs(self, static=False, front="auto"):
        return gpu_truth.pair(self.process, self.log, self.seen(static, front))


@pytest.fixture(name="run")
def fixture_run(library, tmp_path):
    def run(program, *steps, version="13.0", status=3, stderr="", count=1, same_output=True,
            preload=None, **settings):
        out, log = tmp_path / "out", tmp_path / "log"
        log.mkdir(exist_ok=True)
        env = toolchain.environment(out, preload or library, **{
            "GPUPROF_GPU": "on", "SIMCUDA_LOG": log, "SIMCUPTI_LOG": 1,
            "GPUPROF_CUPTI": toolchain.SIM / cupti.VERSIONS[version][0],
            "GPUPROF_LIVE": tmp_path, **settings})
        done = toolchain.run([program, *steps], env, status=status)
        if stderr is not None:
            assert done.stderr == stderr
        if same_output and status is not None and status >= 0:
            assert done.stdout == plain_output((program, *steps)).stdout
        processes = stream_reader.read_folder(out) if out.exists() else []
        assert len(processes) == count
        logs = {int(p.name.partition(".")[0]): p for p in log.iterdir()}
        runs = [Run(done, p, logs[p.header.pid], version) for p in processes]
        return runs[0] if count == 1 else runs if count else Run(done, None, *logs.values(),
                                                                 version)
    return run


def check_whole(run, static=False, front="auto", tied=True, **options):
    """Nothing is missing and nothing is lost; how many records of each kind."""
    kinds = run.kinds(**options)
    assert len(gpu_truth.made(run.lines)) == sum(kinds.values())
    assert not run.process.losses
    assert run.status.startswith("from CUPTI")
    pairs = run.pairs(static, front)
    count = gpu_truth.compare_correlation(run.process, run.lines, pairs,
                                          gpu_truth.blind(run.log, run.called_back()[0]))
    assert bool(count) == tied
    return kinds


# ---- Every way of reaching CUDA ------------------------------------------------------------------

STREAMS = {"legacy": (), "per-thread": ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)}
RUNTIME_WORK = ("basic", "graph", "fail", "threads", "8", "100")


def runtime_work(way, *flags):
    flags = {"12": toolchain.runtime(12), "13": toolchain.runtime(13), "static": toolchain.STATIC,
             "dlsym": (toolchain.runtime(12)[0], '-DVIA_DLSYM="libcudart.so.12"')}[way] + flags
    return toolchain.build("runtime_work.c", *flags)


@pytest.mark.parametrize("version", cupti.ORDER)
@pytest.mark.parametrize("way", ["12", "13", "static", "dlsym"])
@pytest.mark.parametrize("front", ["auto", "cupti", "hooks"])
def test_runtime(run, way, version, front):
    done = run(runtime_work(way), *RUNTIME_WORK, version=version, GPUPROF_FRONT=front)
    kinds = check_whole(done, way == "static", front, tied=front != "hooks")
    assert kinds[gpu_truth.KERNEL] > 800 and kinds[gpu_truth.MEMORY] > 20
    domains = {c.domain for c in done.process.calls()}
    if way == "static" and front != "hooks":
        assert "runtime" in domains


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("way", ["13", "static"])
def test_streams(run, way, streams):
    done = run(runtime_work(way, *STREAMS[streams]), *RUNTIME_WORK)
    check_whole(done, way == "static")


@pytest.mark.parametrize("way", ["linked", "dlsym", "getproc"])
@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("front", CONNECTED)
def test_driver(run, way, streams, front):
    flags = {"linked": toolchain.DRIVER, "dlsym": ("-DVIA_DLSYM",), "getproc": ("-DVIA_GETPROC",)}
    program = toolchain.build("driver_work.c", *flags[way], *STREAMS[streams])
    check_whole(run(program, GPUPROF_FRONT=front), front=front)


@pytest.mark.parametrize("version", cupti.ORDER)
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("graphs", ["nodes", "whole"])
def test_every_kind(run, static, version, graphs):
    """Two devices, peer copies, pools, graphs, PTX, 8 threads."""
    done = run(gpu_work(cupti.VERSIONS[version][1], static), *WORK, "threads", version=version,
               GPUPROF_GRAPHS=graphs)
    kinds = check_whole(done, static)
    wanted = {10, 1, 22, 2, 38, 17, 49, 50, 8, 9, 37} | ({51} if graphs == "whole" else set())
    assert set(kinds) == wanted
    assert kinds[22] == 1 and kinds[gpu_truth.GRAPH] == (4 if graphs == "whole" else 0)


@pytest.mark.parametrize("way", ["13", "static"])
@pytest.mark.parametrize("front", CONNECTED)
def test_nested(run, way, front):
    """Nested driver calls are records, too; the outer call alone has the correlation id."""
    done = run(runtime_work(way), *RUNTIME_WORK, GPUPROF_NESTED=1, GPUPROF_FRONT=front)
    check_whole(done, way == "static", front)
    nested = [c for c in done.process.calls() if c.flags & stream_reader.NESTED]
    assert len(nested) > 1000 and not any(c.correlation for c in nested)


def test_latency(run):
    done = run(gpu_work(), *WORK, GPUPROF_KINDS="kernel,latency", SIMCUDA_KERNEL_NS=30000)
    kinds = check_whole(done)
    assert set(kinds) == {gpu_truth.KERNEL}
    queued = [args[10] for what, _, args, _, _ in gpu_truth.rows(done.process)]
    assert sum(map(bool, queued)) > 100
