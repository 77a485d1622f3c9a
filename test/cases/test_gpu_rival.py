# SPDX-License-Identifier: Apache-2.0
"""Another client of CUPTI's in the process: it gets what is its, gpuprof the rest."""

import collections
import os
import re

import cupti_client
import pytest
import stream_reader
import toolchain


@pytest.fixture(name="recorded", params=list(cupti_client.VERSIONS))
def fixture_recorded(request, library, tmp_path):
    """Runs the other client bare and under gpuprof: (its output bare, under it, the recording)."""
    program = cupti_client.rival(request.param)
    cupti = toolchain.SIM / cupti_client.VERSIONS[request.param][0]

    def run(*arguments, **settings):
        bare = toolchain.run([program, *arguments], toolchain.environment(None, **settings))
        env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on",
                                    GPUPROF_CUPTI=cupti, **settings)
        done = toolchain.run([program, *arguments], env)
        [process] = stream_reader.read_folder(tmp_path / "out")
        return bare, done, process
    return run


def of(process, name):
    kind = next(k for k, v in stream_reader.TYPE_NAMES.items() if v == name)
    return [r for r in process.records if r.type == kind]


def launches_of(process):
    return [r for r in of(process, "call") if "Launch" in process.functions[r.code].symbol]


def test_kineto(recorded):
    """Records of its session are the profiler's own; those before and after are ours."""
    bare, done, process = recorded("kineto", "600")
    assert done.stderr == ""
    kept = "kineto started 0|kernels=[0-9]+ strangers=0"
    assert re.findall(kept, done.stdout) == re.findall(kept, bare.stdout)
    assert len(re.findall(kept, done.stdout)) == 2
    launches = launches_of(process)
    notes = sorted((r.begin, r.text.decode()) for r in of(process, "note"))
    assert [text.split()[0] for _, text in notes] == ["another", "the"]
    taken, back = notes[0][0], notes[1][0]
    outside = [c for c in launches if c.end < taken or c.begin > back]
    inside = [c for c in launches if taken < c.begin < back]
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
    assert outside and inside and len(outside) + len(inside) == len(launches)
    assert all(kernels[c.correlation] == 1 for c in outside)
    assert sum(kernels.values()) == len(outside)
    assert process.counters["gpu_yields"] == 1
    assert not process.counters["gpu_strange_time"] and not process.counters["gpu_timeless"]
    for record in of(process, "kernel"):  # on one clock with the calls, whoever's was registered
        call = next(c for c in launches if c.correlation == record.correlation)
        # The other clock runs at its own rate: what that makes in a second or two.
        assert call.begin - 100_000 <= record.begin <= call.begin + 5_000_000_000


def test_pause_in_its_session(recorded):
    """Nothing is taken again before the recording goes on, and all after it."""
    _, done, process = recorded("kineto", "600", "paused")
    assert done.stderr == ""
    pauses = sorted((r.begin, r.args[0]) for r in of(process, "pause"))
    assert [paused for _, paused in pauses] == [1, 0]
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
    launches = launches_of(process)
    assert kernels == collections.Counter(
        c.correlation for c in launches[:200] + launches[400:]) and len(launches) == 600


def test_holder_later(recorded):
    """One that subscribes after us is served by our subscription, as if it had its own."""
    bare, done, process = recorded("holder")
    assert "holder started 0" in done.stdout and done.stdout == bare.stdout
    assert not re.search("callbacks=0$", done.stdout, re.MULTILINE)
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
    assert kernels == collections.Counter(c.correlation for c in launches_of(process))


def test_switches(recorded):
    """What another subscriber turns off stays on for us, and what it turns on is its alone."""
    bare, done, process = recorded("switcher")
    answers = "second 1|off 1 1|states 1 0|on 1|left 1|again 1|switcher started 0"
    assert done.stdout == bare.stdout and len(re.findall(answers, done.stdout)) == 7
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
    assert kernels == collections.Counter(c.correlation for c in launches_of(process))


def test_finalizer(recorded):
    """Some profilers end CUPTI for the whole process: what was recorded until then is kept."""
    _, done, process = recorded("finalizer", SIMCUPTI_FINALIZE="allow")
    assert re.fullmatch("gpuprof: GPU rows absent: another client of CUPTI's finalized it; .*\n",
                        done.stderr)
    assert "finalizer started 0\n" in done.stdout
    launches = launches_of(process)
    kernels = {record.correlation for record in of(process, "kernel")}
    tied = [call.correlation in kernels for call in launches]
    assert any(tied) and not all(tied) and tied == sorted(tied, reverse=True)
    assert not process.counters["gpu_unflushed"]


def test_one_of_no_use_is_let_go(recorded):
    """CUPTI that gives us no kind of record is free for whoever comes after us."""
    kinds = ",".join(str(kind) for kind in (1, 2, 8, 9, 10, 17, 22, 36, 37, 38, 49, 50, 51))
    _, done, process = recorded("holder", SIMCUPTI_UNSUPPORTED=kinds)
    assert re.fullmatch("gpuprof: GPU rows absent: CUPTI enables none of the kinds .*\n",
                        done.stderr)
    assert "holder started 0\n" in done.stdout
    assert re.search("holder stopped callbacks=[1-9]", done.stdout)
    assert launches_of(process) and not of(process, "kernel")


def test_held_before(library, tmp_path):
    """One that subscribed before us shares its subscription: device rows for us, too."""
    version = "13.0"
    program = toolchain.build("runtime_work.c", *toolchain.runtime(13))
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on", RIVAL="holder",
                                GPUPROF_CUPTI=toolchain.SIM / cupti_client.VERSIONS[version][0])
    env["LD_PRELOAD"] += os.pathsep + str(cupti_client.rival_library(version))
    done = toolchain.run([program, "basic"], env, status=3)
    assert done.stderr == "" and "holder started 0" in done.stdout
    [process] = stream_reader.read_folder(tmp_path / "out")
    kernels = {r.correlation for r in of(process, "kernel")}
    assert kernels and kernels <= {c.correlation for c in process.calls()}
