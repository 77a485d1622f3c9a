# SPDX-License-Identifier: Apache-2.0
"""What SECURITY.md promises."""

import errno
import json
import os
import re
import resource
import shutil
import stat
import struct
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

O_EXCL, O_CREAT, O_NOFOLLOW = 0o200, 0o100, os.O_NOFOLLOW
O_TMPFILE = os.O_TMPFILE
NOBODY = 65534


class Calls:
    def __init__(self, library, folder):
        self.library, self.folder = library, folder
        self.tiny, link = toolchain.tiny()
        self.program = toolchain.build("life.c", *link)

    def __call__(self, out, *arguments, status=3, preexec_fn=None, shim=None, **settings):
        env = toolchain.environment(out, self.library, LD_LIBRARY_PATH=self.tiny, **settings)
        if shim:
            env["LD_PRELOAD"] = f"{shim}:{env['LD_PRELOAD']}"
        return toolchain.run([self.program, *(arguments or ["calls"])], env, status=status,
                             preexec_fn=preexec_fn)


@pytest.fixture(name="calls")
def fixture_calls(library, tmp_path):
    return Calls(library, tmp_path)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_modes(calls, tmp_path, mask):
    """A kill leaves both files."""
    live = tmp_path / "live"
    live.mkdir()
    calls(tmp_path / "one" / "two", "stay", "200", "kill", status=-9, GPUPROF_LIVE=live,
          preexec_fn=lambda: os.umask(mask))
    assert mode(tmp_path / "one") == mode(tmp_path / "one" / "two") == 0o700
    [stream], [live_file] = (tmp_path / "one" / "two").iterdir(), live.iterdir()
    assert mode(stream) == mode(live_file) == 0o600


@pytest.mark.parametrize("unnamed", [True, False])
def test_every_file_is_new(calls, tmp_path, unnamed):
    """Whatever the library creates: nothing that is there, nothing through a link."""
    shim = toolchain.build("io_fault.c", "-shared", "-fPIC")
    log = tmp_path / "trace"
    calls(tmp_path / "out", shim=shim, GPUPROF_LIVE=tmp_path, IO_TRACE=log,
          IO_FAULT="" if unnamed else f"tmpfile={errno.EOPNOTSUPP}@0")
    opened = [(int(f, 8), int(m, 8), p) for f, m, p in
              (line.split(" ", 2) for line in log.read_text().splitlines())]
    made = [(f, m, p) for f, m, p in opened if f & O_CREAT or f & O_TMPFILE == O_TMPFILE]
    assert len(made) >= 2
    for flags, its_mode, path in made:
        assert its_mode == 0o600, path
        assert flags & O_TMPFILE == O_TMPFILE or flags & (O_EXCL | O_NOFOLLOW) == \
            O_EXCL | O_NOFOLLOW, path
    ours = [(f, p) for f, _, p in opened if p.startswith(str(tmp_path)) and not f & O_TMPFILE]
    assert all(f & O_NOFOLLOW for f, p in ours if not os.path.isdir(p))


@pytest.fixture(name="shared")
def fixture_shared(tmp_path):
    """A folder like /tmp, and other people's things in it."""
    if os.geteuid() != 0:
        pytest.skip("not run: only root can be another user, too")
    for folder in (tmp_path, *tmp_path.parents):  # others may come here
        if folder.owner() == "root" and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    return shared


def planted(kind, shared, target):
    path = shared / "data"
    if kind == "folder":
        path.mkdir()
        path.chmod(0o777)
    else:
        path.symlink_to(target)
    os.lchown(path, NOBODY, NOBODY)
    return path


@pytest.mark.parametrize("below", ["", "job/one"])
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_planted_folder(calls, shared, tmp_path, kind, below):
    target = tmp_path / "precious"
    target.mkdir()
    path = planted(kind, shared, target)
    done = calls(path / below if below else path)
    assert re.fullmatch("gpuprof: recording is off: '.*/data' belongs to another user, in a folder "
                        "that everybody may write to; set GPUPROF_OUT to another folder\n",
                        done.stderr)
    assert not list(target.iterdir()) and (kind == "link" or not list(path.iterdir()))


def test_other_users_folder_elsewhere(calls, shared):
    """A folder that its owner lets us use, where not anybody can put one, is used."""
    shared.chmod(0o755)
    path = planted("folder", shared, None)
    assert calls(path).stderr == ""
    assert len(list(path.iterdir())) == 1


def test_own_folder_in_a_shared_one(calls, shared):
    assert calls(shared / "own" / "two").stderr == ""
    assert mode(shared / "own") == 0o700


