"""Evaluator ``retrieval`` (ranked search results, by lists of positives and by attributes), and its mutators."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count
from typing import Any, Final, Literal

from pytest_llmeval.core import (
    AnswerChange,
    Basis,
    Case,
    Evaluator,
    FloatArray,
    Metric,
    MetricTable,
    Mutator,
    Neighbours,
    Observation,
    Reads,
    Sums,
    as_line,
    counted,
    excerpt,
    listed,
    printable,
)
from pytest_llmeval.evaluators import AnswerText, AnswerValue
from pytest_llmeval.tasks.retrieval._ranking import (
    LEGAL,
    LISTED_MEASURES,
    RANKED_MEASURES,
    SET_MEASURES,
    UNLISTED,
    GoldList,
    Near,
    Relevance,
    Rule,
    SameSet,
    Tasks,
    ranked_counts,
    ranked_scores,
    relevant_gains,
    relevant_ranks,
    set_counts,
    set_scores,
    size_counts,
    unknown_counts,
)
from pytest_llmeval.tasks.retrieval._source import (
    Entries,
    Fields,
    Query,
    Reader,
    Results,
    gains_of,
    listed_positives,
    positive_faults,
    relevance_of,
)

_TITLE = 60


def ranking_lines(details: Mapping[str, Any], gold: Iterable[str], most: int) -> list[str]:
    """Describe the rank of each task's first relevant result, and the positives that were not found.

    Args:
        details: Of the observation.
        gold: Tasks with a list of positives.
        most: The largest k.
    """
    lists, lines = set(gold), []
    results = min(details["n_results"], most)
    for task, ranks in details["relevant_ranks"].items():
        missing = details.get("missing_positives", {}).get(task, ())
        noun = "positive" if task in lists else "relevant result"
        if task in lists and not ranks and not missing:
            continue  # no positive is listed
        if not ranks:
            lines.append(f"{task}: no {noun} among {_among(results)}")
        elif ranks[0] > 1:
            lines.append(f"{task}: the first {noun} is at rank {ranks[0]}")
        if missing:
            lines.append(f"{task}: positives not found: {listed(as_line(positive, _TITLE) for positive in missing)}")
    for task, number in details.get("unjudged", {}).items():
        lines.append(f"{task}: {number} of {counted(results, 'result')} without the attribute: not judged")
    if skipped := details.get("n_skipped"):
        lines.append(f"{counted(skipped, 'item')} of the results cannot be read")
    return lines


def _among(results: int) -> str:
    """The results that were searched for a positive, in a line of the report."""
    return f"the first {counted(results, 'result')}" if results else "the results: there are none"


_ABSENT = "no expected positives"
_NO_ATTRIBUTES = "the query has no meta"
_TABLE_MEASURES = ("precision", "recall", "hit_rate", "macro_f1", "micro_f1")
_SHOWN_TEXT = 40
_SHOWN_KEYS = 5
_ABOVE_ONE = "above 1: more results are relevant than positives are listed (recall_denominator)"


@dataclass(frozen=True)
class Retrieval(Evaluator):
    """Precision, recall, hit rate and F1 of the first k results, and nDCG, MAP and MRR.

    A case is one query. ``input`` is its text, or an object with a text under one of `text_fields` and attributes under
    ``meta``. ``expected`` is ``{"positives": [...]}`` or the list alone, best first: texts, ids, or objects that hold
    them, with a ``relevance`` above 0 where grades are known. ``prediction`` is the list of results, best first:
    objects, or ids where a rule goes by id. Where none does, a bare text is no result, and is skipped.

    Each task is a rule that says which results are relevant, and has its own scores. A document that is listed twice
    counts twice, except by id, and in nDCG, MAP and MRR. Those are trec_eval's: the gain of a document is its
    relevance, each query with a list counts, and results are taken in their order, regardless of their scores.

    A result that lacks an attribute which others have is read as the original reads it, as one without values, flags
    and months; ``unjudged`` in the details counts such results. Where no result has the attribute, nothing is known:
    the query has no scores by that rule. A prediction is malformed if it is no list of results, if none of them has a
    text or an id that a rule goes by, or if an attribute is of another kind.

    Recall is relevant results over positives, for every task. By id it is at most 1. By other rules it exceeds 1 where
    more results are relevant than positives are listed, unless `recall_denominator` is ``k``. A query with an empty
    list has 0 in all metrics of its list, as in trec_eval; without a list they are undefined, as recall
    and F1 of all tasks. A query without ``meta`` has no scores by rules that compare attributes.

    Attributes:
        k: The cut-offs; the metrics are computed for each.
        max_positives: How many positives count at most, the first ones; ``null`` for all.
        exclude_self: Whether a result with the text of the query is left out, and where a rule goes by id, one with its
            id.
        text_fields: Keys of the text; the first one that is not empty is used.
        id_fields: Keys of the id.
        tasks: Name to rule; ``legal`` means the tasks ``gold``, ``accusation``, ``article`` and ``imprisonment``.
        recall_denominator: What recall divides by: ``positives``, how many of them count; ``k``, the largest cut-off,
            for each query that has a list, at each k; or a number, likewise.
        relevance_level: The least ``relevance`` of a positive that counts as relevant, as ``-l`` of trec_eval; nDCG
            uses all grades. Default: every positive counts.
        absent_attributes: What a result without an attribute is where others have it: ``empty``, or ``unknown``, which
            is not relevant.
        unfilled_ranks: What ranks without a result are: ``miss``, not relevant; ``skip``, at a k that is not filled the
            query does not count.

    Raises:
        ValueError: An option is out of its range.
    """

    name = "retrieval"
    reads = Reads(own_keys=("results",))

    k: tuple[int, ...] = (3, 5, 10)
    max_positives: int | None = 10
    exclude_self: bool = True
    text_fields: tuple[str, ...] = ("fact", "text", "content", "sentence")
    id_fields: tuple[str, ...] = ("id", "doc_id", "docno", "_id")
    tasks: Tasks = "legal"
    recall_denominator: Literal["positives", "k"] | int = "positives"
    unfilled_ranks: Literal["miss", "skip"] = "miss"
    absent_attributes: Literal["empty", "unknown"] = "empty"
    relevance_level: float | None = None

    def __post_init__(self) -> None:
        if not self.k or min(self.k) < 1 or len(set(self.k)) < len(self.k):
            raise ValueError(f"k: found {list(self.k)}, expected different numbers of at least 1")
        if self.max_positives is not None and self.max_positives < 1:
            raise ValueError(f"max_positives: found {self.max_positives}, expected at least 1, or null")
        if not (self.text_fields and self.id_fields):
            raise ValueError("text_fields, id_fields: found an empty list, expected at least one field")
        if not self.tasks:
            raise ValueError("tasks are missing")
        if self.unfilled_ranks not in ("miss", "skip"):
            raise ValueError(f"unfilled_ranks: found {self.unfilled_ranks!r}, expected 'miss' or 'skip'")
        if self.absent_attributes not in ("empty", "unknown"):
            raise ValueError(f"absent_attributes: found {self.absent_attributes!r}, expected 'empty' or 'unknown'")
        if self.relevance_level is not None and not 0 < self.relevance_level < math.inf:
            raise ValueError(f"relevance_level: found {self.relevance_level!r}, expected a number above 0")
        whole = self.recall_denominator
        if whole not in ("positives", "k") and not (type(whole) is int and whole >= 1):
            raise ValueError(
                f"recall_denominator: found {whole!r}, expected 'positives', 'k' or a number of at least 1"
            )
        for task in self._rules:
            if not task.isidentifier():
                raise ValueError(f"tasks: found the name {task!r}, expected letters, digits and underscores")

    @cached_property
    def _rules(self) -> Mapping[str, Rule]:
        return LEGAL if isinstance(self.tasks, str) else self.tasks

    @cached_property
    def _gold(self) -> Mapping[str, GoldList]:
        return {task: rule for task, rule in self._rules.items() if isinstance(rule, GoldList)}

    @cached_property
    def _others(self) -> Mapping[str, SameSet | Near]:
        return {task: rule for task, rule in self._rules.items() if not isinstance(rule, GoldList)}

    @cached_property
    def _reader(self) -> Reader:
        kinds = frozenset(rule.by for rule in self._gold.values())
        return Reader(self._fields, kinds, self.exclude_self)

    @cached_property
    def _cutoffs(self) -> tuple[int, ...]:
        return tuple(sorted(self.k))

    @cached_property
    def _fixed(self) -> int | None:
        """The denominator of recall that is the same for every query; ``None`` where it is the number of positives."""
        if self.recall_denominator == "k":
            return self._cutoffs[-1]
        return self.recall_denominator if isinstance(self.recall_denominator, int) else None

    def _high(self, task: str, measure: str, k: int) -> float | None:
        """Return the largest value of a measure; ``None`` if more results may be relevant than recall divides by."""
        rule = self._rules[task]
        if measure not in LISTED_MEASURES:
            return 1.0
        if self._fixed is not None:
            is_bounded = k <= self._fixed
        elif isinstance(rule, GoldList):
            is_bounded = k == 1 or rule.by == "id"
        else:  # micro scores count results of queries without positives
            is_bounded = k == 1 and not measure.startswith("micro")
        return 1.0 if is_bounded else None

    @cached_property
    def _fields(self) -> Fields:
        return Fields(self.id_fields, self.text_fields)

    def describe(self) -> Sequence[Metric]:
        """Return the metrics, task by task."""
        out = []
        for task, rule in self._rules.items():
            signature = self._signature(rule)
            for name in SET_MEASURES:
                averaged = not name.startswith("micro")
                out += [
                    Metric(f"{task}_{name}@{k}", high=self._high(task, name, k), signature=signature, averaged=averaged)
                    for k in self._cutoffs
                ]
            if task in self._gold:
                ranked = [f"{task}_{name}@{k}" for name in RANKED_MEASURES for k in self._cutoffs]
                out += [Metric(name, signature=signature, averaged=True) for name in [*ranked, f"{task}_mrr"]]
        return out

    def _signature(self, rule: Rule) -> str:
        most = "all" if self.max_positives is None else self.max_positives
        parts = [rule, f"positives:{most}", f"self:{'left_out' if self.exclude_self else 'kept'}"]
        if self.recall_denominator != "positives":
            parts.append(f"recall:{self.recall_denominator}")
        if self.relevance_level is not None and isinstance(rule, GoldList):
            parts.append(f"level:{self.relevance_level:g}")
        if self.absent_attributes != "empty" and not isinstance(rule, GoldList):
            parts.append(f"absent:{self.absent_attributes}")
        return "|".join(map(str, (*parts, f"unfilled:{self.unfilled_ranks}", f"v:{self.version}")))

    def tables(self) -> Sequence[MetricTable]:
        """Return the table of the tasks, a column for each k."""
        labels = {name: name.replace("_", " ").replace("f1", "F1") for name in _TABLE_MEASURES}
        rows = [
            ((task, labels[name]), tuple(f"{task}_{name}@{k}" for k in self._cutoffs))
            for task in self._rules
            for name in _TABLE_MEASURES
        ]
        return [MetricTable("", ("task", "metric", *(f"@{k}" for k in self._cutoffs)), rows, _ABOVE_ONE)]

    def check(self, case: Case) -> Iterable[str]:
        """Yield the faults of the query's attributes and of the positives."""
        meta = self._fields.query_of(case.input).meta
        if not isinstance(meta, Mapping | None):
            yield f"input.meta: found {AnswerValue(meta).kind}, expected an object"
        for task, rule in self._others.items():
            if fault := rule.fault(meta):
                yield f"input.meta: task {task!r}: {fault}"
        yield from positive_faults(case.expected, self._reader.kinds, self._fields)

    def measure(self, case: Case) -> Observation:
        """Count one query.

        Raises:
            EvaluatorError: The positives cannot be read.
        """
        positives = listed_positives(case.expected)
        if positives is not None:
            positives = positives[: self.max_positives]
        gold = {task: gains_of(positives or (), rule.by, self._fields) for task, rule in self._gold.items()}
        if self.relevance_level is None and gold:  # which has found every grade to be above 0
            number, relevant = None if positives is None else len(positives), gold
        else:
            level = self.relevance_level or 0
            number = None if positives is None else sum(relevance_of(positive) >= level for positive in positives)
            relevant = {
                task: {key: gain for key, gain in gains.items() if gain >= level} for task, gains in gold.items()
            }
        query = self._fields.query_of(case.input)
        entries = self._reader.entries(case.prediction)
        results = self._reader.first(entries, query, self._cutoffs[-1])
        ranks = {} if number is None else self._gold_ranks(results, relevant)
        attributes = query.meta is not None
        judged = self._judged(results, query) if attributes else {}
        ranks |= {task: tuple(compress(count(1), self._relevant(relevances))) for task, relevances in judged.items()}
        unknown = [
            task
            for task, relevances in judged.items()
            if relevances and all(relevance.unjudged for relevance in relevances)
        ]
        retrieved = len(results.items)
        cutoffs = self._cutoffs
        if self.unfilled_ranks == "skip":
            cutoffs = tuple([k for k in cutoffs if k <= retrieved])
        whole = number if number is None or self._fixed is None else self._fixed
        counts = dict(size_counts(min(retrieved, self._cutoffs[-1]), cutoffs, whole, attributes=attributes))
        for task, hits in ranks.items():
            counts.update(set_counts(task, hits if task not in unknown else (), cutoffs, whole))
        for task in unknown:
            counts.update(unknown_counts(task, min(retrieved, self._cutoffs[-1]), cutoffs, whole))
        reads = entries, query, results
        for task in gold if number is not None else ():
            counts.update(self._ranked_counts(task, relevant[task], ranks[task], *reads))
            if self.relevance_level is not None:
                every = self._gold_ranks(results, {task: gold[task]})[task]
                graded = self._ranked_counts(task, gold[task], every, *reads)
                counts.update({name: graded.get(name, 0) for name in self._graded(task)})
        if attributes:
            counts.update(self._apart(query, results, ranks))
        details = self._details(entries, results, ranks, relevant)
        if unjudged := {
            task: n for task, relevances in judged.items() if (n := sum(relevance.unjudged for relevance in relevances))
        }:
            details["unjudged"] = unjudged
        undefined = self._undefined(number, attributes=attributes)
        unanswered = self._unanswered(retrieved, unknown)
        malformed = entries.fault or self._malformed(entries, results, judged)
        abstained = tuple([name for name in unanswered if name not in undefined])
        return Observation(counts, details, unanswered | undefined, malformed, abstained=abstained)

    def _malformed(self, entries: Entries, results: Results, judged: Mapping[str, Sequence[Relevance]]) -> str | None:
        """The reason why a list of objects cannot be read as results."""
        for task, relevances in judged.items():
            for rank, relevance in enumerate(relevances, 1):
                if relevance.fault is not None:
                    return f"result {rank}, task {task!r}: {relevance.fault}"
        for by in sorted(self._reader.kinds):
            keys = results.keys[by]
            if keys and results.complete and not any(keys):
                first = entries.items[0] if entries.items else {}
                names = ", ".join(printable(str(key)) for key in list(first)[:_SHOWN_KEYS]) or "no key"
                return f"found results with {names}, expected one of the fields {', '.join(self._fields.names(by))}"
        return None

    def _gold_ranks(self, results: Results, gold: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[int, ...]]:
        """Return the ranks of positives up to the largest k, by task; of an id its first rank."""
        ranks = {}
        for task, gains in gold.items():
            keys = results.keys[self._gold[task].by]
            each = relevant_ranks(keys, gains, self._cutoffs[-1])
            is_id = self._gold[task].by == "id"
            ranks[task] = tuple(sorted({keys[rank - 1]: rank for rank in reversed(each)}.values())) if is_id else each
        return ranks

    def _judged(self, results: Results, query: Query) -> dict[str, Sequence[Relevance]]:
        """Return the relevance of the results up to the largest k by task, from the query's attributes."""
        head = results.items[: self._cutoffs[-1]]
        return {task: rule.judge(query.meta, head) for task, rule in self._others.items()}

    def _relevant(self, judged: Iterable[Relevance]) -> Iterable[bool]:
        """The relevant results."""
        strict = self.absent_attributes == "unknown"
        return (
            relevance.relevant and relevance.fault is None and not (strict and relevance.unjudged)
            for relevance in judged
        )

    def _graded(self, task: str) -> list[str]:
        """Return the scores of a task that weigh grades."""
        return [f"{task}_ndcg@{k}" for k in self._cutoffs]

    def _ranked_counts(
        self,
        task: str,
        gains: Mapping[str, float],
        ranks: tuple[int, ...],
        entries: Entries,
        query: Query,
        results: Results,
    ) -> Mapping[str, float]:
        """Return the counts of nDCG, MAP and MRR of one query; 0 for each if no document is relevant."""
        ranked = self._ranked_gains(task, gains, ranks, entries, query, results) if gains else ()
        return ranked_counts(task, ranked, tuple(sorted(gains.values(), reverse=True)), self._cutoffs)

    def _apart(self, query: Query, results: Results, ranks: Mapping[str, Sequence[int]]) -> dict[str, float]:
        """Return a count for each attribute whose values no result shares with the query."""
        head = results.items[: self._cutoffs[-1]]
        return {
            f"{task}_apart": 1
            for task, rule in self._others.items()
            if not ranks[task] and isinstance(rule, SameSet) and rule.is_apart(query.meta, head)
        }

    def _ranked_gains(
        self,
        task: str,
        gains: Mapping[str, float],
        ranks: tuple[int, ...],
        entries: Entries,
        query: Query,
        results: Results,
    ) -> tuple[tuple[int, float], ...]:
        """Return rank and gain of the positives found, reading on behind the largest k as far as that matters."""
        by = self._gold[task].by
        most = self._cutoffs[-1]
        keys = results.keys[by]
        relevant = relevant_gains(keys, gains, ranks, most, complete=results.complete)
        if relevant is None:
            for part in self._reader.behind(entries, query, results):
                keys = [*keys, *part.keys[by]]
                relevant = relevant_gains(keys, gains, ranks, most, complete=part.complete)
                if relevant is not None:
                    break
        return relevant or ()

    def _details(
        self,
        entries: Entries,
        results: Results,
        ranks: Mapping[str, Sequence[int]],
        gold: Mapping[str, Mapping[str, float]],
    ) -> dict[str, Any]:
        """Return the details for people, without empty ones."""
        numbers = {"n_self": results.itself, "n_skipped": entries.junk}
        details: dict[str, Any] = {
            "relevant_ranks": {task: list(rank) for task, rank in ranks.items()},
            "n_results": len(entries.items),
            **{name: number for name, number in numbers.items() if number},
        }
        for task, gains in gold.items():
            by = self._gold[task].by
            keys = results.keys[by]
            if unknown := keys.count(None):
                details[f"n_without_{by}"] = unknown
            there = [keys[rank - 1] for rank in ranks.get(task, ())]
            if left := [key for key in gains if key not in there] if there else list(gains):
                texts = left if by == "id" else [excerpt(text, _SHOWN_TEXT) for text in left]
                details.setdefault("missing_positives", {})[task] = texts
        return details

    def _undefined(self, number: int | None, *, attributes: bool) -> dict[str, str]:
        """Return the metrics without a value for a query with any result, with reasons."""
        reasons: dict[str, str] = {}
        if number is None:
            for task in self._rules:
                reasons |= self._without(task, SET_MEASURES if task in self._gold else LISTED_MEASURES, _ABSENT)
            for task in self._gold:
                reasons |= self._without(task, RANKED_MEASURES, _ABSENT) | {f"{task}_mrr": _ABSENT}
        if not attributes:
            for task in self._others:
                reasons |= self._without(task, SET_MEASURES, _NO_ATTRIBUTES)
        return reasons

    def _unanswered(self, retrieved: int, unknown: Iterable[str]) -> dict[str, str]:
        """Return the metrics without a value because of what was retrieved, with reasons."""
        reasons: dict[str, str] = {}
        if self.unfilled_ranks == "skip":
            for k in self._cutoffs:
                if retrieved < k:
                    names = [f"{task}_{name}@{k}" for task in self._rules for name in SET_MEASURES]
                    reasons |= dict.fromkeys(names, f"{retrieved} results, fewer than {k}")
        for task in unknown:
            reasons |= self._without(task, SET_MEASURES, f"no result has {' or '.join(self._others[task].paths)}")
        return reasons

    def _without(self, task: str, measures: Iterable[str], why: str) -> dict[str, str]:
        return {f"{task}_{name}@{k}": why for name in measures for k in self._cutoffs}

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Describe the rank of the first positive, and the positives that were not found."""
        del case
        return ranking_lines(observation.details, self._gold, self._cutoffs[-1])

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """Return a note on each attribute of which no result of any query has a value of its query."""
        bases = {}
        k = self._cutoffs[-1]
        for task, rule in self._others.items():
            queries = sum(float(sums[f"{group}queries@{k}"][0]) for group in ("", UNLISTED))
            if queries and float(sums[f"{task}_apart"][0]) == queries:
                why = f"no result of any query has a value of its query's {rule.query_field or rule.field}"
                note = f"{why}: the two sides may write them differently"
                bases[f"{task}_precision@{self._cutoffs[0]}"] = Basis(queries, note=note)
        return bases

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return means over queries, and the micro scores of summed counts."""
        scores: dict[str, FloatArray] = {}
        for task in self._rules:
            for k in self._cutoffs:
                scores |= set_scores(sums, task, k, gold=task in self._gold)
            if task in self._gold:
                scores |= ranked_scores(sums, task, self._cutoffs)
        return scores


