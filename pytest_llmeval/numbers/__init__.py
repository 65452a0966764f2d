"""From observations to metrics and intervals."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.numbers._anytime import WatchedRun
    from pytest_llmeval.numbers._case_scores import TOLERANCE, Abstained, CaseDigest, Threshold, Unmet
    from pytest_llmeval.numbers._case_statistics import CaseStatistics, Chain
    from pytest_llmeval.numbers._compare import Comparison, Difference, SystemTable, compare
    from pytest_llmeval.numbers._counted_cases import CountedCases
    from pytest_llmeval.numbers._drop_tests import Evidence
    from pytest_llmeval.numbers._estimation import Estimate
    from pytest_llmeval.numbers._inference import adjust_families, explaining_label
    from pytest_llmeval.numbers._intervals import mid_p_interval, student_quantile, wilson_interval
    from pytest_llmeval.numbers._pairing import CaseMatching, RunPairing, Shift
    from pytest_llmeval.numbers._repeats import Repeats
    from pytest_llmeval.numbers._resample import draw_ahead
    from pytest_llmeval.numbers._significance import ChangedShares, NormalTest
    from pytest_llmeval.numbers._table import Table, cluster_totals, summarize
    from pytest_llmeval.numbers._usage import Money, UsageEvaluator, UsageReport

_HOMES = {
    "_anytime": ("WatchedRun",),
    "_case_scores": (
        "Abstained",
        "CaseDigest",
        "TOLERANCE",
        "Threshold",
        "Unmet",
    ),
    "_case_statistics": (
        "CaseStatistics",
        "Chain",
    ),
    "_compare": (
        "Comparison",
        "Difference",
        "SystemTable",
        "compare",
    ),
    "_counted_cases": ("CountedCases",),
    "_drop_tests": ("Evidence",),
    "_estimation": ("Estimate",),
    "_inference": (
        "adjust_families",
        "explaining_label",
    ),
    "_intervals": (
        "mid_p_interval",
        "student_quantile",
        "wilson_interval",
    ),
    "_pairing": (
        "CaseMatching",
        "RunPairing",
        "Shift",
    ),
    "_repeats": ("Repeats",),
    "_resample": ("draw_ahead",),
    "_significance": (
        "ChangedShares",
        "NormalTest",
    ),
    "_table": (
        "Table",
        "cluster_totals",
        "summarize",
    ),
    "_usage": (
        "Money",
        "UsageEvaluator",
        "UsageReport",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
