# SPDX-License-Identifier: Apache-2.0
"""formats/event-stream.md says what the code says: tables, offsets, limits."""

import os
import pathlib
import re
import subprocess
import sys

import conftest
import pytest
import stream_reader

FORMATS = conftest.ROOT / "formats"
REFRESH = os.environ.get("GPUPROF_REFRESH") == "1"  # read now: tests run without such variables
SPEC = (FORMATS / "event-stream.md").read_text(encoding="utf-8")


def section(title):
    """The text under a heading, up to the next one of its level or above."""
    level, _, _ = title.partition(" ")
    start = SPEC.index(f"\n{title}\n") + len(title) + 2
    end = re.search(rf"^#{{1,{len(level)}}} ", SPEC[start:], re.MULTILINE)
    return SPEC[start:start + end.start()] if end else SPEC[start:]


def table(text, index=0):
    """The rows of the index-th table of a text, without its head."""
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in tables[index].splitlines()]
    assert set("".join(rows[1])) <= {"-"}, rows[:2]
    return rows[2:]


def definitions(*files):
    """#defines that are numbers, from headers of formats/."""
    values = {}
    for name in files:
        text = conftest.source("formats", name).read_text(encoding="utf-8")
        for key, value in re.findall(r"^#define (\w+) +([^/\n]+?) *(?:/\*.*)?$", text,
                                     re.MULTILINE):
            value = re.sub(r"(?<=[0-9a-fA-F])(u|ull|U|ULL)\b", "", value)
            value = re.sub(r"\b[A-Z]\w+\b", lambda m: str(values.get(m[0], m[0])), value)
            if re.fullmatch(r"[0-9a-fA-Fx()+*/<< -]+", value):
                values[key] = eval(value.replace("/", "//"), {})  # pylint: disable=eval-used
    return values


LIVE = definitions("record.h", "live.h")
BLOCK = definitions("record.h", "column.h", "block.h")
STREAM = definitions("stream.h")


def macro_rows(name, macro):
    text = conftest.source("formats", name).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.findall(rf"^{macro}\((\w+), (.*?)\)$", text, re.MULTILINE | re.DOTALL)


def fields(text):
    text = re.sub(r'"\s+"', "", text)
    return [int(f) if re.fullmatch(r"[0-9]+", f) else f[1:-1]
            for f in re.findall(r'"[^"]*"|[0-9]+', re.sub(r'"\s+"', "", text))]


PRINTER = r"""
#include <stdio.h>
#include "argument_kind.h"
#define ARG(ENUMERATOR, label, kind, ...) " " #kind ":" #label "|" __VA_ARGS__ "\n"
#define EVENT(NAME, number, name, shows, arguments, ...) \
    printf("%d|%s|%s\n%s", number, name, "" __VA_ARGS__, "" arguments);
int main(void)
{
#include "events.def"
#define CALL_ARGUMENT(NAME, name, printer) printf("=%s|%s\n", #NAME, name);
#define RECORD_ARGUMENT CALL_ARGUMENT
#include "argument_kinds.def"
    return 0;
}
"""


