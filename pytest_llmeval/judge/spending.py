"""The budget of a run: parts of it are set aside for calls, and replaced by what these cost."""

__all__ = ("Spending",)

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.errors import BudgetError
from pytest_llmeval.judge.budget import Budget
from pytest_llmeval.judge.contract import Usage
from pytest_llmeval.judge.prices import cost_usd
from pytest_llmeval.judge.spec import Price

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_llmeval.judge.contract import Message
    from pytest_llmeval.judge.store.shared_limits import Reservation
    from pytest_llmeval.judge.store.working import WorkingCache

_POLL_S = 0.02
_REPLY_TOKENS = 1024
_BYTES_PER_TOKEN = 3


@dataclass(frozen=True)
class Spending:
    """What the processes of a run may still spend together.

    Attributes:
        budget: Of the run.
        working: The working cache, which has what was spent.
        run: Id of the run.
        owner: Id of the process.
    """

    budget: Budget
    working: "WorkingCache"
    run: str
    owner: str

    async def reserve_call(
        self, messages: "Iterable[Message]", parameters: "Mapping[str, Any]", price: Price | None, calls: int = 1
    ) -> "Reservation | None":
        """Set the most that calls may cost aside."""
        if not self.budget:
            return None
        sent = sum(len(each.content.encode(errors="replace")) for each in messages) // _BYTES_PER_TOKEN
        written = int(parameters.get("max_tokens") or _REPLY_TOKENS)
        usd = cost_usd(price, Usage(sent, written)) or 0.0
        return await self.reserve(calls=calls, tokens=calls * (sent + written), usd=calls * usd)

    async def reserve(self, *, calls: int, tokens: int, usd: float) -> "Reservation":
        """Set a part of the budget aside for a call, so that all processes together never spend more.

        Raises:
            BudgetError: Not enough is left.
        """
        while True:
            found = self.working.open().reserve(self.run, self.budget, self.owner, calls=calls, tokens=tokens, usd=usd)
            if found.granted:
                return found
            if found.exhausted:
                raise BudgetError(f"the budget of {self.budget} {self._why_refused(tokens, usd)}")
            await asyncio.sleep(_POLL_S)  # calls under way may cost less than was set aside for them

    def _why_refused(self, tokens: int, usd: float) -> str:
        """Return why a call of this size is refused; a budget too small for any call is a reason of its own."""
        limits = self.budget
        if limits.tokens is not None and tokens > limits.tokens:
            return f"is too small for a call of up to {tokens} tokens"
        if limits.usd is not None and usd > limits.usd:
            return f"is too small for a call that may cost up to {usd:.6f} USD"
        return "is spent"

    def settle(self, reservation: "Reservation | None", *, tokens: int | None, usd: float | None) -> None:
        """Replace what was set aside by what was used; where that is not known, all of it counts as used."""
        if reservation is not None:
            self.working.open().settle(reservation, tokens=tokens, usd=usd)
