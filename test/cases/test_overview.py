# SPDX-License-Identifier: Apache-2.0
"""The first screen of the report, and the summary of a run: what is said, in how many lines, and
how wide. Figures come from the script of the recording, never from the report's tables."""

import json
import pathlib
import random
import re
import unicodedata

import pytest
import stream_reader
from test_tables import on_terminal

CORPUS = pathlib.Path(__file__).parent.parent / "corpus"
VERSIONS = pathlib.Path(__file__).parent / "versions"
LABELS = ("open", "error", "program", "wall time", "steps", "GPU time", "idle", "GPU", "calls",
          "copied", "finding", "lost", "running", "given up", "gpuprof", "more", "unfinished",
          "collective", "held back", "no memory", "held by", "try", "quiet",
          "windows", "start-up", "recorded", "selection")
HOSTILE = "\x1b[2J\r\n\x07\u202e" + "漢" * 200 + "e\u0301" * 300


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF"
               else 1 for c in text)


def screen_of(text):
    """The lines before the first table, by label; those that go on have the one before."""
    lines = text.partition("\n\n")[0].splitlines()
    found, label = {}, None
    for line in lines:
        assert line.startswith("  "), line
        if not line.lstrip().startswith("next: "):  # that goes to the left where there is no room
            label = line[2:13].strip() or label
        assert label in LABELS, line
        found.setdefault(label, []).append(line[13:])
    return lines, found


def bounded(collector, data, columns=80):
    lines, found = screen_of(on_terminal([collector, "report", data], columns))
    commands = [line for line in lines if line.lstrip().startswith("next: ")]
    assert len(lines) <= 24 and max(map(width, set(lines) - set(commands))) <= columns
    for line in commands:  # to be copied
        assert "..." not in line and (width(line) <= columns or line.startswith("  next: "))
    assert all(c.isprintable() or c == " " for line in lines for c in line), lines
    return lines, found


def made(step_ns, busy_ns, steps=10):
    """Steps of one launch, and one kernel each that works for `busy_ns` of it."""
    lines = ["process 0", "meta cmdline=train.py --lr 3"]
    for i in range(steps):
        at = 1000 + i * step_ns
        lines += [f"step {at} {i}", f"call cudaLaunchKernel {at + 100} 500 {i + 1} 0 0"]
    lines.append(f"step {1000 + steps * step_ns} {steps}")
    lines.append("name 1 gemm")
    lines += [f"kernel 1 {1000 + i * step_ns + 700} {busy_ns} {i + 1}" for i in range(steps)]
    return lines


@pytest.mark.parametrize("busy_ns, bar", [(1000, "."), (5_000_000, "#")])
def test_bar_agrees_with_its_share(run_collector, make_stacks, busy_ns, bar):
    """What rounds to 0.0% has no letter; what is shown as a share has at least one."""
    text = run_collector("report", make_stacks(*made(100_000_000, busy_ns))).stdout
    share, drawn = re.search(r"compute +([\d.]+)%.*\n +\[(.)", text).groups()
    assert drawn == bar and (float(share) == 0) == (bar == ".") and float(share) < 6


def test_what_was_not_recorded_is_no_zero(run_collector, make_gpu):
    text = run_collector("report", make_gpu("train", 2, 20)).stdout
    assert "\n  recorded   99.9% of the GPUs' time; shares refer to that, without start-up\n" \
        in text


def test_processes_whose_work_is_missing_are_counted(run_collector, make_stacks):
    """What is said of the time of GPUs is of the others', also where parts are added up."""
    lines = []
    for rank in range(3):
        lines += [f"process {rank}", f"meta env.RANK={rank}", "meta gpu_rows=from CUPTI",
                  "call cudaLaunchKernel 1000 500 1 0 0", *["kernel 1 2000 900 1"] * (rank == 1)]
    data = make_stacks(*lines)
    text = run_collector("report", data).stdout
    assert "] 1 x GPU; of 2 processes no GPU work is recorded\n" in text
    for share in (0, 1):
        run_collector("report", "--partial", f"--share={share}/2", "-o", f"part.{share}", data)
    assert run_collector("report", "--combine", "part.0", "part.1").stdout == \
        text.replace(str(data), "DATA")


