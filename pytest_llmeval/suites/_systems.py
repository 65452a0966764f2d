"""The systems of a suite."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, structs

from pytest_llmeval.core import (
    MISSING,
    Case,
    Fault,
    JudgeError,
    MediaForm,
    PredictionError,
    form_of,
    quotation,
    shown_path,
)
from pytest_llmeval.data import (
    CaseId,
    DataPath,
    DeclaredType,
    FaultLog,
    FilePattern,
    RecordedAnswers,
    Source,
    describe,
    json_text,
)
from pytest_llmeval.judges import JudgeSpec
from pytest_llmeval.suites._reading import SuiteReading

if TYPE_CHECKING:
    from pytest_llmeval.judges import AsyncJudge, Message
    from pytest_llmeval.targets import Target, TargetSpec


Only: TypeAlias = Literal["predicted"]

_KINDS = ("predictions", "python", "http", "command", "model")
_MATRIX = "matrix"


class System(Struct, frozen=True):
    """A system of a suite, with the cases that it answers.

    Attributes:
        cases: With its predictions; without, where a target answers.
        target: Answers the cases; ``None`` where predictions are recorded.
        model: Answers the cases in place of a target.
        faults: Of its predictions.
        left_out: How many cases are left out because it has no prediction for them.
    """

    cases: tuple[Case, ...]
    target: "TargetSpec | None" = None
    model: "ModelSystem | None" = None
    faults: tuple[Fault, ...] = ()
    left_out: int = 0

    def only(self, which: Only | None) -> "System":
        """The system with the cases that have a prediction, if only they are wanted."""
        if which is None:
            return self
        cases = tuple(case for case in self.cases if case.prediction is not MISSING)
        return structs.replace(self, cases=cases, left_out=self.left_out + len(self.cases) - len(cases))


@dataclass(frozen=True)
class PredictionsSpec:
    """Recorded predictions as a system of a suite file.

    Attributes:
        predictions: What ``predictions`` of the suite's source may be; for cases in the suite file, a file of answers
            by id.
        only: ``predicted`` leaves out the cases that have no prediction.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    predictions: Any
    only: Only | None = None


class SystemSpec(Struct, frozen=True):
    """A system as a suite file describes it.

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
    """The cases of a suite's source with the predictions of a system, and the faults of these."""

    cases: Sequence[Case]
    faults: Sequence[Fault] = ()


