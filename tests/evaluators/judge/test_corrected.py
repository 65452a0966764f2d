"""``corrected(judge_score)``: the judge on all cases, corrected by people on some of them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import parse_gate

from pytest_llmeval import Case, JudgeRequest, Result, Totals, get_evaluator, score
from pytest_llmeval.core import GateResult, ShownPrints
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.evaluators._rubric import Level, Rubric
from pytest_llmeval.evaluators.judge._agreement import JudgeAgreement
from pytest_llmeval.evaluators.judge._human_labels import OTHER_ANSWER
from pytest_llmeval.gates import DropGate, GateEvidence
from pytest_llmeval.judges import Verdict
from pytest_llmeval.numbers import CaseStatistics, RunPairing

JUDGE = Judge(mode="continuous", corrected=True)
NAME = "corrected(judge_score)"


def case(name: str, verdict: float, human: Any = None, **others: Any) -> Case:
    """A case whose prediction is what the judge will say."""
    expected: Any = "Paris" if human is None else {"reference": "Paris", "human": human, **others}
    return Case(name, input="Where?", expected=expected, prediction=f"In Paris {verdict}")


def scored(*cases: Case, judge: Judge = JUDGE, confidence: float | None = None) -> Result:
    def answer(request: JudgeRequest) -> str:
        said = str(request).rpartition("In Paris ")[2].split()[0].strip('"<')
        return f'{{"score": {said}}}'

    return score(judge, cases, confidence=confidence, judge=answer)


def simulated(size: int, labelled: int, seed: int = 1) -> tuple[list[Case], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    people = np.round(rng.beta(4, 2, size), 3)
    judge = np.round(np.clip(people + 0.15 + rng.normal(0, 0.1, size), 0, 1), 3)
    cases = [case(f"c{n:03}", judge[n], float(people[n]) if n < labelled else None) for n in range(size)]
    return cases, judge, people


def test_it_is_the_judge_on_all_cases_plus_what_people_add_on_theirs() -> None:
    labelled = [
        case(f"{kind}{n}", *each) for n in range(5) for kind, each in enumerate([(0.6, 0.4), (1.0, [0.5, 0.7])])
    ]
    found = scored(*[case(f"a{n}", 0.8) for n in range(5)], *labelled).metrics
    assert found["judge_score"].value == pytest.approx(0.8)
    assert found[NAME].value == pytest.approx(0.8 + (-0.2 - 0.4) / 2)
    assert (found[NAME].scored, found[NAME].undefined, found[NAME].mean) == (0, 15, None)


def test_a_mild_judge_is_brought_back_to_what_people_say() -> None:
    cases, judge, people = simulated(400, 100)
    found = scored(*cases, confidence=0.95).metrics[NAME]
    assert judge.mean() > people.mean() + 0.1
    assert found.low is not None
    assert found.high is not None
    assert found.low < people.mean() < found.high < judge.mean()
    # Errors that no label shows may be as large as the scale: the interval counts one such label at either end.
    added = np.concatenate([(people - judge)[:100], [-1.0, 1.0]])
    deviation = math.sqrt(judge.var() / 400 + added.var() / 100 + 2 * covariance(judge, people) / 400)
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.03)


def covariance(judge: np.ndarray, people: np.ndarray) -> float:
    """Of the judge and what people add, on the labelled cases: both parts are resampled with the same cases."""
    return float(np.cov(judge[:100], (people - judge)[:100])[0, 1])


def test_gates_read_value_and_bounds() -> None:
    result = scored(*simulated(200, 80)[0], confidence=0.95)
    assert parse_gate(f"{NAME} >= 0.6").judge(result).outcome == "passed"
    assert parse_gate(f"low({NAME}) >= 0.6").judge(result).outcome == "passed"
    assert parse_gate(f"{NAME} >= 0.75").judge(result).outcome == "failed"


def test_without_any_label_there_is_no_corrected_score() -> None:
    found = scored(case("a", 0.8), case("b", 0.6))
    assert found.metrics[NAME].value is None
    assert found.metrics["judge_score"].value == pytest.approx(0.7)
    assert "undefined" in parse_gate(f"{NAME} >= 0").judge(found).reason


def test_the_judge_does_not_see_what_people_said() -> None:
    labelled, plain = JUDGE.questions(case("a", 0.8, 0.2)), JUDGE.questions(case("a", 0.8))
    assert [each.texts for each in labelled] == [each.texts for each in plain]


def test_it_is_asked_for() -> None:
    assert NAME not in [metric.name for metric in Judge(mode="continuous").describe()]
    for judge, expected in (
        (Judge(mode="continuous"), {"reference": "x", "human": 1}),
        (JUDGE, {"human": 1, "town": 2}),
    ):
        (fault,) = judge.check(Case("a", input="?", expected=expected, prediction="x"))
        assert fault == "found an object as expected, expected text or a list of texts"
    with pytest.raises(ValueError, match="found corrected, expected it with evaluator judge"):
        JudgeAgreement(mode="continuous", corrected=True)


def test_a_rubric_has_a_corrected_share_of_passes_and_scales_the_scores_of_people() -> None:
    levels = (Level(1, "bad"), Level(3, "fair"), Level(5, "good"))
    judge = Judge(mode="rubric", rubric=Rubric(criteria="Is it kind?", levels=levels, pass_mark=3), corrected=True)
    observed = [
        judge.measure_judged(Case(str(n), input="?", expected=expected, prediction="x"), [Verdict(verdict)])
        for n, (expected, verdict) in enumerate([("y", 5.0), ({"reference": "y", "human": [1, 3]}, 5.0), ("y", 1.0)])
    ]
    names = sorted({name for each in observed for name in each.counts})
    assert "labelled" in names
    metrics = judge.summarize(Totals.add_up(observed).sums())
    assert metrics["corrected(judge_score)"][0] == pytest.approx(2 / 3 + (0.25 - 1))
    assert metrics["corrected(judge_pass)"][0] == pytest.approx(2 / 3 + (0.5 - 1))


@pytest.mark.parametrize("human", [1.5, "good", [0.5, None], True])
def test_scores_of_people_are_checked(human: Any) -> None:
    (fault,) = get_evaluator("judge", mode="continuous", corrected=True).check(case("a", 0.8, human))
    assert fault.startswith("human: found ")
    assert fault.endswith("expected a number from 0 to 1, or a list of them")


def people(count: int, verdict: float, human: float, *, answer: Any = None, others: int = 0) -> list[Case]:
    """As many labelled cases, whose labels name an answer if there is one, and others without a label."""
    named = {} if answer is None else {"scored_answer": answer}
    labelled = [case(f"l{n:03}", verdict, human, **named) for n in range(count)]
    return [*labelled, *(case(f"o{n:03}", verdict) for n in range(others))]


@pytest.mark.parametrize("labels", [1, 9])
def test_fewer_than_ten_labels_are_too_few(labels: int) -> None:
    result = scored(*people(labels, 0.8, 0.9, others=191), confidence=0.95)
    found = result.metrics[NAME]
    assert (found.value, found.low, found.high) == (None, None, None)
    noun = "label" if labels == 1 else "labels"
    assert found.reason == f"{labels} {noun}, expected at least 10"
    reason = parse_gate(f"{NAME} >= 0").judge(result).reason
    assert reason == f"{NAME} is undefined: {found.reason}"


def test_an_interval_leaves_room_for_errors_that_so_few_labels_cannot_have_shown() -> None:
    widths = []
    for labels in (10, 20, 50):
        found = scored(*people(labels, 1.0, 1.0, others=100), confidence=0.95).metrics[NAME]
        assert found.value == 1
        assert found.low is not None
        assert found.high is not None
        assert found.high == 1
        widths.append(found.value - found.low)
    # 0 of 10, 20 and 50: Wilson's bounds are 0.28, 0.16 and 0.07.
    assert [round(width, 2) for width in widths] == pytest.approx([0.31, 0.14, 0.06], abs=0.02)


def test_labels_belong_to_the_answer_that_people_scored() -> None:
    text = "In Paris 0.8"
    for answer in (text, ShownPrints.fingerprint(text)):
        found = scored(*people(12, 0.8, 0.9, answer=answer)).metrics[NAME]
        assert found.value == pytest.approx(0.9)
        assert found.reason == ""
    stale = [case(f"s{n}", 0.4, 0.9, scored_answer=text) for n in range(3)]
    result = scored(*people(12, 0.8, 0.9, answer=text), *stale, confidence=0.95)
    found = result.metrics[NAME]
    assert found.value == pytest.approx(12 * 0.9 / 15)
    assert found.high == 1
    again = "3 of 15 labels are of answers that have changed and count as the worst: label them again"
    assert found.reason == f"{again} (llmeval review --again)"
    for gate in (f"{NAME} >= 0.7", f"{NAME} >= 0.75"):
        assert again in parse_gate(gate).judge(result).reason


def fluent_and_wrong(changed: int) -> Result:
    """100 answers of which 40 are labelled and right, until some become wrong and the judge likes them."""
    named = {"scored_answer": "In Paris 1"}
    cases = [case(f"c{n:03}", 1, 1 if n < 40 else None, **(named if n < 40 else {})) for n in range(100)]
    worse = [
        replace(each, prediction="Of course: In Paris 1") if n % 100 < changed else each for n, each in enumerate(cases)
    ]
    return scored(*worse, confidence=0.95)


def test_a_judge_that_likes_changed_answers_is_not_believed() -> None:
    assert parse_gate(f"{NAME} >= 0.9").judge(fluent_and_wrong(0)).outcome == "passed"
    result = fluent_and_wrong(20)
    found = result.metrics[NAME]
    assert (found.value, found.high) == (pytest.approx(0.5), 1)
    assert found.low is not None
    assert 0.25 < found.low < 0.5
    assert parse_gate(f"{NAME} >= 0.9").judge(result).outcome == "failed"
    assert fluent_and_wrong(36).metrics[NAME].reason == (
        "4 labels, expected at least 10; 36 of 40 labels are of answers that have changed: label them again "
        "(llmeval review --again)"
    )


def test_values_and_intervals_stay_in_the_range() -> None:
    strict = [case(f"l{n}", 0.1, 1.0) for n in range(20)]
    found = scored(*strict, *(case(f"o{n}", 1.0) for n in range(20)), confidence=0.95).metrics[NAME]
    assert (found.value, found.high) == (1, 1)
    assert found.low is not None
    assert 0 < found.low < 1


def test_a_judge_that_has_nothing_to_do_with_people_is_left_out() -> None:
    labelled = [
        case(f"l{n}", judge, human) for n, (judge, human) in enumerate([(0, 0.4), (0, 0.8), (1, 0.4), (1, 0.8)] * 10)
    ]
    found = scored(*labelled, *(case(f"o{n}", 1) for n in range(160)), confidence=0.95).metrics[NAME]
    assert found.value == pytest.approx(0.6)
    alone = scored(*(replace(each, prediction="In Paris 0") for each in labelled), confidence=0.95).metrics[NAME]
    assert found.low is not None
    assert alone.low is not None
    assert found.low >= alone.low - 0.01


def test_labels_of_other_answers_are_no_longer_labels() -> None:
    result = scored(*people(50, 0.4, 0.7, answer="In Paris 0.8", others=150))
    assert result.metrics[NAME].value is None
    assert result.metrics[NAME].reason == (
        "0 labels, expected at least 10; 50 of 50 labels are of answers that have changed: label them again "
        "(llmeval review --again)"
    )
    assert {each.observations["judge"].undefined[NAME] for each in result.records if each.id.startswith("l")} == {
        OTHER_ANSWER
    }


def drop(before: list[Case], after: list[Case]) -> GateResult:
    here, there = (CaseStatistics.exact(scored(*each).records) for each in (after, before))
    gate = DropGate(NAME, 0.02)
    return GateEvidence.judge_together([gate.examine(RunPairing(here, there, {"judge": JUDGE}))])[0]


def test_a_drop_needs_labels_of_both_runs() -> None:
    before = people(50, 0.8, 0.7, answer="In Paris 0.8", others=150)
    stale = people(50, 0.4, 0.7, answer="In Paris 0.8", others=150)
    assert drop(before, stale).outcome == "failed"
    assert "0 labels, expected at least 10" in drop(before, stale).reason
    unnamed = drop(people(50, 0.8, 0.7, others=150), people(50, 0.4, 0.7, others=150))
    assert unnamed.outcome == "failed"
    assert "50 labels without the answer that people scored" in unnamed.reason
    anew = drop(before, people(50, 0.4, 0.3, answer="In Paris 0.4", others=150))
    assert anew.outcome == "failed"
    assert anew.value == pytest.approx(0.4)
    assert drop(before, before).outcome == "passed"


def test_labels_of_agreement_belong_to_their_answer_too() -> None:
    agreement = JudgeAgreement(mode="continuous")
    observed = agreement.measure_judged(case("a", 0.4, 0.7, scored_answer="In Paris 0.8"), [])
    assert set(observed.undefined.values()) == {OTHER_ANSWER}
    assert not agreement.questions(case("a", 0.4, 0.7, scored_answer="In Paris 0.8"))
