"""What is distributed, how it is tested, and how it is released."""

import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from project import ROOT
from running import run_python

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_source_distribution_holds_what_the_wheel_is_made_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = project["tool"]["hatch"]["build"]["targets"]
    parts = {*targets["wheel"]["only-include"], *targets["wheel"]["force-include"]}
    assert parts <= {each.removeprefix("/") for each in targets["sdist"]["include"]}
    modules = {
        entry.partition(":")[0] for group in project["project"]["entry-points"].values() for entry in group.values()
    }
    assert {f"{module}.py" for module in modules} <= parts
    assert all((ROOT / part).exists() for part in parts)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme, ci = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run"))
    (command,) = re.findall(r"^    pip (install .* && pytest -n .*)$", readme, re.MULTILINE)
    beginnings = "".join(f"^{re.escape(part)}(?: .*)?$(?s:.*?)" for part in command.split(" && "))
    assert re.search(beginnings, ci, re.MULTILINE)


def workflow(name: str) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return loaded


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in workflow(name)["jobs"].values():
        yield from job.get("steps", ())


def test_the_example_suites_need_no_plugin_of_the_tests() -> None:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    line = ["-m", "pytest", "-p", "pytest_llmeval_suite", "-pno:cacheprovider", "--collect-only", "-q", "--llmeval"]
    collected = run_python([*line, "example_suites"], environment, ROOT)
    assert collected.code == 0, collected.err


def test_ci_runs_with_every_python_from_the_oldest_that_is_supported() -> None:
    job = workflow("ci.yml")["jobs"]["run"]
    versions = job["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["requires-python"] == f">={versions[0]}"
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    known = {each.rpartition(" :: ")[2] for each in project["project"]["classifiers"]}
    assert {each for each in known if each.startswith("3.")} == {*versions}
    systems = workflow("ci.yml")["jobs"]["systems"]["strategy"]["matrix"]["system"]
    assert {each.partition("-")[0] for each in systems} == {each.lower() for each in known & {"MacOS", "Windows"}}
    assert "${{ matrix.python }}" in job["container"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_lowest_versions_are_installed_used_and_audited() -> None:
    text = "\n".join(step["run"] for step in workflow("ci.yml")["jobs"]["lowest"]["steps"] if "run" in step)
    for part in ("--resolution lowest-direct", "pytest --llmeval example_suites", "pip-audit --requirement"):
        assert part in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_only_read_and_pin_what_they_use(path: Any) -> None:
    assert workflow(path.name)["permissions"] == {"contents": "read"}
    used = [step["uses"] for step in steps(path.name) if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == []


def test_only_the_job_that_publishes_may_prove_who_it_is_and_runs_nothing_of_the_repository() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "publish": {"id-token": "write"},
        "attach": {"contents": "write"},
    }
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish", "attach"}
    assert jobs["attach"]["needs"] == "publish"
    assert not [step for step in jobs["publish"]["steps"] if "run" in step or "checkout" in step["uses"]]


def test_a_release_does_what_its_page_says() -> None:
    page = (ROOT / ".github" / "RELEASING.md").read_text(encoding="utf-8")
    written = {line.strip() for line in page.splitlines()}
    done = [line.strip() for step in steps("release.yml") for line in step.get("run", "").splitlines()]
    assert [line for line in done if line not in written] == [done[0]]
    assert "__version__" in done[0]
