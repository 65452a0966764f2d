"""Repeats: how many scores become one, and how steady they are."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Evaluator, EvaluatorError, Metric, Observation, Sums
from pytest_llmeval.core import CaseRecord, FloatArray, MetricValue
from pytest_llmeval.numbers import Repeats, summarize
from pytest_llmeval.numbers._repeats import REDUCERS, Reduced, flakiness_of, spread_of, status_of

UP, DOWN = Metric("score", high=None), Metric("loss", higher_is_better=False, high=None)


@dataclass(frozen=True)
class Rate(Evaluator):
    """Right answers per answer: pooled counts, not a mean of shares."""

    name = "rate"

    def describe(self) -> Sequence[Metric]:
        return [Metric("rate", signature="v:1"), Metric("loss", higher_is_better=False), Metric("kind[label]")]

    def measure(self, case: Case) -> Observation:
        raise NotImplementedError

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        kinds = {f"kind[{name[5:]}]": sums[name] / sums["n"] for name in sums if name.startswith("kind ")}
        return {"rate": sums["right"] / sums["n"], "loss": sums["wrong"] / sums["n"], **kinds}


def seen(right: float, n: float = 1, **more: Any) -> Observation:
    return Observation({"right": right, "wrong": n - right, "n": n}, **more)


def reduced(observations: Sequence[Observation], reduce: Any = "mean", **more: Any) -> tuple[Reduced, Observation]:
    repeats = Repeats(len(observations), reduce, **more)
    evaluator = Reduced(Rate(), repeats)
    return evaluator, evaluator.reduce(observations)


@pytest.mark.parametrize(
    ("reduce", "scores", "up", "down"),
    [
        ("median", [0.1, 0.9, 0.4], 0.4, 0.4),
        ("median", [0.9, 0.1, 0.4, 0.6], 0.5, 0.5),
        ("majority", [1, 0, 1], 1, 1),
        ("majority", [1, 0, 0, 1], 0, 1),  # of equally frequent scores the worst
        ("majority", [0.2, 0.8, 0.5], 0.2, 0.8),
        ("min", [0.4, 0.2, 0.9], 0.2, 0.2),
        ("max", [0.4, 0.2, 0.9], 0.9, 0.9),
    ],
)
def test_reducers_make_one_score_of_many(reduce: str, scores: list[float], up: float, down: float) -> None:
    repeats = Repeats(len(scores))
    assert REDUCERS[reduce](scores, UP, repeats) == pytest.approx(up)
    assert REDUCERS[reduce](scores, DOWN, repeats) == pytest.approx(down)


@pytest.mark.parametrize(("times", "k"), [(times, k) for times in range(1, 6) for k in range(1, times + 1)])
def test_pass_at_k_and_all_of_k_are_the_shares_of_all_choices_of_k_repeats(times: int, k: int) -> None:
    repeats = Repeats(times, "pass_at_k", k)
    for scores in itertools.product([0.0, 1.0], repeat=times):
        chosen = list(itertools.combinations(map(bool, scores), k))
        some = sum(any(each) for each in chosen) / len(chosen)
        every = sum(all(each) for each in chosen) / len(chosen)
        assert REDUCERS["pass_at_k"](scores, UP, repeats) == pytest.approx(some)
        assert REDUCERS["all_of_k"](scores, UP, repeats) == pytest.approx(every)
        counts = Repeats(times).reliability_of(map(bool, scores)).counts
        assert counts[f"pass@{k}"] == pytest.approx(some)
        assert counts[f"pass^{k}"] == pytest.approx(every)


def test_reliability_is_a_mean_over_cases_and_equals_the_closed_form() -> None:
    """If a case passes with probability p, all of k runs pass with p^k, and one of them with 1 - (1 - p)^k."""
    rng = random.Random(11)
    n, chances = 8, [rng.random() for _ in range(4000)]
    reliability = Repeats(n).reliability
    cases = [
        CaseRecord(
            str(place),
            observations={"repeats": Repeats(n).reliability_of([rng.random() < p for _ in range(n)])},
        )
        for place, p in enumerate(chances)
    ]
    found = summarize({"repeats": reliability}, cases).metrics
    for k in range(1, n + 1):
        every = sum(p**k for p in chances) / len(chances)
        some = sum(1 - (1 - p) ** k for p in chances) / len(chances)
        for name, expected in ((f"pass^{k}", every), (f"pass@{k}", some)):
            metric = found[name]
            assert metric.value == pytest.approx(expected, abs=0.02)
            assert metric.low is not None
            assert metric.high is not None
            assert metric.low < metric.value < metric.high


@dataclass(frozen=True)
class Agent(Evaluator):
    """Whether the goal was reached, in how many turns, with which share of errors."""

    name = "agent"

    def describe(self) -> Sequence[Metric]:
        return [Metric("goal"), Metric("turns", high=None), Metric("error_rate", higher_is_better=False)]

    def measure(self, case: Case) -> Observation:
        return Observation({**dict(zip(("goal", "turns", "error_rate"), case.prediction, strict=True)), "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {metric.name: sums[metric.name] / sums["n"] for metric in self.describe()}


def test_metrics_of_which_no_score_is_a_success_are_averaged() -> None:
    agent = Reduced(Agent(), Repeats(5, "all_of_k", 2))
    runs = [(1, 3, 0), (1, 4, 0), (1, 5, 0), (0, 9, 1), (1, 4, 0)]
    found = agent.scores(agent.reduce([Agent().measure(Case("a", prediction=run)) for run in runs]))
    assert found == pytest.approx({"goal": 0.6, "turns": 5, "error_rate": 0.2})


def test_a_success_is_a_score_from_a_mark_on_but_for_what_floats_lose() -> None:
    repeats = Repeats(3, "pass_at_k", 1, 0.3)
    assert REDUCERS["all_of_k"]([0.1 + 0.2, 0.3, 0.3 - 1e-13], UP, repeats) == 1.0
    assert REDUCERS["all_of_k"]([0.3, 0.3, 0.29], UP, repeats) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": 0}, "times: found 0, expected at least 1"),
        ({"times": 2, "k": 3}, "k: found 3, expected 1 to 2"),
        ({"times": 2, "k": 0}, "k: found 0, expected 1 to 2"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Repeats(**options)  # type: ignore[arg-type]  # mypy reads the values as those of every field


@pytest.mark.parametrize(
    ("passed", "status"),
    [
        ([True, True], "stable pass"),
        ([False, False], "stable fail"),
        ([True, False], "flaky"),
        ([True, None, False], "error"),
        ([None], "error"),
    ],
)
def test_a_case_is_steady_flaky_or_broken(passed: list[bool | None], status: str) -> None:
    assert status_of(passed) == status


def test_the_mean_keeps_pooled_metrics_pooled() -> None:
    evaluator, one = reduced([seen(1, 1), seen(0, 3)])
    assert evaluator.scores(one)["rate"] == 0.25  # 1 of 4, not the mean of 1 and 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=6))
def test_repeats_that_agree_change_nothing(pairs: list[tuple[int, int]]) -> None:
    for right, more in pairs:
        alone = seen(right, right + more)
        for reduce in ("mean", "median", "majority", "min", "max"):
            evaluator, one = reduced([alone] * 3, reduce)
            assert evaluator.scores(one)["rate"] == pytest.approx(Rate().scores(alone)["rate"])


@given(st.permutations([seen(0), seen(1), seen(1, 2), seen(1, 4)]), st.sampled_from(["mean", *REDUCERS]))
def test_the_order_of_repeats_does_not_matter(observations: list[Observation], reduce: str) -> None:
    evaluator, one = reduced(observations, reduce, k=2)
    _, sorted_one = reduced(sorted(observations, key=repr), reduce, k=2)
    assert evaluator.scores(one) == pytest.approx(evaluator.scores(sorted_one))


def test_reduced_scores_of_cases_are_averaged_and_members_of_families_with_them() -> None:
    kinds = [Observation({"right": 1, "n": 2, "kind a": 1}), Observation({"right": 2, "n": 2, "kind a": 2})]
    evaluator, one = reduced(kinds, "max")
    _, two = reduced([seen(0), seen(0)], "max")
    from pytest_llmeval.core import Totals

    total = Observation(dict(Totals.add_up([one, two])))
    scores = evaluator.scores(total)
    assert (scores["rate"], scores["kind[a]"]) == (0.5, 1.0)


def test_a_metric_without_value_in_some_repeats_is_reduced_over_the_others() -> None:
    none = Observation({}, undefined={"rate": "no gold", "loss": "no gold"})
    for reduce in ("mean", "min"):
        evaluator, one = reduced([none, seen(1)], reduce)
        assert (evaluator.scores(one)["rate"], one.undefined) == (1.0, {})
        evaluator, one = reduced([none, none], reduce)
        assert (evaluator.scores(one)["rate"], one.undefined) == (None, {"rate": "no gold", "loss": "no gold"})
    evaluator, one = reduced([none, seen(1)], "pass_at_k", k=2)
    assert evaluator.scores(one)["rate"] is None
    assert one.undefined["rate"] == "fewer than 2 repeats have a score"


def test_what_was_errored_or_malformed_in_one_repeat_is_told_with_its_number() -> None:
    bad = Observation({"n": 1}, errored={"rate": "no gold"}, malformed="found 5")
    _, one = reduced([seen(1), bad], "min")
    assert (one.errored, one.malformed) == ({"rate": "repeat 2: no gold"}, "repeat 2: found 5")
    assert not any("rate" in name for name in one.counts)


def test_signatures_say_how_repeats_were_reduced() -> None:
    metrics = Reduced(Rate(), Repeats(3, "all_of_k", 2, 0.5)).describe()
    assert [each.signature for each in metrics][:2] == [
        "v:1|repeats:3|reduce:all_of_k|k:2|success:0.5",
        "repeats:3|reduce:all_of_k|k:2|success:0.5",
    ]
    assert Reduced(Rate(), Repeats(3)).describe()[0].signature == "v:1|repeats:3|reduce:mean"


def test_repeats_cannot_be_measured() -> None:
    with pytest.raises(EvaluatorError, match="repeats are reduced, not measured"):
        Reduced(Rate(), Repeats(2)).measure(Case("c"))


def test_spread_shows_every_score_and_their_range() -> None:
    spread = spread_of([{"a": 1.0, "b": None}, {"a": 0.0}, {"c": 0.5, "a": None}])
    assert spread == {
        "a": {"scores": [1.0, 0.0, None], "min": 0.0, "max": 1.0, "sd": 0.5},
        "c": {"scores": [None, None, 0.5], "min": 0.5, "max": 0.5, "sd": 0.0},
    }


@dataclass(frozen=True)
class Pooled(Rate):
    """An evaluator that has a value only for many cases together."""

    pools_undefined = True


@pytest.mark.parametrize(("reduce", "value"), [("mean", 0.75), ("median", None)])
def test_what_no_case_has_by_itself_is_pooled_over_averaged_repeats(reduce: Any, value: float | None) -> None:
    evaluator = Reduced(Pooled(), Repeats(2, reduce))
    observed = [evaluator.reduce([seen(right, undefined={"rate": "of many"}) for _ in "ab"]) for right in (0.5, 1)]
    records = [CaseRecord(str(number), {}, "passed", {"rate": each}, {}) for number, each in enumerate(observed)]
    assert summarize({"rate": evaluator}, records, confidence=None).metrics["rate"].value == value


@given(st.lists(st.booleans(), min_size=2, max_size=9))
def test_flakiness_is_the_share_of_pairs_of_repeats_that_come_out_differently(passed: list[bool]) -> None:
    pairs = list(itertools.combinations(passed, 2))
    assert flakiness_of(passed) == pytest.approx(sum(one != other for one, other in pairs) / len(pairs))
    assert flakiness_of([*passed, None]) is None


@pytest.mark.parametrize(
    ("reduce", "options", "counted", "allowed"),
    [
        ("mean", {}, 0.5, 1),
        ("median", {}, 0.5, 1),
        ("min", {}, 0, 1),
        ("max", {}, 1, 1),
        ("pass_at_k", {"k": 1}, 0.5, 1),
    ],
)
def test_a_repeat_that_abstains_is_the_worst_of_them(
    reduce: Any, options: dict[str, Any], counted: float, allowed: float
) -> None:
    silent = Observation({}, undefined={"rate": "nothing", "loss": "nothing"}, abstained=("rate",))
    for counts_abstained, expected in ((True, counted), (False, allowed)):
        evaluator = Reduced(Rate(), Repeats(2, reduce, **options), counts_abstained)
        assert evaluator.scores(evaluator.reduce([seen(1), silent]))["rate"] == expected


@dataclass(frozen=True)
class Sized(Rate):
    """A metric without a largest value."""

    def describe(self) -> Sequence[Metric]:
        return [Metric("size", higher_is_better=False, high=None)]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"size": sums["size"] / sums["n"]}


SILENT = Observation({}, undefined={"rate": "nothing", "loss": "nothing"}, abstained=("rate",))


def suite_value(evaluator: Reduced, *cases: Sequence[Observation]) -> MetricValue:
    observed = [evaluator.reduce(repeats) for repeats in cases]
    records = [CaseRecord(str(number), {}, "passed", {"rate": each}, {}) for number, each in enumerate(observed)]
    return summarize({"rate": evaluator}, records, confidence=None).metrics["rate"]


@pytest.mark.parametrize("reduce", sorted({"mean", *REDUCERS}))
@given(data=st.data())
def test_no_repeat_that_abstains_makes_a_case_or_a_suite_better(reduce: Any, data: st.DataObject) -> None:
    """Whatever a repeat answers, it scores no less than one that leaves nothing to score."""
    evaluator = Reduced(Rate(), Repeats(3, reduce))
    scores = data.draw(st.lists(st.lists(st.sampled_from([0, 0.25, 1]), min_size=3, max_size=3), min_size=1))
    silent = [data.draw(st.lists(st.booleans(), min_size=3, max_size=3)) for _ in scores]  # never all of a case
    answered = [[seen(each) for each in repeats] for repeats in scores]
    partly = [
        [SILENT if leaves and not all(which) else each for each, leaves in zip(repeats, which, strict=True)]
        for repeats, which in zip(answered, silent, strict=True)
    ]
    for here, there in zip(partly, answered, strict=True):
        score, full = (evaluator.scores(evaluator.reduce(each))["rate"] for each in (here, there))
        assert score is not None
        assert full is not None
        assert score <= full + 1e-12
    here, there = (suite_value(evaluator, *each) for each in (partly, answered))
    assert here.scored == there.scored == len(scores)
    assert here.value is not None
    assert there.value is not None
    assert here.value <= there.value + 1e-12


def test_a_pooled_value_counts_the_share_of_repeats_that_abstain() -> None:
    evaluator = Reduced(Rate(), Repeats(2))
    found = suite_value(evaluator, [seen(4, 4), SILENT], [seen(2, 4), seen(2, 4)], [SILENT, SILENT])
    # 6 of 8 right in the repeats that were scored, of one case and a half; half a case is wrong.
    assert (found.value, found.mean, found.scored, found.abstained) == (pytest.approx(4 / 6 * 0.75), 0.5, 2, 1)


def test_a_case_abstains_from_a_metric_without_a_worst_value_if_a_repeat_does() -> None:
    silent = Observation({}, undefined={"size": "nothing"}, abstained=("size",))
    for reduce in ("mean", "median", "max"):
        one = Reduced(Sized(), Repeats(2, reduce)).reduce([Observation({"size": 3, "n": 1}), silent])
        assert (one.undefined, one.abstained) == ({"size": "nothing"}, ("size",))
