"""A check: its kind, its test of a subject, and the tree that a suite composes of several."""

import inspect
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, get_type_hints

from msgspec import structs

from pytest_llmeval.core import (
    AnyError,
    Case,
    EvaluatorError,
    JudgeError,
    LlmevalError,
    MissingExtraError,
    Parts,
    PredictionError,
    Reading,
    Reads,
    Turn,
    excerpt,
    form_of,
    grouped,
)
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.judges import PanelVerdict, Question, Verdict

_LONGEST = 80

_NO_COST = "; the prediction names no cost, nor tokens of a model with a known price: set parts.usage"


class CheckError(LlmevalError):
    """A check of an answer could not be made: what it reads is missing, or it took too long. No failure."""


class UnreadableError(LlmevalError):
    """The answer is not of the form that a check reads; neither the check nor its ``not_`` form is met."""


class CheckOutcome(NamedTuple):
    """The result of a check's test of a prediction.

    Attributes:
        met: Whether the check holds, before ``not_``.
        evidence: The finding as text, or a function that returns it; empty: the subject itself.
    """

    met: bool
    evidence: str | Callable[[], str] = ""


@dataclass
class Subject:
    """A part of a prediction that checks read. Values that several checks derive from it are computed once.

    Attributes:
        value: The part.
        case: The case, for the few kinds that read more than one part.
        memory: Findings that several checks share.
        is_answer: Whether the part is the answer itself, which may be a record with a field `answer`.
        absent: Why the part is empty, where nobody wrote it.
    """

    value: Any
    case: Case
    memory: dict[str, Any] = field(default_factory=dict)
    is_answer: bool = False
    absent: str = ""

    @cached_property
    def text(self) -> str:
        """The part as text in composed form (NFC); numbers and booleans as their JSON text.

        Raises:
            UnreadableError: It is no text.
        """
        is_record = self.is_answer and isinstance(self.value, Mapping)
        text = AnswerValue(self.value.get("answer") if is_record else self.value).text
        if text is None:
            raise UnreadableError(f"{AnswerValue(self.value).kind}, which is no text")
        return composed(text)

    @cached_property
    def folded(self) -> str:
        """The text without differences of upper and lower case."""
        return composed(self.text.casefold())

    @cached_property
    def words(self) -> int:
        """The number of words between white space."""
        return len(self.text.split())

    def expectation(self, data: Any) -> Any:
        """JSON data as the type of the object that the part is, so that equal objects have equal forms."""
        held = self.case.objects.get("prediction")
        return data if held is None else held.reading(data, self.value)

    def part(self, name: str) -> Any:
        """Another part of the prediction, or a figure of the run such as ``latency_s``.

        Raises:
            CheckError: It is not there.
        """
        figure = self.case.parts.get(name)
        if figure is not None:
            return figure
        if name not in Parts.NAMES:
            hint = f"{_NO_COST}{MissingExtraError.price_hint()}" if name == "cost_usd" else ""
            raise CheckError(f"the {name} of this answer is not known{hint}")
        try:
            return self.case.whole.read(name)
        except PredictionError as error:
            raise CheckError(str(error)) from None

    def show(self) -> str:
        """The part as messages of checks show it."""
        text = AnswerValue(self.value).text
        return AnswerValue(self.value).kind if text is None else quoted(text)


CheckTest: TypeAlias = Callable[[Subject], CheckOutcome]


class JudgedTest(Protocol):
    """The test of a check that a judge decides."""

    def question(self, subject: Subject) -> "Question":
        """The question to the judge that decides the check."""

    def read(self, verdict: "Verdict") -> CheckOutcome:
        """The meaning of a judge's verdict for the check."""


MODIFIERS: Final = ("name", "on", "turn", "weight")
"""Keys of a check that are no kinds."""

COMPOSED: Final = ("any_of", "all_of", "at_least")
"""Keys of checks that consist of others."""

_MOST_PARAMETERS = 2


