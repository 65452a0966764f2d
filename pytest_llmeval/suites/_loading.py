"""Loading of a suite file and the files it names, collecting all faults."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import structs

from pytest_llmeval.core import (
    AnyError,
    Case,
    Fault,
    LlmevalError,
    SuiteError,
    unknown_name,
)
from pytest_llmeval.data import (
    SOURCES,
    DeclaredType,
    Document,
    FilePattern,
    FileSource,
    InputFile,
    RowShare,
    Source,
    describe,
    render_path,
)
from pytest_llmeval.judges import PanelSpec
from pytest_llmeval.suites._cases import CaseEntry, with_cases
from pytest_llmeval.suites._keys import KEYS, SuiteEntry, suite_entry
from pytest_llmeval.suites._limits import LimitEntry, check_limited_checks
from pytest_llmeval.suites._reading import SuiteReading
from pytest_llmeval.suites._registry import Registry
from pytest_llmeval.suites._settings import SnapshotEntry, ToleranceEntry
from pytest_llmeval.suites._suite import ExtraKey, LoadedSuite, sampled
from pytest_llmeval.suites._systems import (
    Loaded,
    MatrixSpec,
    ModelSpec,
    PredictionsSpec,
    System,
    SystemReader,
    without_gold,
    without_predictions,
)

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


_READ_FIRST: Final = ("conversation", "evaluators", "judge", "repeats", "gates")
"""Keys on which others depend, each after those that it depends on."""

_COMMON_KEYS: Final = frozenset({"description"})
"""Keys of ours that files of other tools have as well."""


ENTRIES: Final[Mapping[str, type]] = {
    "case": CaseEntry,
    "limit": LimitEntry,
    "matrix": MatrixSpec,
    "model": ModelSpec,
    "predictions": PredictionsSpec,
    "snapshot": SnapshotEntry,
    "tolerance": ToleranceEntry,
}
"""The mappings that a suite file may hold, as classes by which they are validated."""


class ForeignFileError(SuiteError):
    """A file with the name of a suite file belongs to another tool."""


def is_foreign(path: Path) -> bool:
    """Whether a file with the name of a suite file is a mapping of another tool: it has no key of ours."""
    return _are_foreign(InputFile(path).top_level_keys())


def _are_foreign(keys: AbstractSet[str]) -> bool:
    """Whether the top-level keys of a file show that it is no suite file but another tool's."""
    ours = (*(required for required, _, _ in _OTHER_KINDS), *({key} for key in KEYS if key not in _COMMON_KEYS))
    return bool(keys) and not any(required <= keys for required in ours)


def load_suite(
    path: Path,
    registry: Registry | None = None,
    *,
    root: Path | None = None,
    display_path: str | None = None,
    document: Document | None = None,
    source: Source | None = None,
    share: RowShare | None = None,
) -> LoadedSuite:
    """Read a suite file and the files that it names.

    Args:
        path: The suite file.
        registry: The evaluators and sources that it may name; default: those of this package and of plugins.
        root: Files of single cases may not lie outside this folder; default: the current folder, or the folder of a
            suite file elsewhere.
        display_path: How to call the file in messages; default: its path.
        document: What the file would say, of a suite that Python declares.
        source: Gives the cases, in place of a source that the document names.
        share: Which rows of a data file become cases, if the suite can be read in parts: `LoadedSuite.rows`.

    Returns:
        The suite. Faults of single cases are in `LoadedSuite.faults`.

    Raises:
        ForeignFileError: The file is a mapping of another tool.
        SuiteError: The file cannot be read, or something that concerns every case is wrong; all faults are listed.
    """
    known = Registry.installed() if registry is None else registry
    folder = _folder_around(path) if root is None else root
    if document is None:
        try:
            document = InputFile(path, display_path or str(path)).read_document()
        except SuiteError as error:
            if is_foreign(path):
                raise ForeignFileError(error.faults) from None
            raise
    try:
        return _load_share(lambda: SuiteReading(path, known, document, folder), source, share)
    except SuiteError as error:
        if isinstance(document.data, Mapping) and _are_foreign(document.data.keys()):
            raise ForeignFileError(error.faults) from None
        if document.text:
            error.texts[document.file] = document.text
        raise


def _folder_around(path: Path) -> Path:
    """The current folder if a suite file lies inside, else the folder of the file."""
    here = Path.cwd()
    return here if path.resolve().is_relative_to(here) else path.resolve().parent


class SuiteMemo:
    """The suites of a process by file; a file that cannot be loaded raises the same error each time."""

    def __init__(self) -> None:
        self._suites: dict[Path, LoadedSuite | LlmevalError] = {}

    def get(self, path: Path, load: Callable[[], LoadedSuite]) -> LoadedSuite:
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


def _load_share(begin: Callable[[], SuiteReading], declared: Source | None, share: RowShare | None) -> LoadedSuite:
    """Load a suite with a shard's share of its rows, or with all rows if the share does not tell enough.

    A share finds faults that the whole lacks, such as a label that only other rows have.
    """
    try:
        suite = _load(begin(), declared, share)
    except SuiteError:
        if share is None or not share.count:
            raise
    else:
        if share is None or not share.count or not (suite.faults or share.checked):
            return suite
    return _load(begin(), declared, share.whole())


