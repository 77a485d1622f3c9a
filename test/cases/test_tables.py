# SPDX-License-Identifier: Apache-2.0
"""What the report shows of its tables: which, in what order, how many rows, and how wide."""

import fcntl
import json
import os
import re
import struct
import subprocess
import termios

import conftest
import csv_tables
import pytest
from made_stacks import TRAIN
from test_partial import random_lines, write_libraries


WIDE = "漢字のカーネル_with_a_long_tail_of_words_in_it_so_that_it_is_cut"
MARKED = "gemm<" + "e\u0301" * 60 + ">"
NAMES = ("functions", "findings", "collectives", "open_calls", "unfinished", "dumps", "failures",
         "calls_by_stack", "calls_by_python_line", "calls_by_thread", "source_lines",
         "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum",
         "cuda_gpu_mem_size_sum", "cuda_gpu_graph_sum", "cuda_sync_sum", "cuda_kern_exec_sum",
         "nvtx_sum", "nvtx_gpu_proj_sum", "overhead_sum", "gpu_time_util", "gpu_memory_peak",
         "host_kernel_sum", "host_mem_sum", "gpu_time", "idle", "ranks", "arrivals", "clocks",
         "ops", "labels", "library", "cost", "steps", "phases", "device_counters",
         "energy")


@pytest.fixture
def data(make_stacks):
    return make_stacks(
        "process 0",
        "call cudaLaunchKernel 1000 500 11 0 0", "call cudaLaunchKernel 2000 300 12 0 0",
        "call cudaLaunchKernel 3000 300 13 0 0", "call cudaMalloc 4000 9000 14 0 4096",
        "call cudaFree 20000 300 15 0 0",
        f"name 1 {WIDE}", f"name 2 {MARKED}", "name 3 plain",
        "kernel 1 5000 30000 11", "kernel 2 40000 7000 12", "kernel 3 50000 50 13")


@pytest.fixture
def report(run_verb, data):
    def run(*options, status=0):
        return run_verb("report", *options, data, status=status)
    return run


def rows(report, table, *options):
    return csv_tables.table(report("--format=csv", f"--table={table}", *options).stdout)


def on_terminal(command, columns, **environment):
    """What the command prints on a terminal of so many columns, without colours unless told."""
    environment = {"TERM": "dumb"} | environment
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with conftest.Program(command, stdout=slave, env={**os.environ, **environment}) as process:
        os.close(slave)
        text = b""
        try:
            while more := os.read(master, 4096):
                text += more
        except OSError:  # it has been left by all
            pass
    os.close(master)
    assert process.returncode == 0
    return text.decode().replace("\r\n", "\n")


def test_only_these_tables(report):
    text = report("--table=functions,gpu_time_util").stdout
    assert text.splitlines()[2].endswith("  function") and "\nGPU utilization\n" in text
    assert "GPU kernels" not in text and "calls, wall" not in text
    made = json.loads(report("--table=cuda_gpu_kern_sum", "--format=json").stdout)
    whole = json.loads(report("--format=json").stdout)
    assert made["cuda_gpu_kern_sum"] == whole["cuda_gpu_kern_sum"]
    assert set(whole) - set(made) == \
        {"own_cost", "device_power", "device_counters_absent", "arrivals_missed", *NAMES} & \
        set(whole) - {"cuda_gpu_kern_sum"}
    assert made["losses"] == whole["losses"]
    wanted = csv_tables.tables(report("--format=csv").stdout)
    for names in "cuda_gpu_kern_sum,losses,gpu_time_util", "steps,gpu_time_util":
        found = csv_tables.tables(report("--format=csv", f"--table={names}").stdout)
        assert set(names.split(",")) <= set(found)
        assert all(found[name] == wanted.get(name, []) for name in found)