@dataclass(frozen=True)
class CheckKind:
    """A kind of check on predictions, such as ``contains``.

    Attributes:
        name: Its key in a suite file; ``not_NAME`` is its negation.
        meaning: When it is met, in one line.
        argument: The type of its argument; ``None`` for a kind that takes none.
        prepare: Turns an argument into a test, once per suite; raises `ValueError` for one that cannot be used.
        each: Whether a list represents one check of each item.
        schema: Whether the argument is a JSON Schema, or the name of a file that holds one.
        optional: Whether the argument may be left out.
        on: What it looks at where the entry does not say; ``None`` for the answer.
    """

    name: str
    meaning: str
    argument: Any
    prepare: Callable[[Any], CheckTest | JudgedTest]
    each: bool = False
    schema: bool = False
    optional: bool = False
    on: str | None = None

    @property
    def bare(self) -> bool:
        """Whether the name alone is a check."""
        return self.argument is None or self.optional

    @classmethod
    def from_function(cls, function: "Callable[..., Any] | CheckKind", name: str = "") -> "CheckKind":
        """The kind that a user's function of an answer becomes; a kind is returned unchanged.

        Raises:
            EvaluatorError: It takes other parameters, or its name cannot be used.
        """
        if isinstance(function, CheckKind):
            return function
        name = name or getattr(function, "__name__", "")
        if not name.isidentifier() or name.startswith("not_") or name in (*MODIFIERS, *COMPOSED):
            raise EvaluatorError(
                f"found the check name {name!r}, expected an identifier that has no meaning of its own"
            )
        try:
            parameters = list(inspect.signature(function).parameters.values())
            hints = get_type_hints(function)
        except (TypeError, ValueError, NameError) as error:
            raise EvaluatorError(f"check {name!r}: {error}") from None
        if not 1 <= len(parameters) <= _MOST_PARAMETERS or any(
            parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            for parameter in parameters
        ):
            raise EvaluatorError(
                f"check {name!r}: found {function!r}, expected a function of (answer) or (answer, argument)"
            )
        takes_argument = len(parameters) == _MOST_PARAMETERS
        optional = takes_argument and parameters[1].default is not inspect.Parameter.empty
        meaning = (inspect.getdoc(function) or f"a check of {function.__module__}").splitlines()[0]
        argument = hints.get(parameters[1].name, Any) if takes_argument else None
        prepared = _AnswerFunction(function, text=hints.get(parameters[0].name) is str, takes_argument=takes_argument)
        return cls(name, meaning, argument, prepared, optional=optional)

    @classmethod
    def from_case_function(cls, function: Callable[[Any], Any], name: str | None = None) -> "CheckKind":
        """The kind that a user's function of a case becomes, with its docstring as meaning.

        Raises:
            EvaluatorError: It has no name of its own, and none is given.
        """
        from pytest_llmeval.evaluators._functions import name_function

        called, _ = name_function(function, name, "checks")
        meaning = (inspect.getdoc(function) or f"{called} returns true").splitlines()[0]
        return cls(called, meaning, None, _CaseFunction(function, called))


@dataclass(frozen=True)
class _AnswerFunction:
    """A user's function of an answer as a check kind, which prepares its test.

    Attributes:
        function: The function.
        text: Whether it wants texts only.
        takes_argument: Whether it has a second parameter.
    """

    function: Callable[..., Any]
    text: bool
    takes_argument: bool

    def __call__(self, argument: Any) -> CheckTest:
        arguments = () if argument is None or not self.takes_argument else (argument,)

        def test(subject: Subject) -> CheckOutcome:
            return _outcome(self.function(subject.text if self.text else subject.value, *arguments))

        return test


def _outcome(returned: Any) -> CheckOutcome:
    """The result of a check from what a user's function returned."""
    met, evidence = (
        returned if isinstance(returned, tuple) and len(returned) == len(CheckOutcome._fields) else (returned, "")
    )
    if not isinstance(met, bool) or not isinstance(evidence, str):
        raise EvaluatorError(f"the check returned {returned!r}, expected true or false, or a pair of that and a text")
    return CheckOutcome(met, evidence)