class SystemReader(Struct, frozen=True):
    """Reads ``systems`` of one suite file.

    Attributes:
        reading: Of the suite file.
        source: Of the cases, without predictions; ``None`` where they are in the suite file.
        options: Of the source, as the suite file has them.
    """

    reading: SuiteReading
    source: Source | None
    options: Any

    def read(self, entries: Any) -> list[SystemSpec]:
        """The systems of the suite file, in its order."""
        if entries is None:
            return []
        if not isinstance(entries, Mapping) or not entries:
            self.reading.fault(("systems",), f"found {describe(entries)}, expected a mapping of names to systems")
            return []
        systems: dict[str, SystemSpec | None] = {}
        for name, entry in entries.items():
            place: tuple[str | int, ...] = ("systems", name)
            for system, system_entry in self._matrix(entry, place) if name == _MATRIX else [(name, entry)]:
                if system in systems:
                    self.reading.fault(place, f"found the system {system!r} twice, expected it once")
                systems[system] = self._system(system, system_entry, place)
        return [spec for spec in systems.values() if spec is not None]

    def _matrix(self, entry: Any, place: tuple[str | int, ...]) -> Sequence[tuple[str, Any]]:
        """The systems under ``matrix``, each with its entry."""
        spec: MatrixSpec | None = self.reading.check(MatrixSpec, entry, place)
        return [] if spec is None else list(spec.systems(lambda pattern: self._prompts(pattern, place)))

    def _prompts(self, pattern: str, place: tuple[str | int, ...]) -> list[str]:
        """The prompt files that a pattern under ``matrix`` matches."""
        folder = self.reading.path.parent
        try:
            paths = [folder / pattern] if (folder / pattern).is_file() else FilePattern(folder, pattern).matches()
        except ValueError as error:
            self.reading.fault((*place, "prompts"), str(error))
            return []
        if not paths:
            self.reading.fault((*place, "prompts"), f"no file matches {pattern!r}")
        return [path.relative_to(folder).as_posix() for path in paths]

    def _system(self, name: str, entry: Any, place: tuple[str | int, ...]) -> SystemSpec | None:
        """The system of an entry; ``None`` after adding its faults."""
        from pytest_llmeval.targets import TargetSpec

        if fault := _name_fault(name):
            self.reading.fault(place, fault, key=True)
            return None
        if isinstance(entry, str):
            entry = {"python": entry}
        kinds = [kind for kind in _KINDS if isinstance(entry, Mapping) and kind in entry]
        if len(kinds) != 1:
            description = " and ".join(kinds) or describe(entry)
            self.reading.fault(place, f"found {description}, expected exactly one of {', '.join(_KINDS)}")
            return None
        if kinds == ["predictions"]:
            return self._recorded_system(name, entry, place)
        if kinds == ["model"]:
            return self._model(name, entry, place)
        target: TargetSpec | None = self.reading.check(TargetSpec, entry, place)
        if target is None:
            return None
        for path, message in target.faults(self.reading.document.objects):
            self.reading.fault((*place, *path), message)
        return SystemSpec(name, target=target)

    def _model(self, name: str, entry: Mapping[str, Any], place: tuple[str | int, ...]) -> SystemSpec | None:
        """The system that is a model; ``None`` after adding its faults."""
        spec: ModelSpec | None = self.reading.check(ModelSpec, entry, place)
        if spec is None:
            return None
        if spec.provider == "fixture":
            self.reading.fault((*place, "model"), f"found {spec.model!r}, which judges, expected a model that answers")
        prompts = (
            self._prompt(spec.prompt, (*place, "prompt")),
            self._prompt(spec.system_prompt, (*place, "system_prompt")),
        )
        return SystemSpec(name, model=ModelSystem(spec, *prompts))

    def _prompt(self, file: str | None, place: tuple[str | int, ...]) -> "Prompt | None":
        """The prompt in a file; ``None`` without one, or after adding its faults."""
        if file is None:
            return None
        text = self.reading.read_file(file, place)
        if not isinstance(text, str):
            if text is not None:
                self.reading.fault(place, f"found {file!r} with JSON data, expected a text")
            return None
        if fault := prompt_fault(text):
            line, message = fault
            self.reading.faults.append(Fault(shown_path(self.reading.path.parent / file), line, 1, "", message))
        return Prompt(file, text)

    def _recorded_system(self, name: str, entry: Mapping[str, Any], place: tuple[str | int, ...]) -> SystemSpec | None:
        """The system of recorded predictions; ``None`` after adding its faults."""
        spec: PredictionsSpec | None = self.reading.check(PredictionsSpec, entry, place)
        if spec is None:
            return None
        if self.source is not None and self.options is None:  # rows that Python passes
            return SystemSpec(name, spec, source=replace(self.source, predictions=spec.predictions))  # type: ignore[call-arg]  # (as below)
        if self.source is not None and _takes_predictions(self.source):
            format_options = {key: value for key, value in self.options.items() if key != "format"}
            options = {**format_options, "predictions": spec.predictions}
            source: Source | None = self.reading.check(type(self.source), options, place)
            return None if source is None else SystemSpec(name, spec, source=source)
        if not isinstance(spec.predictions, str):
            self.reading.fault((*place, "predictions"), f"found {describe(spec.predictions)}, expected a file")
            return None
        return SystemSpec(name, spec)

    def system(self, spec: SystemSpec, cases: Sequence[Case], loaded: Loaded | None, only: Only | None) -> System:
        """A system with its predictions for the cases of the suite.

        Args:
            spec: The system.
            cases: All cases of the suite.
            loaded: What the source gives with the predictions of the system, and what is wrong with these.
            only: Which cases are wanted if the system does not say it itself.
        """
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
            path = self.reading.path.parent / spec.recorded.predictions
            log = FaultLog(shown_path(path))
            answered = dict(bare)
            RecordedAnswers.read(path, log).fill(answered, bare, log, short_ids=False)
            faults = log.listed()
        result = System(tuple(answered.values()), faults=tuple(faults)).only(spec.recorded.only or only)
        if not result.cases and not result.faults:
            self.reading.fault(("systems", spec.name), "no case has a prediction")
        return result


