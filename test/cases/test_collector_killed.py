# SPDX-License-Identifier: Apache-2.0
"""A collector that is killed, at whatever point: nothing of the recording is lost or damaged, and
nothing half written stands under a name."""

import json
import shutil
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="an emulator's calls are not ours")

FIRST = 150  # the loader is at work until then
STEP = 29  # so many system calls' begins and ends apart


class Killed:
    """What a killed process has left, put in its place again before each try."""

    def __init__(self, library, collector, folder):
        self.folder, self.collector = folder, collector
        self.killer = toolchain.build("kill_at.c")
        self.data, self.live = folder / "data", folder / "live"
        self.temporary = folder / "temporary"
        self.live.mkdir()
        tiny, link = toolchain.tiny()
        env = toolchain.environment(self.data, library, GPUPROF_LIVE=self.live,
                                    GPUPROF_BUFFER="4M", LD_LIBRARY_PATH=tiny)
        with conftest.Program([toolchain.build("life.c", *link), "pause", "400"], env=env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.kill()
        for path in (self.data, self.live):
            shutil.copytree(path, folder / "kept" / path.name)
        self.calls = self.read()

    def reset(self):
        for path in (self.data, self.live, self.temporary):
            shutil.rmtree(path, ignore_errors=True)
        for path in (self.data, self.live):
            shutil.copytree(self.folder / "kept" / path.name, path)
        self.temporary.mkdir()

    def read(self):
        """Every call that is in the recording."""
        done = subprocess.run([self.collector, "dump", self.data], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True, timeout=60)
        assert "torn" not in done.stdout and "damaged" not in done.stdout
        return sorted(line for line in done.stdout.splitlines() if line.startswith("call "))

    def run(self, step, *arguments):
        """Is it killed there, before its end?"""
        env = toolchain.environment(None, TMPDIR=self.temporary)
        done = toolchain.run([self.killer, f"+{step}", self.collector, *arguments], env,
                             status=None)
        if done.returncode == 9:
            pytest.skip(toolchain.NO_TRACING)
        assert done.returncode == 0, done
        return done.stdout.endswith("killed\n")


@pytest.fixture(name="killed")
def fixture_killed(library, collector, tmp_path):
    return Killed(library, collector, tmp_path)


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("verb", ["merge", "report", "recover"])
def test_killed_anywhere(killed, monkeypatch, verb, unnamed):
    trace = killed.folder / "trace.json"
    more = ["-o", trace] if verb == "merge" else []
    if not unnamed:
        shim = toolchain.build("kill_at.c", "-DNO_UNNAMED", "-shared", "-fPIC")
        monkeypatch.setattr(toolchain, "environment", lambda *a, real=toolchain.environment, **s:
                            {**real(*a, **s), "LD_PRELOAD": str(shim)})
    states, step = set(), FIRST
    while True:
        killed.reset()
        trace.write_text("the old trace")
        if not killed.run(step, verb, killed.data, *more):
            break
        assert killed.read() == killed.calls
        assert trace.read_text() == "the old trace" or json.loads(trace.read_text())["traceEvents"]
        assert not unnamed or not list(killed.temporary.iterdir())
        others = [path for path in (*killed.data.iterdir(), *killed.folder.glob("trace.json?*"))
                  if path.suffix not in (".gpuprof", ".live")]
        assert len(others) <= 1 and all(".tmp-" in path.name for path in others)
        if unnamed and others and "trace.json" in others[0].name:  # it was whole, and being renamed
            assert json.loads(others[0].read_text())["traceEvents"]
        for path in others:
            path.unlink()
        states.add((len(list(killed.live.iterdir())), len(list(killed.data.iterdir())),
                    trace.read_text() == "the old trace"))
        step += STEP
    assert killed.read() == killed.calls and step > FIRST + 10 * STEP
    assert (1, 1, True) in states


def test_recover_after_a_killed_recover(killed, run_collector):
    """At whatever point the first one ended, the second one makes the whole file."""
    step = FIRST
    while True:
        killed.reset()
        if not killed.run(step, "recover", killed.data):
            break
        assert run_collector("recover", killed.data).returncode == 0
        [process] = stream_reader.read_folder(killed.data)
        assert not process.live_path and process.end_reason == 3
        assert killed.read() == killed.calls and not list(killed.live.iterdir())
        step += 2 * STEP
    assert step > FIRST + 10 * STEP
