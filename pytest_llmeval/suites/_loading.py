"""Loading of a suite file and the files it names, collecting all faults."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import structs

from pytest_llmeval.core import (
    MISSING,
    MODE_MARK,
    MODES,
    Case,
    Fault,
    LlmevalError,
    SuiteError,
    expected_name,
    format_error,
    origin,
    unknown_name,
)
from pytest_llmeval.data import (
    SOURCES,
    Document,
    Source,
    case_id,
    check,
    describe,
    display_path,
    id_fault,
    json_text,
    read_document,
    render_path,
    searching_within,
    top_level_keys,
)
from pytest_llmeval.judges import PanelSpec
from pytest_llmeval.suites._keys import KEYS, SuiteEntry
from pytest_llmeval.suites._model_settings import (
    ConversationSpec,
    SimulatedUser,
    script_fault,
    script_of,
    wants_of,
    with_user_metrics,
    without_unasked,
)
from pytest_llmeval.suites._registry import Registry
from pytest_llmeval.suites._run_settings import read_sample
from pytest_llmeval.suites._settings import CaseEntry, SettingsReader, check_name_faults
from pytest_llmeval.suites._suite import Suite, sampled
from pytest_llmeval.suites._systems import Loaded, System, SystemReader, without_gold, without_predictions

T = TypeVar("T")

_OTHER_KINDS: Final[Sequence[tuple[AbstractSet[str], str, str]]] = (
    ({"schema_version", "suites"}, "a JSON report", "llmeval compare, comment and gate read it"),
    ({"schema", "checksum", "metrics"}, "approved scores", "llmeval history shows them"),
    (
        {"prompts", "providers"},
        "a configuration of promptfoo",
        "llmeval import promptfoo {file} --to FOLDER makes suites of it",
    ),
)
"""Keys that all files of a kind have, what it is, and what reads it."""


_COMMON_KEYS: Final = frozenset({"description"})
"""Keys of ours that files of other tools have as well."""


class ForeignFileError(SuiteError):
    """A file with the name of a suite belongs to another tool."""


def is_foreign(path: Path) -> bool:
    """Return whether a file with the name of a suite is a mapping of another tool: it has no key of ours."""
    return _are_foreign(top_level_keys(path))


def _are_foreign(keys: AbstractSet[str]) -> bool:
    ours = (*(required for required, _, _ in _OTHER_KINDS), *({key} for key in KEYS if key not in _COMMON_KEYS))
    return bool(keys) and not any(required <= keys for required in ours)


def load_suite(
    path: Path,
    registry: Registry,
    *,
    root: Path,
    display_path: str | None = None,
    document: Document | None = None,
    source: Source | None = None,
) -> Suite:
    """Read a suite file and the files that it names.

    Args:
        path: The suite file.
        registry: The evaluators and sources that it may name.
        root: Files of single cases may not lie outside this folder.
        display_path: How to call the file in messages; default: its path.
        document: What the file would say, of a suite that Python declares.
        source: Gives the cases, in place of a source that the document names.

    Returns:
        The suite. Faults of single cases are in `Suite.faults`.

    Raises:
        ForeignFileError: The file is a mapping of another tool.
        SuiteError: The file cannot be read, or something that concerns every case is wrong; all faults are listed.
    """
    if document is None:
        try:
            document = read_document(path, display_path or str(path))
        except SuiteError as error:
            if is_foreign(path):
                raise ForeignFileError(error.faults) from None
            raise
    try:
        return _Loader(path, registry, document, root).load(source)
    except SuiteError as error:
        if isinstance(document.data, Mapping) and _are_foreign(document.data.keys()):
            raise ForeignFileError(error.faults) from None
        if document.text:
            error.texts[document.file] = document.text
        raise


class SuiteMemo:
    """The suites of a process by file; a file that cannot be loaded raises the same error each time."""

    def __init__(self) -> None:
        self._suites: dict[Path, Suite | LlmevalError] = {}

    def get(self, path: Path, load: Callable[[], Suite]) -> Suite:
        """Return the suite of a file, which is loaded the first time.

        Raises:
            LlmevalError: It could not be loaded.
        """
        if path not in self._suites:
            try:
                self._suites[path] = load()
            except LlmevalError as error:
                self._suites[path] = error
        suite = self._suites[path]
        if isinstance(suite, LlmevalError):
            raise suite
        return suite


class _Loader(SettingsReader):
    """One reading of one suite file, cases included."""

    def __init__(self, path: Path, registry: Registry, document: Document, root: Path) -> None:
        super().__init__(path, registry, document, root)
        self.notes: list[Fault] = []

    def load(self, declared: Source | None) -> Suite:
        entry = self._top_level()
        source = declared or self._source(entry.source)
        bare = source if source is None or entry.systems is None else without_predictions(source)
        systems = SystemReader(self, self.path.parent, bare, entry.source, self.read_file)
        specs = systems.read(entry.systems)
        self.systems = [spec.name for spec in specs]
        self._check_systems(entry, self.systems)
        rows, row_faults = self._rows(bare)
        recorded = self._recorded(
            bare, {each.name: each.source for each in specs if each.source is not None}, row_faults
        )
        rows += without_gold(rows, recorded.values())
        self.shared_checks = self.read_checks(entry.checks, ("checks",))
        own = any(isinstance(each, Mapping) and each.get("checks") for each in entry.cases)
        checked = bool(entry.checks) or own or any(case.checks for case in rows)
        conversation = self._with_instructions(self.read_conversation(entry.conversation))
        listed = with_user_metrics(
            entry.evaluators, conversation.user, judged=entry.judge is not None or entry.judges is not None
        )
        evaluators = self.read_evaluators(listed, self.checks_evaluator() if checked else None)
        judge = self.read_judge(entry)
        if isinstance(judge, PanelSpec):
            evaluators = self.with_agreement(judge, evaluators)
        repeats = self.read_repeats(entry.repeats)
        if repeats.times > 1:
            self.add_reliability(repeats.times)
        gates = self.read_gates(entry.gates, entry.cluster_by)
        carried: dict[str, Any] = {
            "cases": (),
            "evaluators": evaluators,
            "judge": judge,
            "repeats": repeats,
            "conversation": conversation,
            "systems": {},
            "sample": None,
            "gates": gates,
            "group_by": tuple(dict.fromkeys([*entry.group_by, *(gate.by for gate in gates if gate.by)])),
        }
        suite = Suite(
            name=entry.suite or self.path.stem.removesuffix(".eval").removesuffix(".llmeval"),
            path=self.path,
            on=self.on,
            turns=self.turns,
            objects=self.document.objects,
            checked=checked,
            notes=tuple(dict.fromkeys(self.notes)),
            **self._carried(entry, carried),
        )
        sample = read_sample(self, entry.sample)
        broken = bool(self.faults)
        if suite.confidence is None and any(gate.statistic in ("low", "high") for gate in suite.score_gates):
            self.fault(("confidence",), "found null, expected a number such as 0.95: a gate judges an interval")
            broken = True
        self.faults += row_faults
        suite = self._with_cases(suite, entry, bare, rows, row_faults)
        if not self.faults:
            for place, fault in check_name_faults(entry, gates, self.checks_evaluator(suite.cases)) if checked else ():
                self.fault(place, fault, key="thresholds" in place)
            self.check_reduction(suite.judge, suite.repeats, suite.evaluators)
            broken = bool(self.faults)
            suite = structs.replace(suite, faults=tuple(self.faults))
        if broken or not suite.cases:
            raise SuiteError(suite.faults)
        before = len(self.faults)
        if specs:
            by_name = {
                spec.name: systems.system(spec, suite.cases, recorded.get(spec.name), entry.only) for spec in specs
            }
            suite = structs.replace(suite, systems=by_name)
        else:
            chosen = System(suite.cases).only(entry.only)
            suite = structs.replace(suite, cases=chosen.cases, left_out=chosen.left_out)
            if not suite.cases:
                self.fault(("only",), "found no case with a prediction, expected at least one")
        if len(self.faults) > before:
            raise SuiteError(self.faults)
        return suite if sample is None else sampled(suite, sample)

    def _carried(self, entry: SuiteEntry, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the suite has of its keys, of which those that others depend on are known."""
        values = dict(known)
        for name, key in KEYS.items():
            if key.carried and name not in values:
                value = getattr(entry, name)
                values[name] = value if key.read is None else key.read(self, value)
        return values

    def _with_instructions(self, spec: ConversationSpec) -> ConversationSpec:
        """Return the settings of conversations with the text of the user's instructions in place of their file."""
        user = spec.user
        if user is None or user.instructions is None:
            return spec
        place = ("conversation", "user", "instructions")
        text = self.read_file(user.instructions, place)
        if text is not None and not (isinstance(text, str) and text.strip()):
            self.fault(place, f"found {user.instructions!r} without a text, expected instructions")
        return replace(spec, user=replace(user, instructions=text if isinstance(text, str) else None))

    def _recorded(
        self, bare: Source | None, sources: Mapping[str, Source], row_faults: Sequence[Fault]
    ) -> dict[str, Loaded]:
        """Return, by system, the rows with its predictions, and the faults that are not of the rows."""
        if bare is None or not sources:
            return {}
        loaded, failures = self._loaded(bare, lambda: bare.load_systems(self.path.parent, list(sources.values())))
        known = frozenset(row_faults)
        results = loaded or [([], failures)] * len(sources)
        return {
            name: Loaded(rows, [fault for fault in self._without_notes(faults) if fault not in known])
            for name, (rows, faults) in zip(sources, results, strict=True)
        }

    def _check_systems(self, entry: SuiteEntry, names: Sequence[str]) -> None:
        """Refuse what contradicts systems, or makes no sense without them."""
        if entry.systems is None:
            return
        if entry.target is not None:
            self.fault(("target",), "found a target beside systems, expected it under systems, with a name", key=True)
        if isinstance(entry.source, Mapping) and entry.source.get("predictions") is not None:
            message = "found predictions beside systems, expected them under systems, with a name"
            self.fault(("source", "predictions"), message, key=True)
        for number, gate in enumerate(entry.gates if names else ()):
            for key in ("system", "against"):
                if isinstance(gate, Mapping) and isinstance(name := gate.get(key), str) and name not in names:
                    self.fault(("gates", number, key), unknown_name("system", name, names))
        if names and entry.reference is not None and entry.reference not in names:
            self.fault(("reference",), unknown_name("system", entry.reference, names))

    def _top_level(self) -> SuiteEntry:
        """Check the top level, and drop what is wrong there so that faults further down are also reported."""
        data = self.document.data
        if not isinstance(data, Mapping):
            self.fault((), f"found {describe(data)}, expected a mapping with 'evaluators' and 'cases' or 'source'")
            raise SuiteError(self.faults)
        for keys, kind, use in _OTHER_KINDS:
            if keys <= data.keys():
                self.fault((), f"found {kind}, expected a suite file: {use.format(file=self.document.file)}")
                raise SuiteError(self.faults)
        data = {key: value for key, value in data.items() if key != "$schema"}  # how JSON files name theirs to editors
        entry = self.check(SuiteEntry, data, ())
        if entry is None:
            wrong = [fault.path for fault in self.faults]
            valid = {key: value for key, value in data.items() if not any(_leads_through(key, path) for path in wrong)}
            entry, _ = check(SuiteEntry, {"evaluators": [], **valid}, self.document, ())
        return entry

    def _with_cases(
        self,
        suite: Suite,
        entry: SuiteEntry,
        source: Source | None,
        rows: Sequence[Case],
        row_faults: Sequence[Fault],
    ) -> Suite:
        places: list[tuple[Case, Fault]] = []
        files: dict[str, str] = {}
        faulty = 0
        for number, each in enumerate(entry.cases):
            case = self._case(each, number)
            if case is None:
                faulty += 1
            else:
                places.append((case, self.document.fault(("cases", number), "")))
        if source is not None:
            loaded = [case for row in rows if (case := self._from_row(row, source)) is not None]
            places += [(each, Fault(source.file_of(each), each.line, min(each.line, 1), "", "")) for each in loaded]
            names = {file: self._display_path(file) for file in {source.file_of(each) for each in loaded if each.line}}
            files = {each.id: names[source.file_of(each)] for each in loaded if each.line}
            faulty += source.faulty(row_faults) + len(rows) - len(loaded)
        cases: dict[str, Case] = {}
        for case, place in places:
            try:
                talking = _talking(case, suite.conversation.user)
                fault = self._case_fault(talking, cases, suite)
            except ValueError as error:
                fault = f"case {case.id!r}: {error}"
            if fault is None:
                cases[talking.id] = talking
            else:
                self.faults.append(structs.replace(place, message=fault))
                faulty += 1
        if not places and not self.faults:
            self.fault((), "found no case, expected 'cases' or a 'source' with at least one case")
        self._check_labels(entry, suite, [case for case, _ in places])
        faults = sorted(self.faults, key=lambda each: (each.file != self.document.file, each))
        evaluators = suite.evaluators
        if suite.checked:
            checks = self.checks_evaluator(cases.values())
            evaluators = {**evaluators, checks.name: checks}
        if isinstance(suite.judge, PanelSpec):
            evaluators = without_unasked(evaluators)
        listed = tuple(cases.values())
        return structs.replace(
            suite, evaluators=evaluators, cases=listed, faults=tuple(faults), faulty=faulty, files=files
        )

    def _display_path(self, file: str) -> str:
        """Return how messages name a data file, as they name the suite file."""
        return display_path(Path(os.path.normpath(self.path.parent / file)), self.root)

    def _check_labels(self, entry: SuiteEntry, suite: Suite, cases: Sequence[Case]) -> None:
        """Refuse to group or cluster by a label that no case has: a gate on it would judge one group of everything."""
        labels = sorted({label for case in cases for label in case.labels})
        places: dict[str | None, tuple[str | int, ...]] = {entry.cluster_by: ("cluster_by",)}
        places |= {name: ("group_by", number) for number, name in enumerate(entry.group_by)}
        stratum = entry.sample.get("by") if isinstance(entry.sample, Mapping) else None
        strata = [stratum] if isinstance(stratum, str) else []
        places |= dict.fromkeys(strata, ("sample", "by"))
        clusters = [gate.cluster_by for gate in suite.regressions if gate.cluster_by]
        clusters += [suite.cluster_by] if suite.cluster_by else []
        for name in dict.fromkeys([*suite.group_by, *clusters, *strata]) if cases else ():
            if name not in labels:
                why = expected_name(name, labels) if labels else ": no case of this suite has labels"
                self.fault(places.get(name, ("gates",)), f"unknown label {name!r}{why}")

    def _rows(self, source: Source | None) -> tuple[list[Case], list[Fault]]:
        """Return the rows of a source, and their faults."""
        faults: list[Fault] = []
        if source is None:
            return [], faults
        rows, failures = self._loaded(source, lambda: source.load(self.path.parent, faults))
        return (rows, self._without_notes(faults)) if rows is not None else ([], failures)

    def _without_notes(self, faults: Sequence[Fault]) -> list[Fault]:
        """Return the faults of a source; its notes go to those of the suite."""
        self.notes += [fault for fault in faults if fault.is_note]
        return [fault for fault in faults if not fault.is_note]

    def _loaded(self, source: Source, load: Callable[[], T]) -> tuple[T | None, list[Fault]]:
        """Return what a source gives; where it fails, nothing and the fault."""
        try:
            with searching_within(self.root):
                return load(), []
        except Exception as error:  # noqa: BLE001 (a source's bug is a fault of the files that use it)
            message = f"format {source.format!r} failed: {format_error(error)}{origin(error)}"
            return None, [self.document.fault(("source",), message)]

    def _from_row(self, row: Case, source: Source) -> Case | None:
        """Check thresholds, checks and messages of a source's row; faults get the row's line."""
        if not row.thresholds and not row.checks and not row.conversation:
            return row
        before = len(self.faults)
        limits = self.read_limits(row.thresholds, ("thresholds",))
        checks = self.read_checks(row.checks, ("checks",))
        script = self.read_script(row.input) if row.conversation else row.input
        self.faults[before:] = [
            structs.replace(fault, file=source.file_of(row), line=row.line, column=1) for fault in self.faults[before:]
        ]
        return replace(row, input=script, thresholds=limits, checks=checks) if len(self.faults) == before else None

    def _source(self, entry: Any) -> Source | None:
        if entry is None:
            return None
        if not isinstance(entry, Mapping):
            self.fault(("source",), f"found {describe(entry)}, expected a mapping with 'format' and 'path'")
            return None
        options = dict(entry)
        name = options.pop("format", None)
        # Listing all formats imports every task: only for one that is not general.
        if not isinstance(name, str) or (name not in SOURCES and name not in self.registry.sources):
            place = ("source", "format") if name is not None else ("source",)
            description = describe(name) if name is not None else "no 'format'"
            self.fault(
                place,
                f"found {description}{expected_name(name if isinstance(name, str) else '', self.registry.sources)}",
            )
            return None
        try:
            source: Source | None = self.check(self.registry.source(name), options, ("source",))
        except LlmevalError as error:
            self.fault(("source", "format"), str(error))
            return None
        return source

    def _case(self, data: Any, number: int) -> Case | None:
        before = len(self.faults)
        path = ("cases", number)
        entry = self.check(CaseEntry, data, path)
        if entry is None:
            return None
        for name in ("expected", "prediction"):
            if name in data and f"{name}_file" in data:
                self.fault(
                    (*path, f"{name}_file"),
                    f"found both {name!r} and '{name}_file', expected one of them",
                    key=True,
                )
        if entry.messages is not None and (fault := script_fault(entry.messages)):
            self.fault((*path, "messages"), fault)
        if entry.messages is not None and "input" in data:
            self.fault((*path, "messages"), "found both 'input' and 'messages', expected one of them", key=True)
        for place, mode in enumerate(entry.modes):
            if not mode.strip() or MODE_MARK in mode:
                self.fault((*path, MODES, place), f"found {mode!r}, expected a failure mode, without {MODE_MARK!r}")
        modes = {MODES: MODE_MARK.join(entry.modes)} if entry.modes else {}
        if modes and MODES in entry.labels:
            self.fault((*path, MODES), "found the label 'modes' as well, expected one of them", key=True)
        prediction = data.get("prediction", MISSING)
        if entry.prediction_file is not None:
            prediction = self.read_file(entry.prediction_file, (*path, "prediction_file"))
        expected = entry.expected
        if entry.expected_file is not None:
            expected = self.read_file(entry.expected_file, (*path, "expected_file"))
        case = Case(
            id=case_id(entry.id) or "" if entry.id is not None else str(number + 1),
            input=entry.input if entry.messages is None else script_of(entry.messages),
            conversation=entry.messages is not None,
            expected=expected,
            prediction=prediction,
            labels={key: json_text(value) for key, value in entry.labels.items()} | modes,
            tags=entry.tags,
            thresholds=self.read_limits(entry.thresholds, (*path, "thresholds")),
            line=self.document.locate(path)[0],
            checks=self.read_checks(entry.checks, (*path, "checks")),
            always=entry.always,
        )
        return case if len(self.faults) == before else None

    def _case_fault(self, case: Case, earlier: Mapping[str, Case], suite: Suite) -> str | None:
        fault = id_fault(case.id) or _tag_fault(case.tags)
        if fault is not None:
            return fault
        if case.id.startswith(("gate[", "snapshot[")):
            return f"found the id {case.id!r}, expected one that does not begin with 'gate[' or 'snapshot['"
        if case.id in earlier:
            return f"found the id {case.id!r} twice, expected it once (first in line {earlier[case.id].line})"
        for label, evaluator in suite.evaluators.items():
            try:
                expecting = suite.readings[label].expecting(case)
                faults = (fault for each in expecting for fault in evaluator.check(each))
                wrong = "; ".join(islice(faults, _MOST_FAULTS)) or None
            except Exception as error:  # noqa: BLE001 (an evaluator's bug is a fault of the files that use it)
                wrong = f"its check failed: {format_error(error)}{origin(error)}"
            if wrong is not None:
                return f"case {case.id!r}, evaluator {evaluator.name!r}: {wrong}"
        return None


def _talking(case: Case, user: SimulatedUser | None) -> Case:
    """Return a case as a simulated user has it: what it wants is the input.

    Raises:
        ValueError: Nobody says what it wants.
    """
    if user is None:
        return case
    wants = wants_of(user, case.input)
    goal = case.input if isinstance(case.input, list) else {name: each for name, each in wants.items() if each}
    return replace(case, input=goal, conversation=True, way=user.way)


def _leads_through(key: str, path: str) -> bool:
    """Return whether a path as text begins with a key."""
    top = render_path([key])
    return path == top or path.startswith((f"{top}.", f"{top}["))


_MOST_FAULTS = 20
"""Of one case in one error."""

_MARKS_WITH_ARGUMENTS = ("parametrize", "usefixtures", "filterwarnings", "llmeval")


def _tag_fault(tags: Iterable[str]) -> str | None:
    """Say what is wrong with tags, which become pytest marks."""
    for tag in tags:
        if not tag.replace("-", "_").isidentifier() or tag.startswith("_"):
            return f"found the tag {tag!r}, expected letters, digits, '-' and '_'"
        if tag in _MARKS_WITH_ARGUMENTS:
            return f"found the tag {tag!r}, which pytest reserves, expected another name"
    return None
