# SPDX-License-Identifier: Apache-2.0
"""The page's findings, open calls and hangs in a real Chromium, as tables have them."""

from shown_page import Page, chromium, data_of, job, page_of, put_data, pytestmark

assert chromium and page_of  # fixtures

FOUND = {"name": "findings", "key": "findings", "title": None, "note": None, "behind": None,
         "columns": [{"key": key, "type": kind, "label": None, "doc": None} for key, kind in (
             ("title", "lines"), ("id", "text"), ("ns", "ns"), ("share", "share"),
             ("devices", "number"), ("rank", "text"), ("pid", "number"), ("device", "number"),
             ("evidence", "list"), ("advice", "text"), ("next", "text"))],
         "rows": [["The host waits", "sync-in-loop", 2_500_000_000, .25, 3, "1", 7, 0,
                   [{"name": "train.py:7", "count": 12, "ns": 2_400_000_000, "at_ns": 1_000_000}],
                   "Wait once a step.", "gpuprof report --by=python-line data"]], "left_out": 0}


def test_findings_and_open_calls(chromium, page_of):
    """As report's table has them."""
    path = page_of(*job())
    data = data_of(path)
    calls = next(table for table in data["tables"] if table["key"] == "open_calls")
    calls["rows"] = [[{"function": "cudaDeviceSynchronize", "lasted_ns": 3_000_000_000,
                       "rank": "3", "thread": "main"}.get(
        column["key"]) for column in calls["columns"]]]
    hostile = "rank 2 of 4 has not called <b>ncclAllReduce"
    data["overview"]["collective"] = hostile
    data["tables"] = [table for table in data["tables"] if table["key"] != "findings"]

    def look(rows):
        put_data(path, data | {"tables": [*data["tables"], FOUND | {"rows": rows}]})
        return Page(chromium, path)
    page = look(FOUND["rows"])
    assert page.texts(".findings h3") == ["The host waits"]
    assert page.text(".findings .cost") == "2.50 s25.0 %"
    assert "rank 1, GPU 0 and 2 more" in page.text(".findings li")
    assert page.rows(".findings") == [["train.py:7", "2.40 s", "12", "1.00 ms"]]
    assert page.text(".next") == FOUND["rows"][0][-1]
    assert "cudaDeviceSynchronize for 3.00 s, in rank 3, main" in page.text(".alert")
    assert page.text(".alert").startswith(hostile)
    page.check_quiet()
    hang = [*FOUND["rows"][0][:5], None, 7, None, *FOUND["rows"][0][8:]]
    assert "null" not in look([hang]).text(".findings li")
    memory = [*hang[:8], [{"name": "train.py:9", "count": 1, "bytes": 298 << 20, "at_ns": 0}],
              "See who holds it.", "gpuprof memory --by=python-line --at=peak data"]
    page = look([memory])
    assert page.texts(".findings thead th") == ["where", "memory", "count", "peak at"]
    assert page.rows(".findings") == [["train.py:9", "298 MiB", "1", "the start"]]
    assert page.text(".next") == memory[-1]
    assert page.texts(".next .kept") == ["--by", "--at"]  # each on a line
    assert page.run("getComputedStyle(document.querySelector('.next .kept')).whiteSpace") == \
        "nowrap"
    assert "Nothing costs enough to be a finding" in look([]).text("#overview")


