# SPDX-License-Identifier: Apache-2.0
"""Pieces of a recording, drawn by chance, and what is in each: found in the database that `gpuprof
export` makes of the whole, by the rules of formats/answers.md, "Selections"."""

import collections
import math
import re
import sqlite3

CALLS = """SELECT p.pid, c.start, c.end, s.value, c.globalTid & 0xffffff, c.correlationId
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS c JOIN StringIds AS s ON c.nameId = s.id
    JOIN GPUPROF_PROCESSES AS p ON p.globalPid >> 24 = c.globalTid >> 24"""
WORK = {
    "kernel": ("CUPTI_ACTIVITY_KIND_KERNEL", "(SELECT value FROM StringIds WHERE id = "
               "w.demangledName)", "0"),
    "gpu_memcpy": ("CUPTI_ACTIVITY_KIND_MEMCPY", "'Memcpy ' || CASE w.copyKind WHEN 1 THEN 'HtoD' "
                   "WHEN 2 THEN 'DtoH' WHEN 8 THEN 'DtoD' ELSE 'PtoP' END", "w.bytes"),
    "gpu_memset": ("CUPTI_ACTIVITY_KIND_MEMSET", "'Memset'", "w.bytes"),
    "gpu_graph": ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "'CUDA graph'", "0")}
FUNCTIONS = {"launch": "Launch", "copy": "Memcpy|Memset", "sync": "Synchronize",
             "alloc": "Malloc|cudaFree"}
NAMES = ("^cuda", "Launch", "^Memcpy", "kernel", "^nccl|Memset", "e")
KINDS = ("call", "work", "launch,kernel", "kernel", "gpu_memcpy,gpu_memset", "copy,sync", "alloc")

Call = collections.namedtuple("Call", "pid begin end name tid id")
Work = collections.namedtuple("Work", "pid device begin end kind name bytes at tid")
Change = collections.namedtuple("Change", "pid device at bytes")


def joined(spans):
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def length(spans, window=(-math.inf, math.inf)):
    return sum(max(0, min(end, window[1]) - max(begin, window[0])) for begin, end in joined(spans))


class Whole:
    """All that there is, with times since the first event."""

    def __init__(self, path):
        base = sqlite3.connect(path)

        def rows(table, select, where=""):
            known = base.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
            return base.execute(f"SELECT {select} {where}").fetchall() if known else []
        self.ranks = dict(base.execute("SELECT pid, rank FROM GPUPROF_PROCESSES"))
        self.calls = [Call(*row) for row in base.execute(CALLS)]
        made = {(call.pid, call.id): call for call in self.calls if call.id}
        self.works = []
        for kind, (table, name, size) in WORK.items():
            for row in rows(table, f"p.pid, w.deviceId, w.start, w.end, {name}, {size}, "
                            "w.correlationId", f"FROM {table} AS w JOIN GPUPROF_PROCESSES AS p "
                            "USING (globalPid)"):
                call = made.get((row[0], row[6]))
                self.works.append(Work(*row[:4], kind, *row[4:6], call and call.begin,
                                       call and call.tid))
        self.steps = rows("GPUPROF_STEPS", "p.pid, number, s.start, s.end, isPartial",
                          "FROM GPUPROF_STEPS AS s JOIN GPUPROF_PROCESSES AS p USING (globalPid)")
        self.ranges = rows("NVTX_EVENTS", "p.pid, n.text, n.start, n.end",
                           "FROM NVTX_EVENTS AS n JOIN GPUPROF_PROCESSES AS p ON "
                           "p.globalPid >> 24 = n.globalTid >> 24 WHERE n.end IS NOT NULL")
        events = rows("CUDA_GPU_MEMORY_USAGE_EVENTS", "p.pid, deviceId, m.start, bytes, "
                      "memoryOperationType", "FROM CUDA_GPU_MEMORY_USAGE_EVENTS AS m JOIN "
                      "GPUPROF_PROCESSES AS p USING (globalPid) ORDER BY m.start, m.rowid")
        self.changes = [Change(*row[:3], row[3] if row[4] == 0 else -row[3]) for row in events]
        self.end = max([c.end for c in self.calls] + [w.end for w in self.works], default=0)
        self.begins = dict(base.execute("SELECT pid, start FROM GPUPROF_PROCESSES"))
        self.ends = dict(base.execute("SELECT pid, end FROM GPUPROF_PROCESSES"))
        self.tids = sorted({c.tid for c in self.calls})
        base.close()


