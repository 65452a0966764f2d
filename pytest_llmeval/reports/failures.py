"""The text of a failing case: missed limits, and the difference from the expected answer."""

__all__ = ("explain", "marked_difference")

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.core.wording import number, printable
from pytest_llmeval.scoring.limits import Unmet

_LONGEST = 1_000
_PIECES = re.compile(r"\w+|\s+|[^\w\s]", re.ASCII)


def marked_difference(expected: str, prediction: str) -> str:
    """Write the prediction with what differs marked: ``[-missing-]`` and ``{+added+}``.

    >>> marked_difference("Paris", "It is Paris.")
    '{+It is +}Paris{+.+}'
    """
    left, right = _PIECES.findall(expected), _PIECES.findall(prediction)
    parts = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append("".join(right[j1:j2]))
            continue
        if i1 < i2:
            parts.append(f"[-{''.join(left[i1:i2])}-]")
        if j1 < j2:
            parts.append(f"{{+{''.join(right[j1:j2])}+}}")
    return "".join(parts)


def explain(case: Case, record: CaseRecord, missed: Sequence[Unmet]) -> str:
    """Return the text of a failing case: why, then metric, score and limit, then the answer and how it differs."""
    from tabulate import tabulate

    blocks = [record.reason or "failed"]
    if missed:
        rows = [(each.metric, number(each.value), str(each.limit)) for each in missed]
        blocks.append(tabulate(rows, ("metric", "score", "limit"), tablefmt="plain", disable_numparse=True))
    if case.prediction is not MISSING:
        lines = [f"expected:   {_shown(case.expected)}", f"prediction: {_shown(case.prediction)}"]
        best = _nearest(case.expected, case.prediction)
        if best is not None and best != case.prediction:
            lines.append(f"difference: {printable(marked_difference(best, case.prediction))}")
        blocks.append("\n".join(lines))
    for label, each in record.observations.items():
        if isinstance(reasoning := each.details.get("reasoning"), str) and reasoning:
            blocks.append(f"{label}: {_shown(reasoning)}")
        wrong = (f"{label}: {printable(line)}" for line in _wrong(each.details))
        blocks += [line for line in wrong if line not in blocks[0]]
    return "\n".join(blocks)


def _wrong(details: Mapping[str, Any]) -> list[str]:
    """Return what an evaluator found wrong, in its own words."""
    lines = details.get("wrong")
    return [each for each in lines if isinstance(each, str)] if isinstance(lines, list) else []


def _nearest(expected: Any, prediction: Any) -> str | None:
    """Return the reference that is most like the prediction, where both are texts that can be compared."""
    references = [expected] if isinstance(expected, str) else expected if isinstance(expected, list) else []
    texts = [each for each in references if isinstance(each, str)]
    if not texts or not isinstance(prediction, str) or max(map(len, (*texts, prediction))) > _LONGEST:
        return None
    return max(texts, key=lambda text: difflib.SequenceMatcher(None, text, prediction, autojunk=False).ratio())


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
