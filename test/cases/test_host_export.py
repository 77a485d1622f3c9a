# SPDX-License-Identifier: Apache-2.0
"""export of what a host did: to SQLite, by the queries that people write for nsys' exports, and as
rows."""

import collections
import csv
import json
import sqlite3
import statistics

import pytest

from made_host import (FORWARD, FRAMES, HOST, MAIN, MS, NATIVE, READ, SLEEP, TOKENIZE, WILD,
                       os_call, sample)
from made_stacks import TRAIN

BEGIN = 4 * MS  # of the first event
LATE = {"OSRT_API", "OSRT_CALLCHAINS", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS",
        "ENUM_SAMPLING_THREAD_STATE", "GPUPROF_LOOKS", "GPUPROF_GIL_EVENTS", "GPUPROF_GC_EVENTS"}
# As nsys stats makes osrt_sum, and people the sums of leaves and of threads.
OSRT_SUM = """WITH summary AS (SELECT nameId, sum(end - start) AS total, count(*) AS num,
        avg(end - start) AS mean, min(end - start) AS least, max(end - start) AS most
    FROM OSRT_API GROUP BY nameId), totals AS (SELECT sum(total) AS total FROM summary)
    SELECT round(summary.total * 100.0 / totals.total, 1), summary.total, num, mean, least, most,
        ids.value FROM summary, totals LEFT JOIN StringIds AS ids ON ids.id = summary.nameId
    ORDER BY 2 DESC"""
CHAIN = """SELECT symbol.value FROM {} AS c JOIN StringIds AS symbol ON c.symbol = symbol.id
    WHERE c.id = ? ORDER BY c.stackDepth DESC"""
LEAVES = """SELECT s.value, m.value, count(*), sum(e.cpuCycles) FROM SAMPLING_CALLCHAINS AS c
    JOIN COMPOSITE_EVENTS AS e USING (id) JOIN StringIds AS s ON c.symbol = s.id
    JOIN StringIds AS m ON c.module = m.id WHERE c.stackDepth = 0 GROUP BY c.symbol, c.module"""
THREADS = """SELECT globalTid / 0x1000000 % 0x1000000, globalTid % 0x1000000, sum(cpuCycles),
        (SELECT value FROM StringIds WHERE id = (SELECT nameId FROM ThreadNames
            WHERE ThreadNames.globalTid = COMPOSITE_EVENTS.globalTid))
    FROM COMPOSITE_EVENTS GROUP BY globalTid ORDER BY 3 DESC"""


@pytest.fixture(name="export")
def fixture_export(run_verb, make_stacks, tmp_path):
    def made(*lines, options=()):
        run_verb("export", make_stacks(*lines), *options, "-o", "out.sqlite")
        base = sqlite3.connect(tmp_path / "out.sqlite")
        opened.append(base)
        assert list(base.execute("PRAGMA integrity_check")) == [("ok",)]
        return base
    opened = []
    yield made
    for base in opened:
        base.close()


