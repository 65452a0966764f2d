"""What a report shows of a fact check: the verdicts, which evidence matched and why, what was missed."""

__all__ = ("answer_details", "evidence_details", "explanation_details")

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.evaluators.fact_check.answer import Answer
from pytest_llmeval.evaluators.fact_check.claim import Claim
from pytest_llmeval.measures.evidence import EvidenceMatch, MatchedPair

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Verdict

_LISTED: Final = 20
_LONGEST: Final = 300


def answer_details(claim: Claim, answer: Answer) -> dict[str, Any]:
    """Return both verdicts, the confidence, and whether the reply could be read."""
    return {
        "gold_verdict": claim.verdict,
        "predicted_verdict": _short(answer.verdict) if isinstance(answer.verdict, str) else None,
        "unparsed": answer.unparsed,
        "confidence": _short(answer.confidence),
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


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
