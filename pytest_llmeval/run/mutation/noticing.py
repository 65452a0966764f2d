"""How many answers must be broken before a gate fails: mutants are mixed into the recorded answers."""

__all__ = ("Broken", "GateWatch", "fails")

import math
import random
from collections.abc import Container, Mapping, Sequence
from typing import Final

from msgspec import Struct

from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.gates.limit import LimitGate
from pytest_llmeval.reports.mutation import POWER, GateNotice
from pytest_llmeval.scoring.summary import summarize_rows
from pytest_llmeval.scoring.table import Table
from pytest_llmeval.suite.suite import Suite

_MIXTURES: Final = 20
_SHARES: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of broken answers at which the power of a gate is reported."""
_CONFIDENCE: Final = 0.95
_OF_INTERVALS: Final = ("low", "high")


class Broken(Struct, frozen=True):
    """A mutant, as gates see it.

    Attributes:
        worse: The metrics that it makes worse.
        fails: Whether its case fails.
    """

    worse: frozenset[str]
    fails: bool


class GateWatch:
    """Mixes mutants into a run and looks whether gates fail.

    Args:
        suite: With the gates.
        table: The records of the recorded answers, in order, then those of mutants: one for all mixtures, since to lay
            out counts takes ten times as long as to add some of them up.
        names: Ids of the cases, in the order of the table.
        broken: Case id to its mutants by row, for cases that have some.
        seed: Of the mixtures.
        waits: Whether a judge who was not asked decides whether cases pass.
    """

    def __init__(
        self,
        suite: Suite,
        table: Table,
        names: Sequence[str],
        broken: Mapping[str, Mapping[int, Broken]],
        seed: int,
        *,
        waits: bool,
    ) -> None:
        self.suite = suite
        self.table = table
        self.names = names
        self.broken = broken
        self.seed = seed
        self.waits = waits

    def notice(self, gate: LimitGate, unknown: Container[str]) -> GateNotice:
        """Return from which share of broken answers on a gate fails.

        Each case has one mutant, one that the metric of the gate sees if there is any. In each of several random
        orders, the smallest number of broken answers is sought with which the gate fails.

        Args:
            gate: The gate.
            unknown: Metrics that only a judge could compute.
        """
        if why := self._unjudged(gate, unknown):
            return GateNotice(str(gate), None, unjudged=why)
        smallest = sorted(self._smallest(gate, mixture) for mixture in range(_MIXTURES))
        shares = [each / len(self.names) for each in smallest]
        return GateNotice(
            str(gate),
            _reached(shares, 0.5),
            _reached(shares, POWER),
            not (math.isfinite(smallest[0]) or self._fails(gate, self._worst(gate))),
            {f"{share:g}": sum(each <= share for each in shares) / _MIXTURES for share in _SHARES},
        )

    def _unjudged(self, gate: LimitGate, unknown: Container[str]) -> str:
        owned = self.suite.metrics.find(gate.metric)
        if gate.metric != PASS_RATE and owned is None:
            return "its metric is not computed without judges or targets"
        if not self.broken:
            return "no answer could be changed"
        if gate.metric in unknown or (gate.metric == PASS_RATE and self.waits):
            return "its metric needs a judge"
        return "it fails on the recorded answers that pass" if self._fails(gate, {}) else ""

    def _smallest(self, gate: LimitGate, mixture: int) -> float:
        """Return with how many broken answers a gate fails in one mixture; infinity if it passes even with all."""
        rng = random.Random(f"{self.seed} {self.suite.name} {mixture}")  # noqa: S311 (no secret)
        order = sorted(self.broken)
        rng.shuffle(order)
        chosen = {name: rng.choice(self._seen(gate, name)) for name in order}
        if not self._fails(gate, chosen):
            return math.inf
        low, high = 0, len(order)  # passes with `low` broken answers, fails with `high`
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(gate, {name: chosen[name] for name in order[:middle]}):
                high = middle
            else:
                low = middle
        return high

    def _worst(self, gate: LimitGate) -> dict[str, int]:
        """Return for each case the row of the mutant with the worst score, or of one without any."""
        if gate.metric not in self.table.scores:
            return {name: self._seen(gate, name)[0] for name in self.broken}
        column = self.table.scores[gate.metric]
        sign = -1 if self.suite.metrics.lower_is_better(gate.metric) else 1
        return {
            name: min(found, key=lambda row: sign * column[row] if math.isfinite(column[row]) else -math.inf)
            for name, found in self.broken.items()
        }

    def _seen(self, gate: LimitGate, case: str) -> list[int]:
        """Return the rows of a case's mutants that the metric of a gate sees, or of all if it sees none."""
        found = self.broken[case]
        of_cases = gate.metric == PASS_RATE
        seen = [row for row, each in found.items() if (each.fails if of_cases else gate.metric in each.worse)]
        return seen or list(found)

    def _fails(self, gate: LimitGate, broken: Mapping[str, int]) -> bool:
        """Return whether a gate fails where some cases have the rows of mutants."""
        rows = [broken.get(name, row) for row, name in enumerate(self.names)]
        return fails(gate, self.table, rows, self.suite.cluster_by)


def fails(gate: LimitGate, table: Table, rows: Sequence[int], cluster_by: str | None = None) -> bool:
    """Return whether a gate fails on some rows of a table."""
    result = summarize_rows(
        table,
        rows,
        gate.metric,
        group_by=(gate.by,) if gate.by else (),
        confidence=_CONFIDENCE if gate.statistic in _OF_INTERVALS else None,
        cluster_by=cluster_by,
    )
    return gate.judge(result).outcome == "failed"


def _reached(shares: Sequence[float], power: float) -> float | None:
    """Return the smallest share from which on so many of the sorted mixtures fail; ``None`` if they never do."""
    found = shares[math.ceil(power * len(shares)) - 1]
    return found if math.isfinite(found) else None
