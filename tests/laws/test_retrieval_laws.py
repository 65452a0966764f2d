"""Laws of `retrieval`, for generated queries: sums, trec_eval, and what must make no difference."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Totals, get_evaluator

BY_ID = get_evaluator("retrieval", tasks={"gold": {"rule": "gold", "by": "id"}}, k=[1, 3, 10], max_positives=None)
LEGAL = get_evaluator("retrieval", k=[1, 3])
SKIP = get_evaluator("retrieval", k=[1, 3], unfilled_ranks="skip")

ids = st.sampled_from([f"d{number}" for number in range(30)])
grades = st.integers(1, 3)
charges = st.lists(st.sampled_from(["theft", "fraud", "arson"]), max_size=2)
terms = st.fixed_dictionaries({}, optional={"imprisonment": st.integers(0, 40), "life_imprisonment": st.booleans()})
attributes = {"accusation": charges, "relevant_articles": charges}
results = st.fixed_dictionaries({}, optional={"fact": ids, "text": ids, "imprisonment": terms, **attributes}) | ids
queries = st.fixed_dictionaries(
    {"fact": ids}, optional={"meta": st.fixed_dictionaries({}, optional={"term_of_imprisonment": terms, **attributes})}
)
legal_cases = st.lists(
    st.builds(
        Case,
        id=st.just("a"),
        input=queries,
        expected=st.none() | st.lists(ids, max_size=12),
        prediction=st.lists(results, max_size=14),
    ),
    max_size=6,
)


def values(evaluator: Any, totals: Totals) -> dict[str, float | None]:
    import numpy as np

    with np.errstate(all="ignore"):
        columns = evaluator.summarize(totals.sums())
    return {name: float(column[0]) if np.isfinite(column[0]) else None for name, column in columns.items()}


@pytest.mark.parametrize("evaluator", [LEGAL, SKIP], ids=["miss", "skip"])
@given(cases=legal_cases, seed=st.integers(0, 99))
def test_any_order_and_any_split_of_queries_give_the_same_scores(evaluator: Any, cases: list[Case], seed: int) -> None:
    rng = random.Random(seed)
    observations = [evaluator.measure(case) for case in cases]
    shuffled = rng.sample(observations, len(observations))
    cut = rng.randint(0, len(cases))
    whole = values(evaluator, Totals.add_up(observations))
    assert values(evaluator, Totals.add_up(shuffled[:cut]) + Totals.add_up(shuffled[cut:])) == whole


@given(cases=legal_cases)
def test_scores_stay_in_the_ranges_that_they_declare(cases: list[Case]) -> None:
    ranges = {metric.name: (metric.low, metric.high) for metric in LEGAL.describe()}
    for name, value in values(LEGAL, Totals.add_up(map(LEGAL.measure, cases))).items():
        low, high = ranges[name]
        assert value is None or (value >= (low or 0) and (high is None or value <= high + 1e-12)), name


@given(cases=legal_cases)
def test_a_metric_is_undefined_exactly_where_a_reason_is_given(cases: list[Case]) -> None:
    for evaluator in (LEGAL, SKIP):
        for case in cases:
            observation = evaluator.measure(case)
            assert observation.fault() is None
            without = {name for name, value in values(evaluator, Totals.add_up([observation])).items() if value is None}
            assert without == set(observation.undefined)


@given(cases=legal_cases)
def test_without_unfilled_ranks_both_ways_of_counting_agree(cases: list[Case]) -> None:
    filler = [{"fact": f"filler {number}"} for number in range(3)]
    filled = [case.answered([*case.prediction, *filler]) for case in cases]
    assert values(LEGAL, Totals.add_up(map(LEGAL.measure, filled))) == values(
        SKIP, Totals.add_up(map(SKIP.measure, filled))
    )


@given(
    positives=st.dictionaries(ids, grades, min_size=1, max_size=12),
    found=st.lists(ids, unique=True, max_size=30),
    tail=st.integers(0, 60),
)
def test_ranked_scores_are_those_of_trec_eval(positives: dict[str, int], found: list[str], tail: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    found = [*(f"other{number}" for number in range(tail)), *found] if tail % 2 else found
    run = {document: float(len(found) - place) for place, document in enumerate(found)}
    measures = {"ndcg_cut.1,3,10", "map_cut.1,3,10", "recip_rank", "P.1,3,10", "recall.1,3,10", "success.1,3,10"}
    theirs = pytrec_eval.RelevanceEvaluator({"q": positives}, measures).evaluate({"q": run})
    expected = [{"id": document, "relevance": grade} for document, grade in positives.items()]
    ours = BY_ID.evaluate(found, {"positives": expected})
    names = {"ndcg_cut": "ndcg", "map_cut": "map", "P": "precision", "recall": "recall", "success": "hit_rate"}
    if not found:  # pytrec_eval leaves a query without results out
        assert {ours[f"gold_{name}@{k}"] for name in names.values() for k in (1, 3, 10)} == {0.0}
        return
    for name, value in theirs["q"].items():
        measure, _, k = name.rpartition("_")
        here = "gold_mrr" if name == "recip_rank" else f"gold_{names[measure]}@{k}"
        assert ours[here] == pytest.approx(value, abs=1e-9), name


@given(
    found=st.lists(ids, max_size=20),
    repeats=st.lists(st.integers(1, 15), min_size=20, max_size=20),
    positives=st.lists(ids, min_size=1),
)
def test_repetitions_make_no_difference_to_ranked_scores(
    found: list[str], repeats: list[int], positives: list[str]
) -> None:
    repeated = [each for each, times in zip(found, repeats, strict=False) for _ in range(times)]
    once, often = (
        BY_ID.evaluate(results, {"positives": positives}) for results in (list(dict.fromkeys(found)), repeated)
    )
    for name in ("gold_mrr", *(f"gold_{name}@{k}" for name in ("ndcg", "map") for k in (1, 3, 10))):
        assert often[name] == once[name], name


@given(cases=legal_cases)
def test_junk_and_the_query_itself_make_no_difference(cases: list[Case]) -> None:
    for case in cases:
        noisy = [each for result in case.prediction for each in ("junk", {"fact": case.input["fact"]}, result)]
        assert LEGAL.scores(LEGAL.measure(case.answered(noisy))) == LEGAL.scores(LEGAL.measure(case))