def test_live_file_of_another_user(calls, shared, run_collector, collector):
    """A stream file whose header leads to somebody else's file: it is neither read nor removed."""
    shared.chmod(0o777)
    calls(shared / "data", "stay", "200", "kill", status=-9, GPUPROF_LIVE=shared)
    [live] = shared.glob("*.live")
    [stream] = (shared / "data").iterdir()
    os.chown(stream, NOBODY, NOBODY)
    os.chown(shared / "data", NOBODY, NOBODY)
    live.chmod(0o644)
    own = shared / "collector"
    shutil.copy(collector, own)
    own.chmod(0o755)

    def as_nobody():
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    done = subprocess.run([own, "report", stream], capture_output=True, text=True, check=False,
                          preexec_fn=as_nobody, stdin=subprocess.DEVNULL)
    assert "read from the live file" not in done.stderr and "no live file" in done.stderr
    assert live.exists() and not stream.with_suffix(".live").exists()
    link = live.with_name("link.live")
    live.rename(link)
    live.symlink_to(link)
    again = run_collector("report", stream)
    assert "read from the live file" not in again.stderr


@pytest.mark.parametrize("variable, value", [
    ("GPUPROF_OUT", "x" * 5000), ("GPUPROF_LIVE", "y" * 5000), ("GPUPROF_BUFFER", "9" * 300),
    ("GPUPROF_BUFFER", "-1"), ("GPUPROF_CHUNK", "0x10"), ("GPUPROF_WAIT", "1e9s"),
    ("GPUPROF_KINDS", "kernel," * 500), ("GPUPROF_LEVEL", "\x1b[31m9"),
    ("GPUPROF_ON_FULL", "\udcff\udcfe"), ("GPUPROF_SEAL", "99999999999999999999999s"),
    ("GPUPROF_OUT", "\x1b]0;title\x07/proc/none")])
def test_environment(calls, tmp_path, variable, value):
    """A wrong value is said in one line, with nothing in it that a terminal obeys."""
    env = toolchain.environment(tmp_path / "out", calls.library,
                                **{"LD_LIBRARY_PATH": calls.tiny, variable: value})
    done = toolchain.run([calls.program, "calls"], env, status=3, cwd=tmp_path)
    assert len(done.stderr) < 700 and done.stderr.count("\n") <= 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr)
    assert done.stderr == "" or done.stderr.startswith("gpuprof: ")
    if variable != "GPUPROF_OUT":
        assert variable in done.stderr
        [process] = stream_reader.read_folder(tmp_path / "out")
        assert len(process.calls()) == 6


NASTY = b"\x1b[31mred\x1b]0;x\x07\x00\x7f\xff\xfe\xed\xa0\x80 \"</script>\\ \r\n\t\xc2\x9b1m"


def test_names_that_terminals_obey(calls, run_collector, tmp_path):
    """A command line, a folder and a file's name with control characters and invalid UTF-8."""
    nasty = NASTY.replace(b"\x00", b"").replace(b"/", b"")
    folder = os.path.join(os.fsencode(tmp_path), nasty)
    os.mkdir(folder)
    program = os.path.join(folder, b"life" + nasty[:40])
    shutil.copy(calls.program, program)
    env = toolchain.environment(tmp_path / "out", calls.library, LD_LIBRARY_PATH=calls.tiny)
    subprocess.run([program, b"stay", b"200", b"kill"], env=env, cwd=folder, check=False)
    [stream] = (tmp_path / "out").glob("*.gpuprof")
    moved = os.path.join(folder, nasty[:30] + b".gpuprof")
    shutil.copy(stream, moved)
    allowed = {"merge": "\n", "report": "\n", "dump": "\n"}
    for verb, *options in (["merge"], ["report"], ["report", "--format=csv"],
                           ["report", "--format=json"], ["dump"], ["dump", "--blocks"]):
        done = subprocess.run([conftest.BUILD / "gpuprof-collector", verb, *options, "--", moved],
                              capture_output=True, check=False, stdin=subprocess.DEVNULL)
        for what, text in (("output", done.stdout), ("messages", done.stderr)):
            shown = text.decode("utf-8")  # valid, or this raises
            bad = re.findall(r"[\x00-\x1f\x7f\x80-\x9f]", shown.replace(allowed[verb], ""))
            assert not bad, (verb, options, what, bad[:5], shown[:400])
        if verb == "merge" or "--format=json" in options:
            json.loads(done.stdout)
    done = subprocess.run([conftest.BUILD / "gpuprof-collector", "help", moved],
                          capture_output=True, check=False)
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", done.stderr)
    toolchain.remove_live(stream_reader.read_folder(tmp_path / "out"))


