"""Speed of `retrieval` against pytrec_eval: 10,000 queries with 100 results each, ten positives.

Run as ``python benchmarks/retrieval.py``; needs pytrec_eval (``pip install pytrec-eval-terrier``). Processor time of
one core, the fastest of some rounds that take turns. pytrec_eval reads dictionaries of ids, and its scores per query
are averaged; `retrieval` reads the results of each query, measures and summarises, and its caches start empty in each
round. Both give precision, recall, hit rate, nDCG and MAP at 3, 5 and 10, and MRR, and these are the same to 1e-9.

Scenarios: results are bare ids; objects with an id, where pytrec_eval is given its dictionaries, or makes them of the
objects as whoever uses it must; judgements with a text of 400 characters and attributes, for the
four tasks of `legal`. There pytrec_eval is given the same work: its documents are known by a digest of their text, and
each task has judgements of its own. Half of the positives are found: most of them among the first ten results, as good
searches do, or anywhere among the hundred, where half of the queries have none among the first ten.
"""

__all__ = ("main",)

import gc
import hashlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytrec_eval

from pytest_llmeval.core import Case, Evaluator, Totals
from pytest_llmeval.suites import get_evaluator
from pytest_llmeval.tasks.retrieval._ranking import ranked_counts, set_counts, size_counts

QUERIES, RESULTS, POSITIVES, DOCUMENTS = 10_000, 100, 10, 20_000
JUDGED = 1_000
ROUNDS = 9
MEASURES = {f"{name}.3,5,10" for name in ("ndcg_cut", "map_cut", "P", "recall", "success")} | {"recip_rank"}
NAMES = {"ndcg_cut": "ndcg", "map_cut": "map", "P": "precision", "recall": "recall", "success": "hit_rate"}
TASKS = ("gold", "accusation", "article", "imprisonment")

Scores = dict[str, float]