def test_a_file_that_ends_early(run_collector, make_gpu):
    """It says nothing of the GPU's work; nor has an early version made it."""
    folder = make_gpu("train", 1, 40)
    path, = folder.glob("*.gpuprof")
    path.write_bytes(path.read_bytes()[:1500])
    text = run_collector("report", folder).stdout
    assert "\n  GPU        rows absent: the file ends before it says why\n" in text


def test_colours(collector, run_collector, make_gpu):
    """Bold labels and titles, what failed in red, on a terminal that has colours and may; nothing
    else changes."""
    data = make_gpu("loss", 1, 2)
    plain = run_collector("report", data).stdout
    assert "\x1b" not in plain and run_collector("report", "--color=never", data).stdout == plain
    always = run_collector("report", "--color=always", data).stdout
    assert re.sub(r"\x1b\[[\d;]*m", "", always) == plain
    assert "\x1b[1m  program   \x1b[0m " in always and "\n\x1b[1mGPU kernels\x1b[0m\n" in always
    for environment, has_colour in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                                    ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        command = [collector, "report", data]
        assert ("\x1b[1m" in on_terminal(command, 80, **environment)) == has_colour
        never = on_terminal([*command, "--color=never"], 80, **environment)
        assert "\x1b" not in never


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_fits_whatever_it_is(collector, make_gpu, make_stacks, columns):
    """Old files, many ranks, no device, losses, names that would break a line."""
    folders = [VERSIONS / "1.gpuprof", make_gpu("train", 40, 2),
               make_stacks("process 0", f"meta gpu_rows=absent: {'why ' * 100}",
                           f"meta cmdline={HOSTILE.replace(chr(10), ' ')}",
                           "call cudaMalloc 1000 5 1 0 4096", name="absent")]
    for folder in folders:
        _, found = bounded(collector, folder, columns)
        assert found["program"] and found["lost"] and found["more"]


def test_fits_random_recordings(collector, make_stacks):
    chance = random.Random(7)
    for number in range(12):
        lines, at = [], 1000
        for process in range(chance.randint(1, 3)):
            lines.append(f"process {process}")
            lines.append(f"meta cmdline={''.join(chance.choices('ab漢é/ ' + chr(27), k=90))}")
            lines += [f"meta env.RANK={process}"] * chance.randint(0, 1)
            for call in range(1, chance.randint(2, 9)):
                at += chance.randint(1, 10**chance.randint(2, 16))
                lines.append(f"call cudaLaunchKernel {at} {chance.randint(0, 10**9)} {call} 0 0")
                if chance.random() < 0.5:
                    lines.append(f"kernel 1 {at + 10} {chance.randint(0, 10**15)} {call}")
        bounded(collector, make_stacks(*lines, name=f"data{number}"))


def test_says_how_the_time_was_spent(collector, make_stacks):
    _, found = bounded(collector, make_stacks(*made(10**9, 5 * 10**8)))
    assert found["program"] == ["train.py --lr 3"]
    assert "; 1 process, 1 thread, 10 calls" in found["wall time"][0]
    assert found["steps"] == ["10 (by gpuprof_step), median 1.000 s, slowest 1.000 s (step 0)"]
    assert found["lost"] == ["nothing"]
    shares = dict(re.findall(r"(\w+) ([0-9.]+)%", found["GPU time"][0]))
    assert list(shares) == ["compute", "communication", "copies", "idle"]
    assert abs(sum(map(float, shares.values())) - 100) < 0.3
    bar = re.match(r"\[([#=.-]{40})\] 1 x ", found["GPU time"][1])[1]
    assert abs(bar.count("#") / 40 - float(shares["compute"]) / 100) < 0.03
    idle = [re.match(r" *([0-9.]+)% +[0-9.]+ [mun]?s  [a-z-]+ +\S", row)[1]
            for row in found["idle"]]
    assert abs(sum(map(float, idle)) - float(shares["idle"])) < 0.3  # of the same whole


