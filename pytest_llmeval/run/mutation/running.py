"""Mutants of the answers of a run, at its end."""

__all__ = ("mutate_run",)

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.baselines.runs import SuiteRun
from pytest_llmeval.reports.mutation import Survival
from pytest_llmeval.run.collecting import RunTerms, Suites, fault_of
from pytest_llmeval.run.mutation.making import Mutation
from pytest_llmeval.run.mutation.survival import survival_of
from pytest_llmeval.targets.python import WITHHELD


def mutate_run(
    judged: Sequence[SuiteRun], suites: Suites, terms: RunTerms, seed: int
) -> tuple[list[Survival], list[str]]:
    """Return what the suites of a run would notice of wrong answers, and why some were not tried.

    Neither targets nor judges are asked, and no verdict changes. Suites that Python tests run are left out: their
    assertions are unknown here.

    Args:
        judged: The suites with their records, which carry the predictions.
        suites: Know the mutators of each suite.
        terms: The options.
        seed: Of everything random.
    """
    if terms.shard:
        return [], ["no mutants were made: 'llmeval merge --mutate' makes those of all shards"]
    found, notes = [], []
    for each in judged:
        name = each.report.suite
        if each.key.test:
            notes.append(f"{name}: no mutants, since a Python test decides what passes")
            continue
        try:
            mutators = suites.registry(Path(each.key.path)).mutators
            mutation = Mutation(each.suite, name, mutators, _answers(each), seed, each.key.shown)
            found.append(survival_of(mutation))
        except Exception as error:  # noqa: BLE001 (a user's evaluator or mutator costs its own suite only)
            notes.append(f"{each.key.shown}: no mutants: {fault_of(error)}")
    return found, notes


def _answers(suite: SuiteRun) -> Mapping[str, Any]:
    """Return the first answer of each case, as it was recorded for the end of the run; none that has a secret."""
    rows = [row for record in suite.records for row in record.recordings if not row.get("repeat", 0)]
    return {row["case"]: row["prediction"] for row in rows if not row.get(WITHHELD)}
