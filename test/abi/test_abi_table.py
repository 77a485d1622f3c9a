# SPDX-License-Identifier: Apache-2.0
"""The table of intercepted functions (formats/api/api.def) and inject/cuda/cuda_abi.h.

Against itself, always; against the headers and libraries of every CUDA version that is found:
those of `make fetch-cuda`, of CUDA_HOME, and of the nvcc in PATH.
"""

import collections
import graphlib
import re
import subprocess

import pytest

from cuda_toolkits import (CONFIGURATIONS, PROFILER_HEADERS, ROOT, require_any, require_complete,
                           run)

HERE = ROOT / "test" / "abi"
Row = collections.namedtuple(
    "Row", "macro id symbol name domain does first last returns params names args"
           " proc_name proc_version proc_flags")
Dispatch = collections.namedtuple("Dispatch", "symbol params low high high_first")

# Kinds that one label may have: what it means to a reader is the same.
ALIKE = [{"ADDRESS", "HANDLE"}, {"DIM3", "DIM3_XY"}, {"BYTES", "COUNT"}]

# Rows that differ from the headers of these majors, on purpose: id -> (majors, reason).
EXTERNAL_SEMAPHORES = ((11, 12), "points to a _v1 structure there, which no row reads")
DRIVER_ENTRY_POINT = ((11,), "has three arguments there; the hook never reads the fourth")
DIFFERENT = {
    "cudaSignalExternalSemaphoresAsync": EXTERNAL_SEMAPHORES,
    "cudaSignalExternalSemaphoresAsync_ptsz": EXTERNAL_SEMAPHORES,
    "cudaWaitExternalSemaphoresAsync": EXTERNAL_SEMAPHORES,
    "cudaWaitExternalSemaphoresAsync_ptsz": EXTERNAL_SEMAPHORES,
    "cudaGetDriverEntryPoint": DRIVER_ENTRY_POINT,
    "cudaGetDriverEntryPoint_ptsz": DRIVER_ENTRY_POINT,
}

# Exported functions with one of these names do what the classes of the table stand for: what a new
# CUDA brings is found by them, a row may stand for more ...
RECORDED = {
    "runtime": re.compile(
        r"(__)?cuda(Launch|Malloc|Free|Mem(cpy|set|Prefetch|Discard|Pool)|MemGet(Default)?MemPool"
        r"|Host(Alloc|Register|Unregister)|Ipc(Open|Close)MemHandle|(Import|Destroy)ExternalMemory"
        r"|DeviceGet(Default)?MemPool|Device(GraphMemTrim|Reset)|MemGetInfo|GraphAddMem(Alloc|Free)"
        r"|ExternalMemoryGet|(Device|Thread|Stream|Event|ExecutionCtx)Synchronize|Stream(Query"
        r"|WaitEvent|AddCallback|Begin|End)|Event(Query|Record)|ExecutionCtx(Record|Wait)Event"
        r"|(Signal|Wait)ExternalSem|Graph(Launch|Upload|Instantiate|ExecDestroy))"),
    "driver": re.compile(
        r"cu(Launch|(MipmappedA|A)rray(3D)?(Create|Destroy)|Mem(Alloc|Free|Host(Alloc|Reg|Unreg)"
        r"|Address|Create|Map|Unmap|Release|Retain|GetInfo|ImportFrom|Pool|cpy"
        r"|set|Prefetch|Discard|BatchDecompress)"
        r"|MemGet(Default)?MemPool|Multicast|Ipc(Open|Close)MemHandle|(Import"
        r"|Destroy)ExternalMemory"
        r"|DeviceGet(Default)?MemPool|Device(GraphMemTrim|PrimaryCtxReset)|CtxDestroy"
        r"|GraphAddMem(Alloc|Free)"
        r"|ExternalMemoryGet|(Ctx|Stream|Event)Synchronize|(Green)?Ctx(Record|Wait)Event"
        r"|Stream(Query|Wait|Write|BatchMemOp|AddCallback|Begin|End)|Event(Query|Record)"
        r"|(Signal|Wait)ExternalSem|Graph(Launch|Upload|Instantiate|ExecDestroy)|FabricCpy)"),
}
# ... except these, which move, allocate and wait for nothing.
QUERY = "a query or a setting"
NOT_RECORDED = {
    re.compile(r"cu(da)?MemPool([GS]et(Access|Attribute)|Export|ImportFrom)"): QUERY,
    re.compile(r"cuMulticast(GetGranularity|AddDevice)"): QUERY,
    re.compile(r"cuMemAdvise|cuMemAllocationGran"): QUERY,
}

