# SPDX-License-Identifier: Apache-2.0
"""A report whose files several processes read: parts, added up, are the report of all files."""

import json
import os
import random
import re
import struct
import subprocess

import conftest
import made_host_sums
import pytest
import stream_reader
import toolchain
from made_libraries import BF16, COMPUTE_F32, COMPUTE_TF32, F32, F64, Libraries
from made_ops import DEVICE, TYPES

TABLES = ("functions", "failures", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum",
          "cuda_gpu_mem_size_sum", "cuda_gpu_graph_sum", "cuda_sync_sum", "cuda_kern_exec_sum",
          "nvtx_sum", "nvtx_gpu_proj_sum", "overhead_sum", "gpu_time_util", "gpu_memory_peak",
          "host_kernel_sum", "host_mem_sum", "ranks", "arrivals", "findings", "gpu_time", "idle",
          "library")
HEADER_BYTES = 84  # as part_file.h has it
REFRESH = os.environ.get("GPUPROF_REFRESH") == "1"  # read now: tests run without GPUPROF_ variables


def random_lines(seed, ranks):
    """Ranks that share names and have some of their own, ranges that stay open, one rank without
    work of a device, one that was recorded without CUPTI."""
    rng = random.Random(seed)
    for rank in range(ranks):
        yield f"process {rank}"
        if rank == 1:
            yield "meta gpu_rows=absent: CUPTI is not there"
        for number in range(rng.randint(1, 6)):
            yield f"name {number + 1} kernel_{rng.randint(0, 8)}"
        at, open_ranges = 1000, 0
        for number in range(rng.randint(3, 60)):
            at += rng.randint(1, 5000)
            correlation = number + 1
            kind = rng.randint(0, 5)
            if kind == 0:
                open_ranges += 1
                yield f"push {at} range {rng.randint(0, 20)}"
            elif kind == 1 and open_ranges:
                open_ranges -= 1
                yield f"pop {at}"
            elif kind == 2:
                yield f"call cudaMalloc {at} {rng.randint(1, 9 ** 6)} {correlation} 0 4096"
            elif rank == 1:
                yield f"call cudaFree {at} {rng.randint(1, 300)} {correlation} 0 0"
            else:
                yield f"call cudaLaunchKernel {at} {rng.randint(1, 900)} {correlation} 0 0"
                yield (f"kernel {rng.randint(1, 7)} {at + 1000} {rng.randint(1, 10 ** 6)} "
                       f"{correlation}")
                at += 900
            at += 9 ** 6 if kind == 2 else 1000


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """A program of two ranks with failed calls, allocations, two devices and ranges."""
    folder = tmp_path_factory.mktemp("demo") / "data"
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("GPUPROF_", "LD_")) and
                   name not in conftest.RANK_VARIABLES}
    environment["LD_LIBRARY_PATH"] = str(conftest.BUILD / "sim")
    subprocess.run([conftest.built(conftest.BUILD / "gpuprof-collector"), "run", "-o", folder,
                    conftest.built(conftest.BUILD / "programs/demo")], env=environment, check=True,
                   capture_output=True, timeout=120)
    return folder


KERNELS_OF_JOB = ("ampere_sgemm_128x64_nn", "vectorized_elementwise_kernel<4, add>",
                  "elementwise_kernel<relu>", "sm90_xmma_gemm_bf16bf16",
                  "ncclDevKernel_AllReduce_Sum_f32", "ncclDevKernel_Broadcast")
MS = 10 ** 6
BLOCK = 120 * MS  # a step's collective ends in one, on all ranks


