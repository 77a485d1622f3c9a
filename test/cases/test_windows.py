# SPDX-License-Identifier: Apache-2.0
"""When to record: --schedule, --capture-range, --delay, --duration. Each copy of the program has
its own size, so that what is recorded tells which one it was; which ones should be is torch's own
arithmetic, or counted by hand."""

import gzip
import json
import random
import subprocess
import time

import conftest
import pytest
import stream_reader
import toolchain

CUDA = toolchain.runtime(12)
OPTIMIZER, LOADER = "Optimizer.step#SGD.step", "enumerate(DataLoader)#_It.__next__"


def action(step, skip_first=0, wait=0, warmup=0, active=1, repeat=0, skip_first_wait=0):
    """torch.profiler.schedule (2.11), said again: 0 none, 1 warm-up, 2 recorded."""
    if step < skip_first:
        return 0
    step -= skip_first
    step += wait if skip_first_wait else 0
    length = wait + warmup + active
    if (repeat and step / length >= repeat) or step % length < wait:
        return 0
    return 1 if step % length < wait + warmup else 2


def chosen(steps, **schedule):
    return [step for step in range(steps) if action(step, **schedule) == 2]


def text_of(schedule):
    return ",".join(f"{name}={value}" for name, value in schedule.items())


class Done:
    """What a run of windows_work has recorded, by process."""

    def __init__(self, done, folder):
        self.done, self.folder = done, folder
        self.processes = stream_reader.read_folder(folder) if folder.exists() else []
        toolchain.remove_live(self.processes)

    @property
    def process(self):
        [process] = self.processes
        return process

    @staticmethod
    def sizes(process):
        return [c.args["bytes"] for c in process.calls() if c.symbol.startswith("cudaMemset")]

    @staticmethod
    def windows(process):
        """(number, state) as the records say, in order."""
        return [(r.args[0], r.args[1])
                for r in sorted(process.of_type(stream_reader.WINDOW), key=lambda r: r.begin)]


