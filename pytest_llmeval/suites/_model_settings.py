"""Settings about models: parts of predictions, conversations with simulated users, one judge or a panel."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from pytest_llmeval.core import (
    PARTS,
    WANTED_TURN,
    WHOLE,
    Evaluator,
    FieldsError,
    Parts,
    RecordedCounts,
    Turn,
    excerpt,
    expression_fault,
    is_turn,
)
from pytest_llmeval.data import STRICT, Document, DocumentReader, describe
from pytest_llmeval.judges import CascadeRule, JudgeSpec, PanelSpec
from pytest_llmeval.numbers import Repeats

_STOPS: Final = ("goal_reached", "gave_up", "out_of_scope")
_WANTS: Final = ("persona", "goal", "knows")
_STOP_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class MessageEntry:
    """A message of a scripted conversation."""

    __pydantic_config__: ClassVar = STRICT

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class SimulatedUser(JudgeSpec):
    """A model that plays the user of a conversation; its settings as a model are those of judges.

    Attributes:
        persona: Who the user is. That of a case goes before it, as do goal and knowledge.
        goal: What the user wants.
        knows: What the user knows.
        max_turns: Most calls of the target.
        stop: The reasons for which the user may end a conversation.
        language: Of the instructions; ``auto``: by the script of the goal.
        instructions: File of the instructions, in place of those that ship.
        unrecorded: What happens where an agent says something that no recording answers: the model is asked, the case
            fails, or the conversation stops there. A run that records asks.
        checks_role: Whether the suite's judge, if it has one, says whether the user kept to its role.

    Raises:
        FieldsError: With every fault.
    """

    persona: str = ""
    goal: str = ""
    knows: dict[str, Any] = field(default_factory=dict)
    max_turns: int = 12
    stop: tuple[str, ...] = _STOPS
    language: Literal["auto", "en", "zh"] = "auto"
    instructions: str | None = None
    unrecorded: Literal["ask", "fail", "stop"] = "ask"
    checks_role: bool = True

    def _faults(self) -> Iterator[tuple[str, str]]:
        yield from super()._faults()
        if self.model is None:
            yield "model", "found no model, expected PROVIDER:NAME of the model that plays the user"
        if self.max_turns < 1:
            yield "max_turns", f"found {self.max_turns}, expected a whole number of at least 1"
        if wrong := [each for each in self.stop if not _STOP_NAME.fullmatch(each)]:
            yield "stop", f"found {wrong[0]!r}, expected names of lower-case letters such as goal_reached"
        if not self.stop:
            yield "stop", "found an empty list, expected at least one reason such as goal_reached"

    @cached_property
    def way(self) -> str:
        """Everything that decides what it says, besides what the case wants and what the target says, as text."""
        settings = [self.model, self.base_url, self.request_parameters(), self.stop, self.language, self.instructions]
        return json.dumps([*settings, self.max_turns])


@dataclass(frozen=True)
class ConversationSpec:
    """The leader of conversations, and their end.

    Attributes:
        stop: ``script``: after the reply to the last message of the script; ``target``: when the target ends it.
        max_turns: Most calls of the target.
        user: Plays the user after the script, if there is one, up to the end.
    """

    __pydantic_config__: ClassVar = STRICT

    stop: Literal["script", "target"] = "script"
    max_turns: int | None = None
    user: SimulatedUser | None = None

    @property
    def limit(self) -> int | None:
        """Most calls of the target; ``None`` for no limit."""
        if self.user is None:
            return self.max_turns
        return self.user.max_turns if self.max_turns is None else min(self.max_turns, self.user.max_turns)


def wants_of(user: SimulatedUser, value: Any) -> dict[str, Any]:
    """Return what the user of a case wants: its persona, goal and knowledge, those of the suite where it has none.

    Args:
        user: Of the suite.
        value: Input of the case: the goal as text, an object of the three, or messages that begin the conversation.

    Raises:
        ValueError: It is none of these, or nobody says the goal; ``found ..., expected ...``.
    """
    expected = "expected the user's goal as text, or an object with goal, persona and knows"
    own: Mapping[str, Any] = {}
    if isinstance(value, str):
        own = {"goal": value}
    elif isinstance(value, Mapping):
        own = value
    elif value is not None and not isinstance(value, list):
        raise ValueError(f"found {excerpt(json.dumps(value), 40)} as input, {expected}")
    if unknown := sorted(map(str, own.keys() - set(_WANTS))):
        raise ValueError(f"found {unknown[0]!r} in the input, {expected}")
    wants = {name: own.get(name) if own.get(name) not in (None, "", {}) else getattr(user, name) for name in _WANTS}
    for name, kind, expectation in (
        ("persona", str, "text"),
        ("goal", str, "text"),
        ("knows", Mapping, "names with values"),
    ):
        if not isinstance(wants[name], kind):
            raise ValueError(f"found {excerpt(json.dumps(wants[name]), 40)} as {name}, expected {expectation}")  # noqa: TRY004 (a fault)
    if not str(wants["goal"]).strip():
        raise ValueError("found no goal of the simulated user, expected one as input, or in conversation.user")
    return wants


def script_of(messages: Sequence[str | MessageEntry]) -> list[dict[str, str]]:
    """Return the messages of a script; a text is a message of the user."""
    return [{"role": "user", "content": each} if isinstance(each, str) else dict(vars(each)) for each in messages]


def script_fault(messages: Sequence[str | MessageEntry]) -> str | None:
    """Return the fault of a script as a whole."""
    if not messages:
        return "found an empty list, expected at least one message"
    last = messages[-1]
    if isinstance(last, str) or last.role == "user":
        return None
    return f"found a last message of the {last.role}, expected one of the user, which the target answers"


def with_user_metrics(entries: Sequence[Any], user: SimulatedUser | None, *, judged: bool) -> list[Any]:
    """Return the evaluators of a suite with those about its simulated user: how conversations end, and drift.

    Args:
        entries: Of the suite file.
        user: Its simulated user; ``None`` for none.
        judged: Whether it has a judge.
    """
    if user is None:
        return list(entries)
    names = [each if isinstance(each, str) else next(iter(each), None) for each in entries if each]
    listed = list(entries)
    if "conversation" not in names:
        listed.append("conversation")
    if judged and user.checks_role and "user_drift" not in names:
        listed.append("user_drift")
    reasons = {"reasons": list(user.stop)}
    for place, each in enumerate(listed):
        if each == "conversation":
            listed[place] = {"conversation": reasons}
        elif isinstance(each, Mapping) and isinstance(options := each.get("conversation", 0), Mapping | None):
            listed[place] = {**each, "conversation": {**reasons, **(options or {})}}
    return listed


class PartReader(DocumentReader):
    """One reading of one suite file; collects faults.

    Attributes:
        on: Label of an evaluator to what it reads, where its entry has one.
        turns: Label of an evaluator to the turns that it reads, where its entry has one.
    """

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.on: dict[str, str] = {}
        self.turns: dict[str, Turn] = {}

    def read_on(self, label: str, entry: Any, place: tuple[str | int, ...]) -> None:
        """Read ``on`` of an evaluator's entry."""
        if not isinstance(entry, str):
            self.fault(place, f"found {describe(entry)}, expected a part ({', '.join(PARTS)}) or a JMESPath")
        elif entry in (WHOLE, *PARTS) or self._is_expression(entry, place):
            self.on[label] = entry

    def read_turn(self, label: str, entry: Any, place: tuple[str | int, ...]) -> None:
        """Read ``turn`` of an evaluator's entry."""
        if is_turn(entry):
            self.turns[label] = entry
        else:
            self.fault(place, f"found {describe(entry)}, expected {WANTED_TURN}")

    def read_conversation(self, entry: Any) -> ConversationSpec:
        """Read ``conversation``: when conversations end."""
        if entry is None:
            return ConversationSpec()
        spec: ConversationSpec | None = self.check(ConversationSpec, entry, ("conversation",))
        if spec is None:
            return ConversationSpec()
        if spec.max_turns is not None and spec.max_turns < 1:
            self.fault(("conversation", "max_turns"), f"found {spec.max_turns}, expected at least 1")
        if spec.stop == "target" and spec.limit is None:
            self.fault(
                ("conversation",), "found stop: target without max_turns, expected a limit such as max_turns: 10"
            )
        return spec

    def _is_expression(self, entry: str, place: tuple[str | int, ...]) -> bool:
        fault = expression_fault(entry)
        if fault is not None:
            self.fault_inside(place, entry, *fault)
        return fault is None

    def read_parts(self, entry: Any) -> Parts:
        """Read ``parts``: a JMESPath for each part."""
        if entry is None:
            return Parts()
        parts: Parts | None = self.check(Parts, entry, ("parts",))
        if parts is None:
            return Parts()
        for name, path in vars(parts).items():
            if path is not None:
                self._is_expression(path, ("parts", name))
        return parts


