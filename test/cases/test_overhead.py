# SPDX-License-Identifier: Apache-2.0
"""What gpuprof says that it costs, and what it gives up to cost less (--overhead-max)."""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import conftest
import csv_tables
import cupti_client as cupti
import gpu_truth
import pytest
import stream_reader
import toolchain
import truth

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")

STACKS, QUERIES, CALLBACKS, TENTH, HUNDREDTH, CUPTI, BOTTOM = range(7)
TEXTS = ("stacks off", "event records and queries off", "CUPTI's callbacks off",
         "1 of 10 launches and copies recorded", "1 of 100 launches and copies recorded",
         "CUPTI off", "budget not attainable")
TINY, GENEROUS = "0.0001%", "100%"
QUERY = re.compile("EventRecord|EventQuery|StreamQuery")
FIRST, LAST = "", "budget not attainable"  # of the texts of the steps


class Done:
    """A program that has run until it was told to end, and what it left."""

    def __init__(self, out, log, stdout, stderr):
        self.stdout, self.stderr, self.out = stdout, stderr, out
        self.processes = stream_reader.read_folder(out)
        self.process = min(self.processes, key=lambda p: p.header.monotonic_zero)
        self.logs = {int(p.name.partition(".")[0]): p for p in log.iterdir()}

    def made(self, process, captured=False):
        """symbol -> calls by the program, as CUDA has seen them."""
        counts = collections.Counter()
        text = self.logs[process.header.pid].read_bytes().translate(None, b"\0").decode()
        for line in text.splitlines():
            _, _, _, depth, symbol, outcome, count = line.split("\t")
            if depth == "0" and not truth.UNRECORDED.fullmatch(symbol):
                counts[symbol] += int(count) * (not captured or outcome == "captured")
        return +counts

    @property
    def steps(self):
        return sorted(self.process.of_type(stream_reader.STEP_DOWN), key=lambda r: r.begin)

    def step(self, code):
        [step] = [s for s in self.steps if s.code == code]
        return step


def has_step(out, text):
    """Is one with that text recorded in a file that is still being written?"""
    for path in out.glob("*.gpuprof"):
        try:
            data = path.read_bytes()
            blocks, _ = stream_reader.read_blocks(data, stream_reader.read_header(data).bytes)
            blocks = [block for block in blocks if block.thread == 0]
            payloads = stream_reader.decompress(data, blocks) if blocks else ()
        except stream_reader.StreamError:  # read in the middle of a write
            continue
        for block, payload in zip(blocks, payloads):
            if any(r.type == stream_reader.STEP_DOWN and text in r.text.decode()
                   for r in stream_reader.decode_payload(payload, block)):
                return True
    return False


def run_until(command, env, said, until, kill=False):
    """What it prints; its stderr goes to the file `said`."""
    out, found = pathlib.Path(env["GPUPROF_OUT"]), isinstance(until, float)
    with open(said, "w", encoding="utf-8") as err, conftest.Program(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err) as running:
        end = time.monotonic() + (until if isinstance(until, float) else 90)
        while time.monotonic() < end and running.poll() is None and \
                (isinstance(until, float) or not found):
            time.sleep(0.05)
            found = found or has_step(out, until)
        if kill:
            running.send_signal(signal.SIGKILL)
        assert found
        stdout, _ = running.communicate(timeout=60)
        assert running.returncode == (-signal.SIGKILL if kill else 3)
    return stdout.decode()


@pytest.fixture(name="overhead")
def fixture_overhead(library, tmp_path):
    """Runs until it records a step with that text, or for so many seconds; then it ends, or is
    killed."""
    def overhead(*arguments, until, kill=False, **settings):
        out, log, said = tmp_path / "out", tmp_path / "log", tmp_path / "said"
        log.mkdir()
        env = toolchain.environment(out, library, **{
            "GPUPROF_GPU": "on", "SIMCUDA_LOG": log, "SIMCUDA_LOG_MODE": "counts",
            "GPUPROF_CUPTI": toolchain.SIM / cupti.VERSIONS["13.0"][0], "GPUPROF_LIVE": tmp_path,
            "GPUPROF_BACKTRACE": "sync", **settings})
        program = cupti.build(13, source="overhead_work.c")
        stdout = run_until([program, *map(str, arguments)], env, said, until, kill)
        return Done(out, log, stdout, said.read_text())
    return overhead


