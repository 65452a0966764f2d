"""Datasets of pydantic-evals."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from pytest_llmeval.data import json_text
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
    first_text,
    is_scalar,
    read_as,
    read_source,
)
from pytest_llmeval.exchange._records import add_evaluators
from pytest_llmeval.exchange._templates import (
    Direction,
    VerdictDifference,
    as_example,
    check_fault,
    of_composing,
    of_folding,
    of_json_text,
    of_scalar_text,
    texts_in,
)

_JUDGE: Final = "openai:gpt-5.2"
"""The model of LLMJudge in pydantic-evals 2.62, where none is named."""

_DURATION = re.compile(r"P(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)")
_TOOLS = "a target that returns tool_calls, and evaluator tools"
_TOP: Final = {
    "$schema": (Fate.SAME, "suite files have a schema of their own: llmeval schema"),
    "report_evaluators": (Fate.NOT_IMPORTED, "metrics of a suite are those of its evaluators; write one"),
}
_ADVICE: Final = {
    "ArgumentCorrectness": f"{_TOOLS}, metric argument_accuracy",
    "HasMatchingSpan": "a target that returns what the span holds, and a check with on: PATH",
    "IsInstance": "a check json_schema, or fields; answers are JSON, without Python types",
    "MaxModelRequests": "a target that returns its usage, and a check number with on: PATH",
    "MaxToolCalls": f"{_TOOLS}, option max_calls",
    "ToolCorrectness": f"{_TOOLS}, metric trajectory_match with order: any_order",
    "TrajectoryMatch": f"{_TOOLS}, metric trajectory_match",
}


def import_pydantic(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import a dataset of pydantic-evals as a suite.

    Raises:
        SuiteError: The file cannot be read, or it is no dataset.
    """
    ledger = read_source(path, display_path)
    data = ledger.data
    if not isinstance(as_mapping(data).get("cases"), list):
        raise ledger.fault((), "the list 'cases' is missing, expected a dataset of pydantic-evals")
    suite = ImportedSuite(options.suite_name(path.stem))
    reader = _DatasetReader(ledger, suite)
    empty = {key for key, value in data.items() if value in (None, [])} - {"cases"}
    for key in empty:
        ledger.pass_over((key,))
    others = data.keys() - {"cases", "evaluators"} - empty
    if name := first_text(data, "name"):
        suite.settings["description"] = name
        ledger.same(("name",), "name", "description of the suite")
        others -= {"name"}
    ledger.note_keys(others, (), "", _TOP, "a suite has no such setting")
    reader.read(data)
    source = ImportedSource(display_path, suite, [ledger])
    if not suite.cases:
        source.suite = None
        source.refusal = "no case has inputs"
    return source