def test_which_device_and_what_comes_behind(collector, make_stacks):
    """A finding is of one device: which one is said where there are several. Host time in front of
    a call is not the call's."""
    one = made(10**8, 4 * 10**7, 100)
    _, found = bounded(collector, make_stacks(*one, name="one"))
    assert any(line.strip() == "before cudaLaunchKernel" for line in found["finding"])
    two = [*one, *made(10**8, 10**7, 100)]
    two[two.index("process 0", 1)] = "process 1"
    two[1:1], two[len(one) + 2:len(one) + 2] = ["meta env.RANK=0"], ["meta env.RANK=1"]
    _, found = bounded(collector, make_stacks(*two, name="two"))
    assert any(line.strip() == "rank 1, GPU 0, before cudaLaunchKernel"
               for line in found["finding"])


def test_a_long_reason_is_there_on_80_columns(collector, make_stacks):
    """All of it but where a library was looked for."""
    why = "no usable libcupti: /usr/local/cuda/lib64/libcupti.so.13 does not work with this " \
          "driver; set GPUPROF_CUPTI"
    data = make_stacks("process 0", f"meta gpu_rows=absent: {why}; looked at /usr/local/cuda, /opt",
                       "call cudaFree 1000 10 1 0 0")
    _, found = bounded(collector, data)
    assert " ".join(found["GPU"]) == f"rows absent: {why}" and len(found["GPU"]) == 3


def test_slowest_step_and_its_rank(collector, make_stacks):
    lines = []
    for rank in range(2):
        lines += [f"process {rank}", f"meta env.RANK={rank}"]
        lines += [f"step {1000 + 100 * i + (rank and i > 3) * 900} {i}" for i in range(8)]
        lines.append("call cudaFree 5000 10 1 0 0")
    _, found = bounded(collector, make_stacks(*lines))
    assert found["steps"] == [  # in two lines, rather than without something in between
        "14 (by gpuprof_step), median 100 ns, slowest 1.000 us (step 3 of", "rank 1)"]
    assert "2 processes (2 ranks)" in found["wall time"][0]


def test_the_slowest_step_has_a_process(make_stacks, run_verb):
    """Of several, if none has a rank."""
    lines = [line for number, end in ((0, 1900), (1, 1500)) for line in (
        f"process {number}", "meta env.RANK=", "step 1000 0", f"step {end} 1",
        "call cudaFree 5000 10 1 0 0")]
    for count in (2, 1):
        data = make_stacks(*lines[:5 * count], name=f"of {count}")
        text = " ".join(run_verb("report", data).stdout.split())
        slowest = json.loads(run_verb("report", "--format=json", data).stdout)["overview"]["steps"]
        pid = slowest["slowest_pid"]
        assert slowest["slowest_rank"] is None
        assert f"slowest 900 ns (step 0{f' of process {pid}' if count > 1 else ''})" in text


def test_errors_and_open_calls_come_first(run_verb):
    path = CORPUS / "live-good.gpuprof"
    lines, found = screen_of(run_verb("report", "--keep-live", path).stdout)
    report = json.loads(run_verb("report", "--keep-live", "--format=json", path).stdout)
    slowest = max(report["open_calls"], key=lambda row: row["lasted_ns"])
    assert list(found)[:5] == ["open", "no memory", "held by", "try", "error"]
    assert len(lines) <= 24
    assert found["open"][0].startswith(f"{slowest['function']} had ")
    first = min(report["failures"], key=lambda row: row["first_ns"])
    count = sum(row["count"] for row in report["failures"])
    assert found["error"] == [f"{count} failed; first {first['error']} of {first['function']}"]
    assert report["overview"]["errors"] == count
    assert report["overview"]["open_calls"] == len(report["open_calls"]) > 0


