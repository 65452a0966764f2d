"""The source of story annotations in JSON v3."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from msgspec import structs

from pytest_llmeval.core import Case, Fault, SuiteError, shown_path, suggest
from pytest_llmeval.data import CaseId, Document, FilePattern, InputFile, Source, describe
from pytest_llmeval.tasks.narrative._document import (
    PARTS,
    Steps,
    format_faults,
    misnamed_keys,
    read_story,
    value_faults,
)
from pytest_llmeval.tasks.narrative.labels import warn_of_drift

_NAMED = {"characters": ("character", "name"), "narrative_events": ("event", "id")}


def annotation_problems(document: Document) -> list[Fault]:
    """The faults of a gold story annotation; one inside an event or character names it."""
    data = document.data
    if isinstance(data, Mapping) and (wrong := format_faults(data)):
        return [document.fault((key,), message) for key, message in wrong]
    if not isinstance(data, Mapping) or not any(part in data for part in PARTS):
        parts = " or ".join(map(repr, PARTS))
        return [document.fault((), f"found {describe(data)}, expected a JSON v3 document with {parts}")]
    misnamed = [
        structs.replace(document.fault(steps, f"{_entry(steps, data)}{message}"), spares_case=True)
        for steps, message in misnamed_keys(data)
    ]
    return misnamed + [
        document.fault(steps, f"{_entry(steps, data)}found {describe(value)}, expected {expected}")
        for steps, value, expected in value_faults(data)
    ]


def _entry(steps: Steps, data: Mapping[str, Any]) -> str:
    """The event or character that a fault of a story annotation is in, for the front of its message."""
    entry = data[steps[0]][steps[1]] if len(steps) > 1 and steps[0] in _NAMED else None
    if not isinstance(entry, Mapping):
        return ""
    kind, key = _NAMED[str(steps[0])]
    name = entry.get(key)
    return f"{kind} {name!r}: " if isinstance(name, str | int) else ""


_SUFFIX = ".json"


@dataclass(frozen=True)
class JsonV3Source(Source):
    """Files of ground truth, and files of predictions that belong to them by name.

    A file's name, without ``.json`` and without the longest of `suffixes` that it ends with, is the id of the case:
    ``swan_v3.json`` and ``swan_v3_pred.json`` are both ``swan``. A file that `gold` and `predictions` both match is a
    prediction.

    Attributes:
        gold: A file, a folder (its ``*.json``), a glob pattern, or a list of them; relative to the suite file's folder.
        predictions: The same for the predictions; ``None`` where a target answers.
        suffixes: Ends of file names that do not belong to the name of the story.
        labels: Name of a label to the dotted path of its value in the ground truth, such as ``metadata.culture``.
    """

    format: ClassVar[str] = "json_v3"

    gold: str | tuple[str, ...]
    predictions: str | tuple[str, ...] | None = None
    suffixes: tuple[str, ...] = ("_v3", "_pred", "_v3_pred")
    labels: Mapping[str, str] = field(default_factory=dict)

    def load(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the cases, in the order of `gold`, and of the file names if one entry matches many files.

        Faults of ground truth affect only their case. A prediction that is not JSON is kept as text. Spans of the
        ground truth whose text is not what the story has there are a warning.
        """
        predicted = list(_files(folder, "predictions", self.predictions, faults))
        answers = _by_name(predicted, self.suffixes, 0, faults)
        predictions = {path.resolve() for path in predicted}
        files = [path for path in _files(folder, "gold", self.gold, faults) if path.resolve() not in predictions]
        gold = _by_name(files, self.suffixes, 1, faults)
        faults.extend(_without_gold(path, name, gold) for name, path in answers.items() if name not in gold)
        cases = [_case(name, path, self.labels, faults) for name, path in gold.items()]
        return [_answered(case, answers.get(case.id), faults) for case in cases if case is not None]

    def faulty(self, faults: Iterable[Fault]) -> int:
        """The number of files of ground truth with faults; theirs alone have a line."""
        return len({fault.file for fault in faults if fault.line and not fault.spares_case})

    def file_of(self, case: Case) -> str:
        """Return the name of the story, since cases have no rows."""
        return case.id