class _DatasetReader:
    """A reader of one dataset of pydantic-evals, which becomes a suite."""

    def __init__(self, ledger: SourceLedger, suite: ImportedSuite) -> None:
        self.ledger = ledger
        self.suite = suite
        self.judge: str | None = None
        self.shared: list[dict[str, Any]] = []
        self.by_case: list[tuple[Any, SourcePath]] = []

    def read(self, data: Mapping[str, Any]) -> None:
        """Read the cases, and the evaluators of all and of each."""
        for number, spec in enumerate(as_list(data.get("evaluators"))):
            self._shared_evaluator(spec, ("evaluators", number))
        ids = CaseIds()
        for number, raw in enumerate(data["cases"]):
            self._case(raw, ("cases", number), ids)
        settings = self.suite.settings
        if self.judge is not None:
            settings["judge"] = {"model": self.judge}
        if self.shared:
            settings["checks"] = self.shared
        if self.shared or any("checks" in case for case in self.suite.cases):
            return
        if self.by_case:
            settings["checks"] = [{"not_empty": True}]
        else:
            add_evaluators(self.suite)
            text = (
                "evaluators that suit the expected outputs, or a check not_empty: the dataset has none that is imported"
            )
            self.ledger.near(("evaluators", "none"), "no evaluator", text)

    def _shared_evaluator(self, spec: Any, path: SourcePath) -> None:
        """Make an evaluator of the dataset a check of the suite; one that reads the case waits for the cases."""
        name, _ = _parsed(spec)
        if name == "EqualsExpected":
            self.by_case.append((spec, path))
        elif (check := self._check(spec, {}, path)) is not None:
            self.shared.append(check)

    def _case(self, raw: Any, path: SourcePath, ids: CaseIds) -> None:
        if "inputs" not in as_mapping(raw):
            self.ledger.lost(path, "case", "inputs is missing")
            return
        case: dict[str, Any] = {"id": ids.next(raw.get("name")), "input": raw["inputs"]}
        for key, value in raw.items():
            place = (*path, key)
            if key != "inputs" and (value is None or (value == [] and key != "expected_output")):
                self.ledger.pass_over(place)
            elif key in ("inputs", "name"):
                self.ledger.same(place, key, "the input of the case" if key == "inputs" else "the id of the case")
            elif key == "expected_output":
                case["expected"] = value
                self.ledger.same(place, key, "expected, or what a check compares with")
            elif key == "metadata" and isinstance(value, Mapping):
                self._labels(case, value, place)
            elif key == "metadata":
                self.ledger.lost(place, key, "labels are named")
            elif key != "evaluators":
                self.ledger.lost(place, key, "a case has no such setting")
        checks = [self._check(spec, raw, place) for spec, place in self.by_case]
        own = enumerate(as_list(raw.get("evaluators")))
        checks += [self._check(spec, raw, (*path, "evaluators", number)) for number, spec in own]
        if case_checks := [check for check in checks if check is not None]:
            case["checks"] = case_checks
        self.suite.cases.append(case)

    def _labels(self, case: dict[str, Any], value: Mapping[str, Any], path: SourcePath) -> None:
        for name, label in value.items():
            if is_scalar(label):
                case.setdefault("labels", {})[name] = label
                self.ledger.same((*path, name), "metadata", "a label")
            elif label is not None:
                self.ledger.lost((*path, name), "metadata", "labels are texts, numbers or booleans")

    def _check(self, spec: Any, case: Mapping[str, Any], path: SourcePath) -> dict[str, Any] | None:
        """Return the check that an evaluator becomes, after noting it."""
        name, arguments = _parsed(spec)
        try:
            evaluator = _evaluator(name, arguments)
            result = evaluator.check(case)
            if result is None:
                self.ledger.same(path, name, "no check: the case has no expected output")
                return None
            check, differences = result
            if title := evaluator.evaluation_name:
                check = {**check, "name": str(title).replace("[", "(").replace("]", ")")}
        except LeftOutError as error:
            advice = f"; write instead: {_ADVICE.get(name, 'a registered check')}"
            self.ledger.lost(path, name or "evaluator", f"{error}{advice if name not in MAKERS else ''}")
            return None
        if fault := check_fault(check):
            self.ledger.lost(path, name, f"it cannot be a check here: {fault}")
            return None
        if isinstance(evaluator, _LLMJudge):
            differences = [*differences, *self._choose_judge(evaluator.model)]
        self.ledger.same(path, name, f"check {next(iter(check))}", differences)
        return check

    def _choose_judge(self, model: str | None) -> Iterator[VerdictDifference]:
        """Choose the judge of the suite; yield the difference of an evaluator with its own model."""
        model_name = model or _JUDGE
        known = model_name if model_name.partition(":")[0] in ("openai", "anthropic") else f"pydantic-ai:{model_name}"
        self.judge = self.judge or known
        if self.judge != known:
            yield VerdictDifference(f"its model {model_name} is left out, a suite has one judge")


def _parsed(spec: Any) -> tuple[str, Any]:
    """Name and arguments of an evaluator as a dataset of pydantic-evals declares it."""
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, Mapping) and isinstance(spec.get("name"), str) and spec.keys() <= {"name", "arguments"}:
        arguments = spec.get("arguments") or {}
        if isinstance(arguments, list):  # by position, while a list in the short form is one argument
            known = MAKERS[spec["name"]].__struct_fields__ if spec["name"] in MAKERS else ()
            arguments = dict(zip(known, arguments, strict=False))
        return spec["name"], arguments
    if isinstance(spec, Mapping) and len(spec) == 1:
        ((name, argument),) = spec.items()
        return str(name), argument
    return "", spec


_Check = tuple[dict[str, Any], Iterable[VerdictDifference]] | None


def _equal(value: Any) -> tuple[dict[str, Any], Iterable[VerdictDifference]]:
    """The check that an answer equals a value of a pydantic-evals dataset, with its verdict differences."""
    if isinstance(value, str):
        return {"equals": value}, [*of_scalar_text(value, whole=True), *of_composing(value)]
    return {"json_equals": value}, [*of_json_text(value), *of_composing(*texts_in(value))]


class _Evaluator(Struct, kw_only=True):
    """The base of the evaluators of pydantic-evals that an import knows."""

    evaluation_name: Any = None

    def check(self, case: Mapping[str, Any]) -> _Check:
        """Return the check that the evaluator becomes, and its differences; ``None`` for none in this case.

        Raises:
            LeftOutError: There is no such check.
        """
        raise NotImplementedError


class _Equals(_Evaluator):
    """The evaluator ``Equals`` of pydantic-evals, which becomes a check on its value."""

    value: Any

    def check(self, case: Mapping[str, Any]) -> _Check:
        del case
        return _equal(self.value)