def made_from_rows(folder):
    """The rows of both tables of records, from events.def; what a code is stands in the spec."""
    codes = {row[1]: row[2] for row in table(section("## Records"))}
    (folder / "printer.c").write_text(PRINTER)
    subprocess.run(["gcc", "-std=gnu11", f"-I{FORMATS}", folder / "printer.c", "-o",
                    folder / "printer"], check=True)
    lines = subprocess.run([folder / "printer"], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    kinds = dict(line[1:].split("|") for line in lines if line[0] == "=")
    records, assumed = [], []
    for line in lines:
        if line[0] == " ":
            argument, text = line[1:].split("|")
            kind, label = argument.split(":")
            records[-1][3].append(f"{kinds[kind]}:{label}")
            if text:
                assumed.append([records[-1][1], label, text])
        elif line[0] != "=":
            number, name, text = line.split("|")
            records.append([number, name, codes.get(name, "0"), [], text])
    records[0][3] = ["by the function's description"]
    return [[*head, " ".join(args), text] for *head, args, text in records], assumed


def test_records(tmp_path):
    """With GPUPROF_REFRESH=1 the tables are written anew."""
    made = made_from_rows(tmp_path)
    if REFRESH:
        text = SPEC
        for index, rows in enumerate(made):
            old = re.findall(r"(?:^\|.*\|\n)+", section("## Records"), re.MULTILINE)[index]
            head = "".join(old.splitlines(keepends=True)[:2])
            text = text.replace(old, head + "".join(f"| {' | '.join(r)} |\n" for r in rows))
        (FORMATS / "event-stream.md").write_text(text, encoding="utf-8")
        pytest.skip("not run: GPUPROF_REFRESH=1 wrote the tables; without it they are compared")
    records, assumed = (table(section("## Records"), index) for index in range(2))
    assert len(records) >= 36 and records == made[0]
    assert len(assumed) > 50 and assumed == made[1]
    assert stream_reader.TYPE_NAMES.items() <= {int(row[0]): row[1] for row in records}.items()


def test_counters():
    spec = table(section("### Counters"))
    code = [fields(rest) for _, rest in macro_rows("counters.def", "COUNTER")]
    assert len(code) >= 8
    assert [row[1:] for row in spec] == [[name, str(loss), what] for name, loss, what in code]
    assert [int(row[0]) for row in spec] == list(range(len(code)))
    assert stream_reader.COUNTERS == tuple(row[1] for row in spec)
    assert stream_reader.LOSSES == tuple(row[1] for row in spec if row[2] == "1")


def test_costs():
    rows = macro_rows("costs.def", "COST")
    code = [[fields(rest)[0], re.search(r", ([A-Z]+),", rest)[1].lower(), fields(rest)[1]]
            for _, rest in rows]
    assert len(code) == 27 and [name.lower() for name, _ in rows] == [row[0] for row in code]
    spec = table(section("### Costs"))
    assert [row[1:] for row in spec] == code
    assert [int(row[0]) for row in spec] == list(range(len(code)))


def test_flags():
    text = (FORMATS / "record.h").read_text(encoding="utf-8")
    code = dict(re.findall(r"RECORD_([A-Z]+) = ([0-9]+),", text[text.index("enum record_flag"):]))
    spec = {row[1].upper(): row[0] for row in table(section("### Flags"))}
    assert spec == code and len(spec) == 7
    for name, bit in spec.items():
        assert getattr(stream_reader, name) == int(bit)


def test_end_reasons():
    text = (FORMATS / "record.h").read_text(encoding="utf-8")
    assert "END_EXIT = 1, END_QUICK = 2" in text
    assert "| end | reason | 1 exit, 2 `_exit` or quick_exit, 3 a kill or the like |" in SPEC


def test_function_description():
    """Of libraries it has but examples: their rows may become more."""
    header = (FORMATS / "api" / "api.h").read_text()
    classes = re.search(r"enum api_class \{(.*?)\}", header, re.S)[1]
    kinds = re.findall(r"^CALL_ARGUMENT\(\w+, \"(\w+)\"",
                       (FORMATS / "argument_kinds.def").read_text(), re.M)
    words = set(re.findall(r"`([A-Za-z0-9_]+)`", section("### Functions")))
    assert len(kinds) > 10 and set(kinds) < words
    assert {word.lower() for word in re.findall(r"API_(\w+),", classes)} < words


def numbers(rows, column=0):
    return [int(row[column]) for row in rows if row[column].isdigit()]


def test_limits():
    for key, value in {
            "BLOCK_RECORDS_MAX": stream_reader.RECORDS_MAX,
            "BLOCK_SHAPES_MAX": stream_reader.SHAPES_MAX,
            "BLOCK_PAYLOAD_BYTES_MAX": stream_reader.PAYLOAD_MAX,
            "BLOCK_STORED_BYTES_MAX": stream_reader.STORED_MAX,
            "BLOCK_HEADER_BYTES_MAX": stream_reader.BLOCK_HEADER_BYTES_MAX,
            "BLOCK_FRAME_MAGIC": stream_reader.BLOCK_MAGIC,
            "RECORD_ARGS_MAX": stream_reader.ARGS_MAX,
            "RECORD_BYTES_MAX": stream_reader.TEXT_MAX}.items():
        assert BLOCK[key] == value, key
        assert re.search(rf"\b{value}\b|{value:#X}".replace("0X", "0x"), SPEC), (key, value)
    for key, value in {
            "STREAM_FRAME_MAGIC": stream_reader.HEADER_MAGIC,
            "STREAM_HEADER_BYTES_MAX": stream_reader.HEADER_BYTES_MAX,
            "STREAM_HOST_BYTES_MAX": stream_reader.HOST_BYTES_MAX,
            "STREAM_PATH_BYTES_MAX": stream_reader.PATH_BYTES_MAX, "STREAM_VERSION": 1}.items():
        assert STREAM[key] == value, key
        assert re.search(rf"\b{value}\b|{value:#X}".replace("0X", "0x"), SPEC), (key, value)
    assert f"{BLOCK['BLOCK_HEADER_BYTES']} bytes in this version" in SPEC
    assert STREAM["STREAM_MAGIC"].to_bytes(8, "little") == b"GPUPROF\0"
    assert BLOCK["BLOCK_MAGIC"].to_bytes(4, "little") == b"GPB1"
    assert BLOCK["COLUMN_DICT_MAX"] == 255


def test_live_layout():
    text = section("## The live file")
    head, chunk = table(text, 0), table(text, 1)
    assert numbers(head) == [0] + [LIVE[f"LIVE_OFFSET_{name}"] for name in (
        "MAGIC", "VERSION", "CHUNK_BYTES", "CHUNK_COUNT", "CHUNKS", "BYTES", "ALIVE", "FLIGHT",
        "FLUSHER", "WAKE", "ASKED", "ANSWERED", "COUNTERS")]
    assert numbers(chunk) == [LIVE[f"LIVE_CHUNK_{name}"] for name in (
        "STATE", "THREAD", "POSITION", "COMMITTED", "SEALED", "TID", "TAKE", "PASSED",
        "COUNTED", "OPEN_STACK", "HEAD_BYTES")]
    assert f"{LIVE['LIVE_MAGIC']:#x}" in text.lower()
    assert LIVE["LIVE_MAGIC"] == stream_reader.LIVE_MAGIC
    low, high = LIVE["LIVE_CHUNK_BYTES_MIN"], LIVE["LIVE_CHUNK_BYTES_MAX"]
    assert f"{low} to {high}" in text and f"at most {LIVE['LIVE_CHUNK_COUNT_MAX']}" in text
    assert f"({LIVE['LIVE_HEAD_BYTES']})" in text
    assert f"open records, at most {LIVE['LIVE_OPEN_MAX']}" in text
    assert LIVE["LIVE_OPEN_MAX"] == stream_reader.OPEN_MAX
    assert f"c - {LIVE['LIVE_CHUNK_HEAD_BYTES']}" in text
    enum = (FORMATS / "live.h").read_text(encoding="utf-8")
    states = dict(re.findall(r"LIVE_(FREE|OWNED|FULL|TAKEN) = ([0-9])", enum))
    state = chunk[0][2]
    for name, word in zip(("FREE", "OWNED", "FULL", "TAKEN"), ("free", "owned", "full", "being t")):
        assert f"{states[name]} {word}" in state


def test_column_encodings():
    text = (FORMATS / "column.h").read_text(encoding="utf-8")
    code = re.findall(r"COLUMN_([A-Z]+) = ([0-9]),", text)
    assert [row[0] for row in table(section("### Columns"))] == [f"{n} {name}" for name, n in code]


WRITER = r"""
#include <stdio.h>
#include <string.h>
#include "block.h"
#include "stream.h"

/* Every field its own value, so that a swapped one shows. */
int main(void)
{
    unsigned char frame[STREAM_HEADER_BYTES_MAX];
    struct stream_header h = {.pid_namespace = 1001, .start_time = 1002, .pid = 1003,
        .parent_pid = 1004, .api_crc = 1005, .monotonic_zero_ns = 1006, .realtime_zero_ns = 1007,
        .host = "a host", .live_path = "/a/path", .monotonic_shift_ns = -1010};
    for (int i = 0; i < COUNTER_COUNT; i++)
        h.counters[i] = 3000 + (unsigned)i;
    memset(h.process_id, 0x11, 16);
    memset(h.boot_id, 0x22, 16);
    h.scale.source = 2;
    h.scale.ticks_zero = 1008;
    h.scale.mult = 1009;
    int bytes = stream_header_write(&h, frame, sizeof frame);
    struct block_header b = {2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, 2009, 2010};
    fwrite(frame, 1, (size_t)bytes, stdout);
    block_header_write(&b, frame);
    fwrite(frame, 1, BLOCK_HEADER_BYTES, stdout);
    return 0;
}
"""


@pytest.fixture(name="written", scope="module")
def fixture_written(tmp_path_factory):
    """What the code writes for known values."""
    folder = tmp_path_factory.mktemp("spec")
    source = folder / "writer.c"
    source.write_text(WRITER)
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", f"-I{FORMATS}", source, "-o",
                    folder / "writer", *(FORMATS / f"{name}.c" for name in
                                         ("stream", "block", "crc32c"))], check=True)
    return subprocess.run([folder / "writer"], check=True, capture_output=True).stdout


