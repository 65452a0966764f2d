"""Evals of OpenAI's Evals API: graders with their items."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.exchange.contract import (
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
    read_records,
    read_source,
)
from pytest_llmeval.exchange.templates import (
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
    """Return an eval of the API, or items, as a suite; ``None`` for the items of another source.

    Raises:
        SuiteError: The file cannot be read, or it is none of these.
    """
    if path.suffix.lower() == ".jsonl":
        if any(each.suffix.lower() != ".jsonl" for each in options.beside):
            return None
        return _of_records(path, display_path, options)
    ledger = read_source(path, display_path)
    data = as_mapping(ledger.data)
    if "testing_criteria" in data or "graders" in data:
        return _EvalReader(path, ledger, options).imported()
    for name, entry in data.items():
        if _REGISTRY_KEYS & as_mapping(entry).keys():
            raise ledger.fault((name,), _REGISTRY)
    raise ledger.fault((), "found no testing_criteria, expected an eval of the API, or items in JSONL")


def _of_records(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Return items without graders."""
    ledger, records, _ = read_records(path, display_path)
    if all("input" in record and "item" not in record for record in records):
        raise file_fault(display_path, _SAMPLES)
    suite = ImportedSuite(options.suite_name(path.stem))
    reader = _EvalReader(path, ledger, options, suite)
    reader.add_items(ledger, records)
    suite.settings["checks"] = [{"not_empty": True}]
    return ImportedSource(display_path, suite, [ledger])


