"""The kinds of checks."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from pytest_llmeval.core import (
    EvaluatorError,
    MediaText,
    MissingExtraError,
    Opaque,
    Parts,
    excerpt,
    is_finite_number,
    limit,
)
from pytest_llmeval.data import json_text
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators._rubric import Rubric
from pytest_llmeval.evaluators._schemas import JsonSchema
from pytest_llmeval.evaluators.checks._check import (
    CheckError,
    CheckKind,
    CheckOutcome,
    CheckTest,
    Subject,
    UnreadableError,
    composed,
    quoted,
)
from pytest_llmeval.evaluators.checks._contents import CONTENT_KINDS
from pytest_llmeval.evaluators.checks._media_kinds import MEDIA_KINDS
from pytest_llmeval.evaluators.checks._texts import TEXT_KINDS, TRACE_KINDS
from pytest_llmeval.judges import Mode, ModeFile, Question, Verdict

_MOST_READ = 2_000_000
"""Characters that may be read in search of JSON; text full of opening brackets would else take quadratic time."""

_LINES_PER_READ = 100
"""Times as fast as characters are read, lines are counted."""

_OPENING = re.compile(r'\{(?=\s*+["}])|\[(?=\s*+[]\[{"\-0-9tfn])')
_SCALARS = (str, int, float, bool)
_SCALAR_KINDS = {str: "text", int: "number", float: "number", bool: "boolean"}


def _refuse(name: str) -> Any:
    """Refuse ``NaN`` and ``Infinity`` in JSON that stands inside an answer."""
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _whole(subject: Subject) -> Any:
    """The JSON value of an answer that a check compares: data as it is, a text read as a whole.

    Raises:
        UnreadableError: The text is not JSON.
    """
    if isinstance(subject.value, Opaque):
        raise UnreadableError(f"{subject.show()}, which is not JSON")
    if "json" not in subject.memory:
        subject.memory["json"] = (
            _parse_answer(subject.value) if isinstance(subject.value, str) else (subject.value, None)
        )
    value, fault = subject.memory["json"]
    if fault is not None:
        raise UnreadableError(f"{subject.show()}, which is not JSON ({fault})")
    return value


def _parse_answer(text: str) -> tuple[Any, str | None]:
    """The JSON value of an answer's text that a check reads, or the fault in it."""
    stripped = text.strip(" \t\r\n")
    try:
        return _DECODER.decode(stripped), None
    except json.JSONDecodeError as error:
        return None, f"{error.msg} at character {error.pos + len(text) - len(text.lstrip()) + 1}"
    except RecursionError:
        return None, "nested too deeply to be read"
    except ValueError as error:
        return None, str(error)


def _values(subject: Subject) -> Iterator[Any]:
    """Yield the JSON objects and arrays that stand in an answer's text, none of them inside another."""
    if not isinstance(subject.value, str) or isinstance(subject.value, Opaque):
        if isinstance(subject.value, Mapping | list | tuple):
            yield subject.value
        return
    text, start, budget = subject.value, 0, _MOST_READ
    while opening := _OPENING.search(text, start):
        try:
            value, start = _DECODER.raw_decode(text, opening.start())
        except json.JSONDecodeError as error:
            start = opening.end()
            budget -= error.pos - opening.start() + error.pos // _LINES_PER_READ  # the error counts the lines before it
        except (RecursionError, ValueError):
            start = opening.end()
            budget -= len(text) - start
        else:
            yield value
        if budget < 0:
            raise CheckError("found too many opening brackets without JSON to look at each of them")


Complaint = Callable[[Any], str | None]


def _schema_test(schema: Any) -> Complaint:
    """The function that finds where an answer's JSON disagrees with a check's JSON Schema.

    Raises:
        ValueError: It is no schema, or it refers to another document.
    """
    try:
        from jsonschema import SchemaError

        compiled = JsonSchema.compile(schema)
    except ImportError as error:
        raise MissingExtraError("a check by JSON Schema", "schema", error) from error
    except SchemaError as error:
        place = "".join(f"[{part!r}]" for part in error.absolute_path)
        raise ValueError(f"found a schema that is none ({place or 'top level'}: {error.message})") from None

    def complaint(value: Any) -> str | None:
        try:
            errors = sorted(compiled.errors(value), key=lambda violation: violation.json_path)
        except EvaluatorError as error:
            raise CheckError(str(error)) from None
        if not errors:
            return None
        first = errors[0]
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        return f"{first.json_path}: {excerpt(first.message, 200)}{more}"

    return complaint


def _json_schema(schema: Any) -> CheckTest:
    """Prepare the check ``json_schema``: an answer is JSON that a schema accepts."""
    complaint = _schema_test(schema)

    def test(subject: Subject) -> CheckOutcome:
        violation = complaint(_whole(subject))
        return CheckOutcome(violation is None, violation or "")

    return test


