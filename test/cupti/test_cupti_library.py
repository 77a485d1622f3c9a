# SPDX-License-Identifier: Apache-2.0
"""Finding libcupti: the order of the search, and what is refused. With stand-ins (tiny_cupti.c)."""

import shutil
import subprocess

import pytest

from cupti_versions import HERE, TESTS, probe

SONAMES = {11: "libcupti.so.11.8", 12: "libcupti.so.12", 13: "libcupti.so.13"}


def put(folder, *majors):
    """Copies of the stand-ins of those majors into the folder; the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    for major in majors:
        shutil.copy(TESTS / SONAMES[major], folder)
    return folder / SONAMES[majors[0]]


def build(path, source, *flags):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-shared", "-fPIC", *flags, "-x", "c", str(source), "-o", str(path)],
                   check=True)
    return path


def runtime(folder, name="libcudart.so.12"):
    """A library with a libcudart's soname."""
    return build(folder / name, "/dev/null", f"-Wl,-soname,{name}")


def test_the_setting_wins(tmp_path):
    wanted = put(tmp_path / "wanted", 11)
    mapped = put(tmp_path / "mapped", 12)
    seen = probe(f"open={mapped}", f"home={put(tmp_path / 'home' / 'lib64', 13).parents[1]}",
                 f"setting={wanted}")
    assert seen.one("path") == str(wanted)
    assert seen.one("version") == "18"


def test_nothing_stands_in_for_a_wrong_setting(tmp_path):
    seen = probe(f"open={put(tmp_path, 12)}", f"setting={tmp_path / 'none.so'}")
    assert seen.status == 3
    assert seen.one("reason").startswith(f"no usable libcupti: {tmp_path / 'none.so'}: ")
    assert seen.one("reason").endswith("; GPUPROF_CUPTI names this one")


def test_an_empty_setting_is_none(tmp_path):
    mapped = put(tmp_path, 12)
    assert probe(f"open={mapped}", "setting=").one("path") == str(mapped)


def test_a_mapped_copy_comes_before_one_beside_libcudart(tmp_path):
    mapped = put(tmp_path / "torch", 12)
    cudart = runtime(tmp_path / "cuda")
    put(tmp_path / "cuda", 12)
    assert probe(f"open={cudart}", f"open={mapped}").one("path") == str(mapped)


def test_a_renamed_copy_is_known_when_it_is_mapped(tmp_path):
    """As some wheels carry it: with a hash in file name and soname."""
    name = "libcupti-0123abcd.so.12"
    mapped = build(tmp_path / name, HERE / "tiny_cupti.c", "-DTINY_VERSION=22",
                   f"-Wl,-soname,{name}")
    assert probe(f"open={mapped}").one("path") == str(mapped)


@pytest.mark.parametrize("libcudart, folder", [
    ("lib", "lib"),
    ("site-packages/nvidia/cuda_runtime/lib", "site-packages/nvidia/cuda_cupti/lib"),
    ("site-packages/torch/lib", "site-packages/nvidia/cuda_cupti/lib"),
    ("site-packages/torch/lib", "site-packages/nvidia/cu13/lib"),
    ("cuda/lib64", "cuda/extras/CUPTI/lib64"),
    ("cuda/targets/x86_64-linux/lib", "cuda/extras/CUPTI/lib64"),
])
def test_around_libcudart(tmp_path, libcudart, folder):
    cudart = runtime(tmp_path / libcudart)
    wanted = put(tmp_path / folder, 12)
    home = put(tmp_path / "home" / "lib64", 12).parents[1]
    seen = probe(f"open={cudart}", f"home={home}")
    assert seen.status == 0 and wanted.samefile(seen.one("path"))


@pytest.mark.parametrize("name, major", [
    ("libcudart.so.11.0", 11), ("libcudart.so.12", 12), ("libcudart.so.13", 13),
    ("libcudart-0123abcd.so.12", 12),
])
def test_the_major_of_libcudart_comes_first(tmp_path, name, major):
    put(tmp_path, 11, 12, 13)
    seen = probe(f"open={runtime(tmp_path, name)}")
    assert seen.one("path") == str(tmp_path / SONAMES[major])


@pytest.mark.parametrize("driver, major", [("11", 11), ("12", 12), ("13", 13), ("14", 13),
                                           ("0", 13)])
def test_nothing_newer_than_the_driver(tmp_path, driver, major):
    put(tmp_path / "lib64", 11, 12, 13)
    seen = probe(f"home={tmp_path}", f"driver={driver}")
    assert seen.one("path") == str(tmp_path / "lib64" / SONAMES[major])


def test_another_major_serves_too(tmp_path):
    cudart = runtime(tmp_path, "libcudart.so.13")
    put(tmp_path, 12)
    assert probe(f"open={cudart}").one("path") == str(tmp_path / SONAMES[12])


