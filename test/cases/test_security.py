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
    calls(tmp_path / "one" / "two", "end", "kill", status=-9, GPUPROF_LIVE=live,
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
        pytest.skip("only root can be another user, too")
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
    assert re.fullmatch("gpuprof: recording is off: '.*/data' is another user's, in a folder where "
                        "anybody may put something; name another folder\n", done.stderr)
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
    calls(shared / "data", "end", "kill", status=-9, GPUPROF_LIVE=shared)
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
    subprocess.run([program, b"end", b"kill"], env=env, cwd=folder, check=False)
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


def block(thread, kind, code, count, args, text, sequence, position):
    """A block of `count` equal records."""
    payload = b"\1" + varint(count) + varint(1) + bytes([kind]) + varint(code) + \
        bytes([len(args)]) + varint(count)
    for value in (0, 0, 5000, 10, 0, 0, 0, 0, len(text), *args):
        payload += struct.pack("<BBQ", 0, 8, value)
    payload += text * count
    frame = subprocess.run(["zstd", "-q19c", "--no-check"], input=payload, capture_output=True,
                           check=True).stdout
    head = struct.pack("<IIIIIQQQQQIIIQI", 0x184D2A5B, 80, 0x31425047, thread, count, sequence,
                       5000, 5010, position, position + 64, len(payload), len(frame),
                       stream_reader.crc32c(frame), 0, 0)
    return head + struct.pack("<I", stream_reader.crc32c(head)) + frame


def test_a_small_file_makes_no_large_output(run_collector, tmp_path):
    """Four names of 8 KiB of control characters in each of tens of thousands of calls, in a few
    bytes of file: more than a gigabyte, if it were written."""
    good = (conftest.ROOT / "test" / "corpus" / "good.gpuprof").read_bytes()
    data = good[:stream_reader.read_header(good).bytes]
    description = b"f|runtime|launch|" + b",".join(b"kernel:k%d" % i for i in range(4))
    data += block(0, stream_reader.API, 0, 1, [], description, 0, 0)
    data += block(1, stream_reader.NAME, 0, 1, [7], b"\1" * 8192, 1, 0)
    for i in range(5):
        data += block(1, stream_reader.CALL, 0, 8192, [7] * 4, b"", 2 + i, 64 + 64 * i)
    bomb = tmp_path / "bomb.gpuprof"
    bomb.write_bytes(data)
    assert len(data) < 3000

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    done = run_collector("merge", bomb, "-o", "trace.json", preexec_fn=limit)
    assert done.returncode == 1 and done.stderr.count("a limit is exceeded") == 1, done.stderr
    assert not (tmp_path / "trace.json").exists()
    assert not list(tmp_path.glob("*.tmp*"))
    report = run_collector("report", bomb, preexec_fn=limit)
    assert report.returncode == 0 and len(report.stdout) < 1 << 20
