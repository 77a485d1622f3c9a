# SPDX-License-Identifier: Apache-2.0
"""The front command, in the tree and installed; help and manual; make install and uninstall."""

import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import BUILD, ROOT, Program, need

FRONT = ROOT / "scripts" / "gpuprof"
TOPICS = ("tuning", "tables", "findings", "losses", "json", "events", "nsys", "limits",
          "exit-status")
in_the_tree = pytest.mark.skipif(BUILD != ROOT / "build",
                                 reason="not run: scripts/gpuprof looks into build/ only")

FIRST_VERBS = ("run", "report", "view", "merge", "export", "flame", "memory", "diff", "top", "ctl",
               "doctor", "demo")
VERBS = (*FIRST_VERBS, "stats", "dump", "recover", "manual", "completion", "help")


def run(command, *arguments, **options):
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False,
                          timeout=120, stdin=subprocess.DEVNULL, **options)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """gpuprof installed under a folder of its own, as a package would be."""
    destination = tmp_path_factory.mktemp("installed")
    environment = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    result = run("make", "install", f"DESTDIR={destination}", "prefix=/opt/gp", f"BUILD={BUILD}",
                 cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stderr
    return destination / "opt" / "gp"


def check_demo(command, folder):
    environment = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
    data = "the user's data"
    result = run(command, "demo", data, cwd=folder, env=environment)
    assert result.returncode == 0, result.stderr
    assert "cudaLaunchKernel" in result.stdout and f"{data}/trace.json" in result.stdout
    assert " flame 'the user'\\''s data' -o " in result.stdout
    more = re.search(r"\n  more +(.*? help report); ", result.stdout)[1]
    for proposed, shown in ((more, "usage: "),
                            (result.stdout.splitlines()[-1], "calls by stack")):
        done = run("sh", "-c", proposed, cwd=folder, env=environment)
        assert done.returncode == 0 and shown in done.stdout, (proposed, done.stderr)
    events = json.loads((folder / data / "trace.json").read_text())["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    assert len(calls) > 100
    assert len({call["pid"] for call in calls}) >= 2
    assert len({(call["pid"], call["tid"]) for call in calls}) >= 3
    again = run(command, "demo", data, cwd=folder, env=environment)
    assert again.returncode == 2 and again.stderr == \
        f"gpuprof: demo: {data} exists already; name another folder, or remove it\n"


@in_the_tree
def test_demo_in_the_tree(tmp_path, collector, library):
    assert collector and library
    check_demo(FRONT, tmp_path)


@in_the_tree
def test_demo_that_is_interrupted(tmp_path, collector, library):
    """It says where what it has recorded is, and how to see or remove it."""
    data, until = tmp_path / "it's", time.monotonic() + 30
    with Program([FRONT, "demo", data.name], cwd=tmp_path, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, text=True, start_new_session=True) as demo:
        while not list(data.glob("*.gpuprof")) and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(demo.pid, signal.SIGINT)
        out, said = demo.communicate()
    assert demo.returncode == 130 and out == ""
    assert "not finished: its data is in 'it'\\''s'; " in said
    remove, = re.findall(r"to remove it: (.*)\n", said)
    assert list(data.glob("*.gpuprof"))
    subprocess.run(remove, shell=True, cwd=tmp_path, check=True)
    assert not data.exists()


def test_demo_installed(tmp_path, installed):
    check_demo(installed / "bin" / "gpuprof", tmp_path)


@in_the_tree
def test_front_command_through_links(tmp_path, collector):
    assert collector
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gpuprof").symlink_to(FRONT)
    (tmp_path / "gp").symlink_to("bin/gpuprof")
    for command in (FRONT, tmp_path / "bin" / "gpuprof", tmp_path / "gp"):
        result = run(command, "--version", cwd=tmp_path)
        assert re.fullmatch(r"gpuprof \d+\.\d+\.\d+\n", result.stdout), result.stderr
    found = run("gpuprof", "--version", env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    assert found.returncode == 0


@in_the_tree
def test_next_step_as_it_was_called(tmp_path, collector, library, program):
    """What `run` proposes works as it stands there, also where no gpuprof is on the PATH."""
    assert collector and library
    (tmp_path / "gp").symlink_to(ROOT)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gpuprof").symlink_to(FRONT)
    bare = {**os.environ, "PATH": "/usr/bin:/bin"}
    found = {**os.environ, "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    for command, environment, proposed in (
            ("gp/scripts/gpuprof", bare, "gp/scripts/gpuprof"), (FRONT, bare, FRONT),
            ("gpuprof", found, "gpuprof"), (FRONT, found, "gpuprof")):
        done = run("sh", "-c", f"{command} run -o data {program('one_call')}", cwd=tmp_path,
                   env=environment)
        line = done.stderr.splitlines()[-1]
        assert line == f"gpuprof: next: {proposed} report data; {proposed} merge data -o trace.json"
        after = run("sh", "-c", line.removeprefix("gpuprof: next: "), cwd=tmp_path, env=environment)
        assert after.returncode == 0 and "\n  wall time  " in after.stdout, after.stderr
        (tmp_path / "trace.json").unlink()


@in_the_tree
def test_ones_own_program_on_the_simulated_cuda(tmp_path, collector, library, program):
    """By the command that README has for it."""
    assert collector and library
    command = re.search(r" (LD_LIBRARY_PATH=.*) \./program\n", (ROOT / "README.md").read_text())[1]
    done = run("sh", "-c", f"{command} -o {tmp_path}/data {program('one_call')}", cwd=ROOT,
               env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0 and "; 1 process, 1 thread, 2 calls\n" in done.stderr


@in_the_tree
@pytest.mark.parametrize("arguments", [["nonesuch"], ["--nonesuch"], ["run"], ["demo", "-x"],
                                       ["demo", "a", "b"], ["help", "nonesuch"],
                                       ["merge", "--nonesuch"], ["report"], ["dump"]], ids=" ".join)
def test_wrong_use_is_one_line_and_code_2(tmp_path, collector, arguments):
    assert collector
    result = run(FRONT, *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"gpuprof: [^\n]+\n", result.stderr), result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments,meant", [
    (["repotr", "x"], "report"), (["rnu", "true"], "run"),
    (["nonesuch"], None), (["-version"], "--version"), (["x"], None), (["dmeo"], "demo"),
    (["run", "--backtrase=3", "true"], "--backtrace"), (["run", "--quite", "true"], "--quiet"),
    (["run", "--backtrace-thr=1us", "true"], "--backtrace-threshold"),
    (["run", "-x", "true"], None), (["run", "--" + 5000 * "q", "true"], None),
    (["report", "--formt=csv", "x"], "--format"), (["report", "--outptu=x", "x"], "--output"),
    (["dump", "--outptu=x", "x"], None),
    (["merge", "--per-ranks", "x"], "--per-rank"), (["help", "mrege"], "merge"),
], ids=lambda value: str(value)[:40])
def test_misspelt_word(collector, tmp_path, arguments, meant):
    result = run(collector, *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    found = re.search(r"' \(did you mean ([^ ]+)\?\); try ", result.stderr)
    assert (found and found[1]) == meant, result.stderr


@in_the_tree
def test_no_verb(tmp_path, collector):
    """In twelve lines what it is and how to begin; each command is one, as it was called."""
    assert collector
    told = run(FRONT, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    assert (told.returncode, told.stderr) == (2, "")
    lines = told.stdout.splitlines()
    assert len(lines) <= 12
    commands = [line.split()[:2] for line in lines if line.startswith("  ")]
    assert [command for command, _ in commands] == [str(FRONT)] * len(commands)
    assert [verb for _, verb in commands] == ["run", "report", "view", "memory", "demo", "doctor",
                                              "help"]
    short = run(collector, cwd=tmp_path)
    assert max(map(len, short.stdout.splitlines())) <= 80


def test_recordings_one_level_down(run_collector, root, tmp_path):
    """The folder in which gpuprof was started: of one run, it is meant; of more, they are named."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    good = root / "test" / "corpus" / "good.gpuprof"
    assert "no recording found in .; make one " in run_collector("report", ".").stderr
    shutil.copy(good, tmp_path / "two")
    for verb in ("report", "dump"):
        done, direct = run_collector(verb, "."), run_collector(verb, "./two")
        assert (done.returncode, done.stdout) == (0, direct.stdout) and done.stdout
        assert done.stderr == "gpuprof: . has no recording itself; reading ./two\n"
    shutil.copy(good, tmp_path / "one")
    several = run_collector("report", ".")
    assert (several.returncode, several.stdout) == (2, "")
    assert several.stderr.startswith("gpuprof: no recording found in . itself, but in 2 of its "
                                     "folders; name one or several, such as ./")


def as_anyone():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


@pytest.fixture
def open_folder(collector, root):
    """A folder that anyone can enter, with the collector, a recording and folders of all kinds."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(collector, folder)
        for part in ("data", "locked", "empty", "closed", "file"):
            (folder / part).mkdir()
        shutil.copy(root / "test" / "corpus" / "good.gpuprof", folder / "data")
        shutil.copy(root / "test" / "corpus" / "good.gpuprof", folder / "locked")
        (folder / "locked" / "good.gpuprof").chmod(0)
        (folder / "file" / "notes.txt").write_text("no recording, but a text\n")
        (folder / "notes.txt").write_text("no recording, but a text\n")
        (folder / "closed").chmod(0)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        (folder / "closed").chmod(0o755)


READ = "; name a data folder that 'gpuprof run' wrote, or a .gpuprof file in one"
OWNER = "Permission denied; run this as a user who may read it"
WHERE = "Permission denied; name one in a folder that you may write to"
RUN = "Permission denied; name a folder that you may write to: -o DIR"


@pytest.mark.parametrize("arguments,code,text", [
    (["report", "missing"], 2, "missing: No such file or directory" + READ),
    (["report", ""], 2, "'': No such file or directory" + READ),
    (["merge", "notes.txt"], 2, "notes.txt: not a gpuprof file" + READ),
    (["dump", "empty"], 2,
     "no recording found in empty; make one with 'gpuprof run -o empty PROGRAM'"),
    (["dump", "closed"], 1, "closed: " + OWNER),
    (["report", "file"], 2,
     "no recording found in file; make one with 'gpuprof run -o file PROGRAM'"),
    (["report", "locked"], 1, "locked/good.gpuprof: " + OWNER),
    (["merge", "locked/good.gpuprof"], 1, "locked/good.gpuprof: " + OWNER),
    (["merge", "data", "-o", "trace.json"], 1, "trace.json: " + WHERE),
    (["merge", "data", "-o", "missing/a.json"], 1, "missing/a.json: No such file or directory; "
     "name one in an existing folder"),
    (["merge", "data", "-o", "data"], 1, "data: Is a directory; name a file, not a folder"),
    (["merge", "data", "-o", "/dev/full"], 1, "/dev/full: No space left on device; only "
     "complete files were kept: name one on a disk with free space"),
    (["merge", "data", "--per-rank", "-o", "missing/a"], 1, "missing: Permission denied; name one "
     "in a folder that you may write to"),  # it would be created
    (["merge", "data", "--per-rank", "-o", "traces"], 1, "traces: Permission denied; name one in "
     "a folder that you may write to"),
    (["ctl", "status", "data"], 2, "ctl: name a data folder and one of start, stop, status, dump "
     "and 'schedule STEPS'; try 'gpuprof help ctl'"),
    (["run", "-o", "out", "true"], 2, "run: out: " + RUN),
    (["run", "-o", "notes.txt", "true"], 2, "run: notes.txt: " + RUN.replace("Permission denied",
                                                                          "Not a directory")),
    (["run", "nonesuch"], 2, "run: nonesuch: not found in PATH; give the program's path"),
    (["run", "./nonesuch"], 2, "run: ./nonesuch: No such file or directory"),
    (["run", "./data"], 2, "run: ./data: Permission denied; name a file that you may execute"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_cannot_be_read_or_written(open_folder, arguments, code, text):
    """One line: what, where, what to do."""
    result = run(open_folder / "gpuprof-collector", *arguments, cwd=open_folder,
                 preexec_fn=as_anyone)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", f"gpuprof: {text}\n")


@pytest.mark.parametrize("verb,name", [
    ("merge", "a.json"), ("merge", "a.json.gz"), ("merge", "a.pftrace"), ("export", "a.csv"),
    ("export", "a.sqlite"), ("report", "a.html")])
def test_no_room(collector, root, tmp_path, verb, name):
    """The limit is a signal, too."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    result = run(collector, verb, root / "test" / "corpus" / "good.gpuprof", "-o", name,
                 cwd=tmp_path, preexec_fn=limit)
    assert result.returncode == 1 and result.stderr.splitlines()[-1] == (
        f"gpuprof: {name}: File too large; only complete files were kept: raise ulimit -f")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["report", "merge", "export"])
def test_nowhere_to_lay_aside(run_collector, make_gpu, tmp_path, verb):
    """It is not the recording's folder that is at fault."""
    made = tmp_path / {"report": "a.txt", "merge": "a.json", "export": "a.sqlite"}[verb]
    data = make_gpu("alone", 140000)
    result = run_collector(verb, data, "-o", made, env={**os.environ, "TMPDIR": "missing"})
    assert (result.returncode, result.stdout, result.stderr) == (
        1, "",
        "gpuprof: cannot write a temporary file in missing: No such file or directory; set TMPDIR "
        "to another folder\n")
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize("verb,name,launches", [
    ("report", "a.txt", 140000), ("merge", "a.zip", 5000), ("report --partial", "a.part", 140000)])
def test_no_room_to_lay_aside(run_collector, make_gpu, tmp_path, verb, name, launches):
    data, aside = make_gpu("alone", launches), tmp_path / "aside"
    aside.mkdir()
    result = run_collector(*verb.split(), data, "-o", name,
                           env={**os.environ, "TMPDIR": str(aside)}, preexec_fn=lambda:
                           resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
    assert (result.returncode, result.stdout, result.stderr.splitlines()[-1]) == (
        1, "",
        f"gpuprof: cannot write a temporary file in {aside}: File too large; raise ulimit -f")
    assert sorted(tmp_path.iterdir()) == [aside, data] and not list(aside.iterdir())


@pytest.mark.parametrize("words", [["report"], ["report", "-j2", "--format=csv"], ["merge"],
                                   ["export", "-o", "-", "--format=csv"]], ids=" ".join)
def test_what_may_not_be_read_is_a_loss(open_folder, make_gpu, words):
    """The others are read, in a folder or by their names, as beside one that is empty."""
    data = open_folder / "data"
    shutil.copytree(make_gpu("train", 3, 2), data, dirs_exist_ok=True)
    (data / "good.gpuprof").unlink()
    (data / "rank1.gpuprof").chmod(0)
    names = sorted(os.listdir(data))

    def done(*paths):
        return run(open_folder / "gpuprof-collector", *words, *paths, cwd=data,
                   preexec_fn=as_anyone)
    closed, named = done("."), done(*names)
    (data / "rank1.gpuprof").unlink()
    (data / "rank1.gpuprof").touch()
    empty = done(".")
    for result in closed, named:
        said = result.stdout.replace(" ".join(names), ".")  # in what to run next
        assert (result.returncode, said) == (3, empty.stdout)
        assert result.stderr.count(f"rank1.gpuprof: {OWNER}\n") == 1
    lost = "\n  lost       1 file that cannot be read\n"
    assert (lost in named.stdout) == (words == ["report"])
    assert "rank1.gpuprof: the file is empty" in empty.stderr and len(empty.stdout) > 1000


@in_the_tree
def test_demo_where_nothing_can_be_made(tmp_path, collector):
    assert collector
    (tmp_path / "file").touch()
    result = run(FRONT, "demo", "file/data", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (
        2, "", "gpuprof: demo: cannot create file/data; name a folder that you may write to\n")


@pytest.mark.parametrize("verb", ["merge", "report", "dump", "manual"])
def test_no_room_for_standard_output(collector, root, tmp_path, verb):
    recording = [] if verb == "manual" else [root / "test" / "corpus" / "good.gpuprof"]
    with open(tmp_path / "full", "wb") as full:
        result = subprocess.run([collector, verb, *recording], stdout=full, stderr=subprocess.PIPE,
                                check=False, timeout=20, preexec_fn=lambda:
                                resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    assert (result.returncode, result.stderr) == (
        1, b"gpuprof: standard output: File too large\n")


@pytest.mark.parametrize("verb", ["merge", "report", "dump"])
def test_pipe_closed_early(collector, root, verb):
    """As any filter: ended by the signal; where that is ignored, one line and an exit code."""
    command = [collector, verb, root / "test" / "corpus" / "good.gpuprof"]
    for ignored, code, text in ((False, -signal.SIGPIPE, b""),
                                (True, 1, b"gpuprof: standard output: Broken pipe\n")):
        reading, writing = os.pipe()
        os.close(reading)
        result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False,
                                timeout=20, restore_signals=not ignored)
        os.close(writing)
        assert (result.returncode, result.stderr) == (code, text)


def test_trace_does_not_go_to_a_terminal(collector, root):
    terminal, slave = pty.openpty()
    path = root / "test" / "corpus" / "good.gpuprof"
    for words, code in (([], 2), (["-o", "-"], 0)):
        result = subprocess.run([collector, "merge", path, *words], stdout=slave,
                                stderr=subprocess.PIPE, check=False, timeout=20)
        assert result.returncode == code
    os.close(slave)
    os.close(terminal)


def test_parts_missing(tmp_path):
    (tmp_path / "scripts").mkdir()
    copy = shutil.copy(FRONT, tmp_path / "scripts")
    result = run(copy, "run", "true")
    assert result.returncode == 2
    assert re.fullmatch(r"gpuprof: gpuprof-collector: not in [^\n]+; run make\n", result.stderr)


def test_status_passes_through(tmp_path, installed):
    command = installed / "bin" / "gpuprof"
    assert run(command, "run", "--quiet", "sh", "-c", "exit 7", cwd=tmp_path).returncode == 7
    assert run(command, "run", "--quiet", "sh", "-c", "kill -9 $$", cwd=tmp_path).returncode == -9


def test_install_and_uninstall(build, installed, program):
    # Where libunwind was found at build time, our copy of it goes along, with its stand-in.
    parts = [f"lib/gpuprof/libgpuprof-{name}.so" for name in ("lzma", "os", "unwind")
             if name == "os" or (build / f"libgpuprof-{name}.so").exists()]
    files = sorted(str(path.relative_to(installed)) for path in installed.rglob("*")
                   if path.is_file())
    assert files == ["bin/gpuprof", "include/gpuprof.h", "include/gpuprof.py",
                     "lib/gpuprof/demo/demo",
                     "lib/gpuprof/demo/libcuda.so.1", "lib/gpuprof/demo/libcudart.so.13",
                     "lib/gpuprof/demo/libcupti.so.13",
                     "lib/gpuprof/gpuprof-collector", *parts, "lib/gpuprof/libgpuprof.so",
                     "share/bash-completion/completions/gpuprof",
                     *(f"share/doc/gpuprof/{name}"
                       for name in ("CHANGELOG.md", "GUIDE.md", "LICENSE", "NOTICE", "README.md",
                                    "SECURITY.md", "answers.md", "event-stream.md")),
                     "share/fish/vendor_completions.d/gpuprof.fish", *sorted(
                         ["share/man/man1/gpuprof.1",
                          *(f"share/man/man1/gpuprof-{verb}.1" for verb in VERBS)]),
                     "share/man/man3/gpuprof.h.3",
                     *sorted(f"share/man/man7/gpuprof-{topic}.7" for topic in TOPICS),
                     "share/pkgconfig/gpuprof.pc",
                     "share/zsh/site-functions/_gpuprof"]
    assert program("one_call")
    destination = installed.parent.parent
    copy = destination.with_name("to-uninstall")
    shutil.copytree(destination, copy)
    run("make", "uninstall", f"DESTDIR={copy}", "prefix=/opt/gp", cwd=ROOT)
    assert [path for path in copy.rglob("*") if path.is_file()] == []


def test_installed_with_folders_of_its_own(tmp_path, build):
    """The parts are found wherever libdir has put them, and nothing else of it is removed."""
    environment = {name: text for name, text in os.environ.items() if "MAKE" not in name}
    words = (f"DESTDIR={tmp_path}/root", "prefix=/opt/gp", "libdir=/usr/lib64", "bindir=/usr/bin",
             f"BUILD={build}")
    result = run("make", "install", *words, cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stderr
    shutil.move(tmp_path / "root", tmp_path / "moved")
    front = tmp_path / "moved" / "usr" / "bin" / "gpuprof"
    result = run(front, "run", "--quiet", "sh", "-c", "exit 7", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (7, "")
    assert run(front, "--version").stdout.startswith("gpuprof ")
    shutil.move(tmp_path / "moved", tmp_path / "root")
    other = tmp_path / "root" / "usr" / "lib64" / "other"
    other.write_text("")
    assert run("make", "uninstall", *words, cwd=ROOT, env=environment).returncode == 0
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == [other]


@pytest.mark.parametrize("words,name", [
    ([], "gpuprof - record the CUDA calls of a program"),
    (["gpuprof.h"], "gpuprof.h - control the profiler gpuprof from a program"),
    *(([word], f"gpuprof-{word} - ") for word in (*VERBS, *TOPICS))],
    ids=lambda value: None if isinstance(value, str) else " ".join(value) or "gpuprof")
def test_manual_page_has_no_faults(run_collector, tmp_path, words, name):
    need("groff")
    page = run_collector("manual", *words).stdout
    (tmp_path / "page").write_text(page)
    result = run("groff", "-man", "-ww", "-Tutf8", str(tmp_path / "page"))
    assert result.returncode == 0 and result.stderr == ""
    assert name in " ".join(re.sub(r"\x1b\[\d*m", "", result.stdout).split()) + " "


PARTS = ["EXAMPLES", "ENVIRONMENT", "FILES", "EXIT STATUS"]


def test_manual_of_each_verb(run_collector, collector, make_gpu, tmp_path):
    """Examples, variables, files and statuses; what an example types works as it stands there."""
    make_gpu("train", 2)
    (tmp_path / "gpuprof").symlink_to(collector)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    page = run_collector("manual").stdout.replace("\\-", "-")
    sections = re.split(r'^\.SS "gpuprof (\w+) .*"\n', page.partition(".SH SETTINGS")[0],
                        flags=re.MULTILINE)
    assert set(sections[1::2]) == set(VERBS)
    for verb, text in zip(sections[1::2], sections[2::2]):
        cut = re.split(r"^\.PP\n\.B ([A-Z ]+)\n", text, flags=re.MULTILINE)
        assert cut[1::2] == PARTS, verb
        rows = [re.findall(r"^\.TP\n\.B (.*)\n", part, re.MULTILINE) for part in cut[2::2]]
        assert all(rows), verb
        taken = run_collector("help", verb, "--help-all").stdout
        assert len(rows[0]) >= 2, verb
        for example in rows[0]:
            assert f"gpuprof {verb}" in example, example
            ours = example.split(" -- ")[0].split(" | ")[0]
            for option in re.findall(r" (-o|--[\w-]+)", ours):
                assert option in taken, example
            if verb in ("merge", "report", "stats", "export", "flame", "dump", "recover", "manual",
                        "help"):
                done = run("bash", "-c", ours, cwd=tmp_path, env=env)
                assert done.returncode == 0, (example, done.stderr)
        if verb != "run":
            assert set(rows[3]) <= {"0", "1", "2", "3", "4"}


def test_settings_are_told_whole(run_collector):
    text = " ".join(run_collector("run", "--help-all").stdout.split())
    assert text.count("(GPUPROF_") == len(re.findall(r"\(GPUPROF_\w+(; default: [^()]*)?\)", text))


def test_manual_page_of_a_verb(run_collector):
    """It has the verb's options and parts, as the whole manual has them, and run's settings."""
    whole = run_collector("manual").stdout
    for verb in VERBS:
        page = run_collector("manual", verb).stdout
        titles = re.findall(r'^\.SH "?([A-Z ]+)"?$', page, re.MULTILINE)
        more = {"run": ["SETTINGS"], "report": ["TABLES"], "memory": ["TABLES"]}.get(verb, [])
        assert titles == ["NAME", "SYNOPSIS", "OPTIONS", *more, *PARTS, "SEE ALSO"]
        section = re.search(rf'^\.SS "gpuprof {verb} .*?(?=^\.S[SH])', whole, re.M | re.S)[0]
        for item in re.findall(r"^\.TP\n.*\n.*\n", section, re.MULTILINE):
            assert item in page, (verb, item)


def test_manual_of_the_header(run_collector):
    """Each function that it declares, as it declares it; no other."""
    page = run_collector("manual", "gpuprof.h").stdout
    header = (ROOT / "inject" / "range" / "gpuprof.h").read_text()
    declared = re.findall(r"\(unused\)\) (\w+ gpuprof_\w+\([^()\n]*\))$", header,
                          re.MULTILINE)
    assert len(declared) == 7
    assert sorted(re.findall(r"^\.TP\n\.B (\w+ gpuprof_.*);$", page, re.MULTILINE)) == \
        sorted(declared)
    assert "GPUPROF_H_VERSION" in page and "#define GPUPROF_H_VERSION " in header
    assert [part for part in PARTS if f'.SH "{part}"' in page or f".SH {part}" in page] == PARTS
    wrong = run_collector("manual", "gpuprof.h", "x")
    assert wrong.returncode == 2 and "unknown argument 'x'" in wrong.stderr


def test_help(run_collector):
    """The verbs, the usual ones first; each begins with two examples and lists few options."""
    text = run_collector("help").stdout
    first, more = (re.findall(r"^  (\w+) ", part, re.MULTILINE)
                   for part in re.split("\\n(?:verbs|more|topics):\\n", text)[1:3])
    assert (tuple(first), tuple(first + more)) == (FIRST_VERBS, VERBS)
    for verb in VERBS:
        one = run_collector("help", verb)
        assert one.returncode == 0 and one.stdout.startswith(f"usage: gpuprof {verb}")
        assert all(len(line) <= 92 for line in one.stdout.splitlines())
        examples = one.stdout.split("\n\n")[2].splitlines()
        assert len(examples) == 4
        assert all(f"gpuprof {verb}" in line and line[:2] == "  " for line in examples[::2])
        whole = run_collector("help", verb, "--help-all").stdout
        options, every = (re.findall(r"^  (-.*?)(?:  |$)", text, re.MULTILINE)
                          for text in (one.stdout, whole))
        left_out = re.search(r"--help-all' lists (\d+) more options", one.stdout)
        assert set(options) <= set(every) and len(options) <= 25
        assert len(every) == len(options) + int(left_out[1] if left_out else 0)
        assert not left_out or run_collector(verb, "--help-all").stdout == whole


def test_tuning(run_collector, library):
    """How gpuprof itself works: NAME=VALUE, checked as the options are, which still work."""
    assert library
    listed, tuning = (run_collector("help", name).stdout for name in ("run", "tuning"))
    for name in ("chunk", "seal", "wait", "exit-wait", "level", "gpu-flush", "unwinder", "front"):
        assert f"\n  {name}=" in tuning and f"  --{name} " not in listed
    shown = 'echo "$GPUPROF_SEAL $GPUPROF_LEVEL"'
    for words in (["--tune", "seal=200ms", "--tune=level=3"], ["--seal", "200ms", "--level=3"]):
        done = run_collector("run", "--quiet", *words, "sh", "-c", shown)
        assert (done.stdout, done.stderr) == ("200ms 3\n", "")
    no_setting = "is not NAME=VALUE of a tuning setting; 'gpuprof help tuning' lists them"
    for value, text in (("level=99", "--level: '99' is out of range (1 to 9)"),
                        ("seal", f"--tune: 'seal' {no_setting}"),
                        ("sample=9", f"--tune: 'sample=9' {no_setting}")):
        done = run_collector("run", "--tune", value, "true")
        assert (done.returncode, done.stderr) == (2, f"gpuprof: run: {text}\n")


def test_help_of_a_topic(run_collector):
    """Help and the page have the same rows; lines fit."""
    listed = run_collector("help").stdout.partition("\ntopics:\n")[2]
    assert tuple(re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE)) == TOPICS
    for topic in TOPICS:
        told = run_collector("help", topic).stdout
        assert all(len(line) <= 92 for line in told.splitlines())
        page = run_collector("manual", topic).stdout.replace("\\-", "-")
        rows = re.findall(r"^\.TP\n\.B (.*)\n(.*)$", page, re.MULTILINE)
        assert len(rows) > 5 and all(text for _, text in rows)
        words = " ".join(told.split())
        for name, text in rows:
            assert f"{name} {' '.join(text.split())}" in words, name


def test_help_has_all_keys_of_json(run_collector, make_gpu, make_ops):
    """What is no table in the JSON is a row of `help json`."""
    told = run_collector("help", "json").stdout
    keys = set(re.findall(r"^  (\w[\w.]*)", told, re.MULTILINE))
    words = set(re.findall(r"\w+", told))
    tables = set(re.findall(r"^  (\w+)", run_collector("help", "tables").stdout, re.MULTILINE))
    for make in lambda: make_gpu("train", 2), lambda: make_ops(2, 50, 3):
        folder = make()
        made = json.loads(run_collector("report", "--keep-live", "--format=json", folder).stdout)
        assert {f"overview.{key}" for key in made["overview"]} == \
            {key for key in keys if key.startswith("overview.")}
        for key, value in made.items():
            assert key in words or (key in tables or "_" in key) and isinstance(value, list), key
        shutil.rmtree(folder)


def test_help_of_limits(run_collector):
    """Values are the constants' of the code, which other tests reach."""
    told = run_collector("help", "limits").stdout
    for name, text in (("processes of -j", "256."), ("runs on a side of diff", "50."),
                       ("a part of a report", "1.0 GiB."),
                       ("rows of a table of sums", "4,096, and one for each 16 bytes of the files, "
                        "at most 65,536.")):
        assert re.search(re.escape(f"  {name}") + r".*?\s+" + re.escape(text), told), name


@pytest.mark.parametrize("verb", ["run", "merge", "report", "flame", "view", "dump", "doctor",
                                  "manual", "help"])
@pytest.mark.parametrize("words", [["-h"], ["--help"], ["-h", "not-there", "--nonesuch"]],
                         ids=" ".join)
def test_help_of_a_verb(run_collector, verb, words):
    asked = run_collector("help", verb)
    result = run_collector(verb, *words)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == asked.stdout and "  -h, --help " in result.stdout


def test_help_is_not_taken_from_elsewhere(run_collector):
    """Behind `--`, as an option's value and behind the program's name, -h is no option of ours."""
    assert "-h: No such file" in run_collector("merge", "--", "-h").stderr
    assert "x: No such file" in run_collector("merge", "-o", "-h", "x").stderr
    assert run_collector("run", "--quiet", "sh", "-c", "echo $1", "sh", "-h").stdout == "-h\n"


def test_help_manual_and_parser_agree(run_collector):
    """Every option that help and the manual list is taken."""
    page = run_collector("manual").stdout.replace("\\", "")
    taken = {"NAME[,NAME..]": "functions", "COLUMN": "share", "N": "3",  # looked at before DIR is
             "FORMAT": "chrome", "DIR": ".", "TIME": "1s", "A:B": "1:2", "N[,M-K]": "1,3-5",
             "SIZE": "9M", "KIND[,KIND..]": "launch,kernel", "I/N": "0/2"}
    for verb in ("merge", "report", "flame", "dump"):
        text = run_collector("help", verb, "--help-all").stdout
        rows = re.findall(r"^  (-.*?)(?:  +\S.*|)$", text, re.MULTILINE)
        assert len(rows) > 2
        for row in rows:
            assert f".B {row}\n" in page
            words, value = re.fullmatch(r"((?:-\w, )?--[\w-]+)(?: (\S+))?", row).groups()
            for word in words.split(", "):
                given = [word] + ([taken.get(value, value.split("|")[-1])] if value else [])
                given += ["-o", "folder"] if word == "--per-rank" else []
                if word == "--cycle" and verb == "merge":
                    given += ["--per-rank", "-o", "folder"]
                given = ["not-there", *given] if word == "--against" else given
                given += ["not-there", "--against"] if word == "--shares" else []
                given += ["-o", "part"] if word == "--partial" else []
                given += ["--partial", "-o", "part"] if word == "--share" else []
                result = run_collector(verb, *given, "not-there")
                wanted = 0 if "--help" in words else 2  # --help-all, too
                assert result.returncode == wanted, result.stderr
                assert wanted == 0 or "not-there: No such file" in result.stderr


@pytest.mark.parametrize("arguments", [["help"], ["manual"], ["--version"], ["report", "data"],
                                       ["dump", "data"], ["merge", "data"]], ids=" ".join)
def test_closed_standard_output(collector, root, tmp_path, arguments):
    """No file that is opened takes the number of standard output and what is meant for it."""
    stream = tmp_path / "data" / "good.gpuprof"
    stream.parent.mkdir()
    shutil.copy(root / "test" / "corpus" / "good.gpuprof", stream)
    before = stream.read_bytes()
    result = run("sh", "-c", 'exec "$@" <&- >&-', "sh", collector, *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr == "gpuprof: standard output: Bad file descriptor\n"
    assert stream.read_bytes() == before


def test_full_output_device_is_an_error(collector):
    with open("/dev/full", "wb") as full:
        result = subprocess.run([collector, "help"], stdout=full, stderr=subprocess.PIPE,
                                check=False, timeout=20)
    assert result.returncode == 1 and result.stderr.startswith(b"gpuprof: ")


@pytest.mark.parametrize("verb", ["report", "export", "merge", "flame", "memory", "top"])
def test_two_files_where_one_is_written(run_collector, tmp_path, verb):
    """Neither is written: which of them was meant is not known."""
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    result = run_collector(verb, "-o", files[0], f"--output={files[1]}", tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr == (f"gpuprof: {verb}: -o was given twice ({files[0]}, {files[1]}); "
                             f"{verb} writes one file at a time\n")
    assert not list(tmp_path.iterdir())


def test_a_recording_for_a_verb(run_collector, make_gpu):
    """A folder, or a file of one process: `report` was left out."""
    folder = make_gpu("train", 1)
    for word in (folder, *folder.iterdir()):
        result = run_collector(word)
        assert (result.returncode, result.stdout, result.stderr) == (
            2, "",
            f"gpuprof: '{word}' is a file or folder, not a verb; try: gpuprof report {word}\n")
