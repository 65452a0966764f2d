"""The content of an answer as text or JSON."""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from pytest_llmeval.core import (
    Case,
    EvaluatorError,
    Missing,
    Opaque,
    Parts,
    expectation,
    is_media,
    listed,
    media_line,
    quotation,
)

if TYPE_CHECKING:
    import regex
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_LONGEST = 40
"""Characters of a text that a message quotes."""


_OPENING_FENCE = re.compile(r"```\w*+[^\S\n]*+\n")
_FENCE_MARK: Final = "```"
_TAG = re.compile(r"[<\[◁]/?(?:think|thinking|thoughts?|reasoning)[>\]▷]", re.IGNORECASE)


def spoken_answer(text: str) -> tuple[str, str]:
    """The reply after its thoughts, and a fault if it ends inside them.

    >>> spoken_answer("<think>Lyon? No.</think>Paris"), spoken_answer("<think>Lyon?")[1]
    (('Paris', ''), 'the reply ends inside its thoughts: raise max_tokens')
    """
    if not _TAG.search(text):
        return text, ""
    from pytest_llmeval.data import UnfinishedThoughtsError, spoken_text

    try:
        return spoken_text(text), ""
    except UnfinishedThoughtsError as error:
        return "", str(error)


def json_in(text: str) -> Any:
    r"""Return the JSON data that a text is, also within a fence; the text itself if it is none.

    >>> json_in("```json\n[1, 2]\n```"), json_in("[1, 2")
    ([1, 2], '[1, 2')
    """
    bare = text.strip()
    opening = _OPENING_FENCE.match(bare)
    is_fenced = opening and bare.endswith(_FENCE_MARK)
    try:
        return json.loads(bare[opening.end() : -len(_FENCE_MARK)] if opening and is_fenced else text)
    except (ValueError, RecursionError):
        return text


def as_text(value: Any) -> str | None:
    """Return a JSON scalar as text: a string unchanged, a number or boolean as its JSON text.

    Returns:
        The text; ``None`` for null, a list, an object, a value that JSON cannot say, or one that was not given.
    """
    if isinstance(value, str):
        return None if isinstance(value, Opaque) else value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return None


def as_references(value: Any) -> list[str] | None:
    """Return the acceptable answers of a case's ground truth.

    Args:
        value: A scalar (one reference), a list of scalars (several), or null.

    Returns:
        The references as texts; empty where the ground truth is absent (null or an empty list); ``None``
        where it is of the wrong form (an object, or a list that holds anything but scalars).
    """
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        texts = [text for each in value if (text := as_text(each)) is not None]
        return texts if len(texts) == len(value) else None
    text = as_text(value)
    return None if text is None else [text]


def reference_fault(value: Any) -> str:
    """Say what is wrong with a ground truth from which `as_references` reads none.

    >>> reference_fault(["Paris", None])
    'found null in the list, expected text or a list of texts'
    """
    description = describe_found(value)
    if isinstance(value, (list, tuple)):
        description = next(describe_found(each) for each in value if as_text(each) is None) + " in the list"
    return f"found {description}, expected text or a list of texts"


def describe_found(value: Any) -> str:
    """Say what a value is: ``null``, ``a list``, ``an object``, ``number 3``, ``text 'abc...'``."""
    match value:
        case None:
            description = "null"
        case Opaque():
            description = str(value)
        case str():
            description = f"text {quotation(value, _LONGEST)}"
        case bool():
            description = json.dumps(value)
        case int() | float():
            description = f"number {json.dumps(value)}"
        case list() | tuple():
            description = "a list"
        case dict():
            description = media_line(value) if is_media(value) else "an object"
        case Missing():
            description = "nothing"
        case _:
            description = f"a value of type {type(value).__name__}"
    return description


