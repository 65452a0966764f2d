"""An argument of every check that ships: by its name, or else by the type that it takes."""

__all__ = ("ARGUMENTS",)

from typing import Any

from pytest_llmeval.evaluators.checks.contents import Number
from pytest_llmeval.evaluators.checks.kinds import SHIPPED, Most
from pytest_llmeval.evaluators.checks.texts import Text

_SCHEMA = {"type": "object", "required": ["b"]}
_OF_TYPE: dict[Any, Any] = {
    None: None,
    str: "b",
    Text: "b",
    tuple[Text, ...]: ("b", "c"),
    int: 3,
    float | Most: 3,
    float | Number: 3,
    Any: _SCHEMA,
}
_OWN = {
    "language": "en",
    "levenshtein": {"to": "b", "max": 1},
    "pii": None,
    "rubric": {
        "criteria": "Says b.",
        "levels": [{"score": 0, "meaning": "no"}, {"score": 1, "meaning": "yes"}],
        "pass_mark": 1,
    },
    "span": {"name": "db", "count": 1},
}

ARGUMENTS: dict[str, Any] = {
    name: _OWN[name] if name in _OWN else _OF_TYPE[kind.argument]
    for name, kind in SHIPPED.items()
    if name in _OWN or kind.argument in _OF_TYPE
}
"""Name to argument. A new check gets an entry in `_OWN` if it takes a type that is not in `_OF_TYPE`."""
