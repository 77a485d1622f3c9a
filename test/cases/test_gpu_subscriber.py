# SPDX-License-Identifier: Apache-2.0
"""A guest in the process: its parts and the program's own of the same name do not meet."""

import subprocess

import pytest
import stream_reader
import toolchain


def run_both(program, library, tmp_path, *arguments, **settings):
    """The program, plain and recorded, with the same output; the recording."""
    folder, _ = toolchain.tiny()
    settings = {"LD_LIBRARY_PATH": folder, **settings}
    plain = toolchain.run([program, *arguments],
                          toolchain.environment(tmp_path / "out", **settings), status=3)
    done = toolchain.run([program, *arguments],
                         toolchain.environment(tmp_path / "out", library, **settings), status=3)
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses
    subprocess.run(["zstd", "-tq", process.path], check=True)
    return process, done


@pytest.mark.parametrize("linked", [False, True], ids=["plugin", "program"])
def test_own_zstd(library, tmp_path, linked):
    """A libzstd of the plugin's, or of the program's own: each keeps to its own."""
    _, link = toolchain.tiny()
    own = tmp_path / "own"
    own.mkdir()
    zstd = own / "libzstd.so.1"
    zstd.symlink_to(toolchain.build("zstd_user.c", "-DLIBRARY", "-shared", "-fPIC",
                                    "-Wl,-soname,libzstd.so.1"))
    with_zstd = ("-Wl,--no-as-needed", str(zstd), f"-Wl,-rpath,{own}")
    plugin = toolchain.build("zstd_user.c", "-DPLUGIN", "-shared", "-fPIC", *with_zstd)
    program = toolchain.build("zstd_user.c", *link, *(with_zstd if linked else ()))
    process, done = run_both(program, library, tmp_path, plugin)
    assert done.stdout == "the plugin says 42\n"
    assert [c.args["bytes"] for c in process.calls()] == list(range(1, 2001))
    assert any(b.stored_bytes < b.payload_bytes / 2 for b in process.blocks)


def test_writer_does_not_allocate(library, tmp_path):
    """Not once: the program's allocator may count, log, or be in the middle of something."""
    _, link = toolchain.tiny()
    process, done = run_both(toolchain.build("own_malloc.c", *link), library, tmp_path)
    assert done.stdout == "asked 0 times\n"
    assert len(process.calls()) == 10000
    assert any(b.stored_bytes < b.payload_bytes / 2 for b in process.blocks)


@pytest.mark.parametrize("joins", [(), ("-DJOINS",)])
def test_constructor_calls_while_another_thread_starts(library, tmp_path, joins):
    """The constructor has the loader, so who starts the recording must not wait for that."""
    folder, link = toolchain.tiny()
    plugin = toolchain.build("constructor_plugin.c", "-shared", "-fPIC", *joins, *link)
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=folder)
    done = toolchain.run([toolchain.build("plugin_host.c"), plugin], env, status=3, timeout=60)
    assert done.stdout == "run\n"
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert sorted(c.args["bytes"] for c in process.calls()) == [1, 2, 2, 2, 2, 3]
    assert not process.losses
    assert not process.meta["stacks"].startswith("absent")


@pytest.mark.parametrize("unwinder", ["libunwind", "own"])
def test_descriptors_are_the_programs(library, tmp_path, unwinder):
    """No low number is taken, and what the program gives such a number to is left alone."""
    if unwinder == "libunwind":
        toolchain.need_unwinder()
    _, link = toolchain.tiny()
    process, done = run_both(toolchain.build("descriptors.c", *link), library, tmp_path,
                             tmp_path / "file", GPUPROF_BACKTRACE_THRESHOLD="0",
                             GPUPROF_UNWINDER=unwinder)
    assert done.stdout.startswith("next: 3\nat 4 of 23: what the program wrote\n3: open")
    assert process.meta["stacks"].startswith("libunwind") == (unwinder == "libunwind")
    assert all(c.stack for c in process.of_type(stream_reader.CALL))


def test_plugins_in_each_others_place(library, tmp_path):
    """A plugin and its runtime go, others come at once in the same addresses."""
    plugins = []
    for variant in "12":
        folder = tmp_path / variant
        folder.mkdir()
        runtime = folder / "libcudart.so.12"
        runtime.symlink_to(toolchain.build("reload.c", f"-DRUNTIME={variant}", "-shared", "-fPIC",
                                           "-fno-toplevel-reorder", "-Wl,-soname,libcudart.so.12"))
        plugins.append(toolchain.build("reload.c", "-DPLUGIN", "-shared", "-fPIC", str(runtime),
                                       "-Wl,--disable-new-dtags", f"-Wl,-rpath,{folder}"))
    process, done = run_both(toolchain.build("reload.c"), library, tmp_path, *plugins, "40")
    assert done.stdout.startswith("dlclose of nothing: error")
    assert [(c.args["bytes"], c.result) for c in process.calls()] == [
        (i + 1, 701 + i % 2) for i in range(40)]
