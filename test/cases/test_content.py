# SPDX-License-Identifier: Apache-2.0
"""What large copies copied (--copy-hash): the same bytes have the same hash, others another one,
and the program notices nothing."""

import collections

import cupti_client as cupti
import pytest
import stream_reader
import toolchain

CONTENT = stream_reader.TYPE_NUMBERS["content"]
pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")


@pytest.fixture(name="record")
def fixture_record(library, tmp_path):
    """record(ARGUMENT ..., NAME=value): what it printed, and its processes, the first one first."""
    program = toolchain.build("content_work.c", *toolchain.runtime(13), *toolchain.DRIVER)

    def run(*arguments, **settings):
        env = toolchain.environment(tmp_path / "out", library, GPUPROF_GPU="on",
                                    GPUPROF_CUPTI=toolchain.SIM / cupti.VERSIONS["13.0"][0],
                                    **settings)
        done = toolchain.run([program, *arguments], env, status=3)
        assert done.stderr == ""
        processes = stream_reader.read_folder(tmp_path / "out")
        return done.stdout.split(), sorted(processes, key=lambda p: p.header.monotonic_zero)
    return run


def copies(process):
    return [r for r in process.of_type(stream_reader.CALL)
            if "emcpy" in process.functions[r.code].symbol]


def contents(process):
    """begin -> record, each as its call is."""
    calls = {(call.begin, call.correlation): call for call in copies(process)}
    found = {}
    for record in process.of_type(CONTENT):
        call = calls[record.begin, record.correlation]
        assert record.args[1] == call.args[2] >= 256 << 10 and record.args[0]
        found[call.begin] = record.args[0]
    return found


@pytest.mark.parametrize("front", ("auto", "cupti"))
def test_same_bytes_same_hash(record, front):
    said, (process,) = record(GPUPROF_FRONT=front)
    calls, found = sorted(copies(process), key=lambda r: r.begin), contents(process)
    assert len(calls) == len(said)
    assert [call.begin in found for call in calls] == [content != "0" for content in said]
    meant = collections.defaultdict(set)
    for call, content in zip(calls, said):
        meant[content].add(found.get(call.begin))
    hashes = [h for content, (h,) in meant.items() if content != "0"]
    assert len(set(hashes)) == len(hashes) == 8


def test_another_process_has_other_hashes(record):
    _, processes = record("threads")
    first, second = map(contents, processes)
    assert len(first) == len(second) == 200
    assert len(set(first.values())) == len(set(second.values())) == 1
    assert set(first.values()) != set(second.values())


def test_off(record):
    said, (process,) = record(GPUPROF_COPY_HASH="0")
    assert len(copies(process)) == len(said) and not contents(process)
    assert "content" not in {cost.text.decode() for cost in process.of_type(stream_reader.COST)
                             if cost.args[0]}


@pytest.mark.parametrize("setting", ({"GPUPROF_BACKTRACE_THRESHOLD": "0"}, {"GPUPROF_CHUNK": "16K"},
                                     {"GPUPROF_NESTED": "1"}))
def test_among_other_things(record, setting):
    said, (process,) = record(**setting)
    assert len(contents(process)) == len([content for content in said if content != "0"])
    cost = max((c for c in process.of_type(stream_reader.COST) if c.text == b"content"),
               key=lambda c: c.args[0])  # it is told so far, once a second
    assert cost.args[0] == cost.args[1] >= len(contents(process)) and cost.args[3] > 0
