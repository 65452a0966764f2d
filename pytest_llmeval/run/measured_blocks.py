"""Measuring recorded predictions in batches, for evaluators that are faster that way."""

__all__ = ("MeasuredBlocks", "cut")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.run.score import measure_each
from pytest_llmeval.suite.suite import Suite


@dataclass
class MeasuredBlocks:
    """What a process has measured ahead of the cases that want it."""

    _measured: dict[tuple[tuple[Path, str], str, str], Observation | Exception] = field(default_factory=dict)
    _cut: dict[tuple[tuple[Path, str], str], Mapping[str, Sequence[Case]]] = field(default_factory=dict)

    def measure(self, suite: Suite, label: str, evaluator: Evaluator, case: Case) -> Observation | Exception:
        """Measure a case together with its neighbours in the file.

        Blocks are cut by position in the file, not by what this process happens to run, so that every process measures
        a case in the same company and gets the same number.

        Args:
            suite: The suite.
            label: Of the evaluator.
            evaluator: Measures.
            case: One of the suite that carries its prediction.
        """
        if evaluator.batch <= 1:
            return measure_each(evaluator, [case], suite.readings[label])[0]
        place = (suite.place, label, case.id)
        if place not in self._measured:
            block = self._blocks(suite, label, evaluator.batch)[case.id]
            for each, measured in zip(block, measure_each(evaluator, block, suite.readings[label]), strict=True):
                self._measured[suite.place, label, each.id] = measured
        return self._measured.pop(place)

    def _blocks(self, suite: Suite, label: str, size: int) -> Mapping[str, Sequence[Case]]:
        if (suite.place, label) not in self._cut:
            self._cut[suite.place, label] = cut([each for each in suite.cases if each.prediction is not MISSING], size)
        return self._cut[suite.place, label]


def cut(cases: Sequence[Case], size: int) -> Mapping[str, Sequence[Case]]:
    """Cut cases into blocks; return the id of each case with its block."""
    blocks = [cases[start : start + size] for start in range(0, len(cases), size)]
    return {each.id: block for block in blocks for each in block}
