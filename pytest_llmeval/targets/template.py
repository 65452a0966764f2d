"""Request templates: JSON with placeholders for the inputs of cases. No expressions."""

__all__ = ("at", "fill", "has_each", "has_id", "input_paths", "template_faults")

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pytest_llmeval.core.wording import suggest
from pytest_llmeval.data.formats.fields import pick

TemplatePath: TypeAlias = tuple[str | int, ...]

_EACH: Final = "$each"
_ID: Final = "$id"
_INPUT: Final = "$input"
_KNOWN: Final = (_EACH, _ID, _INPUT)


def at(value: Any, path: str | None) -> Any:
    """Return the value at a dotted path of JSON data, or `ABSENT`; ``None`` is the path of the value itself."""
    if path is None:
        return value
    return pick(value, path) if isinstance(value, Mapping) else pick({"": value}, f".{path}")


def fill(template: Any, inputs: Sequence[Any], number: int = 0) -> Any:
    """Return the request for some inputs.

    Args:
        template: Free of faults.
        inputs: Each with a value at every path of `input_paths`.
        number: The input for placeholders outside ``$each``.
    """
    if isinstance(template, Mapping):
        if _INPUT in template:
            path = template[_INPUT]
            return at(inputs[number], None if path is True else path)
        if _ID in template:
            return number
        if _EACH in template:
            return [fill(template[_EACH], inputs, each) for each in range(len(inputs))]
        return {key: fill(part, inputs, number) for key, part in template.items()}
    if isinstance(template, list | tuple):
        return [fill(part, inputs, number) for part in template]
    return template


def has_each(template: Any) -> bool:
    """Return whether a request lists its inputs."""
    return any(name == _EACH for _, name, _ in _placeholders(template))


def has_id(template: Any) -> bool:
    """Return whether a request numbers its inputs."""
    return any(name == _ID for _, name, _ in _placeholders(template))


def input_paths(template: Any) -> tuple[str, ...]:
    """Return the paths that every input must have, sorted."""
    found = {value for _, name, value in _placeholders(template) if name == _INPUT and isinstance(value, str)}
    return tuple(sorted(found))


def template_faults(template: Any, batch: int) -> Iterator[tuple[TemplatePath, str]]:
    """Yield what is wrong with a template for batches of a size: where in it, and ``found ..., expected ...``."""
    found = list(_placeholders(template))
    for place, name, value in found:
        holder = _holder(template, place)
        if name not in _KNOWN:
            yield (
                place,
                f"found the unknown placeholder {name!r}, expected one of {', '.join(_KNOWN)}{suggest(name, _KNOWN)}",
            )
        elif len(holder) > 1:
            yield place, f"found {name!r} beside other keys, expected it alone in its mapping"
        elif name == _INPUT and value is not True and not (isinstance(value, str) and all(value.split("."))):
            yield place, "found no path, expected true for the whole input, or a path into it such as 'question'"
        elif name == _ID and value is not True:
            yield place, "found a value other than true, expected {$id: true}"
        elif name == _EACH and _EACH in place[:-1]:
            yield place, "found $each inside $each, expected only one of them"
        elif name != _EACH and _EACH not in place and batch > 1:
            yield place, f"found {name!r} outside $each, expected it inside: a request has up to {batch} inputs"
    if not any(name == _INPUT or name not in _KNOWN for _, name, _ in found):
        yield (), "found no {$input: ...}, expected the input of the case somewhere in the request"


def _placeholders(template: Any, place: TemplatePath = ()) -> Iterator[tuple[TemplatePath, str, Any]]:
    """Yield the keys that begin with a dollar sign: where, which, and what they hold."""
    if isinstance(template, Mapping):
        for key, part in template.items():
            if key.startswith("$"):
                yield (*place, key), key, part
            yield from _placeholders(part, (*place, key))
    elif isinstance(template, list | tuple):
        for number, part in enumerate(template):
            yield from _placeholders(part, (*place, number))


def _holder(template: Any, place: TemplatePath) -> Any:
    for step in place[:-1]:
        template = template[step]
    return template
