# SPDX-License-Identifier: Apache-2.0
"""The tables of `gpuprof report --format=csv`, as Python's own csv reads them."""

import csv
import io
import json
import re


def table(text):
    """The rows of one table, as --table=NAME and each file of -o DIR have it."""
    rows = list(csv.DictReader(io.StringIO(text), strict=True))
    assert not any(None in row or None in row.values() for row in rows)
    return rows


def tables(text):
    """name -> rows, of the blocks of several tables."""
    assert not text or text.endswith("\n\n")
    found = {}
    for block in text.split("\n\n")[:-1]:
        title, rest = block.split("\n", 1)
        assert title.startswith("# ") and title[2:] not in found
        found[title[2:]] = table(rest + "\n")
    return found


def lost(text):
    """name -> how much of what is missing."""
    return {row["name"]: int(row["count"]) for row in table(text) if row["kind"] != "note"}


def cell(value):
    """What stands for a member of the JSON; its numbers are the text that they are there."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return re.sub("[\0-\x1f\x7f]", " ", value)
    return "" if value is None else value


def check(text, report):
    """These are the tables of the JSON that is `report`: its columns in their order, and each cell.
    Returns them."""
    made = json.loads(report, parse_int=str, parse_float=str)
    made.update({f"cost_{key}": rows for key, rows in (made.pop("own_cost", 0) or {}).items()})
    found = tables(text)
    for name, rows in found.items():
        heading = text.split(f"# {name}\n")[1].split("\n")[0].split(",")
        if name == "losses":
            assert {row["name"]: row["count"] for row in rows} == made["losses"]
            continue
        for row, wanted in zip(rows, made.pop(name), strict=True):
            assert list(wanted) == [key for key in heading if key in wanted]
            for key, shown in row.items():
                value = wanted.get(key)
                if isinstance(value, list):
                    shown = json.loads(shown, parse_int=str, parse_float=str)
                assert shown == cell(value), (name, key)
    left = {name for name, rows in made.items() if isinstance(rows, list) and rows}
    assert left <= {"gpu_rows_of", "notes", "device_counters_absent"}
    return found
