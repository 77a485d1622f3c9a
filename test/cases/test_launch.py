# SPDX-License-Identifier: Apache-2.0
"""gpuprof run: the program must not notice the launcher, and the launcher must not lose it."""

import json
import os
import re
import resource
import select
import shutil
import shlex
import signal
import subprocess
import time

import pytest

import toolchain
from conftest import children
from launched import LISTENER, PYTHON, Running, has_ended, state_of, wait_until


@pytest.fixture
def launch(collector, library, tmp_path):
    assert library
    started = []

    def start(*arguments, **options):
        options.setdefault("cwd", tmp_path)
        running = Running([collector, "run", *arguments], **options)
        started.append(running.process)
        return running
    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def one_line(text):
    return re.fullmatch(r"gpuprof: [^\n]+\n", text) is not None


# ---- how it ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 3, 126, 127, 255])
def test_exit_code(run_collector, code):
    assert run_collector("run", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT,
                                    signal.SIGINT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGXFSZ,
                                    signal.SIGRTMAX])
def test_dies_by_the_same_signal(run_collector, number, tmp_path):
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def allow_core():
        if resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_CORE, unlimited)
    result = run_collector("run", "sh", "-c", f"kill -{int(number)} $$", preexec_fn=allow_core)
    assert result.returncode == -number
    assert len(list(tmp_path.glob("core*"))) <= 1


# ---- what the program sees -----------------------------------------------------------------

PORTRAIT = r"""
import os, resource, sys
for line in open("/proc/self/status"):
    if line.startswith(("Sig", "Shd", "Umask", "Groups", "NoNewPrivs", "Seccomp:")):
        if not line.startswith("SigQ"):
            print(line.strip())
print("group", os.getpgid(0) == GROUP, "session", os.getsid(0) == SESSION)
print("files", sorted((n, os.readlink("/proc/self/fd/" + n)) for n in os.listdir("/proc/self/fd")
                      if os.path.exists("/proc/self/fd/" + n)))
print("folder", os.getcwd(), "nice", os.nice(0), "arguments", sys.argv)
print([resource.getrlimit(n) for n in range(16)])
"""


def test_program_looks_the_same_to_itself(collector, library, tmp_path):
    assert library
    source = PORTRAIT.replace("GROUP", str(os.getpgid(0))).replace("SESSION", str(os.getsid(0)))
    arguments = ["a b", "", "--quiet", "-o", "\n", "\udc80"]

    def prepare():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGRTMIN + 2])
        os.umask(0o137)

    def portrait(prefix):
        with open(os.devnull, "rb") as extra:
            command = [*prefix, *PYTHON, source, *arguments]
            result = subprocess.run(command, cwd=tmp_path, check=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    pass_fds=[extra.fileno()], preexec_fn=prepare, timeout=20)
        return re.sub(rb"pipe:\[\d+\]", b"pipe", result.stdout).decode()
    direct = portrait([])
    assert portrait([collector, "run"]) == direct
    assert portrait([collector, "run", "--exec"]) == direct


def test_streams_pass_byte_for_byte(collector, library, tmp_path):
    assert library
    data = os.urandom(1 << 20)
    result = subprocess.run([collector, "run", "--quiet", "cat"], input=data, cwd=tmp_path,
                            capture_output=True, check=True, timeout=20)
    assert result.stdout == data
    assert result.stderr == b""


def test_closed_output_is_seen_at_once(launch):
    running = launch("sh", "-c", "echo ready $$; exec sleep 30 >&-")
    assert select.select([running.process.stdout], [], [], 20)[0]
    assert running.process.stdout.read() == b""
    assert running.process.poll() is None


def test_other_preloads_stay(run_collector, library):
    result = run_collector("run", "--quiet", "printenv", "LD_PRELOAD",
                           env={**os.environ, "LD_PRELOAD": "libm.so.6"})
    assert result.stdout == f"{library}:libm.so.6\n"
    result = run_collector("run", "--quiet", "printenv", "LD_PRELOAD",
                           env={**os.environ, "LD_PRELOAD": str(library)})
    assert result.stdout == f"{library}\n"


