# SPDX-License-Identifier: Apache-2.0
"""Another client of CUPTI's in the process: it gets what is its, gpuprof the rest."""

import collections
import json
import os
import re

import cupti_client
import pytest
import stream_reader
import toolchain


def recorder(version, library, tmp_path):
    """Runs the other client bare and under gpuprof: (its output bare, under it, the recording)."""
    program = cupti_client.other_client(version)
    cupti = toolchain.SIM / cupti_client.VERSIONS[version][0]

    def run(*arguments, **settings):
        settings = {**settings, "LD_LIBRARY_PATH": f"{cupti.parent}:{toolchain.SIM}"}
        bare = toolchain.run([program, *arguments], toolchain.environment(None, **settings))
        env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on",
                                    GPUPROF_CUPTI=cupti, **settings)
        done = toolchain.run([program, *arguments], env)
        [process] = stream_reader.read_folder(tmp_path / "out")
        return bare, done, process
    return run


@pytest.fixture(name="recorded", params=cupti_client.ORDER)
def fixture_recorded(request, library, tmp_path):
    return recorder(request.param, library, tmp_path)


@pytest.fixture(name="several")
def fixture_several(library, tmp_path):
    """The same with a CUPTI that serves several subscribers."""
    return recorder("13.5", library, tmp_path)


def of(process, name):
    kind = next(k for k, v in stream_reader.TYPE_NAMES.items() if v == name)
    return [r for r in process.records if r.type == kind]


def launches_of(process):
    return [r for r in of(process, "call") if "Launch" in process.functions[r.code].symbol]


def test_kineto(recorded, run_collector, tmp_path):
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
    report = run_collector("report", "--format=json", "--table=gpu_time", tmp_path / "out").stdout
    for row in json.loads(report)["gpu_time"]:  # where the device was not idle, for all one knows
        assert 0.99 * (back - taken) < row["stopped_ns"] < row["window_ns"] - row["compute_ns"]
    for record in of(process, "kernel"):  # on one clock with the calls, whoever's was registered
        call = next(c for c in launches if c.correlation == record.correlation)
        # The other clock runs at its own rate: what that makes in a second or two.
        assert call.begin - 100_000 <= record.begin <= call.begin + 5_000_000_000


def test_kineto_first(recorded):
    """It is at work when we begin: that is stated from then on, and what comes after it is ours."""
    _, done, process = recorded("kineto", "600", OTHER_CLIENT_FIRST="1")
    assert done.stderr == ""
    taken, back = sorted((r.begin, r.text.decode().split()[0]) for r in of(process, "note"))
    assert (taken[1], back[1]) == ("another", "the")
    launches = launches_of(process)
    outside = [c.correlation for c in launches if c.end < taken[0] or c.begin > back[0]]
    assert 0 < len(outside) < len(launches)
    assert sorted(outside) == sorted(r.correlation for r in of(process, "kernel"))


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


def test_it_comes_in_a_pause(recorded):
    """The recording goes on in its session, whose records are its; after it they are ours."""
    bare, done, process = recorded("kineto", "600", OTHER_CLIENT_STOPPED="1")
    assert done.stderr == ""
    kept = "kineto started 0|kernels=[0-9]+ strangers=0"
    assert re.findall(kept, done.stdout) == re.findall(kept, bare.stdout)
    changes = sorted((r.begin, r.args[0] if r.args else r.text.decode().split()[0])
                     for r in (*of(process, "pause"), *of(process, "note")))
    assert [what for _, what in changes] == [1, "another", 0, "the"]
    launches = launches_of(process)
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
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
    assert process.meta["gpu_rows"].startswith("absent: another CUPTI client called cuptiFinalize")
    assert done.stderr == ""
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
    assert process.meta["gpu_rows"].startswith(
        "absent: CUPTI enabled none of the requested activity kinds")
    assert done.stderr == ""
    assert "holder started 0\n" in done.stdout
    assert re.search("holder stopped callbacks=[1-9]", done.stdout)
    assert launches_of(process) and not of(process, "kernel")


