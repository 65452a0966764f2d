"""Write pytest_llmeval/run/_entries.pyi from the JSON Schema of suite files: run it after adding an option."""

from __future__ import annotations

import inspect
import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

from pytest_llmeval.run import _entries as entries
from pytest_llmeval.run._entries import EntryFunction
from pytest_llmeval.suites import KEYS, Registry
from pytest_llmeval.suites._schema import suite_schema, without_links

STUB = Path(__file__).parents[1] / "pytest_llmeval/run/_entries.pyi"

_TOP = """# Types of the functions of `pytest_llmeval.run._entries`, written by .ci/entries_stub.py.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload

from msgspec import Struct

from pytest_llmeval.core import Evaluator
from pytest_llmeval.evaluators import CheckKind, Checks
from pytest_llmeval.judges import Judgeable

EvaluatorEntry: TypeAlias = str | Mapping[str, Any] | Evaluator | Callable[[Any], Any] | NamedEvaluator
Check: TypeAlias = str | Mapping[str, Any] | Callable[[Any], Any] | CheckKind
Turn: TypeAlias = Literal["last", "each"] | int
Entry: TypeAlias = dict[str, Any]

"""
_HEAD = """
class EntryFunction:
    __name__: str

class NamedEvaluator(Struct, frozen=True):
    evaluator: Evaluator
    settings: Mapping[str, Any]
    @classmethod
    def label(cls, value: Any) -> tuple[str, Any]: ...

@overload
def evaluator(
    evaluator: str,
    options: Mapping[str, Any] | None = None,
    /,
    *,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    **more: Any,
) -> Entry: ...
@overload
def evaluator(
    evaluator: Evaluator, /, *, name: str | None = None, on: str | None = None, turn: Turn | None = None
) -> NamedEvaluator: ...
@overload
def evaluator(
    evaluator: Callable[[Any], Any],
    /,
    *,
    name: str | None = None,
    low: float | None = 0.0,
    high: float | None = 1.0,
    higher_is_better: bool = True,
    on: str | None = None,
    turn: Turn | None = None,
) -> NamedEvaluator: ...
class NamedObject(Struct, frozen=True):
    value: Any
    name: str

class ByName(Struct, frozen=True):
    keys: dict[str, Any]
    registered: list[type[Evaluator] | CheckKind]
    objects: dict[str, Any]

@overload
def named(value: Callable[[Any], Any], name: str) -> NamedObject: ...
@overload
def named(value: object, name: str) -> NamedObject: ...
def check(function: Callable[[Any], Any], name: str | None = None) -> CheckKind: ...
def listed(entries: Any) -> Iterable[Any]: ...
def by_name_in_file(keys: Mapping[str, Any]) -> ByName: ...
def checks_by_name(entries: Iterable[Any]) -> tuple[list[Any], Mapping[str, CheckKind]]: ...
def get_checks(*entries: Any) -> Checks: ...
def not_(check: Check) -> Entry: ...
def all_of(*of: Check) -> Entry: ...
def any_of(*of: Check) -> Entry: ...
def at_least(n: int, *of: Check) -> Entry: ...
"""
_BESIDE = "as_: str | None = None, on: str | None = None, turn: Turn | None = None"
_MODIFIERS = "name: str | None = None, on: str | None = None, turn: Turn | None = None, weight: float | None = None"
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def stub() -> str:
    """Return the text of the stub."""
    schema = suite_schema(Registry.installed())
    lines = [_TOP + _arguments(schema["properties"]) + _HEAD]
    for choice in schema["properties"]["evaluators"]["items"]["anyOf"][1:]:
        (name,) = choice["required"]
        options = choice["properties"][name]["anyOf"][0]
        if name == "judge":
            check = f"def judge(criterion: str, *, {_MODIFIERS}) -> Entry: ..."
            lines.append(f"@overload\n{check}\n@overload\n{_evaluator(name, options)}")
        else:
            lines.append(_evaluator(name, options))
    kinds = schema["definitions"]["Check"]["anyOf"][1]["properties"]
    bare = set(schema["definitions"]["Check"]["anyOf"][0]["enum"])
    lines += [
        _check(name, kinds[name], schema["definitions"], bare=name in bare)
        for name in Registry.installed().checks
        if name != "judge"
    ]
    function = re.compile(r"^def (\w+)\(.*?\) -> [^\n]+: \.\.\.$", re.MULTILINE | re.DOTALL)
    text = function.sub(_documented, "\n".join(lines))
    listed = ", ".join(f'"{name}"' for name in sorted(set(re.findall(r"^def (\w+)", text, re.MULTILINE))))
    return f"{text}\n\n__all__ = [{listed}]\n"  # or else type checkers do not take them as names of the package


