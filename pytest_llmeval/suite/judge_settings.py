"""The settings of a suite file about judges: one, or a panel."""

__all__ = ("JudgeReader", "without_unasked")

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from pytest_llmeval.core.errors import FieldsError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.panel import PanelSpec
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.suite.part_settings import PartReader
from pytest_llmeval.suite.suite import SuiteEntry

_PLACES: Final = {
    "judges": "at the top level of the suite, in place of 'judge'",
    **dict.fromkeys(("reduce", "min_judges"), "at the top level of the suite, beside 'judges'"),
    **dict.fromkeys(("mode", "prompt", "reply", "criteria", "rubric"), "in an evaluator: {judge: {mode: ...}}"),
}
"""Where settings belong that are often taken for those of a judge."""


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
        if not isinstance(data, Mapping):
            several = "; several judges stand under 'judges'" if isinstance(data, list) and path == ("judge",) else ""
            self.fault(path, f"found {describe(data)}, expected PROVIDER:NAME or a mapping{several}")
            return None
        spec: JudgeSpec | None = self.check(JudgeSpec, self._without_misplaced(data, path), path)
        return spec

    def _without_misplaced(self, data: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        """Return the settings of a judge without those that stand elsewhere, after adding the faults."""
        misplaced = {name: _PLACES[name] for name in data if name in _PLACES}
        for name, place in misplaced.items():
            self.fault((*path, name), f"found {name!r} inside {path[0]!r}, expected it {place}", key=True)
        self.knows_metrics = self.knows_metrics and not misplaced
        return {name: value for name, value in data.items() if name not in misplaced}

    def without_judge(
        self, evaluator: type[Evaluator], options: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> dict[str, Any]:
        """Return the options of an evaluator without those that say who judges, after adding the faults."""
        if not issubclass(evaluator, JudgedEvaluator):
            return dict(options)
        own = {each.name for each in fields(evaluator)}
        named = {*(each.name for each in fields(JudgeSpec)), "judges", "reduce", "min_judges"} - own
        misplaced = [name for name in options if name in named]
        for name in misplaced:
            place = _PLACES.get(name, "under 'judge', at the top level of the suite")
            why = "the evaluators of a suite share its judge"
            self.fault((*path, name), f"found {name!r} inside an evaluator, expected it {place}: {why}", key=True)
        return {name: value for name, value in options.items() if name not in misplaced}

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
