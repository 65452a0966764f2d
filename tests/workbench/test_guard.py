"""The subcommand guard: what pull requests ask less of, in real repositories."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from builders import recorded_case, recorded_suite, write_run
from msgspec import structs
from running import warm_run

from pytest_llmeval.baselines import TestScores, render
from pytest_llmeval.baselines._scores import Approval
from pytest_llmeval.cli import main
from pytest_llmeval.suites import KEYS
from pytest_llmeval.workbench._guard import Ruling, compare_suite_files, guard_text
from pytest_llmeval.workbench._guarding import Loosening

SHOP = r"""suite: shop
evaluators:
  - text: {metrics: [exact_match, f1]}
  - judge:
      mode: rubric
      rubric:
        criteria: Is correct and polite.
        levels: [{score: 0, meaning: bad}, {score: 1, meaning: good}]
        pass_mark: 1
judge: {model: "openai:strict"}
checks:
  - max_words: 40
thresholds: {f1: 0.5}
gates:
  - exact_match >= 0.7
  - {metric: f1, max_drop: 0.02}
cases:
  - id: refund
    input: How long do refunds take?
    expected: Refunds take 30 days
    prediction: Refunds take 30 days
    checks:
      - regex: '\b30 days\b'
  - id: order
    input: Which order was it?
    expected: Order 42
    prediction: Order 41
    labels: {topic: orders}
  - id: hours
    input: When do you open?
    expected: At nine
    prediction: At nine
"""

APP = """
import pytest
import pytest_llmeval as ev


def test_score():
    assert ev.score("text", []) is not None
    assert answer() > 0.8