class RankLines:
    """A rank's steps: work with and without a stack, waits of all kinds, and a collective that one
    rank comes to later than the others."""

    def __init__(self, rng, rank):
        self.rng, self.at, self.device, self.calls = rng, 1000, 0, 0
        self.names = rng.sample(KERNELS_OF_JOB, len(KERNELS_OF_JOB))  # not numbered as elsewhere
        self.lines = [f"process {rank}", f"meta env.RANK={rank}"]
        self.lines += ["meta env.CUDA_LAUNCH_BLOCKING=1"] if rank == 2 else []
        self.lines += [f"name {n} {name}" for n, name in enumerate(self.names, 1)]
        self.lines += [f"python {n} {10 + n + rank % 2} /home/me/train{n % 3}.py\tstep{n}"
                       for n in range(1, 6)]
        self.lines += [f"stack {n} 0 p{n} p{n % 5 + 1}" for n in range(1, 6)]

    def call(self, function, ns, size=0):
        self.calls += 1
        stack = self.rng.choice((0, 0, 1, 2, 3, 4, 5))
        self.lines.append(f"call {function} {self.at} {ns} {self.calls} {stack} {size}")

    def kernel(self, name, ns, after=0):
        self.call("cudaLaunchKernel", 5000)
        begin = max(self.device, self.at + 2000, after)
        self.lines.append(f"kernel {self.names.index(name) + 1} {begin} {ns} {self.calls}")
        self.device = begin + ns

    def work(self):
        kind = self.rng.randint(0, 9)
        if kind == 0:
            self.call("cudaDeviceSynchronize", max(self.device - self.at, 100))
            self.at = max(self.at + 100, self.device)
        elif kind == 1:
            self.call("cudaMalloc", self.rng.randint(1, 9) * MS, 4096)
            self.at += 9 * MS + 100
        elif kind == 2:
            self.call("cudaMemcpy", 5 * MS, 4096)
            begin = max(self.at + 1000, self.device)
            self.lines.append(f"copy {begin} {4 * MS} {self.calls} 4096")
            self.device = begin + 4 * MS
            self.at = self.device + 1000
        else:
            self.kernel(self.rng.choice(KERNELS_OF_JOB[:4]),
                        self.rng.choice((2000, 3 * MS, 7 * MS // 10, 10 * MS)))
            self.at += self.rng.choice((6000, 6000, 20000, 3 * MS))

    def step(self, number, late_ns):
        self.at += 10 * late_ns
        self.lines.append(f"step {self.at} {number}")
        if number % 7 == 3:
            self.lines += [f"push {self.at + 1} next_batch", f"pop {self.at + 15 * MS}"]
            self.lines += [f"push {self.at + 16 * MS} step {number}", f"pop {self.at + 17 * MS}"]
            self.at += 17 * MS
        for _ in range(self.rng.randint(3, 9)):
            self.work()
        begin = max(self.device, (number + 1) * BLOCK + late_ns)
        self.kernel(KERNELS_OF_JOB[4 + (number % 3 > 1)],
                    max(5 * MS, (number + 1) * BLOCK + 9 * MS - begin), after=begin)
        self.at = max(self.at + 6000, self.device - 50 * MS if number % 2 else 0)


def job_lines(seed, ranks, steps=12):
    rng = random.Random(seed)
    late_ns = [[rng.randint(0, 3) * MS for _ in range(ranks)] for _ in range(steps)]
    for rank in range(ranks):
        lines = RankLines(random.Random(100 * seed + rank), rank)
        for number in range(steps):
            lines.step(number, late_ns[number][rank])
        yield from lines.lines


def make_parts(run_verb, data, count, **options):
    for index in range(count):
        run_verb("report", "--partial", f"--share={index}/{count}", "-o", f"part{index}", data,
                 **options)
    return [f"part{index}" for index in range(count)]


def placeless(text, data):
    """As parts have it, which do not know where the recordings are."""
    return text.replace(str(data), "DATA")


def check_equal(run_verb, data, parts, *options):
    tables = "--table=" + ",".join(TABLES)
    for form in ("text", "csv", "json"):
        whole = placeless(run_verb("report", tables, f"--format={form}", *options, data).stdout,
                          data)
        sums = run_verb("report", "--combine", tables, f"--format={form}", *options, *parts).stdout
        if form == "json":
            whole, sums = json.loads(whole), json.loads(sums)
            assert list(whole) == list(sums)
        assert whole == sums
    return whole


@pytest.mark.parametrize("count", (1, 3, 7))
def test_demo(run_verb, demo, count):
    parts = make_parts(run_verb, demo, count)
    whole = check_equal(run_verb, demo, parts[::-1])
    assert whole["failures"] and whole["nvtx_gpu_proj_sum"] and whole["gpu_memory_peak"]
    assert len(whole["gpu_time_util"]) > 6 and whole["calls"] > 1000


@pytest.mark.parametrize("seed", range(4))
def test_random(run_verb, make_stacks, seed):
    data = make_stacks(*random_lines(seed, 5))
    count = (2, 3, 7, 4)[seed]
    parts = make_parts(run_verb, data, count)
    whole = check_equal(run_verb, data, parts, "--limit=5", "--sort=max")
    assert whole["processes"] == 5 and whole["nvtx_sum"] and whole["cuda_gpu_kern_sum"]


@pytest.mark.parametrize("ranks, count", [(1, 1), (3, 2),
                                          pytest.param(9, 4, marks=pytest.mark.long)])
def test_whole_report(run_verb, make_stacks, ranks, count):
    """All that a report says without being asked for more, to the byte, whoever made it."""
    found = set()
    for seed in range(8 if ranks > 3 else 2):
        data = make_stacks(*job_lines(seed, ranks), name=f"data{seed}")
        parts = make_parts(run_verb, data, count)
        for words in (("--full",), (), ("--format=csv",), ("--format=json",)):
            whole = run_verb("report", *words, data).stdout
            assert run_verb("report", "--combine", *words, *parts).stdout == placeless(whole, data)
            assert run_verb("report", "-j3", *words, data).stdout == whole
        whole = json.loads(whole)
        found |= {row["id"] for row in whole["findings"]}
        assert whole["overview"]["steps"]["count"] == 11 * ranks and len(whole["idle"]) > 10
    assert {"sync-in-loop", "start-up"} <= found, found


KERNELS = ({"one": (5, 6, 7), "two": (5, 6, 7), "mixed": (5, 6, 7), "both": (5, 6, 7),
            "three": (5, 6, 7)},
           {"one": (5, 6, 7), "two": (8, 6, 7), "three": (8, 6, 7), "late": (8, 6, 7)},
           {"three": (5, 6, 7), "late": (8, 6, 7)})


@pytest.mark.parametrize("count", (2, 3))
def test_libraries(run_verb, tmp_path, count):
    """Which calls made a kernel all ranks together know."""
    data = tmp_path / "data"
    data.mkdir()
    for rank, kernels in enumerate(KERNELS):
        recording = Libraries()
        for kernel, sizes in kernels.items():
            recording.gemm(*sizes, kernel=kernel)
        if rank == 1:
            recording.gemm(5, 6, 7, symbol="cublasLtMatmul", kernel="both")
            recording.launch(500, "mixed")
        recording.lines[0] = f"meta env.RANK={rank}"
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), data / f"{rank}.gpuprof",
                        str(rank)], input="\n".join(recording.lines) + "\n", text=True, check=True,
                       timeout=60)
    whole = check_equal(run_verb, data, make_parts(run_verb, data, count))
    made = {row["name"]: row.get("launched_by") for row in whole["cuda_gpu_kern_sum"]}
    assert made == {"one": "cublasGemmEx 5x6x7 bf16 nn", "two": "cublasGemmEx", "mixed": None,
                    "both": None, "three": "cublasGemmEx", "late": "cublasGemmEx 8x6x7 bf16 nn"}


