# SPDX-License-Identifier: Apache-2.0
"""Where the devices' time went, and why they were idle."""

import collections
import contextlib
import json
import random
import re
import sqlite3

import cupti_client as cupti
import gpu_run
import idle_truth
import pytest
import step_truth
import stream_reader
from stream_reader import CALL, PAUSE, POP, PUSH, TYPE_NUMBERS
from test_step_report import RandomStream

MAIN, DEVICE, OTHER, THIRD = 1, 2, 3, 4
US = 1000
PARTS = ("compute_ns", "communication_ns", "copies_ns", "idle_ns", "stopped_ns")
CAUSES = ("launch", "host", "waiting", "preempted", "sync", "copy", "loader", "allocation",
          "communication", "capture", "start_up", "nothing", "unknown")
NEXT_LAUNCH = "before cudaLaunchKernel"
KERNELS = ("gemm", "relu", "ncclDevKernel_AllReduce")


class Script:
    """A process's records, as make_records takes them; times in microseconds."""

    def __init__(self, rank=0, now=1_000_000):
        self.lines, self.rank, self.now, self.correlation = [], rank, now, 0
        for number, name in enumerate(KERNELS, 1):
            self.add("kernel_name", DEVICE, 0, 0, args=(number,), text=name)

    def add(self, kind, thread, begin, us, correlation=0, flags=0, code=0, args=(), text=""):
        number = TYPE_NUMBERS.get(kind, kind)
        self.lines.append((thread, begin, f"{number} {thread} {int(begin * US)} {int(us * US)} "
                           f"{correlation} {flags} {code} 0 {','.join(map(str, args)) or '-'} "
                           f"{text}"))

    def call(self, function, us, thread=MAIN, flags=0):
        """Returns its begin."""
        self.correlation += 1
        self.add(CALL, thread, self.now, us, self.correlation, flags, function)
        self.now += us
        return self.now - us

    def work(self, after, us, kind="kernel", kernel=1, device=0):
        """Work of the last call begins so long after that call's begin."""
        args = (device, 1, 7, kernel, 1, 1) if kind == "kernel" else (device, 1, 7, 1, 1, 1)
        self.add(kind, DEVICE, self.last + after, us, self.correlation, args=args)

    def launch(self, us=5, after=4, lasts=100, function="cudaLaunchKernel", **work):
        self.last = self.call(function, us)
        self.work(after, lasts, **work)

    def range(self, text, us, thread=MAIN):
        self.add(PUSH, thread, self.now, 0, args=(0,) * 6, text=text)
        self.now += us
        self.add(POP, thread, self.now, 0, args=(0,))

    def text(self):
        return [f"process {self.rank}", *(line for _, _, line in
                                          sorted(self.lines, key=lambda line: line[:2]))]


@pytest.fixture(name="report")
def fixture_report(run_verb, make_records):
    def report(*scripts):
        folder = make_records(line for script in scripts for line in script.text())
        done = run_verb("report", "--format=json", "--table=gpu_time,idle,findings", folder)
        return check_sums(json.loads(done.stdout))
    return report


def check_sums(report):
    """All adds up to the nanosecond."""
    for row in report["gpu_time"]:
        assert sum(row[part] for part in PARTS) == row["window_ns"]
        assert sum(row[f"idle_{cause}_ns"] for cause in CAUSES) == row["idle_ns"]
    for cause in CAUSES:
        assert sum(row["total_ns"] for row in report["idle"]
                   if row["cause"].replace("-", "_") == cause) == \
            sum(row[f"idle_{cause}_ns"] for row in report["gpu_time"])
    return report


def causes(report, device=0):
    row = report["gpu_time"][device]
    found = {cause: row[f"idle_{cause}_ns"] / US for cause in CAUSES if row[f"idle_{cause}_ns"]}
    found.pop("start_up", None)
    return found


def started():
    """A kernel that ends at 100 us from now, launched in time."""
    s = Script()
    s.launch()
    s.now = s.last + 10
    return s


def test_whose_sum_a_row_is(report):
    """Of several ranks none has its name beside the sum of all; the longest gap has one."""
    scripts = []
    for rank, us in enumerate((500, 900, 700)):
        script = Script(rank)
        script.launch()
        script.now = script.last + 104 + us
        script.launch()
        if rank == 1:
            script.now = script.last + 104 + 200
            script.call("cudaMalloc", 300)
            script.launch()
        scripts.append(script)
    rows = report(*scripts)["idle"]
    row, = (row for row in rows if row["cause"] == "host" and row["place"] == NEXT_LAUNCH)
    assert row["total_ns"] == (500 + 900 + 700) * US and row["devices"] == row["count"] == 3
    assert row["rank"] is row["host"] is row["pid"] is row["device"] is None
    assert (row["longest_pid"], row["longest_device"], row["longest_ns"]) == (1001, 0, 900 * US)
    row, = (row for row in rows if row["cause"] == "allocation")
    assert (row["devices"], row["pid"], row["device"]) == (1, 1001, 0)


def test_second_device_starts_up_with_the_first(report):
    """It is the process that starts up: a device used later was idle for its own reasons only from
    the process's first work on."""
    s = Script()
    s.call("cudaMalloc", 300)
    s.launch()
    s.now += 200_000
    s.launch(device=1)
    found = report(s)
    first, second = found["gpu_time"]
    assert second["idle_start_up_ns"] == first["idle_start_up_ns"] > 300 * US
    assert second["idle_host_ns"] + second["idle_launch_ns"] == 200_000 * US + 5 * US
    counts = {row["place"]: row["count"] for row in found["idle"] if row["cause"] == "start-up"}
    assert counts["cudaMalloc"] == 2


SCENES = {}


def scene(**wanted):
    def keep(function):
        SCENES[function.__name__] = function, wanted
        return function
    return keep


@scene(launch=1 + 4 + 3 + 6)
def launch_calls_and_what_is_near(s):
    """The kernel ends at 104; the next one's call begins 1 us later, and is 4 us long; it begins
    3 us after that. The third one is queued in time."""
    s.now = s.last + 70
    s.call("cudaEventRecord", 1)
    s.now = s.last + 105
    s.launch(us=4, after=7, lasts=50)
    s.launch(us=4, after=7 + 50 - 4 + 6, lasts=50)


@scene(host=396, launch=4)
def host_code_between_calls(s):
    s.now = s.last + 500
    s.launch(us=4, after=4, lasts=50)


@scene(sync=46 + 50 + 3 + 4)
def a_synchronisation_pays_for_as_long_as_it_waited(s):
    """It begins 10 us behind the launch, and returns when the device was idle for 46 us."""
    s.call("cudaDeviceSynchronize", 140)
    s.now += 50 + 3
    s.launch(us=4, after=4, lasts=50)


@scene(sync=46 + 94, host=500 - 94, launch=4)
def what_is_beyond_that_is_the_hosts(s):
    s.call("cudaDeviceSynchronize", 140)
    s.now += 500
    s.launch(us=4, after=4, lasts=50)


