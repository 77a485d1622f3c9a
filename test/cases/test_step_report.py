# SPDX-License-Identifier: Apache-2.0
"""Steps and phases in reports, held against what the records say (step_truth.py)."""

import gzip
import itertools
import json
import random
import signal

import csv_tables
import pytest
import step_truth
import stream_reader
import toolchain
from conftest import ROOT
from stream_reader import CALL, OP_BEGIN, OP_END, OP_NAME, PAUSE, POP, PUSH, STEP, TYPE_NUMBERS

KERNELS = ("gemm", "relu", "ncclDevKernel_AllReduce", "adam")
SGD, ADAM = "Optimizer.step#SGD.step", "Optimizer.step#Adam.step"
ZERO = "Optimizer.zero_grad#SGD.zero_grad"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
BACKWARD = "autograd::engine::evaluate_function: MmBackward0"
OPERATORS = ("aten::mm", "aten::add", "aten::relu", "aten::copy_")
OTHERS = ("aten::item", "aten::_amp_update_scale_")  # the device's values, a gradient scaler's
TRAINING_STEP = "[pl][profile][Strategy]SingleDeviceStrategy.training_step"
CLIPPING = "[pl][profile][LightningModule]Net.configure_gradient_clipping"
MODULE = 254
MAIN, DEVICE, AUTOGRAD = 1, 2, 3


class Stream:
    """A process's records, as make_records takes them; each at a time of its own."""

    def __init__(self, rank=0):
        self.rank, self.records, self.names, self.objects = rank, [], {}, 0
        self.now, self.correlation = 1000, 0
        for number, name in enumerate(KERNELS, 1):
            self.add(TYPE_NUMBERS["kernel_name"], DEVICE, args=(number,), text=name)

    def tick(self, ns=1):
        self.now += ns
        return self.now

    def add(self, kind, thread, begin=None, duration=0, correlation=0, flags=0, code=0, weight=0,
            args=(), text=""):
        begin = self.tick() if begin is None else begin
        args = ",".join(map(str, args)) or "-"
        self.records.append((thread, begin, f"{kind} {thread} {begin} {duration} {correlation} "
                             f"{flags} {code} {weight} {args} {text}"))

    def name(self, text):
        if text not in self.names:
            self.names[text] = len(self.names) + 1
            self.add(OP_NAME, MAIN, args=(self.names[text],), text=text)
        return self.names[text]

    def begin(self, name, scope=0, thread=MAIN, traced=False, again=None, sequence=None):
        number = self.name(name)
        self.objects += again is None
        address = 4096 + 16 * self.objects if again is None else again
        self.add(OP_BEGIN, thread, flags=traced * stream_reader.TRACED, code=scope,
                 args=(address, number, 0, 0 if sequence is None else sequence + 1, 0))
        return address

    def end(self, address, thread=MAIN):
        self.add(OP_END, thread, args=(address,))

    def label(self, name, *inside, thread=MAIN, ns=10):
        """A label around what the functions do."""
        address = self.begin(name, 7, thread)
        for act in inside:
            act()
        self.tick(ns)
        self.end(address, thread)

    def operator(self, name, scope=0, thread=MAIN, ns=10, work=0, inside=(), sequence=None):
        address = self.begin(name, scope, thread, sequence=sequence)
        self.tick(ns)
        for act in inside:
            act()
        if work:
            self.call(thread, work)
        self.tick(ns)
        self.end(address, thread)

    def call(self, thread=MAIN, work=0, kernel=1, function="cudaLaunchKernel", args=(), ns=5,
             weight=0):
        self.correlation += 1
        self.add(CALL, thread, duration=ns, correlation=self.correlation, code=function, args=args,
                 weight=weight)
        if work:
            self.add(TYPE_NUMBERS["kernel"], DEVICE, self.now + 3, work, self.correlation,
                     args=(0, 1, 7, kernel, 1, 1))
        self.tick(ns)

    def lines(self):
        lines = [line for _, _, line in sorted(self.records, key=lambda r: r[:2])]
        return [f"process {self.rank}", *lines]

    # ---- parts of a training loop ---------------------------------------------------------------

    def forward(self, work=40):
        for name in OPERATORS[:3]:
            self.operator(name, work=work)
            self.tick(7)

    def backward(self, inside=()):
        self.operator(BACKWARD, 1, AUTOGRAD, 15, 30, inside)

    def batch(self):
        self.label(LOADER, ns=25)

    def update(self, name=SGD, *inside):
        self.label(name, lambda: self.operator("aten::add", work=10), *inside)

    def train(self, *update, accumulate=1):
        for _ in range(accumulate):
            self.batch()
            self.forward()
            self.backward()
        self.update(*update)
        self.label(ZERO)


class Bench:
    def __init__(self, run_verb, make_records):
        self.run_verb, self.make_records = run_verb, make_records
        self.folder = None

    def make(self, *streams):
        self.folder = self.make_records(line for stream in streams for line in stream.lines())
        return self

    def json(self, *options, tables="steps,phases"):
        return json.loads(self.run_verb("report", "--format=json", f"--table={tables}", *options,
                                        self.folder).stdout)

    def check(self, by, *options, pattern=None, samples=0, made_of=None):
        """The steps of the first process, after all that is said of all was found right."""
        report = self.json(*options)
        processes = [step_truth.Process(p, by, pattern)
                     for p in stream_reader.read_folder(self.folder)]
        assert report["steps_by"] == ("range" if by == "name" else by)
        step_truth.check(report, processes, samples)
        step_truth.check_slowest(report, processes)
        steps = processes[0].steps
        assert made_of is None or {step.made_of for step in steps} == {made_of}
        return steps

    def refused(self, *options):
        done = self.run_verb("report", "--table=steps", *options, self.folder, status=2)
        assert done.stdout == ""
        return done.stderr