def test_host_only(collector, make_stacks, run_verb):
    """Without rows of the device: what the calls alone tell, and why there is no more."""
    data = make_stacks("process 0", "meta gpu_rows=absent: no CUPTI",
                       "call cudaMalloc 1000 7000 1 0 4096",
                       "call cudaFree 9000 300 2 0 0")
    _, found = bounded(collector, data)
    assert found["GPU"] == ["rows absent: no CUPTI"] and "GPU time" not in found
    assert found["calls"] == [" 95.9%    7.000 us  1 x cudaMalloc",
                              "  4.1%      300 ns  1 x cudaFree"]
    report = json.loads(run_verb("report", "--format=json", data).stdout)
    overview = report["overview"]
    assert overview["gpu_time"] is None is overview["idle"] and overview["devices"] == 0
    assert report["gpu_time"] == report["idle"] == report["findings"] == overview["findings"] == []


def test_json_of_a_recording_without_gpu(make_stacks, run_verb):
    """Keys do not come and go."""
    report = json.loads(run_verb("report", "--format=json", make_stacks(
        "process 0", "call cudaMalloc 1000 7000 1 0 4096")).stdout)
    assert report["gpu_time"] == report["idle"] == report["findings"] == []


def test_json(make_stacks, run_verb):
    report = json.loads(run_verb("report", "--format=json",
                                 make_stacks(*made(100000, 25000))).stdout)
    overview = report["overview"]
    assert set(overview) >= {"program", "wall_ns", "processes", "ranks", "devices", "device",
                             "calls", "errors", "open_calls", "steps", "gpu_time", "idle",
                             "own_cost_share", "own_threads_share", "findings"}
    assert [row["id"] for row in overview["findings"]] == [row["id"] for row in report["findings"]]
    assert overview["steps"] == {"count": 10, "by": "range", "median_ns": 100000,
                                 "slowest_ns": 100000, "slowest_number": 0, "slowest_pid":
                                 overview["steps"]["slowest_pid"],
                                 "slowest_rank": overview["steps"]["slowest_rank"],
                                 "slowest_host": "testhost"}
    time = overview["gpu_time"]
    assert time["compute_ns"] == 250000 and sum(overview["idle"].values()) == time["idle_ns"]
    assert time["window_ns"] == sum(time[key] for key in (
        "compute_ns", "communication_ns", "copies_ns", "idle_ns", "stopped_ns"))
    assert overview["wall_ns"] == report["wall_ns"] and overview["processes"] == 1


def test_demo(run_collector, program, collector, tmp_path):
    """What a newcomer sees: a screen, and with the tables at most 90 lines."""
    done = run_collector("run", "-o", "data", program("demo"))
    assert done.returncode == 0
    summary = [line for line in done.stderr.splitlines() if line.startswith("  ")]
    assert len(summary) <= 10 and max(map(width, summary)) <= 100
    lines, found = bounded(collector, tmp_path / "data")
    assert len(run_collector("report", "data").stdout.splitlines()) <= 90
    assert re.fullmatch("4 failed; first (cudaErrorInvalidConfiguration of cudaLaunchKernel|"
                        "cudaErrorInvalidValue of cudaFree).*", found["error"][0])
    assert found["GPU time"][1].endswith("2 x Simulated GPU")
    took = r"took ~?[0-9.]+% of the threads' time and ([0-9.]+)% of a CPU"
    share = re.fullmatch(took + "; --table=cost", found["gpuprof"][0])[1]
    assert float(share) > 0 and re.search(took + "\n", done.stderr)[1] == share
    steps = re.match(r"(\d+) \(by ", found["steps"][0])
    assert int(steps[1]) in (238, 239, 240)