@scene(host=1, copy=200 + 10, launch=5 + 7)
def a_blocking_copy_stages(s):
    """In the call before the copy begins, and after it has ended."""
    s.now = s.last + 105
    s.launch(us=300, after=200, lasts=90, function="cudaMemcpy", kind="copy")
    s.launch(us=5, after=12, lasts=50)


@scene(host=20, allocation=300, launch=10 + 4)
def allocation(s):
    s.now = s.last + 104 + 20
    s.call("cudaMalloc", 300)
    s.now += 10
    s.launch(us=4, after=4, lasts=50)


@scene(sync=94, copy=2 + 4, host=500 - 94, launch=4)
def a_wait_behind_a_copy_pays_for_as_long_as_kernels_took(s):
    """The copy begins 2 us behind the kernel, takes 2 us, and its call returns 4 us later."""
    s.launch(us=102, after=96, lasts=2, function="cudaMemcpy", kind="copy")
    s.now += 500
    s.launch()


@scene(allocation=46 + 94, host=500 - 94, launch=4)
def a_free_pays_for_as_long_as_it_waited(s):
    s.call("cudaFree", 140)
    s.now += 500
    s.launch()


@scene(loader=2000, launch=15 + 4)
def data_loading(s):
    s.now = s.last + 104
    s.range("Load Batch 17", 2000)
    s.now += 15
    s.launch(us=4, after=4, lasts=50)


@scene(capture=1000 + 10 + 700, launch=15 + 4)
def capture_and_instantiation(s):
    s.now = s.last + 104
    begin = s.now
    s.call("cudaStreamBeginCapture", 5)
    s.call("cudaLaunchKernel", 5, flags=1)
    s.now = begin + 995
    s.call("cudaStreamEndCapture", 5)
    s.now += 10
    s.call("cudaGraphInstantiate", 700)
    s.now += 15
    s.launch(us=4, after=4, lasts=50)


@scene(capture=300, host=100 + 200, launch=4)
def loading_between_calls(s):
    """By a call that is not recorded, as cuBLAS' of cuLibraryLoadData."""
    s.now = s.last + 104 + 100
    s.add("overhead", DEVICE, s.now, 300, args=(4 << 16, 2, 0, 0))
    s.now += 300 + 200
    s.launch(us=4, after=4, lasts=50)


@scene(nothing=6_000_000, launch=4)
def nothing_at_all(s):
    s.now = s.last + 104 + 6_000_000
    s.launch(us=4, after=4, lasts=50)


def silent(s, us, since, cpu, delay):
    """Before the next launch; `delay` None: the kernel says nothing of it."""
    s.now = s.last + 104 + us
    s.add("silence", MAIN, s.now, 0, args=(us * US, since * US, cpu * US,
                                           0 if delay is None else delay * US + 1))
    s.launch(us=4, after=4, lasts=50)


def silence(of, *times, **wanted):
    """A scene of one silence: `times` as silent() has them."""
    SCENES[f"silence_{of}"] = (lambda s: silent(s, *times)), {"launch": 4, **wanted}


silence("of_a_thread_that_ran", 8000, 8200, 8200, 0, host=8000)
# It ran for a moment, and in the calls before, which took as long as it was silent.
silence("of_a_thread_that_waited", 8000, 16_000, 8100, 10, waiting=8000)
silence("in_which_others_ran", 8000, 8000, 300, 7700, preempted=8000)
silence("of_three_kinds", 8000, 8000, 2000, 2000, waiting=4000, preempted=2000, host=2000)
silence("off_the_processor_nobody_knows_why", 8000, 8000, 100, None, unknown=8000)
# The thread's times are of much more, or were never read before.
silence("of_which_nothing_is_known", 8000, 0, 0, 0, host=8000)
silence("behind_long_work_that_may_have_waited", 8000, 80_000, 70_000, 0, host=8000)
silence("of_seconds", 6_000_000, 6_000_000, 1000, 1000, waiting=6_000_000)


@scene(preempted=8000, launch=4)
def silence_as_long_as_a_number_can_say(s):
    s.now = s.last + 104 + 8000
    s.add("silence", MAIN, s.now, 0, args=(2**64 - 1, 2**64 - 1, 0, 2**64 - 1))
    s.launch(us=4, after=4, lasts=50)


@scene(waiting=8000 + 6000, launch=4 + 4)
def silence_like_the_one_before(s):
    """Between calls of the same functions; that it was not looked at is its cost's bound."""
    silent(s, 8000, 8000, 100, 0)
    s.now = s.last + 54 + 6000
    s.launch(us=4, after=4, lasts=50)


@scene(sync=300)
def queued_in_time_but_late(s):
    """What it depends on is not the device's."""
    s.launch(us=4, after=94 + 300, lasts=50)


@scene(nothing=1000)
def after_the_last_work(s):
    s.now = s.last + 104 + 995
    s.call("cudaFree", 5)


@pytest.mark.parametrize("name", SCENES)
def test_a_gap_has_its_cause(name, report):
    act, wanted = SCENES[name]
    script = started()
    act(script)
    assert causes(report(script)) == wanted


@pytest.mark.parametrize("parts, place", [
    ([("load", 300)], "load"), ([("load", 240)], NEXT_LAUNCH),  # of 496 us
    ([("near", 100), ("load", 150), ("near", 160)], "near"),  # those of one name are one
    ([(f"item {n}", 20) for n in range(12)] + [("late", 250)], "late")])
def test_where_the_host_was_between_calls(parts, place, report):
    """In the range that took most of the time, although it ended before the next call."""
    s = started()
    end = s.now + 490
    s.now += 1
    for text, us in parts:
        s.range(text, us)
    s.now = end
    s.launch()
    row, = [row for row in report(s)["idle"] if row["cause"] == "host"]
    assert (row["place"], row["total_ns"]) == (place, 396 * US)


def test_of_ranges_in_ranges_the_innermost_that_took_half(report):
    s = started()
    s.add(PUSH, MAIN, s.now - 8, 0, args=(0,) * 6, text="step")  # around the first launch, too
    for text, us in (("read", 60), ("decode", 380)):
        s.range(text, us)
    s.add(POP, MAIN, s.now, 0, args=(0,))
    s.now += 50
    s.launch()
    s.now += 6_000_000  # nobody knows what it does there
    s.launch()
    assert {(row["cause"], row["place"]) for row in report(s)["idle"]} >= {
        ("host", "decode"), ("nothing", NEXT_LAUNCH)}


@pytest.mark.parametrize("opens_at, name, place", [
    (0, "step", "step"), (240, "step", "step"), (250, "step", "between cudaLaunchKernel and step"),
    (250, "here and there", "between cudaLaunchKernel and 'here and there'")])
def test_time_before_a_range_is_not_in_it(opens_at, name, place, report):
    """Of the 490 us before a call its range, which is open still, has at least half, or nothing."""
    s = started()
    end = s.now + 490
    s.add(PUSH, MAIN, s.now + opens_at, 0, args=(0,) * 6, text=name)
    s.now = end
    s.launch()
    s.add(POP, MAIN, s.now, 0, args=(0,))
    row, = [row for row in report(s)["idle"] if row["cause"] == "host"]
    assert (row["place"], row["total_ns"]) == (place, 396 * US)


