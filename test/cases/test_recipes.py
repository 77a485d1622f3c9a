# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING.md, each tried: test/recipes, built in a copy of the tree."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import conftest
import pytest
import toolchain
from made_findings import MS, Job
from test_findings import allocated

PATCHES = conftest.ROOT / "test" / "recipes"
# The places that an addition takes, and no other.
PLACES = {
    "function": ["formats/api/api_runtime.def"],
    "library": ["formats/api/api.def", "formats/api/api_toy.def"],
    "record": ["collector/trace/chrome_host.c", "formats/event-stream.md", "formats/events.def",
               "inject/record/thread.c"],
    "setting": ["formats/settings.def"],
    "format": ["collector/trace/lines_writer.c", "collector/trace/trace_formats.def"],
    "section": ["collector/page/page_sections.def", "collector/page/toy.js"],
    "metric": ["collector/diff/run_metrics.def", "collector/diff/run_steps.c"],
}
# A record's spec has two tables.
HUNKS_MAX = {"function": 1, "library": 2, "record": 5, "setting": 1, "format": 2,
             "section": 2, "metric": 2}

TREE = ("Makefile", "inject", "formats", "collector", "test")


def run(*command, **options):
    done = subprocess.run(command, text=True, capture_output=True, check=False, **options)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(tree, *targets):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    run("make", "-s", f"-j{os.cpu_count()}", "BUILD=build", "CFLAGS=-O0", *targets,
        "collector-bin", cwd=tree, env=plain)


@pytest.fixture(name="tree", scope="module")
def fixture_tree(tmp_path_factory):
    """A copy with all patches, and the library and the collector built in it."""
    tree = tmp_path_factory.mktemp("recipes") / "tree"
    tree.mkdir()
    run("cp", "-r", *(str(conftest.ROOT / name) for name in TREE), str(tree))
    for name in PLACES:
        run("git", "apply", "-C1", str(PATCHES / f"{name}.patch"), cwd=tree)
    build(tree, "lib")
    return tree


@pytest.fixture(name="recording", scope="module")
def fixture_recording(tree):
    toy = toolchain.build("toy.c", "-shared", "-fPIC", "-Wl,-soname,libtoy.so")
    named = toy.with_name("libtoy.so")
    named.unlink(missing_ok=True)
    os.link(toy, named)
    program = toolchain.build("recipes_work.c", *toolchain.runtime(12), str(toy))
    out = tree.parent / "out"
    done = toolchain.run([program], toolchain.environment(
        out, tree / "build" / "libgpuprof.so", LD_LIBRARY_PATH=f"{toolchain.SIM}:{toy.parent}"))
    assert done.stderr == ""
    return out


@pytest.mark.parametrize("recipe", PLACES)
def test_an_addition_takes_its_places(recipe):
    lines = run("git", "apply", "--check", "-C1", "--numstat", str(PATCHES / f"{recipe}.patch"),
                cwd=conftest.ROOT).splitlines()
    assert sorted(line.split("\t")[2] for line in lines) == PLACES[recipe]
    assert all(line.split("\t")[1] == "0" for line in lines), "it only adds"
    hunks = (PATCHES / f"{recipe}.patch").read_text(encoding="utf-8").count("\n@@")
    assert hunks <= HUNKS_MAX[recipe]


@pytest.mark.long
def test_calls_are_seen(tree, recording):
    collector = tree / "build" / "gpuprof-collector"
    calls = [line for line in run(collector, "dump", *recording.glob("*.gpuprof")).splitlines()
             if line.startswith("call ")]
    assert [re.match(r"call (\w+)", line)[1] for line in calls] == \
        ["cudaDeviceGetStreamPriorityRange", "toyA", "toyA", "toyB"]  # toyA calls one inside
    assert re.search(r" result=0 least=0 greatest=-[1-9]", calls[0])
    assert re.search(r" result=0 src=0x[0-9a-f]+ bytes=8 size=4 ", calls[1])
    assert " result=3 error=TOY_ERROR_BROKEN src=0x0 bytes=8 size=0 " in calls[2]
    assert " result=7 error=TOY_NOT_READY flags=0x7 " in calls[3]
    report = json.loads(run(collector, "report", "--format=json", recording))
    rows = {row["function"]: row for row in report["functions"]}
    assert (rows["toyA"]["domain"], rows["toyA"]["calls"], rows["toyA"]["errors"]) == ("toy", 2, 1)
    assert rows["toyB"]["errors"] == 0  # "not ready" is none
    assert rows["cudaDeviceGetStreamPriorityRange"]["domain"] == "runtime"
    trace = recording.parent / "trace.json"
    run(collector, "merge", recording, "-o", trace)
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert [e["name"] for e in events if e.get("cat") == "toy"] == ["toyA", "toyA", "toyB"]