def test_first_screen_names_what_it_does_not_count(report):
    """How long kernels took to begin is counted for who sees it; that there is a table is said."""
    first, whole = report().stdout, report("--full").stdout
    assert "cuda_kern_exec_sum" in first.split("more, with --full")[1]
    assert "time from launch to kernel" not in first
    made = json.loads(report("--format=json").stdout)["cuda_kern_exec_sum"]
    assert {row["name"]: row["instances"] for row in made} == \
        {"launch latency": 3, "queue time": 3, "call": 3}
    assert "time from launch to kernel" in whole


def test_own_cost_is_one_table(report):
    made = json.loads(report("--table=cost", "--format=json").stdout)
    assert made == json.loads(report("--table=own_cost", "--format=json").stdout)
    assert made["own_cost"]["classes"] == [] == made["own_cost"]["steps"]
    assert "functions" not in made


def test_named_table_without_rows_says_so(report):
    assert report("--table=nvtx_sum").stdout.startswith("\nranges (host)\n  none\n")
    assert json.loads(report("--table=nvtx_sum", "--format=json").stdout)["nvtx_sum"] == []
    assert "nvtx_sum" not in json.loads(report("--format=json").stdout)


def test_calls_are_left_out_where_there_are_none(run_verb, make_gpu):
    """In a piece of ranges without a call; who asks for them is told."""
    folder = make_gpu("late", 2)
    assert "\ncalls\n" in run_verb("report", folder).stdout
    text = run_verb("report", "--range=evaluate", folder).stdout
    assert "\nranges (host)\n" in text and "\ncalls\n" not in text and "within 1%" not in text
    text = run_verb("report", "--range=evaluate", "--table=functions", folder).stdout
    assert text.startswith("\ncalls\n  none\n")


@pytest.mark.parametrize("options, words", [
    (["--table=functions,kernels"], "unknown table 'kernels'; 'gpuprof help report' lists"),
    (["--table="], "--table= needs a value: NAME[,NAME..]"),
    (["--table=functions,"], "unknown table ''; 'gpuprof help report'"),
    (["--table=function"], "unknown table 'function' (did you mean functions?);"),
    (["--table=calls_by_stack"], "the table calls_by_stack needs --by=stack"),
    (["--table=calls_by_python_line", "--by=stack"], "calls_by_python_line needs --by=python-line"),
    (["--sort=seconds", "--table=gpu_time_util"],
     "no selected table has a column 'seconds'; the columns are: name, total_ns, instances, "),
    (["--sort=p95", "--table=own_cost"], "no selected table has a column 'p95'; the columns are: "),
    (["--sort=total_n", "--table=functions"],
     "'total_n' (did you mean total_ns?); the columns are: "
     "function, domain, calls, total_ns, mean_ns, median_ns, p95_ns, max_ns, bytes, errors"),
    (["--mine=x"], "--mine takes no value"),
    (["--limit=x"], "--limit: 'x' is not a number of rows"),
    (["--limit=-1"], "--limit: '-1' is not a number of rows"),
    (["--limit=3k"], "--limit: '3k' is not a number of rows"),
    (["--limit=99999999999999999999"], "is not a number of rows"),
], ids=str)
def test_unknown_is_one_line(report, options, words):
    result = report(*options, status=2)
    assert result.stdout == "" and result.stderr.count("\n") == 1
    assert words in result.stderr and len(result.stderr) < 220
    assert result.stderr.startswith("gpuprof: report: ")


def test_help_names_every_table(run_collector):
    text = run_collector("help", "report").stdout
    words = re.findall(r"^  (\w+) ", text[text.index("\ntables:\n"):], re.MULTILINE)
    assert {*NAMES, "losses"} <= set(words) and len(words) == len(set(words))


