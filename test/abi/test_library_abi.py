# SPDX-License-Identifier: Apache-2.0
"""The LIBRARY rows of formats/api against the headers of the libraries, of every version that is
found: of `make fetch-libraries`, of CUDA_HOME, and of the nvcc in PATH.

A prototype is compared by what its arguments are to the calling convention, since rows have void *
and int for the libraries' own types; and by its parameters' names, so that m is not n.
"""

import pathlib
import re
import subprocess

import pytest

from cuda_toolkits import ROOT, candidates, run

HERE = ROOT / "test" / "abi"

# header: which functions of it rows are to be for. What is not, makes nothing but objects,
# settings and sizes of buffers, or is of an interface that api_fft_sparse_solver.def leaves out.
HEADERS = {
    "cublas_api.h": r"cublas(?!Create|Destroy|Get|Set|Logger|Xerbla|Migrate|.*[Rr]otm?g)\w+",
    "cublasLt.h": r"cublasLt(Matmul|MatrixTransform)$",
    "cufftXt.h": r"cufft(Xt)?Exec(\w\w\w|Descriptor)?$",
    "cusparse.h": r"cusparse(SpM[MV](_preprocess)?|SDDMM|Sp[SG]\w+_(solve|analysis|compute)"
                   r"|SparseToDense|DenseToSparse_convert)$",
    "cusparseLt.h": r"cusparseLtMatmul(Search)?$",
    "cusolverDn.h": r"cusolverDn[SDCZX](potr[fs](Batched)?|getr[fs]|geqrf|(or|un)[gm]qr|gesvdj?"
                     r"|(sy|he)ev[dj])$",
    "cudnn.h": r"cudnn(BackendExecute|Convolution(Forward|Backward(Data|Filter))|RNNForward)$",
    "nccl.h": r"nccl(All|Reduce|Broad|Bcast|Send|Recv|Group(Start|End)|CommInit)\w*$",
}
# A row may be for what only another of these headers has.
PREFIXES = "cublas|cudnn|cufft|cusparse|cusolver|nccl"

PROTOTYPE = re.compile(r"(?:^|\s)(?:extern )?(?:const )?(\w[\w ]*?)[ *]+"
                       rf"((?:{PREFIXES})\w+) ?\(([^()]*)\) *$")
