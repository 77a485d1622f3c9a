# SPDX-License-Identifier: Apache-2.0
"""gpuprof export --format=sqlite: the queries that people write for nsys' exports, by Python's own
sqlite3, against the report, the trace, and what was put into the recording."""

import collections
import contextlib
import json
import resource
import sqlite3
import struct

import pytest

import csv_tables
from conftest import BUILD, ROOT, built
from made_libraries import Libraries
from made_ops import MAIN, OTHER, TYPES, Recording, labelled_product

WORK = ["CUPTI_ACTIVITY_KIND_" + name for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")]
OURS = {"GPUPROF_" + name for name in ("PROCESSES", "CLOCKS", "LOSSES", "STEPS", "OPERATORS",
                                       "MEMORY", "LIBRARY_CALLS", "OVERHEAD", "GPU_TIME", "IDLE",
                                       "RANK_WAITS", "ARRIVALS", "FUNCTIONS", "CALLS_BY_THREAD",
                                       "OPS", "OPS_UNDER_NONE", "LABELS", "MODULES", "HOOKS",
                                       "LIBRARY", "FAILURES")}
SUMS = ("functions", "calls_by_thread", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum",
        "cuda_gpu_mem_size_sum", "cuda_sync_sum", "cuda_kern_exec_sum", "nvtx_sum",
        "nvtx_gpu_proj_sum", "gpu_time_util", "gpu_memory_peak")
MS = 10**6
NESTED = 2  # RECORD_NESTED
KERNELS = """SELECT s.value, count(*), sum(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
    JOIN StringIds AS s ON k.demangledName = s.id GROUP BY s.value"""
CALLS = """SELECT s.value, count(*), sum(r.end - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
    JOIN StringIds AS s ON r.nameId = s.id GROUP BY s.value"""
COPIES = """SELECT '[CUDA memcpy ' || o.label || ']', count(*), sum(m.end - m.start), sum(m.bytes)
    FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m JOIN ENUM_CUDA_MEMCPY_OPER AS o ON m.copyKind = o.id
    GROUP BY o.label"""
# As nsys' own reports project: by the thread, the time of the call, and the correlation id.
PROJECTED = f"""SELECT text, count(*), sum(last - first) FROM (SELECT n.text AS text,
    min(w.start) AS first, max(w.end) AS last FROM NVTX_EVENTS AS n
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON n.globalTid = r.globalTid AND
        n.eventType IN (59, 60) AND n.start <= r.start AND r.start < n.end
    JOIN ({' UNION ALL '.join('SELECT start, end, correlationId, globalPid FROM ' + table
                              for table in WORK)}) AS w ON w.correlationId = r.correlationId AND
        w.globalPid = (r.globalTid & 0xFFFFFFFFFF000000) GROUP BY n.rowid) GROUP BY text"""


@pytest.fixture(name="export")
def fixture_export(run_collector, tmp_path):
    """export(FOLDER, OPTION...): the database, after SQLite's own check of it."""
    def made(*words, name="out.sqlite"):
        result = run_collector("export", "-o", name, *words)
        assert (result.returncode, result.stderr, result.stdout) == (0, "", "")
        base = sqlite3.connect(tmp_path / name)
        assert list(base.execute("PRAGMA integrity_check")) == [("ok",)]
        opened.append(base)
        return base
    opened = []
    yield made
    for base in opened:
        base.close()


def report(run_collector, *words):
    return csv_tables.tables(run_collector("report", "--format=csv", *words).stdout)


def sums(rows):
    return sorted((row["name"], int(row["instances"]), int(row["total_ns"])) for row in rows)


def test_sums_are_those_of_the_report(make_gpu, run_collector, export):
    folder = make_gpu("train", 2, 6)
    rows, base = report(run_collector, folder), export(folder)
    assert sums(rows["cuda_gpu_kern_sum"]) == sorted(base.execute(KERNELS)) != []
    assert sorted((row["function"], int(row["calls"]), int(row["total_ns"]))
                  for row in rows["functions"]) == sorted(base.execute(CALLS)) != []
    copies = sorted((row["name"], int(row["instances"]), int(row["total_ns"]), int(row["bytes"]))
                    for row in rows["cuda_gpu_mem_time_sum"] if "memcpy" in row["name"])
    assert copies == sorted(base.execute(COPIES)) != []
    ranges = base.execute("SELECT text, count(*), sum(end - start) FROM NVTX_EVENTS WHERE "
                          "eventType IN (59, 60) GROUP BY text")
    assert sums(rows["nvtx_sum"]) == sorted(ranges) != []
    assert sums(rows["nvtx_gpu_proj_sum"]) == sorted(base.execute(PROJECTED)) != []
    assert sums(rows["cuda_sync_sum"]) == sorted(
        (name.replace("sync", "Sync"), *rest) for name, *rest in base.execute(
            "SELECT t.label, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION "
            "AS s JOIN ENUM_CUPTI_SYNC_TYPE AS t ON s.syncType = t.id GROUP BY t.id"))


def test_events_are_those_of_the_trace(make_gpu, run_collector, export):
    """To the nanosecond, on the same threads, at the same moment of the calendar."""
    folder = make_gpu("train", 2, 6)
    trace, base = json.loads(run_collector("merge", folder).stdout), export(folder)
    assert base.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone() == (
        trace["baseTimeNanoseconds"],)
    calls = sorted((e["name"], round(1000 * e["ts"]), round(1000 * e["dur"]), e["pid"], e["tid"],
                    e["args"]["correlation"]) for e in trace["traceEvents"]
                   if e.get("cat") in ("cuda_runtime", "cuda_driver"))
    assert calls == sorted(base.execute(
        """SELECT value, start, end - start, (globalTid >> 24) & 0xffffff, globalTid & 0xffffff,
        correlationId & 0xffffffff FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds
        ON id = nameId"""))
    # The trace moves the begin of a slice that touches the one before by a nanosecond.
    begins = {(row[0], row[1] + 1): row[1] for row in base.execute(
        """SELECT deviceId, start FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start IN
        (SELECT end FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT end FROM
        CUPTI_ACTIVITY_KIND_MEMCPY)""")}
    kernels = sorted((e["name"],
                      begins.get((e["args"]["device"], at := round(1000 * e["ts"])), at),
                      at + round(1000 * e["dur"]), e["args"]["device"],
                      e["args"]["stream"], *e["args"]["grid"],
                      *e["args"]["block"], e["args"]["shared memory"])
                     for e in trace["traceEvents"] if e.get("cat") == "kernel")
    assert kernels == sorted(base.execute(
        """SELECT value, start, end, deviceId, streamId, gridX, gridY, gridZ, blockX,
        blockY, blockZ, staticSharedMemory + dynamicSharedMemory FROM CUPTI_ACTIVITY_KIND_KERNEL
        JOIN StringIds ON id = demangledName"""))
    titles = {e["name"].replace("Memcpy ", "") for e in trace["traceEvents"]
              if e.get("cat") == "gpu_memcpy"}
    assert titles == {title for title, in base.execute(
        """SELECT substr(replace(o.name, 'TO', 'to'), 18) || ' (' || f.label || ' -> ' || t.label
        || ')' FROM CUPTI_ACTIVITY_KIND_MEMCPY JOIN ENUM_CUDA_MEMCPY_OPER AS o ON o.id = copyKind
        JOIN ENUM_CUDA_MEM_KIND AS f ON f.id = srcKind
        JOIN ENUM_CUDA_MEM_KIND AS t ON t.id = dstKind""")} != set()
    names = base.execute("SELECT DISTINCT s.value, d.value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN "
                         "StringIds AS s ON s.id = shortName JOIN StringIds AS d ON "
                         "d.id = demangledName")
    assert ("kernel_number", "void at::native::kernel_number<1, float>(float*, float, int)") in \
        list(names)


def test_work_finds_its_call_by_the_id_alone(make_gpu, export):
    """Ranks have the same ids; each piece of work has one call, of its own process and before."""
    base = export(make_gpu("train", 3, 5))
    for table in WORK:
        total, = base.execute(f"SELECT count(*) FROM {table}").fetchone()
        joined = list(base.execute(
            f"""SELECT w.globalPid = r.globalTid & 0xFFFFFFFFFF000000, w.start >= r.start
            FROM {table} AS w JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId)"""))
        assert len(joined) == total > 0 and set(joined) == {(1, 1)}, table
    ids = [row[0] for row in base.execute("SELECT globalPid FROM PROCESSES")]
    assert len(set(ids)) == 3 and {i >> 48 for i in ids} == {1}
    assert sorted(base.execute("SELECT rank, globalPid FROM GPUPROF_PROCESSES")) == list(
        enumerate(ids))
    threads = {row[0] for row in base.execute("SELECT globalTid FROM ThreadNames")}
    assert {row[0] for row in base.execute("SELECT globalTid FROM NVTX_EVENTS")} <= threads


@pytest.mark.parametrize("cut, where", [
    (["--from=250.5us", "--to=450.5us"], "start >= 250500 AND start < 450500"),
    (["--rank=1"], "globalPid = (SELECT globalPid FROM w.GPUPROF_PROCESSES WHERE rank = 1)"),
    (["--min-duration=4us"], "end - start >= 4000"),
    (["--step=2:4"], """EXISTS (SELECT 1 FROM w.CUPTI_ACTIVITY_KIND_RUNTIME AS r, w.GPUPROF_STEPS
        AS s WHERE r.correlationId = x.correlationId AND s.globalPid = x.globalPid AND
        s.number IN (2, 3) AND r.start >= s.start AND r.start < s.end)""")],
    ids=["time", "rank", "duration", "steps"])
def test_a_piece_is_what_sql_finds_in_the_whole(make_gpu, export, tmp_path, cut, where):
    folder = make_gpu("train", 2, 6)
    whole, base = export(folder, name="whole.sqlite"), export(*cut, folder)
    whole.close()
    base.execute("ATTACH ? AS w", (str(tmp_path / "whole.sqlite"),))
    for table in WORK:
        # Numbers of names and of processes, in correlation ids, differ between the two.
        columns = ", ".join(column for _, column, *_ in base.execute(f"PRAGMA table_info({table})")
                            if not column.endswith("Name") and column != "correlationId")
        mine, all_of_it = (sorted(base.execute(sql), key=repr) for sql in (
            f"SELECT {columns} FROM main.{table}",
            f"SELECT {columns} FROM w.{table} AS x WHERE {where}"))
        assert mine == all_of_it, table
        assert mine or table not in WORK[:1]
    if "--from=250.5us" in cut:
        ranges = "SELECT start, end, text FROM {}NVTX_EVENTS WHERE eventType IN (59, 60) {}"
        assert sorted(base.execute(ranges.format("main.", ""))) == sorted(base.execute(
            ranges.format("w.", "AND start < 450500 AND end > 250500"))) != []
    steps = [n for n, in base.execute("SELECT DISTINCT number FROM GPUPROF_STEPS ORDER BY 1")]
    assert steps == ([2, 3] if "--step=2:4" in cut else steps)


def made(tmp_path):
    r = labelled_product(b"bad \xff'); DROP TABLE StringIds;--")
    return r.write(built(BUILD / "make_raw"), tmp_path / "data")


def test_operators_and_names(tmp_path, export):
    """Names are data, whatever they are; sizes of inputs as PyTorch's own traces have them."""
    base = export(made(tmp_path))
    rows = list(base.execute(
        """SELECT n.value, kind, sequence, i.value FROM GPUPROF_OPERATORS AS o JOIN StringIds AS n
        ON n.id = nameId LEFT JOIN StringIds AS i ON i.id = inputDimsId ORDER BY o.start"""))
    assert [row[:2] for row in rows] == [("labelled", "label"), ("aten::mm", "operator"),
                                         ("MmBackward0", "backward")]
    assert json.loads(rows[1][3]) == [[3, 4], [4, 5]]
    kernels = {d: (s, m) for d, s, m in base.execute(
        """SELECT d.value, s.value, m.value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds AS d
        ON d.id = demangledName JOIN StringIds AS s ON s.id = shortName JOIN StringIds AS m
        ON m.id = mangledName""")}
    assert kernels["void gemm<float>(float*)"] == ("gemm", "_Z4gemmIfEvPT_")
    assert any("DROP TABLE" in name for name in kernels)
    inside = base.execute(
        """SELECT k.end - k.start FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId) JOIN GPUPROF_OPERATORS AS o
        ON o.globalTid = r.globalTid AND r.start >= o.start AND r.end <= o.end
        JOIN StringIds AS n ON n.id = o.nameId WHERE n.value = 'aten::mm'""")
    assert list(inside) == [(500,)]


def test_ranges_say_what_nvtx_has(tmp_path, export):
    """Payloads by their types, names of domains and categories once, marks, what was left open."""
    r = Recording()
    r.add(MAIN, TYPES["label"], [1, 3, 0], "lib")
    r.add(MAIN, TYPES["label"], [3, 5, 3], "loads")
    for kind, bits in enumerate((7, 2**64 - 7, struct.unpack("<Q", struct.pack("<d", 0.1))[0],
                                 8, 2**32 - 8, struct.unpack("<I", struct.pack("<f", 0.5))[0]), 1):
        r.add(MAIN, TYPES["push"], [3, 5, 0xff00ff00, kind, bits, 0], f"payload {kind}")
        r.add(MAIN, TYPES["pop"], [3])
    r.add(MAIN, TYPES["range_start"], [77, 0, 0, 0, 0, 0, 0], "free")
    r.add(OTHER, TYPES["range_end"], [77, 0])
    r.add(OTHER, TYPES["mark"], [0] * 6, "here")
    r.add(MAIN, TYPES["push"], [0] * 6, "left")
    r.call("cudaFree", [1])
    base = export(r.write(built(BUILD / "make_raw"), tmp_path / "data"))
    rows = [(e, t, d, c, [v for v in values if v is not None]) for e, t, d, c, *values in
            base.execute("""SELECT eventType, text, domainId, category, uint64Value, int64Value,
            doubleValue, uint32Value, int32Value, floatValue FROM NVTX_EVENTS ORDER BY start""")]
    assert sorted(row[:4] for row in rows if row[0] in (33, 75)) == [
        (33, "loads", 3, 5), (75, "lib", 3, None)]
    assert [row for row in rows if row[0] == 59 and row[2]] == [
        (59, f"payload {kind}", 3, 5, [value])
        for kind, value in enumerate((7, -7, 0.1, 8, -8, 0.5), 1)]
    free, = base.execute("SELECT rangeId, globalTid & 0xffffff, endGlobalTid & 0xffffff, text, "
                         "end > start FROM NVTX_EVENTS WHERE eventType = 60")
    assert free == (77, 1001, 1003, "free", 1)
    assert list(base.execute("SELECT text, eventType FROM NVTX_EVENTS WHERE end IS NULL AND "
                             "eventType < 75 AND eventType <> 33 ORDER BY start")) == [
        ("here", 34), ("left", 59)]


def test_libraries_and_tensors(tmp_path, export):
    """A call of a library by what it was called with; blocks of PyTorch's, and one not had."""
    r = Libraries()
    with r.library("cublasGemmEx", m=4, n=5, k=6):
        r.launch(300)
    r.begin("cublasGemmEx", m=1, n=1, k=1)  # left open
    r.add(MAIN, TYPES["tensor"], [1, 0x1000, 512, 600, 2048, 3, 1, 0])
    r.add(MAIN, TYPES["tensor_oom"], [1 << 20, 600, 2048, 3, 1])
    base = export(r.write(built(BUILD / "make_raw"), tmp_path / "data"))
    assert list(base.execute(
        """SELECT n.value, s.value, returnValue, isOpen, end > start FROM GPUPROF_LIBRARY_CALLS
        JOIN StringIds AS n ON n.id = nameId JOIN StringIds AS s ON s.id = shapeId
        ORDER BY start""")) == [("cublasGemmEx", "cublasGemmEx 4x5x6", 0, 0, 1),
                                ("cublasGemmEx", "cublasGemmEx 1x1x1", None, 1, 1)]
    assert list(base.execute("SELECT operation, address, bytes, allocated, reserved, deviceId, "
                             "deviceKind FROM GPUPROF_MEMORY ORDER BY start")) == [
        ("allocate", 0x1000, 512, 600, 2048, 3, 1),
        ("out of memory", None, 1 << 20, 600, 2048, 3, 1)]
    assert list(base.execute("SELECT name, calls, gpu_ns FROM GPUPROF_LIBRARY")) == [
        ("cublasGemmEx 4x5x6", 1, 300), ("cublasGemmEx 1x1x1", 1, 0)]
    assert list(base.execute("SELECT launched_by FROM GPUPROF_CUDA_GPU_KERN_SUM")) == [
        ("cublasGemmEx 4x5x6",)]


def test_work_has_the_id_of_one_call(tmp_path, export):
    """That of a call which has several, and of the outer one where an inner call has it, too."""
    r = Recording()
    outer = r.call("cudaLaunchKernel", [0])
    for call in (outer, 950):  # --nested; the second has an id of its own
        r.add(MAIN, "cuLaunchKernel", [0], flags=NESTED, begin=r.now + 100, ns=200, call=call)
        r.now -= 1000
    r.kernel("outer", 100, outer)
    r.kernel("inner", 100, 950)
    call = r.call("cudaGraphLaunch", [1, 2])
    r.add(MAIN, TYPES["link"], [900], call=call)
    r.kernel("first", 100, call)
    r.kernel("further", 100, 900)
    r.kernel("of nobody", 100, 901)
    base = export(r.write(built(BUILD / "make_raw"), tmp_path / "data"))
    assert sorted(base.execute(
        """SELECT k.value, c.value FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds AS k
        ON k.id = demangledName JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId)
        JOIN StringIds AS c ON c.id = r.nameId""")) == [
            ("first", "cudaGraphLaunch"), ("further", "cudaGraphLaunch"),
            ("inner", "cuLaunchKernel"), ("outer", "cudaLaunchKernel")]


def test_files_made_for_it(run_collector, tmp_path):
    """A whole database of each file of the corpus that can be read, of the largest numbers, too."""
    for path in sorted((ROOT / "test/corpus").glob("*.gpuprof")):
        result = run_collector("export", "--keep-live", path, "-o", "x.sqlite")
        assert result.returncode in (0, 2, 3), (path, result.stderr)
        if result.returncode == 2:
            continue
        with contextlib.closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
            assert list(base.execute("PRAGMA integrity_check")) == [("ok",)], path
            numbers = [row[0] for row in base.execute("SELECT id FROM TARGET_INFO_GPU")]
            assert all(0 <= number < 4096 for number in numbers), (path, numbers)
            assert len(set(numbers)) == len(numbers)
            names = [row[0] for row in base.execute("SELECT value FROM StringIds")]
            assert len(set(names)) == len(names), path


def test_losses_are_in_it(make_gpu, run_collector, tmp_path):
    folder = make_gpu("train", 1, 200)
    path, = folder.glob("*.gpuprof")
    data = bytearray(path.read_bytes())
    data[len(data) // 3:len(data) // 3 + 64] = bytes(64)  # in what a block holds
    path.write_bytes(data)
    result = run_collector("export", folder, "-o", "x.sqlite")
    assert result.returncode == 3 and "damaged" in result.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
        shown = {(name, value) for name, value in base.execute(
            "SELECT name, value FROM GPUPROF_LOSSES WHERE isMissing")}
    trace = json.loads(run_collector("merge", folder).stdout)
    losses = collections.Counter()
    for process in trace["otherData"]["processes"]:
        losses.update(process["losses"])
    assert shown and shown <= set(losses.items())


@pytest.mark.parametrize("words, error", [
    (["--format=sqlite"], "needs a regular, uncompressed file; name one, such as -o profile.sqlit"),
    (["--format=sqlite", "-o", "-"], "needs a regular, uncompressed file"),
    (["-o", "x.sqlite.gz"], "uncompressed file"), (["-o", "x.db"], "unknown file type"),
    ([], "name a file, such as -o profile.sqlite, or a format, such as --format=csv; the formats"),
    (["-o", "-"], "a format, such as --format=csv; the formats are: sqlite"),
    (["--format=nsys", "-o", "x"], "unknown format 'nsys'"),
    (["--format=sqlite", "-o", "/dev/null"], "needs a regular, uncompressed file")],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value))
def test_what_cannot_be_meant(make_gpu, run_collector, tmp_path, words, error):
    result = run_collector("export", make_gpu("train", 1, 2), *words)
    assert result.returncode == 2 and error in result.stderr and result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_file_that_fails_is_not_there(make_gpu, run_collector, tmp_path):
    """No room, no folder, a recording; what was there stays, and a link stays one."""
    folder = make_gpu("train", 1, 50)
    old = tmp_path / "old.sqlite"
    old.write_text("old")
    small = run_collector("export", folder, "-o", old, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (60000, 60000)), restore_signals=False)  # the signal is ignored
    assert small.returncode == 1 and "old.sqlite: File too large" in small.stderr
    assert old.read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == [
        "data", "old.sqlite"]
    nowhere = run_collector("export", folder, "-o", "none/x.sqlite")
    assert nowhere.returncode == 1 and "No such file or directory" in nowhere.stderr
    path, = folder.glob("*.gpuprof")
    ours = run_collector("export", "--format=sqlite", folder, "-o", path)
    assert ours.returncode == 2 and "is a recording" in ours.stderr
    (tmp_path / "link.sqlite").symlink_to(old)
    assert run_collector("export", folder, "-o", "link.sqlite").returncode == 0
    assert (tmp_path / "link.sqlite").is_symlink() and old.read_bytes()[:6] == b"SQLite"