def ranked(hits: str) -> list[tuple[list[int], list[int]]]:
    """Return positives and results of each query, whose hits are ``early`` or ``anywhere``."""
    rng = random.Random(20240611)
    queries = []
    for _ in range(QUERIES):
        chosen = rng.sample(range(DOCUMENTS), RESULTS + POSITIVES // 2)
        found, missed = chosen[:RESULTS], chosen[RESULTS:]
        places = {min(int(rng.expovariate(1 / 8)), RESULTS - 1) for _ in range(POSITIVES // 2)}
        if hits == "anywhere":
            places = set(rng.sample(range(RESULTS), POSITIVES // 2))
        queries.append(([*(found[place] for place in sorted(places)), *missed], found))
    return queries


def judgement(number: int) -> dict[str, Any]:
    """Return a document; every call makes a new text, as reading JSON does, whose hash nobody knows yet."""
    return {
        "fact": f"Case {number:06}: " + "goods were taken at night from a site. " * 10,
        "accusation": ["theft"] if number % 3 else ["theft", "fraud"],
        "relevant_articles": [str(number % 7)],
        "imprisonment": {"death_penalty": False, "life_imprisonment": False, "imprisonment": number % 60},
    }


def asked(number: int) -> dict[str, Any]:
    fields = judgement(number)
    return {"fact": f"Query {number}", "meta": {**fields, "term_of_imprisonment": fields["imprisonment"]}}


def here(evaluator: Evaluator, cases: Sequence[Case]) -> Scores:
    for cached in (ranked_counts, set_counts, size_counts):
        cached.cache_clear()
    columns = evaluator.summarize(Totals.add_up(map(evaluator.measure, cases)).sums())
    return {name: float(column[0]) for name, column in columns.items()}


def there(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> Scores:
    scores = pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run)
    names = next(iter(scores.values()))
    return {name: sum(each[name] for each in scores.values()) / len(scores) for name in names}


def four_tasks(cases: Sequence[Case]) -> Scores:
    """Score `legal` with pytrec_eval: ids are digests of texts, and each task is a set of judgements; return gold."""

    def digest(document: dict[str, Any]) -> str:
        return hashlib.md5(document["fact"].strip().encode(), usedforsecurity=False).hexdigest()

    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, dict[str, int]]] = {task: {} for task in TASKS}
    for case in cases:
        ids = [digest(each) for each in case.prediction]
        run[case.id] = {name: float(-place) for place, name in enumerate(ids)}
        qrels["gold"][case.id] = {digest(each): 1 for each in case.expected}
        meta = case.input["meta"]
        charge, articles = set(meta["accusation"]), set(meta["relevant_articles"])
        months = meta["term_of_imprisonment"]["imprisonment"]
        near = max(6, 0.2 * months)
        for name, each in zip(ids, case.prediction, strict=True):
            right = {
                "accusation": set(each["accusation"]) == charge,
                "article": set(each["relevant_articles"]) == articles,
                "imprisonment": abs(each["imprisonment"]["imprisonment"] - months) <= near,
            }
            for task, relevant in right.items():
                qrels[task].setdefault(case.id, {})[name] = int(relevant)
    gold, *_ = [there(qrels[task], run) for task in TASKS]
    return gold


def timed(
    functions: Sequence[Callable[[list[Case]], Scores]], cases: Callable[[], list[Case]]
) -> list[tuple[float, Scores]]:
    """Return the fastest of some rounds of each function, and its result; they take turns, with new cases each time."""
    best: list[tuple[float, Scores]] = [(float("inf"), {})] * len(functions)
    for _ in range(ROUNDS):
        for number, function in enumerate(functions):
            fresh = cases()
            gc.collect()
            gc.freeze()  # the collector need not look at the data again and again
            started = time.process_time()
            result = function(fresh)
            best[number] = min(best[number], (time.process_time() - started, result), key=lambda each: each[0])
            gc.unfreeze()
    return best


def row(scenario: str, theirs: tuple[float, Scores], ours: tuple[float, Scores]) -> None:
    agree(ours[1], theirs[1])
    print(f"{scenario:<56}{theirs[0]:>12.3f}{ours[0]:>8.3f}{theirs[0] / ours[0]:>7.2f}")


def agree(ours: Scores, theirs: Scores) -> None:
    for name, value in theirs.items():
        measure, _, k = name.rpartition("_")
        found = ours["gold_mrr" if name == "recip_rank" else f"gold_{NAMES[measure]}@{k}"]
        assert abs(found - value) < 1e-9, name


def by_id(hits: str) -> None:
    """Print the times of results known by id."""
    queries = ranked(hits)
    ids = [f"d{number}" for number in range(DOCUMENTS)]
    evaluator = get_evaluator("retrieval", tasks={"gold": {"rule": "gold", "by": "id"}})
    qrels = {str(n): {ids[each]: 1 for each in positives} for n, (positives, _) in enumerate(queries)}
    run = {
        str(n): {ids[each]: float(RESULTS - place) for place, each in enumerate(found)}
        for n, (_, found) in enumerate(queries)
    }
    expected = [[ids[each] for each in positives] for positives, _ in queries]
    bare = [[ids[each] for each in found] for _, found in queries]
    objects = [[{"id": each, "score": 1.0} for each in found] for found in bare]
    for name, predictions in (("bare ids", bare), ("objects with an id", objects)):
        cases = [Case(str(n), expected=expected[n], prediction=found) for n, found in enumerate(predictions)]
        row(
            f"{QUERIES:,} queries, {name}, hits {hits}",
            *timed([lambda _: there(qrels, run), partial(here, evaluator)], partial(list, cases)),
        )
    row(
        f"{QUERIES:,} queries, the same objects for both, hits {hits}",
        *timed([of_objects, partial(here, evaluator)], partial(list, cases)),
    )


def of_objects(cases: Sequence[Case]) -> Scores:
    """Score objects with pytrec_eval."""
    qrels = {case.id: dict.fromkeys(case.expected, 1) for case in cases}
    run = {
        case.id: {each["id"]: float(RESULTS - place) for place, each in enumerate(case.prediction)} for case in cases
    }
    return there(qrels, run)


def by_text(hits: str) -> None:
    """Print the times of results known by text, for four tasks."""
    queries = ranked(hits)

    def judged() -> list[Case]:
        return [
            Case(str(n), asked(n), [judgement(each) for each in positives], [judgement(each) for each in found])
            for n, (positives, found) in enumerate(queries[:JUDGED])
        ]

    legal = get_evaluator("retrieval")
    row(f"{JUDGED:,} queries, texts, four tasks, hits {hits}", *timed([four_tasks, partial(here, legal)], judged))


def main() -> None:
    """Print the times, and what they are to one another."""
    print(f"{'scenario':<56}{'pytrec_eval':>12}{'here':>8}{'ratio':>7}")
    for hits in ("early", "anywhere"):
        by_id(hits)
        by_text(hits)


if __name__ == "__main__":
    main()
