"""What is wrong with an answer to a claim, in lines."""

__all__ = ("answer_lines",)

from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core.explanations import listed


def answer_lines(details: Mapping[str, Any], *, verdict_right: bool, explained: bool) -> list[str]:
    """Say what differs: the verdict, sources that are not cited, citations that match no source, defects.

    Args:
        details: Of the observation.
        verdict_right: Whether the verdict is the expected one, or none is expected.
        explained: Whether the explanation has the highest score, or none.
    """
    lines = []
    if not verdict_right:
        found = details["predicted_verdict"] or "none"
        lines.append(f"verdict: found {found}, expected {details['gold_verdict']}")
    if details["unparsed"]:
        lines.append("the answer is not in a form that can be read")
    for name, words in (
        ("missed_evidence", "source not cited"),
        ("unmatched_citations", "citation that matches no source"),
    ):
        lines += [f"{words}: {each}" for each in details.get(name, ())]
        if (total := details.get(f"{name}_count", 0)) > len(details.get(name, ())):
            lines.append(f"{words}: {total - len(details[name])} more")
    if not explained:
        if reasoning := details.get("explanation_reasoning"):
            lines.append(f"explanation: {reasoning}")
        if defects := details.get("explanation_defects"):
            lines.append(f"defects of the explanation: {listed(defects)}")
    return lines