def test_hang(chromium, page_of):
    """As the tables of two ranks have it, one of which waits; texts are text."""
    hostile = "</script><b>train.py:7"
    calls = [{"function": "cudaStreamSynchronize", "lasted_ns": 12_000_000_000, "rank": "1",
              "host": "node", "pid": 7, "tid": 9, "line": hostile, "stack": [hostile, "main"]},
             {"function": "cudaMemcpy", "lasted_ns": 0, "rank": "0", "host": "node", "pid": 6,
              "tid": 8}]
    launched = [{"kernel": "AllReduce", "age_ns": 12_500_000_000, "launches": 3, "rank": "1",
                 "host": "node", "pid": 7, "tid": 9, "state": "waited for", "device": 0,
                 "stream": 13, "stack": ["step (train.py:5)"]},
                {"function": "cudaGraphLaunch", "age_ns": 1_000_000, "launches": 1, "rank": "0",
                 "host": "node", "pid": 6, "tid": 8, "state": "may have ended", "handle": 255}]
    path = page_of(*job())
    page = Page(chromium, path)
    assert "Hang" not in page.texts("nav a") + page.texts("h2")
    assert page.texts("#absent dt")[0] == "Hang"
    data = data_of(path)
    for key, rows in (("open_calls", calls), ("unfinished", launched)):
        table = next(table for table in data["tables"] if table["key"] == key)
        table["rows"] = [[row.get(column["key"]) for column in table["columns"]] for row in rows]
    put_data(path, data)
    page = Page(chromium, path)
    assert [text.split(" on ")[0] for text in page.texts("#hang h3")] == \
        ["Rank 1, process 7", "Rank 0, process 6"]
    assert "A call never returned" in page.text("#hang .lead")
    items = page.texts("#hang .hung > li")
    assert items[0].startswith("cudaStreamSynchronize open for 12.0 s in thread 9")
    assert items[1].startswith(
        "AllReduce or another of 3 on stream 13 of GPU 0 launched 12.5 s ago")
    assert items[2] == "cudaMemcpy just begun in thread 8"
    assert items[3] == "cudaGraphLaunch on stream 0xff launched 1.00 ms ago: may have ended"
    assert page.texts("#hang .stack li") == [hostile, "main", "step (train.py:5)"]
    assert page.texts("#hang h4") == ["Unfinished launches"] * 2
    assert hostile in page.text(".alert") and "cudaMemcpy just begun, in " in page.text(".alert")
    page.click(".alert a")
    assert page.run("location.hash") == "#hang"
    page.check_quiet()


def test_held_back_is_not_lost(chromium, page_of):
    path = page_of(*job())
    data = data_of(path)
    loss = ["gpu_missing", 7, 1, 1, "kernels, copies and fills that are not recorded"]

    def look(held):
        put_data(path, data | {"overview": data["overview"] | {"held_back": held,
                                                               "losses": [loss]}})
        return Page(chromium, path)
    for held, said, rows in (
            (7, ["nothing", "work of 7"], [("7", "held back")]),
            (3, ["some", "work of 3"], [("4", "missing"), ("3", "held back")]),
            (0, ["some", None], [("7", "missing")])):
        page = look(held)
        facts = dict(zip(page.texts("#overview dt"), page.texts("#overview dd")))
        assert [facts["Lost"], facts.get("Held back")] == said
        assert [tuple(row[1:]) for row in page.rows("#cost")[:len(rows)]] == rows
        page.check_quiet()


def test_hang_in_a_collective(chromium, page_of):
    """Each of them with its ranks by their states; the late ones first, with their lines."""
    hostile = "</script><b>load.py:3"
    one = {"function": "ncclAllReduce", "sequence": 37, "ranks": 4, "communicator": "0x12",
           "waited_ns": 12_000_000_000, "host": "node"}
    rows = [{**one, "state": "not called", "rank": "2", "communicator_rank": 2, "line": hostile}]
    rows += [{**one, "state": "kernel not finished", "rank": str(i)} for i in (0, 1)]
    rows += [{**one, "state": "finished", "communicator_rank": 3}]
    rows += [{**one, "function": "ncclSend", "state": state, "from": 0, "to": 1, "waited_ns": 0}
             for state in ("not recorded", "called")]
    path = page_of(*job())
    data = data_of(path)
    table = next(table for table in data["tables"] if table["key"] == "collectives")
    table["rows"] = [[row.get(column["key"]) for column in table["columns"]] for row in rows]
    put_data(path, data)
    page = Page(chromium, path)
    heads = page.texts("#hang .hung > li > p:first-child")
    assert heads[0].startswith("ncclAllReduce 37 of 4 ranks waited for 12.0 s")
    assert heads[1].startswith("ncclSend 37 of 4 ranks, the message from 0 to 1 communicator 0x12")
    assert page.texts("#hang .states") == ["not called2", "kernel not finished01", "finished3",
                                           "not recorded?", "called?"]
    standings = page.run("Array.from(document.querySelectorAll('#hang .ranks li'), "
                         "(li) => li.dataset.standing)")
    assert standings == ["late", "waits", "waits", "done", "unknown", "waits"]
    assert f"Rank 2 was at {hostile}" in page.text("#hang .hung")
    page.check_quiet()
    rows[0] |= {"stack_ago_ns": 13_000_000_000, "last_call_ago_ns": 12_000_000_000}
    table["rows"] = [[row.get(column["key"]) for column in table["columns"]] for row in rows]
    put_data(path, data)
    assert f"Rank 2's newest stack, of an earlier call: {hostile}" in \
        Page(chromium, path).text("#hang .hung")