def counted(process):
    """symbol -> calls recorded, and for how many they stand."""
    recorded, weights = collections.Counter(), collections.Counter()
    for record in process.of_type(stream_reader.CALL):
        if record.flags & stream_reader.NESTED:
            assert not record.weight
            continue
        symbol = process.functions[record.code].symbol
        recorded[symbol] += 1
        weights[symbol] += max(1, record.weight)
    return recorded, weights


def is_sampled(symbol):
    return bool(re.search("Launch|Memcpy|Memset", symbol))


def check_counts(done, process, threads=1, in_flight=0):
    """Recorded and passed by are all that were made; the weights stand for the latter. So many in
    flight are known to one side and not yet to the other."""
    made = done.made(process)
    recorded, weights = counted(process)
    passed = process.counters["passed_by"]
    assert abs(made.total() - recorded.total() - passed) <= in_flight
    queries = sum(made[s] - recorded[s] for s in made if QUERY.search(s))
    for symbol in made:
        if not QUERY.search(symbol) and not is_sampled(symbol):
            assert abs(made[symbol] - recorded[symbol]) <= in_flight, symbol
    for wanted in ("Launch", "Memcpy|Memset"):
        of_class = sum(count for s, count in made.items() if re.search(wanted, s))
        stand_for = sum(count for s, count in weights.items() if re.search(wanted, s))
        assert -in_flight <= of_class - stand_for <= 198 * threads + in_flight, wanted
    return passed, queries


def test_whole_ladder(overhead, run_collector, tmp_path):
    done = overhead(1, until=LAST, GPUPROF_OVERHEAD_MAX=TINY)
    assert done.stdout == "wrong: 0\n"
    assert done.stderr == "" and not done.process.said  # the steps say it
    process = done.process
    steps = done.steps
    assert [s.text.decode() for s in steps] == [TEXTS[s.code] for s in steps]
    assert sorted(s.code for s in steps) == list(range(7)) and steps[-1].code == BOTTOM
    assert done.step(TENTH).begin < done.step(HUNDREDTH).begin
    assert all(share > budget == 1 for share, budget in (s.args for s in steps))
    assert not process.losses
    passed, queries = check_counts(done, process)
    assert passed > queries > 0
    calls = process.of_type(stream_reader.CALL)
    # What each step gave up is not there after it: not before a call that was under way has ended.
    until = {s.code: s.begin + 2_000_000_000 for s in steps}
    assert not [c for c in calls if c.stack and c.begin > until[STACKS]]
    assert not [c for c in calls if c.begin > until[QUERIES] and
                QUERY.search(process.functions[c.code].symbol)]
    assert not [c for c in calls if c.correlation and c.begin > until[CALLBACKS]]
    assert any(c.correlation for c in calls) and any(c.stack for c in calls)
    assert max(c.weight for c in calls) > 19  # more than one in ten has
    assert "until GPUPROF_OVERHEAD_MAX turned them off" in process.meta["gpu_rows"]

    dumped = run_collector("dump", done.out).stdout
    assert re.findall(r'^step_down .*text="([^"]*)"', dumped, re.MULTILINE) == \
        [TEXTS[s.code] for s in steps]
    merged = run_collector("merge", "--strict", done.out, "-o", tmp_path / "trace.json")
    assert merged.returncode == 0, merged.stderr
    trace = json.loads((tmp_path / "trace.json").read_text())
    marks = [e for e in trace["traceEvents"] if e["name"].startswith("--overhead-max: ")]
    assert [m["name"].partition(": ")[2] for m in marks] == [TEXTS[s.code] for s in steps]
    assert all(m["ph"] == "i" and m["s"] == "g" and m["args"]["share"] > m["args"]["budget"]
               for m in marks)
    assert {e["args"]["weight"] for e in trace["traceEvents"] if "weight" in e.get("args", {})} == \
        {c.weight for c in calls if c.weight > 1}
    losses = trace["otherData"]["losses"]
    assert losses["passed_by"] == passed
    assert set(losses) <= {"passed_by", "gpu_given_up", "gpu_untied"}


