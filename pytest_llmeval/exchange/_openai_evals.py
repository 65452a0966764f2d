"""Evals of OpenAI's Evals API: graders with their items."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import Fault, SuiteError, excerpt
from pytest_llmeval.exchange._ledger import (
    CaseIds,
    Fate,
    ImportedSource,
    ImportedSuite,
    ImportOptions,
    LeftOutError,
    SourceLedger,
    SourcePath,
    as_list,
    as_mapping,
    file_fault,
    read_as,
    read_records,
    read_source,
)
from pytest_llmeval.exchange._media import ImportedMedia, MediumPart, content_parts
from pytest_llmeval.exchange._templates import (
    Direction,
    TemplateError,
    VerdictDifference,
    check_fault,
    code_stub,
    filled_once,
    of_composing,
    of_folding,
    rewritten,
)

OPERATIONS: Final = {"eq": "equals", "ne": "not_equals", "like": "contains", "ilike": "icontains"}
"""Operation of a string check to the check that it becomes."""

_ANSWER = "sample.output_text"
_SIMILARITY: Final = {
    "bleu": "bleu4",
    "meteor": "meteor",
    "rouge_1": "rouge1",
    "rouge_2": "rouge2",
    "rouge_l": "rougeL",
}
_TOP: Final = {
    "name": (Fate.SAME, "name of the suite"),
    "data_source_config": (Fate.NEAR, "the items are the inputs of the cases; their schema is not checked"),
}
_EMBEDDINGS = "openai:text-embedding-3-large"
_REGISTRY_KEYS: Final = {"class", "choice_strings"}
_REGISTRY: Final = (
    "the registry of the package evals is not imported; run its evals there, write their scores in the form of "
    "'llmeval schema results', and judge them: llmeval gate FILE"
)
_SAMPLES: Final = (
    "samples of the package evals are not items; import them as a table: llmeval import table FILE --input input "
    "--expected ideal"
)


def import_openai(path: Path, display_path: str, options: ImportOptions) -> ImportedSource | None:
    """Import an eval of OpenAI's Evals API, or its items, as a suite; ``None`` for items of another source.

    Raises:
        SuiteError: The file cannot be read, or it is none of these.
    """
    if path.suffix.lower() == ".jsonl":
        if any(file.suffix.lower() != ".jsonl" for file in options.beside):
            return None
        return _of_records(path, display_path, options)
    ledger = read_source(path, display_path)
    data = as_mapping(ledger.data)
    if "testing_criteria" in data or "graders" in data:
        return _EvalReader(path, ledger, options).imported()
    for name, entry in data.items():
        if _REGISTRY_KEYS & as_mapping(entry).keys():
            raise ledger.fault((name,), _REGISTRY)
    raise ledger.fault((), "testing_criteria is missing: name an eval of the API, or items in JSONL")


def _of_records(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import the items of an OpenAI eval, without graders, as a suite."""
    ledger, records, _ = read_records(path, display_path)
    if all("input" in record and "item" not in record for record in records):
        raise file_fault(display_path, _SAMPLES)
    suite = ImportedSuite(options.suite_name(path.stem))
    reader = _EvalReader(path, ledger, options, suite)
    reader.add_items(ledger, records)
    suite.settings["checks"] = [{"not_empty": True}]
    return ImportedSource(display_path, suite, [ledger])


class _GraderMessage(Struct):
    """A message in the prompt of an OpenAI model grader."""

    content: str | dict[str, Any] | list[str | dict[str, Any]]


class _StringCheck(Struct, tag_field="type", tag="string_check"):
    """An OpenAI grader that compares texts by an operation."""

    operation: Any = None
    input: str = ""
    reference: str = ""
    name: str = "string_check"


class _TextSimilarity(Struct, tag_field="type", tag="text_similarity"):
    """An OpenAI grader that measures the similarity of a text to a reference."""

    evaluation_metric: str
    input: str = ""
    reference: str = ""
    pass_threshold: int | float | None = None
    name: str = "text_similarity"


