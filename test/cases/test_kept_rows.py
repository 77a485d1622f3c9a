# SPDX-License-Identifier: Apache-2.0
"""The rows that a report keeps beside the recordings (.gpuprof-rows.N) answer the next question as
the recordings do, and are not used when anything is wrong with them. The truth is --no-index."""

import contextlib
import itertools
import os
import random
import resource
import shutil
import subprocess
import time

import conftest
import pytest
import toolchain

TABLES = ["functions", "cuda_gpu_kern_sum", "cuda_kern_exec_sum", "gpu_time_util",
          "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_gpu_graph_sum", "cuda_sync_sum",
          "overhead_sum", "host_mem_sum", "host_kernel_sum"]
TABLE = "--table=functions"
ALL = "--table=" + ",".join(TABLES)
KEPT = [  # is answered from there
    [ALL], [ALL, "--format=csv"], [TABLE], [TABLE, "--strict"],
    ["--by=grid", "--table=cuda_gpu_kern_sum"],
    ["--by=thread", "--table=calls_by_thread"],
    ["--by=thread", "--table=calls_by_thread", "--from=300us"],
    [ALL, "--from=100us", "--to=350us"],
    [ALL, "--to=150us", "--format=csv"],
    [ALL, "--from=0", "--to=1000"],
    [TABLE, "--from=300us", "--strict", "--sort=calls", "--limit=2"],
]
OTHERS = [[TABLE, "--from=1000"], [TABLE, "--from=350us", "--to=100us"],
          [TABLE, "--step-range=nothing"], [TABLE, "--rank=1"], ["--table=functions,idle"]]
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


def files(folder):
    return sorted(folder.glob(".gpuprof-rows*"))


def identities(folder):
    return [(path.name, path.stat().st_ino, path.read_bytes()) for path in files(folder)]


@pytest.fixture
def recording(make_gpu, ask):
    """A folder with two ranks, and rows kept of it."""
    folder = make_gpu("train", 2, 6)
    assert ask("-j1", folder)[0] == 0
    assert [path.name for path in files(folder)] == [".gpuprof-rows.0"]
    return folder


def same(ask, folder, *question):
    told = ask(*question, folder)
    assert told == ask("--no-index", "-j1", *question, folder), question
    return told


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)


@pytest.mark.parametrize("scenario", [
    "train", "loss", "late", "damaged", *(pytest.param(name, marks=pytest.mark.long)
                                          for name in ("pools", "shared"))])
def test_same_answers(make_gpu, ask, scenario):
    folder = make_gpu(*MADE.get(scenario, MADE["train"]))
    ranks = len(list(folder.glob("*.gpuprof")))
    if scenario == "damaged":
        damage(folder / "rank0.gpuprof")
        os.truncate(folder / "rank1.gpuprof", (folder / "rank1.gpuprof").stat().st_size - 700)
    truths = [ask("--no-index", "-j1", *question, folder) for question in KEPT + OTHERS]
    for jobs in (1, 2):
        ask(f"-j{jobs}", folder)
        assert len(files(folder)) == min(jobs, ranks)
        kept = identities(folder)
        assert [ask(*question, folder) for question in KEPT] == truths[:len(KEPT)]
        assert identities(folder) == kept
    assert [ask(*question, folder) for question in OTHERS] == truths[len(KEPT):]
    assert len(set(truths)) > 8
    assert {code for code, *_ in truths} >= {2} | ({3} if scenario == "damaged" else {0})


def test_is_read(recording, ask):
    """In place of the recordings' events: with these damaged, and the old time and size, the kept
    rows still say what was there, and only --no-index sees the damage."""
    told = ask(TABLE, recording)
    path = recording / "rank1.gpuprof"
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[-200] ^= 255
    with open(path, "r+b") as out:
        out.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ask(TABLE, recording) == told
    assert ask(TABLE, f"./{recording.name}") == told
    assert ask("--no-index", TABLE, recording) != told
    moved = recording.rename(recording.with_name("moved"))
    assert ask(TABLE, moved) == told


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
    same(ask, recording, TABLE)
    assert identities(recording) == before  # a question of one table does not write
    ask("-j1", recording)
    assert identities(recording) != before
    assert len(files(recording)) == 1
    same(ask, recording, TABLE)


def test_another_program(recording, ask, keeper, tmp_path):
    """One that was built anew may see other rows in the same files."""
    before = identities(recording)
    other = tmp_path / "other"
    shutil.copy2(keeper, other)
    subprocess.run([other, "report", "-j1", recording], check=True, capture_output=True)
    assert identities(recording) != before
    same(ask, recording, TABLE)


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
    for arguments in (["-j2"], [TABLE], ["--no-index", TABLE]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run_collector("report", *arguments, folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                      done.returncode, done.stdout, done.stderr))
    assert [path.name for path in files(folder)] == [".gpuprof-rows.0", ".gpuprof-rows.1"]
    assert costs[1][1:] == costs[2][1:] and costs[1][1] == 0
    assert costs[1][0] < 0.5 * costs[0][0]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files(folder))


def test_pieces_of_the_index(make_gpu, ask):
    """Files of -j2 stand in place of those of -j1, and the other way round."""
    folder = make_gpu("train", 3, 6)
    for jobs in (1, 3, 2, 1):
        ask(f"-j{jobs}", folder)
        assert len(files(folder)) == jobs
        same(ask, folder, TABLE)
    for removed, jobs in itertools.product((0, 1), (2, 3)):
        ask(f"-j{jobs}", folder)
        files(folder)[removed].unlink()
        same(ask, folder, TABLE)
    ask("-j3", folder)
    two, three = folder / ".gpuprof-rows.1", folder / "three"
    shutil.copy2(two, three)
    ask("-j2", folder)
    shutil.copy2(three, two)  # the first of two and the second of three
    same(ask, folder, TABLE)


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
    (recording / ".gpuprof-rows.0").touch()
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
    kept = recording / ".gpuprof-rows.0"
    held = tmp_path / "held"
    kept.rename(held)
    before = held.read_bytes()
    kept.symlink_to(held)
    same(ask, recording, TABLE)
    ask("-j1", recording)
    assert held.read_bytes() == before and not kept.is_symlink()
    kept.unlink()
    kept.mkdir()
    same(ask, recording, TABLE)
    assert ask("-j1", recording) == ask("-j1", "--no-index", recording)
    assert kept.is_dir() and not list(kept.iterdir())
    kept.rmdir()
    os.mkfifo(kept)
    same(ask, recording, TABLE)
    ask("-j1", recording)
    assert kept.is_file()
    kept.chmod(0o666)
    inode = kept.stat().st_ino
    same(ask, recording, TABLE)
    if os.geteuid() == 0:
        kept.chmod(0o600)
        os.chown(kept, 1, 1)
        same(ask, recording, TABLE)
    ask("-j1", recording)
    assert kept.stat().st_ino != inode and kept.stat().st_uid == os.geteuid()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("count", [30, pytest.param(3000, marks=pytest.mark.long)])
def test_changed_file(recording, ask, count):
    """Torn or changed anywhere: the answer is right all the same, and the next report mends it."""
    kept = recording / ".gpuprof-rows.0"
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
        time.sleep(0.1)  # most is in the stream file then
        assert "400" in same(ask, folder, TABLE)[1]
        ask(folder)
        assert not files(folder)
        process.kill()
    ask("-j1", folder)
    assert files(folder)
    told = same(ask, folder, TABLE)
    assert "400" in told[1]
    for path in folder.glob("*.live"):
        path.unlink()
    assert same(ask, folder, TABLE) != told  # it is not known any more whether that was all


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
