"""The budget of a run, as far as targets spend it."""

__all__ = ("TargetBudget",)

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import Case

if TYPE_CHECKING:
    from pytest_llmeval.judge.service import JudgeService
    from pytest_llmeval.judge.store.shared_limits import Reservation


@dataclass(frozen=True)
class TargetBudget:
    """Counts what predictions say that they took: it is known only afterwards, so calls may exceed the budget.

    Attributes:
        judges: Have the budget, which all processes share; ``None`` where there is none.
    """

    judges: "JudgeService | None"

    async def admit(self) -> "Reservation | None":
        """Allow a call.

        Raises:
            BudgetError: The budget is spent.
        """
        if self.judges is None or not self.judges.budget:
            return None
        return await self.judges.reserve(calls=0, tokens=0, usd=0.0)

    def charge(self, reservation: "Reservation | None", answered: Iterable[Case]) -> None:
        """Count what a call took.

        Args:
            reservation: What `admit` gave.
            answered: The cases that it answered.
        """
        if self.judges is None or reservation is None:
            return
        figures = [each.origin.figures for each in answered if each.origin is not None]
        tokens = sum(each.get(name) or 0 for each in figures for name in ("input_tokens", "output_tokens"))
        self.judges.cache.settle(
            reservation, tokens=int(tokens), usd=sum(each.get("cost_usd") or 0 for each in figures)
        )
