# SPDX-License-Identifier: Apache-2.0
"""PyTorch's training loop of train.py: unchanged under gpuprof, and recorded in full."""

import bisect
import collections
import json

import check_counts
import gpu_dump
from gpu_table import (FAILED, HERE, Failure, bare_environment, collect, kill_when, not_run,
                       recording_environment, row, run, tail)

KILL_STEPS = 20000  # more than it comes to
SPOILED_MAX = 4  # of the profiler's first: CUPTI gives wrong times after a second clock
INSIDE_MIN = 0.95  # of the launches: some are of no operator (a graph's, cuBLAS' own set-up)
OP_RANGES_MIN = 100  # of emit_nvtx, over a third of the steps


def command(python, variant, steps, *more):
    return [python, str(HERE / "train.py"), variant, str(steps), *map(str, more)]


def record(python, variant, steps, folder):
    """(process, the kernels that torch.profiler counted) of one variant; its output is judged."""
    name = f"training, {variant}: losses and status"
    count = folder / f"{variant}.count"
    bare = [run(command(python, variant, steps), bare_environment()) for _ in range(2)]
    if bare[0].status or bare[0].stdout != bare[1].stdout:
        same = "gives other losses each time" if not bare[0].status else tail(bare[0].stderr)
        not_run(name, f"the bare run ended with {bare[0].status}: {same}")
        raise Failure("the bare run is not usable")
    settings = {"GPUPROF_PYTORCH": "stacks"} if variant == "operators" else {}
    done = run(command(python, variant, steps, count),
               recording_environment(folder / variant, **settings))
    same = (done.status, done.stdout) == (bare[0].status, bare[0].stdout)
    row(name, same, f"status {done.status}, losses of {steps} steps "
        f"{'equal to' if same else 'differ from'} the bare run's"
        f"{'' if same else ': ' + tail(done.stderr)}")
    found = gpu_dump.files(folder / variant)
    row(f"training, {variant}: files", len(found) == 1,
        f"{len(found)} recordings of one process with DataLoader workers (wanted: 1)")
    counted = int(count.read_text(encoding="ascii")) if count.exists() else None
    process = max(gpu_dump.read(folder / variant), key=lambda p: len(p.calls))
    if not process.has_gpu_rows():
        raise Failure(f"GPU rows {process.gpu_rows}")
    return process, counted


def kernels_by_step(process):
    """Kernels of the launches that each step made; steps are told by gpuprof_step()."""
    begins = [begin for begin, _ in sorted(process.steps)]
    made = collections.Counter()
    owners = {c.correlation: c for c in process.calls if c.kind in ("launch", "graph_launch")}
    for kernel in process.done("kernel"):
        call = owners.get(process.owner(kernel.correlation))
        made[bisect.bisect_right(begins, call.begin) - 1 if call else None] += 1
    return made


def count_orphans(process):
    """Kernels that are not of exactly one launch or graph launch."""
    owners = collections.Counter(c.correlation for c in process.calls
                                 if c.kind in ("launch", "graph_launch") and not c.captured)
    return sum(owners[process.owner(k.correlation)] != 1 for k in process.done("kernel"))


def check_orphans(label, processes, lost, allowed=None):
    """With `allowed`, a set, no other losses than these; if it has any, no kernel may be left."""
    kernels = [len(process.done("kernel")) for process in processes]
    orphans = sum(map(count_orphans, processes))
    row(f"{label}: correlation",
        (all(kernels) or bool(allowed)) and not orphans and
        (allowed is None or set(lost) <= allowed),
        f"{' + '.join(map(str, kernels))} kernels, {orphans} not of exactly one launch or graph "
        f"launch; losses: {lost or 'none'}; "
        f"GPU rows {', '.join(sorted({process.gpu_rows for process in processes}))}")


def check_profiler(process, counted, plain, steps):
    """Outside the profiler's session all kernels are ours, inside they are the profiler's."""
    name = "training, profiler: kernels"
    notes = sorted(process.notes)
    taken = [at for at, text in notes if text.startswith("another client")]
    back = [at for at, text in notes if "gpuprof's again" in text]
    if len(taken) != 1 or not counted:
        row(name, FAILED, f"{len(taken)} notes of another client; torch.profiler counted {counted}")
        return
    first, last = steps // 3, 2 * steps // 3
    made = kernels_by_step(process)
    begins = [begin for begin, _ in sorted(process.steps)] + [1 << 64]
    ends = back[0] if back else 1 << 64
    outside = [i for i in range(steps) if begins[i + 1] < taken[0] or begins[i] > ends]
    wrong = [i for i in outside if made[i] != plain[i]]
    inside = sum(plain[i] for i in range(first, last))
    gap = [i for i in range(steps) if i not in outside and not first <= i < last]
    row(name, not wrong and inside - SPOILED_MAX <= counted <= inside and bool(back),
        f"steps {first} to {last - 1} are the profiler's: it has {counted} kernels, the plain run "
        f"had {inside} in them (at most {SPOILED_MAX} fewer wanted); gpuprof has all "
        f"kernels in {len(outside) - len(wrong)} of {len(outside)} steps outside; {len(gap)} steps "
        f"fell into the change; records {'taken back' if back else 'never taken back'}")


