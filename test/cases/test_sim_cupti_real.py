# SPDX-License-Identifier: Apache-2.0
"""The simulated CUPTI against the real libraries and headers, where those are unpacked."""

import pathlib
import re
import shutil
import subprocess

import cupti_client as cupti
import pytest
import toolchain
from cupti_client import ORDER, SIM_SOURCES

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")

# Kind: bytes in 11.8, 12.4 and 13.0.
SIZES = {39: (24, 24, 24), 10: (200, 208, 216), 1: (88, 88, 96), 22: (96, 96, 96), 2: (88, 88, 88),
         49: (120, 120, 128), 50: (72, 72, 80), 38: (40, 40, 56), 36: (24, 24, 56),
         17: (40, 56, 56), 8: (176, 184, 184), 9: (16, 24, 32), 37: (24, 24, 24),
         51: (48, 56, 56), 52: (64, 72, 72), 4: (40, 40, 40), 5: (40, 40, 40), 0: (0, 0, 0)}
NAMES = {"2 211 cudaLaunchKernel_v7000", "2 31 cudaMemcpy_v3020", "1 307 cuLaunchKernel",
         "1 514 cuGraphLaunch", "2 0 INVALID", "1 0 INVALID"}
NAME_COUNTS = {"11.8": 1111, "12.4": 1222, "13.0": 1330}


@pytest.fixture(name="bare", params=[(kind, v) for kind in ("simulated", "real") for v in ORDER],
                ids=lambda p: f"{p[0]}-{p[1]}")
def fixture_bare(request, tmp_path):
    """The version, and what its library does without a driver."""
    kind, version = request.param
    name = cupti.VERSIONS[version][0]
    if kind == "real":
        return version, cupti.bare(cupti.real_library(version))
    shutil.copy(toolchain.SIM / name, tmp_path)  # away from the simulated driver
    return version, cupti.bare(tmp_path / name)


def test_sizes(bare):
    version, found = bare
    sizes = dict(map(int, line.split(" ")) for line in found["size"])
    at = ORDER.index(version)
    assert {kind: sizes[kind] for kind in SIZES} == {k: v[at] for k, v in SIZES.items()}


def test_walk(bare):
    """Nothing before a whole record, the end at a part of one, an error at no kind at all."""
    version, found = bare
    size = SIZES[10][ORDER.index(version)]
    unknown = 999 if version == "11.8" else 21
    assert found["walk"] == [
        "0 0 12 -1", "1 0 12 -1", "2 0 12 -1", "3 0 12 -1", "4 0 12 -1", "5 1 12 0",
        f"6 2 12 {size}", f"7 3 12 {2 * size}", f"zero 0 {unknown}", "null 1 1"]


def test_callback_names(bare):
    version, found = bare
    assert NAMES <= set(found["name"]) and len(found["name"]) == NAME_COUNTS[version]


def test_version(bare):
    version, found = bare
    assert found["version"] == ["0 1", {"11.8": "18", "12.4": "22", "13.0": "130001"}[version]]


def test_codes_without_a_driver(bare):
    version, found = bare
    none = 999 if version == "13.0" else 15
    codes = dict(line.split(" ", 1) for line in found["code"])
    assert codes["subscribe"] == codes["kind-10"].split()[0] == str(none)
    assert codes["39"] == "0 CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    assert codes["36"] == codes["-1"] == "1 <unknown>"
    assert codes["kind-36"] == ("21 21" if version == "11.8" else f"{none} {none}")
    assert codes["null"] == codes["none"] == "1 1" and codes["register"] == f"0 {none}"


@pytest.mark.parametrize("version", ORDER)
def test_same_as_the_real_one(version, tmp_path):
    """Every size, walk, name and error code, one by one."""
    real = cupti.bare(cupti.real_library(version))
    name = cupti.VERSIONS[version][0]
    shutil.copy(toolchain.SIM / name, tmp_path)
    assert cupti.bare(tmp_path / name) == real


# ---- headers ------------------------------------------------------------------------------


