"""Help for authors of suites."""

import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from pydantic import ValidationError

from pytest_llmeval.cli import CommandResult, SuitePatterns, left_alone
from pytest_llmeval.core import (
    AnyError,
    EvaluatorError,
    Fault,
    LlmevalError,
    Metric,
    SuiteError,
    counted,
    unknown_name,
)
from pytest_llmeval.data import DeclaredType, InputFile
from pytest_llmeval.gates import ChangeGate
from pytest_llmeval.run import unmet_by_expected
from pytest_llmeval.suites import (
    LoadedSuite,
    Registry,
    is_foreign,
    load_suite,
    suite_schema,
)
from pytest_llmeval.workbench._console import named_files, notes, open_noted

_WIDTH = 80
_INDENT = "  "
_GAP = "  "


def add_schema(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval schema``."""
    parser.description = "Print the JSON Schema of suite files, or that of the rows of a source."
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="a source with a published form, such as results")
    parser.set_defaults(run=_print_schema)


def _print_schema(options: Namespace) -> CommandResult:
    """Run ``llmeval schema``: print the JSON schema of suite files, or of the rows of a source."""
    registry = Registry.installed()
    schema = suite_schema(registry) if options.source is None else registry.source(options.source).row_schema()
    if schema is None:
        raise LlmevalError(f"found source {options.source!r}, expected one with a published form, such as results")
    return CommandResult(0, {"schema": schema}, json.dumps(schema, indent=2).split("\n"))


def add_evaluators(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval evaluators``."""
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
    """Run ``llmeval evaluators``: list the registered evaluators, or one of them with its metrics."""
    registry = Registry.installed()
    start = f"{options.name}."
    names = [name for name in registry if options.name in (None, name) or name.startswith(start)]
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
    """The metrics of an evaluator as JSON data, or the reason why they cannot be listed."""
    if isinstance(metrics, str):
        return metrics
    return [{key: getattr(metric, key) for key in ("name", "higher_is_better", "signature")} for metric in metrics]


_COMMON = ("text", "judge", "claims", "classification", "semantic", "fields", "tools", "conversation")


def _overview(registry: Registry) -> Iterator[str]:
    """Yield the lines of ``llmeval evaluators``: evaluators, the most used first, then checks and sources."""
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
    """Yield the lines of ``llmeval evaluators NAME``: an evaluator and its metrics with their directions."""
    yield name
    metrics = _metrics(registry, name)
    if isinstance(metrics, str):
        yield from _indented(metrics)
        return
    width = max((len(metric.name) for metric in metrics), default=0)
    for metric in metrics:
        direction = "higher" if metric.higher_is_better else "lower"
        head = f"{_INDENT}{metric.name:{width}}{_GAP}{direction:6}{_GAP}"
        for part in _parts(metric.signature, _WIDTH - len(head)):
            yield f"{head}{part}".rstrip()
            head = " " * len(head)


def _metrics(registry: Registry, name: str) -> list[Metric] | str:
    """The metrics of an evaluator with default options, or the reason why they cannot be listed."""
    try:
        return registry.metrics_of(name)
    except ValidationError as error:
        faults = DeclaredType(registry.get(name)).option_faults(error)
        return f"its metrics depend on options: {'; '.join(faults)}"
    except EvaluatorError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (one evaluator's bug does not hide the others)
        return f"cannot be listed: {AnyError(error).text}"


def _with_direction(metric: Metric) -> str:
    """The name of a metric in the overview of evaluators, marked with ``(-)`` if lower is better."""
    return metric.name if metric.higher_is_better else f"{metric.name} (-)"


def _indented(text: str) -> Iterable[str]:
    """Wrap a text below the name of an evaluator in the list of ``llmeval evaluators``."""
    return wrap(
        text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )


def _parts(signature: str, width: int) -> list[str]:
    """Break the signature of a metric after separators into parts that fit a column."""
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
    """The title, meaning and remedy of each kind of fault in a suite file, by its code."""
    path = Path(__file__).parent / "templates" / "faults.yaml"
    codes: Mapping[str, Mapping[str, str]] = InputFile(path, path.name).read_document().data
    return codes


def _explain(options: Namespace) -> CommandResult:
    """Run ``llmeval explain``: print title, meaning and remedy of a fault code, or list all codes."""
    codes, code = fault_codes(), (options.code or "").upper()
    if code and code not in codes:
        if " " not in options.code:
            raise LlmevalError(unknown_name("code", code, codes))
        code = Fault.code_of(options.code)
    data = [{"code": name, **entry} for name, entry in codes.items() if code in ("", name)]
    if not code:
        return CommandResult(0, {"codes": data}, [f"{name}  {entry['title']}" for name, entry in codes.items()])
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
        "suites",
        nargs="+",
        type=Path,
        metavar="SUITE",
        help=f"a suite file, or a folder with {', '.join(SuitePatterns.SHIPPED)}",
    )
    parser.set_defaults(run=_validate)


def _validate(options: Namespace) -> CommandResult:
    """Run ``llmeval validate``: print the faults, warnings and notes of suite files."""
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
    if number := sum(checked_suite["faults"] for checked_suite in suites):
        lines.append(counted(number, "fault"))
    return CommandResult(1 if number else 0, {"suites": suites}, lines)


def _remarks(suite: LoadedSuite) -> Iterator[str]:
    """Yield the warnings and notes of ``llmeval validate`` about a suite."""
    if not suite.can_fail and not (suite.snapshot and suite.snapshot.enabled):
        yield f"warning: {suite.cannot_fail}"
    yield from (f"note: {remark}" for remark in (*suite.notes, *_never_decided(suite)))
    yield from (f"warning: {warning}" for warning in unmet_by_expected(suite))
    if suite.stop is not None and (fault := suite.stop_fault()):
        yield f"note: it runs to its end: {fault}"
    yield from (f"warning: {place} is retired according to the installed genai-prices" for place in _retired(suite))


def _never_decided(suite: LoadedSuite) -> Iterator[str]:
    """Yield a suite's gates on drops that its number of cases can never decide."""

    def units(label: str | None) -> int:
        return len({case.labels.get(label, f"case {case.id}") if label else case.id for case in suite.cases})

    return never_decided([gate for gate in suite.regressions if not gate.against], units)


def _retired(suite: LoadedSuite) -> Iterator[str]:
    """Yield the models of a suite that are retired, each with the key that names it."""
    models = [
        (f"systems.{name}", system.model.spec) for name, system in suite.systems.items() if system.model is not None
    ]
    for place, spec in [*(("judge", juror) for juror in suite.judge.jurors), *models]:
        if spec.is_retired:
            yield f"{place}: {spec.model!r}"


def _files(place: Path) -> Iterator[Path]:
    """Yield a suite file, or the suite files below a folder, for ``llmeval validate``.

    Raises:
        LlmevalError: The folder has none.
    """
    if not place.is_dir():
        yield place
        return
    suites = list(named_files(place))
    if not suites:
        raise LlmevalError(SuitePatterns.SHIPPED.none_below(place))
    yield from suites


def _faults(path: Path) -> tuple[list[Fault], LoadedSuite | None]:
    """The faults of a suite file, and the loaded suite unless they affect all of it."""
    try:
        suite = load_suite(path)
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
    """Run ``llmeval inputs``: print the ids and inputs of the cases of a suite, for another program to answer."""
    suite = open_noted(options.suite)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    # Of several systems, some may lack cases that others have.
    every = [*suite.cases, *(case for system in suite.systems.values() for case in system.cases)]
    inputs = [{"id": name, "input": value} for name, value in {case.id: case.input for case in every}.items()]
    return CommandResult.of_rows("inputs", inputs)


def never_decided(gates: Sequence[ChangeGate], units: Callable[[str | None], int]) -> Iterator[str]:
    """Yield gates on drops for which no drop is significant with so few cases, with the reason.

    Args:
        gates: Of a suite.
        units: Returns the number of clusters by a label, or of cases for ``None``.
    """
    yield from (f"{gate}: {why}" for gate in gates if (why := gate.never_decides(units)))


_REGISTERS: Final = "pytest_llmeval_register"
"""The hook by which a conftest.py registers evaluators, sources and checks."""


def _registering_conftest(path: Path) -> Path | None:
    """The nearest conftest.py above a suite file that registers evaluators or other names; ``None`` if none does."""
    for folder in path.resolve().parents:
        conftest = folder / "conftest.py"
        with suppress(OSError):
            if _REGISTERS in conftest.read_text(encoding="utf-8", errors="replace"):
                return conftest
    return None
