"""The order in which the cases of a suite run that stops when its gates are decided."""

__all__ = ("CaseOrder", "StopEntry", "StopSettings", "read_stop")

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from msgspec import Struct

from pytest_llmeval.core.case import Case
from pytest_llmeval.data.files.plain import STRICT
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.gates.early.evidence import CaseUnits

WHEN_DECIDED = "when_decided"
_LEAST_BLOCK = 10
_BLOCKS = 20
_MOST_CONFIDENT = 0.999999


@dataclass(frozen=True)
class StopEntry:
    """``stop`` in its mapping form."""

    __pydantic_config__: ClassVar = STRICT

    confidence: float = 0.99
    block: int | None = None
    always: tuple[str, ...] = ()


class StopSettings(Struct, frozen=True):
    """How a suite stops when its gates are decided.

    Attributes:
        confidence: With which the verdicts on all gates together are those of a complete run.
        block: How many cases run between two looks; ``None``: a twentieth of them, 10 at least.
        always: Tags of cases that always run, besides those that say so themselves.
    """

    confidence: float = 0.99
    block: int | None = None
    always: tuple[str, ...] = ()

    def keeps(self, case: Case) -> bool:
        """Return whether a case always runs."""
        return case.always or not frozenset(self.always).isdisjoint(case.tags)

    def block_of(self, cases: int) -> int:
        """Return how many of so many cases run between two looks."""
        return self.block or max(_LEAST_BLOCK, math.ceil(cases / _BLOCKS))


class CaseOrder(Struct, frozen=True, dict=True):
    """The order of the cases of a suite, and where gates are looked at.

    Attributes:
        ids: In their order: those that always run, then the others at random.
        numbers: Number of the unit of each case, a cluster or the case alone; -1 where it always runs.
        ends: After how many cases gates are looked at; the last one is after all of them.
        confidence: Of the verdicts.
    """

    ids: tuple[str, ...]
    numbers: tuple[int, ...]
    ends: tuple[int, ...]
    confidence: float

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Case id to its place in the order, from 0."""
        return {name: rank for rank, name in enumerate(self.ids)}

    @property
    def units(self) -> CaseUnits:
        """What was ordered at random."""
        import numpy as np

        return CaseUnits(np.array(self.numbers, dtype=np.intp))

    def end_of(self, case: str) -> int:
        """Return after how many cases gates are looked at once a case has run."""
        rank = self.ranks[case]
        return next(end for end in self.ends if rank < end)

    def end_at(self, cases: int) -> int:
        """Return the first look after so many cases."""
        return next(end for end in self.ends if cases <= end)


def read_stop(
    entry: Any, check: Callable[[type[StopEntry], Any, tuple[str, ...]], StopEntry | None], fault: Callable[..., None]
) -> StopSettings | None:
    """Read ``stop``: ``when_decided``, or a mapping."""
    if entry is None or entry == "never":
        return None
    if entry == WHEN_DECIDED:
        return StopSettings()
    if not isinstance(entry, dict):
        fault(("stop",), f"found {describe(entry)}, expected when_decided, never or a mapping with confidence or block")
        return None
    found = check(StopEntry, entry, ("stop",))
    if found is None:
        return None
    if not 0.5 <= found.confidence <= _MOST_CONFIDENT:  # noqa: PLR2004 (less is a guess)
        fault(("stop", "confidence"), f"found {found.confidence}, expected 0.5 to {_MOST_CONFIDENT}, such as 0.99")
    if found.block is not None and found.block < 1:
        fault(("stop", "block"), f"found {found.block}, expected a number of cases of at least 1")
    return StopSettings(found.confidence, found.block, found.always)
