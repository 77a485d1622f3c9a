# SPDX-License-Identifier: Apache-2.0
"""What a report keeps beside the recordings (.gpuprof-report) answers the next question as the
recordings do, and is not used when anything is wrong with it. The truth is --no-index."""

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import time

import conftest
import pytest
import stream_reader
import test_op_flops
import toolchain
from made_ops import DEVICE, LABEL, MAIN, OTHER, TYPES, Recording

TABLES = ["functions", "cuda_gpu_kern_sum", "cuda_kern_exec_sum", "gpu_time_util",
          "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_gpu_graph_sum", "cuda_sync_sum",
          "overhead_sum", "host_mem_sum", "host_kernel_sum"]
TABLE = "--table=functions"
ALL = "--table=" + ",".join(TABLES)
GRID = ["--by=grid", "--table=cuda_gpu_kern_sum"]
PARTS = [  # is answered from the report
    [TABLE], [ALL], [ALL, "--format=csv"], [TABLE, "--strict"], [], ["--full"], ["--format=json"],
    ["--format=csv"], ["--full", "--no-group", "--sort=calls", "--limit=2"],
    ["--table=functions,idle,findings,ranks,arrivals"], ["--table=idle", "--format=json"],
    ["--table=cuda_kern_exec_sum,losses,cost", "--strict"]]
OTHERS = [  # is answered from the recordings
    GRID,
    ["--by=thread", "--table=calls_by_thread"],
    ["--by=thread", "--table=calls_by_thread", "--from=300us"],
    [ALL, "--from=100us", "--to=350us"],
    [ALL, "--to=150us", "--format=csv"],
    [ALL, "--from=0", "--to=1000"],
    [TABLE, "--from=300us", "--strict", "--sort=calls", "--limit=2"],
    [TABLE, "--from=1000"], [TABLE, "--from=350us", "--to=100us"],
          [TABLE, "--step-range=nothing"], [TABLE, "--rank=1"], ["--table=steps"],
          ["--by=stack"], ["--full", "--group", "--format=json"], ["--symbols=off", "--full"]]
MADE = {"train": ["train", 2, 6], "loss": ["loss", 2, 6], "late": ["late", 3, 3],
        "pools": ["pools", 1], "shared": ["shared", 1]}


@pytest.fixture(scope="session")
def keeper():
    return conftest.built(conftest.BUILD / "gpuprof-collector-keeps")


@pytest.fixture
def ask(keeper, tmp_path):
    """What a report says, and its exit status."""
    def run(*arguments, **options):
        done = subprocess.run([keeper, "report", *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60,
                              cwd=tmp_path, **options)
        return done.returncode, done.stdout, done.stderr
    return run


NAME = ".gpuprof-report"


def files(folder):
    return sorted(folder.glob(".gpuprof-r*"))


def identities(folder):
    return [(path.name, path.stat().st_ino, path.read_bytes()) for path in files(folder)]


@pytest.fixture
def recording(make_gpu, ask):
    """A folder with two ranks, and what is kept of it."""
    folder = make_gpu("train", 2, 6)
    assert ask("-j1", folder)[0] == 0
    assert [path.name for path in files(folder)] == [NAME]
    return folder


def same(ask, folder, *questions):
    """As without. The first answer."""
    answers = [ask(*question, folder) for question in questions or [[TABLE]]]
    assert answers == [ask("--no-index", "-j1", *question, folder)
                       for question in questions or [[TABLE]]]
    return answers[0]


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)


@pytest.mark.parametrize("scenario", [
    "train", "loss", "late", "damaged", *(pytest.param(name, marks=pytest.mark.long)
                                          for name in ("pools", "shared"))])