def _is_divisible(entry: SuiteEntry, source: Source | None) -> bool:
    """Whether each row of a suite's data file can be read without the others."""
    together = entry.cases or entry.systems or entry.cluster_by or entry.sample or entry.only
    service = entry.target.get("http") if isinstance(entry.target, Mapping) else None
    if together or (isinstance(service, Mapping) and "batch" in service):
        return False
    return isinstance(source, FileSource) and source.divisible


def _load(reading: SuiteReading, declared: Source | None, share: RowShare | None) -> LoadedSuite:
    """Build the loaded suite of a file, after reading all of it."""
    entry = reading.entry = _top_level(reading)
    source = declared or _source(reading, entry.source)
    bare = source if source is None or entry.systems is None else without_predictions(source)
    systems = SystemReader(reading, bare, entry.source)
    specs = systems.read(entry.systems)
    reading.systems = [spec.name for spec in specs]
    _check_systems(reading)
    share = share if _is_divisible(entry, bare) else None
    rows, row_faults = _rows(reading, bare, share)
    recorded = _load_recorded(reading, bare, {spec.name: spec.source for spec in specs if spec.source}, row_faults)
    rows += without_gold(rows, recorded.values())
    shared = reading.document.data["checks"] if entry.checks else ()  # with the objects that validation makes texts of
    reading.shared_checks = reading.read_checks(shared, ("checks",))
    own = any(isinstance(case, Mapping) and case.get("checks") for case in entry.cases)
    reading.checked = bool(entry.checks) or own or any(case.checks for case in rows)
    values = _read_keys(reading)
    sample = values["sample"]
    suite = LoadedSuite(
        name=entry.suite or reading.path.stem.removesuffix(".eval").removesuffix(".llmeval"),
        path=reading.path,
        on=reading.on,
        turns=reading.turns,
        objects=reading.document.objects,
        checked=reading.checked,
        notes=tuple(dict.fromkeys(reading.notes)),
        rows=None if share is None else share.rows(),
        extra_keys=_read_extra(reading),
        **{**values, "cases": (), "systems": {}, "sample": None},
    )
    broken = bool(reading.faults)
    if suite.confidence is None and any(gate.statistic in ("low", "high") for gate in suite.score_gates):
        reading.fault(("confidence",), "found null, expected a number such as 0.95: a gate judges an interval")
        broken = True
    reading.faults += row_faults
    suite = with_cases(reading, suite, bare, rows, row_faults)
    if not reading.faults:
        if reading.checked:
            check_limited_checks(reading, values["gates"], reading.checks_evaluator(suite.cases))
        if isinstance(suite.judge, PanelSpec):
            from pytest_llmeval.suites._judge_settings import check_reduction

            check_reduction(reading, suite.judge, suite.repeats, suite.evaluators)
        broken = bool(reading.faults)
        suite = structs.replace(suite, faults=tuple(reading.faults))
    if broken or not suite.cases:
        raise SuiteError(suite.faults)
    before = len(reading.faults)
    if specs:
        by_name = {spec.name: systems.system(spec, suite.cases, recorded.get(spec.name), entry.only) for spec in specs}
        suite = structs.replace(suite, systems=by_name)
    else:
        chosen = System(suite.cases).only(entry.only)
        suite = structs.replace(suite, cases=chosen.cases, left_out=chosen.left_out)
        if not suite.cases:
            reading.fault(("only",), "no case has a prediction")
    if len(reading.faults) > before:
        raise SuiteError(reading.faults)
    return suite if sample is None else sampled(suite, sample)


def _read_keys(reading: SuiteReading) -> dict[str, Any]:
    """Read the values of the keys that a loaded suite carries."""
    for name in dict.fromkeys((*_READ_FIRST, *KEYS)):
        key = KEYS[name]
        if key.carried:
            value = getattr(reading.entry, name)
            reading.values[name] = value if key.read is None else key.read(reading, value)
    return reading.values


def _read_extra(reading: SuiteReading) -> dict[str, ExtraKey]:
    """Read the keys of a suite file that plugins add."""
    extra = {}
    for name, key in reading.registry.keys.items():
        written = getattr(reading.entry, name)
        written = key.default if written is None and not key.null else written
        try:
            value = written if key.read is None else key.read(reading, written)
        except ValueError as error:
            reading.fault((name,), str(error))
        except Exception as error:  # noqa: BLE001 (a plugin's bug is a fault of the files that use it)
            reading.fault((name,), f"the reader of this key failed: {AnyError(error).full_text}")
        else:
            extra[name] = ExtraKey(value, written, key.decides)
    return extra


