"""The command ``llmeval mutate``: whether a suite would notice wrong answers."""

__all__ = ("add_arguments",)

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.wording import printable

if TYPE_CHECKING:
    from pytest_llmeval.run.mutation.survival import KindOutcome, Survival


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Change the recorded answers of a suite in ways that make them wrong, score the mutants with the suite's own "
        "evaluators, checks, thresholds and gates, and list which kinds it does not notice. Equivalent rewrites, which "
        "must not fail, are tried as well. No target and no judge is asked."
    )
    parser.add_argument("suite", type=Path, metavar="SUITE", help="a suite file whose cases have predictions")
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="answers recorded by --llmeval-predictions")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument("--fail-over", type=_share, metavar="SHARE", help="exit code 1 if more mutants survive, in all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file, too")
    parser.set_defaults(run=_mutate)


def _share(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"found {text!r}, expected a share from 0 to 1")
    return value


def _mutate(options: Namespace) -> int:
    from pytest_llmeval.cli.suite_file import open_noted
    from pytest_llmeval.run.mutation.survival import mutate_suite

    suite = open_noted(options.suite)
    answers = {}
    if options.predictions is not None:
        from pytest_llmeval.targets.python import Recordings

        rows = Recordings.open(options.predictions, "replay").rows()
        shown = options.suite.name
        answers = {
            row["case"]: row["prediction"]
            for row in rows
            if Path(row["suite"]).name == shown and not row["variant"] and not row.get("repeat", 0)
        }
    systems: list[str | None] = [*suite.systems] if suite.systems else [None]
    results = [mutate_suite(suite, answers, options.seed, system) for system in systems]
    limit = _SHOWN if options.fail_over is None else options.fail_over
    for each in results:
        say(map(printable, _lines(each, limit)))
    if options.json is not None:
        data = {"schema_version": 1, "suites": [_as_json(each) for each in results]}
        write_text(options.json, [json.dumps(data, ensure_ascii=False, indent=1), "\n"])
    return 1 if options.fail_over is not None and any((each.rate or 0.0) > limit for each in results) else 0


_SHOWN = 0.2


def _lines(survival: "Survival", limit: float) -> Iterator[str]:
    from tabulate import tabulate

    from pytest_llmeval.run.mutation.survival import findings

    rate = "no answer could be changed" if survival.rate is None else f"{survival.rate:.0%} survive"
    yield f"{survival.suite}: {survival.mutants} mutants, {rate}"
    yield from (f"  {each}" for each in survival.left_out)
    headers = ("mutant", "made", "survive", "95% interval", "and no metric fell of")
    for title, kinds in (("wrong answers", survival.kinds), ("equivalent answers, taken for wrong", survival.rewrites)):
        if kinds:
            rows = [(each.name, each.mutants, f"{each.rate:.0%}", _interval(each), _blind(each)) for each in kinds]
            yield from ("", title, *tabulate(rows, headers, tablefmt="plain", disable_numparse=True).splitlines())
    for each in survival.gates:
        share = f"fails from {each.share:.0%} broken answers on" if each.share is not None else "never fails"
        yield f"gate {each.gate}: {each.unjudged or share}"
    found = list(findings(survival, limit))
    yield ""
    nothing = "nothing to mend was found" if survival.mutants else "so nothing is known of what the suite would notice"
    yield from (f"- {each}" for each in found) if found else (nothing,)


def _interval(kind: "KindOutcome") -> str:
    return f"{kind.low:.0%}..{kind.high:.0%}"


def _blind(kind: "KindOutcome") -> str:
    """Return the evaluators that noticed none of the mutants."""
    return ", ".join(label for label, unmoved in kind.by_evaluator.items() if unmoved == kind.mutants)


def _as_json(survival: "Survival") -> dict[str, Any]:
    from msgspec import to_builtins

    written: dict[str, Any] = to_builtins(survival)
    return {**written, "mutants": survival.mutants, "rate": survival.rate}