# ---- Bombs ---------------------------------------------------------------------------------------

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def column(values, count):
    """All the same, or a range's, each one more than the one before."""
    if isinstance(values, range):
        return struct.pack("<BQB", 3, values.start, 1) + b"\0" + b"\1" * (count - 1)
    return struct.pack("<BBQ", 0, 8, values)


def block(thread, kind, code, count, args, text, sequence, position, stack=0, level=19,
          duration=10):
    """A block of `count` records, equal but for what is a range or a list of texts."""
    texts = text if isinstance(text, list) else [text] * count
    payload = b"\1" + varint(count) + varint(1) + bytes([kind]) + varint(code) + \
        bytes([len(args)]) + varint(count)
    for value in (0, 0, 5000, duration, 0, 0, stack, 0, len(texts[0]), *args):
        payload += column(value, count)
    payload += b"".join(texts)
    return stored(thread, payload, count, sequence, position, compress(payload, level))


def compress(payload, level):
    return subprocess.run(["zstd", f"-q{level}c", "--no-check"], input=payload, capture_output=True,
                          check=True).stdout


def stored(thread, payload, count, sequence, position, frame):
    head = struct.pack("<IIIIIQQQQQIIIQI", 0x184D2A5B, 80, 0x31425047, thread, count, sequence,
                       5000, 5010, position, position + 64, len(payload), len(frame),
                       stream_reader.crc32c(frame), 0, 0)
    return head + struct.pack("<I", stream_reader.crc32c(head)) + frame


KERNEL, KERNEL_NAME = 10, 21
TEXT_MOST = 300 << 20  # what a small file may make, and more than it needs
BEYOND = "the output is too large for recordings of this size"


def beginning(number, description):
    """A file's header and its function table of one function; each number another process."""
    good = (conftest.ROOT / "test" / "corpus" / "good.gpuprof").read_bytes()
    head = bytearray(good[:stream_reader.read_header(good).bytes])
    head[24:40] = bytes([number]) * 16
    head[-4:] = struct.pack("<I", stream_reader.crc32c(bytes(head[:-4])))
    return bytes(head) + block(0, stream_reader.API, 0, 1, [], description, 0, 0)


def name_bomb(number=1):
    """Four names of 8 KiB of control characters in each of tens of thousands of calls, in a few
    bytes of file: more than a gigabyte, if it were written."""
    data = beginning(number, b"f|runtime|launch|" + b",".join(b"kernel:k%d" % i for i in range(4)))
    data += block(1, stream_reader.NAME, 0, 1, [7], b"\1" * 8192, 1, 0)
    for i in range(5):
        data += block(1, stream_reader.CALL, 0, 8192, [7] * 4, b"", 2 + i, 64 + 64 * i)
    assert len(data) < 3000
    return data


def stack_bomb():
    """Thousands of stacks of a thousand frames with long names."""
    data = beginning(1, b"f|runtime|alloc|")
    python = b"/" + b"f" * 400 + b"\0" + b"n" * 400
    data += block(1, stream_reader.PYTHON, 0, 1, [1, 1], python, 1, 0)
    frames = struct.pack("<Q", 2 << 60 | 1) * 1023
    for i in range(6):
        numbers = range(1 + 500 * i, 1 + 500 * (i + 1))
        texts = [struct.pack("<Q", 1 << 60 | 64 * n) + frames for n in numbers]
        data += block(1, stream_reader.STACK, 0, 500, [numbers, 0], texts, 2 + 2 * i, 64 + 128 * i)
        data += block(1, stream_reader.CALL, 0, 500, [], b"", 3 + 2 * i, 128 + 128 * i, numbers)
    assert len(data) < 20000
    return data


def tree_bomb():
    """Stacks whose outermost frames differ, and all others do not: no two share a frame's way."""
    data = beginning(1, b"f|runtime|alloc|")
    frames = struct.pack("<255Q", *(1 << 60 | 977 * n * n for n in range(1, 256)))
    for i in range(10):
        numbers = range(1 + 1600 * i, 1 + 1600 * (i + 1))
        texts = [frames + struct.pack("<Q", 1 << 60 | 64 * n) for n in numbers]
        data += block(1, stream_reader.STACK, 0, 1600, [numbers, 0], texts, 2 + 2 * i,
                      64 + 128 * i, level=9)
        data += block(1, stream_reader.CALL, 0, 1600, [], b"", 3 + 2 * i, 128 + 128 * i, numbers)
    assert len(data) < 60_000
    return data