def test_headers(written):
    """The reader, made from the spec, finds every field where the code has put it."""
    h = stream_reader.read_header(written)
    assert (h.pid_namespace, h.start_time, h.pid, h.parent_pid, h.api_crc, h.monotonic_zero,
            h.realtime_zero, h.ticks_zero, h.mult, h.clock_source) == (
                1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 2)
    assert (h.process_id, h.boot_id) == (b"\x11" * 16, b"\x22" * 16)
    assert (h.host, h.live_path, h.version) == ("a host", "/a/path", 1)
    assert h.monotonic_shift == -1010
    assert h.counters == tuple(range(3000, 3000 + len(stream_reader.COUNTERS)))
    assert len(written) - h.bytes == BLOCK["BLOCK_HEADER_BYTES"]
    frame = written + bytes(2009)
    b = stream_reader.read_block(frame, h.bytes)
    assert (b.thread, b.record_count, b.sequence, b.begin, b.end, b.before, b.after,
            b.payload_bytes, b.stored_bytes, b.stored_crc) == tuple(range(2001, 2011))


def test_reader_sees_damage(written):
    for at in range(0, len(written), 7):
        damaged = bytearray(written + bytes(2009))
        damaged[at] ^= 0x40
        with pytest.raises(stream_reader.StreamError):
            h = stream_reader.read_header(bytes(damaged))
            assert stream_reader.read_block(bytes(damaged), h.bytes)
            raise AssertionError(f"byte {at} may be anything")


def test_reader_stands_alone():
    """It must not know more than the specification: no module of the project, no table of ours."""
    files = list(pathlib.Path(stream_reader.__file__).parent.glob("stream_*.py"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    modules = set(re.findall(r"^\s*(?:import|from) (\w+)", source, re.MULTILINE))
    own = {path.stem for path in files}
    assert len(own & modules) == 4  # the parts of stream_reader
    assert modules - own - {"zstandard"} <= set(sys.stdlib_module_names)
    assert ".def" not in source and "formats/" not in source.replace("formats/event-stream.md", "")