@dataclass(frozen=True)
class _CaseFunction:
    """A user's function of a case as a check kind, which prepares its test."""

    function: Callable[[Any], Any]
    name: str

    def __call__(self, argument: Any) -> CheckTest:
        from pytest_llmeval.evaluators._functions import Score
        from pytest_llmeval.services import UsersLoop

        del argument

        def test(subject: Subject) -> CheckOutcome:
            case = replace(subject.case, prediction=subject.value)
            typed = None if case.origin is None else case.origin.typed
            returned = self.function((typed or Case.as_given)(case))
            if inspect.isawaitable(returned):
                returned = UsersLoop.current().wait_for(returned)
            score = returned if isinstance(returned, Score) else Score(returned)
            met = form_of(score.value, strict=True)
            if not isinstance(met, bool):
                raise EvaluatorError(
                    f"{self.name}: found {returned!r}, expected true or false, or a Score of that; "
                    "functions that return other scores are evaluators"
                )
            return CheckOutcome(met, score.reason)

        return test


def composed(text: str) -> str:
    """A text in composed Unicode form (NFC), in which checks compare."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def quoted(text: str) -> str:
    """A text as a check's messages show it: on one line, in quotes, cut to what fits."""
    return f"'{excerpt(text, _LONGEST)}'"


class CheckFinding(NamedTuple):
    """The result of a check of one case, with the text that reports show.

    Attributes:
        met: Whether it is met; ``None`` where it could not be made.
        opposite: The same of its negation. A check that is not applicable has neither: it cannot read the answer, or a
            panel of judges did not decide.
        text: What was found and expected; of a check that could not be made, the check; empty where it is met.
        cause: Why it could not be made.
    """

    met: bool | None
    opposite: bool | None
    text: str = ""
    cause: str = ""


MET = CheckFinding(True, False)
_DEFAULT = Parts()


def not_made(findings: Iterable[CheckFinding]) -> dict[str, str]:
    """The reasons why checks could not be made, each with the checks that it concerns."""
    texts = grouped((finding.cause, finding.text) for finding in findings if None in (finding.met, finding.opposite))
    return {cause: ", ".join(dict.fromkeys(named)) for cause, named in texts.items()}


@dataclass
class View:
    """A case as its checks see it, with the judges' verdicts.

    Attributes:
        case: The case, with its whole prediction.
        verdicts: The replies of judges to the questions of the checks, in order.
    """

    case: Case
    verdicts: "Iterator[Verdict | JudgeError]" = field(default_factory=lambda: iter(()))
    _subjects: dict[str | None, Subject] = field(default_factory=dict)
    _turns: "list[View] | None" = None

    def subject(self, on: str | None) -> Subject:
        """The part of the prediction that a check looks at.

        Args:
            on: A part or a JMESPath; ``None`` for the answer.

        Raises:
            CheckError: The prediction does not have it.
        """
        subject = self._subjects.get(on)
        if subject is None:
            if on is None and type(self.case.prediction) is str and self._parts is _DEFAULT:
                subject = self._subjects[on] = Subject(self.case.prediction, self.case)
                return subject
            try:
                value = _read_part(on, self._parts).view(self.case).prediction
                subject = Subject(value, self.case, is_answer=on is None)
            except PredictionError as error:
                subject = self._absent_outcome(on, error)
            self._subjects[on] = subject
        return subject

    def _absent_outcome(self, on: str | None, error: PredictionError) -> Subject:
        """The part that the outcome of an agent lacks: a file that it did not write is empty.

        Raises:
            UnreadableError: The outcome has other values and not this one.
            CheckError: There is no outcome.
        """
        steps = _OUTCOME.match(on or "")
        outcome = self._part("outcome") if steps else None
        if steps is None or not isinstance(outcome, Mapping):
            raise CheckError(str(error)) from None
        if steps["file"] and isinstance(outcome.get("files"), Mapping):
            return Subject("", self.case, absent=f"{steps['file']} was not written")
        raise UnreadableError(f"nothing at {on!r}") from None

    def _part(self, on: str) -> Any:
        """The value of a part of the prediction; ``None`` if it has none."""
        try:
            return _read_part(on, self._parts).view(self.case).prediction
        except PredictionError:
            return None

    def turns(self, turn: Turn) -> "Sequence[tuple[int, View]]":
        """Turns of the conversation, each with its number, as checks of single turns read them.

        Raises:
            CheckError: The prediction is no conversation, or has no such turn.
        """
        try:
            if self._turns is None:
                parts = _DEFAULT if self.case.conversation else self._parts
                self._turns = [View(case, self.verdicts) for case in Reading.turns_of(self.case, parts)]
            return Reading.chosen_turns(list(enumerate(self._turns, 1)), turn)
        except PredictionError as error:
            raise CheckError(str(error)) from None

    @property
    def _parts(self) -> Parts:
        return self.case.part_paths


