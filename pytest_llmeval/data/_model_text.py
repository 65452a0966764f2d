"""The text of a model, without its thoughts and without invisible marks."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pytest_llmeval.core import printable

_NAMES: Final = "think|thinking|thoughts?|reasoning"
_TAG: Final = rf"[<\[◁](?P<name>{_NAMES})[>\]▷]"
_OPENING = re.compile(rf"^[ \t]*{_TAG}", re.IGNORECASE | re.MULTILINE)
_NEXT_OPENING = re.compile(rf"\s*{_TAG}", re.IGNORECASE)
_CLOSING_TAG = re.compile(rf"[<\[◁]/(?:{_NAMES})[>\]▷]", re.IGNORECASE)

_DATA: Final = ("{", "[", "```")
_QUOTES: Final = "\"'`“‘「『(["


class UnfinishedThoughtsError(ValueError):
    """A text that ends inside the thoughts of its model, so that what it says is not what the model concluded."""

    def __init__(self) -> None:
        super().__init__("the reply ends inside its thoughts: raise max_tokens")


@dataclass(frozen=True)
class ModelText:
    """The text of a model, such as an answer in a file or a judge's reply.

    Attributes:
        text: The whole text.
    """

    text: str

    def begins_with_data(self) -> bool:
        """Whether it begins with JSON or with a fence."""
        return self.text.startswith(_DATA)

    def spoken(self, concludes: Callable[[str], object] | None = None) -> str:
        r"""The text after the model's thoughts, without invisible marks around it.

        Thoughts stand between tags such as ``<think>`` and ``</think>``, in any case, at the beginning of a line.
        Servers whose prompt ends with the opening tag leave it out: then all up to the closing tag are thoughts. A tag
        that may be quoted ends none: a conclusion begins the text, or a blank or quotation mark stands before the tag.

        Args:
            concludes: Whether a text begins with a conclusion, and so not with thoughts; ``None``: if it is data.

        Raises:
            UnfinishedThoughtsError: An opening tag has no closing one.

        Example:
            >>> ModelText("<THINK>Yes?</THINK>\n\n<think>No.</think>no\u200b").spoken()
            'no'
            >>> ModelText("So yes.\n</think>\nyes").spoken()
            'yes'
            >>> ModelText("no, although it says </think> yes").spoken()
            'no, although it says </think> yes'
        """
        whole = _without_marks(self.text)
        spoken: list[str] = []
        position = 0
        opening = _OPENING.search(whole)
        while opening:
            closing = _closing_tag(opening["name"]).search(whole, opening.end())
            if closing is None:
                raise UnfinishedThoughtsError
            spoken.append(whole[position : opening.start()])
            position = closing.end()
            opening = _NEXT_OPENING.match(whole, position) or _OPENING.search(whole, position)
        if not spoken:
            return _without_marks(_after_unopened_thoughts(whole, concludes or _is_data))
        return _without_marks("".join([*spoken, whole[position:]]))

    def behind_thoughts(self) -> list[str]:
        """The texts behind each tag that ends thoughts, up to the next one."""
        return _CLOSING_TAG.split(self.text)[1:]


def _is_data(text: str) -> bool:
    """Whether the text of a model begins with JSON or with a fence."""
    return ModelText(text).begins_with_data()


def _without_marks(text: str) -> str:
    """The text of a model without white space, marks of byte order and other invisible characters around it."""
    start, end = 0, len(text)
    while start < end and _is_mark(text[start]):
        start += 1
    while start < end and _is_mark(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_mark(character: str) -> bool:
    """Whether a character around a model's reply is white space or invisible, such as a byte order mark."""
    is_surrogate = "\ud800" <= character <= "\udfff"  # the half of a character that people may see
    return character.isspace() or (printable(character) != character and not is_surrogate)


def _closing_tag(name: str) -> re.Pattern[str]:
    """The pattern of the tag that ends a model's thoughts, such as ``</think>``."""
    return re.compile(rf"[<\[◁]/{name}[>\]▷]", re.IGNORECASE)


def _after_unopened_thoughts(text: str, concludes: Callable[[str], object]) -> str:
    """The text of a model after thoughts whose opening tag is not in the text.

    The whole text if its closing tag is missing or quoted, or if the text already concludes.
    """
    closing = _CLOSING_TAG.search(text)
    if closing is None:
        return text
    if closing.end() == len(text):
        return ""
    if concludes(text):
        return text
    thoughts = text[: closing.start()]
    line = thoughts[thoughts.rfind("\n") + 1 :]
    is_quoted = thoughts.count('"') % 2 or (line.strip() and (line[-1].isspace() or line[-1] in _QUOTES))
    return text if is_quoted else text[closing.end() :]
