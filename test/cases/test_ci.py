# SPDX-License-Identifier: Apache-2.0
"""GUIDE's recipes of CI: their commands, as they stand there, run by a shell in a folder in which
`python train.py` is a program on the simulated CUDA and `gh` only says what it was told."""

import os
import re
import subprocess
import xml.etree.ElementTree

import conftest
import pytest
import toolchain

SAME, WORSE, UNSURE = 0, 1, 3
GUIDE = (conftest.ROOT / "GUIDE.md").read_text()
CHAPTER = re.search(r"^### In CI$(.*?)^## ", GUIDE, re.M | re.S)[1]
GITHUB, GITLAB, JENKINS = re.findall(r"(?:^    .*\n|^\n(?=    ))+", CHAPTER, re.M)


def github_commands():
    """The `run` of each step, with what GitHub puts in place of its expressions."""
    found = re.findall(r"^ +(?:- )?run: (?:\|\n((?: {14}.*\n)+)|(.*))", GITHUB, re.M)
    return [line.strip().replace("${{ github.event.number }}", "17")
            for block, line in found for line in (block or line).splitlines()]


def gitlab_commands():
    script = re.search(r"^ +script:\n((?: +- .*\n)+)", GITLAB, re.M)[1]
    return re.findall(r"^ +- (.*)$", script, re.M)


def jenkins_commands():
    return re.findall(r"(?:sh|script:) '([^']*)'", JENKINS)


RECIPES = {"github": github_commands(), "gitlab": gitlab_commands(), "jenkins": jenkins_commands()}


class Machine:
    """A folder with a checkout, on a PATH with gpuprof, python and gh."""

    def __init__(self, folder, collector):
        self.folder, self.tools = folder / "checkout", folder / "bin"
        self.folder.mkdir()
        self.tools.mkdir()
        work = toolchain.build("ci_work.c", f"-I{conftest.ROOT / 'inject/range'}",
                               *toolchain.runtime(12))
        self.tool("gpuprof", f'exec {collector} "$@"')
        self.tool("python", f'test "$1" = train.py && exec {work} "$COPIES" "$@"')
        self.tool("gh", f'echo "$@" > {folder}/gh; test -s diff.md')
        self.environment = toolchain.environment(
            folder, PATH=f"{self.tools}:{os.environ['PATH']}", COPIES=3,
            GITHUB_STEP_SUMMARY=folder / "summary")

    def tool(self, name, text):
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, command, **settings):
        """As a step of CI does."""
        return subprocess.run(["sh", "-e", "-c", command], cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=120,
                              env={**self.environment, **settings})

    def junit(self):
        suites = xml.etree.ElementTree.parse(self.folder / "diff.xml")
        return {case.get("name"): case.find("failure") is not None
                for case in suites.iter("testcase")}


@pytest.fixture(name="machine")
def fixture_machine(tmp_path, collector, library):
    del library
    return Machine(tmp_path, collector)


def test_recipes_are_found():
    record = "for i in 1 2 3 4 5; do gpuprof run --quiet -o new$i python train.py --steps 60; done"
    assert all(record in commands for commands in RECIPES.values())
    assert [len(commands) for commands in RECIPES.values()] == [6, 3, 3]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_does_what_it_says(machine, recipe):
    """A baseline is saved as the text says; what copies once more in a step fails, with the files
    that the recipe hands on."""
    clear, record, gate, *later = RECIPES[recipe]
    save, = re.findall(r"`(gpuprof diff --save main new\?)`", CHAPTER)
    for command in (clear, record, save, clear):
        done = machine.run(command)
        assert done.returncode == 0, done.stderr
    assert machine.run(record, COPIES="4").returncode == 0
    done = machine.run(gate)
    assert done.returncode == WORSE, done.stdout + done.stderr
    failed = machine.junit()
    assert failed["copies"] and failed["bytes copied"] and not failed["synchronisations"]
    assert "copies +33.3 %" in (machine.folder / "diff.txt").read_text()
    for command in later:
        assert machine.run(command).returncode == 0
    if recipe == "github":
        assert (machine.folder.parent / "gh").read_text() == \
            "pr comment 17 --edit-last --create-if-none -F diff.md\n"
        summary = (machine.folder / "diff.txt").read_text()
        assert (machine.folder.parent / "summary").read_text() == f"```\n{summary}\n```\n"


@pytest.mark.long
def test_nothing_has_changed(machine):
    """Counts of equal runs are equal; times are what this machine makes them."""
    clear, record, gate = RECIPES["gitlab"]
    for command in (record, "gpuprof diff --save main new?", clear, record):
        assert machine.run(command).returncode == 0
    assert machine.run(gate).returncode in (SAME, WORSE, UNSURE)
    assert not any(failed for name, failed in machine.junit().items()
                   if name in ("copies", "bytes copied", "launches", "peak memory"))


@pytest.mark.long
def test_files_are_yaml():
    """With the keys in which GitHub and GitLab look for what the text says."""
    yaml = pytest.importorskip("yaml", reason="not run: no PyYAML")
    steps = yaml.safe_load(GITHUB)["jobs"]["performance"]["steps"]
    assert [line for step in steps for line in step.get("run", "").splitlines()] == [
        command.replace("17", "${{ github.event.number }}") for command in github_commands()]
    job = yaml.safe_load(GITLAB)["performance"]
    assert job["script"] == gitlab_commands()
    written = set(re.findall(r"-o (\S+)", job["script"][-1]))
    assert {job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]} == written
    assert set(re.findall(r"(?:junit|archiveArtifacts) '(\S+)'", JENKINS)) == written