@pytest.mark.parametrize("us, share", [(1, 1 / 201), (40, None)])
def test_a_helper_that_cuts_gaps_is_told_as_one(us, share, run_verb, make_records):
    """It is whose kernels end them, but makes little: a tenth is not."""
    s = Script()
    for _ in range(20):
        s.launch(lasts=20 * 200)
        s.now += 4000
        for _ in range(20):
            s.now += 5000
            s.last = s.call("cudaLaunchKernel", 4, thread=OTHER)
            s.work(4, us)
    folder = make_records(s.text())
    finding, = (row for row in json.loads(run_verb("report", "--format=json", folder).stdout)
                ["findings"] if row["id"] == "host-bound")
    assert finding["where"] is None and finding["ns"] > 19 * 20 * 4900 * US
    assert finding["evidence"][0].get("work_share") == (
        pytest.approx(share, abs=1e-6) if share else None)
    assert finding["next"].startswith("gpuprof merge" if share else "gpuprof run --sample ")
    text = run_verb("report", "--full", folder).stdout
    assert text.count(" by a thread that launches 0.5% of the GPU's work\n") == bool(share)
    run_verb("report", "--partial", "--share=0/1", "-o", "part", folder)
    assert run_verb("report", "--combine", "part", "--full").stdout == \
        text.replace(str(folder), "DATA")


def test_the_place_of_a_finding_is_a_phrase(run_verb, make_records):
    """Not "at on the device", where kernels were launched long before they began."""
    s = Script()
    s.launch()
    for _ in range(10):
        s.launch(us=3, after=200_000)
        s.now += 200_200
    text = run_verb("report", make_records(s.text())).stdout
    assert re.search(r"finding .*\n +at import and .*\n.*\n.* 2.000 s  synchronization .*\n"
                     r" +on the device\n", text) and "at on" not in text


# (when, thread, function, how long, work from then on and for so long) in us after the first
# kernel's end; who is told for the time before: the next launch's thread, or that which copies.
COPY, LAUNCH, WAIT = "cudaMemcpyAsync", "cudaLaunchKernel", "cudaStreamSynchronize"
OFTEN = [(at, OTHER, COPY, 4, at + 4, 10) for at in (1000, 2000, 3000)]
COPIED = {
    "copies go on": (OFTEN + [(3900, MAIN, LAUNCH, 4, 3904, 50)], LAUNCH),
    "beside the kernel, and more calls": ([(-50, OTHER, COPY, 4, -46, 10),
                                           (3000, OTHER, "cudaEventRecord", 4, None, 0),
                                           (3900, MAIN, LAUNCH, 4, 3904, 50)], LAUNCH),
    "one begins last before the gap": ([(-50, OTHER, COPY, 4, -46, 10)] + OFTEN +
                                       [(3900, MAIN, LAUNCH, 4, 3904, 50)], LAUNCH),
    "the launch comes while they do": (OFTEN + [(3001, MAIN, LAUNCH, 4, 3010, 50)], LAUNCH),
    "another thread launches": (OFTEN + [(3900, THIRD, LAUNCH, 4, 3904, 50)], LAUNCH),
    "the launch comes at once": ([(3000, OTHER, COPY, 4, 3004, 10),
                                  (3050, MAIN, LAUNCH, 4, 3054, 50)], COPY),
    "at once behind the last of two": ([(3000, OTHER, COPY, 4, 3004, 10),
                                        (3030, OTHER, COPY, 4, 3034, 10),
                                        (3070, MAIN, LAUNCH, 4, 3074, 50)], COPY),
    "the launch waits on the device": ([(-50, MAIN, LAUNCH, 4, 3104, 50),
                                        (3000, OTHER, COPY, 4, 3004, 10)], COPY),
    "the launcher waits in a call": ([(-50, MAIN, WAIT, 3070, None, 0),
                                      (3000, OTHER, COPY, 4, 3004, 10),
                                      (3900, MAIN, LAUNCH, 4, 3904, 50)], COPY),
    "who copies launches": (OFTEN + [(3900, OTHER, LAUNCH, 4, 3904, 50)], COPY),
    "no kernel follows": (OFTEN, COPY),
}


def copied(events):
    """Those, behind a kernel of MAIN."""
    s = Script(now=1000)
    s.launch()
    end = s.last + 104
    for at, thread, function, us, work, lasts in events:
        s.now = end + at
        s.last = s.call(function, us, thread=thread)
        if work is not None:
            s.work(work - at, lasts, kind="copy" if function == COPY else "kernel")
    return s


@pytest.mark.parametrize("name", COPIED)
def test_copies_are_nothing_that_the_gpu_waits_for(name, report):
    """But where who launches may have waited for them."""
    rows = [row for row in report(copied(COPIED[name][0]))["idle"] if row["cause"] == "host"]
    found, told = collections.Counter(), COPIED[name][1]
    for row in rows:
        found[row["place"].split(" ")[-1]] += row["total_ns"] / US
    assert found[told] > 2870 and sum(found.values()) - found[told] < 890
    assert len(rows) == 1 or name not in ("copies go on", "another thread launches")
    if name == "copies go on":
        assert rows[0]["count"] == 1 and found[told] == 3900 - 3 * 10


@pytest.mark.parametrize("events", (
    [(3000, OTHER, COPY, 4, 1000, 10), (3900, MAIN, LAUNCH, 4, 3904, 50)],
    OFTEN + [(3900, THIRD, LAUNCH, 4, 3500, 50)]), ids=("copy", "kernel"))
def test_work_before_the_first_call_of_its_thread(events, run_verb, make_records, tmp_path):
    """As a damaged recording has it: the database has a row for each gap nevertheless."""
    run_verb("export", make_records(copied(events).text()), "-o", tmp_path / "a.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as base:
        [[idle_ns]] = base.execute("SELECT idle FROM GPUPROF_GPU_TIME")
        [[told_ns]] = base.execute("SELECT sum(total) FROM GPUPROF_IDLE")
    assert idle_ns == told_ns > 3500 * US


@pytest.mark.parametrize("seed", range(8))
def test_gaps_are_told_as_if_there_were_no_copies(seed, run_verb, make_records):
    """Threads launch on two devices, another one copies beside their kernels and between them, but
    never soon before one: all it changes is that the devices are idle for less time."""
    dice, without = random.Random(seed), Script(now=1000)
    events, free, last = [], {}, {}
    for _ in range(12):
        thread, device = dice.choice((MAIN, THIRD, THIRD + 1)), dice.randrange(2)
        begin, lasts = max(without.now + 4, free.get(device, 0)), dice.choice((20, 100, 300))
        if device in free:
            until = without.now - 0.3 * (without.now - free[device])
            at = max(free[device], last.get("copy", 0)) + dice.uniform(20, 900)
            while at + 60 < until:
                events.append((at, device))
                last["copy"] = at + 50
                at += dice.uniform(60, 900)
        without.last = without.call("cudaLaunchKernel", 5, thread=thread)
        without.work(begin - without.last, lasts, device=device)
        if begin > last.get("copy", 0):
            events.append((begin + 5, device))
            last["copy"] = begin + 55
        free[device] = begin + lasts
        without.now = max(without.now + 10, begin + lasts) + dice.uniform(1, 4000)
        if dice.random() < 0.4:
            without.call("cudaEventRecord", 2, thread=thread)
            without.now += dice.uniform(10, 2000)
    sums = []
    for name in ("without", "with"):
        found = json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle",
                                    make_records(without.text(), name=name)).stdout)
        sums.append(collections.Counter())
        for row in check_sums(found)["idle"]:
            sums[-1][row["cause"], row["place"]] += row["total_ns"]
        for at, device in sorted(events):
            without.now = at - 4
            without.last = without.call("cudaMemcpyAsync", 4, thread=OTHER)
            without.work(4, 10, kind="copy", device=device)
    assert sum(sums[0].values()) > sum(sums[1].values()) and len(events) > 5
    assert not sums[1] - sums[0], sums[1] - sums[0]


