# SPDX-License-Identifier: Apache-2.0
"""Which kernels `gpuprof diff` takes for the same: the pairs of lists in kernel_pairs.txt, which
say what is right, as baseline files."""

import collections
import json
import pathlib
import random
import re
import subprocess

import pytest

from made_runs import baseline

STEPS = 10
Kernel = collections.namedtuple("Kernel", "label count ns places name")


def read_pairs():
    """title -> {"<": kernels, ">": kernels}"""
    pairs = {}
    text = (pathlib.Path(__file__).parent / "kernel_pairs.txt").read_text()
    for line in text.splitlines():
        if line.startswith("= "):
            sides = pairs.setdefault(line[2:], {"<": [], ">": []})
        elif line and line[0] in "<>":
            label, count, *places, name = line[2:].split(" | ")
            times, _, us = count.partition(" x ")
            sides[line[0]].append(Kernel(label, int(times), int(times) * round(float(us) * 1000),
                                         dict(place.split("=", 1) for place in places), name))
    return pairs


PAIRS = read_pairs()


def write(path, kernels, steps):
    rows = [{"count": k.count, "ns": k.ns, "name": k.name, **k.places} for k in kernels]
    path.write_text(baseline([{"step_ns": 1e6}], rows, kernel_steps=steps))


@pytest.fixture(name="compare")
def fixture_compare(run_collector, tmp_path):
    def compare(before, now, *options, steps=STEPS):
        write(tmp_path / "before.json", before, steps)
        write(tmp_path / "now.json", now, steps)
        result = run_collector("diff", "now.json", "--against", "before.json", *options)
        assert result.returncode == 3, result.stderr  # of one run a side nothing is sure
        return result.stdout
    return compare


def demangled(names):
    result = subprocess.run(["c++filt"], input="\n".join(names), check=True, text=True,
                            capture_output=True, timeout=20)
    return result.stdout.splitlines()


def side_of(kernels):
    """The name that took the longest, how many names there are, and what a step has of them."""
    times = collections.Counter()
    for k in kernels:
        times[k.name] += k.ns
    longest = min(n for n, ns in times.items() if ns == max(times.values())) if times else None
    return (demangled([longest])[0] if longest else "", len(times),
            sum(k.count for k in kernels) / STEPS, sum(times.values()) / STEPS)


def expected(before, now):
    labels = collections.defaultdict(lambda: ([], []))
    for side, kernels in enumerate((before, now)):
        for k in kernels:
            labels[k.label if k.label != "-" else (side, k.name)][side].append(k)
    return sorted(tuple(map(side_of, sides)) for sides in labels.values())


def found(output):
    sides = [[row[side] for side in ("before", "now")] for row in json.loads(output)["kernels"]]
    return sorted(tuple((side["name"] or "", side["names"], side["count"], side["ns"])
                        for side in row) for row in sides)


def test_there_are_enough():
    assert len(PAIRS) >= 18
    assert all(len(kernels) >= 1 for sides in PAIRS.values() for kernels in sides.values())


@pytest.mark.parametrize("title", PAIRS)
def test_pair(compare, title):
    """Each is found, whichever side is the newer one."""
    before, now = PAIRS[title]["<"], PAIRS[title][">"]
    assert found(compare(before, now, "--format=json")) == expected(before, now)
    assert found(compare(now, before, "--format=json")) == expected(now, before)


KINDS = {
    "a parameter more, and one that is const now": {("same", "template", None)},
    "a newer CUDA has nvjet for what xmma and CUTLASS did":
        {("renamed", None, "aten::linear"), ("renamed", None, "aten::addmm")},
    "kernels of one line are fused to one; a third stays itself, as it is still used elsewhere":
        {("same", "exact", None), ("fused", None, "forward (model.py:12)")},
    "one kernel is split into two at the same operator":
        {("same", "exact", None), ("split", None, "aten::layer_norm")},
    "renamed at a call of a library, and in a range":
        {("renamed", None, "cusolverDnSgetrf 512x512"), ("renamed", None, "exchange halo"),
         ("new", None, None)},
    "a kernel with a new name, launched from the line that moved; another one is new":
        {("renamed", None, "attention (model.py:88)"), ("same", "exact", None),
         ("new", None, None)},
}