def test_report(overhead, run_collector):
    done = overhead(1, until=LAST, GPUPROF_OVERHEAD_MAX=TINY)
    _, weights = counted(done.process)
    text = run_collector("report", "--full", done.out).stdout
    for step in done.steps:
        assert re.search(rf"--overhead-max: after [0-9.]+ m?s: {TEXTS[step.code]} \(", text), text
    assert "~: estimated" in text and "not included: extra work of the driver and CUPTI" in text
    [row] = re.findall(r"~([0-9.]+) m?s +~([0-9,]+) .* cudaLaunchKernel$", text, re.MULTILINE)
    assert int(row[1].replace(",", "")) == weights["cudaLaunchKernel"]
    assert re.search(r" [0-9,]+ +[0-9.]+ us .* cudaStreamSynchronize$", text, re.MULTILINE)
    report = json.loads(run_collector("report", "--format=json", done.out).stdout)
    functions = {f["function"]: f for f in report["functions"]}
    recorded, _ = counted(done.process)
    assert functions["cudaLaunchKernel"]["estimated_from"] == recorded["cudaLaunchKernel"]
    assert functions["cudaLaunchKernel"]["calls"] == weights["cudaLaunchKernel"]
    assert "estimated_from" not in functions["cudaStreamSynchronize"]
    assert [s["step"] for s in report["own_cost"]["steps"]] == [TEXTS[s.code] for s in done.steps]
    assert "gpu_unpaired" not in report["losses"] and "gpu_missing" not in report["losses"]
    # What the device did without CUPTI nobody knows: it was not idle.
    blind = max(c.end for c in done.process.of_type(stream_reader.CALL)) - done.step(CUPTI).begin
    for row in report["gpu_time"]:
        assert 0.9 * blind < row["stopped_ns"] < row["window_ns"] - row["compute_ns"]
    rows = csv_tables.tables(run_collector("report", "--format=csv", done.out).stdout)
    assert [r["step"] for r in rows["cost_steps"]] == [TEXTS[s.code] for s in done.steps]
    assert {r["kind"] for r in rows.get("losses", ())} <= {"note"}


def classes(process):
    """name -> (count, timed, sum of these times, total) of the last record of each."""
    records = sorted(process.of_type(stream_reader.COST), key=lambda r: r.begin)
    return {r.text.decode(): r.args for r in records}


def check_classes(process):
    """The costs are those of what was recorded."""
    costs = classes(process)
    by_class = collections.Counter()
    for call in process.calls():
        by_class["query" if QUERY.search(call.symbol) else call.cls] += 1
    assert {name: costs[name][0] for name in by_class} == dict(by_class)
    for name in ("launch", "copy"):
        count, timed, timed_ns, total_ns = costs[name]
        assert 0 < timed < count and 0 < timed_ns < total_ns
    assert costs["writer"][3] > 0 and costs["start"][0] > 0
    return costs


def test_cost_without_a_budget(overhead, run_collector):
    done = overhead(2, until=2.5)
    assert done.stderr == "" and not done.steps
    process = done.process
    costs = check_classes(process)
    assert costs["callback"][0] > costs["launch"][0] and costs["stack"][0] > 0
    assert costs["nested"][0] > costs["launch"][0] and "passed" not in costs
    (threads, wall_ns, cost_ns, worst, worst_wall_ns, worst_cost_ns, own_ns, span_ns, _,
     budget) = process.of_type(stream_reader.COST_SUM)[-1].args
    assert threads == 2 and budget == 0
    assert worst in (1, 2, 3)  # the thread that reads CUPTI's records has a number, too
    assert 0 < worst_cost_ns < worst_wall_ns <= span_ns and 0 < cost_ns < wall_ns and own_ns > 0
    in_callers = sum(c[3] for n, c in costs.items() if n not in ("start", "writer", "gpu", "flush"))
    assert abs(in_callers - cost_ns) < len(costs)  # each is rounded
    check_counts(done, process)
    assert process.counters["passed_by"] == 0
    text = run_collector("report", "--full", done.out).stdout
    assert "gpuprof's own cost" in text and "~: estimated" not in text
    assert "--overhead-max" not in text
    trace = json.loads(run_collector("merge", done.out).stdout)
    [its] = trace["otherData"]["processes"]
    assert its["own_cost"]["classes"]["launch"] == {"count": costs["launch"][0],
                                                    "total_ns": costs["launch"][3]}


