"""The kinds of checks: those that ship, those that a judge decides, and those that users write as functions."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_type_hints

from pytest_llmeval.core.codec import is_finite_number
from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.parts import WHOLE
from pytest_llmeval.core.wording import limit
from pytest_llmeval.evaluators.answers import as_text, describe_found
from pytest_llmeval.evaluators.checks.contents import CONTENT_KINDS
from pytest_llmeval.evaluators.checks.contract import CheckError, CheckKind, CheckOutcome, CheckTest, Subject, quoted
from pytest_llmeval.evaluators.checks.structured import JSON_KINDS
from pytest_llmeval.evaluators.checks.texts import SPAN_KINDS, TEXT_KINDS
from pytest_llmeval.judge.contract import Mode, Question
from pytest_llmeval.judge.questions.modes import get_mode, instruction_language
from pytest_llmeval.judge.questions.suite_modes import Rubric, rubric_mode

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Verdict


def _as_shown(value: Any) -> str:
    text = as_text(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def _question_of(subject: Subject) -> str:
    """Return the question of a case: a text, the text under ``question``, or else the input as JSON."""
    value = subject.case.input
    if isinstance(value, Mapping) and isinstance(value.get("question"), str):
        return str(value["question"])
    return "" if value is None else _as_shown(value)


def _question(mode: Mode, subject: Subject, more: Mapping[str, str]) -> Question:
    asked = _question_of(subject)
    texts = {"question": asked, "answer": "" if subject.value is None else _as_shown(subject.value), **more}
    given = {name: text for name, text in texts.items() if text or name == "answer"}
    language = instruction_language(asked or more.get("criterion", ""), subject.case.labels.get("language"))
    return Question(mode, given, language)


@dataclass(frozen=True)
class Criterion:
    """Whether an answer meets a criterion.

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
        """Return the question whether the answer meets it."""
        return _question(get_mode("criterion"), subject, {"criterion": self.text})

    def read(self, verdict: "Verdict") -> CheckOutcome:
        """Return whether the judge says so, with the judge's reason."""
        return CheckOutcome(verdict.score >= 1, _said("yes" if verdict.score >= 1 else "no", verdict))


@dataclass(frozen=True)
class Graded:
    """Whether an answer reaches the pass mark of a rubric.

    Attributes:
        rubric: Criteria, levels and pass mark.
    """

    rubric: Rubric

    def question(self, subject: Subject) -> Question:
        """Return the question which level the answer has."""
        return _question(rubric_mode(self.rubric.criteria, self.rubric.levels), subject, {})

    def read(self, verdict: "Verdict") -> CheckOutcome:
        """Return whether the level reaches the pass mark."""
        return CheckOutcome(verdict.score >= self.rubric.pass_mark, _said(f"level {verdict.score:g}", verdict))


def _said(word: str, verdict: "Verdict") -> str:
    return f"the judge's {word}: {quoted(verdict.reasoning)}" if verdict.reasoning else f"the judge's {word}"


JUDGED_KINDS: Final = (
    CheckKind("judge", "the answer meets this criterion, as the judge sees it", str, Criterion),
    CheckKind("rubric", "the answer reaches the pass mark of this rubric, as the judge sees it", Rubric, Graded),
)
"""The kinds."""


@dataclass(frozen=True)
class Most:
    """A limit in its mapping form.

    Attributes:
        max: The most that is allowed.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    max: float


def _at_most(figure: str, most: float | Most) -> CheckTest:
    limit_of = most.max if isinstance(most, Most) else most
    if not limit_of >= 0:
        raise ValueError(f"found {limit_of}, expected a number of at least 0")

    def test(subject: Subject) -> CheckOutcome:
        found = subject.part(figure)
        if not is_finite_number(found):
            raise CheckError(f"found {describe_found(found)} as {figure}, expected a number")
        return CheckOutcome(found <= limit_of, f"{figure} {limit(found)}")

    return test


FIGURE_KINDS: Final = tuple(
    CheckKind(name, meaning, float | Most, partial(_at_most, name), on=WHOLE)
    for name, meaning in (
        ("latency_s", "the target answered within so many seconds"),
        ("cost_usd", "the answer cost at most so many dollars"),
    )
)
"""The kinds."""


SHIPPED: Final[Mapping[str, CheckKind]] = {
    kind.name: kind for kind in (*TEXT_KINDS, *JSON_KINDS, *CONTENT_KINDS, *FIGURE_KINDS, *SPAN_KINDS, *JUDGED_KINDS)
}
"""Name to kind."""

MODIFIERS: Final = ("name", "on", "turn", "weight")
"""Keys of a check that are no kinds."""

COMPOSED: Final = ("any_of", "all_of", "at_least")
"""Keys of checks that consist of others."""

_MOST_PARAMETERS = 2


def kind_of_function(function: Callable[..., Any], name: str = "") -> CheckKind:
    """Return the kind of check that a user's function is.

    Args:
        function: ``answer -> met``, or ``answer, argument -> met``; ``met`` is true or false, or a pair of that and a
            text that says what was found. The annotation of ``argument`` is the type that suite files must give; an
            ``answer`` that is not annotated as ``str`` may be any JSON value.
        name: Of the check; default: the function's.

    Raises:
        EvaluatorError: It takes other parameters, or the name cannot be used.
    """
    name = name or getattr(function, "__name__", "")
    if not name.isidentifier() or name.startswith("not_") or name in (*MODIFIERS, *COMPOSED):
        raise EvaluatorError(f"found the check name {name!r}, expected an identifier that has no meaning of its own")
    try:
        parameters = list(inspect.signature(function).parameters.values())
        hints = get_type_hints(function)
    except (TypeError, ValueError, NameError) as error:
        raise EvaluatorError(f"check {name!r}: {error}") from None
    if not 1 <= len(parameters) <= _MOST_PARAMETERS or any(
        each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters
    ):
        raise EvaluatorError(
            f"check {name!r}: found {function!r}, expected a function of (answer) or (answer, argument)"
        )
    takes_argument = len(parameters) == _MOST_PARAMETERS
    optional = takes_argument and parameters[1].default is not inspect.Parameter.empty
    meaning = (inspect.getdoc(function) or f"a check of {function.__module__}").splitlines()[0]
    argument = hints.get(parameters[1].name, Any) if takes_argument else None
    prepared = _Function(function, text=hints.get(parameters[0].name) is str, takes_argument=takes_argument)
    return CheckKind(name, meaning, argument, prepared, optional=optional)


@dataclass(frozen=True)
class _Function:
    """A user's function as what prepares tests.

    Attributes:
        function: The function.
        text: Whether it wants texts only.
        takes_argument: Whether it has a second parameter.
    """

    function: Callable[..., Any]
    text: bool
    takes_argument: bool

    def __call__(self, argument: Any) -> CheckTest:
        given = () if argument is None or not self.takes_argument else (argument,)

        def test(subject: Subject) -> CheckOutcome:
            return _outcome(self.function(subject.text if self.text else subject.value, *given))

        return test


def _outcome(returned: Any) -> CheckOutcome:
    """Return what a user's function found."""
    met, found = (
        returned if isinstance(returned, tuple) and len(returned) == len(CheckOutcome._fields) else (returned, "")
    )
    if not isinstance(met, bool) or not isinstance(found, str):
        raise EvaluatorError(f"the check returned {returned!r}, expected true or false, or a pair of that and a text")
    return CheckOutcome(met, found)
