# SPDX-License-Identifier: Apache-2.0
"""A recording of what a host did, as a script for test/unit/make_stacks.c, whose times are known:
samples, calls that waited, waits for Python's lock, collections; on the thread that launches
(1000) and on a loader (1003)."""

MS = 1_000_000
CPU, GAP = 0, 1
IN_KERNEL, IN_GPUPROF = 1, 2
WAITED, HELD = 0, 1
MAIN, GPUPROF, LOADER = 1, 2, 3  # numbers of threads; their tids are 1000, 1500, 1003
READ, LOCK, SLEEP = 7, 8, 9  # codes of functions

TOKENIZE, FORWARD, NATIVE = 1, 2, 3  # numbers of stacks
MODULE = "<module> (train.py:40)"
FRAMES = {TOKENIZE: (MODULE, "tokenize (data.py:81)"),  # from the outermost in
          FORWARD: (MODULE, "forward (model.py:7)"),
          NATIVE: (MODULE, "forward (model.py:7)", "libtrain.so+0x100")}

HEAD = (
    "process 0", "meta stacks=libunwind", "meta python=3.11.7",
    "module 1 - /nowhere/libtrain.so",
    "python 1 40 /home/me/train.py\t<module>", "python 2 81 /home/me/data.py\ttokenize",
    "python 3 7 /home/me/model.py\tforward",
    "stack 1 0 p2 p1", "stack 2 0 p3 p1", "stack 3 0 1+100 p3 p1",
    "thread 3 1003 loader",
    f"host os_function {READ} 300 0 0 0 0 1 read",
    f"host os_function {LOCK} 300 0 0 0 0 6 pthread_mutex_lock",
    f"host os_function {SLEEP} 300 0 0 0 0 4 clock_nanosleep",
)


def sample(at, stack, period=10 * MS, weight=1, flags=0, tid=0):
    """tid: of another thread than the one in whose block it stands."""
    return f"host sample {CPU} {at} 0 0 {weight} {stack} {period},{tid},{flags}"


def look(at, stack, period, tid=1000, state="S", syscall=0, holder=0, holder_stack=0):
    return (f"host sample {GAP} {at} 0 0 1 {stack} "
            f"{period},{tid},0,{ord(state)},{syscall},{holder},{holder_stack}")


def os_call(code, begin, duration, stack=0, result=0, fd=-1, address=0, moved=0, error=0, file=""):
    return (f"host os_call {code} {begin} {duration} {result} 1 {stack} "
            f"{fd + 1},{address},{moved},{error} {file}")


def gil(part, begin, duration, stack=0, other=0, switches=0):
    return f"host gil {part} {begin} {duration} 0 1 {stack} {other},{switches}"


def collection(generation, begin, duration, collected=0):
    return f"host gc {generation} {begin} {duration} 0 1 0 {collected},0,0"


HOST = (
    *HEAD,
    f"push {5 * MS} step",
    f"call cudaLaunchKernel {6 * MS} 500 11 {NATIVE} 0",
    sample(10 * MS, TOKENIZE), sample(20 * MS, TOKENIZE), sample(40 * MS, NATIVE, weight=2),
    sample(50 * MS, 0, flags=IN_GPUPROF),
    os_call(READ, 60 * MS, 5 * MS, TOKENIZE, 4096, 5, 0, 4096, 0, "/data/tr\"ain.bin"),
    f"call cudaMalloc {70 * MS} {2 * MS} 12 {FORWARD} 4096",
    os_call(LOCK, 71 * MS, 4 * MS, FORWARD, address=0x7F0012345678),  # crosses the call
    os_call(SLEEP, 80 * MS, 10 * MS, 0, -1, error=4),
    gil(HELD, 4 * MS, 92 * MS),  # crosses the range
    gil(WAITED, 96 * MS, 3 * MS, TOKENIZE, 1003, 2),
    collection(2, 100 * MS, 20 * MS, 1234),
    f"pop {130 * MS}",
    f"call cudaFree {131 * MS} 300 15 0 0",
    f"on {LOADER}", gil(HELD, 96 * MS + 1, 3 * MS - 2, FORWARD),
    f"on {GPUPROF}", sample(97 * MS, FORWARD, flags=IN_KERNEL, tid=1003),
    look(62 * MS, TOKENIZE, 5 * MS, syscall=1),  # in the read
    look(78 * MS, FORWARD, 3 * MS, holder=1003, holder_stack=TOKENIZE),
    look(79 * MS, FORWARD, 1 * MS, state="R"),
    "name 1 _Z4gemmPf", f"kernel 1 {7 * MS} {1 * MS} 11",
)
BIG = (1 << 64) - 1
WILD = (  # numbers, threads, functions and texts that mean nothing
    *HOST, f"on {LOADER}",
    f"host sample 9 {140 * MS} 0 0 4294967295 4294967295 {','.join([str(BIG)] * 7)}",
    f"host os_call 65535 {141 * MS} {1 << 62} 0 1 4294967295 {BIG},{BIG},{BIG},{BIG} "
    + "\x01\"\\\udcff" * 50,
    f"host gil 7 {142 * MS} 5 0 1 0 {BIG},{BIG}", f"host gc 65535 {143 * MS} 1 0 1 0 {BIG}",
    look(144 * MS, 99, BIG, tid=77, state="\\"), gil(WAITED, 145 * MS, 0),
    os_call(SLEEP, 146 * MS, 0), collection(0, 147 * MS, 0), "host os_call 0 0 0 0 0 0 0")