def _load_recorded(
    reading: SuiteReading, bare: Source | None, sources: Mapping[str, Source], row_faults: Sequence[Fault]
) -> dict[str, Loaded]:
    """The source's rows with the predictions of each system, and the faults that are not of the rows."""
    if bare is None or not sources:
        return {}
    loaded, failures = _load_cases(
        reading, bare, lambda: bare.load_systems(reading.path.parent, list(sources.values()))
    )
    known = frozenset(row_faults)
    results = loaded or [([], failures)] * len(sources)
    return {
        name: Loaded(rows, [fault for fault in _without_notes(reading, faults) if fault not in known])
        for name, (rows, faults) in zip(sources, results, strict=True)
    }


def _check_systems(reading: SuiteReading) -> None:
    """Refuse keys of a suite file that contradict ``systems``, and names of unknown systems."""
    entry, names = reading.entry, reading.systems
    if entry.systems is None:
        return
    if entry.target is not None:
        reading.fault(("target",), "found a target beside systems, expected it under systems, with a name", key=True)
    if isinstance(entry.source, Mapping) and entry.source.get("predictions") is not None:
        message = "found predictions beside systems, expected them under systems, with a name"
        reading.fault(("source", "predictions"), message, key=True)
    for number, gate in enumerate(entry.gates if names else ()):
        for key in ("system", "against"):
            if isinstance(gate, Mapping) and isinstance(name := gate.get(key), str) and name not in names:
                reading.fault(("gates", number, key), unknown_name("system", name, names))
    if names and entry.reference is not None and entry.reference not in names:
        reading.fault(("reference",), unknown_name("system", entry.reference, names))


def _top_level(reading: SuiteReading) -> SuiteEntry:
    """Check a suite file's top level, dropping faulty keys so that faults further down are also reported."""
    data = reading.document.data
    if not isinstance(data, Mapping):
        reading.fault((), f"found {describe(data)}, expected a mapping with 'evaluators' and 'cases' or 'source'")
        raise SuiteError(reading.faults)
    for keys, kind, use in _OTHER_KINDS:
        if keys <= data.keys():
            reading.fault((), f"found {kind}, expected a suite file: {use.format(file=reading.document.file)}")
            raise SuiteError(reading.faults)
    data = {key: value for key, value in data.items() if key != "$schema"}  # how JSON files name theirs to editors
    form = suite_entry(reading.registry)
    entry = reading.check(form, data, ())
    if entry is None:
        wrong = [fault.path for fault in reading.faults]
        valid = {key: value for key, value in data.items() if not any(_leads_through(key, path) for path in wrong)}
        entry, _ = DeclaredType(form).check({"evaluators": [], **valid}, reading.document)
    return entry


def _leads_through(key: str, path: str) -> bool:
    """Whether the path of a fault begins with a top-level key of a suite file."""
    top = render_path([key])
    return path == top or path.startswith((f"{top}.", f"{top}["))


def _rows(reading: SuiteReading, source: Source | None, share: RowShare | None) -> tuple[list[Case], list[Fault]]:
    """Load the rows of a suite's source, or a shard's share of them, and their faults."""
    faults: list[Fault] = []
    if source is None:
        return [], faults
    folder = reading.path.parent
    if share is not None and isinstance(source, FileSource):
        load = partial(source.load_share, folder, faults, share)
    else:
        load = partial(source.load, folder, faults)
    rows, failures = _load_cases(reading, source, load)
    return (rows, _without_notes(reading, faults)) if rows is not None else ([], failures)


def _without_notes(reading: SuiteReading, faults: Sequence[Fault]) -> list[Fault]:
    """The faults of a suite's source; its notes are added to those of the suite."""
    reading.notes += [fault for fault in faults if fault.is_note]
    return [fault for fault in faults if not fault.is_note]


def _load_cases(reading: SuiteReading, source: Source, load: Callable[[], T]) -> tuple[T | None, list[Fault]]:
    """Load the cases of a suite's source; if it fails, none and the fault."""
    try:
        with FilePattern.within(reading.root):
            return load(), []
    except Exception as error:  # noqa: BLE001 (a source's bug is a fault of the files that use it)
        message = f"format {source.format!r} failed: {AnyError(error).full_text}"
        return None, [reading.document.fault(("source",), message)]


def _source(reading: SuiteReading, entry: Any) -> Source | None:
    """Read ``source`` of a suite file; ``None`` without one, or after adding its faults."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        reading.fault(("source",), f"found {describe(entry)}, expected a mapping with 'format' and 'path'")
        return None
    options = dict(entry)
    name = options.pop("format", None)
    # Listing all formats imports every task: only for one that is not general.
    if not isinstance(name, str) or (name not in SOURCES and name not in reading.registry.sources):
        place = ("source", "format") if name is not None else ("source",)
        if isinstance(name, str):
            reading.unknown(place, "format", name, reading.registry.sources, key=False)
        elif name is None:
            reading.fault(place, "format is missing")
        else:
            reading.fault(place, f"found {describe(name)}, expected the name of a format")
        return None
    try:
        source: Source | None = reading.check(reading.registry.source(name), options, ("source",))
    except LlmevalError as error:
        reading.fault(("source", "format"), str(error))
        return None
    return source