def check_nvtx(process, steps):
    own = sum(n for text, n in process.texts.items() if text.startswith("step "))
    ops = sum(n for text, n in process.texts.items() if "aten::" in text or "Backward" in text)
    row("training, nvtx: ranges", own == steps and ops > OP_RANGES_MIN,
        f"{own} ranges of {steps} steps, {ops} of emit_nvtx's operators and backward nodes")


def check_operators(process, steps):
    """The loop's own numbers: each Linear once forward and once backward, a step of the optimiser,
    launches inside of operators but for what came before these were recorded."""
    ops = process.operators()
    names = collections.Counter(name for name, *_ in ops)
    first = min((begin for _, begin, *_ in ops), default=0)
    spans = collections.defaultdict(list)
    for _, begin, end, thread in sorted(ops, key=lambda op: op[1]):
        its = spans[thread]
        if not its or end > its[-1][1]:  # those inside others say nothing more
            its.append((begin, end))
    launches = [c for c in process.of("launch") if c.begin > first]
    inside = sum(any(begin <= c.begin and c.end <= end for begin, end in
                     spans[c.thread][max(0, bisect.bisect_right(
                         spans[c.thread], (c.begin, c.end)) - 2):][:2]) for c in launches)
    forward, backward = names["aten::addmm"], names["AddmmBackward0"]
    optimizer = sum(n for name, n in names.items() if name and name.startswith("Optimizer.step#"))
    row("training, operators: operators",
        optimizer in (steps, steps - 1) and 0 <= forward - backward <= forward // steps and
        forward >= steps and inside >= INSIDE_MIN * len(launches) > 0,
        f"{len(ops)} operators and labels, {optimizer} steps of the optimiser of {steps}, "
        f"{forward} aten::addmm and {backward} of their backward nodes, {inside} of "
        f"{len(launches)} launches inside of operators")


def check_steps(folder, steps):
    """An update ends each step; the first one is a part, or was before operators were recorded."""
    done = collect("report", "--format=json", "--step-by=optimizer", "--table=steps,phases",
                   folder)
    if done.status:
        raise Failure(f"report ended with {done.status}: {tail(done.stderr)}")
    report = json.loads(done.stdout)
    whole = report["steps_whole"]
    lasted = sum(s["duration_ns"] for s in report["steps"] if not s["partial"])
    split = sum(part["total_ns"] for part in report["step_parts"])
    phases = {p["name"]: p["host_ns"] for p in report["phases"]}
    empty = [name for name in ("data", "forward", "backward", "optimizer") if not phases[name]]
    row("training, operators: steps",
        whole in (steps - 1, steps - 2) and split == sum(phases.values()) == lasted > 0 and
        not empty,
        f"{whole} whole steps between {steps} updates, {lasted} ns, of which the parts are {split} "
        f"and the phases {sum(phases.values())}; phases without time: {', '.join(empty) or 'none'}")


def check_stacks(process):
    """Of the thread that trains, each operator that is in no other one has Python frames."""
    name = "training, operators: stacks"
    if process.python.startswith("absent"):
        return not_run(name, f"Python's frames are {process.python}")
    trains = {op[3] for op in process.operators() if (op[0] or "").startswith("Optimizer.step#")}
    outermost, opened = [], collections.defaultdict(set)
    for time, begins, op, _, thread in sorted(process.op_marks, key=lambda mark: mark[0]):
        if begins and (op, time) in process.op_stacks:
            if thread in trains and not opened[thread]:
                outermost.append(process.op_stacks[op, time])
            opened[thread].add(op)
        elif not begins:
            opened[thread].discard(op)
    return row(name, all(outermost) and bool(outermost),
               f"{sum(outermost)} of {len(outermost)} outermost operators have a stack")


def check_graph(process, steps):
    launches = {c.correlation for c in process.of("graph_launch")}
    nodes = collections.Counter(process.owner(k.correlation) for k in process.done("kernel")
                                if k.graph)
    sizes = sorted({nodes[c] for c in launches})
    row("training, graph: nodes", len(launches) == steps and len(sizes) == 1 and sizes[0] > 0,
        f"{len(launches)} graph launches of {steps} steps, with {sizes} kernels each")


def check_kill(python, folder):
    settings = recording_environment(folder)
    if not kill_when(command(python, "plain", KILL_STEPS), settings, "step 100", 3):
        raise Failure("the program ended before it was killed")
    check_counts.judge_kill("training, plain: SIGKILL", folder, True)


def check_all(python, folder, steps):
    """The folder of the plain run's recording, or None."""
    folder.mkdir()
    plain = None
    for variant in ("plain", "profiler", "nvtx", "operators", "graph"):
        try:
            process, counted = record(python, variant, steps, folder)
            check_orphans(f"training, {variant}", [process], gpu_dump.losses(folder / variant))
            if variant == "plain":
                plain = kernels_by_step(process)
            elif variant == "profiler" and plain:
                check_profiler(process, counted, plain, steps)
            elif variant == "nvtx":
                check_nvtx(process, steps)
            elif variant == "operators":
                check_operators(process, steps)
                check_steps(folder / variant, steps)
                check_stacks(process)
            elif variant == "graph":
                check_graph(process, steps)
        except Failure as failure:
            row(f"training, {variant}: recording", FAILED, failure)
    try:
        check_kill(python, folder / "kill")
    except Failure as failure:
        row("training, plain: SIGKILL", FAILED, failure)
    return folder / "plain" if plain else None