# ---- signals -------------------------------------------------------------------------------

FORWARDED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGALRM, signal.SIGWINCH, signal.SIGPIPE, signal.SIGRTMIN + 3]


@pytest.mark.parametrize("number", FORWARDED)
def test_signal_to_the_launcher_arrives_once(launch, number):
    running = launch(*PYTHON, LISTENER, "20")
    for _ in range(2):
        os.kill(running.process.pid, number)
        assert running.next_signal() == number
    assert running.end() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                                    signal.SIGCONT])
def test_signal_to_the_group_arrives_once(launch, number):
    running = launch(*PYTHON, LISTENER, "20", start_new_session=True)
    for _ in range(2):
        os.killpg(running.process.pid, number)
        assert running.next_signal() == number
        time.sleep(0.1)
    assert running.end() == []


def test_signals_to_the_group_in_quick_succession(launch):
    """What are two for the launcher may be one for the witness."""
    running = launch(*PYTHON, LISTENER, "20", start_new_session=True)
    for _ in range(10):
        os.killpg(running.process.pid, signal.SIGINT)
        assert running.next_signal() == signal.SIGINT
    assert running.end() == []


def test_default_actions(launch):
    running = launch("sh", "-c", "echo ready $$; exec sleep 30")
    os.kill(running.process.pid, signal.SIGTERM)
    running.finish()
    assert running.process.returncode == -signal.SIGTERM


def test_ignored_signal_stays_ignored_and_can_be_caught(launch):
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    running = launch("sh", "-c", "echo ready $$; sleep 0.5; exit 4", preexec_fn=ignore)
    os.kill(running.process.pid, signal.SIGINT)
    running.finish()
    assert running.process.returncode == 4
    running = launch(*PYTHON, LISTENER, "20", preexec_fn=ignore)
    os.kill(running.process.pid, signal.SIGINT)
    assert running.next_signal() == signal.SIGINT
    assert running.end() == []


def test_alarm_set_before(launch):
    running = launch(*PYTHON, LISTENER, "20", preexec_fn=lambda: signal.alarm(4))
    assert running.next_signal() == signal.SIGALRM
    assert running.end() == []


def test_program_does_not_outlive_a_killed_launcher(launch):
    running = launch("sh", "-c", "echo ready $$; exec sleep 60")
    running.process.kill()
    running.process.wait(timeout=20)
    wait_until(lambda: has_ended(running.program))


