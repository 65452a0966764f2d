"""The systems of a suite: who answers its cases, side by side."""

__all__ = (
    "Loaded",
    "PredictionsSpec",
    "SystemReader",
    "SystemSpec",
    "names_system",
    "without_gold",
    "without_predictions",
)

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec import Struct

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault
from pytest_llmeval.data.files.patterns import matching_files
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.plain import STRICT
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.data.formats.base import Source, shown_path
from pytest_llmeval.data.formats.fields import id_fault
from pytest_llmeval.gates.limits import Gate
from pytest_llmeval.gates.regression import RegressionGate
from pytest_llmeval.suite.selection import Only, System
from pytest_llmeval.suite.settings import SettingsReader

if TYPE_CHECKING:
    from pytest_llmeval.suite.models import ModelSystem, Prompt
    from pytest_llmeval.targets.spec import TargetSpec

_KINDS = ("predictions", "python", "http", "command", "model")
_MATRIX = "matrix"


@dataclass(frozen=True)
class PredictionsSpec:
    """Recorded predictions as a system.

    Attributes:
        predictions: What ``predictions`` of the suite's source may be; for cases in the suite file, a file of answers
            by id.
        only: ``predicted`` leaves out the cases that have no prediction.
    """

    __pydantic_config__: ClassVar = STRICT

    predictions: Any
    only: Only | None = None


class SystemSpec(Struct, frozen=True):
    """A system as the suite file describes it.

    Attributes:
        name: Of the system.
        recorded: Its predictions; ``None`` where a target answers.
        target: Answers the cases.
        model: Answers the cases in place of a target.
        source: The source with its predictions; ``None`` where they belong to cases of the suite file.
    """

    name: str
    recorded: PredictionsSpec | None = None
    target: "TargetSpec | None" = None
    model: "ModelSystem | None" = None
    source: Source | None = None


class Loaded(NamedTuple):
    """The cases of a source with the predictions of a system, and what is wrong with these."""

    cases: Sequence[Case]
    faults: Sequence[Fault] = ()


