"""The cases of a suite file and of its source."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import structs

from pytest_llmeval.core import MISSING, AnyError, Case, CaseLabels, Fault, MediaForm, excerpt, unknown_name
from pytest_llmeval.data import CaseId, DeclaredType, Source, display_path, json_text
from pytest_llmeval.judges import PanelSpec
from pytest_llmeval.suites._limits import read_limits
from pytest_llmeval.suites._reading import SuiteReading
from pytest_llmeval.suites._suite import LoadedSuite

if TYPE_CHECKING:
    from pytest_llmeval.suites._settings import SimulatedUser


@dataclass(frozen=True)
class MessageEntry:
    """A message of a scripted conversation in a case of a suite file.

    Attributes:
        role: Who says it.
        content: A text, an image, a sound or a document (``{file: PATH}``), or a list of these.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    role: Literal["system", "user", "assistant"]
    content: str | list[Any] | dict[str, Any]


@dataclass(frozen=True)
class CaseEntry:
    """A case as a suite file writes it."""

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    id: str | int | None = None
    input: Any = None
    messages: list[str | MessageEntry] | None = None
    expected: Any = None
    expected_file: str | None = None
    prediction: Any = None
    prediction_file: str | None = None
    labels: dict[str, str | int | float | bool] = field(default_factory=dict)
    modes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    thresholds: dict[str, Any] = field(default_factory=dict)
    checks: list[Any] = field(default_factory=list)
    always: bool = False


def with_cases(
    reading: SuiteReading,
    suite: LoadedSuite,
    source: Source | None,
    rows: Sequence[Case],
    row_faults: Sequence[Fault],
) -> LoadedSuite:
    """A loaded suite with the cases of its file and of its source, and all faults.

    Args:
        reading: Of the file.
        suite: Without cases.
        source: Of cases, if there is one.
        rows: Of the source.
        row_faults: Of the source.
    """
    listed: list[tuple[Case, int | None]] = []
    files: dict[str, str] = {}
    faulty = 0
    if reading.entry.fetch:
        from pytest_llmeval.suites._media_files import check_hosts

        check_hosts(reading)
    for number, entry in enumerate(reading.entry.cases):
        case = _case(reading, entry, number)
        if case is None:
            faulty += 1
        else:
            listed.append((case, number))
    if source is not None:
        loaded = [case for row in rows if (case := _from_row(reading, row, source)) is not None]
        listed += [(row, None) for row in loaded]
        names = {file: _display_path(reading, file) for file in {source.file_of(row) for row in loaded if row.line}}
        files = {row.id: names[source.file_of(row)] for row in loaded if row.line}
        faulty += source.faulty(row_faults) + len(rows) - len(loaded)
    cases: dict[str, Case] = {}
    for case, place in listed:
        try:
            talking = _make_conversation(case, suite.conversation.user)
            of_names = _name_fault(talking, cases)
            fault = of_names or _value_fault(talking, suite)
        except ValueError as error:
            of_names, fault = None, f"case {case.id!r}: {error}"
        if fault is None:
            cases[talking.id] = talking
        else:
            at = _place(reading, source, case, place)
            reading.faults.append(structs.replace(at, message=fault, case="" if of_names else case.id))
            faulty += 1
    if not listed and not reading.faults:
        reading.fault((), "the suite has no case: add 'cases', or a 'source' with at least one")
    _check_labels(reading, suite, [case for case, _ in listed])
    faults = sorted(reading.faults, key=lambda fault: (fault.file != reading.document.file, fault))
    evaluators = suite.evaluators
    if suite.checked:
        checks = reading.checks_evaluator(cases.values())
        evaluators = {**evaluators, checks.name: checks}
    if isinstance(suite.judge, PanelSpec):
        from pytest_llmeval.suites._judge_settings import without_unasked

        evaluators = without_unasked(evaluators)
    usable = tuple(cases.values())
    return structs.replace(suite, evaluators=evaluators, cases=usable, faults=tuple(faults), faulty=faulty, files=files)


def _place(reading: SuiteReading, source: Source | None, case: Case, number: int | None) -> Fault:
    """A fault without words at the place of a suite's case.

    Args:
        reading: Of the file.
        source: Of cases, if there is one.
        case: The case.
        number: Its position in the suite file; ``None`` if it is of the source.
    """
    if number is None and source is not None:
        return Fault(source.file_of(case), case.line, min(case.line, 1), "", "")
    return reading.document.fault(("cases", number or 0), "")


