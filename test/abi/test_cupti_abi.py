# SPDX-License-Identifier: Apache-2.0
"""What inject/ knows of CUPTI, against the real headers of every version that is found.

`make fetch-cupti` unpacks them; they include CUDA's own, which `make fetch-cuda` unpacks.
"""

import re
import subprocess

import pytest

import conftest
from cuda_toolkits import ROOT, run, toolkits

HERE = ROOT / "test" / "abi"
INJECT = ROOT / "inject"
FORMATS = ROOT / "formats"
ABI = INJECT / "cupti" / "cupti_abi.h"
NONE_FOUND = "not run: no CUPTI headers; make fetch-cupti fetch-cuda"
COMPLETE = {"11.8", "12.4", "12.9", "13.0", "13.5"}

# Rows of api.def that no CUPTI reports.
WITHOUT_CALLBACK = {"cuFabricCpyBatchAsync", "cuFabricCpyBatchAsync_ptsz"}
# Ids whose structure of parameters no header has: taken to be what their prototype says, as it is
# for all others. A GPU's to prove.
WITHOUT_PARAMS = {"__cudaLaunchKernel_v13000", "__cudaLaunchKernel_ptsz_v13000"}

# The structures of parameters. Those of removed functions are in a header that does not compile.
PARAMS_HEADERS = ("generated_cuda_meta.h", "generated_cuda_runtime_api_meta.h")


class Cupti:
    """One version's CUPTI headers, and the CUDA headers to go with them."""

    def __init__(self, folder, cuda):
        self.name = folder.name
        self.number = tuple(map(int, self.name.split(".")))
        self.include = [folder / "include", cuda.include]
        self.texts = {p.name: re.sub(r"/\*.*?\*/", "", p.read_text(errors="replace"), flags=re.S)
                      for p in sorted(self.include[0].glob("*.h"))}
        self.activity = "".join(t for n, t in self.texts.items() if n.startswith("cupti_activity"))
        self.words = set(re.findall(r"\w+", "".join(
            t for n, t in self.texts.items() if n.startswith("cupti"))))
        self.meta = "".join(self.texts[name] for name in PARAMS_HEADERS)

    def cbids(self, domain):
        return {n: int(i) for n, i in re.findall(r"_TRACE_CBID_(\w+)\s+= (\d+)",
                                                 self.texts[f"cupti_{domain}_cbid.h"])}

    def structure(self, stem):
        """Name and body of CUpti_Activity<stem><highest number>, what this libcupti writes."""
        names = re.findall(rf"\}} CUpti_Activity{stem}(\d*);", self.activity)
        name = f"CUpti_Activity{stem}{max(names, key=lambda n: int(n or 0))}"
        end = self.activity.index(f"}} {name};")
        return name, self.activity[self.activity.rindex("typedef struct", 0, end):end]

    def params(self, name):
        """The members of <name>_params in order; None if the headers have no such structure."""
        match = re.search(rf"struct {name}_params_st \{{(.*?)\}}", self.meta, re.S)
        if not match:
            return None
        return [re.search(r"(\w+)(\[\w*\])*$", m.strip()).group(1)
                for m in match.group(1).split(";") if m.strip()]


def find_all():
    found = {}
    for build in (conftest.BUILD, ROOT / "build"):
        for folder in sorted((build / "cupti").glob("*")):
            # A CUDA of the same version, or the next one.
            number = tuple(map(int, folder.name.split("."))) if folder.name[0].isdigit() else ()
            fitting = [t for t in toolkits() if tuple(map(int, t.name.split("."))) >= number]
            if (folder / "include" / "cupti.h").exists() and fitting:
                found.setdefault(folder.name, Cupti(folder, fitting[0]))
    return sorted(found.values(), key=lambda c: c.number)


@pytest.fixture(scope="module")
def versions():
    found = find_all()
    if not found:
        pytest.skip(NONE_FOUND)
    return found


@pytest.fixture(scope="module")
def complete(versions):
    missing = COMPLETE - {c.name for c in versions}
    if missing:
        pytest.skip(f"not run: no CUPTI {', '.join(sorted(missing))}; make fetch-cupti fetch-cuda")
    return versions