_PLACES: Final = {
    "judges": "at the top level of the suite, in place of 'judge'",
    **dict.fromkeys(("reduce", "min_judges"), "at the top level of the suite, beside 'judges'"),
    **dict.fromkeys(("mode", "prompt", "reply", "criteria", "rubric"), "in an evaluator: {judge: {mode: ...}}"),
}
"""The right place of settings that are often taken for those of a judge."""


_CASCADE: Final = frozenset(("first", "then", "when", "audit"))
"""Settings by which ``judge`` is a cascade."""


class JudgeReader(PartReader):
    """Reads ``judge``, which may be a cascade, or ``judges`` with ``reduce`` and ``min_judges``."""

    knows_metrics: bool

    def read_judge(self, entry: Any) -> JudgeSpec | PanelSpec:
        """Return the judge or panel; metrics of a faulty panel are not checked further."""
        if entry.judges is not None:
            panel = self._panel(entry, entry.judges)
            self.knows_metrics = self.knows_metrics and panel is not None
            return panel or JudgeSpec()
        if self.document.data.get("judges") is not None:
            self.knows_metrics = False
            return JudgeSpec()
        for name in ("reduce", "min_judges"):
            if getattr(entry, name) is not None:
                self.fault((name,), f"found {name!r} without 'judges', expected a panel of judges", key=True)
        if isinstance(entry.judge, Mapping) and _CASCADE.intersection(entry.judge):
            cascade = self._cascade(entry.judge)
            self.knows_metrics = self.knows_metrics and cascade is not None
            return cascade or JudgeSpec()
        return JudgeSpec() if entry.judge is None else self._spec(entry.judge, ("judge",)) or JudgeSpec()

    def _cascade(self, data: Mapping[str, Any]) -> PanelSpec | None:
        """Return ``judge`` with ``first`` and ``then``, two judges of which the second is asked only if need be."""
        known = len(self.faults)
        settings = {name: value for name, value in data.items() if name not in ("first", "then")}
        rule = self.check(CascadeRule, self._without_misplaced(settings, ("judge",)), ("judge",))
        specs = []
        for name in ("first", "then"):
            spec = self._spec(data[name], ("judge", name)) if name in data else None
            specs.append(spec or JudgeSpec())
            if name not in data:
                self.fault(("judge",), f"found no {name!r}, expected it beside the others: PROVIDER:NAME or a mapping")
            elif spec is not None and spec.model is None:
                self.fault(("judge", name), "found a judge without a model, expected PROVIDER:NAME")
        if len(self.faults) > known or rule is None:
            return None
        try:
            return PanelSpec(tuple(specs), cascade=rule)
        except FieldsError as error:
            for _, fault in error.faults:
                self.fault(("judge", "then"), fault)
            return None

    def _spec(self, entry: Any, path: tuple[str | int, ...]) -> JudgeSpec | None:
        """Return a judge: a model, or a mapping."""
        data = {"model": entry} if isinstance(entry, str) else entry
        if not isinstance(data, Mapping):
            several = "; several judges stand under 'judges'" if isinstance(data, list) and path == ("judge",) else ""
            self.fault(path, f"found {describe(data)}, expected PROVIDER:NAME or a mapping{several}")
            return None
        spec: JudgeSpec | None = self.check(JudgeSpec, self._without_misplaced(data, path), path)
        return spec

    def _without_misplaced(self, data: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        """Return the settings of a judge without those that stand elsewhere, after adding the faults."""
        misplaced = {name: _PLACES[name] for name in data if name in _PLACES}
        for name, place in misplaced.items():
            self.fault((*path, name), f"found {name!r} inside {path[0]!r}, expected it {place}", key=True)
        self.knows_metrics = self.knows_metrics and not misplaced
        return {name: value for name, value in data.items() if name not in misplaced}

    def without_judge(
        self, evaluator: type[Evaluator], options: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> dict[str, Any]:
        """Return the options of an evaluator without those that say who judges, after adding the faults."""
        if not evaluator.asks:
            return dict(options)
        own = {each.name for each in fields(evaluator)}
        named = {*(each.name for each in fields(JudgeSpec)), "judges", "reduce", "min_judges"} - own
        misplaced = [name for name in options if name in named]
        for name in misplaced:
            place = _PLACES.get(name, "under 'judge', at the top level of the suite")
            why = "the evaluators of a suite share its judge"
            self.fault((*path, name), f"found {name!r} inside an evaluator, expected it {place}: {why}", key=True)
        return {name: value for name, value in options.items() if name not in misplaced}

    def _panel(self, entry: Any, judges: list[Any]) -> PanelSpec | None:
        if entry.judge is not None:
            self.fault(("judges",), "found both 'judge' and 'judges', expected one of them", key=True)
        read = [self._spec(each, ("judges", number)) for number, each in enumerate(judges)]
        specs = [spec for spec in read if spec is not None]
        if len(specs) < len(read):
            return None
        try:
            return PanelSpec(tuple(specs), entry.reduce, entry.min_judges)
        except FieldsError as error:
            for name, fault in error.faults:
                self.fault((name,), fault)
            return None

    def check_reduction(
        self, judge: JudgeSpec | PanelSpec, repeats: Repeats, evaluators: Mapping[str, Evaluator]
    ) -> None:
        """Refuse a panel, or a reduction, that has no meaning for an evaluator, or that an audit cannot correct."""
        if isinstance(judge, JudgeSpec):
            return
        if judge.cascade is not None:
            if judge.cascade.audit and repeats.times > 1 and repeats.reduce != "mean":
                expected = "expected mean with a cascade of judges, whose audit corrects means; or set 'audit: 0'"
                self.fault(("repeats", "reduce"), f"found {repeats.reduce}, {expected}")
            return
        from pytest_llmeval.judges import JudgedEvaluator

        for label, evaluator in evaluators.items():
            fault = evaluator.panel_fault(judge.reduce) if isinstance(evaluator, JudgedEvaluator) else None
            if fault:
                self.fault(("reduce",) if judge.reduce is not None else ("judges",), f"evaluator {label!r}: {fault}")


def without_unasked(evaluators: Mapping[str, Evaluator]) -> dict[str, Evaluator]:
    """Return evaluators without the figures of several judges about evaluators that ask nothing."""
    counts = {label: each for label, each in evaluators.items() if isinstance(each, RecordedCounts)}
    if not counts:
        return dict(evaluators)
    from pytest_llmeval.evaluators import VerdictStatistics

    unasked = {
        label for label, each in counts.items() if isinstance(each, VerdictStatistics) and not evaluators[each.of].asks
    }
    return {label: each for label, each in evaluators.items() if label not in unasked}