def test_kill_before_the_program_began(collector, library, tmp_path):
    assert library
    for delay in range(0, 40, 4):
        process = subprocess.Popen([collector, "run", "sh", "-c", "echo $$; exec sleep 60"],
                                   cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(delay / 10000)
        process.kill()
        assert process.wait(timeout=20) == -signal.SIGKILL
        line = process.stdout.read()  # comes back only when nobody holds the pipe
        if line:
            wait_until(lambda pid=int(line): has_ended(pid))


# ---- stop and continue ---------------------------------------------------------------------


def wait_for_stop(pid):
    found, status = os.waitpid(pid, os.WUNTRACED)
    assert found == pid and os.WIFSTOPPED(status), status


def test_stop_and_continue_of_the_group(launch):
    running = launch(*PYTHON, LISTENER, "20", preexec_fn=lambda: os.setpgid(0, 0))
    for _ in range(3):
        os.killpg(running.process.pid, signal.SIGTSTP)
        wait_for_stop(running.process.pid)
        os.killpg(running.process.pid, signal.SIGCONT)
        assert running.next_signal() == signal.SIGCONT
    assert running.end() == []


def test_stop_by_the_launcher_and_continue_of_it(launch):
    running = launch(*PYTHON, LISTENER, "20", preexec_fn=lambda: os.setpgid(0, 0))
    os.kill(running.process.pid, signal.SIGTSTP)
    wait_for_stop(running.process.pid)
    os.kill(running.process.pid, signal.SIGCONT)
    assert running.next_signal() == signal.SIGCONT
    assert running.end() == []


def test_program_stopped_and_continued_by_others(launch):
    """The launcher stays as it is: nobody would continue it."""
    running = launch(*PYTHON, LISTENER, "20")
    for _ in range(3):
        os.kill(running.program, signal.SIGSTOP)
        wait_until(lambda: state_of(running.program) == "T")
        os.kill(running.program, signal.SIGCONT)
        assert running.next_signal() == signal.SIGCONT
        assert state_of(running.process.pid) != "T"
    assert running.end() == []


# ---- wrong use -----------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [
    [], ["--"], ["--nonesuch", "true"], ["-x", "true"], ["-", "true"], ["-o"], ["-o", "", "true"],
    ["--level", "0", "true"], ["--level=10", "true"], ["--on-full=maybe", "true"],
    ["--buffer", "12Q", "true"], ["--nested=perhaps", "true"], ["--out"],
    ["nonesuch-program"], ["./nonesuch"], ["/etc/passwd"], ["/"], [""], ["--", "--quiet"],
    ["--exec", "nonesuch-program"], ["-o", "/etc/passwd", "true"],
    ["-o", "/etc/passwd/below", "true"],
], ids=" ".join)
def test_wrong_use_is_one_line_and_code_2(run_collector, tmp_path, arguments):
    result = run_collector("run", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert one_line(result.stderr), result.stderr
    assert not list(tmp_path.iterdir())


def test_folder_name_with_a_space(collector, library, tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    for part in (collector, library):
        shutil.copy(part, folder)
    result = subprocess.run([folder / collector.name, "run", "true"], cwd=tmp_path, check=False,
                            capture_output=True, text=True, timeout=20)
    assert result.returncode == 2 and one_line(result.stderr)
    assert "space or a colon" in result.stderr


def test_library_missing(collector, tmp_path):
    shutil.copy(collector, tmp_path)
    result = subprocess.run([tmp_path / collector.name, "run", "true"], check=False,
                            capture_output=True, text=True, timeout=20)
    assert result.returncode == 2 and one_line(result.stderr)
    assert "libgpuprof.so" in result.stderr


def test_help(run_collector):
    result = run_collector("run", "--help")
    assert result.returncode == 0 and result.stderr == ""
    assert "--on-full wait|drop" in result.stdout and "GPUPROF_BUFFER" in result.stdout
    assert result.stdout == run_collector("help", "run").stdout


# ---- which program -------------------------------------------------------------------------


def script(path, text, mode=0o755):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def test_path_lookup(run_collector, tmp_path):
    script(tmp_path / "one" / "tool", "#!/bin/sh\necho first\n", 0o644)
    script(tmp_path / "two" / "tool", "#!/bin/sh\necho second \"$0\"\n")
    script(tmp_path / "bare", "echo no interpreter line\n")

    def run(path, *arguments):
        environment = {**os.environ, "PATH": path}
        return run_collector("run", "--quiet", *arguments, env=environment)
    assert run(f"one:{tmp_path}/two:/bin", "tool").stdout == f"second {tmp_path}/two/tool\n"
    assert run("nonesuch::two", "two/tool").stdout == "second two/tool\n"
    assert run("", "bare").stdout == "no interpreter line\n"
    denied = run("one", "tool")
    assert denied.returncode == 2 and "Permission denied" in denied.stderr
    environment = {name: text for name, text in os.environ.items() if name != "PATH"}
    assert run_collector("run", "--quiet", "echo", "x", env=environment).stdout == "x\n"


def test_static_program_is_told_and_runs(run_collector, tmp_path):
    source = tmp_path / "still.c"
    source.write_text("int main(void) { return 6; }\n")
    subprocess.run(["gcc", "-static", "-o", tmp_path / "still", source], check=True)
    result = run_collector("run", "--quiet", "./still")
    assert result.returncode == 6
    assert result.stderr == "gpuprof: ./still: statically linked; nothing can be recorded\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root can make another user's program")
def test_setuid_program_is_told_and_runs(run_collector, tmp_path):
    shutil.copy("/bin/true", tmp_path / "other")
    os.chown(tmp_path / "other", 65534, 65534)
    (tmp_path / "other").chmod(0o4755)
    result = run_collector("run", "--quiet", "./other")
    assert result.stderr == "gpuprof: ./other: setuid; nothing can be recorded\n"
    assert result.returncode == 0


# ---- exec, quiet, ranks --------------------------------------------------------------------


def test_exec_replaces_the_launcher(launch, program):
    running = launch("--exec", "sh", "-c", f"echo ready $$; {program('one_call')}; exit 3")
    assert running.program == running.process.pid
    assert running.finish()[1] == ""
    assert running.process.returncode == 3


def streams(folder):
    return sorted(path.suffix for path in folder.iterdir())


def test_summary_and_next_step(run_collector, program, tmp_path):
    result = run_collector("run", "-o", "data", program("one_call"))
    assert result.returncode == 0
    lines = result.stderr.splitlines()
    assert lines[-2:] == ["gpuprof: data in data",
                          "gpuprof: next: gpuprof report data; gpuprof merge data -o trace.json"]
    assert 1 <= len(lines) - 2 <= 15
    assert streams(tmp_path / "data") == [".gpuprof"]
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_earlier_recordings_are_said_with_quiet(run_collector, program):
    """diff would take all of a folder for one run."""
    first, second = (run_collector("run", "--quiet", "-o", "data", program("one_call"))
                     for _ in range(2))
    assert first.stderr == "" and second.stderr == (
        "gpuprof: run: data has recordings of earlier runs: 1; report and merge will include them; "
        "use -o to name another folder\n")


def test_earlier_recordings_do_not_count(run_collector, program):
    """What is there already is said before the program begins; figures are of this run alone."""
    warned = "gpuprof: run: data has recordings of earlier runs: 1; report and merge will " \
             "include them; use -o to name another folder\n"
    for earlier in (False, True):
        result = run_collector("run", "-o", "data", "sh", "-c", f"echo begins >&2; "
                               f"exec {program('one_call')}")
        first, second = result.stderr.split("begins\n")
        assert first == (warned if earlier else "")
        assert "; 1 process, 1 thread, " in second
    done = run_collector("run", "-o", "data", "true")
    assert "nothing was recorded" in done.stderr
    # Of the ranks of a job some may have begun before.
    done = run_collector("run", "-o", "data", program("one_call"), env={**os.environ, "RANK": "0"})
    assert "earlier" not in done.stderr and "; 3 processes, 3 threads, " in done.stderr


def test_next_step_can_be_pasted(run_collector, program, collector, tmp_path):
    folder = "-it's a \"folder\" of $HOME"
    result = run_collector("run", "-o", "./" + folder, program("one_call"))
    line = result.stderr.splitlines()[-1].removeprefix("gpuprof: next: gpuprof ")
    path, = tmp_path.glob("*folder*")
    first, second = line.split("; gpuprof ")
    for command in (first, second):
        assert subprocess.run(["sh", "-c", f"{shlex.quote(str(collector))} {command}"],
                              cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert path.is_dir() and (tmp_path / "trace.json").exists()


@pytest.mark.parametrize("name,meant", [
    ("GPUPROF_BACKTRACE_TRESHOLD", "GPUPROF_BACKTRACE_THRESHOLD"), ("GPUPROF_OUTT", "GPUPROF_OUT"),
    ("GPUPROF_OUT", None), ("GPUPROF_HOME_OF_MINE", None), ("GPUPRO_OUT", None),
])
def test_misspelt_variable(run_collector, name, meant):
    result = run_collector("run", "--quiet", "true", env={**os.environ, name: "1ms"})
    assert result.stderr == (f"gpuprof: run: {name} is not a setting (did you mean {meant}?)\n"
                             if meant else "")


def test_quiet(run_collector, program, tmp_path):
    result = run_collector("run", "--quiet", "-o", "data", program("one_call"))
    assert (result.returncode, result.stderr) == (0, "")
    assert streams(tmp_path / "data") == [".gpuprof"]


@pytest.mark.parametrize("variables, speaks", [
    ({"RANK": "0"}, True), ({"RANK": "1"}, False), ({"SLURM_PROCID": "3"}, False),
    ({"OMPI_COMM_WORLD_RANK": "12"}, False), ({"PMI_RANK": "1"}, False),
    ({"LOCAL_RANK": "1"}, True), ({"RANK": ""}, True), ({"RANK": "0", "LOCAL_RANK": "1"}, True),
], ids=str)
def test_only_rank_0_speaks(run_collector, program, variables, speaks):
    result = run_collector("run", program("one_call"), env={**os.environ, **variables})
    assert ("data in" in result.stderr) == speaks
    assert speaks or result.stderr == ""


def test_ranks_that_are_killed_together(collector, program, tmp_path):
    """Each has a launcher of its own, and all of these look after what was left in the folder."""
    env = {**os.environ, "SIMCUDA_FAIL": "cudaFree:1=hang"}
    for number in range(4):
        folder = tmp_path / str(number)
        ranks = [subprocess.Popen([collector, "run", "--quiet", "-o", folder, program("one_call")],
                                  env={**env, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
                 for rank in range(8)]
        wait_until(lambda place=folder: len(list(place.glob("*.gpuprof"))) == len(ranks))
        calls = [pid for rank in ranks for pid in children(rank.pid)
                 if os.readlink(f"/proc/{pid}/exe").endswith("/one_call")]
        assert len(calls) == len(ranks)
        for pid in calls:
            os.kill(pid, signal.SIGKILL)
        assert [(rank.communicate()[1], rank.returncode) for rank in ranks] == \
            [("", -signal.SIGKILL)] * len(ranks)
        assert streams(folder) == [".gpuprof"] * len(ranks) + [".live"] * len(ranks)


def test_arguments_with_blanks(run_collector, program):
    """So that the program can be run again as it was."""
    words = [str(program("one_call")), "a b", "-x", ""]
    for arguments, told in ((words, "\x1f".join(words)), (words[::2], None)):
        run_collector("run", "--quiet", "-o", f"data{len(arguments)}", *arguments)
        lines = run_collector("dump", f"data{len(arguments)}").stdout.splitlines()
        metas = [json.loads(line.partition("text=")[2].partition(" thread=")[0])
                 for line in lines if line.startswith("meta ")]
        assert [text for text in metas if text.startswith("argv=")] == \
            ([f"argv={told}"] if told else [])
        assert f"cmdline={' '.join(arguments).rstrip()}" in metas
    words[1] = "a\x1fb"  # what stands between them in the recording
    run_collector("run", "--quiet", "-o", "data", *words)
    assert 'text="argv=\\u001f"' in run_collector("dump", "data").stdout


def test_nothing_recorded(run_collector, tmp_path):
    result = run_collector("run", "true")
    assert one_line(result.stderr) and "nothing was recorded" in result.stderr
    assert "; find out with: gpuprof doctor " in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", [{"LD_LIBRARY_PATH": ""}, {"SIMCUDA_DEVICES": "0"},
                                     {"SIMCUDA_DRIVER_VERSION": "11000"}], ids=str)
def test_linked_in_runtime_without_a_driver(run_collector, tmp_path, missing):
    """All its calls fail before one of the driver's that is recorded: that is said, too."""
    program = toolchain.build("runtime_work.c", *toolchain.STATIC)
    result = run_collector("run", program, "basic", env={**os.environ, **missing})
    assert "errno" in result.stdout and "\n0 errno" not in result.stdout.partition("cudaFree")[0]
    assert one_line(result.stderr) and " made no CUDA call, or gpuprof was not " in result.stderr
    assert not list(tmp_path.iterdir())


def test_request_to_end_during_the_summary_keeps_the_status(collector, library, program, tmp_path):
    """The status is the program's even if the launcher is told to hurry."""
    assert library
    process = subprocess.Popen([collector, "run", "sh", "-c", f"{program('one_call')}; exit 5"],
                               cwd=tmp_path, stderr=subprocess.PIPE)
    process.stderr.read(1)
    process.terminate()
    process.stderr.read()
    assert process.wait(timeout=20) == 5


# ---- the data folder -----------------------------------------------------------------------


def test_standard_folder_name(run_collector, program, tmp_path):
    before = time.localtime()
    result = run_collector("run", program("one_call"))
    folder, = tmp_path.iterdir()
    match = re.fullmatch(r"gpuprof\.one_call\.(\d{8}-\d{6})", folder.name)
    assert match and f"gpuprof: data in {folder.name}\n" in result.stderr
    began = time.mktime(time.strptime(match[1], "%Y%m%d-%H%M%S"))
    assert abs(began - time.mktime(before)) <= 30


def test_folder_of_the_same_second(run_collector, program, tmp_path):
    taken = [f"gpuprof.one_call.{time.strftime('%Y%m%d-%H%M%S', time.localtime(time.time() + n))}"
             for n in range(30)]
    for name in taken:
        (tmp_path / name).mkdir()
        (tmp_path / (name + "-2")).mkdir()
    run_collector("run", program("one_call"))
    made = {path.name for path in tmp_path.iterdir()} - set(taken) - {n + "-2" for n in taken}
    assert len(made) == 1 and made.pop().removesuffix("-3") in taken


def test_ranks_of_one_second_share_a_folder(run_collector, program, tmp_path):
    now = time.time()
    for n in range(30):
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now + n))
        (tmp_path / f"gpuprof.one_call.{stamp}").mkdir()
    run_collector("run", program("one_call"), env={**os.environ, "RANK": "1"})
    assert sum(len(list(path.iterdir())) for path in tmp_path.iterdir()) == 1
    assert len(list(tmp_path.iterdir())) == 30