def test_generous_budget(overhead):
    done = overhead(1, until=2.0, GPUPROF_OVERHEAD_MAX=GENEROUS)
    assert done.stderr == "" and not done.steps
    check_counts(done, done.process)
    assert done.process.counters["passed_by"] == 0
    assert done.process.of_type(stream_reader.COST_SUM)[-1].args[9] == 1000000
    check_classes(done.process)


def test_captured_work_is_whole(overhead):
    """While a stream is captured nothing is passed by."""
    done = overhead(3, "capture", until=LAST, GPUPROF_OVERHEAD_MAX=TINY)
    assert done.stdout == "wrong: 0\n"
    check_counts(done, done.process, threads=3)
    made = done.made(done.process, captured=True)
    captured = collections.Counter(done.process.functions[r.code].symbol
                                   for r in done.process.of_type(stream_reader.CALL)
                                   if r.flags & stream_reader.CAPTURED)
    assert made == captured and made["cudaLaunchKernel"] > 50


def test_threads_that_end(overhead):
    done = overhead(2, "churn", until=LAST, GPUPROF_OVERHEAD_MAX=TINY)
    process = done.process
    threads = process.of_type(stream_reader.COST_SUM)[-1].args[0]
    assert threads > 3
    check_counts(done, process, threads=len(process.of_type(stream_reader.THREAD)))
    check_classes(process)


def test_cupti_is_given_up_among_pauses(overhead):
    """A recording that goes on at that moment does not turn it on again, for nobody."""
    done = overhead(1, "pauses", until=LAST, GPUPROF_OVERHEAD_MAX=TINY, SIMCUDA_LOG_MODE="calls",
                    SIMCUPTI_LOG=1, SIMCUPTI_ENABLE_US=5000)
    assert done.step(CUPTI)
    lines = gpu_truth.read_log(done.logs[done.process.header.pid])
    last = {line.values["kind"]: line.what for line in sorted(lines, key=lambda line: line.end)
            if line.what in ("cuptiActivityEnable", "cuptiActivityDisable")}
    assert len(last) == 9 and set(last.values()) == {"cuptiActivityDisable"}


@pytest.mark.parametrize("static", ["hooks", "cupti"])
def test_other_fronts(overhead, static):
    done = overhead(1, until=LAST, GPUPROF_OVERHEAD_MAX=TINY, GPUPROF_FRONT=static)
    assert BOTTOM in [s.code for s in done.steps]
    assert (CALLBACKS in [s.code for s in done.steps]) == (static == "cupti")
    assert not done.process.losses
    check_counts(done, done.process)


def test_calls_inside_calls(overhead):
    """They do not take the weight from the call around them."""
    done = overhead(1, until=LAST, GPUPROF_OVERHEAD_MAX=TINY, GPUPROF_NESTED="1")
    check_counts(done, done.process)
    assert [r for r in done.process.of_type(stream_reader.CALL) if r.flags & stream_reader.NESTED]


def test_signals(library, tmp_path):
    """A handler's calls come between a call's weight and its record."""
    folder, link = toolchain.tiny()
    program = toolchain.build("lossy.c", *link, f"-I{conftest.ROOT / 'inject'}")
    done = toolchain.run([program, "signals", 1500], toolchain.environment(
        tmp_path / "out", library, LD_LIBRARY_PATH=folder, GPUPROF_OVERHEAD_MAX=TINY,
        GPUPROF_LIVE=tmp_path), status=3)
    made, in_handlers = map(int, done.stdout.split())
    [process] = stream_reader.read_folder(tmp_path / "out")
    recorded, weights = counted(process)
    passed, unrecorded = process.counters["passed_by"], process.losses.get("unrecorded", 0)
    assert in_handlers > 100 and passed > 10000
    assert recorded.total() + passed + unrecorded == made
    assert 0 <= made - unrecorded - weights.total() <= 198


