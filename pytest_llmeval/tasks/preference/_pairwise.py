"""Evaluator ``pairwise``: which of two answers is better."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from pathlib import Path
from statistics import NormalDist
from string import Template
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core import (
    Case,
    CaseRecord,
    ComparingEvaluator,
    EvaluatorError,
    FloatArray,
    JudgeError,
    Metric,
    Observation,
    Reads,
    Result,
    Strengths,
    Sums,
    excerpt,
    unknown_name,
)
from pytest_llmeval.evaluators import CaseTexts, References, ratio
from pytest_llmeval.judges import JudgedEvaluator, Mode, ModeFile, Question, ReplyObject, Verdict
from pytest_llmeval.numbers import cluster_totals

PROMPTS: Final = Path(__file__).parent / "prompts"

REFERENCE: Final = "reference"
"""The right answer of the case as an opponent."""
SYSTEMS: Final = "systems"
"""All other systems of the suite as opponents."""

PairOutcome: TypeAlias = Literal["win", "tie", "loss"]

_SCORES: Final = {"first": 1.0, "tie": 0.5, "second": 0.0}
_SCHEMA: Final = ReplyObject.schema(
    reasoning={"type": "string"}, better={"type": "string", "enum": ["first", "second", "tie"]}
)
_SAYS = ReplyObject.verdict_pattern("better", "(?:first|second|tie)(?![a-z0-9_])")


@lru_cache(maxsize=64)
def pairwise_mode(criteria: str | None = None) -> Mode:
    """The judge mode whose score is 1 if the first answer is better, 0 if the second is, 0.5 for a tie.

    Args:
        criteria: What makes an answer better; inserted into the instructions unchanged. The version of the mode then
            holds their digest. Default: those of the mode.
    """
    file = ModeFile("pairwise", PROMPTS)
    general = file.content["criteria"]
    digest = "" if criteria is None else hashlib.sha256(criteria.encode("utf-8", "surrogatepass")).hexdigest()
    return file.mode(
        digest and f"-{digest[:8]}",
        instructions={
            language: Template(text).substitute(criteria=general[language] if criteria is None else criteria)
            for language, text in file.content["instructions"].items()
        },
        scale=(0.0, 1.0),
        read=read_better,
        reply_schema=_SCHEMA,
        decides=True,
        tied=_SCORES["tie"],
    )


def read_better(reply: str) -> Verdict:
    """Read a pairwise judge's reply, whose ``better`` is ``first``, ``second`` or ``tie``.

    Raises:
        JudgeError: No JSON object ends the reply, it says something else, or the text before it contradicts it.
    """
    data = ReplyObject.closing(reply, _statement, _SAYS)
    better = data.get("better")
    if not isinstance(better, str) or better.strip().lower() not in _SCORES:
        raise JudgeError.wrong_value(reply, data, "better", "first, second or tie")
    return Verdict(_SCORES[better.strip().lower()], data.text("reasoning"))


def _statement(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The choice in a pairwise judge's reply, which the prose around it must not contradict."""
    return {"better": data["better"]} if "better" in data else {}


_FIELDS = ("question", "reference", "answer")
_OPTIONAL = ("reference",)
_NAMES = ("win_rate", "wins", "losses", "ties", "flip_rate")
_PLURAL: Final[Mapping[PairOutcome, str]] = {"win": "wins", "tie": "ties", "loss": "losses"}
_LANGUAGE_LABEL = "language"
_LONGEST_REASONING = 1000
"""Characters of the judge's reasons that details keep, for each order."""


class _Pair(NamedTuple):
    """The answer and one opponent's answer, with the judge's questions in both orders.

    Attributes:
        name: Of the opponent.
        questions: In both orders; empty where the answers are equal, or the other is missing.
        missing: Why there is no other answer.
    """

    name: str
    questions: Sequence[Question] = ()
    missing: str = ""


