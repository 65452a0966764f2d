"""Metrics of tools whose suites have no assertions to import, and what to write here in their place."""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, Final

from constructs import SCALARS, SCHEMAS, TEXTS, VALUES, more_texts, near

from pytest_llmeval.core import Case
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.evaluators import Checks
from pytest_llmeval.exchange._ledger import Construct, Fate
from pytest_llmeval.exchange._templates import Direction, VerdictDifference
from pytest_llmeval.tasks.agents._tools import Tools

STRICTER, LOOSER, EITHER = Direction.STRICTER, Direction.LOOSER, Direction.EITHER
_COMPOSED = VerdictDifference("texts are compared in composed form (NFC)", LOOSER, json.dumps("e\u0301"))
_AS_JSON = VerdictDifference("an answer that is no text is written as JSON, or meets no check on texts", EITHER, "true")
_DISTANCE = VerdictDifference("edits are those of texts in composed form (NFC)", EITHER, json.dumps("e\u0301"))
_TRIMMED = VerdictDifference("white space around answer and text is trimmed there", EITHER, json.dumps(" foo"))
_EMPTY = VerdictDifference("an empty answer is an error there", LOOSER, json.dumps(""))
_REPEATED = VerdictDifference("calls of one tool are paired in the way that agrees best, in any order", LOOSER)
_TYPED = VerdictDifference("true is not 1, and false is not 0", STRICTER)
_ONCE = VerdictDifference("a tool that is expected twice is found once there", LOOSER)
_NOTHING = VerdictDifference("where no tool is expected, any call fails there", LOOSER)
_INSIDE = VerdictDifference("additional arguments inside of objects are allowed too", LOOSER)
_FENCED = VerdictDifference("NaN, infinity, broken surrogates and a key that stands twice are no JSON", STRICTER, "NaN")
_SERIALIZED = VerdictDifference("the order of keys counts there, and a text that is JSON is data", EITHER)


@dataclass(frozen=True)
class Counterpart:
    """What to write for a metric.

    Attributes:
        entry: Makes the check, or the options of `tools`, of what a construct holds.
        written: The same, for people.
        differences: Answers that are judged differently.
    """

    entry: Callable[[Any], Mapping[str, Any]]
    written: str
    differences: Sequence[VerdictDifference] = ()


def _check(kind: str, *differences: VerdictDifference, shown: str = "TEXT") -> Counterpart:
    return Counterpart(lambda value: {kind: value}, f"{kind}: {shown}", (_COMPOSED, *differences))


def _similarity(*differences: VerdictDifference) -> Counterpart:
    return _check("levenshtein", _DISTANCE, *differences, shown="{to: TEXT, min_similarity: LIMIT}")


def _tools(order: str, *differences: VerdictDifference) -> Counterpart:
    def entry(value: Any) -> Mapping[str, Any]:
        return {"order": order, "arguments": _ARGUMENTS[value.get("arguments", "ignore")], "null_arguments": "value"}

    return Counterpart(entry, f"tools: {{order: {order}, null_arguments: value}}", differences)


_ARGUMENTS: Final = {"exact": "exact", "superset": "partial", "ignore": "ignore"}
_OF_CALLS = (_REPEATED, _TYPED, _INSIDE)

COUNTERPARTS: Final[Mapping[str, Mapping[str, Counterpart]]] = {
    "agentevals": {
        "strict": _tools("exact", *_OF_CALLS),
        "unordered": _tools("any_order", *_OF_CALLS),
        "subset": _tools("subset", *_OF_CALLS),
        "superset": _tools("superset", *_OF_CALLS),
    },
    "autoevals": {
        "ExactMatch": _check("equals", _AS_JSON),
        "ExactMatch of data": _check("json_equals", _SERIALIZED, shown="VALUE"),
        "Levenshtein": _similarity(_AS_JSON),
        "ValidJSON": Counterpart(
            lambda value: {"is_json": {"type": ["object", "array"]} if value is None else value},
            "is_json: {type: [object, array]}",
            (_FENCED,),
        ),
    },
    "deepeval": {
        "ExactMatchMetric": _check("equals", _TRIMMED),
        "PatternMatchMetric": Counterpart(
            lambda value: {"regex": rf"^(?:{value})$"}, "regex: ^(?:PATTERN)$", (_COMPOSED, _TRIMMED, _EMPTY)
        ),
        "ToolCorrectnessMetric": _tools("superset", _ONCE, _NOTHING),
        "ToolCorrectnessMetric(should_consider_ordering)": _tools("in_order", _NOTHING),
        "ToolCorrectnessMetric(should_exact_match)": _tools("exact"),
    },
    "ragas": {
        "ExactMatch": _check("equals"),
        "StringPresence": _check("contains"),
        "NonLLMStringSimilarity": _similarity(),
    },
}
"""Tool to name of a metric to what to write here; a metric of scores is compared with a limit."""


def _is_decomposed(answer: Any, expected: Any) -> bool:
    texts = (json.dumps(each, ensure_ascii=False) for each in (answer, expected))
    return any(unicodedata.normalize("NFC", each) != each for each in texts)


