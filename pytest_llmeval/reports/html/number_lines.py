"""Where a gate's value, limit and interval lie, as the number line of a gate shows them."""

__all__ = ("number_line",)

import re
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.scoring.gates import GateFormError, parse_gate

_RELATIVE = re.compile(r"(?P<kind>drop|drift|gain)\((?P<metric>.+?)\) (?P<operator><=|>=) ")
_BY = " by "
_CONFIDENT = ("value", "low", "high")


def number_line(gate: Mapping[str, Any], metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the operator of a gate's limit and the interval around its value, as far as they are known.

    Args:
        gate: As the JSON report has it.
        metrics: Name to metric of the suite, ``pass_rate`` among them.

    Example:
        >>> number_line({"gate": "f1 >= 0.7"}, {"f1": {"low": 0.6, "high": 0.8}})
        {'operator': '>=', 'low': 0.6, 'high': 0.8}
    """
    text = str(gate.get("gate", ""))
    relative = _RELATIVE.match(text)
    if relative is not None:
        known = {name: gate[name] for name in ("low", "high") if gate.get(name) is not None}
        # Such a gate fails by what is established, not by the side of the limit that its value is on.
        return {"operator": relative["operator"], "relative": True, **known}
    whole, _, label = text.rpartition(_BY)
    try:
        # A gate between two limits names the one that its value was compared with.
        parsed = parse_gate(_nearest(whole or label, gate.get("limit")))
    except (GateFormError, ValueError):
        return {}
    line = {"operator": parsed.bounds[0].operator}
    found = metrics.get(parsed.metric)
    if whole or found is None or parsed.statistic not in _CONFIDENT:
        return line
    return line | {name: found[name] for name in ("low", "high") if found.get(name) is not None}


def _nearest(text: str, limit: Any) -> str:
    parts = text.split(" and ")
    for part in parts:
        try:
            if parse_gate(part).bounds[0].limit == limit:
                return part
        except (GateFormError, ValueError):
            return text
    return parts[0]