def table(name, macro):
    """The rows of one macro in a .def of inject/, as lists of stripped columns."""
    text = re.sub(r"/\*.*?\*/", "", (INJECT / "cupti" / name).read_text(), flags=re.S)
    rows = re.findall(rf"^{macro}\(([^()]*)\)$", text, re.M)
    assert rows
    return [[column.strip() for column in row.split(",")] for row in rows]


def compile_program(folder, source, *flags):
    path = folder / "program.c"
    path.write_text(source)
    run("gcc", "-std=gnu11", "-w", *flags, str(path), "-o", str(folder / "program"))
    return run(str(folder / "program")).splitlines()


# ---- functions and records ----


def declare(folder, cupti):
    """Writes declared.h; returns the functions and fields that will be compared."""
    text = (INJECT / "cupti" / "cupti_functions.def").read_text()
    functions = re.findall(r"^CUPTI_FUNCTION\((\w+),", text, re.M)
    assert len(functions) > 15
    seen = {n for n in functions if n in cupti.words}
    lines = [f"#define DECLARED_{n} {int(n in seen)}" for n in functions]
    bodies = {}
    for record, _, stem in table("cupti_fields.def", "CUPTI_RECORD"):
        name, bodies[record] = cupti.structure(stem)
        lines.append(f"#define STRUCTURE_{record} {name}")
    for record, field, _, _, member in table("cupti_fields.def", "CUPTI_FIELD"):
        # Members of unions and nested structures: the first word tells.
        first = re.escape(member.split(".")[0])
        has = bool(re.search(rf"\b{first}(\[\w+\])?;", bodies[record]))
        lines.append(f"#define HAS_{record}_{field} {int(has)}")
        if has:
            seen.add((record, field))
    (folder / "declared.h").write_text("\n".join(lines) + "\n")
    return seen


def test_functions_and_fields_equal_the_headers(versions, tmp_path):
    for cupti in versions:
        declare(tmp_path, cupti)
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-w", f"-I{tmp_path}", f"-I{INJECT}",
             *(f"-I{path}" for path in cupti.include), "-fsyntax-only",
             str(HERE / "check_cupti.c")], capture_output=True, text=True, check=False)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        assert not done.returncode, f"CUPTI {cupti.name}:\n" + "\n".join(errors)


def test_every_function_and_field_was_compared(complete, tmp_path):
    seen = set().union(*(declare(tmp_path, cupti) for cupti in complete))
    fields = {(row[0], row[1]) for row in table("cupti_fields.def", "CUPTI_FIELD")}
    functions = re.findall(r"^CUPTI_FUNCTION\((\w+),",
                           (INJECT / "cupti" / "cupti_functions.def").read_text(), re.M)
    assert seen == fields | set(functions)


def test_fields_only_come_and_never_go(complete, tmp_path):
    """Versions append: what one has, all later ones have."""
    before = set()
    for cupti in complete:
        seen = declare(tmp_path, cupti)
        assert not before - seen, f"not in CUPTI {cupti.name}"
        before = seen


def test_sizes_of_the_structures(versions, tmp_path):
    """The sizes that were measured on the libraries are those of the newest structures."""
    lines = (ROOT / "test" / "cupti" / "record-sizes.tsv").read_text().splitlines()
    names = lines[0].split("\t")[1:]
    rows = {int(kind): dict(zip(names, map(int, sizes)))
            for kind, *sizes in (line.split("\t") for line in lines[1:])}
    compared = 0
    for cupti in versions:
        if cupti.name not in names:
            continue
        items = []
        for _, kind, stem in table("cupti_fields.def", "CUPTI_RECORD"):
            items.append(f'printf("%d %zu\\n", CUPTI_ACTIVITY_KIND_{kind}, '
                         f"sizeof({cupti.structure(stem)[0]}));")
        out = compile_program(tmp_path, "#include <stdio.h>\n#include <cupti.h>\nint main(void)\n{"
                              + "\n".join(items) + "return 0; }",
                              *(f"-I{path}" for path in cupti.include))
        for kind, size in (map(int, line.split()) for line in out):
            assert rows[kind][cupti.name] == size, f"CUPTI {cupti.name}, kind {kind}"
            compared += 1
    assert compared


# ---- structures and constants of cupti_abi.h ----

# As 13.2 and newer have it; it says its own size, and is smaller in 13.0.
GROWN = {"sizeof(CUpti_SubscriberParams)": "allowMultipleSubscribers"}


