"""The table of rules, and what comes from the keys that they own: the reader, the JSON Schema, lists of keys."""

import re
from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from typing import Any

from pytest_llmeval.core.wording import expected_name, suggest, without_links
from pytest_llmeval.data.files.validation import STRICT, adapter, describe
from pytest_llmeval.gates.contract import Gate, GateKey
from pytest_llmeval.gates.drop import AnytimeGate, DropGate, SafeGate
from pytest_llmeval.gates.gain import GainGate, GainLackGate, LiftGate
from pytest_llmeval.gates.limit import LimitGate

RULES: tuple[type[Gate], ...] = (LimitGate, DropGate, SafeGate, AnytimeGate, GainGate, GainLackGate, LiftGate)
"""Every rule. Of those with the same tags, the first is that of gates without the key `rule`."""


_CHANGE_TEXT = re.compile(r"(?P<kind>drop|lift)\((?P<metric>.+)\)\s*(?P<operator><=|>=)\s*(?P<limit>\d+\.?\d*|\.\d+)")
_CHANGES = {"drop": ("<=", "max_drop"), "lift": (">=", "min_gain")}


def change_form(text: str, reference: str) -> dict[str, Any] | None:
    """Return the mapping form of ``drop(f1) <= 0.05`` or ``lift(f1) >= 0.1``; ``None`` for other texts.

    Args:
        text: The gate.
        reference: The system over which a lift is a gain.
    """
    match = _CHANGE_TEXT.fullmatch(text.strip())
    if match is None or match["operator"] != _CHANGES[match["kind"]][0]:
        return None
    form = {"metric": match["metric"].strip(), _CHANGES[match["kind"]][1]: float(match["limit"])}
    return form | ({"against": reference, "rule": LiftGate.rule} if match["kind"] == "lift" else {})


class GateFault(ValueError):  # noqa: N818 (a fault of a user's file)
    """The faults of a gate.

    Attributes:
        faults: Key and message; the key is empty for the gate as a whole.
        at_key: Whether they are about keys and not about their values.
    """

    def __init__(self, *faults: tuple[str, str], at_key: bool = False) -> None:
        super().__init__("; ".join(message for _, message in faults))
        self.faults = faults
        self.at_key = at_key


def known_keys() -> dict[str, GateKey]:
    """Return the keys that some rule owns."""
    return {name: key for rule in reversed(RULES) for name, key in rule.keys().items()}


_ENTRIES: dict[str, type] = {}


def gate_entry(rule: type[Gate]) -> type:
    """Return the class by which the mapping form of a rule's gates is validated."""
    if rule.__name__ not in _ENTRIES:
        keys = rule.keys()
        parts: list[Any] = [("metric", keys.pop("metric").kind)]
        parts += [(name, key.kind | None, field(default=None)) for name, key in keys.items()]
        _ENTRIES[rule.__name__] = make_dataclass(
            "GateEntry", parts, frozen=True, namespace={"__pydantic_config__": STRICT}
        )
    return _ENTRIES[rule.__name__]


def rule_of(entry: Mapping[str, Any]) -> type[Gate]:
    """Return the rule of a gate by the keys that it has.

    Raises:
        GateFault: No rule has these keys.
    """
    tags = [tag for rule in reversed(RULES) for tag in rule.tags if entry.get(tag) is not None]
    if not tags:
        names = known_keys()
        if unknown := [str(key) for key in entry if key not in names]:
            raise GateFault(
                *((key, f"found the unknown key {key!r}{expected_name(key, names)}") for key in unknown), at_key=True
            )
        limits = LimitGate.keys()
        drops = [key for key in entry if entry[key] is not None and key not in limits]
        if drops:
            raise GateFault(("", f"found {drops[0]} without max_drop, expected both: {drops[0]} applies to drops"))
        raise GateFault(("", "found neither min nor max, expected at least one of them"))
    rules = [rule for rule in RULES if tags[0] in rule.tags]
    if beside := [tag for tag in tags if tag not in rules[0].tags]:
        raise GateFault(("", f"found {beside[-1]} beside {tags[0]}, expected only one of them: write two gates"))
    name = entry.get("rule")
    if name is None or not rules[0].rule:
        return rules[0]
    for rule in rules:
        if name in (rule.rule, rule.former):
            return rule
    choices = [rule.rule for rule in rules]
    hint = suggest(name, choices) if isinstance(name, str) else ""
    raise GateFault(("rule", f"found {describe(name)}{hint}, expected one of {', '.join(map(repr, choices))}"))


def read_gate(
    value: Any, check: Callable[[type, Mapping[str, Any]], Any], cluster_by: str | None = None
) -> Gate | None:
    """Read a gate in its mapping form.

    Args:
        value: The gate in a suite file.
        check: Validates a mapping by a class; reports faults, and returns ``None`` if there are some.
        cluster_by: The label by which the suite clusters its cases.

    Returns:
        The gate; ``None`` if faults have been reported.

    Raises:
        GateFault: The value is no gate.
        ValueError: A number is out of range, or keys exclude each other.
    """
    if not isinstance(value, Mapping):
        message = f"found {describe(value)}, expected text such as 'f1 >= 0.7' or a mapping with 'metric'"
        raise GateFault(("", message))
    rule = rule_of(value)
    keys = rule.keys()
    entry = check(gate_entry(rule), {key: each for key, each in value.items() if key in keys})
    if foreign := [str(key) for key in value if key not in keys]:
        raise GateFault(*((key, _foreign(key, rule)) for key in foreign), at_key=True)
    return None if entry is None else rule.read(vars(entry)).clustered(cluster_by)


def _foreign(key: str, rule: type[Gate]) -> str:
    unknown = "" if key in known_keys() else "unknown "
    return f"found the {unknown}key {key!r} in {rule.title}{expected_name(key, rule.keys())}"


def gate_schema() -> dict[str, Any]:
    """Return the JSON Schema of the mapping form: the keys of one of the rules."""
    return {"anyOf": [*map(_schema, RULES)]}


def _schema(rule: type[Gate]) -> dict[str, Any]:
    keys = rule.keys()
    schema: dict[str, Any] = adapter(gate_entry(rule)).json_schema()
    properties = {name: _property(schema["properties"][name], keys[name]) for name in keys}
    named = next(each for each in RULES if each.tags == rule.tags) is not rule
    required = ["metric", *(["rule"] if named else []), *rule.needs]
    tagged = {"anyOf": [{"required": [tag]} for tag in rule.tags]} if len(rule.tags) > 1 else {}
    required += rule.tags if not tagged else ()
    return {
        "type": "object",
        "description": rule.title,
        "properties": properties,
        "required": required,
        **tagged,
        "additionalProperties": False,
    }


def _property(schema: Mapping[str, Any], key: GateKey) -> dict[str, Any]:
    published = {name: value for name, value in schema.items() if name not in ("title", "default")}
    least = {} if key.least is None else {"minimum": key.least}
    return {**published, "description": without_links(key.meaning), **least}