def tables(base):
    return {name for name, in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def chain(base, number, table="OSRT_CALLCHAINS"):
    return tuple(name for name, in base.execute(CHAIN.format(table), (number,)))


def test_calls_that_waited(export):
    base = export(*HOST, os_call(READ, 140 * MS, 3 * MS, TOKENIZE), os_call(READ, 150 * MS, 1 * MS))
    rows = list(base.execute(OSRT_SUM))
    assert [(name, total, count, mean, least, most) for _, total, count, mean, least, most, name
            in rows] == [("clock_nanosleep", 10 * MS, 1, 10 * MS, 10 * MS, 10 * MS),
                         ("read", 9 * MS, 3, 3 * MS, 1 * MS, 5 * MS),
                         ("pthread_mutex_lock", 4 * MS, 1, 4 * MS, 4 * MS, 4 * MS)]
    assert rows[0][0] == round(100 * 10 / 23, 1) and statistics.mean((5, 3, 1)) == 3
    first, *_ = base.execute("""SELECT start, globalTid % 0x1000000, eventClass, returnValue,
        gpuprofWaitsFor, gpuprofFd, value, gpuprofBytes, gpuprofErrno, callchainId FROM OSRT_API
        JOIN StringIds ON id = gpuprofFileId ORDER BY start""")
    assert first[:-1] == (60 * MS - BEGIN, 1000, 27, 4096, "file", 5, '/data/tr"ain.bin', 4096,
                          None)
    assert chain(base, first[-1]) == FRAMES[TOKENIZE]
    chains = dict(base.execute("SELECT callchainId, count(*) FROM OSRT_API GROUP BY 1"))
    assert chains == {0: 2, first[-1]: 2, 3: 1}  # one for equal stacks; none: 0
    assert ("TRACE_PROCESS_EVENT_OS_RUNTIME",) in base.execute(
        "SELECT name FROM ENUM_NSYS_EVENT_CLASS WHERE id = 27")
    assert list(base.execute("SELECT returnValue, gpuprofErrno, gpuprofFd FROM OSRT_API "
                             "WHERE gpuprofErrno")) == [(-1, 4, None)]


def test_the_same_as_the_report(export, run_verb, tmp_path):
    """By nsys' name of it."""
    base = export(*HOST, os_call(READ, 140 * MS, 3 * MS, TOKENIZE))
    rows = json.loads(run_verb("stats", "--format=json", "-r", "osrt_sum",
                               tmp_path / "data").stdout)["os"]
    sums = collections.Counter()
    for row in rows:
        sums[row["function"]] += row["total_ns"]
    assert sums == {name: total for _, total, *_, name in base.execute(OSRT_SUM)}


def test_samples(export):
    base = export(*HOST)
    assert sorted(base.execute(LEAVES)) == [
        ("forward (model.py:7)", "/home/me/model.py", 1, 10 * MS),
        ("libtrain.so+0x100", "/nowhere/libtrain.so", 1, 20 * MS),
        ("tokenize (data.py:81)", "/home/me/data.py", 2, 20 * MS)]
    assert list(base.execute(THREADS)) == [(1000, 1000, 50 * MS, "python"),
                                           (1000, 1003, 10 * MS, "loader")]
    assert collections.Counter(
        chain(base, number, "SAMPLING_CALLCHAINS") for number, in
        base.execute("SELECT id FROM COMPOSITE_EVENTS")) == {
            FRAMES[TOKENIZE]: 2, FRAMES[NATIVE]: 1, (): 1, FRAMES[FORWARD]: 1}
    assert list(base.execute("""SELECT e.start, label, gpuprofPeriods, gpuprofInKernel
        FROM COMPOSITE_EVENTS AS e JOIN ENUM_SAMPLING_THREAD_STATE AS t ON t.id = threadState
        WHERE gpuprofPeriods > 1 OR gpuprofInKernel""")) == [
            (40 * MS - BEGIN, "Running", 2, 0), (97 * MS - BEGIN, "Running", 1, 1)]


def test_the_rest(export):
    base = export(*HOST)
    assert list(base.execute("""SELECT start, globalTid % 0x1000000, time, state, systemCall,
        gilHolderTid % 0x1000000 FROM GPUPROF_LOOKS""")) == [
            (62 * MS - BEGIN, 1000, 5 * MS, "S", 0, None),
            (78 * MS - BEGIN, 1000, 3 * MS, "S", None, 1003),
            (79 * MS - BEGIN, 1000, 1 * MS, "R", None, None)]
    [(own, holders)] = base.execute(
        "SELECT callchainId, holderChainId FROM GPUPROF_LOOKS WHERE holderChainId")
    assert (chain(base, own), chain(base, holders)) == (FRAMES[FORWARD], FRAMES[TOKENIZE])
    assert list(base.execute("""SELECT isHeld, sum(end - start), max(switches),
        max(otherTid) % 0x1000000 FROM GPUPROF_GIL_EVENTS GROUP BY isHeld""")) == [
            (0, 3 * MS, 2, 1003), (1, 95 * MS - 2, 0, None)]
    assert [(2, 20 * MS, 1234)] == list(base.execute(
        "SELECT generation, end - start, collected FROM GPUPROF_GC_EVENTS"))


def test_a_table_comes_with_its_first_row(export):
    """nsys stats takes a table that is there for one with rows."""
    assert not tables(export(*TRAIN)) & LATE


@pytest.mark.parametrize("line, its", [
    (sample(140 * MS, NATIVE), {"COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS",
                                "ENUM_SAMPLING_THREAD_STATE"}),
    (os_call(SLEEP, 140 * MS, MS), {"OSRT_API"})])
def test_tables_of_one_kind(export, line, its):
    base = export(*(line for line in HOST if not line.startswith("host")), f"on {MAIN}", line)
    assert tables(base) & LATE == its


def test_pieces(export):
    base = export(*HOST, options=("--kind=sample,os", "--from=0.05"))
    assert [len(list(base.execute(f"SELECT 1 FROM {table}")))
            for table in ("OSRT_API", "COMPOSITE_EVENTS", "GPUPROF_LOOKS")] == [3, 1, 3]
    assert "GPUPROF_GIL_EVENTS" not in tables(base)


def test_records_that_say_anything(export):
    base = export(*WILD)
    assert {name for name, in base.execute(
        "SELECT value FROM OSRT_API JOIN StringIds ON id = nameId")} >= {"os_function_65535"}


def test_rows(run_verb, make_stacks):
    rows = list(csv.DictReader(run_verb("export", make_stacks(*HOST),
                                        "--format=csv").stdout.splitlines()))
    kinds = collections.defaultdict(list)
    for row in rows:
        kinds[row["kind"]].append((row["name"], int(row["start_ns"]) + BEGIN, row["tid"],
                                   json.loads(row["args"] or "{}")))
    assert [(name, start, tid) for name, start, tid, _ in kinds["os"]] == [
        ("read", 60 * MS, "1000"), ("pthread_mutex_lock", 71 * MS, "1000"),
        ("clock_nanosleep", 80 * MS, "1000")]
    assert kinds["os"][0][3] == {"stack": TOKENIZE, "result": 4096, "file": '/data/tr"ain.bin',
                                 "fd": 5, "object": "0x0", "error": 0}
    assert collections.Counter(row[0] for row in kinds["sample"]) == {
        "CPU sample": 5, "look at a thread": 3}
    assert {row[2] for row in kinds["sample"]} == {"1000", "1003"}
    assert [row[0] for row in kinds["gil"]] == ["GIL held", "wait for the GIL", "GIL held"]
    assert [(row[0], row[3]["generation"]) for row in kinds["gc"]] == [("garbage collection", 2)]
