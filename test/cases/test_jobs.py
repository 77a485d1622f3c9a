# SPDX-License-Identifier: Apache-2.0
"""-j: what comes out is the same however many processors make it, and so is what is said."""

import gzip
import io
import json
import re
import subprocess
import zipfile

import conftest
import pytest
import sanitized

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
    assert f"--jobs: '{number}' is not a number of processes" in result.stderr


def test_more_processors_than_are_used(run_verb, make_gpu):
    folder = make_gpu("train", 2, 2)
    most, more = (run_verb("report", f"-j{jobs}", folder) for jobs in (256, 300))
    assert (most.stdout, most.stderr, more.stderr) == (more.stdout, "", "")


def test_full_disk_is_said_by_the_one_who_writes(make_gpu, run_collector):
    result = run_collector("merge", "-j2", make_gpu("bench", LAUNCHES), "-o", "/dev/full")
    assert result.returncode == 1 and "No space left" in result.stderr
    assert result.stderr.count("\n") == 1


# ---- verbs ---------------------------------------------------------------------------------------

VERBS = {"merge": ("merge", "-o", "-"), "report": ("report", "--format=json"),
         "flame": ("flame", "--format=folded", "-o", "-"),
         "export": ("export", "--format=speedscope", "-o", "-"), "memory": ("memory",),
         "piece": ("merge", "--from=0", "--to=5ms", "-o", "-")}
NO_THREADS = """
#include <errno.h>
int pthread_create(void) { return EAGAIN; }
"""


def seen(verb, jobs, recording, program, **options):
    """Its exit code, and what it writes and says."""
    done = subprocess.run([program, *VERBS[verb], *jobs, recording], capture_output=True,
                          check=False, timeout=180, **options)
    return done.returncode, done.stderr, done.stdout


@pytest.fixture(name="recordings", params=["gpu", "ranks", "operators", "malformed"])
def fixture_recordings(request, make_gpu, make_ops, tmp_path):
    """Files or folders, and whether some are damaged."""
    if request.param == "gpu":
        return [make_gpu("bench", 5000)]
    if request.param == "ranks":
        return [make_gpu("train", 4)]
    if request.param == "operators":
        return [make_ops(3, 700, 1)]
    folder = tmp_path / "corpus"
    folder.mkdir()
    subprocess.run([conftest.BUILD / "make_corpus", folder], check=True, timeout=60)
    return [folder, *sorted(folder.glob("*.gpuprof"))]


def check_same(recordings, program, verbs=VERBS, **options):
    codes = set()
    for recording in recordings:
        for verb in verbs if recording.is_dir() else ("report",):
            one = seen(verb, ["-j1", "--keep-live"], recording, program, **options)
            for jobs in ("-j2", "-j4") if recording.is_dir() else ("-j2",):
                assert seen(verb, [jobs, "--keep-live"], recording, program, **options) == one, \
                    (recording, verb, jobs)
            codes.add(one[0])
    return codes


def test_all_verbs_make_the_same(recordings, collector):
    codes = check_same(recordings, collector)
    assert 0 in codes and (len(recordings) == 1 or 3 in codes)  # 3: something is damaged


def test_without_threads(make_gpu, collector, tmp_path):
    (tmp_path / "none.c").write_text(NO_THREADS)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "none.so", tmp_path / "none.c"],
                   check=True)
    folder = make_gpu("train", 2)
    for verb in ("merge", "report"):
        assert seen(verb, ["-j2"], folder, collector,
                    env={"LD_PRELOAD": str(tmp_path / "none.so")}) == \
            seen(verb, ["-j1"], folder, collector)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_threads_are_in_order(recordings):
    """As the sanitizer of threads sees it, which ends a program with 66."""
    folder = sanitized.make(sanitized.THREAD, "gpuprof-collector")
    check_same(recordings, folder / "gpuprof-collector", env={"TSAN_OPTIONS": "exitcode=66"})