def without_gold(rows: Sequence[Case], recorded: Iterable[Loaded]) -> list[Case]:
    """Cases that only the recorded predictions of systems name, and not the suite's source, each once."""
    known = {row.id for row in rows}
    return list({row.id: row for loaded in recorded for row in loaded.cases if row.id not in known}.values())


def without_predictions(source: Source) -> Source:
    """A suite's source with the same cases, which reads no predictions."""
    return replace(source, predictions=None) if _takes_predictions(source) else source  # type: ignore[call-arg]  # (a field that subclasses have)


def _takes_predictions(source: Source) -> bool:
    """Whether a suite's source has the option ``predictions``."""
    return any(field.name == "predictions" for field in fields(source))


def _name_fault(name: str) -> str | None:
    """The fault of a system's name, which stands in brackets after the ids of its cases."""
    if fault := CaseId(name).fault():
        return fault.replace("id", "name", 1)
    if set(name) & set("[]"):
        return f"found the name {name!r} with a bracket, expected one without: it stands in brackets behind case ids"
    return None


_PLACEHOLDER = re.compile(r"\{\{\s*input((?:\.[\w-]+)*)\s*\}\}")
_LIKE_ONE = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%(?:(?!\{%).)*?%\}", re.DOTALL)


@dataclass(frozen=True)
class ModelSpec(JudgeSpec):
    """A model as a system of a suite file; its other settings are those of judges.

    Attributes:
        prompt: File of the user's message; without it, the input is the message.
        system_prompt: File of the instructions.
    """

    prompt: str | None = None
    system_prompt: str | None = None


