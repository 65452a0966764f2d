"""The command ``llmeval evaluators``: evaluators, metrics and sources, formatted for the terminal."""

__all__ = ("add_arguments",)

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, get_args, get_type_hints

from pytest_llmeval.cli.console import say
from pytest_llmeval.core.errors import EvaluatorError, LlmevalError, format_error
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.suite.registry import Registry, default_registry

if TYPE_CHECKING:
    from pytest_llmeval.core.evaluator import Metric

_WIDTH = 80
_INDENT = "  "
_GAP = "  "


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "List evaluators with their metrics, checks, and sources. With a NAME, the metrics of that evaluator, a line "
        "each, with direction and signature: how they are computed by default."
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="an evaluator; its parts, such as NAME.part, are listed too"
    )
    parser.set_defaults(run=_evaluators)


def _evaluators(options: Namespace) -> int:
    registry = default_registry()
    if options.name is None:
        say(_overview(registry))
        return 0
    names = [each for each in registry if each == options.name or each.startswith(f"{options.name}.")]
    if not names:
        raise LlmevalError(unknown_name("evaluator", options.name, registry))
    say(line for name in names for line in _details(registry, name))
    return 0


def _overview(registry: Registry) -> Iterator[str]:
    for name in registry:
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


def _metrics(registry: Registry, name: str) -> "list[Metric] | str":
    """Return the metrics of an evaluator with its default options, chosen ones included, or why there are none."""
    from pydantic import ValidationError

    from pytest_llmeval.data.files.validation import option_fault
    from pytest_llmeval.suite.registry import build

    try:
        made = registry.get(name)
        chosen = _choices(made)
        return list(build(made, {"metrics": chosen} if chosen else {}).describe())
    except ValidationError as error:
        faults = (option_fault(each, registry.get(name)) for each in error.errors(include_url=False))
        return f"its metrics depend on options: {'; '.join(faults)}"
    except EvaluatorError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (one evaluator's bug does not hide the others)
        return f"cannot be listed: {format_error(error)}"


def _choices(made: object) -> tuple[str, ...]:
    """Return all values of the option ``metrics``; empty if there is no such option, or it takes any text."""
    try:
        items, *_ = get_args(get_type_hints(made).get("metrics"))
    except (NameError, TypeError, ValueError):  # hints of users that only type checkers can resolve
        return ()
    return get_args(items)


def _with_direction(metric: "Metric") -> str:
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