# What each function that gets memory, gives it back, or says who holds it does to that: after
# NVIDIA's manuals, one name for all ABIs of a function.
MEMORY = {
    "GET_DEVICE": "cudaMalloc cudaMalloc3D cudaMallocPitch cuMemAlloc cuMemAllocPitch",
    "GET_MANAGED": "cudaMallocManaged cuMemAllocManaged",
    "GET_POOLED": "cudaMallocAsync cudaMallocFromPoolAsync cuMemAllocAsync cuMemAllocFromPoolAsync",
    "GET_PHYSICAL": "cuMemCreate",
    "GET_ARRAY": "cudaMallocArray cudaMalloc3DArray cudaMallocMipmappedArray cuArrayCreate"
                 " cuArray3DCreate cuMipmappedArrayCreate",
    "GET_HOST": "cudaHostAlloc cudaMallocHost cuMemHostAlloc cuMemAllocHost",
    "REGISTER_HOST": "cudaHostRegister cuMemHostRegister",
    "OPEN_FOREIGN": "cudaIpcOpenMemHandle cudaImportExternalMemory cudaMemPoolImportPointer"
                    " cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray"
                    " cuIpcOpenMemHandle cuImportExternalMemory cuMemPoolImportPointer"
                    " cuMemImportFromShareableHandle"
                    " cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray",
    "MAP": "cuMemMap",
    "UNMAP": "cuMemUnmap",
    "FREE": "cudaFree cudaFreeAsync cuMemFree cuMemFreeAsync",
    "FREE_HOST": "cudaFreeHost cuMemFreeHost",
    "FREE_ARRAY": "cudaFreeArray cudaFreeMipmappedArray cuArrayDestroy cuMipmappedArrayDestroy",
    "UNREGISTER_HOST": "cudaHostUnregister cuMemHostUnregister",
    "RELEASE_PHYSICAL": "cuMemRelease",
    "CLOSE_FOREIGN": "cudaIpcCloseMemHandle cudaDestroyExternalMemory cuIpcCloseMemHandle"
                     " cuDestroyExternalMemory",
    "RETAIN": "cuMemRetainAllocationHandle",
    "NODE_GET": "cudaGraphAddMemAllocNode cuGraphAddMemAllocNode",
    "NODE_FREE": "cudaGraphAddMemFreeNode cuGraphAddMemFreeNode",
    "RESET": "cudaDeviceReset cuCtxDestroy cuDevicePrimaryCtxReset",
    "INFO": "cudaMemGetInfo cuMemGetInfo",
    "POOL": "cudaMemPoolCreate cudaMemGetMemPool cudaMemGetDefaultMemPool cuMemPoolCreate"
            " cuMemGetMemPool cuMemGetDefaultMemPool cudaDeviceGetMemPool"
            " cudaDeviceGetDefaultMemPool cuDeviceGetMemPool cuDeviceGetDefaultMemPool",
    "POOL_END": "cudaMemPoolDestroy cuMemPoolDestroy",
    # Addresses, tiles, pools' reserves, and multicast objects, which have no memory of their own.
    "NONE": "cudaDeviceGraphMemTrim cuDeviceGraphMemTrim cuMemAddressReserve cuMemAddressFree"
            " cuMemMapArrayAsync cudaMemPoolTrimTo"
            " cuMemPoolTrimTo cuMulticastCreate cuMulticastBindMem cuMulticastBindAddr"
            " cuMulticastUnbind",
}