@dataclass
class Written:
    """A metric as it is written here, with what `replay.Imported` has.

    Attributes:
        fate: Whether it judges some answers differently.
        constructs: Itself.
    """

    fate: Fate
    constructs: Sequence[Construct]
    evaluator: Checks | Tools
    expected: Any = None

    def verdict(self, answer: Any) -> bool:
        """Return whether an answer, or a list of calls, passes."""
        if isinstance(self.evaluator, Checks):
            found = self.evaluator.measure(Case("a", prediction=answer, origin=PredictionParts(prediction=answer)))
            return found.malformed is None and not found.errored
        counts = self.evaluator.measure(Case("a", expected=self.expected, prediction=answer)).counts
        agree = self.evaluator.arguments == "ignore" or counts["arguments.agreeing"] == counts["arguments.stated"]
        return bool(counts["tools.follows"]) and agree

    def explains(self, answer: Any, *, ours: bool) -> bool:
        """Return whether the page says that an answer may be judged otherwise."""
        wanted = {LOOSER if ours else STRICTER, EITHER}
        return any(
            each.direction in wanted and _APPLIES.get(each, lambda *_: True)(answer, self.expected)
            for made in self.constructs
            for each in made.differences
        )


_APPLIES: Final[Mapping[VerdictDifference, Callable[[Any, Any], bool]]] = {
    _COMPOSED: _is_decomposed,
    _DISTANCE: _is_decomposed,
    _EMPTY: lambda answer, _: answer == "",
    _AS_JSON: lambda answer, _: not isinstance(answer, str),
    _TRIMMED: lambda answer, expected: (answer, str(expected)) != (answer.strip(), str(expected).strip()),
    _REPEATED: lambda answer, _: len({call["name"] for call in answer}) < len(answer),
    _TYPED: lambda *both: "rue" in str(both),
    _ONCE: lambda _, expected: len({call["name"] for call in expected}) < len(expected),
    _NOTHING: lambda _, expected: not expected,
    _INSIDE: lambda *both: "{'b'" in str(both),
}
"""Which answers a difference is about, where that can be told."""


def written(tool: str, constructs: Sequence[Mapping[str, Any]]) -> list[Written]:
    """Return metrics of a tool as they are written here."""
    return [_written(tool, name, value) for each in constructs for name, value in each.items()]


def _written(tool: str, name: str, value: Any) -> Written:
    known = COUNTERPARTS[tool][name]
    entry, fate = known.entry(value), Fate.NEAR if known.differences else Fate.SAME
    construct = Construct("", 0, (), name, fate, json.dumps(entry), "", tuple(known.differences))
    if "order" in entry:
        return Written(fate, [construct], Tools(**entry), value["expected"])
    return Written(fate, [construct], Checks((entry,)), value)


def metrics(tool: str) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield metrics of a tool, each with answers of its own."""
    if tool in _SEQUENCES:
        yield from _of_calls(tool)
    if tool in _OF_TEXTS:
        yield from _OF_TEXTS[tool]()


def _own(value: Any) -> list[Any]:
    return [each for each in near(value) if isinstance(each, str)]


def _ragas() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    for text in [*TEXTS, *more_texts(560)]:
        yield {"ExactMatch": text}, _own(text)
        yield {"StringPresence": text}, _own(text)
        yield {"NonLLMStringSimilarity": {"to": text, "min_similarity": 0.5}}, _own(text)


def _deepeval() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    for text in [*TEXTS, *more_texts(380)]:
        yield {"ExactMatchMetric": text}, _own(text)
    for pattern in ("foo", "", ".", r"\d+", "[a-z ]+", r"\S+", "foo|5", "(?i)FOO", r"[\s\S]*", r"\w+", "é", "日本語"):
        yield {"PatternMatchMetric": pattern}, _own("foo")


def _autoevals() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    for text in [*TEXTS, *more_texts(640)]:
        yield {"ExactMatch": text}, list(near(text))
        yield {"Levenshtein": {"to": text, "min_similarity": 0.5}}, list(near(text))
    yield from (({"ExactMatch of data": each}, list(near(each))) for each in VALUES)
    schemas = [each for each in SCHEMAS if not isinstance(each, str | bool)]
    yield from (({"ValidJSON": each}, [json.dumps(value) for value in (*VALUES, *SCALARS)]) for each in schemas)


_VALUES: Final[list[Any]] = [
    {},
    {"a": 1},
    {"a": 2},
    {"a": 1, "b": "x"},
    {"a": {"b": 1}},
    {"a": {"b": 1, "c": 2}},
    {"a": True},
]


_SEQUENCES: Final = {"agentevals": 380, "deepeval": 900}


def _of_calls(tool: str) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    source = Random(48)
    names = list(COUNTERPARTS[tool])
    kinds = [each for each in names if each.startswith("Tool") or tool == "agentevals"]
    for kind, mode, _ in product(kinds, _ARGUMENTS if tool == "agentevals" else ("ignore",), range(_SEQUENCES[tool])):
        if kind in ("unordered", "subset") and mode == "superset":
            continue  # there, it is the expected call that may have more arguments
        expected = [_call(source) for _ in range(source.randint(1, 4))]
        yield {kind: {"expected": expected, "arguments": mode}}, [_changed(expected, source) for _ in range(14)]
    for kind in kinds:
        yield {kind: {"expected": [], "arguments": "ignore"}}, [[], [_call(source)]]


def _call(source: Random) -> dict[str, Any]:
    return {"name": source.choice(["find", "buy", "pay"]), "arguments": source.choice(_VALUES)}


def _changed(calls: Sequence[dict[str, Any]], source: Random) -> list[dict[str, Any]]:
    """Return calls that are others in up to two ways."""
    changed = list(calls)
    for _ in range(source.randint(0, 2)):
        way, at = source.randint(0, 4), source.randint(0, len(changed))
        if way == 0:
            changed.insert(at, _call(source))
        elif way == 1:
            source.shuffle(changed)
        elif changed:
            at %= len(changed)
            other = {2: [], 3: [changed[at]] * 2, 4: [{**changed[at], "arguments": source.choice(_VALUES)}]}[way]
            changed[at : at + 1] = other
    return changed


_OF_TEXTS: Final = {"autoevals": _autoevals, "deepeval": _deepeval, "ragas": _ragas}