class _LabelModel(Struct, tag_field="type", tag="label_model"):
    """An OpenAI grader by which a model chooses a label."""

    model: str
    input: list[str | _GraderMessage]
    labels: list[str]
    passing_labels: list[str]

    def reply(self) -> tuple[dict[str, Any], float]:
        """Return the form of replies, and the least score that passes, from 0 to 1.

        Raises:
            LeftOutError: A label that passes is none of the labels.
        """
        if unknown := [label for label in self.passing_labels if label not in self.labels]:
            raise LeftOutError(f"its passing label {unknown[0]!r} is none of its labels")
        return {"choices": {label: int(label in self.passing_labels) for label in self.labels}}, 1.0


class _ScoreModel(Struct, tag_field="type", tag="score_model"):
    """An OpenAI grader by which a model gives a score."""

    model: str
    input: list[str | _GraderMessage]
    range: tuple[int | float, int | float] | None = None
    pass_threshold: int | float | None = None

    def reply(self) -> tuple[dict[str, Any], float]:
        """Return the form of replies, and the least score that passes, from 0 to 1.

        Raises:
            LeftOutError: Its range has no width.
        """
        low, high = self.range or (0, 1)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise LeftOutError(f"its range is {low:g} to {high:g}, expected two numbers, the lower one first")
        share = 0.5 if self.pass_threshold is None else (self.pass_threshold - low) / (high - low)
        return {"min": low, "max": high}, min(1.0, max(0.0, share))


class _Python(Struct, tag_field="type", tag="python"):
    """An OpenAI grader in Python, which is never executed."""

    source: str = ""


class _Multi(Struct, tag_field="type", tag="multi"):
    """An OpenAI grader that combines others by a formula."""

    graders: dict[str, Any] | list[Any] = {}
    calculate_output: Any = None


class _ItemList(Struct):
    """The items that an OpenAI eval has in its own file."""

    content: list[dict[str, Any]]


class _DataSource(Struct):
    """The data source of an OpenAI eval, with its items."""

    source: _ItemList


_Declared: TypeAlias = _StringCheck | _TextSimilarity | _LabelModel | _ScoreModel | _Python | _Multi


@dataclass
class _Grader:
    """An imported OpenAI grader: a check, or a metric with a limit, of every case.

    Attributes:
        check: From the values of templates to a check.
        reference: Template of the right answer for a metric.
        evaluator: Name and options of the evaluator of the metric.
        limit: Metric to its least value.
        noted: Place, kind and meaning.
    """

    check: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    reference: str = ""
    evaluator: tuple[str, dict[str, Any]] | None = None
    limit: dict[str, float] = field(default_factory=dict)
    noted: tuple[SourcePath, str, str] = ((), "", "")


class _ItemMedia(NamedTuple):
    """The media in the items of an OpenAI eval.

    Attributes:
        media: Of the suite.
        columns: Name to the part of a message that shows it.
    """

    media: ImportedMedia
    columns: Mapping[str, MediumPart]

    def replaced(self, item: Mapping[str, Any], ledger: SourceLedger, number: int) -> dict[str, Any]:
        """Return an item with its media; what is none stays as it is, and is noted."""
        values = dict(item)
        for name, value in item.items():
            part = self.columns.get(name)
            try:
                if part is not None and isinstance(value, str):
                    encoded = part.address.startswith("data:") or part.encoded
                    kind = part.address[5:].partition(";")[0] if part.address.startswith("data:") else part.type
                    values[name] = self.media.of_part(part._replace(address=value, type=kind, encoded=encoded))
                else:
                    values[name] = self.media.replaced(value)
            except LeftOutError as error:
                ledger.lost((name, number), f"medium in column {name}", f"{error}; it stays text")
            else:
                if values[name] is not value:
                    text = "a file or an address"
                    ledger.same((name, number), f"medium in column {name}", text)
        return values


_KINDS: Final = frozenset(("string_check", "text_similarity", "label_model", "score_model", "python", "multi"))
_GraderImport: TypeAlias = tuple[_Grader, str, list[VerdictDifference]]
"""A grader, its meaning here, and the differences."""


