"""The rules of gates as a whole."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, make_dataclass
from typing import Any, overload

from pytest_llmeval.core import (
    LlmevalError,
    closest,
    limit,
    suggest,
    unknown_name,
)
from pytest_llmeval.data import DeclaredType, describe
from pytest_llmeval.gates._change import ChangeGate
from pytest_llmeval.gates._declared import declaration_faults
from pytest_llmeval.gates._drop import AnytimeGate, DriftGate, DropGate, GainGate, GainLackGate, LiftGate, SafeGate
from pytest_llmeval.gates._gate import STATISTICS, Gate, GateFault, GateKey, split_call, split_comparison
from pytest_llmeval.gates._limit import LimitGate


class GateRules(Sequence[type[Gate]]):
    """Every rule. Of those with the same tags, the first is that of gates without the key `rule`."""

    def __init__(self, *rules: type[Gate]) -> None:
        self._rules = list(rules)
        self._owners: dict[type[Gate], str] = {}

    @overload
    def __getitem__(self, place: int) -> type[Gate]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[type[Gate]]: ...
    def __getitem__(self, place: int | slice) -> type[Gate] | Sequence[type[Gate]]:
        return self._rules[place]

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, rule: type[Gate], owner: str = "a plugin") -> None:
        """Add a gate rule of a plugin; it may be added again.

        Args:
            rule: The rule.
            owner: The plugin, for messages.

        Raises:
            LlmevalError: It is no gate, declares something wrong, or has keys or a text form of another rule.
        """
        if rule in self._rules:
            return
        if faults := list(declaration_faults(rule)) or list(self._collisions(rule)):
            raise LlmevalError("; ".join(faults))
        self._rules.append(rule)
        self._owners[rule] = owner

    def _collisions(self, rule: type[Gate]) -> Iterator[str]:
        """Yield the keys and the text form of a new rule that another rule has."""
        keys = rule.keys().keys()
        for known in self:
            whose = f"taken by {known.__qualname__} of {self._owners.get(known, 'pytest_llmeval')}"
            shared = sorted(set(known.tags) & set(rule.tags))
            if shared and not (rule.rule and known.rule):
                yield f"{rule.__qualname__}.tags: the gate key {shared[0]!r} is {whose}: choose another"
            elif shared and known.rule == rule.rule:
                yield f"{rule.__qualname__}.rule: {rule.rule!r} with {shared[0]!r} is {whose}: choose another"
            elif not shared and (crossed := sorted({*keys} & {*known.tags} or {*rule.tags} & {*known.keys()})):
                yield f"{rule.__qualname__}: the gate key {crossed[0]!r} is {whose}: choose another"
        forms = [(known, known.form) for known in (*self, DriftGate) if known.tags != rule.tags and known.form]
        for known, form in forms:
            if rule.form is not None and (form.call, form.operator) == (rule.form.call, rule.form.operator):
                yield (
                    f"{rule.__qualname__}.form: the text form {form.call}(METRIC) {form.operator} NUMBER is taken by "
                    f"{known.__qualname__} of {self._owners.get(known, 'pytest_llmeval')}: choose another"
                )
                return

    def of_text(self, text: str) -> type[Gate] | None:
        """The first rule whose text form a gate in a report has; ``None`` for limits."""
        rules: tuple[type[Gate], ...] = (*self, DriftGate)
        for rule in rules:
            form = rule.form
            if form is not None and text.startswith(f"{form.call}(") and f") {form.operator} " in text:
                return rule
        return None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the mapping form of gates: the keys of one of the rules."""
        return {"anyOf": [*map(_rule_schema, self)]}


RULES = GateRules(LimitGate, DropGate, SafeGate, AnytimeGate, GainGate, GainLackGate, LiftGate)


def gate_of_text(text: str, reference: str) -> Gate | None:
    """The gate of a suite file's text form; ``None`` if no rule has this form.

    Args:
        text: The gate.
        reference: The system over which a lift is a gain.

    Raises:
        ValueError: The number is out of range, or the rule does not understand the statistic.
    """
    # A limit may be on a metric that looks like a call, so the rule of limits is the last to be asked.
    for rule in sorted(RULES, key=lambda rule: rule is LimitGate):
        if (gate := rule.from_text(text, reference)) is not None:
            return gate
    return None


def near_form(text: str) -> str | None:
    """The gate with the call that is most like that of a malformed one, or with its operator; ``None`` without any."""
    comparison = split_comparison(text)
    call, metric = (comparison and split_call(comparison[0])) or ("", "")
    if comparison is None or not call:
        return None
    forms = {form.call: form for rule in RULES if (form := rule.form) is not None}
    near = call if call in forms else closest(call, (*forms, *STATISTICS))
    if near is None:
        return None
    operator = forms[near].operator if near in forms else comparison[1]
    return f"{near}({metric}) {operator} {limit(comparison[2])}"