@pytest.mark.parametrize("title", KINDS)
def test_kinds(compare, title):
    """How sure it is stands beside what was found, or else the place that both have."""
    rows = json.loads(compare(PAIRS[title]["<"], PAIRS[title][">"], "--format=json"))["kernels"]
    assert {(row["kind"], row["by"], row["place"]) for row in rows} == KINDS[title]
    for row in rows:
        assert row["added_ns"] == pytest.approx(row["now"]["ns"] - row["before"]["ns"])


# ---- a few launches lie over a step's border ----------------------------------------------------

MANY = 238
SELDOM = [Kernel("-", 1, 9000, {}, name) for name in (
    "autotune<float>(int)", "triton_poi_fused_probe_9",
    "ampere_bf16_s16816gemm_bf16_32x32_sliced1x4_ldg8_f2f_stages_32x6_tn")]


def recorded(kernels, dice, seldom=1):
    """As a run of 238 steps has them: a launch or two more or fewer, a few of which nobody knows
    where they were, and one of another kernel at the place of one of these."""
    rows = []
    for k in kernels:
        count, ns = k.count * MANY // STEPS, k.ns / k.count * (1 + 0.02 * dice.gauss(0, 1))
        astray, places = dice.randrange(4), {"range": "init"} if dice.random() < 0.5 else {}
        if sum(other.name == k.name for other in kernels) == 1:  # else nobody knows which it was
            rows.append(k._replace(count=astray, ns=int(astray * ns), places=places))
            count += dice.randrange(-2, 3) - astray
        rows.append(k._replace(count=count, ns=int(count * ns)))
    rows += [k._replace(places=dice.choice(kernels).places) for k in dice.sample(SELDOM, seldom)]
    return [k for k in rows if k.count]


def test_equal_programs(compare):
    """Nothing is renamed, new or gone, whatever fell over a border."""
    for title, sides in PAIRS.items():
        dice = random.Random(title)
        kernels = sides["<"] + dice.choice(list(PAIRS.values()))[">"]
        output = compare(recorded(kernels, dice), recorded(kernels, dice), "--format=json",
                         steps=MANY)
        rows = json.loads(output)["kernels"]
        assert {row["kind"] for row in rows} <= {"same", "seldom"}, title
        assert all(row["before"]["name"] == row["now"]["name"] for row in rows
                   if row["kind"] == "same"), title
        assert all(row[side]["count"] < 0.1 for row in rows if row["kind"] == "seldom"
                   for side in ("before", "now"))


def test_renamed_for_all_that(compare):
    """What was renamed is found as if nothing had fallen over a border."""
    for title, sides in PAIRS.items():
        dice = random.Random(title)
        before, now = (recorded(sides[side], dice, 0) for side in "<>")
        rows = json.loads(compare(before, now, "--format=json", steps=MANY))["kernels"]
        names = sorted(((row["before"]["name"] or ""), (row["now"]["name"] or "")) for row in rows)
        assert names == sorted((old[0], new[0]) for old, new in expected(before, now)), title


def test_several_of_a_template(compare):
    """They are one row, which is named by the one that takes the longest and says how many."""
    def of(us, *names):
        return [Kernel("-", 10, 1000 * us * (i + 1), {"operator": "aten::add"},
                       f"void add<{name}>(int)") for i, name in enumerate(names)]

    text = compare(of(100, "int", "float"), of(300, "half", "E8", "E5"))
    assert re.findall(r"^ +([+-][\d.]+) us  (.*)$", text, re.MULTILINE) == [
        ("+150.000", "void add<float>(int) and 1 more -> void add<E5>(int) and 2 more")]
