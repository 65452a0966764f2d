"""What is kept of a run for later comparisons: deterministic lines that read back as they were."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from project import ROOT
from strategies import SplitAverage, records

from pytest_llmeval.core import CaseRecord, Observation, SuiteError
from pytest_llmeval.numbers import CaseStatistics, summarize

RECORD = CaseRecord(
    "b",
    {"kind": "x"},
    "failed",
    {
        "text": Observation(
            {"n": 1, "f1": 0.1 + 0.2}, {"matched": ["secret"]}, {"bleu": "no word"}, None, {"llm": "down"}
        )
    },
    {"judge": "timed out"},
    "f1 0.3, limit >= 0.5",
)


def test_a_line_holds_counts_and_names_but_no_text_of_the_case() -> None:
    (line,) = CaseStatistics.from_records([RECORD]).to_lines()
    assert json.loads(line) == {
        "id": "b",
        "outcome": "failed",
        "labels": {"kind": "x"},
        "counts": {"text": {"f1": 0.3, "n": 1}},
        "undefined": {"text": ["bleu"]},
        "errored": {"text": ["llm"]},
        "errors": ["judge"],
    }


def test_whole_numbers_are_written_as_such() -> None:
    record = CaseRecord("a", observations={"e": Observation({"x": 2.0, "y": 3, "z": 0.5})})
    assert list(CaseStatistics.from_records([record]).to_lines()) == [
        '{"id": "a", "outcome": "passed", "counts": {"e": {"x": 2, "y": 3, "z": 0.5}}}'
    ]


@given(records())
def test_the_round_trip_is_identity_and_independent_of_order(made: list[CaseRecord]) -> None:
    kept = CaseStatistics.from_records(made)
    lines = list(kept.to_lines())
    assert CaseStatistics.from_lines(lines) == kept
    shuffled = random.Random(1).sample(made, len(made))
    assert list(CaseStatistics.from_records(shuffled).to_lines()) == lines


@given(records())
def test_the_table_gives_the_metrics_of_the_run(made: list[CaseRecord]) -> None:
    evaluators = {SplitAverage.name: SplitAverage()}
    table = CaseStatistics.from_records(made).table(evaluators)
    found = table.metrics(range(len(made)), None)
    wanted = summarize(evaluators, made, confidence=None)
    for name, metric in {**wanted.metrics, "pass_rate": wanted.pass_rate}.items():
        assert found[name].value == pytest.approx(metric.value, nan_ok=True)
        assert (found[name].scored, found[name].undefined) == (metric.scored, metric.undefined)
        assert (found[name].errored, found[name].missing) == (metric.errored, metric.missing)


def test_only_the_evaluators_asked_for_are_kept() -> None:
    (line,) = CaseStatistics.from_records([RECORD], ["other"]).to_lines()
    assert json.loads(line) == {"id": "b", "outcome": "failed", "labels": {"kind": "x"}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "Expected `object`, got `array`"),
        ('{"id": 3, "outcome": "passed"}', "Expected `str`, got `int` - at `$.id`"),
        ('{"id": "a", "outcome": "good"}', "Invalid enum value 'good' - at `$.outcome`"),
        ('{"id": "a", "outcome": "passed", "extra": 1}', "unknown field `extra`"),
        ('{"id": "a", "outcome": "passed", "labels": {"k": 1}}', "Expected `str`, got `int` - at `$.labels[...]`"),
        ('{"id": "a", "outcome": "passed", "labels": []}', "Expected `object`, got `array` - at `$.labels`"),
        ('{"id": "a", "outcome": "passed", "counts": {"e": 1}}', "Expected `object`, got `int` - at `$.counts[...]`"),
        ('{"id": "a", "outcome": "passed", "counts": {"e": {"n": NaN}}}', "found NaN, expected a finite number"),
        ('{"id": "a", "outcome": "passed", "counts": {"e": {"n": true}}}', "got `bool` - at `$.counts[...][...]`"),
        (
            '{"id": "a", "outcome": "passed", "counts": {"e": {"n": 1' + "0" * 400 + "}}}",
            "Expected `int` <= 1000000000000000000 - at `$.counts",
        ),
        ('{"id": "a", "outcome": "passed", "errored": {"e": ["x"]}}', "counts of 'e' are missing"),
        ('{"id": "a", "outcome": "passed", "errors": "judge"}', "Expected `array`, got `str` - at `$.errors`"),
    ],
)
def test_a_broken_line_is_told_with_its_place(line: str, message: str) -> None:
    good = '{"id": "b", "outcome": "passed"}'
    with pytest.raises(SuiteError) as caught:
        CaseStatistics.from_lines([good, line], "s.cases.jsonl")
    (fault,) = caught.value.faults
    assert (fault.file, fault.line) == ("s.cases.jsonl", 2)
    assert message in fault.message


def test_an_id_that_occurs_twice_is_told() -> None:
    line = '{"id": "b", "outcome": "passed"}'
    with pytest.raises(SuiteError, match="found 'b' twice"):
        CaseStatistics.from_lines([line, line])


@pytest.mark.parametrize(
    "path", sorted((ROOT / "example_suites").rglob("*.cases.jsonl")), ids=lambda path: str(path.stem)
)
def test_committed_statistics_are_written_as_they_were(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert CaseStatistics.from_lines(text.splitlines(), path.name).text == text
