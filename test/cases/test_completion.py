# SPDX-License-Identifier: Apache-2.0
"""gpuprof completion: what the shells make of its answers, against what help says."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from conftest import Program, need

VERBS = ("run merge report stats export flame memory diff view ctl top dump doctor recover manual "
         "completion help demo").split()


@pytest.fixture(name="scripts")
def fixture_scripts(run_verb, collector, tmp_path, tmp_path_factory, monkeypatch):
    commands = tmp_path_factory.mktemp("bin")
    (commands / "gpuprof").symlink_to(collector)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    for shell in ("bash", "zsh", "fish"):
        (tmp_path / f"gpuprof.{shell}").write_text(run_verb("completion", shell).stdout)
    for name in ("data", "data.d"):
        (tmp_path / name).mkdir()
    (tmp_path / "data.txt").touch()
    return tmp_path


@pytest.fixture(name="complete")
def fixture_complete(scripts):
    """complete(WORD...): what bash offers in the place of the last word."""
    def offered(*words):
        # As readline has them: = stands alone.
        split = [part for word in ("gpuprof", *words) for part in re.split("(=)", word)]
        split = [part for part in split[:-1] if part] + split[-1:]
        done = subprocess.run(
            ["bash", "--norc", "-c", "source ./gpuprof.bash; COMP_WORDS=(\"$@\"); "
             "COMP_CWORD=$(($# - 1)); _gpuprof; printf '%s\\n' \"${COMPREPLY[@]}\"", "-", *split],
            cwd=scripts, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
        return sorted(line for line in done.stdout.split("\n") if line)
    return offered


def options_of(run_verb, verb):
    """Each option that help lists, with the name of its value."""
    rows = re.findall(r"^  (-\S.*?)(?:  +\S|$)", run_verb("help", verb, "--help-all").stdout,
                      re.MULTILINE)
    return {word: row.partition(words)[2].strip() for row in rows
            for words in [re.match(r"(?:-\w(?:, )?)?(?:--[\w-]+)?", row)[0]]
            for word in words.split(", ")}


def test_verbs_and_options(complete, run_verb):
    told = run_verb("help").stdout.split("verbs:\n")[1].split("topics:")[0]
    listed = re.findall(r"^  (\w+)(?: \[|  )", told,
                        re.MULTILINE)
    assert sorted(VERBS) == sorted(listed)
    assert complete("") == sorted([*VERBS, "--help", "--version"])
    assert complete("help", "") == sorted(VERBS)
    assert complete("re") == ["recover", "report"] and complete("x") == []
    for verb in ("run", "merge", "report", "flame", "doctor"):
        options = options_of(run_verb, verb)
        if verb == "doctor":  # it takes those of run, too
            of_run = options_of(run_verb, "run")
            options = {name: of_run[name] for name in of_run if name not in (
                "--quiet", "--exec", "--on-cycle", "--help-all")} | options
        assert len(options) > 2 and complete(verb, "-") == sorted(options)
        for option, value in options.items():
            choices = sorted(word for word in value.split("|") if word.islower())
            if choices and "DIR" not in value and value[0] != "[":  # an option may be alone
                assert complete(verb, option, "") == choices
                assert complete(verb, option + "=") == choices


def test_values(complete):
    assert complete("flame", "--weight", "b") == ["bytes"]
    assert complete("report", "--format=c") == ["csv"]
    assert complete("run", "--kinds=kernel,c") == ["kernel,copy"]
    assert complete("report", "--sort", "") == []
    assert complete("merge", "--format", "") == ["chrome", "perfetto"]
    assert complete("report", "--table=cuda_gpu_m") == ["cuda_gpu_mem_size_sum",
                                                        "cuda_gpu_mem_time_sum"]
    assert complete("report", "--table", "ops,st") == ["ops,steps"]
    assert "ops,steps" in complete("report", "--table", "ops,")  # the last part is empty
    assert complete("report", "da") == ["data", "data.d", "data.txt"]
    assert complete("stats", "da") == ["data", "data.d", "data.txt"]
    for words in (), ("-r",):
        assert complete("stats", *words, "cuda_gpu_mem_t") == ["cuda_gpu_mem_time_sum"]
    assert complete("memory", "--table", "own") == ["owners"]
    assert complete("run", "-o", "da") == ["data", "data.d"]
    assert complete("flame", "--symbols", "") == ["data", "data.d", "none"]
    assert complete("completion", "") == ["bash", "fish", "zsh"]
    assert complete("run", "--tune", "se") == ["seal=1s"]
    assert complete("demo", "da") == ["data", "data.d"]


@pytest.mark.parametrize("verb", ["run", "doctor"])
def test_program_and_its_arguments(complete, verb):
    """Its name is a command's; what follows is its own, whatever it looks like."""
    before = {"run": [["--level", "3"], ["--level=3"], ["--quiet", "-o", "x"], ["--"]],
              "doctor": [["--json"], ["--"]]}[verb]
    for options in [[], *before]:
        assert "printenv" in complete(verb, *options, "printen")
        assert complete(verb, *options, "cat", "da") == ["data", "data.d", "data.txt"]
        assert complete(verb, *options, "cat", "--") == []