def abi_items():
    """C expressions, each with the words that a header must have for it to make sense."""
    text = re.sub(r"/\*.*?\*/", "", ABI.read_text(), flags=re.S)
    items = {}
    for body, name in re.findall(r"typedef struct[^{;]*\{([^}]*)\} (CUpti_\w+);", text):
        items[f"sizeof({name})"] = items[f"_Alignof({name})"] = {name}
        for member in re.findall(r"(\w+);", body):
            items[f"offsetof({name}, {member})"] = {name, member}
            items[f"sizeof((({name} *)0)->{member})"] = {name, member}
    for item, member in GROWN.items():
        items[item] = items[item] | {member}
    for body, name in re.findall(r"typedef enum \{([^}]*)\} (\w+);", text):
        items[f"sizeof({name})"] = items[f"({name})-1 > 0"] = {name}
        for constant in re.findall(r"(\w+) =", body):
            items[constant] = {constant}
    for constant in re.findall(r"#define (CUPTI_(?:ACTIVITY|OLD)_\w+) ", text):
        items[constant] = {constant}
    for name in re.findall(r"typedef [\w ]+ \*?(CUpti_\w+);", text):
        items[f"sizeof({name})"] = {name}
    for name in re.findall(r"typedef \w+ \(\*(CUpti_\w+)\)", text):
        items[f"sizeof({name})"] = {name}
    return items


def evaluate(folder, header, items, *flags):
    out = compile_program(folder, "#include <stddef.h>\n#include <stdio.h>\n"
                          f"#include {header}\nint main(void)\n{{\n"
                          + "\n".join(f'printf("%lld\\n", (long long)({i}));' for i in items)
                          + "\nreturn 0;\n}\n", *flags)
    return dict(zip(items, map(int, out)))


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    found = evaluate(tmp_path_factory.mktemp("ours"), '"cupti/cupti_abi.h"', abi_items(),
                     f"-I{INJECT}", f"-I{FORMATS}")
    assert len(found) > 130
    return found


def test_our_side_can_be_read(ours, printed):
    """Where there are no headers, too, so that those who have none do not break the rest."""
    assert ours and len(printed) > 400
    assert {len(line) for line in printed if line[0] == "DISPATCH"} == {4}


def test_layouts_and_constants_equal_the_headers(versions, ours, tmp_path):
    items = abi_items()
    compared = set()
    for cupti in versions:
        present = [i for i, words in items.items() if words <= cupti.words]
        theirs = evaluate(tmp_path, "<cupti.h>", present, *(f"-I{p}" for p in cupti.include))
        different = {i: (ours[i], theirs[i]) for i in present if ours[i] != theirs[i]}
        assert not different, f"CUPTI {cupti.name}: ours, theirs"
        compared.update(present)
    if COMPLETE <= {c.name for c in versions}:
        assert not set(items) - compared


def test_callback_types_equal_the_headers(versions, tmp_path):
    """Function types that CUPTI calls: ours as text, under their header."""
    text = re.sub(r"/\*.*?\*/", "", ABI.read_text(), flags=re.S)
    types = re.findall(r"typedef (\w+) \(\*(CUpti_\w+)\)(\([^)]*\));", text)
    assert len(types) == 6
    for cupti in versions:
        known = [row for row in types if row[1] in cupti.words or cupti.number >= (13, 3)]
        lines = [f"_Static_assert(__builtin_types_compatible_p({returns} (*){params}, {name}), "
                 f'"{name}");' for returns, name, params in known]
        compile_program(tmp_path, "#include <cupti.h>\n" + "\n".join(lines)
                        + "\nint main(void) { return 0; }\n", *(f"-I{p}" for p in cupti.include))


# ---- callback ids and parameters ----