class Piece:
    """Some options, and whether something is in what they name. `of_time`: not all the time is."""

    def __init__(self, whole, dice, most=3):
        self.whole, self.options, self.time, self.spans = whole, [], (-math.inf, math.inf), []
        self.kinds = self.name = self.tid = None
        self.shortest, self.devices, self.ranks = 0, None, None
        ways = [self.draw_time, self.draw_time, self.draw_steps, self.draw_kind, self.draw_name,
                self.draw_shortest, self.draw_device, self.draw_rank, self.draw_tid]
        ways += [self.draw_range] if whole.ranges else []
        drawn = dice.sample(ways, dice.randint(1, most))
        for draw in {way.__name__: way for way in drawn}.values():
            draw(dice)
        # Of some ranks alone it is the first event of these.
        origin = min(at for pid, at in whole.begins.items() if self.wants(pid, None))
        self.time = (self.time[0] + origin, self.time[1] + origin)
        self.is_span = self.time != (-math.inf, math.inf) and not self.spans
        self.of_time = self.is_span or bool(self.spans)
        self.origin = origin

    def draw_time(self, dice):  # since the first event
        begin, end = sorted(dice.sample(range(self.whole.end), 2))
        shape = dice.randrange(3)
        self.time = (begin if shape != 1 else -math.inf, end if shape != 2 else math.inf)
        self.options += [f"--from={begin / 1000:.3f}us"] * (shape != 1)
        self.options += [f"--to={end / 1000:.3f}us"] * (shape != 2)

    def draw_steps(self, dice):
        first = dice.choice(self.whole.steps)[1]
        end = first + dice.choice((1, 1, 2, 5))
        self.options.append(f"--step={first}:{end}" if end > first + 1 else f"--step={first}")
        self.add_spans((pid, begin, till) for pid, number, begin, till, _ in self.whole.steps
                       if first <= number < end)

    def draw_range(self, dice):
        name = dice.choice(sorted({row[1] for row in self.whole.ranges}))
        self.options.append(f"--range={name}")
        self.add_spans((pid, begin, end) for pid, text, begin, end in self.whole.ranges
                       if text == name)

    def add_spans(self, found):
        spans = collections.defaultdict(list)
        for pid, begin, end in found:
            spans[pid].append((begin, end))
        self.spans.append({pid: joined(rows) for pid, rows in spans.items()})

    def draw_kind(self, dice):
        words = dice.choice(KINDS)
        self.options.append(f"--kind={words}")
        self.kinds = set()
        for word in words.split(","):
            self.kinds |= {"call": {*FUNCTIONS, "other"}, "work": {*WORK}}.get(word, {word})

    def draw_name(self, dice):
        self.name = dice.choice(NAMES)
        self.options.append(f"--name={self.name}")

    def draw_shortest(self, dice):
        self.shortest = dice.choice((500, 2000, 5000, 20000))
        self.options.append(f"--min-duration={self.shortest / 1000}us")

    def draw_device(self, dice):
        self.devices = {dice.choice(self.whole.works).device}
        self.options.append(f"--device={min(self.devices)}")

    def draw_rank(self, dice):
        rank = dice.choice(sorted(self.whole.ranks.values()))
        self.ranks = {rank}
        self.options.append(f"--rank={rank}")

    def draw_tid(self, dice):
        self.tid = dice.choice(self.whole.tids)
        self.options.append(f"--tid={self.tid}")

    def reaches(self, pid, begin, end):
        """Is any of that time in it?"""
        def into(first, last):
            return begin < last and (end > first or begin >= first)
        return into(*self.time) and all(
            any(into(*span) for span in spans.get(pid, [])) for spans in self.spans)

    def is_at(self, pid, at):
        return at is not None and all(
            any(begin <= at < end for begin, end in spans.get(pid, [])) for spans in self.spans)

    def fits(self, pid, begin, end, kind, name, tid):
        return (self.time[0] <= begin < self.time[1] and end - begin >= self.shortest and
                (self.ranks is None or self.whole.ranks[pid] in self.ranks) and
                (self.kinds is None or kind in self.kinds) and
                (self.name is None or re.search(self.name, name)) and
                (self.tid is None or tid == self.tid))

    def has_call(self, call):
        kind = next((k for k, names in FUNCTIONS.items() if re.search(names, call.name)), "other")
        return (self.fits(call.pid, call.begin, call.end, kind, call.name, call.tid) and
                self.is_at(call.pid, call.begin))

    def has_work(self, work):
        return (self.wants(work.pid, work.device) and self.fits(*work[:1], *work[2:6], work.tid) and
                (not self.spans or self.is_at(work.pid, work.at)))

    def wants(self, pid, device):
        return ((self.devices is None or device is None or device in self.devices) and
                (self.ranks is None or self.whole.ranks[pid] in self.ranks))