@pytest.mark.parametrize("first, second", [
    ("a/extras/CUPTI/lib64", "a/lib64"), ("a/lib64", "a/lib"), ("a/lib", "b/extras/CUPTI/lib64")])
def test_the_roots_in_their_order(tmp_path, first, second):
    wanted = put(tmp_path / first, 12)
    put(tmp_path / second, 12)
    seen = probe(f"home={tmp_path / 'a'}", f"home2={tmp_path / 'b'}")
    assert seen.one("path") == str(wanted)


def test_the_loader_is_asked_last(tmp_path):
    by_loader = put(tmp_path / "loader", 12)
    assert probe("driver=12", folders=by_loader.parent).one("path") == str(by_loader)
    home = put(tmp_path / "lib", 11)
    assert probe(f"home={tmp_path}", "driver=12", folders=by_loader.parent).one("path") == str(home)


def test_the_reason_names_what_was_looked_at(tmp_path):
    cudart = runtime(tmp_path / "cuda" / "lib64")
    home = tmp_path / "home"  # twice, as CUDA_HOME may say: named once
    seen = probe(f"open={cudart}", f"home={home}", f"home2={home}", "driver=10")
    assert seen.status == 3
    assert seen.one("reason") == (
        f"libcupti not found; set GPUPROF_CUPTI to one; searched {cudart.parent}/ (libcudart), "
        f"{home}, the loader's folders, for a version up to the driver's CUDA 10")


def test_one_that_does_not_start_is_named(tmp_path):
    """Too new for the driver."""
    put(tmp_path / "lib64", 12)
    seen = probe(f"home={tmp_path}", "driver=12", folders=tmp_path, TINY_CUPTI_RESULT="15")
    assert seen.status == 3
    assert f"{tmp_path}/lib64/libcupti.so.12 does not start (error 15:" in seen.one("reason")
    assert "set GPUPROF_CUPTI" in seen.one("reason")


def test_an_incomplete_one_is_passed_over(tmp_path):
    build(tmp_path / "a" / "lib" / SONAMES[12], HERE / "tiny_cupti.c", "-DTINY_VERSION=22",
          "-DTINY_INCOMPLETE=1")
    wanted = put(tmp_path / "b" / "lib", 12)
    homes = f"home={tmp_path / 'a'}", f"home2={tmp_path / 'b'}"
    assert probe(*homes).one("path") == str(wanted)
    wanted.unlink()
    seen = probe(f"setting={tmp_path / 'a' / 'lib' / SONAMES[12]}")
    assert "has no cuptiActivityFlushAll" in seen.one("reason")


def test_a_refused_one_is_passed_over(tmp_path):
    """What a second search is for: the first one found did not work with the driver."""
    mapped = put(tmp_path / "torch", 12)
    other = put(tmp_path / "home" / "lib", 11)
    arguments = f"open={mapped}", f"home={tmp_path / 'home'}", "driver=12"
    assert probe(*arguments).one("path") == str(mapped)
    assert probe(*arguments, f"refused={other}").one("path") == str(mapped)
    assert probe(*arguments, f"refused={mapped}").one("path") == str(other)
    other.unlink()
    seen = probe(*arguments, f"refused={mapped}")
    assert f"{mapped} does not work with this driver; set GPUPROF_CUPTI" in seen.one("reason")


def test_a_broken_file_is_passed_over(tmp_path):
    broken = put(tmp_path / "a" / "lib", 12)
    broken.write_text("not a library")
    wanted = put(tmp_path / "b" / "lib", 12)
    seen = probe(f"home={tmp_path / 'a'}", f"home2={tmp_path / 'b'}")
    assert seen.one("path") == str(wanted)


def test_one_that_does_not_walk_is_refused(tmp_path):
    """Versions whose walk answers an error for every kind."""
    text = (HERE / "tiny_cupti.c").read_text().replace("switch (kind)", "switch (0 * kind)")
    source = tmp_path / "tiny.c"
    source.write_text(text)
    library = build(tmp_path / "libcupti.so.12", source, "-DTINY_VERSION=22")
    assert "cannot read its own records" in probe(f"setting={library}").one("reason")


def test_a_long_reason_is_cut(tmp_path):
    """What the user can do stays in it."""
    homes = [tmp_path / (letter * 250) / (letter * 250) for letter in "ab"]
    for home in homes:
        put(home / "lib", 11, 12)
        for path in (home / "lib").iterdir():
            path.write_text("not a library")
    seen = probe(f"home={homes[0]}", f"home2={homes[1]}", "driver=12", folders=homes[0] / "lib")
    assert seen.status == 3 and len(seen.one("reason")) == 1023
    assert "; set GPUPROF_CUPTI to one; searched /" in seen.one("reason")