_Results = list[Any]


def _listed(prediction: Any) -> _Results | None:
    """The search results of a prediction in any form; ``None`` if there are none."""
    results = Retrieval.reads.answer_in(prediction)
    results = AnswerText(results).json_or_text() if isinstance(results, str) else results
    results = results.get("results") if isinstance(results, Mapping) else results
    return results if isinstance(results, list) and results else None


def _of_results(
    change: Callable[[_Results, Callable[[Any], bool], Neighbours, int], _Results | None],
) -> AnswerChange:
    """A mutator's change of a ranked list, which has at least one of the positives."""

    def changed(case: Case, near: Neighbours) -> Any:
        evaluator = near.evaluator("retrieval")
        assert isinstance(evaluator, Retrieval)
        results = _listed(case.prediction)
        if results is None or not (positives := listed_positives(case.expected)):
            return None
        fields = Fields(evaluator.id_fields, evaluator.text_fields)
        rules = LEGAL if isinstance(evaluator.tasks, str) else evaluator.tasks
        kinds = {rule.by for rule in rules.values() if isinstance(rule, GoldList)}
        gains = {by: gains_of(positives[: evaluator.max_positives], by, fields) for by in kinds}

        def is_relevant(result: Any) -> bool:
            return any(fields.key_of(result, by) in gains[by] for by in kinds)

        first = results[: max(evaluator.k)]
        if not any(map(is_relevant, first)):
            return None
        new = change(results, is_relevant, near, max(evaluator.k))
        return None if new is None or new == results else new

    return changed