def test_threads(make_stacks, run_verb):
    """--by=thread: calls of each thread, and the device's work for it."""
    data = make_stacks("process 0", "call cudaLaunchKernel 1000 500 1 0 0",
                       "call cudaFree 2000 300 2 0 0", "name 1 gemm", "kernel 1 5000 40000 1")
    text = run_verb("report", "--by=thread", data).stdout
    assert "calls by thread" in text and "GPU kernels" not in text
    [row] = json.loads(run_verb("report", "--by=thread", "--format=json", data).stdout)[
        "calls_by_thread"]
    assert (row["calls"], row["total_ns"], row["max_ns"], row["gpu_work"], row["gpu_ns"]) == \
        (2, 800, 500, 1, 40000)
    assert "calls_by_thread" not in json.loads(run_verb("report", "--format=json", data).stdout)


@pytest.mark.parametrize("timed", [24, 100])
def test_a_cost_that_few_calls_tell_is_rough(make_records, run_verb, timed):
    """The first ones of 59,522; in a longer run more are timed."""
    cost, total = (stream_reader.TYPE_NUMBERS[kind] for kind in ("cost", "cost_sum"))
    sums = (1, 4 * 10**9, 500730119, 1, 4 * 10**9, 500730119, 900000, 5 * 10**9, 0, 0)
    data = make_records([
        "process 0", f"{stream_reader.CALL} 1 1000 500 1 0 cudaFree 0 -",
        f"{cost} 0 2000 0 0 0 0 0 59522,{timed},165611,410730119 operator",
        f"{cost} 0 2000 0 0 0 0 0 600,600,90000000,90000000 stack",
        f"{total} 0 2001 0 0 0 0 0 {','.join(map(str, sums))}"])
    _, found = screen_of(run_verb("report", data).stdout)
    rough = "~" if timed < 100 else ""
    # Its own threads: 900 us of 5 s.
    assert found["gpuprof"] == [f"took {rough}12.52% of the threads' time and 0.02% of a CPU; "
                                "--table=cost"]
    table = run_verb("report", "--table=cost", data).stdout
    assert ("\n  ~: few or none of these calls were timed" in table) == bool(rough)
    assert ("~410.730 ms" in table) == bool(rough) and "~90.000 ms" not in table


def test_cost_is_told_of_the_steps(make_records, run_verb):
    """An import of 3.5 s before five steps of 100 ms makes it look small."""
    total, step = (stream_reader.TYPE_NUMBERS[kind] for kind in ("cost_sum", "step"))
    sums = (1, 4 * 10**9, 40_000_000, 1, 4 * 10**9, 40_000_000, 900000, 5 * 10**9, 0, 0)
    lines = ["process 0", f"{stream_reader.CALL} 1 1000 500 1 0 cudaFree 0 -"]
    for i in range(6):
        at = 3_500_000_000 + i * 100_000_000
        lines += [f"{step} 1 {at} 0 0 0 0 0 {i}",
                  f"{stream_reader.CALL} 1 {at + 1000} 500 {i + 2} 0 cudaFree 0 -"]
    cost = f"{total} 0 4100000000 0 0 0 0 0 {','.join(map(str, sums))}"
    data = make_records([*lines, cost])
    _, found = screen_of(run_verb("report", data).stdout)
    assert found["gpuprof"] == ["took 1.00% of the threads' time and 0.02% of a CPU; up to 8.00% "
                                "of the steps; --table=cost"]
    _, found = screen_of(run_verb("report", "--from=1s", data).stdout)
    assert "of the steps" not in found["gpuprof"][0]
    whole, piece = (json.loads(run_verb("report", "--format=json", data, *more).stdout)["overview"]
                    for more in ([], ["--from=1s"]))
    assert whole["own_cost_steps_share"] == 0.08 and piece["own_cost_steps_share"] is None
