# SPDX-License-Identifier: Apache-2.0
"""Archives beyond 4 GiB and beyond 65,535 members, as other programs read them."""

import subprocess
import zipfile

import pytest

from conftest import BUILD, built

GIB = 1 << 30


@pytest.fixture
def archive(tmp_path):
    def make(which):
        path = tmp_path / "a.zip"
        subprocess.run([built(BUILD / "make_zip"), which, path], check=True, timeout=300)
        return path
    yield make
    (tmp_path / "a.zip").unlink(missing_ok=True)


def extract(path, name):
    return subprocess.run(["unzip", "-p", path, name], check=True, timeout=300,
                          stdout=subprocess.PIPE).stdout


def listed(path):
    """The last line of unzip's list: bytes and number of members."""
    lines = subprocess.run(["unzip", "-l", path], check=True, timeout=300, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    size, count, _ = lines[-1].split()
    return int(size), int(count)


@pytest.mark.long
def test_large_member(archive):
    path = archive("large")
    assert path.stat().st_size < 64 << 20
    with zipfile.ZipFile(path) as made:
        assert made.namelist() == ["small.txt", "zeros", "behind.txt"]
        assert made.getinfo("zeros").file_size == 4 * GIB + (1 << 20)
        assert made.testzip() is None
        assert made.read("behind.txt") == b"behind"
    assert listed(path) == (4 * GIB + (1 << 20) + len("small" + "behind"), 3)
    assert extract(path, "behind.txt") == b"behind"
    # Local heads alone, as programs read an archive that comes through a pipe.
    with open(path, "rb") as file:
        head = file.read(4096)
    at = head.index(b"zeros")
    assert head[at - 12:at - 4] == b"\xff" * 8 and head[at + 5:at + 9] == b"\1\0\x10\0"
    assert int.from_bytes(head[at + 9:at + 17], "little") == 4 * GIB + (1 << 20)


def test_many_members_far_behind(archive):
    path = archive("far")
    assert path.stat().st_size > 4 * GIB and path.stat().st_blocks * 512 < 64 << 20
    with zipfile.ZipFile(path) as made:
        names = made.namelist()
        assert names == [f"{i}.txt" for i in range(65600)]
        assert min(info.header_offset for info in made.infolist()) == 4 * GIB
        for number in (0, 1, 65534, 65535, 65536, 65599):
            assert made.read(f"{number}.txt") == f"member {number}".encode()
    assert listed(path)[1] == 65600
    assert extract(path, "65599.txt") == b"member 65599"