class _ComparedPair(NamedTuple):
    """A pairwise judge's outcome for a pair in each order, with the reasons; or the error."""

    pair: _Pair
    orders: Sequence[PairOutcome] = ()
    reasons: Sequence[str] = ()
    error: JudgeError | None = None

    @property
    def outcome(self) -> PairOutcome | None:
        """The outcome that holds in both orders, else a tie; ``None`` where there is none."""
        if self.pair.missing or self.error is not None:
            return None
        if not self.orders:
            return "tie"
        return self.orders[0] if self.orders[0] == self.orders[1] else "tie"

    @property
    def flips(self) -> bool:
        """Whether the orders have different outcomes."""
        return len(set(self.orders)) > 1


@dataclass(frozen=True)
class Pairwise(JudgedEvaluator, ComparingEvaluator):
    """The answer against another one, as a judge compares them in both orders.

    The judge is asked twice about each pair, once with either answer first. An answer wins if it wins in both orders,
    and loses if it loses in both; anything else is a tie, so that a judge that prefers a position decides nothing.
    Equal answers are a tie for which nobody is asked.

    * ``win_rate``: wins and half of the ties, over all pairs;
    * ``wins``, ``losses``, ``ties``: numbers of pairs;
    * ``flip_rate``: share of the pairs put to the judge whose outcome is another one in the other order.

    The input is the question, as in evaluator ``judge``. Where the case has an expected answer, the judge sees it as
    the right one, unless it is the opponent. A case lacks all five metrics if one of its opponents has no answer.

    Attributes:
        against: The opponent: a system of the suite; ``systems``, all others of the suite; ``approved``, the answer
            that was approved with the scores of the suite; ``reference``, the expected answer, of several the first.
            Or a list of such names: pairs of all opponents count, and ``win_rate[opponent]`` is the rate against one.
            A system is not compared with itself, except as the only opponent, which is a tie.
        criteria: What makes an answer better, in place of the general criteria of the mode.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.

    Raises:
        ValueError: `against` names no opponent, or one twice; or `criteria` are blank.
    """

    name = "pairwise"
    decides = True
    reads = Reads("answer", objects=True)

    against: str | tuple[str, ...] = REFERENCE
    criteria: str | None = None
    language: Literal["auto", "en", "zh"] = "auto"

    def __post_init__(self) -> None:
        names = self._named
        if not names or not all(name.strip() for name in names) or len(set(names)) < len(names):
            raise ValueError(f"found against {list(names)}, expected different names of opponents")
        if self.criteria is not None and not self.criteria.strip():
            raise ValueError("found blank criteria, expected text")

    @property
    def _named(self) -> tuple[str, ...]:
        return (self.against,) if isinstance(self.against, str) else self.against

    @property
    def opponents(self) -> Sequence[str]:
        """The opponents whose predictions `Case.others` has."""
        return [name for name in self._named if name != REFERENCE]

    def among(self, systems: Sequence[str]) -> "Pairwise":
        """Return the evaluator with the systems in place of ``systems``.

        Raises:
            EvaluatorError: The suite does not have one that it names, or has one with a name that means something else.
        """
        if ambiguous := {REFERENCE, ComparingEvaluator.APPROVED, SYSTEMS}.intersection(self._named, systems):
            name = min(ambiguous)
            raise EvaluatorError(f"found {name!r}, which is also a system of the suite: give the system another name")
        known = [*systems, REFERENCE, ComparingEvaluator.APPROVED, *([SYSTEMS] if systems else [])]
        for name in self._named:
            if name not in known:
                raise EvaluatorError(unknown_name("opponent", name, known))
        if SYSTEMS not in self._named:
            return self
        named = [opponent for name in self._named for opponent in (systems if name == SYSTEMS else [name])]
        return replace(self, against=tuple(dict.fromkeys(named)))

    def describe(self) -> Sequence[Metric]:
        """Return the metrics; for one opponent, the rate against it is the rate."""
        mode = self._mode()
        signature = f"mode:{mode.name}@{mode.version}|against:{','.join(self._named)}|orders:2|lang:{self.language}"
        signature = f"{signature}|v:{self.version}"
        most = None if SYSTEMS in self._named else float(len(self._named))
        metrics = [
            Metric("win_rate", signature=signature),
            Metric("wins", high=None, signature=signature, per_case=most),
            Metric("losses", higher_is_better=False, high=None, signature=signature, per_case=most),
            Metric("ties", high=None, signature=signature, per_case=most),
            Metric("flip_rate", higher_is_better=False, signature=signature),
        ]
        return [*metrics, Metric("win_rate[opponent]", signature=signature)] if self._has_family else metrics

    @property
    def _has_family(self) -> bool:
        return not isinstance(self.against, str) or self.against == SYSTEMS

    def _mode(self) -> Mode:
        return pairwise_mode(self.criteria)

    def _texts(self, case: Case) -> CaseTexts:
        texts = CaseTexts.of_case(case, _FIELDS, _OPTIONAL)
        if texts.fault:
            raise EvaluatorError(texts.fault)
        return texts

    def check(self, case: Case) -> Iterable[str]:
        """Yield what keeps a case from being compared: its question, or the form of its expected answer."""
        if fault := CaseTexts.of_case(case, _FIELDS, _OPTIONAL).fault:
            yield fault

    def _pairs(self, case: Case, texts: CaseTexts) -> Iterator[_Pair]:
        """Yield the pairs of a case."""
        names = [name for name in self._named if name != SYSTEMS]
        if SYSTEMS in self._named:
            names += [name for name in case.others if name not in (*names, ComparingEvaluator.APPROVED)]
        itself = [name for name in names if case.is_of(name)]
        for name in itself if len(itself) == len(names) else [name for name in names if name not in itself]:
            yield self._pair(case, texts, name)
        if not names:
            yield _Pair(SYSTEMS, missing="no answers of other systems are given")

    def _pair(self, case: Case, texts: CaseTexts, name: str) -> _Pair:
        shared = {key: text for key, text in texts.by_field.items() if key != "answer"}
        answer = texts.by_field["answer"]
        if name == REFERENCE:
            references = [reference for reference in References.read(case.expected).texts if reference.strip()]
            if not references:
                return _Pair(name, missing="no expected answer")
            del shared["reference"]
            others = references
        else:
            if case.is_of(name):
                return _Pair(name)
            if why := case.why_absent(name):
                return _Pair(name, missing=f"{name}: {why}")
            answered = replace(case, prediction=case.others[name])
            others = [CaseTexts.of_case(answered, _FIELDS, _OPTIONAL).by_field["answer"]]
        if answer.strip() in {text.strip() for text in others}:
            return _Pair(name)
        label = case.labels.get(_LANGUAGE_LABEL)
        language = Question.instruction_language(texts.subject, label) if self.language == "auto" else self.language
        orders = ((answer, others[0]), (others[0], answer))
        questions = [Question(self._mode(), {**shared, "first": a, "second": b}, language) for a, b in orders]
        return _Pair(name, questions)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return two questions for each pair of different answers, one for each order."""
        return [question for pair in self._pairs(case, self._texts(case)) for question in pair.questions]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count wins, ties and losses.

        Raises:
            JudgeError: The judge gave no verdict on any pair.
        """
        texts = self._texts(case)
        replies = iter(verdicts)
        compared = [_compared(pair, list(islice(replies, len(pair.questions)))) for pair in self._pairs(case, texts)]
        errors = [comparison.error for comparison in compared if comparison.error is not None]
        if len(errors) == len(compared):
            raise errors[0]
        counts: dict[str, float] = {}
        undefined: dict[str, str] = {}
        errored: dict[str, str] = {}
        for comparison in compared:
            name = comparison.pair.name
            lost = (*_NAMES, f"win_rate[{name}]") if self._has_family else _NAMES
            if comparison.error is not None:
                errored |= dict.fromkeys(lost, f"{name}: {comparison.error}")
            elif comparison.outcome is None:
                undefined |= dict.fromkeys(lost, comparison.pair.missing)
            else:
                counts |= {
                    f"{plural}[{name}]": float(comparison.outcome == outcome) for outcome, plural in _PLURAL.items()
                }
        if not errored and not undefined:
            for outcome, plural in _PLURAL.items():
                counts[plural] = sum(comparison.outcome == outcome for comparison in compared)
            counts["asked"] = sum(bool(comparison.orders) for comparison in compared)
            counts["flips"] = sum(comparison.flips for comparison in compared)
            if not counts["asked"]:
                undefined["flip_rate"] = "no pair of different answers"
        undefined = {name: why for name, why in undefined.items() if name not in errored}
        details = {"against": {comparison.pair.name: _details(comparison) for comparison in compared}}
        return Observation(counts, details, undefined, texts.malformed, errored)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say to whom the answer lost, and where the order of the answers decided; nothing for wins and plain ties."""
        del case
        return [
            line for name, detail in observation.details.get("against", {}).items() for line in _lines(name, detail)
        ]

    def strengths(
        self, label: str, results: Mapping[str, Result], cluster_by: str | None, confidence: float
    ) -> Strengths | None:
        """Return the strengths of systems that were compared with each other; see `strengths_of`."""
        cases = pairs_of_systems(results, label)
        records = [record for record, _ in cases]
        return strengths_of(label, [pairs for _, pairs in cases], records, cluster_by, confidence=confidence)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return rates and numbers of pairs."""
        import numpy as np

        pairs = sums["wins"] + sums["ties"] + sums["losses"]
        metrics = {"win_rate": ratio(sums["wins"] + sums["ties"] / 2, pairs)}
        metrics |= {name: np.where(pairs > 0, sums[name], np.nan) for name in ("wins", "losses", "ties")}
        metrics["flip_rate"] = ratio(sums["flips"], sums["asked"])
        if self._has_family:
            names = [name[len("wins[") : -1] for name in sums if name.startswith("wins[")]
            for name in sorted(names):
                wins, ties, losses = (sums[f"{count}[{name}]"] for count in ("wins", "ties", "losses"))
                metrics[f"win_rate[{name}]"] = ratio(wins + ties / 2, wins + ties + losses)
        return metrics


