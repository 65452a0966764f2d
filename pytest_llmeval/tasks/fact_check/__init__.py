"""Fact checks.

`target` asks a model, and reads the claim and the reply, `mentions` finds sources in texts, `evidence` matches them,
`scores` counts, and `evaluator` puts them together.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.tasks.fact_check._evidence import EvidenceMatch, EvidenceMatcher
    from pytest_llmeval.tasks.fact_check._target import fact_checker


def register(registry: "Registry") -> None:
    """Register the evaluator of fact checks, the source of claims, the command and the mutators."""
    registry.register(f"{__name__}._evaluator:FactCheck", name="fact_check")
    registry.register_source(f"{__name__}._source:FactCheckSource", name="fact_check")
    registry.register_command(
        "fact-check",
        f"{__name__}._scores:add_arguments",
        help="write the result files of the original scripts from a report",
        group="tasks",
    )
    registry.register_mutator(f"{__name__}._evaluator:MUTATORS")


_HOMES = {
    "_evidence": (
        "EvidenceMatch",
        "EvidenceMatcher",
    ),
    "_target": ("fact_checker",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