def sums(rows):
    found = collections.defaultdict(lambda: [0, 0])
    for name, value in rows:
        found[name][0] += 1
        found[name][1] += value
    return {name: tuple(value) for name, value in found.items()}


def window_of(piece, pid, shown, hidden):
    spans = [spans[pid] for spans in piece.spans]
    begin = max(piece.time[0], *(its[0][0] for its in spans))
    end = min(piece.time[1], piece.whole.ends[pid], *(its[-1][1] for its in spans))
    first = min(w.begin for w in shown)
    before = max((w.end for w in hidden if w.begin < first), default=0)
    return min(first, max(begin, before)), max(end, *(w.end for w in shown))


def use_of(piece):
    """Of each device's time, where work may be in the piece: how much of what. Window and idle time
    only in pieces of time: they begin and end with the piece, or the process, and in steps and
    ranges with the work before, or the last of their work, if that is later."""
    if piece.kinds and not piece.kinds & {*WORK}:
        return {}
    devices = collections.defaultdict(lambda: ([], []))
    # Of a piece of time alone all that lasts into it.
    has_all = piece.is_span and not (piece.kinds or piece.name or piece.shortest or piece.tid)
    for work in piece.whole.works:
        if piece.wants(work.pid, work.device):
            devices[work.pid, work.device][not (has_all or piece.has_work(work))].append(work)
    found = {}
    for key, (shown, hidden) in devices.items():
        if not shown and piece.spans:
            continue
        window = (-math.inf, math.inf)
        if piece.spans:
            window = window_of(piece, key[0], shown, hidden)
        elif piece.is_span:
            begin = max(piece.time[0], piece.origin)  # all had started before their first events
            window = begin, max(begin, min(piece.time[1], piece.whole.ends[key[0]]))
        spans = {part: [(w.begin, w.end) for w in shown if part == (
            "copies" if w.kind in ("gpu_memcpy", "gpu_memset") else
            "communication" if w.name.startswith("nccl") else "compute")]
            for part in ("compute", "communication", "copies")}
        before, use = [], {}
        spans["other"] = [(w.begin, w.end) for w in hidden]
        for part, its in spans.items():
            use[part] = length(before + its, window) - length(before, window)
            before += its
        if piece.of_time:
            use["window"] = window[1] - window[0]
            use["idle"] = use["window"] - length(before, window)
        found[key] = use
    return found


def peaks_of(piece):
    """The most memory that each device had at any time of it."""
    levels, since, most = collections.Counter(), {}, collections.Counter()

    def pass_time(key, until):
        if piece.reaches(key[0], since.get(key, -math.inf), until):
            most[key] = max(most[key], levels[key])
    for change in piece.whole.changes:
        key = change.pid, change.device
        if piece.wants(*key):
            pass_time(key, change.at)
            levels[key] += change.bytes
            since[key] = change.at
    for key in since:
        pass_time(key, math.inf)
    return {key: value for key, value in most.items() if value}


def known(piece):
    whole = piece.whole
    works = [w for w in whole.works if piece.has_work(w)]
    steps = [row for row in whole.steps if not row[4] and
             (piece.ranks is None or whole.ranks[row[0]] in piece.ranks) and
             piece.reaches(row[0], row[2], row[3])]
    return {"calls": sums((c.name, c.end - c.begin) for c in whole.calls if piece.has_call(c)),
            "kernels": sums((w.name, w.end - w.begin) for w in works if w.kind == "kernel"),
            "copies": sums((w.name, w.bytes) for w in works
                           if w.kind in ("gpu_memcpy", "gpu_memset")),
            "steps": len(steps), "use": use_of(piece), "peaks": peaks_of(piece)}