def known_keys() -> dict[str, GateKey]:
    """The keys of a gate's mapping form that some rule owns."""
    return {name: key for rule in reversed(RULES) for name, key in rule.keys().items()}


_ENTRIES: dict[type[Gate], type] = {}


def gate_entry(rule: type[Gate]) -> type:
    """The class by which the mapping form of a rule's gates is validated."""
    if rule not in _ENTRIES:
        keys = rule.keys()
        parts: list[Any] = [("metric", keys.pop("metric").kind)]
        parts += [(name, key.kind | None, field(default=None)) for name, key in keys.items()]
        _ENTRIES[rule] = make_dataclass(
            "GateEntry", parts, frozen=True, namespace={"__pydantic_config__": DeclaredType.STRICT}
        )
    return _ENTRIES[rule]


def rule_of(entry: Mapping[str, Any]) -> type[Gate]:
    """The rule of a gate by the keys that it has.

    Raises:
        GateFault: No rule has these keys.
    """
    tags = [tag for rule in reversed(RULES) for tag in rule.tags if entry.get(tag) is not None]
    if not tags:
        names = known_keys()
        if unknown := [str(key) for key in entry if key not in names]:
            raise GateFault(*((key, unknown_name("key", key, names)) for key in unknown), at_key=True)
        limits = LimitGate.keys()
        drops = [key for key in entry if entry[key] is not None and key not in limits]
        if drops:
            owners = [rule for rule in RULES if drops[0] in {*rule.keys()}]
            if any(issubclass(rule, ChangeGate) for rule in owners):
                raise GateFault(("", f"max_drop is missing: {drops[0]} applies to drops"))
            raise GateFault(("", f"{owners[0].tags[0]} is missing: {drops[0]} applies to gates with it"))
        raise GateFault(("", "min or max is missing"))
    rules = [rule for rule in RULES if tags[0] in rule.tags]
    if beside := [tag for tag in tags if tag not in rules[0].tags]:
        raise GateFault(("", f"found {beside[-1]} beside {tags[0]}, expected only one of them: write two gates"))
    name = entry.get("rule")
    if name is None or not rules[0].rule:
        return rules[0]
    for rule in rules:
        if name == rule.rule:
            return rule
    choices = [rule.rule for rule in rules]
    hint = suggest(name, choices) if isinstance(name, str) else ""
    raise GateFault(("rule", f"found {describe(name)}{hint}, expected one of {', '.join(map(repr, choices))}"))


def gate_of_mapping(entry: Mapping[str, Any], check: Callable[[type, Mapping[str, Any]], Any]) -> Gate | None:
    """The gate of a suite file's mapping form; ``None`` if faults have been reported.

    Args:
        entry: The gate in a suite file.
        check: Validates a mapping by a class; reports faults, and returns ``None`` if there are some.

    Raises:
        GateFault: The keys are those of no rule.
        ValueError: A number is out of range, or keys exclude each other.
    """
    rule = rule_of(entry)
    keys = rule.keys()
    checked = check(gate_entry(rule), {key: value for key, value in entry.items() if key in keys})
    if foreign := [str(key) for key in entry if key not in keys]:
        raise GateFault(*((key, _foreign_key_fault(key, rule)) for key in foreign), at_key=True)
    return None if checked is None else rule.read(vars(checked))


def _foreign_key_fault(key: str, rule: type[Gate]) -> str:
    """The fault of a key in a gate's mapping form that its rule does not own."""
    if key in known_keys():
        return f"{key} does not apply to {rule.title}"
    return unknown_name("key", key, known_keys())


def _rule_schema(rule: type[Gate]) -> dict[str, Any]:
    """The JSON Schema of one gate rule's mapping form."""
    keys = rule.keys()
    schema: dict[str, Any] = DeclaredType(gate_entry(rule)).json_schema()
    properties = {name: _key_schema(schema["properties"][name], keys[name]) for name in keys}
    named = next(other for other in RULES if other.tags == rule.tags) is not rule
    required = ["metric", *(["rule"] if named else [])]
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


def _key_schema(schema: Mapping[str, Any], key: GateKey) -> dict[str, Any]:
    """The JSON Schema of one key of a gate's mapping form, with its meaning and minimum."""
    published = {name: value for name, value in schema.items() if name not in ("title", "default")}
    least = {} if key.least is None else {"minimum": key.least}
    return {**published, "description": key.meaning, **least}
