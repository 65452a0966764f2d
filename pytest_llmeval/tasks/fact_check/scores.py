"""Scores of fact checks from summed counts: verdicts, evidence, explanations, overall."""

__all__ = ("OTHER", "evidence_scores", "mean", "verdict_scores")

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pytest_llmeval.core.labels import NO_LABEL, label_key, label_name, read_cells
from pytest_llmeval.evaluators.measures.confusion import Margins, average, precision, ratio, recall

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

OTHER: Final = "(other)"
"""The predicted label of an unknown verdict."""


def mean(sums: "Sums", name: str) -> "FloatArray":
    """Return the sum of a score by the number of cases that have it (counted as ``name.n``); NaN where none has."""
    return ratio(sums[name], sums[f"{name}.n"])


def verdict_scores(sums: "Sums", verdicts: Sequence[str]) -> "dict[str, FloatArray]":
    """Return accuracy, macro F1 over `verdicts`, accuracy by gold verdict, and the cells of the confusion matrix.

    A verdict that is neither gold nor predicted takes no part in the macro average. All cells of a gold verdict are
    there, those that are 0 too, so that a gate can ask for 0; they are NaN where no claim has that verdict.
    """
    import numpy as np

    keys = [key for verdict in verdicts if (key := label_key(verdict)) is not None]
    cells = read_cells(sums)
    margins = Margins.of(cells, sums.length)
    macro = average(margins.only(keys), "macro")
    scores = {
        "verdict_accuracy": ratio(margins.hits.sum(axis=0), margins.gold.sum(axis=0)),
        "verdict_macro_f1": macro["f1"],
    }
    for row, key in enumerate(margins.labels):
        if key in keys:
            scores[f"verdict_accuracy[{label_name(key)}]"] = recall(margins.hits[row], margins.gold[row])
            for predicted in (*keys, label_key(OTHER) or NO_LABEL):
                column = cells.get((key, predicted), np.zeros(sums.length))
                name = f"confusion[{label_name(key)}->{label_name(predicted)}]"
                scores[name] = np.where(margins.gold[row] == 0, np.nan, column)
    return scores


def evidence_scores(sums: "Sums", verdicts: Sequence[str]) -> "dict[str, FloatArray]":
    """Return precision, recall and F1 of evidence: means over claims, F1 by gold verdict and its mean, and pooled ones.

    The pooled scores (``evidence_micro_...``) come from all citations and all sources: precision is matched citations
    by citations, recall matched sources by sources, F1 their harmonic mean.
    """
    import numpy as np

    scores = {f"evidence_{part}": mean(sums, f"evidence_{part}") for part in ("precision", "recall", "f1")}
    by_verdict = {verdict: mean(sums, f"evidence_f1[{verdict}]") for verdict in verdicts}
    columns = np.array(list(by_verdict.values()))
    scores["evidence_macro_f1"] = ratio(np.nansum(columns, axis=0), np.isfinite(columns).sum(axis=0))
    scores |= {f"evidence_f1[{verdict}]": column for verdict, column in by_verdict.items()}
    cited, gold = sums["cited"], sums["gold"]
    pooled_precision = precision(sums["cited.matched"], cited, gold)
    pooled_recall = recall(sums["gold.matched"], gold)
    scores["evidence_micro_precision"] = pooled_precision
    scores["evidence_micro_recall"] = pooled_recall
    scores["evidence_micro_f1"] = _harmonic(pooled_precision, np.nan_to_num(pooled_recall))
    return scores


def _harmonic(left: "FloatArray", right: "FloatArray") -> "FloatArray":
    """Return 2lr / (l + r), 0 where both are 0, NaN where one is."""
    import numpy as np

    both = left + right
    return np.where(both == 0, 0.0, ratio(2 * left * right, both))
