"""How far the jurors of a panel agree, as metrics of the suite."""

__all__ = ("PanelAgreement", "VerdictStatistics", "agreement_name")

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation, Totals
from pytest_llmeval.core.tables import cell_name, read_cells

if TYPE_CHECKING:
    from pytest_llmeval.core.errors import LlmevalError
    from pytest_llmeval.core.observation import FloatArray, Sums
    from pytest_llmeval.judge.contract import Verdict
    from pytest_llmeval.judge.reduction import Votes

_ONE_CASE = "needs several cases"
_FEWEST = 2


@dataclass(frozen=True)
class VerdictStatistics(Evaluator):
    """Figures about the verdicts of several judges on the questions of one evaluator, whose label names the metrics.

    Attributes:
        of: Label of the evaluator that asks.
    """

    pools_undefined = True  # what no single case has, cases together do

    kind: ClassVar[str]
    """What the judges are together, in the names of the metrics."""

    of: str

    @property
    def name(self) -> str:  # type: ignore[override]  # a class variable of evaluators that are classes of their own
        """The label that the suite gives it."""
        return f"{self.of} {self.kind}"

    def _metric(self, name: str) -> str:
        return f"{self.of}_{self.kind}_{name}"

    def measure(self, case: Case) -> Observation:
        """Refuse: judges are asked, not measured."""
        raise EvaluatorError(f"case {case.id!r}: a panel is asked, not measured")

    @property
    def counts_verdicts_of(self) -> str:
        """The evaluator that asks."""
        return self.of

    @abstractmethod
    def measure_verdicts(self, verdicts: "Sequence[Verdict | LlmevalError]") -> Observation:
        """Count one case.

        Args:
            verdicts: Of the panel, on all questions of the evaluator.
        """


@dataclass(frozen=True)
class PanelAgreement(VerdictStatistics):
    """Agreement of the jurors about the questions of one evaluator, whose label names the metrics.

    What is compared are scores as shares of the scale, one set for each question (or each claim that a question lists).

    * ``LABEL_panel_alpha``: Krippendorff's alpha for interval data over all jurors (Krippendorff 2011), at least -1;
    * ``LABEL_panel_kappa[A, B]``: Cohen's kappa of two jurors, weighted by squared differences (Cohen 1968), which for
      yes and no is the unweighted one;
    * ``LABEL_panel_spread``, in [0, 1]: largest minus smallest score of a question, mean over questions;
    * ``LABEL_panel_missing``, in [0, 1]: share of the verdicts that jurors failed to give.

    Attributes:
        of: Label of the evaluator that asks.
        jurors: Their names.
    """

    kind = "panel"

    jurors: tuple[str, ...] = field(default=(), compare=False)

    @property
    def _pairs(self) -> Mapping[str, tuple[int, int]]:
        """Name of a metric to the two jurors that it compares."""
        pairs = combinations(range(len(self.jurors)), 2)
        return {self._metric(f"kappa[{self.jurors[one]}, {self.jurors[two]}]"): (one, two) for one, two in pairs}

    def describe(self) -> Sequence[Metric]:
        """Return the metrics."""
        signature = f"jurors:{len(self.jurors)}|v:{self.version}"
        return [
            Metric(self._metric("alpha"), low=-1.0, signature=f"interval|{signature}"),
            Metric(self._metric("kappa[jurors]"), low=-1.0, signature=f"weights:squared|{signature}"),
            Metric(self._metric("spread"), higher_is_better=False, signature=signature),
            Metric(self._metric("missing"), higher_is_better=False, signature=signature),
        ]

    def absent(self, why: str) -> Observation:
        """Return the observation of a case about which no panel was asked."""
        fixed = [metric.name for metric in self.describe() if "[" not in metric.name]
        return Observation({}, undefined=dict.fromkeys([*fixed, *self._pairs], why))

    def measure_verdicts(self, verdicts: "Sequence[Verdict | LlmevalError]") -> Observation:
        """Count one case."""
        from pytest_llmeval.judge.reduction import PanelError, PanelVerdict

        votes = [vote for each in verdicts if isinstance(each, PanelVerdict | PanelError) for vote in each.votes]
        if not votes:
            return self.absent("no question was put to a panel")
        counted = Totals.of([Observation(self._counts(each)) for each in votes])
        undefined = dict.fromkeys([self._metric("alpha"), *self._pairs], _ONE_CASE)
        if not counted["units"]:
            undefined[self._metric("spread")] = "no two jurors gave a verdict"
        return Observation(dict(counted), undefined=undefined)

    def _counts(self, votes: "Votes") -> dict[str, float]:
        from pytest_llmeval.evaluators.measures.agreement import unit_moments

        given = {number: score for number, each in enumerate(self.jurors) if (score := votes.get(each)) is not None}
        counts: dict[str, float] = {"asked": len(votes), "missing": len(votes) - len(given)}
        if len(given) < _FEWEST:
            return counts
        spread = max(given.values()) - min(given.values())
        counts |= {"units": 1, "spread": spread, **unit_moments(list(given.values()))}
        for pair in self._pairs.values():
            if given.keys() >= set(pair):
                one, two = (json.dumps(given[each]) for each in pair)
                counts[cell_name(one, two, _cell(pair))] = 1
        return counts

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Compute the coefficients from summed cells and moments."""
        from pytest_llmeval.evaluators.measures.agreement import krippendorff_alpha, weighted_kappa

        kappas = {}
        for name, pair in self._pairs.items():
            cells = read_cells(sums, _cell(pair))
            numbers = {(json.loads(one), json.loads(two)): column for (one, two), column in cells.items()}
            kappas[name] = weighted_kappa(numbers, sums.length)
        return {
            self._metric("alpha"): krippendorff_alpha(sums),
            **kappas,
            self._metric("spread"): sums["spread"] / sums["units"],
            self._metric("missing"): sums["missing"] / sums["asked"],
        }


def agreement_name(of: str) -> str:
    """Return the name of the agreement about the questions of an evaluator, by its label."""
    return f"{of} {PanelAgreement.kind}"


def _cell(pair: tuple[int, int]) -> str:
    return f"pair{pair[0]}-{pair[1]}"
