"""Lint of tools and skills: what keeps a model from choosing the right one, and what its context must not have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.services.secrets import has_secret
from pytest_llmeval.tasks.routing.evaluator import ListedTool

KINDS: Final = ("description", "type", "overlap", "secret", "instruction", "invisible")
OVERLAP: Final = 0.7
"""Share of common words from which on two descriptions are too much alike."""

_FEWEST_WORDS: Final = 3
_DEEPEST: Final = 20
_WORDS: Final = re.compile(r"(?i)\b(?!(?:an?|and|are|as|by|for|from|in|is|it|of|on|or|that|the|this|to|with)\b)\w+")
"""Words that are no fillers."""

_SHAPES: Final = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_INSTRUCTIONS: Final = {
    "sets other instructions aside": r"\b(ignore|disregard|forget|override)\b.{0,30}\b(instructions?|prompts?|rules)\b",
    "hides something from the user": (
        r"\b(do not|don't|never|without) (tell|mention|inform|reveal|show)(ing)?\b.{0,30}\buser\b"
    ),
    "speaks of other tools": r"\b(before|after|instead of|rather than) (using |calling )?((any|all) )?other tools?\b",
    "asks to be preferred": r"\balways (call|use|prefer|choose|pick) this\b",
    "uses a tag of instructions": r"</? *(important|system|instructions?|assistant) *>",
    "speaks of the system prompt": r"\bsystem prompt\b",
    "names files with keys": r"~/\.ssh|\bid_rsa\b|(?<!\w)\.env\b|\.aws/credentials",
}
"""What texts for a model must not do, to how they do it; white space counts as one space."""


class LintFinding(NamedTuple):
    """One finding.

    Attributes:
        tool: Name of the tool.
        field: Where: ``description``, or ``parameters.NAME`` with nested names.
        kind: One of `KINDS`.
        message: What is wrong, and what to do.
    """

    tool: str
    field: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.field}: {self.message} ({self.kind})"


def lint(tools: Iterable[ListedTool], overlap: float = OVERLAP) -> list[LintFinding]:
    """Return what is wrong with the names, descriptions and schemas of tools, sorted by tool.

    Args:
        tools: The list that a model is shown.
        overlap: Share of common words of two descriptions from which on they are reported, above 0.
    """
    listed = sorted(tools, key=lambda each: each.name)
    findings = [finding for each in listed for finding in _of_tool(each)]
    words = [frozenset(map(str.lower, _WORDS.findall(each.description))) for each in listed]
    for (tool, own), (other, others) in combinations(zip(listed, words, strict=True), 2):
        share = len(own & others) / len(own | others) if own | others else 0.0
        if share >= overlap:
            message = f"shares {share:.0%} of its words with {other.name!r}: say in both when to use which"
            findings.append(LintFinding(tool.name, "description", "overlap", message))
    return sorted(findings)


def _of_tool(tool: ListedTool) -> Iterator[LintFinding]:
    if len(_WORDS.findall(tool.description)) < _FEWEST_WORDS:
        subject = repr(tool.description) if tool.description.strip() else "none"
        message = f"found {subject}: say what the tool does, and when to use it"
        yield LintFinding(tool.name, "description", "description", message)
    for field, text in [("name", tool.name), ("description", tool.description), *_texts(tool.parameters, "parameters")]:
        yield from (LintFinding(tool.name, field, kind, message) for kind, message in _in_text(text))
    for field, kind, message in _in_schema(tool.parameters, "parameters"):
        yield LintFinding(tool.name, field, kind, message)


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and message of what does not belong into a text for a model."""
    if has_secret(text):
        yield "secret", "looks like a secret: remove it, and replace it where it is valid"
    if match := _INVISIBLE.search(text):
        yield "invisible", f"has the invisible character U+{ord(match.group()):04X}: remove it"
    flat = " ".join(text.split())
    for why, pattern in _INSTRUCTIONS.items():
        if match := re.search(pattern, flat, re.IGNORECASE):
            yield "instruction", f"{why} ({excerpt(match.group(), 60)!r}): describe this tool only"


def _texts(value: Any, field: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield all texts of a schema with their places."""
    if isinstance(value, str):
        yield field, value
    elif depth < _DEEPEST:
        pairs: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            pairs = ((name, each) for name, each in value.items() if not isinstance(each, str) or name != "type")
        elif isinstance(value, Sequence):
            pairs = enumerate(value)
        for name, each in pairs:
            yield from _texts(each, f"{field}.{name}", depth + 1)


def _in_schema(schema: Mapping[str, Any], field: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield field, kind and message of parameters without a type or a description."""
    properties = schema.get("properties")
    for name, each in (properties if isinstance(properties, Mapping) and depth < _DEEPEST else {}).items():
        place = f"{field}.{name}"
        if not isinstance(each, Mapping):
            yield place, "type", "found no schema: add its type"
            continue
        if not any(key in each for key in _SHAPES):
            yield place, "type", "found no type: add one, such as string"
        if not str(each.get("description") or "").strip() and "$ref" not in each:
            yield place, "description", "found no description: say what the value means, its unit or its form"
        items = each.get("items")
        yield from _in_schema(each, place, depth + 1)
        yield from _in_schema(items if isinstance(items, Mapping) else {}, f"{place}[]", depth + 1)
