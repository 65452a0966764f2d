"""Evaluator ``fact_check`` (verdict, evidence and explanation of an answer to a claim), and its mutators."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from pytest_llmeval.core import (
    AnswerChange,
    Basis,
    Case,
    ConfusionMatrix,
    ErrorBucket,
    EvaluatorError,
    FloatArray,
    JudgeError,
    LabelKey,
    LabelTable,
    LazyDetails,
    Metric,
    Mutator,
    Neighbours,
    Observation,
    Reads,
    Sums,
    listed,
    unknown_name,
)
from pytest_llmeval.evaluators import Defects, EvidenceSource, ratio
from pytest_llmeval.judges import JudgedEvaluator, Question, Verdict
from pytest_llmeval.tasks.fact_check._evidence import EvidenceForm, EvidenceMatch, EvidenceMatcher, EvidenceMatching
from pytest_llmeval.tasks.fact_check._scores import (
    EVIDENCE_METRICS,
    EXPLANATION,
    OTHER,
    OVERALL,
    Tally,
    answer_details,
    evidence_details,
    evidence_scores,
    explanation_details,
    mean,
    verdict_scores,
)
from pytest_llmeval.tasks.fact_check._target import (
    ANSWER_KEYS,
    VERDICTS,
    Answer,
    Claim,
    claim_faults,
    read_answer,
    read_claim,
    read_verdict,
)


def answer_lines(details: Mapping[str, Any], *, verdict_right: bool, explained: bool) -> list[str]:
    """The report's lines on a fact check: verdict, missed sources, unmatched citations, defects.

    Args:
        details: Of the observation.
        verdict_right: Whether the verdict is the expected one, or none is expected.
        explained: Whether the explanation has the highest score, or none.
    """
    lines = []
    if not verdict_right:
        predicted = details["predicted_verdict"] or "none"
        lines.append(f"verdict: found {predicted}, expected {details['gold_verdict']}")
    if details["unparsed"]:
        lines.append("the answer is not in a form that can be read")
    for name, words in (
        ("missed_evidence", "source not cited"),
        ("unmatched_citations", "citation that matches no source"),
    ):
        lines += [f"{words}: {text}" for text in details.get(name, ())]
        if (total := details.get(f"{name}_count", 0)) > len(details.get(name, ())):
            lines.append(f"{words}: {total - len(details[name])} more")
    if not explained:
        if reasoning := details.get("explanation_reasoning"):
            lines.append(f"explanation: {reasoning}")
        if defects := details.get("explanation_defects"):
            lines.append(f"defects of the explanation: {listed(defects)}")
    return lines


_WEIGHTS: Final = {"verdict": 0.4, "evidence": 0.3, "explanation": 0.3}
_NORMALIZE: Final = "normalize"
"""Key next to the weights: whether to scale them to a sum of 1."""

_CONFUSION: Final = "confusion[gold->predicted]"
_LIMITS: Final = {
    "verdict_errors": ("verdict_accuracy", 1.0),
    "low_evidence_f1": ("evidence_f1", 0.3),
    "low_explanation_score": (EXPLANATION, 0.5),
}
"""Bucket to metric and the value below which a case belongs into it."""

_MODE: Final = "explanation"
_ABOVE_ONE: Final = frozenset(
    ("evidence_precision", "evidence_f1", "evidence_macro_f1", "evidence_micro_precision", "evidence_micro_f1")
)
"""Metrics without an upper bound in the original form."""


@dataclass(frozen=True)
class FactCheck(JudgedEvaluator):
    """Verdict, evidence and explanation of a fact check, and one score for all three.

    ``input`` is the claim. ``expected`` is an object with ``verdict`` (Supported, Refuted, Not Enough Evidence),
    ``justification`` and ``evidence_sources``, a list of objects with ``content`` and ``url``; and with ``claim``,
    where ``input`` is not it. ``prediction`` is such an object, or the text of a reply that has it as JSON, fenced or
    in prose; ``reasoning`` is read for ``justification``. A reply without such an object is malformed and scored as
    "Not Enough Evidence", justified by its whole text.

    * ``verdict_accuracy``, in [0, 1]: share of right verdicts; ``verdict_accuracy[Refuted]``: of the claims with that
      gold verdict; ``verdict_macro_f1``; ``confusion[Refuted->Supported]``: how often. A verdict that is no label
      counts as predicted "(other)".
    * ``evidence_precision``, ``evidence_recall``, ``evidence_f1``, in [0, 1]: means over claims, each scored by
      `EvidenceMatcher`: what the justification cites, and the answer lists as ``evidence_sources``, against the gold
      sources. ``evidence_f1[Refuted]``: mean over the claims with that gold verdict; ``evidence_macro_f1``: mean of
      these; ``evidence_micro_precision``, ``_recall``, ``_f1``: from all citations and sources together.
    * ``explanation_score``, in [0, 1]: a judge's grade of the justification, by 100; ``defect[fabrication]`` and so on:
      the share of justifications that have a defect. Undefined without a judge, errored where it fails.
    * ``overall_score``: 0.4 [verdict right] + 0.3 evidence F1 + 0.3 explanation score; the mean over the claims that
      have all three.
    * ``unparsed_rate``: share of replies without such an object.

    What the ground truth leaves out is undefined; an empty list of sources says that nothing need be cited.

    Attributes:
        evidence_threshold: Least share of words for two pieces of evidence to match, above 0 and up to 1.
        evidence_form: ``each_side``, or ``original``, in which evidence precision and F1 may exceed 1.
        evidence_matching: `matching` of `EvidenceMatcher`: ``by_kind``, or ``original`` for the original rules.
        evidence_from: Where expected evidence is: ``sources``, in ``evidence_sources``; ``justification``, in what the
            expected justification cites; ``auto``, in that only where ``evidence_sources`` is absent.
        tokenizer: ``auto``, or ``words`` for the original word rule.
        explanation: ``judge``, or ``omit`` to ask no judge and leave explanations out of the overall score.
        weights: Weight in `overall_score` of ``verdict``, ``evidence`` and ``explanation``, where it is not as above;
            what counts is their proportion. With ``normalize: false`` among them the score is the plain sum of
            weights times parts.
        verdict_labels: ``strict``: a verdict is a label letter by letter; ``synonyms``: also by another name.
        error_limits: Value below which a case is an error, where it is not as here: ``verdict_errors`` 1,
            ``low_evidence_f1`` 0.3, ``low_explanation_score`` 0.5.
        verdicts: The labels of the data set, where they are not these three. Macro F1 is then the mean over all of
            them; one that neither side has counts as 0.

    Raises:
        ValueError: An option has an impossible value.
    """

    name = "fact_check"
    reads = Reads(own_keys=ANSWER_KEYS)

    evidence_threshold: float = 0.3
    evidence_form: EvidenceForm = "each_side"
    evidence_matching: EvidenceMatching = "by_kind"
    evidence_from: Literal["auto", "sources", "justification"] = "auto"
    tokenizer: Literal["auto", "words"] = "auto"
    explanation: Literal["judge", "omit"] = "judge"
    weights: dict[str, float | bool] | None = None
    verdict_labels: Literal["strict", "synonyms"] = "strict"
    error_limits: dict[str, float] | None = None
    verdicts: tuple[str, ...] = VERDICTS

    def __post_init__(self) -> None:
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))

    def _faults(self) -> Iterator[str]:
        distinct = set(filter(str.strip, self.verdicts))
        if len(distinct) == 1 or len(distinct) < len(self.verdicts) or not distinct:
            yield f"verdicts: found {list(self.verdicts)}, expected two or more different labels"
        try:
            self._matcher  # noqa: B018 (raises for impossible options)
        except ValueError as error:
            # The matcher's own options have shorter names.
            yield f"{'' if str(error).startswith('tokenizer') else 'evidence_'}{error}"
        if self.evidence_from not in ("auto", "sources", "justification"):
            yield f"evidence_from: found {self.evidence_from!r}, expected auto, sources or justification"
        for name, weight in (self.weights or {}).items():
            if name == _NORMALIZE:
                if not isinstance(weight, bool):
                    yield f"weights: found {weight!r} for {name}, expected true or false"
            elif name not in _WEIGHTS:
                yield f"weights: {unknown_name('part', name, (*_WEIGHTS, _NORMALIZE))}"
            elif isinstance(weight, bool) or not (math.isfinite(weight) and weight >= 0):
                yield f"weights: found {weight!r} for {name}, expected a number of at least 0"
        if not any(self._weights.values()):
            yield "weights: found 0 for all parts in use, expected a positive weight"
        for name, value in (self.error_limits or {}).items():
            if name not in _LIMITS:
                yield f"error_limits: {unknown_name('error bucket', name, _LIMITS)}"
            elif not math.isfinite(value):
                yield f"error_limits: found {value!r} for {name}, expected a number"

    @cached_property
    def _matcher(self) -> EvidenceMatcher:
        return EvidenceMatcher(self.evidence_threshold, self.evidence_form, self.tokenizer, self.evidence_matching)

    @cached_property
    def _weights(self) -> dict[str, float]:
        """The weights of the parts that count; what is left out or has weight 0 does not."""
        weights: dict[str, float] = _WEIGHTS | (self.weights or {})
        weights.pop(_NORMALIZE, None)
        if self.explanation == "omit":
            del weights["explanation"]
        return {name: weight for name, weight in weights.items() if weight}

    @property
    def _normalizes(self) -> bool:
        return (self.weights or {}).get(_NORMALIZE) is not False

    @property
    def _strict(self) -> bool:
        return self.verdict_labels == "strict"

    @property
    def asks(self) -> bool:  # type: ignore[override]  # an option decides it
        """Whether it asks the judge about explanations."""
        return self.explanation == "judge"

    def describe(self) -> Sequence[Metric]:
        """Return the metrics, those of a single claim first."""
        evidence = self._evidence_signature()
        declared = "" if self.verdicts == VERDICTS else f"verdicts:{','.join(self.verdicts)}|"
        verdict = f"labels:{self.verdict_labels}|{declared}v:{self.version}"
        explanation = f"judge:{self._mode_version() if self.asks else 'omitted'}|v:{self.version}"
        weights = ",".join(f"{name}={weight:g}" for name, weight in self._weights.items())
        weights += "" if self._normalizes else ",sum"
        overall = f"weights:{weights}|labels:{self.verdict_labels}|{evidence}"
        high = None if self.evidence_form == "original" else 1.0

        highest = math.fsum(self._weights.values())

        def of_evidence(name: str) -> Metric:
            return Metric(name, high=high if name in _ABOVE_ONE or "[" in name else 1.0, signature=evidence)

        defects = [Metric("defect[label]", higher_is_better=False, signature=explanation)] if self.asks else []
        return [
            Metric("verdict_accuracy", signature=verdict, averaged=True),
            *map(of_evidence, EVIDENCE_METRICS[:3]),
            Metric(EXPLANATION, signature=explanation, averaged=True),
            Metric(OVERALL, high=high if high is None or self._normalizes else highest, signature=overall),
            Metric("verdict_macro_f1", signature=verdict),
            *map(of_evidence, EVIDENCE_METRICS[3:]),
            Metric("unparsed_rate", higher_is_better=False, signature=f"v:{self.version}"),
            Metric("verdict_accuracy[verdict]", signature=verdict),
            of_evidence("evidence_f1[verdict]"),
            *defects,
            Metric(_CONFUSION, high=None, signature=verdict),
        ]

    def _evidence_signature(self) -> str:
        # What was there before these options has no part, so that scores approved then stay comparable.
        matching = "" if self.evidence_matching == "original" else f"matching:{self.evidence_matching}|"
        gold = "" if self.evidence_from == "auto" else f"from:{self.evidence_from}|"
        how = f"threshold:{self.evidence_threshold:g}|{matching}{gold}form:{self.evidence_form}|tok:{self.tokenizer}"
        return f"{how}|v:{self.version}"

    def _mode_version(self) -> str:
        from pytest_llmeval.judges import ModeFile

        return f"{_MODE}@{ModeFile.mode_named(_MODE).version}"

    def tables(self) -> Sequence[LabelTable | ConfusionMatrix]:
        """Return the scores by gold verdict, and the confusion matrix."""
        columns = {"accuracy": "verdict_accuracy[verdict]", "evidence F1": "evidence_f1[verdict]"}
        return [
            LabelTable("", "gold verdict", columns),
            ConfusionMatrix("verdicts: gold by row, predicted by column", self.verdicts, metrics=_CONFUSION),
        ]

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return wrong verdicts, low F1 of evidence, and low explanation scores."""
        limits = self.error_limits or {}
        return [ErrorBucket(name, metric, below=limits.get(name, at)) for name, (metric, at) in _LIMITS.items()]

    def check(self, case: Case) -> Iterable[str]:
        """Yield the faults of the ground truth of a claim."""
        return claim_faults(case.expected, strict=self._strict, labels=self.verdicts)

    def _claim(self, case: Case) -> Claim:
        faults = list(self.check(case))
        if faults:
            raise EvaluatorError("; ".join(faults))
        return read_claim(case.expected, case.input, strict=self._strict, labels=self.verdicts)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the question about the justification; none if explanations are omitted.

        Raises:
            EvaluatorError: The ground truth has faults.
        """
        if not self.asks:
            return ()
        from pytest_llmeval.judges import ModeFile, Question

        claim, answer = self._claim(case), read_answer(case.prediction)
        texts = {
            "claim": claim.text,
            "verdict": answer.verdict if isinstance(answer.verdict, str) else "",
            "justification": answer.justification,
        }
        perhaps = {
            "sources": EvidenceSource.list_text(answer.sources),
            "gold_verdict": claim.verdict,
            "gold_justification": claim.justification,
            "gold_sources": EvidenceSource.list_text(claim.sources),
        }
        texts |= {name: text for name, text in perhaps.items() if text}
        language = Question.instruction_language(claim.text, case.labels.get("language"))
        return (Question(ModeFile.mode_named(_MODE), texts, language),)

    def measure(self, case: Case) -> Observation:
        """Count one claim without a judge: scores that need one are undefined.

        Raises:
            EvaluatorError: The ground truth has faults.
        """
        return self.measure_judged(case, ())

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count one claim.

        Args:
            case: The claim.
            verdicts: The judge's verdict on the justification; empty without a judge.

        Raises:
            EvaluatorError: The ground truth has faults.
        """
        claim, answer = self._claim(case), read_answer(case.prediction)
        tally = Tally({"answers": 1, "unparsed": answer.unparsed})
        tally.verdict(claim.verdict, read_verdict(answer.verdict, strict=self._strict, labels=self.verdicts))
        match, why = self._match(claim, answer)
        tally.evidence(match, claim.verdict, why)
        judged = verdicts[0] if verdicts else None
        self._tally_explanation(tally, judged)
        tally.overall(self._weights, normalize=self._normalizes)

        def details() -> dict[str, Any]:
            evidence = {} if match is None else evidence_details(match)
            explanation = explanation_details(judged, Defects.FLAGS) if isinstance(judged, Verdict) else {}
            return answer_details(claim, answer) | evidence | explanation

        return tally.observation(LazyDetails(details), "; ".join(answer.faults) or None)

    def _match(self, claim: Claim, answer: Answer) -> tuple[EvidenceMatch | None, str]:
        """Compare cited evidence with the expected; ``None`` with the reason where none is known."""
        sources: Sequence[Any] | None = claim.sources
        if self.evidence_from == "justification" or (self.evidence_from == "auto" and sources is None):
            sources = self._matcher.sources(claim.justification) if claim.justification.strip() else None
            if self.evidence_from == "auto" and not sources:
                return None, "no expected evidence_sources, and the expected justification cites nothing"
        if sources is None:
            absent = "justification" if self.evidence_from == "justification" else "evidence_sources"
            return None, f"no expected {absent}"
        return self._matcher.match(self._matcher.sources(answer.justification, answer.sources), sources, claim.text), ""

    def _tally_explanation(self, tally: Tally, verdict: Verdict | JudgeError | None) -> None:
        if isinstance(verdict, JudgeError):
            if verdict.is_unasked:
                tally.undefined[EXPLANATION] = str(verdict)
            else:
                tally.unexplained(str(verdict))
        elif verdict is not None:
            tally.explanation(verdict)
        else:
            tally.undefined[EXPLANATION] = "no judge was used" if self.asks else "explanations are omitted"

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Describe differences in verdict and evidence, and defects of the explanation."""
        del case
        scores = self.scores(observation)
        verdict, grade = scores["verdict_accuracy"], scores[EXPLANATION]
        return answer_lines(observation.details, verdict_right=verdict in (None, 1.0), explained=grade in (None, 1.0))

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """Return a note on the predicted verdicts that are no label, which are always wrong."""
        cells = ConfusionMatrix.read_cells(sums)
        claims = sum(float(column[0]) for column in cells.values())
        others = sum(
            float(column[0]) for (_, predicted), column in cells.items() if predicted == LabelKey.of_value(OTHER)
        )
        if not others:
            return {}
        note = f"{others:g} of {claims:g} predicted verdicts are none of {', '.join(self.verdicts)}"
        more = "" if self.verdict_labels == "synonyms" else "; verdict_labels: synonyms accepts other names"
        return {"verdict_accuracy": Basis(claims, note=note + more)}

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return means over claims, and scores from the counts of all of them."""
        every = self.verdicts != VERDICTS
        scores = verdict_scores(sums, self.verdicts, every=every) | evidence_scores(sums, self.verdicts)
        scores |= {name: mean(sums, name) for name in (EXPLANATION, OVERALL)}
        if self.asks:
            scores |= Defects.rates(sums, sums[f"{EXPLANATION}.n"])
        return scores | {"unparsed_rate": ratio(sums["unparsed"], sums["answers"])}