def test_child(overhead):
    """A child begins anew, with everything recorded."""
    done = overhead(1, "fork", until=LAST, GPUPROF_OVERHEAD_MAX=TINY)
    assert done.stdout == "wrong: 0\n" and len(done.processes) == 2
    [child] = [p for p in done.processes if p is not done.process]
    for process in done.processes:
        check_counts(done, process)
    assert done.made(child)["cudaLaunchKernel"] == 20000
    assert child.counters["passed_failed"] == child.counters["passed_by"]
    assert done.process.counters["passed_failed"] == 0 < done.process.counters["passed_by"]
    steps = [r.begin for r in child.of_type(stream_reader.STEP_DOWN)]
    assert len([c for c in child.calls() if not steps or c.begin < min(steps)]) > 100


def test_killed(overhead, run_collector, tmp_path):
    """Nothing is counted twice or lost, but the call that the thread was in."""
    done = overhead(2, until=LAST, kill=True, GPUPROF_OVERHEAD_MAX=TINY)
    process = done.process
    assert process.live_path
    check_counts(done, process, threads=2, in_flight=2)
    assert classes(process)["launch"][0] > 0 and process.of_type(stream_reader.COST_SUM)
    said = []
    for verb in (("merge", "-o", tmp_path / "trace.json"), ("recover",)):
        assert run_collector(*verb, done.out).returncode == 0
        report = json.loads(run_collector("report", "--format=json", done.out).stdout)
        said.append(report["losses"]["passed_by"])
    assert said == [process.counters["passed_by"]] * 2


@pytest.mark.parametrize("value, why", [
    ("0", "'0' is out of range (0.0001% to 100%)"),
    ("2.5.1%", "'2.5.1%' is not a share such as 2% or 0.5% (0.0001% to 100%), or off")])
def test_wrong_budget(overhead, value, why):
    done = overhead(1, until=0.3, GPUPROF_OVERHEAD_MAX=value)
    assert done.stderr == f"gpuprof: GPUPROF_OVERHEAD_MAX: {why}; its default off is used\n"
    assert not done.steps


def test_option(collector, tmp_path):
    done = subprocess.run([collector, "run", "--overhead-max=two", "true"], cwd=tmp_path,
                          capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ})
    assert done.returncode == 2 and "'two' is not a share such as 2% or 0.5%" in done.stderr


def tiny_run(library, tmp_path, source, what, until, **settings):
    """What a program on the tiny runtime prints, and the processes that it has recorded. `until` is
    milliseconds, or the text of a step."""
    folder, link = toolchain.tiny()
    program = toolchain.build(source, *link, f"-I{conftest.ROOT / 'inject'}")
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=folder,
                                GPUPROF_LIVE=tmp_path, **settings)
    if isinstance(until, str):
        stdout = run_until([program, what, "0"], env, tmp_path / "said", until)
    else:
        stdout = toolchain.run([program, what, until], env, status=3).stdout
    processes = stream_reader.read_folder(tmp_path / "out")
    return [int(n) for n in stdout.split()], sorted(
        processes, key=lambda p: p.header.monotonic_zero)


@pytest.mark.parametrize("shape, name, settings", [
    ("seldom", "copy", {"GPUPROF_OVERHEAD_MAX": "100%"}),
    ("ranges", "range", {}),
    ("short-threads", "copy", {}),
    ("many", "copy", {"GPUPROF_BACKTRACE_THRESHOLD": 0})])
def test_hard_to_measure(library, tmp_path, shape, name, settings):
    """Few calls, only ranges, threads of five calls, calls that all have stacks."""
    [made], [process] = tiny_run(library, tmp_path, "cost_shapes.c", shape, 700, **settings)
    costs = classes(process)
    assert costs["copy"][0] == len(process.calls()) == made
    count, timed, timed_ns, total_ns = costs[name]
    assert 0 < timed <= count and total_ns > 0
    # All of them cost something, those before the first look, too.
    assert total_ns > count * timed_ns / timed / 20
    assert costs["start"][0] == len(process.of_type(stream_reader.THREAD))
    threads, wall_ns, cost_ns = process.of_type(stream_reader.COST_SUM)[-1].args[:3]
    assert threads == costs["start"][0] and 0 < cost_ns < wall_ns
    if "GPUPROF_BACKTRACE_THRESHOLD" in settings:  # without them
        assert costs["stack"][0] == made and costs["stack"][3] > total_ns / 5


