"""Simulated pull requests: pairs of runs drawn from repeated runs of one version."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING

from pytest_llmeval.core import CaseRecord, FloatArray, GateResult, Metric, Observation, counted
from pytest_llmeval.evaluators import RecordedScores
from pytest_llmeval.gates import ChangeGate, DropGate, Gate, GateEvidence
from pytest_llmeval.numbers import TOLERANCE, CaseStatistics, RunPairing
from pytest_llmeval.workbench.plan._spread import Planned, Sources

if TYPE_CHECKING:
    import numpy as np

_LEAST = 2
"""Fewest cases."""


@dataclass(frozen=True)
class RepeatedScores:
    """One metric in several runs of the same version.

    Attributes:
        evaluator: The metric, as an evaluator.
        scores: Runs by cases.
        labels: Those of every case.
        clusters: For every case, the number of its cluster.
        gate: The gate to try.
    """

    evaluator: RecordedScores
    scores: FloatArray
    labels: Sequence[Mapping[str, str]]
    clusters: "np.typing.NDArray[np.intp]"
    gate: ChangeGate

    @classmethod
    def from_sources(cls, sources: Sources, planned: Planned) -> "RepeatedScores | str":
        """Return the scores of the cases that have one in all reports, or why they say nothing about noise."""
        import numpy as np

        name = Gate.split_statistic(planned.metric)[1]
        runs = [run.scores for run in sources.reported(planned.metric)]
        common = [case for case in sources.suite.cases if all(case.id in scores for scores in runs)]
        if len(common) < _LEAST:
            return f"{counted(len(common), 'case')} with a score in all runs, expected two or more"
        scores = np.array([[run[case.id] for case in common] for run in runs])
        if not np.ptp(scores, axis=0).any():
            return "all runs are equal, as answers of a cache are: they say nothing about noise. Run again without it"
        (_, report), *_ = sources.reports
        ranges = {name: report.ranges[name]} if name in report.ranges else {}
        ranges |= {name: (0.0, 1.0)} if name == Metric.PASS_RATE else {}
        evaluator = RecordedScores((name,), frozenset({name} & {*report.lower_is_better}), ranges)
        gate = planned.gate or DropGate(name, 0.0)
        gate = replace(gate, cluster_by=planned.cluster_by, confidence=planned.confidence or gate.confidence)
        clusters = sources.units([case.id for case in common], planned.cluster_by)
        return cls(evaluator, scores, [case.labels for case in common], clusters, gate)

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.evaluator.metrics[0]

    @cached_property
    def worst(self) -> float | None:
        """The worst value of the metric; ``None`` if it has none."""
        metric = self.evaluator.describe()[0]
        return metric.low if metric.higher_is_better else metric.high

    @property
    def room(self) -> float | None:
        """By how much the mean can fall; ``None`` without a worst value."""
        return None if self.worst is None else abs(float(self.scores.mean()) - self.worst)

    def pairs(self) -> Iterator[tuple[bool, GateResult]]:
        """Compare every run with every other: whether the mean is worse, and the gate's verdict."""
        cases = range(len(self.clusters))
        for now, before in permutations(self.scores, 2):
            yield self._verdict(now, before, cases, self.clusters.tolist())

    def simulated(self, drop: float, times: int, seed: int) -> Iterator[tuple[bool, GateResult]]:
        """Compare drawn runs, the second of which is worse by `drop`.

        Cases (or clusters) are drawn with replacement, and for each case two different runs. Of a metric with a worst
        value, so many cases fall to it that the mean falls by `drop`; of others, all fall by as much.
        """
        import numpy as np

        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode()), round(1e6 * drop)])
        members = [np.flatnonzero(self.clusters == cluster) for cluster in np.unique(self.clusters)]
        sign = -1.0 if self.evaluator.describe()[0].higher_is_better else 1.0
        for _ in range(times):
            drawn = [members[unit] for unit in rng.integers(len(members), size=len(members))]
            cases = np.concatenate(drawn)
            clusters = np.repeat(np.arange(len(drawn)), [len(unit) for unit in drawn])
            runs = rng.permuted(np.tile(np.arange(len(self.scores)), (len(cases), 1)), axis=1)[:, :2].T
            now, before = self.scores[runs, cases]
            if self.room is None or self.worst is None:
                now = now + sign * drop
            else:
                now = np.where(rng.random(len(cases)) < (drop / self.room if drop else 0.0), self.worst, now)
            yield self._verdict(now, before, cases.tolist(), clusters.tolist())

    def _verdict(
        self, now: FloatArray, before: FloatArray, cases: Sequence[int], clusters: Sequence[int]
    ) -> tuple[bool, GateResult]:
        drop = float((before - now).mean()) * (1 if self.evaluator.describe()[0].higher_is_better else -1)
        pairing = self._pairing(now, before, cases, clusters)
        return drop > TOLERANCE, GateEvidence.judge_together([self.gate.examine(pairing)])[0]

    def _pairing(
        self, now: FloatArray, before: FloatArray, cases: Sequence[int], clusters: Sequence[int]
    ) -> RunPairing:
        label = self.gate.cluster_by
        runs = [
            CaseStatistics.exact(
                CaseRecord(
                    f"{place:06}",
                    {**self.labels[case], **({label: str(cluster)} if label else {})},
                    "passed",
                    {"recorded": Observation({f"sum {self.name}": float(score), f"cases {self.name}": 1})},
                )
                for place, (score, case, cluster) in enumerate(zip(scores, cases, clusters, strict=True))
            )
            for scores in (now, before)
        ]
        return RunPairing(runs[0], runs[1], {"recorded": self.evaluator})