_OUTCOME = re.compile(r"""outcome\.(?:files\.(?P<quote>["']?)(?P<file>[^"']+)(?P=quote)$)?""")


@lru_cache(maxsize=256)
def _read_part(on: str | None, parts: Parts) -> Reading:
    """The reading by which checks take a part of a prediction; cached, since all cases share a few."""
    return Reading(Reads("answer", objects=True), on, parts)


class CheckNode(Protocol):
    """A check of a case, or a part of a composed one."""

    def find(self, view: View) -> CheckFinding:
        """The finding of the check on a case."""

    def questions(self, view: View) -> "Iterator[Question]":
        """Yield the questions to judges that the check asks."""


@dataclass(frozen=True, slots=True)
class CheckLeaf:
    """A check of one kind with its argument.

    Attributes:
        prepare: Turns the argument into the test.
        argument: Of the check.
        negated: Whether it must not hold.
        on: What it looks at; ``None`` for the answer.
        written: The check as in the suite file.
        test: The test.
    """

    prepare: Callable[[Any], CheckTest | JudgedTest]
    argument: Any
    negated: bool
    on: str | None
    written: str
    test: CheckTest | JudgedTest = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "test", self.prepare(self.argument))

    def __reduce__(self) -> tuple[type["CheckLeaf"], tuple[Any, ...]]:
        """Leave out the test, which may be a closure: another process prepares its own."""
        return CheckLeaf, (self.prepare, self.argument, self.negated, self.on, self.written)

    def questions(self, view: View) -> "Iterator[Question]":
        """Yield the question, if a judge decides and there is something to look at."""
        if not callable(self.test):
            try:
                subject = view.subject(self.on)
            except CheckError:
                return
            yield self.test.question(subject)

    def find(self, view: View) -> CheckFinding:
        """The finding of the check on a case."""
        try:
            subject = view.subject(self.on)
            if callable(self.test):
                met, evidence = self.test(subject)
            else:
                verdict = _next_verdict(view)
                met, evidence = self.test.read(verdict)
                if _is_split(self.test, verdict):
                    text = f"a split panel ({verdict.reasoning})"
                    return CheckFinding(False, False, f"found {text}, expected {self.written}")
        except UnreadableError as error:
            return CheckFinding(False, False, f"found {error}, expected {self.written}")
        except (CheckError, JudgeError) as error:
            return CheckFinding(None, None, self.written, str(error))
        except Exception as error:  # noqa: BLE001 (a check of a user may raise anything)
            return CheckFinding(None, None, self.written, AnyError(error).text)
        if met is not self.negated:
            return MET
        text = evidence if isinstance(evidence, str) else evidence()
        place = f" at {self.on}" if self.on is not None and self.on not in Parts.NAMES else ""
        what = subject.absent or f"found {text or subject.show()}{place}"
        return CheckFinding(False, True, f"{what}, expected {self.written}")


def _next_verdict(view: View) -> "Verdict":
    """The judge's next verdict on a case's checks; raises the error of a judge without one."""
    verdict = next(view.verdicts)
    if isinstance(verdict, JudgeError):
        raise verdict
    return verdict


def _is_split(test: JudgedTest, verdict: "Verdict") -> bool:
    """Whether a panel of judges did not decide a check: then neither it nor its opposite is met."""
    undecided = verdict.undecided if isinstance(verdict, PanelVerdict) else ()
    return len({test.read(structs.replace(verdict, score=score)).met for score in undecided}) > 1


@dataclass(frozen=True, slots=True)
class Composed:
    """A check of checks: at least so many of them are met.

    Attributes:
        parts: The checks.
        least: How many must be met.
        negated: Whether it must not hold.
        written: The check as messages show it; empty where its parts say enough.
    """

    parts: Sequence[CheckNode]
    least: int
    negated: bool
    written: str

    def questions(self, view: View) -> "Iterator[Question]":
        """Yield the questions of all of its checks."""
        for part in self.parts:
            yield from part.questions(view)

    def find(self, view: View) -> CheckFinding:
        """The finding of the composed check; a part that could not be made matters only if it could change it."""
        return _count_met([part.find(view) for part in self.parts], self.least, self.written, negated=self.negated)