def test_same_answers(make_gpu, ask, scenario):
    folder = make_gpu(*MADE.get(scenario, MADE["train"]))
    if scenario == "damaged":
        damage(folder / "rank0.gpuprof")
        os.truncate(folder / "rank1.gpuprof", (folder / "rank1.gpuprof").stat().st_size - 700)
    truths = [ask("--no-index", "-j1", *question, folder) for question in PARTS + OTHERS]
    for first in (["-j1"], ["-j2"], ["-j2", "--format=json"]):
        for path in files(folder):
            path.unlink()
        assert ask(*first, folder) == ask("--no-index", "-j1", *first, folder)
        assert [path.name for path in files(folder)] == [NAME]
        kept = identities(folder)
        assert [ask(*question, folder) for question in PARTS] == truths[:len(PARTS)]
        assert identities(folder) == kept
    assert [ask(*question, folder) for question in OTHERS] == truths[len(PARTS):]
    assert len(set(truths)) > 8
    assert {code for code, *_ in truths} >= {2} | ({3} if scenario == "damaged" else {0})


def test_is_read(recording, ask):
    """In place of the recordings' events: with these damaged, and the old time and size, what was
    kept still says what was there, and only --no-index sees the damage."""
    questions = [[TABLE], ["--table=idle,findings"], []]
    told = [ask(*question, recording) for question in questions]
    path = recording / "rank1.gpuprof"
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[-200] ^= 255
    with open(path, "r+b") as out:
        out.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for said, question in zip(told, questions):
        assert ask(*question, recording) == said
        assert ask("--no-index", *question, recording) != said
    assert ask(TABLE, f"./{recording.name}") == told[0]
    moved = recording.rename(recording.with_name("moved"))
    assert ask(TABLE, moved) == told[0]


def grow(folder):
    with open(folder / "rank1.gpuprof", "ab") as out:
        out.write(b"\0" * 100)


def add_rank(folder):
    subprocess.run([conftest.built(conftest.BUILD / "make_gpu"), folder, "train", "3", "6"],
                   check=True)


STALE = {
    "grown": grow,
    "touched": lambda folder: os.utime(folder / "rank0.gpuprof"),
    "copied": lambda folder: (shutil.copy2(folder / "rank0.gpuprof", folder / "copy"),
                              os.replace(folder / "copy", folder / "rank0.gpuprof")),
    "another": add_rank,
    "gone": lambda folder: (folder / "rank1.gpuprof").unlink(),
}


@pytest.mark.parametrize("how", STALE)
def test_stale(recording, ask, how):
    before = identities(recording)
    STALE[how](recording)
    same(ask, recording, [TABLE])
    assert identities(recording) == before  # a question of one table does not write
    ask("-j1", recording)
    assert identities(recording) != before
    assert len(files(recording)) == 1
    same(ask, recording)


def test_another_program(recording, ask, keeper, tmp_path):
    """One that was built anew may see other things in the same files."""
    before = identities(recording)
    other = tmp_path / "other"
    shutil.copy2(keeper, other)
    subprocess.run([other, "report", "-j1", recording], check=True, capture_output=True)
    assert identities(recording) != before
    same(ask, recording)


def test_no_index(recording, ask, make_gpu):
    """It neither reads nor writes."""
    before = identities(recording)
    assert ask("--no-index", "-j1", recording)[0] == 0
    assert identities(recording) == before
    never = make_gpu("train", 2, 6, name="never")
    assert ask("--no-index", never)[0] == ask("--no-index", TABLE, never)[0] == 0
    assert not files(never)


def test_few_records(make_gpu, run_verb):
    """The program itself leaves no file beside a small recording, which is read as fast."""
    folder = make_gpu("train", 2, 6)
    run_verb("report", folder)
    assert not files(folder)


def test_large(make_gpu, run_collector):
    """Of a million records and more the second answer costs a fraction of the first."""
    folder = make_gpu("bench", 260000, 4)
    costs = []
    piece = ["--table=cuda_gpu_kern_sum,functions,nvtx_sum,cuda_kern_exec_sum", "--from=600ms",
             "--to=613ms"]
    questions = ([TABLE], piece, ["--table=idle,findings"], ["--full"])
    for arguments in (["-j2"], *questions, *(["--no-index", *q] for q in questions)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run_collector("report", *arguments, folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                      done.returncode, done.stdout, done.stderr))
    assert [path.name for path in files(folder)] == [NAME]
    for k, question in enumerate(questions, 1):
        assert costs[k][1:] == costs[k + len(questions)][1:] and costs[k][1] == 0
        assert costs[k][0] < (0.1 if question == piece else 0.3) * costs[0][0], question
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files(folder))
    # The times of 350,000 kernels of collectives are read piece by piece.
    assert toolchain.peak_kib(conftest.BUILD / "gpuprof-collector", "report", folder) < 16 << 10