class _EqualsExpected(_Evaluator):
    """The evaluator ``EqualsExpected`` of pydantic-evals, which becomes a check on the expected output."""

    def check(self, case: Mapping[str, Any]) -> _Check:
        expected = case.get("expected_output")
        return None if expected is None else _equal(expected)


class _Contains(_Evaluator):
    """The evaluator ``Contains`` of pydantic-evals, which becomes a check on a text or on a part of JSON."""

    value: Any
    case_sensitive: bool = True
    as_strings: bool = False

    def check(self, case: Mapping[str, Any]) -> _Check:
        del case
        value = self.value
        if self.as_strings or isinstance(value, str):
            return _contains_text(value, folded=not self.case_sensitive, as_strings=self.as_strings)
        part = value if isinstance(value, Mapping) else [value]
        differences = [*of_json_text(part), *of_composing(*texts_in(value))]
        inner = value.values() if isinstance(value, Mapping) else [value]
        if any(isinstance(item, Mapping | list) for item in inner):
            differences.append(
                VerdictDifference("lists and objects inside may have more items and keys", Direction.LOOSER)
            )
        return {"json_subset": part}, differences


class _MaxDuration(_Evaluator):
    """The evaluator ``MaxDuration`` of pydantic-evals, which becomes a limit on latency."""

    seconds: int | float | str

    def check(self, case: Mapping[str, Any]) -> _Check:
        del case
        if not isinstance(self.seconds, str):
            return {"latency_s": self.seconds}, ()
        match = _DURATION.fullmatch(self.seconds)
        if match is None or not any(match.groups()):
            raise LeftOutError(f"its duration {self.seconds!r} cannot be read, expected seconds")
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return {"latency_s": hours * 3600 + minutes * 60 + seconds}, ()


class _LLMJudge(_Evaluator):
    """The evaluator ``LLMJudge`` of pydantic-evals, which becomes a check by the judge."""

    rubric: str
    model: str | None = None
    include_input: bool = False
    include_expected_output: bool = False
    score: Any = None
    model_settings: Any = None

    def check(self, case: Mapping[str, Any]) -> _Check:
        rubric, notes = self.rubric, ["the judge says yes or no by its own instructions"]
        if not self.include_input:
            notes.append("it sees the input too")
        if self.include_expected_output:
            expected = case.get("expected_output")
            if expected is not None:
                rubric += f"\nThe expected answer is: {json_text(expected)}"
            else:
                notes.append("the expected output is left out")
        if self.score:
            notes.append("it has no score beside the verdict")
        if self.model_settings:
            notes.append("model_settings are left out")
        return {"judge": rubric}, [VerdictDifference(", ".join(notes))]


class _GEval(_Evaluator):
    """The evaluator ``GEval`` of pydantic-evals, which is never imported: it is a score that cannot fail."""

    def check(self, case: Mapping[str, Any]) -> _Check:
        del case
        raise LeftOutError("it is a score that cannot fail; write a check rubric with the pass_mark to reach")


MAKERS: Final[Mapping[str, type[_Evaluator]]] = {
    "Contains": _Contains,
    "Equals": _Equals,
    "EqualsExpected": _EqualsExpected,
    "GEval": _GEval,
    "LLMJudge": _LLMJudge,
    "MaxDuration": _MaxDuration,
}
"""Evaluator to its parameters, and the check that it becomes."""


def _evaluator(name: str, arguments: Any) -> _Evaluator:
    """Build an evaluator of pydantic-evals; arguments are named, or the first one alone, or all in a list.

    Raises:
        LeftOutError: It is not known, or a parameter is missing or does not fit.
    """
    if name not in MAKERS:
        raise LeftOutError("there is no such check")
    required = [field.name for field in structs.fields(MAKERS[name]) if field.required]
    named = isinstance(arguments, Mapping) and (not required or {*required, "evaluation_name"} & arguments.keys())
    if not named:
        arguments = {required[0]: arguments} if required and arguments != {} else {}
    return read_as(MAKERS[name], arguments)


def _contains_text(value: Any, *, folded: bool, as_strings: bool) -> _Check:
    """The check that an answer contains a value of a pydantic-evals evaluator as text."""
    text = json_text(value)
    differences = [*of_composing(text), *(of_folding(text) if folded else ())]
    if as_strings:
        differences.append(
            VerdictDifference("true, null, lists and objects are not written as Python does", example="true")
        )
    else:
        reason = "a list with this text, or an object with this key, contains no text"
        differences += of_scalar_text(text, whole=False)
        differences.append(VerdictDifference(reason, Direction.STRICTER, as_example([text])))
    return {"icontains" if folded else "contains": text}, differences
