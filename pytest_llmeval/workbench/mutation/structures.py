"""Mutators of classes, fields, calls of tools, rankings and conversations, and rewrites that keep an answer right."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Final

from pytest_llmeval.core.case import Case, expectation
from pytest_llmeval.core.views import AnswerChange, Mutator, Neighbours
from pytest_llmeval.evaluators.answers import answer_text, has_cjk, references
from pytest_llmeval.evaluators.calls import follows, read_expected
from pytest_llmeval.workbench.mutation.forms import calls, messages, normal, of_text, ranked, ranking, structure
from pytest_llmeval.workbench.mutation.texts import MONTHS

_FREE_ORDERS: Final = ("any_order", "superset", "subset")
_FREE_LISTS: Final = ("list", "set", "ignore")


def labelled(case: Case, label: str) -> Any:
    """Return the prediction with a class in place of its answer."""
    part = answer_text(case)
    return label if part is None else part.put(label)


def _next_label(case: Case, near: Neighbours) -> Any:
    if not isinstance(case.expected, str) or case.expected not in near.labels or len(near.labels) == 1:
        return None
    return labelled(case, near.labels[(near.labels.index(case.expected) + 1) % len(near.labels)])


def _majority(case: Case, near: Neighbours) -> Any:
    return labelled(case, near.most) if near.most is not None and near.most != case.expected else None


def _expected_fields(case: Case) -> Mapping[str, Any]:
    fields = expectation("answer", None, case.expected)
    return fields if isinstance(fields, Mapping) else {}


def _of_fields(change: Callable[[dict[str, Any], list[str], Case, Neighbours], None]) -> AnswerChange:
    """Return a change of the fields that a case expects, of which there is at least one."""

    def changed(case: Case, near: Neighbours) -> Any:
        part = structure(case)
        expected = _expected_fields(case)
        if part is None or not expected:
            return None
        names = sorted(str(name) for name in part.value if name in expected and _comparator(name, near) != "ignore")
        if not names:
            return None
        new = dict(part.value)
        change(new, names, case, near)
        return None if new == part.value and list(new) == list(part.value) else part.put(new)

    return changed


def _comparator(name: str, near: Neighbours) -> Any:
    paths: Mapping[str, Any] = near.option("fields", "paths", {})
    return paths.get(name, paths.get(f"{name}[]"))


def is_order_free(name: str, near: Neighbours) -> bool:
    """Return whether the suite says that the order of a list does not matter."""
    comparator = _comparator(name, near)
    if isinstance(comparator, str) or comparator is None:
        return isinstance(comparator, str) and comparator in _FREE_LISTS
    return bool(comparator.list or comparator.set)


def _field_missing(fields: dict[str, Any], names: list[str], case: Case, near: Neighbours) -> None:
    expected = _expected_fields(case)
    present = [name for name in names if fields[name] is not None and expected[name] is not None]
    if present:
        del fields[near.rng.choice(present)]


def _field_added(fields: dict[str, Any], names: list[str], case: Case, _near: Neighbours) -> None:
    """Add a field where the answer has no other than those that are expected."""
    if len(names) == len(fields) == len(_expected_fields(case)):
        fields["additional_information"] = "none"


def _field_type(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    name = near.rng.choice(names)
    value = fields[name]
    fields[name] = [value] if not isinstance(value, list) else {"items": value}


def _field_value(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    name = near.rng.choice(names)
    value = fields[name]
    match value:
        case bool():
            fields[name] = not value
        case int() | float():
            fields[name] = value * 2 + 1
        case str():
            fields[name] = f"{value} changed" if value else "changed"
        case list() if value:
            fields[name] = value[:-1] if len(value) > 1 else [*value, "changed"]


def free_lists(fields: Mapping[str, Any], names: list[str], near: Neighbours, *, free: bool) -> list[str]:
    """Return the fields with lists whose order matters, or does not, and in which it can be seen."""
    lists = [name for name in names if isinstance(fields[name], list) and fields[name] != fields[name][::-1]]
    return [name for name in lists if is_order_free(name, near) == free]


def _list_reordered(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    lists = free_lists(fields, names, near, free=False)
    if lists:
        name = near.rng.choice(lists)
        fields[name] = fields[name][::-1]


def _list_doubled(fields: dict[str, Any], names: list[str], _case: Case, near: Neighbours) -> None:
    """Say an element twice, where it is not a set that the suite compares."""
    lists = [name for name in names if isinstance(fields[name], list) and fields[name]]
    lists = [name for name in lists if not _is_set(_comparator(name, near))]
    if lists:
        name = near.rng.choice(lists)
        fields[name] = [*fields[name], fields[name][0]]


def _is_set(comparator: Any) -> bool:
    return comparator == "set" if isinstance(comparator, str) or comparator is None else bool(comparator.set)


def _of_calls(change: Callable[[list[Any], Case, Neighbours], list[Any] | None]) -> AnswerChange:
    """Return a change of the calls of tools."""

    def changed(case: Case, near: Neighbours) -> Any:
        part = calls(case)
        new = None if part is None else change(list(part.value), case, near)
        return None if part is None or new is None or new == part.value else part.put(new)

    return changed


def _failed(call: Mapping[str, Any]) -> bool:
    return "status" in call


def _call_dropped(trace: list[Any], case: Case, near: Neighbours) -> list[Any] | None:
    """Leave out a call that is expected and was not made again after an error."""
    expected = {each.name for each in read_expected(case.expected) or ()}
    names = [each["name"] for each in trace if not _failed(each)]
    places = [
        at
        for at, each in enumerate(trace)
        if not _failed(each) and each["name"] in expected and names.count(each["name"]) == 1
    ]
    if not places:
        return None
    del trace[near.rng.choice(places)]
    return trace


def _call_doubled(trace: list[Any], case: Case, _near: Neighbours) -> list[Any] | None:
    return None if read_expected(case.expected) is None else [*trace, trace[-1]]


def _calls_reordered(trace: list[Any], case: Case, near: Neighbours) -> list[Any] | None:
    """Turn calls round that are made in the expected order, where the suite says that it matters."""
    if near.option("tools", "order", None) in _FREE_ORDERS:
        return None
    names, order = [each["name"] for each in trace], [each.name for each in read_expected(case.expected) or ()]
    return trace[::-1] if follows(order, names, "in_order") and not follows(order, names[::-1], "in_order") else None


def _argument(trace: list[Any], case: Case, near: Neighbours) -> list[Any] | None:
    """Change an argument that is as expected."""
    expected = {each.name: each.arguments or {} for each in read_expected(case.expected) or ()}
    ignored = near.option("tools", "ignore_arguments", ())
    places = [
        (at, name)
        for at, call in enumerate(trace)
        for name in sorted(call["arguments"])
        if name in expected.get(call["name"], {})
        and normal(str(call["arguments"][name])) == normal(str(expected[call["name"]][name]))
        and not any(fnmatchcase(name, each) for each in ignored)
    ]
    if not places:
        return None
    at, name = near.rng.choice(places)
    value = trace[at]["arguments"][name]
    changed = value + 1 if type(value) in (int, float) else f"{value} changed"
    trace[at] = {**trace[at], "arguments": {**trace[at]["arguments"], name: changed}}
    return trace


def _call_added(trace: list[Any], _case: Case, near: Neighbours) -> list[Any] | None:
    """Call a tool that the suite forbids, or else one that nobody knows."""
    forbidden = near.option("tools", "forbidden", ())
    name = forbidden[0].replace("*", "everything").replace("?", "x") if forbidden else "delete_everything"
    return [*trace, {"name": name, "arguments": {}}]


def _of_ranking(change: Callable[[list[Any], list[int]], list[Any] | None]) -> AnswerChange:
    """Return a change of a ranked list with the places of relevant results, of which there is at least one."""

    def changed(case: Case, _near: Neighbours) -> Any:
        part, relevant = ranked(case) or (None, frozenset())
        ids = None if part is None else ranking(part.value)
        if part is None or ids is None:
            return None
        places = [place for place, each in enumerate(ids) if each in relevant]
        new = change(part.value, places) if places else None
        return None if new is None else part.put(new)

    return changed


def _reversed(results: list[Any], places: list[int]) -> list[Any] | None:
    """Turn the list round, where relevant results then stand farther behind."""
    mirrored = sorted(len(results) - 1 - place for place in places)
    return results[::-1] if mirrored > places else None


def _last(results: list[Any], places: list[int]) -> list[Any] | None:
    first = places[0]
    if places == list(range(first, len(results))):
        return None
    return [*results[:first], *results[first + 1 :], results[first]]


def _removed(results: list[Any], places: list[int]) -> list[Any]:
    return [*results[: places[0]], *results[places[0] + 1 :]]


def _turn_dropped(case: Case, near: Neighbours) -> Any:
    """Leave out one turn, a message of the user with what follows it."""
    part = messages(case)
    starts = [] if part is None else [at for at, each in enumerate(part.value) if each["role"] == "user"]
    if part is None or len(starts) < 2:  # noqa: PLR2004 (one of several)
        return None
    place = near.rng.randrange(len(starts))
    end = [*starts[1:], len(part.value)][place]
    changed = part.put([*part.value[: starts[place]], *part.value[end:]])
    turns = changed.get("turns")
    return {**changed, "turns": turns - 1} if type(turns) is int else changed


def _turn_doubled(case: Case, _near: Neighbours) -> Any:
    """Have the last turn twice."""
    part = messages(case)
    starts = [] if part is None else [at for at, each in enumerate(part.value) if each["role"] == "user"]
    if part is None or not starts:
        return None
    changed = part.put([*part.value, *part.value[starts[-1] :]])
    turns = changed.get("turns")
    return {**changed, "turns": turns + 1} if type(turns) is int else changed


def _roles_swapped(case: Case, _near: Neighbours) -> Any:
    """Let the assistant say what the user said, and the other way round."""
    part = messages(case)
    if part is None:
        return None
    other = {"user": "assistant", "assistant": "user"}
    roles = [each["role"] for each in part.value if each["role"] in other]
    if len(set(roles)) < 2:  # noqa: PLR2004 (both)
        return None
    return part.put([{**each, "role": other.get(each["role"], each["role"])} for each in part.value])


_FIELDS: Final = "`fields` with a threshold, or `json_schema`"


def _fields(name: str, why: str, advice: str, change: Any) -> Mutator:
    return Mutator(name, why, _of_fields(change), advice, gives_way=True)


def _ranked(name: str, why: str, advice: str, change: Any) -> Mutator:
    return Mutator(name, why, _of_ranking(change), advice, gives_way=True)


MUTATORS: Final[tuple[Mutator, ...]] = (
    Mutator("next_label", "the class is another one", _next_label, "`classification` with a threshold on each class"),
    Mutator(
        "majority_label", "a system that always says the most frequent class", _majority, "macro F1, or gates by class"
    ),
    _fields("field_missing", "a field is missing", _FIELDS, _field_missing),
    _fields("field_added", "a field was added that nobody asked for", _FIELDS, _field_added),
    _fields("field_type", "a field has a value of another type", _FIELDS, _field_type),
    _fields("field_value", "a field has another value", "`fields` with a threshold", _field_value),
    _fields(
        "list_reordered", "a list has another order, which the suite does not leave free", _FIELDS, _list_reordered
    ),
    _fields("list_doubled", "an element of a list is there twice", "`fields` with a threshold", _list_doubled),
    Mutator(
        "call_dropped", "a tool was not called", _of_calls(_call_dropped), "`tools` with a threshold on tool_recall"
    ),
    Mutator("call_doubled", "a tool was called twice", _of_calls(_call_doubled), "`tools` with order or limits"),
    Mutator(
        "call_reordered",
        "tools were called in another order",
        _of_calls(_calls_reordered),
        "`tools: {order: in_order}` and a gate on trajectory_match",
    ),
    Mutator("argument", "a tool was called with another argument", _of_calls(_argument), "`tools: {arguments: exact}`"),
    Mutator(
        "call_added",
        "a tool was called that nobody asked for",
        _of_calls(_call_added),
        "`tools: {forbidden: [...]}` or precision",
    ),
    _ranked(
        "ranking_reversed", "the best results are the last ones", "a metric of ranks, such as MRR or NDCG", _reversed
    ),
    _ranked(
        "relevant_last", "the first relevant result is the last one", "a metric of ranks, such as MRR or NDCG", _last
    ),
    _ranked("relevant_removed", "the first relevant result is missing", "recall, or a metric of ranks", _removed),
    Mutator("turn_dropped", "a turn of the conversation is missing", _turn_dropped, "an expectation for each turn"),
    Mutator("turn_doubled", "a turn of the conversation is there twice", _turn_doubled, "a gate on turns"),
    Mutator(
        "roles_swapped", "user and assistant have changed roles", _roles_swapped, "an expectation with `turn: each`"
    ),
)
"""What makes structured answers wrong."""


_SHORT_ANSWER: Final = 4
_SHORT_LINE: Final = 30
_SEPARABLE: Final = re.compile(r"(?<![\w.,-])(?<!\d\s)[1-9]\d{4,}(?![\w.,-]|\s\d)")
_SEPARATED: Final = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{3})+(?![\w,]|\.\d)")
_ISO: Final = re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_CHINESE_DATE: Final = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日")
_WORDED_DATE: Final = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)}) (\d{{4}})\b")
_NARROW: Final = "0123456789,!?:;()"
_WIDE: Final = str.maketrans(_NARROW, "０１２３４５６７８９，！？：；（）")
_BACK: Final = str.maketrans("０１２３４５６７８９，！？：；（）", _NARROW)


def _swapped_case(text: str, _case: Case, _near: Neighbours) -> str | None:
    return None if "`" in text else text.swapcase()


def _spaced(text: str, _case: Case, _near: Neighbours) -> str:
    return f"  {'  '.join(text.split(' '))}\n"


def _widened(text: str, _case: Case, _near: Neighbours) -> str | None:
    """Write digits and marks of a Chinese text in full width, or in half width where they are."""
    if not has_cjk(text):
        return None
    wide = text.translate(_WIDE)
    return wide if wide != text else text.translate(_BACK)


def _around(text: str, _case: Case, _near: Neighbours) -> str | None:
    if len(text.split()) > _SHORT_ANSWER or len(text) > _SHORT_LINE or text.endswith((".", "。", "!", "?", "！", "？")):
        return None
    return f"答案是{text}。" if has_cjk(text) else f"It is {text}."


def _punctuated(text: str, _case: Case, _near: Neighbours) -> str:
    return text[:-1] if text.endswith((".", "。")) else f"{text}{'。' if has_cjk(text) else '.'}"


def _separated(text: str, _case: Case, _near: Neighbours) -> str:
    """Add separators of thousands, or take those away that there are."""
    with_separators = _SEPARABLE.sub(lambda match: f"{int(match[0]):,}", text)
    return with_separators if with_separators != text else _SEPARATED.sub(lambda match: match[0].replace(",", ""), text)


def _dated(text: str, _case: Case, _near: Neighbours) -> str:
    """Write a date in another unambiguous form: ISO in words, and words in ISO."""
    chinese = has_cjk(text)

    def worded(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        if not _is_date(year, month, day):
            return match[0]
        return f"{year}年{month}月{day}日" if chinese else f"{day} {MONTHS[month - 1]} {year}"

    def iso(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        return f"{year:04}-{month:02}-{day:02}" if _is_date(year, month, day) else match[0]

    new = _ISO.sub(worded, text)
    if new != text:
        return new
    if chinese:
        return _CHINESE_DATE.sub(iso, text)
    return _WORDED_DATE.sub(lambda parts: f"{parts[3]}-{MONTHS.index(parts[2]) + 1:02}-{int(parts[1]):02}", text)


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _synonym(text: str, case: Case, near: Neighbours) -> str | None:
    """Put another answer that the case accepts in place of the one that was given."""
    accepted = references(case)
    if len(accepted) < 2:  # noqa: PLR2004 (another one)
        return None
    match = next((each for each in accepted if each and normal(each) == normal(text)), None)
    others = [each for each in accepted if normal(each) != normal(text)]
    return near.rng.choice(others) if match is not None and others else None


def _reformatted(case: Case, _near: Neighbours) -> Any:
    """Write the JSON of a text with its keys in another order, in several lines."""
    part, text = structure(case), answer_text(case)
    if part is None or text is None:
        return None
    return text.put(json.dumps(dict(reversed(part.value.items())), ensure_ascii=False, indent=2))


def _keys_reordered(case: Case, _near: Neighbours) -> Any:
    """Give the keys of an object another order."""
    part = structure(case)
    if part is None or answer_text(case) is not None or len(part.value) == 1:
        return None
    return part.put(dict(reversed(part.value.items())))


def _lists_reordered(case: Case, near: Neighbours) -> Any:
    """Turn lists round whose order the suite leaves free."""
    part = structure(case)
    if part is None or near.evaluator("fields") is None:
        return None
    names = free_lists(part.value, sorted(part.value), near, free=True)
    return part.put({**part.value, **{name: part.value[name][::-1] for name in names}}) if names else None


def _free_calls(case: Case, near: Neighbours) -> Any:
    """Turn calls of tools round where the suite says that any order is right."""
    part = calls(case)
    if part is None or near.option("tools", "order", "") != "any_order":
        return None
    return part.put(part.value[::-1]) if len(part.value) > 1 else None


def _rewrite(name: str, why: str, change: Any) -> Mutator:
    return Mutator(name, why, of_text(change, prose=True), equivalent=True)


REWRITES: Final[tuple[Mutator, ...]] = (
    _rewrite("case", "capitals do not matter", _swapped_case),
    Mutator("white_space", "spaces do not matter", of_text(_spaced), equivalent=True),
    _rewrite("full_width", "the width of digits and marks does not matter", _widened),
    _rewrite("punctuation", "a full stop does not matter", _punctuated),
    _rewrite("around", "a sentence around a short answer does not matter", _around),
    _rewrite("synonym", "the case expects this answer, too", _synonym),
    _rewrite("thousands", "separators of thousands do not matter", _separated),
    _rewrite("date_form", "the form of a date does not matter", _dated),
    Mutator("json_form", "order and layout of JSON do not matter", _reformatted, equivalent=True, gives_way=True),
    Mutator("key_order", "the order of keys does not matter", _keys_reordered, equivalent=True),
    Mutator("free_order", "the suite leaves the order of this list free", _lists_reordered, equivalent=True),
    Mutator("free_calls", "the suite leaves the order of calls free", _free_calls, equivalent=True),
)
"""What must not make an answer wrong."""
