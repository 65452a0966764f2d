"""Several runs of the same cases as one: what each case scored on average."""

__all__ = ("pooled",)

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from pytest_llmeval.core.observation import Observation, Totals
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.table import OUTCOME, outcome_of


def pooled(runs: Sequence[CaseStatistics]) -> CaseStatistics:
    """Return the runs as one, whose counts are means over the runs.

    A case that errored in some of the runs has the means of the others; cases that the first run does not have are
    left out.

    Args:
        runs: At least one.
    """
    by_id = [{record.id: record for record in run.records} for run in runs]
    cases = [[run[each.id] for run in by_id if each.id in run] for each in runs[0].records]
    return replace(runs[0], records=tuple(map(_mean_record, cases)))


def _mean_record(records: Sequence[CaseRecord]) -> CaseRecord:
    labels = dict.fromkeys(label for record in records for label in record.observations)
    observations = {
        label: _mean([record.observations[label] for record in records if label in record.observations])
        for label in sorted(labels)
    }
    errors = dict(records[0].errors) if all(record.errors for record in records) else {}
    outcomes = [outcome for record in records if (outcome := outcome_of(record)).counts]
    if outcomes:
        observations[OUTCOME] = _mean(outcomes)
    errors = {label: why for label, why in errors.items() if label not in observations}
    return structs.replace(records[0], observations=observations, errors=errors)


def _mean(observations: Sequence[Observation]) -> Observation:
    clean = [each for each in observations if not each.errored]
    if not clean:
        return observations[0]
    undefined = {name: why for name, why in clean[0].undefined.items() if all(name in each.undefined for each in clean)}
    return Observation({name: total / len(clean) for name, total in Totals.of(clean).items()}, undefined=undefined)