def shown(report, whole):
    """The same, as the report's JSON has it."""
    pids = {str(rank): pid for pid, rank in whole.ranks.items()}
    short = {"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD",
             "Peer-to-Peer": "PtoP"}

    def table(key, name, count, value):
        return {row[name]: (row[count], row[value]) for row in report.get(key, [])}

    def copied(name):
        words = name.strip("[]").split()
        return "Memset" if words[1] == "memset" else "Memcpy " + short[words[2]]
    use = {}
    for row in report.get("gpu_time", []):
        waited = row["idle_communication_ns"]
        its = {"compute": row["compute_ns"], "copies": row["copies_ns"], "other": row["other_ns"],
               "communication": row["communication_ns"] + waited}
        if report["overview"]["piece"] and "from_ns" in report["overview"]["piece"]:
            its.update(window=row["window_ns"], idle=row["idle_ns"] + row["stopped_ns"] - waited)
        assert row["window_ns"] == sum(row[f"{part}_ns"] for part in (
            "compute", "communication", "copies", "other", "idle", "stopped"))
        use[row["pid"], row["device"]] = its
    peaks = {}
    for row in report.get("gpu_memory_peak", []):
        found = re.fullmatch(r"(?:rank (\d+), )?GPU (\d+): most allocated", row["name"])
        if found:
            peaks[pids[found[1]] if found[1] else min(whole.ranks), int(found[2])] = row
    steps = report["overview"]["steps"]
    copies = {copied(name): value for name, value in table(
        "cuda_gpu_mem_size_sum", "name", "instances", "total_bytes").items()}
    return {"calls": table("functions", "function", "calls", "total_ns"),
            "kernels": table("cuda_gpu_kern_sum", "name", "instances", "total_ns"),
            "copies": copies, "steps": steps["count"] if steps else 0, "use": use,
            "peaks": {key: row["bytes"] for key, row in peaks.items()}}


def lines_of(rank, dice, types, steps=12):
    """A process for make_records: two threads that launch on two devices with two streams each,
    where work runs long after its call and beside other work; steps, ranges, and memory."""
    lines, records, free, blocks = [f"process {rank}"], [], collections.Counter(), []
    calls, now = 0, 1000 + 700 * rank

    def add(kind, thread, begin, ns=0, call=0, code=0, args=(), text=""):
        records.append((begin, f"{types[kind]} {thread} {begin} {ns} {call} 0 {code} 0 "
                        f"{','.join(map(str, args)) or '-'} {text}"))
    for device in range(2):
        add("device", 2, 1, args=(device, 9, 0), text="Made GPU")
    for number, name in enumerate(("gemm_kernel", "relu", "ncclDevKernel_AllReduce"), 1):
        add("kernel_name", 2, 2, args=(number,), text=name)
    for step in range(steps):
        add("step", 1, now, args=(step,))
        for _ in range(dice.randrange(4, 30)):
            now += dice.randrange(200, 4000)
            calls += 1
            thread, device, stream = dice.choice((1, 1, 3)), dice.randrange(2), dice.randrange(2)
            kind = dice.choice(("kernel", "kernel", "copy", "set", "memory", "range", "sync"))
            begin = max(now + 300 + dice.randrange(dice.choice((900, 20000))),
                        free[device, stream])
            ns = dice.randrange(1, dice.choice((1000, 30000)))
            if kind == "range":
                add("push", thread, now - 50, args=[0] * 6, text=dice.choice(("load", "compute")))
                add("pop", thread, now + 195, args=[0])
                kind = "kernel"
            name = {"kernel": "cudaLaunchKernel", "copy": "cudaMemcpyAsync",
                    "set": "cudaMemsetAsync", "sync": "cudaStreamSynchronize"}.get(kind)
            if name:
                add("call", thread, now, dice.randrange(100, 190), calls, name)
            if kind in ("kernel", "copy", "set"):
                free[device, stream] = begin + ns
                its = {"kernel": (dice.choice((1, 1, 2, 3)), 1, 1), "set": (0, ns, 3),
                       "copy": (*dice.choice(((1, 2, 3), (2, 3, 1), (8, 3, 3))), 10 * ns, 1)}
                add(kind, 2, begin, ns, dice.choice((calls, calls, calls, 0)),
                    args=(device, 1, 7 + stream, *its[kind]))
            elif kind == "memory" and blocks and dice.random() < 0.5:
                add("memory", 2, now, args=(2, 3, *blocks.pop(dice.randrange(len(blocks))), 1))
            elif kind == "memory":
                blocks.append((calls << 32, dice.randrange(1, 1 << 30), device))
                add("memory", 2, now, args=(1, 3, *blocks[-1], 1))
    add("step", 1, now + 5000, args=(steps,))
    return lines + [line for _, line in sorted(records, key=lambda record: record[0])]
