"""The subcommand guard: what pull requests ask less of, in real repositories."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from builders import recorded_case, recorded_suite, write_run
from msgspec import structs
from running import warm_run

from pytest_llmeval.baselines._scores import Approval, TestScores
from pytest_llmeval.cli import main
from pytest_llmeval.suites import KEYS
from pytest_llmeval.workbench._guard import Ruling, _lines, compare_suite_files, guard_text
from pytest_llmeval.workbench._loosening import Loosening

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
        if changes:
            Path(file).write_text(changed(Path(file).read_text(encoding="utf-8"), *changes), encoding="utf-8")
            commit(folder, "Change")
        code = main(["guard", *options])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


SUITE = "evals/shop.eval.yaml"
Compare: TypeAlias = Callable[[Mapping[str, str], Mapping[str, str]], tuple[int, str]]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Return a function that says of suite files and approved files in two states what the command says."""

    def run(base: Mapping[str, str], head: Mapping[str, str]) -> tuple[int, str]:
        with TemporaryDirectory(dir=tmp_path) as folder:
            states = {"base": base, "head": head}
            for state, files in states.items():
                for name, text in files.items():
                    path = Path(folder, state, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
            question = {"changed": [], **{state: str(Path(folder, state)) for state in states}}
            judged = [Ruling(finding, "") for finding in sorted(compare_suite_files(question)["findings"])]
        return int(any(ruling.fails for ruling in judged)), "\n".join(_lines(judged, "0" * 40, ()))

    return run


def changed(text: str, *changes: tuple[str, str]) -> str:
    """Return a text with others in it."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


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
def test_cheating_pull_request_is_named_with_file_and_line(compare: Compare, cheat: str) -> None:
    change, text, part = CHEATS[cheat]
    code, printed = compare({SUITE: SHOP}, {SUITE: changed(SHOP, change)})
    assert code == 1
    line = line_of(SHOP, part) + ("tags" in change[1])
    place = f"{SUITE}:{line}"
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
def test_honest_pull_request_passes(compare: Compare, honest: str) -> None:
    code, printed = compare({SUITE: SHOP}, {SUITE: changed(SHOP, HONEST[honest])})
    assert (code, "nothing asks for less" in printed) == (0, True), printed


def test_key_that_decides_scores_is_reported_unless_something_says_what_asks_for_less(
    compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KEYS, "description", structs.replace(KEYS["description"], decides="scores"))
    described = changed(SHOP, ("suite: shop", "suite: shop\ndescription: Of the shop"))
    findings = [line for line in compare({SUITE: SHOP}, {SUITE: described})[1].splitlines() if line.startswith(SUITE)]
    assert [line.partition("  ")[2].partition(": ")[::2] for line in findings] == [
        ("key description", "changed: Of the shop")
    ]


def test_every_setting_that_asks_for_less_is_found(compare: Compare) -> None:
    head = changed(
        SHOP,
        ("thresholds: {f1: 0.5}\n", "abstained: allowed\nsample: {cases: 2}\nuncalibrated: allow\n"),
        ("max_drop: 0.02", "max_drop: 0.2, undecided: pass"),
        ("strict", "lenient"),
        ("  - max_words: 40\n", "  - max_words: 400\n"),
        ("topic: orders", "topic: other"),
        ("Which order was it?", "Which order?"),
    )
    code, printed = compare({SUITE: SHOP}, {SUITE: head})
    assert code == 1
    subjects = [
        "threshold f1: removed",
        "key abstained: changed",
        "key sample: changed",
        "key uncalibrated: changed: allow",
        "max_drop 0.02, undecided observed -> max_drop 0.2, undecided pass",
        "judge: changed",
        "check max_words: changed",
        "labels of case order: changed",
        "input of case order: changed",
    ]
    assert [each for each in subjects if each not in printed] == []
    assert "case hours: removed" not in printed, "a sample that leaves a case out deletes none"


def test_gate_on_a_gain_that_asks_for_less_is_named_by_its_key(compare: Compare) -> None:
    systems = "suite: shop\nsystems: {old: {predictions: a.jsonl}, new: {predictions: a.jsonl}}\n"
    gain = "gates:\n  - {metric: f1, system: new, against: old, min_gain: 0.1}\n"
    text = changed(SHOP, ("suite: shop\n", systems), ("gates:\n", gain))
    answers = {"evals/a.jsonl": '{"id": "refund", "prediction": "Refunds take 30 days"}\n'}
    more, less = (changed(text, ("min_gain: 0.1", f"min_gain: {each}")) for each in (0.2, 0.05))
    assert compare({**answers, SUITE: text}, {**answers, SUITE: more})[0] == 0
    code, printed = compare({**answers, SUITE: more}, {**answers, SUITE: less})
    assert (code, "loosened: min_gain 0.2 -> min_gain 0.05" in printed) == (1, True), printed


def test_arm_that_may_read_what_it_must_not_is_named(compare: Compare) -> None:
    arms = "suite: shop\nsystems:\n  without: {command: [a], workspace: {must_not_read: [skills]}}\n"
    text = changed(SHOP, ("suite: shop\n", arms))
    printed = compare({SUITE: text}, {SUITE: changed(text, ("must_not_read: [skills]", ""))})[1]
    assert f"{SUITE}:3  must_not_read: removed" in printed


def test_suite_that_moves_is_compared_and_one_that_is_gone_or_broken_is_named(compare: Compare) -> None:
    moved, broken = "quality/service.eval.yaml", "evaluators: nothing\n"
    assert compare({SUITE: SHOP}, {moved: SHOP})[0] == 0
    assert f"{SUITE}:1 (base)  suite shop: removed" in compare({SUITE: SHOP}, {moved: broken})[1]
    assert "suite: cannot be read" in compare({SUITE: SHOP}, {moved: broken, SUITE: broken})[1]


def test_python_tests_that_assert_less_are_named(guard: Guard) -> None:
    loosened = ("answer() > 0.8", "answer() > 0.1"), ("def test_score", "@pytest.mark.xfail\ndef test_score")
    code, printed = guard(*loosened, file="test_app.py")
    assert code == 1
    assert "test_app.py:8 (base)  assertion in test_score: removed or changed: answer() > 0.8" in printed
    assert "mark of test_score: added" in printed


def test_approved_scores_and_failures_are_compared(compare: Compare) -> None:
    def approved(value: float, unmet: str) -> dict[str, str]:
        approval = Approval("2026-11-01", None, {"test_score: f1": value})
        content = TestScores("test_app.py", {"test_score": {"f1": value}}, (approval,))
        failures = json.dumps({"cases": {"order": [unmet]}, "schema": 1})
        return {"__llmeval__/app.scores.json": content.text, "__llmeval__/shop.failures.json": failures}

    before = approved(0.8, "f1")
    assert compare(before, before)[0] == 0
    code, printed = compare(before, approved(0.2, "exact_match"))
    assert code == 1
    assert "app.scores.json:9  approved test_score: f1: approved lower: 0.8000 -> 0.2000" in printed
    assert "shop.failures.json:1  failure of case order: approved: exact_match" in printed


def test_approved_tools_that_are_gone_are_named_and_changed_ones_are_noted(compare: Compare) -> None:
    text = json.dumps({"tools": [{"name": "refund", "description": "Pay back."}, {"name": "status"}]}, indent=1)
    before = {"tools.json": text}
    code, printed = compare(before, {"tools.json": changed(text, ("Pay back.", "Pay back an order."))})
    assert code == 0
    assert "tools.json:3  approved tool refund: approved otherwise: " in printed
    code, printed = compare(before, {"tools.json": changed(text, (',\n  {\n   "name": "status"\n  }', ""))})
    assert code == 1
    assert "tools.json:7 (base)  approved tool status: removed" in printed
    assert "tools.json:1 (base)  approved tools: removed, or cannot be read" in compare(before, {})[1]


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
    assert "unknown commit nowhere: fetch the branch or commit" in guard(options=("--base", "nowhere"))[1]
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
    assert "no case has an answer that passes" in capsys.readouterr().err


@pytest.mark.parametrize("entry", ["", "evals", "environment/bin"])
def test_judge_that_could_import_from_the_repository_refuses(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setattr(sys, "prefix", str(Path("environment").resolve()))
    monkeypatch.setattr(sys, "path", [str(Path(entry).resolve()) if entry else "", *sys.path])
    if entry.startswith("environment"):
        assert guard() == (0, f"against {git(Path(), 'rev-parse', 'HEAD')[:12]}: nothing asks for less\n")
        Path(entry).mkdir(parents=True)
        Path(entry, "json.py").touch()
        commit(Path(), "Add a module")
    code, printed = guard()
    assert (code, "could run in this process; expected `llmeval guard`" in printed) == (2, True), printed


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


HOSTILE = """\
import os, pathlib
import pytest_llmeval.workbench._collecting as theirs
import pytest_llmeval.workbench._guard as judge

judge._lines = lambda *_: []
judge.Ruling.fails = False
pathlib.Path(SEEN).write_text(repr(dict(os.environ)))
(pathlib.Path(os.environ["HOME"]).parent / "collected.json").write_bytes(
    theirs.encode(("", theirs.StateDump(True, [], {}, {}, {}, [], [], [], {}, [])))
)
os._exit(0)
"""


def test_hostile_conftest_reaches_neither_the_ruling_nor_secrets_and_forges_nothing(
    guard: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "secret")
    seen = tmp_path / "seen"
    Path("conftest.py").write_text(HOSTILE.replace("SEEN", repr(str(seen))), encoding="utf-8")
    code, printed = guard(("exact_match >= 0.7", "exact_match >= 0.5"))
    assert (code, "gate exact_match >= 0.7: loosened" in printed) == (1, True), printed
    assert "collection: failed, so tests are not compared: other code than pytest's wrote" in printed
    assert "conftest, statement: new" in printed
    assert "PATH" in seen.read_text(encoding="utf-8")
    assert "SHOP_TOKEN" not in seen.read_text(encoding="utf-8")