def _is_json(schema: Any) -> CheckTest:
    """Prepare the check ``is_json``: an answer is JSON, and a schema, if given, accepts it."""
    complaint = None if schema is None else _schema_test(schema)

    def test(subject: Subject) -> CheckOutcome:
        try:
            value = _whole(subject)
        except UnreadableError as error:
            return CheckOutcome(False, str(error))
        violation = complaint(value) if complaint is not None else None
        return CheckOutcome(violation is None, violation or "")

    return test


def _contains_json(schema: Any) -> CheckTest:
    """Prepare the check ``contains_json``: an answer contains JSON that a schema, if given, accepts."""
    complaint = None if schema is None else _schema_test(schema)

    def test(subject: Subject) -> CheckOutcome:
        first = None
        for value in _values(subject):
            violation = complaint(value) if complaint is not None else None
            if violation is None:
                return CheckOutcome(True, quoted(json.dumps(value, ensure_ascii=False)))
            first = first or violation
        return CheckOutcome(False, first or f"no JSON in {subject.show()}")

    return test


def _json_compared(expected: Any, *, subset: bool) -> CheckTest:
    """Prepare the check ``json_equals`` or ``json_subset`` of an answer's JSON."""

    def test(subject: Subject) -> CheckOutcome:
        expectation = expected if subset else subject.expectation(expected)
        if isinstance(subject.value, str) and _scalar_difference(expectation, subject.value, "$") is None:
            return CheckOutcome(True, "")
        whole = subject.value if isinstance(subject.value, Opaque) else _whole(subject)
        difference = _difference(expectation, whole, "$", subset=subset)
        return CheckOutcome(difference is None, difference or "")

    return test


def _difference(expected: Any, actual: Any, place: str, *, subset: bool) -> str | None:
    """The first place at which an answer's JSON differs from the expected value; ``None`` if none.

    Numbers are equal by value, texts in composed form; true is not 1.
    """
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return _mapping_difference(expected, actual, place, subset=subset)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        if subset:
            return _missing_item(expected, actual, place)
        if len(expected) != len(actual):
            return f"{place} with {len(actual)} items, not {len(expected)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        return next((why for n, (a, b) in pairs if (why := _difference(a, b, f"{place}[{n}]", subset=False))), None)
    return _scalar_difference(expected, actual, place)


def _scalar_difference(expected: Any, actual: Any, place: str) -> str | None:
    """The difference of two JSON scalars in an answer's check, or of values of two kinds; scalars' kinds are named."""
    if isinstance(expected, Opaque) or isinstance(actual, Opaque):
        same = expected == actual
    elif isinstance(expected, str) and isinstance(actual, str):
        same = composed(expected) == composed(actual)
    else:
        same = isinstance(expected, bool) is isinstance(actual, bool) and expected == actual
    if same:
        return None
    kinds = _SCALAR_KINDS.get(type(expected)), _SCALAR_KINDS.get(type(actual))
    if None in kinds or kinds[0] == kinds[1]:
        return f"{place}: {_value_text(actual)}"
    return f"{place}: {AnswerValue(actual).kind}, not {AnswerValue(expected).kind}"


def _mapping_difference(
    expected: Mapping[str, Any], actual: Mapping[str, Any], place: str, *, subset: bool
) -> str | None:
    """The first difference of a JSON object in an answer from the expected one; ``None`` if none."""
    named = {composed(key): value for key, value in actual.items()}
    keys = [composed(key) for key in expected]
    for key, value in zip(keys, expected.values(), strict=True):
        if key not in named:
            return f"{place} without {key!r}"
        if why := _difference(value, named[key], f"{place}.{key}", subset=subset):
            return why
    surplus = None if subset else next((key for key in named if key not in keys), None)
    return None if surplus is None else f"{place} with {surplus!r} too"


def _missing_item(expected: Sequence[Any], actual: Sequence[Any], place: str) -> str | None:
    """The expected item that no item of an answer's JSON array matches, under the best pairing."""
    fits = [
        [n for n, candidate in enumerate(actual) if not _difference(item, candidate, "", subset=True)]
        for item in expected
    ]
    owner: dict[int, int] = {}

    def pair(item: int, tried: set[int]) -> bool:
        for n in fits[item]:
            if n not in tried:
                tried.add(n)
                if n not in owner or pair(owner[n], tried):
                    owner[n] = item
                    return True
        return False

    missing = next((item for item in range(len(expected)) if not pair(item, set())), None)
    return None if missing is None else f"{place} without an item for {_value_text(expected[missing])}"


def _value_text(value: Any) -> str:
    """A JSON value of an answer as a check's message shows it: scalars in full, others by their kind."""
    is_scalar = isinstance(value, _SCALARS) and not isinstance(value, Opaque)
    return quoted(json.dumps(value, ensure_ascii=False)) if is_scalar else AnswerValue(value).kind