SHAPES = ((64, 64, 64), (4096, 32, 8), (7, 1, 9))
DEVICES = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3")


def library_lines(seed, rank, ranks):
    """Products and plans that ranks number differently, and collectives that all of them make in
    kernels of their own lengths; one that a communicator's ranks are not all there for."""
    recording, rng, job = Libraries(), random.Random(100 * seed + rank), random.Random(seed)
    recording.lines[0] = f"meta env.RANK={rank}"
    recording.device(DEVICES[rank % 2 if seed else 0])
    plans = [recording.plan(f"matmul a={n},2:f16 b=2,3:f16 c={n},3:f16")
             for n in rng.sample(range(1, 5), 4)]
    recording.communicator(0x50 + rank, 0x1d, rank, ranks)
    recording.communicator(0x90, 0x2d, rank, ranks + 1)
    for number in range(1, 30):
        for _ in range(rng.randint(0, 3)):
            recording.gemm(*rng.choice(SHAPES), kind=rng.choice((F32, F64, BF16)),
                           ns=rng.randint(1000, 9000), trans=(rng.randint(0, 1), 0),
                           kernel=rng.choice(("ampere_sgemm_128x64", "sm80_s16816gemm", "other")),
                           compute=rng.choice((COMPUTE_F32, COMPUTE_TF32)))
        with recording.library("cudnnBackendExecute", "cudnn", plan=rng.choice(plans)):
            recording.launch(rng.randint(1000, 9000), "sm90_xmma_fprop_implicit_gemm_f16")
        function = job.choice(("ncclAllReduce", "ncclBroadcast"))
        comm = 0x90 if number % 9 == 4 else 0x50 + rank
        with recording.library(function, "nccl", count=job.choice((1 << 10, 1 << 20)), type=9,
                               comm=comm, sequence=number):
            recording.launch(rng.randint(10 ** 4, 10 ** 6), f"ncclDevKernel_{function}")
    return recording.lines


