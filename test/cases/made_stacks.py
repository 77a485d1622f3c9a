# SPDX-License-Identifier: Apache-2.0
"""What the tests of stacks share: a recording whose stacks are known, as a script for
test/unit/make_stacks.c, and readers of what is made of it."""

import json
import re
import subprocess
import xml.etree.ElementTree

import toolchain

FLAGS = ("-O2", "-Wl,--build-id=sha1", "-fno-ipa-icf")

TRAIN = (
    "process 0", "meta stacks=libunwind", "meta python=3.11.7",
    "module 1 - /nowhere/libtrain.so",
    "python 1 40 /home/me/train.py\t<module>",
    "python 2 12 /home/me/train.py\tTrainer.step",
    "python 3 7 /home/me/model.py\tModel.forward",
    "stack 1 0 1+100 p3 p2 p1 1+2000",
    "stack 2 0 1+100 p2 p1 1+2000",
    "stack 3 2 1+300 p3 p2 p1",  # borrowed
    "stack 4 1 1+400 adead",  # cut, and without Python frames
    "push 900 forward",
    "call cudaLaunchKernel 1000 500 11 1 0",
    "call cudaLaunchKernel 1600 300 16 1 0",
    "call cudaMalloc 2000 100000 12 2 4096",
    "call cudaLaunchKernel 200000 700 13 3 0",
    "call cudaLaunchKernel 300000 900 14 4 0",
    "call cudaFree 400000 300 15 0 0",  # without a stack
    "pop 500000",
    "name 1 _Z4gemmPf",
    "kernel 1 2000 30000 11", "kernel 1 33000 7000 16", "kernel 1 210000 40000 13",
    "kernel 2 310000 5000 14", "kernel 2 410000 100 15",
)
MODULE, STEP, FORWARD = "<module> (train.py:40)", "Trainer.step (train.py:12)", \
    "Model.forward (model.py:7)"
BORROWED = "[borrowed: the thread that waits for this one]"
CUT = "[cut: deeper frames are not recorded]"
FIRST = ("libtrain.so+0x2000", MODULE, STEP, FORWARD, "libtrain.so+0x100", "cudaLaunchKernel")
SECOND = ("libtrain.so+0x2000", MODULE, STEP, "libtrain.so+0x100", "cudaMalloc")
THIRD = (MODULE, STEP, FORWARD, BORROWED, "libtrain.so+0x300", "cudaLaunchKernel")
FOURTH = (CUT, "[range forward]", "0xdead", "libtrain.so+0x400", "cudaLaunchKernel")
WEIGHTS = {
    "host": {FIRST: 800, SECOND: 100000, THIRD: 700, FOURTH: 900, ("[no stack]",): 300},
    "gpu": {(*FIRST, "gemm(float*)"): 37000, (*THIRD, "gemm(float*)"): 40000,
            (*FOURTH, "kernel 2"): 5000, ("[no stack]",): 100},
    "calls": {FIRST: 2, SECOND: 1, THIRD: 1, FOURTH: 1, ("[no stack]",): 1},
    "bytes": {SECOND: 4096},
}


def build_frames(*flags):
    return toolchain.build("frames.c", *FLAGS, *flags)


def offsets_of(program):
    """What a program of frames.h prints: label -> offset in hexadecimal digits."""
    output = subprocess.run([program], check=True, capture_output=True, text=True, timeout=20)
    return dict(line.split() for line in output.stdout.splitlines() if len(line.split()) == 2)


def build_id(program):
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True)
    return re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)[1]


def one_call(module, offset):
    return ("process 0", "meta stacks=made up", module, f"stack 1 0 1+{offset}",
            "call cudaMalloc 1000 500 1 1 4096")


def folded(text):
    lines = [line.rpartition(" ") for line in text.splitlines()]
    return {stack.split(";", 1)[1]: int(number) for stack, _, number in lines}


def rectangles(path):
    """label -> (x, width, y) of an SVG's frames."""
    found = {}
    for group in xml.etree.ElementTree.parse(path).getroot():
        if group.get("class") == "f":
            title, rectangle = group[0].text, group[1]
            found.setdefault(title.rpartition(": ")[0], []).append(
                (float(rectangle.get("x")), float(rectangle.get("width")),
                 float(rectangle.get("y"))))
    return found


def trace_of(tmp_path, name):
    return json.loads((tmp_path / name).read_text())


def stack_by_frames(trace, event):
    names, at = [], event.get("sf")
    while at is not None:
        frame = trace["stackFrames"][str(at)]
        assert set(frame) <= {"name", "category", "parent"}
        names.append(frame["name"])
        at = frame.get("parent")
    return names


def check_speedscope(document):
    """The rules of speedscope's schema for what is used of it."""
    assert set(document) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex",
                             "exporter"}
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert isinstance(document["exporter"], str) and isinstance(document["name"], str)
    frames = document["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 0), int)
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples",
                                "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds",
                                   "seconds", "bytes")
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= index < len(frames) for sample in profile["samples"] for index in sample)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
    assert 0 <= document["activeProfileIndex"] < max(1, len(document["profiles"]))


def rows_of(run_verb, folder, by, *options):
    report = json.loads(run_verb("report", f"--by={by}", *options, "--format=json", folder).stdout)
    return report[f"calls_by_{by.replace('-', '_')}"], report