def test_sort(report):
    def functions(*options):
        return [row["function"] for row in rows(report, "functions", *options)]
    assert functions() == ["cudaMalloc", "cudaLaunchKernel", "cudaFree"]
    assert functions("--sort=calls") == ["cudaLaunchKernel", "cudaMalloc", "cudaFree"]
    assert functions("--sort=function") == ["cudaFree", "cudaLaunchKernel", "cudaMalloc"]
    # By the text's label, too; alike rows stay in the order in which they were.
    assert functions("--sort=errors") == functions()
    kernels = json.loads(report("--sort=mean", "--format=json").stdout)["cuda_gpu_kern_sum"]
    assert [row["mean_ns"] for row in kernels] == [30000, 7000, 50]
    kernels = json.loads(report("--sort=name", "--format=json").stdout)["cuda_gpu_kern_sum"]
    assert [row["name"] for row in kernels] == sorted([WIDE, MARKED, "plain"])
    # A table without such a column stays as it is.
    table = csv_tables.tables(report("--sort=instances", "--format=csv").stdout)["functions"]
    assert [row["function"] for row in table] == functions()


def test_sort_of_single_numbers(report):
    """Of the devices' shares and memory, which stand in other columns than those of the rest."""
    shares = json.loads(report("--sort=share", "--format=json").stdout)["gpu_time_util"]
    values = [row["share"] for row in shares if "share" in row]
    assert len(values) > 2 and values == sorted(values, reverse=True) and len(set(values)) > 2
    lines = report("--sort=share", "--table=gpu_time_util").stdout.splitlines()[2:]
    values = [float(line.split("%")[0]) for line in lines if "%" in line]
    assert len(values) > 2 and values == sorted(values, reverse=True)


def test_absent_rows_of_the_gpu_are_said(make_stacks, run_verb):
    data = make_stacks("process 0", "meta gpu_rows=absent: no CUPTI", "call cudaFree 1 500 1 0 0")
    text = run_verb("report", "--table=cuda_gpu_kern_sum", data).stdout
    assert text.startswith("GPU rows absent: no CUPTI\n\nGPU kernels\n  none\n")


def test_sort_by_call_of_stacks(make_stacks, run_verb):
    data = make_stacks("process 0", "python 1 1 /a.py\tf", "stack 1 0 p1", "stack 2 0 p1 p1",
                       "call cudaFree 1000 10 1 1 0", "call cudaMalloc 2000 500 2 2 8")
    text = run_verb("report", "--by=stack", data).stdout
    assert 0 < text.index("cudaMalloc\n") < text.index("cudaFree\n")
    text = run_verb("report", "--by=stack", "--sort=call", data).stdout
    assert 0 < text.index("cudaFree\n") < text.index("cudaMalloc\n")
    result = run_verb("report", "--by=stack", "--table=calls_by_stack", "--sort=frames", data,
                      status=2)
    assert "no selected table has a column 'frames'" in result.stderr


def test_sort_by_share_of_stacks(report):
    def shares(*options):
        made = json.loads(report("--by=stack", "--format=json", *options).stdout)
        return [row["calls"] for row in made["calls_by_stack"]]
    assert shares("--sort=calls") == sorted(shares(), reverse=True)


def test_limit(report):
    text = report("--limit=1", "--table=functions,cuda_gpu_kern_sum").stdout
    assert " cudaMalloc\n" in text and "cudaFree" not in text and WIDE in text
    assert text.count("... and 2 more rows\n") == 2
    assert report("--limit=2", "--table=functions").stdout.count("... and 1 more row\n") == 1
    made = json.loads(report("--limit=1", "--format=json").stdout)
    assert len(made["functions"]) == 1 and made["functions_left_out"] == 2
    assert len(made["cuda_gpu_kern_sum"]) == 1 and made["cuda_gpu_kern_sum_left_out"] == 2
    assert "failures_left_out" not in made
    assert [row["name"] for row in rows(report, "cuda_gpu_kern_sum", "--limit=1")] == [WIDE]


@pytest.mark.parametrize("kind", ["gpu", "ops", "ranks", "libraries", "texts", "stack",
                                  "python-line", "thread", "source"])
