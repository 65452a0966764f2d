"""Metrics of the verdicts of several judges."""

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import ClassVar

from msgspec import structs

from pytest_llmeval.core import (
    Basis,
    ConfusionMatrix,
    FloatArray,
    JudgeError,
    LlmevalError,
    Metric,
    Observation,
    RecordedCounts,
    Sums,
    Totals,
    WrappedEvaluator,
    counted,
)
from pytest_llmeval.evaluators.judge._human_labels import LEAST_LABELS, unseen_errors
from pytest_llmeval.evaluators.measures._confusion import krippendorff_alpha, ratio, unit_moments, weighted_kappa
from pytest_llmeval.judges import CascadeVerdict, PanelVerdict, Verdict

_ONE_CASE = "needs several cases"
_FEWEST = 2


@dataclass(frozen=True)
class VerdictStatistics(RecordedCounts):
    """Metrics about the verdicts of several judges on the questions of one evaluator, whose label names them.

    Attributes:
        of: Label of the evaluator that asks.
    """

    origin = "a panel is asked"
    pools_undefined = True  # what no single case has, cases together do

    kind: ClassVar[str]
    """The collective name of the judges, in the names of the metrics."""

    of: str

    @property
    def name(self) -> str:  # type: ignore[override]  # a class variable of evaluators that are classes of their own
        """The label that the suite gives it."""
        return f"{self.of} {self.kind}"

    def _metric(self, name: str) -> str:
        return f"{self.of}_{self.kind}_{name}"

    @staticmethod
    def of_judges(label: str, names: Sequence[str], audit: float | None = None) -> "VerdictStatistics":
        """The metrics about judges: the agreement of a panel, or the errors of a cascade.

        Args:
            label: Of the evaluator that asks.
            names: Of the judges.
            audit: The share that a cascade audits; `None` for a panel.
        """
        return PanelAgreement(label, tuple(names)) if audit is None else CascadeErrors(label, audit)

    @abstractmethod
    def measure_verdicts(self, verdicts: "Sequence[Verdict | LlmevalError]") -> Observation:
        """The counts of one case by the verdicts of each judge.

        Args:
            verdicts: Of the panel, on all questions of the evaluator.
        """


@dataclass(frozen=True)
class PanelAgreement(VerdictStatistics):
    """An evaluator of the agreement of jurors about the questions of another one, whose label names the metrics.

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
        return {self._metric(f"kappa[{self.jurors[pair[0]]}, {self.jurors[pair[1]]}]"): pair for pair in pairs}

    def describe(self) -> Sequence[Metric]:
        """The metrics of agreement between jurors."""
        signature = f"jurors:{len(self.jurors)}|v:{self.version}"
        return [
            Metric(self._metric("alpha"), low=-1.0, signature=f"interval|{signature}"),
            Metric(self._metric("kappa[jurors]"), low=-1.0, signature=f"weights:squared|{signature}"),
            Metric(self._metric("spread"), higher_is_better=False, signature=signature),
            Metric(self._metric("missing"), higher_is_better=False, signature=signature),
        ]

    def absent(self, why: str) -> Observation:
        """The observation of a case about which no panel was asked."""
        fixed = [metric.name for metric in self.describe() if "[" not in metric.name]
        return Observation({}, undefined=dict.fromkeys([*fixed, *self._pairs], why))

    def measure_verdicts(self, verdicts: "Sequence[Verdict | LlmevalError]") -> Observation:
        """The counts of one case by the verdicts of the jurors."""
        votes = PanelVerdict.votes_in(verdicts)
        if not votes:
            return self.absent("no question was put to a panel")
        counted = Totals.add_up([Observation(self._counts(vote)) for vote in votes])
        undefined = dict.fromkeys([self._metric("alpha"), *self._pairs], _ONE_CASE)
        if not counted["units"]:
            undefined[self._metric("spread")] = "no two jurors gave a verdict"
        return Observation(dict(counted), undefined=undefined)

    def _counts(self, votes: Mapping[str, float | None]) -> dict[str, float]:
        """The counts of one question by the scores of the jurors."""
        scores = {number: score for number, juror in enumerate(self.jurors) if (score := votes.get(juror)) is not None}
        counts: dict[str, float] = {"asked": len(votes), "missing": len(votes) - len(scores)}
        if len(scores) < _FEWEST:
            return counts
        spread = max(scores.values()) - min(scores.values())
        counts |= {"units": 1, "spread": spread, **unit_moments(list(scores.values()))}
        for pair in self._pairs.values():
            if scores.keys() >= set(pair):
                left, right = (json.dumps(scores[juror]) for juror in pair)
                counts[ConfusionMatrix.cell_name(left, right, _pair_column(pair))] = 1
        return counts

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The coefficients of agreement from summed cells and moments."""
        kappas = {}
        for name, pair in self._pairs.items():
            cells = ConfusionMatrix.read_cells(sums, _pair_column(pair))
            numbers = {(json.loads(left), json.loads(right)): column for (left, right), column in cells.items()}
            kappas[name] = weighted_kappa(numbers, sums.length)
        return {
            self._metric("alpha"): krippendorff_alpha(sums),
            **kappas,
            self._metric("spread"): sums["spread"] / sums["units"],
            self._metric("missing"): sums["missing"] / sums["asked"],
        }


