# SPDX-License-Identifier: Apache-2.0
"""flame and export of what a host did, by stack: CPU time of samples, time off the CPU, both."""

import gzip
import json

import pytest

from made_host import (FORWARD, FRAMES, HEAD, HOST, IN_KERNEL, LOADER, LOCK, MS, NATIVE, READ,
                       SLEEP, TOKENIZE, WAITED, WILD, gil, look, os_call, sample)
from made_stacks import TRAIN, check_speedscope, folded
from test_export_stacks import TYPES, Profile

GIL, NO_STACK = "[waits for the GIL]", ("[no stack]",)
CPU = {FRAMES[TOKENIZE]: 20, FRAMES[FORWARD]: 10, FRAMES[NATIVE]: 20, NO_STACK: 10}
OFF_CPU = {(*FRAMES[TOKENIZE], "read"): 5, (*FRAMES[FORWARD], "pthread_mutex_lock"): 4,
           (*FRAMES[TOKENIZE], GIL): 3,
           (*FRAMES[FORWARD], GIL): 3,  # seen by a look, the look in the read counts no more
           NO_STACK: 10}
WALL = {stack: CPU.get(stack, 0) + OFF_CPU.get(stack, 0) for stack in CPU | OFF_CPU}


def of(run_verb, folder, weight, *options):
    said = run_verb("flame", folder, f"--weight={weight}", *options)
    return {tuple(stack.split(";")): ns / MS for stack, ns in folded(said.stdout).items()}, \
        said.stderr


@pytest.mark.parametrize("weight, expected", [("cpu", CPU), ("off-cpu", OFF_CPU), ("wall", WALL)])
def test_by_stack(run_verb, make_stacks, tmp_path, weight, expected):
    folder = make_stacks(*HOST)
    found, said = of(run_verb, folder, weight)
    assert found == expected
    assert f"[no stack]: {expected[NO_STACK]}.000 ms of the " in said
    run_verb("flame", folder, f"--weight={weight}", "-o", "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    check_speedscope(document)
    assert sum(document["profiles"][0]["weights"]) == sum(expected.values()) * MS
    assert document["profiles"][0]["unit"] == "nanoseconds"
    run_verb("export", folder, f"--weight={weight}", "-o", "x.folded")
    assert (tmp_path / "x.folded").read_text() == \
        run_verb("flame", folder, f"--weight={weight}").stdout


def test_each_moment_counts_once(run_verb, make_stacks):
    """What ran inside of a wait is no time off the CPU, nor is a wait inside of a wait twice."""
    folder = make_stacks(
        *HEAD, f"call cudaFree {1 * MS} 300 15 0 0",
        os_call(SLEEP, 10 * MS, 100 * MS, TOKENIZE),
        os_call(READ, 20 * MS, 30 * MS, FORWARD),  # inside
        # Samples shorten the outer wait.
        sample(30 * MS, NATIVE), sample(60 * MS, NATIVE, flags=IN_KERNEL), gil(WAITED, 70 * MS, MS),
        os_call(LOCK, 105 * MS, 10 * MS, FORWARD),  # half of it inside
        f"on {LOADER}", sample(40 * MS, NATIVE), os_call(READ, 50 * MS, MS, FORWARD))
    off, _ = of(run_verb, folder, "off-cpu")
    assert off == {(*FRAMES[TOKENIZE], "clock_nanosleep"): 100 - 30 - 2 * 10 - 1 - 5,
                   (*FRAMES[FORWARD], "read"): 30 + 1, NO_STACK: 1,
                   (*FRAMES[FORWARD], "pthread_mutex_lock"): 10}
    cpu, _ = of(run_verb, folder, "cpu")
    assert cpu == {FRAMES[NATIVE]: 30}
    wall, _ = of(run_verb, folder, "wall")
    assert sum(wall.values()) == sum(off.values()) + sum(cpu.values()) == \
        (110 - 10 + 5) + 1 + 10  # the main thread's time; the loader's wait, and its sample


def test_looks_count_where_a_thread_waits(run_verb, make_stacks):
    folder = make_stacks(
        *HEAD, f"call cudaFree {1 * MS} 300 15 0 0", "on 2", look(10 * MS, TOKENIZE, 2 * MS),
        look(20 * MS, TOKENIZE, 4 * MS, syscall=203), look(30 * MS, FORWARD, 8 * MS, state="R"),
        look(40 * MS, FORWARD, 16 * MS, state="\0"),
        look(50 * MS, FORWARD, 32 * MS, tid=77, holder=1000))
    found, _ = of(run_verb, folder, "off-cpu", "--threads")
    thread = "python (thread 1000)"
    assert found == {(thread, *FRAMES[TOKENIZE], "[waits]"): 6, (*FRAMES[FORWARD], GIL): 32}


def test_pprof(run_verb, make_stacks, tmp_path):
    run_verb("export", make_stacks(*HOST), "-o", "x.pb.gz")
    found = Profile(gzip.decompress((tmp_path / "x.pb.gz").read_bytes()))
    assert found.types == TYPES + [("cpu_samples", "count"), ("cpu_time", "nanoseconds"),
                                   ("off_cpu_time", "nanoseconds")]
    for name, expected in (("cpu_time", CPU), ("off_cpu_time", OFF_CPU)):
        assert found.sums(name) == {stack: ms * MS for stack, ms in expected.items()}
    assert found.sums("cpu_samples") == {
        FRAMES[TOKENIZE]: 2, FRAMES[FORWARD]: 1, FRAMES[NATIVE]: 2, NO_STACK: 1}
    threads = {labels.get("thread") for frames, labels, values in found.samples
               if values["cpu_time"]}
    assert threads == {"python (thread 1000)", "loader (thread 1003)", None}


def test_says_how_to_record_it(run_verb, make_stacks):
    folder = make_stacks(*TRAIN)
    for weight, option in (("cpu", "--sample "), ("off-cpu", "--os --os-backtrace=0 "),
                           ("wall", "--sample --os --os-backtrace=0 ")):
        found, said = of(run_verb, folder, weight)
        assert not found and "nothing to show" in said and f"gpuprof run {option}" in said


def test_records_that_say_anything(run_verb, make_stacks):
    folder = make_stacks(*WILD)
    for weight in ("cpu", "off-cpu", "wall"):
        assert of(run_verb, folder, weight)[0]
    run_verb("export", folder, "-o", "x.pb.gz")