class _EvalReader:
    """A reader of one eval of OpenAI's Evals API, which becomes a suite."""

    def __init__(
        self, path: Path, ledger: SourceLedger, options: ImportOptions, suite: ImportedSuite | None = None
    ) -> None:
        self.path = path
        self.ledger = ledger
        self.options = options
        self.suite = suite or ImportedSuite("")
        self.graders: list[_Grader] = []
        self.judge: str | None = None
        self.prompts = 0
        self.models: list[_LabelModel | _ScoreModel] = []

    def imported(self) -> ImportedSource:
        """Return the suite of an eval."""
        data = self.ledger.data
        source = ImportedSource(self.ledger.file, ledgers=[self.ledger])
        items = self._items()
        self.suite = ImportedSuite(self.options.suite_name(str(data.get("name") or self.path.stem)))
        for key in ("testing_criteria", "graders"):
            for number, raw in enumerate(as_list(data.get(key))):
                self._read_grader(raw, (key, number))
        others = data.keys() - {"testing_criteria", "graders", "data_source", "items"}
        self.ledger.note_keys(others, (), "", _TOP, "a suite has no such setting")
        if items is None:
            return source.refuse("items are missing: it has none, and no JSONL file is beside it or among the sources")
        ledger, records = items
        self.add_items(ledger, records)
        if ledger is not self.ledger:
            source.ledgers.append(ledger)
        self._finish()
        source.suite = self.suite
        return source

    def _items(self) -> tuple[SourceLedger, list[dict[str, Any]]] | None:
        """Return the items: in the eval, in a JSONL file that it names, among the sources, or next to it."""
        data = self.ledger.data
        key = "data_source" if "data_source" in data else "items"
        if key in data:
            inner = data[key] if key == "data_source" else {"source": {"content": data[key]}}
            with suppress(LeftOutError):
                if content := read_as(_DataSource, inner).source.content:
                    self.ledger.same((key,), "items", "cases of the suite")
                    return self.ledger, content
            self.ledger.lost((key,), key, "it names no items in the file; name their JSONL file as a source")
        for file in (*self.options.beside, self.path.with_suffix(".jsonl")):
            if file.is_file() and file.suffix.lower() == ".jsonl":
                ledger, records, _ = read_records(file, file.as_posix())
                return ledger, records
        return None

    def add_items(self, ledger: SourceLedger, records: Sequence[Mapping[str, Any]]) -> None:
        """Add a case for each item."""
        ids = CaseIds()
        media = _ItemMedia(ImportedMedia(self.suite, self.path.parent), dict(_shown_media(self.models)))
        for number, record in enumerate(records):
            item = as_mapping(record.get("item")) or record
            sample = as_mapping(record.get("sample"))
            values = {"item": item, "sample": {}}
            case: dict[str, Any] = {"id": ids.next(item.get("id")), "input": media.replaced(item, ledger, number)}
            if sample.get("output_text") is not None:
                case["prediction"] = sample["output_text"]
            for grader in self.graders:
                self._grade(case, grader, values, (ledger, number))
            self.suite.cases.append(case)
        if ledger is not self.ledger or "item" in ledger.data:
            for column in ledger.data:
                text = "the prediction of the case: its output_text" if column == "sample" else "the input of the case"
                (ledger.near if column == "sample" else ledger.same)((column,), f"column {column}", text)

    def _grade(
        self, case: dict[str, Any], grader: _Grader, values: Mapping[str, Any], place: tuple[SourceLedger, int]
    ) -> None:
        """Add the check or metric of a grader to a case."""
        try:
            if grader.check is not None:
                check = grader.check(values)
                if fault := check_fault(check):
                    raise _fault(place, fault)
                self.ledger.same(*grader.noted, _of_text(check))
                case.setdefault("checks", []).append(check)
            elif grader.evaluator is not None:
                case["expected"] = filled_once(grader.reference, values)
                if grader.limit:
                    case["thresholds"] = {**case.get("thresholds", {}), **grader.limit}
        except TemplateError as error:
            raise _fault(place, str(error)) from None

    def _read_grader(self, raw: Any, path: SourcePath) -> None:
        """Read one grader, and note it."""
        kind = str(as_mapping(raw).get("type", ""))
        with self.ledger.losing(path, kind or "grader"):
            if kind not in _KINDS:
                raise LeftOutError("there is no such grader; write a registered check")
            declared: _Declared = read_as(_Declared, raw)  # type: ignore[arg-type]  # (a union is no class)
            match declared:
                case _StringCheck():
                    imported = self._string_check(declared)
                case _TextSimilarity():
                    imported = self._similarity(declared)
                case _LabelModel() | _ScoreModel():
                    imported = self._model(declared)
                case _Python():
                    raise self._code(declared, path)
                case _Multi():
                    self._read_several(declared, path)
            grader, text, differences = imported
            grader.noted = (path, kind, text)
            self.graders.append(grader)
            self.ledger.same(path, kind, text, differences)

    def _code(self, grader: _Python, path: SourcePath) -> LeftOutError:
        """The reason why code is not imported, with a check to begin with."""
        line = self.ledger.line(path)
        name = f"python_line_{line}" if line else f"python_{path[-1]}"
        stub = code_stub(name, f"{self.ledger.file}:{line}", grader.source, name)
        return LeftOutError("code is neither executed nor translated; write a registered check", stub)

    def _read_several(self, grader: _Multi, path: SourcePath) -> NoReturn:
        """Read the graders of a grader; its formula is code.

        Raises:
            LeftOutError: Always, for the formula.
        """
        inner = grader.graders
        for key, raw in inner.items() if isinstance(inner, dict) else enumerate(inner):
            self._read_grader(raw, (*path, "graders", key))
        raise LeftOutError(
            f"its graders are imported one by one; the formula {grader.calculate_output!r} is not, write an evaluator"
        )

    def _string_check(self, grader: _StringCheck) -> _GraderImport:
        name = OPERATIONS.get(str(grader.operation))
        if name is None:
            raise LeftOutError(f"its operation is {grader.operation!r}, expected eq, ne, like or ilike")
        subject, reference = grader.input, grader.reference
        if _path(subject) is None and _path(reference) is not None and grader.operation in ("eq", "ne"):
            subject, reference = reference, subject
        on = _path(subject)
        if on is None:
            raise LeftOutError(f"its input is {subject!r}, expected the output: {{{{ {_ANSWER} }}}}")
        if "sample." in reference:
            raise LeftOutError("it compares the output with itself")
        more = {"name": _title(grader.name), **({"on": on} if on else {})}

        def check(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: filled_once(reference, values), **more}

        reason = "the target must return the object that the path leads into"
        differences = [VerdictDifference(reason, Direction.STRICTER)] if on else []
        return _Grader(check), f"check {name}", differences

    def _similarity(self, grader: _TextSimilarity) -> _GraderImport:
        if _path(grader.input) != "":
            raise LeftOutError(f"its input is {grader.input!r}, expected {{{{ {_ANSWER} }}}}")
        metric, reference, least = grader.evaluation_metric, grader.reference, grader.pass_threshold
        if metric == "fuzzy_match":

            def check(values: Mapping[str, Any]) -> dict[str, Any]:
                to = filled_once(reference, values)
                return {"levenshtein": {"to": to, "min_similarity": least or 0.0}, "name": _title(grader.name)}

            differences = [VerdictDifference("similarity is computed otherwise")]
            return _Grader(check), "check levenshtein with min_similarity", differences
        if metric == "cosine":
            evaluator: tuple[str, dict[str, Any]] = ("semantic", {"model": _EMBEDDINGS})
            name = "embedding_similarity"
        elif metric in _SIMILARITY:
            name = _SIMILARITY[metric]
            evaluator = ("text", {"metrics": [name]})
        else:
            raise LeftOutError(
                f"there is no metric {metric}; evaluator text has rouge1, rouge2, rougeL, bleu4 and meteor"
            )
        if any(other.reference not in ("", reference) for other in self.graders):
            raise LeftOutError("a case has one right answer; write this grader into a suite of its own")
        limit = {} if least is None else {name: float(least)}
        imported = _Grader(reference=reference, evaluator=evaluator, limit=limit)
        differences = [VerdictDifference("words, smoothing or model may differ")]
        return imported, f"evaluator {evaluator[0]}, metric {name}", differences

    def _model(self, grader: _LabelModel | _ScoreModel) -> _GraderImport:
        """Return a model grader as a judge with its own prompt."""
        prompt = "\n\n".join(rewritten(_content(message), _placeholder) for message in grader.input)
        if "{{ answer" not in prompt and "{{ prediction" not in prompt:
            raise LeftOutError("its messages do not show the output")
        score, least = grader.reply()
        self.models.append(grader)
        model = f"openai:{grader.model}"
        self.judge = self.judge or model
        self.prompts += 1
        number = "" if self.prompts == 1 else f"-{self.prompts}"
        file = f"{self.suite.name}/grader{number}.md"
        self.suite.files[file] = prompt + "\n"
        name = f"judge{number}"
        limit = {f"{name}.judge_score" if number else "judge_score": least}
        options = {"prompt": file, "reply": {"reason": "text", "score": score}, **({"as": name} if number else {})}
        self.suite.settings.setdefault("thresholds", {}).update(limit)
        differences = [VerdictDifference("in its prompt, texts follow as data")]
        if model != self.judge:
            differences.append(VerdictDifference(f"its model {grader.model} is left out, a suite has one judge"))
        return _Grader(evaluator=("judge", options)), "evaluator judge; a threshold for every case", differences

    def _finish(self) -> None:
        """Write evaluators and judge."""
        settings = self.suite.settings
        merged: list[dict[str, Any]] = []
        metrics: list[str] = []
        for grader in self.graders:
            if grader.evaluator is None:
                continue
            name, options = grader.evaluator
            if name == "text":
                metrics += options["metrics"]
            elif {name: options} not in merged:
                merged.append({name: options})
        if metrics:
            order = {"effective_order": True} if "bleu4" in metrics else {}
            merged.append({"text": {"metrics": [*dict.fromkeys(metrics)], **order}})
        if merged:
            settings["evaluators"] = merged
        if self.judge is not None:
            settings["judge"] = {"model": self.judge}
        if not merged and not any("checks" in case for case in self.suite.cases):
            settings["checks"] = [{"not_empty": True}]