def write_libraries(folder, seeds):
    """A rank for each seed: those of one seed make the same collectives."""
    folder.mkdir()
    for rank, seed in enumerate(seeds):
        lines = library_lines(seed, rank, len(seeds))
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), folder / f"{rank}.gpuprof",
                        str(rank)], input="\n".join(lines) + "\n", text=True, check=True,
                       timeout=60)
    return folder


@pytest.mark.parametrize("seed, count", [(0, 2), (1, 3)])
def test_library_table(run_verb, tmp_path, seed, count):
    """Calls of libraries, and collectives whose shortest kernel is in another part."""
    data = write_libraries(tmp_path / "data", (seed,) * 4)
    parts = make_parts(run_verb, data, count)
    for words in (("--full",), ("--format=csv",), ("--format=json",), ("--table=library",)):
        whole = run_verb("report", "-j1", *words, data)
        sums = run_verb("report", "--combine", *words, *parts)
        assert (sums.stdout, sums.stderr) == (placeless(whole.stdout, data), whole.stderr)
        assert run_verb("report", "-j3", *words, data).stdout == whole.stdout
    rows = json.loads(run_verb("report", "--combine", "--format=json", *parts).stdout)["library"]
    assert sum(row.get("bus_calls", 0) for row in rows) == 26
    assert len([row for row in rows if row["function"] == "cudnnBackendExecute"]) == 4
    assert {row["tensor_cores"] for row in rows if "tensor_cores" in row} >= {"used", "no"}


def test_collectives_that_differ(run_verb, tmp_path):
    """Whether ranks called the same all of them together know: a part says that it does not."""
    data = write_libraries(tmp_path / "data", (0, 1))
    parts = make_parts(run_verb, data, 2)
    result = run_verb("report", "--combine", "--table=collectives", *parts, status=2)
    assert "collectives that differ" in result.stderr
    whole = run_verb("report", "-j1", "--format=csv", data).stdout
    assert "# collectives\n" in whole
    assert run_verb("report", "-j2", "--format=csv", data).stdout == whole


def test_trouble_with_memory(run_verb, make_gpu):
    parts = make_parts(run_verb, make_gpu("train", 2, 150), 2)
    said = ("not available when parts are combined: memory problems (also in 'gpuprof memory'); "
            "run 'gpuprof report' on the recordings\n")
    assert said in run_verb("report", "--combine", *parts).stderr
    assert said in run_verb("report", "--combine", "--format=csv", *parts).stderr


def test_clocks(run_verb, make_stacks):
    """Processes of one host have the offset of the first of them, in whichever part that is."""
    data = make_stacks(*random_lines(9, 4))
    for number, path in enumerate(sorted(data.glob("*.gpuprof"))):
        content = bytearray(path.read_bytes())
        header = stream_reader.read_header(bytes(content))
        content[40:56] = b"the same machine"
        struct.pack_into("<Q", content, 108, header.realtime_zero + 77 * 10 ** 9 * number)
        crc = stream_reader.crc32c(bytes(content[:header.bytes - 4]))
        struct.pack_into("<I", content, header.bytes - 4, crc)
        path.write_bytes(content)
    check_equal(run_verb, data, make_parts(run_verb, data, 4))


def test_damaged_files(run_verb, run_collector, make_stacks):
    """What cannot be read is in the first part, and in the verdict of the combination."""
    data = make_stacks(*random_lines(5, 3))
    lost, cut = sorted(data.glob("*.gpuprof"))[:2]
    lost.write_bytes(b"x" * 4000)
    cut.write_bytes(cut.read_bytes()[:-30])
    for index in range(2):
        run_collector("report", "--partial", f"--share={index}/2", "-o", f"part{index}", data)
    tables = "--table=losses," + ",".join(TABLES)
    whole = run_collector("report", "--no-group", "--format=csv", tables, data)
    sums = run_collector("report", "--combine", "--format=csv", tables, "part0", "part1")
    assert whole.returncode == sums.returncode == 3
    assert placeless(whole.stdout, data) == sums.stdout and "unread_files" in sums.stdout


