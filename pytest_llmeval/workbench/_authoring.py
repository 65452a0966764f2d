"""Help for authors of suites."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from pytest_llmeval.cli import CommandResult, open_suite
from pytest_llmeval.core import (
    EvaluatorError,
    Fault,
    LlmevalError,
    Metric,
    SuiteError,
    code_of,
    counted,
    format_error,
    unknown_name,
    unobeyed_json,
    without_links,
)
from pytest_llmeval.data import option_fault, read_document
from pytest_llmeval.gates import ChangeGate, gate_schema
from pytest_llmeval.judges import CascadeRule, JudgeSpec, is_retired, jurors_of
from pytest_llmeval.run import unmet_by_expected
from pytest_llmeval.suites import (
    ENTRIES,
    SUITE_FILES,
    Key,
    LoadedSuite,
    Registry,
    default_registry,
    is_foreign,
    keys_of,
    left_alone,
    no_suite,
    suite_entry,
    widest,
)
from pytest_llmeval.targets import TargetSpec
from pytest_llmeval.workbench._console import named_files, notes, open_noted

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import CheckKind

SCHEMA_URL = "https://raw.githubusercontent.com/pytest-llmeval/pytest-llmeval-suite/main/docs/suite.schema.json"
"""The address of the published schema, which covers what ships; the ``$id`` of that file."""

DIALECT = "http://json-schema.org/draft-07/schema#"

_WIDTH = 80
_INDENT = "  "
_GAP = "  "


def suite_schema(registry: Registry) -> dict[str, Any]:
    """Return the schema of a suite file, with the options of every evaluator and source.

    Args:
        registry: The evaluators and sources that suites may name.

    Returns:
        JSON Schema, draft 07, which the catalogue of schemas and editors read.
    """
    definitions: dict[str, Any] = {}
    suite = _schema(suite_entry(registry), definitions)
    definitions["Check"] = _check(registry, definitions)
    properties = suite["properties"]
    for name, key in keys_of(registry).items():
        properties[name] = {**_with_forms(properties[name], key, registry, definitions), "description": described(key)}
    properties["$schema"] = {"type": "string", "description": "Where editors find this schema; for JSON files"}
    own = {"contains": {"required": ["checks"]}}
    branches = [{"required": ["evaluators"]}, {"required": ["checks"]}, {"properties": {"cases": own}}]
    schema = {"$schema": DIALECT, "title": "Eval suite", **suite, "anyOf": branches}
    converted: dict[str, Any] = _in_dialect({**schema, "$defs": definitions} if definitions else schema)
    return converted


_OLD_NAMES: Final = {"$defs": "definitions", "prefixItems": "items"}
"""Keywords that pydantic writes to those of draft 07."""


def _in_dialect(part: Any) -> Any:
    """Return a part of a schema of draft 2020-12 as one of draft 07."""
    if isinstance(part, list):
        return [_in_dialect(each) for each in part]
    if not isinstance(part, dict):
        return part
    keywords = {_OLD_NAMES.get(name, name): _in_dialect(value) for name, value in part.items()}
    if isinstance(reference := keywords.get("$ref"), str):
        keywords["$ref"] = reference.replace("#/$defs/", "#/definitions/")
    return keywords


def described(key: Key) -> str:
    """Return the meaning of a key without Markdown's links."""
    return without_links(key.meaning)


