"""The workflows that ``llmeval init`` writes: their YAML, and their shell steps as real processes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import recorded_case, recorded_suite, write_run
from project import ROOT
from servers import PATIENCE

from pytest_llmeval.cli import OPTIONS
from pytest_llmeval.workbench._comment import MARKER

TEMPLATES = ROOT / "pytest_llmeval" / "workbench" / "templates"
GITHUB: dict[Any, Any] = yaml.safe_load((TEMPLATES / "github.yml").read_text(encoding="utf-8"))
GITLAB: dict[str, Any] = yaml.safe_load((TEMPLATES / "gitlab.yml").read_text(encoding="utf-8"))["evals"]
STEPS: list[dict[str, Any]] = [each for job in GITHUB["jobs"].values() for each in job["steps"]]

GH = """\
#!{python}
import json, os, sys
with open("gh.jsonl", "a") as stream:
    stream.write(json.dumps([os.environ["GH_TOKEN"], *sys.argv[1:]]) + "\\n")
if "--jq" in sys.argv:
    print(os.environ["COMMENTS"], end="")
"""
QUICK = """\
#!/bin/sh
mkdir -p eval-reports
echo "{marker} of" "$@" > eval-reports/comment.md
"""
"""A program in place of ``llmeval``, which notes what it is asked to comment on."""
LLMEVAL = '#!/bin/sh\nexec {python} -m pytest_llmeval "$@"\n'


def step(name: str) -> dict[str, Any]:
    return next(each for each in STEPS if each.get("name") == name)


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """Return an environment with ``llmeval`` and with a ``gh`` that notes what it is asked."""
    return with_tools(tmp_path / "tools", gh=GH, llmeval=LLMEVAL)


@pytest.fixture
def quick_tools(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which ``llmeval`` does not start Python."""
    return with_tools(tmp_path / "tools", gh=GH, llmeval=QUICK)


