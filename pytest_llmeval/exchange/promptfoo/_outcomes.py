"""An assertion of promptfoo, and what it becomes: a check, or a metric with a limit."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_llmeval.core import is_finite_number, quotation
from pytest_llmeval.exchange._ledger import Fate, LeftOutError
from pytest_llmeval.exchange._templates import SPACES, VerdictDifference, plain_text

_ESCAPED = re.compile(r'(?:\\(?=["\\])|"(?="))(.)')
_CLOSING = rf'"[{SPACES}]*(?=,|\Z)'
_LISTED = re.compile(rf'"((?:\\["\\]|""|[^"\\]|\\(?!["\\])|\\(?={_CLOSING}))*){_CLOSING}|([^",][^,]*)')
_NEVER: Final = {"all_of": [{"empty": True}, {"not_empty": True}]}
_ALWAYS: Final = {"any_of": [{"empty": True}, {"not_empty": True}]}


class RefusedThereError(LeftOutError):
    """promptfoo raises an error for an assertion, so the whole case fails with any threshold."""


@dataclass
class Outcome:
    """A promptfoo assertion as imported: a check, or a metric of the case with a limit.

    Attributes:
        entry: The check.
        evaluator: Name and options of the evaluator that has the metric.
        metric: The metric.
        limit: Of the metric.
        expected: Right answers that the metric compares with.
        judged: Whether a judge decides.
        members: Of a set: the outcomes of its assertions, each with its weight.
        fails_case: Whether the case fails for it with any threshold.
        weightless: Whether its weight is 0, so that it decides nothing.
        fate: `Fate.SAME` or `Fate.NEAR`.
        text: Its meaning here.
        differences: Answers that it judges differently.
    """

    entry: dict[str, Any] | None = None
    evaluator: tuple[str, dict[str, Any]] | None = None
    metric: str = ""
    limit: Any = None
    expected: list[str] = field(default_factory=list)
    judged: bool = False
    members: "list[tuple[Outcome, Any]]" = field(default_factory=list)
    fails_case: bool = False
    weightless: bool = False
    fate: Fate = Fate.SAME
    text: str = ""
    differences: list[VerdictDifference] = field(default_factory=list)


@dataclass(frozen=True)
class Assertion:
    """One assertion of promptfoo, with its value rendered.

    Attributes:
        kind: Its type without ``not-``.
        negated: Whether the type begins with ``not-``.
        value: The value to compare with.
        threshold: As the source has it.
        raw: The whole.
    """

    kind: str
    negated: bool
    value: Any
    threshold: Any
    raw: Mapping[str, Any]

    def check(
        self, name: str, argument: Any, differences: Iterable[VerdictDifference] = (), text: str = "", **more: Any
    ) -> Outcome:
        """Return the outcome that is a check; differences are those of the assertion without ``not-``."""
        key = f"not_{name}" if self.negated else name
        listed = [difference.negated() if self.negated else difference for difference in differences]
        return Outcome({key: argument}, text=f"check {key}{'; ' + text if text else ''}", differences=listed, **more)

    def metric(self, evaluator: str, options: dict[str, Any], name: str, default: float, differs: str) -> Outcome:
        """Return a metric of an evaluator, with the threshold as the limit of the case."""
        limit = self.share(default)
        return Outcome(
            evaluator=(evaluator, options),
            metric=name,
            limit={"max": limit} if self.negated else limit,
            expected=self.texts() if isinstance(self.value, list) else [self.text_value()],
            text=f"evaluator {evaluator}, metric {name}, with a threshold of the case",
            differences=[VerdictDifference(differs)],
        )

    def decided(self, why: str) -> Outcome:
        """Return the outcome of an assertion that every answer meets with ``not-``, and none without."""
        return constant(why, met=self.negated)

    def text_value(self) -> str:
        """Return the value as text.

        Raises:
            LeftOutError: It is none, or empty.
        """
        if isinstance(self.value, list | Mapping) or self.value is None or self.value == "":
            raise LeftOutError(f"its value is {described(self.value)}, expected text")
        return plain_text(self.value)

    def texts(self, absent: str = "") -> list[str]:
        """Return the value as texts; one text is a list with commas.

        Args:
            absent: The text of null.

        Raises:
            LeftOutError: It has no text.
        """
        value = comma_list(self.value) if isinstance(self.value, str) else self.value
        if not isinstance(value, list) or not value or any(isinstance(item, list | Mapping) for item in value):
            raise LeftOutError(f"its value is {described(value)}, expected a list of texts")
        return [absent if item is None else plain_text(item) for item in value]

    def share(self, default: float) -> float:
        """Return the threshold of a score from 0 to 1.

        Raises:
            LeftOutError: It is none.
        """
        value = self.number(default)
        if not 0 <= value <= 1:
            raise LeftOutError(f"its threshold is {value:g}, expected a number from 0 to 1")
        return value

    def number(self, default: float | None = None) -> float:
        """Return the threshold.

        Raises:
            LeftOutError: There is none, or it is no number.
        """
        value = default if self.threshold is None else self.threshold
        if is_finite_number(value):
            return value
        raise LeftOutError(f"its threshold is {described(value)}, expected a number")


def constant(why: str, *, met: bool, fails_case: bool = False) -> Outcome:
    """The outcome of a promptfoo assertion that every answer meets, or none does, as a check."""
    text = f"a check that {'every answer' if met else 'no answer'} meets, as there: {why}"
    return Outcome(dict(_ALWAYS if met else _NEVER), text=text, fails_case=fails_case)


def comma_list(text: str) -> list[str]:
    r"""The texts between commas of a promptfoo value; quotation marks hold commas, blank texts are left out.

    Raises:
        RefusedThereError: A quotation mark is not closed, or more follows it.

    Example:
        >>> comma_list(r'a, "b, \"c\"",, d')
        ['a', 'b, "c"', 'd']
    """
    texts, remaining = [], text.lstrip(f"{SPACES},")
    while remaining:
        match = _LISTED.match(remaining)
        if match is None:
            raise RefusedThereError(f"its list {quotation(text, 60)} has a quotation that does not end before a comma")
        quoted, plain = match.groups()
        texts.append(_ESCAPED.sub(r"\1", quoted) if quoted is not None else plain.strip(SPACES))
        remaining = remaining[match.end() :].lstrip(f"{SPACES},")
    return texts


def described(value: Any) -> str:
    """The kind of a value in a promptfoo file, for messages."""
    if value is None:
        return "absent"
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return f"{value!r}"