ATTRIBUTE = re.compile(r"__attribute__ ?\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
CLASSES = ("#define KIND(type) printf(\"%s=%d.%zu\\n\", #type,"
           " __builtin_classify_type(*(type *)0) == 5 ? 5 :"
           " __builtin_classify_type(*(type *)0) >= 12 ? 12 :"
           " __builtin_classify_type(*(type *)0) == 8 ? 8 : 1, sizeof(type));\n")


def split(parameter):
    """(type, name) of a parameter as it is written; all pointers are of one type."""
    parameter = re.sub(r"\b(const|struct)\b|\b__restrict__\b", " ", parameter).strip()
    name = re.search(r"(\w+) *(\[\w*\] *)*$", parameter)
    if "*" in parameter or "[" in parameter:
        return "void *", name[1] if name else ""
    words = parameter.split()
    return (" ".join(words[:-1]), words[-1]) if len(words) > 1 else (parameter, "")


def prototypes(text):
    found = {}
    for chunk in re.split(r"[;{}]", ATTRIBUTE.sub("", " ".join(text.split()))):
        match = PROTOTYPE.search(chunk)
        if match:
            parameters = [split(p) for p in match[3].split(",") if p.strip() not in ("", "void")]
            found[match[2]] = parameters
    return found


def classes(types, includes, folders, work):
    """type -> "class.size" of each, with those headers."""
    source = work / "classes.c"
    source.write_text("#include <stdio.h>\n#include <stdint.h>\n" + includes + CLASSES +
                      "int main(void)\n{\n" + "".join(f"KIND({t})\n" for t in sorted(types)) +
                      "return 0;\n}\n")
    run("gcc", "-std=gnu11", "-w", *folders, str(source), "-o", str(work / "classes"))
    return dict(line.split("=") for line in run(str(work / "classes")).splitlines())


@pytest.fixture(name="rows", scope="module")
def fixture_rows(tmp_path_factory):
    """symbol -> (parameters, what each is)."""
    work = tmp_path_factory.mktemp("rows")
    run("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "formats"),
        str(HERE / "print_rows.c"), *(str(ROOT / "formats" / name) for name in (
            "api/api.c", "argument_kind.c", "crc32c.c")), "-o", str(work / "print_rows"))
    lines = [line.split("|")[1:] for line in run(str(work / "print_rows")).splitlines()
             if line.startswith("LIBRARY|")]
    assert len(lines) > 500
    text = "".join(f"int {symbol}{params};" for symbol, _, _, returns, params, _ in lines)
    assert {returns for _, _, _, returns, _, _ in lines} <= {"int"}
    rows = prototypes(text)
    assert len(rows) == len(lines)
    of_type = classes({t for parameters in rows.values() for t, _ in parameters},
                      '#include "cuda/cuda_abi.h"\n',
                      ["-I", str(ROOT / "inject"), "-I", str(ROOT / "formats")], work)
    return {symbol: (parameters, [of_type[t] for t, _ in parameters])
            for symbol, parameters in rows.items()}


def libraries():
    """Folders with headers of libraries, and those of CUDA's own that these need."""
    roots = [root / "include" for root in candidates()]
    roots += sorted((ROOT / "build" / "libraries").glob("*/include"))
    cuda = [root for root in roots if (root / "library_types.h").exists()]
    for root in roots:
        if any((root / header).exists() for header in HEADERS):
            yield root, [*(["-I", str(root)]), *(w for c in cuda[-1:] for w in ("-I", str(c)))]


def find(folder, header, flags):
    """The functions of a header, those too that it has for C++ alone."""
    text = f"#define CUBLASAPI\n#include <stddef.h>\n#include <stdbool.h>\n#include <{header}>\n"
    done = subprocess.run(["gcc", "-E", "-P", "-x", "c", *flags, "-"], input=text,
                          capture_output=True, text=True)
    if done.returncode:
        return None
    text = next(path for path in (pathlib.Path(f) / header for f in flags) if path.exists()
                ).read_text(errors="replace")
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^#[^\n]*", "", text, flags=re.S | re.M)
    return prototypes(text) | prototypes(done.stdout)


def plain(name):
    """In nothing but this do names differ between the versions of a header."""
    return re.sub(r"^(send|recv|data)|(array|size|type)$", "", name.lower().replace("_", ""))


def test_rows_are_as_the_headers_say(rows, tmp_path):
    compared, folders = set(), list(libraries())
    if not any((folder / "cublas_api.h").exists() for folder, _ in folders):
        pytest.skip("not run: no headers; make fetch-libraries")
    for folder, flags in folders:
        for header, wanted in HEADERS.items():
            found = find(folder, header, flags) if (folder / header).exists() else None
            if not found:
                continue
            missing = {f for f in found if re.fullmatch(wanted, f)} - set(rows)
            assert not missing, f"{folder}/{header}: {sorted(missing)}"
            common = set(found) & set(rows)
            of_type = classes({t for f in common for t, _ in found[f]},
                              f"#define CUBLASAPI\n#include <stddef.h>\n#include <{header}>\n",
                              flags, tmp_path)
            for f in sorted(common):
                parameters, kinds = rows[f]
                where = f"{f} in {folder}/{header}"
                assert [of_type[t] for t, _ in found[f]] == kinds, where
                differ = [(a, b) for (_, a), (t, b) in zip(parameters, found[f])
                          if b and plain(a) != plain(b) and t != "void *" and a != "handle"]
                assert not differ, f"{where}: {differ}"
            compared |= common
    print(len(compared), "functions compared; not:", sorted(set(rows) - compared))
    assert len(compared) > 300