@pytest.mark.long
def test_records_are_seen(tree, recording):
    collector = tree / "build" / "gpuprof-collector"
    dumped = run(collector, "dump", *recording.glob("*.gpuprof"))
    assert len(re.findall(r'^toast begin=\d+ slices=3 text="butter" thread=1 ', dumped, re.M)) == 1
    trace = recording.parent / "toast.json"
    run(collector, "merge", recording, "-o", trace)
    assert sum(event.get("name") == "toast" for event in
               json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]) == 1


@pytest.mark.long
def test_a_setting_is_an_option(tree):
    collector = tree / "build" / "gpuprof-collector"
    assert "--toy cat|dog           which of the two (GPUPROF_TOY; default: cat)" in run(
        collector, "help", "run")
    wrong = subprocess.run([collector, "run", "--toy=bird", "true"], capture_output=True,
                           text=True, check=False)
    assert (wrong.returncode, wrong.stderr) == (
        2, "gpuprof: run: --toy: 'bird' is not one of cat|dog\n")


@pytest.mark.long
def test_a_format_is_written(tree, recording):
    collector = tree / "build" / "gpuprof-collector"
    text = run(collector, "merge", recording, "--format=lines", "-o", "/dev/stdout")
    assert re.fullmatch(r"(\d+ \d+\n)+end\n", text)
    folder = recording.parent / "ranks"
    for words in (["-o", folder / "t.lines"], ["-o", folder / "t.lines.gz"],
                  ["--format=lines", "--per-rank", "-o", folder]):
        folder.mkdir(exist_ok=True)
        run(collector, "merge", recording, *words)
    assert (folder / "t.lines").read_text() == text
    assert gzip.decompress((folder / "t.lines.gz").read_bytes()).decode() == text
    assert gzip.decompress((folder / "rank_0.lines.gz").read_bytes()).decode() == text
    archive = recording.parent / "lines.zip"
    run(collector, "merge", recording, "--format=lines", "-o", archive)
    with zipfile.ZipFile(archive) as members:  # and nothing that only Perfetto wants
        assert members.namelist() == ["rank_0.lines"]
        assert members.read("rank_0.lines").decode() == text
    wrong = subprocess.run([collector, "merge", recording, "--format=x"], capture_output=True,
                           text=True, check=False)
    assert wrong.stderr.endswith("the formats are: chrome (.json), perfetto (.pftrace), "
                                 "lines (.lines)\n")


# Real ones, by their places below collector/: the text there, or "" for the whole file.
REAL = {
    "table": {"analyse/threads.c": [""], "analyse/analyses.def": [r"ANALYSIS\(threads_sums\)\n"]},
    "finding": {"analyse/finding_kinds.def": [r"FINDING\(ALLOCATION_CHURN,.*?\n(?=FINDING)"],
                "analyse/finding_evidence.c": [r" *case IDLE_ALLOCATION: .*\n"]},
    "verb": {"run/recover.c": [""], "cli/verbs.def": [r"VERB\(recover\)\n"]},
    "option": {"flame/flame_verb.c": [r" *bool threads;\n", r" *f\.costs\.split_threads = .*\n",
                                      r' *\{0, "threads",[^}]*\},\n']},
}
REAL_PLACES = {"table": 2, "finding": 2, "verb": 2, "option": 1}


