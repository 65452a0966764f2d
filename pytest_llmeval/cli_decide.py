"""The subcommand ``decide`` of ``llmeval``: changed thresholds and gates on recorded scores."""

__all__ = ("add_commands",)

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.console import say
from pytest_llmeval.errors import SuiteError
from pytest_llmeval.numbers import counted

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from pytest_llmeval.decide import Decision
    from pytest_llmeval.recorded import RecordedSuite

_DECIDE = (
    "Applies the thresholds and gates of a suite file to the scores of a report, without running anything. The exit "
    "code is 0 if all hold, 1 if one does not, 2 if a file cannot be used, and 3 if no more can be said than a report "
    "knows: of new metrics, other cases or a baseline it knows nothing."
)
_UNKNOWN_HERE = (
    "evaluators that a conftest.py registers are not known to this command, only those of installed packages: run the "
    "suite"
)
_UNDECIDED = 3
_SHOWN = 20


def add_commands(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add the subcommand; it sets ``run``, which takes the options and returns the exit code."""
    decide = commands.add_parser("decide", help="apply changed thresholds and gates to a report", description=_DECIDE)
    decide.add_argument("report", type=Path, help="JSON report of a run of the suite")
    decide.add_argument("suite", type=Path, help="suite file, with the thresholds and gates to apply")
    decide.set_defaults(run=_decide)


def _decide(options: Namespace) -> int:
    from pytest_llmeval.decide import decide
    from pytest_llmeval.loading import load_suite
    from pytest_llmeval.recorded import read_report
    from pytest_llmeval.registry import default_registry

    try:
        recorded = _recorded(read_report(options.report), options.suite)
        here = Path.cwd()
        root = here if options.suite.resolve().is_relative_to(here) else options.suite.resolve().parent
        suite = load_suite(options.suite, default_registry(), root=root, shown=str(options.suite))
    except SuiteError as error:
        say(error.problems, error=True)
        if any(problem.path.startswith("evaluators[") for problem in error.problems):
            say([_UNKNOWN_HERE], error=True)
        return 2
    if not recorded:
        say([f"{options.report}: found no results of {options.suite}, expected some"], error=True)
        return 2
    decisions = [decide(each, suite) for each in recorded]
    for each, decision in zip(recorded, decisions, strict=True):
        say(_lines(each, decision))
    if any(decision.failed for decision in decisions):
        return 1
    return _UNDECIDED if any(decision.undecided for decision in decisions) else 0


def _recorded(suites: "Sequence[RecordedSuite]", path: Path) -> "list[RecordedSuite]":
    """Return the results of a suite file: the report names it from the folder in which pytest ran."""
    whole = path.resolve().parts
    named = [suite for suite in suites if whole[-len(Path(suite.path).parts) :] == Path(suite.path).parts]
    longest = max((len(Path(suite.path).parts) for suite in named), default=0)
    return [suite for suite in named if len(Path(suite.path).parts) == longest]


def _lines(recorded: "RecordedSuite", decision: "Decision") -> Iterator[str]:
    outcomes = list(decision.cases.values())
    counts = ", ".join(f"{outcomes.count(each)} {each.replace('_', ' ')}" for each in dict.fromkeys(outcomes))
    yield f"{recorded.suite} ({recorded.path}): {counted(len(outcomes), 'case')}: {counts or 'none'}"
    for number, (name, before) in enumerate(decision.changed.items()):
        if number == _SHOWN:
            yield f"and {len(decision.changed) - _SHOWN} more that changed"
            break
        reason = f"  ({decision.reasons[name]})" if name in decision.reasons else ""
        yield f"case {name}: {before} -> {decision.cases[name]}{reason}"
    for gate in decision.gates:
        yield f"gate {gate.outcome.upper()}  {gate.gate}  ({gate.reason})"
    yield from (f"UNDECIDED  {each}" for each in decision.undecided)
