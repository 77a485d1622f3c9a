# SPDX-License-Identifier: Apache-2.0
"""The page of `gpuprof diff` in a real Chromium: what the made-up runs are, and inert names."""

import random

import pytest

from shown_page import HOSTILE, Page, chromium, data_of, pytestmark

from made_runs import baseline, noisy  # shown_page has its folder on the path

WORSE, UNSURE = 1, 3
STEPS, LAUNCHES, US = 40, 2, 1000
BEFORE = {"slower_kernel": 100, "faster_kernel": 500, "fused_kernel<7>(int)": 900,
          "steady_kernel": 4000, "gone_kernel": 30}
NOW = {"slower_kernel": 300, "faster_kernel": 400, "fused_kernel<12>(int)": 900,
       "steady_kernel": 4000, "new_kernel": 70}
assert chromium  # a fixture


@pytest.fixture(name="page_of")
def fixture_page_of(run_verb, tmp_path):
    """Of the metrics and the kernels (name: microseconds in a step) of both sides."""
    def make(new, old, now=(), before=(), options=(), status=WORSE):
        for name, runs, kernels in (("new", new, now), ("old", old, before)):
            rows = [{"name": kernel, "count": LAUNCHES * STEPS, "ns": STEPS * US * us,
                     "operator": f"aten::{kernel.split('_')[0]}"}
                    for kernel, us in dict(kernels).items()]
            (tmp_path / f"{name}.json").write_text(baseline(runs, rows))
        run_verb("diff", "new.json", "--against", "old.json", *options, "-o", "page.html",
                 status=status)
        return tmp_path / "page.html"
    return make


def runs_of(step_ns=1e6, **facts):
    runs = noisy(random.Random(step_ns), 0.005, step_ns)
    for run in runs:
        run["facts"] = facts
    return runs


def test_section(chromium, page_of):
    """The verdict, the metrics and their intervals, facts, and what became of each kernel."""
    path = page_of(runs_of(1.1e6, commit="b" * 40), runs_of(commit="a" * 40), NOW, BEFORE)
    page, data = Page(chromium, path), data_of(path)["compare"]
    of = {metric["metric"]: metric for metric in data["metrics"]}
    assert page.texts("nav a") == page.texts("section > h2") == ["Did it get worse?"]
    assert page.text("#compare .hero.worse") == data["says"]
    rows = {row[0]: row for row in page.rows("[aria-label=Metrics]")}
    change = f"+{100 * of['step_ns']['change']:.1f} %"
    assert rows["step time"][3] == change and 8 < float(change[1:-2]) < 12
    assert rows["step time"][5] == " to ".join(f"+{100 * of['step_ns'][side]:.1f} %"
                                               for side in ("low", "high"))
    assert rows["step time"][7] == "worse"
    pairs = len(data["runs"]) * len(data["against"])
    assert f"median over all {pairs} pairs of a run now and a run before" in page.text("#compare")
    assert rows["launches"][1:4] == ["9", "9", "0.0 %"]
    assert rows["launches"][5:] == ["exact", "any", "same"]
    assert rows["peak memory"][1] == "1.00 MiB" and "energy a step" not in rows
    assert rows["step time, 95th percentile"][7].endswith("(does not gate)")
    left, gate, right = page.run("""(() => {
      const drawing = document.querySelector('.interval[aria-label^="step time: "]');
      const place = (node) => node.getBoundingClientRect();
      const interval = place(drawing.querySelector('rect'));
      return [interval.left, place(drawing.querySelector('.gate')).left, interval.right]; })()""")
    assert gate < left < right
    kernels = {row[0]: row[1:] for row in page.rows("#compare h3 + .small + .table")}
    assert {name: row[0] for name, row in kernels.items()} == {
        "slower_kernel": "longer", "faster_kernel": "shorter", "new_kernel": "new",
        "gone_kernel": "gone", "fused_kernel<12>(int)": "same", "steady_kernel": "same"}
    assert kernels["slower_kernel"][1:6] == ["100 \u00b5s", "300 \u00b5s", "200 \u00b5s", "2.00",
                                             "2.00"]
    assert "fused_kernel<7>(int)" in kernels["fused_kernel<12>(int)"]
    assert page.rows("#compare h3:last-of-type + .table") == [["commit", "a" * 40, "b" * 40]]
    for width, scheme in ((1280, "dark"), (400, "light")):
        chromium.look_like(width, 900, scheme)
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.check_quiet()


def test_all_of_it_is_to_be_seen(chromium, page_of):
    """Steps that take three times as long: no column is cut off, every bar lies within its scale,
    where the longer change is farther out, and idle time says what its change is of."""
    slower = runs_of(3.1e6)
    for run in slower:
        run["gpu_busy_ns"] /= 2
    path = page_of(slower, runs_of(), NOW, BEFORE)
    page = Page(chromium, path)
    chromium.look_like(1280, 960)
    assert page.run("""Array.from(document.querySelectorAll('.scroll'),
                    (box) => box.scrollWidth <= box.clientWidth)""") == [True] * 2
    places = page.run("""Object.fromEntries(Array.from(document.querySelectorAll('.interval'),
                                                       (svg) => {
      const place = (node) => node.getBoundingClientRect();
      const bars = Array.from(svg.querySelectorAll('rect'), place);
      return [svg.ariaLabel.split(':')[0], [place(svg).left, ...bars.map((bar) => bar.left),
              ...bars.map((bar) => bar.right), place(svg).right]]; }))""")
    assert all(left <= bar <= right for left, *bars, right in places.values() for bar in bars)
    assert places["GPU busy"][2] < places["step time"][2] - 3
    rows = {row[0]: row for row in page.rows("[aria-label=Metrics]")}
    assert rows["GPU idle"][3].endswith("of the step before")
    assert "of the step" not in rows["step time"][3]
    page.check_quiet()


def test_what_cannot_be_compared(chromium, page_of):
    """It is said why, and there are amounts alone; if they are compared all the same, with one run
    each there is neither an interval nor a change that is seen."""
    path = page_of(runs_of(gpu="1 x Other")[:1], runs_of()[:1], status=UNSURE)
    page = Page(chromium, path)
    assert "Not comparable" in page.text("#compare .alert")
    assert "1 x Other" in page.text("#compare .alert li")
    rows = {row[0]: row for row in page.rows("[aria-label=Metrics]")}
    assert rows["step time"][3:] == []
    page.check_quiet()
    page_of(runs_of(gpu="1 x Other")[:1], runs_of()[:1], options=["--force"], status=UNSURE)
    page = Page(chromium, path)
    assert "Compared anyway" in page.text("#compare .alert")
    rows = {row[0]: row for row in page.rows("[aria-label=Metrics]")}
    assert rows["step time"][5:] == ["", "none", "unsure: few runs"]


def test_hostile_names_are_inert(chromium, page_of):
    hostile = HOSTILE[0] + HOSTILE[1]
    path = page_of(runs_of(1.1e6, host=hostile, program=hostile), runs_of(),
                   {name: 9 for name in HOSTILE}, BEFORE)
    text = path.read_text()
    assert text.count("</script") == 2 and "<img" not in text
    page = Page(chromium, path)
    assert page.run("document.title").endswith("gpuprof")
    assert page.run("document.querySelectorAll('img, main script').length") == 0
    names = page.texts("#compare h3 + .small + .table tbody th")
    assert HOSTILE[0] in names and HOSTILE[1] in names
    assert hostile in page.text("#compare h3:last-of-type + .table")
    page.check_quiet()
