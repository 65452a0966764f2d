"""Mutants of the answers of a run, at its end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from pytest_llmeval.baselines.runs import JudgedSuite
from pytest_llmeval.run.mutation.making import Mutation
from pytest_llmeval.run.mutation.survival import survival_of
from pytest_llmeval.run.stages import Reported, RunScope, fault_of
from pytest_llmeval.targets.recordings import WITHHELD


def add_survival(reported: Reported, scope: RunScope) -> Reported:
    """Add to a report the wrong answers that its suites would notice, and to its notes why some were not tried.

    Neither targets nor judges are asked, and no verdict changes. Suites that Python tests run are left out: their
    assertions are unknown here.
    """
    seed = scope.terms.mutate
    if seed is None:
        return reported
    if scope.terms.shard:
        return _with_notes(reported, ["no mutants were made: 'llmeval merge --mutate' makes those of all shards"])
    found, notes = [], []
    for each, name in zip(reported.judged.suites, (suite.suite for suite in reported.report.suites), strict=True):
        if each.key.test:
            notes.append(f"{name}: no mutants, since a Python test decides what passes")
            continue
        try:
            mutators = scope.suites.registry(Path(each.key.path)).mutators
            mutation = Mutation(each.suite, name, mutators, _answers(each), seed, each.key.shown)
            found.append(survival_of(mutation))
        except Exception as error:  # noqa: BLE001 (a user's evaluator or mutator costs its own suite only)
            notes.append(f"{each.key.shown}: no mutants: {fault_of(error)}")
    return _with_notes(structs.replace(reported, report=structs.replace(reported.report, mutation=found)), notes)


def _with_notes(reported: Reported, notes: Sequence[str]) -> Reported:
    return structs.replace(reported, notes=[*reported.notes, *notes])


def _answers(suite: JudgedSuite) -> Mapping[str, Any]:
    """Return the first answer of each case, as it was recorded for the end of the run; none that has a secret."""
    rows = [row for record in suite.records for row in record.recordings if not row.get("repeat", 0)]
    return {row["case"]: row["prediction"] for row in rows if not row.get(WITHHELD)}