WHERE_TIME_WENT = """SELECT p.pid, t.deviceId, t.time, t.compute, t.communication, t.copies, t.idle,
    t.notRecorded, t.otherWork FROM GPUPROF_GPU_TIME AS t
    JOIN GPUPROF_PROCESSES AS p USING (globalPid)"""
WHY_IDLE = """SELECT cause, place, sum(gaps), sum(total), max(longest) FROM GPUPROF_IDLE
    GROUP BY cause, place"""


PIECES = [["--rank=0"], ["--step=3:5"], ["--step=4", "--rank=1"], []]
PIECES_OF = {"late": [*PIECES, ["--from=0.03", "--to=0.07"]],
             "train": [*PIECES, ["--from=0.0003", "--to=0.0007"], ["--range=forward"]]}


@pytest.mark.parametrize("scene, piece", [
    (scene, piece) for scene, pieces in PIECES_OF.items() for piece in pieces], ids=str)
def test_idle_time_is_that_of_the_report(make_gpu, run_collector, export, scene, piece):
    """By device, by cause and place, and by rank: also of pieces."""
    folder = make_gpu(scene, 3, 10)
    told = run_collector("report", "--format=json", "--table=gpu_time,idle,ranks,arrivals", *piece,
                         folder)
    told = json.loads(told.stdout)
    base = export(*piece, folder)
    keys = [f"{part}_ns" for part in ("window", "compute", "communication", "copies", "idle",
                                      "stopped", "other")]
    assert sorted(base.execute(WHERE_TIME_WENT)) == sorted(
        (row["pid"], row["device"], *(row[key] for key in keys)) for row in told["gpu_time"]) != []
    assert sorted(base.execute(WHY_IDLE)) == sorted(
        (row["cause"], row["place"], row["count"], row["total_ns"], row["longest_ns"])
        for row in told["idle"]) != []
    waits = dict(base.execute("SELECT pid, sum(w.end - w.start) FROM GPUPROF_RANK_WAITS AS w JOIN "
                              "GPUPROF_PROCESSES AS p USING (globalPid) GROUP BY pid"))
    assert waits == {row["pid"]: row["waits_ns"] for row in told["ranks"] if row["waits_ns"]}
    assert list(base.execute(
        "SELECT collective, ranks, count, apart, apartMax, pid, coalesce(lastCount, 0), "
        "coalesce(behind, 0), cause, place FROM GPUPROF_ARRIVALS LEFT JOIN GPUPROF_PROCESSES ON "
        "globalPid = lastPid")) == [
            tuple(row.get(key) for key in ("collective", "ranks", "count", "skew_total_ns",
                                           "skew_max_ns", "pid", "last", "behind_ns", "cause",
                                           "where"))
            for row in told["arrivals"]]