def with_tools(folder: Path, **programs: str) -> dict[str, str]:
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(text.format(python=sys.executable, marker=MARKER), encoding="utf-8")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def shell(script: str, folder: Path, environment: dict[str, str]) -> None:
    """Run a step as GitHub does."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=PATIENCE, capture_output=True)


def comment(folder: Path, tools: dict[str, str], *, comments: str = "") -> list[list[str]]:
    """Run the steps that compare and comment; return the commands of ``gh``."""
    shell(step("Compare")["run"], folder, {**tools, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")})
    given = {"GH_TOKEN": "secret", "NUMBER": "7", "GITHUB_REPOSITORY": "o/r", "COMMENTS": comments}
    assert {"GH_TOKEN", "NUMBER"} == set(step("Comment")["env"])
    shell(step("Comment")["run"], folder, {**tools, **given})
    return [json.loads(line) for line in (folder / "gh.jsonl").read_text().splitlines()]


def reports(folder: Path) -> None:
    for name in ("eval-reports", "eval-baseline"):
        (folder / name).mkdir()
        write_run(folder / name / "report.json", recorded_suite([recorded_case("a", f1=1.0)]))


def test_the_first_run_of_a_pull_request_writes_a_comment(tmp_path: Path, tools: dict[str, str]) -> None:
    reports(tmp_path)
    listed, written = comment(tmp_path, tools)
    assert listed[:4] == ["secret", "api", "--paginate", "repos/o/r/issues/7/comments"]
    assert MARKER in listed[-1]
    body = "eval-reports/comment.md"
    assert written == ["secret", "pr", "comment", "7", "--repo", "o/r", "--body-file", body]
    text = (tmp_path / body).read_text(encoding="utf-8")
    assert text.startswith(f"{MARKER}\n## Evaluation: **Merge**\n")
    assert "Baseline of 2026-01-02" in text


def test_later_runs_update_that_comment(tmp_path: Path, quick_tools: dict[str, str]) -> None:
    _, updated = comment(tmp_path, quick_tools, comments="101\n102\n")
    place, body = "repos/o/r/issues/comments/101", "body=@eval-reports/comment.md"
    assert updated == ["secret", "api", "--method", "PATCH", place, "--field", body]


def test_the_text_is_in_the_job_summary_too(tmp_path: Path, quick_tools: dict[str, str]) -> None:
    (tmp_path / "summary.md").write_text("before\n", encoding="utf-8")
    comment(tmp_path, quick_tools)
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith(f"before\n{MARKER} of comment ")


def test_a_run_without_report_replaces_the_comment_on_the_run_before(tmp_path: Path, tools: dict[str, str]) -> None:
    assert len(comment(tmp_path, tools, comments="101\n")) == 2
    assert "## Evaluation: **no report**" in (tmp_path / "eval-reports" / "comment.md").read_text(encoding="utf-8")


def test_the_merge_base_is_where_the_branch_left_the_main_one(tmp_path: Path) -> None:
    output = tmp_path / "output"
    environment = {"PATH": os.environ["PATH"], "GITHUB_BASE_REF": "main", "GITHUB_OUTPUT": str(output)}
    git = "git -c user.name=a -c user.email=a@b.example"
    shell(
        f"git init -q . && {git} commit -qm base --allow-empty && git rev-parse HEAD > base && "
        f"{git} commit -qm newer --allow-empty && git update-ref refs/remotes/origin/main HEAD && "
        f"git checkout -q $(cat base) && {git} commit -qm mine --allow-empty",
        tmp_path,
        environment,
    )
    shell(step("Find the merge base")["run"], tmp_path, environment)
    assert output.read_text() == f"commit={(tmp_path / 'base').read_text()}"
    assert STEPS[0]["with"]["fetch-depth"] == 0


def test_what_one_run_keeps_as_a_baseline_is_what_the_next_one_compares_with(tmp_path: Path) -> None:
    (tmp_path / "eval-reports").mkdir()
    (tmp_path / "eval-reports" / "report.json").write_text("{}")
    shell(step("Keep the report as a baseline")["run"], tmp_path, {"PATH": os.environ["PATH"]})
    assert (tmp_path / "eval-baseline" / "report.json").read_text() == "{}"
    fetched, kept = (each["with"] for each in STEPS if "actions/cache/" in each.get("uses", ""))
    assert fetched["path"] == kept["path"] == "eval-baseline"
    assert (fetched["key"], kept["key"]) == ("llmeval-${{ steps.base.outputs.commit }}", "llmeval-${{ github.sha }}")


def test_nothing_of_a_pull_request_becomes_part_of_a_script() -> None:
    """Titles and branches are chosen by who opens the pull request."""
    assert [each["run"] for each in STEPS if "${{" in each.get("run", "")] == []
    assert set(GITHUB[True]) == {"push", "pull_request", "schedule"}


def test_both_hosts_refresh_a_share_of_the_cases_by_a_schedule() -> None:
    chosen = GITHUB["jobs"]["evaluate"]["env"]["SELECTION"]
    (by_schedule,) = (each for each in GITLAB["rules"] if each["if"] == '$CI_PIPELINE_SOURCE == "schedule"')
    options = by_schedule["variables"]["SELECTION"]
    assert chosen == f"${{{{ github.event_name == 'schedule' && '{options}' || '' }}}}"
    assert GITLAB["rules"].index(by_schedule) < len(GITLAB["rules"]) - 1  # or else the rule of the main branch applies
    assert GITHUB[True]["schedule"] == [{"cron": "17 3 * * *"}]
    known = {f"--llmeval-{name}" for name in OPTIONS}
    assert {each.partition("=")[0] for each in options.split()} <= known
    assert "--llmeval-texts=all $SELECTION" in step("Evaluate")["run"]


def test_no_code_of_a_pull_request_runs_with_permission_to_write() -> None:
    evaluate, comment = GITHUB["jobs"]["evaluate"], GITHUB["jobs"]["comment"]
    assert GITHUB["permissions"] == {"contents": "read"}
    assert "permissions" not in evaluate
    assert comment["permissions"] == {"pull-requests": "write"}
    assert "head.repo.full_name == github.repository" in comment["if"]
    used, _ = (each.get("uses", "") for each in comment["steps"])
    assert used.startswith("actions/download-artifact@")
    assert not re.search("pip|llmeval comment|python|checkout", comment["steps"][1]["run"])


def test_actions_are_pinned_by_digest() -> None:
    used = [each["uses"] for each in STEPS if "uses" in each]
    assert len(used) == 6
    assert [each for each in used if not re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", each)] == []


def test_an_earlier_push_does_not_overwrite_the_comment_of_a_later_one() -> None:
    group = "evals-${{ github.event.pull_request.number || github.sha }}"
    assert GITHUB["concurrency"] == {"group": group, "cancel-in-progress": True}


@pytest.mark.release
def test_the_pipeline_of_gitlab_compares_and_keeps_a_baseline(tmp_path: Path, tools: dict[str, str]) -> None:
    (tmp_path / "eval-reports").mkdir()
    write_run(tmp_path / "eval-reports" / "report.json", recorded_suite([recorded_case("a", f1=1.0)]))
    for policy, said in (("push", "No baseline: eval-baseline/report.json does not exist."), ("pull", "Baseline of")):
        shell("\n".join(GITLAB["after_script"]), tmp_path, {**tools, "BASELINE_POLICY": policy})
        assert said in (tmp_path / "eval-reports" / "comment.md").read_text(encoding="utf-8")
    assert GITLAB["artifacts"]["reports"] == {"junit": "eval-reports/junit.xml"}


def test_the_documentation_leads_to_the_workflow_that_is_written() -> None:
    page = (ROOT / "docs" / "pull-requests.md").read_text(encoding="utf-8")
    assert f"/blob/main/{(TEMPLATES / 'github.yml').relative_to(ROOT).as_posix()})" in page


def test_both_hosts_run_the_suites_in_the_same_way() -> None:
    assert GITLAB["script"] == [step("Evaluate")["run"]]
    assert re.search(r"--llmeval tests/evals\b", step("Evaluate")["run"])