@pytest.mark.long
def test_real_ones_go_and_come_back(tree, recording, make_records):
    """Each from its places: output, help and completion follow."""
    assert {kind: len(places) for kind, places in REAL.items()} == REAL_PLACES
    collector = tree / "build" / "gpuprof-collector"
    job = Job()
    allocated(job, 100 * MS)
    churn = make_records(job.lines(), name="churn")
    threads = ["report", "--by=thread", "--table=calls_by_thread", recording]
    flame = ["flame", "--threads", recording]

    def answers():
        return [run(collector, *words) for words in (
            *([*threads, f"--format={form}"] for form in ("text", "json", "csv")),
            ["report", "--table=findings", "--format=json", churn], flame, ["help"],
            ["help", "report"], ["help", "flame"],
            ["completion", "words", "--", ""], ["manual"])]

    before = answers()
    kept = {}
    for places in REAL.values():
        for place, pieces in places.items():
            file = tree / "collector" / place
            kept[file] = text = file.read_text()
            for piece in filter(None, pieces):
                text, count = re.subn(piece, "", text, count=1, flags=re.DOTALL if "?" in piece
                                      else 0)
                assert count == 1, piece
            if text == kept[file]:
                file.unlink()
            else:
                file.write_text(text)
    build(tree)

    def refused(*words):
        done = subprocess.run([collector, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        return done.stderr

    assert "unknown table 'calls_by_thread'" in refused(*threads)
    assert "unknown option '--threads'" in refused(*flame)
    assert "unknown verb 'recover'" in refused("recover", recording)
    assert json.loads(run(collector, "report", "--table=findings", "--format=json",
                          churn))["findings"] == []
    for words, name in ((["help"], "recover"), (["help", "report"], "calls_by_thread"),
                        (["help", "flame"], "--threads"),
                        (["completion", "words", "--", ""], "recover")):
        now = run(collector, *words)
        assert name not in now and any(name in text for text in before)
    for file, text in kept.items():
        file.write_text(text)
    build(tree)
    assert answers() == before and json.loads(before[1])["calls_by_thread"][0]["calls"] == 4
    assert json.loads(before[3])["findings"][0]["id"] == "allocation-churn"


@pytest.mark.long
def test_a_metric_is_compared(tree, recording):
    """In a baseline, in what is made of it, and as one that gates: one call more is worse."""
    collector = tree / "build" / "gpuprof-collector"
    saved = recording.parent / "baselines"
    run(collector, "baseline", "save", "old", recording, f"--dir={saved}")
    text = json.loads((saved / "old.json").read_text())
    row, = text["runs"]
    assert row["metrics"]["calls"] == 4
    text["runs"] = 2 * [row]
    (saved / "old.json").write_text(json.dumps(text))
    row["metrics"]["calls"] = 5
    (saved / "new.json").write_text(json.dumps(text))
    words = [collector, "diff", saved / "new.json", "--against", "old", "--dir", saved]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=saved.parent)
    assert done.returncode == 1 and done.stdout.endswith("\nworse: calls +25.0 %\n")


@pytest.mark.long
def test_a_section_is_drawn(tree, recording):
    """In its place, by a real browser."""
    if not shutil.which("chromium"):
        pytest.skip("not run: no chromium; ./scripts/check installs it")
    page = recording.parent / "page.html"
    run(tree / "build" / "gpuprof-collector", "report", "-o", page, recording)
    drawn = run("chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                "--virtual-time-budget=10000", "--dump-dom",
                f"--user-data-dir={recording.parent / 'profile'}", page.as_uri())
    ids = re.findall(r'<section id="(\w+)"', drawn)
    assert ids[-3:] == ["toy", "cost", "settings"]
    assert re.search(r'<section id="toy".*?<li>[^<]*: 4 calls</li>', drawn, re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize("tests", ["test/cases/test_spec.py", "test/abi/test_abi_table.py",
                                   "test/cases/test_unchanged.py::test_exports"])
def test_no_other_test_needs_a_line(tree, tests):
    """Those that hold the tables against something."""
    run(sys.executable, "-m", "pytest", "-c", "test/pytest.ini", f"--rootdir={tree}", tests,
        cwd=tree, env={**os.environ, "BUILD": "build"})