_FENCE = re.compile(
    r"```[ \t]*(?:\w+(?=[\s{\[]))?(.*?)(?:\n[ \t]*```|```[ \t]*(?=[\r\n]|\Z)|\Z)",
    re.DOTALL,
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_LAST_WORD = re.compile(r"[\w.+\\-]*\s*")


class NoJsonError(ValueError):
    """A text has no JSON in it that can be read."""


def read_json(text: str) -> Any:
    r"""Return the JSON value of an answer.

    Args:
        text: JSON, or prose with JSON in one fenced block.

    Raises:
        NoJsonError: It is not JSON, is cut off, repeats a key, or has several fenced blocks of JSON.

    Example:
        >>> read_json('Here you are:\n```json\n{"total": 12}\n```')
        {'total': 12}
        >>> read_json('{"total": 1')  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        pytest_llmeval.evaluators._answers.NoJsonError: found truncated JSON ...
    """
    spoken, fault = spoken_answer(text)
    if fault:
        raise NoJsonError(fault)
    whole = spoken.strip("\ufeff \t\r\n")
    fenced = [match.group(1).strip() for match in _FENCE.finditer(whole)]
    values, faults = [], []
    for candidate in [whole] if not fenced or whole[:1] in ("{", "[") else fenced:
        try:
            values.append(_parsed(candidate))
        except NoJsonError as error:
            faults.append(error)
    if len(values) == 1:
        return values[0]
    raise NoJsonError(f"found {len(values)} fenced blocks of JSON, expected one") if values else faults[-1]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        if _is_truncated(text, error):
            end = text[-20:]
            raise NoJsonError(f"found truncated JSON (the text ends with {end!r}), expected all of it") from None
        where = f"line {error.lineno}, column {error.colno}"
        raise NoJsonError(f"found {describe_found(text)}, expected JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise NoJsonError("found JSON that is nested too deeply, expected less") from None
    except NoJsonError:
        raise
    except ValueError as error:
        raise NoJsonError(f"found JSON with a number that cannot be read ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        from pytest_llmeval.data import repeated_key

        twice = quotation(repeated_key(pairs), _LONGEST)
        raise NoJsonError(f"found the key {twice} twice in one object, expected it once")
    return data


def _constant(name: str) -> NoReturn:
    raise NoJsonError(f"found {name}, expected a finite number or null")


def _is_truncated(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text is the beginning of JSON that ends before its last bracket or quote."""
    if text[:1] not in ("{", "["):
        return False
    depth = 0
    for match in _STRING.finditer(text):
        mark = match.group()
        if mark[0] == '"' and not match.group(1):
            return error.pos >= match.start()
        depth += (mark in "[{") - (mark in "]}")
    return depth > 0 and _LAST_WORD.fullmatch(text, error.pos) is not None


SEARCH_S: Final = 1.0
"""How long a regular expression may search, and a value may be compared with its schema."""


class PatternError(ValueError):
    """A text is no regular expression.

    Attributes:
        offset: Where in the text the fault is.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)


class SlowPatternError(EvaluatorError):
    """A search took too long."""


class SlowSchemaError(EvaluatorError):
    """Comparing a value with a JSON Schema took too long."""


@lru_cache(maxsize=256)
def compiled(pattern: str, *, ignore_case: bool = False) -> "regex.Pattern[str]":
    """Return a regular expression.

    Raises:
        PatternError: It does not compile.
    """
    import regex

    if fault := _size_fault(pattern):
        raise PatternError(fault, 0)
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except regex.error as error:
        why, _, position = str(error).partition(" at position ")
        offset = int(position) if position.isdecimal() else 0
        message = f"found the pattern {pattern!r}, which does not compile ({why} at character {offset + 1})"
        raise PatternError(f"{message}, expected a regular expression", offset) from None
    except RecursionError:
        raise PatternError("found a pattern that is nested too deeply", 0) from None


_DEEPEST_PATTERN: Final = 500
"""Most groups inside each other: how many more can be compiled depends on the recursion limit of the process."""
_MOST_GROUPS: Final = 5_000
"""Most groups of a pattern: the time to compile them grows with their square."""
_MOST_REPEATED: Final = 20_000
"""Most parts of a pattern more than are written: what is repeated at least n times is compiled n times."""

_PATTERN_PART: Final = re.compile(
    r"\\.|\(\?#[^)]*+\)?|\[\^?\]?(?:\\.|[^]\\])*+\]?|\{(?P<least>\d++)(?:,\d*+)?\}|.", re.DOTALL
)
_HIDING_FLAG: Final = re.compile(r"\(\?[a-zA-Z0-9]*(?:x|V1)")
"""A flag with which parentheses and repeats can stand where `_PATTERN_PART` does not see them."""
_LEAST: Final = re.compile(r"\{(\d++)")
_SPACE_AND_COMMENTS: Final = re.compile(r"\s++|#[^\n]*+")


def _size_fault(pattern: str) -> str:
    """The reason why a pattern takes too much to compile; empty if it does not."""
    sizes, last, groups, deepest = [0], 0, 0, 1
    for match in _PATTERN_PART.finditer(pattern):
        part = match.group()
        if match["least"]:
            last, before = last * max(_count(match["least"]), 1), last
            sizes[-1] += last - before
        elif part == "(":
            sizes.append(0)
            groups += 1
            deepest = max(deepest, len(sizes))
        elif part == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
    if deepest > _DEEPEST_PATTERN:
        return "found a pattern that is nested too deeply"
    if groups > _MOST_GROUPS:
        return f"found a pattern with {groups:,} groups, expected at most {_MOST_GROUPS:,}"
    if max(sum(sizes), _hidden_size(pattern)) > len(pattern) + _MOST_REPEATED:
        return (
            f"found a pattern that repeats too much, expected at most {_MOST_REPEATED:,} parts when it is written out"
        )
    return ""


def _hidden_size(pattern: str) -> int:
    """Return the most parts that a pattern can have in spite of flags that hide some; 0 without such flags."""
    if not _HIDING_FLAG.search(pattern):
        return 0
    texts = pattern, _SPACE_AND_COMMENTS.sub("", pattern)
    counts = ([count for digits in _LEAST.findall(text) if (count := _count(digits)) > 1] for text in texts)
    return len(pattern) * max(math.prod(several[:20]) for several in counts)  # twenty doublings are enough to refuse it


def _count(digits: str) -> int:
    return int(digits[:10])


def found_by(pattern: "regex.Pattern[str]", text: str, seconds: float | None = None) -> "regex.Match[str] | None":
    """Return the first match in a text, or ``None``.

    Args:
        pattern: The regular expression.
        text: What it searches.
        seconds: How long it may search; default: a second.

    Raises:
        SlowPatternError: It takes longer.
    """
    try:
        # Of 0 s or less, regex would make no limit.
        return pattern.search(text, timeout=SEARCH_S if seconds is None else max(seconds, 1e-6))
    except TimeoutError:
        message = f"the pattern {pattern.pattern!r} searched for {SEARCH_S:g} s without result"
        raise SlowPatternError(message) from None


_compared_until: ContextVar[float] = ContextVar("_compared_until")
"""When a value must have been compared with a schema."""


class _LimitedSearch:
    """Replaces the module ``re`` for the keywords of JSON Schema, whose searches would never be interrupted."""

    @staticmethod
    def search(pattern: str, text: str) -> "regex.Match[str] | None":
        return found_by(compiled(pattern), text, _compared_until.get() - time.monotonic())


_BOOLEANS: Final = (object(), object())


def _comparable(value: Any) -> Any:
    """A key that is equal for equal JSON values only: true is not 1, and 1.0 is."""
    if isinstance(value, Mapping):
        return frozenset((key, _comparable(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return _BOOLEANS[value] if isinstance(value, bool) else value


def _is_unique(items: Sequence[Any]) -> bool:
    """Whether no two items are equal, in linear time."""
    return len(set(map(_comparable, items))) == len(items)


@cache
def _limited_kind(kind: type["Validator"]) -> Any:
    """Return a kind of validators that have a time limit, as their patterns do, and whose ``uniqueItems`` is linear.

    Its keywords are those of jsonschema, run with other globals: its documented way to replace a keyword
    would leave out what ``unevaluatedProperties``, and schemas that name their dialect again, search for.
    """
    from jsonschema import validators

    namespaces: dict[int, dict[str, Any]] = {}

    def limited(function: Any) -> Any:
        own = FunctionType(
            function.__code__, namespace(function), function.__name__, function.__defaults__, function.__closure__
        )
        own.__kwdefaults__ = function.__kwdefaults__
        return own

    def namespace(function: Any) -> dict[str, Any]:
        original = function.__globals__
        if (own := namespaces.get(id(original))) is None:
            own = namespaces[id(original)] = dict(original)
            for name, value in original.items():
                if isinstance(value, FunctionType) and value.__module__.startswith("jsonschema._"):
                    own[name] = limited(value)
            own |= {name: new for name, new in {"re": _LimitedSearch, "uniq": _is_unique}.items() if name in own}
        return own

    def validator_of(schema: Any, default: Any) -> Any:
        chosen: Any = validators.validator_for(schema, default=default)
        return chosen if chosen is default else _limited_kind(chosen)

    def timed(function: Any) -> Any:
        def keyword(*arguments: Any) -> Any:
            if time.monotonic() > _compared_until.get():
                raise SlowSchemaError(f"comparing the value with its schema took longer than {SEARCH_S:g} s")
            return function(*arguments)

        return keyword

    keywords = {name: timed(limited(function)) for name, function in kind.VALIDATORS.items()}
    types = kind.TYPE_CHECKER.redefine("number", _is_number)
    own: Any = validators.extend(kind, keywords, type_checker=types)  # type: ignore[no-untyped-call] # as its stubs have it
    evolve = own.evolve
    own.evolve = FunctionType(
        evolve.__code__,
        {**evolve.__globals__, "validator_for": validator_of},
        evolve.__name__,
        evolve.__defaults__,
        evolve.__closure__,
    )
    return own


def _is_number(_checker: Any, value: Any) -> bool:
    """Whether a value is a number of JSON: ``1e400`` is infinite, and no number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def schema_validator(schema: Any) -> "Validator":
    """Return a validator of a JSON Schema, for `schema_errors`; what it refers to elsewhere is not fetched.

    Raises:
        SchemaError: Of jsonschema: it is no schema.
        ValueError: It, or a pattern in it, is nested too deeply or repeats too much.
        ImportError: jsonschema is not installed.
    """
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    kind = validator_for(schema, default=Draft202012Validator)
    if fault := next(filter(None, map(_size_fault, _patterns_of(schema))), ""):
        raise ValueError(fault)
    try:
        kind.check_schema(schema)
    except RecursionError:
        raise ValueError("found a schema that is nested too deeply") from None
    except (OverflowError, ValueError) as error:
        raise ValueError(f"found a schema with a number that is too large ({error})") from None
    # An empty registry of our own: without one, references would be fetched over the network.
    validator: Validator = _limited_kind(kind)(schema, registry=Registry())
    return validator


def _patterns_of(schema: Any) -> Iterator[str]:
    """Yield what a schema may take as regular expressions."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += part.values()
            if isinstance(pattern := part.get("pattern"), str):
                yield pattern
            if isinstance(part.get("patternProperties"), Mapping):
                yield from map(str, part["patternProperties"])
        elif isinstance(part, list | tuple):
            waiting += part


def schema_errors(validator: "Validator", value: Any) -> "list[ValidationError]":
    """The places at which a value disagrees with a schema.

    Raises:
        EvaluatorError: The comparison takes longer than a second, or the schema refers to another document. Or one of
            the two is nested too deeply, or a number of the value is too large.
    """
    from referencing.exceptions import Unresolvable

    token = _compared_until.set(time.monotonic() + SEARCH_S)
    try:
        return list(validator.iter_errors(value))
    except Unresolvable as error:
        raise EvaluatorError(f"the schema refers to {error.ref!r}, which is not in it") from None
    except RecursionError:
        raise EvaluatorError("the value or its schema is nested too deeply") from None
    except OverflowError:
        raise EvaluatorError("a number of the value is too large to be compared with its schema") from None
    except PatternError as error:
        raise EvaluatorError(str(error)) from None
    finally:
        _compared_until.reset(token)


_MOST = 10


def word_lines(prediction: str, references: Iterable[str], split: Callable[[str], Sequence[str]]) -> list[str]:
    """Say which words an answer lacks and which it has too many, against the reference that shares most with it.

    Args:
        prediction: The answer.
        references: The right answers; nothing is said where one of them is the prediction.
        split: Returns the words of a text.

    >>> word_lines("It is Lyon", ["Paris", "It is Paris"], str.split)
    ['missing words: Paris', 'extra words: Lyon']
    """
    texts = list(references)
    if not texts or prediction.strip() in map(str.strip, texts):
        return []
    if not prediction.strip():
        return ["the answer is empty"]
    answered = Counter(split(prediction))
    expected = max(map(Counter, map(split, texts)), key=lambda words: _likeness(words, answered))
    lines = [
        f"{name} words: {listed(words.elements(), _MOST)}"
        for name, words in (("missing", expected - answered), ("extra", answered - expected))
        if words
    ]
    return lines or ["the same words, in another order, case or punctuation"]


def _likeness(left: "Counter[str]", right: "Counter[str]") -> float:
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0


_CJK: Final = re.compile("[\u3400-\u9fff]")
_STEP: Final = re.compile(r"(?P<key>[A-Za-z_]\w*)|\[(?P<place>\d+)\]")


class ChangeablePart(NamedTuple):
    """A part of a prediction that can be put back changed.

    Attributes:
        value: The part.
        put: From a changed part to the prediction that has it.
    """

    value: Any
    put: Callable[[Any], Any]


def has_cjk(text: str) -> bool:
    """Whether a text has Chinese characters."""
    return _CJK.search(text) is not None


def parts_of(case: Case) -> Parts:
    """The paths to the parts of a case's prediction."""
    return Parts() if case.origin is None else case.origin.parts


def steps_of(path: str) -> list[str | int] | None:
    """Return the keys and places of a JMESPath that is nothing but these; ``None`` for one that computes something."""
    steps: list[str | int] = []
    place = 0
    while place < len(path):
        if path[place] == "." and steps:
            place += 1
        match = _STEP.match(path, place)
        if match is None:
            return None
        steps.append(match["key"] if match["key"] is not None else int(match["place"]))
        place = match.end()
    return steps


def replaced_at(value: Any, steps: Sequence[str | int], new: Any) -> Any:
    """Return a value with another one at a place, which is given by keys and places."""
    if not steps:
        return new
    first, *remaining = steps
    if isinstance(first, int):
        return [replaced_at(each, remaining, new) if at == first else each for at, each in enumerate(value)]
    return {**value, first: replaced_at(value[first], remaining, new)}


def answer_part(case: Case) -> ChangeablePart | None:
    """Return the answer, wherever the suite says that it is; ``None`` where it is not, or computed."""
    prediction, path = case.prediction, parts_of(case).answer
    if path is not None:
        steps = steps_of(path)
        if steps is None:
            return None
        answer = parts_of(case).find("answer", prediction)
        return ChangeablePart(answer, lambda new: replaced_at(prediction, steps, new))
    if not isinstance(prediction, Mapping):
        return ChangeablePart(prediction, lambda new: new)
    if "answer" not in prediction:
        return None
    return ChangeablePart(prediction["answer"], lambda new: _with_answer(prediction, new))


def _with_answer(prediction: Mapping[str, Any], new: Any) -> dict[str, Any]:
    """Return a prediction with another answer, which in a conversation is also the last message of the assistant."""
    changed = {**prediction, "answer": new}
    messages = prediction.get("messages")
    if isinstance(messages, list):
        for place in range(len(messages) - 1, -1, -1):
            last = messages[place]
            if isinstance(last, Mapping) and last.get("role") == "assistant":
                if last.get("content") == prediction["answer"]:
                    changed["messages"] = [*messages[:place], {**last, "content": new}, *messages[place + 1 :]]
                break
    return changed


def answer_text(case: Case) -> ChangeablePart | None:
    """Return the text of an answer; ``None`` where it has none."""
    if type(case.prediction) is str and case.origin is None:  # most are, and need no look at the parts
        return ChangeablePart(case.prediction, lambda new: new) if case.prediction.strip() else None
    answer = answer_part(case)
    return answer if answer is not None and isinstance(answer.value, str) and answer.value.strip() else None


def references(case: Case) -> list[str]:
    """Return the texts that a case accepts as its answer; none where it expects something else than texts."""
    expected = case.expected
    if isinstance(expected, Mapping):
        expected = expectation("answer", parts_of(case).answer, expected)
    return as_references(expected) or []
