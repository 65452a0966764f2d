"""The budget of a run for judges."""

__all__ = ("Budget", "parse_budget")

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_llmeval.core.wording import counted

_CENTS = 2
_PART = re.compile(r"^(?P<unit>calls|tokens|usd)=(?P<amount>\d+(?:\.\d+)?)$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run over all its processes; ``None`` for none.

    Attributes:
        calls: Calls of judges.
        tokens: Of their requests and replies.
        usd: US dollars.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def __bool__(self) -> bool:
        return (self.calls, self.tokens, self.usd) != (None, None, None)

    def part(self, index: int, count: int) -> "Budget":
        """Return the budget of one of several shards; the parts add up to the whole.

        Args:
            index: Of the shard, counted from 1.
            count: Of shards.
        """

        def share(amount: int | None) -> int | None:
            return None if amount is None else amount * index // count - amount * (index - 1) // count

        return Budget(share(self.calls), share(self.tokens), None if self.usd is None else self.usd / count)

    def __str__(self) -> str:
        parts = [counted(self.calls, "call")] if self.calls is not None else []
        parts += [counted(self.tokens, "token")] if self.tokens is not None else []
        parts += [f"{_amount(self.usd)} USD"] if self.usd is not None else []
        return ", ".join(parts)


def _amount(usd: float) -> str:
    """Return an amount with cents, and with as many further digits as it has."""
    text = f"{usd:.9f}".rstrip("0")
    return text if len(text.partition(".")[2]) > _CENTS else f"{usd:.{_CENTS}f}"


def parse_budget(texts: Iterable[str]) -> Budget:
    """Read ``calls=500``, ``tokens=200000`` or ``usd=2.50``, several of them separated by commas.

    Raises:
        ValueError: A part is something else, or a unit is limited twice.
    """
    limits: dict[str, float] = {}
    for text in (part.strip() for each in texts for part in each.split(",")):
        found = _PART.match(text)
        if found is None or not math.isfinite(amount := float(found["amount"])):
            raise ValueError(f"--llmeval-budget: found {text!r}, expected calls=NUMBER, tokens=NUMBER or usd=AMOUNT")
        if found["unit"] in limits:
            raise ValueError(f"--llmeval-budget: found {found['unit']} twice, expected only one limit in this unit")
        if found["unit"] != "usd" and not amount.is_integer():
            raise ValueError(f"--llmeval-budget: found {text!r}, expected a whole number of {found['unit']}")
        limits[found["unit"]] = amount
    calls, tokens = limits.get("calls"), limits.get("tokens")
    return Budget(
        calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        usd=limits.get("usd"),
    )
