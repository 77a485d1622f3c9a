# SPDX-License-Identifier: Apache-2.0
"""The collector's verbs on generated recordings: options, exit codes, outputs, limits."""

import gzip
import json
import os
import re
import resource
import shutil
import subprocess

import csv_tables
import pytest
import toolchain

from conftest import BUILD, ROOT, built, need

CORPUS = ROOT / "test" / "corpus"


@pytest.fixture
def make_stream(tmp_path):
    """make_stream(calls, processes, threads): a folder of recordings."""
    def make(calls, processes=1, threads=1, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([built(BUILD / "make_stream"), folder, str(calls), str(processes),
                        str(threads)], check=True, timeout=300)
        return folder
    return make


def calls_of(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


@pytest.mark.parametrize("arguments,text", [
    (["frobnicate"], "unknown verb 'frobnicate'"),
    (["--frobnicate"], "unknown option '--frobnicate'"),
    (["merge"], "merge: name a data folder or a recording (. is the current folder); try"),
    (["merge", "--frobnicate", "x"], "merge: unknown option '--frobnicate'"),
    (["merge", "-o"], "merge: -o needs a value: FILE"),
    (["merge", "--output=", "x"], "merge: --output= needs a value: FILE"),
    (["merge", "--blocks", "x"], "unknown option '--blocks'"),
    (["report", "--port=3", "x"],
     "unknown option '--port=3' (it is an option of 'gpuprof view'); try"),
    (["report", "--backtrace=sync", "x"],
     "'--backtrace=sync' (it is an option of 'gpuprof run'); try"),
    (["dump", "-o", "x", "y"], "dump: unknown option '-o'"),
    (["report", "--format=xml", "x"], "--format: 'xml' is not one of text|json|csv"),
    (["manual", "x"], "manual: unknown verb or topic 'x'"),
    (["help", "merge", "report"], "help: too many arguments"),
    (["dump", "--strict=yes", "x"], "dump: --strict takes no value"),
    (["report", "--rank=1", "--rank=2", "x"],
     "--rank was given twice; give it once, with commas between the values"),
    (["report", "--step=1", "--from=2", "--step=3", "x"], "--step was given twice; give it once"),
    (["report", "-o", "/tmp", "x"], "/tmp: is a folder; name a file in it, or give --format=csv"),
    (["memory", "--from=.2s", "--to=.", "x"], "--to: '.' is not a time"),
    (["merge", "not-there"], "not-there: No such file or directory"),
    (["merge", "."], "no recording found in ."),
    (["merge", "/dev/null"], "/dev/null: not a gpuprof file"),
])
def test_wrong_usage(run_collector, arguments, text):
    result = run_collector(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("gpuprof: ") and result.stderr.count("\n") == 1
    assert text in result.stderr
    assert result.stdout == ""


def test_version(run_collector):
    assert run_collector("--version").stdout.startswith("gpuprof ")


def read_by(*command):
    """How often the process has read, and how many bytes."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        message = process.stderr.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        try:
            with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
                counts = dict(line.split(": ") for line in file)
        except OSError as error:
            pytest.skip(f"nobody counts what a process reads: {error}")
    assert process.returncode == 0, message
    return int(counts["syscr"]), int(counts["rchar"])


@pytest.mark.skipif(bool(toolchain.CROSS), reason="an emulator's reads are not ours")
def test_what_is_read_of_small_blocks(collector, make_gpu):
    """Many of them at once, and no more often than the tables need: those of a part are made of
    all that is not asked for by its name, and what is wrong with the memory is in none."""
    folder = make_gpu("train", 4, 600)
    reads, part = read_by(collector, "report", "--partial", "-o", "/dev/null", folder)
    assert reads < 4 * 600 / 4
    assert read_by(collector, "report", "--table=ranks", folder)[1] < 1.1 * part
    # Blocks that have names are read first, and again.
    assert read_by(collector, "report", "--table=steps", folder)[1] < 1.6 * part
    assert read_by(collector, "report", "--table=findings", folder)[1] > 1.2 * part


def test_fifo_is_not_waited_for(run_collector, tmp_path):
    os.mkfifo(tmp_path / "a.gpuprof")
    result = run_collector("merge", tmp_path / "a.gpuprof")
    assert result.returncode == 2


def test_folder_takes_only_stream_files(run_collector, tmp_path):
    shutil.copy(CORPUS / "good.gpuprof", tmp_path)
    (tmp_path / "notes.txt").write_text("something else")
    (tmp_path / "sub").mkdir()
    shutil.copy(CORPUS / "text.gpuprof", tmp_path / "sub")
    result = run_collector("merge", "--strict", tmp_path)
    assert result.returncode == 0 and result.stderr == ""


@pytest.mark.parametrize("verb", ["report", "merge", "dump"])
@pytest.mark.parametrize("target", ["gone", "a.gpuprof"])
def test_dangling_link_hides_nothing_else(run_collector, tmp_path, verb, target):
    """It is garbage among recordings: they are shown."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(CORPUS / "good.gpuprof", folder)
    whole = run_collector(verb, folder)
    (folder / "a.gpuprof").symlink_to(target)
    result = run_collector(verb, folder)
    assert (whole.returncode, result.returncode) == (0, 3)
    assert f"{folder}/a.gpuprof: " in result.stderr and result.stderr.count("\n") == 1
    if verb != "report":
        assert len(result.stdout.splitlines()) >= len(whole.stdout.splitlines())
    assert run_collector(verb, folder / "a.gpuprof").returncode in (1, 2)


def test_no_output_is_named_as_a_recording(run_collector, make_stream, tmp_path):
    """It would stand for one in the data folder from then on."""
    folder = make_stream(100)
    before = sorted(folder.iterdir())
    for words in (["merge", "-o"], ["merge", "--per-rank", "-o"], ["flame", "-o"]):
        result = run_collector(*words, folder / "x.gpuprof", folder)
        assert result.returncode == 2 and result.stderr.count("\n") == 1
        assert "x.gpuprof: not written: it is a recording, or its name is that of one" in \
            result.stderr
    assert sorted(folder.iterdir()) == before


def test_outputs_are_the_same(run_collector, make_stream, tmp_path):
    folder = make_stream(20000, 3, 4)
    to_stdout = run_collector("merge", folder)
    assert run_collector("merge", "-o", "-", folder).stdout == to_stdout.stdout
    for option in (["-o", "a.json"], ["-oa.json"], ["--output", "a.json"], ["--output=a.json"]):
        result = run_collector("merge", folder, *option)
        assert result.returncode == 0 and result.stdout == "" and result.stderr == ""
        assert (tmp_path / "a.json").read_text() == to_stdout.stdout
        (tmp_path / "a.json").unlink()
    for name in ("a.json.gz", "a.JSON.GZ"):
        assert run_collector("merge", "-o", name, folder).returncode == 0
        assert gzip.decompress((tmp_path / name).read_bytes()).decode() == to_stdout.stdout
        (tmp_path / name).unlink()
    files = sorted(folder.iterdir(), reverse=True)
    assert run_collector("merge", *files).stdout == to_stdout.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_recording_is_not_overwritten(run_collector, make_stream, tmp_path):
    [stream] = make_stream(100).glob("*.gpuprof")
    before = stream.read_bytes()
    done = run_collector("merge", "-o", stream, stream)
    assert done.returncode == 2 and "is a recording" in done.stderr
    assert stream.read_bytes() == before and not list(tmp_path.glob("*.tmp-*"))


def test_trace(run_collector, make_stream):
    trace = json.loads(run_collector("merge", make_stream(30000, 2, 3)).stdout)
    calls = calls_of(trace)
    assert len(calls) == 30000
    times = [e["ts"] for e in calls]
    assert times[0] == 0 and times == sorted(times)
    assert {(e["pid"], e["tid"]) for e in calls} == {(p, p + t) for p in (1000, 1001)
                                                    for t in range(3)}
    assert {e["cat"] for e in calls} == {"cuda_runtime"}
    launch = next(e for e in calls if e["name"] == "cudaLaunchKernel")
    assert launch["args"]["kernel"].startswith("void at::native::kernel_number<")
    assert launch["args"]["grid"] == [108, 1, 1] and launch["args"]["block"] == [256, 1, 1]
    assert launch["args"]["cuda_stream"] == "0x7f0000001000" and "stream" not in launch["args"]
    copy = next(e for e in calls if e["name"] == "cudaMemcpyAsync")
    assert copy["args"]["kind"] == "HtoD" and copy["args"]["bytes"] >= 1024
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"]
             if e["name"] == "process_name"}
    assert names[1000] == "python train.py --steps 100 (testhost)"
    assert trace["displayTimeUnit"] == "ns"
    assert str(trace["baseTimeNanoseconds"]) == trace["otherData"]["origin_ns"]
    assert trace["otherData"]["losses"] == {}


def test_processes_in_order_of_rank(run_collector, program, tmp_path):
    """By number, whatever started first; a process without a rank, such as a launcher, is last."""
    for rank in ("", "10", "9", "0"):
        environment = dict(os.environ, RANK=rank)
        started = run_collector("run", "-o", "data", "--quiet", program("one_call"),
                                env=environment)
        assert started.returncode == 0, started.stderr
    trace = json.loads(run_collector("merge", "data").stdout)
    processes = trace["otherData"]["processes"]
    assert [process.get("rank") for process in processes] == ["0", "9", "10", None]
    rows = [e for e in trace["traceEvents"] if e["name"] == "process_sort_index"]
    index_of = {row["pid"]: row["args"]["sort_index"] for row in rows}
    assert [index_of[process["pid"]] for process in processes] == [0, 65, 130, 195]
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"]
             if e["name"] == "process_name"}
    host = processes[0]["host"]
    text = run_collector("report", "--full", "data").stdout
    titles = []
    for process, rank in zip(processes, ("rank 0: ", "rank 9: ", "rank 10: ", "")):
        title = f"{rank}{program('one_call')} ({host}"
        assert names[process["pid"]] == f"{title})"
        titles.append(f"  {title}, pid {process['pid']}): 2 calls")
    assert [line for line in text.splitlines() if " pid " in line] == titles


def test_errors_have_names(run_collector):
    """Which error, of which function, and where it came first."""
    paths = CORPUS / "good.gpuprof", CORPUS / "live-good.gpuprof"
    report = json.loads(run_collector("report", "--keep-live", "--format=json", *paths).stdout)
    assert sum(row["errors"] for row in report["functions"]) == \
        sum(row["count"] for row in report["failures"]) > 0
    [row] = [row for row in report["failures"] if row["error"] == "cudaErrorMemoryAllocation"]
    assert (row["function"], row["result"], row["pid"]) == ("cudaMalloc", 2, 1000)
    tables = run_collector("report", "--keep-live", *paths).stdout.split("\n\n")
    [table] = [table for table in tables if table.startswith("calls that returned an error\n")]
    assert re.search(rf"\n +{row['count']} +[0-9.]+ [mun]?s  "
                     r"cudaErrorMemoryAllocation of cudaMalloc, in thread \d+( \(.*\))? of train "
                     r"\(testhost, pid 1000\)", table), table
    rows = {(row["error"], row["function"]): row["count"]
            for row in csv_report(run_collector, *paths)["failures"]}
    assert rows["cudaErrorMemoryAllocation", "cudaMalloc"] == str(row["count"])


def test_processes_without_gpu_rows_are_named(run_collector, program):
    """They must not hide behind those that have some."""
    each = "; ".join(f"GPUPROF_{setting} {program('one_call')}" for setting in (
        "GPU=on", "CUPTI=/nonesuch", "GPU=off", "GPU=off"))
    done = run_collector("run", "-o", "data", "sh", "-c", each)
    assert done.returncode == 0, done.stderr
    off = "absent in 2 of 4 processes: turned off (GPUPROF_GPU)"
    assert f"\n  GPU        rows {off}\n" in done.stderr
    lines = [line for line in run_collector("report", "--full", "data").stdout.splitlines()
             if line.startswith("GPU rows ")]
    assert len(lines) == 3
    assert "GPU rows in 2 of 4 processes: absent: turned off (GPUPROF_GPU)" in lines
    assert sum(line.startswith("GPU rows in 1 of 4 processes: from CUPTI ") for line in lines) == 1
    rows = json.loads(run_collector("report", "--format=json", "data").stdout)["gpu_rows_of"]
    assert sorted(row["processes"] for row in rows) == [1, 1, 2]
    assert {"status": "absent: turned off (GPUPROF_GPU)", "processes": 2} in rows


def csv_report(run_collector, *paths):
    text = run_collector("report", "--keep-live", "--format", "csv", *paths).stdout
    return csv_tables.tables(text)


def test_report_agrees_with_trace(run_collector, make_stream):
    folder = make_stream(20000, 2, 2)
    calls = calls_of(json.loads(run_collector("merge", folder).stdout))
    report = json.loads(run_collector("report", "--format=json", folder).stdout)
    rows = {row["function"]: row for row in report["functions"]}
    table = csv_report(run_collector, folder)
    assert set(table) == {"functions", "host_kernel_sum", "host_mem_sum", "clocks"}
    table = table["functions"]
    assert report["calls"] == len(calls) and report["processes"] == 2 and report["threads"] == 4
    assert {row["function"] for row in table} == set(rows) == {e["name"] for e in calls}
    for name, row in rows.items():
        durations = sorted(round(e["dur"] * 1000) for e in calls if e["name"] == name)
        assert row["calls"] == len(durations) and row["total_ns"] == sum(durations)
        assert row["max_ns"] == durations[-1]
        for key, fraction in (("median_ns", 0.5), ("p95_ns", 0.95)):
            exact = durations[int(fraction * len(durations))]
            assert abs(row[key] - exact) <= 0.015 * exact
        assert row["bytes"] == sum(e["args"].get("bytes", 0) for e in calls if e["name"] == name)
    text = run_collector("report", folder).stdout
    assert "20,000 calls" in text and "  GPU        rows absent: " in text and "losses" not in text


def test_report_shows_losses(run_collector):
    result = run_collector("report", CORPUS / "block-payload.gpuprof")
    assert result.returncode == 3
    assert "\nlosses and notes\n" in result.stdout
    assert "1  blocks damaged" in result.stdout


def test_what_is_no_loss_stands_below_the_first_screen(run_collector):
    """In a table, which is there by its name alone, too, and says if it is empty; JSON has it in
    any case."""
    def report(name, *options):
        return run_collector("report", *options, "--keep-live", CORPUS / f"{name}.gpuprof").stdout
    text = report("live-good")
    assert "\n  lost       nothing\n" in text
    table = "\nlosses and notes\n         count  what\n" \
            "             5  events read from the live file (nothing is missing)\n" \
            "             1  calls that had not returned (nothing is missing)\n"
    assert text.endswith(table) and text.count("losses and notes") == 1
    assert report("live-good", "--table=losses").endswith(table)
    assert report("live-good", "--table=functions,losses").count("losses and notes") == 1
    for form in ("--format=json", "--format=csv"):
        assert report("live-good", "--table=losses", form).count("live_records") == 1
    assert "\n  lost       nothing\n" in report("good")
    assert report("good", "--table=losses").endswith(
        "\nlosses and notes\n  none: nothing was lost, and there are no notes\n")
    assert "losses" not in report("good", "--table=functions")


@pytest.mark.parametrize("paths,rows", [
    (["block-payload"], {("damage", "damaged_blocks"): 1, ("damage", "damaged_records"): 3}),
    (["header-only", "header-torn"], {("loss", "not_ended"): 1, ("damage", "unread_files"): 1}),
    (["live-good"], {("note", "live_records"): 5, ("note", "open_calls"): 1}),
], ids=str)
def test_csv_shows_losses(run_collector, paths, rows):
    """They are a table of their own, which can be asked for alone."""
    files = [CORPUS / f"{path}.gpuprof" for path in paths]
    if len(files) > 1:
        result = run_collector("report", "--format=csv", *files)
        assert result.returncode == 3
    table = csv_report(run_collector, *files)
    report = json.loads(run_collector("report", "--keep-live", "--format=json", *files).stdout)
    assert {(row["kind"], row["name"]): int(row["count"]) for row in table["losses"]} == rows
    assert {key: value for (kind, key), value in rows.items() if key != "unread_files"} == \
        report["losses"]
    alone = run_collector("report", "--keep-live", "--format=csv", "--table=losses", *files).stdout
    assert csv_tables.table(alone) == table["losses"]


def test_csv_of_odd_names(run_collector):
    names = [row["function"] for row in
             csv_report(run_collector, CORPUS / "texts.gpuprof")["functions"]]
    assert 'odd"\\ \ufffd' in names, names


def test_dump(run_collector):
    lines = run_collector("dump", CORPUS / "good.gpuprof").stdout.splitlines()
    assert lines[0].startswith("file ") and lines[1].startswith("header process_id=01")
    assert "call cudaMalloc begin=1300 dur=50 result=2 error=cudaErrorMemoryAllocation" \
           " ptr=0x3000 bytes=64 thread=1 tid=0" in lines
    assert sum(line.startswith("call ") for line in lines) == 12
    assert lines[-1] == "losses"
    blocks = run_collector("dump", "--blocks", CORPUS / "good.gpuprof").stdout.splitlines()
    assert blocks == [line for line in lines if line.split()[0] in
                      ("file", "header", "block", "losses")]


def test_zstd_accepts_the_files():
    need("zstd")
    subprocess.run(["zstd", "-tq", CORPUS / "good.gpuprof"], check=True)


@pytest.mark.parametrize("output", ["/dev/full", "-"])
def test_full_disk(run_collector, make_stream, output):
    folder = make_stream(20000)
    with open("/dev/full", "w", encoding="ascii") as full:
        result = subprocess.run([built(BUILD / "gpuprof-collector"), "merge", "-o", output, folder],
                                stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                timeout=60)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert ": No space left on device" in result.stderr
    assert ("free space" in result.stderr) == (output != "-")


def test_name_of_another_kind(run_collector, make_stream, tmp_path):
    """A trace is not to pass for a table, nor a table for a page."""
    folder = make_stream(10)
    others = "x.csv", "x.svg", "x.html.gz", "x.tar", "x.perfetto-trace"
    for verb, names, advice in (
            ("merge", others, "the formats are: chrome (.json), perfetto (.pftrace)"),
            ("report", ("x.svg",), "name it .txt, .csv, .json or .html, or give --format; "
                                  "'gpuprof export' and 'gpuprof merge' write other types")):
        for name in names:
            result = run_collector(verb, folder, "-o", name)
            assert (result.returncode, result.stdout, result.stderr) == (
                2, "", f"gpuprof: {verb}: {name}: unknown file type; {advice}\n")
            assert not (tmp_path / name).exists()
    for name in ("x.JSON", "x.json.gz", "x.zip", "x", "x.gz", ".x", "./a.b/x", "/dev/null"):
        (tmp_path / "a.b").mkdir(exist_ok=True)
        assert run_collector("merge", folder, "-o", name).returncode == 0
    assert run_collector("merge", folder, "--per-rank", "-o", "x.d").returncode == 0


def test_format_of_a_trace(run_collector, make_stream):
    """A format that is named is written, whatever the file is called; one that is none is said."""
    folder = make_stream(10)
    named = run_collector("merge", folder, "--format=chrome", "-o", "/dev/stdout", "--keep-live")
    assert (named.returncode, named.stderr) == (0, "")
    assert named.stdout.startswith('{"schemaVersion":1')
    assert run_collector("merge", folder, "--format", "chrome", "-o", "x.csv").returncode == 0
    wrong = run_collector("merge", folder, "--format=nsys", "-o", "x.json")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (
        2, "", "gpuprof: merge: --format: unknown format 'nsys'; "
               "the formats are: chrome (.json), perfetto (.pftrace)\n")


@pytest.mark.parametrize("name,form", [("t.csv", "csv"), ("t.JSON", "json"), ("t.json.gz", "json"),
                                       ("t.txt", "text"), ("t", "text"), ("-", "text")])
def test_report_into_a_file(run_verb, make_stream, tmp_path, name, form):
    folder = make_stream(10)
    printed = run_verb("report", folder, f"--format={form}").stdout
    if name == "-":
        assert run_verb("report", folder, "-o", name).stdout == printed
        return
    assert run_verb("report", folder, "-o", name).stdout == ""
    data = (tmp_path / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data).decode() == printed
    run_verb("report", folder, "-o", "x.html", "--format=json")
    assert json.loads((tmp_path / "x.html").read_text())["calls"] == 10


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_partial_file_is_removed(make_stream, tmp_path, name):
    folder = make_stream(100000)
    (tmp_path / name).write_text("the old trace")
    result = subprocess.run([built(BUILD / "gpuprof-collector"), "merge", "-o", name, folder],
                            cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False,
                            timeout=60,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                  (300000, 300000)))
    assert result.returncode == 1
    assert "File too large" in result.stderr and result.stderr.count("\n") == 1
    assert (tmp_path / name).read_text() == "the old trace"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["data", name])


