"""Evaluator ``classification``: a label, or a sequence of labels, compared with the right ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pytest_llmeval.core import (
    Case,
    ConfusionMatrix,
    Evaluator,
    FloatArray,
    LabelKey,
    Metric,
    Observation,
    Reads,
    Sums,
    listed,
    suggest,
    unknown_name,
)
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators.measures import _confusion as confusion

ClassMetric: TypeAlias = Literal[
    "accuracy",
    "precision_micro",
    "recall_micro",
    "f1_micro",
    "precision_macro",
    "recall_macro",
    "f1_macro",
    "precision_weighted",
    "recall_weighted",
    "f1_weighted",
    "positive_precision",
    "positive_recall",
    "positive_f1",
    "precision[label]",
    "recall[label]",
    "f1[label]",
    "support[label]",
    "cohen_kappa",
    "mcc",
]
"""A metric that the evaluator knows."""

_Label: TypeAlias = str | int | float | bool

_KINDS = ("micro", "macro", "weighted")
_PARTS = ("precision", "recall", "f1")
_MOST_LABELS = 50
_MOST_POSITIONS = 20
"""Positions of a sequence that details list."""


@dataclass(frozen=True)
class Classification(Evaluator):
    """Accuracy, precision, recall, F1, Cohen's kappa, Matthews' correlation and confusion counts.

    ``expected`` is a label (string, number or boolean) or a list of labels, one per item of a sequence; the
    prediction has the same form. Labels are equal if their JSON texts are. Definitions are those of
    scikit-learn (``accuracy_score``, ``precision_recall_fscore_support``, ``cohen_kappa_score``,
    ``matthews_corrcoef``) over the items of all cases:

    * precision of a label that is never predicted is 0; recall of a label without gold is undefined (in the
      macro average it counts as 0); a label that occurs on neither side takes no part in averages;
    * where one label is all there is, kappa is undefined and Matthews' correlation 0, as in scikit-learn;
    * an item without a prediction counts as predicted "(none)": wrong, a miss of its gold label, and no label
      to be averaged. With a closed set, a prediction outside it is treated alike, under its own name.

    Labels that only predictions have get metrics of their own as long as there are at most 50 labels.

    Attributes:
        metrics: Which metrics to report, families of labels as ``f1[label]``; empty: all.
        labels: The closed set of labels; empty: any label. A gold label outside it is a fault of the case.
        ignore: Labels left out of micro, macro and weighted averages, as by scikit-learn's ``labels=``; micro
            averages then differ from accuracy. They stay in all other metrics.
        positive: The label whose binary precision, recall and F1 are reported as ``positive_*``.
        negatives: Instead of `positive`: all labels but these are positive, whichever of them it is.

    Raises:
        ValueError: Both `positive` and `negatives` are given, or an option names a label outside `labels`.
    """

    name = "classification"
    reads = Reads("answer")

    metrics: tuple[ClassMetric, ...] = ()
    labels: tuple[_Label, ...] = ()
    ignore: tuple[_Label, ...] = ()
    positive: _Label | None = None
    negatives: tuple[_Label, ...] = ()

    def __post_init__(self) -> None:
        if self.positive is not None and self.negatives:
            raise ValueError("found both positive and negatives, expected one of them")
        known = [metric.name for metric in self._all_metrics()]
        for name in self.metrics:
            if name not in known:
                raise ValueError(unknown_name("metric", name, known))
        for option, values in self._named_labels():
            for fault in map(self._fault, values):
                if fault:
                    raise ValueError(f"{option}: {fault}")

    def _named_labels(self) -> list[tuple[str, Sequence[_Label]]]:
        positive = () if self.positive is None else (self.positive,)
        named = {
            "labels": self.labels,
            "ignore": self.ignore,
            "positive": positive,
            "negatives": self.negatives,
        }
        return list(named.items())

    @cached_property
    def _closed(self) -> dict[str, None]:
        return dict.fromkeys(map(_key, self.labels))

    @cached_property
    def _ignored(self) -> frozenset[str]:
        return frozenset(map(_key, self.ignore))

    @cached_property
    def _negative(self) -> frozenset[str]:
        return frozenset(map(_key, self.negatives))

    @property
    def _has_positive(self) -> bool:
        return self.positive is not None or bool(self.negatives)

    def _is_known(self, key: str) -> bool:
        return key in self._closed if self._closed else key != LabelKey.NONE

    def _is_averaged(self, key: str) -> bool:
        return self._is_known(key) and key not in self._ignored

    def _is_positive(self, key: str) -> bool:
        if self.positive is not None:
            return key == _key(self.positive)
        return self._is_known(key) and key not in self._negative

    def _fault(self, value: Any) -> str | None:
        """The fault of a label; ``None`` if it has none."""
        key = LabelKey.of_value(value)
        if key is None:
            return f"found {AnswerValue(value).kind}, expected a label (text, number or boolean)"
        if not self._closed or key in self._closed:
            return None
        spelled = [str(label) for label in self.labels]
        hint = "" if str(value) in spelled else suggest(str(value), spelled)
        return f"found {AnswerValue(value).kind}, expected one of the labels {', '.join(self._closed)}{hint}"

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the expected label or labels, each fault once."""
        if case.expected is None:
            return ()
        values = case.expected if isinstance(case.expected, (list, tuple)) else [case.expected]
        return list(dict.fromkeys(fault for fault in map(self._fault, values) if fault))

    def describe(self) -> Sequence[Metric]:
        """The chosen metrics; ``positive_*`` only if an option defines what is positive."""
        return [metric for metric in self._all_metrics() if not self.metrics or metric.name in self.metrics]

    def _all_metrics(self) -> list[Metric]:
        signature = self._signature()
        averages = [f"{part}_{kind}" for kind in _KINDS for part in _PARTS]
        binary = [f"positive_{part}" for part in _PARTS] if self._has_positive else []
        families = [f"{part}[label]" for part in _PARTS]
        return [
            *(Metric(name, signature=signature) for name in ("accuracy", *averages, *binary, *families)),
            Metric("support[label]", high=None, signature=signature),
            Metric("cohen_kappa", low=-1.0, signature=signature),
            Metric("mcc", low=-1.0, signature=signature),
        ]

    def _signature(self) -> str:
        chosen = [
            f"{option}:{','.join(LabelKey(_key(value)).name for value in values)}"
            for option, values in self._named_labels()
            if values
        ]
        return "|".join([*chosen, "zero_division:0", f"v:{self.version}"])

    def measure(self, case: Case) -> Observation:
        """Count the confusion cells of one case."""
        gold, fault = _gold_keys(case.expected)
        if fault:
            return Observation({}, undefined=dict.fromkeys(self._fixed_names, fault))
        predicted, malformed = _predicted_keys(case)
        surplus = predicted[len(gold) :]
        predicted = (predicted + [LabelKey.NONE] * len(gold))[: len(gold)]
        cells = Counter(zip(gold, predicted, strict=True))
        return Observation(
            {ConfusionMatrix.cell_name(*cell): count for cell, count in sorted(cells.items())},
            details=self._details(case, gold, predicted, surplus),
            undefined=self._undefined_reasons(gold, predicted),
            malformed=malformed,
        )

    def _details(self, case: Case, gold: list[str], predicted: list[str], surplus: list[str]) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if isinstance(case.expected, (list, tuple)):
            pairs = enumerate(zip(gold, predicted, strict=True), start=1)
            differing = [
                {"position": position, "expected": LabelKey(right).name, "predicted": LabelKey(answered).name}
                for position, (right, answered) in pairs
                if right != answered
            ]
            if differing:
                details |= {"differing": len(differing), "differing_positions": differing[:_MOST_POSITIONS]}
        if invalid := {key for key in predicted if key != LabelKey.NONE and not self._is_known(key)}:
            details["invalid_labels"] = sorted(LabelKey(key).name for key in invalid)
        if surplus:
            details["surplus_labels"] = [LabelKey(key).name for key in surplus[:_MOST_POSITIONS]]
        return details

    def _undefined_reasons(self, gold: list[str], predicted: list[str]) -> dict[str, str]:
        """The reasons why averages and positive metrics have no value in a case with gold labels."""
        reasons: dict[str, str] = {}
        if not any(map(self._is_averaged, gold)):
            names = ["recall_micro", *(f"{part}_weighted" for part in _PARTS)]
            if not any(map(self._is_averaged, predicted)):
                names += ["precision_micro", "f1_micro", *(f"{part}_macro" for part in _PARTS)]
            reasons |= dict.fromkeys(names, "no expected label is averaged")
        if self._has_positive and not any(map(self._is_positive, gold)):
            names = ["positive_recall"]
            if not any(map(self._is_positive, predicted)):
                names += ["positive_precision", "positive_f1"]
            reasons |= dict.fromkeys(names, "no expected label is positive")
        return {name: why for name, why in reasons.items() if name in self._fixed_names}

    def _open_labels(self, cells: Iterable[tuple[str, str]], labels: Sequence[str]) -> list[str]:
        """The labels to report one by one where the set is open.

        A model that explains itself instead of naming a label makes a label of every answer, so labels that only
        predictions have are reported if they are few.
        """
        right = {gold for gold, _ in cells}
        return [key for key in labels if key != LabelKey.NONE and (key in right or len(labels) <= _MOST_LABELS)]

    @cached_property
    def _fixed_names(self) -> list[str]:
        return [metric.name for metric in self.describe() if "[" not in metric.name]

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which labels differ from the expected ones, and which are none of the set."""
        gold, _ = _gold_keys(case.expected)
        if not gold:
            return []
        predicted, _ = _predicted_keys(case)
        answered = (predicted + [LabelKey.NONE] * len(gold))[: len(gold)]
        many = isinstance(case.expected, (list, tuple))
        lines = [
            f"{f'position {position}: ' if many else ''}found {LabelKey(label).name}, expected {LabelKey(right).name}"
            for position, (right, label) in enumerate(zip(gold, answered, strict=True), start=1)
            if right != label
        ]
        if surplus := [LabelKey(key).name for key in predicted[len(gold) :]]:
            lines.append(f"surplus labels: {listed(surplus)}")
        if invalid := observation.details.get("invalid_labels"):
            lines.append(f"none of the labels {listed(map(str, self.labels), _MOST_POSITIONS)}: {listed(invalid)}")
        return lines

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Compute all metrics from summed confusion cells."""
        cells = ConfusionMatrix.read_cells(sums)
        if sums.metrics is not None and all("[" in name for name in sums.metrics):
            return self._of_labels(cells, sums.length, sums.metrics)
        margins = confusion.Margins.from_cells(cells, sums.length)
        averaged = margins.only([key for key in margins.labels if self._is_averaged(key)])
        metrics = {"accuracy": confusion.ratio(margins.hits.sum(axis=0), margins.gold.sum(axis=0))}
        for kind in _KINDS:
            average = averaged.average(kind)
            metrics |= {f"{part}_{kind}": column for part, column in average.items()}
        if self._has_positive:
            margins_of_two = confusion.Margins.from_cells(confusion.merged(cells, self._is_positive), sums.length)
            binary = margins_of_two.only([confusion.MERGED]).average("micro")
            metrics |= {f"positive_{part}": column for part, column in binary.items()}
        metrics |= {"cohen_kappa": margins.cohen_kappa(), "mcc": confusion.matthews(margins)}
        if sums.metrics is None or any("[" in name for name in sums.metrics):
            metrics |= confusion.per_label(margins, self._closed or self._open_labels(cells, margins.labels))
        return self._select_reported(metrics)

    def _of_labels(
        self, cells: Mapping[tuple[str, str], FloatArray], length: int, metric_names: frozenset[str]
    ) -> Mapping[str, FloatArray]:
        """Compute metrics of some labels from their own cells alone."""
        names = {name.split("[", 1)[1].removesuffix("]") for name in metric_names}
        keys = list(dict.fromkeys(key for cell in cells for key in cell))
        reported = self._closed or self._open_labels(cells, keys)
        labels = [key for key in reported if LabelKey(key).name in names]
        own = frozenset(labels)
        around = {cell: column for cell, column in cells.items() if not own.isdisjoint(cell)}
        return self._select_reported(confusion.per_label(confusion.Margins.from_cells(around, length, own), labels))

    def _select_reported(self, metrics: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        families = {metric.family for metric in self.describe()}
        return {name: column for name, column in metrics.items() if Metric(name).family in families}


def _key(label: _Label) -> str:
    """The key of an expected or predicted label in the confusion counts."""
    return LabelKey.of_value(label) or LabelKey.NONE


def _gold_keys(expected: Any) -> tuple[list[str], str | None]:
    """The keys of a case's expected labels, or the reason why there are none to compare with."""
    values = expected if isinstance(expected, (list, tuple)) else [] if expected is None else [expected]
    if not values:
        return [], "no expected label"
    keys = [key for value in values if (key := LabelKey.of_value(value)) is not None]
    if len(keys) < len(values):
        return [], f"found {AnswerValue(expected).kind} as expected, expected a label or a list of labels"
    return keys, None


def _predicted_keys(case: Case) -> tuple[list[str], str | None]:
    """The keys of a case's predicted labels, and the fault of a malformed prediction."""
    many = isinstance(case.expected, (list, tuple))
    if not many:
        key = LabelKey.of_value(case.prediction)
        return ([], f"found {AnswerValue(case.prediction).kind}, expected a label") if key is None else ([key], None)
    if not isinstance(case.prediction, (list, tuple)):
        return [], f"found {AnswerValue(case.prediction).kind}, expected a list of labels"
    keys = [LabelKey.of_value(value) or LabelKey.NONE for value in case.prediction]
    faults = [
        f"found {AnswerValue(case.prediction[index]).kind} at position {index + 1}, expected a label"
        for index, key in enumerate(keys)
        if key == LabelKey.NONE
    ][:1]
    if len(keys) != len(case.expected):
        faults.append(f"found {len(keys)} labels, expected {len(case.expected)}")
    return keys, "; ".join(faults) or None