def _compared(pair: _Pair, verdicts: Sequence[Verdict | JudgeError]) -> _ComparedPair:
    """The outcome of a pair of answers from the judge's verdicts in both orders."""
    judged = [verdict for verdict in verdicts if not isinstance(verdict, JudgeError)]
    if len(judged) < len(verdicts):
        return _ComparedPair(pair, error=next(verdict for verdict in verdicts if isinstance(verdict, JudgeError)))
    orders = [_outcome(verdict.score if place == 0 else 1 - verdict.score) for place, verdict in enumerate(judged)]
    return _ComparedPair(pair, orders, [verdict.reasoning for verdict in judged])


def _outcome(score: float) -> PairOutcome:
    """The outcome that a pairwise verdict's score means for the answer: win, loss or tie."""
    return "win" if score == 1 else "loss" if score == 0 else "tie"


def _details(compared: _ComparedPair) -> dict[str, Any]:
    """One opponent's outcome, orders and judge reasons, for the details of a pairwise case."""
    if compared.pair.missing:
        return {"missing": compared.pair.missing}
    if compared.error is not None:
        return {"error": str(compared.error)}
    if not compared.orders:
        return {"outcome": compared.outcome, "equal": True}
    reasons = [excerpt(reason, _LONGEST_REASONING, lines=True) for reason in compared.reasons]
    return {"outcome": compared.outcome, "orders": list(compared.orders), "reasoning": reasons}


