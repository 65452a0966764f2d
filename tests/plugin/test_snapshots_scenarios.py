"""What becomes of score snapshots in every kind of run: the same with and without workers, on every syrupy."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project, Ran

WITHOUT = ("rerunfailures",)

CASES = [
    {"id": "one", "input": "one", "expected": "red", "prediction": "red"},
    {"id": "two", "input": "two", "expected": "blue", "prediction": "blue"},
    {"id": "three", "input": "three", "expected": "green", "prediction": "black"},
    {"id": "four", "input": "four", "expected": "white", "prediction": "grey"},
]
"""Half of them right: the snapshot says 0.5, so that a run can be better and worse."""

PASSED = {"exact_match": "PASSED", "f1": "PASSED", "pass_rate": "PASSED"}


def write_suite(
    project: "Project", name: str, right: int = 2, metrics: tuple[str, ...] = ("exact_match", "f1")
) -> None:
    """Write a suite of which the first cases are answered right."""
    cases = [
        {**case, "prediction": case["expected"] if number < right else "wrong"} for number, case in enumerate(CASES)
    ]
    project.suite(f"{name}.eval.yaml", cases, evaluators=[{"text": {"metrics": list(metrics)}}], snapshot=True)


def contents(project: "Project") -> dict[str, bytes]:
    folder = project.path / "__llmeval__"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}


def snapshots(ran: "Ran") -> dict[str, dict[str, str]]:
    """Return suite to metric to verdict."""
    found: dict[str, dict[str, str]] = {}
    for nodeid, verdict in ran.verdicts().items():
        suite, _, name = nodeid.partition("::snapshot[")
        if name:
            found.setdefault(suite.removesuffix(".eval.yaml"), {})[name.removesuffix("]")] = verdict
    return found


def summary(ran: "Ran") -> str:
    """Return the first line of syrupy's summary."""
    lines = ran.text.splitlines()
    for number, line in enumerate(lines):
        if "snapshot report summary" in line:
            return lines[number + 1]
    return ""


SUITES = ("better", "equal", "gone", "vanished", "worse")
_approved_once: dict[str, bytes] = {}