def compile_c(text, tmp_path, *flags):
    source = tmp_path / "check.c"
    source.write_text(text)
    done = subprocess.run(["gcc", "-w", "-o", tmp_path / "check", source, *flags], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return toolchain.run([tmp_path / "check"], toolchain.environment(None)).stdout


# The newest struct of each kind in each version.
STRUCTS = {
    "KERNEL": ("Kernel8", "Kernel9", "Kernel10"), "MEMCPY": ("Memcpy5", "Memcpy5", "Memcpy6"),
    "MEMCPY2": ("MemcpyPtoP4",) * 3, "MEMSET": ("Memset4",) * 3, "API": ("API",) * 3,
    "SYNC": ("Synchronization", "Synchronization", "Synchronization2"),
    "EXTERNAL": ("ExternalCorrelation",) * 3,
    "EVENT": ("CudaEvent", "CudaEvent", "CudaEvent2"), "STREAM": ("Stream",) * 3,
    "GRAPH": ("GraphTrace", "GraphTrace2", "GraphTrace2"),
    "OVERHEAD": ("Overhead", "Overhead3", "Overhead3"),
    "MEMORY": ("Memory3", "Memory3", "Memory4"),
    "POOL": ("MemoryPool2", "MemoryPool2", "MemoryPool3"),
    "DEVICE": ("Device4", "Device5", "Device5"), "CONTEXT": ("Context", "Context2", "Context3"),
}
KINDS = {"KERNEL": 10, "MEMCPY": 1, "MEMCPY2": 22, "MEMSET": 2, "API": 5, "SYNC": 38,
         "EVENT": 36, "STREAM": 37, "GRAPH": 51, "OVERHEAD": 17, "MEMORY": 49, "POOL": 50,
         "DEVICE": 8, "CONTEXT": 9, "EXTERNAL": 39}
PATHS = (("objectId_pt_", "objectId.pt."), ("memoryPoolConfig_pool_", "memoryPoolConfig.pool."),
         ("memoryPoolConfig_", "memoryPoolConfig."))


def fields():
    text = (SIM_SOURCES / "sim_cupti_fields.def").read_text()
    return [(r, m, int(o), int(w)) for r, m, o, w in
            re.findall(r"^FIELD\((\w+), (\w+), (\d+), (\d+)\)", text, re.MULTILINE)]


@pytest.mark.parametrize("version", ORDER)
def test_fields_against_headers(version, tmp_path):
    """Every offset and width, as far as the version's record reaches."""
    at = ORDER.index(version)
    lines = ["#include <cupti.h>", "#include <stddef.h>", "#include <stdio.h>"]
    checked = 0
    for record, member, offset, width in fields():
        if offset + width > SIZES[KINDS[record]][at]:
            continue
        for short, path in PATHS:
            if member.startswith(short):
                member = path + member[len(short):]
                break
        struct = f"CUpti_Activity{STRUCTS[record][at]}"
        lines.append(f'_Static_assert(offsetof({struct}, {member}) == {offset} && '
                     f'sizeof((({struct} *)0)->{member}) == {width}, "{struct} {member}");')
        checked += 1
    for record, names in STRUCTS.items():
        size = SIZES[KINDS[record]][at]
        struct = f"CUpti_Activity{names[at]}"
        lines.append(f'_Static_assert(sizeof({struct}) == {size}, "{record}");')
    folders = cupti.real_headers(version)
    compile_c("\n".join([*lines, "int main(void) { return 0; }"]), tmp_path,
              *(f"-I{folder}" for folder in folders))
    assert checked > 120


@pytest.mark.parametrize("version", [*ORDER, "13.5"])
def test_constants_against_headers(version, tmp_path):
    """What sim_cupti_abi.h declares has the real values."""
    text = (SIM_SOURCES / "sim_cupti_abi.h").read_text()
    rows = re.findall(r"^\s+(CUPTI_\w+) = (\d+),", text, re.MULTILINE)
    rows += re.findall(r"(CUPTI_API_\w+) = (\d)", text)
    known = set().union(*(re.findall(r"\w+", p.read_text(errors="replace"))
                          for p in cupti.real_headers(version)[0].glob("cupti_*.h")))
    absent = {name for name, _ in rows} - known
    assert all(int(dict(rows)[name]) > (8 if version == "11.8" else 10) for name in absent)
    assert not absent or version != "13.5" and all("_ATTR_" in name for name in absent)
    rows = [row for row in rows if row[0] in known]
    members = ("callbackSite functionName functionParams functionReturnValue symbolName context "
               "contextUid correlationData correlationId").split()
    own = compile_c("#include <stdio.h>\n#include \"sim_cupti_abi.h\"\nint main(void) {"
                    + "".join(f'printf("%zu\\n", offsetof(CUpti_CallbackData, {m}));'
                              for m in members) + "}", tmp_path, f"-I{SIM_SOURCES}").split()
    lines = ["#include <cupti.h>", "#include <stddef.h>"]
    lines += [f'_Static_assert({name} == {value}, "{name}");' for name, value in rows]
    lines += [f'_Static_assert(offsetof(CUpti_CallbackData, {m}) == {o}, "{m}");'
              for m, o in zip(members, own)]
    lines.append("int main(void) { return 0; }")
    folders = cupti.real_headers(version)
    compile_c("\n".join(lines), tmp_path, *(f"-I{folder}" for folder in folders))
    assert len(rows) > 35


def test_scoped_functions_against_headers(tmp_path):
    """What the tests' clients call at a subscriber's scope is declared so by 13.5."""
    text = (SIM_SOURCES / "sim_cupti_abi.h").read_text().replace("\\\n", "")
    text = text[text.index("#define SIM_CUPTI_SCOPED_FUNCTIONS"):]
    rows = re.findall(r"FUNCTION\((\w+_v2),\s+\(([^()]+)\)\)", text)
    assert len(rows) == 12
    folder, _ = cupti.real_headers("13.5")
    header = "".join(re.sub(r"/\*.*?\*/", "", p.read_text(errors="replace"), flags=re.S)
                     for p in folder.glob("cupti_*.h"))
    plain = {"CUpti_ActivityKind": "int", "CUpti_ActivityAttribute": "int", "CUcontext": "void *",
             "CUpti_ExternalCorrelationKind": "int", "CUpti_CallbackId": "uint32_t",
             "CUpti_ActivityConfig *": "void *", "CUpti_Activity **": "void **"}

    def types(params):
        found = [re.sub(r"\s+", " ", re.sub(r"(\w)\s*(\*+)\s*", r"\1 \2", p.strip()))
                 for p in params.split(",")]
        found = [re.sub(r"(?<=[\w*]) ?\b\w+$", "", p) if re.search(r"[\s*]\w+$", p) else p
                 for p in found]
        return [plain.get(p.strip(), p.strip()) for p in found]
    for name, params in rows:
        declared = re.search(rf"\b{name}\s*\(([^()]*)\)", header)[1]
        assert types(params) == types(declared), name
    lines = ["#include <cupti.h>", "#include <stddef.h>"]
    for name, size, member, offset in (
            ("CUpti_SubscriberParams", 40, "allowMultipleSubscribers", 32),
            ("CUpti_BufferCallbackRequestInfo", 8, "structSize", 0),
            ("CUpti_BufferCallbackCompleteInfo", 32, "threadId", 8),
            ("CUpti_BufferCallbackCompleteInfo", 32, "ppRecordLayouts", 16)):
        lines.append(f'_Static_assert(sizeof({name}) == {size} && '
                     f'offsetof({name}, {member}) == {offset}, "{name}");')
    lines.append("int main(void) { return 0; }")
    compile_c("\n".join(lines), tmp_path, *(f"-I{f}" for f in cupti.real_headers("13.5")))


NEWEST = {**{record: names[-1] for record, names in STRUCTS.items()}, "KERNEL": "Kernel13",
          "MEMCPY": "Memcpy7", "MEMSET": "Memset5", "EVENT": "CudaEvent3", "DEVICE": "Device6",
          "CONTEXT": "Context4"}


def test_fields_of_the_newest(tmp_path):
    """The simulated 13.5 writes records of the sizes of its headers, fields in their places."""
    sizes = {int(kind): int(size) for kind, size in re.findall(
        r"^SIZE\((\d+),.*, (\d+)\)$", (SIM_SOURCES / "sim_cupti_sizes.def").read_text(), re.M)}
    lines = ["#include <cupti.h>", "#include <stddef.h>"]
    for record, name in NEWEST.items():
        lines.append(f'_Static_assert(sizeof(CUpti_Activity{name}) == {sizes[KINDS[record]]}, '
                     f'"{record}");')
    for record, member, offset, width in fields():
        for short, path in PATHS:
            if member.startswith(short):
                member = path + member[len(short):]
                break
        lines.append(f'_Static_assert(offsetof(CUpti_Activity{NEWEST[record]}, {member}) == '
                     f'{offset} && sizeof(((CUpti_Activity{NEWEST[record]} *)0)->{member}) == '
                     f'{width}, "{record} {member}");')
    lines.append("int main(void) { return 0; }")
    compile_c("\n".join(lines), tmp_path, *(f"-I{f}" for f in cupti.real_headers("13.5")))


@pytest.mark.parametrize("version", ORDER)
@pytest.mark.parametrize("domain", ["driver", "runtime"])
def test_callback_ids_against_headers(version, domain):
    folder, _ = cupti.real_headers(version)
    text = (folder / f"cupti_{domain}_cbid.h").read_text()
    real = {int(i): n for n, i in re.findall(
        rf"CUPTI_{domain.upper()}_TRACE_CBID_(\w+)\s*= (\d+)", text)
        if n not in ("SIZE", "FORCE_INT")}
    own = {}
    for line in (SIM_SOURCES / f"sim_cupti_{domain}_cbids.def").read_text().splitlines():
        row = re.match(r"(CBID|RENAMED)\((\d+), (\w+)(?:, (\w+))?\)", line)
        if row:
            own[int(row[2])] = row[4] if row[4] and version == "13.0" else row[3]
    number = {"1": "driver", "2": "runtime"}
    count = sum(number[line[0]] == domain for line in cupti.bare(
        toolchain.SIM / cupti.VERSIONS[version][0])["name"])
    assert len(real) >= count > 400
    wrong = {i: (own[i], real.get(i)) for i in range(count)
             if own[i] != real.get(i) and not re.match("cu(da)?[0-9]", real.get(i, ""))
             and not re.match("cu(da)?[0-9]", own[i])}
    assert not wrong


# ---- the structs of arguments -------------------------------------------------------------

ENTRY = re.compile(r"(?:CUresult|cudaError_t) (\w+) ?\(([^{};]*?)\) \{ enum \{ pt = \d \};")


def split_params(text):
    """[(type, name)] of a parameter list."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text + ","):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    found = [re.fullmatch(r"(.*?)(\w+)", part, re.DOTALL) for part in parts if part != "void"]
    return [(m[1].strip(), m[2]) for m in found]


def entries(layer, major):
    """{symbol: [(type, name)]} of every entry point, after the preprocessor."""
    found = {}
    for source in sorted(SIM_SOURCES.glob(f"sim_{layer}_*.c")):
        text = subprocess.run(
            ["gcc", "-E", "-P", f"-DSIM_CUDART_MAJOR={major}", "-D_GNU_SOURCE",
             f"-I{toolchain.SIM_INCLUDE}", f"-I{SIM_SOURCES}", source],
            capture_output=True, text=True, check=True).stdout
        for name, params in ENTRY.findall(re.sub(r"\s+", " ", text)):
            found[name] = split_params(params)
    return found


def names_file(layer, major):
    text = subprocess.run(
        ["gcc", "-E", "-dD", "-P", f"-DSIM_CUDART_MAJOR={major}",
         SIM_SOURCES / f"sim_{layer}_names.h"], capture_output=True, text=True,
        check=True).stdout
    return {name: [n.strip() for n in names.split(",") if n.strip()]
            for name, names in re.findall(r"^#define SIM_NAMES_(\w+) ?(.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("layer,major", [("driver", 13), ("runtime", 12), ("runtime", 13)])
def test_parameter_names(layer, major):
    """The names that make the structs are the parameters, all of them, in their order."""
    names, checked = names_file(layer, major), 0
    for symbol, params in entries(layer, major).items():
        base = re.sub("_pt[sd][sz]$", "", symbol)
        listed = names.get(symbol, names.get(base))
        if listed is None:
            assert not params, f"{symbol} has no row"
            continue
        assert listed == [name for _, name in params], symbol
        checked += 1
    assert checked > 250


def struct_program(includes, structs):
    """Prints "symbol size offset..." of each struct: {symbol: ([(type, name)] or a type's name)}"""
    lines = [*includes, "#include <stddef.h>", "#include <stdio.h>"]
    body = []
    for symbol, (declaration, members) in structs.items():
        lines.append(declaration)
        offsets = "".join(f', offsetof(args_{symbol}, {m})' for m in members)
        body.append(f'printf("{symbol} %zu{" %zu" * len(members)}\\n", sizeof(args_{symbol})'
                    f'{offsets});')
    return "\n".join([*lines, "int main(void) {", *body, "return 0; }"])


def real_structs(folder, header, version_of):
    """{symbol: (declaration, members)} out of a header's <function>_params."""
    found = {}
    text = (folder / header).read_text()
    for body, name in re.findall(r"typedef struct \w+_params_st \{([^}]*)\} (\w+)_params;", text):
        members = [re.search(r"(\w+)(\[\w+\])?$", m.strip())[1] for m in body.split(";")
                   if m.strip()]
        symbol = version_of(name)
        found[symbol] = (f"typedef {name}_params args_{symbol};", members)
    return found


@pytest.mark.parametrize("layer", ["driver", "runtime"])
def test_structs_against_headers(layer, tmp_path):
    """What a callback is shown has the layout of the headers' structs."""
    folder, cuda = cupti.real_headers("13.0")
    header = {"driver": "generated_cuda_meta.h",
              "runtime": "generated_cuda_runtime_api_meta.h"}[layer]
    real = real_structs(folder, header, lambda name: re.sub(r"_v\d{4,5}$", "", name)
                        if layer == "runtime" else name)
    for old in ("cudaMemcpyBatchAsync", "cudaMemcpy3DBatchAsync"):  # two versions, one name
        real.pop(old, None), real.pop(old + "_ptsz", None)
    made = entries(layer, 13)
    shared = sorted(s for s in real.keys() & made.keys() if made[s])
    assert len(shared) > 200
    key = {"driver": "cuda.h", "runtime": "cuda_runtime_api.h"}[layer]
    mine = compile_c(struct_program(
        ["#define __CUDA_API_VERSION_INTERNAL", "#define SIM_NO_RENAMES", f"#include <{key}>",
         "#include <cuda.h>", "typedef unsigned u32;"], {s: ("typedef struct { " + " ".join(
             f"__typeof__({t}) {n};" for t, n in made[s]) + f" }} args_{s};",
             [n for _, n in made[s]]) for s in shared}), tmp_path, f"-I{toolchain.SIM_INCLUDE}")
    theirs = compile_c(struct_program(
        ["#define __CUDA_API_VERSION_INTERNAL", "#include <cuda.h>",
         "#include <cuda_runtime_api.h>", "#include <vector_types.h>", f"#include <{header}>"],
        {s: real[s] for s in shared}), tmp_path, f"-I{folder}", f"-I{cuda}")
    assert mine.splitlines() == theirs.splitlines()


def test_headers_come_from_the_same_version():
    """The files that the tests above read are those that the table of versions names."""
    for version in ORDER:
        folder, _ = cupti.real_headers(version)
        text = pathlib.Path(folder / "cupti_version.h").read_text()
        assert re.search(r"#define CUPTI_API_VERSION (\d+)", text)[1] == \
            {"11.8": "18", "12.4": "22", "13.0": "130001"}[version]