LAUNCHERS = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
             ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launchers(run_verb, make_stacks, tmp_path, launcher):
    data = make_stacks(*random_lines(1, 2))
    for index in ("0", "1"):
        environment = {**os.environ, launcher[0]: index, launcher[1]: "2"}
        result = run_verb("report", "--partial", "-o", "part", data, env=environment)
        assert f"part {index} of 2 ({launcher[0]}), 1 of 2 files" in result.stderr
    run_verb("report", "--combine", "part.0", "part.1")
    bad = {**os.environ, launcher[0]: "x", launcher[1]: "2"}
    assert "--share" in run_verb("report", "--partial", "-o", "p", data, env=bad, status=2).stderr
    assert not (tmp_path / "p.0").exists()


def test_mpi(run_verb, collector, demo, tmp_path):
    """Four processes that Open MPI starts with the same words."""
    conftest.need("mpirun")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(["mpirun", "--oversubscribe", "-n", "4", collector, "report", "--partial", "-o",
                    "part", demo], cwd=tmp_path, env=environment, check=True, timeout=60,
                   capture_output=True)
    check_equal(run_verb, demo, [f"part.{index}" for index in range(4)])


@pytest.fixture
def parts(run_verb, make_stacks, tmp_path):
    data = make_stacks(*random_lines(2, 3))
    make_parts(run_verb, data, 3)
    return tmp_path


def refused(run_verb, *paths, says):
    result = run_verb("report", "--combine", *paths, status=2)
    assert not result.stdout and len(result.stderr.splitlines()) == 1
    assert says in result.stderr
    return result.stderr


def test_sets(run_verb, make_stacks, parts):
    refused(run_verb, "part0", "part2", says="part 1 of 3")
    refused(run_verb, "part0", "part1", "part2", "part1", says="part 1 of 3")
    run_verb("report", "--partial", "--share=1/2", "data", "-o", "half")
    refused(run_verb, "part0", "half", says="half is part 1 of 2, which does not fit part0")
    make_parts(run_verb, make_stacks(*random_lines(3, 4), name="other"), 2)
    refused(run_verb, "part0", "part1", "part2", says="part2 is part 2 of 3, which does not fit")
    refused(run_verb, "gone", says="gone")
    (parts / "text").write_text("not a part, but something else of some length\n" * 9)
    refused(run_verb, "text", says="text is not a part")


def sealed(content):
    """With a checksum that is right."""
    content = bytearray(content)
    spans, = struct.unpack_from("<Q", content, 24)
    struct.pack_into("<Q", content, 16, max(0, len(content) - HEADER_BYTES - spans))
    struct.pack_into("<I", content, 12, stream_reader.crc32c(bytes(content[16:])))
    return bytes(content)


def test_damaged_parts(run_verb, parts):
    whole = (parts / "part1").read_bytes()
    for content, says in ((whole[:-1], "is cut off"), (whole + b"x", "has extra bytes"),
                          (b"", "is empty"),
                          (whole[:90] + bytes([whole[90] ^ 1]) + whole[91:], "damaged"),
                          (whole[:8] + b"\1" + whole[9:], "another version"),
                          (sealed(whole[:-1]), "damaged"), (sealed(whole + b"x"), "damaged"),
                          (whole[:40], "is cut off"), (whole[:5], "is not a part")):
        (parts / "part1").write_bytes(content)
        refused(run_verb, "part0", "part1", "part2", says=says)


@pytest.mark.parametrize("number, who", [
    (1, "the main thread"), (3, r"thread \d+ \(autograd\)"), (9, "a thread")])
def test_thread_that_cost_most(run_verb, make_records, number, who):
    """As the system calls it, also where another process has read the recording."""
    def lines(rank):
        yield f"process {rank}"
        yield f"{stream_reader.COST} 0 4000 0 0 0 1 0 10,10,{10 ** 7},{10 ** 7} launch"
        args = (3, 10 ** 9, 10 ** 7, number, 10 ** 9, (1 + rank) * 10 ** 6, 0, 10 ** 9, 0, 0)
        yield f"{stream_reader.COST_SUM} 0 5000 0 0 0 0 0 {','.join(map(str, args))} "
    data = make_records(line for rank in range(2) for line in lines(rank))
    text = run_verb("report", "--table=cost", data).stdout
    assert re.search(rf"; in the busiest thread 0\.20% \({who} of process \d+\)\n", text), text
    parts = make_parts(run_verb, data, 2)
    assert run_verb("report", "--combine", "--table=cost", *parts).stdout == text