def test_csv_is_the_json(make_gpu, make_ops, make_stacks, tmp_path, run_collector, kind):
    """Each table, its columns in their order, and each cell; as blocks, alone, and as files."""
    words = {"stack": ["--by=stack"], "python-line": ["--by=python-line"],
             "thread": ["--by=thread"], "source": ["--source=."]}.get(kind, [])
    (tmp_path / "train.py").write_text('say("a, b")\n' * 99)
    folder = {"gpu": lambda: make_gpu("train", 2), "ops": lambda: make_ops(2, 500, 3),
              "ranks": lambda: make_stacks(*random_lines(7, 4)),
              "texts": lambda: conftest.ROOT / "test/corpus/texts.gpuprof",
              "libraries": lambda: write_libraries(tmp_path / "libraries", (3, 3, 5))}.get(
                  kind, lambda: make_stacks(*TRAIN))()

    def run(*options):
        return run_collector("report", "--keep-live", *words, *options, folder).stdout
    found = csv_tables.check(run("--format=csv"), run("--format=json"))
    run("--format=csv", "-o", "tables/")
    assert {path.stem: csv_tables.table(path.read_text())
            for path in (tmp_path / "tables").iterdir()} == found
    alone = csv_tables.table(run("--format=csv", "--table=losses"))
    assert alone == found.get("losses", [])
    for name in found:  # and help says what they mean
        told = run_collector("help", name).stdout
        assert {*found[name][0]} <= {*re.findall(r"^  (\w+)", told, re.MULTILINE)}, name


def test_help_lists_the_tables(run_collector):
    """As the help of each verb does; and GUIDE names no others."""
    made = re.sub(r"\n {5,}", " ", run_collector("help", "tables").stdout)
    found = re.findall(r"^  (\w+) +(\S.*)$", made, re.MULTILINE)
    listed = []
    for verb in "report", "memory":
        told = run_collector("help", verb).stdout.partition("\ntables:\n")[2]
        listed += re.findall(r"^  (\w+) +(\S.*)$", re.sub(r"\n {5,}", " ", told), re.MULTILINE)
    assert found == listed and len(found) > 50
    guide = (conftest.ROOT / "GUIDE.md").read_text(encoding="utf-8")
    named = {*",".join(re.findall(r"--table=([a-z_,]+)", guide)).split(",")} - {""}
    assert named <= {name for name, _ in found}


def test_files_of_csv(report, run_collector, tmp_path, data):
    """In a folder that is there, or ends in a slash; and why there are none is said."""
    (tmp_path / "there").mkdir()
    for options in ["--format=csv", "-o", "there"], ["-o", "new/"]:
        assert report("--table=functions", *options).stderr == ""
        folder = options[-1]
        [path] = (tmp_path / folder).iterdir()
        assert path.name == "functions.csv" and len(csv_tables.table(path.read_text())) == 3
    report("--format=csv", "--table=steps,failures", "-o", "there")  # which have no rows
    assert (tmp_path / "there/failures.csv").read_text().count("\n") == 1
    (tmp_path / "blocked/functions.csv").mkdir(parents=True)
    for folder, words in ("no/such/", "no/such/: No such file or directory"), \
            ("there/failures.csv/", "there/failures.csv/: "), \
            ("blocked", "blocked/functions.csv: Is a directory"):
        result = run_collector("report", "--format=csv", "-o", folder, data)
        assert result.returncode == 1 and words in result.stderr
        assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert [path.name for path in (tmp_path / "blocked").iterdir()] == ["functions.csv"]
    assert not (tmp_path / "no").exists()


def test_limit_of_nothing(report):
    text = report("--limit=0", "--table=functions").stdout
    heading, more = text.splitlines()[2:4]
    assert heading.endswith("  function") and more == " " * heading.index("function") + \
        "... and 3 more rows"
    made = json.loads(report("--limit", "0", "--format=json").stdout)
    assert made["functions"] == [] and made["functions_left_out"] == 3