def test_time_behind_a_wait_is_not_in_it(report):
    """What the thread did up to the end of that range, or behind it, nobody knows."""
    s = started()
    s.call("cudaDeviceSynchronize", 140)
    s.now += 90
    s.launch(lasts=100)
    s.add(PUSH, MAIN, s.now, 0, args=(0,) * 6, text="step")
    s.call("cudaDeviceSynchronize", 140)
    s.add(POP, MAIN, s.now, 0, args=(0,))
    s.now += 60
    s.launch()
    found = {row["place"]: row["total_ns"] // US for row in report(s)["idle"]
             if row["cause"] == "sync"}
    assert found == {"cudaDeviceSynchronize": 46, "after cudaDeviceSynchronize": 94,
                     "step": 41, "after a wait in step": 64}


def test_what_ran_goes_before_what_it_covers(report):
    s = started()  # 4 to 104
    s.work(50, 150, kind="copy")  # 50 to 200
    s.work(90, 70, kernel=3)  # 90 to 160: NCCL's
    row = report(s)["gpu_time"][0]
    assert (row["compute_ns"], row["communication_ns"], row["copies_ns"]) == \
        (100 * US, 56 * US, 40 * US)


@pytest.mark.parametrize("pauses", [
    ((50, 1), (250, 0)), ((50, 1, 0), (100, 1, 1), (150, 0, 0), (250, 0, 1)),
    ((50, 1, 1), (100, 1, 0), (150, 0, 1), (250, 0, 0))], ids=["program", "held", "stopped"])
def test_time_that_was_not_recorded_is_not_idle(report, run_verb, tmp_path, pauses):
    """The program and gpuprof ctl each stop and start for themselves."""
    s = started()
    for at, *args in pauses:
        s.add(PAUSE, MAIN, s.last + 104 + at, 0, args=tuple(args))
    s.now = s.last + 104 + 300
    s.launch(us=4, after=4, lasts=50)
    row = report(s)["gpu_time"][0]
    assert row["stopped_ns"] == 200 * US
    assert row["idle_unknown_ns"] == 100 * US  # the thread may have made calls meanwhile
    screen = run_verb("report", tmp_path / "data").stdout.partition("\n\n")[0]
    check_recorded_shares(row, screen)


CLIENT = ("another client of CUPTI's has the GPU's records from here on",
          "the GPU's records are gpuprof's again")
NOTE, STEP_DOWN = TYPE_NUMBERS["note"], TYPE_NUMBERS["step_down"]
ONE_OF_TEN, NO_CUPTI = 3, 5  # steps of --overhead-max


@pytest.mark.parametrize("notes,pauses", [
    (((50, 0), (250, 1)), ()), (((150, 1), (50, 0), (150, 0), (250, 1)), ()),
    (((50, 0), (120, 1)), ((110, 1), (250, 0))), (((100, 0), (200, 1)), ((50, 1), (250, 0)))],
    ids=["once", "twice", "then a stop", "in a stop"])
def test_time_of_another_client_is_not_idle(report, run_verb, tmp_path, notes, pauses):
    """It had the records of what the device did; the program's calls are there."""
    s = started()
    for number, (at, text) in enumerate(notes):  # threads write them in blocks of their own
        s.add(NOTE, OTHER + number % 2, s.last + 104 + at, 0, text=CLIENT[text])
    for at, paused in pauses:
        s.add(PAUSE, MAIN, s.last + 104 + at, 0, args=(paused,))
    s.now = s.last + 104 + 300
    s.launch(us=4, after=4, lasts=50)
    row = report(s)["gpu_time"][0]
    cause = "unknown" if pauses else "host"
    assert row["stopped_ns"] == 200 * US and row[f"idle_{cause}_ns"] == 100 * US
    check_recorded_shares(row, run_verb("report", tmp_path / "data").stdout.partition("\n\n")[0])


def test_what_is_behind_the_end_of_cupti_is_not_idle(report, run_verb, tmp_path):
    """--overhead-max has given it up: the calls go on."""
    s = started()
    s.add(STEP_DOWN, OTHER, s.last + 104 + 50, 0, code=NO_CUPTI, text="CUPTI off")
    for _ in range(10):
        s.now += 1000
        s.last = s.call("cudaLaunchKernel", 5)
    found = report(s)
    row = found["gpu_time"][0]
    assert causes(found) == {"nothing": 50}
    assert row["stopped_ns"] == (s.now - 1_000_104 - 50) * US
    check_recorded_shares(row, run_verb("report", tmp_path / "data").stdout.partition("\n\n")[0])


def check_recorded_shares(row, screen):
    """They are of what was recorded behind start-up, on the screen and in the table."""
    missing = 100 * row["stopped_ns"] / row["window_ns"]
    share = f"{min(100 - missing, 99.9):.1f}%"
    assert f"\n  recorded   {share} of the GPUs' time; shares refer to that, without start-up\n" \
        in screen
    run = row["window_ns"] - row["idle_start_up_ns"] - row["stopped_ns"]
    idle = row["idle_ns"] - row["idle_start_up_ns"]
    assert f"  idle {100 * idle / run:.1f}%\n" in screen
    assert f"compute {100 * row['compute_ns'] / run:.1f}%  " in screen
    assert row["idle_share"] == pytest.approx(idle / run, abs=1e-4)


def test_a_start_that_was_not_recorded_is_in_no_share(report, run_verb, tmp_path):
    """As with --delay: only what of it was recorded is start-up."""
    s = Script(now=1_200_000)
    s.add(PAUSE, MAIN, 200_000, 0, args=(1,))
    s.add(PAUSE, MAIN, 1_100_000, 0, args=(0,))
    s.launch(lasts=200)
    row = report(s)["gpu_time"][0]
    assert row["stopped_ns"] == 900_000 * US
    screen = run_verb("report", tmp_path / "data").stdout.partition("\n\n")[0]
    check_recorded_shares(row, screen)
    said = json.loads(run_verb("report", "--format=json", tmp_path / "data").stdout)["overview"]
    assert said["start_up_ns"] == row["idle_start_up_ns"] < row["window_ns"] - row["stopped_ns"]
    assert re.search(r"\n  start-up   \S+ m?s until [^;]*\n", screen)


