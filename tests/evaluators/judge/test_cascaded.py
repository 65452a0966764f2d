"""Metrics corrected by the audit of a cascade: what they are, what they rest on, and how often intervals cover."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pytest_llmeval.core import Case, CaseRecord, EvaluatorError, MetricValue, Observation
from pytest_llmeval.evaluators import Cascaded, Judge
from pytest_llmeval.evaluators._rubric import Level, Rubric
from pytest_llmeval.evaluators.judge._verdict_metrics import CascadeErrors
from pytest_llmeval.judges import CascadeVerdict, Verdict
from pytest_llmeval.numbers import Repeats, Table
from pytest_llmeval.numbers._repeats import Reduced

JUDGE = Judge(mode="continuous")
CASE = Case("a", input="Q?", expected="x", prediction="y")


def unsure(score: float) -> CascadeVerdict:
    return CascadeVerdict(score)


def sure(score: float) -> CascadeVerdict:
    return CascadeVerdict(score, first=Verdict(score))


def audited(small: float, large: float) -> CascadeVerdict:
    return CascadeVerdict(large, first=Verdict(small), audited=True, differs=small != large, adds=large - small)


def observed(verdict: Verdict, judge: Judge = JUDGE) -> Observation:
    def measured(told: Sequence[Sequence[Verdict]]) -> Observation:
        return judge.measure_judged(CASE, told[0])

    found = Cascaded.with_audit(measured([[verdict]]), [[verdict]], measured)
    assert isinstance(found, Observation)
    return found


def metrics(verdicts: Sequence[Verdict], audit: float = 0.1) -> dict[str, MetricValue]:
    records = [
        CaseRecord(
            str(number),
            observations={
                "judge": observed(each),
                "judge cascade": CascadeErrors("judge", audit).measure_verdicts([each]),
            },
        )
        for number, each in enumerate(verdicts)
    ]
    evaluators = {"judge": Cascaded(JUDGE, audit), "judge cascade": CascadeErrors("judge", audit)}
    return Table(evaluators, records).metrics(range(len(records)), 0.95)


def test_what_the_large_judge_adds_to_audited_cases_is_added_for_the_others_of_which_the_small_one_is_sure() -> None:
    verdicts = [*[unsure(0.4)] * 5, *[sure(1.0)] * 30, *[audited(1.0, 0.0)] * 4, *[audited(1.0, 1.0)] * 8]
    found = metrics(verdicts)
    small = (5 * 0.4 + 42 * 1.0) / 47
    assert found["judge_score"].value == pytest.approx(small - 42 / 47 * 4 / 12)
    assert found["judge_score"].mean == pytest.approx((5 * 0.4 + 30 + 8) / 47)
    low, high = found["judge_cascade_error"].low, found["judge_cascade_error"].high
    assert (found["judge_cascade_error"].value, found["judge_cascade_error"].scored) == (pytest.approx(1 / 3), 12)
    assert low is not None
    assert high is not None
    assert 0.1 < low < 1 / 3 < high < 0.7
    assert found["judge_cascade_bias"].value == pytest.approx(-1 / 3)
    assert found["judge_cascade_unsure"].value == pytest.approx(5 / 47)


def test_with_everything_audited_or_unsure_nothing_is_corrected() -> None:
    both = metrics([*[unsure(0.4)] * 3, *[audited(1.0, 0.0)] * 3])
    assert both["judge_score"].value == pytest.approx(0.2)
    assert both["judge_score"].reason == ""


def test_fewer_than_ten_audited_cases_are_too_few() -> None:
    nine = metrics([*[sure(1.0)] * 30, *[audited(1.0, 0.0)] * 9])["judge_score"]
    assert (nine.value, nine.reason) == (None, "9 of 39 sure cases audited, expected at least 10")
    assert metrics([*[sure(1.0)] * 30, *[audited(1.0, 0.0)] * 10])["judge_score"].value == pytest.approx(0.0)


def test_without_an_audit_values_are_those_of_the_cascade() -> None:
    found = metrics([*[unsure(0.4)] * 5, *[sure(1.0)] * 5], audit=0.0)
    assert found["judge_score"].value == pytest.approx(0.7)
    assert found["judge_cascade_error"].reason == "not audited (audit: 0)"


def test_an_interval_says_what_the_audit_leaves_open() -> None:
    alike = [*[sure(1.0)] * 180, *[audited(1.0, 1.0)] * 20]
    found = metrics(alike)["judge_score"]
    assert found.value == 1.0
    assert found.low is not None
    assert found.low < 0.9  # twenty right verdicts leave room for some wrong ones
    sharper = metrics([*[sure(1.0)] * 100, *[audited(1.0, 1.0)] * 100])["judge_score"]
    assert sharper.low is not None
    assert sharper.low > found.low


def test_a_few_right_verdicts_do_not_rule_out_wrong_ones() -> None:
    found = metrics([*[unsure(0.0), unsure(1.0)] * 25, *[sure(1.0)] * 130, *[audited(1.0, 1.0)] * 20])["judge_score"]
    assert found.value is not None
    assert found.low is not None
    assert found.value - found.low > 0.08  # 0.05 by the scatter of the cases alone


def test_all_metrics_of_an_evaluator_are_corrected_and_repeats_are_averaged_first() -> None:
    rubric = Rubric("Right?", (Level(0, "bad"), Level(1, "fair"), Level(2, "good")), pass_mark=1)
    judge = Judge(mode="rubric", rubric=rubric)
    repeated = Reduced(Cascaded(judge, 0.2), Repeats(2))
    pairs = [*[(sure(2), sure(2))] * 20, *[(audited(2, 0), audited(2, 0))] * 5, *[(audited(2, 2), sure(2))] * 10]
    rows = [repeated.reduce([observed(one, judge), observed(other, judge)]) for one, other in pairs]
    records = [CaseRecord(str(number), observations={"judge": each}) for number, each in enumerate(rows)]
    found = Table({"judge": repeated}, records).metrics(range(len(records)), 0.95)
    for name in ("judge_score", "judge_pass"):
        assert found[name].value == pytest.approx(1 - 5 / 10)  # the mean over ten audited: 5 and 10 / 2


def test_what_people_correct_is_not_corrected_twice() -> None:
    judge = replace(JUDGE, corrected=True)
    labelled = replace(CASE, expected={"reference": "x", "human": [0.5]})

    def measured(told: Sequence[Sequence[Verdict]]) -> Observation:
        return judge.measure_judged(labelled, told[0])

    verdicts = [*[sure(1.0)] * 20, *[audited(1.0, 0.0)] * 10]
    rows = [Cascaded.with_audit(measured([[each]]), [[each]], measured) for each in verdicts]
    records = [
        CaseRecord(str(number), observations={"judge": each})
        for number, each in enumerate(rows)
        if isinstance(each, Observation)
    ]
    found = Table({"judge": Cascaded(judge, 0.1)}, records).metrics(range(len(records)), 0.95)
    assert found["corrected(judge_score)"].value == pytest.approx(0.5)
    assert found["judge_score"].value == pytest.approx(0.0)


def test_a_cascade_is_asked_not_measured() -> None:
    with pytest.raises(EvaluatorError, match="case 'a': a cascade is asked, not measured"):
        Cascaded(JUDGE, 0.1).measure(CASE)


@pytest.mark.release
@pytest.mark.parametrize("audit", [0.1, 0.2])
def test_intervals_cover_the_mean_of_the_large_judge(audit: float) -> None:
    random = np.random.default_rng(7)
    held = []
    for _ in range(60):
        verdicts: list[Verdict] = []
        for _ in range(300):
            large, doubt, wrong = (float(each) for each in random.random(3) < (0.6, 0.2, 0.15))
            small = 1.0 if wrong else large
            if doubt:
                verdicts.append(unsure(large))
            else:
                verdicts.append(audited(small, large) if random.random() < audit else sure(small))
        found = metrics(verdicts, audit)["judge_score"]
        if found.value is not None and found.low is not None and found.high is not None:
            held.append(found.low <= 0.6 <= found.high)
    assert len(held) > 55
    assert math.fsum(held) / len(held) >= 0.93
