"""Fact checks: verdict, cited evidence and explanation.

`target` asks a model, and reads the claim and the reply, `mentions` finds sources in texts, `evidence` matches them,
`scores` counts, and `evaluator` puts them together.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Add the evaluator, the source of claims, the command and the mutators."""
    registry.register(f"{__name__}.evaluator:FactCheck", name="fact_check")
    registry.register_source(f"{__name__}.source:FactCheckSource", name="fact_check")
    registry.register_command(
        "fact-check",
        f"{__name__}.scores:add_arguments",
        help="write the result files of the original scripts from a report",
        group="tasks",
    )
    registry.register_mutator(f"{__name__}.evaluator:MUTATORS")
