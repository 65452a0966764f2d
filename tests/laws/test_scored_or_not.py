"""The compared population is the suite's: no prediction of a case takes its score away, except that it abstains."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from examples import GENERATORS, WORDS, Generator, answered
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmeval import Case, Evaluator, Observation, Result, get_evaluator, score
from pytest_llmeval.core import Metric
from pytest_llmeval.judges import JudgedEvaluator


def retrieved(rng: random.Random) -> Any:
    return {"answer": " ".join(rng.choices(WORDS, k=2)), "contexts": rng.choices(WORDS, k=rng.randint(0, 2))}


LAWFUL: Mapping[str, Generator] = {
    # Predictions of `recorded` are the scores of another runner: where it gave none, there is none.
    **{name: each for name, each in GENERATORS.items() if name != "recorded"},
    "text, words": replace(GENERATORS["text"], build=lambda: get_evaluator("text", tokenizer="words")),
    "claims, retrieved": replace(GENERATORS["claims"], answer=retrieved, input=lambda _: "What is grey?"),
    "tools, valid": replace(
        GENERATORS["tools"], build=lambda: get_evaluator("tools", schemas={"a": {"type": "object"}})
    ),
}
"""Cases of every evaluator, and of those whose options matter to what can be scored."""

EXCEPTIONS = {
    "cohen_kappa": "it is about many cases: where both sides always say one label, chance agrees as well",
    "flip_rate": "it is about the judge: equal answers are a tie, and no judge is asked",
}
"""Metrics that may depend on the answer for being defined, with the reason."""

FOREIGN = (
    *(
        "",
        " \n\t ",
        "I do not know.",
        "I cannot help with that.",
        "我不知道。",
        "не знаю",
        "…",
        "!!",
        "null",
        "[]",
        "{}",
    ),
    *(None, 0, 3.5, True, [], {}, ["a"], [None], [[]], {"a": 1}, {"answer": ""}, {"answer": None}, {"contexts": []}),
    *("word " * 2000, "鳥" * 500),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9) | st.sampled_from(FOREIGN),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["answer", "text", "turns", "tool_calls", "results"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def answers(generator: Generator, rng: random.Random, foreign: Sequence[Any]) -> tuple[list[Case], Evaluator]:
    expected, given_input = generator.gold(rng), generator.input(rng)
    predictions = [*FOREIGN, *foreign, *(generator.answer(rng) for _ in range(6)), expected]
    cases = [
        Case(str(number), input=given_input, expected=expected, prediction=each)
        for number, each in enumerate(predictions)
    ]
    return cases, generator.build()


def scored(evaluator: Evaluator, cases: Sequence[Case]) -> Result:
    judge = answered if isinstance(evaluator, JudgedEvaluator) else None
    return score(evaluator, cases, confidence=None, judge=judge)


def state(observation: Observation | None, metric: Metric, value: float) -> str:
    if observation is None or metric.name in observation.errored:
        return "errored"
    if math.isfinite(value):
        return "scored"
    return "abstained" if metric.name in observation.abstained else "undefined"


def worst(metric: Metric) -> float | None:
    return metric.low if metric.higher_is_better else metric.high


@pytest.mark.parametrize("name", sorted(LAWFUL))
@settings(max_examples=settings.default.max_examples // 3)  # each is thirty cases
@given(seed=st.integers(0, 2**32), foreign=st.lists(JSON, max_size=4))
def test_scored_or_not_is_the_same_for_all_answers_of_a_case_and_counted(
    name: str, seed: int, foreign: list[Any]
) -> None:
    cases, evaluator = answers(LAWFUL[name], random.Random(seed), foreign)
    result = scored(evaluator, cases)
    observations = [next(iter(each.observations.values()), None) for each in result.records]
    for metric in evaluator.describe():
        if "[" in metric.name or metric.name in EXCEPTIONS or metric.name not in result.case_scores:
            continue
        values = result.case_scores[metric.name].tolist()
        shares = result.metrics[metric.name]
        states = [state(each, metric, value) for each, value in zip(observations, values, strict=True)]
        best = {value for value in values if math.isfinite(value) and value != worst(metric)}
        # Where nothing is expected, an answer that finds something scores 0, and none scores more.
        assert "undefined" not in states or not best, (
            f"{metric.name}: {cases[states.index('undefined')].prediction!r} is undefined, "
            f"{cases[states.index('scored')].prediction!r} has a score"
        )
        counts = {name: states.count(name) for name in ("scored", "abstained", "undefined", "errored")}
        assert counts == {name: getattr(shares, name) for name in counts}


def test_wrong_answers_in_another_script_lower_the_mean() -> None:
    cases = [Case(str(n), expected="Paris", prediction=each) for n, each in enumerate(("Paris", "巴黎", "北京"))]
    rouge1 = score(get_evaluator("text", tokenizer="words"), cases).metrics["rouge1"]
    assert (rouge1.value, rouge1.scored) == (1 / 3, 3)
