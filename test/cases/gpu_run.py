# SPDX-License-Identifier: Apache-2.0
"""A process under gpuprof on the simulated CUDA and CUPTI, and what the device did in it."""

import functools

import cupti_client as cupti
import gpu_truth
import stream_reader
import toolchain

WORK = ("work", "graph", "launches", "sync")


@functools.lru_cache(maxsize=None)
def plain_output(command, settings):
    return toolchain.run(command, toolchain.environment(None, **dict(settings)), status=None).stdout


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
        self.lines = gpu_truth.read_log(log) if log else []
        self.status = process.meta.get("gpu_rows") if process else None

    def of(self, what):
        return [line for line in self.lines if line.layer == "P" and line.what == what]

    def kinds(self, **options):
        return gpu_truth.compare_rows(self.process, self.lines, **options)

    def called_back(self):
        """Names of the functions whose callbacks are on; the time at which the last came."""
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


def runner(library, tmp_path):
    """run(PROGRAM, STEPS...): a Run, or one for each process, or none that recorded."""
    def run(program, *steps, version="13.0", status=3, stderr="", count=1, same_output=True,
            timeout=60, preexec_fn=None, **settings):
        out, log = tmp_path / "out", tmp_path / "log"
        log.mkdir(exist_ok=True)
        env = toolchain.environment(out, library, **{
            "GPUPROF_GPU": "on", "SIMCUDA_LOG": log, "SIMCUPTI_LOG": 1,
            "GPUPROF_CUPTI": toolchain.SIM / cupti.VERSIONS[version][0],
            "GPUPROF_LIVE": tmp_path, **settings})
        done = toolchain.run([program, *steps], env, status=status, timeout=timeout,
                             preexec_fn=preexec_fn)
        if stderr is not None:
            assert done.stderr == stderr
        if same_output and status is not None and status >= 0:
            world = {k: v for k, v in settings.items() if k in ("SIMCUDA_KERNEL_NS",)}
            assert done.stdout == plain_output((program, *steps), tuple(world.items()))
        processes = stream_reader.read_folder(out) if out.exists() else []
        assert len(processes) == count or count is None
        logs = {int(p.name.partition(".")[0]): p for p in log.iterdir()}
        runs = [Run(done, p, logs.get(p.header.pid), version) for p in processes]
        return runs[0] if count == 1 else runs if count != 0 else \
            Run(done, None, *logs.values(), version)
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


def timeless(run):
    """How many device records had no time."""
    return sum(line.layer == "B" and line.values["kind"] in gpu_truth.DEVICE_WORK and
               not line.values["start"] for line in run.lines)