@pytest.mark.parametrize("how", ["all recorded", "sampled", "lost"])
def test_who_made_work_is_not_guessed_where_calls_are_missing(report, how):
    """Without a number it is of the last call that is recorded, if all of them are."""
    s = started()
    if how == "lost":
        s.add("counter", 0, 0, 0, args=(5,), text="dropped")
    elif how == "sampled":
        s.add(STEP_DOWN, OTHER, s.last + 90, 0, code=ONE_OF_TEN, text="1 of 10 launches recorded")
    s.now = s.last + 105
    s.last = s.call("cudaLaunchKernel", 4)
    s.add("kernel", DEVICE, s.last + 504, 50, args=(0, 1, 7, 1, 1, 1))
    assert causes(report(s)) == (
        {"host": 1, "launch": 4, "sync": 500} if how == "all recorded" else {"unknown": 505})


@pytest.mark.parametrize("how", ["queued", "synchronised", "much later"])
def test_what_is_waited_for_behind_a_stop_is_not_recorded(report, how):
    """Nothing of the GPU's work is known then that one could wait for: it was launched before."""
    s = started()
    s.add(PAUSE, MAIN, s.last + 104 + 50, 0, args=(1,))
    s.add(PAUSE, MAIN, s.last + 104 + 250, 0, args=(0,))
    s.now = s.last + 104 + 300
    if how == "synchronised":
        s.call("cudaDeviceSynchronize", 500)
    s.launch(us=4, after=604 if how == "queued" else 4, lasts=50)
    if how == "much later":
        s.now = s.last + 54 + 100
        s.launch(us=4, after=604, lasts=50)
    row = report(s)["gpu_time"][0]
    waited = {"queued": 600, "synchronised": 500}.get(how, 0)
    assert row["stopped_ns"] == (200 + waited) * US
    assert row["idle_sync_ns"] == (600 if how == "much later" else 0) * US
    assert row["idle_unknown_ns"] == 100 * US
    assert row["idle_host_ns"] == (100 if how == "much later" else 0) * US


def test_findings_are_of_what_was_recorded(report, run_verb, tmp_path):
    """As with a flight recorder, which has a second of an hour."""
    s = started()
    stop = s.last + 150
    s.add(PAUSE, MAIN, stop, 0, args=(1,))
    s.add(PAUSE, MAIN, stop + 3_600_000_000, 0, args=(0,))
    s.now = stop + 3_600_000_000
    s.call("cudaEventRecord", 5)
    s.now += 80_000
    s.launch(lasts=40_000)
    row = report(s)["gpu_time"][0]
    found = json.loads(run_verb("report", "--format=json", tmp_path / "data").stdout)["findings"][0]
    assert row["stopped_ns"] == 3_600_000_000 * US and found["id"] == "host-bound"
    assert found["of_ns"] == row["window_ns"] - row["idle_start_up_ns"] - row["stopped_ns"]
    assert 0.6 < found["ns"] / found["of_ns"] < 0.7


def test_loading_is_of_the_thread_that_it_says(report, run_verb, make_records):
    """Here of that which has done no work yet; the host's time before it is not the loading's."""
    [process] = stream_reader.read_folder(make_records(started().text(), "other"))
    tid = process.header.pid + 600
    s = started()
    s.now = s.last + 104
    s.call("cudaStreamSynchronize", 1, thread=OTHER)
    s.now += 100
    s.add("overhead", DEVICE, s.now, 300, args=(4 << 16, 2, 0, tid))
    s.now += 300 + 200
    s.last = s.call("cudaLaunchKernel", 4, thread=OTHER)
    s.work(4, 50)
    found = report(s)
    assert causes(found) == {"sync": 1, "capture": 300, "host": 300, "launch": 4}
    assert {row["place"].split(" ")[-1] for row in found["idle"]
            if row["cause"] in ("capture", "host")} == {"Loading", "cudaLaunchKernel"}


def long_start():
    """1.2 s after it was started a process works: 600 of 800 us; CUPTI's records come later."""
    s = Script(now=1_200_000)
    s.call("cudaMalloc", 300)
    s.launch(lasts=200)
    s.now = s.last + 400
    s.launch(lasts=400)
    s.now = s.last + 404
    s.call("cudaDeviceSynchronize", 1)
    s.now += 20_000
    s.add("overhead", DEVICE, s.now, 30_000, args=(1 << 16,))
    return s


def test_start_up_is_apart_from_what_it_would_hide(run_verb, make_records):
    """The wall time has it, and shares leave it out, everywhere; in a piece there is none."""
    folder = make_records(long_start().text())
    [process] = stream_reader.read_folder(folder)
    started_ns = process.header.start_time * 10_000_000 - 5_000_000_000
    work = sorted((r.begin, r.end) for r in process.of_type(TYPE_NUMBERS["kernel"]))
    end_ns = max(r.end for r in process.of_type(CALL))
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    overview, [row] = report["overview"], report["gpu_time"]
    assert report["wall_ns"] == overview["wall_ns"] == row["window_ns"] == end_ns - started_ns
    start_up_ns = work[0][0] - started_ns
    assert overview["start_up_ns"] == row["idle_start_up_ns"] == start_up_ns > 10**9
    run_ns = end_ns - work[0][0]
    assert run_ns == 801 * US and row["compute_ns"] == 600 * US
    assert row["idle_share"] == pytest.approx(201 / 801, abs=1e-4)
    for place in report["idle"]:
        whole = row["window_ns"] if place["cause"] == "start-up" else run_ns
        assert place["share"] == pytest.approx(place["total_ns"] / whole, abs=1e-4)
    [finding] = report["findings"]
    assert finding["id"] == "start-up" and finding["of_ns"] == row["window_ns"]
    screen = run_verb("report", folder).stdout
    assert "start-up   1.200 s until a GPU's first work; shares leave it out\n" in \
        screen.replace(f"{start_up_ns / 1e9:.3f} s until", "1.200 s until")
    assert "GPU time   compute 74.9%  communication 0.0%  copies 0.0%  idle 25.1%\n" in screen
    assert not re.search(r"^ +(idle)? +[0-9.]+% .* start-up ", screen.partition("\n\n")[0], re.M)
    assert re.search(r"start-up .* the start  import and the program's start$", screen, re.M)
    assert re.search(r"^ +import .*: [0-9.]+ s, once, since the process started$",
                     run_verb("report", "--table=findings", folder).stdout, re.M)
    piece = ("--from=350us", "--to=10s")
    overview = json.loads(run_verb("report", "--format=json", *piece, folder).stdout)["overview"]
    its = overview["piece"]
    assert overview["start_up_ns"] == 0 and its["from_ns"] == 350_000
    assert overview["wall_ns"] == its["to_ns"] - its["from_ns"]
    assert "start-up" not in run_verb("report", *piece, folder).stdout