def test_folder_survives_a_change_of_directory(run_collector, program, tmp_path):
    (tmp_path / "sub").mkdir()
    for arguments, variables, name in [(["-o", "a"], {}, "a"), (["--out=./b"], {}, "b"),
                                       ([], {"GPUPROF_OUT": "c"}, "c"),
                                       (["-o", "d"], {"GPUPROF_OUT": "e"}, "d"),
                                       (["-o", "f/g/h"], {}, "f/g/h")]:
        result = run_collector("run", *arguments, "sh", "-c", f"cd sub; {program('one_call')}",
                               env={**os.environ, **variables})
        assert result.returncode == 0
        assert streams(tmp_path / name) == [".gpuprof"]
    assert not (tmp_path / "e").exists() and not list((tmp_path / "sub").iterdir())


def test_settings_reach_the_program(run_collector):
    result = run_collector("run", "--quiet", "--buffer", "8M", "--nested", "--on-full=drop",
                           "--seal", "200ms", "sh", "-c",
                           "env | grep ^GPUPROF_ | grep -v -e _OUT= -e _LIVE= | sort")
    assert result.stdout.split() == ["GPUPROF_BUFFER=8M", "GPUPROF_NESTED=on",
                                     "GPUPROF_ON_FULL=drop", "GPUPROF_SEAL=200ms"]


@pytest.mark.parametrize("option, value, words", [
    ("buffer", "1K", "(1M to 4G)"), ("chunk", "1G", "(16K to 16M)"),
    ("wait", "2000s", "(0 to 60s)"), ("seal", "1us", "(10ms to 60s)"), ("level", "10", "(1 to 9)")])
def test_ranges_are_said_as_one_writes_them(run_collector, option, value, words):
    result = run_collector("run", f"--{option}", value, "true")
    assert result.returncode == 2
    assert result.stderr == f"gpuprof: run: --{option}: '{value}' is out of range {words}\n"
    for bound in re.findall(r"\w+", words.replace(" to ", " ")):
        assert run_collector("run", "--quiet", f"--{option}={bound}", "true").returncode == 0


def test_options_end_at_the_program(run_collector):
    result = run_collector("run", "--quiet", "echo", "--nested", "--", "-o", "x")
    assert result.stdout == "--nested -- -o x\n"
    result = run_collector("run", "--quiet", "--", "echo", "--")
    assert result.stdout == "--\n"
