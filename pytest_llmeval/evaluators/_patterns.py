"""Regular expressions with limits on their size and on the time of a search."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pytest_llmeval.core import EvaluatorError

if TYPE_CHECKING:
    import regex

SEARCH_S: Final = 1.0
"""How long a regular expression may search, and a value may be compared with its schema."""


class PatternError(ValueError):
    """A user's pattern is no regular expression.

    Attributes:
        offset: Where in the text the fault is.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)


class SlowPatternError(EvaluatorError):
    """The search with a user's regular expression took too long."""


_DEEPEST_PATTERN: Final = 500
"""Most groups inside each other: how many more can be compiled depends on the recursion limit of the process."""
_MOST_GROUPS: Final = 5_000
"""Most groups of a pattern: the time to compile them grows with their square."""
_MOST_REPEATED: Final = 20_000
"""Most parts of a pattern more than are written: what is repeated at least n times is compiled n times."""

_PATTERN_PART: Final = re.compile(
    r"\\.|\(\?#[^)]*+\)?|\[\^?\]?(?:\\.|[^]\\])*+\]?|\{(?P<least>\d++)(?:,\d*+)?\}|.", re.DOTALL
)
_HIDING_FLAG: Final = re.compile(r"\(\?[a-zA-Z0-9]*(?:x|V1)")
"""A flag with which parentheses and repeats can stand where `_PATTERN_PART` does not see them."""
_LEAST: Final = re.compile(r"\{(\d++)")
_SPACE_AND_COMMENTS: Final = re.compile(r"\s++|#[^\n]*+")


def pattern_size_fault(pattern: str) -> str:
    """The reason why a user's regular expression takes too much to compile; empty if it does not."""
    sizes, last, groups, deepest = [0], 0, 0, 1
    for match in _PATTERN_PART.finditer(pattern):
        part = match.group()
        if match["least"]:
            last, before = last * max(_count(match["least"]), 1), last
            sizes[-1] += last - before
        elif part == "(":
            sizes.append(0)
            groups += 1
            deepest = max(deepest, len(sizes))
        elif part == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
    if deepest > _DEEPEST_PATTERN:
        return "found a pattern that is nested too deeply"
    if groups > _MOST_GROUPS:
        return f"found a pattern with {groups:,} groups, expected at most {_MOST_GROUPS:,}"
    if max(sum(sizes), _hidden_size(pattern)) > len(pattern) + _MOST_REPEATED:
        return (
            f"found a pattern that repeats too much, expected at most {_MOST_REPEATED:,} parts when it is written out"
        )
    return ""


def _hidden_size(pattern: str) -> int:
    """The most parts of a user's regular expression whose flags hide some; 0 without such flags."""
    if not _HIDING_FLAG.search(pattern):
        return 0
    texts = pattern, _SPACE_AND_COMMENTS.sub("", pattern)
    counts = ([count for digits in _LEAST.findall(text) if (count := _count(digits)) > 1] for text in texts)
    return len(pattern) * max(math.prod(several[:20]) for several in counts)  # twenty doublings are enough to refuse it


def _count(digits: str) -> int:
    """The number of repetitions in a user's regular expression, from at most ten digits: more are refused anyway."""
    return int(digits[:10])


@dataclass(frozen=True)
class TimedPattern:
    """A user's regular expression whose searches are cut off after a second.

    Attributes:
        expression: As `regex` compiled it.
    """

    expression: "regex.Pattern[str]"

    @classmethod
    @lru_cache(maxsize=256)
    def compile(cls, pattern: str, *, ignore_case: bool = False) -> "TimedPattern":
        """Compile a regular expression.

        Raises:
            PatternError: It does not compile, or takes too much to compile.
        """
        import regex

        if fault := pattern_size_fault(pattern):
            raise PatternError(fault, 0)
        try:
            return cls(regex.compile(pattern, regex.IGNORECASE if ignore_case else 0))
        except regex.error as error:
            why, _, position = str(error).partition(" at position ")
            offset = int(position) if position.isdecimal() else 0
            message = f"found the pattern {pattern!r}, which does not compile ({why} at character {offset + 1})"
            raise PatternError(f"{message}, expected a regular expression", offset) from None
        except RecursionError:
            raise PatternError("found a pattern that is nested too deeply", 0) from None

    def search(self, text: str, seconds: float | None = None) -> "regex.Match[str] | None":
        """The first match in a text, or ``None``.

        Args:
            text: What is searched.
            seconds: How long the search may take; default: a second.

        Raises:
            SlowPatternError: It takes longer.
        """
        try:
            # Of 0 s or less, regex would make no limit.
            return self.expression.search(text, timeout=SEARCH_S if seconds is None else max(seconds, 1e-6))
        except TimeoutError:
            message = f"the pattern {self.expression.pattern!r} searched for {SEARCH_S:g} s without result"
            raise SlowPatternError(message) from None
