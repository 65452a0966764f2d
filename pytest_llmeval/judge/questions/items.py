"""Numbered items: each gets its verdict once, or the reply cannot be read; how a panel decides about each of them."""

__all__ = ("closing_list", "items_schema", "listing", "read_items", "read_reason", "read_truth")

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from pytest_llmeval.core.explanations import listed
from pytest_llmeval.judge.contract import Listing, Verdict
from pytest_llmeval.judge.questions.replies import closing_object, object_schema, plain, says, shortened, unreadable

_SHOWN: Final = 40
_VERDICTS: Final = "verdicts"


def items_schema(key: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object that has a list of objects under a key."""
    return object_schema(**{key: {"type": "array", "items": object_schema(**properties)}})


def closing_list(reply: str, key: str, truth: str | None = None) -> list[Any]:
    """Return the list in the JSON object that ends a reply.

    Args:
        reply: The text.
        key: Of the list.
        truth: The key of the objects in it that says whether something is so. Where all of them say the same, prose
            that says the opposite contradicts them.

    Raises:
        JudgeError: There is none, or another one beside or before it.
    """

    def said(data: Mapping[str, Any]) -> Mapping[str, Any]:
        items = data.get(key)
        values = [each.get(truth) for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []
        agreed = {str(truth): values[0]} if values and values.count(values[0]) == len(values) else {}
        return {key: None, **agreed}

    other = says("|".join(filter(None, (key, truth))), r"\[|(?:true|false)(?![a-z0-9_])")
    data = closing_object(reply, said, other)
    beside = [name for name, value in data.items() if name != key and isinstance(value, list | dict)]
    if beside:
        raise unreadable(reply, f"found {shortened(beside[0], _SHOWN)!r} beside {key!r}, expected one list")
    found = data.get(key)
    if not isinstance(found, list):
        shown = shortened(json.dumps(found, ensure_ascii=False), _SHOWN) if key in data else "nothing"
        raise unreadable(reply, f"found {shown} as {key}, expected a list")
    return found


def read_items(
    reply: str, key: str, names: Sequence[str], wanted: Sequence[tuple[int, ...]], truth: str | None = None
) -> list[Mapping[str, Any]]:
    """Return the objects of a list in the order in which they are wanted.

    Args:
        reply: Ends with an object that has the list.
        key: Of the list.
        names: Of the numbers by which an object of it is known.
        wanted: The numbers of all of them.
        truth: As in `closing_list`.

    Raises:
        JudgeError: One is missing, unknown or there twice.
    """
    found: dict[tuple[int, ...], Mapping[str, Any]] = {}
    known = set(wanted)
    for item in closing_list(reply, key, truth):
        if not isinstance(item, Mapping):
            raise unreadable(reply, f"found {shortened(repr(item), _SHOWN)} among {key}, expected objects")
        numbers: tuple[Any, ...] = tuple(item.get(name) for name in names)
        if any(type(each) is not int for each in numbers) or numbers not in known:
            shown = ", ".join(f"{name} {shortened(repr(item.get(name)), _SHOWN)}" for name in names)
            expected = listed([_place(names, each) for each in wanted])
            raise unreadable(reply, f"found {shown}, expected each of {expected} once")
        if numbers in found:
            raise unreadable(reply, f"found {_place(names, numbers)} twice, expected each once")
        found[numbers] = item
    missing = [_place(names, each) for each in wanted if each not in found]
    if missing:
        raise unreadable(reply, f"found nothing on {listed(missing)}, expected each of {len(wanted)} once")
    return [found[each] for each in wanted]


def _place(names: Sequence[str], numbers: tuple[int, ...]) -> str:
    return " and ".join(f"{name} {number}" for name, number in zip(names, numbers, strict=True))


def read_truth(reply: str, item: Mapping[str, Any], name: str, what: str) -> bool:
    """Return whether an item says true or false under a name.

    Raises:
        JudgeError: It says neither.
    """
    value = item.get(name)
    if not isinstance(value, bool):
        found = "nothing" if name not in item else shortened(repr(value), _SHOWN)
        raise unreadable(reply, f"found {found} as {name!r} of {what}, expected true or false")
    return value


def read_reason(item: Mapping[str, Any]) -> str:
    """Return the reason that an item gives; empty where there is none."""
    reason = item.get("reason")
    return plain(reason.strip()) if isinstance(reason, str) else ""


def listing(truth: str) -> Listing:
    """Return the listing of modes whose details have ``verdicts``: for each thing, in order, an object.

    Args:
        truth: The key of the object that says whether it is so. Its other values are a ``reason`` and lists.
    """
    return Listing(partial(_grades, truth), partial(_joined, truth))


def _grades(truth: str, verdict: Verdict) -> list[float]:
    return [float(each[truth]) for each in verdict.details[_VERDICTS]]


def _joined(truth: str, verdicts: Sequence[Verdict], grades: Sequence[float]) -> Verdict:
    """Return what jurors say, with the reasons, and all that the lists have, of those whose view it is."""
    rows = zip(*(each.details[_VERDICTS] for each in verdicts), strict=True)
    joined = [
        _agreed([each for each in row if each[truth] == grade], {truth: bool(grade)})
        for row, grade in zip(rows, grades, strict=True)
    ]
    return Verdict(sum(grades) / len(grades), details={_VERDICTS: joined})


def _agreed(items: Sequence[Mapping[str, Any]], agreed: dict[str, Any]) -> dict[str, Any]:
    for name, value in items[0].items():
        if isinstance(value, list):
            agreed[name] = sorted({each for item in items for each in item[name]})
        elif name not in agreed:
            agreed[name] = "; ".join(dict.fromkeys(item[name] for item in items if item[name]))
    return agreed
