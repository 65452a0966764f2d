"""Evaluator ``document_ids``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from pytest_llmeval.core import (
    MISSING,
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    Metric,
    Observation,
    Parts,
    Reads,
    Sums,
    as_line,
    listed,
)
from pytest_llmeval.data import CaseId
from pytest_llmeval.evaluators import AnswerText, AnswerValue
from pytest_llmeval.tasks.retrieval._ranking import distinct_keys, ranked_counts, relevant_ranks
from pytest_llmeval.tasks.retrieval._source import Fields, Query, Reader, gains_of

_SOURCES: Final = "sources"
_EXPECTED: Final = ("contexts", _SOURCES)
"""Keys of the list of ids in ``expected``, the first ones first."""
_UNLABELLED: Final = "no expected ids"
_NO_DOCUMENT: Final = "the list of expected ids is empty"
_LONGEST_ID: Final = 60
_NO_QUERY: Final = Query(None, None, None)
_MATCH: Final = "match"
"""The name under which `ranked_counts` counts."""


@dataclass(frozen=True)
class DocumentIds(Evaluator):
    """Recall, precision, hit rate, nDCG and MRR of the first k retrieved documents, known by their ids.

    ``expected`` is a list of ids, or has it under ``contexts`` or ``sources``, next to an ``answer``, say. A text is
    one id, or a JSON list of ids. ``prediction`` is the list of results, best first, or has it under ``sources`` or as
    the part ``contexts``; ``on`` names another place. Results are ids, or objects with an id. The numbers 264 and 264.0
    and their texts are the same id.

    A document counts once, at its first rank: several passages of a document do not fill further ranks, and no score
    exceeds 1. Each score is the mean over the cases that expect a document. nDCG is that of trec_eval; an expected
    object may have a ``relevance``, the gain of its document.

    Attributes:
        k: How many documents count: a number, or several.
        metrics: Which of ``recall``, ``precision``, ``hit_rate``, ``ndcg`` and ``mrr``.
        id_fields: Keys of the id in a result that is an object; the first that is not empty is used.
        separator: Text between the ids in a text, such as ``;`` in a CSV; default: a text is one id.

    Raises:
        ValueError: An option is out of its range.
    """

    name = "document_ids"
    reads = Reads(expected=True)

    k: int | tuple[int, ...] = 5
    metrics: tuple[Literal["recall", "precision", "hit_rate", "ndcg", "mrr"], ...] = (
        "recall",
        "precision",
        "hit_rate",
        "ndcg",
        "mrr",
    )
    id_fields: tuple[str, ...] = ("id", "doc_id", "document_id", "source_id", "docno", "_id")
    separator: str | None = None

    def __post_init__(self) -> None:
        cutoffs = self._cutoffs
        if not cutoffs or min(cutoffs) < 1 or len(set(cutoffs)) < len(cutoffs):
            raise ValueError(f"k: found {list(cutoffs)}, expected different numbers of at least 1")
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"found metrics {self.metrics!r}, expected one or more different names")
        if not self.id_fields:
            raise ValueError("id_fields: found an empty list, expected at least one field")
        if self.separator is not None and not self.separator:
            raise ValueError("separator: found an empty text, expected the text between ids, such as ';'")

    @cached_property
    def _cutoffs(self) -> tuple[int, ...]:
        return tuple(sorted((self.k,) if isinstance(self.k, int) else self.k))

    @cached_property
    def _reader(self) -> Reader:
        return Reader(Fields(self.id_fields, ("text",)), frozenset({"id"}), exclude_self=False)

    @property
    def _names(self) -> list[str]:
        return [f"{name}@{k}" for name in self.metrics for k in self._cutoffs]

    def describe(self) -> Sequence[Metric]:
        """Return the chosen metrics, in the order of the option, each for every k."""
        return [Metric(name, signature=f"ids:distinct|v:{self.version}", averaged=True) for name in self._names]

    def check(self, case: Case) -> Iterable[str]:
        """Yield the fault of the expected ids."""
        try:
            self._gains(case.expected)
        except EvaluatorError as error:
            yield str(error)

    def _gains(self, expected: Any) -> Mapping[str, float] | None:
        """Return the expected ids and their gains; ``None`` where nobody has said which are expected."""
        if isinstance(expected, Mapping) and not any(name in expected for name in self.id_fields):
            expected = next((expected[key] for key in _EXPECTED if expected.get(key) is not None), None)
        if isinstance(expected, str):
            expected = self._ids_in(expected)
        if expected is None:
            return None
        ids = expected if isinstance(expected, list | tuple) else [expected]
        for place, id_ in enumerate(ids):
            if self._reader.fields.key_of(id_, "id") is None:
                raise EvaluatorError(
                    f"expected ids[{place}]: found {AnswerValue(id_).kind}, expected a text or a whole number"
                )
        gains: dict[str, float] = {}
        for name, gain in gains_of(ids, "id", self._reader.fields).items():
            gains.setdefault(CaseId(name).canonical(), gain)
        return gains

    def _ids_in(self, text: str) -> list[Any]:
        data = AnswerText(text).json_or_text()
        if isinstance(data, list):
            return data
        parts = [text] if self.separator is None else text.split(self.separator)
        return [each for part in parts if (each := part.strip())]

    def measure(self, case: Case) -> Observation:
        """Count one case.

        Raises:
            EvaluatorError: The expected ids cannot be read.
        """
        gains = self._gains(case.expected)
        if not gains:
            return self.absent(_UNLABELLED if gains is None else _NO_DOCUMENT)
        most = self._cutoffs[-1]
        listed_results, lacking = self._results(case)
        entries = self._reader.entries(listed_results)
        results = self._reader.first(entries, _NO_QUERY, len(entries.items))
        ids = distinct_keys([key and CaseId(key).canonical() for key in results.keys["id"]])
        ranks = relevant_ranks(ids, gains, most)
        ideal = tuple(sorted(gains.values(), reverse=True))
        ranked = ranked_counts(
            _MATCH, tuple([(rank, gains[ids[rank - 1] or ""]) for rank in ranks]), ideal, self._cutoffs
        )
        counts: dict[str, float] = {"n": 1}
        for k in self._cutoffs:
            hits = sum(rank <= k for rank in ranks)
            first = 1 / ranks[0] if hits else 0.0
            scores = {
                "recall": hits / len(gains),
                "precision": hits / k,
                "hit_rate": float(hits > 0),
                "ndcg": ranked.get(f"{_MATCH}_ndcg@{k}", 0.0),
                "mrr": first,
            }
            counts |= {f"{name}@{k}": scores[name] for name in self.metrics}
        matched = {ids[rank - 1] for rank in ranks}
        details = {
            "retrieved_ids": ids[:most],
            "relevant_ranks": list(ranks),
            "missing_ids": [id_ for id_ in gains if id_ not in matched],
        }
        return Observation(
            counts, details, malformed=lacking or entries.fault or self._fault(entries.items, ids, gains)
        )

    def _results(self, case: Case) -> tuple[Any, str | None]:
        """Return the list of results: the prediction, or under ``sources``, or the part ``contexts``; or its fault."""
        prediction = case.prediction
        if not isinstance(prediction, Mapping) or "results" in prediction:
            return prediction, None
        sources = prediction.get(_SOURCES)
        if isinstance(sources, list) and (not sources or any(map(self._has_id, sources))):
            return sources, None
        contexts = case.part_paths.find("contexts", prediction)
        if contexts is not MISSING or sources is not None:
            return sources if contexts is MISSING else contexts, None
        has = Parts.describe(prediction)
        return [], f"{has}; neither 'sources' nor 'contexts'; name the place of the ids, such as on: 'hits[].id'"

    def _has_id(self, result: Any) -> bool:
        return self._reader.fields.key_of(result, "id") is not None

    def _fault(
        self, items: Sequence[Mapping[str, Any]], ids: Sequence[str | None], gains: Mapping[str, float]
    ) -> str | None:
        """The reason why results have no ids: objects without the key of one, or texts of passages."""
        if ids and not any(ids):
            keys = ", ".join(list(map(str, items[0]))[:5]) or "no key"
            return f"found results with {keys}, expected one of the fields {', '.join(self.id_fields)}"
        passages = [id_ for id_ in ids if id_ is not None and " " in id_]
        if ids and len(passages) == len(ids) and not any(" " in id_ for id_ in gains):
            result = AnswerValue(passages[0]).kind
            return f"found results such as {result}, expected ids; name their place: on: 'sources[].id'"
        return None

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """List the expected ids that were not retrieved, and those that were retrieved."""
        del case
        details = observation.details
        if not (missing := details.get("missing_ids")):
            return []
        names = listed(as_line(id_, _LONGEST_ID) for id_ in missing)
        retrieved = listed(as_line(id_ or "a result without id", _LONGEST_ID) for id_ in details["retrieved_ids"])
        return [f"not retrieved: {names}; retrieved: {retrieved or 'nothing'}"]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return means over the cases that expect a document."""
        return {name: sums[name] / sums["n"] for name in self._names}
