"""Answers judged part by part.

`questions` asks the judge and reads the replies, `steps` says which questions a case needs, `evaluators` count.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Register ``claims`` and ``checklist``, the evaluators of claims and of instructions."""
    registry.register(f"{__name__}._evaluators:Checklist", name="checklist")
    registry.register(f"{__name__}._evaluators:Claims", name="claims")
