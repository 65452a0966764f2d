"""The check of a gate rule's declaration."""

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from reprlib import repr as short_repr
from typing import Any, get_args

from pytest_llmeval.core import closest, unknown_name
from pytest_llmeval.gates._change import ChangeGate
from pytest_llmeval.gates._gate import (
    OPERATORS,
    PERCENTILES,
    STATISTICS,
    VALUE,
    Gate,
    GateKey,
    KeyUnit,
    ScoreGate,
    TextForm,
)


def declaration_faults(rule: Any) -> Iterator[str]:
    """Yield what a gate rule declares wrongly: the class, the attribute, and the cause."""
    if isinstance(rule, Gate):
        yield f"found a gate, {short_repr(rule)}, expected its class {type(rule).__qualname__}"
        return
    if not (isinstance(rule, type) and issubclass(rule, ScoreGate | ChangeGate)):
        yield f"found {short_repr(rule)}, expected a subclass of pytest_llmeval.extend.ScoreGate"
        return
    if "__dataclass_fields__" not in vars(rule):
        yield f"{rule.__qualname__} is not decorated: write @extend.gate_rule above the class"
        return
    faults = list(_tag_faults(rule))
    # The keys of a rule can be listed only if fields own its tags.
    for fault in faults or (*_key_faults(rule), *_form_faults(rule), *_method_faults(rule)):
        yield f"{rule.__qualname__}{fault}"


def _tag_faults(rule: type[Gate]) -> Iterator[str]:
    """Yield what is wrong with the tags of a rule, and with the declarations of keys."""
    declared = {name: key for field in fields(rule) for name, key in field.metadata.get("keys", {}).items()}
    for name, key in declared.items():
        if not isinstance(key, GateKey):
            yield f": key {name}: found {short_repr(key)}, expected an extend.GateKey"
    tags: Any = rule.tags
    if not isinstance(tags, tuple) or not all(isinstance(tag, str) for tag in tags):
        yield f".tags: found {short_repr(tags)}, expected a tuple of keys such as ('max_gap',)"
    elif not tags:
        yield ".tags is empty: name the keys by which the rule is known"
    else:
        for tag in tags:
            if tag not in declared:
                yield f".tags: no field has the key {tag!r}: declare it with extend.owned({tag}=extend.GateKey(...))"


def _key_faults(rule: type[Gate]) -> Iterator[str]:
    """Yield what is wrong with the keys and the statistics of a rule."""
    keys = rule.keys()
    for name, key in keys.items():
        if not isinstance(key.looser, tuple) and key.looser not in ("", "more", "less"):
            yield f": key {name}: found looser {key.looser!r}, expected 'more', 'less' or a tuple of values"
        if key.unit not in get_args(KeyUnit):
            yield f": key {name}: found unit {key.unit!r}, expected 'score' or 'change'"
        try:
            _ = key.kind | None
        except TypeError:
            yield f": key {name}: found {short_repr(key.kind)}, expected a type such as float"
    if rule.arguments.__func__ is Gate.arguments.__func__:  # type: ignore[attr-defined]
        for field in fields(rule):
            if field.default is not MISSING or field.default_factory is not MISSING or field.name == "metric":
                continue
            if field.name not in keys:
                yield f".{field.name}: no key has its name, and it has no default: name the key {field.name}"
            elif rule.tags != (field.name,):
                yield f".{field.name}: gates may leave the key out, and it has no default: set default=None"
    known = (VALUE, *STATISTICS, *PERCENTILES)
    statistics: Any = rule.statistics
    if not isinstance(statistics, tuple) or not statistics:
        yield f".statistics: found {short_repr(statistics)}, expected a tuple such as ('value', 'p10')"
        return
    for statistic in statistics:
        if statistic not in known:
            hint = f", did you mean {near}?" if (near := closest(str(statistic), (VALUE, *STATISTICS))) else ""
            expected = hint or f", expected {', '.join((VALUE, *STATISTICS))} or p0 to p100"
            yield f".statistics: unknown statistic {short_repr(statistic)}{expected}"


def _form_faults(rule: type[Gate]) -> Iterator[str]:
    """Yield what is wrong with the text form of a rule."""
    form: Any = rule.form
    if form is None:
        if rule.condition is Gate.condition and rule.__str__ is Gate.__str__:
            yield " has no text form: set form, such as extend.TextForm('gap', '<=', 'max_gap'), or define condition"
        return
    if not isinstance(form, TextForm):
        words = ", ".join(map(repr, form)) if isinstance(form, tuple) else "CALL, OPERATOR, KEY"
        yield f".form: found {short_repr(form)}, expected extend.TextForm({words})"
        return
    call: Any = form.call
    if call in (*STATISTICS, *PERCENTILES):
        yield f".form: {call}(...) is a statistic: choose another name for the text form"
    elif not (isinstance(call, str) and call.isidentifier()):
        yield f".form: found {short_repr(call)}, expected a word of letters, digits and underscores"
    if form.operator not in OPERATORS:
        yield f".form: found the operator {short_repr(form.operator)}, expected one of {', '.join(OPERATORS)}"
    if form.key not in (keys := rule.keys()):
        yield f".form: {unknown_name('key', str(form.key), keys)}"


def _method_faults(rule: type[Gate]) -> Iterator[str]:
    """Yield the methods and properties that a rule lacks, or that cannot be called."""
    for name in ("allowed", "condition"):
        if inspect.isfunction(inspect.getattr_static(rule, name)):
            yield f".{name} is a method, expected a property: write @property above it"
    if rule.allowed is Gate.allowed and rule.result is Gate.result:
        yield " has no limit: define the property allowed, the number that the value is compared with"
    if not issubclass(rule, ScoreGate):
        return
    if rule.decide is not ScoreGate.decide:
        return
    if rule.verdict is ScoreGate.verdict:
        yield " has no verdict: define verdict(self, score)"
    elif inspect.iscoroutinefunction(rule.verdict):
        yield ".verdict is a coroutine function, expected verdict(self, score) without async"
    else:
        signature = inspect.signature(rule.verdict)
        try:
            signature.bind(None, None)
        except TypeError:
            yield f".verdict: found parameters {', '.join(signature.parameters)}, expected self, score"