@pytest.fixture(scope="session")
def printed(tmp_path_factory):
    """The lines of print_rows.c."""
    program = tmp_path_factory.mktemp("abi") / "print_rows"
    run("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "formats"),
        str(HERE / "print_rows.c"), *(str(ROOT / "formats" / name) for name in (
            "api/api.c", "argument_kind.c", "crc32c.c")), "-o", str(program))
    return run(str(program)).splitlines()


@pytest.fixture(scope="session")
def rows(printed):
    """API and API_VARIANT rows, and hooks."""
    found = []
    for line in printed:
        if line.startswith(("API", "HOOK")):
            r = Row(*line.split("|"))
            if r.domain not in ("RUNTIME", "DRIVER"):
                continue  # not CUDA's; CUPTI's: test_cupti_abi.py
            args = [tuple(a.split()) for a in r.args.split(";") if a]
            found.append(r._replace(
                first=int(r.first or 0), last=int(r.last or 99), args=args,
                proc_version=int(r.proc_version), proc_flags=int(r.proc_flags)))
    assert len(found) > 400
    return found


@pytest.fixture(scope="session")
def recorded(rows):
    return [r for r in rows if r.macro != "HOOK"]


@pytest.fixture(scope="session")
def dispatches(printed):
    lines = [line.split("|")[1:] for line in printed if line.startswith("DISPATCH|")]
    return [Dispatch(s, params, low, high, int(first)) for s, params, low, high, first in lines]


