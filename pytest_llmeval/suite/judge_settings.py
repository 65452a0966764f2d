"""The settings of a suite file about judges: one, or a panel."""

__all__ = ("JudgeReader", "without_unasked")

from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core.errors import FieldsError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.judge.contract import JudgedEvaluator
from pytest_llmeval.judge.panel import PanelSpec
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.suite.part_settings import PartReader
from pytest_llmeval.suite.suite import SuiteEntry


class JudgeReader(PartReader):
    """Reads ``judge``, or ``judges`` with ``reduce`` and ``min_judges``."""

    knows_metrics: bool

    def read_judge(self, entry: SuiteEntry) -> JudgeSpec | PanelSpec:
        """Return who judges; of a faulty panel, nothing more is said about its metrics."""
        if entry.judges is not None:
            panel = self._panel(entry, entry.judges)
            self.knows_metrics = self.knows_metrics and panel is not None
            return panel or JudgeSpec()
        if self.document.data.get("judges") is not None:
            self.knows_metrics = False
            return JudgeSpec()
        for name in ("reduce", "min_judges"):
            if getattr(entry, name) is not None:
                self.fault((name,), f"found {name!r} without 'judges', expected a panel of judges", key=True)
        return JudgeSpec() if entry.judge is None else self._spec(entry.judge, ("judge",)) or JudgeSpec()

    def _spec(self, entry: Any, path: tuple[str | int, ...]) -> JudgeSpec | None:
        """Return a judge: a model, or a mapping."""
        data = {"model": entry} if isinstance(entry, str) else entry
        spec: JudgeSpec | None = self.check(JudgeSpec, data, path)
        return spec

    def _panel(self, entry: SuiteEntry, judges: list[Any]) -> PanelSpec | None:
        if entry.judge is not None:
            self.fault(("judges",), "found both 'judge' and 'judges', expected one of them", key=True)
        read = [self._spec(each, ("judges", number)) for number, each in enumerate(judges)]
        specs = [spec for spec in read if spec is not None]
        if len(specs) < len(read):
            return None
        try:
            return PanelSpec(tuple(specs), entry.reduce, entry.min_judges)
        except FieldsError as error:
            for name, fault in error.faults:
                self.fault((name,), fault)
            return None

    def check_reduction(self, judge: JudgeSpec | PanelSpec, evaluators: Mapping[str, Evaluator]) -> None:
        """Refuse a panel, or a reduction, that has no meaning for an evaluator."""
        if isinstance(judge, JudgeSpec):
            return
        for label, evaluator in evaluators.items():
            if isinstance(evaluator, JudgedEvaluator) and (fault := evaluator.panel_fault(judge.reduce)):
                self.fault(("reduce",) if judge.reduce is not None else ("judges",), f"evaluator {label!r}: {fault}")


def without_unasked(evaluators: Mapping[str, Evaluator]) -> dict[str, Evaluator]:
    """Return evaluators without the agreement of a panel about evaluators that ask nothing."""
    from pytest_llmeval.evaluators.judge.panel import PanelAgreement

    return {
        label: each
        for label, each in evaluators.items()
        if not isinstance(each, PanelAgreement) or isinstance(evaluators[each.of], JudgedEvaluator)
    }