def test_losses_of_many_processes(run_collector, make_stream, tmp_path):
    """A job of thousands that was killed does not fill the screen; the exit code is of them all."""
    folder = make_stream(100, 40)
    for path in sorted(folder.iterdir()):
        path.write_bytes(path.read_bytes()[:-3])
    last = sorted(folder.iterdir())[-1]
    result = run_collector("report", folder)
    lines = result.stderr.splitlines()
    assert result.returncode == 3 and len(lines) == 17
    assert all(re.search(r"\((rank \d+, )?pid \d+\): lost: ", line) for line in lines[:-1])
    assert lines[-1].startswith("gpuprof: ... and losses of 24 more processes; ")
    assert re.search(r"\b40  processes: no end", result.stdout)
    alone = run_collector("report", last)
    assert alone.returncode == 3 and ": lost: " in alone.stderr


@pytest.mark.parametrize("verb", ["report", "merge"])
def test_many_files_that_cannot_be_read(run_collector, make_stream, verb):
    folder = make_stream(100)
    for i in range(40):
        (folder / f"empty{i}.gpuprof").touch()
    result = run_collector(verb, folder)
    lines = result.stderr.splitlines()
    assert result.returncode == 3 and len(lines) == 17 and result.stdout
    assert lines[-1] == "gpuprof: ... and 24 more files that cannot be read"