@dataclass(frozen=True, slots=True)
class InTurns:
    """A check of single turns of a conversation: met if it is met in each of them.

    Attributes:
        node: The check.
        turn: Which turns.
        written: The check as messages show it.
    """

    node: CheckNode
    turn: Turn
    written: str

    def questions(self, view: View) -> "Iterator[Question]":
        """Yield the questions about each turn, if there is one."""
        try:
            turns = view.turns(self.turn)
        except CheckError:
            return
        for _, turn in turns:
            yield from self.node.questions(turn)

    def find(self, view: View) -> CheckFinding:
        """Look at each turn; one that is not met decides, also if others could not be checked."""
        try:
            turns = view.turns(self.turn)
        except CheckError as error:
            return CheckFinding(None, None, self.written, str(error))
        findings = [
            finding._replace(text=f"turn {number}: {finding.text}") if finding.text else finding
            for number, finding in [(number, self.node.find(turn)) for number, turn in turns]
        ]
        return _count_met(findings, len(findings), "")


def _count_met(findings: Sequence[CheckFinding], least: int, written: str, *, negated: bool = False) -> CheckFinding:
    """The finding on a composed check: so many of its parts are met, in three values."""
    met = _is_reached((finding.met for finding in findings), least)
    opposite = _is_reached((finding.opposite for finding in findings), len(findings) - least + 1)
    if negated:
        met, opposite = opposite, met
    if met:
        return MET
    if met is None:
        return _merge_findings(findings)._replace(opposite=opposite)
    why = "; ".join(finding.text for finding in findings if finding.met is False and not (negated and finding.opposite))
    if written:
        number = sum(finding.met is True for finding in findings)
        neither = sum(finding.met is finding.opposite is False for finding in findings)
        counts = f"{number} of {len(findings)} met{f' and {neither} not applicable' if neither else ''}"
        why = f"found {counts}{f' ({why})' if why else ''}, expected {written}"
    return CheckFinding(False, opposite, why, _merge_findings(findings).cause if opposite is None else "")


def _is_reached(values: Iterable[bool | None], least: int) -> bool | None:
    """Whether enough parts of a composed check are met; ``None`` if it depends on those that are not known."""
    known = list(values)
    if known.count(True) >= least:
        return True
    return None if known.count(True) + known.count(None) >= least else False


def _merge_findings(findings: Iterable[CheckFinding]) -> CheckFinding:
    """The finding on several checks of a composed one, some of which could not be made."""
    causes = not_made(findings)
    return CheckFinding(None, None, ", ".join(causes.values()), "; ".join(causes))


def _leaves_of(node: CheckNode) -> Iterator[CheckLeaf]:
    """Yield the checks of one kind of which a check is composed."""
    if isinstance(node, CheckLeaf):
        yield node
    elif isinstance(node, Composed):
        for part in node.parts:
            yield from _leaves_of(part)
    elif isinstance(node, InTurns):
        yield from _leaves_of(node.node)


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a suite or a case, as read from its entry.

    Attributes:
        key: Its kind, such as ``not_contains``.
        node: What it looks for.
        weight: How much it counts in ``check_rate``.
        judged: Whether a judge decides part of it.
        title: The name that the user gave it; empty if none.
        entry: What it was read from; names of files with a digest of what they hold.
        each: Whether a list as its argument represents one check of each item.
    """

    key: str
    node: CheckNode
    weight: float = 1.0
    judged: bool = False
    title: str = ""
    entry: Any = None
    each: bool = False

    @property
    def name(self) -> str:
        """The name under which the check is reported: ``check[NAME]``."""
        return self.title or self.key

    @property
    def takes_objects(self) -> bool:
        """Whether part of it is a function of a case, which gets users' objects in place of their JSON forms."""
        return any(isinstance(leaf.prepare, _CaseFunction) for leaf in _leaves_of(self.node))

    def line(self, finding: CheckFinding) -> str:
        """The line that people read about an unmet check."""
        return f"{self.title}: {finding.text}" if self.title else finding.text
