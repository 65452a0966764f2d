"""Evaluator ``judge_agreement`` against scikit-learn, SciPy and package krippendorff, and its corners."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from pytest_llmeval import Case, EvaluatorError, Observation, score
from pytest_llmeval.core import JudgeError, Sums, Totals
from pytest_llmeval.evaluators._rubric import Level, Rubric
from pytest_llmeval.evaluators.judge._agreement import JudgeAgreement, level_of
from pytest_llmeval.judges import Verdict
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.numbers._case_scores import stack

SIX = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
CONTINUOUS = JudgeAgreement(mode="continuous")

levels = st.sampled_from(SIX)
graded = st.lists(st.tuples(levels, levels), min_size=2, max_size=30)
rated = st.lists(st.tuples(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=4)), min_size=2, max_size=12)


def case(human: Any, **changes: Any) -> Case:
    fields = {"input": "Where?", "expected": {"reference": "Paris", "human": human}, "prediction": "In Paris"}
    return Case("a", **{**fields, **changes})


def measure(judge: float, human: Any, evaluator: JudgeAgreement = CONTINUOUS) -> Observation:
    return evaluator.measure_judged(case(human), [Verdict(judge)])


def pooled(observations: Sequence[Observation], evaluator: JudgeAgreement = CONTINUOUS) -> dict[str, float | None]:
    with np.errstate(all="ignore"):
        columns = evaluator.summarize(Totals.add_up(observations).sums())
    return {name: None if math.isnan(column[0]) else float(column[0]) for name, column in columns.items()}


def close(value: float | None, expected: float) -> bool:
    return math.isnan(expected) if value is None else math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)


@given(graded)
def test_kappas_are_those_of_scikit_learn(pairs: list[tuple[float, float]]) -> None:
    values = pooled([measure(judge, human) for judge, human in pairs])
    judge, human = ([SIX.index(each) for each in side] for side in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert close(values["cohen_kappa"], metrics.cohen_kappa_score(human, judge))
        everything = list(range(len(SIX)))
        assert close(
            values["weighted_kappa"], metrics.cohen_kappa_score(human, judge, labels=everything, weights="quadratic")
        )
    assert close(values["agreement"], metrics.accuracy_score(human, judge))
    table = metrics.confusion_matrix(human, judge, labels=everything)
    for row, left in enumerate(SIX):
        for column, right in enumerate(SIX):
            assert values.get(f"confusion[{left:g}->{right:g}]", 0) == table[row, column]


@given(rated)
def test_correlation_bias_and_error_are_those_of_the_mean_score_of_the_people(
    cases: list[tuple[float, list[float]]],
) -> None:
    values = pooled([measure(judge, human) for judge, human in cases])
    judge = np.array([each for each, _ in cases])
    people = np.array([np.mean(human) for _, human in cases])
    assert close(values["bias"], float(np.mean(judge - people)))
    assert close(values["mae"], float(np.mean(np.abs(judge - people))))
    assume(min(np.ptp(judge), np.ptp(people)) > 1e-3)
    assert values["pearson"] == pytest.approx(stats.pearsonr(judge, people).statistic, abs=1e-6)


@given(rated)
def test_alpha_is_that_of_package_krippendorff(cases: list[tuple[float, list[float]]]) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    everything = [each for judge, human in cases for each in (judge, *human)]
    assume(np.ptp(everything) > 1e-3)
    table = np.full((5, len(cases)), np.nan)
    for column, (judge, human) in enumerate(cases):
        table[: len(human) + 1, column] = [judge, *human]
    values = pooled([measure(judge, human) for judge, human in cases])
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement="interval")
    assert values["krippendorff_alpha"] == pytest.approx(expected, abs=1e-6)


def test_alpha_of_a_worked_example() -> None:
    # Units (1, 1), (2, 3), (3, 3): observed 2/6, expected 58/30 (squared differences of all 30 ordered pairs).
    evaluator = JudgeAgreement(mode="explanation", levels=(1, 2, 3))
    verdicts = [(1, 1), (2, 3), (3, 3)]
    observations = [
        evaluator.measure_judged(case(human, input="It rains."), [Verdict(judge, "", dict.fromkeys(FLAGS, False))])
        for judge, human in verdicts
    ]
    assert pooled(observations, evaluator)["krippendorff_alpha"] == pytest.approx(1 - (2 / 6) / (58 / 30))


@given(graded, st.randoms(use_true_random=False))
def test_columns_give_what_each_row_gives_alone(pairs: list[tuple[float, float]], random: Any) -> None:
    names, matrix = stack([measure(*pair) for pair in pairs])
    totals = np.array([[random.randrange(3) for _ in pairs] for _ in range(4)], dtype=float) @ matrix
    with np.errstate(all="ignore"):
        many = CONTINUOUS.summarize(Sums({name: totals[:, i] for i, name in enumerate(names)}, length=4))
        for row in range(4):
            one = CONTINUOUS.summarize(Sums({name: totals[row : row + 1, i] for i, name in enumerate(names)}, length=1))
            for name, column in many.items():
                assert np.isclose(column[row], one[name][0], rtol=1e-12, equal_nan=True), name


@given(rated)
def test_metrics_are_those_described_and_within_their_range(cases: list[tuple[float, list[float]]]) -> None:
    described = {metric.family: metric for metric in CONTINUOUS.describe()}
    values = pooled([measure(judge, human) for judge, human in cases])
    assert {name.partition("[")[0] for name in values} == {name.rstrip("[") for name in described}
    for name, value in values.items():
        metric = described.get(name) or described[name.partition("[")[0] + "["]
        if value is not None:
            assert metric.low is None or value >= metric.low - 1e-9
            assert metric.high is None or value <= metric.high + 1e-9


def test_perfect_agreement_is_1_and_constant_scores_have_no_coefficient() -> None:
    names = ("cohen_kappa", "weighted_kappa", "krippendorff_alpha", "pearson")
    perfect = pooled([measure(score, score) for score in (0.2, 0.8, 1.0)])
    assert [perfect[name] for name in ("agreement", *names)] == pytest.approx([1.0] * 5)
    assert (perfect["bias"], perfect["mae"]) == (0.0, 0.0)
    constant = pooled([measure(0.6, [0.6, 0.6])] * 7)
    assert [constant[name] for name in names] == [None] * 4
    assert constant["agreement"] == pytest.approx(1.0)


def test_a_single_case_has_no_coefficient_and_says_so() -> None:
    observation = measure(0.8, 0.4)
    assert CONTINUOUS.scores(observation) == {
        "agreement": 0.0,
        "cohen_kappa": None,
        "weighted_kappa": None,
        "krippendorff_alpha": None,
        "pearson": None,
        "bias": pytest.approx(0.4),
        "mae": pytest.approx(0.4),
        "confusion[0.4->0.8]": 1.0,
    }
    assert set(observation.undefined.values()) == {"needs several cases"}


def test_a_set_of_cases_has_coefficients_though_no_case_has() -> None:
    evaluator = JudgeAgreement(mode="adversarial")
    answers = {"unknown": 1, "In Paris": 0, "no data": 0}
    cases = [
        replace(case(human, prediction=answer), id=f"{answer} {n}")
        for answer, human in answers.items()
        for n in range(5)
    ]
    values = score(evaluator, cases, confidence=None).metrics
    assert values["cohen_kappa"].value == pytest.approx(0.4)
    assert (values["cohen_kappa"].scored, values["cohen_kappa"].undefined) == (0, 15)
    assert (values["agreement"].value, values["agreement"].scored) == (pytest.approx(2 / 3), 15)


def test_several_people_share_the_weight_of_a_case() -> None:
    values = pooled([measure(1.0, [1.0, 0.8, 0.0]), measure(0.0, 0.0)])
    assert values["agreement"] == pytest.approx((1 / 3 + 1) / 2)
    assert values["confusion[1->1]"] == pytest.approx(1 / 3)
    assert values["confusion[0->0]"] == 1.0
    assert measure(1.0, [1.0, 0.8]).details["human"] == [1.0, 0.8]


@pytest.mark.parametrize(
    ("score", "level"), [(0.0, 0.0), (0.29, 0.2), (0.31, 0.4), (0.3, 0.2), (0.5, 0.4), (0.7, 0.6), (0.9, 0.8), (1, 1)]
)
def test_a_score_belongs_to_the_nearest_level_and_halfway_to_the_lower(score: float, level: float) -> None:
    assert level_of(score, SIX) == level


def test_halfway_is_meant_but_for_rounding() -> None:
    assert 0.6 - 0.55 < 0.55 - 0.5
    assert level_of(0.55, [number / 10 for number in range(11)]) == 0.5


RUBRIC = Rubric("c", (Level(1, "a"), Level(3, "b"), Level(5, "c")), pass_mark=3)


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ({}, "0,0.2,0.4,0.6,0.8,1"),
        ({"mode": "continuous"}, "0,0.2,0.4,0.6,0.8,1"),
        ({"mode": "default_binary"}, "0,1"),
        ({"mode": "adversarial"}, "0,1"),
        ({"mode": "explanation"}, "0,20,40,60,80,100"),
        ({"mode": "rubric", "rubric": RUBRIC}, "1,3,5"),
        ({"mode": "continuous", "levels": (1, 0, 0.5)}, "0,0.5,1"),
    ],
)
def test_levels_are_those_of_the_mode_or_the_option(options: dict[str, Any], listed: str) -> None:
    evaluator = JudgeAgreement(**options)
    assert {metric.signature.partition("|")[0] for metric in evaluator.describe()} == {f"levels:{listed}"}


def test_a_rubric_is_compared_on_its_own_scale() -> None:
    evaluator = JudgeAgreement(mode="rubric", rubric=RUBRIC)
    values = pooled([measure(5, 3, evaluator), measure(1, 1, evaluator)], evaluator)
    assert (values["bias"], values["confusion[3->5]"]) == (1.0, 1.0)


@pytest.mark.parametrize("given_levels", [(1,), (0, 0.0), (0, math.inf), (0, math.nan)])
def test_wrong_levels_are_told(given_levels: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="expected two or more different numbers"):
        JudgeAgreement(levels=given_levels)


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        ("Paris", "found text 'Paris', expected {reference, human}"),
        ({"reference": "Paris"}, r"found an object with ['reference'], expected {reference, human}"),
        ({"reference": "Paris", "human": 1, "x": 1}, "expected {reference, human}"),
        ({"reference": "Paris", "human": None}, "human: found null, expected a number from 0 to 1, or a list of them"),
        ({"reference": "Paris", "human": [0.2, 7]}, "human: found number 7, expected a number from 0 to 1"),
        ({"reference": "Paris", "human": True}, "human: found true, expected"),
        ({"reference": "Paris", "human": float("nan")}, "human: found number NaN, expected"),
        ({"reference": {"a": 1}, "human": 1}, "found an object as expected, expected text or a list of texts"),
    ],
)
def test_a_case_without_usable_scores_of_people_is_a_fault(expected: Any, fault: str) -> None:
    (found,) = CONTINUOUS.check(case(0, expected=expected))
    assert fault in found
    with pytest.raises(EvaluatorError):
        CONTINUOUS.questions(case(0, expected=expected))


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        (None, "no human score"),
        ({"reference": "Paris", "human": []}, "no human score"),
        ({"reference": None, "human": 1}, "no expected answer"),
    ],
)
def test_a_case_with_nothing_to_compare_is_undefined_and_asks_nothing(expected: Any, why: str) -> None:
    undefined = CONTINUOUS.measure(case(0, expected=expected))
    assert list(CONTINUOUS.check(case(0, expected=expected))) == []
    assert undefined.counts == {}
    assert undefined.undefined == dict.fromkeys([m.name for m in CONTINUOUS.describe() if "[" not in m.name], why)


def test_the_judge_does_not_see_the_scores_of_people() -> None:
    (question,) = CONTINUOUS.questions(case([0.2, 0.4]))
    assert question.texts == {"question": "Where?", "reference": "Paris", "answer": "In Paris"}


def test_the_rule_for_adversarial_questions_is_compared_without_a_judge() -> None:
    evaluator = JudgeAgreement(mode="adversarial")
    observation = evaluator.measure(case(1, prediction="not mentioned"))
    assert evaluator.scores(observation)["confusion[1->1]"] == 1.0


def test_a_judge_without_verdict_is_an_error() -> None:
    with pytest.raises(JudgeError, match="no"):
        CONTINUOUS.measure_judged(case(1), [JudgeError("no")])
