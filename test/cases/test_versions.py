# SPDX-License-Identifier: Apache-2.0
"""One recording of each released format version, kept for ever: it reads as it did on its day.

versions/N.gpuprof is a stream file, N.live beside it the live file of that process (which was
killed), N.dump what `gpuprof-collector dump` makes of both. GPUPROF_REFRESH=1 writes N.dump anew,
for a change of dump's own form.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
import stream_reader

VERSIONS = pathlib.Path(__file__).resolve().parent / "versions"
REFRESH = os.environ.get("GPUPROF_REFRESH") == "1"  # read now: tests run without GPUPROF_ variables
STREAMS = sorted(VERSIONS.glob("*.gpuprof"))


def test_there_is_one():
    assert [p.stem for p in STREAMS] == ["1"]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda p: p.stem)
def test_version_reads_as_ever(stream, collector, tmp_path):
    for path in (stream, stream.with_suffix(".live")):
        shutil.copy(path, tmp_path)
    done = subprocess.run([collector, "dump", stream.name], cwd=tmp_path, capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    golden = stream.with_suffix(".dump")
    if REFRESH:
        golden.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == golden.read_text(encoding="utf-8")
    [process] = stream_reader.read_folder(tmp_path)
    assert len(process.calls()) == sum(line.startswith("call ")
                                       for line in done.stdout.splitlines())
