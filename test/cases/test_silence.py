# SPDX-License-Identifier: Apache-2.0
"""What a thread did while it made no call: looked at when it makes the next one, within a bound."""

import re

import pytest
import stream_reader
import toolchain

SILENCE = stream_reader.TYPE_NUMBERS["silence"]
SLACK_NS = 2_000_000  # a thread of a busy machine is late, and so is our own code's end


def recorded(library, folder, count, us, **settings):
    """The program's process and its child's, and what it said of descriptors."""
    path, link = toolchain.tiny()
    env = toolchain.environment(folder / "out", library, LD_LIBRARY_PATH=path, **settings)
    done = toolchain.run([toolchain.build("silence_work.c", *link), count, us], env, status=3)
    said = {who: (int(n), int(lowest)) for who, n, lowest in
            re.findall(r"(\w+): (\d+) from (\d+)", done.stdout)}
    processes = sorted(stream_reader.read_folder(folder / "out"), key=lambda p: -len(p.calls()))
    return processes, said


def test_who_calls_after_a_silence_is_looked_at(library, tmp_path):
    toolchain.need_unwinder()
    (process, child), said = recorded(library, tmp_path, 20, 2500)
    main = process.calls()[0].thread
    calls = [call for call in process.of_type(stream_reader.CALL) if call.thread == main]
    silences = [record for record in process.of_type(SILENCE) if record.thread == main]
    # At last its descriptor's number was another file's.
    assert all(record.args[3] < record.args[1] + SLACK_NS for record in silences)
    calls = calls[:21]
    silences = [record for record in silences if record.begin < calls[-1].begin]
    found = 0
    for before, call in zip(calls, calls[1:]):
        end = before.begin + before.duration
        seen = [record for record in silences if end < record.begin <= call.begin]
        assert len(seen) <= (call.begin - end > 900_000)
        for record in seen:
            silent, since, cpu, _ = record.args[:4]
            assert silent == pytest.approx(record.begin - end, abs=1000)
            assert silent <= since and cpu < since - silent + SLACK_NS  # it slept
            assert call.stack
            found += 1
    assert found == len(silences) >= 8  # less if the machine is so busy that a look takes long
    # A thread has one, out of the way; a child of a fork has closed its parent's.
    assert said["program"] == (1, said["program"][1]) and said["program"][1] >= 200
    assert said["child"][0] == 1 and 1 <= said["threads"][0] <= 64
    assert len(child.of_type(SILENCE)) == 1


def test_looks_have_a_bound(library, tmp_path):
    """They cost no more than they may: not each of many short silences is looked at."""
    (process, _), _ = recorded(library, tmp_path, 2500, 110, GPUPROF_SILENCE="100us")
    assert 5 <= len(process.of_type(SILENCE)) < 1200
    costs = {record.text: record.args for record in process.of_type(stream_reader.COST)}
    assert costs[b"silence"][0] >= len(process.of_type(SILENCE))  # and readings after slow calls


def test_nobody_is_looked_at_without_the_setting(library, tmp_path):
    (process, child), said = recorded(library, tmp_path, 3, 2000, GPUPROF_SILENCE="off")
    assert not process.of_type(SILENCE) + child.of_type(SILENCE)
    assert not any(call.stack for call in process.of_type(stream_reader.CALL))
    assert {count for count, _ in said.values()} == {0}