def _lines(name: str, details: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report's lines on a lost comparison, or on one that the order of answers decided."""
    orders, reasons = details.get("orders", ()), details.get("reasoning", ())
    if len(set(orders)) > 1:
        yield f"{name}: {orders[0]} when it stands first, {orders[1]} when it stands second, so a tie"
    elif details.get("outcome") == "loss":
        yield f"lost to {name} in both orders"
    else:
        return
    yield from (reason for reason in dict.fromkeys(reasons) if reason)


PairCounts: TypeAlias = Mapping[tuple[str, str], tuple[float, float, float]]
"""Two systems to how often the first won, tied and lost."""

RIDGE: Final = 0.1
"""Of all parameters: a normal prior with a standard deviation of 3.2, that of a system which wins 96 of 100 pairs."""

_FEWEST = 3
_CURVATURE = math.sqrt(2)
_MOST_STEPS = 200
_EXACT = 1e-10
_MOST_RESAMPLES = 2_000
"""Each of them is fitted."""
_DIGITS = 9
"""Decimals of a parameter that do not depend on the machine."""


def strengths_of(
    label: str,
    cases: Sequence[PairCounts],
    records: Sequence[CaseRecord],
    cluster_by: str | None = None,
    *,
    confidence: float = 0.95,
) -> Strengths | None:
    """Fit the model of Davidson (1970, "On extending the Bradley-Terry model to accommodate ties").

    A system with strength ``a`` wins against one with strength ``b`` with the weight ``a``, loses with ``b``, and ties
    with ``ties * sqrt(a * b)``. The logarithms of all parameters have a ridge penalty, so that they are finite also for
    a system that never loses. The interval holds the percentiles of resampled cases, and that of the normal
    approximation at the maximum: resamples of a system that wins every pair would all agree.

    Args:
        label: Of the evaluator.
        cases: What came of the pairs of each case.
        records: The cases.
        cluster_by: A label; cases with the same value of it are drawn together.
        confidence: Of the intervals.

    Returns:
        The strengths; ``None`` for fewer than three systems, or if some of them are compared with none of the others.
    """
    import numpy as np

    names = list(dict.fromkeys(name for case in cases for pair in case for name in pair))
    pairs = [
        (first, second) for first, second in combinations(names, 2) if any(_has(case, first, second) for case in cases)
    ]
    if len(names) < _FEWEST or not _connected(names, pairs):
        return None
    matrix = np.array([[count for pair in pairs for count in _counts(case, *pair)] for case in cases])
    outcomes = _outcomes(names, pairs)
    value, hessian = _fit(matrix.sum(axis=0, keepdims=True), outcomes)
    totals = cluster_totals(matrix, records, cluster_by, _MOST_RESAMPLES)
    low: FloatArray | list[None] = [None] * len(names)
    high: FloatArray | list[None] = [None] * len(names)
    if len(totals):
        tail = (1 - confidence) / 2
        resampled, _ = _fit(totals, outcomes, start=value)
        ends = np.quantile(_centred(resampled), [tail, 1 - tail], axis=0)
        reach = NormalDist().inv_cdf(1 - tail) * _errors(hessian[0])
        centre = _centred(value)[0]
        low, high = np.minimum(ends[0], centre - reach), np.maximum(ends[1], centre + reach)
    columns = (
        [None if number is None else _rounded(number) for number in column]
        for column in (_centred(value)[0], low, high)
    )
    compared = int((matrix.sum(axis=1) > 0).sum())
    ties, matches = _rounded(np.exp(value[0, -1])), round(float(matrix.sum()))
    return Strengths.rank(label, zip(names, *columns, strict=True), ties, matches, compared)


def _rounded(value: float) -> float:
    """A rating of systems, rounded for the report, without negative zero."""
    return round(float(value), _DIGITS) + 0.0


def _has(case: PairCounts, first: str, second: str) -> bool:
    """Whether a case compared two systems, in either order."""
    return (first, second) in case or (second, first) in case


def _counts(case: PairCounts, first: str, second: str) -> tuple[float, float, float]:
    """A system's wins, ties and losses against another; each pair counts once, in either order."""
    if (first, second) in case:
        return case[first, second]
    wins, ties, losses = case.get((second, first), (0.0, 0.0, 0.0))
    return losses, ties, wins


def _connected(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether comparisons connect all systems, so that they can be ranked on one scale."""
    reached = {names[0]}
    for _ in names:
        reached |= {name for pair in pairs if reached.intersection(pair) for name in pair}
    return len(reached) == len(names)


def _outcomes(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> FloatArray:
    """The terms of each outcome's log weight in the model of system strengths: ``(pairs, 3, parameters)``."""
    import numpy as np

    features = np.zeros((len(pairs), 3, len(names) + 1))
    for row, pair in enumerate(pairs):
        first, second = map(names.index, pair)
        features[row, 0, first] = features[row, 2, second] = features[row, 1, -1] = 1.0
        features[row, 1, [first, second]] = 0.5
    return features


def _fit(totals: FloatArray, features: FloatArray, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Fit system strengths: maximise the penalised likelihood of each row of totals by damped Newton steps.

    The damping is that of generalised self-concordant functions (Sun and Tran-Dinh 2019), which never overshoots.

    Returns:
        The parameters, shape ``(rows, parameters)``, and minus the second derivatives there.
    """
    import numpy as np

    pairs, _, size = features.shape
    counts = totals.reshape(len(totals), pairs, 3)
    played = counts.sum(axis=2)
    parameters = np.zeros((len(totals), size)) if start is None else np.repeat(start, len(totals), axis=0)
    for _ in range(_MOST_STEPS):
        weights = np.exp(parameters @ features.reshape(-1, size).T).reshape(counts.shape)
        shares = weights / weights.sum(axis=2, keepdims=True)
        gradient = np.einsum("rpo,pof->rf", counts - played[..., None] * shares, features) - RIDGE * parameters
        mean = np.einsum("rpo,pof->rpf", shares, features)
        hessian = np.einsum("rp,rpo,pof,pog->rfg", played, shares, features, features, optimize=True)
        hessian -= np.einsum("rp,rpf,rpg->rfg", played, mean, mean, optimize=True)
        hessian += RIDGE * np.eye(size)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        length = _CURVATURE * np.linalg.norm(step, axis=1, keepdims=True)
        if length.max() < _EXACT:
            break
        parameters = parameters + step * np.log1p(length) / np.maximum(length, _EXACT)
    return parameters, hessian


def _centred(parameters: FloatArray) -> FloatArray:
    """The fitted strengths of systems with mean 0; the last column, the parameter of ties, is left out."""
    centred: FloatArray = parameters[:, :-1] - parameters[:, :-1].mean(axis=1, keepdims=True)
    return centred


def _errors(hessian: FloatArray) -> FloatArray:
    """The standard errors of the centred system strengths."""
    import numpy as np

    size = len(hessian) - 1
    centre = np.eye(size) - 1 / size
    covariance = centre @ np.linalg.inv(hessian)[:size, :size] @ centre
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


def pairs_of_systems(
    results: Mapping[str, Result], label: str
) -> list[tuple[CaseRecord, dict[tuple[str, str], tuple[float, float, float]]]]:
    """The cases in which several systems were compared pairwise, with wins, ties and losses of each two.

    A pair that both were asked about is there once, as the first of them saw it.

    Args:
        results: System to result.
        label: Of the evaluator.
    """
    by_case: dict[str, tuple[CaseRecord, dict[tuple[str, str], tuple[float, float, float]]]] = {}
    for system, result in results.items():
        for record in result.records:
            counts = record.observations[label].counts if label in record.observations else {}
            for other in results:
                if other == system or f"wins[{other}]" not in counts:
                    continue
                _, pairs = by_case.setdefault(record.id, (record, {}))
                if (other, system) not in pairs:
                    wins, ties, losses = (counts[f"{plural}[{other}]"] for plural in ("wins", "ties", "losses"))
                    pairs[system, other] = wins, ties, losses
    return list(by_case.values())
