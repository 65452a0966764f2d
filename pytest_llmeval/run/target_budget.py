"""The budget of a run, as far as targets spend it."""

__all__ = ("TargetBudget",)

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import PredictionError

if TYPE_CHECKING:
    from pytest_llmeval.judge.service import JudgeService
    from pytest_llmeval.judge.store.shared_limits import Reservation
    from pytest_llmeval.suite.models import ModelSystem

_TOKENS = ("input_tokens", "output_tokens")


@dataclass(frozen=True)
class TargetBudget:
    """Counts what targets take.

    Calls of models are known and limited in advance, as those of judges. What another target takes, its predictions say
    afterwards, so it may exceed the budget.

    Attributes:
        judges: Have the budget, which all processes share; ``None`` where there is none.
    """

    judges: "JudgeService | None"

    async def admit(self, case: Case | None = None, model: "ModelSystem | None" = None) -> "Reservation | None":
        """Allow a call.

        Args:
            case: What a model is asked about.
            model: The model; ``None`` for another target.

        Raises:
            BudgetError: The budget is spent.
            PredictionError: The budget limits money, and the price of the model is unknown.
        """
        if self.judges is None or not self.judges.budget:
            return None
        if case is not None and model is not None:
            return await self._admit_model(self.judges, case, model)
        return await self.judges.spending.reserve(calls=0, tokens=0, usd=0.0)

    async def _admit_model(self, judges: "JudgeService", case: Case, model: "ModelSystem") -> "Reservation | None":
        from pytest_llmeval.judge.prices import price_of

        messages = model.messages(case.input)
        price = price_of(model.spec)
        if price is None and judges.budget.usd is not None:
            raise PredictionError(
                f"found the model {model.spec.model!r} without a known price, but --llmeval-budget limits USD: "
                "expected 'price: {input: USD, output: USD}' (per million tokens) beside 'model'"
            )
        turns = sum(each["role"] == "user" for each in case.input) if case.conversation else 1
        return await judges.spending.reserve_call(messages, model.spec.request_parameters(), price, turns)

    def charge(self, reservation: "Reservation | None", answered: Iterable[Case]) -> None:
        """Count what a call took; what was set aside for it, where that is not known.

        Args:
            reservation: What `admit` gave.
            answered: The cases that it answered.
        """
        if self.judges is None:
            return
        figures = [each.origin.figures for each in answered if each.origin is not None]
        tokens = [each[name] for each in figures for name in _TOKENS if each.get(name) is not None]
        costs = [each["cost_usd"] for each in figures if each.get("cost_usd") is not None]
        self.judges.spending.settle(
            reservation, tokens=int(sum(tokens)) if tokens else None, usd=sum(costs) if costs else None
        )