def _title(name: str) -> str:
    """The name of an OpenAI grader as the name of a check, without square brackets."""
    return " ".join(name.replace("[", "(").replace("]", ")").split()) or "grader"


def _path(template: str) -> str | None:
    """The part of a prediction in an OpenAI grader's template: empty for the answer; ``None`` for anything else."""
    match = re.fullmatch(r"\s*\{\{\s*sample\.([\w.\[\]]+)\s*\}\}\s*", template)
    if match is None:
        return None
    if match[1] == "output_text":
        return ""
    return match[1].removeprefix("output_json.") if match[1].startswith("output_json.") else None


def _placeholder(name: str) -> str:
    """The placeholder in a judge's prompt for a name in an OpenAI grader's template."""
    if name == _ANSWER:
        return "{{ answer }}"
    space, _, column = name.partition(".")
    if space == "item" and column:
        return f"{{{{ input.{column} }}}}"
    raise TemplateError(f"{{{{ {name} }}}}, which a prompt for judges cannot have")


def _content(message: str | _GraderMessage) -> str:
    """The text of an OpenAI grader's message, where a medium is the template of its address or content.

    Raises:
        LeftOutError: A medium stands in the message itself.
    """
    content = message if isinstance(message, str) else message.content
    parts = list(content_parts(content))
    for part in parts:
        if not isinstance(part, str) and not _WHOLE_ITEM.fullmatch(part.address):
            raise LeftOutError(f"its messages show {excerpt(part.address, 60)!r}, expected {{{{ item.NAME }}}}")
    return "\n".join(part if isinstance(part, str) else _WHOLE_ITEM.sub(r"\1", part.address) for part in parts)