"""

GIT = ("git", "-c", "user.name=n", "-c", "user.email=agent@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "-q", "-b", "main")
    (folder / "evals").mkdir()
    (folder / "evals" / "shop.eval.yaml").write_text(SHOP, encoding="utf-8")
    (folder / "test_app.py").write_text(APP, encoding="utf-8")
    (folder / "CODEOWNERS").write_text("* owner@example.org @olga\n", encoding="utf-8")
    commit(folder, "Evaluate the shop")
    return folder


Guard: TypeAlias = Callable[..., tuple[int, str]]


def _quick(run: Callable[..., Any], command: Sequence[str], **options: Any) -> Any:
    """Start Python from a warm process, and other programs as they are."""
    return (warm_run if command[0] == sys.executable else run)(command, **options)


@pytest.fixture
def guard(origin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Guard:
    """Return a function that changes texts of a clone, commits, and runs the command."""
    folder = tmp_path / "clone"
    shutil.copytree(origin, folder)
    git(folder, "switch", "-q", "-c", "feature")
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("subprocess.run", partial(_quick, subprocess.run))

    def run(
        *changes: tuple[str, str], file: str = "evals/shop.eval.yaml", options: tuple[str, ...] = ()
    ) -> tuple[int, str]:
        for old, new in changes:
            text = Path(file).read_text(encoding="utf-8")
            assert old in text
            Path(file).write_text(text.replace(old, new), encoding="utf-8")
        if changes:
            commit(folder, "Change")
        code = main(["guard", *options])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


HARD_CASE = SHOP[SHOP.index("  - id: order") : SHOP.index("  - id: hours")]

CHEATS = {
    "limit lowered": (
        ("exact_match >= 0.7", "exact_match >= 0.5"),
        "gate exact_match >= 0.7: loosened",
        "- exact_match",
    ),
    "hard case deleted": ((HARD_CASE, ""), "(base)  case order: removed", "- id: order"),
    "expectation copied": (
        ("expected: Order 42", "expected: Order 41"),
        "expected of case order: changed to what was answered: Order 42 -> Order 41",
        "expected: Order 42",
    ),
    "regex widened": ((r"'\b30 days\b'", "'.*'"), "check regex of case refund: changed", "- regex"),
    "case excused": (
        ("labels: {topic: orders}", "labels: {topic: orders}\n    tags: [xfail]"),
        "tag xfail of case order: added",
        "labels:",
    ),
    "rubric softened": (("Is correct and polite.", "Is polite."), "judging evaluator judge: changed", "- judge:"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_cheating_pull_request_is_named_with_file_and_line(guard: Guard, cheat: str) -> None:
    change, text, part = CHEATS[cheat]
    code, printed = guard(change)
    assert code == 1
    line = line_of(SHOP, part) + ("tags" in change[1])
    place = f"evals/shop.eval.yaml:{line}"
    assert any(each.startswith(place) and text in each for each in printed.splitlines()), printed
    if cheat == "regex widened":
        assert "mutants of case refund" in printed, "answers that the pattern noticed before must pass now"


HONEST = {
    "case added": ("cases:\n", "cases:\n  - {id: new, input: x, expected: a, prediction: a, tags: [xfail]}\n"),
    "limits raised": ("exact_match >= 0.7\n", "{metric: exact_match, min: 0.75, min_scored: 2}\n  - f1 >= 0.1\n"),
    "check tightened": ("max_words: 40", "max_words: 30\n  - not_contains: As an AI"),
    "answers and target changed": ("prediction: Order 41", "prediction: Order 42"),
    "case renamed": ("id: order", "id: which-order"),
    "rewritten": ("suite: shop\n", "# The shop.\nsuite: shop\ndescription: Questions to the shop\n"),
}


@pytest.mark.parametrize("honest", HONEST)
def test_honest_pull_request_passes(guard: Guard, honest: str) -> None:
    code, printed = guard(HONEST[honest])
    assert (code, "nothing asks for less" in printed) == (0, True), printed


def test_key_that_decides_scores_is_reported_unless_something_says_what_asks_for_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KEYS, "description", structs.replace(KEYS["description"], decides="scores"))
    states = {"base": SHOP, "head": SHOP.replace("suite: shop", "suite: shop\ndescription: Of the shop", 1)}
    for name, text in states.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.eval.yaml").write_text(text, encoding="utf-8")
    question = {"changed": [], **{name: str(tmp_path / name) for name in states}}
    findings = compare_suite_files(question)["findings"]
    assert [(each.subject, each.change) for each in findings] == [("key description", "changed")]


def test_every_setting_that_asks_for_less_is_found(guard: Guard) -> None:
    code, printed = guard(
        ("thresholds: {f1: 0.5}\n", "abstained: allowed\nsample: {cases: 2}\n"),
        ("max_drop: 0.02", "max_drop: 0.2, undecided: pass"),
        ("strict", "lenient"),
        ("  - max_words: 40\n", "  - max_words: 400\n"),
        ("topic: orders", "topic: other"),
        ("Which order was it?", "Which order?"),
    )
    assert code == 1
    subjects = [
        "threshold f1: removed",
        "key abstained: changed",
        "key sample: changed",
        "max_drop 0.02, undecided observed -> max_drop 0.2, undecided pass",
        "judge: changed",
        "check max_words: changed",
        "labels of case order: changed",
        "input of case order: changed",
    ]
    assert [each for each in subjects if each not in printed] == []
    assert "case hours: removed" not in printed, "a sample that leaves a case out deletes none"


def test_gate_on_a_gain_that_asks_for_less_is_named_by_its_key(guard: Guard) -> None:
    systems = "suite: shop\nsystems: {old: {predictions: a.jsonl}, new: {predictions: a.jsonl}}\n"
    gain = "gates:\n  - {metric: f1, system: new, against: old, min_gain: 0.1}\n"
    text = SHOP.replace("suite: shop\n", systems).replace("gates:\n", gain)
    Path("evals/a.jsonl").write_text('{"id": "refund", "prediction": "Refunds take 30 days"}\n', encoding="utf-8")
    Path("evals/shop.eval.yaml").write_text(text, encoding="utf-8")
    commit(Path(), "Compare systems")
    git(Path(), "branch", "-f", "main")
    assert guard(("min_gain: 0.1", "min_gain: 0.2"))[0] == 0
    git(Path(), "branch", "-f", "main")
    code, printed = guard(("min_gain: 0.2", "min_gain: 0.05"))
    assert (code, "loosened: min_gain 0.2 -> min_gain 0.05" in printed) == (1, True), printed


def test_arm_that_may_read_what_it_must_not_is_named(guard: Guard) -> None:
    arms = "suite: shop\nsystems:\n  without: {command: [a], workspace: {must_not_read: [skills]}}\n"
    Path("evals/shop.eval.yaml").write_text(SHOP.replace("suite: shop\n", arms), encoding="utf-8")
    commit(Path(), "Add an arm")
    git(Path(), "branch", "-f", "main")
    assert "evals/shop.eval.yaml:3  must_not_read: removed" in guard(("must_not_read: [skills]", ""))[1]


def test_suite_that_moves_is_compared_and_one_that_is_gone_or_broken_is_named(guard: Guard) -> None:
    Path("quality").mkdir()
    Path("evals/shop.eval.yaml").rename("quality/service.eval.yaml")
    assert guard()[0] == 0
    Path("quality/service.eval.yaml").write_text("evaluators: nothing\n", encoding="utf-8")
    assert "evals/shop.eval.yaml:1 (base)  suite shop: removed" in guard()[1]
    Path("evals/shop.eval.yaml").write_text("evaluators: nothing\n", encoding="utf-8")
    assert "suite: cannot be read" in guard()[1]


def test_python_tests_that_assert_less_are_named(guard: Guard) -> None:
    loosened = ("answer() > 0.8", "answer() > 0.1"), ("def test_score", "@pytest.mark.xfail\ndef test_score")
    code, printed = guard(*loosened, file="test_app.py")
    assert code == 1
    assert "test_app.py:8 (base)  assertion in test_score: removed or changed: answer() > 0.8" in printed
    assert "mark of test_score: added" in printed


def test_approved_scores_and_failures_are_compared(guard: Guard) -> None:
    folder = Path("evals/__llmeval__")
    folder.mkdir()
    scores, failures = folder / "app.scores.json", folder / "shop.failures.json"

    def approve(value: float, unmet: str) -> None:
        approval = Approval("2026-11-01", None, {"test_score: f1": value})
        content = TestScores("test_app.py", {"test_score": {"f1": value}}, (approval,))
        scores.write_text(render(content), encoding="utf-8")
        failures.write_text(json.dumps({"cases": {"order": [unmet]}, "schema": 1}), encoding="utf-8")

    approve(0.8, "f1")
    commit(Path(), "Approve")
    git(Path(), "branch", "-f", "main")
    assert guard()[0] == 0
    approve(0.2, "exact_match")
    printed = guard()[1]
    assert "app.scores.json:9  approved test_score: f1: approved lower: 0.8000 -> 0.2000" in printed
    assert "shop.failures.json:1  failure of case order: approved: exact_match" in printed


def test_approved_tools_that_are_gone_are_named_and_changed_ones_are_noted(guard: Guard) -> None:
    tools = [{"name": "refund", "description": "Pay back."}, {"name": "status"}]
    Path("tools.json").write_text(json.dumps({"tools": tools}, indent=1), encoding="utf-8")
    commit(Path(), "Approve tools")
    git(Path(), "branch", "-f", "main")
    code, text = guard(("Pay back.", "Pay back an order."), file="tools.json")
    assert code == 0
    assert "tools.json:3  approved tool refund: approved otherwise: " in text
    code, text = guard((',\n  {\n   "name": "status"\n  }', ""), file="tools.json")
    assert code == 1
    assert "tools.json:7 (base)  approved tool status: removed" in text
    Path("tools.json").unlink()
    assert "tools.json:1 (base)  approved tools: removed, or cannot be read" in guard()[1]


def test_allowed_finding_needs_a_reason_and_an_owner(guard: Guard, tmp_path: Path) -> None:
    folder = Path.cwd()
    allow = folder / "allow.yaml"
    allow.write_text(json.dumps({"allow": [{"finding": "evals/*::gate exact*", "reason": "Measured anew."}]}))
    lowered = ("exact_match >= 0.7", "exact_match >= 0.6")
    options = ("--allow", "allow.yaml", "-o", str(tmp_path / "table.md"), "--json", str(tmp_path / "found.json"))
    code, printed = guard(lowered, options=options)
    assert code == 2
    assert "found a change by agent@example.org, expected one by an owner" in printed

    git(folder, "commit", "-q", "--amend", "--author=Olga <1+olga@users.noreply.github.com>", "--no-edit")
    code, printed = guard(options=options)
    assert (code, "0 findings not allowed, 1 allowed" in printed) == (0, True), printed
    assert "allowed: Measured anew." in (tmp_path / "table.md").read_text(encoding="utf-8")
    run = write_run(tmp_path / "run.json", recorded_suite([recorded_case("a")]))
    assert main(["comment", str(run), "--guard", str(tmp_path / "table.md"), "-o", str(tmp_path / "comment.md")]) == 0
    assert "allowed: Measured anew." in (tmp_path / "comment.md").read_text(encoding="utf-8")
    (found,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["findings"]
    assert (found["file"], found["allowed"]) == ("evals/shop.eval.yaml", "Measured anew.")

    allow.write_text(json.dumps({"allow": [{"finding": "x", "reason": " "}]}))
    assert "found an empty text" in guard(options=options)[1]
    allow.write_text(json.dumps({"allow": [{"finding": "x", "reason": "y"}]}))
    assert "found changes that are not committed" in guard(options=options)[1]


def test_repository_without_the_base_says_what_to_fetch(
    guard: Guard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        "found no commit nowhere, expected a branch or commit that is fetched"
        in guard(options=("--base", "nowhere"))[1]
    )
    git(Path(), "switch", "-q", "--orphan", "other")
    git(Path(), "commit", "-q", "--allow-empty", "-m", "Alone")
    code, printed = guard(options=("--base", "main"))
    assert (code, "fetch the history" in printed) == (2, True)
    assert main(["guard", str(tmp_path)]) == 2
    assert "not a git repository" in capsys.readouterr().err


def test_table_is_safe_with_hostile_text() -> None:
    table = guard_text([Ruling(Loosening("a.yaml", 3, "case <b>|x", "removed", "@team ![x](http://y)"), "")], "0" * 40)
    assert "<b>" not in table
    assert "![x]" not in table.replace("`@team ![x](http://y)`", "")


def test_changed_suite_must_notice_wrong_answers(guard: Guard, capsys: pytest.CaptureFixture[str]) -> None:
    del guard
    assert main(["mutate", "--changed"]) == 0
    assert "no suite differs" in capsys.readouterr().out
    blind = (
        "evaluators: [{text: {metrics: [f1]}}]\nchecks: [max_words: 90]\ncases: [{id: a, expected: x, prediction: x}]\n"
    )
    Path("new.eval.yaml").write_text(blind, encoding="utf-8")
    assert main(["mutate", "--changed"]) == 1
    assert "new:" in capsys.readouterr().out
    Path("new.eval.yaml").write_text(f"{blind}thresholds: {{f1: 1}}\n", encoding="utf-8")
    assert main(["mutate", "--changed"]) == 0
    capsys.readouterr()
    Path("new.eval.yaml").write_text(blind.replace(", prediction: x", ""), encoding="utf-8")
    assert main(["mutate", "--changed"]) == 1
    assert "found no case with an answer that passes" in capsys.readouterr().err


def test_repository_hidden_in_the_folder_neither_runs_nor_becomes_the_base(guard: Guard, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    git(hidden, "init", "-q", "-b", "main")
    lowered = ("exact_match >= 0.7", "exact_match >= 0.1")
    (hidden / "shop.eval.yaml").write_text(SHOP.replace(*lowered), encoding="utf-8")
    commit(hidden, "Lower")
    for name in ("HEAD", "objects", "refs", "index"):
        move = shutil.copytree if (hidden / ".git" / name).is_dir() else shutil.copy
        move(hidden / ".git" / name, Path("evals", name))
    settings = f'[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch {ran}; false #"\n'
    Path("evals/config").write_text(settings, encoding="utf-8")
    code, printed = guard(lowered, options=("evals",))
    assert (code, "gate exact_match >= 0.7: loosened" in printed) == (1, True), printed
    assert not ran.exists()


def test_repository_inside_another_is_refused_unless_it_is_a_submodule(guard: Guard, tmp_path: Path) -> None:
    assert guard(("exact_match >= 0.7", "exact_match >= 0.6"))[0] == 1
    git(Path("evals"), "init", "-q", "-b", "main")
    commit(Path("evals"), "Begin")
    code, printed = guard(options=("evals",))
    assert (code, "and no submodule of it" in printed) == (2, True), printed
    shutil.rmtree("evals/.git")
    shutil.copytree("evals", tmp_path / "part")
    git(tmp_path / "part", "init", "-q", "-b", "main")
    commit(tmp_path / "part", "Begin")
    git(Path(), "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "part"), "part")
    code, printed = guard(options=("part",))
    assert (code, "nothing asks for less" in printed) == (0, True), printed


HOSTILE = {
    "acquits itself": "import pytest_llmeval.workbench._guard as g\ng._lines = lambda *_: []\ng.Ruling.fails = False\n",
    "exits": "import os\nos._exit(0)\n",
}


@pytest.mark.parametrize("conftest", HOSTILE.values(), ids=HOSTILE)
def test_hostile_conftest_does_not_reach_the_ruling(guard: Guard, conftest: str) -> None:
    Path("conftest.py").write_text(conftest, encoding="utf-8")
    code, printed = guard(("exact_match >= 0.7", "exact_match >= 0.5"))
    assert (code, "gate exact_match >= 0.7: loosened" in printed) == (1, True), printed
    assert "conftest, statement: new" in printed


def test_conftest_reads_no_secret_from_its_environment(
    guard: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "secret")
    seen = tmp_path / "seen"
    text = f"import os, pathlib\npathlib.Path({str(seen)!r}).write_text(repr(dict(os.environ)))\n"
    Path("conftest.py").write_text(text, encoding="utf-8")
    guard()
    assert "SHOP_TOKEN" not in seen.read_text(encoding="utf-8")
    assert "PATH" in seen.read_text(encoding="utf-8")
