"""What people see of judged claims: every verdict, and a line for each one that is negative."""

__all__ = ("claim_details",)

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pytest_llmeval.evaluators.judge.claim_steps import (
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
)
from pytest_llmeval.evaluators.judge.claim_texts import Side
from pytest_llmeval.judge.questions.replies import shortened

_OF_CLAIMS: Final[Mapping[Step, tuple[str, str]]] = {
    ANSWER_IN_CONTEXTS: ("contexts", "claim {number} is supported by no context: {text}"),
    ANSWER_IN_REFERENCE: ("expected", "claim {number} is not in the expected answer: {text}"),
    ANSWER_RELEVANCE: ("relevant", "claim {number} does not bear on the question: {text}"),
    REFERENCE_IN_ANSWER: ("answer", "claim {number} of the expected answer is missed: {text}"),
    REFERENCE_IN_CONTEXTS: ("contexts", "claim {number} of the expected answer is in no context: {text}"),
}
"""Step to the name of its verdicts in details, and to the line about one that is negative."""


def claim_details(findings: Findings) -> dict[str, Any]:
    """Return ``claims``, ``expected_claims``, ``contexts``, ``citations`` with their verdicts, and lines: ``wrong``."""
    details = {
        "claims": _claims(findings, "answer"),
        "expected_claims": _claims(findings, "reference"),
        "contexts": [{"relevant": each["relevant"]} for each in _known(findings, CONTEXT_RELEVANCE)],
        "citations": [
            {name: each[name] for name in ("sentence", "context", "supported")} for each in _known(findings, CITATIONS)
        ],
        "wrong": list(_lines(findings)),
    }
    return {name: each for name, each in details.items() if each}


def _known(findings: Findings, step: Step) -> Items:
    items = findings.items.get(step, [])
    return [] if isinstance(items, Unknown) else items


def _claims(findings: Findings, side: Side) -> list[dict[str, Any]]:
    claims = findings.claims(side)
    if isinstance(claims, Unknown):
        return []
    rows = [{"claim": each["claim"]} for each in claims]
    for step, (name, _) in _OF_CLAIMS.items():
        if step.side == side:
            for row, item in zip(rows, _known(findings, step), strict=False):
                row[name] = item["passages"] if name == "contexts" else _holds(item)
    return rows


def _holds(item: Mapping[str, Any]) -> bool:
    return bool(item.get("supported", item.get("relevant")))


def _lines(findings: Findings) -> Iterator[str]:
    for step, (_, line) in _OF_CLAIMS.items():
        claims = findings.claims(step.side) if step.side is not None else []
        for number, item in enumerate(_known(findings, step), 1):
            if not _holds(item) and not isinstance(claims, Unknown):
                text = line.format(number=number, text=shortened(claims[number - 1]["claim"]))
                yield text + _because(item)
    for number, item in enumerate(_known(findings, CONTEXT_RELEVANCE), 1):
        if not _holds(item):
            yield f"context {number} does not bear on the question{_because(item)}"
    for item in _known(findings, CITATIONS):
        if not _holds(item):
            yield f"context {item['context']} does not support {shortened(item['sentence'])!r}{_because(item)}"


def _because(item: Mapping[str, Any]) -> str:
    return f" ({shortened(item['reason'])})" if item["reason"] else ""