def test_a_part_is_as_the_whole_after_start_up(run_verb, make_records, tmp_path):
    """The process that starts first, and that which works first, are in two parts."""
    scripts = [Script(rank=1, now=2_000_000), long_start()]
    scripts[0].launch(lasts=5000)
    folder = make_records(line for script in scripts for line in script.text())
    parts = [tmp_path / f"{share}.part" for share in range(2)]
    for share, part in enumerate(parts):
        run_verb("report", "--partial", f"--share={share}/2", "-o", part, folder)
    whole = run_verb("report", "--format=json", folder).stdout
    assert run_verb("report", "--format=json", "--combine", *parts).stdout == \
        whole.replace(str(folder), "DATA")
    assert json.loads(whole)["overview"]["start_up_ns"] > 10**9


@pytest.mark.parametrize("function", [
    "cudaMalloc", "cudaHostAlloc", "cudaMallocHost", "cudaFreeHost", "cudaHostRegister",
    "cudaHostUnregister", "cudaFreeArray", "cuMemFree_v2", "cuMemFreeHost"])
def test_calls_about_memory_may_wait_for_the_device(report, function):
    s = started()
    s.call(function, 140)
    s.now += 94
    s.launch()
    assert causes(report(s)) == {"allocation": 46 + 94, "launch": 4}


@pytest.mark.parametrize("function", ["cudaStreamDestroy", "cuStreamDestroy_v2"])
def test_the_end_of_a_stream_may_wait_for_the_device(report, function):
    s = started()
    s.call(function, 140)
    s.now += 94
    s.launch()
    assert causes(report(s)) == {"sync": 46 + 94, "launch": 4}


STEP = TYPE_NUMBERS["step"]
LOADS, COMPILES, STEP_US = 2_000_000, 800_000, 10_000


def stepped(slow=(0,), loads=LOADS, steps=20, rank=0):
    """Works for a moment, loads, then makes steps with 5 ms of idle time each; those of `slow`
    compile, too, behind their first kernel."""
    s = Script(rank)
    s.launch()
    s.now += loads
    for number in range(steps):
        s.add(STEP, MAIN, s.now, 0, args=(number,))
        begin = s.now
        s.launch(lasts=5000)
        s.now = s.last + 10
        if number in slow:
            s.now += COMPILES
            s.launch(lasts=50)
        s.now = max(s.now, begin) + STEP_US - 10
    s.add(STEP, MAIN, s.now, 0, args=(steps,))
    return s


def start_up_us(report):
    """But for what was before the first work."""
    row, = report["gpu_time"]
    first, = (p["total_ns"] for p in report["idle"] if p["place"].startswith("import"))
    assert row["idle_start_up_ns"] == sum(p["total_ns"] for p in report["idle"]
                                          if p["cause"] == "start-up")
    return (row["idle_start_up_ns"] - first) / US


@pytest.mark.parametrize("slow, steps, wanted", [
    ((), 20, LOADS), ((0,), 20, LOADS + COMPILES), ((0, 1, 2), 20, LOADS + 3 * COMPILES),
    ((0, 3, 6, 9, 12, 15, 18), 20, LOADS), ((7,), 20, LOADS), ((0,), 3, LOADS + COMPILES),
    ((0,), 2, LOADS), ((0, 1, 2, 3, 4, 5), 20, LOADS)],
    ids=["none", "first", "three", "each third", "a later one", "of few", "of fewer", "six"])
def test_start_up_lasts_until_the_steps_run(report, slow, steps, wanted):
    """Of what is idle in the first ones some was in all that take as long."""
    found = report(stepped(slow, steps=steps))
    assert start_up_us(found) == pytest.approx(wanted, abs=3 * STEP_US)


def test_a_gap_that_a_step_begins_in_is_one(report):
    """It is as long as both of its parts, and counts once, in the first steps as later."""
    s = Script()
    s.launch()
    for number in range(12):
        s.now += 200
        s.add(PUSH, MAIN, s.now, 0, args=(0,) * 6, text="forward")
        s.call("cudaMemcpy", 30)
        s.add(STEP, MAIN, s.now, 0, args=(number,))
        s.call("cudaMemcpy", 20)
        s.add(POP, MAIN, s.now, 0, args=(0,))
        s.launch()
    copies, = (p for p in report(s)["idle"] if p["cause"] == "copy")
    assert (copies["count"], copies["longest_ns"]) == (11, 50 * US)


def test_steps_of_a_recording_that_began_late(report):
    """Nobody knows whether they are the first."""
    s = stepped()
    s.add(PAUSE, MAIN, 1_000_200, 0, args=(1,))
    s.add(PAUSE, MAIN, 1_000_300, 0, args=(0,))
    assert start_up_us(report(s)) < 10


WORKS_US, REST_US = 10_000, 100
HEALTHY = [REST_US] * 100


def paused(gaps, lasts=WORKS_US):
    """Kernels with so much of the program's own code between them, and no steps."""
    s = Script()
    s.launch(lasts=lasts)
    for gap in gaps:
        s.now += lasts + gap
        s.launch(lasts=lasts)
    return s


@pytest.mark.parametrize("gaps, wanted", [
    ([COMPILES, *HEALTHY], COMPILES), ([300_000, COMPILES, *HEALTHY], 300_000 + COMPILES),
    ([COMPILES, 300_000, *HEALTHY], 300_000 + COMPILES),
    ([COMPILES, *HEALTHY, 450_000, *HEALTHY], 0), ([*HEALTHY[:30], COMPILES, *HEALTHY], 0),
    ([COMPILES, *HEALTHY[:10]], 0), ([COMPILES] * 100, 0), ([60_000] * 9 + HEALTHY, 0),
    ([5_500_000, *HEALTHY * 2], 5_500_000)],
    ids=["once", "twice", "shorter then", "again", "late", "no work", "always", "nine",
         "nothing"])
def test_what_comes_once_is_start_up_without_steps(report, gaps, wanted):
    """Near the beginning, before healthy work."""
    found = report(paused(gaps))
    assert start_up_us(found) == pytest.approx(wanted, abs=100)
    assert ("host-bound" in [row["id"] for row in found["findings"]]) == (not wanted)


@pytest.mark.parametrize("first", [0, 1])
def test_another_device_that_works_starts_nothing(report, first):
    """Both warm up, one works, then the other does: what that waited for is no start-up."""
    s = Script()
    for device in (0, 1, *[first] * 100, *[1 - first] * 100):
        s.launch(lasts=WORKS_US, device=device)
        s.now += WORKS_US + REST_US
    assert {row["place"] for row in report(s)["idle"] if row["cause"] == "start-up"} == \
        {"import and the program's start", "cudaLaunchKernel"}


def test_start_up_of_many_devices(report):
    """One process has 16, which all wait for what it does twice."""
    s = Script()
    for gap in (COMPILES, COMPILES, *[REST_US] * 30):
        for device in range(16):
            s.launch(lasts=WORKS_US, device=device)
        s.now += WORKS_US + gap
    found = report(s)
    assert all(row["idle_start_up_ns"] > 2 * COMPILES * US for row in found["gpu_time"])
    assert all(row["idle_host_ns"] < COMPILES * US for row in found["gpu_time"])