def kernels_bomb(names, durations):
    """Kernels, each of another name, of 400 bytes or none, and as long as each of `durations`."""
    data = beginning(1, b"f|runtime|launch|kernel:k")
    data += block(1, stream_reader.THREAD, 0, 1, [5], b"gpuprof-gpu", 1, 0)
    sequence = 2
    for first in range(1, 65537, 8192):
        numbers = range(first, first + 8192)
        texts = [b"%0400d" % n for n in numbers]
        if names:
            data += block(1, KERNEL_NAME, 0, 8192, [numbers], texts, sequence,
                          64 * sequence, level=3)
        for duration in durations:
            sequence += 1
            data += block(1, KERNEL, 0, 8192, [0, 1, 7, numbers], b"", sequence,
                          64 * sequence, level=3, duration=duration)
        sequence += 1
    assert len(data) < 400_000
    return data


def wide_bomb(number):
    """Blocks that begin together, each with as many columns as one may have."""
    shapes, most = 256, 16
    payload = b"\1" + varint(shapes) + varint(shapes) + b"".join(
        bytes([stream_reader.CALL]) + varint(code) + bytes([most]) + b"\1"
        for code in range(shapes))
    for value in (range(shapes), 0, 5000, 10, 0, 0, 0, 0, 0, *[7] * (shapes * most)):
        payload += column(value, shapes)
    frame = compress(payload, 9)
    data = beginning(number, b"f|runtime|alloc|")
    data += b"".join(stored(1, payload, shapes, 1 + i, 64 * i, frame) for i in range(100))
    assert len(data) < 100_000
    return data


def run_bounded(folder, *arguments, memory=1 << 30):
    """What the collector made in `folder`, in bytes, and what it said. Its memory is bounded."""
    with open(folder / "printed", "wb") as printed:
        done = subprocess.run(
            [conftest.BUILD / "gpuprof-collector", *arguments], cwd=folder, check=False,
            text=True, stdout=printed, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            timeout=120,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
    left = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".gpuprof"]
    made = sum(path.stat().st_size for path in left)
    for path in left:
        path.unlink()
    return made, done


@pytest.mark.parametrize("bomb, arguments, beyond", [
    ("name", ["merge", "-o", "trace.json"], True), ("name", ["merge", "-o", "trace.json.gz"], True),
    ("name", ["merge", "-o", "-"], True), ("name", ["merge", "-o", "trace.zip"], True),
    ("name", ["merge", "--per-rank", "-o", "traces"], True), ("name", ["dump"], True),
    ("name", ["dump", "--blocks"], False), ("name", ["report"], False),
    ("name", ["report", "--format=json"], False), ("name", ["flame"], False),
    ("stacks", ["merge", "-o", "trace.json"], False), ("stacks", ["dump"], False),
    ("stacks", ["flame"], True), ("stacks", ["flame", "-o", "flame.folded"], True),
    ("stacks", ["flame", "-o", "flame.json"], False),
    ("stacks", ["flame", "-o", "flame.svg"], False), ("stacks", ["report"], False),
    ("stacks", ["report", "--by=stack"], False),
    ("stacks", ["report", "--by=stack", "--format=csv"], True),
    ("stacks", ["report", "--by=stack", "--format=json"], True),
    ("stacks", ["report", "--by=python-line", "--format=csv"], False)],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value))
def test_a_small_file_makes_no_large_output(tmp_path, bomb, arguments, beyond):
    data = name_bomb() if bomb == "name" else stack_bomb()
    (tmp_path / "bomb.gpuprof").write_bytes(data)
    made, done = run_bounded(tmp_path, arguments[0], "bomb.gpuprof", *arguments[1:])
    assert done.stderr.count(BEYOND) == beyond, done.stderr
    assert (done.returncode == 1) == beyond and made < TEXT_MOST + 16384 * len(data)
    if beyond and "-o" in arguments and arguments[-1] != "-":
        assert made == 0  # nor is there a file of half of it


@pytest.mark.parametrize("output", [
    ["-o", "trace.json"], pytest.param(["-o", "trace.zip"], marks=pytest.mark.long),
    pytest.param(["--per-rank", "-o", "traces"], marks=pytest.mark.long)], ids=" ".join)