def _pair_column(pair: tuple[int, int]) -> str:
    """The name of the count in which two jurors' scores are paired, for the kappa of a panel."""
    return f"pair{pair[0]}-{pair[1]}"


_COUNTS = "cascade."
_JUDGED, _SURE, _AUDITED = (f"{_COUNTS}{name}" for name in ("asked", "sure", "audited"))
_ADDED = f"{_COUNTS}added "
"""Before the name of a count: what the large judge adds to it in the audited cases."""

_ROUNDING = 1e-9

NOT_AUDITED = "not audited"


def _by_small(verdict: Verdict | JudgeError) -> Verdict | JudgeError:
    """The verdict of the small judge in a cascade for the metrics of its errors; any other verdict as it is."""
    return verdict.first if isinstance(verdict, CascadeVerdict) and verdict.first is not None else verdict


@dataclass(frozen=True)
class Cascaded(WrappedEvaluator):
    """An evaluator over one whose questions go to a cascade: its metrics are corrected to those of the large judge.

    To the counts of the cases by the verdicts of the cascade, it adds what the large judge adds to the audited ones,
    on average, for each case of which the small judge is sure and that is not audited: prediction-powered inference
    (Angelopoulos et al. 2023) for every count, and so for every formula over counts. The score of one case is the one
    by its own verdict.

    A value exists if no correction is needed, or at least ten of the cases are audited. Without an audit, values are
    those by the verdicts of the cascade.

    Attributes:
        evaluator: The evaluator that measures each case.
        audit: The share that is audited.
    """

    origin = "a cascade is asked"

    audit: float

    def describe(self) -> Sequence[Metric]:
        """The evaluator's metrics, with the audit in their signatures; corrected ones are no means of case scores."""
        how = "audited" if self.audit else NOT_AUDITED
        return [
            structs.replace(
                metric,
                signature=f"{metric.signature}|cascade:{how}".lstrip("|"),
                averaged=metric.averaged and not self.audit,
            )
            for metric in self.evaluator.describe()
        ]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The evaluator's metrics from corrected counts; what people correct already, from the counts themselves."""
        plain = _counts_of(sums)
        if not self.audit or _AUDITED not in sums:
            return self.evaluator.summarize(plain)
        import numpy as np

        # A single case, and a resample without any audited one, has nothing to be corrected by.
        share = np.nan_to_num(ratio(sums[_SURE] - sums[_AUDITED], sums[_AUDITED]))
        names = [*plain, *(name.removeprefix(_ADDED) for name in sums if name.startswith(_ADDED))]
        corrected = {name: plain[name] + share * sums[_ADDED + name] for name in dict.fromkeys(names)}
        values = dict(self.evaluator.summarize(Sums(corrected, sums.length, sums.metrics)))
        if self._by_people:
            uncorrected = self.evaluator.summarize(plain)
            values |= {name: uncorrected[name] for name in self._by_people if name in uncorrected}
        return values

    @cached_property
    def _by_people(self) -> frozenset[str]:
        """The metrics that human labels correct."""
        return frozenset(self.evaluator.basis(Sums({}, 1)))

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The number of audited cases, on which corrected values rest."""
        plain = _counts_of(sums)
        own = self.evaluator.basis(plain)
        judged, sure, audited = (float(sums[name][0]) for name in (_JUDGED, _SURE, _AUDITED))
        open_ = sure - audited
        if not self.audit or open_ < _ROUNDING:
            return own
        fault = ""
        if audited < LEAST_LABELS - _ROUNDING:
            fault = f"{round(audited)} of {counted(round(sure), 'sure case')} audited, expected at least {LEAST_LABELS}"
        bases = {}
        for name in self.summarize(sums):
            metric = self._metric(name)
            share = open_ / judged if metric.per_case is None else open_
            bases[name] = Basis(audited, share * unseen_errors(_span(metric), audited), fault)
        return {**bases, **own}

    def _metric(self, name: str) -> Metric:
        """The declaration of a metric, of a member of a family that of the family."""
        declared = self.evaluator.describe()
        exact = next((metric for metric in declared if metric.name == name), None)
        return exact or next(metric for metric in declared if "[" in metric.name and name.startswith(metric.family))

    @staticmethod
    def with_audit(
        observation: Observation,
        verdicts: "Sequence[Sequence[Verdict | JudgeError]]",
        again: "Callable[[Sequence[Sequence[Verdict | JudgeError]]], Observation | Exception]",
    ) -> Observation | Exception:
        """The observation of an audited case with what the large judge of a cascade adds to it.

        Args:
            observation: By the verdicts of the cascade.
            verdicts: Those verdicts, view by view.
            again: Measures the case by other verdicts.

        Returns:
            The observation, or the error of measuring it again; the observation itself where no cascade was asked.
        """
        cascaded = [verdict for view in verdicts for verdict in view if isinstance(verdict, CascadeVerdict)]
        if not cascaded or not observation.counts:
            return observation
        counts = {**observation.counts, _JUDGED: 1.0}
        if any(verdict.first is not None for verdict in cascaded):
            counts[_SURE] = 1.0
        if any(verdict.audited for verdict in cascaded):
            small = again([[_by_small(verdict) for verdict in view] for view in verdicts])
            if isinstance(small, Exception):
                return small
            counts[_AUDITED] = 1.0
            for name in {**observation.counts, **small.counts}:
                counts[_ADDED + name] = observation.counts.get(name, 0) - small.counts.get(name, 0)
        return structs.replace(observation, counts=counts)


def _span(metric: Metric) -> float:
    """The largest error of a cascade in a case's metric; a few small errors say nothing about rare large ones."""
    if metric.per_case is not None:
        return metric.per_case
    return 1.0 if metric.low is None or metric.high is None else metric.high - metric.low


