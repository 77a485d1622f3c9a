# SPDX-License-Identifier: Apache-2.0
"""export --format=pprof, folded and speedscope: the costs of stacks that are known.

pprof's file is read by a decoder from the numbers of fields that profile.proto publishes."""

import collections
import gzip
import json

import pytest

from made_stacks import TRAIN, WEIGHTS, folded
from perfetto_reader import fields, one

TYPES = [("calls", "count"), ("host_time", "nanoseconds"), ("gpu_work", "count"),
         ("gpu_time", "nanoseconds"), ("allocated", "bytes")]
TITLE = "rank 0: python train.py (testhost, pid 1000)"


class Profile:
    """samples: [(frames from the outermost on, {label: text}, {type: value})]; frames are
    (name, file, line, module, address, mangled name)."""

    def __init__(self, data):
        parts = collections.defaultdict(list)
        for number, value in fields(data):
            parts[number].append(value)
        self.texts = [text.decode() for text in parts[6]]
        assert self.texts[0] == "" and len(set(self.texts)) == len(self.texts)
        self.types = [tuple(self.texts[one(t)[n]] for n in (1, 2)) for t in parts[1]]
        self.mappings = self.by_id(parts[3])
        self.functions = self.by_id(parts[5])
        self.locations = self.by_id(parts[4])
        self.samples = [self.sample(list(fields(s))) for s in parts[2]]
        self.comments = [self.texts[c] for c in parts[13]]
        [self.begin], [self.duration], [default] = parts[9], parts[10], parts[14]
        self.default = self.texts[default]

    @staticmethod
    def by_id(messages):
        found = {one(m)[1]: one(m) for m in messages}
        assert len(found) == len(messages) and 0 not in found
        return found

    def frame(self, location):
        told = self.locations[location]
        line = one(told[4])
        function = self.functions[line[1]]
        mapping = self.mappings[told[2]] if told[2] else {5: 0}
        return (self.texts[function[2]], self.texts[function[4]], line[2],
                self.texts[mapping[5]], told[3], self.texts[function[3]])

    def sample(self, sample):
        labels = [one(value) for number, value in sample if number == 3]
        values = [value for number, value in sample if number == 2]
        assert len(values) == len(self.types)
        return (tuple(self.frame(value) for number, value in sample if number == 1)[::-1],
                {self.texts[label[1]]: self.texts[label[2]] for label in labels},
                {name: value for (name, _), value in zip(self.types, values)})

    def sums(self, name):
        found = collections.Counter()
        for frames, _, values in self.samples:
            found[tuple(label(f) for f in frames)] += values[name]
        return {stack: value for stack, value in found.items() if value}


def label(frame):
    """As flame graphs have it."""
    name, file, line = frame[:3]
    return f"{name} ({file.rpartition('/')[2]}:{line})" if file else name


@pytest.fixture(name="profile")
def fixture_profile(run_verb, tmp_path):
    def export(folder, *options):
        run_verb("export", folder, *options, "-o", "x.pb.gz")
        return Profile(gzip.decompress((tmp_path / "x.pb.gz").read_bytes()))
    return export


def test_costs_by_stack(profile, make_stacks):
    """All at once, each as `flame` has it."""
    found = profile(make_stacks(*TRAIN))
    assert found.types == TYPES and found.default == "host_time"
    for weight, name in (("host", "host_time"), ("gpu", "gpu_time"), ("calls", "calls"),
                         ("bytes", "allocated")):
        assert found.sums(name) == WEIGHTS[weight]
    assert sum(found.sums("gpu_work").values()) == 5
    assert {labels["process"] for _, labels, _ in found.samples} == {TITLE}
    assert {labels.get("thread") for _, labels, _ in found.samples} == \
        {"python (thread 1000)", None}  # what has no stack is of no thread
    assert found.duration >= 410100 - 900 and found.begin > 1 << 60
    assert len(found.comments) == 1 and found.comments[0].startswith("gpuprof ")


def test_what_frames_are(profile, make_stacks):
    found = profile(make_stacks(*(line.replace("module 1 -", "module 1 abc123")
                                  for line in TRAIN)))
    frames = {frame for frames, _, _ in found.samples for frame in frames}
    assert ("Trainer.step", "/home/me/train.py", 12, "", 0, "") in frames
    assert ("libtrain.so+0x100", "", 0, "/nowhere/libtrain.so", 0x100, "") in frames
    assert ("gemm(float*)", "", 0, "", 0, "_Z4gemmPf") in frames
    [mapping] = found.mappings.values()
    assert found.texts[mapping[6]] == "abc123" and [mapping[n] for n in range(7, 11)] == [1] * 4


def test_losses_and_pieces(profile, make_gpu):
    lost = profile(make_gpu("loss", 1))
    assert any(": lost: " in comment for comment in lost.comments)
    folder = make_gpu("train", 2, 3, name="more")
    both = sum(profile(folder).sums("calls").values())
    single = [sum(profile(folder, f"--rank={rank}").sums("calls").values()) for rank in (0, 1)]
    assert 0 < single[0] < both == sum(single)


def test_same_as_flame(run_verb, make_stacks, tmp_path):
    folder = make_stacks(*TRAIN)
    for weight in WEIGHTS:
        said = run_verb("export", folder, "--weight", weight, "-o", "x.folded").stderr
        assert ("gpuprof: [no stack]: " in said) == (("[no stack]",) in WEIGHTS[weight])
        run_verb("export", folder, "--weight", weight, "-o", "x.json")
        assert folded((tmp_path / "x.folded").read_text()) == {
            ";".join(stack): value for stack, value in WEIGHTS[weight].items()}
        run_verb("flame", folder, "--weight", weight, "-o", "y.json")
        assert json.loads((tmp_path / "x.json").read_text()) == \
            json.loads((tmp_path / "y.json").read_text())


def test_to_a_pipe(run_collector, make_stacks):
    folder = make_stacks(*TRAIN)
    result = run_collector("export", folder, "--format=folded", "-o", "-")
    assert result.returncode == 0 and folded(result.stdout)
    full = run_collector("export", folder, "--format=pprof", "-o", "/dev/full")
    assert full.returncode == 1 and "No space left" in full.stderr.splitlines()[-1]
