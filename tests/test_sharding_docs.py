"""The workflows for several machines do what the page says, in an environment with the variables of the scheduler."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import ROOT
from running import WITHOUT_UNUSED, Finished, run_python

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8").partition("\n## Several machines\n")[2]
WORKFLOW = ROOT / "example_suites" / "shards" / "github.yml"
SHARDS = range(1, 6)
MODULES = {"pytest": ["-m", "pytest", *WITHOUT_UNUSED, "-pno:syrupy"], "llmeval": ["-m", "pytest_llmeval"]}

STUB = """\
#!/bin/sh
{ echo "${0##*/}"; printf '%s\\n' "$@"; echo; } >> "$COMMANDS"
case "$0" in *sbatch) echo 77 ;; esac
"""


def fenced(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)


def execute(command: Sequence[str], folder: Path, **variables: str) -> Finished:
    tool, *arguments = command
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "GITHUB_", "PYTEST_"))}
    return run_python([*MODULES[tool], *arguments], {**kept, **variables}, folder)


def steps_of(job: Mapping[str, Any], **values: object) -> list[list[str]]:
    """Return the commands of a job, without those that install something."""
    texts = [step["run"] for step in job["steps"] if "run" in step and not step["run"].startswith("pip ")]
    for name, value in values.items():
        texts = [text.replace(f"${{{{ matrix.{name} }}}}", str(value)) for text in texts]
    return [shlex.split(text) for text in texts]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The suite of the section."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "capitals.eval.yaml").write_text(fenced("yaml")[0], encoding="utf-8")
    return folder


def test_the_jobs_of_the_github_workflow_judge_all_shards(checkout: Path, tmp_path: Path) -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    assert jobs["shard"]["strategy"]["matrix"]["shard"] == [*SHARDS]
    merging = Path(shutil.copytree(checkout, tmp_path / "merging"))
    for shard in SHARDS:
        machine = Path(shutil.copytree(checkout, tmp_path / f"machine-{shard}"))
        for command in steps_of(jobs["shard"], shard=shard):
            assert execute(command, machine).code == 0
        upload = jobs["shard"]["steps"][-1]["with"]
        name, file = (upload[key].replace("${{ matrix.shard }}", str(shard)) for key in ("name", "path"))
        downloaded = merging / jobs["merge"]["steps"][3]["with"]["path"] / name / file
        downloaded.parent.mkdir(parents=True)
        shutil.copy(machine / file, downloaded)
    for command in steps_of(jobs["merge"]):
        assert execute(command, merging).code == 0
    assert {path.name for path in merging.glob("report.*")} == {"report.html", "report.json"}


def test_the_scripts_for_slurm_judge_all_shards(checkout: Path, tmp_path: Path) -> None:
    script, submission, *_ = fenced("bash")
    (tmp_path / "shards.sh").write_text(script, encoding="utf-8")
    (tmp_path / "submit.sh").write_text(submission, encoding="utf-8")
    for tool in (*MODULES, "sbatch"):
        stub = tmp_path / "bin" / tool
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(STUB, encoding="utf-8")
        stub.chmod(0o755)
    log = tmp_path / "commands"
    environment = {"PATH": f"{stub.parent}:{os.defpath}", "COMMANDS": str(log), "TMPDIR": str(tmp_path)}
    array = {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_COUNT": str(len(SHARDS))}
    tasks = [{**array, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_STEP": "1"} for task in SHARDS]
    for task in tasks:
        subprocess.run(["bash", tmp_path / "shards.sh"], env={**environment, **task}, cwd=checkout, check=True)
    subprocess.run(["bash", tmp_path / "submit.sh"], env=environment, cwd=checkout, check=True)
    *runs, array_job, merge_job = (each.split("\n") for each in log.read_text(encoding="utf-8").split("\n\n")[:-1])
    for task, command in zip(tasks, runs, strict=True):
        assert execute(command, checkout, **task).code == 0
    assert array_job == ["sbatch", "--parsable", "shards.sh"]
    assert merge_job[:2] == ["sbatch", "--dependency=afterany:77"]
    assert execute(shlex.split(merge_job[2].removeprefix("--wrap=")), checkout).code == 0
    assert (checkout / "report.html").is_file()