def _removed(results: _Results, is_relevant: Callable[[Any], bool], _near: Neighbours, _most: int) -> _Results:
    """Remove all relevant results from a ranked list, for a mutant."""
    return [result for result in results if not is_relevant(result)]


def _last(results: _Results, is_relevant: Callable[[Any], bool], _near: Neighbours, _most: int) -> _Results:
    """Move all relevant results to the end of a ranked list, for a mutant."""
    return sorted(results, key=is_relevant)


def _first_removed(results: _Results, is_relevant: Callable[[Any], bool], _near: Neighbours, _most: int) -> _Results:
    """Remove the first relevant result from a ranked list, for a mutant."""
    place = next(place for place, result in enumerate(results) if is_relevant(result))
    return [*results[:place], *results[place + 1 :]]


def _doubled(results: _Results, is_relevant: Callable[[Any], bool], _near: Neighbours, most: int) -> _Results | None:
    """Repeat the first relevant search result in place of an irrelevant next one, for a mutant."""
    place = next(place for place, result in enumerate(results) if is_relevant(result))
    behind = place + 1
    if behind >= min(len(results), most) or is_relevant(results[behind]):
        return None
    return [*results[: place + 1], results[place], *results[behind + 1 :]]


def _of_another(_results: _Results, is_relevant: Callable[[Any], bool], near: Neighbours, most: int) -> _Results | None:
    """Take the results of another query without any of the positives, for a mutant."""
    lists = (_listed(other.prediction) for other in near.others)
    return next((list_ for list_ in lists if list_ is not None and not any(map(is_relevant, list_[:most]))), None)


def _mutator(name: str, why: str, advice: str, change: Any) -> Mutator:
    """A mutator of ranked search results, made from a change of the list."""
    return Mutator(name, why, _of_results(change), advice, ("retrieval",))


MUTATORS: Final = (
    _mutator("other_results", "they are the results of another query", "a gate on recall or hit rate", _of_another),
    _mutator("positives_removed", "no positive was found", "a gate on recall or hit rate", _removed),
    _mutator("first_positive_removed", "the best positive is missing", "a gate on recall", _first_removed),
    _mutator("positives_last", "all positives stand behind the other results", "a gate on MRR, MAP or nDCG", _last),
    _mutator(
        "positive_doubled",
        "a result is there twice, in place of another",
        "a check that ids differ: precision counts a document as often as it is listed",
        _doubled,
    ),
)
"""Mutators of search results."""