def _documented(function: re.Match[str]) -> str:
    """Return a function of the stub with the docstring that it has at run time, for editors."""
    docstring = inspect.getdoc(getattr(entries, function[1])) or ""
    if function[1] == "judge" and "criterion: str" not in function[0]:
        docstring = EntryFunction("judge", "judge", is_check=False).__doc__
    raw = "r" if "\\" in docstring else ""
    text = indent(f'{raw}"""{docstring}', "    ").rstrip()
    return f'{function[0].removesuffix(" ...")}\n{text}{chr(10) + "    " if chr(10) in docstring else ""}"""'


def _arguments(properties: Mapping[str, Any]) -> str:
    """Return the class of the arguments that `pytest_llmeval.suite` takes besides name and cases."""
    typed = {name: key.python or _type(properties[name]) for name, key in KEYS.items() if key.python is not None}
    nullable = {name: kind if "None" in kind.split(" | ") else f"{kind} | None" for name, kind in typed.items()}
    lines = [f'    {name}: {kind}\n    """{without_links(KEYS[name].meaning)}"""' for name, kind in nullable.items()]
    own = '    """The keys of a suite file; docs/suite-files.md has their meanings."""'
    return "\n".join(["class SuiteArguments(TypedDict, total=False):", own, *lines, ""])


def _evaluator(name: str, options: Mapping[str, Any]) -> str:
    own = {key: each for key, each in options["properties"].items() if key not in ("as", "on", "turn")}
    required = options.get("required", ())
    typed = [f"{key}: {_type(each)}{'' if key in required else ' = ...'}" for key, each in own.items()]
    listed = ["*", *typed, _BESIDE]
    if isinstance(options.get("additionalProperties"), Mapping):  # its options are names of the user's
        listed = ["options: Mapping[str, Any] | None = None", *listed, "**fields: Any"]
    return f"def {name.replace('.', '_')}({', '.join(listed)}) -> Entry: ..."


def _check(name: str, argument: Mapping[str, Any], definitions: Mapping[str, Any], *, bare: bool) -> str:
    fields = next(_objects(argument, definitions), None)
    kind = _type(argument)
    default = " = ..." if bare or fields is not None else ""
    own = {key: each for key, each in (fields or {}).items() if f"{key}: " not in _MODIFIERS}  # these mean the check
    typed = [f"{key}: {_type(each)} = ..." for key, each in own.items() if not keyword.iskeyword(key)]
    return f"def {name}(argument: {kind}{default}, *, {', '.join([*typed, _MODIFIERS])}) -> Entry: ..."


def _objects(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the properties of the objects that an argument may be."""
    if "$ref" in schema:
        yield from _objects(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "properties" in schema:
        yield schema["properties"]
    for each in schema.get("anyOf", ()):
        yield from _objects(each, definitions)


def _type(schema: Mapping[str, Any]) -> str:
    """Return the Python type of a JSON Schema."""
    if schema.get("type") != "object" and ("anyOf" in schema or "oneOf" in schema):
        kinds = dict.fromkeys(_type(each) for each in schema.get("anyOf") or schema["oneOf"])
        return " | ".join(kind for kind in kinds if kind != "int" or "float" not in kinds)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        listed = ", ".join(repr(each) for each in values if each is not None)
        return f"Literal[{listed}]{' | None' if None in values else ''}"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": each}) for each in kind)
    if kind == "array":
        items = schema.get("items", {})
        return f"Sequence[{_type(items) if isinstance(items, Mapping) else 'Any'}]"  # of several types, any
    if kind == "object" or "$ref" in schema:
        inner = schema.get("additionalProperties")
        return f"Mapping[str, {_type(inner) if isinstance(inner, Mapping) else 'Any'}]"
    return _SIMPLE.get(str(kind), "Any")


if __name__ == "__main__":
    from subprocess import run

    STUB.write_text(stub(), encoding="utf-8", newline="\n")
    sys.exit(run(["ruff", "format", "--quiet", str(STUB)], check=False).returncode)  # noqa: S603, S607 (our tool)
