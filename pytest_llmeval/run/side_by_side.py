"""Systems of a run side by side."""

__all__ = ("JudgedSuite", "side_by_side", "variants_of")

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_llmeval.reports.data import SuiteReport
from pytest_llmeval.reports.systems import SystemsReport
from pytest_llmeval.scoring.comparison.systems import compare_systems
from pytest_llmeval.suite.suite import Suite, SuiteKey

_CONFIDENCE = 0.95
"""Of differences, where the suite wants no intervals of its own."""


class JudgedSuite(NamedTuple):
    """A suite with what came of it."""

    key: SuiteKey
    suite: Suite
    report: SuiteReport


def variants_of(judged: Iterable[JudgedSuite]) -> list[dict[str, JudgedSuite]]:
    """Return the systems of each suite, or the variants of its target, in the order of the file or of their names."""
    found: dict[tuple[str, str], dict[str, JudgedSuite]] = {}
    for each in judged:
        if each.key.variant:
            found.setdefault((each.key.shown, each.key.test), {})[each.key.variant] = each
    return [_ordered(variants) for variants in found.values()]


def _ordered(variants: Mapping[str, JudgedSuite]) -> dict[str, JudgedSuite]:
    declared = [name for name in next(iter(variants.values())).suite.systems if name in variants]
    return {name: variants[name] for name in dict.fromkeys([*declared, *sorted(variants)])}


def side_by_side(variants: Mapping[str, JudgedSuite]) -> SystemsReport | None:
    """Compare the systems of a suite; ``None`` unless several of them ran."""
    ran = {name: each for name, each in variants.items() if each.report.run}
    if len(ran) < 2:  # noqa: PLR2004 (one system is compared with nobody)
        return None
    first = next(iter(ran.values()))
    suite = first.suite
    reference = suite.reference if suite.reference in ran else next(iter(ran))
    results = {name: each.report.result for name, each in ran.items()}
    table = compare_systems(
        results, reference, suite.metrics, confidence=suite.confidence or _CONFIDENCE, cluster_by=suite.cluster_by
    )
    name = suite.name + (f"[{first.key.test}]" if first.key.test else "")
    return SystemsReport(name, first.key.shown, table, suite.compared_by or table.metrics[:1])
