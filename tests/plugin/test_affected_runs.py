"""``--llmeval-affected``: affected cases run, the others are carried over, and gates are judged over all of them."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pictures import png

from pytest_llmeval.cli import main
from pytest_llmeval.workbench._affected import Repository, _ShallowError

if TYPE_CHECKING:
    from conftest import Project, Ran

AGENT = """\
from pathlib import Path

def answer(value):
    Path("asked.txt").open("a").write(f"{value}\\n")
    return Path("prompts/answer.md").read_text() + value
"""


def git(folder: Path, *arguments: str) -> str:
    done = Repository(folder).git("-c", "user.name=n", "-c", "user.email=e@x", *arguments)
    assert done is not None, arguments
    return done.strip()


def commit(project: "Project", message: str = "m") -> str:
    git(project.path, "add", "-A")
    git(project.path, "commit", "-qm", message)
    return git(project.path, "rev-parse", "--short=7", "HEAD")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves the approved project for the others."""
    return tmp_path_factory.mktemp("template") / "approved"


@pytest.fixture
def approved(project: "Project", template: Path) -> str:
    """Two suites with an approved run; returns its commit."""
    if template.exists():
        shutil.copytree(template, project.path, dirs_exist_ok=True)
        return git(project.path, "rev-parse", "--short=7", "HEAD")
    project.write(".gitignore", ".llmeval\n__pycache__\nreport*.json\n*.llmeval\nasked.txt\n")
    project.write("agent.py", AGENT)
    project.write("prompts/answer.md", "x")
    gates = ["exact_match >= 0.5", {"metric": "exact_match", "max_drop": 0.1}]
    cases = [{"id": f"a{n}", "input": f"{n}", "expected": f"x{n}" if n else "?"} for n in range(6)]
    project.suite("a.eval.json", cases, target={"python": "agent:answer"}, snapshot=True, gates=gates)
    rows = [{"id": f"b{n}", "expected": "x", "prediction": "xy"[n > 30]} for n in range(40)]
    project.suite("b.eval.json", rows, snapshot=True, gates=gates)
    git(project.path, "init", "-qb", "main")
    assert project.run("--llmeval-affected", "--snapshot-update").code == 0 if commit(project) else False
    asked(project)
    since = commit(project, "approve")
    shutil.copytree(project.path, template)
    return since


def asked(project: "Project") -> list[str]:
    path = project.path / "asked.txt"
    lines = path.read_text(encoding="utf-8").split() if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(lines)


def judged(ran: "Ran") -> dict[str, Any]:
    """Return what a run decided: outcomes, values, intervals and verdicts, not their reasons."""
    return {
        name: (
            {case["id"]: (case["outcome"], case["metrics"]) for case in suite["cases"]},
            {metric: (value["value"], value["low"], value["high"]) for metric, value in suite["metrics"].items()},
            [(gate["gate"], gate["outcome"], gate["value"]) for gate in suite["gates"]],
            [(each["metric"], each["kind"], each["outcome"]) for each in suite.get("snapshot", ())],
        )
        for name, suite in ran.suites.items()
    }


def test_nothing_affected_has_a_line_and_an_exit_code(project: "Project", approved: str, workers: int) -> None:
    asked(project)
    ran = project.run("--llmeval-affected", "-q", workers=workers)
    assert ran.code == 0
    assert f"0 of 46 cases affected since {approved}; gates carried, 10 passed" in ran.text
    assert asked(project) == []
    assert ran.counts["carried"] == 46
    assert {case["carried"] for suite in ran.suites.values() for case in suite["cases"]} == {approved}
    assert all("40 of 40 cases carried" in gate["reason"] for gate in ran.suites["b"]["gates"])


def test_a_change_runs_what_it_affects_and_the_verdicts_are_those_of_a_run_of_all(
    project: "Project", approved: str
) -> None:
    asked(project)
    suite = json.loads((project.path / "b.eval.json").read_text(encoding="utf-8"))
    for row in suite["cases"][:9]:
        row["prediction"] = "worse"
    project.suite("b.eval.json", suite.pop("cases"), **suite)
    ran, everything = project.run("--llmeval-affected=main", "-v"), project.run()
    assert asked(project) == [str(n) for n in range(6)]  # by the run of all
    assert f"ran 9 of 46 cases since {approved}: data row (9)" in ran.text
    assert ran.code == everything.code == 1
    assert judged(ran)["b"] == judged(everything)["b"]
    assert ran.suites["b"]["affected"]["causes"] == {"data row": 9}
    project.write("prompts/answer.md", "y")
    assert "ran 6 of 6 cases" in project.run("--llmeval-affected=", "a.eval.json").text
    assert asked(project) == [str(n) for n in range(6)]
    ran = project.run("--llmeval-affected", "-k", "a1 or b20")  # of what is selected, what is not affected is carried
    assert asked(project) == ["1"]
    assert ran.counts["carried"] == 1
    assert ran.suites["b"]["gates"][0]["outcome"] == "not_judged"