_INVENTED: Final = {"content": "Weekly notes of an unnamed observer", "url": "https://notes.invalid/1"}
_UNSOURCED: Final = "This is how it is."


def _of_answer(change: Callable[[Answer, Claim, FactCheck, Neighbours], dict[str, Any] | None]) -> AnswerChange:
    """A mutator's change of verdict, justification or sources in a fact checker's readable answer."""

    def changed(case: Case, near: Neighbours) -> Any:
        evaluator = near.evaluator("fact_check")
        assert isinstance(evaluator, FactCheck)
        prediction = evaluator.reads.answer_in(case.prediction)
        answer = read_answer(prediction)
        if answer.unparsed or answer.faults:
            return None
        strict, labels = evaluator.verdict_labels == "strict", evaluator.verdicts
        claim = read_claim(case.expected, case.input, strict=strict, labels=labels)
        new = change(answer, claim, evaluator, near)
        if new is None:
            return None
        as_object = {"verdict": answer.verdict, "justification": answer.justification, "confidence": answer.confidence}
        as_object |= {"evidence_sources": list(answer.sources)} | new
        return json.dumps(as_object, ensure_ascii=False) if isinstance(prediction, str) else as_object

    return changed


def _verdict(answer: Answer, claim: Claim, evaluator: FactCheck, near: Neighbours) -> dict[str, Any] | None:
    """Change the right verdict of a fact checker's answer to a wrong one, for a mutant."""
    strict, labels = evaluator.verdict_labels == "strict", evaluator.verdicts
    verdict = read_verdict(answer.verdict, strict=strict, labels=labels)
    if claim.verdict is None or verdict != claim.verdict:
        return None
    return {"verdict": near.rng.choice([label for label in labels if label != claim.verdict])}


