"""Where nothing errored, and no case abstains since, a comparison compares the values that the reports show."""

import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from builders import judge, run
from examples import GENERATORS, Generator, answered

from pytest_llmeval import Case, Evaluator, Result, compare, get_evaluator, score
from pytest_llmeval.gates import DropGate
from pytest_llmeval.gates._drop import SafeGate
from pytest_llmeval.judges import JudgedEvaluator
from pytest_llmeval.numbers import CaseStatistics, RunPairing
from pytest_llmeval.numbers import _estimation as estimation


def spam(flagged: int) -> Result:
    """50 spam mails, all found, and 150 others of which some are flagged too."""
    answers = ["spam"] * (50 + flagged) + ["ham"] * (150 - flagged)
    cases = [
        Case(f"{number:03}", expected="spam" if number < 50 else "ham", prediction=answer)
        for number, answer in enumerate(answers)
    ]
    return score(get_evaluator("classification", positive="spam"), cases)


def test_a_false_alarm_in_one_run_only_takes_no_case_out_of_a_pooled_value() -> None:
    here, there = spam(100), spam(0)
    assert here.metrics["positive_precision"].value == pytest.approx(1 / 3)
    found = judge(DropGate("positive_precision", 0.02), here, there)
    assert found.outcome == "failed"
    assert "positive_precision 1.0000 -> 0.3333" in found.reason
    assert judge(SafeGate("positive_f1", 0.05), here, there).outcome == "failed"


def test_a_value_that_the_report_does_not_show_is_not_compared() -> None:
    cases = [Case(str(number), expected="ham", prediction="ham") for number in range(9)]
    result = score(get_evaluator("classification", positive="spam"), cases)
    assert result.metrics["positive_f1"].value is None
    assert compare(result, result).metrics["positive_f1"].value is None


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_what_is_compared_is_what_both_reports_show(name: str, thorough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimation, "resample_count", lambda *_: 20)  # no interval is looked at
    generator = GENERATORS[name]
    evaluator = generator.build()
    compared_values = 0
    for seed in range(8 if thorough else 2):
        rng = random.Random(seed)
        expected = [generator.gold(rng) if rng.random() < 0.9 else None for _ in range(rng.randint(2, 12))]
        here, there = (_scored(evaluator, _cases(generator, expected, rng)) for _ in range(2))
        compared_values += _same_values(evaluator, here, there, there[1], "value")
        _same_values(evaluator, here, there, CaseStatistics.from_records(there[1].records), "mean")
    assert compared_values > (10 if thorough else 3)


Scored: TypeAlias = tuple[Sequence[Case], Result]


def _same_values(
    evaluator: Evaluator, here: Scored, there: Scored, baseline: Result | CaseStatistics, statistic: Any
) -> int:
    """Compare what a comparison says with both reports; return how many values there were.

    A pair of which one answer abstains, which the comparison allows, leaves both sides: the values are then those of
    reports on the other cases.
    """
    found = compare(here[1], baseline, statistic=statistic, abstained="allowed").metrics
    records = (CaseStatistics.exact(result.records) for _, result in (here, there))
    runs = RunPairing(*records, here[1].evaluators, abstained="allowed")
    rows = runs.everything()
    count = 0
    for metric in found.keys() - {"pass_rate"}:
        silent = {runs.table.records[row].id for row in rows.current[runs.silent_in_one(metric, rows)]}
        assert silent or not any("abstain" in note for note in found[metric].notes), metric
        reports = [
            _scored(evaluator, [case for case in cases if case.id not in silent])[1] if silent else result
            for cases, result in (here, there)
        ]
        for result, compared in zip(reports, (found[metric].value, found[metric].baseline), strict=True):
            if metric not in result.metrics:  # a label that only the other run has
                continue
            wanted = getattr(result.metrics[metric], statistic)
            assert compared == (None if wanted is None else pytest.approx(wanted, abs=1e-9)), metric
            count += wanted is not None
        assert silent or not any("left out" in note for note in found[metric].notes)
    return count


def _cases(generator: Generator, expected: Sequence[Any], rng: random.Random) -> list[Case]:
    return [
        Case(str(n), input=generator.input(rng), expected=gold, prediction=generator.answer(rng))
        for n, gold in enumerate(expected)
    ]


def _scored(evaluator: Evaluator, cases: Sequence[Case]) -> Scored:
    judge = answered if isinstance(evaluator, JudgedEvaluator) else None
    result = score(evaluator, cases, confidence=None, judge=judge)
    reasons = {case.reason for case in result.cases if case.outcome == "errored"}
    assert not reasons, f"{reasons} (judges of generated cases are `answered` in tests/examples.py)"
    return cases, result


def test_a_case_that_errored_in_one_run_is_left_out_of_both() -> None:
    found = compare(run(["error", 1, 1]), run([0, 0, 1])).metrics["score"]
    assert (found.value, found.baseline) == (1, 0.5)
    assert any("1 case left out" in note for note in found.notes)
