"""The ground truth of a claim."""

__all__ = ("Claim", "claim_faults", "read_claim")

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.tasks.fact_check.verdicts import read_verdict, verdict_fault

_TEXTS: Final = ("claim", "justification")


@dataclass(frozen=True, slots=True)
class Claim:
    """What is right.

    Attributes:
        text: The claim; empty where it is not given.
        verdict: One of the labels; ``None`` where there is none.
        justification: Empty where there is none.
        sources: The evidence; ``None`` if unknown.
    """

    text: str = ""
    verdict: str | None = None
    justification: str = ""
    sources: tuple[Any, ...] | None = None


def read_claim(expected: Any, given: Any, *, strict: bool) -> Claim:
    """Read ground truth that has no faults.

    Args:
        expected: Null, or an object with ``verdict``, ``justification``, ``evidence_sources`` and perhaps ``claim``.
        given: What was asked: the claim, or an object that has it.
        strict: As for `read_verdict`.
    """
    data: Mapping[str, Any] = expected if isinstance(expected, Mapping) else {}
    asked = given.get("claim") if isinstance(given, Mapping) else given
    text = asked if isinstance(asked, str) else data.get("claim")
    sources = data.get("evidence_sources")
    return Claim(
        text=text or "",
        verdict=read_verdict(data.get("verdict"), strict=strict),
        justification=data.get("justification") or "",
        sources=None if sources is None else tuple(sources),
    )


def claim_faults(expected: Any, *, strict: bool) -> Iterator[str]:
    """Yield what is wrong with ground truth; nothing is wrong with what is null or missing."""
    if expected is None:
        return
    if not isinstance(expected, Mapping):
        yield f"found {describe_found(expected)}, expected an object with verdict, justification and evidence_sources"
        return
    verdict = expected.get("verdict")
    wrong = None if verdict is None else verdict_fault(verdict, strict=strict)
    if wrong is not None:
        yield f"verdict: {wrong}"
    for key in _TEXTS:
        value = expected.get(key)
        if value is not None and not isinstance(value, str):
            yield f"{key}: found {describe_found(value)}, expected text"
    yield from _source_faults(expected.get("evidence_sources"))


def _source_faults(sources: Any) -> Iterator[str]:
    if sources is None:
        return
    if not isinstance(sources, (list, tuple)):
        yield f"evidence_sources: found {describe_found(sources)}, expected a list"
        return
    for place, source in enumerate(sources):
        if isinstance(source, str):
            continue
        if not isinstance(source, Mapping):
            found = describe_found(source)
            yield f"evidence_sources[{place}]: found {found}, expected text or an object with content and url"
            continue
        for key in ("content", "url"):
            value = source.get(key)
            if value is not None and not isinstance(value, str):
                yield f"evidence_sources[{place}].{key}: found {describe_found(value)}, expected text"
