"""The table of rules: every key is a fault in the gates of rules that do not own it."""

from typing import Any, get_args

import jsonschema
import pytest
from builders import gate_of

from pytest_llmeval.gates.contract import Gate
from pytest_llmeval.gates.rules import RULES, GateFault, gate_schema, known_keys, rule_of
from pytest_llmeval.reports.form import gated_metrics

VALUES = {float: 0.5, int: 1, str: "x", bool: True}
NEEDED: dict[str, dict[str, Any]] = {
    "adjust": {"by": "kind"},
    "max_drift": {"max_drift": 0.75},
    "metric": {"metric": "f1"},
}
"""What a key needs to make sense beside the smallest gate of a rule."""


def smallest(rule: type[Gate]) -> dict[str, Any]:
    name = {"rule": rule.rule} if rule.rule else {}
    return {"metric": "f1", rule.tags[0]: 0.25, **name, **dict.fromkeys(rule.needs, "other")}


def with_key(rule: type[Gate], key: str) -> dict[str, Any]:
    kind = known_keys()[key].kind
    value = VALUES[kind] if kind in VALUES else get_args(kind)[0]
    entry = {key: value, **smallest(rule)}
    owned = rule.keys()
    return {**entry, **(NEEDED.get(key, {}) if key in owned else {})}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("key", list(known_keys()))
def test_a_key_is_accepted_by_the_rules_that_own_it_and_a_fault_elsewhere(rule: type[Gate], key: str) -> None:
    entry = with_key(rule, key)
    schema = jsonschema.Draft202012Validator(gate_schema())
    owned = rule.keys()
    if key in owned:
        assert type(gate_of(entry)) is rule
        assert schema.is_valid(entry)
        return
    with pytest.raises(GateFault) as caught:
        gate_of(entry)
    assert not schema.is_valid(entry)
    tags = {tag for each in RULES for tag in each.tags}
    if key in tags:
        assert "expected only one of them" in str(caught.value)
    else:
        assert str(caught.value).startswith(f"found the key {key!r} in {rule.title}")
        assert caught.value.faults[0][0] == key


@pytest.mark.parametrize("rule", RULES)
def test_what_a_key_sets_changes_the_gate(rule: type[Gate]) -> None:
    plain = gate_of(smallest(rule))
    for key in rule.keys().keys() - {"metric", "rule", "against", *rule.needs, *rule.tags}:
        kind = known_keys()[key].kind
        value = {float: 0.75, int: 7, str: "x", bool: True}.get(kind) or get_args(kind)[-1]
        changed = {
            **smallest(rule),
            **NEEDED.get(key, {}),
            **({"by": "kind"} if key == "min_cases" else {}),
            key: value,
        }
        base = gate_of({name: each for name, each in changed.items() if name != key})
        assert gate_of(changed) != base, key
    assert plain == gate_of({**smallest(rule), "system": None})


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_found_by_its_keys(rule: type[Gate]) -> None:
    assert rule_of(smallest(rule)) is rule


@pytest.mark.parametrize("rule", RULES)
def test_reports_find_the_metric_in_the_text_of_a_gate(rule: type[Gate]) -> None:
    for metric in ("f1", "mean(f1)", "exact match"):
        gate = gate_of({**smallest(rule), "metric": metric})
        assert gated_metrics([str(gate)]) == [gate.metric], str(gate)


def test_a_gate_asks_less_in_the_direction_that_its_key_declares() -> None:
    keys = known_keys()
    changes = {
        "max_errors": [(1, 2, True), (2, 1, False)],
        "min_scored": [(30, 10, True), (10, 30, False)],
        "max_drift": [(0.1, None, True), (None, 0.1, False)],
        "undecided": [("observed", "pass", True), ("pass", "fail", False)],
        "confidence": [(0.9, 0.95, True), (0.95, 0.9, True)],
    }
    for name, each in changes.items():
        assert [keys[name].asks_less(early, late) for early, late, _ in each] == [less for *_, less in each], name


@pytest.mark.parametrize("rule", RULES)
def test_a_number_of_a_gate_says_in_which_direction_it_asks_less(rule: type[Gate]) -> None:
    numbers = {name: key for name, key in rule.keys().items() if name.startswith(("min_", "max_"))}
    assert [name for name, key in numbers.items() if not key.looser] in ([], ["max_left_out"])


def test_all_foreign_keys_are_named_with_what_was_probably_meant() -> None:
    with pytest.raises(GateFault) as caught:
        gate_of({"metric": "f1", "min": 0.5, "primary": True, "max_drp": 1, "min_scord": 3})
    first, second, third = (message for _, message in caught.value.faults)
    assert first.startswith("found the key 'primary' in a gate with a limit")
    assert second.startswith("found the unknown key 'max_drp' in a gate with a limit")
    assert "(did you mean 'min_scored'?)" in third
