"""The command ``llmeval mutate``: whether a suite would notice wrong answers."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.cli import OPTIONS, CommandResult, NumberArgument, say
from pytest_llmeval.core import LlmevalError, counted
from pytest_llmeval.data import display_path
from pytest_llmeval.reports import Survival, published
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey, load_suite
from pytest_llmeval.targets import Recordings
from pytest_llmeval.workbench._console import open_noted, refuse_input, suite_files
from pytest_llmeval.workbench._judge import judge_options
from pytest_llmeval.workbench._project import changed_files, fork_point
from pytest_llmeval.workbench.mutation._mutants import JudgedScorer, Mutation, mutation_of
from pytest_llmeval.workbench.mutation._survival import survival_of

_WIDTH = 120
_CACHE = ".llmeval/mutants.sqlite3"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval mutate``."""
    parser.description = (
        "Make recorded answers of a suite wrong, and score the mutants with its own evaluators, checks, thresholds and "
        "gates. Kinds that it does not notice are listed. Equivalent rewrites, which must not fail, are also tried. No "
        "target is asked, and no judge without --judges."
    )
    parser.add_argument(
        "suite", type=Path, nargs="?", metavar="SUITE", help="a suite file whose cases have predictions"
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="every suite that differs from the base, in its file or its data files; --fail-over is then 0.2, and a "
        "suite that has no answers to change fails",
    )
    parser.add_argument("--base", metavar="REF", help="with --changed: as llmeval guard")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument("--fail-over", type=_share, metavar="SHARE", help="exit code 1 if more mutants survive, in all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file, too")
    parser.add_argument("--judges", action="store_true", help="let judges score mutants; the plan of it is shown first")
    parser.add_argument("--yes", action="store_true", help="with --judges: do not ask before calling them")
    predictions = OPTIONS["predictions"]._replace(help="answers recorded by --llmeval-predictions")
    help_of_cache = f"cache of their verdicts; default: {_CACHE}"
    cache = OPTIONS["cache"]._replace(default=_CACHE, command_help=help_of_cache)
    OPTIONS.add_to(parser, predictions, "budget", "concurrency", cache)
    parser.set_defaults(run=_mutate)


def _share(text: str) -> float:
    """Parse an option of ``llmeval mutate`` that is a share from 0 to 1."""
    value = NumberArgument()(text)
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"found {text!r}, expected a share from 0 to 1")
    return value


def _mutate(options: Namespace) -> CommandResult:
    """Run ``llmeval mutate``: break recorded answers and list the mutants that a suite does not notice."""
    if options.changed is (options.suite is not None):
        raise LlmevalError("expected a SUITE or --changed, and not both")
    paths = _changed_suites(options.base) if options.changed else [options.suite]
    for path in paths:
        refuse_input(options.json, path, options.predictions)
    if not paths:
        say(["no suite differs from the base"])
    mutations, results, faults = [], [], []
    for path in paths:
        suite = open_noted(path)
        own: list[Mutation] = []
        for system in suite.systems or [None]:
            try:
                answers = _answers(options, path, system or "")
                own.append(mutation_of(suite, Registry.installed().mutators, answers, options.seed, system))
            except LlmevalError as error:  # of several systems, some may have no answers yet
                faults.append(str(error))
        score = _scorer(options, suite, own) if options.judges and own else None
        results += [survival_of(mutation, score) for mutation in own]
        mutations += own
    if paths and not mutations:
        raise LlmevalError("\n".join(faults))
    say(faults, error=True)
    limit = Survival.SHOWN_FROM if options.fail_over is None else options.fail_over
    suites = [{**published(result), "findings": list(result.weaknesses(limit))} for result in results]
    is_judged = options.changed or options.fail_over is not None
    survived = is_judged and any((result.rate or 0.0) > limit for result in results)
    lines = [line for result in results for line in result.lines(limit)]
    return CommandResult(1 if survived or (options.changed and faults) else 0, {"suites": suites}, lines)


def _changed_suites(base: str | None) -> list[Path]:
    """The suite files that differ from the base branch, in themselves or in a data file of their cases."""
    here = Path.cwd()
    changed = set(changed_files(here, fork_point(here, base)))
    paths = [file.relative_to(here) for file in suite_files(here)]

    def data_files(path: Path) -> set[str]:
        try:
            return set(load_suite(path).files.values())
        except LlmevalError:  # `llmeval validate` lists its faults
            return set()

    return [path for path in paths if path.as_posix() in changed or not changed.isdisjoint(data_files(path))]


def _answers(options: Namespace, suite: Path, system: str) -> Mapping[str, Any]:
    """The recorded answers of a system by case, which ``llmeval mutate`` breaks."""
    if options.predictions is None:
        return {}

    rows = Recordings.open(options.predictions, "replay").rows()
    return {
        row["case"]: row["prediction"]
        for row in rows
        if Path(row["suite"]).name == suite.name and row["variant"] == system and not row.get("repeat", 0)
    }


def _scorer(options: Namespace, suite: LoadedSuite, mutations: Sequence[Mutation]) -> JudgedScorer | None:
    """The scorer of mutants that calls the judges, once the user agrees to the cost; ``None`` if no judge is called.

    Raises:
        LlmevalError: The user does not agree, or cannot be asked; or a judge exists in pytest only.
    """
    if not suite.judged:
        say(["--judges: no evaluator of this suite asks a judge"], error=True)
        return None

    key = SuiteKey(str(suite.path), display_path(suite.path, Path.cwd()))
    scorer = JudgedScorer(key, judge_options(options, "mutate"))
    scorer.refuse(suite)
    plan = scorer.plan(mutations)
    say(line.text for line in plan.lines(_WIDTH))
    calls = plan.judge.calls
    if calls and not options.yes:
        _confirm(f"Ask judges: {counted(calls, 'call')}? [y/N] ")
    return scorer


def _confirm(question: str) -> None:
    """Ask the user on a terminal whether judges may be called on mutants.

    Raises:
        LlmevalError: The answer is not yes, or there is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise LlmevalError("--judges cannot ask for consent without a terminal: pass --yes")
    if input(question).strip().lower() not in ("y", "yes"):
        raise LlmevalError("no judge was asked")
