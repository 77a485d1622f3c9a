# SPDX-License-Identifier: Apache-2.0
"""An SVG flame graph in a real Chromium: it is drawn, a click zooms, a search finds, and nothing
is said on the console."""

import html
import json
import re

import pytest

import trace_viewer
from web_server import serve

pytestmark = pytest.mark.skipif(not trace_viewer.find_chromium(),
                                reason="not run: no chromium; ./scripts/check installs it")

SCRIPT = r"""process 0
meta stacks=made up
meta python=3.11
python 1 40 /home/me/train.py	<module>
python 2 12 /home/me/train.py	step & <b>"';
python 3 7 /home/me/model.py	a_function_with_a_long_name_that_fits_only_into_a_wide_rectangle
stack 1 0 p2 p1
stack 2 0 p3 p1
call cudaMalloc 1000 3000 1 1 64
call cudaFree 5000 1000 2 2 0
"""

PAGE = """<!DOCTYPE html><body style="margin: 0">
<object id="o" type="image/svg+xml" width="1000" height="220" data="flame.svg#HASH"></object>
<script>
addEventListener("load", () => {
  const view = document.getElementById("o").contentWindow, flame = view.document;
  const all = (kind) => Array.from(flame.querySelectorAll(kind));
  const state = () => ({
    shown: all("g.f").filter((g) => view.getComputedStyle(g).display !== "none")
      .map((g) => [g.querySelector("title").textContent, g.querySelector("text").textContent,
                   +g.querySelector("rect").getAttribute("x"),
                   +g.querySelector("rect").getAttribute("width")]),
    marked: all("g.found").map((g) => g.querySelector("title").textContent),
    found: flame.getElementById("found").textContent,
    reset: view.getComputedStyle(flame.getElementById("reset")).display !== "none" });
  const click = (element) => element.dispatchEvent(new view.MouseEvent("click", {bubbles: true}));
  const result = {first: state()};
  click(all("g.f").find((g) => g.textContent.includes("a_function_with")).querySelector("rect"));
  result.zoomed = state();
  click(flame.getElementById("reset"));
  result.again = state();
  view.prompt = () => "STEP &";
  click(flame.getElementById("search"));
  result.searched = state();
  const end = () => {
    const box = flame.getElementById("search").getBBox();
    return box.x + box.width;
  };
  result.search_ends = end();
  click(all("g.f").find((g) => g.textContent.includes("cudaFree")).querySelector("rect"));
  view.addEventListener("resize", () => {
    result.resized = state();
    result.search_ends_then = end();
    result.title = flame.querySelector("svg > title").textContent;
    const pre = document.createElement("pre");
    pre.id = "result";
    pre.textContent = JSON.stringify(result);
    document.body.append(pre);
  });
  document.getElementById("o").width = 600;
});
</script></body>
"""


@pytest.fixture
def svg(run_verb, make_stacks, tmp_path):
    run_verb("flame", make_stacks(SCRIPT), "-o", "flame.svg")
    return (tmp_path / "flame.svg").read_bytes()


def look(svg, part=""):
    files = {"/": (PAGE.replace("#HASH", part).encode(), "text/html; charset=utf-8"),
             "/flame.svg": (svg, "image/svg+xml")}
    with serve(files.get) as url:
        done = trace_viewer.run_chromium(url, "--dump-dom", "--enable-logging=stderr", "--v=0")
    assert "CONSOLE" not in done.stderr, done.stderr
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


STEP = "step & <b>\"'; (train.py:12)"
LONG = "a_function_with_a_long_name_that_fits_only_into_a_wide_rectangle (model.py:7)"


def test_zoom_and_search(svg):
    result = look(svg)
    titles = [title.rpartition(": ")[0] for title, *_ in result["first"]["shown"]]
    assert sorted(titles) == sorted(
        ["all", "rank 0: python train.py (testhost, pid 1000)", "<module> (train.py:40)", STEP,
         LONG, "cudaMalloc", "cudaFree"])
    assert f"{STEP}: 3.000 us, 75.00 %" in [title for title, *_ in result["first"]["shown"]]
    assert not result["first"]["reset"] and not result["first"]["marked"]

    zoomed = {title.rpartition(": ")[0]: rest for title, *rest in result["zoomed"]["shown"]}
    assert set(zoomed) == {*titles} - {STEP, "cudaMalloc"} and result["zoomed"]["reset"]
    for text, x, width in (zoomed[LONG], zoomed["cudaFree"], zoomed["all"]):
        assert abs(x - 10) < 0.01 and abs(width - 980) < 0.01
    assert zoomed[LONG][0] == LONG
    before = next(text for title, text, *_ in result["first"]["shown"] if title.startswith(LONG))
    assert before.endswith("..") and LONG.startswith(before[:-2]) and len(before) > 10

    assert [(title, text) for title, text, *_ in result["again"]["shown"]] == \
        [(title, text) for title, text, *_ in result["first"]["shown"]]
    assert result["searched"]["marked"] == [f"{STEP}: 3.000 us, 75.00 %"]
    assert result["searched"]["found"] == '"STEP &": 75.00 %'


def test_it_fills_the_window(svg):
    """However wide that is, at first, and when it is changed; what is zoomed stays so."""
    result = look(svg)
    for state, room in (("first", 980), ("resized", 580)):
        widths = {title.rpartition(": ")[0]: (x, width)
                  for title, _, x, width in result[state]["shown"]}
        assert widths["all"] == (10, room)
        x, width = widths["cudaFree"]
        share = 0.25 if state == "first" else 1
        assert abs(width - share * room) < 0.01 and abs(x - 10) < 0.01
    assert result["resized"]["reset"] and "cudaMalloc" not in str(result["resized"]["shown"])
    assert abs(result["search_ends"] - 990) < 1 and abs(result["search_ends_then"] - 590) < 1
    assert result["title"] == "python train.py: time of calls on the host: 4.000 us"


def test_links(svg):
    assert look(svg, "#search=model.py")["first"]["found"] == '"model.py": 25.00 %'
    first = look(svg, "#zoom=3")["first"]
    assert first["reset"] and len(first["shown"]) == 5


def test_page_tells_of_a_broken_script(svg):
    with pytest.raises(AssertionError):
        look(svg.replace(b"function follow() {", b"function follow() { nonsense();", 1))
