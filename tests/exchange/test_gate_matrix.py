"""What ``llmeval gate`` says of the results of each source, by what happened to them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.exchange._causes import CAUSES, Situation, step_of


@dataclass(frozen=True)
class Answer:
    """An answer as a runner keeps it: what was asked, and the score, or why there is none."""

    question: str
    score: float = 1.0
    error: str = ""
    skipped: bool = False


@dataclass(frozen=True)
class Run:
    """A run of some runner: its answers in their order, and the name of its metric."""

    answers: Sequence[Answer]
    metric: str = "accuracy"


def rows(run: Run) -> tuple[str, str]:
    """Write the published form, whose ids are of their own."""
    lines = []
    for answer in run.answers:
        outcome: dict[str, Any] = {"score": answer.score}
        outcome = {"error": answer.error} if answer.error else {"skipped": "later"} if answer.skipped else outcome
        lines.append(json.dumps({"case": answer.question, "metric": run.metric, **outcome}))
    return "jsonl", "".join(f"{line}\n" for line in lines)


def promptfoo(run: Run) -> tuple[str, str]:
    results = [
        {
            "promptIdx": 0,
            "testCase": {"description": f"Row #{place}", "vars": {"q": answer.question}},
            "vars": {"q": answer.question},
            "provider": {"id": "shop"},
            "prompt": {"label": "ask {{q}}"},
            **({"error": answer.error, "failureReason": 2} if answer.error else {}),
            "namedScores": {run.metric: answer.score},
        }
        for place, answer in enumerate(run.answers, 1)
    ]
    return "json", json.dumps({"results": {"results": results, "prompts": []}, "config": {"description": "shop"}})


def pydantic_evals(run: Run) -> tuple[str, str]:
    cases, failures = [], []
    for place, answer in enumerate(run.answers, 1):
        case = {"name": f"Case {place}", "inputs": answer.question, "expected_output": "x", "metadata": None}
        if answer.error:
            failures.append({**case, "error_message": answer.error, "error_stacktrace": ""})
        else:
            score = {run.metric: {"name": run.metric, "value": answer.score, "reason": None}}
            cases.append({**case, "output": "x", "scores": score, "assertions": {}, "evaluator_failures": []})
    return "json", json.dumps({"name": "shop", "cases": cases, "failures": failures, "analyses": []})


def deepeval(run: Run) -> tuple[str, str]:
    results = [
        {
            "name": f"test_case_{place}",
            "input": answer.question,
            "actual_output": "x",
            "metrics_data": [
                {"name": run.metric, "score": None if answer.error else answer.score, "error": answer.error or None}
            ],
        }
        for place, answer in enumerate(run.answers)
    ]
    return "json", json.dumps({"test_results": results})


def inspect_ai(run: Run) -> tuple[str, str]:
    samples = [
        {
            "id": place,
            "epoch": 1,
            "input": answer.question,
            "target": "x",
            **({"error": {"message": answer.error}} if answer.error else {}),
            "scores": {} if answer.error else {run.metric: {"value": answer.score}},
        }
        for place, answer in enumerate(run.answers, 1)
    ]
    return "json", json.dumps({"eval": {"task": "shop", "model": "m"}, "status": "success", "samples": samples})


def junit(run: Run) -> tuple[str, str]:
    """Write what pytest does, whose parameters have made-up names."""
    cases = []
    for place, answer in enumerate(run.answers):
        inside = f'<error message="{answer.error}"/>' if answer.error else ""
        inside = '<skipped message="later"/>' if answer.skipped else inside or "" if answer.score else "<failure/>"
        cases.append(f'<testcase classname="test_shop" name="test_q[r{place}]" time="0.1">{inside}</testcase>')
    return "xml", f'<testsuites><testsuite name="pytest">{"".join(cases)}</testsuite></testsuites>'


SOURCES: Mapping[str, Callable[[Run], tuple[str, str]]] = {
    "results": rows,
    "promptfoo": promptfoo,
    "pydantic-evals": pydantic_evals,
    "deepeval": deepeval,
    "inspect-ai": inspect_ai,
    "junit": junit,
}

NAMES = ("refund", "address", "invoice", "voucher", "return", "size", "price", "gift", "stock", "pickup")
OLD = Run([Answer(f"{NAMES[n % 10]} of the {NAMES[n // 10]}", float(n % 6 > 0)) for n in range(60)])


def changed(**changes: Any) -> Run:
    """Return the old run with a change in the first ten answers that were right, or in as many as `times` says."""
    times, left = changes.pop("times", 10), changes.pop("score_from", 1.0)
    answers, seen = [], 0
    for answer in OLD.answers:
        hit = answer.score == left and seen < times
        seen += hit
        answers.append(replace(answer, **changes) if hit else answer)
    return replace(OLD, answers=answers)


FELL = changed(score=0.0)
RUNS: Mapping[str, Run] = {
    "same": OLD,
    "fell": FELL,
    "rose": changed(score_from=0.0, score=1.0),
    "shifted": replace(FELL, answers=[Answer("an inserted question"), *FELL.answers]),
    "renamed": replace(OLD, metric="acc"),
    "removed": replace(OLD, answers=OLD.answers[:-5]),
    "errored": changed(error="rate limit", times=5),
    "skipped": changed(skipped=True, times=15),
    "scaled": replace(OLD, answers=[replace(each, score=100 * each.score) for each in OLD.answers]),
    "other data": replace(OLD, answers=[replace(each, question=f"{each.question}?") for each in OLD.answers]),
    "first run": OLD,
}

WHAT_HAPPENED: Mapping[str, tuple[int, str, str]] = {
    "same": (0, "cannot tell", "add as many cases as the verdict says, or set the drop that matters with --tolerance"),
    "fell": (1, "worse", "look at the cases above; --report page.html shows each of them"),
    "rose": (0, "better", "nothing to do"),
    "shifted": (1, "worse", "look at the cases above; --report page.html shows each of them"),
    "renamed": (2, "cannot tell", "call acc as in the baseline, accuracy, if it is the same"),
    "removed": (2, "cannot tell", "run what is missing, and judge all results together"),
    "errored": (2, "cannot tell", "run the cases that errored again ("),
    "skipped": (2, "cannot tell", "run the skipped cases: "),
    "scaled": (2, "cannot tell", "write the scores of both runs on one scale"),
    "other data": (2, "cannot tell", "pass a baseline of the same data set, with the same ids"),
    "first run": (2, "cannot tell", "make these results the baseline: llmeval gate new"),
}
"""What happened to exit code, word and next step."""

OTHERWISE: Mapping[tuple[str, str], tuple[int, str, str]] = {
    ("junit", "shifted"): (2, "cannot tell", "give the cases ids of their own, such as pytest.param(..., id='refund')"),
    ("junit", "removed"): (2, "cannot tell", "give the cases ids of their own, such as pytest.param(..., id='refund')"),
}
"""The same for sources in which it is another one: ids are positions, and nothing else names the cases."""

IMPOSSIBLE = {
    *((source, "skipped") for source in SOURCES if source not in ("results", "junit")),
    *(("junit", what) for what in ("renamed", "scaled", "other data")),
}
"""What a source cannot express: nothing is skipped, or it has no metrics, scales and questions."""

MATRIX = [(source, what) for source in SOURCES for what in RUNS if (source, what) not in IMPOSSIBLE]


@pytest.fixture(autouse=True)
def _in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(source: str, name: str, run: Run) -> str:
    suffix, text = SOURCES[source](run)
    Path(f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return f"{name}.{suffix}"


def judged(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main(["gate", *arguments, "--json"])
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert data["exit_code"] == code
    return data


@pytest.mark.parametrize(("source", "what"), MATRIX)
def test_each_source_has_the_verdict_of_what_happened(
    source: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = written(source, "new", RUNS[what])
    baseline = [] if what == "first run" else ["--baseline", written(source, "old", OLD)]
    data = judged(capsys, new, *baseline)
    code, word, step = OTHERWISE.get((source, what), WHAT_HAPPENED[what])
    assert (data["exit_code"], data["verdict"]) == (code, word), data
    assert data["next"].startswith(step), data


@pytest.mark.parametrize(("source", "what"), [each for each in MATRIX if each[1] != "first run"])
def test_an_approved_baseline_and_a_file_are_one_path(
    source: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = written(source, "old", OLD), written(source, "new", RUNS[what])
    by_file = judged(capsys, new, "--baseline", old)
    assert main(["gate", old, "--snapshot-update"]) == 0
    capsys.readouterr()
    approved = judged(capsys, new)
    assert [approved[key] for key in ("exit_code", "verdict", "next")] == [
        by_file[key] for key in ("exit_code", "verdict", "next")
    ]


FACTS: Mapping[str, Mapping[str, Any]] = {
    "itself": {"itself": "new.json"},
    "suites": {"suites": ("shop", "store")},
    "cases": {"cases": ("a1", "q1")},
    "moved": {"moved": "test_q[rN] are positions, 61 here and 60 in the baseline"},
    "gone": {"gone": ["accuracy"]},
    "new": {"new": ["acc"]},
    "rescaled": {"rescaled": ["f1 has another scale: 0..100 here, 0..1 in the baseline"]},
    "skipped": {"skipped": ["a", "b"]},
    "missing": {"missing": ["no result for 2 of 60 cases: 'a', 'b'"]},
    "errored": {"errored": ["c"], "again": "promptfoo eval --filter-errors-only {files}", "files": ["a b.json"]},
}
OUTCOMES = ("failed", "passed", "approved", "first", "few", "open")
OPPOSITES = (
    ("add as many cases", "run "),
    ("make these results the baseline", "another"),
    ("approve", "again"),
    ("nothing to do", " or "),
    ("pass a baseline", "ids of their own"),
)
"""Orders of which one line has one at most."""
COMMANDS = ("llmeval gate ", "promptfoo eval ", "pytest.param(")


def test_every_next_step_orders_one_thing_that_can_be_done() -> None:
    given = [frozenset(each) for size in range(3) for each in combinations(("undecided", "tolerance"), size)]
    steps = set()
    for size in range(len(FACTS) + 1):
        for causes in combinations(FACTS, size):
            facts = {key: value for cause in causes for key, value in FACTS[cause].items()}
            for options in given:
                situation = Situation(**facts, options=options, approving="llmeval gate new.json --snapshot-update")
                for outcome in OUTCOMES:
                    step = step_of(situation, outcome)
                    steps.add(step)
                    assert not [name for name in options if f"--{name}" in step], step
                    if causes and outcome != "failed":
                        first = next(cause for name, cause in CAUSES.items() if cause.holds(situation))
                        assert step == first.step(situation)
    for step in steps:
        assert step
        assert "\n" not in step
        assert not [pair for pair in OPPOSITES if all(each in step for each in pair)], step
        if "pytest --llmeval" in step or "::" in step:
            pytest.fail(step)
    assert any("'a b.json'" in step for step in steps)


def test_causes_that_hide_scores_are_accepted_by_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    old = written("results", "old", OLD)
    for what in ("renamed", "removed", "errored", "skipped", "scaled", "other data"):
        new = written("results", "new", RUNS[what])
        assert main(["gate", new, "--baseline", old, "--undecided", "pass"]) == 2, what
    capsys.readouterr()