def test_until_when_start_up_is_said_to_last(run_verb, make_records):
    folder = make_records(paused([COMPILES, *HEALTHY]).text())
    assert "until a GPU's first work, and long pauses soon after it; shares leave it out\n" in \
        run_verb("report", folder).stdout


def test_a_pause_of_a_recording_that_began_late(report):
    """Nobody knows what was before."""
    s = paused([COMPILES, *HEALTHY])
    s.add(PAUSE, MAIN, 1_000_200, 0, args=(1,))
    s.add(PAUSE, MAIN, 1_000_300, 0, args=(0,))
    assert start_up_us(report(s)) < 100


def test_all_agree_on_what_start_up_is(report, run_verb, tmp_path):
    """Pieces that make up the whole, parts, workers, ranks, the screen, a database."""
    scripts = [stepped(), stepped((), rank=1)]
    whole = report(*scripts)
    data = tmp_path / "data"
    times = {row["rank"]: row["idle_start_up_ns"] for row in whole["gpu_time"]}
    edges, pieces = ["0s", "1s", "2500ms", "2805ms", "2900ms", "60s"], 0
    for begin, end in zip(edges, edges[1:]):
        told = json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle",
                                   f"--from={begin}", f"--to={end}", data).stdout)
        pieces += sum(row["idle_start_up_ns"] for row in check_sums(told)["gpu_time"])
    imported, = (row["total_ns"] for row in whole["idle"] if row["place"].startswith("import"))
    assert pieces == sum(times.values()) - imported  # which was before the first event
    row, _ = json.loads(run_verb("report", "--format=json", "--table=gpu_time", "--step=0",
                                 data).stdout)["gpu_time"]
    assert row["idle_start_up_ns"] == pytest.approx(COMPILES * US, abs=STEP_US * US)
    parts = [tmp_path / f"{share}.part" for share in range(2)]
    for share, part in enumerate(parts):
        run_verb("report", "--partial", f"--share={share}/2", "-o", part, data)
    text = run_verb("report", "--format=json", data).stdout
    assert json.loads(text)["gpu_time"] == whole["gpu_time"]
    assert run_verb("report", "--format=json", "--combine", *parts).stdout == \
        text.replace(str(data), "DATA")
    assert run_verb("report", "--format=json", "-j2", data).stdout == text
    ranks = json.loads(run_verb("report", "--format=json", "--table=ranks", data).stdout)["ranks"]
    assert {row["rank"]: row["idle_start_up_ns"] for row in ranks} == times
    assert "until the steps ran; shares leave it out" in run_verb("report", data).stdout
    page = run_verb("report", "--format=html", data).stdout
    assert '"start_up_end": "the steps ran"' in page
    run_verb("export", "-o", tmp_path / "x.sqlite", data)
    told = sqlite3.connect(tmp_path / "x.sqlite").execute(
        "SELECT sum(total) FROM GPUPROF_IDLE WHERE cause = 'start-up'")
    assert [*told] == [(sum(times.values()),)]


def test_own_thread_is_none_of_the_program(run_verb, make_records):
    """The one that reads counters; what it calls the device is said where CUPTI did not say it."""
    s = started()
    lines = s.text() + [f"{TYPE_NUMBERS[kind]} 4 {at} 0 0 0 0 0 {args} {text}" for kind, at, args,
                        text in (("thread", 50, "77", "gpuprof-device"),
                                 ("device_source", 10**10, "1,0,7,7,0,0,100000000", "Made GPU"))]
    folder = make_records(lines)
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    assert report["threads"] == 2 and report["overview"]["device"] == "Made GPU"
    screen = run_verb("report", folder).stdout
    assert "] 1 x Made GPU\n" in screen and "; 1 process, 2 threads, 1 call\n" in screen


@pytest.mark.parametrize("shape", ["train", "loss"])
def test_all_adds_up(shape, run_verb, make_gpu):
    folder = make_gpu(shape, 3, 300)
    report = json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle",
                                 folder).stdout)
    assert len(check_sums(report)["gpu_time"]) >= 3


# ---- ranks ---------------------------------------------------------------------------------------

def reduces(rank, begins, lasts=500, kernel=3):
    """A rank whose collectives begin at these times, in us, and all end at those of the last."""
    s = Script(rank)
    for begin, us in zip(begins, lasts):
        s.now = 1_000_000 + begin
        s.launch(us=3, after=5, lasts=us, kernel=kernel)
    return s


def waits(report):
    return {(row["pid"] - 1000, row["place"]): row["total_ns"] // US for row in report["idle"]
            if row["cause"] == "communication"}