def test_short_threads_have_short_lives(library, tmp_path):
    """The time for which threads took part is not that until they were looked for."""
    _, [process] = tiny_run(library, tmp_path, "cost_shapes.c", "short-threads", 700)
    [wall_ns, span_ns] = [process.of_type(stream_reader.COST_SUM)[-1].args[i] for i in (1, 7)]
    assert wall_ns < 2 * span_ns  # one after another


@pytest.mark.parametrize("shape, threshold", [("late-thread", "off"), ("late-threads", 0)])
def test_more_threads_than_have_sums(library, tmp_path, shape, threshold):
    # On a busy machine stacks begun before they were given up may be all that is done for a while.
    until = LAST if threshold == "off" else 3000
    [made], [process] = tiny_run(library, tmp_path, "cost_shapes.c", shape, until,
                                 GPUPROF_OVERHEAD_MAX=TINY, GPUPROF_BACKTRACE_THRESHOLD=threshold)
    steps = process.of_type(stream_reader.STEP_DOWN)
    assert {TENTH, HUNDREDTH} & {s.code for s in steps}
    assert process.counters["passed_by"] + len(process.calls()) == made
    threads, _, _, worst, worst_wall_ns, worst_cost_ns, _, span_ns = \
        process.of_type(stream_reader.COST_SUM)[-1].args[:8]
    assert threads == len(process.of_type(stream_reader.THREAD)) > 1100
    if threshold == "off":
        assert 0 < worst_cost_ns < worst_wall_ns
        # It is the share of the one that does something, and not of a thousand that wait.
        assert worst > 1024 and max(s.args[0] for s in steps) > 50
    else:  # each waits for the others: not one takes longer than all of the recording
        assert 0 < classes(process)["stack"][3] < threads * span_ns


def test_not_measured(library, run_collector, tmp_path):
    """A program that is over before anything was timed does not cost 0 ns."""
    [made], _ = tiny_run(library, tmp_path, "cost_shapes.c", "many", 30, GPUPROF_SEAL="10s",
                         GPUPROF_BACKTRACE_THRESHOLD="off", GPUPROF_SILENCE="off")
    text = run_collector("report", "--full", tmp_path / "out").stdout
    assert re.search(rf"^ +not measured +{made:,} +copies, sets", text, re.MULTILINE)
    assert "without start-up: not measured" in text
    assert not re.search(r"^ .*%.*copies, sets", text, re.MULTILINE)
    own = json.loads(run_collector("report", "--format=json", tmp_path / "out").stdout)["own_cost"]
    assert own["cost_ns"] is own["share"] is own["worst_share"] is None
    [copy] = [c for c in own["classes"] if c["name"] == "copy"]
    assert copy == {"name": "copy", "count": made, "timed": 0, "unmeasured": made,
                    "total_ns": None, "mean_ns": None, "share": None}
    rows = csv_tables.tables(run_collector("report", "--format=csv", tmp_path / "out").stdout)
    [row] = [r for r in rows["cost_classes"] if r["name"] == "copy"]
    assert (row["unmeasured"], row["total_ns"]) == (str(made), "")
    trace = json.loads(run_collector("merge", tmp_path / "out").stdout)
    [its] = trace["otherData"]["processes"]
    assert its["own_cost"]["classes"]["copy"] == {"count": made, "total_ns": None}
    assert its["own_cost"]["worst_share"] is its["own_cost"]["cost_ns"] is None


def test_processes_of_different_budgets(library, run_collector, tmp_path):
    """And a short one of which nothing was measured: it does not halve what a call costs."""
    out = tmp_path / "out"
    [short], _ = tiny_run(library, tmp_path, "cost_shapes.c", "many", 30, GPUPROF_SEAL="10s")
    tiny_run(library, tmp_path, "cost_shapes.c", "many", 700, GPUPROF_OVERHEAD_MAX="50%")
    tiny_run(library, tmp_path, "cost_shapes.c", "many", FIRST, GPUPROF_OVERHEAD_MAX="0.001%")
    processes = {p.header.pid: p for p in stream_reader.read_folder(out)}
    report = json.loads(run_collector("report", "--format=json", out).stdout)["own_cost"]
    budgets = {pid: p.of_type(stream_reader.COST_SUM)[-1].args[9] for pid, p in processes.items()}
    assert sorted(budgets.values()) == [0, 10, 500000]
    assert report["steps"] and {(budgets[s["pid"]], round(1000000 * s["budget"]))
                                for s in report["steps"]} == {(10, 10)}
    [copy] = [c for c in report["classes"] if c["name"] == "copy"]
    assert copy["unmeasured"] == short
    assert copy["count"] == sum(classes(p)["copy"][0] for p in processes.values())
    assert copy["mean_ns"] == copy["total_ns"] // (copy["count"] - short)
    text = run_collector("report", "--full", out).stdout
    assert re.search(rf"^ .*% .* {copy['count']:,} .*copies, sets", text, re.MULTILINE)
    assert "of the measured part: " in text
    [tight] = [pid for pid, budget in budgets.items() if budget == 10]
    assert f"--overhead-max: pid {tight}, after " in text


