"""What a gate on a drop can find: never more than its test allows."""

__all__ = ("DropPower", "detectable_drop", "detectable_gain", "drop_power", "safe_drop", "units_of")

import math
from dataclasses import dataclass, replace

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.wording import counted, number
from pytest_llmeval.scoring.comparison.drop_tests import Evidence
from pytest_llmeval.scoring.comparison.estimation import Estimate
from pytest_llmeval.scoring.comparison.inference import FEW_CHANGED, least_tail, span
from pytest_llmeval.scoring.comparison.significance import POWER, detectable_shift, unseen_tail
from pytest_llmeval.scoring.regression import RegressionGate

_POWER_SAID = f"in {100 * POWER:.0f} of 100 runs"


@dataclass(frozen=True, slots=True)
class DropPower:
    """What a gate could have found with the cases, clusters and gates that there are.

    Attributes:
        level: The one-sided level at which the gate is judged, divided by the number of tests beside it.
        least: The smallest one-sided p-value that a drop can have, were every case to fall as far as it can.
        observed: The drop; ``None`` if it is not known.
        room: The largest drop that is possible; infinite where the metric has no end.
        smallest: The smallest true drop that is found in 80 of 100 runs; ``None`` where no possible one is, or how
            much the difference scatters is not known.
        scatters: Whether the scatter is known.
    """

    level: float
    least: float
    observed: float | None
    room: float
    smallest: float | None
    scatters: bool

    @property
    def decides(self) -> bool:
        """Whether some drop that is possible could have been established."""
        return self.least <= self.level


def drop_power(found: Evidence, gate: RegressionGate, metric: Metric, tests: int = 1) -> DropPower:
    """Say what a gate can find.

    Args:
        found: What the data say.
        gate: A gate with the rule ``proven_drop``.
        metric: Its metric.
        tests: By how much the level is divided: the gates that are judged together, times the groups of this one.
    """
    data = found.estimate
    level = (1 - gate.confidence) / gate.sides / tests
    end = metric.low if metric.higher_is_better else metric.high
    room = math.inf if end is None or data.baseline is None else abs(data.baseline - end)
    shift = _shift(found, level, _needed(level, gate))
    if shift is not None and data.changed is not None and (reach := span(metric)) and room <= reach:
        # So large that the cases which would take it back could not all have gone unseen.
        unseen = 1 - level ** (1 / max(1, data.units))
        shift = max(shift, unseen * (reach - room + gate.max_drop) / (1 - unseen))
    smallest = None if shift is None or gate.max_drop + shift > room else gate.max_drop + shift
    least = _least(data, gate, room, span(metric))
    return DropPower(level, least, found.drop, room, smallest if least <= level else None, shift is not None)


def _least(data: Estimate, gate: RegressionGate, room: float, reach: float | None) -> float:
    """Return the smallest p-value that the gate's test has for any drop that is possible."""
    if room <= gate.max_drop:
        return 1.0
    if data.changed is None:
        return least_tail(data)
    can_fall = data.units
    if data.binary and reach and data.units == data.cases:
        can_fall = round(room / reach * data.cases)  # the others are wrong already
    sign = 0.5 ** (can_fall + (gate.test == "mcnemar_mid_p"))
    if data.binary or reach is None or room > reach:
        return float(sign)
    return max(float(sign), unseen_tail(room - gate.max_drop, reach, data.units))


def _needed(level: float, gate: RegressionGate) -> int:
    """Return how many cases have to fall, and no other rise, for a drop to be established."""
    return math.ceil(-math.log2(level)) - (gate.test == "mcnemar_mid_p")


def units_of(data: Estimate) -> str:
    """Say what was drawn independently: the cases, or the clusters that they come in."""
    if data.units == min(data.cases, data.baseline_cases):
        return counted(data.units, "case")
    return f"{counted(data.cases, 'case')} in {counted(data.units, 'cluster')}"


def detectable_drop(found: Evidence, gate: RegressionGate, metric: Metric, tests: int) -> str:
    """Say which true drop a gate finds in 80 of 100 runs; see `drop_power`."""
    power = drop_power(found, gate, metric, tests)
    if not power.decides:
        return f"no drop is detectable with {units_of(found.estimate)}"
    if not power.scatters:
        return "smallest detectable drop unknown"
    if power.smallest is None:
        return f"no drop that is possible is found {_POWER_SAID}"
    return f"smallest detectable drop {number(power.smallest)}"


def detectable_gain(found: Evidence, gate: RegressionGate, metric: Metric, tests: int) -> str:
    """Say which true gain over another system a gate finds in 80 of 100 runs."""
    data = found.estimate
    level = (1 - gate.confidence) / gate.sides / tests
    if least_tail(replace(data, changed=None if data.changed is None else data.units)) > level:
        return f"no gain is detectable with {units_of(data)}"
    shift = _shift(found, level, _needed(level, gate))
    if shift is None:
        return "smallest detectable gain unknown"
    end = metric.high if metric.higher_is_better else metric.low
    if end is not None and data.baseline is not None and gate.least_gain + shift > abs(end - data.baseline):
        return f"no gain that is possible is found {_POWER_SAID}"
    return f"smallest detectable gain {number(gate.least_gain + shift)}"


def safe_drop(found: Evidence, gate: RegressionGate, metric: Metric) -> str:
    """Say of which `max_drop` a run as good as the baseline proves itself safe in 80 of 100 runs."""
    data, reach = found.estimate, span(metric)
    tail = (1 - gate.confidence) / gate.sides
    shift = detectable_shift(found.deviation, 1 - 2 * tail, units=data.units)
    if data.changed is not None and reach and data.units and data.value is not None:
        from scipy.special import bdtri

        few = data.changed < FEW_CHANGED
        end = metric.low if metric.higher_is_better else metric.high
        room = reach if few or end is None else min(reach, abs(data.value - end))
        changed = data.changed if few else 0
        shift = max(shift, room * (float(bdtri(changed, data.units, tail)) if changed < data.units else 1.0))
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