@pytest.fixture
def approved(project: "Project", monkeypatch: pytest.MonkeyPatch) -> "Project":
    """Suites of three metrics each, whose scores are approved."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in SUITES:
        write_suite(project, name)
    if not _approved_once:
        ran = project.run("--snapshot-update", without=WITHOUT)
        assert ran.code == 0, ran.text
        _approved_once.update(contents(project))
    (project.path / "__llmeval__").mkdir(exist_ok=True)
    for name, content in _approved_once.items():
        (project.path / "__llmeval__" / name).write_bytes(content)
    return project


@pytest.fixture
def changed(approved: "Project") -> "Project":
    """The same project after a change of the application, of the suites, and with a new one."""
    write_suite(approved, "better", 3)
    write_suite(approved, "worse", 1)
    write_suite(approved, "vanished", metrics=("exact_match", "rouge1"))
    write_suite(approved, "fresh")
    (approved.path / "gone.eval.yaml").unlink()
    return approved


def files(*suites: str) -> set[str]:
    return {f"{suite}.{suffix}" for suite in suites for suffix in ("cases.jsonl", "inputs.json", "scores.json")}


TOLD = {
    "better": PASSED,
    "equal": PASSED,
    "fresh": {"*": "FAILED"},
    "vanished": {"exact_match": "PASSED", "rouge1": "PASSED", "pass_rate": "PASSED", "f1": "FAILED"},
    "worse": {"exact_match": "FAILED", "f1": "FAILED", "pass_rate": "PASSED"},
}
WARNED = {**TOLD, "vanished": {**TOLD["vanished"], "f1": "PASSED"}}
NEW_ONLY = {**TOLD, "fresh": PASSED}
APPROVED = {**WARNED, "fresh": PASSED, "worse": PASSED}
UNCHANGED = dict.fromkeys(SUITES, PASSED)


@dataclass(frozen=True)
class Scenario:
    """A run after a change.

    Attributes:
        arguments: Of the command line.
        code: Exit code.
        verdicts: Suite to metric to verdict.
        counted: The first line of syrupy's summary.
        written: Score files that the run changed, added or deleted.
        change: What else is done to the project before.
    """

    arguments: tuple[str, ...]
    code: int = 0
    verdicts: dict[str, dict[str, str]] = field(default_factory=dict)
    counted: str = ""
    written: "set[str]" = field(default_factory=set)
    change: "Callable[[Project], object] | None" = None


def break_collection(project: "Project") -> None:
    project.write("test_bad.py", "import no_such_module")


def fail_once(project: "Project") -> None:
    """Leave a failed case behind for ``--lf``."""
    cases = [{**case, "thresholds": {"f1": 1}} for case in CASES]
    project.suite("equal.eval.yaml", cases, snapshot=True)
    project.run("equal.eval.yaml", without=WITHOUT)


SCENARIOS = {
    "compared": Scenario((), 1, TOLD, "3 snapshots failed. 9 snapshots passed. 2 snapshots unused."),
    "unused ones told only": Scenario(
        ("--snapshot-warn-unused",), 1, WARNED, "3 snapshots failed. 9 snapshots passed. 2 snapshots unused."
    ),
    "approved": Scenario(
        ("--snapshot-update",),
        0,
        APPROVED,
        "7 snapshots passed. 4 snapshots generated. 7 snapshots updated. 2 unused snapshots deleted.",
        files("better", "fresh", "gone", "vanished", "worse"),
    ),
    "new ones approved": Scenario(
        ("--snapshot-update-new-only",),
        1,
        NEW_ONLY,
        "2 snapshots failed. 9 snapshots passed. 3 snapshots generated. 2 snapshots unused.",
        files("fresh"),
    ),
    "some suites": Scenario(
        ("equal.eval.yaml", "better.eval.yaml"), 0, {"equal": PASSED, "better": PASSED}, "6 snapshots passed."
    ),
    "some suites approved": Scenario(
        ("equal.eval.yaml", "better.eval.yaml", "--snapshot-update"),
        0,
        {"equal": PASSED, "better": PASSED},
        "4 snapshots passed. 3 snapshots updated.",
        files("better"),
    ),
    "some cases": Scenario(
        ("worse.eval.yaml::one", "equal.eval.yaml", "--snapshot-update"), 0, {"equal": PASSED}, "3 snapshots passed."
    ),
    "-k": Scenario(("-k", "one or two")),
    "approved under -k": Scenario(("-k", "one or two", "--snapshot-update")),
    "--lf": Scenario(("equal.eval.yaml", "--lf"), 1, change=fail_once),
    "approved in spite of a collection error": Scenario(
        ("--snapshot-update", "--continue-on-collection-errors"),
        1,
        TOLD,
        "3 snapshots failed. 9 snapshots passed.",
        change=break_collection,
    ),
}


WITH_WORKERS = ("compared", "approved", "approved under -k", "approved in spite of a collection error")


@pytest.mark.parametrize(
    ("name", "workers"), [*((each, 0) for each in SCENARIOS), *((each, 2) for each in WITH_WORKERS)]
)
def test_a_run_after_a_change(changed: "Project", name: str, workers: int) -> None:
    scenario = SCENARIOS[name]
    if scenario.change is not None:
        scenario.change(changed)
    before = contents(changed)
    ran = changed.run("-v", *scenario.arguments, workers=workers, without=WITHOUT)
    after = contents(changed)
    written = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert (ran.code, snapshots(ran), summary(ran), written) == (
        scenario.code,
        scenario.verdicts,
        scenario.counted,
        scenario.written,
    ), ran.text


def test_an_approval_of_nothing_new_changes_no_byte(approved: "Project") -> None:
    before = contents(approved)
    ran = approved.run("-v", "--snapshot-update", workers=2, without=WITHOUT)
    assert (ran.code, snapshots(ran), summary(ran)) == (0, UNCHANGED, "15 snapshots passed.")
    assert contents(approved) == before


def test_a_suite_is_not_judged_if_a_worker_crashes(approved: "Project") -> None:
    cases = [*CASES[:3], {"id": "four", "input": "dies", "expected": "x"}]
    approved.write("bot.py", "import os, signal\ndef answer(word): os.kill(os.getpid(), signal.SIGKILL)\n")
    approved.suite("worse.eval.yaml", cases, snapshot=True, target="bot:answer")
    before = contents(approved)
    arguments = ("worse.eval.yaml", "equal.eval.yaml", "-v", "--snapshot-update", "--dist=loadfile")
    # xdist runs a case that kills its worker in new workers, time and again.
    ran = approved.run(*arguments, "--max-worker-restart=1", workers=2, without=WITHOUT)
    assert snapshots(ran)["worse"] == {"*": "SKIPPED"}
    assert contents(approved) == before
    assert "snapshot not evaluated: 3 of 4 cases ran; a worker crashed" in ran.text


def test_a_run_that_ends_early_approves_nothing(changed: "Project", workers: int) -> None:
    changed.write("test_z.py", "def test_z(): assert False\n")
    before = contents(changed)
    ran = changed.run("-v", "-x", "--snapshot-update", workers=workers, without=WITHOUT)
    assert ran.code != 0
    assert contents(changed) == before


def test_details_name_what_was_updated_generated_and_deleted(changed: "Project") -> None:
    ran = changed.run("--snapshot-update", "--snapshot-details", without=WITHOUT)
    file = "(__llmeval__/{}.scores.json)"
    for line in (
        f"Updated (suite), exact_match, f1 {file.format('worse')}",
        f"Generated exact_match, f1, pass_rate {file.format('fresh')}",
        f"Deleted gone {file.format('gone')}",
        f"Deleted f1 {file.format('vanished')}",
    ):
        assert line in ran.text.splitlines(), ran.text


def test_every_number_of_workers_writes_the_same_bytes(changed: "Project") -> None:
    before = contents(changed)
    written = []
    for workers in (0, 4):
        for name, content in before.items():
            (changed.path / "__llmeval__" / name).write_bytes(content)
        changed.run("--snapshot-update", workers=workers, without=WITHOUT)
        written.append(contents(changed))
    assert written[0] == written[1] != before


def test_without_llmeval_an_update_leaves_score_files_alone(approved: "Project") -> None:
    approved.write("test_amber.py", "def test_amber(snapshot): assert snapshot == 1\n")
    before = contents(approved)
    ran = approved.run("--snapshot-update", workers=2, llmeval=False, without=WITHOUT)
    assert summary(ran) == "1 snapshot generated."
    approved.write("test_amber.py", "def test_other(snapshot): assert snapshot == 2\n")
    ran = approved.run("--snapshot-update", workers=2, llmeval=False, without=WITHOUT)
    assert "1 unused snapshot deleted." in summary(ran)
    assert contents(approved) == before


SPOILT: "dict[str, tuple[str, Callable[[str], str], str]]" = {
    "truncated": ("scores.json", lambda text: text[:200], "scores.json:"),
    "empty": ("scores.json", lambda text: text[:0], "expected"),
    "value": (
        "scores.json",
        lambda text: text.replace('"f1": {"value": 0.5', '"f1": {"value": 0.4'),
        "metrics.f1.value: found 0.4, expected 0.5, which was approved last",
    ),
    "type": (
        "scores.json",
        lambda text: text.replace('"f1": {"value": 0.5', '"f1": {"value": "half"'),
        "metrics.f1.value: found the text 'half', expected a number",
    ),
    "newer": (
        "scores.json",
        lambda text: text.replace('"schema": 1', '"schema": 2'),
        "schema: found 2, expected 1: the file is from a newer version of pytest-llmeval-suite",
    ),
    "key": (
        "scores.json",
        lambda text: text.replace('"schema"', '"note": 1, "schema"'),
        "unknown key note",
    ),
    "twice": ("scores.json", lambda text: text.replace('"schema"', '"schema": 1, "schema"'), "'schema' twice"),
    "forgotten": (
        "scores.json",
        lambda text: text.replace('"f1": 0.5, ', ""),
        "the value of 'f1' is missing, expected 0.5",
    ),
    "counts": ("cases.jsonl", lambda text: text.replace('"f1": 1', '"f1": 0'), "found content with fingerprint"),
    "half": ("cases.jsonl", lambda text: text[:50], "found content with fingerprint"),
}


@pytest.mark.parametrize("arguments", [(), ("--snapshot-update",)], ids=["compared", "approved"])
def test_a_file_that_is_not_as_approved_is_told_and_not_overwritten(
    project: "Project", arguments: tuple[str, ...]
) -> None:
    for name in (*SPOILT, "sound"):
        write_suite(project, name)
    project.run("--snapshot-update", without=WITHOUT)
    for name, (suffix, spoil, _) in SPOILT.items():
        path = project.path / "__llmeval__" / f"{name}.{suffix}"
        text = path.read_text(encoding="utf-8")
        assert spoil(text) != text
        path.write_text(spoil(text), encoding="utf-8")
        write_suite(project, name, 1)
    before = contents(project)
    ran = project.run("-v", *arguments, without=WITHOUT)
    assert ran.code == 1
    assert snapshots(ran) == {"sound": PASSED, **{name: {"*": "FAILED"} for name in SPOILT}}
    for name, (suffix, _, fault) in SPOILT.items():
        told = ran.section("FAILURES").partition(f"\n{name}.eval.yaml")[0].rpartition("snapshot[*]")[2]
        assert f"{name}.{suffix}" in told, told
        assert fault in told, told
        assert "nothing was changed: restore the file from version control" in told
    assert contents(project) == before


def test_a_file_that_cannot_be_written_fails_the_run(project: "Project") -> None:
    write_suite(project, "a")
    (project.path / "__llmeval__" / "a.cases.jsonl").mkdir(parents=True)
    ran = project.run("-v", "--snapshot-update", without=WITHOUT)
    assert ran.code == 1
    assert snapshots(ran) == {"a": {"*": "FAILED"}}
    assert "not written: Is a directory" in ran.section("FAILURES")
    assert not (project.path / "__llmeval__" / "a.scores.json").exists()


def test_each_approval_is_remembered_and_each_run_noted(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for right in (2, 1, 1, 3):
        write_suite(project, "a", right)
        project.run("--snapshot-update", without=WITHOUT)
    project.run("-k", "one", without=WITHOUT)
    data = json.loads((project.path / "__llmeval__" / "a.scores.json").read_text(encoding="utf-8"))
    assert [each["values"]["f1"] for each in data["history"]] == [0.5, 0.25, 0.75]
    assert {each["time"] for each in data["history"]} == {"2023-11-14"}
    lines = (project.path / ".llmeval" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    noted = [json.loads(line) for line in lines]
    assert [each["values"]["f1"] for each in noted] == [0.5, 0.25, 0.25, 0.75]
    assert (project.path / ".llmeval" / ".gitignore").read_text(encoding="utf-8") == "*\n"
