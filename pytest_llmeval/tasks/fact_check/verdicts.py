"""Verdict labels and their synonyms."""

__all__ = ("NOT_ENOUGH", "VERDICTS", "read_verdict", "verdict_fault")

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pytest_llmeval.core.wording import suggest
from pytest_llmeval.evaluators.answers import describe_found

VERDICTS: Final = ("Supported", "Refuted", "Not Enough Evidence")
"""The labels, as `taxonomies/verdicts.yaml` has them."""

NOT_ENOUGH: Final = VERDICTS[2]
"""What an answer without a verdict says."""

_LONGEST: Final = 100
_SEPARATORS = re.compile(r"[\s_-]+")
_AROUND = " .,;:!?\"'`*()[]\u3002\uff0c\u201c\u201d\u2018\u2019\u300c\u300d\u300a\u300b"


@cache
def _names() -> Mapping[str, str]:
    """Return every name, as `_normal` writes it, with its label."""
    from pytest_llmeval.data.labels import load_taxonomy

    rows: list[Mapping[str, Any]] = load_taxonomy("verdicts")["verdicts"]
    return {_normal(name): row["label"] for row in rows for name in (row["label"], row["zh"], *row["aliases"])}


def _normal(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return _SEPARATORS.sub(" ", text).strip(_AROUND)


def read_verdict(value: Any, *, strict: bool = True) -> str | None:
    """Return the label that a value denotes; ``None`` if it is not a label.

    Args:
        value: The value of the verdict.
        strict: Whether only the labels themselves count, letter by letter. Otherwise their other names do, too,
            whatever the case of letters and the marks around them.
    """
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    if strict:
        return value if value in VERDICTS else None
    return _names().get(_normal(value))


def verdict_fault(value: Any, *, strict: bool = True) -> str | None:
    """Say why a value of the ground truth is no verdict; ``None`` if it is one."""
    if read_verdict(value, strict=strict) is not None:
        return None
    hint = suggest(value, VERDICTS) if isinstance(value, str) else ""
    if strict and not hint and (meant := read_verdict(value, strict=False)) is not None:
        hint = f" (did you mean {meant!r}? `verdict_labels: synonyms` accepts both)"
    return f"found {describe_found(value)}, expected one of {', '.join(VERDICTS)}{hint}"