@pytest.mark.parametrize("descriptors", [12, 100])
def test_more_files_than_descriptors(run_collector, make_stream, descriptors):
    folder = make_stream(6000, 300)
    limit = (descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    result = run_collector("merge", "--strict", folder, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, limit))
    assert result.returncode == 0, result.stderr
    assert len(calls_of(json.loads(result.stdout))) == 6000
    assert run_collector("merge", folder, "-o", "trace.json.gz", preexec_fn=lambda:
                         resource.setrlimit(resource.RLIMIT_NOFILE, limit)).returncode == 0


def test_a_process_takes_little_memory(collector, make_stream):
    """There may be thousands; payloads that are open at a time have a bound of their own. GUIDE has
    what a process takes, and the block of its thread that is open."""
    few = peak_kib(collector, make_stream(2_000, 100, 1, "few"))
    many = peak_kib(collector, make_stream(20_000, 1000, 1, "many"))
    assert many - few < 900 * 29  # KiB; 27.8 to 28.2 were seen


def peak_kib(collector, folder):
    return toolchain.peak_kib(collector, "merge", "-j1", "-o", "/dev/null", folder)


def test_memory_is_flat(collector, make_stream):
    small = peak_kib(collector, make_stream(100_000, 2, 2, "small"))
    large = peak_kib(collector, make_stream(3_000_000, 2, 2, "large"))
    assert large < 1.2 * small + 1024, (small, large)