OURS = r"""
#include <stddef.h>
#include <stdio.h>
#include "cuda/cuda_abi.h"
#include "cupti/cupti_params.h"
#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...) \
    CUPTI_PARAMS(id, params, names)
#define API_VARIANT API
#include "api/api.def"
#define PRINT(member) printf(" %zu:%zu", offsetof(struct current, member), \
                             sizeof(((struct current *)0)->member));
#define API(id, symbol, name, domain, does, f, l, p, returns, params, names, ...) \
    { \
        struct current { MACRO_EACH_IN(names, CUPTI_PARAMS_MEMBER, params) }; \
        printf("%s %s %s", #id, #symbol, api_libraries[API_##domain].cupti ? #domain : "-"); \
        MACRO_EACH(PRINT, names) \
        _Static_assert(sizeof(struct current) == sizeof(struct params_##id), #id); \
        puts(""); \
    }
#define API_VARIANT API
#define DISPATCH(symbol, domain, returns, params, names, low_id, high_id, high_first, high_since) \
    printf("DISPATCH %s %s %d\n", #low_id, #high_id, high_since);
int main(void)
{
#include "api/api.def"
    return 0;
}
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    out = compile_program(tmp_path_factory.mktemp("params"), OURS, f"-I{INJECT}", f"-I{FORMATS}",
                          *map(str, (FORMATS / "api" / "api.c", FORMATS / "crc32c.c",
                                     FORMATS / "argument_kind.c")))
    return [line.split() for line in out]


@pytest.fixture(scope="module")
def rows(printed):
    """id -> (symbol, domain, ["offset:width" of each parameter]) of what CUPTI reports."""
    found = {id_: (symbol, domain.lower(), places)
             for id_, symbol, domain, *places in printed
             if id_ != "DISPATCH" and domain != "-"}
    assert len(found) > 400
    return found


@pytest.fixture(scope="module")
def callbacks(versions, printed, rows):
    """(id, CUPTI's name, domain) of each callback of any version that is about a row."""
    forms = {low: (high, int(since)) for kind, low, high, since, *_ in
             (line for line in printed if line[0] == "DISPATCH")}
    first = {}
    for id_, (symbol, domain, _) in rows.items():
        first.setdefault((domain, symbol), id_)
    found = set()
    for domain, name in {(d, n) for c in versions for d in ("runtime", "driver")
                         for n in c.cbids(d)}:
        symbol, _, since = name.rpartition("_v") if domain == "runtime" else (name, "", "0")
        id_ = first.get((domain, symbol))
        high, high_since = forms.get(id_, (id_, 0))
        if id_:
            found.add((high if int(since) >= high_since else id_, name, domain))
    assert len(found) > 300
    return sorted(found)


def test_an_id_never_gets_another_meaning(versions, callbacks):
    """What it is called in two versions is about the same row, or differs by _v2 alone."""
    about = {(domain, name): id_ for id_, name, domain in callbacks}
    seen = {}
    for cupti in versions:
        for domain in ("runtime", "driver"):
            for name, cbid in cupti.cbids(domain).items():
                id_ = about.get((domain, name))
                if id_:
                    seen.setdefault((domain, cbid), set()).add(re.sub(r"_v\d+", "", id_))
    assert seen and all(len(ids) == 1 for ids in seen.values())


def test_every_row_is_reported(complete, rows, callbacks):
    assert set(rows) - {id_ for id_, *_ in callbacks} == WITHOUT_CALLBACK


def compare_params(folder, cupti, rows, callbacks):
    """Asserts that the layouts are equal; returns the callbacks whose layout was compared."""
    lines, names = [], []
    for row in callbacks:
        members = cupti.params(row[1])
        if members is None:
            continue
        names.append(row)
        structure = f"{row[1]}_params"
        lines += [f'printf("{row[1]}");']
        lines += [f'printf(" %zu:%zu", offsetof({structure}, {m}), '
                  f"sizeof((({structure} *)0)->{m}));" for m in members]
        lines += ['puts("");']
    source = ("#include <stddef.h>\n#include <stdio.h>\n"
              + "".join(f"#include <{h}>\n" for h in PARAMS_HEADERS)
              + "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    out = compile_program(folder, source, "-D__CUDA_API_VERSION_INTERNAL",
                          *(f"-I{p}" for p in cupti.include))
    theirs = [line.split()[1:] for line in out]
    different = {row[1]: (rows[row[0]][2], places) for row, places in zip(names, theirs)
                 if rows[row[0]][2] != places}
    assert not different, f"CUPTI {cupti.name}: ours, theirs (offset:width)"
    return set(names)


def test_parameters_equal_the_headers(versions, rows, callbacks, tmp_path):
    compared = set()
    for cupti in versions:
        compared |= compare_params(tmp_path, cupti, rows, callbacks)
    if COMPLETE <= {c.name for c in versions}:
        left = {row[1] for row in set(callbacks) - compared if rows[row[0]][2]}
        assert left == WITHOUT_PARAMS
