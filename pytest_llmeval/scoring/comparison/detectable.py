"""What a gate on a drop can find: never more than its test allows."""

__all__ = ("detectable_drop", "safe_drop")

import math

from pytest_llmeval.core.wording import counted, number
from pytest_llmeval.scoring.comparison.drop_tests import Evidence
from pytest_llmeval.scoring.comparison.inference import FEW_CHANGED, least_tail
from pytest_llmeval.scoring.comparison.significance import POWER, detectable_shift
from pytest_llmeval.scoring.regression import SignificanceTest

_POWER_SAID = f"in {100 * POWER:.0f} of 100 runs"


def detectable_drop(found: Evidence, max_drop: float, tail: float, room: float, test: SignificanceTest) -> str:
    """Say which true drop a gate finds in 80 of 100 runs.

    Args:
        found: What the data say.
        max_drop: The drop that is allowed.
        tail: The one-sided level at which the gate is judged, divided by the number of tests beside it.
        room: How far the metric can fall from the baseline at all.
        test: Of the gate.
    """
    data = found.estimate
    needed = math.ceil(-math.log2(tail)) - (test == "mcnemar_mid_p")
    if (needed > data.units) if data.changed is not None else (least_tail(data) > tail):
        return f"no drop is detectable with {counted(data.units, 'case')}"
    shift = _shift(found, tail, needed)
    if shift is None:
        return "smallest detectable drop unknown"
    if max_drop + shift > room:
        return f"no drop that is possible is found {_POWER_SAID}"
    return f"smallest detectable drop {number(max_drop + shift)}"


def safe_drop(found: Evidence, tail: float, reach: float | None) -> str:
    """Say of which `max_drop` a run as good as the baseline proves itself safe in 80 of 100 runs.

    Args:
        found: What the data say.
        tail: The one-sided level of the test.
        reach: How far apart two values of the metric can be.
    """
    data = found.estimate
    shift = detectable_shift(found.deviation, 1 - 2 * tail, units=data.units)
    if data.changed is not None and data.changed < FEW_CHANGED and reach and data.units:
        from scipy.special import bdtri

        most = float(bdtri(data.changed, data.units, tail)) if data.changed < data.units else 1.0
        shift = max(shift, reach * most)
    return f"smallest max_drop that an equally good run meets {number(shift) if shift else 'unknown'}"


def _shift(found: Evidence, tail: float, needed: int) -> float | None:
    """Return the drop beyond what is allowed that is found; ``None`` where its scatter is unknown."""
    data = found.estimate
    binary = data.binary and data.changed is not None
    shift = detectable_shift(found.deviation, 1 - 2 * tail, units=data.units, binary=binary)
    if binary:
        from scipy.special import bdtri

        shift = max(shift, float(bdtri(needed - 1, data.units, 1 - POWER)) if needed < data.units else 1.0)
    return shift or None