@pytest.fixture(name="tester")
def fixture_tester(run_verb, make_records):
    return Bench(run_verb, make_records)


# ---- streams at random -------------------------------------------------------------------------

LABELS = {"range": ("my label",), "none": ("my label", ZERO), "graph": ("my label", ZERO),
          "name": ("train 7", "train 8", "other"), "profiler": ("my label", SGD, LOADER),
          "optimizer": (SGD, SGD, ADAM, ZERO, LOADER, "my label", TRAINING_STEP, CLIPPING),
          "dataloader": (LOADER, ZERO)}


class RandomStream(Stream):
    def __init__(self, rank, by, count, seed):
        super().__init__(rank)
        self.by, self.dice, self.steps = by, random.Random(f"{by} {rank} {seed} d"), 0
        self.open = {MAIN: [], AUTOGRAD: []}
        self.sequences = {MAIN: 3, AUTOGRAD: 5}
        for _ in range(count):
            thread = self.dice.choice((MAIN, MAIN, AUTOGRAD))
            self.tick(self.dice.randrange(1, 60))
            self.dice.choice((self.open_one, self.open_one, self.end_one, self.end_one,
                              self.work, self.rare))(thread)

    def open_one(self, thread):
        if len(self.open[thread]) > 3:
            return
        kind = self.dice.random()
        traced = self.dice.random() < 0.05
        if kind < 0.35:
            name = self.dice.choice(LABELS[self.by])
            if self.by == "profiler" and kind < 0.1:
                self.steps += 1
                name = f"ProfilerStep#{self.steps}"
            self.open[thread].append(self.begin(name, 7, thread, traced))
        elif kind < 0.4:
            name, scope = self.dice.choice(((BACKWARD, 255), ("MmBackward0", 1)))
            self.open[thread].append(self.begin(name, scope, thread, traced))
        else:
            lost = [one for ones in self.open.values() for one in ones if kind > 0.97]
            again = self.dice.choice(lost) if lost else None  # an end of it is missing
            if again:
                self.open[MAIN if again in self.open[MAIN] else AUTOGRAD].remove(again)
            name, scope = self.dice.choice((*((name, 0) for name in (*OPERATORS, *OTHERS)),
                                            ("Linear Net.head", MODULE)))
            self.sequences[thread] += self.dice.randrange(2)
            sequence = self.sequences[thread] if scope == 0 and self.dice.random() < 0.6 else None
            self.open[thread].append(self.begin(name, scope, thread, traced, again, sequence))

    def end_one(self, thread):
        """Usually the innermost, on its own thread."""
        objects = self.open[thread]
        if not objects:
            return
        at = -1 if self.dice.random() < 0.85 else self.dice.randrange(len(objects))
        moved = self.dice.random() < 0.04
        self.end(objects.pop(at), MAIN + AUTOGRAD - thread if moved else thread)

    def work(self, thread):
        self.correlation += 1
        begin, end = self.tick(), self.dice.randrange(1, 80)
        function, args = self.dice.choice((("cudaLaunchKernel", ()), ("cudaMalloc", ()),
                                           ("cudaMemcpyAsync", ()), ("cudaDeviceSynchronize", ())))
        if self.by in ("graph", "profiler") and self.dice.random() < 0.3:
            function, args = "cudaGraphLaunch", (self.dice.choice((64, 64, 128)), 0)
        self.add(CALL, thread, begin, end, self.correlation, code=function, args=args)
        for _ in range(self.dice.randrange(3)):
            kind = self.dice.choice(("kernel", "kernel", "copy", "set", "graph"))
            self.add(TYPE_NUMBERS[kind], DEVICE, begin + self.dice.randrange(3000),
                     self.dice.randrange(1, 150), self.correlation,
                     args=(0, 1, 7, self.dice.randrange(1, len(KERNELS) + 2), 1, 1))

    def rare(self, thread):
        what = self.dice.random()
        if self.by == "range" and what < 0.4:
            self.steps += self.dice.randrange(3)
            self.add(STEP, thread, args=(self.steps,))
        elif self.by == "name" and what < 0.4:
            self.steps += 1
            name = self.dice.choice((f"train {self.steps}", "trains", "train"))
            self.add(PUSH, thread, args=(0,) * 6, text=name)
        elif self.by == "name" and what < 0.8:
            self.add(POP, thread, args=(0,))
        elif what > 0.97:
            self.add(PAUSE, thread, args=(self.dice.randrange(3) // 2,))


@pytest.mark.parametrize("by,seed", itertools.product(LABELS, range(2)))
def test_at_random(tester, by, seed):
    tester.make(*(RandomStream(rank, by, 700, seed) for rank in range(1 + seed)))
    options = ["--step-range=train *"] if by == "name" else []
    steps = tester.check(by, *options, pattern="train *" if by == "name" else None)
    assert (len(steps) > 2) == (by != "none")
    seen = {part for step in steps for part, ns in step.parts.items() if ns}
    assert not steps or len(seen) > 4  # all kinds of things come to pass


# ---- what a step is ----------------------------------------------------------------------------

def of(stream, times, act):
    for _ in range(times):
        act()
    stream.tick(100)
    return stream


def test_gradient_accumulation(tester):
    """A step is an update; what is behind the last is none."""
    stream = Stream()
    of(stream, 5, lambda: stream.train(SGD, accumulate=4))
    of(stream, 3, lambda: (stream.batch(), stream.forward()))
    steps = tester.make(stream).check("optimizer", made_of=SGD)
    assert [(step.number, step.batches, step.partial) for step in steps] == \
        [(0, 4, True), *((i, 4, False) for i in range(1, 5))]
    assert all(a.end == b.begin for a, b in zip(steps, steps[1:]))


def test_two_optimizers(tester):
    """The class of the first one is what counts; of one class each update does."""
    stream = Stream()
    of(stream, 6, lambda: (stream.train(ADAM), stream.update(SGD)))
    steps = tester.make(stream).check("optimizer", made_of=ADAM)
    assert [step.batches for step in steps] == [1] * 6
    for wanted in ("SGD", SGD):
        steps = tester.check("optimizer", f"--step-by={wanted}", pattern="SGD", made_of=SGD)
        assert len(steps) == 6


def test_one_class_twice(tester):
    stream = Stream()
    of(stream, 6, lambda: (stream.train(ADAM), stream.forward(), stream.update(ADAM)))
    steps = tester.make(stream).check("optimizer", made_of=ADAM)
    assert [step.batches for step in steps] == [1, 0] * 6
    assert len(tester.check("dataloader", "--step-by=dataloader", made_of=LOADER)) == 6


def test_closures(tester):
    """LBFGS: forward, backward and more inside of the update; an optimizer around another."""
    stream = Stream()
    lbfgs = "Optimizer.step#LBFGS.step"
    of(stream, 4, lambda: (stream.batch(), stream.label(
        lbfgs, *[stream.forward, stream.backward, lambda: stream.label(ZERO)] * 3,
        lambda: stream.update(SGD))))
    steps = tester.make(stream).check("optimizer", made_of=lbfgs)
    assert len(steps) == 4


def phases_of(tester, stream):
    """Host and GPU time, which the records say too."""
    tester.make(stream).check("optimizer")
    return {row["name"]: (row["host_ns"], row["gpu_ns"]) for row in tester.json()["phases"]}


def test_gradient_scaler(tester):
    """As PyTorch 2.11 records AMP: of the operators outside of labels, those that made nodes of the
    graph, which the next sequence number tells, and what they need are forward; what unscales and
    clips the gradients is the optimizer's; the value that scaler.step waits for is neither."""
    stream = Stream()

    def train(step):
        number = 48 + 3 * step

        def op(name, sequence=None, work=0, ns=10):
            stream.operator(name, ns=ns, work=work, sequence=sequence)
            stream.tick(5)
        stream.batch()
        op("aten::to", number, work=100)
        op("aten::linear", number, work=101)
        op("aten::mse_loss", number + 1, work=102)
        op("aten::mul", number + 2, work=103)          # the scaler's product with the loss
        op("aten::ones_like", work=104)
        stream.operator(BACKWARD, 1, AUTOGRAD, 15, 30)
        op("aten::reciprocal", number + 3, work=1000)
        op("aten::_amp_foreach_non_finite_check_and_unscale_", work=1001)
        op("aten::_foreach_norm", work=1002)
        op("aten::item", number + 3, work=5000, ns=2000)  # found_inf
        stream.label(SGD, lambda: op("aten::_foreach_add_", work=1003))
        op("aten::_amp_update_scale_", number + 3, work=1004)
        stream.label(ZERO)
        op("aten::item", number + 3, work=5001, ns=1000)  # loss.item()
        stream.call(function="cudaDeviceSynchronize", ns=700)
    for step in range(6):
        train(step)
    phases = phases_of(tester, stream)
    assert {name: gpu for name, (_, gpu) in phases.items()} == {
        "data": 0, "forward": 5 * 510, "backward": 5 * 30, "optimizer": 5 * 5010, "zero_grad": 0,
        "sync": 5 * 10001, "other": 0}
    assert phases["sync"][0] > 5 * 6700 and phases["forward"][0] < 5 * 400
    text = tester.run_verb("report", "--table=phases", tester.folder).stdout
    assert text.index("  zero_grad\n") < text.index("  sync\n") < text.index("  other\n")


@pytest.mark.parametrize("has_hooks", (False, True))
def test_closure_of_lightning(tester, has_hooks):
    """The training step and the backward pass lie in the optimizer's label; an optimizer's own
    operators run without gradients, and have no sequence numbers. Its hooks say more."""
    stream = Stream()

    def train(step):
        number = 30 + 2 * step

        def op(name, sequence=None, work=0):
            stream.operator(name, work=work, sequence=sequence)
            stream.tick(5)

        def forward():
            op("aten::addmm", number, work=100)
            stream.tick(3000)  # Python, between two operators of one phase
            op("aten::mse_loss", number + 1, work=101)
            op("aten::argmax", work=102)

        def training_step():
            stream.label(TRAINING_STEP, forward) if has_hooks else forward()
            stream.label(ZERO)
            stream.operator(BACKWARD, 1, MAIN, 15, 30)
            clip = [lambda: op("aten::_foreach_norm", number + 2, work=1000)]
            stream.label(CLIPPING, *clip) if has_hooks else clip[0]()
        stream.batch()
        stream.label(ADAM, training_step, lambda: op("aten::lerp_", work=1001),
                     lambda: op("aten::item", work=1002))
    for step in range(6):
        train(step)
    phases = phases_of(tester, stream)
    assert {name: gpu for name, (_, gpu) in phases.items()} == {
        "data": 0, "forward": 5 * 303, "backward": 5 * 30, "optimizer": 5 * 3003, "zero_grad": 0,
        "sync": 0, "other": 0}
    assert phases["forward"][0] > 5 * 3000 and phases["optimizer"][0] < 5 * 500


def test_skipped_update(tester):
    """AMP: a batch whose gradients overflow has no update."""
    stream = Stream()
    of(stream, 3, lambda: stream.train(SGD))
    of(stream, 1, lambda: (stream.batch(), stream.forward(), stream.backward()))
    of(stream, 3, lambda: stream.train(SGD))
    steps = tester.make(stream).check("optimizer", made_of=SGD)
    assert [step.batches for step in steps] == [1, 1, 1, 2, 1, 1]


def test_evaluation(tester):
    """It is in the step whose update comes next, which is the slowest."""
    stream = Stream()
    of(stream, 4, lambda: stream.train(SGD))
    of(stream, 5, lambda: (stream.batch(), stream.forward()))
    of(stream, 4, lambda: stream.train(SGD))
    steps = tester.make(stream).check("optimizer", made_of=SGD)
    assert [step.batches for step in steps] == [1, 1, 1, 1, 6, 1, 1, 1]
    text = tester.run_verb("report", "--table=steps", tester.folder).stdout
    begin, end = "difference between the slowest step, step 4 (", "and the median step, step"
    assert begin in text and end in text
    _, command, labels, *shown = text[text.index(begin):].partition("\n\n")[0].splitlines()
    assert labels.split() == ["slowest", "median", "count", "median", "count", "name"]
    assert " gpuprof report --step=4 --rank=0 " in command
    piece = command[command.index(" --step"):command.rindex(" ")].split()
    assert "calls" in tester.run_verb("report", *piece, tester.folder).stdout
    row = next(row for row in tester.json()["slowest_step"] if row["name"] == "aten::mm")
    assert (row["kind"], row["slowest_count"], row["median_count"]) == ("operator", 6, 1)
    same = {row["name"] for row in tester.json()["slowest_step"]
            if row["slowest_ns"] == row["median_ns"]}
    assert same and not same & {line.split()[-1] for line in shown}  # what is equal is not shown


def test_fused_into_the_backward_pass(tester):
    """An optimizer for each parameter is none; then the DataLoader tells."""
    stream = Stream()
    fused = "Optimizer.step#AdamW.step"
    of(stream, 5, lambda: (stream.batch(), stream.forward(), *(
        stream.backward([lambda: stream.label(fused, thread=AUTOGRAD)]) for _ in range(3))))
    steps = tester.make(stream).check("dataloader", made_of=LOADER)
    assert [step.partial for step in steps] == [False] * 4 + [True]
    assert tester.refused("--step-by=optimizer") == \
        "gpuprof: report: --step-by=optimizer: no label Optimizer.step# was recorded outside " \
        "the backward pass; record with 'gpuprof run --pytorch'\n"


def test_graphs(tester):
    """Inference: the graph that is launched most often; what failed or was captured is none."""
    stream = Stream()
    for _ in range(20):
        stream.call(function="cudaGraphUpload", args=(9, 0))
    stream.call(function="cudaGraphLaunch", args=(9, 0))
    of(stream, 6, lambda: [stream.call(function="cudaGraphLaunch", args=(graph, 0), work=30)
                           for graph in (16, 16, 32)])
    steps = tester.make(stream).check("graph")
    assert len(steps) == 12 and steps[-1].partial
    text = tester.run_verb("report", "--table=steps", tester.folder).stdout
    assert "a step is from one launch of the most launched graph to the next\n" in text


def silent(stream, ns, ran=0):
    """Until the next call; so long it ran."""
    stream.tick(ns)
    stream.add(TYPE_NUMBERS["silence"], MAIN, stream.now, args=(ns, ns, ran, 1))


@pytest.mark.parametrize("burst, ran, thread", [
    (20, 0, MAIN), (2, 0, MAIN), (1, 0, MAIN), (20, 1_500_000, MAIN), (20, 0, AUTOGRAD)])
def test_pauses_between_bursts_of_graphs(tester, burst, ran, thread):
    """A server waits for the next request: not in a step, unless each has such a wait; nor if it
    is another thread that waits, or if this one runs."""
    stream = Stream()

    def answer():
        for _ in range(burst):
            stream.call(function="cudaGraphLaunch", args=(16, 0), work=30, thread=thread)
        stream.call(function="cudaEventRecord", ns=500, thread=thread)
        silent(stream, 2_000_000, ran)
        stream.call(function="cudaMemcpyAsync")  # the request
        stream.call(function="cudaGraphLaunch", args=(32, 0), work=30, thread=thread)
    steps = tester.make(of(stream, 6, answer)).check("graph")
    ends = burst > 1 and not ran and thread == MAIN
    assert len(steps) == 6 * burst
    assert [step.end - step.begin > 1_900_000 for step in steps] == \
        ([False] * (burst - 1) + [not ends]) * 6
    assert [step.partial for step in steps] == [False] * (len(steps) - 1) + [not ends]


@pytest.mark.parametrize("rest_us, by", [(8_450, "graph"), (8_550, "none")])
def test_graphs_of_a_part_of_the_time(tester, rest_us, by):
    """20 launches within 0.95 ms are steps if that is a tenth of the time, or if wanted."""
    stream = Stream()
    begin = stream.now
    for _ in range(20):
        stream.call(function="cudaGraphLaunch", args=(16, 0), work=30)
        stream.now += 50_000
    stream.now = begin + 1_000_000 + 1000 * rest_us
    stream.call(work=30)
    steps = tester.make(stream).check(by)
    assert len(steps) == (20 if by == "graph" else 0)
    assert len(tester.check("graph", "--step-by=graph")) == 20


def test_graphs_of_which_some_are_passed_by(tester):
    stream = Stream()
    of(stream, 6, lambda: stream.call(function="cudaGraphLaunch", args=(16, 0), weight=10))
    tester.make(stream).check("none")


def test_none(tester):
    stream = Stream()
    of(stream, 1, lambda: stream.call(function="cudaGraphLaunch", args=(16, 0), work=30))
    of(stream, 3, stream.forward)
    tester.make(stream).check("none")
    text = tester.run_verb("report", "--table=steps,phases", tester.folder).stdout
    assert "\nsteps\nno steps: nothing marks them; use gpuprof_step(), " in text
    assert "\nphases of the steps\n  none: no whole step was recorded\n" in text
    assert text.count("  none") == 1
    missing = {"range": "the program did not call gpuprof_step() while it was recorded",
               "profiler": "no label ProfilerStep# was recorded; it needs a profiler in the "
                           "program "
                           "and 'gpuprof run --pytorch'",
               "dataloader": "no label enumerate(DataLoader)# was recorded; record with 'gpuprof "
                             "run "
                             "--pytorch'",
               "graph": "no graph was launched twice"}
    for by, why in missing.items():
        assert tester.refused(f"--step-by={by}") == f"gpuprof: report: --step-by={by}: {why}\n"
    lists = "; 'gpuprof report --table=nvtx_sum' lists the names\n"
    assert tester.refused("--step-by=Lion") == \
        "gpuprof: report: --step-by: no range, label or optimizer is named 'Lion'" + lists
    assert tester.refused("--step-range=iteration *") == \
        "gpuprof: report: --step-range: no range or label is named 'iteration *'" + lists


def test_the_first_that_applies(tester):
    stream = Stream()

    def iteration():
        stream.label(f"ProfilerStep#{next(numbers)}", lambda: stream.train(SGD))
        stream.call(function="cudaGraphLaunch", args=(16, 0))
    numbers = itertools.count(7)
    of(stream, 4, iteration)
    steps = tester.make(stream).check("profiler")
    assert [step.number for step in steps] == [7, 8, 9, 10]
    for by in ("optimizer", "dataloader", "graph"):
        assert len(tester.check(by, f"--step-by={by}")) == 4
    for number in (100, 110, 120):
        stream.add(STEP, MAIN, args=(number,))
        stream.forward()
    tester.folder = tester.make_records(stream.lines(), name="more")
    assert [step.number for step in tester.check("range")] == [100, 110, 120]
    assert len(tester.check("profiler", "--step-by=profiler")) == 4


def test_patterns(tester):
    """Ranges with numbers in their names keep them; those of one name are counted."""
    stream = Stream()
    for i in range(5):
        stream.add(PUSH, MAIN, args=(0,) * 6, text=f"iteration {17 + 2 * i}")
        stream.label("part 3", stream.forward)
        stream.add(POP, MAIN, args=(0,))
        stream.tick(50)
    tester.make(stream)
    steps = tester.check("name", "--step-range=iteration *", pattern="iteration *")
    assert [step.number for step in steps] == [17, 19, 21, 23, 25]
    steps = tester.check("name", "--step-by=part 3", pattern="part 3", made_of="part 3")
    assert [step.number for step in steps] == [0, 1, 2, 3, 4]
    assert len(tester.check("name", "--step-range=iter?tion 2*", pattern="iter?tion 2*")) == 3
    assert len(tester.check("name", "--step-range=*t*n 1?", pattern="*t*n 1?")) == 2
    assert len(tester.check("name", "--step-range=*", pattern="*")) == 5
    assert tester.json("--step-range=*")["steps_overlapping"] == 5
    assert tester.refused("--step-range=iteration") and tester.refused("--step-range=[a-z]*")
    both = tester.run_verb("report", "--step-range=x", "--step-by=graph", tester.folder, status=2)
    assert "--step-range and --step-by=graph cannot be combined" in both.stderr


# ---- what is said ------------------------------------------------------------------------------

def test_open_steps(tester):
    """Of a program that was killed: the last step is there, and in no mean."""
    stream = Stream()
    for number in range(4):
        stream.add(STEP, MAIN, args=(number,))
        stream.forward()
    stream.begin("aten::mm")
    steps = tester.make(stream).check("range")
    assert [step.partial for step in steps] == [False, False, False, True]
    stream.begin("ProfilerStep#4", 7)
    stream.call(work=200)
    tester.folder = tester.make_records(stream.lines(), name="labelled")
    [step] = tester.check("profiler", "--step-by=profiler")
    assert step.partial and step.parts["kernels"] >= 200


def test_processes(tester):
    """Rates of processes add up; a process without steps is said."""
    streams = [Stream(rank) for rank in range(3)]
    for times, stream in zip((4, 6), streams):
        of(stream, times, lambda stream=stream: stream.train(SGD))
    of(streams[2], 3, streams[2].forward)
    tester.make(*streams).check("optimizer", "--samples-per-step=32", samples=32)
    report = tester.json("--samples-per-step=32")
    rates = 0
    for rank in "01":
        ns = [row["duration_ns"] for row in report["steps"]
              if row["rank"] == rank and not row["partial"]]
        rates += 32 * len(ns) * 1e9 / sum(ns)
    assert report["samples_per_second"] == pytest.approx(rates, rel=1e-6)
    text = tester.run_verb("report", "--table=steps", tester.folder).stdout
    assert f"a step is from the end of one update to the end of the next: {SGD}\n" in text
    assert "8 whole steps in 2 of 3 processes; 2 partial, not in the means\n" in text
    assert "step 5 of rank 1" in text and "step 0 of rank 0, partial" in text


def test_csv(tester):
    stream = Stream()
    of(stream, 6, lambda: stream.train(SGD))
    report = tester.make(stream).json()
    done = tester.run_verb("report", "--format=csv", "--table=steps,phases", tester.folder)
    tables = csv_tables.tables(done.stdout)
    for name, key in (("step_stats", "duration_ns"), ("step_parts", "total_ns"),
                      ("steps", "batches"), ("phases", "gpu_ns")):
        assert [row[key] for row in tables[name]] == [str(row[key]) for row in report[name]] != []
    assert "true" in {row["partial"] for row in tables["steps"]}


def test_csv_says_who_was_waited_for(make_gpu, run_verb):
    """Rank 1 is late to the third reduction of ten, and so on."""
    done = run_verb("report", "--format=csv", "--table=steps", make_gpu("late", 2))
    rows = csv_tables.tables(done.stdout)["steps"]
    assert [(row["step"], row["rank"], row["waited_for"], row["waited_for_ns"]) for row in rows
            if row["waited_for"]] == [(str(step), "0", "rank 1", "20000000")
                                      for step in (2, 5, 8, 11)]
    assert [(row["step"], row["rank"]) for row in rows if row["partial"] == "true"] == [
        ("11", str(rank)) for rank in range(2)]


def test_communication_says_what_it_has(tester):
    """With the waits for other ranks it is not what the first screen calls so, but for programs."""
    stream = Stream()
    of(stream, 6, lambda: stream.train(SGD))
    report = tester.make(stream).json()
    text = tester.run_verb("report", "--table=steps", tester.folder).stdout
    assert "  communication and waits\n" in text and " comm. + waits " in text
    assert "communication" in {row["name"] for row in report["step_parts"]}


def test_parts_have_one_name_for_people(tester):
    """In lists, columns, what is different, and GUIDE; programs have the old ones."""
    stream = Stream()
    of(stream, 6, lambda: stream.train(SGD))
    report = tester.make(stream).json()
    text = tester.run_verb("report", "--table=steps", tester.folder).stdout
    guide = (ROOT / "formats/answers.md").read_text()
    keys = [row["name"] for row in report["step_parts"]]
    assert keys == ["kernels", "copies", "communication", "runtime", "dataloader", "operators",
                    "other"]
    titles = [line.rpartition("  ")[2] for line in text.partition("of the steps' time\n")[2]
              .partition("\n\n")[0].splitlines()]
    heading, = (line for line in text.splitlines() if line.endswith("  which"))
    for key, title in zip(keys, titles, strict=True):
        assert f"| {title} (`{key}_ns`" in guide
        assert title == "communication and waits" or f" {title} " in heading


def test_limit_and_order(tester):
    """Of steps, not of what sums them up."""
    stream = Stream()
    for i in range(12):
        stream.add(STEP, MAIN, args=(i,))
        stream.operator("aten::mm", ns=100 - 7 * i)
    whole = tester.make(stream).json()
    made = tester.json("--limit=4", "--sort=step")
    assert [row["step"] for row in made["steps"]] == [0, 1, 2, 3] and made["steps_left_out"] == 8
    made = tester.json("--limit=4", "--sort=duration")
    assert [row["step"] for row in made["steps"]] == [0, 1, 2, 3]
    for key in ("step_stats", "step_parts", "phases"):
        assert made[key] == whole[key] and len(whole[key]) > 4


@pytest.mark.parametrize("word", ("0", "-1", "x", "1e9", "8x", "8.", "nan"))
def test_wrong_samples(tester, word):
    done = tester.run_verb("report", f"--samples-per-step={word}", "nowhere", status=2)
    assert done.stderr == \
        f"gpuprof: report: --samples-per-step: '{word}' is not a number of samples\n"


def test_only_where_asked_for(tester):
    """Three times through the recording is only for who wants it; all else is as it was."""
    stream = Stream()
    of(stream, 4, lambda: stream.train(SGD))
    tester.make(stream)
    plain = json.loads(tester.run_verb("report", "--format=json", tester.folder).stdout)
    assert not [key for key in plain if key.startswith(("step", "slowest", "phases"))]
    for option in ("--step-by=optimizer", "--samples-per-step=8"):
        more = json.loads(tester.run_verb("report", "--format=json", option, tester.folder).stdout)
        assert {key: more[key] for key in plain} == plain and more["steps_whole"] == 3


def test_room(tester):
    """So many steps and no more, by the size of the files; the others are counted."""
    stream = Stream()
    for _ in range(9000):
        stream.add(STEP, MAIN, args=(1,))
    tester.make(stream)
    size = sum(path.stat().st_size for path in tester.folder.iterdir())
    report = tester.json()
    assert len(report["steps"]) == 4096 + size // 64
    assert len(report["steps"]) + report["steps_beyond"] == 9000


@pytest.mark.parametrize("scenario,updates,status", (("train", 8, 0),
                                                     ("train-killed", 7, -signal.SIGKILL)))
def test_a_program(library, tmp_path, tester, scenario, updates, status):
    """Through libgpuprof, with and without an end."""
    program, path = toolchain.torch_ops()
    tester.folder = tmp_path / "out"
    (tmp_path / "live").mkdir()
    env = toolchain.environment(tester.folder, library, GPUPROF_LIVE=tmp_path / "live",
                                LD_LIBRARY_PATH=path, SIMTORCH_LAYOUT="2.11",
                                SIMTORCH_LOG=tmp_path / "log", GPUPROF_PYTORCH="shapes")
    assert toolchain.run([program, scenario], env, status=status).stderr == ""
    [log] = tmp_path.glob("log.*")
    rows = [line.split("\t") for line in log.read_text().splitlines()]
    assert sum(SGD in row for row in rows) == 8
    steps = tester.json()["steps"]
    assert [(row["step"], row["partial"], row["batches"], row["made_of"]) for row in steps] == \
        [(i, i == 0, 1, SGD) for i in range(updates)]
    for row in steps:
        assert sum(row[f"{part}_ns"] for part in step_truth.PARTS) == row["duration_ns"]
        assert row["operators_ns"] and row["dataloader_ns"] and row["runtime_ns"]
    phases = {row["name"]: row["host_ns"] for row in tester.json()["phases"]}
    assert phases.keys() == {*step_truth.PHASES, "other"} and not phases.pop("sync")
    assert all(phases.values())
    loaded = tester.json("--step-by=dataloader")["steps"]
    assert [row["partial"] for row in loaded] == [False] * 7 + [True]


# ---- in traces ---------------------------------------------------------------------------------

def traced_steps(tester, *options):
    trace = json.loads(tester.run_verb("merge", *options, tester.folder).stdout)
    rows = [(round(e["ts"] * 1000), round(e["dur"] * 1000), e["name"], e["args"].get("made of"))
            for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
    return sorted(rows)


@pytest.mark.parametrize("by,made_of", (("optimizer", SGD), ("dataloader", LOADER),
                                        ("graph", "launches of a graph"), ("range", "gpuprof_step"),
                                        ("iteration *", None)))
def test_trace(tester, by, made_of):
    """The same steps as in the report; those that touch are 1 ns apart."""
    stream = Stream()

    def iteration():
        number = next(numbers)
        stream.add(STEP, MAIN, args=(number,))
        stream.label(f"iteration {number}", lambda: stream.train(SGD))
        stream.call(function="cudaGraphLaunch", args=(16, 0))
    numbers = itertools.count(7)
    of(stream, 5, iteration)
    rows = tester.make(stream).json(f"--step-by={by}")["steps"]
    assert len(rows) == 5
    touching = {row["begin_ns"] for row in rows}
    assert traced_steps(tester, f"--step-by={by}") == [
        (row["begin_ns"], row["duration_ns"] - (row["begin_ns"] + row["duration_ns"] in touching),
         f"ProfilerStep#{row['step']}", made_of or f"iteration {row['step']}") for row in rows]
    if by in ("range", "iteration *"):
        option = "--step-range=iteration *" if made_of is None else "--step-by=range"
        assert traced_steps(tester, option) == traced_steps(tester, f"--step-by={by}")


def test_trace_of_a_profiler(tester):
    """Its own labels are the steps: no others are made, nor is the whole recording one."""
    stream = Stream()
    for number in range(4):
        stream.label(f"ProfilerStep#{number}", lambda: stream.train(SGD))
    rows = tester.make(stream).json()["steps"]
    assert [(name, made_of) for _, _, name, made_of in traced_steps(tester)] == \
        [(f"ProfilerStep#{row['step']}", None) for row in rows]
    done = tester.run_verb("merge", "--step-by=graph", tester.folder, status=2)
    assert (done.stdout, done.stderr) == \
        ("", "gpuprof: merge: --step-by=graph: no graph was launched twice\n")
    # And once more in the row of steps, under names that no reader counts as steps.
    events = json.loads(tester.run_verb("merge", tester.folder).stdout)["traceEvents"]
    shown = [e for e in events if e.get("cat") == "step"]
    assert [e["name"] for e in shown] == [f"step {row['step']}" for row in rows]
    row, = {(e["pid"], e["tid"]) for e in shown}
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"
            and (e["pid"], e["tid"]) == row] == ["steps"]


def test_trace_of_a_rank(tester, tmp_path):
    """Each file has the steps of its own process."""
    streams = [Stream(rank) for rank in range(2)]
    for times, stream in zip((4, 6), streams):
        of(stream, times, lambda stream=stream: stream.train(SGD))
    tester.make(*streams).run_verb("merge", "--per-rank", "-o", tmp_path / "ranks", tester.folder)
    for rank, times in enumerate((4, 6)):
        with gzip.open(tmp_path / "ranks" / f"rank_{rank}.pt.trace.json.gz") as file:
            events = json.load(file)["traceEvents"]
        assert sorted(e["name"] for e in events if e["name"].startswith("ProfilerStep#")) == \
            [f"ProfilerStep#{number}" for number in range(times)]


def test_stopped_where_no_gpu_is_recorded(run_verb, make_records):
    """No walk surveys what a device did: a step in which recording was stopped is partial there,
    too, in whichever walk steps are found."""
    def lines(rank):
        yield from (f"process {rank}", "meta gpu_rows=absent: there is no CUPTI")
        for i in range(6):
            yield f"{STEP} 1 {1000 * i + 1000} 0 0 0 0 0 {i} "
            yield f"{CALL} 1 {1000 * i + 1100} {10 + 50 * (i == 2)} 0 0 cudaFree 0 0 "
            if i in (2, 3):
                yield f"{PAUSE} 1 {1000 * i + 1500} 0 0 0 0 0 {3 - i},0,0 "
    folder = make_records(line for rank in range(2) for line in lines(rank))
    for jobs in ("-j1", "-j2"):
        for tables in ("functions", "steps"):
            made = run_verb("report", jobs, "--format=json", f"--table={tables}", folder)
            assert json.loads(made.stdout)["overview"]["steps"]["count"] == 6, (jobs, tables)


NOTES = ("another client of CUPTI's has the GPU's records from here on",
         "the GPU's records are gpuprof's again")


@pytest.mark.parametrize("ends,blind", [
    ((2500, 4100), {2, 3, 4}), ((3000, 4000), {3}), ((3500,), {3, 4, 5}), ((10,), {*range(6)})],
    ids=["in steps", "a step", "given up", "in all"])
def test_steps_without_the_gpus_rows(run_verb, make_records, ends, blind):
    """They are whole, and the GPU's share of a step is of those of which it is known."""
    lines = ["process 0"]
    for i in range(6):
        lines += [f"{STEP} 1 {1000 * i} 0 0 0 0 0 {i} ",
                  f"{CALL} 1 {1000 * i + 100} 50 {i + 1} 0 cudaLaunchKernel 0 - "]
        if i not in blind:
            lines.append(f"{TYPE_NUMBERS['kernel']} 2 {1000 * i + 120} 600 {i + 1} 0 0 0 0,1,7,1 ")
    lines.append(f"{STEP} 1 6000 0 0 0 0 0 6 ")
    if len(ends) == 2:
        lines += [f"{TYPE_NUMBERS['note']} {3 + at} {ns} 0 0 0 0 0 - {NOTES[at]}"
                  for at, ns in enumerate(ends)]
    else:
        lines.append(f"{TYPE_NUMBERS['step_down']} 3 {ends[0]} 0 0 0 5 0 1,1 CUPTI off")
    folder = make_records(lines)
    made = json.loads(run_verb("report", "--format=json", "--table=steps,phases", folder).stdout)
    assert {row["step"] for row in made["steps"] if row["blind"]} - {6} == blind
    assert (made["steps_whole"], made["steps_blind"]) == (6, len(blind))
    parts = {row["name"]: (row["total_ns"], row["mean_ns"]) for row in made["step_parts"]}
    known = 6 - len(blind)
    assert parts["kernels"] == (600 * known, 600 if known else 0)
    assert sum(total for total, _ in parts.values()) == 1000 * (known or 6)
    assert sum(row["host_ns"] for row in made["phases"]) == 1000 * (known or 6)
    assert {row["steps"] for row in made["phases"]} == {known or 6}
    text = run_verb("report", "--table=steps", folder).stdout
    assert text.count("GPU not known") == len(blind) + (len(ends) == 1)
    others = "; parts and phases leave them out" if known else ""
    end = "s"[:len(blind) != 1]
    assert f"\nGPU time is incomplete for {len(blind)} step{end}{others}\n" in text


def test_what_lies_in_a_pause_is_no_step(run_verb, make_records):
    """A dump of a flight recorder may have some that were made before its window."""
    def lines(ends_ns):
        yield "process 0"
        yield f"{PAUSE} 1 500 0 0 0 0 0 1,0,0 "
        for i in range(6):
            yield f"{STEP} 1 {1000 * i + 1000} 0 0 0 0 0 {i} "
            yield f"{CALL} 1 {1000 * i + 1100} 10 0 0 cudaFree 0 0 "
        yield f"{PAUSE} 1 {ends_ns} 0 0 0 0 0 0,0,0 "
    folder = make_records(lines(3500))
    report = json.loads(run_verb("report", "--format=json", "--table=steps", folder).stdout)
    assert [(step["step"], step["partial"]) for step in report["steps"]] == \
        [(2, True), (3, False), (4, False), (5, True)]
    folder = make_records(lines(9000), name="none")
    assert "steps" not in run_verb("report", folder).stdout
    said = run_verb("report", "--step-by=range", "--table=steps", folder, status=2).stderr
    assert said == "gpuprof: report: recording was off during all of its steps\n"
