# SPDX-License-Identifier: Apache-2.0
"""The rules that a program can check: includes, names, licences, format, headers, scripts."""

import pathlib
import re
import subprocess

import pytest

import check_includes
import check_texts
from conftest import need

FILES = check_includes.tree_files()
PARTS = ("inject", "formats", "collector")
OWN_HEADERS = [path for path in FILES if path.suffix == ".h" and path.parts[0] in PARTS]
C_FILES = [str(path) for path in FILES if path.suffix in (".c", ".h")]
SHELL_FILES = [str(path) for path in FILES if not path.suffix
               and re.match(rb"#!.*\bsh\b", (check_includes.ROOT / path).read_bytes()[:80])]


def run(*command):
    return subprocess.run(command, cwd=check_includes.ROOT, capture_output=True, text=True,
                          check=False)


def test_includes_names_and_licences():
    assert list(check_includes.violations()) == []


def test_documents_name_what_is_there(monkeypatch, tmp_path):
    names = ["call.c", "inject/hook/call.c", "inject/hook", "hook/", "test_call", "inject/call.c",
             "inject/store", "seal.c", "test_seal", "./seal other.c word a.json *.h"]
    (tmp_path / "inject/hook").mkdir(parents=True)
    (tmp_path / "README.md").write_text(" ".join(f"`{name}`" for name in names))
    for name in ("inject/hook/call.c", "test_call.py"):
        (tmp_path / name).write_text("`no.c`")
    monkeypatch.setattr(check_includes, "ROOT", tmp_path)
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert [line.split()[2] for line in check_includes.check_documents(files)] == \
        ["inject/call.c,", "inject/store,", "seal.c,", "test_seal,", "other.c,"]


def test_documents_link_to_what_is_there(monkeypatch, tmp_path):
    (tmp_path / "README.md").write_text(
        "[a](GUIDE.md#what-it-does) [b](GUIDE.md#what) [c](no.md) [d](#here) [e](https://x.y/z)\n"
        "# Here\n" + "x" * 101 + "\n|" + "x" * 101 + "\n")
    (tmp_path / "GUIDE.md").write_text("## What it does?\n")
    (tmp_path / "other.md").write_text("x" * 101)
    monkeypatch.setattr(check_includes, "ROOT", tmp_path)
    files = [path.relative_to(tmp_path) for path in tmp_path.iterdir()]
    assert sorted(check_includes.check_links(files)) == [
        "README.md: links to GUIDE.md#what, of which there is no heading",
        "README.md: links to no.md, which is not there",
        "README.md:3: 101 columns, more than 100"]


def test_top_level_holds_what_is_named():
    kept = [pathlib.Path(name) for name in ("inject/a.c", "Makefile", "README.md", ".ci/run")]
    assert list(check_includes.check_top(kept)) == []
    odd = [pathlib.Path(name) for name in ("output", "tools/a.c")]
    assert [line.split(":")[0] for line in check_includes.check_top(kept + odd)] == \
        ["output", "tools"]


LAYERED = {
    "collector/layers": "# bottom up\nbase   what all need\nread   recordings\n\ncli  verbs\n",
    "collector/base/array.h": "",
    "collector/base/array.c": '#include "base/array.h"\n',
    "collector/read/process.h": '#include "base/array.h"\n#include "stream.h"\n',
    "collector/read/process.c": '#include "read/process.h"\n#include <isa-l.h>\n',
    "collector/read/plain/process_plain.c": '#include "read/process.h"\n',
    "collector/cli/main.c": '#include "read/process.h"\n#include "api/api.h"\n',
    "formats/layers": ".    the format\napi  its tables\n",
    "formats/stream.h": "",
    "formats/api/api.h": '#include "stream.h"\n#include "api/api.def"\n',
    "formats/api/api.def": "",
    "inject/call.h": '#include "gpu.h"\n',
    "inject/gpu.h": '#include "call.h"\n',
}