def evaluate(folder, includes, header, items, flags):
    """item -> value of each C integer expression, as gcc has it after `header`."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", header, "int main(void)", "{"]
    lines += [f'    printf("%lld\\n", (long long)({item}));' for item in items]
    source = folder / "layout.c"
    source.write_text("\n".join([*lines, "    return 0;", "}", ""]))
    program = folder / "layout"
    run("gcc", "-std=gnu11", "-w", *flags, *(f"-I{i}" for i in includes), str(source),
        "-o", str(program))
    return dict(zip(items, map(int, run(str(program)).split())))


def per_thread_base(symbol):
    return re.sub(r"_pt[sd][sz]$", "", symbol)


def split_params(params):
    """The parameters of a prototype as written; none of them has a comma of its own."""
    inner = params.strip()[1:-1].strip()
    return [] if inner == "void" else [p.strip() for p in inner.split(",")]


# ---- the table against itself ----


def test_ids_and_exported_symbols_are_unique(rows, dispatches):
    assert len({r.id for r in rows}) == len(rows)
    symbols = [r.symbol for r in rows if r.macro != "API_VARIANT"]
    symbols += [d.symbol for d in dispatches]
    doubled = [s for s, n in collections.Counter(symbols).items() if n > 1]
    assert not doubled
    assert {r.symbol for r in rows} == set(symbols)


def test_an_id_is_its_symbol_unless_it_is_a_variant(rows):
    for r in rows:
        if r.macro == "API_VARIANT":
            assert re.fullmatch(re.escape(r.symbol) + rf"_v{r.first}", r.id), r.id
        else:
            assert r.id == r.symbol


def test_every_variant_is_dispatched(rows, dispatches):
    by_id = {r.id: r for r in rows}
    for d in dispatches:
        low, high = by_id[d.low], by_id[d.high]
        assert low.symbol == high.symbol == d.symbol
        assert (low.last + 1, d.high_first) == (high.first, high.first), d
        # One word each: the largest structure here is the 8 bytes of a cudaMemLocation.
        assert not any(re.search(r"dim3|Extent|PitchedPtr|IpcMemHandle", p)
                       for p in split_params(low.params) + split_params(high.params)
                       if "*" not in p), d
        words = max(len(split_params(low.params)), len(split_params(high.params)))
        assert [p.split()[0] for p in split_params(d.params)] == ["uint64_t"] * words, d
    variants = {r.id for r in rows if r.macro == "API_VARIANT"}
    assert variants == {i for d in dispatches for i in (d.low, d.high)}


def test_version_ranges(rows):
    for r in rows:
        if r.macro == "HOOK":
            continue
        if r.domain == "DRIVER":
            assert (r.first, r.last) == (0, 99), r.id
        else:
            assert r.first in (11, 12, 13) and r.last in (11, 12, 99) and r.first <= r.last, r.id


def test_proc_columns_agree_with_symbols(rows):
    seen = {}
    generations = collections.defaultdict(list)
    for r in rows:
        if r.domain == "RUNTIME":
            twin = 2 if per_thread_base(r.symbol) != r.symbol else 0
            assert (r.proc_name, r.proc_version, r.proc_flags) == ("", 0, twin), r.id
            continue
        base = per_thread_base(r.symbol)
        assert r.proc_name == re.sub(r"_v\d+$", "", base), r.id
        assert r.proc_flags == (2 if base != r.symbol else 0), r.id
        assert r.proc_version >= 2000 and r.proc_version % 10 == 0, r.id
        key = (r.proc_name, r.proc_version, r.proc_flags)
        assert seen.setdefault(key, r.id) == r.id, key
        number = re.search(r"_v(\d+)$", base)
        generation = int(number.group(1)) if number else 1
        generations[r.proc_name, r.proc_flags].append((generation, r.proc_version))
    for name, pairs in generations.items():
        pairs.sort()
        assert [v for _, v in pairs] == sorted({v for _, v in pairs}), name


def test_names_are_the_symbols_that_people_know(recorded):
    for r in recorded:
        assert r.name == per_thread_base(r.symbol).lstrip("_"), r.id


def test_per_thread_forms_equal_their_base(recorded):
    by_id = {r.id: r for r in recorded}
    for r in recorded:
        base_id = re.sub(r"_pt[sd][sz](?=_v\d+$|$)", "", r.id)
        if base_id != r.id:
            base = by_id[base_id]
            own = {"id": "", "symbol": "", "proc_version": 0, "proc_flags": 0}
            assert r._replace(**own) == base._replace(**own), r.id
            assert r.proc_version >= base.proc_version, r.id


def test_labels_and_kinds(recorded):
    """A label means one thing; and labels come in one order, whatever the row."""
    kinds, after = collections.defaultdict(set), {}
    for r in recorded:
        labels = [label for _, _, label in r.args]
        assert len(set(labels)) == len(labels), r.id
        for _, kind, label in r.args:
            kinds[label].add(kind)
        for first, second in zip(labels, labels[1:]):
            after.setdefault(second, set()).add(first)
    assert len(kinds) > 20
    for label, seen in kinds.items():
        assert re.fullmatch("[a-z][a-z0-9_]*", label)
        assert len(seen) == 1 or seen in ALIKE, label
    graphlib.TopologicalSorter(after).prepare()  # else it says which labels contradict each other


def test_names_are_those_of_the_parameters(recorded):
    for r in recorded:
        last_words = [re.search(r"\w+$", p).group() for p in split_params(r.params)]
        assert [n.strip() for n in r.names[1:-1].split(",") if n.strip()] == last_words, r.id


def test_table_is_what_the_rows_say(printed, recorded):
    table = [line.split("|")[1:] for line in printed if line.startswith("TABLE|")]
    classes = dict(line.split("|")[1:3] for line in printed if line.startswith("ROLE|"))
    expected = [[r.symbol, r.domain.lower(), classes[r.does],
                 "".join(f"{kind.lower()} {label};" for _, kind, label in r.args)]
                for r in recorded]
    assert [row for row in table if row[1] in ("runtime", "driver")] == expected
    crc = [line for line in printed if line.startswith("CRC|")]
    assert len(crc) == 1 and crc[0] != "CRC|0"


def test_who_holds_memory(printed, recorded):
    """Nobody else gets memory, and who does says how much, and what it is found again by."""
    roles = {role: memory for role, _, memory in
             (line.split("|")[1:] for line in printed if line.startswith("ROLE|"))}
    classes = dict(line.split("|")[1:3] for line in printed if line.startswith("ROLE|"))
    known = {name: memory for memory, names in MEMORY.items() for name in names.split()}
    seen = set()
    for r in recorded:
        name = re.sub(r"_v\d+$", "", per_thread_base(r.symbol))
        assert roles[r.does] == known.get(name, "NONE"), r.id
        assert (classes[r.does] == "alloc") == (name in known), r.id
        seen.add(name)
        labels = {label: kind for _, kind, label in r.args}
        if roles[r.does].startswith("GET_"):
            assert labels["bytes"] == "BYTES", r.id
            assert "ptr" in labels or r.does == "ALLOC_PHYSICAL" and "handle" in labels, r.id
        elif classes[r.does] == "alloc":
            assert "BYTES" not in labels.values() or roles[r.does] == "NODE_GET", r.id
        if "FREE" in roles[r.does]:
            assert "ptr" in labels, r.id
    assert seen >= known.keys()


WRAPPERS = r"""
#include "cuda/cuda_abi.h"
#define I(kind, label, expression) words[i++] = (uint64_t)(expression);
#define O(kind, label, pointer, expression) words[i++] = (pointer) ? (uint64_t)(expression) : 0;
#define API(id, symbol, name, domain, does, first, last, proc, returns, params, names, ...) \
    typedef returns(*id##_fn) params; \
    extern id##_fn real_##id; \
    extern uint64_t words[]; \
    returns wrap_##id params; \
    returns wrap_##id params \
    { int i = 0; returns r = real_##id names; (void)i; __VA_ARGS__ return r; }
#define API_VARIANT API
#define HOOK(symbol, domain, proc, returns, params) typedef returns(*symbol##_fn) params;
#include "api/api.def"
"""


def test_rows_compile_with_our_own_header(tmp_path):
    """Every prototype and every expression, as the wrappers use them."""
    source = tmp_path / "wrappers.c"
    source.write_text(WRAPPERS)
    run("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror",
        "-I", str(ROOT / "formats"), "-I", str(ROOT / "inject"), "-c", str(source),
        "-o", str(tmp_path / "wrappers.o"))


HELPERS = {
    "API_DIM3_XYZ(4294967295u, 2, 3)": 4294967295 | 2 << 32 | 3 << 48,
    "API_DIM3_XYZ(1, 65536, 65535)": 1 | 65535 << 32 | 65535 << 48,
    "API_DIM3_WORD(((dim3){7, 8, 9}))": 7 | 8 << 32 | 9 << 48,
    "API_LOCATION_DEVICE(((CUmemLocation){cudaMemLocationTypeDevice, 3}))": 3,
    "API_LOCATION_DEVICE(((CUmemLocation){2, 3}))": -1,
    "api_sum_sizes((size_t[]){1ull << 40, 2, 3}, 3)": 2**40 + 5,
    "api_sum_sizes(NULL, 0)": 0,
    "API_EXTENT_BYTES(((struct cudaExtent){1u << 20, 1u << 20, 2}))": 2**41,
    "API_COPY_KIND((&(CUDA_MEMCPY2D){.srcMemoryType = 1, .dstMemoryType = 1}))": 0,
    "API_COPY_KIND((&(CUDA_MEMCPY2D){.srcMemoryType = 1, .dstMemoryType = 3}))": 1,
    "API_COPY_KIND((&(CUDA_MEMCPY2D){.srcMemoryType = 2, .dstMemoryType = 1}))": 2,
    "API_COPY_KIND((&(CUDA_MEMCPY2D){.srcMemoryType = 3, .dstMemoryType = 2}))": 3,
    "API_COPY_KIND((&(CUDA_MEMCPY2D){.srcMemoryType = 4, .dstMemoryType = 1}))": 4,
    "API_COPY_BYTES_2D((&(CUDA_MEMCPY2D_v1){.WidthInBytes = 1u << 31, .Height = 4}))": 2**33,
    "API_COPY_DST((&(CUDA_MEMCPY2D){.dstMemoryType = 2, .dstHost = (void *)5, .dstDevice = 6}))": 6,
    "API_COPY_DST((&(CUDA_MEMCPY2D){.dstMemoryType = 1, .dstHost = (void *)5, .dstDevice = 6}))": 5,
    "API_COPY_SRC((&(CUDA_MEMCPY2D){.srcMemoryType = 3, .srcArray = (CUarray)7}))": 7,
    "API_COPY3D_BYTES((&(struct cudaMemcpy3DParms){.extent = {4, 3, 2}}))": 24,
    "API_COPY3D_BYTES((&(struct cudaMemcpy3DParms){.dstArray = (cudaArray_t)1,"
    " .extent = {4, 3, 2}}))": 0,
    "api_copy3d_batch_bytes((CUDA_MEMCPY3D_BATCH_OP[]){{.src.type = 1, .dst.type = 1,"
    " .extent = {4, 3, 2}}, {.src.type = 1, .dst.type = 2, .extent = {4, 3, 2}}}, 2)": 24,
    "api_decompressed_bytes((CUmemDecompressParams[]){{.dstNumBytes = 5}, {.dstNumBytes = 6}}, 2)":
        11,
    "api_array_bytes(4, 10, 0, 0)": 40,
    "api_array_bytes(API_ELEMENT_BYTES((&(CUDA_ARRAY_DESCRIPTOR){.Format = CU_AD_FORMAT_HALF,"
    " .NumChannels = 4})), 10, 10, 0)": 800,
    "API_ELEMENT_BYTES((&(CUDA_ARRAY_DESCRIPTOR){.Format = 0xb0, .NumChannels = 3}))": 0,
    "API_CHANNEL_BYTES((&(struct cudaChannelFormatDesc){8, 8, 8, 8, 0}))": 4,
    "api_mipmap_bytes(1, 8, 4, 2, 4, 0)": 64 + 8 + 2 + 1,
    "api_mipmap_bytes(1, 8, 4, 6, 2, cudaArrayCubemap)": 8 * 4 * 6 + 4 * 2 * 6,
    "api_mipmap_bytes(1, 8, 0, 0, 4, 0)": 8 + 4 + 2 + 1,
}


def test_helpers_of_the_expressions(tmp_path):
    header = '#include "cuda/cuda_abi.h"'
    values = evaluate(tmp_path, [ROOT / "inject", ROOT / "formats"], header, list(HELPERS), [])
    assert {i: v % 2**64 for i, v in values.items()} == {i: v % 2**64 for i, v in HELPERS.items()}


# ---- against the real headers ----


def has_abi_of(row, toolkit):
    """Whether the headers of that version should show the row's prototype, if they have it."""
    if toolkit.major in DIFFERENT.get(row.id, ((), ""))[0]:
        return False
    return row.domain == "DRIVER" or row.first <= toolkit.major <= row.last


def pfn_type(row):
    suffix = row.symbol[len(per_thread_base(row.symbol)):]
    return f"PFN_{row.proc_name}_v{row.proc_version}{suffix}"


def compare_prototypes(folder, rows, toolkit, configuration):
    """Compiles check_prototypes.c; returns the ids that were compared, and those with a PFN."""
    declared = toolkit.declared(configuration, {r.symbol for r in rows})
    compared = {r.id for r in rows if r.symbol in declared and has_abi_of(r, toolkit)}
    types = set(re.findall(r"\bPFN_\w+", toolkit.declarations(configuration)))
    typed = {r.id for r in rows if r.domain == "DRIVER" and pfn_type(r) in types}
    lines = [f"#undef {r.symbol}" for r in rows]
    lines += toolkit.compiler_functions.values()
    for r in rows:
        lines.append(f"#define DECLARED_{r.id} {int(r.id in compared)}")
        lines.append(f"#define TYPED_{r.id} {int(r.id in typed)}")
        if r.id in typed:
            lines.append(f"#define PFN_{r.id} {pfn_type(r)}")
    (folder / "declared.h").write_text("\n".join(lines) + "\n")
    result = subprocess.run(
        ["gcc", "-std=gnu11", "-Wno-deprecated-declarations", *CONFIGURATIONS[configuration],
         "-I", str(folder), "-I", str(ROOT / "formats"), "-I", str(toolkit.include),
         "-fsyntax-only", str(HERE / "check_prototypes.c")], capture_output=True, text=True)
    errors = [line for line in result.stderr.splitlines() if "error:" in line]
    assert not result.returncode, f"CUDA {toolkit.name}, {configuration}:\n" + "\n".join(errors)
    return compared, typed


@pytest.fixture(scope="session")
def comparisons(rows, tmp_path_factory):
    """toolkit name -> (ids compared with a declaration, ids compared with a PFN type)."""
    done = {}
    for toolkit in require_any():
        done[toolkit.name] = (set(), set())
        for configuration in CONFIGURATIONS:
            folder = tmp_path_factory.mktemp("prototypes")
            compared, typed = compare_prototypes(folder, rows, toolkit, configuration)
            done[toolkit.name][0].update(compared)
            done[toolkit.name][1].update(typed)
    return done


def has_headers_of(row, toolkit):
    return "Profiler" not in row.symbol or all((toolkit.include / name).exists()
                                               for name in PROFILER_HEADERS)


def test_prototypes_equal_the_headers(rows, comparisons):
    """Each version that has a function compares it; nothing is skipped in silence."""
    for toolkit in require_any():
        compared = comparisons[toolkit.name][0]
        missing = []
        for r in rows:
            if r.domain == "DRIVER":
                due = r.proc_version <= toolkit.number
            else:
                due = r.symbol in toolkit.runtime_symbols and r.macro != "HOOK"
            if due and has_abi_of(r, toolkit) and r.id not in compared and \
                    has_headers_of(r, toolkit):
                missing.append(r.id)
        assert not missing, f"CUDA {toolkit.name} does not declare them"


def test_every_row_was_compared(rows, comparisons):
    require_complete()
    compared = set().union(*(ids for ids, _ in comparisons.values()))
    assert {r.id for r in rows} == compared


def test_proc_columns_equal_the_pfn_types(rows, comparisons):
    for toolkit in require_any():
        typed = comparisons[toolkit.name][1]
        missing = [r.id for r in rows if r.domain == "DRIVER"
                   and r.proc_version <= toolkit.number and r.id not in typed
                   and has_headers_of(r, toolkit)]
        assert not missing, f"cudaTypedefs.h of CUDA {toolkit.name} has no such version"


STRUCT = re.compile(r"(typedef )?(struct \w+) \{(.*?)\}( \w+)?;", re.S)
ENUM = re.compile(r"(typedef )?(enum \w+) \{(.*?)\}( \w+)?;", re.S)


# Structures that grew: ours is what all versions have, so theirs may be larger.
GROWN = {f"sizeof({t})" for t in (
    "struct cudaExternalMemoryHandleDesc", "CUDA_EXTERNAL_MEMORY_HANDLE_DESC",
    "struct cudaExternalMemoryBufferDesc", "CUDA_EXTERNAL_MEMORY_BUFFER_DESC")}


def abi_header():
    text = (ROOT / "inject" / "cuda" / "cuda_abi.h").read_text()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def abi_items():
    """C expressions, each with the words that a header must have for it to make sense."""
    text = abi_header()
    items = {}
    fields = {}
    for match in STRUCT.finditer(text):
        typedef, tag, body, name = match.groups()
        type_ = name.strip() if typedef else tag
        declarators = [d for member in body.split(";") for d in member.split(",")]
        named = [re.search(r"(\w+)(\[\d+\])?\s*$", d).group(1) for d in declarators if d.strip()]
        fields[type_] = fields[tag] = [f for f in named if not f.startswith("opaque")]
    for target, alias in re.findall(r"typedef (struct \w+) (\w+);", text):
        if target in fields:
            fields[alias] = fields[target]
    for type_, names in fields.items():
        words = set(type_.split()) - {"struct"}
        items[f"sizeof({type_})"] = items[f"_Alignof({type_})"] = words
        for f in names:
            items[f"offsetof({type_}, {f})"] = words
            items[f"sizeof((({type_} *)0)->{f})"] = words
    for match in ENUM.finditer(text):
        typedef, tag, body, name = match.groups()
        type_ = name.strip() if typedef else tag
        items[f"sizeof({type_})"] = set(type_.split()) - {"enum"}
        items[f"({type_})-1 > 0"] = items[f"sizeof({type_})"]
        for constant in re.findall(r"(\w+) =", body):
            items[constant] = {constant}
    for constant in re.findall(r"#define (cudaArray\w+|CUDA_ARRAY3D\w+)\s+\w+", text):
        items[constant] = {constant}
    for type_ in re.findall(r"typedef [\w ]+ \*?(\w+);", text):
        if not re.search(rf"typedef (struct|union) \w+\s+{type_};", text):
            items[f"sizeof({type_})"] = {type_}
    return items


def test_layouts_equal_the_headers(tmp_path):
    items = abi_items()
    assert len(items) > 250
    ours = evaluate(tmp_path, [ROOT / "inject", ROOT / "formats"], '#include "cuda/cuda_abi.h"',
                    list(items), [])
    compared = set()
    for toolkit in require_any():
        present = [i for i, words in items.items() if words <= toolkit.words]
        theirs = evaluate(tmp_path, [toolkit.include],
                          "#include <cuda.h>\n#include <cuda_runtime_api.h>", present,
                          CONFIGURATIONS["internal"])
        different = {i: (ours[i], theirs[i]) for i in present
                     if (ours[i] > theirs[i] if i in GROWN else ours[i] != theirs[i])}
        assert not different, f"CUDA {toolkit.name}: ours, theirs"
        compared.update(present)
    require_complete()
    assert not set(items) - compared


# ---- against the real libraries ----


def unrecorded(symbols, pattern, rows):
    """Symbols that look like work, have no row, and are not listed as exceptions."""
    have = {r.symbol for r in rows}
    return sorted(s for s in symbols if pattern.match(s) and s not in have
                  and not any(exception.match(s) for exception in NOT_RECORDED))


def test_every_function_of_libcudart_has_a_row(rows):
    for toolkit in require_any():
        symbols = toolkit.runtime_symbols
        assert not unrecorded(symbols, RECORDED["runtime"], rows), f"CUDA {toolkit.name}"


def test_every_function_of_libcuda_has_a_row(rows):
    for toolkit in require_any():
        # The headers too: the stub is found with a full toolkit only.
        names = set(re.findall(r"\b(cu[A-Z]\w+) ?\(", toolkit.declarations("internal")))
        assert not unrecorded(names | toolkit.driver_symbols, RECORDED["driver"], rows), \
            f"CUDA {toolkit.name}"


def test_no_library_has_a_runtime_row_outside_its_range(rows):
    """Such a gap would leave calls unseen, or call a function by another's ABI."""
    for toolkit in require_any():
        covered = {r.symbol for r in rows if r.first <= toolkit.major <= r.last}
        gaps = {r.symbol for r in rows if r.symbol in toolkit.runtime_symbols} - covered
        assert not gaps, f"CUDA {toolkit.name}"


def test_every_runtime_row_exists_in_every_major_of_its_range(rows):
    libraries = require_complete()
    for r in rows:
        if r.domain == "RUNTIME":
            majors = {t.major for t in libraries if r.symbol in t.runtime_symbols}
            expected = {m for m in (11, 12, 13) if r.first <= m <= r.last}
            assert majors and (r.macro == "HOOK" or majors >= expected), (r.id, majors)


def test_every_driver_row_exists_in_libcuda(rows):
    stubs = [t for t in require_any() if t.driver]
    if not stubs:
        pytest.skip("not run: no stub of libcuda (a full toolkit has one)")
    for t in stubs:
        missing = [r.symbol for r in rows if r.domain == "DRIVER"
                   and r.proc_version <= t.number and r.symbol not in t.driver_symbols]
        assert not missing, f"CUDA {t.name}"
