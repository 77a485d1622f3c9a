# SPDX-License-Identifier: Apache-2.0
"""merge -j: a trace is the same however many processors make it, compressed or not."""

import gzip
import io
import json
import re
import subprocess
import zipfile

import pytest

LAUNCHES = 40000  # a trace of many buffers


@pytest.fixture(name="traces")
def fixture_traces(make_gpu, run_verb, tmp_path):
    """By -j the file of that name and, with fewer processors than it uses threads, its data."""
    folder = make_gpu("bench", LAUNCHES)

    def make(name):
        made = {}
        for jobs in ("-j1", "-j2", "--jobs=64"):
            (tmp_path / jobs).mkdir(exist_ok=True)
            run_verb("merge", jobs, folder, "-o", tmp_path / jobs / name)
            made[jobs] = (tmp_path / jobs / name).read_bytes()
        return made
    return make


def plain(data):
    """Without the name that a trace has of its file."""
    return re.sub(rb'"traceName": *"[^"]*"', b"", data)


@pytest.mark.parametrize("ending", ["json", "json.gz", "json.zst", "zip"])
def test_any_number_makes_the_same(traces, ending, tmp_path, run_verb):
    made = traces(f"trace.{ending}")
    assert made["-j1"] == made["-j2"] == made["--jobs=64"]
    data = made["-j2"]
    if ending == "json.gz":
        data = gzip.decompress(data)
    elif ending == "json.zst":
        data = subprocess.run(["zstd", "-dc"], input=data, check=True, capture_output=True).stdout
    elif ending == "zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None
            data = archive.read("rank_0.pt.trace.json")
    assert len(data) > 20 << 20 and len(json.loads(data)["traceEvents"]) > 4 * LAUNCHES
    if ending != "zip":
        run_verb("merge", "-j1", tmp_path / "data", "-o", tmp_path / "trace.json")
        assert plain(data) == plain((tmp_path / "trace.json").read_bytes())


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_no_number_of_processors(run_collector, tmp_path, number):
    result = run_collector("merge", f"--jobs={number}", tmp_path)
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert f"--jobs: '{number}' is no number of processors" in result.stderr


def test_full_disk_is_said_by_the_one_who_writes(make_gpu, run_collector):
    result = run_collector("merge", "-j2", make_gpu("bench", LAUNCHES), "-o", "/dev/full")
    assert result.returncode == 1 and "No space left" in result.stderr
    assert result.stderr.count("\n") == 1
