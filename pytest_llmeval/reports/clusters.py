"""Lines about cases that belong together, for people."""

__all__ = ("cluster_lines",)

from collections.abc import Iterator

from pytest_llmeval.core.wording import counted
from pytest_llmeval.reports.data import SuiteReport


def cluster_lines(suite: SuiteReport) -> Iterator[str]:
    """Yield how much clusters cost, and what speaks for naming some."""
    if clusters := suite.result.clusters:
        text = (
            f"{counted(len(suite.result.records), 'case')} in {counted(clusters.count, 'cluster')} by {clusters.label}"
        )
        effects = {name: value for name, value in clusters.design_effects.items() if name in suite.result.metrics}
        if effects:
            low, high = (pick(effects, key=lambda name: effects[name]) for pick in (min, max))
            span = f"{effects[low]:.2f} ({low})"
            if low != high:
                span += f" to {effects[high]:.2f} ({high})"
            text += f"; design effect {span}"
        yield text
    if suite.shared_inputs:
        yield (
            f"warning: {suite.shared_inputs} of {counted(suite.total, 'case')} have the input of an earlier case: "
            "intervals and tests are too sure of themselves unless cluster_by names a label that such cases share"
        )