@dataclass(frozen=True)
class MatrixSpec:
    """The systems of a suite file that combine every model with every prompt.

    Attributes:
        models: ``PROVIDER:NAME``, or the settings of a model.
        prompts: Files, or patterns of files.
        system_prompt: Of all.
        temperature: Of models that do not have their own.
        max_tokens: As above.
    """

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    models: tuple[str | dict[str, Any], ...]
    prompts: tuple[str, ...]
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    def systems(self, files: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each system, ``model/prompt``, and its entry.

        Args:
            files: Returns the files of a pattern.
        """
        shared = {"system_prompt": self.system_prompt, "temperature": self.temperature, "max_tokens": self.max_tokens}
        shared = {name: value for name, value in shared.items() if value is not None}
        for model in self.models:
            entry = {"model": model} if isinstance(model, str) else model
            for prompt in dict.fromkeys(file for pattern in self.prompts for file in files(pattern)):
                yield f"{entry.get('model')}/{Path(prompt).stem}", {**shared, **entry, "prompt": prompt}


class Prompt(Struct, frozen=True):
    """A model's prompt with placeholders such as ``{{ input.question }}``; texts of cases are never placeholders.

    Attributes:
        file: Where it stands, for messages.
        text: The text.
    """

    file: str
    text: str

    def filled(self, value: Any) -> "NumberedText":
        """The text of a system's prompt that asks a model for an input, with the media that the prompt names.

        Raises:
            PredictionError: The input lacks something that the prompt names.
        """
        forms: list[Mapping[str, Any]] = []

        def text_of(match: re.Match[str]) -> str:
            field = value
            for step in match[1].split(".")[1:]:
                field = DataPath(step).find(field)
                if field is DataPath.ABSENT:
                    raise PredictionError(f"the input has no {match[1][1:]!r}, which {self.file} names")
            return _numbered(field, forms)

        return NumberedText(_PLACEHOLDER.sub(text_of, self.text), forms)


class NumberedText(NamedTuple):
    """A text for a model that is a system of a suite, which names its media by their numbers.

    Attributes:
        text: The text.
        forms: The JSON forms of the media.
    """

    text: str
    forms: Sequence[Mapping[str, Any]]


def _numbered(value: Any, forms: list[Mapping[str, Any]]) -> str:
    """A value of a case as text, with a number in place of each medium, which is added to the others."""
    from pytest_llmeval.judges import Message

    def number(form: MediaForm) -> str:
        forms.append(form.data)
        return Message.medium_number(len(forms), form.data)

    return json_text(MediaForm.replace_all(value, number))


_FIELD: Final = re.compile(r"(?<!\{)\{[A-Za-z_]\w*\}(?!\})")
_LONGEST_QUOTED: Final = 60


def prompt_fault(text: str) -> tuple[int, str] | None:
    """Line and fault of the first text in a system's prompt that looks like a placeholder and is none."""
    for match in _LIKE_ONE.finditer(text):
        if not _PLACEHOLDER.fullmatch(match[0]):
            line, start = text.count("\n", 0, match.start()) + 1, quotation(match[0], _LONGEST_QUOTED)
            if field := _FIELD.search(text):
                advice = f"expected '{{{{ input }}}}' for {field[0]!r}, and single braces for double ones"
                return line, f"found {start} and {field[0]!r}, as in an f-string of Python, {advice}"
            return line, f"found {start}, expected a placeholder such as '{{{{ input.question }}}}'"
    return None


class ModelSystem(Struct, frozen=True, dict=True):
    """A model that answers a suite's cases as a system, with its prompts.

    Attributes:
        spec: Which model, and where.
        prompt: Of the user's message; ``None``: the input is the message.
        system_prompt: Of the instructions; ``None`` for none.
    """

    spec: ModelSpec
    prompt: Prompt | None = None
    system_prompt: Prompt | None = None

    @cached_property
    def way(self) -> str:
        """The text of everything that decides the system's answers besides the input."""
        texts = [None if prompt is None else prompt.text for prompt in (self.prompt, self.system_prompt)]
        return json.dumps([self.spec.model, self.spec.address, self.spec.request_parameters(), *texts])

    def messages(self, value: Any) -> "list[Message]":
        """The messages that ask the system's model for an input.

        Raises:
            PredictionError: The input lacks something that a prompt names.
        """
        from pytest_llmeval.judges import Message

        system = self.system_prompt
        messages = [] if system is None else [Message.numbered("system", *system.filled(value))]
        if self.prompt is not None:
            return [*messages, Message.numbered("user", *self.prompt.filled(value))]
        if isinstance(value, list) and all(map(_is_message, value)):
            return [*messages, *(Message.numbered(turn["role"], *_text_of_content(turn["content"])) for turn in value)]
        return [*messages, Message.numbered("user", *_text_of_content(value))]

    def target(self, client: "AsyncJudge") -> "Target":
        """The target that asks the system's model: its text is ``answer``, and what it took is ``usage``.

        The target raises `PredictionError` where the model gives no reply, or the input lacks something that a prompt
        names.

        Args:
            client: Of the model.
        """
        spec, price = self.spec, self.spec.known_price

        async def answer(value: Any) -> dict[str, Any]:
            messages = tuple(self.messages(form_of(value)))
            from pytest_llmeval.judges import JudgeRequest

            try:
                reply = await client.complete(JudgeRequest(messages, spec.name, spec.request_parameters()))
            except JudgeError as error:
                raise PredictionError(str(error)) from None
            usage = {
                "input_tokens": reply.usage.input_tokens,
                "output_tokens": reply.usage.output_tokens,
                "cost_usd": reply.usage.cost_usd(price),
            }
            return {"answer": reply.text, "usage": {name: value for name, value in usage.items() if value is not None}}

        # Waits between attempts are not the model's: the exchange of each request is timed.
        answer.clocks_itself = True  # type: ignore[attr-defined]  # functions take attributes
        return answer


def _text_of_content(content: Any) -> NumberedText:
    """The text of a message to a system's model from a case's value; a list of texts and media becomes one text."""
    forms: list[Mapping[str, Any]] = []
    if isinstance(content, list) and any(map(MediaForm.matches, content)) and all(map(_is_part, content)):
        return NumberedText("\n".join(_numbered(_text_of_part(part), forms) for part in content), forms)
    return NumberedText(_numbered(content, forms), forms)


def _is_part(value: Any) -> bool:
    """Whether a value is a part of a message to a system's model: a text, also as providers write it, or a medium."""
    return isinstance(value, str) or MediaForm.matches(value) or isinstance(_text_of_part(value), str)


def _text_of_part(part: Any) -> Any:
    """The text of a message part for a system's model, as providers write it; any other part as it is."""
    return part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else part


def _is_message(value: Any) -> bool:
    """Whether a case's value is a message to a system's model: a mapping with a role and content."""
    from pytest_llmeval.judges import Message

    return isinstance(value, Mapping) and value.get("role") in Message.ROLES and "content" in value