def test_who_waits_for_which_rank(report):
    """Rank 1 comes last twice, rank 0 once; what begins last, waits for nobody."""
    made = report(reduces(0, (0, 1000, 2400), (500, 500, 200)),
                  reduces(1, (300, 1350, 2000), (200, 150, 600)))
    assert waits(made) == {(0, "rank 1"): 300 + 350, (1, "rank 0"): 400}
    assert {row["host"] for row in made["idle"]} == {"testhost", None}  # of both ranks: null
    assert [row["communication_ns"] // US for row in made["gpu_time"]] == \
        [200 + 150 + 200, 200 + 150 + 200]


@pytest.mark.parametrize("seed", range(3))
def test_a_row_for_each_rank(seed, run_verb, make_records):
    """Who was late, how often and by how much; for how long others only waited for it. All this is
    known of the begins alone."""
    dice = random.Random(seed)
    ranks, count = 5, 40
    begins = [[1000 * n + dice.choice((0, dice.randrange(300))) for n in range(count)]
              for _ in range(ranks)]
    last = [max(row[n] for row in begins) for n in range(count)]
    folder = make_records(line for rank, row in enumerate(begins) for line in reduces(
        rank, row, [end + 200 - begin for begin, end in zip(row, last)]).text())
    rows = json.loads(run_verb("report", "--format=json", "--table=ranks", folder).stdout)["ranks"]
    assert [row["rank"] for row in rows] == list(map(str, range(ranks)))
    for rank, row in enumerate(rows):
        late = [n for n in range(count) if begins[rank][n] == last[n] and
                sum(other[n] == last[n] for other in begins) == 1]
        tied = sum(begins[rank][n] == last[n] for n in range(count)) - len(late)
        assert len(late) <= row["late"] <= len(late) + tied and row["collectives"] == count
        assert row["late_share"] == pytest.approx(row["late"] / count, abs=1e-4)
        behind = sum(last[n] - min(other[n] for other in begins) for n in late)
        awaited = sum(last[n] - other[n] for n in late for other in begins)
        if not tied:
            assert (row["late_ns"], row["awaited_ns"]) == (behind * US, awaited * US)
        assert row["waits_ns"] == sum(last[n] - begins[rank][n] for n in range(count)) * US
        assert row["communication_ns"] == 200 * US * count
        assert row["compute_ns"] + row["communication_ns"] + row["copies_ns"] + row["idle_ns"] == \
            row["window_ns"]
    assert sum(row["awaited_ns"] for row in rows) == sum(row["waits_ns"] for row in rows)
    text = run_verb("report", "--table=ranks", folder).stdout
    assert len(re.findall(r"rank \d \(", text)) == ranks
    heads = "GPU idle   idle   it waited came last   last      behind others waited  rank"
    assert text.splitlines()[2].endswith(heads)
    assert run_verb("report", "--table=ranks", "--sort=awaited", folder).stdout == \
        run_verb("report", "--table=ranks", "--sort=others waited", folder).stdout


def test_what_did_not_run_together_is_no_collective(report):
    made = report(reduces(0, (0,), (200,)), reduces(1, (300,), (200,)))
    assert not waits(made) and sum(row["communication_ns"] for row in made["gpu_time"]) == 400 * US


@pytest.mark.parametrize("named_us", [3_000_000, 1_000_800], ids=["in the end", "on the way"])
def test_names_that_stand_behind_their_kernels(report, named_us):
    """As CUPTI's buffers come: what the first ones were is known when they are over."""
    ranks = [reduces(0, (0, 1000), (500, 100)), reduces(1, (300, 1000), (200, 100))]
    for s in ranks:
        s.lines = [line for line in s.lines if line[1]]
        for number, name in enumerate(KERNELS, 1):
            s.add("kernel_name", DEVICE, named_us, 0, args=(number,), text=name)
    assert waits(report(*ranks)) == {(0, "rank 1"): 300}


def test_while_others_compute_nobody_waits(report):
    s = reduces(0, (0,), (500,))
    s.work(105, 50, kernel=1)
    assert waits(report(s, reduces(1, (300,), (200,)))) == {(0, "rank 1"): 250}


# ---- anything ----------------------------------------------------------------------------------

def damage(lines, dice):
    """Some are gone, others last for another time or are of another function."""
    for line in lines:
        words = line.split(" ")
        if words[0] == "process" or dice.random() < 0.7:
            yield line
        elif dice.random() < 0.6:
            words[3] = str(dice.choice((0, 1, 77, 5000, 10**9, 2**60)))
            if words[0] == str(CALL):
                words[6] = dice.choice(("cudaStreamBeginCapture", "cudaStreamEndCapture",
                                        "cudaDeviceSynchronize", "cudaMemcpy", "cudaFree", "999"))
            yield " ".join(words)


def parts_of(process):
    """Of each device: its time since the process's start, and what ran, moment by moment."""
    names = {r.args[0]: r.text.decode() for r in process.of_type(TYPE_NUMBERS["kernel_name"])}
    records = [r for r in process.records if r.thread != 0]
    last = max(r.end for r in records if r.type not in step_truth.FACTS)
    start = process.header.start_time * 10_000_000 - 5_000_000_000
    found = {}
    for device in {r.args[0] for r in records if r.type in step_truth.WORK}:
        spans = {"compute": [], "communication": [], "copies": []}
        for r in records:
            if r.type in step_truth.WORK and r.args[0] == device:
                is_nccl = r.type == step_truth.KERNEL and \
                    names.get(r.args[3], "").startswith("nccl")
                part = "copies" if r.type in (step_truth.COPY, step_truth.SET) else \
                    "communication" if is_nccl else "compute"
                spans[part].append((r.begin, r.end))
        busy = {part: step_truth.Busy(spans[part]) for part in spans}
        cuts = sorted({ns for of_part in spans.values() for span in of_part for ns in span})
        sums = dict.fromkeys(spans, 0)
        for begin, end in zip(cuts, cuts[1:]):
            part = next((part for part in spans if busy[part](begin)), None)
            if part:
                sums[part] += end - begin
        found[device] = last - start, sums
    return found


@pytest.mark.parametrize("seed", range(6))
def test_anything_adds_up(seed, run_verb, make_records):
    dice = random.Random(f"idle {seed}")
    streams = [RandomStream(rank, by, 250, seed) for rank, by in enumerate(("graph", "dataloader"))]
    lines = [line for stream in streams for line in stream.lines()]
    folder = make_records(damage(lines, dice) if seed % 2 else lines)
    report = check_sums(json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle",
                                            folder).stdout))
    wanted = {process.header.pid: parts_of(process)
              for process in stream_reader.read_folder(folder)}
    for row in report["gpu_time"]:
        window, sums = wanted[row["pid"]][row["device"]]
        assert row["window_ns"] == window
        assert (row["compute_ns"], row["copies_ns"]) == (sums["compute"], sums["copies"])
        assert row["communication_ns"] + row["idle_communication_ns"] == sums["communication"]
    assert len(report["gpu_time"]) == sum(map(len, wanted.values()))


# ---- on the simulated CUDA -----------------------------------------------------------------------

def test_by_the_devices_own_log(library, tmp_path, run_verb):
    """What the device's log and the program say, and the rules make of it. Both look at the clock,
    and a busy machine may come in between now and then."""
    program = cupti.build(source="idle_work.c")
    run = gpu_run.runner(library, tmp_path)(
        program, status=0, same_output=False, SIMCUDA_KERNEL_NS=6_000_000,
        SIMCUDA_ALLOC_NS=2_500_000)
    loads = [tuple(map(int, line.split()[1:])) for line in run.done.stdout.splitlines()]
    report = check_sums(json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle",
                                            tmp_path / "out").stdout))
    row, = report["gpu_time"]
    wanted = idle_truth.idle(run.log, loads)
    found = {cause: row[f"idle_{cause}_ns"] for cause in CAUSES
             if cause not in ("start_up", "nothing")}
    found["host"] += found.pop("waiting") + found.pop("preempted")
    for cause in ("host", "sync", "loader", "allocation"):
        assert wanted[cause] > 5_000_000, (found, wanted)
    for cause in CAUSES:
        assert abs(found.get(cause, 0) - wanted[cause]) < 0.1 * sum(wanted.values()), \
            (cause, found, wanted)
    assert row["idle_unknown_ns"] <= 0.1 * row["idle_ns"]
    assert {r["place"] for r in report["idle"] if r["cause"] == "loader"} == {"load batch"}


SILENT = "host", "waiting", "preempted"  # whatever a thread does between its calls
SLEEPERS = {"launcher": "main", "shared stream": "main", "two helpers": "main", "both": "main",
            "prefetched": "main", "loader": "helper", "loader's event": "helper", "feeder": "main"}


@pytest.mark.parametrize("who", SLEEPERS)
def test_who_sleeps_is_named(library, tmp_path, run_verb, who):
    """One thread launches, another copies; each is in a range of its name."""
    gpu_run.runner(library, tmp_path)(cupti.build(source="loader_work.c"), who, status=0,
                                      SIMCUDA_KERNEL_NS=200_000, GPUPROF_BACKTRACE_THRESHOLD="10s",
                                      GPUPROF_SILENCE="off")
    report = check_sums(json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle",
                                            tmp_path / "out").stdout))
    found = collections.Counter()
    for row in report["idle"]:
        if row["cause"] in (*SILENT, "sync"):
            found[row["place"].split(" ")[-1]] += row["total_ns"] // US
    total = sum(found.values())  # a busy machine gives the others some
    assert found[SLEEPERS[who]] > 0.6 * total and total > 0.7 * 12 * 18_000