@pytest.mark.parametrize("name, way", [("train", 0), ("operators", 1), ("ranges", 2), ("job", 3),
                                       ("libraries", 0), ("host", 1)])
def test_seeds_of_the_fuzzer(request, run_collector, tmp_path, name, way):
    """They are parts of this version. GPUPROF_REFRESH=1 makes them anew."""
    seed = conftest.ROOT / "test/fuzz/seeds" / f"parts-{name}"
    if REFRESH:
        make = request.getfixturevalue
        data = {"train": lambda: make("make_gpu")("train", 2, 2),
                "operators": lambda: make("make_ops")(2, 60, 5),
                "ranges": lambda: make("make_stacks")(*random_lines(2, 3)),
                "job": lambda: make("make_stacks")(*job_lines(3, 3, 4)),
                "host": lambda: make("make_stacks")(*made_host_sums.Made(1, 2, 40).script),
                "libraries": lambda: write_libraries(tmp_path / "data", (0, 0))}[name]()
        made = [(tmp_path / part).read_bytes() for part in make_parts(run_collector, data.name, 2)]
        seed.write_bytes(bytes([9 | way << 4]) +  # what fuzz_stream.c takes for parts
                         b"".join(struct.pack("<I", len(part)) + part for part in made))
        pytest.skip("not run: GPUPROF_REFRESH=1 wrote the seeds; without it they are read")
    content, paths = seed.read_bytes()[1:], []
    while content:
        end = 4 + struct.unpack_from("<I", content)[0]
        paths.append(tmp_path / f"part{len(paths)}")
        paths[-1].write_bytes(content[4:end])
        content = content[end:]
    result = run_collector("report", "--combine", *paths)
    assert result.returncode == 0 and result.stdout and len(paths) == 2, result.stderr


@pytest.mark.parametrize("seed", range(3))
def test_collectives_of_several_kernels(seed, run_verb, tmp_path):
    """A rank has come once, with its first kernel, however many others run beside those of its next
    collectives, which are longer here."""
    dice, ranks, count = random.Random(seed), 4, 20
    folder = tmp_path / "data"
    folder.mkdir()
    firsts = {}
    for rank in range(ranks):
        made, kernels = Libraries(), []
        made.lines[0] = f"meta env.RANK={rank}"
        made.communicator(0x77, 0xabc, rank, ranks)
        made.number(made.kernels, "kernel_name", DEVICE, "ncclDevKernel_AllReduce_Sum")
        for n in range(count):
            made.now = 1_000_000 + 20_000 * n + 300 * rank
            with made.library("ncclAllReduce", "nccl", count=1 << 20, type=7, comm=0x77,
                              sequence=n + 1):
                for kernel in range(dice.randrange(1, 4)):
                    ns = dice.randrange(2000, 4000) // (1 + kernel)
                    call = made.call("cudaLaunchKernel", [0] * 7)
                    kernels.append((made.now + 5000 + kernel * 30_000, ns, call))
                    if not kernel:
                        firsts.setdefault(n, []).append(ns)
        for begin, ns, call in sorted(kernels):
            made.add(DEVICE, TYPES["kernel"], [0, 1, 7, 1, 1, 1], begin=begin, ns=ns, call=call)
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), folder / f"{rank}.gpuprof",
                        str(rank)], check=True, timeout=60, text=True,
                       input="\n".join(made.lines) + "\n")
    whole = check_equal(run_verb, folder, make_parts(run_verb, folder, 3))
    [row] = whole["library"]
    bus = (2 * (ranks - 1) / ranks * count * (4 << 20)) / sum(map(min, firsts.values()))
    assert row["bus_calls"] == count and row["bus_gb_s"] == pytest.approx(bus, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_failures_of_one_moment(seed, run_verb, tmp_path):
    """The first comes first, of one moment by process and thread; as one walk meets them."""
    dice, data = random.Random(seed), tmp_path / "data"
    data.mkdir()
    for rank in range(6):
        lines = [f"meta env.RANK={rank}"]
        for at in sorted(dice.randrange(5) for _ in range(12)):
            function = dice.choice(("cudaMalloc", "cudaFree", "cuCtxSynchronize", "cudaMemcpy"))
            lines.append(f"{dice.randrange(1, 4)} {function} 0 0 {1000 + at} {dice.randrange(50)} "
                         f"{dice.choice((0, 1, 3, 700))} 0 - -")
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), data / f"{rank}.gpuprof",
                        str(rank)], check=True, timeout=60, text=True,
                       input="\n".join(lines) + "\n")
    assert len(check_equal(run_verb, data, make_parts(run_verb, data, 3))["failures"]) > 8


