"""Bridges between judges: what a change of judge does to approved scores, measured once and approved."""

__all__ = ("Bridge", "bridge_of", "decoded", "encoded", "shifts_between")

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

from pytest_llmeval.baselines.comparable import Comparable
from pytest_llmeval.gates.statistics.pairing import Shift

_NAMED = "bridge"
_SHIFT = "shift of "


@dataclass(frozen=True)
class Bridge:
    """A change of the judge of one evaluator.

    Attributes:
        label: Of the evaluator.
        old: What was known of the judge that approved scores come from.
        new: What is known of the one that takes its place.
        time: The day on which it was approved, ISO 8601, UTC.
        commit: What was checked out.
        shifts: Metric, or statistic of it, to how far the change moves it.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    label: str
    old: Mapping[str, str]
    new: Mapping[str, str]
    time: str
    commit: str | None
    shifts: Mapping[str, Shift]


def bridge_of(bridges: Sequence[Bridge], label: str, old: Mapping[str, str], new: Mapping[str, str]) -> Bridge | None:
    """Return the bridge from one judge of an evaluator to another, and to no other; the last one approved."""
    return next((each for each in reversed(bridges) if (each.label, each.old, each.new) == (label, old, new)), None)


def shifts_between(bridges: Sequence[Bridge], old: Comparable, new: Comparable) -> dict[str, Shift]:
    """Return how far metrics move because judges are others than those of approved scores, as far as that is known."""
    found: dict[str, Shift] = {}
    for label, judge in new.judges.items():
        bridge = bridge_of(bridges, label, old.judges.get(label, {}), judge)
        found |= {} if bridge is None or bridge.old == judge else bridge.shifts
    return found


def encoded(bridges: Sequence[Bridge]) -> dict[str, dict[str, str]]:
    """Return bridges as entries among the judges of a score file.

    Earlier versions accept any text there, and look up the judges of their evaluators only.
    """
    return {f"{_NAMED} {number}": _entry(each) for number, each in enumerate(bridges, 1)}


def _entry(bridge: Bridge) -> dict[str, str]:
    about = {"evaluator": bridge.label, "old": bridge.old, "new": bridge.new, "commit": bridge.commit}
    return {
        _NAMED: json.dumps(about, sort_keys=True),
        "time": bridge.time,
        **{f"{_SHIFT}{name}": json.dumps(_numbers_first(shift)) for name, shift in bridge.shifts.items()},
    }


def _numbers_first(shift: Shift) -> list[Any]:
    ways = [shift.before, shift.after] if shift.before != shift.after or shift.depends else []
    ways += [shift.depends] if shift.depends else []
    return [shift.value, shift.low, shift.high, *ways]


def _shift(text: str) -> Shift:
    value, low, high, *ways = json.loads(text)
    found = Shift(float(value), float(low), float(high), *map(str, ways))
    if not all(map(isfinite, (found.value, found.low, found.high))):
        raise ValueError("a number is not finite")
    return found


def decoded(judges: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, Mapping[str, str]], tuple[Bridge, ...]]:
    """Return the judges of a score file, and the bridges among them.

    Raises:
        ValueError: A bridge is not what `encoded` writes.
    """
    entries = {name: entry for name, entry in judges.items() if _NAMED in entry}
    bridges = [_bridge(entries[name]) for name in sorted(entries, key=lambda name: (len(name), name))]
    return {name: entry for name, entry in judges.items() if name not in entries}, tuple(bridges)


def _bridge(entry: Mapping[str, str]) -> Bridge:
    try:
        about: Mapping[str, Any] = json.loads(entry[_NAMED])
        label, old, new = about["evaluator"], about["old"], about["new"]
        shifts = {name.removeprefix(_SHIFT): _shift(text) for name, text in entry.items() if name.startswith(_SHIFT)}
        found = Bridge(label, old, new, entry["time"], about["commit"], shifts)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"found no bridge between judges ({error}), expected one") from None
    if not (isinstance(label, str) and _is_judge(old) and _is_judge(new)):
        raise ValueError("found no bridge between judges (a judge is none), expected one")
    return found


def _is_judge(data: Any) -> bool:
    return isinstance(data, dict) and "model" in data and all(isinstance(each, str) for each in data.values())