def _display_path(reading: SuiteReading, file: str) -> str:
    """The path of a suite's data file in messages, which name the suite file alike."""
    return display_path(Path(os.path.normpath(reading.path.parent / file)), reading.root)


def _check_labels(reading: SuiteReading, suite: LoadedSuite, cases: Sequence[Case]) -> None:
    """Refuse grouping or clustering of a suite by a label that no case has: a gate would judge one group."""
    entry = reading.entry
    places: dict[str | None, tuple[str | int, ...]] = {entry.cluster_by: ("cluster_by",)}
    places |= {name: ("group_by", number) for number, name in enumerate(entry.group_by)}
    stratum = entry.sample.get("by") if isinstance(entry.sample, Mapping) else None
    strata = [stratum] if isinstance(stratum, str) else []
    places |= dict.fromkeys(strata, ("sample", "by"))
    clusters = [gate.cluster_by for gate in suite.regressions if gate.cluster_by]
    clusters += [suite.cluster_by] if suite.cluster_by else []
    names = dict.fromkeys([*suite.group_by, *clusters, *strata]) if cases else {}
    labels = sorted({label for case in cases for label in case.labels}) if names else []
    for name in names:
        if name not in labels:
            nowhere = f"unknown label {name!r}: no case of this suite has labels"
            reading.fault(places.get(name, ("gates",)), unknown_name("label", name, labels) if labels else nowhere)


def _from_row(reading: SuiteReading, row: Case, source: Source) -> Case | None:
    """Check media, thresholds, checks and messages of a source's row; its faults get the row's line."""
    of_file = reading.document.data.get("source") is not None  # rows that Python passes have objects
    if of_file and _may_hold_media(row):
        from pytest_llmeval.suites._media_files import with_row_media

        with_media = with_row_media(reading, row, source.file_of(row))
        if with_media is None:
            return None
        row = with_media
    if not row.thresholds and not row.checks and not row.conversation:
        return row
    before = len(reading.faults)
    limits = read_limits(reading, row.thresholds, ("thresholds",))
    checks = reading.read_checks(row.checks, ("checks",))
    script = _read_script(reading, row.input) if row.conversation else row.input
    reading.faults[before:] = [
        structs.replace(fault, file=source.file_of(row), line=row.line, column=1) for fault in reading.faults[before:]
    ]
    return replace(row, input=script, thresholds=limits, checks=checks) if len(reading.faults) == before else None


def _case(reading: SuiteReading, data: Any, number: int) -> Case | None:
    """Read a case under ``cases`` of a suite file; ``None`` after adding its faults."""
    before = len(reading.faults)
    path = ("cases", number)
    if isinstance(data, Mapping) and isinstance(data.get("id"), float) and (name := CaseId.read(data["id"])):
        data = {**data, "id": name}
    entry = reading.check(CaseEntry, data, path)
    if entry is None:
        return None
    for name in ("expected", "prediction"):
        if name in data and f"{name}_file" in data:
            reading.fault(
                (*path, f"{name}_file"),
                f"found both {name!r} and '{name}_file', expected one of them",
                key=True,
            )
    if entry.messages is not None and (fault := _script_fault(entry.messages)):
        reading.fault((*path, "messages"), fault)
    if entry.messages is not None and "input" in data:
        reading.fault((*path, "messages"), "found both 'input' and 'messages', expected one of them", key=True)
    for place, mode in enumerate(entry.modes):
        if fault := CaseLabels.mode_fault(mode):
            reading.fault((*path, CaseLabels.MODES, place), fault)
    modes = CaseLabels.of_modes(entry.modes)
    if modes and CaseLabels.MODES in entry.labels:
        reading.fault((*path, CaseLabels.MODES), "found the label 'modes' as well, expected one of them", key=True)
    prediction = data.get("prediction", MISSING)
    if entry.prediction_file is not None:
        prediction = reading.read_file(entry.prediction_file, (*path, "prediction_file"))
    expected = entry.expected
    if entry.expected_file is not None:
        expected = reading.read_file(entry.expected_file, (*path, "expected_file"))
    case = Case(
        id=CaseId.read(entry.id) or "" if entry.id is not None else str(number + 1),
        input=entry.input if entry.messages is None else _script_of(entry.messages),
        conversation=entry.messages is not None,
        expected=expected,
        prediction=prediction,
        labels={key: json_text(value) for key, value in entry.labels.items()} | modes,
        tags=entry.tags,
        thresholds=read_limits(reading, entry.thresholds, (*path, "thresholds")),
        line=reading.document.locate(path)[0],
        checks=reading.read_checks(entry.checks, (*path, "checks")),
        always=entry.always,
    )
    if _may_hold_media(case):
        from pytest_llmeval.suites._media_files import MediaFiles

        case = MediaFiles(reading, reading.path.parent).read_case(case, path)
    return case if len(reading.faults) == before else None