def test_a_step_that_is_enough(library, tmp_path):
    """Stacks are what it costs: nothing else is given up. A busy machine that lets a timed call
    wait adds to the cost, but not three times."""
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        [made], [process] = tiny_run(library, folder, "cost_shapes.c", "many", 1200,
                                     GPUPROF_OVERHEAD_MAX="2%", GPUPROF_BACKTRACE_THRESHOLD=0)
        steps = [s.code for s in process.of_type(stream_reader.STEP_DOWN)]
        if steps == [STACKS]:
            break
    assert steps == [STACKS]
    assert len(process.calls()) == made and process.counters["passed_by"] == 0


def test_threads_that_change_no_chunk(library, tmp_path):
    """They are told to pass calls by, and not only when they come to a new chunk."""
    [made], [process] = tiny_run(library, tmp_path, "cost_shapes.c", "many", LAST,
                                 GPUPROF_OVERHEAD_MAX=TINY, GPUPROF_CHUNK="16M")
    passed = process.counters["passed_by"]
    assert passed > made / 20 and passed + len(process.calls()) == made


def test_a_usual_program_stays_as_it_is(library, tmp_path):
    [made], [process] = tiny_run(library, tmp_path, "cost_shapes.c", "seldom", 700,
                                 GPUPROF_OVERHEAD_MAX="2%")
    assert not process.of_type(stream_reader.STEP_DOWN) and len(process.calls()) == made


@pytest.mark.parametrize("scenario", ["pause", "inside", "other", "jump", "handler", "fork"])
def test_what_comes_between(library, tmp_path, scenario):
    """Pauses, longjmp and forks among calls that are passed by."""
    (made, arrived, between), (process, *children) = tiny_run(
        library, tmp_path, "passed_work.c", scenario, LAST, GPUPROF_OVERHEAD_MAX=TINY,
        GPUPROF_BACKTRACE_THRESHOLD="off")
    passed, failed = process.counters["passed_by"], process.counters["passed_failed"]
    _, weights = counted(process)
    difference = made - len(process.calls()) - passed
    assert between > 2 and passed > 1000
    assert not process.losses or scenario == "jump"
    if scenario in ("pause", "inside", "handler", "fork"):
        assert difference == 0
    elif scenario == "other":  # a call beside a change may have seen the one state or the other
        assert abs(difference) <= between
    else:  # some were left before they were recorded, or came to the runtime
        assert 0 <= difference <= between and len(process.calls()) + passed >= arrived - 1
    [hundredth] = [s.begin for s in process.of_type(stream_reader.STEP_DOWN)
                   if s.code == HUNDREDTH]
    late = [r.weight for r in process.of_type(stream_reader.CALL)
            if r.weight > 1 and r.begin > hundredth + 50_000_000]
    assert len(late) < 100 or 75 < sum(late) / len(late) < 125
    slack = {"other": 2 * between, "jump": between}.get(scenario, 0)
    # The last of each thread's launches, and of its copies, stand for nobody that comes after them.
    gaps = 2 * (3 if scenario == "fork" else 1)
    assert -slack <= made - weights.total() <= 198 * gaps + slack
    # One in ten of the sets fails.
    assert abs(failed - passed / 12) < passed / 40
    # A handler in the middle of our own code is not recorded, nor is its child.
    forks = between if scenario in ("handler", "fork") else 0
    assert forks / 2 <= len(children) <= forks and (scenario != "fork" or len(children) == forks)
    for child in children:
        assert len(child.calls()) == 50 and child.counters["passed_by"] == 0
