"""Counts of one claim: verdict, evidence, explanation, overall."""

__all__ = (
    "EVIDENCE_METRICS",
    "EXPLANATION",
    "HIGHEST_GRADE",
    "OVERALL",
    "VERDICT_METRICS",
    "Tally",
    "answer_details",
    "defect",
    "evidence_details",
    "explanation_details",
)

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.core.labels import NO_LABEL, cell_name, label_key
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.judge.judged_case import defect_counts, unnamed_defects
from pytest_llmeval.judge.questions.replies import FLAGS
from pytest_llmeval.tasks.fact_check.answer import Answer
from pytest_llmeval.tasks.fact_check.claim import Claim
from pytest_llmeval.tasks.fact_check.evidence import EvidenceMatch, MatchedPair
from pytest_llmeval.tasks.fact_check.scores import OTHER

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Verdict


VERDICT_METRICS: Final = ("verdict_accuracy", "verdict_macro_f1")
_MICRO: Final = ("evidence_micro_precision", "evidence_micro_recall", "evidence_micro_f1")
EVIDENCE_METRICS: Final = ("evidence_precision", "evidence_recall", "evidence_f1", "evidence_macro_f1", *_MICRO)
EXPLANATION: Final = "explanation_score"
OVERALL: Final = "overall_score"
HIGHEST_GRADE: Final = 100.0


def defect(flag: str) -> str:
    """Return the metric that is about a defect."""
    return f"defect[{flag}]"


@dataclass
class Tally:
    """The observation of a claim as it grows.

    Attributes:
        counts: As in an observation.
        details: The same.
        undefined: The same.
        errored: The same.
        parts: The scores that the overall one is made of, as far as they exist.
    """

    counts: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    errored: dict[str, str] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)

    def verdict(self, gold: str | None, predicted: str | None) -> None:
        """Count a verdict; ``None`` means absent ground truth, or a prediction that is not a label."""
        if gold is None:
            self.undefined |= dict.fromkeys(VERDICT_METRICS, "no expected verdict")
            return
        self.counts[cell_name(*(label_key(label) or NO_LABEL for label in (gold, predicted or OTHER)))] = 1
        self.parts["verdict"] = float(gold == predicted)

    def evidence(self, match: "EvidenceMatch | None", verdict: str | None, why: str) -> None:
        """Count evidence of a claim with this gold verdict; a match of ``None`` is absent ground truth for a reason."""
        if match is None:
            self.undefined |= dict.fromkeys(EVIDENCE_METRICS, why)
            return
        scores = {"evidence_precision": match.precision, "evidence_recall": match.recall, "evidence_f1": match.f1}
        if verdict is None:
            self.undefined["evidence_macro_f1"] = "no expected verdict"
        else:
            scores[f"evidence_f1[{verdict}]"] = match.f1
        for name, value in scores.items():
            self.score(name, value)
        self.counts |= {
            "cited": len(match.cited),
            "gold": len(match.gold),
            "cited.matched": match.matched_cited,
            "gold.matched": match.matched_gold,
        }
        if not match.cited and not match.gold:
            self.undefined |= dict.fromkeys(_MICRO, "neither side has evidence")
        elif not match.gold:
            self.undefined["evidence_micro_recall"] = "no evidence is expected"
        self.parts["evidence"] = match.f1

    def explanation(self, verdict: "Verdict") -> None:
        """Count what a judge says of the explanation."""
        self.parts["explanation"] = verdict.score / HIGHEST_GRADE
        self.score(EXPLANATION, self.parts["explanation"])
        self.counts |= defect_counts(verdict.details)
        self.undefined |= unnamed_defects(verdict.details)

    def unexplained(self, why: str) -> None:
        """Count an explanation that a judge failed to grade: whether it has a defect is not known either."""
        self.errored |= {EXPLANATION: why} | dict.fromkeys(map(defect, FLAGS), f"no {EXPLANATION}")

    def overall(self, weights: Mapping[str, float], *, normalize: bool = True) -> None:
        """Count the weighted mean of the parts, or their weighted sum, if all that have a weight exist."""
        lacking = [name for name in weights if name not in self.parts]
        if "explanation" in lacking and EXPLANATION in self.errored:
            self.errored[OVERALL] = f"no {EXPLANATION}"
        elif lacking:
            self.undefined[OVERALL] = f"no score for the {' and the '.join(lacking)}"
        else:
            total = math.fsum(weight * self.parts[name] for name, weight in weights.items())
            self.score(OVERALL, total / math.fsum(weights.values()) if normalize else total)

    def score(self, name: str, value: float) -> None:
        """Count one score of which the mean is wanted."""
        self.counts |= {name: value, f"{name}.n": 1}

    def observation(self, malformed: str | None) -> Observation:
        """Return all that was counted."""
        return Observation(self.counts, self.details, self.undefined, malformed, self.errored)


_LISTED: Final = 20
_LONGEST: Final = 300
_LONGEST_JUSTIFICATION: Final = 2000


def answer_details(claim: Claim, answer: Answer) -> dict[str, Any]:
    """Return claim, verdicts, justification and confidence, whether the reply could be read, and how."""
    return {
        **({"claim": _short(claim.text)} if claim.text else {}),
        "gold_verdict": claim.verdict,
        "predicted_verdict": _short(answer.verdict) if isinstance(answer.verdict, str) else None,
        "justification": _short(answer.justification, _LONGEST_JUSTIFICATION),
        "unparsed": answer.unparsed,
        "confidence": _short(answer.confidence),
        **({"note": answer.note} if answer.note else {}),
    }


def evidence_details(match: EvidenceMatch) -> dict[str, Any]:
    """Return the pairs that matched, the sources that were missed, and the citations that match nothing.

    Of each at most 20 are listed; where there are more, a number under ``..._count`` says how many.
    """
    return {
        **_listed("matched_evidence", list(map(_pair, match.pairs))),
        **_listed("missed_evidence", list(map(_short, match.missed))),
        **_listed("unmatched_citations", list(map(_short, match.unmatched))),
    }


def explanation_details(verdict: "Verdict", flags: Iterable[str]) -> dict[str, Any]:
    """Return what the judge says, and the defects that it found."""
    found = [flag for flag in flags if verdict.details.get(flag)]
    return {"explanation_defects": found, "explanation_reasoning": verdict.reasoning}


def _listed(name: str, items: Sequence[Any]) -> dict[str, Any]:
    more = {f"{name}_count": len(items)} if len(items) > _LISTED else {}
    return {name: list(items[:_LISTED])} | more


def _pair(pair: MatchedPair) -> dict[str, Any]:
    shown: dict[str, Any] = {"cited": _short(pair.cited), "gold": _short(pair.gold), "why": pair.why}
    return shown if pair.overlap is None else {**shown, "overlap": pair.overlap}


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"