JSON_KINDS: Final = (
    CheckKind(
        "contains_json", "an object or array stands in the answer", Any, _contains_json, schema=True, optional=True
    ),
    CheckKind(
        "is_json", "the whole answer is JSON, of the schema if there is one", Any, _is_json, schema=True, optional=True
    ),
    CheckKind("json_equals", "the answer is this JSON value", Any, partial(_json_compared, subset=False)),
    CheckKind("json_schema", "the answer is JSON of this schema", Any, _json_schema, schema=True),
    CheckKind("json_subset", "the answer is JSON with all of this value", Any, partial(_json_compared, subset=True)),
)
"""The kinds, in alphabetical order."""


def _question_of(subject: Subject) -> str:
    """The question of a case for a judged check: text, the field ``question``, or the input as JSON; with media."""
    value = subject.case.input
    if isinstance(value, Mapping) and isinstance(value.get("question"), str):
        return MediaText.carrying(value["question"], value)
    return "" if value is None else json_text(value)


def _question(mode: Mode, subject: Subject, more: Mapping[str, str]) -> Question:
    """The question that a check puts to a judge about an answer, with texts such as the criterion."""
    question = _question_of(subject)
    texts = {"question": question, "answer": "" if subject.value is None else json_text(subject.value), **more}
    fields = {name: text for name, text in texts.items() if text or name == "answer"}
    language = Question.instruction_language(question or more.get("criterion", ""), subject.case.labels.get("language"))
    return Question(mode, fields, language)


@dataclass(frozen=True)
class Criterion:
    """The test of the check ``judge``: an answer meets a criterion.

    Attributes:
        text: The criterion, in the user's words.

    Raises:
        ValueError: It is blank.
    """

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("found blank text, expected a criterion")

    def question(self, subject: Subject) -> Question:
        """The question to the judge whether the answer meets the criterion."""
        return _question(ModeFile.mode_named("criterion"), subject, {"criterion": self.text})

    def read(self, verdict: Verdict) -> CheckOutcome:
        """Whether the judge says that the answer meets the criterion, with the judge's reason."""
        return CheckOutcome(verdict.score >= 1, _verdict_text("yes" if verdict.score >= 1 else "no", verdict))


@dataclass(frozen=True)
class Graded:
    """The test of the check ``rubric``: an answer reaches the pass mark of a rubric.

    Attributes:
        rubric: Criteria, levels and pass mark.
    """

    rubric: Rubric

    def question(self, subject: Subject) -> Question:
        """The question to the judge which level of the rubric the answer has."""
        return _question(self.rubric.mode, subject, {})

    def read(self, verdict: Verdict) -> CheckOutcome:
        """Whether the level that the judge gave reaches the pass mark of the rubric."""
        return CheckOutcome(verdict.score >= self.rubric.pass_mark, _verdict_text(f"level {verdict.score:g}", verdict))


def _verdict_text(word: str, verdict: Verdict) -> str:
    """The evidence of a check that a judge decided: the verdict in a word, and its reasoning if any."""
    return f"the judge's {word}: {quoted(verdict.reasoning)}" if verdict.reasoning else f"the judge's {word}"


JUDGED_KINDS: Final = (
    CheckKind("judge", "the answer meets this criterion, as the judge sees it", str, Criterion),
    CheckKind("rubric", "the answer reaches the pass mark of this rubric, as the judge sees it", Rubric, Graded),
)
"""The kinds."""


@dataclass(frozen=True)
class Most:
    """A maximum of latency or cost in its mapping form, for checks such as ``latency_s``.

    Attributes:
        max: The most that is allowed.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    max: float


def _at_most(figure: str, most: float | Most) -> CheckTest:
    """Prepare the check of a prediction's latency or cost against a maximum."""
    limit_of = most.max if isinstance(most, Most) else most
    if not limit_of >= 0:
        raise ValueError(f"found {limit_of}, expected a number of at least 0")

    def test(subject: Subject) -> CheckOutcome:
        value = subject.part(figure)
        if not is_finite_number(value):
            raise CheckError(f"found {AnswerValue(value).kind} as {figure}, expected a number")
        return CheckOutcome(value <= limit_of, f"{figure} {limit(value)}")

    return test


FIGURE_KINDS: Final = tuple(
    CheckKind(name, meaning, float | Most, partial(_at_most, name), on=Parts.WHOLE)
    for name, meaning in (
        ("latency_s", "the target answered within so many seconds"),
        ("cost_usd", "the answer cost at most so many dollars"),
    )
)
"""The kinds."""


_ALL: Final = (TEXT_KINDS, JSON_KINDS, CONTENT_KINDS, MEDIA_KINDS, FIGURE_KINDS, TRACE_KINDS, JUDGED_KINDS)

SHIPPED: Final[Mapping[str, CheckKind]] = {kind.name: kind for kinds in _ALL for kind in kinds}
"""Name to kind."""