@pytest.fixture(name="run_until")
def fixture_run_until(collector):
    """Runs a program, which goes on at each word `r` when what is recorded has that text."""
    def run_until(command, env, folder, texts):
        with conftest.Program(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as program:
            for text in texts:
                assert program.stdout.readline() == "ready\n"
                end = time.monotonic() + 60
                while text not in subprocess.run([collector, "dump", folder], text=True,
                                                 capture_output=True, check=False).stdout:
                    assert time.monotonic() < end
                    time.sleep(0.05)
                program.stdin.write("\n")
                program.stdin.flush()
            program.communicate(timeout=60)
        assert program.returncode == 0
    return run_until


@pytest.fixture(name="run")
def fixture_run(library, run_until, tmp_path):
    """run(WORDS, settings): a Done; with `gpu`, the simulated CUPTI has records."""
    count = iter(range(100))

    def run(words, labels=False, gpu=False, status=0, until=(), **settings):
        folder = tmp_path / f"out{next(count)}"
        libraries = str(toolchain.SIM)
        flags = CUDA
        if labels:
            torch = toolchain.pytorch()
            where = toolchain.OUT / f"torch-{torch.stem}"
            where.mkdir(exist_ok=True)
            flags += ("-DLABELS", f"-I{toolchain.SIM_INCLUDE.parent}",
                      toolchain.linked(where / "libtorch_cpu.so", torch))
            libraries += f":{where}"
        settings = {f"GPUPROF_{name}": value for name, value in settings.items()}
        env = toolchain.environment(folder, library, GPUPROF_LIVE=tmp_path,
                                    LD_LIBRARY_PATH=libraries, **settings)
        if gpu:
            env["GPUPROF_GPU"] = "on"
        program = toolchain.build("windows_work.c", *flags, f"-I{conftest.ROOT / 'inject/range'}")
        if until:
            return Done(run_until([program, *map(str, words)], env, folder, until), folder)
        done = toolchain.run([program, *map(str, words)], env, status=status)
        return Done(done, folder)
    return run


def stepped(steps, waits=()):
    """A copy of 1000 bytes before all steps, of 1 and more in each; it waits at the end of some."""
    words = ["1000"]
    for step in range(steps):
        words += ["s", str(step + 1), *(["r"] if step in waits else [])]
    return words


WARMS, OPENS = "window=0 state=2 ", "window=1 state=1 "


def test_arithmetic_is_torchs():
    """1000 random schedules, through the same function that the library calls."""
    tool = conftest.built(conftest.BUILD / "make_schedules")
    chance = random.Random(17)
    schedules = [dict(skip_first=chance.choice([0, 0, 1, 7]), wait=chance.randrange(4),
                      warmup=chance.randrange(4), active=chance.randrange(1, 5),
                      repeat=chance.randrange(4), skip_first_wait=chance.randrange(2))
                 for _ in range(1000)]
    done = toolchain.run([tool, "60"], {}, input="\n".join(map(text_of, schedules)).encode(),
                         stdin=None)
    lines = done.stdout.splitlines()
    assert len(lines) == len(schedules)
    for line, schedule in zip(lines, schedules):
        assert line == "".join(str(action(step, **schedule)) for step in range(60)), schedule


@pytest.mark.parametrize("schedule", [
    dict(wait=2, warmup=1, active=2, repeat=2), dict(skip_first=3, warmup=2, active=1),
    dict(wait=1, warmup=1, active=3, skip_first_wait=1), dict(warmup=1, active=4, repeat=1)])
def test_steps_that_are_recorded(run, schedule):
    done = run(stepped(16), SCHEDULE=text_of(schedule))
    wanted = chosen(16, **schedule)
    assert done.sizes(done.process) == [step + 1 for step in wanted]
    steps = [r.args[0] for r in done.process.of_type(stream_reader.STEP)]
    assert sorted(steps) == [100 + step for step in wanted]
    assert done.process.meta["schedule_steps"] == \
        f"16 steps seen (by gpuprof_step), {len(wanted)} of them scheduled"
    cycles = max(n for n, _ in done.windows(done.process))
    length = sum(schedule.get(name, 0) for name in ("wait", "warmup", "active"))
    shift = schedule.get("skip_first", 0) - \
        (schedule.get("wait", 0) if schedule.get("skip_first_wait") else 0)
    assert cycles == (wanted[-1] - shift) // length + 1


def test_steps_by_number(run):
    done = run(stepped(12), SCHEDULE="4-6")
    assert done.sizes(done.process) == [5, 6, 7]


def test_silences_count_from_their_own_window(run):
    """What the thread did before it opened says nothing about a silence in it."""
    words = [word for step in range(14) for word in ("s", str(step + 1), "z4", str(step + 1))]
    process = run(words, SCHEDULE="wait=3,warmup=1,active=3,repeat=2").process
    opened = [r.begin for r in process.of_type(stream_reader.WINDOW) if r.args[1] == 1]
    silences = process.of_type(stream_reader.TYPE_NUMBERS["silence"])
    assert len(opened) == 2 and len(silences) >= 4
    for silence in silences:
        since = silence.args[1] - 3_000_000  # read a little later than it begins
        assert silence.begin - since >= max(at for at in opened if at < silence.begin)


def test_work_of_warm_steps_is_dropped(run, run_collector):
    """CUPTI's records are on from the warm-up on: in trace and report stands what was launched in
    the window, and nothing is missing."""
    done = run(stepped(9, waits=[2]) + ["d"], gpu=True, until=[WARMS], GPU_FLUSH="20ms",
               SCHEDULE="wait=2,warmup=2,active=2,repeat=1")
    assert done.sizes(done.process) == [5, 6]
    assert done.windows(done.process) == [(0, 0), (0, 2), (1, 1), (1, 0)]
    assert len(done.process.of_type(12)) >= 2
    report = json.loads(run_collector("report", "--format=json", done.folder).stdout)
    [row] = [r for r in report["cuda_gpu_mem_size_sum"] if "memset" in r["name"].lower()]
    assert (row["instances"], row["total_bytes"]) == (2, 11)
    assert not report["losses"]
    trace = json.loads(run_collector("merge", done.folder, "-o", "-").stdout)["traceEvents"]
    assert sorted(e["args"]["bytes"] for e in trace if e.get("cat") == "gpu_memset") == [5, 6]
    assert [e["name"] for e in trace if "window" in e["name"]] == ["window 1 begins",
                                                                   "window 1 has ended"]


def test_without_warm_up_the_first_step_is_partial(run, run_collector):
    done = run(stepped(6, waits=[2]), gpu=True, until=[OPENS],
               SCHEDULE="wait=2,active=2,repeat=1")
    [late] = [r for r in done.process.of_type(stream_reader.WINDOW) if r.args[1] == 1]
    assert tuple(late.args[2:4]) == (103, 1) and late.args[0] == 1
    assert done.sizes(done.process)[-1] == 4
    report = json.loads(run_collector("report", "--table=steps", "--format=json",
                                      done.folder).stdout)
    assert [(s["step"], s["partial"]) for s in report["steps"]] == [(102, True), (103, False)]
    assert report["overview"]["windows"] == {
        "count": 1, "schedule": "6 steps seen (by gpuprof_step), 2 of them scheduled"}
    assert "\n  windows    1 recorded; 6 steps seen (by gpuprof_step), 2 of them scheduled\n" in \
        run_collector("report", done.folder).stdout


def test_no_step_is_said(run, run_collector):
    done = run(["5", "6"], SCHEDULE="wait=1,warmup=1,active=1")
    assert "--schedule: 0 steps seen, so only allocations were recorded" in done.done.stderr
    assert [c.symbol for c in done.process.calls()] == ["cudaMalloc"]
    assert done.process.meta["schedule_steps"].startswith("0 steps seen")


@pytest.mark.parametrize("end, wanted", [
    ("stop", [2]), ("none", [2, 3, 4, 5]), ("repeat", [2, 4]), ("repeat:1", [2]),
    ("repeat:2", [2, 4])])
@pytest.mark.parametrize("begin, over, capture", [
    ("(", ")", "cudaProfilerApi"), ("<serve", ">", "nvtx:serve"), ("<serve", ">", "nvtx:serve@*")])
def test_capture_ranges(run, begin, over, capture, end, wanted):
    words = ["1", begin, "2", over, "3", begin, "4", over, "5"]
    done = run(words, CAPTURE_RANGE=capture, CAPTURE_RANGE_END=end)
    assert done.sizes(done.process) == wanted
    opened = [number for number, state in done.windows(done.process) if state == 1]
    assert opened == list(range(1, len(opened) + 1))


def test_capture_ranges_nest(run):
    """Of ranges of one name the outermost counts, wherever it is: it ends where it was begun."""
    done = run(["<a", "1", "<serve", "2", "<serve", "3", ">", "4", ">", "5", ">", "6"],
               CAPTURE_RANGE="nvtx:serve")
    assert done.sizes(done.process) == [2, 3, 4]
    done = run(["1", "(", "2", "(", "3", ")", "4", ")", "5"], CAPTURE_RANGE="cudaProfilerApi")
    assert done.sizes(done.process) == [2, 3]
    done = run(["<other", "1", ">", "<serve it", "2", ">"], CAPTURE_RANGE="nvtx:serve")
    assert not done.sizes(done.process)
    done = run(["<serve", "1", ">"], CAPTURE_RANGE="nvtx:serve@elsewhere")
    assert not done.sizes(done.process)


def test_capture_range_of_another_thread(run):
    done = run(["1", "t", "(", "2", "t", "3", ")", "4"], CAPTURE_RANGE="cudaProfilerApi")
    assert done.sizes(done.process) == [2, 3]


def test_capture_range_end_asks_the_process_to_end(run):
    done = run(["1", "(", "2", ")", "3", "z20000", "4"], CAPTURE_RANGE="cudaProfilerApi",
               CAPTURE_RANGE_END="exit", status=-15)
    assert done.sizes(done.process) == [2]


def test_capture_range_has_the_devices_work(run, run_collector):
    """What follows cudaProfilerStart() is recorded from its first launch on, the device's too."""
    done = run(["1", "z30", "(", "2", "3", ")", "4", "d"], gpu=True,
               CAPTURE_RANGE="cudaProfilerApi")
    report = json.loads(run_collector("report", "--format=json", done.folder).stdout)
    [row] = [r for r in report["cuda_gpu_mem_size_sum"] if "memset" in r["name"].lower()]
    assert (row["instances"], row["total_bytes"]) == (2, 5) and not report["losses"]


def test_workers_of_a_fork_have_their_own(run):
    """A server forks a worker, which opens the door; the parent's steps are not its own."""
    done = run(["f", "2", "(", "3", ")", "4"], CAPTURE_RANGE="cudaProfilerApi")
    assert done.sizes(done.process) == [3]
    done = run(["s", "s", "s", "f", "s", "11", "s", "12", "s", "13", "s", "14"], SCHEDULE="3-3")
    assert done.sizes(done.process) == [14]
    assert done.process.meta["schedule_steps"] == \
        "4 steps seen (by gpuprof_step), 1 of them scheduled"


def test_delay_and_duration(run):
    """Whatever else happens, nothing of before the delay's end is recorded, or of long behind."""
    done = run(["1", "z50", "2", "z1200", "3", "z1500", "4"], DELAY="1s", DURATION="1s")
    sizes = done.sizes(done.process)
    assert not {1, 2} & set(sizes) and 4 not in sizes and (3 in sizes or not sizes)
    assert done.windows(done.process)[-1] == (1, 0)


def test_the_first_call_of_all(run):
    """It begins the recording, which says that it is not to be recorded."""
    done = run(["t", "s", "z5", "1"], SCHEDULE="1-1")
    assert not done.sizes(done.process)


def test_a_stop_of_the_programs_goes_first(run, run_collector):
    """Both must have it go on."""
    done = run(stepped(8), SCHEDULE="2-5", START_PAUSED=1)
    assert not done.sizes(done.process)


def labelled(steps, label, waits=()):
    """In each step a copy of 10 and more, and one of 20 and more inside the label."""
    words = ["1", "z1300"]  # until our thread has looked for PyTorch
    for step in range(steps):
        words += [str(10 + step), "{" + label, str(20 + step), "}"]
        words += ["r"] if step in waits else []
    return words


@pytest.mark.parametrize("pytorch", ["off", "names"])
def test_steps_by_optimizer(run, pytorch):
    """A step lasts from the end of one update to the end of the next; the first update's end begins
    step 0."""
    done = run(labelled(6, OPTIMIZER, waits=[1]), labels=True, until=[WARMS], PYTORCH=pytorch,
               SCHEDULE="wait=1,warmup=1,active=2,repeat=1")
    assert done.sizes(done.process) == [13, 23, 14, 24]
    assert "(by optimizer)" in done.process.meta["schedule_steps"]


def test_steps_by_profiler_and_loader(run):
    words = ["1", "z1300"]
    for step in range(6):
        words += ["{ProfilerStep#%d" % step, str(10 + step), "}"]
    done = run(words, labels=True, SCHEDULE="2-3")
    assert done.sizes(done.process) == [12, 13]
    done = run(labelled(8, LOADER), labels=True, SCHEDULE="4-5")
    # a fetch is a step's begin: what comes before the next one is its own
    assert done.sizes(done.process) == [24, 15, 25, 16]
    done = run(labelled(8, LOADER), labels=True, SCHEDULE="1-1",
               STEP_BY="optimizer")
    assert not done.sizes(done.process) and "0 steps seen" in done.done.stderr


def test_steps_by_name(run):
    words = [w for i in range(6) for w in (f"<iteration {i}", str(i + 1), ">", "s")]
    done = run(words, SCHEDULE="2-3", STEP_BY="iteration *")
    assert done.sizes(done.process) == [3, 4]


@pytest.mark.parametrize("option", [
    "--schedule=active=0", "--schedule=wait=1", "--schedule=active=1,active", "--schedule=5-4",
    "--schedule=active=99999999999999", "--capture-range=nvtx:", "--capture-range=nvtx:a@",
    "--capture-range-end=repeat:0", "--capture-range-end=kill", "--duration=0", "--delay=-1s"])
def test_bad_settings(run_collector, option):
    done = run_collector("run", option, "--", "true")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and option.partition("=")[0] in done.stderr


def shown(trace):
    """What a trace shows of the program: names of ranges, and bytes of copies by host and GPU."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    return (sorted(e["name"] for e in events if e.get("cat") == "user_annotation" and
                   e.get("ph") == "X" and "dur" in e),
            [e["args"]["bytes"] for e in events if e["name"] == "cudaMemsetAsync"],
            sorted(e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memset"))


def test_a_trace_of_one_cycle(run, run_collector, tmp_path):
    """Ranges that reach into the window, the calls in it and what they made, and nothing else."""
    words = ["<all"]
    for step in range(12):
        words += ["s", f"<inner {step}", str(step + 1), ">", *(["r"] if step in (1, 6) else [])]
    done = run([*words, "d", ">"], gpu=True, until=[WARMS, "window=1 state=2 "],
               SCHEDULE="wait=1,warmup=2,active=2,repeat=2")
    assert done.sizes(done.process) == [4, 5, 9, 10]
    for cycle, steps in ((1, [3, 4]), (2, [8, 9])):
        trace = json.loads(run_collector("merge", f"--cycle={cycle}", done.folder, "-o",
                                         "-").stdout)
        names, host, device = shown(trace)
        assert names == sorted(["all", *(f"inner {s}" for s in steps),
                                *(f"ProfilerStep#{100 + s}" for s in steps)])
        assert host == [s + 1 for s in steps] == device
        # All verbs that show a piece have the same one.
        rows = [json.loads(line) for line in run_collector(
            "export", "--format=jsonl", f"--cycle={cycle}", done.folder, "-o",
            "-").stdout.splitlines()]
        assert [r["bytes"] for r in rows if r["name"] == "cudaMemsetAsync"] == host
        assert sorted(r["bytes"] for r in rows if r["kind"] == "gpu_memset") == device
        table = json.loads(run_collector("report", "--format=json", f"--cycle={cycle}",
                                         done.folder).stdout)
        calls = {f["function"]: f["calls"] for f in table["functions"]}
        assert calls["cudaMemsetAsync"] == len(steps)
        folded = run_collector("flame", "--weight=calls", f"--cycle={cycle}", done.folder, "-o",
                               "-").stdout
        assert sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()) == sum(
            r.get("calls", 0) for r in rows)
    for arguments, error in (("--cycle=3", "window 3 does not exist; the last one is 2"),
                             ("--cycle=0", "is not a window's number (1 or more) or 'all'"),
                             ("--cycle=all", "add --per-rank")):
        failed = run_collector("merge", arguments, done.folder, "-o", "x.json")
        assert failed.returncode == 2 and error in failed.stderr
        assert not (tmp_path / "x.json").exists()
    refused = run_collector("report", "--cycle=all", done.folder)
    assert refused.returncode == 2 and "'all' is not a window's number" in refused.stderr
    assert run_collector("merge", "--cycle=all", "--per-rank", done.folder, "-o",
                         "traces").returncode == 0
    assert sorted(p.name for p in (tmp_path / "traces").iterdir()) == [
        "rank_0.1.pt.trace.json.gz", "rank_0.2.pt.trace.json.gz"]
    with gzip.open(tmp_path / "traces" / "rank_0.2.pt.trace.json.gz") as file:
        assert shown(json.load(file))[1] == [9, 10]


ON_CYCLE = """
test -z "$LD_PRELOAD" && echo "$GPUPROF_CYCLE" >> {folder}/cycles
{collector} merge --cycle="$GPUPROF_CYCLE" "$GPUPROF_OUT" -o {folder}/"$GPUPROF_CYCLE".json
test "$GPUPROF_CYCLE" != 2
"""


def test_a_command_for_each_cycle(library, collector, tmp_path):
    """While the job runs, and those that were not due yet at its end; each trace has its step."""
    front = collector
    program = toolchain.build("control_work.c", *CUDA, f"-I{conftest.ROOT / 'inject/range'}")
    env = toolchain.environment(tmp_path / "unused", library, GPUPROF_LIVE=tmp_path,
                                LD_LIBRARY_PATH=str(toolchain.SIM))
    env.pop("LD_PRELOAD")
    words = [front, "run", "-o", tmp_path / "out", "--schedule=wait=1,active=1,repeat=4",
             "--on-cycle", ON_CYCLE.format(folder=tmp_path, collector=collector), program]
    with conftest.Program(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as job:
        def step(number):
            for word in f"s{number}", str(number):
                job.stdin.write(f"{word}\n")
                job.stdin.flush()
                assert job.stdout.readline() == f"{word}\n"
        for number in range(5):
            step(number)
        end = time.monotonic() + 30
        while not (tmp_path / "2.json").exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        assert not (tmp_path / "3.json").exists()
        for number in range(5, 10):
            step(number)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 0
    assert errors.count("on-cycle: the command for cycle 2 ended with exit code 1;") == 1
    assert (tmp_path / "cycles").read_text() == "1\n2\n3\n4\n"
    for cycle in range(1, 5):
        events = json.loads((tmp_path / f"{cycle}.json").read_text())["traceEvents"]
        assert [e["args"]["bytes"] for e in events if e.get("name") == "cudaMemset"] == \
            [2 * cycle - 1]
    assert not list(tmp_path.glob("out/*.status*"))