def test_many_small_files_make_no_large_output(tmp_path, output):
    """The bound is one for all that a run writes, not one a file."""
    for i in range(20):
        data = beginning(1 + i, b"f|runtime|launch|kernel:k")
        data += block(1, stream_reader.NAME, 0, 1, [7], b"k" * 8192, 1, 0)
        data += block(1, stream_reader.CALL, 0, 8192, [7], b"", 2, 64)
        (tmp_path / f"{i}.gpuprof").write_bytes(data)
    made, done = run_bounded(tmp_path, "merge", ".", *output)
    assert done.returncode == 1 and done.stderr.count(BEYOND) == 1 and made < TEXT_MOST


def test_a_small_file_makes_no_large_memory(tmp_path):
    """What it cannot keep is said, and the rest is shown."""
    (tmp_path / "bomb.gpuprof").write_bytes(tree_bomb())
    for arguments in (["report", "--by=stack"], ["flame"], ["flame", "-o", "f.svg"],
                      ["flame", "-o", "f.json"], ["merge", "-o", "trace.json"]):
        made, done = run_bounded(tmp_path, arguments[0], "bomb.gpuprof", *arguments[1:],
                                 memory=192 << 20)
        assert done.returncode == 3 and made > 0, done.stderr
        assert "stacks: too many to keep: " in done.stderr or arguments[0] == "merge"


@pytest.mark.parametrize("names, powers", [(True, 1), (False, 6)])
def test_many_kernels_make_no_large_memory(tmp_path, names, powers):
    """Neither of different names, nor of times of all lengths, in a row for each of which there is
    room for what a few bytes say of it."""
    (tmp_path / "bomb.gpuprof").write_bytes(kernels_bomb(names, [64 << i for i in range(powers)]))
    made, done = run_bounded(tmp_path, "report", "bomb.gpuprof", memory=120 << 20)
    assert made > 0 and done.returncode == 3, done.stderr  # of its numbers some are missing
    assert ("names: too many to keep" in done.stderr) == names
    assert ("report: too many different times for" in done.stderr) != names


def test_many_blocks_open_at_a_time_make_no_large_memory(tmp_path):
    """Their decoders and what is kept of them count as their payloads do."""
    for i in range(24):
        (tmp_path / f"{i}.gpuprof").write_bytes(wide_bomb(1 + i))
    made, done = run_bounded(tmp_path, "report", ".", "--format=csv", memory=384 << 20)
    assert done.returncode == 0 and made > 0, done.stderr


def test_many_names_of_handles_make_no_large_memory(tmp_path):
    """One name for a hundred thousand handles, in a few bytes, in each of many processes."""
    names = b"".join(block(1, stream_reader.NAME, 0, 8192, [range(8192 * i, 8192 * (i + 1))], b"k",
                           1 + i, 64 * i, level=3) for i in range(12))
    for i in range(20):
        data = beginning(1 + i, b"f|runtime|launch|kernel:k") + names
        assert len(data) < 6000
        (tmp_path / f"{i}.gpuprof").write_bytes(data)
    made, done = run_bounded(tmp_path, "report", ".", "--strict", memory=72 << 20)
    assert done.returncode == 3 and made > 0, done.stderr
    assert done.stderr.count("names: too many to keep") == 1


def test_recover_makes_no_more_than_there_is(run_collector, tmp_path):
    """The whole file is not larger than the two that it is made of."""
    corpus = conftest.ROOT / "test" / "corpus"
    for live in corpus.glob("live-*.live"):
        for suffix in (".live", ".gpuprof"):
            shutil.copy(live.with_suffix(suffix), tmp_path)
        before = sum(path.stat().st_size for path in tmp_path.iterdir())
        run_collector("recover", tmp_path / live.with_suffix(".gpuprof").name)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) < before + 8192
        for path in tmp_path.iterdir():
            path.unlink()


@pytest.mark.parametrize("tail", ["hole", "magics", "frames"])
def test_a_small_file_takes_no_long_time(run_collector, tmp_path, tail):
    """What is behind the last block: nothing, for half a terabyte; what begins like a block, or
    like a frame to be skipped, again and again."""
    path = tmp_path / "long.gpuprof"
    shutil.copy(conftest.ROOT / "test" / "corpus" / "good.gpuprof", path)
    with open(path, "ab") as file:
        if tail == "hole":
            file.truncate(1 << 39)
        elif tail == "magics":
            file.write(struct.pack("<I", 0x184D2A5B) * (16 << 18))
        else:
            file.write(struct.pack("<II", 0x184D2A50, 0) * (8 << 18) + b"x")
    for verb in ("report", "merge", "dump"):
        done = run_collector(verb, path, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_CPU, (8, 8)))
        assert done.returncode == 3, done.stderr
        assert "bytes outside of any block" in done.stderr