def test_the_program_s_start_is_before_the_first_event(make_gpu, export):
    """What is idle until the first launch ends where that begins: the times are of one clock."""
    base = export(make_gpu("late", 3, 10))
    rows = list(base.execute("""SELECT s.longestStart, s.longestStart + s.longest, l.longestStart
        FROM GPUPROF_IDLE AS s JOIN GPUPROF_IDLE AS l USING (globalPid, cause)
        WHERE cause = 'start-up' AND s.place LIKE 'import%' AND l.place = 'cudaLaunchKernel'"""))
    assert len(rows) == 3 and all(start < 0 and end == launch for start, end, launch in rows)


def test_who_waited_for_whom(make_gpu, export):
    """Rank 1 comes 20 ms late to every third reduction of ten."""
    base = export(make_gpu("late", 3, 10))
    rows = list(base.execute(
        """SELECT w.rank, l.rank, count(*), min(end_ - start_), max(end_ - start_) FROM
        (SELECT globalPid, waitedForPid, start AS start_, end AS end_ FROM GPUPROF_RANK_WAITS) AS t
        JOIN GPUPROF_PROCESSES AS w USING (globalPid)
        JOIN GPUPROF_PROCESSES AS l ON l.globalPid = waitedForPid GROUP BY w.rank, l.rank"""))
    assert rows == [(0, 1, 3, 20 * MS, 20 * MS), (2, 1, 3, 20 * MS, 20 * MS)]
    assert list(base.execute("SELECT DISTINCT place FROM GPUPROF_IDLE WHERE waitedForPid")) == [
        ("rank 1",)]


