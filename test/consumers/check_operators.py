# SPDX-License-Identifier: Apache-2.0
"""The operator views of Holistic Trace Analysis and of TensorBoard, on our trace and on
torch.profiler's of the same run, cell by cell: names, calls, sizes, types, numbers, nesting the
same; times on the host within 5 % or 1 us for each reading of a clock.

Both read a clock in a callback before and behind each operator, ours first. The ends are the same,
unless the thread was made to wait between the two; torch.profiler's begins are later, by what its
own callback does before it looks at the clock, which for it is in the operator around. What of
either is more than 1 us is taken out, and counted.

While torch.profiler has the device's records gpuprof has none: kernels are compared with those of a
second run, in which nothing else profiles. torch.profiler ties them to operators by records of
CUPTI's that come too late from the simulated one; its own operators and calls say the same."""

import collections
import glob
import gzip
import json
import os
import pathlib
import statistics
import subprocess

WORK = pathlib.Path(__file__).resolve().parent.parent / "torch" / "ops_work.py"
LABEL = "eager"  # in ops_work.py: all of what both record
HOST, CALLS = {"cpu_op", "user_annotation"}, {"cuda_runtime", "cuda_driver"}
# torch.profiler gives it the numbers of its node, and says nothing of lists of optional tensors.
ENGINE, ENGINE_CELLS = "autograd::engine::evaluate_function: ", ("sequence", "fwd_thread_id")
OPTIONAL_LISTS, OPTIONAL_CELLS = {"aten::index"}, ("input_dims", "input_type")
CLOSE_US, CLOSE_SHARE = 1.0, 0.05
SAME_ENDS_SHARE = 0.95  # the others' threads were made to wait between the two clocks


def load(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if path.endswith(".gz") else data)


def slices(trace, categories):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] in categories]


def by_thread(events):
    """tid -> its events in order of begin, the outer one first."""
    rows = collections.defaultdict(list)
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        rows[e["tid"]].append(e)
    return rows