def test_rows_of_an_older_version(recording, ask):
    """Files of that name do no harm, and stay."""
    old = recording / ".gpuprof-rows.0"
    old.write_bytes(b"GPUCOLS" * 100)
    same(ask, recording, [TABLE], GRID)
    assert ask("-j1", recording) == ask("--no-index", "-j1", recording)
    assert old.read_bytes() == b"GPUCOLS" * 100


def test_other_verbs(recording, run_collector):
    """Whoever lists a folder does not take the files for recordings."""
    verbs = (["dump"], ["stats", "--no-index", "cuda_gpu_kern_sum"], ["merge", "-o", "out.json"],
             ["flame", "-o", "out.folded"], ["export", "-o", "out.jsonl"], ["recover"], ["memory"],
             ["diff", recording], ["ctl", "status"], ["report"])
    def say():
        return [(done.returncode, done.stdout, done.stderr) for done in
                (run_collector(*verb, recording) for verb in verbs)]
    told = say()
    for path in files(recording):
        path.unlink()
    assert say() == told
    for path in recording.glob("*.gpuprof"):
        path.unlink()
    nothing = run_collector("report", recording).stderr
    (recording / NAME).touch()
    assert run_collector("report", recording).stderr == nothing


def unprivileged():
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def test_folder_without_permission(make_gpu, keeper):
    folder = make_gpu("train", 2, 6)
    folder.chmod(0o555)
    answers = [subprocess.run([*unprivileged(), keeper, "report", *arguments, folder], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
               for arguments in (["-j1"], ["--no-index", "-j1"])]
    folder.chmod(0o755)
    assert answers[0].returncode == answers[1].returncode == 0
    assert answers[0].stdout == answers[1].stdout and answers[0].stderr == answers[1].stderr
    assert not files(folder)


def test_full_disk(make_gpu, ask):
    """A limit of the file size stands for it."""
    folder = make_gpu("train", 2, 6)
    truth = ask("--no-index", "-j1", folder)
    for limit in (0, 100, 3000):
        told = ask("-j1", folder, restore_signals=False, preexec_fn=lambda most=limit: (
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))))
        assert told == truth
        assert not files(folder) and len(list(folder.iterdir())) == 2


def test_not_ours(recording, ask, tmp_path):
    """A link, a folder, or another user's file of that name is not read, and no harm to it."""
    kept = recording / NAME
    held = tmp_path / "held"
    kept.rename(held)
    before = held.read_bytes()
    kept.symlink_to(held)
    same(ask, recording)
    ask("-j1", recording)
    assert held.read_bytes() == before and not kept.is_symlink()
    kept.unlink()
    kept.mkdir()
    same(ask, recording)
    assert ask("-j1", recording) == ask("-j1", "--no-index", recording)
    assert kept.is_dir() and not list(kept.iterdir())
    kept.rmdir()
    os.mkfifo(kept)
    same(ask, recording)
    ask("-j1", recording)
    assert kept.is_file()
    kept.chmod(0o666)
    inode = kept.stat().st_ino
    same(ask, recording)
    if os.geteuid() == 0:
        kept.chmod(0o600)
        os.chown(kept, 1, 1)
        same(ask, recording)
    ask("-j1", recording)
    assert kept.stat().st_ino != inode and kept.stat().st_uid == os.geteuid()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("count", [20, pytest.param(2000, marks=pytest.mark.long)])
