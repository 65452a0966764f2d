"""Equivalent rewrites: changes of answers after which they are as good as before, and must not fail."""

import json
import re
from datetime import date
from typing import Any, Final

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.views import Mutator, Neighbours
from pytest_llmeval.evaluators.answer_forms import (
    answer_text,
    calls,
    has_cjk,
    normal,
    of_text,
    references,
    structure,
)
from pytest_llmeval.workbench.mutation.structures import free_lists

_SHORT_ANSWER: Final = 4
_SHORT_LINE: Final = 30
_SEPARABLE: Final = re.compile(r"(?<![\w.,-])(?<!\d\s)[1-9]\d{4,}(?![\w.,-]|\s\d)")
_SEPARATED: Final = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{3})+(?![\w,]|\.\d)")
_ISO: Final = re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_CHINESE_DATE: Final = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日")
_MONTH: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_WORDED_DATE: Final = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_MONTH)}) (\d{{4}})\b")
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
        return f"{year}年{month}月{day}日" if chinese else f"{day} {_MONTH[month - 1]} {year}"

    def iso(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        return f"{year:04}-{month:02}-{day:02}" if _is_date(year, month, day) else match[0]

    new = _ISO.sub(worded, text)
    if new != text:
        return new
    if chinese:
        return _CHINESE_DATE.sub(iso, text)
    return _WORDED_DATE.sub(lambda parts: f"{parts[3]}-{_MONTH.index(parts[2]) + 1:02}-{int(parts[1]):02}", text)


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


def _calls_reordered(case: Case, near: Neighbours) -> Any:
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
    Mutator("free_calls", "the suite leaves the order of calls free", _calls_reordered, equivalent=True),
)
"""What must not make an answer wrong."""