@pytest.mark.parametrize("words", [["report"], ["run"], ["flame", "-o"], ["report", "--by"], []],
                         ids=str)
def test_nothing_typed_is_run(complete, scripts, words):
    for typed_word in ("$(touch run)", "`touch run`", "a,$(touch run)", "x[$(touch run)]"):
        assert complete(*words, typed_word) == [] and not (scripts / "run").exists()


def typed(command, setup, keys, expected, cwd):
    """What an interactive shell makes of keys: waits until it has answered what is expected."""
    terminal, slave = pty.openpty()
    text, end = "", time.monotonic() + 60
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(cwd), "PS1": "ready> "}
    with Program(command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=environment,
                 start_new_session=True) as shell:
        os.close(slave)
        os.write(terminal, f"{setup}; echo set-'up'\n".encode())
        for wanted, then in (("set-up\r", keys.encode()), (expected, b"")):
            text = ""
            while wanted not in text and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    text += os.read(terminal, 65536).decode("utf-8", "replace")
            os.write(terminal, then or b"\x03")
        shell.kill()
    os.close(terminal)
    return text


@pytest.mark.parametrize("shell,command,setup", [
    ("bash", ["bash", "--norc", "--noprofile", "-i"], "source ./gpuprof.bash"),
    ("zsh", ["zsh", "-f", "-i"],
     "cp gpuprof.zsh _gpuprof; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D")])
def test_typed(scripts, shell, command, setup):
    if shell == "bash":
        need(shell)
    elif not shutil.which(shell):
        pytest.skip(f"not run: {shell} is not installed")
    expected = "--weight"  # with or without a control character of the shell's before it
    text = typed(command, setup, "gpuprof fla\t--wei\t", expected, scripts)
    assert expected in text, text


def test_fish(scripts, run_verb):
    if not shutil.which("fish"):
        pytest.skip("not run: fish is not installed")

    def offered(line):
        done = subprocess.run(["fish", "--no-config", "-c", "source gpuprof.fish; complete -C "
                               f"'{line}'"], cwd=scripts, capture_output=True, text=True,
                              check=True, timeout=60, env={**os.environ, "HOME": str(scripts)})
        assert done.stderr == ""
        return sorted(row.partition("\t")[0] for row in done.stdout.splitlines())
    assert offered("gpuprof ") == sorted([*VERBS, "--help", "--version"])
    assert offered("gpuprof flame --weight b") == ["bytes"]
    assert offered("gpuprof run --") == sorted(
        word for word in options_of(run_verb, "run") if word.startswith("--"))
    assert "data.txt" in offered("gpuprof report da") and "data.txt" not in offered("gpuprof help ")


def test_wrong_use(run_collector):
    for words in ([], ["tcsh"], ["bash", "zsh"]):
        done = run_collector("completion", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "gpuprof: completion: name a shell: bash, zsh or fish\n"
