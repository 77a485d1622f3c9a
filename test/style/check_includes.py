#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules on files and includes: prints one line per violation, exits 1 if there is any.

- inject/ and collector/ include only themselves, formats/ and system headers; formats/ only itself.
- A part that has a file `layers` lies in the folders that this lists, bottom up, one a line with
  what it is for (`.` is the part's own folder; a folder deeper down belongs to the one it is in).
  A file includes its own folder's, those of folders listed before, and formats/, each by its path
  from the part's root. No circle of files; those that differ only in their suffix are one.
- Each third-party header is included by at most one .c file of each part; cmocka only in test/.
- The top level holds what is named here, dot-files and documents, and nothing else.
- File names are unique in the tree; every source file names its licence in its first lines.
- A file or a folder that a document names between backquotes is there, and so is what it links to;
  lines of prose for users have at most 100 columns.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = {"inject": {"inject", "formats"}, "collector": {"collector", "formats"},
         "formats": {"formats"}}
THIRD_PARTY = re.compile(r"(zstd|zstd_errors|zdict|isa-l|libunwind|unwind|cmocka|execinfo|lzma"
                         r"|sqlite3|dwarf|gelf|libelf|elfutils/.*|cjson/cJSON|cJSON"
                         r"|libunwind-.*)\.h")
TEST_ONLY = {"cmocka.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
CODE = (".c", ".h", ".S", ".def")
SOURCES = {".c", ".h", ".S", ".def", ".py", ".sh", ".mk", ".map", ".cu", ".cc", ".cpp", ".html",
           ".css", ".js"}
SAME_NAME_ALLOWED = {"layers", "README.md", "RESULTS.md", "__init__.py", "conftest.py",
                     ".gitignore", "Makefile"}
# Headers that stand for NVIDIA's must have NVIDIA's names.
SAME_NAME_FOLDERS = {"test/sim/include"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENCE_LINES = 5
TOP_FOLDERS = {*PARTS, "test", "scripts"}
TOP_FILES = {"Makefile", "LICENSE", "NOTICE"}
USERS_DOCUMENTS = {"README.md", "GUIDE.md", "answers.md"}
PROSE_COLUMNS = 100


def tree_files():
    command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.split("\n")
    return sorted(pathlib.Path(name) for name in listed if name and (ROOT / name).is_file())


def includes(path):
    for kind, name in INCLUDE.findall((ROOT / path).read_text()):
        yield kind, name


def check_parts(files):
    """Who may include whom."""
    owner = collections.defaultdict(set)
    for path in files:
        if path.suffix in (".h", ".def"):
            owner[path.name].add(path.parts[0])
    third_party = collections.defaultdict(list)
    for path in files:
        part = path.parts[0]
        if part not in PARTS or path.suffix not in CODE:
            continue
        for kind, name in includes(path):
            base = pathlib.PurePosixPath(name).name
            if THIRD_PARTY.fullmatch(name):
                third_party[part, base].append(path)
            elif kind == '"' and not owner[base] & PARTS[part]:
                yield f'{path}: includes "{name}", which is not of {" or ".join(PARTS[part])}'
            elif kind == "<" and "/" not in name and owner[base] - {"test"}:
                yield f"{path}: includes <{name}> as if it were a system header"
    for (part, name), users in sorted(third_party.items()):
        if name in TEST_ONLY:
            yield f"{users[0]}: includes {name}, which is for test/ only"
        if len(users) > 1 or users[0].suffix != ".c":
            yield f"{part}/: {name} is included by {', '.join(map(str, users))}, not by one .c file"


def layers_of(part):
    """The rows [folder, what it is for] of the part's file `layers`; None: it has no such file."""
    listing = ROOT / part / "layers"
    if not listing.is_file():
        return None
    return [line.split(None, 1) for line in listing.read_text().split("\n")
            if line.strip() and not line.startswith("#")]


def layer_of(path):
    return path.parts[1] if len(path.parts) > 2 else "."


def included(path, files):
    """What the file's quoted includes name: (name, file), or (name, None) for no path."""
    for kind, name in includes(path):
        if kind == '"' and not THIRD_PARTY.fullmatch(name):
            places = [pathlib.Path(part) / name for part in (path.parts[0], "formats")]
            yield name, next((place for place in places if place in files), None)


def layered(files):
    """The code of each part that has layers: (part, rows, its files)."""
    for part in sorted(PARTS):
        rows = layers_of(part)
        if rows is not None:
            yield part, rows, [path for path in files
                               if path.parts[0] == part and path.suffix in CODE]


def check_layers(files):
    everything = set(files)
    for part, rows, members in layered(files):
        order = {row[0]: place for place, row in enumerate(rows)}
        if len(order) != len(rows):
            yield f"{part}/layers: lists a folder twice"
        for row in rows:
            if len(row) != 2:
                yield f"{part}/layers: {row[0]}: does not say what it is for"
            if row[0] not in {layer_of(path) for path in members}:
                yield f"{part}/layers: {row[0]}: has no files"
        for path in members:
            if layer_of(path) not in order:
                yield f"{path}: lies in no folder of {part}/layers"
                continue
            for name, target in included(path, everything):
                if target is None:
                    yield f'{path}: includes "{name}", no path from {part}/ or formats/'
                elif target.parts[0] == part and \
                        order.get(layer_of(target), -1) > order[layer_of(path)]:
                    yield f'{path}: includes "{name}", of a layer above its own'


def check_circles(files):
    """Each set of files that reach each other once, by way of what they include."""
    everything = set(files)
    edges = collections.defaultdict(set)
    for _, _, members in layered(files):
        for path in members:
            unit = path.parent / path.name.partition(".")[0]
            for _, target in included(path, everything):
                if target is not None:
                    edges[unit].add(target.parent / target.name.partition(".")[0])
    reached = {}
    for unit in list(edges):
        seen, left = set(), [unit]
        while left:
            new = edges.get(left.pop(), set()) - seen - {unit}
            seen |= new
            left += new
        reached[unit] = seen
    told = set()
    for unit in sorted(reached):
        circle = {other for other in reached[unit] if unit in reached.get(other, ())}
        if circle and unit not in told:
            told |= circle
            yield "a circle of files: " + " ".join(map(str, sorted(circle | {unit})))


def check_top(files):
    for top in sorted({path.parts[0] for path in files} - TOP_FOLDERS - TOP_FILES):
        if not top.startswith(".") and pathlib.PurePath(top).suffix != ".md":
            yield f"{top}: is no folder or document of the top level"


def check_names(files):
    seen = collections.defaultdict(list)
    for path in files:
        if path.name not in SAME_NAME_ALLOWED and str(path.parent) not in SAME_NAME_FOLDERS:
            seen[path.name].append(str(path))
    for paths in seen.values():
        if len(paths) > 1:
            yield f"one name, several files: {', '.join(paths)}"


def is_source(path):
    if path.suffix in SOURCES or path.name == "Makefile":
        return True
    return not path.suffix and (ROOT / path).read_bytes()[:2] == b"#!"


def check_licences(files):
    for path in files:
        if is_source(path):
            head = (ROOT / path).read_text().split("\n")[:LICENCE_LINES]
            if not any(LICENCE in line for line in head):
                yield f"{path}: no SPDX line"


def is_name_of_tree(word):
    """Does a word of a document look like a file or folder of this tree?"""
    word = pathlib.PurePosixPath(word)
    return word.suffix in SOURCES or len(word.parts) > 1 and word.parts[0] in TOP_FOLDERS \
        or re.fullmatch(r"test_\w+", str(word)) is not None


def check_documents(files):
    """What a document names between backquotes is there: a path from the root, or the end of one; a
    test and a folder without a suffix."""
    names = {str(place) for path in files
             for place in (path, path.with_suffix(""), *path.parents)}
    ends = {"/".join(name.split("/")[i:]) for name in names for i in range(name.count("/") + 1)}
    for path in files:
        text = (ROOT / path).read_text() if path.suffix == ".md" else ""
        for quoted in re.findall(r"`([^`\n]+)`", text):
            for word in quoted.split():
                if re.fullmatch(r"[\w./-]+", word) and is_name_of_tree(word) and \
                        "NAME" not in word and word.removeprefix("../").rstrip("/") not in ends:
                    yield f"{path}: names {word}, which is not there"


def anchors(text):
    """As GitHub makes them of headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def check_links(files):
    """Links between documents, and the width of what users read; a table's row may be longer."""
    texts = {path: (ROOT / path).read_text() for path in files if path.suffix == ".md"}
    for path, text in texts.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            place, _, anchor = target.partition("#")
            if "://" in target:
                continue
            to = (ROOT / path.parent / place).resolve() if place else ROOT / path
            if not to.exists():
                yield f"{path}: links to {target}, which is not there"
            elif anchor and anchor not in anchors(to.read_text()):
                yield f"{path}: links to {target}, of which there is no heading"
        if str(path) in USERS_DOCUMENTS:
            for number, line in enumerate(text.split("\n"), 1):
                if len(line) > PROSE_COLUMNS and not line.startswith("|"):
                    yield f"{path}:{number}: {len(line)} columns, more than {PROSE_COLUMNS}"


def violations():
    files = tree_files()
    yield from check_parts(files)
    yield from check_layers(files)
    yield from check_circles(files)
    yield from check_top(files)
    yield from check_names(files)
    yield from check_licences(files)
    yield from check_documents(files)
    yield from check_links(files)


def main():
    found = list(violations())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
