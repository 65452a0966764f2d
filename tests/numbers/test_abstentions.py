"""A case that had a score in the baseline and abstains now is a case that fell."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from builders import gate, pairing, parse_gate
from builders import judge as judged
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from scripted_judges import ClaimJudge

from pytest_llmeval import (
    Case,
    Evaluator,
    Metric,
    Observation,
    PartialResult,
    Result,
    Sums,
    compare,
    get_evaluator,
    score,
)
from pytest_llmeval.core import FloatArray, GateResult
from pytest_llmeval.gates import GateEvidence
from pytest_llmeval.numbers import CaseStatistics, Difference, Repeats, RunPairing, SystemTable, summarize
from pytest_llmeval.numbers._repeats import Reduced
from pytest_llmeval.reports import CaseReport, SuiteReport
from pytest_llmeval.workbench._report_pair import paired_scores

FAITHFUL, UNFAITHFUL, SILENT = "Refunds take 30 days.", "Parking costs 5 euros.", "Could you say more?"
CONTEXTS = ["Refunds take 30 days at most."]


@cache
def rag(answers: tuple[str, ...], metric: str = "faithfulness") -> Result:
    question = {"question": "How long do refunds take?"}
    cases = [
        Case(f"{number:03}", input=question, prediction={"answer": each, "contexts": CONTEXTS})
        for number, each in enumerate(answers)
    ]
    return score(get_evaluator("claims", metrics=[metric]), cases, judge=ClaimJudge())


BEFORE = (*[FAITHFUL] * 180, *[UNFAITHFUL] * 20)
HALF_SILENT = (*[FAITHFUL] * 100, *[SILENT] * 100)
"""All unfaithful answers are among those that say nothing."""


def on(metric: str, here: Result, there: Result, **options: Any) -> GateResult:
    return judged(gate(metric=metric, **options), here, there)


def test_answers_that_abstain_have_a_count_of_their_own() -> None:
    value = rag(HALF_SILENT).metrics["faithfulness"]
    assert (value.value, value.scored, value.abstained, value.undefined) == (1.0, 100, 100, 0)
    limited = parse_gate("faithfulness >= 0.8").judge(rag(HALF_SILENT))
    assert (limited.outcome, limited.reason) == ("passed", "faithfulness is 1.0000; 100 cases abstained")


@pytest.mark.parametrize("rule", ["significant_drop", "non_inferiority"])
@pytest.mark.parametrize("metric", ["faithfulness", "hallucination_rate"])
@pytest.mark.parametrize("statistic", ["value", "mean"])
def test_half_of_the_answers_that_abstain_are_a_drop(rule: str, metric: str, statistic: str) -> None:
    here, there = rag(HALF_SILENT, metric), rag(BEFORE, metric)
    found = on(metric, here, there, max_drop=0.05, rule=rule, statistic=statistic)
    assert found.outcome == "failed"
    assert found.value == pytest.approx(0.4)
    worst = 0 if metric == "faithfulness" else 1
    assert f"100 cases abstain that had a score, counted as {worst}" in found.reason


def test_a_suite_may_allow_abstentions() -> None:
    here, there = (CaseStatistics.exact(each.records) for each in (rag(HALF_SILENT), rag(BEFORE)))
    pairs = RunPairing(here, there, rag(BEFORE).evaluators, abstained="allowed")
    (found,) = GateEvidence.judge_together([gate(0.05, metric="faithfulness").examine(pairs)])
    assert found.outcome == "passed"
    assert "100 cases abstain that had a score, which the suite allows" in found.reason
    assert compare(rag(HALF_SILENT), rag(BEFORE), abstained="allowed").metrics["faithfulness"].value == 1


def test_a_case_that_abstained_before_is_no_fall_and_neither_is_one_that_has_a_score_now() -> None:
    found = on("faithfulness", rag(HALF_SILENT), rag(HALF_SILENT), max_drop=0.02)
    assert (found.outcome, found.value) == ("passed", 0)
    assert "abstain" not in found.reason
    answered = on("faithfulness", rag(BEFORE), rag(HALF_SILENT), max_drop=0.02)
    assert answered.value == pytest.approx(0.1)
    assert answered.reason.endswith("; 100 cases with a score abstained before")
    notes = compare(rag(BEFORE), rag(HALF_SILENT)).metrics["faithfulness"].notes
    assert "100 cases with a score abstained before" in notes
    one = compare(rag((FAITHFUL, SILENT)), rag((SILENT, FAITHFUL))).metrics["faithfulness"].notes
    assert one[0] == "1 case abstains that had a score, counted as 0; 1 case with a score abstained before"


def test_comparisons_and_systems_count_abstentions_as_falls() -> None:
    there, here = rag(BEFORE), rag(HALF_SILENT)
    change = compare(here, there).metrics["faithfulness"]
    assert (change.value, change.baseline) == (0.5, 0.9)
    assert change.high is not None
    assert change.high < 0
    assert change.notes[0] == "100 cases abstain that had a score, counted as 0"
    index = pairing(here, there).table.index
    against = SystemTable.of_results({"app": there, "new": here}, "app", index).differences["new"]["faithfulness"]
    assert (against.value, against.wins, against.losses) == (0.5, 0, 80)


def test_abstentions_survive_files_of_statistics() -> None:
    kept = CaseStatistics.from_records(rag(HALF_SILENT).records)
    read = CaseStatistics.from_lines(json.loads(json.dumps(list(kept.to_lines()))))
    assert read.table(rag(HALF_SILENT).evaluators).metrics(range(200), None)["faithfulness"].abstained == 100


@pytest.mark.parametrize(("abstained", "value", "before"), [("fell", 0.5, 0.9), ("allowed", 1.0, 1.0)])
def test_reports_are_compared_as_runs_are(abstained: Any, value: float, before: float) -> None:
    def report(answers: tuple[str, ...]) -> SuiteReport:
        result = rag(answers)
        cases = [
            CaseReport(id=each.id, outcome=each.outcome, metrics=dict(each.metrics), details=each.details)
            for each in result.cases
        ]
        ranges = {"faithfulness": (0.0, 1.0)}
        return SuiteReport(
            suite="s", path="s", counts={}, metrics=result.metrics, cases=cases, ranges=ranges, abstained=abstained
        )

    pairs = paired_scores(report(HALF_SILENT), report(BEFORE))
    (change,) = Difference.between(
        pairs.pairing, pairs.pairing.everything(), ["faithfulness"], confidence=0.95
    ).values()
    assert (change.value, change.baseline) == (value, before)


class Counted(Evaluator):
    """The number of words, unbounded, of which fewer are better, and a second metric."""

    name = "counted"

    def describe(self) -> Sequence[Metric]:
        return [Metric("words", higher_is_better=False, high=None), Metric("other")]

    def measure(self, case: Case) -> Observation:
        if case.prediction is None:
            return Observation({}, undefined={"words": "none", "other": "no gold"}, abstained=("words",))
        return Observation({"words": case.prediction, "n": 1, "other": 1, "m": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"words": sums["words"] / sums["n"], "other": sums["other"] / sums["m"]}


def counted(*words: int | None) -> Result:
    return score(Counted(), [Case(str(n), prediction=each) for n, each in enumerate(words)], confidence=None)


def test_a_case_falls_to_the_worst_score_of_an_unbounded_metric_and_others_stay_undefined() -> None:
    pairs = pairing(counted(2, 2, None), counted(2, 7, 2))
    assert pairs.fallen.keys() == {"words"}
    here = pairs.table.metrics(pairs.everything().current.tolist(), None)
    assert (here["words"].value, here["words"].scored) == (11 / 3, 3)
    assert (here["other"].value, here["other"].scored, here["other"].undefined) == (1, 2, 1)


class Claims(Evaluator):
    """The share of claims that hold, of all claims of all cases; a prediction says how many hold, and of how many."""

    name = "claims"

    def describe(self) -> Sequence[Metric]:
        return [Metric("holding")]

    def measure(self, case: Case) -> Observation:
        if case.prediction is None:
            return Observation({"hits": 0, "of": 0}, undefined={"holding": "no claim"}, abstained=("holding",))
        hits, of = case.prediction
        return Observation({"hits": hits, "of": of})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"holding": sums["hits"] / sums["of"]}


def claimed(*answers: tuple[int, int] | None) -> Result:
    return score(Claims(), [Case(f"{n:03}", prediction=each) for n, each in enumerate(answers)], confidence=None)


def test_an_answer_of_many_claims_that_turns_silent_keeps_the_weight_that_it_had() -> None:
    silent = on("holding", claimed(None, (1, 1)), claimed((0, 100), (1, 1)))
    assert silent.value == pytest.approx(0)
    half = on("holding", claimed(None, (1, 1), (1, 2)), claimed((50, 100), (1, 1), (1, 2)))
    assert half.value == pytest.approx((52 - 2) / 103)
    right = compare(claimed(None, (3, 3), (0, 1)), claimed((9, 9), (1, 3), (0, 1))).metrics["holding"]
    assert (right.value, right.baseline) == (pytest.approx(3 / 13), pytest.approx(10 / 13))


answered_claims = st.integers(1, 40).flatmap(lambda of: st.tuples(st.sampled_from([0, of // 2, of]), st.just(of)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(answered_claims, answered_claims, st.booleans()), min_size=2, max_size=9))
def test_silence_is_never_better_than_the_answer_that_was_approved(cases: list[Any]) -> None:
    before = [there for there, _, _ in cases]
    silent = [None if is_silent else here for _, here, is_silent in cases]
    as_before = [there if is_silent else here for there, here, is_silent in cases]
    values = [on("holding", claimed(*each), claimed(*before)).value for each in (silent, as_before)]
    assert values[0] is not None
    assert values[1] is not None
    assert values[0] >= values[1] - 1e-9


def test_partial_results_add_abstentions_up() -> None:
    cases = [Case(str(n), prediction=each) for n, each in enumerate((1, None, 3, None, 2))]
    parts = [score(Counted(), part, partial=True) for part in (cases[:2], cases[2:])]
    merged = PartialResult.from_json(json.loads(json.dumps((parts[0] + parts[1]).to_json())), {"counted": Counted()})
    value = merged.result().metrics["words"]
    assert (value.scored, value.abstained, value.undefined) == (3, 2, 0)


def test_a_case_with_too_few_repeats_that_have_a_score_abstains() -> None:
    repeated = Reduced(Counted(), Repeats(3, "pass_at_k", k=2, success=0.5), counts_abstained=False)
    said = Observation({"other": 1, "m": 1}, undefined={"words": "no gold"})
    silent = Observation({"other": 0, "m": 0}, undefined={"other": "none", "words": "no gold"}, abstained=("other",))
    assert repeated.reduce([said, said, silent]).abstained == ()
    assert repeated.reduce([said, silent, silent]).abstained == ("other",)
    assert repeated.reduce([silent, silent, silent]).abstained == ("other",)


def test_a_pool_of_runs_in_which_other_cases_abstain_is_no_better_than_each_of_them() -> None:
    runs = [rag(tuple(SILENT if n % 3 == turn else FAITHFUL for n in range(60))) for turn in range(3)]
    pool = [CaseStatistics.from_records(each.records) for each in runs]
    change = compare(runs[0], CaseStatistics.pooled(pool)).metrics["faithfulness"]
    assert (change.value, change.baseline) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    free = compare(runs[0], CaseStatistics.pooled(pool, "allowed"), abstained="allowed").metrics["faithfulness"]
    assert (free.value, free.baseline) == (1, 1)


def repeated(*cases: tuple[str, ...], reduce: Any = "mean", abstained: bool = True) -> Result:
    """Return a run whose cases have these answers, one for each repeat."""
    evaluator = Reduced(get_evaluator("claims", metrics=["faithfulness"]), Repeats(2, reduce), abstained)
    first, second = (rag(tuple(case[turn] for case in cases)).records for turn in range(2))
    records = []
    for turns in zip(first, second, strict=True):
        one = evaluator.reduce([each.observations["claims"] for each in turns])
        records.append(structs.replace(turns[0], observations={"claims": one}))
    return summarize({"claims": evaluator}, records)


@pytest.mark.parametrize("reduce", ["mean", "median", "majority", "min", "max", "pass_at_k", "all_of_k"])
def test_repeats_that_abstain_are_no_way_to_a_better_score(reduce: str) -> None:
    """Abstaining where an answer was wrong changes nothing, and where it was right it costs what a wrong one costs."""
    mixed, wrong = (FAITHFUL, UNFAITHFUL), (UNFAITHFUL, UNFAITHFUL)
    before = repeated(*[mixed] * 30, *[wrong] * 30, reduce=reduce)
    silent = repeated(*[(FAITHFUL, SILENT)] * 30, *[(UNFAITHFUL, SILENT)] * 30, reduce=reduce)
    assert silent.metrics["faithfulness"].value == before.metrics["faithfulness"].value
    assert on("faithfulness", silent, before, max_drop=0.02).value == 0
    right = repeated(*[(FAITHFUL, FAITHFUL)] * 30, *[wrong] * 30, reduce=reduce)
    drops = [on("faithfulness", each, right, max_drop=0.02) for each in (silent, before)]
    assert drops[0] == drops[1]
    table = SystemTable.of_results({"app": right, "new": silent}, "app", pairing(silent, right).table.index)
    assert table.differences["new"]["faithfulness"].value == silent.metrics["faithfulness"].value
    free = repeated(*[(FAITHFUL, SILENT)] * 4, reduce=reduce, abstained=False).metrics["faithfulness"].value
    assert free == 1


def test_statistics_of_repeats_keep_the_shares_that_abstain() -> None:
    run = repeated((FAITHFUL, SILENT), (FAITHFUL, FAITHFUL), (SILENT, SILENT), (UNFAITHFUL, SILENT))
    kept = CaseStatistics.from_records(run.records)
    read = CaseStatistics.from_lines(json.loads(json.dumps(list(kept.to_lines()))))
    assert read == kept
    value = read.table(run.evaluators).metrics(range(4), None)["faithfulness"]
    assert (value.value, value.mean, value.scored, value.abstained) == (pytest.approx(0.5), 0.5, 3, 1)