def test_tables_of_sums_are_those_of_the_report(make_gpu, run_collector, export):
    """With the columns of the JSON and of csv, of the whole and of a piece."""
    folder = make_gpu("train", 2, 6)
    for i, piece in enumerate(([], ["--step=2:4"])):
        told = json.loads(run_collector("report", "--format=json", "--by=thread", *piece,
                                        f"--table={','.join(SUMS)}", folder).stdout)
        base = export(*piece, folder, name=f"{i}.sqlite")
        for name in SUMS:
            found = base.execute(f"SELECT * FROM GPUPROF_{name.upper()}")
            names = [column[0] for column in found.description]
            heading = run_collector("report", "--format=csv", "--by=thread", *piece,
                                    f"--table={name}", folder).stdout.partition("\n")[0]
            assert heading.split(",") == names
            digits = {"share": 4, "bandwidth_gb_s": 3}
            assert [{k: round(v, digits[k]) if k in digits else v
                     for k, v in zip(names, row) if v is not None} for row in found] == [
                {k: v for k, v in row.items() if v is not None} for row in told[name]] != []


def test_failures_are_those_of_the_report(run_collector, export):
    path = ROOT / "test" / "corpus" / "columns-good.gpuprof"
    told = json.loads(run_collector("report", "--format=json", "--table=failures", path).stdout)
    found = export(path).execute("SELECT * FROM GPUPROF_FAILURES")
    names = [column[0] for column in found.description]
    assert [dict(zip(names, row)) for row in found] == told["failures"] != []