def _names_file(content: Any) -> bool:
    """Whether the content of a scripted message in a suite's case names a media file."""
    from pytest_llmeval.suites._media_files import names_file

    return names_file(content)


def _may_hold_media(case: Case) -> bool:
    """Whether a part of a suite's case is data, in which ``{file: PATH}`` can name a medium."""
    return any(isinstance(part, Mapping | list) for part in (case.input, case.expected, case.prediction))


def _name_fault(case: Case, earlier: Mapping[str, Case]) -> str | None:
    """The fault of a case's id or tags, such as an id that an earlier case has."""
    fault = CaseId(case.id).fault() or _tag_fault(case.tags)
    if fault is not None:
        return fault
    if case.id.startswith(("gate[", "snapshot[")):
        return f"found the id {case.id!r}, expected one that does not begin with 'gate[' or 'snapshot['"
    if case.id in earlier:
        return f"found the id {case.id!r} twice, expected it once (first in line {earlier[case.id].line})"
    return None


def _value_fault(case: Case, suite: LoadedSuite) -> str | None:
    """The fault of a case's values that an evaluator of the suite cannot use."""
    for label, evaluator in suite.evaluators.items():
        try:
            expecting = suite.readings[label].expecting(case)
            faults = (fault for view in expecting for fault in evaluator.check(view))
            wrong = "; ".join(islice(faults, _MOST_FAULTS)) or None
        except Exception as error:  # noqa: BLE001 (an evaluator's bug is a fault of the files that use it)
            wrong = f"its check failed: {AnyError(error).full_text}"
        if wrong is not None:
            return f"case {case.id!r}, evaluator {evaluator.name!r}: {wrong}"
    return None


def _read_script(reading: SuiteReading, messages: Any) -> list[dict[str, Any]]:
    """Read the scripted conversation under ``messages`` of a source's row."""
    entry = reading.check(CaseEntry, {"messages": messages}, ())
    if entry is None:
        return []
    if fault := _script_fault(entry.messages):
        reading.fault(("messages",), fault)
    return _script_of(entry.messages)


def _script_of(messages: Sequence[str | MessageEntry]) -> list[dict[str, Any]]:
    """The messages of a scripted conversation in a case of a suite; a bare text is a message of the user."""
    return [
        {"role": "user", "content": message} if isinstance(message, str) else dict(vars(message))
        for message in messages
    ]


def _script_fault(messages: Sequence[str | MessageEntry]) -> str | None:
    """The fault of a scripted conversation as a whole, such as an empty list."""
    if not messages:
        return "found an empty list, expected at least one message"
    for number, message in enumerate(messages, 1):
        content = message if isinstance(message, str) else message.content
        for part in content if isinstance(content, list) else [content]:
            if not isinstance(part, str) and not MediaForm.matches(part) and not _names_file(part):
                what = excerpt(json.dumps(part, default=str), 40)
                return f"found {what} in message {number}, expected a text or {{file: PATH}}"
    last = messages[-1]
    if isinstance(last, str) or last.role == "user":
        return None
    return f"found a last message of the {last.role}, expected one of the user, which the target answers"


def _make_conversation(case: Case, user: "SimulatedUser | None") -> Case:
    """A case as a conversation with a simulated user, whose wishes become the input.

    Raises:
        ValueError: Nobody says what it wants.
    """
    if user is None:
        return case
    wants = user.wants_of(case.input)
    goal = case.input if isinstance(case.input, list) else {name: want for name, want in wants.items() if want}
    return replace(case, input=goal, conversation=True, way=user.way)


_MOST_FAULTS = 20
"""Of one case in one error."""


_MARKS_WITH_ARGUMENTS = ("parametrize", "usefixtures", "filterwarnings", "llmeval")


def _tag_fault(tags: Iterable[str]) -> str | None:
    """The fault of a case's tags, which become pytest marks."""
    for tag in tags:
        if not tag.replace("-", "_").isidentifier() or tag.startswith("_"):
            return f"found the tag {tag!r}, expected letters, digits, '-' and '_'"
        if tag in _MARKS_WITH_ARGUMENTS:
            return f"found the tag {tag!r}, which pytest reserves, expected another name"
    return None
