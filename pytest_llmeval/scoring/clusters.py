"""Cases that belong together: what is drawn as one, and what that costs."""

__all__ = ("by_unit", "design_effect", "unit_numbers")

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_llmeval.core.results import CaseRecord

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
    IntArray: TypeAlias = npt.NDArray[np.intp]
else:
    FloatArray: TypeAlias = Any
    IntArray: TypeAlias = Any

_ROUNDING = 1e-12


def unit_numbers(records: Sequence[CaseRecord], cluster_by: str | None) -> IntArray:
    """Return for every case the number of what is drawn with it; a case without the label is drawn alone."""
    import numpy as np

    if cluster_by is None:
        return np.arange(len(records))
    keys = []
    for record in records:
        name = record.labels.get(cluster_by)
        keys.append((1, record.id) if name is None else (0, name))
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], dtype=np.intp)


def by_unit(block: FloatArray, units: IntArray) -> FloatArray:
    """Add up the rows of every unit."""
    import numpy as np

    size = int(units.max()) + 1 if units.size else 0
    if size == len(block):
        return block
    out = np.zeros((size, block.shape[1]))
    np.add.at(out, units, block)
    return out


def design_effect(influence: FloatArray, units: IntArray) -> float | None:
    """Return by which factor the variance of a value grows because cases are drawn in clusters (Kish 1965).

    Args:
        influence: What the value loses without each of the cases, which sums up to nearly 0.
        units: Of the cases.

    Returns:
        The factor; ``None`` where no case has any influence, or all are in one cluster.
    """
    import numpy as np

    influence = np.where(np.isfinite(influence), influence, 0.0)
    alone = float(np.sum(influence**2))
    together = np.bincount(units, weights=influence)
    cases, clusters = len(influence), len(together)
    if alone <= _ROUNDING**2 or clusters <= 1:
        return None
    return float(np.sum(together**2)) / alone * (clusters / (clusters - 1)) / (cases / (cases - 1))