@pytest.mark.usefixtures("approved")
def test_a_failure_that_was_approved_fails_again(project: "Project") -> None:
    suite = json.loads((project.path / "a.eval.json").read_text(encoding="utf-8"))
    project.suite("a.eval.json", suite.pop("cases"), **suite, thresholds={"exact_match": 0.5})
    commit(project)
    assert project.run("--snapshot-update").code == 1
    since = commit(project)
    ran = project.run("--llmeval-affected=HEAD")
    assert (ran.code, ran.counts["failed"], ran.counts["carried"]) == (1, 1, 45)
    assert f"a0: carried from {since}, where it failed" in ran.section("FAILURES")
    everything = project.run()
    assert judged(ran)["a"][:2] == judged(everything)["a"][:2]
    assert judged(ran)["b"] == judged(everything)["b"]


@pytest.mark.usefixtures("approved")
def test_shards_merge_with_what_they_carried(project: "Project") -> None:
    project.write("prompts/answer.md", "y")
    for number in (1, 2):
        project.run("--llmeval-affected", f"--llmeval-shard={number}/2", f"--llmeval-report=part{number}.llmeval")
    assert main(["merge", "part1.llmeval", "part2.llmeval", "--report=merged.json"]) == 1
    merged = json.loads((project.path / "merged.json").read_text(encoding="utf-8"))["suites"]
    assert [(each["affected"]["ran"], each["affected"]["carried"]) for each in merged] == [(6, 0), (0, 40)]
    ran = project.run("--llmeval-affected")
    assert [each["gates"] for each in merged] == [each["gates"] for each in ran.suites.values()]


@pytest.mark.usefixtures("approved")
def test_an_approval_keeps_inputs_and_is_checked_once_elsewhere(project: "Project") -> None:
    git(project.path, "checkout", "-qb", "work")
    project.write("prompts/answer.md", "y")
    project.run("--llmeval-affected", "--snapshot-update")
    since = commit(project)
    assert "approved anew since" in project.run("--llmeval-affected=main").text
    asked(project)
    assert f"0 of 46 cases affected since {since}" in project.run("--llmeval-affected=HEAD").text
    assert "no run is approved" not in project.run("--llmeval-affected=HEAD~1").text
    assert asked(project) == [str(n) for n in range(6)]