class SystemReader(Struct, frozen=True):
    """Reads the systems of one suite file.

    Attributes:
        reader: Of the suite file; collects faults.
        source: Of the cases, without predictions; ``None`` where they are in the suite file.
        options: Of the source, as the suite file has them.
        read_file: Returns the content of a file beside the suite file.
    """

    reader: SettingsReader
    source: Source | None
    options: Any
    read_file: Callable[[str, tuple[str | int, ...]], Any]

    def read(self, entries: Any) -> list[SystemSpec]:
        """Return the systems, in the order of the file."""
        if entries is None:
            return []
        if not isinstance(entries, Mapping) or not entries:
            self.reader.fault(("systems",), f"found {describe(entries)}, expected a mapping of names to systems")
            return []
        found: dict[str, SystemSpec | None] = {}
        for name, entry in entries.items():
            place: tuple[str | int, ...] = ("systems", name)
            for system, each in self._matrix(entry, place) if name == _MATRIX else [(name, entry)]:
                if system in found:
                    self.reader.fault(place, f"found the system {system!r} twice, expected it once")
                found[system] = self._system(system, each, place)
        return [each for each in found.values() if each is not None]

    def _matrix(self, entry: Any, place: tuple[str | int, ...]) -> Sequence[tuple[str, Any]]:
        from pytest_llmeval.suite.models import MatrixSpec

        spec: MatrixSpec | None = self.reader.check(MatrixSpec, entry, place)
        return [] if spec is None else list(spec.systems(lambda pattern: self._prompts(pattern, place)))

    def _prompts(self, pattern: str, place: tuple[str | int, ...]) -> list[str]:
        folder = self.reader.path.parent
        try:
            found = [folder / pattern] if (folder / pattern).is_file() else sorted(matching_files(folder, pattern))
        except ValueError as error:
            self.reader.fault((*place, "prompts"), str(error))
            return []
        if not found:
            self.reader.fault((*place, "prompts"), f"found no file matching {pattern!r}, expected at least one")
        return [path.relative_to(folder).as_posix() for path in found]

    def _system(self, name: str, entry: Any, place: tuple[str | int, ...]) -> SystemSpec | None:
        from pytest_llmeval.targets.faults import target_faults
        from pytest_llmeval.targets.spec import TargetSpec

        if fault := _name_fault(name):
            self.reader.fault(place, fault, key=True)
            return None
        if isinstance(entry, str):
            entry = {"python": entry}
        given = [kind for kind in _KINDS if isinstance(entry, Mapping) and kind in entry]
        if len(given) != 1:
            found = " and ".join(given) or describe(entry)
            self.reader.fault(place, f"found {found}, expected exactly one of {', '.join(_KINDS)}")
            return None
        if given == ["predictions"]:
            return self._recorded(name, entry, place)
        if given == ["model"]:
            return self._model(name, entry, place)
        target: TargetSpec | None = self.reader.check(TargetSpec, entry, place)
        if target is None:
            return None
        for path, message in target_faults(target):
            self.reader.fault((*place, *path), message)
        return SystemSpec(name, target=target)

    def _model(self, name: str, entry: Mapping[str, Any], place: tuple[str | int, ...]) -> SystemSpec | None:
        from pytest_llmeval.suite.models import ModelSpec, ModelSystem

        spec: ModelSpec | None = self.reader.check(ModelSpec, entry, place)
        if spec is None:
            return None
        if spec.provider == "fixture":
            self.reader.fault((*place, "model"), f"found {spec.model!r}, which judges, expected a model that answers")
        prompts = (
            self._prompt(spec.prompt, (*place, "prompt")),
            self._prompt(spec.system_prompt, (*place, "system_prompt")),
        )
        return SystemSpec(name, model=ModelSystem(spec, *prompts))

    def _prompt(self, file: str | None, place: tuple[str | int, ...]) -> "Prompt | None":
        from pytest_llmeval.suite.models import Prompt, prompt_fault

        if file is None:
            return None
        text = self.read_file(file, place)
        if not isinstance(text, str):
            if text is not None:
                self.reader.fault(place, f"found {file!r} with JSON data, expected a text")
            return None
        if fault := prompt_fault(text):
            line, message = fault
            self.reader.faults.append(Fault(shown_path(self.reader.path.parent / file), line, 1, "", message))
        return Prompt(file, text)

    def _recorded(self, name: str, entry: Mapping[str, Any], place: tuple[str | int, ...]) -> SystemSpec | None:
        spec: PredictionsSpec | None = self.reader.check(PredictionsSpec, entry, place)
        if spec is None:
            return None
        if self.source is not None and _takes_predictions(self.source):
            given = {key: value for key, value in self.options.items() if key != "format"}
            options = {**given, "predictions": spec.predictions}
            source: Source | None = self.reader.check(type(self.source), options, place)
            return None if source is None else SystemSpec(name, spec, source=source)
        if not isinstance(spec.predictions, str):
            self.reader.fault((*place, "predictions"), f"found {describe(spec.predictions)}, expected a file")
            return None
        return SystemSpec(name, spec)

    def system(self, spec: SystemSpec, cases: Sequence[Case], loaded: Loaded | None, only: Only | None) -> System:
        """Return a system with its predictions for the cases of the suite.

        Args:
            spec: The system.
            cases: All cases of the suite.
            loaded: What the source gives with the predictions of the system, and what is wrong with these.
            only: Which cases are wanted if the system does not say it itself.
        """
        from pytest_llmeval.data.formats.predictions import add_predictions, read_answers

        bare = {case.id: case.answered(MISSING) for case in cases}
        if spec.recorded is None:
            way = spec.model.way if spec.model is not None else ""
            return System(tuple(replace(case, way=case.way + way) for case in bare.values()), spec.target, spec.model)
        if loaded is not None:
            otherwise = MISSING if spec.source is None else spec.source.beyond_gold
            predictions = {case.id: case.prediction for case in loaded.cases}
            answered = {name: case.answered(predictions.get(name, otherwise)) for name, case in bare.items()}
            faults = loaded.faults
        else:
            path = self.reader.path.parent / spec.recorded.predictions
            log = FaultLog(shown_path(path))
            answered = dict(bare)
            add_predictions(answered, read_answers(path, log), bare, log, short_ids=False)
            faults = log.listed()
        found = System(tuple(answered.values()), faults=tuple(faults)).only(spec.recorded.only or only)
        if not found.cases and not found.faults:
            self.reader.fault(("systems", spec.name), "found no prediction for any case, expected at least one")
        return found


def names_system(gate: Gate | RegressionGate) -> bool:
    """Return whether a gate is about one system, or about two."""
    return bool(gate.system) or (isinstance(gate, RegressionGate) and bool(gate.against))


def without_gold(rows: Sequence[Case], recorded: Iterable[Loaded]) -> list[Case]:
    """Return the cases that only the predictions of systems name, each once."""
    known = {row.id for row in rows}
    return list({row.id: row for each in recorded for row in each.cases if row.id not in known}.values())


def without_predictions(source: Source) -> Source:
    """Return a source of the same cases, which reads no predictions."""
    return replace(source, predictions=None) if _takes_predictions(source) else source  # type: ignore[call-arg]  # (a field that subclasses have)


def _takes_predictions(source: Source) -> bool:
    return any(each.name == "predictions" for each in fields(source))


def _name_fault(name: str) -> str | None:
    """Return the fault in the name of a system, which stands in brackets after the ids of its cases."""
    if fault := id_fault(name):
        return fault.replace("id", "name", 1)
    if set(name) & set("[]"):
        return f"found the name {name!r} with a bracket, expected one without: it stands in brackets behind case ids"
    return None
