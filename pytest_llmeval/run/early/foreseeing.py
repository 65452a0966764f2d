"""After how many cases suites would stop if their cases scored as those of the last approved run."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_llmeval.baselines.files import approved_scores, score_file
from pytest_llmeval.baselines.runs import CollectedSuite, approved_statistics
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.run.early.decisions import first_decision
from pytest_llmeval.run.stages import judges_of, rows_of
from pytest_llmeval.suite.suite import StopGroup, Suite, SuiteKey, group_of

if TYPE_CHECKING:
    from pytest_llmeval.baselines.keeper import Keeper
    from pytest_llmeval.judge.judges import SuiteJudges


def foresee(
    suites: Iterable[tuple[SuiteKey, Suite]], judges: "SuiteJudges", keeper: "Keeper"
) -> dict[SuiteKey, int | None]:
    """Return after how many cases suites would stop, by suite and system.

    Args:
        suites: Those with an order, as each system answers them.
        judges: Of the run.
        keeper: How snapshots are treated.

    Returns:
        The number of cases; ``None`` where no run is approved, or none that has all of the cases.
    """
    groups: dict[StopGroup, dict[str, CollectedSuite]] = {}
    for key, suite in suites:
        records = rows_of(suite, _approved(key), "")
        made = CollectedSuite(key, suite, records, suite.total, judges_of(suite, judges, key.shown))
        groups.setdefault(group_of(key, suite), {})[key.variant] = made
    found: dict[SuiteKey, int | None] = {}
    for variants in groups.values():
        decision = first_decision(variants, keeper)
        for each in variants.values():
            known = all(record.outcome != "not_run" for record in each.records)
            found[each.key] = decision.cases if decision is not None else len(each.records) if known else None
    return found


def _approved(key: SuiteKey) -> Mapping[str, CaseRecord]:
    """Return the records of the last approved run by case; none where there is no such run."""
    path = score_file(key)
    try:
        scores = approved_scores(path, path.name)
        if scores is None:
            return {}
        statistics = approved_statistics(key, scores)
    except (OSError, UnicodeDecodeError, SuiteError):
        return {}  # a run says what is wrong with the files
    return {each.id: each for each in statistics.records}