def test_limit_replaces_the_texts_own(make_stacks, run_verb):
    lines = [f"stack {i} 0 p{i:x}" for i in range(1, 51)]
    places = [f"python {i} {i} /a.py\tf{i}" for i in range(1, 51)]
    calls = [f"call cudaMalloc {1000 * i} {i} {i} {i} 8" for i in range(1, 51)]
    data = make_stacks("process 0", *places, *lines, *calls)
    text = run_verb("report", "--by=stack", data).stdout
    assert text.count("cudaMalloc\n") == 40
    assert "... and 10 more rows; --limit=N shows more of them\n" in text
    text = run_verb("report", "--by=stack", "--limit=45", data).stdout
    assert text.count("cudaMalloc\n") == 45 and "... and 5 more rows\n" in text


# The share, then as many columns as there is room for, and a name of 32 columns or what is left.
GOLDEN = {
    100: f"""
GPU kernels
  share        total    instances         mean       median  name
  81.0%    30.000 us            1    30.000 us    30.000 us  漢字のカーネル_wit..._so_that_it_is_cut
  18.9%     7.000 us            1     7.000 us     7.000 us  gemm<{"é" * 13}...{"é" * 17}>
   0.1%        50 ns            1        50 ns        50 ns  plain
no room for: max, p95, min; --full shows all
""",
    80: f"""
GPU kernels
  share        total    instances         mean  name
  81.0%    30.000 us            1    30.000 us  漢字のカーネル_...that_it_is_cut
  18.9%     7.000 us            1     7.000 us  gemm<{"é" * 10}...{"é" * 13}>
   0.1%        50 ns            1        50 ns  plain
no room for: max, p95, min, median; --full shows all
""",
    41: f"""
GPU kernels
  share        total  name
  81.0%    30.000 us  漢字のカ...t_is_cut
  18.9%     7.000 us  gemm<{"é" * 3}...{"é" * 7}>
   0.1%        50 ns  plain
no room for: max, p95, min, median, mean, instances; --full shows all
""",
    3: """
GPU kernels
  share        total  name
  81.0%    30.000 us  漢...ut
  18.9%     7.000 us  gem...é>
   0.1%        50 ns  plain
no room for: max, p95, min, median, mean, instances; --full shows all
""",
}


@pytest.mark.parametrize("columns", GOLDEN)
def test_text_fits_the_terminal(collector, data, columns):
    text = on_terminal([collector, "report", "--table=cuda_gpu_kern_sum", data], columns)
    assert text.split("\n\nlosses")[0].replace("e\u0301", "é").rstrip("\n") == \
        GOLDEN[columns].rstrip("\n")


def test_what_tells_nothing_gives_way_first(collector, make_gpu):
    """Columns that are 0 in all rows; and ranks keep what the others waited for to the last."""
    command = [collector, "report", "--table=ranks,steps", make_gpu("late", 4)]
    zeros = {"batches", "operators", "data loader", "copies"}
    for columns in (300, 160, 80):
        text = on_terminal(command, columns)
        ranks, steps = text.split("\nsteps\n")
        for label in ("it waited", "came last", "behind", "others waited"):
            assert f" {label} " in ranks.split("\n")[2], (columns, label)
        heading, = (line for line in steps.split("\n") if line.endswith("waited for  which"))
        assert " duration " in heading and " other " in heading
        assert columns == 80 or " comm. + waits " in heading
        spared = steps.rpartition("\nno room for: ")[2].partition(";")[0].split(", ")
        assert columns == 300 or "batches" in spared
        assert columns != 160 or set(spared) <= zeros
        assert columns != 80 or set(spared[:len(zeros)]) == zeros


def test_tables_come_as_they_were_asked_for(make_gpu, run_verb):
    folder = make_gpu("late", 2)
    titles = {"ranks": "\nranks\n", "steps": "\nsteps\n", "functions": "\ncalls\n"}
    for names in (("ranks", "functions", "steps"), ("steps", "functions", "ranks")):
        text = run_verb("report", "--table=" + ",".join(names), folder).stdout
        assert sorted(names, key=lambda name: text.index(titles[name])) == list(names)