def test_why_a_case_runs_is_said_by_input_and_commit(
    project: "Project", approved: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("prompts/answer.md", "y")
    change = commit(project, "Say y")

    def lines(*arguments: str) -> Sequence[str]:
        main(["affected", *arguments])
        printed = capsys.readouterr()
        return (printed.out or printed.err).splitlines()

    data = json.loads("".join(lines(approved, "--json")))
    assert data["line"] == f"6 of 46 cases affected since {approved}: prompts/answer.md (6)"
    assert "found 'mian', expected a commit, branch or tag" in lines("mian")[0]
    monkeypatch.setattr("pytest_llmeval.workbench._affected._collected", lambda _: data)
    first, second = lines(approved, "--why", "a.eval.json::a1")
    assert first == "a.eval.json::a1: runs: prompts/answer.md"
    assert second.endswith(f"; {change} Say y")
    assert lines(approved, "--why", "b1") == [f"b.eval.json::b1: carried from {approved}"]
    assert lines(approved, "--why", "none")[0].startswith("--why: no case 'none'")


def test_a_shallow_clone_says_how_deep_it_must_be(
    project: "Project", approved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("README.md", "more")
    commit(project)
    git(project.path, "clone", "-q", "--depth=1", f"file://{project.path}", str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone")
    with pytest.raises(_ShallowError, match="fetch-depth: 0"):
        clone.resolve(approved)
    event = project.write("event.json", '{"pull_request": {"commits": 12}}')
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    with pytest.raises(_ShallowError, match="fetch-depth: 14; the pull request has 12 commits"):
        clone.resolve(approved)


def test_a_share_of_the_others_is_refreshed(project: "Project", approved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del approved
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    ran = project.run("--llmeval-affected", "--llmeval-refresh=0.5", "b.eval.json")
    chosen = [case["id"] for case in ran.suites["b"]["cases"] if case.get("cause") == "refresh"]
    assert 10 < len(chosen) < 30
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700100000")
    again = project.run("--llmeval-affected", "--llmeval-refresh=0.5", "b.eval.json")
    assert chosen != [case["id"] for case in again.suites["b"]["cases"] if case.get("cause") == "refresh"]
    assert "expected --llmeval-affected with it" in project.run("--llmeval-refresh=0.5").text


def test_a_kept_run_is_carried_without_an_approval(project: "Project", approved: str) -> None:
    shutil.rmtree(project.path / "__llmeval__")
    lost = project.run("--llmeval-affected=kept.llmeval", "--llmeval-report=kept.llmeval")
    assert lost.suites["a"]["affected"]["causes"] == {"kept.llmeval: cannot be read: No such file or directory": 6}
    project.suite("b.eval.json", [{"id": "b0", "expected": "x", "prediction": "y"}], gates=["exact_match >= 0.5"])
    asked(project)
    ran = project.run("--llmeval-affected=kept.llmeval")
    assert asked(project) == []
    assert f"ran 1 of 7 cases since {approved}" in ran.text
    assert {case["carried"] for case in ran.suites["a"]["cases"]} == {approved}
    assert judged(ran)["a"][:2] == judged(lost)["a"][:2]
    assert ran.gates("b") == {"exact_match >= 0.5": "failed"}
    (project.path / "kept.llmeval").write_bytes(b"no run")
    assert "kept.llmeval: found something else" in project.run("--llmeval-affected=kept.llmeval").text


@pytest.mark.release
@pytest.mark.usefixtures("approved")
def test_answers_that_were_replayed_when_they_were_approved_are_asked_anew_even_if_carried_since(
    project: "Project",
) -> None:
    recorded = ("--llmeval-affected=HEAD", "--llmeval-predictions=p.jsonl", "--snapshot-update", "a.eval.json")
    for text in (AGENT.replace("prompts/", "./prompts/"), f"# replayed\n{AGENT}", None):  # the last run carries all
        if text is not None:
            project.write("agent.py", text)
        project.run(*recorded)
        git(project.path, "add", "-A")
        git(project.path, "commit", "-qm", "m", "--allow-empty")
    causes = project.run("--llmeval-affected=HEAD", "a.eval.json").suites["a"]["affected"]["causes"]
    assert causes == {"the approved run replayed recorded answers, and this run would ask": 6}


KINDS: Mapping[str, Mapping[str, Any]] = {
    "bulk": {"target": {"python": "agent:answer"}, "mode": "bulk"},
    "repeats": {"target": {"python": "agent:answer"}, "repeats": 2},
    "sample": {"target": {"python": "agent:answer"}, "sample": {"cases": 4}},
    "stop": {"target": {"python": "agent:answer"}, "stop": "when_decided"},
    "systems": {"systems": {"one": {"python": "agent:answer"}, "two": {"python": "other:answer"}}, "reference": "one"},
}
"""Suites whose cases run in ways of their own."""


def test_every_kind_of_suite_runs_what_is_affected_and_carries_the_rest(project: "Project") -> None:
    for folder, word in (("prompts", "agent"), ("styles", "other")):
        project.write(f"{word}.py", AGENT.replace("prompts", folder).replace("{value}", f"{word} {{value}}"))
        project.write(f"{folder}/answer.md", "x")
    cases = [{"id": f"c{n}", "input": f"{n}", "expected": f"x{n}" if n else "?"} for n in range(8)]
    for name, keys in KINDS.items():
        project.suite(f"{name}.eval.json", cases, snapshot=True, gates=["exact_match >= 0.5"], **keys)
    project.write(".gitignore", ".llmeval\n__pycache__\nreport*.json\nasked.txt\n")
    git(project.path, "init", "-qb", "main")
    commit(project)
    first = project.run("--llmeval-affected", "--snapshot-update", "--llmeval-stop=never")
    assert first.code == 0, first.text
    commit(project)
    asked(project)

    project.write("styles/answer.md", "y")  # of one system alone
    for name in ("bulk", "repeats", "sample", "stop"):
        rows = [{**each, "input": "9"} if each["id"] == "c7" else each for each in cases]
        project.suite(f"{name}.eval.json", rows, snapshot=True, gates=["exact_match >= 0.5"], **KINDS[name])
    ran = project.run("--llmeval-affected")
    found = {
        each["suite"]: ([case["id"] for case in each["cases"] if "carried" not in case], each["affected"]["causes"])
        for each in ran.report["suites"]
    }
    assert found == {
        **dict.fromkeys(("bulk", "repeats", "stop"), (["c7"], {"data row": 1})),
        "sample": ([], {}),  # which the changed case is not in
        "systems[one]": ([], {}),
        "systems[two]": ([f"c{n}" for n in range(8)], {"styles/answer.md": 8}),
    }
    every = sorted([*["agent", "9"] * 4, *["other"] * 8, *(str(n) for n in range(8))])
    assert asked(project) == every  # the repeated case twice
    assert ran.gates("bulk") == {"exact_match >= 0.5": "passed"}
    assert ran.suites["repeats"]["gates"][0]["value"] == ran.suites["stop"]["gates"][0]["value"] == 0.75
    assert "a sample of 4 of 8 cases; 4 of 4 cases carried" in ran.suites["sample"]["gates"][0]["reason"]
    assert ran.gates("systems[two]") == {"exact_match >= 0.5": "failed"}


SEEING = """\
from pathlib import Path

def see(value):
    Path("asked.txt").open("a").write(f"{value['name']}\\n")
    return str(value["scan"].width)
"""


def test_a_suite_that_leaves_state_to_one_that_runs_runs_too(project: "Project", workers: int) -> None:
    project.write(".gitignore", ".llmeval\n__pycache__\nreport*.json\n*.llmeval\n")
    project.write("kept.py", "X = 'none'\n")
    project.write("first.py", "import kept\n\ndef answer(value):\n    kept.X = 'x'\n    return 'x'\n")
    project.write("second.py", "import kept\n\ndef answer(value):\n    return kept.X\n")
    case = {"id": "a", "input": "1", "expected": "x"}
    for name, rows in (("first", [case]), ("second", [case]), ("third", [{**case, "prediction": "x"}])):
        target = {} if name == "third" else {"target": {"python": f"{name}:answer"}}
        project.suite(f"{name}.eval.json", rows, snapshot=True, **target)
    git(project.path, "init", "-qb", "main")
    commit(project)
    assert project.run("--snapshot-update").code == 0
    commit(project)
    assert "0 of 3 cases affected" in project.run("--llmeval-affected", "-q").text
    second = json.loads((project.path / "second.eval.json").read_text(encoding="utf-8"))
    project.suite("second.eval.json", [{**case, "input": "2"}], target=second["target"], snapshot=True)
    ran = project.run("--llmeval-affected", "-v", workers=workers)
    assert "ran 2 of 3 cases" in ran.text
    assert ran.suites["first"]["affected"]["causes"] == {"second.eval.json uses what it leaves": 1}


def test_a_changed_picture_affects_its_case_which_is_not_the_approved_one_any_more(project: "Project") -> None:
    project.write(".gitignore", ".llmeval\n__pycache__\nreport*.json\nasked.txt\n")
    project.write("app.py", SEEING)
    for name in "ab":
        (project.path / f"{name}.png").write_bytes(png(5, 4))
    cases = [{"id": name, "input": {"name": name, "scan": {"file": f"{name}.png"}}, "expected": "5"} for name in "ab"]
    project.suite("s.eval.yaml", cases, target="app:see", snapshot=True)
    git(project.path, "init", "-qb", "main")
    commit(project)
    assert project.run("--llmeval-affected", "--snapshot-update").code == 0
    commit(project, "approve")
    asked(project)
    assert project.run("--llmeval-affected").code == 0
    assert asked(project) == []
    (project.path / "a.png").write_bytes(png(5, 4, (0, 0, 255)))
    ran = project.run("--llmeval-affected")
    assert asked(project) == ["a"]
    assert ran.code == 1
    assert "not comparable: the data changed" in ran.suites["s"]["snapshot"][0]["reason"]
