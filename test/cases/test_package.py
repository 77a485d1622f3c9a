# SPDX-License-Identifier: Apache-2.0
"""What distributions want: their flags, a .deb, an archive that can be moved, one version."""

import fcntl
import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, need

VERSION = re.search(r"^VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
# As a shell of the user's has it: nothing of the build or of the tests.
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def make(*words):
    environment = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    return subprocess.run(["make", *words, f"BUILD={BUILD}"], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=True, timeout=200).stdout


def run(*command, **options):
    options.setdefault("env", BARE)
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100,
                          stdin=subprocess.DEVNULL, **options).stdout


@pytest.fixture(name="made")
def fixture_made(tmp_path):
    """made(TARGET, ENDING): what the target has made, as a file of the test's own."""
    def one(target, ending):
        with open(BUILD / ".package.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests beside this one make it, too
            make(target)
            path, = BUILD.glob(f"gpuprof?{VERSION}*{ending}")
            return shutil.copy(path, tmp_path)
    return one


def check_program(front, folder, live_folder):
    """It records, with nothing but what came with it."""
    done = run(front, "demo", "data", cwd=folder, env={**BARE, "GPUPROF_LIVE": str(live_folder)})
    assert "cudaLaunchKernel" in done and (folder / "data" / "trace.json").stat().st_size > 10000
    assert run(front, "--version") == f"gpuprof {VERSION}\n"


def test_deb(made, tmp_path, live_folder):
    need("dpkg-deb")
    need("dpkg-shlibdeps")
    package = made("deb", ".deb")
    run("dpkg", "-x", package, tmp_path / "root")
    check_program(tmp_path / "root/usr/bin/gpuprof", tmp_path, live_folder)
    fields = dict(re.findall(r"^(\S+): (.*)", run("dpkg-deb", "-f", package), re.MULTILINE))
    assert (fields["Package"], fields["Version"]) == ("gpuprof", VERSION)
    assert "libc6 (>= 2." in fields["Depends"] and "libdw1" in fields["Depends"]
    assert "cuda" not in fields["Depends"]
    run("dpkg-deb", "-e", package, tmp_path / "root/DEBIAN")
    run("md5sum", "--quiet", "-c", "DEBIAN/md5sums", cwd=tmp_path / "root")
    owners = {line.split()[1] for line in run("dpkg-deb", "-c", package).splitlines()}
    assert owners == {"root/root"}
    text = (tmp_path / "root/usr/share/doc/gpuprof/copyright").read_text()
    assert "Meta Platforms" in text and "Hewlett-Packard" in text and "Apache-2.0" in text


@pytest.mark.long
def test_deb_as_policy_wants_it(made):
    if not shutil.which("lintian"):
        pytest.skip("not run: lintian is not installed")
    package = made("deb", ".deb")
    assert run("lintian", "--fail-on", "warning,error", "--allow-root", package) == ""


def test_tarball(made, tmp_path, live_folder):
    for command in ("patchelf", "objdump", "strip"):
        need(command)
    run("tar", "-xzf", made("tarball", ".tar.gz"), "-C", tmp_path)
    unpacked, = tmp_path.glob(f"gpuprof-{VERSION}-*/")
    root = unpacked.rename(tmp_path / "moved")
    front = root / "bin/gpuprof"
    demo = root / "lib/gpuprof/demo"
    run(front, "run", "--quiet", "-o", "data", demo / "demo", cwd=tmp_path,
        env={**BARE, "GPUPROF_LIVE": str(live_folder), "LD_LIBRARY_PATH": str(demo)})
    assert "cudaLaunchKernel" in run(front, "report", tmp_path / "data")
    # Of what it needs, the C library and libstdc++ alone are the machine's.
    needed = re.findall(r"=> (\S+)", run("ldd", root / "lib/gpuprof/gpuprof-collector"))
    own = {path.name for path in (root / "lib/gpuprof/deps").iterdir()}
    assert {"libdw.so.1", "libelf.so.1", "libzstd.so.1", "libcjson.so.1",
            "libsqlite3.so.0"} <= own
    assert {path.rpartition("/")[2] for path in needed if str(root) not in path} <= {
        "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}
    licences = root / "share/doc/gpuprof/licences"
    assert "LIBRARY GENERAL PUBLIC LICENSE" in (licences / "libiberty-dev").read_text()
    assert len(list(licences.iterdir())) >= 7 and (root / "share/doc/gpuprof/NOTICE").exists()
    for path in ("gpuprof-collector", "libgpuprof.so", "libgpuprof-os.so", "demo/demo"):
        versions = re.findall(r"GLIBC_2\.(\d+)", run("objdump", "-T", root / "lib/gpuprof" / path))
        assert max(map(int, versions)) <= 34


def test_flags_of_the_builder(tmp_path):
    """Each compilation has CPPFLAGS, each link LDFLAGS; WERROR= is obeyed."""
    words = ["-n", "V=1", "all", "CPPFLAGS=-DOF_THE_BUILDER", "LDFLAGS=-Wl,-z,of-the-builder"]
    commands = subprocess.run(["make", *words, f"BUILD={tmp_path}", "WERROR=", "CC=gcc"], cwd=ROOT,
                              capture_output=True, text=True, check=True, timeout=60,
                              env={**os.environ, "MAKEFLAGS": ""}).stdout.replace("\\\n", " ")
    lines = [line.split() for line in commands.splitlines() if line.strip().startswith("gcc ")]
    compiled = [line for line in lines if "-c" in line]
    linked = [line for line in lines if "-c" not in line and "-E" not in line and "-r" not in line]
    assert len(compiled) > 100 and len(linked) >= 6
    assert all("-DOF_THE_BUILDER" in line for line in compiled)
    assert all("-Wl,-z,of-the-builder" in line for line in linked)
    assert not [line for line in lines if "-Werror" in line]


def test_folders_of_a_distribution(tmp_path):
    """multiarch, and a folder with a space in its name."""
    root = tmp_path / "a root"
    words = ["prefix=/usr", "libdir=/usr/lib/x86_64-linux-gnu", f"DESTDIR={root}"]
    make("install", *words)
    assert run(root / "usr/bin/gpuprof", "--version") == f"gpuprof {VERSION}\n"
    assert not (root / "usr/lib/gpuprof").exists()
    # What a program is built with, and the version that it was built for.
    flags = run("pkg-config", "--cflags", "gpuprof", env={
        **BARE, "PKG_CONFIG_LIBDIR": str(root / "usr/share/pkgconfig"),
        "PKG_CONFIG_SYSROOT_DIR": str(tmp_path), "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1"}).split()
    assert flags == [f"-I{tmp_path}/usr/include"]
    source = ("#include <gpuprof.h>\n#if GPUPROF_H_VERSION < 1\n#error old\n#endif\n"
              "int main(void) { gpuprof_step(1); return 0; }\n")
    subprocess.run(["gcc", f"-I{root}/usr/include", "-x", "c", "-", "-o", tmp_path / "program"],
                   input=source, text=True, check=True)
    run(tmp_path / "program")
    make("uninstall", *words)
    assert [path for path in root.rglob("*") if path.is_file()] == []


def test_version_in_one_place():
    assert re.search(rf"^## {re.escape(VERSION)} \(", (ROOT / "CHANGELOG.md").read_text(),
                     re.MULTILINE)
    assert f"Version: {VERSION}" not in (ROOT / "inject/range/gpuprof.pc.in").read_text()


def test_recordings_are_no_text():
    """Whatever holds zeros under test/ is left as it is by a check-out with other line endings."""
    git = ["git", "-c", "safe.directory=*"]
    listed = subprocess.run([*git, "ls-files", "--eol", "test/corpus", "test/cases/versions",
                             "test/fuzz/seeds"], cwd=ROOT, capture_output=True, text=True)
    rows = [line.split("\t")[0].split() + [line.split("\t")[1]]
            for line in listed.stdout.splitlines()]
    if not rows:
        pytest.skip("not run: no git here")
    assert not [row for row in rows if row[0] == "i/-text" and "attr/-text" not in row]
    assert not [row for row in rows if row[-1].endswith((".py", ".dump")) and "attr/-text" in row]