def test_full_and_no_terminal_never_cut(collector, data, report):
    whole = report().stdout
    assert WIDE in whole and MARKED in whole
    command = [collector, "report", data]
    assert on_terminal([*command, "--full"], 40) == report("--full").stdout
    assert on_terminal(command, 40) != whole
    assert subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "COLUMNS": "40"}).stdout == whole
    # A terminal that does not know its width is as wide as COLUMNS says.
    assert on_terminal(command, 0, COLUMNS="") == whole
    assert on_terminal(command, 0, COLUMNS="40") == on_terminal(command, 40)
    assert on_terminal(command, 300, COLUMNS="40") == on_terminal(command, 300)
    for form in ("csv", "json"):
        option = f"--format={form}"
        assert on_terminal([*command, option], 40) == report(option).stdout


def test_lines_of_a_stack_fit(collector, make_stacks):
    data = make_stacks("process 0", "python 1 12 /home/me/train.py\t" + "very_" * 30 + "long",
                       "stack 1 0 p1", "call cudaMalloc 1000 500 1 1 8",
                       "call cudaFree 2000 500 2 0 0")
    text = on_terminal([collector, "report", "--by=stack", "--table=calls_by_stack", data], 90)
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.endswith("  cudaMalloc"))
    frame = lines[at + 1]
    assert len(frame) == 90 and "..." in frame and frame.endswith("(train.py:12)")
    assert frame.index("very") == lines[at].index("cudaMalloc") + 2
    assert "(no stack: below the threshold, not asked for, lost, or not returned)" in text


def test_program_fits(collector, make_stacks):
    data = make_stacks("process 0 " + "x", "call cudaFree 2000 500 2 0 0")
    for columns, shown in ((24, "pyt...n.py"), (40, "python train.py")):
        line = on_terminal([collector, "report", data], columns).split("\n")[0]
        assert len(line) <= columns and line.startswith("  program ") and line.endswith(shown[-6:])


@pytest.mark.parametrize("kind, kinds", [
    ("gpu", {"functions", "cuda_gpu_kern_sum", "cuda_kern_exec_sum", "gpu_time_util",
             "gpu_memory_peak", "idle"}),
    ("ops", {"functions", "ops"}),
    ("ranks", {"functions", "cuda_gpu_kern_sum", "cuda_kern_exec_sum", "nvtx_sum",
               "nvtx_gpu_proj_sum"}),
    ("libraries", {"cuda_gpu_kern_sum", "library"}),
    ("version 1", {"functions", "host_kernel_sum", "failures"})])
def test_a_table_alone_is_as_beside_others(make_gpu, make_ops, make_stacks, tmp_path,
                                           run_collector, kind, kinds):
    """Of the tables that are not asked for nothing is gathered; findings are made of everything."""
    folder = {"gpu": lambda: make_gpu("train", 2), "ops": lambda: make_ops(2, 500, 3),
              "ranks": lambda: make_stacks(*random_lines(7, 4), "push 900000 to the end",
                                           "name 1 last", "kernel 1 9000000 5000 1"),
              "libraries": lambda: write_libraries(tmp_path / "libraries", (3, 3, 5)),
              "version 1": lambda: conftest.ROOT / "test/cases/versions/1.gpuprof"}[kind]()
    seen = set()

    def lines(tables):
        done = run_collector("report", "--keep-live", "--format=csv", f"--table={tables}", folder)
        found = csv_tables.tables(done.stdout)
        found.pop("findings", None)
        return done.returncode, done.stderr, found
    for name in set(NAMES) - {"calls_by_stack", "calls_by_python_line", "calls_by_thread",
                              "source_lines"}:
        alone = lines(f"{name},losses")  # of which nothing is gathered
        assert alone == lines(f"{name},losses,findings"), name
        seen.update(table for table, rows in alone[2].items() if rows)
    assert kinds <= seen, seen