def _counts_of(sums: Sums) -> Sums:
    """The counts of the evaluator that a cascade wraps, without the cascade's own."""
    own = {name: column for name, column in sums.items() if not name.startswith(_COUNTS)}
    return Sums(own, sums.length, sums.metrics)


@dataclass(frozen=True)
class CascadeErrors(VerdictStatistics):
    """An evaluator of the errors in a cascade's verdicts on another one's questions, as the audit shows them.

    The label of the evaluator names the metrics.

    * ``LABEL_cascade_error``, in [0, 1]: share of the audited verdicts of which the small judge is sure and with which
      the large one disagrees, by more than the tolerance of the mode;
    * ``LABEL_cascade_bias``, in [-1, 1]: what the large judge adds to the score of such a verdict, as a share of the
      scale, on average; 0 is best;
    * ``LABEL_cascade_unsure``, in [0, 1]: share of the verdicts of which the small judge is not sure.

    Attributes:
        of: Label of the evaluator that asks.
        audit: The share that is audited.
    """

    kind = "cascade"
    pools_undefined = False  # only audited cases have a part in errors

    audit: float

    def describe(self) -> Sequence[Metric]:
        """The metrics of the cascade's errors."""
        signature = f"v:{self.version}"
        return [
            Metric(self._metric("error"), higher_is_better=False, signature=signature),
            Metric(self._metric("bias"), low=-1.0, signature=signature),
            Metric(self._metric("unsure"), higher_is_better=False, signature=signature),
        ]

    def measure_verdicts(self, verdicts: "Sequence[Verdict | LlmevalError]") -> Observation:
        """The counts of one case by the verdicts of both judges."""
        cascaded = [verdict for verdict in verdicts if isinstance(verdict, CascadeVerdict)]
        if not cascaded:
            return self.absent("no question was put to a cascade")
        audited = [verdict for verdict in cascaded if verdict.audited]
        counts = {"verdicts": len(cascaded), "sure": sum(verdict.first is not None for verdict in cascaded)}
        if audited:
            counts["audited"] = len(audited)
            counts["wrong"] = sum(verdict.differs for verdict in audited)
            added = {"added": math.fsum(verdict.adds for verdict in audited)}
            return Observation({**counts, **added})
        why = NOT_AUDITED if counts["sure"] else "the small judge is unsure"
        return Observation(counts, undefined=dict.fromkeys((self._metric("error"), self._metric("bias")), why))

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The metrics as ratios of sums."""
        return {
            self._metric("error"): ratio(sums["wrong"], sums["audited"]),
            self._metric("bias"): ratio(sums["added"], sums["audited"]),
            self._metric("unsure"): ratio(sums["verdicts"] - sums["sure"], sums["verdicts"]),
        }

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The reason why nothing can be said about errors where nothing is audited."""
        if self.audit or not sums["sure"][0]:
            return {}
        return dict.fromkeys((self._metric("error"), self._metric("bias")), Basis(0, fault=f"{NOT_AUDITED} (audit: 0)"))