@pytest.mark.parametrize("has_libraries", (False, True))
def test_hostile_parts(run_verb, run_collector, parts, has_libraries):
    """Values that are anything, under a right checksum: a line, or a report; nothing else."""
    rng = random.Random(11)
    if has_libraries:
        make_parts(run_verb, write_libraries(parts / "libraries", (0, 0, 0)), 3)
    whole = (parts / "part1").read_bytes()
    codes = set()
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(HEADER_BYTES, len(content))] = rng.choice((0, 1, 127, 255))
        (parts / "part1").write_bytes(sealed(content))
        result = run_collector("report", "--combine", "--full", "part0", "part1", "part2")
        codes.add(result.returncode)
        assert result.returncode in (0, 2, 3), result.stderr
        assert result.returncode != 2 or "is damaged" in result.stderr
    assert 2 in codes


def test_usage(run_verb, parts):
    for words, says in ((("--combine", "--table=phases", "part0"), "phases is not in parts"),
                        (("--combine", "--by=grid", "part0"),
                         "--by cannot be combined with --combine"),
                        (("--combine", "--from=1s", "part0"), "--from cannot be combined"),
                        (("--partial", "-o", "p", "--table=functions", "data"),
                         "--table cannot be"),
                        (("--combine", "--format=html", "part0"), "parts cannot make a page"),
                        (("--combine", "--share=0/1", "part0"), "--share needs --partial"),
                        (("--partial", "data"), "name it with -o"),
                        (("--partial", "-o", "p", "--share=3/3", "data"),
                         "--share: '3/3' is not I/N"),
                        (("--partial", "-o", "p", "--share=1", "data"), "is not I/N"),
                        (("--partial", "-o", "p", "--rank=0", "data"), "--rank cannot be combined"),
                        (("--partial", "--combine", "-o", "p", "part0"),
                         "--partial and --combine cannot")):
        assert says in run_verb("report", *words, status=2).stderr
    assert not (parts / "p").exists()
    run_verb("report", "--partial", "--share=0/1", "-o", "part.0", "data")  # as GUIDE's recipes do
    assert (parts / "part.0").exists()


def test_what_makes_no_share_is_named(run_collector, demo, tmp_path):
    environment = {**os.environ, "RANK": "3", "WORLD_SIZE": "2"}
    words = ("report", "--partial", "-o", tmp_path / "x.part", demo)
    assert "report: RANK: '3/2' is not I/N" in \
        run_collector(*words, env=environment).stderr
    assert "report: --share: '3/2' is not I/N" in run_collector(*words, "--share=3/2").stderr
    result = run_collector("report", "--combine")
    assert result.returncode == 2 and result.stderr == (
        "gpuprof: report: --combine: name the files that --partial made\n")


def test_moments_of_dumps(run_verb, make_records):
    """By the clock of a process, which is not as fast as the shared one."""
    def lines(rank):
        yield f"process {rank} host 7 {5 * 10 ** 9} {17 * 10 ** 17 + 5 * rank}"
        yield f"{stream_reader.CALL} 1 1000 10 1 0 cudaFree 0 0 "
        for second in range(1, 5):
            ns = second * 10 ** 9
            yield f"{stream_reader.ANCHOR} 0 {ns} 0 0 0 0 0 {5 * 10 ** 9 + ns + 40000 * second},0 "
        yield f"{stream_reader.DUMP} 0 4500000000 0 0 0 0 0 1,1,0,0,0,3000000000,0 "
    data = make_records(line for rank in range(2) for line in lines(rank))
    whole = run_verb("report", "-j1", "--table=dumps", "--format=json", data).stdout
    assert {row["length_ns"] for row in json.loads(whole)["dumps"]} == {1500059999}
    sums = run_verb("report", "--combine", "--table=dumps", "--format=json",
                    *make_parts(run_verb, data, 2)).stdout
    assert json.loads(sums)["dumps"] == json.loads(whole)["dumps"]
    assert run_verb("report", "-j2", "--table=dumps", "--format=json", data).stdout == whole


