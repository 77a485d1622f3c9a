# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory -o x.svg: curves and a flame graph, against books that the tests keep."""

import collections
import re
import xml.etree.ElementTree as ElementTree

import conftest
import pytest

from made_memory import Process, at_random, by_place

SVG = "{http://www.w3.org/2000/svg}"
PIECES = 240


@pytest.fixture(name="picture")
def fixture_picture(run_verb, tmp_path):
    """picture(PROCESSES, OPTIONS): the root of its SVG."""
    maker = conftest.built(conftest.BUILD / "make_raw")

    def draw(processes, *options):
        for process in processes:
            process.write(maker, tmp_path / "data")
        run_verb("memory", tmp_path / "data", "-o", "x.svg", "--symbols=none", *options)
        return ElementTree.fromstring((tmp_path / "x.svg").read_bytes())
    return draw


def frames_of(svg):
    """(depth, label, share of all, how much it says it is) of each frame of the graph."""
    found = []
    for g in svg.iter(SVG + "g"):
        if g.get("class") == "f":
            label, _, value = g.find(SVG + "title").text.rpartition(": ")
            found.append((int(g.get("data-d")), label, float(g.get("data-w")), value))
    return found


def bands_of(svg):
    """(title, what is said of it, heights of the curve's pieces from 0 to 1000) of each place."""
    found = []
    for g in svg.iter(SVG + "g"):
        if g.get("class") == "place":
            path = g.find(f"{SVG}svg/{SVG}path").get("d")
            heights = [1000 - int(y) for y in re.findall(r"V(-?\d+)H", path)]
            texts = [text.text for text in g.iter(SVG + "text")]
            found.append((texts[0], texts[1], heights))
    return found


def test_curves_and_owners(picture):
    """Heights and widths are those of the books."""
    process = at_random(3)
    books = by_place(process)
    svg = picture([process], "--by=function")
    bands = bands_of(svg)
    assert len(bands) == len(books) >= 4
    by_peak = sorted(books.values(), key=lambda own: -own.peak)
    times = [line.split()[4:6] for line in process.lines if line[0].isdigit()]
    begin, end = process.steps[0], max(int(at) + int(ns) for at, ns in times)
    piece = (end - begin) / PIECES
    for (_, said, heights), own in zip(bands, by_peak):
        assert len(heights) == PIECES and max(heights) == 1000 and said.startswith("peak ")
        for number, height in enumerate(heights):
            least, most = (own.within(begin + (number + slack) * piece,
                                      begin + (number + 1 - slack) * piece)[0]
                           for slack in (.02, -.02))
            assert least <= (height + 1) * own.peak / 1000 and \
                (height - 1) * own.peak / 1000 <= most
    held = collections.Counter()
    for own in books.values():
        held.update(own.owners(own.peak_ns))
    shares = collections.Counter()
    for depth, label, share, _ in frames_of(svg):
        if depth == 2:
            shares[label] += share
    assert set(shares) == set(held)
    for name, size in held.items():
        assert shares[name] == pytest.approx(size / sum(held.values()), abs=1e-6)


@pytest.mark.parametrize("first, last", [(2, 6), (0, 3), (7, None), (None, 4)])
def test_a_piece_of_the_time(first, last, picture):
    """Its curve, its peak and who held that; what was got before it is still held in it."""
    process = at_random(3)
    books = by_place(process)
    origin = process.steps[0]
    begin = origin if first is None else process.steps[first] + 50
    times = [line.split()[4:6] for line in process.lines if line[0].isdigit()]
    end = max(int(at) + int(ns) for at, ns in times) if last is None else process.steps[last] + 50
    svg = picture([process], "--by=function",
                  *([] if first is None else [f"--from={begin - origin}ns"]),
                  *([] if last is None else [f"--to={end - origin}ns"]))
    title = svg.find(f"{SVG}title").text
    assert "memory over time from " in title and title.endswith(" at the peak of that time")
    peaks = {place: own.within(begin, end - 1)[0] for place, own in books.items()}
    drawn = sorted((peak, place) for place, peak in peaks.items() if peak)[::-1]
    bands = bands_of(svg)
    assert len(bands) == len(drawn) >= 4
    piece = (end - begin) / PIECES
    for (_, said, heights), (peak, place) in zip(bands, drawn):
        number, unit = re.search(r"; (\S+) (B|KiB|MiB) at the end", said).groups()
        left = float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
        assert left == pytest.approx(books[place].within(begin, end - 1)[1], rel=.06)
        assert len(heights) == PIECES and max(heights) == 1000
        for number, height in enumerate(heights):
            least, most = (books[place].within(begin + (number + slack) * piece,
                                               begin + (number + 1 - slack) * piece)[0]
                           for slack in (.02, -.02))
            assert least <= (height + 1) * peak / 1000 and (height - 1) * peak / 1000 <= most
    held = collections.Counter()
    for place, own in books.items():
        moments = [begin, *(at for at, _ in own.moments if begin < at < end)]
        held.update(own.owners(next(at for at in moments
                                    if sum(b.bytes for b in own.at(at)) == peaks[place])))
    shares = collections.Counter()
    for depth, label, share, _ in frames_of(svg):
        if depth == 2:
            shares[label] += share
    assert set(shares) == set(+held)
    for name, size in (+held).items():
        assert shares[name] == pytest.approx(size / sum(held.values()), abs=1e-6)


