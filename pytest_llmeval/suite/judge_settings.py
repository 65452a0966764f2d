"""The settings of a suite file about judges: one, or a panel."""

__all__ = ("JudgeReader",)

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

    def read_judge(self, entry: SuiteEntry) -> JudgeSpec | PanelSpec:
        """Return who judges."""
        if entry.judges is not None:
            return self._panel(entry, entry.judges)
        for name in ("reduce", "min_judges"):
            if getattr(entry, name) is not None:
                self.fault((name,), f"found {name!r} without 'judges', expected a panel of judges", key=True)
        return JudgeSpec() if entry.judge is None else self._spec(entry.judge, ("judge",)) or JudgeSpec()

    def _spec(self, entry: Any, path: tuple[str | int, ...]) -> JudgeSpec | None:
        """Return a judge: a model, or a mapping."""
        data = {"model": entry} if isinstance(entry, str) else entry
        spec: JudgeSpec | None = self.check(JudgeSpec, data, path)
        return spec

    def _panel(self, entry: SuiteEntry, judges: list[Any]) -> JudgeSpec | PanelSpec:
        if entry.judge is not None:
            self.fault(("judges",), "found both 'judge' and 'judges', expected one of them", key=True)
        read = [self._spec(each, ("judges", number)) for number, each in enumerate(judges)]
        specs = [spec for spec in read if spec is not None]
        if len(specs) < len(read):
            return JudgeSpec()
        try:
            return PanelSpec(tuple(specs), entry.reduce, entry.min_judges)
        except FieldsError as error:
            for name, fault in error.faults:
                self.fault((name,), fault)
            return JudgeSpec()

    def check_reduction(self, panel: PanelSpec, evaluators: Mapping[str, Evaluator]) -> None:
        """Refuse a reduction that has no meaning for an evaluator."""
        for label, evaluator in evaluators.items():
            if isinstance(evaluator, JudgedEvaluator) and (fault := evaluator.panel_fault(panel.reduce)):
                self.fault(("reduce",) if panel.reduce is not None else ("judges",), f"evaluator {label!r}: {fault}")