def test_held_before(library, tmp_path):
    """One that subscribed before us shares its subscription: device rows for us, too."""
    version = "13.0"
    program = toolchain.build("runtime_work.c", *toolchain.runtime(13))
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on", OTHER_CLIENT="holder",
                                GPUPROF_CUPTI=toolchain.SIM / cupti_client.VERSIONS[version][0])
    env["LD_PRELOAD"] += os.pathsep + str(cupti_client.other_client_library(version))
    done = toolchain.run([program, "basic"], env, status=3)
    assert done.stderr == "" and "holder started 0" in done.stdout
    [process] = stream_reader.read_folder(tmp_path / "out")
    kernels = {r.correlation for r in of(process, "kernel")}
    assert kernels and kernels <= {c.correlation for c in process.calls()}


@pytest.mark.parametrize("version, untied", [("13.0", True), ("13.5", False)])
def test_graphs_after_its_session(library, tmp_path, version, untied):
    """Where CUPTI's ids of graph launches are wrong by then, none is taken, and that is said."""
    settings = {"SIMCUPTI_GRAPH_DEFECT": "1"} if untied else {}
    record = recorder(version, library, tmp_path)
    _, done, process = record("kineto", "400", OTHER_CLIENT_GRAPHS="1", **settings)
    assert done.stderr == ""
    calls = {c.correlation: process.functions[c.code].symbol for c in launches_of(process)}
    back = max(r.begin for r in of(process, "note"))
    graphs = [r for r in of(process, "kernel") if r.args[12]]
    early = [r for r in graphs if r.begin < back]
    late = [r for r in graphs if r.begin > back]
    assert early and late and all("GraphLaunch" in calls[r.correlation] for r in early)
    if untied:
        assert {r.correlation for r in late} == {0}
        assert "graph launches after the first session not correlated" in process.meta["gpu_rows"]
    else:
        assert all("GraphLaunch" in calls[r.correlation] for r in late)
    assert bool(process.losses.get("graph_untied")) == untied
    assert all("Graph" not in calls[r.correlation] for r in of(process, "kernel")
               if not r.args[12])


# ---- several subscribers ----


def whole(process):
    """Every launch has its one kernel, and nothing is missing."""
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
    return kernels == collections.Counter(c.correlation for c in launches_of(process)) and \
        not process.losses


def stopped(done):
    return re.search(" stopped .*", done.stdout)[0]


def on_time(process):
    """Each kernel begins in its call or after it; how long after is for a busy machine to say."""
    begins = {c.correlation: c.begin for c in launches_of(process)}
    return all(-100_000 <= r.begin - begins[r.correlation] < 20_000_000_000
               for r in of(process, "kernel"))


@pytest.mark.parametrize("settings", [{}, {"SIMCUPTI_SOLE_CLOCK": "1"}], ids=["clock", "realtime"])
def test_beside_one_that_shares(several, settings):
    """It came first and lets others come: both have all records, at the same time."""
    bare, done, process = several("shared", OTHER_CLIENT_FIRST="1", **settings)
    assert "state 1\nshared started 0\n" in bare.stdout
    assert done.stdout == bare.stdout and re.search("kernels=[1-9]", stopped(done))
    assert done.stderr == bare.stderr == "off the clock: 0\n"
    assert whole(process) and on_time(process) and not of(process, "note")
    status = process.meta["gpu_rows"]
    assert re.fullmatch("from CUPTI 130500, .*libcupti.so.13, beside other subscribers"
                        + (", times by CLOCK_REALTIME" if settings else ""), status)