def test_memory_fails_for_parts(collector, parts):
    """The first allocations of a combination: of the reader, of the parts, of what they add to."""
    environment = {**os.environ, "LD_PRELOAD": str(toolchain.build("alloc_fault.c", "-shared",
                                                                   "-fPIC"))}
    failed = 0
    for number in range(1, 70):
        result = subprocess.run([collector, "report", "--combine", "part0", "part1", "part2"],
                                cwd=parts, capture_output=True, text=True, check=False, timeout=60,
                                env={**environment, "ALLOC_FAULT": str(number)})
        assert result.returncode in (0, 1, 2), (number, result.returncode, result.stderr)
        failed += result.returncode != 0 and bool(result.stderr)
    assert failed > 40


@pytest.mark.parametrize("verb, last", [
    ("memory", 110), pytest.param("report", 270, marks=pytest.mark.long)])
def test_memory_fails_for_a_report(collector, make_stacks, tmp_path, verb, last):
    """The last allocations before the output is complete: one line says so, and nothing crashes."""
    data = make_stacks("process 0", "call cudaLaunchKernel 1000 500 11 0 0", "name 1 a",
                       "kernel 1 5000 3000 11")
    environment = {**os.environ, "ALLOC_COUNT": str(tmp_path / "count"),
                   "LD_PRELOAD": str(toolchain.build("alloc_fault.c", "-shared", "-fPIC"))}
    failed, count = 0, None
    while count is None or last:
        number, last = (count - last, last - 1) if count else (0, last)
        result = subprocess.run([collector, verb, "--format=json", data], capture_output=True,
                                text=True, check=False, timeout=60,
                                env={**environment, "ALLOC_FAULT": str(number)})
        assert result.returncode in (0, 1, 2), (number, result.returncode, result.stderr)
        assert result.returncode == 0 or result.stderr, number
        count = count or int((tmp_path / "count").read_text())
        failed += result.returncode != 0
    assert failed > 9


def test_a_share_loads_only_its_files(collector, make_stacks, tmp_path):
    """It reads no more than the headers of the others: their blocks may be damaged."""
    data = make_stacks(*random_lines(5, 3))
    paths = sorted(data.glob("*.gpuprof"))

    def part():
        subprocess.run([collector, "report", "--partial", "--share=0/3", "-o", "part", data],
                       cwd=tmp_path, check=False, capture_output=True)
        return (tmp_path / "part").read_bytes()

    whole, needed = part(), 0
    for path in paths:
        kept = path.read_bytes()
        path.write_bytes(kept[:-len(kept) // 4] + bytes(len(kept) // 4))
        needed += part() != whole
        path.write_bytes(kept)
    assert len(paths) == 3 and needed == 1


@pytest.mark.parametrize("verb, ending", [("merge", "json"), ("export", "csv"), ("report", "html")])
def test_memory_fails_beside_a_temporary_name(collector, make_stacks, tmp_path, verb, ending):
    """Where files cannot be without a name, none stays under its temporary one."""
    data = make_stacks(*random_lines(2, 3))
    preloads = [toolchain.build("alloc_fault.c", "-shared", "-fPIC"),
                toolchain.build("kill_at.c", "-shared", "-fPIC", "-DNO_UNNAMED")]
    folder = tmp_path / "made"
    folder.mkdir()
    environment = {**os.environ, "LD_PRELOAD": " ".join(map(str, preloads)),
                   "ALLOC_COUNT": str(tmp_path / "count"), "ALLOC_FAULT": "0"}
    command = [collector, verb, "-o", folder / f"a.{ending}", data]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    count = int((tmp_path / "count").read_text())
    failed = 0
    for number in range(1, count, count // 40):
        for path in folder.iterdir():
            path.unlink()
        result = subprocess.run(command, capture_output=True, check=False, timeout=60,
                                env={**environment, "ALLOC_FAULT": str(number)})
        if result.returncode:
            failed += 1
            assert not list(folder.iterdir()), number
    assert failed > 20