def test_changed_file(recording, ask, count):
    """Torn or changed anywhere: the answer is right all the same, and the next report mends it."""
    kept = recording / NAME
    whole = kept.read_bytes()
    rand = random.Random(count)
    truth = ask("--no-index", "-j1", TABLE, recording)
    for turn in range(count):
        data = bytearray(whole)
        if turn % 3 == 0:
            del data[rand.randrange(len(data)):]
        for _ in range(turn % 3):
            data[rand.randrange(len(data))] ^= 1 << rand.randrange(8)
        kept.write_bytes(data)
        assert ask(TABLE, recording) == truth
    kept.unlink()
    ask("-j1", recording)
    assert len(kept.read_bytes()) == len(whole)


def test_running(ask, library, tmp_path):
    """Of a recording that goes on nothing is kept; of one that was killed, what it had."""
    folder = tmp_path / "live"
    tiny, link = toolchain.tiny()
    env = toolchain.environment(folder, library, LD_LIBRARY_PATH=tiny, GPUPROF_SEAL="10ms")
    with conftest.Program([toolchain.build("life.c", *link), "pause", "400"], env=env,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.5)  # all is in the stream file then
        assert "400" in same(ask, folder)[1]
        ask(folder)
        assert not files(folder)
        process.kill()
    ask("-j1", folder)
    assert files(folder)
    told = same(ask, folder)
    assert "400" in told[1]
    for path in folder.glob("*.live"):
        path.unlink()
    assert same(ask, folder) != told  # it is not known any more whether that was all


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.long)])
def test_killed(make_gpu, ask, keeper, count):
    """A reader or writer that is killed leaves nothing that answers wrongly."""
    folder = make_gpu("train", 2, 25)
    truth = ask("--no-index", TABLE, folder)
    rand = random.Random(count)
    begin = time.monotonic()
    ask("-j2", folder)
    whole = time.monotonic() - begin
    states = set()
    for turn in range(count):
        arguments = [f"-j{1 + turn % 2}"] if turn % 4 else [TABLE]
        with subprocess.Popen([keeper, "report", *arguments, folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
            time.sleep(rand.random() * whole)
            process.kill()
        assert ask(TABLE, folder) == truth
        states.add(len(files(folder)))
        if turn % 3 == 0:
            for path in files(folder):
                path.unlink(missing_ok=True)
    assert len(states) > 1


def test_at_once(make_gpu, ask, keeper):
    folder = make_gpu("train", 2, 25)
    truth = ask("--no-index", TABLE, folder)
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(subprocess.Popen(
            [keeper, "report", f"-j{1 + k % 2}", folder], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)) for k in range(4)]
        while any(writer.poll() is None for writer in writers):
            assert ask(TABLE, folder) == truth
    assert all(writer.returncode == 0 for writer in writers)
    assert ask(TABLE, folder) == truth
    assert all(path.suffix == ".gpuprof" or path in files(folder) for path in folder.iterdir())


# ---- windows ------------------------------------------------------------------------------------

WINDOW = ["--format=json"], ["--full", "--by=range"], ["--table=idle,ranks,arrivals"], [
    "--by=stack", "--format=json"]


def same_windows(ask, folder, windows):
    """A report of a window is the same without what is kept, which tells what it need not read."""
    for begin, end in windows:
        for question in WINDOW:
            question = [*question, f"--from={begin}", f"--to={end}", "-j1", folder]
            whole, near = (ask(*more, *question) for more in (["--no-index"], []))
            whole, near = (tuple(str(text).replace("of what was read", "of the whole recording")
                                 for text in answer) for answer in (whole, near))
            assert whole == near, question


def length(ask, folder):
    """From the first event on, in ns."""
    told = json.loads(ask("-j1", "--format=json", folder)[1])["overview"]
    return told["wall_ns"] - told["start_up_ns"]


def nested(parts, each=1000):
    """A range, a label and an operator around all, others around each part, and an operator in one
    around each launch; in each part one that another thread ends."""
    r = Recording()
    with r.range("training"), r.op("epoch", scope=LABEL), r.op("aten::all"):
        for part in range(parts):
            launched = []
            with r.range(f"part {part}"), r.op("part", scope=LABEL):
                with r.op("moved"):
                    pass
                *_, moved = r.lines.pop().split(" ", 4)  # its end, which comes elsewhere
                for _ in range(each):
                    with r.op("aten::linear"), r.op("aten::mm"):
                        launched.append((r.now, r.call("cudaLaunchKernel", [0])))
                r.lines.append(f"{OTHER} {TYPES['op_end']} 0 0 {r.now + 100} " +
                               moved.split(" ", 1)[1])
            number = r.number(r.kernels, "kernel_name", DEVICE, "kernel")
            for at, call in launched:
                r.add(DEVICE, TYPES["kernel"], [0, 1, 7, number, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
                      begin=at + 5000, ns=700, call=call)
    return r


def replayed(count):
    """A graph captured in operators, many launches in none, and the graph's replays."""
    r = Recording()
    test_op_flops.capture(r)
    with r.op("aten::first"):
        r.launch(100)
    launched = []
    for _ in range(count):
        with r.range("each"), r.range("one"):
            launched.append((r.now, r.call("cudaLaunchKernel", [0])))
    number = r.number(r.kernels, "kernel_name", DEVICE, "kernel")
    for at, call in launched:
        r.add(DEVICE, TYPES["kernel"], [0, 1, 7, number, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
              begin=at + 3000, ns=300, call=call)
    begin = r.now
    for _ in range(5):
        test_op_flops.replay(r)
    return r, begin, r.now


def damage_blocks(path, first, last):
    """Their frames, of those blocks that begin in that part of the time; nobody sees it from
    outside. How many."""
    status, data = path.stat(), bytearray(path.read_bytes())
    blocks = stream_reader.read_blocks(bytes(data), stream_reader.read_header(bytes(data)).bytes)[0]
    begins = [b.begin for b in blocks if b.thread == DEVICE]
    found = [b for b in blocks if first < (b.begin - begins[0]) / (max(begins) - begins[0]) < last]
    for block in found:
        data[block.stored_at + block.stored_bytes // 2] ^= 255
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return len(found)


def test_windows_of_nested_spans(ask, tmp_path):
    """They begin and end far from the window. What is far and has none of them is not read."""
    folder = nested(20).write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    whole = length(ask, folder)
    assert files(folder)
    dice = random.Random(7)
    windows = [(f"{begin}ns", f"{begin + whole // size}ns") for size in (100_000, 1000, 100, 20)
               for begin in [int(whole * dice.uniform(0.7, 0.9))]]
    same_windows(ask, folder, windows)
    near = [ask("--format=json", f"--from={begin}", f"--to={end}", folder)
            for begin, end in windows]
    assert damage_blocks(folder / "0.gpuprof", 0.05, 0.2) > 5
    assert near == [ask("--format=json", f"--from={begin}", f"--to={end}", folder)
                    for begin, end in windows]
    assert ask("--no-index", folder)[0] == 3  # damaged


def test_windows_of_replays(ask, tmp_path):
    """The operators of a graph are those around its capture, long before the window."""
    r, begin, end = replayed(10_000)
    folder = r.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    assert length(ask, folder) and files(folder)
    first = min(int(line.split()[4]) for line in r.lines if line.startswith(f"{MAIN} "))
    window = [f"--from={begin - first - 1_000_000}ns", f"--to={end - first}ns"]
    told = json.loads(ask("--format=json", *window, folder)[1])
    assert any(row["graph_gpu_ns"] for row in told["ops"])
    same_windows(ask, folder, [(window[0][7:], window[1][5:])])


@pytest.mark.parametrize("scenario", ["train", "late", "unmatched"])
def test_windows(make_gpu, make_ops, ask, scenario):
    """Of ranks that meet, with graphs, copies, ranges that cross; of ends without a begin, for
    which a report of a window reads everything."""
    folder = make_ops(2, 4000, 3) if scenario == "unmatched" else make_gpu(scenario, 2, 400)
    whole = length(ask, folder)
    dice = random.Random(scenario)
    same_windows(ask, folder, [(f"{begin}ns", f"{begin + whole // size}ns")
                               for size in (1000, 100, 10)
                               for begin in [int(whole * dice.uniform(0, 0.9))]])