@pytest.mark.parametrize("kind,filled", (
    ("operators", {"ops", "ops_under_none", "labels"}),
    ("libraries", {"library"}),
    ("failures", {"library", "failures"})))
def test_operators_and_libraries_have_their_tables(kind, filled, make_ops, run_collector,
                                                   tmp_path):
    """With the columns and the rows of the report's JSON; without rows they are there, too."""
    r = Libraries()
    if kind == "failures":  # without a call of CUDA, moments begin with the first event
        with r.library("cublasGemmEx", result=13, m=4, n=5, k=6):
            pass
    else:
        with r.library("cublasGemmEx", m=4, n=5, k=6):
            r.launch(300)
    folder = make_ops(2, 900, 1) if kind == "operators" else r.write(
        built(BUILD / "make_raw"), tmp_path / "data")
    told = json.loads(run_collector("report", "--format=json", folder).stdout)
    assert run_collector("export", folder, "-o", "out.sqlite").returncode == 0
    base = sqlite3.connect(tmp_path / "out.sqlite")
    for name in ("ops", "ops_under_none", "labels", "modules", "hooks", "library", "failures"):
        found = base.execute(f"SELECT * FROM GPUPROF_{name.upper()}")
        names = [column[0] for column in found.description]
        rows = [{k: pytest.approx(v, abs=1e-3) if isinstance(v, float) else v
                 for k, v in zip(names, row) if v is not None} for row in found]
        assert rows == [{k: v for k, v in row.items() if v is not None}
                        for row in told.get(name, [])]
        assert rows or name not in filled, name
    base.close()


def test_tables_are_there_without_rows(make_stacks, run_collector, tmp_path):
    """Of a program without a GPU, too: queries find their tables. The same recording is the same
    file."""
    folder = make_stacks("process 0", "call cudaMalloc 1000 50 0 0 0")
    for name in ("a.sqlite", "b.sqlite"):
        assert run_collector("export", folder, "-o", name).returncode == 0
    assert (tmp_path / "a.sqlite").read_bytes() == (tmp_path / "b.sqlite").read_bytes()
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as base:
        names = {name for name, in base.execute("SELECT name FROM sqlite_master")}
        assert names >= OURS | set(WORK) | {"NVTX_EVENTS", "TARGET_INFO_GPU", "META_DATA_EXPORT"}
        assert list(base.execute(CALLS)) == [("cudaMalloc", 1, 50)]
