"""Why a run does not pass although nothing in it failed: it was cut short, or gates were not judged."""

__all__ = ("shortfalls",)

from collections.abc import Iterator

from pytest_llmeval.core.wording import counted
from pytest_llmeval.run.judging import JudgedRun

REQUIRE_GATES = "--llmeval-require-gates"
_LISTED = 5


def shortfalls(
    judged: JudgedRun, *, broken: str, unfinished: int, require_gates: bool, swallowed: int = 0
) -> Iterator[str]:
    """Yield the reasons, one line each.

    Args:
        judged: The verdicts on the run.
        broken: Why the run ended early, or lost a worker; empty if it did not.
        unfinished: How many tests over cases were selected and have no result.
        require_gates: Whether gates must be judged even if the user selected a part of the cases.
        swallowed: How many tests over cases were left out, not by options of pytest, but by another plugin.
    """
    if unfinished:
        yield f"{counted(unfinished, 'selected test')} of eval suites did not run: {broken or 'they sent no report'}"
    if broken:
        yield from _failures(judged)
    gates = [(each.key.shown, gate) for each in judged.suites for gate in each.report.gates]
    waiting = [f"{shown}: {gate.gate} ({gate.reason})" for shown, gate in gates if gate.outcome == "not_judged"]
    if swallowed and waiting:
        yield (
            f"{counted(len(waiting), 'gate')} not judged: a plugin deselected {counted(swallowed, 'test')} of eval "
            "suites. If these run elsewhere, keep the results of each part with --llmeval-report=PART.llmeval, and "
            "judge them together with 'llmeval merge'"
        )
    if not require_gates:
        return
    if not gates:
        yield f"{REQUIRE_GATES}: no gate was judged: found no suite with gates, expected at least one"
    yield from (f"{REQUIRE_GATES}: {each}" for each in waiting[:_LISTED])
    if len(waiting) > _LISTED:
        yield f"{REQUIRE_GATES}: ... and {counted(len(waiting) - _LISTED, 'gate')} more"


def _failures(judged: JudgedRun) -> Iterator[str]:
    """Yield what failed, which the exit code of a run that was told to end does not show."""
    records = [record for each in judged.suites for record in each.report.result.records]
    if failed := sum(record.outcome in ("failed", "errored") for record in records):
        yield f"{counted(failed, 'case')} failed before the run ended early"
    if failed := sum(each.verdict.outcome == "failed" for each in judged.verdicts):
        yield f"{counted(failed, 'verdict')} on gates and snapshots failed in a run that ended early"
