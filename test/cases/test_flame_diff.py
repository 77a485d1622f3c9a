# SPDX-License-Identifier: Apache-2.0
"""`gpuprof flame NEW... --against OLD...`: two sides as one graph, held against arithmetic on
stacks that are known."""

import re
import xml.etree.ElementTree

import pytest

from made_stacks import rectangles

PLACES = {"main": (1, 40, "train.py"), "step": (2, 12, "train.py"), "forward": (3, 7, "model.py"),
          "loss": (4, 9, "model.py"), "<b>&;": (5, 3, "x.py")}


def script(stacks, moved=0, pid=0):
    """A recording: {stack of PLACES: ns of its one call}, lines `moved` in an edit."""
    lines = [f"process {pid}", "meta stacks=x", "meta python=3.11.7"]
    lines += [f"python {number} {line + moved} /home/me/{file}\t{name}"
              for name, (number, line, file) in PLACES.items()]
    for i, (stack, ns) in enumerate(stacks.items(), 1):
        frames = " ".join(f"p{PLACES[name][0]}" for name in reversed(stack))
        lines += [f"stack {i} 0 {frames}", f"call cudaMalloc {i * 10_000_000} {ns} {i} {i} 64"]
    return lines


def shown(stack):
    frames = [f"{name.replace(';', ':')} ({PLACES[name][2]})" for name in stack]
    return ";".join([*frames, "cudaMalloc"])


def folded(text):
    """stack -> (before, now), without the program."""
    rows = re.findall(r"^[^;]+;(.*) (\d+) (\d+)$", text, re.MULTILINE)
    assert len(rows) == text.count("\n")
    return {stack: (int(before), int(now)) for stack, before, now in rows}


OLD = {("main", "step", "forward"): 40_000, ("main", "step", "loss"): 10_000,
       ("main", "<b>&;"): 20_000, ("main", "step"): 5_000}
NEW = {("main", "step", "forward"): 60_000, ("main", "step", "loss"): 10_000,
       ("main", "loss"): 8_000, ("main", "step"): 4_000}
BOTH = {shown(stack): (OLD.get(stack, 0), NEW.get(stack, 0)) for stack in {**OLD, **NEW}}


def test_folded(run_verb, make_stacks):
    """As difffolded.pl has it: what was, then what is; lines and processes' numbers may differ."""
    old = make_stacks(*script(OLD), name="old")
    new = make_stacks(*script(NEW, moved=3, pid=7), name="new")
    assert folded(run_verb("flame", new, "--against", old).stdout) == BOTH


def test_runs_are_averaged(run_verb, make_stacks):
    """A run that has nothing of a stack counts, too."""
    half = {stack: ns // 2 for stack, ns in NEW.items()}  # with NEW and a third: half on average
    runs = [make_stacks(*script(stacks), name=str(i))
            for i, stacks in enumerate((NEW, half, {("main",): 9_000}, OLD))]
    found = folded(run_verb("flame", *runs[:3], "--against", runs[3]).stdout)
    expected = {stack: (before, now // 2) for stack, (before, now) in BOTH.items()}
    assert found == {**expected, shown(("main",)): (0, 3_000)}


def test_shares(run_verb, make_stacks):
    """Of twice as long a run, nothing has changed."""
    twice = {stack: 2 * ns for stack, ns in OLD.items()}
    old, new = make_stacks(*script(OLD), name="old"), make_stacks(*script(twice), name="new")
    assert folded(run_verb("flame", new, "--against", old, "--shares").stdout) == \
        {shown(stack): (2 * ns, 2 * ns) for stack, ns in OLD.items()}


def test_what_a_build_moves(run_verb, make_stacks):
    """Offsets in modules and addresses are not what frames are told apart by."""
    def recording(name, offset, address, ns):
        return make_stacks("process 0", "meta stacks=x", "module 1 - /nowhere/libtrain.so",
                           f"stack 1 0 1+{offset} a{address} 1+2000",
                           f"call cudaMalloc 1000 {ns} 1 1 64", name=name)
    old, new = recording("old", "100", "dead", 500), recording("new", "140", "beef", 700)
    assert folded(run_verb("flame", new, "--against", old).stdout) == \
        {"libtrain.so;[unknown address];libtrain.so;cudaMalloc": (500, 700)}


def titles(path):
    """label -> [(what its title says, fill)]"""
    found = {}
    for group in xml.etree.ElementTree.parse(path).getroot():
        if group.get("class") == "f":
            label, _, text = group[0].text.rpartition(": ")
            found.setdefault(label, []).append((text, group[1].get("fill")))
    return found


def is_red(fill):
    red, _, blue = (int(fill[i:i + 2], 16) for i in (1, 3, 5))
    return red > blue + 8


def is_blue(fill):
    red, _, blue = (int(fill[i:i + 2], 16) for i in (1, 3, 5))
    return blue > red + 8


def test_picture(run_verb, make_stacks, tmp_path):
    """As wide as it is on the side that has more of it, red where it is more."""
    old, new = make_stacks(*script(OLD), name="old"), make_stacks(*script(NEW, moved=1), name="new")
    run_verb("flame", new, "--against", old, "-o", "x.svg")
    said, wide = titles(tmp_path / "x.svg"), rectangles(tmp_path / "x.svg")
    most = sum(max(both) for both in BOTH.values())
    (text, fill), = said["forward (model.py)"]
    assert text == "60.000 us, 73.17 %, 40.000 us before, +50.0 %" and is_red(fill)
    (text, fill), = said["step (train.py)"]
    assert text == "74.000 us, 90.24 %, 55.000 us before, +34.5 %" and is_red(fill)
    (same, fill), (new_text, new_fill) = sorted(said["loss (model.py)"])
    assert same == "10.000 us, 12.20 %, 10.000 us before, +0.0 %"
    assert not is_red(fill) and not is_blue(fill)
    assert new_text == "8.000 us, 9.76 %, 0 ns before, new" and is_red(new_fill)
    (text, fill), = said["<b>&; (x.py)"]
    assert text == "0 ns, 0.00 %, 20.000 us before, gone" and is_blue(fill)
    widths = {label: sorted(width for _, width, _ in found) for label, found in wide.items()}
    ns_wide = widths["all"][0] / most
    assert widths["<b>&; (x.py)"] == [pytest.approx(20_000 * ns_wide, abs=0.02)]
    assert widths["main (train.py)"] == [pytest.approx(most * ns_wide, abs=0.02)]
    text = (tmp_path / "x.svg").read_text()
    assert "82.000 us, 75.000 us before, +9.3 %" in text and "<b>" not in text
    assert f"now: {new}; before: {old}" in text


def test_wrong_usage(run_verb, make_stacks):
    folder = make_stacks(*script(OLD), name="old")
    for words, said in ((("--against", folder), "both before and after"),
                        ((folder, "--against"), "both before and after"),
                        ((folder, "--shares"), "after --against"),
                        ((folder, "--against", folder, "-o", "x.json"), "speedscope")):
        assert said in run_verb("flame", *words, status=2).stderr