def test_stacks_and_moments(picture):
    """Of stacks a flame graph, from the line to the call; and of another moment what was then."""
    process = Process(pythonic=True)
    process.get("linear", 0x1000, 3 << 20, line=5)
    process.free(process.get("linear", 0x2000, 1 << 20, line=6))
    tree = [(depth, label) for depth, label, *_ in frames_of(picture([process]))]
    stack = [(2, "train (train.py:{})"), (3, "forward (nn.py:7)"), (4, "cudaMalloc")]
    assert tree == [(0, "all"), (1, "memory of devices"),
                    *((depth, label.format(line)) for line in (5, 6) for depth, label in stack)]
    assert {label: value for _, label, _, value in frames_of(picture([process], "--at=end"))}[
        "train (train.py:5)"] == "3.0 MiB, 100.00 %"
    assert "(train.py:6)" not in str(frames_of(picture([process], "--at=end")))


def test_many_processes(picture):
    """Those with the highest peaks have curves, all have owners, and what is left out is said."""
    processes = []
    for rank in range(10):
        process = Process(rank)
        process.get("linear", 0x1000, (rank + 1) << 20)
        processes.append(process)
    svg = picture(processes)
    assert [title.split(":")[0] for title, *_ in bands_of(svg)] == \
        [f"device 0, rank {rank}" for rank in range(9, 1, -1)]
    ranks = [label for depth, label, *_ in frames_of(svg) if depth == 2]
    assert len(ranks) == 10 and any(label.startswith("rank 0: ") for label in ranks)
    note = svg.find(f"{SVG}text[@id='note']").text
    assert "the 8 places with the highest peaks have a curve, 2 others none" in note


def test_nothing_and_anything(picture):
    """A program without memory, and names that would be markup."""
    process = Process()
    process.call("cudaDeviceSynchronize", [])
    svg = picture([process])
    assert not bands_of(svg) and [label for _, label, *_ in frames_of(svg)] == ["all"]
    process = Process(pythonic=True)
    process.lines[1] = "meta cmdline=a<script>alert(1)&\"'<b>" + "x" * 300
    process.get("linear", 0x1000, 1 << 20, line=5)
    svg = picture([process])
    [(title, _, _)] = bands_of(svg)
    assert title.startswith("device 0, rank 0: a<script>alert(1)&\"'<") and len(title) <= 80
    assert len(list(svg.iter(SVG + "script"))) == 1


def test_wrong_usage(run_collector):
    for name, words, says in (("x.svg", ["--table=owners"], "a picture has no tables"),
                              ("x.html", ["--by=stack"], "a page has all tables"),
                              ("x.png", [], "name it .txt, .csv, .json, .svg, .html or .pickle")):
        done = run_collector("memory", "x", "-o", name, *words)
        assert done.returncode == 2 and says in done.stderr, name
    for words in ([], ["--format=json"], ["-o", "x.pickle"], ["-o", "x.svg", "--at=3ms"]):
        done = run_collector("memory", "x", "--from=1ms", *words)
        assert done.returncode == 2 and "only a picture" in done.stderr, words