@dataclass
class _Grader:
    """A grader that is a check, or a metric with a limit, of every case.

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


class _EvalReader:
    """Reads an eval of the API."""

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

    def imported(self) -> ImportedSource:
        """Return the suite of an eval."""
        data = self.ledger.data
        source = ImportedSource(self.ledger.file, ledgers=[self.ledger])
        items = self._items()
        self.suite = ImportedSuite(self.options.suite_name(str(data.get("name") or self.path.stem)))
        for key in ("testing_criteria", "graders"):
            for number, each in enumerate(as_list(data.get(key))):
                self._read_grader(each, (key, number))
        others = data.keys() - {"testing_criteria", "graders", "data_source", "items"}
        self.ledger.note_keys(others, (), "", _TOP, "a suite has no such setting")
        if items is None:
            return source.refuse("found no items in it and no JSONL file beside it or among the sources, expected one")
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
        inner = data.get("data_source")
        content: Any = inner.get("source") if isinstance(inner, Mapping) else None
        content = content.get("content") if isinstance(content, Mapping) else data.get("items")
        key = "data_source" if isinstance(inner, Mapping) else "items"
        path: SourcePath = (key,)
        if isinstance(content, list) and content and all(isinstance(each, Mapping) for each in content):
            self.ledger.same(path, "items", "cases of the suite")
            return self.ledger, [dict(each) for each in content]
        if key in data:
            self.ledger.lost(path, key, "it names no items in the file; name their JSONL file as a source")
        for file in (*self.options.beside, self.path.with_suffix(".jsonl")):
            if file.is_file() and file.suffix.lower() == ".jsonl":
                ledger, records, _ = read_records(file, file.as_posix())
                return ledger, records
        return None

    def add_items(self, ledger: SourceLedger, records: Sequence[Mapping[str, Any]]) -> None:
        """Add a case for each item."""
        ids = CaseIds()
        for number, record in enumerate(records):
            item = record["item"] if isinstance(record.get("item"), Mapping) else record
            sample = record.get("sample")
            values = {"item": item, "sample": {}}
            case: dict[str, Any] = {"id": ids.next(item.get("id")), "input": dict(item)}
            if isinstance(sample, Mapping) and sample.get("output_text") is not None:
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
        kind = str(raw.get("type", "")) if isinstance(raw, Mapping) else ""
        makers = {
            "string_check": self._string_check,
            "text_similarity": self._similarity,
            "label_model": self._model,
            "score_model": self._model,
        }
        try:
            if kind == "multi":
                return self._several(raw, path)
            if kind == "python":
                line = self.ledger.line(path)
                name = f"python_line_{line}" if line else f"python_{path[-1]}"
                stub = code_stub(name, f"{self.ledger.file}:{line}", str(raw.get("source", "")), name)
                return self.ledger.lost(
                    path, kind, "code is neither executed nor translated; write a registered check", stub
                )
            if kind not in makers:
                return self.ledger.lost(path, kind or "grader", "there is no such grader; write a registered check")
            grader, text, differences = makers[kind](raw)
        except (LeftOutError, TemplateError) as error:
            return self.ledger.lost(path, kind, str(error))
        grader.noted = (path, kind, text)
        self.graders.append(grader)
        return self.ledger.same(path, kind, text, differences)

    def _several(self, raw: Mapping[str, Any], path: SourcePath) -> None:
        """Read the graders of a grader; its formula is code."""
        inner = raw.get("graders")
        items = inner.items() if isinstance(inner, Mapping) else enumerate(as_list(inner))
        for key, each in items:
            self._read_grader(each, (*path, "graders", key))
        formula = raw.get("calculate_output")
        text = f"its graders are imported one by one; the formula {formula!r} is not, write an evaluator"
        self.ledger.lost(path, "multi", text)

    def _string_check(self, raw: Mapping[str, Any]) -> tuple[_Grader, str, list[VerdictDifference]]:
        operation = raw.get("operation")
        name = OPERATIONS.get(str(operation))
        if name is None:
            raise LeftOutError(f"its operation is {operation!r}, expected eq, ne, like or ilike")
        subject, reference = str(raw.get("input", "")), str(raw.get("reference", ""))
        if _path(subject) is None and _path(reference) is not None and operation in ("eq", "ne"):
            subject, reference = reference, subject
        on = _path(subject)
        if on is None:
            raise LeftOutError(f"its input is {subject!r}, expected the output: {{{{ sample.{'output_text'} }}}}")
        if "sample." in reference:
            raise LeftOutError("it compares the output with itself")
        more = {"name": _title(raw), **({"on": on} if on else {})}

        def check(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: filled_once(reference, values), **more}

        reason = "the target must return the object that the path leads into"
        differences = [VerdictDifference(reason, Direction.STRICTER)] if on else []
        return _Grader(check), f"check {name}", differences

    def _similarity(self, raw: Mapping[str, Any]) -> tuple[_Grader, str, list[VerdictDifference]]:
        if _path(str(raw.get("input", ""))) != "":
            raise LeftOutError(f"its input is {raw.get('input')!r}, expected {{{{ {_ANSWER} }}}}")
        metric, reference = str(raw.get("evaluation_metric")), str(raw.get("reference", ""))
        least = raw.get("pass_threshold")
        if metric == "fuzzy_match":
            least = least if isinstance(least, int | float) else 0.0

            def check(values: Mapping[str, Any]) -> dict[str, Any]:
                to = filled_once(reference, values)
                return {"levenshtein": {"to": to, "min_similarity": least}, "name": _title(raw)}

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
        if any(each.reference not in ("", reference) for each in self.graders):
            raise LeftOutError("a case has one right answer; write this grader into a suite of its own")
        limit = {name: float(least)} if isinstance(least, int | float) and not isinstance(least, bool) else {}
        grader = _Grader(reference=reference, evaluator=evaluator, limit=limit)
        differences = [VerdictDifference("words, smoothing or model may differ")]
        return grader, f"evaluator {evaluator[0]}, metric {name}", differences

    def _model(self, raw: Mapping[str, Any]) -> tuple[_Grader, str, list[VerdictDifference]]:
        """Return a model grader as a judge with its own prompt."""
        messages = raw.get("input")
        if not isinstance(messages, list) or not messages:
            raise LeftOutError("it has no messages under input")
        prompt = "\n\n".join(rewritten(_content(each), _placeholder) for each in messages)
        if "{{ answer" not in prompt and "{{ prediction" not in prompt:
            raise LeftOutError("its messages do not show the output")
        model = f"openai:{raw.get('model')}"
        self.judge = self.judge or model
        reply, least = _reply(raw)
        self.prompts += 1
        number = "" if self.prompts == 1 else f"-{self.prompts}"
        file = f"{self.suite.name}/grader{number}.md"
        self.suite.files[file] = prompt + "\n"
        name = f"judge{number}"
        limit = {f"{name}.judge_score" if number else "judge_score": least}
        options = {"prompt": file, "reply": reply, **({"as": name} if number else {})}
        self.suite.settings.setdefault("thresholds", {}).update(limit)
        differences = [VerdictDifference("in its prompt, texts follow as data")]
        if model != self.judge:
            differences.append(VerdictDifference(f"its model {raw.get('model')} is left out, a suite has one judge"))
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


def _title(raw: Mapping[str, Any]) -> str:
    name = " ".join(str(raw.get("name") or raw.get("type")).replace("[", "(").replace("]", ")").split())
    return name or "grader"


def _path(template: str) -> str | None:
    """Return where in a prediction a template points: empty for the answer; ``None`` if it is something else."""
    match = re.fullmatch(r"\s*\{\{\s*sample\.([\w.\[\]]+)\s*\}\}\s*", template)
    if match is None:
        return None
    if match[1] == "output_text":
        return ""
    return match[1].removeprefix("output_json.") if match[1].startswith("output_json.") else None


def _placeholder(name: str) -> str:
    """Return a placeholder of a prompt for judges."""
    if name == _ANSWER:
        return "{{ answer }}"
    space, _, column = name.partition(".")
    if space == "item" and column:
        return f"{{{{ input.{column} }}}}"
    raise TemplateError(f"{{{{ {name} }}}}, which a prompt for judges cannot have")


def _content(message: Any) -> str:
    """Return the text of a message."""
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, Mapping):
        content = content.get("text")
    if isinstance(content, list):
        texts = [each.get("text") if isinstance(each, Mapping) else each for each in content]
        content = "\n".join(str(each) for each in texts) if all(isinstance(each, str) for each in texts) else None
    if not isinstance(content, str):
        raise LeftOutError("a message has parts that are no text")
    return content


def _reply(raw: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Return the form of the replies of a model grader, and the least score that passes, from 0 to 1."""
    if raw.get("type") == "label_model":
        labels, passing = raw.get("labels"), raw.get("passing_labels")
        if (
            not isinstance(labels, list)
            or not isinstance(passing, list)
            or not set(map(str, passing)) <= set(map(str, labels))
        ):
            raise LeftOutError("its labels and passing_labels cannot be read")
        return {"reason": "text", "score": {"choices": {str(each): int(each in passing) for each in labels}}}, 1.0
    span = raw.get("range") or [0, 1]
    low, high = span if isinstance(span, list) and len(span) == 2 else (0, 1)  # noqa: PLR2004 (a range has two ends)
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in (low, high)) or low >= high:
        raise LeftOutError(f"its range is {span!r}, expected two numbers")
    least = raw.get("pass_threshold")
    share = (least - low) / (high - low) if isinstance(least, int | float) else 0.5
    return {"reason": "text", "score": {"min": low, "max": high}}, min(1.0, max(0.0, share))


def _of_text(check: Mapping[str, Any]) -> Iterator[VerdictDifference]:
    """Yield the differences of a check that depend on its text."""
    name, value = next(iter(check.items()))
    text = value["to"] if isinstance(value, Mapping) else value
    differences = [*of_composing(text), *(of_folding(text) if name == "icontains" else ())]
    yield from (each.negated() if name == "not_equals" else each for each in differences)


def _fault(place: tuple[SourceLedger, int], message: str) -> SuiteError:
    ledger, number = place
    return SuiteError([Fault(ledger.file, ledger.line(("item", number)), 0, f"[{number}]", f"found {message}")])