def _no_evidence(answer: Answer, claim: Claim, _evaluator: FactCheck, _near: Neighbours) -> dict[str, Any] | None:
    """Remove justification and sources from a fact checker's answer, for a mutant that evidence scores must notice."""
    if not claim.sources or not (answer.sources or answer.justification):
        return None
    return {"justification": _UNSOURCED, "evidence_sources": []}


def _other_evidence(_answer: Answer, claim: Claim, _evaluator: FactCheck, near: Neighbours) -> dict[str, Any] | None:
    """Justify a fact checker's verdict by the evidence of another claim, for a mutant."""
    for other in near.others:
        reply = read_answer(FactCheck.reads.answer_in(other.prediction))
        if not (claim.sources and reply.sources) or reply.unparsed:
            continue
        if not any(source in claim.sources for source in reply.sources):
            return {"justification": reply.justification, "evidence_sources": list(reply.sources)}
    return None


def _invented(answer: Answer, claim: Claim, _evaluator: FactCheck, _near: Neighbours) -> dict[str, Any] | None:
    """Add an invented source to a fact checker's answer, for a mutant that evidence precision must notice."""
    return None if claim.sources is None else {"evidence_sources": [*answer.sources, _INVENTED]}


def _mutator(name: str, why: str, advice: str, change: Any) -> Mutator:
    """A mutator of fact checkers' answers, made from a change of their parts."""
    return Mutator(name, why, _of_answer(change), advice, ("fact_check",))


MUTATORS: Final = (
    _mutator("verdict_changed", "the verdict is another one", "a gate on verdict_accuracy", _verdict),
    _mutator("evidence_dropped", "no evidence is cited", "a gate on evidence_recall or evidence_f1", _no_evidence),
    _mutator("other_evidence", "the evidence is about another claim", "a gate on evidence_f1", _other_evidence),
    _mutator("evidence_invented", "a source does not exist", "a gate on evidence_precision", _invented),
)
"""Mutators of fact checks."""