def _with_forms(schema: dict[str, Any], key: Key, registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a key: what its type says, and the forms of its value or of the members of its list."""
    if not key.forms:
        return schema
    forms: list[dict[str, Any]] = []
    for form in key.forms:
        if isinstance(form, str):
            forms.append(GRAMMARS[form](registry, definitions))
        else:
            forms.append(dict(form) if isinstance(form, Mapping) else _schema(form, definitions))
    forms = [each for form in forms for each in (form["anyOf"] if form.keys() == {"anyOf"} else [form])]
    choice = forms[0] if len(forms) == 1 else {"anyOf": forms}
    if any(get_origin(kind) is list for kind in (key.type, *get_args(key.type))):
        return {**schema, "items": choice, **({"minItems": key.least} if key.least else {})}
    return {**choice, **({"default": key.default} if key.default else {})}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = TypeAdapter(kind).json_schema()
    definitions.update(schema.pop("$defs", {}))
    return _without_titles(schema)


def _without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the titles that pydantic derives from field names: they add nothing."""
    result = {key: value for key, value in schema.items() if key not in ("title", "properties")}
    if "properties" in schema:
        result["properties"] = {name: _without_titles(each) for name, each in schema["properties"].items()}
    return result


def _limits(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    limit = {"anyOf": [{"type": "number"}, _schema(ENTRIES["limit"], definitions)]}
    return {"type": "object", "additionalProperties": limit}


def _case(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    case = _schema(ENTRIES["case"], definitions)
    case["properties"]["thresholds"] = _limits(registry, definitions)
    case["properties"]["checks"] = {"type": "array", "items": {"$ref": "#/$defs/Check"}}
    return case


def _cascade(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    judge = {"anyOf": [{"type": "string"}, _schema(JudgeSpec, definitions)]}
    cascade = _schema(CascadeRule, definitions)
    cascade["properties"] = {"first": judge, "then": judge, **cascade["properties"]}
    cascade["required"] = ["first", "then", "when"]
    return cascade


_TARGETS: Final = [{"required": [kind]} for kind in ("python", "http", "command")]


def _target(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    alone = {"required": ["concurrency"], "not": {"anyOf": _TARGETS}}
    return {**_schema(TargetSpec, definitions), "oneOf": [*_TARGETS, alone]}


def _systems(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    target = {**_schema(TargetSpec, definitions), "oneOf": _TARGETS}
    model = {**_schema(ENTRIES["model"], definitions), "required": ["model"]}
    system = {"anyOf": [{"type": "string"}, target, _schema(ENTRIES["predictions"], definitions), model]}
    named = {"matrix": _schema(ENTRIES["matrix"], definitions)}
    return {"type": "object", "properties": named, "additionalProperties": system}


def _evaluators(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    choices: list[dict[str, Any]] = [{"enum": list(registry)}]
    beside = {
        "as": {"type": "string", "description": "Another name, under which its metrics are reported"},
        "on": {"type": "string", "description": "The part of the prediction that it reads, or a JMESPath"},
        "turn": {
            "anyOf": [{"enum": ["last", "each"]}, {"type": "integer", "minimum": 1}],
            "description": "The turns of a conversation that it reads",
        },
    }
    for name in registry:
        options = _schema(registry.get(name), definitions)
        options["properties"] = {**options.get("properties", {}), **beside}
        choices.append(
            {
                "type": "object",
                "properties": {name: {"anyOf": [options, {"type": "null"}]}, **beside},
                "required": [name],
                "additionalProperties": False,
            }
        )
    return {"anyOf": choices}


def _check(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one check: a name alone, or an object with one kind of check and what modifies it."""
    some = {"type": "array", "items": {"$ref": "#/$defs/Check"}, "minItems": 1}
    several = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "of": some},
        "required": ["n", "of"],
        "additionalProperties": False,
    }
    kinds: dict[str, Any] = {"any_of": some, "all_of": some, "at_least": several}
    for name, kind in registry.checks.items():
        kinds[name] = {**_argument(kind, definitions), "description": kind.meaning}
    properties = {prefix + name: each for prefix in ("", "not_") for name, each in kinds.items()}
    modifiers = {
        "name": {"type": "string"},
        "on": {"type": "string"},
        "turn": {"anyOf": [{"enum": ["last", "each"]}, {"type": "integer", "minimum": 1}]},
        "weight": {"exclusiveMinimum": 0, "type": "number"},
    }
    bare = [prefix + name for prefix in ("", "not_") for name, kind in registry.checks.items() if kind.bare]
    return {
        "anyOf": [
            {"enum": bare},
            {
                "type": "object",
                "properties": {**properties, **modifiers},
                "oneOf": [{"required": [name]} for name in properties],
                "additionalProperties": False,
            },
        ]
    }


def _argument(kind: "CheckKind", definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the argument of a kind of check."""
    nothing: dict[str, Any] = {"enum": [None, True]}
    if kind.argument is None:
        return nothing
    argument = {"type": ["object", "boolean", "string"]} if kind.schema else _schema(kind.argument, definitions)
    if kind.each:
        argument = {"anyOf": [argument, {"type": "array", "items": argument, "minItems": 1}]}
    return {"anyOf": [argument, nothing]} if kind.optional else argument


def _snapshot(_: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    tolerance = {"anyOf": [{"type": "number", "minimum": 0}, _schema(ENTRIES["tolerance"], definitions)]}
    mapping = _schema(ENTRIES["snapshot"], definitions)
    mapping["properties"]["tolerance"] = {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "object", "additionalProperties": tolerance},
            {"type": "null"},
        ]
    }
    return mapping


def _sources(registry: Registry, definitions: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [_source(registry, name, definitions) for name in registry.sources]}


def _source(registry: Registry, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _schema(registry.source(name), definitions)
    schema["properties"] = {"format": {"const": name}, **schema.get("properties", {})}
    schema["required"] = ["format", *schema.get("required", [])]
    return schema


GRAMMARS: Final[Mapping[str, Callable[[Registry, dict[str, Any]], dict[str, Any]]]] = {
    "cascade": _cascade,
    "case": _case,
    "check": lambda *_: {"$ref": "#/$defs/Check"},
    "evaluator": _evaluators,
    "gate": lambda *_: gate_schema(),
    "limits": _limits,
    "snapshot": _snapshot,
    "source": _sources,
    "systems": _systems,
    "target": _target,
}
"""Name of a form in the table of keys to its schema."""


def add_schema(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "Print the JSON Schema of suite files, or that of the rows of a source."
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="a source with a published form, such as results")
    parser.set_defaults(run=_print_schema)


def _print_schema(options: Namespace) -> CommandResult:
    registry = default_registry()
    schema = suite_schema(registry) if options.source is None else registry.source(options.source).row_schema()
    if schema is None:
        raise LlmevalError(f"found source {options.source!r}, expected one with a published form, such as results")
    return CommandResult(0, {"schema": schema}, json.dumps(schema, indent=2).split("\n"))


def add_evaluators(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "List evaluators with their metrics, checks, and sources. With a NAME, the metrics of that evaluator, a line "
        "each, with direction and signature: how they are computed by default."
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="an evaluator; those that it consists of, such as NAME.part, are listed too",
    )
    parser.set_defaults(run=_list_evaluators)


def _list_evaluators(options: Namespace) -> CommandResult:
    registry = default_registry()
    start = f"{options.name}."
    names = [each for each in registry if options.name in (None, each) or each.startswith(start)]
    if not names:
        raise LlmevalError(unknown_name("evaluator", options.name, registry))
    data = {
        "evaluators": {name: _metric_data(_metrics(registry, name)) for name in names},
        "checks": list(registry.checks),
        "sources": list(registry.sources),
    }
    details = (line for name in names for line in _details(registry, name))
    return CommandResult(0, data, _overview(registry) if options.name is None else details)


def _metric_data(metrics: list[Metric] | str) -> Any:
    """Return metrics as data, or why there are none."""
    if isinstance(metrics, str):
        return metrics
    return [{key: getattr(metric, key) for key in ("name", "higher_is_better", "signature")} for metric in metrics]


_COMMON = ("text", "judge", "claims", "classification", "semantic", "fields", "tools", "conversation")


def _overview(registry: Registry) -> Iterator[str]:
    """Yield the evaluators, those that most suites use first, then the checks and the sources."""
    for name in sorted(registry, key=lambda name: _COMMON.index(name) if name in _COMMON else len(_COMMON)):
        yield name
        metrics = _metrics(registry, name)
        yield from _indented(", ".join(map(_with_direction, metrics)) if not isinstance(metrics, str) else metrics)
    yield ""
    yield "checks"
    yield from _indented(", ".join(registry.checks))
    yield ""
    yield "sources"
    yield from _indented(", ".join(registry.sources))
    yield ""
    yield "(-): lower is better. How a metric is computed: llmeval evaluators NAME"


def _details(registry: Registry, name: str) -> Iterator[str]:
    yield name
    metrics = _metrics(registry, name)
    if isinstance(metrics, str):
        yield from _indented(metrics)
        return
    width = max((len(each.name) for each in metrics), default=0)
    for metric in metrics:
        direction = "higher" if metric.higher_is_better else "lower"
        head = f"{_INDENT}{metric.name:{width}}{_GAP}{direction:6}{_GAP}"
        for part in _parts(metric.signature, _WIDTH - len(head)):
            yield f"{head}{part}".rstrip()
            head = " " * len(head)


def _metrics(registry: Registry, name: str) -> list[Metric] | str:
    """Return the metrics of an evaluator with its default options, chosen ones included, or why there are none."""
    try:
        return list(widest(registry.get(name), {}).describe())
    except ValidationError as error:
        faults = (option_fault(each, registry.get(name)) for each in error.errors(include_url=False))
        return f"its metrics depend on options: {'; '.join(faults)}"
    except EvaluatorError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (one evaluator's bug does not hide the others)
        return f"cannot be listed: {format_error(error)}"


def _with_direction(metric: Metric) -> str:
    return metric.name if metric.higher_is_better else f"{metric.name} (-)"


def _indented(text: str) -> Iterable[str]:
    return wrap(
        text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )


def _parts(signature: str, width: int) -> list[str]:
    """Break a signature after separators into parts that fit, if possible."""
    parts = [""]
    for piece in re.findall(r"[^|,]*[|,]?", signature):
        if parts[-1] and len(parts[-1]) + len(piece) > width:
            parts.append("")
        parts[-1] += piece
    return parts


def add_explain(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval explain``."""
    parser.description = (
        "Say what the code of a fault means and what to do. The output of 'llmeval --json' and of "
        "--llmeval-report=agent has the codes. Without one, list all."
    )
    parser.add_argument("code", nargs="?", metavar="CODE", help="such as LE101, or a message in quotes")
    parser.set_defaults(run=_explain)


@cache
def fault_codes() -> Mapping[str, Mapping[str, str]]:
    """Return title, meaning and remedy of each kind of fault, by its code."""
    path = Path(__file__).parent / "templates" / "faults.yaml"
    codes: Mapping[str, Mapping[str, str]] = read_document(path, path.name).data
    return codes


def _explain(options: Namespace) -> CommandResult:
    codes, code = fault_codes(), (options.code or "").upper()
    if code and code not in codes:
        if " " not in options.code:
            raise LlmevalError(unknown_name("code", code, codes))
        code = code_of(options.code)
    data = [{"code": name, **each} for name, each in codes.items() if code in ("", name)]
    if not code:
        return CommandResult(0, {"codes": data}, [f"{name}  {each['title']}" for name, each in codes.items()])
    about = codes[code]
    fix = wrap(f"What to do: {about['remedy']}", _WIDTH)
    return CommandResult(0, {"codes": data}, [f"{code}: {about['title']}", *wrap(about["meaning"], _WIDTH), "", *fix])


def add_validate(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval validate``."""
    parser.description = (
        "List every fault of suite files and of the files that they name, without running them. The exit code is 1 if "
        "there are faults."
    )
    parser.add_argument(
        "suites", nargs="+", type=Path, metavar="SUITE", help=f"a suite file, or a folder with {', '.join(SUITE_FILES)}"
    )
    parser.set_defaults(run=_validate)


def _validate(options: Namespace) -> CommandResult:
    suites: list[dict[str, Any]] = []
    lines: list[object] = []
    paths = dict.fromkeys(path for place in options.suites for path in _files(place))
    foreign = [str(path) for path in paths if is_foreign(path)]
    if foreign:
        lines.append(left_alone(foreign))
    for path in paths:
        if str(path) in foreign:
            continue
        faults, suite = _faults(path)
        unknown = dict.fromkeys(fault.unregistered for fault in faults if fault.unregistered)
        if unknown and (conftest := _registering_conftest(path)) is not None:  # which this command does not run
            faults = [fault for fault in faults if not fault.unregistered]
            lines.append(f"{path}: left to pytest, for what {conftest.name} registers: {', '.join(unknown)}")
        remarks = [f"{path}: {remark}" for remark in _remarks(suite)] if suite is not None else []
        if faults:
            lines += [*faults, *notes(path, faults)]
        elif suite is not None:
            sampled = "" if suite.sample is None else f", {suite.sample.report}"
            lines.append(f"{path}: no fault in {counted(len(suite.cases), 'case')}{sampled}")
        lines += remarks
        cases = None if suite is None else len(suite.cases)
        suites.append({"path": path.as_posix(), "cases": cases, "faults": len(faults), "remarks": remarks})
    if number := sum(each["faults"] for each in suites):
        lines.append(counted(number, "fault"))
    return CommandResult(1 if number else 0, {"suites": suites}, lines)


def _remarks(suite: LoadedSuite) -> Iterator[str]:
    """Yield warnings and notes about a suite."""
    if not suite.can_fail and not (suite.snapshot and suite.snapshot.enabled):
        yield f"warning: {suite.cannot_fail}"
    yield from (f"note: {each}" for each in (*suite.notes, *_never_decided(suite)))
    yield from (f"warning: {each}" for each in unmet_by_expected(suite))
    if suite.stop is not None and (fault := suite.stop_fault()):
        yield f"note: it runs to its end: {fault}"
    yield from (f"warning: {place} is retired according to the installed genai-prices" for place in _retired(suite))


def _never_decided(suite: LoadedSuite) -> Iterator[str]:
    """Yield the gates on drops that cannot decide with the cases that there are."""

    def units(label: str | None) -> int:
        return len({case.labels.get(label, f"case {case.id}") if label else case.id for case in suite.cases})

    return never_decided([gate for gate in suite.regressions if not gate.against], units)


def _retired(suite: LoadedSuite) -> Iterator[str]:
    """Yield place and name of each model that is retired."""
    models = [
        (f"systems.{name}", system.model.spec) for name, system in suite.systems.items() if system.model is not None
    ]
    for place, spec in [*(("judge", each) for each in jurors_of(suite.judge)), *models]:
        if is_retired(spec):
            yield f"{place}: {spec.model!r}"


def _files(place: Path) -> Iterator[Path]:
    """Yield a file, or the suite files below a folder.

    Raises:
        LlmevalError: The folder has none.
    """
    if not place.is_dir():
        yield place
        return
    suites = list(named_files(place))
    if not suites:
        raise LlmevalError(no_suite(place))
    yield from suites


def _faults(path: Path) -> tuple[list[Fault], LoadedSuite | None]:
    """Return the faults of a suite file, and the suite unless they affect all of it."""
    try:
        suite = open_suite(path)
    except SuiteError as error:
        return list(error.faults), None
    return list(suite.faults), suite


def add_inputs(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval inputs``."""
    parser.description = (
        "Print the id and the input of every case as JSONL. Your engine writes a file of predictions: lines "
        "with the same id and a prediction. Ground truth is left out."
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="the suite file")
    parser.set_defaults(run=_inputs)


def _inputs(options: Namespace) -> CommandResult:
    suite = open_noted(options.suite)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    # Of several systems, some may lack cases that others have.
    every = [*suite.cases, *(case for system in suite.systems.values() for case in system.cases)]
    inputs = [{"id": name, "input": value} for name, value in {case.id: case.input for case in every}.items()]
    return CommandResult(
        0, {"inputs": inputs}, text="".join(f"{unobeyed_json(json.dumps(input_))}\n" for input_ in inputs)
    )


def never_decided(gates: Sequence[ChangeGate], units: Callable[[str | None], int]) -> Iterator[str]:
    """Yield the gates to which no drop is significant, however large, with the reason; those by groups aside.

    Args:
        gates: Of a suite.
        units: Returns the number of clusters by a label, or of cases for ``None``.
    """
    yield from (f"{gate}: {why}" for gate in gates if (why := gate.never_decides(units)))


_REGISTERS: Final = "pytest_llmeval_register"
"""The hook by which a conftest.py registers evaluators, sources and checks."""


def _registering_conftest(path: Path) -> Path | None:
    """Return the nearest conftest.py above a suite file that registers something; ``None`` if none does."""
    for folder in path.resolve().parents:
        conftest = folder / "conftest.py"
        with suppress(OSError):
            if _REGISTERS in conftest.read_text(encoding="utf-8", errors="replace"):
                return conftest
    return None
