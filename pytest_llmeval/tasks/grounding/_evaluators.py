"""Evaluators ``claims`` and ``checklist``."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from pytest_llmeval.core import (
    Case,
    ErrorBucket,
    EvaluatorError,
    FloatArray,
    JudgeError,
    Metric,
    Observation,
    Parts,
    Reads,
    Sums,
    as_line,
)
from pytest_llmeval.evaluators import AnswerValue, CaseTexts
from pytest_llmeval.judges import JudgedEvaluator, Question, Verdict
from pytest_llmeval.tasks.grounding._questions import CLAIM_MODES, checklist_mode, claim_mode_version
from pytest_llmeval.tasks.grounding._steps import (
    ANSWER_IN_CONTEXTS,
    ANSWER_IN_REFERENCE,
    ANSWER_RELEVANCE,
    CITATIONS,
    CONTEXT_RELEVANCE,
    REFERENCE_IN_ANSWER,
    REFERENCE_IN_CONTEXTS,
    Findings,
    Items,
    Step,
    Unknown,
    claim_details,
    claim_texts,
)

ClaimMetric: TypeAlias = Literal[
    "faithfulness",
    "hallucination_rate",
    "context_recall",
    "context_precision",
    "context_relevance",
    "factual_precision",
    "factual_recall",
    "factual_f1",
    "answer_relevancy",
    "citation_support",
]

_STEPS: Final[Mapping[str, Sequence[Step]]] = {
    "faithfulness": [ANSWER_IN_CONTEXTS],
    "hallucination_rate": [ANSWER_IN_CONTEXTS],
    "context_recall": [REFERENCE_IN_CONTEXTS],
    "context_precision": [REFERENCE_IN_CONTEXTS],
    "context_relevance": [CONTEXT_RELEVANCE],
    "factual_precision": [ANSWER_IN_REFERENCE],
    "factual_recall": [REFERENCE_IN_ANSWER],
    "factual_f1": [ANSWER_IN_REFERENCE, REFERENCE_IN_ANSWER],
    "answer_relevancy": [ANSWER_RELEVANCE],
    "citation_support": [CITATIONS],
}
_TRUTH: Final = {"support": "supported", "relevance": "relevant", "citations": "supported"}
_BUCKETS: Final = {
    "faithfulness": "unsupported_claims",
    "context_recall": "missing_evidence",
    "factual_precision": "wrong_claims",
    "factual_recall": "missed_claims",
    "answer_relevancy": "irrelevant_claims",
    "citation_support": "unsupported_citations",
}


@dataclass(frozen=True)
class Claims(JudgedEvaluator):
    """Claims of an answer and of the right answer, held by a judge against passages, each other and the question.

    ``input`` is the question, or an object that has it as ``question``; ``prediction`` is the answer, ``expected`` the
    right answer, one text. The passages are the part ``contexts`` of the prediction, or ``contexts`` of the input. A
    text is split into claims once for all metrics, and every claim, passage and citation that the judge was shown gets
    a verdict: a reply that leaves one out, adds one, or contradicts itself is asked for once more, and then an error.

    * ``faithfulness``: claims of the answer that the passages support; ``hallucination_rate``: those that they do not;
    * ``context_recall``: claims of the right answer that the passages support;
    * ``context_precision``: average precision of the useful passages, those that support a claim of the right answer,
      in the order in which they were retrieved; mean over cases;
    * ``context_relevance``: passages that bear on the question;
    * ``factual_precision``: claims of the answer that the right answer supports; ``factual_recall``: claims of the
      right answer that the answer supports; ``factual_f1``: their harmonic mean;
    * ``answer_relevancy``: claims of the answer that bear on the question;
    * ``citation_support``: citations, such as ``[2]``, whose passage supports the sentence that cites it.

    All are in [0, 1]; all but ``context_precision`` are sums over the claims, passages or citations of all cases. What
    a case lacks (a question, a right answer) makes its metrics undefined. An answer without claims or citations
    abstains. Without a passage, no claim is supported. That nothing says what the passages are is an error.

    Attributes:
        metrics: Which to compute; only the questions that they need are asked.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.

    Raises:
        ValueError: No metric, or one twice.
    """

    name = "claims"
    decides = True
    reads = Reads("answer", objects=True)

    metrics: tuple[ClaimMetric, ...] = ("faithfulness",)
    language: Literal["auto", "en", "zh"] = "auto"

    def __post_init__(self) -> None:
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"found metrics {list(self.metrics)}, expected one or more, each once")

    def describe(self) -> Sequence[Metric]:
        """Return the metrics that were chosen."""
        signature = self._signature()
        return [
            Metric(name, higher_is_better=name != "hallucination_rate", signature=signature) for name in self.metrics
        ]

    def _signature(self) -> str:
        """Return all modes with their versions: scores stay comparable where a suite chooses further metrics."""
        versions = ",".join(f"{mode}@{claim_mode_version(mode)}" for mode in CLAIM_MODES)
        return f"modes:{versions}|lang:{self.language}|v:{self.version}"

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return a bucket for each way in which claims and citations fail."""
        return [ErrorBucket(_BUCKETS[name], name, below=1.0) for name in self.metrics if name in _BUCKETS]

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the expected answer and the passages of the input."""
        fault = claim_texts(case, self.language).fault
        return [fault] if fault else []

    def _findings(self, case: Case, verdicts: Sequence[Verdict | JudgeError] = ()) -> Findings:
        texts = claim_texts(case, self.language)
        if texts.fault:
            raise EvaluatorError(texts.fault)
        needed = {step for name in self.metrics for step in _STEPS[name]}
        return Findings(texts, [step for step in _ALL_STEPS if step in needed], verdicts)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the questions that split texts, and those about passages and citations."""
        return list(self._findings(case).first.values())

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        """Return the questions about claims, once these are known."""
        findings = self._findings(case, verdicts)
        return list(findings.later.values()) if len(verdicts) == len(findings.first) else []

    def most_follow_ups(self, case: Case) -> int:
        """The number of questions about claims if each text has some."""
        return self._findings(case).most_later

    @property
    def follow_up_modes(self) -> Sequence[str]:
        """The modes of questions about claims that the metrics need."""
        kinds = {step.kind for name in self.metrics for step in _STEPS[name] if step.side is not None}
        return [f"claim_{kind}" for kind in sorted(kinds)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count claims, passages and citations, and those that hold."""
        findings = self._findings(case, verdicts)
        counts: dict[str, float] = {}
        reasons: dict[bool, dict[str, str]] = {True: {}, False: {}}
        abstained: list[str] = []
        for name in self.metrics:
            result = _counts(name, findings)
            if isinstance(result, Unknown):
                reasons[result.errored][name] = result.reason
                abstained += [name] if result.abstained else []
            else:
                counts |= {f"{name}.{part}": value for part, value in result.items()}
        details = claim_details(findings)
        malformed = findings.texts.malformed
        return Observation(counts, details, reasons[False], malformed, reasons[True], tuple(abstained))

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return ratios of sums."""
        import numpy as np

        ratios: dict[str, FloatArray] = {
            name: sums[f"{name}.hits"] / sums[f"{name}.of"] for name in self.metrics if name != "factual_f1"
        }
        if "factual_f1" in self.metrics:
            precision, recall = (
                np.nan_to_num(sums[f"factual_f1.{part}_hits"] / sums[f"factual_f1.{part}"])
                for part in ("answer", "reference")
            )
            both = precision + recall
            f1 = np.where(both > 0, 2 * precision * recall / np.where(both > 0, both, 1), 0)
            claims = sums["factual_f1.answer"] + sums["factual_f1.reference"]
            ratios["factual_f1"] = np.where(claims > 0, f1, np.nan)
        return {name: ratios[name] for name in self.metrics}

    def explain(self, case: Case, observation: Observation) -> Iterable[str]:
        """Say which claims, passages and citations do not hold; nothing where all of them do."""
        del case
        lines: Sequence[str] = observation.details.get("wrong", ())
        return lines


_ALL_STEPS: Final = tuple(dict.fromkeys(step for name in get_args(ClaimMetric) for step in _STEPS[name]))


def _counts(metric: str, findings: Findings) -> Mapping[str, float] | Unknown:
    """The counts of a claim metric for a case, or the reason why it has none."""
    results = [findings.items[step] for step in _STEPS[metric]]
    unknown = [result for result in results if isinstance(result, Unknown)]
    if unknown and (len(unknown) == len(results) or any(result.errored for result in unknown)):
        return next((result for result in unknown if result.errored), unknown[0])
    known = [[] if isinstance(result, Unknown) else result for result in results]
    if metric == "factual_f1":
        # A side without claims adds nothing to its own sums: what the other side lacks still counts.
        (right, claims), (met, expected) = (_tally(items, "supported") for items in known)
        return {"answer_hits": right, "answer": claims, "reference_hits": met, "reference": expected}
    if metric == "context_precision":
        return {"hits": _average_precision(known[0]), "of": 1}
    hits, total = _tally(known[0], _TRUTH[_STEPS[metric][0].kind])
    return {"hits": total - hits if metric == "hallucination_rate" else hits, "of": total}


def _tally(items: Items, truth: str) -> tuple[int, int]:
    """The number of claims or passages that the judge affirmed, and of all."""
    return sum(item[truth] for item in items), len(items)


def _average_precision(claims: Items) -> float:
    """The average precision of ranked passages by the judge's relevance; 0 without a relevant one."""
    useful = sorted({number for claim in claims for number in claim["passages"]})
    return sum(count / rank for count, rank in enumerate(useful, 1)) / len(useful) if useful else 0.0


_METRICS = ("instruction_rate", "all_followed")


@dataclass(frozen=True)
class Checklist(JudgedEvaluator):
    """The share of instructions that answers follow, each judged by itself.

    The instructions are those of the suite, and after them those of the case: ``expected`` is an object with a list of
    them as ``instructions``. One call a case judges all of them. A reply that leaves one out, judges one twice, or one
    that does not exist, is asked for once more, and then is an error.

    ``instruction_rate`` is the number of followed instructions over the number of instructions, of all cases together;
    its interval takes the case as the unit. ``all_followed`` is the share of cases whose answer follows all. A case
    without instructions is undefined.

    Attributes:
        instructions: Those of every case.
        language: Of the question to the judge; ``auto``: by the label ``language`` of the case, or by the script of the
            instructions.

    Raises:
        ValueError: An instruction is blank.
    """

    name = "checklist"
    reads = Reads("answer", objects=True, expected=True)
    decides = True

    instructions: tuple[str, ...] = ()
    language: Literal["auto", "en", "zh"] = "auto"

    def __post_init__(self) -> None:
        if not all(instruction.strip() for instruction in self.instructions):
            raise ValueError("instructions: found a blank text, expected an instruction")

    def describe(self) -> Sequence[Metric]:
        """Return both shares."""
        digest = hashlib.sha256(json.dumps(self.instructions).encode()).hexdigest()[:8] if self.instructions else "none"
        mode = checklist_mode(1)
        signature = f"mode:{mode.name}@{mode.version}|instructions:{digest}|lang:{self.language}|v:{self.version}"
        return [Metric(name, signature=signature, averaged=name == "all_followed") for name in _METRICS]

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return the bucket of answers that leave an instruction out."""
        return [ErrorBucket("instruction_not_followed", _METRICS[0], below=1.0)]

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the instructions of a case."""
        try:
            self._instructions(case)
        except EvaluatorError as error:
            yield str(error)

    def _instructions(self, case: Case) -> tuple[str, ...]:
        """Return the instructions of a case, the suite's first."""
        own = case.expected.get(Parts.INSTRUCTIONS) if isinstance(case.expected, Mapping) else None
        if own is None:
            return self.instructions
        if not isinstance(own, list | tuple) or not all(map(_is_text, own)):
            wrong = next(item for item in own if not _is_text(item)) if isinstance(own, list | tuple) else own
            raise EvaluatorError(
                f"expected.{Parts.INSTRUCTIONS}: found {AnswerValue(wrong).kind}, expected a list of texts"
            )
        return (*self.instructions, *own)

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the one question about a case; none without instructions."""
        instructions = self._instructions(case)
        if not instructions:
            return []
        numbered = {f"instruction_{number}": text for number, text in enumerate(instructions, 1)}
        texts = {**_texts(case).by_field, **numbered}
        chosen = Question.instruction_language(" ".join(instructions), case.labels.get("language"))
        language = chosen if self.language == "auto" else self.language
        return [Question(checklist_mode(len(instructions)), texts, language)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count the instructions that are followed.

        Raises:
            JudgeError: The judge gave no verdict.
        """
        instructions = self._instructions(case)
        malformed = _texts(case).malformed
        if not instructions:
            return Observation({}, undefined=dict.fromkeys(_METRICS, "no instructions"), malformed=malformed)
        (verdict,) = verdicts
        if isinstance(verdict, JudgeError):
            raise verdict
        judged = list(zip(instructions, verdict.details["verdicts"], strict=True))
        wrong = [
            f"instruction {number} is not followed: {as_line(text)}"
            + (f" ({as_line(opinion['reason'])})" * bool(opinion["reason"]))
            for number, (text, opinion) in enumerate(judged, 1)
            if not opinion["followed"]
        ]
        counts = {
            "followed": len(judged) - len(wrong),
            "instructions": len(judged),
            "all": float(not wrong),
            "n": 1,
        }
        return Observation(counts, {"wrong": wrong} if wrong else {}, malformed=malformed)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the share of instructions, and that of cases that follow all."""
        return {
            "instruction_rate": sums["followed"] / sums["instructions"],
            "all_followed": sums["all"] / sums["n"],
        }


def _is_text(value: Any) -> bool:
    """Whether an instruction of a checklist is text with content."""
    return isinstance(value, str) and bool(value.strip())


def _texts(case: Case) -> CaseTexts:
    """The question and answer of a checklist case, as a judge reads them."""
    return CaseTexts.of_case(replace(case, expected=None), ("question", "answer"), ("question",))