def cut(trace, like=None):
    """What is inside of the label, which becomes a step: both readers want one. `like`: only
    threads that do what one of it does; torch.profiler does not see all of them."""
    [label] = [e for e in slices(trace, HOST) if e["name"] == LABEL]
    end = label["ts"] + label["dur"]
    inside = [e for e in slices(trace, HOST | CALLS) if e["pid"] == label["pid"] and
              label["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end and e is not label]
    threads = by_thread(e for e in inside if e["cat"] in HOST)
    known = [[e["name"] for e in its] for its in by_thread(slices(like, HOST)).values()] if like \
        else None
    tids = {tid for tid, its in threads.items() if not known or
            [e["name"] for e in its] in [[n for n in names if not n.startswith("ProfilerStep#")]
                                         for names in known]}
    inside = [e for e in inside if e["tid"] in tids]
    ids = {e["args"].get("correlation") for e in inside if e["cat"] in CALLS}
    work = [e for e in slices(trace, {"kernel"}) if e["args"]["correlation"] in ids]
    names = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    step = dict(label, name="ProfilerStep#0")
    return dict(trace, distributedInfo={"rank": 0}, traceEvents=[*names, step, *inside, *work])


def tie(trace):
    """Gives calls and kernels the operator that is around the call."""
    threads = by_thread(slices(trace, {"cpu_op"} | CALLS))
    owner = {}
    for events in threads.values():
        around = []
        for e in events:
            while around and around[-1]["ts"] + around[-1]["dur"] <= e["ts"]:
                around.pop()
            if e["cat"] == "cpu_op":
                around.append(e)
            else:
                owner[e["args"]["correlation"]] = around[-1]["args"]["External id"] if around else 0
                e["args"]["External id"] = owner[e["args"]["correlation"]]
    for e in slices(trace, {"kernel"}):
        e["args"]["External id"] = owner[e["args"]["correlation"]]
    return trace


def save(trace, folder):
    folder.mkdir(parents=True)
    text = json.dumps(trace)  # with white space behind the colon of "rank": HTA wants it
    (folder / "rank_0.pt.trace.json").write_text(text, encoding="utf-8")
    return folder


def record(check, torch, folder, *arguments):
    """Our trace of a run."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(torch / "driver"),
                   "PYTHONWARNINGS": "ignore"}
    gpuprof = check.build / "gpuprof-collector"
    for command in ([gpuprof, "run", "--quiet", "-o", folder / "data", "--pytorch=shapes", "--",
                     torch / "venv" / "bin" / "python", WORK, *arguments],
                    [gpuprof, "merge", "--per-rank", folder / "data", "-o", folder / "merged"]):
        subprocess.run(command, env=environment, check=True, timeout=600,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return load(glob.glob(f"{folder}/merged/rank_0*.gz")[0])


# ---- times -------------------------------------------------------------------------------------

class Readings:
    """How far the two clocks' readings are apart, and what of it is in a cell."""

    def __init__(self, ours, theirs, categories=("cpu_op",)):
        mine = by_thread(slices(ours, categories))
        pairs = {tid: list(zip(mine[tid], events))
                 for tid, events in by_thread(slices(theirs, categories)).items()}
        ends = [other["ts"] + other["dur"] - one["ts"] - one["dur"]
                for its in pairs.values() for one, other in its]
        base = statistics.median(ends)  # both count from somewhere
        self.ends = [end - base for end in ends]
        self.begins = []
        self.excess, self.count = collections.Counter(), collections.Counter()
        for its in pairs.values():
            self.add(its, base)

    def add(self, pairs, base):
        around = []
        for one, other in pairs:
            late = other["ts"] - one["ts"] - base
            self.begins.append(late)
            end = late + other["dur"] - one["dur"]
            apart = (late if late > CLOSE_US else 0) - (end if end > CLOSE_US else 0)
            while around and around[-1]["ts"] + around[-1]["dur"] <= other["ts"]:
                around.pop()
            cells = [("total", key, 1) for key in keys(other)]
            cells += [("self", key, 1) for key in keys(other)]
            cells += [("self", key, -1) for e in around[-1:] for key in keys(e)]
            for which, key, sign in cells:
                self.count[which, key] += 1
                self.excess[which, key] += sign * apart
            around.append(other)

    def is_close(self, which, key, found, expected):
        allowed = max(CLOSE_SHARE * expected, CLOSE_US * self.count[which, key])
        return abs(found - expected - self.excess[which, key]) <= allowed + 1  # cells are rounded

    def check(self, check):
        late = sum(begin > CLOSE_US for begin in self.begins)
        print(f"         {len(self.begins)} operators: torch.profiler's begins are "
              f"{statistics.median(self.begins):.2f} us later (median), {late} more than "
              f"{CLOSE_US:g} us; ends {statistics.median(map(abs, self.ends)):.2f} us apart")
        check.equal("begins are as far apart as allowed, as a rule",
                    0 <= statistics.median(self.begins) <= CLOSE_US, True)
        same = sum(abs(end) <= CLOSE_US for end in self.ends)
        check.equal("ends are the same", same >= SAME_ENDS_SHARE * len(self.ends), True)


def keys(event):
    """Of its rows in the two tables."""
    name = event["name"]
    sizes = [] if name in OPTIONAL_LISTS else event["args"].get("Input Dims", [])
    return name, (name, str(sizes))


# ---- TensorBoard -------------------------------------------------------------------------------

def table(rows, by):
    found = {}
    for row in rows:
        key = row["name"] if by == "name" else (row["name"], row["input_shape"])
        if by == "name" or row["name"] not in OPTIONAL_LISTS:
            found[key] = row
    return found


def check_tables(check, ours, alone, theirs, readings):
    for by in ("name", "shape"):
        what = f"TensorBoard's operators by {by}"
        mine, other, rows = (table(found[by], by) for found in (ours, alone, theirs))
        check.equal(f"{what}: rows and calls, {len(rows)}",
                    {key: row["calls"] for key, row in mine.items()},
                    {key: row["calls"] for key, row in rows.items()})
        far = {}
        for which in ("self", "total"):
            cell = f"host_{which}_duration"
            far.update({(which, key): (mine[key][cell], row[cell]) for key, row in rows.items()
                        if key in mine and not readings.is_close(which, key, mine[key][cell],
                                                                 row[cell])})
        check.equal(f"{what}: time on the host", far, {})
        cells = ("calls", "device_self_duration", "device_total_duration", "tc_eligible",
                 "tc_self_ratio", "tc_total_ratio")
        both = [{key: [row[cell] for cell in cells] for key, row in its.items()}
                for its in (other, rows)]
        check.equal(f"{what}: what is the device's", both[0], both[1])


def kernel_rows(found):
    """Without what depends on the device's properties; the times apart."""
    rows = sorted(row[:10] for row in found["kernels"])
    return [row[:9] for row in rows], [row[9] for row in rows]


# ---- all of it ---------------------------------------------------------------------------------

def operator_rows(threads, columns):
    rows = []
    for thread in threads:
        for row in thread:
            unlike = ENGINE_CELLS if row["s_name"].startswith(ENGINE) else \
                OPTIONAL_CELLS if row["s_name"] in OPTIONAL_LISTS else ()
            rows.append([row[column] for column in columns if column not in unlike])
    return rows


def check_hta(check, folders):
    found = {name: check.read("hta", f"HTA on {name}'s operators", folder, "--operators")
             for name, folder in folders.items()}
    if not all(found.values()):
        return
    host = ("s_name", "s_cat", "depth", "height", "input_dims", "input_type", "concrete_inputs",
            "sequence", "fwd_thread_id")
    rows = {name: operator_rows(threads, host) for name, threads in found.items()}
    count = len(rows["theirs"])
    for name in ("ours", "alone"):
        wrong = [pair for pair in zip(rows[name], rows["theirs"]) if pair[0] != pair[1]]
        check.equal(f"HTA's operators, {name}: cells and nesting of {count}",
                    (len(rows[name]), wrong[:3]), (count, []))
    device = [[[row["num_kernels"], round(row["kernel_dur_sum"], 1)] for thread in found[name]
               for row in thread] for name in ("alone", "theirs")]
    check.equal("HTA's operators: kernels of each, and their time", device[0], device[1])


def check_operators(check, torch):
    """`torch`: what scripts/fetch-torch and test/torch/make_standins.py made."""
    if not (torch / "driver").exists():
        check.row("operators of PyTorch", "not run", f"{torch}: make check-torch fetches it")
        return
    work = check.folder / "operators"
    work.mkdir()
    ours = record(check, torch, work / "both", work / "theirs.json")
    theirs = tie(cut(load(str(work / "theirs.json"))))
    traces = {"theirs": theirs, "ours": cut(ours, theirs),
              "alone": cut(record(check, torch, work / "one"), theirs)}
    folders = {name: save(trace, work / name) for name, trace in traces.items()}
    readings = Readings(traces["ours"], theirs)
    readings.check(check)
    check_hta(check, folders)
    found = {name: check.read("tensorboard", f"TensorBoard on {name}'s operators", folder,
                              "--operators", *(["--calls"] if name == "alone" else []))
             for name, folder in folders.items()}
    tied = check.read("tensorboard", "TensorBoard on theirs with calls", folders["theirs"],
                      "--operators", "--calls")
    if tied and all(found.values()):
        ours, alone, theirs = (next(iter(found[name].values())) for name in ("ours", "alone",
                                                                            "theirs"))
        tied = next(iter(tied.values()))
        for by in ("name", "shape"):  # with calls their time is left out of the host's
            cells = {json.dumps([r["name"], r.get("input_shape")]): r for r in tied[by]}
            theirs[by] = [{**cells[json.dumps([r["name"], r.get("input_shape")])],
                           **{k: v for k, v in r.items() if k.startswith("host")}}
                          for r in theirs[by]]
        check_tables(check, ours, alone, theirs, readings)
        (kernels, times), (tied_kernels, tied_times) = kernel_rows(alone), kernel_rows(tied)
        check.equal("TensorBoard's kernels by operator", kernels, tied_kernels)
        # The device's noise is 1 ns a call, and each time is rounded.
        check.equal("TensorBoard's kernels by operator: time, but for noise",
                    [pair for row, *pair in zip(kernels, times, tied_times)
                     if abs(pair[0] - pair[1]) > 0.001 * row[8] + 0.11], [])