@pytest.mark.parametrize("settings", [{}, {"OTHER_CLIENT_ABRUPT": "1"}], ids=["stops", "leaves"])
def test_one_that_would_share_comes_later(several, settings):
    """It is served by ours, which is alone: the records are its for as long as it is there."""
    bare, done, process = several("shared", "400", **settings)
    assert done.stdout == bare.stdout and "state 1\nshared started 0\n" in done.stdout
    assert process.losses == {"gpu_yields": 1} and on_time(process)
    notes = sorted((r.begin, r.text.decode().split()[0]) for r in of(process, "note"))
    assert [word for _, word in notes] == ["another", "the"]
    kernels = collections.Counter(r.correlation for r in of(process, "kernel"))
    launches = launches_of(process)
    outside = [c for c in launches if c.end < notes[0][0] or c.begin > notes[1][0]]
    assert 0 < len(outside) < len(launches)
    assert kernels == collections.Counter(c.correlation for c in outside)


def test_one_alone_comes_later(several):
    bare, done, process = several("alone")
    assert done.stdout == bare.stdout and "state 0\nalone started 0\n" in done.stdout
    assert process.losses == {"gpu_yields": 1} and of(process, "kernel")


def test_one_alone_came_first(several):
    """There is nothing to share, which is said; it has its records as without us."""
    bare, done, process = several("alone", OTHER_CLIENT_FIRST="1")
    assert done.stdout == bare.stdout and "alone started 0" in done.stdout
    said = "CUPTI gives no records: another client subscribed to them exclusively"
    assert process.meta["gpu_rows"] == f"absent: {said}"
    assert done.stderr == bare.stderr
    assert launches_of(process) and not of(process, "kernel")


@pytest.mark.parametrize("which, status", [("alone", ""), ("shared", ", beside other subscribers")])
def test_one_that_has_gone(several, which, status):
    """Its functions are those of the process for ever: ours are the same, and all is there."""
    bare, done, process = several(which, OTHER_CLIENT_FIRST="gone")
    assert done.stdout == bare.stdout and done.stderr == bare.stderr
    assert whole(process) and on_time(process)
    assert process.meta["gpu_rows"].endswith("/13.5/libcupti.so.13" + status)


def test_graphs_as_another_one_wants_them(several):
    """It came first, and chose for all: so a launch has one record, and that is said."""
    bare, done, process = several("shared", OTHER_CLIENT_FIRST="1", OTHER_CLIENT_GRAPHS="1",
                                  OTHER_CLIENT_WHOLE="1")
    assert done.stdout == bare.stdout
    assert "graphs as a whole (another subscriber chose this)" in process.meta["gpu_rows"]
    calls = {c.correlation: process.functions[c.code].symbol for c in launches_of(process)}
    assert {calls[r.correlation] for r in of(process, "graph")} == {"cudaGraphLaunch"}
    assert not any(r.args[12] for r in of(process, "kernel")) and not process.losses


def test_own_layout_is_refused(several):
    """What cannot be had from the records of the process is refused, and named."""
    _, done, process = several("monitor")
    assert "monitor started 27" in done.stdout
    assert "gpuprof: " not in done.stderr  # a parent may read it
    [note] = process.said
    assert note.startswith("another CUPTI client asked for a record layout of its own; ")
    assert of(process, "kernel")


def test_held_by_nobody_we_saw(several):
    """A subscription of ours that is refused is tried again beside others; then named."""
    _, done, process = several("none", SIMCUPTI_HOLDER="somebody")
    assert process.meta["gpu_rows"].startswith("absent: CUPTI for somebody already uses CUPTI")
    assert "gpuprof: " not in done.stderr
    assert launches_of(process) and not of(process, "kernel")


@pytest.mark.parametrize("first", ["", "1"])
@pytest.mark.parametrize("version", ["12.4", "13.5"])
def test_xla_wants_buffers_for_each_thread(library, tmp_path, version, first):
    """An attribute that must not change while kinds are enabled: ours are not, by then."""
    settings = {"OTHER_CLIENT_FIRST": first} if first else {}
    bare, done, process = recorder(version, library, tmp_path)("xla", **settings)
    assert done.stdout == bare.stdout and "xla started 0" in done.stdout
    assert re.search("kernels=[1-9]", stopped(done))
    assert set(process.losses) <= {"gpu_yields"}
    assert first or of(process, "kernel")