_WHOLE_ITEM: Final = re.compile(r"(?:data:[\w.+/-]+;base64,)?(\{\{\s*item\.\w+\s*\}\})")
"""The whole medium of an item."""


def _shown_media(graders: Sequence[_LabelModel | _ScoreModel]) -> Iterator[tuple[str, MediumPart]]:
    """Yield the columns of items that OpenAI's model graders show as parts, with the parts."""
    for grader in graders:
        for message in grader.input:
            for part in content_parts(message if isinstance(message, str) else message.content):
                if not isinstance(part, str) and (match := _WHOLE_ITEM.fullmatch(part.address)):
                    yield match[1].strip("{} ").removeprefix("item."), part


def _of_text(check: Mapping[str, Any]) -> Iterator[VerdictDifference]:
    """Yield the verdict differences that the text of an imported OpenAI check makes."""
    name, value = next(iter(check.items()))
    text = value["to"] if isinstance(value, Mapping) else value
    differences = [*of_composing(text), *(of_folding(text) if name == "icontains" else ())]
    yield from (difference.negated() if name == "not_equals" else difference for difference in differences)


def _fault(place: tuple[SourceLedger, int], message: str) -> SuiteError:
    """The error about an item of an OpenAI eval to which a grader cannot be applied."""
    ledger, number = place
    return SuiteError([Fault(ledger.file, ledger.line(("item", number)), 0, f"[{number}]", f"found {message}")])
