# SPDX-License-Identifier: Apache-2.0
"""Programs that write over the live file, which lies in their memory: they end as ever, what they
did not write over can be read, and what is lost is counted."""

import json
import signal

import pytest
import stream_reader
import toolchain

THREADS, BEFORE, AFTER, FEW, MANY = 3, 10000, 2000000, 100, 2000
CHUNK_CALLS = 16384 // (8 * 6)


@pytest.fixture(name="scribble")
def fixture_scribble(library, run_collector, tmp_path):
    """Runs the program; (sizes that its calls asked for by thread, the counter, what merge has)"""
    def scribble(*arguments, **settings):
        folder, link = toolchain.tiny()
        env = toolchain.environment(tmp_path / "out", library, **{
            "GPUPROF_LIVE": tmp_path, "GPUPROF_CHUNK": "16K", "GPUPROF_BUFFER": "16M",
            "GPUPROF_WAIT": "60s", "LD_LIBRARY_PATH": folder, **settings})
        done = toolchain.run([toolchain.build("scribble.c", *link, "-pthread"), *arguments], env,
                             status=3, timeout=40)
        assert done.stderr == ""
        assert list(tmp_path.glob("*.live")) == []
        [process] = stream_reader.read_folder(tmp_path / "out")
        assert process.torn_bytes == 0
        sizes = {}
        for record in process.of_type(stream_reader.CALL):
            sizes.setdefault(record.thread, []).append(record.args[1])
        trace = tmp_path / "trace.json"
        merged = run_collector("merge", tmp_path / "out", "-o", trace)
        assert merged.returncode == 0, merged.stderr
        lost = process.counters["overwritten"]
        assert json.loads(trace.read_text())["otherData"]["losses"].get("overwritten", 0) == lost
        report = run_collector("report", tmp_path / "out")
        assert report.returncode == 0
        assert ("the program overwrote recorded data" in report.stdout) == (lost > 0)
        return sizes, lost
    return scribble


WORDS = {"zero": 0, "ones": (1 << 64) - 1, "long": 1 | 0xFFF0 << 16 | 2 << 48,
         "short": 1 | 3 << 16, "many-arguments": 1 | 6 << 16 | 200 << 48}


@pytest.mark.parametrize("word", sorted(WORDS))
def test_one_record(scribble, word):
    """What comes before it, and what is in other chunks."""
    sizes, lost = scribble("record", WORDS[word], GPUPROF_SEAL="30s")
    [sizes] = sizes.values()
    assert lost == 1
    assert sizes[1:1 + FEW // 2] == [BEFORE + i for i in range(FEW // 2)]
    after = [s for s in sizes if s >= AFTER]
    assert after == [AFTER + i for i in range(MANY - len(after), MANY)]
    assert len(after) >= MANY - CHUNK_CALLS


@pytest.mark.parametrize("word", sorted(WORDS))
def test_open_call(scribble, word):
    """Nobody but itself: its thread sees it before it goes on."""
    sizes, lost = scribble("open", WORDS[word], GPUPROF_SEAL="30s")
    [sizes] = sizes.values()
    assert lost == 1
    assert sizes[1:] == [*(BEFORE + i for i in range(FEW // 2)), BEFORE + FEW,
                         *(BEFORE + i for i in range(FEW // 2 + 1, FEW)),
                         *(AFTER + i for i in range(MANY))]


@pytest.mark.parametrize("kind", ["zeros", "ones", "random"])
def test_storm(scribble, kind):
    """Chunks' heads and records, while threads call: each is recorded from its next chunk on."""
    sizes, lost = scribble("storm", kind, GPUPROF_SEAL="10ms")
    assert lost > 0
    after = [{s for s in its if AFTER <= s < AFTER + MANY} for its in sizes.values()]
    after = [its for its in after if its]
    assert len(after) == THREADS
    for its in after:
        assert its >= {AFTER + i for i in range(CHUNK_CALLS, MANY)}


@pytest.mark.parametrize("ends", ["exits", "killed"])
def test_counters(library, run_collector, tmp_path, ends):
    """What is no number of losses is none in the report: it says that they are not known."""
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path,
                                LD_LIBRARY_PATH=folder)
    program = [toolchain.build("scribble.c", *link, "-pthread"), "counters", str(0x7FF0 << 48)]
    toolchain.run(program + ["killed"] * (ends == "killed"), env,
                  status=-signal.SIGKILL if ends == "killed" else 3, timeout=40)
    report = run_collector("report", "--format=json", tmp_path / "out")
    assert report.returncode == 3, report.stderr
    losses = json.loads(report.stdout)["losses"]
    assert losses.pop("counters_damaged") == 1
    losses.pop("live_records", None)
    assert not losses
    text = run_collector("report", tmp_path / "out").stdout
    assert "the loss counters are damaged: there may be more losses" \
        in text
    assert json.loads(report.stdout)["calls"] == 1 + FEW