def layer_violations(monkeypatch, folder, changes):
    for name, text in {**LAYERED, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(check_includes, "ROOT", folder)
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [*check_includes.check_layers(files), *check_includes.check_circles(files)]


def test_layers_that_are_kept(monkeypatch, tmp_path):
    """A part without the file `layers`, as inject/ is here, is not looked at."""
    assert layer_violations(monkeypatch, tmp_path, {}) == []


@pytest.mark.parametrize("name, text, found", [
    ("collector/base/array.c", '#include "read/process.h"',
     ['collector/base/array.c: includes "read/process.h", of a layer above its own',
      "a circle of files: collector/base/array collector/read/process"]),
    ("collector/base/map.c", '#include "cli/verbs.h"',
     ['collector/base/map.c: includes "cli/verbs.h", no path from collector/ or formats/']),
    ("collector/read/plain/process_plain.c", '#include "cli/verbs.h"',
     ['collector/read/plain/process_plain.c: includes "cli/verbs.h", of a layer above its own']),
    ("collector/cli/main.c", '#include "verbs.h"',
     ['collector/cli/main.c: includes "verbs.h", no path from collector/ or formats/']),
    ("formats/stream.h", '#include "api/api.def"',
     ['formats/stream.h: includes "api/api.def", of a layer above its own',
      "a circle of files: formats/api/api formats/stream"]),
    ("collector/odd/odd.c", "", ["collector/odd/odd.c: lies in no folder of collector/layers"]),
    ("collector/odd.c", "", ["collector/odd.c: lies in no folder of collector/layers"]),
    ("collector/layers", "base a\nread b\ncli c\ncli d\n",
     ["collector/layers: lists a folder twice"]),
    ("collector/layers", "base a\nread b\nmodel c\ncli d\n",
     ["collector/layers: model: has no files"]),
    ("collector/layers", "base\nread b\ncli c\n",
     ["collector/layers: base: does not say what it is for"]),
])
def test_layers_that_are_not_kept(monkeypatch, tmp_path, name, text, found):
    more = {"collector/cli/verbs.h": ""} if "process_plain" in name else {}
    assert layer_violations(monkeypatch, tmp_path, {**more, name: text}) == found


def test_circle_of_three(monkeypatch, tmp_path):
    """In one folder, and by way of a .c file: its header takes part in nothing."""
    ring = {f"collector/base/{a}.{end}": f'#include "base/{b}.h"\n'
            for a, b, end in (("one", "two", "c"), ("two", "three", "h"), ("three", "one", "h"))}
    assert layer_violations(monkeypatch, tmp_path, {**ring, "collector/base/one.h": ""}) == [
        "a circle of files: collector/base/one collector/base/three collector/base/two"]


def test_texts_are_plain():
    """Texts of each kind are found, and no more break the rules than LEFT allows."""
    found = list(check_texts.texts())
    assert {text.kind: text for text in found}.keys() == {
        "setting", "option", "verb", "manual", "table", "column", "title", "advice", "loss",
        "note", "message", "section"}
    assert len(found) > 1000
    wrong = list(check_texts.violations(found))
    counts = {kind: [line for of, line in wrong if of == kind] for kind, _ in wrong}
    assert [line for kind, lines in counts.items() for line in lines
            if len(lines) > check_texts.LEFT.get(kind, 0)] == []


@pytest.mark.parametrize("name", check_texts.DOCUMENTS)
def test_documents_are_short_and_plain(name):
    assert list(check_texts.wrong_document(name)) == []


def test_what_is_wrong_in_a_document(tmp_path, monkeypatch):
    words = "word " * 24 + "word"
    (tmp_path / "a.md").write_text(f"# A\n\n{words}. Next.\n- One {words}\n\n    {words} {words}\n"
                                   f"## B\n\nMore.\n")
    monkeypatch.setattr(check_texts, "ROOT", tmp_path)
    monkeypatch.setattr(check_texts, "DOCUMENTS", {"a.md": (999, 600)})
    found = list(check_texts.wrong_document("a.md"))
    assert [line.partition(":")[0] for line in found] == ["26 words"]
    monkeypatch.setattr(check_texts, "DOCUMENTS", {"a.md": (500, 15)})
    assert len(list(check_texts.wrong_document("a.md"))) == 3


TEXTS_IN_C = """
static const struct option own_options[] = {
    {'o', NULL, "FILE", OPTION_OUTPUT, /* a "comment", */ "write to this file (\\"x\\"), "
     "not there", .parts = 1},
    {OPTIONS_OF(read_options, READ_JOBS)},
    {0, "kind", "A,B", .take = take_kinds, .at = 0, "keep these", .word_at = words},
    {0},
};
VERB_IS(some, run, own_options, VERB_OWN(struct own, {1, "word"}), 0, "[DIR]", "do something",
        {PART_EXAMPLE, "gpuprof some DIR", "an example"}, {PART_STATUS, "0", "it was done"});
static const struct column columns[] = {{"key", .doc = "a column"}, {"b", .doc = NULL}};
void f(void) { message("%s: %" PRIu64 " of them", a, b); say(CAUSE, "it failed: %s", c); }
bool g(void) { return limited(f, a ? "do this: or that?" : NULL, "%s", b ? ", no more" : ""); }
"""


def test_texts_are_found():
    texts = [(text.line, text.kind, text.text) for text in check_texts.texts_of("a.c", TEXTS_IN_C)]
    assert texts == [(3, "option", 'write to this file ("x"), not there'),
                     (6, "option", "keep these"),
                     (9, "verb", "do something"), (10, "manual", "an example"),
                     (10, "manual", "it was done"), (11, "column", "a column"),
                     (12, "message", "%s: %d of them"), (12, "message", "it failed: %s"),
                     (13, "message", "do this: or that?"), (13, "message", ", no more")]


@pytest.mark.parametrize("kind, text, count", [
    ("option", "record the stack of a call that lasts this long or fails", 0),
    ("option", "Record a call. 0 records every call ...", 1),
    ("option", "Record a call. 0 records every call.", 0),
    ("option", "record a call.", 1),
    ("option", "... when a signal comes", 0),
    ("option", "record " + "it " * 24, 0),
    ("option", "record " + "it " * 25, 1),
    ("option", "record " + "it; " * 25, 1),
    ("option", "record only from so long after the process's begin on", 2),
    ("title", "a call did not return", 0),
    ("title", "a call did not return.", 1),
    ("advice", "Look at the call.", 0),
    ("advice", "Look at the call", 1),
    ("message", "%s: of them, of which one is to be had", 2),
])
def test_rules_on_texts(kind, text, count):
    assert len(list(check_texts.wrong(kind, text))) == count


@pytest.mark.parametrize("header", OWN_HEADERS, ids=str)
def test_header_compiles_alone(header):
    folders = sorted(check_includes.PARTS[header.parts[0]])
    result = run("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-unused-function",
                 "-Werror", "-fsyntax-only", "-x", "c", *(f"-I{name}" for name in folders),
                 "-include", str(header), "/dev/null")
    assert result.returncode == 0, result.stderr


def test_header_has_a_guard():
    assert not [str(path) for path in OWN_HEADERS
                if not re.search(r"^#ifndef (GPUPROF_\w+_H)\n#define \1\n",
                                 (check_includes.ROOT / path).read_text(), re.MULTILINE)]


def test_format_is_clean():
    need("clang-format")
    result = run("clang-format", "--dry-run", "-Werror", *C_FILES)
    places = re.findall(r"^(\S+?:\d+):\d+: error", result.stderr, re.MULTILINE)
    assert result.returncode == 0, "clang-format would change " + " ".join(places[:20])


@pytest.mark.parametrize("script", SHELL_FILES)
def test_shell_script(script):
    text = (check_includes.ROOT / script).read_text()
    assert re.search(r"^set -eu", text, re.MULTILINE), "set -eu is missing"
    assert run("sh", "-n", script).returncode == 0
    need("shellcheck")
    result = run("shellcheck", "-x", script)
    assert result.returncode == 0, result.stdout


def test_lines_are_not_too_long():
    long_lines = [f"{path}:{number}" for path in FILES
                  if check_includes.is_source(path) and path.suffix not in (".def", ".map")
                  for number, line in enumerate(
                      (check_includes.ROOT / path).read_text().split("\n"), 1) if len(line) > 100]
    assert long_lines == []


def test_settings_are_documented(run_collector):
    """Each row of the settings table is in help and manual, with variable and option."""
    rows = re.findall(r'^SETTING\(\w+, "(\w+)", "([\w-]+)"',
                      (check_includes.ROOT / "formats/settings.def").read_text(), re.MULTILINE)
    assert len(rows) >= 10
    text = run_collector("help", "run", "--help-all").stdout
    tuning = run_collector("help", "tuning").stdout
    manual = run_collector("manual").stdout.replace("\\-", "-")
    for variable, option in rows:
        assert variable in text and variable in manual
        name = f"  {option}=" if f"({variable};" in tuning else f"--{option}"
        assert name in text and name.strip() in manual
        assert name[0] != " " or name in tuning and f"  --{option} " not in text
    assert tuning.count("(GPUPROF_") >= 10