def _files(folder: Path, option: str, entries: str | tuple[str, ...] | None, faults: list[Fault]) -> Iterator[Path]:
    """Yield the annotation files that an option of the source names; an entry that matches none is a fault."""
    if entries is None:
        return
    for entry in (entries,) if isinstance(entries, str) else entries:
        path = folder / entry
        if path.is_file():
            matches = [path]
        elif path.is_dir():
            matches = sorted(file for file in path.glob(f"*{_SUFFIX}") if not file.name.startswith("."))
        else:
            try:
                matches = FilePattern(folder, entry).matches()
            except ValueError as error:
                faults.append(Fault(shown_path(path), 0, 0, option, str(error)))
                continue
        if not matches:
            message = f"no file matches {entry!r}"
            faults.append(Fault(shown_path(path), 0, 0, option, message))
        yield from matches


def _by_name(files: Iterable[Path], suffixes: tuple[str, ...], line: int, faults: list[Fault]) -> dict[str, Path]:
    """The annotation files by their story's name; a second file of a name is a fault in its `line`."""
    named: dict[str, Path] = {}
    for path in files:
        stem = path.name.removesuffix(_SUFFIX)
        end = max((suffix for suffix in suffixes if stem.endswith(suffix) and stem != suffix), key=len, default="")
        name = str(CaseId.read(stem.removesuffix(end)))
        first = named.setdefault(name, path)
        if first.resolve() != path.resolve():
            message = f"found a second file for the story {name!r}, expected one (first is {shown_path(first)})"
            faults.append(Fault(shown_path(path), line, line, "", message))
    return named


def _without_gold(path: Path, name: str, gold: Iterable[str]) -> Fault:
    """The fault of a prediction file for a story that has no ground truth."""
    message = f"found a prediction for {name!r}, expected ground truth with this name{suggest(name, gold)}"
    return Fault(shown_path(path), 0, 0, "", message)


def _case(name: str, path: Path, labels: Mapping[str, str], faults: list[Fault]) -> Case | None:
    """The case of a gold story annotation; ``None`` if its file has faults."""
    display_path = shown_path(path)
    wrong = CaseId(name).fault()
    own_faults = [Fault(display_path, 1, 1, "", wrong)] if wrong is not None else []
    data: Any = None
    more: dict[str, str] = {}
    try:
        document = InputFile(path, display_path).read_json()
        data = document.data
        own_faults += annotation_problems(document)
        more = _more_labels(document, labels, own_faults)
    except SuiteError as error:
        own_faults += error.faults
    # A fault of the whole file gets a line all the same: it stops a case, and those are counted by it.
    faults.extend(structs.replace(fault, line=max(1, fault.line), column=max(1, fault.column)) for fault in own_faults)
    if not all(fault.spares_case for fault in own_faults):
        return None
    story = read_story(data)
    warn_of_drift(display_path, story, story.text)
    return Case(name, _story(data), data, labels=_labels(data) | more)


def _more_labels(document: Document, labels: Mapping[str, str], faults: list[Fault]) -> dict[str, str]:
    """The case labels that the source's option takes from a story annotation; values other than text are faults."""
    texts = {}
    for label, path in labels.items():
        steps = tuple(path.split("."))
        value: Any = document.data
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, str | int | float):
            if text := str(value).strip():
                texts[label] = text
        elif value:
            faults.append(document.fault(steps, f"found {describe(value)}, expected text for the label {label!r}"))
    return texts


def _story(data: Mapping[str, Any]) -> str | None:
    """The text of a story in its annotation, if any."""
    text = (data.get("source_info") or {}).get("text_content")
    return text if isinstance(text, str) and text.strip() else None


def _labels(data: Mapping[str, Any]) -> dict[str, str]:
    """The case label ``language`` from a story annotation's metadata, if any."""
    languages = ((data.get(part) or {}).get("language") for part in ("source_info", "metadata"))
    names = [language.strip() for language in languages if isinstance(language, str) and language.strip()]
    return {"language": names[0]} if names else {}


def _answered(case: Case, path: Path | None, faults: list[Fault]) -> Case:
    """The story case with its predicted annotation; text that is not JSON is kept for evaluators to report."""
    if path is None:
        return case
    file = InputFile(path, shown_path(path))
    try:
        data = file.read_bytes()
    except SuiteError as error:
        faults.extend(error.faults)
        return case
    try:
        return case.answered(file.read_json().data)
    except SuiteError:
        return case.answered(data.decode("utf-8-sig", errors="replace"))
